"""``torch.nn.functional``: what layers compute, as functions.

Most check their arguments as torch does and compose operators.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ... import kernels
from ..._generated import functions as generated
from ...core.where import users_level
from ...ops import namespace as ops
from ...ops.support import write_out
from ...random import default_generator
from ...tensor import Tensor, wrap
from ...tensor.lazy_conjugation import write_back
from .activation import (
    celu,
    elu,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    threshold,
)
from .attention import scaled_dot_product_attention
from .conv import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from .dropout import alpha_dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout, gumbel_softmax, rrelu
from .embedding import embedding_bag
from .fold import fold, unfold
from .grid import affine_grid, grid_sample
from .linear_loss import linear_cross_entropy
from .losses import (
    cosine_embedding_loss,
    ctc_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    poisson_nll_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from .multihead import multi_head_attention_forward
from .norm import batch_norm, group_norm, instance_norm, local_response_norm, rms_norm

# The rest of the functions, one file a family.
from .pool import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
)
from .reduction import _NUMBERS
from .reduction import reduced as _reduced
from .reduction import reduction_number as _reduction
from .resample import (
    channel_shuffle,
    interpolate,
    native_channel_shuffle,
    pad,
    pixel_shuffle,
    pixel_unshuffle,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from .unpool import max_unpool1d, max_unpool2d, max_unpool3d

# ---------------------------------------------------------------------------------------------------------- reductions

def _warn_of_broadcasting(input: Tensor, target: Tensor) -> None:
    if input._data.shape != target._data.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            UserWarning,
            stacklevel=users_level(),
        )


def _same_shape(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both, broadcast to one shape."""
    if input._data.shape == target._data.shape:
        return input, target
    shape = kernels.broadcast_shape(input._data, target._data)
    return tuple(x if x._data.shape == shape else x.expand(shape) for x in (input, target))  # type: ignore[return-value]


def _weighted(losses: Tensor, weight: Tensor, input: Tensor, reduction: int, by_weight: bool = True) -> Tensor:
    """Losses times `weight`, reduced; the mean is by the sum of the weights, or by the number of losses."""
    if weight._data.shape != input._data.shape:
        raise ValueError("Weights and input must have the same size.")
    losses = losses * weight
    if reduction == 1 and by_weight:
        return losses.sum() / weight.sum()
    return _reduced(losses, reduction)


# ------------------------------------------------------------------------------------------------------------- softmax


def _softmax_dim(name: str, ndim: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=users_level(),
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """``exp(input)`` divided by its sum along `dim`.

    >>> import retrograd as torch
    >>> torch.nn.functional.softmax(torch.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    if dim is None:
        dim = _softmax_dim("softmax", input._data.ndim)
    return generated._softmax(input if dtype is None else input.to(dtype), dim)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """`softmax` of ``-input``."""
    if dim is None:
        dim = _softmax_dim("softmin", input._data.ndim)
    return softmax(-input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`, without its loss of precision."""
    if dim is None:
        dim = _softmax_dim("log_softmax", input._data.ndim)
    return generated._log_softmax(input if dtype is None else input.to(dtype), dim)


# -------------------------------------------------------------------------------------------------------------- losses


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-probabilities `input` at the classes `target`.

    The shapes are (N, C) and (N), or (N, C, d1, ...) and (N, d1, ...), or (C) and ().

    >>> import retrograd as torch
    >>> torch.nn.functional.nll_loss(torch.tensor([[-1., -2.], [-3., -4.]]), torch.tensor([0, 1]))
    tensor(2.5000)
    """
    return generated.nll_loss(input, target, weight, _reduction(reduction, size_average, reduce), ignore_index)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Minus the log-probability, by `softmax` of the logits `input`, of classes `target` or a distribution over them.

    >>> import retrograd as torch
    >>> torch.nn.functional.cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.3863)
    """
    number = _reduction(reduction, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    shape = input._data.shape
    class_dim = 0 if len(shape) == 1 else 1
    if shape == target._data.shape:
        return _soft_cross_entropy(input, target, weight, number, ignore_index, label_smoothing, class_dim)
    logs = generated._log_softmax(input, class_dim)
    loss = generated.nll_loss(logs, target, weight, number, ignore_index)
    if not label_smoothing:
        return loss
    return (1 - label_smoothing) * loss + _uniform_loss(logs, target, weight, number, ignore_index, class_dim) * (
        label_smoothing / shape[class_dim]
    )


def _soft_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    label_smoothing: float,
    class_dim: int,
) -> Tensor:
    """`cross_entropy` for a target that gives the probability of each class."""
    if target._data.dtype.kind not in "fV":
        raise RuntimeError(
            "Expected floating point type for target with class probabilities, got "
            + kernels.scalar_name(target._data.dtype)
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    classes = input._data.shape[class_dim]
    _check_weight(weight, classes)
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / max(classes, 1)
    logs = generated._log_softmax(input, class_dim)
    terms = logs * target if weight is None else logs * target * _along_classes(weight, input._data.ndim, class_dim)
    if reduction == 0:
        return -terms.sum(class_dim)
    loss = -terms.sum()
    if reduction == 2:
        return loss
    return loss / (input._data.size / classes) if classes else loss / 0.0


def _uniform_loss(
    logs: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, class_dim: int
) -> Tensor:
    """The part of `cross_entropy` that label smoothing adds: every class counts alike."""
    terms = logs if weight is None else logs * _along_classes(weight, logs._data.ndim, class_dim)
    losses = -terms.sum(class_dim)
    ignored = target == ignore_index
    losses = losses.masked_fill(ignored.reshape(losses.shape), 0)
    if reduction != 1:
        return _reduced(losses, reduction)
    if weight is None:
        return losses.sum() / (~ignored).sum()
    counted = weight.gather(0, target.masked_fill(ignored, 0).reshape(-1)).masked_fill(ignored.reshape(-1), 0)
    return losses.sum() / counted.sum()


def _along_classes(weight: Tensor, ndim: int, class_dim: int) -> Tensor:
    return weight.reshape([-1 if d == class_dim else 1 for d in range(ndim)])


def _check_weight(weight: Tensor | None, classes: int) -> None:
    if weight is not None and weight._data.shape != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight._data.shape)}"
        )


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared difference.

    >>> import retrograd as torch
    >>> torch.nn.functional.mse_loss(torch.tensor([1., 3.]), torch.tensor([0., 0.]))
    tensor(5.)
    """
    _warn_of_broadcasting(input, target)
    number = _reduction(reduction, size_average, reduce)
    a, b = _same_shape(input, target)
    if weight is None:
        return generated.mse_loss(a, b, number)
    return _weighted(generated.mse_loss(a, b, 0), weight, input, number)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute difference."""
    _warn_of_broadcasting(input, target)
    number = _reduction(reduction, size_average, reduce)
    losses = (input - target).abs()
    return _reduced(losses, number) if weight is None else _weighted(losses, weight, input, number)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Half the squared difference over `beta` where it is below `beta`, else the difference minus half of `beta`."""
    _warn_of_broadcasting(input, target)
    number = _reduction(reduction, size_average, reduce)
    a, b = _same_shape(input, target)
    return _reduced((a - b).abs(), number) if beta == 0 else generated.smooth_l1_loss(a, b, number, beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Half the squared difference where it is below `delta`, else `delta` times the difference less `delta` / 2."""
    _warn_of_broadcasting(input, target)
    number = _reduction(reduction)
    a, b = _same_shape(input, target)
    if weight is None:
        return generated.huber_loss(a, b, number, delta)
    return _weighted(generated.huber_loss(a, b, 0, delta), weight, input, number, by_weight=False)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-probability of targets between 0 and 1, where `input` is the probability of 1."""
    number = _reduction(reduction, size_average, reduce)
    if input._data.shape != target._data.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(input._data.shape)
    return generated.binary_cross_entropy(input, target, weight, number)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of ``sigmoid(input)``, without its loss of precision."""
    number = _reduction(reduction, size_average, reduce)
    if input._data.shape != target._data.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    return generated.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The divergence of the distribution `target` from the one whose log-probabilities are `input`."""
    by_batch = reduction == "batchmean" and size_average is None and reduce is None
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.",
            UserWarning,
            stacklevel=users_level(),
        )
    number = 2 if by_batch else _reduction(reduction, size_average, reduce)
    for given in (input, target):
        if not given.is_floating_point():
            raise RuntimeError(f"kl_div: {'Complex' if given.is_complex() else 'Integral'} inputs not supported.")
    if log_target:
        losses = target.exp() * (target - input)
    else:
        losses = ops.xlogy(target, target) - target * input
    result = _reduced(losses, number)
    return result / input._data.shape[0] if by_batch and input._data.ndim else result


# -------------------------------------------------------------------------------------------------------------- layers


def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None
) -> Tensor:
    """``input @ weight.T + bias``."""
    if out is not None:
        return write_out(linear, out, (input, weight, bias), {})
    return ops.linear(input, weight, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input1 @ weight[k] @ input2`` for every k, plus `bias`."""
    return ops.bilinear(input1, input2, weight, bias)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """`input` with mean 0 and variance 1 over its last dimensions, times `weight`, plus `bias`.

    >>> import retrograd as torch
    >>> torch.nn.functional.layer_norm(torch.tensor([[1., 3.]]), (2,))
    tensor([[-1.0000,  1.0000]])
    """
    return generated.native_layer_norm(input, tuple(normalized_shape), weight, bias, eps)


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
        n = weight._data.shape[0]
        assert -n <= padding_idx < n, "Padding_idx must be within num_embeddings"
        padding_idx %= n
    if max_norm is not None:
        _renormalize_rows(weight, input, max_norm, norm_type)
    return generated.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _renormalize_rows(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale down, in place and unrecorded, the rows that are longer than `max_norm`."""
    rows = kernels.unique(indices._data)
    data = weight._data
    norms = kernels.norm(data[rows], norm_type, 1)
    long = norms > max_norm
    if long.any():
        data[rows[long]] *= (max_norm / (norms[long] + 1e-7))[:, None]
        write_back(weight, data)
        weight._bump_version()


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A new last dimension that is 1 at the class and 0 elsewhere.

    >>> import retrograd as torch
    >>> torch.nn.functional.one_hot(torch.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    return generated.one_hot(tensor, num_classes)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`input` with elements zeroed with probability `p` and the others divided by ``1 - p``; itself if not training."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0 or not input._data.size:
        return input
    with default_generator.lock:
        mask = wrap(kernels.dropout_mask(input._data.shape, p, input._data.dtype, default_generator.bits))
    return input.mul_(mask) if inplace else generated.mul(input, mask)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """`input` divided by its `p`-norm along `dim`, or by `eps` if that is larger."""
    length = input.norm(p, dim, keepdim=True).clamp_min(eps).expand(input._data.shape)
    return generated.div(input, length) if out is None else ops.div(input, length, out=out)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`."""
    if eps < 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps}")
    x1, x2 = _same_shape(x1, x2)
    common = ops.result_type(x1, x2)
    if not common.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common}")
    x1, x2 = x1.to(common), x2.to(common)
    first = x1 / x1.norm(2, dim, keepdim=True).clamp_min(eps)
    second = x2 / x2.norm(2, dim, keepdim=True).clamp_min(eps)
    return (first * second).sum(dim)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The `p`-norm of the difference of vectors along the last dimension."""
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)
