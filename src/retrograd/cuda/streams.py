"""``torch.cuda.streams``: queues of work for CUDA devices, and marks in them. See Note [Streams] in
autograd/streams.py."""

from __future__ import annotations

from typing import Any

from ..core import devices
from ._places import need, place

__all__ = ["Event", "Stream"]


class Stream:
    """A queue of work for a CUDA device: what it is told is done in order, beside what other streams are told.

    ``with torch.cuda.stream(s):`` makes it the current one.
    """

    def __init__(self, device: Any = None, priority: int = 0, **from_the_library: Any) -> None:
        if "place" not in from_the_library:
            need("torch.cuda.Stream requires CUDA support")
        self._place: Any = from_the_library.get("place") or place(device)
        if "raw" in from_the_library:
            self._raw: Any = from_the_library["raw"]
        else:
            self._raw = self._place.new_stream(priority)
        #: The class of arrays that are made on it.
        self._class: Any = self._place.class_of_stream(self._raw)

    @property
    def device(self) -> devices.device:
        """The device that it belongs to."""
        return self._place.device

    @property
    def device_index(self) -> int:
        """The number of that device."""
        return self._place.index

    @property
    def cuda_stream(self) -> int:
        """The number by which CUDA knows it."""
        return self._raw.ptr

    stream_id: Any = cuda_stream

    @property
    def priority(self) -> int:
        """Its priority: lower numbers come first."""
        return getattr(self._raw, "priority", 0) or 0

    @property
    def _as_parameter_(self) -> Any:
        import ctypes

        return ctypes.c_void_p(self.cuda_stream)

    def synchronize(self) -> None:
        """Wait until it has done all that it was told."""
        self._place.activate()
        self._place.refuse_if_captured("synchronize()")
        self._raw.synchronize()
        self._place.check_faults()

    def query(self) -> bool:
        """Has it done all that it was told?"""
        self._place.activate()
        return bool(self._raw.done)

    def record_event(self, event: Event | None = None) -> Event:
        """A mark after what it was told so far."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """What it is told from now on waits for a mark."""
        if event._raw is not None:
            self._place.activate()
            self._place.wait_captured(event._on, self._class)
            self._raw.wait_event(event._raw)

    def wait_stream(self, stream: Stream) -> None:
        """What it is told from now on waits for what the other was told so far."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        self._before = [*getattr(self, "_before", []), (_current(self._place), devices_index())]
        set_stream(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        before, index = self._before.pop()
        self._place.use_class(before)
        use_index(index)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device, self.cuda_stream) == (other.device, other.cuda_stream)

    def __hash__(self) -> int:
        return hash((self.device, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """A mark in a stream, to wait for and to take the time between two."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False,
                 external: bool = False) -> None:  # fmt: skip
        need("Tried to instantiate dummy base class Event")
        if external:
            raise RuntimeError("external events are for graphs that were captured elsewhere: leave out external=True")
        self._options: Any = {"block": blocking, "disable_timing": not enable_timing, "interprocess": interprocess}
        self._raw: Any = None

    def record(self, stream: Stream | None = None) -> None:
        """Stand after what a stream was told so far, by default the current one."""
        stream = current_stream() if stream is None else stream
        stream._place.activate()
        if self._raw is None:
            self._raw = stream._place.module.cuda.Event(**self._options)
        self._raw.record(stream._raw)
        self._place: Any = stream._place
        #: The class of arrays of the stream that it stands in.
        self._on: Any = stream._class

    def wait(self, stream: Stream | None = None) -> None:
        """Make a stream wait for it, by default the current one."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Has the device come to it?"""
        return self._raw is None or bool(self._raw.done)

    def synchronize(self) -> None:
        """Wait until the device has come to it."""
        if self._raw is not None:
            self._place.activate()
            self._place.refuse_if_captured("synchronize()")
            self._raw.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to another."""
        if self._raw is None or end_event._raw is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if self._options["disable_timing"] or end_event._options["disable_timing"]:
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        return float(self._place.module.cuda.get_elapsed_time(self._raw, end_event._raw))

    @property
    def cuda_event(self) -> int:
        """The number by which CUDA knows it."""
        return 0 if self._raw is None else self._raw.ptr

    def __repr__(self) -> str:
        return "<torch.cuda.Event uninitialized>" if self._raw is None else f"<torch.cuda.Event {self.cuda_event:#x}>"


def _current(where: Any) -> Any:
    return where.class_now()


def _stream_of(array_class: Any) -> Stream:
    where = array_class.place
    raw = where.module.cuda.Stream.null if array_class.stream is None else array_class.stream
    return Stream(place=where, raw=raw)


def current_stream(device: Any = None) -> Stream:
    """The stream on which this thread's work for a device goes."""
    return _stream_of(place(device).class_now())


def default_stream(device: Any = None) -> Stream:
    """The stream that is current where no other was chosen."""
    return _stream_of(place(device).array_class)


def set_stream(stream: Stream | None) -> None:
    """Make a stream the current one of its device, and the device the current one."""
    if stream is not None:
        stream._place.use_class(stream._class)
        use_index(stream._place.index)


class stream:
    """Within the block, a stream is the current one; None: nothing changes.

    Where there is no CUDA device, as in torch, nothing happens either.
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *exc_info: object) -> None:
        if self.stream is not None:
            self.stream.__exit__(*exc_info)


def devices_index() -> int:
    """The number of the current device of this thread."""
    from ..arrays.places import thread  # not before a device is there

    return thread.index


def use_index(index: int) -> None:
    """Make another device the current one of this thread."""
    from ..arrays.places import thread  # not before a device is there

    thread.index = index
