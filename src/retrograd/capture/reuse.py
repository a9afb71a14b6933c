"""Memory that is used on: a copy is the original that nobody reads any more, a result lies where its operand lay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import kernels
from ..kernels import blocks, compiled
from .planning import touched
from .values import Call, Value


def _compiled_gelu_backward(out: np.ndarray, grad: np.ndarray, a: np.ndarray, approximate: str = "none") -> Any:
    name = "gelu_backward" if approximate == "none" else "gelu_tanh_backward"
    return compiled.pointwise(name, grad, a, out=out)


def _compiled_threshold_backward(out: np.ndarray, grad: np.ndarray, a: np.ndarray, threshold: Any) -> Any:
    return compiled.pointwise("threshold_backward", grad, a, number=threshold, out=out)


#: Kernels of single elements, which give the same bits for parts of their arrays, and what they are with
#: `retrograd[fast]`.
_OF_ELEMENTS: dict[Any, Callable[..., Any]] = {
    kernels.gelu_backward: _compiled_gelu_backward,
    kernels.threshold_backward: _compiled_threshold_backward,
}

#: Kernels whose results are new memory that they do not keep.
_OF_NEW_MEMORY = {kernels.mm, kernels.addmm, kernels.bmm}


def forwarded(calls: list[Call], left: list[Value]) -> list[Call]:
    """Without copies of what nobody else reads any more: the copy is then the original."""
    if not any([_is_whole(call.reads[0], call.writes[0]) for call in calls if call.kind == "copy"]):
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


def in_place(calls: list[Call], left: list[Value], size: int) -> None:
    """Have results of ufuncs of so many bytes lie where an operand lies that nobody reads any more."""
    large = [
        position for position, call in enumerate(calls)
        if call.results and call.results[0] is not None and call.results[0].nbytes >= size
        and ((call.kind == "ufunc" and not call.kwargs) or _is_of_elements(call))
    ]  # fmt: skip
    if not large:
        return
    everyone: dict[int, list[Value]] = {}
    last: dict[int, int] = {}
    ours: set[int] = set()  # what NumPy and some kernels have made: others may keep what they return
    for position, call in enumerate(calls):
        for value in (*touched(call), *_in_tree(call.args), *_in_tree(call.kwargs)):
            everyone.setdefault(value.storage.number, []).append(value)
            last[value.storage.number] = position
        if call.kind != "opaque" or call.name.startswith("np.") or call.function in _OF_NEW_MEMORY:
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
                if call.kind == "opaque":
                    call.function, call.args = by_blocks(call.function), (result, *call.args)
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


def _is_of_elements(call: Call) -> bool:
    if call.function not in _OF_ELEMENTS or len(call.results) != 1:
        return False
    of = call.results[0]
    if of is None or of.size < _BLOCK:
        return False
    return all([v.shape == of.shape and v.dtype == of.dtype and v.is_contiguous for v in call.reads])


def by_blocks(kernel: Callable[..., np.ndarray]) -> Callable[..., None]:
    """``kernel(*args)`` of arrays of one shape written to `place`, which may be one of them, a part after the other."""

    fast = _OF_ELEMENTS[kernel]

    def write(place: np.ndarray, *args: Any, **kwargs: Any) -> None:
        if place.size > compiled.LARGE and fast(place, *args, **kwargs) is not None:
            return
        flat = [one.reshape(-1) if one.__class__ is np.ndarray else one for one in args]
        target = place.reshape(-1)
        many = max(target.size // _BLOCK, 1)
        for number in range(many):
            # The last one has the rest too: kernels may take another way for a few elements.
            part = slice(number * _BLOCK, (number + 1) * _BLOCK if number + 1 < many else None)
            target[part] = kernel(*[one[part] if one.__class__ is np.ndarray else one for one in flat], **kwargs)

    return write


#: As many elements as the kernels' own blocks have.
_BLOCK = 2 * blocks.BLOCK


def _in_tree(tree: Any) -> list[Value]:
    """The values in arguments."""
    if tree.__class__ is Value:
        return [tree]
    if tree.__class__ in (tuple, list):
        return [value for one in tree for value in _in_tree(one)]
    return [value for one in tree.values() for value in _in_tree(one)] if tree.__class__ is dict else []
