"""Collective operations on Python objects, which are pickled: use them among processes that trust each other."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from ..tensor import Tensor
from ..tensor.tensor import wrap
from .collectives import all_gather as _all_gather
from .collectives import broadcast, gather, recv, scatter, send
from .process_group import resolve

__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list",
    "send_object_list",
]  # fmt: skip


def _there(array: np.ndarray, group: Any) -> Any:
    """A tensor where the group takes them from."""
    found, made = resolve(group), wrap(array)
    return made if found is None else made.to(found.device)  # type: ignore[attr-defined]


def _pickled(thing: Any, group: Any) -> Any:
    return _there(np.frombuffer(bytearray(pickle.dumps(thing)), np.uint8), group)


def _restored(data: Tensor) -> Any:
    return pickle.loads(data._numbers_.tobytes())


def _empty(count: int, group: Any) -> Any:
    return _there(np.empty(count, np.uint8), group)


def _number(group: Any, value: int = 0) -> Any:
    return _there(np.array([value], np.int64), group)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """`object_list` becomes everybody's `obj`, in the order of ranks, everywhere."""
    found = resolve(group)
    if found is None:
        return
    data = _pickled(obj, group)
    counts = [_number(group) for _ in range(found.size())]
    _all_gather(counts, _number(group, data.numel()), group)
    parts = [_empty(int(count), group) for count in counts]
    _all_gather(parts, data, group)
    object_list[: found.size()] = [_restored(part) for part in parts]


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """`object_gather_list` of process `dst` becomes everybody's `obj`."""
    found = resolve(group)
    if found is None:
        return
    if dst is None and group_dst is None:
        dst = 0
    mine = found.rank() == group_dst if group_dst is not None else found.ranks[found.rank()] == dst
    if mine == (object_gather_list is None):
        say = "must be specified on destination rank" if mine else "must NOT be specified on non-destination ranks"
        raise ValueError(f"Argument ``object_gather_list`` {say}.")
    data = _pickled(obj, group)
    counts = [_number(group) for _ in range(found.size())]
    _all_gather(counts, _number(group, data.numel()), group)
    parts = [_empty(int(count), group) for count in counts] if mine else None
    gather(data, parts, dst, group, group_dst=group_dst)
    if parts is not None and object_gather_list is not None:
        object_gather_list[: found.size()] = [_restored(part) for part in parts]


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """`object_list` becomes that of process `src`, everywhere."""
    _no_device(device)
    found = resolve(group)
    if found is None:
        return
    if src is None and group_src is None:
        src = 0
    mine = found.rank() == group_src if group_src is not None else found.ranks[found.rank()] == src
    data = _pickled(list(object_list), group) if mine else _empty(0, group)
    count = _number(group, data.numel())
    broadcast(count, src, group, group_src=group_src)
    if not mine:
        data = _empty(int(count), group)
    broadcast(data, src, group, group_src=group_src)
    if not mine:
        got = _restored(data)
        if len(got) != len(object_list):
            raise ValueError(f"object_list has {len(object_list)} places, the list that was sent {len(got)}")
        object_list[:] = got


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int | None = None,
    group: Any = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """``scatter_object_output_list[0]`` becomes what process `src` has for this one in its list."""
    found = resolve(group)
    if found is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    if src is None and group_src is None:
        src = 0
    mine = found.rank() == group_src if group_src is not None else found.ranks[found.rank()] == src
    data: list[Tensor] | None = None
    counts: list[Tensor] | None = None
    if mine:
        if scatter_object_input_list is None or len(scatter_object_input_list) != found.size():
            raise ValueError(f"scatter_object_input_list must have one object for each of {found.size()} processes")
        data = [_pickled(thing, group) for thing in scatter_object_input_list]
        counts = [_number(group, part.numel()) for part in data]
    count = _number(group)
    scatter(count, counts, src, group, group_src=group_src)
    part = _empty(int(count), group)
    scatter(part, data, src, group, group_src=group_src)
    scatter_object_output_list[0] = _restored(part)


def send_object_list(
    object_list: list[Any], dst: int | None = None, group: Any = None, device: Any = None, group_dst: int | None = None
) -> None:
    """Send objects to process `dst`."""
    _no_device(device)
    data = _pickled(list(object_list), group)
    send(_number(group, data.numel()), dst, group, group_dst=group_dst)
    send(data, dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> int:
    """Receive objects from process `src`, or from any; from which they came."""
    _no_device(device)
    count = _number(group)
    source = recv(count, src, group, group_src=group_src)
    data = _empty(int(count), group)
    recv(data, source, group)
    object_list[:] = _restored(data)
    return source


def _no_device(device: Any) -> None:
    if device is not None and str(device) != "cpu":
        raise ValueError(f"objects travel through the CPU's memory: leave device={device!r} out")
