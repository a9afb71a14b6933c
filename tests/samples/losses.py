"""Samples of losses."""

from __future__ import annotations

from typing import Any

from samples.shared import _op, more, refused, without
from samples.spec import E, Op, S, Sample, T, V, distinct, given, index, integers, mask, nonzero, positive, real

F = "nn.functional."
NAN, INF = float("nan"), float("inf")


WEIGHT = given([0.5, 1.5, 2.0], requires_grad=False)
REDUCTIONS = ("mean", "sum", "none")


def _targets(**kwargs: Any) -> list[Sample]:
    """What nll_loss and cross_entropy have in common: class targets."""
    samples = [
        S("default", real(3, 3), index([0, 2, 1]), **kwargs),
        S("unbatched", real(3), index(1), **kwargs),
        S("unbatched, weight", real(3), index(1), WEIGHT, **kwargs),
        S("repeated class", real(3, 2), index([1, 1, 1]), **kwargs),
        S("positional weight", real(2, 3), index([2, 0]), WEIGHT, **kwargs),
        S("transposed", real(3, 3, layout="transposed"), index([0, 2, 1]), **kwargs),
        S("one more dimension", real(2, 3, 2), index([[0, 2], [1, 0]]), **kwargs),
        S("image", real(1, 3, 2, 2), index([[[0, 2], [1, 0]]]), **kwargs),
        S(
            "image, weight, none",
            real(1, 3, 2, 2),
            index([[[0, 2], [1, 0]]]),
            weight=WEIGHT,
            reduction="none",
            **kwargs,
        ),
        S("ignored image", real(1, 3, 2, 2), index([[[0, 2], [-1, 0]]]), ignore_index=-1, **kwargs),
        V("all ignored", real(2, 3), index([-100, -100]), **kwargs),
        V("all ignored, sum", real(2, 3), index([-100, -100]), reduction="sum", **kwargs),
        V("infinite", given([[-INF, 0.0, 1.0]]), index([0]), **kwargs),
        V("empty", real(0, 3), T((0,), "int64"), **kwargs),
        V("empty, sum", real(0, 3), T((0,), "int64"), reduction="sum", **kwargs),
        V("float32", real(2, 3, dtype="float32"), index([0, 1]), **kwargs),
    ]
    for reduction in REDUCTIONS:
        samples += [
            S(f"{reduction}", real(3, 3), index([0, 2, 1]), reduction=reduction, **kwargs),
            S(f"{reduction}, weight", real(3, 3), index([0, 2, 1]), weight=WEIGHT, reduction=reduction, **kwargs),
            S(f"{reduction}, ignored default", real(3, 3), index([0, -100, 1]), reduction=reduction, **kwargs),
            S(
                f"{reduction}, weight, ignore_index",
                real(3, 3),
                index([0, 2, 1]),
                weight=WEIGHT,
                ignore_index=2,
                reduction=reduction,
                **kwargs,
            ),
        ]
    return samples


TARGET_ERRORS = [
    E("class", IndexError, r"Target 5 is out of bounds", real(2, 3), index([0, 5])),
    E(
        "batch",
        ValueError,
        r"Expected input batch_size \(2\) to match target batch_size \(3\)",
        real(2, 3),
        index([0, 1, 2]),
    ),
    E("reduction", ValueError, r"is not a valid value for reduction", real(2, 3), index([0, 1]), reduction="median"),
    E(
        "weight",
        RuntimeError,
        r"weight tensor should be defined either for all 3 classes or no classes",
        real(2, 3),
        index([0, 1]),
        given([1.0, 2.0], requires_grad=False),
    ),
]

LOSSES = [
    Op(F + "nll_loss", F + "nll_loss", _targets(), errors=TARGET_ERRORS),
    Op(
        F + "cross_entropy",
        F + "cross_entropy",
        [
            *_targets(),
            *[
                S(f"label_smoothing, {r}", real(2, 3), index([0, 2]), label_smoothing=0.2, reduction=r)
                for r in REDUCTIONS
            ],
            *[
                S(
                    f"label_smoothing, weight, ignore_index, {r}",
                    real(3, 3),
                    index([0, 2, 1]),
                    weight=WEIGHT,
                    ignore_index=1,
                    label_smoothing=0.3,
                    reduction=r,
                )
                for r in REDUCTIONS
            ],
            *[S(f"probabilities, {r}", real(2, 3), real(2, 3, low=0.1, high=0.9), reduction=r) for r in REDUCTIONS],
            S("probabilities without grad", real(2, 3), real(2, 3, low=0.1, high=0.9, requires_grad=False)),
            S("probabilities, unbatched", real(3), real(3, low=0.1, high=0.9)),
            S("probabilities, weight", real(2, 3), real(2, 3, low=0.1, high=0.9), weight=WEIGHT),
            S("probabilities, smoothed", real(2, 3), real(2, 3, low=0.1, high=0.9), label_smoothing=0.1),
            S(
                "probabilities, weight, smoothed, none",
                real(2, 3),
                real(2, 3, low=0.1, high=0.9),
                weight=WEIGHT,
                label_smoothing=0.1,
                reduction="none",
            ),
            S("probabilities, image", real(1, 3, 2), real(1, 3, 2, low=0.1, high=0.9)),
        ],
        errors=TARGET_ERRORS,
    ),
    Op(
        F + "mse_loss",
        F + "mse_loss",
        [
            S("default", real(2, 3), real(2, 3)),
            *[S(f"{r}", real(2, 3), real(2, 3), reduction=r) for r in REDUCTIONS],
            S("target without grad", real(2, 3), real(2, 3, requires_grad=False)),
            S("0-d", real(), real()),
            S("with broadcasting", real(2, 3), real(3)),
            S("transposed", real(2, 3, layout="transposed"), real(2, 3)),
            S("weight", real(2, 3), real(2, 3), weight=given([[1.0, 2.0, 3.0]] * 2, requires_grad=False)),
            S("empty, sum", real(0, 3), real(0, 3), reduction="sum"),
            V("empty", real(0, 3), real(0, 3)),
            V("mixed dtypes", real(3, dtype="float32"), real(3)),
        ],
        errors=[
            E(
                "shapes",
                RuntimeError,
                r"The size of tensor a \(3\) must match the size of tensor b \(4\)",
                real(3),
                real(4),
            ),
            E(
                "reduction",
                ValueError,
                r"median is not a valid value for reduction",
                real(3),
                real(3),
                reduction="median",
            ),
        ],
    ),
    Op(
        F + "l1_loss",
        F + "l1_loss",
        [S(f"{r}", real(2, 3, low=0.5), real(2, 3, high=0.2), reduction=r) for r in REDUCTIONS],
        extra=True,
    ),
    Op(
        F + "smooth_l1_loss",
        F + "smooth_l1_loss",
        [S(f"{r}", given([0.3, 2.0, -1.7]), given([0.1, 0.2, 0.3]), reduction=r) for r in REDUCTIONS],
        extra=True,
    ),
    Op(
        F + "binary_cross_entropy_with_logits",
        F + "binary_cross_entropy_with_logits",
        [S(f"{r}", real(2, 3), real(2, 3, low=0.1, high=0.9, requires_grad=False), reduction=r) for r in REDUCTIONS],
        extra=True,
    ),
]
ONE, OTHER = given([-0.7, 0.4, 1.7]), given([0.3, 1.9, -1.1])
SIGNS = given([1.0, -1.0, 1.0], requires_grad=False)


def _reductions(name: str, *args: Any, **kwargs: Any) -> list[Sample]:
    return [S(f"{name}, {r}" if name else r, *args, reduction=r, **kwargs) for r in ("mean", "sum", "none")]


MADE_OF_OTHERS = [
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

PLAIN = given([1.0, -1.0], requires_grad=False)


TOP_LEVEL = [
    Op(
        "torch.kl_div",
        "kl_div",
        [
            S("elements", real(2, 2), positive(2, 2)),
            S("mean", real(2, 2), positive(2, 2), 1),
            S("sum, logarithms", real(2, 2), real(2, 2), 2, log_target=True),
            S("none", real(2, 2), positive(2, 2), 0),
        ],
    ),
    Op(
        "torch.hinge_embedding_loss",
        "hinge_embedding_loss",
        [S("mean", given([0.3, 0.7]), PLAIN), S("sum", given([0.3, 0.7]), PLAIN, 2.0, 2)],
    ),
    Op(
        "torch.margin_ranking_loss",
        "margin_ranking_loss",
        [
            S("mean", given([0.3, 0.7]), given([1.1, 0.2]), PLAIN),
            S("none", given([0.3, 0.7]), given([1.1, 0.2]), PLAIN, 0.5, 0),
        ],
    ),
    Op(
        "torch.cosine_embedding_loss",
        "cosine_embedding_loss",
        [S("mean", nonzero(2, 2), nonzero(2, 2), PLAIN), S("sum", nonzero(2, 2), nonzero(2, 2), PLAIN, 0.1, 2)],
    ),
    Op(
        "torch.poisson_nll_loss",
        "poisson_nll_loss",
        [
            S("mean", real(2, 2), positive(2, 2, requires_grad=False), True, False, 1e-8, 1),
            S("full", positive(2, 2), positive(2, 2, requires_grad=False), False, True, 1e-8, 0),
        ],
    ),
    Op(
        "torch.triplet_margin_loss",
        "triplet_margin_loss",
        [
            S("mean", real(2, 2), real(2, 2), real(2, 2), 5.0),
            S("sum, swap", real(2, 2), real(2, 2), real(2, 2), 9.0, 2.0, 1e-6, True, 2),
        ],
    ),
    Op(
        "torch.ctc_loss",
        lambda torch, x, *args: torch.ctc_loss(x.log_softmax(-1), *args),
        [
            S(
                "mean",
                given([[[-1.1, -0.9, -1.3]], [[-0.8, -1.5, -1.2]]]),
                index([[1]]),
                index([2]),
                index([1]),
                torch_second=False,
            ),
            S(
                "sum",
                given([[[-1.1, -0.9, -1.3]], [[-0.8, -1.5, -1.2]]]),
                index([[2]]),
                [2],
                [1],
                0,
                2,
                torch_second=False,
            ),
        ],
    ),
]


EVERY_REDUCTION = ("none", "mean", "sum")
PROBABLE, TRUTH = given([0.2, 0.7, 0.45]), given([0.9, 0.1, 0.5])
X, Y = given([-0.7, 0.4, 1.7]), given([0.2, 1.9, -1.1])


def reduced(x: Any, y: Any, **options: Any) -> list[Sample]:
    """A loss with every reduction."""
    return [S(reduction, x, y, reduction=reduction, **options) for reduction in EVERY_REDUCTION]


DISTANCES = [
    Op(
        F + "binary_cross_entropy",
        F + "binary_cross_entropy",
        [
            *reduced(PROBABLE, TRUTH),
            S("weight", PROBABLE, TRUTH, positive(3, requires_grad=False)),
            S("weight by name", PROBABLE, TRUTH, weight=given(2.0, requires_grad=False), reduction="sum"),
            V("certain", given([0.0, 1.0, 0.5]), given([0.0, 0.0, 1.0], requires_grad=False), torch_first=False),
        ],
        [
            E("sizes", ValueError, "Using a target size", PROBABLE, given([0.1])),
            E("out of range", RuntimeError, "between 0 and 1", given([1.5]), given([1.0])),
            E("weight", RuntimeError, "not differentiable with respect to argument 'weight'", PROBABLE, TRUTH, real(3)),
        ],
    ),
    Op(
        F + "huber_loss",
        F + "huber_loss",
        [*reduced(X, Y), S("delta", X, Y, delta=0.3), S("weight", X, Y, weight=positive(3, requires_grad=False))],
    ),
    Op(
        F + "kl_div",
        F + "kl_div",
        [
            *reduced(X, TRUTH),
            S("batch mean", real(2, 2), positive(2, 2), reduction="batchmean"),
            S("log target", X, Y, log_target=True),
            V("zero", X, given([0.0, 1.0, 0.5], requires_grad=False)),
        ],
    ),
]
P, Q = given([-0.7, 0.4, 1.7]), given([0.3, 1.9, -1.1])
WEIGHTS = positive(3, requires_grad=False)


def _old_reductions(name: str, *args: Any) -> Op:
    """The arguments `size_average` and `reduce`, which came before `reduction`."""
    return more(
        F + name,
        V("not reduced", *args, reduce=False),
        V("summed", *args, size_average=False),
        V("averaged", *args, size_average=True, reduce=True),
    )


FLOAT = given([2.0], requires_grad=False)
BOOL, COMPLEX = mask([True, False]), T((2,), "complex128")


OPS = [
    *LOSSES,
    *MADE_OF_OTHERS,
    *TOP_LEVEL,
    Op(
        "nn.functional.linear_cross_entropy",
        "nn.functional.linear_cross_entropy",
        [
            S("small", real(2, 1), real(3, 1), index([0, 2])),
            S(
                "bias and weight",
                real(2, 3),
                real(4, 3),
                index([0, 2]),
                linear_bias=real(4),
                weight=positive(4, requires_grad=False),
                reduction="sum",
            ),
            S("places", real(2, 2), real(3, 2, 2), index([[0, 2], [1, 1]]), reduction="none"),
            S("probabilities", real(2, 2), real(3, 2), positive(2, 3), label_smoothing=0.1),
        ],
        errors=[
            E(
                "features",
                RuntimeError,
                "expected equal input and linear_weight last dimensions",
                real(2, 1),
                real(3, 2),
                index([0, 2]),
            )
        ],
    ),
    *DISTANCES,
    _old_reductions("cosine_embedding_loss", real(3, 2), real(3, 2), SIGNS),
    _old_reductions("cross_entropy", real(3, 2), index([0, 1, 1])),
    _old_reductions("nll_loss", real(3, 2), index([0, 1, 1])),
    _old_reductions("hinge_embedding_loss", P, SIGNS),
    _old_reductions("l1_loss", P, Q),
    _old_reductions("mse_loss", P, Q),
    _old_reductions("margin_ranking_loss", P, Q, SIGNS),
    _old_reductions("multi_margin_loss", real(3, 2), index([0, 1, 1])),
    _old_reductions("multilabel_margin_loss", real(2, 3), index([[0, -1, 0], [2, 1, -1]])),
    _old_reductions("multilabel_soft_margin_loss", real(2, 2), given([[0.0, 1.0], [1.0, 1.0]], requires_grad=False)),
    _old_reductions("soft_margin_loss", P, SIGNS),
    _old_reductions("binary_cross_entropy", given([0.2, 0.7]), given([0.9, 0.1])),
    _old_reductions("kl_div", P, given([0.9, 0.1, 0.4])),
    _old_reductions("poisson_nll_loss", P, positive(3)),
    _old_reductions("smooth_l1_loss", P, Q),
    _old_reductions("binary_cross_entropy_with_logits", P, given([0.2, 0.5, 0.9])),
    _old_reductions("triplet_margin_loss", real(2, 3), real(2, 3), real(2, 3)),
    Op(
        "binary_cross_entropy_with_logits, weights",
        F + "binary_cross_entropy_with_logits",
        [
            S("weight", P, given([0.2, 0.5, 0.9]), WEIGHTS),
            S("positive", P, given([0.2, 0.5, 0.9]), pos_weight=WEIGHTS),
            S("both", real(1, 3), given([[0.2, 0.5, 0.9]]), WEIGHTS, pos_weight=WEIGHTS, reduction="sum"),
        ],
        [
            E("weight", RuntimeError, "not differentiable with respect to argument 'weight'", P, Q, positive(3)),
            E(
                "positive",
                RuntimeError,
                "not differentiable with respect to argument 'pos_weight'",
                P,
                Q,
                pos_weight=positive(3),
            ),
        ],
    ),
    Op(
        "nll_loss, weight",
        F + "nll_loss",
        [S("weight", real(2, 3), index([0, 2]), WEIGHTS)],
        [
            E(
                "weight",
                RuntimeError,
                "not differentiable with respect to argument 'weight'",
                real(2, 3),
                index([0, 2]),
                positive(3),
            )
        ],
    ),
    Op("l1_loss, weight", F + "l1_loss", [S("weight", P, Q, weight=positive(3, requires_grad=False))]),
    Op("smooth_l1_loss, beta", F + "smooth_l1_loss", [S("half", P, Q, beta=0.5), V("none", P, Q, beta=0.0)]),
    Op(
        "gaussian_nll_loss, eps",
        F + "gaussian_nll_loss",
        [V("eps", P, Q, given([0.1, 0.5, 2.0]), eps=0.3), S("full", P, Q, positive(3), full=True)],
        [E("size", ValueError, "var is of incorrect size", real(2, 2, 3), real(2, 2, 3), positive(2, 2, 2))],
    ),
    Op("poisson_nll_loss, eps", F + "poisson_nll_loss", [S("eps", positive(3), positive(3), log_input=False, eps=0.5)]),
    Op(
        "triplet_margin_loss, eps",
        F + "triplet_margin_loss",
        [
            S("eps", real(2, 3), real(2, 3), real(2, 3), eps=0.1),
            S("swap", real(2, 3), real(2, 3), real(2, 3), swap=True),
        ],
    ),
    Op(
        "triplet_margin_with_distance_loss, options",
        lambda torch, *args, **kwargs: torch.nn.functional.triplet_margin_with_distance_loss(
            *args, distance_function=lambda a, b: (a - b).abs().sum(-1), **kwargs
        ),
        [
            S("distance", real(2, 3), real(2, 3), real(2, 3)),
            S("swap", real(2, 3), real(2, 3), real(2, 3), swap=True, margin=2.0),
        ],
        [
            E(
                "ranks",
                RuntimeError,
                "are expected to have the same number of dimensions",
                real(3),
                real(2, 3),
                real(2, 3),
            )
        ],
    ),
    Op(
        "multi_margin_loss, shapes",
        F + "multi_margin_loss",
        [S("0-d", real(), index(0), torch_second=False), S("vector", real(3), index(1), torch_second=False)],
        [
            E("empty", RuntimeError, "Expected non-empty vector or matrix", real(2, 0), index([0, 0])),
            E(
                "weight",
                RuntimeError,
                "inconsistent weight size",
                real(2, 3),
                index([0, 0]),
                weight=positive(2, requires_grad=False),
            ),
            E("target", RuntimeError, "target tensor should be 1-D|inconsistent target size", real(2, 3), index([0])),
        ],
    ),
    Op(
        "multilabel_margin_loss, shapes",
        F + "multilabel_margin_loss",
        [S("vector", real(3), index([2, -1, 0]), torch_second=False)],
        [
            E("target", RuntimeError, "inconsistent target size", real(2, 3), index([0, 1, 2])),
            E("empty", RuntimeError, "Expected non-empty vector or matrix", real(2, 0), index([[0], [0]])),
        ],
    ),
    more("multilabel_soft_margin_loss", S("broadcast", real(3), real(1, 3)), fn=F + "multilabel_soft_margin_loss"),
    refused(
        F + "kl_div",
        E("integers", RuntimeError, "Integral inputs not supported", integers(2), real(2)),
        E("complex", RuntimeError, "Complex inputs not supported", COMPLEX, real(2)),
    ),
    refused(F + "mse_loss", E("complex", NotImplementedError, without("mse_cpu", "ComplexDouble"), COMPLEX, COMPLEX)),
    refused(
        F + "cosine_embedding_loss",
        E("ranks", RuntimeError, "1D target tensor expects 2D input", real(2, 2), real(1, 2, 2), index([1, 1])),
    ),
    refused(
        F + "ctc_loss",
        E("float lengths", RuntimeError, "must be integral", real(2, 1, 3), index([[1]]), FLOAT, index([1])),
    ),
]
