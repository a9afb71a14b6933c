"""``torch.distributed.pipelining``: layers shared out among processes. Here is one process: its names refuse."""

from .refusals import names_of

_NAMES = [
    "PipelineStage", "Schedule1F1B", "ScheduleGPipe", "SplitPoint", "pipe_split", "pipeline",
]  # fmt: skip

__all__ = list(_NAMES)
__getattr__ = names_of(__name__, _NAMES)
