"""A Hamiltonian network: it learns a pendulum's energy, and moves by that energy's derivatives.

The loss contains a gradient (`create_graph=True`). Beside it, a network that learns the velocities directly shows what
this is good for: the one keeps its energy over a long motion, the other drifts.

    python examples/hamiltonian.py
"""

from __future__ import annotations

import retrograd as torch
import retrograd.nn.functional as F
from retrograd import nn


def energy(state):
    """Of a pendulum of unit mass and length: the angle is the first coordinate, the momentum the second."""
    angle, momentum = state.unbind(-1)
    return momentum**2 / 2 + 1 - torch.cos(angle)


def flow(energy, state):
    """Hamilton's equations: the derivative of the energy, turned by a right angle."""
    with torch.enable_grad():
        if not state.requires_grad:
            state = state.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(energy(state).sum(), state, create_graph=True)
    by_angle, by_momentum = gradient.unbind(-1)
    return torch.stack([by_momentum, -by_angle], dim=-1)


def network(hidden: int, outputs: int):
    return nn.Sequential(
        nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, outputs)
    )


class Pendulum:
    epochs, steps = 20, 40

    def __init__(self, hidden: int = 48, points: int = 400, batch: int = 64) -> None:
        self.batch = batch
        self.states = (torch.rand(points, 2) - 0.5) * torch.tensor([5.0, 4.0])
        self.velocities = flow(energy, self.states).detach() + 0.05 * torch.randn(points, 2)
        self.model = nn.ModuleDict({"energy": network(hidden, 1), "direct": network(hidden, 2)})
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-3)
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, gamma=0.9)

    def batches(self):
        while True:
            chosen = torch.randperm(len(self.states))[: self.batch]
            yield self.states[chosen], self.velocities[chosen]

    def step(self, batch) -> float:
        states, velocities = batch
        by_energy = F.mse_loss(flow(self.model["energy"], states), velocities)
        direct = F.mse_loss(self.model["direct"](states), velocities)
        loss = by_energy + direct
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def move(self, law, steps: int = 1200, h: float = 0.1):
        state, path = torch.tensor([2.0, 0.0]), []
        for _ in range(steps):
            path.append(state)
            k1 = law(state).detach()
            k2 = law(state + h / 2 * k1).detach()
            k3 = law(state + h / 2 * k2).detach()
            k4 = law(state + h * k3).detach()
            state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return torch.stack(path)

    def picture(self, figure) -> None:
        left, right = figure.subplots(1, 2)
        laws = {
            "the true pendulum": lambda state: flow(energy, state),
            "learned energy": lambda state: flow(self.model["energy"], state),
            "learned velocities": self.model["direct"],
        }
        for (label, law), color in zip(laws.items(), ["black", "tab:blue", "tab:orange"]):
            path = self.move(law)
            left.plot(*path.numpy().T, label=label, color=color, linewidth=0.8)
            right.plot(0.1 * torch.arange(len(path)).numpy(), energy(path).numpy(), label=label, color=color)
        left.set(xlabel="angle", ylabel="momentum", title="two minutes of swinging")
        right.set(xlabel="time", title="the energy on the way")
        right.legend()


if __name__ == "__main__":
    import training

    training.main(Pendulum)
