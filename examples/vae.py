"""A variational autoencoder that learns to draw digits from two numbers.

    python examples/vae.py
"""

from __future__ import annotations

import retrograd as torch
import retrograd.nn.functional as F
from rendered_digits import SIZE, render
from retrograd import nn
from retrograd.utils.data import DataLoader, TensorDataset


class VAE(nn.Module):
    def __init__(self, hidden: int, code: int = 2) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Flatten(),
            nn.Linear(SIZE * SIZE, hidden),
            nn.SiLU(),
            nn.Linear(hidden, 2 * code),
        )
        self.decoder = nn.Sequential(
            nn.Linear(code, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, SIZE * SIZE),
            nn.Unflatten(1, (1, SIZE, SIZE)),
        )

    def forward(self, images):
        mean, log_variance = self.encoder(images).chunk(2, dim=1)
        code = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        return self.decoder(code), mean, log_variance


class Drawing:
    epochs, steps = 20, 40

    def __init__(self, images: int = 2560, batch: int = 64, hidden: int = 128) -> None:
        self.labels = torch.randint(10, (images,))
        self.images = render(self.labels, noise=0.0, slant=0.1, shift=0.1).clamp(0, 1)
        self.loader = DataLoader(TensorDataset(self.images), batch_size=batch, shuffle=True)
        self.model = VAE(hidden)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3)
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, gamma=0.93)

    def batches(self):
        return iter(self.loader)

    def step(self, batch) -> float:
        (images,) = batch
        logits, mean, log_variance = self.model(images)
        # The bound on the evidence, per image: how well it is drawn again, and how far its code is from the prior.
        drawn = F.binary_cross_entropy_with_logits(logits, images, reduction="sum")
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum()
        loss = (drawn + divergence) / len(images)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def picture(self, figure) -> None:
        left, right = figure.subplots(1, 2)
        mean, _ = self.model.encoder(self.images[:1500]).chunk(2, dim=1)
        x, y = mean.numpy().T
        points = left.scatter(x, y, c=self.labels[:1500].numpy(), cmap="tab10", vmin=-0.5, vmax=9.5, s=6)
        figure.colorbar(points, ax=left, location="bottom", ticks=range(10), label="digit")
        left.set(title="where the digits are in the plane")
        count = 12
        steps = torch.linspace(-2, 2, count)
        codes = torch.cartesian_prod(steps.flip(0), steps).flip(1)
        drawn = torch.sigmoid(self.model.decoder(codes)).reshape(count, count, SIZE, SIZE)
        right.imshow(drawn.permute(0, 2, 1, 3).reshape(count * SIZE, count * SIZE).numpy(), cmap="gray")
        right.set(title="what is drawn from there, -2 to 2")
        right.axis("off")


if __name__ == "__main__":
    import training

    training.main(Drawing)
