"""``torch.backends.cpu``: what the processor can do is NumPy's business."""

from __future__ import annotations


def get_cpu_capability() -> str:
    """The instructions that are used, in torch's words: "DEFAULT", since NumPy chooses them by itself."""
    return "DEFAULT"
