"""GradBucket: gradients that travel together, as communication hooks see them."""

from __future__ import annotations

from ..tensor import Tensor

__all__ = ["GradBucket"]


class GradBucket:
    """Gradients that travel together. A hook of ``DistributedDataParallel.register_comm_hook`` is given it."""

    def __init__(self, index: int, buffer: Tensor, views: list[Tensor], parameters: list[Tensor], last: bool) -> None:
        self._index, self._buffer, self._views, self._parameters, self._last = index, buffer, views, parameters, last

    def index(self) -> int:
        """Its number: those with lower numbers are sent before."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients in one piece."""
        return self._buffer

    def set_buffer(self, tensor: Tensor) -> None:
        """Put another tensor in its place."""
        self._buffer = tensor

    def gradients(self) -> list[Tensor]:
        """Each gradient, as a part of the buffer."""
        return self._views

    def parameters(self) -> list[Tensor]:
        """What they are gradients of."""
        return self._parameters

    def is_last(self) -> bool:
        """Is it the last one of this step?"""
        return self._last
