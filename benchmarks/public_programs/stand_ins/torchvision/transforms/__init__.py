"""The transforms that programs use, of PIL's images and of tensors."""

from __future__ import annotations

import random

import numpy as np
import torch
from PIL import Image

from . import functional
from .functional import InterpolationMode, to_pil_image, to_tensor


class _Transform:
    def __repr__(self):
        return type(self).__name__


class Compose(_Transform):
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class ToTensor(_Transform):
    def __call__(self, image):
        return to_tensor(image)


class ToPILImage(_Transform):
    def __init__(self, mode=None):
        self.mode = mode

    def __call__(self, image):
        return to_pil_image(image)


class Lambda(_Transform):
    def __init__(self, function):
        self.function = function

    def __call__(self, image):
        return self.function(image)


class Normalize(_Transform):
    def __init__(self, mean, std, inplace=False):
        self.mean, self.std = mean, std

    def __call__(self, tensor):
        return functional.normalize(tensor, self.mean, self.std)


class Resize(_Transform):
    def __init__(self, size, interpolation=None, antialias=True):
        self.size = size

    def __call__(self, image):
        return functional.resize(image, self.size)


Scale = Resize


class CenterCrop(_Transform):
    def __init__(self, size):
        self.size = (size, size) if isinstance(size, int) else tuple(size)

    def __call__(self, image):
        height, width = self.size
        whole_width, whole_height = image.size
        left, top = (whole_width - width) // 2, (whole_height - height) // 2
        return image.crop((left, top, left + width, top + height))


class RandomCrop(_Transform):
    def __init__(self, size, padding=0, **_):
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        self.padding = padding

    def __call__(self, image):
        array = np.asarray(image)
        sides = [(self.padding, self.padding)] * 2 + [(0, 0)] * (array.ndim - 2)
        array = np.pad(array, sides)
        height, width = self.size
        top = int(torch.randint(0, array.shape[0] - height + 1, (1,)))
        left = int(torch.randint(0, array.shape[1] - width + 1, (1,)))
        return Image.fromarray(array[top : top + height, left : left + width])


class RandomResizedCrop(_Transform):
    def __init__(self, size, scale=(0.08, 1.0), ratio=None, **_):
        self.crop = RandomCrop(size)
        self.resize = Resize(self.crop.size)

    def __call__(self, image):
        return self.resize(image)


class RandomHorizontalFlip(_Transform):
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, image):
        if float(torch.rand(1)) < self.p:
            flip = Image.Transpose.FLIP_LEFT_RIGHT
            return image.transpose(flip) if isinstance(image, Image.Image) else image.flip(-1)
        return image


class RandomRotation(_Transform):
    def __init__(self, degrees, **_):
        self.degrees = (-degrees, degrees) if isinstance(degrees, (int, float)) else degrees

    def __call__(self, image):
        return image.rotate(random.uniform(*self.degrees))


class Grayscale(_Transform):
    def __init__(self, num_output_channels=1):
        self.channels = num_output_channels

    def __call__(self, image):
        return image.convert("L") if self.channels == 1 else image.convert("L").convert("RGB")


class Pad(_Transform):
    def __init__(self, padding, fill=0, padding_mode="constant"):
        self.padding = padding

    def __call__(self, image):
        array = np.asarray(image)
        return Image.fromarray(np.pad(array, [(self.padding, self.padding)] * 2 + [(0, 0)] * (array.ndim - 2)))
