"""Samples of rounding, fractions, mantissas, neighbours."""

from __future__ import annotations

import numpy as np

from samples.pointwise import between, unary
from samples.shared import more
from samples.spec import E, Op, S, V, given, integers, nonzero, real

MISMATCH = r"The size of tensor a \(2\) must match the size of tensor b \(3\)"


OPS = [
    # Steps: flat wherever they are differentiable.
    unary("floor", between(-2, 2, (-2, -1, 0, 1, 2)), boolean=False, extra=True, reference=np.floor),
    unary("ceil", between(-2, 2, (-2, -1, 0, 1, 2)), boolean=False, extra=True, reference=np.ceil),
    unary("trunc", between(-2, 2, (-2, -1, 0, 1, 2)), boolean=False, extra=True, reference=np.trunc),
    unary(
        "round",
        between(-2, 2, (-1.5, -0.5, 0.5, 1.5)),
        boolean=False,
        extra=True,
        more=[V("decimals", real(2, 3), decimals=1), V("negative decimals", real(4, low=-99, high=99), decimals=-1)],
    ),
    unary(
        "frac",
        between(-2, 2, (-2, -1, 0, 1, 2)),
        integer=False,
        boolean=False,
        extra=True,
        reference=lambda x: np.fmod(x, 1),
    ),
    Op(
        "frexp",
        "frexp",
        [S("matrix", nonzero(2, 3)), S("0-d", nonzero()), V("float32", nonzero(3, dtype="float32"))],
        method="frexp",
    ),
    Op(
        "nextafter",
        "nextafter",
        [
            V("vectors", real(3, requires_grad=False), real(3, requires_grad=False)),
            V("float32", real(3, dtype="float32", requires_grad=False), real(dtype="float32", requires_grad=False)),
        ],
        differentiable=False,
        method="nextafter",
        inplace="nextafter_",
    ),
    Op(
        "copysign",
        "copysign",
        [
            S("tensors", nonzero(3), nonzero(3)),
            S("broadcast", nonzero(2, 1), nonzero(3)),
            S("number", nonzero(3), -2.0),
            V("zeros", given([1.0, -1.0, 0.0]), given([0.0, -0.0, -1.0])),
            V("int64", integers(3), given([1, -1, 1], "int64")),
        ],
        [E("shapes", RuntimeError, MISMATCH, real(2), real(3))],
        method="copysign",
        inplace="copysign_",
        reference=np.copysign,
    ),
    more("special.round", V("decimals", real(3), decimals=1)),
    more("nextafter", V("gradient", given([1.0, 2.0]), given([3.0, 2.0]))),
]
