"""What moves on beside tensors: generators and optimizers, which have to stand where they stood if a step fails."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import random
from ..core.version_counter import INFERENCE
from ..optim import Optimizer
from ..tensor import Tensor
from .program import Program
from .values import Call


class MovingGenerator:
    """A generator of random numbers."""

    def __init__(self, generator: random.Generator) -> None:
        self._generator: random.Generator = generator

    def state(self) -> Any:
        generator = self._generator
        return generator.twister, generator.twister.bit_generator.state, generator.kept_normal

    def put_back(self, state: Any) -> None:
        generator = self._generator
        generator.twister, words, generator.kept_normal = state
        generator.twister.bit_generator.state = words


class MovingOptimizer:
    """An optimizer with its state and its numbers."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer: Optimizer = optimizer

    def state(self) -> Any:
        found = self._optimizer.state.items()
        tensors = {key: _with_contents(state) for key, state in found if isinstance(state, dict)}
        return tensors, [_with_contents(group) for group in self._optimizer.param_groups]

    def put_back(self, state: Any) -> None:
        optimizer, (before, groups) = self._optimizer, state
        for key in [key for key in optimizer.state if key not in before]:
            del optimizer.state[key]
        for key, entries in before.items():
            optimizer.state[key].clear()
            _put_back(optimizer.state[key], entries)
        for group, entries in zip(optimizer.param_groups, groups, strict=True):
            _put_back(group, entries)


def _with_contents(entries: dict[Any, Any]) -> dict[Any, Any]:
    """Entries of an optimizer: the values, and of tensors what is in them and how often they were written to."""
    found: dict[Any, Any] = {}
    for name, value in entries.items():
        content = None
        if isinstance(value, Tensor):
            counter = value._vc_
            content = value._memory_.copy(), 0 if counter is None or counter is INFERENCE else counter.version
        found[name] = value, content
    return found


def _put_back(entries: dict[Any, Any], before: dict[Any, Any]) -> None:
    for name, (value, content) in before.items():
        if content is not None:
            array, version = content
            np.copyto(value._memory_, array)
            if value._vc_ is not None and value._vc_ is not INFERENCE:
                value._vc_.version = version
        entries[name] = value


class MovingAttributes:
    """A scheduler: its attributes."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler: Any = scheduler

    def state(self) -> Any:
        return {name: list(one) if one.__class__ is list else one for name, one in vars(self._scheduler).items()}

    def put_back(self, state: Any) -> None:
        vars(self._scheduler).update(state)


def moving_parts(program: Program) -> list[Any]:
    """What a program moves before a call that refuses some values, or goes another way for them."""
    last = program.last_look
    return parts_of(program.calls[:last]) if last > 0 else []


def parts_of(calls: list[Call]) -> list[Any]:
    """What these calls move."""
    found: dict[int, Any] = {}
    for call in calls:
        if not call.impure:
            continue
        if call.name == "kernels.dropout_mask":
            found[id(random.default_generator)] = MovingGenerator(random.default_generator)
        for one in call.args:
            if isinstance(one, random.Generator):
                found[id(one)] = MovingGenerator(one)
            elif isinstance(one, Optimizer):
                found[id(one)] = MovingOptimizer(one)
            elif call.kind == "python" and hasattr(one, "optimizer"):
                found[id(one)], found[id(one.optimizer)] = moving_with(one)
    return list(found.values())


def moving_with(scheduler: Any) -> tuple[Any, Any]:
    """A scheduler, and its optimizer."""
    return MovingAttributes(scheduler), MovingOptimizer(scheduler.optimizer)
