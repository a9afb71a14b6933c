"""Functions of ``torch.nn.functional`` that torch also has as ``torch.NAME`` and, some, as Tensor methods.

Only those that are called the same way; filled while the package is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .nn import functional
from .tensor import Tensor

_SHARED = (
    "adaptive_avg_pool1d", "adaptive_max_pool1d", "avg_pool1d", "celu", "celu_", "channel_shuffle", "conv1d", "conv2d",
    "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "group_norm",
    "hardshrink", "layer_norm", "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool3d",
    "native_channel_shuffle", "pairwise_distance", "pixel_shuffle", "pixel_unshuffle", "prelu", "rms_norm", "selu",
    "selu_",
)  # fmt: skip
_METHODS = ("hardshrink", "prelu")

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(functional, name) for name in _SHARED if hasattr(functional, name)
}
for _name in _METHODS:
    if _name in FUNCTIONS:
        setattr(Tensor, _name, FUNCTIONS[_name])


def _dropout(name: str) -> None:
    """Torch calls the switch of its functions `train`, that of nn.functional `training`."""
    function = getattr(functional, name, None)
    if function is None:
        return

    def plain(input: Tensor, p: float, train: bool) -> Tensor:
        return function(input, p, train)

    def inplace(input: Tensor, p: float, train: bool) -> Tensor:
        return function(input, p, train, True)

    for made, title in ((plain, name), (inplace, name + "_")):
        made.__name__ = made.__qualname__ = title
        made.__doc__ = f"`nn.functional.{name}`{', in place' if made is inplace else ''}."
        FUNCTIONS[title] = made


for _name in ("alpha_dropout", "dropout", "feature_alpha_dropout"):
    _dropout(_name)
