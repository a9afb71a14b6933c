"""``torch.signal.windows``: window functions, as scipy.signal has them.

All take the number of points `M` and, by name, `sym`: a symmetric window, for filters, or (False) a periodic one, for
spectra: one point more of a symmetric one, without the last.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ...core import dtypes
from ...core.late import operators as ops
from ...core.layout import strided
from ...tensor import Tensor

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


def _points(M: int, start: float, step: float, dtype: Any, device: Any) -> Tensor:
    """``start + n * step`` for `M` points."""
    return ops.linspace(start, start + (M - 1) * step, M, dtype=dtype, device=device)


def _checked(name: str, M: int, dtype: Any, layout: Any) -> Any:
    """The dtype of a window, if there is such a window."""
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return dtype


def _finished(window: Tensor, requires_grad: bool) -> Tensor:
    return window.detach().requires_grad_() if requires_grad else window


def _one_or_none(M: int, dtype: Any, device: Any) -> Tensor:
    return ops.ones((M,), dtype=dtype, device=device)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None,
    layout: Any = strided, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """``exp(-|n - center| / tau)``; the center of a symmetric window is its middle.

    >>> import retrograd as torch
    >>> torch.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    dtype = _checked("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return _finished(_one_or_none(0, dtype, device), requires_grad)
    if center is None:
        center = (M if not sym and M > 1 else M - 1) / 2.0
    k = _points(M, -center / tau, 1 / tau, dtype, device)
    return _finished(ops.exp(-ops.abs(k)), requires_grad)


def cosine(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """``sin(pi / M * (n + 1/2))``.

    >>> import retrograd as torch
    >>> torch.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    dtype = _checked("cosine", M, dtype, layout)
    if M == 0:
        return _finished(_one_or_none(0, dtype, device), requires_grad)
    step = math.pi / (M + 1 if not sym and M > 1 else M)
    return _finished(ops.sin(_points(M, 0.5 * step, step, dtype, device)), requires_grad)


def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """``exp(-(n / std)**2 / 2)``, around the middle.

    >>> import retrograd as torch
    >>> torch.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    dtype = _checked("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return _finished(_one_or_none(0, dtype, device), requires_grad)
    step = 1 / (std * math.sqrt(2))
    start = -(M if not sym and M > 1 else M - 1) / 2.0
    k = _points(M, start * step, step, dtype, device)
    return _finished(ops.exp(-(k * k)), requires_grad)  # type: ignore[operator]


def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """``i0(beta * sqrt(1 - x**2)) / i0(beta)`` for x from -1 to 1; a larger `beta` makes it narrower.

    >>> import retrograd as torch
    >>> torch.signal.windows.kaiser(3, beta=1.)
    tensor([0.7898, 1.0000, 0.7898])
    """
    dtype = _checked("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M <= 1:
        return _finished(_one_or_none(M, dtype, device), requires_grad)
    step = 2.0 * beta / (M if not sym else M - 1)
    # (Rounded, the last point may lie behind the edge.)
    end = min(beta, -beta + (M - 1) * step)
    size = ops.tensor(beta, dtype=dtype, device=device)
    k = ops.linspace(-beta, end, M, dtype=dtype, device=device)
    inside = ops.clamp_min(size * size - k * k, 0)
    return _finished(ops.i0(ops.sqrt(inside)) / ops.i0(size), requires_grad)


def general_cosine(
    M: int, *, a: Iterable[float], sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The sum of ``(-1)**i * a[i] * cos(2 * pi * i * n / (M - 1))``.

    >>> import retrograd as torch
    >>> torch.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    dtype = _checked("general_cosine", M, dtype, layout)
    if M <= 1:
        return _finished(_one_or_none(M, dtype, device), requires_grad)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = [-w if i % 2 else w for i, w in enumerate(a)]
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    step = 2 * math.pi / (M if not sym else M - 1)
    k = _points(M, 0.0, step, dtype, device)
    i = ops.arange(len(weights), dtype=dtype, device=device)
    each = ops.unsqueeze(ops.tensor(weights, dtype=dtype, device=device), -1)
    return _finished(ops.sum(each * ops.cos(ops.unsqueeze(i, -1) * k), 0), requires_grad)


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """``alpha - (1 - alpha) * cos(2 * pi * n / (M - 1))``.

    >>> import retrograd as torch
    >>> torch.signal.windows.general_hamming(3, alpha=0.6)
    tensor([0.2000, 1.0000, 0.2000])
    """
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hamming(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The window of Hamming: `general_hamming` of 0.54.

    >>> import retrograd as torch
    >>> torch.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The window of von Hann: `general_hamming` of 0.5.

    >>> import retrograd as torch
    >>> torch.signal.windows.hann(3)
    tensor([0., 1., 0.])
    """
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The window of Blackman: `general_cosine` of 0.42, 0.5 and 0.08.

    >>> import retrograd as torch
    >>> torch.signal.windows.blackman(5)[1:4]
    tensor([0.3400, 1.0000, 0.3400])
    """
    dtype = _checked("blackman", M, dtype, layout)
    return general_cosine(
        M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def nuttall(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The window of Nuttall with four terms: small beside its middle, to 98 decibels.

    >>> import retrograd as torch
    >>> torch.signal.windows.nuttall(5)[1:4]
    tensor([0.2270, 1.0000, 0.2270])
    """
    terms = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(
        M, a=terms, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def bartlett(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A triangle: ``1 - |x|`` for x from -1 to 1.

    >>> import retrograd as torch
    >>> torch.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    dtype = _checked("bartlett", M, dtype, layout)
    if M <= 1:
        return _finished(_one_or_none(M, dtype, device), requires_grad)
    step = 2 / (M if not sym else M - 1)
    return _finished(1 - ops.abs(_points(M, -1.0, step, dtype, device)), requires_grad)
