"""Where the arrays of a program lie: memory by lifetime, used again once nobody reads what is in it."""

from __future__ import annotations

import heapq
from typing import Any

from .fusion import Unit
from .values import Call, Storage, Value

_ALIGNED = 64


class Plan:
    """Offsets of storages in one piece of memory."""

    def __init__(self) -> None:
        #: storage -> offset in the arena
        self.offsets: dict[int, int] = {}
        self.arena: int = 0
        #: What all storages would take side by side, as in an eager run that keeps everything.
        self.unplanned: int = 0
        #: storage -> (first, last) unit that touches it
        self.lives: dict[int, tuple[int, int]] = {}
        #: Storages that exist within one loop alone, and need no memory.
        self.registers: set[int] = set()
        #: storage -> bytes
        self.sizes: dict[int, int] = {}

    def larger_than(self, size: int) -> set[int]:
        """The storages that have a place and more bytes than this."""
        return {number for number, its in self.sizes.items() if its > size}


def plan(
    units: list[Unit], storages: list[Storage], constants: set[int], kept: set[int], escaping: list[Value]
) -> Plan:
    """Lay out the new storages of a program: those that do not live at the same time may lie in the same place."""
    result = Plan()
    lives: dict[int, list[int]] = {}
    seen: dict[int, set[Any]] = {}
    for position, unit in enumerate(units):
        for value in [value for call in unit.calls for value in touched(call)]:
            number = value.storage.number
            if value.storage.kind == "new" and number not in constants and number not in kept:
                lives.setdefault(number, [position, position])[1] = position
                seen.setdefault(number, set()).add(value.key)
    for value in escaping:
        if value.storage.number in lives:
            lives[value.storage.number][1] = len(units)
    result.lives = {number: (first, last) for number, (first, last) in lives.items()}
    active: list[tuple[int, int, int]] = []  # (offset, end, last call), by offset
    small = _SmallOnes()
    for number, (first, last) in sorted(lives.items(), key=lambda item: item[1][0]):
        storage = storages[number]
        if first == last and units[first].kind == "loop" and len(seen[number]) == 1:
            result.registers.add(number)
            result.unplanned += storage.stop - storage.start
            continue
        size = -(-(storage.stop - storage.start) // _ALIGNED) * _ALIGNED
        result.unplanned += size
        if size == _ALIGNED:
            small.add(number, first, last)
            continue
        result.sizes[number] = size
        active = [one for one in active if one[2] >= first]
        best: Any = None
        place = 0
        for offset, end, _ in active:
            if offset - place >= size and (best is None or offset - place < best[1]):
                best = place, offset - place
            place = max(place, end)
        offset = place if best is None else best[0]
        result.offsets[number] = offset
        active.append((offset, offset + size, last))
        active.sort()
        result.arena = max(result.arena, offset + size)
    result.offsets.update({number: result.arena + place for number, place in small.places.items()})
    result.arena += small.size
    return result


class _SmallOnes:
    """Places for the many storages of one unit, behind all others: whichever was free last is taken."""

    def __init__(self) -> None:
        self.size: int = 0
        self.places: dict[int, int] = {}
        self._free: list[int] = []
        self._busy: list[tuple[int, int]] = []  # (last call, place), a heap

    def add(self, number: int, first: int, last: int) -> None:
        while self._busy and self._busy[0][0] < first:
            self._free.append(heapq.heappop(self._busy)[1])
        if not self._free:
            self._free.append(self.size)
            self.size += _ALIGNED
        self.places[number] = place = self._free.pop()
        heapq.heappush(self._busy, (last, place))


def touched(call: Call) -> list[Value]:
    """All values of a call."""
    found = [value for value in (*call.reads, *call.results, *call.writes) if value is not None]
    if call.kind == "python":
        found += [value for _, value in call.kwargs.get("grads", ()) if value is not None]
    return found
