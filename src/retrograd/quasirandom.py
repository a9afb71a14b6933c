"""``torch.quasirandom``: points that fill a cube more evenly than random ones."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .core import dtypes
from .ops import namespace as ops
from .ops.factories import from_numpy
from .random import Generator
from .tensor import Tensor

__all__ = ["SobolEngine"]


class SobolEngine:
    """The Sobol sequence in [0, 1)^dimension; with `scramble`, in an order that `seed` decides.

    Scrambled points are the plain ones, their bits multiplied by a random triangular matrix and shifted: torch's own
    points for the same seed.

    >>> import retrograd as torch
    >>> torch.quasirandom.SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        from scipy.stats import qmc  # takes half a second

        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self._plain = qmc.Sobol(dimension, scramble=False, bits=self.MAXBIT)
        self.num_generated: int = 0
        if scramble:
            self._scramble()

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = Generator()
            generator.manual_seed(self.seed)
        bits = self.MAXBIT
        shift = ops.randint(2, (self.dimension, bits), generator=generator).numpy()
        #: By which the points are shifted: a number of `MAXBIT` bits for each dimension.
        self.shift: Tensor = from_numpy(shift @ (1 << np.arange(bits)))
        matrix = np.tril(ops.randint(2, (self.dimension, bits, bits), generator=generator).numpy())
        matrix[:, np.arange(bits), np.arange(bits)] = 1
        self._matrix = matrix

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next `n` points, one a row."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that n is no power of two: torch leaves it to `draw_base2` to care
            whole = (self._plain.random(n) * 2.0**self.MAXBIT).astype(np.int64)
        self.num_generated += n
        if self.scramble:
            order = np.arange(self.MAXBIT - 1, -1, -1)  # the most significant bit first
            bits = whole[..., None] >> order & 1
            mixed = np.einsum("dij,ndj->ndi", self._matrix, bits) & 1
            whole = (mixed << order).sum(-1) ^ self.shift.numpy()
        dtype = dtypes.get_default_dtype() if dtype is None else dtype
        points = from_numpy((whole * 2.0**-self.MAXBIT).astype(dtype.np))
        if out is None:
            return points
        return out.resize_(points.shape).copy_(points)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next ``2**m`` points. Points come in sets of powers of two, which begin at the first."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points "
                f"have been previously generated, then: n={self.num_generated}+2**{m}={total}. If you still want to do "
                "this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Begin again."""
        self._plain.reset()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next `n` points."""
        if n:
            self._plain.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        words = [f"dimension={self.dimension}"]
        if self.scramble:
            words.append("scramble=True")
        if self.seed is not None:
            words.append(f"seed={self.seed}")
        return f"SobolEngine({', '.join(words)})"
