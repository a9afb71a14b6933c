"""Whole Jacobians and Hessians: one pass over all rows, or columns, at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .._generated import functions as generated
from ..core.state import local
from ..tensor import Tensor
from ..tensor import wrap as plain
from ..utils._pytree import tree_flatten, tree_unflatten
from .batched import SharedWrite, spread, wrap
from .transforms import Argnums, _chosen, jvp_of, vjp_of
from .vmap import vmap_impl


def _basis(tensors: list[Tensor]) -> list[Tensor]:
    """For each of `tensors`, the part of all unit vectors that belongs to it: one row per element of them all."""
    sizes = [tensor._memory_.size for tensor in tensors]
    total, start, found = sum(sizes), 0, []
    for tensor, size in zip(tensors, sizes, strict=True):
        rows = np.zeros((total, size), tensor._memory_.dtype)
        rows[np.arange(start, start + size), np.arange(size)] = 1
        found.append(plain(rows.reshape(total, *tensor._memory_.shape)))
        start += size
    return found


def _check_real(tensors: list[Any], what: str) -> None:
    """A complex number has no one derivative: not for what is not holomorphic, which nobody can know."""
    for one in tensors:
        if not isinstance(one, Tensor):
            raise RuntimeError(f"{what} to be Tensors, got unsupported type {type(one)}")
        if one._memory_.dtype.kind == "c":
            raise RuntimeError(
                f"{what} to be real but received a complex tensor, of dtype {one.dtype}. Please use "
                "torch.view_as_real"
            )


def _filled(row: Callable[..., Any], basis: tuple[Tensor, ...], chunk_size: int) -> list[Tensor]:
    """The rows, `chunk_size` at a time, written to where they will stay: never all of them twice."""
    total = basis[0]._memory_.shape[0]
    columns: list[Tensor] = []
    for start in range(0, total, chunk_size):
        count = min(chunk_size, total - start)
        chunk = tuple([generated.slice(one, 0, start, start + count, 1) for one in basis])
        parts = vmap_impl(row, 0, 0, "error", None, chunk, {})
        columns = columns or [part.new_empty((total, *part._memory_.shape[1:])) for part in parts]
        for column, part in zip(columns, parts, strict=True):
            generated.slice(column, 0, start, start + count, 1).copy_(part)
    return columns


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that gives the Jacobian of `func`, by reverse mode: all rows at once, or `chunk_size` at a time.

    The result is a tree like the output of `func`, with trees like the arguments `argnums` in it.
    `_preallocate_and_copy`: rows that come in chunks are copied to their place one chunk after the other.

    >>> import retrograd as torch
    >>> torch.func.jacrev(lambda x: x ** 2)(torch.tensor([1., 2., 3.]))
    tensor([[2., 0., 0.],
            [0., 4., 0.],
            [0., 0., 6.]])
    """
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten(_chosen(args, argnums))
        _check_real(leaves, "jacrev: Expected all inputs")
        result = vjp_of(func, args, argnums, has_aux, kwargs, "jacrev")
        output, back = result[:2]
        outputs, output_spec = tree_flatten(output)
        _check_real(outputs, "jacrev: Expected all outputs")
        sizes = [one._memory_.size for one in outputs]
        if sum(sizes) == 1:
            # One row: nothing to map over.
            ones = [one.detach().new_ones(one.shape) for one in outputs]
            columns = [generated.unsqueeze(g, 0) for g in tree_flatten(back(tree_unflatten(ones, output_spec)))[0]]
        else:
            basis = tuple(_basis(outputs))

            def row(*cotangents: Any) -> Any:
                return tuple(tree_flatten(back(tree_unflatten(cotangents, output_spec)))[0])

            if chunk_size == 1:
                # One row after the other, each by a pass of its own: what cannot be mapped over can be run so.
                made = [row(*[generated.select(one, 0, i) for one in basis]) for i in range(sum(sizes))]
                columns = [generated.stack(list(column)) for column in zip(*made, strict=True)]
            elif _preallocate_and_copy and chunk_size is not None:
                columns = _filled(row, basis, chunk_size)
            else:
                columns = list(vmap_impl(row, 0, 0, "error", chunk_size, basis, {}))
        parts: list[list[Tensor]] = [[] for _ in outputs]
        for leaf, column in zip(leaves, columns, strict=True):
            rows = generated.split_with_sizes(column, sizes, 0) if len(sizes) > 1 else (column,)
            for i, (one, part) in enumerate(zip(outputs, rows, strict=True)):
                parts[i].append(part.reshape(*one._memory_.shape, *leaf._memory_.shape))
        found = tree_unflatten([tree_unflatten(each, spec) for each in parts], output_spec)
        return (found, result[2]) if has_aux else found

    return jacobian


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """A function that gives the Jacobian of `func`, by forward mode: all columns at once.

    >>> import retrograd as torch
    >>> torch.func.jacfwd(lambda x: x[:2] * x[2])(torch.tensor([1., 2., 3.]))
    tensor([[3., 0., 1.],
            [0., 3., 2.]])
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten(_chosen(args, argnums))
        _check_real(leaves, "jacfwd: Expected all inputs")
        specs: list[Any] = []
        kept: list[Any] = []
        #: Positions of arguments that `func` writes to: what every column has one of its own of.
        written: dict[int, Any] = {}

        def column(*tangents: Any) -> Any:
            level = local.state.batch_levels[-1]
            level.alike, level.name, level.function = True, "jacfwd", func
            given = list(args)
            for position in written:
                written[position] = given[position] = wrap(spread(args[position], level).clone(), level)
            along = tree_unflatten(tangents, spec)
            result = jvp_of(func, tuple(given), along, argnums, False, has_aux, kwargs, "jacfwd")
            flat, output_spec = tree_flatten(result[1])
            _check_real(flat, "jacfwd: Expected all outputs")
            specs.append((output_spec, [one._memory_.shape for one in flat]))
            if not has_aux:
                return tuple(flat), ()
            aux, aux_spec = tree_flatten(result[2])
            kept.append(aux_spec)
            return tuple(flat), tuple(aux)

        basis = tuple(_basis(leaves))
        # What comes with the result is that of the function, which the tangents have no part in: any example's will do.
        before = _versions(args)
        while True:
            try:
                columns, aux = vmap_impl(column, 0, 0, randomness, None, basis, {})
                break
            except SharedWrite as error:
                memory = getattr(error.target, "_vc_", None)  # what aliases of one tensor have in common
                found = [i for i, one in enumerate(args) if isinstance(one, Tensor) and one._vc_ is memory]
                if memory is None or not found or found[0] in written or before != _versions(args):
                    raise  # it is no argument; or something was written already, and cannot be done once more
                written[found[0]] = None
        for position, batched in written.items():
            args[position].copy_(generated.select(batched.value.detach(), batched.bdim, 0))
        output_spec, shapes = specs[-1]
        sizes = [leaf._memory_.size for leaf in leaves]
        parted = []
        for shape, rows in zip(shapes, columns, strict=True):
            parts = generated.split_with_sizes(rows, sizes, 0) if len(sizes) > 1 else (rows,)
            made = []
            for leaf, part in zip(leaves, parts, strict=True):
                moved = generated.permute(part, *range(1, part._memory_.ndim), 0)
                made.append(moved.reshape(*shape, *leaf._memory_.shape))
            parted.append(tree_unflatten(made, spec))
        result = tree_unflatten(parted, output_spec)
        if not has_aux:
            return result
        first = [one[0] if isinstance(one, Tensor) else one for one in aux]
        return result, tree_unflatten(first, kept[-1])

    return jacobian


def _versions(args: tuple[Any, ...]) -> list[int]:
    return [0 if not isinstance(one, Tensor) or one.is_inference() else one._version for one in args]


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that gives the Hessian of `func`: forward mode over reverse mode.

    >>> import retrograd as torch
    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


__all__ = ["hessian", "jacfwd", "jacrev"]
