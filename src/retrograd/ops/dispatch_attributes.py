"""Methods and attributes of tensors whose classes have ``__torch_dispatch__``: see ops/dispatch.py."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, NoReturn

from ..core.size import Size
from ..core.state import local
from ..kernels.dims import normalize_dim
from ..storage import UntypedStorage
from ..tensor import Tensor, new, wrap
from ..tensor.overriding import functions_off
from ..tensor.printing import as_parameter
from . import overload
from .dispatch import DispatchTensor, Wrapped, ask_arguments, detached, recording_off, wrap_memory


class OfDispatchTensors:
    """What methods and attributes of Tensor do for a `DispatchTensor`.

    They are no methods of its own: ``Tensor.dim(x)`` is to do this too, and is what those who override functions are
    told of.  The switch (override_switch.py), which the first such class throws, has Tensor's call them.
    """

    @property
    def shape(self: Any) -> Size:
        told = self._told_("sym_size") if self._asks_("sizes") else None
        return Size(self._memory_.shape if told is None else told)

    def size(self: Any, dim: int | None = None) -> Any:
        if not self._asks_("sizes"):
            shape = Size(self._memory_.shape)
        else:
            shape = self.shape
        return shape if dim is None else shape[normalize_dim(dim, len(shape))]

    @property
    def ndim(self: Any) -> int:
        return self.dim()

    def dim(self: Any) -> int:
        told = self._told_("dim") if self._asks_("sizes") else None
        return self._memory_.ndim if told is None else told

    def numel(self: Any) -> int:
        told = self._told_("numel") if self._asks_("sizes") else None
        return self._memory_.size if told is None else told

    def stride(self: Any, dim: int | None = None) -> Any:
        told = self._told_("sym_stride") if self._asks_("strides") else None
        memory = self._memory_
        steps = tuple([step // memory.itemsize for step in memory.strides] if told is None else told)
        return steps if dim is None else steps[normalize_dim(dim, len(steps))]

    def storage_offset(self: Any) -> int:
        told = self._told_("sym_storage_offset") if self._asks_("sizes") else None
        if told is not None:
            return told
        memory = self._memory_
        if memory.array is None:
            return memory.offset
        return wrap_memory(self).storage_offset()

    def is_contiguous(self: Any, memory_format: Any = None) -> bool:
        if self._asks_("strides"):
            func = overload.aten.is_contiguous
            told = ask_arguments(
                func.default if memory_format is None else func.memory_format,
                (self,) if memory_format is None else (self, memory_format), {},
            )  # fmt: skip
            if told is not None:
                return told
        if memory_format is None:
            return self._memory_.flags.c_contiguous
        return wrap_memory(self).is_contiguous(memory_format) if self._memory_.array is not None else False

    @property
    def device(self: Any) -> Any:
        told = self._told_("device", space="prim") if self._asks_("device") else None
        return self._memory_.device if told is None else told

    @property
    def layout(self: Any) -> Any:
        told = self._told_("layout", space="prim") if self._asks_("layout") else None
        return self._memory_.layout if told is None else told

    def data_ptr(self: Any) -> int:
        self.numel()
        array = self._memory_.array
        return 0 if array is None or not array.size else array.ctypes.data

    def untyped_storage(self: Any) -> Any:
        """Its storage; that of one without memory has no address."""
        memory = self._memory_
        if memory.storage is None:
            memory.storage = NoStorage(self) if memory.array is None else wrap_memory(self).untyped_storage()  # type: ignore[attr-defined]
        return memory.storage

    # ------------------------------------------------------------------------------------------------ the same anew

    def detach(self: Any) -> Any:
        state = local.state
        if state.interceptor is not None:
            return state.interceptor(Tensor.detach, (self,), {})
        if state.dispatch_off:
            return self._alias_()
        return detached(self, ask_arguments)

    @property
    def data(self: Any) -> Any:
        if local.state.dispatch_off:
            result = self._alias_()
        else:
            with recording_off():
                result = ask_arguments(overload.aten.detach.default, (self,), {})
        if isinstance(result, Tensor):
            result._vc_ = result._grad_meta_ = result._edge_ = None
        return result

    @data.setter
    def data(self: Any, value: Any) -> None:
        set_data(self, value)

    def item(self: Any) -> Any:
        if local.state.dispatch_off:
            return wrap_memory(self).item()
        return ask_arguments(overload.aten._local_scalar_dense.default, (self,), {})

    def __bool__(self: Any) -> bool:
        return bool(self.item())

    def __int__(self: Any) -> int:
        return int(self.item())

    def __float__(self: Any) -> float:
        return float(self.item())

    def __complex__(self: Any) -> complex:
        return complex(self.item())

    def __index__(self: Any) -> int:
        return self.item().__index__()

    def numpy(self: Any, *, force: bool = False) -> NoReturn:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def tolist(self: Any) -> NoReturn:
        raise RuntimeError(".tolist() is not supported for tensor subclasses.")

    def __repr__(self: Any, *, tensor_contents: str | None = None) -> str:
        if tensor_contents is None and self._memory_.array is not None:
            tensor_contents = repr(wrap_memory(self)).removeprefix("tensor(").removesuffix(")")
        if tensor_contents is None:
            tensor_contents = f"..., size={tuple(self._memory_.shape)}, dtype={self.dtype}, device='{self.device}'"
        suffix = f", grad_fn=<{self.grad_fn.name()}>" if self.grad_fn is not None else ""
        if not suffix and self.requires_grad:
            suffix = ", requires_grad=True"
        return as_parameter(self, f"{type(self).__name__}({tensor_contents}{suffix})")

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment. Use x.detach().clone() for the values, or x.clone() to stay in the graph."
            )
        with functions_off(1):
            result = self.clone()
        if type(result) is not type(self):
            raise RuntimeError(
                "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types "
                "that "
                "properly implement clone() and for which cloning returns another instance of the same subclass: "
                "clone() "
                f"of a {type(self).__name__} returned a {type(result).__name__}"
            )
        if result is not self and result.requires_grad:
            result = result.detach()
        if self.requires_grad:
            result.requires_grad_()
        memo[id(self)] = result
        if self.grad is not None:
            result.grad = self.grad.__deepcopy__(memo)
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return result

    def __reduce_ex__(self: Any, protocol: Any) -> tuple[Any, ...]:
        memory = self._travelling_()
        state = {**memory.attributes, **memory.own}
        if memory.array is not None:
            return rebuild_subclass, (type(self), memory.array, self.requires_grad, state)
        return rebuild_wrapper, (*self._described_(), state)


def set_data(tensor: Tensor, value: Any) -> None:
    """``tensor.data = value``, one of which has a class with ``__torch_dispatch__``."""
    memory = tensor._memory_
    if isinstance(value, Tensor) and value._special_ is None and memory.array is not None:
        tensor._hold_(value._numbers_)  # type: ignore[attr-defined]
        return
    if not isinstance(value, DispatchTensor) or not isinstance(tensor, DispatchTensor):
        raise RuntimeError(
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type: "
            f"{type(tensor).__name__} and {type(value).__name__}"
        )
    tensor._memory_ = value._memory_.like(tensor.__dict__)
    for name, attribute in (*value.__dict__.items(), *value._travelling_().own.items()):
        setattr(tensor, name, attribute)


class NoStorage:
    """The storage of a tensor without memory: it is told from others, and no more."""

    def __init__(self, tensor: DispatchTensor) -> None:
        self.device: Any = tensor._memory_.device
        self._size = tensor._memory_.storage_size
        self._nbytes = tensor._memory_.nbytes

    def _refused(self, *args: Any, what: str = "access the data pointer") -> NoReturn:
        raise RuntimeError(f"Attempted to {what} on an invalid python storage. The tensor has no memory of its own")

    data_ptr = _refused

    def __getattr__(self, name: str) -> Any:
        if not hasattr(UntypedStorage, name):
            raise AttributeError(f"'UntypedStorage' object has no attribute '{name}'")
        return partial(self._refused, what=f"call {name}()")

    def nbytes(self) -> int:
        return self._nbytes if self._size is None else self._size

    size = nbytes

    @property
    def _cdata(self) -> int:
        return id(self)


def rebuild_wrapper(
    cls: Any, dtype: Any, size: tuple[int, ...], stride: tuple[int, ...], storage_offset: int, layout: Any, device: Any,
    requires_grad: bool, state: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """A tensor without memory of a class with ``__torch_dispatch__``, from a pickle."""
    result = new(cls)
    result._vc_ = result._grad_meta_ = result._edge_ = None
    steps = tuple(step * dtype.np.itemsize for step in stride)
    result._memory_ = Wrapped(
        cls, result.__dict__, tuple(size), dtype.np, steps, device=device, layout=layout, offset=storage_offset
    )
    for name, value in (state or {}).items():
        setattr(result, name, value)
    if requires_grad:
        with functions_off(2):
            result.requires_grad_()
    return result


def rebuild_subclass(cls: Any, array: Any, requires_grad: bool, state: dict[str, Any]) -> Any:
    """A tensor with memory of such a class, from a pickle."""
    result = Tensor._make_subclass(cls, wrap(array), requires_grad)
    for name, value in state.items():
        setattr(result, name, value)
    return result
