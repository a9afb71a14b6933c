"""``torch.fft``: discrete Fourier transforms; `ops/composite/fft.py` has them.

>>> import retrograd as torch
>>> torch.fft.rfft(torch.tensor([1., 0., 0., 0.]))
tensor([1.+0.j, 1.+0.j, 1.+0.j])
"""

from .ops import namespace as _namespace  # noqa: F401  # (declares the operators)
from .ops.registry import SPACES as _SPACES

globals().update(_SPACES["fft"])
__all__ = sorted(_SPACES["fft"])
