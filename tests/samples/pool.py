"""Samples of pooling, padding and interpolation."""

from __future__ import annotations

from typing import Any

from samples.spec import E, Op, S, Sample, V, distinct, given, index, positive, real

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

# ------------------------------------------------------------------------------------------------ padding


def _pads(mode: str) -> list[Sample]:
    samples = [
        S("1d", real(2, 3), (1, 2), mode=mode),
        S("1d batch", real(1, 2, 3), (1, 0), mode=mode),
        S("2d", real(2, 2, 3), (1, 2, 1, 0), mode=mode),
        S("2d batch", real(1, 1, 2, 3), (2, 1, 0, 1), mode=mode),
        S("3d", real(1, 1, 2, 2, 3), (1, 1, 1, 0, 0, 1), mode=mode, second=False),
        S("crops", real(1, 4), (-1, 2), mode=mode),
        V("float32", real(2, 2, 3, dtype="float32"), (1, 2, 1, 0), mode=mode),
    ]
    return [Sample(f"{mode}, {s.name}", s.args, s.kwargs, s.smooth, s.second) for s in samples]


PAD = Op(
    F + "pad",
    F + "pad",
    [
        S("constant", real(2, 3), (1, 2)),
        S("constant, value", real(2, 3), (1, 2, 0, 1), "constant", 1.5),
        S("constant, crops", real(2, 3), (-1, 2)),
        S("all dimensions", real(2, 1), (1, 1, 1, 1), value=2.0),
        V("int64", given([1, 2], "int64"), (1, 1), value=3),
        *_pads("reflect"),
        *_pads("replicate"),
        *_pads("circular"),
    ],
    errors=[
        E("odd", RuntimeError, r"Padding length must be divisible by 2", real(3), (1,)),
        E("mode", NotImplementedError, r"Unrecognised padding mode abc", real(2, 3), (1, 1), mode="abc"),
        E("value", RuntimeError, r"doesn't take in value argument", real(2, 3), (1, 1), mode="reflect", value=1.0),
        E("reflect", RuntimeError, r"Padding size should be less than the", real(2, 3), (3, 1), mode="reflect"),
        E("circular", RuntimeError, r"wrapping around more than once", real(2, 3), (4, 1), mode="circular"),
        E("rank", NotImplementedError, r"Padding size 2 is not supported for 1D", real(3), (1, 1), mode="reflect"),
        E("length", RuntimeError, r"two times the input dimension", real(3), (1, 1, 1, 1)),
    ],
    view=None,
)

# ------------------------------------------------------------------------------------------------ interpolation


def _scaled(mode: str, *size: int) -> list[Sample]:
    dims = len(size)
    samples = [
        S(f"{mode} {dims}d, up", real(1, 1, *size), [2 * s + 1 for s in size], mode=mode, second=dims < 3),
        S(f"{mode} {dims}d, down", real(1, 2, *size), size=2, mode=mode, second=dims < 3),
        S(f"{mode} {dims}d, factor", real(1, 1, *size), scale_factor=1.7, mode=mode, second=dims < 3),
        S(
            f"{mode} {dims}d, recompute",
            real(1, 1, *size),
            scale_factor=(1.7,) * dims,
            mode=mode,
            recompute_scale_factor=True,
            second=dims < 3,
        ),
        S(f"{mode} {dims}d, small", real(1, 1, *[2] * dims), size=3, mode=mode),
    ]
    if mode.endswith(("linear", "cubic")):
        samples += [
            S(f"{mode} {dims}d, corners", real(1, 1, *size), size=5, mode=mode, align_corners=True, second=dims < 3),
            S(f"{mode} {dims}d, to one", real(1, 1, *size), size=1, mode=mode, align_corners=True, second=dims < 3),
        ]
    return samples


INTERPOLATE = Op(
    F + "interpolate",
    F + "interpolate",
    [
        *[s for mode in ("nearest", "nearest-exact", "area") for d in (1, 2, 3) for s in _scaled(mode, *(4, 3, 2)[:d])],
        *_scaled("linear", 4),
        *_scaled("bilinear", 4, 3),
        *_scaled("bicubic", 4, 3),
        *_scaled("trilinear", 4, 3, 2),
        S("antialias", real(1, 1, 5, 6), size=(2, 3), mode="bilinear", antialias=True),
        S("antialias, cubic", real(1, 1, 5, 6), size=(2, 3), mode="bicubic", antialias=True),
        V("float32", real(2, 2, 4, 3, dtype="float32"), size=(7, 5), mode="bilinear"),
    ],
    errors=[
        E("neither", ValueError, r"either size or scale_factor should be defined", real(1, 1, 3)),
        E("both", ValueError, r"only one of size or scale_factor should be defined", real(1, 1, 3), 2, 2),
        E(
            "rank",
            NotImplementedError,
            r"Got 3D input, but bilinear mode needs 4D input",
            real(1, 1, 3),
            2,
            None,
            "bilinear",
        ),
        E("mode", NotImplementedError, r"Input Error: Only 3D, 4D and 5D", real(1, 1, 3), 2, None, "abc"),
        E("corners", ValueError, r"align_corners option can only be set", real(1, 1, 3), 2, align_corners=True),
        E("sizes", ValueError, r"must have the same number of spatial dimensions", real(1, 1, 3), (2, 2)),
        E("zero", RuntimeError, r"should be greater than 0", real(1, 1, 3), 0),
    ],
    view=None,
)

SHUFFLES = [
    Op(
        F + "pixel_shuffle",
        F + "pixel_shuffle",
        [S("images", real(1, 4, 2, 1), 2), S("one", real(4, 1, 3), 2), S("batches", real(2, 1, 4, 1, 1), 2)],
        errors=[E("channels", RuntimeError, r"to be divisible by the square", real(3, 2, 2), 2)],
    ),
    Op(
        F + "pixel_unshuffle",
        F + "pixel_unshuffle",
        [S("images", real(1, 1, 2, 4), 2), S("one", real(1, 2, 2), 2)],
        errors=[E("height", RuntimeError, r"expects height to be divisible", real(1, 3, 2), 2)],
    ),
    Op(
        F + "channel_shuffle",
        F + "channel_shuffle",
        [S("images", real(1, 4, 2, 1), 2)],
        errors=[E("channels", RuntimeError, r"must be divisible by groups", real(1, 3, 2, 2), 2)],
    ),
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
UPSAMPLE = [
    Op(F + "upsample_nearest", F + "upsample_nearest", [S("twice", real(1, 1, 2, 2), scale_factor=2)]),
    Op(F + "upsample_bilinear", F + "upsample_bilinear", [S("size", real(1, 1, 2, 2), (3, 4))]),
]

OPS = [
    *[_fractional(dims) for dims in (2, 3)],
    *WITH_INDICES,
    *UPSAMPLE,
    *[_max(dims) for dims in (1, 2, 3)],
    *[_avg(dims) for dims in (1, 2, 3)],
    *[_adaptive(kind, dims) for kind in ("max", "avg") for dims in (1, 2, 3)],
    *[_lp(dims) for dims in (1, 2, 3)],
    *UNPOOL,
    PAD,
    INTERPOLATE,
    *SHUFFLES,
]
