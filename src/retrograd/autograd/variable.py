"""``Variable``: what tensors that require grad were called once. Every Tensor is one."""

from __future__ import annotations

import warnings
from typing import Any

from ..tensor import Tensor
from .engine import engine

__all__ = ["Variable", "VariableMeta"]


class VariableMeta(type):
    """``isinstance(x, Variable)`` is true of every Tensor."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=VariableMeta):
    """``Variable(tensor)`` is the tensor's values without its history: write ``tensor.detach()`` instead.

    >>> import retrograd as torch
    >>> v = torch.autograd.Variable(torch.ones(2), requires_grad=True)
    >>> type(v) is torch.Tensor, isinstance(v, torch.autograd.Variable)
    (True, True)
    """

    #: Final callbacks: ``Variable._execution_engine.queue_callback(f)``.
    _execution_engine = engine

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if volatile is not None:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                UserWarning,
                stacklevel=2,
            )
        if data is None:
            data = Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        result = data.detach()
        return result.requires_grad_(requires_grad) if requires_grad else result
