"""The autograd attributes of a Tensor: ``requires_grad``, ``grad_fn``, ``grad``, hooks, versions, ``backward()``."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ..core import compiled, dtypes
from ..core.meta import AutogradMeta, materialize_autograd_meta
from ..core.state import local
from ..core.version_counter import INFERENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from .._generated.tensor_operators import TensorOperators
    from ..autograd.edge import EdgeTuple
    from ..autograd.hooks import RemovableHandle
    from ..autograd.node import Node
    from ..core.version_counter import VersionCounter
    from . import Tensor
else:
    # What the compiled core has of Python's signs stands in C's slots, which are inherited.
    TensorOperators = object if compiled.library is None else compiled.library.Signs

#: ``torch.autograd.backward``. Its module stands above this one, and puts it here when it is imported.
run_backward: Any = None


def _view_functions() -> Any:
    from ..autograd import view_func  # autograd is made of Tensors

    return view_func


class TensorAutograd(TensorOperators):
    """What a Tensor knows of its history. `Tensor` has the slots that this reads."""

    __slots__ = ()

    if TYPE_CHECKING:
        _numbers_: Any
        _memory_: Any
        _vc_: VersionCounter | None
        _grad_meta_: AutogradMeta | None
        _edge_: EdgeTuple | None
        _special_: int | None

    @property
    def requires_grad(self) -> bool:
        """Are gradients computed for this tensor? True for results of operations on such tensors."""
        if self._edge_ is not None:
            return True
        meta: Any = self._grad_meta_
        if meta is None:
            return False
        if meta.is_view and (meta.edge is not None or meta.base.requires_grad):
            return True
        return meta.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(f"requires_grad must be a bool, but got {type(value).__name__}")
        if self._has_edge_():
            hint = (
                ""
                if value
                else " If you want to use a computed variable in a subgraph that doesn't require "
                "differentiation use var_no_grad = var.detach()."
            )
            raise RuntimeError(f"you can only change requires_grad flags of leaf variables.{hint}")
        if value and self._memory_.dtype.kind not in "fcVW":
            raise RuntimeError(
                "only Tensors of floating point and complex dtype can require gradients; this one has dtype "
                f"{self.dtype}. Convert it first: x = x.float().requires_grad_()"
            )
        if value and self._vc_ is INFERENCE and not local.state.inference:
            raise RuntimeError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed. Clone it first: "
                "x = x.clone().requires_grad_()"
            )
        if value or self._grad_meta_ is not None:
            materialize_autograd_meta(self).requires_grad = value

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad cannot be deleted: set it to False")

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set ``requires_grad`` in place and return the tensor."""
        if requires_grad is True and self._grad_meta_ is None and self._edge_ is None and self._vc_ is not INFERENCE:
            if self._memory_.dtype.kind in "fcVW":  # of a tensor that nothing is known of: the rest without its calls
                materialize_autograd_meta(self).requires_grad = True
                return self
        if not isinstance(requires_grad, bool):
            raise TypeError(
                f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, "
                f"not {type(requires_grad).__name__}"
            )
        if requires_grad and self._has_edge_():
            return self  # a result that requires grad already
        if requires_grad and self._memory_.dtype.kind not in "fcVW":
            raise RuntimeError(
                "only Tensors of floating point dtype can require gradients (or of complex dtype); this one has dtype "
                f"{self.dtype}. Convert it first: x = x.float().requires_grad_()"
            )
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        """Made by the user, or by operations that nothing was recorded of."""
        return self.grad_fn is None

    def _has_edge_(self) -> bool:
        """Is a gradient edge recorded? Unlike `grad_fn`, this does not ask whether a view's memory was written to."""
        meta: Any = self._grad_meta_
        return self._edge_ is not None or (meta is not None and meta.is_view and meta.edge is not None)

    @property
    def grad_fn(self) -> Node | None:
        """The node that the gradient of this tensor goes into; None for a leaf."""
        edge = self._history_()
        return None if edge is None else edge[0]

    def _history_(self) -> EdgeTuple | None:
        """The gradient edge of a non-leaf, be it a view or not."""
        edge = self._edge_
        if edge is None and self._grad_meta_ is not None and self._grad_meta_.is_view:
            from ..autograd.view_meta import view_edge  # autograd is made of Tensors

            edge = view_edge(self)  # type: ignore[arg-type]
        return edge

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` this is."""
        edge = self._history_()
        return 0 if edge is None else edge[1]

    @property
    def _base(self) -> Tensor | None:
        """The tensor whose memory this view shows; None if this is not a view."""
        meta: Any = self._grad_meta_
        if meta is None or not meta.is_view:
            return None
        inside = meta.base._grad_meta_
        owner = None if inside is None or inside.owner is None else inside.owner()
        return meta.base if owner is None else owner

    def _view_func(self, new_base: Tensor, **visitors: Any) -> Tensor | None:
        """The same view of another tensor; None if that is not laid out like the base."""
        return _view_functions().view_func(self, new_base, **visitors)

    def _view_func_unsafe(self, new_base: Tensor, **visitors: Any) -> Tensor | None:
        """The same view of another tensor, whatever its layout."""
        return _view_functions().view_func(self, new_base, check=False, **visitors)

    def _rev_view_func_unsafe(self, new_view: Tensor) -> Tensor | None:
        """The tensor of which `new_view` would be this view."""
        return _view_functions().reverse_view_func(self, new_view)

    def _is_view(self) -> bool:
        return self._grad_meta_ is not None and self._grad_meta_.is_view

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient, or None."""
        meta = self._grad_meta_
        grad = None if meta is None else meta.grad
        if grad is None and not self.retains_grad and self._has_edge_():
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                "won't be populated during autograd.backward(). If you indeed want the .grad field to be populated "
                "for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor "
                "by mistake, make sure you access the leaf Tensor instead.",
                UserWarning,
                stacklevel=2,
            )
        return grad

    @grad.setter
    def grad(self, grad: Tensor | None) -> None:
        if grad is None:
            if self._grad_meta_ is not None:
                self._grad_meta_.grad = None
            return
        if not isinstance(grad, TensorAutograd):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(grad).__name__}")
        if grad is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if grad._memory_.shape != self._memory_.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(grad.shape)}' to a tensor of size "
                f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the same size"
            )
        expected = self.grad_dtype if self.is_leaf else self.dtype
        if expected is not None and grad.dtype is not expected:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{dtypes.C_NAMES[grad.dtype.name]}' to a tensor with "
                f"grad_dtype '{dtypes.SCALAR_NAMES[expected.name]}'. The gradient must match the tensor's grad_dtype "
                f"(by default the tensor's dtype): use grad.to({expected}), or set grad_dtype (None allows any dtype)"
            )
        if grad.device != self.device:
            raise RuntimeError(
                f"attempting to assign a gradient located on device with type '{grad.device}' to a tensor located on "
                f"device with type '{self.device}'. Please ensure that the gradient and the tensor are on the same "
                "device"
            )
        materialize_autograd_meta(self).grad = grad

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    #: Torch's other name for it, which programs that clip or scale gradients by hand use.
    _grad = grad

    @property
    def grad_dtype(self) -> dtypes.dtype | None:
        """The dtype that the gradient of this leaf has; None for whatever arrives."""
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be accessed on leaf tensors")
        given = "same" if self._grad_meta_ is None else self._grad_meta_.grad_dtype
        if isinstance(given, str):
            return self.dtype
        return None if given is None else dtypes.from_numpy_dtype(given)

    @grad_dtype.setter
    def grad_dtype(self, value: dtypes.dtype | None) -> None:
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be set on leaf tensors")
        if value is not None and not isinstance(value, dtypes.dtype):
            raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}")
        meta = materialize_autograd_meta(self)
        if value is not None and meta.grad is not None and meta.grad.dtype is not value:
            raise RuntimeError(
                f"Cannot set grad_dtype to '{value}' because there is already a gradient with dtype "
                f"'{meta.grad.dtype}'. Set x.grad = None first"
            )
        meta.grad_dtype = None if value is None else value.np
        accumulator = None if meta.grad_accumulator is None else meta.grad_accumulator()
        if accumulator is not None:
            accumulator.dtype = meta.grad_dtype

    @property
    def retains_grad(self) -> bool:
        """Will backward store the gradient of this non-leaf in ``.grad``?"""
        return self._grad_meta_ is not None and self._grad_meta_.retains_grad

    def retain_grad(self) -> None:
        """Have backward store the gradient of this tensor in ``.grad`` although it is not a leaf."""
        import weakref

        if not self.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if not self._has_edge_() or self.retains_grad:
            return
        meta = materialize_autograd_meta(self)
        node: Any = self.grad_fn
        node.materialize_extras().retains_grad[self.output_nr] = weakref.ref(self)
        meta.retains_grad = True

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Sequence[Tensor] | None = None,
    ) -> None:
        """Compute the gradient of this tensor with respect to the leaves of its graph, into their ``.grad``.

        >>> import retrograd as torch
        >>> x = torch.tensor(3., requires_grad=True)
        >>> (x ** 2).backward()
        >>> x.grad
        tensor(6.)
        """
        if (create_graph is not False and create_graph is not True) or (
            retain_graph is not None and retain_graph is not False and retain_graph is not True
        ):
            for flag in (retain_graph, create_graph):
                if flag is not None and not (isinstance(flag, int) and 0 <= flag < 256):
                    raise TypeError(f"backward(): {type(flag).__name__!r} object is not a flag: give True or False")
        run_backward(self, gradient, retain_graph, create_graph, None, inputs)

    def register_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(grad)`` whenever a gradient of this tensor is computed; what it returns replaces it."""
        from ..autograd.hooks import register_tensor_hook  # autograd is made of Tensors

        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        return register_tensor_hook(self, hook)  # type: ignore[arg-type]

    def register_post_accumulate_grad_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(tensor)`` whenever backward has added to the ``.grad`` of this leaf.

        >>> import retrograd as torch
        >>> x = torch.tensor([1., 2.], requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda t: print("gradient:", t.grad))
        >>> (x * 3).sum().backward()
        gradient: tensor([3., 3.])
        """
        from ..autograd.hooks import register_post_accumulate_grad_hook  # autograd is made of Tensors

        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not self.is_leaf:
            raise RuntimeError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors: use register_hook() to see the "
                "gradient of a result"
            )
        return register_post_accumulate_grad_hook(self, hook)  # type: ignore[arg-type]

    @property
    def _grad_fn(self) -> Node | None:
        return self.grad_fn

    @_grad_fn.setter
    def _grad_fn(self, value: None) -> None:
        if value is not None:
            raise TypeError("_grad_fn can be only set to None")
        self.detach_()

    @_grad_fn.deleter
    def _grad_fn(self) -> None:
        raise RuntimeError("_grad_fn cannot be deleted: use detach_()")

    @property
    def _backward_hooks(self) -> Any:
        return None if self._grad_meta_ is None else self._grad_meta_.hooks

    @_backward_hooks.setter
    def _backward_hooks(self, hooks: Any) -> None:
        materialize_autograd_meta(self).hooks = hooks

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise RuntimeError("_backward_hooks cannot be deleted: remove the hooks by their handles")

    @property
    def _post_accumulate_grad_hooks(self) -> Any:
        return None if self._grad_meta_ is None else self._grad_meta_.post_accumulate_grad_hooks

    @_post_accumulate_grad_hooks.setter
    def _post_accumulate_grad_hooks(self, hooks: Any) -> None:
        materialize_autograd_meta(self).post_accumulate_grad_hooks = hooks

    @_post_accumulate_grad_hooks.deleter
    def _post_accumulate_grad_hooks(self) -> None:
        raise RuntimeError("_post_accumulate_grad_hooks cannot be deleted: remove the hooks by their handles")

    @property
    def _version(self) -> int:
        vc = self._vc_
        return 0 if vc is None else vc.version

    def _bump_version_(self) -> None:
        from ..autograd.inplace import bump_version  # autograd is made of Tensors

        bump_version(self)  # type: ignore[arg-type]

    @property
    def name(self) -> str | None:
        """The name that it was given, or None."""
        return None if self._grad_meta_ is None else self._grad_meta_.name

