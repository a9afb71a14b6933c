"""What a captured program hangs on beside its arrays: arguments, modes, and what the function reads from the world.

A program holds for calls whose arguments look alike and whose world is as it was.  `signature` describes arguments and
modes; `World` is what the function and the functions of the user that it calls read from closures, global variables,
default values, modules and objects: numbers by value, everything else by identity.  What an optimizer's step reads is
its own affair, since the step itself is repeated.
"""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.state import ThreadState
from ..core.where import is_user_code
from ..nn import Module
from ..nn.modules.module_hooks import HOOKS_OF_ALL_MODULES
from ..optim import Optimizer
from ..tensor import Tensor

_SCALARS = (int, float, complex, bool, str, bytes, type(None))
#: Classes of these packages are not looked into.
_NOT_WATCHED = {"retrograd", "numpy", "builtins", "threading", "collections"}
#: Methods that are called without their names: by signs, brackets, calls and `with`.
_OPERATORS = {name for cls in (int, float, list, dict, set) for name in vars(cls)} - set(vars(object)) | {
    "__call__", "__enter__", "__eq__", "__exit__", "__getattr__", "__getattribute__", "__hash__", "__imatmul__",
    "__matmul__", "__next__", "__rmatmul__", "__torch_function__",
}  # fmt: skip
#: Containers with more entries than this are watched for their length alone.
_LONG = 256


def hooks_of(meta: Any) -> tuple[Any, ...] | None:
    """The hooks of a tensor, by its AutogradMeta."""
    if meta is None or not (meta.hooks or meta.post_accumulate_grad_hooks):
        return None
    return *(meta.hooks or {}).values(), *(meta.post_accumulate_grad_hooks or {}).values()


def signature(args: tuple[Any, ...], kwargs: dict[str, Any], state: ThreadState) -> tuple[list[Any], Any]:
    """The tensors among the arguments, and what describes the call."""
    tensors: list[Any] = []
    key: list[Any] = [state.grad_enabled, state.inference, dtypes.default[0]]
    for arg in args:
        key.append(_one(arg, tensors))
    for name, arg in kwargs.items():
        key += (name, _one(arg, tensors))
    return tensors, tuple(key)


def _one(arg: Any, tensors: list[Any]) -> Any:
    if isinstance(arg, Tensor):
        for position, other in enumerate(tensors):
            if other is arg:
                return "the same", position
        tensors.append(arg)
        array, meta = arg._memory_, arg._grad_meta_
        if array is None or arg._special_ is not None:
            return arg.__class__, id(arg)
        return (
            arg.__class__, array.shape, array.strides, array.dtype, arg._edge_ is not None,
            meta is not None and (meta.requires_grad, meta.is_view, meta.hooks is None),
        )  # fmt: skip
    if isinstance(arg, _SCALARS):
        return arg.__class__, repr(arg)
    if arg.__class__ in (list, tuple):
        return arg.__class__, tuple([_one(one, tensors) for one in arg])
    if arg.__class__ is dict:
        return dict, tuple([(name, _one(one, tensors)) for name, one in arg.items()])
    return arg.__class__, id(arg)


class World:
    """What a function reads from outside, as it was."""

    def __init__(self, function: Any) -> None:
        self.cells: list[tuple[Any, Any, str]] = []
        self.items: list[tuple[Any, Any, Any, str]] = []
        self.lengths: list[tuple[Any, int, str]] = []
        self.arrays: list[tuple[Any, Any, str]] = []
        self.tensors: list[Any] = []
        self.optimizers: list[Optimizer] = []
        self.sets: list[tuple[Any, Any, str]] = []
        self._seen: dict[int, Any] = {}
        self._seen_classes: dict[int, Any] = {}
        #: Names in the functions that were looked at, and what has attributes by such names, in a dictionary.
        self._names: set[Any] = {"forward"}
        self._holders: list[tuple[Any, str]] = []
        self._noted: set[tuple[int, Any]] = set()
        for hooks in HOOKS_OF_ALL_MODULES:
            self._dictionary(hooks, "a hook of all modules, number {}")
        todo: list[tuple[Any, str]] = [(function, getattr(function, "__name__", "the function"))]
        while todo:
            one, name = todo.pop()
            if id(one) not in self._seen and not isinstance(one, (*_SCALARS, BuiltinFunctionType, CodeType)):
                self._seen[id(one)] = one
                todo += self._look(one, name)
            if not todo:
                todo = self._read()

    def _look(self, one: Any, name: str) -> list[tuple[Any, str]]:
        """Note what `one` holds, and give back what to look at next."""
        if isinstance(one, Tensor):
            self.tensors.append(one)
            return []
        if isinstance(one, type):
            self._class(one, name)
            made_by = [getattr(one, key, None) for key in ("__new__", "__init__")]  # which a call of it runs
            return [(method, name) for method in made_by if isinstance(method, FunctionType)]
        if isinstance(one, ModuleType):
            if _is_users_module(one):
                self._holders.append((vars(one), name))
            return []
        if isinstance(one, FunctionType):
            return self._function(one, name)
        if isinstance(one, MethodType):
            return [(one.__func__, name), (one.__self__, name.rpartition(".")[0] or "self")]
        if isinstance(one, functools.partial):
            return [(one.func, name), (list(one.args), name), (one.keywords, name)]
        if isinstance(one, Optimizer):
            self.optimizers.append(one)
            for group in one.param_groups:
                self.lengths.append((group["params"], len(group["params"]), f"{name}.param_groups"))
                self.tensors += group["params"]
            self.lengths.append((one.param_groups, len(one.param_groups), f"{name}.param_groups"))
            return []
        if isinstance(one, dict):
            return self._dictionary(one, name + "[{!r}]")
        if isinstance(one, (set, frozenset)):
            if len(one) <= _LONG:
                self.sets.append((one, frozenset(one), name))
            return []
        if isinstance(one, (list, tuple, deque)):
            if not isinstance(one, tuple):
                self.lengths.append((one, len(one), name))
            if len(one) > _LONG:
                return []
            for position, value in enumerate(one):
                if not isinstance(one, tuple):
                    self.items.append((one, position, value, f"{name}[{position}]"))
            return [(value, f"{name}[{position}]") for position, value in enumerate(one)]
        if isinstance(one, Module):
            self._class(type(one), name)
            return self._dictionary(one.__dict__, name + ".{}")
        if isinstance(one, np.ndarray):
            if one.size <= _LONG and one.dtype.kind in "biufc":
                self.arrays.append((one, one.copy(), name))
            return []
        if not _is_of_the_user(type(one)):
            return []
        attributes = getattr(one, "__dict__", None)
        if attributes.__class__ is dict:
            self.lengths.append((attributes, len(attributes), name))
            self._holders.append((attributes, name))
        if any(["__slots__" in vars(cls) for cls in type(one).__mro__ if _is_of_the_user(cls)]):
            self._holders.append((_Slots(one), name))
        self._class(type(one), name)
        return []

    def _class(self, cls: type, name: str) -> None:
        """A class and those that it comes from: their methods, and values that all objects share."""
        for one in cls.__mro__:
            if id(one) not in self._seen_classes and _is_of_the_user(one):
                self._seen_classes[id(one)] = one
                self._holders.append((vars(one), name))

    def _read(self) -> list[tuple[Any, str]]:
        """Of objects, classes and modules, note what a function that was looked at has a name for."""
        found: list[tuple[Any, str]] = []
        names = self._names
        for container, name in self._holders:
            keys = list(container)
            if "__dict__" not in names and "vars" not in names:
                keys = [key for key in keys if key in names or key in _OPERATORS]
            for key in keys:
                if (id(container), key) in self._noted:
                    continue
                self._noted.add((id(container), key))
                value = container[key]
                self.items.append((container, key, value, f"{name}.{key}"))
                if isinstance(value, (staticmethod, classmethod)):
                    value = value.__func__
                elif isinstance(value, property):
                    value = value.fget
                found.append((value, f"{name}.{key}"))
        return found

    def _dictionary(self, one: dict[Any, Any], name: str) -> list[tuple[Any, str]]:
        self.lengths.append((one, len(one), name.partition("{")[0].rstrip("[.")))
        if len(one) > _LONG:
            return []
        for key, value in one.items():
            self.items.append((one, key, value, name.format(key)))
        return [(value, name.format(key)) for key, value in one.items()]

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
            self.cells.append((cell, value, label))
            found.append((value, label))
        codes = [function.__code__]
        for code in codes:
            codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
            self._names.update(code.co_names, [one for one in code.co_consts if one.__class__ is str])
        known = function.__globals__
        for label in dict.fromkeys([label for code in codes for label in code.co_names]):
            if label in known:
                value = known[label]
                if not isinstance(value, BuiltinFunctionType):
                    self.items.append((known, label, value, label))
                    found.append((value, label))
        if function.__dict__:
            found += self._dictionary(function.__dict__, name + ".{}")
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            found.append((value, f"a default value of {name}"))
        return found

    def changed(self) -> str | None:
        """What is not as it was, if anything."""
        for cell, value, name in self.cells:
            now = cell.cell_contents
            if now is not value and not _equal(now, value):
                return name
        for container, key, value, name in self.items:
            try:
                now = container[key]
            except (KeyError, IndexError):
                return name
            if now is not value and not _equal(now, value):
                return name
        for container, length, name in self.lengths:
            if len(container) != length:
                return name
        for entries, content, name in self.sets:
            if entries != content:
                return name
        for array, content, name in self.arrays:
            if array.shape != content.shape or array.tobytes() != content.tobytes():
                return name
        return None


class _Slots:
    """The slots of an object as a dictionary."""

    def __init__(self, one: Any) -> None:
        self.one: Any = one

    def __iter__(self) -> Iterator[str]:
        for cls in type(self.one).__mro__:
            slots = vars(cls).get("__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                if hasattr(self.one, slot):
                    yield slot

    def __getitem__(self, key: str) -> Any:
        try:
            return getattr(self.one, key)
        except AttributeError:
            raise KeyError(key) from None


def _is_users_module(module: ModuleType) -> bool:
    first = module.__name__.partition(".")[0]
    return first == "__main__" or not (
        first.startswith("_") or first in _NOT_WATCHED or first in sys.stdlib_module_names
    )


def _is_of_the_user(cls: type) -> bool:
    """Is it a class of a program, and not one of Python, NumPy or this package?"""
    module = getattr(cls, "__module__", None) or ""
    first = module.partition(".")[0]
    return module == "__main__" or not (first.startswith("_") or first in _NOT_WATCHED)


def _equal(now: Any, before: Any) -> bool:
    return now.__class__ is before.__class__ and isinstance(now, _SCALARS) and repr(now) == repr(before)
