"""Watching a forward pass: which line and which module made each node, what it computed, and where history was cut.

A `Watch` is an observer of all threads' operators while it is on (autograd/intercept.py), and has hooks around all
modules.  What it sees of a node it puts into the node's metadata (`Made`), so that it lives exactly as long as the
node.  Without one, nothing here runs.

Note [Cuts]
A tensor that does not require grad although it was computed from one that does has been cut off: by ``detach()``, under
``no_grad()``, by an operator whose result is an integer.  `Cut` says how and where, and which leaves lie behind it:
those alone, not the graph that led to them, which would otherwise never end in a loop that detaches its state.  Cuts
are handed on to what is computed from such tensors, and noted on the nodes that use them.
"""

from __future__ import annotations

import inspect
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Self

from ..autograd.accumulate_grad import AccumulateGrad
from ..autograd.edge import gradient_edge
from ..autograd.intercept import change_modes, new_node, results_of
from ..autograd.node import Node
from ..core.state import ThreadState, local, process
from ..core.where import Location, is_user_code, user_location
from ..nn.modules.module import Module
from ..nn.modules.module_hooks import register_module_forward_hook, register_module_forward_pre_hook
from ..tensor import Tensor
from .values import flags_of

#: Where in a node's metadata `Made` is.
KEY = "explorer_"
#: How far behind a cut leaves are looked for, and how many cuts a tensor can be behind.
_FAR, _MANY = 2000, 8
#: In how many functions, from the one that calls, names are looked for.
_SCOPES = 6


class ModuleCall:
    """One call of a module: where it stands in its model, and which call it was made in."""

    __slots__ = ("cls", "number", "parent", "path")

    def __init__(self, path: str, cls: str, number: int, parent: ModuleCall | None) -> None:
        self.path: str = path
        self.cls: str = cls
        #: How many calls of the same module in the same call came before.
        self.number: int = number
        self.parent: ModuleCall | None = parent


class Cut:
    """A place where a tensor lost its history: Note [Cuts]."""

    __slots__ = ("leaves", "location", "why")

    def __init__(self, why: str, location: Location | None, leaves: list[weakref.ref[Tensor]]) -> None:
        self.why: str = why
        self.location: Location | None = location
        self.leaves = leaves


class Made:
    """What was seen of a node when it was made."""

    __slots__ = ("cuts", "flags_in", "flags_out", "location", "module", "parent")

    def __init__(self, location: Location | None, module: ModuleCall | None, parent: Node | None) -> None:
        self.location: Location | None = location
        self.module: ModuleCall | None = module
        #: The node whose backward formula made this one (weakly), if a recorded pass did.
        self.parent: Any = None if parent is None else weakref.ref(parent)
        self.flags_in: int = 0
        self.flags_out: int = 0
        self.cuts: tuple[Cut, ...] = ()


def made_of(node: Any) -> Made | None:
    """What was seen when `node` was made; None if nobody watched."""
    extras = node.extras
    found = None if extras is None else extras.metadata.get(KEY)
    if found is None and hasattr(node, "fn") and isinstance(node.fn, Node):  # of a CopySlices
        return made_of(node.fn)
    return found


class Watcher:
    """An observer of operators and modules, once it is started; `watch` is one that users start."""

    def __init__(self, values: bool = True) -> None:
        #: Look for NaN and infinities in what operators compute.
        self.values = values
        self._calls = _Calls()
        self._lost: dict[int, tuple[weakref.ref[Tensor], tuple[Cut, ...]]] = {}
        #: The models that were called, for the names of their parameters.
        self._models: dict[int, weakref.ref[Module]] = {}
        self._handles: list[Any] = []

    # ------------------------------------------------------------------------------------------------------ on and off

    def start(self) -> None:
        """Begin, or go on."""
        if self._handles:
            return
        try:
            self._handles = [
                register_module_forward_pre_hook(self._enter_module),
                register_module_forward_hook(self._leave_module, always_call=True),
            ]
            change_modes(self._become_mode)
        except BaseException:  # Note [Interrupts and modes] in state.py
            self.stop()
            raise

    def stop(self) -> None:
        """Watch no more."""
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.remove()
        change_modes(self._end_mode)

    def _become_mode(self) -> None:
        # Last is outermost: it sees what the other observers have made of a call.
        process.modes = (*[mode for mode in process.modes if mode is not self], self)

    def _end_mode(self) -> None:
        process.modes = tuple([mode for mode in process.modes if mode is not self])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        try:
            self.stop()
        except BaseException:
            self.stop()
            raise

    # ------------------------------------------------------------------------------------------------------- operators

    def __call__(
        self, operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any], proceed: Callable[..., Any]
    ) -> Any:
        state = local.state
        since = state.sequence_nr
        tensors = list(_tensors_in((args, kwargs)))
        # Before the call: an operator in place replaces what was there.
        before = self._flags(tensors)
        cuts = self._cuts_of(tensors)
        requires = [tensor for tensor in tensors if tensor.requires_grad]
        result = proceed()
        node = new_node(result, since)
        if node is not None:
            made = self._made(state, node)
            made.flags_in = before
            made.flags_out = self._flags(results_of(result))
            made.cuts = cuts
        elif cuts or requires:
            self._note_cut(state, operator, requires, cuts, result)
        return result

    def remember_forward(self, state: ThreadState, node: Node) -> None:
        """A node was made outside of operators: of a custom function, say. Called for every process-wide mode."""
        self._made(state, node)

    def _made(self, state: ThreadState, node: Node) -> Made:
        extras = node.materialize_extras()
        made = extras.metadata.get(KEY)
        if made is None:
            parent = state.current_node if state.graph_task is not None else None
            made = extras.metadata[KEY] = Made(user_location(2), self._calls.current, parent)
        return made

    def _flags(self, tensors: list[Tensor]) -> int:
        if not self.values:
            return 0
        found = 0
        for tensor in tensors:
            if tensor._special_ is None and tensor._memory_.dtype.kind in "fcVW":
                found |= flags_of(tensor)
        return found

    # ------------------------------------------------------------------------------------------------------------ cuts

    def _cuts_of(self, tensors: list[Tensor]) -> tuple[Cut, ...]:
        found: dict[Cut, None] = {}
        for tensor in tensors:
            reference, cuts = self._lost.get(id(tensor), (None, ()))
            if reference is not None and reference() is tensor:
                found.update(dict.fromkeys(cuts))
        return tuple(found)[:_MANY]

    def _note_cut(
        self,
        state: ThreadState,
        operator: Callable[..., Any],
        requires: list[Tensor],
        cuts: tuple[Cut, ...],
        result: Any,
    ) -> None:
        lost = [tensor for tensor in results_of(result) if not tensor.requires_grad]
        if not lost:
            return
        if requires:
            name = getattr(operator, "__name__", "an operator")
            if operator is Tensor.detach:
                why = "detach()"
            elif not state.grad_enabled:
                why = f"no_grad() around {name}()"
            else:
                why = f"{name}(), whose result has no derivative"
            cuts = (Cut(why, user_location(2), _leaves_behind(requires)), *cuts)[:_MANY]
        known = self._lost
        for tensor in lost:
            key = id(tensor)
            reference = weakref.ref(tensor, lambda _, key=key: known.pop(key, None))  # type: ignore[misc]
            known[key] = (reference, cuts)

    def cuts(self) -> list[Cut]:
        """The cuts of tensors that are alive."""
        found: dict[Cut, None] = {}
        for _, cuts in list(self._lost.values()):
            found.update(dict.fromkeys(cuts))
        return list(found)

    # --------------------------------------------------------------------------------------------------------- modules

    def _enter_module(self, module: Module, args: Any) -> None:
        calls = self._calls
        if not calls.stack:
            calls.names = {id(child): name for name, child in module.named_modules()}
            self._models[id(module)] = weakref.ref(module)
        calls.enter(calls.names.get(id(module)) or type(module).__name__, type(module).__name__, id(module))

    def _leave_module(self, module: Module, args: Any, output: Any) -> None:
        if self._calls.stack:
            self._calls.leave()

    def models(self) -> list[Module]:
        """The models that were called and are alive."""
        found = [reference() for reference in self._models.values()]
        return [model for model in found if model is not None]


class watch(Watcher):
    """Remember for each node of the graph the line and the module that made it, from now on or for a block.

    It acts at once, and in all threads; ``stop()``, or leaving the block of a ``with``, ends it. Operators take some
    times as long meanwhile.

    >>> import retrograd as torch
    >>> from retrograd import explorer
    >>> x = torch.ones(2, requires_grad=True)
    >>> with explorer.watch():
    ...     loss = (x * x).sum()
    >>> page = explorer.show(loss, open=False)
    >>> page.runs[0]["lines"][0][1]
    2
    """

    def __init__(self, values: bool = True) -> None:
        super().__init__(values)
        self.start()


class _Calls(threading.local):
    """The calls of modules that a thread is in."""

    def __init__(self) -> None:
        self.stack: list[tuple[ModuleCall, dict[int, int]]] = []
        self.names: dict[int, str] = {}
        #: How often each model was called from outside of all modules.
        self.counts: dict[int, int] = {}

    @property
    def current(self) -> ModuleCall | None:
        return self.stack[-1][0] if self.stack else None

    def enter(self, path: str, cls: str, key: int) -> None:
        counts = self.stack[-1][1] if self.stack else self.counts
        number = counts.get(key, 0)
        counts[key] = number + 1
        self.stack.append((ModuleCall(path, cls, number, self.current), {}))

    def leave(self) -> None:
        self.stack.pop()


# ------------------------------------------------------------------------------------------------------------- helpers


def _tensors_in(values: Any) -> Iterator[Tensor]:
    waiting = [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, (tuple, list)):
            waiting.extend(value)


def _leaves_behind(tensors: list[Tensor]) -> list[weakref.ref[Tensor]]:
    """The leaves that tensors were computed from, as far as they are near."""
    edges = [gradient_edge(tensor) for tensor in tensors]
    queue = [edge[0] for edge in edges if edge is not None]
    seen = set(queue)
    leaves = []
    for node in queue:  # grows while it is walked
        if isinstance(node, AccumulateGrad):
            leaves.append(weakref.ref(node.variable))
        for edge in node.next_edges:
            if edge is not None and edge[0] not in seen and len(seen) < _FAR:
                seen.add(edge[0])
                queue.append(edge[0])
    return leaves


def names_around(depth: int) -> dict[int, tuple[Any, str]]:
    """The variables of the user's code that calls: id -> (tensor, name), with the parameters of models among them.

    Where no frames can be seen, tensors have no names, and nothing else changes.
    """
    frame: Any = sys._getframe(depth)
    scopes: list[Any] = []
    while frame is not None and len(scopes) < _SCOPES:
        if is_user_code(frame.f_code):
            scopes += [_locals_of(frame)] if scopes else [_locals_of(frame), frame.f_globals]
        frame = frame.f_back
    found: dict[int, tuple[Any, str]] = {}
    for scope in scopes:
        for name, value in list(scope.items()):
            if isinstance(value, Tensor):
                found.setdefault(id(value), (value, name))
        for name, value in list(scope.items()):
            if isinstance(value, Module) and not name.startswith("_"):
                add_parameters(found, value, name)
            elif isinstance(value, (list, tuple, dict)) and 0 < len(value) <= 64 and not name.startswith("_"):
                pairs = value.items() if isinstance(value, dict) else enumerate(value)
                for key, item in list(pairs):
                    if isinstance(item, Tensor):
                        found.setdefault(id(item), (item, f"{name}[{key!r}]"))
    return found


def _locals_of(frame: Any) -> dict[str, Any]:
    """The local variables of a frame, which is left as it was.

    Before Python 3.13, a function's frame keeps the dict that it was asked for, and in it alive what its variables held
    then. (That of a module is its own dict, and is what its variables are.)
    """
    variables = frame.f_locals
    copy = dict(variables)
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and isinstance(variables, dict):
        variables.clear()
    return copy


def add_parameters(found: dict[int, tuple[Any, str]], model: Module, prefix: str) -> None:
    """Name the parameters of a model as it does."""
    for name, parameter in model.named_parameters():
        found.setdefault(id(parameter), (parameter, f"{prefix}.{name}" if prefix else name))
