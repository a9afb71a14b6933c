"""Random numbers of a device: words of Philox4x32-10, made where they are used.

Block number i of a seed is four 32-bit words, a function of i and the seed alone, so that a device makes all of them at
once; how many were given out is the whole state (as in torch: the seed and an offset).  What becomes of the words is
said in kernels/random.py, as for the CPU's twister, in whose place a `Philox` stands.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .capturing import capture_of, refuse_if_captured

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_STEPS = 0x9E3779B9, 0xBB67AE85
_LOW = (1 << 32) - 1

_SOURCE = r"""
extern "C" __global__ void philox(
    unsigned int *words, unsigned long long count, unsigned long long first, unsigned long long seed
) {
    unsigned long long number = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (4 * number >= count) return;
    unsigned long long block = first + number;
    unsigned int c0 = block, c1 = block >> 32, c2 = 0, c3 = 0, k0 = seed, k1 = seed >> 32;
    for (int round = 0; round < 10; ++round) {
        unsigned long long p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
        c0 = (unsigned int)(p1 >> 32) ^ c1 ^ k0;
        c2 = (unsigned int)(p0 >> 32) ^ c3 ^ k1;
        c1 = p1;
        c3 = p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    unsigned int made[4] = {c0, c1, c2, c3};
    for (int i = 0; i < 4 && 4 * number + i < count; ++i) words[4 * number + i] = made[i];
}
"""


class Philox:
    """The stream of words of a seed; each device has a class of its own (`Place.words_class`)."""

    place: Any

    def __init__(self, seed: int, offset: int = 0) -> None:
        self.seed: int = seed
        #: How many words were given out, a multiple of four.
        self.offset: int = offset

    def words(self, count: int) -> Any:
        """`count` words, as an array of the device."""
        capture = capture_of(self.place)
        if capture is not None:
            return self._anew(capture, count)
        first = self.offset // 4
        self.offset += -(-count // 4) * 4
        place = self.place
        kernel = place.raw_kernel("philox", _SOURCE)
        if kernel is None or not count:
            return blocks(place.numpy, first, -(-count // 4), self.seed)[:count]
        made = place.empty((count,), np.dtype(np.uint32))
        threads = -(-count // 4)
        arguments = made.raw, np.uint64(count), np.uint64(first), np.uint64(self.seed)
        kernel((-(-threads // 256),), (256,), arguments)
        return made

    def _anew(self, capture: Any, count: int) -> Any:
        """Words that are drawn before each launch of the graph that is captured."""
        place = self.place
        made = place.wrap(capture.constant(np.zeros(count, np.uint32)))
        capture.before.append(lambda: made.__setitem__(Ellipsis, self.words(count)))
        return made

    # NumPy's names of draws that are no function of a few words each: by the library's generator, seeded from here.

    def binomial(self, n: Any, p: Any) -> Any:
        return self._by_library("binomial", n, p)

    def poisson(self, lam: Any) -> Any:
        return self._by_library("poisson", lam)

    def standard_gamma(self, shape: Any) -> Any:
        return self._by_library("standard_gamma", shape)

    def standard_exponential(self, size: tuple[int, ...]) -> Any:
        words = self.words(2 * math.prod(size)).reshape(-1, 2).astype(np.uint64)
        uniform = ((words[:, 0] << np.uint64(21)) ^ words[:, 1]).astype(np.float64) * 2.0**-53
        return -self.place.numpy.log1p(-uniform).reshape(size)

    def _by_library(self, name: str, *parameters: Any) -> Any:
        place = self.place
        refuse_if_captured(place, f"{name}, which another generator draws", "Draw before the capture")
        seed = int(np.random.SeedSequence([self.seed, self.offset]).generate_state(1, np.uint64)[0] >> 1)
        self.offset += 4
        random = place.module.random
        if random is np.random:  # a simulated library
            return place.by_host(getattr(np.random.default_rng(seed), name), parameters, {})
        place.activate()
        made = random.Generator(random.Philox4x3210(seed))
        return place.wrap(getattr(made, name)(*[place.numpy.asarray(one).raw for one in parameters]))


def blocks(numpy: Any, first: int, count: int, seed: int) -> Any:
    """The words of blocks from `first` on, by operations on arrays: what the kernel above does.

    >>> [hex(word) for word in blocks(np, 0, 1, 0)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    low, half = np.uint64(_LOW), np.uint64(32)
    block = numpy.arange(first, first + count, dtype=np.uint64)
    c0, c1 = block & low, block >> half
    c2 = c3 = numpy.zeros_like(block)
    k0, k1 = seed & _LOW, seed >> 32
    for _ in range(10):
        p0, p1 = c0 * np.uint64(_MULTIPLIERS[0]), c2 * np.uint64(_MULTIPLIERS[1])
        c0, c2 = (p1 >> half) ^ c1 ^ np.uint64(k0), (p0 >> half) ^ c3 ^ np.uint64(k1)
        c1, c3 = p1 & low, p0 & low
        k0, k1 = (k0 + _STEPS[0]) & _LOW, (k1 + _STEPS[1]) & _LOW
    return numpy.stack([c0, c1, c2, c3], 1).reshape(-1).astype(np.uint32)
