"""Samples of comparisons, logic, the larger of two, bounds."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from samples.pointwise import SPECIAL, between, binary, mismatch
from samples.shared import more, refused
from samples.spec import E, Op, S, Same, Sample, T, V, distinct, given, integers, mask, real


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


def _clip(x: Any, min: Any = None, max: Any = None) -> Any:
    low = x if min is None else np.maximum(x, min)
    return low if max is None else np.minimum(low, max)


INSIDE = between(-2, 2, (-0.5, 0.7))
AT_THE_BOUNDS = [-0.5, 0.7, 0.0, -3.0, 3.0, float("nan")]
BOOL, COMPLEX = mask([True, False]), T((2,), "complex128")


OPS = [
    binary(
        "maximum",
        distinct,
        lambda *shape, **spec: T(shape, distinct=True, low=-1.9, high=2.2, **spec),
        number=None,
        inplace=None,
        more=[
            V("ties", given([1.0, 2.0, 3.0]), given([1.0, 3.0, 2.0])),
            V("tied with itself", real(2, 3), Same(0)),
            V("nan", given([1.0, float("nan"), 3.0]), given([float("nan"), 3.0, float("inf")])),
        ],
        reference=np.maximum,
    ),
    binary(
        "minimum",
        distinct,
        lambda *shape, **spec: T(shape, distinct=True, low=-1.9, high=2.2, **spec),
        number=None,
        inplace=None,
        more=[
            V("ties", given([1.0, 2.0, 3.0]), given([1.0, 3.0, 2.0])),
            V("nan", given([1.0, float("nan"), 3.0]), given([float("nan"), 3.0, float("-inf")])),
        ],
        reference=np.minimum,
    ),
    binary("fmax", distinct, lambda *s, **k: T(s, distinct=True, low=-1.9, **k), number=None, inplace=None, extra=True),
    binary("fmin", distinct, lambda *s, **k: T(s, distinct=True, low=-1.9, **k), number=None, inplace=None, extra=True),
    *COMPARISONS,
    *PREDICATES,
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
        "isin",
        "isin",
        [
            V("tensors", given([1, 2, 3], "int64"), given([2, 4], "int64")),
            V("inverted", given([1, 2, 3], "int64"), given([2, 4], "int64"), invert=True),
            V("unique", given([1, 2, 3], "int64"), given([2, 4], "int64"), assume_unique=True),
            V("number", given([1.0, 2.0]), 2.0),
            V("number first", 2, given([1, 2], "int64")),
            V("number by name", given([1.0, 2.0]), test_element=2.0),
            V("first by name", element=2, test_elements=given([1, 2], "int64")),
        ],
        differentiable=False,
    ),
    more(
        "allclose",
        V("tolerances", given([1.0, 2.0]), given([1.1, 2.1]), 0.2, 0.0),
        V("nan", given([float("nan")]), given([float("nan")]), rtol=0.0, atol=0.1, equal_nan=True),
        differentiable=False,
        view=None,
    ),
    more(
        "eq_",
        V("tensors", given([1.0, 2.0], requires_grad=False), given([1.0, 3.0], requires_grad=False)),
        fn=lambda torch, x, y: x.clone().eq_(y),
        differentiable=False,
    ),
    more("eq", V("number first", given([1.0]), 2), errors=[E("number first", TypeError, "", 2, real(2))]),
    refused("isin", E("bool", RuntimeError, "Unsupported input type encountered for isin", BOOL, real(2))),
]
