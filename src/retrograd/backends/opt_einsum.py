"""``torch.backends.opt_einsum``: `einsum` chooses its order with NumPy's search, which is the same."""

from __future__ import annotations

enabled = True
strategy = "auto"


def is_available() -> bool:
    """Is the package opt_einsum used? No."""
    return False


def get_opt_einsum() -> None:
    """The package: none."""
    return None
