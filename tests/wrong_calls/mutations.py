"""Wrong calls: a right one with one thing wrong."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import retrograd
from retrograd.ops.registry import BEHIND
from samples.spec import Sample, T, index, lookup, real


class Stranger:
    """Something that no function takes."""

    def __repr__(self) -> str:
        return "object()"


#: What stands for an argument: label, value.
STRANGERS: list[tuple[str, Any]] = [
    ("'a'", "a"), ("None", None), ("{}", {}), ("[]", []), ("()", ()), ("object()", Stranger()), ("2.5", 2.5),
    ("1j", 1j), ("10**30", 10**30), ("-7", -7), ("True", True), ("3", 3), ("['a']", ["a"]), ("(1.5,)", (1.5,)),
    ("tensor", real(2, requires_grad=False)), ("0-d integer tensor", index(1)),
]  # fmt: skip
#: What stands for an option that the right call does not give.
FOR_OPTIONS = [s for s in STRANGERS if s[0] in ("'a'", "object()", "2.5", "-7", "tensor")]
#: What stands for one element of a list.
FOR_ELEMENTS = [s for s in STRANGERS if s[0] in ("'a'", "None", "2.5", "10**30", "tensor")]
DTYPES = ("bool", "int64", "float32", "complex128")
#: More elements than there is memory for, and the functions in which torch would count up to it.
TOO_LARGE = ("10**15", 10**15)
COUNTING = ("max_pool1d", "nn.functional.max_pool1d", "special.laguerre_polynomial_l", "special.legendre_polynomial_p")


@dataclass(frozen=True)
class Call:
    """A wrong call of the function `name`; `what` says what is wrong with it."""

    name: str
    what: str
    sample: Sample

    def __str__(self) -> str:
        return f"{self.name}: {self.what} [{self.sample.name}]"


def wrong_calls(name: str, samples: list[Sample]) -> Iterator[Call]:
    """The wrong calls that are made of a function's right ones."""
    seen: set[tuple[Any, str]] = set()
    method = name.startswith("Tensor.")
    special = name.startswith("Tensor.__")  # Python calls them, with the right number of arguments
    for number, sample in enumerate(samples):
        for key, value in [*enumerate(sample.args), *sample.kwargs.items()]:
            kind = (key, type(value).__name__)
            if kind in seen:
                continue
            seen.add(kind)
            label = f"argument {key + 1}" if isinstance(key, int) else key
            if not (method and key == 0):
                for what, other in _others(value):
                    if what == TOO_LARGE[0] and name in COUNTING:
                        continue
                    yield Call(name, f"{label} is {what}", _replaced(sample, key, other))
                if not special:
                    yield Call(name, f"without {label}", _without(sample, key))
            if isinstance(value, T):
                for dtype in DTYPES:
                    if dtype != value.dtype:
                        other = T(value.shape, dtype, low=0, high=2, requires_grad=False)
                        yield Call(name, f"{label} is {dtype}", _replaced(sample, key, other))
        if number == 0 and not special:
            yield from _other_shapes(name, sample)


def _others(value: Any) -> Iterator[tuple[str, Any]]:
    for what, other in STRANGERS:
        if not (type(other) is type(value) and other == value):
            yield what, other
    if isinstance(value, int) and not isinstance(value, bool):
        yield TOO_LARGE
    if isinstance(value, (list, tuple)) and value:
        for what, other in FOR_ELEMENTS:
            yield f"{type(value).__name__} with {what}", type(value)([*value[:-1], other])
        yield "its first element", value[0]
        yield "too short", value[:-1]
        if isinstance(value[-1], int):
            yield f"{type(value).__name__} with {TOO_LARGE[0]}", type(value)([*value[:-1], TOO_LARGE[1]])


def _replaced(sample: Sample, key: Any, value: Any) -> Sample:
    if isinstance(key, int):
        return replace(sample, args=(*sample.args[:key], value, *sample.args[key + 1 :]))
    return replace(sample, kwargs={**sample.kwargs, key: value})


def _without(sample: Sample, key: Any) -> Sample:
    if isinstance(key, int):
        return replace(sample, args=(*sample.args[:key], *sample.args[key + 1 :]))
    return replace(sample, kwargs={k: v for k, v in sample.kwargs.items() if k != key})


def _other_shapes(name: str, sample: Sample) -> Iterator[Call]:
    """Too many arguments, unknown ones, one twice, and options of the wrong type."""
    for what, extra in (("3", 3), ("'a'", "a"), ("tensor", real(2, requires_grad=False))):
        yield Call(name, f"one more argument, {what}", replace(sample, args=(*sample.args, extra)))
    yield Call(name, "seven more arguments", replace(sample, args=(*sample.args, *[None] * 7)))
    yield Call(name, "an unknown keyword", replace(sample, kwargs={**sample.kwargs, "unknown": 1}))
    function = lookup(retrograd, name)
    if name.startswith("Tensor."):
        function = BEHIND.get(name.removeprefix("Tensor."), function)  # not the compiled core's form of it
    parameters = list(inspect.signature(function).parameters.values())
    given = set(sample.kwargs)
    for position, p in enumerate(parameters):
        if p.kind is p.POSITIONAL_OR_KEYWORD and position < len(sample.args):
            given.add(p.name)
            if 0 < position < 3:
                twice = replace(sample, kwargs={**sample.kwargs, p.name: sample.args[position]})
                yield Call(name, f"{p.name} twice", twice)
    for p in parameters:
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in given:
            for what, other in FOR_OPTIONS:
                if p.name == "out" and isinstance(other, T):
                    continue  # may be right
                yield Call(name, f"{p.name}={what}", replace(sample, kwargs={**sample.kwargs, p.name: other}))


#: Methods that work on tensors that require grad.
WITH_GRAD = (
    "Tensor.backward", "Tensor.register_hook", "Tensor.register_post_accumulate_grad_hook", "Tensor.retain_grad",
)  # fmt: skip


def run(torch: Any, call: Call) -> tuple[Any, list[Any]]:
    """A function of no arguments that makes the call, and the tensors that it gets."""
    built = call.sample.build(torch, requires_grad=call.name in WITH_GRAD)
    space, _, name = call.name.rpartition(".")
    if space == "Tensor":
        return lambda: getattr(built.args[0], name)(*built.args[1:], **built.kwargs), built.tensors
    return lambda: lookup(torch, call.name)(*built.args, **built.kwargs), built.tensors
