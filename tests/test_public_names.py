"""What is public is declared, and torch has it under the same name; the rest is in docs/ADDITIONS.md."""

from __future__ import annotations

import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import retrograd
import torch_names

ROOT = Path(__file__).resolve().parents[1]
MODULES = [space for space in torch_names.SPACES if space != "torch.Tensor"]


def public(space: str) -> set[str]:
    """The names that a namespace of ours declares; those of the class Tensor need no declaration."""
    found = torch_names.find(space, "retrograd")
    return {n for n in dir(found) if not n.startswith("_")} if isinstance(found, type) else set(found.__all__)


def additions() -> dict[str, set[str]]:
    """Namespace -> the names that the documentation lists."""
    text = (ROOT / "docs" / "ADDITIONS.md").read_text(encoding="utf-8")
    found: dict[str, set[str]] = {}
    for name in re.findall(r"^\| `([\w.]+)` \|", text, re.MULTILINE):
        space, _, own = name.rpartition(".")
        found.setdefault(space, set()).add(own)
    return found


@pytest.mark.parametrize("space", torch_names.SPACES)
def test_torch_has_every_public_name(space: str) -> None:
    assert public(space) - set(torch_names.read(space)) == additions().get(space, set())


def test_the_additions_are_in_these_namespaces() -> None:
    assert set(additions()) <= set(torch_names.SPACES)
    assert sum(map(len, additions().values())) <= 10, "a short list"


@pytest.mark.parametrize("space", MODULES)
def test_every_declared_name_is_there(space: str) -> None:
    module = torch_names.find(space, "retrograd")
    assert len(module.__all__) == len(set(module.__all__))
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert [name for name in module.__all__ if name.startswith("__")] == []


@pytest.mark.parametrize("space", ["torch", "torch.autograd", "torch.fft", "torch.linalg", "torch.nn",
                                   "torch.nn.functional", "torch.special"])  # fmt: skip
def test_nothing_else_lies_about(space: str) -> None:
    """A name without an underscore is declared, or is a file of the package, which Python itself puts there."""
    module = torch_names.find(space, "retrograd")

    def is_file(name: str, value: Any) -> bool:
        return isinstance(value, types.ModuleType) and value.__name__ == f"{module.__name__}.{name}"

    names = {n for n, value in vars(module).items() if not n.startswith("_") and not is_file(n, value)}
    assert names - set(module.__all__) == set()


def test_names_with_an_underscore_are_torchs() -> None:
    """Those that torch has at its top level, although they are not for everybody, are where torch has them."""
    for name in ("_softmax", "_log_softmax", "_conj", "_neg_view", "_unique2", "_foreach_add_", "_adaptive_avg_pool2d"):
        assert callable(getattr(retrograd, name))


@pytest.mark.parity
def test_the_lists_are_torchs() -> None:
    """In an interpreter of its own: what else is imported shows in ``dir(torch)``."""
    pytest.importorskip("torch")
    text = (
        "import sys, torch_names\n"
        "print([s for s in torch_names.SPACES if torch_names.collect(s) != torch_names.read(s)])"
    )
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r})\n{text}"]
    done = subprocess.run(command, capture_output=True, text=True)  # (how torch's process ends is torch's matter)
    assert done.stdout.strip() == "[]", f"python -m tests.torch_names writes them again {done.stderr}"
