"""``torch.autograd.profiler``: the profile of one block, and its older companions."""

from __future__ import annotations

from typing import Any, NoReturn

from ..profiler.block import is_profiling, profile
from ..profiler.events import EventList, FunctionEvent, FunctionEventAvg, MemRecordsAcc
from ..profiler.recording import record_function
from ..profiler.steps import KinetoStepTracker

__all__ = [
    "EnforceUnique", "EventList", "FunctionEvent", "FunctionEventAvg", "KinetoStepTracker", "MemRecordsAcc", "emit_itt",
    "emit_nvtx", "load_nvprof", "parse_nvprof_trace", "profile", "record_function",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "_is_profiler_enabled":
        return is_profiling()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class emit_nvtx:
    """Marks for NVIDIA's profiler: refused, nothing runs on its devices."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> Any:
        if self.enabled:
            self._refuse()
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass

    def _refuse(self) -> NoReturn:
        raise RuntimeError(
            f"{type(self).__name__}: there is no such profiler here. torch.profiler.profile() records operators, and "
            "Python's own cProfile functions"
        )


class emit_itt(emit_nvtx):
    """Marks for Intel's profiler: refused."""


def load_nvprof(path: str) -> NoReturn:
    """Refused: nothing here runs on NVIDIA's devices."""
    raise RuntimeError("load_nvprof: traces of NVIDIA's profiler are not read here: there is nothing of ours in them")


parse_nvprof_trace = load_nvprof


class EnforceUnique:
    """Raises when it sees something twice.

    >>> seen = EnforceUnique()
    >>> seen.see(1, 2)
    """

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def see(self, *key: Any) -> None:
        """Note a key; one that was seen before is an error."""
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)
