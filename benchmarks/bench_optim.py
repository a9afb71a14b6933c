"""What one step of an optimizer costs beside torch's: models of many small parameters, and of few large ones.

Each library has a process of its own (`harness.Worker`), and the two take turns; times are of the processor, on one
thread. Gradients are there when the clock starts: what is timed is ``step()``, which changes the parameters and the
optimizer's state. That of LBFGS calls a closure, which differentiates a sum of squares.

    python benchmarks/bench_optim.py            one thread
    python benchmarks/bench_optim.py --quick
"""

from __future__ import annotations

import sys
from time import process_time

import harness  # first: it sets the thread counts that the libraries read
from harness import Case, Sampler, Worker, answer_as_worker, command_line, in_process

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


def step_of(lib: object, name: str, model: str) -> Sampler:
    """A sampler of one optimizer's step on the parameters of one model."""
    lib.manual_seed(0)  # type: ignore[attr-defined]
    cls, settings = OPTIMIZERS[name]
    shapes = [shape for shape in MODELS[model] if name != "Muon" or len(shape) == 2]
    params = [lib.randn(shape, requires_grad=True) for shape in shapes]  # type: ignore[attr-defined]
    for param in params:
        param.grad = lib.randn(param.shape)  # type: ignore[attr-defined]
    optimizer = getattr(lib.optim, cls)(params, **settings)  # type: ignore[attr-defined]
    if cls != "LBFGS":
        return in_process(optimizer.step, clock=process_time)

    def closure() -> object:
        optimizer.zero_grad()
        loss = sum((param * param).sum() for param in params)
        loss.backward()
        return loss

    return in_process(lambda: optimizer.step(closure), clock=process_time)


def main() -> int:
    """Measures all rows that the command line asks for."""
    workers = [Worker(__file__, "--worker", library) for library in ("retrograd", "torch")]

    def case(name: str, model: str) -> Case:
        row = f"{name}, {model}"
        bar = None if model == "1024 x 1024" else 1.0
        return Case(row, *[lambda w=w: w.sampler(f"{name}|{model}") for w in workers], bar=bar, unit="step")

    import numpy

    versions = {"numpy": numpy.__version__}
    return command_line(__doc__ or "", [case(*row) for row in ROWS], versions)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        library = __import__(sys.argv[2])
        library.set_num_threads(harness.THREADS)
        answer_as_worker(lambda row: step_of(library, *row.split("|")))
    else:
        sys.exit(main())
