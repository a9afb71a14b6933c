"""Samples of windows, and of Fourier transforms of the windows of a signal."""

from __future__ import annotations

from typing import Any

from samples.spec import E, Op, S, V, positive, real

WINDOWS = ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window")


def _inverse(torch: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    return torch.istft(torch.complex(x, 0.5 * x.flip(0)), *args, **kwargs)


OPS = [
    *(
        Op(
            name,
            name,
            [V("periodic", 5), V("symmetric", 6, False), V("one", 1), V("none", 0)],
            differentiable=False,
        )
        for name in WINDOWS
    ),
    Op(
        "stft",
        "stft",
        [
            S("signal", real(8), 4, return_complex=True),
            S("window", real(8), 4, 2, 3, positive(3), return_complex=True),
            S("batch, not centred", real(2, 6), 4, center=False, return_complex=True),
            S("both sides, normalized", real(8), 4, normalized=True, onesided=False, return_complex=True),
            S("padded with zeros", real(8), 4, pad_mode="constant", return_complex=True),
            S("as real", real(8), 4, return_complex=False),
            S("aligned", real(8), 4, 2, 2, center=False, align_to_window=True, return_complex=True),
        ],
        [E("return_complex", RuntimeError, "stft requires the return_complex parameter", real(8), 4)],
        method="stft",
    ),
    Op(
        "istft",
        _inverse,
        [
            S("signal", real(3, 3), 4, 1),
            S("window", real(3, 4), 4, 2, window=positive(4, requires_grad=False), center=False),
            S("batch", real(2, 3, 3), 4, 1),
            S("length", real(3, 4), 4, 1, length=3),
            S("normalized", real(3, 3), 4, 1, normalized=True),
        ],
    ),
]
