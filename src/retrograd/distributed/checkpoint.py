"""``torch.distributed.checkpoint``: checkpoints that many processes write. Here is one process: its names refuse."""

from .refusals import names_of

_NAMES = [
    "DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter", "async_save", "load",
    "load_state_dict", "save", "save_state_dict",
]  # fmt: skip

__all__ = list(_NAMES)
__getattr__ = names_of(__name__, _NAMES)
