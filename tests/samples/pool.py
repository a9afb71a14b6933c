"""Samples of pooling."""

from __future__ import annotations

from typing import Any

from samples.shared import more, refused, without
from samples.spec import E, Op, S, V, distinct, given, index, integers, positive, real

F = "nn.functional."
NAN, INF = float("nan"), float("inf")


def _size(dims: int) -> tuple[int, ...]:
    return (3, 4, 5)[3 - dims :]


def _max(dims: int) -> Op:
    name = f"{F}max_pool{dims}d"
    size = _size(dims)
    samples = [
        S("plain", distinct(1, 2, *size), 2),
        S("stride", distinct(1, 1, *size), 2, 1),
        S("padding", distinct(1, 1, *size), 2, 2, 1),
        S("dilation", distinct(1, 1, *size), 2, 1, 0, 2),
        S("ceil mode", distinct(1, 1, *size), 2, ceil_mode=True),
        S("stride over kernel", distinct(1, 1, *size), 1, 2),
        S("indices", distinct(2, 1, *size), 2, 1, 1, return_indices=True),
        S("indices, dilation", distinct(1, 1, *size), 2, 2, 1, 2, return_indices=True),
        S("unbatched", distinct(2, *size), 2),
        S("small", distinct(1, 1, *[3] * dims), 2),
        V("ties", given(_constant(size)), 2),
        V("empty batch", real(0, 2, *size), 2),
        V("float32", distinct(1, 2, *size, dtype="float32"), 2),
    ]
    errors = [
        E("rank", RuntimeError, r"D or|Expected 2D or 3D", real(2), 2),
        E("padding", RuntimeError, r"at most half of", real(1, 1, *size), 2, 2, 2),
        E("too small", RuntimeError, r"too small|Invalid computed output size", real(1, 1, *size), 9),
        E("dilation", RuntimeError, r"must be greater than zero|greater than zero", real(1, 1, *size), 2, 1, 0, 0),
    ]
    if dims == 2:
        nans = [[[1.0, NAN, 3.0, -INF], [NAN, 2.0, -INF, -INF], [-INF, -INF, 0.0, 1.0], [-INF, -INF, 1.0, 1.0]]]
        samples += [
            V("nan and infinities", given(nans), 2, return_indices=True),
            V("nan, padding", given(nans), 3, 2, 1, return_indices=True),
            V("int64", given(_counting(4, 4), "int64"), 2),
            S("pairs", distinct(1, 1, *size), (2, 3), (1, 2), (1, 0), (2, 1)),
        ]
    return Op(name, name, samples, errors=errors)


def _constant(size: tuple[int, ...]) -> Any:
    import numpy as np

    return np.ones((1, *size))


def _counting(*size: int) -> Any:
    import numpy as np

    return np.arange(int(np.prod(size))).reshape(1, *size)


def _avg(dims: int) -> Op:
    name = f"{F}avg_pool{dims}d"
    size = _size(dims)
    samples = [
        S("plain", real(1, 2, *size), 2),
        S("stride", real(1, 1, *size), 2, 1),
        S("padding", real(1, 1, *size), 2, 2, 1),
        S("padding not counted", real(1, 1, *size), 2, 2, 1, count_include_pad=False),
        S("ceil mode", real(1, 1, *size), 2, ceil_mode=True),
        S("ceil mode, padding", real(1, 1, *size), 3, 2, 1, ceil_mode=True),
        S("unbatched", real(2, *size), 2),
        S("small", real(1, 1, *[3] * dims), 2, 1),
        V("float32", real(1, 2, *size, dtype="float32"), 2),
    ]
    if dims > 1:
        samples.append(S("divisor", real(1, 1, *size), 2, divisor_override=3))
    errors = [E("padding", RuntimeError, r"pad should be at most half of", real(1, 1, *size), 2, 2, 2)]
    return Op(name, name, samples, errors=errors)


def _adaptive(kind: str, dims: int) -> Op:
    name = f"{F}adaptive_{kind}_pool{dims}d"
    size = _size(dims)
    draw = distinct if kind == "max" else real
    samples = [
        S("one", draw(1, 2, *size), 1),
        S("two", draw(1, 1, *size), 2),
        S("three", draw(1, 1, *size), 3),
        S("divides", draw(1, 2, *[4] * dims), 2, second=dims < 3),
        S("larger", draw(1, 1, *[2] * dims), 3),
        S("unbatched", draw(2, *size), 2),
        V("float32", draw(1, 2, *size, dtype="float32"), 2),
    ]
    if dims > 1:
        samples.append(S("tuple with None", draw(1, 1, *size), (None,) + (2,) * (dims - 1)))
    if kind == "max":
        samples.append(S("indices", draw(1, 1, *size), 2, return_indices=True))
    return Op(name, name, samples, errors=[E("rank", RuntimeError, r"Expected \d", real(*[2] * (dims + 3)), 2)])


def _lp(dims: int) -> Op:
    name = f"{F}lp_pool{dims}d"
    size = _size(dims)
    samples = [
        S("plain", positive(1, 1, *size), 2, 2),
        S("cube", positive(1, 1, *size), 3.0, 2, stride=1),
        S("ceil mode", positive(1, 1, *size), 2, 2, ceil_mode=True),
    ]
    return Op(name, name, samples)


UNPOOL = [
    Op(
        F + "max_unpool1d",
        F + "max_unpool1d",
        [
            S("plain", real(1, 2, 2), index([[[1, 2], [0, 3]]]), 2),
            S("size", real(1, 2), index([[0, 3]]), 2, output_size=(5,)),
        ],
        errors=[E("size", ValueError, r"invalid output_size", real(1, 2), index([[0, 3]]), 2, output_size=(7,))],
    ),
    Op(
        F + "max_unpool2d",
        F + "max_unpool2d",
        [
            S("plain", real(1, 1, 1, 2), index([[[[1, 6]]]]), 2),
            S("unbatched", real(1, 1, 2), index([[[1, 6]]]), 2),
            S("stride and padding", real(1, 1, 2, 2), index([[[[0, 2], [6, 8]]]]), 3, 2, 1),
        ],
        errors=[
            E("index", RuntimeError, r"Found an invalid max index", real(1, 1, 1), index([[[9]]]), 2),
            E("shape", RuntimeError, r"Expected shape of indices to be same", real(1, 1, 1), index([[[0, 1]]]), 2),
        ],
    ),
    Op(F + "max_unpool3d", F + "max_unpool3d", [S("plain", real(1, 1, 1, 1, 2), index([[[[[1, 6]]]]]), 2)]),
]


def _fractional(dims: int) -> Op:
    """Fractional pooling with given draws; each way of asking for the indices."""
    size = (4, 5, 5)[3 - dims :]
    name = f"{F}fractional_max_pool{dims}d"
    draws = given([[[0.2, 0.7, 0.4][:dims], [0.9, 0.1, 0.6][:dims]]], requires_grad=False)
    small = given([[[0.2, 0.7, 0.4][:dims]]], requires_grad=False)
    return Op(
        name,
        name,
        [
            S("plain", distinct(1, 2, *size), 2, 2, _random_samples=draws),
            S("sizes", distinct(1, 2, *size), [2, 1, 2][:dims], [2, 3, 3][:dims], _random_samples=draws),
            S("indices", distinct(1, 2, *size), 2, 2, return_indices=True, _random_samples=draws),
            S("ratio", distinct(1, 2, *size), 2, output_ratio=[0.7] * dims, _random_samples=draws),
            S("one window", distinct(1, 1, *[dims] * dims), 2, 1, _random_samples=small),
            S("unbatched", distinct(2, *size), 2, 2, _random_samples=draws),
        ],
        errors=[
            E("neither", ValueError, "requires specifying either an output_size", real(1, 2, *size), 2),
            E("too large", RuntimeError, "too large relative to input", real(1, 2, *size), 9, 2),
            E("draws", RuntimeError, "input channel size", real(1, 3, *size), 2, 2, _random_samples=draws),
        ],
    )


_DRAWS = {dims: given([[[0.3, 0.8, 0.5][:dims]]], requires_grad=False) for dims in (2, 3)}
WITH_INDICES = [
    Op(f"{F}{kind}_max_pool{dims}d_with_indices", f"{F}{kind}_max_pool{dims}d_with_indices", [sample])
    for kind, dims, sample in [
        ("adaptive", 1, S("two", distinct(1, 1, 5), 2)),
        ("adaptive", 2, S("two", distinct(1, 1, 3, 4), 2)),
        ("adaptive", 3, S("two", distinct(1, 1, 2, 3, 2), 2)),
        ("fractional", 2, S("two", distinct(1, 1, 3, 4), 2, 2, _random_samples=_DRAWS[2])),
        ("fractional", 3, S("two", distinct(1, 1, 4, 4, 4), 2, 2, _random_samples=_DRAWS[3])),
    ]
]  # fmt: skip


OPS = [
    *[_fractional(dims) for dims in (2, 3)],
    *WITH_INDICES,
    *[_max(dims) for dims in (1, 2, 3)],
    *[_avg(dims) for dims in (1, 2, 3)],
    *[_adaptive(kind, dims) for kind in ("max", "avg") for dims in (1, 2, 3)],
    *[_lp(dims) for dims in (1, 2, 3)],
    *UNPOOL,
    Op("torch.adaptive_max_pool1d", "adaptive_max_pool1d", [S("two", distinct(1, 2, 5), 2)]),
    more(
        F + "max_unpool1d",
        S("stride", real(1, 2), index([[0, 3]]), 2, 3),
        S("padding", real(1, 2), index([[0, 2]]), 3, stride=2, padding=1),
    ),
    more(F + "max_unpool2d", S("size", real(1, 1, 1), index([[[3]]]), 2, output_size=(3, 3))),
    more(
        F + "max_unpool3d",
        S("size", real(1, 1, 1, 1), index([[[[5]]]]), 2, 2, 0, output_size=(2, 2, 2)),
        S("padding", real(1, 1, 1, 1), index([[[[0]]]]), 3, 2, padding=1),
    ),
    more(
        F + "adaptive_max_pool2d",
        S("window", distinct(1, 3, 3), (2, 1)),
        errors=[
            E("matrix", ValueError, "Input dimension should be at least 3", real(2, 2), (2, 2)),
            E("negative", RuntimeError, "negative dimension -1", real(1, 2, 2), (-1, 2)),
        ],
    ),
    more(
        F + "max_pool3d",
        V("uint8", given([[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]], "uint8"), 2),
        errors=[E("padding", RuntimeError, "pad must be non-negative", real(1, 2, 2, 2), 2, padding=-1)],
    ),
    more(
        F + "max_pool_with_indices",
        S("1-d", distinct(1, 4), 1),
        S("2-d", distinct(1, 2, 4), 2),
        S("3-d", distinct(1, 2, 2, 2), 3),
        fn=lambda torch, x, d: getattr(torch.nn.functional, f"max_pool{d}d_with_indices")(x, 2),
    ),
    more("adaptive_max_pool2d, empty", V("no batch", real(0, 1, 3, 3), (2, 2)), fn=F + "adaptive_max_pool2d"),
    refused(
        F + "max_unpool2d",
        E("integers", NotImplementedError, without("max_unpool2d", "Long"), integers(1, 1, 1), index([[[0]]]), 2),
    ),
]
