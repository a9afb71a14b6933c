"""Samples of powers, roots, exponentials, logarithms."""

from __future__ import annotations

import operator

import numpy as np

from samples.pointwise import NOT_A_TENSOR, _python, between, binary, unary
from samples.shared import more, refused
from samples.spec import E, Op, S, T, V, given, integers, mask, nonzero, positive, real

EXPONENTS = [0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.5, 2.0, 0.0]

POWERS = [
    binary(
        "pow",
        positive,
        real,
        number=2.5,
        boolean=False,
        supports_complex=True,
        more=[
            *[S(f"exponent {e!r}", positive(2, 3), e) for e in EXPONENTS],
            S("negative base", nonzero(2, 3), 3, as_complex=False),
            S("negative base, negative exponent", nonzero(2, 3), -2, as_complex=False),
            S("number as base", 2.5, real(2, 3), method=False),
            S("whole number as base", 3, real(2, 3), method=False, as_complex=False),
            V("number as base of int64", 2, given([0, 1, 3], "int64"), method=False),
            V("zero base", given([0.0, 0.0, 0.0, 0.0]), given([0.0, 1.0, 2.0, 0.5])),
            V("zero as base", 0.0, given([0.0, 1.0, 2.0]), method=False),
            V("one as base", 1.0, real(3), method=False),
            V("zero to 0", given([0.0, 1.0]), 0),
            V("zero to 1", given([0.0, 1.0]), 1),
            V("zero to 2", given([0.0, -1.0]), 2),
            V("zero to 3", given([0.0, -1.0]), 3),
            V("negative to a fraction", given([-1.0, 4.0]), 0.5),
            V("int64 to 3", given([-2, 3], "int64"), 3),
            V("int64 to a fraction", given([2, 4], "int64"), 0.5),
        ],
        errors=[
            E(
                "integers to negative powers",
                RuntimeError,
                r"Integers to negative integer powers are not allowed",
                integers(3),
                -1,
            )
        ],
    ),
    Op(
        "float_power",
        "float_power",
        [S("tensors", positive(2, 3), real(3)), S("number", positive(3), 2), V("int64", given([1, 2], "int64"), 2)],
        method="float_power",
        extra=True,
    ),
]

NAN, INF = float("nan"), float("inf")
BOOL, COMPLEX = mask([True, False]), T((2,), "complex128")


OPS = [
    unary("square", supports_complex=True, reference=np.square),
    unary("sqrt", positive, supports_complex=True, reference=np.sqrt),
    unary("rsqrt", positive, supports_complex=True, reference=lambda x: 1 / np.sqrt(x)),
    unary("exp", supports_complex=True, reference=np.exp, errors=[NOT_A_TENSOR]),
    unary("exp2", supports_complex=True, reference=np.exp2),
    unary("expm1", supports_complex=True, reference=np.expm1),
    unary("log", positive, supports_complex=True, reference=np.log, errors=[NOT_A_TENSOR]),
    unary("log2", positive, supports_complex=True, reference=np.log2),
    unary("log10", positive, supports_complex=True, reference=np.log10),
    unary("log1p", between(-0.7, 2.0), supports_complex=True, reference=np.log1p),
    binary("logaddexp", number=None, integer=False, boolean=False, inplace=None, extra=True, reference=np.logaddexp),
    *POWERS,
    *_python("pow", operator.pow, positive, real, supports_complex=True),
    Op(
        "ldexp",
        "ldexp",
        [
            S("matrix", real(2, 3), integers(2, 3, low=0)),
            S("broadcast", real(2, 1), integers(3, low=0)),
            S("float exponents", real(3), real(3)),
            V("float32", real(3, dtype="float32"), integers(3, low=0)),
        ],
        method="ldexp",
        inplace="ldexp_",
    ),
    Op(
        "vander",
        "vander",
        [
            # Torch's own backward pass of `vander` fails.
            V("square", positive(3, requires_grad=False)),
            V("columns", positive(3, requires_grad=False), 2),
            V("increasing", positive(2, requires_grad=False), 3, True),
        ],
    ),
    Op(
        "linalg.vander",
        "linalg.vander",
        [S("plain", real(3)), S("N", real(2, 2), N=4), S("N of 2", real(2), N=2)],
        supports_complex=True,
    ),
    Op(
        "hypot",
        "hypot",
        [
            S("tensors", nonzero(3), nonzero(3)),
            S("broadcast", nonzero(2, 1), nonzero(3)),
            V("origin", given([0.0, 3.0]), given([0.0, 4.0])),
            V("large", given([1e300]), given([1e300])),
        ],
        [E("integers", NotImplementedError, "not implemented for 'Long'", integers(2), integers(2))],
        method="hypot",
        inplace="hypot_",
        reference=np.hypot,
    ),
    Op(
        "logaddexp2",
        "logaddexp2",
        [
            S("tensors", real(3), real(3)),
            S("broadcast", real(2, 1), real(3)),
            V("far", given([1000.0, -1000.0, -INF]), given([999.0, 0.0, -INF])),
        ],
        method="logaddexp2",
        reference=np.logaddexp2,
    ),
    more(
        "linalg.vander", S("0-d", positive(), N=3), errors=[E("one", RuntimeError, "N must be greater than 1", real(1))]
    ),
    more(
        "float_power_",
        S("square", positive(2), 2.0),
        fn=lambda torch, x, *args: (x * 1).float_power_(*args),
        supports_float32=False,
    ),
    more("__ipow__", S("square", positive(2), 2.0, second=False), fn=lambda torch, x, *args: (x * 1).__ipow__(*args)),
    more(
        "ldexp",
        S("tensors", real(2), given([1.0, 2.0])),
        errors=[E("number first", TypeError, "must be Tensor", 2, integers(2))],
    ),
    refused("float_power", E("none", TypeError, "invalid combination", real(2), None)),
    refused("linalg.vander", E("bool", RuntimeError, "but got Bool", BOOL)),
]
