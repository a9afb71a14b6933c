"""Pictures of graphs and of moments of their runs, as the explorer shows them, written without a browser.

What is drawn is the data of an explorer's page (`retrograd.explorer.Page.runs`), with the explorer's own style sheets.
Its page lays graphs out in the browser; here they are small, and thirty lines of layers do: leaves on top, as values
flow down, each node one layer above what uses it, and lines that pass layers bend around what is there.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Sequence
from importlib.resources import files
from itertools import pairwise
from typing import Any

from retrograd.explorer import events as ev
from retrograd.explorer.graph import CUSTOM, INPUT, LEAF
from retrograd.explorer.values import WORDS

BOX_HEIGHT, GAP_X, GAP_Y, MARGIN = 48, 26, 34, 12
IDLE, FILLING, READY, RUNNING, DONE, FAILED = range(6)


def draw(name: str, what: Any) -> str:
    """An SVG of a page of the explorer, or of the moment ``(page, share)`` of its run."""
    page, share = what if isinstance(what, tuple) else (what, None)
    parts = [_Drawing(f"{name}-{number}", _connected(run), share) for number, run in enumerate(page.runs)]
    width = sum(part.width for part in parts) + 40 * (len(parts) - 1)
    height = max(part.height for part in parts)
    body, left = [], 0.0
    for part in parts:
        body.append(f'<g transform="translate({left:.1f},{height - part.height:.1f})">{part.svg()}</g>')
        left += part.width + 40
    title = html.escape(page.title)
    return (
        f'<svg class="picture" role="img" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}"><title>{title}</title>{"".join(body)}</svg>'
    )


def style() -> str:
    """The explorer's colours, light and dark, for a page of the site, and its rules for pictures."""
    assets = files("retrograd.explorer").joinpath("assets")
    sheet = assets.joinpath("style.css").read_text(encoding="utf-8")
    light, dark = (_variables(sheet, start) for start in (":root {", ':root[data-theme="dark"] {'))
    where = ".picture, .chart"
    rules = assets.joinpath("picture.css").read_text(encoding="utf-8")
    return (
        f"{where} {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ body:not([data-theme='light']) :is({where}) {{ {dark} }} }}\n"
        f"body[data-theme='dark'] :is({where}) {{ {dark} }}\n{rules}"
    )


def _variables(sheet: str, start: str) -> str:
    block = sheet.partition(start)[2].partition("}")[0]
    return " ".join(re.findall(r"--[\w-]+: [^;]+;", block))


def _connected(run: dict[str, Any]) -> dict[str, Any]:
    """The run without leaves that no edge leads to: the page knows of them since variables hold them."""
    edges = run["edges"]
    used = {*edges["from"], *edges["to"], *run["roots"]}
    count = len(run["nodes"]["op"])
    kept = [number for number in range(count) if number in used or count == 1]
    new = {old: number for number, old in enumerate(kept)}
    nodes = {name: [column[old] for old in kept] for name, column in run["nodes"].items()}
    moved = {name: [new[old] for old in edges[name]] for name in ("from", "to")}
    events = run["events"]
    if events is not None:
        about = [x if kind == ev.GRAD else new.get(x, 0) for kind, x in zip(events["type"], events["about"])]
        events = {**events, "about": about}
    roots = [new[old] for old in run["roots"]]
    return {**run, "nodes": nodes, "edges": {**edges, **moved}, "roots": roots, "events": events}


class _Drawing:
    """One run, laid out."""

    def __init__(self, name: str, run: dict[str, Any], share: float | None) -> None:
        self.name, self.run = name, run
        nodes, edges = run["nodes"], run["edges"]
        self.count = len(nodes["op"])
        # Lines go down, as values do: from what a gradient goes to, to where it comes from.
        self.lines = list(zip(edges["to"], edges["from"], strict=True))
        self.states = _states(run, share) if share is not None and run["events"] else None
        self.texts = [self._texts(number) for number in range(self.count)]
        self.widths = [max(64, 8.0 * len(title) + 18, 6.6 * len(sub) + 14) for title, sub in self.texts]
        self._layout()

    def _texts(self, number: int) -> tuple[str, str]:
        nodes, run = self.run["nodes"], self.run
        op, label = run["ops"][nodes["op"][number]], nodes["label"][number]
        meta = run["metas"][nodes["meta"][number]] if nodes["meta"][number] >= 0 else ""
        shape = "; ".join(part.rsplit(" ", 2)[0] for part in meta.split("; "))
        if nodes["kind"][number] in (LEAF, INPUT):
            return label or ("input" if nodes["kind"][number] == INPUT else "leaf"), shape
        name = re.sub(r"^GeneratedBackwardFor_(.+)_default$", r"\1", re.sub(r"Backward\d*$", "", op))
        return name, f"{label} {shape}" if label else shape

    # -------------------------------------------------------------------------------------------------------- layout

    def _layout(self) -> None:
        above: dict[int, list[int]] = defaultdict(list)
        below: dict[int, list[int]] = defaultdict(list)
        for a, b in self.lines:
            above[b].append(a)
            below[a].append(b)
        rank = _ranks(self.count, above, below)
        deepest = max(rank.values(), default=0)
        layers: list[list[int]] = [[] for _ in range(deepest + 1)]
        for number in range(self.count):
            layers[rank[number]].append(number)
        # A point in each layer that a line passes.
        widths = dict(enumerate(self.widths))
        self.paths: list[list[int]] = []
        links: set[tuple[int, int]] = set()
        extra = self.count
        for a, b in self.lines:
            path = [a]
            for layer in range(rank[a] - 1, rank[b], -1):  # ranks grow upwards
                layers[layer].append(extra)
                widths[extra] = 6.0
                path.append(extra)
                extra += 1
            path.append(b)
            self.paths.append(path)
            links.update(pairwise(path))
        ups: dict[int, list[int]] = defaultdict(list)
        downs: dict[int, list[int]] = defaultdict(list)
        for a, b in sorted(links):
            ups[b].append(a)
            downs[a].append(b)
        x = {node: 0.0 for layer in layers for node in layer}
        for layer in layers:
            _spread(layer, {node: float(place) for place, node in enumerate(layer)}, widths, x)
        for turn in range(24):
            order = layers if turn % 2 == 0 else layers[::-1]
            neighbours = downs if turn % 2 == 0 else ups
            for layer in order:
                wish = {n: sum(x[m] for m in near) / len(near) if (near := neighbours[n]) else x[n] for n in layer}
                if turn < 16:
                    layer.sort(key=lambda node: wish[node])
                _spread(layer, wish, widths, x)
        left = min((x[n] - widths[n] / 2 for n in x), default=0)
        self.x = {n: x[n] - left + MARGIN for n in x}
        self.y = {}
        for place, layer in enumerate(reversed(layers)):
            for node in layer:
                self.y[node] = MARGIN + 6 + place * (BOX_HEIGHT + GAP_Y)
        self.width = max((self.x[n] + widths[n] / 2 for n in x), default=0) + MARGIN
        self.height = 2 * MARGIN + 6 + len(layers) * (BOX_HEIGHT + GAP_Y) - GAP_Y

    # --------------------------------------------------------------------------------------------------------- drawing

    def svg(self) -> str:
        marker = (
            f'<defs><marker id="{self.name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
            'orient="auto" markerUnits="userSpaceOnUse"><path d="M0 1 L10 5 L0 9 z" class="arrow"/></marker></defs>'
        )
        lines = [self._line(number, path) for number, path in enumerate(self.paths)]
        return marker + "".join(lines) + "".join(self._box(number) for number in range(self.count))

    def _line(self, number: int, path: Sequence[int]) -> str:
        points = [(self.x[path[0]], self.y[path[0]] + BOX_HEIGHT)]
        for node in path[1:-1]:
            points += [(self.x[node], self.y[node]), (self.x[node], self.y[node] + BOX_HEIGHT)]
        points.append((self.x[path[-1]], self.y[path[-1]]))
        # Lines of several inputs end side by side.
        ends = sorted({p[-2] for p in self.paths if p[-1] == path[-1]}, key=lambda node: self.x[node])
        if len(ends) > 1:
            place = ends.index(path[-2]) - (len(ends) - 1) / 2
            points[-1] = (points[-1][0] + place * min(22, (self.widths[path[-1]] - 20) / len(ends)), points[-1][1])
        text = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
        for (x0, y0), (x1, y1) in pairwise(points):
            if x0 == x1:
                text += f" L{x1:.1f} {y1:.1f}"
            else:
                middle = (y0 + y1) / 2
                text += f" C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
        kind = "" if self.states is None else "carried" if number in self.states.carried else "waiting"
        return f'<path class="line {kind}" d="{text}" marker-end="url(#{self.name})"/>'

    def _box(self, number: int) -> str:
        nodes = self.run["nodes"]
        kind = nodes["kind"][number]
        title, sub = (html.escape(text) for text in self.texts[number])
        x, y, width = self.x[number] - self.widths[number] / 2, self.y[number], self.widths[number]
        classes = ["box", {LEAF: "leaf", INPUT: "input", CUSTOM: "custom"}.get(kind, "operation")]
        state, words = (None, "") if self.states is None else self.states.of(number)
        if state is not None:
            classes.append(f"s{state}")
        round_ = BOX_HEIGHT / 2 if kind in (LEAF, INPUT) else 7
        shapes = f'<rect class="body" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BOX_HEIGHT}" rx="{round_}"/>'
        if number in self.run["roots"]:
            shapes = (
                f'<rect class="outer" x="{x - 4:.1f}" y="{y - 4:.1f}" width="{width + 8:.1f}" '
                f'height="{BOX_HEIGHT + 8}" rx="{round_ + 3}"/>' + shapes
            )
        middle, down = self.x[number], 0 if words else 6
        texts = f'<text class="title" x="{middle:.1f}" y="{y + 15 + down:.1f}">{title}</text>'
        texts += f'<text class="sub" x="{middle:.1f}" y="{y + 29 + down:.1f}">{sub}</text>'
        if words:
            texts += f'<text class="state" x="{middle:.1f}" y="{y + 42:.1f}">{html.escape(words)}</text>'
        if nodes["hooks"][number]:
            texts += f'<text class="mark" x="{x + width - 4:.1f}" y="{y - 1:.1f}">⚓</text>'
        return f'<g class="{" ".join(classes)}">{shapes}{texts}</g>'


def _ranks(count: int, above: dict[int, list[int]], below: dict[int, list[int]]) -> dict[int, int]:
    """How many layers a node lies above the last one: one more than the highest of what uses it."""
    rank = {number: 0 for number in range(count)}
    waiting = {number: len(below[number]) for number in range(count)}
    ready = [number for number in range(count) if not waiting[number]]
    for number in ready:  # grows while it is walked
        for other in above[number]:
            rank[other] = max(rank[other], rank[number] + 1)
            waiting[other] -= 1
            if not waiting[other]:
                ready.append(other)
    return rank


def _spread(layer: list[int], wish: dict[int, float], widths: dict[int, float], x: dict[int, float]) -> None:
    """Put the nodes of a layer where they wish to be, in order and apart."""
    if not layer:
        return
    at = []
    for place, node in enumerate(layer):
        least = -1e9 if not place else at[-1] + (widths[layer[place - 1]] + widths[node]) / 2 + GAP_X
        at.append(max(wish[node], least))
    shift = sum(wish[node] - place for node, place in zip(layer, at)) / len(layer)
    for node, place in zip(layer, at):
        x[node] = place + shift


class _states:
    """What each node is at a moment of a run."""

    def __init__(self, run: dict[str, Any], share: float) -> None:
        events, edges = run["events"], run["edges"]
        self.state: dict[int, int] = defaultdict(int)
        self.arrived: dict[int, int] = defaultdict(int)
        self.expected: dict[int, int] = defaultdict(int)
        self.norm: dict[int, str] = {}
        self.carried: set[int] = set()
        for target in edges["to"]:
            self.expected[target] += 1
        last = round(len(events["type"]) * share)
        for kind, about, norm, flags in zip(events["type"][:last], events["about"], events["norm"], events["flags"]):
            if kind == ev.GRAD:
                self.carried.add(about)
                target = edges["to"][about]
                self.arrived[target] += 1
                self.state[target] = FILLING
            elif kind in (ev.READY, ev.RUN, ev.DONE, ev.ERROR):
                self.state[about] = {ev.READY: READY, ev.RUN: RUNNING, ev.DONE: DONE, ev.ERROR: FAILED}[kind]
                if kind in (ev.RUN, ev.DONE) and (flags or norm is not None):
                    self.norm[about] = f" {WORDS[flags]}" if flags else f" {norm:.3g}"

    def of(self, number: int) -> tuple[int, str]:
        state, arrived = self.state[number], self.arrived[number]
        shown = self.norm.get(number, "")
        dots = "●" * arrived + "○" * max(0, self.expected[number] - arrived)
        return state, {FILLING: dots, READY: "ready", RUNNING: "▶" + shown, DONE: "✓" + shown}.get(state, " ")
