"""Operators on each element: their batching rule is the alignment of dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._generated import functions as generated
from ...core.constants import contiguous_format, preserve_format
from ...core.records import records
from ...tensor import Tensor
from ..batched import RULES, Level, front, is_batched, not_inplace, wrap
from .patterns import elementwise, padded, put, rule

#: The families of the table whose operators all are.
FAMILIES = frozenset(
    ("activation", "arithmetic", "bitwise", "comparison", "complex_parts", "number_parts", "powers", "special",
     "trigonometry")
)  # fmt: skip

#: Those of other families.
OTHERS = (
    "alias", "straight", "_to_copy", "zero", "fill_Scalar", "masked_fill_Scalar", "where_self",
    "standard_gamma_drawn", "standard_gamma_grad", "_cubic",
)  # fmt: skip


def register() -> None:
    for function, record in records().items():
        if record.family in FAMILIES:
            RULES[function] = elementwise
    put(elementwise, *OTHERS)
    put(_write, "copy", "fill_Tensor")
    put(_masked_fill, "masked_fill_Tensor")
    put(_flat_in, "flat_in")
    put(_clone, "clone")


def _write(level: Level, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``self.copy_(src)`` and ``self.fill_(value)``: the dtype is that of `self`."""
    target, source, *rest = args
    writes = function in (generated.copy_, generated.fill_Tensor_)
    if not is_batched(target, level):
        if writes:
            raise not_inplace(function.__name__, args[0])
        target = wrap(generated.expand(target, level.size, *target._memory_.shape).clone(), level)
    ndim = target._memory_.ndim
    value = front(target)
    given = padded(front(source), ndim) if is_batched(source, level) else source
    given = generated.expand(given, *value._memory_.shape)
    if writes:
        generated.copy_(value, given, *rest)
        return args[0]
    return wrap(generated.copy(value, given, *rest), level)


def _clone(level: Level, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A memory format is that of an example."""
    first = args[0]
    wanted = kwargs.get("memory_format")
    if wanted is None or wanted is preserve_format:
        return wrap(function(first.value, **kwargs), level, first.bdim)
    value = front(first)
    if wanted is not contiguous_format:
        raise RuntimeError(
            "NYI: Tensor.clone(memory_format) inside vmap is only supported with memory_format torch.preserve_format "
            f"or torch.contiguous_format (got {wanted}): convert the result outside, where the examples are a dimension"
        )
    return wrap(function(value, memory_format=contiguous_format), level)


def _flat_in(level: Level, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The first argument, which the second has no part in: they are not aligned."""
    first, second = args
    other = second.value if is_batched(second, level) else second
    if not is_batched(first, level):
        return function(first, other)
    return wrap(function(first.value, other), level, first.bdim)


def _masked_fill(level: Level, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """With a value per example: where()."""
    target, mask, value = args
    if not is_batched(value, level):
        # The value is 0-d, as the operator has it.
        return elementwise(level, _filler(function, value), (target, mask), {})
    result = generated.where_self(mask, value.to(target._memory_.dtype), target)
    if function is generated.masked_fill_Tensor_:
        target.copy_(result)
        return target
    return result


def _filler(function: Callable[..., Any], value: Tensor) -> Callable[..., Any]:
    def fill(target: Tensor, mask: Tensor) -> Tensor:
        return function(target, mask, value)

    fill.__name__, fill.__wrapped__ = function.__name__, function  # type: ignore[attr-defined]
    return fill


__all__ = ["register", "rule"]
