"""The simulation behind docs/DISTRIBUTED.md: what it must give where the answer is known, and that the page has its
figures.
"""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "simulate_distributed.py"


@pytest.fixture(scope="module")
def simulation() -> Any:
    spec = importlib.util.spec_from_file_location("simulate_distributed", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_known_answers(simulation: Any) -> None:
    network = simulation.Network("some", 1e-3, 1e6)
    assert network.sum_time(5e6, 1) == 0
    assert math.isclose(network.sum_time(1e6, 2), 2e-3 + 1.0)  # two messages, and half of the array twice
    assert math.isclose(network.sum_time(1e6, 8), 6e-3 + 1.75)
    one_bucket = simulation.Step(1.0, 2.0, 1, 1e6)
    assert math.isclose(
        simulation.simulate(one_bucket, network, 2), 3.0 + network.sum_time(1e6, 2)
    )  # nothing to hide behind
    fast = simulation.Network("fast", 0.0, 1e15)
    assert math.isclose(simulation.simulate(simulation.Step(1.0, 2.0, 50, 1e8), fast, 512), 3.0, rel_tol=1e-6)
    slow = simulation.Network("slow", 0.0, 1.0)
    step = simulation.Step(1.0, 2.0, 50, 1e8)
    when = step.buckets()[0][0]
    assert math.isclose(
        simulation.simulate(step, slow, 2), 1 + 2 * when + 1e8
    )  # the wire is busy from the first bucket on
    assert math.isclose(sum(size for _, size in step.buckets()), 1e8)


def test_arithmetic_is_a_bound(simulation: Any) -> None:
    for network in simulation.NETWORKS:
        for ranks in (2, 8, 64, 512):
            for layers in (1, 7, 50):
                for size in (1e5, 1e7, 1e9):
                    step = simulation.Step(0.3, 0.7, layers, size)
                    bound, simulated = (
                        simulation.arithmetic(step, network, ranks),
                        simulation.simulate(step, network, ranks),
                    )
                    late = simulation.simulate(step, network, ranks, overlap=False)
                    assert bound <= simulated * (1 + 1e-12) and simulated <= late * (1 + 1e-12)


def test_the_page_has_its_figures() -> None:
    page = (ROOT / "docs" / "DISTRIBUTED.md").read_text(encoding="utf-8")
    for arguments in ([], ["--forward", "0.05", "--backward", "0.1", "--ranks", "512"]):
        printed = subprocess.run(
            [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=True
        ).stdout
        assert printed.split("\n\n", 1)[1].strip() in page, (
            f"simulate_distributed.py {' '.join(arguments)} prints others"
        )
