"""Functions of networks that torch also has at its top level, called otherwise than in ``nn.functional``.

There they take everything by position and a reduction, mode or interpolation as a number (``torch.kl_div``,
``torch.batch_norm``, ``torch.grid_sampler``).  Called without a reduction, torch's losses there do not reduce, although
their signatures say that they take the mean; so it is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...core import dtypes
from ...ops import namespace as ops
from ...ops.registry import composite
from ...random import Generator
from ...tensor import Tensor, fresh
from ...tensor.beside import beside, on_host
from .. import functional
from .dropout import _feature_dropout, _mask, _rrelu
from .embedding import _bags, _padding, _renormalize_rows
from .reduction import reduced, reduction_number

_REDUCTIONS = ("none", "mean", "sum")
_INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")
_BAG_MODES = ("sum", "mean", "max")


def _named(names: tuple[str, ...], number: int, what: str) -> str:
    if number not in range(len(names)):
        raise RuntimeError(f"{number} is not a valid {what}: {', '.join(f'{i} is {n}' for i, n in enumerate(names))}")
    return names[number]


# --------------------------------------------------------------------------------------------------------------- losses


def _reduction(number: int) -> str:
    return _named(_REDUCTIONS, number, "reduction")


@composite(method=False)
def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """`nn.functional.kl_div`, with the reduction as a number."""
    losses = functional.kl_div(input, target, reduction="none", log_target=log_target)
    return reduced(losses, reduction_number(_reduction(reduction)))


@composite(method=False)
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """`nn.functional.hinge_embedding_loss`, with the reduction as a number."""
    return functional.hinge_embedding_loss(input, target, margin, reduction=_reduction(reduction))


@composite(method=False)
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """`nn.functional.margin_ranking_loss`, with the reduction as a number."""
    # The function in nn.functional wants them of one rank.
    input1, input2, target = ops.broadcast_tensors(input1, input2, target)
    return functional.margin_ranking_loss(input1, input2, target, margin, reduction=_reduction(reduction))


@composite(method=False)
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """`nn.functional.cosine_embedding_loss`, with the reduction as a number."""
    return functional.cosine_embedding_loss(input1, input2, target, margin, reduction=_reduction(reduction))


@composite(method=False)
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """`nn.functional.poisson_nll_loss`, with the reduction as a number."""
    name = _reduction(reduction)
    return functional.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=name)


@composite(method=False)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 0,
) -> Tensor:
    """`nn.functional.triplet_margin_loss`, with the reduction as a number."""
    name = _reduction(reduction)
    return functional.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=name)


@composite(method=False)
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:
    """`nn.functional.ctc_loss`, with the reduction as a number."""
    name = _reduction(reduction)
    return functional.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, name, zero_infinity)


# -------------------------------------------------------------------------------------------------------- normalisation


@composite(method=False)
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`nn.functional.batch_norm`, with the weight first and a switch that concerns accelerators."""
    return functional.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@composite(method=False)
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`nn.functional.instance_norm`, with the weight first and a switch that concerns accelerators."""
    return functional.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


@composite(method=False)
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`nn.functional.group_norm`, with a switch that concerns accelerators."""
    return functional.group_norm(input, num_groups, weight, bias, eps)


@composite(method=False)
def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """`nn.functional.layer_norm`, with a switch that concerns accelerators."""
    return functional.layer_norm(input, normalized_shape, weight, bias, eps)


def _statistics(input: Tensor, dims: Any, keepdim: bool, eps: float) -> tuple[Tensor, Tensor]:
    """The mean over `dims` and one over the standard deviation, as numbers."""
    values = input.detach()
    return values.mean(dims, keepdim), (values.var(dims, correction=0, keepdim=keepdim) + eps).rsqrt()


@composite(method=False)
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`batch_norm`, and the mean and the inverse standard deviation of each channel, if `training`."""
    result = functional.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        return result, input.new_zeros(0), input.new_zeros(0)
    dims = [d for d in range(input.ndim) if d != 1]
    return result, *_statistics(input, dims, False, eps)


@composite(method=False)
def _native_batch_norm_legit(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, *args: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """`native_batch_norm` with running statistics or without: [running_mean, running_var,] training, momentum, eps."""
    return native_batch_norm(input, weight, bias, *(args if len(args) == 5 else (None, None, *args)))


@composite(method=False)
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`group_norm`, and the mean and the inverse standard deviation of each group of each image."""
    if N * C * HxW != input._memory_.size or group <= 0 or C % group:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, and X.numel() == N * C * HxW to be "
            f"true, but got N={N}, C={C}, HxW={HxW}, num_groups={group} for an input of shape {list(input.shape)}"
        )
    result, mean, rstd = generated.native_group_norm(input.contiguous(), weight, bias, N, C, HxW, group, eps)
    return result, mean, rstd


@composite(method=False)
def native_layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm`, and the mean and the inverse standard deviation of each of what is normalised."""
    dims = list(range(-len(tuple(normalized_shape)), 0))
    result = functional.layer_norm(input, normalized_shape, weight, bias, eps)
    kept = next((p.dtype for p in (weight, bias) if p is not None), input.dtype)
    return result, *_statistics(input.to(kept), dims, True, eps)


# ------------------------------------------------------------------------------------------------------------- sampling


@composite(method=False)
def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """`nn.functional.affine_grid`."""
    return functional.affine_grid(theta, size, bool(align_corners))


@composite(method=False)
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`nn.functional.grid_sample`, with the mode (0: bilinear, 1: nearest, 2: bicubic) and the padding as numbers."""
    mode = _named(_INTERPOLATIONS, interpolation_mode, "interpolation mode")
    return functional.grid_sample(input, grid, mode, _named(_PADDINGS, padding_mode, "padding mode"), align_corners)


def _grid_sampler(dims: int) -> Callable[..., Tensor]:
    def sample(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
        shape, places = input._memory_.shape, grid._memory_.shape
        if shape[:1] != places[:1]:
            raise RuntimeError(
                f"grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
                f"{list(shape)} and grid with sizes {list(places)}"
            )
        if input._memory_.ndim != dims + 2:
            raise RuntimeError(
                f"grid_sampler_{dims}d(): expected {dims + 2}D input and grid, but got input with sizes "
                f"{list(input._memory_.shape)}"
            )
        return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)

    sample.__name__ = sample.__qualname__ = f"grid_sampler_{dims}d"
    sample.__doc__ = f"`grid_sampler` of {'images' if dims == 2 else 'volumes'}."
    return sample


grid_sampler_2d: Callable[..., Tensor] = composite(method=False)(_grid_sampler(2))
grid_sampler_3d: Callable[..., Tensor] = composite(method=False)(_grid_sampler(3))


# ----------------------------------------------------------------------------------------------------------- embeddings


@composite(method=False)
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`nn.functional.embedding_bag`, and: the bag of each index, the size of each bag, and (mode 2) the rows chosen."""
    name = _named(_BAG_MODES, mode, "mode")
    args = weight, offsets, None, 2, scale_grad_by_freq, name, sparse, per_sample_weights, include_last_offset
    result = functional.embedding_bag(indices, *args, padding_idx)
    bags, count = _bags(indices, offsets, include_last_offset)
    padding = _padding(padding_idx, weight._memory_.shape[0])
    counted = bags if padding is None else bags[on_host(indices._numbers_).reshape(-1) != padding]
    sizes = np.bincount(counted, minlength=count)
    if name == "sum":
        none = np.zeros(0, np.int64)
        return (
            result,
            _there(weight, none),
            _there(weight, np.zeros(count, np.int64)),
            _there(weight, np.zeros(count, np.int64)),
        )
    if name == "mean":
        return result, _there(weight, bags), _there(weight, sizes), _there(weight, sizes.copy())
    chosen = _chosen_rows(result, weight, indices, bags, padding)
    return result, _there(weight, bags), _there(weight, sizes), _there(weight, chosen)


@composite("_embedding_bag_forward_only", method=False)
def _embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`embedding_bag`, as torch's own code calls it: a negative `padding_idx` is none.

    >>> import retrograd as torch
    >>> torch._embedding_bag(torch.ones(4, 2), torch.tensor([0, 1, 2]), torch.tensor([0, 2]), mode=1)[2]
    tensor([2, 1])
    """
    padding = None if padding_idx < 0 else padding_idx
    args = scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding
    return embedding_bag(weight, indices, offsets, *args)


def _there(like: Tensor, array: np.ndarray) -> Tensor:
    return fresh(beside(like, array)._numbers_)


def _chosen_rows(result: Tensor, weight: Tensor, indices: Tensor, bags: np.ndarray, padding: int | None) -> np.ndarray:
    """The row that each maximum was taken from; the first of several."""
    chosen = np.zeros(result._memory_.shape, np.int64)
    flat, rows, maxima = [on_host(t._numbers_) for t in (indices.reshape(-1), weight, result)]
    for at in range(flat.size - 1, -1, -1):
        if flat[at] != padding:
            same = rows[flat[at]] == maxima[bags[at]]
            chosen[bags[at], same] = flat[at]
    return chosen


@composite(method=False)
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale down, in place, those of the rows `indices` that are longer than `max_norm`."""
    _renormalize_rows(input, indices, max_norm, norm_type)
    return input


# -------------------------------------------------------------------------------------------------------------- dropout


@composite(method=False)
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """`nn.functional.rrelu`, with a generator."""
    return _rrelu(input, lower, upper, training, False, generator)


@composite(method=False)
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.dropout`."""
    check_probability(p)
    return functional.dropout(input, p, train)


@composite(method=False)
def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.dropout`, in place."""
    check_probability(p)
    return functional.dropout(input, p, train, True)


@composite(method=False)
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.alpha_dropout`."""
    check_probability(p)
    return functional.alpha_dropout(input, p, train)


@composite(method=False)
def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.alpha_dropout`, in place."""
    check_probability(p)
    return functional.alpha_dropout(input, p, train, True)


@composite(method=False)
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.feature_alpha_dropout`."""
    check_probability(p)
    return functional.feature_alpha_dropout(input, p, train)


@composite(method=False)
def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.feature_alpha_dropout`, in place."""
    check_probability(p)
    return functional.feature_alpha_dropout(input, p, train, True)


@composite(method=False)
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """`dropout`, and which elements it kept."""
    if train is False or not input._memory_.size:
        return input.clone(), ops.ones(tuple(input.shape), dtype=dtypes.bool_, device=input.device)
    mask = _mask(input._numbers_, p, input)
    return input * mask, mask != 0


def check_probability(p: float) -> None:
    """Refuse what is no probability, as torch's functions (not nn.functional's) do."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")


@composite(method=False)
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Whole channels (dimension 1) zeroed with probability `p`, the others divided by ``1 - p``."""
    check_probability(p)
    return _feature_dropout(input, _feature_shape(input), p, train, False)


@composite(method=False)
def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`feature_dropout` in place."""
    check_probability(p)
    return _feature_dropout(input, _feature_shape(input), p, train, True)


def _feature_shape(input: Tensor) -> tuple[int, ...]:
    shape = input._memory_.shape
    if len(shape) < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return (*shape[:2], *[1] * (len(shape) - 2))


# ------------------------------------------------------------------------------------------------ convolution, pooling


@composite(method=False)
def adaptive_max_pool1d(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """`nn.functional.adaptive_max_pool1d`, always with the indices."""
    return functional.adaptive_max_pool1d(input, output_size, True)
