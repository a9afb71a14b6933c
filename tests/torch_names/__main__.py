"""Writes the lists."""

from __future__ import annotations

from . import HERE, SPACES, collect

for space in SPACES:
    (HERE / f"{space}.txt").write_text("\n".join(collect(space)) + "\n", encoding="utf-8")
