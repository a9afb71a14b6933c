"""Windows, and Fourier transforms of the windows of a signal (`stft`) and back (`istft`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._generated import functions as table
from ...core import dtypes
from ...core.where import users_level
from ...tensor import Tensor, wrap
from ..factories import _out
from ..registry import composite
from . import fft
from .shape import narrow

# -------------------------------------------------------------------------------------------------------------- windows


def _window(
    name: str, shape: Callable[[np.ndarray], np.ndarray], length: int, periodic: bool, options: dict[str, Any]
) -> Tensor:
    """The values of `shape`, a function on [0, 1], at `length` places; a periodic window leaves out the last."""
    dtype = dtypes.as_numpy_dtype(options.get("dtype")) or dtypes.default[0]
    if dtype.kind not in "fV":
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtypes.from_numpy_dtype(dtype)}")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    places = np.arange(length) / max(length if periodic else length - 1, 1)
    values = np.ones(length) if length == 1 else shape(places)
    keywords = {key: value for key, value in options.items() if key not in ("dtype", "requires_grad", "device")}
    return _out(values.astype(dtype), options.get("requires_grad", False), options.get("device"), keywords)


def _cosines(*coefficients: float) -> Callable[[np.ndarray], np.ndarray]:
    """The sum of cosines with these coefficients, of alternating sign."""

    def shape(x: np.ndarray) -> np.ndarray:
        return sum(((-1) ** k * c * np.cos(2 * np.pi * k * x) for k, c in enumerate(coefficients)), np.zeros_like(x))

    return shape


@composite(method=False)
def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A raised cosine.

    >>> import retrograd as torch
    >>> torch.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann_window", _cosines(0.5, 0.5), window_length, periodic, options)


@composite(method=False)
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """``alpha - beta * cos``: a raised cosine that does not reach 0."""
    return _window("hamming_window", _cosines(alpha, beta), window_length, periodic, options)


@composite(method=False)
def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A sum of three cosines."""
    return _window("blackman_window", _cosines(0.42, 0.5, 0.08), window_length, periodic, options)


@composite(method=False)
def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A triangle."""
    return _window("bartlett_window", lambda x: 1 - np.abs(2 * x - 1), window_length, periodic, options)


@composite(method=False)
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """``i0(beta * sqrt(1 - x ** 2)) / i0(beta)``."""

    def shape(x: np.ndarray) -> np.ndarray:
        return np.i0(beta * np.sqrt(np.maximum(1 - (2 * x - 1) ** 2, 0))) / np.i0(beta)

    return _window("kaiser_window", shape, window_length, periodic, options)


# ----------------------------------------------------------------------------------------------------------- transforms


def _padded(input: Any, width: int, mode: str) -> Any:
    """`input` with `width` more elements at both ends of its last dimension."""
    n = input._data.shape[-1]
    if mode == "constant":
        return table.constant_pad_nd(input, (width, width), 0)
    modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in modes:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if width >= n + (mode != "reflect"):
        raise RuntimeError(
            f"Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
            f"({width}, {width}) at dimension {input._data.ndim - 1} of input {list(input._data.shape)}"
        )
    places = np.pad(np.arange(n), width, mode=modes[mode])  # type: ignore[call-overload]
    source = input if mode == "circular" else table.straight(input)
    return table.index_select(source, input._data.ndim - 1, wrap(places.astype(np.int64)))


def _whole_window(name: str, window: Any, win_length: int, n_fft: int, like: Tensor) -> Any:
    """The window with zeros at both ends up to `n_fft`; ones unless given."""
    if not 0 < win_length <= n_fft:
        raise RuntimeError(f"{name}: expected 0 < win_length <= n_fft, but got win_length={win_length}")
    if window is None:
        real = like._data.real.dtype if like.is_complex() else like._data.dtype
        window = wrap(np.ones(win_length, real))
    if window._data.shape != (win_length,):
        raise RuntimeError(
            f"{name}: expected a 1D window tensor of size equal to win_length={win_length}, but got window with size "
            f"{list(window._data.shape)}"
        )
    left = (n_fft - win_length) // 2
    return table.constant_pad_nd(window, (left, n_fft - win_length - left), 0) if win_length < n_fft else window


@composite()
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The Fourier transforms of the windows of a signal, as columns; of every signal of a batch."""
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError("stft: expected a tensor of floating point or complex values")
    real = not input.is_complex() and not (window is not None and window.is_complex())
    if return_complex is None:
        if real:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs: write return_complex=True"
            )
        return_complex = True
    hop = n_fft // 4 if hop_length is None else hop_length
    if hop <= 0:
        raise RuntimeError(f"stft: expected hop_length > 0, but got hop_length={hop}")
    if input._data.ndim not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, but got a {input._data.ndim}D tensor")
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    length = n_fft if win_length is None else win_length
    if window is None:
        warnings.warn(
            "A window was not provided. A rectangular window will be applied, which is known to cause spectral "
            "leakage. Other windows such as torch.hann_window or torch.hamming_window are recommended to reduce "
            "spectral leakage. To suppress this warning and use a rectangular window, explicitly set "
            "`window=torch.ones(n_fft)`.",
            UserWarning,
            stacklevel=users_level(),
        )
    weights = _whole_window("stft", window, length, n_fft, input)
    signal: Any = _padded(input, n_fft // 2, pad_mode) if center else input
    if align_to_window:  # the first window, not the first transform, begins with the signal
        signal = table.constant_pad_nd(signal, ((n_fft - length) // 2,) * 2, 0)
    if not 0 < n_fft <= signal._data.shape[-1]:
        raise RuntimeError(f"stft: expected 0 < n_fft <= {signal._data.shape[-1]}, but got n_fft={n_fft}")
    frames = table.unfold(signal, signal._data.ndim - 1, n_fft, hop) * weights
    transform = fft.rfft if real and onesided is not False else fft.fft
    result = transform(frames, norm="ortho" if normalized else None).transpose(-1, -2)
    return result if return_complex else table.view_as_real(result)


@composite()
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal of which `stft` is the transform: the windows added up, over the sum of the squared windows."""
    if not input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if window is not None and window.is_complex() and not return_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    if not input._data.size:
        raise RuntimeError("istft: input tensor cannot be empty.")
    if input._data.ndim not in (2, 3):
        raise RuntimeError(f"istft: expected a tensor with 2 or 3 dimensions, but got {input._data.ndim}")
    hop = n_fft // 4 if hop_length is None else hop_length
    if not 0 < hop <= (win_length or n_fft):
        raise RuntimeError(f"istft: expected 0 < hop_length <= win_length, but got hop_length={hop}")
    rows, count = input._data.shape[-2:]
    one = rows != n_fft if onesided is None else onesided
    if rows != (n_fft // 2 + 1 if one else n_fft):
        raise RuntimeError(
            "istft: expected the frequency dimension (3rd to the last) of the input tensor to match "
            f"{'n_fft / 2 + 1 when onesided=True' if one else 'n_fft when onesided=False'}, but got {rows}"
        )
    if return_complex and one:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    weights = _whole_window("istft", window, n_fft if win_length is None else win_length, n_fft, input)
    norm = "ortho" if normalized else None
    columns = input.transpose(-1, -2)
    # Of a real signal, the first half of the frequencies says it all.
    frames: Any = fft.ifft(columns, n_fft, norm=norm) if return_complex else fft.irfft(columns, n_fft, norm=norm)
    size = n_fft + hop * (count - 1)
    total = _overlapped(frames * weights, size, n_fft, hop)
    envelope = _overlapped((weights * weights).expand(count, n_fft), size, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = size - start if length is None else min(start + length, size)
    total, envelope = narrow(total, -1, start, end - start), narrow(envelope, -1, start, end - start)
    if (np.abs(envelope._data) <= 1e-11).any():
        raise RuntimeError(f"istft(...) window overlap add min: {float(np.abs(envelope._data).min())}")
    result = total / envelope
    if length is not None and length > end - start:
        result = table.constant_pad_nd(result, (0, length - (end - start)), 0)
    return result


def _overlapped(frames: Any, size: int, n_fft: int, hop: int) -> Any:
    """The frames added up at places `hop` apart."""
    return table.unfold_backward(frames, (*frames._data.shape[:-2], size), frames._data.ndim - 2, n_fft, hop)
