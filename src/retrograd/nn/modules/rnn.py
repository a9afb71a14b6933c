"""Recurrent networks and their cells: modules around ``nn/functional/recurrent.py``."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any

from ...amp.autocast_mode import is_autocast_enabled
from ...ops import namespace as ops
from ...tensor import Tensor
from .. import init
from ..functional import recurrent
from ..utils.rnn import PackedSequence
from .linear import new_parameter
from .module import Module

#: Of each kind: how many gates it has, and the function that runs it.
_KINDS: dict[str, tuple[int, Callable[..., tuple[Any, ...]]]] = {
    "RNN_TANH": (1, recurrent.rnn_tanh),
    "RNN_RELU": (1, recurrent.rnn_relu),
    "GRU": (3, recurrent.gru),
    "LSTM": (4, recurrent.lstm),
}


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """`tensor` with its slices along `dim` in another order."""
    return ops.index_select(tensor, dim, permutation)


class RNNBase(Module):
    """What the recurrent networks share: their parameters, and what they do with sequences of every kind."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout: float = self._checked_dropout(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_sizes()
        if mode not in _KINDS:
            raise ValueError("Unrecognized RNN mode: " + mode)
        gates = _KINDS[mode][0] * hidden_size
        output = proj_size or hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                width = input_size if layer == 0 else output * (2 if bidirectional else 1)
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, width), "weight_hh": (gates, output)}
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    full = f"{name}_l{layer}{suffix}"
                    self.register_parameter(full, new_parameter(*shape, device=device, dtype=dtype))
                self._all_weights.append([f"{name}_l{layer}{suffix}" for name in shapes])
        self.reset_parameters()

    def _checked_dropout(self, dropout: Any) -> float:
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:  # type: ignore[operator]
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={self.num_layers}",
                UserWarning,
                stacklevel=4,
            )
        return float(dropout)  # type: ignore[arg-type]

    def _check_sizes(self) -> None:
        for name, kind in (("input_size", int), ("hidden_size", int), ("bias", bool), ("batch_first", bool)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
        for name in ("input_size", "hidden_size", "num_layers"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")

    def reset_parameters(self) -> None:
        """Draw new first values: uniform in ±``1 / sqrt(hidden_size)``."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    @property
    def num_directions(self) -> int:
        """Two if the sequences are also read backwards."""
        return 2 if self.bidirectional else 1

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name) for name in self._flat_weights_names]

    def flatten_parameters(self) -> None:
        """Accepted for programs that ask for it: it concerns accelerators."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Torch keeps some of what is computed here.
        kept = {name: value for name, value in state.items() if name not in _COMPUTED}
        kept.setdefault("proj_size", 0)
        super().__setstate__(kept)

    # ---------------------------------------------------------------------------------------------------------- checks

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuse what is not a batch of sequences of `input_size` features."""
        dtype = self._flat_weights[0].dtype
        if input.dtype != dtype and not is_autocast_enabled():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). Convert input: "
                f"input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the hidden state for such an input."""
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0 if self.batch_first else 1)
        return self.num_layers * self.num_directions, batch, self.proj_size or self.hidden_size

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Refuse a hidden state of another shape."""
        if tuple(hx.size()) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuse what does not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The hidden state with its sequences in another order."""
        return hx if permutation is None else apply_permutation(hx, permutation)

    # ------------------------------------------------------------------------------------------------------- the call

    def _initial(self, input: Tensor, batch: int) -> Any:
        shape = (self.num_layers * self.num_directions, batch, self.proj_size or self.hidden_size)
        return ops.zeros(shape, dtype=input.dtype, device=input.device)

    def _check_hidden_dims(self, hx: Any, dims: int) -> None:
        if hx.dim() != dims:
            kind = "batched" if dims == 3 else "unbatched"
            raise RuntimeError(
                f"For {kind} {dims}-D input, hx should also be {dims}-D but got {hx.dim()}-D tensor"
            )

    def _each(self, hx: Any, change: Callable[[Tensor], Tensor]) -> Any:
        return change(hx)

    def forward(self, input: Any, hx: Any = None) -> Any:
        packed = isinstance(input, PackedSequence)
        batch_sizes = None
        batched = True
        if packed:
            input, batch_sizes, order, back = input
            hx = self._initial(input, int(batch_sizes[0])) if hx is None else self.permute_hidden(hx, order)
        else:
            if input.dim() not in (2, 3):
                raise ValueError(f"{self._kind()}: Expected input to be 2D or 3D, got {input.dim()}D instead")
            batched = input.dim() == 3
            if hx is not None:
                self._check_hidden_dims(hx, input.dim())
            if not batched:
                input = input.unsqueeze(0 if self.batch_first else 1)
                hx = hx if hx is None else self._each(hx, lambda state: state.unsqueeze(1))
            if hx is None:
                hx = self._initial(input, input.size(0 if self.batch_first else 1))
        self.check_forward_args(input, hx, batch_sizes)
        settings = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        run = _KINDS[self.mode][1]
        if packed:
            output, *last = run(input, batch_sizes, hx, self._flat_weights, *settings)
        else:
            output, *last = run(input, hx, self._flat_weights, *settings, self.batch_first)
        hidden = self._joined(last)
        if packed:
            assert batch_sizes is not None
            return PackedSequence(output, batch_sizes, order, back), self.permute_hidden(hidden, back)
        if not batched:
            output = output.squeeze(0 if self.batch_first else 1)
            hidden = self._each(hidden, lambda state: state.squeeze(1))
        return output, hidden

    def _joined(self, last: list[Tensor]) -> Any:
        return last[0]

    def _kind(self) -> str:
        return self.mode.partition("_")[0]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0),
            ("bidirectional", False),
        ):  # fmt: skip
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text


_COMPUTED = ("_flat_weights", "_flat_weights_names", "_flat_weight_refs", "num_directions", "all_weights")


def _refuse_projections(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """The plain recurrent network: ``tanh`` (or ``relu``) of what the input and the hidden state contribute.

    Called as ``RNN(input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False,
    dropout=0.0, bidirectional=False)``.

    >>> import retrograd as torch
    >>> output, hidden = torch.nn.RNN(3, 4)(torch.ones(5, 2, 3))
    >>> output.shape, hidden.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projections(kwargs)
        if len(args) > 3:
            nonlinearity, args = args[3], (*args[:3], *args[4:])
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + nonlinearity.upper(), *args, **kwargs)
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """The gated recurrent unit: two gates decide what is forgotten and what is taken up.

    Called as ``GRU(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
    bidirectional=False)``.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projections(kwargs)
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """The long short-term memory: a cell beside the hidden state, with three gates.

    Called as ``LSTM(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
    bidirectional=False, proj_size=0)``; the state is a pair (hidden, cell).

    >>> import retrograd as torch
    >>> output, (hidden, cell) = torch.nn.LSTM(3, 4, proj_size=2)(torch.ones(5, 2, 3))
    >>> output.shape, hidden.shape, cell.shape
    (torch.Size([5, 2, 2]), torch.Size([1, 2, 2]), torch.Size([1, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the cell state for such an input."""
        return (*self.get_expected_hidden_size(input, batch_sizes)[:2], self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuse what does not fit."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes)
        for i in range(2):
            self.check_hidden_size(hidden[i], expected[i], f"Expected hidden[{i}] size {{}}, got {{}}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The hidden and cell states with their sequences in another order."""
        if permutation is None:
            return hx
        return apply_permutation(hx[0], permutation), apply_permutation(hx[1], permutation)

    def _initial(self, input: Tensor, batch: int) -> Any:
        shape = (self.num_layers * self.num_directions, batch, self.hidden_size)
        return super()._initial(input, batch), ops.zeros(shape, dtype=input.dtype, device=input.device)

    def _check_hidden_dims(self, hx: Any, dims: int) -> None:
        if hx[0].dim() != dims or hx[1].dim() != dims:
            kind = "batched" if dims == 3 else "unbatched"
            raise RuntimeError(
                f"For {kind} {dims}-D input, hx and cx should also be {dims}-D but got ({hx[0].dim()}-D, "
                f"{hx[1].dim()}-D) tensors"
            )

    def _each(self, hx: Any, change: Callable[[Tensor], Tensor]) -> Any:
        return change(hx[0]), change(hx[1])

    def _joined(self, last: list[Tensor]) -> Any:
        return tuple(last)


# --------------------------------------------------------------------------------------------------------------- cells


class RNNCellBase(Module):
    """What the cells share: two weights and two biases, and inputs with or without a batch."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        self.weight_ih = new_parameter(gates, input_size, device=device, dtype=dtype)
        self.weight_hh = new_parameter(gates, hidden_size, device=device, dtype=dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, new_parameter(gates, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new first values: uniform in ±``1 / sqrt(hidden_size)``."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check(self, input: Tensor, states: list[tuple[str, Tensor]]) -> None:
        name = type(self).__name__
        for what, tensor in [("input", input), *states]:
            if tensor.dim() not in (1, 2):
                raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {tensor.dim()}D instead")

    def _zeros(self, input: Tensor) -> Tensor:
        return ops.zeros((*input.shape[:-1], self.hidden_size), dtype=input.dtype, device=input.device)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        return text


class RNNCell(RNNCellBase):
    """One step of `RNN`: the next hidden state.

    >>> import retrograd as torch
    >>> torch.nn.RNNCell(3, 4)(torch.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        self._check(input, [] if hx is None else [("hidden", hx)])
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        step = recurrent.rnn_tanh_cell if self.nonlinearity == "tanh" else recurrent.rnn_relu_cell
        return _on_batch(step, input, self._zeros(input) if hx is None else hx, self)

    def extra_repr(self) -> str:
        text = super().extra_repr()
        return text if self.nonlinearity == "tanh" else f"{text}, nonlinearity={self.nonlinearity}"


class GRUCell(RNNCellBase):
    """One step of `GRU`: the next hidden state."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        self._check(input, [] if hx is None else [("hidden", hx)])
        return _on_batch(recurrent.gru_cell, input, self._zeros(input) if hx is None else hx, self)


class LSTMCell(RNNCellBase):
    """One step of `LSTM`: the next hidden and cell states."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        self._check(input, [] if hx is None else [(f"hx[{i}]", state) for i, state in enumerate(hx)])
        if hx is None:
            zeros = self._zeros(input)
            hx = zeros, zeros
        return _on_batch(recurrent.lstm_cell, input, hx, self)


def _on_batch(step: Callable[..., Any], input: Tensor, hx: Any, cell: RNNCellBase) -> Any:
    """One step, of a batch or of a single vector as a batch of one."""
    weights = cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh
    if input.dim() == 2:
        return step(input, hx, *weights)
    pair = isinstance(hx, (tuple, list))
    result = step(input.unsqueeze(0), tuple(s.unsqueeze(0) for s in hx) if pair else hx.unsqueeze(0), *weights)
    return tuple(s.squeeze(0) for s in result) if pair else result.squeeze(0)
