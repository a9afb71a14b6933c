"""Kernels that a device has for itself, in place of those of ``kernels/``: Note [Kernels for another library].

By module and name, as they stand there.
"""

from __future__ import annotations

from typing import Any

from ..kernels.storage import needed_elements


def _address(a: Any) -> int:
    return a.raw.data.ptr


def restride(a: Any, shape: tuple[int, ...], byte_strides: tuple[int, ...]) -> Any:
    """A view of `shape` and `byte_strides` that starts at the first element of `a`."""
    return a.restride(tuple(shape), tuple(byte_strides))


def as_strided(a: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """A view with this `size`, this `stride` (in elements) and this offset from the start of the storage of `a`."""
    shape, item = tuple(size), a.itemsize
    whole = a if a.base is None else a.base
    offset = (_address(a) - _address(whole)) // item if storage_offset is None else storage_offset
    needed = needed_elements(shape, stride, offset, item)
    if needed * item > whole.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(stride)}, storage offset {offset}, and itemsize {item} "
            f"requiring a storage size of {needed * item} are out of bounds for storage of size {whole.nbytes}"
        )
    return whole.restride(shape, tuple([s * item for s in stride]), offset * item, a.dtype)


def _nothing(a: Any, dim: int, start: int | None) -> Any:
    """A slice without elements, where it begins."""
    n = a.shape[dim]
    first = 0 if start is None else max(start + n, 0) if start < 0 else min(start, n)
    shape = (*a.shape[:dim], 0, *a.shape[dim + 1 :])
    root = a if a.base is None else a.base
    offset = _address(a) - _address(root) + first * a.strides[dim]
    return root.restride(shape, a.strides, min(offset, root.nbytes), a.dtype)


def on_threads(ufunc: Any) -> Any:
    """The same: a device has its own way to share elements out."""
    return ufunc


#: No array of a device is large: what kernels do with large ones (blocks, compiled kernels) is for the CPU's cache.
_NEVER = 1 << 62

OVERLAY: dict[str, dict[str, Any]] = {
    "storage": {"_address": _address, "restride": restride, "as_strided": as_strided},
    "shape": {"_nothing": _nothing},
    "compiled": {"on_threads": on_threads, "LARGE": _NEVER, "takes": lambda *arrays: False,
                 "library": lambda: None, "is_used": lambda: False},
}  # fmt: skip
