"""``softmax`` and its kin; part of ``functional``."""

from __future__ import annotations

import warnings
from typing import Any

from ..._generated import functions as generated
from ...core.where import users_level
from ...ops.registry import composite
from ...tensor import Tensor


def _softmax_dim(name: str, ndim: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=users_level(),
    )
    return 0 if ndim in (0, 1, 3) else 1


@composite(space="nn.functional")
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """``exp(input)`` divided by its sum along `dim`.

    >>> import retrograd as torch
    >>> torch.nn.functional.softmax(torch.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    if dim is None:
        dim = _softmax_dim("softmax", input._memory_.ndim)
    return generated._softmax(input if dtype is None else input.to(dtype), dim)


@composite(space="nn.functional")
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """`softmax` of ``-input``."""
    if dim is None:
        dim = _softmax_dim("softmin", input._memory_.ndim)
    return softmax(-input, dim, dtype=dtype)


@composite(space="nn.functional")
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`, without its loss of precision."""
    if dim is None:
        dim = _softmax_dim("log_softmax", input._memory_.ndim)
    return generated._log_softmax(input if dtype is None else input.to(dtype), dim)
