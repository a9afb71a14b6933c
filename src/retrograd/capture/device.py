"""Captured steps on a CUDA device: the whole step is one graph, launched again for each call.

The first call runs eagerly, on the stream for captures, and makes what a step makes once (the state of an optimizer).
The second is captured and launched (cuda/graphs.py), and so are all that look like it.  A graph reads and writes the
memory that it was captured with: arguments are copied to where it reads them, results are copied from where it leaves
them, and gradients are where it has put them.  What a graph hangs on beside its arguments is compared before each
launch: what the function reads from the world, the memory of its tensors, the settings of optimizers.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..core.state import local
from ..core.version_counter import version_counter
from ..optim import Optimizer
from ..tensor import Tensor, wrap
from ..utils._pytree import tree_flatten, tree_unflatten
from .ended import ended
from .guards import World


def _graphs() -> Any:
    return import_module("...cuda.graphs", __name__)


def on_device(tensors: list[Any]) -> Any:
    """The place of the first tensor that is on a CUDA device; None if there is none."""
    for tensor in tensors:
        place = getattr(tensor._memory_, "place", None)
        if place is not None:
            return place
    return None


def is_step_on_device(function: Any, tensors: list[Any]) -> bool:
    """Does a step work on a CUDA device: with arguments, or with what it reads from the world?"""
    return on_device(tensors) is not None or on_device(World(function).tensors) is not None


def _settings(optimizers: list[Optimizer]) -> list[Any]:
    """What an optimizer's step reads beside tensors of the device."""
    found = []
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for name, value in group.items():
                if name != "params":
                    on_host = isinstance(value, Tensor) and not hasattr(value._memory_, "place")
                    found.append((name, value.item() if on_host and value.numel() == 1 else value))
    return found


def _same(now: Any, before: Any) -> bool:
    return now is before or (not isinstance(now, Tensor) and not isinstance(before, Tensor) and now == before)


class _Leaf:
    """A tensor of the world: its memory, and what becomes of its gradient and its version."""

    def __init__(self, tensor: Any) -> None:
        self.tensor: Any = tensor
        self.array: Any = tensor._memory_
        self.requires_grad: bool = tensor.requires_grad
        self.before: Any = tensor._grad_meta_.grad if tensor._grad_meta_ is not None else None
        self.version: int = self._version()
        self.more: int = 0
        self.after: Any = None

    def _version(self) -> int:
        return 0 if self.tensor._vc_ is None else self.tensor._vc_.version

    def end(self) -> None:
        """The step has been captured."""
        self.more = self._version() - self.version
        self.after = self.tensor._grad_meta_.grad if self.tensor._grad_meta_ is not None else None

    def undo(self) -> None:
        """The capture has failed."""
        if self.tensor._grad_meta_ is not None:
            self.tensor._grad_meta_.grad = self.before

    def fits(self) -> bool:
        tensor = self.tensor
        if tensor._memory_ is not self.array or tensor.requires_grad != self.requires_grad:
            return False
        now = tensor._grad_meta_.grad if tensor._grad_meta_ is not None else None
        if self.before is None:
            return now is None or self.after is None  # else it would have been added to
        if self.after is None or self.after is not self.before:
            return True  # the step begins with a gradient of its own
        return now is not None and now._memory_ is self.before._memory_


class DeviceEntry:
    """A step as a graph, with what it expects of the world."""

    def __init__(self, function: Any, args: Any, kwargs: Any, tensors: list[Any]) -> None:
        graphs = _graphs()
        self.world: World = World(function)
        self.settings: list[Any] = _settings(self.world.optimizers)
        unique = {id(tensor): tensor for tensor in self.world.tensors if not any(tensor is one for one in tensors)}
        self.leaves: list[_Leaf] = [_Leaf(tensor) for tensor in unique.values()]
        self.inputs: list[Any] = []
        for tensor in tensors:
            given = tensor.detach().clone() if hasattr(tensor._memory_, "place") else tensor.detach()
            self.inputs.append(given.requires_grad_() if tensor.requires_grad else given)
        places = {id(tensor): static for tensor, static in zip(tensors, self.inputs, strict=True)}
        flat, structure = tree_flatten((args, kwargs))
        args, kwargs = tree_unflatten([places.get(id(one), one) for one in flat], structure)
        self.graph: Any = graphs.CUDAGraph()
        try:
            with graphs.graph(self.graph):
                result = function(*args, **kwargs)
        except BaseException:
            for leaf in self.leaves:
                leaf.undo()
            raise
        for leaf in self.leaves:
            leaf.end()
        self.results, self.structure = tree_flatten(result)
        self._requires: list[bool] = [isinstance(one, Tensor) and one.requires_grad for one in self.results]
        self.results = [
            one.detach() if isinstance(one, Tensor) and one._edge_ is not None else one for one in self.results
        ]
        self._known: set[int] = {id(leaf.tensor) for leaf in self.leaves}

    def fits(self, tensors: list[Any]) -> str | None:
        """Why this graph is not for this call; None if it is."""
        for leaf in self.leaves:
            if not leaf.fits():
                return f"a tensor of shape {list(leaf.array.shape)}, or its .grad"
        for tensor, static in zip(tensors, self.inputs, strict=True):
            if not hasattr(static._memory_, "place") and tensor._memory_ is not static._memory_:
                return "an argument on the CPU"
        now = _settings(self.world.optimizers)
        for (name, value), (_, before) in zip(now, self.settings):
            if not _same(value, before):
                return f"the setting {name!r} of an optimizer"
        if len(now) != len(self.settings):
            return "the settings of an optimizer"
        return self.world.changed()

    def replay(self, tensors: list[Any]) -> Any:
        """Launch the graph for these arguments."""
        graphs = _graphs()
        for static, tensor in zip(self.inputs, tensors, strict=True):
            graphs.copy_in(static, tensor)
        self.graph.replay()
        for leaf in self.leaves:
            if leaf.more:
                (leaf.tensor._vc_ or version_counter(leaf.tensor)).version += leaf.more
            if leaf.after is not leaf.before or leaf.after is not None:
                leaf.tensor._grad_meta_.grad = leaf.after
        results = []
        for one, requires_grad in zip(self.results, self._requires, strict=True):
            if isinstance(one, Tensor):
                one = self._result(one, requires_grad, tensors)
            results.append(one)
        return tree_unflatten(results, self.structure)

    def _result(self, one: Tensor, requires_grad: bool, tensors: list[Any]) -> Any:
        if id(one) in self._known:
            return one
        for static, tensor in zip(self.inputs, tensors, strict=True):
            if one is static:
                return tensor
        array = one._memory_
        made = wrap(array.copy() if hasattr(array, "place") else array, local.state.new_vc)
        if requires_grad:
            ended(made)
        return made


def explained(entry: DeviceEntry) -> str:
    """What became of a call."""
    written = sum(bool(leaf.more) for leaf in entry.leaves)
    return (
        f"One graph of a CUDA device, launched for each call: {len(entry.inputs)} arguments are copied to it, "
        f"{len(entry.leaves)} tensors of the world are used, {written} of them written to."
    )
