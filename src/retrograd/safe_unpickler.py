"""Unpickling what one does not trust: tensors and plain values, and nothing else.  Called by `load`.

Note [Loading what one does not trust]
A pickle is a program: it can call anything that it can name, set attributes, and put items into whatever it has made.
Here it is let do what the pickler does for tensors and plain values, and no more:

* It may name only what `load` knows (a few functions and classes) and what the user has added with `add_safe_globals`.
* It may call only those, with the kinds of arguments that the pickler gives them; set attributes only of an
  OrderedDict (a state dict carries its metadata so) and of the user's classes; and fill only lists, dicts and sets.
* Instructions that the pickler does not write today are unknown.
* What it makes is no larger than the file, by a small factor: what is copied is counted, and a key of a dict is no
  deep or broad nest of tuples, whose hash would take forever or end the interpreter.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals"]


class LoadError(RuntimeError, pickle.UnpicklingError):
    """What `load` raises when something is wrong with the file: whatever it is, this and nothing else.

    torch raises RuntimeError for a broken archive and pickle.UnpicklingError for what it does not load; this is both.
    """


# ------------------------------------------------------------------------------------------------- what users add to it

_added: tuple[Any, ...] = ()


def _user_safe() -> dict[str, Any]:
    return {f"{thing.__module__}.{thing.__qualname__}": thing for thing in _added}


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let `load` make instances of these classes, and call these functions, whatever file asks for it."""
    global _added
    _added = (*_added, *(thing for thing in safe_globals if thing not in _added))


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` has added."""
    return list(_added)


def clear_safe_globals() -> None:
    """Take back everything that `add_safe_globals` has added."""
    global _added
    _added = ()


class safe_globals:
    """``with safe_globals([MyClass]):``: `add_safe_globals` for a while."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self.given = safe_globals

    def __enter__(self) -> None:
        global _added
        added = tuple([thing for thing in self.given if thing not in _added])
        self.before = _added
        _added += added  # last: Note [Interrupts and modes] in core/state.py

    def __exit__(self, *exc_info: object) -> None:
        global _added
        _added = self.before


# -------------------------------------------------------------------------------------------------------- the unpickler

#: Classes of Python that a pickle may call, and the classes of the arguments that it may give them.
_BUILTIN: dict[Any, tuple[type, ...]] = {
    set: (list,),
    frozenset: (list,),
    complex: (float, float),
    bytearray: (bytes,),
    OrderedDict: (),
    Counter: (dict,),
}

#: The instructions that the pickler writes since protocol 4, and GLOBAL, so that its refusal can name what was asked.
_INSTRUCTIONS = (
    "PROTO FRAME STOP MARK POP POP_MARK MEMOIZE BINGET LONG_BINGET NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 "
    "LONG4 BINFLOAT SHORT_BINUNICODE BINUNICODE BINUNICODE8 SHORT_BINBYTES BINBYTES BINBYTES8 BYTEARRAY8 EMPTY_TUPLE "
    "TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_LIST APPEND APPENDS EMPTY_DICT SETITEM SETITEMS EMPTY_SET ADDITEMS FROZENSET "
    "GLOBAL STACK_GLOBAL REDUCE NEWOBJ NEWOBJ_EX BUILD BINPERSID"
).split()

_LARGEST_KEY = 1000  # parts of a tuple that is a key

# The unpickler that is written in Python: only there can instructions be restricted.
_PythonUnpickler: Any = pickle._Unpickler  # type: ignore[attr-defined]


class SafeUnpickler(_PythonUnpickler):
    """Unpickles tensors and plain values; see Note [Loading what one does not trust].

    `ours` are the functions that the pickle may name besides a few classes of Python's; `persistent_load` is what it
    calls for a reference.
    """

    def __init__(self, body: bytes, ours: Mapping[str, Callable], persistent_load: Callable[[Any], Any]) -> None:
        super().__init__(io.BytesIO(body))
        self.persistent_load = persistent_load
        self.ours = ours
        self.user_safe = _user_safe()
        self.user_things = list(self.user_safe.values())
        #: How many items may be copied, which a small file could ask for again and again.
        self.budget = 4 * len(body)

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"[:500]
        for thing in _BUILTIN:
            if module == thing.__module__ and name == thing.__name__:
                return thing
        found = self.ours.get(full) or self.user_safe.get(full)
        if found is None:
            raise _refusal(
                f"refers to {full}, which is not among the things that are safe to load from a file of unknown origin. "
                "If you trust the file, load it with weights_only=False; if you know that "
                f"{name[:100]} is harmless, allow it: torch.serialization.add_safe_globals([{name[:100]}])"
            )
        return found

    def _is_users(self, thing: Any) -> bool:
        return any(thing is known for known in self.user_things)

    def _spend(self, items: Any) -> None:
        self.budget -= len(items) if type(items) in (tuple, list, dict, bytes) else 0
        if self.budget < 0:
            raise _refusal("copies the same things again and again")

    def _hash(self, keys: Any) -> None:
        for key in keys:
            waiting = [key]
            parts = 0
            while waiting:
                part = waiting.pop()
                if type(part) is tuple:
                    waiting += part
                    parts += 1 + len(part)
                    if parts > _LARGEST_KEY:
                        raise _refusal(f"has a key of more than {_LARGEST_KEY} parts")

    # ------------------------------------------------------------------------------- instructions that are restricted

    def load_reduce(self) -> None:
        arguments, function = self.stack[-1], self.stack[-2]
        if type(arguments) is not tuple:
            raise _refusal(f"calls something with a {type(arguments).__name__}")
        if not self._is_users(function):
            classes = tuple(type(argument) for argument in arguments)
            if type(function) is type and function in _BUILTIN:
                if classes not in ((), _BUILTIN[function]):
                    raise _refusal(f"calls {function.__name__} with arguments of another kind")
                if function in (set, frozenset) and arguments:
                    self._hash(arguments[0])
            elif not any(function is known for known in self.ours.values()):
                raise _refusal(f"calls a {type(function).__name__}")
            for argument in arguments:
                self._spend(argument)
        super().load_reduce()

    def _check_class(self, cls: Any) -> None:
        if not self._is_users(cls):
            raise _refusal(f"makes an instance of {getattr(cls, '__name__', type(cls).__name__)}")

    def load_newobj(self) -> None:
        self._check_class(self.stack[-2])
        super().load_newobj()

    def load_newobj_ex(self) -> None:
        self._check_class(self.stack[-3])
        super().load_newobj_ex()

    def load_build(self) -> None:
        target, state = self.stack[-2], self.stack[-1]
        if type(target) is OrderedDict:
            if type(state) is not dict or any(type(name) is not str for name in state):
                raise _refusal("has an OrderedDict with a state of another kind")
            self._spend(state)
            target.__dict__.update(state)
            self.stack.pop()
        elif self._is_users(type(target)):
            super().load_build()
        else:
            raise _refusal(
                f"sets attributes of a {type(target).__name__}, which is not among the things that are safe to load "
                "from a file of unknown origin"
            )

    def _check_filled(self, target: Any, *classes: type) -> None:
        if type(target) not in classes and not self._is_users(type(target)):
            raise _refusal(f"puts items into a {type(target).__name__}")

    def load_append(self) -> None:
        self._check_filled(self.stack[-2], list)
        super().load_append()

    def load_appends(self) -> None:
        self._check_filled(self.metastack[-1][-1], list)
        super().load_appends()

    def load_setitem(self) -> None:
        self._check_filled(self.stack[-3], dict, OrderedDict, Counter)
        self._hash(self.stack[-2:-1])
        super().load_setitem()

    def load_setitems(self) -> None:
        self._check_filled(self.metastack[-1][-1], dict, OrderedDict, Counter)
        self._hash(self.stack[::2])
        super().load_setitems()

    def load_additems(self) -> None:
        self._check_filled(self.metastack[-1][-1], set)
        self._hash(self.stack)
        super().load_additems()

    def load_frozenset(self) -> None:
        self._hash(self.stack)
        super().load_frozenset()

    def load_bytearray8(self) -> None:
        # Python's own makes room for what the file says before it looks whether it is there.
        (size,) = struct.unpack("<Q", self.read(8))
        self.append(bytearray(self.read(size)))

    dispatch: ClassVar[dict[int, Callable]] = {}  # filled below


def _refusal(what: str) -> LoadError:
    return LoadError(f"Weights only load failed: the file {what}")


for _name in _INSTRUCTIONS:
    _code = getattr(pickle, _name)[0]
    _method = _PythonUnpickler.dispatch[_code]
    SafeUnpickler.dispatch[_code] = getattr(SafeUnpickler, _method.__name__)
