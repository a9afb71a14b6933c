"""``python -m wrong_calls`` (in ``tests/``, with ``PYTHONPATH=../src:.``): the figures, with torch beside us.

With the name of a class (leak, accepted ...) or of functions it prints the calls; ``names`` writes `names.txt` anew.
"""

from __future__ import annotations

import sys
import time
from collections import Counter

import torch

from wrong_calls.base_calls import NAMES, base_calls, public_names
from wrong_calls.mutations import wrong_calls
from wrong_calls.outcomes import CLASSES, classes, compared


def main(words: list[str]) -> None:
    """Print the figures, and the calls that `words` ask for."""
    torch.set_num_threads(1)
    if words == ["names"]:
        NAMES.write_text("\n".join(public_names(torch)) + "\n")
        return
    functions = set(words) - set(CLASSES)
    kinds = set(words) & set(CLASSES) or set(CLASSES)
    start = time.time()
    calls = [call for name, samples in base_calls().items() for call in wrong_calls(name, samples)]
    calls = [call for call in calls if not functions or call.name in functions]
    counts: Counter[str] = Counter()
    refused = 0
    for call, theirs, ours in compared(torch, calls):
        refused += theirs.refused
        for found in classes(call, theirs, ours):
            counts[found] += 1
            if words and found in kinds:
                print(found, call, f"torch: {theirs.kind} {theirs.message[:90]!r}", sep="\t", end="\t")
                print(f"ours: {ours.kind} {ours.message[:160]!r}")
    print(f"{len(calls)} wrong calls of {len({c.name for c in calls})} functions, of which torch refuses {refused}")
    print(", ".join(f"{counts[kind]} {kind}" for kind in CLASSES), f"({time.time() - start:.0f} s)")


if __name__ == "__main__":
    main(sys.argv[1:])
