"""Attention by blocks: a tile of scores lives in a block's shared memory, and the whole matrix is nowhere.

Forward, a block of threads has 64 queries and goes over the keys, 64 at a time, keeping the largest score and the sum
of each row so far; what is kept for the backward pass is one number a row, the logarithm of its sum.  Backward, scores
are computed again: a first kernel has 64 queries and gives their gradients (and the products of rows that the other
one needs), a second one has 64 keys and gives those of keys and values.  So nothing is added by two threads, and sums
are always in the same order.

Narrow dtypes without a mask have matrix units, which cuBLAS uses: their scores are made by it, some rows of some heads
at a time, and are computed again in the backward pass as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .elementwise import _dense
from .launching import STORED, Kernel, Launcher, contiguous, stored, types

if TYPE_CHECKING:
    from ..places import Place

_TILE = 64
#: Bytes of scores of narrow dtypes: so many are computed at once and kept, and so many at a time where there are more.
_MANY = 32 << 20
_PART = 32 << 20

# A thread has 4 rows and 4 columns of a tile of scores (columns 16 apart, so that neighbours read neighbouring banks),
# and the same 4 rows of a result. Rows of tiles are 4 elements longer than they need be, for the same reason.
_HEAD = """
#define INF __longlong_as_double(0x7ff0000000000000LL)
#define ROW (DP + 4)
#define PART (DP / 16)
struct __align__(16) W4 { W v[4]; };
struct S { T* o; W* lse; T* dk; T* dv; W* delta; const T* q; const T* k; const T* v; const T* y; const T* g;
    const M* mask; double scale; long long sq[3], sk[3], sv[3], so[3], sy[3], sg[3], sdk[3], sdv[3], sm[4]; int heads;
    int rows; int columns; int width; int causal; int even; };
__device__ __forceinline__ long long at(const long long* steps, int b, int h) { return b * steps[0] + h * steps[1]; }
__device__ void load(W* tile, const T* from, long long step, int first, int count, int width, int even) {
    for (int i = threadIdx.x; i < 64 * (DP / 4); i += 256) {
        int r = i / (DP / 4), d = i % (DP / 4) * 4;
        W4 v;
        const T* p = from + (first + r) * step + d;
        bool there = first + r < count;
        if (sizeof(T) == sizeof(float) && even) {
            if (there && d < width) v = *(const W4*)p; else v.v[0] = v.v[1] = v.v[2] = v.v[3] = 0;
        } else for (int k = 0; k < 4; ++k) v.v[k] = there && d + k < width ? (W)up(p[k]) : (W)0;
        *(W4*)(tile + r * ROW + d) = v;
    }
}
__device__ __forceinline__ void dots(W s[4][4], const W* a, const W* b, int width) {
    int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
    for (int i = 0; i < 4; ++i) for (int j = 0; j < 4; ++j) s[i][j] = 0;
    #pragma unroll 4
    for (int d = 0; d < width; d += 4) {
        W4 x[4], y[4];
        for (int i = 0; i < 4; ++i) x[i] = *(const W4*)(a + (ty * 4 + i) * ROW + d);
        for (int j = 0; j < 4; ++j) y[j] = *(const W4*)(b + (tx + 16 * j) * ROW + d);
        for (int i = 0; i < 4; ++i) for (int j = 0; j < 4; ++j) for (int k = 0; k < 4; ++k)
            s[i][j] += x[i].v[k] * y[j].v[k];
    }
}
__device__ __forceinline__ void keep(W* tile, W s[4][4]) {
    int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
    for (int i = 0; i < 4; ++i) for (int j = 0; j < 4; ++j) tile[(ty * 4 + i) * 68 + tx + 16 * j] = s[i][j];
}
__device__ __forceinline__ void add(W sum[4][PART], const W* s, const W* b) {
    int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
    #pragma unroll 4
    for (int c = 0; c < 64; c += 4) {
        W4 p[4];
        for (int i = 0; i < 4; ++i) p[i] = *(const W4*)(s + (ty * 4 + i) * 68 + c);
        for (int k = 0; k < 4; ++k) for (int m = 0; m < PART / 4; ++m) {
            W4 y = *(const W4*)(b + (c + k) * ROW + tx * 4 + 64 * m);
            for (int i = 0; i < 4; ++i) for (int j = 0; j < 4; ++j) sum[i][m * 4 + j] += p[i].v[k] * y.v[j];
        }
    }
}
__device__ __forceinline__ void store(T* to, long long step, int first, int count, int width, W sum[4][PART],
                                      const W* factor) {
    int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
    for (int i = 0; i < 4; ++i) {
        int r = first + ty * 4 + i;
        if (r < count) for (int m = 0; m < PART / 4; ++m) for (int j = 0; j < 4; ++j) {
            int d = tx * 4 + 64 * m + j;
            if (d < width) put(to + r * step + d, sum[i][m * 4 + j] * factor[i]);
        }
    }
}
// The score of a query and a key: minus infinity where the one does not see the other.
__device__ __forceinline__ W score(const S& s, const M* mask, W v, int r, int c) {
    if (r >= s.rows || c >= s.columns || (s.causal && c > r)) return -INF;
    v *= (W)s.scale;
    MASKED
    return v;
}
"""
_MASKED = {
    "none": "",
    "bool": "if (!mask[r * s.sm[2] + c * s.sm[3]]) return -INF;",
    "added": "v += up(mask[r * s.sm[2] + c * s.sm[3]]);",
}
_FORWARD = (
    _HEAD
    + """
extern "C" __global__ void __launch_bounds__(256) k(S s) {
    extern __shared__ double room[];
    W *q = (W*)room, *k = q + 64 * ROW, *v = k + 64 * ROW;
    int tx = threadIdx.x & 15, ty = threadIdx.x >> 4, b = blockIdx.y / s.heads, h = blockIdx.y % s.heads;
    int first = blockIdx.x * 64, width = (s.width + 3) & ~3;
    const M* mask = s.mask + at(s.sm, b, h);
    load(q, s.q + at(s.sq, b, h), s.sq[2], first, s.rows, s.width, s.even);
    W most[4], total[4], sum[4][PART], p[4][4];
    for (int i = 0; i < 4; ++i) {
        most[i] = -INF; total[i] = 0;
        for (int j = 0; j < PART; ++j) sum[i][j] = 0;
    }
    int end = s.causal ? min(s.columns, first + 64) : s.columns;
    for (int c = 0; c < end; c += 64) {
        __syncthreads();
        load(k, s.k + at(s.sk, b, h), s.sk[2], c, s.columns, s.width, s.even);
        load(v, s.v + at(s.sv, b, h), s.sv[2], c, s.columns, s.width, s.even);
        __syncthreads();
        dots(p, q, k, width);
        for (int i = 0; i < 4; ++i) {
            W here = -INF;
            for (int j = 0; j < 4; ++j) {
                p[i][j] = score(s, mask, p[i][j], first + ty * 4 + i, c + tx + 16 * j);
                here = here != here || here > p[i][j] ? here : p[i][j];
            }
            for (int d = 8; d; d >>= 1) {
                W other = __shfl_xor_sync(0xffffffff, here, d);
                here = here != here || here > other ? here : other;
            }
            here = here != here || here > most[i] ? here : most[i];
            W level = here == -INF ? (W)0 : here, shrink = exp(most[i] - level), part = 0;
            for (int j = 0; j < 4; ++j) part += p[i][j] = exp(p[i][j] - level);
            for (int d = 8; d; d >>= 1) part += __shfl_xor_sync(0xffffffff, part, d);
            total[i] = total[i] * shrink + part;
            most[i] = here;
            for (int j = 0; j < PART; ++j) sum[i][j] *= shrink;
        }
        __syncthreads();
        keep(k, p);
        __syncthreads();
        add(sum, k, v);
    }
    W factor[4];
    for (int i = 0; i < 4; ++i) {
        // A row that sees nothing gives zeros.
        factor[i] = most[i] == -INF ? (W)0 : (W)1 / total[i];
        int r = first + ty * 4 + i;
        W all = most[i] == -INF ? most[i] : most[i] + log(total[i]);
        if (!tx && r < s.rows) s.lse[(long long)blockIdx.y * s.rows + r] = all;
    }
    store(s.o + at(s.so, b, h), s.so[2], first, s.rows, s.width, sum, factor);
}
"""
)
_QUERIES = (
    _HEAD
    + """
extern "C" __global__ void __launch_bounds__(256) k(S s) {
    extern __shared__ double room[];
    W *q = (W*)room, *g = q + 64 * ROW, *k = g + 64 * ROW, *v = k + 64 * ROW;
    int tx = threadIdx.x & 15, ty = threadIdx.x >> 4, b = blockIdx.y / s.heads, h = blockIdx.y % s.heads;
    int first = blockIdx.x * 64, width = (s.width + 3) & ~3;
    const M* mask = s.mask + at(s.sm, b, h);
    load(q, s.q + at(s.sq, b, h), s.sq[2], first, s.rows, s.width, s.even);
    load(g, s.g + at(s.sg, b, h), s.sg[2], first, s.rows, s.width, s.even);
    load(k, s.y + at(s.sy, b, h), s.sy[2], first, s.rows, s.width, s.even);
    __syncthreads();
    W delta[4], lse[4], sum[4][PART], p[4][4], dp[4][4];
    for (int i = 0; i < 4; ++i) {
        int r = first + ty * 4 + i;
        W v = 0;
        for (int d = tx; d < s.width; d += 16) v += g[(ty * 4 + i) * ROW + d] * k[(ty * 4 + i) * ROW + d];
        for (int d = 8; d; d >>= 1) v += __shfl_xor_sync(0xffffffff, v, d);
        delta[i] = v;
        lse[i] = r < s.rows ? s.lse[(long long)blockIdx.y * s.rows + r] : -INF;
        if (!tx && r < s.rows) s.delta[(long long)blockIdx.y * s.rows + r] = v;
        for (int j = 0; j < PART; ++j) sum[i][j] = 0;
    }
    int end = !s.o ? 0 : s.causal ? min(s.columns, first + 64) : s.columns;
    for (int c = 0; c < end; c += 64) {
        __syncthreads();
        load(k, s.k + at(s.sk, b, h), s.sk[2], c, s.columns, s.width, s.even);
        load(v, s.v + at(s.sv, b, h), s.sv[2], c, s.columns, s.width, s.even);
        __syncthreads();
        dots(p, q, k, width);
        dots(dp, g, v, width);
        for (int i = 0; i < 4; ++i) for (int j = 0; j < 4; ++j) {
            W here = score(s, mask, p[i][j], first + ty * 4 + i, c + tx + 16 * j);
            p[i][j] = lse[i] == -INF || here == -INF ? (W)0 : exp(here - lse[i]) * (dp[i][j] - delta[i]);
        }
        __syncthreads();
        keep(v, p);
        __syncthreads();
        add(sum, v, k);
    }
    W factor[4] = {(W)s.scale, (W)s.scale, (W)s.scale, (W)s.scale};
    if (s.o) store(s.o + at(s.so, b, h), s.so[2], first, s.rows, s.width, sum, factor);
}
"""
)
_KEYS = (
    _HEAD
    + """
extern "C" __global__ void __launch_bounds__(256) k(S s) {
    extern __shared__ double room[];
    W *k = (W*)room, *v = k + 64 * ROW, *q = v + 64 * ROW, *g = q + 64 * ROW, *tile = g + 64 * ROW;
    int tx = threadIdx.x & 15, ty = threadIdx.x >> 4, b = blockIdx.y / s.heads, h = blockIdx.y % s.heads;
    int first = blockIdx.x * 64, width = (s.width + 3) & ~3;
    const M* mask = s.mask + at(s.sm, b, h);
    load(k, s.k + at(s.sk, b, h), s.sk[2], first, s.columns, s.width, s.even);
    load(v, s.v + at(s.sv, b, h), s.sv[2], first, s.columns, s.width, s.even);
    W dk[4][PART], dv[4][PART], p[4][4], dp[4][4];
    for (int i = 0; i < 4; ++i) for (int j = 0; j < PART; ++j) dk[i][j] = dv[i][j] = 0;
    for (int r0 = s.causal ? first : 0; r0 < s.rows; r0 += 64) {
        __syncthreads();
        load(q, s.q + at(s.sq, b, h), s.sq[2], r0, s.rows, s.width, s.even);
        load(g, s.g + at(s.sg, b, h), s.sg[2], r0, s.rows, s.width, s.even);
        __syncthreads();
        dots(p, k, q, width);
        dots(dp, v, g, width);
        for (int j = 0; j < 4; ++j) {
            int r = r0 + tx + 16 * j;
            bool there = r < s.rows;
            W lse = there ? s.lse[(long long)blockIdx.y * s.rows + r] : -INF;
            W delta = there ? s.delta[(long long)blockIdx.y * s.rows + r] : (W)0;
            for (int i = 0; i < 4; ++i) {
                W here = score(s, mask, p[i][j], r, first + ty * 4 + i);
                bool seen = lse != -INF && here != -INF;
                p[i][j] = seen ? exp(here - lse) : (W)0;
                dp[i][j] = seen ? p[i][j] * (dp[i][j] - delta) : (W)0;
            }
        }
        keep(tile, p);
        __syncthreads();
        add(dv, tile, g);
        __syncthreads();
        keep(tile, dp);
        __syncthreads();
        add(dk, tile, q);
    }
    W one[4] = {1, 1, 1, 1}, factor[4] = {(W)s.scale, (W)s.scale, (W)s.scale, (W)s.scale};
    if (s.dk) store(s.dk + at(s.sdk, b, h), s.sdk[2], first, s.columns, s.width, dk, factor);
    if (s.dv) store(s.dv + at(s.sdv, b, h), s.sdv[2], first, s.columns, s.width, dv, one);
}
"""
)
_CODE = {"forward": (_FORWARD, 3, False), "queries": (_QUERIES, 4, False), "keys": (_KEYS, 4, True)}


class Attention:
    """The kernels of one device. Whatever is nothing for them gives None."""

    def __init__(self, launcher: Launcher) -> None:
        self.launcher: Launcher = launcher
        self.place: Place = launcher.place

    def _kernel(self, name: str, letter: str, mask: str, kind: str, wide: int) -> tuple[Kernel, int]:
        code, tiles, scores = _CODE[name]
        item = 8 if letter == "d" else 4
        shared = (tiles * _TILE * (wide + 4) + (_TILE * (_TILE + 4) if scores else 0)) * item

        def source() -> str:
            head = types(letter) + f"typedef {mask} M;\n#define DP {wide}\n"
            return head + code.replace("MASKED", _MASKED[kind])

        key = ("attention", name, letter, mask, kind, wide)
        return self.launcher.kernel(key, source, "Q" * 11 + "d28q6i", shared), shared

    def _takes(self, query: Any, key: Any, value: Any, mask: Any) -> tuple[str, str, str, int] | None:
        """The letter of the dtype, what elements of the mask are, how it is used, and the width of tiles."""
        letter = stored(query.dtype)
        if letter is None or len(query.shape) < 3 or len(query.shape) > 4:
            return None
        width = query.shape[-1]
        if not (query.shape[:-2] == key.shape[:-2] == value.shape[:-2] and width == key.shape[-1] == value.shape[-1]):
            return None
        if key.shape[-2] != value.shape[-2] or not (query.size and key.size) or width > (64 if letter == "d" else 128):
            return None
        if math.prod(query.shape[:-2]) >= 1 << 16:
            return None  # more than a launch has blocks in this direction
        item = query.dtype.itemsize
        for x in (query, key, value):
            if x.place is not self.place or x.dtype != query.dtype or any(step % item for step in x.strides):
                return None
        wide = 64 if width <= 64 else 128
        if mask is None:
            return letter, "T", "none", wide
        if mask.place is not self.place or len(mask.shape) > len(query.shape):
            return None
        target = (*query.shape[:-1], key.shape[-2])
        if any(n not in (1, m) for n, m in zip(reversed(mask.shape), reversed(target))):
            return None
        if mask.dtype == np.bool_:
            return letter, "bool", "bool", wide
        kind = stored(mask.dtype)
        return None if kind is None else (letter, STORED[kind], "added", wide)

    def _like(self, x: Any) -> Any:
        """A new array that lies as `x` does, if that fills its memory."""
        item = x.dtype.itemsize
        strides = x.strides if _dense(x.shape, x.strides, item) else _heads_inside(x, item)
        return self.place.fresh(x.shape, strides, x.dtype, math.prod(x.shape) * item)

    def _rowed(self, x: Any) -> Any:
        """`x` with the elements of a row side by side."""
        return x if x.strides[-1] == x.dtype.itemsize or x.shape[-1] == 1 else self._copy(x)

    def _copy(self, x: Any) -> Any:
        """A contiguous copy."""
        out = self.place.empty(x.shape, x.dtype)
        assert self.place.cast is not None
        made = self.place.cast(x, x.dtype, out)
        return x.copy("C") if made is None else made

    def forward(self, query: Any, key: Any, value: Any, is_causal: bool, mask: Any, scale: float) -> Any:
        """The result, and the logarithm of each row's sum."""
        found = self._takes(query, key, value, mask)
        if found is None:
            return None
        letter, held, kind, wide = found
        rows, lead = query.shape[-2], math.prod(query.shape[:-2])
        if letter in "eE" and kind == "none":
            return self._forward_by_parts(query, key, value, is_causal, scale)
        query, key, value = (self._rowed(x) for x in (query, key, value))
        out = self._like(query)
        number = np.dtype(np.float64 if letter == "d" else np.float32)
        shape = query.shape[:-1]
        lse = self.place.fresh(shape, contiguous(shape, number.itemsize), number, lead * rows * number.itemsize)
        kernel, shared = self._kernel("forward", letter, held, kind, wide)
        self._launch(kernel, shared, -(-rows // _TILE), query, key, value, mask, scale, is_causal, out=out, lse=lse)
        return out, lse

    def backward(
        self, grad: Any, query: Any, key: Any, value: Any, result: Any, lse: Any, mask: Any, is_causal: bool,
        scale: float, edges: Sequence[Any],
    ) -> Any:  # fmt: skip
        """The gradients for query, key and value, those whose edge is not None."""
        found = self._takes(query, key, value, mask)
        assert found is not None
        letter, held, kind, wide = found
        if letter in "eE" and kind == "none":
            return self._backward_by_parts(grad, query, key, value, is_causal, scale, edges)
        query, key, value, result, grad = (self._rowed(x) for x in (query, key, value, result, grad))
        rows, columns = query.shape[-2], key.shape[-2]
        delta = self.place.fresh(lse.shape, lse.strides, lse.dtype, lse.size * lse.dtype.itemsize)
        dq, dk, dv = (None if edge is None else self._like(x) for edge, x in zip(edges, (query, key, value)))
        given = {"lse": lse, "delta": delta, "y": result, "g": grad}
        kernel, shared = self._kernel("queries", letter, held, kind, wide)
        self._launch(kernel, shared, -(-rows // _TILE), query, key, value, mask, scale, is_causal, out=dq, **given)
        if dk is not None or dv is not None:
            kernel, shared = self._kernel("keys", letter, held, kind, wide)
            self._launch(kernel, shared, -(-columns // _TILE), query, key, value, mask, scale, is_causal, dk=dk, dv=dv,
                         **given)  # fmt: skip
        return dq, dk, dv

    def _parts(self, query: Any, key: Any) -> Any:
        """Which rows of which heads are computed at a time: the number of the batch, heads and rows from and to."""
        heads, rows, columns = query.shape[-3], query.shape[-2], key.shape[-2]
        most = max(1, _PART // (columns * query.dtype.itemsize))
        down = min(rows, max(64, most))
        many = max(1, min(heads, most // rows)) if down == rows else 1
        for batch in range(query.shape[0] if len(query.shape) == 4 else 1):
            for head in range(0, heads, many):
                for row in range(0, rows, down):
                    yield batch, head, min(head + many, heads), row, min(row + down, rows)

    def _part(self, x: Any, batch: int, head: int, end: int, row: int = 0, last: int | None = None) -> Any:
        """Some rows of some heads; all of them if no last one is given."""
        steps = x.strides if len(x.strides) == 4 else (0, *x.strides)
        shape = (end - head, (x.shape[-2] if last is None else last) - row, x.shape[-1])
        offset = batch * steps[0] + head * steps[1] + row * steps[2]
        apart = steps[1] if end - head > 1 else shape[1] * steps[2]  # one head lies as a new array does
        return self.place.view_of(x, shape, (apart, *steps[2:]), offset)

    def _product(self, a: Any, b: Any, out: Any = None, scale: float = 1.0, more: float = 0.0) -> Any:
        made = self.place.product(a, b, out, scale, more)
        assert made is not None, "a product of parts that cuBLAS does not take"
        return made

    def _weights(self, query: Any, key: Any, is_causal: bool, scale: float, first: int) -> Any:
        place = self.place
        scores = self._product(query, key.swapaxes(-2, -1), None, scale)
        assert place.rows is not None
        return place.rows.softmax("softmax", scores, -1, query.shape[-2] if is_causal else 0, True, first)

    def _forward_by_parts(self, query: Any, key: Any, value: Any, is_causal: bool, scale: float) -> Any:
        """None if there are so few scores that they are kept."""
        if math.prod(query.shape[:-1]) * key.shape[-2] * query.dtype.itemsize <= _MANY:
            return None
        place = self.place
        out = place.empty(query.shape, query.dtype)
        for batch, head, end, row, last in self._parts(query, key):
            q, k = self._part(query, batch, head, end, row, last), self._part(key, batch, head, end)
            weights = self._weights(q, k, is_causal, scale, row)
            made = self._part(out, batch, head, end, row, last)
            self._product(weights, self._part(value, batch, head, end), made)
        return out, place.empty((0,), query.dtype)  # nothing is kept

    def _backward_by_parts(
        self, grad: Any, query: Any, key: Any, value: Any, is_causal: bool, scale: float, edges: Sequence[Any]
    ) -> Any:
        place = self.place
        assert place.rows is not None
        dq, dk, dv = (None if edge is None else place.empty(x.shape, x.dtype)
                      for edge, x in zip(edges, (query, key, value)))  # fmt: skip
        for batch, head, end, row, last in self._parts(query, key):
            q, g = (self._part(x, batch, head, end, row, last) for x in (query, grad))
            k, v = (self._part(x, batch, head, end) for x in (key, value))
            weights = self._weights(q, k, is_causal, scale, row)
            more = 1.0 if row else 0.0  # rows of a head add up
            if dv is not None:
                self._product(weights.swapaxes(-2, -1), g, self._part(dv, batch, head, end), 1.0, more)
            if dq is None and dk is None:
                continue
            scores = place.rows.softmax_backward("softmax", self._product(g, v.swapaxes(-2, -1)), weights, -1)
            if dq is not None:
                self._product(scores, k, self._part(dq, batch, head, end, row, last), scale)
            if dk is not None:
                self._product(scores.swapaxes(-2, -1), q, self._part(dk, batch, head, end), scale, more)
        return dq, dk, dv

    def _launch(
        self, kernel: Kernel, shared: int, blocks: int, query: Any, key: Any, value: Any, mask: Any, scale: float,
        is_causal: bool, out: Any = None, lse: Any = None, dk: Any = None, dv: Any = None, delta: Any = None,
        y: Any = None, g: Any = None,
    ) -> None:  # fmt: skip
        item = query.dtype.itemsize
        arrays = (query, key, value, out, y, g, dk, dv)
        steps = [one for x in arrays for one in _steps(x, item)]
        even = query.shape[-1] % 4 == 0 and all(
            x is None or (x.ptr % 16 == 0 and all(step % 16 == 0 for step in x.strides[:-1]))
            for x in (query, key, value, y, g)
        )
        masked = (0, 0, 0, 0)
        if mask is not None:
            missing = 4 - len(mask.shape) - (1 if len(query.shape) == 3 else 0)
            own = [0 if n == 1 else step // mask.dtype.itemsize for n, step in zip(mask.shape, mask.strides)]
            masked = (*(0,) * missing, *own)  # type: ignore[assignment]
            if len(query.shape) == 3:  # one dimension of batches, which is that of heads
                masked = (0, *masked)  # type: ignore[assignment]
        addresses = [0 if x is None else x.ptr for x in (out, lse, dk, dv, delta, query, key, value, y, g, mask)]
        self.place.activate()
        kernel.grid(
            blocks, math.prod(query.shape[:-2]), 256, self.place.class_now().stream_pointer, *addresses, scale, *steps,
            *masked, query.shape[-3], query.shape[-2], key.shape[-2], query.shape[-1], is_causal, even, shared=shared,
        )  # fmt: skip


def _steps(x: Any, item: int) -> tuple[int, int, int]:
    """How far apart batches, heads and rows are, in elements."""
    if x is None:
        return 0, 0, 0
    found = [step // item for step in x.strides[:-1]]
    return (0, *found) if len(found) == 2 else tuple(found)  # type: ignore[return-value]


def _heads_inside(x: Any, item: int) -> tuple[int, ...]:
    """Strides with which the heads of a row lie side by side, if those of `x` do; else those of a new array."""
    if len(x.shape) == 4 and x.strides[1] < x.strides[2]:
        batch, heads, rows, width = x.shape
        if x.strides[0] < x.strides[2]:  # rows first, then batches
            return heads * width * item, width * item, batch * heads * width * item, item
        return rows * heads * width * item, width * item, heads * width * item, item
    return contiguous(x.shape, item)
