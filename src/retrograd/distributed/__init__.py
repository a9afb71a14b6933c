"""``torch.distributed``: processes that work together, on one machine or many.

A group of processes begins with `init_process_group` and a *backend*, which moves the data: "mpi" (mpi.py), "gloo"
(over sockets, gloo.py) or "nccl" (between GPUs, nccl.py). Upon it are collective operations on tensors
(collectives.py) and on objects (objects.py), such that have gradients (nn/functional.py), and what programs are built
of: ``nn.parallel.DistributedDataParallel``, ``distributed.optim.ZeroRedundancyOptimizer``,
``distributed.pipelining``, ``distributed.fsdp``. Processes are started by ``mpiexec`` or by ``python -m
retrograd.distributed.run`` (run.py). What happens when one of them fails: Note [Failures] in monitor.py.
docs/DISTRIBUTED.md is the guide.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from .collectives import (
    P2POp,
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    gather,
    irecv,
    isend,
    monitored_barrier,
    recv,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
    send,
)
from .errors import DistBackendError, DistError, DistNetworkError, DistStoreError
from .grad_bucket import GradBucket
from .objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from .process_group import (
    GroupMember,
    ProcessGroup,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    new_group,
)
from .reduce_op import ReduceOp, reduce_op
from .store import TCPStore
from .work import Work

__all__ = [
    "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "GradBucket", "GroupMember", "P2POp",
    "ProcessGroup", "ReduceOp", "TCPStore", "Work", "all_gather", "all_gather_into_tensor", "all_gather_object",
    "all_reduce", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast",
    "broadcast_object_list",
    "destroy_process_group", "gather", "gather_object", "get_backend", "get_backend_config",
    "get_default_backend_for_device", "get_global_rank", "get_group_rank", "get_node_local_rank",
    "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group", "irecv", "is_available",
    "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "isend", "monitored_barrier", "new_group", "recv", "recv_object_list", "reduce",
    "reduce_op", "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send",
    "send_object_list",
]  # fmt: skip


def is_available() -> bool:
    """Can processes work together?

    >>> import retrograd as torch
    >>> torch.distributed.is_available(), torch.distributed.is_initialized()
    (True, False)
    """
    return True


def is_torchelastic_launched() -> bool:
    """Was this process started by torch's launcher of processes that come and go?"""
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_default_backend_for_device(device: Any) -> str:
    """What processes talk through whose tensors are on a device.

    >>> import retrograd as torch
    >>> torch.distributed.get_default_backend_for_device("cuda:0")
    'nccl'
    """
    return "nccl" if str(device).startswith("cuda") else "gloo"


#: Parts that are imported by who asks for them.
_ON_DEMAND = (
    "algorithms", "checkpoint", "device_mesh", "elastic", "fsdp", "nn", "optim", "pipelining", "rpc", "tensor",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
