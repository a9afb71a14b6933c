"""``torch.cuda.memory``: the memory of CUDA devices. Note [Memory and streams] in arrays/memory.py."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._places import count, found, place

__all__ = [
    "empty_cache", "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved",
    "memory_stats", "memory_summary", "reset_max_memory_allocated", "reset_max_memory_cached",
    "reset_peak_memory_stats", "set_per_process_memory_fraction",
]  # fmt: skip


def _memory() -> Any:
    return import_module("...arrays.memory", __name__)


def _physical(device: Any) -> int | None:
    return place(device).physical if count() and found() else None


def _total(device: Any) -> int:
    where = place(device)
    where.activate()
    return int(where.module.get_default_memory_pool().total_bytes())


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors hold on a CUDA device; as in torch, 0 where there is none."""
    index = _physical(device)
    return 0 if index is None else _memory().counts.allocated.get(index, 0)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors held on a CUDA device since `reset_peak_memory_stats`."""
    index = _physical(device)
    return 0 if index is None else _memory().counts.most.get(index, 0)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the pool of a CUDA device has, in use or kept for later."""
    return 0 if _physical(device) is None else _total(device)


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the pool had since `reset_peak_memory_stats`."""
    index = _physical(device)
    return 0 if index is None else max(_memory().counts.most_reserved.get(index, 0), _total(device))


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the highest numbers begin anew at what is in use now."""
    index = _physical(device)
    if index is not None:
        counts = _memory().counts
        counts.most[index] = counts.allocated.get(index, 0)
        counts.most_reserved[index] = 0


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def empty_cache() -> None:
    """Give the memory that the pools keep for later back to the devices; as in torch, nothing where there is none."""
    if not count():
        return
    for where in found():
        where.activate()
        _memory().give_back()
        where.module.get_default_memory_pool().free_all_blocks()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of a CUDA device."""
    where = place(device)
    where.activate()
    free, total = where.module.cuda.runtime.memGetInfo()
    return int(free), int(total)


def memory_stats(device: Any = None) -> dict[str, int]:
    """The numbers of this module by torch's names."""
    return {
        "allocated_bytes.all.current": memory_allocated(device),
        "allocated_bytes.all.peak": max_memory_allocated(device),
        "reserved_bytes.all.current": memory_reserved(device),
        "reserved_bytes.all.peak": max_memory_reserved(device),
    }


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The memory of a CUDA device in words; `abbreviated`: in one line."""
    free, total = mem_get_info(device)
    words = _memory().words
    lines = [
        f"tensors hold {words(memory_allocated(device))} (at most {words(max_memory_allocated(device))})",
        f"the pool has {words(memory_reserved(device))}",
        f"free on the device: {words(free)} of {words(total)}",
    ]
    return "; ".join(lines) if abbreviated else "\n".join(lines)


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let tensors have at most so much of a device's memory."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    where = place(device)
    where.activate()
    where.module.get_default_memory_pool().set_limit(size=int(fraction * mem_get_info(device)[1]))
