"""Samples of operators on bits."""

from __future__ import annotations

import operator

import numpy as np

from samples.spec import E, Op, V, given, integers, mask, real

MISMATCH = r"The size of tensor a \(2\) must match the size of tensor b \(3\)"

BITWISE = [
    Op(
        name,
        name,
        [
            V("int64", given([12, 10, -3], "int64"), given([10, 3, 5], "int64")),
            V("broadcast", integers(2, 1), integers(3)),
            V("number", given([12, 10], "int64"), 6),
            V("number first", 6, given([12, 10], "int64")),
            V("bool", mask([True, False]), mask([True, True])),
            V("mixed", given([12, 10], "uint8"), given([10, 3], "int32")),
            V("empty", integers(0), integers(0)),
        ],
        [
            E("floats", RuntimeError, r"not implemented for '(Double|Float)'", real(2), real(2)),
            E("shapes", RuntimeError, MISMATCH, integers(2), integers(3)),
        ],
        differentiable=False,
        method=name,
        inplace=name + "_",
        reference=function,
    )
    for name, function in (
        ("bitwise_and", np.bitwise_and),
        ("bitwise_or", np.bitwise_or),
        ("bitwise_xor", np.bitwise_xor),
    )
]

for _op in BITWISE:  # methods are called on the first argument, which is a number in one of the samples
    for _sample in _op.samples:
        _sample.method = _sample.name != "number first"

SHIFTS = [
    Op(
        name,
        name,
        [
            V("int64", given([12, 10, 3], "int64"), given([1, 3, 2], "int64")),
            V("number", given([12, 10], "int64"), 2),
            V("broadcast", given([[8], [4]], "int64"), given([0, 1, 2], "int64")),
        ],
        [E("floats", RuntimeError, r"not implemented for '(Double|Float)'", real(2), real(2))],
        differentiable=False,
        method=name,
        inplace=name + "_",
        reference=function,
    )
    for name, function in (("bitwise_left_shift", np.left_shift), ("bitwise_right_shift", np.right_shift))
]


OPS = [
    *[
        Op(
            f"__{name}__",
            lambda torch, x, y, function=function: function(x, y),
            [
                V("bool", mask([True, True, False]), mask([True, False, False])),
                V("int64", given([6, 5], "int64"), given([3, 3], "int64")),
                V("int64 and number", given([6, 5], "int64"), 3),
                V("number and int64", 3, given([6, 5], "int64")),
                V("bool and bool number", mask([True, False]), True),
            ],
            differentiable=False,
            reference=function,
        )
        for name, function in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor))
    ],
    *BITWISE,
    *SHIFTS,
]
