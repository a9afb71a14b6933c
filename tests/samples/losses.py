"""Samples of attention, bags, grids, folds, random functions and the losses that are made of other operators."""

from __future__ import annotations

from typing import Any

from samples.spec import E, Op, S, Sample, T, V, distinct, given, index, mask, nonzero, positive, real

F = "nn.functional."
INF = float("inf")
ONE, OTHER = given([-0.7, 0.4, 1.7]), given([0.3, 1.9, -1.1])
SIGNS = given([1.0, -1.0, 1.0], requires_grad=False)


def _op(name: str, samples: list[Sample], **options: Any) -> Op:
    return Op(F + name, F + name, samples, **options)


# ---------------------------------------------------------------------------------------------- attention and bags


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

BAG = _op(
    "embedding_bag",
    [
        *[
            S(f"{m}, matrix", index([[0, 2], [1, 1]]), distinct(3, 2), mode=m, torch_second=False)
            for m in ("sum", "mean", "max")
        ],
        *[
            S(f"{m}, offsets", index([0, 2, 1, 1]), distinct(3, 2), index([0, 1]), mode=m, torch_second=False)
            for m in ("sum", "mean", "max")
        ],
        *[
            S(f"{m}, empty bag", index([0, 2, 1]), distinct(3, 2), index([0, 2, 2]), mode=m, torch_second=False)
            for m in ("sum", "mean", "max")
        ],
        S("last offset", index([0, 2, 1]), real(3, 2), index([0, 1, 3]), include_last_offset=True, torch_second=False),
        *[
            S(
                f"{m}, padding",
                index([0, 2, 1]),
                distinct(3, 2),
                index([0, 1]),
                padding_idx=2,
                mode=m,
                torch_second=False,
            )
            for m in ("sum", "mean", "max")
        ],
        S(
            "weights",
            index([0, 2, 1]),
            real(3, 2),
            index([0, 1]),
            mode="sum",
            per_sample_weights=real(3),
            torch_second=False,
        ),
    ],
    errors=[
        E("mode", ValueError, r"mode has to be one of sum, mean or max", index([0]), real(1, 1), index([0]), mode="x"),
        E("no offsets", ValueError, r"offsets has to be a 1D Tensor but got None", index([0]), real(1, 1)),
        E("offsets", ValueError, r"if input is 2D, then offsets has to be None", index([[0]]), real(1, 1), index([0])),
        E("first", RuntimeError, r"offsets\[0\] has to be 0", index([0, 0]), real(1, 1), index([1])),
    ],
)

# ---------------------------------------------------------------------------------------------- grids and folds

PLACES = T((1, 2, 2, 2), low=-1.3, high=1.3)


def _grids() -> list[Sample]:
    made = []
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for corners in (True, False):
                name = f"{mode}, {padding}{', corners' if corners else ''}"
                made.append(S(name, real(1, 1, 3, 2), PLACES, mode, padding, corners, torch_second=False, second=False))
    return made


GRIDS = [
    _op(
        "grid_sample",
        [
            *_grids(),
            S(
                "volume",
                real(1, 1, 2, 3, 2),
                T((1, 1, 1, 2, 3), low=-0.9, high=0.9),
                align_corners=True,
                torch_second=False,
            ),
            S("second order", real(1, 1, 2, 2), given([[[[0.1, -0.3]]]]), align_corners=False, torch_second=False),
            V("far away", real(1, 1, 2, 2), given([[[[9.0, -9.0], [0.0, 0.0]]]]), align_corners=False),
        ],
        errors=[
            E("mode", ValueError, r"expected mode to be", real(1, 1, 2, 2), real(1, 2, 2, 2), "x"),
            E(
                "grid",
                RuntimeError,
                r"expected grid to have size 2 in last",
                real(1, 1, 2, 2),
                real(1, 2, 2, 3),
                align_corners=True,
            ),
        ],
    ),
    _op(
        "affine_grid",
        [
            S("images", real(1, 2, 3), (1, 1, 2, 3), align_corners=False),
            S("corners", real(2, 2, 3), (2, 1, 2, 2), align_corners=True),
            S("volumes", real(1, 3, 4), (1, 1, 2, 1, 2), align_corners=False),
        ],
        errors=[
            E("shape", ValueError, r"Expected a batch of 2D affine", real(1, 3, 4), (1, 1, 2, 2), align_corners=True)
        ],
    ),
    _op(
        "unfold",
        [
            S("plain", real(1, 1, 3, 3), 2),
            S("options", real(2, 2, 4, 3), (2, 1), 2, 1, 2),
            S("unbatched", real(2, 3, 3), 2),
            S("rectangular", real(1, 1, 3, 4), (1, 2), (1, 2), (0, 1), (2, 1)),
        ],
        errors=[E("small", RuntimeError, r"its components must be at least one", real(1, 1, 2, 2), 3)],
    ),
    _op(
        "fold",
        [
            S("plain", real(1, 4, 4), 3, 2),
            S("options", real(2, 4, 9), (4, 4), 2, 1, 1, 2),
            S("unbatched", real(4, 4), 3, 2),
            S("gaps", real(1, 4, 4), (4, 4), 2, stride=2),
        ],
        errors=[E("channels", RuntimeError, r"to be divisible by the product of", real(1, 3, 4), 3, 2)],
    ),
]

# ---------------------------------------------------------------------------------------------- losses


def _reductions(name: str, *args: Any, **kwargs: Any) -> list[Sample]:
    return [S(f"{name}, {r}" if name else r, *args, reduction=r, **kwargs) for r in ("mean", "sum", "none")]


LOSSES = [
    _op(
        "margin_ranking_loss",
        [*_reductions("", ONE, OTHER, SIGNS), S("margin", ONE, OTHER, SIGNS, 0.37)],
    ),
    _op("hinge_embedding_loss", [*_reductions("", ONE, SIGNS), S("margin", ONE, SIGNS, 0.37)]),
    _op("soft_margin_loss", _reductions("", real(3), SIGNS)),
    _op(
        "cosine_embedding_loss",
        [*_reductions("", real(3, 2), real(3, 2), SIGNS), S("margin", real(3, 2), real(3, 2), SIGNS, -0.9)],
        errors=[E("target", RuntimeError, r"0D or 1D target tensor expected", real(2, 2), real(2, 2), real(2, 2))],
    ),
    _op(
        "triplet_margin_loss",
        [
            *_reductions("", real(2, 3), real(2, 3), real(2, 3)),
            S("swap", real(2, 3), real(2, 3), real(2, 3), margin=5.0, swap=True),
            S("p", real(2, 3), real(2, 3), real(2, 3), margin=5.0, p=3),
        ],
    ),
    _op("triplet_margin_with_distance_loss", _reductions("", real(2, 3), real(2, 3), real(2, 3), margin=5.0)),
    _op(
        "poisson_nll_loss",
        [
            *_reductions("", real(3), positive(3, requires_grad=False)),
            S("rates", positive(3), positive(3, requires_grad=False), False),
            S("full", real(3), given([0.5, 1.5, 3.0], requires_grad=False), full=True),
        ],
    ),
    _op(
        "gaussian_nll_loss",
        [
            *_reductions("", real(2, 2), real(2, 2), positive(2, 2)),
            S("one variance a row", real(2, 2), real(2, 2), positive(2)),
            S("full", real(2, 2), real(2, 2), positive(2, 1), full=True),
        ],
        errors=[E("negative", ValueError, r"var has negative entry", real(2), real(2), given([-1.0, 1.0]))],
    ),
    _op(
        "multilabel_soft_margin_loss",
        [
            *_reductions("", real(2, 3), given([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]], requires_grad=False)),
            S(
                "weight",
                real(1, 3),
                given([[1.0, 0.0, 1.0]], requires_grad=False),
                given([0.5, 1.0, 2.0], requires_grad=False),
            ),
        ],
    ),
    _op(
        "multi_margin_loss",
        [
            *_reductions("", distinct(2, 3), index([2, 0]), torch_second=False),
            S("square", distinct(2, 3), index([2, 0]), 2, 0.7, torch_second=False),
            S(
                "weight",
                distinct(2, 3),
                index([2, 0]),
                weight=given([0.5, 1.0, 2.0], requires_grad=False),
                torch_second=False,
            ),
            S("one", ONE, index(1), torch_second=False),
        ],
    ),
    _op(
        "multilabel_margin_loss",
        [
            *_reductions("", distinct(2, 4), index([[3, 0, -1, 1], [1, -1, 0, 0]]), torch_second=False),
            S("one", ONE, index([1, -1, 0]), torch_second=False),
        ],
    ),
    Op(
        F + "ctc_loss",
        lambda torch, x, *args, **kwargs: torch.nn.functional.ctc_loss(x.log_softmax(-1), *args, **kwargs),
        [
            *_reductions("", real(4, 2, 3), index([[1, 2], [1, 1]]), (4, 4), (2, 2), torch_second=False, second=False),
            S("lengths", real(4, 2, 3), index([[1, 2], [2, 0]]), (3, 4), (2, 1), torch_second=False, second=False),
            S("in a row", real(4, 2, 3), index([1, 2, 1]), (4, 4), (2, 1), torch_second=False, second=False),
            S("blank", real(3, 1, 3), index([[0, 1]]), (3,), (2,), blank=2, torch_second=False, second=False),
            S("unbatched", real(3, 3), index([1, 2]), (3,), (2,), reduction="sum", torch_second=False, second=False),
            S("small", real(2, 1, 2), index([[1]]), (2,), (1,), torch_second=False),
            V("impossible, zeroed", real(1, 1, 3), index([[1, 2]]), (1,), (2,), zero_infinity=True),
        ],
    ),
]

# ---------------------------------------------------------------------------------------------- random functions


def _dropouts() -> list[Op]:
    made = []
    for name, size in (
        ("dropout1d", (1, 2, 2)),
        ("dropout2d", (1, 2, 2, 1)),
        ("dropout3d", (1, 2, 1, 2, 1)),
        ("alpha_dropout", (2, 3)),
        ("feature_alpha_dropout", (1, 2, 2)),
    ):
        samples = [
            S("evaluation", real(*size), 0.5, False),
            S("p 0", real(*size), 0.0, True),
            S("p 1", real(*size), 1.0, True),
        ]
        errors = [E("p", ValueError, r"dropout probability has to be between 0 and 1", real(*size), 1.5)]
        made.append(_op(name, samples, errors=errors, view=None))
    return made


RANDOM = [*_dropouts(), _op("rrelu", [S("evaluation", nonzero(2, 3)), S("bounds", nonzero(3), 0.1, 0.2)])]

OPS = [ATTENTION, MULTIHEAD, BAG, *GRIDS, *LOSSES, *RANDOM]
