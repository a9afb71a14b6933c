"""Operators without a batching rule: one example after the other."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .._generated import functions as generated
from ..core.records import record_of
from ..core.state import local
from ..core.where import users_level
from ..tensor import Tensor
from .batched import BatchedTensor, Level, check_inplace, dynamic_shape, is_batched, wrap


class vmap_fallback:
    """What becomes of operators that have no batching rule and run once per example: "warn", "quiet" or "error".

    It acts at once, and until the block ends where it is used with ``with``.

    >>> import retrograd as torch
    >>> with torch.func.vmap_fallback("error"):
    ...     torch.vmap(torch.histc)(torch.ones(2, 3))
    Traceback (most recent call last):
    RuntimeError: You hit a vmap fallback: there is no batching rule for aten::histc, and the fallback is disabled ...
    """

    def __init__(self, mode: str) -> None:
        if mode not in ("warn", "quiet", "error"):
            raise ValueError(f"vmap_fallback: expected 'warn', 'quiet' or 'error', but got {mode!r}")
        self.mode: str = mode
        self.before: str = local.state.batch_fallback
        local.state.batch_fallback = mode

    def __enter__(self) -> vmap_fallback:
        local.state.batch_fallback = self.mode
        return self

    def __exit__(self, *exc_info: object) -> None:
        local.state.batch_fallback = self.before


def loop(level: Level, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The rule of what has none: one example after the other."""
    record = record_of(function)
    name = getattr(function, "qualname", f"aten::{function.__name__ if record is None else record.base}")
    how = local.state.batch_fallback
    if how == "error":
        raise RuntimeError(
            f"You hit a vmap fallback: there is no batching rule for {name}, and the fallback is disabled "
            "(torch.func.vmap_fallback('error'), or torch._C._functorch._set_vmap_fallback_enabled(False))"
        )
    if level.size == 0:
        raise RuntimeError(
            f"The fallback path does not support vmap over dims of size 0: {name} has no batching rule, and "
            "there is no example to see the shape of the result of"
        )
    if kwargs.get("out") is not None:
        raise RuntimeError(
            f"Batching rule not implemented for {name}.out; the fallback path doesn't work on out= or view ops. "
            "Leave out= away"
        )
    if how == "warn":
        warnings.warn(
            "There is a performance drop because we have not yet implemented the batching rule for "
            f"{name}: it runs once for each of {level.size} examples",
            UserWarning,
            stacklevel=users_level(),
        )
    writes = record.writes if record is not None else _is_inplace(function.__name__)
    if writes:
        check_inplace(level, function, args, kwargs)
    rows = []
    for index in range(level.size):
        rows.append(function(*example(args, level, index), **example(kwargs, level, index)))
    if writes:
        return args[0]
    return _stacked(rows, level, name)


def _is_inplace(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__")


def example(value: Any, level: Level, index: int) -> Any:
    """One example of what is batched among arguments."""
    if isinstance(value, BatchedTensor):
        return generated.select(value.value, value.bdim, index) if is_batched(value, level) else value
    if value.__class__ in (tuple, list):
        return value.__class__([example(one, level, index) for one in value])
    if value.__class__ is dict:
        return {key: example(one, level, index) for key, one in value.items()}
    return value


def _stacked(rows: list[Any], level: Level, name: str) -> Any:
    first = rows[0]
    if isinstance(first, Tensor):
        shapes = {row._memory_.shape for row in rows}
        if len(shapes) > 1:
            raise dynamic_shape(name, f"the results have the shapes {sorted(shapes)}")
        return wrap(generated.stack(rows), level)
    if isinstance(first, (tuple, list)):
        columns = [_stacked(list(column), level, name) for column in zip(*rows, strict=True)]
        return first._make(columns) if hasattr(first, "_make") else type(first)(columns)  # type: ignore[union-attr]
    if first is None:
        return None
    raise RuntimeError(
        f"Batching rule not implemented for {name}. We could not generate a fallback: it returns "
        f"{type(first).__name__}, not a Tensor, and may return another for each example"
    )
