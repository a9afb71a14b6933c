"""``torch.distributed.nn``: communication that has gradients. Here is one process: its names refuse."""

from .refusals import names_of

_NAMES = [
    "RemoteModule", "all_gather", "all_reduce", "all_to_all", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip

__all__ = list(_NAMES)
__getattr__ = names_of(__name__, _NAMES)
