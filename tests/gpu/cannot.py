"""What CuPy cannot do: one table, with CuPy's own words, which docs/CUDA.md shows and the GPU run holds against CuPy.

A row that CuPy can do after all, or refuses in other words, fails the run (`stale`); so does an operator that goes to
the host without a row (`unexplained`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from retrograd.core import dtypes

#: The most operators that may be computed by NumPy and SciPy in host memory.
MOST = 20


class Row(NamedTuple):
    """Something that is computed in host memory."""

    operators: tuple[str, ...]
    #: Asks CuPy for it, and what it says then.
    ask: Callable[[Any], Any]
    error: str
    #: How it is named where computations in host memory are counted.
    counted: str


ROWS = (
    Row(
        ("special.airy_ai",),
        lambda cupy: import_module("cupyx.scipy.special").airy,
        "AttributeError: module 'cupyx.scipy.special' has no attribute 'airy'",
        "airy",
    ),
    Row(
        ("conversions from and to float8",),
        lambda cupy: cupy.zeros(1, dtypes.float8_e4m3fn.np) + cupy.zeros(1, dtypes.float8_e4m3fn.np),
        "ValueError: Unsupported dtype float8_e4m3fn",
        "astype",
    ),
)


def stale(cupy: Any) -> list[str]:
    """Rows that CuPy does otherwise than they say."""
    found = []
    for row in ROWS:
        try:
            row.ask(cupy)
            said = "nothing: it can do it"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        if said != row.error:
            found.append(f"{', '.join(row.operators)}: CuPy says {said!r}, the table {row.error!r}")
    return found


def unexplained(hosted: Any) -> list[str]:
    """What was computed in host memory and has no row."""
    return [name for name in hosted if not any(re.fullmatch(row.counted, name) for row in ROWS)]


def written() -> list[tuple[str, str]]:
    """The rows of the table in docs/CUDA.md: operators and error."""
    text = (Path(__file__).parents[2] / "docs" / "CUDA.md").read_text()
    section = text.partition("## What CuPy cannot do")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in section.splitlines() if "|" in line]
    return [(row[0].replace("`", ""), row[1].replace("`", "")) for row in rows[2:]]
