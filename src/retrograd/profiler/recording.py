"""Events are recorded.

Note [What a profile sees]
* Operators of the table: by an observer (autograd/intercept.py).  A backward pass is run on Tensors meanwhile, so that
  its operators are seen as well.
* Nodes of a backward pass: the engine asks observers for what they want around each (`around_nodes`).
* Functions composed of operators (``aten::linear``, factories), steps of optimizers, batches of loaders, and modules
  on request: by Python's own ``sys.setprofile`` (called_functions.py), which no call pays for while it is off.
* Memory: a result with memory that no argument has is new; a weak reference to that memory's array tells when it goes.
* Blocks with a name say so themselves (`record_function`).

An operator and the node that it made have one sequence number; nodes of two threads may have the same one, so the
thread belongs to it.
"""

from __future__ import annotations

import functools
import gc
import itertools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..autograd.intercept import change_modes, new_node, observing, results_of
from ..core.state import local, process
from ..ops.overload import overload_of
from ..tensor import Tensor
from .called_functions import CalledFunctions
from .events import EventList, FunctionEvent
from .flops import flops_of

_this = threading.local()


def _now() -> float:
    return time.perf_counter_ns() / 1e3


def _lines() -> list[str]:
    """The lines of the program which are running, innermost first."""
    found = []
    frame: Any = sys._getframe(1)
    package = __name__.partition(".")[0]
    while frame is not None:
        if (frame.f_globals.get("__package__") or "").partition(".")[0] != package:
            found.append(f"{frame.f_code.co_filename}({frame.f_lineno}): {frame.f_code.co_name}")
        frame = frame.f_back
    return found


class MemoryRecord(NamedTuple):
    """Memory was taken, or given back: a negative number of bytes."""

    time: float
    thread: int
    nbytes: int
    total: int
    address: int


def _owner(array: Any) -> Any:
    """The array whose memory this one shows."""
    while isinstance(array, np.ndarray) and isinstance(array.base, np.ndarray):
        array = array.base
    return array if isinstance(array, np.ndarray) and array.base is None else None


class Recorder:
    """The observer of a profile: what a thread runs while it is on."""

    needs_tensors = True  # so that backward passes run operators, which can be seen

    record_shapes: bool
    profile_memory: bool
    with_stack: bool

    def __init__(
        self,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
    ) -> None:
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops = with_flops
        self.modules: bool = with_modules or with_stack
        self.events: EventList = EventList(profile_memory=profile_memory, with_flops=with_flops)
        #: By thread: the events that are open, outermost first.
        self.running: dict[int, list[FunctionEvent]] = {}
        self.forward: dict[int, FunctionEvent] = {}
        self.memory: dict[int, Any] = {}
        self.total: int = 0
        self.counter: Iterator[int] = itertools.count(1)
        self.on: bool = False
        #: Threads may take and give back memory at the same time; one may do so within, where garbage is collected.
        self.lock: Any = threading.RLock()

    # ------------------------------------------------------------------------------------------------------ events

    def begin(self, name: str, is_user_annotation: bool = False, overload: str = "") -> FunctionEvent:
        thread = threading.get_ident()
        now = _now()
        event = FunctionEvent(
            next(self.counter), name, thread, now, now, overload, 0, is_user_annotation=is_user_annotation
        )
        around = self.running.setdefault(thread, [])
        if around:
            event.cpu_parent = around[-1]
            around[-1].cpu_children.append(event)
        if self.with_stack:
            event.stack = _lines()
        around.append(event)
        self.events.append(event)
        return event

    def end(self, event: FunctionEvent) -> None:
        """An event is over, and so is what an exception has left open in it."""
        now = _now()
        around = self.running.get(event.thread, [])
        while event in around:
            around.pop().time_range.end = now

    def collected(self, phase: str, info: dict[str, Any]) -> None:
        """Python begins to collect garbage, or has done so."""
        if phase == "start":
            self.collecting: FunctionEvent = self.begin("Python GC")
        elif self.on and hasattr(self, "collecting"):
            self.end(self.collecting)

    def end_all(self) -> None:
        for around in list(self.running.values()):
            if around:
                self.end(around[0])

    def describe(self, event: FunctionEvent, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """What the arguments of an event are."""
        for value in (*args, *[value for value in kwargs.values() if isinstance(value, Tensor)]):
            shape: list[int] = []
            strides: list[int] = []
            kind: str = ""
            number: Any = ""
            if isinstance(value, Tensor):
                kind = _DTYPE_NAMES.get(value.dtype.name, value.dtype.name)
                if not value.is_nested:  # whose components differ
                    shape = list(value._memory_.shape)
                    strides = [step // (value._memory_.itemsize or 1) for step in value._memory_.strides]
            elif isinstance(value, (list, tuple)):
                tensors = any(isinstance(one, Tensor) for one in value)
                kind, number = ("TensorList", "") if tensors else ("ScalarList", list(value))
            elif value is not None:
                kind, number = "Scalar", value
            event.input_shapes.append(shape)
            event.input_strides.append(strides)
            event.input_dtypes.append(kind)
            event.concrete_inputs.append(number)
        event.kwinputs = {name: value for name, value in kwargs.items() if not isinstance(value, Tensor)}

    # --------------------------------------------------------------------------------------------------- operators

    def __call__(
        self, operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], proceed: Callable[..., Any]
    ) -> Any:
        overload = overload_of(operator)
        event = self.begin("aten::" + overload.overloadpacket.__name__, overload=overload._overloadname)
        if self.record_shapes:
            self.describe(event, args, kwargs)
        if self.with_flops:
            event.flops = flops_of(event.name, args, kwargs)
        since = local.state.sequence_nr
        try:
            result = proceed()
            if since != local.state.sequence_nr:
                node = new_node(result, since)
                if node is not None:
                    event.sequence_nr = node.sequence_nr
                    self.forward[node.sequence_nr] = event
            if self.profile_memory:
                self.note_memory(event, result, args)
            return result
        finally:
            self.end(event)

    def around_nodes(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, which runs a node of a backward pass, as two events: the engine's, and within it the node's own."""

        def recorded(node: Any, edges: Any, grads: Any, as_tensors: bool) -> Any:
            name = node.name()
            outer = self.begin(f"autograd::engine::evaluate_function: {name.removeprefix('torch::autograd::')}")
            inner = self.begin(name)
            made = self.forward.get(node.sequence_nr)
            if made is not None:
                for event in (outer, inner):
                    event.sequence_nr, event.fwd_thread = node.sequence_nr, made.thread
                    event.stack = made.stack
            if self.record_shapes:
                self.describe(inner, grads if as_tensors else (), {})
            try:
                return call(node, edges, grads, as_tensors)
            finally:
                self.end(outer)

        return recorded

    # ------------------------------------------------------------------------------------------------------ memory

    def note_memory(self, event: FunctionEvent, result: Any, args: Sequence[Any] = ()) -> None:
        """Count the memory of results that no argument has, to the event and to those around it."""
        given: set[int] | None = None
        for tensor in results_of(result):
            owner = _owner(tensor._memory_)
            if owner is None or id(owner) in self.memory:
                continue
            if given is None:
                given = {id(_owner(value._memory_)) for value in args if isinstance(value, Tensor)}
            if id(owner) in given:
                continue
            self.memory[id(owner)] = weakref.ref(owner, self.watch(id(owner), owner.nbytes, owner.ctypes.data))
            self.count(event, owner.nbytes, owner.ctypes.data)

    def watch(self, key: int, nbytes: int, address: int) -> Callable[[Any], None]:
        """What is called when memory goes: it belongs to the event that runs then."""
        this = weakref.ref(self)

        def gone(_: Any) -> None:
            recorder = this()
            if recorder is not None and recorder.memory.pop(key, None) is not None and recorder.on:
                around = recorder.running.get(threading.get_ident())
                recorder.count(around[-1] if around else recorder.begin_free(), -nbytes, address)

        return gone

    def begin_free(self) -> FunctionEvent:
        """The event for memory that was given back between all others."""
        event = self.begin("[memory]")
        self.end(event)
        return event

    def count(self, event: FunctionEvent, nbytes: int, address: int) -> None:
        with self.lock:
            self.total += nbytes
            self.events.memory_records.append(MemoryRecord(_now(), event.thread, nbytes, self.total, address))
            around: FunctionEvent | None = event
            while around is not None:
                around.cpu_memory_usage += nbytes
                around = around.cpu_parent


#: C's names of dtypes, as torch's traces have them.
_DTYPE_NAMES = {
    "float32": "float", "float64": "double", "int64": "long int", "int32": "int", "int16": "short int",
    "int8": "signed char", "uint8": "unsigned char", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


class everywhere:
    """Have a recorder see the operators of all threads: a process-wide mode.  (See Note [Process-wide modes].)

    Functions composed of operators it hears of from its own thread alone: Python tells each thread of its own.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __enter__(self) -> None:
        try:
            change_modes(self._begin)
        except BaseException:  # Note [Interrupts and modes] in state.py
            change_modes(self._end)
            raise

    def __exit__(self, *exc_info: object) -> None:
        change_modes(self._end)

    def _begin(self) -> None:
        _of_all_threads.append(self.recorder)
        process.modes = (*process.modes, self.recorder)

    def _end(self) -> None:
        process.modes = tuple([mode for mode in process.modes if mode is not self.recorder])
        _of_all_threads[:] = [one for one in _of_all_threads if one is not self.recorder]


#: The recorders of the profiles that are on in all threads.
_of_all_threads: list[Recorder] = []


class recording:
    """A profile of what this thread, or all of them, run within a block."""

    def __init__(self, recorder: Recorder, all_threads: bool = False, garbage: bool = False) -> None:
        self.recorder, self.all_threads, self.garbage = recorder, all_threads, garbage

    def __enter__(self) -> Recorder:
        self.observing: Any = (everywhere if self.all_threads else observing)(self.recorder)
        self.observing.__enter__()
        self.before: Any | tuple[()] = getattr(_this, "recorders", ())
        if not self.all_threads:
            _this.recorders = (*self.before, self.recorder)
        self.called: CalledFunctions = CalledFunctions(self.recorder)
        self.called.start()
        if self.garbage:
            gc.callbacks.append(self.recorder.collected)
        self.recorder.on = True
        return self.recorder

    def __exit__(self, *exc_info: object) -> None:
        self.recorder.on = False
        if self.recorder.collected in gc.callbacks:
            gc.callbacks.remove(self.recorder.collected)
        self.called.stop()
        _this.recorders = self.before
        self.observing.__exit__(*exc_info)
        self.recorder.end_all()
        self.recorder.events._remove_dup_nodes()
        self.recorder.memory.clear()
        self.recorder.forward.clear()


def recorders() -> tuple[Recorder, ...]:
    """The recorders of the profiles that are on in this thread, outermost first."""
    own = getattr(_this, "recorders", ())
    return (*_of_all_threads, *own) if _of_all_threads else own


class sharing:
    """Have the profiles of another thread, its `recorders()`, see what this one runs within a block."""

    before: tuple[Recorder, ...]

    def __init__(self, shared: tuple[Recorder, ...]) -> None:
        self.shared = shared

    def __enter__(self) -> None:
        self.observing: list[observing] = [observing(recorder) for recorder in self.shared]
        for one in self.observing:
            one.__enter__()
        self.before, _this.recorders = recorders(), self.shared

    def __exit__(self, *exc_info: object) -> None:
        _this.recorders = self.before
        for one in reversed(self.observing):
            one.__exit__(*exc_info)


class record_function:
    """A name for a block, or for what a function does, in the profiles that are on.

    >>> import retrograd as torch
    >>> x = torch.ones(2)
    >>> with torch.profiler.profile() as profile, torch.profiler.record_function("doubling"):
    ...     y = x * 2
    >>> [event.key for event in profile.events()]
    ['doubling', 'aten::mul']
    """

    name: str
    args: str | None

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self.open: list[tuple[Recorder, FunctionEvent]] = []
        self.run_callbacks_on_exit: bool = True

    def __enter__(self) -> record_function:
        for recorder in recorders():
            event = recorder.begin(self.name, True)
            if self.args is not None and recorder.record_shapes:
                recorder.describe(event, [self.args], {})
            self.open.append((recorder, event))
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self.run_callbacks_on_exit:
            self._close()

    def _close(self) -> None:
        for recorder, event in self.open:
            recorder.end(event)
        self.open = []

    def _call_end_callbacks_on_future(self, fut: Any) -> Any:
        """The block is over when a future is there, not at its end: what the future gives, once that is so."""
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        self.run_callbacks_on_exit = False

        def finish(done: Any) -> Any:
            self._close()
            return done.value()

        return fut.then(finish)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.name, self.args):
                return function(*args, **kwargs)

        return call
