"""``torch.distributed``: importable, so that a program's ``if dist.is_available()`` decides; there is no communication.

One process computes. What asks for more of them is refused with the reason.
"""

from __future__ import annotations

import enum
from importlib import import_module
from typing import Any

from .refusals import refuse, refusing

_REFUSED = (
    "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single",
    "barrier", "broadcast", "broadcast_object_list", "destroy_process_group", "gather", "gather_object", "get_backend",
    "get_rank", "get_world_size", "init_process_group", "irecv", "isend", "monitored_barrier", "new_group", "recv",
    "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send",
)  # fmt: skip

__all__ = [
    "ProcessGroup", "ReduceOp", "get_default_backend_for_device", "group", "is_available", "is_gloo_available",
    "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", *_REFUSED,
]  # fmt: skip


def is_available() -> bool:
    """Can processes talk to each other?

    >>> import retrograd as torch
    >>> torch.distributed.is_available()
    False
    """
    return False


def is_initialized() -> bool:
    """Is there a group of processes?"""
    return False


def is_mpi_available() -> bool:
    """Through MPI?"""
    return False


def is_nccl_available() -> bool:
    """Through NCCL?"""
    return False


def is_gloo_available() -> bool:
    """Through Gloo?"""
    return False


def is_torchelastic_launched() -> bool:
    """Was this process started by torch's launcher?"""
    return False


class ReduceOp(enum.Enum):
    """How values of several processes become one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


class group:
    """The groups of processes that there are: none."""

    WORLD = None


class ProcessGroup:
    """Processes that talk to each other: refused, there is one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse("ProcessGroup")


def get_default_backend_for_device(device: Any) -> str:
    """What processes on a device would talk through."""
    return "gloo"


#: What torch builds on processes that talk to each other: modules whose names can be imported, and refuse.
_ON_DEMAND = (
    "algorithms", "checkpoint", "device_mesh", "elastic", "fsdp", "nn", "optim", "pipelining", "rpc", "tensor",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _REFUSED:
        return refusing(__name__, name)
    if name in _ON_DEMAND:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
