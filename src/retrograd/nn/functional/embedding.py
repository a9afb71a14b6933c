"""Embeddings and bags of them; part of ``functional``."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import kernels
from ..._generated import functions as generated
from ...core.where import users_level
from ...ops.registry import composite
from ...tensor import Tensor, wrap
from ...tensor.beside import beside, on_host
from ...tensor.lazy_conjugation import write_back


@composite(space="nn.functional")
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of the rows of `weight` in each bag of indices: a row of `input`, or from an offset on.

    >>> import retrograd as torch
    >>> w = torch.tensor([[1., 2.], [3., 4.]])
    >>> torch.nn.functional.embedding_bag(torch.tensor([0, 1, 1]), w, torch.tensor([0, 2]), mode="sum")
    tensor([[4., 6.],
            [3., 4.]])
    """
    if weight._memory_.dtype == np.int64 and input._memory_.dtype.kind in "fV":
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            UserWarning,
            stacklevel=users_level(),
        )
        input, weight = weight, input
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if weight._memory_.dtype.kind not in "fV":
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, "
            f"Float, Double; but got {weight.dtype} instead"
        )
    if offsets is not None and offsets._memory_.dtype not in ("int64", "int32"):
        raise RuntimeError(
            "Expected tensor for argument #1 'offsets' to have one of the following scalar types: Long, Int; but got "
            f"{offsets.dtype} instead"
        )
    if per_sample_weights is not None and per_sample_weights._memory_.dtype != weight._memory_.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument "
            f"'per_sample_weights'; but type {weight.dtype} does not equal {per_sample_weights.dtype}"
        )
    if per_sample_weights is not None and per_sample_weights._memory_.shape != input._memory_.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({list(per_sample_weights._memory_.shape)}) is not None, then it "
            f"must have the same shape as the input ({list(input._memory_.shape)})"
        )
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )
    bags, count = _bags(input, offsets, include_last_offset)
    if weight._memory_.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight._memory_.ndim}")
    outside = (input._numbers_ < 0) | (input._numbers_ >= weight._memory_.shape[0])
    if outside.any():
        raise RuntimeError(
            "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be "
            f"{int(input._numbers_[outside][0])}"
        )
    padding = _padding(padding_idx, weight._memory_.shape[0])
    if max_norm is not None:
        _renormalize_rows(weight, input, max_norm, norm_type)
    indices = input.reshape(-1)
    samples = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    if padding is not None:
        kept = np.flatnonzero(on_host(indices._numbers_) != padding)
        if kept.size != bags.size:
            indices, bags = wrap(indices._numbers_[beside(indices, kept)._numbers_]), bags[kept]
            samples = None if samples is None else samples.index_select(0, beside(samples, kept))
    if mode == "max":
        return _maxima(indices, weight, bags, count)
    rows = generated.embedding(weight, indices, -1, scale_grad_by_freq, sparse)
    if samples is not None:
        rows = rows * samples.unsqueeze(-1)
    if input._memory_.ndim == 2 and bags.size == input._memory_.size and bags.size:
        bagged = rows.reshape((*input._memory_.shape, weight._memory_.shape[1]))
        return bagged.sum(1) if mode == "sum" else bagged.mean(1)
    zeros = weight.new_zeros((count, weight._memory_.shape[1]))
    result: Any = zeros.index_add(0, beside(rows, bags), rows)
    if mode == "mean":
        sizes = np.maximum(np.bincount(bags, minlength=count), 1).astype(weight._memory_.dtype)
        result = result / beside(weight, sizes[:, None])
    return result


def _padding(padding_idx: int | None, rows: int) -> int | None:
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got {padding_idx}"
        )
    return padding_idx % rows


def _bags(input: Tensor, offsets: Tensor | None, include_last: bool) -> tuple[np.ndarray, int]:
    """The bag of each index, and how many bags there are."""
    indices = input._numbers_
    if indices.ndim == 2:
        if offsets is not None:
            raise ValueError(
                f"if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        return np.repeat(np.arange(indices.shape[0]), indices.shape[1]), indices.shape[0]
    if indices.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {indices.ndim}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets._memory_.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    starts = on_host(offsets._numbers_).astype(np.int64)
    if starts.size and starts[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            f"However, got {int(starts[0])}"
        )
    if starts.size and starts[-1] > indices.size:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length({indices.size}), but got offsets[-1] of "
            f"{int(starts[-1])}"
        )
    count = starts.size
    if include_last:
        count -= 1
        starts = starts[:-1]
    # The last bag goes to the end, also where the last offset is less: torch does one or the other, by the mode.
    ends = np.append(starts[1:], indices.size) if count > 0 else starts
    return np.repeat(np.arange(count), ends - starts), count


def _maxima(indices: Tensor, weight: Tensor, bags: np.ndarray, count: int) -> Tensor:
    """The maximum of each bag: rows are chosen by the numbers, and their elements gathered."""
    chosen = np.zeros((count, weight._memory_.shape[1]), np.int64)
    rows, numbers = on_host(generated.embedding(weight.detach(), indices)._numbers_), on_host(indices._numbers_)
    bounds = np.searchsorted(bags, np.arange(count + 1))
    for bag in range(count):
        first, last = bounds[bag], bounds[bag + 1]
        if last > first:
            chosen[bag] = numbers[first + rows[first:last].argmax(0)]
    result = weight.gather(0, beside(weight, chosen))
    empty = bounds[1:] == bounds[:-1]
    return result.masked_fill(beside(weight, empty[:, None]), 0) if empty.any() else result


@composite(space="nn.functional")
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` at the indices `input`; the row `padding_idx` gets no gradient.

    >>> import retrograd as torch
    >>> torch.nn.functional.embedding(torch.tensor([1, 1]), torch.tensor([[1., 2.], [3., 4.]]))
    tensor([[3., 4.],
            [3., 4.]])
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        n = weight._memory_.shape[0]
        assert -n <= padding_idx < n, "Padding_idx must be within num_embeddings"
        padding_idx %= n
    if max_norm is not None:
        _renormalize_rows(weight, input, max_norm, norm_type)
    return generated.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _renormalize_rows(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale down, in place and unrecorded, the rows that are longer than `max_norm`."""
    rows = kernels.unique(indices._numbers_)
    data = weight._numbers_
    norms = kernels.norm(data[rows], norm_type, 1)
    long = norms > max_norm
    if long.any():
        data[rows[long]] *= (max_norm / (norms[long] + 1e-7))[:, None]
        write_back(weight, data)
        weight._bump_version_()


@composite(space="nn.functional")
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A new last dimension that is 1 at the class and 0 elsewhere.

    >>> import retrograd as torch
    >>> torch.nn.functional.one_hot(torch.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    return generated.one_hot(tensor, num_classes)
