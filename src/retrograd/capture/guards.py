"""What a captured program hangs on beside its arrays: arguments, modes, and what the function reads from the world.

A program holds for calls whose arguments look alike and whose world is as it was.  `signature` describes arguments and
modes; `World` is what the function and the functions of the user that it calls read from closures, global variables,
default values, modules and objects: numbers by value, everything else by identity.  What an optimizer's step reads is
its own affair, since the step itself is repeated.
"""

from __future__ import annotations

import functools
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from ..core import dtypes
from ..core.state import ThreadState
from ..core.where import is_user_code
from ..nn import Module
from ..optim import Optimizer
from ..tensor import Tensor

_SCALARS = (int, float, complex, bool, str, bytes, type(None))
#: Containers with more entries than this are watched for their length alone.
_LONG = 256


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
        self.tensors: list[Any] = []
        self.optimizers: list[Optimizer] = []
        self._seen: dict[int, Any] = {}
        todo: list[tuple[Any, str]] = [(function, getattr(function, "__name__", "the function"))]
        while todo:
            one, name = todo.pop()
            if id(one) in self._seen or isinstance(one, (*_SCALARS, ModuleType, type, BuiltinFunctionType, CodeType)):
                continue
            self._seen[id(one)] = one
            todo += self._look(one, name)

    def _look(self, one: Any, name: str) -> list[tuple[Any, str]]:
        """Note what `one` holds, and give back what to look at next."""
        if isinstance(one, Tensor):
            self.tensors.append(one)
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
        if isinstance(one, (list, tuple)):
            if isinstance(one, list):
                self.lengths.append((one, len(one), name))
            if len(one) > _LONG:
                return []
            for position, value in enumerate(one):
                if isinstance(one, list):
                    self.items.append((one, position, value, f"{name}[{position}]"))
            return [(value, f"{name}[{position}]") for position, value in enumerate(one)]
        if isinstance(one, Module):
            found = self._dictionary(one.__dict__, name + ".{}")
            forward = type(one).forward
            if isinstance(forward, FunctionType) and is_user_code(forward.__code__):
                found.append((forward, f"{name}.forward"))
            return found
        module = getattr(type(one), "__module__", None) or ""
        if module.startswith(("retrograd", "numpy", "builtins", "_", "threading", "collections")):
            return []
        attributes = getattr(one, "__dict__", None)
        return self._dictionary(attributes, name + ".{}") if attributes.__class__ is dict else []

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
        known = function.__globals__
        for label in dict.fromkeys([label for code in codes for label in code.co_names]):
            if label in known:
                value = known[label]
                if not isinstance(value, (ModuleType, type, BuiltinFunctionType)):
                    self.items.append((known, label, value, label))
                    found.append((value, label))
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
        return None


def _equal(now: Any, before: Any) -> bool:
    return now.__class__ is before.__class__ and isinstance(now, _SCALARS) and repr(now) == repr(before)
