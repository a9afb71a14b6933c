"""Pictures of graphs, and charts of benchmarks."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ElementTree

import pytest
from website import charts, pictures

import retrograd as torch
from retrograd import explorer


def graph(seed: int, size: int) -> torch.Tensor:
    rng = random.Random(seed)
    values = [torch.ones(2, requires_grad=True) for _ in range(3)]
    for _ in range(size):
        values.append(rng.choice(values) * rng.choice(values) if rng.random() < 0.6 else rng.choice(values).sin())
    return torch.stack(values).sum()


@pytest.mark.parametrize("seed", range(6))
def test_boxes_are_apart_and_all_there(seed: int) -> None:
    page = explorer.show(graph(seed, 4 + 3 * seed), open=False)
    svg = ElementTree.fromstring(pictures.draw("graph", page))
    space = "{http://www.w3.org/2000/svg}"
    width, height = (float(svg.get(name, "0")) for name in ("width", "height"))
    boxes = []
    for rect in svg.iter(f"{space}rect"):
        if rect.get("class") == "body":
            boxes.append(tuple(float(rect.get(name, "nan")) for name in ("x", "y", "width", "height")))
    run = page.runs[0]
    used = {*run["edges"]["from"], *run["edges"]["to"], *run["roots"]}
    assert len(boxes) == len(used)
    assert len(list(svg.iter(f"{space}path"))) == len(run["edges"]["from"]) + 1  # and the arrow's head
    for x, y, w, h in boxes:
        assert x >= 0 and y >= 0 and x + w <= width and y + h <= height
    for number, (x, y, w, h) in enumerate(boxes):
        for x2, y2, w2, h2 in boxes[:number]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def test_a_moment_of_a_run() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    loss = (x.exp() * x.sin()).sum()
    page = explorer.record(loss, open=False).backward()
    begin, end = pictures.draw("run", (page, 0.0)), pictures.draw("run", (page, 1.0))
    assert begin.count(" s0") == 5 and " s4" not in begin
    assert end.count(" s4") == 5 and "✓" in end
    assert "●○" in pictures.draw("run", (page, 0.65))


def test_the_pictures_have_the_explorers_colours() -> None:
    style = pictures.style()
    assert "--leaf: #e4f0fa" in style and "--leaf: #173349" in style and ".picture .leaf .body" in style


def test_the_chart_of_the_readme_is_that_of_its_tables() -> None:
    """If this fails after the tables were written anew: python docs/website/charts.py"""
    assert charts.README_CHART.read_text(encoding="utf-8") == charts.readme_chart()


def test_charts_have_every_row() -> None:
    text = """<!-- bench_x on 1 thread -->
machine

| | time | reference | ratio | of the least times | bar |
| --- | --- | --- | --- | --- | --- |
| fast (per call) | retrograd 1 µs | torch 4 µs | **0.25** | 0.3 | 1 |
| slow & steady | retrograd 8 µs | torch 2 µs | **4.00** | 0.3 |  |
| not torch | retrograd 8 µs | numpy 2 µs | **4.00** | 0.3 | 2 |
<!-- end of bench_x on 1 thread -->"""
    (rows,) = charts.tables(text).values()
    assert [(row.name, row.ratio, row.bar) for row in rows] == [
        ("fast (per call)", 0.25, 1.0), ("slow & steady", 4.0, None), ("not torch", 4.0, 2.0),
    ]  # fmt: skip
    svg = charts.chart("title", charts.beside_torch(rows))
    ElementTree.fromstring(svg)
    bars = re.findall(r'<rect class="(\w+)" x="([\d.]+)" y="\d+" width="([\d.]+)"', svg)
    assert [kind for kind, _, _ in bars] == ["fast", "slow"]
    (_, left, width), (_, start, other) = bars
    assert float(left) + float(width) == pytest.approx(float(start), abs=0.2)  # both begin at the line
    assert float(width) == pytest.approx(float(other), abs=0.2)  # a quarter and four times are equally far from it
