"""``torch.distributed.algorithms.join``: processes with numbers of inputs that differ.

Collective operations need everybody. A process whose inputs are used up goes on to take part in those of the others,
with nothing to add, until all are through: that is what its `JoinHook` does. Each step begins with a count of those
that still have inputs, by which the others notice.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

from ...ops import factories
from ..collectives import all_reduce
from ..process_group import ProcessGroup
from ..work import Work

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process does that has no inputs left."""

    def main_hook(self) -> None:
        """For each step of the others: take part in its operations."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """When all are through. `is_last_joiner`: was this process among the last that had inputs?"""


class _JoinConfig:
    """What a `Joinable` knows of the join that it is in."""

    __slots__ = ("enable", "throw", "is_first", "shadowing")

    def __init__(self, enable: bool = False, throw: bool = False, is_first: bool = False) -> None:
        self.enable, self.throw, self.is_first = enable, throw, is_first
        self.shadowing = False


class Joinable(ABC):
    """Something that communicates in every step, and can take part without inputs."""

    def __init__(self) -> None:
        self._join_config = _JoinConfig()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What it does without inputs."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """Where its tensors are."""

    @property
    @abstractmethod
    def join_process_group(self) -> ProcessGroup:
        """Who takes part."""


class Join:
    """A context in which each process may have as many inputs as it likes.

    ``with Join([model]): for x in inputs: model(x).sum().backward()``
    """

    def __init__(
        self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        if len({id(joinable.join_process_group) for joinable in joinables}) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        self._joinables, self._enable, self._throw = joinables, enable, throw_on_early_termination
        self._group = joinables[0].join_process_group
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]

    def __enter__(self) -> Join:
        for number, joinable in enumerate(self._joinables):
            joinable._join_config = _JoinConfig(self._enable, self._throw, self._enable and number == 0)
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if not self._enable or kind is not None:
            self._leave()
            return
        is_last, turns = True, 0
        while self._active() > 0:
            is_last = False
            if self._throw:
                all_reduce(factories.ones([1]), group=self._group)
                self._leave()
                raise RuntimeError(f"Rank {self._group.rank()} exhausted all inputs.")
            turns += 1
            if turns == 1000:
                warnings.warn("Detected uneven input skew of greater than 1000. This means that rank "
                              f"{self._group.rank()} has at least 1000 fewer inputs than other currently-active ranks.",
                              stacklevel=2)  # fmt: skip
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks:
            hook.post_hook(is_last)
        self._leave()

    def _leave(self) -> None:
        for joinable in self._joinables:
            joinable._join_config = _JoinConfig()

    def _active(self) -> int:
        """How many still have inputs; this process has none."""
        count = factories.zeros([1])
        all_reduce(count, group=self._group)
        return int(count.item())

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """A step begins: count this process among those that have inputs. The first of the join's objects does."""
        config = joinable._join_config
        if not config.is_first or not config.enable:
            return None
        group = joinable.join_process_group
        work = all_reduce(factories.ones([1]), group=group, async_op=True)
        if config.throw:
            ended = factories.zeros([1])
            assert work is not None
            work.wait()
            if int(work.result()[0].item()) < group.size():
                all_reduce(ended, group=group)
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work
