"""View functions: the same view of another base, and the base that a tensor would be the view of.

Nothing in this package calls them: they are there for tools that take a view's history apart, as torch has them
(``Tensor._view_func``, ``Tensor._rev_view_func_unsafe``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import kernels
from ..core.late import operators as ops
from ..tensor import Tensor
from ..tensor.lazy_conjugation import relative_bits
from .view_meta import Step, replay_on_tensor

if TYPE_CHECKING:
    from ..tensor import Tensor

#: Arguments of view operators that depend on the sizes of tensors; the others are numbers of dimensions and such.
_SIZES = frozenset(
    {"end", "index", "length", "size", "split_size", "split_sizes", "start", "step", "storage_offset", "stride"}
)

Visitor = Callable[[Any], Any]


def view_func(
    view: Tensor,
    new_base: Tensor,
    symint_visitor_fn: Visitor | None = None,
    tensor_visitor_fn: Visitor | None = None,
    check: bool = True,
) -> Tensor | None:
    """The same view of `new_base`; None if `view` is none, or (with `check`) if the base is laid out otherwise.

    The visitors may replace what the view operators were given: sizes and indices, and tensors.
    """
    if not isinstance(new_base, Tensor):
        raise TypeError(f"_view_func(): argument 'new_base' (position 1) must be Tensor, not {type(new_base).__name__}")
    meta: Any = view._grad_meta_
    if meta is None or not meta.is_view:
        return None
    if check and kernels.geometry(new_base._memory_) != kernels.geometry(meta.base._memory_):
        return None
    steps = meta.replay
    if symint_visitor_fn is not None or tensor_visitor_fn is not None:
        steps = tuple(_visited(step, symint_visitor_fn, tensor_visitor_fn) for step in steps)
    return replay_on_tensor(steps, new_base)


def _visited(step: Step, visit_size: Visitor | None, visit_tensor: Visitor | None) -> Step:
    """A step with the arguments that the visitors give for its own."""
    kernel, operator, arguments, output = step
    names = list(inspect.signature(operator).parameters)[1:]

    def visited(name: str, value: Any) -> Any:
        if isinstance(value, Tensor):
            return value if visit_tensor is None else visit_tensor(value)
        if name not in _SIZES or visit_size is None or value is None:
            return value
        return tuple(visit_size(n) for n in value) if isinstance(value, tuple) else visit_size(value)

    return kernel, operator, tuple(visited(name, value) for name, value in zip(names, arguments)), output


def reverse_view_func(view: Tensor, new_view: Tensor) -> Tensor | None:
    """A tensor in the memory of `new_view`, such that the same view of it would be `new_view`; None if not a view.

    It lies in that memory as the base of `view` lies in its own.
    """
    meta: Any = view._grad_meta_
    if meta is None or not meta.is_view:
        return None
    owner: Any = view._base
    if owner is not meta.base:
        return owner.of_values(new_view)
    base = meta.base._memory_
    conj, neg = relative_bits(view, meta.base)
    new_view = ops._conj(new_view) if conj else new_view
    new_view = ops._neg_view(new_view) if neg else new_view
    kinds = new_view._memory_.dtype.kind + base.dtype.kind
    if kinds == "cf":
        new_view = ops.view_as_real(new_view)
    elif kinds == "fc":
        new_view = ops.view_as_complex(new_view)
    return ops.as_strided(new_view, base.shape, kernels.strides(base), kernels.storage_offset(base))
