"""Recurrent layers by the compiled kernels; see compiled.py.

Each function writes to arrays that are there, and returns whether it did. A task is some rows of the batch, from the
first step to the last.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from retrograd.core.threads import threads

from .compiled import library, run_on, takes
from .compiled_products import PRODUCT_GRAIN, packed


def _run(
    name: str, grad: ndarray | None, w_hh: ndarray, turned: bool, shape: tuple[int, ...], reverse: bool, args: list[Any]
) -> None:
    """The kernel on `args`, with the packed weights in the place of `_WEIGHTS`."""
    steps, batch, hidden = shape
    dtype = w_hh.dtype
    many = min(threads[0], max(1, w_hh.size * steps * batch // PRODUCT_GRAIN))
    tasks = 1 if many == 1 else min(2 * many, -(-batch // library().TILE_ROWS))
    strides = (0, 0) if grad is None else (grad.strides[0] // dtype.itemsize, grad.strides[1] // dtype.itemsize)
    sizes = np.array((steps, batch, hidden, reverse, tasks, *strides), np.int64)
    weights = packed(w_hh.T if turned else w_hh, many)
    run_on(many, name, dtype, tasks, *[weights if arg is _WEIGHTS else arg for arg in args], sizes)


_WEIGHTS = object()


def _usable(grad: ndarray | None) -> ndarray | None:
    """The gradient, with the numbers of a row side by side."""
    if grad is None or (grad.strides[2] == grad.itemsize and grad.flags.aligned):
        return grad
    return np.ascontiguousarray(grad)


def lstm(
    gates: ndarray, w_hh: ndarray, hx: ndarray, cx: ndarray, output: ndarray, cells: ndarray, reverse: bool
) -> bool:
    """`gates` has what the inputs contribute to them."""
    hx, cx = np.ascontiguousarray(hx), np.ascontiguousarray(cx)
    if not takes(gates, w_hh, hx, cx):
        return False
    _run("lstm", None, w_hh, True, output.shape, reverse, [gates, _WEIGHTS, hx, cx, output, cells])
    return True


def lstm_backward(
    grad: ndarray | None, gates: ndarray, cells: ndarray, w_hh: ndarray, cx: ndarray, h: ndarray, c: ndarray,
    slopes: ndarray, reverse: bool,
) -> bool:  # fmt: skip
    """`h` and `c` have the gradients of the last states, and get those of the first."""
    cx, grad = np.ascontiguousarray(cx), _usable(grad)
    if not takes(gates, cells, w_hh, cx, h, c, slopes):
        return False
    _run("lstm_backward", grad, w_hh, False, cells.shape, reverse, [grad, gates, cells, _WEIGHTS, cx, h, c, slopes])
    return True


def gru(
    parts: ndarray, w_hh: ndarray, b_hh: ndarray | None, hx: ndarray, output: ndarray, gates: ndarray, reverse: bool
) -> bool:
    """`parts` is what the inputs contribute."""
    hx = np.ascontiguousarray(hx)
    if not takes(parts, w_hh, b_hh, hx):
        return False
    _run("gru", None, w_hh, True, output.shape, reverse, [parts, _WEIGHTS, b_hh, hx, output, gates])
    return True


def gru_backward(
    grad: ndarray | None, gates: ndarray, w_hh: ndarray, hx: ndarray, output: ndarray, h: ndarray, x_slopes: ndarray,
    h_slopes: ndarray, reverse: bool,
) -> bool:  # fmt: skip
    """`h` has the gradient of the last state, and gets that of the first."""
    hx, grad = np.ascontiguousarray(hx), _usable(grad)
    if not takes(gates, w_hh, hx, output, h):
        return False
    args = [grad, gates, _WEIGHTS, hx, output, h, x_slopes, h_slopes]
    _run("gru_backward", grad, w_hh, False, output.shape, reverse, args)
    return True


def plain(output: ndarray, w_hh: ndarray, hx: ndarray, positive: bool, reverse: bool) -> bool:
    """`output` has what the inputs contribute."""
    hx = np.ascontiguousarray(hx)
    if not takes(output, w_hh, hx):
        return False
    _run("plain_rnn", None, w_hh, True, output.shape, reverse, [output, _WEIGHTS, hx, int(positive)])
    return True


def plain_backward(
    grad: ndarray | None, w_hh: ndarray, output: ndarray, h: ndarray, slopes: ndarray, positive: bool, reverse: bool
) -> bool:
    """`h` has the gradient of the last state, and gets that of the first."""
    grad = _usable(grad)
    if not takes(output, w_hh, h):
        return False
    args = [grad, _WEIGHTS, output, h, slopes, int(positive)]
    _run("plain_rnn_backward", grad, w_hh, False, output.shape, reverse, args)
    return True
