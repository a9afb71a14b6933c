"""A CUDA library that is not there: CuPy's names over NumPy, with streams, devices and a limit of memory.

It is as unlike NumPy as CuPy is: it refuses NumPy's arrays and to become one, and lacks what CuPy lacks.  Its
streams are
late: with ``delayed(True)``, what is launched on a stream runs when somebody waits for it, and memory holds NaNs or
what
was there before until then.  So a missing wait, or memory that is given to somebody else too early, is a wrong number.

`retrograd.cuda.places.start(simulated.library(...))` takes it by the same door as CuPy.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from types import SimpleNamespace
from typing import Any

import numpy as np

#: What NumPy has and CuPy 14 has not.
MISSING = {
    "asmatrix", "block", "bmat", "einsum_path", "frompyfunc", "geomspace", "getbufsize", "geterr",
    "histogram_bin_edges",
    "insert", "matvec", "nanpercentile", "nanquantile", "polyder", "polydiv", "polyint", "setbufsize", "seterr",
    "spacing", "unstack", "vecdot", "vecmat", "errstate",
    "linalg.diagonal", "linalg.matrix_norm", "linalg.multi_dot", "linalg.outer", "linalg.svdvals", "linalg.tensordot",
    "linalg.trace", "linalg.vecdot", "linalg.vector_norm",
}  # fmt: skip
#: Arguments that CuPy's function of the name does not take.
REFUSED = {
    "max": {"initial", "where"}, "min": {"initial", "where"}, "amax": {"initial", "where"}, "amin": {"initial",
    "where"},
    "sum": {"initial", "where"}, "prod": {"initial", "where"}, "any": {"where"}, "all": {"where"},
    "mean": {"where"}, "var": {"where"}, "std": {"where"}, "argsort": {"stable"}, "sort": {"stable"},
    "clip": {"dtype", "min", "max"}, "copyto": set(), "linalg.cholesky": {"upper"}, "linalg.pinv": {"hermitian"},
}  # fmt: skip
_SCATTERS = {"add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"}
_VIEWS = ("reshape", "transpose", "swapaxes", "squeeze", "ravel", "diagonal")


class OutOfMemoryError(MemoryError):
    """As CuPy's."""

    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        super().__init__(f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes, limit set to: "
                         f"{limit:,} bytes).")  # fmt: skip


class Machine:
    """The devices, their streams and their memory."""

    def __init__(self, devices: int = 1, limit: int = 1 << 40) -> None:
        self.devices, self.limit, self.delayed = devices, limit, False
        #: When somebody waits for a stream, do all the others run first, as far as they may? Else none does that
        #: need not.
        self.others_first = False
        self.used: dict[int, int] = defaultdict(int)
        self.kept: dict[int, int] = defaultdict(int)
        self.free: dict[tuple[int, int, int], list[np.ndarray]] = defaultdict(list)
        self.streams: dict[tuple[int, int], Stream] = {}
        self.lock = threading.RLock()
        self.next_stream = 1
        self.local = threading.local()
        #: What was launched, for tests: (device, stream, name).
        self.log: list[tuple[int, int, str]] | None = None

    @property
    def device(self) -> int:
        return getattr(self.local, "device", 0)

    @property
    def stream(self) -> Stream:
        current = getattr(self.local, "streams", None)
        if current is None:
            current = self.local.streams = {}
        found = current.get(self.device)
        return self.null(self.device) if found is None or found.ptr == 0 else found

    def null(self, device: int) -> Stream:
        found = self.streams.get((device, 0))
        if found is None:
            found = self.streams[(device, 0)] = Stream(_null=device)
        return found


machine = Machine()


# ------------------------------------------------------------------------------------------------ streams and events


class Stream:
    """A queue of work."""

    null: Any

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int | None = None,
                 _null: int | None = None) -> None:  # fmt: skip
        self.queue: deque[Any] = deque()
        self.non_blocking = non_blocking
        self.priority = priority or 0
        self.done_count = self.count = 0
        #: The work of a graph that this stream is captured into.
        self.captured: list[Any] | None = None
        if _null is not None:
            self.ptr, self.device_id = 0, _null
        else:
            with machine.lock:
                self.ptr, self.device_id = machine.next_stream, machine.device
                machine.next_stream += 1
                machine.streams[(self.device_id, self.ptr)] = self

    def begin_capture(self, mode: Any = None) -> None:
        self.captured = []

    def end_capture(self) -> Graph:
        captured = self.captured
        for stream in machine.streams.values():
            if stream.captured is captured:
                stream.captured = None
        return Graph(captured)

    def launch(self, work: Any) -> None:
        if self.captured is not None:
            self.captured.append(work)
            return
        with machine.lock:
            self.count += 1
            if machine.delayed:
                self.queue.append(work)
            else:
                work()
                self.done_count = self.count

    def run_to(self, count: int) -> None:
        with machine.lock:
            while self.done_count < count and self.queue:
                work = self.queue.popleft()
                self.done_count += 1
                work()

    def synchronize(self) -> None:
        target = self._here()
        target._refuse_captured()
        if machine.others_first:
            for other in list(machine.streams.values()):
                if other is not target:
                    other.run_to(other.count)
        target.run_to(target.count)

    def _refuse_captured(self) -> None:
        if self.captured is not None:
            raise RuntimeError("cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing")

    def _here(self) -> Stream:
        return self if self.ptr or self.__dict__.get("_real") else machine.null(machine.device)

    @property
    def done(self) -> bool:
        return not self._here().queue

    def use(self) -> Stream:
        if not hasattr(machine.local, "streams"):
            machine.local.streams = {}
        machine.local.streams[machine.device] = self
        return self

    def record(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        origin, count = event.stream, event.count
        if event.captured is not None or self.captured is not None:
            if event.captured is None or self.captured not in (None, event.captured):
                raise RuntimeError("cudaErrorStreamCaptureIsolation: dependency created on uncaptured work")
            self._here().captured = event.captured  # in one list, what was told first is done first
        elif origin is not None:
            self._here().launch(lambda: origin.run_to(count))

    def __enter__(self) -> Stream:
        self.before = machine.stream
        return self.use()

    def __exit__(self, *exc_info: object) -> None:
        self.before.use()


Stream.null = Stream(_null=0)


class Graph:
    """What was captured."""

    def __init__(self, works: list[Any]) -> None:
        self.works = works

    def launch(self, stream: Stream | None = None) -> None:
        for work in self.works:
            (machine.stream if stream is None else stream)._here().launch(work)


class Event:
    """A mark in a stream."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.stream: Stream | None = None
        self.count = 0
        self.ptr = id(self)
        self.captured: list[Any] | None = None

    def record(self, stream: Stream | None = None) -> None:
        self.stream = (machine.stream if stream is None else stream)._here()
        self.captured = self.stream.captured
        self.count = self.stream.count

    @property
    def done(self) -> bool:
        return self.stream is None or self.stream.done_count >= self.count

    def synchronize(self) -> None:
        if self.stream is not None:
            self.stream.run_to(self.count)


class Device:
    def __init__(self, device: int | None = None) -> None:
        self.id = machine.device if device is None else int(device)

    def use(self) -> Device:
        if not 0 <= self.id < machine.devices:
            raise RuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        machine.local.device = self.id
        return self

    def synchronize(self) -> None:
        for (device, _), stream in list(machine.streams.items()):
            if device == self.id:
                stream.run_to(stream.count)

    @property
    def compute_capability(self) -> str:
        return "90"

    @property
    def mem_info(self) -> tuple[int, int]:
        return machine.limit - machine.kept[self.id], machine.limit


# -------------------------------------------------------------------------------------------------------------- memory


class Memory:
    """A block of a device's memory; back in the pool of its stream when nobody holds it."""

    def __init__(self, size: int, free: Any = None) -> None:
        size = -(-size // 512) * 512
        self.device_id, self.size, self.machine = machine.device, size, machine
        self.key = (self.device_id, machine.stream.ptr, size)
        self.free = machine.free if free is None else free
        with machine.lock:
            kept = self.free.get(self.key)
            if kept:
                self.bytes = kept.pop()
            else:
                if machine.kept[self.device_id] + size > machine.limit:
                    _release_unused(self.device_id)
                if machine.kept[self.device_id] + size > machine.limit:
                    raise OutOfMemoryError(size, machine.kept[self.device_id], machine.limit)
                machine.kept[self.device_id] += size
                self.bytes = np.full(size, 0xFF, np.uint8)
            machine.used[self.device_id] += size
        self.ptr = self.bytes.__array_interface__["data"][0]

    def __del__(self) -> None:
        if hasattr(self, "ptr"):
            self.machine.used[self.device_id] -= self.size
            self.free[self.key].append(self.bytes)


def _release_unused(device: int) -> None:
    for key in list(machine.free):
        if key[0] == device:
            machine.kept[device] -= key[2] * len(machine.free.pop(key))


def poison() -> None:
    """Fill the memory that nobody holds with NaNs."""
    for kept in machine.free.values():
        for block in kept:
            block.fill(0xFF)


class UnownedMemory:
    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id
        self.bytes = owner.pointer.mem.bytes if hasattr(owner, "pointer") else owner.bytes


class MemoryPointer:
    def __init__(self, mem: Any, offset: int) -> None:
        self.mem, self.offset, self.ptr = mem, offset, mem.ptr + offset

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.offset + offset)

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Any = None) -> None:
        here = self.mem.bytes[self.offset_in() : self.offset_in() + size]
        there = src.mem.bytes[src.offset_in() : src.offset_in() + size]
        (machine.stream if stream is None else stream._here()).launch(lambda: np.copyto(here, there))

    def offset_in(self) -> int:
        return self.ptr - self.mem.bytes.__array_interface__["data"][0]


class MemoryPool:
    def __init__(self, default: bool = False) -> None:
        self.free: Any = None if default else defaultdict(list)

    def malloc(self, size: int) -> MemoryPointer:
        return MemoryPointer(Memory(size, self.free), 0)

    def used_bytes(self) -> int:
        return machine.used[machine.device]

    def total_bytes(self) -> int:
        return machine.kept[machine.device]

    def free_all_blocks(self, stream: Any = None) -> None:
        _release_unused(machine.device)

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        machine.limit = size or 1 << 40

    def get_limit(self) -> int:
        return machine.limit


_pool = MemoryPool(default=True)
_allocator: list[Any] = [_pool.malloc]


# -------------------------------------------------------------------------------------------------------------- arrays


class _Flags:
    def __init__(self, array: np.ndarray) -> None:
        self.c_contiguous, self.f_contiguous = array.flags.c_contiguous, array.flags.f_contiguous
        self.owndata = True


class ndarray:
    """An array of a simulated device."""

    def __init__(
        self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C"
    ) -> None:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        dtype = np.dtype(dtype)
        _check_dtype(dtype)
        if strides is None:
            steps, step = [], dtype.itemsize
            for n in reversed(shape) if order != "F" else shape:
                steps.append(step)
                step *= max(n, 1)
            strides = tuple(reversed(steps)) if order != "F" else tuple(steps)
        size = int(np.prod(shape)) * dtype.itemsize
        self.data = _allocator[0](max(size, 1)) if memptr is None else memptr
        self.base: Any = None
        self._np = _at(self.data, shape, dtype, tuple(strides))

    shape = property(lambda self: self._np.shape, lambda self, shape: setattr(self._np, "shape", shape))
    dtype = property(lambda self: self._np.dtype)
    strides = property(lambda self: self._np.strides)
    size = property(lambda self: self._np.size)
    ndim = property(lambda self: self._np.ndim)
    itemsize = property(lambda self: self._np.itemsize)
    nbytes = property(lambda self: self._np.nbytes)
    flags = property(lambda self: _Flags(self._np))
    device = property(lambda self: Device(self.data.mem.device_id))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`.")

    def _view(self, made: np.ndarray) -> ndarray:
        result = object.__new__(ndarray)
        result._np, result.base = made, self if self.base is None else self.base
        offset = made.__array_interface__["data"][0] - self.data.mem.ptr
        result.data = MemoryPointer(self.data.mem, offset if made.size else 0)
        return result

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> np.ndarray:
        used = machine.stream if stream is None else stream._here()
        if out is not None:
            used.launch(lambda here=self._np: np.copyto(out, here))
            if blocking:
                used.synchronize()
            return out
        made = np.empty_like(self._np, order="F" if order == "A" and self._np.flags.fnc else "C")
        used.launch(lambda here=self._np: np.copyto(made, here))
        if blocking:
            used.synchronize()
        return made

    def set(self, array: np.ndarray, stream: Any = None) -> None:
        used = machine.stream if stream is None else stream._here()
        source = array if is_pinned(array) else array.copy()
        used.launch(lambda here=self._np: np.copyto(here, source))

    def item(self) -> Any:
        return self.get().item()

    def view(self, dtype: Any = None, type: Any = None) -> ndarray:
        if dtype is not None:
            _check_dtype(np.dtype(dtype))
        return self._view(self._np.view() if dtype is None else self._np.view(dtype))

    @property
    def T(self) -> ndarray:
        return self._view(self._np.T)

    @property
    def real(self) -> ndarray:
        return self._view(self._np.real) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> ndarray:
        return self._view(self._np.imag)

    def astype(self, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: bool = True) -> Any:
        _check_dtype(np.dtype(dtype))
        if self.dtype == dtype and not copy:
            return self
        return run("astype", lambda a: a.astype(dtype, order=order), (self,), {})

    def copy(self, order: str = "C") -> Any:
        return run("copy", lambda a: a.copy(order), (self,), {})

    def flatten(self, order: str = "C") -> Any:
        return run("flatten", lambda a: a.flatten(order), (self,), {})

    def __getitem__(self, key: Any) -> Any:
        if _is_basic(key):
            made = self._np[key]
            return self._view(np.asarray(made) if made.__class__ is np.ndarray else self._np[(*_tuple(key), ...)])
        return run("getitem", lambda a, k: np.asarray(a[k]), (self, key), {})

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.ndim:
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")

        def assign(a: Any, k: Any, v: Any) -> None:
            a[k] = v

        run("setitem", assign, (self, key, value), {}, writes=(self,))

    def __len__(self) -> int:
        return len(self._np)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.data.mem.device_id


def _tuple(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _is_basic(key: Any) -> bool:
    return all(k is None or k is Ellipsis or (isinstance(k, (int, slice, np.integer)) and not isinstance(k, bool))
               for k in _tuple(key))  # fmt: skip


def _check_dtype(dtype: np.dtype) -> None:
    if dtype.kind not in "biu" and dtype.char not in "efdFD" and dtype.name != "bfloat16":
        raise ValueError(f"Unsupported dtype {dtype}")


def _at(pointer: MemoryPointer, shape: Any, dtype: np.dtype, strides: Any) -> np.ndarray:
    offset = pointer.ptr - pointer.mem.bytes.__array_interface__["data"][0]
    if 0 in shape:
        return np.ndarray(shape, dtype, pointer.mem.bytes, 0, strides)
    return np.ndarray(shape, dtype, pointer.mem.bytes, offset, strides)


for _name in _VIEWS:

    def _method(self: ndarray, *args: Any, _name: str = _name, **kwargs: Any) -> Any:
        made = getattr(self._np, _name)(*args, **kwargs)
        if not made.flags.writeable:  # of a diagonal: nothing protects the memory of a device
            made.flags.writeable = True
        if made.size and not np.shares_memory(made, self._np):
            return run(_name, lambda a: getattr(a, _name)(*args, **kwargs), (self,), {})
        return self._view(made)

    setattr(ndarray, _name, _method)


def _host(value: Any) -> Any:
    if isinstance(value, ndarray):
        return value._np
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, (list, tuple)):
        return type(value)([_host(one) for one in value])
    return value


def _copied(value: Any, targets: set[int]) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy("K") if id(value) in targets else value
    if isinstance(value, (list, tuple)):
        return type(value)([_copied(one, targets) for one in value])
    return value


def _arrays(values: Any) -> list[ndarray]:
    found = []
    for value in values:
        if isinstance(value, ndarray):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _arrays(value)
    return found


def run(name: str, function: Any, args: Any, kwargs: Any, writes: Any = ()) -> Any:
    """Launch ``function`` of NumPy arrays on the current stream; what it gives is there once the stream gets to it."""
    sources = _arrays([*args, *kwargs.values()])
    for one in sources:
        if one.data.mem.device_id not in (-1, machine.device):
            raise ValueError(f"Array device must be same as the current device: array device = "
                             f"{one.data.mem.device_id} while current = {machine.device}")  # fmt: skip
    given, options = _host(tuple(args)), {k: _host(v) for k, v in kwargs.items()}
    stream = machine.stream
    if machine.log is not None:
        machine.log.append((machine.device, stream.ptr, name))
    outs = [one._np for one in writes]
    with np.errstate(all="ignore"):
        if not machine.delayed and stream.captured is None:
            stream.count = stream.done_count = stream.count + 1
            result = function(*given, **options)
            return None if writes else _wrap(result, sources)
        targets = {id(one) for one in outs}
        try:
            tried = function(*_copied(given, targets), **{k: _copied(v, targets) for k, v in options.items()})
        except Exception:  # of values that are not there yet
            stream.synchronize()  # (of a stream that is captured, refused)
            tried = function(*_copied(given, targets), **{k: _copied(v, targets) for k, v in options.items()})
    if writes:
        stream.launch(lambda: _quiet(function, given, options))
        return None
    results = _late(tried)
    places = [one._np for one in _arrays([results])]

    def work() -> None:
        values = _quiet(function, given, options)
        for place, value in zip(places, _plain(values), strict=True):
            np.copyto(place, value)

    stream.launch(work)
    return results


def _quiet(function: Any, given: Any, options: Any) -> Any:
    with np.errstate(all="ignore"):
        return function(*given, **options)


def _plain(values: Any) -> list[Any]:
    if isinstance(values, (list, tuple)):
        return [one for value in values for one in _plain(value)]
    return [values] if isinstance(values, (np.ndarray, np.generic)) else []


def _late(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        like = np.asarray(value)
        made = ndarray(like.shape, like.dtype, None, None, "F" if like.flags.fnc else "C")
        return made
    if isinstance(value, (list, tuple)):
        return tuple([_late(one) for one in value]) if isinstance(value, tuple) else [_late(one) for one in value]
    return value


def _wrap(value: Any, sources: list[ndarray]) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        value = np.asarray(value)
        for source in sources:
            if value.size and value.base is not None and np.may_share_memory(value, source._np):
                return source if value is source._np else source._view(value)
        made = ndarray(value.shape, value.dtype, None, None, "F" if value.flags.fnc else "C")
        made._np[...] = value
        return made
    if isinstance(value, (list, tuple)):
        return (
            tuple([_wrap(one, sources) for one in value])
            if isinstance(value, tuple)
            else [_wrap(one, sources) for one in value]
        )
    return value


# ----------------------------------------------------------------------------------------------------- functions


class Ufunc:
    def __init__(self, ufunc: np.ufunc) -> None:
        self.np, self.name, self.nin, self.nout = ufunc, ufunc.__name__, ufunc.nin, ufunc.nout

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        if self.np.signature is None and any(k not in ("dtype", "casting", "where") for k in kwargs):
            raise TypeError(f"Wrong arguments {kwargs}")
        if out is None:
            return run(self.name, self.np, args, kwargs)
        if isinstance(out, tuple):
            out = out[0] if len(out) == 1 else out
        outs = _arrays([out])

        def into(*given: Any, out: Any, **options: Any) -> None:
            self.np(*given, out=out, **options)

        run(self.name, into, args, {"out": out, **kwargs}, writes=outs)
        return out

    def at(self, a: Any, indices: Any, b: Any = None) -> None:
        if self.name not in _SCATTERS:
            raise NotImplementedError("`ufunc.at` does not support this ufunc")
        if a.dtype.kind in "b" or (a.dtype == np.int64 and self.name == "add" and False):
            raise TypeError("scatter_add only supports int32, float16, float32, float64 as data type")
        run(self.name + ".at", self.np.at, (a, indices, b), {}, writes=(a,))

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if self.name not in ("add", "multiply"):
            raise NotImplementedError("`ufunc.reduce` does not support this ufunc")
        return run(self.name + ".reduce", lambda a: self.np.reduce(a, axis, dtype, None, keepdims), (array,), {})


_OUT_FIRST = {"copyto", "put_along_axis", "fill_diagonal", "place", "putmask", "put"}


def _function(path: str, ours: Any) -> Any:
    refused = REFUSED.get(path, set())

    def call(*args: Any, **kwargs: Any) -> Any:
        wrong = refused & set(kwargs)
        if wrong:
            raise TypeError(f"{path}() got an unexpected keyword argument {sorted(wrong)[0]!r}")
        if "subok" in kwargs or "like" in kwargs:
            raise TypeError("subok is not supported")
        out = kwargs.get("out")
        if path in _OUT_FIRST:
            return run(path, ours, args, kwargs, writes=(args[0],))
        if out is not None:
            run(path, ours, args, kwargs, writes=_arrays([out]))
            return out
        return run(path, ours, args, kwargs)

    call.__name__ = path.rpartition(".")[2]
    return call


class _Names:
    def __init__(self, path: str, host: Any) -> None:
        self._path, self._host = path, host

    def __getattr__(self, name: str) -> Any:
        path = self._path + name
        if path in MISSING or name.startswith("__"):
            raise AttributeError(f"module 'cupy' has no attribute {path!r}")
        ours = getattr(self._host, name)
        if isinstance(ours, np.ufunc):
            made: Any = Ufunc(ours)
        elif isinstance(ours, type) or not callable(ours):
            made = _Names(name + ".", ours) if name in ("linalg", "fft", "lib") else ours
        else:
            made = _function(path, ours)
        self.__dict__[name] = made
        return made


class Library(_Names):
    """The module itself."""

    def __init__(self) -> None:
        super().__init__("", np)
        self.__name__ = "simulated_cupy"
        self.ndarray = ndarray
        self.cuda = SimpleNamespace(
            Device=Device, Stream=Stream, Event=Event, MemoryPointer=MemoryPointer, UnownedMemory=UnownedMemory,
            runtime=SimpleNamespace(
                getDeviceCount=lambda: machine.devices,
                memGetInfo=lambda: Device().mem_info,
                getDeviceProperties=lambda i: {
                    "name": b"Simulated GPU", "major": 9, "minor": 0, "totalGlobalMem": machine.limit,
                    "multiProcessorCount": 132, "warpSize": 32, "maxThreadsPerMultiProcessor": 2048,
                    "regsPerMultiprocessor": 65536,
                    "sharedMemPerBlock": 49152, "sharedMemPerMultiprocessor": 233472, "l2CacheSize": 1 << 20,
                    "integrated": 0,
                    "isMultiGpuBoard": 0, "uuid": b"0" * 16, "pciBusID": 0, "pciDeviceID": 0, "pciDomainID": 0,
                    "maxThreadsPerBlock": 1024, "clockRate": 1, "memoryClockRate": 1, "memoryBusWidth": 1,
                    "sharedMemPerBlockOptin": 1,
                },
                deviceCanAccessPeer=lambda a, b: 1,
            ),
            get_elapsed_time=lambda start, end: 1.0,
            MemoryPool=MemoryPool, get_current_stream=lambda: machine.stream,
            set_allocator=lambda allocator=None: _allocator.__setitem__(0, allocator or _pool.malloc),
            alloc_pinned_memory=_alloc_pinned,
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        )  # fmt: skip

    def get_default_memory_pool(self) -> MemoryPool:
        return _pool

    def asarray(self, a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, blocking: bool = False) -> Any:
        if isinstance(a, ndarray):
            return a if dtype is None or a.dtype == dtype else a.astype(dtype)
        if _arrays([a]):
            return run("stack", lambda *parts: np.stack(parts), tuple(a), {})
        host = np.array(a, dtype)  # pageable memory is read before the call returns
        made = ndarray(host.shape, host.dtype, None, None, "F" if host.flags.fnc else "C")
        machine.stream.launch(lambda here=made._np: np.copyto(here, host))
        return made

    array = asarray

    def empty(self, shape: Any, dtype: Any = float, order: str = "C") -> Any:
        return ndarray(shape, dtype, None, None, order)

    def zeros(self, shape: Any, dtype: Any = float, order: str = "C") -> Any:
        made = ndarray(shape, dtype, None, None, order)
        machine.stream.launch(lambda here=made._np: here.fill(0))
        return made


# ------------------------------------------------------------------------------------------------------ pinned memory

_pinned: list[tuple[int, int]] = []


class _Pinned(np.ndarray):
    """What `alloc_pinned_memory` gives: bytes that a device may read when it gets to it."""


def _alloc_pinned(size: int) -> Any:
    made = np.empty(max(size, 1), np.uint8)
    address = made.__array_interface__["data"][0]
    _pinned.append((address, address + made.size))
    return made


def is_pinned(array: np.ndarray) -> bool:
    address = array.__array_interface__["data"][0]
    return any(low <= address < high for low, high in _pinned)


def library(devices: int = 1, limit: int = 1 << 40, delayed: bool = False) -> Library:
    """A new machine with so many devices and so much memory on each."""
    global machine
    machine = Machine(devices, limit)
    machine.delayed = delayed
    return _library


_library = Library()
