"""Kernels that go over rows: softmax and its logarithm, layer_norm, the loss of classes, with their derivatives.

A block of threads has a row (or a loss), reads it as often as it needs, and writes once; sums are in W.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .launching import _REDUCE, TALL, Kernel, Launcher, blocks_for, contiguous, stored, types

if TYPE_CHECKING:
    from ..places import Place

_ROW = """
extern "C" __global__ void k(S s) {
    __shared__ W room[32];
    long long row = blockIdx.x;
    int n = s.width;
"""
_SOFTMAX = (
    """struct S { T* o; const T* a; int width; int rows; int seen; int first; };
"""
    + _ROW
    + """
    const T* a = s.a + row * n;
    T* o = s.o + row * n;
    int seen = s.seen ? min(n, s.first + (int)(row % s.seen) + 1) : n;
    W most = -INF;
    for (int j = threadIdx.x; j < seen; j += blockDim.x) most = Larger()(most, up(a[j]));
    most = over_block(most, Larger(), room);
    W total = 0;
    DEAD
    for (int j = threadIdx.x; j < seen; j += blockDim.x) total += exp(up(a[j]) - most);
    total = over_block(total, Plus(), room);
    WRITE
}
"""
)
_WRITE = {
    "softmax": "for (int j = threadIdx.x; j < n; j += blockDim.x) "
               "put(o + j, j < seen ? exp(up(a[j]) - most) / total : (W)0);",
    "log_softmax": "W log_total = log(total);\n for (int j = threadIdx.x; j < n; j += blockDim.x) "
                   "put(o + j, up(a[j]) - most - log_total);",
}  # fmt: skip
#: Of attention: a row that sees nothing gives zeros.
_DEAD = """if (most == -INF) { for (int j = threadIdx.x; j < n; j += blockDim.x) put(o + j, (W)0); return; }"""
_BACKWARD = (
    """struct S { T* o; const T* g; const T* y; int width; int rows; };
"""
    + _ROW
    + """
    const T* g = s.g + row * n; const T* y = s.y + row * n;
    T* o = s.o + row * n;
    W total = 0;
    for (int j = threadIdx.x; j < n; j += blockDim.x) total += TERM;
    total = over_block(total, Plus(), room);
    for (int j = threadIdx.x; j < n; j += blockDim.x) put(o + j, RESULT);
}
"""
)
_TERMS = {
    "softmax": ("up(g[j]) * up(y[j])", "(up(g[j]) - total) * up(y[j])"),
    "log_softmax": ("up(g[j])", "up(g[j]) - exp(up(y[j])) * total"),
}
_LAYER_NORM = (
    """struct S { T* o; const T* a; const T* w; const T* b; T* mean; T* rstd; double eps; int width;
    int rows; };
"""
    + _ROW
    + """
    const T* a = s.a + row * n;
    T* o = s.o + row * n;
    W mean = 0, var = 0;
    for (int j = threadIdx.x; j < n; j += blockDim.x) mean += up(a[j]);
    mean = over_block(mean, Plus(), room) / n;
    for (int j = threadIdx.x; j < n; j += blockDim.x) { W d = up(a[j]) - mean; var += d * d; }
    var = over_block(var, Plus(), room) / n;
    W rstd = (W)1 / sqrt(var + (W)s.eps);
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        W v = (up(a[j]) - mean) * rstd;
        if (s.w) v *= up(s.w[j]);
        if (s.b) v += up(s.b[j]);
        put(o + j, v);
    }
    if (!threadIdx.x) { put(s.mean + row, mean); put(s.rstd + row, rstd); }
}
"""
)
# Means and deviations are kept in T; of narrow elements they are computed again, and told to the kernel of the columns.
_LAYER_NORM_BACKWARD = (
    """struct S { T* o; const T* g; const T* a; const T* w; const T* mean; const T* rstd; W* told;
    double eps; int width; int rows; };
"""
    + _ROW
    + """
    const T* a = s.a + row * n; const T* g = s.g + row * n;
    T* o = s.o + row * n;
    W mean, rstd;
    if (sizeof(T) < sizeof(W)) {
        mean = 0; W var = 0;
        for (int j = threadIdx.x; j < n; j += blockDim.x) mean += up(a[j]);
        mean = over_block(mean, Plus(), room) / n;
        for (int j = threadIdx.x; j < n; j += blockDim.x) { W d = up(a[j]) - mean; var += d * d; }
        rstd = (W)1 / sqrt(over_block(var, Plus(), room) / n + (W)s.eps);
        if (!threadIdx.x) { s.told[row] = mean; s.told[s.rows + row] = rstd; }
    } else { mean = up(s.mean[row]); rstd = up(s.rstd[row]); }
    W middle = 0, along = 0;
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        W d = up(g[j]) * (s.w ? up(s.w[j]) : (W)1);
        middle += d;
        along += d * (up(a[j]) - mean) * rstd;
    }
    middle = over_block(middle, Plus(), room) / n;
    along = over_block(along, Plus(), room) / n;
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        W d = up(g[j]) * (s.w ? up(s.w[j]) : (W)1);
        put(o + j, rstd * (d - middle - (up(a[j]) - mean) * rstd * along));
    }
}
"""
)
_COLUMNS = """struct S { W* o; const T* g; const T* a; const W* mean; const W* rstd; int width; int rows; int part;
    int pad; };
extern "C" __global__ void k(S s) {
    __shared__ W room[2][8][33];
    int x = threadIdx.x & 31, y = threadIdx.x >> 5, j = blockIdx.x * 32 + x;
    W dw = 0, db = 0;
    int end = min(s.rows, (int)(blockIdx.y + 1) * s.part);
    if (j < s.width) for (int i = blockIdx.y * s.part + y; i < end; i += 8) {
        W g = up(s.g[(long long)i * s.width + j]);
        dw += g * (up(s.a[(long long)i * s.width + j]) - s.mean[i]) * s.rstd[i];
        db += g;
    }
    room[0][y][x] = dw; room[1][y][x] = db;
    __syncthreads();
    if (y < 2 && j < s.width) {
        W v = 0;
        for (int i = 0; i < 8; ++i) v += room[y][i][x];
        s.o[((long long)y * gridDim.y + blockIdx.y) * s.width + j] = v;
    }
}
"""
# The same of not too many rows, in one launch: 8 columns a block, and 128 threads for each of them.
_TALL = """struct S { T* dw; T* db; const T* g; const T* a; const W* mean; const W* rstd; int width; int rows; };
extern "C" __global__ void k(S s) {
    __shared__ W room[2][128][9];
    int x = threadIdx.x & 7, y = threadIdx.x >> 3, j = blockIdx.x * 8 + x;
    W dw = 0, db = 0;
    #pragma unroll 4
    for (int i = y; i < s.rows; i += 128) if (j < s.width) {
        W g = up(s.g[(long long)i * s.width + j]);
        dw += g * (up(s.a[(long long)i * s.width + j]) - s.mean[i]) * s.rstd[i];
        db += g;
    }
    room[0][y][x] = dw; room[1][y][x] = db;
    for (int d = 64; d; d >>= 1) {
        __syncthreads();
        if (y < d) for (int k = 0; k < 2; ++k) room[k][y][x] += room[k][y + d][x];
    }
    if (!y && j < s.width) {
        if (s.dw) put(s.dw + j, room[0][0][x]);
        if (s.db) put(s.db + j, room[1][0][x]);
    }
}
"""
_NLL = """struct S { T* loss; T* total; const T* a; const long long* t; const T* w; long long ignored; long long n;
    int classes; int inner; int mean; int pad; long long* fault; };
extern "C" __global__ void k(S s) {
    __shared__ W room[32];
    W loss = 0, weight = 0;
    for (long long i = threadIdx.x; i < s.n; i += blockDim.x) {
        long long t = s.t[i];
        if (t == s.ignored) continue;
        if (t < 0 || t >= s.classes) { s.fault[1] = t; s.fault[0] = 1; continue; }
        W w = s.w ? up(s.w[t]) : (W)1;
        loss -= w * up(s.a[(i / s.inner * s.classes + t) * s.inner + i % s.inner]);
        weight += w;
    }
    loss = over_block(loss, Plus(), room);
    weight = over_block(weight, Plus(), room);
    if (!threadIdx.x) { put(s.loss, s.mean ? loss / weight : loss); put(s.total, weight); }
}
"""
_NLL_BACKWARD = """struct S { T* o; const T* g; const long long* t; const T* w; const T* total; long long ignored;
    long long n; int classes; int inner; int mean; int pad; };
extern "C" __global__ void k(S s) {
    W g = -up(*s.g);
    if (s.mean) g /= up(*s.total);
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < s.n;
         i += (long long)gridDim.x * blockDim.x) {
        long long c = i / s.inner % s.classes, t = s.t[i / s.inner / s.classes * s.inner + i % s.inner];
        put(s.o + i, t == c && t != s.ignored ? (s.w ? g * up(s.w[t]) : g) : (W)0);
    }
}
"""


def threads_for(width: int, most: int = 256) -> int:
    """How many threads have a row."""
    return min(-(-width // 32) * 32, most) or 32


class Rows:
    """The kernels of one device. Whatever is nothing for them gives None."""

    def __init__(self, launcher: Launcher) -> None:
        self.launcher: Launcher = launcher
        self.place: Place = launcher.place

    def _kernel(self, name: str, letter: str, layout: str, code: str, **texts: str) -> Kernel:
        def source() -> str:
            text = code
            for key, value in texts.items():
                text = text.replace(key, value)
            return types(letter) + "#define INF __longlong_as_double(0x7ff0000000000000LL)\n" + _REDUCE + text

        return self.launcher.kernel(("rows", name, letter), source, layout)

    def _takes(self, *arrays: Any) -> str | None:
        """The letter of the dtype that arrays of this device have in common, if they are contiguous and not empty."""
        first = arrays[0]
        letter = stored(first.dtype)
        if letter is None:
            return None
        for x in arrays:
            if x is not None and (
                getattr(x, "place", None) is not self.place or x.dtype != first.dtype or 0 in x.shape
                or not is_contiguous(x)
            ):  # fmt: skip
                return None
        return letter

    def _like(self, a: Any, shape: tuple[int, ...] | None = None) -> Any:
        shape = a.shape if shape is None else shape
        item = a.dtype.itemsize
        return self.place.fresh(shape, contiguous(shape, item), a.dtype, math.prod(shape) * item)

    # ------------------------------------------------------------------------------------------------------- softmax

    def softmax(self, name: str, a: Any, dim: int, seen: int = 0, dead: bool = False, first: int = 0) -> Any:
        """`softmax` or `log_softmax` over the last dimension; `seen`: how many rows a matrix has of which each sees no
        column to the right of its own, the first of which is number `first`; `dead`: rows of minus infinity give
        zeros."""
        if not a.shape or dim not in (-1, len(a.shape) - 1) or (letter := self._takes(a)) is None:
            return None
        width = a.shape[-1]
        rows = math.prod(a.shape[:-1])
        zeros = _DEAD if dead else ""
        kernel = self._kernel(f"{name} {dead}", letter, "QQ4i", _SOFTMAX, WRITE=_WRITE[name], DEAD=zeros)
        out = self._like(a)
        kernel(rows, threads_for(width), out.stream_pointer, out.ptr, a.ptr, width, rows, seen, first)
        return out

    def softmax_backward(self, name: str, grad: Any, result: Any, dim: int) -> Any:
        """The same of their gradients."""
        if not grad.shape or dim not in (-1, len(grad.shape) - 1) or grad.shape != result.shape:
            return None
        if not is_contiguous(grad) and self.place.cast is not None:
            grad = grad.copy()
        letter = self._takes(grad, result)
        if letter is None:
            return None
        width = grad.shape[-1]
        term, value = _TERMS[name]
        kernel = self._kernel(f"{name} backward", letter, "QQQ2i", _BACKWARD, TERM=term, RESULT=value)
        out = self._like(grad)
        rows = math.prod(grad.shape[:-1])
        kernel(rows, threads_for(width), out.stream_pointer, out.ptr, grad.ptr, result.ptr, width, rows)
        return out

    # ---------------------------------------------------------------------------------------------------- layer_norm

    def layer_norm(self, a: Any, shape: tuple[int, ...], weight: Any, bias: Any, eps: float) -> Any:
        """The result, the means and the 1/deviations."""
        before = len(a.shape) - len(shape)
        if not shape or before < 0 or a.shape[before:] != shape:
            return None
        if any(x is not None and x.shape != shape for x in (weight, bias)):
            return None
        if not is_contiguous(a):
            a = a.copy()
        letter = self._takes(a, weight, bias)
        if letter is None:
            return None
        width, rows = math.prod(shape), math.prod(a.shape[:before])
        kept = a.shape[:before] + (1,) * len(shape)
        out, mean, rstd = self._like(a), self._like(a, kept), self._like(a, kept)
        kernel = self._kernel("layer_norm", letter, "QQQQQQd2i", _LAYER_NORM)
        kernel(rows, threads_for(width), out.stream_pointer, out.ptr, a.ptr, _address(weight), _address(bias), mean.ptr,
               rstd.ptr, eps, width, rows)  # fmt: skip
        return out, mean, rstd

    def layer_norm_backward(
        self, grad: Any, a: Any, shape: tuple[int, ...], mean: Any, rstd: Any, weight: Any, eps: float, mask: Any
    ) -> Any:
        """The gradients for input, weight and bias that `mask` asks for."""
        if not is_contiguous(grad):
            grad = grad.copy()
        if not is_contiguous(a):
            a = a.copy()
        letter = self._takes(grad, a, mean, rstd, weight)
        if letter is None or grad.shape != a.shape:
            return None
        width, rows = math.prod(shape), mean.size
        if width * rows != a.size:
            return None
        place, item = self.place, 8 if letter == "d" else 4
        narrow = letter in "eE"
        wide = np.dtype(np.float64 if letter == "d" else np.float32)
        told = place.fresh((2, rows), (rows * item, item), wide, 2 * rows * item) if narrow else None
        result: list[Any] = [None, None, None]
        if mask[0] or narrow:
            out = self._like(a)
            kernel = self._kernel("layer_norm backward", letter, "QQQQQQQd2i", _LAYER_NORM_BACKWARD)
            kernel(rows, threads_for(width), out.stream_pointer, out.ptr, grad.ptr, a.ptr, _address(weight), mean.ptr,
                   rstd.ptr, _address(told), eps, width, rows)  # fmt: skip
            result[0] = out if mask[0] else None
        if not (mask[1] or mask[2]):
            return tuple(result)
        means = (told.ptr, told.ptr + rows * item) if told is not None else (mean.ptr, rstd.ptr)
        if rows <= TALL:
            dw, db = (self._like(a, shape) if wanted else None for wanted in mask[1:])
            kernel = self._kernel("layer_norm tall", letter, "QQQQQQ2i", _TALL)
            kernel(-(-width // 8), 1024, place.class_now().stream_pointer, _address(dw), _address(db), grad.ptr, a.ptr,
                   *means, width, rows)  # fmt: skip
            result[1:] = dw, db
        else:
            parts = min(-(-rows // 32), 64)
            part = -(-rows // parts)
            step = parts * width * item
            sums = place.fresh((2, parts, width), (step, width * item, item), wide, 2 * step)
            kernel = self._kernel("layer_norm columns", letter, "QQQQQ4i", _COLUMNS)
            kernel.grid(-(-width // 32), parts, 256, sums.stream_pointer, sums.ptr, grad.ptr, a.ptr, *means, width,
                        rows, part, 0)  # fmt: skip
            for i in (1, 2):
                if mask[i]:
                    half = place.view_of(sums, (parts, width), (width * item, item), (i - 1) * step)
                    assert place.sums is not None
                    result[i] = place.sums.columns(half, parts, width, shape, a.dtype)
        return tuple(result)

    # ----------------------------------------------------------------------------------------------- losses of classes

    def nll_loss(self, a: Any, target: Any, weight: Any, reduction: int, ignored: int) -> Any:
        """The loss and the weight of all targets together, for a mean or a sum of not too many of them."""
        found = self._classes(a, target, weight)
        if found is None or reduction == 0 or target.size > 1 << 16:
            return None
        letter, classes, inner = found
        loss, total = self._like(a, ()), self._like(a, ())
        kernel = self._kernel("nll", letter, "QQQQQqqiiiiQ", _NLL)
        kernel(1, threads_for(target.size, 1024), loss.stream_pointer, loss.ptr, total.ptr, a.ptr, target.ptr,
               _address(weight), ignored, target.size, classes, inner, reduction == 1, 0,
               self.place.faults.address)  # fmt: skip
        return loss, total

    def nll_loss_backward(
        self, grad: Any, a: Any, target: Any, weight: Any, reduction: int, ignored: int, total: Any
    ) -> Any:
        """Its gradient."""
        found = self._classes(a, target, weight)
        if found is None or reduction == 0 or grad.size != 1 or grad.dtype != a.dtype:
            return None
        letter, classes, inner = found
        out = self._like(a)
        kernel = self._kernel("nll backward", letter, "QQQQQqqiiii", _NLL_BACKWARD)
        kernel(blocks_for(a.size), 256, out.stream_pointer, out.ptr, grad.ptr, target.ptr, _address(weight), total.ptr,
               ignored, a.size, classes, inner, reduction == 1, 0)  # fmt: skip
        return out

    def _classes(self, a: Any, target: Any, weight: Any) -> tuple[str, int, int] | None:
        if len(a.shape) < 2 or target.shape != a.shape[:1] + a.shape[2:] or target.dtype.char not in "lq":
            return None
        if weight is not None and weight.shape != a.shape[1:2]:
            return None
        letter = self._takes(a, weight)
        if letter is None or getattr(target, "place", None) is not self.place or not is_contiguous(target):
            return None
        return letter, a.shape[1], math.prod(a.shape[2:])


def is_contiguous(a: Any) -> bool:
    """Do the elements lie one after the other?"""
    step = a.dtype.itemsize
    for n, stride in zip(reversed(a.shape), reversed(a.strides)):
        if n != 1:
            if stride != step:
                return False
            step *= n
    return True


def _address(array: Any) -> int:
    return 0 if array is None else array.ptr
