"""Samples of choosing by a mask."""

from __future__ import annotations

import numpy as np

from samples.spec import E, Op, S, Same, T, V, given, index, integers, mask, real

OPS = [
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
        "masked_fill",
        "masked_fill",
        [
            S("number", real(2, 3), T((2, 3), "bool"), 1.5),
            S("whole number", real(2, 3), mask([True, False, True]), 0),
            S("0-d tensor", real(2, 3), mask([True, False, True]), real()),
            S(
                "0-d tensor without grad",
                real(2, 3),
                mask([[True], [False]]),
                real(requires_grad=False),
                as_complex=False,
            ),
            S("mask larger than self", real(3), T((2, 3), "bool"), 0.5, as_complex=False),
            S("0-d self", real(), mask(True), 0.5, as_complex=False),
            S("nothing masked", real(3), mask([False] * 3), 0.5, as_complex=False),
            S("keywords", real(3), mask=mask([True, False, True]), value=2.0, as_complex=False),
            S("empty", real(0, 3), mask([True, False, True]), 0.5, as_complex=False),
            S(
                "transposed",
                real(2, 3, layout="transposed"),
                T((2, 3), "bool", layout="strided"),
                1.5,
                as_complex=False,
            ),
            V("infinity", real(3), mask([True, False, True]), float("-inf")),
            V("int64", integers(3), mask([True, False, True]), 7),
            V("nan under the mask", given([float("nan"), 1.0]), mask([True, False]), 0.0),
            V("float32, 0-d float64", real(3, dtype="float32"), mask([True, False, True]), real()),
        ],
        errors=[
            E("mask", RuntimeError, r"masked_fill_? only supports boolean masks", real(2), index([0, 1]), 1.0),
            E(
                "value",
                RuntimeError,
                r"only supports a 0-dimensional value tensor",
                real(2),
                mask([True, False]),
                real(2),
            ),
            E("shapes", RuntimeError, r"must match the size of tensor", real(3), mask([True, False]), 1.0),
        ],
        supports_complex=True,
        method="masked_fill",
        inplace="masked_fill_",
        reference=lambda x, mask, value: np.where(mask, value, x),
    ),
    Op(
        "masked_select",
        "masked_select",
        [S("matrix", real(2, 3), T((2, 3), "bool")), S("broadcast", real(2, 3), mask([True, False, True]))],
        method="masked_select",
        supports_complex=True,
        extra=True,
    ),
    Op(
        "nonzero_static",
        "nonzero_static",
        [V("cut", index([1, 0, 2]), size=1), V("filled up", index([[1, 0], [0, 2]]), size=3, fill_value=7)],
        differentiable=False,
        method="nonzero_static",
    ),
    Op(
        "nonzero",
        "nonzero",
        [
            V("matrix", given([[0.0, 1.0], [2.0, 0.0]])),
            V("tuple", given([[0.0, 1.0], [2.0, 0.0]]), as_tuple=True),
            V("0-d", given(1.0)),
            V("bool", mask([True, False, True])),
        ],
        differentiable=False,
        method="nonzero",
    ),
    Op(
        "argwhere",
        "argwhere",
        [V("matrix", given([[0.0, 1.0], [2.0, 0.0]])), V("none", given([0.0]))],
        differentiable=False,
        method="argwhere",
    ),
    Op(
        "masked_scatter",
        "masked_scatter",
        [
            S("places", real(4), mask([True, False, True, False]), real(3)),
            S("broadcast", real(2, 2), mask([True, False]), real(2)),
        ],
        [
            E(
                "too few",
                RuntimeError,
                "Number of elements of source < number of ones in mask|expected source to have at least",
                real(3),
                mask([True, True, False]),
                real(1),
            )
        ],
        method="masked_scatter",
        inplace="masked_scatter_",
        supports_complex=True,
    ),
    Op(
        "_unsafe_masked_index",
        "_unsafe_masked_index",
        [
            S("vector", real(4), mask([True, False, True]), [index([1, 9, 1])], 2.5),
            S("rows", real(3, 2), mask([[True], [False]]), [index([2, -7])], 0.0),
            V("of nothing", real(0, 2, requires_grad=False), mask([False, False]), [index([2, 1]), index([0, 0])], 1.5),
        ],
    ),
    Op(
        "_unsafe_masked_index_put_accumulate",
        "_unsafe_masked_index_put_accumulate",
        [
            S("vector", real(4), mask([True, False, True]), [index([1, 9, 1])], real(3)),
            S("rows", real(3, 2), mask([[True], [False]]), [index([2, -7])], real(2, 2)),
            V("into nothing", real(0, requires_grad=False), mask([False]), [index([2])], real(1, requires_grad=False)),
        ],
    ),
]
