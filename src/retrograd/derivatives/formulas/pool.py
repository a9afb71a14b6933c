"""Formula helpers of pooling."""

from __future__ import annotations

import math
from typing import Any

from ... import kernels


def pool_scatter(ops: Any, grad: Any, indices: Any, input_size: Any, dims: int) -> Any:
    """Each element of `grad` added where its flat index into the input's planes says."""
    shape = tuple(input_size)
    planes = (*shape[: len(shape) - dims], math.prod(shape[len(shape) - dims :]))
    flat = (*shape[: len(shape) - dims], math.prod(indices.shape[indices.ndim - dims :]))
    zeros = ops.new_zeros(grad, planes)
    return ops.reshape(ops.scatter_add(zeros, -1, ops.reshape(indices, flat), ops.reshape(grad, flat)), shape)


def adaptive_max_pool_backward(ops: Any, grad: Any, indices: Any, input_size: Any, dims: int) -> Any:
    """The same; torch refuses it where there are no windows."""
    kernels.check_adaptive_grad(f"adaptive_max_pool{dims}d_backward", grad.shape)
    return pool_scatter(ops, grad, indices, input_size, dims)


def pool_gather(ops: Any, values: Any, indices: Any, dims: int) -> Any:
    """The elements at flat indices into the planes of `values`."""
    lead = tuple(values.shape[: values.ndim - dims])
    flat = (*lead, math.prod(values.shape[values.ndim - dims :]))
    picks = (*lead, math.prod(indices.shape[indices.ndim - dims :]))
    found = ops.gather(ops.reshape(values, flat), -1, ops.reshape(indices, picks))
    return ops.reshape(found, tuple(indices.shape))


def avg_pool_again(
    ops: Any, grad: Any, output_size: Any, kernel: Any, stride: Any, padding: Any, include: bool, override: Any
) -> Any:
    """The mean of the windows of `grad`, as many as the first pass had."""
    dims = len(kernel)
    size = [
        (s + 2 * p - k) // step + 1
        for s, k, step, p in zip(grad.shape[grad.ndim - dims :], kernel, stride, padding, strict=True)
    ]
    ceil_mode = size != list(output_size[len(output_size) - dims :])
    pool = {2: "_avg_pool2d", 3: "_avg_pool3d"}[dims]
    function = getattr(ops, pool, None) or ops.avg_pool  # the kernel, or the operator
    return function(grad, kernel, stride, padding, ceil_mode, include, override)


def max_unpool_backward(ops: Any, grad: Any, indices: Any, dims: int) -> Any:
    """The gradient at the places that the elements went to."""
    shape = tuple(grad.shape)
    lead, cells, kept = shape[:-dims], math.prod(shape[-dims:]), math.prod(tuple(indices.shape)[-dims:])
    flat = ops.gather(ops.reshape(grad, (*lead, cells)), -1, ops.reshape(indices, (*lead, kept)))
    return ops.reshape(flat, indices.shape)
