"""Samples of interpolation, adaptive means, pixel shuffles."""

from __future__ import annotations

from samples.shared import _op, more, refused, without
from samples.spec import E, Op, S, Sample, T, V, given, integers, real

F = "nn.functional."


PLACES = T((1, 2, 2, 2), low=-1.3, high=1.3)


def _grids() -> list[Sample]:
    made = []
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for corners in (True, False):
                name = f"{mode}, {padding}{', corners' if corners else ''}"
                made.append(S(name, real(1, 1, 3, 2), PLACES, mode, padding, corners, torch_second=False, second=False))
    return made


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
        S("antialias, lanczos", real(1, 1, 5, 6), size=(2, 3), mode="lanczos", antialias=True),
        S("antialias, lanczos, larger", real(1, 1, 5, 6), size=(7, 13), mode="lanczos", antialias=True),
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
UPSAMPLE = [
    Op(F + "upsample_nearest", F + "upsample_nearest", [S("twice", real(1, 1, 2, 2), scale_factor=2)]),
    Op(F + "upsample_bilinear", F + "upsample_bilinear", [S("size", real(1, 1, 2, 2), (3, 4))]),
]

IMAGE, GRID = real(1, 1, 2, 2), given([[[[-0.3, 0.4], [0.6, -0.7]]]])


OPS = [
    _op(
        "grid_sample",
        [
            *_grids(),
            S(
                "volume",
                real(1, 1, 2, 3, 2),
                T((1, 1, 1, 2, 3), low=-0.9, high=0.9),
                align_corners=True,
                torch_second=False,
            ),
            S("second order", real(1, 1, 2, 2), given([[[[0.1, -0.3]]]]), align_corners=False, torch_second=False),
            V("far away", real(1, 1, 2, 2), given([[[[9.0, -9.0], [0.0, 0.0]]]]), align_corners=False),
        ],
        errors=[
            E("mode", ValueError, r"expected mode to be", real(1, 1, 2, 2), real(1, 2, 2, 2), "x"),
            E(
                "grid",
                RuntimeError,
                r"expected grid to have size 2 in last",
                real(1, 1, 2, 2),
                real(1, 2, 2, 3),
                align_corners=True,
            ),
        ],
    ),
    _op(
        "affine_grid",
        [
            S("images", real(1, 2, 3), (1, 1, 2, 3), align_corners=False),
            S("corners", real(2, 2, 3), (2, 1, 2, 2), align_corners=True),
            S("volumes", real(1, 3, 4), (1, 1, 2, 1, 2), align_corners=False),
        ],
        errors=[
            E("shape", ValueError, r"Expected a batch of 2D affine", real(1, 3, 4), (1, 1, 2, 2), align_corners=True)
        ],
    ),
    *UPSAMPLE,
    PAD,
    INTERPOLATE,
    *SHUFFLES,
    Op(
        "grid_sampler",
        "grid_sampler",
        [
            S("bilinear", IMAGE, GRID, 0, 0, True),
            S("nearest", IMAGE, given([[[[-0.3, 0.4]]]], requires_grad=False), 1, 1, False),
        ],
    ),
    Op(
        "grid_sampler_2d",
        "grid_sampler_2d",
        [S("bicubic", real(1, 1, 4, 4), GRID, 2, 1, True, second=False, torch_second=False)],
    ),
    Op(
        "grid_sampler_3d",
        "grid_sampler_3d",
        [S("bilinear", real(1, 1, 2, 2, 2), given([[[[[-0.3, 0.4, 0.2]]]]]), 0, 2, True)],
        errors=[E("rank", RuntimeError, "grid_sampler|expected", IMAGE, GRID, 0, 0, True)],
    ),
    Op("affine_grid_generator", "affine_grid_generator", [S("corners", real(1, 2, 3), (1, 1, 2, 2), True)]),
    Op("native_channel_shuffle", "native_channel_shuffle", [S("groups", real(1, 4, 2), 2)], torch_gradient=False),
    more(
        F + "adaptive_avg_pool2d",
        V("float16", real(1, 3, 3, dtype="float16"), 2),
        errors=[E("matrix", ValueError, "Input dimension should be at least 3", real(2, 2), (2, 2))],
    ),
    more(
        F + "interpolate",
        V("float16", real(1, 1, 4, dtype="float16"), 3, mode="linear"),
        V("float16, nearest", real(1, 1, 4, dtype="float16"), 3),
        V("bytes", given([[[[0, 200], [100, 50]]]], "uint8"), (4, 4), mode="bilinear"),
    ),
    more(F + "pad", V("float16", real(1, 3, dtype="float16"), (1, 2), "replicate")),
    more(F + "upsample_bilinear", S("factor", real(1, 1, 1, 2), scale_factor=2)),
    more(F + "upsample_nearest", S("size", real(1, 1, 2), 3)),
    more(
        F + "upsample",
        S("nearest", real(1, 1, 2), 3),
        S("factor", real(1, 1, 2), scale_factor=2),
        S("linear", real(1, 1, 2), 3, mode="linear", align_corners=True),
    ),
    refused(
        F + "grid_sample",
        E("dtypes", RuntimeError, "expected scalar type", real(1, 1, 2, 2), real(1, 1, 1, 2, dtype="float32")),
        E("integers", NotImplementedError, without("grid_sampler.*", "Long"), integers(1, 1, 2, 2), real(1, 1, 1, 2)),
    ),
]
