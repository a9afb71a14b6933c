"""Gradients kept within bounds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

from ...autograd.grad_mode import no_grad
from ...ops import factories
from ...ops import namespace as ops
from ...tensor import Tensor


def _grads(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [parameter.grad for parameter in listed if parameter.grad is not None]


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors together, as if they were one vector.

    >>> import retrograd as torch
    >>> torch.nn.utils.get_total_norm([torch.tensor([3.]), torch.tensor([4.])])
    tensor(5.)
    """
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not listed:
        return factories.tensor(0.0)
    with no_grad():
        total = ops.stack([_norm(tensor.reshape(-1), norm_type) for tensor in listed])
        total = _norm(total, norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def _norm(values: Tensor, norm_type: float) -> Tensor:
    return values.norm(norm_type)


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients, whose norm is `total_norm`, down in place to `max_norm`."""
    with no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in _grads(parameters):
            grad.mul_(factor.to(grad.dtype))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients down in place if their common norm is above `max_norm`; return what it was.

    >>> import retrograd as torch
    >>> x = torch.zeros(2, requires_grad=True)
    >>> (x * torch.tensor([3., 4.])).sum().backward()
    >>> torch.nn.utils.clip_grad_norm_(x, 1.0), x.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    listed: Any = parameters if isinstance(parameters, Tensor) else list(parameters)
    if not isinstance(listed, Tensor) and not listed:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", UserWarning, stacklevel=2)
    total = get_total_norm(_grads(listed), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(listed, max_norm, total)
    return total


def clip_grad_norm(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0) -> Tensor:
    """The older name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every element of every gradient, in place, to ±`clip_value`."""
    bound = float(clip_value)
    with no_grad():
        for grad in _grads(parameters):
            grad.clamp_(-bound, bound)
