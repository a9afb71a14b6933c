"""The array class of a recording: an array that tells the recorder what is done to it.

While a step is recorded, tensors hold a `RecordedArray` in place of their array.  It is no NumPy array, so nothing can
compute with its values unnoticed: NumPy's functions and operators come to `__array_ufunc__` and `__array_function__`,
its methods are recorded one by one, kernels are given the array behind it (recording.py), and whoever wants to look at
its values (``item()``, ``if``, ``np.asarray``) gets an error that names the line.  A thread that does not record and
meets one, in a tensor that both use, computes with the array behind it.
"""

from __future__ import annotations

from operator import index
from sys import _getframe
from threading import get_ident
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.where import is_user_code
from .errors import refuse

if TYPE_CHECKING:
    from .recording import Recorder

#: What NumPy answers by the shape alone.
_OF_SHAPES = {np.ndim, np.shape, np.size}
_AS_TENSOR = (
    "keep it a tensor (where(), masks), compute it outside of the captured function, or capture with split=True"
)


#: Ufuncs that have a short way to be recorded (`Recorder.pair`).
PAIRS: tuple[Any, ...] = (np.add, np.subtract, np.multiply, np.true_divide, np.maximum, np.minimum)


class RecordedArray:
    """An array during a recording: `array` is the real one, which the eager run computes with."""

    __slots__ = ("__weakref__", "array", "dtype", "recorder", "shape", "token", "value")

    def __init__(self, array: np.ndarray, recorder: Recorder, value: Any = None) -> None:
        self.array: np.ndarray = array
        self.recorder: Recorder = recorder
        self.value: Any = value
        of = array if value is None else value
        self.shape: tuple[int, ...] = of.shape
        self.dtype: Any = of.dtype

    # --------------------------------------------------------------------------------------------------- what it is

    strides: Any = property(lambda self: self.array.strides)
    ndim: Any = property(lambda self: self.array.ndim)
    size: Any = property(lambda self: self.array.size)
    itemsize: Any = property(lambda self: self.array.itemsize)
    nbytes: Any = property(lambda self: self.array.nbytes)
    flags: Any = property(lambda self: self.array.flags)
    ctypes: Any = property(lambda self: self.array.ctypes)

    @property
    def base(self) -> Any:
        """Whose memory it is, if it is another's: never one that may be kept (Note [Ownership])."""
        return self.array.base

    def __len__(self) -> int:
        return len(self.array)

    def __repr__(self) -> str:
        return f"RecordedArray({self.array.dtype}{list(self.array.shape)})"

    # ------------------------------------------------------------------------------------------- what is done to it

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return self.recorder.ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if function in _OF_SHAPES:
            return function(*unboxed(args), **unboxed(kwargs))
        return self.recorder.call(function, args, kwargs, name=f"np.{function.__name__}")

    def __getitem__(self, key: Any) -> Any:
        recorder = self.recorder
        if get_ident() == recorder.thread:
            found = recorder.getitem(self, key)
            if found is not None:
                return found
        return recorder.call(_getitem, (self, key), {}, name="getitem")

    def __setitem__(self, key: Any, value: Any) -> None:
        self.recorder.write(self, key, value)

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])

    @property
    def T(self) -> Any:
        return self.recorder.call(np.transpose, (self,), {}, name="transpose")

    @property
    def real(self) -> Any:
        return self.recorder.call(_real, (self,), {}, name="real")

    @property
    def imag(self) -> Any:
        return self.recorder.call(_imag, (self,), {}, name="imag")

    def conjugate(self) -> Any:
        return self if self.array.dtype.kind in "fiub" else self.recorder.ufunc(np.conjugate, "__call__", (self,), {})

    conj: Any = conjugate

    def fill(self, value: Any) -> None:
        self.recorder.write(self, ..., value)

    def __deepcopy__(self, memo: Any) -> Any:  # (which a call must not hold)
        return self.recorder.call(np.ndarray.copy, (self, "K"), {}, name="copy")

    # ----------------------------------------------------------------------------------------- what needs its values

    def _interface(self) -> Any:
        if get_ident() != self.recorder.thread:
            return self.array.__array_interface__
        raise refuse("a foreign NumPy call (numpy(), np.asarray), which needs the value of a tensor", _AS_TENSOR)

    def _refused(attribute: str, name: str, read: Any = None) -> Any:  # type: ignore[misc]
        def refused(self: Any, *args: Any, **kwargs: Any) -> Any:
            if get_ident() != self.recorder.thread:
                return getattr(self.array, attribute)(*args, **kwargs)
            if read is not None and (self.recorder.split or (read is bool and _is_a_check(_getframe(1).f_code))):
                return self.recorder.decide(self, read(self.array))
            raise refuse(f"{name}, which needs the value of a tensor", _AS_TENSOR)

        return refused

    item: Any = _refused("item", "item() or control flow on a value (if, while, and, or)", np.ndarray.item)
    tolist: Any = _refused("tolist", "tolist()", np.ndarray.tolist)
    tobytes: Any = _refused("tobytes", "the bytes of a tensor")
    __bool__: Any = _refused("__bool__", "control flow on a value (if, while, and, or)", bool)
    __float__: Any = _refused("__float__", "float()", float)
    __int__: Any = _refused("__int__", "int()", int)
    __complex__: Any = _refused("__complex__", "complex()")
    __index__: Any = _refused("__index__", "an index", index)
    __array__: Any = _refused("__array__", "a foreign NumPy call (numpy(), np.asarray)")
    __dlpack__: Any = _refused("__dlpack__", "an export of memory")
    __dlpack_device__: Any = _refused("__dlpack_device__", "an export of memory")
    data: Any = property(_refused("__array__", "an export of memory"))
    __array_interface__: Any = property(_interface)
    __reduce__: Any = _refused("__reduce__", "pickling")


#: What NumPy's ``**`` is for these exponents, of numbers with a point.
_POWERS: dict[Any, Any] = {0.5: np.sqrt, 1: np.positive, 2: np.square, -1: np.reciprocal}


def _operator(ufunc: Any, reflected: bool = False, in_place: bool = False) -> Any:
    is_pair = ufunc in PAIRS and not in_place
    is_power = ufunc is np.power and not reflected

    def operator(self: Any, other: Any) -> Any:
        if not isinstance(other, (RecordedArray, np.ndarray, np.generic, int, float, complex)):
            return NotImplemented
        operands = (other, self) if reflected else (self, other)
        if is_pair and get_ident() == self.recorder.thread:
            result = self.recorder.pair(ufunc, *operands)
            if result is not None:
                return result
        out = {"out": (self,)} if in_place else {}
        if is_power and other.__class__ in (int, float) and other in _POWERS and self.dtype.kind in "fc":
            return self.recorder.ufunc(_POWERS[other], "__call__", (self,), out)
        return self.recorder.ufunc(ufunc, "__call__", operands, out)

    return operator


def _unary(ufunc: Any) -> Any:
    def operator(self: Any) -> Any:
        return self.recorder.ufunc(ufunc, "__call__", (self,), {})

    return operator


for _name, _ufunc in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "matmul": np.matmul, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift,
}.items():  # fmt: skip
    setattr(RecordedArray, f"__{_name}__", _operator(_ufunc))
    setattr(RecordedArray, f"__r{_name}__", _operator(_ufunc, reflected=True))
    setattr(RecordedArray, f"__i{_name}__", _operator(_ufunc, in_place=True))
for _name, _ufunc in {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}.items():  # fmt: skip
    setattr(RecordedArray, f"__{_name}__", _operator(_ufunc))
for _name, _ufunc in {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}.items():
    setattr(RecordedArray, f"__{_name}__", _unary(_ufunc))
del _name, _ufunc
RecordedArray.__hash__ = object.__hash__  # type: ignore[method-assign]


def unboxed(tree: Any) -> Any:
    """Arguments with the arrays themselves, for a thread that does not record."""
    if tree.__class__ is RecordedArray:
        return tree.array
    if tree.__class__ in (tuple, list):
        return tree.__class__([unboxed(one) for one in tree])
    return {key: unboxed(one) for key, one in tree.items()} if tree.__class__ is dict else tree


def _is_a_check(code: CodeType) -> bool:
    """Is it the package itself that looks, at arguments that it checks, and not a tensor on behalf of the user?"""
    return not is_user_code(code) and not code.co_filename.endswith("conversion.py")


def _method(name: str) -> Any:
    function = getattr(np.ndarray, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.recorder.call(function, (self, *args), kwargs, name=name)

    return method


for _name in (
    "all", "any", "argmax", "argmin", "argsort", "astype", "choose", "clip", "compress", "copy", "cumprod", "cumsum",
    "diagonal", "dot", "flatten", "max", "mean", "min", "nonzero", "prod", "ravel", "repeat", "reshape", "round",
    "searchsorted", "sort", "squeeze", "std", "sum", "swapaxes", "take", "trace", "transpose", "var", "view", "put",
    "byteswap", "partition", "__copy__",
):  # fmt: skip
    setattr(RecordedArray, _name, _method(_name))
del _name


def _getitem(array: np.ndarray, key: Any) -> Any:
    return array[key]


def _real(array: np.ndarray) -> Any:
    return array.real


def _imag(array: np.ndarray) -> Any:
    return array.imag
