"""Samples of sums, means, variances, extremes over dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from samples.shared import more
from samples.spec import Attr, E, Op, S, Sample, T, V, distinct, given, index, integers, mask, nonzero, real

NAN, INF = float("nan"), float("inf")


def _axes(function: Any) -> Any:
    """NumPy's reduction `function` with torch's names for its arguments."""

    def call(x: np.ndarray, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        dim = None if dim in ((), []) else tuple(dim) if isinstance(dim, list) else dim
        kwargs = {} if dtype is None else {"dtype": dtype}
        if not np.ndim(x):  # torch lends a 0-d tensor a dimension
            x, dim = np.reshape(x, 1), None
            return function(x, **kwargs)
        return function(x, axis=dim, keepdims=keepdim, **kwargs)

    return call


OUT_OF_RANGE = E(
    "dim", IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)", real(2, 3), 2
)
REPEATED = E("repeated dim", RuntimeError, r"dim 0 appears multiple times in the list of dims", real(2, 3), (0, -2))


def over_dims(domain: Any = real, **kwargs: Any) -> list[Sample]:
    """Every way of naming the dimensions to reduce."""
    return [
        S("all", domain(2, 3), **kwargs),
        S("dim", domain(2, 3), 1, **kwargs),
        S("negative dim", domain(2, 3), -2, as_complex=False, **kwargs),
        S("keyword dim", domain(2, 3), dim=0, as_complex=False, **kwargs),
        S("keepdim", domain(2, 3), 1, True, **kwargs),
        S("keyword keepdim", domain(2, 3), dim=-1, keepdim=True, as_complex=False, **kwargs),
        S("dims", domain(2, 3, 2), (0, 2), **kwargs),
        S("negative dims, keepdim", domain(2, 3, 2), (-1, 0), keepdim=True, as_complex=False, **kwargs),
        S("list of dims", domain(2, 3, 2), [1, 2], as_complex=False, **kwargs),
        S("transposed", domain(2, 3, layout="transposed"), 0, as_complex=False, **kwargs),
        S("strided", domain(2, 3, layout="strided"), 1, as_complex=False, **kwargs),
        S("expanded", domain(2, 3, layout="expanded"), -1, as_complex=False, **kwargs),
        S("length one", domain(3, 1), 1, as_complex=False, **kwargs),
    ]


def zero_d(domain: Any = real, **kwargs: Any) -> list[Sample]:
    """A 0-d tensor, which has dimension 0 and -1 by courtesy."""
    return [S("0-d", domain(), **kwargs), S("0-d, dim", domain(), 0), S("0-d, negative dim", domain(), -1)]


SUMS = [
    Op(
        "sum",
        "sum",
        [
            *over_dims(),
            *zero_d(),
            S("empty", real(0, 3)),
            S("empty along the dim", real(0, 3), 0),
            S("empty across the dim", real(0, 3), 1),
            S("no dims", real(2, 3), ()),
            S("dtype", real(2, 3), dtype=Attr("float64"), as_complex=False),
            V("dtype of float32", real(2, 3, dtype="float32"), 1, dtype=Attr("float64")),
            V("float32 to complex", real(3, dtype="float32", requires_grad=False), dtype=Attr("complex64")),
            V("int64", integers(2, 3), 1),
            V("int32", integers(2, 3, dtype="int32")),
            V("bool", mask([True, True, False])),
            V("int64 as float", integers(2, 3), dtype=Attr("float32")),
            V("nan and infinity", given([[NAN, 1.0], [INF, 2.0]]), 1),
        ],
        errors=[OUT_OF_RANGE, REPEATED],
        supports_complex=True,
        method="sum",
        reference=_axes(np.sum),
    ),
    Op(
        "mean",
        "mean",
        [
            *over_dims(),
            *zero_d(),
            V("empty", real(0, 3)),
            V("empty along the dim", real(0, 3), 0),
            S("empty across the dim", real(0, 3), 1),
            S("dtype", real(2, 3), 1, dtype=Attr("float64"), as_complex=False),
            V("dtype of float32", real(2, 3, dtype="float32"), dtype=Attr("float64")),
            V("int64 as float", integers(2, 3), dtype=Attr("float64")),
        ],
        errors=[
            OUT_OF_RANGE,
            REPEATED,
            E("int64", RuntimeError, r"mean\(\): could not infer output dtype.*Long", integers(3)),
        ],
        supports_complex=True,
        method="mean",
        reference=_axes(np.mean),
    ),
    Op(
        "prod",
        "prod",
        [
            S("all", nonzero(2, 3)),
            S("dim", nonzero(2, 3), 1),
            S("negative dim", nonzero(2, 3), -2, as_complex=False),
            S("keepdim", nonzero(2, 3), 0, True),
            S("keyword keepdim", nonzero(2, 3), dim=1, keepdim=True, as_complex=False),
            S("0-d", nonzero()),
            S("0-d, dim", nonzero(), 0, as_complex=False),
            S("empty", real(0, 3)),
            S("empty along the dim", real(0, 3), 0, as_complex=False),
            S("strided", nonzero(3, layout="strided"), as_complex=False),
            S("transposed", nonzero(2, 3, layout="transposed"), 0, as_complex=False),
            # A product is smooth at its zeros, but a gradient formula that divides by them is not.
            S("one zero", given([2.0, 0.0, 3.0])),
            S("two zeros", given([2.0, 0.0, 0.0, 3.0])),
            S("all zeros", given([0.0, 0.0])),
            S("zeros along a dim", given([[2.0, 0.0, 3.0], [0.0, 0.0, 1.5], [1.0, 2.0, 3.0]]), 1),
            S("zero in 0-d", given(0.0)),
            S("dtype", nonzero(3), dtype=Attr("float64"), as_complex=False),
            V("dtype of float32", nonzero(3, dtype="float32"), dtype=Attr("float64")),
            V("int64", given([[1, 2], [3, 4]], "int64"), 1),
            V("bool", mask([True, True])),
        ],
        errors=[OUT_OF_RANGE],
        supports_complex=True,
        method="prod",
        reference=_axes(np.prod),
    ),
    Op(
        "logsumexp",
        "logsumexp",
        [
            S("dim", real(2, 3), 1),
            S("negative dim", real(2, 3), -2),
            S("keyword dim", real(2, 3), dim=0),
            S("keepdim", real(2, 3), 1, True),
            S("dims", real(2, 3, 2), (0, 2)),
            S("dims, keepdim", real(2, 3, 2), dim=(0, -1), keepdim=True),
            S("0-d", real(), 0),
            S("empty across the dim", real(0, 3), 1),
            S("transposed", real(2, 3, layout="transposed"), 0),
            S("large", given([[1000.0, 1000.5], [-1000.0, -1000.5]]), 1),
            V("infinities", given([[INF, 1.0], [-INF, 1.0], [-INF, -INF]]), 1),
            V("empty along the dim", real(0, 3), 0),
            V("int64", integers(2, 3), 1),
        ],
        errors=[OUT_OF_RANGE],
        method="logsumexp",
    ),
    Op(
        "nansum",
        "nansum",
        [S("all", real(2, 3)), S("dim", real(2, 3), 1, keepdim=True), V("nan", given([1.0, NAN, 2.0]))],
        method="nansum",
        extra=True,
        reference=_axes(np.nansum),
    ),
]


def _spread(function: Any) -> Any:
    def call(x: np.ndarray, dim: Any = None, *, correction: float = 1, keepdim: bool = False) -> Any:
        dim = None if dim is None or dim in ((), []) else tuple(dim) if isinstance(dim, list) else dim
        return function(x, axis=dim, ddof=correction, keepdims=keepdim)

    return call


def spread_samples() -> list[Sample]:
    """What var and std are tried on."""
    return [
        S("all", real(2, 3)),
        S("dim", real(2, 3), 1),
        S("keyword dim", real(2, 3), dim=0, as_complex=False),
        S("negative dim, keepdim", real(2, 3), -1, keepdim=True, as_complex=False),
        S("dims", real(2, 3, 2), (0, 2)),
        S("list of dims, keepdim", real(2, 3, 2), [0, -1], keepdim=True, as_complex=False),
        S("correction 0", real(2, 3), 1, correction=0),
        S("correction 2", real(2, 3), dim=1, correction=2),
        S("correction of all", real(2, 3), correction=0),
        S("fractional correction", real(2, 3), 1, correction=0.5),
        S("dim None", real(2, 3), None, correction=1),
        S("transposed", real(2, 3, layout="transposed"), 0, as_complex=False),
        S("expanded", real(2, 3, layout="expanded"), 1, as_complex=False),
        S("empty across the dim", real(0, 3), 1),
        V("float32", real(2, 3, dtype="float32"), 1),
        V("constant", given([[1.0, 1.0], [2.0, 2.0]]), 1),
        V("one element", real(1)),
        V("0-d", real()),
        V("empty", real(0)),
        V("correction too large", real(2, 3), 1, correction=4),
    ]


def _unbiased(name: str) -> Op:
    samples = [
        S("unbiased", real(2, 3), False),
        S("dim, unbiased", real(2, 3), 1, False),
        S("dim, unbiased, keepdim", real(2, 3), 1, True, True),
        S("keyword unbiased", real(2, 3), dim=(0, 1), unbiased=False, keepdim=True),
    ]
    return Op(f"{name}.unbiased", name, samples, method=name)


SPREAD_ERRORS = [
    OUT_OF_RANGE,
    REPEATED,
    E("int64", RuntimeError, r"std and var only support floating point and complex dtypes", integers(3)),
]

SPREADS = [
    Op(
        "var",
        "var",
        spread_samples(),
        errors=SPREAD_ERRORS,
        supports_complex=True,
        method="var",
        reference=_spread(np.var),
    ),
    Op(
        "std",
        "std",
        spread_samples(),
        errors=SPREAD_ERRORS,
        supports_complex=True,
        method="std",
        reference=_spread(np.std),
    ),
    _unbiased("var"),
    _unbiased("std"),
    Op("var_mean", "var_mean", [S("all", real(2, 3)), S("dim", real(2, 3), 1, correction=0)], extra=True),
    Op("std_mean", "std_mean", [S("all", real(2, 3)), S("dim", real(2, 3), 1, keepdim=True)], extra=True),
]


TIES = [[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]


def _extreme(name: str, function: Any) -> list[Op]:
    """max or min: of everything, and along one dimension with the indices."""
    return [
        Op(
            name,
            name,
            [
                S("matrix", distinct(2, 3)),
                S("0-d", real()),
                S("transposed", distinct(2, 3, layout="transposed")),
                S("strided", distinct(4, layout="strided")),
                V("ties", given(TIES)),
                V("nan", given([1.0, NAN, 3.0])),
                V("infinities", given([INF, -INF, 0.0])),
                V("int64", integers(2, 3)),
                V("bool", mask([True, False])),
                V("float32", distinct(3, dtype="float32")),
            ],
            errors=[
                E("empty", RuntimeError, r"Expected reduction dim to be specified for input\.numel\(\) == 0", real(0))
            ],
            method=name,
            reference=function,
        ),
        Op(
            f"{name}.dim",
            name,
            [
                S("dim", distinct(2, 3), 1),
                S("negative dim", distinct(2, 3), -2),
                S("keyword dim", distinct(2, 3), dim=0),
                S("keepdim", distinct(2, 3), 1, True),
                S("keyword keepdim", distinct(2, 3), dim=1, keepdim=True),
                S("three dimensions", distinct(2, 3, 2), 1),
                S("0-d", real(), 0),
                S("0-d, negative dim", real(), -1),
                S("empty across the dim", real(0, 3), 1),
                S("transposed", distinct(2, 3, layout="transposed"), 0),
                S("length one", distinct(3, 1), 1),
                V("ties", given(TIES), 1),
                V("nan", given([[1.0, NAN, 3.0], [NAN, 1.0, NAN]]), 1),
                V("infinities", given([[INF, -INF, 0.0]]), 1),
                V("int64", integers(2, 3), 1),
                V("bool", mask([[True, False], [False, False]]), 1),
            ],
            errors=[
                OUT_OF_RANGE,
                E("empty along the dim", IndexError, r"Expected reduction dim 0 to have non-zero size", real(0, 3), 0),
            ],
            method=name,
        ),
        Op(
            f"a{name}",
            f"a{name}",
            [
                *over_dims(distinct),
                *zero_d(),
                S("no dims", distinct(2, 3), ()),
                S("empty across the dim", real(0, 3), 1),
                V("ties, all", given(TIES)),
                V("ties, dim", given(TIES), 1),
                V("ties, dims, keepdim", given(TIES), (0, 1), True),
                V("nan", given([[1.0, NAN], [2.0, 3.0]]), 1),
                V("infinities", given([[INF, INF, 0.0]]), 1),
                V("int64", integers(2, 3), 1),
                V("bool", mask([[True, False], [False, False]]), 1),
            ],
            errors=[
                OUT_OF_RANGE,
                REPEATED,
                E("empty along the dim", IndexError, r"Expected reduction dim 0 to have non-zero size", real(0, 3), 0),
            ],
            method=f"a{name}",
            reference=_axes(function),
        ),
        Op(
            f"arg{name}",
            f"arg{name}",
            [
                V("all", distinct(2, 3)),
                V("dim", distinct(2, 3), 1),
                V("keepdim", distinct(2, 3), dim=-2, keepdim=True),
                V("0-d", real()),
                V("nan", given([1.0, NAN, 3.0])),
                V("int64", given([3, 1, 2], "int64")),
            ],
            differentiable=False,
            method=f"arg{name}",
            extra=True,
        ),
    ]


EXTREMES = [*_extreme("max", np.max), *_extreme("min", np.min)]

TRUTH = [
    Op(
        name,
        name,
        [
            V("bool", mask([[True, False], [True, True]])),
            V("dim", mask([[True, False], [True, True]]), 1),
            V("keepdim", mask([[True, False], [True, True]]), dim=0, keepdim=True),
            V("float64", given([0.0, 2.0, NAN])),
            V("empty", T((0,), "bool")),
        ],
        differentiable=False,
        method=name,
        reference=_axes(getattr(np, name)),
        extra=True,
    )
    for name in ("all", "any")
]

LENGTHS = {"lengths": index([1, 0, 3])}
NO_SUCH_DIM = "Dimension out of range"


OPS = [
    Op(
        "max.other",
        "max",
        [S("broadcast", distinct(2, 3), distinct(3, low=-1.9)), V("ties", given([1.0, 2.0]), given([1.0, 1.0]))],
        method="max",
        reference=np.maximum,
    ),
    Op(
        "min.other",
        "min",
        [S("broadcast", distinct(2, 3), distinct(3, low=-1.9)), V("ties", given([1.0, 2.0]), given([1.0, 1.0]))],
        method="min",
        reference=np.minimum,
    ),
    *SUMS,
    *SPREADS,
    *EXTREMES,
    *TRUTH,
    Op(
        "segment_reduce",
        "segment_reduce",
        [
            S("sum", real(4), "sum", **LENGTHS, torch_second=False),
            S("mean", real(4), "mean", lengths=index([1, 3]), torch_second=False),
            S("max", distinct(4), "max", lengths=index([1, 3]), torch_second=False),
            S("min", distinct(4), "min", lengths=index([1, 3]), torch_second=False),
            S("prod", nonzero(4), "prod", **LENGTHS, torch_second=False),
            S("offsets", real(4), "sum", offsets=index([0, 1, 4]), torch_second=False),
            S("rows", real(4, 2), "mean", lengths=index([1, 3]), torch_second=False),
            S("second dimension", distinct(2, 4), "max", lengths=index([[1, 3], [2, 2]]), axis=1, torch_second=False),
            S("initial", real(4), "sum", **LENGTHS, initial=5.0, torch_second=False),
            V("initial mean", real(4, requires_grad=False), "mean", **LENGTHS, initial=5.0),
            V("initial max", distinct(4, requires_grad=False), "max", **LENGTHS, initial=0.5),
            V("empty mean", real(4, requires_grad=False), "mean", **LENGTHS),
            V("ties", given([1.0, 2.0, 2.0, 0.0]), "max", lengths=index([1, 0, 3])),
            V("nan", given([1.0, NAN, 3.0], requires_grad=False), "max", lengths=index([1, 2])),
            V("nothing", real(0, requires_grad=False), "sum", lengths=index([0, 0])),
        ],
        errors=[
            E("reduction", RuntimeError, "reduce argument must be either", real(4), "foo", lengths=index([4])),
            E("neither", RuntimeError, "Either lengths or offsets must be defined", real(4), "sum"),
            E("sum", RuntimeError, "Expected all rows of lengths", real(4), "sum", lengths=index([2])),
            E("negative", RuntimeError, "negative value", real(4), "sum", lengths=index([5, -1])),
            E("indices", RuntimeError, "indices based reduction", real(4), "sum", indices=index([5])),
            E("integers", NotImplementedError, "_segment_reduce_cpu", index([1, 2]), "sum", lengths=index([2])),
        ],
    ),
    Op(
        "sum_to_size",
        lambda torch, x, *size: x.sum_to_size(*size) * 1,
        [
            S("columns", real(2, 3), 1, 3),
            S("last", real(2, 3), 3),
            S("all", real(2, 3), (1,)),
            S("same", real(2, 3), 2, 3),
            V("bool", mask([True, True]), 1),
            V("uint8", given([200, 100], "uint8"), 1),
            V("0-d int32", given(3, "int32"), ()),
        ],
        [E("not expandable", RuntimeError, "is not expandable to size", real(2, 3), 2, 2)],
    ),
    Op(
        "aminmax",
        "aminmax",
        [
            S("all", distinct(2, 3)),
            S("dim", distinct(2, 3), dim=1),
            S("kept", distinct(2, 3), dim=0, keepdim=True),
            S("0-d", real()),
            V("nan", given([NAN, 1.0])),
            V("int64", integers(2, 3), dim=-1),
        ],
        [E("empty", RuntimeError, "Expected reduction dim|cannot compute aminmax", real(0))],
        method="aminmax",
    ),
    Op(
        "count_nonzero",
        "count_nonzero",
        [
            V("all", given([[0.0, 1.0], [2.0, 0.0]])),
            V("dim", given([[0.0, 1.0], [2.0, 0.0]]), 1),
            V("dims", given([[0, 1], [2, 0]], "int64"), dim=(0, 1)),
            V("bool", mask([True, False]), dim=-1),
        ],
        [E("dim", IndexError, NO_SUCH_DIM, real(2), 1)],
        differentiable=False,
        method="count_nonzero",
    ),
    Op(
        "nanmean",
        "nanmean",
        [
            S("all", real(2, 3)),
            S("dim", real(2, 3), 1, True),
            S("by name", real(2, 3), dim=(0, 1)),
            V("nan", given([float("nan"), 1.0, 3.0])),
            V("dtype", given([1.0, 2.0], "float32")),
        ],
        method="nanmean",
    ),
    more("std_mean", S("biased", real(4), 0, False), S("correction", real(4), dim=0, correction=2)),
    more("var_mean", S("kept", real(2, 3), 1, False, True)),
    more("nanmean", V("dtype", given([1.0, float("nan")], "float32"), dtype=Attr("float64"))),
    more("nansum", V("dtype", given([1.0, float("nan")], "float32"), dtype=Attr("float64"))),
    more("max", S("other", distinct(3), other=given([-5.0, 0.05, 5.0]))),
    Op(
        "hash_tensor",
        "hash_tensor",
        [
            V("all", real(3, 4)),
            V("rows", real(3, 4), 1),
            V("kept", real(3, 4), (0, 1), keepdim=True),
            V("float32", real(5, dtype="float32")),
            V("int32", integers(5, dtype="int32")),
            V("bool", T((5,), "bool")),
            V("0-d", real()),
        ],
        differentiable=False,
        method="hash_tensor",
        errors=[
            E("mode", RuntimeError, "Unknown hash_tensor mode: 1", real(2), mode=1),
            E("complex", NotImplementedError, "xor_sum_cpu", T((2,), "complex64")),
            E("empty", RuntimeError, "Expected reduction dim to be specified", real(0)),
        ],
    ),
]
