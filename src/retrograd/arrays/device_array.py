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
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..core.devices import OutOfMemoryError, device
from .capturing import FROM_HOST, VALUES, NotCapturable, capturing, refuse_if_captured
from .own.launching import contiguous
from .own.pending import Pending, compute, transposed
from .own.updates import takes

if TYPE_CHECKING:
    from .places import Place

#: How often which function was computed by NumPy on the host, for want of one on the device.
on_host: Counter[str] = Counter()
#: Why: what the library said when it was last asked for the function.
why: dict[str, str] = {}
_UNSIGNED = {1: np.dtype("u1"), 2: np.dtype("u2"), 4: np.dtype("u4"), 8: np.dtype("u8")}
#: Errors that do not mean that the library cannot do something.
_FINAL = (OutOfMemoryError, MemoryError, KeyboardInterrupt, NotCapturable)


class _Flags:
    """The flags of an array, as NumPy has them."""

    __slots__ = ("_array", "writeable")
    aligned = True
    carray: Any = property(lambda self: self.c_contiguous)

    def __init__(self, array: Any) -> None:
        self._array = array
        #: Nothing protects the memory of a device; a kernel may say that it is to be written to.
        self.writeable: bool = True

    @property
    def c_contiguous(self) -> bool:
        array = self._array
        return _in_order(zip(reversed(array.shape), reversed(array.strides)), array.dtype.itemsize)

    contiguous: Any = c_contiguous

    @property
    def f_contiguous(self) -> bool:
        array = self._array
        return _in_order(zip(array.shape, array.strides), array.dtype.itemsize)

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
        return self._array.base is None

    def __getitem__(self, name: str) -> bool:
        return bool(getattr(self, name.lower()))


def _in_order(dimensions: Iterable[tuple[int, int]], step: int) -> bool:
    """Does each dimension follow the one before, in memory? As NumPy has it, one of an array without elements does."""
    follows = True
    for n, stride in dimensions:
        if n == 0:
            return True
        if n != 1:
            follows = follows and stride == step
            step *= n
    return follows


class _Pointer:
    """Where an array begins: ``a.data.ptr`` as CuPy says it, ``a.ctypes.data`` as NumPy does."""

    __slots__ = ("data", "ptr")

    def __init__(self, address: int) -> None:
        self.data = self.ptr = address


class DeviceArray:
    """An array of a device; see Note [Arrays of a device]. Made by `Place.wrap`."""

    __slots__ = ("__weakref__", "_raw", "base", "block", "dtype", "ptr", "shape", "strides")
    #: Which device it is, filled in by the class of that device.
    place: Place
    #: The stream on which arrays of this class were made; None: the default one.
    stream: Any = None
    #: The same as the driver of CUDA takes it.
    stream_pointer: Any = None

    dtype: np.dtype
    base: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    #: The library's array, made when it is asked for, and what holds the memory until then.
    _raw: Any
    block: Any
    #: Where it begins.
    ptr: int
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

    @property
    def raw(self) -> Any:
        """The library's array."""
        raw = self._raw
        if raw is None or raw.__class__ is Pending:
            raw = self._raw = self.place.raw_of(self)
        return raw

    def __getattr__(self, name: str) -> Any:
        """The address and the memory of what is yet to be computed: Note [Pending gradients] in own/pending.py."""
        if name == "ptr" or name == "block":
            compute(self)
            return getattr(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def own(self) -> None:
        """Of a new array that was made as a view of another, which nobody else has: let the memory be its own."""
        if self.base is not None:
            self.block = self.base.block
            if self.block is None:
                self.raw  # noqa: B018  (which holds the memory)
            self.base = None

    size: property = property(lambda self: prod(self.shape))
    ndim: property = property(lambda self: len(self.shape))
    nbytes: property = property(lambda self: prod(self.shape) * self.dtype.itemsize)
    itemsize: property = property(lambda self: self.dtype.itemsize)
    flags: property = property(_Flags)
    data: property = property(lambda self: _Pointer(self.ptr))
    ctypes: property = data
    device: property = property(lambda self: str(self.place.device))

    def updates(self, row: list[Any]) -> bool:
        """Has a row of an optimizer's arrays, of which this is the parameter, kernels of our own?"""
        return takes(row)

    @property
    def stored(self) -> bool:
        """Is it held as integers, for want of its dtype?"""
        held = self.place.held_as(self.dtype)
        return held is not self.dtype and held != self.dtype

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

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
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

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
        if key.__class__ is tuple:
            made = self._sliced(key)
            if made is not None:
                return made
        place.activate()
        if capturing and any(one.dtype.kind == "b" for one in arrays_in((key,))):
            refuse_if_captured(place, "an index of booleans, which decide the shape of the result", VALUES)
        try:
            raw = self.raw[place.unwrap_key(key)]
        except _FINAL:
            raise
        except Exception:
            return place.by_host(operator.getitem, (self, key), {})
        return place.wrap_view(raw, self)

    def _sliced(self, key: tuple[Any, ...]) -> Any:
        """A view by slices without steps, which the library need not be asked for; None if the key is another one."""
        strides = self.strides
        if len(key) > len(strides) or 0 in self.shape:
            return None
        shape, offset = list(self.shape), 0
        for d, one in enumerate(key):
            if one.__class__ is not slice:
                return None
            start, stop, step = one.indices(shape[d])
            if step != 1 or stop <= start:
                return None
            shape[d] = stop - start
            offset += start * strides[d]
        return self.place.view_of(self, tuple(shape), strides, offset)

    def __setitem__(self, key: Any, value: Any) -> None:
        place = self.place
        if key is Ellipsis and place.cast is not None and self._takes(value):
            return
        place.activate()
        try:
            if value.__class__ is np.ndarray or isinstance(value, (list, tuple)):
                if capturing and value.__class__ is np.ndarray and value.ndim:
                    refuse_if_captured(place, "a copy from the host", FROM_HOST)
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

    def _takes(self, value: Any) -> bool:
        """Write an array or a number everywhere, by one of our kernels; False if it is nothing for them."""
        place = self.place
        assert place.cast is not None
        if isinstance(value, DeviceArray):
            if value.place is not place or len(value.shape) > len(self.shape):
                return False
            if value.shape != self.shape:
                lead = len(self.shape) - len(value.shape)
                if any(n not in (1, m) for n, m in zip(value.shape, self.shape[lead:])):
                    return False
                strides = [0 if n == 1 else s for n, s in zip(value.shape, value.strides)]
                value = place.view_of(value, self.shape, (*[0] * lead, *strides))
            return place.cast(value, self.dtype, self) is not None
        if value.__class__ is np.ndarray and not value.ndim and value.dtype.char in "?bBhHiIlLqQefd":
            value = value.item()
        if value.__class__ in (int, float, bool, np.float32, np.float64) and place.filling is not None:
            return place.filling.many((self,), self, float(value)) is not None
        return False

    # ------------------------------------------------------------------------------------------ views of the memory

    def restride(self, shape: tuple[int, ...], strides: Any, offset: int = 0, dtype: np.dtype | None = None) -> Any:
        """A view of this memory, from `offset` bytes after its first element on."""
        dtype = self.dtype if dtype is None else dtype
        if strides is None:
            strides = contiguous(shape, dtype.itemsize)
        return self.place.view_of(self, shape, tuple(strides), offset, dtype)

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
        if place.cast is not None and order == "K" and (made := place.cast(self, dtype)) is not None:
            return made
        place.activate()
        try:
            return place.wrap(self.raw.astype(dtype, order=order))
        except _FINAL:
            raise
        except Exception:
            return place.by_host(np.ndarray.astype, (self, dtype), {})

    def copy(self, order: str = "C") -> Any:
        place = self.place
        if place.cast is not None and order == "C":
            made = place.fresh(self.shape, contiguous(self.shape, self.itemsize), self.dtype, self.nbytes)
            if place.cast(self, self.dtype, made) is not None:
                return made
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
        if self.ndim == 2 and isinstance(other, DeviceArray) and out is None:
            made = self.place.product(self, other)
            if made is not None:
                return made
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
_reshape_otherwise: Any = DeviceArray.reshape
#: Shape and strides of views by another shape, by what they are made of.
_views: dict[Any, tuple[tuple[int, ...], tuple[int, ...]]] = {}
_MOST_VIEWS = 4096


def _reshape(self: DeviceArray, *shape: Any, **kwargs: Any) -> Any:
    """Another shape; of a contiguous array, without asking the library."""
    if len(shape) == 1 and shape[0].__class__ is not int:
        if not isinstance(shape[0], (tuple, list)):
            return _reshape_otherwise(self, shape[0], **kwargs)
        shape = tuple(shape[0])
    own = self.shape
    found = _views.get((own, self.strides, shape, self.dtype.itemsize)) if not kwargs else None
    if found is not None:
        return self.place.view_of(self, *found)
    if not kwargs and 0 not in own:
        given = shape
        size, known, open_at = 1, 1, -1
        for n in own:
            size *= n
        for i, n in enumerate(shape):
            if n == -1 and open_at < 0:
                open_at = i
            else:
                known *= n
        if open_at >= 0 and known > 0 and size % known == 0:
            shape = (*shape[:open_at], size // known, *shape[open_at + 1 :])
            known = size
        if known == size and all(n.__class__ is int and n > 0 for n in shape):
            shape = tuple(shape)
            if shape == own:
                return self.place.view_of(self, own, self.strides)
            strides = _reshaped(own, self.strides, shape, self.dtype.itemsize)
            if strides is not None:
                if len(_views) >= _MOST_VIEWS:
                    _views.clear()
                _views[(own, self.strides, given, self.dtype.itemsize)] = shape, strides
                return self.place.view_of(self, shape, strides)
            made = self.place.view_of(self.copy(), shape, contiguous(shape, self.dtype.itemsize))
            made.own()
            return made
    return _reshape_otherwise(self, shape, **kwargs)


def _reshaped(shape: Any, strides: Any, new: tuple[int, ...], item: int) -> tuple[int, ...] | None:
    """The strides of a view of another shape; None if it takes a copy. No dimension is empty."""
    blocks: list[list[int]] = []  # of dimensions that lie as one: how many elements, and how far apart
    for n, step in zip(shape, strides):
        if n == 1:
            continue
        if blocks and blocks[-1][1] == n * step:
            blocks[-1][0] *= n
            blocks[-1][1] = step
        else:
            blocks.append([n, step])
    found = []
    at, left = len(blocks) - 1, 1
    step = item
    for n in reversed(new):
        if n != 1:
            if left == 1:
                if at < 0:
                    return None
                left, step = blocks[at]
                at -= 1
            if left % n:
                return None
            left //= n
        found.append(step)
        step *= n
    return tuple(reversed(found))


_transpose_otherwise: Any = DeviceArray.transpose


def _transpose(self: DeviceArray, *axes: Any) -> Any:
    """Another order of dimensions."""
    if len(axes) == 1 and axes[0].__class__ in (tuple, list):
        axes = tuple(axes[0])
    shape, strides = self.shape, self.strides
    rank = len(shape)
    if self._raw.__class__ is Pending and rank == 2 and (not axes or axes in ((1, 0), (-1, -2))):
        return transposed(self)
    if not axes or (len(axes) == 1 and axes[0] is None):
        return self.place.view_of(self, shape[::-1], strides[::-1])
    if len(axes) != rank or any(a.__class__ is not int or not -rank <= a < rank for a in axes):
        return _transpose_otherwise(self, axes)
    if len({a % rank for a in axes}) != rank:
        return _transpose_otherwise(self, axes)
    return self.place.view_of(self, tuple([shape[a] for a in axes]), tuple([strides[a] for a in axes]))


_swapaxes_otherwise: Any = DeviceArray.swapaxes


def _swapaxes(self: DeviceArray, axis1: int, axis2: int) -> Any:
    """Two dimensions, one in the place of the other."""
    rank = len(self.shape)
    if axis1.__class__ is int is axis2.__class__ and -rank <= axis1 < rank and -rank <= axis2 < rank:
        shape, strides = list(self.shape), list(self.strides)
        shape[axis1], shape[axis2] = shape[axis2], shape[axis1]
        strides[axis1], strides[axis2] = strides[axis2], strides[axis1]
        return self.place.view_of(self, tuple(shape), tuple(strides))
    return _swapaxes_otherwise(self, axis1, axis2)


DeviceArray.reshape, DeviceArray.transpose, DeviceArray.swapaxes = _reshape, _transpose, _swapaxes


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
    plain = not reflected and not inplace and ufunc in ("add", "subtract", "multiply", "true_divide")

    def method(self: DeviceArray, other: Any) -> Any:
        kind = other.__class__
        if kind is self.__class__:
            if plain and self.dtype is other.dtype:
                pair = self.place.pairs[ufunc]
                if pair is not None:
                    made = pair(self, other)
                    if made is not None:
                        return made
        elif kind is np.ndarray:
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
