"""Parameter: a leaf tensor that is meant to be trained; Buffer: one that is state but not trained.

The uninitialized ones have a dtype and a device but no shape yet: a lazy module gives it to them when it sees its first
input (`materialize`), which makes ordinary ones of them.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..core import compiled, dtypes
from ..ops import factories
from ..tensor import Tensor, new, wrap
from ..tensor.lazy_conjugation import LazyTensor
from ..tensor.overriding import disabled_torch_function
from ..tensor.printing import tensor_str


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """Parameters of a user's own class of tensors stay of that class, marked."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and instance.__dict__.get("_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that requires grad unless told otherwise; results of operations on it are plain Tensors.

    >>> import retrograd as torch
    >>> torch.nn.Parameter(torch.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()
    __torch_function__ = disabled_torch_function  # type: ignore[assignment]

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        if data is None:
            array = np.empty((0,), dtypes.default[0])
        elif isinstance(data, Tensor):
            if type(data) is not Tensor and not isinstance(data, (Parameter, LazyTensor)):
                return _of_own_class(data, requires_grad)  # type: ignore[return-value]
            array = data._numbers_  # shared, as in torch
        else:
            raise TypeError(f"Parameter(): argument 'data' must be Tensor, not {type(data).__name__}")
        result = new(cls)
        result._numbers_ = array
        result._vc_ = None if data is None else data.detach()._vc_
        result._grad_meta_ = result._edge_ = None
        if requires_grad:
            result.requires_grad_()
        return result

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + tensor_str(self, tensor_contents)


if compiled.library is not None:
    compiled.library.add_parameter(Parameter)


def _of_own_class(data: Tensor, requires_grad: bool) -> Tensor:
    result = data.detach().requires_grad_(requires_grad)
    if type(result) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
            f"instance of the same type, but return type {type(result).__name__} was found instead. To use the type "
            "as a Parameter, please correct the detach() semantics defined by its __torch_dispatch__() implementation."
        )
    result.__dict__["_is_param"] = True
    return result


class _BufferMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and "persistent" in instance.__dict__


class Buffer(metaclass=_BufferMeta):
    """A tensor that a Module registers as a buffer when it is assigned to an attribute of it.

    What ``Buffer(data)`` gives is a plain Tensor on the memory of `data`, marked.

    >>> import retrograd as torch
    >>> m = torch.nn.Module()
    >>> m.mean = torch.nn.Buffer(torch.zeros(2), persistent=False)
    >>> list(m.buffers()), list(m.state_dict())
    ([tensor([0., 0.])], [])
    """

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        result = wrap(np.empty((0,), dtypes.default[0])) if data is None else data.detach()
        if data is not None and data.requires_grad:
            result.requires_grad_()
        result.__dict__["persistent"] = persistent
        return result


# ------------------------------------------------------------------------------------------------------- uninitialized


class UninitializedTensorMixin:
    """A tensor without a shape: what would need one says so; `materialize` gives it one."""

    __slots__ = ()
    #: What it is once it has a shape.
    cls_to_become: Any
    _memory_: Any

    @property
    def _numbers_(self) -> Any:
        raise ValueError(
            "Attempted to use an uninitialized parameter. This error happens when you are using a `LazyModule` or "
            f"explicitly manipulating `torch.nn.parameter.{type(self).__name__}` objects. When using LazyModules Call "
            "`forward` with a dummy batch to initialize the parameters before calling torch functions"
        )

    @_numbers_.setter
    def _numbers_(self, array: Any) -> None:
        self._memory_ = array

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized module. Call "
            "`forward` to initialize the parameters before accessing their attributes."
        )

    def numel(self) -> int:
        """Refused: it has no shape yet."""
        return self._numbers_.size

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary parameter or buffer of this shape, without values yet."""
        me: Any = self
        filled = factories.empty(
            shape, device=me.device if device is None else device, dtype=me.dtype if dtype is None else dtype
        )
        self._memory_ = filled._numbers_
        me.__class__ = self.cls_to_become

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """The same, still without a shape, of another dtype or on another device."""
        return self._like(_plain(self).to(*args, **kwargs))

    def type(self, *args: Any, **kwargs: Any) -> Any:
        """The same of another dtype, or the name of its class."""
        found = _plain(self).type(*args, **kwargs)
        return found if isinstance(found, str) else self._like(found)

    def _like(self, plain: Tensor) -> Any:
        me: Any = self
        return type(me)(requires_grad=me.requires_grad, device=plain.device, dtype=plain.dtype)

    def detach(self) -> Any:
        """The same: there is nothing to share yet."""
        return self._like(_plain(self))

    def __len__(self) -> int:
        return len(self._numbers_)  # which is refused

    def __getitem__(self, index: Any) -> Any:
        return self._numbers_[index]

    @property
    def data(self) -> Any:
        return self

    @data.setter
    def data(self, value: Any) -> None:
        if not is_lazy(value):
            raise ValueError("an uninitialized parameter cannot be given data: call materialize() first")
        self._memory_ = value._memory_

    def share_memory_(self) -> Any:
        """Refused: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def is_floating_point(self) -> bool:
        """Is the dtype one of floating-point numbers?"""
        return _plain(self).is_floating_point()

    def is_complex(self) -> bool:
        """Is the dtype one of complex numbers?"""
        return _plain(self).is_complex()

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = self._like(_plain(self))
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        me: Any = self
        return _rebuild_uninitialized, (type(self), me.requires_grad, str(me.device), me.dtype)

    def __hash__(self) -> int:
        return id(self)


def _make_conversion(name: str) -> Any:
    def convert(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._like(getattr(_plain(self), name)(*args, **kwargs))

    convert.__name__ = name
    convert.__doc__ = "The same, still without a shape, converted."
    return convert


for _name in ("half", "float", "double", "bfloat16", "cpu", "cuda", "short", "int", "long", "char"):
    setattr(UninitializedTensorMixin, _name, _make_conversion(_name))


def _make_refusal(name: str) -> Any:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._numbers_

    refuse.__name__ = name
    refuse.__doc__ = "Refused: there is no shape yet."
    return refuse


for _name in (
    "numel", "nelement", "dim", "ndimension", "stride", "storage", "untyped_storage", "storage_offset", "data_ptr",
    "is_contiguous", "new", "new_tensor", "new_zeros", "new_ones", "new_empty", "new_full", "view", "expand", "reshape",
):  # fmt: skip
    setattr(UninitializedTensorMixin, _name, _make_refusal(_name))


def _plain(tensor: Any) -> Any:
    """An empty tensor of the same dtype on the same device."""
    return wrap(tensor._memory_)


def _rebuild_uninitialized(kind: Any, requires_grad: bool, device: str, dtype: Any) -> Any:
    return kind(requires_grad=requires_grad, device=device, dtype=dtype)


def is_lazy(value: Any) -> bool:
    """Is this a parameter or buffer without a shape?"""
    return isinstance(value, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A Parameter whose shape is not known yet.

    >>> import retrograd as torch
    >>> p = torch.nn.UninitializedParameter()
    >>> p.materialize((2, 3)); p.shape, type(p).__name__
    (torch.Size([2, 3]), 'Parameter')
    """

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return _uninitialized(cls, requires_grad, device, dtype)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[misc]
    """A buffer whose shape is not known yet."""

    __slots__ = ()
    cls_to_become = Tensor
    __torch_function__ = disabled_torch_function  # type: ignore[assignment]

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        result = _uninitialized(cls, requires_grad, device, dtype)
        result.__dict__["persistent"] = persistent
        return result


def _uninitialized(cls: Any, requires_grad: bool, device: Any, dtype: Any) -> Any:
    result = new(cls)
    result._memory_ = factories.empty(0, device=device, dtype=dtype)._numbers_
    result._vc_ = result._grad_meta_ = result._edge_ = None
    if requires_grad:
        result.requires_grad_()
    return result
