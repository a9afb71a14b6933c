"""What `torch.library` registers of an operator besides its kernels: autocast, rules for classes, lifetimes."""

from __future__ import annotations

import uuid
from typing import Any

import pytest


@pytest.fixture
def double(torch: Any) -> Any:
    """An operator of its own for each test, under a name that no other one has."""
    seen = []

    def kernel(x: torch.Tensor) -> torch.Tensor:
        seen.append((x.dtype, torch.is_autocast_enabled("cpu")))
        return x * 2

    kernel.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    made = torch.library.custom_op(f"mine{uuid.uuid4().hex}::double", kernel, mutates_args=())
    made.seen = seen
    return made


def test_autocast_casts_the_arguments_and_is_off_inside(torch: Any, double: Any) -> None:
    double.register_autocast("cpu", torch.bfloat16)
    x = torch.ones(2)
    assert double(x).dtype is torch.float32
    with torch.autocast("cpu"):
        assert double(x).dtype is torch.bfloat16
        assert double(x.double()).dtype is torch.float64
    assert double.seen == [(torch.float32, False), (torch.bfloat16, False), (torch.float64, False)]
    with pytest.raises(RuntimeError, match="at start of device string: nosuch"):
        double.register_autocast("nosuch", torch.bfloat16)


def test_what_it_means_to_a_mode_and_to_a_class(torch: Any, double: Any) -> None:
    base = torch.utils._python_dispatch.TorchDispatchMode

    class Mode(base):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise AssertionError("it has been told about this operator")

    def told(mode: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        assert type(mode) is Mode
        assert func is double._opoverload
        return args[0] * 5

    double.register_torch_dispatch(Mode, told)
    x = torch.ones(2)
    with Mode():
        y = double(x)
    assert y.tolist() == [5.0, 5.0]
    assert double(x).tolist() == [2.0, 2.0]

    class Held(torch.Tensor):
        @staticmethod
        def __new__(cls, elem):
            return torch.Tensor._make_wrapper_subclass(cls, elem.size(), dtype=elem.dtype)

        def __init__(self, elem):
            self.elem = elem

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("it has been told about this operator")

    def told_of_class(cls: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        assert cls is Held
        return args[0].elem * 7

    double.register_torch_dispatch(Held, told_of_class)
    assert double(Held(torch.ones(2))).tolist() == [7.0, 7.0]


def test_registrations_of_a_library_end_with_it(torch: Any, double: Any) -> None:
    name = double._qualname
    with torch.library._scoped_library(name.partition("::")[0], "FRAGMENT") as lib:
        torch.library.register_autograd(name, lambda ctx, grad: grad * 2, lib=lib)
        x = torch.ones(2, requires_grad=True)
        double(x).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]


def test_options_that_mean_nothing_here_are_refused() -> None:
    import retrograd

    class Held(retrograd.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    make = retrograd.Tensor._make_wrapper_subclass
    for options in ({"pin_memory": True}, {"_extra_dispatch_keys": 1}, {"memory_format": retrograd.channels_last}):
        with pytest.raises(RuntimeError, match="_make_wrapper_subclass"):
            make(Held, (1, 2, 3, 3), **options)


def test_of_retrograd_the_registrations_are_undone() -> None:
    import retrograd as torch

    twice = torch.library.custom_op("undone::twice", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
    lib = torch.library.Library("undone", "FRAGMENT")
    torch.library.register_autograd("undone::twice", lambda ctx, grad: grad * 2, lib=lib)
    torch.library.register_fake("undone::twice", torch.empty_like, lib=lib)
    with pytest.raises(RuntimeError, match="already has a fake impl registered"):
        torch.library.register_fake("undone::twice", torch.empty_like, allow_override=False)
    lib._destroy()
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        twice(x).sum().backward()
    torch.library.register_fake("undone::twice", torch.empty_like)
    with pytest.raises(TypeError, match=r"lib must be a torch\.library\.Library"):
        torch.library.register_vmap("undone::twice", lambda info, dims, x: (x, 0), lib=3)
