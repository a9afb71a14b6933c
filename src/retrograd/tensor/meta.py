"""Tensors on the device ``meta``: they have a shape, a dtype, strides and a history, and no values.

Note [Meta tensors]
A meta tensor is a special tensor (Note [Special tensors]).  What stands where its array would is a `MetaArray`: a
description, which holds a *ghost*, a NumPy array of the right shape, dtype and strides in memory that is not there.
Views are taken of the ghost by the ordinary view kernels, which only compute addresses; nothing else may touch it, and
nothing else gets it.  What all other operators give is found out in ops/meta/: the operator runs as it is, with its
checks, its node and its version counters, but for its kernel, in whose place stands what infers shapes.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np

from ..core import dtypes
from ..core.description import Description
from ..core.devices import META, register_array_class
from ..core.state import local
from ..kernels.storage import storage_offset, strides
from .conversion import slots_of, state_of
from .special import SpecialTensor
from .tensor import Tensor, new


class _Nothing:
    """Memory that is not there, in the form that `np.asarray` takes it: bytes that may be addressed, not read."""

    def __init__(self, nbytes: int) -> None:
        self.__array_interface__ = {
            "shape": (nbytes,), "typestr": "|u1", "data": (_ANCHOR.ctypes.data, True), "version": 3,
        }  # fmt: skip


_ANCHOR = np.zeros(16, np.uint8)


class _Address(NamedTuple):
    """Where memory would begin: for who computes offsets."""

    ptr: int


class MetaArray(Description):
    """What stands for the array of a meta tensor."""

    __slots__ = ("ghost",)

    layout_name = "Strided"

    def __init__(self, ghost: np.ndarray) -> None:
        self.shape, self.dtype, self.strides = ghost.shape, ghost.dtype, ghost.strides
        self.ghost = ghost

    @classmethod
    def fresh(cls, shape: tuple[int, ...], dtype: np.dtype, order: tuple[int, ...] | None = None) -> MetaArray:
        """A new one, dense; `order`: its dimensions as they lie in memory, outermost first (None: as they stand)."""
        steps, step = [0] * len(shape), dtype.itemsize
        for dim in reversed(range(len(shape)) if order is None else order):
            steps[dim] = step
            step *= max(shape[dim], 1)
        return cls.strided(shape, dtype, tuple(steps))

    @classmethod
    def strided(cls, shape: tuple[int, ...], dtype: np.dtype, steps: tuple[int, ...]) -> MetaArray:
        """A new one with these strides, in bytes."""
        last = sum((n - 1) * step for n, step in zip(shape, steps, strict=True)) if 0 not in shape else 0
        memory = np.asarray(_Nothing(max(last, 0) + dtype.itemsize))
        return cls(np.ndarray(shape, dtype, memory, 0, steps))

    @classmethod
    def like(cls, array: Any) -> MetaArray:
        """A new one that lies as an array does, its own dimensions in the same order and without gaps."""
        return cls.fresh(array.shape, array.dtype, order_of(array.shape, array.strides))

    def as_tensor(self) -> MetaTensor:
        return meta_tensor(self)

    @property
    def base(self) -> Any:
        """What its memory would be a part of."""
        return self.ghost.base

    @property
    def data(self) -> _Address:
        return _Address(self.ghost.__array_interface__["data"][0])

    def reshape(self, size: Any) -> NoReturn:
        """What the short cut of `view` asks first: the kernel is to decide."""
        raise ValueError

    def __repr__(self) -> str:
        return f"MetaArray({self.shape}, {self.dtype})"


register_array_class(MetaArray, META)


def order_of(shape: tuple[int, ...], steps: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions as they lie in memory, outermost first; those without a step of their own stay as they are."""
    dims = [d for d in range(len(shape)) if shape[d] != 1 and steps[d]]
    sorted_dims = iter(sorted(dims, key=lambda d: -steps[d]))
    moving = set(dims)
    return tuple(next(sorted_dims) if d in moving else d for d in range(len(shape)))


class MetaTensor(SpecialTensor):
    """A tensor without values."""

    __slots__ = ()

    _kind_ = "meta"  # type: ignore[assignment]
    is_meta = True
    _needs_tensors_ = True
    is_cpu = False  # type: ignore[assignment]

    def _operate_(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from ..ops.meta import operate  # what operators mean is said in terms of them

        return operate(function, args, kwargs)

    def _root_gradient_(self, grad: Tensor | None, position: int) -> Any:
        """A gradient without values as well; what is wrong with it is said as it is of others."""
        if grad is not None and grad._special_ is not None and not grad.is_meta and (
            grad._memory_.shape == self._memory_.shape
        ):
            return meta_tensor(MetaArray.like(grad._memory_))  # many at once: as many without values
        if grad is not None and grad._special_ is None:
            raise RuntimeError(
                f"invalid gradient at index {position} - expected device meta but got {grad.device}: make it without "
                "values, as torch.ones_like(y) does"
            )
        if grad is None and self._memory_.size == 1 and self._memory_.dtype.kind in "fV":
            return meta_tensor(MetaArray.like(self._memory_))
        return NotImplemented

    @staticmethod
    def _of_array_(array: Any) -> MetaTensor:
        """What a function has made beside a tensor without values: without values as well."""
        return meta_tensor(MetaArray.like(array))

    def storage_offset(self) -> int:
        """Elements between the start of the memory and the first element."""
        return storage_offset(self._memory_.ghost)

    def stride(self, dim: int | None = None) -> Any:
        """Steps between neighbours, in elements."""
        steps = strides(self._memory_.ghost)
        return steps if dim is None else steps[dim]

    def data_ptr(self) -> int:
        """There is no address."""
        return 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return new_plain(self._memory_.ghost).is_contiguous(memory_format)

    @property
    def data(self) -> Tensor:
        """The same without history."""
        return meta_tensor(self._memory_)

    @data.setter
    def data(self, value: Tensor) -> None:
        Tensor.data.__set__(self, value)  # type: ignore[attr-defined]

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        text = [f"size={tuple(self._memory_.shape)}"]
        if self._memory_.dtype != dtypes.default[0]:
            text.append(f"dtype={self.dtype}")
        if self.grad_fn is not None:
            text.append(f"grad_fn=<{self.grad_fn.name()}>")
        elif self.requires_grad:
            text.append("requires_grad=True")
        shown = f"tensor(..., device='meta', {', '.join(text)})"
        return f"Parameter containing:\n{shown}" if self.__dict__.get("_is_param") else shown

    def __format__(self, spec: str) -> str:
        return repr(self)

    __str__ = __repr__

    # ------------------------------------------------------------------------------------------- what needs values

    def _no_data(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            "Cannot copy out of meta tensor; no data! Make the module or tensor anew on another device: "
            "module.to_empty(device='cpu'), torch.empty_like(x, device='cpu')"
        )

    tolist = cpu = _no_data  # type: ignore[assignment]

    def item(self) -> NoReturn:
        """Refused: there is no value."""
        if self._memory_.size != 1:
            raise RuntimeError(f"a Tensor with {self._memory_.size} elements cannot be converted to Scalar")
        raise RuntimeError("Tensor.item() cannot be called on meta tensors: they have no values")

    __bool__ = __int__ = __float__ = __complex__ = __index__ = item  # type: ignore[assignment]

    def numpy(self, *, force: bool = False) -> NoReturn:
        """Refused: there is no array."""
        raise TypeError(
            "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first: "
            "which a tensor without values refuses as well"
        )

    def __dlpack__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._no_data()

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self.numpy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) in memo:
            return memo[id(self)]
        if hasattr(type(self), "_class_of_user_"):
            return self._copy_of_class(memo)
        result: Any = type(self)._make_()
        result._memory_ = MetaArray.like(self._memory_)
        result.__dict__.update(self.__dict__)
        if self.requires_grad:
            result.requires_grad_()
        memo[id(self)] = result
        return result

    def _copy_of_class(self, memo: dict[int, Any]) -> Any:
        """A copy of a tensor of a program's class, which knows how its tensors are copied."""
        result = self.clone()  # type: ignore[attr-defined]
        if type(result) is not type(self):
            raise RuntimeError(
                "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types "
                "that properly implement clone() and for which cloning returns another instance of the same subclass: "
                f"clone() of a {type(self).__name__} returned a {type(result).__name__}"
            )
        memo[id(self)] = result
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
        for name, value in slots_of(self).items():
            setattr(result, name, copy.deepcopy(value, memo))
        return result.requires_grad_() if self.requires_grad else result

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        own = getattr(type(self), "_class_of_user_", None)
        if own is not None:
            return _again_of_class, (own, self._memory_.shape, self._memory_.dtype, self._memory_.strides,
                                     self.requires_grad, state_of(self))  # fmt: skip
        return _again, (self._memory_.shape, self._memory_.dtype, self._memory_.strides, self.requires_grad,
                        dict(self.__dict__))  # fmt: skip


def _again(shape: Any, dtype: Any, steps: Any, requires_grad: bool, attributes: dict[str, Any]) -> MetaTensor:
    result = meta_tensor(MetaArray.strided(shape, dtype, steps))
    result.__dict__.update(attributes)
    return result.requires_grad_() if requires_grad else result


def _again_of_class(
    cls: Any, shape: Any, dtype: Any, steps: Any, requires_grad: bool, state: Any
) -> Tensor:
    result = Tensor._make_subclass(cls, meta_tensor(MetaArray.strided(shape, dtype, steps)), requires_grad)
    if hasattr(cls, "__setstate__"):
        result.__setstate__(state)
        return result
    attributes, slots = state if type(state) is tuple else (state, {})
    result.__dict__.update(attributes)
    for name, value in slots.items():
        setattr(result, name, value)
    return result


def new_plain(array: Any) -> Tensor:
    """A Tensor for who reads no more of it than how it lies."""
    result = new(Tensor)
    result._numbers_ = array
    result._vc_ = result._grad_meta_ = result._edge_ = None
    return result


def meta_tensor(array: MetaArray) -> MetaTensor:
    """A Tensor on what stands for an array, without history."""
    result = MetaTensor._make_()
    result._memory_ = array
    result._vc_ = local.state.new_vc
    return result
