"""Kernels that choose elements by a mask, and that say where a mask holds."""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from . import blocks
from .compiled import LARGE
from .index import _target
from .pointwise import _BOOL
from .promotion import Operand, broadcast_shape, cast_number, check_out, operand, result_dtype, scalar_name
from .shape import expand


def where(condition: ndarray, a: Operand, b: Operand) -> ndarray:
    """a where `condition` holds, else b."""
    kind = condition.dtype.kind
    if kind != "b":
        if condition.dtype != np.uint8:
            raise RuntimeError(
                "where expected condition to be a boolean tensor, but got a tensor with dtype "
                + scalar_name(condition.dtype)
            )
        condition = condition != 0
    d = result_dtype(a, b)
    x, y = operand(a, d, condition), operand(b, d, condition)
    try:
        return blocks.where(condition, x, y) if condition.size > LARGE else np.where(condition, x, y)
    except ValueError:
        broadcast_shape(condition, x, y)
        raise


def masked_fill(a: ndarray, mask: ndarray, value: Operand, out: ndarray | None = None) -> ndarray:
    """a with `value` (a number or a 0-d array) where `mask` holds."""
    if mask.dtype != _BOOL:
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype.name}. "
            "Convert it with mask.bool()."
        )
    if getattr(value, "ndim", 0):
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor "
            f"with {value.ndim} dimension(s)."
        )
    fill = value if getattr(value, "dtype", None) is a.dtype else np.asarray(cast_number(value, a.dtype))
    if out is None:
        try:
            return blocks.where(mask, fill, a) if mask.size > LARGE else np.where(mask, fill, a)
        except ValueError:
            broadcast_shape(mask, a)
            raise
    check_out(out, a.dtype, broadcast_shape(a, mask))
    if out is not a:
        np.copyto(out, a)
    np.copyto(out, fill, where=mask)
    return out


def masked_select(a: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The elements of `a` where `mask` is True, in one dimension."""
    if mask.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    if a.shape != mask.shape:
        # Torch has the mask for the first operand in its message.
        shape = broadcast_shape(mask, a)
        a, mask = expand(a, shape), expand(mask, shape)
    return a[mask]


def masked_scatter(a: np.ndarray, mask: np.ndarray, source: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """A copy of `a` with the first elements of `source`, in order, where `mask` is True."""
    if mask.dtype.kind != "b":
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {scalar_name(mask.dtype)}"
        )
    if source.dtype != a.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {scalar_name(a.dtype)} and "
            f"{scalar_name(source.dtype)}"
        )
    shape = broadcast_shape(a, mask)
    if mask.shape != shape:
        mask = expand(mask, shape)
    if a.shape != shape:
        a = expand(a, shape)
    count = int(np.count_nonzero(mask))
    if source.size < count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    result = _target(a, out)
    result[mask] = source.reshape(-1)[:count]
    return result


def nonzero(a: np.ndarray) -> np.ndarray:
    """The indices of the nonzero elements, one per row; column by column in memory, as in torch."""
    if not a.ndim:
        return np.empty((int(bool(a)), 0), dtype=np.int64)
    return np.array(a.nonzero()).T


argwhere = nonzero
