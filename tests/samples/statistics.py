"""Samples of quantiles, medians, distances, covariances, scans, differences and integrals."""

from __future__ import annotations

import math

from samples.spec import E, Op, S, V, distinct, given, index, integers, mask, positive, real

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


OPS = [
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
        "logcumsumexp",
        "logcumsumexp",
        [
            S("matrix", real(2, 3), 1),
            S("first dim", real(3, 2), 0),
            S("0-d", real(), 0),
            V("empty", real(0, 3, requires_grad=False), 0),
            S("transposed", real(2, 3, layout="transposed"), -1),
            V("far apart", given([-200.0, 0.0, 300.0, -300.0]), 0),
            V("float32", real(4, dtype="float32"), 0),
        ],
        supports_complex=True,
        method="logcumsumexp",
    ),
    Op(
        "dist",
        "dist",
        [
            S("matrices", real(2, 3), real(2, 3)),
            S("broadcast", real(2, 1), real(2)),
            S("p 1", real(3), real(3), 1),
            S("p 3", real(3), real(3), p=3.0),
            S("p inf", real(3), real(3), p=math.inf),
        ],
        method="dist",
    ),
    Op(
        "norm_except_dim",
        "norm_except_dim",
        [S("rows", real(2, 3)), S("columns", real(3, 2), 2, 1), V("all", real(2, 2, requires_grad=False), 2, -1)],
    ),
    Op(
        "cdist",
        "cdist",
        [
            S("matrices", real(2, 2), real(3, 2), torch_second=False),
            S("batch", real(2, 1, 2), real(2, 2, 2), torch_second=False),
            S("p 1", real(2, 2), real(2, 2), p=1.0, torch_second=False),
            S("p 3", real(2, 2), real(2, 2), p=3.0, torch_second=False),
            S("p inf", real(2, 2), real(2, 2), p=math.inf, torch_second=False),
            V("empty", real(0, 2), real(3, 2)),
            V("float32", real(2, 2, dtype="float32"), real(3, 2, dtype="float32")),
        ],
        [E("columns", RuntimeError, "must have the same number of columns", real(2, 2), real(2, 3))],
    ),
    Op(
        "pdist",
        "pdist",
        [
            S("matrix", real(3, 2), torch_second=False),
            S("p 1", real(3, 2), 1.0, torch_second=False),
            V("one row", real(1, 2)),
        ],
    ),
    Op(
        "renorm",
        "renorm",
        [
            S("rows", real(2, 3), 2, 0, 1.5),
            S("columns", real(3, 2), 1, 1, 0.5),
            S("p 3", real(2, 3), 3, -1, 1.0),
            V("none is greater", real(2, 3), 2, 0, 100.0),
        ],
        method="renorm",
        inplace="renorm_",
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
        "diff",
        "diff",
        [
            S("vector", real(4)),
            S("dim", real(3, 2), dim=0),
            S("twice", real(4), 2),
            S("prepended", real(2, 2), prepend=real(2, 1), append=real(2, 2)),
            V("not at all", real(3), 0),
            V("more than there are", real(2), 3),
            V("bool", mask([True, False, False])),
            V("int64", integers(4)),
        ],
        [E("0-d", RuntimeError, "at least one-dimensional", real())],
        supports_complex=True,
        method="diff",
    ),
    Op(
        "trapezoid",
        "trapezoid",
        [
            S("vector", real(4)),
            S("dx", real(2, 3), dx=0.5),
            S("x", real(2, 3), distinct(3)),
            S("x for each", real(2, 3), distinct(2, 3)),
            S("dim", real(3, 2), dim=0),
            S("x and dim", real(3, 2), distinct(3), dim=0),
            V("int64", integers(4)),
        ],
        supports_complex=True,
    ),
    Op(
        "cumulative_trapezoid",
        "cumulative_trapezoid",
        [
            S("vector", real(4)),
            S("dx", real(2, 3), dx=0.5),
            S("x", real(2, 3), distinct(3)),
            S("dim", real(3, 2), dim=0),
        ],
        supports_complex=True,
    ),
    Op(
        "gradient",
        "gradient",
        [
            S("vector", real(4)),
            S("matrix", real(3, 3)),
            S("spacing", real(4), spacing=0.5),
            S("dim", real(2, 3), dim=1),
            S("edge order 2", real(4), edge_order=2),
            S("places", real(4), spacing=(given([0.0, 1.0, 1.5, 3.0], requires_grad=False),)),
            S(
                "places, edge order 2",
                real(4),
                spacing=(given([0.0, 1.0, 1.5, 3.0], requires_grad=False),),
                edge_order=2,
            ),
        ],
    ),
    Op(
        "vander",
        "vander",
        [
            # Torch's own backward pass of `vander` fails.
            V("square", positive(3, requires_grad=False)),
            V("columns", positive(3, requires_grad=False), 2),
            V("increasing", positive(2, requires_grad=False), 3, True),
        ],
    ),
]
