"""Discrete Fourier transforms (``torch.fft``), made of three operators of the table (`derivatives/fft.yaml`).

A function here makes the input complex or real and of the size asked for, and chooses the normalisation; all of it is
differentiable.

>>> import retrograd as torch
>>> torch.fft.rfft(torch.tensor([1., 0., 0., 0.]))
tensor([1.+0.j, 1.+0.j, 1.+0.j])
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...core import dtypes
from ...core.where import users_level
from ...kernels.promotion import is_half, scalar_name
from ...tensor import Tensor
from ...tensor.beside import beside
from ...tensor.special import all_values, like_array
from ..factories import _out
from ..registry import composite
from .shape import narrow

Dims = Sequence[int] | int | None

# ----------------------------------------------------------------------------------------------- what all of them share

_NONE, _ROOT, _WHOLE = 0, 1, 2


def _one(n: int | None) -> int | None:
    """The size of a transform of one dimension, in which -1 does not mean the size that is there."""
    if n is not None and n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def _normalization(norm: str | None, forward: bool) -> int:
    """The factor that `norm` asks for in a transform of that direction."""
    if norm == "ortho":
        return _ROOT
    if norm is None or norm == "backward":
        return _NONE if forward else _WHOLE
    if norm == "forward":
        return _WHOLE if forward else _NONE
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def _as_complex(input: Tensor) -> Tensor:
    if input.is_complex():
        return input
    return _as_float(input).to(dtypes.from_numpy_dtype(np.result_type(_as_float(input)._memory_.dtype, np.complex64)))


def _as_float(input: Tensor) -> Tensor:
    """`input`, or integers as numbers of the default dtype."""
    if is_half(input._memory_.dtype):
        raise RuntimeError(f"Unsupported dtype {scalar_name(input._memory_.dtype)}: transform float32 numbers instead")
    if input._memory_.dtype.kind in "fcVW":
        return input
    return input.to(dtypes.from_numpy_dtype(dtypes.default[0]))


def _real(name: str, input: Tensor, what: str = "real") -> Tensor:
    if input.is_complex():
        raise RuntimeError(f"{name} expects a {what} input tensor, but got {scalar_name(input._memory_.dtype)}")
    return _as_float(input)


def _dim(dim: int, ndim: int) -> int:
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return dim % ndim


def _geometry(input: Tensor, s: Dims, dim: Dims) -> tuple[list[int], list[int]]:
    """The sizes of a transform and the dimensions that have them."""
    shape, ndim = input._memory_.shape, input._memory_.ndim
    sizes = [s] if isinstance(s, int) else None if s is None else list(s)
    if dim is not None:
        dims = [_dim(d, ndim) for d in ([dim] if isinstance(dim, int) else dim)]
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if sizes is not None and len(sizes) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif sizes is not None:
        if len(sizes) > ndim:
            raise RuntimeError(f"Got shape with {len(sizes)} values but input tensor only has {ndim} dimensions.")
        dims = list(range(ndim - len(sizes), ndim))
    else:
        dims = list(range(ndim))
    if sizes is None:
        sizes = [shape[d] for d in dims]
    return [shape[d] if n == -1 else n for n, d in zip(sizes, dims, strict=True)], dims


def _check_points(sizes: list[int]) -> None:
    for n in sizes:
        if n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")


def _resized(input: Tensor, sizes: list[int], dims: list[int]) -> Tensor:
    """`input` with its dimensions cut to `sizes`, or filled up with zeros at the end."""
    missing = [0] * input._memory_.ndim
    for n, d in zip(sizes, dims, strict=True):
        have = input._memory_.shape[d]
        if n < have:
            input = narrow(input, d, 0, n)
        missing[d] = max(n - have, 0)
    if not any(missing):
        return input
    return generated.constant_pad_nd(input, [n for m in reversed(missing) for n in (0, m)], 0)


def _c2c(input: Tensor, s: Dims, dim: Dims, norm: str | None, forward: bool) -> Tensor:
    sizes, dims = _geometry(input, s, dim)
    _check_points(sizes)
    input = _resized(_as_complex(input), sizes, dims)
    return generated.fft_c2c(input, tuple(dims), _normalization(norm, forward), forward)


def _whole(input: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    """Both halves of the transform of a real tensor."""
    input = _as_float(input)
    sizes, dims = _geometry(input, _one(n), dim)
    _check_points(sizes)
    return generated.fft_r2c(_resized(input, sizes, dims), tuple(dims), _normalization(norm, forward), False)


def _r2c(name: str, input: Tensor, s: Dims, dim: Dims, norm: str | None, forward: bool) -> Tensor:
    input = _real(name, input, "real-valued" if name.endswith("n") else "real")
    sizes, dims = _geometry(input, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    _check_points(sizes)
    return generated.fft_r2c(_resized(input, sizes, dims), tuple(dims), _normalization(norm, forward), True)


def _c2r(name: str, input: Tensor, s: Dims, dim: Dims, norm: str | None, forward: bool) -> Tensor:
    given = s is not None and (s if isinstance(s, int) else s[-1]) != -1
    sizes, dims = _geometry(input, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    points = sizes[-1] if given else 2 * (input._memory_.shape[dims[-1]] - 1)
    _check_points([*sizes[:-1], points])
    input = _resized(_as_complex(input), [*sizes[:-1], points // 2 + 1], dims)
    if forward:
        input = input.conj()
    return generated.fft_c2r(input, tuple(dims), _normalization(norm, forward), points)


# -------------------------------------------------------------------------------------------------------- one dimension


@composite(space="fft", out=True)
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform along `dim`, of `n` points if given."""
    return _c2c(input, _one(n), dim, norm, True) if input.is_complex() else _whole(input, n, dim, norm, True)


@composite(space="fft", out=True)
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `fft`."""
    if input.is_complex():
        return _c2c(input, _one(n), dim, norm, False)
    return generated._conj(_whole(input, n, dim, norm, False))


@composite(space="fft", out=True)
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The first half of the transform of a real tensor; the other half is its conjugate."""
    return _r2c("rfft", input, _one(n), dim, norm, True)


@composite(space="fft", out=True)
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `rfft`; `n` is the number of real points, even unless given."""
    return _c2r("irfft", input, _one(n), dim, norm, False)


@composite(space="fft", out=True)
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform, which is real, of half a Hermitian signal."""
    return _c2r("hfft", input, _one(n), dim, norm, True)


@composite(space="fft", out=True)
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `hfft`."""
    return _r2c("ihfft", input, _one(n), dim, norm, False).conj()


# --------------------------------------------------------------------------------------------------- several dimensions


@composite(space="fft", out=True)
def fftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The transform over the dimensions `dim`, all unless given."""
    return _c2c(input, s, dim, norm, True)


@composite(space="fft", out=True)
def ifftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `fftn`."""
    return _c2c(input, s, dim, norm, False)


@composite(space="fft", out=True)
def rfftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The transform of a real tensor over `dim`, halved along the last."""
    return _r2c("rfftn", input, s, dim, norm, True)


@composite(space="fft", out=True)
def irfftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `rfftn`."""
    return _c2r("irfftn", input, s, dim, norm, False)


@composite(space="fft", out=True)
def hfftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The real transform of a signal that is Hermitian along the last of `dim`, of which half is given."""
    return _c2r("hfftn", input, s, dim, norm, True)


@composite(space="fft", out=True)
def ihfftn(input: Tensor, s: Dims = None, dim: Dims = None, norm: str | None = None) -> Tensor:
    """The inverse of `hfftn`."""
    return _r2c("ihfftn", input, s, dim, norm, False).conj()


def _two_dimensional(name: str, function: Any) -> Any:
    def transform(input: Tensor, s: Dims = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
        return function(input, s, dim, norm)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"`{function.__name__}` over two dimensions, the last ones unless given."
    return transform


fft2: Any = composite(space="fft", out=True)(_two_dimensional("fft2", fftn))
ifft2: Any = composite(space="fft", out=True)(_two_dimensional("ifft2", ifftn))
rfft2: Any = composite(space="fft", out=True)(_two_dimensional("rfft2", rfftn))
irfft2: Any = composite(space="fft", out=True)(_two_dimensional("irfft2", irfftn))
hfft2: Any = composite(space="fft", out=True)(_two_dimensional("hfft2", hfftn))
ihfft2: Any = composite(space="fft", out=True)(_two_dimensional("ihfft2", ihfftn))


# ---------------------------------------------------------------------------------------------------------- frequencies


def _float(dtype: Any) -> np.dtype:
    found = dtypes.as_numpy_dtype(dtype)
    return dtypes.default[0] if found is None else found


@composite(space="fft")
def fftfreq(
    n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **kw: Any
) -> Tensor:
    """The frequencies of the `n` numbers that `fft` gives, for points `d` apart.

    >>> import retrograd as torch
    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return _out(np.fft.fftfreq(n, d).astype(_float(dtype)), requires_grad, device, kw)


@composite(space="fft")
def rfftfreq(
    n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **kw: Any
) -> Tensor:
    """The frequencies of the numbers that `rfft` gives."""
    return _out(np.fft.rfftfreq(n, d).astype(_float(dtype)), requires_grad, device, kw)


@composite(space="fft")
def fftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """`input` with the frequency 0 in the middle of each of `dim`."""
    return _shifted(input, dim, lambda n: n // 2)


@composite(space="fft")
def ifftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _shifted(input, dim, lambda n: (n + 1) // 2)


def _shifted(input: Tensor, dim: Dims, by: Any) -> Tensor:
    ndim = input._memory_.ndim
    dims = [_dim(d, ndim) for d in ([dim] if isinstance(dim, int) else range(ndim) if dim is None else dim)]
    if not dims and dim is not None:
        raise RuntimeError("`shifts` required: there are no dimensions to shift along")
    return generated.roll(input, [by(input._memory_.shape[d]) for d in dims], dims) if dims else input.clone()


def _padded(input: Any, width: int, mode: str) -> Any:
    """`input` with `width` more elements at both ends of its last dimension."""
    n = input._memory_.shape[-1]
    if mode == "constant":
        return generated.constant_pad_nd(input, (width, width), 0)
    modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in modes:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if width >= n + (mode != "reflect"):
        raise RuntimeError(
            f"Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
            f"({width}, {width}) at dimension {input._memory_.ndim - 1} of input {list(input._memory_.shape)}"
        )
    places = np.pad(np.arange(n), width, mode=modes[mode])  # type: ignore[call-overload]
    source = input if mode == "circular" else generated.straight(input)
    return generated.index_select(source, input._memory_.ndim - 1, beside(input, places.astype(np.int64)))


def _whole_window(name: str, window: Any, win_length: int, n_fft: int, like: Tensor) -> Any:
    """The window with zeros at both ends up to `n_fft`; ones unless given."""
    if not 0 < win_length <= n_fft:
        raise RuntimeError(f"{name}: expected 0 < win_length <= n_fft, but got win_length={win_length}")
    if window is None:
        real = like_array(like).real.dtype if like.is_complex() else like._memory_.dtype
        window = beside(like, np.ones(win_length, real))
    if window._memory_.shape != (win_length,):
        raise RuntimeError(
            f"{name}: expected a 1D window tensor of size equal to win_length={win_length}, but got window with size "
            f"{list(window._memory_.shape)}"
        )
    left = (n_fft - win_length) // 2
    return generated.constant_pad_nd(window, (left, n_fft - win_length - left), 0) if win_length < n_fft else window


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
    if input._memory_.ndim not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, but got a {input._memory_.ndim}D tensor")
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
        signal = generated.constant_pad_nd(signal, ((n_fft - length) // 2,) * 2, 0)
    if not 0 < n_fft <= signal._memory_.shape[-1]:
        raise RuntimeError(f"stft: expected 0 < n_fft <= {signal._memory_.shape[-1]}, but got n_fft={n_fft}")
    frames = generated.unfold(signal, signal._memory_.ndim - 1, n_fft, hop) * weights
    transform = rfft if real and onesided is not False else fft
    result = transform(frames, norm="ortho" if normalized else None).transpose(-1, -2)
    return result if return_complex else generated.view_as_real(result)


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
    if not input._memory_.size:
        raise RuntimeError("istft: input tensor cannot be empty.")
    if input._memory_.ndim not in (2, 3):
        raise RuntimeError(f"istft: expected a tensor with 2 or 3 dimensions, but got {input._memory_.ndim}")
    hop = n_fft // 4 if hop_length is None else hop_length
    if not 0 < hop <= (win_length or n_fft):
        raise RuntimeError(f"istft: expected 0 < hop_length <= win_length, but got hop_length={hop}")
    rows, count = input._memory_.shape[-2:]
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
    frames: Any = ifft(columns, n_fft, norm=norm) if return_complex else irfft(columns, n_fft, norm=norm)
    size = n_fft + hop * (count - 1)
    total = _overlapped(frames * weights, size, n_fft, hop)
    envelope = _overlapped((weights * weights).expand(count, n_fft), size, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = size - start if length is None else min(start + length, size)
    total, envelope = narrow(total, -1, start, end - start), narrow(envelope, -1, start, end - start)
    least = np.abs(all_values(envelope))
    if (least <= 1e-11).any():
        raise RuntimeError(f"istft(...) window overlap add min: {float(least.min())}")
    result = total / envelope
    if length is not None and length > end - start:
        result = generated.constant_pad_nd(result, (0, length - (end - start)), 0)
    return result


def _overlapped(frames: Any, size: int, n_fft: int, hop: int) -> Any:
    """The frames added up at places `hop` apart."""
    return generated.unfold_backward(frames, (*frames._memory_.shape[:-2], size), frames._memory_.ndim - 2, n_fft, hop)
