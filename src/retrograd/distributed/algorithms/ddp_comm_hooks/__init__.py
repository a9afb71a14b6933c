"""``torch.distributed.algorithms.ddp_comm_hooks``: other ways in which gradients become means.

``model.register_comm_hook(None, default_hooks.fp16_compress_hook)``
"""

from . import default_hooks, powerSGD_hook

__all__ = ["default_hooks", "powerSGD_hook"]
