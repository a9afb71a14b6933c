"""Derivatives without autograd: central finite differences of functions of NumPy arrays.

The tests hand in a function that maps a list of arrays to one real number; it evaluates the module under test's
*forward* computation, so that what is compared with autograd is independent of every derivative formula.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

# The error of a central difference is about f''' h**2 / 6 (truncation) + eps |f| / h (rounding), eps = 2.2e-16.
# At h = 1e-5 both are near 2e-11 for f and f''' of the order of one; the samples keep their numbers in [-4, 4]
# and away from poles, so that third derivatives stay below a few thousand.
STEP = 1e-5

# Hence absolute errors of up to 1e-7, and relative ones well below 1e-6.  A wrong formula is off by far more.
FIRST_ORDER = {"rtol": 1e-6, "atol": 2e-7}

# A second derivative is the difference quotient of gradients that autograd computed (to rounding), so its error is
# that of a first derivative; only the function differs, with one more order of growth near poles.
SECOND_ORDER = {"rtol": 2e-6, "atol": 1e-6}


def numerical_gradient(
    function: Callable[[list[np.ndarray]], float],
    arrays: Sequence[np.ndarray],
    wanted: Sequence[int],
    step: float = STEP,
) -> list[np.ndarray]:
    """Gradients of a real function with respect to the arrays whose positions are in `wanted`.

    For a complex entry z = x + iy the gradient is df/dx + i df/dy, torch's convention: the direction of
    steepest ascent, twice the derivative with respect to the conjugate of z.
    """
    gradients = []
    for position in wanted:
        original = arrays[position]
        gradient = np.zeros_like(original)
        directions = (1.0, 1.0j) if original.dtype.kind == "c" else (1.0,)
        for cell in np.ndindex(original.shape):
            for direction in directions:
                gradient[cell] += direction * _quotient(function, arrays, position, cell, direction, step)
        gradients.append(gradient)
    return gradients


def _quotient(
    function: Callable[[list[np.ndarray]], float],
    arrays: Sequence[np.ndarray],
    position: int,
    cell: tuple[int, ...],
    direction: complex,
    step: float,
) -> float:
    """The central difference quotient along one cell of one array."""
    values = []
    for sign in (1, -1):
        moved = arrays[position].copy()
        moved[cell] += sign * step * direction
        values.append(function([*arrays[:position], moved, *arrays[position + 1 :]]))
    return (values[0] - values[1]) / (2 * step)


def pairing(cotangents: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> float:
    """The real number Re(sum(conj(cotangent) * output)), whose gradient is what backward(cotangents) computes."""
    return float(sum(np.sum(np.conj(c) * o).real for c, o in zip(cotangents, outputs, strict=True)))


def random_cotangent(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A gradient to send backward: numbers in [0.5, 1.5] of either sign, so that none hides a term."""

    def draw() -> np.ndarray:
        return rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape)

    drawn = draw() + 1j * draw() if np.dtype(dtype).kind == "c" else draw()
    return np.asarray(drawn).astype(dtype)
