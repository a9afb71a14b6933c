"""Random numbers from the bits of a Mersenne twister, by the rules that torch has on the CPU.

A seed gives torch's own numbers, so that a program gives not only the same mathematics but the same run. The twister
is NumPy's; it is asked for its 32-bit words, and what becomes of them is written here:

* a uniform float32 (and whatever is narrower, which is rounded from it) takes the low 24 bits of one word, a float64
  the low 53 bits of two;
* between other bounds than 0 and 1 it is multiplied and added to with one rounding (`spread`);
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
from typing import Any

import numpy as np

from .arithmetic import multiply_add
from .compiled import SHARED, drawn
from .promotion import scalar_name, unsupported

__all__ = [
    "below", "dirichlet_drawn", "dirichlet_grad", "dropout_mask", "spread", "standard_gamma_drawn",
    "standard_gamma_grad",
]  # fmt: skip

#: Fewer words than this are not worth the setting up of `Generator.integers`.
_FEW = 500
#: What is drawn at a time, so that it stays in the cache while it is worked on; a multiple of 16.
_BLOCK = 1 << 16
#: Eight numbers of a size, to be moved as one thing.
_EIGHT = {size: np.dtype((np.void, 8 * size)) for size in (4, 8)}
#: From this many integers to choose from on, one word would favour the lower ones too much.
_WIDE = 1 << 28
#: Up to this many elements are swapped faster one by one.
_SHORT_LIST = 300
#: Permutations up to this length take one word per element.
_SHORT = (1 << 32) // 20


def words(twister: np.random.Generator, count: int) -> np.ndarray:
    """`count` 32-bit words."""
    if count < _FEW:
        return twister.bit_generator.random_raw(count).astype(np.uint32)
    if count > SHARED and drawn(twister, out := np.empty(count, np.uint32)):
        return out
    return twister.integers(0, 1 << 32, count, np.uint32)


def long_words(twister: np.random.Generator, count: int) -> np.ndarray:
    """`count` 64-bit words; the upper half of each is drawn first."""
    if count < _FEW:
        halves = twister.bit_generator.random_raw(2 * count)
        return (halves[0::2] << np.uint64(32)) | halves[1::2]
    if count > SHARED and drawn(twister, out := np.empty(count, np.uint64)):
        return out
    return twister.integers(0, 1 << 64, count, np.uint64)


def uniform_float32(twister: np.random.Generator, count: int) -> np.ndarray:
    drawn = np.empty(count, np.float32)
    for start in range(0, count, _BLOCK):
        part = drawn[start : start + _BLOCK]
        bits = words(twister, len(part))
        bits &= np.uint32((1 << 24) - 1)
        part[...] = bits.view(np.int32)  # signed ones are converted by one instruction
        part *= np.float32(2.0**-24)
    return drawn


def uniform_float64(twister: np.random.Generator, count: int) -> np.ndarray:
    drawn = np.empty(count)
    for start in range(0, count, _BLOCK):
        part = drawn[start : start + _BLOCK]
        bits = long_words(twister, len(part))
        bits &= np.uint64((1 << 53) - 1)
        part[...] = bits.view(np.int64)
        part *= 2.0**-53
    return drawn


def uniform(twister: np.random.Generator, count: int, dtype: np.dtype) -> np.ndarray:
    """Uniform numbers in [0, 1)."""
    if dtype == np.float64:
        return uniform_float64(twister, count)
    drawn = uniform_float32(twister, count)
    return drawn if dtype == np.float32 else below(drawn.astype(dtype), 0, 1)


def spread(drawn: np.ndarray, low: float, high: float) -> np.ndarray:
    """Numbers of [0, 1) in [low, high): ``drawn * (high - low) + low``, rounded once."""
    number = drawn.dtype.type
    start = number(low)
    return multiply_add(drawn, number(high) - start, start)


def below(drawn: np.ndarray, low: float, high: float) -> np.ndarray:
    """Numbers of [low, high), where rounding may have made `high` of them, which become `low`."""
    at_the_end = drawn == drawn.dtype.type(high)
    if at_the_end.any():
        drawn[at_the_end] = low
    return drawn


# ------------------------------------------------------------------------------------------------------------- normals


def normal_blocks(twister: np.random.Generator, count: int, mean: float, std: float, dtype: np.dtype) -> np.ndarray:
    """Sixteen normal numbers or more: see the top of the file."""
    made_in = dtype if dtype == np.float64 else np.dtype(np.float32)
    result = np.empty(count, made_in)
    whole = count // 16 * 16
    for start in range(0, whole, _BLOCK):
        part = result[start : min(start + _BLOCK, whole)]
        _box_muller(uniform(twister, len(part), made_in), mean, std, part)
    if whole != count:
        if made_in == dtype:  # the rest is drawn, and then drawn again with those before it
            uniform(twister, count - whole, made_in)
        _box_muller(uniform(twister, 16, made_in), mean, std, result[-16:])
    return result.astype(dtype, copy=False)


def _box_muller(uniform: np.ndarray, mean: float, std: float, result: np.ndarray) -> None:
    """Normal numbers from uniform ones, each sixteen for themselves."""
    dtype = uniform.dtype.type
    eight = _EIGHT[uniform.itemsize]
    halves = uniform.view(eight).reshape(-1, 2)
    radius, angle = halves[:, 0].copy().view(dtype), halves[:, 1].copy().view(dtype)
    np.subtract(dtype(1), radius, out=radius)
    np.log(radius, out=radius)
    radius *= dtype(-2)
    np.sqrt(radius, out=radius)
    if std != 1:
        radius *= dtype(std)
    angle *= dtype(2 * math.pi)
    places = result.view(eight).reshape(-1, 2)
    for half, turn in enumerate((np.cos, np.sin)):
        part = turn(angle)
        part *= radius
        if mean != 0:
            part += dtype(mean)
        places[:, half] = part.view(eight)


def normal_pairs(twister: np.random.Generator, count: int, kept: float | None) -> tuple[np.ndarray, float | None]:
    """Standard normal float64, and the one that is left over; `kept` is the one that was left before."""
    if not count:
        return np.empty(0), kept
    before = np.empty(0) if kept is None else np.array([kept])
    wanted = count - len(before)
    if wanted <= 16:  # arrays are not worth it
        few = [*before.tolist(), *_few_pairs(twister, (wanted + 1) // 2)]
        return np.array(few[:count]), few[count] if len(few) > count else None
    drawn = uniform_float64(twister, 2 * ((wanted + 1) // 2))
    radius = np.sqrt(-2.0 * np.log1p(-drawn[1::2]))
    angle = 2.0 * math.pi * drawn[0::2]
    pairs = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1).reshape(-1)
    result = np.concatenate((before, pairs))
    return result[:count], float(result[count]) if len(result) > count else None


def _few_pairs(twister: np.random.Generator, pairs: int) -> list[float]:
    """Twice as many standard normal numbers as there are pairs."""
    bits = iter(twister.bit_generator.random_raw(4 * pairs).tolist())
    result: list[float] = []
    for upper in bits:
        angle = 2.0 * math.pi * (((upper << 32 | next(bits)) & ((1 << 53) - 1)) * 2.0**-53)
        radius = math.sqrt(-2.0 * math.log1p(-((next(bits) << 32 | next(bits)) & ((1 << 53) - 1)) * 2.0**-53))
        result += (radius * math.cos(angle), radius * math.sin(angle))
    return result


# ------------------------------------------------------------------------------------------------------------ integers


def integers(twister: np.random.Generator, low: int, high: int, count: int) -> np.ndarray:
    """Integers from `low` up to but not including `high`, as int64 (as uint64 where they are larger)."""
    width = high - low
    if width >= _WIDE:
        drawn = long_words(twister, count)
        if width < 1 << 64:
            drawn %= np.uint64(width)
    else:
        drawn = _remainders(words(twister, count), width).astype(np.uint64)
    if high > 1 << 63:
        return drawn + np.uint64(low)
    drawn = drawn.view(np.int64)
    if low != 0:
        drawn += np.int64(low)
    return drawn


def _remainders(bits: np.ndarray, width: int) -> np.ndarray:
    """``bits % width``, by a division, which is a product where the divisor is one number."""
    quotient = bits // np.uint32(width)
    quotient *= np.uint32(width)
    bits -= quotient
    return bits


def any_integers(twister: np.random.Generator, most: int, wide: bool, count: int) -> np.ndarray:
    """Integers from 0 to `most`, from one word each (from two if `wide`)."""
    if wide:
        return (long_words(twister, count) % np.uint64(most + 1)).view(np.int64)
    return _remainders(words(twister, count), most + 1).astype(np.int64)


def permutation(twister: np.random.Generator, n: int) -> np.ndarray:
    """The integers below `n` in random order."""
    draw, dtype = (words, np.uint32) if n < _SHORT else (long_words, np.uint64)
    steps = draw(twister, max(n - 1, 0)) % np.arange(n, 1, -1, dtype=dtype)
    partners = steps.astype(np.int64)
    partners += np.arange(len(steps))
    if n > _SHORT_LIST:
        return _swapped(partners, n)
    order = list(range(n))
    for i, j in enumerate(partners.tolist()):
        order[i], order[j] = order[j], order[i]
    return np.array(order, np.int64)


def _swapped(partners: np.ndarray, n: int) -> np.ndarray:
    """0 … n-1 after the swaps of i with partners[i] >= i, for i = 0, 1, …, all at once.

    Step i leaves at i, for good, what its partner holds then. That is what the last step before it with the same
    partner has put there: what that step, k, found at its own place. And what k finds at k is what the last
    step with the partner k found at its own, and so on; where there is no such step, the number that was there first.
    """
    places = np.arange(n - 1)
    found = np.arange(n)  # whose find step k finds at k; its own number, where nobody has put anything there
    others = partners != places
    found[partners[others]] = places[others]  # of several, the last
    while True:
        further = found[found]
        if np.array_equal(further, found):
            break
        found = further
    # Steps in the order of their partners, and then of themselves.
    key = partners << 32
    key |= places
    key.sort()
    step, partner = key & ((1 << 32) - 1), key >> 32
    again = np.flatnonzero(partner[1:] == partner[:-1])
    result = np.empty(n, np.int64)
    result[:-1] = partners
    result[step[again + 1]] = found[step[again]]
    # The last place is no step's own: it keeps what the last step with it for a partner put there.
    result[-1] = found[n - 1]
    return result


# ------------------------------------------------------------------------------------------------------------- dropout


def kept(twister: np.random.Generator, count: int, p: float) -> np.ndarray:
    """Bools that are true with probability `p`: where a uniform float64 is below it."""
    bits = long_words(twister, count)
    bits &= np.uint64((1 << 53) - 1)
    return bits < np.uint64(_limit(p))


def _limit(p: float) -> int:
    """Of the words of 53 bits those below it are a part of `p`."""
    return math.ceil(p * 2.0**53)


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
    if dtype.char in "fd" and like.flags.c_contiguous and like.size > SHARED:
        whole = np.empty(like.shape, dtype)
        if drawn(twister, whole, _limit(1 - p), 1 / (1 - p)):
            return whole
    mask = in_memory_order(like, lambda count: kept(twister, count, 1 - p))
    return np.multiply(mask, np.asarray(1 / (1 - p), dtype=dtype), dtype=dtype, casting="unsafe")


# -------------------------------------------------------------------------------------------------------------- layout


def in_memory_order(like: np.ndarray, draw: Callable[[int], np.ndarray]) -> np.ndarray:
    """``draw(number of elements)`` in the shape of `like`; the first draws come first in its memory."""
    drawn = draw(like.size)
    if like.flags.c_contiguous:
        return drawn.reshape(like.shape)
    order = sorted(range(like.ndim), key=lambda d: -abs(like.strides[d]))
    return drawn.reshape([like.shape[d] for d in order]).transpose(sorted(range(like.ndim), key=order.__getitem__))


# ------------------------------------------------------------------------------------------ derivatives of draws
#
# A draw x of a distribution with the parameter a moves with a so that its probability F(x; a) stays what it is:
# dx/da = -(dF/da) / f. With c, the mean of log T, that is
#
#     the integral from 0 to x of f(t) / f(x) (c - log t) dt  =  the integral beyond x of f(t) / f(x) (log t - c) dt
#
# for gamma and beta distributions alike. One of the two has no change of sign: the first where log x <= c, the second
# elsewhere, so that no digits are lost. Where x is so small that the second has its weight at a smaller scale still, a
# power series in x gives the same.

_PANELS = 32
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def _integral(exponent: Any, factor: Any, like: np.ndarray) -> np.ndarray:
    """The integral from 0 to infinity of ``factor(v) * exp(-exponent(v))``, element by element.

    On panels that double in length, so that what the integrand does close to 0 is seen at its own scale.
    """
    end = np.full_like(like, 2.0**-20)
    for _ in range(80):
        short = exponent(end) < 40
        if not short.any():
            break
        end = np.where(short, 2 * end, end)
    total = np.zeros_like(like)
    high = end
    for panel in range(_PANELS):
        low = np.zeros_like(end) if panel == _PANELS - 1 else high / 2
        half = (high - low) / 2
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            v = low + half * (1 + node)
            total += weight * half * factor(v) * np.exp(-exponent(v))
        high = low
    return total


def standard_gamma_grad(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The derivative by `a` of a draw `x` of the gamma distribution with the concentration `a` and the rate 1."""
    from scipy import special

    dtype = x.dtype
    a, x = (np.asarray(v, np.float64) for v in np.broadcast_arrays(a, x))
    result = np.full(x.shape, np.nan)
    usual = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    result[(a > 0) & (x == 0)] = 0
    with np.errstate(over="ignore", under="ignore"):
        series = usual & (a <= 20) & (x <= a + 1)
        result[series] = _gamma_series(a[series], x[series])
        c = special.digamma(np.where(usual, a, 1.0))
        below = np.log(np.where(usual, x, 1.0)) <= c
        for chosen, sign in ((usual & ~series & below, -1), (usual & ~series & ~below, 1)):
            b, y = a[chosen], x[chosen]
            if not b.size:
                continue
            gap = np.log(y) - c[chosen]
            # t = y exp(sign v)
            result[chosen] = _integral(
                lambda v, b=b, y=y, sign=sign: y * np.expm1(sign * v) - sign * b * v,
                lambda v, y=y, gap=gap, sign=sign: y * (v + sign * gap),
                y,
            )
    return result.astype(dtype)


def _gamma_series(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    # F = f x / a (1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ...), and its derivative by a
    from scipy import special

    term, harmonic = np.ones_like(x), np.zeros_like(x)
    total, slope = np.ones_like(x), np.zeros_like(x)
    for n in range(1, 200):
        term = term * (x / (a + n))
        harmonic = harmonic + 1 / (a + n)
        total, slope = total + term, slope + term * harmonic
        if not (term > 1e-18 * total).any():
            break
    return -(x / a) * (total * (np.log(x) - special.digamma(a + 1)) - slope)


def _beta_grad(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The derivative by `a` of a draw `x` of the beta distribution with the concentrations `a` and `b`."""
    from scipy import special

    x, a, b = np.broadcast_arrays(x, a, b)
    result = np.full(x.shape, np.nan)
    fine = (a > 0) & (b > 0) & np.isfinite(a) & np.isfinite(b)
    result[fine & ((x == 0) | (x == 1))] = 0
    usual = fine & (x > 0) & (x < 1)
    with np.errstate(over="ignore", under="ignore"):
        one = np.where(usual, a, 1.0)
        c = special.digamma(one) - special.digamma(one + np.where(usual, b, 1.0))
        gap = np.log(np.where(usual, x, 0.5)) - c
        series = usual & (x <= 0.5) & (b * x <= 1)
        result[series] = _beta_series(x[series], a[series], b[series], gap[series])
        rest = usual & ~series
        for chosen, one_sided in ((rest & (gap <= 0), _beta_below), (rest & (gap > 0), _beta_above)):
            if chosen.any():
                result[chosen] = one_sided(x[chosen], a[chosen], b[chosen], gap[chosen])
    return result


def _beta_below(x: np.ndarray, a: np.ndarray, b: np.ndarray, gap: np.ndarray) -> np.ndarray:
    rest = np.log1p(-x)  # t = x exp(-v)
    return _integral(
        lambda v: a * v - (b - 1) * (np.log1p(-x * np.exp(-v)) - rest),
        lambda v: x * (v - gap),
        x,
    )


def _beta_above(x: np.ndarray, a: np.ndarray, b: np.ndarray, gap: np.ndarray) -> np.ndarray:
    def further(v: np.ndarray) -> np.ndarray:  # log(t / x), where 1 - t = (1 - x) exp(-v)
        return np.log1p(-np.expm1(-v) * (1 - x) / x)

    return _integral(
        lambda v: b * v - (a - 1) * further(v),
        lambda v: (1 - x) * (gap + further(v)),
        x,
    )


def _beta_series(x: np.ndarray, a: np.ndarray, b: np.ndarray, gap: np.ndarray) -> np.ndarray:
    # F = x^a / B (c0 / a + c1 x / (a + 1) + ...), where (1 - t)^(b - 1) = c0 + c1 t + ...
    term = np.ones_like(x)
    total, slope = 1 / a, 1 / (a * a)
    for n in range(1, 400):
        term = term * (x * (n - b) / n)
        total, slope = total + term / (a + n), slope + term / (a + n) ** 2
        if not (np.abs(term) > 1e-18).any():
            break
    return -x * np.exp((1 - b) * np.log1p(-x)) * (gap * total - slope)


def dirichlet_grad(x: np.ndarray, alpha: np.ndarray, total: np.ndarray) -> np.ndarray:
    """The derivative of one part of a Dirichlet draw by its concentration, over one minus that part.

    The others share what is left over as they did, so this is all that a gradient needs.
    """
    parts, one = np.asarray(x, np.float64), np.asarray(alpha, np.float64)
    slope = _beta_grad(parts, one, np.asarray(total, np.float64) - one)
    return np.divide(slope, 1 - parts, out=np.zeros_like(slope), where=parts != 1).astype(x.dtype)


def standard_gamma_drawn(a: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """What was drawn: the operator stands for the draw in the graph."""
    return drawn.copy()


def dirichlet_drawn(a: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """What was drawn: the operator stands for the draw in the graph."""
    return drawn.copy()
