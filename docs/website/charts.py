"""Charts of the benchmarks, drawn from the tables that the benchmarks write into README.md and benchmarks/README.md.

A chart has one bar for each row: retrograd's time as a share of torch's, on a scale by doublings, with a line at 1
where both take the same time.  ``python docs/website/charts.py`` writes the one that the README shows
(docs/charts/speed.svg); `make docs` does so, too, and makes those of the site.
"""

from __future__ import annotations

import html
import math
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
README_CHART = ROOT / "docs" / "charts" / "speed.svg"
WIDTH, ROW, LABELS, TOP = 760, 24, 350, 34
INK = "svg.chart { --ink: #1c2430; --quiet: #5d6878; --rule: #d9dee6; --fast: #1b8763; --slow: #c4721b; }"
DARK = "svg.chart { --ink: #e8ecf2; --quiet: #9ba8b9; --rule: #3a4554; --fast: #4fc79b; --slow: #f0a35c; }"


class Row(NamedTuple):
    """One case: retrograd's time over the reference's, and the bar that the project has set, if any."""

    name: str
    ratio: float
    bar: float | None
    time: str
    reference: str


def tables(text: str) -> dict[str, list[Row]]:
    """The tables between ``<!-- NAME on N thread(s), MORE -->`` and ``<!-- end of ... -->``, by what stands there."""
    found = {}
    for name, body in re.findall(r"<!-- (\w+ on \d+ threads?(?:, [\w ]+)?) -->\n(.*?)<!-- end of \1 -->", text, re.S):
        rows = []
        for line in body.splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
            ratio = re.fullmatch(r"\*\*([\d.]+)\*\*", cells[3]) if len(cells) >= 4 else None
            if ratio is not None:
                bar = float(cells[5]) if len(cells) > 5 and re.fullmatch(r"[\d.]+", cells[5]) else None
                rows.append(Row(cells[0], float(ratio.group(1)), bar, cells[1], cells[2]))
        if rows:
            found[name] = rows
    return found


def all_tables() -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for path in (ROOT / "benchmarks" / "README.md", ROOT / "README.md"):
        found |= tables(path.read_text(encoding="utf-8"))
    return found


def file_name(table: str) -> str:
    """The name of a table's chart: that of the benchmark, and what else its mark says."""
    benchmark, _, how = table.partition(" on ")
    return "-".join([benchmark, *how.replace(" ", "-").split(",-")[1:]])


def beside_torch(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.time.startswith("retrograd") and row.reference.startswith("torch")]


def chart(title: str, rows: list[Row], narrow: bool = False) -> str:
    """An SVG that reads well on light and on dark paper, by itself or in a page; `narrow` is for phones."""
    width, row_height, labels = (360, 40, 14) if narrow else (WIDTH, ROW, LABELS)
    if narrow:
        title = title.partition(",")[0].partition(":")[0]
    least = min(-3, math.floor(min(math.log2(row.ratio) for row in rows)))
    most = max(1, math.ceil(max(math.log2(row.ratio) for row in rows)))
    height = TOP + row_height * len(rows) + 30

    def x(ratio: float) -> float:
        return labels + (math.log2(ratio) - least) / (most - least) * (width - labels - (34 if narrow else 60))

    parts = [f'<text class="head" x="0" y="14">{html.escape(title)}</text>']
    for power in range(least, most + 1):
        place, name = x(2.0**power), "as torch" if power == 0 else f"×{2**power}" if power > 0 else f"1/{2**-power}"
        kind = "one" if power == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{place:.1f}" x2="{place:.1f}" y1="{TOP - 6}" y2="{height - 22}"/>')
        parts.append(f'<text class="tick" x="{place:.1f}" y="{height - 8}">{name}</text>')
    for number, row in enumerate(rows):
        y = TOP + row_height * number
        left, right = sorted((x(row.ratio), x(1)))
        kind = "fast" if row.ratio <= 1 else "slow"
        if narrow:
            parts.append(f'<text x="0" y="{y + 10}">{html.escape(_short(row.name))}</text>')
            y += 15
        else:
            parts.append(f'<text class="name" x="{labels - 12}" y="{y + 13}">{html.escape(_short(row.name))}</text>')
        length = max(1.5, right - left)
        parts.append(
            f'<rect class="{kind}" x="{left:.1f}" y="{y + 2}" width="{length:.1f}" height="15" rx="2">'
            f"<title>{html.escape(row.name)}: {html.escape(row.time)}, {html.escape(row.reference)}</title></rect>"
        )
        at, anchor = (left - 5, "end") if row.ratio <= 1 else (right + 5, "start")
        parts.append(f'<text class="value" x="{at:.1f}" y="{y + 13}" text-anchor="{anchor}">{row.ratio:.2f}</text>')
    described = f"{title}: " + ", ".join(f"{row.name} {row.ratio:.2f}" for row in rows)
    return (
        f'<svg class="chart" role="img" aria-label="{html.escape(described)}" xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"><style>{INK} '
        f"@media (prefers-color-scheme: dark) {{ {DARK} }} {STYLE}</style>{''.join(parts)}</svg>\n"
    )


STYLE = (
    "svg.chart text { font: 12px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; fill: var(--ink); } "
    "svg.chart .head { font-weight: 600; font-size: 13px; } svg.chart .name { text-anchor: end; } "
    "svg.chart .tick { text-anchor: middle; fill: var(--quiet); font-size: 11px; } "
    "svg.chart .value { font-size: 11px; } "
    "svg.chart .grid { stroke: var(--rule); } svg.chart .one { stroke: var(--ink); stroke-width: 1.4; } "
    "svg.chart .fast { fill: var(--fast); } svg.chart .slow { fill: var(--slow); }"
)


def site_style() -> str:
    """The theme of the site decides, not the system's."""
    dark = DARK.replace("svg.chart {", "").rstrip(" }")
    light = INK.replace("svg.chart {", "").rstrip(" }")
    return (
        f"body svg.chart {{ {light} }} body[data-theme='dark'] svg.chart {{ {dark} }} "
        f"@media (prefers-color-scheme: dark) {{ body:not([data-theme='light']) svg.chart {{ {dark} }} }}"
    )


def _short(name: str) -> str:
    name = re.sub(r" \(per [\w ]+\)$", "", name)
    return name if len(name) <= 52 else name[:51] + "…"


def readme_chart() -> str:
    """The chart that the README shows: small operations and whole steps."""
    found = all_tables()
    small = {row.name.partition(" (")[0]: row for row in beside_torch(found["bench_overhead on 1 thread"])}
    wanted = ["chain forward + backward", "x.sum().backward()", "a * b without grad", "x[i]"]
    wanted.append("import, in a fresh interpreter")
    rows = [small[name] for name in wanted if name in small] + beside_torch(found["bench_kernels on 2 threads"])
    return chart("Time beside torch 2.13: to the left of the line, retrograd is faster", rows)


def write(folder: Path) -> list[str]:
    """Write the charts of the site, and the README's; their names."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {"speed": readme_chart()}
    titles = {
        "bench_overhead on 1 thread": "Small operations",
        "bench_overhead on 1 thread, compiled core": "Small operations with the compiled core",
        "bench_kernels on 2 threads": "Whole training steps",
    }
    for name, rows in all_tables().items():
        rows = beside_torch(rows)
        if rows:
            for suffix, narrow in (("", False), ("-narrow", True)):
                title = f"{titles.get(name, name)}, as a share of torch's time"
                made[file_name(name) + suffix] = chart(title, rows, narrow)
    for name, text in made.items():
        (folder / f"{name}.svg").write_text(text, encoding="utf-8")
    README_CHART.parent.mkdir(exist_ok=True)
    if not README_CHART.exists() or README_CHART.read_text(encoding="utf-8") != made["speed"]:
        README_CHART.write_text(made["speed"], encoding="utf-8")
    return list(made)


if __name__ == "__main__":
    README_CHART.parent.mkdir(exist_ok=True)
    README_CHART.write_text(readme_chart(), encoding="utf-8")
    print(f"{README_CHART.relative_to(ROOT)} is written", file=sys.stderr)
