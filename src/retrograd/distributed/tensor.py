"""``torch.distributed.tensor``: tensors shared out among processes. Its names refuse."""

from .refusals import names_of

_NAMES = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor",
    "empty", "full", "init_device_mesh", "ones", "rand", "randn", "zeros",
]  # fmt: skip

__all__ = list(_NAMES)
__getattr__ = names_of(__name__, _NAMES)
