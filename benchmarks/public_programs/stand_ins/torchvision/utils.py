"""Pictures of tensors."""

from __future__ import annotations

import math

import torch
from PIL import Image


def make_grid(tensor, nrow=8, padding=2, normalize=False, value_range=None, scale_each=False, pad_value=0, **_):
    if isinstance(tensor, (list, tuple)):
        tensor = torch.stack(list(tensor))
    if tensor.dim() == 3:
        tensor = tensor[None]
    if tensor.size(1) == 1:
        tensor = torch.cat([tensor] * 3, 1)
    if normalize:
        low, high = value_range or (float(tensor.min()), float(tensor.max()))
        tensor = (tensor.clamp(low, high) - low) / max(high - low, 1e-5)
    columns = min(nrow, tensor.size(0))
    rows = math.ceil(tensor.size(0) / columns)
    height, width = tensor.size(2) + padding, tensor.size(3) + padding
    grid = tensor.new_full((tensor.size(1), rows * height + padding, columns * width + padding), float(pad_value))
    for index in range(tensor.size(0)):
        top, left = index // columns * height + padding, index % columns * width + padding
        grid[:, top : top + height - padding, left : left + width - padding] = tensor[index]
    return grid


@torch.no_grad()
def save_image(tensor, path, format=None, **options):
    grid = make_grid(tensor, **options)
    array = grid.mul(255).add(0.5).clamp(0, 255).permute(1, 2, 0).to("cpu", torch.uint8).numpy()
    Image.fromarray(array).save(path, format=format)
