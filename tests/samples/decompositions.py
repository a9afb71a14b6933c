"""Samples of decompositions of matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from samples.shared import more, refused
from samples.spec import E, Op, S, Sample, V, given, integers, real


def hermitian(x: Any) -> Any:
    return x + x.mH


def positive_definite(torch: Any, x: Any) -> Any:
    return x @ x.mH + torch.eye(x.shape[-1], dtype=x.dtype)


def well_conditioned(torch: Any, x: Any) -> Any:
    """Far from singular."""
    return x + 5 * torch.eye(x.shape[-2], x.shape[-1], dtype=x.dtype)


def of_well_conditioned(name: str, pick: Callable[[Any], Any] = lambda r: r) -> Callable[..., Any]:
    def call(torch: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        function = torch
        for part in name.split("."):
            function = getattr(function, part)
        return pick(function(well_conditioned(torch, x), *args, **kwargs))

    return call


SQUARE = [
    S("one matrix", real(3, 3)),
    S("batch", real(2, 2, 2)),
    S("of size 1", real(2, 1, 1)),
    S("batch of batches", real(2, 1, 2, 2), as_complex=False),
    S("transposed", real(3, 3, layout="transposed"), as_complex=False),
    S("strided", real(2, 2, layout="strided"), as_complex=False),
    S("many", real(3, 2, 2)),
    V("empty batch", real(0, 2, 2)),
    V("empty", real(0, 0)),
    V("float32", real(3, 3, dtype="float32")),
]


def square() -> list[Sample]:
    """Square matrices; fresh ones, for an `Op` seeds its own and adds to them."""
    return [replace(sample) for sample in SQUARE]


def rectangular(second: bool = True) -> list[Sample]:
    """Tall, wide and square matrices."""
    return [
        S("square", real(3, 3), second=second),
        S("tall", real(4, 3), second=second),
        S("wide", real(2, 4), second=second),
        S("batch", real(2, 3, 2), second=second),
        S("many", real(3, 2, 2), second=second),
        S("many tall", real(4, 3, 2), second=second),
        S("wide batch", real(2, 2, 3), as_complex=False, second=second),
        S("transposed", real(3, 2, layout="transposed"), as_complex=False, second=second),
        V("float32", real(3, 2, dtype="float32")),
    ]


ZERO = given([[0.0, 0.0], [0.0, 0.0]])
HALF_ZERO = given([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]]])


def _lu_solve(torch: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    return torch.linalg.lu_solve(*torch.linalg.lu_factor(well_conditioned(torch, a)), b, **kwargs)


def _cholesky_solve(torch: Any, b: Any, a: Any, upper: bool = False) -> Any:
    return torch.cholesky_solve(b, torch.linalg.cholesky(positive_definite(torch, a), upper=upper), upper)


def _cholesky_inverse(torch: Any, a: Any, upper: bool = False) -> Any:
    return torch.cholesky_inverse(torch.linalg.cholesky(positive_definite(torch, a), upper=upper), upper)


def _projectors(torch: Any, x: Any, **kwargs: Any) -> Any:
    u, s, vh = torch.linalg.svd(well_conditioned(torch, x) * torch.arange(1, x.shape[-1] + 1).to(x.dtype), **kwargs)
    k = s.shape[-1]
    return u[..., :k] @ (s.cos().unsqueeze(-1) * vh[..., :k, :]), s


def _moduli(torch: Any, x: Any) -> Any:
    u, s, vh = torch.linalg.svd(
        well_conditioned(torch, x) * torch.arange(1, x.shape[-1] + 1).to(x.dtype), full_matrices=False
    )
    return u.abs() ** 2, s, vh.abs() ** 2


def _eigh(torch: Any, x: Any, UPLO: str = "L") -> Any:
    values, vectors = torch.linalg.eigh(hermitian(x), UPLO)
    return values, vectors.abs() ** 2, (vectors * values.unsqueeze(-2) ** 3) @ vectors.mH


def _eig(torch: Any, x: Any) -> Any:
    values, vectors = torch.linalg.eig(_apart(torch, x))
    return values, vectors.abs() ** 2


def _apart(torch: Any, x: Any) -> Any:
    """With eigenvalues far apart, and so in the same order for both libraries."""
    return x + torch.diag(torch.arange(1, x.shape[-1] + 1).to(x.dtype) * 9)


FACTORS = [
    Op(
        "linalg.cholesky",
        lambda torch, x, **kw: torch.linalg.cholesky(positive_definite(torch, x), **kw),
        [*square(), S("upper", real(2, 2), upper=True)],
        [
            E(
                "indefinite",
                RuntimeError,
                r"linalg.cholesky: The factorization could not be completed because the inpu",
                given([[1.0, 0.0], [0.0, -1.0]]),
                fn="linalg.cholesky",
            ),
            E(
                "minor",
                RuntimeError,
                r"\(the leading minor of order 2 is not positive-definite\)",
                given([[1.0, 0.0], [0.0, -1.0]]),
                fn="linalg.cholesky",
            ),
            E("batch", RuntimeError, r"linalg.cholesky: \(Batch element 1\): ", HALF_ZERO, fn="linalg.cholesky"),
        ],
        supports_complex=True,
    ),
    Op(
        "linalg.cholesky_ex",
        lambda torch, x, **kw: torch.linalg.cholesky_ex(positive_definite(torch, x), **kw),
        square(),
        supports_complex=True,
    ),
    Op(
        "cholesky",
        lambda torch, x, upper=False: torch.cholesky(positive_definite(torch, x), upper),
        [S("lower", real(2, 2)), S("upper", real(2, 2), True)],
        supports_complex=True,
    ),
    Op(
        "linalg.qr",
        of_well_conditioned("linalg.qr"),
        [*rectangular(), S("complete, wide", real(2, 3), mode="complete"), S("complete", real(2, 2), mode="complete")],
        [E("mode", RuntimeError, r"qr received unrecognized mode 'x'", real(2, 2), mode="x", fn="linalg.qr")],
        supports_complex=True,
    ),
    Op("qr", of_well_conditioned("qr"), [S("tall", real(3, 2))], supports_complex=True),
    Op("linalg.lu", of_well_conditioned("linalg.lu"), rectangular(), supports_complex=True),
    Op("linalg.lu_factor", of_well_conditioned("linalg.lu_factor"), rectangular(), supports_complex=True),
    Op("linalg.lu_factor_ex", of_well_conditioned("linalg.lu_factor_ex"), rectangular(), supports_complex=True),
    Op(
        "linalg.lu_unpack",
        lambda torch, x: torch.lu_unpack(*torch.linalg.lu_factor(well_conditioned(torch, x))),
        rectangular(),
        supports_complex=True,
    ),
    Op(
        "geqrf",
        "geqrf",
        [V("tall", real(3, 2, requires_grad=False)), V("batch", real(2, 2, 3, requires_grad=False), as_complex=True)],
        differentiable=False,
        supports_complex=True,
        method="geqrf",
    ),
    Op("lu", of_well_conditioned("lu"), [S("tall", real(3, 2)), S("infos", real(2, 2), get_infos=True)]),
    Op(
        "ormqr",
        "ormqr",
        [
            S("left", real(3, 2), real(2), real(3, 1)),
            S("adjoint", real(2, 2), real(2), real(2, 2), transpose=True),
            S("right", real(3, 2), real(2), real(1, 3), left=False),
            S("right adjoint", real(2, 2, 1), real(2, 1), real(2, 1, 2), left=False, transpose=True),
        ],
        supports_complex=True,
        method="ormqr",
    ),
    Op("linalg.svd", _projectors, [s for s in rectangular() if s.name != "float32"], supports_complex=True),
    Op(
        "linalg.svd of one side",
        _moduli,
        [s for s in rectangular() if s.name != "float32"],
        supports_complex=True,
    ),
    Op(
        "linalg.svd full",
        lambda torch, x: _projectors(torch, x, full_matrices=True)[1],
        [S("square", real(2, 2), second=False)],
        supports_complex=True,
    ),
    Op("linalg.svdvals", of_well_conditioned("linalg.svdvals"), rectangular(), supports_complex=True),
    Op("svd", of_well_conditioned("svd", lambda r: r[1]), [S("tall", real(3, 2))], supports_complex=True),
    Op(
        "linalg.eigh",
        _eigh,
        [S("matrix", real(3, 3)), S("upper", real(2, 2), UPLO="U"), S("batch", real(2, 2, 2))],
        [
            E(
                "uplo",
                RuntimeError,
                r"Expected UPLO argument to be 'L' or 'U', but got X",
                real(2, 2),
                "X",
                fn="linalg.eigh",
            ),
            E("not square", RuntimeError, r"linalg.eigh: A must be batches of square", real(2, 3), fn="linalg.eigh"),
        ],
        supports_complex=True,
    ),
    Op(
        "linalg.eigh of one triangle",
        lambda torch, x, *args: torch.linalg.eigh(x, *args)[1].abs(),
        [V("lower", real(3, 3), as_complex=True), V("upper", real(2, 3, 3), "U")],
        supports_complex=True,
    ),
    Op(
        "linalg.eigvalsh",
        lambda torch, x: torch.linalg.eigvalsh(hermitian(x)),
        square(),
        supports_complex=True,
    ),
    Op(
        "linalg.eig",
        _eig,
        [S("matrix", real(3, 3)), S("batch", real(2, 2, 2))],
        [E("not square", RuntimeError, r"linalg.eig: A must be batches of square", real(2, 3), fn="linalg.eig")],
        supports_complex=True,
    ),
    Op(
        "linalg.eigvals",
        lambda torch, x: torch.linalg.eigvals(_apart(torch, x)),
        [S("matrix", real(3, 3)), S("batch", real(2, 2, 2))],
        supports_complex=True,
    ),
]


def _extreme_pairs(torch: Any, x: Any, *others: Any, **kwargs: Any) -> Any:
    """Eigenvalues, and projections on their vectors, which have no sign."""
    definite = x @ x.mT + torch.diag(torch.arange(1.0, x.shape[-1] + 1, dtype=x.dtype))
    if others:
        kwargs["B"] = positive_definite(torch, others[0])
    start = torch.eye(x.shape[-1], kwargs["k"], dtype=x.dtype)
    values, vectors = torch.lobpcg(definite, X=start, niter=200, tol=1e-12, **kwargs)
    return values, vectors @ vectors.mT


def _all_singular_values(torch: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """With as many as there are, nothing is random."""
    u, s, v = torch.svd_lowrank(x, min(x.shape[-2:]), *args, **kwargs)
    return s, (u * s.unsqueeze(-2)) @ v.mH


LOW_RANK = [
    Op(
        "lobpcg",
        _extreme_pairs,
        [
            S("largest", real(3, 3), k=1, torch_second=False),
            S("smallest", real(3, 3), k=1, largest=False, torch_second=False),
            S("two", real(6, 6), k=2, torch_second=False),
        ],
        errors=[E("too many", ValueError, "is not applicable", real(4, 4), fn=lambda t, x: t.lobpcg(x, k=2))],
        supports_float32=False,
    ),
    Op(
        "lobpcg of a pair",
        _extreme_pairs,
        [V("largest", real(3, 3, requires_grad=False), real(3, 3, requires_grad=False), k=1)],
    ),
    Op(
        "svd_lowrank",
        _all_singular_values,
        [
            S("tall", real(3, 2)), S("wide", real(2, 3)), S("batch", real(2, 3, 2)),
            S("of a difference", real(3, 2), M=real(3, 2)),
        ],
        supports_float32=False,
    ),
    Op(
        "pca_lowrank",
        lambda torch, x, **kwargs: torch.pca_lowrank(x, 2, **kwargs)[1],
        [S("centred", real(4, 2)), S("plain", real(4, 2), center=False)],
        errors=[E("q", ValueError, "must be non-negative integer", real(4, 2), fn=lambda t, x: t.pca_lowrank(x, 3))],
        supports_float32=False,
    ),
]  # fmt: skip

LDL = [
    Op(
        "linalg.ldl_factor_ex",
        lambda torch, x, **kwargs: torch.linalg.ldl_factor_ex(hermitian(x), **kwargs),
        [
            V("matrix", real(3, 3, requires_grad=False), as_complex=True),
            V("batch", real(2, 3, 3, requires_grad=False)),
            V("blocks", given([[0.0, 1.0], [1.0, 0.0]], requires_grad=False)),
            V("hermitian", real(3, 3, requires_grad=False), hermitian=True, as_complex=True),
            V("empty", real(0, 3, 3, requires_grad=False)),
        ],
        errors=[
            E("rectangle", RuntimeError, "must be batches of square matrices", real(2, 3), fn="linalg.ldl_factor"),
            E("integers", RuntimeError, "Expected a floating point", integers(2, 2), fn="linalg.ldl_factor"),
        ],
        differentiable=False,
        supports_complex=True,
    ),
    Op(
        "linalg.ldl_solve",
        lambda torch, x, b, **kwargs: torch.linalg.ldl_solve(
            *torch.linalg.ldl_factor(hermitian(x), **kwargs), b, **kwargs
        ),
        [
            S("matrix", real(3, 3, requires_grad=False), real(3, 2), as_complex=False),
            S("batch", real(2, 3, 3, requires_grad=False), real(3, 1), as_complex=False),
            S("complex", real(2, 2, dtype="complex128", requires_grad=False), real(2, 1, dtype="complex128")),
            S("hermitian", real(2, 2, dtype="complex128", requires_grad=False), real(2, 1, dtype="complex128"),
              hermitian=True),
        ],
        errors=[
            E("pivots", RuntimeError, "Expected LD.shape", real(2, 2), integers(3), real(2, 1), fn="linalg.ldl_solve"),
            E("dtype", RuntimeError, "the same dtype", real(2, 2), integers(2), real(2, 1, dtype="float32"),
              fn="linalg.ldl_solve"),
        ],
        torch_gradient=False,
    ),
]  # fmt: skip
REGULAR = given([[2.0, 0.3, -0.4], [0.1, 1.7, 0.2], [-0.3, 0.5, 1.4]])
MATRIX = given([[2.0, 0.3], [-0.4, 1.1], [0.5, -0.6]])


OPS = [
    Op(
        "linalg.lu_solve",
        _lu_solve,
        [
            S("matrix", real(3, 3), real(3, 1)),
            S("adjoint", real(2, 2), real(2, 2), adjoint=True),
            S("right", real(2, 2), real(1, 2), left=False),
            S("right adjoint", real(2, 2), real(1, 2), left=False, adjoint=True),
            S("batch", real(2, 2, 2), real(2, 2, 1), as_complex=False),
            S("broadcast", real(2, 2), real(2, 2, 1), as_complex=False),
            S("many", real(3, 2, 2), real(3, 2, 1)),
        ],
        supports_complex=True,
    ),
    Op(
        "linalg.cholesky_solve",
        _cholesky_solve,
        [
            S("matrix", real(3, 2), real(3, 3)),
            S("upper", real(2, 1), real(2, 2), upper=True),
            S("batch", real(2, 2, 1), real(2, 2, 2)),
            S("broadcast", real(2, 2, 1), real(2, 2), as_complex=False),
        ],
        [
            E(
                "sizes",
                RuntimeError,
                r"Incompatible matrix sizes for cholesky_solve: each A matrix is 3 by 3 but each",
                real(4, 1),
                real(3, 3),
                fn="cholesky_solve",
            ),
        ],
        supports_complex=True,
    ),
    Op(
        "linalg.cholesky_inverse",
        _cholesky_inverse,
        [S("matrix", real(3, 3)), S("upper", real(2, 2), upper=True), S("batch", real(2, 2, 2))],
        [E("zero", RuntimeError, r"cholesky_inverse: The diagonal element 1 is zero", ZERO, fn="cholesky_inverse")],
        supports_complex=True,
    ),
    *FACTORS,
    *LOW_RANK,
    *LDL,
    Op(
        "linalg.householder_product",
        "linalg.householder_product",
        [
            S("square", real(3, 3), real(3)),
            S("tall", real(3, 2), real(2)),
            S("fewer", real(3, 3), real(1)),
            S("batch", real(2, 2, 1), real(2, 1)),
        ],
        [
            E(
                "wide",
                RuntimeError,
                r"input.shape\[-2\] must be greater than or equal to input.shape\[-1\]",
                real(2, 3),
                real(2),
            ),
        ],
        supports_complex=True,
    ),
    Op(
        "lu_solve",
        lambda torch, b, a: torch.lu_solve(b, *torch.linalg.lu_factor(a)),
        [S("matrix", real(3, 1), REGULAR)],
    ),
    Op("orgqr", lambda torch, a: torch.orgqr(*torch.geqrf(a.detach())) + 0 * a.sum(), [V("matrix", REGULAR)]),
    Op("linalg.householder_product, empty", "linalg.householder_product", [V("none", real(0, 0), real(0))]),
    *[
        more(
            name,
            S("pivots", REGULAR, pivot=True),
            errors=[E("no pivots", RuntimeError, "without pivoting is not implemented", REGULAR, pivot=False)],
        )
        for name in ("linalg.lu", "linalg.lu_factor")
    ],
    more("linalg.lu_factor_ex", S("checked", REGULAR, check_errors=True)),
    more(
        "linalg.cholesky_ex",
        S("upper, checked", REGULAR, upper=True, check_errors=True),
        fn=lambda torch, a, **kwargs: torch.linalg.cholesky_ex(a @ a.mT + torch.eye(3, dtype=a.dtype), **kwargs),
    ),
    more(
        "linalg.eigvalsh",
        S("upper", REGULAR, UPLO="U"),
        S("lower", REGULAR, UPLO="L"),
        fn=lambda torch, a, **kwargs: torch.linalg.eigvalsh(a + a.mT, **kwargs),
    ),
    more(
        "lu_unpack",
        V("data only", REGULAR, unpack_pivots=False),
        V("pivots only", REGULAR, unpack_data=False, torch_first=False),
        fn=lambda torch, a, **kwargs: torch.lu_unpack(*torch.linalg.lu_factor(a), **kwargs),
    ),
    more(
        "qr",
        S("reduced", MATRIX),
        S("not reduced", REGULAR, some=False),
        fn=lambda torch, a, **kwargs: torch.qr(a, **kwargs)[1],
    ),
    more(
        "svd",
        S("values", MATRIX),
        V("all", MATRIX, some=False),
        V("no vectors", MATRIX, compute_uv=False),
        fn=lambda torch, a, **kwargs: torch.svd(a, **kwargs)[1],
    ),
    more("svd_lowrank", S("steps", MATRIX, niter=1), fn=lambda torch, x, **k: torch.svd_lowrank(x, 2, **k)[1]),
    more("pca_lowrank", S("steps", MATRIX, niter=1), fn=lambda torch, x, **k: torch.pca_lowrank(x, 2, **k)[1]),
    refused(
        "ormqr",
        E("tau", RuntimeError, "one dimension less than input", real(1, 2, 2), real(2), real(1, 2, 2)),
        E("other", RuntimeError, "same number of dimensions", real(2, 2), real(2), real(1, 2, 2)),
        E("size of tau", RuntimeError, "tau.shape.* must be equal to min", real(2, 2), real(1), real(2, 2)),
    ),
    refused(
        "lu_solve",
        E("pivots", RuntimeError, "pivots.shape to be the same", real(2, 1), real(1, 2, 2), given([1, 2], "int32")),
        E("too few", RuntimeError, "Number of pivots per batch", real(2, 1), real(2, 2), given([1], "int32")),
    ),
    refused("linalg.householder_product", E("tau", RuntimeError, "one dimension less", real(1, 2, 2), real(2))),
]
