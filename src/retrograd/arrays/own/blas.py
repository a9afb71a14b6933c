"""Products of matrices by cuBLAS, which is asked directly, with handles and work space of our own.

CuPy's calls refuse to be captured in a graph; these are captured like any launch, since nothing is allocated in them.
A handle belongs to one stream, and so does its work space: a product may still be under way when the next is told.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .launching import Launcher, contiguous, stored

if TYPE_CHECKING:
    from ..places import Place

_SPACE = 32 << 20
#: By cuBLAS's numbers: the dtype of elements, and in which it computes.
_DTYPES = {"f": (0, 68), "d": (1, 70), "e": (2, 68), "E": (14, 68)}


@cache
def _library() -> Any:
    """cuBLAS, as CuPy has loaded it."""
    cupy = import_module("cupy")
    cupy.cuda.device.get_cublas_handle()
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.split(None, 5)[-1].strip()
            if "libcublas.so" in path:
                return ctypes.PyDLL(path)
    return None


class Products:
    """cuBLAS for one device."""

    def __init__(self, launcher: Launcher) -> None:
        self.place: Place = launcher.place
        library = _library()
        self._create: Any = library.cublasCreate_v2
        self._set_stream: Any = library.cublasSetStream_v2
        self._set_space: Any = library.cublasSetWorkspace_v2
        pointer, number, big = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
        self._gemm: Any = library.cublasGemmEx
        self._gemm.argtypes = [
            pointer, number, number, number, number, number, pointer, pointer, number, number, pointer, number, number,
            pointer, pointer, number, number, number, number,
        ]  # fmt: skip
        self._batched: Any = library.cublasGemmStridedBatchedEx
        self._batched.argtypes = [
            pointer, number, number, number, number, number, pointer, pointer, number, number, big, pointer, number,
            number, big, pointer, pointer, number, number, big, number, number, number,
        ]  # fmt: skip
        self._handles: dict[Any, tuple[Any, Any]] = {}
        self._numbers_: dict[tuple[str, float], Any] = {}

    def _handle(self, array_class: Any) -> Any:
        found = self._handles.get(array_class)
        if found is None:
            place = self.place
            place.activate()
            handle = ctypes.c_void_p()
            if self._create(ctypes.byref(handle)):
                raise RuntimeError("CUDA error: cuBLAS could not be started")
            # Not of the pool: the work space stays where it is, in graphs as well.
            space = place.module.cuda.Memory(_SPACE)
            self._set_stream(handle, array_class.stream_pointer)
            self._set_space(handle, ctypes.c_void_p(space.ptr), ctypes.c_size_t(_SPACE))
            found = self._handles.setdefault(array_class, (handle, space))
        return found[0]

    def _number(self, letter: str, value: float) -> Any:
        key = letter, value
        found = self._numbers_.get(key)
        if found is None:
            if len(self._numbers_) > 256:
                self._numbers_.clear()
            held = ctypes.c_double(value) if letter == "d" else ctypes.c_float(value)
            found = self._numbers_[key] = ctypes.byref(held)
        return found

    def __call__(self, a: Any, b: Any, out: Any = None, alpha: float = 1.0, beta: float = 0.0) -> Any:
        """``alpha * a @ b + beta * out`` of matrices, or of batches of matrices that lie evenly; None if it is nothing
        for cuBLAS."""
        dtype = a.dtype
        letter = stored(dtype)
        if letter is None or b.dtype != dtype or b.place is not self.place or a.place is not self.place:
            return None
        rank, item = len(a.shape), dtype.itemsize
        if rank < 2 or len(b.shape) != rank:
            return None
        shape_a, shape_b = a.shape, b.shape
        rows, inner, columns = shape_a[-2], shape_a[-1], shape_b[-1]
        if inner != shape_b[-2] or not (rows and inner and columns):
            return None
        batch, lead = 1, shape_a[:-2]
        steps = 0, 0
        if rank > 2:
            if lead != shape_b[:-2] or 0 in lead:
                return None
            found_a, found_b = _even(lead, a.strides[:-2]), _even(lead, b.strides[:-2])
            # Matrices that do not lie evenly are copied first, which is less than a product for each.
            if found_a is None:
                a = a.copy()
                found_a = _even(lead, a.strides[:-2])
            if found_b is None:
                b = b.copy()
                found_b = _even(lead, b.strides[:-2])
            assert found_a is not None and found_b is not None
            batch, steps = found_a[0], (found_a[1] // item, found_b[1] // item)
        left, right = _lies(shape_a, a.strides, item), _lies(shape_b, b.strides, item)
        if left is None:
            a = a.copy()
            left, steps = _lies(shape_a, a.strides, item), (rows * inner, steps[1])
        if right is None:
            b = b.copy()
            right, steps = _lies(shape_b, b.strides, item), (steps[0], inner * columns)
        if left is None or right is None:
            return None
        shape = (*shape_a[:-2], rows, columns)
        if out is None:
            out = self.place.fresh(shape, contiguous(shape, item), dtype, batch * rows * columns * item)
            array_class = out.__class__
        else:
            if out.shape != shape or out.dtype != dtype or out.strides != contiguous(shape, item):
                return None
            self.place.activate()
            array_class = self.place.class_now()
        handle = self._handle(array_class)
        kind, compute = _DTYPES[letter]
        scale, keep = self._number(letter, alpha), self._number(letter, beta)
        # cuBLAS has columns where we have rows: it computes the transposed product.
        if batch == 1:
            code = self._gemm(
                handle, right[0], left[0], columns, rows, inner, scale, b.ptr, kind, right[1], a.ptr, kind, left[1],
                keep, out.ptr, kind, columns, compute, -1,
            )  # fmt: skip
        else:
            code = self._batched(
                handle, right[0], left[0], columns, rows, inner, scale, b.ptr, kind, right[1], steps[1], a.ptr, kind,
                left[1], steps[0], keep, out.ptr, kind, columns, rows * columns, batch, compute, -1,
            )  # fmt: skip
        if code:
            raise RuntimeError(f"CUDA error: cuBLAS refused a product (error {code})")
        return out


def _lies(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> tuple[int, int] | None:
    """Is a matrix to be transposed, and how far are its rows, or columns, apart? None if neither is contiguous."""
    rows, columns = shape[-2], shape[-1]
    down, along = strides[-2] // item, strides[-1] // item
    if (along == 1 or columns == 1) and (down >= columns or rows == 1):
        return 0, max(down, columns) if rows > 1 else columns
    if (down == 1 or rows == 1) and (along >= rows or columns == 1):
        return 1, max(along, rows) if columns > 1 else rows
    return None


def _even(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int] | None:
    """How many matrices there are, and how far apart; None if they do not lie evenly."""
    count, step = 1, 0
    for n, stride in zip(reversed(shape), reversed(strides)):
        if n == 1:
            continue
        if count == 1:
            count, step = n, stride
        elif stride == step * count:
            count *= n
        else:
            return None
    return count, step


def products_of(launcher: Launcher | None) -> Products | None:
    """cuBLAS for a device; None where it is not to be had."""
    if launcher is None:
        return None
    try:
        return Products(launcher) if _library() is not None else None
    except (AttributeError, ImportError, OSError):
        return None
