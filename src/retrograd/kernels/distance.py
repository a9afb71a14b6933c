"""Norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import ndarray

from . import compiled
from .arithmetic import sub
from .compiled import LARGE, on_threads
from .dims import axes, normalize_dim, normalize_dims
from .linalg_checks import svd
from .promotion import can_cast, operand, real_dtype, scalar_name, work_dtype
from .reduce import Dims, _as_dtype, _reduce


def norm(
    a: ndarray, p: float | str | None = 2, dim: Dims = None, keepdim: bool = False, dtype: np.dtype | None = None
) -> ndarray:
    """The p-norm over `dim` of the elements ("nuc": the sum of the singular values of matrices)."""
    d = a.dtype
    if d.kind not in "fcVW":
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {scalar_name(d)}"
        )
    if p.__class__ is complex:
        raise RuntimeError(f"linalg.vector_norm: Expected a non-complex scalar as the order of norm, but got {p}")
    if dtype is not None:
        _check_norm_dtype(d, dtype)
        d = dtype
    result = real_dtype(d)
    x = operand(a, work_dtype(d))
    if p == "nuc":
        return _as_dtype(_nuclear_norm(x, dim, keepdim), result)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"norm(): expected p to be a number, 'fro' or 'nuc', but got {p!r}")
    order = 2.0 if p is None or p == "fro" else float(p)
    axis = None if dim is None else axes(dim, a.ndim)
    if order < 0 or order == math.inf:
        _check_norm_not_empty(a, dim, p)
    if axis and order and math.prod([a.shape[d] for d in axis]) == 1:
        return _as_dtype(np.absolute(x) if keepdim else np.absolute(x).squeeze(axis), result)  # no square overflows
    return _as_dtype(_vector_norm(x, order, axis, keepdim), result)


def _vector_norm(x: ndarray, p: float, axis: tuple[int, ...] | None, keepdim: bool) -> Any:
    if p == 2:
        if axis is None and not keepdim and x.dtype.kind in "fV" and x.flags.c_contiguous:
            if x.size > LARGE and (r := compiled.sum_rows(x, 1, x)) is not None:
                return np.sqrt(r[0])
            flat = x.reshape(-1)
            return np.sqrt(np.dot(flat, flat))  # no array of squares
        squares = x.real**2 + x.imag**2 if x.dtype.kind == "c" else on_threads(np.multiply)(x, x)
        r = np.sqrt(_reduce(np.add, squares, axis, keepdim))
        if x.dtype.kind != "c" or not np.isnan(r).any():
            return r
        # The size of an infinite number is infinite also where the other part is NaN: the absolute value knows.
        return np.sqrt(_reduce(np.add, np.square(np.absolute(x)), axis, keepdim))
    if p == 0:
        return _reduce(np.add, x != 0, axis, keepdim, real_dtype(x.dtype))
    size = on_threads(np.absolute)(x)
    if p == math.inf:
        return _reduce(np.maximum, size, axis, keepdim)
    if p == -math.inf:
        return _reduce(np.minimum, size, axis, keepdim)
    if p == 1:
        return _reduce(np.add, size, axis, keepdim)
    return np.power(_reduce(np.add, np.power(size, p), axis, keepdim), 1 / p)


def _nuclear_norm(x: ndarray, dim: Dims, keepdim: bool) -> Any:
    if x.ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    pair = (x.ndim - 2, x.ndim - 1) if dim is None else normalize_dims(dim, x.ndim)
    if len(pair) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {list(pair)}")
    r = _reduce(np.add, svd(np.moveaxis(x, pair, (-2, -1)), compute_uv=False), -1)
    return np.expand_dims(r, pair) if keepdim else r


def _check_norm_dtype(source: np.dtype, dtype: np.dtype) -> None:
    name = scalar_name(dtype)
    if dtype.kind not in "fcVW":
        raise RuntimeError(f"linalg.vector_norm: dtype should be floating point or complex, but got {name}")
    if (source.kind in "cW") != (dtype.kind in "cW"):
        want = "complex for complex" if source.kind in "cW" else "real for real"
        raise RuntimeError(f"linalg.vector_norm: dtype should be {want} inputs, but got {name}")
    if dtype.itemsize < source.itemsize or not can_cast(source, dtype):
        raise RuntimeError(
            f"linalg.vector_norm: the dtype of the input ({scalar_name(source)}) should be convertible without "
            f"narrowing to the specified dtype ({name})"
        )


def _check_norm_not_empty(a: ndarray, dim: Dims, p: Any) -> None:
    if a.size:
        return
    text = f"linalg.vector_norm cannot compute the {p} norm on"
    reason = "the operation does not have an identity"
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        raise RuntimeError(f"{text} an empty tensor because {reason}")
    for d in normalize_dims(dim, a.ndim):
        if not a.shape[d]:
            raise RuntimeError(f"{text} the dimension {d}because this dimension is empty and {reason}")


def dist(a: ndarray, b: ndarray, p: float = 2) -> ndarray:
    """The p-norm of the difference."""
    return norm(sub(a, b), p)


def cdist(x1: ndarray, x2: ndarray, p: float) -> ndarray:
    """The p-norms of the differences between every row of one and every row of the other."""
    return _distances(sub(x1[..., :, None, :], x2[..., None, :, :]), p)


def _distances(differences: ndarray, p: float) -> ndarray:
    """Their norms; where differences are counted (p = 0) one that is none makes the count none, as in torch."""
    result = norm(differences, p, (-1,))
    if p == 0 and differences.dtype.kind == "f":
        result[np.isnan(differences).any(-1)] = np.nan
    return result


def euclidean_dist(x1: ndarray, x2: ndarray) -> ndarray:
    """`cdist` for p = 2."""
    return cdist(x1, x2, 2.0)


def pdist(a: ndarray, p: float) -> ndarray:
    """The p-norms of the differences between the rows, each pair once."""
    first, second = np.triu_indices(a.shape[0], 1)
    return _distances(sub(a[first], a[second]), p)


def renorm(a: ndarray, p: float, dim: int, maxnorm: float, out: ndarray | None = None) -> ndarray:
    """`a` with each slice along `dim` scaled down to the p-norm `maxnorm` if it has a greater one."""
    dim = normalize_dim(dim, a.ndim)
    norms = norm(a, p, tuple(d for d in range(a.ndim) if d != dim), True)
    wide = operand(norms, work_dtype(norms.dtype))
    with np.errstate(invalid="ignore"):
        factor = np.where(wide > maxnorm, maxnorm / (wide + 1e-7), 1).astype(wide.dtype)
        result = np.where(wide > maxnorm, operand(a, work_dtype(a.dtype)) * factor, a).astype(a.dtype)
    if out is None:
        return result
    out[...] = result
    return out
