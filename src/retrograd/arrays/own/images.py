"""Images: convolutions as products of columns (Note [Convolution as a product] in kernels/conv.py), maxima of windows.

Gradients are gathered: each cell of an image looks for the windows that it is in, so that nothing is added by two
threads, and sums are always in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .launching import Kernel, Launcher, blocks_for, contiguous, stored, types
from .rows import is_contiguous

if TYPE_CHECKING:
    from ..places import Place

#: The most bytes of columns at a time.
_MOST = 256 << 20
_HEAD = """struct S { T* o; const T* a; const TAPS* taps; long long total; long long step_n; long long step_k; int c;
    int h; int w; int kh; int kw; int oh; int ow; int sh; int sw; int ph; int pw; int dh; int dw; int pad; };
extern "C" __global__ void k(S s) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < s.total;
         i += (long long)gridDim.x * blockDim.x) {
"""
_COLUMNS = (
    _HEAD
    + """
        int x = i % s.ow; long long r = i / s.ow; int y = r % s.oh; r /= s.oh;
        int v = r % s.kw; r /= s.kw; int u = r % s.kh; r /= s.kh; int c = r % s.c; long long n = r / s.c;
        int p = y * s.sh - s.ph + u * s.dh, q = x * s.sw - s.pw + v * s.dw;
        long long at = n * s.step_n + ((c * s.kh + u) * (long long)s.kw + v) * s.step_k + y * s.ow + x;
        s.o[at] = p >= 0 && p < s.h && q >= 0 && q < s.w ? s.a[((n * s.c + c) * s.h + p) * s.w + q] : T{};
    }
}
"""
)
# The windows that a cell is in: FOUND is done for the tap (u, t) of the window (y, x).
_WINDOWS = """
        int q = i % s.w; long long r = i / s.w; int p = r % s.h; r /= s.h;
        W v = 0;
        CELL
        for (int u = 0; u < s.kh; ++u) {
            int y = p + s.ph - u * s.dh;
            if (y < 0 || y % s.sh || (y /= s.sh) >= s.oh) continue;
            for (int t = 0; t < s.kw; ++t) {
                int x = q + s.pw - t * s.dw;
                if (x < 0 || x % s.sw || (x /= s.sw) >= s.ow) continue;
                FOUND
            }
        }
        put(s.o + i, v);
    }
}
"""
_IMAGE = _HEAD + _WINDOWS.replace("CELL", "int c = r % s.c; long long n = r / s.c;").replace(
    "FOUND", "v += up(s.a[n * s.step_n + ((c * s.kh + u) * (long long)s.kw + t) * s.step_k + y * s.ow + x]);"
)
_POOL = (
    _HEAD
    + """
        int x = i % s.ow; long long r = i / s.ow; int y = r % s.oh; long long n = r / s.oh;
        W most = -INF;
        int tap = -1;
        for (int u = 0; u < s.kh; ++u) for (int v = 0; v < s.kw; ++v) {
            int p = y * s.sh - s.ph + u * s.dh, q = x * s.sw - s.pw + v * s.dw;
            if (p < 0 || p >= s.h || q < 0 || q >= s.w) continue;
            W here = up(s.a[(n * s.h + p) * s.w + q]);
            if (tap < 0 || here > most || here != here) { most = here; tap = u * s.kw + v; }
        }
        put(s.o + i, most);
        ((TAPS*)s.taps)[i] = tap < 0 ? 0 : tap;
    }
}
"""
)
_POOL_BACKWARD = _HEAD + _WINDOWS.replace("CELL", "").replace(
    "FOUND", "long long at = (r * s.oh + y) * s.ow + x; if (s.taps[at] == u * s.kw + t) v += up(s.a[at]);"
)
_LAYOUT = "QQQqqq14i"


def _two(values: Sequence[int], first: int) -> tuple[int, int]:
    """Sizes of an image; a signal is one of a single row."""
    return (first, int(values[0])) if len(values) == 1 else (int(values[0]), int(values[1]))


class Images:
    """The kernels of one device."""

    def __init__(self, launcher: Launcher) -> None:
        self.launcher: Launcher = launcher
        self.place: Place = launcher.place

    def _kernel(self, name: str, letter: str, code: str, taps: str = "unsigned char") -> Kernel:
        def source() -> str:
            infinity = "#define INF __longlong_as_double(0x7ff0000000000000LL)\n"
            return types(letter) + infinity + code.replace("TAPS", taps)

        return self.launcher.kernel(("images", name, letter, taps), source, _LAYOUT)

    def _fresh(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        return self.place.fresh(shape, contiguous(shape, dtype.itemsize), dtype, math.prod(shape) * dtype.itemsize)

    def _takes(self, *arrays: Any) -> str | None:
        first = arrays[0]
        for x in arrays:
            if x is not None:
                if getattr(x, "place", None) is not self.place or x.dtype != first.dtype or 0 in x.shape:
                    return None
        return stored(first.dtype)

    def _columns(self, a: Any, letter: str, sizes: tuple[int, ...], steps: tuple[int, int], columns: Any) -> None:
        count = a.shape[0] * sizes[0] * sizes[3] * sizes[4] * sizes[5] * sizes[6]
        kernel = self._kernel("columns", letter, _COLUMNS)
        kernel(blocks_for(count), 256, columns.stream_pointer, columns.ptr, a.ptr, 0, count, *steps, *sizes, 0)

    def _part(self, x: Any, first: int, last: int) -> Any:
        """Some images of a batch that is contiguous."""
        return self.place.view_of(x, (last - first, *x.shape[1:]), x.strides, first * x.strides[0])

    def convolution(
        self, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int, out: Sequence[int]
    ) -> Any:
        """The convolution of images or signals; None if it is nothing for these kernels."""
        letter = self._takes(x, weight, bias)
        if letter is None or groups != 1 or len(out) not in (1, 2) or 0 in out:
            return None
        x, weight = (one if is_contiguous(one) else one.copy() for one in (x, weight))
        sizes = _sizes(x.shape, weight.shape[2:], out, stride, padding, dilation)
        batch, outputs, inner, length = x.shape[0], weight.shape[0], math.prod(weight.shape[1:]), math.prod(out)
        item = x.dtype.itemsize
        result = self._fresh((batch, outputs, *out), x.dtype)
        many = max(1, min(batch, _MOST // (inner * length * item)))
        matrix = self.place.view_of(weight, (outputs, inner), (inner * item, item))
        for first in range(0, batch, many):
            last = min(first + many, batch)
            part = self._part(x, first, last)
            columns = self._fresh((last - first, inner, length), x.dtype)
            self._columns(part, letter, sizes, (inner * length, length), columns)
            left = self.place.view_of(matrix, (last - first, outputs, inner), (0, inner * item, item))
            step = outputs * length * item
            target = self.place.view_of(
                result, (last - first, outputs, length), (step, length * item, item), first * step
            )
            if self.place.product(left, columns, target) is None:
                return None
        if bias is not None:
            shift = self.place.view_of(bias, (outputs, *[1] * len(out)), (bias.strides[0], *[0] * len(out)))
            result = self.place.numpy.add(result, shift, result)
        return result

    def backward_input(
        self, grad: Any, weight: Any, bias: Any, input_size: Any, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> Any:
        """The transposed convolution."""
        letter = self._takes(grad, weight)
        dims = len(weight.shape) - 2
        if letter is None or groups != 1 or dims not in (1, 2) or bias is not None or 0 in input_size:
            return None
        grad, weight = (one if is_contiguous(one) else one.copy() for one in (grad, weight))
        shape = tuple([int(n) for n in input_size])
        out = grad.shape[2:]
        sizes = _sizes(shape, weight.shape[2:], out, stride, padding, dilation)
        batch, outputs, inner, length = shape[0], weight.shape[0], math.prod(weight.shape[1:]), math.prod(out)
        item = grad.dtype.itemsize
        result = self._fresh(shape, grad.dtype)
        many = max(1, min(batch, _MOST // (inner * length * item)))
        kernel = self._kernel("image", letter, _IMAGE)
        for first in range(0, batch, many):
            last = min(first + many, batch)
            count = last - first
            left = self.place.view_of(weight, (count, inner, outputs), (0, item, inner * item))
            rows = self.place.view_of(grad, (count, outputs, length), (outputs * length * item, length * item, item),
                                      first * outputs * length * item)  # fmt: skip
            columns = self.place.product(left, rows)
            if columns is None:
                return None
            target = self._part(result, first, last)
            cells = math.prod(target.shape)
            kernel(blocks_for(cells), 256, columns.stream_pointer, target.ptr, columns.ptr, 0, cells, inner * length,
                   length, *sizes, 0)  # fmt: skip
        return result

    def backward_weight(
        self, grad: Any, x: Any, weight_size: Any, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> Any:
        """The gradient for the weight: one long product over all images."""
        letter = self._takes(grad, x)
        dims = len(weight_size) - 2
        if letter is None or groups != 1 or dims not in (1, 2):
            return None
        x = x if is_contiguous(x) else x.copy()
        grad = grad if is_contiguous(grad) else grad.copy()
        shape = tuple([int(n) for n in weight_size])
        out = grad.shape[2:]
        sizes = _sizes(x.shape, shape[2:], out, stride, padding, dilation)
        batch, outputs, inner, length = x.shape[0], shape[0], math.prod(shape[1:]), math.prod(out)
        item = x.dtype.itemsize
        result = None
        many = max(1, min(batch, _MOST // (inner * length * item)))
        for first in range(0, batch, many):
            last = min(first + many, batch)
            count = last - first
            columns = self._fresh((inner, count * length), x.dtype)
            self._columns(self._part(x, first, last), letter, sizes, (length, count * length), columns)
            rows = self.place.view_of(grad, (outputs, count, length), (length * item, outputs * length * item, item),
                                      first * outputs * length * item).copy()  # fmt: skip
            rows = self.place.view_of(rows, (outputs, count * length), (count * length * item, item))
            result = self.place.product(rows, columns.transpose(), result, 1.0, 0.0 if result is None else 1.0)
            if result is None:
                return None
        assert result is not None
        return self.place.view_of(result, shape, contiguous(shape, item))

    def max_pool(self, x: Any, out: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
        """Maxima of the windows of planes, and the taps where they are."""
        letter = self._takes(x)
        if letter is None or len(out) not in (1, 2) or 0 in out:
            return None
        x = x if is_contiguous(x) else x.copy()
        sizes = _sizes((x.shape[0], 1, *x.shape[1:]), kernel, out, stride, padding, dilation)
        small = math.prod(kernel) <= 256
        result = self._fresh((x.shape[0], *out), x.dtype)
        taps = self._fresh(result.shape, np.dtype(np.uint8 if small else np.int32))
        found = self._kernel("pool", letter, _POOL, "unsigned char" if small else "int")
        count = result.size
        found(blocks_for(count), 256, taps.stream_pointer, result.ptr, x.ptr, taps.ptr, count, 0, 0, *sizes, 0)
        return result, taps

    def max_pool_backward(
        self, grad: Any, taps: Any, size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any
    ) -> Any:
        """The gradient of that."""
        letter = self._takes(grad)
        if letter is None or len(size) not in (1, 2) or 0 in size or taps.dtype not in (np.uint8, np.int32):
            return None
        grad, taps = (one if is_contiguous(one) else one.copy() for one in (grad, taps))
        shape = (grad.shape[0], *[int(n) for n in size])
        sizes = _sizes((shape[0], 1, *shape[1:]), kernel, grad.shape[1:], stride, padding, dilation)
        result = self._fresh(shape, grad.dtype)
        name = "unsigned char" if taps.dtype == np.uint8 else "int"
        found = self._kernel("pool backward", letter, _POOL_BACKWARD, name)
        found(blocks_for(result.size), 256, result.stream_pointer, result.ptr, grad.ptr, taps.ptr, result.size, 0, 0,
              *sizes, 0)  # fmt: skip
        return result


def _sizes(shape: Any, kernel: Any, out: Any, stride: Any, padding: Any, dilation: Any) -> tuple[int, ...]:
    """Channels, then height and width of images, kernel and result, steps, paddings and distances of taps."""
    return (
        int(shape[1]), *_two(shape[2:], 1), *_two(kernel, 1), *_two(out, 1), *_two(stride, 1), *_two(padding, 0),
        *_two(dilation, 1),
    )  # fmt: skip
