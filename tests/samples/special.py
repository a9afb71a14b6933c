"""Samples of special functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from samples.pointwise import between, binary, unary
from samples.shared import more, refused
from samples.spec import E, Op, S, T, V, given, integers, mask, nonzero, positive, real


def _scipy(name: str) -> Callable[..., Any]:
    def call(x: np.ndarray) -> Any:
        from scipy import special

        return getattr(special, name)(x)

    return call


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


NAN, INF = float("nan"), float("inf")

UNARY = [
    Op(
        name,
        name,
        [
            S("matrix", real(2, 3)),
            S("0-d", real()),
            V("int64", integers(3)),
            V("empty", real(0)),
            V("odd", given([NAN, INF])),
        ],
        method=name,
        inplace=name + "_",
        reference=function,
        **options,
    )
    for name, function, options in (
        ("deg2rad", np.deg2rad, {}),
        ("rad2deg", np.rad2deg, {}),
        ("sinc", np.sinc, {"supports_complex": True}),
    )
] + [
    Op(
        "conj_physical",
        lambda torch, x: torch.conj_physical(x) * 1,
        [S("matrix", real(2, 3)), S("0-d", real()), V("int64", integers(2))],
        supports_complex=True,
    ),
    Op("_neg_view", lambda torch, x: torch._neg_view(x) * 1, [S("matrix", real(2, 2))], supports_complex=True),
    Op(
        "nan_to_num",
        "nan_to_num",
        [
            S("finite", real(2, 3)),
            V("odd", given([NAN, INF, -INF, 1.0])),
            V("replaced", given([NAN, INF, -INF]), 1.0, 2.0, 3.0),
            V("by name", given([NAN, INF, -INF]), nan=1.0, posinf=2.0, neginf=-3.0),
            V("int64", integers(3)),
        ],
        method="nan_to_num",
        inplace="nan_to_num_",
    ),
    Op(
        "erfinv",
        "erfinv",
        [S("inside", real(2, 2, low=-0.9, high=0.9)), V("ends", given([1.0, -1.0, 0.0, 2.0]))],
        method="erfinv",
        inplace="erfinv_",
    ),
    Op(
        "polygamma",
        "polygamma",
        [
            S("digamma", 0, positive(3)),
            S("trigamma", 1, positive(2, 2)),
            S("second", 2, positive(2)),
            V("int64", 1, given([1, 2], "int64")),
        ],
        [E("negative", RuntimeError, r"polygamma\(n, x\) does not support negative n", -1, real(2))],
    ),
    Op(
        "polygamma_",
        lambda torch, x, n: x.clone().polygamma_(n),
        [S("trigamma", positive(3), 1)],
        [E("integers", RuntimeError, "can't be cast to the desired output type Long", given([1, 2], "int64"), 1)],
    ),
    Op(
        "mvlgamma_",
        lambda torch, x, p: x.clone().mvlgamma_(p),
        [S("of two", positive(3, low=1.0), 2)],
        [E("integers", RuntimeError, "can't be cast to the desired output type", given([3, 4], "int64"), 1)],
    ),
    Op(
        "fill",
        "fill",
        [
            S("number", real(3), 2.0),
            S("tensor", real(3), given(2.5)),
            V("int64", integers(2), 3),
            V("below an unsigned type", given([1], "uint8"), -9),
        ],
        [
            E("too large", RuntimeError, "without overflow", given([1], "uint8"), 300),
            E("matrix", RuntimeError, "0-dimension value tensor", real(2), real(2)),
        ],
        inplace="fill_",
    ),
]
BOOL, COMPLEX = mask([True, False]), T((2,), "complex128")


OPS = [
    unary("erf", extra=True, reference=_scipy("erf")),
    unary("erfc", extra=True, reference=_scipy("erfc")),
    binary("xlogy", right=positive, extra=True, reference=lambda x, y: x * np.log(np.float64(y))),
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
        "xlogy_",
        lambda torch, x, y: x.clone().xlogy_(y),
        [S("tensors", real(3), positive(3), second=False), S("number", real(3), 2.5)],
    ),
    *UNARY,
    more(
        "logit_",
        S("eps", given([0.2, 0.6]), eps=0.1, second=False),
        fn=lambda torch, x, **kwargs: (x * 1).logit_(**kwargs),
    ),
    more("method polygamma", S("first", positive(2), 1), fn=lambda torch, x, n: x.polygamma(n)),
    more(
        "special.xlog1py",
        S("tensors", real(2), positive(2)),
        errors=[E("numbers", TypeError, "invalid combination", 2, 3)],
    ),
    refused("mvlgamma", E("bool", RuntimeError, "may not be a boolean tensor", BOOL, 1)),
]
