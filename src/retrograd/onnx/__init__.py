"""``torch.onnx``: nothing is exported here."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["export", "is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """Is this code being exported? Never."""
    return False


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused."""
    raise RuntimeError(
        "torch.onnx.export(): retrograd exports no programs. Save the weights with torch.save(model.state_dict(), "
        "path), which torch can read, and export there"
    )
