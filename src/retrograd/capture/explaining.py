"""What became of a captured call, in words."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .fusion import why_not
from .program import line_of


def explained(entry: Any) -> str:
    """Calls, memory, what was fused and what was not and why."""
    program = entry.recording.program
    plan = program.plan
    lines = [
        f"{program.recorded} calls were recorded; {program.dead} made what nobody reads, {program.folded} hang on "
        f"constants alone, {len(program.calls)} are replayed ({entry.backend}).",
        f"Memory for what is made on the way: {_size(plan.unplanned)} side by side, {_size(plan.arena)} as planned"
        + (f", {len(plan.registers)} arrays in registers alone." if plan.registers else "."),
        f"Arguments and gradients have {_size(entry.memory.nbytes - entry.memory.arena.nbytes)} of their own.",
    ]
    if entry.c_code is not None:
        fused = entry.c_code.fused
        lines.append(
            f"{len(entry.c_code.functions)} groups of calls are in C, {entry.c_code.shared} of their loops shared "
            f"among threads; {len(fused)} chains of elementwise calls became one loop each:"
        )
        for calls in fused[:20]:
            names_of = ", ".join([call.name for call in calls[:8]]) + (", …" if len(calls) > 8 else "")
            lines.append(f"    {names_of}  ({line_of(calls[0])})")
        reasons: Counter[str] = Counter()
        names: dict[str, list[str]] = {}
        for call in program.calls:
            reason = why_not(call)
            if reason is not None:
                reasons[reason] += 1
                names.setdefault(reason, [])
                if call.name not in names[reason]:
                    names[reason].append(call.name)
        for reason, count in reasons.most_common():
            shown = ", ".join(names[reason][:6]) + (", …" if len(names[reason]) > 6 else "")
            lines.append(f"Not in C: {count} calls ({shown}): {reason}.")
    else:
        kinds = Counter(call.kind for call in program.calls)
        lines.append(
            f"On NumPy, {kinds['ufunc'] + kinds['product'] + kinds['reduce'] + kinds['copy']} calls write to planned "
            f"memory (out=) and {kinds['opaque']} are kernels as a whole; nothing is fused without a C compiler."
        )
    return "\n".join(lines)


def _size(count: int) -> str:
    for scale, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} bytes"
