"""One line makes a step fast: programs that are recorded once and replayed (docs/CAPTURE.md).

>>> import retrograd as torch
>>> double = torch.capture(lambda x: x + x)
>>> [double(torch.tensor([i])).item() for i in range(4)]
[0, 2, 4, 6]
"""

from . import package as _package
from .api import Captured, capture, make_graphed_callables
from .errors import CaptureError

__all__ = ["CaptureError", "Captured", "capture", "make_graphed_callables"]
