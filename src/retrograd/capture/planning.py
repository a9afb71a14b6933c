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
    first_use: dict[int, int] = {}
    last_use: dict[int, int] = {}
    keys: dict[int, Any] = {}  # what a loop that a storage may live in alone knows it as; None if by several keys
    for position, unit in enumerate(units):
        is_loop = unit.kind == "loop"
        for call in unit.calls:
            for value in touched(call):
                storage = value.storage
                if storage.kind == "new":
                    number = storage.number
                    last_use[number] = position
                    if number not in first_use:
                        first_use[number] = position
                        keys[number] = value.key if is_loop else None
                    elif is_loop and keys[number] != value.key:
                        keys[number] = None
    for value in escaping:
        if value.storage.number in last_use:
            last_use[value.storage.number] = len(units)
    active: list[tuple[int, int, int]] = []  # (offset, end, last call), by offset
    small = _SmallOnes()
    for number, first in first_use.items():  # in the order of their first uses
        if number in constants or number in kept:
            continue
        last = last_use[number]
        size = storages[number].size
        if first == last and keys[number] is not None:
            result.registers.add(number)
            result.unplanned += size
            continue
        size = -(-size // _ALIGNED) * _ALIGNED
        result.unplanned += size
        if size <= _SMALL:
            small.add(number, first, last, size)
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


#: Storages of so many bytes take the place of one of the same size.
_SMALL = 1 << 10


class _SmallOnes:
    """Places for the many small storages, behind all others: whichever of the same size was free last is taken."""

    def __init__(self) -> None:
        self.size: int = 0
        self.places: dict[int, int] = {}
        self._free: dict[int, list[int]] = {}
        self._busy: list[tuple[int, int, int]] = []  # (last call, place, size), a heap

    def add(self, number: int, first: int, last: int, size: int) -> None:
        while self._busy and self._busy[0][0] < first:
            _, place, its = heapq.heappop(self._busy)
            self._free.setdefault(its, []).append(place)
        free = self._free.get(size)
        if free:
            place = free.pop()
        else:
            place = self.size
            self.size += size
        self.places[number] = place
        heapq.heappush(self._busy, (last, place, size))


def touched(call: Call) -> list[Value]:
    """All values of a call."""
    found: list[Any] = [*call.reads, *call.results, *call.writes]
    if call.kind == "python":
        found += [value for _, value in call.kwargs.get("grads", ())]
    return [value for value in found if value is not None] if None in found else found
