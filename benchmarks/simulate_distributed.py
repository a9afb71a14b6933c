"""What data-parallel training takes on many ranks, by arithmetic and by simulation.

    python benchmarks/simulate_distributed.py [--ranks 8 64 512] [--forward 1.0 --backward 2.0 --parameters 25e6]

**The network** is that of Hockney: a message of s bytes takes latency + s / bandwidth. A sum over n ranks is made by
parts: each rank adds up one n-th of the array and sends it to all, so that everyone sends and gets 2 (n - 1) / n of
it, in 2 (n - 1) messages around a ring, or in 2 log2(n) by halves; the faster one is taken.

**A step** computes forward, then backward, layer by layer from the last one. When the gradients of a bucket are
there, it joins the queue of the network, which sums one bucket at a time. The step is over when backward and the last
sum are. Ranks do not take equally long: each takes a time drawn around the mean, and a sum begins when the slowest
has come.

**By arithmetic**: backward hides what it can of the communication but that of the last bucket, so a step takes
forward + max(backward, first bucket + communication), or backward and the last bucket, if that is more.
"""

from __future__ import annotations

import argparse
import math
import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Network:
    """Between ranks: seconds, and bytes per second."""

    name: str
    latency: float
    bandwidth: float

    def sum_time(self, size: float, ranks: int) -> float:
        """Seconds for a sum of `size` bytes over all ranks."""
        if ranks == 1:
            return 0.0
        messages = min(2 * (ranks - 1), 2 * math.ceil(math.log2(ranks)))
        return messages * self.latency + 2 * (ranks - 1) / ranks * size / self.bandwidth


NETWORKS = (
    Network("10 Gb/s Ethernet", 30e-6, 1.1e9),
    Network("100 Gb/s InfiniBand", 2e-6, 11e9),
    Network("1 Gb/s Ethernet", 60e-6, 0.11e9),
)


@dataclass(frozen=True)
class Step:
    """What one rank does in a step."""

    forward: float
    backward: float
    layers: int
    gradient_bytes: float
    bucket_bytes: float = 25 * 2**20
    spread: float = 0.0  # how much times of ranks differ, as a part of the mean

    def buckets(self) -> list[tuple[float, float]]:
        """When each bucket is full, as a part of backward, and its bytes. The first one has a megabyte."""
        found, each, filled = [], self.gradient_bytes / self.layers, 0.0
        for layer in range(1, self.layers + 1):
            filled += each
            limit = min(2**20, self.bucket_bytes) if not found else self.bucket_bytes
            if filled >= limit or layer == self.layers:
                found.append((layer / self.layers, filled))
                filled = 0.0
        return found


def simulate(step: Step, network: Network, ranks: int, overlap: bool = True, seed: int = 0) -> float:
    """Seconds of one step."""
    draw = random.Random(seed)
    slowest = max(max(0.2, draw.gauss(1.0, step.spread)) for _ in range(ranks)) if step.spread else 1.0
    compute_end = (step.forward + step.backward) * slowest
    free = 0.0
    for when, size in step.buckets():
        ready = (step.forward + step.backward * when) * slowest if overlap else compute_end
        free = max(free, ready) + network.sum_time(size, ranks)
    return max(compute_end, free)


def arithmetic(step: Step, network: Network, ranks: int) -> float:
    """A lower bound of the same, in one line."""
    buckets = step.buckets()
    total = sum(network.sum_time(size, ranks) for _, size in buckets)
    last = network.sum_time(buckets[-1][1], ranks)
    return step.forward + max(step.backward + last, step.backward * buckets[0][0] + total)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="*", default=[8, 64, 512])
    parser.add_argument("--forward", type=float, default=1.0, help="seconds")
    parser.add_argument("--backward", type=float, default=2.0, help="seconds")
    parser.add_argument("--parameters", type=float, default=25e6)
    parser.add_argument("--layers", type=int, default=50)
    parser.add_argument("--spread", type=float, default=0.02)
    asked = parser.parse_args()
    alone = asked.forward + asked.backward
    print(f"{asked.parameters / 1e6:g} million parameters, {asked.layers} layers, {alone:g} s a step on one rank; "
          f"times of ranks differ by {asked.spread:.0%}\n")  # fmt: skip
    print("| network | gradients | ranks | communication | by arithmetic | simulated | without overlap | efficiency |")
    print("|---|---|---|---|---|---|---|---|")
    for network in NETWORKS:
        for kind, itemsize in (("float32", 4), ("float16", 2)):
            for ranks in asked.ranks:
                even = Step(asked.forward, asked.backward, asked.layers, asked.parameters * itemsize)
                uneven = Step(even.forward, even.backward, even.layers, even.gradient_bytes, spread=asked.spread)
                total = sum(network.sum_time(size, ranks) for _, size in even.buckets())
                simulated = sum(simulate(uneven, network, ranks, seed=seed) for seed in range(20)) / 20
                late = sum(simulate(uneven, network, ranks, False, seed) for seed in range(20)) / 20
                print(f"| {network.name} | {kind} | {ranks} | {total:.3f} s | {arithmetic(even, network, ranks):.3f} s "
                      f"| {simulated:.3f} s | {late:.3f} s | {alone / simulated:.0%} |")  # fmt: skip


if __name__ == "__main__":
    main()
