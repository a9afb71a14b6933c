"""Attention; part of ``functional``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...tensor import Tensor, wrap


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``softmax(query @ key.T * scale + mask) @ value``, over the last two dimensions.

    A bool mask is True where a key takes part; a query that has none gives zeros.

    >>> import retrograd as torch
    >>> q = torch.zeros(1, 2, 4)
    >>> torch.nn.functional.scaled_dot_product_attention(q, q, torch.tensor([[[2.], [4.]]]), is_causal=True)
    tensor([[[2.],
             [3.]]])
    """
    _check(query, key, value, attn_mask, is_causal)
    if enable_gqa:
        key, value = _repeated_heads(query, key, value)
    if scale is None:
        scale = 1.0 / math.sqrt(query._data.shape[-1]) if query._data.shape[-1] else math.inf
    scores = (query * scale).matmul(key.transpose(-2, -1))
    dead = None
    if is_causal:
        rows, columns = query._data.shape[-2], key._data.shape[-2]
        bias = np.triu(np.full((rows, columns), -np.inf, dtype=query._data.dtype), 1)
        scores = generated.add(scores, wrap(bias))
    elif attn_mask is not None:
        scores, dead = _masked(scores, attn_mask)
    weights = generated._softmax(scores, -1)
    if dead is None and np.isnan(weights._data[..., :1]).any():  # a query whose scores are all -inf gives zeros, too
        hopeless = np.isneginf(scores._data.astype(np.float32)).all(-1, keepdims=True)
        dead = wrap(hopeless) if hopeless.any() else None
        weights = weights if dead is None else generated._softmax(scores.masked_fill(dead, 0), -1)
    if dead is not None:
        weights = weights.masked_fill(dead, 0)
    if dropout_p > 0:
        from . import dropout

        weights = dropout(weights, dropout_p, True)
    return weights.matmul(value)


def _masked(scores: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
    """The scores with the mask, and the rows that it leaves nothing of: those are not masked, to have a softmax."""
    array = mask._data
    shut = ~array if array.dtype == np.bool_ else np.isneginf(array)
    dead = shut.all(-1, keepdims=True)
    if not dead.any():
        if array.dtype != np.bool_:
            return generated.add(scores, mask), None
        bias = np.zeros(array.shape, scores._data.dtype)
        bias[shut] = -np.inf
        return generated.add(scores, wrap(bias)), None
    if array.dtype == np.bool_:
        bias = np.zeros(array.shape, scores._data.dtype)
        bias[shut & ~dead] = -np.inf
        return generated.add(scores, wrap(bias)), wrap(dead)
    return generated.add(scores, mask.masked_fill(wrap(dead), 0)), wrap(dead)


def _repeated_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values as often as there are heads of queries."""
    heads = query._data.shape[-3]
    found: list[Any] = []
    for tensor in (key, value):
        own = tensor._data.shape[-3]
        if heads % own:
            raise RuntimeError(
                "Number of heads in key and value must divide the number of heads in query, but got "
                f"{own} and {heads} with enable_gqa=True"
            )
        found.append(tensor if own == heads else tensor.repeat_interleave(heads // own, -3))
    return found[0], found[1]


def _check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool) -> None:
    dtypes = [str(t.dtype).removeprefix("torch.") for t in (query, key, value)]
    if len(set(dtypes)) > 1:
        names = {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16"}
        one, two, three = (names.get(name, name) for name in dtypes)
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{one} key.dtype: {two} and value.dtype: {three} instead."
        )
    if any(t._data.ndim < 2 for t in (query, key, value)):
        one, two, three = (t._data.ndim for t in (query, key, value))
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {one}, key.dim: "
            f"{two} and value.dim: {three} instead."
        )
    if mask is not None:
        if is_causal:
            raise RuntimeError("Explicit attn_mask should not be set when is_causal=True")
        if mask._data.dtype not in (np.bool_, np.float32, query._data.dtype):
            raise RuntimeError(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                f"{mask.dtype} and  query.dtype: {query.dtype} instead."
            )
