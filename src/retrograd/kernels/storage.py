"""Where an array's elements lie: strides and offsets in elements, and views by stride.

Torch speaks of elements from the start of a storage; NumPy speaks of bytes and of a ``base``.  This module translates
between the two.  `shape.py` builds its views with `restride`, and `memory.py` its copies with `dense_like`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_ndarray = np.ndarray


def strides(a: np.ndarray) -> tuple[int, ...]:
    """The strides of `a` in elements, as ``torch.Tensor.stride()`` gives them."""
    shape = a.shape
    if 0 in shape and not any(a.strides):  # NumPy gives a new empty array no strides
        return contiguous_strides(shape)
    item = a.itemsize
    result = [s // item for s in a.strides]
    # A new axis has stride 0 in NumPy, and in torch the stride it would have in a contiguous tensor.
    for i in range(len(shape) - 1, -1, -1):
        if shape[i] == 1 and result[i] == 0:
            result[i] = shape[i + 1] * result[i + 1] if i + 1 < len(shape) else 1
    return tuple(result)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides, in elements, of a contiguous array of `shape`; an empty dimension counts as one element."""
    result = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        result[i] = result[i + 1] * (shape[i + 1] or 1)
    return tuple(result)


def storage_offset(a: np.ndarray) -> int:
    """The number of elements between the start of the allocation that `a` lies in and its first element."""
    if a.base is None:
        return 0
    return (_address(a) - _address(storage_root(a))) // a.itemsize


def storage_root(a: np.ndarray) -> np.ndarray:
    """The array that `a` is ultimately a view of: the one that stands for its storage."""
    found = a
    node: Any = a
    while (node := getattr(node, "base", None)) is not None:
        if hasattr(node, "strides") and hasattr(node, "dtype"):
            found = node
    return found


def storage_numel(a: np.ndarray) -> int:
    """How many elements of the dtype of `a` the allocation that it lies in has room for."""
    return a.size if a.base is None else storage_root(a).nbytes // a.itemsize


def zeros_of_layout(a: np.ndarray) -> np.ndarray:
    """Zeros in an allocation of their own, which lie in it as `a` lies in its own."""
    if a.base is None:
        return np.zeros_like(a)
    memory = np.zeros_like(a, shape=(storage_numel(a),), order="C")
    return as_strided(memory, a.shape, strides(a), storage_offset(a))


def _address(a: np.ndarray) -> int:
    if type(a) is _ndarray:
        return a.__array_interface__["data"][0]
    return a.data.ptr  # type: ignore[attr-defined]  # CuPy


class _Window:
    """A stretch of an array's memory, in the form that `np.asarray` takes it; keeps the array alive as its base."""

    def __init__(self, base: np.ndarray, address: int, shape: tuple[Any, ...], byte_strides: tuple[Any, ...]) -> None:
        self.base = base
        self.__array_interface__ = {
            "version": 3,
            "typestr": base.dtype.str,
            "shape": shape,
            "strides": byte_strides,
            "data": (address, not base.flags.writeable),
        }


def restride(a: np.ndarray, shape: tuple[int, ...], byte_strides: tuple[int, ...]) -> np.ndarray:
    """A view of `shape` and `byte_strides` that starts at the first element of `a`."""
    if type(a) is _ndarray:
        flags = a.flags
        if flags.c_contiguous or flags.f_contiguous:
            try:  # the constructor costs a tenth of as_strided; it refuses to leave the buffer that it is given
                return _ndarray(shape, a.dtype, a, 0, byte_strides)
            except (TypeError, ValueError):
                pass
        if 0 in shape or 0 in a.shape:
            return _ndarray(shape, a.dtype, a[...].reshape(-1)[:0])
        view = np.asarray(_Window(a, _address(a), shape, byte_strides))
        return view if a.dtype.kind != "V" else view.view(a.dtype)  # a window has no word for bfloat16
    a.T  # noqa: B018  # what stands in place of an array refuses here
    library = sys.modules[type(a).__module__.partition(".")[0]]
    return library.lib.stride_tricks.as_strided(a, shape, byte_strides)


def needed_elements(size: Sequence[int], stride: Sequence[int], offset: int, itemsize: int) -> int:
    """How many elements a storage has to have for a view of this geometry, which is refused if it makes no sense."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}"
        )
    if any(s < 0 for s in size):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    needed = 0 if 0 in size else offset + 1 + sum((n - 1) * s for n, s in zip(size, stride))
    if needed * itemsize >= 2**63:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}"
            f" (storage offset {offset}, {itemsize} bytes for an element)"
        )
    return needed


def as_strided(
    a: np.ndarray, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> np.ndarray:
    """A view with this `size`, this `stride` (in elements) and this offset from the start of the storage of `a`."""
    shape = tuple(size)
    item = a.itemsize
    whole = storage_root(a)
    if storage_offset is None:
        offset = 0 if a is whole else (_address(a) - _address(whole)) // item
    else:
        offset = storage_offset
    needed = needed_elements(shape, stride, offset, item)
    if needed * item > whole.nbytes and is_dense(whole):
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(stride)}, storage offset {offset}, and itemsize {item} "
            f"requiring a storage size of {needed * item} are out of bounds for storage of size {whole.nbytes}"
        )
    byte_strides = tuple([s * item for s in stride])
    if needed == 0:
        return restride(a, shape, byte_strides)
    if type(a) is _ndarray:
        if type(whole) is _ndarray and (whole.flags.c_contiguous or whole.flags.f_contiguous):
            result = _ndarray(shape, a.dtype, whole, offset * item, byte_strides)
            if not a.flags.writeable:
                result.flags.writeable = False
            return result
        return np.asarray(_Window(a, _address(whole) + offset * item, shape, byte_strides))
    flat = whole.ravel(order="K").view(a.dtype)
    return restride(flat[offset:], shape, byte_strides)


def is_dense(a: np.ndarray) -> bool:
    """Do the elements of `a` fill a stretch of memory, in whatever order of the dimensions?"""
    if a.flags.c_contiguous or a.flags.f_contiguous:
        return True
    expected = a.itemsize
    for stride, n in sorted((s, n) for s, n in zip(a.strides, a.shape) if n != 1):
        if stride != expected:
            return False
        expected *= n
    return True


def overlap(a: np.ndarray, b: np.ndarray) -> str | None:
    """Do two arrays show the same memory: ``"full"``, element by element, ``"partial"``, or None?

    None, too, if one of them has gaps: nobody looks closer then.
    """
    if a is b:
        return "full"
    if not a.size or not b.size or not is_dense(a) or not is_dense(b):
        return None
    start, other = _address(a), _address(b)
    if start == other and a.nbytes == b.nbytes:
        return "full" if strides(a) == strides(b) else "partial"
    return "partial" if start < other + b.nbytes and other < start + a.nbytes else None


def is_contiguous(a: np.ndarray, memory_format: Any = None) -> bool:
    """Do the elements of `a` follow each other in memory as `memory_format` (row-major by default) says?"""
    if memory_format is None or "channels_last" not in str(memory_format):
        return a.flags.c_contiguous
    return a.ndim == (5 if "3d" in str(memory_format) else 4) and np.moveaxis(a, 1, -1).flags.c_contiguous


def keeps_channels_last(
    kernel: Callable[..., Any], most_dims: int = 5, operands: int = 1, dense: bool = False
) -> Callable[..., Any]:
    """A kernel whose results lie in memory as torch's do: channels innermost, where an operand has them so.

    `dense`: or where it may be read so, whatever the strides of its dimensions of one element say.
    """

    @functools.wraps(kernel)
    def laid_out(*args: Any, **kwargs: Any) -> Any:
        result = kernel(*args, **kwargs)
        for a in args[:operands]:
            if not a.flags.c_contiguous and a.ndim <= most_dims and (
                has_channels_last(a) or (dense and a.ndim > 3 and np.moveaxis(a, 1, -1).flags.c_contiguous)
            ):
                if isinstance(result, tuple):
                    return tuple([with_channels_last(part) if part.ndim == a.ndim else part for part in result])
                return with_channels_last(result)
        return result

    return laid_out


def keeps_channels_last_of_images(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The same where torch has no such layout for volumes."""
    return keeps_channels_last(kernel, most_dims=4)


def keeps_channels_last_of_dense(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The same where torch asks for the order of the elements alone, not for strides."""
    return keeps_channels_last(kernel, dense=True)


def keeps_channels_last_of_either(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The same of two operands: an image and its filter."""
    return keeps_channels_last(kernel, operands=2)


def has_channels_last(a: np.ndarray) -> bool:
    """Is dimension 1 of images or volumes innermost in memory, with the others around it in their order?

    As torch sees it, with gaps or without, and not where the strides would say the same of another order.
    """
    return a.ndim in (4, 5) and channels_innermost(a.shape, strides(a))


def channels_innermost(shape: Sequence[int], given: Sequence[int]) -> bool:
    """The same of strides that somebody has kept, in elements or in bytes."""
    if len(shape) not in (4, 5) or not given[1]:
        return False
    least = 0
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        if not shape[d] or given[d] < least or (d == 0 and least == given[1]):
            return False
        least = given[d] * shape[d]
    return True


def with_channels_last(a: np.ndarray) -> np.ndarray:
    """`a` with dimension 1 innermost in memory, as strides say it, also those of dimensions of one element."""
    return a if has_channels_last(a) else np.moveaxis(np.moveaxis(a, 1, -1).copy(), -1, 1)


def _check_channels(a: np.ndarray, memory_format: str) -> np.ndarray:
    needed = 5 if "3d" in memory_format else 4
    if a.ndim != needed:
        raise RuntimeError(f"required rank {needed} tensor to use {memory_format.removeprefix('torch.')} format")
    return a


def dense_like(a: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """An uninitialized dense array with the shape of `a` and its order of dimensions in memory.

    It has the very strides of `a` if that is dense, also in dimensions of one element: `has_channels_last` asks for
    those.  Otherwise NumPy's own K order would take a stride of 0 for the smallest and so make an expanded array
    column-major.  Torch takes it for no information and leaves the dimension where it is: the copy stays viewable.
    """
    shape, given = a.shape, strides(a)
    if is_dense(a):
        memory = np.empty_like(a, dtype=dtype, order="C", shape=(a.size,))
        return restride(memory, shape, tuple([s * memory.itemsize for s in given]))
    order = list(range(a.ndim))  # outermost first
    for last in range(a.ndim - 2, -1, -1):
        at = last
        for i in range(last + 1, a.ndim):
            outer, inner = given[order[at]], given[order[i]]
            if not outer or not inner or (outer == inner and shape[order[i]] <= shape[order[at]]):
                continue
            if inner < outer:
                break
            order[at], order[i] = order[i], order[at]
            at = i
    dense = np.empty_like(a, dtype=dtype, order="C", shape=tuple([shape[d] for d in order]))
    inverse = [0] * a.ndim
    for i, d in enumerate(order):
        inverse[d] = i
    return dense.transpose(inverse)


def shape_text(shape: Sequence[Any]) -> str:
    """A shape as torch's messages write it, such as ``[2, 3]``."""
    return "[" + ", ".join([str(int(s)) for s in shape]) + "]"
