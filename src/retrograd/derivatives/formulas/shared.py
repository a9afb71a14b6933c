"""Helpers of formulas of several families."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.constants import channels_last, channels_last_3d
from ...kernels.storage import channels_innermost


def rounded_once(formula: Callable[..., Any]) -> Callable[..., Any]:
    """A formula of several steps on `grad` and `self`, each of which would be rounded in half precision."""

    @functools.wraps(formula)
    def computed(ops: Any, grad: Any, self: Any, *settings: Any) -> Any:
        if self.itemsize != 2:
            return formula(ops, grad, self, *settings)
        if hasattr(self, "_memory_"):
            return formula(ops, grad.float(), self.float(), *settings).to(self.dtype)
        return formula(ops, grad.astype(np.float32), self.astype(np.float32), *settings).astype(self.dtype)

    return computed


def laid_out(ops: Any, grad: Any, shape: Sequence[int], strides: Sequence[int]) -> Any:
    """`grad` with its channels innermost in memory, where a tensor of this `shape` and these `strides` has them so."""
    if not channels_innermost(shape, strides):
        return grad
    return ops.clone(grad, memory_format=channels_last if len(shape) == 4 else channels_last_3d)


def laid_out_as(ops: Any, grad: Any, other: Any) -> Any:
    """The same where the tensor itself is at hand, or its array."""
    memory = getattr(other, "_memory_", other)
    return laid_out(ops, grad, memory.shape, memory.strides)


def first_laid_out_as(ops: Any, grads: Sequence[Any], other: Any) -> Sequence[Any]:
    """The same of the first of several gradients, if it is wanted."""
    first = grads[0]
    if first is None or (laid := laid_out_as(ops, first, other)) is first:
        return grads
    return (laid, *grads[1:])


def maybe_multiply(ops: Any, grad: Any, factor: Any) -> Any:
    """``grad * factor``, without the work when the factor is 1."""
    return grad if factor == 1 else grad * factor


def not_implemented(ops: Any, grad: Any, name: str) -> Any:
    """For an operator whose result counts as differentiable, but that has no derivative."""
    raise NotImplementedError(
        f"the derivative for '{name}' is not implemented: detach its result, or compute it under no_grad()"
    )


def _is_complex(value: Any) -> bool:
    """Is an array or Tensor complex? Asked in both namespaces."""
    return getattr(value, "_memory_", value).dtype.kind in "cW"


def _has_values(value: Any) -> bool:
    """Can a formula ask an array or Tensor for values? Not one on meta."""
    return not getattr(value, "is_meta", False)


def real_part(ops: Any, grad: Any) -> Any:
    """The real part of what may be real already."""
    return ops.real(grad) if _is_complex(grad) else grad


def as_mask(ops: Any, mask: Any, like: Any) -> Any:
    """0 and 1 in the dtype of `like`."""
    return ops.where(mask, ops.ones_like(like), ops.zeros_like(like))


def numel_of(ops: Any, shape: Sequence[int]) -> int:
    """How many elements a tensor of a shape has, for what a node shows."""
    return math.prod(shape)


def sizes_of(ops: Any, shape: Sequence[int] | None) -> tuple[int, ...]:
    """The shape of a tensor that may be missing, as torch shows it."""
    return (0,) if shape is None else tuple(shape)


def ints_of(ops: Any, value: int | Sequence[int] | None) -> tuple[int, ...]:
    """A list of integers of which one, or none at all, may have been given."""
    return () if value is None else (value,) if isinstance(value, int) else tuple(value)
