"""Measuring a statement."""

from __future__ import annotations

import textwrap
import timeit
from collections.abc import Callable
from typing import Any

from ...core.threads import get_num_threads, set_num_threads
from .measurement import Measurement, TaskSpec

#: The clock.
timer: Callable[[], float] = timeit.default_timer


class Timer:
    """Measures a statement of Python, with as many threads as are asked for.

    >>> measured = Timer("x + 1", globals={"x": 1}).timeit(100)
    >>> measured.number_per_run, measured.median > 0
    (100, True)
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: str = "py",
    ) -> None:
        if str(language).lower() not in ("py", "python", "language.python"):
            raise ValueError(f"retrograd measures statements of Python, not of {language}")
        if global_setup:
            raise ValueError("global_setup is code outside of a function in C++, and retrograd measures Python alone")
        stmt, setup = (textwrap.dedent(code).strip() for code in (stmt, setup))
        self._timer = timeit.Timer(stmt, setup, timer, dict(globals or {}))
        self._clock = timer
        self._task_spec = TaskSpec(
            stmt, setup, label=label, sub_label=sub_label, description=description, env=env, num_threads=num_threads
        )

    def _time(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def _within_threads(self, measure: Callable[[], Measurement]) -> Measurement:
        before = get_num_threads()
        set_num_threads(self._task_spec.num_threads)
        try:
            return measure()
        finally:
            set_num_threads(before)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One run of `number` calls, after a shorter one to warm up."""

        def measure() -> Measurement:
            self._time(max(number // 100, 2))
            return Measurement(number, [self._time(number)], self._task_spec)

        return self._within_threads(measure)

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Runs of so many calls that the clock costs little, until `min_run_time` seconds are spent."""

        def measure() -> Measurement:
            number = self._block_size(min_run_time)
            times: list[float] = []
            while sum(times) < min_run_time:
                times.append(self._time(number))
                if callback is not None:
                    callback(number, times[-1])
            return Measurement(number, times, self._task_spec)

        return self._within_threads(measure)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Runs until the spread is less than `threshold` of the median, or `max_run_time` seconds are spent."""

        def measure() -> Measurement:
            number = self._block_size(min_run_time)
            times: list[float] = []
            while True:
                times.append(self._time(number))
                if callback is not None:
                    callback(number, times[-1])
                found = Measurement(number, times, self._task_spec)
                enough = sum(times) >= min_run_time and len(times) > 3 and found.meets_confidence(threshold)
                if enough or sum(times) >= max_run_time:
                    return found

        return self._within_threads(measure)

    def _block_size(self, min_run_time: float) -> int:
        """How many calls make a run that is long beside the clock's own time."""
        started = self._clock()
        for _ in range(100):
            overhead = self._clock()
        overhead = max((overhead - started) / 100, 1e-9)
        number = 1
        while True:
            taken = self._time(number)
            if (overhead / taken <= 1e-4 and taken >= min_run_time / 1000) or taken > min_run_time:
                return number
            number *= 10
