"""Every operator by name: the generated ones, the composite ones and the factories.

This is the "tensor namespace" of derivative formulas, and what ``retrograd`` re-exports.  Importing it attaches the
methods and properties to Tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._generated import functions as _functions
from .._generated.functions import *
from ..core.late import operators as _operators
from ..tensor import Tensor
from . import composite as _composite
from . import factories as _factories
from . import registry as _registry
from .checked import checked as _checked
from .factories import *
from .overload import aten as aten

if TYPE_CHECKING:
    from .._generated.composites import *  # type: ignore[assignment]

    def __getattr__(name: str) -> Any: ...


globals().update({name: f for name, f in vars(_functions).items() if callable(f) and not name.startswith("_")})
globals().update(_functions.PUBLIC)
_TABLE = {*_functions.PUBLIC.values(), *_functions.METHODS.values()}
for _name, _function in {**{n: getattr(_factories, n) for n in _factories.__all__}, **_registry.FUNCTIONS}.items():
    globals()[_name] = _function if not callable(_function) or _function in _TABLE else _checked(_function, _name)

for _module in (_composite.complex_parts, _composite.pointwise, _composite.shape):
    _registry.METHODS.update(getattr(_module, "METHODS", {}))
    for _name, _getter in getattr(_module, "PROPERTIES", {}).items():
        setattr(Tensor, _name, property(_getter, getattr(_module, "SETTERS", {}).get(_name)))

for _name, _method in {**_functions.METHODS, **_registry.METHODS}.items():
    if _method not in _TABLE and not _name.startswith("__"):
        _method = _checked(_method, _name, method=True)
    setattr(Tensor, _name, _method)

#: Methods that are not operators and take arguments, checked as the operators are.
for _name in (
    "copy_", "is_contiguous", "is_same_size", "is_set_to", "new_tensor", "numpy", "requires_grad_", "stride",
):  # fmt: skip
    setattr(Tensor, _name, _checked(getattr(Tensor, _name), _name, method=True))

vars(_operators).update(globals())
