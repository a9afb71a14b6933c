"""What torch has as ``torch._nested_...``: nested tensors from masks, padded tensors and buffers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.late import operators as ops
from ..tensor import Tensor, wrap
from ._internal.strided import (
    Places,
    StridedNestedTensor,
    from_padded_sizes,
    nested_view_from_buffer,
    strided_from_list,
)

_nested_view_from_buffer: Any = nested_view_from_buffer
_nested_tensor_from_tensor_list: Any = strided_from_list


def _nested_tensor_from_mask(t: Tensor, mask: Tensor, mask_check: bool = True) -> Tensor:
    """The first rows of each ``t[i]``, as many as its `mask`, left-aligned, has; of shape (N, L, D) and (N, L)."""
    if mask.dtype.name != "bool":
        raise RuntimeError(f"Expected mask to be of ScalarType Bool, but got {mask.dtype} instead.")
    if mask.dim() != 2 or t.dim() != 3 or t._memory_.shape[:2] != mask._memory_.shape:
        raise RuntimeError(
            f"Expected a mask (N, L) and an input (N, L, D), but got {list(mask.shape)} and {list(t.shape)}"
        )
    if mask_check and not _nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError("Expected mask to be left-aligned without gaps")
    width = t._memory_.shape[2]
    return from_padded_sizes(t, [(int(n), width) for n in np.asarray(mask._numbers_).sum(axis=1)])


def _nested_tensor_from_mask_left_aligned(t: Tensor, mask: Tensor) -> bool:
    """Are the true elements of each row of `mask` the first ones?"""
    rows = np.asarray(mask._numbers_)
    return bool((np.sort(~rows, axis=1) == ~rows).all())


def _nested_from_padded(padded: Tensor, cpu_nested_shape_example: Tensor, fuse_transform_0213: bool = False) -> Tensor:
    """The corners of a padded tensor whose sizes are the rows of a table."""
    if fuse_transform_0213:
        n, a, b, c = padded._memory_.shape
        padded = ops.reshape(ops.transpose(padded, 1, 2), (n, b, a * c))
    return from_padded_sizes(padded, [tuple(row) for row in cpu_nested_shape_example.tolist()])


def _nested_from_padded_and_nested_example(padded: Tensor, nt_example: Tensor) -> Tensor:
    """The corners of a padded tensor that are as large as the components of another nested tensor."""
    if not isinstance(nt_example, StridedNestedTensor):
        raise RuntimeError("_nested_from_padded_and_nested_example(): the example has to be a strided nested tensor")
    return from_padded_sizes(padded, nt_example.places.sizes)


def _nested_compute_contiguous_strides_offsets(sizes: Tensor) -> tuple[Tensor, Tensor]:
    """The strides and offsets of components of these sizes that lie one behind the other."""
    places = Places.packed([tuple(row) for row in sizes.tolist()])
    return wrap(np.asarray(places.strides, np.int64)), wrap(np.asarray(places.offsets, np.int64))
