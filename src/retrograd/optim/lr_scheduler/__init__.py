"""``torch.optim.lr_scheduler``: learning rates that change from step to step, or from epoch to epoch."""

from .base import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    _format_param,
    _LRScheduler,
    _param_groups_val_list,
    _update_param_group_val,
)
from .composed import ChainedScheduler, SequentialLR
from .cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from .cycles import CyclicLR, OneCycleLR
from .factors import ConstantLR, ExponentialLR, LinearLR, MultiStepLR, PolynomialLR, StepLR
from .functions import LambdaLR, MultiplicativeLR
from .plateau import ReduceLROnPlateau

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

#: What torch's module has besides, and other code uses.
ALSO = EPOCH_DEPRECATION_WARNING, _LRScheduler, _format_param, _param_groups_val_list, _update_param_group_val
