"""Transforms beside torch.func: per-sample gradients, a Hessian, a Hessian-vector product, Jacobians.

    python benchmarks/bench_func.py [--quick] [--only TEXT] [--json FILE] [--markdown FILE] [--strict]
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import harness
from harness import Case, both


def calls(lib: ModuleType) -> dict[str, Callable[[], Any]]:
    """What is timed, by its name."""
    func = importlib.import_module(f"{lib.__name__}.func")
    nn = lib.nn
    mlp = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    params = {k: v.detach() for k, v in mlp.named_parameters()}
    inputs, targets = lib.randn(64, 64), lib.randint(0, 10, (64,))

    def loss(params: Any, x: Any, target: Any) -> Any:
        out = func.functional_call(mlp, params, (x.unsqueeze(0),))
        return nn.functional.cross_entropy(out, target.unsqueeze(0))

    per_sample = func.vmap(func.grad(loss), in_dims=(None, 0, 0))

    weights, point = lib.randn(50, 50), lib.randn(50)

    def energy(x: Any) -> Any:
        return (lib.tanh(weights @ x) ** 2).sum() + (x * x * x).sum() + x.sin().prod()

    hessian = func.hessian(energy)
    direction = lib.randn(50)

    small = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 16))
    small_params = {k: v.detach() for k, v in small.named_parameters()}
    x = lib.randn(16)
    backwards = func.jacrev(lambda x: func.functional_call(small, small_params, (x,)))
    forwards = func.jacfwd(lambda x: func.functional_call(small, small_params, (x,)))
    return {
        "per-sample gradients of an MLP": lambda: list(per_sample(params, inputs, targets).values()),
        "Hessian of 50 dimensions": lambda: hessian(point),
        "Hessian-vector product": lambda: func.jvp(func.grad(energy), (point,), (direction,)),
        "Jacobian of a small network, jacrev": lambda: backwards(x),
        "Jacobian of a small network, jacfwd": lambda: forwards(x),
    }


def case(name: str) -> Case:
    return both(name, lambda lib: calls(lib)[name], bar=0.6, sample_s=0.02)


NAMES = [
    "per-sample gradients of an MLP", "Hessian of 50 dimensions", "Hessian-vector product",
    "Jacobian of a small network, jacrev", "Jacobian of a small network, jacfwd",
]  # fmt: skip


if __name__ == "__main__":
    versions = harness.versions("numpy", "torch", "retrograd")
    sys.exit(harness.command_line((__doc__ or "").splitlines()[0], [case(name) for name in NAMES], versions))
