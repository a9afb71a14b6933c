"""Formula helpers of batch and group normalisation."""

from __future__ import annotations

from typing import Any


def channel_values(ops: Any, values: Any, ndim: int) -> Any:
    """One value a channel, to be broadcast over (batch, channels, ...)."""
    return ops.reshape(values, (1, -1, *[1] * (ndim - 2)))


def normalized_jvp(ops: Any, input: Any, input_t: Any, dims: Any, eps: float) -> Any:
    """`input` with mean 0 and variance 1 over `dims`, and the tangent of that."""
    centered = input - ops.mean(input, dims, True)
    rstd = ops.rsqrt(ops.mean(centered * centered, dims, True) + eps)
    normal = centered * rstd
    centered_t = input_t - ops.mean(input_t, dims, True)
    return normal, rstd * (centered_t - normal * ops.mean(normal * input_t, dims, True))


def _affine_jvp(ops: Any, normal: Any, tangent: Any, weight: Any, weight_t: Any, bias_t: Any) -> Any:
    if weight is not None:
        tangent = tangent * channel_values(ops, weight, normal.ndim) + normal * channel_values(
            ops, weight_t, normal.ndim
        )
    return tangent if bias_t is None else tangent + channel_values(ops, bias_t, normal.ndim)


def batch_norm_jvp(
    ops: Any, input: Any, input_t: Any, weight: Any, weight_t: Any, bias_t: Any, mean: Any, var: Any, training: bool,
    eps: float,
) -> Any:  # fmt: skip
    """The tangent of `native_batch_norm`."""
    if training:
        dims = tuple(d for d in range(input.ndim) if d != 1)
        normal, tangent = normalized_jvp(ops, input, input_t, dims, eps)
    else:
        rstd = channel_values(ops, ops.rsqrt(var + eps), input.ndim)
        normal, tangent = (input - channel_values(ops, mean, input.ndim)) * rstd, input_t * rstd
    return _affine_jvp(ops, normal, tangent, weight, weight_t, bias_t)


def group_norm_jvp(
    ops: Any, input: Any, input_t: Any, weight: Any, weight_t: Any, bias_t: Any, N: int, C: int, HxW: int, group: int,
    eps: float,
) -> Any:  # fmt: skip
    """The tangents of `native_group_norm`: of what is normalised, of the means and of one over the deviations."""
    shape = tuple(input.shape)
    rows, channels, groups = (N * group, C // group * HxW), (N, C, HxW), (N, group)
    x, x_t = ops.reshape(input, rows), ops.reshape(input_t, rows)
    centered = x - ops.mean(x, 1, True)
    rstd = ops.rsqrt(ops.mean(centered * centered, 1, True) + eps)
    normal, mean_t = centered * rstd, ops.mean(x_t, 1, True)
    along = ops.mean(normal * x_t, 1, True)
    tangent = _affine_jvp(
        ops,
        ops.reshape(normal, channels),
        ops.reshape(rstd * (x_t - mean_t - normal * along), channels),
        weight,
        weight_t,
        bias_t,
    )
    return ops.reshape(tangent, shape), ops.reshape(mean_t, groups), ops.reshape(-rstd * rstd * along, groups)


def layer_norm_jvp(
    ops: Any, input: Any, input_t: Any, shape: Any, weight: Any, weight_t: Any, bias_t: Any, eps: float
) -> Any:
    """The tangent of `native_layer_norm`; with zeros for the tangents that there are not."""
    dims = tuple(range(-len(tuple(shape)), 0))
    mean = ops.mean(input, dims, True)
    rstd = ops.rsqrt(ops.mean((input - mean) * (input - mean), dims, True) + eps)
    normal = (input - mean) * rstd
    centered = input_t - ops.mean(input_t, dims, True)
    result = rstd * (centered - normal * ops.mean(normal * input_t, dims, True))
    if weight is not None:
        result = result * weight + normal * weight_t
    return result if bias_t is None else result + bias_t
