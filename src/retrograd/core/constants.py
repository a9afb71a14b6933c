"""Numbers and marks of the public namespace: ``torch.pi``, ``torch.contiguous_format`` and so on."""

from __future__ import annotations

from math import e, inf, nan, pi

newaxis = None


class memory_format:
    """How the dimensions of a tensor follow each other in memory."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return "torch." + self.name

    def __reduce__(self) -> str:
        return self.name


#: Row-major.
contiguous_format: memory_format = memory_format("contiguous_format")
#: As the input has it.
preserve_format: memory_format = memory_format("preserve_format")
#: (N, C, H, W) with the channels innermost.
channels_last: memory_format = memory_format("channels_last")
#: (N, C, D, H, W) with the channels innermost.
channels_last_3d: memory_format = memory_format("channels_last_3d")

__all__ = [
    "channels_last", "channels_last_3d", "contiguous_format", "e", "inf", "memory_format", "nan", "newaxis", "pi",
    "preserve_format",
]  # fmt: skip
