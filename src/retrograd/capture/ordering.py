"""The order of a program's calls: what lets go of much memory comes before what takes more.

A backward pass computes the gradient of a product's input first, and then that of its weight, the last reader of the
activation. The other way round, the activation's memory is there for the gradient. A call may take along what it needs:
the gradient times the learning rate, and the parameter less that, come before the next large gradient is made.
"""

from __future__ import annotations

from .planning import touched
from .values import Call

_BARRIERS = ("python", "check", "middle")
#: So many calls move up as one at the most.
_MOST_TOGETHER = 4


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

    def earlier(result: list[Call], call: Call) -> tuple[int, list[Call]]:
        """Where in `result` a call belongs, and the calls there that it needs and takes along, itself the last."""
        place, moved = len(result), [call]
        group, left, takes = [call], freed[call], taken[call]
        used, changed = uses[call], changes[call]
        level = 0  # how much is in use before a call, beside what is before this one
        highest = 0  # the most of it during those that were passed
        best = 0, 0
        for position in range(len(result) - 1, -1, -1):
            before = result[position]
            if _stays(before):
                break
            freeing = sum([sizes[n] for n in freed[before]])
            if changes[before] & used or changed & uses[before]:
                if len(group) == _MOST_TOGETHER:
                    break
                group, left, takes = [before, *group], left | freed[before], takes + taken[before]
                used, changed = used | uses[before], changed | changes[before]
                level += freeing - taken[before]
                continue
            left = left - uses[before]
            if sum([sizes[n] for n in left]) <= takes:
                break
            highest = max(highest, level + freeing)
            level += freeing - taken[before]
            if (highest, -level) > best and level + takes <= max(highest, takes):
                best, place, moved = (highest, -level), position, group
        return place, moved

    result: list[Call] = []
    for call in calls:
        place, moved = len(result), [call]
        if freed[call] and not _stays(call):
            place, moved = earlier(result, call)
        for one in moved[:-1]:
            result.remove(one)  # (it comes after `place`)
        result[place:place] = moved
    return result


def _stays(call: Call) -> bool:
    return call.impure or call.looks or call.kind in _BARRIERS
