"""Samples of functions of matrices, norms and products: the rest of ``torch.linalg``."""

from __future__ import annotations

from typing import Any

from samples.decompositions import (
    HALF_ZERO,
    INTEGER,
    ZERO,
    of_well_conditioned,
    positive_definite,
    rectangular,
    square,
    square_errors,
    well_conditioned,
)
from samples.spec import E, Op, S, V, given, real

# ------------------------------------------------------------------------------------------------ functions of matrices

FUNCTIONS = [
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
        "matrix_exp",
        "matrix_exp",
        [*square(), S("large", real(2, 2, low=-9, high=9))],
        [*square_errors(), INTEGER],
        supports_complex=True,
        method="matrix_exp",
    ),
    Op(
        "linalg.matrix_power",
        lambda torch, x, n: torch.linalg.matrix_power(well_conditioned(torch, x), n),
        [S(f"to the {n}", real(2, 2), n) for n in (1, 2, 3, 5, -1, -2)] + [V("to the 0", real(2, 2), 0)],
        [
            E(
                "not square",
                RuntimeError,
                r"linalg.matrix_power: A must be batches of square",
                real(2, 3),
                2,
                fn="matrix_power",
            )
        ],
        supports_complex=True,
    ),
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
]


def _cond(torch: Any, x: Any, p: Any = None) -> Any:
    if torch.__name__ == "torch" and p not in (None, 2, -2, "nuc"):
        # torch's own writes into the inverse that its backward pass needs.
        a = well_conditioned(torch, x)
        return torch.linalg.matrix_norm(a, p) * torch.linalg.matrix_norm(torch.linalg.inv(a), p)
    return torch.linalg.cond(well_conditioned(torch, x), p)


NORMS = [
    Op(
        "linalg.matrix_norm",
        "linalg.matrix_norm",
        [S(f"order {p}", real(3, 2), p) for p in ("fro", "nuc", float("inf"), -float("inf"), 1, -1, 2, -2)]
        + [
            S("dims", real(2, 3, 2), 1, (0, 2), as_complex=False),
            S("dims of nuc", real(2, 3, 2), "nuc", (2, 0), as_complex=False),
            S("keepdim", real(2, 3, 2), 2, (0, 1), True, as_complex=False),
            S("keepdim inf", real(2, 3, 2), float("inf"), keepdim=True, as_complex=False),
        ],
        [
            E("order", RuntimeError, r"linalg.matrix_norm: Order 3 not supported", real(2, 2), 3),
            E("vector", RuntimeError, r"linalg.matrix_norm: The input tensor A must have at least 2", real(2)),
            E("same dims", RuntimeError, r"dims must be different. Got \(0, 0\)", real(2, 2), "fro", (0, 0)),
        ],
        supports_complex=True,
    ),
    Op(
        "linalg.norm",
        "linalg.norm",
        [
            S("plain", real(3, 2)),
            S("vector", real(3), 3),
            S("matrix", real(3, 2), 1),
            S("nuc", real(3, 2), "nuc"),
            S("dim", real(3, 2), 3, 0, as_complex=False),
            S("dims", real(3, 2, 2), 1, (1, 2), as_complex=False),
            S("three dimensions", real(2, 2, 2), as_complex=False),
        ],
        [
            E(
                "3-d",
                RuntimeError,
                r"If dim is not specified but ord is, the input must be 1D or 2D. Got 3D",
                real(2, 2, 2),
                2,
            )
        ],
        supports_complex=True,
    ),
    Op(
        "linalg.cond",
        _cond,
        [S("plain", real(2, 2)), S("batch", real(2, 2, 2)), S("rectangular", real(3, 2))]
        + [S(f"order {p}", real(2, 2), p) for p in ("fro", "nuc", 1, -1, 2, -2, float("inf"))],
        [E("order", RuntimeError, r"linalg.cond got an invalid norm type: 3", real(2, 2), 3, fn="linalg.cond")],
        supports_complex=True,
    ),
    Op(
        "linalg.norm nuc",
        lambda torch, x, **kw: torch.norm(x, "nuc", **kw),
        [S("plain", real(3, 2)), S("batch", real(2, 3, 2), dim=(1, 2))],
    ),
    Op("nuclear_norm", "nuclear_norm", [S("plain", real(3, 2)), S("batch", real(2, 3, 2), (1, 2), True)]),
    Op("frobenius_norm", "frobenius_norm", [S("plain", real(3, 2), (0, 1)), S("dim", real(3, 2), (1,), True)]),
    Op(
        "linalg.matrix_rank",
        "linalg.matrix_rank",
        [
            V("full", real(3, 2)),
            V("zero", ZERO),
            V("batch", HALF_ZERO),
            V("hermitian", given([[1.0, 1.0], [1.0, 1.0]]), hermitian=True),
            V("rtol", given([[1.0, 0.0], [0.0, 1e-3]]), rtol=1e-2),
        ],
        differentiable=False,
        supports_complex=True,
    ),
]

PRODUCTS = [
    Op(
        "linalg.multi_dot",
        lambda torch, *xs: torch.linalg.multi_dot(xs),
        [
            S("two", real(2, 2), real(2, 2)),
            S("three", real(2, 3), real(3, 1), real(1, 2)),
            S("vectors", real(2), real(2, 3), real(3)),
            S("four", real(2, 1), real(1, 2), real(2, 1), real(1, 2), as_complex=False),
        ],
        [E("one", RuntimeError, r"multi_dot\(\): expected at least 2 tensors but got 1", real(2, 2))],
        supports_complex=True,
    ),
    Op(
        "linalg.vecdot",
        "linalg.vecdot",
        [
            S("vectors", real(3), real(3)),
            S("rows", real(2, 3), real(2, 3)),
            S("dim", real(2, 3), real(2, 3), dim=0),
            S("broadcast", real(2, 3), real(3)),
        ],
        supports_complex=True,
    ),
    Op(
        "linalg.cross",
        "linalg.cross",
        [S("vectors", real(3), real(3)), S("dim", real(3, 2), real(3, 2), dim=0)],
        supports_complex=True,
    ),
    Op("linalg.matmul", "linalg.matmul", [S("matrices", real(2, 3), real(3, 2))], supports_complex=True),
    Op(
        "linalg.vander",
        "linalg.vander",
        [S("plain", real(3)), S("N", real(2, 2), N=4), S("N of 2", real(2), N=2)],
        supports_complex=True,
    ),
    Op(
        "linalg.diagonal",
        "linalg.diagonal",
        [S("plain", real(3, 3)), S("offset", real(2, 3, 3), offset=1)],
        supports_complex=True,
        view=True,
    ),
]

OPS = [*FUNCTIONS, *NORMS, *PRODUCTS]
