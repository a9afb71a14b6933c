"""Sequences of different lengths: padded to one length, or packed without padding.

Packed, the first steps of all sequences come first, then their second steps, and so on, the longest sequence first in
each: a recurrent network takes one slice at a time.  `batch_sizes[t]` says how many sequences have a step t.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import dtypes
from ...ops import factories
from ...ops import namespace as ops
from ...tensor import Tensor, wrap


class PackedSequence_(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """Sequences packed by `pack_padded_sequence` or `pack_sequence`.

    `sorted_indices` says in which order the sequences are packed, `unsorted_indices` where each of them went.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:  # PackedSequence((data, batch_sizes)), as copies are made
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
                "nn.utils.rnn."
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same with `data` of another dtype or on another device; itself where nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        places = [None if x is None else x.to(data.device) for x in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *places)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same in the host's memory."""
        return self.to("cpu", *args, **kwargs)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same on a CUDA device, if there is one."""
        return self.to(*args, **{"device": "cuda", **kwargs}) if not args else self.to(*args, **kwargs)

    def pin_memory(self) -> PackedSequence:
        """The same in memory that a device can read by itself."""
        places = [None if x is None else x.pin_memory() for x in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(self.data.pin_memory(), self.batch_sizes, *places)

    def is_pinned(self) -> bool:
        """Is `data` in memory that a device can read by itself?"""
        return self.data.is_pinned()

    @property
    def is_cuda(self) -> bool:
        """Is `data` on a CUDA device?"""
        return self.data.is_cuda


def _make_conversion(name: str, dtype: str) -> Any:
    def convert(self: PackedSequence) -> PackedSequence:
        return self.to(getattr(dtypes, dtype))

    convert.__name__ = name
    convert.__doc__ = f"The same with `data` converted as by ``Tensor.{name}()``."
    return convert


for _name, _dtype in {
    "double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32", "short": "int16",
    "char": "int8", "byte": "uint8",
}.items():  # fmt: skip
    setattr(PackedSequence, _name, _make_conversion(_name, _dtype))


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Where each index is in a permutation.

    >>> import retrograd as torch
    >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    return wrap(np.argsort(permutation._numbers_, kind="stable"))


def _steps(sizes: np.ndarray, batch: int) -> np.ndarray:
    """The places of packed steps among padded ones, (time, batch) flattened."""
    times = np.repeat(np.arange(sizes.size), sizes)
    within = np.arange(times.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return times * batch + within


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences (time, batch, ...), or (batch, time, ...), of the given lengths.

    >>> import retrograd as torch
    >>> packed = torch.nn.utils.rnn.pack_padded_sequence(torch.tensor([[1, 2], [3, 4], [5, 0]]), [3, 2])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 2, 3, 4, 5]), tensor([2, 2, 1]))
    """
    found = np.asarray(lengths._numbers_ if isinstance(lengths, Tensor) else [int(n) for n in lengths], np.int64)
    order = None
    if not enforce_sorted:
        order = np.argsort(-found, kind="stable")
        found = found[order]
        input = ops.index_select(input, 0 if batch_first else 1, wrap(order))
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    padded = input.transpose(0, 1) if batch_first else input
    batch = padded.shape[1]
    if found.size != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {found.size} (batch_size={batch})"
        )
    if found.min() <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if (found[1:] > found[:-1]).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if found[0] > padded.shape[0]:
        raise RuntimeError(f"Expected lengths of at most {padded.shape[0]} (the padded length), got {int(found[0])}")
    sizes = (found[None] > np.arange(found[0])[:, None]).sum(1)
    flat = padded.reshape((padded.shape[0] * batch, *padded.shape[2:]))
    data = ops.index_select(flat, 0, wrap(_steps(sizes, batch)))
    return PackedSequence(data, wrap(sizes.astype(np.int64)), None if order is None else wrap(order), None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The opposite of `pack_padded_sequence`: the padded sequences, and their lengths.

    >>> import retrograd as torch
    >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])])
    >>> torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2],
            [3, 0]]), tensor([2, 1]))
    """
    sizes = sequence.batch_sizes._numbers_
    time = sizes.size
    if not time:
        raise RuntimeError("batch_sizes can not be empty: a packed sequence has at least one step")
    if total_length is not None:
        if total_length < time:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {time}"
            )
        time = total_length
    data, batch = sequence.data, int(sizes[0])
    room = data.new_full((time * batch, *data.shape[1:]), padding_value)
    padded = room.index_copy(0, wrap(_steps(sizes, batch)), data).reshape((time, batch, *data.shape[1:]))
    lengths = wrap((sizes[None] > np.arange(batch)[:, None]).sum(1).astype(np.int64))
    if sequence.unsorted_indices is not None:
        padded = ops.index_select(padded, 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return padded.transpose(0, 1) if batch_first else padded, lengths


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Tensors of different lengths as one, the shorter ones padded at one side.

    >>> import retrograd as torch
    >>> torch.nn.utils.rnn.pad_sequence([torch.tensor([1, 2]), torch.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if isinstance(sequences, Tensor):
        sequences = list(sequences.unbind(0))
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    listed = list(sequences)
    if not listed:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest = max(tensor.shape[0] for tensor in listed)
    rest = tuple(listed[0].shape[1:])
    rows = []
    for tensor in listed:
        short = longest - tensor.shape[0]
        if short:
            room = listed[0].new_full((short, *rest), padding_value)
            tensor = ops.cat([tensor, room] if padding_side == "right" else [room, tensor])
        rows.append(tensor)
    return ops.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The opposite of `pad_sequence`: the sequences, each of its own length."""
    padded = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [sequence[: int(n)] for sequence, n in zip(padded.unbind(0), lengths, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack tensors of different lengths.

    >>> import retrograd as torch
    >>> torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]).data
    tensor([1, 3, 2])
    """
    lengths = factories.tensor([tensor.shape[0] for tensor in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The opposite of `pack_sequence`."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
