"""The patterns that most batching rules follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..._generated import functions as generated
from ...core.dtypes import from_numpy_dtype
from ...core.records import record_of
from ...kernels.dims import normalize_dim
from ...kernels.promotion import result_dtype
from ...tensor import Tensor
from ..batched import RULES, BatchedTensor, Level, Rule, front, is_batched, not_inplace, reshaped, spread, wrap_all


def put(rule: Rule, *names: str, inplace: bool = True) -> None:
    """Make `rule` that of the operators `names` of the table, and of their in-place forms where it knows them."""
    for name in names:
        function = getattr(generated, name)
        RULES[function] = rule
        record = record_of(function)
        if inplace and record is not None and record.inplace is not None:
            RULES[getattr(generated, record.inplace)] = rule


def rule(*names: str, inplace: bool = False) -> Callable[[Rule], Rule]:
    """`put` as a decorator."""

    def declare(function: Rule) -> Rule:
        put(function, *names, inplace=inplace)
        return function

    return declare


def writes(function: Callable[..., Any]) -> bool:
    """Is this operator of the table an in-place one?"""
    record = record_of(function)
    return record is not None and record.writes


def padded(value: Tensor, ndim: int) -> Tensor:
    """A value with the examples in front, with `ndim` dimensions behind them: those that are missing have size 1."""
    shape = value._memory_.shape
    missing = ndim - len(shape) + 1
    return reshaped(value, (shape[0], *(1,) * missing, *shape[1:])) if missing > 0 else value


# -------------------------------------------------------------------------------------------------------- element-wise


def elementwise(level: Level, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Operators that broadcast: the dimensions of the examples are aligned, and the operator does the rest."""
    first = args[0]
    if first.__class__ is BatchedTensor and first.level is level and not kwargs:
        # The commonest cases: one tensor; two that lie alike.
        if len(args) == 1:
            result = function(first.value)
            return first if result is first.value else wrap_all(result, level, first.bdim)
        if len(args) == 2:
            second = args[1]
            if not isinstance(second, Tensor):
                result = function(first.value, second)
                return first if result is first.value else wrap_all(result, level, first.bdim)
            if second.__class__ is BatchedTensor and second.level is level and first.bdim == second.bdim == 0:
                mine, theirs = first.value._memory_, second.value._memory_
                if mine.ndim == theirs.ndim and mine.dtype is theirs.dtype:
                    result = function(first.value, second.value)
                    return first if result is first.value else wrap_all(result, level)
    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
    batched: list[Any] = [tensor for tensor in tensors if is_batched(tensor, level)]
    in_place = writes(function)
    if in_place and not is_batched(first, level):
        raise not_inplace(function.__name__, args[0])
    ndim = max([tensor._memory_.ndim for tensor in tensors])
    if len(tensors) == 1:
        moved = args, kwargs, batched[0].bdim
        values: dict[int, Tensor] = {id(batched[0]): batched[0].value}
    else:
        if in_place:
            ndim = first._memory_.ndim
        values = {id(tensor): padded(front(tensor), ndim) for tensor in batched}
        if not in_place:
            _keep_dtypes(function, tensors, values)
        moved = args, kwargs, 0
    args, kwargs, bdim = moved
    inner = [values.get(id(value), value) if isinstance(value, Tensor) else value for value in args]
    named = {k: values.get(id(value), value) if isinstance(value, Tensor) else value for k, value in kwargs.items()}
    result = function(*inner, **named)
    return first if in_place else wrap_all(result, level, bdim)


#: Parameters that say where, not what: their dtype has no part in that of the result.
_WHERE = frozenset(("condition", "mask"))


def _keep_dtypes(function: Callable[..., Any], tensors: list[Tensor], values: dict[int, Tensor]) -> None:
    """Convert operands whose dtype would count otherwise with a batch dimension than without one.

    A 0-d tensor gives way to one with dimensions: an example that is a number has to give way too.
    """
    dtypes = {tensor._memory_.dtype for tensor in tensors}
    if len(dtypes) == 1:
        return
    if all(tensor._memory_.ndim for tensor in tensors):
        return  # nobody gives way
    record = record_of(function)
    names = () if record is None else record.arguments
    if names and names[0] in _WHERE:
        tensors = tensors[1:]
    elif len(names) > 1 and names[1] in _WHERE:
        tensors = [tensors[0], *tensors[2:]]
    target = result_dtype(*[_like(tensor) for tensor in tensors])
    for tensor in tensors:
        if tensor._memory_.dtype != target:
            values[id(tensor)] = values.get(id(tensor), tensor).to(from_numpy_dtype(target))


def _like(tensor: Tensor) -> Any:
    """An array of the dtype and number of dimensions of a tensor, for the rules of promotion."""
    import numpy as np

    return np.empty((0,) * tensor._memory_.ndim, tensor._memory_.dtype)


# ------------------------------------------------------------------------------------------------------ as it is


def leading(level: Level, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Operators that take any number of leading dimensions: the examples become one, for all tensors alike."""
    inner = [spread(value, level) if isinstance(value, Tensor) else value for value in args]
    named = {k: spread(value, level) if isinstance(value, Tensor) else value for k, value in kwargs.items()}
    if writes(function):
        if not is_batched(args[0], level):
            raise not_inplace(function.__name__, args[0])
        function(*inner, **named)
        return args[0]
    return wrap_all(function(*inner, **named), level)


# ------------------------------------------------------------------------------------------------------ dimensions


def shifted(dim: Any, ndim: int) -> int:
    """A dimension of an example, counted with that of the examples in front."""
    return normalize_dim(dim, ndim) + 1


def shifted_all(dims: Any, ndim: int) -> list[int]:
    """Dimensions of an example, counted so; none, or no list, is all of them."""
    if dims is None:
        return list(range(1, ndim + 1))
    if not isinstance(dims, Iterable):
        dims = (dims,)
    found = [normalize_dim(dim, ndim) + 1 for dim in dims]
    return found or list(range(1, ndim + 1))


def along(position: int | str, *names: str, tensors: int = 1, keeps: bool = True) -> None:
    """Operators along one dimension, which they are given at `position` (a keyword, if it is a name).

    The first `tensors` arguments are the tensors. An example without dimensions counts as having one; `keeps`: the
    result then has it, too.
    """

    def apply(level: Level, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        ndim = args[0]._memory_.ndim
        values = [spread(value, level) for value in args[:tensors]]
        if ndim == 0:
            values = [generated.unsqueeze(value, 1) for value in values]
        inner = [*values, *args[tensors:]]
        if isinstance(position, str):
            kwargs = {**kwargs, position: shifted(kwargs[position], ndim)}
        else:
            inner[position] = shifted(inner[position], ndim)
        if writes(function):
            if not is_batched(args[0], level):
                raise not_inplace(function.__name__, args[0])
            function(*inner, **kwargs)
            return args[0]
        result = function(*inner, **kwargs)
        if ndim == 0:
            result = _without_dimensions(result, level.size)
        return wrap_all(result, level)

    put(apply, *names)


def _without_dimensions(result: Any, size: int) -> Any:
    """Results of examples that are numbers, each without the dimension that it was given."""
    if isinstance(result, Tensor):
        return generated.view(result, (size,)) if result._memory_.ndim > 1 else result
    parts = [_without_dimensions(one, size) for one in result]
    return result._make(parts) if hasattr(result, "_make") else type(result)(parts)


def over(position: int | str, *names: str) -> None:
    """Reductions over several dimensions, or all, which they are given at `position`."""

    def apply(level: Level, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        first = args[0]
        value, ndim = front(first), first._memory_.ndim
        if ndim == 0:
            value = generated.unsqueeze(value, 1)
        given = kwargs[position] if isinstance(position, str) else args[position]
        dims = shifted_all(given, ndim) if ndim or given is not None else [1]
        dims = dims or [1]
        inner = [value, *args[1:]]
        if isinstance(position, str):
            kwargs = {**kwargs, position: dims}
        else:
            inner[position] = dims
        result = function(*inner, **kwargs)
        if ndim == 0:
            result = _without_dimensions(result, level.size)
        return wrap_all(result, level)

    put(apply, *names)


def flattened(value: Tensor) -> Tensor:
    """A value with the examples in front and all else in one dimension."""
    return value.reshape(value._memory_.shape[0], -1) if value._memory_.size else value.reshape(
        value._memory_.shape[0], 0 if 0 in value._memory_.shape[1:] else 1
    )


def folded(value: Tensor) -> Tensor:
    """A value with the examples in front, with its first two dimensions made one."""
    shape = value._memory_.shape
    return reshaped(value, (shape[0] * shape[1], *shape[2:]))


def unfolded(value: Tensor, size: int) -> Tensor:
    """The reverse: the examples in front again."""
    shape = value._memory_.shape
    return reshaped(value, (size, shape[0] // size if size else 0, *shape[1:]))


__all__ = [
    "along", "elementwise", "flattened", "folded", "leading", "over", "padded", "put", "rule", "shifted",
    "shifted_all", "unfolded",
]  # fmt: skip
