"""Samples of medians, modes, quantiles, histograms."""

from __future__ import annotations

import math

from samples.shared import more, refused, without
from samples.spec import E, Op, S, V, distinct, given, index, integers, positive, real

NAN = math.nan
HOLES = [[1.0, NAN, 3.0, 0.5], [2.0, -1.0, 5.0, 0.0], [NAN, NAN, NAN, NAN]]
INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(name: str) -> Op:
    """`quantile` or `nanquantile`."""
    samples = [
        S("all", distinct(2, 3), 0.4),
        S("dim", distinct(2, 3), 0.3, 1),
        S("first dim, kept", distinct(3, 2), 0.7, dim=0, keepdim=True),
        S("several", distinct(2, 3), given([0.1, 0.6], requires_grad=False), 1),
        S("several, kept", distinct(2, 3), given([0.1, 0.6], requires_grad=False), 1, True),
        S("all, kept", distinct(2, 3), 0.3, keepdim=True),
        S("gradient of q", distinct(4), given([0.15, 0.55])),
        *(S(kind, distinct(5), 0.35, interpolation=kind) for kind in INTERPOLATIONS),
        V("nan", given(HOLES, requires_grad=False), 0.3, 1),
        V("all of them nan", given(HOLES, requires_grad=False), 0.5),
        V("ends", distinct(4), given([0.0, 1.0], requires_grad=False)),
        V("0-d", given(2.5), 0.3),
        V("float32", distinct(5, dtype="float32"), 0.25),
    ]
    errors = [
        E("integers", RuntimeError, "must be either float or double", integers(3), 0.5),
        E("q out of range", RuntimeError, r"must be in the range \[0, 1\]", real(3), 1.5),
        E("empty", RuntimeError, "must be non-empty", real(0), 0.5),
    ]
    return Op(name, name, samples, errors, method=name)


NAN, INF = float("nan"), float("inf")
NO_SUCH_DIM = "Dimension out of range"


OPS = [
    Op(
        "bincount",
        "bincount",
        [
            V("counts", given([0, 3, 1, 3], "int64")),
            V("minlength", given([0, 1], "int64"), minlength=5),
            V("weights", given([0, 2, 2], "int64"), given([0.5, 1.0, 2.0], requires_grad=False)),
            V("empty", given([], "int64")),
        ],
        differentiable=False,
        method="bincount",
    ),
    Op(
        "histc",
        "histc",
        [
            V("range of the input", real(10, requires_grad=False), 4),
            V("range given", real(10, requires_grad=False), bins=4, min=-1, max=1),
            V("one value", given([2.0, 2.0], requires_grad=False), 3),
        ],
        differentiable=False,
        method="histc",
    ),
    quantile("quantile"),
    quantile("nanquantile"),
    Op(
        "nanmedian",
        "nanmedian",
        [
            S("all", distinct(2, 3)),
            S("dim", distinct(2, 3), 1),
            S("first dim, kept", distinct(3, 2), 0, True),
            S("0-d", real()),
            V("nan", given(HOLES[:2])),
            V("nan, dim", given(HOLES[:2]), 1),
            V("int64", given([3, 1, 2], "int64")),
        ],
        method="nanmedian",
    ),
    Op(
        "mode",
        "mode",
        [
            S("distinct", distinct(2, 3)),
            S("dim, kept", distinct(3, 2), 0, True),
            S("0-d", real()),
            V("repeated", given([[1.0, 2.0, 2.0, 1.0, 2.0], [3.0, 1.0, 3.0, 1.0, 0.0]])),
            V("int64", index([4, 2, 4, 2, 1])),
        ],
        method="mode",
    ),
    Op(
        "cov",
        "cov",
        [
            S("matrix", real(2, 3)),
            S("vector", real(4)),
            S("correction", real(2, 3), correction=0),
            S("fweights", real(2, 3), fweights=index([1, 2, 1])),
            S("aweights", real(2, 3), aweights=positive(3, requires_grad=False), as_complex=False),
            S(
                "both weights",
                real(2, 3),
                fweights=index([1, 2, 1]),
                aweights=positive(3, requires_grad=False),
                as_complex=False,
            ),
            V("int64", integers(2, 3)),
        ],
        supports_complex=True,
        method="cov",
    ),
    Op(
        "corrcoef",
        "corrcoef",
        [S("matrix", real(2, 4)), V("vector", real(4))],
        supports_complex=True,
        method="corrcoef",
    ),
    Op(
        "histogram",
        "histogram",
        [
            V("bins", real(8, requires_grad=False), 4),
            V("range", real(8, requires_grad=False), bins=4, range=(-1.0, 1.0)),
            V("weight", real(4, requires_grad=False), 3, weight=positive(4, requires_grad=False)),
            V("density", real(8, requires_grad=False), 3, density=True),
            V("edges", real(8, requires_grad=False), given([-1.0, 0.0, 1.5], requires_grad=False)),
        ],
        differentiable=False,
        method="histogram",
    ),
    Op(
        "median",
        "median",
        [
            S("all", distinct(2, 3)),
            S("dim", distinct(2, 3), 1),
            S("first dim, kept", distinct(3, 2), 0, True),
            S("by name", distinct(2, 3), dim=-1, keepdim=True),
            S("0-d", real()),
            V("even", given([4.0, 1.0, 3.0, 2.0])),
            V("nan", given([NAN, 1.0, 2.0]), torch_first=False),  # whose tangent is NaN in torch
            V("int64", given([3, 1, 2], "int64")),
        ],
        [E("dim", IndexError, NO_SUCH_DIM, real(2, 3), 2)],
        method="median",
    ),
    more(
        "histogram",
        V("one value", given([3.0, 3.0], requires_grad=False), 2),
        V("point range", given([3.0], requires_grad=False), bins=1, range=(2.0, 2.0)),
        V("empty", real(0, requires_grad=False), 2),
        differentiable=False,
    ),
    more(
        "cov",
        V("0 of 1", given([1.0])),
        errors=[
            E("weights", RuntimeError, "same numel as there are observations", real(3), fweights=index([1])),
            E("matrix of weights", RuntimeError, "one or fewer dimensions", real(3), aweights=positive(3, 3)),
        ],
    ),
    more(
        "histogramdd",
        V("bins", real(5, 2, requires_grad=False), [2, 3]),
        V(
            "weight",
            real(5, 2, requires_grad=False),
            [2, 2],
            range=[-2.0, 2.0, -2.0, 2.0],
            weight=positive(5, requires_grad=False),
            density=True,
        ),
        fn=lambda torch, *args, **kwargs: (lambda found: [found[0], *found[1]])(torch.histogramdd(*args, **kwargs)),
        errors=[
            E("bins", RuntimeError, "must be equal to the innermost dimension", real(3, 2, requires_grad=False), [1])
        ],
        differentiable=False,
    ),
    refused(
        "histogram",
        E("no bins", RuntimeError, "bins must be > 0", real(3, requires_grad=False), 0),
        E("dtypes", RuntimeError, "should have the same dtype", real(3, requires_grad=False), real(2, dtype="float32")),
    ),
    refused("nanquantile", E("dim", IndexError, "Dimension out of range", real(), 0.5, dim=2)),
    refused(
        "histogramdd",
        E("vector", RuntimeError, "at least 2 dimensions", real(3, requires_grad=False), [1]),
        E("integers", NotImplementedError, without("histogramdd", "Long"), integers(3, 1), [1]),
    ),
]
