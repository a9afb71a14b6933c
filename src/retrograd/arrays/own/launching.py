"""How our kernels are compiled and launched: Note [Kernels of our own].

A kernel takes one argument, a struct, which is packed here: the driver is asked directly, since CuPy's way there (a
Python object for each argument) takes longer than the packing.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..places import Place

#: The most bytes of arguments.
MOST = 4000
THREADS = 256
#: More blocks than a device works on at once are not worth a launch: kernels go over their elements in strides.
BLOCKS = 132 * 16
#: Rows up to which columns are summed by one launch.
TALL = 4096

#: What dtypes are called in kernels, and in which they are computed.
STORED: dict[str, str] = {"f": "float", "d": "double", "e": "f16", "E": "bf16"}
_PRELUDE = """
typedef unsigned short u16;
struct f16 { u16 x; };
struct bf16 { u16 x; };
__device__ __forceinline__ float up(float v) { return v; }
__device__ __forceinline__ double up(double v) { return v; }
__device__ __forceinline__ float up(f16 v) { float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(v.x)); return r; }
__device__ __forceinline__ float up(bf16 v) { return __uint_as_float(((unsigned)v.x) << 16); }
__device__ __forceinline__ long long up(long long v) { return v; }
__device__ __forceinline__ int up(int v) { return v; }
__device__ __forceinline__ int up(bool v) { return v; }
__device__ __forceinline__ int up(unsigned char v) { return v; }
__device__ __forceinline__ void put(float* p, double v) { *p = (float)v; }
__device__ __forceinline__ void put(double* p, double v) { *p = v; }
__device__ __forceinline__ void put(float* p, float v) { *p = v; }
__device__ __forceinline__ void put(double* p, float v) { *p = v; }
__device__ __forceinline__ void put(f16* p, float v) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(p->x) : "f"(v)); }
__device__ __forceinline__ void put(bf16* p, float v) {
    unsigned b = __float_as_uint(v);
    p->x = v != v ? (u16)((b >> 16) | 0x40) : (u16)((b + 0x7fff + ((b >> 16) & 1)) >> 16);
}
__device__ __forceinline__ void put(f16* p, double v) { put(p, (float)v); }
__device__ __forceinline__ void put(bf16* p, double v) { put(p, (float)v); }
__device__ __forceinline__ void put(bool* p, bool v) { *p = v; }
__device__ __forceinline__ void put(long long* p, long long v) { *p = v; }
// A product that is rounded before something is added to it, as it is where the two are computed apart.
__device__ __forceinline__ float times(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
"""
_REDUCE = """
template <class V, class F> __device__ __forceinline__ V over_block(V v, F f, V* room) {
    for (int d = 16; d; d >>= 1) v = f(v, __shfl_xor_sync(0xffffffff, v, d));
    int warps = (blockDim.x + 31) / 32;
    if (warps > 1) {
        if (!(threadIdx.x & 31)) room[threadIdx.x >> 5] = v;
        __syncthreads();
        v = room[(threadIdx.x & 31) < warps ? (threadIdx.x & 31) : 0];
        if (warps < 32) {
            V r = room[0];
            for (int w = 1; w < warps; ++w) r = f(r, room[w]);
            v = r;
        } else {
            for (int d = 16; d; d >>= 1) v = f(v, __shfl_xor_sync(0xffffffff, v, d));
        }
        __syncthreads();
    }
    return v;
}
struct Plus { template <class V> __device__ V operator()(V a, V b) const { return a + b; } };
struct Larger { template <class V> __device__ V operator()(V a, V b) const { return a != a || a > b ? a : b; } };
"""


def stored(dtype: np.dtype) -> str | None:
    """What elements of a dtype are called in kernels: the letter of the floating dtypes that they take, else None."""
    char = dtype.char
    if char in "fde":
        return char
    return "E" if dtype.name == "bfloat16" else None


def types(letter: str) -> str:
    """The declarations of T, in which elements are held, and W, in which they are computed."""
    return f"typedef {STORED[letter]} T;\ntypedef {'double' if letter == 'd' else 'float'} W;\n"


class _Local(threading.local):
    def __init__(self) -> None:
        self.buffer: Any = ctypes.create_string_buffer(MOST)
        self.parameters: Any = (ctypes.c_void_p * 1)(ctypes.addressof(self.buffer))


_local: _Local = _Local()


@cache
def _driver() -> Any:
    # The GIL is kept: a launch takes less time than getting it back from a thread that wants it.
    launch = ctypes.PyDLL("libcuda.so.1").cuLaunchKernel
    launch.restype = ctypes.c_int
    return launch


class _Configuration(ctypes.Structure):
    """How a kernel is to be launched, as the driver has it."""

    _fields_ = [
        *[(name, ctypes.c_uint) for name in ("x", "y", "z", "block_x", "block_y", "block_z", "shared")],
        ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint),
    ]  # fmt: skip


def configuration(blocks: int, threads: int, stream: Any) -> Any:
    """A pointer to such a thing, for launches that are often the same."""
    return ctypes.byref(_Configuration(blocks, 1, 1, threads, 1, 1, 0, stream.value, None, 0))


@cache
def prepared() -> Any:
    """What launches a kernel with a configuration."""
    launch = ctypes.PyDLL("libcuda.so.1").cuLaunchKernelEx
    launch.restype = ctypes.c_int
    return launch


class Kernel:
    """A kernel that takes a struct of `layout` (as `struct` writes it)."""

    __slots__ = ("function", "holder", "launch", "pack")

    def __init__(self, holder: Any, layout: str) -> None:
        self.holder: Any = holder
        self.function: Any = ctypes.c_void_p(holder.kernel.ptr)
        self.pack: Any = struct.Struct(layout).pack_into
        self.launch: Any = _driver()

    def __call__(self, blocks: int, threads: int, stream: Any, *values: Any) -> None:
        local = _local
        self.pack(local.buffer, 0, *values)
        code = self.launch(self.function, blocks, 1, 1, threads, 1, 1, 0, stream, local.parameters, None)
        if code:
            raise RuntimeError(f"CUDA error: a kernel could not be launched (error {code} of the driver)")

    def grid(self, x: int, y: int, threads: int, stream: Any, *values: Any, shared: int = 0) -> None:
        """The same with blocks in two directions, and bytes of shared memory for each."""
        local = _local
        self.pack(local.buffer, 0, *values)
        code = self.launch(self.function, x, y, 1, threads, 1, 1, shared, stream, local.parameters, None)
        if code:
            raise RuntimeError(f"CUDA error: a kernel could not be launched (error {code} of the driver)")


class Launcher:
    """The kernels of one device."""

    def __init__(self, place: Place) -> None:
        self.place: Place = place
        self._kernels: dict[tuple[Any, ...], Kernel] = {}
        self._lock: Any = threading.Lock()

    def kernel(self, key: tuple[Any, ...], source: Any, layout: str, shared: int = 0) -> Kernel:
        """The kernel ``k`` of what `source` gives, compiled once for each `key`; `shared`: the bytes of shared memory
        that its launches ask for."""
        found = self._kernels.get(key)
        if found is None:
            with self._lock:
                found = self._kernels.get(key)
                if found is None:
                    self.place.activate()
                    code = _PRELUDE + source()
                    module = self.place.module.RawModule(code=code, options=("-std=c++17",))
                    function = module.get_function("k")
                    if shared:
                        function.max_dynamic_shared_size_bytes = shared
                    found = self._kernels[key] = Kernel(function, layout)
        return found


def launcher_of(place: Place) -> Launcher | None:
    """The kernels of a device; None if its library compiles nothing."""
    try:
        return Launcher(place) if hasattr(place.module, "RawModule") and _driver() else None
    except (AttributeError, OSError):
        return None


def contiguous(shape: tuple[int, ...], item: int) -> tuple[int, ...]:
    """The strides of a new array."""
    strides, step = [], item
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def blocks_for(count: int, threads: int = THREADS) -> int:
    """How many blocks go over so many elements."""
    return min(-(-count // threads), BLOCKS) or 1
