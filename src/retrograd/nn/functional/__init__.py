"""``torch.nn.functional``: what layers compute, as functions, one module per family.

Most check their arguments as torch does and compose operators.  What stands here is what `ops/registry.py` says.
"""

import typing as _typing

from ...ops.registry import SPACES as _SPACES

if _typing.TYPE_CHECKING:
    from ..._generated.functions import conv_tbc, hardshrink, softsign
    from .activation import *
    from .attention import *
    from .conv import *
    from .cross_entropy import *
    from .distance import *
    from .dropout import *
    from .embedding import *
    from .linear import *
    from .losses import *
    from .norm import *
    from .pool import *
    from .regression_losses import *
    from .resample import *
    from .softmax import *
else:
    from . import (
        activation,
        attention,
        conv,
        cross_entropy,
        distance,
        dropout,
        embedding,
        linear,
        losses,
        norm,
        pool,
        regression_losses,
        resample,
        softmax,
    )

globals().update(_SPACES["nn.functional"])
__all__ = sorted(_SPACES["nn.functional"])


def __getattr__(name: str) -> object:
    if name == "grad":  # torch has it here, too
        from .. import grad  # few ask

        return grad
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
