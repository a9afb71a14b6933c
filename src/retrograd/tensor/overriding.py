"""``__torch_function__``: classes and modes that say themselves what a public function means.

Note [Overriding functions]
A class that defines ``__torch_function__(cls, func, types, args, kwargs)`` is asked, wherever one of its objects is an
argument of a public function, method or attribute of tensors, before anything else happens; a `TorchFunctionMode` is
asked about every call of its thread.  Whoever says NotImplemented passes the question on: first the innermost mode,
then the arguments, from left to right but subclasses before their bases.

Nearly all programs have neither.  So public functions know nothing of it as long as there is no such class and no mode:
the first one throws a switch (ops/override_switch.py), which puts a question in front of each of them.  This file has
the rules by which that question is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..core.state import local

#: What most arguments are: classes that override nothing.
NEVER: set[type] = {int, float, bool, complex, str, bytes, type(None), type(Ellipsis), slice, type}


class NoImplementation(TypeError):
    """Everybody who was asked has said NotImplemented."""


def disabled_torch_function(
    func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """The ``__torch_function__`` of classes that override nothing, as they say by having this one."""
    with functions_off(1):
        return func(*args, **(kwargs or {}))


class functions_off:
    """Ask fewer for a while: 0 all, 1 modes only, 2 nobody."""

    __slots__ = ("before", "level")

    before: int

    def __init__(self, level: int) -> None:
        self.level: int = level

    def __enter__(self) -> None:
        state = local.state
        self.before = state.functions_off
        # What is off stays off: within DisableTorchFunction nobody is asked, whatever is switched off besides.
        state.functions_off = self.level if self.level == 0 else max(self.level, self.before)

    def __exit__(self, *exc_info: object) -> None:
        local.state.functions_off = self.before


def overrides(cls: type) -> bool:
    """Do objects of this class say themselves what functions mean?  (`Tensor` itself does not, nor do our own.)"""
    if cls in NEVER:
        return False
    own = getattr(cls, "__torch_function__", None)
    return own is not None and own is not disabled_torch_function


def overriding(values: Iterable[Any]) -> list[Any]:
    """Of these arguments, those that override, one of each class, in the order in which they are asked."""
    found: list[Any] = []
    for value in values:
        cls = value.__class__
        if cls in NEVER:
            continue
        if cls is list or cls is tuple:
            for one in value:
                if one.__class__ is list or one.__class__ is tuple:
                    for part in one:
                        _add(found, part)
                elif one.__class__ not in NEVER:
                    _add(found, one)
        else:
            _add(found, value)
    return found


def _add(found: list[Any], value: Any) -> None:
    cls = value.__class__
    if not overrides(cls) or any(type(other) is cls for other in found):
        return
    at = next((i for i, other in enumerate(found) if issubclass(cls, type(other))), len(found))
    found.insert(at, value)


def handle(func: Any, found: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the thread's modes and the overriding arguments `found` make of ``func(*args, **kwargs)``."""
    state = local.state
    types = tuple([type(value) for value in found])
    modes = state.function_modes
    if modes and state.functions_off < 2:
        mode = modes[-1]
        method = mode.__torch_function__
        if getattr(method, "__self__", mode) is not mode:
            raise RuntimeError(
                f"Defining {type(mode).__name__}'s `__torch_function__` as a classmethod is not supported, please "
                f"make it "
                "a plain method"
            )
        state.function_modes = modes[:-1]
        try:
            result = method(func, types, args, kwargs)
        finally:
            state.function_modes = modes
        if result is not NotImplemented:
            return result
    for value in found:
        result = value.__torch_function__(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = getattr(func, "__name__", repr(func))
    in_mode = f"\n  - mode object {modes[-1]}" if modes and state.functions_off < 2 else ""
    raise NoImplementation(
        f"Multiple dispatch failed for 'torch.{name}'; all __torch_function__ handlers returned "
        f"NotImplemented:\n{in_mode}"
        + "".join(f"\n  - tensor subclass {cls}" for cls in types)
        + "\n\nDefine what the function means in one of them, or call it with arguments of one class"
    )


def default_torch_function(
    base: Any, cls: type, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...], kwargs: Any
) -> Any:
    """What a function means for a class that says nothing of it: the same, with results of the class.

    `base` is Tensor, which has this for its ``__torch_function__``.
    """
    for other in types:
        if not issubclass(cls, other):
            return NotImplemented
    state = local.state
    before = state.functions_off
    state.functions_off = max(1, before)
    try:
        result = func(*args, **(kwargs or {}))
        if func in (base._base.__get__, base.grad.__get__):  # tensors that are there, and no results
            return result
        return _of_class(base, result, cls)
    finally:
        state.functions_off = before


def _of_class(base: Any, result: Any, cls: type) -> Any:
    if isinstance(result, base):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        parts = [_of_class(base, part, cls) for part in result]
        if all(mine is part for mine, part in zip(parts, result, strict=True)):
            return result
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result
