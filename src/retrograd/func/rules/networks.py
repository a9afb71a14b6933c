"""Convolutions, pooling, interpolation, normalization, embeddings and losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...tensor import Tensor
from ...tensor import wrap as plain
from ...tensor.special import all_values
from ..batched import Level, front, is_batched, reshaped, spread, to_front, wrap, wrap_all
from .patterns import elementwise, folded, put, unfolded

Function = Callable[..., Any]


# --------------------------------------------------------------------------------------------------------- convolutions


def _into(value: Tensor, dim: int) -> Tensor:
    """A value with the examples in front, with them made the slower part of dimension `dim` of an example."""
    shape = value._memory_.shape
    order = [*range(1, dim + 1), 0, *range(dim + 1, len(shape))]
    moved = generated.permute(value, *order)
    return moved.reshape(*shape[1 : dim + 1], shape[0] * shape[dim + 1], *shape[dim + 2 :])


def _out_of(value: Tensor, dim: int, size: int) -> Tensor:
    """The reverse: the examples in front again."""
    shape = value._memory_.shape
    apart = value.reshape(*shape[:dim], size, shape[dim] // size if size else 0, *shape[dim + 1 :])
    return to_front(apart, dim)


def _convolution(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    input, weight, bias, stride, padding, dilation, transposed, output_padding, groups = args
    settings = stride, padding, dilation, transposed, output_padding
    size = level.size
    if not is_batched(weight, level):
        # More images of the same kind.
        own = None if bias is None or is_batched(bias, level) else bias
        if is_batched(input, level):
            result: Tensor = wrap(unfolded(function(folded(front(input)), weight, own, *settings, groups), size), level)
        else:
            result = function(input, weight, own, *settings, groups)
        bias = None if own is not None else bias
    elif not is_batched(input, level) and groups == 1 and not transposed:
        # More channels of the same images.
        result = wrap(_out_of(function(input, folded(front(weight)), None, *settings, 1), 1, size), level)
    else:
        images, kernels = spread(input, level), spread(weight, level)
        wide = function(_into(images, 1), folded(kernels), None, *settings, groups * size)
        result = wrap(_out_of(wide, 1, size), level)
    if bias is not None:
        result = result + bias.reshape(1, -1, *(1,) * len(stride))
    return result


def _convolution_backward_input(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    grad, weight, sizes, stride, padding, dilation, groups = args
    size = level.size
    if not is_batched(weight, level):
        result = function(
            folded(front(grad)), weight, (size * sizes[0], *sizes[1:]), stride, padding, dilation, groups
        )
        return wrap(unfolded(result, size), level)
    wide = (sizes[0], size * sizes[1], *sizes[2:])
    result = function(
        _into(spread(grad, level), 1), folded(front(weight)), wide, stride, padding, dilation, groups * size
    )
    return wrap(_out_of(result, 1, size), level)


def _convolution_backward_weight(
    level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    grad, input, sizes, stride, padding, dilation, groups = args
    size = level.size
    result = function(
        _into(spread(grad, level), 1), _into(spread(input, level), 1), (size * sizes[0], *sizes[1:]), stride, padding,
        dilation, groups * size,
    )  # fmt: skip
    return wrap(unfolded(result, size), level)


def _conv_tbc(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    input, weight, bias, pad = args
    zeros = bias.new_zeros(bias._memory_.shape) if not is_batched(bias, level) else bias.value.select(bias.bdim, 0) * 0
    if not is_batched(weight, level):
        if is_batched(input, level):
            result: Tensor = wrap(_out_of(function(_into(front(input), 1), weight, zeros, pad), 1, level.size), level)
        else:
            result = function(input, weight, zeros, pad)
        return result + bias
    images = input.permute(1, 2, 0)
    result = generated.convolution(
        images, weight.permute(2, 1, 0), bias, (1,), (pad,), (1,), False, (0,), 1
    )
    return result.permute(2, 0, 1)


# --------------------------------------------------------------------------------------------------- images as they are


def _images(*, sizes: int | None = None, tensors: int = 1, whole: int | None = None) -> Any:
    """Operators on the last dimensions of images with a batch and channels: the examples join the batch.

    `sizes`: the position of all sizes of an image; `whole`: how many dimensions an image has at most, where that is
    not said by the sizes of a window at position 1.
    """

    def apply(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        ndim = args[0]._memory_.ndim
        most = whole or (len(args[tensors + (sizes is not None)]) + 2)
        values = [spread(value, level) for value in args[:tensors]]
        inner = [*values, *args[tensors:]]
        fold = ndim >= most
        if fold:
            inner[:tensors] = [folded(value) for value in values]
        if sizes is not None:
            own = args[sizes]
            inner[sizes] = (level.size * own[0], *own[1:]) if fold else (level.size, *own)
        result = function(*inner, **kwargs)
        if not fold:
            return wrap_all(result, level)
        if isinstance(result, Tensor):
            return wrap(unfolded(result, level.size), level)
        return type(result)(*[wrap(unfolded(part, level.size), level) for part in result]) if hasattr(
            result, "_make") else tuple([wrap(unfolded(part, level.size), level) for part in result])

    return apply


def _with_batch(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Operators that want exactly a batch, channels and so many dimensions as there are sizes."""
    spatial = len(args[1])
    return _images(whole=spatial + 2)(level, function, args, kwargs)


def _resample_backward(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _images(sizes=1, whole=len(args[1]))(level, function, args, kwargs)


def _leading_sizes(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Gradients of operators that take any leading dimensions: the sizes of the input have one more."""
    return wrap(function(front(args[0]), (level.size, *args[1]), *args[2:], **kwargs), level)


def _fractional(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    input, kernel, output, samples = args
    ndim = len(kernel)
    image, own = spread(input, level), spread(samples, level)
    if input._memory_.ndim == ndim + 2:
        result = function(folded(image), kernel, output, folded(own))
        return type(result)(*[wrap(unfolded(part, level.size), level) for part in result]) if hasattr(
            result, "_make") else tuple([wrap(unfolded(part, level.size), level) for part in result])
    return wrap_all(function(image, kernel, output, folded(own)), level)


def _prefix(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return wrap_all(function(front(args[0]), *args[1:], **kwargs), level)


# -------------------------------------------------------------------------------------------------------- normalization


def _statistics_written(level: Level, input: Any, mean: Any, variance: Any) -> None:
    for running in (mean, variance):
        if running is not None and is_batched(input, level) and not is_batched(running, level):
            raise RuntimeError(
                "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated "
                "in place, were not batched. If you are using modules and do not need eval mode, please set "
                "`track_running_stats` to be False. If you are using a prebuilt module and do not need eval mode, see "
                "torch.func.replace_all_batch_norm_modules_ for how to replace all of them in place"
            )


def _batch_norm(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The channels of all examples side by side: each has its own mean and variance already."""
    input, weight, bias, mean, variance, training, momentum, eps = args
    if training:
        _statistics_written(level, input, mean, variance)
    if not is_batched(input, level) and not any(is_batched(t, level) for t in (mean, variance)):
        result: Tensor = function(input, None, None, mean, variance, training, momentum, eps)
    else:
        wide = _into(spread(input, level), 1)
        rows: list[Any] = [None if t is None else spread(t, level) for t in (mean, variance)]
        flat: list[Any] = [None if row is None else row.reshape(-1) for row in rows]
        result = wrap(_out_of(function(wide, None, None, *flat, training, momentum, eps), 1, level.size), level)
        if training:
            for row, written in zip(rows, flat, strict=True):
                if row is not None and written._memory_.base is None:  # it was copied to be flat
                    row.copy_(written.reshape(row._memory_.shape))
    shape = (1, -1, *(1,) * (input._memory_.ndim - 2))
    return _scaled(result, weight, bias, shape)


def _scaled(result: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Sequence[int]) -> Tensor:
    if weight is not None:
        result = result * weight.reshape(tuple(shape))
    return result if bias is None else result + bias.reshape(tuple(shape))


def _group_norm(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    input, weight, bias, count, *rest = args
    own = None, None
    if not any(is_batched(t, level) for t in (weight, bias)):
        own, weight, bias = (weight, bias), None, None
    if not is_batched(input, level):
        result, *others = function(input, *own, count, *rest)
    else:
        parts = function(folded(front(input)), *own, level.size * count, *rest)
        result, *others = [wrap(unfolded(part, level.size), level) for part in parts]
    result = _scaled(result, weight, bias, (1, -1, *(1,) * (input._memory_.ndim - 2)))
    return (result, *others)


def _layer_norm(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    input, shape, weight, bias, eps = args
    if not is_batched(input, level):
        result = function(input, shape, None, None, eps)
    elif any(is_batched(t, level) for t in (weight, bias)):
        result = wrap(function(front(input), shape, None, None, eps), level)
    else:
        return wrap(function(front(input), shape, weight, bias, eps), level)
    return _scaled(result, weight, bias, shape)


# ----------------------------------------------------------------------------------------------------------- embeddings


def _embedding(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    weight, indices, padding, by_frequency, sparse = args
    if not is_batched(weight, level) and not by_frequency:
        return wrap(function(weight, indices.value, padding, False, sparse), level, indices.bdim)
    # The tables of all examples, one below the other.
    tables, rows = spread(weight, level), spread(indices, level)
    count = tables._memory_.shape[1]
    steps = _steps(level.size, count, rows._memory_.ndim)
    result: Tensor = wrap(function(folded(tables), rows + steps, -1, by_frequency, False), level)
    if padding >= 0:
        result = generated.where_self((indices == padding).unsqueeze(-1), result.detach(), result)
    return result


def _steps(size: int, count: int, ndim: int) -> Tensor:
    """Where the table of each example begins."""
    return plain((np.arange(size) * count).reshape(size, *(1,) * (ndim - 1)))


def _embedding_backward(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    grad, indices, count, padding, by_frequency = args
    grads, rows = spread(grad, level), spread(indices, level)
    size = level.size
    width = grads._memory_.shape[-1]
    if by_frequency:
        same = (rows.reshape(size, -1, 1) == rows.reshape(size, 1, -1)).sum(-1).reshape(rows._memory_.shape)
        grads = grads / same.unsqueeze(-1).to(grads.dtype)
    if padding >= 0:
        grads = generated.masked_fill_Scalar(grads, (rows == padding).unsqueeze(-1), 0)
    steps = _steps(size, count, rows._memory_.ndim)
    flat = function(grads.reshape(-1, width), (rows + steps).reshape(-1), size * count, -1, False)
    return wrap(flat.reshape(size, count, width), level)


def _one_hot(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if args[1] == -1:
        raise RuntimeError(
            "one_hot: num_classes has to be given inside vmap: the number of classes would depend on the values "
            "(dynamic "
            "shapes), and may be another for each example"
        )
    return wrap(function(front(args[0]), args[1]), level)


# --------------------------------------------------------------------------------------------------------------- losses


def _reduced(loss: Tensor, reduction: int) -> Tensor:
    return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()


def _loss(position: int) -> Any:
    """Losses of each element, and their mean or sum over an example."""

    def apply(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inner = list(args)
        reduction, inner[position] = inner[position], 0
        return _reduced(elementwise(level, function, tuple(inner), kwargs), reduction)

    return apply


def _nll_loss(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    input, target, weight, reduction, ignored = args
    plain_targets = weight is None and not (all_values(target) == ignored).any()
    if plain_targets or (reduction == 0 and not is_batched(weight, level)):
        # The rows of all examples together; where none is ignored, all count alike.
        rows, labels = spread(input, level), spread(target, level)
        if input._memory_.ndim > 1:
            losses = function(folded(rows), folded(labels), weight, 0, ignored)
            if reduction and rows._memory_.ndim == 3 and rows._memory_.shape[1] == 1:
                return wrap(losses, level)  # the mean of one
            losses = reshaped(losses, (level.size, *target._memory_.shape))
        else:
            losses = function(rows, labels, weight, 0, ignored)
        if reduction and losses._memory_.ndim > 1:
            dims = list(range(1, losses._memory_.ndim))
            losses = (generated.mean_dim if reduction == 1 else generated.sum_dim_IntList)(losses, dims, False)
        return wrap(losses, level)
    classes = input._memory_.shape[0 if input._memory_.ndim == 1 else 1]
    counted = target != ignored
    safe = generated.where_self(counted, target, 0)
    dim = 0 if input._memory_.ndim == 1 else 1
    picked = generated.squeeze_dim(generated.gather(input, dim, safe.unsqueeze(dim)), dim)
    factor = counted.to(input._memory_.dtype) if weight is None else generated.where_self(
        counted, weight.expand(classes)[safe], 0.0)
    losses = generated.where_self(counted, -picked * factor, 0.0)
    if reduction == 0:
        return losses
    total = losses.sum()
    return total if reduction == 2 else total / factor.sum()


def _nll_loss_backward(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    grad, input, target, weight, reduction, ignored, _total = args
    dim = 0 if input._memory_.ndim == 1 else 1
    counted = target != ignored
    safe = generated.where_self(counted, target, 0)
    factor = counted.to(input._memory_.dtype) if weight is None else generated.where_self(counted, weight[safe], 0.0)
    part = -(grad / factor.sum() if reduction == 1 else grad) * factor
    part = part.expand(target._memory_.shape).unsqueeze(dim)
    zeros = generated.expand(part.sum() * 0, *input._memory_.shape)
    return generated.scatter_src(zeros.clone(), dim, safe.unsqueeze(dim), part)


def register() -> None:
    put(_convolution, "convolution")
    put(_convolution_backward_input, "convolution_backward_input")
    put(_convolution_backward_weight, "convolution_backward_weight")
    put(_conv_tbc, "conv_tbc")
    put(_images(whole=4), "im2col")
    put(_images(whole=3), "col2im")
    put(_images(), "_max_pool2d", "_max_pool3d", "_avg_pool2d", "_avg_pool3d", "_adaptive_max_pool2d",
        "_adaptive_max_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d")  # fmt: skip
    put(_images(tensors=2, sizes=2), "max_pool_backward")
    put(_images(tensors=2), "max_pool_gather")
    put(_images(sizes=1), "max_pool_indices", "avg_pool_backward")
    put(_leading_sizes, "adaptive_avg_pool_backward")
    put(_fractional, "_fractional_max_pool2d", "_fractional_max_pool3d")
    put(_with_batch, "resample", *[name for name in dir(generated) if name.startswith("_upsample_") or (
        name.startswith(("_reflection_pad", "_replication_pad")) and name.endswith("_map"))])
    put(_resample_backward, "resample_backward")
    put(_prefix, "pixel_shuffle", "pixel_unshuffle")
    put(_batch_norm, "native_batch_norm")
    put(_group_norm, "native_group_norm")
    put(_layer_norm, "native_layer_norm")
    put(_embedding, "embedding")
    put(_embedding_backward, "embedding_dense_backward")
    put(_one_hot, "one_hot")
    put(_loss(2), "mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss")
    put(_loss(3), "binary_cross_entropy")
    put(_loss(4), "binary_cross_entropy_with_logits")
    put(_nll_loss, "nll_loss", "nll_loss2d")
    put(_nll_loss_backward, "nll_loss_backward")


