"""LDL decompositions on a device, which CuPy does not have: Bunch and Kaufman's pivots, in LAPACK's form.

A step takes one row and column, or two where one pivot would be too small.  Which, a few numbers of each column
decide, and these alone go to the host; the matrix stays where it is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

#: How much smaller than the largest element of its column a pivot may be.
_ALPHA = (1 + math.sqrt(17)) / 8


def _sizes(a: Any) -> Any:
    """The sizes of numbers, as LAPACK compares them."""
    return abs(a.real) + abs(a.imag) if a.dtype.kind == "c" else abs(a)


def _adjoint(a: Any, hermitian: bool) -> Any:
    turned = a.swapaxes(-1, -2)
    return turned.conj() if hermitian else turned


def _whole(a: Any, hermitian: bool) -> Any:
    """A symmetric matrix of its lower triangle."""
    numpy = a.place.numpy
    low = numpy.tril(a, -1)
    diagonal = numpy.diagonal(a)
    return low + _adjoint(low, hermitian) + numpy.diag(diagonal.real.astype(a.dtype) if hermitian else diagonal)


def _pivot(a: Any, k: int) -> tuple[int, int, bool]:
    """For column k: the row whose pivot is taken, how many rows a step takes, and is there nothing but zeros?"""
    n = len(a)
    column = _sizes(a[k:, k]).get()
    own = float(column[0])
    row = k + 1 + int(np.argmax(column[1:])) if k + 1 < n else k
    most = float(column[row - k]) if row > k else 0.0
    if max(own, most) == 0 or math.isnan(own):
        return k, 1, True
    if own >= _ALPHA * most:
        return k, 1, False
    sizes = _sizes(a[row, k:]).get()
    at = float(sizes[row - k])
    sizes[row - k] = 0
    beside = float(sizes.max())
    if own >= _ALPHA * most * (most / beside):
        return k, 1, False
    return (row, 1, False) if at >= _ALPHA * beside else (row, 2, False)


def _swap(a: Any, i: int, j: int) -> None:
    if i != j:
        kept = a[i].copy()
        a[i] = a[j]
        a[j] = kept


def _inverse(d: Any) -> Any:
    """Of a matrix of two rows."""
    numpy = d.place.numpy
    (a, b), (c, e) = (d[0, 0], d[0, 1]), (d[1, 0], d[1, 1])
    return numpy.stack([numpy.stack([e, -b]), numpy.stack([-c, a])]) / (a * e - b * c)


def factor(a: Any, hermitian: bool) -> tuple[Any, Any, int]:
    """L and D in one matrix, the pivots, and 0 or the first block of D that is zero."""
    n, info = len(a), 0
    a = _whole(a, hermitian)
    pivots = np.zeros(n, np.int32)
    k = 0
    while k < n:
        row, step, zero = _pivot(a, k)
        if zero:
            info = info or k + 1
        last = k + step - 1
        rest = a[k:, k:]
        _swap(rest, last - k, row - k)
        _swap(rest.T, last - k, row - k)
        pivots[k : k + step] = row + 1 if step == 1 else -(row + 1)
        below = slice(k + step, None)
        if not zero and k + step < n:
            columns = a[below, k : k + step].copy()
            block = a[k : k + step, k : k + step]
            scaled = columns / block[0, 0] if step == 1 else columns @ _inverse(block)
            a[below, below] -= scaled @ _adjoint(columns, hermitian)
            if hermitian:  # whose diagonal is real
                on = a.place.numpy.arange(k + step, n)
                a[on, on] = a[on, on].real.astype(a.dtype)
            a[below, k : k + step] = scaled
        k += step
    return a.place.numpy.tril(a), pivots, info


def solve(ld: Any, pivots: Any, b: Any, hermitian: bool) -> Any:
    """The solution of a system from its factors."""
    x, n, at, k = b.copy(), len(ld), pivots.get().tolist(), 0
    steps = []
    while k < n:
        step = 1 if at[k] > 0 else 2
        steps.append((k, step))
        last = k + step - 1
        _swap(x, last, abs(at[k]) - 1)
        below = slice(k + step, None)
        x[below] -= ld[below, k : k + step] @ x[k : k + step]
        block = _whole(ld[k : k + step, k : k + step], hermitian)
        x[k : k + step] = x[k : k + step] / block[0, 0] if step == 1 else _inverse(block) @ x[k : k + step]
        k += step
    for k, step in reversed(steps):
        below = slice(k + step, None)
        x[k : k + step] -= _adjoint(ld[below, k : k + step], hermitian) @ x[below]
        _swap(x, k + step - 1, abs(at[k]) - 1)
    return x


def lapack(routine: str, a: Any, hermitian: bool) -> Any:
    """What stands for LAPACK's routines of this name."""
    hermitian = hermitian and a.dtype.kind == "c"
    if routine == "trf":

        def trf(a: Any, lower: int) -> tuple[Any, Any, int]:
            return factor(a, hermitian)

        return trf

    def trs(ld: Any, pivots: Any, b: Any, lower: int) -> tuple[Any, int]:
        return solve(ld, pivots, b, hermitian), 0

    return trs
