"""Calls of the library's functions and ufuncs, in the manner of NumPy's; what it does not take goes to the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .capturing import VALUES, capturing, refuse_if_captured
from .device_array import _FINAL, DeviceArray, arrays_in, why
from .own.elementwise import ufunc_of

if TYPE_CHECKING:
    from .places import Place

NONE: Any = getattr(np, "_NoValue", None)
#: Functions that write to their first argument.
_WRITES = {"copyto", "put_along_axis", "place", "putmask", "put", "fill_diagonal"}
_DROPPED = {"subok", "like"}
#: Functions whose results have shapes that hang on values.
_SHAPED_BY_VALUES = {
    "nonzero", "flatnonzero", "argwhere", "unique", "unique_all", "extract", "compress", "trim_zeros", "intersect1d",
    "setdiff1d", "setxor1d", "union1d", "bincount",
}  # fmt: skip
#: Dtypes whose numbers the library takes by value: a 0-d array of the host is not copied to the device.
_SCALARS = "?bBhHiIlLqQefdFD"


def function_of(place: Place, ours: Any, theirs: Any, name: str) -> Any:
    """A function of NumPy's, by the library's where it has one and that takes the arguments."""
    writes = name in _WRITES

    def call(*args: Any, **kwargs: Any) -> Any:
        for dropped in _DROPPED:
            kwargs.pop(dropped, None)
        sources = arrays_in(args)
        if kwargs:
            sources += arrays_in(kwargs.values())
        if capturing and name in _SHAPED_BY_VALUES:
            refuse_if_captured(place, f"{name}, whose result has a shape that values decide", VALUES)
        if theirs is not None and not any(source.stored for source in sources):
            place.activate()
            try:
                raw = theirs(*[place.unwrap(a) for a in args], **{k: place.unwrap(v) for k, v in kwargs.items()})
                return place.wrap_result(raw, sources)
            except (*_FINAL, np.linalg.LinAlgError):
                raise
            except Exception as error:
                if OutOfMemory(error):
                    raise
                why[call.__name__] = f"{type(error).__name__}: {error}"
        if not sources:  # a constant
            return place._back(ours(*args, **kwargs))
        return place.by_host(ours, args, kwargs, writes=args[0] if writes else None)

    call.__name__ = name.rpartition(".")[2]
    call.__wrapped__ = ours  # type: ignore[attr-defined]
    return call


def OutOfMemory(error: BaseException) -> bool:
    return type(error).__name__ == "OutOfMemoryError"


class Ufunc:
    """A ufunc of NumPy's for one device, with its methods."""

    def __init__(self, place: Place, ours: np.ufunc, theirs: Any) -> None:
        self.place: Place = place
        self.np: np.ufunc = ours
        self.raw: Any = theirs
        self.__name__ = ours.__name__
        self.nin: int = ours.nin
        self.nout: int = ours.nout
        self.nargs: int = ours.nargs
        self.identity: Any = ours.identity
        self.types: list[str] = ours.types
        self.__doc__ = ours.__doc__
        #: Our own kernel, asked first: Note [Kernels of our own] in own/__init__.py.
        self.own: Any = place.product_ufunc if ours is np.matmul else ufunc_of(place.launcher, ours.__name__)

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r} for {self.place.device}>"

    def __reduce__(self) -> Any:
        return getattr, (np, self.__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        place, raw = self.place, self.raw
        out = kwargs.get("out")
        if self.own is not None:
            if not kwargs:
                if len(args) == self.nin:
                    result = self.own(args, None)
                    if result is not None:
                        return result
                elif len(args) == self.nin + 1 and args[-1] is not None:
                    result = self.own(args[:-1], args[-1])
                    if result is not None:
                        return result
            elif out is not None and len(kwargs) == 1 and len(args) == self.nin:
                result = self.own(args, out[0] if out.__class__ is tuple else out)
                if result is not None:
                    return result
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
        where = kwargs.pop("where", True)
        if where is not True:
            return self._where(args, kwargs, out, where)
        if raw is not None:
            place.activate()
            stored = False
            given = []
            for arg in args:
                if isinstance(arg, DeviceArray):
                    stored = stored or arg.stored
                    arg = arg.raw
                elif arg.__class__ is np.ndarray:
                    arg = arg[()] if not arg.ndim and arg.dtype.char in _SCALARS else place.unwrap(arg)
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
                    why[self.__name__] = f"{type(error).__name__}: {error}"
        if not arrays_in(args) and out is None:
            return place._back(self.np(*args, **kwargs))
        wider = self._widened(args)
        if wider is not None:
            return self(*wider, **kwargs)
        return place.by_host(self.np, args, kwargs)

    def _where(self, args: Any, kwargs: Any, out: Any, where: Any) -> Any:
        """The results where they are wanted; elsewhere what was there, or zeros."""
        kwargs.pop("out", None)
        made = self(*args, **kwargs)
        numpy = self.place.numpy
        if out is None:
            return numpy.where(where, made, numpy.zeros_like(made))
        numpy.copyto(out, made, casting="unsafe", where=where)
        return out

    def _widened(self, args: Any) -> Any:
        """The arguments in the dtypes in which NumPy computes; None where they are."""
        given = [a.dtype if isinstance(a, (DeviceArray, np.ndarray, np.generic)) else type(a) for a in args]
        try:
            found = self.np.resolve_dtypes((*given, *[None] * self.nout))[: self.nin]
        except (TypeError, ValueError):
            return None
        changed = [
            a.astype(dtype) if isinstance(a, DeviceArray) and a.dtype != dtype else a
            for a, dtype in zip(args, found, strict=True)
        ]
        return changed if any(a is not b for a, b in zip(args, changed, strict=True)) else None

    # A reduction by another name, and the number that changes nothing.
    _REDUCES = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_or": "any",
                "logical_and": "all"}  # fmt: skip

    def reduce(
        self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False,
        initial: Any = NONE, where: Any = True,
    ) -> Any:  # fmt: skip
        name = self._REDUCES.get(self.__name__)
        if name is None or not isinstance(array, DeviceArray):
            return self._halved(array, axis, dtype, out, keepdims, initial, where)
        options = {"axis": axis, "keepdims": keepdims, "initial": initial, "where": where, "out": out}
        if dtype is not None:
            if name in ("any", "all"):
                made = getattr(self.place.numpy, name)(array, **{**options, "out": None}).astype(dtype)
                return made if out is None else self.place.numpy.copyto(out, made) or out
            if name in ("max", "min"):
                array = array.astype(dtype, copy=False)
            else:
                options["dtype"] = dtype
        return getattr(self.place.numpy, name)(array, **options)

    def _halved(self, array: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        """A reduction that the library does not have: one half of the lanes with the other, until one is left."""
        numpy = self.place.numpy
        array = numpy.asarray(array) if dtype is None else numpy.asarray(array).astype(dtype)
        start = self.identity if initial is NONE else initial
        if where is not True:
            array = numpy.where(where, array, np.asarray(start).astype(array.dtype)[()])
        axes = range(array.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
        axes = sorted({d % max(array.ndim, 1) for d in axes}) if array.ndim else []
        rest = [d for d in range(array.ndim) if d not in axes]
        lanes = array.transpose((*axes, *rest)).reshape(-1, *[array.shape[d] for d in rest])
        if not lanes.shape[0]:
            lanes = numpy.full((1, *lanes.shape[1:]), start, array.dtype)
        elif initial is not NONE:
            lanes = numpy.concatenate([lanes, numpy.full((1, *lanes.shape[1:]), start, array.dtype)])
        while lanes.shape[0] > 1:
            half = lanes.shape[0] // 2
            odd = lanes[2 * half :]
            lanes = self(lanes[:half], lanes[half : 2 * half])
            lanes = numpy.concatenate([lanes, odd]) if odd.shape[0] else lanes
        made = lanes[0]
        if keepdims:
            made = made.reshape(tuple([1 if d in axes else n for d, n in enumerate(array.shape)]))
        return made if out is None else numpy.copyto(out, made) or out

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
        place, numpy = self.place, self.place.numpy
        at = getattr(self.raw, "at", None)
        if array.stored or len(values) != 1:
            place.by_host(self.np.at, (array, indices, *values), {}, writes=array)
            return
        if at is not None and self.__name__ in ("add", "subtract"):
            # CuPy adds numbers of some dtypes only; other integers are added in wider ones, which wrap around alike.
            if array.dtype.kind == "c":
                for part, of_values in ((array.real, numpy.real), (array.imag, numpy.imag)):
                    self.at(part, indices, of_values(numpy.asarray(values[0]).astype(array.dtype, copy=False)))
                return
            wide = {"b": None, "i": np.int32, "u": np.uint32}.get(array.dtype.kind, array.dtype)
            if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
                wide = np.uint64
            if wide is not None and array.dtype.name != "bfloat16":
                place.activate()
                target = array if array.dtype == wide else array.astype(wide)
                given = [numpy.asarray(v).astype(array.dtype, copy=False).astype(wide, copy=False) for v in values]
                at(target.raw, place.unwrap_key(indices), *[v.raw for v in given])
                if target is not array:
                    array[...] = target.astype(array.dtype)
                return
        self._at_in_order(array, indices, values[0])

    def _at_in_order(self, array: Any, indices: Any, values: Any) -> None:
        """``at``, for any ufunc that is associative: what goes to one place is brought side by side and combined, what
        lies twice as far apart in each step as in the step before; then the last of each place goes there."""
        numpy = self.place.numpy
        keys = indices if isinstance(indices, tuple) else (indices,)
        keys = tuple([numpy.asarray(key) for key in keys])
        number, wide = 0, keys
        if len(keys) > 1:
            wide = numpy.broadcast_arrays(*keys)
        for size, key in zip(array.shape, wide, strict=False):
            number = number * size + numpy.where(key < 0, key + size, key)
        place = numpy.asarray(number)
        rest = array.shape[len(keys) :]
        values = numpy.broadcast_to(numpy.asarray(values).astype(array.dtype, copy=False), (*place.shape, *rest))
        place = place.reshape(-1)
        if not place.size:
            return
        order = numpy.argsort(place, kind="stable")
        place, values = place[order], values.reshape(place.size, *rest)[order]
        column = (-1, *[1] * len(rest))
        step = 1
        while step < place.size:
            same = (place[step:] == place[:-step]).reshape(column)
            values[step:] = numpy.where(same, self(values[:-step], values[step:]), values[step:])
            step *= 2
        last = numpy.concatenate([place[1:] != place[:-1], numpy.ones(1, bool)])
        place, values = place[last], values[last]
        flat = array.reshape(-1, *rest)
        flat[place] = self(flat[place], values)
        if not numpy.may_share_memory(flat, array):
            array[...] = flat.reshape(array.shape)

    def outer(self, a: Any, b: Any, **kwargs: Any) -> Any:
        a, b = self.place.numpy.asarray(a), self.place.numpy.asarray(b)
        return self(a.reshape(a.shape + (1,) * b.ndim), b, **kwargs)


class PairUfunc(Ufunc):
    """One that has a kernel for two arrays, which is asked without further ado."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and len(args) == 2:
            a, b = args
            try:
                if a.dtype is b.dtype and a.place is b.place is self.place:
                    made = self.own.pair(a, b)
                    if made is not None:
                        return made
            except AttributeError:
                pass
        return Ufunc.__call__(self, *args, **kwargs)


def ufunc_for(place: Place, ours: np.ufunc, theirs: Any) -> Ufunc:
    """A ufunc of NumPy's for a device."""
    made = Ufunc(place, ours, theirs)
    return PairUfunc(place, ours, theirs) if getattr(made.own, "pair", None) is not None else made
