"""Runs a program in two libraries, finds where their events differ, and shortens programs whose events do."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from .grammar import Generator
from .pieces import Statement, render
from .recorder import Recorder


@dataclass
class Difference:
    """The place where two runs part."""

    number: int
    statement: str
    what: str  # "v3.value", "raised", "h2.hook"
    mine: Any
    theirs: Any
    my_error: str
    their_error: str
    their_errors: list[str]  # all that torch has said up to here
    source: str
    event: tuple[int, str, Any]  # torch's
    again: Callable[[str], tuple[int, str, Any] | None]  # torch's event at that place for another source

    @property
    def kind(self) -> str:
        """The part of `what` after the name."""
        return self.what.rpartition(".")[2]

    def __str__(self) -> str:
        lines = [f"statement {self.number}: {self.statement.strip()}", f"    {self.what}: {self.mine!r}"]
        lines += [f"    torch: {self.theirs!r}"]
        lines += [f"    our error: {self.my_error}"] * bool(self.my_error)
        lines += [f"    torch's error: {self.their_error}"] * bool(self.their_error)
        return "\n".join(lines)


def run(code: CodeType, torch: Any) -> Recorder:
    """Run a program; what it wrote down."""
    recorder = Recorder(torch, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(code, recorder.names)
        finally:
            names, recorder.names = recorder.names, {}
            names.clear()  # classes and closures hold on to it
    return recorder


# ------------------------------------------------------------------------------------------------------------ values

#: How far two results of one computation may be apart, relative to the largest number in them.
TOLERANCE = {
    "float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-10, "complex64": 2e-5, "complex128": 1e-10,
}  # fmt: skip


def same(mine: Any, theirs: Any, tolerance: float = 0.0) -> bool:
    """Are two values the same: equal, NaN both, or numbers that differ by rounding?"""
    if mine is theirs or mine == theirs:
        return True
    if type(mine) is not type(theirs):
        return False
    if isinstance(mine, (list, tuple)):
        if len(mine) != len(theirs):
            return False
        if tolerance == 0.0 and len(mine) == 5 and isinstance(mine[0], str) and mine[0].startswith("torch."):
            # dtype, shape, values, ... of a tensor
            near = TOLERANCE.get(mine[0][6:], 0.0)
            return (
                mine[0] == theirs[0]
                and close(mine[2], theirs[2], near)
                and same((mine[1], *mine[3:]), (theirs[1], *theirs[3:]))
            )
        return all(same(x, y, tolerance) for x, y in zip(mine, theirs))
    if isinstance(mine, float):
        return mine != mine and theirs != theirs
    return False


def numbers(nested: Any) -> list[Any]:
    """The numbers of nested lists, complex ones as two."""
    if isinstance(nested, list):
        return [x for inner in nested for x in numbers(inner)]
    return [nested.real, nested.imag] if isinstance(nested, complex) else [nested]


def close(mine: Any, theirs: Any, tolerance: float) -> bool:
    """The same numbers up to rounding; where one is not finite, the other is the same."""
    if mine == theirs:
        return True
    ours, yours = numbers(mine), numbers(theirs)
    if len(ours) != len(yours):
        return False
    scale = max((abs(x) for x in yours if math.isfinite(x)), default=0.0)
    for x, y in zip(ours, yours):
        if x != y and not (x != x and y != y) and not abs(x - y) <= tolerance * scale:
            return False
    return True


# ------------------------------------------------------------------------------------------------------- differences


def difference(
    program: list[Statement], mine: Any, theirs: Any, explain: Callable[[Difference], str | None] = lambda d: None
) -> tuple[Difference | None, list[str]]:
    """The first difference that nothing explains, and the names of the rules that explained others.

    A rule whose name ends in ``*`` explains all that follows, too: nothing is compared after it.  If a program that
    looks now and then shows something else than it does when it looks after every statement, then what is seen first
    counts: the layout of a result, say, and not whether a later reshape is a copy."""
    found, used = _difference(program, mine, theirs, explain)
    if found is not None and found.kind != "stride":
        closer, rules = _difference(looking(program), mine, theirs, explain)
        if closer is None and rules and rules[-1].endswith("*"):
            return None, rules
    return found, used


def looking(program: list[Statement]) -> list[Statement]:
    """The program with a look after every statement."""
    closer = []
    for statement in program:
        body = None if statement.body is None else looking(statement.body)
        closer += [Statement(statement.text, body, statement.raw), Statement("look()")]
    return closer


def _difference(
    program: list[Statement], mine: Any, theirs: Any, explain: Callable[[Difference], str | None]
) -> tuple[Difference | None, list[str]]:
    source = render(program)
    code = compile(source, "<program>", "exec")
    ours, yours = run(code, mine), run(code, theirs)

    def found(position: int, number: int, what: str, my_value: Any, your_value: Any) -> Difference:
        def again(other: str) -> Any:
            events = run(compile(other, "<program>", "exec"), theirs).events
            return events[position] if position < len(events) else None

        line = next((line for line in source.split("\n") if f"with at({number})" in line), "")
        line = line.partition(f"with at({number})")[2].lstrip(":, ")
        errors = [run.messages.get(number, "") for run in (ours, yours)]
        before = [text for at, text in yours.messages.items() if at <= number]
        event = yours.events[position] if position < len(yours.events) else (0, "", None)
        return Difference(number, line, what, my_value, your_value, *errors, before, source, event, again)

    used: list[str] = []
    dtypes: dict[str, str] = {}
    for position, ((number, what, value), (_, their_what, theirs_value)) in enumerate(zip(ours.events, yours.events)):
        if what == their_what:
            if value == theirs_value:
                if what.endswith(".dtype"):
                    dtypes[what[:-6]] = value[6:]
                continue
            if what.endswith(".value"):
                if close(value, theirs_value, TOLERANCE.get(dtypes.get(what[:-6], ""), 0.0)):
                    continue
            elif same(value, theirs_value):
                continue
            difference = found(position, number, what, value, theirs_value)
        else:
            difference = found(position, number, "order", (what, value), (their_what, theirs_value))
        rule = explain(difference)
        if rule is None:
            return difference, used
        used.append(rule)
        if rule.endswith("*"):
            return None, used
    if len(ours.events) != len(yours.events):
        position = min(len(ours.events), len(yours.events))
        events = [run.events[position : position + 1] for run in (ours, yours)]
        difference = found(position, (events[0] or events[1])[0][0], "length", events[0], events[1])
        rule = explain(difference)
        return (difference, used) if rule is None else (None, [*used, rule])
    return None, used


def shortened(program: list[Statement], fails: Callable[[list[Statement]], bool]) -> list[Statement]:
    """The program without the statements that the failure does not need."""

    def without(statements: list[Statement]) -> list[list[Statement]]:
        """All programs that have one statement less, or a block opened."""
        shorter = []
        for i, statement in enumerate(statements):
            rest = statements[i + 1 :]
            shorter.append(statements[:i] + rest)
            if statement.body:
                shorter.append(statements[:i] + statement.body + rest)
                shorter += [
                    statements[:i] + [Statement(statement.text, body)] + rest for body in without(statement.body)
                ]
        return shorter

    for half in (8, 4, 2):  # the bulk first
        i = 0
        while i < len(program):
            shorter = program[:i] + program[i + half :]
            if fails(shorter):
                program = shorter
            else:
                i += half
    progress = True
    while progress:
        progress = False
        for shorter in reversed(without(program)):
            if fails(shorter):
                program, progress = shorter, True
                break
    return program


def write(seed: int) -> list[Statement]:
    """The program of a seed."""
    return Generator(seed).program()
