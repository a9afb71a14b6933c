"""What users log, as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tensor import Tensor

__all__ = ["make_np"]


def make_np(x: Any) -> np.ndarray:
    """The values of a tensor, an array or a number."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        if x.dtype.is_floating_point and x.element_size() < 4:  # NumPy does not know all of these
            x = x.float()
        return x.resolve_conj().numpy()
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")
