"""What torch keeps in ``torch._C._functorch``: the insides of `vmap`, for who looks at them."""

from __future__ import annotations

from ..core.state import local
from ..func.batched import BatchedTensor, move
from ..func.modules import debug_unwrap
from ..tensor import Tensor

__all__ = [
    "_is_vmap_fallback_enabled", "_set_vmap_fallback_enabled", "get_unwrapped", "is_batchedtensor",
    "is_functorch_wrapped_tensor", "is_gradtrackingtensor", "maybe_get_bdim", "maybe_get_level", "reshape_dim_into",
    "reshape_dim_outof",
]  # fmt: skip


def _set_vmap_fallback_enabled(enabled: bool) -> None:
    """May operators without a batching rule run in a loop? Else they are refused."""
    local.state.batch_fallback = "warn" if enabled else "error"


def _is_vmap_fallback_enabled() -> bool:
    return local.state.batch_fallback != "error"


def is_batchedtensor(tensor: Tensor) -> bool:
    """Is this what a function sees inside of a vmap?"""
    return isinstance(tensor, BatchedTensor)


def is_gradtrackingtensor(tensor: Tensor) -> bool:
    """False: what is differentiated is a tensor like any other here."""
    return False


is_functorch_wrapped_tensor = is_batchedtensor


def get_unwrapped(tensor: Tensor) -> Tensor:
    """The values of all examples."""
    return debug_unwrap(tensor, recurse=False)


def maybe_get_bdim(tensor: Tensor) -> int:
    """The dimension that counts the examples; -1 if there is none."""
    return tensor.bdim if isinstance(tensor, BatchedTensor) else -1


def maybe_get_level(tensor: Tensor) -> int:
    """The number of the vmap, 1 for the outermost; -1 for a plain tensor."""
    return tensor.level.number if isinstance(tensor, BatchedTensor) else -1


def reshape_dim_into(src: int, dst: int, x: Tensor) -> Tensor:
    """`x` with the dimension `src` made the slower part of what is then dimension `dst`.

    >>> import retrograd as torch
    >>> reshape_dim_into(0, 1, torch.zeros(2, 3, 5)).shape
    torch.Size([3, 10])
    """
    ndim = x._memory_.ndim
    source, target = src % ndim, dst % (ndim - 1)
    moved = move(x, source, target)
    shape = moved._memory_.shape
    return moved.reshape(*shape[:target], shape[target] * shape[target + 1], *shape[target + 2 :])


def reshape_dim_outof(src: int, size1: int, x: Tensor) -> Tensor:
    """`x` with the dimension `src` made two, the first of size `size1`.

    >>> import retrograd as torch
    >>> reshape_dim_outof(0, 2, torch.zeros(6, 5)).shape
    torch.Size([2, 3, 5])
    """
    source = src % x._memory_.ndim
    shape = x._memory_.shape
    if shape[source] % size1:
        raise RuntimeError(f"reshape_dim_outof: {shape[source]} cannot be divided by {size1}")
    return x.reshape(*shape[:source], size1, shape[source] // size1, *shape[source + 1 :])
