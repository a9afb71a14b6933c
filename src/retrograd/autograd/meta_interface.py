"""A tensor's AutogradMeta behind torch's interface: `AutogradMetaInterface`, its six methods.

Here autograd itself reads the fields of `AutogradMeta` (core/meta.py), and most tensors have none.  For code that is
written against torch's interface, `autograd_meta` gives an object that has it, for any tensor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..core.meta import materialize_autograd_meta
from ..core.state import process
from ..tensor import Tensor
from .forward_grad import Level, fw_grad, set_fw_grad


class AutogradMetaInterface(ABC):
    """What autograd knows of one tensor."""

    __slots__ = ()

    @abstractmethod
    def set_requires_grad(self, requires_grad: bool, self_impl: Tensor) -> None:
        """Compute gradients of the tensor, or do not."""

    @abstractmethod
    def requires_grad(self) -> bool:
        """Are gradients of the tensor computed?"""

    @abstractmethod
    def mutable_grad(self) -> Tensor | None:
        """The gradient, to be written to; None if there is none yet."""

    @abstractmethod
    def grad(self) -> Tensor | None:
        """The gradient."""

    @abstractmethod
    def fw_grad(self, level: int, self_: Tensor) -> Tensor | None:
        """The tangent at the dual level of this number."""

    @abstractmethod
    def set_fw_grad(self, new_grad: Tensor, self_: Tensor, level: int, is_inplace_op: bool) -> None:
        """Make `new_grad` that tangent."""


class _AutogradMetaOf(AutogradMetaInterface):
    """The interface, of one tensor."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def set_requires_grad(self, requires_grad: bool, self_impl: Tensor) -> None:
        self_impl.requires_grad_(requires_grad)

    def requires_grad(self) -> bool:
        return self.tensor.requires_grad

    def mutable_grad(self) -> Tensor | None:
        return materialize_autograd_meta(self.tensor).grad

    def grad(self) -> Tensor | None:
        meta = self.tensor._grad_meta_
        return None if meta is None else meta.grad

    def fw_grad(self, level: int, self_: Tensor) -> Tensor | None:
        at = _level(level)
        return None if at is None else fw_grad(self_, at)

    def set_fw_grad(self, new_grad: Tensor, self_: Tensor, level: int, is_inplace_op: bool) -> None:
        at = _level(level)
        if at is None:
            raise RuntimeError(f"Trying to set a forward gradient at level {level}, but no such dual level is open")
        set_fw_grad(self_, new_grad, at, is_inplace_op)


def autograd_meta(tensor: Tensor) -> AutogradMetaInterface:
    """The interface to what autograd knows of `tensor`.

    >>> import retrograd as torch
    >>> x = torch.ones(2)
    >>> meta = autograd_meta(x)
    >>> meta.set_requires_grad(True, x)
    >>> (x * 3).sum().backward()
    >>> meta.requires_grad(), meta.grad()
    (True, tensor([3., 3.]))
    """
    return _AutogradMetaOf(tensor)


def _level(number: int) -> Level | None:
    levels = process.dual_levels
    return levels[number] if 0 <= number < len(levels) else None
