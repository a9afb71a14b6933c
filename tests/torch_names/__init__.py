"""Torch's public names, namespace by namespace, so that ours can be held against them where torch is not installed.

``python -m tests.torch_names``, with torch installed, writes the lists again; tests/test_public_names.py says when they
are stale. A list has what ``dir()`` shows there and the modules, without names that begin with an underscore.
"""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: Modules of torch, and the class Tensor.
SPACES = (
    "torch", "torch.Tensor", "torch.autograd", "torch.fft", "torch.func", "torch.linalg", "torch.nn",
    "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.optim", "torch.special", "torch.utils",
)  # fmt: skip


def find(space: str, package: str) -> Any:
    """What a namespace of torch is in `package`, ours or torch itself."""
    parts = space.split(".")[1:]
    if parts and parts[-1] == "Tensor":
        return importlib.import_module(package).Tensor
    return importlib.import_module(".".join([package, *parts]))


def collect(space: str) -> list[str]:
    """The public names of the installed torch."""
    found = find(space, "torch")
    files = [module.name for module in pkgutil.iter_modules(getattr(found, "__path__", ()))]
    return sorted(name for name in {*dir(found), *getattr(found, "__all__", ()), *files} if not name.startswith("_"))


def read(space: str) -> list[str]:
    """The list that is kept here."""
    return (HERE / f"{space}.txt").read_text(encoding="utf-8").split()
