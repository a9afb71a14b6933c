"""Samples of sorting, ranking, searching and counting."""

from __future__ import annotations

from samples.spec import E, Op, S, V, distinct, given, index, integers, mask, real

NAN, INF = float("nan"), float("inf")
OUT_OF_RANGE = "Dimension out of range"
EDGES = given([0.0, 1.0, 3.0], requires_grad=False)

OPS = [
    Op(
        "sort",
        "sort",
        [
            S("last", distinct(2, 3)),
            S("first", distinct(3, 2), 0),
            S("descending", distinct(2, 3), -1, True),
            S("by name", distinct(2, 3), dim=-2, descending=True),
            S("stable", distinct(4), stable=True),
            S("strided", distinct(2, 3, layout="strided")),
            S("0-d", real()),
            V("ties, stable", given([1.0, 0.0, 1.0, 0.0]), stable=True),
            V("ties, stable and descending", given([1.0, 0.0, 1.0, 0.0]), descending=True, stable=True),
            V("nan", given([NAN, 1.0, -INF, INF])),
            V("empty", real(0, 3), 0),
            V("bool", mask([True, False]), 0),
            V("int64", given([3, 1, 2], "int64")),
        ],
        [E("dim", IndexError, OUT_OF_RANGE, real(2, 3), 2)],
        method="sort",
    ),
    Op(
        "argsort",
        "argsort",
        [
            V("last", distinct(2, 3)),
            V("first", distinct(3, 2), 0),
            V("descending", distinct(2, 3), dim=1, descending=True),
            V("stable", given([1.0, 0.0, 1.0]), stable=True),
        ],
        [E("dim", IndexError, OUT_OF_RANGE, real(3), -2)],
        differentiable=False,
        method="argsort",
    ),
    Op("msort", "msort", [S("rows", distinct(3, 2)), S("vector", distinct(3)), S("0-d", real())], method="msort"),
    Op(
        "topk",
        "topk",
        [
            S("last", distinct(2, 3), 2),
            S("first", distinct(3, 2), 1, 0),
            S("smallest", distinct(2, 3), 2, largest=False),
            S("unsorted, all", distinct(3), 3, sorted=True),
            S("none", distinct(3), 0, second=False),
            V("nan", given([NAN, 1.0, 2.0]), 2),
            V("int64", given([3, 1, 2], "int64"), k=2, dim=-1),
        ],
        [
            E("too many", RuntimeError, "selected index k out of range", real(3), 4),
            E("dim", IndexError, OUT_OF_RANGE, real(3), 1, 1),
        ],
        method="topk",
    ),
    Op(
        "kthvalue",
        "kthvalue",
        [
            S("last", distinct(2, 3), 2),
            S("first, kept", distinct(3, 2), 1, 0, True),
            S("by name", distinct(2, 3), k=3, dim=-1, keepdim=True),
            S("0-d", real(), 1),
            V("nan", given([NAN, 1.0, 2.0]), 3),
        ],
        [E("k", RuntimeError, "selected number k out of range|selected index k out of range", real(3), 4)],
        method="kthvalue",
    ),
    Op(
        "median",
        "median",
        [
            S("all", distinct(2, 3)),
            S("dim", distinct(2, 3), 1),
            S("first dim, kept", distinct(3, 2), 0, True),
            S("by name", distinct(2, 3), dim=-1, keepdim=True),
            S("0-d", real()),
            V("even", given([4.0, 1.0, 3.0, 2.0])),
            V("nan", given([NAN, 1.0, 2.0]), torch_first=False),  # whose tangent is NaN in torch
            V("int64", given([3, 1, 2], "int64")),
        ],
        [E("dim", IndexError, OUT_OF_RANGE, real(2, 3), 2)],
        method="median",
    ),
    *[
        Op(
            name,
            name,
            [
                S("vector", distinct(4), 0),
                S("last", distinct(2, 3), -1),
                S("first", distinct(3, 2), dim=0),
                S("0-d", real(), 0),
                V("nan", given([1.0, NAN, 2.0]), 0),
                V("bool", mask([False, True, False]), 0),
                V("int64", integers(4), 0),
                V("empty", real(0, 2), 0),
            ],
            [E("dim", IndexError, OUT_OF_RANGE, real(3), 1)],
            method=name,
        )
        for name in ("cummax", "cummin")
    ],
    Op(
        "aminmax",
        "aminmax",
        [
            S("all", distinct(2, 3)),
            S("dim", distinct(2, 3), dim=1),
            S("kept", distinct(2, 3), dim=0, keepdim=True),
            S("0-d", real()),
            V("nan", given([NAN, 1.0])),
            V("int64", integers(2, 3), dim=-1),
        ],
        [E("empty", RuntimeError, "Expected reduction dim|cannot compute aminmax", real(0))],
        method="aminmax",
    ),
    # ------------------------------------------------------------------------------------------------- searching
    Op(
        "searchsorted",
        "searchsorted",
        [
            V("vector", EDGES, given([-1.0, 0.0, 2.0, 3.0, 9.0])),
            V("right", EDGES, given([-1.0, 0.0, 2.0, 3.0, 9.0]), right=True),
            V("side", EDGES, given([0.0, 3.0]), side="right"),
            V("int32", EDGES, given([0.0, 3.0]), out_int32=True),
            V("rows", given([[0.0, 1.0], [5.0, 6.0]]), given([[0.5], [5.5]])),
            V("number", EDGES, 2.0),
            V("sorter", given([3.0, 0.0, 1.0]), given([0.5, 2.0]), sorter=index([1, 2, 0])),
        ],
        [
            E(
                "rows",
                RuntimeError,
                "first N-1 dimensions of boundaries tensor and input value tensor must match",
                real(2, 3),
                real(3, 2),
            ),
            E(
                "both sides",
                RuntimeError,
                "side and right can't be set to opposites",
                EDGES,
                given([1.0]),
                side="left",
                right=True,
            ),
        ],
        differentiable=False,
    ),
    Op(
        "bucketize",
        "bucketize",
        [
            V("left", given([[-1.0, 0.0], [2.0, 3.0]]), EDGES),
            V("right", given([0.0, 3.0]), EDGES, right=True),
            V("int32", given([0.0, 3.0]), EDGES, out_int32=True),
            V("number", 2.0, EDGES),
        ],
        [E("matrix", RuntimeError, "boundaries tensor must be 1 dimension", real(2), real(2, 2))],
        differentiable=False,
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
    Op(
        "count_nonzero",
        "count_nonzero",
        [
            V("all", given([[0.0, 1.0], [2.0, 0.0]])),
            V("dim", given([[0.0, 1.0], [2.0, 0.0]]), 1),
            V("dims", given([[0, 1], [2, 0]], "int64"), dim=(0, 1)),
            V("bool", mask([True, False]), dim=-1),
        ],
        [E("dim", IndexError, OUT_OF_RANGE, real(2), 1)],
        differentiable=False,
        method="count_nonzero",
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
        "unique",
        "unique",
        [
            V("sorted", given([3, 1, 3, 2], "int64")),
            V("inverse", given([3.0, 1.0, 3.0], requires_grad=False), return_inverse=True),
            V("counts", given([3, 1, 3], "int64"), True, False, True),
            V("rows", given([[1, 2], [0, 1], [1, 2]], "int64"), dim=0),
        ],
        differentiable=False,
        method="unique",
    ),
]
