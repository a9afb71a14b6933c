"""``torch.distributed.optim``: optimizers of parameters that are shared out. Here is one process: its names refuse."""

from .refusals import names_of

_NAMES = [
    "DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer",
]  # fmt: skip

__all__ = list(_NAMES)
__getattr__ = names_of(__name__, _NAMES)
