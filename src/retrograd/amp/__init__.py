"""``torch.amp``: mixed precision, and the scaling of losses that goes with float16."""

from .autocast_mode import (
    autocast,
    current_autocast,
    custom_bwd,
    custom_fwd,
    get_autocast_dtype,
    is_autocast_available,
    is_autocast_enabled,
    restored_autocast,
)
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
