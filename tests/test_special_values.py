"""Every operator at NaN, infinities, zeros and extreme numbers: as torch, or right for a reason that is written here.

`special_values.py` builds the inputs and compares.  An operator that differs from torch is in `MEANT` with the aspects
in which it does and the reason why ours is right; one that is there and no longer differs fails as well, and so does a
table that grows. test_special_value_reasons.py has a test for each reason.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import retrograd
from operator_runs import needs_torch
from samples import OPS, Op
from special_value_exceptions import MEANT, MOST, WHY
from special_values import differences, special_numbers, tangents_unlike_their_gradients

pytestmark = [pytest.mark.filterwarnings("ignore")]

HERE = [op for op in OPS if not op.missing_from(retrograd)]


@needs_torch
@pytest.mark.parity
@pytest.mark.parametrize("op", HERE, ids=lambda op: op.name)
def test_special_values(op: Op) -> None:
    found = differences(op)
    aspects, _ = MEANT.get(op.name, (set(), ""))
    new = {aspect: texts[:3] for aspect, texts in found.items() if aspect not in aspects}
    assert not new, f"{op.name} differs from torch: {new}"
    assert aspects <= found.keys(), f"{op.name} no longer differs in {aspects - found.keys()}: take it out of MEANT"


@needs_torch
@pytest.mark.parity
def test_exceptions_are_counted() -> None:
    names = {op.name for op in HERE}
    assert MEANT.keys() <= names, "not an operator of the samples"
    assert all(why in WHY for _, why in MEANT.values())
    assert set(WHY) == {why for _, why in MEANT.values()}, "a reason that nothing has"
    assert len(MEANT) <= MOST


#: Pointwise, and in other elements' rows of the Jacobian 0 * inf: the next test but one has them.
POINTWISE = {
    "atan2", "lerp", "nn.functional.prelu", "logit", "logit_, options",
}  # fmt: skip


@needs_torch
@pytest.mark.parity
@pytest.mark.parametrize(
    "op",
    [op for op in HERE if MEANT.get(op.name, "")[1:] == ("as the gradient",) and op.name not in POINTWISE],
    ids=lambda op: op.name,
)
def test_tangents_are_what_the_gradients_say(op: Op) -> None:
    """Where our tangent is not torch's, it is the sum of the slopes that torch's own backward pass gives."""
    assert not tangents_unlike_their_gradients(op)


@needs_torch
@pytest.mark.parity
@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda torch, x, y: torch.atan2(x, y), 2),
        (lambda torch, x, y, z: torch.lerp(x, y, z), 3),
        (lambda torch, x, y: torch.nn.functional.prelu(x[None], y)[0], 2),
        (lambda torch, x: torch.logit(x, 0.1), 1),
        (lambda torch, x: torch.logit(x), 1),
    ],
    ids=["atan2", "lerp", "prelu", "logit of eps", "logit"],
)
def test_tangents_are_what_the_gradients_say_pointwise(function: Any, count: int) -> None:
    import torch as oracle

    grid = np.meshgrid(*[special_numbers("float64")] * count)
    arrays = [a.ravel() for a in grid]
    directions = [np.random.default_rng(i).standard_normal(arrays[0].size) for i in range(count)]
    leaves = [oracle.from_numpy(a).requires_grad_() for a in arrays]
    slopes = oracle.autograd.grad(function(oracle, *leaves).sum(), leaves)
    with np.errstate(all="ignore"):
        expected = sum(slope.numpy() * d for slope, d in zip(slopes, directions, strict=True))
    forward = retrograd.autograd.forward_ad
    with forward.dual_level():
        duals = [forward.make_dual(*map(retrograd.from_numpy, pair)) for pair in zip(arrays, directions, strict=True)]
        found = forward.unpack_dual(function(retrograd, *duals)).tangent.numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-10)


# ---------------------------------------------------------------------------------------------- what was wrong before


def _grads(torch: Any, function: Any, *tensors: Any) -> list[list[Any]]:
    """The gradients by formulas over arrays, and by those over Tensors."""
    found = []
    for create_graph in (False, True):
        leaves = [t.detach().clone().requires_grad_() for t in tensors]
        out = function(*leaves)
        found.append([g.detach() for g in torch.autograd.grad(out.sum(), leaves, create_graph=create_graph)])
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "bfloat16", "float16"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_products_over_one_element_keep_nan(torch: Any, dtype: str, value: float) -> None:
    """ndarray.dot takes an operand of one element for a factor, and 0 times anything for 0."""
    d = getattr(torch, dtype)
    column, zero = torch.tensor([[value], [1.0]], dtype=d), torch.zeros(1, 1, dtype=d)
    for product in (
        torch.mm(column, zero)[:, 0],
        torch.mm(zero, column.t())[0],
        torch.mv(column, zero[0]),
        torch.matmul(column, zero[0]),
        column @ zero[:, 0],
        torch.addmm(torch.zeros(2, 1, dtype=d), column, zero)[:, 0],
        torch.addmv(torch.zeros(2, dtype=d), column, zero[0]),
        torch.bmm(column[None], zero[None])[0, :, 0],
        torch.nn.functional.linear(column, zero)[:, 0],
        torch.nn.functional.linear(zero, column)[0],
        torch.einsum("ij,jk->ik", column, zero)[:, 0],
        torch.einsum("ij,j->i", column, zero[0]),
        torch.tensordot(column, zero, 1)[:, 0],
        torch.outer(column[:, 0], zero[0])[:, 0],
    ):
        assert torch.isnan(product).tolist() == [True, False]
    assert torch.isnan(torch.dot(column[:1, 0], zero[0])).item()


def test_products_over_one_element_keep_nan_in_gradients(torch: Any) -> None:
    column, zero = torch.tensor([[math.nan], [1.0]]), torch.zeros(1, 1)
    for _, other in _grads(torch, torch.mm, column, zero):
        assert math.isnan(other.item())
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(zero, torch.zeros(1, 1))
        assert torch.isnan(forward.unpack_dual(torch.mm(column, dual)).tangent).tolist() == [[True], [False]]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "complex64"])
def test_nan_to_num(torch: Any, dtype: str) -> None:
    d = getattr(torch, dtype)
    x = torch.tensor([math.nan, math.inf, -math.inf, -0.0, 2.0], dtype=d)
    limits = torch.finfo(d)
    assert torch.nan_to_num(x).tolist() == [0.0, limits.max, limits.min, 0.0, 2.0]
    assert torch.nan_to_num(x, 1.0, 3.0, -3.0).tolist() == [1.0, 3.0, -3.0, 0.0, 2.0]


def test_zero_to_a_complex_power(torch: Any) -> None:
    """Constant for a positive real part: both namespaces say 0, and neither refuses to compare complex numbers."""
    exponent = torch.tensor([1.0, 0.5, 2.0], dtype=torch.complex128)
    for base in (0, 0.0, 0j):
        for (gradient,) in _grads(torch, lambda y, base=base: (base**y).abs(), exponent):
            assert gradient.tolist() == [0, 0, 0]
    zeros = torch.zeros(3, dtype=torch.complex128)
    for (gradient,) in _grads(torch, lambda y: (zeros**y).abs(), exponent):
        assert gradient.tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradient_of_sinc_near_zero(dtype: str) -> None:
    """-pi^2 x / 3 + pi^4 x^3 / 30, where torch's difference of equal numbers loses all digits, or is 0 / 0."""
    x = retrograd.tensor([1e-40, 1e-30, 1e-10, 1e-5, 1e-3, 0.0, -1e-5], dtype=getattr(retrograd, dtype))
    expected = [-(math.pi**2) * v / 3 + math.pi**4 * v**3 / 30 for v in x.tolist()]
    for (gradient,) in _grads(retrograd, retrograd.sinc, x):
        np.testing.assert_allclose(gradient.tolist(), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("operator", "value", "slope"),
    [
        (lambda x: x.mul_(3.0), lambda v: 3 * v, lambda v: 3),
        (lambda x: x.div_(retrograd.tensor([2.0, 3.0])), lambda v: v / [2.0, 3.0], lambda v: np.array([0.5, 1 / 3])),
        (lambda x: x.exp_(), np.exp, np.exp),
        (lambda x: x.sin_(), np.sin, np.cos),
        (lambda x: x.pow_(3), lambda v: v**3, lambda v: 3 * v**2),
        (lambda x: x.mul_(x), lambda v: v * v, lambda v: 2 * v),
        (lambda x: x.add_(1.0), lambda v: v + 1, lambda v: 1),
        (lambda x: x[:1].mul_(2.0)._base, lambda v: v * np.array([2.0, 1.0]), lambda v: np.array([2.0, 1.0])),
    ],
    ids=["mul_", "div_", "exp_", "sin_", "pow_", "mul_ by itself", "add_", "of a view"],
)
def test_in_place_where_the_tangent_is_the_tensor(operator: Any, value: Any, slope: Any) -> None:
    """`make_dual(x, x)`: primal and tangent are one memory.  torch leaves the tangent in both; ours come apart."""
    forward = retrograd.autograd.forward_ad
    start = np.array([0.5, 2.0])
    with forward.dual_level():
        x = retrograd.tensor(start.tolist(), dtype=retrograd.float64)
        dual = forward.make_dual(x, x)
        operator(dual)
        primal, tangent = forward.unpack_dual(dual)
        np.testing.assert_allclose(primal.tolist(), value(start), rtol=1e-12)
        np.testing.assert_allclose(tangent.tolist(), slope(start) * start, rtol=1e-12)


def test_singular_values_of_what_is_not_finite(torch: Any) -> None:
    """Those of a NaN are refused; those of an infinity are NaN, and no LAPACK looks for them, perhaps for ever."""
    undefined, infinite = (torch.tensor([[1.0, 2.0], [value, 3.0]]) for value in (math.nan, math.inf))
    for name in ("svd", "svdvals", "pinv", "matrix_rank"):
        with pytest.raises(RuntimeError, match="non-finite values"):
            getattr(torch.linalg, name)(undefined)
    assert torch.linalg.svd(infinite)[1].isnan().all() and torch.linalg.svdvals(infinite).isnan().all()
    assert torch.linalg.pinv(infinite).isnan().all() and torch.linalg.matrix_rank(infinite) == 0


def test_a_nan_in_a_matrix_spoils_its_inverse(torch: Any) -> None:
    matrix = torch.tensor([[1.0, 2.0, 0.0], [math.nan, 3.0, 1.0], [0.0, 1.0, 1.0]])
    assert torch.isnan(torch.linalg.inv(matrix)).all()
    assert torch.isnan(torch.linalg.det(matrix))
    assert torch.isnan(torch.linalg.solve(matrix, torch.ones(3))).all()
    with pytest.raises(RuntimeError, match="not positive-definite"):
        torch.linalg.cholesky(matrix)


SINGULAR = [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]]


@pytest.mark.parametrize("matrix", SINGULAR, ids=["of rank 1", "of rank 0"])
def test_derivatives_of_singular_matrices(matrix: Any) -> None:
    """slogdet and solve_ex do not refuse a singular matrix, nor do their derivatives: none of them is finite.

    torch has the same, but refuses where the gradient is recorded.
    """
    torch = retrograd
    forward = torch.autograd.forward_ad
    a = torch.tensor(matrix, dtype=torch.float64)
    b = torch.ones(2, 2, dtype=torch.float64)
    for function in (lambda x: torch.linalg.slogdet(x)[1], torch.logdet):
        for (gradient,) in _grads(torch, function, a):
            assert not torch.isfinite(gradient).any()
        with forward.dual_level():
            out = forward.unpack_dual(function(forward.make_dual(a, b)))
            assert out.primal.item() == -math.inf
            assert not torch.isfinite(out.tangent)
    for gradients in _grads(torch, lambda x, y: torch.linalg.solve_ex(x, y)[0], a, b):
        assert not any(torch.isfinite(g).any() for g in gradients)
    with pytest.raises(RuntimeError, match="singular"):
        torch.linalg.solve(a, b)


def test_a_singular_part_does_not_spoil_the_other(torch: Any) -> None:
    """diag(0, 3): the row that is 0 has an infinite solution, the other one is what it is."""
    a, b = torch.tensor([[0.0, 0.0], [0.0, 3.0]]), torch.tensor([[1.0], [6.0]])
    assert torch.linalg.solve_ex(a, b)[0].tolist() == [[math.inf], [2.0]]
    lu, pivots = torch.linalg.lu_factor_ex(a)[:2]
    assert torch.linalg.lu_solve(lu, pivots, b).tolist() == [[math.inf], [2.0]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("size", [1, 7, 70_000])
def test_sign_of_zero(torch: Any, dtype: str, size: int) -> None:
    """relu keeps -0., and a remainder of zero has the sign of the dividend (IEEE's fmod, which both are made of)."""
    d = getattr(torch, dtype)
    zeros, twos = torch.full((size,), -0.0, dtype=d), torch.full((size,), -2.0, dtype=d)
    assert torch.signbit(torch.relu(zeros)).all()
    assert torch.signbit(torch.relu_(zeros.clone())).all()
    for found in (zeros % 2, twos % 2, twos.clone().remainder_(2), torch.fmod(twos, 2)):
        assert (found == 0).all()
        assert torch.signbit(found).all()
    for found in (-zeros % -2, -twos % -2, torch.fmod(-twos, -2)):
        assert not torch.signbit(found).any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_scaled_sum_overflows_only_where_the_sum_does(torch: Any, dtype: str) -> None:
    d = getattr(torch, dtype)
    most = torch.finfo(d).max
    x = torch.tensor([most, -most, 1.0, math.inf], dtype=d)
    expected = [-most, most, -1.0, math.nan]
    for found in (
        torch.sub(x, x, alpha=2),
        torch.rsub(x, x, alpha=2),
        torch.add(x, x, alpha=-2),
        x.clone().sub_(x, alpha=2),
    ):
        np.testing.assert_array_equal(found.tolist(), expected)
    assert torch.add(x[:1], x[:1], alpha=2).item() == math.inf


def test_infinite_complex_numbers(torch: Any) -> None:
    """A number with an infinite part is infinite, whatever the other part is: its size is inf, its inverse 0."""
    x = torch.tensor([complex(math.inf, math.nan), complex(math.nan, -math.inf), complex(math.inf, 1)])
    for exponent in (-1.0, -2.0):
        assert (x ** torch.full((3,), exponent, dtype=x.dtype)).tolist() == [0, 0, 0]
    pair = torch.tensor([complex(math.inf, math.nan), 1 + 1j])
    assert torch.linalg.vector_norm(pair).item() == math.inf
    for (gradient,) in _grads(torch, torch.linalg.vector_norm, pair):
        assert gradient[1].item() == 0


def test_gradient_of_bicubic_weights_at_an_infinite_pixel(torch: Any) -> None:
    """A weight's slope is one number: times infinity it is infinite, not the difference of two infinities."""
    image = torch.zeros(1, 1, 4, 4, dtype=torch.float64)
    image[0, 0, 1, 1] = math.inf
    place = torch.tensor([[[[0.1, 0.2]]]], dtype=torch.float64)
    sample = torch.nn.functional.grid_sample
    for (gradient,) in _grads(torch, lambda p: sample(image, p, "bicubic", align_corners=False), place):
        assert torch.isinf(gradient).all()


def test_soft_margin_loss_overflows_only_where_the_loss_does(torch: Any) -> None:
    most = torch.finfo(torch.float64).max
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        x = forward.make_dual(torch.tensor([0.0], dtype=torch.float64), torch.tensor([1.5], dtype=torch.float64))
        loss = torch.nn.functional.soft_margin_loss(x, torch.tensor([most], dtype=torch.float64), reduction="sum")
        assert forward.unpack_dual(loss).tangent.item() == -0.75 * most


def test_numbers_that_do_not_fit_are_refused(torch: Any) -> None:
    x = torch.zeros(2, dtype=torch.uint8)
    for write in (lambda: x.__setitem__(0, 300), lambda: x.fill_(300), lambda: x.__setitem__(slice(None), 300)):
        with pytest.raises(RuntimeError, match="without overflow"):
            write()
    assert x.tolist() == [0, 0]


def test_a_query_without_keys_gives_zeros_whatever_it_is() -> None:
    """Scores of -inf, all of them: torch gives zeros too, and the gradient 0, but the tangent NaN."""
    query, key = (retrograd.tensor([[x]], dtype=retrograd.float64) for x in ([-math.inf, 0.0], [1.0, 1.0]))
    attention = retrograd.nn.functional.scaled_dot_product_attention
    for (gradient,) in _grads(retrograd, lambda q: attention(q, key, key), query):
        assert gradient.tolist() == [[[0.0, 0.0]]]
    forward = retrograd.autograd.forward_ad
    with forward.dual_level():
        out = attention(forward.make_dual(query, retrograd.ones_like(query)), key, key)
        assert forward.unpack_dual(out).tangent.tolist() == [[[0.0, 0.0]]]


_L = retrograd.linalg
_ONES, _EYE = retrograd.ones(3, 1, dtype=retrograd.float64), retrograd.eye(3, dtype=retrograd.float64)
BY_LAPACK: dict[str, Any] = {
    "lu": _L.lu,
    "lu_factor": _L.lu_factor,
    "qr": _L.qr,
    "geqrf": retrograd.geqrf,
    "ormqr": lambda a: retrograd.ormqr(a, _ONES[:, 0], _EYE),
    "householder_product": lambda a: _L.householder_product(a, _ONES[:, 0]),
    "eig": _L.eig,
    "eigvals": _L.eigvals,
    "eigh": _L.eigh,
    "eigvalsh": _L.eigvalsh,
    "lobpcg": lambda a: retrograd.lobpcg(a, 1),
    "lstsq": lambda a: _L.lstsq(a, _ONES)[0],
    "svd": _L.svd,
    "svdvals": _L.svdvals,
    "pinv": _L.pinv,
    "matrix_rank": _L.matrix_rank,
    "cond": _L.cond,
    "norm of order 2": lambda a: _L.matrix_norm(a, 2),
    "nuclear norm": lambda a: _L.matrix_norm(a, "nuc"),
    "cholesky": _L.cholesky,
    "cholesky_solve": lambda a: retrograd.cholesky_solve(_ONES, a),
    "cholesky_inverse": retrograd.cholesky_inverse,
    "ldl_factor": _L.ldl_factor,
    "solve_triangular": lambda a: _L.solve_triangular(a, _ONES, upper=False),
    "inv": _L.inv,
    "solve": lambda a: _L.solve(a, _ONES),
    "det": _L.det,
    "slogdet": _L.slogdet,
    "matrix_exp": retrograd.matrix_exp,
}
#: Right with an infinity: what is divided by an infinite pivot is 0, and no NaN is above a tolerance, in torch too.
FINITE = {"inv", "solve", "matrix_rank"}


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("name", BY_LAPACK)
def test_a_matrix_that_is_not_finite(name: str, value: float) -> None:
    """Refused, or not finite.  LAPACK does not promise it: torch's eigvals of a NaN, and lstsq of inf, are finite."""
    matrix = retrograd.tensor([[4.0, 1.0, 0.0], [1.0, 3.0, value], [0.0, value, 2.0]], dtype=retrograd.float64)
    if value == math.inf and name in FINITE:
        assert retrograd.isfinite(BY_LAPACK[name](matrix)).any()
        return
    try:
        found = BY_LAPACK[name](matrix)
    except RuntimeError as error:
        assert any(text in str(error) for text in ("converge", "infs or NaNs", "positive-definite"))
        return
    parts = [found] if isinstance(found, retrograd.Tensor) else found
    assert not all(retrograd.isfinite(part).all() for part in parts)


def test_attention_keeps_a_nan_among_the_keys(torch: Any) -> None:
    """The weights of a query are a softmax over all keys.  torch says so where it returns the weights; its fused
    kernel for when it does not loses the NaN."""
    inputs = torch.ones(2, 1, 2, dtype=torch.float64)
    weight = torch.ones(6, 2, dtype=torch.float64)
    weight[2, 0] = math.nan
    zeros, eye = torch.zeros(6, dtype=torch.float64), torch.eye(2, dtype=torch.float64)
    for need_weights in (True, False) if torch is retrograd else (True,):
        out, _ = torch.nn.functional.multi_head_attention_forward(
            inputs, inputs, inputs, 2, 1, weight, zeros, None, None, False, 0.0, eye, zeros[:2],
            need_weights=need_weights,
        )  # fmt: skip
        assert torch.isnan(out).all()


def test_lobpcg_leaves_an_eigenvector_that_is_not_the_one() -> None:
    """Started from the vector of 1, the smallest eigenvalue: its residual is 0 and torch stays there."""
    matrix = retrograd.diag(retrograd.tensor([1.0, 2.0, 3.0], dtype=retrograd.float64))
    start = retrograd.eye(3, 1, dtype=retrograd.float64)
    values, vectors = retrograd.lobpcg(matrix, X=start, largest=True)
    np.testing.assert_allclose(values.tolist(), [3.0])
    np.testing.assert_allclose((matrix @ vectors).tolist(), (3 * vectors).tolist(), atol=1e-10)


@pytest.mark.parametrize("name", ["chebyshev_polynomial_u", "laguerre_polynomial_l", "legendre_polynomial_p"])
def test_a_polynomial_of_no_degree(name: str) -> None:
    """NaN, where torch ends its loop at a NaN and returns what it has not computed."""
    x = retrograd.tensor([0.5, 2.0, math.nan])
    found = getattr(retrograd.special, name)(x, retrograd.tensor([math.nan, math.nan, 3.0]))
    assert retrograd.isnan(found).all()


@pytest.mark.parametrize("name", ["hardtanh", "relu6", "hardshrink", "softshrink"])
def test_the_slope_at_a_nan_is_that_of_the_nan_passed_on(torch: Any, name: str) -> None:
    """The result is the NaN itself: 1.  torch's plain loop says so; its vectorized one, for longer tensors, says 0."""
    for size in (1, 17) if torch is retrograd else (1,):
        for (gradient,) in _grads(torch, getattr(torch.nn.functional, name), torch.full((size,), math.nan)):
            assert gradient.tolist() == [1.0] * size


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["i1", "i1e"])
def test_slopes_of_bessel_functions_at_denormal_numbers(torch: Any, name: str, dtype: str) -> None:
    """A half at 0, and next to it: a quotient of denormal numbers has no digits left."""
    info = np.finfo(dtype)
    x = torch.tensor([3 * float(info.smallest_subnormal), -float(info.tiny), 1e-30, 0.0], dtype=getattr(torch, dtype))
    for (gradient,) in _grads(torch, getattr(torch.special, name), x):
        np.testing.assert_allclose(gradient.tolist(), [0.5] * 4, rtol=1e-6)
