"""``torch.linalg`` beyond its samples: errors, infos, the phases that a loss must not see, node names, ``out=``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as torch

try:
    import torch as theirs
except ImportError:
    theirs = None  # type: ignore[assignment]

needs_torch = pytest.mark.skipif(theirs is None, reason="torch is not installed")
L = torch.linalg


def matrix(*shape: int, complex: bool = False, seed: int = 0, requires_grad: bool = True) -> Any:
    rng = np.random.default_rng(seed)
    array = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if complex else 0)
    return torch.from_numpy(array).requires_grad_(requires_grad)


# --------------------------------------------------------------------------------------------------------------- errors


def test_linalg_error_is_torchs_class() -> None:
    assert issubclass(L.LinAlgError, RuntimeError)
    assert torch._C._LinAlgError is L.LinAlgError
    assert L.LinAlgError.__name__ == "_LinAlgError"


SINGULAR = [[1.0, 2.0], [2.0, 4.0]]


@pytest.mark.parametrize(
    ("function", "values", "text"),
    [
        ("inv", SINGULAR, "linalg.inv: The diagonal element 2 is zero, the inversion could not be completed because "),
        ("cholesky", [[1.0, 0.0], [0.0, -1.0]], "(the leading minor of order 2 is not positive-definite)."),
        ("svd", [[np.nan, 0.0], [0.0, 1.0]], "The algorithm failed to converge because the input matrix contained non"),
    ],
)
def test_failures_of_lapack_are_linalg_errors(function: str, values: Any, text: str) -> None:
    with pytest.raises(L.LinAlgError) as caught:
        getattr(L, function)(torch.tensor(values))
    assert text in str(caught.value)


def test_the_failing_matrix_of_a_batch_is_named() -> None:
    batch = torch.stack([torch.eye(2), torch.tensor(SINGULAR)])
    with pytest.raises(L.LinAlgError, match=r"linalg.inv: \(Batch element 1\): The diagonal element 2 is zero"):
        L.inv(batch)
    with pytest.raises(L.LinAlgError, match=r"torch.linalg.solve: \(Batch element 1\): The solver failed"):
        L.solve(batch, torch.ones(2, 2))


def test_infos_in_place_of_errors() -> None:
    batch = torch.stack([torch.eye(2), torch.tensor(SINGULAR)])
    inverse, info = L.inv_ex(batch)
    assert info.tolist() == [0, 2]
    assert info.dtype == torch.int32
    assert torch.equal(inverse[0], torch.eye(2))
    assert L.cholesky_ex(batch - 3 * torch.eye(2)).info.tolist() == [1, 1]
    assert L.lu_factor_ex(batch).info.tolist() == [0, 2]
    assert L.solve_ex(batch, torch.ones(2, 2)).info.tolist() == [0, 2]
    with pytest.raises(L.LinAlgError):
        L.inv_ex(batch, check_errors=True)


@needs_torch
@pytest.mark.parity
@pytest.mark.parametrize("kind", ["vector", "not square", "integers", "half"])
@pytest.mark.parametrize(
    "function",
    ["inv", "det", "slogdet", "cholesky", "qr", "svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals", "pinv",
     "matrix_exp", "lu", "lu_factor", "cond", "inv_ex", "cholesky_ex", "matrix_rank", "matrix_norm"],
)  # fmt: skip
def test_refusals_are_torchs(function: str, kind: str) -> None:
    arrays = {
        "vector": np.ones(3),
        "not square": np.arange(6.0).reshape(2, 3) ** 2,
        "integers": np.eye(2, dtype=np.int64),
        "half": np.eye(2, dtype=np.float16),
    }
    outcomes = []
    for module in (torch, theirs):
        try:
            getattr(module.linalg, function)(module.from_numpy(arrays[kind].copy()))
        except Exception as error:
            outcomes.append((type(error).__name__, str(error).split("\n")[0]))
        else:
            outcomes.append(("fine", ""))
    assert outcomes[0] == outcomes[1]


# ---------------------------------------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (lambda x: L.svd(x)[0].sum().abs(), "svd_backward: The singular vectors in the complex case are specified up"),
        (lambda x: L.svd(x)[2].sum().real, "depends on this phase term, making it ill-defined."),
        (lambda x: L.eigh(x + x.mH)[1].sum().real, "linalg_eigh_backward: The eigenvectors in the complex case are"),
        (lambda x: L.eig(x)[1].sum().real, "linalg_eig_backward: The eigenvectors in the complex case are specified"),
    ],
)
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_loss_that_sees_the_phase_is_refused(loss: Any, text: str, create_graph: bool) -> None:
    x = matrix(3, 3, complex=True)
    with pytest.raises(RuntimeError) as caught:
        loss(x).backward(create_graph=create_graph)
    assert text in str(caught.value)


def test_eigenvectors_of_a_real_matrix_are_checked_too() -> None:
    x = torch.tensor([[0.0, 1.0], [-2.0, 0.5]], dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="linalg_eig_backward"):
        L.eig(x)[1].sum().imag.backward()


def test_qr_that_has_no_derivative() -> None:
    x = matrix(4, 3)
    with pytest.raises(RuntimeError, match=r"which is not computed when mode='r'. Please use linalg.qr\(A, mode='red"):
        L.qr(x, mode="r").R.sum().backward()
    with pytest.raises(RuntimeError, match=r"not differentiable when mode='complete' and nrows > ncols"):
        L.qr(x, mode="complete").R.sum().backward()


@pytest.mark.parametrize("create_graph", [False, True])
def test_determinant_of_a_singular_matrix(create_graph: bool) -> None:
    """The gradient is the cofactors, which are not zero for one that is missing one rank."""
    x = torch.tensor([[[1.0, 2.0], [2.0, 4.0]], [[2.0, 0.0], [0.0, 3.0]], [[0.0, 0.0], [0.0, 0.0]]]).double()
    x.requires_grad_()
    gradient: Any = torch.autograd.grad(L.det(x).sum(), x, create_graph=create_graph)[0]
    expected = [[[4, -2], [-2, 1]], [[3, 0], [0, 2]], [[0, 0], [0, 0]]]
    np.testing.assert_allclose(gradient.detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("shape", [(4, 2), (2, 4)])
def test_full_matrices_of_svd(shape: tuple[int, int]) -> None:
    """The gradient uses the vectors that belong to singular values."""
    grads: list[Any] = []
    for full in (True, False):
        x = matrix(*shape)
        u, s, vh = L.svd(x, full_matrices=full)
        assert u.shape == (shape[0], shape[0] if full else 2)
        assert vh.shape == (shape[1] if full else 2, shape[1])
        loss = (u[:, :2].abs() * torch.tensor([1.0, 2.0])).sum() + (vh[:2] ** 4).sum() + (s**2).sum()
        grads.append(torch.autograd.grad(loss, x)[0])
    np.testing.assert_allclose(grads[0].numpy(), grads[1].numpy(), rtol=1e-9, atol=1e-12)


NODES = {
    "inv": "LinalgInvExBackward0",
    "det": "LinalgDetBackward0",
    "slogdet": "LinalgSlogdetBackward0",
    "qr": "LinalgQrBackward0",
    "svd": "LinalgSvdBackward0",
    "svdvals": "LinalgSvdBackward0",
    "eigh": "LinalgEighBackward0",
    "eigvalsh": "LinalgEighBackward0",
    "eig": "LinalgEigBackward0",
    "eigvals": "LinalgEigBackward0",
    "pinv": "LinalgPinvBackward0",
    "lu_factor": "LinalgLuFactorExBackward0",
    "matrix_exp": "LinalgMatrixExpBackward0",
}


@pytest.mark.parametrize(("function", "node"), NODES.items())
def test_nodes_have_torchs_names(function: str, node: str) -> None:
    result = getattr(L, function)(matrix(3, 3))
    result = result[0] if isinstance(result, tuple) else result
    assert result.grad_fn.name() == node


def test_nodes_of_two_inputs_have_torchs_names() -> None:
    def name(result: Any) -> str:
        return result.grad_fn.name()

    a, b = matrix(2, 2), matrix(2, 2, seed=1)
    assert name(L.solve(a, b)) == "LinalgSolveExBackward0"
    assert name(L.solve_triangular(a, b, upper=True)) == "LinalgSolveTriangularBackward0"
    assert name(torch.triangular_solve(a, b).solution) == "TriangularSolveBackward0"
    assert name(torch.cholesky_solve(a, b)) == "CholeskySolveBackward0"
    assert name(torch.cholesky_inverse(a)) == "CholeskyInverseBackward0"
    assert name(torch.cholesky(a @ a.mT)) == "CholeskyBackward0"
    assert name(L.lu(a).L) == "LinalgLuBackward0"
    assert L.lu(a).P.grad_fn is None
    assert name(L.lu_solve(*L.lu_factor(a), b)) == "LinalgLuSolveBackward0"
    assert name(L.lstsq(a, b).solution) == "LinalgLstsqBackward0"
    assert name(L.householder_product(a, b[0])) == "LinalgHouseholderProductBackward0"


# -------------------------------------------------------------------------------------------------------- the namespace


def test_results_have_names() -> None:
    a = matrix(2, 2, requires_grad=False)
    assert L.svd(a)._fields == ("U", "S", "Vh")
    assert torch.svd(a)._fields == ("U", "S", "V")
    assert L.eigh(a)._fields == L.eig(a)._fields == ("eigenvalues", "eigenvectors")
    assert L.slogdet(a)._fields == ("sign", "logabsdet")
    assert L.lu(a)._fields == ("P", "L", "U")
    assert L.lstsq(a, a)._fields == ("solution", "residuals", "rank", "singular_values")


def test_out() -> None:
    a = matrix(2, 2, requires_grad=False)
    out = torch.empty(2, 2, dtype=torch.float64)
    assert L.inv(a, out=out) is out
    np.testing.assert_allclose((a @ out).numpy(), np.eye(2), atol=1e-12)
    targets = tuple(torch.empty(0, dtype=torch.float64) for _ in range(2))
    result = L.qr(a, out=targets)
    assert result.Q is targets[0]
    np.testing.assert_allclose((targets[0] @ targets[1]).numpy(), a.numpy(), atol=1e-12)


def test_old_names_are_methods() -> None:
    a = matrix(2, 2, requires_grad=False)
    for name in ("inverse", "det", "logdet", "slogdet", "cholesky_inverse", "qr", "svd", "pinverse", "matrix_exp"):
        assert callable(getattr(a, name)), name
    assert torch.equal(a.det(), torch.det(a))
    assert torch.equal(a.matrix_power(2), a @ a)


def test_values_and_vectors_only_where_needed() -> None:
    """Without a derivative to come, svdvals and its like compute no vectors."""
    a = matrix(3, 3, requires_grad=False)
    np.testing.assert_allclose(L.svdvals(a).numpy(), np.linalg.svd(a.numpy(), compute_uv=False))
    np.testing.assert_allclose(L.eigvalsh(a + a.mT).numpy(), np.linalg.eigvalsh(a.numpy() + a.numpy().T))
    with torch.no_grad():
        assert not L.eigvals(matrix(3, 3)).requires_grad


def test_large_exponentials_of_a_batch() -> None:
    a = torch.stack([torch.zeros(2, 2), torch.diag(torch.tensor([30.0, -30.0])), torch.eye(2)]).double()
    expected = np.stack([np.eye(2), np.diag(np.exp([30.0, -30.0])), np.e * np.eye(2)])
    np.testing.assert_allclose(torch.matrix_exp(a).numpy(), expected, rtol=1e-11, atol=1e-20)


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("shape", [(30, 3, 3), (30, 4, 2), (5, 6, 2, 4)])
def test_many_small_matrices_are_factored_like_one(shape: tuple[int, ...], complex: bool) -> None:
    a = matrix(*shape, complex=complex, requires_grad=False)
    a[..., 0, :] = 0
    lu, pivots, info = L.lu_factor_ex(a)
    p, low, high = L.lu(a)
    np.testing.assert_allclose((p @ low @ high).numpy(), a.numpy(), atol=1e-12)
    for index in np.ndindex(*shape[:-2]):
        one = L.lu_factor_ex(a[index])
        np.testing.assert_allclose(lu[index].numpy(), one.LU.numpy(), atol=1e-12)
        assert pivots[index].tolist() == one.pivots.tolist()
        assert info[index].item() == one.info.item()


# --------------------------------------------------------------------------------------- wrong calls, on both libraries

MATRIX = [[2.0, 1.0], [1.0, 3.0]]

#: By name: a call with out=, and whether a result of float32 is cast to an out= of float64.
WITH_OUT = {
    "inv": (lambda t, a, out: t.linalg.inv(a, out=out), False),
    "solve": (lambda t, a, out: t.linalg.solve(a, a, out=out), False),
    "cholesky": (lambda t, a, out: t.linalg.cholesky(a, out=out), False),
    "torch.cholesky": (lambda t, a, out: t.cholesky(a, out=out), True),
    "eigvalsh": (lambda t, a, out: t.linalg.eigvalsh(a, out=out), False),
    "svdvals": (lambda t, a, out: t.linalg.svdvals(a, out=out), False),
    "norm": (lambda t, a, out: t.linalg.norm(a, out=out), False),
    "matrix_norm": (lambda t, a, out: t.linalg.matrix_norm(a, out=out), False),
    "matrix_power": (lambda t, a, out: t.linalg.matrix_power(a, 3, out=out), False),
    "multi_dot": (lambda t, a, out: t.linalg.multi_dot([a, a], out=out), False),
    "solve_triangular": (lambda t, a, out: t.linalg.solve_triangular(a, a, upper=True, out=out), False),
    "vecdot": (lambda t, a, out: t.linalg.vecdot(a, a, out=out), False),
    "cond": (lambda t, a, out: t.linalg.cond(a, out=out), True),
    "pinv": (lambda t, a, out: t.linalg.pinv(a, out=out), True),
    "tensorinv": (lambda t, a, out: t.linalg.tensorinv(a, 1, out=out), True),
    "tensorsolve": (lambda t, a, out: t.linalg.tensorsolve(a, a[0], out=out), True),
    "householder_product": (lambda t, a, out: t.linalg.householder_product(a, a[0], out=out), True),
    "cholesky_solve": (lambda t, a, out: t.cholesky_solve(a, a, out=out), True),
    "cholesky_inverse": (lambda t, a, out: t.cholesky_inverse(a, out=out), True),
}


@pytest.mark.parametrize("name", sorted(WITH_OUT))
def test_out_of_other_dtypes_is_cast_or_refused(torch: Any, name: str) -> None:
    call, cast = WITH_OUT[name]
    a = torch.tensor(MATRIX)
    with pytest.raises(RuntimeError, match=r"dtype|expected scalar type Float but found Int"):
        call(torch, a, torch.empty(0, dtype=torch.int32))
    out = torch.empty(0, dtype=torch.float64)
    if cast:
        assert call(torch, a, out) is out
        np.testing.assert_allclose(out.numpy(), call(torch, a, None).numpy(), rtol=1e-6)
    else:
        with pytest.raises(RuntimeError, match=r"dtype|expected scalar type Float but found Double"):
            call(torch, a, out)


def test_out_of_several_results_is_cast_where_torch_does(torch: Any) -> None:
    a = torch.tensor(MATRIX)
    double = [torch.empty(0, dtype=torch.complex128) for _ in range(2)]
    assert torch.linalg.eig(a, out=tuple(double))[0] is double[0]
    with pytest.raises(RuntimeError, match="Expected eigenvectors to be safely castable from ComplexFloat dtype"):
        torch.linalg.eig(a, out=(double[0], torch.empty(0)))
    rank = torch.empty(0, dtype=torch.int32)
    single = [torch.empty(0) for _ in range(3)]
    assert torch.linalg.lstsq(a, a, out=(single[0], single[1], rank, single[2])).rank is rank
    with pytest.raises(RuntimeError, match="Expected rank to be safely castable from Long dtype"):
        torch.linalg.lstsq(a, a, out=(single[0], single[1], torch.empty(0, dtype=torch.bool), single[2]))


@pytest.mark.parametrize("wrong", [0, 3])
def test_pivots_are_looked_at(torch: Any, wrong: int) -> None:
    lu, pivots = torch.linalg.lu_factor(torch.tensor([MATRIX, MATRIX]))
    pivots[1, 0] = wrong
    with pytest.raises(RuntimeError, match="Pivots given to lu_solve must all be"):
        torch.linalg.lu_solve(lu, pivots, lu)
    with pytest.raises(RuntimeError, match=r"between 1 and LU.size\(-2\)"):
        torch.lu_unpack(lu, pivots)


def test_infinities_have_no_singular_values_and_nans_are_refused(torch: Any) -> None:
    inf, nan = float("inf"), float("nan")
    batch = torch.tensor([MATRIX, [[1.0, inf], [0.0, 1.0]]])
    values = torch.linalg.svdvals(batch)
    np.testing.assert_allclose(values[0].numpy(), np.linalg.svd(np.array(MATRIX), compute_uv=False), rtol=1e-5)
    assert values[1].isnan().all()
    assert torch.linalg.pinv(batch)[1].isnan().all() and torch.linalg.cond(batch)[1].isnan()
    with pytest.raises(torch.linalg.LinAlgError, match=r"\(Batch element 1\): The algorithm failed to converge"):
        torch.linalg.svd(torch.tensor([MATRIX, [[nan, 0.0], [0.0, 1.0]]]))


def test_condition_numbers_of_nothing_and_of_singular_matrices(torch: Any) -> None:
    for p in (None, 2, -2, 1, -1, float("inf")):
        assert torch.linalg.cond(torch.ones(2, 0, 0), p).tolist() == [0, 0]
    assert torch.linalg.cond(torch.zeros(2, 0, 3)).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match=r"linalg.cond\(ord=fro\): A must be batches of square matrices"):
        torch.linalg.cond(torch.zeros(0, 3), "fro")
    zeros = torch.zeros(2, 2)
    assert torch.linalg.cond(zeros, "fro") == float("inf") and torch.linalg.cond(zeros, "nuc").isnan()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda t, a: t.ormqr(a.expand(2, 2, 2), a[:1], a.expand(2, 2, 2)), "batch dimensions of tau"),
        (lambda t, a: t.ormqr(a.expand(2, 2, 2), a, a[None]), "batch dimensions of other"),
        (lambda t, a: t.ormqr(a, a[0].double(), a), "Expected input and tau to have the same dtype"),
        (lambda t, a: t.ormqr(a, a[0], a.double()), "Expected input and other to have the same dtype"),
        (lambda t, a: t.ormqr(a[0], a[0], a), "input must have at least 2 dimensions"),
        (lambda t, a: t.ormqr(t.ones(4, 3), t.ones(2), t.ones(3, 9)), r"other.shape\[-2\] must be equal to input"),
        (lambda t, a: t.linalg.tensorsolve(t.eye(24).reshape(6, 4, 2, 3, 4), t.ones(8, 4)), "but got 24 != 32"),
        (lambda t, a: t.linalg.multi_dot([a[0], t.ones(3)]), r"with shapes \[2\] and \[3\] cannot be multiplied"),
        (lambda t, a: t.linalg.multi_dot([a, a.double()]), "tensor 0 is float and tensor 1 double"),
        (lambda t, a: t.chain_matmul(), "Expected one or more matrices"),
        (lambda t, a: t.chain_matmul(a, a[0]), "Tensor dimension is 1, expected 2 instead"),
        (lambda t, a: t.linalg.pinv(a, rcond=t.tensor(1j)), "rcond tensor of complex type is not supported"),
        (lambda t, a: t.linalg.matrix_rank(a, atol=t.tensor(1j)), "atol tensor of complex type is not supported"),
        (lambda t, a: t.norm(a[0], "nuc", (0, 1)), "The input tensor A must have at least 2 dimensions"),
        (lambda t, a: t.norm(a, "nuc", (0,)), "dim must be a 2-tuple. Got 0"),
        (lambda t, a: t.norm(a, "nuc", (-1, 1)), r"dims must be different. Got \(1, 1\)"),
        (lambda t, a: t.norm(a, "fro", (0, 1, 2)), "dim must be a 2-tuple. Got 0 1 2"),
    ],
)
def test_wrong_calls(torch: Any, call: Any, match: str) -> None:
    with pytest.raises(RuntimeError, match=match):
        call(torch, torch.tensor(MATRIX))


def test_norms_in_other_dtypes(torch: Any) -> None:
    x = torch.tensor([3.0, 4.0])
    assert torch.linalg.vector_norm(x.bfloat16(), dtype=torch.float32).dtype == torch.float32
    out = torch.empty(0, dtype=torch.float64)
    assert torch.linalg.norm(x.to(torch.complex64), dtype=torch.complex128, out=out) is out and out == 5
    assert torch.norm(torch.tensor(MATRIX), "nuc", dtype=torch.float64).dtype == torch.float64
    assert torch.norm(torch.randn(4, 5, 6, 7), "nuc", (0, 2)).is_contiguous()


def test_einsum_lies_in_the_order_of_its_output(torch: Any) -> None:
    w, x = torch.randn(5, 3), torch.randn(2, 3)
    assert torch.einsum("fd,bd->bf", w, x).stride() == (5, 1)
    assert torch.einsum("bij,bjk->kib", torch.randn(2, 5, 3), torch.randn(2, 3, 4)).stride() == (5, 1, 20)
    np.testing.assert_allclose(torch.einsum("fd,bd->bf", w, x).numpy(), x.numpy() @ w.numpy().T, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="at least one operand"):
        torch.einsum("", [])


def test_addr_of_half_precision_and_integers(torch: Any) -> None:
    ones = torch.ones(2, 2, dtype=torch.uint8)
    result = torch.addr(ones, torch.tensor([1, 2], dtype=torch.int16), torch.tensor([3, 4], dtype=torch.bfloat16))
    assert result.dtype == torch.bfloat16 and result.tolist() == [[4, 5], [7, 9]]


def test_calls_without_a_tensor(torch: Any) -> None:
    assert torch.block_diag().shape == (1, 0) and len(torch.broadcast_tensors()) == 0
    with pytest.raises(RuntimeError, match="meshgrid expects a non-empty TensorList"):
        torch.cartesian_prod()


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        (". ..", r"found '\.' for operand 0 that is not part of any ellipsis"),
        ("....", r"found '\.' for operand 0 for which an ellipsis was already found"),
        ("a->. ..", r"found '\.' for output that is not part of any ellipsis \(\.\.\.\)"),
        ("a->....", r"found '\.' for output but an ellipsis \(\.\.\.\) was already found"),
    ],
)
def test_dots_that_are_no_ellipsis(torch: Any, equation: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        torch.einsum(equation, torch.ones(2))


def test_names_of_products_and_sizes(torch: Any) -> None:
    x = torch.tensor([1.0, -9.0])
    made = torch._addmm_activation(x, torch.eye(2), torch.eye(2), beta=2, alpha=3)
    assert made.tolist() == [[5.0, 0.0], [2.0, 0.0]]
    assert torch._C._infer_size(torch.Size((2, 1)), torch.Size((1, 3))) == (2, 3)
    with pytest.raises(RuntimeError, match=r"expected a torch\.Size as argument 1"):
        torch._C._infer_size((2, 1), torch.Size((1, 3)))
    assert torch._C._get_cpu_allow_fp16_reduced_precision_reduction() is False
    with pytest.raises(RuntimeError, match="expects a bool, but got int"):
        torch._C._set_cpu_allow_fp16_reduced_precision_reduction(1)
