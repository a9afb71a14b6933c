"""``torch._custom_ops`` and ``torch._custom_op``, beside torch where it is installed."""

from __future__ import annotations

from importlib import import_module

import pytest

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def steps(torch):
    """``torch._custom_ops``; what a test defines goes with it."""
    impl = import_module(f"{torch.__name__}._custom_op.impl")
    yield import_module(f"{torch.__name__}._custom_ops")
    for name in [name for name in impl.global_registry if name.startswith("steps::")]:
        impl.global_registry[name]._destroy()


def defined(torch, steps, kernel=None, types=None, result=None):
    def f(x, *rest):
        raise NotImplementedError

    def f1(x):
        raise NotImplementedError

    T = torch.Tensor
    f1.__name__ = "f"
    f1.__annotations__ = {"x": T if types is None else types, "return": T if result is None else result}
    steps.custom_op("steps::f")(f1)
    if kernel is not None:
        steps.impl("steps::f", func=kernel)
    return torch.ops.steps.f.default


def test_gradients(torch, steps):
    op = defined(torch, steps, lambda x: x.sin())
    steps.impl_save_for_backward("steps::f", func=lambda inputs, output: {"x": inputs.x, "names": inputs._fields})
    steps.impl_backward("steps::f", func=lambda ctx, saved, grad: {"x": grad * saved["x"].cos()})
    x = torch.tensor(1.0, requires_grad=True)
    y = op(x)
    assert type(y.grad_fn).__name__ == "f_customopBackward"
    y.backward()
    assert x.grad.item() == x.cos().item()


def test_no_formula(torch, steps):
    op = defined(torch, steps, lambda x: x.sin())
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Autograd has not been implemented for operator"):
        op(x)
    with torch.no_grad():
        assert op(x).shape == (2,)
    assert op(x.detach()).shape == (2,)
    steps.impl_backward("steps::f", func=lambda ctx, saved, grad: {"x": grad})
    with pytest.raises(RuntimeError, match="unable to find a 'save_for_backward'"):
        op(x)


@pytest.mark.parametrize("grads, message", [
    (lambda g: g, "to be a dict"), (lambda g: {"x": g, "y": None}, "to have keys {'x'}"),
    (lambda g: {}, "to have keys"), (lambda g: {"x": (g,)}, "either None or a Tensor"),
])  # fmt: skip
def test_formulas_that_return_something_else(torch, steps, grads, message):
    op = defined(torch, steps, lambda x: x.sin())
    steps.impl_save_for_backward("steps::f", func=lambda inputs, output: [])
    steps.impl_backward("steps::f", func=lambda ctx, saved, grad: grads(grad))
    y = op(torch.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match=message):
        y.sum().backward()


@pytest.mark.parametrize("grads, message", [
    (lambda g: None, "list of gradients"), (lambda g: [g], "2 gradients but got 1"),
    (lambda g: [g, 3], "None or Tensor"),
])  # fmt: skip
def test_formulas_of_lists(torch, steps, grads, message):
    op = defined(torch, steps, lambda x: x[0] * x[1], list[torch.Tensor])
    steps.impl_save_for_backward("steps::f", func=lambda inputs, output: [])
    right = []
    steps.impl_backward("steps::f", func=lambda ctx, saved, grad: {"x": [grad, None] if right else grads(grad)})
    xs = [torch.ones(2, requires_grad=True) for _ in range(2)]
    y = op(xs)
    with pytest.raises(RuntimeError, match=message):
        y.sum().backward()
    right.append(1)
    op(xs).sum().backward()
    assert xs[0].grad.tolist() == [1.0, 1.0] and xs[1].grad is None


def test_results_without_gradients(torch, steps):
    op = defined(torch, steps, lambda x: ([x * 1, x * 2], x * 3), result=tuple[list[torch.Tensor], torch.Tensor])
    steps.impl_save_for_backward("steps::f", func=lambda inputs, output: [])
    with pytest.raises(RuntimeError, match="output_differentiability"):
        steps.impl_backward("steps::f", output_differentiability=[True])(lambda *args: None)
    steps.impl_backward("steps::f", [False, True], func=lambda ctx, saved, several, grad: {"x": grad * 3})
    x = torch.ones(2, requires_grad=True)
    (a, b), c = op(x)
    assert [t.requires_grad for t in (a, b, c)] == [False, False, True]
    c.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_definitions_that_are_refused(torch, steps):
    def g(x):
        return x

    for name, schema, error, message in (
        ("steps::f", "(", AssertionError, "Invalid function schema: f"),
        ("steps::f.form", "() -> ()", ValueError, "overload"),
        ("f", "(Tensor x) -> Tensor", ValueError, "namespace"),
        ("aten::f", "(Tensor x) -> Tensor", ValueError, "is a reserved namespace"),
        ("steps::f", "(Tensor(a!) x) -> Tensor(a)", ValueError, "only supports functional"),
        ("steps::f", "(Tensor x) -> ()", ValueError, "only supports functional"),
        ("steps::f", "(Tensor self) -> Tensor", ValueError, "self"),
        ("steps::f", g, ValueError, "to have name 'f'"),
    ):
        with pytest.raises(error, match=message):
            steps.custom_op(name, schema)
    defined(torch, steps)
    with pytest.raises(RuntimeError, match="multiple times"):
        defined(torch, steps)
    steps._destroy("steps::f")
    defined(torch, steps)


def test_kernels(torch, steps):
    op = defined(torch, steps)
    with pytest.raises(NotImplementedError, match="cpu impl registered"):
        op(torch.ones(2))
    with pytest.raises(NotImplementedError, match="no fake impl or Meta kernel"):
        op(torch.ones(2, device="meta"))
    with pytest.raises(ValueError, match="we only support device_type"):
        steps.impl("steps::f", device_types="hip", func=lambda x: x * 2)
    steps.impl("steps::f", device_types="cpu", func=lambda x: x * 2)
    assert op(torch.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="already has a cpu impl registered"):
        steps.impl("steps::f", device_types="cpu", func=lambda x: x * 2)


def test_operators_of_libraries(torch, steps):
    with torch.library._scoped_library("steps", "FRAGMENT") as lib:
        lib.define("g(Tensor x) -> Tensor")
        steps.impl("steps::g", func=lambda x: x.sin())
        steps.impl_save_for_backward("steps::g", func=lambda inputs, output: inputs.x)
        steps.impl_backward("steps::g", func=lambda ctx, x, grad: {"x": grad * x.cos()})
        x = torch.tensor(0.0, requires_grad=True)
        torch.ops.steps.g(x).backward()
        assert x.grad.item() == 1.0
        for name, schema, key, message in (
            ("h", "(Tensor(a) x) -> Tensor(a)", None, "returns views"),
            ("i", "(Tensor(a!) x) -> Tensor", None, "non-functional"),
            ("j", "(Tensor x) -> ()", None, "no returns"), ("k", "(Tensor x) -> Tensor", "Autograd", "Autograd"),
            ("l", "(Tensor x) -> Tensor", "CompositeImplicitAutograd", "CompositeImplicitAutograd"),
        ):  # fmt: skip
            lib.define(f"{name}{schema}")
            if key is not None:
                lib.impl(name, lambda x: x * 2, key)
            with pytest.raises(RuntimeError, match=message):
                steps.impl_backward(f"steps::{name}", func=lambda *args: {})
        with pytest.raises(RuntimeError, match="already has an implementation"):
            steps.impl("steps::l", func=lambda x: x)


def test_the_older_object(torch, steps):
    impl = import_module(f"{torch.__name__}._custom_op.impl")
    with pytest.warns(DeprecationWarning, match=r"torch\._custom_op is deprecated"):
        @impl.custom_op("steps::f", "(Tensor x, *, Tensor y) -> Tensor")
        def f(x, *, y): ...

    f.impl("cpu")(lambda x, *, y: x * y)
    assert f(torch.ones(2), y=torch.ones(2) * 3).tolist() == [3.0, 3.0] and repr(f) == '<CustomOp(op="steps::f")>'
    for wrong in (lambda y, *, x: 0, lambda x, y: 0):
        wrong.__name__ = "g"
        with pytest.raises(ValueError, match="signature to match"):
            impl.custom_op("steps::g", "(Tensor x, *, Tensor y) -> Tensor")(wrong)
    with pytest.raises(RuntimeError, match="CustomOp constructor is private"):
        impl.CustomOp(None, None, None, None, None)
