"""Factories: tensors from data, filled tensors, ranges.

All take ``dtype=``, ``device=`` and ``requires_grad=`` as torch's do; `random_factories.py` has the random ones.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autograd.forward_operators import forbid_out
from ..autograd.inplace import begin_inplace
from ..core import dtypes
from ..core.devices import CPU, META, as_device, default, pinned
from ..core.devices import device as device_of
from ..core.late import extension
from ..core.layout import strided
from ..core.size import Size
from ..core.state import local
from ..core.where import users_level
from ..kernels.creation import linspace as points_between
from ..kernels.memory import clone
from ..kernels.promotion import cast_number, complex_dtype, element, refuse_stored, scalar_name
from ..kernels.storage import dense_like, restride
from ..storage import TypedStorage, UntypedStorage
from ..tensor import Tensor, new, wrap
from ..tensor.data import infer_array
from ..tensor.dlpack import from_dlpack, lends_memory
from ..tensor.meta import MetaArray, meta_tensor
from ..tensor.special import like_array, operate_on_special
from .registry import SPACES, composite
from .support import int_tuple, store
from .uninitialized import fill, memory


def on_meta(device: Any) -> bool:
    """Is a tensor to be made on meta, without values?"""
    if device is None:
        device = default.device
        if device is None:
            return False
    return device is not HERE and as_device(device).type == "meta"


#: In place of a device: where the values are already.
HERE: Any = object()


def library(device: Any) -> Any:
    """NumPy, or what stands for it on a device."""
    if device is None:
        device = default.device
        if device is None:
            return np
    place = as_device(device).place
    return np if place is None else place.numpy


def moved(array: Any, device: Any) -> Any:
    """An array where a factory was told to make it."""
    if device is None:
        device = default.device
    if device is None or device is HERE:
        return array
    place = as_device(device).place
    if place is not None:
        # What was made of numbers is a constant of a graph that is captured; what was drawn is refused there.
        return place.from_host(array) if array.__class__ is np.ndarray else place.take(array)
    return array if array.__class__ is np.ndarray or not hasattr(array, "place") else array.get()


def without_values(shape: tuple[int, ...], np_dtype: np.dtype, requires_grad: bool, kw: dict) -> Tensor:
    """Finish a factory of tensors of a given size on meta."""
    return _out(np.broadcast_to(np.empty((), np_dtype), shape), requires_grad, META, kw)


def legacy_device(given: Any, args: tuple[Any, ...] = ()) -> None:
    """Refuse to make a tensor anywhere else, or of another one, in the words of the older constructors."""
    if given is not None and len(args) == 1 and isinstance(args[0], Tensor):
        raise RuntimeError(
            "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  Use "
            "torch.tensor(...) or torch.as_tensor(...) instead."
        )
    found = None if given is None else device_of(given).type
    if found not in (None, "cpu"):
        raise RuntimeError(f"legacy constructor expects device type: cpu but device type: {found} was passed")


def _finish(array: Any, requires_grad: bool, device: Any = None) -> Tensor:
    meta = False
    if device is not HERE and (device is not None or default.device is not None):
        meta = on_meta(device)
        array = array if meta else moved(array, device)
    if requires_grad is not False and requires_grad is not None and not isinstance(requires_grad, bool):
        raise TypeError(f"argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
    result = meta_tensor(MetaArray.like(array)) if meta else wrap(array, local.state.new_vc)
    if requires_grad:
        if array.dtype.kind not in "fcVW":
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients; this one would have dtype "
                f"{result.dtype}"
            )
        result.requires_grad_()
    return result


def _shape(name: str, size: tuple) -> tuple[int, ...]:
    shape = int_tuple(name, "size", 1, size)
    for n in shape:
        if n < 0:
            if name == "zeros":
                raise RuntimeError(f"zeros: Dimension size must be non-negative. Got {list(shape)}")
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    return shape


def _float_dtype(dtype: Any) -> np.dtype:
    return dtypes.default[0] if dtype is None else dtypes.as_numpy_dtype(dtype)  # type: ignore[return-value]


# ------------------------------------------------------------------------------------------------------------ from data


@composite(method=False)
def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new tensor with a copy of `data`: a number, nested lists, an array or a tensor.

    >>> import retrograd as torch
    >>> torch.tensor([[1, 2], [3, 4]]).dtype
    torch.int64
    """
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=users_level(),
        )
    try:
        array = infer_array(data, dtypes.as_numpy_dtype(dtype), dtypes.default[0])
    except RuntimeError:
        if not lends_memory(data):
            raise
        array = infer_array(from_dlpack(data), dtypes.as_numpy_dtype(dtype), dtypes.default[0])
    return _finish(pinned(array) if pin_memory else array, requires_grad, device)


@composite(method=False)
def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **kw: Any) -> Tensor:
    """A 0-d tensor of the default dtype."""
    return _out(element(s, _float_dtype(dtype)), requires_grad, device, kw)


@composite(method=False)
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` as a tensor, sharing memory with an array or a tensor where it can.

    >>> import retrograd as torch
    >>> x = torch.ones(2)
    >>> torch.as_tensor(x) is x
    True
    """
    np_dtype = dtypes.as_numpy_dtype(dtype)
    if on_meta(device) and not (isinstance(data, Tensor) and device is None):
        data = data if isinstance(data, Tensor) else tensor(data, dtype=dtype, device=CPU)
        return data.to(META, dtype)
    if isinstance(data, Tensor):
        if device is not None and data.is_meta:
            data = data.to(device)  # which refuses
        return data if np_dtype is None or data._memory_.dtype == np_dtype else data.to(dtype)
    if isinstance(data, np.ndarray):
        result = from_numpy(data)
        return result if np_dtype is None or data.dtype == np_dtype else result.to(dtype)
    if lends_memory(data):
        return as_tensor(from_dlpack(data), dtype, device)
    return tensor(data, dtype=dtype, device=device)


@composite(method=False)
def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """`obj` as a tensor: shared if `copy` is not True and it can be, and refused if it is False and it cannot.

    Bytes, and other buffers, become a vector of `dtype`. A tensor keeps its history unless `requires_grad` is False.

    >>> import retrograd as torch
    >>> torch.asarray(bytearray(4), dtype=torch.int16)
    tensor([0, 0], dtype=torch.int16)
    """
    is_array = isinstance(obj, (Tensor, np.ndarray))
    if not is_array and not isinstance(obj, np.generic):
        if lends_memory(obj):
            obj, is_array = from_dlpack(obj), True
        elif _is_buffer(obj):
            memory = view_of_buffer(obj, dtypes.get_default_dtype() if dtype is None else dtype, -1, 0)
            obj, is_array = wrap(memory), True
    if copy is False:
        _check_shareable(obj, is_array, dtype, device)
    result = as_tensor(obj, dtype, device)
    if copy and is_array and result.data_ptr() == (obj if isinstance(obj, Tensor) else wrap(obj)).data_ptr():
        result = result.clone()
    if requires_grad is None:
        return result
    if requires_grad is False:
        return result.detach() if result.requires_grad else result
    return result if result.requires_grad else result.requires_grad_()


def _is_buffer(obj: Any) -> bool:
    """Is it bytes-like, as Python's buffer protocol has it?"""
    if isinstance(obj, (list, tuple, int, float, complex)) or hasattr(obj, "__dlpack__"):
        return False
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def _check_shareable(obj: Any, is_array: bool, dtype: Any, device: Any) -> None:
    """Can `asarray` share the memory of `obj`?"""
    if isinstance(obj, np.generic):
        raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray.")
    if not is_array and not hasattr(obj, "__dlpack__"):
        raise ValueError("can't alias arbitrary sequence into a tensor: leave copy=False out")
    own = getattr(obj, "_memory_", obj)
    wanted = dtypes.as_numpy_dtype(dtype)
    if is_array and wanted is not None and own.dtype != wanted:
        raise ValueError(
            f"can't alias tensor with dtype '{scalar_name(own.dtype)}' into dtype '{scalar_name(wanted)}': leave "
            "copy=False out"
        )
    here = obj.device.type if isinstance(obj, Tensor) else "cpu"
    if device is not None and as_device(device).type != here:
        raise ValueError(f"can't alias tensor from device '{here}' to '{device}': leave copy=False out")


def view_of_buffer(buffer: Any, dtype: Any, count: int, offset: int) -> np.ndarray:
    """The memory of a bytes-like object, as an array of `dtype`."""
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    size, item = view.nbytes, dtype.itemsize
    if not size or count == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes)"
        )
    if count < 0 and (size - offset) % item:
        raise ValueError(
            f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({item})"
        )
    if count > 0 and offset + count * item > size:
        raise ValueError(
            f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({size} bytes)"
        )
    if view.readonly:
        warnings.warn(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means writing "
            "to this tensor will result in undefined behavior: copy the buffer, bytearray(buffer), if you mean to.",
            UserWarning,
            stacklevel=users_level(),
        )
    return np.frombuffer(buffer, dtype.np, count, offset)


@composite(method=False, bare=True)
def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor on the memory of a NumPy array.

    >>> import numpy, retrograd as torch
    >>> a = numpy.zeros(2)
    >>> t = torch.from_numpy(a)
    >>> a[0] = 5; t
    tensor([5., 0.], dtype=torch.float64)
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    dtypes.from_numpy_dtype(array.dtype)
    if any(step < 0 for step in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array with array.copy().)"
        )
    if any(step % array.itemsize for step in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the "
            "memory: array.copy()"
        )
    if not array.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means "
            "writing to this tensor will result in undefined behavior: copy the array first if you mean to write.",
            UserWarning,
            stacklevel=users_level(),
        )
    return wrap(array if array.__class__ is np.ndarray else array.view(np.ndarray))


def legacy_tensor(cls: type, *args: Any, device: Any = None) -> Tensor:
    """``Tensor(2, 3)``: uninitialised; ``Tensor([1., 2.])``: the data in the default dtype."""
    legacy_device(device, args)
    if len(args) == 1 and isinstance(args[0], Tensor) and cls is not Tensor:
        return args[0].as_subclass(cls)  # type: ignore[attr-defined]
    if cls._special_ is not None:  # type: ignore[attr-defined]
        return extension("subclasses").make_subclass(cls, legacy_tensor(Tensor, *args))
    result: Tensor = new(cls)
    result._vc_ = None
    result._grad_meta_ = None
    result._edge_ = None
    if len(args) == 1 and isinstance(args[0], Tensor):
        result._numbers_ = args[0]._numbers_
    elif len(args) == 1 and isinstance(args[0], (TypedStorage, UntypedStorage)):
        result._numbers_ = wrap(np.empty((0,), dtypes.default[0])).set_(args[0])._memory_  # type: ignore[attr-defined]
    elif len(args) == 1 and _is_array(args[0]):
        result._numbers_ = as_tensor(args[0], dtypes.get_default_dtype())._numbers_
    elif len(args) == 1 and isinstance(args[0], (list, tuple)) and not _is_size(args[0]):
        result._numbers_ = infer_array(args[0], dtypes.default[0], dtypes.default[0])
    elif not args:
        result._numbers_ = np.empty((0,), dtypes.default[0])
    else:
        result._numbers_ = memory.empty(_shape("new", args), dtypes.default[0])
    return result


def _is_size(value: Any) -> bool:
    return isinstance(value, Size)


def _is_array(value: Any) -> bool:
    """An array of data for an older constructor, which shares its memory where the dtype is right: a 0-d one of an
    integer is a size."""
    return isinstance(value, np.ndarray) and (value.ndim > 0 or value.dtype.kind not in "iu")


# --------------------------------------------------------------------------------------------------------------- filled


@composite(method=False)
def zeros(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **kw: Any) -> Tensor:
    """Zeros of a given size.

    >>> import retrograd as torch
    >>> torch.zeros(2, 2)
    tensor([[0., 0.],
            [0., 0.]])
    """
    if kw and kw.get("layout") not in (None, strided):
        return _sparse_zeros(_size("zeros", size, kw), dtype, requires_grad, device, kw)
    if device is None and default.device is None:
        array = np.zeros(_size("zeros", size, kw), _float_dtype(dtype))
        return _out(array, requires_grad, HERE, kw, dtype) if kw else _finish(array, requires_grad, HERE)
    return _elsewhere("zeros", size, dtype, device, requires_grad, kw)


@composite(method=False)
def ones(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **kw: Any) -> Tensor:
    """Ones of a given size."""
    if device is None and default.device is None:
        array = np.ones(_size("ones", size, kw), _float_dtype(dtype))
        return _out(array, requires_grad, HERE, kw, dtype) if kw else _finish(array, requires_grad, HERE)
    return _elsewhere("ones", size, dtype, device, requires_grad, kw)


@composite(method=False)
def empty(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **kw: Any) -> Tensor:
    """Uninitialised memory of a given size."""
    if kw and kw.get("layout") not in (None, strided):
        return _sparse_zeros(_size("empty", size, kw), dtype, requires_grad, device, kw)
    if device is None and default.device is None:
        asked = dtype if "out" not in kw else _target_dtype(dtype, kw)
        array = memory.empty(_size("empty", size, kw), _float_dtype(asked))
        return _out(array, requires_grad, HERE, kw, dtype) if kw else _finish(array, requires_grad, HERE)
    return _elsewhere("empty", size, dtype, device, requires_grad, kw)


def _size(name: str, size: tuple, kw: dict) -> tuple[int, ...]:
    if kw and "size" in kw:
        size = (kw["size"],)
    elif not size:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    return _shape(name, size)


def _elsewhere(name: str, size: tuple, dtype: Any, device: Any, requires_grad: bool, kw: dict) -> Tensor:
    """What a factory makes on a device that was named, in the call or before it."""
    shape, np_dtype = _size(name, size, kw), _float_dtype(_target_dtype(dtype, kw))
    if on_meta(device):
        return without_values(shape, np_dtype, requires_grad, kw)
    array = getattr(library(device), name)(shape, np_dtype)
    if name == "empty" and memory.fills:
        fill(array)
    return _out(array, requires_grad, device, kw, dtype)


def _sparse_zeros(size: Any, dtype: Any, requires_grad: bool, device: Any, kw: dict) -> Tensor:
    """A sparse tensor without values."""
    if kw.get("out") is not None:
        _check_beside(kw["out"], dtype, device, kw)
    made = SPACES["torch"]["sparse_coo_tensor"](size, dtype=dtype, device=device)
    return made.to_sparse(layout=kw["layout"]).requires_grad_(requires_grad)


def _out(array: Any, requires_grad: bool, device: Any, kw: dict, dtype: Any = None, warn: bool = False) -> Tensor:
    """Finish a factory; `kw` may hold out=, layout=, pin_memory= and memory_format=; `dtype` is what was asked for.
    `warn`: an out= with elements that is resized is warned of."""
    if not kw:
        return _finish(array, requires_grad, device)
    unknown = set(kw) - {"size", "out", "layout", "pin_memory", "memory_format"}
    if unknown:
        raise TypeError(f"unexpected keyword argument '{sorted(unknown)[0]}'")
    if kw.get("pin_memory"):
        array = pinned(array)
    out = kw.get("out")
    if out is not None:
        _check_beside(out, dtype, device, kw)
    if kw.get("layout") not in (None, strided):
        raise NotImplementedError(
            f"Could not run 'aten::fill_.Scalar' for a tensor of layout {kw['layout']}: make a plain one, and write "
            "x.to_sparse()"
        )
    memory_format = kw.get("memory_format")
    if memory_format is not None and "preserve" not in str(memory_format):
        array = clone(array, memory_format)
    if out is not None:
        forbid_out("this factory", (out,))
        begin_inplace(local.state, out, out.requires_grad)
        return store(out, array, warn)
    return _finish(array, requires_grad, device)


def _check_beside(out: Tensor, dtype: Any, device: Any, kw: dict) -> None:
    """What a factory is told beside ``out=`` has to be true of it."""
    if dtype is not None and dtypes.as_numpy_dtype(dtype) != out._memory_.dtype:
        asked = scalar_name(dtypes.as_numpy_dtype(dtype))  # type: ignore[arg-type]
        raise RuntimeError(
            f"dtype {asked} does not match dtype of out parameter ({scalar_name(out._memory_.dtype)}): leave dtype= out"
        )
    kind = None if device is None or device is HERE else as_device(device).type
    if kind is not None and kind != out.device.type:
        raise RuntimeError(f"device type {kind} does not match device type of out parameter ({out.device.type})")
    layout = kw.get("layout")
    if layout is not None and layout is not out.layout:
        raise RuntimeError(f"layout {layout} does not match layout of out parameter ({out.layout})")


def _as_out_lies(array: Any, kw: dict, warn: bool = False) -> Any:
    """The elements of a range in the shape of ``out=``, if that has as many; `warn`: if it has others, say so."""
    out = kw.get("out")
    if out is None:
        return array
    count = out._memory_.size
    if warn and count and count != array.size:
        warnings.warn(
            f"The number of elements in the out tensor of shape {list(out._memory_.shape)} is {count} which does not "
            f"match the computed number of elements {array.size}. Note that this may occur as a result of rounding "
            f"error. The out tensor will be resized to a tensor of shape ({array.size},).",
            UserWarning,
            stacklevel=users_level(),
        )
    return array if count != array.size else array.reshape(out._memory_.shape)


def _dtype_of_number(value: Any) -> np.dtype:
    """The dtype that `full` infers: complex numbers beside a small default dtype are complex64."""
    if isinstance(value, complex) and dtypes.default[0].itemsize < 8:
        return np.dtype(np.complex64)
    return infer_array(value, None, dtypes.default[0]).dtype


@composite(method=False)
def full(
    size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **kw: Any
) -> Tensor:
    """A tensor of `size` with every element `fill_value`, whose type gives the dtype.

    >>> import retrograd as torch
    >>> torch.full((2,), 7)
    tensor([7, 7])
    """
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    np_dtype = dtypes.as_numpy_dtype(dtype)
    if np_dtype is None:
        out = kw.get("out") if kw else None
        np_dtype = _dtype_of_number(fill_value) if out is None else out._memory_.dtype
    shape = (size,) if isinstance(size, int) else tuple(size)
    if on_meta(device):
        return without_values(_shape("full", shape), np_dtype, requires_grad, kw)
    return _out(
        library(device).full(_shape("full", shape), cast_number(fill_value, np_dtype)), requires_grad, device, kw, dtype
    )


def _like(input: Tensor, dtype: Any) -> np.dtype:
    if not isinstance(input, Tensor):
        raise TypeError(f"argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input._memory_.dtype if dtype is None else dtypes.as_numpy_dtype(dtype)  # type: ignore[return-value]


def _laid_out(input: Tensor, np_dtype: np.dtype) -> np.ndarray:
    """An array in the order of dimensions that a new one like `input` has; its values do not matter.

    NumPy takes a dimension that was expanded for the innermost one, torch leaves it where it stands."""
    data = like_array(input)
    return data if 0 not in data.strides else dense_like(data, np_dtype)


def _by_class(function: Callable[..., Any], input: Tensor, *args: Any, **options: Any) -> Any:
    """What the class of a special tensor makes of ``function(input)``, for who calls it by way of no wrapper."""
    return operate_on_special(function, (input, *args), {k: v for k, v in options.items() if v is not None})


@composite(method=False)
def zeros_like(
    input: Tensor, *, dtype: Any = None, requires_grad: bool = False, device: Any = None, **kw: Any
) -> Tensor:
    """Zeros of the same size and dtype."""
    if isinstance(input, Tensor) and input._special_ is not None:
        own = _by_class(zeros_like, input, dtype=dtype, requires_grad=requires_grad or None, device=device, **kw)
        if own is not NotImplemented:
            return own
    np_dtype = _like(input, dtype)
    return _out(np.zeros_like(_laid_out(input, np_dtype), np_dtype), requires_grad, device or HERE, kw)


@composite(method=False)
def ones_like(
    input: Tensor, *, dtype: Any = None, requires_grad: bool = False, device: Any = None, **kw: Any
) -> Tensor:
    """Ones of the same size and dtype."""
    if isinstance(input, Tensor) and input._special_ is not None:
        own = _by_class(ones_like, input, dtype=dtype, requires_grad=requires_grad or None, device=device, **kw)
        if own is not NotImplemented:
            return own
    np_dtype = _like(input, dtype)
    return _out(np.ones_like(_laid_out(input, np_dtype), np_dtype), requires_grad, device or HERE, kw)


@composite(method=False)
def empty_like(
    input: Tensor, *, dtype: Any = None, requires_grad: bool = False, device: Any = None, **kw: Any
) -> Tensor:
    """Uninitialised memory of the same size and dtype."""
    if isinstance(input, Tensor) and input._special_ is not None:
        own = _by_class(empty_like, input, dtype=dtype, requires_grad=requires_grad or None, device=device, **kw)
        if own is not NotImplemented:
            return own
    np_dtype = _like(input, dtype)
    return _out(memory.empty_like(_laid_out(input, np_dtype), np_dtype), requires_grad, device or HERE, kw)


@composite(method=False)
def full_like(
    input: Tensor, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False, device: Any = None, **kw: Any
) -> Tensor:
    """The same size and dtype, filled with one value."""
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    np_dtype = _like(input, dtype)
    array = np.full_like(_laid_out(input, np_dtype), cast_number(fill_value, np_dtype), np_dtype)
    return _out(array, requires_grad, device or HERE, kw)


@composite(method=False)
def empty_strided(
    size: Sequence[int], stride: Sequence[int], *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    **kw: Any,
) -> Tensor:  # fmt: skip
    """Uninitialised memory with the given strides (in elements)."""
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    if any(n < 0 for n in size) or any(s < 0 for s in stride):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    np_dtype = _float_dtype(dtype)
    length = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if all(size) else 0
    steps = tuple(s * np_dtype.itemsize for s in stride)
    if on_meta(device):
        return meta_tensor(MetaArray.strided(tuple(size), np_dtype, steps)).requires_grad_(requires_grad)
    array = restride(memory.empty(length, np_dtype), tuple(size), steps)
    return _out(array, requires_grad, device, kw)


@composite(method=False)
def eye(
    n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **kw: Any
) -> Tensor:
    """Ones on the diagonal."""
    for name, value in (("n", n), ("m", m)):
        if value is not None and value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    np_dtype = _float_dtype(dtype)
    refuse_stored("eye", np_dtype, but="fV")
    if on_meta(device):
        return without_values((n, n if m is None else m), np_dtype, requires_grad, kw)
    return _out(np.eye(n, m, dtype=np_dtype), requires_grad, device, kw, dtype)


# -------------------------------------------------------------------------------------------------------------- ranges


@composite(method=False)
def arange(
    start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, **kw: Any,
) -> Tensor:  # fmt: skip
    """``start, start + step, ...`` up to but not including `end`.

    >>> import retrograd as torch
    >>> torch.arange(3), torch.arange(0, 1, 0.5)
    (tensor([0, 1, 2]), tensor([0.0000, 0.5000]))
    """
    if end is None:
        start, end = 0, start
    start, end, step = (v.item() if isinstance(v, Tensor) else v for v in (start, end, step))
    np_dtype = _target_dtype(dtype, kw)
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if np_dtype == np.int64:
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise ValueError("step must be nonzero: a fraction becomes 0 as an integer")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if np_dtype is None:
        integers = all(isinstance(v, int) for v in (start, end, step))
        np_dtype = np.dtype(np.int64) if integers else dtypes.default[0]
    refuse_stored("arange_cpu", np_dtype)
    if np_dtype.kind in "bc":
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{scalar_name(np_dtype)}'")
    count = math.ceil((end - start) / step)
    if count > 2**63 - 1:
        raise RuntimeError(f"invalid size, possible overflow? The range has {count:.3g} elements")
    if all(isinstance(v, int) for v in (start, end, step)):
        values = np.arange(start, end, step)
    else:
        values = start + step * np.arange(count)
    return _out(_as_out_lies(values.astype(np_dtype), kw, warn=True), requires_grad, device, kw, dtype)


@composite(method=False)
def range(start: Any, end: Any, step: Any = 1, **kw: Any) -> Tensor:
    """`arange` that includes `end`; deprecated, as in torch."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=users_level(),
    )
    kw["dtype"] = kw.get("dtype") or dtypes.get_default_dtype()
    count = math.floor((end - start) / step) + 1 if step else 0
    return arange(start, start + count * step, step, **kw)


def _target_dtype(dtype: Any, kw: dict) -> np.dtype | None:
    """The dtype that was asked for: that of ``out=`` where there is one."""
    out = kw.get("out")
    return dtypes.as_numpy_dtype(dtype) if out is None else out._memory_.dtype


def _ends(name: str, start: Any, end: Any, steps: int, dtype: np.dtype | None) -> tuple[Any, Any, np.dtype]:
    """The ends of a range as numbers, cut to integers for an integral dtype, and its dtype."""
    if not isinstance(steps, int):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({type(start).__name__}, "
            f"{type(end).__name__}, {type(steps).__name__}): steps must be int"
        )
    if steps < 0:
        raise RuntimeError(f"number of steps must be non-negative, got {steps}")
    sizes = [v.ndim if isinstance(v, Tensor) else 0 for v in (start, end)]
    if any(sizes):
        raise RuntimeError(
            f"{name} only supports 0-dimensional start and end tensors, but got start with {sizes[0]} dimension(s) and "
            f"end with {sizes[1]} dimension(s)."
        )
    start, end = (v.item() if isinstance(v, Tensor) else v for v in (start, end))
    np_dtype = dtypes.default[0] if dtype is None else dtype
    if dtype is None and (isinstance(start, complex) or isinstance(end, complex)):
        np_dtype = complex_dtype(np_dtype)
    elif np_dtype.kind != "c" and (isinstance(start, complex) or isinstance(end, complex)):
        raise RuntimeError(
            f"torch.{name}(): inferred dtype {scalar_name(dtypes.default[1])} can't be safely cast to passed dtype "
            f"{scalar_name(np_dtype)}"
        )
    if np_dtype.kind == "b":
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'")
    refuse_stored(f"{name}_cpu", np_dtype)
    return (int(start), int(end), np_dtype) if np_dtype.kind in "iu" else (start, end, np_dtype)


@composite(method=False)
def linspace(
    start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **kw: Any
) -> Tensor:
    """`steps` points from `start` to `end`, both included."""
    start, end, np_dtype = _ends("linspace", start, end, steps, _target_dtype(dtype, kw))
    values = points_between(start, end, steps, np_dtype)
    return _out(_as_out_lies(values, kw), requires_grad, device, kw, dtype)


@composite(method=False)
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, **kw: Any,
) -> Tensor:  # fmt: skip
    """`steps` points from ``base**start`` to ``base**end``."""
    start, end, np_dtype = _ends("logspace", start, end, steps, _target_dtype(dtype, kw))
    values = (base ** np.linspace(start, end, steps)).astype(np_dtype)
    return _out(_as_out_lies(values, kw), requires_grad, device, kw, dtype)
