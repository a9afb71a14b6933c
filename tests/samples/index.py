"""Samples of `x[...]`."""

from __future__ import annotations

from typing import Any

import numpy as np

from samples.shape import view
from samples.shared import more
from samples.spec import E, Op, S, Sample, V, given, index, integers, mask, real

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


def _set_part(torch: Any, x: Any, y: Any) -> Any:
    result = x * 1
    result[1:] = y
    return result


OPS = [
    view(
        "iteration",
        [S("rows", real(2, 3)), S("numbers", real(3))],
        fn=lambda torch, x: list(x),
        method=None,
        errors=[E("0-d", TypeError, r"iteration over a 0-d tensor", real())],
    ),
    *READS,
    Op(
        "unravel_index",
        "unravel_index",
        [V("matrix", index([3, 4, 5]), (2, 3)), V("0-d", index(5), (2, 3)), V("one size", index([1, 2]), 4)],
        differentiable=False,
    ),
    Op(
        "index_put",
        "index_put",
        [
            S("one", real(3), (index([2, 0]),), real(2)),
            S("accumulated", real(3), (index([1, 1]),), real(2), accumulate=True),
            S("two", real(2, 3), (index([0, 1]), index([2, 2])), real(2)),
            S("broadcast", real(2, 3), (index([0, 1]),), real()),
            S("mask", real(3), (mask([True, False, True]),), real(2)),
        ],
        method="index_put",
        inplace="index_put_",
        supports_complex=True,
    ),
    more(
        "index_put_",
        S("accumulated", real(3), (index([1, 1]),), real(2), accumulate=True),
        fn=lambda torch, x, *args, **kwargs: (x * 1).index_put_(*args, **kwargs),
    ),
    more("__setitem__", S("part", real(3), real(2)), fn=_set_part),
]
