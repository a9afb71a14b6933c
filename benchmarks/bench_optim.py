"""What one step of an optimizer costs beside torch's: models of many small parameters, and of few large ones.

Each library has a process of its own (`harness.Worker`), and the two take turns; times are of the processor, on one
thread. Gradients are there when the clock starts: what is timed is ``step()``, which changes the parameters and the
optimizer's state. That of LBFGS calls a closure, which differentiates a sum of squares.

    python benchmarks/bench_optim.py            one thread
    python benchmarks/bench_optim.py --quick
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import harness  # first: it sets the thread counts that the libraries read
from harness import Case, both

#: Shapes of parameters. The small ones are what tests and examples train: an MLP on digits, a convnet of a few layers;
#: the large one has a million numbers.
MODELS: dict[str, list[tuple[int, ...]]] = {
    "one number": [()],
    "MLP 64-32-10": [(32, 64), (32,), (10, 32), (10,)],
    "digits convnet": [(8, 1, 3, 3), (8,), (8,), (8,), (16, 8, 3, 3), (16,), (16,), (16,), (10, 256), (10,)],
    "20 layers of 16": [shape for _ in range(20) for shape in ((16, 16), (16,))],
    "1024 x 1024": [(1024, 1024)],
}

#: Optimizers, with the options that they are mostly used with.
OPTIMIZERS: dict[str, tuple[str, dict[str, object]]] = {
    "SGD": ("SGD", {"lr": 1e-4}),
    "SGD momentum": ("SGD", {"lr": 1e-4, "momentum": 0.9}),
    "Adam": ("Adam", {"lr": 1e-4}),
    "AdamW": ("AdamW", {"lr": 1e-4}),
    "Adamax": ("Adamax", {"lr": 1e-4}),
    "NAdam": ("NAdam", {"lr": 1e-4}),
    "RAdam": ("RAdam", {"lr": 1e-4}),
    "RMSprop": ("RMSprop", {"lr": 1e-4}),
    "Rprop": ("Rprop", {"lr": 1e-4}),
    "Adagrad": ("Adagrad", {"lr": 1e-4}),
    "Adadelta": ("Adadelta", {"lr": 1e-4}),
    "ASGD": ("ASGD", {"lr": 1e-4}),
    "Adafactor": ("Adafactor", {"lr": 1e-4}),
    "Muon": ("Muon", {"lr": 1e-4}),
    "LBFGS": ("LBFGS", {"lr": 1e-4}),
}

#: Rows: every optimizer on the convnet's parameters, and the most used ones on all models.
ROWS = [(name, "digits convnet") for name in OPTIMIZERS] + [
    (name, model)
    for name in ("SGD", "SGD momentum", "Adam", "AdamW")
    for model in MODELS
    if model != "digits convnet"
]


def step_of(name: str, model: str) -> harness.Setup:
    """One optimizer's step on the parameters of one model."""

    def setup(lib: Any) -> Callable[[], Any]:
        cls, settings = OPTIMIZERS[name]
        shapes = [shape for shape in MODELS[model] if name != "Muon" or len(shape) == 2]
        params = [lib.randn(shape, requires_grad=True) for shape in shapes]
        for param in params:
            param.grad = lib.randn(param.shape)
        optimizer = getattr(lib.optim, cls)(params, **settings)
        if cls != "LBFGS":
            return optimizer.step

        def closure() -> Any:
            optimizer.zero_grad()
            loss = sum((param * param).sum() for param in params)
            loss.backward()
            return loss

        return lambda: optimizer.step(closure)

    return setup


def case(name: str, model: str) -> Case:
    bar = None if model == "1024 x 1024" else 1.0
    return both(f"{name}, {model}", step_of(name, model), clock=process_time, bar=bar, unit="step")


if __name__ == "__main__":
    versions = harness.versions("numpy", "torch", "retrograd")
    sys.exit(harness.command_line((__doc__ or "").splitlines()[0], [case(*row) for row in ROWS], versions))
