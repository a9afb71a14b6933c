"""Attention, and attention of several heads; part of ``functional``."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...core.attention import allowed
from ...core.dtypes import C_NAMES
from ...core.where import users_level
from ...ops import namespace as ops
from ...ops.registry import composite
from ...tensor import Tensor, wrap
from ...tensor.beside import beside
from ...tensor.special import all_values
from .dropout import dropout


@composite(space="nn.functional")
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
    if not allowed["math"] and not query.is_cuda:
        _check_allowed(not dropout_p and _is_one_node(query, key, value, attn_mask))
    if enable_gqa:
        key, value = _repeated_heads(query, key, value)
    one_node = not dropout_p and _is_one_node(query, key, value, attn_mask)
    if is_causal and attn_mask is not None:
        if not one_node:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True, but for "
                "batches of heads without dropout: put both into attn_mask"
            )
        attn_mask, is_causal = _causal(attn_mask, query, key), False
    if one_node:
        return generated._attention(query, key, value, 0.0, is_causal, attn_mask=attn_mask, scale=scale)
    if scale is None:
        scale = 1.0 / math.sqrt(query._memory_.shape[-1]) if query._memory_.shape[-1] else math.inf
    scores = (query * scale).matmul(key.transpose(-2, -1))
    dead = None
    if query.is_cuda:
        scores, dead = _masked_there(scores, attn_mask, is_causal)
    elif is_causal:
        rows, columns = query._memory_.shape[-2], key._memory_.shape[-2]
        bias = np.triu(np.full((rows, columns), -np.inf, dtype=query._memory_.dtype), 1)
        scores = generated.add(scores, beside(scores, bias))
    elif attn_mask is not None:
        scores, dead = _masked(scores, attn_mask)
    weights = generated._softmax(scores, -1)
    if dead is None and not query.is_cuda and np.isnan(all_values(weights)[..., :1]).any():  # no score but -inf: zeros
        hopeless = np.isneginf(scores._numbers_.astype(np.float32)).all(-1, keepdims=True)
        dead = wrap(hopeless) if hopeless.any() else None
        weights = weights if dead is None else generated._softmax(scores.masked_fill(dead, 0), -1)
    if dead is not None:
        weights = weights.masked_fill(dead, 0)
    if dropout_p:
        weights = dropout(weights, dropout_p, True)
    return weights.matmul(value)


def _is_one_node(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> bool:
    """Has torch a node of its own for it? For batches of heads of one width, with a mask that has no gradient."""
    if mask is not None and (mask.requires_grad or mask._memory_.ndim not in (2, 4)):
        return False
    sizes = [t._memory_.shape for t in (query, key, value)]
    return (
        all(len(size) == 4 and 0 not in size for size in sizes)
        and sizes[0][:2] == sizes[1][:2] == sizes[2][:2]
        and sizes[0][3] == sizes[1][3] == sizes[2][3]
        and sizes[1][2] == sizes[2][2]
        and query._memory_.dtype.kind in "fV"
    )


def _check_allowed(one_node: bool) -> None:
    if not allowed["flash"]:
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the "
            "math kernel and the fused kernels: allow SDPBackend.MATH"
        )
    if not one_node:
        raise RuntimeError(
            "No available kernel. Aborting execution. SDPBackend.FLASH_ATTENTION takes batches of heads of one width, "
            "no dropout and no mask with a gradient; allow SDPBackend.MATH, too"
        )


def _causal(mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """The mask, with all keys shut out that come after a query."""
    later = beside(mask, np.triu(np.ones((query._memory_.shape[-2], key._memory_.shape[-2]), np.bool_), 1))
    return mask.masked_fill(later, False if mask._memory_.dtype == np.bool_ else -math.inf)


def _masked(scores: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
    """The scores with the mask, and the rows that it leaves nothing of: those are not masked, to have a softmax."""
    if mask.is_meta:
        return (generated.add(scores, mask) if mask._memory_.dtype != np.bool_ else scores.masked_fill(mask, 0)), None
    array = mask._numbers_
    shut = ~array if array.dtype == np.bool_ else np.isneginf(array)
    dead = shut.all(-1, keepdims=True)
    if not dead.any():
        if array.dtype != np.bool_:
            return generated.add(scores, mask), None
        bias = np.zeros_like(array, scores._memory_.dtype)
        bias[shut] = -np.inf
        return generated.add(scores, beside(scores, bias)), None
    if array.dtype == np.bool_:
        bias = np.zeros_like(array, scores._memory_.dtype)
        bias[shut & ~dead] = -np.inf
        return generated.add(scores, beside(scores, bias)), wrap(dead)
    return generated.add(scores, mask.masked_fill(wrap(dead), 0)), wrap(dead)


def _masked_there(scores: Tensor, mask: Tensor | None, is_causal: bool) -> tuple[Tensor, Tensor]:
    """The same on a device, without waiting for it to say whether there are such rows."""
    if is_causal:
        rows, columns = scores._memory_.shape[-2:]
        mask = beside(scores, np.tri(rows, columns, dtype=np.bool_))
    if mask is not None:
        is_bool = mask._memory_.dtype == np.bool_
        scores = scores.masked_fill(mask.logical_not(), -math.inf) if is_bool else generated.add(scores, mask)
    dead = scores.detach().isneginf().all(-1, True)
    return scores.masked_fill(dead, 0), dead


def _repeated_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values as often as there are heads of queries."""
    heads = query._memory_.shape[-3]
    found: list[Any] = []
    for tensor in (key, value):
        own = tensor._memory_.shape[-3]
        if heads % own:
            raise RuntimeError(
                "Number of heads in key and value must divide the number of heads in query, but got "
                f"{own} and {heads} with enable_gqa=True"
            )
        found.append(tensor if own == heads else tensor.repeat_interleave(heads // own, -3))
    return found[0], found[1]


def _check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool) -> None:
    dtypes = {t.dtype for t in (query, key, value)}
    if len(dtypes) > 1:
        one, two, three = (C_NAMES[t.dtype.name] for t in (query, key, value))
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{one} key.dtype: {two} and value.dtype: {three} instead."
        )
    if any(t._memory_.ndim < 2 for t in (query, key, value)):
        one, two, three = (t._memory_.ndim for t in (query, key, value))
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {one}, key.dim: "
            f"{two} and value.dim: {three} instead."
        )
    if mask is not None:
        if is_causal and hasattr(mask, "seq_len_kv"):  # one of nn/attention/bias.py
            raise ValueError("CausalBias should not be used with causal=True: it says which keys a query sees")
        if mask._memory_.dtype not in (np.bool_, np.float32, query._memory_.dtype):
            raise RuntimeError(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                f"{mask.dtype} and  query.dtype: {query.dtype} instead."
            )


@composite(space="nn.functional", bare=True)
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
    _check_dims(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, width = query._memory_.shape
    if width != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    if width % num_heads:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    seen = None if is_causal and key_padding_mask is None and not need_weights else attn_mask  # (then it is not read)
    _check_lengths(query, key, value, seen, num_heads, use_separate_proj_weight)
    _check_extra(bias_k, bias_v, static_k, static_v, batch * num_heads, width // num_heads)
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    if not need_weights and not add_zero_attn and bias_k is None and static_k is None and static_v is None:
        _check_padding(key_padding_mask, batch, key._memory_.shape[0])
        causal = is_causal and key_padding_mask is None  # which the mask says as well
        mask = None
        if not causal:
            mask = _merged(attn_mask, key_padding_mask, batch, num_heads, 0, query._memory_.dtype)
        given = [query] if query is key is value else [query, key, value]
        # As batches of rows on a device, where that is how they lie: nothing is copied then. (On the CPU results lie as
        # torch's do, since dropout draws its numbers in the order of memory.)
        by_batch = query.is_cuda and all(x.stride(0) < x.stride(1) for x in given)
        given = [x.transpose(0, 1) for x in given] if by_batch else given
        parts = _projected(given[0], given[-2 % len(given)], given[-1], in_proj_weight, in_proj_bias, weights)
        joined = _attended(parts, num_heads, by_batch, mask, dropout_p if training else 0.0, causal)
        result = ops.linear(joined, out_proj_weight, out_proj_bias)
        result = result.transpose(0, 1) if by_batch else result
        return result if batched else result.squeeze(1), None
    q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias, weights)
    extra = 0
    if bias_k is not None and bias_v is not None:
        k, v = (ops.cat([x, b.expand((1, batch, width))]) for x, b in ((k, bias_k), (v, bias_v)))
        extra += 1
    heads = batch * num_heads
    q, k, v = (x.reshape((x._memory_.shape[0], heads, width // num_heads)).transpose(0, 1) for x in (q, k, v))
    k = k if static_k is None else static_k
    v = v if static_v is None else static_v
    if add_zero_attn:
        k, v = (generated.constant_pad_nd(x, (0, 0, 0, 1), 0) for x in (k, v))
        extra += 1
    _check_padding(key_padding_mask, batch, k._memory_.shape[1] - extra)
    scores = (q * (width // num_heads) ** -0.5).matmul(k.transpose(-2, -1))
    mask = _merged(attn_mask, key_padding_mask, batch, num_heads, extra, q._memory_.dtype)
    attention = generated._softmax(scores if mask is None else scores + mask, -1)
    if training and dropout_p > 0:
        attention = dropout(attention, dropout_p, True)
    joined = attention.matmul(v).transpose(0, 1).reshape((length * batch, width))
    result = ops.linear(joined, out_proj_weight, out_proj_bias).reshape((length, batch, out_proj_weight.shape[0]))
    result = result if batched else result.squeeze(1)
    attention = attention.reshape((batch, num_heads, length, k._memory_.shape[1]))
    if average_attn_weights:
        attention = attention.mean(1)
    return result, attention if batched else attention.squeeze(0)


def _attended(
    parts: list[Tensor], heads: int, by_batch: bool, mask: Tensor | None, dropout_p: float, is_causal: bool
) -> Tensor:
    """Attention of queries, keys and values of (batch, length, width) if `by_batch`, else (length, batch, width), whose
    weights nobody asks for; in the same order. `mask` is that of all heads: (1 or batch * heads, 1 or length, length).
    """
    found = []
    for x in parts:
        first, second, width = x._memory_.shape
        x = x.reshape((first, second, heads, width // heads))
        found.append(x.transpose(1, 2) if by_batch else x.permute(1, 2, 0, 3))
    if mask is not None:
        shape = mask._memory_.shape
        mask = mask.unsqueeze(0) if shape[0] == 1 else mask.reshape((shape[0] // heads, heads, *shape[1:]))
    joined = scaled_dot_product_attention(found[0], found[1], found[2], mask, dropout_p, is_causal)
    joined = joined.transpose(1, 2) if by_batch else joined.permute(2, 0, 1, 3)
    return joined.reshape(parts[0]._memory_.shape)


def _check_padding(mask: Tensor | None, batch: int, length: int) -> None:
    """A mask of keys fits them."""
    if mask is not None and tuple(mask.shape) != (batch, length):
        raise AssertionError(f"Expected key_padding_mask.shape to be {(batch, length)}, but got {tuple(mask.shape)}")


def _check_dims(
    query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None, num_heads: int
) -> None:
    """All with a batch, or all without one."""
    dims = query.ndim
    if dims not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor")
    kind = "batched (3-D)" if dims == 3 else "unbatched (2-D)"
    if key.ndim != dims or value.ndim != dims:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {dims}-D but found {key.ndim}-D and {value.ndim}-D "
            "tensors respectively"
        )
    if padding is not None and padding.ndim != dims - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D but found {padding.ndim}-D "
            "tensor instead"
        )
    for name, given in (("attn_mask", mask), ("key_padding_mask", padding)):
        if given is not None and given._memory_.dtype != np.bool_ and not given.is_floating_point():
            raise AssertionError(f"only bool and floating types of {name} are supported")
    if mask is not None:
        if mask.ndim not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {mask.ndim}-D tensor "
                "instead"
            )
        expected = (num_heads, query.shape[0], key.shape[0])
        if dims == 2 and mask.ndim == 3 and tuple(mask.shape) != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {tuple(mask.shape)}")
    if padding is not None and mask is not None and padding.dtype != mask.dtype:
        warnings.warn(
            "Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type for both instead.",
            UserWarning,
            stacklevel=users_level(),
        )


def _check_lengths(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, num_heads: int, separate: bool
) -> None:
    """Keys and values belong together, and a mask to queries and keys."""
    if separate:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    if mask is not None:
        expected = (query.shape[0], key.shape[0])
        if mask.ndim == 3:
            expected = (query.shape[1] * num_heads, *expected)  # type: ignore[assignment]
        if tuple(mask.shape) != expected:
            raise RuntimeError(f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {expected}.")


def _check_extra(
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    static_k: Tensor | None,
    static_v: Tensor | None,
    heads: int,
    width: int,
) -> None:
    """Keys and values that are given or added fit the heads."""
    if (bias_k is None) != (bias_v is None):
        one, other = ("bias_k", "bias_v") if bias_v is None else ("bias_v", "bias_k")
        raise AssertionError(f"{one} is set but {other} is None")
    for name, static in (("key", static_k), ("value", static_v)):
        if static is None:
            continue
        if bias_k is not None:
            raise AssertionError(f"bias cannot be added to static {name}.")
        for dim, size in ((0, heads), (2, width)):
            if static.shape[dim] != size:
                raise AssertionError(f"expecting static_{name[0]}.size({dim}) of {size}, but got {static.shape[dim]}")


def _projected(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    weights: tuple[Tensor | None, ...] | None,
) -> list[Tensor]:
    """Queries, keys and values, each times its own part of the weight; one product where all three are one tensor."""
    if weights is None:
        assert weight is not None, "use_separate_proj_weight is False but in_proj_weight is None"
        if query is key and key is value:
            return list(ops.linear(query, weight, bias).chunk(3, -1))
        weights = tuple(weight.chunk(3))
    biases = [None] * 3 if bias is None else bias.chunk(3)
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
        if part._memory_.dtype == np.bool_:
            part = generated.masked_fill_Scalar(beside(part, np.zeros(part._memory_.shape, dtype)), part, -math.inf)
        if is_padding:
            size = part._memory_.shape[1]
            part = part.reshape((batch, 1, 1, size)).expand((batch, heads, 1, size)).reshape((batch * heads, 1, size))
        elif part.ndim == 2:
            part = part.unsqueeze(0)
        total = part if total is None else total + part
    if total is not None and extra:
        total = generated.constant_pad_nd(total, (0, extra), 0)
    return total
