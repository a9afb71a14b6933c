"""Samples of indexing: x[...] read with every kind of index, gather, index_select, scatter_add, masked_fill."""

from __future__ import annotations

from typing import Any

import numpy as np

from samples.spec import E, Op, S, Sample, T, V, given, index, integers, mask, real

BASIC: dict[str, tuple[tuple[int, ...], Any]] = {
    # Only numbers (a 0-d tensor of an integral dtype is one), slices, None and Ellipsis: a view.
    "number": ((3, 2), 1),
    "negative number": ((3, 2), -1),
    "numbers": ((3, 2), (0, 1)),
    "0-d tensor": ((3, 2), index(1)),
    "slice and 0-d tensor": ((3, 2), (slice(1, None), index(1))),
    "slice": ((4, 2), slice(1, 3)),
    "slice from": ((4, 2), slice(2, None)),
    "slice with step": ((5,), slice(0, 5, 2)),
    "slice with step from the middle": ((5, 2), slice(1, None, 3)),
    "negative bounds": ((5,), slice(-3, -1)),
    "slice beyond the end": ((3,), slice(1, 99)),
    "empty slice": ((3, 2), slice(2, 1)),
    "two slices": ((3, 4), (slice(0, 2), slice(1, 3))),
    "slice and number": ((3, 4), (slice(None), 2)),
    "everything": ((2, 3), slice(None)),
    "Ellipsis": ((2, 3), Ellipsis),
    "Ellipsis first": ((2, 2, 3), (Ellipsis, 1)),
    "Ellipsis in the middle": ((2, 2, 3), (1, Ellipsis, slice(0, 2))),
    "Ellipsis last": ((2, 3), (0, Ellipsis)),
    "Ellipsis for nothing": ((2, 3), (0, Ellipsis, 1)),
    "None": ((2, 3), None),
    "None among slices": ((2, 3), (slice(None), None, slice(1, None))),
    "two Nones": ((3,), (None, slice(None), None)),
    "Ellipsis and None": ((2, 3), (Ellipsis, None)),
    "empty tuple": ((2, 3), ()),
    "0-d Ellipsis": ((), Ellipsis),
    "0-d None": ((), None),
    "0-d empty tuple": ((), ()),
}

ADVANCED: dict[str, tuple[tuple[int, ...], Any]] = {
    # At least one tensor or list: a copy.
    "tensor": ((3, 2), index([2, 0])),
    "tensor with repeats": ((3, 2), index([1, 1, 0, 1])),
    "negative entries": ((3, 2), index([-1, 0, -3])),
    "matrix of indices": ((3, 2), index([[0, 1], [2, 2]])),
    "empty tensor": ((3, 2), index([])),
    "list": ((3, 2), [2, 0]),
    "list in a tuple": ((3, 2), ([2, 0],)),
    "nested list": ((3, 3), [[0, 1], [2, 0]]),  # torch takes it as the tuple ([0, 1], [2, 0])
    "int32 tensor": ((3, 2), given([2, 0], "int32")),
    "two tensors": ((3, 3), (index([0, 2, 0]), index([1, 1, 1]))),
    "two tensors that broadcast": ((3, 3), (index([[0], [2]]), index([1, 0]))),
    "tensor and number": ((3, 3), (index([0, 2]), 1)),
    "number and tensor": ((3, 3), (1, index([0, 2]))),
    "tensor and slice": ((3, 4), (index([0, 2]), slice(1, 3))),
    "slice and tensor": ((2, 4), (slice(None), index([0, 2, 2]))),
    "slice with step and tensor": ((3, 4), (slice(0, 3, 2), index([3, 0]))),
    "adjacent tensors": ((2, 2, 3), (slice(None), index([0, 1]), index([2, 0]))),
    "tensors apart": ((2, 2, 3), (index([0, 1]), slice(None), index([2, 0]))),
    "number and tensor apart": ((2, 2, 3), (0, slice(None), index([2, 0]))),
    "Ellipsis and tensor": ((2, 2, 3), (Ellipsis, index([2, 0]))),
    "tensor and Ellipsis": ((2, 2, 3), (index([1, 0, 1]), Ellipsis)),
    "None and tensor": ((3, 2), (None, index([2, 0]))),
    "tensor and None": ((3, 2), (index([2, 0]), None)),
    "None between tensors": ((3, 2), (index([2, 0]), None, index([1, 1]))),
    "mask": ((2, 3), mask([[True, False, True], [False, True, False]])),
    "mask of rows": ((3, 2), mask([True, False, True])),
    "mask as a list": ((3, 2), [True, False, True]),
    "mask of columns": ((2, 3), (slice(None), mask([True, False, True]))),
    "mask of nothing": ((3, 2), mask([False, False, False])),
    "mask of leading dimensions": ((2, 2, 2), mask([[True, False], [False, True]])),
    "mask and tensor": ((2, 3), (mask([True, True]), index([2, 0]))),
    "mask and slice": ((3, 3), (mask([True, False, True]), slice(0, 2))),
    "mask and number": ((3, 3), (mask([True, False, True]), 1)),
    "True": ((2, 3), True),
    "False": ((2, 3), False),
    "0-d mask": ((2, 3), mask(True)),
    "0-d tensor of a 0-d mask": ((), mask(True)),
}


def _getitem(torch: Any, x: Any, where: Any) -> Any:
    return x[where]


def reads(kinds: dict[str, tuple[tuple[int, ...], Any]]) -> list[Sample]:
    """A sample for each kind of index, on plain and on transposed memory."""
    samples = []
    for number, (name, (shape, where)) in enumerate(kinds.items()):
        samples.append(S(name, real(*shape), where, as_complex=number % 4 == 0))
        if len(shape) > 1:
            samples.append(S(f"{name}, transposed", real(*shape, layout="transposed"), where, as_complex=False))
    return samples


def _read(x: np.ndarray, where: Any) -> np.ndarray:
    return x[where]


READS = [
    Op(
        "__getitem__.view",
        _getitem,
        [*reads(BASIC), V("int64", integers(3), slice(1, None)), V("bool", mask([True, False]), 0)],
        errors=[
            E("out of range", IndexError, r"index 3 is out of bounds for dimension 0 with size 3", real(3, 2), 3),
            E("too many", IndexError, r"too many indices for tensor of dimension 2", real(3, 2), (0, 0, 0)),
            E("negative step", ValueError, r"step must be greater than zero", real(3), slice(None, None, -1)),
            E("float", IndexError, r"only integers, slices", real(3), 1.5),
            E("0-d", IndexError, r"invalid index of a 0-dim tensor", real(), 0),
        ],
        view=True,
        supports_complex=True,
        reference=_read,
    ),
    Op(
        "__getitem__.copy",
        _getitem,
        [
            *reads(ADVANCED),
            V("int64", integers(3), index([0, 0])),
            V("float32", real(3, dtype="float32"), index([0, 0])),
        ],
        errors=[
            E(
                "out of range",
                IndexError,
                r"index 3 is out of bounds for dimension 0 with size 3",
                real(3, 2),
                index([0, 3]),
            ),
            E(
                "mask",
                IndexError,
                r"shape of the mask \[2\] at index 0 does not match",
                real(3, 2),
                mask([True, False]),
            ),
            E(
                "float",
                IndexError,
                r"tensors used as indices must be long",
                real(3),
                given([0.0, 1.0], requires_grad=False),
            ),
            E(
                "broadcast",
                IndexError,
                r"shape mismatch: indexing tensors could not be broadcast together",
                real(3, 3),
                (index([0, 1]), index([0, 1, 2])),
            ),
        ],
        supports_complex=True,
    ),
]

# ---------------------------------------------------------------------------------------------- functions


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


FUNCTIONS = [
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
]

OPS = [*READS, *FUNCTIONS]
