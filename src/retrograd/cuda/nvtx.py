"""``torch.cuda.nvtx``: marks for NVIDIA's profiler, which needs its devices."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["mark", "range", "range_pop", "range_push"]


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: there is no such profiler here."""
    raise RuntimeError(
        "NVTX functions not installed. Are you sure you have a CUDA build? record_function() names blocks"
    )


mark = range = range_pop = range_push = _refuse
