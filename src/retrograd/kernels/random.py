"""Random numbers from the bits of a Mersenne twister, by the rules that torch has on the CPU.

A seed gives torch's own numbers, so that a program gives not only the same mathematics but the same run. The twister
is NumPy's; it is asked for its 32-bit words, and what becomes of them is written here:

* a uniform float32 (and whatever is narrower, which is rounded from it) takes the low 24 bits of one word, a float64
  the low 53 bits of two;
* of sixteen normal numbers or more, in a contiguous tensor, each sixteen are made from sixteen uniform ones, the first
  half of which are radii and the second half angles (Box and Muller's way); a rest is made by drawing the last sixteen
  again;
* of fewer, or where they do not lie side by side, each pair is made from two uniform float64, and an odd one is kept
  for the next call;
* an integer below n is a word modulo n, two words from 2**28 on;
* a permutation swaps each element with one of those after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .promotion import scalar_name, unsupported

__all__ = ["below", "dropout_mask"]

#: Fewer words than this are not worth the setting up of `Generator.integers`.
_FEW = 500
#: From this many integers to choose from on, one word would favour the lower ones too much.
_WIDE = 1 << 28
#: Permutations up to this length take one word per element.
_SHORT = (1 << 32) // 20


def words(twister: np.random.Generator, count: int) -> np.ndarray:
    """`count` 32-bit words."""
    if count < _FEW:
        return twister.bit_generator.random_raw(count).astype(np.uint32)
    return twister.integers(0, 1 << 32, count, np.uint32)


def long_words(twister: np.random.Generator, count: int) -> np.ndarray:
    """`count` 64-bit words; the upper half of each is drawn first."""
    if count < _FEW:
        halves = twister.bit_generator.random_raw(2 * count)
        return (halves[0::2] << np.uint64(32)) | halves[1::2]
    return twister.integers(0, 1 << 64, count, np.uint64)


def uniform_float32(twister: np.random.Generator, count: int) -> np.ndarray:
    bits = words(twister, count)
    bits &= np.uint32((1 << 24) - 1)
    drawn = bits.view(np.int32).astype(np.float32)
    drawn *= np.float32(2.0**-24)
    return drawn


def uniform_float64(twister: np.random.Generator, count: int) -> np.ndarray:
    bits = long_words(twister, count)
    bits &= np.uint64((1 << 53) - 1)
    drawn = bits.view(np.int64).astype(np.float64)
    drawn *= 2.0**-53
    return drawn


def uniform(twister: np.random.Generator, count: int, dtype: np.dtype) -> np.ndarray:
    """Uniform numbers in [0, 1)."""
    if dtype == np.float64:
        return uniform_float64(twister, count)
    drawn = uniform_float32(twister, count)
    return drawn if dtype == np.float32 else below(drawn.astype(dtype), 0, 1)


def below(drawn: np.ndarray, low: float, high: float) -> np.ndarray:
    """Numbers of [low, high), where rounding may have made `high` of them, which become `low`."""
    at_the_end = drawn == drawn.dtype.type(high)
    if at_the_end.any():
        drawn[at_the_end] = low
    return drawn


# ------------------------------------------------------------------------------------------------------------- normals


def normal_blocks(twister: np.random.Generator, count: int, mean: float, std: float, dtype: np.dtype) -> np.ndarray:
    """Sixteen normal numbers or more: see the top of the file."""
    if dtype == np.float64 or dtype == np.float32:
        drawn = uniform(twister, count, dtype)
        whole = count // 16 * 16
        drawn[:whole] = _box_muller(drawn[:whole], mean, std)
        if whole != count:
            drawn[-16:] = _box_muller(uniform(twister, 16, dtype), mean, std)
        return drawn
    # Narrower numbers are made in float32, sixteen at a time.
    single = np.dtype(np.float32)
    whole = count // 16 * 16
    result = np.empty(count, np.float32)
    result[:whole] = _box_muller(uniform(twister, whole, single), mean, std)
    if whole != count:
        result[-16:] = _box_muller(uniform(twister, 16, single), mean, std)
    return result.astype(dtype)


def _box_muller(uniform: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Normal numbers from uniform ones, each sixteen for themselves."""
    dtype = uniform.dtype.type
    pairs = uniform.reshape(-1, 2, 8)
    radius = np.subtract(dtype(1), pairs[:, 0]).reshape(-1)
    np.log(radius, out=radius)
    radius *= dtype(-2)
    np.sqrt(radius, out=radius)
    if std != 1:
        radius *= dtype(std)
    angle = np.multiply(dtype(2 * math.pi), pairs[:, 1]).reshape(-1)
    result = np.empty_like(pairs)
    for half, turn in enumerate((np.cos, np.sin)):
        part = turn(angle)
        part *= radius
        if mean != 0:
            part += dtype(mean)
        result[:, half] = part.reshape(-1, 8)
    return result.reshape(-1)


def normal_pairs(twister: np.random.Generator, count: int, kept: float | None) -> tuple[np.ndarray, float | None]:
    """Standard normal float64, and the one that is left over; `kept` is the one that was left before."""
    if not count:
        return np.empty(0), kept
    before = np.empty(0) if kept is None else np.array([kept])
    wanted = count - len(before)
    drawn = uniform_float64(twister, 2 * ((wanted + 1) // 2))
    radius = np.sqrt(-2.0 * np.log1p(-drawn[1::2]))
    angle = 2.0 * math.pi * drawn[0::2]
    pairs = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1).reshape(-1)
    result = np.concatenate((before, pairs))
    return result[:count], float(result[count]) if len(result) > count else None


# ------------------------------------------------------------------------------------------------------------ integers


def integers(twister: np.random.Generator, low: int, high: int, count: int) -> np.ndarray:
    """Integers from `low` up to but not including `high`, as int64 (as uint64 where they are larger)."""
    width = high - low
    if width >= _WIDE:
        drawn = long_words(twister, count)
        if width < 1 << 64:
            drawn %= np.uint64(width)
    else:
        drawn = (words(twister, count) % np.uint32(width)).astype(np.uint64)
    if high > 1 << 63:
        return drawn + np.uint64(low)
    return drawn.view(np.int64) + np.int64(low)


def any_integers(twister: np.random.Generator, most: int, wide: bool, count: int) -> np.ndarray:
    """Integers from 0 to `most`, from one word each (from two if `wide`)."""
    if wide:
        return (long_words(twister, count) % np.uint64(most + 1)).view(np.int64)
    return (words(twister, count) % np.uint32(most + 1)).astype(np.int64)


def permutation(twister: np.random.Generator, n: int) -> np.ndarray:
    """The integers below `n` in random order."""
    draw = words if n < _SHORT else long_words
    steps = draw(twister, max(n - 1, 0)) % np.arange(n, 1, -1, dtype=np.uint64)
    partners = steps.astype(np.int64) + np.arange(len(steps))
    order = list(range(n))
    for i, j in enumerate(partners.tolist()):
        order[i], order[j] = order[j], order[i]
    return np.array(order, np.int64)


# ------------------------------------------------------------------------------------------------------------- dropout


def kept(twister: np.random.Generator, count: int, p: float) -> np.ndarray:
    """Bools that are true with probability `p`: where a uniform float64 is below it."""
    bits = long_words(twister, count)
    bits &= np.uint64((1 << 53) - 1)
    return bits < np.uint64(math.ceil(p * 2.0**53))


def dropout_mask(like: np.ndarray, p: float, twister: np.random.Generator) -> np.ndarray:
    """Zeros with probability `p`, and elsewhere what keeps the mean, ``1 / (1 - p)``, laid out as `like`."""
    dtype = like.dtype
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if dtype.kind == "c":
        unsupported("bernoulli_scalar_cpu_", dtype)
    if dtype.kind not in "fV":
        raise RuntimeError(f"result type Float can't be cast to the desired output type {scalar_name(dtype)}")
    if p == 1:
        return np.zeros(like.shape, dtype)
    mask = in_memory_order(like, lambda count: kept(twister, count, 1 - p))
    return np.multiply(mask, np.asarray(1 / (1 - p), dtype=dtype), dtype=dtype, casting="unsafe")


# -------------------------------------------------------------------------------------------------------------- layout


def in_memory_order(like: np.ndarray, draw: Callable[[int], np.ndarray]) -> np.ndarray:
    """``draw(number of elements)`` in the shape of `like`; the first draws come first in its memory."""
    drawn = draw(like.size)
    if like.flags.c_contiguous:
        return drawn.reshape(like.shape)
    order = sorted(range(like.ndim), key=lambda d: -abs(like.strides[d]))
    return drawn.reshape([like.shape[d] for d in order]).transpose(np.argsort(order))
