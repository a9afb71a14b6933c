"""Captured and eager side by side: each replay is held against the function itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import random
from ..core.version_counter import INFERENCE
from ..tensor import Tensor
from ..utils._pytree import tree_leaves
from .errors import CaptureError
from .moving import MovingOptimizer, parts_of


def checked(function: Any, entry: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Any]) -> Any:
    """The result of a replay, after the function itself has given the same from the same state.

    The function runs first; its results and what it has left in the world are kept, the world is put back, and the
    replay has to leave the same.  Optimizers are put back too.
    """
    world = _World(entry, tensors)
    try:
        expected = function(*args, **kwargs)
    except BaseException:
        world.put_back()
        raise
    left = world.now()
    world.put_back()
    result = entry.replay(tensors)
    _compare("a result", _arrays(expected), _arrays(result))
    _compare("the state", left, world.now())
    return result


class _World:
    """The state that a program knows of."""

    def __init__(self, entry: Any, tensors: list[Any]) -> None:
        self.tensors: list[Any] = list(
            {
                id(t): t
                for t in (
                    *entry.recording.world.tensors,
                    *tensors,
                    *[t for t, _ in entry.recording.recorder.swapped.values()],
                )
            }.values()
        )
        self.values: list[np.ndarray] = [tensor._memory_.copy() for tensor in self.tensors]
        self.grads: list[Any] = [None if t._grad_meta_ is None else t._grad_meta_.grad for t in self.tensors]
        self.grad_values: list[Any] = [None if grad is None else grad._memory_.copy() for grad in self.grads]
        self.versions: list[Any] = [
            (None, None) if t._vc_ is None or t._vc_ is INFERENCE else (t._vc_, t._vc_.version) for t in self.tensors
        ]
        self.generator: Any = random.default_generator.get_state()
        parts = [*parts_of(entry.recording.program.calls), *map(MovingOptimizer, entry.recording.world.optimizers)]
        self.parts: list[Any] = [(part, part.state()) for part in parts]

    def now(self) -> list[Any]:
        grads = [
            None if t._grad_meta_ is None or t._grad_meta_.grad is None else t._grad_meta_.grad._memory_.copy()
            for t in self.tensors
        ]
        return [tensor._memory_.copy() for tensor in self.tensors] + grads

    def put_back(self) -> None:
        for tensor, value, grad, content, (counter, version) in zip(
            self.tensors, self.values, self.grads, self.grad_values, self.versions, strict=True
        ):
            np.copyto(tensor._memory_, value)
            if grad is not None:
                np.copyto(grad._memory_, content)
            if tensor._grad_meta_ is not None:
                tensor._grad_meta_.grad = grad
            if counter is not None:
                counter.version = version
            elif tensor._vc_ is not None and tensor._vc_ is not INFERENCE:
                tensor._vc_.version = 0
        random.default_generator.set_state(self.generator)
        for part, state in self.parts:
            part.put_back(state)


def _arrays(tree: Any) -> list[Any]:
    return [one._memory_ for one in tree_leaves(tree) if isinstance(one, Tensor)]


def _compare(what: str, expected: list[Any], found: list[Any]) -> None:
    for position, (one, two) in enumerate(zip(expected, found, strict=True)):
        if (one is None) != (two is None):
            raise CaptureError(
                f"a replay differs from the function: {what} number {position} is there in one of them alone"
            )
        if one is None or one.tobytes() == two.tobytes():
            continue
        close = one.shape == two.shape and one.dtype.kind in "fc"
        tolerance = 1e-4 if one.dtype.itemsize <= 4 else 1e-9
        if not (close and np.allclose(one, two, rtol=tolerance, atol=tolerance, equal_nan=True)):
            raise CaptureError(
                f"a replay differs from the function: {what} number {position}, of shape {list(one.shape)}, is\n{two}\n"
                f"where the function gives\n{one}"
            )
