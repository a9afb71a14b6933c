"""The demonstration that `make demo` runs: a gradient checked, a graph shown, a network trained, all in a few seconds.

Everything below is what a torch user would write; only the import differs. It ends with exit status 1 if the
gradient is wrong or the network does not learn.
"""

from __future__ import annotations

import itertools
import sys
import textwrap
import time
from collections.abc import Callable

import numpy as np

import retrograd as torch
import terminal

F = torch.nn.functional

ARMS, POINTS_PER_ARM, HIDDEN = 3, 120, 64
STEPS, BATCH, LEARNING_RATE = 900, 90, 0.01


# --------------------------------------------------------------------------------------------------- data and network


def make_spirals(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points on three arms of a spiral in [-1, 1]², and the arm that each is on."""
    radius = np.tile(np.linspace(0.08, 0.95, POINTS_PER_ARM), ARMS)
    arm = np.repeat(np.arange(ARMS), POINTS_PER_ARM)
    angle = 2 * np.pi * arm / ARMS + 5.5 * radius + 0.2 * rng.standard_normal(radius.size)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return points.astype(np.float32), arm.astype(np.int64)


def make_parameters(rng: np.random.Generator, sizes: list[int], dtype: torch.dtype) -> list[torch.Tensor]:
    """A weight and a bias for each layer, all leaves that require grad."""
    parameters = []
    for fan_in, fan_out in itertools.pairwise(sizes):
        weight = rng.standard_normal((fan_out, fan_in)) * np.sqrt(2 / fan_in)
        parameters.append(torch.tensor(weight, dtype=dtype, requires_grad=True))
        parameters.append(torch.zeros(fan_out, dtype=dtype, requires_grad=True))
    return parameters


def network(x: torch.Tensor, parameters: list[torch.Tensor]) -> torch.Tensor:
    """A multilayer perceptron with tanh between its layers; returns the logits."""
    for weight, bias in zip(parameters[:-2:2], parameters[1:-2:2]):
        x = torch.tanh(F.linear(x, weight, bias))
    return F.linear(x, parameters[-2], parameters[-1])


class Adam:
    """The Adam optimiser in a dozen lines, updating its parameters in place under `no_grad`."""

    def __init__(self, parameters: list[torch.Tensor], lr: float) -> None:
        self.lr = lr
        self.steps = 0
        self.state = [(p, torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]

    def step(self, lr_scale: float) -> None:
        """Takes one step along the gradients in `.grad` and clears them."""
        self.steps += 1
        lr = self.lr * lr_scale * (1 - 0.99**self.steps) ** 0.5 / (1 - 0.9**self.steps)
        with torch.no_grad():
            for p, mean, square in self.state:
                mean += 0.1 * (p.grad - mean)
                square += 0.01 * (p.grad * p.grad - square)
                p -= lr * mean / (square.sqrt() + 1e-8)
                p.grad = None


# ---------------------------------------------------------------------------------------------------------- the parts


def check_gradient(rng: np.random.Generator, points: np.ndarray, arms: np.ndarray) -> bool:
    """Compares `backward()` with central differences, for every entry of the first weight of a small network."""
    x, y = torch.tensor(points[::12], dtype=torch.float64), torch.tensor(arms[::12])
    parameters = make_parameters(rng, [2, 8, 8, ARMS], torch.float64)
    weight = parameters[0]

    F.cross_entropy(network(x, parameters), y).backward()

    def loss_with(shift: np.ndarray) -> float:
        with torch.no_grad():
            return F.cross_entropy(network(x, [weight + torch.from_numpy(shift), *parameters[1:]]), y).item()

    step, rows = 1e-5, []
    for i, j in np.ndindex(*weight.shape):
        shift = np.zeros(tuple(weight.shape))
        shift[i, j] = step
        exact, numeric = weight.grad[i, j].item(), (loss_with(shift) - loss_with(-shift)) / (2 * step)
        rows.append((abs(exact - numeric) / max(abs(exact), abs(numeric), 1e-8), i, j, exact, numeric))

    worst = max(rows)
    print("  entry           backward()         differences          relative error")
    for error, i, j, exact, numeric in [*rows[:3], worst]:
        label = f"W1[{i},{j}]" + (" worst" if (i, j) == worst[1:3] else "")
        print(f"  {label:<14} {exact:+.12f}    {numeric:+.12f}    {error:.1e}")
    passed = worst[0] < 1e-5
    verdict = terminal.paint("agree", "green") if passed else terminal.paint("DISAGREE", "red")
    print(f"\n  all {len(rows)} entries {verdict}")
    return passed


def describe_saved(node: torch.autograd.graph.Node) -> str:
    """What a node keeps from the forward pass: its `_saved_*` attributes, a tensor by its shape."""
    parts = []
    for name in sorted(name for name in dir(node) if name.startswith("_saved_")):
        value = getattr(node, name)
        if isinstance(value, torch.Tensor):
            parts.append(f"{name}[{'×'.join(map(str, value.shape))}]")
        elif value is not None and value != ():
            parts.append(f"{name}={value}")
    return "  ".join(parts)


def show_graph(rng: np.random.Generator) -> None:
    """Prints the backward graph of a one-layer network's loss, as `grad_fn.next_functions` gives it."""
    x = torch.tensor(rng.standard_normal((5, 2)), dtype=torch.float32)
    weight, bias = make_parameters(rng, [2, ARMS], torch.float32)
    loss = F.cross_entropy(torch.tanh(x @ weight.t() + bias), torch.tensor([0, 1, 2, 0, 1]))
    leaves = {id(weight): "weight", id(bias): "bias"}

    print("  loss = cross_entropy(tanh(x @ weight.t() + bias), y)\n")
    stack, seen = [(loss.grad_fn, "", "")], set()
    while stack:  # a stack and no recursion: graphs may be a million nodes deep
        node, branch, indent = stack.pop()
        name = node.name().rpartition("::")[2]
        if hasattr(node, "variable"):
            detail = f"→ {leaves[id(node.variable)]}.grad"
        else:
            detail = "(above)" if node in seen else describe_saved(node)
        lines = textwrap.wrap(detail, 72) or [""]
        print(f"  {terminal.paint(branch, 'dim')}{name:<{36 - len(branch)}}{terminal.paint(lines[0], 'dim')}".rstrip())
        for line in lines[1:]:
            print(f"  {terminal.paint(f'{indent:<36}{line}', 'dim')}")
        if node in seen:
            continue
        seen.add(node)
        children = [child for child, _ in node.next_functions if child is not None]
        for child in reversed(children):
            last = child is children[-1]
            stack.append((child, indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  ")))


def train(
    rng: np.random.Generator, points: np.ndarray, arms: np.ndarray
) -> tuple[list[float], float, Callable[[np.ndarray], np.ndarray]]:
    """Trains on mini-batches; returns the losses, the final accuracy and a function from points to arms."""
    parameters = make_parameters(rng, [2, HIDDEN, HIDDEN, ARMS], torch.float32)
    optimiser = Adam(parameters, LEARNING_RATE)
    x, y = torch.from_numpy(points), torch.from_numpy(arms)
    size = sum(p.numel() for p in parameters)
    print(f"  {len(points)} points, 2-{HIDDEN}-{HIDDEN}-{ARMS} tanh network, {size:,} parameters, Adam\n")

    def predict(where: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            _, label = network(torch.from_numpy(where), parameters).max(dim=1)
        return label.numpy()

    losses: list[float] = []
    progress = terminal.Progress(STEPS)
    start = time.perf_counter()
    for step in range(1, STEPS + 1):
        batch = torch.from_numpy(rng.choice(len(points), BATCH, replace=False))
        loss = F.cross_entropy(network(x[batch], parameters), y[batch])
        loss.backward()
        optimiser.step(lr_scale=0.5 + 0.5 * float(np.cos(np.pi * step / STEPS)))
        losses.append(loss.item())
        recent = sum(losses[-20:]) / len(losses[-20:])
        progress.update(step, f"loss {recent:.4f}  {step / (time.perf_counter() - start):5.0f} steps/s")
    accuracy = float((predict(points) == arms).mean())
    print(f"\n  {accuracy:.1%} of the points are on the right arm")
    return losses, accuracy, predict


def show_regions(predict: Callable[[np.ndarray], np.ndarray], points: np.ndarray, arms: np.ndarray) -> None:
    """Asks the network about a grid of points and draws its answers, the training points on top."""
    width, height = 66, 30
    across, down = (np.arange(width) + 0.5) / width * 2 - 1, 1 - (np.arange(height) + 0.5) / height * 2
    grid = np.stack(np.meshgrid(across, down), axis=-1).reshape(-1, 2).astype(np.float32)
    print(terminal.regions(predict(grid).reshape(height, width), points[::2], arms[::2]))


def main() -> int:
    """Runs all parts; the exit status says whether the gradient was right and the network learned."""
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    rng = np.random.default_rng(7)
    points, arms = make_spirals(rng)

    terminal.heading(1, "A gradient, checked against central finite differences")
    gradient_ok = check_gradient(rng, points, arms)
    terminal.heading(2, "The graph that the forward pass built, and what each node saved")
    show_graph(rng)
    terminal.heading(3, "Training on three arms of a spiral")
    losses, accuracy, predict = train(rng, points, arms)
    terminal.heading(4, "The loss, on a logarithmic scale")
    print(terminal.curve(losses))
    terminal.heading(5, "What the network believes")
    show_regions(predict, points, arms)
    print()

    first, last = np.mean(losses[:20]), np.mean(losses[-20:])
    learned = bool(last < 0.2 * first and accuracy > 0.9)
    if not gradient_ok:
        print("FAILED: backward() disagrees with finite differences", file=sys.stderr)
    if not learned:
        print(f"FAILED: the loss went from {first:.3f} to {last:.3f}, accuracy {accuracy:.1%}", file=sys.stderr)
    return 0 if gradient_ok and learned else 1


if __name__ == "__main__":
    sys.exit(main())
