"""The order of a program's calls: what lets go of much memory comes before what takes more.

A backward pass computes the gradient of a product's input first, and then that of its weight, the last reader of the
activation. The other way round, the activation's memory is there for the gradient.
"""

from __future__ import annotations

from .planning import touched
from .values import Call

_BARRIERS = ("python", "check", "middle")


def ordered(calls: list[Call], large: int, leaving: set[int]) -> list[Call]:
    """The calls, with those that free more than they take moved up; arrays of fewer than `large` bytes do not count.

    `leaving` are the storages that outlive the program.
    """
    sizes: dict[int, int] = {}  # of what is made on the way
    for call in calls:
        for made in call.results:
            if made is not None and made.storage.kind == "new" and made.storage.size >= large:
                sizes[made.storage.number] = made.storage.size
    if not sizes:
        return calls
    first: dict[int, Call] = {}
    last: dict[int, Call] = {}
    uses: dict[Call, set[int]] = {}
    changes: dict[Call, set[int]] = {}
    for call in calls:
        uses[call] = {value.storage.number for value in touched(call)}
        changes[call] = {value.storage.number for value in (*call.results, *call.writes) if value is not None}
        for number in uses[call] & sizes.keys():
            first.setdefault(number, call)
            last[number] = call
    taken: dict[Call, int] = {}
    freed: dict[Call, set[int]] = {}
    for call in calls:
        ours = uses[call] & sizes.keys()
        taken[call] = sum([sizes[n] for n in ours if first[n] is call])
        freed[call] = {n for n in ours - leaving if last[n] is call}
    result: list[Call] = []
    for call in calls:
        place = len(result)
        left = freed[call]
        if left and not _stays(call):
            lower = best = 0  # by how much less memory is in use before the calls that were passed
            for position in range(len(result) - 1, -1, -1):
                before = result[position]
                if _stays(before) or changes[before] & uses[call] or changes[call] & uses[before]:
                    break
                left = left - uses[before]
                if sum([sizes[n] for n in left]) <= taken[call]:
                    break
                lower += taken[before] - sum([sizes[n] for n in freed[before]])
                if lower > best:
                    best, place = lower, position
        result.insert(place, call)
    return result


def _stays(call: Call) -> bool:
    return call.impure or call.looks or call.kind in _BARRIERS
