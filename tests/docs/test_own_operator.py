"""docs/extending/operator.md: what it says to add to the package is added to a copy, and the examples run there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from website import blocks

ROOT = blocks.ROOT
PAGE = blocks.DOCS / "extending" / "operator.md"

PROGRAM = """
import doctest, sys
from website import blocks
parsed = doctest.DocTestParser().get_doctest(open(sys.argv[1]).read(), {}, "operator.md", None, 0)
failed = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(parsed).failed
namespace = {}
exec("from samples.activation import *", namespace)
op, = eval("[" + open(sys.argv[2]).read() + "]", namespace)
assert op.name == "squareplus" and len(op.samples) == 2
import retrograd as torch
x = torch.tensor([1.0, 5.0], requires_grad=True)
for call in (torch.abs_diff, torch.absolute_difference, torch.Tensor.abs_diff, torch.Tensor.absolute_difference):
    assert call(x, torch.tensor([3.0, 2.0])).tolist() == [2.0, 3.0]
torch.abs_diff(x, torch.tensor([3.0, 2.0])).sum().backward()
assert x.grad.tolist() == [-1.0, 1.0]
sys.exit(failed > 0)
"""


def test_an_operator_is_added_in_two_places(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "_generated"))
    shutil.copy(ROOT / "hatch_build.py", tmp_path)
    added = [block for block in blocks.blocks(PAGE) if block.said[0] == "append"]
    assert [block.kind for block in added] == ["python", "yaml"]
    for block in added:
        file = tmp_path / block.said[1]
        text, mark, last = file.read_text(encoding="utf-8").partition("\n__all__ =")
        file.write_text(f"{text}\n\n{block.text}\n{mark}{last}", encoding="utf-8")
    sample, examples = (block.text for block in blocks.blocks(PAGE) if block.said[0] == "checked by")
    (composed,) = (block.text for block in blocks.blocks(ROOT / "CONTRIBUTING.md") if block.said[0] == "checked by")
    with (tmp_path / "src/retrograd/ops/composite/arithmetic.py").open("a", encoding="utf-8") as file:
        file.write("\n\n" + composed)
    with (tmp_path / "src/retrograd/ops/signatures/torch.txt").open("a", encoding="utf-8") as file:
        file.writelines(f"\n{one}(Tensor input, Tensor other)" for one in ("abs_diff", "absolute_difference"))
    (tmp_path / "examples.txt").write_text(examples)
    (tmp_path / "sample.txt").write_text(sample.strip())
    path = os.pathsep.join([str(tmp_path / "src"), str(ROOT / "docs"), str(ROOT / "tests")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    for command in (["hatch_build.py"], ["-c", PROGRAM, "examples.txt", "sample.txt"]):
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
