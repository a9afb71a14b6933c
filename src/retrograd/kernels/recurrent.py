"""Recurrent networks: one layer in one direction, over all steps.

Sequences are (time, batch, features).  What the inputs contribute is one product for all steps, and so are the
gradients of the weights; the loop over the steps does what depends on the step before, into memory that is there.
`gates` is what each step keeps for backward: of an LSTM its gates i, f, g and o; of a GRU r, z, n and what the hidden
state contributed to n; of a plain network nothing, its output is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import compiled_recurrent
from .products import addmm, mm
from .promotion import is_half
from .reduce import sum as total

Array = np.ndarray


def _sigmoid(z: Array) -> None:
    """In place."""
    np.negative(z, out=z)
    np.exp(z, out=z)
    z += 1
    np.reciprocal(z, out=z)


def _of_inputs(input: Array, w_ih: Array, bias: Array | None) -> Array:
    """What the inputs contribute to all steps."""
    steps, batch, width = input.shape
    flat, turned = input.reshape(steps * batch, width), w_ih.T
    parts = mm(flat, turned) if bias is None else addmm(bias, flat, turned)
    return parts.reshape(steps, batch, len(w_ih))


def _order(steps: int, reverse: bool) -> range:
    return range(steps - 1, -1, -1) if reverse else range(steps)


def _together(b_ih: Array | None, b_hh: Array | None) -> Array | None:
    return b_ih if b_hh is None else b_hh if b_ih is None else b_ih + b_hh


# ----------------------------------------------------------------------------------------------------------------- LSTM


def lstm_layer(
    input: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None, hx: Array, cx: Array, reverse: bool
) -> tuple[Array, Array, Array, Array, Array]:
    """The outputs, the last hidden and cell states; the gates and the cells of all steps."""
    dtype = input.dtype
    if is_half(dtype):
        input, w_ih, w_hh, b_ih, b_hh, hx, cx = _wide(input, w_ih, w_hh, b_ih, b_hh, hx, cx)
    steps, batch, _ = input.shape
    hidden = w_hh.shape[1]
    gates = _of_inputs(input, w_ih, _together(b_ih, b_hh))
    output, cells = (np.empty((steps, batch, hidden), gates.dtype) for _ in range(2))
    order = _order(steps, reverse)
    if not compiled_recurrent.lstm(gates, w_hh, hx, cx, output, cells, reverse):
        turned, part, new = w_hh.T, np.empty_like(gates[0]), np.empty_like(output[0])
        h, c = hx, cx
        for t in order:
            z, after = gates[t], cells[t]
            z += np.matmul(h, turned, out=part)
            g = z[:, 2 * hidden : 3 * hidden]
            np.tanh(g, out=new)
            _sigmoid(z)
            g[...] = new
            np.multiply(z[:, hidden : 2 * hidden], c, out=after)
            after += np.multiply(z[:, :hidden], new, out=new)
            c, h = after, output[t]
            np.multiply(np.tanh(c, out=new), z[:, 3 * hidden :], out=h)
    last = order[-1]
    results = output, output[last].copy(), cells[last].copy()
    if dtype != output.dtype:
        results = tuple([a.astype(dtype) for a in results])  # type: ignore[assignment]
    return *results, gates, cells


def _wide(*arrays: Array | None) -> list[Any]:
    return [None if a is None else a.astype(np.float32) for a in arrays]


def lstm_layer_backward(
    grads: Sequence[Array | None], input: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None,
    hx: Array, cx: Array, output: Array, gates: Array, cells: Array, reverse: bool, edges: Sequence[Any],
) -> tuple[Array | None, ...]:  # fmt: skip
    """The gradients of input, weights, biases and states, those whose edge is not None."""
    dtype = input.dtype
    if is_half(dtype):
        grads = _wide(*grads)
        input, w_ih, w_hh, hx, cx, output = _wide(input, w_ih, w_hh, hx, cx, output)
    slopes = np.empty_like(gates)
    # What is known of the hidden and the cell state: it goes from each step to the one before.
    h = np.zeros_like(output[0]) if grads[1] is None else grads[1].copy()
    c = np.zeros_like(output[0]) if grads[2] is None else grads[2].copy()
    if not compiled_recurrent.lstm_backward(grads[0], gates, cells, w_hh, cx, h, c, slopes, reverse):
        hidden = w_hh.shape[1]
        m, some = np.empty_like(h), np.empty_like(h)
        parts = [slice(k * hidden, (k + 1) * hidden) for k in range(4)]
        order = _order(len(output), reverse)
        for at in range(len(order) - 1, -1, -1):
            t = order[at]
            if grads[0] is not None:
                h += grads[0][t]
            gate, slope = gates[t], slopes[t]
            i, f, g, o = [gate[:, part] for part in parts]
            di, df, dg, do = [slope[:, part] for part in parts]
            np.tanh(cells[t], out=m)
            np.subtract(1, gate, out=slope)
            slope *= gate  # the slopes of the sigmoids
            np.multiply(g, g, out=dg)
            np.subtract(1, dg, out=dg)
            np.multiply(h, m, out=some)
            do *= some
            m *= m
            np.subtract(1, m, out=m)
            m *= o
            m *= h
            c += m
            di *= np.multiply(c, g, out=some)
            df *= np.multiply(c, cells[order[at - 1]] if at else cx, out=some)
            dg *= np.multiply(c, i, out=some)
            c *= f
            np.matmul(slope, w_hh, out=h)
    found = *_of_weights(input, w_ih, w_hh, b_ih, b_hh, hx, output, slopes, slopes, reverse, edges), h, c
    return found if dtype == h.dtype else tuple([None if a is None else a.astype(dtype) for a in found])


def _of_weights(
    input: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None, hx: Array, output: Array,
    x_slopes: Array, h_slopes: Array, reverse: bool, edges: Sequence[Any],
) -> tuple[Array | None, ...]:  # fmt: skip
    """The gradients of input, weights and biases from those of what input and hidden states contribute."""
    steps, batch, width = input.shape
    x_flat = x_slopes.reshape(steps * batch, -1)
    grads: list[Array | None] = [None] * 5
    if edges[0] is not None:
        grads[0] = mm(x_flat, w_ih).reshape(input.shape)
    if edges[1] is not None:
        grads[1] = mm(x_flat.T, input.reshape(steps * batch, width))
    if edges[2] is not None:
        # Each step had the output of the one before, and the first hx.
        later, earlier = (h_slopes[:-1], output[1:]) if reverse else (h_slopes[1:], output[:-1])
        found = mm(h_slopes[-1 if reverse else 0].T, hx)
        if steps > 1:
            rows = (steps - 1) * batch
            found += mm(later.reshape(rows, -1).T, earlier.reshape(rows, -1))
        grads[2] = found
    if edges[3] is not None:
        grads[3] = total(x_flat, 0)
    if edges[4] is not None:
        same = h_slopes is x_slopes and grads[3] is not None
        grads[4] = grads[3] if same else total(h_slopes.reshape(steps * batch, -1), 0)
    return tuple(grads)


# ------------------------------------------------------------------------------------------------------- GRU and others


def rnn_layer(
    input: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None, hx: Array, mode: str, reverse: bool
) -> tuple[Array, Array, Array | None]:
    """The outputs, the last hidden state; what a GRU keeps of all steps."""
    steps, batch, _ = input.shape
    hidden, gates = w_hh.shape[1], None
    order = _order(steps, reverse)
    if mode == "gru":
        parts = _of_inputs(input, w_ih, b_ih)
        output, gates = np.empty((steps, batch, hidden), parts.dtype), np.empty((steps, batch, 4 * hidden), parts.dtype)
        if not compiled_recurrent.gru(parts, w_hh, b_hh, hx, output, gates, reverse):
            _gru_steps(parts, w_hh, b_hh, hx, output, gates, order)
    else:
        output = _of_inputs(input, w_ih, _together(b_ih, b_hh))
        if not compiled_recurrent.plain(output, w_hh, hx, mode == "rnn_relu", reverse):
            turned, h, part = w_hh.T, hx, np.empty_like(output[0])
            for t in order:
                y = output[t]
                y += np.matmul(h, turned, out=part)
                h = np.maximum(y, 0, out=y) if mode == "rnn_relu" else np.tanh(y, out=y)
    return output, output[order[-1]].copy(), gates


def _gru_steps(
    parts: Array, w_hh: Array, b_hh: Array | None, h: Array, output: Array, gates: Array, order: range
) -> None:
    hidden = w_hh.shape[1]
    turned, part = w_hh.T, np.empty_like(parts[0])
    for t in order:
        z, x = gates[t], parts[t]
        both, n, of_hidden = z[:, : 2 * hidden], z[:, 2 * hidden : 3 * hidden], z[:, 3 * hidden :]
        np.matmul(h, turned, out=part)
        if b_hh is not None:
            part += b_hh
        of_hidden[...] = part[:, 2 * hidden :]
        np.add(x[:, : 2 * hidden], part[:, : 2 * hidden], out=both)
        _sigmoid(both)
        np.multiply(z[:, :hidden], of_hidden, out=n)
        n += x[:, 2 * hidden :]
        np.tanh(n, out=n)
        y = np.subtract(h, n, out=output[t])
        y *= z[:, hidden : 2 * hidden]
        y += n
        h = y


def rnn_layer_backward(
    grads: Sequence[Array | None], input: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None,
    hx: Array, output: Array, gates: Array | None, mode: str, reverse: bool, edges: Sequence[Any],
) -> tuple[Array | None, ...]:  # fmt: skip
    """The gradients of input, weights, biases and state, those whose edge is not None."""
    steps, batch, _ = output.shape
    h = np.zeros_like(output[0]) if grads[1] is None else grads[1].copy()
    x_slopes = np.empty((steps, batch, len(w_hh)), output.dtype)
    h_slopes = np.empty_like(x_slopes) if gates is not None else x_slopes
    order = _order(steps, reverse)
    if gates is not None:
        if not compiled_recurrent.gru_backward(grads[0], gates, w_hh, hx, output, h, x_slopes, h_slopes, reverse):
            _gru_steps_backward(grads[0], gates, w_hh, hx, output, h, x_slopes, h_slopes, order)
    elif not compiled_recurrent.plain_backward(grads[0], w_hh, output, h, x_slopes, mode == "rnn_relu", reverse):
        for t in reversed(order):
            if grads[0] is not None:
                h += grads[0][t]
            slope = x_slopes[t]
            if mode == "rnn_relu":
                np.copyto(slope, h)
                slope[output[t] <= 0] = 0
            else:
                np.multiply(output[t], output[t], out=slope)
                np.subtract(1, slope, out=slope)
                slope *= h
            np.matmul(slope, w_hh, out=h)
    return *_of_weights(input, w_ih, w_hh, b_ih, b_hh, hx, output, x_slopes, h_slopes, reverse, edges), h


def _gru_steps_backward(
    grad: Array | None, gates: Array, w_hh: Array, hx: Array, output: Array, h: Array, x_slopes: Array, h_slopes: Array,
    order: range,
) -> None:  # fmt: skip
    hidden = w_hh.shape[1]
    parts = [slice(k * hidden, (k + 1) * hidden) for k in range(4)]
    some, along = np.empty_like(h), np.empty_like(h)
    for at in range(len(order) - 1, -1, -1):
        t = order[at]
        if grad is not None:
            h += grad[t]
        gate, x_slope, h_slope = gates[t], x_slopes[t], h_slopes[t]
        r, z, n, of_hidden = [gate[:, part] for part in parts]
        both, new = x_slope[:, : 2 * hidden], x_slope[:, parts[2]]
        np.subtract(1, gate[:, : 2 * hidden], out=both)
        np.multiply(both[:, hidden:], h, out=some)
        np.multiply(n, n, out=new)
        np.subtract(1, new, out=new)
        new *= some
        both *= gate[:, : 2 * hidden]  # the slopes of the sigmoids
        np.subtract(output[order[at - 1]] if at else hx, n, out=some)
        some *= h
        both[:, hidden:] *= some
        np.multiply(new, of_hidden, out=some)
        both[:, :hidden] *= some
        h_slope[:, : 2 * hidden] = both
        np.multiply(new, r, out=h_slope[:, parts[2]])
        np.multiply(h, z, out=along)
        np.matmul(h_slope, w_hh, out=h)
        h += along
