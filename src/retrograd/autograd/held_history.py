"""Special tensors that hold a plain one and have its history: nested and masked tensors.

Note [Held histories]
Such a tensor is a plain tensor, ``_values``, and something beside it that says how it is to be read (where components
begin, which elements count).  Operators on it are operators on the values, and what is recorded are plain nodes: its
``_edge_``, ``_grad_meta_`` and ``_vc_`` are those of its values.  So the engine, saved tensors, version counters and
in-place writes need not know of it.  What users see of all this is wrapped where they look: ``x.grad``, hooks, what
``grad()`` returns, what a custom function is given and returns, dual tensors.

For this it never holds the very tensor that a user gave, but an alias or a copy: hooks on the one are not hooks on the
other.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from ..core.late import operators as ops
from ..core.meta import OwnedMeta
from ..core.version_counter import INFERENCE
from ..tensor import Tensor
from ..tensor.special import SpecialTensor
from .edge import gradient_edge
from .forward_ad import UnpackedDualTensor, make_dual, unpack_dual
from .input_metadata import _InputMetadata


class HeldHistory(SpecialTensor):
    """A special tensor with the history of a plain one that it holds."""

    _transparent_ = True

    _values: Tensor

    def _hold_(self, values: Tensor) -> None:
        """Take `values`, a tensor that nobody else has."""
        self._values = values
        self._shown_grad: Tensor | None = None
        if values._grad_meta_ is None and values._vc_ is not INFERENCE:
            values._grad_meta_ = OwnedMeta(weakref.ref(self))

    # ------------------------------------------------------------------------------------------------ what a class says

    def maker(self) -> Callable[[Tensor], Self]:
        """Makes tensors of other values that are to be read as these are, without holding these."""
        raise NotImplementedError

    def wrap_like(self, values: Tensor) -> Self:
        """A tensor of other values that are to be read as these are."""
        return self.maker()(values)

    def values_like(self, other: Tensor, what: str) -> Tensor:
        """The values of `other`, a tensor like this one, laid out as these are; else an error about `what`."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------------ the history

    if not TYPE_CHECKING:  # (the names are slots of Tensor)

        @property
        def _edge_(self) -> Any:
            """Where its gradient goes; of a leaf, the accumulator of its values."""
            values = self._values
            return values._edge_ or (None if values._grad_meta_ is None else gradient_edge(values))

        @_edge_.setter
        def _edge_(self, edge: Any) -> None:
            self._values._edge_ = edge

        _grad_meta_ = property(
            lambda self: self._values._grad_meta_, lambda self, meta: setattr(self._values, "_grad_meta_", meta)
        )
        _vc_ = property(lambda self: self._values._vc_, lambda self, vc: setattr(self._values, "_vc_", vc))

    @property
    def requires_grad(self) -> bool:
        return self._values.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._values.requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        self._values.requires_grad_(requires_grad)
        return self

    def _has_edge_(self) -> bool:
        return self._values._has_edge_()

    def _history_(self) -> Any:
        return self._values._history_()

    @property
    def grad_fn(self) -> Any:
        """The node that the gradient of the values goes into; it shows users what they know this tensor as."""
        edge = self._history_()
        if edge is None:
            return None
        node, number = edge
        shown = _InputMetadata(self._shape_shown(), self.dtype, self.device, True, False, self.is_nested)
        node.materialize_extras().shown[number] = shown
        return node

    def _shape_shown(self) -> Any:
        return self.shape

    # -------------------------------------------------------------------------------------------------------- gradients

    def _root_gradient_(self, grad: Tensor | None, position: int) -> Tensor:
        if grad is not None:
            return self.values_like(grad, f"grad_output[{position}]")
        if self.numel() != 1:
            raise RuntimeError(
                f"grad can be implicitly created only for scalar outputs; output {position} is a {self._kind_} tensor "
                f"of {self.numel()} elements: pass a gradient like it: y.backward(gradient)"
            )
        return ops.ones_like(self._values)

    def _as_gradient_(self, grad: Tensor) -> Tensor:
        return self.wrap_like(grad)

    def _gradient_maker_(self) -> Callable[[Tensor], Tensor] | None:
        return self.maker()

    def _plain_gradient_(self) -> Tensor:
        return self._values

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient, to be read as this is, or None."""
        grad = self._values.grad
        if grad is None:
            self._shown_grad = None
        elif self._shown_grad is None or self._shown_grad._values is not grad:  # type: ignore[attr-defined]
            self._shown_grad = self.wrap_like(grad)
        return self._shown_grad

    @grad.setter
    def grad(self, grad: Tensor | None) -> None:
        if grad is None:
            self._values.grad = None
            return
        if not isinstance(grad, Tensor):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(grad).__name__}")
        self._values.grad = self.values_like(grad, "the gradient")
        if self._values.grad is getattr(grad, "_values", None):
            self._shown_grad = grad

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def retain_grad(self) -> None:
        self._values.retain_grad()

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        make = self.maker()

        def on_values(grad: Tensor) -> Tensor | None:
            shown = make(grad)
            result = hook(shown)
            return None if result is None else shown.values_like(result, "what a hook returned")

        return self._values.register_hook(on_values)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        make, itself = self.maker(), weakref.ref(self)

        def on_values(values: Tensor) -> None:
            found = itself()
            hook(make(values) if found is None else found)

        return self._values.register_post_accumulate_grad_hook(on_values)

    # ----------------------------------------------------------------------------------------------------- dual tensors

    def _make_dual_(self, tangent: Tensor, level: int | None) -> Tensor:
        """This tensor with a tangent: a dual tensor (forward_ad.py)."""
        return self.wrap_like(make_dual(self._values, self.values_like(tangent, "the tangent"), level=level))

    def _unpack_dual_(self, level: int | None) -> UnpackedDualTensor:
        """The primal and the tangent of a dual tensor."""
        primal, tangent = unpack_dual(self._values, level=level)
        return UnpackedDualTensor(self.wrap_like(primal), None if tangent is None else self.wrap_like(tangent))

    # ----------------------------------------------------------------------------------------- the memory of the values

    @property
    def device(self) -> Any:
        return self._values.device

    @property
    def itemsize(self) -> int:
        return self._values.itemsize

    def data_ptr(self) -> int:
        return self._values.data_ptr()

    def storage_offset(self) -> int:
        return self._values.storage_offset()

    def untyped_storage(self) -> Any:
        return self._values.untyped_storage()  # type: ignore[attr-defined]

    def is_shared(self) -> bool:
        return self._values.is_shared()  # type: ignore[attr-defined]

    def share_memory_(self) -> Self:
        self._values.share_memory_()  # type: ignore[attr-defined]
        return self

    def detach(self) -> Self:
        return self.wrap_like(self._values.detach())

    def detach_(self) -> Tensor:
        self._values.detach_()
        return self

    @property
    def data(self) -> Tensor:
        return self.wrap_like(self._values.data)

    @data.setter
    def data(self, value: Tensor) -> None:
        self._values.data = self.values_like(value, "the data")

    def __deepcopy__(self, memo: dict[Any, Any]) -> Self:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment. Use x.detach().clone() for the values, or x.clone() to stay in the graph."
            )
        result = self.wrap_like(ops.clone(self._values.detach()))
        memo[id(self)] = result
        if self.requires_grad:
            result.requires_grad_()
            if self.grad is not None:
                result.grad = self.grad.__deepcopy__(memo)
        return result
