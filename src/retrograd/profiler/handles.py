"""Blocks with a name for code that cannot use ``with``, and whether a profile is on: torch keeps them elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .block import is_profiling as _profiler_enabled
from .recording import record_function

__all__ = [
    "_RecordFunctionFast", "_profiler_enabled", "_record_function_enter", "_record_function_enter_new",
    "_record_function_exit", "_record_function_with_args_enter", "_record_function_with_args_exit", "kineto_available",
]  # fmt: skip


def kineto_available() -> bool:
    """Is torch's library for tracing devices here?"""
    return False


def _record_function_enter(name: str, args: str | None = None) -> record_function:
    """A block with a name begins; `_record_function_exit` of what this returns ends it."""
    return record_function(name, args).__enter__()


_record_function_enter_new = _record_function_enter


def _record_function_exit(handle: record_function) -> None:
    """The block ends."""
    handle.__exit__(None, None, None)


def _record_function_with_args_enter(name: str, *args: Any) -> record_function:
    """The same with arguments, which traces show."""
    handle = record_function(name).__enter__()
    for recorder, event in handle.open:
        if recorder.record_shapes:
            recorder.describe(event, args, {})
    return handle


_record_function_with_args_exit = _record_function_exit


class _RecordFunctionFast(record_function):
    """A block with a name and arguments, which can be entered again and again."""

    def __init__(
        self, name: str, input_values: Sequence[Any] | None = None, keyword_values: dict[str, Any] | None = None
    ) -> None:
        super().__init__(name)
        self.given, self.named = input_values, keyword_values

    def __enter__(self) -> _RecordFunctionFast:
        super().__enter__()
        for recorder, event in self.open:
            event.is_user_annotation = (self.named or {}).get("scope") == "user_scope"
            if recorder.record_shapes and (self.given or self.named):
                recorder.describe(event, self.given or (), self.named or {})
        return self
