"""``torch.version``: of this package, and of what torch may be built with, which is not here."""

from __future__ import annotations

__version__ = "0.1.0"
#: The version of torch whose names and behaviour these are.
follows = "2.13.0"
debug = False
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version: str | None = None
