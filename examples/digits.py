"""A convolutional network that reads digits: convolutions, batch normalisation, a DataLoader, a learning rate schedule.

    python examples/digits.py
"""

from __future__ import annotations

import retrograd as torch
import retrograd.nn.functional as F
from rendered_digits import render
from retrograd import nn
from retrograd.utils.data import DataLoader, TensorDataset


class Network(nn.Module):
    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(2 * channels),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(2 * channels * 4 * 4, 10))

    def forward(self, images):
        return self.head(self.features(images))


class Digits:
    epochs, steps = 8, 60

    def __init__(self, images: int = 3840, batch: int = 64, channels: int = 16) -> None:
        labels = torch.randint(10, (images,))
        self.loader = DataLoader(TensorDataset(render(labels), labels), batch_size=batch, shuffle=True)
        self.test_labels = torch.randint(10, (500,))
        self.test_images = render(self.test_labels)
        self.model = Network(channels)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=self.epochs)

    def batches(self):
        return iter(self.loader)

    def step(self, batch) -> float:
        images, labels = batch
        loss = F.cross_entropy(self.model(images), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def picture(self, figure) -> None:
        with torch.no_grad():
            read = self.model(self.test_images).argmax(dim=1)
        right = (read == self.test_labels).float().mean().item()
        figure.suptitle(f"{right:.1%} of {len(read)} new digits read right; what was read, red where wrong")
        for axes, image, said, truth in zip(figure.subplots(4, 8).flat, self.test_images, read, self.test_labels):
            axes.imshow(image[0].numpy(), cmap="gray")
            axes.set_title(str(said.item()), color="black" if said == truth else "red")
            axes.axis("off")


if __name__ == "__main__":
    import training

    training.main(Digits)
