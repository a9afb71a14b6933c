"""Functions of NumPy's that the library has not, or has otherwise, made of those that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .calls import NONE, function_of
from .device_array import DeviceArray, arrays_in
from .own.launching import stored

if TYPE_CHECKING:
    from .places import Place


def _reduction(name: str, combine: str) -> Any:
    """``sum``, ``max`` and their like, with ``initial=`` and ``where=``."""

    def make(place: Place) -> Any:
        plain = function_of(place, getattr(np, name), getattr(place.module, name), name)

        def reduce(
            a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = NONE,
            where: Any = True,
        ) -> Any:  # fmt: skip
            numpy = place.numpy
            if keepdims is NONE:
                keepdims = False
            if not isinstance(a, DeviceArray):
                a = numpy.asarray(a)
            if axis.__class__ is list:
                axis = tuple(axis)
            if name == "sum" and place.sums is not None and where is True and initial is NONE:
                target = out[0] if out.__class__ is tuple else out
                if dtype is None or dtype == a.dtype:
                    made = place.sums(a, axis, keepdims, target)
                    if made is not None:
                        return made
            if where is not True:
                neutral: Any = getattr(np, combine).identity
                if neutral is None:
                    neutral = initial
                a = numpy.where(where, a, np.asarray(neutral).astype(a.dtype)[()])
            if name in ("max", "min") and initial is not NONE and not a.size:
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
                if initial is not NONE and initial is not None:
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
                made.own()
            else:
                shape = a.shape if shape is None else (shape,) if isinstance(shape, int) else shape
                shape = tuple([int(n) for n in shape])
                made = place.empty(shape, want)
                if order == "F" or (order == "A" and shape == a.shape and a.flags.fortran):
                    made = place.empty(tuple(reversed(shape)), want).transpose()
                    made.own()
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
                made.own()
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


def _repeat(place: Place) -> Any:
    plain = function_of(place, np.repeat, place.module.repeat, "repeat")

    def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
        if not isinstance(repeats, DeviceArray) or repeats.size == 1:
            return plain(a, repeats if not isinstance(repeats, DeviceArray) else repeats.item(), axis)
        # Of each element its number as often as it is wanted: how many elements end before each place.
        ends = place.numpy.cumsum(repeats)
        numbers = place.numpy.searchsorted(ends, place.numpy.arange(ends[-1].item()), side="right")
        return a.reshape(-1).take(numbers) if axis is None else a.take(numbers, axis)

    return repeat


def _insert(place: Place) -> Any:
    plain = function_of(place, np.insert, None, "insert")

    def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
        if not isinstance(obj, int) or axis is None or isinstance(values, DeviceArray):
            return plain(arr, obj, values, axis)
        along = place.numpy.moveaxis(arr, axis, 0)
        row = place.numpy.full((1, *along.shape[1:]), values, arr.dtype)
        return place.numpy.moveaxis(place.numpy.concatenate([along[:obj], row, along[obj:]]), 0, axis)

    return insert


def _delete(place: Place) -> Any:
    plain = function_of(place, np.delete, None, "delete")

    def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
        if axis is None or not isinstance(obj, (int, list, tuple)):
            return plain(arr, obj, axis)
        n = arr.shape[axis]
        gone = {i % n for i in ((obj,) if isinstance(obj, int) else obj)}
        return arr.take(place.numpy.asarray([i for i in range(n) if i not in gone], np.int64), axis)

    return delete


def _concatenate(place: Place) -> Any:
    plain = function_of(place, np.concatenate, place.module.concatenate, "concatenate")

    def concatenate(arrays: Any, axis: Any = 0, out: Any = None, dtype: Any = None, casting: str = "same_kind") -> Any:
        parts = [place.numpy.asarray(one) for one in arrays]
        if len({part.ndim for part in parts}) > 1 and axis is not None:
            raise ValueError("all the input arrays must have same number of dimensions")
        if len({part.dtype for part in parts}) > 1:
            dtype = np.result_type(*[part.dtype for part in parts])
            parts = [part.astype(dtype, copy=False) for part in parts]
        if parts[0].stored and out is None:  # elements move as they are
            place.activate()
            raw = [part.raw.ravel() if axis is None else part.raw for part in parts]
            return place.wrap(place.module.concatenate(raw, axis=axis or 0), parts[0].dtype)
        made = _side_by_side(place, parts, axis, out) if dtype is None else None
        if made is not None:
            return made
        made = plain(parts, axis=axis)
        made = made if dtype is None else made.astype(dtype, copy=False)
        return made if out is None else place.numpy.copyto(out, made, casting=casting) or out

    return concatenate


def _side_by_side(place: Place, parts: list[Any], axis: Any, out: Any) -> Any:
    """Arrays of one dtype joined by copies of our own; None if they are nothing for these."""
    first = parts[0]
    rank = len(first.shape)
    if place.cast is None or stored(first.dtype) is None or axis.__class__ is not int or not -rank <= axis < rank:
        return None
    axis %= rank
    rest = first.shape[:axis], first.shape[axis + 1 :]
    if any((one.shape[:axis], one.shape[axis + 1 :]) != rest for one in parts):
        return None
    shape = (*rest[0], sum([one.shape[axis] for one in parts]), *rest[1])
    if out is not None and (not isinstance(out, DeviceArray) or out.shape != shape or out.dtype != first.dtype):
        return None
    made = place.empty(shape, first.dtype) if out is None else out
    offset = 0
    for one in parts:
        place.cast(one, one.dtype, place.view_of(made, one.shape, made.strides, offset))
        offset += one.shape[axis] * made.strides[axis]
    return made


def _broadcast_to(place: Place) -> Any:
    plain = function_of(place, np.broadcast_to, place.module.broadcast_to, "broadcast_to")

    def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
        if isinstance(array, DeviceArray) and shape.__class__ is tuple:
            own = array.shape
            lead = len(shape) - len(own)
            if lead >= 0 and all(n == m or n == 1 for n, m in zip(own, shape[lead:])):
                steps = [step if n == m else 0 for n, m, step in zip(own, shape[lead:], array.strides)]
                return place.view_of(array, shape, (*[0] * lead, *steps))
        return plain(array, shape)

    return broadcast_to


def _isin(place: Place) -> Any:
    def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, **kind: Any) -> Any:
        numpy = place.numpy
        element, among = numpy.asarray(element), numpy.asarray(test_elements).reshape(-1)
        dtype = np.result_type(element.dtype, among.dtype)
        element, among = element.astype(dtype, copy=False), numpy.sort(among.astype(dtype, copy=False))
        if not among.size:
            return numpy.full(element.shape, invert, bool)
        found = among[numpy.minimum(numpy.searchsorted(among, element.reshape(-1)), among.size - 1)]
        return (found != element.reshape(-1) if invert else found == element.reshape(-1)).reshape(element.shape)

    return isin


def _solve(place: Place) -> Any:
    plain = function_of(place, np.linalg.solve, place.module.linalg.solve, "linalg.solve")

    def solve(a: Any, b: Any) -> Any:
        if a.ndim == 2 and b.ndim == 2:
            return plain(a, b)
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        both = [place.numpy.broadcast_to(one, (*batch, *one.shape[-2:])) for one in (a, b)]
        return plain(*[place.numpy.ascontiguousarray(one) for one in both])

    return solve


# ------------------------------------------------- special functions, at their ends: CuPy gives other numbers there


def _at_infinity(limit: Any) -> Any:
    """CuPy's function, with `limit(x)` at what is not finite."""

    def make(place: Place, theirs: Any) -> Any:
        def function(x: Any) -> Any:
            return place.numpy.where(place.numpy.isfinite(x), theirs(x), limit(place.numpy, x))

        return function

    return make


def _xlog1py(place: Place, theirs: Any) -> Any:
    def xlog1py(x: Any, y: Any) -> Any:
        numpy = place.numpy
        product = x * numpy.log1p(y)
        return numpy.where(numpy.equal(x, 0) & ~numpy.isnan(y), numpy.zeros_like(product), product)

    return xlog1py


OWN_SPECIAL: dict[str, Any] = {
    "i0e": _at_infinity(lambda numpy, x: numpy.where(numpy.isnan(x), x, numpy.zeros_like(x))),
    "i1e": _at_infinity(lambda numpy, x: numpy.where(numpy.isnan(x), x, numpy.copysign(numpy.zeros_like(x), x))),
    "i1": _at_infinity(lambda numpy, x: x - x), "xlog1py": _xlog1py,
}  # fmt: skip


OWN: dict[str, Any] = {
    "broadcast_to": _broadcast_to,
    "repeat": _repeat, "insert": _insert, "delete": _delete, "concatenate": _concatenate, "isin": _isin,
    "linalg.solve": _solve,
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
