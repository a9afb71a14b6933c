"""Samples of pointwise operators that compare, test, clamp, choose between operands or change their dtype."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from samples.pointwise import SPECIAL, between, mismatch
from samples.spec import (
    Attr,
    E,
    Op,
    S,
    Same,
    Sample,
    T,
    V,
    given,
    integers,
    mask,
    nonzero,
    real,
)

# ---------------------------------------------------------------------------------------------- comparisons


def comparison_samples() -> list[Sample]:
    """What every comparison is tried on: equal, smaller and greater entries, numbers, mixed dtypes, NaN."""
    return [
        V("same shape", given([1.0, 2.0, 3.0]), given([3.0, 2.0, 1.0])),
        V("broadcast", given([[1.0], [2.0]]), given([1.0, 2.0, 3.0])),
        V("0-d", given(1.0), given([0.0, 1.0, 2.0])),
        V("number", given([1.0, 2.0, 3.0]), 2),
        V("fraction", given([1, 2, 3], "int64"), 1.5),
        V("int64 and float32", given([1, 2, 3], "int64"), given([1.5, 2.0, 2.5], "float32")),
        V("bool", mask([True, False]), mask([True, True])),
        V("nan and infinity", given([float("nan"), float("inf"), 0.0]), given([float("nan"), float("inf"), -0.0])),
        V("empty", real(0, 3), real(3)),
        V("strided", given([1.0, 2.0, 3.0], layout="strided"), given([3.0, 2.0, 1.0])),
    ]


COMPARISONS = [
    op
    for name, function in [(name, getattr(operator, name)) for name in ("eq", "ne", "lt", "le", "gt", "ge")]
    for op in (
        Op(
            name,
            name,
            comparison_samples(),
            errors=[mismatch()],
            differentiable=False,
            method=name,
            reference=function,
        ),
        Op(
            f"__{name}__",
            lambda torch, x, y, function=function: function(x, y),
            [*comparison_samples(), V("number on the left", 2, given([1.0, 2.0, 3.0]))],
            differentiable=False,
            reference=function,
        ),
    )
]

PREDICATES = [
    *[
        Op(
            name,
            name,
            [
                V("special", given(SPECIAL)),
                V("int64", integers(3)),
                V("complex", given([complex("nan+1j"), complex("infj"), 1j], "complex128", requires_grad=False)),
            ],
            differentiable=False,
            method=name,
            reference=getattr(np, name),
        )
        for name in ("isnan", "isinf", "isfinite")
    ],
    *[
        Op(
            name,
            name,
            [
                V("bool", mask([True, True, False]), mask([True, False, False])),
                V("float64", given([0.0, 1.5, float("nan")]), given([0.0, 0.0, 1.0])),
                V("broadcast mixed", integers(2, 1), given([0.0, 1.0, 2.0])),
            ],
            differentiable=False,
            method=name,
            reference=getattr(np, name),
        )
        for name in ("logical_and", "logical_or", "logical_xor")
    ],
    Op(
        "logical_not",
        "logical_not",
        [V("bool", mask([True, False])), V("float64", given([0.0, 2.0])), V("int64", given([0, 3], "int64"))],
        differentiable=False,
        method="logical_not",
        reference=np.logical_not,
    ),
    Op(
        "isclose",
        "isclose",
        [
            V("near", given([1.0, 1.0, 1.0]), given([1.0, 1.0 + 1e-9, 1.1])),
            V("nan", given([float("nan"), 1.0]), given([float("nan"), 1.0]), equal_nan=True),
            V("tolerances", given([1.0, 1.0]), given([1.05, 1.2]), rtol=0.0, atol=0.1),
        ],
        differentiable=False,
        method="isclose",
        reference=np.isclose,
        extra=True,
    ),
    Op(
        "allclose",
        "allclose",
        [V("near", given([1.0, 1.0]), given([1.0, 1.0 + 1e-9])), V("far", given([1.0, 1.0]), given([1.0, 1.1]))],
        differentiable=False,
        method="allclose",
        reference=np.allclose,
    ),
    Op(
        "equal",
        "equal",
        [
            V("equal", given([1.0, 2.0]), given([1.0, 2.0])),
            V("not equal", given([1.0, 2.0]), given([1.0, 2.5])),
            V("other shape", given([1.0, 2.0]), given([[1.0, 2.0]])),
        ],
        differentiable=False,
        method="equal",
        reference=np.array_equal,
    ),
]

# ---------------------------------------------------------------------------------------------- clamp and where


def _clip(x: Any, min: Any = None, max: Any = None) -> Any:
    low = x if min is None else np.maximum(x, min)
    return low if max is None else np.minimum(low, max)


INSIDE = between(-2, 2, (-0.5, 0.7))
AT_THE_BOUNDS = [-0.5, 0.7, 0.0, -3.0, 3.0, float("nan")]

CHOICES = [
    Op(
        "clamp",
        "clamp",
        [
            S("both", INSIDE(2, 3), -0.5, 0.7),
            S("min", INSIDE(2, 3), min=-0.5),
            S("max", INSIDE(2, 3), max=0.7),
            S("whole numbers", between(-2, 2, (-1, 1))(2, 3), -1, 1),
            S("tensors", real(2, 3), given([-0.51, -0.6, -0.7]), given([0.71, 0.8, 0.9])),
            S("min tensor", real(2, 3), min=given([[-0.5], [0.2]])),
            S("max tensor", real(2, 3), max=given([0.71, 0.8, 0.9])),
            S("bounds without grad", real(3), given([-0.5] * 3, requires_grad=False), given([0.5] * 3)),
            S("0-d", given(0.3), -0.5, 0.7),
            S("empty", real(0, 3), -0.5, 0.7),
            S("transposed", INSIDE(2, 3, layout="transposed"), -0.5, 0.7),
            V("at the bounds", given(AT_THE_BOUNDS), -0.5, 0.7),
            V("at tensor bounds", given(AT_THE_BOUNDS), given([-0.5] * 6), given([0.7] * 6)),
            V("crossed bounds", given([-1.0, 0.0, 1.0]), 0.5, -0.5),
            V("crossed tensor bounds", given([-1.0, 0.0, 1.0]), given([0.5] * 3), given([-0.5] * 3)),
            V("int64", integers(5), -1, 2),
            V("int64 and a fraction", integers(5), -1.5, 2.5),
            V("float32", real(5, dtype="float32"), -0.5, 0.7),
        ],
        errors=[E("no bound", RuntimeError, r"At least one of 'min' or 'max' must not be None", real(2))],
        method="clamp",
        inplace="clamp_",
        reference=_clip,
    ),
    *[
        Op(
            name,
            name,
            [
                S("number", between(-2, 2, (0.5,))(2, 3), 0.5),
                S("tensor", real(2, 3), given([0.5, 0.6, -0.3])),
                V("at the bound", given([0.5, 0.0, 1.0]), 0.5),
                V("int64", integers(4), 1),
            ],
            method=name,
            inplace=name + "_",
            reference=function,
        )
        for name, function in (("clamp_min", np.maximum), ("clamp_max", np.minimum))
    ],
    Op("clip", "clip", [S("both", INSIDE(2, 3), -0.5, 0.7)], method="clip", inplace="clip_", reference=_clip),
    Op(
        "where",
        "where",
        [
            S("same shape", T((2, 3), "bool"), real(2, 3), real(2, 3)),
            S("broadcast all", mask([[True], [False]]), real(3), real(2, 3)),
            S("0-d", mask([True, False, True]), real(), real()),
            S("0-d condition", mask(True), real(2), real(2)),
            S("number on the left", mask([True, False, True]), 1.5, real(3)),
            S("number on the right", mask([True, False, True]), real(2, 3), 0),
            S("empty", T((0, 3), "bool"), real(0, 3), real(3)),
            S("same tensor twice", mask([True, False, True]), real(3), Same(1)),
            S("layouts", T((2, 3), "bool", layout="transposed"), real(2, 3, layout="transposed"), real(3)),
            V("numbers", mask([True, False]), 1.0, 2.0),
            V("whole numbers", mask([True, False]), 1, 2),
            V("mixed dtypes", mask([True, False]), real(2, dtype="float32"), real(2)),
            V("int64 and float32", mask([True, False]), integers(2), real(2, dtype="float32")),
            V("float32 and 0-d float64", mask([True, False]), real(2, dtype="float32"), real()),
            V("unchosen nan", mask([True, False]), given([1.0, float("nan")]), given([float("inf"), 2.0])),
        ],
        errors=[
            E(
                "condition",
                RuntimeError,
                r"where expected condition to be a boolean tensor",
                real(2, requires_grad=False),
                real(2),
                real(2),
            ),
            E("shapes", RuntimeError, r"must match the size of tensor", mask([True, False]), real(3), real(3)),
        ],
        supports_complex=True,
        reference=np.where,
    ),
    Op(
        "where.method",
        lambda torch, x, condition, other: x.where(condition, other),
        [S("tensors", real(2, 3), mask([True, False, True]), real(3)), S("number", real(3), mask([True] * 3), 0.5)],
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
]

# ---------------------------------------------------------------------------------------------- dtypes


def _cast(name: str) -> Op:
    samples = [V("float64", given([-1.5, 0.0, 2.5])), V("float32", given([-1.5, 0.0, 2.5], "float32"))]
    samples.append(V("int64", given([-1, 0, 2], "int64")))
    fn: Callable[..., Any] = lambda torch, x: getattr(x, name)()
    return Op(f"Tensor.{name}", fn, samples, view=None, supports_float32=False)


CASTS = [
    *[_cast(name) for name in ("float", "double", "int", "long", "bool")],
    Op(
        "Tensor.to",
        lambda torch, x, *args, **kwargs: x.to(*args, **kwargs),
        [
            S("same dtype", real(3), Attr("float64")),
            V("float32", real(3), Attr("float32")),
            V("from float32", real(3, dtype="float32"), Attr("float64")),
            V("keyword", real(3), dtype=Attr("float32")),
            V("int64", given([-1.5, 2.5]), Attr("int64")),
            V("complex128", real(3), Attr("complex128")),
            V("copy", real(3), Attr("float64"), copy=True),
            V("as a tensor is", real(3), tensor=T((1,), "float32", requires_grad=False)),
            V("as a number is", given([-1.5, 2.5]), 1j),
        ],
        view=None,
        supports_float32=False,
    ),
    Op(
        "Tensor.type_as",
        lambda torch, x, y: x.type_as(y),
        [V("float32", real(3), T((1,), "float32", requires_grad=False))],
        view=None,
        supports_float32=False,
    ),
]

OPS = [*COMPARISONS, *PREDICATES, *CHOICES, *CASTS]
