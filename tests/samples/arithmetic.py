"""Samples of sums, products, quotients, signs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from samples.pointwise import NOT_A_TENSOR, _python, between, binary, mismatch, unary
from samples.shared import more
from samples.spec import E, Op, S, Same, Sample, V, given, integers, mask, nonzero, positive, real

BOOL_NEGATION = E(
    "bool", RuntimeError, r"Negation, the `-` operator, on a bool tensor is not supported", mask([True, False])
)


def _scaled(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y, alpha=1: function(x, alpha * np.asarray(y))


def _divided(x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    quotient = np.true_divide(x, y)
    return {None: lambda q: q, "floor": np.floor, "trunc": np.trunc}[rounding_mode](quotient)


def quotients(name: str) -> list[Sample]:
    """Operands of rounded division whose quotients are not near a whole number."""
    return [
        S(f"{name} tensors", given([[7.3, -7.3], [5.2, -1.1]]), given([2.0, 3.0])),
        S(f"{name} number", given([7.3, -7.3, 5.2]), 2.5),
        V(f"{name} int64", given([7, -7, 5, -5], "int64"), given([2, 2, -3, -3], "int64")),
        V(f"{name} float by zero", given([1.0, -1.0, 0.0]), given([0.0, 0.0, 0.0])),
        V(f"{name} int64 and number", given([7, -7], "int64"), 2),
        V(f"{name} exact", given([6.0, -6.0]), given([3.0, 3.0])),
        V(f"{name} float32", given([7.3, -7.3], "float32"), given([2.0, 3.0], "float32")),
    ]


def rounded_division(mode: str) -> list[Sample]:
    """`quotients` for div(rounding_mode=mode)."""
    samples = quotients(mode)
    for sample in samples:
        sample.kwargs["rounding_mode"] = mode
        sample.as_complex = False
    return samples


ALPHA = [
    S("alpha", real(2, 3), real(3), alpha=2.5),
    S("whole alpha", real(2, 3), real(2, 3), alpha=-2),
    S("alpha and number", real(2, 3), 1.5, alpha=3),
    V("int64 alpha", integers(3), integers(3), alpha=2),
]
ALPHA_ERRORS = [
    E(
        "float alpha of integers",
        RuntimeError,
        r"For integral input tensors, argument alpha must not be a floating point number",
        integers(3),
        integers(3),
        alpha=0.5,
    )
]


def alpha_samples() -> list[Sample]:
    """Fresh copies: an `Op` puts its own seeds into its samples."""
    return [Sample(s.name, s.args, dict(s.kwargs), s.smooth, s.second) for s in ALPHA]


OPS = [
    unary("neg", supports_complex=True, boolean=False, reference=np.negative, errors=[BOOL_NEGATION, NOT_A_TENSOR]),
    unary("negative", boolean=False, reference=np.negative),
    unary("positive", supports_complex=True, boolean=False, inplace=None, view=None, reference=np.positive),
    unary("abs", nonzero, supports_complex=True, boolean=False, reference=np.abs),
    unary("absolute", nonzero, boolean=False, reference=np.abs),
    # torch calls the sign of NaN zero.
    unary("sign", nonzero, reference=lambda x: np.where(x > 0, 1, np.where(x < 0, -1, 0))),
    unary("sgn", nonzero, supports_complex=True, extra=True),
    unary("reciprocal", nonzero, supports_complex=True, reference=lambda x: 1 / x),
    Op(
        "__neg__",
        lambda torch, x: -x,
        [S("matrix", real(2, 3)), V("int64", integers(3))],
        errors=[BOOL_NEGATION],
        supports_complex=True,
    ),
    Op("__pos__", lambda torch, x: +x, [S("matrix", real(2, 3)), V("int64", integers(3))], view=None),
    Op("__abs__", lambda torch, x: abs(x), [S("matrix", nonzero(2, 3)), V("zero", given([0.0, -0.0]))]),
    Op(
        "__invert__",
        lambda torch, x: ~x,
        [V("bool", mask([True, False])), V("int64", integers(3))],
        errors=[E("float", TypeError, r"only implemented on integer and Boolean-type tensors", real(2))],
        differentiable=False,
    ),
    binary(
        "add",
        supports_complex=True,
        more=[S("with itself", real(2, 3), Same(0)), *alpha_samples()],
        errors=[*ALPHA_ERRORS, E("string", TypeError, r"argument 'other'.* must be Tensor, not str", real(2), "a")],
        reference=_scaled(np.add),
    ),
    binary(
        "sub",
        boolean=False,
        supports_complex=True,
        more=[S("with itself", real(2, 3), Same(0)), *alpha_samples()],
        errors=[
            *ALPHA_ERRORS,
            E(
                "bool",
                RuntimeError,
                r"Subtraction, the `-` operator, with two bool tensors",
                mask([True]),
                mask([True]),
            ),
        ],
        reference=_scaled(np.subtract),
    ),
    binary(
        "rsub",
        inplace=None,
        method=None,
        boolean=False,
        supports_complex=True,
        errors=[mismatch(r"The size of tensor a \(4\) must match the size of tensor b \(3\)")],
        reference=lambda x, y: y - x,
    ),
    binary(
        "mul",
        supports_complex=True,
        more=[S("with itself", real(2, 3), Same(0))],
        reference=np.multiply,
    ),
    binary("multiply", reference=np.multiply),
    binary(
        "div",
        right=nonzero,
        supports_complex=True,
        more=[
            S("by itself", nonzero(2, 3), Same(0)),
            V("by zero", given([1.0, -1.0, 0.0]), 0.0),
            *rounded_division("floor"),
            *rounded_division("trunc"),
        ],
        errors=[
            E("mode", RuntimeError, r"div expected rounding_mode to be one of", real(2), real(2), rounding_mode="up"),
            E(
                "integers by zero",
                RuntimeError,
                r"ZeroDivisionError",
                integers(2),
                given([0, 0], "int64"),
                rounding_mode="floor",
            ),
        ],
        reference=_divided,
    ),
    binary("divide", right=nonzero, reference=np.true_divide),
    binary("true_divide", right=nonzero, reference=np.true_divide),
    Op(
        "floor_divide",
        "floor_divide",
        [*quotients("floor"), V("broadcast", nonzero(2, 1), nonzero(3, requires_grad=False))],
        errors=[mismatch()],
        method="floor_divide",
        inplace="floor_divide_",
        differentiable=False,
    ),
    Op(
        "remainder",
        "remainder",
        [*quotients("remainder"), V("number on the left", 7.3, given([2.0, 3.0], requires_grad=False), method=False)],
        errors=[mismatch()],
        method="remainder",
        inplace="remainder_",
        reference=np.remainder,
    ),
    Op(
        "fmod",
        "fmod",
        quotients("fmod"),
        errors=[mismatch()],
        method="fmod",
        inplace="fmod_",
        reference=np.fmod,
    ),
    *_python("add", operator.add, real, real, supports_complex=True, reference=np.add),
    *_python("sub", operator.sub, real, real, supports_complex=True, reference=np.subtract),
    *_python("mul", operator.mul, real, real, supports_complex=True, reference=np.multiply),
    *_python("truediv", operator.truediv, nonzero, nonzero, supports_complex=True, reference=np.true_divide),
    *_python("mod", operator.mod, between(5.1, 5.7), between(2.1, 2.4), into_right=False, reference=np.remainder),
    Op(
        "__floordiv__",
        lambda torch, x, y: x // y,
        [
            V("tensors", given([7.3, -7.3]), given([2.0, 2.0])),
            V("number", given([7.3, -7.3]), 2),
            V("number on the left", 7.5, given([2.0, -2.0])),
            V("int64", given([7, -7], "int64"), 2),
        ],
        differentiable=False,
        reference=np.floor_divide,
    ),
    Op(
        "lerp",
        "lerp",
        [
            S("number", real(2, 3), real(3), 0.3),
            S("tensor", real(2, 3), real(3), real(2, 1)),
            S("far", real(2), real(2), 0.8),
        ],
        method="lerp",
        inplace="lerp_",
        extra=True,
    ),
    Op(
        "addcmul",
        "addcmul",
        [S("plain", real(2, 3), real(3), real(2, 1)), S("value", real(2, 3), real(2, 3), real(2, 3), value=0.5)],
        method="addcmul",
        inplace="addcmul_",
        supports_complex=True,
        extra=True,
    ),
    Op(
        "addcdiv",
        "addcdiv",
        [S("plain", real(2, 3), real(3), nonzero(2, 1)), S("value", real(2), real(2), nonzero(2), value=0.5)],
        method="addcdiv",
        inplace="addcdiv_",
        supports_complex=True,
        extra=True,
    ),
    Op(
        "gcd",
        "gcd",
        [V("int64", integers(4), integers(4)), V("broadcast", integers(3, 1), integers(2, dtype="int32"))],
        differentiable=False,
        method="gcd",
    ),
    Op("lcm", "lcm", [V("int64", integers(4), integers(4))], differentiable=False, method="lcm", inplace="lcm_"),
    Op(
        "heaviside",
        "heaviside",
        [
            V("tensors", given([-1.0, 0.0, 2.0], requires_grad=False), given([0.5, 0.5, 0.5], requires_grad=False)),
            V("int64", given([-1, 0, 2], "int64"), given([7], "int64")),
        ],
        [
            E(
                "dtypes",
                RuntimeError,
                "heaviside is not yet implemented for tensors with different dtypes",
                given([1.0], requires_grad=False),
                integers(1),
            )
        ],
        differentiable=False,
        method="heaviside",
        inplace="heaviside_",
        reference=np.heaviside,
    ),
    more("div", S("number first", 2.0, positive(2), rounding_mode="trunc", method=False)),
    more("rsub", S("alpha", real(3), real(3), alpha=2.0)),
    more(
        "div_",
        S("floor", real(2), 0.3, rounding_mode="trunc", second=False),
        fn=lambda torch, x, *args, **kwargs: (x * 1).div_(*args, **kwargs),
    ),
    more(
        "gcd_",
        V("int64", given([12, 9], "int64"), given([8, 6], "int64")),
        fn=lambda torch, x, y: x.clone().gcd_(y),
        differentiable=False,
    ),
    more("__rsub__", S("reflected", real(2), real(2)), fn=lambda torch, x, y: x.__rsub__(y)),
    more("__rtruediv__", S("reflected", real(2), positive(2)), fn=lambda torch, x, y: y.__rtruediv__(x)),
]
