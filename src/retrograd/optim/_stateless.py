"""Let an optimizer work on other tensors for a while: parameters, state and settings are swapped in and out."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ..tensor import Tensor
from .optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]

_NAME = "swap_in_optimizer_params_and_state"


class swap_in_optimizer_params_and_state:
    """Within ``with``, `optimizer` has other parameters and the state and settings of a state dict.

    `swapin_parameters` are in the order of the groups; what steps write, they write to these tensors and to the tensors
    of the state dict.

    >>> import retrograd as torch
    >>> w, other = torch.ones(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    >>> optimizer = torch.optim.SGD([w], lr=1.0, momentum=0.9)
    >>> w.grad = other.grad = torch.ones(1)
    >>> optimizer.step()
    >>> with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"w": other}, optimizer.state_dict()):
    ...     optimizer.step()
    >>> w.item(), other.item()
    (0.0, -1.899999976158142)
    """

    def __init__(
        self, optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
    ) -> None:
        self.optimizer = optimizer
        self.swapped: tuple[Any, Any] = optimizer.state, [dict(group) for group in optimizer.param_groups]
        if not optimizer.state:
            raise RuntimeError(f"{_NAME} requires initialized optimizer state.")
        if not isinstance(swapin_optim_state, dict):
            raise RuntimeError(f"{_NAME} requires a DCP-style optimizer state_dict.")
        saved = _checked_state(swapin_optim_state.get("state"))
        groups = swapin_optim_state.get("param_groups")
        if not isinstance(groups, list):
            raise RuntimeError(
                f"{_NAME} requires swapin_optim_state['param_groups'] to be a list of param-group dicts, got "
                f"{type(groups).__name__}."
            )
        if len(optimizer.param_groups) != len(groups):
            raise RuntimeError(
                "swapin_optim_state has a different number of parameter groups than the live optimizer."
            )
        given = iter(swapin_parameters.values())
        left = len(swapin_parameters)
        state: defaultdict[Any, Any] = defaultdict(dict)
        self.groups: list[dict[str, Any]] = []
        seen: set[int] = set()
        for index, (mine, theirs) in enumerate(zip(optimizer.param_groups, groups)):
            numbers = _checked_numbers(index, mine, theirs)
            left -= len(numbers)
            if left < 0:
                raise RuntimeError(
                    f"{_NAME} requires the explicit parameter state to match optimizer.param_groups ordering."
                )
            params = [next(given) for _ in numbers]
            self.groups.append({**theirs, "params": params})
            for param, number in zip(params, numbers):
                state[param] = dict(saved.get(number, {}))
            seen.update(numbers)
        extra = [key for key in saved if key not in seen]
        if extra:
            raise RuntimeError(
                f"{_NAME} requires swapin_optim_state['state'] to be keyed only by packed parameter ids from "
                f"param_groups[*]['params']; got extra keys {extra!r}."
            )
        self.state = state

    def __enter__(self) -> None:
        for group, settings in zip(self.optimizer.param_groups, self.groups):
            group.update(settings)
        self.optimizer.state = self.state

    def __exit__(self, *exc_info: object) -> None:
        state, groups = self.swapped
        for group, settings in zip(self.optimizer.param_groups, groups):
            group.clear()
            group.update(settings)
        self.optimizer.state = state


def _checked_state(state: Any) -> dict[Any, Any]:
    if not isinstance(state, dict):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be a dict mapping packed parameter ids to per-param "
            f"state dicts, got {type(state).__name__}."
        )
    if any(isinstance(key, Tensor) for key in state):
        raise RuntimeError(f"{_NAME} requires optimizer.state_dict()-style state keyed by packed parameter ids.")
    if any(isinstance(key, int) and not isinstance(value, dict) for key, value in state.items()):
        raise RuntimeError(f"{_NAME} requires per-parameter optimizer state entries to be dictionaries.")
    return state


def _checked_numbers(index: int, mine: dict[str, Any], theirs: Any) -> list[int]:
    """The numbers of a group's parameters, if the group fits the optimizer's."""
    if not isinstance(theirs, dict):
        raise RuntimeError(f"{_NAME} requires each optimizer param group to be a dictionary.")
    numbers = theirs.get("params")
    if not isinstance(numbers, list) or not all(isinstance(number, int) for number in numbers):
        raise RuntimeError(
            f"{_NAME} requires optimizer.state_dict()-style param_groups[*]['params'] entries keyed by packed "
            "parameter ids."
        )
    if len(mine["params"]) != len(numbers):
        raise RuntimeError(
            f"swapin_optim_state param group {index} has a different number of params than the live optimizer param "
            "group."
        )
    only_theirs, only_mine = [key for key in theirs if key not in mine], [key for key in mine if key not in theirs]
    if only_theirs or only_mine:
        raise RuntimeError(
            f"{_NAME} requires optimizer.state_dict()-style param group keys to exactly match the live optimizer group "
            f"keys for group {index}. Keys only in swap-in: {only_theirs}. Keys only in live: {only_mine}."
        )
    return numbers
