"""``torch.FloatTensor`` and its like: torch's older names for a dtype, which construct, convert and recognise."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ..core import dtypes
from ..core.layout import strided
from ..core.said_once import say_once
from ..storage import TypedStorage, UntypedStorage
from ..tensor.data import infer_array
from ..tensor.tensor import TYPE_NAMES, Tensor, wrap
from .factories import _is_array, _is_size, _shape, as_tensor, legacy_device


class TensorType(type):
    """The type of ``FloatTensor``: ``isinstance(x, FloatTensor)`` asks for the dtype of `x`.

    >>> import retrograd as torch
    >>> torch.LongTensor([1, 2]), isinstance(torch.ones(1), torch.FloatTensor)
    (tensor([1, 2]), True)
    """

    dtype_name: str
    cuda = False
    is_cuda: property = property(lambda cls: cls.cuda, doc="Are its tensors on a CUDA device?")
    is_sparse = is_xpu = False
    layout = strided

    def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> TensorType:
        if bases:  # a class that inherits from one of them
            raise TypeError(f"type 'torch.{bases[0].__name__}' is not an acceptable base type: use torch.Tensor")
        return super().__new__(mcs, name, bases, space)

    @property
    def dtype(cls) -> dtypes.dtype:
        """The dtype of its tensors."""
        return dtypes.by_name(cls.dtype_name)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.is_cuda is cls.cuda

    def refuse(cls) -> NoReturn:
        """Say that there is no such device."""
        raise TypeError(
            f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA enabled: ask "
            f"torch.cuda.is_available() first, or write torch.{cls.__name__}"
        )

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        if cls.cuda:
            cls.refuse()
        legacy_device(device, args)
        return legacy_new(cls.dtype, *args)

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


def legacy_new(dtype: dtypes.dtype, *args: Any) -> Tensor:
    """A tensor of `dtype` as the older constructors make it: of a size (uninitialised), or of data."""
    if not args:
        return wrap(np.empty((0,), dtype.np))
    if len(args) == 1 and isinstance(args[0], Tensor):
        if args[0].dtype is not dtype:
            raise TypeError(f"expected a tensor of {dtype} (got {args[0].dtype})")
        return wrap(args[0]._numbers_)
    if len(args) == 1 and isinstance(args[0], (TypedStorage, UntypedStorage)):
        return wrap(np.empty((0,), dtype.np)).set_(args[0])  # type: ignore[attr-defined]
    if len(args) == 1 and _is_array(args[0]):
        return as_tensor(args[0], dtype=dtype)
    if len(args) == 1 and isinstance(args[0], (float, np.inexact)):
        kind = type(args[0])
        name = kind.__name__ if kind is float else f"numpy.{kind.__name__}"
        raise TypeError(f"new(): data must be a sequence (got {name})")
    if len(args) == 1 and not _is_size(args[0]) and not hasattr(args[0], "__index__"):
        return wrap(infer_array(args[0], dtype.np, dtypes.default[0]))
    try:
        shape = _shape("new", args)
    except TypeError:
        kinds = ", ".join(type(arg).__name__ for arg in args)
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({kinds}), but expected one of: (), (int, ...), "
            "(tuple of ints size), (Tensor other), (Storage storage), (object data)"
        ) from None
    return wrap(np.empty(shape, dtype.np))


#: By name: FloatTensor, DoubleTensor, LongTensor, ...
TYPES: dict[str, TensorType] = {
    word: TensorType(word, (), {"dtype_name": name, "__module__": "torch", "__doc__": f"A tensor of {name}."})
    for name, word in TYPE_NAMES.items()
}
#: The same on a CUDA device: they recognise its tensors, and make none.
CUDA_TYPES: dict[str, TensorType] = {
    word: TensorType(
        word,
        (),
        {"dtype_name": name, "__module__": "torch.cuda", "cuda": True, "__doc__": f"A tensor of {name} on a GPU."},
    )
    for name, word in TYPE_NAMES.items()
}

#: All of them, as torch lists them.
_tensor_classes: set[TensorType] = {*TYPES.values(), *CUDA_TYPES.values()}

BoolTensor: TensorType = TYPES["BoolTensor"]
ByteTensor: TensorType = TYPES["ByteTensor"]
CharTensor: TensorType = TYPES["CharTensor"]
ShortTensor: TensorType = TYPES["ShortTensor"]
IntTensor: TensorType = TYPES["IntTensor"]
LongTensor: TensorType = TYPES["LongTensor"]
HalfTensor: TensorType = TYPES["HalfTensor"]
BFloat16Tensor: TensorType = TYPES["BFloat16Tensor"]
FloatTensor: TensorType = TYPES["FloatTensor"]
DoubleTensor: TensorType = TYPES["DoubleTensor"]



def set_default_tensor_type(t: Any, /) -> None:
    """Set the default dtype by one of these types or its name; `set_default_dtype` is the better one.

    >>> import retrograd as torch
    >>> torch.set_default_tensor_type("torch.DoubleTensor")
    >>> torch.ones(1).dtype
    torch.float64
    >>> torch.set_default_tensor_type(torch.FloatTensor)
    """
    if isinstance(t, str):
        space, _, word = t.rpartition(".")
        if space == "torch.cuda" and word in TYPES:
            raise TypeError(f"type {t} not available. Torch not compiled with CUDA enabled.")
        if space != "torch" or word not in TYPES:
            raise TypeError(f"invalid type object: there is no {t!r}; write one of {', '.join(TYPES)} after 'torch.'")
        t = TYPES[word]
    if not isinstance(t, TensorType):
        raise TypeError(f"invalid type object: expected a type such as torch.FloatTensor, or its name, but got {t!r}")
    if t.cuda:
        t.refuse()
    say_once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives."
    )
    if not t.dtype.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, not {t.__name__}")
    dtypes.set_default_dtype(t.dtype)


def typename(obj: Any, /) -> str:
    """The name of an object's class, or of a class or function, with its module; of a tensor, that of its type.

    >>> import retrograd as torch
    >>> torch.typename(torch.ones(1)), torch.typename(3)
    ('torch.FloatTensor', 'int')
    """
    if isinstance(obj, Tensor):
        return obj.type()
    thing = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(thing, "__module__", "") or ""
    return thing.__qualname__ if module in ("", "builtins", "__builtin__") else f"{module}.{thing.__qualname__}"


__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor", "set_default_tensor_type", "typename",
]  # fmt: skip
