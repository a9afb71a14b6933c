"""Writing to sparse tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import kernels
from ..autograd.forward_grad import fw_grad
from ..autograd.inplace import begin_inplace, bump_version, rebase_history
from ..core.state import local, process
from ..kernels.promotion import can_cast
from ..tensor import Tensor
from ..tensor.sparse import AnySparse

#: Operators whose in-place variants give a tensor another shape.
_RESHAPING = ("t", "transpose", "squeeze", "unsqueeze")


def write(tensor: Any, array: Any) -> None:
    """Make `array` what `tensor`, and every alias of it, holds."""
    tensor._memory_.become(array)
    bump_version(tensor)


def begin(tensor: Any) -> None:
    """May `tensor` be written to, by something that is not recorded?"""
    _refuse_tangents((tensor,))
    begin_inplace(local.state, tensor, bool(local.state.grad_enabled and tensor.requires_grad))


def _refuse_tangents(args: tuple[Any, ...]) -> None:
    """A write to a sparse tensor takes no tangents along."""
    for level in process.dual_levels:
        if any(isinstance(one, Tensor) and fw_grad(one, level) is not None for one in args):
            raise RuntimeError(
                "in-place operators on sparse tensors do not support forward AD, and an argument has a tangent: write "
                "x = x * 2 instead of x.mul_(2)"
            )


def in_place(form: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An operator's in-place variant: what it gives becomes the tensor."""
    tensor: Any = args[0]
    state = local.state
    record = bool(state.grad_enabled and any(isinstance(one, Tensor) and one.requires_grad for one in args))
    _refuse_tangents(args)
    begin_inplace(state, tensor, record)
    result: Any = form(*args, **kwargs)
    if result is NotImplemented:
        return result
    array: Any = result._memory_
    own = tensor._memory_
    reshaped = array.shape != own.shape and form.__name__ not in _RESHAPING
    if not isinstance(result, AnySparse) or array.kind is not own.kind or reshaped:
        raise RuntimeError(
            f"{form.__name__}_: the result has layout {result.layout} and shape {list(result.shape)}, and cannot be "
            f"written to a tensor of layout {tensor.layout} and shape {list(tensor.shape)}"
        )
    if not can_cast(array.dtype, own.dtype):
        raise RuntimeError(
            f"result type {result._type_name_()[:-6]} can't be cast to the desired output type "
            f"{tensor._type_name_()[:-6]}"
        )
    write(tensor, array.with_values(kernels.to_dtype(array.values, own.dtype)))
    if record:
        rebase_history(tensor, result._edge_[0])  # type: ignore[index]
    return tensor
