"""Samples of sorting, searching, what is distinct."""

from __future__ import annotations

from typing import Any

from samples.shared import more, refused, without
from samples.spec import E, Op, S, T, V, distinct, given, index, mask, real

NAN, INF = float("nan"), float("inf")
NO_SUCH_DIM = "Dimension out of range"
EDGES = given([0.0, 1.0, 3.0], requires_grad=False)


def _sorted_last(found: Any) -> Any:
    """The elements that `unique` finds, or how often it finds them, in an order that does not depend on the library."""
    return (found[-1] if isinstance(found, tuple) else found).sort()[0]


BOOL, COMPLEX = mask([True, False]), T((2,), "complex128")


OPS = [
    Op(
        "unique_consecutive",
        "unique_consecutive",
        [
            V("runs", index([1, 1, 2, 2, 1])),
            V("inverse and counts", index([[1, 1], [2, 1]]), True, True),
            V("dim", given([[1.0, 2.0], [1.0, 2.0], [3.0, 2.0]], requires_grad=False), return_counts=True, dim=0),
            V("empty", index([])),
        ],
        differentiable=False,
        method="unique_consecutive",
    ),
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
        [E("dim", IndexError, NO_SUCH_DIM, real(2, 3), 2)],
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
        [E("dim", IndexError, NO_SUCH_DIM, real(3), -2)],
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
            E("dim", IndexError, NO_SUCH_DIM, real(3), 1, 1),
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
    Op(
        "_unique",
        "_unique",
        [
            V("sorted", given([3, 1, 3, 2], "int64")),
            V("inverse", given([3.0, 1.0, 3.0], requires_grad=False), True, True),
        ],
        differentiable=False,
    ),
    more(
        "_unique",
        V("unsorted", given([3, 1, 3], "int64"), sorted=False),
        differentiable=False,
        fn=lambda torch, *args, **kwargs: torch._unique(*args, **kwargs)[0].sort()[0],
    ),
    Op(
        "sorted parts",
        lambda torch, x: torch.stack([*torch.var_mean(x, 0, unbiased=False, keepdim=True)]),
        [S("columns", distinct(3, 2))],
    ),
    more(
        "unique",
        V("unsorted", given([3, 1, 3], "int64"), sorted=False),
        V("unsorted slices", given([[3, 1], [1, 2], [3, 1]], "int64"), False, True, True, 0),
        differentiable=False,
        fn=lambda torch, *args, **kwargs: _sorted_last(torch.unique(*args, **kwargs)),
    ),
    more(
        "topk",
        S("unsorted", distinct(4), 2, sorted=False),
        fn=lambda torch, *args, **kwargs: torch.topk(*args, **kwargs)[0].sort()[0],
    ),
    refused(
        "kthvalue",
        E("bool", NotImplementedError, without("kthvalue_cpu", "Bool"), BOOL, 1),
        E("complex", NotImplementedError, without("kthvalue_cpu", "ComplexDouble"), COMPLEX, 1),
    ),
    refused("unique", E("complex", NotImplementedError, without("unique.*", "ComplexDouble"), COMPLEX)),
    refused(
        "bucketize",
        E("complex", NotImplementedError, without("searchsorted_out_cpu", "ComplexDouble"), COMPLEX, real(2)),
    ),
]
