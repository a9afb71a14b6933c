"""What the transforms are made of."""

from __future__ import annotations

import enum

import numpy as np
import torch
from PIL import Image


class InterpolationMode(enum.Enum):
    NEAREST = "nearest"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"


def to_tensor(image):
    array = np.array(image)  # a copy, which can be written to
    if array.ndim == 2:
        array = array[..., None]
    tensor = torch.from_numpy(np.ascontiguousarray(array.transpose(2, 0, 1)))
    return tensor.float() / 255 if tensor.dtype == torch.uint8 else tensor


def to_pil_image(image, mode=None):
    array = image.detach().numpy() if isinstance(image, torch.Tensor) else image.transpose(2, 0, 1)
    if array.dtype != np.uint8:
        array = (array * 255).clip(0, 255).astype(np.uint8)
    array = array.transpose(1, 2, 0)
    return Image.fromarray(array[..., 0] if array.shape[2] == 1 else array)


def normalize(tensor, mean, std, inplace=False):
    mean = torch.as_tensor(mean, dtype=tensor.dtype).view(-1, 1, 1)
    std = torch.as_tensor(std, dtype=tensor.dtype).view(-1, 1, 1)
    return (tensor - mean) / std


def resize(image, size, interpolation=None, antialias=True):
    if isinstance(image, torch.Tensor):
        size = (size, size) if isinstance(size, int) else tuple(size)
        return torch.nn.functional.interpolate(image[None], size=size, mode="bilinear")[0]
    if isinstance(size, int):
        width, height = image.size
        short = min(width, height)
        size = (round(height * size / short), round(width * size / short))
    return image.resize((size[1], size[0]), Image.Resampling.BILINEAR)
