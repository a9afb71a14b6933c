"""Functions of ``torch.nn.functional`` that have more than one name.

Torch has some also as ``torch.NAME`` (those that are called otherwise there are in ``functional/top_level.py``) and as
Tensor methods, and has the activations that take ``inplace=True`` also as ``functional.NAME_``.  Filled while the
package is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from .._generated import functions as table
from ..ops import namespace as ops
from ..ops.checked import checked
from ..tensor import Tensor
from . import functional
from .functional import recurrent, top_level

_SHARED = (
    "adaptive_avg_pool1d", "avg_pool1d", "celu", "celu_", "channel_shuffle", "conv1d", "conv2d",
    "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity",
    "hardshrink", "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool3d",
    "native_channel_shuffle", "pairwise_distance", "pixel_shuffle", "pixel_unshuffle", "prelu", "rms_norm", "rrelu",
    "rrelu_", "selu", "selu_",
)  # fmt: skip
_METHODS = ("hardshrink", "prelu")


def _in_place(name: str) -> None:
    """``functional.NAME_``: the function with ``inplace=True``."""
    function = getattr(functional, name, None)
    if function is None or hasattr(functional, name + "_"):
        return

    def inplace(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return function(input, *args, **kwargs, inplace=True)

    inplace.__name__ = inplace.__qualname__ = name + "_"
    inplace.__doc__ = f"In-place `{name}`."
    setattr(functional, name + "_", inplace)


for _name in ("celu", "hardtanh", "leaky_relu", "relu", "rrelu", "selu", "threshold"):
    _in_place(_name)
functional.elu_ = table.elu_  # type: ignore[attr-defined]  # with the factors that the operator has
functional.pdist = ops.pdist  # type: ignore[attr-defined]
functional.conv_tbc = ops.conv_tbc  # type: ignore[attr-defined]

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(functional, name) for name in _SHARED},
    **top_level.FUNCTIONS,
    **recurrent.FUNCTIONS,
}
for _name in _METHODS:
    setattr(Tensor, _name, checked(FUNCTIONS[_name], _name, method=True))


def _dropout(name: str) -> None:
    """Torch calls the switch of its functions `train`, that of nn.functional `training`."""
    function = getattr(functional, name, None)
    if function is None:
        return

    def plain(input: Tensor, p: float, train: bool) -> Tensor:
        top_level.check_probability(p)
        return function(input, p, train)

    def inplace(input: Tensor, p: float, train: bool) -> Tensor:
        top_level.check_probability(p)
        return function(input, p, train, True)

    for made, title in ((plain, name), (inplace, name + "_")):
        made.__name__ = made.__qualname__ = title
        made.__doc__ = f"`nn.functional.{name}`{', in place' if made is inplace else ''}."
        FUNCTIONS[title] = made


for _name in ("alpha_dropout", "dropout", "feature_alpha_dropout"):
    _dropout(_name)


for _name in dir(functional):
    _function = getattr(functional, _name)
    if isinstance(_function, FunctionType) and not _name.startswith("_"):
        _function = checked(_function, _name, f"nn.functional.{_name}")
        _function.__module__ = functional.__name__  # where a pickle finds it
        setattr(functional, _name, _function)
for _name in FUNCTIONS:
    FUNCTIONS[_name] = checked(FUNCTIONS[_name], _name)
