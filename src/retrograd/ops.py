"""Every operator by name: the generated ones, the composite ones and the factories.

This is the "tensor namespace" of derivative formulas, and what ``retrograd`` re-exports.  Importing it attaches the
methods and properties to Tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import composite as _composite
from ._generated import functions as _functions
from ._generated.functions import *
from .composite import registry as _registry
from .factories import *
from .op_overload import aten as aten
from .tensor import Tensor

if TYPE_CHECKING:
    from ._generated.composites import *  # type: ignore[assignment]

    def __getattr__(name: str) -> Any: ...


globals().update({name: f for name, f in vars(_functions).items() if callable(f) and not name.startswith("_")})
globals().update(_functions.PUBLIC)
globals().update(_registry.FUNCTIONS)

for _name, _method in {**_functions.METHODS, **_registry.METHODS}.items():
    setattr(Tensor, _name, _method)

for _module in (_composite.complex_parts, _composite.pointwise, _composite.shape):
    for _name, _method in getattr(_module, "METHODS", {}).items():
        setattr(Tensor, _name, _method)
    for _name, _getter in getattr(_module, "PROPERTIES", {}).items():
        setattr(Tensor, _name, property(_getter, getattr(_module, "SETTERS", {}).get(_name)))
