"""Devices for the tests: simulated ones, two on a machine; with RETROGRAD_GPU=1 CuPy's, two that share one GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from gpu import simulated
from retrograd.arrays import places
from retrograd.random import of_devices


class Gpu:
    """What a test may ask of the machine, simulated or real."""

    def __init__(self, real: bool) -> None:
        self.real = real

    def delay(self) -> None:
        """Make the current stream late: what it is told from now on takes its time. A simulated one always is."""
        if self.real:
            place = places.places[torch.cuda.current_device()]
            place.activate()
            _spin(place.module)((1,), (1,), (np.int64(100_000_000),))

    def launches(self) -> list[tuple[int, int, str]]:
        """What was launched since it was last asked: device, stream, name; of a simulated machine."""
        found, simulated.machine.log = simulated.machine.log or [], []
        return found


_kernels: dict[str, Any] = {}


def _spin(module: Any) -> Any:
    if "spin" not in _kernels:
        code = ("extern \"C\" __global__ void spin(long long n) { long long t = clock64(); "
                "while (clock64() - t < n) {} }")  # fmt: skip
        _kernels["spin"] = module.RawKernel(code, "spin")
    return _kernels["spin"]


@pytest.fixture
def gpu(request: Any) -> Iterator[Gpu]:
    """Two devices on which all is done at once, or CuPy's."""
    yield from _machine(request, delayed=False)


@pytest.fixture
def late(request: Any) -> Iterator[Gpu]:
    """Two devices whose streams do nothing before somebody waits for them, or CuPy's."""
    yield from _machine(request, delayed=True)


def _machine(request: Any, delayed: bool) -> Iterator[Gpu]:
    real = os.environ.get("RETROGRAD_GPU") == "1"
    if real:  # once for all tests: CuPy's handles go with the threads that have them
        if not places.start(None, logical=2):
            pytest.skip("there is no CUDA device, or no CuPy")
    else:
        assert not places.places
        places.start(simulated.library(2, delayed=delayed))
        simulated.machine.log = []
    seed = torch.get_rng_state()
    try:
        yield Gpu(real)
    finally:
        if real:
            torch.cuda.synchronize()
        torch.set_rng_state(seed)
        if not real:
            of_devices.clear()  # generators of devices that go
            places.stop()
