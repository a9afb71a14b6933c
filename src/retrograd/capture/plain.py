"""A program as straight-line Python on NumPy: the text that runs, and the one with remarks, which `source` shows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import compiled
from .errors import CaptureError, OtherPath
from .fusion import Unit
from .memory import Memory
from .program import Program, line_of
from .values import Call, Storage, Value, address

#: So many calls are written as lines of their own; more are run through.
_FEW = 4
_THROUGH = "for function, args in {}: function(*args)"


def _run_through(steps: list[tuple[Any, tuple[Any, ...]]]) -> None:
    for function, args in steps:
        function(*args)


class Writer:
    """Writes the lines of a program and knows what their names stand for."""

    def __init__(self, program: Program, memory: Memory, remarks: bool = False) -> None:
        self.program: Program = program
        self.memory: Memory = memory
        self.remarks: bool = remarks
        self.names: dict[str, Any] = {
            "copyto": np.copyto,
            "store": _store,
            "flat": _flat,
            "check": check,
            "part": _part,
            "laid_out": _laid_out,
            "address": address,
            "room": _room,
            "own": memory.own,
            "__name__": __name__,  # by which warnings of the package are known: see core/quiet.py
        }
        self.lines: list[str] = []
        self._values: dict[Any, str] = {}
        self._things: dict[int, str] = {}
        self._last_line: str = ""
        #: storage -> the name of all of it, and its value; the names of its parts
        self._borrowed: dict[int, tuple[str, Value | None]] = {}
        self._parts: dict[int, list[str]] = {}
        #: The table of pointers of the C code, and the storages that it touches.
        self.pointers: dict[int | None, int] | None = None
        self.in_c: set[int] = set()
        #: Storages whose arrays are others in each run.
        self.elsewhere: set[int] = program.borrowed | program.loose
        self._fresh_from: int | None = None
        if program.fresh:
            last = program.last_look
            look = None if last < 0 else program.calls[last]
            self._fresh_from = 1 + next((i for i, unit in enumerate(program.units) if look in unit.calls), -1)

    # -------------------------------------------------------------------------------------------------------- names

    def value(self, value: Value) -> str:
        key = value.key if value.array is None or value.array.size else id(value.array)
        name = self._values.get(key)
        if name is None and value.storage.number in self.program.loose:
            self.make_room(value.storage)
        if name is None and value.storage.number in self._borrowed:
            return self._part(value)
        if name is None:
            storage = value.storage
            letter = {"argument": "x", "outside": "s"}.get(storage.kind, "v")
            if storage.number in self.program.constants:
                letter = "c"
            name = self._values[key] = f"{letter}{len(self._values)}"
            self.names[name] = self.memory.view(value)
        return name

    def _part(self, value: Value) -> str:
        """A view of what a kernel has made, taken where it is first needed."""
        whole, first = self._borrowed[value.storage.number]
        name = self._values[value.key] = f"v{len(self._values)}"
        self._parts.setdefault(value.storage.number, []).append(name)
        if first is None or first.dtype != value.dtype or not first.is_contiguous:
            how = f"part({whole}, {self.thing(value.dtype)}, {value.offset}, {value.shape}, {value.strides})"
        elif value.offset == 0 and value.is_contiguous and value.size == first.size:
            how = f"{whole}.reshape({value.shape})"
        else:
            how = f"part({whole}, {self.thing(value.dtype)}, {value.offset}, {value.shape}, {value.strides})"
        self.lines.append(f"{name} = {how}")
        return name

    def borrow(self, value: Value, text: str, call: Call) -> None:
        """A large result stays where it is."""
        name = self._values[value.key] = f"v{len(self._values)}"
        number = value.storage.number
        self._borrowed[number] = name, value
        self._parts[number] = [name]
        self.add(f"{name} = laid_out({text}, {value.shape}, {value.strides})", call, value)
        self._tell_c(number, name)

    def _tell_c(self, number: int, name: str) -> None:
        if self.pointers is not None and number in self.in_c:
            place = self.pointers.setdefault(number, len(self.pointers))
            self.lines.append(f"_table[{place}] = address({name})")

    def make_room(self, storage: Storage) -> None:
        """Get memory for a large array, unless it is there already."""
        if storage.number in self.program.loose and storage.number not in self._borrowed:
            name = f"m{storage.number}"
            self._borrowed[storage.number] = name, None
            self._parts[storage.number] = [name]
            self.lines.append(f"{name} = room({storage.size})")
            if storage.number in self.program.fresh:
                self.lines.append(f"own[{storage.number}] = {name}")
            self._tell_c(storage.number, name)

    def let_go(self, unit: int) -> None:
        """Forget large results that nobody reads after this unit."""
        names = [name for number in self.program.last_uses.get(unit, ()) for name in self._parts.get(number, ())]
        if names:
            self.lines.append(f"del {', '.join(names)}")

    def release(self, position: int) -> None:
        """Before the unit from which on no value is refused: let go of the gradients of the last run."""
        if self._fresh_from == position:
            self.lines.append("release()")

    def function(self, call: Call) -> str:
        return self.thing(call.function, call.name.replace("np.", "").replace(".", "_"))

    def thing(self, thing: Any, hint: str = "k") -> str:
        name = self._things.get(id(thing))
        if name is None:
            name = hint if hint not in self.names and hint.isidentifier() else f"{hint}_{len(self._things)}"
            self._things[id(thing)] = name
            self.names[name] = thing
        return name

    def tree(self, tree: Any) -> str:
        if tree.__class__ is Value:
            return self.value(tree)
        if tree is None or tree is True or tree is False or tree is Ellipsis or tree.__class__ in (int, str):
            return repr(tree)
        if tree.__class__ is float and tree == tree and abs(tree) != float("inf"):
            return repr(tree)
        if tree.__class__ is tuple:
            return "(" + "".join([self.tree(one) + ", " for one in tree]) + ")"
        if tree.__class__ is list:
            return "[" + ", ".join([self.tree(one) for one in tree]) + "]"
        if tree.__class__ is dict and all(isinstance(key, str) for key in tree):
            return "{" + ", ".join([f"{key!r}: {self.tree(one)}" for key, one in tree.items()]) + "}"
        return self.thing(tree)

    # -------------------------------------------------------------------------------------------------------- lines

    def add(self, text: str, call: Call, result: Value | None) -> None:
        self.lines.append(text.ljust(56) + self.remark(call, result) if self.remarks else text)

    def remark(self, call: Call, result: Value | None) -> str:
        line = line_of(call)
        shown = line if line != self._last_line else '"'
        self._last_line = line
        if result is None:
            return f"  # {shown}"
        storage = result.storage
        if storage.kind == "outside":
            place = "state"
        elif storage.kind == "argument":
            place = "argument"
        elif storage.number in self.program.plan.offsets:
            place = f"@{self.program.plan.offsets[storage.number] + result.offset}"
        elif storage.number in self.program.borrowed:
            place = "as it comes"
        elif storage.number in self.program.loose and storage.number not in self.program.fresh:
            place = "while needed"
        elif storage.number in self.program.plan.registers:
            place = "register"
        else:
            place = "kept"
        shape = ",".join(map(str, result.shape))
        return f"  # {result.dtype}[{shape}] {place}  {shown}"

    def steps(self, call: Call) -> list[tuple[Any, tuple[Any, ...]]]:
        """A call as functions with their arguments, if those are the same arrays each time; nothing if they are not."""
        elsewhere = self.elsewhere
        if elsewhere or None in call.results:
            for value in (*call.reads, *call.results, *call.writes):
                if value is None or value.storage.number in elsewhere:
                    return []
        kind = call.kind
        view: Callable[[Any], Any] = self.memory.view
        if kind == "ufunc" and not call.kwargs:
            arrays = [view(one) if one.__class__ is Value else one for one in call.args]
            return [(_POSITIONAL.get(call.function, call.function), (*arrays, view((call.results or call.writes)[0])))]
        if kind == "copy":
            return [(np.copyto, (view(call.writes[0]), view(call.reads[0]), "unsafe"))]
        if kind == "reduce":
            axis, keepdims, out = call.kwargs["axis"], call.kwargs["keepdims"], view(call.results[0])
            return [(call.function, (view(call.reads[0]), axis, None, out, keepdims))]
        if call.name in ("np.zeros", "np.ones") and call.results and not call.reads:
            return [(view(call.results[0]).fill, (int(call.name == "np.ones"),))]
        return []

    def run_through(self, steps: list[tuple[Any, tuple[Any, ...]]], units: Sequence[Unit]) -> None:
        """Make these steps, which the units consist of: a text of many lines would take longer to compile than to run
        a hundred times, and is no faster."""
        if len(steps) > _FEW:
            self.lines.append(_THROUGH.format(self.thing(steps, "steps")))
        else:
            for unit in units:
                self.write(unit.calls[0])

    def write(self, call: Call) -> None:
        made = next((value for value in (*call.results, *call.writes) if value is not None), None)
        if call.kind in ("ufunc", "product"):
            assert made is not None
            arguments = [self.tree(one) for one in call.args]
            extra = "".join([f", {key}={self.tree(one)}" for key, one in call.kwargs.items()])
            out = self.value(made)
            positional = call.kind == "ufunc" and not extra and call.function not in (np.maximum, np.minimum)
            out = out if positional else f"out={out}"
            if call.kind == "product" and not made.is_contiguous:
                text = f"copyto({self.value(made)}, {self.function(call)}({', '.join(arguments)}))"
            else:
                text = f"{self.function(call)}({', '.join(arguments)}, {out}{extra})"
            self.add(text, call, made)
        elif call.kind == "reduce":
            assert made is not None
            text = f"{self.function(call)}({self.tree(call.args[0])}, {call.kwargs['axis']}, None, {self.value(made)}"
            self.add(text + f", {call.kwargs['keepdims']})", call, made)
        elif call.kind == "copy":
            assert made is not None
            self.add(f"copyto({self.value(made)}, {self.tree(call.args[0])}, 'unsafe')", call, made)
        elif call.kind == "middle":
            self.lines.append("yield  # the forward pass is done; the gradients of its results come in")
        elif call.kind == "check":
            self.add(f"check({self.value(call.args[0])}, {self.tree(call.args[1])})", call, None)
        elif call.kind == "python":
            hint = call.name.replace(".", "_").lower()
            for param, value in call.kwargs.get("grads", ()):
                self.add(f"bind({self.thing(param)}, {'None' if value is None else self.value(value)})", call, value)
            self.add(f"{self.thing(call.function, hint)}{self.tree(call.args)}", call, None)
        elif call.name in ("np.zeros", "np.ones") and made is not None and not call.reads:
            self.add(f"{self.value(made)}.fill({int(call.name == 'np.ones')})", call, made)
        elif call.name == "np.where" and len(call.args) == 3 and made is not None:
            condition, a, b = [self.tree(one) for one in call.args]
            out = self.value(made)
            self.add(f"copyto({out}, {b})", call, made)
            self.add(f"copyto({out}, {a}, where={condition})", call, made)
        else:
            arguments = [self.tree(one) for one in call.args]
            arguments += [f"{key}={self.tree(one)}" for key, one in call.kwargs.items()]
            text = f"{self.function(call)}({', '.join(arguments)})"
            if not any(call.results):
                self.add(text, call, made)
            elif len(call.results) == 1:
                self._keep(call.results[0], text, call)
            else:
                self.add(f"r = flat({text})", call, None)
                for position, value in enumerate(call.results):
                    if value is not None:
                        self._keep(value, f"r[{position}]", call)
                self.lines.append("del r")

    def _keep(self, value: Any, text: str, call: Call) -> None:
        if value.storage.number in self.program.borrowed and value.storage.number not in self._borrowed:
            self.borrow(value, text, call)
        else:
            self.add(f"store({self.value(value)}, {text})", call, value)

    def text(self) -> str:
        return "def replay():\n" + "".join([f"    {line}\n" for line in [*self.lines, "return"]])

    def finish(self, bind: Callable[..., Any], release: Callable[[], None]) -> Callable[[], None]:
        """The function."""
        if self.lines == [_THROUGH.format("steps")]:  # which needs no compiler
            return functools.partial(_run_through, self.names["steps"])
        self.names["bind"], self.names["release"] = bind, release
        names = dict(self.names)
        exec(compile(self.text(), "<captured program>", "exec"), names)
        return names["replay"]


def _maximum(a: Any, b: Any, out: np.ndarray) -> None:
    np.maximum(a, b, out=out)


def _minimum(a: Any, b: Any, out: np.ndarray) -> None:
    np.minimum(a, b, out=out)


#: For ufuncs that want no array to write to as their third argument.
_POSITIONAL: dict[Any, Any] = {np.maximum: _maximum, np.minimum: _minimum}


def _store(place: np.ndarray, result: Any) -> None:
    if result.shape != place.shape:
        raise CaptureError(
            f"a call of a captured program gave an array of shape {list(result.shape)} and not of {list(place.shape)} "
            "when it was recorded: its size hangs on values"
        )
    np.copyto(place, result, casting="unsafe")


def _laid_out(result: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """What a kernel has made, laid out in memory as when it was recorded."""
    if result.strides == strides and result.shape == shape:
        return result
    place = np.ndarray(shape, result.dtype, np.empty(result.nbytes, np.uint8), 0, strides)
    _store(place, result)
    return place


def _part(
    whole: np.ndarray, dtype: np.dtype, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> np.ndarray:
    """A view of memory that lies without gaps, whatever the order of its dimensions."""
    if not whole.flags.c_contiguous:
        whole = whole.transpose(sorted(range(whole.ndim), key=lambda d: -whole.strides[d]))
    return np.ndarray(shape, dtype, whole, offset, strides)


def _room(size: int) -> np.ndarray:
    return np.empty(size, np.uint8)


def check(array: np.ndarray, expected: Any) -> None:
    """Is a value that the program was recorded for the same as then?"""
    now = array.tolist()
    if repr(expected.__class__(now) if not isinstance(expected, list) else now) != repr(expected):
        raise OtherPath


def _flat(tree: Any) -> list[Any]:
    found: list[Any] = []
    for one in tree:
        if isinstance(one, (tuple, list)):
            found += _flat(one)
        else:
            found.append(one)
    return found


def write_plain(program: Program, memory: Memory, remarks: bool = False) -> Writer:
    """The program as lines of Python."""
    writer = Writer(program, memory, remarks)
    steps: list[tuple[Any, tuple[Any, ...]]] = []
    if compiled.library is not None and not remarks and not writer.elsewhere and len(program.calls) > _FEW:
        steps = compiled.library.steps(
            program.calls, program.plan.offsets, memory.arena, memory.by_value, memory.view, _POSITIONAL, writer.steps
        )
        if steps is not None:
            writer.run_through(steps, ())
            return writer
        steps = []
    first = 0
    for position, unit in enumerate(program.units):
        writer.release(position)
        found = [] if remarks else writer.steps(unit.calls[0])
        if found:
            steps += found
            continue
        writer.run_through(steps, program.units[first:position])
        steps, first = [], position + 1
        writer.write(unit.calls[0])
        writer.let_go(position)
    writer.run_through(steps, program.units[first:])
    return writer
