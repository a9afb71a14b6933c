"""Samples of attention."""

from __future__ import annotations

from typing import Any

from samples.shared import _op
from samples.spec import E, Op, S, T, V, mask, real

F = "nn.functional."


ATTENTION = _op(
    "scaled_dot_product_attention",
    [
        S("plain", real(1, 2, 2), real(1, 3, 2), real(1, 3, 2)),
        S("matrix", real(2, 2), real(2, 2), real(2, 2)),
        S("heads", real(2, 2, 2, 3), real(2, 2, 3, 3), real(2, 2, 3, 2)),
        S("causal", real(1, 3, 2), real(1, 3, 2), real(1, 3, 2), is_causal=True),
        S("causal, wide", real(1, 2, 2), real(1, 3, 2), real(1, 3, 2), is_causal=True),
        S("scale", real(1, 2, 2), real(1, 2, 2), real(1, 2, 2), scale=0.3),
        S("bool mask", real(1, 2, 2), real(1, 2, 2), real(1, 2, 2), mask([[True, False], [True, True]])),
        S("float mask", real(1, 2, 2), real(1, 2, 2), real(1, 2, 2), real(2, 2)),
        S("nothing left", real(1, 2, 2), real(1, 2, 2), real(1, 2, 2), mask([[False, False], [True, True]])),
        S("groups", real(1, 4, 2, 2), real(1, 2, 2, 2), real(1, 2, 2, 2), enable_gqa=True, torch_second=False),
        V("float32", real(1, 2, 2, dtype="float32"), real(1, 3, 2, dtype="float32"), real(1, 3, 2, dtype="float32")),
    ],
    errors=[
        E(
            "both masks",
            RuntimeError,
            r"Explicit attn_mask should not be set when is_causal=True",
            real(1, 2, 2),
            real(1, 2, 2),
            real(1, 2, 2),
            mask([[True, True], [True, True]]),
            is_causal=True,
        ),
        E("dtype", RuntimeError, r"to have the same dtype", real(1, 2, 2), real(1, 2, 2), T((1, 2, 2), "float32")),
    ],
)


HEADS = (real(2, 2, 2, 3), real(2, 2, 3, 3), real(2, 2, 3, 3))
ONE_NODE = Op(
    "nn.functional.scaled_dot_product_attention, heads",
    "nn.functional.scaled_dot_product_attention",
    [
        S("plain", *HEADS, torch_second=False),
        S("causal", *HEADS, is_causal=True, torch_second=False),
        S("scale", *HEADS, scale=0.3, torch_second=False),
        S("bool mask", *HEADS, mask([[True, False, True], [True, True, True]]), torch_second=False),
        S("float mask", *HEADS, real(2, 3, requires_grad=False), torch_second=False),
        S("mask of each", *HEADS, real(2, 1, 2, 3, requires_grad=False), torch_second=False),
        S("nothing left", *HEADS, mask([[False, False, False], [True, True, True]]), torch_second=False),
        S("only the query", HEADS[0], *[real(2, 2, 3, 3, requires_grad=False)] * 2, torch_second=False),
    ],
)


def _multihead(torch: Any, x: Any, weight: Any, bias: Any, out: Any, *others: Any, **kwargs: Any) -> Any:
    """multi_head_attention_forward of two heads; with separate keys and values where they are given."""
    key, value = others or (x, x)
    args = (x.shape[-1], 2, weight, bias, None, None, kwargs.pop("zero", False), 0.0, out, None)
    found = torch.nn.functional.multi_head_attention_forward(x, key, value, *args, **kwargs)
    return [part for part in found if part is not None]


PROJECTIONS = (real(6, 2), real(6), real(2, 2))
MULTIHEAD = Op(
    "multi_head_attention_forward",
    _multihead,
    [
        S("itself", real(2, 1, 2), *PROJECTIONS, second=False),
        S("other keys", real(2, 2, 2), *PROJECTIONS, real(3, 2, 2), real(3, 2, 2), second=False),
        S("unbatched", real(2, 2), *PROJECTIONS, second=False),
        S("heads apart", real(2, 1, 2), *PROJECTIONS, average_attn_weights=False, second=False),
        S("no weights", real(2, 1, 2), *PROJECTIONS, need_weights=False, second=False),
        S("zero key", real(2, 1, 2), *PROJECTIONS, zero=True, second=False),
        S("mask", real(2, 1, 2), *PROJECTIONS, attn_mask=mask([[False, True], [False, False]]), second=False),
        S("float mask", real(2, 1, 2), *PROJECTIONS, attn_mask=real(2, 2), second=False),
        S("padding", real(2, 2, 2), *PROJECTIONS, key_padding_mask=mask([[False, True], [False, False]]), second=False),
    ],
)


OPS = [
    ONE_NODE,
    ATTENTION,
    MULTIHEAD,
]
