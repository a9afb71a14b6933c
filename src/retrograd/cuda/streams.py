"""``torch.cuda.streams``: queues of work for CUDA devices."""

from . import Event, Stream

__all__ = ["Event", "Stream"]
