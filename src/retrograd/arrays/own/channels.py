"""Batch normalisation: two launches in training, one otherwise; its gradient the same.

A first kernel has the parts of channels, and gives the mean of each part and the squares of the distances from it
(backward: two sums); a second one puts the parts of its channel together, always in the same order, and writes the
result.  Channels lie apart, or side by side: then 32 of them share a block of threads.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .elementwise import _dense
from .launching import _REDUCE, STORED, Kernel, Launcher, contiguous, stored, types
from .rows import is_contiguous

if TYPE_CHECKING:
    from ..places import Place

_HEAD = """
struct S { T* o; const T* a; const T* g; const P* w; const P* b; R* running_mean; R* running_var; W* mean; W* rstd;
    P* dw; P* db; W* parts; double momentum; double eps; long long count; long long inner; long long part; int channels;
    int pieces; int training; int pad; };
#if LAST
#define CHANNEL (blockIdx.x * 32 + (threadIdx.x & 31))
#define FIRST (threadIdx.x >> 5)
#define STEP 8
#define PLACE(i) ((i) * s.channels + c)
__device__ __forceinline__ W together(W v, W* room) {
    room[(threadIdx.x >> 5) * 33 + (threadIdx.x & 31)] = v;
    __syncthreads();
    v = 0;
    for (int y = 0; y < 8; ++y) v += room[y * 33 + (threadIdx.x & 31)];
    __syncthreads();
    return v;
}
#else
#define CHANNEL (blockIdx.x)
#define FIRST (threadIdx.x)
#define STEP 256
#define PLACE(i) (((i) / s.inner * s.channels + c) * s.inner + (i) % s.inner)
__device__ __forceinline__ W together(W v, W* room) { return over_block(v, Plus(), room); }
#endif
#define BEGIN __shared__ W room[8 * 33]; \\
    long long c = CHANNEL, first = blockIdx.y * s.part + FIRST; \\
    long long end = min(s.count, (long long)(blockIdx.y + 1) * s.part), n = end - blockIdx.y * s.part; \\
    bool there = c < s.channels; if (!there) end = 0;
"""
_MOMENTS = (
    _HEAD
    + """
extern "C" __global__ void k(S s) {
    BEGIN
    W mean = 0, far = 0;
    for (long long i = first; i < end; i += STEP) mean += up(s.a[PLACE(i)]);
    mean = together(mean, room) / n;
    for (long long i = first; i < end; i += STEP) { W d = up(s.a[PLACE(i)]) - mean; far += d * d; }
    far = together(far, room);
    if (there && !FIRST) {
        s.parts[blockIdx.y * s.channels + c] = mean;
        s.parts[(s.pieces + blockIdx.y) * s.channels + c] = far;
    }
}
"""
)
_NORMAL = (
    _HEAD
    + """
extern "C" __global__ void k(S s) {
    BEGIN
    if (!there) return;
    W mean = 0, var = 0;
    if (s.training) {
        long long seen = 0;
        for (int p = 0; p < s.pieces; ++p) {
            long long more = min(s.count, (p + 1) * s.part) - p * s.part;
            W d = s.parts[p * s.channels + c] - mean, share = (W)more / (W)(seen + more);
            mean += d * share;
            var += s.parts[(s.pieces + p) * s.channels + c] + d * d * seen * share;
            seen += more;
        }
        var /= s.count;
    } else { mean = up(s.running_mean[c]); var = up(s.running_var[c]); }
    W rstd = (W)1 / sqrt(var + (W)s.eps), scale = s.w ? rstd * up(s.w[c]) : rstd;
    W shift = s.b ? up(s.b[c]) : (W)0;
    for (long long i = first; i < end; i += STEP) put(s.o + PLACE(i), (up(s.a[PLACE(i)]) - mean) * scale + shift);
    if (!blockIdx.y && !FIRST) {
        s.mean[c] = mean;
        s.rstd[c] = rstd;
        if (s.training) {
            W m = s.momentum;
            if (s.running_mean) put(s.running_mean + c, up(s.running_mean[c]) * ((W)1 - m) + m * mean);
            if (s.running_var)
                put(s.running_var + c, up(s.running_var[c]) * ((W)1 - m) + m * var * s.count / max(s.count - 1, 1LL));
        }
    }
}
"""
)
_SUMS = (
    _HEAD
    + """
extern "C" __global__ void k(S s) {
    BEGIN
    W mean = there ? s.mean[c] : (W)0, total = 0, along = 0;
    for (long long i = first; i < end; i += STEP) {
        W g = up(s.g[PLACE(i)]);
        total += g;
        along += g * (up(s.a[PLACE(i)]) - mean);
    }
    total = together(total, room);
    along = together(along, room);
    if (there && !FIRST) {
        s.parts[blockIdx.y * s.channels + c] = total;
        s.parts[(s.pieces + blockIdx.y) * s.channels + c] = along;
    }
}
"""
)
_GRADIENT = (
    _HEAD
    + """
extern "C" __global__ void k(S s) {
    BEGIN
    if (!there) return;
    W total = 0, along = 0, mean = s.mean[c], rstd = s.rstd[c], weight = s.w ? up(s.w[c]) : (W)1;
    if (s.parts) for (int p = 0; p < s.pieces; ++p) {
        total += s.parts[p * s.channels + c];
        along += s.parts[(s.pieces + p) * s.channels + c];
    }
    along *= rstd;
    if (s.o) {
        W middle = s.training ? total / s.count : (W)0, slope = s.training ? rstd * along / s.count : (W)0;
        // The weight comes last: an infinite one makes NaN of a sum that it is multiplied into.
        for (long long i = first; i < end; i += STEP)
            put(s.o + PLACE(i), (s.training ? up(s.g[PLACE(i)]) - middle - (up(s.a[PLACE(i)]) - mean) * slope
                                            : up(s.g[PLACE(i)])) * rstd * weight);
    }
    if (!blockIdx.y && !FIRST) {
        if (s.dw) put(s.dw + c, along);
        if (s.db) put(s.db + c, total);
    }
}
"""
)
_CODE = {"moments": _MOMENTS, "normal": _NORMAL, "sums": _SUMS, "gradient": _GRADIENT}
_LAYOUT = "Q" * 12 + "ddqqq4i"


class Channels:
    """The kernels of one device. Whatever is nothing for them gives None."""

    def __init__(self, launcher: Launcher) -> None:
        self.launcher: Launcher = launcher
        self.place: Place = launcher.place

    def _kernel(self, name: str, letters: tuple[str, str, str], last: bool) -> Kernel:
        def source() -> str:
            held, of_weights, running = letters
            head = types(held) + f"typedef {STORED[of_weights]} P;\ntypedef {STORED[running]} R;\n"
            return head + f"#define LAST {int(last)}\n" + _REDUCE + _CODE[name]

        return self.launcher.kernel(("channels", name, *letters, last), source, _LAYOUT)

    def _takes(self, a: Any, *columns: Any) -> str | None:
        """The letter of the dtype that some arrays of one number a channel have, "" if there are none; else None."""
        letter = ""
        for x in columns:
            if x is None:
                continue
            found = stored(x.dtype)
            if getattr(x, "place", None) is not self.place or x.shape != a.shape[1:2] or not is_contiguous(x):
                return None
            if found is None or (letter and found != letter) or (x.dtype != a.dtype and x.dtype != np.float32):
                return None
            letter = found
        return letter

    def _layout(self, a: Any) -> tuple[Any, bool] | None:
        """The array as kernels go through it, and whether its channels lie side by side."""
        if len(a.shape) < 2 or 0 in a.shape or a.place is not self.place or stored(a.dtype) is None:
            return None
        if is_contiguous(a):
            return a, len(a.shape) == 2
        order = (0, *range(2, len(a.shape)), 1)
        inside = _as(a, tuple([a.shape[d] for d in order]), tuple([a.strides[d] for d in order]))
        return (a, True) if inside else (a.copy(), False)

    def _launch(
        self, name: str, letters: tuple[str, str, str], last: bool, a: Any, pieces: int, part: int, training: bool,
        numbers: tuple[float, float], *arrays: Any,
    ) -> None:  # fmt: skip
        """`arrays`: in the order of the struct, from the result on."""
        channels = a.shape[1]
        count = a.size // channels
        kernel = self._kernel(name, letters, last)
        addresses = [0 if x is None else x.ptr for x in arrays]
        self.place.activate()
        kernel.grid(
            -(-channels // 32) if last else channels, pieces, 256, self.place.class_now().stream_pointer, *addresses,
            *numbers, count, math.prod(a.shape[2:]), part, channels, pieces, training, 0,
        )  # fmt: skip

    def _pieces(self, a: Any, last: bool) -> tuple[int, int]:
        """How many parts a channel has, and elements a part."""
        channels = a.shape[1]
        count = a.size // channels
        blocks = -(-channels // 32) if last else channels
        pieces = max(1, min(-(-count // (256 if last else 2048)), -(-1056 // blocks), 64))
        part = -(-count // pieces)
        return -(-count // part), part

    def _fresh(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        return self.place.fresh(shape, contiguous(shape, dtype.itemsize), dtype, math.prod(shape) * dtype.itemsize)

    def forward(
        self, a: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
        eps: float,
    ) -> Any:  # fmt: skip
        """The result, the means and the 1/deviations; running statistics are moved in place."""
        found = self._layout(a)
        of_weights, running = self._takes(a, weight, bias), self._takes(a, running_mean, running_var)
        if found is None or of_weights is None or running is None:
            return None
        if not training and (running_mean is None or running_var is None):
            return None
        a, last = found
        letter = stored(a.dtype)
        assert letter is not None
        letters = letter, of_weights or letter, running or letter
        wide = np.dtype(np.float64 if letter == "d" else np.float32)
        channels = a.shape[1]
        pieces, part = self._pieces(a, last)
        out = self.place.fresh(a.shape, a.strides, a.dtype, a.size * a.dtype.itemsize)
        mean, rstd = self._fresh((channels,), wide), self._fresh((channels,), wide)
        parts = self._fresh((2, pieces, channels), wide) if training else None
        given = (weight, bias, running_mean, running_var, mean, rstd, None, None, parts)
        if training:
            self._launch("moments", letters, last, a, pieces, part, True, (momentum, eps), None, a, None, *given)
        self._launch("normal", letters, last, a, pieces, part, training, (momentum, eps), out, a, None, *given)
        return out, mean, rstd

    def backward(self, grad: Any, a: Any, weight: Any, mean: Any, rstd: Any, training: bool, mask: Any) -> Any:
        """The gradients for input, weight and bias that `mask` asks for."""
        found = self._layout(a)
        of_weights = self._takes(a, weight)
        if found is None or of_weights is None or grad.shape != a.shape or grad.dtype != a.dtype:
            return None
        a, last = found
        letter = stored(a.dtype)
        assert letter is not None
        wide = np.dtype(np.float64 if letter == "d" else np.float32)
        if mean.dtype != wide or rstd.dtype != wide or not (is_contiguous(mean) and is_contiguous(rstd)):
            return None
        if grad.strides != a.strides:
            assert self.place.cast is not None
            same = self.place.fresh(a.shape, a.strides, a.dtype, a.size * a.dtype.itemsize)
            if self.place.cast(grad, a.dtype, same) is None:
                return None
            grad = same
        letters = letter, of_weights or ("d" if letter == "d" else "f"), letter
        held = wide if weight is None else weight.dtype
        channels = a.shape[1]
        pieces, part = self._pieces(a, last)
        out = self.place.fresh(a.shape, a.strides, a.dtype, a.size * a.dtype.itemsize) if mask[0] else None
        dw, db = (self._fresh((channels,), held) if wanted else None for wanted in mask[1:])
        parts = None
        if mask[1] or mask[2] or (training and mask[0]):
            parts = self._fresh((2, pieces, channels), wide)
        given = (weight, None, None, None, mean, rstd, dw, db, parts)
        if parts is not None:
            self._launch("sums", letters, last, a, pieces, part, training, (0.0, 0.0), None, a, grad, *given)
        self._launch("gradient", letters, last, a, pieces, part, training, (0.0, 0.0), out, a, grad, *given)
        return out, dw, db


def _as(a: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Is the array contiguous with its dimensions in this order?"""
    return _dense(a.shape, a.strides, a.dtype.itemsize) and all(
        n == 1 or stride == step for n, stride, step in zip(shape, strides, contiguous(shape, a.dtype.itemsize))
    )
