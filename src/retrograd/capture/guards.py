"""What a captured program hangs on beside its arguments: what the function reads from the world.

A program holds for calls whose arguments look alike (arguments.py) and whose world is as it was.  `World` is what the
function and the functions of the user that it calls read from closures, global variables, default values, arguments,
modules and objects: numbers by value, everything else by identity.  What a step of the package's optimizers and
schedulers reads is its own affair, since the step itself is repeated.

Note [What is looked at]
Of an object, those attributes are watched whose names stand in a function that was looked at, as names or as strings;
all of them if such a function reads attributes by names that it makes (`getattr(o, f"a{i}")`).  An attribute that is a
function or an object is looked at in turn, so names and things are found by turns until nothing is new.
"""

from __future__ import annotations

import ctypes
import dis
import functools
import io
import logging
import os
import pickle
import random
import sys
import threading
import weakref
from array import array as number_array
from collections import OrderedDict, deque
from collections.abc import Sequence
from contextvars import ContextVar
from operator import attrgetter, is_, methodcaller
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

import numpy as np

from ..core import compiled
from ..core.where import is_user_code
from ..nn import Module
from ..nn.modules.module_hooks import HOOKS_OF_ALL_MODULES
from ..optim import Optimizer, lr_scheduler
from ..random import Generator
from ..tensor import Tensor
from .arguments import SCALARS, hooks_of, is_equal
from .watched import CONTAINERS, GONE, Context, NumPysRandom, Slots, ThreadsOwn, Watched

_SCHEDULERS = (lr_scheduler.LRScheduler, lr_scheduler.ReduceLROnPlateau)
#: Classes of these packages are not looked into.
_NOT_WATCHED = {"retrograd", "numpy", "scipy", "builtins", "threading", "logging", "typing"}
_PACKAGE = __name__.partition(".")[0] + "."
#: Methods that are called without their names: by signs, brackets, calls, `with` and attributes.
_OPERATORS = {name for cls in (int, float, list, dict, set) for name in vars(cls)} - set(vars(object)) | {
    "__call__", "__enter__", "__eq__", "__exit__", "__format__", "__ge__", "__get__", "__getattr__",
    "__getattribute__", "__gt__", "__hash__", "__imatmul__", "__le__", "__lt__", "__matmul__", "__missing__", "__ne__",
    "__next__", "__repr__", "__rmatmul__", "__set__", "__str__", "__torch_function__",
}  # fmt: skip
#: Methods of modules and functions that the package calls.
_CALLED = {"forward", "backward", "jvp", "setup_context", "vjp", "vmap"}
#: Containers of more entries are watched for their length alone, and those of more than `_MANY` are not looked into.
_LONG, _MANY = 1 << 16, 1 << 12
#: Arrays of more bytes are not watched.
_MUCH = 1 << 16
_BARE = frozenset((*SCALARS, CodeType))
#: By these names modules are found that have their names in strings.
_OF_MODULES = frozenset(("modules", "import_module", "__import__"))
_VIEWS = tuple([type(getattr({}, name)()) for name in ("keys", "values", "items")])
_NUMBERS = frozenset((int, float, bool, type(None)))


class World:
    """What a function reads from outside, as it was. `given` are things among its arguments, with their names."""

    def __init__(self, function: Any, given: Sequence[tuple[Any, str]] = ()) -> None:
        self.tensors: list[Any] = []
        self.optimizers: list[Optimizer] = []
        self.arrays: list[tuple[Any, bytes, str]] = []
        #: Something that nobody can watch, in words.
        self.refused: str | None = None
        self._cells: list[tuple[Any, Any, str]] = []
        self._watched: dict[tuple[int, bool], Watched] = {}
        self._lengths: list[tuple[Any, int, str]] = []
        self._empty: list[Any] = []
        self._sets: list[tuple[Any, Any, str]] = []
        self._randoms: dict[int, tuple[Any, Any, str]] = {}
        self._schedulers: list[tuple[Any, str]] = []
        #: Containers of the package's objects, by content, with what is in them: others may change them between calls,
        #: but no step.
        self._inside: list[tuple[Any, str, Any, str, list[tuple[Any, Any]]]] = []
        self._files: list[tuple[Any, Any, str]] = []
        self._seen: dict[int, Any] = {}
        self._seen_classes: dict[int, Any] = {}
        #: Classes by the ids of their attributes, as they were looked at.
        self._classes: dict[int, type] = {}
        #: Names in the functions that were looked at, and what has attributes by such names, in a dictionary.
        self.names: set[Any] = set(_CALLED)
        self._any_name: bool = False
        self._holders: list[tuple[Any, str]] = []
        self._noted: set[tuple[int, Any]] = set()
        for hooks in HOOKS_OF_ALL_MODULES:
            self._dictionary(hooks, "a hook of all modules, number {}")
        todo: list[tuple[Any, str]] = [(function, getattr(function, "__name__", "the function")), *given]
        while todo:
            one, name = todo.pop()
            if one.__class__ is str:
                self.names.add(one)
            elif id(one) not in self._seen and not _is_bare(one):
                self._seen[id(one)] = one
                todo += self._look(one, name)
            if not todo:
                todo = self._read()
        if "_version" in self.names:
            self.refused = "the version of a tensor (_version)"
        self._seal()

    # ------------------------------------------------------------------------------------------------ looking at things

    def _look(self, one: Any, name: str) -> list[tuple[Any, str]]:
        """Note what `one` holds, and give back what to look at next."""
        if one.__class__ is dict or one.__class__ is OrderedDict:
            return self._dictionary(one, name + "[{!r}]")
        found = self._look_inside(one, name)
        if isinstance(one, (Tensor, type, FunctionType)) or not _is_of_the_user(type(one)) or _steps_by_itself(one):
            return found
        attributes = getattr(one, "__dict__", None)
        if attributes.__class__ is dict and not isinstance(one, Module):
            self._lengths.append((attributes, len(attributes), name))
            self._holders.append((attributes, name))
        if any(["__slots__" in vars(cls) for cls in type(one).__mro__ if _is_of_the_user(cls)]):
            self._holders.append((Slots(one), name))
        self._class(type(one), name)
        return found

    def _look_inside(self, one: Any, name: str) -> list[tuple[Any, str]]:
        if isinstance(one, Tensor):
            self.tensors.append(one)
            if getattr(one, "__dict__", None):
                self._holders.append((one.__dict__, name))
            return [(hook.one, f"a hook of {name}") for hook in hooks_of(one._grad_meta_) or ()]
        if isinstance(one, type):
            self._class(one, name)
            self._class(type(one), name)
            made_by = [getattr(one, key, None) for key in ("__new__", "__init__")]  # which a call of it runs
            return [(method, name) for method in made_by if isinstance(method, FunctionType)]
        if isinstance(one, ModuleType):
            return self._python_module(one, name)
        if isinstance(one, FunctionType):
            return self._function(one, name)
        if isinstance(one, MethodType):
            return [(one.__func__, name), (one.__self__, name.rpartition(".")[0] or "self")]
        if isinstance(one, (BuiltinFunctionType, MethodWrapperType)):  # of an object, or of none
            owner = one.__self__
            return [] if isinstance(owner, (ModuleType, type)) else [(owner, name.rpartition(".")[0] or name)]
        if isinstance(one, functools.partial):
            return [(one.func, name), (list(one.args), name), (one.keywords, name)]
        if isinstance(one, Optimizer):
            return self._optimizer(one, name)
        if isinstance(one, _SCHEDULERS):
            self._schedulers.append((one, name))
            return []
        if isinstance(one, (dict, MappingProxyType)):
            return self._dictionary(one, name + "[{!r}]")
        if isinstance(one, (set, frozenset)):
            if len(one) <= _LONG:
                self._sets.append((one, _members(one), name))
            return []
        if isinstance(one, (list, tuple, deque)):
            return self._sequence(one, name)
        if isinstance(one, Module):
            cls = type(one)
            self._class(cls, name)
            if id(cls) not in self._seen_classes:  # one of the package's, whose forward somebody may replace
                self._seen_classes[id(cls)] = cls
                self._note(Slots(cls), "forward", f"{cls.__name__}.forward")
            return self._dictionary(one.__dict__, name + ".{}", whole=True)
        if isinstance(one, np.ndarray):
            if one.nbytes <= _MUCH and one.dtype.kind in "biufc":
                self.arrays.append((one, one.tobytes(), name))
            return []
        if isinstance(one, (bytearray, number_array, ctypes._SimpleCData, ctypes.Structure, ctypes.Array)):
            self.arrays.append((one, bytes(one), name))
            return []
        return self._rare(one, name)

    def _rare(self, one: Any, name: str) -> list[tuple[Any, str]]:
        if isinstance(one, random.SystemRandom):
            self.refused = self.refused or f"random numbers of the system ({name}), which cannot be put back"
            return []
        if isinstance(one, (random.Random, np.random.RandomState, np.random.Generator, np.random.BitGenerator)):
            self._randoms[id(one)] = one, _drawn(one), name
            return []
        if isinstance(one, (attrgetter, methodcaller)):
            labels = [given for given in one.__reduce__()[1] if given.__class__ is str]
            return [(label, name) for given in labels for label in given.split(".")]
        if isinstance(one, logging.Logger):  # what it does is refused, unless it is silent
            for key in ("level", "disabled"):
                self._note(vars(one), key, f"{name}.{key}")
            return []
        if isinstance(one, weakref.ref):
            return [(one(), name)]
        if isinstance(one, _VIEWS):
            return [(one.mapping, name)]
        if isinstance(one, memoryview):
            return [(one.obj, name)]
        if isinstance(one, ContextVar):
            self._note(Context(one), "", name)
            return [(one.get(None), name)]
        if isinstance(one, threading.local):
            self._holders.append((ThreadsOwn(one), name))
            return []
        attributes = getattr(one, "__dict__", None)
        if attributes.__class__ is dict and "__wrapped__" in attributes:  # something before a function
            self._holders.append((attributes, name))
            return [(attributes["__wrapped__"], name)]
        if _is_of_the_package(type(one)) and not isinstance(one, Generator):
            # The package may fill in what it needs; it has to be the same from then on.
            if attributes.__class__ is dict:
                found = {key: value for key, value in attributes.items() if not isinstance(value, CONTAINERS)}
                self._watched[id(attributes), False] = Watched(attributes, name + ".", found)
                for key in attributes.keys() - found.keys():
                    held = attributes[key]
                    self._inside.append((attributes, key, _content(held), f"{name}.{key}", _copies(held)))
                return [(value, f"{name}.{key}") for key, value in found.items()]
        elif isinstance(one, io.IOBase):
            self._files.append((one, _told(one), name))
        elif (hasattr(type(one), "__next__") and not _is_of_the_user(type(one))) or _is_of_itertools(one):
            self.refused = self.refused or f"the iterator {name}, whose place nobody watches"
        return []

    def _python_module(self, one: ModuleType, name: str) -> list[tuple[Any, str]]:
        if _is_users_module(one) or (_name_of(one) + ".").startswith(_PACKAGE):
            self._holders.append((vars(one), name))
        elif one is random:
            return [(random.random, name)]  # which all functions of this module draw from
        elif one is np or one is np.random:
            self._holders.append((NumPysRandom(), name))
        elif one is os:
            self._holders.append(({"environ": os.environ, "getenv": os.environ}, name))
        return []

    def _class(self, cls: type, name: str) -> None:
        """A class and those that it comes from: their methods, and values that all objects share."""
        for one in cls.__mro__:
            if id(one) not in self._seen_classes and _is_of_the_user(one):
                self._seen_classes[id(one)] = one
                attributes = vars(one)
                self._classes[id(attributes)] = one
                self._holders.append((attributes, name))
                self._lengths.append((attributes, len(attributes), name))

    def _optimizer(self, one: Optimizer, name: str) -> list[tuple[Any, str]]:
        """Whose parameters are watched; of one of the user's, everything, if its step is recorded."""
        self.optimizers.append(one)
        if not _steps_by_itself(one):
            return [(one.param_groups, f"{name}.param_groups"), (one.state, f"{name}.state")]
        label = f"{name}.param_groups"
        self._note(vars(one), "param_groups", label)
        self._lengths.append((one.param_groups, len(one.param_groups), label))
        for group in one.param_groups:
            self._note(group, "params", label)
            self._sequence(group["params"], label)
        return [(param, label) for group in one.param_groups for param in group["params"]]

    def _sequence(self, one: Any, name: str) -> list[tuple[Any, str]]:
        if not isinstance(one, tuple):
            self._lengths.append((one, len(one), name))
        if len(one) > _LONG:
            return []
        if not isinstance(one, tuple) and not one:
            self._empty.append(one)
        elif not isinstance(one, tuple):
            self._watched[id(one), True] = Watched(one, name + "[{}]", list(one))
        return [(value, f"{name}[{position}]") for position, value in enumerate(one)] if len(one) <= _MANY else []

    def _dictionary(self, one: Any, name: str, whole: bool = False) -> list[tuple[Any, str]]:
        self._lengths.append((one, len(one), name.partition("{")[0].rstrip("[.")))
        if len(one) > _LONG and not whole:
            return []
        if not one:
            if isinstance(one, dict):
                self._empty.append(one)
            return []
        if (id(one), False) in self._watched:
            for key, value in one.items():
                self._note(one, key, name.format(key), value)
        else:
            watched = self._watched[id(one), False] = Watched(one, name)
            watched.keys, watched.values = list(one), list(one.values())
            self._noted.update([(id(one), key) for key in one])
        self._watched[id(one), False].whole = True
        if len(one) > _MANY and not whole:
            return []
        return [(value, name.format(key)) for key, value in one.items() if value.__class__ not in _NUMBERS]

    def _note(self, container: Any, key: Any, name: str, value: Any = GONE) -> None:
        """Watch an entry of a container."""
        if (id(container), key) in self._noted:
            return
        self._noted.add((id(container), key))
        watched = self._watched.get((id(container), False))
        if watched is None:
            watched = self._watched[id(container), False] = Watched(container)
        watched.add(key, container[key] if value is GONE else value, name)

    def _read(self) -> list[tuple[Any, str]]:
        """Of objects, classes and modules, note what a function that was looked at has a name for."""
        found: list[tuple[Any, str]] = []
        names = self.names
        everything = self._any_name or "__dict__" in names or "vars" in names
        read = names | _OPERATORS
        for container, name in self._holders:
            keys = list(container)
            if not everything or "__spec__" in container:  # of a Python module, never all
                keys = [key for key in keys if key in read] if len(keys) < len(read) else _common(read, container)
            for key in keys:
                if (id(container), key) in self._noted:
                    continue
                value = container[key]
                self._note(container, key, f"{name}.{key}", value)
                if isinstance(value, (staticmethod, classmethod)):
                    value = value.__func__
                elif isinstance(value, property):
                    value = value.fget
                found.append((value, f"{name}.{key}"))
        if "param_groups" in names:
            groups = [group for one in self.optimizers for group in one.param_groups]
            found += [(group, "param_groups") for group in groups if id(group) not in self._seen]
        for scheduler, name in self._schedulers:
            known = set(vars(scheduler)) & names | ({"_last_lr"} if "get_last_lr" in names else set())
            for key in known - {"optimizer", "step"}:
                if (id(vars(scheduler)), key) not in self._noted:
                    value = vars(scheduler).get(key)
                    self._note(vars(scheduler), key, f"{name}.{key}", value)
                    found.append((value, f"{name}.{key}"))
        return found

    def _function(self, function: FunctionType, name: str) -> list[tuple[Any, str]]:
        if not is_user_code(function.__code__):
            inner = getattr(function, "__wrapped__", None)
            return [] if inner is None or inner is function else [(inner, name)]
        found: list[tuple[Any, str]] = []
        for label, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # not set yet
                continue
            self._cells.append((cell, value, label))
            found.append((value, label))
        codes = [function.__code__]
        for code in codes:
            codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
            self.names.update(code.co_names, [one for one in code.co_consts if one.__class__ is str])
            self._any_name = self._any_name or _makes_names(code)
        known = function.__globals__
        labels = [label for code in codes for label in code.co_names]
        if "globals" in labels:
            entries = [one for code in codes for one in code.co_consts if one.__class__ is str and one in known]
            if not entries:
                self.refused = self.refused or f"entries of globals() whose names do not stand in {name}"
            labels += entries
        if not _OF_MODULES.isdisjoint(labels):
            labels += [one for code in codes for one in code.co_consts if one.__class__ is str and one in sys.modules]
        for label in dict.fromkeys(labels):
            if label in known:
                value = known[label]
                self._note(known, label, label, value)
                found.append((value, label))
            else:  # it may be imported inside
                package = known.get("__package__")
                for module in (sys.modules.get(label), sys.modules.get(f"{package}.{label}") if package else None):
                    if module is not None and _is_users_module(module):
                        found.append((module, label))
        if function.__dict__:
            found += self._dictionary(function.__dict__, name + ".{}")
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            found.append((value, f"a default value of {name}"))
        return found

    # -------------------------------------------------------------------------------------------------- is it as it was

    def _seal(self) -> None:
        for watched in self._watched.values():
            watched.seal()
        self._of_cells: list[Any] = [cell for cell, _, _ in self._cells]
        self._in_cells: list[Any] = [value for _, value, _ in self._cells]
        self._sized: list[Any] = [container for container, _, _ in self._lengths]
        self._sizes: list[int] = [length for _, length, _ in self._lengths]
        self._checks: list[tuple[Any, Any, Any, Any]] = [
            (watched.read, watched.container, watched.expected, watched) for watched in self._watched.values()
        ]

    def settle(self) -> None:
        """A step has run: what the package has filled in meanwhile is as it shall be."""
        for watched in self._watched.values():
            if watched.settles:
                watched.settle()
        self._seal()

    def changed(self) -> str | None:
        """What is not as it was, if anything."""
        if compiled.library is not None:
            same = compiled.library.is_same_world(
                self._of_cells, self._in_cells, self._checks, self._sized, self._sizes
            )
            if same and not self._sets and not self.arrays:
                return None
        if self._cells:
            try:
                now = [cell.cell_contents for cell in self._of_cells]
            except ValueError:
                return "a variable that is gone"
            if not all(map(is_, now, self._in_cells)):
                for (_, value, name), one in zip(self._cells, now):
                    if one is not value and not is_equal(one, value):
                        return name
        for read, container, values, watched in self._checks:
            try:
                if all(map(is_, read(container), values)):
                    continue
            except (KeyError, IndexError, AttributeError):
                pass
            name = watched.changed()
            if name is not None:
                return name
        if list(map(len, self._sized)) != self._sizes:
            return next(name for container, length, name in self._lengths if len(container) != length)
        for entries, content, name in self._sets:
            if _members(entries) != content:
                return name
        for array, content, name in self.arrays:
            if (array.tobytes() if isinstance(array, np.ndarray) else bytes(array)) != content:
                return name
        return None

    def put_back(self) -> None:
        """Have variables and entries of lists and dictionaries as they were: the step is refused for changing one."""
        for cell, value, _ in self._cells:
            cell.cell_contents = value
        for watched in self._watched.values():
            watched.put_back(self._classes.get(id(watched.container)))
        for container in self._empty:
            if container:
                container.clear()
        for entries, content, _ in self._sets:
            if isinstance(entries, set) and _members(entries) != content:
                entries.clear()
                entries.update([one for _, one in content])
        for array, content, _ in self.arrays:
            if isinstance(array, np.ndarray) and array.flags.writeable:
                array[...] = np.frombuffer(content, array.dtype).reshape(array.shape)
            elif isinstance(array, bytearray):
                array[:] = content
        for attributes, key, content, _, copies in self._inside:
            if _content(attributes.get(key)) != content:
                attributes[key] = copies[0][0]
                for container, before in copies:
                    if not isinstance(container, tuple):
                        container.clear()
                        (container.extend if isinstance(container, list) else container.update)(before)

    def changed_inside(self) -> str | None:
        """What a step has changed that is watched while it is recorded alone."""
        for attributes, key, content, name, _ in self._inside:
            if _content(attributes.get(key)) != content:
                return name
        return next((f"the file {name}" for file, place, name in self._files if _told(file) != place), None)

    def drawn_from(self) -> str | None:
        """The generator of Python's or NumPy's that has moved since, if there is one; it is put back."""
        found = None
        for one, state, name in self._randoms.values():
            if _drawn(one) != state:
                found = name
                _put_back(one, state)
        return found


def _common(names: set[Any], container: Any) -> list[Any]:
    """The names that a large container has."""
    return sorted([name for name in names if name in container and name.__class__ is str])


def _members(entries: Any) -> frozenset[Any]:
    """What is in a set, with the classes: 1 and 1.0 are equal."""
    return frozenset(zip(map(type, entries), entries))


def _is_bare(one: Any) -> bool:
    """Is it a number, a string or code, without attributes that somebody has given it?"""
    return one.__class__ in _BARE or (isinstance(one, SCALARS) and not getattr(one, "__dict__", None))


def _told(file: Any) -> Any:
    """Where a file is read or written next; None if it cannot say."""
    try:
        return file.tell()
    except (OSError, ValueError):
        return None


def _steps_by_itself(one: Any) -> bool:
    """Is it an optimizer whose step is repeated as it is: one of the package's, or one that a scheduler counts?"""
    return isinstance(one, Optimizer) and (_is_of_the_package(type(one)) or "step" in vars(one))


def _content(one: Any) -> Any:
    """What is in a container: numbers by value, all else by identity."""
    if isinstance(one, dict):
        return [(_content(key), _content(value)) for key, value in one.items()]
    if isinstance(one, (list, tuple)):
        return [_content(value) for value in one]
    return repr(one) if isinstance(one, SCALARS) else id(one) if not isinstance(one, set) else sorted(map(id, one))


def _copies(one: Any) -> list[tuple[Any, Any]]:
    """A container and those in it, with what is in each."""
    found: dict[int, tuple[Any, Any]] = {}
    todo = [one]
    for container in todo:
        if isinstance(container, CONTAINERS) and id(container) not in found:
            content: Any = dict(container) if isinstance(container, dict) else list(container)
            found[id(container)] = container, content
            todo += content.values() if isinstance(content, dict) else content
    return list(found.values())


def _drawn(one: Any) -> Any:
    """Where a generator of Python's or NumPy's stands."""
    if isinstance(one, random.Random):
        return one.getstate()
    if isinstance(one, np.random.RandomState):
        return pickle.dumps(one.get_state(legacy=False))
    return pickle.dumps(getattr(one, "bit_generator", one).state)


def _put_back(one: Any, state: Any) -> None:
    if isinstance(one, random.Random):
        one.setstate(state)
    elif isinstance(one, np.random.RandomState):
        one.set_state(pickle.loads(state))
    else:
        getattr(one, "bit_generator", one).state = pickle.loads(state)


def _makes_names(code: CodeType) -> bool:
    """Does it read attributes by names that do not stand in it?"""
    if "getattr" not in code.co_names:
        return False
    steps = [one for one in dis.get_instructions(code) if one.opname not in ("PRECALL", "KW_NAMES", "PUSH_NULL")]
    for start, step in enumerate(steps):
        if step.argval != "getattr" or step.opname not in ("LOAD_GLOBAL", "LOAD_NAME"):
            continue
        end = next((i for i in range(start, len(steps)) if steps[i].opname.startswith("CALL")), None)
        if end is None:
            return True
        given = steps[start + 1 : end]
        name = given[-1] if steps[end].arg == 2 else given[-2] if len(given) > 1 else None
        if name is None or name.opname != "LOAD_CONST" or name.argval.__class__ is not str:
            return True
    return False


def _is_of_itertools(one: Any) -> bool:
    return type(one).__module__ == "itertools"


def _name_of(module: ModuleType) -> str:
    """What a module is called: those of the package that compute have no name (core/quiet.py)."""
    return module.__name__ or _PACKAGE[:-1]


def _is_users_module(module: ModuleType) -> bool:
    first = _name_of(module).partition(".")[0]
    return first == "__main__" or not (first in _NOT_WATCHED or first in sys.stdlib_module_names)


def _is_of_the_user(cls: type) -> bool:
    """Is it a class of a program, and not one of Python, NumPy or this package?"""
    return _is_a_users(getattr(cls, "__module__", None) or _PACKAGE)


def _is_of_the_package(cls: type) -> bool:
    """Is it a class of this package? Those that modules without a name make have none either (core/quiet.py)."""
    return (cls.__module__ or _PACKAGE).startswith(_PACKAGE)


@functools.lru_cache(4096)
def _is_a_users(module: str) -> bool:
    first = module.partition(".")[0]
    if module == "__main__":
        return True
    return not (first in _NOT_WATCHED or (first.startswith("_") and first in sys.stdlib_module_names))


