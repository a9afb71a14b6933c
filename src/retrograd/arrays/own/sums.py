"""Sums: over all elements, over the last dimensions, over the first ones. In W, and always in the same order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.state import local
from . import pending
from .elementwise import _dense
from .launching import _REDUCE, STORED, TALL, Launcher, contiguous, stored
from .rows import is_contiguous, threads_for

if TYPE_CHECKING:
    from ..places import Place

_ROWS = """struct S { R* o; const T* a; long long width; long long total; };
extern "C" __global__ void k(S s) {
    __shared__ W room[32];
    long long first = blockIdx.x * s.width, end = first + s.width < s.total ? first + s.width : s.total;
    W v = 0;
    for (long long j = first + threadIdx.x; j < end; j += blockDim.x) v += up(s.a[j]);
    v = over_block(v, Plus(), room);
    if (!threadIdx.x) put(s.o + blockIdx.x, v);
}
"""
_COLUMNS = """struct S { R* o; const T* a; long long width; int rows; int part; };
extern "C" __global__ void k(S s) {
    __shared__ W room[8][33];
    int x = threadIdx.x & 31, y = threadIdx.x >> 5;
    long long j = blockIdx.x * 32LL + x;
    W v = 0;
    int end = min(s.rows, (int)(blockIdx.y + 1) * s.part);
    if (j < s.width) for (int i = blockIdx.y * s.part + y; i < end; i += 8) v += up(s.a[i * s.width + j]);
    room[y][x] = v;
    __syncthreads();
    if (!y && j < s.width) {
        for (int i = 1; i < 8; ++i) v += room[i][x];
        put(s.o + blockIdx.y * s.width + j, v);
    }
}
"""
# The same of not too many rows, in one launch: 8 columns a block, and 128 threads for each of them.
_TALL = """struct S { R* o; const T* a; long long width; int rows; int add; };
extern "C" __global__ void k(S s) {
    __shared__ W room[128][9];
    int x = threadIdx.x & 7, y = threadIdx.x >> 3;
    long long j = blockIdx.x * 8LL + x;
    W v = 0;
    #pragma unroll 4
    for (int i = y; i < s.rows; i += 128) if (j < s.width) v += up(s.a[i * s.width + j]);
    room[y][x] = v;
    for (int d = 64; d; d >>= 1) {
        __syncthreads();
        if (y < d) room[y][x] += room[y + d][x];
    }
    if (!y && j < s.width) put(s.o + j, s.add ? up(s.o[j]) + room[0][x] : room[0][x]);
}
"""
_PART = 8192


class Sums:
    """The kernels of one device."""

    def __init__(self, launcher: Launcher) -> None:
        self.launcher: Launcher = launcher
        self.place: Place = launcher.place

    def _kernel(self, code: str, read: str, written: str, layout: str) -> Any:
        def source() -> str:
            work = "double" if "d" in (read, written) else "float"
            head = f"typedef {STORED[read]} T;\ntypedef {STORED[written]} R;\ntypedef {work} W;\n"
            return head + _REDUCE + code

        name = "rows" if code is _ROWS else "columns" if code is _COLUMNS else "tall"
        return self.launcher.kernel(("sums", name, read, written), source, layout)

    def __call__(self, a: Any, axis: Any, keepdims: bool, out: Any = None) -> Any:
        """The sum over `axis`, None for all; None if it is nothing for these kernels."""
        letter = stored(a.dtype)
        if letter is None or a.place is not self.place or 0 in a.shape:
            return None
        rank = len(a.shape)
        if not is_contiguous(a) and not (
            (axis is None or (axis.__class__ is tuple and len(axis) == rank)) and _dense(a.shape, a.strides, a.itemsize)
        ):
            return None
        if axis is None:
            axes = tuple(range(rank))
        else:
            given: Any = (axis,) if isinstance(axis, (int, np.integer)) else axis
            axes = tuple(sorted([int(x) % rank if -rank <= x < rank else rank for x in given]))
            if len(set(axes)) != len(axes) or rank in axes:
                return None  # of which NumPy says what is wrong
        shape = tuple([1 if d in axes else n for d, n in enumerate(a.shape) if keepdims or d not in axes])
        if out is not None and (out.shape != shape or out.dtype != a.dtype or not is_contiguous(out)):
            return None
        many = len(axes)
        if axes == tuple(range(rank - many, rank)):
            return self._rows(a, letter, shape, math.prod(a.shape[: rank - many]), out)
        if axes == tuple(range(many)):
            rows = math.prod(a.shape[:many])
            if out is None and self.place.thread.adding is not None:
                if pending.is_wanted(self.place, local.state.current_node):
                    later = pending.columns(self.place, a, shape)
                    if later is not None:
                        return later
            return self.columns(a, rows, math.prod(a.shape[many:]), shape, a.dtype, out)
        kept = [d for d in range(rank) if d not in axes]
        if kept == list(range(kept[0], kept[-1] + 1)):  # first the last dimensions, then the first
            lead, width = math.prod(a.shape[: kept[0]]), math.prod(a.shape[kept[0] : kept[-1] + 1])
            inner = math.prod(a.shape[kept[-1] + 1 :])
            wide = "d" if letter == "d" else "f"
            parts = self._fresh((lead, width), np.dtype(wide))
            kernel = self._kernel(_ROWS, letter, wide, "QQqq")
            kernel(lead * width, threads_for(inner), parts.stream_pointer, parts.ptr, a.ptr, inner, a.size)
            return self.columns(parts, lead, width, shape, a.dtype, out)
        return None

    def _fresh(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        return self.place.fresh(shape, contiguous(shape, dtype.itemsize), dtype, math.prod(shape) * dtype.itemsize)

    def _rows(self, a: Any, letter: str, shape: tuple[int, ...], rows: int, out: Any) -> Any:
        size = a.size
        width = size // rows
        source, read = a, letter
        if rows == 1 and width > 2 * _PART:  # first the sums of parts
            count = min(-(-width // _PART), 1024)
            part = -(-width // count)
            count = -(-width // part)
            wide = "d" if letter == "d" else "f"
            source = self._fresh((count,), np.dtype(wide))
            kernel = self._kernel(_ROWS, letter, wide, "QQqq")
            kernel(count, 256, source.stream_pointer, source.ptr, a.ptr, part, width)
            width, size, read = count, count, wide
        out = self._fresh(shape, a.dtype) if out is None else out
        self.place.activate()
        kernel = self._kernel(_ROWS, read, letter, "QQqq")
        kernel(rows, threads_for(width, 1024 if rows == 1 else 256), self.place.class_now().stream_pointer, out.ptr,
               source.ptr, width, size)  # fmt: skip
        return out

    def columns(
        self, a: Any, rows: int, width: int, shape: tuple[int, ...], dtype: np.dtype, out: Any = None,
        add: bool = False,
    ) -> Any:  # fmt: skip
        """The sums of columns of a matrix of so many rows, as an array of `shape`; of few rows they may be added."""
        read, written = stored(a.dtype), stored(dtype)
        assert read is not None and written is not None
        if rows >= 1 << 31 or -(-width // 32) >= 1 << 31:
            return None
        source = a
        if 64 < rows <= TALL:
            out = self._fresh(shape, dtype) if out is None else out
            self.place.activate()
            kernel = self._kernel(_TALL, read, written, "QQqii")
            kernel(-(-width // 8), 1024, self.place.class_now().stream_pointer, out.ptr, a.ptr, width, rows, add)
            return out
        if rows > 128:
            wide = "d" if read == "d" else "f"
            parts = min(-(-rows // 64), 64)
            part = -(-rows // parts)
            parts = -(-rows // part)
            source = self._fresh((parts, width), np.dtype(wide))
            kernel = self._kernel(_COLUMNS, read, wide, "QQqii")
            kernel.grid(-(-width // 32), parts, 256, source.stream_pointer, source.ptr, a.ptr, width, rows, part)
            rows, read = parts, wide
        out = self._fresh(shape, dtype) if out is None else out
        self.place.activate()
        kernel = self._kernel(_COLUMNS, read, written, "QQqii")
        kernel.grid(-(-width // 32), 1, 256, self.place.class_now().stream_pointer, out.ptr, source.ptr, width, rows,
                    rows)  # fmt: skip
        return out
