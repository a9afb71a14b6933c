"""Samples of special functions, and of functions of what numbers are made of."""

from __future__ import annotations

import math
from typing import Any

from samples.pointwise import between
from samples.spec import Op, S, V, given, integers, mask, nonzero, positive, real


def special(name: str, domain: Any = real, *, edges: Any = (0.0, 1.0, -1.0, math.inf, math.nan), **options: Any) -> Op:
    """An `Op` of torch.special with one operand."""
    samples = [
        S("matrix", domain(2, 3)),
        S("0-d", domain()),
        S("empty", domain(0, 3)),
        S("strided", domain(3, layout="strided")),
        V("edges", given(list(edges), requires_grad=False)),
        V("float32", given([0.25, 0.5], "float32")),
        V("int64", given([1, 2, 3], "int64")),
    ]
    return Op(name, f"special.{name}", samples, **options)


def pair(name: str, first: Any, second: Any, *, fn: str | None = None, grad: bool = True, **options: Any) -> Op:
    """An `Op` of two operands; without `grad` the first has no derivative."""
    know = {} if grad else {"requires_grad": False}
    samples = [
        S("matrices", first(2, 2, **know), second(2, 2)),
        S("broadcast", first(2, 1, **know), second(3)),
        S("0-d", first(**know), second()),
        S("empty", first(0, 2, **know), second(2)),
        V("float32 and float64", first(2, dtype="float32", **know), second(2)),
    ]
    return Op(name, fn or name, samples, **options)


POLYNOMIALS = (
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
    "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
    "legendre_polynomial_p",
)  # fmt: skip
BESSEL = (
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0",
)  # fmt: skip


def polynomial(name: str) -> Op:
    """An orthogonal polynomial, of a degree for each element or of one."""
    x = between(-0.9, 0.9)
    samples = [
        V("degrees", x(4, 1, requires_grad=False), given([0, 1, 2, 3, 7, -1], "int64")),
        V("a number", x(3, requires_grad=False), 4),
        V("float32", x(3, dtype="float32", requires_grad=False), 3),
        V("empty", x(0, requires_grad=False), 3),
    ]
    return Op("special." + name, f"special.{name}", samples, differentiable=False)


OPS = [
    special("entr", positive),
    special("erfcx"),
    special("ndtr"),
    special("ndtri", between(0.1, 0.9)),
    special("log_ndtr", between(-6.0, 3.0)),
    special("i0e", nonzero),
    special("i1", nonzero),
    special("i1e", nonzero),
    special("expit"),
    special("psi", positive, edges=(1.0, 2.0, math.nan)),
    special("gammaln", positive, edges=(1.0, 2.0, math.nan)),
    Op("i0", "i0", [S("matrix", real(2, 3)), S("0-d", real()), V("int64", integers(3))], method="i0", inplace="i0_"),
    *(
        Op(
            "special." + name,
            f"special.{name}",
            [
                V("matrix", positive(2, 3, requires_grad=False)),
                V("0-d", positive(requires_grad=False)),
                V("float32", positive(3, dtype="float32", requires_grad=False)),
                V("large", given([10.0, 25.0, 100.0], requires_grad=False)),
            ],
            differentiable=False,
        )
        for name in BESSEL
    ),
    *(polynomial(name) for name in POLYNOMIALS),
    Op(
        "special.xlogy",
        "special.xlogy",
        [
            S("matrices", real(2, 2), positive(2, 2)),
            S("broadcast", real(2, 1), positive(3)),
            S("number", real(3), 2.5),
            S("number first", 2.5, positive(3), method=False),
            V("zeros", given([0.0, 0.0, 0.0, 1.0, 1.0]), given([0.0, -1.0, math.nan, 0.0, 2.0])),
            V("zeros by a number", given([0.0, 1.0]), 0.0),
            V("integers", integers(3, low=1), integers(3, low=1)),
            V("float32 and float64", real(2, dtype="float32"), positive(2)),
        ],
        method="xlogy",
        inplace="xlogy_",
    ),
    Op(
        "special.xlog1py",
        "special.xlog1py",
        [
            S("matrices", real(2, 2), positive(2, 2)),
            S("number", real(3), 2.5),
            S("number first", 2.5, positive(3)),
            V("zeros", given([0.0, 0.0, 0.0, 1.0]), given([-1.0, -2.0, math.nan, -1.0])),
        ],
    ),
    Op(
        "logit",
        "logit",
        [
            S("matrix", between(0.1, 0.9)(2, 3)),
            S("0-d", between(0.1, 0.9)()),
            S("eps", between(0.1, 0.9)(3), 1e-3),
            V("outside", given([-0.5, 0.0, 0.5, 1.0, 1.5])),
            V("clamped", given([-0.5, 0.0, 0.5, 1.0, 1.5]), eps=0.25),
            V("int64", given([0, 1], "int64")),
        ],
        method="logit",
        inplace="logit_",
    ),
    Op(
        "mvlgamma",
        "mvlgamma",
        [S("matrix", between(2.0, 5.0)(2, 3), 3), S("0-d", between(2.0, 5.0)(), 1), V("int64", integers(3, low=4), 2)],
        method="mvlgamma",
        inplace="mvlgamma_",
    ),
    pair("igamma", positive, positive, grad=False, method="igamma", inplace="igamma_"),
    pair("igammac", positive, positive, grad=False, method="igammac"),
    Op(
        "special.zeta",
        "special.zeta",
        [
            S("matrices", between(1.5, 4.0)(2, 2, requires_grad=False), positive(2, 2)),
            S("number", 2.5, positive(3)),
            V("integers", given([2, 3], "int64"), given([1, 2], "int64")),
        ],
    ),
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
        "gcd",
        "gcd",
        [V("int64", integers(4), integers(4)), V("broadcast", integers(3, 1), integers(2, dtype="int32"))],
        differentiable=False,
        method="gcd",
    ),
    Op("lcm", "lcm", [V("int64", integers(4), integers(4))], differentiable=False, method="lcm", inplace="lcm_"),
    *(
        Op(
            name,
            name,
            [
                V("floats", given([0.0, -0.0, -1.0, math.inf, -math.inf, math.nan], requires_grad=False)),
                V("int64", integers(3)),
                V("bool", mask([True, False])),
                V("0-d", real(requires_grad=False)),
            ],
            differentiable=False,
            method=name,
        )
        for name in ("signbit", "isposinf", "isneginf", "isreal")
    ),
    Op(
        "bincount",
        "bincount",
        [
            V("counts", given([0, 3, 1, 3], "int64")),
            V("minlength", given([0, 1], "int64"), minlength=5),
            V("weights", given([0, 2, 2], "int64"), given([0.5, 1.0, 2.0], requires_grad=False)),
            V("empty", given([], "int64")),
        ],
        differentiable=False,
        method="bincount",
    ),
    Op(
        "histc",
        "histc",
        [
            V("range of the input", real(10, requires_grad=False), 4),
            V("range given", real(10, requires_grad=False), bins=4, min=-1, max=1),
            V("one value", given([2.0, 2.0], requires_grad=False), 3),
        ],
        differentiable=False,
        method="histc",
    ),
]
