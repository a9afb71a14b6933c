"""MaskedTensor: a tensor, and which of its elements count.

Its values are a plain tensor, whose history it has (Note [Held histories] in autograd/held_history.py); operators are
in operators.py.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, Self

from ...autograd.held_history import HeldHistory
from ...core.late import operators as ops
from ...core.where import users_level
from ...tensor import Tensor

_DTYPES = frozenset(["float16", "float32", "float64", "bool", "int8", "int16", "int32", "int64"])


def _to(tensor: Any, dtype: Any) -> Tensor:
    """A tensor of another dtype, the same if it has it."""
    return tensor.to(dtype)


def is_masked_tensor(obj: Any) -> bool:
    """Does this carry a mask?

    >>> import retrograd as torch
    >>> torch.masked.is_masked_tensor(torch.ones(2))
    False
    """
    return isinstance(obj, MaskedTensor)


def _tensors_match(a: Tensor, b: Tensor, exact: bool = True, rtol: float = 1e-05, atol: float = 1e-08) -> bool:
    """Have two plain tensors the same dtype, shape and (nearly) the same elements, NaN being like NaN?"""
    if isinstance(a, MaskedTensor) or isinstance(b, MaskedTensor):
        raise ValueError("Neither `a` nor `b` can be a MaskedTensor.")
    if a.layout is not b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")
    if a.dtype is not b.dtype:
        b = _to(b, a.dtype)
    if a.dim() == b.dim() == 0 and exact is False and a.dtype.name == "bool":
        exact = True
    if exact:
        return a.shape == b.shape and bool(ops.eq(a, b).all())
    return a.shape == b.shape and ops.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)


def _masks_match(a: Any, b: Any) -> bool:
    """Have two masked tensors the same mask? (True, if one is none.)"""
    if isinstance(a, MaskedTensor) and isinstance(b, MaskedTensor):
        return _tensors_match(a.get_mask(), b.get_mask(), exact=True)
    return True


class MaskedTensor(HeldHistory):
    """A tensor with a mask, True where an element counts.

    >>> import retrograd as torch
    >>> mt = torch.masked.masked_tensor(torch.tensor([1., 2., 4.]), torch.tensor([True, False, True]))
    >>> mt
    MaskedTensor(
      [  1.0000,       --,   4.0000]
    )
    >>> mt.mean()
    MaskedTensor(  2.5000, True)
    """

    _special_: int = 3
    kind = "masked"  # type: ignore[assignment]

    operators: ClassVar[dict[str, Callable[..., Any]]] = {}

    _masked_mask: Tensor

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> Self:
        _check(data, mask)
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you "
                "can use data.detach().clone()",
                UserWarning,
                stacklevel=users_level(),
            )
        if requires_grad and not (data.is_floating_point() or data.is_complex()):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        result = cls.of(ops.clone(data.detach()), ops.clone(mask))
        return result.requires_grad_() if requires_grad else result

    @classmethod
    def of(cls, values: Tensor, mask: Tensor) -> Self:
        """A masked tensor on `values`, which are its own."""
        result = object.__new__(cls)
        result._masked_mask = mask
        result._hold_(values)
        return result

    def maker(self) -> Callable[[Tensor], Self]:
        return functools.partial(self.of, mask=self._masked_mask)

    def values_like(self, other: Tensor, what: str) -> Tensor:
        values = other._values if isinstance(other, MaskedTensor) else other
        if values._special_ is not None or values._memory_.shape != self._values._memory_.shape:
            raise RuntimeError(
                f"Mismatch in shape: {what} has a shape of {other.shape} and the masked tensor it belongs to has a "
                f"shape of {self.shape}."
            )
        return values

    @property
    def _memory_(self) -> Any:  # type: ignore[override]
        return self._values._memory_

    @property
    def _masked_data(self) -> Tensor:
        return self._values

    def get_data(self) -> Tensor:
        """The elements, masked or not, as a plain tensor with its history."""
        return ops.alias(self._values)

    def get_mask(self) -> Tensor:
        """The mask."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Tensor:
        """A plain tensor with `value` in place of what is masked.

        >>> import retrograd as torch
        >>> torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False])).to_tensor(7.)
        tensor([1., 7.])
        """
        return ops.masked_fill(self.get_data(), ops.logical_not(self._masked_mask), value)

    def _is_any_true(self) -> MaskedTensor:
        if self._memory_.dtype.kind != "b":
            raise ValueError("_is_any_true: expected a boolean tensor")
        found = ops.any(ops.logical_and(self._values, self._masked_mask))
        return MaskedTensor.of(found, ops.ones_like(found))

    # ------------------------------------------------------------------------------------------------ as something else

    def item(self) -> Any:
        if self.numel() == 1 and not bool(self._masked_mask):
            raise ValueError("item(): the one element of this tensor is masked")
        return self._values.item()

    _scalar_ = item

    def __bool__(self) -> bool:
        return bool(self._values)

    def tolist(self) -> Any:
        """The elements as nested lists, None where they are masked."""
        data = self._values._numbers_.astype(object)
        data[~self._masked_mask._numbers_] = None
        return data.tolist()

    def numpy(self, *, force: bool = False) -> NoReturn:
        raise RuntimeError(".numpy() is not supported for masked tensors: use mt.get_data(), mt.to_tensor(value)")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        self.numpy()

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        data, mask = self._values.detach()._numbers_, self._masked_mask._numbers_
        if data.ndim == 0:
            text = _number(data.item()) if mask else "--"
            return f"MaskedTensor({text}, {bool(mask)})"
        inside = _rows(data.tolist(), mask.tolist(), data.ndim)
        return "MaskedTensor(\n" + "\n".join("  " + line for line in inside) + "\n)"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if not self.is_leaf:
            raise RuntimeError("a masked tensor that is the result of an operation cannot be saved: detach() it")
        return MaskedTensor, (self._values.detach(), self._masked_mask, self.requires_grad)

    # -------------------------------------------------------------------------------------------------------- operators

    def _operate_(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        handler = self.operators.get(function.__name__)
        return NotImplemented if handler is None else handler(function, *args, **kwargs)

    def _no_form_(self, name: str) -> Exception:
        return TypeError(
            f"no implementation found for torch._ops.aten.{name}.default on types that implement __torch_dispatch__: "
            f"[MaskedTensor]. There is no {name} for masked tensors: use mt.get_data(), or mt.to_tensor(value)"
        )


def _check(data: Any, mask: Any) -> None:
    for name, value in (("data", data), ("mask", mask)):
        if isinstance(value, MaskedTensor) or not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a Tensor")
    if data.layout is not mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if data._special_ is not None:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if mask.dtype.name != "bool":
        raise TypeError("mask must have dtype bool.")
    if data.dtype.name not in _DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.size() != mask.size():
        raise ValueError("data.size() must equal mask.size()")


def _number(value: Any) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _rows(data: list[Any], mask: list[Any], dims: int) -> list[str]:
    """The lines of a printed tensor."""
    if dims == 1:
        cells = [_number(value) for value in data]
        width = max((8 if not m else len(cell) for cell, m in zip(cells, mask)), default=0)
        return ["[" + ", ".join(cell if m else "--".rjust(width) for cell, m in zip(cells, mask)) + "]"]
    lines = ["["]
    for i, (part, part_mask) in enumerate(zip(data, mask)):
        rows = ["  " + line for line in _rows(part, part_mask, dims - 1)]
        rows[-1] += "," if i < len(data) - 1 else ""
        lines += rows
    return [*lines, "]"]
