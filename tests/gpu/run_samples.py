"""Every sample of the database on a device: counts, and what fails by error. ``python -m gpu.run_samples`` in
tests/."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, defaultdict

from gpu.on_device import STEPS, compare
from retrograd.arrays import places
from retrograd.arrays.device_array import on_host
from samples import OPS, cases


def run(seconds: float = 1e9, part: tuple[int, int] = (0, 1)) -> dict:
    """All samples, or every n-th one; stops when the time is up."""
    chosen = [case for case in cases(OPS) if not case[0].missing_from(__import__("retrograd"))]
    # The first sample of every operator, then the second: when the time is up, each has had its turn.
    turn: Counter[str] = Counter()
    numbered = []
    for op, sample in chosen:
        turn[op.name] += 1
        numbered.append((turn[op.name], op, sample))
    chosen = [(op, sample) for _, op, sample in sorted(numbered, key=lambda entry: entry[0])][part[0] :: part[1]]
    began, done, failures = time.perf_counter(), 0, []
    passed: Counter[str] = Counter()
    skipped = 0
    bad_ops = set()
    hosted: dict[str, set[str]] = defaultdict(set)
    for op, sample in chosen:
        if time.perf_counter() - began > seconds:
            break
        before = dict(on_host)
        problems = compare(op, sample)
        for name, count in on_host.items():
            if count != before.get(name, 0):
                hosted[name].add(op.name)
        done += 1
        if "cpu" in problems:
            skipped += 1
        elif not problems:
            passed["samples"] += 1
        else:
            bad_ops.add(op.name)
            failures += [(op.name, sample.name, step, text) for step, text in problems.items()]
    return {
        "chosen": len(chosen), "done": done, "passed": passed["samples"], "not for us": skipped,
        "operators": len({op.name for op, _ in chosen}),
        "names": sorted({op.name for op, _ in chosen}),
        "operators failed": sorted(bad_ops), "failures": failures,
        "seconds": round(time.perf_counter() - began, 1), "steps": STEPS,
        "on host": {name: [count, sorted(hosted.get(name, ()))] for name, count in on_host.most_common()},
    }  # fmt: skip


def merged(parts: list[dict]) -> dict:
    """What several processes found, as one."""
    found = {**parts[0], "failures": [], "on host": {}}
    for name in ("chosen", "done", "passed", "not for us"):
        found[name] = sum(part[name] for part in parts)
    found["seconds"] = max(part["seconds"] for part in parts)
    found["names"] = sorted({name for part in parts for name in part["names"]})
    found["operators"] = len(found["names"])
    found["operators failed"] = sorted({name for part in parts for name in part["operators failed"]})
    for part in parts:
        found["failures"] += part["failures"]
        for name, (count, ops) in part["on host"].items():
            before, names = found["on host"].get(name, (0, []))
            found["on host"][name] = [before + count, sorted({*names, *ops})]
    found["on host"] = dict(sorted(found["on host"].items(), key=lambda item: -item[1][0]))
    return found


def summary(found: dict, most: int = 45, hosts: int = 40) -> str:
    """A few lines: counts, failures by error with an example each, what was computed on the host."""
    lines = [
        f"samples: {found['passed']} of {found['done']} pass ({found['chosen']} in all, {found['not for us']} not for "
        f"us); operators: {found['operators'] - len(found['operators failed'])} of {found['operators']} whole; "
        f"{found['seconds']} s"
    ]
    groups: dict[str, list] = defaultdict(list)
    for failure in found["failures"]:
        text = failure[3]
        key = text.partition(" @")[2] or text[:60]
        groups[f"{text.partition(':')[0]} @{key}"].append(failure)
    for _key, group in sorted(groups.items(), key=lambda item: -len(item[1]))[:most]:
        op, sample, step, text = group[0]
        names = sorted({f[0] for f in group})
        lines.append(f"{len(group):4} {text[:150]} | {op}[{sample}] {step} | {len(names)} ops: {' '.join(names)[:60]}")
    if len(groups) > most:
        lines.append(f"... and {len(groups) - most} more kinds")
    hosted = [f"{name} {count} ({' '.join(ops)[:30]})" for name, (count, ops) in list(found["on host"].items())[:hosts]]
    lines.append("on the host: " + ", ".join(hosted))
    return "\n".join(lines)


def main() -> None:
    simulate = "--simulate" in sys.argv
    step = int(next((a.partition("=")[2] for a in sys.argv if a.startswith("--every=")), 1))
    seconds = float(next((a.partition("=")[2] for a in sys.argv if a.startswith("--seconds=")), 1e9))
    if simulate:
        from gpu import simulated

        places.start(simulated.library(2))
    elif not places.start():
        raise SystemExit("no CUDA device: CuPy is not installed, or finds none")
    part = next((a.partition("=")[2] for a in sys.argv if a.startswith("--part=")), f"0/{step}").split("/")
    found = run(seconds, (int(part[0]), int(part[1])))
    to = next((a.partition("=")[2] for a in sys.argv if a.startswith("--to=")), None)
    if to:
        with open(to, "w") as file:
            json.dump(found, file, indent=1, default=str)
    print(summary(found))


if __name__ == "__main__":
    main()
