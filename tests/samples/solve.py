"""Samples of inverses, linear systems, determinants."""

from __future__ import annotations

from typing import Any

from samples.decompositions import (
    HALF_ZERO,
    ZERO,
    of_well_conditioned,
    positive_definite,
    rectangular,
    square,
    well_conditioned,
)
from samples.shared import more
from samples.spec import E, Op, S, V, given, integers, positive, real

SQUARE_ERRORS = [
    ("vector", RuntimeError, r"The input tensor A must have at least 2 dimensions", (real(3),)),
    ("not square", RuntimeError, r"A must be batches of square matrices, but they are 2 by 3", (real(2, 3),)),
]


def square_errors() -> list[Any]:
    return [E(name, kind, text, *args) for name, kind, text, args in SQUARE_ERRORS]


INTEGER = E("integers", RuntimeError, r"Expected a floating point or complex tensor as input. Got Long", integers(2, 2))


SYSTEMS = [
    S("vector", real(3, 3), real(3)),
    S("matrix", real(2, 2), real(2, 3)),
    S("batch of vectors", real(2, 2, 2), real(2, 2)),
    S("batch", real(2, 2, 2), real(2, 2, 1)),
    S("broadcast matrix", real(2, 2), real(2, 2, 1)),
    S("broadcast rhs", real(2, 2, 2), real(2, 1), as_complex=False),
    S("right", real(2, 2), real(3, 2), left=False),
    S("right, batch", real(2, 2, 2), real(1, 2), left=False, as_complex=False),
    S("only A requires grad", real(2, 2), real(2, 1, requires_grad=False), as_complex=False),
    S("only B requires grad", real(2, 2, requires_grad=False), real(2, 1), as_complex=False),
    V("float32", real(2, 2, dtype="float32"), real(2, dtype="float32")),
    V("empty", real(0, 0), real(0, 2)),
]

TRIANGULAR = [
    S("upper", real(3, 3), real(3, 2), upper=True),
    S("lower", real(2, 2), real(2, 2), upper=False),
    S("right", real(2, 2), real(3, 2), upper=True, left=False),
    S("right, lower", real(2, 2), real(1, 2), upper=False, left=False),
    S("unitriangular", real(3, 3), real(3, 1), upper=True, unitriangular=True),
    S("unitriangular, lower", real(2, 2), real(2, 1), upper=False, unitriangular=True),
    S("batch", real(2, 2, 2), real(2, 2, 1), upper=True),
    S("broadcast", real(2, 2), real(2, 2, 1), upper=True, as_complex=False),
    S("many", real(3, 2, 2), real(3, 2, 1), upper=True),
    S("many, lower", real(3, 2, 2), real(3, 2, 1), upper=False, unitriangular=True),
    S("many, right", real(3, 2, 2), real(3, 1, 2), upper=False, left=False),
    S("many, broadcast", real(1, 2, 2), real(3, 1, 2), upper=True, left=False),
    V("float32", real(2, 2, dtype="float32"), real(2, 1, dtype="float32"), upper=True),
]


DETERMINANTS = [
    Op(
        "linalg.det",
        "linalg.det",
        square(),
        [*square_errors(), INTEGER],
        supports_complex=True,
        reference=lambda a: __import__("numpy").linalg.det(a),
    ),
    Op("linalg.slogdet", of_well_conditioned("linalg.slogdet"), square(), supports_complex=True),
    Op("logdet", of_well_conditioned("logdet"), square(), supports_complex=True),
    Op("linalg.logdet of negative", "logdet", [V("negative", given([[-1.0, 0.0], [0.0, 1.0]]))], method="logdet"),
]
REGULAR = given([[2.0, 0.3, -0.4], [0.1, 1.7, 0.2], [-0.3, 0.5, 1.4]])
MATRIX = given([[2.0, 0.3], [-0.4, 1.1], [0.5, -0.6]])


OPS = [
    Op("linalg.inv", of_well_conditioned("linalg.inv"), square(), supports_complex=True),
    Op("linalg.inv_ex", of_well_conditioned("linalg.inv_ex"), square(), supports_complex=True),
    Op(
        "inverse",
        "inverse",
        [S("given", given([[2.0, 1.0], [0.5, 3.0]]))],
        [
            *square_errors(),
            INTEGER,
            E("singular", RuntimeError, r"linalg.inv: The diagonal element 1 is zero, the inversion could not", ZERO),
            E("singular in a batch", RuntimeError, r"\(Batch element 1\): The diagonal element 2 is zero", HALF_ZERO),
        ],
        supports_complex=True,
        method="inverse",
    ),
    Op(
        "linalg.solve",
        lambda torch, a, b, **kw: torch.linalg.solve(well_conditioned(torch, a), b, **kw),
        list(SYSTEMS),
        [
            E(
                "singular",
                RuntimeError,
                r"The solver failed because the input matrix is singular",
                ZERO,
                real(2),
                fn="linalg.solve",
            ),
            E(
                "shapes",
                RuntimeError,
                r"Incompatible shapes of A and B for the equation AX = B \(3x3 and 4x2\)",
                real(3, 3),
                real(4, 2),
                fn="linalg.solve",
            ),
            E(
                "dtypes",
                RuntimeError,
                r"Expected A and B to have the same dtype, but found A of type Double",
                real(2, 2),
                real(2, dtype="float32"),
                fn="linalg.solve",
            ),
            E(
                "not square",
                RuntimeError,
                r"A must be batches of square matrices",
                real(2, 3),
                real(2),
                fn="linalg.solve",
            ),
        ],
        supports_complex=True,
    ),
    Op(
        "linalg.solve_triangular",
        lambda torch, a, b, **kw: torch.linalg.solve_triangular(well_conditioned(torch, a), b, **kw),
        list(TRIANGULAR),
        [
            E(
                "vector",
                RuntimeError,
                r"The input tensor B must have at least 2 dimensions",
                real(2, 2),
                real(2),
                upper=True,
                fn="linalg.solve_triangular",
            ),
            E(
                "shapes",
                RuntimeError,
                r"Incompatible shapes of A and B for the equation AX = B \(3x3 and 4x1\)",
                real(3, 3),
                real(4, 1),
                upper=True,
                fn="linalg.solve_triangular",
            ),
        ],
        supports_complex=True,
    ),
    Op(
        "linalg.triangular_solve",
        # torch's tangent takes all of A's, so it is given a triangle.
        lambda torch, b, a, upper=True, *args: torch.triangular_solve(
            b, well_conditioned(torch, a).triu() if upper else well_conditioned(torch, a).tril(), upper, *args
        ),
        [
            S("upper", real(2, 1), real(2, 2)),
            S("lower", real(2, 1), real(2, 2), False),
            S("transposed", real(2, 1), real(2, 2), True, True),
            S("unitriangular", real(2, 1), real(2, 2), True, False, True),
            S("batch", real(2, 2, 1), real(2, 2, 2)),
        ],
        supports_complex=True,
    ),
    Op(
        "linalg.tensorinv",
        lambda torch, x, ind: torch.linalg.tensorinv(
            x + 5 * torch.eye(x.numel() // x.shape[0], dtype=x.dtype).reshape(x.shape), ind
        ),
        [S("1 and 2", real(4, 2, 2), 1)],
        [
            E(
                "ind",
                RuntimeError,
                r"strictly positive integer for 'ind', but got 0",
                real(2, 2),
                0,
                fn="linalg.tensorinv",
            )
        ],
        supports_complex=True,
    ),
    Op(
        "linalg.tensorsolve",
        lambda torch, a, b, **kw: torch.linalg.tensorsolve(
            a + 5 * torch.eye(4, dtype=a.dtype).reshape(a.shape), b, **kw
        ),
        [S("plain", real(2, 2, 4), real(2, 2)), S("vector", real(4, 2, 2), real(4), as_complex=False)],
        supports_complex=True,
    ),
    *DETERMINANTS,
    Op(
        "linalg.pinv",
        of_well_conditioned("linalg.pinv"),
        [*rectangular(), S("rtol", real(3, 2), rtol=1e-3)],
        supports_complex=True,
    ),
    Op(
        "linalg.pinv hermitian",
        lambda torch, x, **kw: torch.linalg.pinv(positive_definite(torch, x), hermitian=True, **kw),
        [S("matrix", real(2, 2))],
        supports_complex=True,
    ),
    Op(
        "linalg.pinv of low rank",
        lambda torch, x, y: torch.linalg.pinv(x @ y),
        [S("rank 1", real(3, 1), real(1, 3)), S("rank 2", real(3, 2), real(2, 3), second=False)],
        supports_complex=True,
    ),
    Op("pinverse", of_well_conditioned("pinverse"), [S("tall", real(3, 2))], supports_complex=True),
    Op(
        "linalg.lstsq",
        lambda torch, a, b, **kw: torch.linalg.lstsq(well_conditioned(torch, a), b, **kw),
        [
            S("tall", real(3, 2), real(3, 1)),
            S("square", real(2, 2), real(2, 2)),
            S("wide", real(2, 3), real(2, 1)),
            S("batch", real(2, 3, 1), real(2, 3, 1)),
            S("gels", real(3, 2), real(3, 1), driver="gels", as_complex=False),
            V("gelsd", real(3, 2), real(3, 2), driver="gelsd"),
            S("gelsy", real(3, 2), real(3, 2), driver="gelsy", as_complex=False),
        ],
        [
            E(
                "driver",
                RuntimeError,
                r"parameter `driver` should be one of \(gels, gelsy, gelsd, gelss\)",
                real(3, 2),
                real(3, 1),
                driver="x",
                fn="linalg.lstsq",
            ),
            E(
                "sizes",
                RuntimeError,
                r"input.size\(-2\) should match other.size\(-2\)",
                real(4, 2),
                real(3, 1),
                fn="linalg.lstsq",
            ),
        ],
        supports_complex=True,
    ),
    Op(
        "det",
        "det",
        [S("matrix", REGULAR), S("batch", positive(2, 1, 1))],
        [E("not square", RuntimeError, "batches of square matrices", real(2, 3))],
        method="det",
        supports_complex=True,
    ),
    Op("slogdet", "slogdet", [S("matrix", REGULAR)], method="slogdet", supports_complex=True),
    Op(
        "linalg.solve_ex",
        "linalg.solve_ex",
        [
            S("vector", REGULAR, real(3)),
            S("right", REGULAR, real(2, 3), left=False),
            S("checked", REGULAR, real(3), check_errors=True),
        ],
    ),
    more("linalg.inv_ex", S("checked", REGULAR, check_errors=True)),
    more(
        "linalg.pinv",
        S("atol", MATRIX, atol=1e-3),
        S("hermitian", REGULAR, hermitian=True),
        fn=lambda torch, a, **kwargs: torch.linalg.pinv(a + a.mT if "hermitian" in kwargs else a, **kwargs),
    ),
    more("linalg.tensorinv", S("ind", REGULAR, ind=1)),
    more(
        "linalg.lstsq",
        V("rcond", MATRIX, real(3, 1), rcond=1e-3),
        fn=lambda torch, *args, **kwargs: torch.linalg.lstsq(*args, **kwargs).solution,
    ),
    more("pinverse", S("rcond", MATRIX, rcond=1e-3)),
]
