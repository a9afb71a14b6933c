"""Times that were measured, and what they say."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: Spread, as a share of the median, from which on a measurement is not to be trusted.
_WARN_AT, _DISTRUST_AT = 0.1, 0.25
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time is best written, and its length in seconds.

    >>> select_unit(0.002)
    ('ms', 0.001)
    """
    unit = next((name for name, length in _UNITS.items() if t >= length), "ns")
    return unit, _UNITS[unit]


def trim_sigfig(x: float, n: int) -> float:
    """`x` to `n` significant figures.

    >>> trim_sigfig(1234.5, 2)
    1200.0
    """
    if x == 0:
        return 0.0
    scale = 10.0 ** (math.floor(math.log10(abs(x))) + 1 - n)
    return float(round(x / scale) * scale)


@dataclass(frozen=True)
class TaskSpec:
    """What was measured."""

    stmt: str
    setup: str = "pass"
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """Label and statement in words."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        return self.stmt if "\n" not in self.stmt else f"stmt:\n{self.stmt}"


@dataclass
class Measurement:
    """The times of several runs of one statement, each of `number_per_run` calls.

    >>> m = Measurement(10, [0.01, 0.02, 0.03], TaskSpec("f()"))
    >>> m.median, m.times
    (0.002, [0.001, 0.002, 0.003])
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = field(default=None)

    @property
    def times(self) -> list[float]:
        """Seconds per call, of each run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """The median of seconds per call."""
        self._check()
        return float(np.median(self.times))

    @property
    def mean(self) -> float:
        """The mean of seconds per call."""
        self._check()
        return float(np.mean(self.times))

    @property
    def iqr(self) -> float:
        """The distance of the quartiles."""
        self._check()
        low, high = np.quantile(self.times, (0.25, 0.75))
        return float(high - low)

    @property
    def significant_figures(self) -> int:
        """How many figures of the median the spread lets stand."""
        self._check()
        spread = self.iqr / math.sqrt(max(len(self.raw_times), 1)) * 2 + 1e-15
        return max(1, min(4, int(math.log10(max(self.median / spread, 1.0))) + 1))

    @property
    def has_warnings(self) -> bool:
        """Is the spread large beside the median?"""
        return self.meets_confidence() is False

    def meets_confidence(self, threshold: float = _WARN_AT) -> bool:
        """Is the spread small beside the median?"""
        self._check()
        return self.iqr / max(self.median, 1e-300) < threshold

    title = property(lambda self: self.task_spec.title, doc="What the task is called.")
    env = property(lambda self: self.task_spec.env or "Unspecified env", doc="What it was measured in.")
    as_row_name = property(
        lambda self: self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]",
        doc="What its row is called in a table.",
    )
    num_threads = property(lambda self: self.task_spec.num_threads, doc="On how many threads it ran.")
    label = property(lambda self: self.task_spec.label, doc="The label of the task.")
    sub_label = property(lambda self: self.task_spec.sub_label, doc="The second label of the task.")
    description = property(lambda self: self.task_spec.description, doc="What tells it from others in a row.")
    stmt = property(lambda self: self.task_spec.stmt, doc="The code that was measured.")

    def _check(self) -> None:
        if not self.raw_times:
            raise AssertionError("No data: nothing was measured")

    def __repr__(self) -> str:
        unit, length = select_unit(self.median)
        lines = [f"<{type(self).__module__}.{type(self).__name__} object>", self.title]
        if self.task_spec.description:
            lines.append(self.task_spec.description)
        if self.task_spec.setup not in ("", "pass"):
            lines.append(f"setup: {self.task_spec.setup}")
        word = "Median" if len(self.raw_times) > 1 else "Time"
        lines.append(f"  {word}: {self.median / length:.2f} {unit}")
        if len(self.raw_times) > 1:
            low, high = (float(q) / length for q in np.quantile(self.times, (0.25, 0.75)))
            lines.append(f"  IQR:    {self.iqr / length:.2f} {unit} ({low:.2f} to {high:.2f})")
            plural = "s" * (self.number_per_run != 1)
            lines.append(f"  {len(self.raw_times)} measurements, {self.number_per_run} run{plural} per measurement")
        share = self.iqr / max(self.median, 1e-300)
        if share > _WARN_AT:
            lines.append(f"  WARNING: Interquartile range is {share:.1%} of the median measurement.")
            if share > _DISTRUST_AT:
                lines.append("           This suggests significant environmental influence.")
        lines.append(f"  {self.num_threads} thread{'s' * (self.num_threads != 1)}")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Any) -> list[Measurement]:
        """Measurements of the same thing become one."""
        together: dict[TaskSpec, list[Measurement]] = {}
        for measurement in measurements:
            together.setdefault(measurement.task_spec, []).append(measurement)
        return [Measurement(1, [t for m in ms for t in m.times], spec) for spec, ms in together.items()]
