"""The compiled kernels of `retrograd[fast]`, where they are installed.

Kernels come here with large arrays only, those of rows with any.  Each function returns None where the library is not
there or does not take the operands (float32 and float64, mostly contiguous), and the NumPy kernel goes on: it is the
reference, and the library is never needed.  RETROGRAD_FAST=0 in the environment turns it off, and so does
`retrograd.backends.fast`.

A C kernel does the tasks (elements, rows, planes …) of a
range; the library's `run` shares them among threads.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from retrograd.core.threads import listeners, threads

LARGE = 1 << 12  # elements: with fewer, what a call costs begins to count
#: Elements from which on kernels of rows (softmax, layer_norm) come here: with the library all, since one call of it
#: costs less than their steps in NumPy.
rows_from = LARGE
SUFFIXES = {np.dtype(np.float32): "_f32", np.dtype(np.float64): "_f64"}
_VERSION = 6  # of the kernels' names and arguments
_GRAIN = 1 << 14  # elements that are worth a thread

#: The library, or None where there is none, looked for when first needed; and whether it is used.
_state: dict[str, Any] = {"enabled": os.environ.get("RETROGRAD_FAST", "1") != "0"}


def library() -> Any:
    """The loaded library, or None."""
    if "library" not in _state:
        _state["library"] = _load()
    return _state["library"]


def is_enabled() -> bool:
    """Whether the library may be used, if it is there."""
    return _state["enabled"]


def is_used() -> bool:
    """Whether it may be used, and is there."""
    return _state["enabled"] and library() is not None


def _load() -> Any:
    try:
        import retrograd_fast
    except ImportError:
        return None
    if retrograd_fast.VERSION != _VERSION:  # of another release: the NumPy kernels are right, this might not be
        return None
    found = retrograd_fast.load()
    # bfloat16's loops have to be there when `on_threads` copies a ufunc's: without them float32's would be taken.
    import ml_dtypes  # noqa: F401

    global rows_from
    rows_from = 0
    listeners.append(tell_threads)
    found.use_threads(threads[0] if _state["enabled"] else 0)
    return found


def tell_threads() -> None:
    """Let the library know how many threads the ufuncs of `on_threads` may use."""
    if _state.get("library") is not None:
        _state["library"].use_threads(threads[0] if _state["enabled"] else 0)


_shared: dict[Any, Any] = {}


def on_threads(ufunc: Any) -> Any:
    """A ufunc with the same loops that shares long rows of elements among threads, without ``reduce``; the same ufunc
    where there is no library, or it is turned off."""
    found = _shared.get(ufunc)
    if found is None:
        if not _state["enabled"]:
            return ufunc
        made = library().parallel(ufunc) if isinstance(ufunc, np.ufunc) and library() is not None else None
        found = _shared[ufunc] = ufunc if made is None else made
    return found


def worth(elements: int) -> int:
    """How many threads so many elements are worth."""
    return min(threads[0], max(1, elements // _GRAIN))


def _run(name: str, dtype: np.dtype, tasks: int, *args: Any) -> None:
    """The C kernel for this dtype, with arrays (or None), integers and floats, on as many threads as the largest array
    is worth."""
    elements = 0
    for arg in args:
        if arg.__class__ is ndarray and arg.size > elements:
            elements = arg.size
    run_on(worth(elements), name, dtype, tasks, *args)


def run_on(many: int, name: str, dtype: np.dtype, tasks: int, *args: Any) -> None:
    """The same, on `many` threads."""
    found = _state["library"]
    found.run(found.KERNELS[name + SUFFIXES[dtype]], tasks, many, *args)


def takes(*arrays: ndarray | None) -> bool:
    """Whether the library is there and these are contiguous arrays of one dtype that it knows."""
    if not _state["enabled"]:
        return False
    dtype = arrays[0].dtype  # type: ignore[union-attr]
    for a in arrays:
        if a is None:
            continue
        if type(a) is not ndarray or not (a.flags.c_contiguous and a.flags.aligned):
            return False
        if a.dtype is not dtype and a.dtype != dtype:  # what was unpickled has a dtype of its own
            return False
    return dtype in SUFFIXES and library() is not None


def sizes_array(values: Sequence[int]) -> ndarray:
    return np.array(values, np.int64)


# --------------------------------------------------------------------------------------------------- element by element


def pointwise(
    name: str, *arrays: ndarray, number: float | None = None, out: ndarray | None = None
) -> ndarray | None:
    """A function of one element, or of one of each array (and a number); `out` is like them, and may be one of them."""
    if not takes(*arrays) or any(a.shape != arrays[0].shape for a in arrays):
        return None
    out = np.empty_like(arrays[0]) if out is None else out
    _run(name, out.dtype, out.size, *arrays, *([] if number is None else [float(number)]), out)
    return out


def where(condition: ndarray, x: ndarray, y: ndarray) -> ndarray | None:
    """x where the condition holds, else y; either may be one element for all."""
    if not takes(x, y):
        return None
    out = np.empty(condition.shape, x.dtype)
    _run("where", x.dtype, out.size, condition, x, y, int(x.ndim > 0), int(y.ndim > 0), out)
    return out


def clamp(a: ndarray, low: float, high: float) -> ndarray | None:
    """a, at least `low` and at most `high`; a NaN stays."""
    if not takes(a):
        return None
    out = np.empty_like(a)
    _run("clamp", a.dtype, a.size, a, float(low), float(high), out)
    return out


def clamp_backward(grad: ndarray, a: ndarray, low: float, high: float) -> ndarray | None:
    """grad where `a` is at least `low` and at most `high`, 0 elsewhere."""
    if not takes(grad, a) or grad.shape != a.shape:
        return None
    out = np.empty_like(grad)
    _run("clamp_backward", a.dtype, a.size, grad, a, float(low), float(high), out)
    return out


def _pieces(rows: int) -> int:
    """Into how many pieces rows are divided, so that there is something to share."""
    return 1 if rows >= 4 * threads[0] else 4 * threads[0]


def sum_rows(a: ndarray, rows: int, b: ndarray | None = None) -> ndarray | None:
    """The sums of the rows that the elements of `a` are divided into; or of their products with those of `b`."""
    if not takes(a, b):
        return None
    pieces = _pieces(rows)
    out = np.empty((rows, pieces))
    _run("sum_rows", a.dtype, out.size, a, b, out, a.size // rows, pieces)
    return (out[:, 0] if pieces == 1 else np.add.reduce(out, 1)).astype(a.dtype, copy=False)


def shares(grad: ndarray, x: ndarray, of_row: ndarray, nans: bool) -> ndarray | None:
    """The gradient of each row's largest number, or smallest, shared by the elements of `x` that equal it; with `nans`
    a NaN equals a NaN. Rows are what `x` has of the elements of `of_row`, in their order."""
    if not x.size or not takes(x, of_row, grad) or grad.size != of_row.size:
        return None
    rows = of_row.size
    pieces, width = _pieces(rows), x.size // rows
    counts = np.empty((rows, pieces), np.int64)
    _run("count_equal", x.dtype, counts.size, x, of_row, counts, width, pieces, int(nans))
    share = np.divide(grad.reshape(rows), np.add.reduce(counts, 1), dtype=x.dtype, casting="unsafe")
    out = np.empty_like(x)
    _run("share_equal", x.dtype, counts.size, x, of_row, share, out, width, pieces, int(nans))
    return out


#: Elements from which on NumPy's own reductions and copies are shared among threads.
SHARED = 1 << 15


def reduced(ufunc: Any, a: ndarray, axis: tuple[int, ...] | int | None, keepdim: bool) -> ndarray | None:
    """``ufunc.reduce(a, axis)`` of a contiguous array."""
    if threads[0] == 1 or not is_used() or not a.flags.c_contiguous:
        return None
    if a.dtype.kind in "biu" and ufunc in (np.add, np.multiply):  # whose sums are wider than they
        return None
    shape = a.shape
    dims = sorted(range(a.ndim) if axis is None else (axis,) if axis.__class__ is int else axis)  # type: ignore[arg-type]
    if not dims or dims[0] < 0:
        return None
    if dims[-1] - dims[0] != len(dims) - 1:  # those before the last neighbours are left to what is small then
        last = next(i for i in range(len(dims) - 1, 0, -1) if dims[i - 1] != dims[i] - 1)
        parts = reduced(ufunc, a, tuple(dims[last:]), True) if math.prod([shape[d] for d in dims[last:]]) >= 8 else None
        return None if parts is None else ufunc.reduce(parts, tuple(dims), keepdims=keepdim)
    before, after = shape[: dims[0]], shape[dims[-1] + 1 :]
    outer, inner = math.prod(before), math.prod(after)
    n = a.size // max(1, outer * inner)
    if ufunc is np.add and inner >= 64 and n >= 32 and a.dtype in SUFFIXES and a.flags.aligned:
        pieces = 1 if outer >= 4 * threads[0] else max(1, min(4 * threads[0], n // 8))
        parts = np.empty((outer, pieces, inner), a.dtype)
        _run("sum_columns", a.dtype, outer * pieces, a, parts, n, inner, pieces)
    else:
        parts = library().reduce(ufunc, a, n, inner, threads[0])
    if parts is None:
        return None
    result = parts if parts.shape[1] == 1 else ufunc.reduce(parts, 1)
    return result.reshape((*before, *([1] * len(dims) if keepdim else []), *after))


def is_within(index: ndarray, low: int, high: int) -> bool:
    """Whether all indices, of which there are some, are at least `low` and below `high`."""
    if index.size > SHARED:
        least, most = (reduced(ufunc, index, None, False) for ufunc in (np.minimum, np.maximum))
        if least is not None and most is not None:
            return low <= int(least) and int(most) < high
    return low <= int(index.min()) and int(index.max()) < high


def places(a: ndarray, largest: bool) -> ndarray | None:
    """``argmax`` or ``argmin`` along the last dimension, which stays with a size of one."""
    if threads[0] == 1 or not is_used():
        return None
    found = library().arguments(a, a.shape[-1], largest, threads[0])
    return None if found is None else found.reshape((*a.shape[:-1], 1))


def copied(a: ndarray) -> ndarray | None:
    """A contiguous copy."""
    if type(a) is not ndarray or not is_used():
        return None
    out = np.empty(a.shape, a.dtype)
    return out if library().copy(out, a, threads[0]) else None


def copied_into(to: ndarray, a: ndarray) -> bool:
    """Copy an array of the same shape and dtype to a contiguous one; returns whether it did."""
    if threads[0] == 1 or a.size <= SHARED or type(a) is not ndarray or not is_used() or np.may_share_memory(to, a):
        return False
    return library().copy(to, a, threads[0])


def joined(arrays: Sequence[ndarray], dim: int) -> ndarray | None:
    """Contiguous arrays of one dtype, whose shapes fit, one after the other along `dim`."""
    if threads[0] == 1 or not is_used():
        return None
    shape = list(arrays[0].shape)
    shape[dim] = sum([a.shape[dim] for a in arrays])
    out = np.empty(shape, arrays[0].dtype)
    return out if library().join(out, list(arrays), math.prod(shape[:dim]), threads[0]) else None


def drawn(twister: np.random.Generator, out: ndarray, limit: int = 0, scale: float = 0.0) -> bool:
    """The twister's next words of 32 or 64 bits into an array of uint32 or uint64; into one of floats `scale` where the
    lower 53 bits of a word of 64 are below `limit`, and 0 elsewhere. Returns whether it did."""
    if out.size <= SHARED or not is_used() or type(twister) is not np.random.Generator:
        return False
    words = twister.bit_generator
    if type(words) is not np.random.MT19937 or not out.flags.c_contiguous or out.dtype.char not in "fdILQ":
        return False
    if not _state_is_in_memory():
        return False
    memory = _twister_memory(words)
    memory[_KEY] = library().draw(memory[:_KEY], int(memory[_KEY]), out, limit, float(scale), threads[0])
    return True


_KEY = 624  # words of a twister's state


def _twister_memory(words: np.random.MT19937) -> ndarray:
    """The key of a twister and its position, where they are."""
    memory: Any = (ctypes.c_uint32 * (_KEY + 1)).from_address(words.ctypes.state_address)
    return np.frombuffer(memory, np.uint32)


@functools.cache
def _state_is_in_memory() -> bool:
    """Whether NumPy keeps a twister's state as its key and its position. (To ask for it takes as long as to draw a
    hundred thousand words.)"""
    words = np.random.MT19937(1)
    for _ in range(2):
        words.random_raw(5)
        state: Any = words.state["state"]
        memory = _twister_memory(words)
        if memory[_KEY] != state["pos"] or not np.array_equal(memory[:_KEY], state["key"]):
            return False
    return True


def rows_at(a: ndarray, index: ndarray) -> ndarray | None:
    """``a.take(index, 0)`` with indices that are known to be in bounds."""
    if threads[0] == 1 or type(a) is not ndarray or not is_used() or not a.flags.c_contiguous:
        return None
    out = np.empty((*index.shape, *a.shape[1:]), a.dtype)
    return out if out.size and library().take(out, a, index, threads[0]) else None


def update(rule: str, rows: list[list[ndarray | None]], settings: tuple[float | None, ...]) -> bool:
    """A step of an optimizer on rows (parameter, gradient, state ...), by a rule of updates.inc. Returns whether it
    did: all rows, or none."""
    return is_used() and library().update(rule, rows, settings, threads[0])


# ------------------------------------------------------------------------------------------------------------ rows


def rows(name: str, *arrays: ndarray) -> ndarray | None:
    """`softmax` and its kin along the last dimension."""
    if not takes(*arrays):
        return None
    out = np.empty_like(arrays[0])
    width = out.shape[-1]
    _run(name, out.dtype, out.size // width, *arrays, out, width)
    return out


def attention_weights(scores: ndarray, scale: float, causal: bool) -> bool:
    """softmax(scores * scale) in their place, of each query with the keys before it, if `causal`; whether it did."""
    if not scores.size or not takes(scores):
        return False
    queries, width = scores.shape[-2:]
    _run("attention_weights", scores.dtype, scores.size // width, scores, queries, width, int(causal), float(scale))
    return True


def logsumexp(x: ndarray) -> ndarray | None:
    """log(sum(exp(x))) along the last dimension, which is left out."""
    if not x.ndim or not x.shape[-1] or not takes(x):
        return None
    out = np.empty(x.shape[:-1], x.dtype)
    _run("logsumexp", x.dtype, out.size, x, out, x.shape[-1])
    return out


def logsumexp_backward(grad: ndarray, x: ndarray, result: ndarray) -> ndarray | None:
    """Its gradient."""
    if not takes(x, grad, result) or not grad.shape == result.shape == x.shape[:-1]:
        return None
    out = np.empty_like(x)
    _run("logsumexp_backward", x.dtype, grad.size, grad, x, result, out, x.shape[-1])
    return out


def scan(x: ndarray, dim: int, multiply: bool, back: bool = False) -> ndarray | None:
    """Running sums or products along a dimension, from its beginning or its end."""
    if not x.size or not takes(x):
        return None
    out = np.empty_like(x)
    outer, n, inner = _along(x, dim)
    lines = 4 if inner == 1 else 16  # in a task
    tasks = -(-outer // lines) if inner == 1 else outer * -(-inner // lines)
    _run("scan", x.dtype, tasks, x, out, outer, n, inner, int(multiply), int(back), lines)
    return out


def layer_norm(
    x: ndarray, weight: ndarray | None, bias: ndarray | None, eps: float
) -> tuple[ndarray, ndarray, ndarray] | None:
    """The result, the means and 1/deviations of a matrix's rows."""
    if not takes(x, weight, bias):
        return None
    count, width = x.shape
    parts = np.empty_like(x), np.empty((count, 1), x.dtype), np.empty((count, 1), x.dtype)
    _run("layer_norm", x.dtype, count, x, weight, bias, *parts, width, float(eps))
    return parts


def layer_norm_backward(
    grad: ndarray, x: ndarray, mean: ndarray, rstd: ndarray, weight: ndarray | None, wanted: Sequence[bool]
) -> list[ndarray | None] | None:
    """The gradients for input, weight and bias, those that are wanted."""
    if not takes(grad, x, mean, rstd, weight):
        return None
    height, width = x.shape
    many = worth(x.size)
    parts = max(many, 8) if many > 1 else 1  # some for each of few threads, which are never equally fast
    out = np.empty_like(x) if wanted[0] else None
    sums = np.empty((parts, 2, width), x.dtype)
    _run("layer_norm_backward", x.dtype, parts, grad, x, mean, rstd, weight, out, sums, height, width, parts)
    total = np.add.reduce(sums, 0) if parts > 1 else sums[0]
    return [out, total[0].copy() if wanted[1] else None, total[1].copy() if wanted[2] else None]  # nobody else's


# --------------------------------------------------------------------------------------------------------- channels


def channel_moments(x: ndarray) -> tuple[ndarray, ndarray] | None:
    """Mean and variance of each channel of (batch, channels, width)."""
    if x.ndim != 3 or not takes(x):
        return None
    mean, var = np.empty(x.shape[1], x.dtype), np.empty(x.shape[1], x.dtype)
    _run("channel_moments", x.dtype, x.shape[1], x, mean, var, *x.shape)
    return mean, var


def channel_affine(x: ndarray, scale: ndarray, shift: ndarray | None) -> ndarray | None:
    """x * scale + shift, by channel."""
    if x.ndim != 3 or not takes(x, scale, shift):
        return None
    out = np.empty_like(x)
    _run("channel_affine", x.dtype, x.shape[0] * x.shape[1], x, scale, shift, out, *x.shape[1:])
    return out


def channel_sums(grad: ndarray, x: ndarray, mean: ndarray) -> tuple[ndarray, ndarray] | None:
    """For each channel, the sum of grad and that of grad * (x - mean)."""
    if x.ndim != 3 or not takes(grad, x, mean):
        return None
    total, along = np.empty_like(mean), np.empty_like(mean)
    _run("channel_sums", x.dtype, x.shape[1], grad, x, mean, total, along, *x.shape)
    return total, along


def channel_combine(grad: ndarray, x: ndarray, mean: ndarray, a: ndarray, b: ndarray, c: ndarray) -> ndarray | None:
    """grad * a + (x - mean) * b + c, by channel."""
    if x.ndim != 3 or not takes(grad, x, mean, a, b, c):
        return None
    out = np.empty_like(x)
    _run("channel_combine", x.dtype, x.shape[0] * x.shape[1], grad, x, mean, a, b, c, out, *x.shape[1:])
    return out


def group_norm(
    x: ndarray, weight: ndarray | None, bias: ndarray | None, channels: int, eps: float
) -> tuple[ndarray, ndarray, ndarray] | None:
    """Of (batch, groups, width): the result, the means and 1/deviations of the groups."""
    if not takes(x, weight, bias):
        return None
    batch, groups, width = x.shape
    each = channels // groups
    parts = np.empty_like(x), np.empty((batch, groups, 1), x.dtype), np.empty((batch, groups, 1), x.dtype)
    _run("group_norm", x.dtype, batch * groups, x, weight, bias, *parts, groups, each, width // each, float(eps))
    return parts


def group_norm_backward(
    grad: ndarray, x: ndarray, mean: ndarray, rstd: ndarray, weight: ndarray | None, channels: int, want_input: bool
) -> tuple[ndarray | None, ndarray, ndarray] | None:
    """The gradient for the input (if wanted), and for each channel of each image the sums of grad and of
    grad * (x - mean) * rstd."""
    if not takes(grad, x, mean, rstd, weight):
        return None
    batch, groups, width = x.shape
    each = channels // groups
    out = np.empty_like(x) if want_input else None
    totals, alongs = np.empty((batch, channels), x.dtype), np.empty((batch, channels), x.dtype)
    _run(
        "group_norm_backward", x.dtype, batch * groups, grad, x, mean, rstd, weight, out, totals, alongs, groups, each,
        width // each,
    )  # fmt: skip
    return out, totals, alongs


# --------------------------------------------------------------------------------------------------------- windows


def _is_by_two(
    kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], out: Sequence[int],
    size: Sequence[int],
) -> bool:  # fmt: skip
    """Are the windows of 2 by 2 cells, side by side and within the planes?"""
    return (
        list(kernel) == [2, 2] == list(stride) and not any(padding) and list(dilation) == [1, 1]
        and all(2 * o <= n for o, n in zip(out, size)) and all(out)
    )  # fmt: skip


def max_pool2d(
    x: ndarray, out: Sequence[int], kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int],
) -> tuple[ndarray, ndarray] | None:  # fmt: skip
    """Of (planes, height, width): the maxima of the windows and their taps."""
    if len(out) != 2 or math.prod(kernel) > 256 or not takes(x):
        return None
    best = np.empty((x.shape[0], *out), x.dtype)
    taps = np.empty(best.shape, np.uint8)
    if _is_by_two(kernel, stride, padding, dilation, out, x.shape[1:]):
        _run("max_pool2d_by_two", x.dtype, len(x) * out[0], x, best, taps, *x.shape[1:], *out)
    else:
        _run(
            "max_pool2d", x.dtype, len(x), x, best, taps, *x.shape[1:], *out, sizes_array(kernel), sizes_array(stride),
            sizes_array(padding), sizes_array(dilation),
        )  # fmt: skip
    return best, taps


def max_pool2d_backward(
    grad: ndarray, taps: ndarray, size: Sequence[int], kernel: Sequence[int], stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int],
) -> ndarray | None:  # fmt: skip
    """Of (planes, ...): the gradient of each window, at its tap."""
    if len(size) != 2 or taps.dtype != np.uint8 or not taps.flags.c_contiguous or not takes(grad):
        return None
    out = np.empty((grad.shape[0], *size), grad.dtype)
    windows = grad.shape[1:]
    if _is_by_two(kernel, stride, padding, dilation, windows, size):
        _run("max_pool2d_by_two_backward", grad.dtype, len(out) * windows[0], grad, taps, out, *size, *windows)
        return out
    _run(
        "max_pool2d_backward", grad.dtype, len(out), grad, taps, out, *size, *grad.shape[1:], sizes_array(kernel),
        sizes_array(stride), sizes_array(padding), sizes_array(dilation),
    )  # fmt: skip
    return out


def avg_pool2d(
    x: ndarray, divisor: ndarray, out: Sequence[int], kernel: Sequence[int], stride: Sequence[int],
    padding: Sequence[int],
) -> ndarray | None:  # fmt: skip
    """Of (planes, height, width): the sums of the windows over their divisors."""
    if len(out) != 2 or not takes(x):
        return None
    result = np.empty((x.shape[0], *out), x.dtype)
    divisors = np.ascontiguousarray(np.broadcast_to(divisor, out), x.dtype)
    windows = sizes_array(kernel), sizes_array(stride), sizes_array(padding)
    _run("avg_pool2d", x.dtype, len(x), x, divisors, result, *x.shape[1:], *out, *windows)
    return result


def avg_pool2d_backward(
    grad: ndarray, divisor: ndarray, size: Sequence[int], kernel: Sequence[int], stride: Sequence[int],
    padding: Sequence[int],
) -> ndarray | None:  # fmt: skip
    """Of (planes, ...): the gradient of each window over its divisor, at all its cells."""
    if len(size) != 2 or not takes(grad):
        return None
    result = np.empty((grad.shape[0], *size), grad.dtype)
    out = grad.shape[1:]
    divisors = np.ascontiguousarray(np.broadcast_to(divisor, out), grad.dtype)
    windows = sizes_array(kernel), sizes_array(stride), sizes_array(padding)
    shares = np.empty((len(grad), out[1]), grad.dtype)
    _run("avg_pool2d_backward", grad.dtype, len(grad), grad, divisors, result, *size, *out, *windows, shares)
    return result


# --------------------------------------------------------------------------------------------------------- indexing


def _along(a: ndarray, dim: int) -> tuple[int, int, int]:
    return math.prod(a.shape[:dim]), a.shape[dim], math.prod(a.shape[dim + 1 :])


def _takes_index(index: ndarray) -> bool:
    flags = index.flags
    return type(index) is ndarray and index.dtype == np.int64 and flags.c_contiguous and flags.aligned


def _same_but(dim: int, a: ndarray, b: ndarray) -> bool:
    return a.ndim == b.ndim and all(d == dim or m == n for d, (m, n) in enumerate(zip(a.shape, b.shape)))


def gather(a: ndarray, dim: int, index: ndarray) -> ndarray | None:
    """`gather` along `dim` with indices that are known to be in bounds."""
    if not _takes_index(index) or not _same_but(dim, a, index) or not takes(a):
        return None
    out = np.empty(index.shape, a.dtype)
    outer, n, inner = _along(a, dim)
    _run("gather", a.dtype, outer, a, index, out, n, index.shape[dim], inner)
    return out


_PIECE = 1 << 12  # elements of a task that fills memory


def placed(slice: ndarray, shape: tuple[int, ...], dim: int, index: int) -> ndarray | None:
    """Zeros of `shape` with a slice at `index` along `dim`."""
    if threads[0] == 1 or not takes(slice):
        return None
    out = np.empty(shape, slice.dtype)
    outer, n, inner = _along(out, dim)
    if not inner or slice.shape != (*shape[:dim], *shape[dim + 1 :]):
        return None
    tasks = outer * n * -(-inner // _PIECE)
    _run("place_slice", out.dtype, tasks, slice, out, n, inner, index % n, _PIECE)
    return out


def zeros(shape: tuple[int, ...], dtype: np.dtype) -> ndarray | None:
    """Zeros that are all written, by several threads: for who is going to write to most of them, on as many."""
    size = math.prod(shape)
    if threads[0] == 1 or size <= SHARED or dtype not in SUFFIXES or not is_used():
        return None
    out = np.empty(shape, dtype)
    _run("place_slice", dtype, -(-size // _PIECE), None, out, 1, size, -1, _PIECE)
    return out


def scatter(a: ndarray, dim: int, index: ndarray, source: ndarray, add: bool) -> bool:
    """Write or add `source`, of the shape of `index`, to `a` where `gather` would read.  Returns whether it did."""
    if not (_takes_index(index) and _same_but(dim, a, index) and a.flags.writeable and takes(a, source)):
        return False
    outer, n, inner = _along(a, dim)
    _run("scatter", a.dtype, outer, a, index, source, n, index.shape[dim], inner, int(add))
    return True


def rows_added(source: ndarray, index: ndarray, rows: int) -> ndarray | None:
    """So many rows of zeros, with those of `source` added at `index`."""
    if threads[0] == 1 or source.size <= SHARED or not (_takes_index(index) and takes(source)):
        return None
    places = index.size
    if not places or not rows or source.shape[: index.ndim] != index.shape:
        return None
    if not is_within(index, 0, rows):  # who adds them otherwise knows what to say
        return None
    shape = source.shape[index.ndim :]
    out = np.empty((rows, *shape), source.dtype)
    pieces = min(rows, 4 * threads[0])
    _run("rows_added", out.dtype, pieces, source, index, out, rows, places, math.prod(shape), pieces)
    return out


def index_add(a: ndarray, dim: int, index: ndarray, source: ndarray, alpha: float = 1.0) -> bool:
    """Add the slices of `source`, times `alpha`, to those of `a` at `index` along `dim`.  Returns whether it did."""
    if not (_takes_index(index) and a.flags.writeable and takes(a, source)):
        return False
    outer, n, inner = _along(a, dim)
    parts = 1 if outer >= threads[0] or inner == 1 else worth(source.size // 4)  # little to do for each
    _run("index_add", a.dtype, outer * parts, a, index, source, n, index.size, inner, parts, float(alpha))
    return True
