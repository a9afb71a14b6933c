"""`vmap`: a function of one example becomes one of many. Note [Batched tensors] in batched.py."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from .._generated import functions as generated
from ..random import get_rng_state, set_rng_state
from ..tensor import Tensor
from ..utils._pytree import TreeSpec, _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from .batched import BatchedTensor, Level, batching, escaped, is_batched, move, wrap
from .over_nested import is_nested, map_examples

InDims: TypeAlias = "int | tuple[Any, ...] | None"
OutDims: TypeAlias = "int | tuple[Any, ...] | None"

_RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """`func`, which takes and gives one example, as a function of many at once.

    `in_dims` says which dimension of each argument counts the examples (None: it is the same for all), `out_dims`
    where that dimension stands in the results; both may be trees.  Random numbers are `randomness` for each example:
    "different", the "same", or an "error".  With `chunk_size`, no more than so many examples are held at a time.

    >>> import retrograd as torch
    >>> torch.vmap(torch.dot)(torch.ones(3, 2), torch.tensor([[1., 2.], [3., 4.], [5., 6.]]))
    tensor([ 3.,  7., 11.])
    >>> torch.vmap(lambda x, y: x * y, in_dims=(0, None))(torch.ones(2, 1), torch.arange(3.))
    tensor([[0., 1., 2.],
            [0., 1., 2.]])
    """
    _check_randomness(randomness)
    if chunk_size is not None and not (isinstance(chunk_size, int) and chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        return vmap_impl(func, in_dims, out_dims, randomness, chunk_size, args, kwargs)

    return mapped


def chunk_vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable[..., Any]:
    """`vmap` in so many chunks, one after the other.

    >>> import retrograd as torch
    >>> torch.func.chunk_vmap(lambda x: x * 2, chunks=2)(torch.arange(3))
    tensor([0, 2, 4])
    """
    _check_randomness(randomness)
    if not chunks > 0:
        raise ValueError(f"chunk_vmap: chunks should be greater than 0, but is {chunks}")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        size = _examples(in_dims, args, func)[2]
        return vmap_impl(func, in_dims, out_dims, randomness, max(1, -(-size // chunks)), args, kwargs)

    return mapped


def vmap_impl(
    func: Callable[..., Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    by_user: bool = True,
) -> Any:
    """``vmap(func, in_dims, out_dims)(*args, **kwargs)``."""
    leaves, dims, size, spec = _examples(in_dims, args, func)
    if any(dim is not None and is_nested(leaf) for leaf, dim in zip(leaves, dims, strict=True)):
        return map_examples(func, leaves, dims, size, spec, out_dims, randomness, kwargs)
    if chunk_size is None or chunk_size >= size:
        with batching(size, randomness, func) as level:
            level.by_user, level.keeps_primals = by_user, not by_user
            inputs = tree_unflatten(_wrapped(leaves, dims, level), spec)
            result = func(*inputs, **kwargs)
            return _unwrapped(result, out_dims, level, func)
    parts, results, result_spec = [], [], None
    drawn = get_rng_state() if randomness == "same" else None
    for start in range(0, size, chunk_size):
        if drawn is not None:
            set_rng_state(drawn)  # what is the same for all examples is so in all chunks
        stop = min(start + chunk_size, size)
        chunk = [
            leaf if dim is None else generated.slice(leaf, dim, start, stop)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        with batching(stop - start, randomness, func) as level:
            inputs = tree_unflatten(_wrapped(chunk, dims, level), spec)
            result = func(*inputs, **kwargs)
            part = _unwrapped(result, out_dims, level, func)
        flat, result_spec = tree_flatten(part)
        parts.append(flat)
    assert result_spec is not None
    where = _broadcast_to_and_flatten(out_dims, result_spec)
    if where is None and isinstance(out_dims, tuple) and len(out_dims) == 1:
        where = _broadcast_to_and_flatten(out_dims[0], result_spec)
    for column, dim in zip(zip(*parts, strict=True), where or [], strict=True):
        joined = isinstance(column[0], Tensor) and dim is not None
        results.append(generated.cat(list(column), dim) if joined else column[-1])
    return tree_unflatten(results, result_spec)


def restore_vmap(
    func: Callable[..., Any], in_dims: Any, batch_size: int, randomness: str
) -> Callable[..., tuple[Any, Any]]:
    """`vmap` of a function some of whose results may be the same for all examples: gives them with their dimensions.

    >>> import retrograd as torch
    >>> from retrograd.func.vmap import restore_vmap
    >>> restore_vmap(lambda x, y: (x + y, y), (0, None), 2, "error")(torch.ones(2), torch.tensor(1.))
    ((tensor([2., 2.]), tensor(1.)), (0, None))
    """

    def mapped(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        with batching(batch_size, randomness, func) as level:
            leaves, spec = tree_flatten(args)
            dims = _broadcast_to_and_flatten(in_dims, spec, is_leaf=lambda x: x is None)
            if dims is None:
                raise ValueError(f"in_dims is not compatible with the structure of the inputs: {in_dims}, {spec}")
            result = func(*tree_unflatten(_wrapped(leaves, dims, level), spec), **kwargs)
            return unwrap_tree(result, level)

    return mapped


def unwrap_tree(tree: Any, level: Level) -> tuple[Any, Any]:
    """A tree without the batching of `level`, and a tree of where the dimension of the examples stands."""
    leaves, spec = tree_flatten(tree)
    batched = [is_batched(leaf, level) for leaf in leaves]
    values = [leaf.value if yes else leaf for leaf, yes in zip(leaves, batched, strict=True)]
    dims = [leaf.bdim if yes else None for leaf, yes in zip(leaves, batched, strict=True)]
    return tree_unflatten(values, spec), tree_unflatten(dims, spec)


# -------------------------------------------------------------------------------------------------------- arguments


def _check_randomness(randomness: str) -> None:
    if randomness not in _RANDOMNESS:
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )


def _name(func: Any) -> str:
    return getattr(func, "__name__", None) or repr(func)


def _examples(in_dims: Any, args: tuple[Any, ...], func: Any) -> tuple[list[Any], list[Any], int, TreeSpec]:
    """The leaves of the arguments, the dimension of each that counts the examples, how many there are, and the tree."""
    name = _name(func)
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) "
            f"tuple matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of "
            "`inputs`. "
            f"in_dims has structure {tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    sizes = []
    for position, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        said = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for"
        if not isinstance(dim, int) and dim is not None:
            raise ValueError(f"{said} an input but in_dim must be either an integer dimension or None.")
        if isinstance(dim, int) and not isinstance(leaf, Tensor):
            raise ValueError(
                f"{said} an input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor arguments, "
                "please use None as the respective in_dim"
            )
        if dim is None:
            continue
        if is_nested(leaf):
            if dim != 0:
                raise RuntimeError(f"Nested tensors can only be vmapped over dim=0, their examples, not over dim={dim}")
            sizes.append(leaf.size(0))
            continue
        if not -leaf._memory_.ndim <= dim < leaf._memory_.ndim:
            raise ValueError(
                f"{said} some input, but that input is a Tensor of dimensionality {leaf._memory_.ndim} so expected "
                f"in_dim to satisfy -{leaf._memory_.ndim} <= in_dim < {leaf._memory_.ndim}."
            )
        dims[position] = dim % leaf._memory_.ndim
        sizes.append(leaf._memory_.shape[dim])
    if not sizes:
        raise ValueError("vmap: at least one Tensor has to be mapped over: in_dims are all None")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped "
            "dimension"
        )
    return leaves, dims, sizes[0], spec


def _wrapped(leaves: Iterable[Any], dims: Iterable[Any], level: Level) -> list[Any]:
    return [
        wrap(leaf, level, dim % leaf._memory_.ndim) if dim is not None and isinstance(leaf, Tensor) else leaf
        for leaf, dim in zip(leaves, dims, strict=True)
    ]


# ---------------------------------------------------------------------------------------------------------- results


def _unwrapped(result: Any, out_dims: Any, level: Level, func: Any) -> Any:
    """What the mapped function returns, with the examples along `out_dims`."""
    leaves, spec = tree_flatten(result)
    name = _name(func)

    def incompatible() -> ValueError:
        return ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )

    if isinstance(result, Tensor):
        # out_dims=(1,) is taken for a function with one result.
        if isinstance(out_dims, (int, type(None))):
            dims: Any = [out_dims]
        elif isinstance(out_dims, tuple) and len(out_dims) == 1:
            dims = [out_dims[0]]
        elif isinstance(out_dims, tuple):
            raise incompatible()
        else:
            dims = [out_dims]
    else:
        dims = _broadcast_to_and_flatten(out_dims, spec)
        if dims is None:
            raise incompatible()
    for dim in dims:
        if not isinstance(dim, int) and dim is not None:
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of "
                "ints "
                "representing where in the outputs the vmapped dimension should appear."
            )
    values = [_one(leaf, dim, level, name) for leaf, dim in zip(leaves, dims, strict=True)]
    return tree_unflatten(values, spec)


def _one(value: Any, dim: Any, level: Level, name: str) -> Any:
    if dim is None:
        if is_batched(value, level):
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None: it has a value for "
                "each "
                "example"
            )
        return value
    if not isinstance(value, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(value)}. Did you mean to set "
            "out_dims= "
            "to None for output?"
        )
    if value.__class__ is BatchedTensor and not value.level.open:  # type: ignore[attr-defined]
        raise escaped(value, name)  # type: ignore[arg-type]
    ndim = value._memory_.ndim + 1
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    to = dim % ndim
    if is_batched(value, level):
        return move(value.value, value.bdim, to)  # type: ignore[attr-defined]
    return move(generated.expand(value, level.size, *value._memory_.shape), 0, to)
