"""``torch.nn.parallel``: one module on several devices."""

from .data_parallel import DataParallel

__all__ = ["DataParallel"]
