"""Classes of tensors that programs define: what is done when one is defined, and how their objects are made."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ..autograd.intercept import interceptor_of
from ..core import devices, dtypes
from ..core.constants import contiguous_format, preserve_format
from ..core.description import Description
from ..core.layout import strided
from ..core.state import local
from ..core.version_counter import version_counter
from ..tensor import Tensor, new
from ..tensor.meta import MetaTensor
from ..tensor.overriding import disabled_torch_function, functions_off, overrides
from .dispatch import DispatchTensor, ModeObserver, Wrapped
from .override_switch import throw


def prepare(cls: Any) -> None:
    """A program has defined a class of tensors."""
    if cls.__torch_dispatch__ is not Tensor.__torch_dispatch__ and not issubclass(cls, DispatchTensor):
        # Operators ask it because it has no array that they could take: Note [Python dispatch].
        bases = [DispatchTensor if base is Tensor else base for base in cls.__bases__]
        cls.__bases__ = tuple(bases if DispatchTensor in bases else [*bases, DispatchTensor])
    if overrides(cls) or issubclass(cls, DispatchTensor):
        throw()


def _class_of_tensors(cls: Any, name: str) -> None:
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"{name}(): cls must be a class that inherits from torch.Tensor, not {cls!r}")


def _refuse(name: str, **given: Any) -> None:
    """Refuse options that mean nothing here: there are no dispatch keys, and no memory to pin."""
    for option, value in given.items():
        if value is not None:
            raise RuntimeError(f"{name}(): {option}={value} has no meaning here, leave it out")


def make_subclass(
    cls: Any, data: Tensor, require_grad: bool = False, *, dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False, dispatch_layout: bool = False, device_for_backend_keys: Any = None,
) -> Any:  # fmt: skip
    """See `Tensor._make_subclass`."""
    _class_of_tensors(cls, "_make_subclass")
    _refuse("_make_subclass", device_for_backend_keys=device_for_backend_keys)
    if not isinstance(data, Tensor):
        raise TypeError(f"_make_subclass(): argument 'data' (position 2) must be Tensor, not {type(data).__name__}")
    check_no_other_class(data, cls)
    result = new(without_values(cls) if type(data) is MetaTensor and not issubclass(cls, DispatchTensor) else cls)
    result._vc_ = data._vc_ or version_counter(data)
    result._grad_meta_ = result._edge_ = None
    if isinstance(result, MetaTensor):
        result._memory_ = data._memory_
    elif isinstance(result, DispatchTensor):
        array = _array_of(data)
        asks = _asked(dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
        result._memory_ = Wrapped(
            cls, result.__dict__, array.shape, array.dtype, array.strides, device=data.device, layout=data.layout,
            array=None if isinstance(array, Description) else array, asks=asks,
        )  # fmt: skip
    else:
        result._numbers_ = data._numbers_
    if require_grad:
        _want_gradients(result)
    return result


def _array_of(data: Tensor) -> Any:
    """How the values of a tensor lie, if it has any."""
    if isinstance(data, DispatchTensor):
        return data._memory_ if data._memory_.array is None else data._memory_.array
    return data._memory_ if type(data) is MetaTensor else data._numbers_


@cache
def without_values(cls: Any) -> Any:
    """What tensors of a class without values are objects of: the class, and `MetaTensor`."""
    if issubclass(cls, MetaTensor):
        return cls
    body = {"__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__,
            "_class_of_user_": cls}  # fmt: skip
    if cls.__torch_function__ is not disabled_torch_function:  # (which is that of MetaTensor)
        body["__torch_function__"] = classmethod(getattr(cls.__torch_function__, "__func__", cls.__torch_function__))
    return type(cls.__name__, (cls, MetaTensor), body)


def _want_gradients(tensor: Tensor) -> None:
    """Of a tensor that its class has not finished yet, and cannot be asked about."""
    with functions_off(2):
        tensor.requires_grad_()


def _asked(sizes_strides: str | None, device: bool, layout: bool) -> frozenset[str]:
    """Which attributes of its own a tensor asks its class about."""
    if sizes_strides not in (None, "sizes", "strides"):
        raise RuntimeError(f"expected dispatch_sizes_strides_policy to be 'sizes' or 'strides', got {sizes_strides!r}")
    found = {"strides"} if sizes_strides else set()
    found |= {"sizes"} if sizes_strides == "sizes" else set()
    return frozenset(found | ({"device"} if device else set()) | ({"layout"} if layout else set()))


def make_wrapper_subclass(
    cls: Any, size: Any, strides: Any = None, storage_offset: Any = None, memory_format: Any = None, dtype: Any = None,
    layout: Any = strided, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None, dispatch_device: bool = False, dispatch_layout: bool = False,
    _extra_dispatch_keys: Any = None, storage_size: Any = None,
) -> Any:  # fmt: skip
    """See `Tensor._make_wrapper_subclass`."""
    _class_of_tensors(cls, "_make_wrapper_subclass")
    _refuse("_make_wrapper_subclass", _extra_dispatch_keys=_extra_dispatch_keys, pin_memory=pin_memory or None)
    if memory_format not in (None, contiguous_format, preserve_format):
        raise RuntimeError(f"_make_wrapper_subclass(): give the strides that a tensor in {memory_format} has")
    if not issubclass(cls, DispatchTensor):
        raise TypeError(
            f"{cls.__name__} must define __torch_dispatch__ to have tensors without memory: it says what operators do"
        )
    kind: Any = dtypes.as_numpy_dtype(dtypes.get_default_dtype() if dtype is None else dtype)
    shape = tuple([int(n) for n in size])
    steps = None if strides is None else tuple([int(step) * kind.itemsize for step in strides])
    if steps is not None and len(steps) != len(shape):
        raise RuntimeError(f"_make_wrapper_subclass(): {len(steps)} strides for {len(shape)} dimensions")
    result = new(cls)
    result._vc_ = result._grad_meta_ = result._edge_ = None
    result._memory_ = Wrapped(
        cls, result.__dict__, shape, kind, steps, device=devices.device("cpu" if device is None else device),
        layout=layout, offset=int(storage_offset or 0), size=storage_size,
        asks=_asked(dispatch_sizes_strides_policy, dispatch_device, dispatch_layout),
    )  # fmt: skip
    if requires_grad:
        _want_gradients(result)
    return result


def check_no_other_class(data: Tensor, cls: Any) -> None:
    """Refuse to make a `cls` of a tensor whose own class says what operators do to it."""
    if data._special_ is not None and type(data) is not MetaTensor and not isinstance(data, cls):
        raise RuntimeError(
            f"Creating a new Tensor subclass {cls.__name__} but the raw Tensor object is already associated to a "
            f"python object of type {type(data).__name__}"
        )


def as_special_subclass(view: Tensor, cls: Any) -> Any:
    """`Tensor.as_subclass` where the class, or the tensor, has ``__torch_dispatch__``: `view` is an alias of it."""
    check_no_other_class(view, cls)
    if type(view) is MetaTensor and not issubclass(cls, DispatchTensor):
        result = new(without_values(cls))
        result._memory_ = view._memory_
    else:
        result = new(cls)
        array = _array_of(view)
        result._memory_ = Wrapped(
            cls, result.__dict__, array.shape, array.dtype, array.strides, device=view.device, layout=view.layout,
            array=None if isinstance(array, Description) else array,
        )
    result._vc_, result._grad_meta_, result._edge_ = view._vc_, view._grad_meta_, view._edge_
    return result


def unobserved(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function while no mode, but every other observer, sees the operators in it."""
    state = local.state
    known, before, interceptor = state.known_modes, state.observers, state.interceptor
    others = tuple([observer for observer in before if not isinstance(observer, ModeObserver)])
    state.observers, state.interceptor = others, None if interceptor is None else interceptor_of(others)
    try:
        return function(*args)
    finally:
        state.known_modes, state.observers, state.interceptor = known, before, interceptor
