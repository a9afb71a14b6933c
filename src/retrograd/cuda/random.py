"""``torch.cuda.random``: the generators of CUDA devices. A seed gives the numbers that it gives on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..random import generator_of, seed_devices
from ._places import count, place, refuse

__all__ = [
    "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
    "set_rng_state", "set_rng_state_all",
]  # fmt: skip


def manual_seed(seed: int) -> None:
    """Seed the generator of the current device; where there is none yet, of the one that will be."""
    seed = int(seed)
    if count():
        generator_of(place(None).device).manual_seed(seed)
    else:
        seed_devices(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all CUDA devices."""
    seed_devices(int(seed))


def seed() -> None:
    """Seed the generator of the current device from the operating system: nothing to do where there is none."""
    if count():
        generator_of(place(None).device).seed()


def seed_all() -> None:
    """Seed the generators of all devices with one number from the operating system."""
    if count():
        seed_devices(int(np.random.SeedSequence().entropy) % 2**63)  # type: ignore[arg-type]


def initial_seed() -> int:
    """The seed of the generator of the current device."""
    return generator_of(place(None).device).initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of the generator of a CUDA device."""
    return generator_of(place(device).device).get_state()


def get_rng_state_all() -> list:
    """The states of the generators of all CUDA devices."""
    return [get_rng_state(index) for index in range(count())]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the state of the generator of a CUDA device: as in torch, nothing to do where there is none."""
    if count():
        generator_of(place(device).device).set_state(new_state)


def set_rng_state_all(new_states: Sequence[Any]) -> None:
    """Set the states of the generators of all CUDA devices."""
    if len(new_states) > count():
        refuse()
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
