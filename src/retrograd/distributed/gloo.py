"""The backend "gloo": collective operations over sockets, in Python, for where there is no MPI.

It has the name of torch's backend for CPUs, since programs ask for it, and is meant for the processes of one or a few
machines. Every two processes have a connection. A thread for each reads what arrives, at once, so that nobody who sends
ever waits for somebody who computes: into the array that waits for it, or aside. The operations of a group run
one after the other on a thread of the group.

What is reduced is shared out: each process gets one part of everybody's array, adds them in the order of ranks, and
sends the sum to all. So the sums are the same bits everywhere, and nobody sends or gets more than twice the array.
"""

from __future__ import annotations

import queue
import socket
import struct
import sys
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .errors import DistBackendError
from .reduce_op import ReduceOp, ufunc
from .store import connect, receive_exactly
from .work import Work

#: Of a message: the group, the tag, the number of bytes.
_HEAD = struct.Struct("!IqQ")
#: Tags of messages inside of operations are below; those of programs above zero.
_OPERATIONS = -1


def _memory(array: np.ndarray) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8).data)


class _Receipt:
    """A message that is waited for, or has arrived."""

    __slots__ = ("memory", "arrived", "source", "error")

    def __init__(self, memory: memoryview) -> None:
        self.memory: memoryview[int] = memory
        self.arrived = threading.Event()
        self.source: int = -1
        self.error: str | None = None


class _Mesh:
    """Connections to all other processes, and what has arrived through them."""

    rank: int
    size: int

    def __init__(self, store: Any, rank: int, size: int, name: str, seconds: float) -> None:
        self.rank, self.size = rank, size
        self._lock = threading.Lock()
        self._waiting: dict[tuple[int, int | None, int], deque[_Receipt]] = {}
        self._aside: dict[tuple[int, int, int], deque[bytearray]] = {}
        self._sending = [threading.Lock() for _ in range(size)]
        self._peers: list[socket.socket | None] = [None] * size
        host = getattr(store, "host", "127.0.0.1")
        local = host in ("localhost", "127.0.0.1")
        until = time.monotonic() + seconds
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
            listening.bind(("127.0.0.1" if local else "", 0))
            listening.listen(size)
            listening.settimeout(seconds)
            mine = "127.0.0.1" if local else socket.gethostname()
            store.set(f"retrograd/{name}/{rank}", f"{mine}:{listening.getsockname()[1]}")
            for other in range(rank):
                where, _, port = store.get(f"retrograd/{name}/{other}").decode().rpartition(":")
                peer = connect(where, int(port), until)
                peer.sendall(struct.pack("!I", rank))
                self._peers[other] = peer
            for _ in range(rank + 1, size):
                try:
                    peer, _ = listening.accept()
                except TimeoutError:
                    missing = [r for r in range(size) if r != rank and self._peers[r] is None]
                    raise DistBackendError(f"[Rank {rank}] ranks {missing} did not come within {seconds:g} s") from None
                peer.settimeout(None)
                head = bytearray(4)
                receive_exactly(peer, memoryview(head))
                self._peers[struct.unpack("!I", head)[0]] = peer
        limit = struct.pack("ll", int(seconds) + 1, 0)
        for other, found in enumerate(self._peers):
            if found is not None:
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
                threading.Thread(target=self._read, args=(other, found), name="retrograd gloo", daemon=True).start()

    def _read(self, source: int, peer: socket.socket) -> None:
        """What arrives from one process. When it has ended, its monitor is missed: see Note [Failures]."""
        head = bytearray(_HEAD.size)
        try:
            while True:
                receive_exactly(peer, memoryview(head))
                context, tag, count = _HEAD.unpack(head)
                with self._lock:
                    receipt = self._take(context, source, tag)
                    if receipt is None:
                        aside = bytearray(count)
                if receipt is None:
                    receive_exactly(peer, memoryview(aside))
                    with self._lock:  # somebody may have begun to wait for it meanwhile
                        receipt = self._take(context, source, tag)
                        if receipt is None:
                            self._aside.setdefault((context, source, tag), deque()).append(aside)
                    if receipt is not None:
                        _hand_over(receipt, aside, source)
                elif len(receipt.memory) == count:
                    receive_exactly(peer, receipt.memory)
                    receipt.source = source
                    receipt.arrived.set()
                else:
                    aside = bytearray(count)
                    receive_exactly(peer, memoryview(aside))
                    _hand_over(receipt, aside, source)
                del receipt  # the memory is theirs; the next message may be long in coming
                aside = bytearray()
        except OSError:
            pass

    def _take(self, context: int, source: int, tag: int) -> _Receipt | None:
        for key in ((context, source, tag), (context, None, tag)):
            if waiting := self._waiting.get(key):
                receipt = waiting.popleft()
                if not waiting:
                    del self._waiting[key]
                return receipt
        return None

    def expect(self, context: int, source: int | None, tag: int, array: np.ndarray) -> _Receipt:
        """Have the next such message written into `array`."""
        receipt = _Receipt(_memory(array))
        with self._lock:
            for other in range(self.size) if source is None else (source,):
                if aside := self._aside.get((context, other, tag)):
                    found = aside.popleft()
                    if not aside:
                        del self._aside[context, other, tag]
                    _hand_over(receipt, found, other)
                    return receipt
            self._waiting.setdefault((context, source, tag), deque()).append(receipt)
        return receipt

    def send(self, context: int, to: int, tag: int, array: np.ndarray) -> None:
        """Send a message."""
        memory = _memory(array)
        peer = self._peers[to]
        if peer is None:
            raise ValueError(f"[Rank {self.rank}] cannot send to rank {to}: that is this process itself")
        with self._sending[to]:
            try:
                peer.sendall(_HEAD.pack(context, tag, len(memory)))
                peer.sendall(memory)
            except BlockingIOError:
                raise DistBackendError(
                    f"[Rank {self.rank}] Timed out: rank {to} does not take what is sent to it"
                ) from None
            except OSError:
                pass  # it has ended, which its monitor's silence tells, and who waits for it will say

    def close(self) -> None:
        for peer in self._peers:
            if peer is not None:
                try:
                    peer.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                peer.close()


def _hand_over(receipt: _Receipt, message: bytearray, source: int) -> None:
    if len(message) == len(receipt.memory):
        receipt.memory[:] = message
    else:
        receipt.error = f"rank {source} sent {len(message)} bytes, where {len(receipt.memory)} were expected"
    receipt.source = source
    receipt.arrived.set()


class _Message(Work):
    """A message between two processes."""

    def __init__(self, receipt: _Receipt | None, ranks: list[int]) -> None:
        super().__init__()
        self._receipt = receipt
        self._ranks = ranks

    def _poll(self) -> bool:
        if self._receipt is None:  # sent
            return True
        if not self._receipt.arrived.is_set():
            return False
        if self._receipt.error is not None:
            raise DistBackendError(f"{self._name}: {self._receipt.error}")
        return True

    def _sleep(self, seconds: float) -> None:
        assert self._receipt is not None
        self._receipt.arrived.wait(seconds)

    def _source(self) -> int:
        assert self._receipt is not None
        return self._ranks.index(self._receipt.source)


class _Operation(Work):
    """An operation that the thread of its group runs."""

    def __init__(self) -> None:
        super().__init__()
        self._ready = threading.Event()
        self._failed: BaseException | None = None

    def _poll(self) -> bool:
        if not self._ready.is_set():
            return False
        if self._failed is not None:
            raise DistBackendError(f"{self._name}: {self._failed}") from self._failed
        return True

    def _sleep(self, seconds: float) -> None:
        self._ready.wait(seconds)


class GlooBackend:
    """What a group of processes does through its connections."""

    name = "gloo"
    has_tags = True

    rank: int
    size: int

    def __init__(
        self, store: Any, rank: int, size: int, name: str, seconds: float, mesh: _Mesh | None = None,
        ranks: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        self._owns_mesh = mesh is None
        self._mesh = _Mesh(store, rank, size, name, seconds) if mesh is None else mesh
        self._ranks = list(range(size) if ranks is None else ranks)
        self.rank, self.size = rank, size
        self._name = name
        self._context = zlib.crc32(name.encode())
        self._tag = _OPERATIONS
        self._queue: queue.SimpleQueue[tuple[_Operation, Callable[[], None]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=f"retrograd gloo {name}", daemon=True).start()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            work, function = item
            try:
                function()
            except BaseException as error:
                work._failed = error
            work._ready.set()
            del item, work, function
            if sys.is_finalizing():
                return

    def _do(self, function: Callable[[int], None]) -> Work:
        """An operation: `function` is called on the group's thread, with the tag of its messages."""
        work = _Operation()
        self._tag -= 2  # two rounds of messages at most
        tag = self._tag
        self._queue.put((work, lambda: function(tag)))
        return work

    def _exchange(
        self, tag: int, sent: Sequence[tuple[int, np.ndarray]], received: Sequence[tuple[int, np.ndarray]]
    ) -> None:
        """Messages to and from other members of the group, all at once."""
        waiting = [
            self._mesh.expect(self._context, self._ranks[r], tag, array) for r, array in received if r != self.rank
        ]
        for rank, array in sent:
            if rank != self.rank:
                self._mesh.send(self._context, self._ranks[rank], tag, array)
        for receipt in waiting:
            receipt.arrived.wait()
            if receipt.error is not None:
                raise DistBackendError(receipt.error)

    # ------------------------------------------------------------------------------------------------ between two of
    # them

    def send(self, array: np.ndarray, dst: int, tag: int) -> Work:
        self._mesh.send(self._context, self._ranks[dst], tag, array)
        return _Message(None, self._ranks)

    def recv(self, array: np.ndarray, src: int | None, tag: int) -> Work:
        source = None if src is None else self._ranks[src]
        return _Message(self._mesh.expect(self._context, source, tag, array), self._ranks)

    # ---------------------------------------------------------------------------------------------------------- among
    # all

    def barrier(self) -> Work:
        return self.all_reduce(np.zeros(1, np.uint8), ReduceOp.BOR)

    def farewell(self) -> Work:
        """A barrier that is not mixed up with operations which others may be in."""
        other = GlooBackend(None, self.rank, self.size, self._name + " farewell", 0.0, self._mesh, self._ranks)
        work = other.barrier()
        other._queue.put(None)
        return work

    def all_reduce(self, array: np.ndarray, op: ReduceOp) -> Work:
        parts = np.array_split(array.reshape(-1), self.size)

        def run(tag: int) -> None:
            self._reduce_parts(tag, parts[self.rank], parts, op)
            own = parts[self.rank]
            self._exchange(tag - 1, [(r, own) for r in range(self.size)], list(enumerate(parts)))

        return self._do(run)

    def _reduce_parts(self, tag: int, out: np.ndarray, arrays: Sequence[np.ndarray], op: ReduceOp) -> None:
        """`out` becomes everybody's array for this rank, reduced."""
        combine = ufunc(op)
        got = [arrays[r] if r == self.rank else np.empty_like(out) for r in range(self.size)]
        self._exchange(tag, list(enumerate(arrays)), list(enumerate(got)))
        result = got[0].copy()
        for array in got[1:]:
            combine(result, array.reshape(result.shape), out=result)
        out[...] = result.reshape(out.shape)

    def reduce(self, array: np.ndarray, root: int, op: ReduceOp) -> Work:
        def run(tag: int) -> None:
            if self.rank != root:
                return self._exchange(tag, [(root, array)], [])
            got = [array if r == root else np.empty_like(array) for r in range(self.size)]
            self._exchange(tag, [], list(enumerate(got)))
            result = got[0].copy()
            for other in got[1:]:
                ufunc(op)(result, other, out=result)
            array[...] = result

        return self._do(run)

    def broadcast(self, array: np.ndarray, root: int) -> Work:
        def run(tag: int) -> None:  # from everyone to twice as many in each round
            place = (self.rank - root) % self.size
            step = 1
            while step <= place:
                step *= 2
            if place:
                self._exchange(tag, [], [((root + place - step // 2) % self.size, array)])
            while place + step < self.size:
                self._exchange(tag, [((root + place + step) % self.size, array)], [])
                step *= 2

        return self._do(run)

    def all_gather_flat(self, out: np.ndarray, array: np.ndarray) -> Work:
        return self.all_gather(out.reshape(self.size, -1), array)

    def reduce_scatter_flat(self, out: np.ndarray, array: np.ndarray, op: ReduceOp) -> Work:
        return self.reduce_scatter(out, list(array.reshape(self.size, -1)), op)

    def all_gather(self, outs: Any, array: np.ndarray) -> Work:
        def run(tag: int) -> None:
            self._exchange(tag, [(r, array) for r in range(self.size)], list(enumerate(outs)))
            outs[self.rank][...] = array.reshape(outs[self.rank].shape)

        return self._do(run)

    def reduce_scatter(self, out: np.ndarray, arrays: Sequence[np.ndarray], op: ReduceOp) -> Work:
        return self._do(lambda tag: self._reduce_parts(tag, out, arrays, op))

    def all_to_all(self, outs: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> Work:
        def run(tag: int) -> None:
            self._exchange(tag, list(enumerate(arrays)), list(enumerate(outs)))
            outs[self.rank][...] = arrays[self.rank].reshape(outs[self.rank].shape)

        return self._do(run)

    def gather(self, outs: Sequence[np.ndarray], array: np.ndarray, root: int) -> Work:
        def run(tag: int) -> None:
            self._exchange(tag, [(root, array)], list(enumerate(outs)) if self.rank == root else [])
            if self.rank == root:
                outs[root][...] = array.reshape(outs[root].shape)

        return self._do(run)

    def scatter(self, out: np.ndarray, arrays: Sequence[np.ndarray], root: int) -> Work:
        def run(tag: int) -> None:
            self._exchange(tag, list(enumerate(arrays)) if self.rank == root else [], [(root, out)])
            if self.rank == root:
                out[...] = arrays[root].reshape(out.shape)

        return self._do(run)

    # -------------------------------------------------------------------------------------------------------------
    # groups

    def subgroup(self, ranks: Sequence[int], name: str) -> GlooBackend | None:
        """Another group, of some of these; None for those that are not in it."""
        if self.rank not in ranks:
            return None
        place = list(ranks).index(self.rank)
        return GlooBackend(None, place, len(ranks), f"group {name}", 0.0, self._mesh, [self._ranks[r] for r in ranks])

    def close(self) -> None:
        """End the group's thread, and with the group of all the connections."""
        self._queue.put(None)
        if self._owns_mesh:
            self._mesh.close()
