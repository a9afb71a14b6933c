"""``torch.profiler.ExecutionTraceObserver``: which operators a program runs, on which tensors, as a graph in a file."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Sequence
from typing import Any

from ..tensor import Tensor
from .events import FunctionEvent
from .recording import Recorder, recording

_SCHEMA = "1.1.1-retrograd"


class _Arguments(Recorder):
    """A recorder that keeps what arguments are, in the terms of an execution trace."""

    def __init__(self) -> None:
        super().__init__(record_shapes=True)
        self.values: dict[int, list[Any]] = {}
        self.numbers: dict[int, int] = {}
        self.kept: list[Any] = []  # so that ids are not given twice

    def describe(self, event: FunctionEvent, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        super().describe(event, args, kwargs)
        self.values[event.id] = [self.value(one) for one in args]

    def value(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            memory = value._memory_
            base = getattr(memory, "base", None)
            return [self.number(value), self.number(memory if base is None else base), value.storage_offset(),
                    value.numel(), value.element_size(), str(value.device)]  # fmt: skip
        if isinstance(value, (tuple, list)):
            return [self.value(one) for one in value]
        return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)

    def number(self, thing: Any) -> int:
        if id(thing) not in self.numbers:
            self.numbers[id(thing)] = len(self.numbers) + 1
            self.kept.append(thing)
        return self.numbers[id(thing)]


class ExecutionTraceObserver:
    """Writes what this thread runs between `start` and `stop` to a file, as a graph of operators and their arguments.

    >>> import json, os, tempfile, retrograd as torch
    >>> path = os.path.join(tempfile.mkdtemp(), "trace.json")
    >>> observer = torch.profiler.ExecutionTraceObserver().register_callback(path)
    >>> with observer:
    ...     y = torch.ones(2) * 3
    >>> [node["name"] for node in json.load(open(path))["nodes"]][2:]
    ['aten::ones', 'aten::empty', 'aten::mul']
    """

    def __init__(self) -> None:
        self._path: str | None = None
        self._recorder: _Arguments | None = None
        self._recording: recording | None = None

    def register_callback(self, output_file_path: str) -> ExecutionTraceObserver:
        """Say where the trace is to be written to; a name that ends in .gz is packed."""
        if self._path is None:
            self._path, self._recorder = os.fspath(output_file_path), _Arguments()
            self._write()
        return self

    def unregister_callback(self) -> None:
        """Forget it: what was written stays."""
        self.stop()
        self._path = self._recorder = None

    cleanup = unregister_callback

    def build_execution_trace_obs_from_env(self) -> ExecutionTraceObserver | None:
        """An observer, if ``ENABLE_PYTORCH_EXECUTION_TRACE`` is 1."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") != "1":
            return None
        handle, path = tempfile.mkstemp(suffix=".et.json")
        os.close(handle)
        return self.register_callback(path)

    @property
    def is_registered(self) -> bool:
        """Does it have a file to write to?"""
        return self._path is not None

    @property
    def _execution_trace_running(self) -> bool:
        return self.is_running()

    def is_running(self) -> bool:
        """Is it writing just now?"""
        return self._recording is not None

    def get_output_file_path(self) -> str | None:
        """Where the trace is written to."""
        return self._path

    def start(self) -> None:
        """Begin, or go on."""
        if self._recorder is not None and self._recording is None:
            self._recording = recording(self._recorder)
            self._recording.__enter__()

    def stop(self) -> None:
        """End, and write the file."""
        if self._recording is not None:
            self._recording.__exit__(None, None, None)
            self._recording = None
            self._write()

    def __enter__(self) -> ExecutionTraceObserver:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def _write(self) -> None:
        assert self._path is not None and self._recorder is not None
        text = json.dumps({"schema": _SCHEMA, "pid": os.getpid(), "nodes": self._nodes(self._recorder)}, indent=1)
        packed = self._path.endswith(".gz")
        with gzip.open(self._path, "wt", encoding="utf-8") if packed else open(self._path, "w") as file:
            file.write(text)

    @staticmethod
    def _nodes(recorder: _Arguments) -> list[dict[str, Any]]:
        def attributes(event: FunctionEvent | None, number: int) -> list[dict[str, Any]]:
            given = {"rf_id": number, "fw_parent": 0, "seq_id": -1, "scope": 0, "tid": 0, "fw_tid": 0, "op_schema": ""}
            if event is not None:
                given |= {"seq_id": event.sequence_nr, "tid": event.thread, "fw_tid": event.fwd_thread or 0,
                          "scope": 7 if event.is_user_annotation else 0}  # fmt: skip
            return [{"name": name, "type": "string" if name == "op_schema" else "uint64", "value": value}
                    for name, value in given.items()]  # fmt: skip

        none: dict[str, list[Any]] = {"values": [], "shapes": [], "types": []}
        nodes: list[dict[str, Any]] = [
            {"id": 1, "name": "[pytorch|profiler|execution_trace|process]", "ctrl_deps": 1, "inputs": none,
             "outputs": none, "attrs": attributes(None, 0)},
            {"id": 2, "name": "[pytorch|profiler|execution_trace|thread]", "ctrl_deps": 1, "inputs": none,
             "outputs": none, "attrs": attributes(None, 0)},
        ]  # fmt: skip
        for event in recorder.events:
            inputs = {"values": recorder.values.get(event.id, []), "shapes": event.input_shapes,
                      "types": event.input_dtypes, "strides": event.input_strides}  # fmt: skip
            nodes.append({
                "id": event.id + 3, "name": event.name,
                "ctrl_deps": 2 if event.cpu_parent is None else event.cpu_parent.id + 3,
                "inputs": inputs, "outputs": none, "attrs": attributes(event, event.id + 1),
            })  # fmt: skip
        return nodes
