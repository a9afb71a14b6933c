"""Samples of conjugates, angles, real and imaginary parts."""

from __future__ import annotations

import numpy as np

from samples.pointwise import unary
from samples.spec import E, Op, S, V, integers, nonzero, positive, real

OPS = [
    unary("conj", fn="conj", supports_complex=True, inplace=None, view=None, extra=True, reference=np.conj),
    unary("angle", nonzero, supports_complex=True, inplace=None, extra=True),
    Op(
        "real",
        "real",
        [S("complex", real(2, 3, dtype="complex128")), S("complex 0-d", real(dtype="complex128"))],
        view=True,
        extra=True,
    ),
    Op(
        "imag",
        "imag",
        [S("complex", real(2, 3, dtype="complex128")), S("complex 0-d", real(dtype="complex128"))],
        errors=[E("real", RuntimeError, r"imag is not implemented for tensors with non-complex dtypes", real(2))],
        view=True,
        extra=True,
    ),
    Op(
        "polar",
        "polar",
        [
            S("tensors", positive(3), real(3)),
            S("broadcast", positive(2, 1), real(3)),
            V("float32", positive(2, dtype="float32"), real(2, dtype="float32")),
        ],
        [
            E("dtypes", RuntimeError, "Expected object of scalar type", real(2), real(2, dtype="float32")),
            E("integers", RuntimeError, "Expected both inputs to be", integers(2), integers(2)),
        ],
    ),
    Op(
        "resolved",
        lambda torch, x: torch.resolve_neg(torch.resolve_conj(x)) * 1,
        [S("real", real(2))],
        supports_complex=True,
    ),
]
