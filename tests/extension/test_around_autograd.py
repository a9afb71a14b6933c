"""Where subclasses, modes and custom functions meet what autograd keeps."""

import functools
from typing import Any

import pytest

import retrograd as torch
from retrograd.utils._python_dispatch import TorchDispatchMode
from retrograd.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
from retrograd.utils.module_tracker import ModuleTracker


class Whole(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 3


def test_an_input_returned_as_it_is_keeps_its_class() -> None:
    class Mine(torch.Tensor):
        pass

    x = Mine([1.0, 2.0])
    y = Whole.apply(x)
    assert type(y) is Mine and y is not x
    x.requires_grad_()
    y = Whole.apply(x)
    assert type(y) is Mine and "Whole" in y.grad_fn.name()
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0, 3.0]


def test_a_wrapper_that_is_not_finished_is_not_asked() -> None:
    asked = []

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner: torch.Tensor) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=True)

        def __init__(self, inner: torch.Tensor) -> None:
            self.inner = inner

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append(func)
            plain = [tuple(a.inner if isinstance(a, cls) else a for a in group) for group in args]
            return func(*plain, **(kwargs or {}))

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise AssertionError(func)

    x = torch.ones(2, requires_grad=True)
    w = Wrapper(x * 2)
    assert asked == []
    torch.autograd.backward(w, torch.ones(2))
    assert asked == [torch.autograd.backward]
    assert x.grad is not None and x.grad.tolist() == [2.0, 2.0]


def test_what_was_detached_in_place_before_it_was_saved_is_a_leaf() -> None:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    leaf = x.clone().detach_().requires_grad_()
    (leaf * leaf).sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [4.0, 6.0] and x.grad is None
    after = x.clone()
    y = (after * after).sum()
    after.detach_()
    with pytest.raises(RuntimeError, match="detached in-place"):
        y.backward()


@pytest.mark.parity
def test_a_dim_that_is_given_as_none_is_the_overload_with_a_dim() -> None:
    theirs = pytest.importorskip("torch")
    for call in ("sum", "mean"):
        for arguments in ({}, {"dim": None}, {"dim": None, "keepdim": True}, {"dim": 0}):
            names = []
            for library in (torch, theirs):
                y = getattr(library.ones(2, 3, requires_grad=True), call)(**arguments)
                names.append((y.grad_fn.name(), tuple(y.shape)))
            assert names[0] == names[1]


def test_as_strided_has_saved_the_offset_that_was_given() -> None:
    x = torch.arange(6.0).requires_grad_()
    part = x[2:]
    for offset, expected in ((None, [2.0, 4.0]), (3, [3.0, 5.0])):
        y = part.as_strided((2,), (2,), offset)
        assert y.grad_fn._saved_storage_offset == offset and y.tolist() == expected
        (grad,) = torch.autograd.grad(y.sum(), x)
        assert grad.nonzero().flatten().tolist() == [int(at) for at in expected]


def test_modules_in_a_list_have_names() -> None:
    seen: list[set[str]] = []

    class Block(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            seen.append(set(tracker.parents))
            return x

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList([Block(), Block()])

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return x

    with ModuleTracker() as tracker:
        Model()(torch.ones(1))
    assert seen == [{"Global", "Model", f"Model.layers.{i}"} for i in range(2)]


def test_a_mode_around_a_selective_checkpoint_sees_operators_of_programs() -> None:
    seen = []

    @torch.library.custom_op("around_autograd::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_autograd(lambda ctx, grad: grad * 2)

    class Outer(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            seen.append((func, out))
            return out

    given = []

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        given.append((op, ctx.op_output))
        return CheckpointPolicy.MUST_SAVE

    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    x = torch.ones(2, requires_grad=True)
    with Outer():
        checkpoint(twice, x, use_reentrant=False, context_fn=contexts).sum().backward()
    op = torch.ops.around_autograd.twice.default
    assert next(out for func, out in seen if func is op) is given[0][1] and given[0][0] is op
    assert x.grad is not None and x.grad.tolist() == [2.0, 2.0]


def test_a_backward_of_many_gradients_calls_custom_functions_as_any_other() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return Tripled.apply(grad * x)

    class Tripled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, grad: Any) -> Any:
            return grad * 3

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 3

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (grads,) = torch.autograd.grad(Square.apply(x), x, torch.eye(2), is_grads_batched=True)
    assert grads.tolist() == [[3.0, 0.0], [0.0, 6.0]]
