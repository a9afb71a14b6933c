"""One line makes a step fast: programs that are recorded once and replayed (docs/CAPTURE.md)."""

from .api import Captured, capture
from .errors import CaptureError

__all__ = ["CaptureError", "Captured", "capture"]
