"""Jacobians for gradcheck.py: by finite differences, by backward passes and by forward mode.

A Jacobian is an array of (elements of the input, elements of the output).  Differences are taken once, along the real
and, for a complex input, the imaginary direction of each element, of the whole complex output; what is compared with a
backward pass or a tangent is put together from these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import kernels
from ..core.late import operators as ops
from ..tensor import Tensor
from . import forward_ad
from .run_backward import grad

#: Directions in which an element can be moved.
REAL, IMAGINARY = 1.0, 1.0j


def as_tuple(outputs: Any) -> tuple[Any, ...]:
    """What a function returned, as a tuple."""
    return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)


def varies(tensor: Any) -> bool:
    """Can this have a gradient at all?"""
    return isinstance(tensor, Tensor) and (tensor.is_floating_point() or tensor.is_complex())


def by_class(tensor: Any) -> bool:
    """Is it a tensor whose class says what operators do, so that they alone can look into it?"""
    return isinstance(tensor, Tensor) and tensor._special_ is not None and tensor._needs_tensors_  # type: ignore[attr-defined]


def to_array(tensor: Tensor) -> np.ndarray:
    """The values, copied to the host; of a sparse tensor, all elements."""
    if by_class(tensor):
        elements = [one.item() for one in tensor.detach().reshape(-1).unbind()]  # type: ignore[attr-defined]
        return np.array(elements, tensor._memory_.dtype).reshape(tensor._memory_.shape)
    if tensor._special_ is not None:
        tensor = tensor.detach().to_dense()  # type: ignore[attr-defined]
    return np.array(tensor.detach().cpu()._numbers_)  # type: ignore[attr-defined]


def moved_array(tensor: Tensor) -> np.ndarray:
    """What is changed to move a tensor: its array, or the values of a sparse one (else something of that shape)."""
    if by_class(tensor):
        return np.zeros(tensor._memory_.shape, tensor._memory_.dtype)
    return tensor._numbers_ if tensor._special_ is None else tensor._memory_.values


def moved_elements(tensor: Tensor) -> Any:
    """Which elements of a tensor, counted from the first, that array holds."""
    if tensor._special_ is None or by_class(tensor):
        return slice(None)
    array = tensor._memory_
    # Each value is numbered by where it lies; the tensor of the numbers then says which element that is.
    numbers = array.with_values(np.arange(array.values.size).reshape(array.values.shape))
    numbers = numbers if tensor.is_sparse else numbers.to_coo()
    inner = int(np.prod(numbers.values.shape[1:], dtype=np.int64))
    first = kernels.coordinates_to_numbers(numbers.indices, numbers.shape)
    found = np.empty(array.values.size, np.int64)
    found[numbers.values.reshape(-1)] = (first[:, None] * inner + np.arange(inner)).reshape(-1)
    return found


def directions(tensor: Tensor) -> tuple[complex, ...]:
    return (REAL, IMAGINARY) if tensor.is_complex() else (REAL,)


# ---------------------------------------------------------------------------------------------------------- differences


class Numerical:
    """Central differences of `func` around `inputs`; `which` of its outputs are looked at."""

    def __init__(self, func: Callable[..., Any], inputs: tuple[Any, ...], which: Sequence[int], eps: float) -> None:
        self.func = func
        self.inputs = inputs
        self.which = which
        self.eps = eps

    def _values(self) -> list[np.ndarray]:
        outputs = as_tuple(self.func(*self.inputs))
        return [to_array(outputs[i]) for i in self.which]

    def _values_beside(self, position: int, step: np.ndarray) -> list[np.ndarray]:
        """The values where input number `position`, whose class alone knows what lies in it, is moved by `step`."""
        data = self.inputs[position].data
        before = data.clone()
        try:
            data.copy_(before + ops.from_numpy(np.asarray(step, before._memory_.dtype)))
            return self._values()
        finally:
            data.copy_(before)

    def along(self, position: int, step: np.ndarray) -> list[np.ndarray]:
        """The derivatives of the outputs as input number `position` moves along `step`."""
        data = moved_array(self.inputs[position])
        before = data.copy()
        values = []
        try:
            for sign in (1, -1) if not by_class(self.inputs[position]) else ():
                # Into the memory of the input, so that the function gets the very tensors that it was called with.
                data[...] = before + sign * self.eps * step.astype(before.dtype)
                values.append(self._values())
        finally:
            data[...] = before
        if by_class(self.inputs[position]):
            values = [self._values_beside(position, sign * self.eps * step) for sign in (1, -1)]
        quotients = []
        for ahead, behind in zip(*values, strict=True):
            for what, one, other in (("shape", ahead.shape, behind.shape), ("dtype", ahead.dtype, behind.dtype)):
                if one != other:
                    raise AssertionError(
                        f"Expected `func` to return outputs with the same {what} when inputs are perturbed along one "
                        f"element of input {position} by {self.eps}, but got {one} and {other}"
                    )
            quotients.append(((ahead - behind) / (2 * self.eps)).reshape(-1))
        return quotients

    def jacobians(self, position: int) -> dict[complex, list[np.ndarray]]:
        """For each direction, the Jacobian of each output for one input."""
        tensor = self.inputs[position]
        found = {}
        for direction in directions(tensor):
            rows = []
            for step in unit_steps(tensor, direction):
                rows.append(self.along(position, step))
            if rows:
                moved = [np.stack(column) for column in zip(*rows, strict=True)]
            else:
                moved = [np.zeros((0, value.size)) for value in self._values()]
            found[direction] = [_all_rows(tensor, rows) for rows in moved]
        return found


def _all_rows(tensor: Tensor, moved: np.ndarray) -> np.ndarray:
    """A Jacobian of all elements of a tensor, of which some have not been moved."""
    if tensor._special_ is None or by_class(tensor):
        return moved
    result = np.zeros((tensor.numel(), moved.shape[1]), moved.dtype)
    result[moved_elements(tensor)] = moved
    return result


def unit_steps(tensor: Tensor, direction: complex) -> Iterator[np.ndarray]:
    """One step an element."""
    shape = moved_array(tensor).shape
    dtype = tensor._memory_.dtype
    for cell in np.ndindex(shape):
        step = np.zeros(shape, dtype)
        step[cell] = direction if dtype.kind == "c" else 1
        yield step


def as_gradient(along: dict[complex, Any], part: Callable[[Any], Any]) -> Any:
    """Differences of one real part of the outputs, in the form of a gradient: for complex inputs, d/dx + i d/dy."""
    result = part(along[REAL])
    return result + 1j * part(along[IMAGINARY]) if IMAGINARY in along else result


# ------------------------------------------------------------------------------------------------------ backward passes


def vector_products(output: Tensor, inputs: Sequence[Tensor], v: np.ndarray) -> list[np.ndarray]:
    """``v``, of the output's size, times the Jacobian for each input, as vectors of the input's size."""
    return [_flat(g, x) for g, x in zip(pull(output, inputs, v), inputs, strict=True)]


def pull(output: Tensor, inputs: Sequence[Tensor], v: np.ndarray) -> tuple[Tensor | None, ...]:
    """The gradients of the inputs; None where the output does not depend on one."""
    vector = ops.from_numpy(v.reshape(tuple(output.shape)).astype(output._memory_.dtype)).to(output.device)
    return grad([output], list(inputs), [vector], retain_graph=True, allow_unused=True)


def _flat(gradient: Tensor | None, like: Tensor) -> np.ndarray:
    return np.zeros(like.numel(), like._memory_.dtype) if gradient is None else to_array(gradient).reshape(-1)


class Analytical:
    """The Jacobians of one real output, from one backward pass per element, each run twice."""

    def __init__(self, output: Tensor, inputs: Sequence[Tensor], nondet_tol: float) -> None:
        self.jacobians: list[np.ndarray] = [np.zeros((x.numel(), output.numel()), x._memory_.dtype) for x in inputs]
        self.reentrant: bool = True
        self.sizes_match: bool = True
        self.dtypes_match: bool = True
        for column, v in enumerate(one_hot_vectors(output)):
            first, again = pull(output, inputs, v), pull(output, inputs, v)
            for jacobian, x, one, other in zip(self.jacobians, inputs, first, again, strict=True):
                if one is not None:
                    self.dtypes_match &= one.dtype == x.dtype
                    if one.size() != x.size():
                        self.sizes_match = False
                        continue
                jacobian[:, column] = _flat(one, x)
                self.reentrant &= same_values(jacobian[:, column], _flat(other, x), nondet_tol)


def one_hot_vectors(output: Tensor) -> Iterator[np.ndarray]:
    for column in range(output.numel()):
        v = np.zeros(output.numel())
        v[column] = 1
        yield v


def same_values(one: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    """Equal to within `tolerance`, NaN to NaN."""
    if np.isinf(tolerance):
        return one.shape == other.shape
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=0, atol=tolerance, equal_nan=True))


# --------------------------------------------------------------------------------------------------------- forward mode


def push(
    func: Callable[..., Any], inputs: tuple[Any, ...], steps: dict[int, Any]
) -> list[tuple[Tensor, Tensor | None]]:
    """Primals and tangents of the outputs as the inputs in `steps` (arrays or Tensors) move; None: no tangent."""
    with forward_ad.dual_level():
        given = []
        for position, value in enumerate(inputs):
            value = value.detach() if isinstance(value, Tensor) else value
            step = steps.get(position)
            if step is not None:
                tangent = step if isinstance(step, Tensor) else ops.from_numpy(step.copy()).to(value.device)
                value = forward_ad.make_dual(value, tangent)
            given.append(value)
        outputs = as_tuple(func(*given))
        pairs = [forward_ad.unpack_dual(o) if isinstance(o, Tensor) else (o, None) for o in outputs]
        return [(primal, tangent) for primal, tangent in pairs]


def steps_of(
    inputs: tuple[Any, ...], wanted: Sequence[int], moving: int, step: np.ndarray
) -> dict[int, np.ndarray | None]:
    """A step for one of the `wanted` inputs, and zeros for the others."""
    return {i: step if i == moving else np.zeros(tuple(inputs[i].shape), inputs[i]._memory_.dtype) for i in wanted}


def tangents(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    wanted: Sequence[int],
    moving: int,
    step: np.ndarray,
    which: Sequence[int],
) -> list[np.ndarray]:
    """The tangents of the outputs `which` as one input moves, as vectors."""
    pairs = push(func, inputs, steps_of(inputs, wanted, moving, step))
    return [_flat(pairs[i][1], pairs[i][0]) for i in which]


def forward_jacobians(
    func: Callable[..., Any], inputs: tuple[Any, ...], wanted: Sequence[int], position: int, which: Sequence[int]
) -> dict[complex, list[np.ndarray]]:
    """The counterpart of `Numerical.jacobians`."""
    found = {}
    for direction in directions(inputs[position]):
        rows = [
            tangents(func, inputs, wanted, position, step, which) for step in unit_steps(inputs[position], direction)
        ]
        if rows:
            found[direction] = [np.stack(column) for column in zip(*rows, strict=True)]
        else:
            outputs = as_tuple(func(*inputs))
            found[direction] = [np.zeros((0, outputs[i].numel())) for i in which]
    return found
