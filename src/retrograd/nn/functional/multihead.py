"""Attention of several heads with its projections; part of ``functional``."""

from __future__ import annotations

import numpy as np

from ..._generated import functions as generated
from ...ops import namespace as ops
from ...tensor import Tensor, wrap


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention over (length, batch, width), or (length, width), in `num_heads` heads; and its weights if asked for.

    A mask is True where a key is *not* attended to, or is added to the scores.
    """
    batched = query.ndim == 3
    if query.ndim not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor"
        )
    if not batched:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, width = query._data.shape
    if width != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    if width % num_heads:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias, weights)
    extra = 0
    if bias_k is not None and bias_v is not None:
        k, v = (ops.cat([x, b.expand((1, batch, width))]) for x, b in ((k, bias_k), (v, bias_v)))
        extra += 1
    heads = batch * num_heads
    q, k, v = (x.reshape((x._data.shape[0], heads, width // num_heads)).transpose(0, 1) for x in (q, k, v))
    k = k if static_k is None else static_k
    v = v if static_v is None else static_v
    if add_zero_attn:
        k, v = (generated.constant_pad_nd(x, (0, 0, 0, 1), 0) for x in (k, v))
        extra += 1
    scores = (q * (width // num_heads) ** -0.5).matmul(k.transpose(-2, -1))
    mask = _merged(attn_mask, key_padding_mask, batch, num_heads, extra, q._data.dtype)
    attention = generated._softmax(scores if mask is None else scores + mask, -1)
    if training and dropout_p > 0:
        from . import dropout

        attention = dropout(attention, dropout_p, True)
    joined = attention.matmul(v).transpose(0, 1).reshape((length * batch, width))
    result = ops.linear(joined, out_proj_weight, out_proj_bias).reshape((length, batch, -1))
    result = result if batched else result.squeeze(1)
    if not need_weights:
        return result, None
    attention = attention.reshape((batch, num_heads, length, k._data.shape[1]))
    if average_attn_weights:
        attention = attention.mean(1)
    return result, attention if batched else attention.squeeze(0)


def _projected(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    weights: tuple[Tensor | None, ...] | None,
) -> list[Tensor]:
    """Queries, keys and values, each times its own part of the weight; one product where all three are one tensor."""
    biases = [None] * 3 if bias is None else bias.chunk(3)
    if weights is None:
        assert weight is not None, "use_separate_proj_weight is False but in_proj_weight is None"
        if query is key and key is value:
            return list(ops.linear(query, weight, bias).chunk(3, -1))
        weights = tuple(weight.chunk(3))
    found = []
    for tensor, part, shift in zip((query, key, value), weights, biases, strict=True):
        assert part is not None, "use_separate_proj_weight is True but a projection weight is None"
        found.append(ops.linear(tensor, part, shift))
    return found


def _merged(
    mask: Tensor | None, padding: Tensor | None, batch: int, heads: int, extra: int, dtype: np.dtype
) -> Tensor | None:
    """Both masks as one that is added to the scores of (batch * heads, length, length)."""
    total: Tensor | None = None
    for part, is_padding in ((mask, False), (padding, True)):
        if part is None:
            continue
        if part._data.dtype == np.bool_:
            bias = np.zeros(part._data.shape, dtype)
            bias[part._data] = -np.inf
            part = wrap(bias)
        if is_padding:
            size = part._data.shape[1]
            part = part.reshape((batch, 1, 1, size)).expand((batch, heads, 1, size)).reshape((batch * heads, 1, size))
        elif part.ndim == 2:
            part = part.unsqueeze(0)
        total = part if total is None else total + part
    if total is not None and extra:
        total = generated.constant_pad_nd(total, (0, extra), 0)
    return total
