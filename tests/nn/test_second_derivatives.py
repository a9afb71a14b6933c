"""The gradient of a function that is made of straight pieces has a derivative: 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from operator_runs import flat, is_tensor
from special_values import Outcome, attempt

PIECES: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("relu", lambda F, x: F.relu(x)),
    ("leaky_relu", lambda F, x: F.leaky_relu(x, 0.2)),
    ("leaky_relu_", lambda F, x: F.leaky_relu(x * 1, 0.2, inplace=True)),
    ("hardtanh", lambda F, x: F.hardtanh(x)),
    ("relu6", lambda F, x: F.relu6(x)),
    ("hardshrink", lambda F, x: F.hardshrink(x)),
    ("softshrink", lambda F, x: F.softshrink(x)),
    ("prelu", lambda F, x: F.prelu(x, x.detach().reshape(-1)[:1])),
    ("prelu's slope", lambda F, x: F.prelu(x.detach(), x.reshape(-1)[:1])),
    ("rrelu", lambda F, x: F.rrelu(x)),
    ("rrelu, training", lambda F, x: F.rrelu(x, training=True)),
    ("rrelu_, training", lambda F, x: F.rrelu(x * 1, training=True, inplace=True)),
    ("max_pool1d", lambda F, x: F.max_pool1d(x[0], 2)),
    ("max_pool2d", lambda F, x: F.max_pool2d(x, 2)),
    ("max_pool3d", lambda F, x: F.max_pool3d(x, 2)),
    ("avg_pool1d", lambda F, x: F.avg_pool1d(x[0], 2)),
    ("avg_pool2d", lambda F, x: F.avg_pool2d(x, 2)),
    ("avg_pool3d", lambda F, x: F.avg_pool3d(x, 2)),
    ("adaptive_avg_pool2d", lambda F, x: F.adaptive_avg_pool2d(x, 2)),
    ("pad, reflected", lambda F, x: F.pad(x, (1, 1, 1, 1), mode="reflect")),
    ("pad, replicated", lambda F, x: F.pad(x, (1, 1, 1, 1), mode="replicate")),
    ("adaptive_max_pool1d", lambda F, x: F.adaptive_max_pool1d(x[0], 2)),
    ("adaptive_max_pool2d", lambda F, x: F.adaptive_max_pool2d(x, 2)),
    ("fractional_max_pool2d", lambda F, x: F.fractional_max_pool2d(x, 2, 2)),
    ("nll_loss", lambda F, x: F.nll_loss(x, (x.detach().sum(1) * 0).long())),
]


@pytest.mark.parametrize("function", [f for _, f in PIECES], ids=[name for name, _ in PIECES])
def test_the_second_derivative_is_zero(torch: Any, function: Callable[[Any, Any], Any]) -> None:
    x = torch.linspace(-2, 2, 64, dtype=torch.float64).reshape(2, 2, 4, 4).requires_grad_()
    result = function(torch.nn.functional, x)
    (first,) = torch.autograd.grad(result.sum(), x, create_graph=True)
    assert first.requires_grad and first.abs().sum() > 0
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.shape == x.shape and not second.any()


@pytest.mark.parametrize("name", ["hardsigmoid", "multi_margin_loss", "multilabel_margin_loss", "grid_sample"])
def test_where_torch_has_no_second_derivative(name: str) -> None:
    """They are of the same kind."""
    import retrograd as torch

    F = torch.nn.functional
    calls: dict[str, Callable[[Any], Any]] = {
        "hardsigmoid": F.hardsigmoid,
        "multi_margin_loss": lambda x: F.multi_margin_loss(x, torch.tensor([0, 1, 2])),
        "multilabel_margin_loss": lambda x: F.multilabel_margin_loss(x, torch.tensor([[0, -1, -1]] * 3)),
        "grid_sample": lambda x: F.grid_sample(x[None, None], torch.zeros(1, 2, 2, 2), "nearest", align_corners=False),
    }
    x = torch.linspace(-4, 4, 9).reshape(3, 3).requires_grad_()
    (first,) = torch.autograd.grad(calls[name](x).sum(), x, create_graph=True)
    assert first.abs().sum() > 0
    assert torch.autograd.grad(first.sum(), x)[0].tolist() == [[0] * 3] * 3


def test_of_prelu_in_both(torch: Any) -> None:
    """The slope times what is below 0: that varies with both."""
    x = torch.tensor([[-2.0, 3.0], [5.0, -7.0]], dtype=torch.float64, requires_grad=True)
    slope = torch.tensor([0.5, 0.25], dtype=torch.float64, requires_grad=True)
    given = torch.tensor([[1.0, 10.0], [100.0, 1000.0]], dtype=torch.float64, requires_grad=True)
    result = torch.nn.functional.prelu(x, slope)
    assert result.grad_fn.name() == "PreluKernelBackward0"
    of_x, of_slope = torch.autograd.grad(result, (x, slope), given, create_graph=True)
    assert of_x.tolist() == [[0.5, 10], [100, 250]] and of_slope.tolist() == [-2, -7000]
    found = torch.autograd.grad(of_x.sum(), (x, slope, given), retain_graph=True)
    assert [t.tolist() for t in found] == [[[0, 0], [0, 0]], [1, 1000], [[0.5, 1], [1, 0.25]]]
    found = torch.autograd.grad(of_slope.sum(), (x, slope, given))
    assert [t.tolist() for t in found] == [[[1, 0], [0, 1000]], [0, 0], [[-2, 0], [0, -7]]]
    assert torch.autograd.gradcheck(torch.nn.functional.prelu, (x, slope))
    assert torch.autograd.gradgradcheck(torch.nn.functional.prelu, (x, slope))


@pytest.mark.parametrize("name", ["hardshrink", "softshrink"])
def test_of_what_is_shrunk(torch: Any, name: str) -> None:
    """At both ends of the middle piece the derivative is that of the middle; NaN and inf are beyond it."""
    x = torch.tensor([-1.0, -0.5, 0.0, 0.5, 1.0, float("inf"), float("nan")], requires_grad=True)
    result = getattr(torch.nn.functional, name)(x)
    assert result.grad_fn.name() == f"{name.capitalize()}Backward0" and len(result.grad_fn.next_functions) == 1
    result.backward(torch.full((7,), float("inf")))
    assert x.grad.tolist() == [float("inf"), 0, 0, 0, *[float("inf")] * 3]
    assert result[:6].tolist() == ([-1, 0, 0, 0, 1] if name == "hardshrink" else [-0.5, 0, 0, 0, 0.5]) + [float("inf")]
    assert result[6].isnan()


#: Operators of which torch's first derivative has no graph for some sample, and ours has: their formulas read the input
#: where torch has a short cut (one factor, one element); or the reverse, of nothing.
OTHERWISE = {"linalg.det", "linalg.vander", "det", "linalg.householder_product, empty"}
#: The samples of sparse tensors have their values as leaves. Where torch's gradient of those depends on something, it
#: has no graph nevertheless, and that part of a second derivative is missing; ours is held against differences below.
SPARSE = {
    "sparse mm", "sparse mm, uncoalesced", "sparse mm, plain first", "sparse mm, both", "spmm", "sparse addmm",
    "sparse addmm, uncoalesced", "sparse matmul", "sparse matmul, uncoalesced", "sparse softmax",
    "sparse softmax, uncoalesced", "sparse softmax over the first", "sparse softmax over the first, uncoalesced",
    "sparse log_softmax", "sparse log_softmax, uncoalesced", "sparse mul", "sparse mul, uncoalesced",
}  # fmt: skip


@pytest.mark.parity
def test_gradients_have_a_graph_where_torchs_have() -> None:
    """Whether a gradient that was recorded requires grad, of the first samples of all operators."""
    torch = pytest.importorskip("torch")
    import retrograd
    from samples import OPS

    different, lacking = set(), set()
    for op in OPS:
        if op.missing_from(retrograd) or not op.differentiable or not op.torch_gradient:
            continue
        for sample in op.samples[:4]:
            found = [attempt(_graphs, module, op, sample) for module in (retrograd, torch)]
            if not any(isinstance(one, Exception) for one in found) and found[0] != found[1]:
                different.add(op.name)
                if any(theirs and not mine for mine, theirs in zip(*found, strict=True)):
                    lacking.add(op.name)
    assert different == OTHERWISE | SPARSE
    assert not lacking & SPARSE


def test_second_derivatives_of_the_values_of_sparse_tensors() -> None:
    """Ours alone: torch's gradients of the values have no graph."""
    import retrograd

    values = retrograd.tensor([1.0, -2.0, 3.0], dtype=retrograd.float64, requires_grad=True)
    plain = retrograd.tensor([[1.0, 2.0], [3.0, -4.0]], dtype=retrograd.float64, requires_grad=True)

    def sparse(v: Any) -> Any:
        return retrograd.sparse_coo_tensor([[0, 1, 1], [0, 0, 1]], v, (2, 2))

    functions = {
        "mm": lambda v, p: retrograd.sparse.mm(sparse(v), p),
        "mm of both": lambda v, p: retrograd.sparse.mm(sparse(v), sparse(v * v)).to_dense() * p,
        "addmm": lambda v, p: retrograd.sparse.addmm(p, sparse(v), p),
        "mul": lambda v, p: (sparse(v) * sparse(v * v)).to_dense() * p,
        "softmax": lambda v, p: retrograd.sparse.softmax(sparse(v), 1).to_dense() * p,
        "log_softmax": lambda v, p: retrograd.sparse.log_softmax(sparse(v), 0).to_dense() * p,
    }
    for name, function in functions.items():
        (grad,) = retrograd.autograd.grad(function(values, plain).sum(), values, create_graph=True)
        assert grad.requires_grad, name
        assert retrograd.autograd.gradgradcheck(function, (values, plain)), name


def _graphs(module: Any, op: Any, sample: Any) -> list[bool | None]:
    (args, kwargs), leaves = Outcome(module, op, sample, sample.arrays(), None).build(True)
    roots = [out for out in flat(op.call(module, args, kwargs)) if is_tensor(out) and out.requires_grad]
    if not roots or not leaves:
        return []
    ones = [module.ones_like(root) for root in roots]
    grads = module.autograd.grad(roots, leaves, ones, create_graph=True, allow_unused=True)
    return [None if g is None else g.requires_grad for g in grads]
