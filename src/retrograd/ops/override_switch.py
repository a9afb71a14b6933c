"""The switch of Note [Overriding functions] (tensor/overriding.py).

`throw()` puts a question in front of every public function, method and attribute of tensors: is a mode on, or does one
of the arguments override?  Functions stay the objects that they are, since programs have imported them and look them up
in tables of their own: they get other code.  What they did before is in a copy, which the new code calls (`plain`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from types import FunctionType
from typing import Any

from ..autograd.run_backward import backward, grad
from ..core.devices import DeviceClass
from ..core.dtypes import dtype
from ..core.locks import fork_safe_lock
from ..core.size import Size
from ..core.state import local
from ..core.where import between
from ..tensor import Tensor
from ..tensor.overriding import NEVER, NoImplementation, handle, overriding
from .dispatch import DispatchTensor, ModeObserver, ask_mode, is_whole
from .dispatch_attributes import OfDispatchTensors
from .registry import BEHIND, SPACES

_lock = fork_safe_lock()
_thrown = False

#: Special methods, and the method of tensors that those who override are told of, as in torch.
TOLD: dict[str, str] = {
    "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_", "__mul__": "mul",
    "__rmul__": "mul", "__imul__": "mul_", "__truediv__": "div", "__itruediv__": "div_",
    "__ifloordiv__": "floor_divide_", "__mod__": "remainder", "__imod__": "remainder_", "__matmul__": "matmul",
    "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__neg__": "neg",
    "__pos__": "positive", "__abs__": "abs", "__rand__": "bitwise_and", "__ror__": "bitwise_or",
    "__rxor__": "bitwise_xor",
}  # fmt: skip
#: Special methods for two operands: where nobody knows what to do, Python asks the other operand.
_OPERATORS = (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift eq ne lt le gt ge".split()
)
BINARY: frozenset[str] = frozenset(f"__{prefix}{name}__" for name in _OPERATORS for prefix in ("", "r", "i"))

#: Of the methods of tensors, those that mean the same for every class: how objects are made, told apart and looked
#: into.
NOT_OVERRIDABLE: frozenset[str] = frozenset(
    """__array_priority__ __class__ __delattr__ __getattribute__ __getstate__ __hash__ __init__ __init_subclass__
    __iter__ __new__ __setattr__ __sizeof__ __slots__ __subclasshook__ __torch_dispatch__ __torch_function__ __weakref__
    __array_ufunc__ __array_function__ __class_getitem__ __setstate__ as_subclass held kind""".split()
)


def thrown() -> bool:
    """Has there been an overriding class or a mode?"""
    return _thrown


def throw() -> None:
    """Have overriding classes and modes asked, from now on."""
    global _thrown
    if _thrown:
        return
    with _lock:
        if _thrown:
            return
        NEVER.update((Size, dtype))
        between.update((__file__, _TEMPLATE.co_filename))
        for function, key, name in public():
            _put_question(function, key, name)
        DeviceClass.__call__ = _asked_device  # type: ignore[method-assign,assignment]
        _thrown = True


def _asked_device(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """``torch.device(...)``, which modes are asked about, too."""
    if local.state.function_modes and local.state.functions_off < 2:
        return handle(cls, [], args, kwargs)
    return type.__call__(cls, *args, **kwargs)


def public() -> Iterator[tuple[FunctionType, Any, str]]:
    """Every function that can be overridden, what those who override are told of, and its name."""
    seen: set[int] = set()
    for _, name, value in methods():
        function = BEHIND.get(name, value)
        if isinstance(function, FunctionType) and id(function) not in seen:
            seen.add(id(function))
            key = getattr(Tensor, TOLD[name], value) if name in TOLD else value
            yield function, key, name
        elif isinstance(value, property):
            for function, way in ((value.fget, "__get__"), (value.fset, "__set__")):
                if isinstance(function, FunctionType) and id(function) not in seen:
                    seen.add(id(function))
                    yield function, getattr(value, way), name
    for names in functions().values():
        for name, value in names.items():
            if isinstance(value, FunctionType) and id(value) not in seen:
                seen.add(id(value))
                yield value, value, name


def methods() -> Iterator[tuple[type, str, Any]]:
    """What tensors have, by name: functions and properties."""
    found: set[str] = set()
    for owner in Tensor.__mro__[:-1]:
        for name, value in vars(owner).items():
            private = name.startswith("_") and not name.startswith("__")
            if name not in found and name not in NOT_OVERRIDABLE and not private:
                found.add(name)
                yield owner, name, value


def functions() -> dict[str, dict[str, Any]]:
    """The public functions, by namespace."""
    package = __name__.partition(".")[0]
    spaces = {space: SPACES[space] for space in ("torch", "fft", "special", "nn.functional")}
    linalg, init = import_module(f"{package}.linalg"), import_module(f"{package}.nn.init")
    others = {"autograd": {"grad": grad, "backward": backward}}
    others["linalg"] = {name: getattr(linalg, name) for name in linalg.__all__}  # (which has further checks)
    others["nn.init"] = {name: f for name, f in vars(init).items() if getattr(f, "__module__", "") == init.__name__}
    return {
        space: {name: f for name, f in names.items() if not name.startswith("_") and name not in _NOT_ASKED}
        for space, names in (spaces | others).items()
    }


#: Functions that torch answers without asking.
_NOT_ASKED = frozenset("is_tensor is_storage typename".split())

_TEMPLATE = compile("def call(*args, **kwargs):\n    return asked(args, kwargs)\n", f"{__file__}: a question", "exec")
_CODE = next(constant for constant in _TEMPLATE.co_consts if hasattr(constant, "co_code"))


def _put_question(function: FunctionType, key: Any, name: str) -> None:
    plain = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    plain.__kwdefaults__ = function.__kwdefaults__
    plain.__dict__.update(function.__dict__)
    plain.__module__, plain.__qualname__, plain.__doc__ = function.__module__, function.__qualname__, function.__doc__
    if function.__globals__.get("call") is function:  # (ops/checked.py: it is to be written when it is first called)
        function.__globals__["plain"] = plain
    # What it is, what is done where nobody overrides it, and what shows its parameters.
    function.body = getattr(function, "body", plain)  # type: ignore[attr-defined]  # (ops/compiled_core.py)
    function.plain, function.__wrapped__ = _then(key, plain, name), plain  # type: ignore[attr-defined]
    where = f"asked_{id(function)}"
    function.__globals__[where] = _question(key, plain, function.plain, name)  # type: ignore[attr-defined]
    function.__code__ = _CODE.replace(
        co_names=(where,), co_name=function.__code__.co_name, co_qualname=function.__code__.co_qualname,
        co_freevars=function.__code__.co_freevars,
    )  # fmt: skip


#: What every class has, that of the collection too.
_OBJECTS = frozenset(("__init__", "__new__", "__doc__", "__module__", "__dict__", "__weakref__"))


def _then(key: Any, plain: FunctionType, name: str) -> Callable[..., Any]:
    """What a function does where nobody overrides it: Note [Python dispatch] has more to ask about some."""
    if is_whole(key):

        def ask_modes(*args: Any, **kwargs: Any) -> Any:
            state = local.state
            if state.interceptor is not None and state.observers and not state.dispatch_off:
                if state.observers[0].__class__ is ModeObserver:  # modes come first
                    return ask_mode(key, args, kwargs)
            if args and isinstance(args[0], DispatchTensor):
                result = args[0]._operate_(key, args, kwargs)
                if result is not NotImplemented:
                    return result
            return plain(*args, **kwargs)

        return ask_modes
    own: Any = vars(OfDispatchTensors).get(name)
    if isinstance(own, property):
        own = {"__get__": own.fget, "__set__": own.fset}.get(getattr(key, "__name__", ""))
    if not isinstance(own, FunctionType) or name in _OBJECTS:
        return plain

    def by_class(*args: Any, **kwargs: Any) -> Any:
        return (own if isinstance(args[0], DispatchTensor) else plain)(*args, **kwargs)

    return by_class


def _question(key: Any, plain: FunctionType, then: Callable[..., Any], name: str) -> Callable[..., Any]:
    starts_a_pass = name in ("grad", "backward") and isinstance(key, FunctionType) and "run_backward" in key.__module__
    fast = plain if is_whole(key) is False else then

    def asked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        state = local.state
        if not kwargs and not state.function_modes:
            for value in args:
                if value.__class__ not in NEVER:
                    break
            else:
                return fast(*args)
        off = state.functions_off
        if off < 2:
            found = overriding((*args, *kwargs.values())) if not off else []
            if found or state.function_modes:
                return handle(key, found, _in_tuples(args) if starts_a_pass else args, kwargs)
        return then(*args, **kwargs)

    def asked_operator(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return asked(args, kwargs)
        except NoImplementation:
            return NotImplemented

    return asked_operator if name in BINARY else asked


def _in_tuples(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The outputs and inputs of a backward pass, each in a tuple, as those who override are told of them."""
    return (*[a if isinstance(a, (tuple, list)) else (a,) for a in args[:2]], *args[2:])
