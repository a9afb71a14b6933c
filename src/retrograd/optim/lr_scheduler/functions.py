"""LambdaLR and MultiplicativeLR: rates by functions of the epoch that the user gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, saved_function


class _ByFunctions(LRScheduler):
    """A function for each group, or one for all; the attributes of those that are objects are saved."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            lr_lambda = [lr_lambda] * groups
        elif len(lr_lambda) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
        self.lr_lambdas: list[Callable[[int], float]] = list(lr_lambda)
        self._check_functions()
        super().__init__(optimizer, last_epoch)

    def _check_functions(self) -> None:
        pass

    def state_dict(self) -> dict[str, Any]:
        """All that the scheduler has but the optimizer and functions."""
        state = super().state_dict()
        del state["lr_lambdas"]
        return {**state, "lr_lambdas": [saved_function(function) for function in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave; functions stay as they are."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for function, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if saved is not None:
                function.__dict__.update(saved)


class LambdaLR(_ByFunctions):
    """The first rate times what a function gives for the epoch.

    >>> import retrograd as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.5)
    >>> scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        return [base * function(self.last_epoch) for base, function in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_ByFunctions):
    """The rate so far times what a function gives for the epoch.

    >>> import retrograd as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.5)
    >>> scheduler = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def _check_functions(self) -> None:
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self._is_initial:
            return self._now()
        groups = self.optimizer.param_groups
        return [
            group["lr"] * function(self.last_epoch) for group, function in zip(groups, self.lr_lambdas, strict=True)
        ]
