"""CuPy's binding of NCCL for one rank, over the memory of a simulated device: its methods have CuPy's parameters."""

from __future__ import annotations

import ctypes
from types import ModuleType
from typing import Any

from gpu import simulated

WIDTHS = {
    "INT8": 1, "UINT8": 1, "INT32": 4, "UINT32": 4, "INT64": 8, "UINT64": 8, "FLOAT16": 2, "FLOAT32": 4, "FLOAT64": 8,
    "BFLOAT16": 2,
}  # fmt: skip
_SIZES = list(WIDTHS.values())


def _launch(stream: int, work: Any) -> None:
    """On the stream of that number: when it gets to it."""
    next(one for (_, number), one in simulated.machine.streams.items() if number == stream).launch(work)


class Communicator:
    """CuPy's NcclCommunicator."""

    def __init__(self, ndev: int, commId: bytes, rank: int) -> None:
        assert (ndev, rank) == (1, 0) and commId == bytes(range(128))
        self.sent: list[Any] = []
        self.closed = False

    def _move(self, source: int, target: int, count: int, datatype: int, stream: int) -> None:
        size = count * _SIZES[datatype]
        _launch(stream, lambda: ctypes.memmove(target, source, size))

    def allReduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int) -> None:
        assert 0 <= op < 4
        self._move(sendbuf, recvbuf, count, datatype, stream)

    def reduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, root: int, stream: int) -> None:
        assert root == 0
        self._move(sendbuf, recvbuf, count, datatype, stream)

    def bcast(self, buff: int, count: int, datatype: int, root: int, stream: int) -> None:
        assert root == 0
        _launch(stream, lambda: None)

    def reduceScatter(self, sendbuf: int, recvbuf: int, recvcount: int, datatype: int, op: int, stream: int) -> None:
        self._move(sendbuf, recvbuf, recvcount, datatype, stream)

    def allGather(self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int) -> None:
        self._move(sendbuf, recvbuf, count, datatype, stream)

    def send(self, sendbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self.sent.append((sendbuf, count * _SIZES[datatype]))

    def recv(self, recvbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        source, size = self.sent.pop(0)
        assert size == count * _SIZES[datatype]
        self._move(source, recvbuf, count, datatype, stream)

    def check_async_error(self) -> None:
        assert not self.closed

    def destroy(self) -> None:
        self.closed = True


def binding() -> ModuleType:
    """The module ``cupy.cuda.nccl``."""
    made: Any = ModuleType("cupy.cuda.nccl")
    for number, name in enumerate(WIDTHS):
        setattr(made, f"NCCL_{name}", number)
    for number, name in enumerate(("SUM", "PROD", "MAX", "MIN")):
        setattr(made, f"NCCL_{name}", number)
    made.NcclCommunicator = Communicator
    made.get_unique_id = lambda: bytes(range(128))
    made.groupStart = made.groupEnd = lambda: None
    return made
