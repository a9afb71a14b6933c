"""``torch.signal``: signal processing; so far there are windows."""

from . import windows

__all__ = ["windows"]
