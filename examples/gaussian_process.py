"""A Gaussian process whose kernel is found by maximum likelihood, through a Cholesky factor.

    python examples/gaussian_process.py
"""

from __future__ import annotations

import math

import retrograd as torch
from retrograd import nn


class GaussianProcess(nn.Module):
    """A smooth trend and a wave that changes slowly; every length and size is learned as its logarithm."""

    def __init__(self) -> None:
        super().__init__()
        sizes = {"trend": 1.0, "trend_length": 2.0, "wave": 1.0, "wave_length": 3.0, "period": 1.2, "noise": 0.5}
        logs = {name: torch.tensor(math.log(size), dtype=torch.float64) for name, size in sizes.items()}
        self.logs = nn.ParameterDict({name: nn.Parameter(log) for name, log in logs.items()})

    def size(self, name: str):
        return self.logs[name].exp()

    def kernel(self, a, b):
        distance = a.unsqueeze(1) - b
        trend = self.size("trend") ** 2 * torch.exp(-0.5 * (distance / self.size("trend_length")) ** 2)
        wave = torch.exp(-2 * torch.sin(math.pi * distance / self.size("period")) ** 2)
        fading = torch.exp(-0.5 * (distance / self.size("wave_length")) ** 2)
        return trend + self.size("wave") ** 2 * wave * fading

    def factor(self, x):
        noise = self.size("noise") ** 2 * torch.eye(len(x), dtype=x.dtype)
        return torch.linalg.cholesky(self.kernel(x, x) + noise)

    def forward(self, x, y):
        """Minus the logarithm of the likelihood, per observation."""
        lower = self.factor(x)
        white = torch.linalg.solve_triangular(lower, y.unsqueeze(1), upper=False)
        return (0.5 * white.square().sum() + lower.diagonal().log().sum()) / len(x) + 0.5 * math.log(2 * math.pi)

    def predict(self, x, y, new):
        """Mean and standard deviation at new places."""
        lower, across = self.factor(x), self.kernel(x, new)
        mean = across.T @ torch.cholesky_solve(y.unsqueeze(1), lower)
        explained = torch.linalg.solve_triangular(lower, across, upper=False).square().sum(dim=0)
        variance = self.kernel(new[:1], new[:1])[0, 0] - explained
        return mean.squeeze(1), variance.clamp(min=0).sqrt()


class Fit:
    epochs, steps = 15, 20

    def __init__(self, points: int = 120) -> None:
        x = 8 * torch.rand(points).double().sort().values
        self.x = x[(x < 3.2) | (x > 4.4)]  # a gap, which the prediction has to bridge
        self.y = self.truth(self.x) + 0.2 * torch.randn(len(self.x)).double()
        self.model = GaussianProcess()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.05)
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, gamma=0.9)

    @staticmethod
    def truth(x):
        return torch.sin(2 * math.pi * x) + 0.1 * (x - 3) ** 2 - 1

    def batches(self):
        while True:
            yield self.x, self.y  # the likelihood is of all observations at once

    def step(self, batch) -> float:
        loss = self.model(*batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def picture(self, figure) -> None:
        new = torch.linspace(0, 10, 400).double()
        mean, deviation = self.model.predict(self.x, self.y, new)
        axes = figure.subplots()
        low, high = (mean - 2 * deviation).numpy(), (mean + 2 * deviation).numpy()
        axes.fill_between(new.numpy(), low, high, alpha=0.25, label="two standard deviations")
        axes.plot(new.numpy(), mean.numpy(), label="mean")
        axes.plot(new.numpy(), self.truth(new).numpy(), "k:", label="truth")
        axes.plot(self.x.numpy(), self.y.numpy(), ".", color="0.4", label="observations")
        found = ", ".join(f"{name} {self.model.size(name):.2f}" for name in ["period", "noise", "trend_length"])
        axes.set(title=f"found: {found} (true: period 1, noise 0.2)")
        axes.legend()


if __name__ == "__main__":
    import training

    training.main(Fit)
