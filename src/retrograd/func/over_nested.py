"""`vmap` over a nested tensor, whose examples are of different shapes: they are mapped one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._generated import functions as generated
from ..nested import as_nested_tensor
from ..random import get_rng_state, set_rng_state
from ..tensor import Tensor
from ..utils._pytree import TreeSpec, _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from .batched import batching, is_batched, move, wrap


def is_nested(value: Any) -> bool:
    """Is it a nested tensor?"""
    return isinstance(value, Tensor) and value._special_ is not None and value.is_nested


def map_examples(
    func: Callable[..., Any], leaves: list[Any], dims: list[Any], size: int, spec: TreeSpec, out_dims: Any,
    randomness: str, kwargs: dict[str, Any],
) -> Any:  # fmt: skip
    """``vmap(func)`` of arguments of which some are nested: results that differ from example to example are nested."""
    columns = [
        [leaf] * size if dim is None
        else [part.unsqueeze(0) for part in leaf.unbind()] if is_nested(leaf)
        else [generated.slice(leaf, dim, i, i + 1).movedim(dim, 0) for i in range(size)]
        for leaf, dim in zip(leaves, dims, strict=True)
    ]  # fmt: skip
    if not size:
        raise RuntimeError("vmap over a nested tensor without examples: nothing says what its results are like")
    mapped = [dim is not None for dim in dims]
    layout = next(leaf.layout for leaf, yes in zip(leaves, mapped, strict=True) if yes and is_nested(leaf))
    drawn = get_rng_state() if randomness == "same" else None
    rows: list[list[Any]] = []
    own: list[bool] = []  # which results are an example's, if only for some of them
    for parts in zip(*columns, strict=True):
        if drawn is not None:
            set_rng_state(drawn)
        with batching(1, randomness, func) as level:
            inputs = [wrap(p, level, 0) if yes else p for p, yes in zip(parts, mapped, strict=True)]
            results, result_spec = tree_flatten(func(*tree_unflatten(inputs, spec), **kwargs))
            batched = [is_batched(one, level) for one in results]
            rows.append([move(one.value, one.bdim, 0).squeeze(0) if yes else one
                         for one, yes in zip(results, batched, strict=True)])  # fmt: skip
            own = [a or b for a, b in zip(batched, own or batched, strict=True)]
    where = _broadcast_to_and_flatten(out_dims, result_spec)
    if where is None and isinstance(out_dims, tuple) and len(out_dims) == 1:
        where = _broadcast_to_and_flatten(out_dims[0], result_spec)
    if where is None or any(dim not in (0, None) for dim in where):
        raise RuntimeError(f"Nested tensors can only be vmapped over dim=0: out_dims={out_dims} puts them elsewhere")
    found = []
    for column, dim, differs in zip(zip(*rows, strict=True), where, own, strict=True):
        if differs and dim is None:
            raise ValueError("vmap: a result has a value for each example, and cannot be returned with out_dim None")
        if not isinstance(column[0], Tensor) and dim is not None:
            raise ValueError(f"vmap: the function must only return Tensors, got type {type(column[0])}")
        found.append(
            as_nested_tensor(list(column), layout=layout) if differs
            else column[0] if dim is None else column[0].expand(size, *column[0].shape)
        )  # fmt: skip
    return tree_unflatten(found, result_spec)
