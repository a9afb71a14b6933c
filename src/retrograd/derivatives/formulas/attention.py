"""Formula helpers of attention."""

from __future__ import annotations

from typing import Any

from ... import kernels
from ...tensor import wrap
from ...tensor.special import all_values
from .shared import _has_values


def _scores(ops: Any, query: Any, key: Any, mask: Any, is_causal: bool, scale: Any) -> tuple[Any, Any, float]:
    """The scores on Tensors, the rows that give nothing, and the factor."""
    factor = kernels.attention_scale(query._memory_, scale)
    scores = ops.matmul(query * factor, ops.transpose(key, -2, -1))
    if not _has_values(scores):
        return scores, None, factor
    bias, dead = kernels.attention_bias(None if mask is None else mask._numbers_, is_causal, scores._memory_)
    if bias is not None:
        scores = scores + wrap(bias)
    if dead is None and scores._special_ is not None:  # batched: rows of each example
        rows = ops.all(ops.isneginf(scores), -1, True)
        return scores, rows if all_values(rows).any() else None, factor
    if dead is None:
        dead = kernels.hopeless(scores._numbers_)
    return scores, None if dead is None else wrap(dead), factor


def _weights(ops: Any, query: Any, key: Any, mask: Any, is_causal: bool, scale: Any) -> tuple[Any, float]:
    scores, dead, factor = _scores(ops, query, key, mask, is_causal, scale)
    if dead is None:
        return ops.softmax(scores, -1), factor
    return ops.masked_fill(ops.softmax(ops.masked_fill(scores, dead, 0), -1), dead, 0), factor


def attention_backward(
    ops: Any, grad: Any, query: Any, key: Any, value: Any, result: Any, weights: Any, mask: Any, is_causal: bool,
    scale: Any, edges: Any,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The gradients; on Tensors from weights that are computed anew, for they depend on the query and the key."""
    if ops is kernels:
        factor = kernels.attention_scale(query, scale)
        return kernels.attention_backward(grad, query, key, value, weights, factor, edges, (result, mask, is_causal))
    weights, factor = _weights(ops, query, key, mask, is_causal, scale)
    slopes = ops.matmul(grad, ops.transpose(value, -2, -1))
    scores = weights * (slopes - ops.sum(slopes * weights, -1, True)) * factor
    return (
        ops.matmul(scores, key) if edges[0] is not None else None,
        ops.matmul(ops.transpose(scores, -2, -1), query) if edges[1] is not None else None,
        ops.matmul(ops.transpose(weights, -2, -1), grad) if edges[2] is not None else None,
    )


def attention_jvp(
    ops: Any, query: Any, query_t: Any, key: Any, key_t: Any, value: Any, value_t: Any, mask: Any, is_causal: bool,
    scale: Any,
) -> Any:  # fmt: skip
    """The tangent of attention."""
    weights, factor = _weights(ops, query, key, mask, is_causal, scale)
    scores_t = ops.matmul(query_t, ops.transpose(key, -2, -1)) + ops.matmul(query, ops.transpose(key_t, -2, -1))
    scores_t = scores_t * factor
    weights_t = weights * (scores_t - ops.sum(scores_t * weights, -1, True))
    return ops.matmul(weights_t, value) + ops.matmul(weights, value_t)


def attention_logsumexp(ops: Any, query: Any, key: Any, mask: Any, is_causal: bool, scale: Any) -> Any:
    """The logarithms of the sums that the weights were divided by, for who asks a node for them."""
    mask = None if mask is None else mask.detach()
    return ops.logsumexp(_scores(ops, query.detach(), key.detach(), mask, is_causal, scale)[0], -1)
