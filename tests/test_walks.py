"""The walks of docs/ARCHITECTURE.md: which files a call passes through, in order."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
from retrograd.core import compiled as core
from retrograd.core.state import process

pytestmark = pytest.mark.skipif(core.library is not None, reason="part of the way leads through the compiled core")

PACKAGE = os.path.dirname(torch.__file__) + os.sep
PAGE = Path(__file__).parent.parent / "docs" / "ARCHITECTURE.md"


def walks() -> dict[str, list[str]]:
    """The files that the page names, by the code that passes through them."""
    section = PAGE.read_text().split("## A reader's walk\n")[1].split("\n## ")[0]
    found = {}
    for part in section.split("### `")[1:]:
        code = part.split("`")[0]
        found[code] = re.findall(r"^\d+\. `([^`]+)`", part, flags=re.MULTILINE)
    return found


def variables() -> dict[str, Any]:
    x, v = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    image, weight = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3, requires_grad=True)
    dual = torch.autograd.forward_ad.make_dual(torch.ones(3), torch.ones(3)) if levels() else None
    return {
        "x": x, "b": torch.ones(3), "y": torch.ones(2, 3, requires_grad=True) * 1, "v": v, "image": image,
        "weight": weight, "F": torch.nn.functional, "dual": dual,
    }  # fmt: skip


def levels() -> bool:
    """Is a dual level open?"""
    return bool(process.dual_levels)


def files_of(code: str) -> list[str]:
    """The files of the package that are entered when `code` runs, each where it comes first."""
    if "dual" in code and not levels():
        with torch.autograd.forward_ad.dual_level():
            return files_of(code)
    compiled = compile(code, "<the user's code>", "exec")
    exec(compiled, variables())  # what is made once in a process has been made
    given = variables()
    entered: dict[str, None] = {}

    def enter(frame: Any, event: str, arg: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(PACKAGE):
            # (The wrapper of a checked function is named after the file that writes it.)
            entered.setdefault(name.removeprefix(PACKAGE).partition(": ")[0].replace(os.sep, "/"))

    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        exec(compiled, given)
    finally:
        sys.setprofile(before)
    return list(entered)


@functools.cache
def walked() -> dict[str, list[str]]:
    """The files of each walk, in an interpreter of its own.

    Here an earlier test may have defined a class of tensors, or a mode: functions look out for them from then on.
    """
    program = f"import json, test_walks as t; print(json.dumps({{c: t.files_of(c) for c in {list(walks())!r}}}))"
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("code", list(walks()))
def test_the_page_names_the_files_in_order(code: str) -> None:
    assert walks()[code] == walked()[code]
