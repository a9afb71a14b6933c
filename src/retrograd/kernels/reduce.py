"""Reductions: sums, means, variances, extremes, counts.

A ``dim`` is an int, a list of ints or None for all; negative ones count from the end.  Sums and products of bools and
integers are int64.  float16 is summed in float32, as torch does it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from ..core import dtypes
from . import compiled
from .compiled import LARGE, SHARED, on_threads
from .dims import axes, normalize_dim, normalize_dims
from .dtypes import convert
from .promotion import as_array, is_half, is_stored, operand, real_dtype, scalar_name, unsupported, work_dtype

Dims = int | Sequence[int] | None

_BOOL, _INT64, _HALF, _SINGLE = map(np.dtype, (np.bool_, np.int64, np.float16, np.float32))


_sum: Any = np.add.reduce
_product: Any = np.multiply.reduce
_empty: Any = np.empty


def _as_dtype(r: Any, dtype: np.dtype) -> ndarray:
    return as_array(r if r.dtype is dtype else r.astype(dtype))


_METHODS: dict[Any, str] = {
    np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min", np.logical_and: "all",
    np.logical_or: "any",
}  # fmt: skip


def _reduce(
    ufunc: np.ufunc, a: Any, axis: tuple[int, ...] | int | None, keepdim: bool = False, dtype: np.dtype | None = None
) -> Any:
    """`ufunc.reduce`, which only NumPy's own arrays have; those of other libraries have the method of that meaning."""
    if type(a) is ndarray:
        if a.size > SHARED and dtype is None and (r := compiled.reduced(ufunc, a, axis, keepdim)) is not None:
            return r
        return ufunc.reduce(a, axis=axis, keepdims=keepdim, dtype=dtype)
    if isinstance(a, np.generic):  # what a step before made of a 0-d array
        return ufunc.reduce(np.asarray(a), axis=axis, keepdims=keepdim, dtype=dtype)
    more = {} if dtype is None or ufunc not in (np.add, np.multiply) else {"dtype": dtype}
    return getattr(a, _METHODS[ufunc])(axis=axis, keepdims=keepdim, **more)


def _count(a: ndarray, dim: Dims) -> int:
    """How many elements go into one of the result."""
    if dim is None or not a.ndim:
        return a.size
    return math.prod([a.shape[d] for d in normalize_dims(dim, a.ndim)])


def _expand(r: ndarray, a: ndarray, dim: int) -> ndarray:
    """A result of a reduction over `dim`, with that dimension (of size one) again."""
    return r.reshape(a.shape[:dim] + (1,) + a.shape[dim + 1 :])


# ------------------------------------------------------------------------------------------------- sums, products


def sum(a: ndarray, dim: Dims = None, keepdim: bool = False, dtype: np.dtype | None = None) -> ndarray:
    """The sum over `dim`."""
    if dtype is None and type(a) is ndarray:
        d = a.dtype
        if d.kind in "fc" and d is not _HALF:
            axis = None if dim is None else axes(dim, a.ndim)
            if a.size > LARGE and (r := _sum_large(a, axis, keepdim)) is not None:
                return r
            r = _reduce(np.add, a, axis, keepdim) if a.size > SHARED else _sum(a, axis, None, None, keepdim)
            return r if type(r) is ndarray else as_array(r)
    return _reduce_arithmetic(np.add, a, dim, keepdim, dtype)


_ONES = {np.dtype(t): np.ones(1024, t) for t in (np.float32, np.float64)}


def _sum_large(a: ndarray, axis: Any, keepdim: bool) -> ndarray | None:
    """The sum over all or the last dimensions of a contiguous array; None if it is not such a sum."""
    ones = _ONES.get(a.dtype)
    if ones is None or not a.flags.c_contiguous:
        return None
    last = a.ndim if axis is None else len(axis) if type(axis) is tuple else 1
    if axis is not None and axis != tuple(range(a.ndim - last, a.ndim)) and axis != a.ndim - 1:
        return None
    lead = a.shape[: a.ndim - last]
    rows = math.prod(lead)
    width = a.size // max(rows, 1)
    if width < 1024:
        return None
    r = compiled.sum_rows(a, rows)
    if r is None:
        # Products with ones: the dot product of BLAS is quicker than NumPy's sum, and stretches of this length are as
        # exact as its pairs of 128.
        if width % 1024:
            return None
        r = _sum(np.vecdot(a.reshape(rows, -1, 1024), ones), 1)
    return r.reshape(lead + (1,) * last if keepdim else lead)


def sum_all(a: ndarray, dtype: np.dtype | None = None) -> ndarray:
    """The sum of all elements."""
    if dtype is None and type(a) is ndarray:
        d = a.dtype
        if d is _SINGLE or (d.kind in "fc" and d is not _HALF):
            if a.size > LARGE:
                return sum(a)
            return _sum(a, None, None, _empty((), d))  # `out` saves making an array of a scalar
    return sum(a, None, False, dtype)


def prod_all(a: ndarray, dtype: np.dtype | None = None) -> ndarray:
    """The product of all elements."""
    if dtype is None and type(a) is ndarray and a.size <= LARGE:
        d = a.dtype
        if d.kind in "fc" and d is not _HALF:
            return _product(a, None, None, _empty((), d))
    return prod(a, None, False, dtype)


def mean_all(a: ndarray, dtype: np.dtype | None = None) -> ndarray:
    """The mean of all elements."""
    return mean(a, None, False, dtype)


def prod(a: ndarray, dim: int | None = None, keepdim: bool = False, dtype: np.dtype | None = None) -> ndarray:
    """The product over `dim`."""
    if dim is not None:
        dim = normalize_dim(dim, a.ndim)
    if dtype is None and a.size > LARGE and (r := _prod_large(a, dim, keepdim)) is not None:
        return r
    return _reduce_arithmetic(np.multiply, a, dim, keepdim, dtype)


def _prod_large(a: ndarray, dim: int | None, keepdim: bool) -> ndarray | None:
    """The product over all or the last dimension of a contiguous array; None if it is not such a product.

    NumPy multiplies the numbers of a row one after another, each time waiting for the product so far; but whole rows
    many at a time.  So rows are folded until they are short, and short ones taken as columns.
    """
    if type(a) is not ndarray or a.dtype.char not in "fd" or not a.flags.c_contiguous:
        return None
    if dim is not None and dim != a.ndim - 1:
        return None
    lead = a.shape[:-1] if dim is not None else ()
    rows = math.prod(lead)
    x = a.reshape(rows, -1)
    if rows == 1:
        parts = max(x.shape[1] // 4096, 8)
        width = x.shape[1] // parts
        rest = x[:, parts * width :]
        x = np.multiply.reduce(x[:, : parts * width].reshape(rows, parts, width), 1)
        x[:, : rest.shape[1]] *= rest
        r = as_array(np.multiply.reduce(x, 1)).reshape(lead)
    else:
        r = np.empty(rows, a.dtype)
        step = max(1, _FOLDED // max(x.shape[1], 1))
        for first in range(0, rows, step):
            _fold(x[first : first + step], r[first : first + step])
        r = r.reshape(lead)
    return r.reshape((*lead, 1) if dim is not None else (1,) * a.ndim) if keepdim else r


_FOLDED = 1 << 19  # elements whose rows are folded together


def _fold(x: ndarray, out: ndarray) -> None:
    """The product of each row of a matrix."""
    while x.shape[1] > 16:
        half, odd = divmod(x.shape[1], 2)
        folded = np.multiply(x[:, :half], x[:, half : 2 * half])
        if odd:
            folded[:, 0] *= x[:, -1]
        x = folded
    np.multiply.reduce(np.ascontiguousarray(x.T), 0, out=out)


def _reduce_arithmetic(ufunc: np.ufunc, a: ndarray, dim: Dims, keepdim: bool, dtype: np.dtype | None) -> ndarray:
    axis = None if dim is None else axes(dim, a.ndim)
    d = a.dtype
    if dtype is None:
        if d.kind in "fcVW":
            if not is_half(d):
                r = _reduce(ufunc, a, axis, keepdim)
                return r if type(r) is ndarray else as_array(r)
            return _as_dtype(_reduce(ufunc, a, axis, keepdim, work_dtype(d)), d)
        return as_array(_reduce(ufunc, a, axis, keepdim, _INT64))
    # The elements are converted first: fractions are lost before they can add up.
    work = work_dtype(dtype)
    return _as_dtype(_reduce(ufunc, operand(a, dtype), axis, keepdim, work), dtype)


def nansum(a: ndarray, dim: Dims = None, keepdim: bool = False, dtype: np.dtype | None = None) -> ndarray:
    """The sum over `dim` of what is not NaN."""
    if dim is not None:
        normalize_dims(dim, a.ndim)
    if a.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if a.dtype.kind not in "fV":
        return sum(a, dim, keepdim, dtype)
    if a.size > LARGE and not np.isnan(total := sum(a, dim, keepdim, dtype)).any():
        return total  # with a NaN among them it would be one
    return sum(np.where(np.isnan(a), np.zeros((), a.dtype), a), dim, keepdim, dtype)


def mean(a: ndarray, dim: Dims = None, keepdim: bool = False, dtype: np.dtype | None = None) -> ndarray:
    """The mean over `dim`."""
    d = dtype or a.dtype
    if d.kind not in "fcVW":
        which = "Input" if dtype is None else "Optional"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {which} dtype must be either a floating point or complex dtype. "
            f"Got: {scalar_name(d)}"
        )
    if a.size > LARGE and d is a.dtype and d.char in "fd":
        return _as_dtype(np.true_divide(sum(a, dim, keepdim), d.type(_count(a, dim))), d)
    axis = None if dim is None else axes(dim, a.ndim)
    r = _reduce(np.add, operand(a, d), axis, keepdim, work_dtype(d))
    return _as_dtype(np.true_divide(r, _count(a, dim)), d)


def nanmean(a: ndarray, dim: Dims = None, keepdim: bool = False, dtype: np.dtype | None = None) -> ndarray:
    """The mean over `dim` of what is not NaN."""
    if a.dtype.kind not in "fcVW":
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {scalar_name(a.dtype)}"
        )
    total = nansum(a, dim, keepdim, dtype)
    valid = sum(np.logical_not(np.isnan(a)), dim, keepdim)
    return _as_dtype(np.true_divide(total, valid), total.dtype)


def _moments(name: str, a: ndarray, dim: Dims, correction: float | None, keepdim: bool) -> tuple[ndarray, ndarray]:
    """Variance and mean, in the dtype to compute in."""
    d = a.dtype
    if d.kind not in "fcVW":
        text = "std and var only support" if name in ("std", "var") else f"{name} only support"
        raise RuntimeError(f"{text} floating point and complex dtypes. Convert the tensor, say with .float().")
    x = operand(a, work_dtype(d))
    axis = None if dim is None else axes(dim, a.ndim)
    n = _count(a, dim)
    average = np.true_divide(_reduce(np.add, x, axis, True), n)
    x = on_threads(np.subtract)(x, average)
    squares = x.real**2 + x.imag**2 if d.kind == "c" else on_threads(np.multiply)(x, x, out=x if x.ndim else None)
    total = _reduce(np.add, squares, axis, keepdim)
    spread = np.true_divide(total, max(n - (1 if correction is None else correction), 0))
    return as_array(spread), as_array(average.reshape(np.shape(spread)))


def var(a: ndarray, dim: Dims = None, correction: float | None = 1, keepdim: bool = False) -> ndarray:
    """The variance over `dim`, divided by n - correction."""
    return _as_dtype(_moments("var", a, dim, correction, keepdim)[0], real_dtype(a.dtype))


def std(a: ndarray, dim: Dims = None, correction: float | None = 1, keepdim: bool = False) -> ndarray:
    """The square root of the variance over `dim`."""
    return _as_dtype(np.sqrt(_moments("std", a, dim, correction, keepdim)[0]), real_dtype(a.dtype))


def var_mean(
    a: ndarray, dim: Dims = None, correction: float | None = 1, keepdim: bool = False
) -> tuple[ndarray, ndarray]:
    """Variance and mean over `dim`."""
    spread, average = _moments("var_mean", a, dim, correction, keepdim)
    return _as_dtype(spread, real_dtype(a.dtype)), _as_dtype(average, a.dtype)


def std_mean(
    a: ndarray, dim: Dims = None, correction: float | None = 1, keepdim: bool = False
) -> tuple[ndarray, ndarray]:
    """Standard deviation and mean over `dim`."""
    spread, average = _moments("std_mean", a, dim, correction, keepdim)
    return _as_dtype(np.sqrt(spread), real_dtype(a.dtype)), _as_dtype(average, a.dtype)


def logsumexp(a: ndarray, dim: Dims, keepdim: bool = False) -> ndarray:
    """log(sum(exp(a))) over `dim`, without overflow."""
    d = a.dtype if a.dtype.kind in "fcVW" else dtypes.default[0]
    x = operand(a, work_dtype(d))
    axis = None if dim is None else axes(dim, a.ndim)
    if x.size > LARGE and x.dtype.kind == "f" and axis in (x.ndim - 1, (x.ndim - 1,)):
        fast = compiled.logsumexp(x)
        if fast is not None:
            return _as_dtype(fast[..., None] if keepdim else fast, d)
    # The largest element is taken out; an infinite one cannot be (inf - inf).  Of no elements it is 0, as their sum.
    largest = _reduce(np.maximum if _count(a, dim) else np.add, np.real(x), axis, True)
    largest = np.where(np.isfinite(largest), largest, np.zeros_like(largest))
    r = as_array(_reduce(np.add, np.exp(np.subtract(x, largest)), axis, keepdim))
    r = np.add(np.log(r), largest.reshape(r.shape))
    return _as_dtype(r, d)


def logsumexp_rows_backward(grad: ndarray, a: ndarray, result: ndarray, dim: Dims, keepdim: bool) -> ndarray | None:
    """The gradient of `logsumexp` along the last dimension by the compiled kernel; None where it does not take it."""
    if a.size <= LARGE or axes(dim, a.ndim) not in (a.ndim - 1, (a.ndim - 1,)):
        return None
    if keepdim:
        grad, result = grad[..., 0], result[..., 0]
    return compiled.logsumexp_backward(np.ascontiguousarray(grad), a, np.ascontiguousarray(result))


# ---------------------------------------------------------------------------------------------- largest, smallest


def amax(a: ndarray, dim: Dims = (), keepdim: bool = False) -> ndarray:
    """The largest element over `dim`; NaN if there is one."""
    return _extreme(np.maximum, "amax", "max_values_cpu", a, dim, keepdim)


def amin(a: ndarray, dim: Dims = (), keepdim: bool = False) -> ndarray:
    """The smallest element over `dim`; NaN if there is one."""
    return _extreme(np.minimum, "amin", "min_values_cpu", a, dim, keepdim)


def extreme_shares(grad: ndarray, a: ndarray, result: ndarray, dim: Dims, nans: bool = False) -> ndarray | None:
    """The gradient of `amax` or `amin` by the compiled kernels; None where they do not take it. With `nans` a NaN
    equals a NaN."""
    if a.size <= LARGE or type(result) is not ndarray or type(grad) is not ndarray:
        return None
    last = a.ndim if dim is None else len(dims := normalize_dims(dim, a.ndim))
    if dim is not None and sorted(dims) != list(range(a.ndim - last, a.ndim)):
        return None if nans else _shares_of_columns(grad, a, result, dims)
    return compiled.shares(np.ascontiguousarray(grad), a, np.ascontiguousarray(result), nans)


def _shares_of_columns(grad: ndarray, a: ndarray, result: ndarray, dims: Sequence[int]) -> ndarray | None:
    """The same over other dimensions, by steps that are shared among threads."""
    one, zero = np.ones((), a.dtype), np.zeros((), a.dtype)
    if not compiled.takes(a, grad, result) or a.size >= 1 << 24:  # (so that float32 counts exactly)
        return None
    kept = [1 if d in dims else n for d, n in enumerate(a.shape)]
    chosen = compiled.where(on_threads(np.equal)(a, result.reshape(kept)), one, zero)
    if chosen is None:
        return None
    counts = _reduce(np.add, chosen, tuple(dims), True)
    return on_threads(np.multiply)(chosen, np.divide(grad.reshape(kept), counts), chosen)


def max_all(a: ndarray) -> ndarray:
    """The largest of all elements."""
    return _extreme(np.maximum, "max", "max_all", a, None, False)


def min_all(a: ndarray) -> ndarray:
    """The smallest of all elements."""
    return _extreme(np.minimum, "min", "min_all", a, None, False)


def aminmax(a: ndarray, dim: int | None = None, keepdim: bool = False) -> tuple[ndarray, ndarray]:
    """The smallest and the largest element over `dim`."""
    if not a.size and dim is None:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    smallest = _extreme(np.minimum, "aminmax", "aminmax_cpu", a, dim, keepdim)
    return smallest, _extreme(np.maximum, "aminmax", "aminmax_cpu", a, dim, keepdim)


def _extreme(ufunc: np.ufunc, name: str, kernel: str, a: ndarray, dim: Dims, keepdim: bool) -> ndarray:
    axis = None if dim is None else axes(dim, a.ndim)
    if not a.size:
        _check_not_empty(name, a, dim)
    if a.dtype.kind == "c" and a.size:
        unsupported(kernel, a.dtype)
    r = _reduce(ufunc, a, axis, keepdim)
    return r if type(r) is ndarray else as_array(r)


def _check_not_empty(name: str, a: ndarray, dim: Dims, hint: bool = True) -> None:
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        text = f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
        raise RuntimeError(f"{text} Specify the reduction dim with the 'dim' argument.") if hint else IndexError(text)
    for d in normalize_dims(dim, a.ndim):
        if a.ndim and not a.shape[d]:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


def max_dim(a: ndarray, dim: int, keepdim: bool = False) -> tuple[ndarray, ndarray]:
    """The largest elements along `dim` and where they (or the first NaN) are."""
    return _extreme_dim(np.argmax, "max", a, dim, keepdim)


def min_dim(a: ndarray, dim: int, keepdim: bool = False) -> tuple[ndarray, ndarray]:
    """The smallest elements along `dim` and where they (or the first NaN) are."""
    return _extreme_dim(np.argmin, "min", a, dim, keepdim)


def _extreme_dim(find: Callable[..., Any], name: str, a: ndarray, dim: int, keepdim: bool) -> tuple[ndarray, ndarray]:
    dim = normalize_dim(dim, a.ndim)
    if a.ndim and not a.shape[dim]:
        _check_not_empty(name, a, dim)
    if a.dtype.kind == "c":
        raise RuntimeError(f"{name}(): does not support complex input")
    if not a.ndim:
        return a.copy(), np.zeros_like(a, dtype=_INT64)
    return _take(a, _places(find, a, dim), dim, keepdim)


def _places(find: Callable[..., Any], a: ndarray, dim: int) -> ndarray:
    """`find` along `dim`, which stays with a size of one."""
    if a.size > SHARED and dim == a.ndim - 1 and (r := compiled.places(a, find is np.argmax)) is not None:
        return r
    return find(a, axis=dim, keepdims=True)


def _take(a: ndarray, indices: ndarray, dim: int, keepdim: bool) -> tuple[ndarray, ndarray]:
    """The elements at `indices` (of size one in `dim`), and the indices, as results of a reduction."""
    values = np.take_along_axis(a, indices, dim)
    indices = indices.astype(_INT64, copy=False)
    if keepdim:
        return values, indices
    shape = a.shape[:dim] + a.shape[dim + 1 :]
    return values.reshape(shape), indices.reshape(shape)


def argmax(a: ndarray, dim: int | None = None, keepdim: bool = False) -> ndarray:
    """Where the largest element is: along `dim`, or in the flattened array."""
    return _argument(np.argmax, "argmax", a, dim, keepdim)


def argmin(a: ndarray, dim: int | None = None, keepdim: bool = False) -> ndarray:
    """Where the smallest element is: along `dim`, or in the flattened array."""
    return _argument(np.argmin, "argmin", a, dim, keepdim)


def _argument(find: Callable[..., Any], name: str, a: ndarray, dim: int | None, keepdim: bool) -> ndarray:
    if a.dtype.kind in "bcW":
        raise RuntimeError(f"{name}(): does not support {'bool' if a.dtype.kind == 'b' else 'complex'} input")
    if dim is not None:
        dim = normalize_dim(dim, a.ndim)
    if not a.size:
        _check_not_empty(name, a, dim, hint=False)
    if dim is None or not a.ndim:
        r = as_array(find(a)).astype(_INT64, copy=False)
        return r.reshape((1,) * a.ndim) if keepdim else r
    found = _places(find, a, dim).astype(_INT64, copy=False)
    return found if keepdim else found.reshape(a.shape[:dim] + a.shape[dim + 1 :])


# ---------------------------------------------------------------------------------------------- counting, logic


def all(a: ndarray, dim: Dims = None, keepdim: bool = False) -> ndarray:
    """Whether no element is zero; the empty list of dims reduces nothing."""
    return _reduce_logical(np.logical_and, a, dim, keepdim)


def any(a: ndarray, dim: Dims = None, keepdim: bool = False) -> ndarray:
    """Whether any element is not zero; the empty list of dims reduces nothing."""
    return _reduce_logical(np.logical_or, a, dim, keepdim)


def _reduce_logical(ufunc: np.ufunc, a: ndarray, dim: Dims, keepdim: bool) -> ndarray:
    if dim is not None and not isinstance(dim, int) and not len(dim):
        r = np.not_equal(a, 0)
    else:
        r = _reduce(ufunc, a, None if dim is None else axes(dim, a.ndim), keepdim, _BOOL)
    # A relic that torch keeps: uint8 was its bool once.
    return _as_dtype(r, a.dtype) if a.dtype == np.uint8 else as_array(r)


def count_nonzero(a: ndarray, dim: Dims = None) -> ndarray:
    """How many elements are not zero."""
    axis = None if dim is None else axes(dim, a.ndim)
    return as_array(_reduce(np.add, np.not_equal(a, 0), axis, dtype=_INT64))


def hash_tensor(a: ndarray, dims: tuple[int, ...], keepdim: bool) -> ndarray:
    """The bits of the elements as 64-bit numbers, exclusively or'ed over `dims`."""
    if a.dtype.kind in "cW" or is_stored(a.dtype):
        unsupported("xor_sum_cpu", a.dtype)
    wide = convert(a, np.dtype(np.float64 if a.dtype.kind in "fV" else np.int64)) if a.itemsize < 8 else a
    bits = np.ascontiguousarray(wide).view(np.uint64).reshape(a.shape)
    reduce: Any = np.bitwise_xor.reduce
    return np.asarray(reduce(bits, dims, keepdims=keepdim))


# Every public function of this module is a kernel.
__all__ = [n for n, f in list(globals().items()) if getattr(f, "__module__", None) == __name__ and n[0] != "_"]
