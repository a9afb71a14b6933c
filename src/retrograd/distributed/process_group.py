"""ProcessGroup: processes that work together; how the group of all of them begins and ends.

`world` is what this process knows of it, and the one thing here that changes.
"""

from __future__ import annotations

import itertools
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from importlib.util import find_spec
from multiprocessing import util as _multiprocessing_util
from typing import Any
from urllib.parse import urlparse

from ..core.devices import CPU
from ..tensor import Tensor
from . import gloo, mpi, nccl
from .monitor import Board, Monitor
from .store import TCPStore
from .work import Work

__all__ = [
    "GroupMember", "ProcessGroup", "destroy_process_group", "get_backend", "get_backend_config", "get_global_rank",
    "get_group_rank", "get_node_local_rank", "get_process_group_ranks", "get_rank", "get_world_size", "group",
    "init_process_group", "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available",
    "is_nccl_available", "new_group",
]  # fmt: skip

DEFAULT_TIMEOUT = timedelta(minutes=30)


class ProcessGroup:
    """Processes that work together. `init_process_group` makes the one of all, `new_group` smaller ones."""

    def __init__(self, backend: Any, ranks: Sequence[int], timeout: float, monitor: Monitor, name: str) -> None:
        self.backend = backend
        #: The ranks of its members in the group of all.
        self.ranks: list[int] = list(ranks)
        self.timeout = timeout
        self.monitor = monitor
        self.group_name = name
        self._count = itertools.count(1)
        #: How many messages with gradients have gone between two: see nn/functional.py.
        self.messages: dict[tuple[str, int, int], int] = {}

    def rank(self) -> int:
        """The number of this process in the group."""
        return self.backend.rank

    def size(self) -> int:
        """How many there are."""
        return len(self.ranks)

    def name(self) -> str:
        """What it talks through."""
        return self.backend.name

    @property
    def device(self) -> Any:
        """Where the tensors are that it takes: on the CPU, or on this process's GPU."""
        return getattr(self.backend, "device", CPU)

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.backend.name} of ranks {self.ranks}>"

    def __deepcopy__(self, memo: Any) -> ProcessGroup:
        return self

    def run(
        self,
        name: str,
        start: Callable[[Any], Work],
        tensors: list[Tensor],
        async_op: bool,
        after: Sequence[Callable[[], None]] = (),
    ) -> Work | None:
        """Start an operation of the backend; wait for it, or give back the handle. `after` follows its arrival."""
        number = next(self._count)
        full = f"{name} number {number}" + ("" if self is world.group else f" of group {self.ranks}")
        activity = self.monitor.activity
        if self.monitor.failure is not None:
            self.monitor.check(full, self.ranks, 0.0)
        activity.last, activity.since = full, time.monotonic()
        work = start(self.backend)
        work._group, work._name, work._tensors, work._after = self, full, tensors, list(after)
        if async_op:
            work._go_on()
            return work
        work.wait()
        return None


class GroupMember:
    """Who is in a group."""

    #: What `new_group` gives to a process that is not in it.
    NON_GROUP_MEMBER = -100


class _World:
    """The group of all processes, and what goes with it."""

    def __init__(self) -> None:
        self.group: ProcessGroup | None = None
        self.groups: list[ProcessGroup] = []
        self.store: Any = None
        self.broken = False  # has a process failed, so that MPI cannot be ended in good order?
        self.uses_mpi = False
        self.at_exit: Any = None

    def default(self) -> ProcessGroup:
        """The group of all."""
        if self.group is None:
            raise ValueError(
                "Default process group has not been initialized, please make sure to call init_process_group."
            )
        return self.group


world: _World = _World()


class _Groups(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes, if there is one."""
        return world.group


class group(metaclass=_Groups):
    """``group.WORLD`` is the group of all processes."""


def resolve(group: Any) -> ProcessGroup | None:
    """The group that a caller means; None if this process is not in it."""
    if group is None:
        return world.default()
    if group is GroupMember.NON_GROUP_MEMBER:
        return None
    if not isinstance(group, ProcessGroup):
        raise TypeError(f"argument 'group' must be a ProcessGroup, not {type(group).__name__}")
    if group not in world.groups:
        raise ValueError("Invalid process group specified: it has been destroyed")
    return group


# -------------------------------------------------------------------------------------------------- what there is here


def is_initialized() -> bool:
    """Is there a group of processes?"""
    return world.group is not None


def is_mpi_available() -> bool:
    """Can processes talk through MPI?"""
    return find_spec("mpi4py") is not None


def is_nccl_available() -> bool:
    """Can processes talk through NCCL? It takes CuPy and tensors on GPUs."""
    return nccl.available()


def is_gloo_available() -> bool:
    """Can processes talk through sockets?"""
    return True


def is_backend_available(backend: str) -> bool:
    """Is there a backend of this name?"""
    available = {"mpi": is_mpi_available, "nccl": is_nccl_available, "gloo": is_gloo_available}
    return available.get(backend.lower(), lambda: False)()


# ------------------------------------------------------------------------------------------------- beginning and ending


def _started_by_mpi() -> bool:
    """Was this process started by an MPI's mpiexec?"""
    return any(name in os.environ for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"))


def _choose(backend: str | None) -> str:
    if backend is None:
        return "mpi" if _started_by_mpi() and is_mpi_available() else "gloo"
    parts = dict(part.split(":", 1) for part in backend.split(",")) if ":" in backend else {"": backend}
    name = parts.get("cpu", next(iter(parts.values()))).lower()
    if name not in ("mpi", "nccl", "gloo"):
        raise ValueError(f"Invalid backend: '{name}'. Write 'mpi', 'nccl' or 'gloo'")
    return name


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Begin to work together: every process calls it.

    `backend` is "mpi" (all processes that ``mpiexec`` has started; `rank` and `world_size` come from it), "gloo"
    (processes that find each other by `init_method`, through sockets) or "nccl" (the same, for tensors on GPUs);
    without it, MPI if it has started this process, else "gloo". Every operation has to be finished within `timeout`.
    """
    if world.group is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {type(timeout)}")
    if pg_options is not None or device_id is not None:
        raise ValueError(
            "init_process_group(): there are no 'pg_options', and no accelerator for 'device_id': leave them out"
        )
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    name = _choose(backend)
    if name == "nccl":
        nccl.require()
    seconds = (DEFAULT_TIMEOUT if timeout is None else timeout).total_seconds()
    if name == "mpi":
        if world_size != -1 or rank != -1 or store is not None or init_method not in (None, "env://"):
            raise ValueError(
                "init_process_group('mpi'): 'rank' and 'world_size' are those that mpiexec gives: leave them out"
            )
        made, monitor = _begin_mpi(seconds)
    else:
        if store is None:
            store, rank, world_size = _rendezvous(init_method or "env://", rank, world_size, timeout or DEFAULT_TIMEOUT)
        if rank < 0 or world_size <= 0:
            raise ValueError(f"with a store, rank and world_size are needed; they are {rank} and {world_size}")
        monitor = _begin_monitor(rank, world_size, store, seconds)
        kind: Any = nccl.NCCLBackend if name == "nccl" else gloo.GlooBackend
        made = kind(store, rank, world_size, group_name or "world", seconds)
    world.store = store
    world.group = ProcessGroup(made, range(made.size), seconds, monitor, group_name or "world")
    world.groups = [world.group]
    if world.at_exit is None:
        # At the end of the program, and of processes that `multiprocessing` has started.
        world.at_exit = _multiprocessing_util.Finalize(None, _at_exit, exitpriority=100)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forget)


def _begin_mpi(seconds: float) -> tuple[Any, Monitor]:
    MPI = mpi.load()
    world.uses_mpi = True
    made = mpi.MPIBackend(MPI.COMM_WORLD.Dup(), MPI)
    comm = MPI.COMM_WORLD
    one_machine = len(set(comm.allgather(MPI.Get_processor_name()))) == 1
    host = "127.0.0.1" if one_machine else socket.gethostname()
    board = Board(comm.size, "127.0.0.1" if one_machine else "") if comm.rank == 0 else None
    host, port = comm.bcast((host, board.port) if board is not None else None)
    return made, Monitor(comm.rank, comm.size, host, port, board, seconds)


def _begin_monitor(rank: int, size: int, store: Any, seconds: float) -> Monitor:
    board = None
    host = getattr(store, "host", "127.0.0.1")
    if rank == 0:
        board = Board(size, "127.0.0.1" if host in ("localhost", "127.0.0.1") else "")
        store.set("retrograd/board", f"{host}:{board.port}")
    host, _, port = store.get("retrograd/board").decode().rpartition(":")
    return Monitor(rank, size, host, int(port), board, seconds)


def _rendezvous(method: str, rank: int, size: int, timeout: timedelta) -> tuple[TCPStore, int, int]:
    """The store that all processes meet at, and who this one is."""
    url = urlparse(method)
    if url.scheme == "env":
        for variable in (
            "MASTER_ADDR",
            "MASTER_PORT",
            *(["RANK"] if rank < 0 else []),
            *(["WORLD_SIZE"] if size < 0 else []),
        ):
            if variable not in os.environ:
                raise ValueError(
                    f"Error initializing torch.distributed using env:// rendezvous: environment variable {variable} "
                    "expected, but not set. python -m retrograd.distributed.run -n 2 program.py sets it"
                )
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        rank = int(os.environ["RANK"]) if rank < 0 else rank
        size = int(os.environ["WORLD_SIZE"]) if size < 0 else size
    elif url.scheme == "tcp" and url.hostname and url.port:
        host, port = url.hostname, url.port
        if rank < 0 or size < 0:
            raise ValueError(
                "Error initializing torch.distributed using tcp:// rendezvous: rank and world_size are needed"
            )
    else:
        raise RuntimeError(f"No rendezvous handler for {url.scheme}://: write env:// or tcp://host:port")
    return TCPStore(host, port, is_master=rank == 0, timeout=timeout), rank, size


def destroy_process_group(group: Any = None) -> None:
    """Stop working together, in a group or at all; every process of it calls it."""
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    found = resolve(group)
    assert found is not None
    if found is not world.group:
        if not world.broken and found.monitor.failure is None:
            _meet(found)
            found.backend.close()
        world.groups.remove(found)
        return
    _leave("it has called destroy_process_group()")


def _meet(group: ProcessGroup) -> bool:
    """Wait, for as long as it takes, until all have come to let the group go; False if somebody failed."""
    work = group.backend.farewell()
    pause = 1e-5
    while not work._look():
        if group.monitor.failure is not None:
            return False
        time.sleep(pause)
        pause = min(0.02, pause * 1.5)
    return work.exception() is None


def _leave(why: str) -> None:
    """Leave the group of all."""
    found = world.default()
    monitor = found.monitor
    monitor.goodbye(why)
    together = monitor.failure is None and _meet(found)
    monitor.close()
    if together:
        found.backend.close()
    else:
        world.broken = True
    if world.store is not None and hasattr(world.store, "close"):
        world.store.close()
    world.group, world.groups, world.store = None, [], None


def _at_exit() -> None:
    """The process ends: so does its part in the group, and MPI."""
    if world.group is not None:
        _leave("its program has ended")
    if world.uses_mpi:
        mpi.progress.forget()
        if not world.broken:
            mpi.finish()
    if world.broken and world.uses_mpi:  # MPI would wait for those that have failed, for ever
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


def _forget() -> None:
    """This is a forked process, which is not in the group."""
    if world.group is not None:
        world.group.monitor.forget()
    world.group, world.groups, world.store, world.at_exit = None, [], None, None
    world.uses_mpi = world.broken = False


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """A group of some processes. All processes call it, also those that are not in it."""
    whole = world.default()
    if use_local_synchronization:
        raise ValueError("new_group(): use_local_synchronization=True is not supported: all processes have to call it")
    if pg_options is not None or device_id is not None:
        raise ValueError("new_group(): there are no 'pg_options', and no accelerator for 'device_id': leave them out")
    if backend is not None and _choose(backend) != whole.backend.name:
        raise ValueError(
            f"new_group(): the backend is {whole.backend.name!r}, that of the group of all, not {backend!r}"
        )
    members = sorted(range(whole.size()) if ranks is None else ranks)
    if len(set(members)) != len(members):
        raise ValueError(f"new_group(): a rank is given twice: {members}")
    if members and not 0 <= members[0] <= members[-1] < whole.size():
        raise RuntimeError(
            f"The new group's rank should be within the world_size {whole.size()} set by init_process_group"
        )
    whole.run("new_group", lambda b: b.barrier(), [], False)  # within the timeout, which what follows does not know
    name = group_desc or f"group {len(world.groups)}"
    made = whole.backend.subgroup(members, f"{next(_names)}")
    if made is None:
        return GroupMember.NON_GROUP_MEMBER
    seconds = whole.timeout if timeout is None else timeout.total_seconds()
    found = ProcessGroup(made, members, seconds, whole.monitor, name)
    world.groups.append(found)
    return found


_names = itertools.count(1)


# ------------------------------------------------------------------------------------------------------ who and how
# many


def get_rank(group: Any = None) -> int:
    """The number of this process in a group; -1 if it is not in it."""
    found = resolve(group)
    return -1 if found is None else found.rank()


def get_world_size(group: Any = None) -> int:
    """How many processes a group has; -1 if this one is not in it."""
    found = resolve(group)
    return -1 if found is None else found.size()


def get_backend(group: Any = None) -> str:
    """What the processes of a group talk through."""
    found = resolve(group)
    if found is None:
        raise ValueError("Invalid process group specified: this process is not in it")
    return found.name()


def get_backend_config(group: Any = None) -> str:
    """What the processes of a group talk through, for each device."""
    name = get_backend(group)
    return "cuda:nccl" if name == "nccl" else f"cpu:{name}"


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The ranks of a group's members in the group of all."""
    found = resolve(group)
    return [] if found is None else list(found.ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The number in `group` of a member with this rank in the group of all."""
    if global_rank not in group.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return group.ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the group of all of a group's member."""
    if not 0 <= group_rank < group.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return group.ranks[group_rank]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process among those on its machine, as the launcher has set it."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment: start with retrograd.distributed.run, or give fallback_rank"
    )
