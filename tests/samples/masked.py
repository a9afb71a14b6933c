"""Samples of the operators of ``torch.masked``: along one dimension, several and all, with masks of other shapes."""

from __future__ import annotations

from typing import Any

from samples.spec import Attr, E, Op, S, Sample, T, V, distinct, given, integers, mask, nonzero, positive, real

#: No row and no column of it is all masked.
SOME = [[True, False, True], [False, True, True]]
#: The first row of it is.
ROW = [[False, False, False], [True, False, True]]
CUBE = [[[True, False], [True, True], [False, True]], [[True, True], [False, True], [True, False]]]


def _reductions(make: Any, *before: Any, several: bool = True, empty: bool = True, **spec: Any) -> list[Sample]:
    """The samples that all reductions have; `before`: arguments before the dimension; `several`: dimensions at once."""
    found = [
        S("rows", make(2, 3, **spec), *before, 1, mask=mask(SOME)),
        S("columns, kept", make(2, 3, **spec), *before, 0, keepdim=True, mask=mask(SOME)),
        S("broadcast mask", make(2, 3, **spec), *before, -1, mask=mask([True, False, True])),
        S("mask of one dimension less", make(2, 3, 2, **spec), *before, 1, mask=mask(CUBE[0])),
        S("no mask", make(2, 3, **spec), *before, 1),
        S("layouts", make(2, 3, layout="transposed", **spec), *before, 1, mask=mask(SOME, layout="transposed")),
        V("float32", make(2, 3, dtype="float32", **spec), *before, 1, mask=mask(SOME)),
    ]
    if several:
        found += [
            S("all", make(2, 3, **spec), *before, mask=mask(SOME)),
            S("two of three", make(2, 3, 2, **spec), *before, (0, 2), mask=mask(CUBE)),
        ]
    if empty:
        found.append(V("a row all masked", make(2, 3, **spec), *before, 1, mask=mask(ROW)))
    return found


def _along(make: Any, *before: Any, **spec: Any) -> list[Sample]:
    """The samples that all operators have whose result is as large as their input."""
    return [
        S("rows", make(2, 3, **spec), *before, 1, mask=mask(SOME)),
        S("columns", make(2, 3, **spec), *before, 0, mask=mask(SOME)),
        S("broadcast mask", make(2, 3, **spec), *before, -1, mask=mask([True, False, True])),
        S("no mask", make(2, 3, **spec), *before, 1),
        V("a row all masked", make(2, 3, **spec), *before, 1, mask=mask(ROW)),
        V("float32", make(2, 3, dtype="float32", **spec), *before, 1, mask=mask(SOME)),
    ]


_SMALL = T((2, 3), "int32", low=-4, high=4)
_INF = float("inf")

OPS = [
    Op(
        "masked.sum",
        "masked.sum",
        [
            *_reductions(real),
            V("small integers", _SMALL, 1, mask=mask(SOME)),
            V("of another dtype", _SMALL, 1, mask=mask(SOME), dtype=Attr("float64")),
            V("bools", T((2, 3), "bool"), 1, mask=mask(SOME)),
            V("a mask of numbers", real(2, 3), 1, mask=integers(2, 3)),
            V("nan where it is masked", given([1.0, float("nan")]), 0, mask=mask([True, False])),
        ],
        [
            E("larger mask", IndexError, "mask dimensionality higher", real(2), 0, mask=mask([[True, False]])),
            E("dimension twice", RuntimeError, "appears multiple times", real(2, 3), (1, 1), mask=mask(SOME)),
            E("no such dimension", IndexError, "Dimension out of range", real(2, 3), 2, mask=mask(SOME)),
        ],
        supports_complex=True,
    ),
    Op(
        "masked.prod",
        "masked.prod",
        [*_reductions(nonzero), V("small integers", _SMALL, 1, mask=mask(SOME)), S("zeros", given([0.0, 2.0, 3.0]), 0)],
        supports_complex=True,
    ),
    Op(
        "masked.amax",
        "masked.amax",
        [
            *_reductions(distinct), V("integers", _SMALL, 1, mask=mask(ROW)),
            V("ties", given([1.0, 3.0, 3.0]), 0, mask=mask([True, True, True])),
            V("of another dtype", real(2, 3), 1, mask=mask(SOME), dtype=Attr("float32")),
        ],
    ),
    Op(
        "masked.amin",
        "masked.amin",
        [
            *_reductions(distinct), V("integers", _SMALL, 1, mask=mask(ROW)),
            V("of another dtype", real(2, 3), 1, mask=mask(SOME), dtype=Attr("float32")),
        ],
    ),
    *[
        Op(
            f"masked.{name}",
            f"masked.{name}",
            [
                V("rows", distinct(2, 3), 1, mask=mask(SOME)),
                V("columns, kept", distinct(2, 3), 0, keepdim=True, mask=mask(SOME)),
                V("all", distinct(2, 3), mask=mask(SOME)),
                V("no mask", distinct(2, 3), 1),
                V("of another dtype", distinct(2, 3), 1, mask=mask(SOME), dtype=Attr("int64")),
                V("integers", _SMALL, 1, mask=mask(ROW)),
            ],
            differentiable=False,
        )
        for name in ("argmax", "argmin")
    ],
    Op(
        "masked.mean",
        "masked.mean",
        [*_reductions(real), V("of another dtype", _SMALL, 1, mask=mask(SOME), dtype=Attr("float32"))],
        [E("integers", ValueError, "Could not infer output dtype", _SMALL, 1, mask=mask(SOME))],
        supports_complex=True,
    ),
    Op(
        "masked.median",
        "masked.median",
        [
            *_reductions(distinct, several=False), V("integers", _SMALL, 1, mask=mask(SOME)),
            S("last dimension", distinct(2, 3), mask=mask(SOME)),
        ],
        [E("integers, all masked", ValueError, "no fully masked out rows", _SMALL, 1, mask=mask(ROW))],
    ),
    Op("masked.logsumexp", "masked.logsumexp", _reductions(real)),
    Op(
        "masked.norm",
        "masked.norm",
        [
            *_reductions(nonzero, 2.0),
            S("of order 1", nonzero(2, 3), 1.0, 1, mask=mask(SOME)),
            S("of order 3", nonzero(2, 3), 3.0, 1, mask=mask(SOME)),
            S("largest", distinct(2, 3, low=0.3, high=2.0), _INF, 1, mask=mask(SOME)),
            S("smallest", distinct(2, 3, low=0.3, high=2.0), -_INF, 1, mask=mask(SOME)),
            V("smallest, a row all masked", positive(2, 3), -_INF, 1, mask=mask(ROW)),
            V("of another dtype", nonzero(2, 3, dtype="float32"), 2.0, 1, mask=mask(SOME), dtype=Attr("float64")),
        ],
    ),
    *[
        Op(
            f"masked.{name}",
            f"masked.{name}",
            [
                # A deviation of one element is 0, where its root has no derivative.
                S("columns", real(3, 2), 0, mask=mask([[True, True], [False, True], [True, True]])),
                S("population", real(3, 2), 0, False, mask=mask([[True, True], [False, True], [True, True]])),
                S("kept", real(2, 3), 1, keepdim=True, mask=mask([True, True, False])),
                S("correction", real(2, 3), 1, correction=2, mask=mask([True, True, True])),
                S("all", real(2, 3), mask=mask(SOME)),
                S("two of three", real(2, 3, 2), (0, 2), mask=mask(CUBE)),
                S("no mask", real(2, 3), 1),
                V("integers", _SMALL, 1, mask=mask([True, True, False])),
                V("a row all masked", real(2, 3), 1, mask=mask(ROW)),
                V("of another dtype", _SMALL, 1, dtype=Attr("float32"), mask=mask([True, True, False])),
                V("float32", real(2, 3, dtype="float32"), 1, mask=mask([True, True, False])),
            ],
            supports_complex=name == "var",
        )
        for name in ("var", "std")
    ],
    Op(
        "masked.cumsum",
        "masked.cumsum",
        [*_along(real), V("of another dtype", _SMALL, 1, mask=mask(SOME), dtype=Attr("float64"))],
        supports_complex=True,
    ),
    Op(
        "masked.cumprod",
        "masked.cumprod",
        [*_along(nonzero), V("of another dtype", _SMALL, 1, mask=mask(SOME), dtype=Attr("float64"))],
        supports_complex=True,
    ),
    *[
        Op(
            f"masked.{name}",
            f"masked.{name}",
            [
                *_along(real),
                V("of another dtype", real(2, 3, dtype="float32"), 1, mask=mask(SOME), dtype=Attr("float64")),
            ],
        )
        for name in ("softmax", "softmin")
    ],
    Op(
        "masked.log_softmax",
        "masked.log_softmax",
        [
            # The logarithm is -inf where there is a mask, which has no differences.
            *[V(s.name, *s.args, **s.kwargs) if "mask" in s.kwargs else s for s in _along(real)],
            V("of another dtype", real(2, 3, dtype="float32"), 1, mask=mask(SOME), dtype=Attr("float64")),
        ],
    ),
    Op(
        "masked.normalize",
        "masked.normalize",
        [
            *_along(nonzero, 2.0),
            S("of order 1", nonzero(2, 3), 1.0, 1, mask=mask(SOME)),
            S("larger eps", nonzero(2, 3), 2.0, 1, eps=10.0, mask=mask(SOME)),
            V("of another dtype", nonzero(2, 3, dtype="float32"), 2.0, 1, mask=mask(SOME), dtype=Attr("float64")),
        ],
    ),
    Op(
        "masked.logaddexp",
        "masked.logaddexp",
        [
            # Torch adds exp(-inf) for masked elements, whose second derivatives are NaN.
            V("masks", real(2, 3), real(2, 3), input_mask=mask(SOME), other_mask=mask([True, True, False])),
            S("one mask", real(2, 3), real(2, 3), input_mask=mask(SOME), torch_second=False),
            S("the other mask", real(2, 3), real(2, 3), other_mask=mask(SOME), torch_second=False),
            S("no mask", real(2, 3), real(3)),
            V("of another dtype", real(2, 3), real(2, 3), other_mask=mask(SOME), dtype=Attr("float32")),
        ],
    ),
]
