"""Random numbers: a Generator with a stream of its own, and the default one that ``manual_seed`` sets."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import numpy as np

from .core.devices import as_device
from .tensor import Tensor, wrap

#: Bytes of a generator's state: its seed, then PCG64's position, increment, and half-used draw.
_STATE_SIZES = (8, 16, 16, 1, 4)


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
        state: Any = self.bits.bit_generator.state
        fields = (self._seed, state["state"]["state"], state["state"]["inc"], state["has_uint32"], state["uinteger"])
        raw = b"".join(value.to_bytes(size, "little") for value, size in zip(fields, _STATE_SIZES, strict=True))
        return wrap(np.frombuffer(raw, dtype=np.uint8).copy())

    def set_state(self, state: Any) -> Generator:
        """Go back to a state that `get_state` gave."""
        if not isinstance(state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
        if state._data.dtype != np.uint8:
            raise TypeError(f"RNG state must be a torch.ByteTensor, but has dtype {state.dtype}")
        raw = state._data.tobytes()
        if len(raw) != sum(_STATE_SIZES):
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {sum(_STATE_SIZES)} but found the input RNG state size to "
                "be "
                f"{len(raw)}"
            )
        fields, start = [], 0
        for size in _STATE_SIZES:
            fields.append(int.from_bytes(raw[start : start + size], "little"))
            start += size
        seed, position, increment, has_uint32, uinteger = fields
        bits = np.random.PCG64(0)
        bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": position, "inc": increment},
            "has_uint32": has_uint32,
            "uinteger": uinteger,
        }
        self._seed = seed
        self.bits = np.random.Generator(bits)
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


class fork_rng(contextlib.ContextDecorator):
    """Within the ``with`` block the default generator may be used freely: after it, it is where it was.

    >>> import retrograd as torch
    >>> g = torch.manual_seed(0)
    >>> with torch.random.fork_rng():
    ...     a = torch.rand(1)
    >>> bool(a == torch.rand(1))
    True
    """

    def __init__(self, devices: Any = None, enabled: bool = True, **unused: Any) -> None:
        self.enabled = enabled

    def __enter__(self) -> None:
        self.before = get_rng_state() if self.enabled else None

    def __exit__(self, *exc_info: object) -> None:
        if self.before is not None:
            try:
                set_rng_state(self.before)
            except BaseException:  # Note [Interrupts and modes] in core/state.py
                set_rng_state(self.before)
                raise

    def _recreate_cm(self) -> fork_rng:
        return fork_rng(enabled=self.enabled)  # for a function that calls itself


__all__ = [
    "Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
    "set_rng_state",
]  # fmt: skip
