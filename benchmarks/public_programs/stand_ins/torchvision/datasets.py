"""Datasets whose images are blobs at places that depend on the class: small, and learnable."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset


def _images(count: int, size: int, channels: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.random.RandomState(seed)
    labels = numbers.randint(0, classes, count)
    angle = 2 * np.pi * labels / classes
    middle = size * (0.5 + 0.3 * np.stack([np.sin(angle), np.cos(angle)], 1)) + numbers.normal(0, 1, (count, 2))
    y, x = np.mgrid[:size, :size]
    spots = np.exp(-((y - middle[:, :1, None]) ** 2 + (x - middle[:, 1:, None]) ** 2) / (size / 4) ** 2)
    images = 255 * spots[..., None] * numbers.uniform(0.5, 1, (count, 1, 1, channels))
    images += numbers.uniform(0, 20, images.shape)
    return images.clip(0, 255).astype(np.uint8), labels


class _Images(Dataset):
    size, channels, classes_count, count = 28, 1, 10, 600

    def __init__(self, root=None, train=True, transform=None, target_transform=None, download=False, split=None, **_):
        if split is not None:
            train = split == "train"
        self.train, self.transform, self.target_transform = train, transform, target_transform
        images, labels = _images(
            self.count if train else self.count // 3, self.size, self.channels, self.classes_count, 1 if train else 2
        )
        self.classes = [str(index) for index in range(self.classes_count)]
        self._images = images
        self._keep(images, labels)

    def _keep(self, images, labels):
        self.data = torch.from_numpy(images[..., 0])
        self.targets = torch.from_numpy(labels)

    @property
    def train_data(self):
        return self.data

    @property
    def train_labels(self):
        return self.targets

    test_data, test_labels = train_data, train_labels

    def __len__(self):
        return len(self._images)

    def __getitem__(self, index):
        image = self._images[int(index)]
        image = Image.fromarray(image[..., 0] if self.channels == 1 else image)
        label = int(self.targets[index])
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            label = self.target_transform(label)
        return image, label


class MNIST(_Images):
    pass


class FashionMNIST(_Images):
    pass


class KMNIST(_Images):
    pass


class CIFAR10(_Images):
    size, channels = 32, 3

    def _keep(self, images, labels):
        self.data, self.targets = images, labels.tolist()


class CIFAR100(CIFAR10):
    classes_count = 100


class STL10(CIFAR10):
    size = 96


class SVHN(CIFAR10):
    pass


class LSUN(CIFAR10):
    size = 64


class ImageFolder(CIFAR10):
    size = 64


class FakeData(CIFAR10):
    def __init__(self, size=1000, image_size=(3, 224, 224), num_classes=10, transform=None, **_):
        self.count, self.size, self.classes_count = min(size, 64), image_size[1], num_classes
        super().__init__(transform=transform)
