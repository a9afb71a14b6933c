"""What an operator means for sparse tensors: `operate`, which sparse tensors ask (Note [Special tensors])."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.devices import accelerators, places_of
from ..tensor import Tensor
from ..tensor.sparse import AnySparse
from . import attributes, elementwise, products, reductions, shapes  # noqa: F401  # (they declare forms)
from .derivatives import Moved
from .forms import forms_of
from .inplace import in_place
from .printing import sparse_str

__all__ = ["Moved", "operate", "sparse_str"]


def _refuse_mixed(name: str, args: Sequence[Any], found: Any = None) -> Any:
    """Raise torch's error where tensors are on several devices; numbers of the CPU may be beside any."""
    for one in args:
        if isinstance(one, (list, tuple)):
            found = _refuse_mixed(name, one, found)
        elif isinstance(one, Tensor) and (one.ndim or not one.is_cpu) and name != "copy_":
            found = one.device if found is None else found
            if one.device != found:
                raise RuntimeError(places_of("cuda").mixed(name, found, one.device))
    return found


def operate(tensor: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `function` gives for these arguments; NotImplemented if there is no such operator of sparse tensors."""
    name = function.__name__
    if accelerators:
        _refuse_mixed(name, args)
    forms = forms_of(tensor)
    form = forms.get(name)
    if form is not None:
        return form(*args, **kwargs)
    if name.endswith("_") and not name.startswith("__") and isinstance(args[0], AnySparse):
        form = forms_of(args[0]).get(name[:-1])
        if form is not None:
            return in_place(form, args, kwargs)
    return NotImplemented
