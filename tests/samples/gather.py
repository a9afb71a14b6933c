"""Samples of reading and writing at positions along a dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from samples.shared import more, refused
from samples.spec import E, Op, S, Sample, T, V, given, index, integers, mask, nonzero, real


def _gather(x: np.ndarray, dim: int, indices: np.ndarray, **_: Any) -> np.ndarray:
    if not x.ndim:
        return x.reshape(1)[indices]
    keep = tuple(slice(None) if d == dim % x.ndim else slice(0, n) for d, n in enumerate(indices.shape))
    return np.take_along_axis(x[keep], indices, dim)


def _scatter_add(x: np.ndarray, dim: int, indices: np.ndarray, source: np.ndarray) -> np.ndarray:
    result = np.atleast_1d(x.copy())
    indices, source = np.atleast_1d(indices), np.atleast_1d(source)
    for cell in np.ndindex(indices.shape):
        target = list(cell)
        target[dim] = indices[cell]
        result[tuple(target)] += source[cell]
    return result.reshape(x.shape)


def placed(reduce: str, domain: Any = real) -> list[Sample]:
    """Samples of `index_reduce`."""
    return [
        S(f"{reduce}", domain(3, 2), 0, index([0, 2, 0]), domain(3, 2), reduce),
        S(f"{reduce}, dim", domain(2, 3), 1, index([1, 1]), domain(2, 2), reduce),
        S(f"{reduce}, alone", domain(3), 0, index([0, 0]), domain(2), reduce, include_self=False),
    ]


OUT_OF_RANGE = "Dimension out of range"


OPS = [
    Op(
        "gather",
        "gather",
        [
            S("rows", real(3, 2), 0, index([[0, 2], [1, 0]])),
            S("columns", real(2, 3), 1, index([[0, 2, 2], [1, 0, 0]])),
            S("negative dim", real(2, 3), -1, index([[0, 2], [1, 0]]), as_complex=False),
            S("keywords", real(2, 3), dim=1, index=index([[0], [2]]), as_complex=False),
            S("smaller index", real(3, 3), 0, index([[2, 1]]), as_complex=False),
            S("repeats", real(3), 0, index([1, 1, 1, 0])),
            S("0-d", real(), 0, index(0), as_complex=False),
            S("0-d, indices", real(), 0, index([0, 0]), as_complex=False),
            S("empty index", real(3, 2), 0, T((0, 2), "int64"), as_complex=False),
            S("sparse_grad off", real(3), 0, index([1, 0]), sparse_grad=False, as_complex=False),
            S("transposed", real(2, 3, layout="transposed"), 1, index([[0, 2], [1, 0]]), as_complex=False),
            V("int64", integers(3), 0, index([2, 1])),
        ],
        errors=[
            E(
                "range",
                RuntimeError,
                r"index 3 is out of bounds for dimension 0 with size 3",
                real(3),
                0,
                index([3]),
            ),
            E(
                "dims",
                RuntimeError,
                r"Index tensor must have the same number of dimensions as input tensor",
                real(3, 2),
                0,
                index([0]),
            ),
            E(
                "dtype",
                RuntimeError,
                r"gather\(\): Expected dtype int32/int64 for index",
                real(3),
                0,
                given([0.0], requires_grad=False),
            ),
            E("dim", IndexError, r"Dimension out of range", real(3), 1, index([0])),
            E("size", RuntimeError, r"Size does not match at dimension 1", real(3, 2), 0, index([[0, 1, 2]])),
        ],
        supports_complex=True,
        method="gather",
        reference=lambda x, dim, index, sparse_grad=False: _gather(x, dim, index),
    ),
    Op(
        "index_select",
        "index_select",
        [
            S("rows", real(3, 2), 0, index([0, 2])),
            S("columns", real(2, 3), 1, index([2, 0])),
            S("negative dim", real(2, 3), -1, index([1]), as_complex=False),
            S("keywords", real(2, 3), dim=0, index=index([1, 1]), as_complex=False),
            S("repeats", real(3), 0, index([1, 1, 0, 1])),
            S("0-d index", real(3, 2), 0, index(1), as_complex=False),
            S("0-d", real(), 0, index([0]), as_complex=False),
            S("empty index", real(3, 2), 0, index([]), as_complex=False),
            S("int32", real(3), 0, given([1, 0], "int32"), as_complex=False),
            S("transposed", real(2, 3, layout="transposed"), 1, index([2, 0]), as_complex=False),
        ],
        errors=[
            E(
                "range",
                IndexError,
                r"index out of range in self",
                real(3),
                0,
                index([3]),
            ),
            E(
                "dtype",
                RuntimeError,
                r"Expected dtype int32 or int64 for index",
                real(3),
                0,
                given([0.0], requires_grad=False),
            ),
            E("dims", IndexError, r"Index is supposed to be a vector", real(3), 0, index([[0]])),
            E("dim", IndexError, r"Dimension out of range", real(3), 1, index([0])),
        ],
        supports_complex=True,
        method="index_select",
    ),
    Op(
        "scatter_add",
        "scatter_add",
        [
            S("rows", real(3, 2), 0, index([[0, 2], [1, 0]]), real(2, 2)),
            S("columns", real(2, 3), 1, index([[0, 2], [1, 0]]), real(2, 2), as_complex=False),
            S("negative dim", real(2, 3), -1, index([[0, 2, 2]]), real(1, 3), as_complex=False),
            S("collisions", real(3), 0, index([1, 1, 1, 0]), real(4)),
            S("larger source", real(3), 0, index([1, 1]), real(4, requires_grad=False), as_complex=False),
            S("keywords", real(3), dim=0, index=index([2, 0]), src=real(2), as_complex=False),
            S("0-d", real(), 0, index(0), real(), as_complex=False),
            S("empty index", real(3), 0, index([]), real(0), as_complex=False),
            S("source without grad", real(3), 0, index([1, 1]), real(2, requires_grad=False), as_complex=False),
            S("self without grad", real(3, requires_grad=False), 0, index([1, 1]), real(2), as_complex=False),
            S(
                "layouts",
                real(2, 3, layout="transposed"),
                1,
                index([[0, 2], [1, 0]], layout="transposed"),
                real(2, 2, layout="strided"),
                as_complex=False,
            ),
            V("int64", integers(3), 0, index([1, 1]), integers(2)),
        ],
        errors=[
            E(
                "range",
                RuntimeError,
                r"index 3 is out of bounds for dimension 0 with size 3",
                real(3),
                0,
                index([3]),
                real(1),
            ),
            E(
                "dtype",
                RuntimeError,
                r"scatter\(\): Expected self\.dtype to be equal to src\.dtype",
                real(3),
                0,
                index([0]),
                real(1, dtype="float32"),
            ),
            E(
                "index dtype",
                RuntimeError,
                r"scatter\(\): Expected dtype int32/int64 for index",
                real(3),
                0,
                given([0.0], requires_grad=False),
                real(1),
            ),
            E(
                "source",
                RuntimeError,
                r"Expected index \[3\] to be no larger than self \[3\] .* than src \[2\]",
                real(3),
                0,
                index([0, 1, 2]),
                real(2),
            ),
        ],
        supports_complex=True,
        method="scatter_add",
        inplace="scatter_add_",
        reference=lambda x, dim, index, src: _scatter_add(x, dim, index, src),
    ),
    Op(
        "scatter",
        "scatter",
        [S("tensor", real(3), 0, index([2, 0]), real(2)), S("number", real(3), 0, index([2, 0]), 1.5)],
        method="scatter",
        inplace="scatter_",
        extra=True,
    ),
    Op(
        "index_add",
        "index_add",
        [
            S("rows", real(3, 2), 0, index([2, 0]), real(2, 2)),
            S("collisions, alpha", real(3), 0, index([1, 1]), real(2), alpha=2),
        ],
        method="index_add",
        inplace="index_add_",
        extra=True,
    ),
    Op("take", "take", [S("matrix", real(2, 3), index([0, 5, 5]))], method="take", extra=True),
    Op(
        "take_along_dim",
        "take_along_dim",
        [S("columns", real(2, 3), index([[0], [2]]), 1), S("flat", real(2, 3), index([0, 5]))],
        method="take_along_dim",
        extra=True,
    ),
    Op(
        "index_reduce",
        "index_reduce",
        [*placed("prod", nonzero), *placed("mean"), *placed("amax"), *placed("amin")],
        [E("reduction", RuntimeError, "Expected reduce to be one of", real(3), 0, index([0]), real(1), "sum")],
        method="index_reduce",
        inplace="index_reduce_",
    ),
    Op(
        "index_copy",
        "index_copy",
        [
            S("rows", real(3, 2), 0, index([2, 0]), real(2, 2)),
            S("columns", real(2, 3), -1, index([1]), real(2, 1)),
            V("int64", integers(3), 0, index([1]), integers(1)),
        ],
        [E("dtypes", RuntimeError, "same dtype", real(3), 0, index([1]), real(1, dtype="float32"))],
        method="index_copy",
        inplace="index_copy_",
        supports_complex=True,
    ),
    Op(
        "index_fill",
        "index_fill",
        [
            S("number", real(3, 2), 0, index([2, 0]), 1.5),
            S("tensor", real(2, 3), -1, index([1]), real()),
            S("an index twice", real(3), 0, index([0, 0, 1]), real()),
            S("by name", real(2, 2), dim=1, index=index([0]), value=2.0),
            V("int64", integers(3), 0, index([1]), 7),
        ],
        [
            E("vector", RuntimeError, "only supports a 0-dimensional value tensor", real(3), 0, index([1]), real(2)),
            E("dim", IndexError, OUT_OF_RANGE, real(3), 1, index([1]), 0.0),
        ],
        method="index_fill",
        inplace="index_fill_",
        supports_complex=True,
    ),
    Op(
        "put",
        "put",
        [
            S("places", real(2, 2), index([3, 0]), real(2)),
            S("accumulated", real(3), index([1, 1]), real(2), True),
            S("from the end", real(3), index([-1]), real(1)),
        ],
        [
            E("sizes", IndexError, "same number of elements", real(3), index([0, 1]), real(3)),
            E("index", IndexError, "out of range", real(3), index([3]), real(1)),
        ],
        method="put",
        inplace="put_",
        supports_complex=True,
    ),
    Op(
        "take_along_dim, from the end",
        "take_along_dim",
        [S("dim", real(2, 3), index([[-1], [0]]), 1)],
        [E("flat", RuntimeError, "index -1 is out of bounds", real(2, 2), index([-1, 2]))],
    ),
    Op("gather, empty index", "gather", [V("uint8", real(3), 0, given([], "uint8"))]),
    more(
        "scatter",
        S("value", real(3), 0, index([1]), 2.0),
        S("by name", real(3), dim=0, index=index([1]), value=2.0),
        V("reduced", real(3, requires_grad=False), 0, index([1]), 2.0, reduce="multiply"),
    ),
    more(
        "scatter_reduce",
        V("without self", real(3, requires_grad=False), 0, index([0, 0]), real(2), "mean", include_self=False),
    ),
    more(
        "index_reduce_",
        V("without self", real(3), 0, index([1]), real(1), "prod", include_self=False),
        fn=lambda torch, x, *args, **kwargs: (x * 1).index_reduce_(*args, **kwargs),
    ),
    more(
        "scatter_",
        S("value", real(3), 0, index([1]), value=2.0),
        V("reduced", real(3, requires_grad=False), 0, index([1]), 2.0, reduce="add"),
        fn=lambda torch, x, *args, **kwargs: (x * 1).scatter_(*args, **kwargs),
    ),
    more(
        "index_add",
        V("bool", mask([True, False]), 0, index([1]), mask([True])),
        V("0-d", mask(True), 0, index([0]), mask(True)),
    ),
    refused(
        "index_reduce",
        E("float index", RuntimeError, "Expected dtype int32/int64 for index", real(2), 0, real(1), real(1), "prod"),
        E("too few", RuntimeError, r"Number of indices \(2\)", real(3), 0, index([0, 1]), real(1), "prod"),
        E("shapes", RuntimeError, "source tensor shape must match", real(2, 3), 0, index([0]), real(1, 2), "amax"),
    ),
]
