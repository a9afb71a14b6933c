"""What dtypes become when they meet, and questions about tensors that have a plain answer."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from ...core import dtypes
from ...core.size import Size
from ...kernels import promotion
from ...tensor import Tensor
from ..registry import composite


@composite(method=False)
def result_type(tensor: Any = None, other: Any = None, **numbers: Any) -> dtypes.dtype:
    """The dtype of an operation on two tensors or numbers.

    >>> import retrograd as torch
    >>> torch.result_type(torch.tensor([1, 2]), 1.0)
    torch.float32
    """
    given = [value for value in (numbers.pop("scalar", None), numbers.pop("scalar1", None), tensor, other) if
             value is not None]
    given += [numbers.pop("scalar2")] if "scalar2" in numbers else []
    if numbers or len(given) != 2:
        raise TypeError(f"result_type() takes two tensors or numbers, but got {len(given) + len(numbers)}")
    operands = [value._data if isinstance(value, Tensor) else value for value in given]
    return dtypes.from_numpy_dtype(promotion.result_dtype(*operands))


@composite(method=False)
def promote_types(type1: dtypes.dtype, type2: dtypes.dtype) -> dtypes.dtype:
    """The smallest dtype that is no smaller, nor of a lower kind, than either.

    >>> import retrograd as torch
    >>> torch.promote_types(torch.int64, torch.float16)
    torch.float16
    """
    return dtypes.from_numpy_dtype(promotion.promote_dtypes(type1.np, type2.np))


@composite(method=False)
def can_cast(from_: dtypes.dtype, to: dtypes.dtype) -> builtins.bool:
    """Whether a result of the first dtype may be written to a tensor of the second."""
    return promotion.can_cast(from_.np, to.np)


@composite()
def is_nonzero(input: Tensor) -> builtins.bool:
    """Whether the one element is not zero."""
    if input._data.size != 1:
        which = "no values" if not input._data.size else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {which} is ambiguous")
    return builtins.bool(input._data.reshape(-1)[0])


@composite(method=False)
def is_signed(input: Tensor) -> builtins.bool:
    """Whether the dtype has negative numbers."""
    return input.dtype.is_signed


@composite()
def is_same_size(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether two tensors have the same shape."""
    return input._data.shape == other._data.shape


@composite(method=False, bare=True)
def is_storage(obj: Any) -> builtins.bool:
    """Is it a storage?"""
    from ...storage import TypedStorage, UntypedStorage

    return isinstance(obj, (TypedStorage, UntypedStorage))


@composite(method=False, bare=True)
def broadcast_shapes(*shapes: builtins.int | Sequence[builtins.int]) -> Size:
    """The shape that tensors of these shapes are broadcast to.

    >>> import retrograd as torch
    >>> torch.broadcast_shapes((2, 1), (3,), 1)
    torch.Size([2, 3])
    """
    for position, shape in enumerate(shapes):
        if not isinstance(shape, int) and not (
            isinstance(shape, (tuple, list)) and all(isinstance(n, int) for n in shape)
        ):
            raise RuntimeError(
                f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got "
                f"{type(shape).__name__} as argument {position}"
            )
    sizes = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    result = [1] * max((len(size) for size in sizes), default=0)
    for position, size in enumerate(sizes):
        for dim in range(-1, -len(size) - 1, -1):
            if size[dim] not in (1, result[dim]):
                if result[dim] != 1:
                    raise RuntimeError(
                        f"Attempting to broadcast a dimension of length {size[dim]} at {dim}! Mismatching argument at "
                        f"index {position} had {size}; but expected shape should be broadcastable to {result}"
                    )
                result[dim] = size[dim]
    return Size(result)


# ------------------------------------------------------------------------------------------- methods as functions too


@composite(method=False)
def get_device(input: Tensor) -> int:
    """The index of the tensor's device; -1 for the CPU."""
    return input.get_device()


@composite(method=False)
def detach(input: Tensor) -> Tensor:
    """`input` without its history, on the same memory."""
    return input.detach()


@composite(method=False)
def detach_(input: Tensor) -> Tensor:
    """In-place `detach`."""
    return input.detach_()
