"""Recurrent networks as functions: ``torch.lstm``, ``gru``, ``rnn_tanh``, ``rnn_relu`` and their cells.

One layer in one direction is one operator, with a node of its own (`_as_one`); where it cannot be (packed sequences,
projections, special tensors), it is made of others, step by step.  What does not depend on the hidden
state (the product of the inputs with the input weights) is computed for all steps at once in any case.

A sequence is (time, batch, features), or packed: the steps one after the other in `data`, with `batch_sizes[t]`
sequences still running at step t, the longest first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import kernels
from ..._generated import functions as generated
from ...core.state import local
from ...ops import namespace as ops
from ...ops.registry import composite
from ...tensor import Tensor
from .. import functional

State = tuple[Tensor, ...]
#: (what the inputs contribute to a step, the state, the weights) to the new state, the output first.
Step = Callable[[Tensor, State, "Weights"], State]


class Weights:
    """The parameters of one layer in one direction; `hr` projects the output of an LSTM."""

    def __init__(
        self,
        ih: Tensor,
        hh: Tensor,
        b_ih: Tensor | None = None,
        b_hh: Tensor | None = None,
        hr: Tensor | None = None,
    ) -> None:
        self.ih, self.hh, self.b_ih, self.b_hh, self.hr = ih, hh, b_ih, b_hh, hr
        self.hh_t: Tensor | None = None

    def of_input(self, input: Tensor) -> Tensor:
        """The contribution of the inputs, of one step or of many."""
        return functional.linear(input, self.ih, self.b_ih)

    def of_hidden(self, hidden: Tensor) -> Tensor:
        """The contribution of the hidden state: `linear`, of which a step needs the product alone, as the weights are
        transposed once for all steps."""
        if hidden._memory_.ndim != 2 or self.b_hh is None:
            return functional.linear(hidden, self.hh, self.b_hh)
        if self.hh_t is None:
            self.hh_t = self.hh.t()
        return ops.addmm(self.b_hh, hidden, self.hh_t)


# ---------------------------------------------------------------------------------------------------------------- steps


def _simple(activation: Callable[[Tensor], Tensor]) -> Step:
    def step(part: Tensor, state: State, weights: Weights) -> State:
        return (activation(part + weights.of_hidden(state[0])),)

    return step


def _gru_step(part: Tensor, state: State, weights: Weights) -> State:
    (hidden,) = state
    reset, update, new = part.chunk(3, -1)
    h_reset, h_update, h_new = weights.of_hidden(hidden).chunk(3, -1)
    update = (update + h_update).sigmoid()
    new = (new + (reset + h_reset).sigmoid() * h_new).tanh()
    return (new + update * (hidden - new),)


def _lstm_step(part: Tensor, state: State, weights: Weights) -> State:
    hidden, cell = state
    enter, forget, new, leave = (part + weights.of_hidden(hidden)).chunk(4, -1)
    cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
    hidden = leave.sigmoid() * cell.tanh()
    if weights.hr is not None:
        hidden = functional.linear(hidden, weights.hr)
    return hidden, cell


_STEPS: dict[str, tuple[Step, int]] = {
    "rnn_tanh": (_simple(Tensor.tanh), 1),  # type: ignore[attr-defined]
    "rnn_relu": (_simple(Tensor.relu), 1),  # type: ignore[attr-defined]
    "gru": (_gru_step, 3),
    "lstm": (_lstm_step, 4),
}


# ---------------------------------------------------------------------------------------------------------------- cells


def _cell(name: str, input: Tensor, state: State, *weights: Any) -> State:
    step, gates = _STEPS[name]
    w = Weights(*weights)
    if input._memory_.shape[-1] != w.ih._memory_.shape[1]:
        raise RuntimeError(
            f"input has inconsistent input_size: got {input._memory_.shape[-1]} expected {w.ih._memory_.shape[1]}"
        )
    width = w.hh._memory_.shape[1]
    if w.ih._memory_.shape[0] != w.hh._memory_.shape[0]:
        raise RuntimeError(
            f"weight_ih first dimension ({w.ih._memory_.shape[0]}) must be that of weight_hh ({w.hh._memory_.shape[0]})"
            f": {gates} times the hidden size"
        )
    for hidden in state:
        if hidden._memory_.ndim != input._memory_.ndim or hidden._memory_.shape[:-1] != input._memory_.shape[:-1]:
            raise RuntimeError(
                f"Input batch size {_batch_text(input)} doesn't match hidden0 batch size {_batch_text(hidden)}"
            )
        if hidden._memory_.shape[-1] != width or w.hh._memory_.shape[0] != gates * width:
            raise RuntimeError(
                f"hidden0 has inconsistent hidden_size: got {hidden._memory_.shape[-1]}, expected {width} (and "
                f"{gates * width} rows of w_hh, which has {w.hh._memory_.shape[0]})"
            )
    return step(w.of_input(input), state, w)


def _batch_text(tensor: Tensor) -> str:
    shape = tensor._memory_.shape[:-1]
    return str(shape[0]) if len(shape) == 1 else str(list(shape))


def _make_cell(name: str) -> Callable[..., Tensor]:
    def cell(
        input: Tensor,
        hx: Tensor,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor | None = None,
        b_hh: Tensor | None = None,
    ) -> Tensor:
        return _cell(name, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]

    cell.__name__ = cell.__qualname__ = f"{name}_cell"
    cell.__doc__ = f"One step of `{name}`: the next hidden state of each sequence."
    return cell


rnn_tanh_cell: Callable[..., Tensor] = composite(method=False)(_make_cell("rnn_tanh"))
rnn_relu_cell: Callable[..., Tensor] = composite(method=False)(_make_cell("rnn_relu"))
gru_cell: Callable[..., Tensor] = composite(method=False)(_make_cell("gru"))


@composite(method=False)
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> State:
    """One step of `lstm`: the next hidden and cell states."""
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    return _cell("lstm", input, tuple(hx), w_ih, w_hh, b_ih, b_hh)


# ------------------------------------------------------------------------------------------------------------ sequences


def _run(step: Step, input: Tensor, sizes: list[int], state: State, weights: Weights, backwards: bool) -> Any:
    """One layer in one direction: the outputs, packed as the input is, and the state of each sequence at its end."""
    steps = input._memory_.shape[:-1]
    if len(steps) == 2:
        input = input.reshape((steps[0] * steps[1], input._memory_.shape[-1]))
    parts = weights.of_input(input).split(sizes)
    outputs: list[Any] = [None] * len(parts)
    whole = state[0]._memory_.shape[0]
    # Forwards the batch shrinks, and who has ended is put aside; backwards it grows by those who begin.
    start = state if not backwards else tuple([s[:0] for s in state])
    running, ended = start, []
    for t in range(len(parts) - 1, -1, -1) if backwards else range(len(parts)):
        size, had = sizes[t], running[0]._memory_.shape[0]
        if size < had:
            ended.append(tuple([s[size:] for s in running]))
            running = tuple([s[:size] for s in running])
        elif size > had:
            running = tuple([ops.cat([s, s0[had:size]]) for s, s0 in zip(running, state, strict=True)])
        running = step(parts[t], running, weights)
        outputs[t] = running[0]
    if backwards and running[0]._memory_.shape[0] < whole:
        running = tuple([ops.cat([s, s0[len(s) :]]) for s, s0 in zip(running, state, strict=True)])
    ended.append(running)
    last = tuple([ops.cat(list(pieces[::-1])) if len(pieces) > 1 else pieces[0] for pieces in zip(*ended, strict=True)])
    output = ops.cat(outputs)
    return output if len(steps) == 1 else output.reshape((*steps, output._memory_.shape[-1])), last


def _as_one(name: str, input: Tensor, state: State, weights: Weights, backwards: bool) -> Any:
    """The same by one operator, for sequences of one length; None where it has to be made of others."""
    first, w_ih, w_hh = input._memory_, weights.ih._memory_, weights.hh._memory_
    # A float of one dtype, plain arrays, and shapes that fit: what does not is told by the parts.
    if first.ndim != 3 or not first.size or w_hh.ndim != 2 or weights.hr is not None:
        return None
    if first.dtype.char not in "fd" and not (name == "lstm" and kernels.is_half(first.dtype)):
        return None
    batch, width = first.shape[1], w_hh.shape[1]
    if w_ih.shape != (w_hh.shape[0], first.shape[2]) or (local.state.observers and name != "lstm" and _casts()):
        return None
    if not width or w_hh.shape[0] != _STEPS[name][1] * width:
        return None
    for tensor in (input, *state, weights.ih, weights.hh, weights.b_ih, weights.b_hh):
        if tensor is not None and (type(tensor._memory_) is not np.ndarray or tensor._memory_.dtype != first.dtype):
            return None
    if any([s._memory_.shape != (batch, width) for s in state]):
        return None
    if any([b is not None and b._memory_.shape != w_hh.shape[:1] for b in (weights.b_ih, weights.b_hh)]):
        return None
    mine = weights.ih, weights.hh, weights.b_ih, weights.b_hh
    if name == "lstm":
        output, *last = generated._lstm_layer(input, *mine, state[0], state[1], backwards)
    else:
        output, *last = generated._rnn_layer(input, *mine, state[0], name, backwards)
    return output, tuple(last)


def _casts() -> bool:
    """Are products in half precision here?  Then the parts have their own, as torch has no operator for the layer."""
    return any([getattr(observer, "casts", False) for observer in local.state.observers])


def _layers(
    name: str, input: Tensor, sizes: list[int], states: State, params: Sequence[Tensor], has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool,
) -> tuple[Tensor, State]:  # fmt: skip
    """All layers, each on the outputs of the one below."""
    step, _ = _STEPS[name]
    projected = name == "lstm" and states[0]._memory_.shape[-1] != states[1]._memory_.shape[-1]
    count = (4 if has_biases else 2) + projected
    directions = 2 if bidirectional else 1
    if len(params) != count * num_layers * directions:
        raise RuntimeError("got an incorrect number of RNN parameters")
    if states[0]._memory_.shape[0] != num_layers * directions:
        raise RuntimeError(
            f"Expected more hidden states in stacked_rnn: {num_layers * directions}, one for each layer and direction"
        )
    finals: list[State] = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            mine = params[at * count : (at + 1) * count]
            weights = Weights(*mine[: count - projected])
            weights.hr = mine[-1] if projected else None
            state = tuple([s[at] for s in states])
            result, last = _as_one(name, input, state, weights, bool(direction)) or _run(
                step, input, sizes, state, weights, bool(direction)
            )
            outputs.append(result)
            finals.append(last)
        input = outputs[0] if directions == 1 else ops.cat(outputs, -1)
        if dropout and train and layer < num_layers - 1:
            input = functional.dropout(input, dropout, True)
    return input, tuple([ops.stack(list(parts)) for parts in zip(*finals, strict=True)])


def _network(
    name: str, input: Tensor, second: Any, third: Any, args: tuple[Any, ...], kwargs: dict[Any, Any]
) -> tuple[Any, ...]:
    """The call with a tensor of sequences, or (data, batch_sizes, hx, params, ...) with packed ones."""
    if isinstance(third, Tensor) or (name == "lstm" and isinstance(second, Tensor)):
        return _packed(name, input, second, third, *args, **kwargs)
    return _padded(name, input, second, third, *args, **kwargs)


def _states(name: str, hx: Any) -> State:
    if name == "lstm":
        if len(hx) != 2:
            raise RuntimeError("lstm expects two hidden states")
        return tuple(hx)
    return (hx,)


def _packed(
    name: str, data: Tensor, batch_sizes: Tensor, hx: Any, params: Sequence[Tensor], has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool,
) -> tuple[Any, ...]:  # fmt: skip
    sizes = [int(n) for n in batch_sizes._numbers_]
    states = _states(name, hx)
    output, last = _layers(name, data, sizes, states, params, has_biases, num_layers, dropout, train, bidirectional)
    return output, *last


def _padded(
    name: str, input: Tensor, hx: Any, params: Sequence[Tensor], has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Any, ...]:  # fmt: skip
    if batch_first:
        input = input.transpose(0, 1)
    steps, batch = input.shape[:2]
    output, last = _layers(
        name, input, [batch] * steps, _states(name, hx), params, has_biases, num_layers, dropout, train, bidirectional
    )
    return output.transpose(0, 1) if batch_first else output, *last


def _make_network(name: str) -> Callable[..., tuple[Any, ...]]:
    def network(input: Tensor, hx: Any, params: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return _network(name, input, hx, params, args, kwargs)

    network.__name__ = network.__qualname__ = name
    network.__doc__ = (
        f"`{name}` over sequences (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, "
        "batch_first), or over packed ones (data, batch_sizes, hx, params, has_biases, ...)."
    )
    return network


rnn_tanh: Callable[..., Any] = composite(method=False)(_make_network("rnn_tanh"))
rnn_relu: Callable[..., Any] = composite(method=False)(_make_network("rnn_relu"))
gru: Callable[..., Any] = composite(method=False)(_make_network("gru"))
lstm: Callable[..., Any] = composite(method=False)(_make_network("lstm"))
