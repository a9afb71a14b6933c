"""The gradients of pools as functions, which torch has under ``torch.ops.aten`` alone; aten_only.py imports them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .. import kernels
from ..derivatives import formulas
from ..tensor import Tensor
from . import namespace as ops
from .registry import composite

Ints = Sequence[int]


def _pair(name: str, what: str, value: int | Ints, dims: int) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    if len(values) not in (1, dims):
        raise RuntimeError(f"{name}: {what} must be one int or {('two', 'three')[dims - 2]}, got {values}")
    return values * dims if len(values) == 1 else values


def _check_sizes(tensor: Tensor, shape: Ints) -> None:
    """A gradient, or the indices that it goes to, has the shape of what the pool gave."""
    found = tensor._memory_.shape
    for dim, size in enumerate(shape):
        if len(found) != len(shape) or found[dim] != size:
            size_found = found[dim] if dim < len(found) else "none"
            raise RuntimeError(
                f"Expected a tensor of dimension {len(shape)} and tensor.size[{dim}] == {size} but got: dimension "
                f"{len(found)} and tensor.size[{dim}] = {size_found}"
            )


def _check_dims(name: str, argument: str, tensor: Tensor, dims: int) -> None:
    if tensor._memory_.ndim != dims:
        raise RuntimeError(
            f"{name}: Expected dimensions {dims} for `{argument}` but got dimensions {tensor._memory_.ndim}"
        )


def _max_pool_backward(dims: int) -> Callable[..., Tensor]:
    def backward(
        grad_output: Tensor, self: Tensor, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints,
        ceil_mode: bool, indices: Tensor,
    ) -> Tensor:  # fmt: skip
        name = f"max_pool{dims}d"
        kernel, edge, gap = (
            _pair(name, what, value, dims)
            for what, value in (("kernel_size", kernel_size), ("padding", padding), ("dilation", dilation))
        )
        step = _pair(name, "stride", stride, dims) if isinstance(stride, int) or len(stride) else kernel
        shape = self._memory_.shape
        out = kernels.pooled_size(shape[len(shape) - dims :], kernel, step, edge, gap, ceil_mode)
        for tensor in (grad_output, indices):
            _check_sizes(tensor, (*shape[: len(shape) - dims], *out))
        return formulas.pool_scatter(ops, grad_output, indices, shape, dims)

    backward.__doc__ = f"The gradient of max_pool{dims}d: each element of `grad_output` added where its maximum was."
    return backward


def _adaptive_max_pool_backward(dims: int) -> Callable[..., Tensor]:
    name = f"adaptive_max_pool{dims}d_backward"

    def backward(grad_output: Tensor, self: Tensor, indices: Tensor) -> Tensor:
        for argument, tensor in (("indices", indices), ("grad_output", grad_output)):
            if tensor._memory_.ndim != self._memory_.ndim:
                raise RuntimeError(
                    f"{name}: expected dimensions {self._memory_.ndim} for `{argument}` but got dimensions "
                    f"{tensor._memory_.ndim}"
                )
        if indices._memory_.shape != grad_output._memory_.shape:
            raise RuntimeError(
                f"{name}: expected sizes {list(indices._memory_.shape)} for `grad_output` but got sizes "
                f"{list(grad_output._memory_.shape)}"
            )
        return formulas.adaptive_max_pool_backward(ops, grad_output, indices, self._memory_.shape, dims)

    backward.__doc__ = f"The gradient of adaptive_max_pool{dims}d."
    return backward


def _adaptive_avg_pool_backward(dims: int) -> Callable[..., Tensor]:
    def backward(grad_output: Tensor, self: Tensor) -> Tensor:
        _check_dims(f"_adaptive_avg_pool{dims}d_backward", "grad_output", grad_output, self._memory_.ndim)
        return ops.adaptive_avg_pool_backward(grad_output, self._memory_.shape, dims)

    backward.__doc__ = f"The gradient of adaptive_avg_pool{dims}d."
    return backward


def _fractional_max_pool_backward(dims: int) -> Callable[..., Tensor]:
    def backward(
        grad_output: Tensor, self: Tensor, kernel_size: Ints, output_size: Ints, indices: Tensor
    ) -> Tensor:
        shape = self._memory_.shape
        wanted = (*shape[: len(shape) - dims], *_pair(f"fractional_max_pool{dims}d", "output_size", output_size, dims))
        if grad_output._memory_.shape != wanted or indices._memory_.shape != wanted:
            raise RuntimeError(
                f"fractional_max_pool{dims}d_backward(): gradOutput sizes unexpected: it and the indices are to have "
                f"{list(wanted)}, but have {list(grad_output._memory_.shape)} and {list(indices._memory_.shape)}"
            )
        return formulas.pool_scatter(ops, grad_output, indices, shape, dims)

    backward.__doc__ = f"The gradient of fractional_max_pool{dims}d: each element added where its maximum was."
    return backward


def _avg_pool_backward(dims: int) -> Callable[..., Tensor]:
    def backward(
        grad_output: Tensor, self: Tensor, kernel_size: Ints, stride: Ints, padding: Ints, ceil_mode: bool,
        count_include_pad: bool, divisor_override: int | None,
    ) -> Tensor:  # fmt: skip
        name = f"avg_pool{dims}d"
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        kernel, edge = _pair(name, "kernel_size", kernel_size, dims), _pair(name, "padding", padding, dims)
        step = _pair(name, "stride", stride, dims) if isinstance(stride, int) or len(stride) else kernel
        shape = self._memory_.shape
        out = kernels.pooled_size(shape[len(shape) - dims :], kernel, step, edge, [1] * dims, ceil_mode)
        _check_sizes(grad_output, (*shape[: len(shape) - dims], *out))
        return ops.avg_pool_backward(grad_output, shape, kernel, step, edge, count_include_pad, divisor_override)

    backward.__doc__ = f"The gradient of avg_pool{dims}d: that of each window, shared among its cells."
    return backward


for _name, _make in (
    ("max_pool{}d_with_indices_backward", _max_pool_backward),
    ("adaptive_max_pool{}d_backward", _adaptive_max_pool_backward),
    ("_adaptive_avg_pool{}d_backward", _adaptive_avg_pool_backward),
    ("fractional_max_pool{}d_backward", _fractional_max_pool_backward),
    ("avg_pool{}d_backward", _avg_pool_backward),
):
    for _dims in (2, 3):
        _function = _make(_dims)
        _function.__name__ = _function.__qualname__ = _name.format(_dims)
        composite(space="aten")(_function)
