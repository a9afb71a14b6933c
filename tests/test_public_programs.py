"""The list of public programs (`make programs`) and what runs them: that they can be run at all is seen there."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import retrograd

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks" / "public_programs"
yaml = pytest.importorskip("yaml")


@pytest.fixture(scope="module")
def run():
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("public_programs_run", FOLDER / "run.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses look for it
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(FOLDER))
        sys.modules.pop("public_programs_run", None)


def test_the_list(run):
    programs = run.manifest()
    assert len(programs) >= 30 and len({program.repository for program in programs}) >= 20
    for program in programs:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", program.repository) and re.fullmatch(r"[0-9a-f]{40}", program.commit)
        for need in program.needs:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}(:[\w/]+)?", need), need
        assert not program.data or callable(getattr(run.data, program.data))
        assert 1 <= program.losses <= 100
        if program.path.startswith("starters/"):
            script, name = program.start.split()
            assert re.search(rf"^def {name}\(", (FOLDER / script).read_text(), re.MULTILINE), program.name
    drawn = re.findall(r"^def (\w+)\(\)", (FOLDER / "starters" / "library.py").read_text(), re.MULTILINE)
    assert set(drawn) == {p.start.split()[1] for p in programs if p.path.startswith("starters/")}


def test_the_page_is_about_these_programs(run):
    page = (FOLDER.parents[1] / "docs" / "PROGRAMS.md").read_text(encoding="utf-8")
    rows = [row.split(" | ") for row in page.splitlines() if row.startswith("| ") and "https://github.com/" in row]
    assert {row[0].removeprefix("| ") for row in rows} == {program.name for program in run.manifest()}
    for program in run.manifest():
        assert f"https://github.com/{program.repository}/tree/{program.commit}" in page


def test_losses_are_compared(run):
    assert run.difference([1.0, 2.0], [1.0, 2.0]) == 0 and run.difference([1.0], [1.0, 2.0]) == math.inf
    assert run.difference([], []) == math.inf and run.difference([math.nan], [1.0]) == math.inf
    assert run.difference([1.0, 2.002], [1.0, 2.0]) == pytest.approx(1e-3)
    assert run.difference([10.0, 1e-9], [10.0, 2e-9]) < 1e-6  # a loss that passes through zero
    assert run.difference([math.nan], [math.nan]) == 0


PROGRAM = """
import sys
import torch
net = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.Dropout(0.2), torch.nn.Linear(30, 10))
images = torch.randn(200, 20)
data = torch.utils.data.TensorDataset(images, images[:, :10].argmax(1))
loader = torch.utils.data.DataLoader(data, batch_size=25, shuffle=True)
optimizer = torch.optim.SGD(net.parameters(), lr=float(sys.argv[1]))
for images, labels in loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(images), labels).backward()
    optimizer.step()
print("not reached")
"""


@pytest.mark.parity
def test_a_program_is_ended_after_its_losses(run, tmp_path):
    """Both libraries from one seed: the same weights, batches, dropped units, and losses."""
    pytest.importorskip("torch")
    (tmp_path / "program.py").write_text(PROGRAM)
    found = {}
    environment = {**os.environ, "PYTHONPATH": str(Path(retrograd.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    for library in ("torch", "retrograd"):
        done = subprocess.run(
            [sys.executable, str(FOLDER / "child.py"), library, str(tmp_path / library), "4", "program.py", "0.1"],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert "not reached" not in done.stdout
        found[library] = json.loads((tmp_path / library).read_text())
        assert found[library]["error"] is None and len(found[library]["losses"]) == 4, done.stderr
    assert run.difference(found["retrograd"]["losses"], found["torch"]["losses"]) < 1e-5
