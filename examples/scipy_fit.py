"""A fit with SciPy: Newton's method with exact gradients and Hessians, of a decaying wave with outliers.

It is fitted again and again to the observations drawn anew from themselves (the bootstrap); how the parameters scatter
is held against what the exact Hessian of one fit says of their errors. (`retrograd.scipy.minimize` would hand SciPy the
derivatives by itself; written out, the script runs with torch too.)

    python examples/scipy_fit.py
"""

from __future__ import annotations

import math

from scipy import optimize

import retrograd as torch
from retrograd import nn

NAMES = ["height", "decay", "frequency", "phase", "offset"]
TRUTH = [2.0, 0.3, 3.0, 0.5, 0.4]
NOISE = 0.15


def wave(parameters, time):
    height, decay, frequency, phase, offset = parameters.unbind(-1)
    return height * torch.exp(-decay * time) * torch.sin(frequency * time + phase) + offset


class Wave(nn.Module):
    def __init__(self, fits: int) -> None:
        super().__init__()
        self.parameters_of_wave = nn.Parameter(torch.tensor([1.5, 0.2, 2.9, 0.3, 0.0], dtype=torch.float64))
        self.register_buffer("fits", torch.full((fits, len(NAMES)), math.nan, dtype=torch.float64))


class Bootstrap:
    epochs, steps = 10, 20

    def __init__(self, points: int = 150) -> None:
        self.time = 8 * torch.rand(points, dtype=torch.float64).sort().values
        # Student's noise with two degrees of freedom: most of it small, some of it wild.
        normal, other = torch.randn(points, dtype=torch.float64), torch.randn(points, 2, dtype=torch.float64)
        noise = NOISE * normal / other.square().mean(dim=1).sqrt()
        self.observed = wave(torch.tensor(TRUTH, dtype=torch.float64), self.time) + noise
        self.model = Wave(self.epochs * self.steps)

    def loss(self, parameters, chosen):
        """Minus the logarithm of the likelihood under that noise, up to a constant."""
        residual = self.observed[chosen] - wave(parameters, self.time[chosen])
        return 1.5 * torch.log1p(0.5 * (residual / NOISE) ** 2).sum()

    def batches(self):
        while True:
            yield torch.randint(len(self.time), self.time.shape)

    def step(self, chosen) -> float:
        parameters = self.model.parameters_of_wave

        def value_and_gradient(x):
            at = torch.tensor(x, requires_grad=True)
            value = self.loss(at, chosen)
            (gradient,) = torch.autograd.grad(value, at)
            return value.item(), gradient.numpy()

        def hessian(x):
            return self.hessian(torch.tensor(x), chosen).numpy()

        start = parameters.detach().numpy().copy()
        parameters.grad = torch.tensor(value_and_gradient(start)[1])
        found = optimize.minimize(value_and_gradient, start, jac=True, hess=hessian, method="trust-exact")
        with torch.no_grad():
            parameters.copy_(torch.from_numpy(found.x))
            self.model.fits.copy_(torch.cat([self.model.fits[1:], parameters.unsqueeze(0)]))
        return found.fun / len(chosen)

    def hessian(self, parameters, chosen):
        return torch.autograd.functional.hessian(lambda at: self.loss(at, chosen), parameters)

    @torch.no_grad()
    def picture(self, figure) -> None:
        fits = self.model.fits[~self.model.fits[:, 0].isnan()]
        with torch.enable_grad():
            self.step(torch.arange(len(self.time)))  # all observations, each once
        best = self.model.parameters_of_wave.detach()
        errors = torch.linalg.inv(self.hessian(best, torch.arange(len(self.time)))).diagonal().sqrt()
        above, below = figure.subplots(2, 1)
        line = torch.linspace(0, 8, 400, dtype=torch.float64)
        above.plot(line.numpy(), wave(fits.unsqueeze(1), line).T.numpy(), color="tab:blue", alpha=0.03)
        above.plot(line.numpy(), wave(best, line).numpy(), color="tab:blue", label="fit, and those of the bootstrap")
        above.plot(self.time.numpy(), self.observed.numpy(), ".", color="0.4", label="observations")
        above.set(ylim=(-2.5, 3.5))
        above.legend()
        places = range(len(NAMES))
        below.bar([p - 0.2 for p in places], errors.numpy(), width=0.4, label="error by the Hessian")
        below.bar([p + 0.2 for p in places], fits.std(dim=0).numpy(), width=0.4, label="scatter of the bootstrap")
        found = [f"{name}\n{value:.2f} ({true})" for name, value, true in zip(NAMES, best.tolist(), TRUTH)]
        below.set_xticks(list(places), found)
        below.set(title="parameters found (true)")
        below.legend()


if __name__ == "__main__":
    import training

    training.main(Bootstrap)
