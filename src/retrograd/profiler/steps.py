"""The steps of a program, counted over all who announce them."""

from __future__ import annotations

from collections import defaultdict


class KinetoStepTracker:
    """Counts the steps of a program that several parts of it announce: the largest count is the program's."""

    _current_step: int = 0
    _step_dict: dict[str, int] = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """A part of the program will announce steps: it begins where the others are."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """It will not any more; was it known?"""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """It announces a step; the count of the program after it."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        cls._current_step = max(cls._current_step, *cls._step_dict.values())
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The count of the program."""
        return cls._current_step
