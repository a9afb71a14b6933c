"""NumPy's names, computing on a device: what the kernels of a device find as ``np``.

All that CuPy has not, or has otherwise, is met here: methods of ufuncs (``reduce``, ``accumulate``, ``at``, ``outer``),
``where=`` and ``initial=`` of reductions, arguments that CuPy does not take.  What is left goes to NumPy on the host.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from .device_array import _FINAL, DeviceArray, arrays_in

if TYPE_CHECKING:
    from .places import Place

_NONE: Any = getattr(np, "_NoValue", None)
#: Functions that write to their first argument.
_WRITES = {"copyto", "put_along_axis", "place", "putmask", "put", "fill_diagonal"}
#: Functions that read no values: what they are asked is in shapes, dtypes and addresses.
_PLAIN = {
    "dtype", "iinfo", "finfo", "errstate", "ndindex", "broadcast_shapes", "promote_types", "issubdtype", "can_cast",
    "setbufsize", "isscalar", "get_printoptions", "printoptions", "seterr", "geterr",
}  # fmt: skip
_DROPPED = {"subok", "like"}


class NumpyLike:
    """``np`` for one device."""

    def __init__(self, place: Place, path: str = "", module: Any = None, host: Any = np) -> None:
        self._place, self._path, self._module, self._host = (
            place,
            path,
            place.module if module is None else module,
            host,
        )

    def __getattr__(self, name: str) -> Any:
        found = self._find(name)
        self.__dict__[name] = found
        return found

    def _find(self, name: str) -> Any:
        place = self._place
        if not self._path:
            if name == "ndarray":
                return place.array_class
            if name == "ufunc":
                return Ufunc
            if name in _OWN:
                return _OWN[name](place)
            if name in _PLAIN:
                return getattr(np, name)
        ours = getattr(self._host, name)
        theirs = getattr(self._module, name, None)
        if isinstance(ours, np.ufunc):
            return Ufunc(place, ours, theirs)
        if isinstance(ours, type) or not callable(ours):
            if isinstance(ours, ModuleType):
                return NumpyLike(place, f"{self._path}{name}.", theirs, ours)
            return ours
        return function_of(place, ours, theirs, self._path + name)

    def __repr__(self) -> str:
        return f"<numpy for {self._place.device}>"


def function_of(place: Place, ours: Any, theirs: Any, name: str) -> Any:
    """A function of NumPy's, by the library's where it has one and that takes the arguments."""
    writes = name in _WRITES

    def call(*args: Any, **kwargs: Any) -> Any:
        for dropped in _DROPPED:
            kwargs.pop(dropped, None)
        sources = arrays_in(args)
        if kwargs:
            sources += arrays_in(kwargs.values())
        if theirs is not None and not any(source.stored for source in sources):
            place.activate()
            try:
                raw = theirs(*[place.unwrap(a) for a in args], **{k: place.unwrap(v) for k, v in kwargs.items()})
                return place.wrap_result(raw, sources)
            except _FINAL:
                raise
            except Exception as error:
                if OutOfMemory(error):
                    raise
        return place.by_host(ours, args, kwargs, writes=args[0] if writes else None)

    call.__name__ = name.rpartition(".")[2]
    call.__wrapped__ = ours  # type: ignore[attr-defined]
    return call


def OutOfMemory(error: BaseException) -> bool:
    return type(error).__name__ == "OutOfMemoryError"


# ----------------------------------------------------------------------------------------------------------------
# ufuncs


class Ufunc:
    """A ufunc of NumPy's for one device, with its methods."""

    def __init__(self, place: Place, ours: np.ufunc, theirs: Any) -> None:
        self.place, self.np, self.raw = place, ours, theirs
        self.__name__ = ours.__name__
        self.nin, self.nout, self.nargs, self.identity = ours.nin, ours.nout, ours.nargs, ours.identity
        self.types = ours.types
        self.__doc__ = ours.__doc__

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r} for {self.place.device}>"

    def __reduce__(self) -> Any:
        return getattr, (np, self.__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        place, raw = self.place, self.raw
        out = kwargs.get("out")
        if out is None:
            kwargs.pop("out", None)
        elif out.__class__ is tuple and len(out) == 1:
            out = kwargs["out"] = out[0]
        if len(args) > self.nin and out is None:  # the output by position
            out = kwargs["out"] = args[self.nin] if len(args) == self.nin + 1 else tuple(args[self.nin :])
            args = args[: self.nin]
            if out is None:
                del kwargs["out"]
        for dropped in ("subok", "order"):
            kwargs.pop(dropped, None)
        if kwargs.get("where") is True:
            del kwargs["where"]
        if raw is not None:
            place.activate()
            stored = False
            given = []
            for arg in args:
                if isinstance(arg, DeviceArray):
                    stored = stored or arg.stored
                    arg = arg.raw
                elif arg.__class__ is np.ndarray:
                    arg = place.from_host(arg).raw
                elif arg.__class__ is list or arg.__class__ is tuple:
                    arg = place.from_host(np.asarray(arg)).raw
                given.append(arg)
            if not stored and not (out is not None and any(one.stored for one in arrays_in((out,)))):
                try:
                    if not kwargs:
                        result = raw(*given)
                    else:
                        result = raw(*given, **{k: place.unwrap(v) for k, v in kwargs.items()})
                    if out is not None:
                        return out
                    if result.__class__ is tuple:
                        return tuple([place.wrap(one) for one in result])
                    if not isinstance(result, place.raw_class):  # numbers alone
                        return self.np(*args, **kwargs)
                    return place.wrap(result)
                except _FINAL:
                    raise
                except Exception as error:
                    if OutOfMemory(error):
                        raise
        if not arrays_in(args) and out is None:
            return place._back(self.np(*args, **kwargs))
        return place.by_host(self.np, args, kwargs)

    # A reduction by another name, and the number that changes nothing.
    _REDUCES = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_or": "any",
                "logical_and": "all"}  # fmt: skip

    def reduce(
        self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False,
        initial: Any = _NONE, where: Any = True,
    ) -> Any:  # fmt: skip
        name = self._REDUCES.get(self.__name__)
        if name is None or not isinstance(array, DeviceArray) or (dtype is not None and name in ("any", "all")):
            options = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims}
            options |= {} if initial is _NONE else {"initial": initial}
            options |= {} if where is True else {"where": where}
            if out is None:
                del options["out"]
            return self.place.by_host(self.np.reduce, (array,), options)
        options = {"axis": axis, "keepdims": keepdims, "initial": initial, "where": where, "out": out}
        if dtype is not None:
            if name in ("max", "min"):
                array = array.astype(dtype, copy=False)
            else:
                options["dtype"] = dtype
        return getattr(self.place.numpy, name)(array, **options)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        numpy = self.place.numpy
        if self.__name__ in ("add", "multiply"):
            scan = numpy.cumsum if self.__name__ == "add" else numpy.cumprod
            made = scan(array, axis=axis, dtype=dtype)
        else:
            # The rule is associative: each step combines what lies twice as far apart as in the step before.
            made = array.copy() if dtype is None else array.astype(dtype)
            lanes = numpy.moveaxis(made, axis, 0)
            step = 1
            while step < lanes.shape[0]:
                lanes[step:] = self(lanes[:-step].copy(), lanes[step:])
                step *= 2
        if out is None:
            return made
        out[...] = made
        return out

    def at(self, array: Any, indices: Any, *values: Any) -> None:
        place = self.place
        at = getattr(self.raw, "at", None)
        if at is not None and self.__name__ in ("add", "subtract") and not array.stored:
            place.activate()
            try:
                at(array.raw, place.unwrap_key(indices), *[place.unwrap(v) for v in values])
                return
            except _FINAL:
                raise
            except Exception as error:
                if OutOfMemory(error):
                    raise
        place.by_host(self.np.at, (array, indices, *values), {}, writes=array)

    def outer(self, a: Any, b: Any, **kwargs: Any) -> Any:
        a, b = self.place.numpy.asarray(a), self.place.numpy.asarray(b)
        return self(a.reshape(a.shape + (1,) * b.ndim), b, **kwargs)


# ------------------------------------------------------------------------------------------------- functions of our own


def _reduction(name: str, combine: str) -> Any:
    """``sum``, ``max`` and their like, with ``initial=`` and ``where=``."""

    def make(place: Place) -> Any:
        plain = function_of(place, getattr(np, name), getattr(place.module, name), name)

        def reduce(
            a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = _NONE,
            where: Any = True,
        ) -> Any:  # fmt: skip
            numpy = place.numpy
            if keepdims is _NONE:
                keepdims = False
            if not isinstance(a, DeviceArray):
                a = numpy.asarray(a)
            if axis.__class__ is list:
                axis = tuple(axis)
            if where is not True:
                neutral: Any = getattr(np, combine).identity
                if neutral is None:
                    neutral = initial
                a = numpy.where(where, a, np.asarray(neutral).astype(a.dtype)[()])
            if name in ("max", "min") and initial is not _NONE and not a.size:
                shape = numpy.empty_like(a).raw.shape if axis is None else a.shape
                axes = (
                    range(a.ndim)
                    if axis is None
                    else [x % a.ndim for x in ((axis,) if isinstance(axis, int) else axis)]
                )
                shape = tuple([1 if d in axes else n for d, n in enumerate(a.shape) if keepdims or d not in axes])
                made = numpy.full(shape, initial, a.dtype)
            else:
                options: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
                made = plain(a, axis=axis, keepdims=keepdims, **options)
                if initial is not _NONE and initial is not None:
                    made = getattr(numpy, combine)(made, initial)
            if out is None:
                return made
            if out.__class__ is tuple:
                out = out[0]
            out[...] = made
            return out

        reduce.__name__ = name
        return reduce

    return make


def _copyto(place: Place) -> Any:
    def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
        if not isinstance(src, DeviceArray):
            src = np.asarray(src)
            if src.ndim == 0 and dst.dtype.num < 256 and not dst.stored:
                src = src.astype(dst.dtype)[()]
            else:
                src = place.from_host(src.astype(dst.dtype))
        if where is True:
            dst[...] = src
        else:
            dst[...] = place.numpy.where(where, src, dst)

    return copyto


def _vecdot(place: Place) -> Any:
    def vecdot(a: Any, b: Any, axis: int = -1) -> Any:
        return place.numpy.sum(a.conj() * b, axis=axis)

    return vecdot


def _einsum_path(place: Place) -> Any:
    def einsum_path(*operands: Any, **options: Any) -> Any:
        # The path follows from the shapes.
        shapes: list[Any] = [
            np.broadcast_to(np.float32(0), o.shape) if isinstance(o, DeviceArray) else o for o in operands
        ]
        return np.einsum_path(*shapes, **options)

    return einsum_path


def _may_share_memory(place: Place) -> Any:
    def may_share_memory(a: Any, b: Any, max_work: Any = None) -> bool:
        if not isinstance(a, DeviceArray) or not isinstance(b, DeviceArray) or not a.size or not b.size:
            return False
        (low, high), (first, last) = _bounds(a), _bounds(b)
        return low < last and first < high

    return may_share_memory


def _bounds(a: DeviceArray) -> tuple[int, int]:
    low = high = a.raw.data.ptr
    for n, step in zip(a.shape, a.strides, strict=True):
        if step < 0:
            low += (n - 1) * step
        else:
            high += (n - 1) * step
    return low, high + a.itemsize


def _array(name: str) -> Any:
    """``np.array`` and ``np.asarray``: of arrays of this device, or of what NumPy makes an array of."""

    def make(place: Place) -> Any:
        always = name == "array"

        def array(
            obj: Any, dtype: Any = None, copy: Any = None, order: Any = None, ndmin: int = 0, **options: Any
        ) -> Any:
            if isinstance(obj, DeviceArray):
                made = obj if dtype is None else obj.astype(dtype, copy=False)
                if made is obj and (copy or (copy is None and always)):
                    made = obj.copy("K" if order is None else order)
                return made if order not in ("C", "F") else place.numpy._ordered(made, order)
            if arrays_in((obj,)):
                return place.numpy.stack([place.numpy.asarray(one, dtype) for one in obj])
            return place.from_host(np.array(obj, dtype=dtype, order=order, ndmin=ndmin))

        return array

    return make


def _ordered(place: Place) -> Any:
    def ordered(a: Any, order: str) -> Any:
        if (order == "C" and a.flags.c_contiguous) or (order == "F" and a.flags.f_contiguous):
            return a
        return a.copy(order)

    return ordered


def _ascontiguousarray(place: Place) -> Any:
    def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
        a = place.numpy.asarray(a, dtype)
        return a if a.flags.c_contiguous else a.copy("C")

    return ascontiguousarray


def _like(name: str) -> Any:
    """``np.zeros_like`` and its like, for any dtype, and for layouts of any order of dimensions."""

    def make(place: Place) -> Any:
        def like(a: Any, *args: Any, dtype: Any = None, order: str = "K", subok: Any = True, shape: Any = None) -> Any:
            fill: Any = 0 if name == "zeros_like" else 1
            if name == "full_like":
                fill, *args = args  # type: ignore[assignment]
            if args:
                dtype, *args = args  # type: ignore[assignment]
            if args:
                order = args[0]
            want = np.dtype(a.dtype if dtype is None else dtype)
            # NumPy says how the new array lies; the memory is the device's.
            if isinstance(a, DeviceArray) and order == "K" and shape is None and not a.flags.c_contiguous:
                layout = sorted(range(a.ndim), key=lambda d: (-abs(a.strides[d]), d))
                made = place.empty(tuple([a.shape[d] for d in layout]), want)
                made = made.transpose(tuple(sorted(range(a.ndim), key=layout.__getitem__)))
                made.base = None
            else:
                shape = a.shape if shape is None else (shape,) if isinstance(shape, int) else shape
                shape = tuple([int(n) for n in shape])
                made = place.empty(shape, want)
                if order == "F" or (order == "A" and shape == a.shape and a.flags.fortran):
                    made = place.empty(tuple(reversed(shape)), want).transpose()
                    made.base = None
            if name != "empty_like":
                made[...] = fill
            return made

        return like

    return make


def _new(name: str) -> Any:
    def make(place: Place) -> Any:
        def create(shape: Any, *args: Any, dtype: Any = None, order: str = "C", **options: Any) -> Any:
            if name == "full":
                fill, *args = args if args else (options.pop("fill_value"),)  # type: ignore[assignment]
                if args:
                    dtype = args[0]
                if dtype is None:
                    dtype = fill.dtype if hasattr(fill, "dtype") else np.asarray(fill).dtype
            else:
                fill = 0 if name == "zeros" else 1
                if args:
                    dtype, *args = args  # type: ignore[assignment]
                if args:
                    order = args[0]
            want = np.dtype(float if dtype is None else dtype)
            shape = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple([int(n) for n in shape])
            if order == "F" and len(shape) > 1:
                made = place.empty(tuple(reversed(shape)), want).transpose()
                made.base = None
            else:
                made = place.empty(shape, want)
            if name != "empty":
                made[...] = fill
            return made

        return create

    return make


def _made_on_host(name: str) -> Any:
    """Small arrays of indices and windows, which NumPy makes in a way of its own: copied."""

    def make(place: Place) -> Any:
        ours = getattr(np, name)

        def create(*args: Any, **options: Any) -> Any:
            options.pop("like", None)
            args = tuple([a.item() if isinstance(a, DeviceArray) else a for a in args])
            return place._back(ours(*args, **options))

        return create

    return make


def _take_along_axis(place: Place) -> Any:
    def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
        numpy = place.numpy
        if axis is None:
            arr, axis = arr.reshape(-1), 0
        return arr[_fancy(numpy, arr, indices, axis)]

    return take_along_axis


def _put_along_axis(place: Place) -> Any:
    def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
        numpy = place.numpy
        if axis is None:
            arr, axis = arr.reshape(-1), 0
        arr[_fancy(numpy, arr, indices, axis)] = values

    return put_along_axis


def _fancy(numpy: Any, arr: Any, indices: Any, axis: int) -> tuple[Any, ...]:
    axis %= arr.ndim
    keys = []
    for d, n in enumerate(arr.shape):
        if d == axis:
            keys.append(numpy.asarray(indices))
        else:
            keys.append(numpy.arange(n).reshape((1,) * d + (n,) + (1,) * (arr.ndim - d - 1)))
    return tuple(keys)


def _clip(place: Place) -> Any:
    def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **options: Any) -> Any:
        numpy = place.numpy
        made = a
        if a_min is not None:
            made = numpy.maximum(made, a_min)
        if a_max is not None:
            made = numpy.minimum(made, a_max)
        if made is a:
            made = a.copy()
        if out is None:
            return made
        numpy.copyto(out, made, casting="unsafe")
        return out

    return clip


_OWN: dict[str, Any] = {
    "sum": _reduction("sum", "add"), "prod": _reduction("prod", "multiply"), "max": _reduction("max", "maximum"),
    "min": _reduction("min", "minimum"), "any": _reduction("any", "logical_or"),
    "all": _reduction("all", "logical_and"),
    "amax": _reduction("max", "maximum"), "amin": _reduction("min", "minimum"),
    "copyto": _copyto, "vecdot": _vecdot, "einsum_path": _einsum_path, "may_share_memory": _may_share_memory,
    "shares_memory": _may_share_memory, "array": _array("array"), "asarray": _array("asarray"),
    "asanyarray": _array("asarray"), "_ordered": _ordered, "ascontiguousarray": _ascontiguousarray,
    "zeros_like": _like("zeros_like"), "ones_like": _like("ones_like"), "empty_like": _like("empty_like"),
    "full_like": _like("full_like"), "zeros": _new("zeros"), "ones": _new("ones"), "empty": _new("empty"),
    "full": _new("full"), "arange": _made_on_host("arange"), "linspace": _made_on_host("linspace"),
    "eye": _made_on_host("eye"), "tri": _made_on_host("tri"), "indices": _made_on_host("indices"),
    "tril_indices": _made_on_host("tril_indices"), "triu_indices": _made_on_host("triu_indices"),
    "take_along_axis": _take_along_axis, "put_along_axis": _put_along_axis, "clip": _clip,
}  # fmt: skip


# -------------------------------------------------------------------------------------------------------- SciPy


#: Functions of CuPy's that give other numbers than SciPy's: at NaN or infinity.
_OTHERWISE = {"i0e", "i1", "i1e", "xlog1py"}


class OnHost:
    """A module whose functions run on the host: those of the device's library of the same name, where it has them."""

    def __init__(self, place: Place, path: str) -> None:
        self._place, self._path = place, path

    def __getattr__(self, name: str) -> Any:
        ours = getattr(import_module(self._path), name, None)
        if ours is None or isinstance(ours, ModuleType):
            return OnHost(self._place, f"{self._path}.{name}")
        if not callable(ours) or isinstance(ours, type):
            return ours
        found = self.__dict__[name] = hosted(self._place, ours, self._theirs(name))
        return found

    def _theirs(self, name: str) -> Any:
        if self._path not in ("scipy.special", "scipy.fft") or name in _OTHERWISE:
            return None
        return getattr(self._place.library_of(self._path), name, None)


def hosted(place: Place, ours: Any, theirs: Any = None) -> Any:
    """A function of a library for NumPy arrays, for those of a device."""
    if theirs is not None:
        return function_of(place, ours, theirs, ours.__name__ if hasattr(ours, "__name__") else str(ours))

    def call(*args: Any, **kwargs: Any) -> Any:
        return _callable(place, place.by_host(ours, args, kwargs))

    call.__name__ = getattr(ours, "__name__", "function")
    return call


def _callable(place: Place, value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)([_callable(place, one) for one in value]) if not hasattr(value, "_fields") else value
    if callable(value) and not isinstance(value, (type, DeviceArray)):
        return hosted(place, value)
    return value


def stand_ins(place: Place) -> dict[str, Any]:
    """What a device's kernels import in place of libraries for NumPy arrays."""
    return {"numpy": place.numpy, "scipy": OnHost(place, "scipy")}
