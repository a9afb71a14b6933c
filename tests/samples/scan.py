"""Samples of running sums, products, extremes, recurrences."""

from __future__ import annotations

from typing import Any

import numpy as np

from samples.reduce import OUT_OF_RANGE
from samples.shared import more, refused
from samples.spec import Attr, E, Op, S, Sample, T, V, distinct, given, integers, mask, nonzero, real

NAN, INF = float("nan"), float("inf")


def _scan(name: str, domain: Any, function: Any, extra: bool, more: list[Sample]) -> Op:
    return Op(
        name,
        name,
        [
            S("dim", domain(2, 3), 1),
            S("negative dim", domain(2, 3), -2),
            S("keyword dim", domain(2, 3), dim=0, as_complex=False),
            S("0-d", domain(), 0),
            S("empty", real(0, 3), 0, as_complex=False),
            S("transposed", domain(2, 3, layout="transposed"), 0, as_complex=False),
            S("strided", domain(2, 3, layout="strided"), 1, as_complex=False),
            S("three dimensions", domain(2, 2, 2), 1, as_complex=False),
            S("dtype", domain(3), 0, dtype=Attr("float64"), as_complex=False),
            V("dtype of float32", domain(3, dtype="float32"), 0, dtype=Attr("float64")),
            V("int64", integers(2, 3), 1),
            V("int32", integers(2, 3, dtype="int32"), 1),
            V("bool", mask([True, True, False]), 0),
            *more,
        ],
        errors=[OUT_OF_RANGE],
        supports_complex=True,
        method=name,
        inplace=f"{name}_",
        reference=lambda x, dim, dtype=None: function(np.atleast_1d(x), axis=dim, dtype=dtype).reshape(np.shape(x)),
        extra=extra,
    )


SCANS = [
    _scan("cumsum", real, np.cumsum, False, [V("nan", given([1.0, NAN, 2.0]), 0)]),
    _scan(
        "cumprod",
        nonzero,
        np.cumprod,
        True,
        [S("one zero", given([2.0, 0.0, 3.0]), 0), S("two zeros", given([2.0, 0.0, 3.0, 0.0, 2.0]), 0)],
    ),
]
NO_SUCH_DIM = "Dimension out of range"
BOOL, COMPLEX = mask([True, False]), T((2,), "complex128")


OPS = [
    *SCANS,
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
    *[
        Op(
            name,
            name,
            [
                S("vector", distinct(4), 0),
                S("last", distinct(2, 3), -1),
                S("first", distinct(3, 2), dim=0),
                S("0-d", real(), 0),
                V("nan", given([1.0, NAN, 2.0]), 0),
                V("bool", mask([False, True, False]), 0),
                V("int64", integers(4), 0),
                V("empty", real(0, 2), 0),
            ],
            [E("dim", IndexError, NO_SUCH_DIM, real(3), 1)],
            method=name,
        )
        for name in ("cummax", "cummin")
    ],
    more("diff", V("not at all, prepended", real(3), 0, prepend=real(1))),
    more(
        "gradient",
        S("no spacing", real(4), spacing=None),
        errors=[
            E("dims", RuntimeError, "appears multiple times in the list of dims", real(3, 3), dim=(1, 1)),
            E(
                "lengths",
                RuntimeError,
                "spacing and dim arguments to have the same length",
                real(3, 3),
                spacing=(0.1,),
                dim=(0, 1),
            ),
        ],
    ),
    refused("trapezoid", E("bool", RuntimeError, "bool is not supported", BOOL)),
]
