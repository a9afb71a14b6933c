"""Formula helpers of embeddings."""

from __future__ import annotations

from typing import Any


def embedding_gradient(
    ops: Any, grad: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Any:
    """The gradient of `embedding` for the table."""
    if sparse:
        if scale_grad_by_freq:
            raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        return ops.embedding_sparse_gradient(grad, indices, num_weights, padding_idx)
    return ops.embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)


def embedding_double_backward(
    ops: Any, grad: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    """The gradient of `embedding_dense_backward` for its `grad_output`: the rows that it was added to."""
    if scale_grad_by_freq:
        ones = ops.ones_like(ops.embedding(grad, indices))
        counts = ops.embedding_dense_backward(ones, indices, num_weights, padding_idx, False)
        grad = grad / ops.clamp_min(counts, 1)
    rows = ops.embedding(grad, indices)
    if padding_idx < 0:
        return rows
    return ops.masked_fill(rows, ops.unsqueeze(ops.eq(indices, padding_idx), -1), 0)
