"""What a function can reach of the world outside: the tensors that it captures.

A function reaches what it, and the functions that it calls, read from closures, global variables, default values and
attributes of objects that they come by so.  Nothing about a plain tensor says when it was made, so that what the
function has put there itself has to be told from what it found: by the names that its code stores to.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections import deque
from collections.abc import Collection, Iterator
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, NamedTuple

from ..core.where import is_user_code
from ..tensor import Tensor

_STORES = frozenset(("STORE_DEREF", "STORE_GLOBAL", "STORE_ATTR"))
#: Methods that put something into a list.
_FILLING = frozenset(("append", "appendleft", "extend", "insert"))
_SEQUENCES = (list, tuple, set, frozenset, deque)
#: Whose functions read no tensors of ours.
_LIBRARIES = frozenset(("numpy", "scipy", *sys.stdlib_module_names)) - {"__main__"}
#: What leads nowhere, of what there is most.
_ENDS = (str, bytes, int, float, complex, type(None), bool)


class _Code(NamedTuple):
    """What a function's code says."""

    names: frozenset[str]
    stored: frozenset[str]


@functools.lru_cache(1000)
def _said_by(code: CodeType) -> _Code:
    """The names of variables and attributes that a code, and those of the functions in it, mentions and stores to."""
    codes = [code]
    for one in codes:  # grows while it is walked
        codes += [constant for constant in one.co_consts if isinstance(constant, CodeType)]
    stored = {step.argval for one in codes for step in dis.get_instructions(one) if step.opname in _STORES}
    return _Code(frozenset(name for one in codes for name in one.co_names), frozenset(stored))


def captured_tensors(function: Any, replaced: Collection[int] = ()) -> dict[int, Tensor]:
    """The tensors that a function reads from outside, by their identity.

    `replaced`: those (by identity) that stand in a module for the time of a `functional_call`; that a module has them
    means nothing.
    """
    walk = _Walk(replaced)
    walk.reach(function)
    return {id(tensor): tensor for tensor, path, in_list in walk.found if walk.was_there(path, in_list)}


class _Walk:
    """A walk over what a function reaches, with the names of variables and attributes by which it came there."""

    def __init__(self, replaced: Collection[int]) -> None:
        self.replaced = replaced
        #: Tensors, the names that lead to each, and is it in a list?
        self.found: list[tuple[Tensor, tuple[str, ...], bool]] = []
        self.names: set[str] = {"__call__", "forward"}
        self.stored: set[str] = set()
        self.seen: set[int] = set()
        #: Classes of objects that were met, whose methods may be called; modules, whose variables may be read.
        self.classes: list[type] = []
        self.modules: list[ModuleType] = []
        self.todo: list[tuple[Any, tuple[str, ...], bool]] = []

    def was_there(self, path: tuple[str, ...], in_list: bool) -> bool:
        """Was what lies at the end of this path there before the function ran?"""
        return self.stored.isdisjoint(path) and not (in_list and self.names & _FILLING)

    def reach(self, function: Any) -> None:
        self.todo = [(function, (), False)]
        while self.todo:
            while self.todo:
                self._step(*self.todo.pop())
            # What is mentioned by now of the classes and modules that were met.
            for cls in self.classes:
                for name, value in vars(cls).items():
                    if name in self.names:
                        self._push(_plain_function(value), (name,))
            for module in self.modules:
                for name in self.names:
                    if name in vars(module):
                        self._push(vars(module)[name], (name,))

    def _push(self, value: Any, path: tuple[str, ...], in_list: bool = False) -> None:
        if not isinstance(value, _ENDS) and id(value) not in self.seen:
            self.todo.append((value, path, in_list))

    def _step(self, one: Any, path: tuple[str, ...], in_list: bool) -> None:
        if id(one) in self.seen:
            return
        self.seen.add(id(one))
        if isinstance(one, Tensor):
            self.found.append((one, path, in_list))
        elif isinstance(one, FunctionType):
            self._function(one, path)
        elif isinstance(one, functools.partial):
            for value in (one.func, *one.args, *one.keywords.values()):
                self._push(value, path, in_list)
        elif isinstance(one, MethodType):
            self._push(one.__func__, path, in_list)
            self._push(one.__self__, path, in_list)
        elif isinstance(one, _SEQUENCES):
            for value in one:
                self._push(value, path, in_list or not isinstance(one, (tuple, frozenset)))
        elif isinstance(one, dict):
            for key, value in one.items():
                self._push(value, (*path, key) if isinstance(key, str) else path, in_list)
        elif isinstance(one, ModuleType):
            self.modules.append(one)
        elif isinstance(one, type):
            self._class(one)
        else:
            self._class(type(one))
            for name, value in _attributes(one):
                # The tensors of a module are in dictionaries, by the names of attributes.
                for key, item in value.items() if isinstance(value, dict) else ((name, value),):
                    if id(item) not in self.replaced:
                        self._push(item, (*path, str(key)), in_list)

    def _function(self, function: FunctionType, path: tuple[str, ...]) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                self._push(cell.cell_contents, (*path, name))
            except ValueError:  # not set yet
                continue
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._push(value, path)
        if is_user_code(function.__code__) and (function.__module__ or "").partition(".")[0] not in _LIBRARIES:
            said, known = _said_by(function.__code__), function.__globals__
            self.names |= said.names
            self.stored |= said.stored
            for name in said.names:
                if name in known:
                    self._push(known[name], (name,))

    def _class(self, cls: type) -> None:
        for one in cls.__mro__[:-1]:
            if one not in self.classes:
                self.classes.append(one)


def _plain_function(value: Any) -> Any:
    """The function behind what a class has under a name."""
    if isinstance(value, property):
        return value.fget
    return value.__func__ if isinstance(value, (staticmethod, classmethod)) else value


def _attributes(one: Any) -> Iterator[tuple[str, Any]]:
    """The attributes that an object has itself, with their names; nothing is computed."""
    try:
        yield from object.__getattribute__(one, "__dict__").items()
    except AttributeError:  # it has slots, or nothing
        pass
    for cls in type(one).__mro__:
        for name, value in vars(cls).items():
            if isinstance(value, MemberDescriptorType):
                try:
                    yield name, value.__get__(one)
                except AttributeError:  # not set
                    continue
