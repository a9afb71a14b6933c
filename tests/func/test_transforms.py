"""grad, vjp, jvp, jacobians and their compositions, against loops, finite differences and torch.func."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from operator_runs import needs_torch
from retrograd.autograd import forward_ad
from retrograd.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)


def same(got: Any, expected: Any, fine: float = 1e-9) -> None:
    got, expected = (np.asarray(x.detach().numpy() if hasattr(x, "detach") else x) for x in (got, expected))
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, fine, fine)


@pytest.fixture(autouse=True)
def in_double() -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(before)


def f(x: Any) -> Any:
    """A function of a vector with all derivatives."""
    return (x.sin() * x.roll(1)).prod() + (x**3).sum() * x.exp().mean()


def differences(function: Callable[[np.ndarray], Any], x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """The derivative of a function of an array by central differences, along a new last dimension."""
    columns = []
    for i in range(x.size):
        e = np.zeros_like(x)
        e.flat[i] = step
        columns.append((np.asarray(function(x + e)) - np.asarray(function(x - e))) / (2 * step))
    return np.stack(columns, -1)


def of_array(function: Callable[[Any], Any]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda a: function(torch.tensor(a)).detach().numpy()


def test_derivatives_to_the_third_order_are_limits_of_differences() -> None:
    x = torch.randn(4)
    at = x.numpy().copy()
    same(grad(f)(x), differences(of_array(f), at), 1e-6)
    second = differences(of_array(grad(f)), at)
    third = differences(of_array(hessian(f)), at)
    for one in (jacrev, jacfwd):
        for two in (jacrev, jacfwd):
            same(two(one(f))(x), second, 1e-6)
            for three in (jacrev, jacfwd):
                same(three(two(one(f)))(x), third, 1e-5)
    same(grad(lambda x: grad(lambda x: grad(f)(x)[0])(x)[1])(x), third[0, 1], 1e-5)


def test_maps_of_derivatives_are_loops() -> None:
    xs, w = torch.randn(3, 4), torch.randn(4)
    transforms: list[Any] = [grad, jacrev, jacfwd, hessian, lambda g: jacrev(hessian(g))]
    for transform in transforms:
        d = transform(lambda x, w: f(x * w))
        same(vmap(d, (0, None))(xs, w), torch.stack([d(x, w) for x in xs]))
        by_weight = transform(lambda w, x: f(x * w))  # the weight is the same for all: each has a gradient of its own
        same(vmap(by_weight, (None, 0))(w, xs), torch.stack([by_weight(w, x) for x in xs]))
    both = vmap(vmap(grad(lambda x, y: f(x * y)), (None, 0)), (0, None))
    same(both(xs, xs), torch.stack([torch.stack([grad(lambda x, y: f(x * y))(x, y) for y in xs]) for x in xs]))


def test_derivatives_of_maps() -> None:
    xs = torch.randn(3, 4)
    same(grad(lambda xs: vmap(f)(xs).sum())(xs), vmap(grad(f))(xs))
    same(jacrev(vmap(f))(xs).diagonal(0, 0, 1).t(), vmap(grad(f))(xs))
    same(jacfwd(vmap(f))(xs).diagonal(0, 0, 1).t(), vmap(grad(f))(xs))
    _, tangent = jvp(vmap(f), (xs,), (torch.ones(3, 4),))
    same(tangent, vmap(grad(f))(xs).sum(1))
    _, back = vjp(vmap(f), xs)
    same(back(torch.tensor([1.0, 2.0, 3.0]))[0], vmap(grad(f))(xs) * torch.tensor([[1.0], [2.0], [3.0]]))


def test_forward_and_reverse_mode_through_each_other() -> None:
    x, v = torch.randn(4), torch.randn(4)
    product = hessian(f)(x) @ v
    same(jvp(grad(f), (x,), (v,))[1], product)
    same(grad(lambda x: jvp(f, (x,), (v,))[1])(x), product)
    same(vjp(grad(f), x)[1](v)[0], product)
    same(jvp(lambda x: jvp(f, (x,), (v,))[1], (x,), (v,))[1], v @ product)
    value, forward = linearize(grad(f), x)
    same(value, grad(f)(x))
    same(forward(v), product)
    same(vmap(forward)(torch.eye(4)), hessian(f)(x))


def test_arguments_aux_and_trees() -> None:
    x, y = torch.randn(3), torch.randn(3)
    g = grad(lambda x, y: (x * y**2).sum(), argnums=(1, 0))
    same(g(x, y)[0], 2 * x * y)
    same(g(x, y)[1], y**2)
    (by_tree, value) = grad_and_value(lambda p: (p["a"] * p["b"][0]).sum())({"a": x, "b": [y]})
    same(by_tree["a"], y)
    same(by_tree["b"][0], x)
    same(value, (x * y).sum())
    found, aux = grad(lambda x: ((x * x).sum(), {"kept": x + 1}), has_aux=True)(x)
    same(found, 2 * x)
    same(aux["kept"], x + 1)
    assert not aux["kept"].requires_grad
    j, aux = jacrev(lambda x: (x**2, x), has_aux=True)(x)
    same(j, torch.diag(2 * x))
    j, aux = jacfwd(lambda x: (x**2, x), has_aux=True)(x)
    same(aux, x)
    blocks = jacrev(lambda x, y: {"s": x * y, "t": x.sum()}, argnums=(0, 1))(x, y)
    same(blocks["s"][0], torch.diag(y))
    same(blocks["t"][1], torch.zeros(3))
    assert jacrev(torch.sin, chunk_size=2)(x).shape == (3, 3)
    same(jacrev(torch.sin, chunk_size=2)(x), torch.diag(x.cos()))
    for chunk_size in (None, 1, 2, 3, 4):
        filled = jacrev(torch.sin, chunk_size=chunk_size, _preallocate_and_copy=True)
        same(filled(x), torch.diag(x.cos()))
        same(torch.func.vmap(filled)(torch.stack([x, x + 1])), torch.stack([x.cos().diag(), (x + 1).cos().diag()]))
        same(jacrev(filled)(x), torch.diag_embed(torch.diag(-x.sin())))


def test_what_is_outside_is_differentiated_as_well() -> None:
    """A transform is an operator like others: its result depends on what requires grad."""
    w, x = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    found = grad(lambda y: (w * y**2).sum())(x)
    by_w, by_x = torch.autograd.grad(found.sum(), (w, x))
    same(by_w, 2 * x)
    same(by_x, 2 * w)
    plain = grad(lambda y: (y**2).sum())(torch.ones(3))
    assert not plain.requires_grad
    with torch.no_grad():
        assert not grad(lambda y: (w * y**2).sum())(x).requires_grad
        same(grad(lambda y: (y**2).sum())(x), 2 * x)
    same(grad(lambda y: (y**2 - (y**2).detach()).sum())(x), 2 * x)

    def with_constant(y: Any) -> Any:
        with torch.no_grad():
            constant = grad(lambda z: (z**4).sum() / 4)(y)
        return (y**3 - constant).sum()

    same(grad(with_constant)(x), 3 * x**2)


def test_modules_as_functions() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)).double()
    params = {k: v.detach() for k, v in model.named_parameters()}
    xs, ts = torch.randn(6, 4), torch.randn(6, 2)

    def loss(params: Any, x: Any, t: Any) -> Any:
        return ((functional_call(model, params, (x,)) - t) ** 2).sum()

    per_sample = vmap(grad(loss), (None, 0, 0))(params, xs, ts)
    for i in range(6):
        expected = torch.autograd.grad(loss(dict(model.named_parameters()), xs[i], ts[i]), list(model.parameters()))
        for (name, _), one in zip(model.named_parameters(), expected, strict=True):
            same(per_sample[name][i], one)
    models = [torch.nn.Linear(4, 2).double() for _ in range(3)]
    stacked, buffers = stack_module_state(models)
    outputs = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), (0, 0, None))(stacked, buffers, xs)
    same(outputs, torch.stack([m(xs) for m in models]))


def test_refusals() -> None:
    with pytest.raises(RuntimeError, match="a scalar Tensor, got tensor with 1 dims"):
        grad(torch.sin)(torch.ones(2))
    with pytest.raises(RuntimeError, match="only 1 positional inputs"):
        grad(f, argnums=1)(torch.ones(2))
    with pytest.raises(RuntimeError, match="tuple: \\(output, aux\\)"):
        grad(f, has_aux=True)(torch.ones(2))
    with pytest.raises(RuntimeError, match="same python structure"):
        jvp(f, (torch.ones(2),), (torch.ones(2), torch.ones(2)))
    with pytest.raises(RuntimeError, match="structure of cotangents"):
        vjp(torch.sin, torch.ones(2))[1]((torch.ones(2), torch.ones(2)))
    with pytest.raises(RuntimeError, match="independent of the inputs"):
        jvp(lambda x: torch.ones(2), (torch.ones(2),), (torch.ones(2),), strict=True)
    with pytest.raises(RuntimeError, match="floating point"):
        grad(lambda x: x.sum())(torch.ones(2, dtype=torch.int64))


def test_a_failed_transform_leaves_nothing_behind() -> None:
    from retrograd.core.state import local, process

    for transform in (grad, jacrev, jacfwd, hessian, vmap, lambda g: vmap(jacfwd(g))):
        with pytest.raises(ZeroDivisionError):
            transform(lambda x: x.sum() * (1 // 0))(torch.ones(2, 2))
    state = local.state
    assert state.batch_levels == () and state.func_depth == 0 and state.grad_enabled is True
    assert process.dual_levels == () and state.interceptor is None


@needs_torch
@pytest.mark.parity
def test_torch_composes_alike() -> None:
    import torch as theirs

    def programs(t: Any) -> list[Any]:
        F = t.func

        def g(x: Any, y: Any) -> Any:
            return (t.tanh(x @ y).sin() * x.sum(-1)).sum() + (y * y).prod()

        return [
            F.grad(g, (0, 1)), F.vmap(F.grad(g), (0, None)), F.vmap(F.grad(g, 1), (None, 0)), F.jacrev(g, (0, 1)),
            F.jacfwd(g, (0, 1)), F.hessian(g), F.vmap(F.hessian(g, 1), (None, 0)), F.jacrev(F.jacrev(F.jacfwd(g))),
            F.vmap(F.vmap(g, (0, None)), (None, 0)), F.jacrev(F.vmap(g, (0, None))),
            F.vmap(F.jacfwd(F.jacrev(g)), (0, None)),
            F.grad_and_value(lambda x, y: F.vmap(g, (0, None))(x, y).sum()),
        ]  # fmt: skip

    shapes = [((3,), (3,)), ((4, 3), (3,)), ((3,), (4, 3)), ((3,), (3,)), ((3,), (3,)), ((3,), (3,)), ((3,), (4, 3)),
              ((3,), (3,)), ((4, 3), (2, 3)), ((4, 3), (3,)), ((4, 3), (3,)), ((4, 3), (3,))]  # fmt: skip
    rng = np.random.default_rng(0)
    for mine, other, (a, b) in zip(programs(torch), programs(theirs), shapes, strict=True):
        x, y = rng.normal(size=a), rng.normal(size=b)
        got, expected = mine(torch.tensor(x), torch.tensor(y)), other(theirs.tensor(x), theirs.tensor(y))
        got, expected = (r if isinstance(r, tuple) else (r,) for r in (got, expected))
        for one, two in zip(got, expected, strict=True):
            same(one, two.numpy(), 1e-8)


def test_rearrange() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    same(torch.func.rearrange(x, "a b c -> c (a b)"), x.permute(2, 0, 1).reshape(4, 6))
    same(torch.func.rearrange(x, "a b (c d) -> a d b c 1", d=2), x.view(2, 3, 2, 2).permute(0, 3, 1, 2).unsqueeze(-1))
    same(torch.func.rearrange(x, "... c -> c ..."), x.permute(2, 0, 1))
    same(torch.func.rearrange(x, "a ... -> a (...)"), x.reshape(2, 12))
    same(torch.func.rearrange([x, x], "n ... -> ... n"), torch.stack([x, x], -1))
    for pattern in ("a b c", "a b -> b a", "a b c -> a b", "a (b c) d -> a b c d", "a b c -> (a b c", "a b c -> a b b"):
        with pytest.raises(ValueError, match="rearrange"):
            torch.func.rearrange(x, pattern)


# ----------------------------------------------------------------------------------------- captured and escaped tensors

CAPTURED = torch.zeros(3)


def _writes_global(x: Any) -> Any:
    CAPTURED.copy_(x)
    return (x * CAPTURED).sum()


def test_captured_tensors_are_not_written_to() -> None:
    x, captured, before = torch.randn(3), torch.zeros(3), torch.zeros(3)

    def through_closure(x: Any) -> Any:
        captured[1:] = x[1:]
        return (x * captured).sum()

    def through_another(x: Any) -> Any:
        return through_closure(x) * 2

    def through_default(x: Any, kept: Any = (captured,)) -> Any:
        return kept[0].add_(1) * x

    for function in (through_closure, through_another, through_default, _writes_global):
        for transform in (grad, lambda f: lambda x: vjp(f, x), jacrev, lambda f: lambda x: jvp(f, (x,), (x,))):
            with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
                transform(function)(x)
    same(captured, before)
    assert not captured.requires_grad and not CAPTURED.requires_grad


class _Holder:
    __slots__ = ("kept", "named")

    shared = torch.zeros(3)

    def __init__(self) -> None:
        self.kept = [torch.zeros(3)]
        self.named = {"deep": (torch.zeros(3),)}


class _Writing(torch.nn.Module):
    """Writes to a buffer, to a plain attribute, or to what it makes itself."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.register_buffer("buffer", torch.zeros(3))
        self.plain = torch.zeros(3)
        self.own = torch.zeros(3)
        self.log: list[Any] = []

    def forward(self, x: Any) -> Any:
        if self.how == "buffer":
            self.buffer.add_(x)
        elif self.how == "plain":
            self.plain[0] = x[0]
        elif self.how == "own":
            self.own = torch.zeros(3)
            self.own[0] = x[0]
        else:
            self.log.append(torch.zeros(3))
            self.log[-1].copy_(x)
        return (x * x).sum()


def _captures_through_objects(lib: Any) -> dict[str, Any]:
    """By name: functions that write to what they reach through an object, all of them refused."""
    holder = _Holder()
    module, other = _Writing("buffer"), _Writing("plain")

    def slot(x: Any) -> Any:
        holder.kept[0].copy_(x)
        return x.sum()

    def nested(x: Any) -> Any:
        holder.named["deep"][0][1:] = x[1:]
        return x.sum()

    def of_class(x: Any) -> Any:
        _Holder.shared.add_(1)
        return x.sum()

    def view(x: Any) -> Any:
        module.buffer[0].mul_(x[0])
        return x.sum()

    norm = torch.nn.BatchNorm1d(3)
    return {
        "slot": slot, "nested": nested, "of_class": of_class, "view": view, "module": module, "attribute": other,
        "method": module.forward, "called": lambda x: module(x) * 2,
        "batch_norm": lambda x: norm(x.expand(4, 3)).sum(),
    }  # fmt: skip


def test_what_is_reached_through_objects_is_captured() -> None:
    x = torch.randn(3)
    for name, function in _captures_through_objects(torch).items():
        for transform in (grad, lambda f: lambda x: vjp(f, x), jacrev, lambda f: lambda x: jvp(f, (x,), (x,))):
            with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
                transform(function)(x)
                raise AssertionError(name)
    same(_Holder.shared, torch.zeros(3))


def test_what_a_module_makes_itself_is_not_captured() -> None:
    x = torch.randn(3)
    for how in ("own", "log"):
        module = _Writing(how)
        same(grad(module)(x), 2 * x)
        same(jvp(module, (x,), (x,))[1], 2 * (x * x).sum())
        same(grad(lambda x, module=module: module(x))(x), 2 * x)


def test_what_functional_call_is_given_is_written_to() -> None:
    """As torch has it: buffers that are arguments, or are made inside, are the function's own; captured ones not."""
    norm, x = torch.nn.BatchNorm1d(3), torch.randn(4, 3)
    parameters, buffers = dict(norm.named_parameters()), {k: v.clone() for k, v in norm.named_buffers()}
    call = torch.func.functional_call

    def given(parameters: Any, buffers: Any) -> Any:
        return call(norm, (parameters, buffers), (x,)).square().sum()

    def made(parameters: Any) -> Any:
        return given(parameters, {k: v.clone() for k, v in buffers.items()})

    def captured(parameters: Any) -> Any:
        return given(parameters, buffers)

    found = grad(made)(parameters)
    assert buffers["num_batches_tracked"] == 0
    with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
        grad(captured)(parameters)
    assert buffers["num_batches_tracked"] == 0
    for one, two in zip(found.values(), grad(given)(parameters, buffers).values(), strict=True):
        same(one, two)
    assert buffers["num_batches_tracked"] == 1
    same(buffers["running_mean"], 0.1 * x.mean(0))


def test_a_deep_copy_of_what_is_differentiated_is_refused() -> None:
    """It would be a constant. What is captured is copied as ever."""
    x, w = torch.randn(3), torch.nn.Linear(3, 1)
    for transform in (grad, lambda f: lambda x: vjp(f, x), lambda f: lambda x: jvp(f, (x,), (x,))):
        with pytest.raises(NotImplementedError, match=r"Cannot access storage.*\[3\].*x.clone\(\)"):
            transform(lambda x: copy.deepcopy(x).sum())(x)
        transform(lambda x: (copy.deepcopy(w)(x)).sum())(x)


def test_data_of_what_is_differentiated_is_not_replaced() -> None:
    x, other = torch.randn(3), torch.zeros(3)

    def argument(x: Any) -> Any:
        x.data = torch.randn(3)
        return x.sum()

    def result(x: Any) -> Any:
        y = x * 2
        y.data = torch.randn(3)
        return y.sum()

    def outside(x: Any) -> Any:
        other.data = torch.ones(3)
        return (x * other).sum()

    for transform in (grad, lambda f: lambda x: vjp(f, x)):
        for f in (argument, result):
            with pytest.raises(RuntimeError, match=r"mutating directly with `\.data` inside functorch transform"):
                transform(f)(x)
        transform(outside)(x)
    with pytest.raises(RuntimeError, match=r"mutating directly with `\.data` inside functorch transform"):
        jvp(argument, (x,), (x,))


def test_own_tensors_and_arguments_are_written_to() -> None:
    x, y, kept = torch.randn(3), torch.zeros(3), None

    def f(x: Any, y: Any) -> Any:
        nonlocal kept
        kept = torch.zeros(3)
        kept[0] = x[0] ** 2  # made inside, although its name is not
        y.copy_(x)
        return y.prod() + kept.sum()

    product = x.prod() / x
    product[0] += 2 * x[0]
    same(grad(f)(x, y), product)
    same(y, x)
    assert not y.requires_grad
    y.zero_()
    for jacobian in (jacrev, jacfwd):
        y.zero_()
        same(jacobian(lambda x, y: y.copy_(x * 2))(x, y), 2 * torch.eye(3))
        same(y, 2 * x)
        assert not y.requires_grad

    def both(x: Any, y: Any, z: Any) -> Any:
        y[:2] = x[1:]
        z.add_(x)
        return y * z

    y, z = torch.zeros(3), torch.ones(3)
    found = jacfwd(both)(x, y, z)
    same(torch.stack([y, z]), torch.stack([torch.cat([x[1:], torch.zeros(1)]), x + 1]))
    same(found, jacrev(both)(x, torch.zeros(3), torch.ones(3)))
    with pytest.raises(RuntimeError, match="is not possible inplace"):
        jacfwd(lambda x, y: y.add_(1).mul_(x))(x, y)  # it was written to, and cannot be once more


def test_the_derivative_of_an_escaped_tensor_is_refused() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(x + 1)
        kept.append(x.sin())
        return kept[-1].sum()

    def again() -> None:
        grad(f)(torch.randn(2, 3))

    again()
    line = again.__code__.co_firstlineno + 1
    for tensor in kept:
        with pytest.raises(RuntimeError, match=rf"escaped.*\[2, 3\].*grad\(f\).*test_transforms.py:{line} in again"):
            tensor.sum().backward()
    _, back = vjp(f, torch.ones(3))
    same(back(torch.tensor(1.0))[0], torch.ones(3).cos())
    with pytest.raises(RuntimeError, match=r"escaped.*vjp\(f\)"):
        kept[-2].sum().backward()
    same(back(torch.tensor(1.0))[0], torch.ones(3).cos())
    # What a transform returns has not escaped: it has the history of what it was made of.
    w = torch.ones(3, requires_grad=True)
    (_, value) = grad_and_value(lambda x: (x * w).sum())(torch.full((3,), 2.0))
    value.backward()
    same(w.grad, torch.full((3,), 2.0))


def test_the_derivative_of_a_tensor_escaped_from_forward_mode_is_refused() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(x.sin())
        return kept[-1].sum()

    def again() -> None:
        jvp(f, (torch.ones(2, 3),), (torch.ones(2, 3),))

    again()
    line = again.__code__.co_firstlineno + 1
    same(kept[0], torch.ones(2, 3).sin())  # its values are there
    said = rf"escaped.*\[2, 3\].*jvp\(f\).*test_transforms.py:{line} in again"
    with pytest.raises(RuntimeError, match=said):
        forward_ad.unpack_dual(kept[0])
    x = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match=said):
        jvp(lambda x: (x, kept[0]), (x,), (x,))
    same(jvp(lambda x: x * kept[0], (x,), (x,))[1], kept[0])  # a constant to another transform
    for transform in (jacfwd, hessian):
        transform(f)(torch.ones(2))
        with pytest.raises(RuntimeError, match=r"escaped.*\[2\] is of the jacfwd of f.*test_transforms.py"):
            kept[-1].sin()
    torch.func.linearize(f, torch.ones(2))
    with pytest.raises(RuntimeError, match=r"escaped.*\[2\].*linearize\(f\).*test_transforms.py"):
        kept[-1].sum().backward()
    # Arguments that were written to, and what is returned, have not escaped.
    y = torch.zeros(2, 3)
    primal, tangent, aux = jvp(lambda x, y: (y.copy_(x), x * 2), (x, y), (x, y), has_aux=True)
    with forward_ad.dual_level():
        for one in (primal, tangent, aux, y):
            assert forward_ad.unpack_dual(one).tangent is None


def test_transforms_in_inference_mode_differentiate() -> None:
    x = torch.randn(3)
    with torch.inference_mode():
        same(grad(lambda x: (x**3).sum())(torch.ones(3)), torch.full((3,), 3.0))
        same(jacrev(grad(lambda x: (x**3).sum()))(x), torch.diag(6 * x))
        same(jvp(lambda x: x**2, (x,), (torch.ones(3),))[1], 2 * x)
        assert torch.is_inference_mode_enabled()


def test_hooks_and_functional_inside_of_transforms() -> None:
    """torch refuses both: its graph of a transform is another than that of the engine.  Here there is one."""
    x = torch.randn(4)
    packed = []

    def f(x: Any) -> Any:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t.clone(), lambda t: t):
            return (x.sin() * x).sum()

    same(grad(f)(x), x.cos() * x + x.sin())
    same(hessian(f)(x), torch.diag(2 * x.cos() - x * x.sin()))
    assert packed
    same(
        grad(lambda x: torch.autograd.functional.vjp(lambda y: (y**3).sum(), x, create_graph=True)[1].sum())(x), 6 * x
    )
    # What functional.* gives without a graph is a constant: refused, as in torch, rather than differentiated as one.
    functional = torch.autograd.functional
    for transform in (grad, lambda f: jacrev(f), lambda f: lambda x: vjp(f, x)):
        for call in (functional.jacobian, functional.hessian, lambda f, x: functional.vjp(f, x)[1]):
            with pytest.raises(RuntimeError, match=r"torch.autograd.functional.*create_graph=True"):
                transform(lambda x, call=call: call(lambda y: (y**3).sum(), x).sum())(x)
    for options in ({}, {"create_graph": True}):  # nor has it a tangent
        for call in (functional.jacobian, functional.hessian, lambda f, x, **o: functional.vjp(f, x, **o)[1]):
            with pytest.raises(RuntimeError, match=r"torch.autograd.functional.*is a constant.*functorch transforms"):
                jvp(lambda x, call=call, o=options: call(lambda y: (y**3).sum(), x, **o), (x,), (x,))
    inner = grad(lambda x: functional.vjp(lambda y: (y**3).sum(), x, create_graph=True)[1].sum())
    same(jvp(inner, (x,), (x,))[1], 6 * x)
    same(grad(lambda x: functional.jacobian(torch.sin, x, create_graph=True).sum())(x), -x.sin())
    same(grad(lambda x: (functional.jacobian(torch.sin, x.detach()) @ x).sum())(x), x.cos())
    checkpointed = grad(lambda x: torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False).sum())
    same(checkpointed(x), x.cos())
