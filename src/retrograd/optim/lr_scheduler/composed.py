"""Schedulers made of schedulers: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, _param_groups_val_list, _update_param_group_val
from .plateau import ReduceLROnPlateau


class _Composed(LRScheduler):
    """A scheduler whose state is that of others."""

    _schedulers: Sequence[LRScheduler]

    def _check(self, schedulers: Sequence[Any], optimizer: Any) -> None:
        name = type(self).__name__
        for index, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {index} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {index} in the given schedulers sequence."
                )
            if optimizer != scheduler.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {index} has {scheduler.optimizer}, which is different from "
                    f"{type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """All that the scheduler has but the optimizer; the state dicts of the others in their place."""
        state = super().state_dict()
        del state["_schedulers"]
        return {**state, "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(state)


class SequentialLR(_Composed):
    """One scheduler after the other: the next one takes over at each of `milestones`.

    >>> import retrograd as torch
    >>> from retrograd.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> warmup, decay = ConstantLR(optimizer, factor=0.1, total_iters=2), ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = SequentialLR(optimizer, [warmup, decay], milestones=[2])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [0.1, 0.1, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each scheduler has set its first rate when it was made: as if none had, but the first.
        for group in optimizer.param_groups:
            _update_param_group_val(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Take back one step of all schedulers in it."""
        waiting = [self if sched is None else sched]
        while waiting:
            scheduler: Any = waiting.pop()
            if hasattr(scheduler, "_schedulers"):
                waiting += scheduler._schedulers
            elif hasattr(scheduler, "last_epoch"):
                scheduler.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Go on to the next epoch."""
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composed):
    """All schedulers at each step, one on top of the other.

    >>> import retrograd as torch
    >>> from retrograd.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> parts = [ConstantLR(optimizer, factor=0.5, total_iters=2), ExponentialLR(optimizer, gamma=0.5)]
    >>> scheduler = ChainedScheduler(parts)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        self._check(schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = _param_groups_val_list(optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Go on to the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _param_groups_val_list(self.optimizer, "lr")
