"""Answers to what people ask of a graph: each is a headline, and items with nodes and lines for the page to mark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .events import DONE, GRAD, RUN
from .values import INF, NAN, WORDS

#: An item: ``{"text": ..., "nodes": [...], "line": number of a line or -1, "cut": number of a cut or None}``.
Item = dict[str, Any]
Answer = dict[str, Any]


def answers(run: dict[str, Any], reasons: dict[int, str]) -> list[Answer]:
    """All answers for one run. `reasons` has words for leaves that were not reached, by node."""
    return [_no_gradient(run, reasons), _memory(run), _nan(run)]


def _item(text: str, nodes: Sequence[int] = (), line: int = -1, cut: int | None = None) -> Item:
    return {"text": text, "nodes": list(nodes), "line": line, "cut": cut}


def _place(run: dict[str, Any], line: int) -> str:
    if line < 0:
        return "line not known"
    file, number, _ = run["lines"][line]
    return f"{run['files'][file]['name'].rpartition('/')[2]}:{number}"


def _name(run: dict[str, Any], node: int) -> str:
    nodes = run["nodes"]
    label = nodes["label"][node]
    if nodes["kind"][node] == 1:
        return label or "a leaf"
    return run["ops"][nodes["op"][node]] + (f" ({label})" if label else "")


# ------------------------------------------------------------------------------------------------------- no gradient


def _no_gradient(run: dict[str, Any], reasons: dict[int, str]) -> Answer:
    """Which leaves get none, and where they were cut off."""
    items = []
    for leaf, reason in reasons.items():
        found = [(number, cut) for number, cut in enumerate(run["cuts"]) if leaf in cut["leaves"]]
        # A cut that the graph goes on behind is the reason; others may be about something else.
        used = [pair for pair in found if pair[1]["users"]] or found
        for number, cut in used:
            items.append(
                _item(
                    f"{_name(run, leaf)}: cut off by {cut['why']} at {_place(run, cut['line'])}",
                    [leaf, *cut["users"]],
                    cut["line"],
                    number,
                )
            )
        if not used:
            items.append(_item(f"{_name(run, leaf)}: {reason}", [leaf]))
    count = len(reasons)
    text = "Every leaf that is known here gets a gradient."
    if count:
        text = f"{count} {'leaf gets' if count == 1 else 'leaves get'} no gradient."
    return {"id": "no-gradient", "question": "Why has this leaf no gradient?", "answer": text, "items": items}


# ------------------------------------------------------------------------------------------------------------- memory


def human(size: float) -> str:
    """Bytes, readable.

    >>> human(2048), human(3), human(5 * 1024**3)
    ('2.0 KiB', '3 B', '5.0 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def _memory(run: dict[str, Any]) -> Answer:
    """Lines by the bytes that their nodes saved; each storage counts once, the leaves' own not at all."""
    nodes = run["nodes"]
    by_line: dict[int, list[int]] = {}
    for node, size in enumerate(nodes["bytes"]):
        if size:
            by_line.setdefault(nodes["line"][node], []).append(node)
    sizes = {line: sum(nodes["bytes"][node] for node in group) for line, group in by_line.items()}
    total = sum(sizes.values())
    items = []
    for line in sorted(sizes, key=lambda line: -sizes[line])[:50]:
        group = by_line[line]
        what = sorted({run["ops"][nodes["op"][node]] for node in group})
        share = 100 * sizes[line] / total
        names = ", ".join(what[:3]) + (" …" if len(what) > 3 else "")
        items.append(
            _item(f"{human(sizes[line])} ({share:.0f} %) {_place(run, line)}: {names}", group, line)
        )
    text = f"{human(total)} are saved for backward" + (", the leaves' own values not counted." if total else ".")
    return {"id": "memory", "question": "What keeps the memory?", "answer": text, "items": items}


# ---------------------------------------------------------------------------------------------------------------- NaN


def _nan(run: dict[str, Any]) -> Answer:
    """The first node whose result, or whose gradient, is not finite although what it got is."""
    nodes = run["nodes"]
    items = []
    forward = [
        node
        for node, flags in enumerate(nodes["flags"])
        if flags & ~nodes["flags_in"][node] and not nodes["flags_in"][node] & NAN
    ]
    for node in sorted(forward, key=lambda node: nodes["seq"][node])[:5]:
        words = WORDS[nodes["flags"][node]]
        items.append(
            _item(
                f"Forward: the result of {_name(run, node)} at {_place(run, nodes['line'][node])} has {words}, and no "
                "input of it has.",
                [node],
                nodes["line"][node],
            )
        )
    items += _nan_in_run(run)
    if not items:
        seen = "and no recorded gradient" if run.get("events") else "(a recorded run tells of the gradients, too)"
        return {
            "id": "nan",
            "question": "Where did the NaN come from?",
            "answer": f"There is none: no watched result {seen} has a NaN or an infinity.",
            "items": [],
        }
    return {
        "id": "nan",
        "question": "Where did the NaN come from?",
        "answer": f"It begins at {_name(run, items[0]['nodes'][0])}, {_place(run, items[0]['line'])}.",
        "items": items,
    }


def _nan_in_run(run: dict[str, Any]) -> list[Item]:
    events = run.get("events")
    if not events:
        return []
    nodes, came_in, items = run["nodes"], {}, []
    norms: dict[int, float | None] = {}
    what = "tangent" if run["kind"] == "forward" else "gradient"
    for kind, about, flags, norm in zip(events["type"], events["about"], events["flags"], events["norm"]):
        if kind == RUN:
            came_in[about], norms[about] = flags, norm
        elif flags and (kind == DONE or (kind == GRAD and what == "gradient")):
            node = run["edges"]["from"][about] if kind == GRAD else about
            before = came_in.get(node, 0)
            if flags & ~before and not before & NAN:
                came_in[node] = before | flags
                op = nodes["op"][node]
                text = (
                    f"{'Forward' if what == 'tangent' else 'Backward'}: {_name(run, node)} at "
                    f"{_place(run, nodes['line'][node])} is the first to give {WORDS[flags]}; the {what} that came in "
                    f"is finite{'' if norms.get(node) is None else f' (norm {norms[node]})'}."
                )
                formula = run["formulas"].get(op)
                if formula and what == "gradient":
                    text += f" Its formula: {formula.replace(chr(10), '; ')}"
                    zero = any(row[4] & INF for row in nodes["saved"][node] or ())
                    if flags & NAN:
                        text += (
                            " — what it saved has an infinity." if zero else
                            " — a derivative that is infinite, times a gradient that is 0, is NaN: keep such elements "
                            "out with torch.where before the operation."
                        )  # fmt: skip
                items.append(_item(text, [node], nodes["line"][node]))
                if len(items) == 3:
                    break
    return items
