"""Choosing by a mask, and where a mask holds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...core.where import users_level
from ...tensor import Tensor, fresh
from ..registry import composite
from ..support import number
from .index import _LONG, index_put


@composite(method=False)
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """`input` where the condition holds, `other` elsewhere; with the condition alone, the indices where it holds.

    >>> import retrograd as torch
    >>> torch.where(torch.tensor([True, False]), 1., 2.)
    tensor([1., 2.])
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if condition._memory_.dtype.char == "B":
        warnings.warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch. Use a boolean condition instead.",
            UserWarning,
            stacklevel=users_level(),
        )
    return generated.where_self(condition, input, other, out=out)


@composite(name="where", space="Tensor")
def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """`self` where the condition holds, `other` elsewhere."""
    return generated.where_self(condition, self, other)


@composite()
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`input` with `value` (a number or a 0-d tensor) where `mask` is True.

    >>> import retrograd as torch
    >>> x = torch.tensor([1., 2., 3.])
    >>> x.masked_fill(x > 1.5, 0)
    tensor([1., 0., 0.])
    """
    if isinstance(value, Tensor):
        return generated.masked_fill_Tensor(input, mask, value)
    return generated.masked_fill_Scalar(input, mask, number("masked_fill", "value", 2, value))


@composite(space="Tensor")
def masked_fill_(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`masked_fill` in place."""
    if isinstance(value, Tensor):
        return generated.masked_fill_Tensor_(input, mask, value)
    return generated.masked_fill_Scalar_(input, mask, number("masked_fill_", "value", 2, value))


@composite()
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """The indices of the nonzero elements: one in each row or, with `as_tuple`, one tensor for each dimension.

    >>> import retrograd as torch
    >>> torch.nonzero(torch.tensor([0, 3, 0, 5]), as_tuple=True)
    (tensor([1, 3]),)
    """
    if out is not None:
        if as_tuple:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return generated.nonzero(input, out=out)
    found = generated.nonzero(input)
    if not as_tuple:
        return found
    columns = found._numbers_ if input._memory_.ndim else np.zeros((len(found._numbers_), 1), _LONG)
    return tuple(fresh(columns[:, i].copy()) for i in range(columns.shape[1]))


@composite(out=True)
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """`nonzero` with exactly `size` rows: cut, or filled up with `fill_value`."""
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, but got {size}")
    found = generated.nonzero(input)._numbers_[:size]
    rows = np.full_like(found, fill_value, np.int64, shape=(size, found.shape[1]))
    rows[: len(found)] = found
    return fresh(rows)


def _within(input: Tensor, indices: Sequence[Any]) -> list[Any]:
    """Indices, those that are beside the tensor moved to its edge."""
    sizes = input._memory_.shape
    return [None if i is None else i.clamp(-n, n - 1) for i, n in zip(indices, sizes, strict=False)]


@composite(method=False)
def _unsafe_masked_index(input: Tensor, mask: Tensor, indices: Sequence[Any], fill: Any) -> Tensor:
    """``input[indices]`` where the mask holds, `fill` elsewhere: there indices may lie beside the tensor.

    >>> import retrograd as torch
    >>> torch._unsafe_masked_index(torch.ones(2), torch.tensor([True, False]), [torch.tensor([1, 9])], 5.)
    tensor([1., 5.])
    """
    if not input._memory_.size:
        shape = np.broadcast_shapes(*[i._memory_.shape for i in indices if i is not None])
        rest = input._memory_.shape[len(indices) :]
        return input.new_full((*shape, *rest), fill)  # type: ignore[attr-defined]
    found = input[tuple(_all if i is None else i for i in _within(input, indices))]  # type: ignore[index]
    return found.masked_fill(mask.logical_not(), fill)  # type: ignore[attr-defined]


_all = slice(None)


@composite(method=False)
def _unsafe_masked_index_put_accumulate(
    input: Tensor, mask: Tensor, indices: Sequence[Any], values: Tensor
) -> Tensor:
    """`input` with `values` added at the indices where the mask holds: elsewhere indices may lie beside the tensor.

    >>> import retrograd as torch
    >>> places, mask = [torch.tensor([1, 1, 9])], torch.tensor([True, True, False])
    >>> torch._unsafe_masked_index_put_accumulate(torch.zeros(2), mask, places, torch.ones(3))
    tensor([0., 2.])
    """
    if not input._memory_.size:
        return generated.clone(input)
    kept = values.masked_fill(mask.logical_not(), 0)  # type: ignore[attr-defined]
    return index_put(input, _within(input, indices), kept, True)
