"""Attention of batches of heads: two products with a softmax between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import compiled
from .compiled import LARGE, on_threads
from .products import matmul
from .promotion import work_dtype
from .softmax import softmax, softmax_backward

Array = np.ndarray


def attention(
    query: Array,
    key: Array,
    value: Array,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Array | None = None,
    scale: float | None = None,
) -> tuple[Array, Array]:
    """``softmax(query @ key.T * scale + mask) @ value``, and the weights that the softmax gave."""
    dtype = query.dtype
    query, key, value = (x.astype(work_dtype(dtype), copy=False) for x in (query, key, value))
    factor = attention_scale(query, scale)
    if attn_mask is None and compiled.is_used() and type(query) is np.ndarray and query.dtype in compiled.SUFFIXES:
        weights = matmul(query, key.swapaxes(-2, -1))
        if weights.size > LARGE and compiled.attention_weights(weights, factor, is_causal):
            return matmul(weights, value).astype(dtype, copy=False), weights
    scores = matmul(query * query.dtype.type(factor), key.swapaxes(-2, -1))
    bias, dead = attention_bias(attn_mask, is_causal, scores)
    if bias is not None:
        scores = np.add(scores, bias, out=scores) if bias.ndim <= scores.ndim else scores + bias
    weights = softmax(scores, -1)
    if dead is None and np.isnan(weights[..., :1]).any():
        dead = hopeless(scores)
    if dead is not None:
        weights = np.where(dead, weights.dtype.type(0), weights)
    return matmul(weights, value).astype(dtype, copy=False), weights


def attention_scale(query: Array, scale: float | None) -> float:
    """What the scores are multiplied by."""
    if scale is not None:
        return scale
    return 1.0 / math.sqrt(query.shape[-1]) if query.shape[-1] else math.inf


def attention_bias(mask: Array | None, is_causal: bool, scores: Array) -> tuple[Array | None, Array | None]:
    """What is added to the scores, and the rows that it would leave nothing of: those are left, to have a softmax."""
    dtype = scores.dtype
    if is_causal:
        return np.triu(np.full(scores.shape[-2:], -np.inf, dtype=dtype), 1), None
    if mask is None:
        return None, None
    shut = ~mask if mask.dtype == np.bool_ else np.isneginf(mask)
    dead: Any = shut.all(-1, keepdims=True)
    left = shut & ~dead
    if mask.dtype == np.bool_:
        bias = np.zeros(mask.shape, dtype)
        bias[left] = -np.inf
    else:
        bias = np.where(dead, dtype.type(0), mask.astype(dtype))
    return bias, dead if dead.any() else None


def hopeless(scores: Array) -> Array | None:
    """The rows whose scores are all minus infinity, which give zeros; None, if there is none."""
    found: Any = np.isneginf(scores.astype(np.float32, copy=False)).all(-1, keepdims=True)
    return found if found.any() else None


def attention_backward(
    grad: Array, query: Array, key: Array, value: Array, weights: Array, scale: float, edges: Sequence[Any],
    _forward: Any = None,
) -> tuple[Array | None, Array | None, Array | None]:  # fmt: skip
    """The gradients for query, key and value, those whose edge is not None.

    `_forward`: the result, the mask and whether it was causal, for a device's kernels that keep no weights."""
    dtype = query.dtype
    grad, query, key, value = (x.astype(weights.dtype, copy=False) for x in (grad, query, key, value))
    grad_query = grad_key = grad_value = None
    if edges[2] is not None:
        grad_value = matmul(weights.swapaxes(-2, -1), grad).astype(dtype, copy=False)
    if edges[0] is not None or edges[1] is not None:
        scores = softmax_backward(matmul(grad, value.swapaxes(-2, -1)), weights, -1)
        scores = on_threads(np.multiply)(scores, scores.dtype.type(scale), out=scores)
        if edges[0] is not None:
            grad_query = matmul(scores, key).astype(dtype, copy=False)
        if edges[1] is not None:
            grad_key = matmul(scores.swapaxes(-2, -1), query).astype(dtype, copy=False)
    return grad_query, grad_key, grad_value
