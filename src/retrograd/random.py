"""Random numbers: a Generator with a stream of its own, and the default one that ``manual_seed`` sets."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from .devices import as_device


class Generator:
    """A stream of random numbers.

    >>> import retrograd as torch
    >>> g = torch.Generator().manual_seed(0)
    >>> a = torch.rand(2, generator=g)
    >>> bool((a == torch.rand(2, generator=g.manual_seed(0))).all())
    True
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.device = as_device(device)
        self.lock = threading.Lock()
        self.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream that belongs to `seed`."""
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError(f"Overflow when unpacking long long: the seed {seed} does not fit in 64 bits")
        self._seed = seed % 2**64
        self.bits = np.random.Generator(np.random.PCG64(self._seed))
        return self

    def seed(self) -> int:
        """Start a stream that nobody can foretell, and return its seed."""
        self.manual_seed(np.random.SeedSequence().entropy % 2**64)  # type: ignore[operator]
        return self._seed

    def initial_seed(self) -> int:
        return self._seed

    def get_state(self) -> Any:
        """The state of the stream, as a byte tensor."""
        import pickle

        from .tensor import wrap

        raw = pickle.dumps((self._seed, self.bits.bit_generator.state))
        return wrap(np.frombuffer(raw, dtype=np.uint8).copy())

    def set_state(self, state: Any) -> Generator:
        """Go back to a state that `get_state` gave."""
        import pickle

        self._seed, bit_state = pickle.loads(state._data.tobytes())
        self.bits = np.random.Generator(np.random.PCG64(0))
        self.bits.bit_generator.state = bit_state
        return self

    # The draws: float64 or integers, so that a seed gives the same numbers for every dtype.

    def uniform(self, shape: tuple[int, ...], np_dtype: np.dtype) -> np.ndarray:
        kind = np_dtype if np_dtype in (np.float32, np.float64) else np.dtype(np.float32)
        with self.lock:
            return np.asarray(self.bits.random(shape, dtype=kind)).astype(np_dtype, copy=False)

    def normal(self, shape: tuple[int, ...], np_dtype: np.dtype) -> np.ndarray:
        kind = np_dtype if np_dtype in (np.float32, np.float64) else np.dtype(np.float32)
        with self.lock:
            return np.asarray(self.bits.standard_normal(shape, dtype=kind)).astype(np_dtype, copy=False)

    def integers(self, low: int, high: int, shape: tuple[int, ...], np_dtype: np.dtype) -> np.ndarray:
        with self.lock:
            return np.asarray(self.bits.integers(low, high, shape)).astype(np_dtype, copy=False)

    def permutation(self, n: int) -> np.ndarray:
        with self.lock:
            return self.bits.permutation(n)


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the default generator.

    >>> import retrograd as torch
    >>> torch.manual_seed(0).initial_seed()
    0
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator from the operating system."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """The state of the default generator."""
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    """Set the state of the default generator."""
    default_generator.set_state(state)


__all__ = ["Generator", "default_generator", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]
