"""``torch.types``: names for what arguments may be, to annotate with."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    from .core.devices import device
    from .core.dtypes import dtype
    from .core.layout import layout
    from .tensor.tensor import Tensor

__all__ = ["Device", "Number"]

#: A number that may stand for an element of a tensor. (Checkers of types know what is taken besides; at run time it is
#: the type that torch has, which schemas call a Scalar.)
if TYPE_CHECKING:
    Number: TypeAlias = builtins.bool | builtins.int | builtins.float | builtins.complex | np.generic
else:
    Number: TypeAlias = int | float | bool
#: What names a device.
Device: TypeAlias = "device | str | builtins.int | None"
#: What may stand between the brackets of ``x[...]``.
Index: TypeAlias = "_Index | tuple[_Index, ...]"

_Index: TypeAlias = "builtins.int | slice | EllipsisType | Tensor | Sequence[Any] | np.ndarray[Any, Any] | None"
_dtype: TypeAlias = "dtype | type[builtins.int] | type[builtins.float] | type[builtins.complex]"
_layout: TypeAlias = "layout"
