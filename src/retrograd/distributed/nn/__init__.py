"""``torch.distributed.nn``: collective operations that have gradients, see functional.py."""

from typing import Any

from ..refusals import names_of
from .functional import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    recv,
    reduce,
    reduce_scatter,
    scatter,
    send,
)

_REFUSED = ["RemoteModule"]

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "recv", "reduce",
    "reduce_scatter", "scatter", "send", *_REFUSED,
]  # fmt: skip

_refused = names_of(__name__, _REFUSED)


def __getattr__(name: str) -> Any:
    return _refused(name)
