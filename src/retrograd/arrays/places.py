"""The CUDA devices of this process: their arrays, kernels, streams and memory.

`start` is the door: it takes a library of arrays (CuPy; in tests a simulated one with CuPy's names) and makes a
`Place` of each of its devices.  Nothing happens before somebody asks for a CUDA device.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from ..core import devices
from ..core.description import Description, NoArray
from ..core.devices import device, forget_array_class, register_array_class
from ..kernels import libraries
from . import memory, pinned
from .calls import Ufunc
from .capturing import FROM_HOST, VALUES, capture_of, capturing, refuse_if_captured, refused
from .device_array import _FINAL, _UNSIGNED, DeviceArray, arrays_in, on_host
from .numpy_like import NumpyLike, stand_ins
from .own.attention import Attention
from .own.blas import products_of
from .own.channels import Channels
from .own.elementwise import Cast, Formula
from .own.faults import Faults
from .own.images import Images
from .own.launching import Launcher, contiguous, launcher_of
from .own.overlay import Formulas
from .own.rows import Rows
from .own.sums import Sums
from .own.tables import Tables
from .own.updates import UpdateKernels
from .own_kernels import OVERLAY
from .philox import Philox

new = object.__new__
_MOST_STREAMS = 32


class _Thread(threading.local):
    """What this thread uses: a current device, and a current stream of each."""

    index: int = 0
    #: Whose device and stream the library has been told to use.
    active: Any = None
    #: Nodes that add what they get to something, while a pass runs: Note [Pending gradients] in own/pending.py.
    adding: set[Any] | None = None

    def __init__(self) -> None:
        #: By device: the class of arrays that are made now, which tells the stream.
        self.classes: dict[int, type[DeviceArray]] = {}


thread: _Thread = _Thread()


class Place:
    """A device: what lies on it and how it is computed with."""

    def __init__(self, module: Any, index: int, physical: int) -> None:
        self.module: Any = module
        self.index: int = index
        self.physical: int = physical
        self.device: device = device("cuda", index)
        self.thread: _Thread = thread
        self.raw_class: type[Any] = module.ndarray
        self.array_class: type[DeviceArray] = type(
            f"Cuda{index}Array",
            (DeviceArray,),
            {"__slots__": (), "place": self, "stream_pointer": ctypes.c_void_p(0)},
        )
        #: Arrays of the host that a stream has yet to read or write, with the event after which it has.
        self.held: list[tuple[Any, Any]] = []
        self._copies: type[DeviceArray] | None = None
        #: The library's stream for captures.
        self.capture_stream: Any = None
        self._pool: dict[int, tuple[list[Any], list[int]]] = {}
        self.of_streams: dict[int, type[DeviceArray]] = {}
        self.of_descriptions: dict[tuple[type[Any], type[Any]], type[Any]] = {}
        self._held: dict[np.dtype, np.dtype] = {}
        self._libraries: dict[str, Any] = {}
        self._raw_kernels: dict[str, Any] = {}
        #: What random numbers of this device are drawn from.
        self.words_class: type[Philox] = type("Philox", (Philox,), {"place": self})
        #: Our own kernels, where the library compiles them: Note [Kernels of our own] in own/__init__.py.
        self.launcher: Launcher | None = launcher_of(self)
        self._products: Any = None
        self.cast: Cast | None = None
        self.filling: Formula | None = None
        self.formulas: Formulas | None = None
        self.rows: Rows | None = None
        self.sums: Sums | None = None
        self.updates: UpdateKernels | None = None
        self.images: Images | None = None
        self.attention: Attention | None = None
        self.channels: Channels | None = None
        self.tables: Tables | None = None
        self._faults: Faults | None = None
        if self.launcher is not None:
            self.cast, self.filling = Cast(self.launcher), Formula(self.launcher, "fill", "p", 1, 1)
            self.formulas, self.rows, self.sums = Formulas(self.launcher), Rows(self.launcher), Sums(self.launcher)
            self.updates, self.images = UpdateKernels(self.launcher), Images(self.launcher)
            self.attention, self.channels = Attention(self.launcher), Channels(self.launcher)
            self.tables = Tables(self.launcher)
        self.numpy: Any = NumpyLike(self)
        #: Our kernels of two arrays, by the names of ufuncs.
        self.pairs: dict[str, Any] = {
            name: getattr(getattr(self.numpy, name).own, "pair", None)
            for name in ("add", "subtract", "multiply", "true_divide")
        }
        self.kernels: libraries.Clone = libraries.Clone(
            str(self.device), self.numpy, stand_ins(self), OVERLAY, self._refuse_mixed_call
        )

    def adds_to(self, nodes: set[Any] | None) -> None:
        """Which nodes of the pass that this thread runs add what they get to something; None: it runs none any more."""
        thread.adding = nodes
        if self.launcher is not None:
            own = self.numpy.multiply.own
            # (Of the threads that multiply here one may find the other's: what is not computed later is computed now.)
            self.pairs["multiply"] = own.pair if nodes is None else own.pair_later

    # -------------------------------------------------------------------------------------------- streams, by class

    def activate(self) -> None:
        """Make the library work on this device, and on the stream that is this thread's current one there."""
        if thread.active is not self:
            self._activate()

    def _activate(self) -> None:
        self.module.cuda.Device(self.physical).use()
        stream = self.class_now().stream
        (self.module.cuda.Stream.null if stream is None else stream).use()
        thread.active = self

    def reactivate(self) -> None:
        """The same, where somebody has told the library to use another stream."""
        thread.active = None
        self._activate()

    def class_now(self) -> type[DeviceArray]:
        """The class of arrays that are made now, by this thread."""
        return thread.classes.get(self.index, self.array_class)

    def class_of_stream(self, stream: Any) -> type[DeviceArray]:
        """The class of arrays that are made on a stream of the library; None: on the default one."""
        if stream is None or stream.ptr == self.module.cuda.Stream.null.ptr:
            return self.array_class
        made = self.of_streams.get(stream.ptr)
        if made is None:
            members = {"__slots__": (), "stream": stream, "stream_pointer": ctypes.c_void_p(stream.ptr)}
            made = type(f"{self.array_class.__name__}OnStream", (self.array_class,), members)
            register_array_class(made, self.device)
            libraries.offer(made, self.kernels)
            made = self.of_streams.setdefault(stream.ptr, made)
        return made

    def class_of_description(self, kind: type[Any], array_class: type[DeviceArray]) -> type[Any]:
        """The class of sparse arrays of a kind whose values are of `array_class`, with its place and stream.

        What it computes is computed by this device's kernels: Note [Kernels for another library]."""
        made = self.of_descriptions.get((kind, array_class))
        if made is None:
            members = {"__slots__": (), "place": self, "stream": array_class.stream, "of_arrays": array_class}
            made = type(kind.__name__, (kind,), {**self.kernels.methods(kind), **members})
            register_array_class(made, self.device)
            libraries.offer(made, self.kernels)
            made = self.of_descriptions.setdefault((kind, array_class), made)
        return made

    def new_stream(self, priority: int) -> Any:
        """A stream of the library: there are at most 32 of a priority, which take turns, as in torch. None is ever
        destroyed, and so no array, event or handle is left on one that is gone."""
        made, turn = self._pool.setdefault(priority, ([], [0]))
        turn[0] += 1
        if len(made) < _MOST_STREAMS:
            self.activate()
            made.append(self.module.cuda.Stream(non_blocking=True, priority=priority))
            return made[-1]
        return made[turn[0] % _MOST_STREAMS]

    def class_of_copies(self) -> type[DeviceArray]:
        """The class of arrays that are made on the stream for copies beside the computation."""
        if self._copies is None:
            self.activate()
            self._copies = self.class_of_stream(self.module.cuda.Stream(non_blocking=True))
        return self._copies

    def use_class(self, array_class: type[DeviceArray]) -> None:
        """Make the stream of `array_class` this thread's current one on this device."""
        thread.classes[self.index] = array_class
        if thread.active is self:
            thread.active = None

    def join(self, before: type[DeviceArray], after: type[DeviceArray]) -> None:
        """Make the stream of the class `after` wait for what that of `before` has been told so far."""
        if before.stream is not after.stream:
            self.wait_captured(before, after)
            null = self.module.cuda.Stream.null
            (null if after.stream is None else after.stream).wait_event(self.mark(before))

    def mark(self, array_class: type[DeviceArray]) -> Any:
        """An event after what the stream of a class has been told so far."""
        self.activate()
        event = self.module.cuda.Event(disable_timing=True)
        event.record(self.module.cuda.Stream.null if array_class.stream is None else array_class.stream)
        return event

    def wait_captured(self, before: type[DeviceArray], after: type[DeviceArray]) -> None:
        """One stream waits for another: it is captured with it, Note [Captured graphs]."""
        if not capturing or before is after:
            return
        capture = capturing.get(before)
        if capture is None:
            if after in capturing:
                raise refused(
                    "waiting for a stream that is not captured",
                    "Run what the graph needs before the capture, on the stream that is captured",
                )
        elif after not in capturing:
            capture.add(after)

    def refuse_if_captured(self, what: str) -> None:
        """Raise where the current stream is captured, and `what` would wait for it."""
        refuse_if_captured(self, what, VALUES)

    def is_captured(self) -> bool:
        """Is this thread's stream captured?"""
        return capture_of(self) is not None

    def outside(self, array: DeviceArray) -> np.ndarray:
        """The values that an array had when the capture began."""
        null = self.module.cuda.Stream.null
        null.use()
        try:
            return array.raw.get()
        finally:
            self.reactivate()

    def drawn(self, draw: Callable[[], np.ndarray], first: Any = None) -> Any:
        """What `draw` gives on the host, anew for each launch of the graph that is captured; until then `first`, or
        what it gives now."""
        capture = capture_of(self)
        assert capture is not None
        host = np.array(draw() if first is None else first, order="C")
        held = self.held_as(host.dtype)
        raw = capture.constant_again(host.view(held), lambda: np.array(draw(), order="C").view(held))
        return self.wrap(raw, host.dtype)

    def check_faults(self) -> None:
        """Raise what a kernel has found to be wrong."""
        if self._faults is not None:
            self._faults.check()

    def use_on(self, array: Any, user: type[DeviceArray]) -> None:
        """Say that the stream of the class `user` reads an array that may have been made on another."""
        stream = self.module.cuda.Stream.null if user.stream is None else user.stream
        for part in (array,) if isinstance(array, DeviceArray) else [getattr(array, name) for name in array.parts]:
            memory.use_on(part.raw, stream)

    # ------------------------------------------------------------------------------------------------------ arrays

    def wrap(self, raw: Any, dtype: np.dtype | None = None) -> Any:
        """An array of the library that owns its memory, as one of this device."""
        made = new(thread.classes.get(self.index, self.array_class))
        made._raw, made.base, made.block = raw, None, None
        made.dtype = raw.dtype if dtype is None else dtype
        made.shape, made.strides, made.ptr = raw.shape, raw.strides, raw.data.ptr
        return made

    def fresh(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype, nbytes: int) -> Any:
        """A new array of `nbytes` for one of our kernels; the library's is made when somebody asks for it."""
        now = thread
        if now.active is not self:
            self._activate()
        made = new(now.classes.get(self.index, self.array_class))
        made._raw = made.base = None
        made.dtype, made.shape, made.strides = dtype, shape, strides
        made.block = block = memory.take(nbytes, self.physical)
        made.ptr = block.pointer.ptr
        return made

    def view_of(
        self, source: DeviceArray, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0,
        dtype: np.dtype | None = None,
    ) -> Any:  # fmt: skip
        """A view of an array, from `offset` bytes after its first element on; the library's is made when asked for."""
        made = new(thread.classes.get(self.index, self.array_class))
        made._raw = made.block = None
        made.base = source if source.base is None else source.base
        made.shape, made.strides, made.ptr = shape, strides, source.ptr + offset
        made.dtype = source.dtype if dtype is None else dtype
        return made

    def raw_of(self, array: DeviceArray) -> Any:
        """The library's array for one that was made without it. Nothing is launched, and so no stream is chosen."""
        held = self.held_as(array.dtype)
        root = array.base
        if root is None:
            pointer = memory.pointer_to(array.block) + (array.ptr - array.block.pointer.ptr)
        else:
            pointer = root.raw.data + (array.ptr - root.ptr)
        return self.module.ndarray(array.shape, held, pointer, array.strides)

    def wrap_view(self, raw: Any, source: DeviceArray, dtype: np.dtype | None = None) -> Any:
        """The same for what came of `source`, and may be a view of it."""
        if raw is source.raw:
            return source
        made = new(thread.classes.get(self.index, self.array_class))
        made._raw, made.block = raw, None
        made.shape, made.strides, made.ptr = raw.shape, raw.strides, raw.data.ptr
        made.dtype = (
            source.dtype if dtype is None and raw.dtype == source.raw.dtype else raw.dtype if dtype is None else dtype
        )
        root = source if source.base is None else source.base
        made.base = root if raw.data.mem is root.raw.data.mem and raw.size + root.raw.size else None
        return made

    def wrap_result(self, raw: Any, sources: list[DeviceArray]) -> Any:
        """The same for what a function gave: an array or several, new or views of its arguments."""
        if isinstance(raw, self.raw_class):
            if raw.base is None:
                for source in sources:
                    if raw is source.raw:
                        return source
                return self.wrap(raw)
            for source in sources:
                if raw.data.mem is source.raw.data.mem:
                    return self.wrap_view(raw, source, None)
            return self.wrap(raw)
        if isinstance(raw, (tuple, list)):
            values = [self.wrap_result(one, sources) for one in raw]
            if hasattr(raw, "_fields"):
                return type(raw)(*values)
            return type(raw)(values)
        return raw

    @property
    def faults(self) -> Faults:
        """What kernels find to be wrong."""
        if self._faults is None:
            self._faults = Faults(self)
        return self._faults

    def product(self, a: Any, b: Any, out: Any = None, alpha: float = 1.0, beta: float = 0.0) -> Any:
        """A product of matrices, of batches, or of a matrix and a vector, by cuBLAS; None if it is nothing for it."""
        if self._products is None:
            self._products = products_of(self.launcher) or False
        if self._products is False:
            return None
        if len(b.shape) == 1 and len(a.shape) == 2 and out is None:
            column = self.view_of(b, (b.shape[0], 1), (b.strides[0], b.dtype.itemsize))
            made = self._products(a, column)
            return None if made is None else self.view_of(made, (a.shape[0],), (made.dtype.itemsize,))
        return self._products(a, b, out, alpha, beta)

    def product_ufunc(self, args: tuple[Any, ...], out: Any) -> Any:
        """The same as a ufunc."""
        a, b = args
        return self.product(a, b, out) if isinstance(a, DeviceArray) and isinstance(b, DeviceArray) else None

    def held_as(self, dtype: np.dtype) -> np.dtype:
        """The dtype of the library that holds elements of `dtype`: itself, or an integer of the same size."""
        found: Any = self._held.get(dtype)
        if found is None:
            found = dtype
            if not (dtype.kind in "biu" or dtype.char in "efdFD"):
                try:
                    self.module.zeros(1, dtype) + self.module.zeros(1, dtype)
                except _FINAL:
                    raise
                except Exception:
                    found = _UNSIGNED[dtype.itemsize]
            self._held[dtype] = found
        return found

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        item = dtype.itemsize
        return self.fresh(shape, contiguous(shape, item), dtype, math.prod(shape) * item)

    def from_host(self, array: np.ndarray, non_blocking: bool = False) -> Any:
        """A copy of a NumPy array on this device, its dimensions in memory in the same order."""
        self.activate()
        dtype = array.dtype
        held = self.held_as(dtype)
        order = None
        if not array.flags.c_contiguous:
            if array.ndim > 1 and array.size:
                order = sorted(range(array.ndim), key=lambda d: (-abs(array.strides[d]), d))
                array = array.transpose(order)
            array = np.ascontiguousarray(array)
        source = array if held is dtype or held == dtype else array.view(held)
        capture = capture_of(self)
        if capture is not None and not (non_blocking and devices.is_pinned_array(array)):
            raw = capture.constant(source)
        elif non_blocking and devices.is_pinned_array(array):
            raw = self.module.empty(source.shape, held)
            raw.set(source)
            self.hold_host(source)
        else:
            raw = self.module.asarray(source)
        made = self.wrap(raw, dtype)
        if order is not None:
            made = made.transpose(tuple(sorted(range(len(order)), key=order.__getitem__)))
            made.own()
        return made

    def hold_host(self, array: np.ndarray) -> None:
        """Keep an array of the host until what this stream was told so far is done: it reads or writes it."""
        capture = capture_of(self)
        if capture is not None:
            capture.constants.append(array)
            return
        event = self.module.cuda.Event(disable_timing=True)
        event.record(self.stream_now())
        self.held = [(kept, at) for kept, at in self.held if not at.done]
        self.held.append((array, event))

    def to_host(self, array: DeviceArray, non_blocking: bool = False) -> np.ndarray:
        """A copy of an array of this device in the host's memory; with `non_blocking`, in pinned memory and later."""
        self.activate()
        refuse_if_captured(self, "reading values on the host", VALUES)
        raw, order = array.raw, None
        if raw.ndim > 1 and not raw.flags.c_contiguous and raw.size:
            order = sorted(range(raw.ndim), key=lambda d: (-abs(raw.strides[d]), d))
            raw = raw.transpose(tuple(order))
        if non_blocking:
            host: Any = pinned.empty(self.module, raw.shape, raw.dtype)
            if not raw.flags.c_contiguous:
                raw = raw.copy()
            raw.get(out=host, blocking=False)
            self.hold_host(host)
            self.held.append((raw, self.held[-1][1]))
        else:
            host = raw.get()
            if self._faults is not None:
                self._faults.check()
        if not isinstance(host, np.ndarray):
            host = np.asarray(host)
        if array.stored:
            host = host.view(array.dtype)
        return host if order is None else host.transpose(sorted(range(len(order)), key=order.__getitem__))

    def take(self, array: Any, non_blocking: bool = False) -> Any:
        """An array of the CPU or of any device on this one: itself if it is here."""
        if not isinstance(array, DeviceArray):
            if capturing and not (non_blocking and devices.is_pinned_array(array)):
                refuse_if_captured(self, "a copy from the host", FROM_HOST)
            return self.from_host(array, non_blocking)
        if array.place is self:
            return array
        return self.from_device(array)

    def from_device(self, array: DeviceArray) -> Any:
        """A copy of an array of another device: ours starts when its stream is there, and goes on by itself."""
        there = array.place
        there.activate()
        event = there.module.cuda.Event(disable_timing=True)
        event.record(there.stream_now())
        self.activate()
        stream = self.stream_now()
        stream.wait_event(event)
        raw = self.module.empty(array.shape, array.raw.dtype)
        if there.physical == self.physical:
            raw[...] = array.raw
        else:
            source = array.raw if array.raw.flags.c_contiguous else None
            if source is None:
                there.activate()
                source = array.raw.copy()
                event.record(there.stream_now())
                self.activate()
                stream.wait_event(event)
            raw.data.copy_from_device_async(source.data, raw.nbytes, stream)
            array = there.wrap(source)
        memory.use_on(array.raw, stream)
        return self.wrap(raw, array.dtype)

    def stream_now(self) -> Any:
        """The library's stream that this thread uses here."""
        stream = self.class_now().stream
        return self.module.cuda.Stream.null if stream is None else stream

    # ------------------------------------------------------------------------------------------------- other libraries

    def raw_kernel(self, name: str, source: str) -> Any:
        """A kernel written in CUDA, compiled at its first use; None for a library that has no compiler."""
        if name not in self._raw_kernels:
            make = getattr(self.module, "RawKernel", None)
            self._raw_kernels[name] = None if make is None else make(source, name)
        self.activate()
        return self._raw_kernels[name]

    def library_of(self, path: str) -> Any:
        """What the library has in place of another library for NumPy's arrays, such as ``scipy.sparse``; or None."""
        if path not in self._libraries:
            try:
                self._libraries[path] = import_module(f"{self.module.__name__}x.{path}")
            except ImportError:
                self._libraries[path] = None
        return self._libraries[path]

    def unwrap(self, value: Any) -> Any:
        """An argument as the library takes it."""
        if isinstance(value, DeviceArray):
            return value.raw
        kind = value.__class__
        if kind is np.ndarray:
            if capturing and value.ndim:
                refuse_if_captured(self, "a copy from the host", FROM_HOST)
            return self.from_host(value).raw
        if kind is list or kind is tuple:
            return kind([self.unwrap(one) for one in value])
        if kind is Ufunc:
            return value.raw
        return value

    def unwrap_key(self, key: Any) -> Any:
        """An index as the library takes it: a list in it is an array of indices."""
        if key.__class__ is tuple:
            return tuple([self.unwrap_key(one) for one in key])
        if key.__class__ is list:
            return self.from_host(np.asarray(key)).raw if not arrays_in(key) else self.module.asarray(self.unwrap(key))
        if isinstance(key, DeviceArray):
            return key.raw
        if key.__class__ is np.ndarray:
            return self.from_host(key).raw
        return key

    def by_host(self, function: Any, args: Any, kwargs: Any, writes: Any = None) -> Any:
        """``function(*args, **kwargs)``, computed by NumPy in the host's memory; `writes` gets its values back."""
        name = getattr(function, "__name__", str(function))
        if any(isinstance(one, Description) for one in args):  # which is no array on any device
            raise NoArray(f"{name} was given a tensor without an array of its own")
        if capturing:
            refuse_if_captured(self, f"{name}, which is computed on the host", VALUES)
        on_host[name] += 1
        sources: dict[int, tuple[Any, np.ndarray]] = {}
        out = kwargs.get("out")
        values = function(*[_host(a, sources) for a in args], **{k: _host(v, sources) for k, v in kwargs.items()})
        targets = [writes] if writes is not None else []
        targets += out if isinstance(out, tuple) else [out] if out is not None else []
        for target in targets:
            if isinstance(target, DeviceArray):
                target.raw[...] = self.from_host(sources[id(target)][1]).raw
        if out is not None:
            return out[0] if isinstance(out, tuple) and len(out) == 1 else out
        if writes is not None:
            return None
        return self._back(values)

    def _back(self, value: Any) -> Any:
        if isinstance(value, np.ndarray) or (isinstance(value, np.generic) and not isinstance(value, np.void)):
            return self.from_host(np.asarray(value))
        if isinstance(value, (tuple, list)):
            values = [self._back(one) for one in value]
            return type(value)(*values) if hasattr(value, "_fields") else type(value)(values)
        return value

    # -------------------------------------------------------------------------------------------------- mixed devices

    def refuse_mixed(self, name: str, values: Any) -> None:
        """Raise torch's error where arrays of other devices are among `values`; a 0-d array of the CPU may be."""
        for value in values:
            kind = value.__class__
            if kind is np.ndarray:
                if value.ndim:
                    raise RuntimeError(mixed(name, self.device, "cpu"))
            elif isinstance(value, DeviceArray):
                if value.place is not self and (value.raw.ndim or True):
                    raise RuntimeError(mixed(name, self.device, value.place.device))
            elif kind is list or kind is tuple:
                self.refuse_mixed(name, value)
            elif isinstance(value, Description) and getattr(value, "place", self) is not self:
                raise RuntimeError(mixed(name, self.device, value.place.device))

    def _refuse_mixed_call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if name not in _TAKES_CPU_INDICES:
            self.refuse_mixed(name, args)
            if kwargs:
                self.refuse_mixed(name, kwargs.values())


#: As in torch: tensors of indices may lie on the CPU beside a tensor of any device; what copies, copies.
_TAKES_CPU_INDICES = {"index", "index_backward", "index_put", "index_put_", "copy_", "copy", "_index_put_impl"}


def mixed(name: str, one: Any, other: Any) -> str:
    """What torch says of devices that meet."""
    return (
        f"Expected all tensors to be on the same device, but found at least two devices, {one} and {other}! "
        f"(when calling {name}; move one of them with .to(...))"
    )


def _host(value: Any, sources: dict[int, tuple[Any, np.ndarray]]) -> Any:
    if isinstance(value, DeviceArray):
        if id(value) not in sources:
            sources[id(value)] = (value, value.get())
        return sources[id(value)][1]
    kind = value.__class__
    if kind is list or kind is tuple:
        return kind([_host(one, sources) for one in value])
    if kind is Ufunc:
        return value.np
    return value


# ---------------------------------------------------------------------------------------------------------- the door

places: list[Place] = []
#: Places that were there before, with their kernels: for a library that comes again.
_made: dict[tuple[int, int, int], Place] = {}
_lock = threading.RLock()
#: What had streams once: these are never destroyed.
_gone: list[Any] = []
#: CuPy, or None where it is not: looked for once.
_looked: list[Any] = []
#: Called when devices come and when they go: memory, generators.
started: list[Callable[[list[Place]], None]] = []


def start(module: Any = None, logical: int | None = None) -> list[Place]:
    """The devices, made at the first call. `module`: a library with CuPy's names; CuPy itself if none is given.

    `logical`: so many devices, sharing the real ones; for tests on a machine that has one.
    """
    with _lock:
        if places:
            return places
        if module is None:
            if not _looked:
                _looked.append(find_library())
            module = _looked[0]
            if module is None:
                return places
        count = module.cuda.runtime.getDeviceCount()
        memory.install(module)
        for index in range(count if logical is None else logical):
            known = _made.get((id(module), index, index % count))
            place = Place(module, index, index % count) if known is None else known
            _made[(id(module), index, index % count)] = place
            register_array_class(place.array_class, place.device)
            libraries.offer(place.array_class, place.kernels)
            libraries.offer(place.words_class, place.kernels)
            places.append(place)
        return places


def stop() -> None:
    """Forget all devices: for tests, whose library goes."""
    with _lock:
        for place in places:
            for array_class in (*place.of_descriptions.values(), *place.of_streams.values(), place.array_class):
                libraries.withdraw(array_class)
                forget_array_class(array_class)
            libraries.withdraw(place.words_class)
            _gone.append((*place.of_streams.values(), place._pool.copy()))
            place._pool.clear()
            place.of_streams.clear()
            place.of_descriptions.clear()
            place.held.clear()
            place._copies = place.capture_stream = None
        places.clear()
        thread.active = None
        thread.index = 0
        thread.classes.clear()
        memory.uninstall()


def find_library() -> Any:
    """CuPy, if it is installed and finds a device; else None."""
    try:
        cupy = import_module("cupy")
        if not cupy.cuda.runtime.getDeviceCount():
            return None
        import_module("cupyx").seterr(linalg="raise")
        return cupy
    except Exception:  # not installed, or no driver
        return None


def place_of(where: Any) -> Place:
    """The place of a device, given by number, name or device; None: the current one."""
    if where is None:
        index = thread.index
    elif isinstance(where, int):
        index = where
    else:
        found = where if isinstance(where, device) else device(where)
        index = thread.index if found.index is None else found.index
    if not places and not start():
        devices.refuse_device(device("cuda"))
    if not 0 <= index < len(places):
        raise RuntimeError(
            f"CUDA error: invalid device ordinal: there is no cuda:{index}, only {len(places)} "
            f"device{'s' if len(places) != 1 else ''}"
        )
    return places[index]


def from_dlpack(given: Any) -> Any:
    """An array on the memory of another library's, on the same device: nothing is copied."""
    number = given.__dlpack_device__()[1]
    for place in places:
        if place.physical == number:
            place.activate()
            raw = place.module.from_dlpack(given)
            return place.wrap(raw)
    raise RuntimeError(f"there is no cuda:{number} here")
