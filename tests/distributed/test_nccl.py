"""The backend "nccl" calls CuPy's binding as CuPy declares it. The binding here is an imitation, which moves memory
of the CPU for one rank; with real GPUs it has not been run.
"""

from __future__ import annotations

import ctypes
import types
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd.distributed import ReduceOp, nccl


class Array(np.ndarray):
    """An array with CuPy's way to say where its memory is."""

    @property
    def data(self) -> Any:  # type: ignore[override]
        return types.SimpleNamespace(ptr=self.ctypes.data)


def array(*values: float, dtype: str = "f4") -> Array:
    return np.array(values, dtype).view(Array)


WIDTHS = {
    "INT8": 1,
    "UINT8": 1,
    "INT32": 4,
    "UINT32": 4,
    "INT64": 8,
    "UINT64": 8,
    "FLOAT16": 2,
    "FLOAT32": 4,
    "FLOAT64": 8,
}


class Communicator:
    """CuPy's NcclCommunicator, for one rank: its methods have CuPy's parameters."""

    def __init__(self, ndev: int, commId: tuple, rank: int) -> None:
        assert (ndev, rank) == (1, 0) and len(commId) == 128
        self.sent: list[bytes] = []
        self.calls: list[str] = []

    def _move(self, source: int, target: int, count: int, datatype: int) -> None:
        ctypes.memmove(target, source, count * list(WIDTHS.values())[datatype])

    def allReduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int) -> None:
        assert 0 <= op < 4 and stream == 77
        self._move(sendbuf, recvbuf, count, datatype)
        self.calls.append("allReduce")

    def reduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, root: int, stream: int) -> None:
        assert root == 0 and stream == 77

    def bcast(self, buff: int, count: int, datatype: int, root: int, stream: int) -> None:
        assert root == 0 and stream == 77

    def reduceScatter(self, sendbuf: int, recvbuf: int, recvcount: int, datatype: int, op: int, stream: int) -> None:
        self._move(sendbuf, recvbuf, recvcount, datatype)

    def allGather(self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int) -> None:
        self._move(sendbuf, recvbuf, count, datatype)

    def send(self, sendbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self.sent.append(ctypes.string_at(sendbuf, count * list(WIDTHS.values())[datatype]))

    def recv(self, recvbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        message = self.sent.pop(0)
        assert len(message) == count * list(WIDTHS.values())[datatype]
        ctypes.memmove(recvbuf, message, len(message))

    def check_async_error(self) -> None:
        pass

    def destroy(self) -> None:
        self.calls.append("destroy")


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Any:
    binding: Any = types.ModuleType("cupy.cuda.nccl")
    for number, name in enumerate(WIDTHS):
        setattr(binding, f"NCCL_{name}", number)
    for number, name in enumerate(("SUM", "PROD", "MAX", "MIN")):
        setattr(binding, f"NCCL_{name}", number)
    binding.NcclCommunicator = Communicator
    binding.get_unique_id = lambda: tuple(range(-64, 64))
    binding.groupStart = binding.groupEnd = lambda: None
    cuda: Any = types.ModuleType("cupy.cuda")
    cuda.nccl = binding
    cuda.get_current_stream = lambda: types.SimpleNamespace(ptr=77)
    cuda.Event = lambda disable_timing: types.SimpleNamespace(record=lambda stream: None, done=True)
    cupy: Any = types.ModuleType("cupy")
    cupy.cuda, cupy.zeros = cuda, lambda count, dtype: np.zeros(count, dtype).view(Array)
    cupy.concatenate = lambda arrays: np.concatenate(arrays).view(Array)
    for name, module in (("cupy", cupy), ("cupy.cuda", cuda), ("cupy.cuda.nccl", binding)):
        monkeypatch.setitem(__import__("sys").modules, name, module)
    store = retrograd.distributed.TCPStore("127.0.0.1", 0, is_master=True)
    yield nccl.NCCLBackend(store, 0, 1, "world", 5.0)
    store.close()


def test_every_operation(backend: Any) -> None:
    x = array(1, 2, 3)
    for dtype in ("f2", "f4", "f8", "i4", "i8", "u1", "c8", "?"):
        assert backend.all_reduce(array(1, 0, dtype=dtype), ReduceOp.SUM)._poll()
    for work in (backend.reduce(x, 0, ReduceOp.AVG), backend.broadcast(x, 0), backend.barrier(), backend.farewell()):
        assert work.wait()
    for out, start in (
        (array(0, 0, 0), lambda out: backend.all_gather_flat(out, x)),
        (array(0, 0, 0), lambda out: backend.reduce_scatter_flat(out, x, ReduceOp.MAX)),
        (array(0, 0, 0), lambda out: backend.reduce_scatter(out, [x], ReduceOp.MIN)),
        (array(0, 0, 0), lambda out: backend.all_gather([out], x)),
        (array(0, 0, 0), lambda out: backend.all_to_all([out], [x])),
        (array(0, 0, 0), lambda out: backend.gather([out], x, 0)),
        (array(0, 0, 0), lambda out: backend.scatter(out, [x], 0)),
    ):
        assert start(out).wait() and out.tolist() == [1, 2, 3]
    out = array(0, 0, 0)
    backend.send(x, 0, 0)
    assert backend.recv(out, 0, 0).wait() and out.tolist() == [1, 2, 3]
    assert backend.subgroup([0], "1").size == 1
    backend.close()
    assert backend._communicator.calls[-1] == "destroy"


def test_what_it_refuses(backend: Any) -> None:
    with pytest.raises(ValueError, match="no tags"):
        backend.send(array(1), 0, 3)
    with pytest.raises(ValueError, match="BXOR"):
        backend.all_reduce(array(1, dtype="i4"), ReduceOp.BXOR)
    with pytest.raises(RuntimeError, match="not supported for NCCL"):
        backend.all_reduce(array(1, dtype="i2"), ReduceOp.SUM)


def test_without_gpus() -> None:
    with pytest.raises(RuntimeError, match="no GPUs found"):
        retrograd.distributed.init_process_group("nccl")
    assert not retrograd.distributed.is_nccl_available()
