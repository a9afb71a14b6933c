"""A program: the calls of a recording that matter, in order, and where everything that they need lies.

Calls whose results nobody reads are left out; what hangs on constants alone is computed once, by the recording.  The
memory of the others is laid out by planning.py.
"""

from __future__ import annotations

import functools
import linecache

from ..core import compiled
from .fusion import Unit, units
from .ordering import ordered
from .planning import Plan, plan, touched
from .recording import Recorder
from .reuse import forwarded, in_place
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
        seen = {value.storage.number for value in (*escaping, *grads)}
        live = _live(recorder.calls, seen, len(self.storages))
        # What others get to see they may write to: it is no constant.
        if recorder.steps:  # of optimizers
            seen |= {v.storage.number for c in live if c.kind == "python" for _, v in c.kwargs.get("grads", ()) if v}
        self.constants: set[int]
        self.calls: list[Call]
        self.constants, self.calls = _without_constants(live, self.storages, seen)
        self.dead: int = self.recorded - len(live)
        self.folded: int = len(live) - len(self.calls)
        self.escaping: list[Value] = escaping
        self.grads: list[Value] = grads
        self.native: bool = native
        #: Storages of "new" memory that outlive a replay as the memory of a gradient.
        self.kept: set[int] = set()
        #: The large ones of them, which are made anew by each replay.
        self.fresh: set[int] = set()
        #: Large results of kernels that are used where the kernel has put them.
        self.borrowed: set[int] = set()
        #: Large arrays that have memory while they are needed, of that which kernels have as well.
        self.loose: set[int] = set()
        self.plan: Plan = Plan()
        #: Do kernels make large arrays, if only on the way to smaller ones?
        self.makes_much: bool = any([_is_large(call) for call in self.calls if call.kind == "opaque"])
        self._let_go()

    def _let_go(self) -> None:
        """Let go of the memory of the recording: what will be planned only has to show its shape."""
        if compiled.library is not None:
            compiled.library.let_go(self.storages, self.constants)
            return
        for storage in self.storages:
            if storage.kind in ("new", "argument") and storage.number not in self.constants:
                storage.held = None

    @functools.cached_property
    def others(self) -> list[tuple[int, Call]]:
        """The calls that are more than a ufunc with a new result, and their positions."""
        if compiled.library is not None:
            return compiled.library.others(self.calls)
        return [(i, call) for i, call in enumerate(self.calls) if call.kind != "ufunc" or call.writes]

    @functools.cached_property
    def units(self) -> list[Unit]:
        """The calls that run together."""
        return units(self.calls, self.native)

    @property
    def last_look(self) -> int:
        """The position of the last call that may refuse a value, or go another way for it; -1 if there is none."""
        return max([i for i, call in self.others if call.looks or call.kind == "check"], default=-1)

    def lay_out(self) -> None:
        """Plan the memory."""
        left = [*self.escaping, *self.grads]
        leaving = {value.storage.number for value in left}
        largest = max([storage.size for storage in self.storages], default=0)
        self.calls = forwarded(self.calls, left)
        if largest >= _LARGE:
            self.calls = ordered(self.calls, _LOOSE, leaving)
            in_place(self.calls, left, _LARGE)
        self.kept = {value.storage.number for value in self.grads if value.storage.kind == "new"} - self.constants
        for _, call in self.others:
            if call.kind == "python":
                for _, value in call.kwargs.get("grads", ()):
                    if value is not None and value.storage.kind == "new":
                        self.kept.add(value.storage.number)
        if largest >= _LARGE:
            others = self.constants | self.kept | {v.storage.number for v in self.escaping}
            self.borrowed = _borrowed(self.calls, others)
        elsewhere = self.kept | self.borrowed
        self.plan = self._planned(elsewhere)
        shared = runtime() if self.makes_much else None
        if shared is not None and shared.has_memory:
            self.fresh = {number for number in self.kept if self.storages[number].size > _LOOSE}
            self.loose = self.plan.larger_than(_LOOSE) - {v.storage.number for v in self.escaping} | self.fresh
            self.plan = self._planned(elsewhere | self.loose)
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


    def _planned(self, elsewhere: set[int]) -> Plan:
        """Where storages lie that have no memory elsewhere."""
        if compiled.library is not None and not self.native:
            escaping = {value.storage.number for value in self.escaping}
            found = compiled.library.place_small(self.calls, self.storages, self.constants | elsewhere, escaping)
            if found is not None:
                result = Plan()
                result.offsets, result.arena, result.unplanned = found
                return result
        return plan(self.units, self.storages, self.constants, elsewhere, self.escaping)


def _live(calls: list[Call], wanted: set[int], storages: int) -> list[Call]:
    """The calls that what is wanted, or the world, hangs on."""
    found = None if compiled.library is None else compiled.library.live(calls, storages, wanted, _UNFILLED)
    if found is not None:
        return found
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


def _without_constants(
    calls: list[Call], storages: list[Storage], seen: set[int]
) -> tuple[set[int], list[Call]]:
    """New storages whose content is the same in every run, and the calls that make others."""
    found = None if compiled.library is None else compiled.library.without_constants(calls, storages, seen)
    if found is not None:
        return found
    constants = _constants(calls, storages, seen)
    return constants, [call for call in calls if not _is_folded(call, constants)]


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
