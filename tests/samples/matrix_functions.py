"""Samples of ranks, exponentials and powers of matrices."""

from __future__ import annotations

from typing import Any

from samples.decompositions import HALF_ZERO, ZERO, square, well_conditioned
from samples.shared import more
from samples.solve import INTEGER, square_errors
from samples.spec import E, Op, S, V, given, real


def _cond(torch: Any, x: Any, p: Any = None) -> Any:
    if torch.__name__ == "torch" and p not in (None, 2, -2, "nuc"):
        # torch's own writes into the inverse that its backward pass needs.
        a = well_conditioned(torch, x)
        return torch.linalg.matrix_norm(a, p) * torch.linalg.matrix_norm(torch.linalg.inv(a), p)
    return torch.linalg.cond(well_conditioned(torch, x), p)


OPS = [
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
        "linalg.cond",
        _cond,
        [S("plain", real(2, 2)), S("batch", real(2, 2, 2)), S("rectangular", real(3, 2))]
        + [S(f"order {p}", real(2, 2), p) for p in ("fro", "nuc", 1, -1, 2, -2, float("inf"))],
        [E("order", RuntimeError, r"linalg.cond got an invalid norm type: 3", real(2, 2), 3, fn="linalg.cond")],
        supports_complex=True,
    ),
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
    more(
        "linalg.matrix_rank",
        V("atol", given([[1.0, 0.0], [0.0, 1e-3]], requires_grad=False), atol=1e-2),
        differentiable=False,
    ),
]
