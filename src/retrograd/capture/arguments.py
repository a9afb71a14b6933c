"""The arguments of a call: its tensors, what describes all the others, and what a step must leave as it was.

Lists, tuples, dictionaries, data classes and slices are taken apart; numbers and strings are known by value, all other
things by identity.  `signature` is what calls of one program have in common; `Given` is what there is to look into.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from enum import Enum
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.devices import device
from ..core.state import ThreadState
from ..core.version_counter import INFERENCE
from ..nn import Module
from ..tensor import Tensor
from ..utils._pytree import is_namedtuple_class
from .errors import CaptureError

SCALARS = (int, float, complex, bool, str, bytes, type(None))
_NUMBERS = (*SCALARS, np.generic, device)
#: Classes of which equal ones are the same.
_BY_THEMSELVES = frozenset((int, bool, str, bytes, type(None), device))
#: Arguments that are nested deeper are not looked at.
DEEPEST = 200


class TooDeep(CaptureError):
    """Arguments that nobody looks at to the end."""


class Same:
    """A thing that is known by identity. It is held: what comes after it must not be taken for it."""

    __slots__ = ("one",)

    def __init__(self, one: Any) -> None:
        self.one: Any = one

    def __hash__(self) -> int:
        return id(self.one)

    def __eq__(self, other: object) -> bool:
        return other.__class__ is Same and other.one is self.one  # type: ignore[attr-defined]


def hooks_of(meta: Any) -> tuple[Any, ...] | None:
    """The hooks of a tensor, by its AutogradMeta."""
    if meta is None or not (meta.hooks or meta.post_accumulate_grad_hooks):
        return None
    both = *(meta.hooks or {}).values(), *(meta.post_accumulate_grad_hooks or {}).values()
    return tuple([Same(hook) for hook in both])


def history(tensor: Any) -> Any:
    """The node that the gradient of a tensor goes into, be it a view or not; None for a leaf."""
    if tensor._edge_ is not None:
        return tensor._edge_[0]
    meta = tensor._grad_meta_
    return tensor.grad_fn if meta is not None and meta.is_view else None


def modes(state: ThreadState) -> list[Any]:
    """The modes that a call runs in."""
    return [state.grad_enabled, state.inference, dtypes.default[0]]


def signature(args: tuple[Any, ...], kwargs: dict[str, Any], state: ThreadState) -> tuple[list[Any], Any]:
    """The tensors among the arguments, and what describes the call."""
    tensors: list[Any] = []
    seen: dict[int, int] = {}
    key: list[Any] = [state.grad_enabled, state.inference, dtypes.default[0]]  # `modes` without the call
    for arg in args:
        key.append(_one(arg, tensors, seen))
    for name, arg in kwargs.items():
        key.append((name, _one(arg, tensors, seen)))
    return tensors, tuple(key)


def _one(arg: Any, tensors: list[Any], seen: dict[int, int], depth: int = 0) -> Any:
    """What describes an argument. `seen` has numbers of the tensors and containers before it, by their ids."""
    cls = arg.__class__
    if cls is Tensor or isinstance(arg, Tensor):
        if seen:
            number = seen.get(id(arg))
            if number is not None:
                return "the same", number
        seen[id(arg)] = len(seen)
        tensors.append(arg)
        array, meta = arg._memory_, arg._grad_meta_
        if array is None or (cls is not Tensor and arg._special_ is not None):
            return cls, Same(arg)
        attributes = None
        if arg.__dict__:
            attributes = tuple([(name, _one(one, tensors, seen, depth + 1)) for name, one in arg.__dict__.items()])
        kind = cls, array.shape, array.strides, array.dtype, arg._vc_ is INFERENCE, attributes
        if meta is None:
            return kind if arg._edge_ is None else (*kind, True)
        return *kind, history(arg) is not None, meta.requires_grad, meta.is_view, hooks_of(meta)
    if isinstance(arg, _NUMBERS):
        if getattr(arg, "__dict__", None) and not isinstance(arg, Enum):
            attributes = tuple([(name, _one(one, tensors, seen, depth + 1)) for name, one in arg.__dict__.items()])
            return arg.__class__, (in_bits(arg), attributes)
        return arg.__class__, in_bits(arg)
    number = seen.get(id(arg))
    if number is not None:
        return "the same", number
    if depth > DEEPEST:
        raise TooDeep(f"cannot capture arguments that are nested more than {DEEPEST} deep: pass their tensors instead")
    if arg.__class__ is list or arg.__class__ is tuple:
        seen[id(arg)] = len(seen)
        return arg.__class__, tuple([_one(one, tensors, seen, depth + 1) for one in arg])
    parts = arg.items() if arg.__class__ is dict else _parts(arg)
    if parts is None:
        return Same(arg)
    seen[id(arg)] = len(seen)
    return arg.__class__, tuple([(_label(label), _one(one, tensors, seen, depth + 1)) for label, one in parts])


def _label(label: Any) -> Any:
    """What describes a key of a dictionary, or the name of a part: equal ones may be of several classes."""
    if label.__class__ is str:
        return label
    if isinstance(label, tuple):
        return label.__class__, tuple([_label(one) for one in label])
    if isinstance(label, _NUMBERS) and not getattr(label, "__dict__", None):
        return label.__class__, in_bits(label)
    return Same(label)


def in_bits(number: Any) -> Any:
    """What tells a number or string from all others of its class, whatever that makes of its operators."""
    kind = number.__class__
    if kind in _BY_THEMSELVES:
        return number
    if kind is float:
        return repr(number)
    if isinstance(number, np.generic):
        return number.tobytes()
    if isinstance(number, int):
        return int.__index__(number)
    base: Any = next(base for base in SCALARS if isinstance(number, base))
    return base.__repr__(number)


def _parts(arg: Any) -> list[tuple[Any, Any]] | None:
    """What an argument consists of, with labels; None if it is known as a whole."""
    kind = arg.__class__
    if kind is slice or kind is range:
        return [("start", arg.start), ("stop", arg.stop), ("step", arg.step)]
    if hasattr(kind, "__dataclass_fields__"):
        if isinstance(arg, (type, Module)):
            return None
        attributes = getattr(arg, "__dict__", None)
        if attributes is not None:
            return list(attributes.items())
        return [(name, getattr(arg, name)) for name in kind.__dataclass_fields__ if hasattr(arg, name)]
    if not isinstance(arg, (list, tuple, dict)):
        return None
    if kind is not list and kind is not dict and kind is not tuple:
        if getattr(arg, "__dict__", None) or any([vars(cls).get("__slots__") for cls in kind.__mro__]):
            return None  # a container with attributes
    return list(arg.items()) if isinstance(arg, dict) else list(enumerate(arg))


class WithOthers:
    """Arguments with other tensors in place of their own, which are given by their ids."""

    def __init__(self, others: dict[int, Any]) -> None:
        self._others: dict[int, Any] = others
        #: Containers by their ids, and what has come of them; None as long as that is not known.
        self._done: dict[int, Any] = {}

    def __call__(self, arg: Any) -> Any:
        """An argument as it is if it has none of these tensors, else a copy."""
        self._in_itself: bool = False
        found = self._one(arg)
        if self._in_itself and found is not arg:
            raise CaptureError(
                "cannot capture an argument that contains itself in a function whose result can be differentiated: "
                "pass its tensors instead"
            )
        return found

    def _one(self, arg: Any) -> Any:
        if isinstance(arg, Tensor):
            return self._others.get(id(arg), arg)
        if isinstance(arg, _NUMBERS):
            return arg
        if id(arg) in self._done:
            found = self._done[id(arg)]
            self._in_itself = self._in_itself or found is None
            return arg if found is None else found
        parts = _parts(arg)
        if not parts:
            return arg
        self._done[id(arg)] = None
        new = [(label, self._one(one)) for label, one in parts]
        changed = [(label, one) for (label, one), (_, before) in zip(new, parts, strict=True) if one is not before]
        found = self._done[id(arg)] = _replaced(arg, new, changed) if changed else arg
        return found


def _replaced(arg: Any, parts: list[tuple[Any, Any]], changed: list[tuple[Any, Any]]) -> Any:
    """A copy of a container with these parts, of which some are others."""
    if isinstance(arg, tuple):
        found = [one for _, one in parts]
        return arg._make(found) if is_namedtuple_class(type(arg)) else type(arg)(found)  # type: ignore[attr-defined]
    twin = copy.copy(arg)
    for label, one in changed:
        if isinstance(arg, (list, dict)):
            twin[label] = one
        else:
            object.__setattr__(twin, label, one)
    return twin


def in_outline(key: Any) -> Any:
    """A signature without its values: what calls have in common that differ in numbers and things."""
    if key.__class__ is tuple:
        if len(key) == 2 and isinstance(key[0], type) and issubclass(key[0], _NUMBERS):
            return key[0]
        return tuple([in_outline(one) for one in key])
    return key.one.__class__ if key.__class__ is Same else key


def first_other(function: Any, key: Any, other: Any) -> str:
    """Which argument two signatures differ in, in words."""
    names = _names(function)
    for position, (one, two) in enumerate(zip(key, other)):
        if one != two:
            if position < _MODES:
                return "a mode"
            position -= _MODES
            if one.__class__ is tuple and two.__class__ is tuple and one[0] == two[0] and one[0].__class__ is str:
                return f"the argument {one[0]!r}"
            return f"the argument {names(position)}"
    return "an argument"


_MODES = 3


def _names(function: Any) -> Callable[[int], str]:
    """What the arguments of a function by position are called."""
    first = 0
    if isinstance(function, MethodType):
        function, first = function.__func__, 1
    code = function.__code__ if isinstance(function, FunctionType) else None

    def name(position: int) -> str:
        if code is not None and position + first < code.co_argcount:
            return repr(code.co_varnames[position + first])
        return f"number {position + 1}"

    return name


class Given:
    """What is among the arguments beside tensors and numbers: things to look into, and what has to stay as it is."""

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        #: Things that are known by identity, classes of what is taken apart, and their names.
        self.things: list[tuple[Any, str]] = []
        self._containers: list[tuple[Any, list[tuple[Any, Any]], str]] = []
        names = _names(function)
        todo = [(arg, names(position).strip("'")) for position, arg in enumerate(args)]
        todo += [(arg, name) for name, arg in kwargs.items()]
        seen: set[int] = set()
        for arg, name in todo:
            if id(arg) not in seen:
                seen.add(id(arg))
                todo += self._look(arg, name)

    def _look(self, arg: Any, name: str) -> list[tuple[Any, str]]:
        """Note what an argument is, and give back what it consists of."""
        if isinstance(arg, Tensor):
            self.things += [(hook.one, f"a hook of {name}") for hook in hooks_of(arg._grad_meta_) or ()]
            return []
        if isinstance(arg, (slice, range)) or (isinstance(arg, _NUMBERS) and not getattr(arg, "__dict__", None)):
            return []
        parts = _parts(arg)
        if parts is None:
            self.things.append((arg, name))
            return []
        if arg.__class__ not in (list, tuple, dict):
            self.things.append((arg.__class__, type(arg).__name__))
        self._containers.append((arg, parts, name))
        label = name + "[{!r}]" if isinstance(arg, (list, tuple, dict)) else name + ".{}"
        return [(part, label.format(key)) for key, part in parts]

    def changed(self) -> str | None:
        """The argument that is not as it was, if there is one."""
        for arg, before, name in self._containers:
            now = _parts(arg)
            if now is None or len(now) != len(before):
                return name
            for (label, one), (label_before, one_before) in zip(now, before):
                if (label is not label_before and label != label_before) or (
                    one is not one_before and not is_equal(one, one_before)
                ):
                    return name
        return None

    def put_back(self) -> None:
        """Have containers among the arguments as they were: the step is refused for changing one."""
        for arg, before, _ in self._containers:
            if isinstance(arg, list):
                arg[:] = [one for _, one in before]
            elif isinstance(arg, dict):
                dict.clear(arg)
                dict.update(arg, before)
            elif hasattr(arg, "__dict__") and not isinstance(arg, tuple):
                vars(arg).clear()
                vars(arg).update(before)
            elif hasattr(arg, "__dataclass_fields__"):  # with slots
                for label, one in before:
                    object.__setattr__(arg, label, one)


def is_equal(now: Any, before: Any) -> bool:
    """Are two numbers or strings the same, to the last bit?"""
    return now.__class__ is before.__class__ and isinstance(now, SCALARS) and in_bits(now) == in_bits(before)
