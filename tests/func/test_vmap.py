"""vmap itself: dimensions, trees, chunks, levels, randomness, writes in place, refusals, custom functions."""

from __future__ import annotations

import gc
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd.func import chunk_vmap, debug_unwrap, grad, jacrev, vmap, vmap_fallback


def same(got: Any, expected: Any) -> None:
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), 1e-6, 1e-6)


def test_dimensions_and_trees() -> None:
    x, y = torch.randn(2, 3, 5), torch.randn(5, 2)
    same(vmap(lambda a, b: a.sum() * b, (2, 0), 1)(x, y), (x.sum((0, 1))[:, None] * y).t())
    out = vmap(lambda t: {"a": t[0] + t[1]["k"], "b": (t[0], 3)}, ((0, {"k": None}),), {"a": 0, "b": (1, None)})
    made = out((x, {"k": torch.ones(3, 5)}))
    same(made["a"], x + 1)
    same(made["b"][0], x.transpose(0, 1))
    assert made["b"][1] == 3
    same(vmap(lambda a: torch.ones(2))(x), torch.ones(2, 2))
    for chunk in (1, 2, 3):
        same(vmap(torch.sin, 1, 1, chunk_size=chunk)(x), x.sin())
        same(chunk_vmap(torch.sin, chunks=chunk)(x), x.sin())


@pytest.mark.parametrize(("call", "words"), [
    (lambda x: vmap(torch.mul)(x, torch.ones(5)), "same size in the mapped dimension"),
    (lambda x: vmap(torch.sin)(), "got no inputs"),
    (lambda x: vmap(torch.sin, None)(x), "expected `in_dims`"),
    (lambda x: vmap(torch.sin, (None,))(x), "at least one Tensor"),
    (lambda x: vmap(torch.sin, 2)(x), "dimensionality 2"),
    (lambda x: vmap(torch.sum)(x, 0), "in_dim=0 for an input but the input is of type"),
    (lambda x: vmap(lambda a: 3.0)(x), "must only return Tensors, got type"),
    (lambda x: vmap(lambda a: a, out_dims=(0, 0))(x), "not compatible"),
    (lambda x: vmap(lambda a: a, out_dims=None)(x), "can not return a BatchedTensor"),
    (lambda x: vmap(torch.sin, chunk_size=0)(x), "chunk_size"),
])  # fmt: skip
def test_wrong_calls(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call(torch.ones(2, 3))


def test_values_of_examples_cannot_be_asked_for_and_the_line_is_named() -> None:
    x = torch.randn(3)
    for ask in (bool, float, int, lambda a: a.item(), lambda a: a.tolist(), lambda a: [0, 1][a], lambda a: a.numpy()):
        with pytest.raises(RuntimeError, match=r"vmap: It looks like you're .*test_vmap.py:\d+"):
            vmap(lambda a, ask=ask: ask(a) and a)(x)
    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        vmap(lambda a: a if a > 0 else -a)(x)
    with pytest.raises(RuntimeError, match="called inside a functorch transform"):
        vmap(lambda a: a.backward())(x)


def test_escaped_tensors_are_named() -> None:
    kept = []
    vmap(lambda a: kept.append(a * 2) or a)(torch.randn(3, 2))
    said = r"sin\(\): your tensor may have escaped .*\[2\] is of the vmap of <lambda> at level 1, called at \S*:66 in"
    with pytest.raises(RuntimeError, match=said):
        kept[0].sin()
    with pytest.raises(RuntimeError, match="escaped"):
        vmap(lambda a: kept[0])(torch.randn(3))


def test_writes_in_place() -> None:
    x = torch.zeros(3, 2)
    assert vmap(lambda a: a.add_(1))(x) is x
    same(x, torch.ones(3, 2))

    def write(a: Any) -> Any:
        own = torch.zeros_like(a)
        own[1] = a[0]
        own[:1] += 5
        return own.unsqueeze_(0)

    same(vmap(write)(x), torch.tensor([[[5.0, 1.0]]]).expand(3, 1, 2))
    shared = torch.zeros(2)
    for attempt in (lambda a: shared.add_(a), lambda a: shared.copy_(a), lambda a: shared.__setitem__(0, a[0])):
        with pytest.raises(RuntimeError, match="is not possible inplace because there exists a Tensor `other`"):
            vmap(attempt)(x)
    same(shared, torch.zeros(2))  # a refused write has written nothing
    with pytest.raises(RuntimeError, match="doesn't work on out="):
        vmap(lambda a: torch.abs(a, out=torch.empty(2)))(x)
    leaf = torch.ones(3, requires_grad=True)
    vmap(lambda a: (a.clone().mul_(a) * 3))(leaf).sum().backward()
    same(leaf.grad, torch.full((3,), 6.0))


def test_random_numbers() -> None:
    x = torch.zeros(4, 3)
    draws = [lambda a: torch.rand(3), lambda a: a.clone().normal_(), torch.rand_like,
             lambda a: torch.nn.functional.dropout(a + 1), lambda a: torch.randperm(5)]  # fmt: skip
    for draw in draws:
        with pytest.raises(RuntimeError, match="randomness error mode"):
            vmap(draw)(x)
        rows = vmap(draw, randomness="same")(x)
        assert bool((rows == rows[0]).all())
        torch.manual_seed(5)
        rows = vmap(draw, randomness="different")(x)
        assert not bool((rows == rows[0]).all())
    torch.manual_seed(3)
    got = vmap(lambda a: torch.randn(2), randomness="different")(x)
    torch.manual_seed(3)
    same(got, torch.randn(4, 2))
    outer = vmap(lambda a: vmap(lambda b: torch.rand(2), randomness="same")(a), randomness="different")(x)
    assert bool((outer == outer[:, :1]).all()) and not bool((outer == outer[:1]).all())


def test_operators_without_a_rule_run_in_a_loop_and_say_so() -> None:
    x = torch.tensor([[0.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
    with pytest.warns(UserWarning, match="batching rule for aten::histc: it runs once for each of 2 examples"):
        counts = vmap(lambda a: torch.histc(a, 3, 0, 2))(x)
    same(counts, torch.tensor([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]]))
    with vmap_fallback("quiet"), warnings.catch_warnings():
        warnings.simplefilter("error")
        vmap(torch.histc)(x)
    with vmap_fallback("error"), pytest.raises(RuntimeError, match="no batching rule for aten::histc"):
        vmap(torch.histc)(x)
    with pytest.raises(RuntimeError, match="dims of size 0"):
        vmap(torch.histc)(torch.zeros(0, 3))
    with pytest.raises(RuntimeError, match="data-dependent output shape"):
        vmap(torch.nonzero)(x)


def test_promotion_is_that_of_an_example() -> None:
    """A number of an example gives way to a tensor with dimensions, although both have one dimension more here."""
    numbers, rows = torch.ones(3, dtype=torch.float64), torch.ones(3, 2)
    assert vmap(torch.mul)(rows, numbers).dtype == torch.float32
    assert vmap(torch.mul, (0, None))(torch.ones(3), torch.ones((), dtype=torch.float64)).dtype == torch.float64


def test_levels_end_and_nothing_is_kept() -> None:
    x = torch.randn(3, 2)
    seen = []

    def inner(a: Any) -> Any:
        seen.append(weakref.ref(debug_unwrap(a * 2)))
        return a * 2

    result = vmap(lambda a: vmap(inner)(a))(x)
    del result
    gc.collect()
    assert seen[0]() is None


def test_gradients_of_a_batch_are_one_pass() -> None:
    x = torch.randn(4, requires_grad=True)
    calls = []
    y = x.sin()
    y.register_hook(lambda g: calls.append(g.shape))
    (rows,) = torch.autograd.grad(y * 2, x, torch.eye(4), is_grads_batched=True)
    same(rows, torch.diag(2 * x.cos()))
    assert calls == [(4,)]
    z = x * 1
    z[1:].mul_(3)  # the history of a view
    expected = torch.diag(torch.tensor([1.0, 3.0, 3.0, 3.0]))
    same(torch.autograd.grad(z, x, torch.eye(4), is_grads_batched=True)[0], expected)


class Cube(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, k: Any) -> Any:
        return x**3 * k

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, k = ctx.saved_tensors
        return 3 * x**2 * k * g, x**3 * g

    @staticmethod
    def jvp(ctx: Any, tx: Any, tk: Any) -> Any:
        x, k = ctx.saved_tensors
        return 3 * x**2 * k * (0 if tx is None else tx) + x**3 * (0 if tk is None else tk)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(x: Any, k: Any) -> Any:
        return x * k

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.k, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, k: Any) -> Any:
        assert info.batch_size == 3 and info.randomness == "error" and in_dims == (1, None)
        return Scaled.apply(x, k), 1


def test_custom_functions() -> None:
    x, k = torch.randn(3, 2), torch.randn(2)
    same(vmap(Cube.apply, (0, None))(x, k), x**3 * k)
    same(vmap(vmap(Cube.apply), (0, None))(x, k), x**3 * k)
    for argnum, expected in ((0, 3 * x**2 * k), (1, x**3)):
        same(vmap(grad(lambda x, k: Cube.apply(x, k).sum(), argnum), (0, None))(x, k), expected)
    same(grad(lambda k: vmap(Cube.apply, (0, None))(x, k).sum())(k), (x**3).sum(0))
    for jacobian in (jacrev, torch.func.jacfwd):
        same(vmap(jacobian(lambda x: Cube.apply(x, k)))(x), torch.diag_embed(3 * x**2 * k))
    same(torch.func.hessian(lambda x: Cube.apply(x, k).sum())(x[0]), torch.diag(6 * x[0] * k))
    same(vmap(Scaled.apply, (1, None), 1)(x.t().contiguous(), 2.0), x.t() * 2)

    class Without(Scaled):
        vmap = torch.autograd.Function.vmap

    class Both(Scaled):
        generate_vmap_rule = True

    class Old(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

    for cls, words in ((Without, "does not have vmap support"), (Both, "both generate_vmap_rule")):
        with pytest.raises(RuntimeError, match=words):
            vmap(lambda x, cls=cls: cls.apply(x, 2.0))(x)
    for transform in (vmap, lambda g: grad(lambda x: g(x).sum()), jacrev):
        with pytest.raises(RuntimeError, match=r"autograd\.Function with functorch transforms .* setup_context"):
            transform(Old.apply)(x)


@pytest.mark.parametrize("name", ["alpha_dropout", "feature_alpha_dropout", "dropout", "dropout2d"])
def test_dropouts_under_vmap_have_one_mask_or_each_its_own(name):
    dropout = getattr(torch.nn.functional, name)
    x = torch.ones(3, 2, 4, 5, 5)
    same = vmap(lambda one: dropout(one, 0.5, training=True), randomness="same")(x)
    assert (same == same[0]).all()
    different = vmap(lambda one: dropout(one, 0.5, training=True), randomness="different")(x)
    assert not (different == different[0]).all()


def test_views_by_strides_stay_within_an_example() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    same(vmap(lambda a: a.as_strided((2, 2), (2, 1)))(x), x.reshape(3, 2, 2))
    same(vmap(lambda a: a.as_strided((2,), (1,), 2))(x), x[:, 2:])
    assert vmap(lambda a: a.as_strided((0,), (1,), 9))(x).shape == (3, 0)
    for call in (
        lambda a: a.as_strided((5,), (1,), 0),
        lambda a: a.as_strided((4,), (1,), 1),
        lambda a: a[1:].as_strided((2,), (1,), 0),
    ):
        with pytest.raises(RuntimeError, match=r"can access memory outside of `tensor`.*not supported inside of vmap"):
            vmap(call)(x)


def test_what_torch_refuses_of_an_example() -> None:
    with pytest.raises(RuntimeError, match="only supported with memory_format"):
        vmap(lambda a: a.clone(memory_format=torch.channels_last))(torch.ones(2, 1, 2, 3, 4))
    with pytest.raises(RuntimeError, match=r"range of \[-1, 0\], but got 1"):
        vmap(lambda a: torch.squeeze(a, dim=1))(torch.ones(3))
    with pytest.raises(IndexError, match=r"range of \[-1, 0\], but got 1"):
        vmap(lambda a: torch.squeeze(a, dim=1))(torch.ones(3, 2))


# ------------------------------------------------------------------------------------------------------- nested tensors


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_nested_tensors_are_mapped_example_by_example(torch, layout):
    parts = [torch.arange(6.0).reshape(2, 3), torch.ones(4, 3)]
    nt = torch.nested.nested_tensor(parts, layout=getattr(torch, layout))
    y, w = torch.tensor([2.0, 3.0]), torch.ones(3, 2)

    def same(found, expected):
        assert found.is_nested
        assert [part.tolist() for part in found.unbind()] == [one.tolist() for one in expected]

    def f(x):
        assert not x.is_nested
        return x.sin() * 5.0 + 4.0

    same(torch.vmap(f)(nt), [f(x) for x in parts])
    same(torch.vmap(lambda x, y: x * y)(nt, y), [x * s for x, s in zip(parts, y, strict=True)])
    same(torch.vmap(lambda x, w: x @ w, in_dims=(0, None))(nt, w), [x @ w for x in parts])
    first, second = torch.vmap(lambda x: (x * 2, torch.ones(2)))(nt)
    same(first, [x * 2 for x in parts])
    assert second.tolist() == [[1.0, 1.0]] * 2


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_are_mapped_along_their_examples_alone(torch):
    nt = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    for options in ({"in_dims": 2}, {"out_dims": 2}):
        with pytest.raises(RuntimeError, match="Nested tensors can only be vmapped over dim=0"):
            torch.vmap(lambda x: x * 2, **options)(nt)


def test_of_retrograd_results_that_only_some_examples_have():
    import retrograd as torch

    nt = torch.nested.nested_tensor([torch.ones(3), torch.ones(2)])
    found = torch.vmap(lambda x: x * 2 if x.shape[0] > 2 else torch.zeros(1))(nt)
    assert [part.tolist() for part in found.unbind()] == [[2.0, 2.0, 2.0], [0.0]]
    with pytest.raises(RuntimeError, match="a nested tensor without examples"):
        torch.vmap(lambda x: x * 2)(torch.nested.nested_tensor([]))


def test_of_retrograd_gradients_through_mapped_nested_tensors():
    import retrograd as torch

    nt = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged, requires_grad=True)
    torch.vmap(lambda x, y: x * y)(nt, torch.tensor([2.0, 3.0])).values().sum().backward()
    assert [part.unique().tolist() for part in nt.grad.unbind()] == [[2.0], [3.0]]
    with pytest.raises(RuntimeError, match="randomness error mode"):
        torch.vmap(lambda x: x * torch.rand(1))(nt)
