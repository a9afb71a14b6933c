"""A neural ODE with the adjoint method: a network learns the law of a motion from noisy observations of it.

The gradient is not taken through the solver. `Odeint` is an autograd Function that keeps the observed states alone and
solves the adjoint equation backwards in time, so that its memory does not grow with the number of the solver's steps.

    python examples/neural_ode.py
"""

from __future__ import annotations

import itertools

import retrograd as torch
from retrograd import nn


def rk4(law, state, span, steps: int):
    """Solves d state/dt = law(state) over a span of time; a state is a tuple of tensors."""
    h = span / steps
    for _ in range(steps):
        k1 = law(state)
        k2 = law(tuple(s + h / 2 * k for s, k in zip(state, k1)))
        k3 = law(tuple(s + h / 2 * k for s, k in zip(state, k2)))
        k4 = law(tuple(s + h * k for s, k in zip(state, k3)))
        state = tuple(s + h / 6 * (a + 2 * b + 2 * c + d) for s, a, b, c, d in zip(state, k1, k2, k3, k4))
    return state


class Odeint(torch.autograd.Function):
    """The states at each of `times`, the first of which is `start`."""

    @staticmethod
    def forward(ctx, law, times, steps, start, *parameters):
        states = [start]
        for begin, end in itertools.pairwise(times):
            states += rk4(lambda state: (law(*state),), (states[-1],), end - begin, steps)
        states = torch.stack(states)
        ctx.law, ctx.times, ctx.steps = law, times, steps
        ctx.save_for_backward(states, *parameters)
        return states

    @staticmethod
    def backward(ctx, grads):
        states, *parameters = ctx.saved_tensors

        def augmented(state):
            """d(z, a, g)/dt = (f, -aᵀ ∂f/∂z, -aᵀ ∂f/∂θ)"""
            z, a = state[0].detach().requires_grad_(), state[1]
            with torch.enable_grad():
                f = ctx.law(z)
            return f.detach(), *torch.autograd.grad(f, (z, *parameters), -a)

        a, gradients = grads[-1], tuple(torch.zeros_like(p) for p in parameters)
        for i in range(len(ctx.times) - 1, 0, -1):
            span = ctx.times[i - 1] - ctx.times[i]
            _, a, *gradients = rk4(augmented, (states[i], a, *gradients), span, ctx.steps)
            a = a + grads[i - 1]
        return None, None, None, a, *gradients


class Law(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, state):
        return self.net(state**3)


def truth(state):
    return (state**3) @ torch.tensor([[-0.1, 2.0], [-2.0, -0.1]]).to(state.dtype).T


class Spiral:
    epochs, steps = 25, 20

    def __init__(self, hidden: int = 32, observations: int = 300, batch: int = 24, length: int = 8) -> None:
        self.batch, self.length = batch, length
        self.times = torch.linspace(0, 10, observations)
        exact = Odeint.apply(truth, self.times, 8, torch.tensor([2.0, 0.0]))
        self.observed = exact + 0.02 * torch.randn_like(exact)
        self.model = Law(hidden)
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, gamma=0.85)

    def solve(self, start, times, steps: int = 2):
        return Odeint.apply(self.model, times, steps, start, *self.model.parameters())

    def batches(self):
        """Short pieces of the motion, from where they begin."""
        while True:
            begin = torch.randint(len(self.times) - self.length, (self.batch,))
            yield self.observed[begin + torch.arange(self.length).unsqueeze(1)]  # (length, batch, 2)

    def step(self, pieces) -> float:
        predicted = self.solve(pieces[0], self.times[: self.length])
        loss = (predicted - pieces).abs().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def picture(self, figure) -> None:
        path = self.solve(torch.tensor([2.0, 0.0]), self.times, steps=8).numpy()
        observed = self.observed.numpy()
        axes = figure.subplots()
        axes.plot(observed[:, 0], observed[:, 1], ".", color="0.6", label="observed")
        axes.plot(path[:, 0], path[:, 1], label="solved from the first point with the law that was learned")
        across = torch.linspace(-2.2, 2.2, 20)
        grid = torch.cartesian_prod(across, across)
        field = nn.functional.normalize(self.model(grid), dim=1)
        axes.quiver(*grid.numpy().T, *field.numpy().T, color="tab:green", alpha=0.3)
        axes.set(aspect="equal", title="a motion and its law")
        axes.legend(loc="lower center", fontsize=8)


if __name__ == "__main__":
    import training

    training.main(Spiral)
