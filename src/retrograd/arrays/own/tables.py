"""Rows of a table by number, and their gradient: nobody waits for the device to look at the numbers.

Few numbers: a block has one, goes on if no earlier one is the same, and adds the rows of all that are, in their order.
Many: rows are added by atomic additions, in any order, unless `use_deterministic_algorithms` asks for the first way.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.deterministic import asked
from .faults import ROWS
from .launching import STORED, Kernel, Launcher, contiguous, stored, types
from .rows import is_contiguous, threads_for

if TYPE_CHECKING:
    from ..places import Place

#: Numbers up to which each is compared with all others.
_FEW = 8192
_STRUCT = """struct S { R* o; const T* a; const I* at; long long* fault; long long count; long long width;
    long long rows; long long padding; int by_count; int pad; };
"""
_TAKE = (
    _STRUCT
    + """
extern "C" __global__ void k(S s) {
    long long t = s.at[blockIdx.x];
    bool there = t >= 0 && t < s.rows;
    if (!there && !threadIdx.x) { s.fault[1] = t; s.fault[0] = FAULT; }
    for (long long d = threadIdx.x; d < s.width; d += blockDim.x)
        s.o[blockIdx.x * s.width + d] = there ? s.a[t * s.width + d] : T{};
}
"""
)
_GATHER = (
    _STRUCT
    + """
extern "C" __global__ void k(S s) {
    __shared__ int list[256], many[8];
    long long i = blockIdx.x, t = s.at[i], d = blockIdx.y * 256LL + threadIdx.x;
    if (t == s.padding || t < 0 || t >= s.rows) return;
    int seen = 0;
    for (long long j = threadIdx.x; j < i && !seen; j += 256) seen = s.at[j] == t;
    if (__syncthreads_or(seen)) return;
    W sum = 0;
    long long found = 0;
    for (long long j = i; j < s.count; j += 256) {
        int mine = j + threadIdx.x < s.count && s.at[j + threadIdx.x] == t, warp = threadIdx.x >> 5;
        unsigned all = __ballot_sync(0xffffffff, mine);
        if (!(threadIdx.x & 31)) many[warp] = __popc(all);
        __syncthreads();
        int before = 0, total = 0;
        for (int w = 0; w < 8; ++w) { if (w < warp) before += many[w]; total += many[w]; }
        if (mine) list[before + __popc(all & ((1u << (threadIdx.x & 31)) - 1))] = threadIdx.x;
        __syncthreads();
        if (d < s.width) for (int m = 0; m < total; ++m) sum += up(s.a[(j + list[m]) * s.width + d]);
        found += total;
        __syncthreads();
    }
    if (d < s.width) put(s.o + t * s.width + d, s.by_count ? sum / found : sum);
}
"""
)
_ADD = (
    _STRUCT
    + """
extern "C" __global__ void k(S s) {
    long long t = s.at[blockIdx.x];
    if (t == s.padding || t < 0 || t >= s.rows) return;
    for (long long d = threadIdx.x; d < s.width; d += blockDim.x)
        atomicAdd(s.o + t * s.width + d, (W)up(s.a[blockIdx.x * s.width + d]));
}
"""
)
_LAYOUT = "QQQQqqqq2i"


class Tables:
    """The kernels of one device. Whatever is nothing for them gives None."""

    def __init__(self, launcher: Launcher) -> None:
        self.launcher: Launcher = launcher
        self.place: Place = launcher.place

    def _kernel(self, code: str, name: str, read: str, written: str, index: np.dtype) -> Kernel:
        integer = "int" if index.itemsize == 4 else "long long"

        def source() -> str:
            head = types(read) + f"typedef {STORED[written]} R;\ntypedef {integer} I;\n"
            return head + code.replace("FAULT", str(ROWS))

        return self.launcher.kernel(("tables", name, read, written, integer), source, _LAYOUT)

    def _takes(self, table: Any, indices: Any) -> str | None:
        if getattr(indices, "place", None) is not self.place or table.place is not self.place:
            return None
        if indices.dtype.char not in "ilq" or not indices.size or 0 in table.shape or indices.size >= 1 << 31:
            return None
        return stored(table.dtype)

    def take(self, table: Any, indices: Any) -> Any:
        """The rows at `indices`. A number that the table does not have is told when somebody waits for the device."""
        letter = self._takes(table, indices)
        if letter is None or len(table.shape) != 2:
            return None
        table, indices = (x if is_contiguous(x) else x.copy() for x in (table, indices))
        rows, width = table.shape
        shape, item = (*indices.shape, width), table.dtype.itemsize
        out = self.place.fresh(shape, contiguous(shape, item), table.dtype, math.prod(shape) * item)
        kernel = self._kernel(_TAKE, "take", letter, letter, indices.dtype)
        kernel(indices.size, threads_for(width), out.stream_pointer, out.ptr, table.ptr, indices.ptr,
               self.place.faults.address, indices.size, width, rows, -1, 0, 0)  # fmt: skip
        return out

    def backward(self, grad: Any, indices: Any, rows: int, padding: int, by_count: bool) -> Any:
        """The rows of `grad` added up by index, without those of `padding`; `by_count`: divided by their number."""
        letter = self._takes(grad, indices)
        if letter is None or not rows or grad.shape[:-1] != indices.shape:
            return None
        grad, indices = (x if is_contiguous(x) else x.copy() for x in (grad, indices))
        width, count = grad.shape[-1], indices.size
        few = count <= _FEW or by_count or asked.mode > 0
        if few and -(-width // 256) >= 1 << 16:
            return None
        wide = letter if few else "d" if letter == "d" else "f"
        dtype = grad.dtype if few else np.dtype(wide)
        out = self.place.fresh((rows, width), (width * dtype.itemsize, dtype.itemsize), dtype,
                               rows * width * dtype.itemsize)  # fmt: skip
        assert self.place.filling is not None
        self.place.filling.many((out,), out, 0.0)
        numbers = out.ptr, grad.ptr, indices.ptr, 0, count, width, rows, padding, by_count, 0
        if few:
            kernel = self._kernel(_GATHER, "gather", letter, letter, indices.dtype)
            kernel.grid(count, -(-width // 256), 256, out.stream_pointer, *numbers)
            return out
        kernel = self._kernel(_ADD, "add", letter, wide, indices.dtype)
        kernel(count, threads_for(width), out.stream_pointer, *numbers)
        assert self.place.cast is not None
        return out if wide == letter else self.place.cast(out, grad.dtype)
