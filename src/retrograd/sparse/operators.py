"""What an operator means for sparse tensors: `operate`, which sparse tensors ask (Note [Special tensors])."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor.sparse import AnySparse
from . import attributes, elementwise, products, reductions, shapes  # noqa: F401  # (they declare forms)
from .derivatives import Moved
from .forms import forms_of
from .inplace import in_place
from .printing import sparse_str

__all__ = ["Moved", "operate", "sparse_str"]


def operate(tensor: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `function` gives for these arguments; NotImplemented if there is no such operator of sparse tensors."""
    name = function.__name__
    forms = forms_of(tensor)
    form = forms.get(name)
    if form is not None:
        return form(*args, **kwargs)
    if name.endswith("_") and not name.startswith("__") and isinstance(args[0], AnySparse):
        form = forms_of(args[0]).get(name[:-1])
        if form is not None:
            return in_place(form, args, kwargs)
    return NotImplemented
