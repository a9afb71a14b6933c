"""A Tensor as something else: Python numbers and lists, text, NumPy arrays, copies, pickles."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.state import local
from ..kernels import storage_root
from .autograd_attributes import TensorAutograd
from .printing import format_number, tensor_str

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from . import Tensor

new = object.__new__


#: What Python asks of the second operand when the first, here a number of NumPy's, does not know.
_REFLECTED = {
    np.add: "__radd__", np.subtract: "__rsub__", np.multiply: "__rmul__", np.divide: "__rtruediv__",
    np.power: "__rpow__", np.floor_divide: "__rfloordiv__", np.remainder: "__rmod__", np.equal: "__eq__",
    np.not_equal: "__ne__", np.less: "__gt__", np.less_equal: "__ge__", np.greater: "__lt__",
    np.greater_equal: "__le__",
}  # fmt: skip


_PACKAGE = __name__.partition(".")[0] + "."


class TensorConversion(TensorAutograd):
    """How a Tensor answers Python's own protocols."""

    __slots__ = ()

    # ----------------------------------------------------------------------------------------------------- to Python

    def item(self) -> Any:
        """The value of a one-element tensor as a Python number."""
        data = self._numbers_
        if data.size != 1:
            raise RuntimeError(f"a Tensor with {data.size} elements cannot be converted to Scalar")
        return data.item()

    def tolist(self) -> Any:
        """The values as nested lists."""
        return self._numbers_.tolist()

    def __bool__(self) -> bool:
        data = self._numbers_
        if data.size != 1:
            if data.size == 0:
                raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(data.item())

    def _scalar_(self) -> Any:
        if self._memory_.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self._numbers_.item()

    def __int__(self) -> int:
        value = self._scalar_()
        if isinstance(value, complex):
            if value.imag != 0:
                raise RuntimeError("value cannot be converted to type int64_t without overflow")
            value = value.real
        return int(value)

    def __float__(self) -> float:
        value = self._scalar_()
        if self.requires_grad:
            warnings.warn(
                "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider "
                "using tensor.detach() first.",
                UserWarning,
                stacklevel=2,
            )
        if isinstance(value, complex):
            if value.imag != 0:
                raise RuntimeError("value cannot be converted to type double without overflow")
            value = value.real
        return float(value)

    def __complex__(self) -> complex:
        return complex(self._scalar_())

    def __index__(self) -> int:
        data = self._numbers_
        if data.size != 1 or data.dtype.kind not in "iub":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(data.item())

    def __len__(self) -> int:
        if self._memory_.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self._memory_.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if self._memory_.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))  # type: ignore[attr-defined]

    def __reversed__(self) -> Tensor:
        """The elements along the first dimension in reverse; a Tensor, not an iterator."""
        return self if self._memory_.ndim == 0 else self.flip(0)  # type: ignore[attr-defined,return-value]

    def __delitem__(self, key: Any) -> None:
        raise TypeError("Tensor does not support deleting items: select the others, x[keep]")

    def __contains__(self, element: Any) -> bool:
        if isinstance(element, (TensorConversion, int, float, complex, bool, np.generic)):
            return bool((element == self).any().item())  # type: ignore[union-attr]
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return tensor_str(self, tensor_contents)

    def __format__(self, spec: str) -> str:
        return format_number(self, spec)

    # ------------------------------------------------------------------------------------------------------ to NumPy

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The values as a NumPy array that shares memory (with `force`: a copy if need be)."""
        if force:
            return self.detach().cpu().numpy()  # type: ignore[attr-defined]
        if local.state.grad_enabled is not False and self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self._memory_.__class__ is not np.ndarray and self.device.type != "cpu":
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                "memory first."
            )
        if self._memory_.dtype.num >= 256 or self._memory_.dtype.names:
            name, wide = self._type_name_().removesuffix("Tensor"), "cfloat" if self.is_complex() else "float"  # type: ignore[attr-defined]
            raise TypeError(f"Got unsupported ScalarType {name}: NumPy has no such type; use tensor.{wide}().numpy()")
        return self._numbers_

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"Unable to avoid copy while creating an array of {dtype} of a Tensor of {self.dtype}")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Tensor:
        """What NumPy's functions return for Tensors: Tensors, of bytes where NumPy has bools, as torch has it."""
        from .tensor import wrap  # Tensor is made of this class

        return wrap(np.asarray(array.astype(np.uint8) if array.dtype == bool else array))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's universal functions with Tensors among their arguments: see utils/_numpy_protocols."""
        if not kwargs and method == "__call__" and isinstance(inputs[0], np.generic):  # ``number * x``
            name = _REFLECTED.get(ufunc)
            if name is not None:
                return getattr(self, name)(inputs[0])
        from ..utils._numpy_protocols import array_ufunc  # it is made of operators

        return array_ufunc(self, ufunc, method, inputs, kwargs)  # type: ignore[arg-type]

    def __array_function__(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """NumPy's other functions."""
        from ..utils._numpy_protocols import array_function  # it is made of operators

        return array_function(self, func, types, args, kwargs)  # type: ignore[arg-type]

    # ------------------------------------------------------------------------------------------------------- copying

    def __deepcopy__(self, memo: dict[Any, Any]) -> Self:
        if not isinstance(memo, dict):
            raise TypeError(f"__deepcopy__(): argument 'memo' (position 1) must be dict, not {type(memo).__name__}")
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                f"moment. This one is the result of {self.grad_fn.name()}: use "  # type: ignore[union-attr]
                "x.detach().clone() for its values, or x.clone() to stay in the graph."
            )
        if id(self) in memo:
            return memo[id(self)]
        guard = local.state.mutation_guard
        if guard is not None:
            guard.before_copy(self)
        own = "new_empty" in {name for cls in type(self).__mro__ if not _is_ours(cls) for name in vars(cls)}
        result = self.new_empty([]) if own else new(type(self))  # type: ignore[attr-defined]
        if type(result) is not type(self) or (not own and not _is_ours(type(self))):
            raise RuntimeError(
                "The default implementation of __deepcopy__() for non-wrapper subclasses only works for subclass "
                "types that "
                "properly implement new_empty() and for which that function returns another instance of the same "
                f"subclass: define new_empty(), or __deepcopy__(), for {type(self).__name__}"
            )
        memo[id(self)] = result
        result._memory_ = _deepcopy_array(self._memory_, memo)
        result._vc_ = None
        result._grad_meta_ = result._edge_ = None
        meta = self._grad_meta_
        if meta is not None:
            result.requires_grad_(meta.requires_grad)
            if meta.grad is not None:
                result.grad = copy.deepcopy(meta.grad, memo)
        if self.__dict__:
            result.__dict__.update(copy.deepcopy(self.__dict__, memo))
        for name, value in slots_of(self).items():
            setattr(result, name, copy.deepcopy(value, memo))
        return result

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if self._backward_hooks:
            from ..utils.hooks import warn_if_has_hooks  # hooks are autograd's

            warn_if_has_hooks(self)
        return _rebuild, (type(self), self._numbers_, self.requires_grad, self.__dict__)


def _is_ours(cls: type) -> bool:
    """Is it a class of this package (or Python's), and none of a program's?"""
    return cls is object or cls.__module__.startswith(_PACKAGE)


def slots_of(tensor: Any) -> dict[str, Any]:
    """What a tensor has in slots that its class, one of a program's, has declared."""
    cls = type(tensor)
    if _is_ours(cls):
        return {}
    found: dict[str, Any] = {}
    for one in cls.__mro__:
        names = () if _is_ours(one) else vars(one).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__") and hasattr(tensor, name):
                found[name] = getattr(tensor, name)
    return found


def state_of(tensor: Any) -> Any:
    """What a pickle keeps of a tensor besides its values: attributes, or what its class says."""
    getstate = getattr(type(tensor), "__getstate__", None)
    if getstate is not None and getstate is not getattr(object, "__getstate__", None):
        return getstate(tensor)
    slots = slots_of(tensor)
    return (tensor.__dict__, slots) if slots else tensor.__dict__


def _deepcopy_array(array: Any, memo: dict[Any, Any]) -> Any:
    """A copy of an array; views of one piece of memory are views of one copy of it."""
    root = storage_root(array)
    if root is array or not (root.flags.c_contiguous and root.__class__ is array.__class__ is np.ndarray):
        return copy.deepcopy(array, memo)
    if id(root) not in memo:
        memo[id(root)] = root.copy()
        memo.setdefault(id(memo), []).append(root)  # alive as long as its id is in use
    offset = array.ctypes.data - root.ctypes.data
    return np.ndarray(array.shape, array.dtype, memo[id(root)], offset, array.strides)


def _rebuild(cls: type[Any], array: Any, requires_grad: bool, attributes: dict[Any, Any]) -> Tensor:
    result: Tensor = new(cls)
    result._numbers_ = array
    result._vc_ = None
    result._grad_meta_ = result._edge_ = None
    if requires_grad:
        result.requires_grad_()
    result.__dict__.update(attributes)
    return result
