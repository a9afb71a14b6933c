"""``torch.utils.benchmark``: how long a statement takes, and tables of that."""

from .compare import Compare
from .measurement import Measurement, select_unit, trim_sigfig
from .timer import Timer, timer

__all__ = ["Compare", "Measurement", "Timer", "select_unit", "timer", "trim_sigfig"]
