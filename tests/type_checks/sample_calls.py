"""The sample database as a program for type checkers: every call of an operator, with the type that its result has.

The result is annotated with what the call gives when it is run, so that a checker that is content has said of
thousands of right calls that they are right, and of their results what they are.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import retrograd
from samples import OPS, Sample
from samples.spec import Attr, Same, T

HEADER = """import retrograd as torch
from retrograd import Tensor

t = torch.ones(1)
nan, inf = float("nan"), float("inf")
"""


class Unwritten(Exception):
    """An argument that has no text."""


def text_of(value: Any) -> str:
    """An argument as it is written."""
    match value:
        case T() | Same():
            return "t"
        case Attr(name=name):
            return f"torch.{name}"
        case tuple():
            return f"({''.join(f'{text_of(item)}, ' for item in value)})"
        case list():
            return f"[{', '.join(map(text_of, value))}]"
        case float() if not math.isfinite(value):
            return f"({value!r})"
        case bool() | int() | float() | complex() | str() | None | slice():
            return repr(value) if type(value).__module__ == "builtins" else f"{value.item()!r}"
    raise Unwritten(f"{value!r}")


def call_text(function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """A call as it is written."""
    given = [text_of(value) for value in args] + [f"{key}={text_of(value)}" for key, value in kwargs.items()]
    return f"{function}({', '.join(given)})"


def type_of(value: Any) -> str:
    """What a result is."""
    if isinstance(value, retrograd.Tensor):
        return "Tensor"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"torch.return_types.{type(value).__name__}"
    if isinstance(value, retrograd.Size):
        return "torch.Size"
    if isinstance(value, (tuple, list)):
        parts = [type_of(item) for item in value]
        word = type(value).__name__
        if len(set(parts)) <= 1:
            return f"{word}[{parts[0] if parts else 'Tensor'}{', ...' * (word == 'tuple')}]"
        return f"{word}[{', '.join(parts)}]"
    return "torch.dtype" if isinstance(value, retrograd.dtype) else type(value).__name__


def calls() -> list[tuple[str, str]]:
    """(the type of the result, the call), for each operator and sample, as function, method and in place."""
    found: dict[tuple[str, str], None] = {}
    for op in OPS:
        if not isinstance(op.fn, str) or op.missing_from(retrograd):
            continue
        for sample in op.samples:
            try:
                result = type_of(_run(op.fn, sample))
                rest, first = sample.args[1:], sample.args[:1]
                found[result, call_text(f"torch.{op.fn}", sample.args, sample.kwargs)] = None
                if op.method and sample.method and first and isinstance(first[0], T):
                    found[result, call_text(f"t.{op.method}", rest, sample.kwargs)] = None
                    if op.inplace:
                        found["Tensor", call_text(f"t.{op.inplace}", rest, sample.kwargs)] = None
            except Unwritten:
                continue
    return list(found)


def _run(function: str, sample: Sample) -> Any:
    built = sample.build(retrograd)
    target: Any = retrograd
    for part in function.split("."):
        target = getattr(target, part)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return target(*built.args, **built.kwargs)


def program() -> str:
    """The whole program."""
    return HEADER + "".join(f"r{i}: {kind} = {call}\n" for i, (kind, call) in enumerate(calls()))
