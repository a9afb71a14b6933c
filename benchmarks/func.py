"""Transforms beside torch.func: per-sample gradients, a Hessian, a Hessian-vector product, a Jacobian.

    python benchmarks/func.py

Each library runs in a process of its own, with one thread; the figures are processor time, the best of several rounds.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any


def cases(torch: Any) -> dict[str, Callable[[], Any]]:
    func = importlib.import_module(f"{torch.__name__}.func")
    torch.manual_seed(0)
    nn = torch.nn
    mlp = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    params = {k: v.detach() for k, v in mlp.named_parameters()}
    inputs, targets = torch.randn(64, 64), torch.randint(0, 10, (64,))

    def loss(params: Any, x: Any, target: Any) -> Any:
        out = func.functional_call(mlp, params, (x.unsqueeze(0),))
        return nn.functional.cross_entropy(out, target.unsqueeze(0))

    per_sample = func.vmap(func.grad(loss), in_dims=(None, 0, 0))

    weights, point = torch.randn(50, 50), torch.randn(50)

    def energy(x: Any) -> Any:
        return (torch.tanh(weights @ x) ** 2).sum() + (x * x * x).sum() + x.sin().prod()

    hessian = func.hessian(energy)
    direction = torch.randn(50)

    small = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 16))
    small_params = {k: v.detach() for k, v in small.named_parameters()}
    x = torch.randn(16)
    backwards = func.jacrev(lambda x: func.functional_call(small, small_params, (x,)))
    forwards = func.jacfwd(lambda x: func.functional_call(small, small_params, (x,)))
    return {
        "per-sample gradients of an MLP": lambda: per_sample(params, inputs, targets),
        "Hessian of 50 dimensions": lambda: hessian(point),
        "Hessian-vector product": lambda: func.jvp(func.grad(energy), (point,), (direction,)),
        "Jacobian of a small network, jacrev": lambda: backwards(x),
        "Jacobian of a small network, jacfwd": lambda: forwards(x),
    }


def measure(library: str) -> dict[str, float]:
    torch = importlib.import_module(library)
    torch.set_num_threads(1)
    found = {}
    for name, call in cases(torch).items():
        for _ in range(3):
            call()
        start = time.process_time()
        call()
        rounds = max(3, int(0.1 / max(time.process_time() - start, 1e-6)))
        best = float("inf")
        for _ in range(9):
            start = time.process_time()
            for _ in range(rounds):
                call()
            best = min(best, (time.process_time() - start) / rounds)
        found[name] = best
    return found


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
        return
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    results = {}
    for library in ("retrograd", "torch"):
        done = subprocess.run([sys.executable, __file__, library], env=environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        results[library] = json.loads(done.stdout.strip().splitlines()[-1])
    print(f"{'':<40}{'retrograd':>12}{'torch.func':>12}{'ratio':>8}")
    for name, mine in results["retrograd"].items():
        theirs = results["torch"][name]
        print(f"{name:<40}{mine * 1e6:>9.0f} µs{theirs * 1e6:>9.0f} µs{mine / theirs:>8.2f}")


if __name__ == "__main__":
    main()
