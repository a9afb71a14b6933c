"""Two recordings of calls that look alike have to be the same: what is not is a change that nobody watches."""

from __future__ import annotations

from typing import Any

import numpy as np

from .recording import Recorder
from .values import Call, Storage, Value


def difference(first: Recorder, second: Recorder) -> str | None:
    """In what two recordings differ, in words; None if they are the same."""
    for one, two in zip(first.calls, second.calls):
        if one is not two and not _is_same(one, two):
            return f"{one.name} at {one.where}: {_described(one)} and then {_described(two)}"
    if len(first.calls) != len(second.calls):
        longer = max(first.calls, second.calls, key=len)
        call = longer[min(len(first.calls), len(second.calls))]
        counts = f"one run has {len(first.calls)} calls and another {len(second.calls)}"
        return f"{counts}; the first that only one has is {call.name} at {call.where}"
    twins = second.storages
    of_the_world = [one for one in first.storages if one.kind != "new" and one.number < len(twins)]
    of_the_world += [first.storages[one.number] for one in twins[: len(first.storages)] if one.kind != "new"]
    for storage in of_the_world:
        twin = twins[storage.number]
        if not _is_same_memory(storage, twin, first):
            used = [(v, c.where) for c in first.calls for v in (*c.reads, *c.writes) if v.storage is storage]
            if used:
                value, where = used[0]
                return f"an array of shape {list(value.shape)} that is used at {where} had other values"
    return None


def other_results(first: Any, second: Any) -> str | None:
    """In what the results of two recordings of the same calls differ, or what they leave behind, in words."""
    if str(first.structure) != str(second.structure):
        return "the results were of another structure"
    for position, (one, two) in enumerate(zip(first.leaves, second.leaves)):
        if one.__class__ is not two.__class__ or not _are_same(one, two):
            return f"the result number {position} was {one!r} and then {two!r}"
    left = [
        {(id(effect.tensor), effect.argument) for effect in recording.grads if effect.value is not None}
        for recording in (first, second)
    ]
    return None if left[0] == left[1] else "a .grad was set in one of them alone"


def is_parted_by_a_value(first: Recorder, second: Recorder) -> bool:
    """Did two recordings go different ways where the package looked at a value? Then each is a program of its own."""
    for one, two in zip(first.calls, second.calls):
        if not _is_same(one, two):
            return one.kind == two.kind == "check" and _are_same(one.args[0], two.args[0])
    return False


def _is_same(one: Call, two: Call) -> bool:
    if one.name != two.name or one.kind != two.kind:
        return False
    if one.args is one.reads and two.args is two.reads:  # nothing but arrays
        mine, others = [*one.args, *one.results, *one.writes], [*two.args, *two.results, *two.writes]
        return [value.key for value in mine] == [value.key for value in others] and (
            one.kwargs is two.kwargs or _are_same(one.kwargs, two.kwargs)
        )
    return (
        _are_same(one.args, two.args)
        and (one.kwargs is two.kwargs or _are_same(one.kwargs, two.kwargs))
        and _are_same(one.results, two.results) and _are_same(one.writes, two.writes)
    )  # fmt: skip


def _are_same(one: Any, two: Any) -> bool:
    """The same values of the same memory, numbers to the last bit, and things of the same class."""
    kind = one.__class__
    if kind is not two.__class__:
        return False
    if kind is Value:
        return one.key == two.key
    if kind is tuple or kind is list:
        return len(one) == len(two) and all(map(_are_same, one, two))
    if kind is dict:
        return one.keys() == two.keys() and all(map(_are_same, one.values(), two.values()))
    if kind is float or kind is complex:
        return repr(one) == repr(two)
    return one == two if kind in (int, str, bool) else True


def _is_same_memory(one: Storage, two: Storage, recorder: Recorder) -> bool:
    """Memory from outside is the same piece, or has the same content if it is only read; so has a number's."""
    if one.kind != two.kind:
        return False
    if one.kind == "outside":
        if one.start == two.start:
            return True
        written = any([value.storage is one for call in recorder.calls for value in call.writes])
        return not written and _has_same_bytes(one.array, two.array)
    return one.kind != "number" or _has_same_bytes(one.array, two.array)


def _has_same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _described(call: Call) -> str:
    text = f"{call.name}{call.args}{call.kwargs or ''}"
    return text if len(text) < 200 else text[:200] + "…"
