"""What both kinds of nested tensors have in common: a plain tensor with all their values, and its history.

Note [Nested tensors]
A nested tensor is a batch of tensors (*components*) whose sizes differ.  All elements are in one plain tensor,
``_values``, whose history it has (Note [Held histories]); the rest says where each component lies in it.

Operators come as names (Note [Special tensors]); each layout has a table from names to functions
(`jagged_ops`, `strided_ops` and the modules that add to them).  A function there gets the operator and its
arguments, and returns a result or NotImplemented.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, Self

from ...autograd.held_history import HeldHistory
from ...core.late import operators as ops
from ...core.size import Size
from ...kernels.dims import normalize_dim
from ...tensor import Tensor
from ...tensor.special import Description

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


class NestedBase(HeldHistory):
    """A batch of tensors of different sizes; see Note [Nested tensors]."""

    _special_: int = 2
    is_nested = True
    kind = "nested"  # type: ignore[assignment]

    #: What operators mean here, by name.
    operators: ClassVar[dict[str, Handler]] = {}

    #: None if it is no view.
    _view: View | None

    def _init(self, values: Tensor, view: View | None) -> None:
        """Take `values`, a tensor that nobody else has."""
        self._hold_(values)
        self._view = view

    def components(self) -> list[Tensor]:
        """The parts, as views of the values."""
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

    # ------------------------------------------------------------------------------------------------------- what it is

    def size(self, dim: int | None = None) -> Any:
        """All sizes, or that of one dimension."""
        return self.shape if dim is None else self.shape[normalize_dim(dim, self.dim())]

    @property
    def shape(self) -> Size:
        return tuple.__new__(Size, self._memory_.shape)

    # ------------------------------------------------------------------------------------------------ as something else

    def tolist(self) -> list[Any]:
        """The components as nested lists."""
        return [component.tolist() for component in self.components()]

    def item(self) -> Any:
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return next(component for component in self.components() if component.numel()).item()

    _scalar_ = item

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

    # -------------------------------------------------------------------------------------------------------- operators

    def view(self, *size: Any) -> Tensor:
        """The same memory in another shape; -1 keeps the ragged size."""
        return self.operators["view"](ops.view, self, *size)

    def reshape(self, *shape: Any) -> Tensor:
        """The elements in another shape; -1 keeps the ragged size."""
        return self.operators["reshape"](ops.reshape, self, *shape)

    def __getitem__(self, key: Any) -> Tensor:
        return self.operators["__getitem__"](self, key)

    def _operate_(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        handler = self.operators.get(function.__name__)
        return NotImplemented if handler is None else handler(function, *args, **kwargs)

    def _no_form_(self, name: str) -> Exception:
        return NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'NestedTensor' backend: there is no {name} for "
            f"nested tensors of layout {self.layout}. Use its components (nt.unbind()) or "
            "torch.nested.to_padded_tensor(nt, 0)"
        )
