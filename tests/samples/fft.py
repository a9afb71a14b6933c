"""Samples of Fourier transforms."""

from __future__ import annotations

from typing import Any

from samples.shared import more, refused
from samples.spec import Attr, E, Op, S, V, integers, positive, real

NORMS = ("forward", "backward", "ortho")


def one(name: str, complex_input: bool = True, real_input: bool = True) -> Op:
    """A transform along one dimension."""
    kind: dict[str, Any] = {} if real_input else {"dtype": "complex128"}
    samples = [
        S("vector", real(4, **kind)),
        S("odd", real(5, **kind)),
        S("n, cut", real(2, 5, **kind), 3),
        S("n, filled up", real(2, 3, **kind), n=5),
        S("dim", real(3, 2, **kind), dim=0),
        S("batch", real(2, 4, layout="transposed", **kind), dim=-1),
        *(S(f"norm {norm}", real(4, **kind), norm=norm) for norm in NORMS),
        V("float32", real(4, dtype="float32")),
        V("int64", integers(4)),
    ]
    errors = [
        E("norm", RuntimeError, "Invalid normalization mode", real(3), norm="x"),
        E("n", RuntimeError, "Invalid number of data points", real(3), 0),
        E("dim", IndexError, "Dimension out of range", real(3), dim=2),
    ]
    if not complex_input:
        errors.append(E("complex", RuntimeError, "expects a real input tensor", real(3, dtype="complex128")))
    return Op(f"fft.{name}", f"fft.{name}", samples, errors, supports_complex=complex_input)


def several(name: str, two: bool, complex_input: bool = True) -> Op:
    """A transform over several dimensions."""
    samples = [
        S("matrix", real(2, 3)),
        S("s", real(2, 4), (3, 3)),
        S("one s, kept", real(2, 4), (-1, 3)),
        S("dims", real(2, 1, 3), dim=(0, 2)),
        S("dims swapped", real(2, 4), dim=(1, 0)),
        *(S(f"norm {norm}", real(2, 2), norm=norm) for norm in NORMS),
        V("float32", real(2, 4, dtype="float32")),
    ]
    errors = [E("dims twice", RuntimeError, "FFT dims must be unique", real(2, 3), dim=(0, 0))]
    if not two:
        samples.append(S("s alone", real(2, 3), (4,)))
    return Op(f"fft.{name}", f"fft.{name}", samples, errors, supports_complex=complex_input)


def _inverse(torch: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    return torch.istft(torch.complex(x, 0.5 * x.flip(0)), *args, **kwargs)


OPS = [
    one("fft"),
    one("ifft"),
    one("rfft", complex_input=False),
    one("irfft"),
    one("hfft"),
    one("ihfft", complex_input=False),
    *(several(name, name.endswith("2")) for name in ("fft2", "ifft2", "irfft2", "hfft2", "fftn", "ifftn", "irfftn")),
    *(several(name, name.endswith("2"), complex_input=False) for name in ("rfft2", "rfftn", "ihfft2", "ihfftn")),
    several("hfftn", False),
    *(
        Op(
            f"fft.{name}",
            f"fft.{name}",
            [S("vector", real(5)), S("matrix", real(2, 3)), S("dim", real(3, 2), 0), S("dims", real(3, 2), (0, 1))],
            supports_complex=True,
        )
        for name in ("fftshift", "ifftshift")
    ),
    Op("fft.fftfreq", "fft.fftfreq", [V("even", 4), V("odd", 5, 0.5)], differentiable=False),
    Op("fft.rfftfreq", "fft.rfftfreq", [V("even", 4), V("odd", 5, d=0.5)], differentiable=False),
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
    more(
        "istft",
        S("both sides, real", real(6, 3), onesided=False),
        S("window", real(4, 3), window=positive(4), win_length=4),
        S("both sides, complex", real(6, 3), return_complex=True),
        fn=lambda torch, x, **kwargs: torch.istft(torch.complex(x, x.flip(0) * 0.5), 6, **kwargs),
    ),
    more(
        "fft.fftfreq",
        V("dtype", 4, 0.5, dtype=Attr("float64")),
        V("half", 4, dtype=Attr("float32")),
        differentiable=False,
    ),
    more("fft.rfftfreq", V("dtype", 4, 0.5, dtype=Attr("float64")), differentiable=False),
    refused("stft", E("integers", RuntimeError, "floating point or complex", integers(20), 4, return_complex=True)),
]
