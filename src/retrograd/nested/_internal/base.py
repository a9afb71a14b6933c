"""What both kinds of nested tensors have in common: a plain tensor with all their values, and its history.

Note [Nested tensors]
A nested tensor is a batch of tensors (*components*) whose sizes differ.  All elements are in one plain tensor,
``_values``; the rest says where each component lies in it.

**The history is that of the values.**  An operator on nested tensors is one on their values, or on views of them, and
what is recorded are plain nodes: ``_edge``, ``_meta`` and ``_vc`` of a nested tensor are those of ``_values``.  So the
engine, saved tensors, version counters and in-place writes need not know of nested tensors.  What users see of it is
wrapped where they look: ``nt.grad``, hooks, what ``grad()`` returns, what a custom function is given and returns.

For this a nested tensor never has the very tensor that a user gave as its values, but an alias of it: hooks on the one
are not hooks on the other.

**Operators** come as names (Note [Special tensors]); each layout has a table from names to functions
(`jagged_ops`, `strided_ops` and the modules that add to them).  A function there gets the operator and its
arguments, and returns a result or NotImplemented.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from ...autograd.edge import gradient_edge
from ...autograd.forward_ad import UnpackedDualTensor, make_dual, unpack_dual
from ...autograd.input_metadata import _InputMetadata
from ...core.late import operators as ops
from ...core.meta import OwnedMeta
from ...core.size import Size
from ...core.version_counter import INFERENCE
from ...kernels.dims import normalize_dim
from ...tensor import Tensor
from ...tensor.special import Description, SpecialTensor

Handler = Callable[..., Any]
#: What a nested tensor is a view of, and how such a view is taken of another tensor.
View = tuple[Tensor, Callable[[Tensor], Tensor]]


class NestedDescription(Description):
    """How a nested tensor lies: with a count and contiguity of its own."""

    __slots__ = ("contiguous", "numel")

    def __init__(self, shape: tuple[Any, ...], dtype: Any, strides: Any, numel: int, contiguous: bool) -> None:
        self.shape = shape
        self.dtype = dtype
        self.strides = strides
        self.numel = numel
        self.contiguous = contiguous

    @property
    def size(self) -> int:
        return self.numel

    @property
    def flags(self) -> Any:
        return _Flags(self.contiguous)


class _Flags:
    writeable = True

    def __init__(self, contiguous: bool) -> None:
        self.c_contiguous = contiguous


class NestedBase(SpecialTensor):
    """A batch of tensors of different sizes; see Note [Nested tensors]."""

    special: int = 2
    transparent = True
    is_nested = True
    kind = "nested"  # type: ignore[assignment]

    #: What operators mean here, by name.
    operators: ClassVar[dict[str, Handler]] = {}

    _values: Tensor
    #: None if it is no view.
    _view: View | None

    def _init(self, values: Tensor, view: View | None) -> None:
        """Take `values`, a tensor that nobody else has."""
        self._values = values
        self._view = view
        self._shown_grad: Tensor | None = None
        if values._meta is None and values._vc is not INFERENCE:
            values._meta = OwnedMeta(weakref.ref(self))

    # ------------------------------------------------------------------------------------- the history of the values

    if not TYPE_CHECKING:  # (the names are slots of Tensor)

        @property
        def _edge(self) -> Any:
            """Where its gradient goes; of a leaf, the accumulator of its values."""
            values = self._values
            return values._edge or (None if values._meta is None else gradient_edge(values))

        @_edge.setter
        def _edge(self, edge: Any) -> None:
            self._values._edge = edge

        _meta = property(lambda self: self._values._meta, lambda self, meta: setattr(self._values, "_meta", meta))
        _vc = property(lambda self: self._values._vc, lambda self, vc: setattr(self._values, "_vc", vc))

    @property
    def requires_grad(self) -> bool:
        return self._values.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._values.requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        self._values.requires_grad_(requires_grad)
        return self

    def _has_edge(self) -> bool:
        return self._values._has_edge()

    def _history(self) -> Any:
        return self._values._history()

    def wrap_like(self, values: Tensor) -> Self:
        """A nested tensor of the same structure with other values, which lie as its own do."""
        raise NotImplementedError

    def values_like(self, other: Tensor, what: str) -> Tensor:
        """The values of `other`, a nested tensor of the same structure, laid out as these are; else an error."""
        raise NotImplementedError

    def components(self) -> list[Tensor]:
        """The parts, as views of the values."""
        raise NotImplementedError

    def root_gradient(self, grad: Tensor | None, position: int) -> Tensor:
        if grad is None:
            if self.numel() != 1:
                raise RuntimeError(
                    f"grad can be implicitly created only for scalar outputs; output {position} is a nested tensor of "
                    f"{self.numel()} elements: pass a gradient like it: y.backward(gradient)"
                )
            return ops.ones_like(self._values)
        return self.values_like(grad, f"grad_output[{position}]")

    def as_gradient(self, grad: Tensor) -> Tensor:
        return self.wrap_like(grad)

    def gradient_maker(self) -> Callable[[Tensor], Tensor] | None:
        return self._structure()

    def plain_gradient(self) -> Tensor:
        return self._values

    @property
    def grad_fn(self) -> Any:
        """The node that the gradient of the values goes into; it shows users what they know this tensor as."""
        edge = self._history()
        if edge is None:
            return None
        node, number = edge
        shown = _InputMetadata(self._shape_shown(), self.dtype, self.device, True, False, True)
        node.materialize_extras().shown[number] = shown
        return node

    def _shape_shown(self) -> Any:
        return self.shape

    def make_dual(self, tangent: Tensor, level: int | None) -> Tensor:
        """This tensor with a tangent: a dual tensor (autograd/forward_ad.py)."""
        return self.wrap_like(make_dual(self._values, self.values_like(tangent, "the tangent"), level=level))

    def unpack_dual(self, level: int | None) -> Any:
        """The primal and the tangent of a dual tensor."""
        primal, tangent = unpack_dual(self._values, level=level)
        return UnpackedDualTensor(self.wrap_like(primal), None if tangent is None else self.wrap_like(tangent))

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient, nested as this is, or None."""
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
        like = self._structure()

        def on_values(grad: Tensor) -> Tensor | None:
            result = hook(like(grad))
            return result if result is None else self_values(result)

        def self_values(result: Tensor) -> Tensor:
            return like(None).values_like(result, "what a hook returned")

        return self._values.register_hook(on_values)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        like, itself = self._structure(), weakref.ref(self)

        def on_values(values: Tensor) -> None:
            found = itself()
            hook(like(values) if found is None else found)

        return self._values.register_post_accumulate_grad_hook(on_values)

    def _structure(self) -> Callable[[Any], Any]:
        """Makes nested tensors of this structure, without holding its values."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------------------ views

    @property
    def _base(self) -> Tensor | None:
        if self._view is None:
            return None
        source = self._view[0]
        return source if source._base is None else source._base

    def _is_view(self) -> bool:
        return self._view is not None

    def _view_func(self, new_base: Tensor, **visitors: Any) -> Tensor | None:
        if self._view is None:
            return None
        source, again = self._view
        return again(new_base if not source._is_view() else source._view_func_unsafe(new_base, **visitors))  # type: ignore[arg-type]

    _view_func_unsafe = _view_func

    def _rev_view_func_unsafe(self, new_view: Tensor) -> Tensor | None:
        if self._view is None:
            return None
        if self._view[0].is_nested or not isinstance(new_view, NestedBase):
            raise NotImplementedError("only views that nested tensors are of plain ones are taken back")
        return new_view.values()  # type: ignore[attr-defined]

    # -------------------------------------------------------------------------------------------------------- what it is

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

    def size(self, dim: int | None = None) -> Any:
        """All sizes, or that of one dimension."""
        return self.shape if dim is None else self.shape[normalize_dim(dim, self.dim())]

    @property
    def shape(self) -> Size:
        return tuple.__new__(Size, self._memory.shape)

    def is_shared(self) -> bool:
        return self._values.is_shared()  # type: ignore[attr-defined]

    def share_memory_(self) -> Self:
        self._values.share_memory_()  # type: ignore[attr-defined]
        return self

    # ---------------------------------------------------------------------------------------------- the same memory anew

    def detach(self) -> Tensor:
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

    # ------------------------------------------------------------------------------------------------ as something else

    def tolist(self) -> list[Any]:
        """The components as nested lists."""
        return [component.tolist() for component in self.components()]

    def item(self) -> Any:
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return next(component for component in self.components() if component.numel()).item()

    _scalar = item

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.item())

    def numpy(self, *, force: bool = False) -> NoReturn:
        raise RuntimeError(
            ".numpy() is not supported for nested tensors: use nt.unbind(), or torch.nested.to_padded_tensor(nt, 0)"
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        self.numpy()

    def __len__(self) -> int:
        return len(self.components())

    def __iter__(self) -> Any:
        return iter(self.components())

    def apply_(self, function: Callable[[Any], Any]) -> Self:
        """Replace every element by what `function` gives for it; nothing is recorded."""
        self._values.data.apply_(function)  # type: ignore[attr-defined]
        return self

    def __deepcopy__(self, memo: dict[Any, Any]) -> Self:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment. Use nt.detach().clone() for the values, or nt.clone() to stay in the graph."
            )
        result = self.wrap_like(ops.clone(self._values.detach()))
        memo[id(self)] = result
        if self.requires_grad:
            result.requires_grad_()
            if self.grad is not None:
                result.grad = self.grad.__deepcopy__(memo)
        return result

    # --------------------------------------------------------------------------------------------------------- operators

    def view(self, *size: Any) -> Tensor:
        """The same memory in another shape; -1 keeps the ragged size."""
        return self.operators["view"](ops.view, self, *size)

    def reshape(self, *shape: Any) -> Tensor:
        """The elements in another shape; -1 keeps the ragged size."""
        return self.operators["reshape"](ops.reshape, self, *shape)

    def __getitem__(self, key: Any) -> Tensor:
        return self.operators["__getitem__"](self, key)

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """A plain tensor, with `padding` behind the components that are smaller than others."""
        return self.operators["to_padded_tensor"](None, self, padding, output_size)

    def operate(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        handler = self.operators.get(function.__name__)
        return NotImplemented if handler is None else handler(function, *args, **kwargs)

    def no_form(self, name: str) -> Exception:
        return NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'NestedTensor' backend: there is no {name} for nested "
            f"tensors of layout {self.layout}. Use its components (nt.unbind()) or torch.nested.to_padded_tensor(nt, 0)"
        )
