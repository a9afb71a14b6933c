"""Samples of Fourier transforms."""

from __future__ import annotations

from typing import Any

from samples.spec import E, Op, S, V, integers, real

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
]
