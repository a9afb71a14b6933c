"""Drawing in a terminal: a progress line, a curve in braille dots, a picture of labelled regions.

Knows nothing of tensors: everything here takes plain numbers and NumPy arrays. Without a terminal (a pipe, a log
file) there are no colours and no carriage returns.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence

import numpy as np

COLOURS = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36, "dim": 2, "bold": 1}
CLASS_COLOURS = ("red", "green", "blue")
REGION_GLYPHS = ".:="
POINT_GLYPHS = "AOX"


def is_live() -> bool:
    """Whether standard output is a terminal that a line can be redrawn on."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str) -> str:
    """`text` in a colour, where there is a terminal that wants colours."""
    if not is_live() or "NO_COLOR" in os.environ:
        return text
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m"


def heading(number: int, title: str) -> None:
    """Prints the title of one part of the demonstration."""
    print(f"\n{paint(f'{number}. {title}', 'bold')}\n")


class Progress:
    """One line that shows how far a loop is: redrawn in place on a terminal, else printed about five times.

    >>> progress = Progress(total=2, width=4)
    >>> progress.update(2, "loss 0.1")
      [████]   2/2  loss 0.1
    """

    def __init__(self, total: int, width: int = 28) -> None:
        self.total = total
        self.width = width
        self.live = is_live()
        self.every = max(1, total // 200) if self.live else max(1, total // 5)

    def update(self, step: int, text: str) -> None:
        """Shows `step` of `total` and `text`; most calls cost nothing, since only every n-th is drawn."""
        last = step == self.total
        if step % self.every and not last:
            return
        eighths = 8 * self.width * step // self.total
        bar = "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths < 8 * self.width else "")
        line = f"  [{bar:<{self.width}}] {step:>{len(str(self.total)) + 2}}/{self.total}  {text}"
        if self.live:
            print("\r" + line + "\x1b[K", end="\n" if last else "", flush=True)
        else:
            print(line, flush=True)


def curve(values: Sequence[float], width: int = 64, height: int = 10) -> str:
    """A curve of positive `values` on a logarithmic scale; each character holds 2×4 braille dots.

    Every column of dots spans the least and the greatest value that fall into it, so that noise stays visible.
    """
    logs = np.log10(np.maximum(np.asarray(values, dtype=float), 1e-12))
    low, high = math.floor(logs.min() * 10) / 10, math.ceil(logs.max() * 10) / 10
    span = max(high - low, 0.1)
    columns, rows = 2 * width, 4 * height
    dots = np.zeros((rows, columns), dtype=bool)
    edges = np.linspace(0, len(logs), columns + 1)
    previous = None
    for column in range(columns):
        start = min(int(edges[column]), len(logs) - 1)
        part = logs[start : max(start + 1, int(edges[column + 1]))]
        top, bottom = (round((rows - 1) * (high - value) / span) for value in (part.max(), part.min()))
        if previous is not None:  # join to the last column, so that a steep fall is still a line
            top, bottom = min(top, previous[1]), max(bottom, previous[0])
        previous = (top, bottom)
        dots[top : bottom + 1, column] = True

    # A braille character is U+2800 plus one bit a dot, numbered down the left column, then down the right one,
    # except that the fourth row came later and has the two highest bits.
    bits = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
    cells = (dots.reshape(height, 4, width, 2) * bits[None, :, None, :]).sum(axis=(1, 3))
    lines = []
    for row, cell_row in enumerate(cells):
        value = 10 ** (high - span * (4 * row + 1.5) / (rows - 1))
        label = f"{value:8.3g}" if row % 3 == 0 or row == height - 1 else " " * 8
        lines.append(f"{label} │" + paint("".join(chr(0x2800 + cell) for cell in cell_row), "cyan"))
    lines.append(" " * 9 + "└" + "─" * width)
    lines.append(" " * 10 + "1" + f"step {len(logs)}".rjust(width - 1))
    return "\n".join(lines)


def regions(labels: np.ndarray, points: np.ndarray, classes: np.ndarray) -> str:
    """A picture of the plane [-1, 1]²: `labels[row, column]` as a texture, and on it each point's own class.

    `labels` has the top row first; `points` is (n, 2) with x to the right and y upwards.
    """
    height, width = labels.shape
    picture = [[paint(REGION_GLYPHS[label], CLASS_COLOURS[label]) for label in row] for row in labels]
    columns = np.clip(((points[:, 0] + 1) / 2 * width).astype(int), 0, width - 1)
    rows = np.clip(((1 - points[:, 1]) / 2 * height).astype(int), 0, height - 1)
    for row, column, label in zip(rows, columns, classes):
        picture[row][column] = paint(POINT_GLYPHS[label], CLASS_COLOURS[label])
    return "\n".join("  " + "".join(line) for line in picture)
