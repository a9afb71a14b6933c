"""Samples of the activations that are made of other operators, and of distances and losses between two tensors."""

from __future__ import annotations

from typing import Any

from samples.spec import Attr, E, Op, S, Sample, V, given, index, nonzero, positive, real

F = "nn.functional."
NAN, INF = float("nan"), float("inf")
KNEES = given([-4.0, -2.5, -0.7, 0.2, 0.8, 2.4, 3.5, 7.0])
ODD = given([NAN, INF, -INF, 0.0, -0.0])


def activation(name: str, *samples: Sample, **options: Any) -> Op:
    """An activation away from its kinks, at what is not a number, and in other precisions and layouts."""
    precise = options.pop("precise", True)
    common = [
        S("knees", KNEES, torch_first=precise),
        S("strided", nonzero(2, 3, layout="strided"), torch_first=precise),
        S("0-d", given(0.3), torch_first=precise),
        V("odd", ODD, torch_first=precise and options.pop("at_infinity", True)),
        V("empty", real(0, 3)),
        V("float32", given([-4.0, -0.7, 0.3, 5.0], "float32")),
        V("float16", given([-3.5, -0.5, 0.25, 4.0], "float16")),
    ]
    return Op(F + name, F + name, [*common, *samples], **options)


ACTIVATIONS = [
    activation("celu", S("alpha", KNEES, 0.5), S("alpha by name", KNEES, alpha=2.0)),
    activation("hardshrink", S("lambd", KNEES, 1.0), S("lambd by name", KNEES, lambd=0.3)),
    activation(
        "softshrink",
        S("lambd", KNEES, 1.0),
        S("lambd by name", KNEES, lambd=0.3),
        errors=[E("negative", RuntimeError, r"lambda must be in range \[0", real(2), -0.5)],
    ),
    activation("hardsigmoid", precise=False),  # torch has a sixth in single precision
    activation("hardswish"),
    activation("relu6"),
    activation("selu"),
    activation("softsign", supports_complex=True, at_infinity=False),  # torch divides infinity by itself
    activation("tanhshrink"),
    Op(
        F + "threshold",
        F + "threshold",
        [
            S("above", KNEES, 0.5, -1.0),
            S("by name", KNEES, threshold=-1.0, value=20.0),
            V("at it", given([1.0, 0.5, 2.0]), 1.0, 3.0),
            V("odd", ODD, 0.0, 1.0),
            V("int64", given([1, 5, -3], "int64"), 2, 7),
        ],
    ),
    Op(
        F + "prelu",
        F + "prelu",
        [
            S("one", nonzero(2, 3), given([0.25])),
            S("0-d weight", nonzero(3), given(0.25)),
            S("channels", nonzero(2, 3, 2), real(3)),
            S("0-d", given(-0.5), given([0.25])),
            V("kink", given([0.0, -0.0, 1.0]), given([0.5]), torch_first=False),  # torch's modes disagree
        ],
        [
            E("channels", RuntimeError, "Mismatch of parameter numbers", real(2, 3), real(2)),
            E("matrix", RuntimeError, "to be a scalar or 1D tensor", real(2, 4), real(2, 2)),
            E("0-d", RuntimeError, "Not allow zero-dim input tensor", real(), real(2)),
        ],
    ),
    Op(
        F + "glu",
        F + "glu",
        [
            S("last", real(2, 4)),
            S("first", real(4, 2), 0),
            S("by name", real(2, 4), dim=-1),
            V("float32", real(4, dtype="float32")),
        ],
        [
            E("odd", RuntimeError, "Halving dimension must be even", real(3)),
            E("0-d", RuntimeError, "glu does not support 0-dimensional tensors|glu does not support scalars", real()),
        ],
    ),
    Op(
        F + "softmin",
        F + "softmin",
        [
            S("last", real(2, 3), -1),
            S("by name", real(3, 2), dim=0),
            V("dtype", real(3, dtype="float32"), dim=0, dtype=Attr("float64")),
            V("far", given([1000.0, 0.0, -1000.0]), 0),
        ],
    ),
    Op(
        F + "normalize",
        F + "normalize",
        [
            S("rows", nonzero(2, 3)),
            S("columns", nonzero(2, 3), dim=0),
            S("p", nonzero(2, 3), p=3.0),
            S("one", nonzero(2, 3), p=1.0),
            S("eps", nonzero(2, 2), eps=5.0),
            V("zeros", given([[0.0, 0.0], [1.0, 2.0]])),
        ],
        supports_complex=True,
    ),
    Op(
        F + "cosine_similarity",
        F + "cosine_similarity",
        [
            S("columns", nonzero(2, 3), nonzero(2, 3)),
            S("rows", nonzero(3, 2), nonzero(3, 2), dim=0),
            S("broadcast", nonzero(2, 3), nonzero(3), dim=-1),
            S("vectors", nonzero(3), nonzero(3), 0),
            V("eps", given([[0.0, 0.0]]), given([[1.0, 2.0]]), eps=0.5),
            V("float32", nonzero(2, 3, dtype="float32"), nonzero(2, 3, dtype="float32")),
        ],
    ),
    Op(
        F + "pairwise_distance",
        F + "pairwise_distance",
        [
            S("rows", real(2, 3), real(2, 3)),
            S("p", real(2, 3), real(2, 3), p=3.0),
            S("eps", real(2, 2), real(2, 2), eps=0.1),
            S("keepdim", real(2, 3), real(2, 3), keepdim=True),
            S("broadcast", real(2, 3), real(3)),
        ],
        supports_complex=True,
    ),
    Op(
        F + "bilinear",
        F + "bilinear",
        [
            S("rows", real(2, 2), real(2, 1), real(2, 2, 1)),
            S("bias", real(2, 2), real(2, 2), real(1, 2, 2), real(1)),
            S("batches", real(2, 1, 2), real(2, 1, 1), real(2, 2, 1), bias=real(2)),
        ],
    ),
    Op(
        F + "one_hot",
        F + "one_hot",
        [
            V("classes", index([0, 2, 1]), 4),
            V("found", index([[0, 2], [1, 1]])),
            V("by name", index([1]), num_classes=3),
            V("0-d", index(2), 3),
        ],
        [
            E("negative", RuntimeError, "Class values must be non-negative", index([-1]), 3),
            E("too many", RuntimeError, "Class values must be smaller than num_classes", index([3]), 3),
            E("not long", RuntimeError, "one_hot is only applicable to index tensor", given([1], "int32"), 3),
        ],
        differentiable=False,
    ),
]

# ---------------------------------------------------------------------------------------------- losses of two tensors

REDUCTIONS = ("none", "mean", "sum")
PROBABLE, TRUTH = given([0.2, 0.7, 0.45]), given([0.9, 0.1, 0.5])
X, Y = given([-0.7, 0.4, 1.7]), given([0.2, 1.9, -1.1])


def reduced(x: Any, y: Any, **options: Any) -> list[Sample]:
    """A loss with every reduction."""
    return [S(reduction, x, y, reduction=reduction, **options) for reduction in REDUCTIONS]


LOSSES = [
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

OPS = [*ACTIVATIONS, *LOSSES]
