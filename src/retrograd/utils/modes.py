"""Small modes that watch what a program does: a log of its operators, where NaNs come from, what memory it needs.

Each is a `TorchDispatchMode`: it sees every operator of its thread, factories and backward passes included, and costs
nothing where it is not on.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from typing import Any, TextIO

from .. import kernels
from ..autograd.graph import current_node
from ..core.where import user_location
from ..tensor import Tensor
from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_leaves
from .module_tracker import ModuleTracker

__all__ = ["LoggingMode", "MemoryTracker", "NanWatcher"]


def _tensors(values: Any) -> list[Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, Tensor)]


class LoggingMode(TorchDispatchMode):
    """Writes every operator that runs, with the numbers of the tensors that it takes and gives.

    >>> import retrograd as torch
    >>> from retrograd.utils.modes import LoggingMode
    >>> x = torch.ones(2, requires_grad=True)
    >>> with LoggingMode() as log:
    ...     (x * 2).sum().backward()
    $1: float32[2] = aten.mul.Tensor($0, 2)
    $2: float32[] = aten.sum.default($1)
    $3: float32[] = aten.ones_like.default($2)
    $4: float32[2] = aten.expand.default($3, (2,))  # SumBackward0
    $5: float32[2] = aten.mul.Tensor($4, 2)  # MulBackward0
    $6: float32[2] = aten.detach.default($5)  # AccumulateGrad

    With ``show=False`` the lines are in ``log.lines`` alone.
    """

    def __init__(self, show: bool = True, file: TextIO | None = None) -> None:
        self.show = show
        self.file = file
        self.lines: list[str] = []
        self._numbers_: dict[int, tuple[weakref.ref[Tensor], int]] = {}
        self._next = 0

    def _name(self, value: Any, with_type: bool = False) -> str:
        if isinstance(value, (tuple, list)):
            inner = ", ".join(self._name(one, with_type) for one in value)
            return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
        if not isinstance(value, Tensor):
            return repr(value)
        reference, number = self._numbers_.get(id(value), (None, 0))
        if reference is None or reference() is not value:
            number, self._next = self._next, self._next + 1
            self._numbers_[id(value)] = weakref.ref(value), number
        shape = ", ".join(map(str, value._memory_.shape))
        return f"${number}: {value.dtype.name}[{shape}]" if with_type else f"${number}"

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        given = [self._name(value) for value in args]
        given += [f"{name}={self._name(value)}" for name, value in (kwargs or {}).items()]
        result = func(*args, **(kwargs or {}))
        node = current_node()
        within = "" if node is None else f"  # {type(node).__name__}"
        line = f"{self._name(result, True)} = {func}({', '.join(given)}){within}"
        self.lines.append(line)
        if self.show:
            print(line, file=self.file)
        return result


class NanWatcher(TorchDispatchMode):
    """Raises where the first NaN (or, with ``infinite=True``, infinity) comes from: an operator, and a line.

    >>> import retrograd as torch
    >>> from retrograd.utils.modes import NanWatcher
    >>> with NanWatcher():
    ...     torch.zeros(2).log().sub(torch.zeros(2).log())
    Traceback (most recent call last):
    ...
    RuntimeError: aten.sub.Tensor gave NaN in 2 of 2 elements, of arguments that have none...

    What is computed of NaNs that are there already is not the place where they come from, and is let through.
    """

    def __init__(self, infinite: bool = False) -> None:
        self.infinite = infinite

    def _count(self, values: Any) -> int:
        count = 0
        for tensor in _tensors(values):
            if tensor._special_ is None and tensor._memory_.dtype.kind in "fcV":
                array = tensor._numbers_
                count += int(kernels.isnan(array).sum())
                if self.infinite:
                    count += int(kernels.isinf(array).sum())
        return count

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        before = self._count((args, kwargs))
        result = func(*args, **(kwargs or {}))
        if before or name.startswith(("empty", "new_empty")):  # what nobody has written to may be anything
            return result
        count = self._count(result)
        if count:
            what = "NaN or infinity" if self.infinite else "NaN"
            node = current_node()
            within = "" if node is None else f", in the backward pass of {node.name()}"
            where = user_location(1)
            of = sum(tensor.numel() for tensor in _tensors(result))
            raise RuntimeError(
                f"{func} gave {what} in {count} of {of} elements, of arguments that have none{within}"
                + ("" if where is None else f" ({where})")
            )
        return result


def _root(tensor: Tensor) -> Any:
    """The array that stands for a tensor's memory, there or not; None if it has none of its own."""
    if tensor._special_ is None:
        return kernels.storage_root(tensor._memory_)
    return kernels.storage_root(tensor._memory_.ghost) if tensor.is_meta else None


class MemoryTracker(TorchDispatchMode):
    """Counts the memory of tensors that are alive: now, at most, and what each module was running for at the peak.

    >>> import retrograd as torch
    >>> from retrograd.utils.modes import MemoryTracker
    >>> with MemoryTracker() as memory:
    ...     x = torch.ones(1000)
    ...     y = (x * 2).sum()
    >>> memory.current, memory.peak
    (4004, 8004)

    Tensors on meta are counted as if they had memory: what a step would need is known before it is run.

    A tensor's memory is counted once, whatever views there are of it, from the operator that made it until it is let
    go; ``tracker.at_peak`` has, at the peak, the bytes that were made within each module (`ModuleTracker` names them).
    """

    def __init__(self) -> None:
        self.current: int = 0
        self.peak: int = 0
        self.at_peak: dict[str, int] = {}
        self._by_module: dict[str, int] = defaultdict(int)
        self._known: set[int] = set()
        #: Leaves that are about to get a gradient: in memory of its own, which no operator makes.
        self._leaves: list[Tensor] = []
        self._modules = ModuleTracker()

    def __enter__(self) -> Any:
        self._modules.__enter__()
        return super().__enter__()

    def _left(self) -> None:
        self._count_gradients()
        self._modules.__exit__()

    def _count_gradients(self) -> None:
        leaves, self._leaves = self._leaves, []
        for leaf in leaves:
            if leaf.grad is not None:
                self._add(leaf.grad)

    def _let_go(self, key: int, size: int, modules: tuple[str, ...]) -> None:
        self._known.discard(key)
        self.current -= size
        for module in modules:
            self._by_module[module] -= size

    def _add(self, tensor: Tensor) -> None:
        root = _root(tensor)
        if root is None or id(root) in self._known:
            return
        modules = tuple(sorted(self._modules.parents))
        self._known.add(id(root))
        weakref.finalize(root, self._let_go, id(root), root.nbytes, modules).atexit = False
        self.current += root.nbytes
        for module in modules:
            self._by_module[module] += root.nbytes
        if self.current > self.peak:
            self.peak = self.current
            self.at_peak = {module: size for module, size in self._by_module.items() if size}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if self._leaves:
            self._count_gradients()
        node: Any = current_node()
        if node is not None and hasattr(node, "variable"):
            self._leaves.append(node.variable)
        given = {id(_root(t)) for t in _tensors((args, kwargs))}
        result = func(*args, **(kwargs or {}))
        for tensor in _tensors(result):
            if id(_root(tensor)) not in given:
                self._add(tensor)
        return result
