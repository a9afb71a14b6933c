"""The backend "mpi": collective operations of MPI, through mpi4py.

The memory of arrays goes to MPI as it is, and results are written where they belong. Every operation is started
without waiting (``MPI_I...``), since MPI's own waiting has no time limit and keeps a processor busy: `Work.wait` asks
whether it is done and sleeps in between. So four processes get along on two processors.

Note [Progress]
MPI moves data only while somebody calls it. For an operation that was started with ``async_op=True`` nobody does, until
it is waited for: the process computes. So a thread calls in its place, a few thousand times a second, as long as
there are such operations. That is what lets gradients travel during the backward pass.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from .errors import DistBackendError
from .reduce_op import ReduceOp, ufunc
from .work import Work

#: Seconds between two calls of the thread that keeps MPI going, and for which it goes on when there is nothing to do.
PAUSE = 3e-4


def load() -> Any:
    """mpi4py's module MPI, started; RuntimeError where there is none."""
    try:
        import mpi4py

        # Ending MPI waits for all processes, for ever if one has died: process_group.py does it when all have come.
        mpi4py.rc.finalize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(
            f"Distributed package doesn't have MPI built in: mpi4py and an MPI library are needed ({error}). "
            "Write pip install 'retrograd[mpi]', which brings both"
        ) from error
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise RuntimeError(
            "MPI was started without support for threads: let mpi4py start it, or ask for THREAD_MULTIPLE"
        )
    return MPI


class _Progress:
    """Calls MPI from one thread at a time, and from a thread of its own while nobody waits."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._pending: list[MPIWork] = []
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def keep_going(self, work: MPIWork) -> None:
        """See to it that `work` goes on while nobody waits for it."""
        with self.lock:
            self._pending.append(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="retrograd MPI progress", daemon=True)
                self._thread.start()
        self._wake.set()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            with self.lock:
                self._pending = [work for work in self._pending if not work._look()]
                if not self._pending:
                    self._wake.clear()
            time.sleep(PAUSE)

    def forget(self) -> None:
        """MPI is about to end: nothing is called any more."""
        with self.lock:
            self._pending = []
            self._wake.clear()


progress: _Progress = _Progress()


class MPIWork(Work):
    """Requests of MPI that make one operation."""

    def __init__(self, requests: list[Any], keep: Any = None) -> None:
        super().__init__()
        self._requests = requests
        self._keep = keep  # memory that MPI reads or writes
        self._status: Any = None

    def _look(self) -> bool:
        if self._done:
            return True
        with progress.lock:  # in this order everywhere: the lock of MPI, then that of the operation
            return super()._look()

    def _poll(self) -> bool:
        from mpi4py import MPI

        try:
            if self._status is None and len(self._requests) == 1:
                status = MPI.Status()
                if not self._requests[0].Test(status):
                    return False
                self._status = status
            elif not MPI.Request.Testall(self._requests):
                return False
        except MPI.Exception as error:
            raise DistBackendError(f"{self._name}: MPI says: {error}") from error
        self._keep = None
        return True

    def _go_on(self) -> None:
        progress.keep_going(self)

    def _source(self) -> int:
        return self._status.Get_source()


def _bytes(array: np.ndarray) -> np.ndarray:
    """An array's memory."""
    return array.reshape(-1).view(np.uint8)


class MPIBackend:
    """What a group of processes does through its communicator."""

    name = "mpi"
    has_tags = True

    def __init__(self, comm: Any, MPI: Any) -> None:
        self._MPI = MPI
        self._comm = comm
        self._private = comm.Dup()  # so that messages of programs are not mixed up with those inside of operations
        self.rank: int = comm.rank
        self.size: int = comm.size
        self._operators: dict[Any, Any] = {}
        self._number = 0
        self._types = {
            "f4": MPI.FLOAT, "f8": MPI.DOUBLE, "c8": MPI.C_FLOAT_COMPLEX, "c16": MPI.C_DOUBLE_COMPLEX,
            "i1": MPI.INT8_T, "i2": MPI.INT16_T, "i4": MPI.INT32_T, "i8": MPI.INT64_T,
            "u1": MPI.UINT8_T, "u2": MPI.UINT16_T, "u4": MPI.UINT32_T, "u8": MPI.UINT64_T,
        }  # fmt: skip
        self._ops = {
            ReduceOp.SUM: MPI.SUM, ReduceOp.AVG: MPI.SUM, ReduceOp.PRODUCT: MPI.PROD, ReduceOp.MIN: MPI.MIN,
            ReduceOp.MAX: MPI.MAX, ReduceOp.BAND: MPI.BAND, ReduceOp.BOR: MPI.BOR, ReduceOp.BXOR: MPI.BXOR,
        }  # fmt: skip

    def _typed(self, array: np.ndarray) -> list[Any]:
        """Memory and its type, for an operation that computes."""
        flat = array.reshape(-1)
        if array.dtype.kind == "b":
            return [flat.view(np.uint8), self._types["u1"]]
        found = self._types.get(array.dtype.str[1:])
        if found is None:  # floats of 16 bits, which MPI takes for numbers of 16 bits: `_operator` knows better
            return [flat.view(np.uint16), self._types["u2"]]
        return [flat, found]

    def _operator(self, op: ReduceOp, dtype: np.dtype) -> Any:
        """MPI's operator; for floats of 16 bits, which MPI does not know, one in Python."""
        if dtype.kind == "b":  # of truth values: "some" and "all"
            op = {ReduceOp.SUM: ReduceOp.BOR, ReduceOp.PRODUCT: ReduceOp.BAND}.get(op, op)
        if dtype.kind != "b" and dtype.str[1:] not in self._types:
            key = op, dtype
            if key not in self._operators:
                function = ufunc(op)

                def combine(given: Any, result: Any, datatype: Any) -> None:
                    out = np.frombuffer(result, np.uint16).view(dtype)
                    function(np.frombuffer(given, np.uint16).view(dtype), out, out=out)

                self._operators[key] = self._MPI.Op.Create(combine, commute=True)
            return self._operators[key]
        return self._ops[op]

    # ------------------------------------------------------------------------------------------------ between two of
    # them

    def send(self, array: np.ndarray, dst: int, tag: int) -> Work:
        with progress.lock:
            request = self._private.Isend([_bytes(array), self._MPI.BYTE], dst, tag)
        return MPIWork([request], array)

    def recv(self, array: np.ndarray, src: int | None, tag: int) -> Work:
        with progress.lock:
            source = self._MPI.ANY_SOURCE if src is None else src
            request = self._private.Irecv([_bytes(array), self._MPI.BYTE], source, tag)
        return MPIWork([request], array)

    # ------------------------------------------------------------------------------------------------------- among all

    def barrier(self) -> Work:
        with progress.lock:
            return MPIWork([self._comm.Ibarrier()], None)

    def farewell(self) -> Work:
        """A barrier that is not mixed up with operations which others may be in."""
        with progress.lock:
            return MPIWork([self._private.Ibarrier()])

    def all_reduce(self, array: np.ndarray, op: ReduceOp) -> Work:
        with progress.lock:
            request = self._comm.Iallreduce(self._MPI.IN_PLACE, self._typed(array), self._operator(op, array.dtype))
        return MPIWork([request], array)

    def reduce(self, array: np.ndarray, root: int, op: ReduceOp) -> Work:
        with progress.lock:
            memory, operator = self._typed(array), self._operator(op, array.dtype)
            if self.rank == root:
                request = self._comm.Ireduce(self._MPI.IN_PLACE, memory, operator, root)
            else:
                request = self._comm.Ireduce(memory, None, operator, root)
        return MPIWork([request], array)

    def broadcast(self, array: np.ndarray, root: int) -> Work:
        with progress.lock:
            request = self._comm.Ibcast([_bytes(array), self._MPI.BYTE], root)
        return MPIWork([request], array)

    def all_gather_flat(self, out: np.ndarray, array: np.ndarray) -> Work:
        with progress.lock:
            request = self._comm.Iallgather([_bytes(array), self._MPI.BYTE], [_bytes(out), self._MPI.BYTE])
        return MPIWork([request], (out, array))

    def reduce_scatter_flat(self, out: np.ndarray, array: np.ndarray, op: ReduceOp) -> Work:
        with progress.lock:
            request = self._comm.Ireduce_scatter_block(
                self._typed(array), self._typed(out), self._operator(op, array.dtype)
            )
        return MPIWork([request], (out, array))

    # Of separate arrays for each rank: MPI would have them in one piece, so each goes by itself.

    def all_gather(self, outs: Sequence[np.ndarray], array: np.ndarray) -> Work:
        outs[self.rank][...] = array.reshape(outs[self.rank].shape)
        with progress.lock:
            requests = [self._comm.Ibcast([_bytes(out), self._MPI.BYTE], root) for root, out in enumerate(outs)]
        return MPIWork(requests, outs)

    def reduce_scatter(self, out: np.ndarray, arrays: Sequence[np.ndarray], op: ReduceOp) -> Work:
        with progress.lock:
            operator = self._operator(op, out.dtype)
            requests = [
                self._comm.Ireduce(self._typed(array), self._typed(out) if root == self.rank else None, operator, root)
                for root, array in enumerate(arrays)
            ]
        return MPIWork(requests, (out, arrays))

    def all_to_all(self, outs: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> Work:
        outs[self.rank][...] = arrays[self.rank].reshape(outs[self.rank].shape)
        others = [r for r in range(self.size) if r != self.rank]
        return self._messages([(r, arrays[r]) for r in others], [(r, outs[r]) for r in others])

    def gather(self, outs: Sequence[np.ndarray], array: np.ndarray, root: int) -> Work:
        if self.rank != root:
            return self._messages([(root, array)], [])
        outs[root][...] = array.reshape(outs[root].shape)
        return self._messages([], [(r, out) for r, out in enumerate(outs) if r != root])

    def scatter(self, out: np.ndarray, arrays: Sequence[np.ndarray], root: int) -> Work:
        if self.rank != root:
            return self._messages([], [(root, out)])
        out[...] = arrays[root].reshape(out.shape)
        return self._messages([(r, array) for r, array in enumerate(arrays) if r != root], [])

    def _messages(self, sent: list[tuple[int, np.ndarray]], received: list[tuple[int, np.ndarray]]) -> Work:
        """An operation made of messages, which only this operation of the group receives."""
        byte = self._MPI.BYTE
        with progress.lock:
            self._number = (self._number + 1) % 30000
            tag = self._number
            requests = [self._comm.Irecv([_bytes(array), byte], rank, tag) for rank, array in received]
            requests += [self._comm.Isend([_bytes(array), byte], rank, tag) for rank, array in sent]
        return MPIWork(requests, (sent, received))

    # ------------------------------------------------------------------------------------------------------------
    # groups

    def subgroup(self, ranks: Sequence[int], name: str) -> MPIBackend | None:
        """Another group, of some of these; all have to ask for it, and those that are not in it get None."""
        with progress.lock:
            comm = self._comm.Split(0 if self.rank in ranks else self._MPI.UNDEFINED, _position(ranks, self.rank))
            return MPIBackend(comm, self._MPI) if comm != self._MPI.COMM_NULL else None

    def close(self) -> None:
        """Let go of the communicators; all have to come."""
        with progress.lock:
            self._private.Free()
            self._comm.Free()
            for operator in self._operators.values():
                operator.Free()
        self._operators = {}


def _position(ranks: Sequence[int], rank: int) -> int:
    return list(ranks).index(rank) if rank in ranks else 0


def finish() -> None:
    """End MPI when all processes have come to it, without keeping a processor busy until then."""
    MPI = load()
    if MPI.Is_finalized():
        return
    request, pause = MPI.COMM_WORLD.Ibarrier(), 1e-5
    while not request.Test():
        time.sleep(pause)
        pause = min(0.02, pause * 1.5)
    MPI.Finalize()
