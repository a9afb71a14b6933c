"""Random numbers: a Generator with a stream of its own, and the default one that ``manual_seed`` sets.

A seed gives the numbers that it gives in torch on the CPU (kernels/random.py); docs/RANDOM.md has the exceptions.
"""

from __future__ import annotations

import contextlib
import math
import struct
import threading
from typing import Any

import numpy as np

from .core import devices
from .core.devices import as_device
from .kernels import random as draws
from .tensor import Tensor, wrap
from .tensor.beside import beside

#: A generator's state as bytes, laid out as torch's: the seed; how many words of the twister are left, whether it was
#: seeded, which word is next; its 624 words; the normal number that is left over (the second of three numbers, and
#: whether there is one); and the same for float32, which nothing uses.
_STATE = struct.Struct("<QiiQ4992sdddi4xf?3x")
_WORDS = 624
#: That of a device's generator, as torch has it: the seed, and how many words were drawn.
_STATE_OF_DEVICE = struct.Struct("<QQ")


def _again(device: str, state: Any) -> Generator:
    """A generator as it was pickled."""
    return Generator(device).set_state(state)


class Generator:
    """A stream of random numbers.

    >>> import retrograd as torch
    >>> g = torch.Generator().manual_seed(0)
    >>> a = torch.rand(2, generator=g)
    >>> bool((a == torch.rand(2, generator=g.manual_seed(0))).all())
    True
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.device: devices.device = as_device(device)
        self.lock: Any = threading.Lock()
        #: The twister, whose words NumPy draws; of a device what stands for it there (arrays/philox.py).
        self.twister: Any = None
        #: A normal number that was drawn and not given out.
        self.kept_normal: float | None = None
        self.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream that belongs to `seed`."""
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError(f"Overflow when unpacking long long: the seed {seed} does not fit in 64 bits")
        self._seed = seed % 2**64
        place = self.device.place
        if place is not None:
            self._of_device(place, 0)
            return self
        twister = np.random.MT19937(0)
        twister._legacy_seeding(self._seed % 2**32)
        self._start(twister, None)
        return self

    def _of_device(self, place: Any, offset: int) -> None:
        """Go on at a place in the stream of the seed: the same object, from which graphs draw that were captured."""
        self.kept_normal = None
        if self.twister.__class__ is place.words_class:
            self.twister.seed, self.twister.offset = self._seed, offset
        else:
            self.twister = place.words_class(self._seed, offset)

    def _start(self, twister: np.random.MT19937, kept_normal: float | None) -> None:
        self.twister, self.kept_normal = np.random.Generator(twister), kept_normal

    def seed(self) -> int:
        """Start a stream that nobody can foretell, and return its seed."""
        self.manual_seed(np.random.SeedSequence().entropy % 2**64)  # type: ignore[operator]
        return self._seed

    def initial_seed(self) -> int:
        """The seed that it was last given."""
        return self._seed

    def get_state(self) -> Any:
        """The state of the stream, as a byte tensor that torch understands as well."""
        if self.device.type == "cuda":
            with self.lock:
                raw = _STATE_OF_DEVICE.pack(self._seed, self.twister.offset)
            return wrap(np.frombuffer(raw, dtype=np.uint8).copy())
        with self.lock:
            state: Any = self.twister.bit_generator.state["state"]
            kept = self.kept_normal
            position = int(state["pos"])
            words = state["key"].astype("<u8").tobytes()
        left = 1 if position == _WORDS else _WORDS + 1 - position
        raw = _STATE.pack(self._seed, left, 1, position, words, 0.0, kept or 0.0, 0.0, kept is not None, 0.0, False)
        return wrap(np.frombuffer(raw, dtype=np.uint8).copy())

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (str(self.device), self.get_state())

    def set_state(self, state: Any) -> Generator:
        """Go back to a state that `get_state`, here or in torch, gave."""
        if not isinstance(state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
        if state._memory_.dtype != np.uint8:
            raise TypeError(f"RNG state must be a torch.ByteTensor, but has dtype {state.dtype}")
        raw = state._numbers_.tobytes()
        if self.device.type == "cuda":
            if len(raw) != _STATE_OF_DEVICE.size:
                raise RuntimeError(
                    f"RNG state is wrong size: that of a CUDA generator has {_STATE_OF_DEVICE.size} bytes, this one "
                    f"{len(raw)}"
                )
            with self.lock:
                self._seed, offset = _STATE_OF_DEVICE.unpack(raw)
                self._of_device(self.device.place, offset)
            return self
        if len(raw) != _STATE.size:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE.size} but found the input RNG state size to be "
                f"{len(raw)}"
            )
        seed, left, seeded, position, words, _, kept, _, has_kept, _, _ = _STATE.unpack(raw)
        if not (seeded and 1 <= left <= _WORDS and position <= _WORDS):
            raise RuntimeError("Invalid mt19937 state: the bytes are no state of a generator")
        twister = np.random.MT19937(0)
        twister.state = {
            "bit_generator": "MT19937",
            "state": {
                "key": np.frombuffer(words, "<u8").astype(np.uint32),
                "pos": _WORDS if left == 1 else position,
            },
        }
        with self.lock:
            self._seed = seed
            self._start(twister, kept if has_kept else None)
        return self

    def clone_state(self) -> Generator:
        """A generator that will give the same numbers as this one."""
        return Generator(self.device).set_state(self.get_state())

    # The draws (kernels/random.py): of a shape in the order of its elements, or of an array in the order of its memory.

    def uniform(self, shape: tuple[int, ...], np_dtype: np.dtype) -> np.ndarray:
        """Numbers in [0, 1)."""
        with self.lock:
            return draws.uniform(self.twister, math.prod(shape), np_dtype).reshape(shape)

    def uniform_like(self, array: np.ndarray, np_dtype: np.dtype | None = None) -> np.ndarray:
        """Numbers in [0, 1), in the dtype of `array` or another."""
        dtype = array.dtype if np_dtype is None else np_dtype
        with self.lock:
            return draws.in_memory_order(array, lambda count: draws.uniform(self.twister, count, dtype))

    def normal(self, shape: tuple[int, ...], np_dtype: np.dtype, mean: float = 0.0, std: float = 1.0) -> np.ndarray:
        """Numbers of a normal distribution, as an array."""
        return self.normal_like(np.empty(shape, np_dtype), mean, std)

    def normal_like(self, array: np.ndarray, mean: float = 0.0, std: float = 1.0) -> np.ndarray:
        """Normal numbers in the dtype of `array`."""
        dtype = array.dtype

        def draw(count: int) -> np.ndarray:
            if count >= 16 and array.flags.c_contiguous:
                return draws.normal_blocks(self.twister, count, mean, std, dtype)
            return (self._normal_pairs(count) * std + mean).astype(dtype)

        with self.lock:
            return draws.in_memory_order(array, draw)

    def normal_double_like(self, array: np.ndarray) -> np.ndarray:
        """Standard normal numbers in float64, drawn one by one."""
        with self.lock:
            return draws.in_memory_order(array, self._normal_pairs)

    def _normal_pairs(self, count: int) -> np.ndarray:
        drawn, self.kept_normal = draws.normal_pairs(self.twister, count, self.kept_normal)
        return drawn

    def integers_like(self, array: np.ndarray, low: int, high: int) -> np.ndarray:
        """Integers from `low` up to but not including `high`."""
        with self.lock:
            return draws.in_memory_order(array, lambda count: draws.integers(self.twister, low, high, count))

    def any_integers_like(self, array: np.ndarray, most: int) -> np.ndarray:
        """Integers from 0 to `most`, the largest that the dtype of `array` counts up to."""
        wide = array.dtype.itemsize == 8
        with self.lock:
            return draws.in_memory_order(array, lambda count: draws.any_integers(self.twister, most, wide, count))

    def integers(self, low: int, high: int, shape: tuple[int, ...], np_dtype: np.dtype) -> np.ndarray:
        """Whole numbers from `low` up to `high`, which is left out, as an array."""
        return self.integers_like(np.empty(shape, np_dtype), low, high).astype(np_dtype, copy=False)

    def uniform_where(self, where: np.ndarray, np_dtype: np.dtype) -> np.ndarray:
        """Numbers in [0, 1) where `where` is true, drawn for these alone, and zeros elsewhere."""
        result = np.zeros_like(where, dtype=np_dtype)
        result[where] = beside(wrap(where), self.uniform((int(where.sum()),), np_dtype))._memory_
        return result

    # Those that torch draws by rules of its own, and these NumPy's, from the same words.

    def binomial(self, trials: np.ndarray, chances: np.ndarray) -> np.ndarray:
        """How many of so many trials succeed."""
        with self.lock:
            return np.asarray(self.twister.binomial(trials, chances), like=trials)

    def poisson(self, rates: np.ndarray) -> np.ndarray:
        """Numbers of Poisson distributions."""
        with self.lock:
            return np.asarray(self.twister.poisson(rates), like=rates)

    def gamma(self, concentrations: np.ndarray) -> np.ndarray:
        """Numbers of gamma distributions with the rate 1."""
        with self.lock:
            return np.asarray(self.twister.standard_gamma(concentrations), like=concentrations)

    def exponential(self, shape: tuple[int, ...]) -> np.ndarray:
        """Numbers of the exponential distribution with the rate 1."""
        with self.lock:
            return self.twister.standard_exponential(shape)

    def permutation(self, n: int) -> np.ndarray:
        """The numbers below `n` in random order, as an array."""
        with self.lock:
            return draws.permutation(self.twister, n)


default_generator: Generator = Generator()
#: The default generators of CUDA devices that were drawn from, by index.
of_devices: dict[int, Generator] = {}
#: The seed of those that were not: set with the default generator's.
_seed_of_devices: list[int] = [67280421310721]


def generator_of(device: Any) -> Generator:
    """The generator that draws where none is given: each device has one."""
    if device is None:
        device = devices.default.device
    found = as_device(device)
    if found.type in ("cpu", "meta"):
        return default_generator
    index = found.place.index
    made = of_devices.get(index)
    if made is None:
        made = of_devices.setdefault(index, Generator(f"{found.type}:{index}").manual_seed(_seed_of_devices[0]))
    return made


def seed_devices(seed: int) -> None:
    """Seed the generators of all devices."""
    _seed_of_devices[0] = int(seed)
    for made in list(of_devices.values()):
        made.manual_seed(seed)


def manual_seed(seed: int) -> Generator:
    """Seed the default generators: the CPU's, which is returned, and those of all devices.

    >>> import retrograd as torch
    >>> torch.manual_seed(0).initial_seed()
    0
    """
    default_generator.manual_seed(seed)
    seed_devices(default_generator._seed)
    return default_generator


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


def rng_states(of: list[Generator] | None = None) -> list[tuple[Generator, Any]]:
    """The default generators, the CPU's and those of all devices (or of these), with their states."""
    if of is None:
        of = [generator_of(place.device) for place in devices.places_in_use()]
    return [(generator, generator.get_state()) for generator in (default_generator, *of)]


def set_rng_states(states: list[tuple[Generator, Any]]) -> None:
    """Set what `rng_states` gave."""
    for generator, state in states:
        generator.set_state(state)


class fork_rng(contextlib.ContextDecorator):
    """Within the ``with`` block default generators may be used freely: after it they are where they were.

    The CPU's, and those of `devices`, which are all there are if none are named.

    >>> import retrograd as torch
    >>> g = torch.manual_seed(0)
    >>> with torch.random.fork_rng():
    ...     a = torch.rand(1)
    >>> bool(a == torch.rand(1))
    True
    """

    def __init__(
        self,
        devices: Any = None,
        enabled: bool = True,
        _caller: str = "fork_rng",
        _devices_kw: str = "devices",
        device_type: str = "cuda",
    ) -> None:
        if device_type not in ("cpu", "cuda", "meta"):
            raise RuntimeError(f"{_caller}: there are no generators of {device_type!r}: leave device_type away")
        self.devices = None if devices is None else list(devices)
        self.device_type = device_type
        self.enabled = enabled
        self.before: list[tuple[Generator, Any]] = []

    def __enter__(self) -> None:
        if not self.enabled:
            return
        named = self.devices
        if named is not None:
            named = [generator_of(f"{self.device_type}:{one}" if isinstance(one, int) else one) for one in named]
        self.before = rng_states(named)

    def __exit__(self, *exc_info: object) -> None:
        try:
            set_rng_states(self.before)
        except BaseException:  # Note [Interrupts and modes] in core/state.py
            set_rng_states(self.before)
            raise

    def _recreate_cm(self) -> fork_rng:
        return fork_rng(self.devices, self.enabled, device_type=self.device_type)  # for a function that calls itself


__all__ = [
    "Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
    "set_rng_state",
]  # fmt: skip
