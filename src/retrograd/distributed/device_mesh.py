"""``torch.distributed.device_mesh``: processes as a grid. Its names refuse."""

from .refusals import names_of

_NAMES = [
    "DeviceMesh", "init_device_mesh",
]  # fmt: skip

__all__ = list(_NAMES)
__getattr__ = names_of(__name__, _NAMES)
