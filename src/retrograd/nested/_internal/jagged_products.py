"""Products of jagged tensors, and attention."""

from __future__ import annotations

from typing import Any

from ...core.late import operators as ops
from ...tensor import Tensor
from .base import NestedBase
from .jagged_ops import jagged
from .nested_tensor import NestedTensor, from_padded, same_raggedness, to_padded


def _unsupported(name: str, a: Any, b: Any) -> RuntimeError:
    return RuntimeError(
        f"{name}(): not supported between inputs of shapes {tuple(a.shape)} and {tuple(b.shape)}: at most one of the "
        "last two dimensions of the product may be ragged, and its place in the factors must be the same"
    )


@jagged("matmul")
def matmul(function: Any, input: Any, other: Any) -> Any:
    if isinstance(input, NestedTensor) and isinstance(other, NestedTensor):
        return _two(input, other)
    if isinstance(input, NestedBase) and not isinstance(input, NestedTensor):
        raise _unsupported("matmul", input, other)
    if isinstance(input, NestedTensor):
        last = input.dim() - 1
        if other.dim() <= 2 and input.ragged.idx < last:
            values = ops.matmul(input._values, other)
            return NestedTensor.of(values, input.ragged)
        if other.dim() == input.dim() and input.ragged.idx == last - 1 and other.shape[0] == input.ragged.batch:
            return _padded_rows(input, other)
        raise _unsupported("matmul", input, other)
    raise _unsupported("matmul", input, other)


def _padded_rows(input: NestedTensor, other: Tensor) -> NestedTensor:
    """(B, ..., j, D) times (B, ..., D, E), a matrix for each component."""
    idx = input.ragged.idx
    padded = ops.movedim(to_padded(input, 0), 1, idx)
    return from_padded(ops.movedim(ops.matmul(padded, other), idx, 1), input.packed().ragged)


def _two(a: NestedTensor, b: NestedTensor) -> Any:
    """(B, ..., D, j) times (B, ..., j, E): the ragged dimension is summed over, and the result a plain tensor."""
    last = a.dim() - 1
    same = a.ragged.size == b.ragged.size and a.ragged.batch == b.ragged.batch
    if not same or a.dim() != b.dim() or a.ragged.idx != last or b.ragged.idx != last - 1:
        raise _unsupported("matmul", a, b)
    left, right = ops.movedim(to_padded(a, 0), 1, last), ops.movedim(to_padded(b, 0), 1, last - 1)
    return ops.matmul(left, right)


@jagged("bmm")
def bmm(function: Any, input: Any, mat2: Any) -> Any:
    if input.dim() != 3 or mat2.dim() != 3:
        raise RuntimeError("bmm(): input must be 3D, and so must mat2")
    if isinstance(input, NestedTensor) and not isinstance(mat2, NestedBase) and input.ragged.idx != 1:
        raise RuntimeError("bmm(): a ragged dimension that is summed over has to be that of both factors")
    return matmul(function, input, mat2)


@jagged("scaled_dot_product_attention")
def attention(
    function: Any, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    for name, t in (("query", query), ("key", key), ("value", value)):
        if not isinstance(t, NestedTensor):
            raise RuntimeError(
                "scaled_dot_product_attention(): query, key and value have to be nested tensors of the jagged layout "
                f"together; {name} is none"
            )
        if t.dim() not in (3, 4) or t.ragged.idx not in (t.dim() - 2, t.dim() - 3):
            raise RuntimeError(
                "scaled_dot_product_attention(): the sequence, the second last dimension, has to be the ragged one, "
                f"but {name} has shape {tuple(t.shape)}: nt.transpose(1, 2)?"
            )
    if attn_mask is not None:
        raise RuntimeError("scaled_dot_product_attention(): not supported when an explicit attn_mask is set")
    if not same_raggedness(key, value):
        raise RuntimeError("scaled_dot_product_attention(): key and value must have the same ragged structure")
    if query.ragged.batch != key.ragged.batch:
        raise RuntimeError("scaled_dot_product_attention(): query and key must have as many components")
    if query.ragged.idx == query.dim() - 3:
        # Ragged is the number of sequences, all of one length: there is nothing else to them.
        if not same_raggedness(query, key):
            raise RuntimeError("scaled_dot_product_attention(): query and key must have the same ragged structure")
        values = function(*[t._values for t in (query, key, value)], None, dropout_p, is_causal, scale=scale)
        return query.wrap_like(values)
    kwargs = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
    # Each component attends to itself alone: no padding, and no mask for it.
    outputs = [
        ops.squeeze_dim(function(*[ops.unsqueeze(t, 0) for t in parts], **kwargs), 0)
        for parts in zip(query.components(), key.components(), value.components(), strict=True)
    ]
    values = ops.cat(outputs, query.ragged.idx - 1)
    return NestedTensor.of(values, query.ragged.packed())
