"""What a device does with random words otherwise than the CPU: see philox.py, and kernels/random.py for the rest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def words(twister: Any, count: int) -> Any:
    """`count` 32-bit words."""
    return twister.words(count)


def long_words(twister: Any, count: int) -> Any:
    """`count` 64-bit words; the upper half of each is drawn first."""
    halves = twister.words(2 * count).reshape(-1, 2).astype(np.uint64)
    return (halves[:, 0] << np.uint64(32)) | halves[:, 1]


def _box_muller(uniform: Any, mean: float, std: float, result: Any) -> None:
    """Normal numbers from uniform ones, each sixteen for themselves."""
    numpy, dtype = uniform.place.numpy, uniform.dtype.type
    halves = uniform.reshape(-1, 2, 8)
    radius = numpy.sqrt(numpy.log(dtype(1) - halves[:, 0]) * dtype(-2)) * dtype(std)
    angle = halves[:, 1] * dtype(2 * math.pi)
    made = numpy.stack([numpy.cos(angle), numpy.sin(angle)], 1) * radius[:, None] + dtype(mean)
    result[...] = made.reshape(-1)


def normal_pairs(twister: Any, count: int, kept: float | None) -> tuple[Any, float | None]:
    """Standard normal float64; what is left over is not kept."""
    numpy, random = twister.place.numpy, twister.place.kernels.modules["random"]
    drawn = random.uniform_float64(twister, 2 * ((count + 1) // 2))
    radius = numpy.sqrt(-2.0 * numpy.log1p(-drawn[1::2]))
    angle = 2.0 * math.pi * drawn[0::2]
    return numpy.stack((radius * numpy.cos(angle), radius * numpy.sin(angle)), 1).reshape(-1)[:count], None


def permutation(twister: Any, n: int) -> Any:
    """The integers below `n` in the order of as many random words."""
    return twister.place.numpy.argsort(long_words(twister, n)).astype(np.int64)


OVERLAY: dict[str, Any] = {
    "words": words, "long_words": long_words, "_box_muller": _box_muller, "normal_pairs": normal_pairs,
    "permutation": permutation, "_BLOCK": 1 << 62,
}  # fmt: skip
