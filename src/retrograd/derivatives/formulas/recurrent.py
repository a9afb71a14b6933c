"""Formula helpers of recurrent layers.

Arrays go to the kernels.  What is on Tensors (passes that are recorded, tangents) is written step by step here, from
the inputs alone: each kind of network is a step, its backward and its tangent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ... import kernels

Some = tuple[Any, ...]


@dataclass(frozen=True)
class Kind:
    """One step of a network.

    `forward(ops, x, h, state)`: what input and hidden state contribute, and the state before; the new state, and what
    the others want to know. `backward(ops, kept, grads)`: the gradients of the new state; those of the two
    contributions, and of the state before (but for what goes through its contribution).
    `tangent(ops, kept, x_t, h_t, state_t)`: the tangents of the same, that of the new state.
    """

    forward: Callable[[Any, Any, Any, Some], tuple[Some, Some]]
    backward: Callable[[Any, Some, Some], tuple[Any, Any, Some]]
    tangent: Callable[[Any, Some, Any, Any, Some], Some]


# ---------------------------------------------------------------------------------------------------------------- steps


def _lstm(ops: Any, x: Any, h: Any, state: Some) -> tuple[Some, Some]:
    enter, forget, new, leave = ops.chunk(x + h, 4, -1)
    i, f, g, o = ops.sigmoid(enter), ops.sigmoid(forget), ops.tanh(new), ops.sigmoid(leave)
    cell = f * state[1] + i * g
    m = ops.tanh(cell)
    return (o * m, cell), (i, f, g, o, state[1], m)


def _lstm_backward(ops: Any, kept: Some, grads: Some) -> tuple[Any, Any, Some]:
    i, f, g, o, before, m = kept
    cell = grads[1] + grads[0] * o * (1 - m * m)
    slopes = ops.cat(
        [
            cell * g * i * (1 - i),
            cell * before * f * (1 - f),
            cell * i * (1 - g * g),
            grads[0] * m * o * (1 - o),
        ],
        -1,
    )
    return slopes, slopes, (None, cell * f)


def _lstm_tangent(ops: Any, kept: Some, x_t: Any, h_t: Any, state_t: Some) -> Some:
    i, f, g, o, before, m = kept
    enter, forget, new, leave = ops.chunk(x_t + h_t, 4, -1)
    cell = forget * f * (1 - f) * before + f * state_t[1] + enter * i * (1 - i) * g + i * new * (1 - g * g)
    return leave * o * (1 - o) * m + o * (1 - m * m) * cell, cell


def _gru(ops: Any, x: Any, h: Any, state: Some) -> tuple[Some, Some]:
    (x_r, x_z, x_n), (h_r, h_z, h_n) = ops.chunk(x, 3, -1), ops.chunk(h, 3, -1)
    r, z = ops.sigmoid(x_r + h_r), ops.sigmoid(x_z + h_z)
    n = ops.tanh(x_n + r * h_n)
    return (n + z * (state[0] - n),), (r, z, n, h_n, state[0])


def _gru_backward(ops: Any, kept: Some, grads: Some) -> tuple[Any, Any, Some]:
    (grad,), (r, z, n, h_n, before) = grads, kept
    new = grad * (1 - z) * (1 - n * n)
    reset, update = new * h_n * r * (1 - r), grad * (before - n) * z * (1 - z)
    return ops.cat([reset, update, new], -1), ops.cat([reset, update, new * r], -1), (grad * z,)


def _gru_tangent(ops: Any, kept: Some, x_t: Any, h_t: Any, state_t: Some) -> Some:
    r, z, n, h_n, before = kept
    (x_r, x_z, x_n), (h_r, h_z, h_n_t) = ops.chunk(x_t, 3, -1), ops.chunk(h_t, 3, -1)
    r_t, z_t = (x_r + h_r) * r * (1 - r), (x_z + h_z) * z * (1 - z)
    n_t = (x_n + r_t * h_n + r * h_n_t) * (1 - n * n)
    return (n_t + z_t * (before - n) + z * (state_t[0] - n_t),)


def _tanh(ops: Any, x: Any, h: Any, state: Some) -> tuple[Some, Some]:
    y = ops.tanh(x + h)
    return (y,), (1 - y * y,)


def _tanh_backward(ops: Any, kept: Some, grads: Some) -> tuple[Any, Any, Some]:
    slopes = grads[0] * kept[0]
    return slopes, slopes, (None,)


def _tanh_tangent(ops: Any, kept: Some, x_t: Any, h_t: Any, state_t: Some) -> Some:
    return ((x_t + h_t) * kept[0],)


def _relu(ops: Any, x: Any, h: Any, state: Some) -> tuple[Some, Some]:
    y = ops.relu(x + h)
    return (y,), (y,)


def _relu_backward(ops: Any, kept: Some, grads: Some) -> tuple[Any, Any, Some]:
    slopes = ops.threshold_backward(grads[0], kept[0], 0)
    return slopes, slopes, (None,)


def _relu_tangent(ops: Any, kept: Some, x_t: Any, h_t: Any, state_t: Some) -> Some:
    return (ops.threshold_backward(x_t + h_t, kept[0], 0),)


_KINDS = {
    "lstm": Kind(_lstm, _lstm_backward, _lstm_tangent),
    "gru": Kind(_gru, _gru_backward, _gru_tangent),
    "rnn_tanh": Kind(_tanh, _tanh_backward, _tanh_tangent),
    "rnn_relu": Kind(_relu, _relu_backward, _relu_tangent),
}


# --------------------------------------------------------------------------------------------------------------- layers


def _times(ops: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    product = ops.matmul(x, ops.transpose(weight, 0, 1))
    return product if bias is None else product + bias


def _sum(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return second if first is None else first
    return first + second


def _order(input: Any, reverse: bool) -> list[int]:
    steps = range(input.shape[0])
    return list(reversed(steps) if reverse else steps)


def _in_time(ops: Any, found: list[Any], reverse: bool) -> Any:
    return ops.stack(found[::-1] if reverse else found)


def _states(ops: Any, kind: Kind, parts: Any, w_hh: Any, b_hh: Any, state: Some, order: list[int]) -> tuple[Any, Any]:
    """The state before each step, and what each step kept."""
    before, kept = [], []
    for t in order:
        before.append(state)
        state, known = kind.forward(ops, parts[t], _times(ops, state[0], w_hh, b_hh), state)
        kept.append(known)
    return before, kept


def _backward(ops: Any, name: str, grads: Any, tensors: Some, state: Some, reverse: bool, edges: Any) -> Some:
    """The gradients of input, weights, biases and state, on Tensors."""
    input, w_ih, w_hh, b_ih, b_hh = tensors
    kind, order = _KINDS[name], _order(input, reverse)
    before, kept = _states(ops, kind, _times(ops, input, w_ih, b_ih), w_hh, b_hh, state, order)
    outputs, *last = grads
    running = tuple([ops.zeros_like(s) if g is None else g for s, g in zip(state, last, strict=True)])
    x_slopes, h_slopes = [], []
    for t, known in zip(reversed(order), reversed(kept), strict=True):
        if outputs is not None:
            running = (running[0] + outputs[t], *running[1:])
        x_slope, h_slope, direct = kind.backward(ops, known, running)
        running = (_sum(ops.matmul(h_slope, w_hh), direct[0]), *direct[1:])
        x_slopes.append(x_slope)
        h_slopes.append(h_slope)
    # They were found from the last step to the first.
    x_all, h_all = _in_time(ops, x_slopes, not reverse), _in_time(ops, h_slopes, not reverse)
    hidden = _in_time(ops, [s[0] for s in before], reverse)
    flat = (-1, w_ih.shape[0])
    x_flat, h_flat = ops.reshape(x_all, flat), ops.reshape(h_all, flat)
    return (
        ops.matmul(x_all, w_ih) if edges[0] is not None else None,
        ops.matmul(ops.transpose(x_flat, 0, 1), ops.reshape(input, (-1, w_ih.shape[1]))),
        ops.matmul(ops.transpose(h_flat, 0, 1), ops.reshape(hidden, (-1, w_hh.shape[1]))),
        None if b_ih is None else ops.sum(x_flat, 0),
        None if b_hh is None else ops.sum(h_flat, 0),
        *running,
    )


def _tangent(ops: Any, name: str, pairs: Some, states: Some, reverse: bool) -> Some:
    """The tangents of outputs and last states; `pairs` and `states` are values and their tangents, in turn."""
    input, input_t, w_ih, w_ih_t, w_hh, w_hh_t, b_ih, b_ih_t, b_hh, b_hh_t = pairs
    state, state_t = states[::2], states[1::2]
    kind, order = _KINDS[name], _order(input, reverse)
    parts_t = _times(ops, input_t, w_ih, b_ih_t) + _times(ops, input, w_ih_t)
    before, kept = _states(ops, kind, _times(ops, input, w_ih, b_ih), w_hh, b_hh, state, order)
    outputs = []
    for t, known, old in zip(order, kept, before, strict=True):
        of_hidden = _times(ops, state_t[0], w_hh, b_hh_t) + _times(ops, old[0], w_hh_t)
        state_t = kind.tangent(ops, known, parts_t[t], of_hidden, state_t)
        outputs.append(state_t[0])
    return _in_time(ops, outputs, reverse), *state_t


def lstm_layer_backward(
    ops: Any, grads: Any, input: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, hx: Any, cx: Any, output: Any,
    gates: Any, cells: Any, reverse: bool, edges: Any,
) -> Some:  # fmt: skip
    """The gradients of `_lstm_layer`."""
    if ops is kernels:
        return kernels.lstm_layer_backward(
            grads, input, w_ih, w_hh, b_ih, b_hh, hx, cx, output, gates, cells, reverse, edges
        )
    return _backward(ops, "lstm", grads, (input, w_ih, w_hh, b_ih, b_hh), (hx, cx), reverse, edges)


def lstm_layer_jvp(ops: Any, *args: Any) -> Some:
    """The tangents of `_lstm_layer`."""
    return _tangent(ops, "lstm", args[:10], args[10:14], args[14])


def rnn_layer_backward(
    ops: Any, grads: Any, input: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, hx: Any, output: Any, gates: Any,
    mode: str, reverse: bool, edges: Any,
) -> Some:  # fmt: skip
    """The gradients of `_rnn_layer`."""
    if ops is kernels:
        return kernels.rnn_layer_backward(
            grads, input, w_ih, w_hh, b_ih, b_hh, hx, output, gates, mode, reverse, edges
        )
    return _backward(ops, mode, grads, (input, w_ih, w_hh, b_ih, b_hh), (hx,), reverse, edges)


def rnn_layer_jvp(ops: Any, *args: Any) -> Some:
    """The tangents of `_rnn_layer`."""
    return _tangent(ops, args[12], args[:10], args[10:12], args[13])
