"""Samples of nn.functional: activations, softmaxes, losses, layer_norm, embedding, dropout, linear."""

from __future__ import annotations

from typing import Any

import numpy as np

from samples.spec import Attr, E, Op, S, Sample, T, V, given, index, integers, nonzero, real

F = "nn.functional."
NAN, INF = float("nan"), float("inf")
FAR = [-1000.0, -30.0, 0.0, 30.0, 1000.0]


def activation(name: str, samples: list[Sample], domain: Any = real, **options: Any) -> Op:
    """A pointwise function of nn.functional."""
    common = [
        S("matrix", domain(2, 3)),
        S("0-d", domain(), as_complex=False),
        S("empty", real(0, 3), as_complex=False),
        S("transposed", domain(2, 3, layout="transposed"), as_complex=False),
        S("expanded", domain(2, 3, layout="expanded"), as_complex=False),
        V("far", given(FAR)),
        V("infinities and nan", given([INF, -INF, NAN])),
        V("float32", given(FAR, "float32")),
    ]
    return Op(F + name, options.pop("fn", F + name), common + samples, **options)


ACTIVATIONS = [
    activation(
        "relu",
        [V("int64", integers(3))],
        nonzero,
        reference=lambda x: np.maximum(x, 0),
        errors=[E("bool", RuntimeError, r"Boolean inputs not supported for relu", T((2,), "bool"))],
    ),
    Op(
        "relu",
        "relu",
        [S("matrix", nonzero(2, 3)), V("kink", given([0.0, -0.0, NAN]))],
        method="relu",
        inplace="relu_",
        reference=lambda x: np.maximum(x, 0),
    ),
    activation("sigmoid", [], supports_complex=True),
    activation("tanh", [], supports_complex=True, reference=np.tanh),
    activation(
        "softplus",
        [
            S("beta", real(2, 3), 2.5),
            S("threshold", given([-3.0, 0.5, 0.9, 1.5, 3.0]), 1.0, 1.2),
            S("keywords", given([-3.0, 0.2, 0.4, 3.0]), beta=2, threshold=1),
            V("at the threshold", given([20.0, 19.0, 21.0])),
        ],
    ),
    activation(
        "gelu",
        [
            S("none", real(2, 3), approximate="none"),
            S("tanh", real(2, 3), approximate="tanh"),
            V("tanh, far", given(FAR), approximate="tanh"),
        ],
        errors=[
            E(
                "approximate",
                RuntimeError,
                r"approximate argument must be either none or tanh",
                real(2),
                approximate="erf",
            )
        ],
    ),
    activation("silu", []),
    activation("mish", [], extra=True),
    activation("leaky_relu", [S("slope", nonzero(2, 3), 0.2)], nonzero, extra=True),
    activation("elu", [S("alpha", nonzero(2, 3), 0.5)], nonzero, extra=True),
    activation("logsigmoid", [], extra=True),
    activation("hardtanh", [], lambda *s, **k: T(s, avoid=(-1.0, 1.0), **k), extra=True),
]

# ---------------------------------------------------------------------------------------------- softmax


def _softmaxes(name: str) -> list[Op]:
    samples = [
        ("last", (real(2, 3), -1), {}),
        ("first", (real(2, 3), 0), {}),
        ("three dimensions", (real(2, 3, 2), 1), {}),
        ("0-d", (real(), 0), {}),
        ("vector", (real(3), 0), {}),
        ("empty", (real(0, 3), 1), {}),
        ("transposed", (real(2, 3, layout="transposed"), 1), {}),
        ("expanded", (real(2, 3, layout="expanded"), 0), {}),
        ("large", (given([[1000.0, 1000.5], [-1000.0, -1000.5]]), 1), {}),
        ("dtype", (real(3), -1), {"dtype": Attr("float64")}),
    ]
    values = [
        ("dtype of float32", (real(3, dtype="float32"), -1), {"dtype": Attr("float64")}),
        ("int64 with dtype", (integers(3), -1), {"dtype": Attr("float32")}),
        ("infinities", (given([[-INF, 0.0], [INF, 0.0], [-INF, -INF]]), 1), {}),
    ]
    errors = [E("dim", IndexError, r"Dimension out of range", real(2, 3), 2)]

    def fresh(keyword: bool) -> list[Sample]:
        made = [S(n, *a, **k) for n, a, k in samples] + [V(n, *a, **k) for n, a, k in values]
        if keyword:
            made.append(S("keyword dim", real(2, 3), dim=-2))
        return made

    return [
        Op(name, name, fresh(True), errors=errors, method=name),
        Op(F + name, F + name, fresh(True), errors=errors),
    ]


SOFTMAXES = [*_softmaxes("softmax"), *_softmaxes("log_softmax")]

# ---------------------------------------------------------------------------------------------- losses

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

# ---------------------------------------------------------------------------------------------- layers

LAYERS = [
    Op(
        F + "layer_norm",
        F + "layer_norm",
        [
            S("plain", real(2, 3), (3,)),
            S("weight", real(2, 3), (3,), real(3)),
            S("weight and bias", real(2, 3), (3,), real(3), real(3)),
            S("bias only", real(2, 3), (3,), None, real(3), torch_second=False),
            S("two dimensions", real(2, 2, 3), (2, 3), real(2, 3), real(2, 3)),
            S("leading dimensions", real(2, 2, 3), (3,), real(3), real(3)),
            S("all dimensions", real(2, 3), (2, 3)),
            S("list", real(2, 3), [3]),
            S("eps", real(2, 3), (3,), real(3), real(3), 0.1),
            S("keywords", real(2, 3), normalized_shape=(3,), weight=real(3), bias=real(3), eps=1e-3),
            S("input without grad", real(2, 3, requires_grad=False), (3,), real(3), real(3)),
            S("weight without grad", real(2, 3), (3,), real(3, requires_grad=False), real(3, requires_grad=False)),
            S("transposed", real(2, 3, layout="transposed"), (3,), real(3), real(3, layout="strided")),
            S("expanded", real(2, 3, layout="expanded"), (3,)),
            S("empty", real(0, 3), (3,), real(3), real(3)),
            V("constant rows", given([[1.0, 1.0], [2.0, 2.0]]), (2,)),
            V("float32", real(2, 3, dtype="float32"), (3,), real(3, dtype="float32")),
        ],
        errors=[
            E(
                "shape",
                RuntimeError,
                r"Given normalized_shape=\[2\], expected input with shape \[\*, 2\]",
                real(2, 3),
                (2,),
            ),
            E(
                "weight",
                RuntimeError,
                r"Expected weight to be of same shape as normalized_shape",
                real(2, 3),
                (3,),
                real(2),
            ),
        ],
    ),
    Op(
        F + "embedding",
        F + "embedding",
        [
            S("vector", index([0, 2]), real(3, 2)),
            S("matrix", index([[0, 2], [1, 0]]), real(3, 2)),
            S("0-d", index(1), real(3, 2)),
            S("repeats", index([1, 1, 0, 1]), real(3, 2)),
            S("empty", index([]), real(3, 2), torch_second=False),
            S("transposed weight", index([0, 2]), real(3, 2, layout="transposed")),
            S("int32", given([0, 2], "int32"), real(3, 2)),
            # The row at padding_idx takes part in the value and not in the gradient, so differences disagree.
            V("padding_idx", index([0, 2, 1, 2]), real(3, 2), padding_idx=2),
            V("negative padding_idx", index([0, 2, 1, 2]), real(3, 2), -1),
            S("unused padding_idx", index([0, 1, 1]), real(3, 2), padding_idx=2),
            V("scale_grad_by_freq", index([1, 1, 0, 1]), real(3, 2), scale_grad_by_freq=True),
            V(
                "scale_grad_by_freq, padding_idx",
                index([1, 1, 0, 2]),
                real(3, 2),
                padding_idx=0,
                scale_grad_by_freq=True,
            ),
        ],
        errors=[
            E("range", IndexError, r"index out of range in self", index([3]), real(3, 2)),
            E(
                "dtype",
                RuntimeError,
                r"Expected tensor for argument #1 'indices' to have one of the following scalar types",
                real(2),
                real(3, 2),
            ),
            E(
                "padding_idx",
                AssertionError,
                r"Padding_idx must be within num_embeddings",
                index([0]),
                real(3, 2),
                padding_idx=3,
            ),
        ],
    ),
    Op(
        F + "dropout",
        F + "dropout",
        [
            S("evaluation", real(2, 3), 0.5, False),
            S("keywords", real(2, 3), p=0.5, training=False),
            S("p 0", real(2, 3), 0.0, True),
            S("p 1", real(2, 3), 1.0, True),
            S("0-d, p 1", real(), 1.0),
            S("empty", real(0, 3), 0.5),
        ],
        errors=[E("p", ValueError, r"dropout probability has to be between 0 and 1, but got 1.5", real(2), 1.5)],
        view=None,
    ),
    Op(
        F + "linear",
        F + "linear",
        [
            S("plain", real(2, 3), real(2, 3)),
            S("bias", real(2, 3), real(2, 3), real(2)),
            S("keyword bias", real(2, 3), real(2, 3), bias=real(2)),
            S("vector", real(3), real(2, 3), real(2), as_complex=False),
            S("vector weight", real(2, 3), real(3), as_complex=False),
            S("batch", real(2, 2, 2), real(1, 2), real(1), as_complex=False),
            S("empty batch", real(0, 3), real(2, 3), real(2), as_complex=False),
            S("no input features", real(2, 0), real(2, 0), real(2), as_complex=False),
            S("input without grad", real(2, 3, requires_grad=False), real(2, 3), real(2), as_complex=False),
            S("only bias", real(2, 3, requires_grad=False), real(2, 3, requires_grad=False), real(2), as_complex=False),
            S(
                "transposed",
                real(2, 3, layout="transposed"),
                real(2, 3, layout="transposed"),
                real(2),
                as_complex=False,
            ),
            S("strided", real(2, 3, layout="strided"), real(2, 3, layout="strided"), as_complex=False),
            V("float32", real(2, 3, dtype="float32"), real(2, 3, dtype="float32"), real(2, dtype="float32")),
        ],
        errors=[
            E(
                "shapes",
                RuntimeError,
                r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x2\)",
                real(2, 3),
                real(2, 4),
            ),
            E(
                "dtypes",
                RuntimeError,
                r"expected m1 and m2 to have the same dtype",
                real(2, 3),
                real(2, 3, dtype="float32"),
            ),
        ],
        supports_complex=True,
        reference=lambda x, w, bias=0: x @ w.T + bias,
    ),
]

OPS = [*ACTIVATIONS, *SOFTMAXES, *LOSSES, *LAYERS]
