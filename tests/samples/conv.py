"""Samples of convolutions and folds."""

from __future__ import annotations

from samples.shared import _op, more
from samples.spec import E, Op, S, V, real

F = "nn.functional."


def _conv(dims: int) -> Op:
    name = f"{F}conv{dims}d"
    small = (2,) * dims
    size = (4, 3, 3)[:dims]
    samples = [
        S("plain", real(1, 1, *size), real(1, 1, *small)),
        S("bias", real(2, 2, *size), real(3, 2, *small), real(3)),
        S("stride", real(1, 2, *size), real(2, 2, *small), real(2), 2),
        S("padding", real(1, 2, *size), real(2, 2, *small), None, 1, 1),
        S("wide padding, one tap", real(1, 1, *size), real(1, 1, *[1] * dims), None, 1, 1),
        S("stride and padding", real(1, 1, *size), real(2, 1, *small), None, 2, 1),
        S("dilation", real(1, 1, *size), real(1, 1, *small), dilation=2),
        S("groups", real(1, 4, *size), real(2, 2, *small), real(2), groups=2),
        S("depthwise", real(2, 2, *size), real(4, 1, *small), groups=2, padding=1),
        S("same", real(1, 1, *size), real(1, 1, *small), padding="same"),
        S("valid", real(1, 1, *size), real(1, 1, *small), padding="valid"),
        S("unbatched", real(2, *size), real(1, 2, *small), real(1)),
        S("one tap", real(2, 3, *size), real(2, 3, *[1] * dims)),
        S("weight of the input's size", real(1, 1, *size), real(2, 1, *size)),
        S("empty batch", real(0, 1, *size), real(1, 1, *small), torch_second=False, second=False),
        S("transposed", real(1, 2, *size, layout="transposed"), real(2, 2, *small, layout="transposed")),
        V("float32", real(2, 3, *size, dtype="float32"), real(4, 3, *small, dtype="float32")),
    ]
    errors = [
        E("rank", RuntimeError, rf"Expected {dims + 1}D \(unbatched\) or", real(2), real(1, 1, *small)),
        E("channels", RuntimeError, r"Given groups=1, weight of size", real(1, 3, *size), real(1, 2, *small)),
        E("bias", RuntimeError, r"expected bias to be 1-dim", real(1, 1, *size), real(2, 1, *small), real(3)),
        E("size", RuntimeError, r"Kernel size can't be greater", real(1, 1, *[1] * dims), real(1, 1, *small)),
        E("stride", RuntimeError, r"non-positive stride", real(1, 1, *size), real(1, 1, *small), stride=0),
        E("padding", RuntimeError, r"negative padding", real(1, 1, *size), real(1, 1, *small), padding=-1),
        E("dilation", RuntimeError, r"dilation should be greater", real(1, 1, *size), real(1, 1, *small), dilation=0),
        E("groups", RuntimeError, r"to be divisible by 2", real(1, 2, *size), real(3, 1, *small), groups=2),
        E("name", RuntimeError, r"Invalid padding string: 'x'", real(1, 1, *size), real(1, 1, *small), padding="x"),
        E(
            "strided same",
            RuntimeError,
            r"padding='same' is not supported for strided convolutions",
            real(1, 1, *size),
            real(1, 1, *small),
            stride=2,
            padding="same",
        ),
    ]
    return Op(name, name, samples, errors=errors, supports_complex=dims == 1)


def _transpose(dims: int) -> Op:
    name = f"{F}conv_transpose{dims}d"
    small = (2,) * dims
    size = (3, 2, 2)[:dims]
    samples = [
        S("plain", real(1, 1, *size), real(1, 1, *small)),
        S("bias", real(2, 2, *size), real(2, 3, *small), real(3)),
        S("stride", real(1, 2, *size), real(2, 2, *small), real(2), 2),
        S("padding", real(1, 2, *size), real(2, 1, *small), None, 1, 1),
        S("more padding than kernel", real(1, 1, *[4] * dims), real(1, 1, *[1] * dims), None, 1, 1),
        S("output padding", real(1, 1, *size), real(1, 1, *small), None, 2, 1, 1),
        S("stride over kernel", real(1, 1, *size), real(1, 1, *small), None, 3, 0, 2),
        S("groups", real(1, 4, *size), real(4, 2, *small), real(4), groups=2, stride=2),
        S("groups, dilation", real(1, 2, *size), real(2, 2, *small), groups=2, dilation=2),
        S("dilation, output padding", real(1, 1, *size), real(1, 1, *small), None, 1, 0, 1, 1, 2),
        S("unbatched", real(2, *size), real(2, 1, *small), real(1)),
        V("float32", real(2, 3, *size, dtype="float32"), real(3, 4, *small, dtype="float32"), stride=2),
    ]
    errors = [
        E("channels", RuntimeError, r"Given transposed=1, weight of", real(1, 3, *size), real(2, 1, *small)),
        E("bias", RuntimeError, r"Given transposed=1, weight of", real(1, 1, *size), real(1, 2, *small), real(3)),
        E(
            "output padding",
            RuntimeError,
            r"output padding must be smaller than either stride or dilation",
            real(1, 1, *size),
            real(1, 1, *small),
            output_padding=2,
        ),
        E("too small", RuntimeError, r"Output size is too small", real(1, 1, *size), real(1, 1, *small), padding=3),
    ]
    return Op(name, name, samples, errors=errors, supports_complex=dims == 1)


OPS = [
    *[_conv(dims) for dims in (1, 2, 3)],
    *[_transpose(dims) for dims in (1, 2, 3)],
    _op(
        "unfold",
        [
            S("plain", real(1, 1, 3, 3), 2),
            S("options", real(2, 2, 4, 3), (2, 1), 2, 1, 2),
            S("unbatched", real(2, 3, 3), 2),
            S("rectangular", real(1, 1, 3, 4), (1, 2), (1, 2), (0, 1), (2, 1)),
        ],
        errors=[E("small", RuntimeError, r"its components must be at least one", real(1, 1, 2, 2), 3)],
    ),
    _op(
        "fold",
        [
            S("plain", real(1, 4, 4), 3, 2),
            S("options", real(2, 4, 9), (4, 4), 2, 1, 1, 2),
            S("unbatched", real(4, 4), 3, 2),
            S("gaps", real(1, 4, 4), (4, 4), 2, stride=2),
        ],
        errors=[E("channels", RuntimeError, r"to be divisible by the product of", real(1, 3, 4), 3, 2)],
    ),
    Op(
        "conv_tbc",
        "conv_tbc",
        [S("plain", real(3, 1, 2), real(2, 2, 1), real(1)), S("padding", real(3, 2, 2), real(3, 2, 2), real(2), 1)],
        errors=[E("rank", RuntimeError, "must have 3 dims", real(3, 2), real(2, 2, 1), real(1))],
    ),
    more(F + "fold", S("dilated", real(1, 4, 1), (3, 3), 2, dilation=2)),
    more(F + "unfold", V("no batch", real(0, 1, 3, 3), 2)),
    more(
        "conv",
        S("asymmetric", real(1, 1, 3, 4), real(1, 1, 2, 2), stride=(1, 2), padding=(1, 0), dilation=(1, 2)),
        fn=F + "conv2d",
    ),
]
