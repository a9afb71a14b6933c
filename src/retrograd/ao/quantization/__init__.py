"""``torch.ao.quantization``: observers of ranges, and which of them a module is to use."""

from .observer import MinMaxObserver, MovingAverageMinMaxObserver, ObserverBase, PerChannelMinMaxObserver
from .qconfig import QConfig, get_default_qconfig
from .schemes import (
    per_channel_affine,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
    qint8,
    quint8,
)

__all__ = [
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "QConfig",
    "get_default_qconfig",
    "per_channel_affine",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
    "qint8",
    "quint8",
]
