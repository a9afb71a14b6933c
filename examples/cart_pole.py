"""Reinforcement learning: a policy learns to balance a pole on a cart, by actor and critic.

The environment is written below, many carts at once.

    python examples/cart_pole.py
"""

from __future__ import annotations

import retrograd as torch
import retrograd.nn.functional as F
from retrograd import nn


class Carts:
    """Carts on a track, each with a pole on it that wants to fall; a push to the left or the right at every tick."""

    GRAVITY, POLE, HALF_LENGTH, TOTAL, PUSH, TICK = 9.8, 0.1, 0.5, 1.1, 10.0, 0.02

    def __init__(self, count: int) -> None:
        self.state = 0.1 * torch.rand(count, 4) - 0.05  # place, velocity, angle, its velocity
        self.standing = torch.ones(count, dtype=torch.bool)

    def push(self, right) -> None:
        place, velocity, angle, turning = self.state.unbind(1)
        push = torch.where(right, self.PUSH, -self.PUSH)
        cosine, sine = angle.cos(), angle.sin()
        pull = (push + self.POLE * self.HALF_LENGTH * turning**2 * sine) / self.TOTAL
        inertia = self.HALF_LENGTH * (4 / 3 - self.POLE * cosine**2 / self.TOTAL)
        spin = (self.GRAVITY * sine - cosine * pull) / inertia
        speedup = pull - self.POLE * self.HALF_LENGTH * spin * cosine / self.TOTAL
        moved = self.state + self.TICK * torch.stack([velocity, speedup, turning, spin], dim=1)
        self.standing = self.standing & (place.abs() < 2.4) & (angle.abs() < 0.21)
        self.state = torch.where(self.standing.unsqueeze(1), moved, self.state)


class ActorCritic(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.policy, self.value = nn.Linear(hidden, 1), nn.Linear(hidden, 1)

    def forward(self, states):
        """The logit of a push to the right, and how many hundred ticks the pole may stand (discounted)."""
        x = self.body(states * torch.tensor([0.5, 0.5, 5.0, 0.5]))
        return self.policy(x).squeeze(-1), self.value(x).squeeze(-1)


class Balance:
    epochs, steps = 10, 15

    def __init__(self, hidden: int = 32, carts: int = 32, ticks: int = 300, discount: float = 0.98) -> None:
        self.carts, self.ticks, self.discount = carts, ticks, discount
        self.model = ActorCritic(hidden)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.LinearLR(self.optimizer, 1.0, 0.1, total_iters=self.epochs)

    @torch.no_grad()
    def play(self):
        """One episode of all carts: states, pushes, and who was standing, each (ticks, carts, ...)."""
        carts, history = Carts(self.carts), []
        for _ in range(self.ticks):
            logits, _ = self.model(carts.state)
            right = torch.rand(self.carts) < torch.sigmoid(logits)
            history.append((carts.state, right, carts.standing))
            carts.push(right)
        return [torch.stack(part) for part in zip(*history)]

    def batches(self):
        while True:
            yield self.play()

    def step(self, batch) -> float:
        states, pushes, standing = batch
        alive = standing.float()
        returns, total = [], torch.zeros(self.carts)
        for standing_now in alive.flip(0):
            total = standing_now * (0.01 + self.discount * total)
            returns.append(total)
        returns = torch.stack(returns).flip(0)

        logits, values = self.model(states)
        advantage = (returns - values).detach()
        advantage = advantage / (advantage[standing].std() + 1e-4)
        surprise = F.binary_cross_entropy_with_logits(logits, pushes.float(), reduction="none")
        actor = (alive * advantage * surprise).sum() / alive.sum()
        critic = (alive * (returns - values) ** 2).sum() / alive.sum()
        loss = actor + critic
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def picture(self, figure) -> None:
        above, below = figure.subplots(2, 1)
        states, _, standing = self.play()
        time = Carts.TICK * torch.arange(self.ticks).numpy()
        above.plot(time, states[:, :, 2].numpy(), linewidth=0.6)
        mean = Carts.TICK * standing.float().sum(dim=0).mean().item()
        above.set(ylabel="angle of the pole", ylim=(-0.25, 0.25))
        whole = Carts.TICK * self.ticks
        above.set(title=f"{self.carts} carts; poles stood for {mean:.1f} of {whole:.0f} seconds in the mean")
        below.plot(time, states[:, :, 0].numpy(), linewidth=0.6)
        below.set(ylabel="place of the cart", xlabel="seconds", ylim=(-2.5, 2.5))


if __name__ == "__main__":
    import training

    training.main(Balance)
