"""A program: the calls of a recording that matter, in order, and where everything that they need lies.

Calls whose results nobody reads are left out; what hangs on constants alone is computed once, by the recording.  The
memory of the others is laid out by planning.py.
"""

from __future__ import annotations

import linecache
from typing import Any

from .fusion import Unit, units
from .planning import Plan, plan, touched
from .recording import Recorder
from .runtime import runtime
from .values import Call, Storage, Value

#: Calls that make memory and leave it as it is.
_UNFILLED = {
    "np.empty",
    "np.empty_like",
    "kernels.empty_with_layout_of",
    "kernels.empty_of_layout",
    "kernels.dense_like",
}


class Program:
    """What a recording came to.

    `arguments` are the values of the tensors that the function is called with, in order; `outputs` and `grads` those
    that it leaves behind.
    """

    def __init__(
        self, recorder: Recorder, arguments: list[Value], escaping: list[Value], grads: list[Value], native: bool
    ) -> None:
        self.storages: list[Storage] = recorder.storages
        self.arguments: list[Value] = arguments
        self.recorded: int = len(recorder.calls)
        live = _live(recorder.calls, {value.storage.number for value in (*escaping, *grads)})
        # What others get to see they may write to: it is no constant.
        seen = {value.storage.number for value in (*escaping, *grads)}
        seen |= {v.storage.number for c in live if c.kind == "python" for _, v in c.kwargs.get("grads", ()) if v}
        self.constants: set[int] = _constants(live, self.storages, seen)
        self.calls: list[Call] = [call for call in live if not _is_folded(call, self.constants)]
        self.dead: int = self.recorded - len(live)
        self.folded: int = len(live) - len(self.calls)
        self.escaping: list[Value] = escaping
        self.grads: list[Value] = grads
        self.native: bool = native
        #: Storages of "new" memory that outlive a replay as the memory of a gradient.
        self.kept: set[int] = set()
        self.units: list[Unit] = []
        #: Large results of kernels that are used where the kernel has put them.
        self.borrowed: set[int] = set()
        #: Large arrays that have memory while they are needed, of that which kernels have as well.
        self.loose: set[int] = set()
        self.plan: Plan = Plan()
        #: Do kernels make large arrays, if only on the way to smaller ones?
        self.makes_much: bool = any(call.kind == "opaque" and _is_large(call) for call in self.calls)
        self._let_go()

    def _let_go(self) -> None:
        """Let go of the memory of the recording: what will be planned only has to show its shape."""
        for storage in self.storages:
            if storage.kind in ("new", "argument") and storage.number not in self.constants:
                storage.held = None

    def lay_out(self) -> None:
        """Plan the memory."""
        left = [*self.escaping, *self.grads]
        self.calls = _forwarded(self.calls, left)
        _in_place(self.calls, left)
        self.kept = {value.storage.number for value in self.grads if value.storage.kind == "new"} - self.constants
        for call in self.calls:
            if call.kind == "python":
                for _, value in call.kwargs.get("grads", ()):
                    if value is not None and value.storage.kind == "new":
                        self.kept.add(value.storage.number)
        self.units = units(self.calls, self.native)
        self.borrowed = _borrowed(self.calls, self.constants | self.kept | {v.storage.number for v in self.escaping})
        elsewhere = self.kept | self.borrowed
        self.plan = plan(self.units, self.storages, self.constants, elsewhere, self.escaping)
        shared = runtime() if self.makes_much else None
        if shared is not None and shared.has_memory:
            self.loose = self.plan.larger_than(_LOOSE) - {v.storage.number for v in self.escaping}
            self.plan = plan(self.units, self.storages, self.constants, elsewhere | self.loose, self.escaping)
        self.last_uses: dict[int, list[int]] = {}
        if not self.borrowed and not self.loose:
            return
        last: dict[int, int] = {}
        for position, unit in enumerate(self.units):
            for call in unit.calls:
                for value in touched(call):
                    if value.storage.number in self.borrowed or value.storage.number in self.loose:
                        last[value.storage.number] = position
        for number, position in last.items():
            self.last_uses.setdefault(position, []).append(number)


def _live(calls: list[Call], wanted: set[int]) -> list[Call]:
    """The calls that what is wanted, or the world, hangs on."""
    wanted = set(wanted)
    kept: list[Call] = []
    for call in reversed(calls):
        if call.impure or call.looks:
            needed = True
        else:
            if call.kind == "opaque" and call.results and call.name in _UNFILLED:
                continue  # whose memory is there anyway
            needed = False
            for value in call.results or call.writes:
                if value is not None and (value.storage.number in wanted or value.storage.kind != "new"):
                    needed = True
            if call.results and call.writes and not needed:
                needed = any([v.storage.number in wanted or v.storage.kind != "new" for v in call.writes])
        if needed:
            kept.append(call)
            for value in call.reads:
                wanted.add(value.storage.number)
            for value in call.writes:
                wanted.add(value.storage.number)
            if call.kind == "python":
                wanted.update(v.storage.number for _, v in call.kwargs.get("grads", ()) if v is not None)
    return kept[::-1]


def _forwarded(calls: list[Call], left: list[Value]) -> list[Call]:
    """Without copies of what nobody else reads any more: the copy is then the original."""
    if not any(call.kind == "copy" and _is_whole(call.reads[0], call.writes[0]) for call in calls):
        return calls
    everyone: dict[int, list[Value]] = {}
    last: dict[int, int] = {}
    first_write: dict[int, int] = {}
    for position, call in enumerate(calls):
        for value in (*touched(call), *_in_tree(call.args), *_in_tree(call.kwargs)):
            everyone.setdefault(value.storage.number, []).append(value)
            last[value.storage.number] = position
        for made in (*call.results, *call.writes):
            if made is not None:
                first_write.setdefault(made.storage.number, position)
    leaving = {value.storage.number for value in left}
    for value in left:
        everyone.setdefault(value.storage.number, []).append(value)
    kept: list[Call] = []
    for position, call in enumerate(calls):
        if call.kind == "copy":
            source, target = call.reads[0], call.writes[0]
            a, b = source.storage.number, target.storage.number
            if (
                a != b and _is_whole(source, target) and last[a] == position and first_write[b] == position
                and a not in leaving and first_write.get(a, position) < position
            ):  # fmt: skip
                for value in everyone[b]:
                    value.move(source.storage)
                everyone[a] += everyone.pop(b)
                last[a] = last[b]
                if b in leaving:
                    leaving.add(a)
                continue
        kept.append(call)
    return kept


def _in_place(calls: list[Call], left: list[Value]) -> None:
    """Have large results of ufuncs lie where an operand lies that nobody reads any more."""
    large = [
        position for position, call in enumerate(calls)
        if call.kind == "ufunc" and call.results and call.results[0].storage.size >= _LARGE  # type: ignore[union-attr]
        and not call.kwargs and call.results[0].nbytes >= _LARGE  # type: ignore[union-attr]
    ]  # fmt: skip
    if not large:
        return
    everyone: dict[int, list[Value]] = {}
    last: dict[int, int] = {}
    ours: set[int] = set()  # what NumPy has made: kernels may keep what they return
    for position, call in enumerate(calls):
        for value in (*touched(call), *_in_tree(call.args), *_in_tree(call.kwargs)):
            everyone.setdefault(value.storage.number, []).append(value)
            last[value.storage.number] = position
        if call.kind != "opaque" or call.name.startswith("np."):
            ours.update([value.storage.number for value in call.results if value is not None])
    leaving = {value.storage.number for value in left}
    for call in calls:
        if call.kind == "python":
            leaving.update([value.storage.number for value in touched(call)])
    for position in large:
        call = calls[position]
        result: Any = call.results[0]
        for value in call.reads:
            a, b = value.storage.number, result.storage.number
            if (
                a != b and a in ours and a not in leaving and b not in leaving and last[a] == position
                and _is_whole(value, result) and sum([one.storage is value.storage for one in call.reads]) == 1
            ):  # fmt: skip
                for one in everyone[b]:
                    one.move(value.storage)
                everyone[a] += everyone.pop(b)
                last[a] = last[b]
                call.results, call.writes = (), (result,)
                break


def _is_whole(source: Value, target: Value) -> bool:
    """Is it new memory, all of it, that is copied to new memory as it lies?"""
    return (
        source.storage.kind == "new" == target.storage.kind
        and source.dtype == target.dtype and source.shape == target.shape and source.strides == target.strides
        and source.offset == target.offset == 0 and 0 not in source.strides
        and source.storage.size == source.nbytes
        and target.storage.size == source.nbytes
    )  # fmt: skip


#: Results of so many bytes are not copied to planned memory.
_LARGE = 1 << 15
#: Arrays of so many bytes need not lie in planned memory.
_LOOSE = 1 << 18


def _is_large(call: Call) -> bool:
    return any(value.nbytes >= _LARGE for value in touched(call))


def _borrowed(calls: list[Call], others: set[int]) -> set[int]:
    """The storages that a kernel makes as a whole and that are large."""
    found: set[int] = set()
    for call in calls:
        if call.kind == "opaque" and call.name not in ("np.where", "np.zeros", "np.ones"):
            for value in call.results:
                if value is not None and value.offset == 0 and value.nbytes >= _LARGE:
                    storage = value.storage
                    whole = storage.size == value.nbytes
                    if storage.kind == "new" and whole and storage.number not in others:
                        found.add(storage.number)
    return found


def _in_tree(tree: Any) -> list[Value]:
    """The values in arguments."""
    if tree.__class__ is Value:
        return [tree]
    if tree.__class__ in (tuple, list):
        return [value for one in tree for value in _in_tree(one)]
    return [value for one in tree.values() for value in _in_tree(one)] if tree.__class__ is dict else []


def _constants(calls: list[Call], storages: list[Storage], seen: set[int]) -> set[int]:
    """New storages whose content is the same in every run."""
    constant: set[int] = {storage.number for storage in storages if storage.kind == "number"}
    writers: dict[int, int] = {}
    for call in calls:
        for made in call.results:
            if made is not None:
                writers[made.storage.number] = writers.get(made.storage.number, 0) + 1
        for made in call.writes:
            writers[made.storage.number] = writers.get(made.storage.number, 0) + 1
    for call in calls:
        if call.impure or call.kind == "python":
            continue
        for value in call.reads:
            if value.storage.number not in constant:
                break
        else:
            numbers = [value.storage.number for value in (*call.results, *call.writes) if value is not None]
            if all([
                storages[number].kind == "new" and storages[number].is_constant and writers[number] == 1
                and number not in seen
                for number in numbers
            ]):  # fmt: skip
                constant.update(numbers)
    return constant


def _is_folded(call: Call, constants: set[int]) -> bool:
    made = False
    for value in (*call.results, *call.writes):
        if value is not None:
            if value.storage.number not in constants:
                return False
            made = True
    return made


def line_of(call: Call) -> str:
    """The user's line that a call comes from: where it is, and what it says."""
    where = call.where
    if where is None:
        return "?"
    filename, line = where.code.co_filename, where.line
    text = linecache.getline(filename, line).strip()
    return f"{filename.rpartition('/')[2]}:{line} {text}"
