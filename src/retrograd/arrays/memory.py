"""The memory of CUDA devices: the library's pool, counted, with torch's error when it is used up.

Note [Memory and streams]
A block goes back to the pool when its last array goes, and the pool gives it to whoever asks next on the *same stream*:
that stream will have done what it was told before.  Another stream that reads the block may not have got to it yet.  So
whoever uses an array on another stream says so (`use_on`, ``x.record_stream(s)``), and a block of which that was said
is kept when it is let go, until an event says that the other stream is past what it had been told by then.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from ..core.devices import OutOfMemoryError

_lock = threading.RLock()
new = object.__new__


class Block:
    """A block of memory that arrays of a device lie in."""

    __slots__ = ("__weakref__", "allocated", "device", "pointer", "size", "streams")

    def __init__(self, pointer: Any, size: int, device: int) -> None:
        self.pointer, self.size, self.device = pointer, size, device
        #: Where it is counted.
        self.allocated: dict[int, int] = counts.allocated
        #: Streams that use it beside the one that it belongs to.
        self.streams: list[Any] | None = None

    def __del__(self) -> None:
        self.allocated[self.device] = self.allocated.get(self.device, 0) - self.size
        if self.streams and counts.module is not None:
            events = []
            for stream in self.streams:
                event = counts.module.cuda.Event(disable_timing=True)
                event.record(stream)
                events.append(event)
            waiting.append((self.pointer, events))


class Counts:
    """What is allocated on each device, and was at most."""

    def __init__(self) -> None:
        self.module: Any = None
        #: The library's pool.
        self.pool: Any = None
        self.allocated: dict[int, int] = {}
        self.most: dict[int, int] = {}
        self.most_reserved: dict[int, int] = {}


counts: Counts = Counts()
#: Blocks that were let go and that other streams may still read.
waiting: list[tuple[Any, list[Any]]] = []
#: Blocks by their addresses.
blocks: weakref.WeakValueDictionary[int, Block] = weakref.WeakValueDictionary()


def give_back() -> None:
    """Let go of the blocks that no stream reads any more."""
    if waiting:
        with _lock:
            waiting[:] = [entry for entry in waiting if not all(event.done for event in entry[1])]


#: Pools of streams whose memory is their own: Note [Captured graphs] in arrays/capturing.py.
private: dict[int, Any] = {}


def _block(size: int) -> Block:
    """A block of memory, which belongs to the library's current stream."""
    module = counts.module
    if waiting:
        give_back()
    pool = module.get_default_memory_pool()
    if private:
        pool = private.get(module.cuda.get_current_stream().ptr, pool)
    try:
        pointer = pool.malloc(size)
    except Exception as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        for entry in list(waiting):
            for event in entry[1]:
                event.synchronize()
        give_back()
        try:
            pool.free_all_blocks()
            pointer = pool.malloc(size)
        except Exception as again:
            if type(again).__name__ != "OutOfMemoryError":
                raise
            raise _out_of_memory(module, size) from None
    index = pointer.mem.device_id
    # What the pool gives has a whole number of units; arrays count with what they asked for, rounded up to it.
    rounded = -(-size // 512) * 512
    now = counts.allocated[index] = counts.allocated.get(index, 0) + rounded
    if now > counts.most.get(index, 0):
        counts.most[index] = now
        counts.most_reserved[index] = max(counts.most_reserved.get(index, 0), pool.total_bytes())
    return Block(pointer, rounded, index)


def take(size: int, index: int) -> Block:
    """Memory for an array of one of our kernels, on a device of the library. The same as `_block`, written out: it is
    asked for with each launch."""
    if waiting or private or size <= 0:
        return _block(size or 1)
    try:
        pointer = counts.pool.malloc(size)
    except Exception:
        return _block(size)
    block = new(Block)
    block.pointer, block.device, block.streams = pointer, index, None
    block.size = size = (size + 511) & -512
    block.allocated = allocated = counts.allocated
    now = allocated[index] = allocated.get(index, 0) + size
    if now > counts.most.get(index, 0):
        counts.most[index] = now
        counts.most_reserved[index] = max(counts.most_reserved.get(index, 0), counts.pool.total_bytes())
    return block


def pointer_to(block: Block) -> Any:
    """A block as the library points to memory."""
    address = block.pointer.ptr
    blocks[address] = block
    return counts.module.cuda.MemoryPointer(
        counts.module.cuda.UnownedMemory(address, block.size, block, block.device), 0
    )


def _allocate(size: int) -> Any:
    """What the library calls for memory."""
    return pointer_to(_block(size))


def _out_of_memory(module: Any, size: int) -> OutOfMemoryError:
    free, total = module.cuda.runtime.memGetInfo()
    index = module.cuda.Device().id
    held = counts.allocated.get(index, 0)
    limit = getattr(module.get_default_memory_pool(), "get_limit", lambda: 0)()
    if limit:
        free = min(free, max(limit - held, 0))
    return OutOfMemoryError(
        f"CUDA out of memory. Tried to allocate {words(size)}. GPU {index} has a total capacity of {words(total)} of "
        f"which {words(free)} is free. {words(held)} is held by tensors; let go of some of them, or of the graph that "
        "holds them"
    )


def words(size: int) -> str:
    """A number of bytes as torch writes it.

    >>> words(512), words(3 << 20), words(5 << 30)
    ('512 bytes', '3.00 MiB', '5.00 GiB')
    """
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} bytes"


def use_on(raw: Any, stream: Any) -> None:
    """Say that `stream` uses the memory of an array of the library that may belong to another one."""
    block = blocks.get(raw.data.mem.ptr)
    if block is not None:
        with _lock:
            if block.streams is None:
                block.streams = [stream]
            elif stream not in block.streams:
                block.streams.append(stream)


def install(module: Any) -> None:
    """Count what the library allocates from now on."""
    counts.__init__()  # type: ignore[misc]
    counts.module = module
    counts.pool = module.get_default_memory_pool()
    module.cuda.set_allocator(_allocate)


def uninstall() -> None:
    """Let the library allocate by itself again."""
    if counts.module is not None:
        waiting.clear()
        counts.module.cuda.set_allocator(counts.module.get_default_memory_pool().malloc)
        counts.module = None
