"""``checkpoint(…, debug=True)``: errors that list every operator of the forward pass and of the recomputation."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ...autograd.intercept import catch_up, interceptor_of
from ...core.state import local, process
from ...core.where import is_user_code
from ...ops.overload import overload_of
from ...tensor import Tensor
from .recomputation import CheckpointError


class OperatorLog:
    """A context that writes down each operator that runs, and the user's lines that led to it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.stacks: list[list[str]] = []
        self._before: Any = None

    def __enter__(self) -> OperatorLog:
        self.lines, self.stacks = [], []
        state = local.state
        observers = (*state.observers, self._write)
        interceptor = interceptor_of(observers)
        self._before = state.known_modes, state.observers, interceptor_of(state.observers), self._before
        state.observers, state.interceptor = observers, interceptor  # Note [Interrupts and modes] in core/state.py
        return self

    def __exit__(self, *exc_info: Any) -> None:
        state = local.state
        state.known_modes, state.observers, state.interceptor, self._before = self._before
        if not state.observers and state.known_modes is not process.modes:
            state.interceptor = catch_up

    def _write(self, operator: Callable, args: tuple, kwargs: dict, proceed: Callable[[], Any]) -> Any:
        given = [_describe(value) for value in args] + [f"{key}={_describe(value)}" for key, value in kwargs.items()]
        position = len(self.lines)
        self.lines.append(f"{overload_of(operator)}({', '.join(given)})")
        self.stacks.append(list(_user_stack()))
        result = proceed()
        self.lines[position] = f"{_describe(result)} = {self.lines[position]}"
        return result

    def with_stacks(self, label: str) -> str:
        total = len(self.lines)
        return "\n".join(
            f"{line}   ({i} of {total} in {label})\n" + "".join(f"    {entry}\n" for entry in stack)
            for i, (line, stack) in enumerate(zip(self.lines, self.stacks, strict=True), 1)
        )


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype.name}{list(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_describe(item) for item in value)})"
    return repr(value)


def _user_stack() -> Iterator[str]:
    """The lines outside of this package that are being run, innermost first."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if is_user_code(code):
            text = linecache.getline(code.co_filename, frame.f_lineno).strip()
            yield f"{code.co_filename}:{frame.f_lineno} in {code.co_name}{': ' if text else ''}{text}"
        frame = frame.f_back


_TEMPLATE = """\
{error}

==================================================================================================================
1. Operators of the original forward, each with the lines of your code that led to it
==================================================================================================================
{forward_stacks}
==================================================================================================================
2. Operators of the recomputation, each with the lines of your code that led to it
==================================================================================================================
{recompute_stacks}
==================================================================================================================
3. Both side by side
==================================================================================================================
Operations executed during the original forward:

{forward}

Operations executed during recomputation:

{recompute}

The recomputation stops early: that operators are missing at its end means nothing in itself.

You are seeing this error because you passed `debug=True` to checkpoint and the tensors saved during the original \
forward and during recomputation differ. Compare the operators above to find the first that differs, then look at the \
lines of your code that led to it.
"""


def debugging() -> tuple[Callable[[], tuple[Any, Any]], Callable[[CheckpointError], Exception]]:
    """The context_fn of a checkpoint that is being debugged, and what makes its errors longer."""
    forward, recompute = OperatorLog(), OperatorLog()

    def explain(error: CheckpointError) -> Exception:
        return CheckpointError(
            _TEMPLATE.format(
                error=error,
                forward_stacks=forward.with_stacks("original"),
                recompute_stacks=recompute.with_stacks("recompute"),
                forward="\n".join(forward.lines),
                recompute="\n".join(recompute.lines),
            )
        )

    return lambda: (forward, recompute), explain
