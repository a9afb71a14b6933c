"""What stands between the brackets of ``x[...]``, parsed.

`parse_index` is called for every subscript of a Tensor, by reading and by assignment, with the Tensors in the key
already replaced by their arrays.  It divides the work as torch does: a view first, then one advanced indexing of it.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

from ..core.where import users_level

_ALL = slice(None)
_INTEGER_KINDS = ("i", "u", "b")


def parse_index(key: Any, shape: tuple[int, ...]) -> tuple[tuple[Any, ...], list[Any] | None]:
    """``x[key]`` for an `x` of `shape` as ``(basic, advanced)``.

    ``x[basic]`` is a view, and ``index(x[basic], advanced)`` the result; advanced is None where the view is it.

    >>> parse_index((0, slice(1, 3)), (2, 5))
    ((0, slice(1, 3, None), Ellipsis), None)
    """
    cls = key.__class__
    if cls is int:
        if shape:
            n = shape[0]
            if -n <= key < n:
                return (key, ...), None  # the Ellipsis makes NumPy give a 0-d view rather than a scalar
            raise _out_of_bounds(key, 0, n)
    elif cls is slice:
        if shape and key.step is None:
            return (key,), None
    elif cls is tuple:
        if len(key) <= len(shape):
            for k, n in zip(key, shape):
                c = k.__class__
                if c is int:
                    if not -n <= k < n:
                        break
                elif c is not slice or k.step is not None:
                    break
            else:
                return (*key, ...), None
        return _parse(key, shape)
    elif key is None:
        return (None, ...), None
    elif key is Ellipsis:
        return (...,), None
    return _parse(tuple(key) if _stands_for_tuple(key) else (key,), shape)


def _stands_for_tuple(key: Any) -> bool:
    # Torch's rule, from old NumPy: a short list that holds anything but numbers means the tuple of its items.
    if not isinstance(key, list) or len(key) >= 32:
        return False
    for k in key:
        if k is None or k is Ellipsis or isinstance(k, (slice, list, tuple, range, str)):
            return True
        if hasattr(k, "ndim") and not isinstance(k, np.generic):
            return True
    return False


def _parse(key: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[tuple[Any, ...], list[Any] | None]:
    items = [_as_item(k) for k in key]
    ndim = len(shape)
    wanted = 0  # the dimensions of x that the key speaks of
    for k in items:
        if k is None or k is Ellipsis or k is True or k is False:
            continue
        wanted += k.ndim if hasattr(k, "ndim") and k.dtype.kind == "b" else 1
    if wanted > ndim:
        if not ndim and len(key) == 1 and isinstance(items[0], int):
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
                "convert a 0-dim tensor to a number"
            )
        if not ndim and len(key) == 1 and isinstance(items[0], slice):
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        raise IndexError(f"too many indices for tensor of dimension {ndim}")

    basic: list[Any] = []
    advanced: list[Any] = []
    dim = 0  # of x; the length of `advanced` counts those of the view
    found = False
    ellipsis = False
    for k in items:
        if k is None:
            basic.append(None)
            advanced.append(None)
        elif k is Ellipsis:
            if not ellipsis:
                skipped = ndim - wanted
                basic.extend([_ALL] * skipped)
                advanced.extend([None] * skipped)
                dim += skipped
                ellipsis = True
        elif k is True or k is False:
            # A new dimension of size 1, of which the first element is taken, or none.
            basic.append(None)
            advanced.append(np.zeros(1 if k else 0, dtype=np.int64))
            found = True
        elif isinstance(k, int):
            n = shape[dim]
            if not -n <= k < n:
                raise _out_of_bounds(k, dim, n)
            basic.append(k)
            dim += 1
        elif isinstance(k, slice):
            basic.append(k)
            advanced.append(None)
            dim += 1
        else:
            if k.dtype.kind == "b":
                _check_mask(k, shape, dim)
                # The mask has one entry, and stands for as many dimensions as it has.
                basic.extend([_ALL] * k.ndim)
                dim += k.ndim
            else:
                basic.append(_ALL)
                dim += 1
            advanced.append(k)
            found = True
    basic.append(Ellipsis)
    if not found:
        return tuple(basic), None
    while advanced[-1] is None:
        advanced.pop()
    return tuple(basic), advanced


def _as_item(k: Any) -> Any:
    # An item of the key as a bool, int, slice, None, Ellipsis, integer array or bool array with dimensions.
    if k is None or k is Ellipsis or k is True or k is False or k.__class__ is int:
        return k
    if isinstance(k, slice):
        if k.step is not None and operator.index(k.step) < 0:
            raise ValueError("step must be greater than zero")
        if k.step is not None and operator.index(k.step) == 0:
            raise ValueError("slice step cannot be zero")
        return k
    if isinstance(k, (list, tuple, range)):
        k = _array_of(k)
    elif isinstance(k, np.generic):
        if k.dtype.kind not in _INTEGER_KINDS:
            raise _not_an_index(k)
        return bool(k) if k.dtype.kind == "b" else int(k)
    elif not hasattr(k, "dtype"):
        try:
            return operator.index(k)
        except TypeError:
            raise _not_an_index(k) from None
    dtype = k.dtype
    if k.ndim == 0:
        if dtype.kind == "b" or dtype == np.uint8:
            return bool(k)
        if dtype.kind == "i":
            return int(k)
    elif dtype == np.uint8:
        return masks_of_bytes(k)
    if dtype.kind == "b" or (dtype.kind == "i" and dtype.itemsize >= 4):
        return k
    raise IndexError("tensors used as indices must be long, int, byte or bool tensors")


def masks_of_bytes(k: Any) -> Any:
    """A mask of bytes, from before there was a bool dtype, as it is written today; anything else as it is."""
    if getattr(k, "dtype", None) != np.uint8:
        return k
    warnings.warn(
        "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
        UserWarning,
        stacklevel=users_level(),
    )
    return k.astype(bool)


def _array_of(items: Any) -> np.ndarray:
    try:
        array = np.array(items)
    except ValueError:
        raise ValueError(f"expected sequence of equal length in an index, but got {items!r}") from None
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind in "iuf":  # torch, too, takes [1.0] for [1]
        return array.astype(np.int64)
    if array.dtype.kind != "b":
        raise TypeError(f"an index must hold integers or bools, but got {items!r}")
    return array


def _check_mask(mask: np.ndarray, shape: tuple[int, ...], dim: int) -> None:
    for d, n in enumerate(mask.shape):
        if n != shape[dim + d]:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {d} does not match the shape of the indexed "
                f"tensor {list(shape)} at index {dim + d}"
            )


def _out_of_bounds(index: int, dim: int, size: int) -> IndexError:
    return IndexError(f"index {index} is out of bounds for dimension {dim} with size {size}")


def _not_an_index(k: Any) -> Exception:
    if isinstance(k, (str, bytes)):
        return TypeError(f"new(): invalid data type '{type(k).__name__}': text is no index")
    return IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        f"(got {type(k).__name__})"
    )
