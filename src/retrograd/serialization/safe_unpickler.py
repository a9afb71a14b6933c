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

import _codecs
import pickle
import pickletools
import struct
import types
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar

from ..core.devices import device
from ..core.size import Size
from . import rebuild
from .load_error import LoadError
from .names import find_known, in_python_3, public_spellings
from .safe_globals import user_safe

#: What a pickle may call besides the functions that make tensors, and the classes of the arguments that it may give.
_CALLS: dict[Any, tuple[tuple[type[Any], ...], ...]] = {
    set: ((), (list,)),
    frozenset: ((), (list,)),
    complex: ((float, float),),
    bytes: ((),),
    bytearray: ((), (bytes,)),
    OrderedDict: ((),),
    Counter: ((), (dict,)),
    _codecs.encode: ((str, str),),
    Size: ((tuple,),),
    device: ((str,), (str, int)),
}
_NAMES = {f"{thing.__module__}.{thing.__name__}": thing for thing in _CALLS if thing not in (Size, device)}
_TENSORS = (*rebuild.TENSORS, rebuild._rebuild_from_type_v2, rebuild._get_layout)

#: Modules that nobody can allow.
_BLOCKED = ("sys", "os", "posix", "nt")

#: The instructions that the pickler writes since protocol 2, and the strings of Python 2.
_INSTRUCTIONS = (
    "PROTO FRAME STOP MARK POP POP_MARK MEMOIZE BINPUT LONG_BINPUT BINGET LONG_BINGET NONE NEWTRUE NEWFALSE BININT "
    "BININT1 BININT2 LONG1 LONG4 BINFLOAT SHORT_BINSTRING BINSTRING SHORT_BINUNICODE BINUNICODE BINUNICODE8 "
    "SHORT_BINBYTES BINBYTES BINBYTES8 BYTEARRAY8 EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_LIST APPEND APPENDS "
    "EMPTY_DICT SETITEM SETITEMS EMPTY_SET ADDITEMS FROZENSET GLOBAL STACK_GLOBAL REDUCE NEWOBJ NEWOBJ_EX BUILD "
    "BINPERSID"
).split()

_DICTS = "for dict, collections.OrderedDict, collections.Counter"
_METHODS = (types.MethodType, types.BuiltinMethodType)
_LARGEST_KEY = 1000  # parts of a tuple that is a key

# The unpickler that is written in Python: only there can instructions be restricted.
_PythonUnpickler: Any = pickle._Unpickler  # type: ignore[attr-defined]


class SafeUnpickler(_PythonUnpickler):
    """Unpickles tensors and plain values; see Note [Loading what one does not trust].

    `persistent_load` is what it calls for a reference, `size` is that of the file.
    """

    def __init__(self, file: Any, size: int, persistent_load: Callable[[Any], Any], **arguments: Any) -> None:
        super().__init__(file, **arguments)
        self.persistent_load = persistent_load
        self.user_safe: dict[str, Any] = allowed_by_user()
        self.user_things: list[Any] = list(self.user_safe.values())
        self.user_methods: list[Any] = [thing for thing in self.user_things if type(thing) in _METHODS]
        #: How many items may be copied, which a small file could ask for again and again.
        self.budget: int = 4 * size

    def find_class(self, module: str, name: str) -> Any:
        if self.proto < 3:
            module, name = in_python_3(module, name)
        full = f"{module}.{name}"[:500]
        if module in _BLOCKED:
            raise _refusal(f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked.")
        found = _NAMES.get(full)
        if found is None:
            found = find_known(module, name)
        if found is None:
            found = _allowed(self.user_safe, module, name)
        if found is None:
            full = full.removeprefix("builtins.")
            raise _refusal(
                f"the file asks for {full}, which is not among the things that are safe to load from a file of unknown "
                f"origin. Unsupported global: GLOBAL {full} was not an allowed global by default. If you know that it "
                f"is harmless, use `torch.serialization.add_safe_globals([{full}])` or the "
                f"`torch.serialization.safe_globals([{full}])` context manager to allowlist it. If you trust the file, "
                "load it with weights_only=False"
            )
        return found

    def _is_users(self, thing: Any) -> bool:
        if any(thing is known for known in self.user_things):
            return True
        return type(thing) in _METHODS and thing in self.user_methods  # a class method is another object each time

    def _spend(self, items: Any) -> None:
        self.budget -= len(items) if type(items) in (tuple, list, dict, bytes, str) else 0
        if self.budget < 0:
            raise _refusal("the file copies the same things again and again")

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
                        raise _refusal(f"the file has a key of more than {_LARGEST_KEY} parts")

    # ------------------------------------------------------------------------------- instructions that are restricted

    def load_reduce(self) -> None:
        arguments, function = self.stack[-1], self.stack[-2]
        if type(arguments) is not tuple:
            raise _refusal(f"the file calls something with a {type(arguments).__name__}")
        if not self._is_users(function):
            if not any(function is known for known in _TENSORS):
                self._check_call(function, arguments)
            for argument in arguments:
                self._spend(argument)
        super().load_reduce()

    def _check_call(self, function: Any, arguments: tuple[Any, ...]) -> None:
        signatures = next((given for known, given in _CALLS.items() if function is known), None)
        if signatures is None:
            owner = getattr(function, "__self__", None) if type(function) in _METHODS else None
            whose = f" which belongs to {owner.__module__}.{owner.__qualname__}" if type(owner) is type else ""
            raise _refusal(f"Trying to call reduce for unrecognized function {_word(function)}{whose}")
        if tuple([type(argument) for argument in arguments]) not in signatures:
            raise _refusal(f"the file calls {function.__name__} with arguments of another kind")
        if function in (set, frozenset) and arguments:
            self._hash(arguments[0])
        if function is _codecs.encode and arguments[1] != "latin1":
            raise _refusal("the file has bytes that are encoded in another way than pickles encode them")

    def _check_class(self, cls: Any) -> None:
        if not self._is_users(cls):
            raise _refusal(
                "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got "
                + _word(cls)
            )

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
                raise _refusal("the file has an OrderedDict with a state of another kind")
            self._spend(state)
            target.__dict__.update(state)
            self.stack.pop()
        elif self._is_users(type(target)):
            super().load_build()
        else:
            raise _refusal(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                + type(target).__name__
            )

    def _check_filled(self, rule: str, target: Any, *classes: type[Any]) -> None:
        if type(target) not in classes and not self._is_users(type(target)):
            raise _refusal(f"{rule}, but got {type(target)}")

    def load_append(self) -> None:
        self._check_filled("Can only append to lists", self.stack[-2], list)
        super().load_append()

    def load_appends(self) -> None:
        self._check_filled("Can only extend lists", self.metastack[-1][-1], list)
        super().load_appends()

    def load_setitem(self) -> None:
        self._check_filled(f"Can only SETITEM {_DICTS}", self.stack[-3], dict, OrderedDict, Counter)
        self._hash(self.stack[-2:-1])
        super().load_setitem()

    def load_setitems(self) -> None:
        self._check_filled(f"Can only SETITEMS {_DICTS}", self.metastack[-1][-1], dict, OrderedDict, Counter)
        self._hash(self.stack[::2])
        super().load_setitems()

    def load_additems(self) -> None:
        self._check_filled("Can only add to sets", self.metastack[-1][-1], set)
        self._hash(self.stack)
        super().load_additems()

    def load_frozenset(self) -> None:
        self._hash(self.stack)
        super().load_frozenset()

    def load_bytearray8(self) -> None:
        # Python's own makes room for what the file says before it looks whether it is there.
        (size,) = struct.unpack("<Q", self.read(8))
        self.append(bytearray(self.read(size)))

    dispatch: ClassVar[dict[int, Callable[..., Any]]] = {}  # filled below


def _refusal(what: str) -> LoadError:
    return LoadError(f"Weights only load failed. {what}")


def _word(thing: Any) -> str:
    return getattr(thing, "__name__", type(thing).__name__)


def allowed_by_user() -> dict[str, Any]:
    """What `add_safe_globals` has added, by every name that files have for it."""
    found = {}
    for full, thing in user_safe().items():
        found[full] = thing
        for module, name in public_spellings(thing):
            found[f"{module}.{name}"] = thing
    return found


def _allowed(allowed: dict[str, Any], module: str, name: str) -> Any:
    """What the user has allowed by that name, or, of torch's modules, by the name of a package above (names.py)."""
    while True:
        found = allowed.get(f"{module}.{name}")
        if found is not None or not module.startswith("torch."):
            return found
        module = module.rpartition(".")[0]


def unsafe_globals(body: bytes) -> list[str]:
    """The names in a pickle that `SafeUnpickler` refuses.  Nothing is run."""
    found: dict[str, None] = {}
    allowed = allowed_by_user()
    memo: dict[int, Any] = {}
    texts: list[Any] = []  # what the last instructions have put on the stack, where it is text
    protocol = 0
    argument: Any
    try:
        for instruction, argument, _ in pickletools.genops(body):
            name = instruction.name
            if name == "PROTO":
                protocol = argument
            elif name in ("MEMOIZE", "BINPUT", "LONG_BINPUT"):
                memo[len(memo) if name == "MEMOIZE" else argument] = texts[-1] if texts else None
                continue
            asked = None
            if name == "GLOBAL":
                asked = argument.split(" ", 1)
            elif name == "STACK_GLOBAL" and len(texts) >= 2 and all(type(text) is str for text in texts[-2:]):
                asked = texts[-2:]
            if asked:
                asked = in_python_3(*asked) if protocol < 3 else tuple(asked)
                full = ".".join(asked)
                if asked[0] in _BLOCKED or not (
                    full in _NAMES or find_known(*asked) is not None or _allowed(allowed, *asked) is not None
                ):
                    found[full] = None
            if name in ("BINGET", "LONG_BINGET"):
                argument = memo.get(argument)
            texts = [*texts[-1:], argument if type(argument) is str and name != "GLOBAL" else None]
    except Exception as error:
        raise LoadError(f"the file is damaged: what describes its objects makes no sense ({error})") from error
    return list(found)


for _name in _INSTRUCTIONS:
    _code = getattr(pickle, _name)[0]
    _method = _PythonUnpickler.dispatch[_code]
    SafeUnpickler.dispatch[_code] = getattr(SafeUnpickler, _method.__name__)
