"""Samples of activations and their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from samples.pointwise import unary
from samples.shared import more, refused, without
from samples.spec import E, Op, S, Sample, T, V, given, integers, nonzero, real

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
    Op("aten.elu", "ops.aten.elu", [S("scales", nonzero(2, 3), 0.5, 1.5, 0.8)]),
    activation("logsigmoid", [], extra=True),
    activation("hardtanh", [], lambda *s, **k: T(s, avoid=(-1.0, 1.0), **k), extra=True),
]
KNEES = given([-4.0, -2.5, -0.7, 0.2, 0.8, 2.4, 3.5, 7.0])
ODD = given([NAN, INF, -INF, 0.0, -0.0])


def at_knees(name: str, *samples: Sample, **options: Any) -> Op:
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


OPS = [
    unary("sigmoid", supports_complex=True, reference=lambda x: 1 / (1 + np.exp(np.multiply(x, -1.0)))),
    *ACTIVATIONS,
    at_knees("celu", S("alpha", KNEES, 0.5), S("alpha by name", KNEES, alpha=2.0)),
    at_knees("hardshrink", S("lambd", KNEES, 1.0), S("lambd by name", KNEES, lambd=0.3)),
    at_knees(
        "softshrink",
        S("lambd", KNEES, 1.0),
        S("lambd by name", KNEES, lambd=0.3),
        errors=[E("negative", RuntimeError, r"lambda must be in range \[0", real(2), -0.5)],
    ),
    at_knees("hardsigmoid", precise=False),  # torch has a sixth in single precision,
    at_knees("hardswish"),
    at_knees("relu6"),
    at_knees("selu"),
    at_knees("softsign", supports_complex=True, at_infinity=False),  # torch divides infinity by itself,
    at_knees("tanhshrink"),
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
    more(
        F + "hardtanh",
        S("bounds", given([-2.0, -0.4, 0.7, 3.0]), -0.5, 0.6),
        S("by name", given([-2.0, -0.4, 0.7, 3.0]), min_val=-1.5, max_val=2.5),
    ),
    more(
        F + "threshold_",
        S("in place", given([-1.0, 0.5, 2.0]), 0.4, 7.0),
        fn=lambda torch, x, *args: torch.nn.functional.threshold(x * 1, *args, inplace=True),
    ),
    more(
        F + "elu_",
        S("in place", given([-1.0, 0.5, 2.0]), 0.4, second=False),
        S("factors", given([-1.0, 0.5, 2.0]), 0.4, 2.0, 3.0, second=False),
        fn=lambda torch, x, *args: torch.nn.functional.elu_(x * 1, *args),
    ),
    more(
        F + "celu_",
        S("in place", given([-1.0, 0.5, 2.0]), 0.5, second=False),
        fn=lambda torch, x, *args: torch.nn.functional.celu_(x * 1, *args),
    ),
    refused(F + "glu", E("integers", NotImplementedError, without("glu_cpu", "Long"), integers(2))),
    refused(F + "hardshrink", E("integers", NotImplementedError, without("hardshrink_cpu", "Long"), integers(2))),
    refused(F + "prelu", E("dtypes", RuntimeError, "Type promoting not supported", real(2), real(1, dtype="float32"))),
]
