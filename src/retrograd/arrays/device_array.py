"""Arrays on a CUDA device: a CuPy array, in the manner of NumPy's.

Note [Arrays of a device]
Kernels are written for NumPy's arrays.  CuPy's are nearly the same, and the differences are met here and in
`numpy_like.py`
alone: a `DeviceArray` has the attributes, methods and operators of a NumPy array and holds the CuPy array (`raw`).

* Each device has a class of its own, so that the class of an array tells the device (core/devices.py); arrays made on a
  stream other than the default one have a class that tells the stream, too.  A node keeps the class of its
  result, as on the CPU, and has its device and stream with it: Note [Streams] in autograd/streams.py.
* A dtype that CuPy does not have (float8, complex32 ...) is held as unsigned integers of its size; `dtype` says what
  it is.
* ``base`` is None for an array that owns its memory, else the array that does.
* What CuPy cannot do at all is done by NumPy on the host, and counted in `on_host`: docs/CUDA.md lists it.
* Nothing turns into a NumPy array unasked: ``np.asarray(x)`` raises.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..core.devices import OutOfMemoryError, device

if TYPE_CHECKING:
    from .places import Place

#: How often which function was computed by NumPy on the host, for want of one on the device.
on_host: Counter[str] = Counter()
#: Why: what the library said when it was last asked for the function.
why: dict[str, str] = {}
_UNSIGNED = {1: np.dtype("u1"), 2: np.dtype("u2"), 4: np.dtype("u4"), 8: np.dtype("u8")}
#: Errors that do not mean that the library cannot do something.
_FINAL = (OutOfMemoryError, MemoryError, KeyboardInterrupt)


class _Flags:
    """The flags of an array, as NumPy has them."""

    __slots__ = ("_raw", "writeable")
    aligned = True
    carray: Any = property(lambda self: self.c_contiguous)

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        #: Nothing protects the memory of a device; a kernel may say that it is to be written to.
        self.writeable: bool = True

    @property
    def c_contiguous(self) -> bool:
        return bool(self._raw.flags.c_contiguous)

    contiguous: Any = c_contiguous

    @property
    def f_contiguous(self) -> bool:
        return bool(self._raw.flags.f_contiguous)

    @property
    def fortran(self) -> bool:
        return self.f_contiguous and not self.c_contiguous

    @property
    def fnc(self) -> bool:
        return self.fortran

    @property
    def forc(self) -> bool:
        return self.f_contiguous or self.c_contiguous

    @property
    def owndata(self) -> bool:
        return self._raw.base is None

    def __getitem__(self, name: str) -> bool:
        return bool(getattr(self, name.lower()))


class _Pointer:
    """Where an array begins: ``a.data.ptr`` as CuPy says it, ``a.ctypes.data`` as NumPy does."""

    __slots__ = ("data", "ptr")

    def __init__(self, address: int) -> None:
        self.data = self.ptr = address


class DeviceArray:
    """An array of a device; see Note [Arrays of a device]. Made by `Place.wrap`."""

    __slots__ = ("__weakref__", "base", "dtype", "raw")
    #: Which device it is, filled in by the class of that device.
    place: Place
    #: The stream on which arrays of this class were made; None: the default one.
    stream: Any = None

    raw: Any
    dtype: np.dtype
    base: Any
    reshape: Any
    transpose: Any
    swapaxes: Any

    __array_priority__ = 1000

    def __new__(
        cls, shape: Any, dtype: Any = float, buffer: Any = None, offset: int = 0, strides: Any = None, order: Any = None
    ) -> Any:
        place = cls.place
        if isinstance(shape, (int, np.integer)):
            shape = (int(shape),)
        dtype = np.dtype(dtype)
        if buffer is None:
            return place.empty(tuple(shape), dtype)
        return buffer.restride(tuple(shape), strides, offset, dtype)

    # ----------------------------------------------------------------------------------------------- what it is

    shape = property(lambda self: self.raw.shape, lambda self, shape: self._set_shape(shape))
    strides = property(lambda self: self.raw.strides)
    size = property(lambda self: self.raw.size)
    ndim = property(lambda self: self.raw.ndim)
    nbytes = property(lambda self: self.raw.nbytes)
    itemsize = property(lambda self: self.raw.itemsize)
    flags = property(lambda self: _Flags(self.raw))
    data = ctypes = property(lambda self: _Pointer(self.raw.data.ptr))
    device = property(lambda self: str(self.place.device))
    stored = property(lambda self: self.raw.dtype is not self.dtype and self.raw.dtype != self.dtype)

    def _set_shape(self, shape: Any) -> None:
        self.raw.shape = shape

    def __len__(self) -> int:
        if not self.raw.ndim:
            raise TypeError("len() of unsized object")
        return self.raw.shape[0]

    def __hash__(self) -> NoReturn:
        raise TypeError(f"unhashable type: {type(self).__name__!r}")

    # ----------------------------------------------------------------------------------------------- to the host

    def get(self) -> np.ndarray:
        """A copy in the host's memory, when everything before it on this stream is done."""
        return self.place.to_host(self)

    def item(self, *index: Any) -> Any:
        return self.get().item(*index)

    def tolist(self) -> Any:
        return self.get().tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        return self.get().tobytes(order)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            f"can't convert {self.place.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
            "host memory first."
        )

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __complex__(self) -> complex:
        return complex(self.get())

    def __index__(self) -> int:
        return operator.index(self.get())

    def __repr__(self) -> str:
        return f"DeviceArray({self.get()!r}, device={str(self.place.device)!r})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.get(), spec)

    def __reduce__(self) -> Any:
        return _on_device, (self.place.device.index, self.get())

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __iter__(self) -> Any:
        if not self.raw.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.raw.shape[0]))

    # ------------------------------------------------------------------------------------------- NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        numpy = self.place.numpy
        found = getattr(numpy, ufunc.__name__, None)
        if found is None or not hasattr(found, method):
            return self.place.by_host(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs)
        self.place.refuse_mixed(ufunc.__name__, inputs)
        return getattr(found, method)(*inputs, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        found: Any = self.place.numpy
        parts = (getattr(function, "__module__", None) or "numpy").split(".")[1:]
        for part in (*[p for p in parts if not p.startswith("_") and p not in ("lib", "core")], function.__name__):
            found = getattr(found, part)
        return found(*args, **kwargs)

    # --------------------------------------------------------------------------------------------------- indexing

    def __getitem__(self, key: Any) -> Any:
        place = self.place
        place.activate()
        try:
            raw = self.raw[place.unwrap_key(key)]
        except _FINAL:
            raise
        except Exception:
            return place.by_host(operator.getitem, (self, key), {})
        return place.wrap_view(raw, self)

    def __setitem__(self, key: Any, value: Any) -> None:
        place = self.place
        place.activate()
        try:
            if value.__class__ is np.ndarray or isinstance(value, (list, tuple)):
                value = place.from_host(np.asarray(value))
            if isinstance(value, DeviceArray):
                if value.dtype != self.dtype and (value.stored or self.stored):
                    value = value.astype(self.dtype)
                value = value.raw
            elif self.stored:
                value = place.from_host(np.asarray(value).astype(self.dtype)).raw
            self.raw[place.unwrap_key(key)] = value
        except _FINAL:
            raise
        except Exception:
            place.by_host(operator.setitem, (self, key, value if value.__class__ is not place.raw_class else
                                             place.wrap(value)), {}, writes=self)  # fmt: skip

    # ------------------------------------------------------------------------------------------ views of the memory

    def restride(self, shape: tuple[int, ...], strides: Any, offset: int = 0, dtype: np.dtype | None = None) -> Any:
        """A view of this memory, from `offset` bytes after its first element on."""
        place = self.place
        place.activate()
        raw = self.raw
        want = place.held_as(self.dtype if dtype is None else dtype)
        if strides is None:
            strides, step = [], want.itemsize
            for n in reversed(shape):
                strides.insert(0, step)
                step *= n
        made = place.module.ndarray(shape, want, raw.data + offset, strides)
        return place.wrap_view(made, self, dtype)

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        if dtype is None or (isinstance(dtype, builtin_type) and issubclass(dtype, DeviceArray)):
            return self.place.wrap_view(self.raw.view(), self, self.dtype)
        dtype = np.dtype(dtype)
        self.place.activate()
        return self.place.wrap_view(self.raw.view(self.place.held_as(dtype)), self, dtype)

    @property
    def T(self) -> Any:
        return self.transpose()

    @property
    def mT(self) -> Any:
        return self.swapaxes(-1, -2)

    @property
    def real(self) -> Any:
        if self.dtype.kind != "c":
            return self
        return self.place.wrap_view(self.raw.real, self)

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        if self.dtype.kind != "c":
            return self.place.numpy.zeros_like(self)
        return self.place.wrap_view(self.raw.imag, self)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    @property
    def flat(self) -> Any:
        return self.reshape(-1)

    # ------------------------------------------------------------------------------------------------------ methods

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return self.copy(order) if copy else self
        place = self.place
        if self.stored or place.held_as(dtype) != dtype:
            return place.by_host(np.ndarray.astype, (self, dtype), {})
        place.activate()
        try:
            return place.wrap(self.raw.astype(dtype, order=order))
        except _FINAL:
            raise
        except Exception:
            return place.by_host(np.ndarray.astype, (self, dtype), {})

    def copy(self, order: str = "C") -> Any:
        self.place.activate()
        return self.place.wrap(self.raw.copy(order), self.dtype)

    def fill(self, value: Any) -> None:
        self[...] = value

    def conj(self) -> Any:
        return self if self.dtype.kind != "c" else self.place.numpy.conjugate(self)

    conjugate = conj

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        self[...] = self.place.numpy.sort(self, axis)

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        """Nothing protects the memory of a device."""

    def dot(self, other: Any, out: Any = None) -> Any:
        return self.place.numpy.dot(self, other, out=out)

    def __dlpack__(self, **options: Any) -> Any:
        self.place.activate()
        return self.raw.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self.raw.__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.raw.__cuda_array_interface__


builtin_type = type


def _on_device(index: int, array: np.ndarray) -> Any:
    return device("cuda", index).place.from_host(array)


def _structural(name: str) -> Callable[..., Any]:
    """A method that moves no element: it is the raw array's, whatever the dtype."""

    def method(self: DeviceArray, *args: Any, **kwargs: Any) -> Any:
        self.place.activate()
        if name == "reshape" and kwargs.get("order") in ("K", None):
            kwargs.pop("order", None)
        args = tuple(tuple(a) if a.__class__ is list else a for a in args)
        return self.place.wrap_view(getattr(self.raw, name)(*args, **kwargs), self)

    method.__name__ = name
    return method


for _name in ("reshape", "transpose", "swapaxes", "squeeze", "ravel", "flatten", "diagonal"):
    setattr(DeviceArray, _name, _structural(_name))


def _function(name: str) -> Callable[..., Any]:
    """A method that is a function of NumPy's by the same name."""

    def method(self: DeviceArray, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.place.numpy, name)(self, *args, **kwargs)

    method.__name__ = name
    return method


for _name in (
    "sum", "prod", "max", "min", "any", "all", "mean", "var", "std", "argmax", "argmin", "argsort", "cumsum", "cumprod",
    "take", "repeat", "nonzero", "clip", "round", "trace", "searchsorted", "argpartition", "compress", "choose",
):  # fmt: skip
    setattr(DeviceArray, _name, _function(_name))


def _operator(ufunc: str, reflected: bool, inplace: bool) -> Callable[..., Any]:
    def method(self: DeviceArray, other: Any) -> Any:
        kind = other.__class__
        if kind is np.ndarray:
            if other.ndim:
                self.place.refuse_mixed(ufunc, (self, other))
        elif not (isinstance(other, (DeviceArray, int, float, complex, np.generic))):
            return NotImplemented
        call = getattr(self.place.numpy, ufunc)
        if inplace:
            return call(self, other, out=self)
        return call(other, self) if reflected else call(self, other)

    return method


_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
}  # fmt: skip
for _short, _ufunc in _BINARY.items():
    setattr(DeviceArray, f"__{_short}__", _operator(_ufunc, False, False))
    setattr(DeviceArray, f"__r{_short}__", _operator(_ufunc, True, False))
    setattr(DeviceArray, f"__i{_short}__", _operator(_ufunc, False, True))
for _short, _ufunc in {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}.items():  # fmt: skip
    setattr(DeviceArray, f"__{_short}__", _operator(_ufunc, False, False))
for _short, _ufunc in {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}.items():
    setattr(DeviceArray, f"__{_short}__", lambda self, ufunc=_ufunc: getattr(self.place.numpy, ufunc)(self))


def arrays_in(values: Iterable[Any]) -> list[DeviceArray]:
    """The arrays of devices among `values`, and in lists among them."""
    found: list[DeviceArray] = []
    for value in values:
        if isinstance(value, DeviceArray):
            found.append(value)
        elif value.__class__ is tuple or value.__class__ is list:
            found.extend(arrays_in(value))
    return found
