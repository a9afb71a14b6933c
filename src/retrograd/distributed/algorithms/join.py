"""``torch.distributed.algorithms.join``: processes with inputs of different lengths. There is one."""

from ..refusals import names_of

_NAMES = ["Join", "JoinHook", "Joinable"]

__all__ = list(_NAMES)
__getattr__ = names_of(__name__, _NAMES)
