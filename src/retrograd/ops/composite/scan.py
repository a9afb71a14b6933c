"""Differences, integrals and slopes along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...tensor import Tensor
from ..factories import zeros_like
from ..registry import composite
from ..support import write_out
from .shape import narrow


def _dim(dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return dim % ndim


def _neighbours(values: Any, dim: int) -> tuple[Any, Any]:
    """All but the last and all but the first along `dim`."""
    n = max(values._memory_.shape[dim] - 1, 0)
    return narrow(values, dim, 0, n), narrow(values, dim, min(1, values._memory_.shape[dim]), n)


@composite()
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *,
    out: Any = None,
) -> Tensor:  # fmt: skip
    """The differences of neighbours along `dim`, taken `n` times.

    >>> import retrograd as torch
    >>> torch.diff(torch.tensor([1, 3, 2]))
    tensor([ 2, -1])
    """
    if out is not None:
        return write_out(diff, out, (input, n, dim, prepend, append), {})
    if not input._memory_.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = _dim(dim, input._memory_.ndim)
    if not n:
        return generated.copy_(zeros_like(input.detach()), input, False)
    parts = [part for part in (prepend, input, append) if part is not None]
    for part in parts:
        if part.ndim != input.ndim:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        for other, (own, given) in enumerate(zip(input.shape, part.shape, strict=True)):
            if other != dim and own != given:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the "
                    f"differencing dimension; input.size({other}) = {own}, but got tensor.size({other}) = {given}"
                )
    result = generated.cat(parts, dim) if len(parts) > 1 else input
    for _ in range(min(n, result._memory_.shape[dim])):
        before, after = _neighbours(result, dim)
        difference = generated.logical_xor if result._memory_.dtype == np.bool_ else generated.sub
        result = difference(after, before)
    return result


@composite("trapz", method=False)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral of `y` along `dim` by the trapezoidal rule, at the places `x` or `dx` apart."""
    widths = _widths("trapezoid", y, x, dx, dim)
    dim = _dim(dim, y._memory_.ndim)
    both = generated.add(*_neighbours(y, dim))
    if not isinstance(widths, Tensor):  # (torch subtracts the ends from twice the sum, which infinities do not stand)
        return generated.sum_dim_IntList(generated._mul_number(both, widths / 2), (dim,))
    return generated._div_number(generated.sum_dim_IntList(generated.mul(both, widths), (dim,)), 2.0)


@composite(method=False)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integrals of `y` up to each place along `dim`."""
    widths = _widths("cumulative_trapezoid", y, x, dx, dim)
    dim = _dim(dim, y._memory_.ndim)
    both = generated.add(*_neighbours(y, dim))
    if not isinstance(widths, Tensor):
        return generated.cumsum(generated._mul_number(both, widths / 2), dim)
    return generated._div_number(generated.cumsum(generated.mul(both, widths), dim), 2.0)


def _widths(name: str, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> Any:
    """The distance of neighbouring places: a number, or a tensor that goes with `y`."""
    if x is not None and dx is not None:
        raise TypeError(f"{name}() received an invalid combination of arguments: x or dx, but not both")
    if any(t is not None and t._memory_.dtype == np.bool_ for t in (y, x)):
        raise RuntimeError(f"{name}: received a bool input for `x` or `y`, but bool is not supported")
    ndim = y._memory_.ndim
    dim = _dim(dim, ndim)
    if x is None:
        return 1.0 if dx is None else dx.item() if isinstance(dx, Tensor) else dx
    if x._memory_.ndim == 1:
        if x._memory_.shape[0] != y._memory_.shape[dim]:
            raise RuntimeError(
                f"{name}: There must be one `x` value for each sample point, got {x._memory_.shape[0]} for "
                f"{y._memory_.shape[dim]} points"
            )
        x = x.reshape([-1 if d == dim else 1 for d in range(ndim)])
    return diff(x, 1, dim - ndim)


@composite(method=False)
def gradient(input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """The derivatives of the function that `input` samples, one tensor a dimension; second-order within.

    >>> import retrograd as torch
    >>> torch.gradient(torch.tensor([1., 4., 9., 16.]))
    (tensor([3., 4., 6., 7.]),)
    """
    ndim = input._memory_.ndim
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    given = [dim] if isinstance(dim, int) else range(ndim) if dim is None else dim
    dims = [_dim(d, ndim) for d in given]
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    if spacing is None:
        spacing = 1
    spacings = list(spacing) if isinstance(spacing, Sequence) else [spacing] * len(dims)
    if len(spacings) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the "
            f"same length, but got a spacing argument of length {len(spacings)} and a dim argument of length "
            f"{len(dims)}."
        )
    for d in dims:
        if input._memory_.shape[d] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple(_slope(input, d, h, edge_order) for d, h in zip(dims, spacings, strict=True))


def _slope(input: Tensor, dim: int, spacing: Any, edge_order: int) -> Tensor:
    """The derivative along `dim`; `spacing` is the distance of the places, or the places."""
    n = input._memory_.shape[dim]

    def at(start: int, length: int) -> Any:
        return narrow(input, dim, start, length)

    places = spacing if isinstance(spacing, Tensor) and spacing._memory_.ndim else None
    if places is None:
        gaps: Any = [spacing] * (n - 1)
        inner = (at(2, n - 2) - at(0, n - 2)) / (2 * spacing)
    else:
        widths: Any = diff(places)
        gaps = [widths[i] for i in range(n - 1)]
        shape = (-1,) + (1,) * (input._memory_.ndim - 1 - dim)
        left, right = widths[:-1].reshape(shape), widths[1:].reshape(shape)
        inner = (
            at(0, n - 2) * (-right / (left * (left + right)))
            + at(1, n - 2) * ((right - left) / (left * right))
            + at(2, n - 2) * (left / (right * (left + right)))
        )
    if edge_order == 1:
        first = (at(1, 1) - at(0, 1)) / gaps[0]
        last = (at(n - 1, 1) - at(n - 2, 1)) / gaps[-1]
    else:
        ends = _edge_weights(gaps[0], gaps[1]), _edge_weights(gaps[-1], gaps[-2])
        first = at(0, 1) * ends[0][0] + at(1, 1) * ends[0][1] + at(2, 1) * ends[0][2]
        last = at(n - 3, 1) * -ends[1][2] + at(n - 2, 1) * -ends[1][1] + at(n - 1, 1) * -ends[1][0]
    return generated.cat([first, inner, last], dim)


def _edge_weights(near: Any, far: Any) -> tuple[Any, Any, Any]:
    """What the slope at the end of a parabola through three places is of the values there, the end's first."""
    both = near + far
    return -(2 * near + far) / (near * both), both / (near * far), -near / (far * both)
