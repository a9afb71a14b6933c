"""Order: sorting, the largest and smallest, searching in what is sorted, unique elements.

NaN counts as the largest number, as in torch (and as NumPy's sort has it).  All sorts are stable, for torch's are on
the CPU, whether one asks or not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.said_once import say_once
from .dims import normalize_dim
from .gather import _along
from .promotion import as_array, operand, result_dtype, sortable, unsupported
from .storage import shape_text


def sort(
    a: np.ndarray, dim: int = -1, descending: bool = False, stable: bool | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """`a` sorted along `dim`, and the indices that sort it."""
    indices = argsort(a, dim, descending, bool(stable))
    if not a.ndim:
        return a.copy(), indices
    return a[_along(indices, normalize_dim(dim, a.ndim))], indices


def argsort(a: np.ndarray, dim: int = -1, descending: bool = False, stable: bool = False) -> np.ndarray:
    """The indices that sort `a` along `dim`."""
    if a.dtype.kind in "cW":
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    dim = normalize_dim(dim, a.ndim)
    if not a.ndim:
        return np.zeros_like(a, dtype=np.int64)
    a = sortable(a)
    if not descending:
        return a.argsort(dim, kind="stable")
    # Equal elements keep their order when both the input and the result are reversed.
    back = (slice(None),) * dim + (slice(None, None, -1),)
    indices = a[back].argsort(dim, kind="stable")
    np.subtract(a.shape[dim] - 1, indices, out=indices)
    return indices[back].copy()


def topk(
    a: np.ndarray, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The `k` largest (or smallest) elements along `dim`, and their indices."""
    if a.dtype.kind in "cW":
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    if a.dtype.kind == "b":
        raise RuntimeError("topk does not support bool dtypes on CPU")
    dim = normalize_dim(dim, a.ndim)
    n = a.shape[dim] if a.ndim else 1
    if not 0 <= k <= n:
        raise RuntimeError("selected index k out of range")
    if not a.ndim:
        return a.copy(), np.zeros_like(a, dtype=np.int64)
    first = (slice(None),) * dim
    if k == n or k == 0 or n < 32:
        indices = argsort(a, dim, largest)[(*first, slice(k))]
        return a[_along(indices, dim)], indices.copy()
    keys = sortable(a)
    if largest:
        indices = keys.argpartition(n - k, dim)[(*first, slice(n - k, None))]
    else:
        indices = keys.argpartition(k - 1, dim)[(*first, slice(k))]
    indices = np.sort(indices, dim)  # so that equal elements come in their order
    values = a[_along(indices, dim)]
    if sorted:
        order = _along(argsort(values, dim, largest), dim)
        return values[order], indices[order]
    return values, indices


def kthvalue(a: np.ndarray, k: int, dim: int = -1, keepdim: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The `k`-th smallest element along `dim`, counted from 1, and its index."""
    if a.dtype.kind in "bcW":
        unsupported("kthvalue_cpu", a.dtype)
    dim = normalize_dim(dim, a.ndim)
    n = a.shape[dim] if a.ndim else 1
    if n == 0:
        raise IndexError(f"kthvalue(): Expected reduction dim {dim} to have non-zero size.")
    if not 1 <= k <= n:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    if not a.ndim:
        return a.copy(), np.zeros_like(a, dtype=np.int64)
    part = sortable(a).argpartition(k - 1, dim)
    indices = part[(slice(None),) * dim + (slice(k - 1, k),)]
    values = a[_along(indices, dim)]
    if keepdim:
        return values, indices.copy()
    return values.squeeze(dim), indices.squeeze(dim).copy()


def _warn_of_strides(what: str) -> None:
    say_once(
        f"torch.searchsorted(): {what} tensor is non-contiguous, this will lower the performance due to extra data "
        f"copy when converting non-contiguous tensor to contiguous, please use contiguous {what} tensor if possible. "
        "This message will only appear once per program."
    )


def searchsorted(
    sorted_sequence: np.ndarray,
    input: Any,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: np.ndarray | None = None,
) -> np.ndarray:
    """Where the elements of `input` would be inserted to keep `sorted_sequence` sorted, along the last dimension."""
    for values in (sorted_sequence, input):
        if values.dtype.kind in "cW" if hasattr(values, "dtype") else isinstance(values, complex):
            unsupported("searchsorted_out_cpu", result_dtype(sorted_sequence, values))
    if side is not None:
        if side not in ("left", "right"):
            raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
        if right and side == "left":
            raise RuntimeError(
                "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
            )
    if not sorted_sequence.flags.c_contiguous:
        _warn_of_strides("boundary")
    if hasattr(input, "flags") and not input.flags.c_contiguous:
        _warn_of_strides("input value")
    where = side or ("right" if right else "left")
    dtype = np.int32 if out_int32 else np.int64
    if not hasattr(input, "dtype"):
        input = operand(input, result_dtype(sorted_sequence, input))
    if input.ndim == 0 and sorted_sequence.ndim != 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({sorted_sequence.ndim}) and input value's dim(0) numel(1)"
        )
    if sorter is not None:
        sorted_sequence = np.take_along_axis(sorted_sequence, sorter, -1)
    sorted_sequence, input = sortable(sorted_sequence), sortable(input)
    if sorted_sequence.ndim == 1:
        found = sorted_sequence.searchsorted(input.reshape(-1), where)  # type: ignore[call-overload]
        return found.reshape(input.shape).astype(dtype, copy=False)
    if sorted_sequence.shape[:-1] != input.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor "
            f"{shape_text(sorted_sequence.shape)} and input value tensor {shape_text(input.shape)}"
        )
    result = np.empty_like(input, dtype=dtype, order="C")
    for i in np.ndindex(input.shape[:-1]):
        result[i] = sorted_sequence[i].searchsorted(input[i], where)  # type: ignore[call-overload]
    return result


def bucketize(input: Any, boundaries: np.ndarray, out_int32: bool = False, right: bool = False) -> np.ndarray:
    """The bucket, between the sorted `boundaries`, of every element of `input`."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32, right)


def unique(
    a: np.ndarray,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different elements of `a` (or parts along `dim`); with where they occur and how often, a tuple."""
    if a.dtype.kind in "cW":
        unsupported("unique" if dim is None else "unique_dim", a.dtype)
    if dim is not None:
        dim = normalize_dim(dim, a.ndim)
        if a.ndim and a.size == 0 and any(n == 0 for d, n in enumerate(a.shape) if d != dim):
            raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
        if not a.ndim:
            a = a.reshape(1)
    # NaN differs from NaN, here as in comparisons.
    found = np.unique(sortable(a), False, return_inverse, return_counts, dim, equal_nan=False)  # type: ignore[call-overload]
    if not (return_inverse or return_counts):
        return as_array(found).astype(a.dtype, copy=False)
    parts = list(found)
    parts[0] = parts[0].astype(a.dtype, copy=False)
    if return_inverse:
        parts[1] = parts[1].reshape(a.shape if dim is None else -1)
    return tuple(parts)


_NOT_ASKED_FOR = np.empty(0, np.int64)


def unique_parts(
    a: np.ndarray,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`unique` with all three results, empty ones for what is not asked for."""
    found = unique(a, sorted, return_inverse, return_counts, dim)
    parts = list(found) if isinstance(found, tuple) else [found]
    inverse = parts.pop(1) if return_inverse else _NOT_ASKED_FOR.copy()
    return parts[0], inverse, parts[1] if return_counts else _NOT_ASKED_FOR.copy()


def unique_dim(
    a: np.ndarray, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for slices along `dim`."""
    return unique_parts(a, sorted, return_inverse, return_counts, dim)


def unique_consecutive(
    a: np.ndarray, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`a` with runs of equal elements, or of equal slices along `dim`, made one; the rest as `unique_parts`."""
    rows = a.reshape(-1) if dim is None else np.moveaxis(a, dim, 0)
    flat = rows.reshape(len(rows), -1) if rows.size else rows.reshape(len(rows), 0)
    starts = np.ones(len(rows), bool)
    starts[1:] = (flat[1:] != flat[:-1]).any(1)
    if flat.shape[1] == 0 and len(rows):
        starts[1:] = False
    places = np.flatnonzero(starts)
    kept = rows[places] if dim is None else np.moveaxis(rows[places], 0, dim)
    inverse: np.ndarray = _NOT_ASKED_FOR.copy()
    counts: np.ndarray = _NOT_ASKED_FOR.copy()
    if return_inverse:
        inverse = np.cumsum(starts) - 1
        inverse = inverse.reshape(a.shape) if dim is None else inverse
    if return_counts:
        counts = np.diff(np.append(places, len(rows)))
    return np.ascontiguousarray(kept), inverse, counts
