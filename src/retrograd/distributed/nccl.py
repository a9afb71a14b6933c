"""The backend "nccl": collective operations between GPUs, through CuPy's binding of NCCL.

It takes tensors of this process's GPU. Operations have a stream of their own, beside which others go on computing: it
waits for what the current stream was told so far, which computes the tensors, and `Work` is done when the device has
come to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..core import devices
from .reduce_op import ReduceOp
from .work import Work

_TYPES = {
    "i1": "INT8", "u1": "UINT8", "i4": "INT32", "u4": "UINT32", "i8": "INT64", "u8": "UINT64", "f2": "FLOAT16",
    "f4": "FLOAT32", "f8": "FLOAT64", "b1": "UINT8",
}  # fmt: skip
_OPERATORS = {
    ReduceOp.SUM: "SUM", ReduceOp.AVG: "SUM", ReduceOp.PRODUCT: "PROD", ReduceOp.MIN: "MIN", ReduceOp.MAX: "MAX",
}  # fmt: skip


def available() -> bool:
    """Is there CuPy, and a device for its arrays?"""
    return find_spec("cupy") is not None and devices.device_count() > 0


def require() -> None:
    """Raise unless there is."""
    if not available():
        raise RuntimeError(
            "ProcessGroupNCCL is only supported with GPUs, no GPUs found! It takes CuPy (pip install "
            "'retrograd[cuda]') "
            "and tensors on a GPU; for tensors on the CPU write init_process_group('mpi') or 'gloo'"
        )


class NCCLWork(Work):
    """An operation on a stream."""

    def __init__(self, event: Any, communicator: Any, keep: Any) -> None:
        super().__init__()
        self._event, self._communicator, self._keep = event, communicator, keep

    def _poll(self) -> bool:
        self._communicator.check_async_error()
        if not self._event.done:
            return False
        self._keep = None
        return True


class NCCLBackend:
    """What a group of processes does through NCCL, each on the GPU that it has chosen."""

    name = "nccl"
    has_tags = False

    rank: int
    size: int

    def __init__(self, store: Any, rank: int, size: int, name: str, seconds: float) -> None:
        from cupy.cuda import nccl

        self._nccl, self._store = nccl, store
        self.rank, self.size, self._seconds = rank, size, seconds
        #: Events of operations that are started together, to be recorded when they are.
        self._together: list[Any] | None = None
        #: The GPU of this process: the one that is current when the group is made.
        self._place: Any = devices.place_of(devices.device("cuda"))
        self.device: devices.device = self._place.device
        self._place.activate()
        #: The class of arrays that are made on the stream for communication, which tells it.
        self._class: Any = self._place.class_of_stream(self._place.new_stream(0))
        key = f"retrograd/nccl/{name}"
        if rank == 0:
            store.set(key, ",".join(str(number) for number in nccl.get_unique_id()))
        numbers = [int(number) for number in store.get(key).split(b",")]
        # CuPy has it as bytes from version 14 on, as a tuple of numbers before.
        identity = bytes(numbers) if isinstance(nccl.get_unique_id(), bytes) else tuple(numbers)
        self._communicator = nccl.NcclCommunicator(size, identity, rank)

    def _at(self, array: Any) -> int:
        """Where an array begins, which must be on this process's GPU."""
        if getattr(array, "place", None) is not self._place:
            raise RuntimeError(
                f"No backend type associated with device type {getattr(array, 'device', 'cpu')}: a group of the "
                f"backend 'nccl' takes tensors on {self.device}. Move it there: x.to({str(self.device)!r})"
            )
        return array.data.ptr

    def _type(self, array: Any) -> tuple[int, int]:
        """How many of which type."""
        kind = array.dtype.str[1:]
        if array.dtype.kind == "c":
            return array.size * 2, getattr(self._nccl, "NCCL_FLOAT" + str(array.dtype.itemsize * 4))
        if array.dtype.name == "bfloat16" and hasattr(self._nccl, "NCCL_BFLOAT16"):
            return array.size, self._nccl.NCCL_BFLOAT16
        if kind not in _TYPES:
            raise RuntimeError(f"Input tensor data type is not supported for NCCL process group: {array.dtype}")
        return array.size, getattr(self._nccl, "NCCL_" + _TYPES[kind])

    def _operator(self, op: ReduceOp, array: Any) -> int:
        if op not in _OPERATORS or (array.dtype.kind == "c" and op is ReduceOp.PRODUCT):
            raise ValueError(f"Cannot use ReduceOp.{op.name} with NCCL on tensors of dtype {array.dtype}")
        if array.dtype.kind == "b":  # of truth values: "some" and "all"
            op = {ReduceOp.SUM: ReduceOp.MAX, ReduceOp.PRODUCT: ReduceOp.MIN}.get(op, op)
        return getattr(self._nccl, "NCCL_" + _OPERATORS[op])

    def _stream(self) -> int:
        """The stream for communication, which waits for what the current one was told so far."""
        self._place.join(self._place.class_now(), self._class)
        return self._class.stream.ptr

    def _started(self, *keep: Any) -> Work:
        event = self._place.module.cuda.Event(disable_timing=True)
        if self._together is None:
            event.record(self._class.stream)
        else:
            self._together.append(event)
        return NCCLWork(event, self._communicator, keep)

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is started within the block starts at its end, all at once: two that send to each other would each wait
        for the other to receive."""
        self._together = []
        self._nccl.groupStart()
        try:
            yield
        finally:
            self._nccl.groupEnd()
            started, self._together = self._together, None
            for event in started:
                event.record(self._class.stream)

    def _messages(self, sent: Sequence[tuple[int, Any]], received: Sequence[tuple[int, Any]]) -> None:
        """Messages to and from others, which NCCL runs together."""
        types, stream = [self._type(array) for _, array in (*sent, *received)], self._stream()
        self._nccl.groupStart()
        for (rank, array), kind in zip(sent, types):
            self._communicator.send(self._at(array), *kind, rank, stream)
        for (rank, array), kind in zip(received, types[len(sent) :]):
            self._communicator.recv(self._at(array), *kind, rank, stream)
        self._nccl.groupEnd()

    def send(self, array: Any, dst: int, tag: int) -> Work:
        if tag:
            raise ValueError("NCCL's messages have no tags: leave 'tag' out")
        self._messages([(dst, array)], [])
        return self._started(array)

    def recv(self, array: Any, src: int | None, tag: int) -> Work:
        if tag or src is None:
            raise ValueError("NCCL's messages have no tags, and their source is known: give 'src', and no 'tag'")
        self._messages([], [(src, array)])
        return self._started(array)

    def barrier(self) -> Work:
        return self.all_reduce(self._place.numpy.zeros(1, np.uint8), ReduceOp.MAX)

    def farewell(self) -> Work:
        """A barrier; NCCL's operations are matched by their order alone."""
        return self.barrier()

    def all_reduce(self, array: Any, op: ReduceOp) -> Work:
        where, operator = self._at(array), self._operator(op, array)
        self._communicator.allReduce(where, where, *self._type(array), operator, self._stream())
        return self._started(array)

    def reduce(self, array: Any, root: int, op: ReduceOp) -> Work:
        where, operator = self._at(array), self._operator(op, array)
        self._communicator.reduce(where, where, *self._type(array), operator, root, self._stream())
        return self._started(array)

    def broadcast(self, array: Any, root: int) -> Work:
        self._communicator.bcast(self._at(array), *self._type(array), root, self._stream())
        return self._started(array)

    def all_gather_flat(self, out: Any, array: Any) -> Work:
        self._communicator.allGather(self._at(array), self._at(out), *self._type(array), self._stream())
        return self._started(out, array)

    def reduce_scatter_flat(self, out: Any, array: Any, op: ReduceOp) -> Work:
        operator = self._operator(op, array)
        self._communicator.reduceScatter(self._at(array), self._at(out), *self._type(out), operator, self._stream())
        return self._started(out, array)

    # Of separate arrays for each rank.

    def all_gather(self, outs: Sequence[Any], array: Any) -> Work:
        everybody = range(self.size)
        self._messages([(rank, array) for rank in everybody], list(enumerate(outs)))
        return self._started(outs, array)

    def reduce_scatter(self, out: Any, arrays: Sequence[Any], op: ReduceOp) -> Work:
        return self.reduce_scatter_flat(out, self._place.numpy.concatenate([array.reshape(-1) for array in arrays]), op)

    def all_to_all(self, outs: Sequence[Any], arrays: Sequence[Any]) -> Work:
        self._messages(list(enumerate(arrays)), list(enumerate(outs)))
        return self._started(outs, arrays)

    def gather(self, outs: Sequence[Any], array: Any, root: int) -> Work:
        self._messages([(root, array)], list(enumerate(outs)) if self.rank == root else [])
        return self._started(outs, array)

    def scatter(self, out: Any, arrays: Sequence[Any], root: int) -> Work:
        self._messages(list(enumerate(arrays)) if self.rank == root else [], [(root, out)])
        return self._started(out, arrays)

    def subgroup(self, ranks: Sequence[int], name: str) -> NCCLBackend | None:
        """Another group, of some of these; None for those that are not in it."""
        if self.rank not in ranks:
            return None
        return NCCLBackend(self._store, list(ranks).index(self.rank), len(ranks), f"{name}/{min(ranks)}", self._seconds)

    def close(self) -> None:
        """Let go of the communicator."""
        self._communicator.destroy()
