"""Transforms beside torch.func: per-sample gradients, a Hessian, a Hessian-vector product, Jacobians; functional.*.

    python benchmarks/bench_func.py [--quick] [--only TEXT] [--json FILE] [--markdown FILE] [--strict]

Where JAX is installed, its compiled transforms of the same functions are timed too, in a process of their own: rows
that only inform.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from itertools import pairwise
from time import process_time
from types import ModuleType
from typing import Any

import numpy as np

import harness
from harness import Case, Sampler, both
from retrograd.core import compiled

SIZES = (64, 64, 64, 10)
SMALL = (16, 32, 16)


def layers(rng: np.random.Generator, sizes: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights and biases, as an initialization has them."""
    return [(draw(rng, n, m) / m**0.5, draw(rng, n) / m**0.5) for m, n in pairwise(sizes)]


def draw(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def data() -> dict[str, Any]:
    """The same numbers for every library."""
    rng = np.random.default_rng(0)
    return {
        "mlp": layers(rng, SIZES), "inputs": draw(rng, 64, 64), "targets": rng.integers(0, 10, 64),
        "weights": draw(rng, 50, 50), "point": draw(rng, 50), "direction": draw(rng, 50),
        "small": layers(rng, SMALL), "x": draw(rng, 16),
    }  # fmt: skip


def calls(lib: ModuleType) -> dict[str, Callable[[], Any]]:
    """What is timed, by its name."""
    func = importlib.import_module(f"{lib.__name__}.func")
    functional, nn, given = lib.autograd.functional, lib.nn, data()
    mlp = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    small = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 16))

    def parameters(model: Any, arrays: Any) -> dict[str, Any]:
        flat = [lib.from_numpy(array) for layer in arrays for array in layer]
        return {name: value for (name, _), value in zip(model.named_parameters(), flat, strict=True)}

    params, small_params = parameters(mlp, given["mlp"]), parameters(small, given["small"])
    names = ("inputs", "targets", "weights", "point", "direction", "x")
    inputs, targets, weights, point, direction, x = (lib.from_numpy(given[name]) for name in names)

    def loss(params: Any, x: Any, target: Any) -> Any:
        out = func.functional_call(mlp, params, (x.unsqueeze(0),))
        return nn.functional.cross_entropy(out, target.unsqueeze(0))

    def energy(x: Any) -> Any:
        return (lib.tanh(weights @ x) ** 2).sum() + (x * x * x).sum() + x.sin().prod()

    def many(x: Any) -> Any:
        return lib.tanh(weights @ x) * x.sin()

    per_sample, hessian = func.vmap(func.grad(loss), in_dims=(None, 0, 0)), func.hessian(energy)
    backwards = func.jacrev(lambda x: func.functional_call(small, small_params, (x,)))
    forwards = func.jacfwd(lambda x: func.functional_call(small, small_params, (x,)))
    return {
        "per-sample gradients of an MLP": lambda: list(per_sample(params, inputs, targets).values()),
        "Hessian of 50 dimensions": lambda: hessian(point),
        "Hessian-vector product": lambda: func.jvp(func.grad(energy), (point,), (direction,)),
        "Jacobian of a small network, jacrev": lambda: backwards(x),
        "Jacobian of a small network, jacfwd": lambda: forwards(x),
        "functional.hessian": lambda: functional.hessian(energy, point),
        "functional.hvp": lambda: functional.hvp(energy, point, direction),
        "functional.vhp": lambda: functional.vhp(energy, point, direction),
        "functional.jvp": lambda: functional.jvp(many, point, direction),
    }


def jax_calls() -> dict[str, Callable[[], Any]]:
    """The same in JAX, each compiled as a whole."""
    import jax
    from jax import numpy as jnp

    given = {name: jax.tree.map(jnp.asarray, value) for name, value in data().items()}

    def network(params: Any, x: Any, activation: Any) -> Any:
        for weight, bias in params[:-1]:
            x = activation(weight @ x + bias)
        weight, bias = params[-1]
        return weight @ x + bias

    def loss(params: Any, x: Any, target: Any) -> Any:
        return -jax.nn.log_softmax(network(params, x, jax.nn.relu))[target]

    def energy(x: Any, weights: Any) -> Any:
        return (jnp.tanh(weights @ x) ** 2).sum() + (x * x * x).sum() + jnp.sin(x).prod()

    def product(x: Any, direction: Any, weights: Any) -> Any:
        return jax.jvp(lambda x: jax.grad(energy)(x, weights), (x,), (direction,))

    per_sample = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))
    hessian, product = jax.jit(jax.hessian(energy)), jax.jit(product)
    backwards, forwards = (jax.jit(way(lambda x, params: network(params, x, jnp.tanh)))
                           for way in (jax.jacrev, jax.jacfwd))  # fmt: skip
    point, weights, small = given["point"], given["weights"], given["small"]
    made = {
        "per-sample gradients of an MLP": lambda: per_sample(given["mlp"], given["inputs"], given["targets"]),
        "Hessian of 50 dimensions": lambda: hessian(point, weights),
        "Hessian-vector product": lambda: product(point, given["direction"], weights),
        "Jacobian of a small network, jacrev": lambda: backwards(given["x"], small),
        "Jacobian of a small network, jacfwd": lambda: forwards(given["x"], small),
    }
    return {name: lambda call=call: jax.block_until_ready(call()) for name, call in made.items()}


def work_with_jax() -> None:
    """The process that has JAX to itself."""
    one = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ.setdefault("XLA_FLAGS", one if harness.THREADS == 1 else "")
    import jax

    timed = jax_calls()

    def choose(name: str) -> tuple[Sampler, Any]:
        run = timed[name]
        arrays = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(run())]
        found = [[float(a.sum()), float(np.abs(a).sum()), float((a * a).sum())] for a in arrays]
        return harness.in_process(run, sample_s=0.02, clock=process_time), found

    harness.answer_as_worker(choose)


NAMES = [
    "per-sample gradients of an MLP", "Hessian of 50 dimensions", "Hessian-vector product",
    "Jacobian of a small network, jacrev", "Jacobian of a small network, jacfwd",
    "functional.hessian", "functional.hvp", "functional.vhp", "functional.jvp",
]  # fmt: skip


def cases() -> list[Case]:
    recorded = 0.6 if compiled.library is None else 0.35  # passes that record, or go over what was recorded
    bars = {name: recorded if name.startswith("functional") else 0.6 for name in NAMES}
    found = [both(name, lambda lib, name=name: calls(lib)[name], bar=bars[name], sample_s=0.02, clock=process_time)
             for name in NAMES]  # fmt: skip
    if importlib.util.find_spec("jax") is not None:
        for name in NAMES[:5]:
            mine, theirs = (functools.partial(harness._sampler, library, name) for library in ("retrograd", "jax"))
            found.append(Case(f"{name}, JAX", subject=mine, reference=theirs, labels=("retrograd", "JAX, compiled")))
    return found


if __name__ == "__main__":
    if sys.argv[1:3] == ["--worker", "jax"]:
        sys.exit(work_with_jax())
    versions = harness.versions("numpy", "torch", "retrograd", "jax")
    sys.exit(harness.command_line((__doc__ or "").splitlines()[0], cases(), versions))
