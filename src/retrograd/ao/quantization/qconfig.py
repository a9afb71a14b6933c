"""QConfig: what observes the activations of a module, and what observes its weights."""

from __future__ import annotations

from typing import Any, NamedTuple

from .observer import MinMaxObserver, PerChannelMinMaxObserver
from .schemes import per_channel_symmetric, qint8


class QConfig(NamedTuple):
    """What makes the observers of a module: for its outputs and for its weight."""

    activation: Any
    weight: Any


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """Weights by channel, symmetric, in signed bytes; activations by their extremes, in seven bits.

    Torch observes activations by a histogram, which leaves outliers out; here it is their least and greatest value.
    """
    if backend not in ("x86", "fbgemm", "qnnpack", "onednn") or version != 0:
        raise AssertionError(
            f"backend: {backend} not supported, or version {version} of it: one of 'x86', 'fbgemm', 'qnnpack', "
            "'onednn', in version 0"
        )
    weight = PerChannelMinMaxObserver.with_args(dtype=qint8, qscheme=per_channel_symmetric)
    return QConfig(MinMaxObserver.with_args(reduce_range=backend in ("x86", "fbgemm")), weight)
