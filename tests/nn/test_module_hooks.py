"""Hooks of modules: order, replacement, removal, and the gradients that backward hooks see; all as torch does it."""

from __future__ import annotations

from typing import Any

import pytest


def modules_of(torch: Any) -> Any:
    import importlib

    return importlib.import_module(torch.__name__ + ".nn.modules.module")


def test_forward_hooks_in_order(torch: Any) -> None:
    m = torch.nn.Identity()
    seen: list[str] = []
    m.register_forward_pre_hook(lambda module, args: seen.append("pre"))
    m.register_forward_hook(lambda module, args, output: seen.append("post"))
    m.register_forward_hook(lambda module, args, output: seen.append("first"), prepend=True)
    assert (m(torch.ones(1)) == 1).all()
    assert seen == ["pre", "first", "post"]


def test_forward_hooks_replace(torch: Any) -> None:
    m = torch.nn.Identity()
    with m.register_forward_pre_hook(lambda module, args: args[0] + 1):
        with m.register_forward_hook(lambda module, args, output: output * 10):
            assert m(torch.ones(1)).item() == 20
        assert m(torch.ones(1)).item() == 2
    assert m(torch.ones(1)).item() == 1


def test_hooks_with_keywords(torch: Any) -> None:
    class Add(torch.nn.Module):
        def forward(self, x: Any, *, other: Any) -> Any:
            return x + other

    m = Add()
    m.register_forward_pre_hook(lambda module, args, kwargs: (args, {"other": kwargs["other"] * 2}), with_kwargs=True)
    seen: list[Any] = []
    m.register_forward_hook(lambda module, args, kwargs, out: seen.append(kwargs["other"].item()), with_kwargs=True)
    assert m(torch.ones(1), other=torch.ones(1)).item() == 3
    assert seen == [2]
    m.register_forward_pre_hook(lambda module, args, kwargs: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple of"):
        m(torch.ones(1), other=torch.ones(1))


def test_always_called_hook(torch: Any) -> None:
    class Fails(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("no")

    m = Fails()
    seen: list[Any] = []
    m.register_forward_hook(lambda module, args, output: seen.append("skipped"))
    m.register_forward_hook(lambda module, args, output: seen.append(output), always_call=True)
    with pytest.raises(ValueError, match="no"):
        m(torch.ones(1))
    assert seen == [None]


def test_global_hooks(torch: Any) -> None:
    module = modules_of(torch)
    seen: list[str] = []
    m = torch.nn.Identity()
    m.register_forward_hook(lambda module, args, output: seen.append("own"))
    with (
        module.register_module_forward_pre_hook(lambda module, args: seen.append("pre")),
        module.register_module_forward_hook(lambda module, args, output: seen.append("global")),
    ):
        m(torch.ones(1))
    m(torch.ones(1))
    assert seen == ["pre", "global", "own", "own"]


def test_registration_hooks(torch: Any) -> None:
    module = modules_of(torch)
    seen: list[tuple[str, str]] = []
    with (
        module.register_module_parameter_registration_hook(lambda m, name, p: seen.append(("parameter", name))),
        module.register_module_buffer_registration_hook(lambda m, name, b: seen.append(("buffer", name))),
        module.register_module_module_registration_hook(lambda m, name, c: seen.append(("module", name))),
    ):
        m = torch.nn.Module()
        m.p = torch.nn.Parameter(torch.ones(1))
        m.register_buffer("b", torch.ones(1))
        m.c = torch.nn.Identity()
    assert seen == [("parameter", "p"), ("buffer", "b"), ("module", "c")]


# ----------------------------------------------------------------------------------------------------------- backward


class Product:
    @staticmethod
    def make(torch: Any) -> Any:
        class Module(torch.nn.Module):
            def forward(self, x: Any, y: Any, n: int = 1) -> Any:
                return x * y * n, x + y

        return Module()


def test_full_backward_hook_sees_all_gradients(torch: Any) -> None:
    m = Product.make(torch)
    seen: list[Any] = []
    m.register_full_backward_hook(lambda module, gi, go: seen.append((gi, go)))
    x = torch.tensor([2.0], requires_grad=True)
    y = torch.tensor([3.0])
    a, b = m(x, y, 5)
    (a * 7 + b).sum().backward()
    ((gi, go),) = seen
    assert [g if g is None else g.item() for g in gi] == [106, 0, None]
    assert [g.item() for g in go] == [7, 1]
    assert x.grad.item() == 106


def test_full_backward_hook_replaces(torch: Any) -> None:
    m = torch.nn.Identity()
    m.register_full_backward_hook(lambda module, gi, go: (gi[0] * 2,))
    m.register_full_backward_hook(lambda module, gi, go: (gi[0] + 1,))
    m.register_full_backward_pre_hook(lambda module, go: (go[0] * 10,))
    x = torch.ones(1, requires_grad=True)
    m(x).backward()
    assert x.grad.item() == 21


def test_backward_hooks_without_differentiable_inputs(torch: Any) -> None:
    m = torch.nn.Linear(1, 1)
    seen: list[Any] = []
    handle = m.register_full_backward_hook(lambda module, gi, go: seen.append((gi, go)))
    with pytest.warns(UserWarning, match="Full backward hook is firing"):
        m(torch.ones(1)).backward()
    assert seen[0][0] == (None,) and seen[0][1][0].item() == 1
    handle.remove()
    m(torch.ones(1)).backward()
    assert len(seen) == 1


def test_backward_hooks_in_order_of_modules(torch: Any) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1))
    seen: list[str] = []
    for module in net:
        module.register_full_backward_hook(lambda module, gi, go: seen.append(type(module).__name__))
    net(torch.ones(1, 2, requires_grad=True)).backward()
    assert seen == ["Linear", "Tanh", "Linear"]


def test_no_backward_hooks_without_grad_mode(torch: Any) -> None:
    m = torch.nn.Tanh()
    m.register_full_backward_hook(lambda module, gi, go: None)
    x = torch.ones(1, requires_grad=True)
    with torch.no_grad():
        assert not m(x).requires_grad


def test_wrong_number_of_gradients(torch: Any) -> None:
    m = torch.nn.Identity()
    m.register_full_backward_hook(lambda module, gi, go: (None, None))
    with pytest.raises(RuntimeError, match="Backward hook returned an invalid number of grad_input, got 2"):
        m(torch.ones(1, requires_grad=True)).backward()


def test_both_kinds_of_backward_hooks(torch: Any) -> None:
    m = torch.nn.Identity()
    m.register_full_backward_hook(lambda module, gi, go: None)
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
        m.register_backward_hook(lambda module, gi, go: None)


def test_older_backward_hook(torch: Any) -> None:
    m = torch.nn.Tanh()
    seen: list[Any] = []
    m.register_backward_hook(lambda module, gi, go: seen.append(go[0].item()))
    m(torch.zeros(1, requires_grad=True) + 0).backward()
    assert seen == [1]


def test_global_backward_hooks(torch: Any) -> None:
    module = modules_of(torch)
    seen: list[str] = []
    with (
        module.register_module_full_backward_hook(lambda m, gi, go: seen.append("hook")),
        module.register_module_full_backward_pre_hook(lambda m, go: seen.append("pre")),
    ):
        torch.nn.Identity()(torch.ones(1, requires_grad=True)).backward()
    assert seen == ["pre", "hook"]


def test_dictionaries_hold_the_functions(torch: Any) -> None:
    """Pruning and other tools read them."""
    m = torch.nn.Linear(1, 1)

    def hook(*args: Any) -> None: ...

    before = m.register_forward_pre_hook(hook, with_kwargs=True)
    after = m.register_forward_hook(hook, with_kwargs=True, always_call=True)
    m.register_full_backward_hook(hook), m.register_full_backward_pre_hook(hook)
    for name in ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks", "_backward_pre_hooks"):
        assert list(getattr(m, name).values()) == [hook]
    assert list(m._forward_pre_hooks_with_kwargs) == list(m._forward_pre_hooks) == [before.id]
    assert list(m._forward_hooks_with_kwargs) == list(m._forward_hooks_always_called) == [after.id]
    before.remove(), after.remove()
    for name in ("_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs", "_forward_hooks_always_called"):
        assert not getattr(m, name)


def test_older_backward_hook_says_what_it_misses(torch: Any) -> None:
    class Two(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return (x * 2).tanh()

    m = Two()
    m.register_backward_hook(lambda *args: None)
    with pytest.warns(FutureWarning, match="the forward contains multiple autograd Nodes"):
        m(torch.ones(1, requires_grad=True).exp())
