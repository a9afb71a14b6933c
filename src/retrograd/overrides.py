"""``torch.overrides``: functions that classes and modes of a program's own give another meaning.

Note [Overriding functions] in tensor/overriding.py says when who is asked.

>>> import retrograd as torch
>>> class Meters(torch.Tensor):
...     pass
>>> type(torch.ones(2).as_subclass(Meters) * 2).__name__
'Meters'
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from types import FunctionType, TracebackType
from typing import Any, TypeVar

from .core.state import local
from .ops.dispatch import reentrant as enable_reentrant_dispatch
from .ops.overload import OpOverload, OpOverloadPacket
from .ops.override_switch import NOT_OVERRIDABLE, functions, methods, throw
from .ops.registry import BEHIND
from .tensor import Tensor
from .tensor.overriding import functions_off, handle, overrides, overriding

F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "enable_reentrant_dispatch", "get_default_nowrap_functions",
    "get_ignored_functions", "get_overridable_functions", "get_testing_overrides", "handle_torch_function",
    "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
    "is_tensor_method_or_property", "redispatch_torch_function", "resolve_name", "wrap_torch_function",
]  # fmt: skip

# --------------------------------------------------------------------------------------------------------- who is asked


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Does one of these arguments, or a mode, say itself what a function means?

    >>> import retrograd as torch
    >>> torch.overrides.has_torch_function((torch.ones(2), 3))
    False
    """
    if not isinstance(relevant_args, (tuple, list)):
        raise TypeError(f"expected a sequence, got {type(relevant_args).__name__}")
    state = local.state
    if state.functions_off < 2 and state.function_modes:
        return True
    return not state.functions_off and any(overrides(type(value)) for value in relevant_args)


def has_torch_function_unary(obj: Any) -> bool:
    """The same of one argument."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """The same, with the arguments one by one."""
    return has_torch_function(args)


def handle_torch_function(public_api: Any, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """What those who override make of ``public_api(*args, **kwargs)``; TypeError if none of them knows."""
    found = overriding(relevant_args) if not local.state.functions_off else []
    return handle(public_api, found, args, kwargs)


def _get_overloaded_args(
    relevant_args: Iterable[Any], get_type_fn: Callable[[Any], type] | None = None
) -> list[Any]:
    """The arguments that override, one of each class, in the order in which they are asked."""
    if local.state.functions_off:
        return []
    if get_type_fn is None:
        return overriding(relevant_args)
    found: list[Any] = []
    for value in relevant_args:
        cls = get_type_fn(value)
        if not hasattr(cls, "__torch_function__") or any(get_type_fn(other) is cls for other in found):
            continue
        at = next((i for i, other in enumerate(found) if issubclass(cls, get_type_fn(other))), len(found))
        found.insert(at, value)
    return found


def redispatch_torch_function(func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
    """Ask whoever comes next about a call."""
    found = overriding((*args, *(kwargs or {}).values()))
    return handle(func, found, args, kwargs or {})


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[[F], F]:
    """Have those asked about a function of the program's own that override one of ``dispatcher(*args, **kwargs)``.

    >>> from retrograd.overrides import wrap_torch_function
    >>> @wrap_torch_function(lambda x: (x,))
    ... def double(x):
    ...     return x + x
    >>> double(2)
    4
    """

    def decorate(func: F) -> F:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(tuple(relevant)):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Is it a tensor, or something that says itself what functions mean?"""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


# --------------------------------------------------------------------------------------------------------------- modes


class TorchFunctionMode:
    """Is asked about every public function that its thread calls within ``with mode:``.

    >>> import retrograd as torch
    >>> class Names(torch.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(torch.overrides.resolve_name(func))
    ...         return func(*args, **(kwargs or {}))
    >>> with Names():
    ...     y = torch.nn.functional.relu(torch.ones(2)) + 1
    torch.ones
    torch.nn.functional.relu
    torch.Tensor.add
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call `func`, or something in its place. What is called in here is asked of the modes outside."""
        raise NotImplementedError("a function mode defines __torch_function__")

    def __enter__(self) -> Any:
        throw()
        state = local.state
        state.function_modes = (*state.function_modes, self)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        state = local.state
        state.function_modes = state.function_modes[:-1]
        return None

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchFunctionMode:
        """The older way to make one."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls every function as it is."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost mode of this thread."""
    modes = local.state.function_modes
    return modes[-1] if modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """The modes of this thread, outermost first."""
    return list(local.state.function_modes)


def _len_torch_function_stack() -> int:
    return len(local.state.function_modes)


def _get_function_stack_at(position: int) -> Any:
    return local.state.function_modes[position]


class DisableTorchFunctionSubclass(functions_off):
    """Ask modes only: the arguments of functions are taken for tensors."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(1)


class DisableTorchFunction(functions_off):
    """Ask nobody."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(2)


class _enable_torch_function(functions_off):
    """Ask all again, within one of the two."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(0)


class _EnableTorchFunction:
    """The same from now on until this object goes."""

    def __init__(self) -> None:
        self._guard = functions_off(0)
        self._guard.__enter__()

    def __del__(self) -> None:
        self._guard.__exit__()


@contextmanager
def _no_torch_function_mode() -> Any:
    """Leave all modes of this thread for a while."""
    state = local.state
    before, state.function_modes = state.function_modes, ()
    try:
        yield
    finally:
        state.function_modes = before


# ------------------------------------------------------------------------------------------------------------- listings


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Attributes whose values stay what they are by the default ``__torch_function__``: they are no results."""
    return {Tensor._base.__get__, Tensor.grad.__get__}  # type: ignore[attr-defined]


@functools.cache
def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that can be overridden, by the namespace that has them.

    >>> import retrograd as torch
    >>> torch.mean in torch.overrides.get_overridable_functions()[torch]
    True
    """
    return {space: list(names) for space, names in _overridable().items()}


#: Names of special methods that Python no longer asks for.
_OLDER = frozenset(("__div__", "__rdiv__", "__idiv__"))


def _overridable() -> dict[Any, dict[Any, str]]:
    """By namespace: the functions, and their names there."""
    from importlib import import_module

    package = __name__.partition(".")[0]
    import_module(f"{package}.nn.init")
    found: dict[Any, dict[Any, str]] = {}
    for space, names in functions().items():
        module = import_module(package if space == "torch" else f"{package}.{space}")
        for name, function in names.items():
            if isinstance(function, FunctionType) and getattr(module, name, None) is function:
                found.setdefault(module, {})[function] = name
    of_tensors: dict[Any, str] = {}
    for _, name, value in sorted(methods(), key=lambda one: one[1] in _OLDER):
        if isinstance(BEHIND.get(name, value), FunctionType):
            of_tensors.setdefault(value, name)
        elif isinstance(value, property):
            of_tensors[value.__get__] = f"{name}.__get__"
            if value.fset is not None:
                of_tensors[value.__set__] = f"{name}.__set__"
    found[Tensor] = of_tensors
    return found


@functools.cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """Public functions that nobody is asked about: they take no tensors, or set something."""
    torch = sys.modules[__name__.partition(".")[0]]
    overridable = {f for space in get_overridable_functions().values() for f in space}
    found: set[Any] = set()
    for name in getattr(torch, "__all__", ()):
        value = getattr(torch, name, None)
        if callable(value) and not isinstance(value, type) and value not in overridable:
            found.add(value)
    for name in NOT_OVERRIDABLE:
        value = getattr(Tensor, name, None)
        if callable(value):
            found.add(value)
    return found


@functools.cache
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that can be overridden, one with its parameters that returns -1."""
    return {f: _stand_in(f) for space in get_overridable_functions().values() for f in space}


def _stand_in(function: Any) -> Callable[..., Any]:
    name: str = function.__name__
    if getattr(Tensor, name, None) is function:
        function = BEHIND.get(name, function)
    if not isinstance(function, FunctionType):  # __get__ and __set__ of attributes
        return (lambda self, value: -1) if name == "__set__" else (lambda self: -1)

    def stand_in(*args: Any, **kwargs: Any) -> int:
        return -1

    stand_in.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return stand_in


@functools.cache
def _names() -> dict[Any, str]:
    found: dict[Any, str] = {}
    for space, named in _overridable().items():
        package = __name__.partition(".")[0]
        prefix = "torch.Tensor" if space is Tensor else "torch" + space.__name__.removeprefix(package)
        for function, name in named.items():
            found.setdefault(function, f"{prefix}.{name}")
    return found


def resolve_name(f: Any) -> str | None:
    """What a function is called, from ``torch`` on; None if it is none that can be overridden.

    >>> import retrograd as torch
    >>> torch.overrides.resolve_name(torch.Tensor.shape.__get__)
    'torch.Tensor.shape.__get__'
    """
    if isinstance(f, (OpOverload, OpOverloadPacket)):
        return f"torch.ops.{f}"
    return _names().get(f)


@functools.cache
def _tensor_methods() -> set[Any]:
    return set(_overridable()[Tensor])


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Is it something of tensors, and no function of a namespace?"""
    return func in _tensor_methods() or getattr(func, "__name__", "") in ("__get__", "__set__")
