"""A profile as a file of trace events, which Perfetto and Chrome's ``about:tracing`` draw: threads as lanes, what ran
within what, arrows from operators to the nodes of the backward pass that they made, and memory as a curve."""

from __future__ import annotations

import gzip
import json
import os
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .events import EventList, FunctionEvent


def export(events: EventList, path: Any) -> None:
    """Write `events` to a file; packed, if its name ends in .gz."""
    text = json.dumps(document(events))
    if os.fspath(path).endswith(".gz"):
        with gzip.open(path, "wt", encoding="utf-8") as packed:
            packed.write(text)
        return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def document(events: EventList) -> dict[str, Any]:
    """The whole file: the events, and remarks beside them."""
    pid = os.getpid()
    found: list[dict[str, Any]] = [
        {"name": "process_name", "ph": "M", "ts": 0, "pid": pid, "tid": 0, "args": {"name": "retrograd"}}
    ]
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for number, thread in enumerate(dict.fromkeys(event.thread for event in events)):
        found.append({"name": "thread_name", "ph": "M", "ts": 0, "pid": pid, "tid": thread,
                      "args": {"name": names.get(thread, f"thread {thread}")}})  # fmt: skip
        found.append({"name": "thread_sort_index", "ph": "M", "ts": 0, "pid": pid, "tid": thread,
                      "args": {"sort_index": number}})  # fmt: skip
    # What was given back between all events is an instant, below.
    found += [_slice(event, pid) for event in events if event.name != "[memory]"]
    found += _flows(events, pid)
    for record in events.memory_records:
        found.append({"name": "[memory]", "ph": "i", "cat": "cpu_instant_event", "s": "t", "ts": record.time,
                      "pid": pid, "tid": record.thread,
                      "args": {"Bytes": record.nbytes, "Total Allocated": record.total, "Addr": record.address,
                               "Device Type": 0, "Device Id": -1}})  # fmt: skip
        found.append({"name": "memory", "ph": "C", "ts": record.time, "pid": pid, "tid": record.thread,
                      "args": {"bytes": record.total}})  # fmt: skip
    return {**events.metadata, "schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": found}


def _slice(event: FunctionEvent, pid: int) -> dict[str, Any]:
    args: dict[str, Any] = {"External id": event.id}
    if event.sequence_nr >= 0:
        args |= {"Sequence number": event.sequence_nr, "Fwd thread id": event.fwd_thread or 0}
    if event.input_shapes:
        args |= {
            "Input Dims": event.input_shapes,
            "Input type": event.input_dtypes,
            "Input Strides": event.input_strides,
            "Concrete Inputs": [str(one) for one in event.concrete_inputs],
        }
    for name, value in event.kwinputs.items():
        if isinstance(value, (bool, int, float, str)):
            args[name] = value
    if event.stack:
        args["Call stack"] = ";".join(event.stack)
    if event.cpu_memory_usage:
        args["Bytes"] = event.cpu_memory_usage
    kind = "python_function" if event.is_python_function else "cpu_op"
    if event.is_user_annotation:
        kind = "user_annotation"
    return {"name": event.name, "ph": "X", "cat": kind, "ts": event.time_range.start,
            "dur": event.time_range.elapsed_us(), "pid": pid, "tid": event.thread, "args": args}  # fmt: skip


def _flows(events: EventList, pid: int) -> list[dict[str, Any]]:
    """An arrow from each operator to the node that it made, where that has run."""
    forward = {(e.sequence_nr, e.thread): e for e in events if e.sequence_nr >= 0 and e.fwd_thread == 0}
    found: list[dict[str, Any]] = []
    for event in events:
        if not event.fwd_thread or event.sequence_nr < 0:
            continue
        if event.cpu_parent is not None and event.cpu_parent.sequence_nr == event.sequence_nr:
            continue  # the node itself, inside the engine's event for it
        start = forward.get((event.sequence_nr, event.fwd_thread))
        if start is None:
            continue
        flow = {"id": len(found) // 2 + 1, "cat": "fwdbwd", "name": "fwdbwd", "pid": pid}
        found.append({**flow, "ph": "s", "ts": start.time_range.start, "tid": start.thread})
        found.append({**flow, "ph": "f", "bp": "e", "ts": event.time_range.start, "tid": event.thread})
    return found
