"""Images of digits without a download: a font of 5 × 7 dots, turned, scaled, shifted and covered with noise.

`digits.py` tells them apart, `vae.py` learns to draw them.
"""

from __future__ import annotations

import retrograd as torch
import retrograd.nn.functional as F

SIZE = 16
FONT = [
    ".###. ..#.. .###. ##### ...#. ##### ..##. ##### .###. .###.",
    "#...# .##.. #...# ...#. ..##. #.... .#... ....# #...# #...#",
    "#..## ..#.. ....# ..#.. .#.#. ####. #.... ...#. #...# #...#",
    "#.#.# ..#.. ...#. ...#. #..#. ....# ####. ..#.. .###. .####",
    "##..# ..#.. ..#.. ....# ##### ....# #...# .#... #...# ....#",
    "#...# ..#.. .#... #...# ...#. #...# #...# .#... #...# ...#.",
    ".###. .###. ##### .###. ...#. .###. .###. .#... .###. .##..",
]


def glyphs() -> torch.Tensor:
    """The ten digits as a tensor of shape (10, 1, 7, 5)."""
    rows = [[[float(dot == "#") for dot in word] for word in row.split()] for row in FONT]
    return torch.tensor(rows).permute(1, 0, 2).unsqueeze(1)


def render(labels: torch.Tensor, noise: float = 0.15, slant: float = 0.25, shift: float = 0.35) -> torch.Tensor:
    """An image of each label, of shape (N, 1, SIZE, SIZE), no two alike."""
    count = len(labels)
    angle, height, width = slant * torch.randn(count), 1.2 + 0.4 * torch.rand(count), 1.6 + 0.6 * torch.rand(count)
    across, down = shift * (2 * torch.rand(2, count) - 1)
    first = torch.stack([width * angle.cos(), -width * angle.sin(), across], dim=1)
    second = torch.stack([height * angle.sin(), height * angle.cos(), down], dim=1)
    grid = F.affine_grid(torch.stack([first, second], dim=1), [count, 1, SIZE, SIZE], align_corners=False)
    images = F.grid_sample(glyphs()[labels], grid, align_corners=False)
    return images + noise * torch.randn(count, 1, SIZE, SIZE)
