"""Random numbers into a tensor that is there already (``x.normal_()``), and draws that depend on a tensor's values.

A draw has no derivative: what a tensor held before it gets the gradient zero.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ... import kernels
from ..._generated import functions
from ...core.dtypes import float_limits
from ...core.where import users_level
from ...kernels.promotion import real_dtype, refuse_stored
from ...random import Generator, default_generator, generator_of
from ...tensor import Tensor, fresh, wrap
from ..arguments import overflow
from ..overwrite import overwrite, overwrite_by
from ..registry import composite


@composite(method=False, draws=True)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers drawn from binomial distributions: how many of `count` trials succeed, each with probability `prob`."""
    for name, given in (("count", count), ("prob", prob)):
        if given._memory_.dtype.kind not in "fV":
            kind = kernels.scalar_name(given._memory_.dtype)
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {kind}")
    if count._memory_.dtype != prob._memory_.dtype:
        kinds = [kernels.scalar_name(given._memory_.dtype) for given in (prob, count)]
        raise RuntimeError(
            f"Found dtype {kinds[0]} but expected {kinds[1]}: binomial() takes count and prob of one dtype, and prob "
            "has the other"
        )
    shape = np.broadcast_shapes(count._memory_.shape, prob._memory_.shape)
    trials = np.broadcast_to(count._numbers_, shape)
    if (trials < 0).any() or ((prob._numbers_ < 0) | (prob._numbers_ > 1)).any():
        raise RuntimeError("binomial expects count >= 0 and probabilities in [0, 1]")
    drawn = _generator("binomial", generator, count).binomial(trials.astype(np.int64), prob._numbers_)
    return fresh(drawn.astype(count._memory_.dtype))


def _generator(operator: str, given: Generator | None, like: Tensor) -> Generator:
    if given is None:
        return default_generator if like._memory_.__class__ is np.ndarray else generator_of(like.device)
    if not isinstance(given, Generator):
        raise TypeError(f"{operator}(): argument 'generator' must be torch.Generator, not {type(given).__name__}")
    return given


def _check_dtype(kernel: str, input: Tensor, kinds: str) -> None:
    if input._memory_.dtype.kind not in kinds:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{kernels.scalar_name(input._memory_.dtype)}'")
    refuse_stored(kernel, input._memory_.dtype, but="W")


def _check_continuous(distribution: str, input: Tensor) -> None:
    if input._memory_.dtype.kind not in "fV":
        raise RuntimeError(
            f"{distribution} distribution is a continuous probability distribution. dtype must be a floating point but "
            f"you specified {kernels.scalar_name(input._memory_.dtype)}"
        )


def _draw_parts(draw: Any, input: Tensor) -> np.ndarray:
    """Draws in the shape, dtype and layout of `input`, for a complex one in both parts."""
    data = input._memory_
    if data.dtype.kind not in "cW":
        return draw(data)
    parts = draw(kernels.view_as_real(data))
    return (parts if parts.flags.c_contiguous else parts.copy()).view(data.dtype)[..., 0]


@composite(space="Tensor", draws=True)
def uniform_(input: Tensor, *bounds: float, generator: Generator | None = None, **named: float) -> Tensor:
    """Fill with uniform numbers: ``uniform_(from=0, to=1)``.

    >>> import retrograd as torch
    >>> x = torch.empty(100).uniform_(2, 3)
    >>> bool((x >= 2).all()), bool((x <= 3).all())
    (True, True)
    """
    low, high = [_real("uniform_", "from", bound) for bound in _bounds("uniform_", bounds, named, (0.0, 1.0))]
    g = _generator("uniform_", generator, input)
    _check_dtype("check_uniform_bounds", input, "fcVW")
    limit = float(float_limits(real_dtype(input._memory_.dtype)).max)
    for name, bound in (("from", low), ("to", high)):
        if not -limit <= bound <= limit:
            raise RuntimeError(f"{name} is out of bounds for {kernels.scalar_name(input._memory_.dtype)}: {bound:g}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if high - low > limit:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{kernels.scalar_name(input._memory_.dtype)}>::max(), but "
            f"found to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )

    def draw() -> np.ndarray:
        return _draw_parts(g.uniform_like if (low, high) == (0, 1) else between, input)

    def between(parts: np.ndarray) -> np.ndarray:
        # Numbers narrower than float32 are made in it.
        wide = parts.dtype if parts.dtype in (np.float32, np.float64) else np.dtype(np.float32)
        drawn = kernels.spread(g.uniform_like(parts, wide), low, high)
        return kernels.below(drawn.astype(parts.dtype, copy=False), low, high)

    return overwrite_by(input, draw)


@composite(space="Tensor", draws=True)
def normal_(input: Tensor, mean: Any = 0, std: Any = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers (complex ones: of variance ``std ** 2`` in all, around `mean` in both parts)."""
    g = _generator("normal_", generator, input)
    mean, std = _real("normal_", "mean", mean), _real("normal_", "std", std)
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if not input._memory_.size:
        return input
    _check_dtype("normal_kernel_cpu", input, "fcVW")

    def draw() -> np.ndarray:
        deviation = std * math.sqrt(0.5) if input._memory_.dtype.kind in "cW" else std
        return _draw_parts(lambda parts: g.normal_like(parts, mean, deviation), input)

    return overwrite_by(input, draw)


@composite(space="Tensor", draws=True)
def exponential_(input: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of density ``lambd * exp(-lambd * x)``."""
    g = _generator("exponential_", generator, input)
    _check_continuous("Exponential", input)
    lambd = _real("exponential_", "lambd", lambd)
    if not lambd > 0.0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    return overwrite_by(input, lambda: -np.log1p(-_open(g, input)) / lambd)


@composite(space="Tensor", draws=True)
def cauchy_(input: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the Cauchy distribution."""
    g = _generator("cauchy_", generator, input)
    median, sigma = _real("cauchy_", "median", median), _real("cauchy_", "sigma", sigma)
    if not sigma > 0.0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    _check_continuous("Cauchy", input)
    return overwrite_by(input, lambda: median + sigma * np.tan(np.pi * (_open(g, input) - 0.5)))


@composite(space="Tensor", draws=True)
def log_normal_(input: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers whose logarithm is normal with a mean and a standard deviation."""
    g = _generator("log_normal_", generator, input)
    mean, std = _real("log_normal_", "mean", mean), _real("log_normal_", "std", std)
    if not std > 0.0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    _check_dtype("log_normal_cpu", input, "fV")
    return overwrite_by(input, lambda: np.exp(mean + std * g.normal_double_like(input._memory_)))


@composite(space="Tensor", draws=True)
def geometric_(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with how many trials it takes until one of probability `p` succeeds."""
    g = _generator("geometric_", generator, input)
    p = _real("geometric_", "p", p)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    _check_dtype("geometric_cpu", input, "iufV")
    return overwrite_by(input, lambda: np.ceil(np.log(_open(g, input)) / math.log1p(-p)))


@composite(space="Tensor", draws=True)
def random_(input: Tensor, *bounds: int, generator: Generator | None = None, **named: Any) -> Tensor:
    """Fill with integers: of the whole range, ``random_(to)`` below `to`, or ``random_(from, to)``.

    >>> import retrograd as torch
    >>> x = torch.empty(50, dtype=torch.int64).random_(3, 5)
    >>> sorted({*x.tolist()} | {3, 4})
    [3, 4]
    """
    g = _generator("random_", generator, input)
    dtype = input._memory_.dtype
    whole = not bounds and not named
    if dtype.kind in "cW" and not whole:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if dtype.kind != "u" or (whole and dtype.itemsize == 8):
        _check_dtype("random_kernel_cpu", input, "biufV")
    least, most = _exact_integers(dtype)
    if len(bounds) == 1 and not named:
        bounds = (0, *bounds)
    low, high = _bounds("random_", bounds, named, (0, None))
    if any(bound is not None and not -(2**63) <= bound < 2**63 for bound in (low, high)):
        raise overflow()
    low = least if low is None else low
    high = most + 1 if high is None else high
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    for name, value in (("from", low), ("to - 1", high - 1)):
        if not least <= value <= most:
            if dtype.kind not in "fV":
                raise RuntimeError(f"{name} is out of bounds for {dtype}")
            bits = most.bit_length() - 1
            warnings.warn(
                f"{name} is out of bounds [-(2^{bits}), 2^{bits}]. Due to precision limitations "
                f"{kernels.scalar_name(dtype)} can support discrete uniform distribution only within this range. This "
                "warning will become an error in a later version: please fix the code in advance",
                UserWarning,
                stacklevel=users_level(),
            )
    memory = input._memory_
    if whole:
        return overwrite_by(input, lambda: g.any_integers_like(memory, most))
    return overwrite_by(input, lambda: g.integers_like(memory, low, high))


def _exact_integers(dtype: np.dtype) -> tuple[int, int]:
    """The least and greatest of the consecutive integers that `dtype` can tell apart."""
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind in "fV":
        most = 2 ** (float_limits(dtype).nmant + 1)
        return -most, most
    info = np.iinfo(dtype)  # type: ignore[arg-type]
    return int(info.min), int(info.max)


@composite(space="Tensor", draws=True)
def bernoulli_(input: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with 1 with probability `p`, a number or a tensor that is expanded to the shape, and with 0 otherwise."""
    g = _generator("bernoulli_", generator, input)
    if isinstance(p, Tensor):
        _check_dtype("bernoulli_tensor_cpu_self_", input, "biufV")
        return overwrite_by(input, lambda: _bernoulli(g, np.broadcast_to(p._numbers_, _expanded(p, input)), p, input))
    _check_dtype("bernoulli_scalar_cpu_", input, "biufV")
    p = _real("bernoulli_", "p", p)
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return overwrite_by(input, lambda: g.uniform_like(input._memory_, np.dtype(np.float64)) < p)


def _expanded(p: Tensor, input: Tensor) -> tuple[int, ...]:
    return p.expand(input._memory_.shape)._memory_.shape  # which has torch's words for shapes that do not fit


def _bernoulli(g: Generator, p: np.ndarray, given: Tensor, input: Tensor) -> np.ndarray:
    _check_dtype("bernoulli_tensor_cpu_p_", given, "fV")
    if not ((p >= 0) & (p <= 1)).all():
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false: a probability is out of [0, 1]")
    return g.uniform_like(input._memory_, np.dtype(np.float64 if p.dtype == np.float64 else np.float32)) < p


@composite(draws=True)
def bernoulli(
    input: Tensor, p: Any = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """1 with the probability that `input` says (or with `p` everywhere), else 0, in the dtype of `input`.

    >>> import retrograd as torch
    >>> torch.bernoulli(torch.tensor([0., 1.]))
    tensor([0., 1.])
    """
    result = input.clone() if out is None else out.resize_(input.shape)
    if p is not None:
        number = isinstance(p, Tensor) and not p._memory_.ndim and p._memory_.dtype.kind in "iu"
        return bernoulli_(result, p.item() if number else p, generator=generator)
    drawn = _bernoulli(_generator("bernoulli", generator, input), input._numbers_, input, result)
    return overwrite(result, drawn.astype(input._memory_.dtype))


@composite(method=False, out=True, draws=True)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of the Poisson distributions whose rates are the elements of `input`."""
    g = _generator("poisson", generator, input)
    _check_dtype("poisson_cpu", input, "fV")
    if (input._numbers_ < 0).any():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    drawn = g.poisson(input._numbers_)
    return overwrite(input.clone(), drawn.astype(input._memory_.dtype))


@composite(method=False, draws=True)
def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of the gamma distributions whose concentrations are the elements of `input`, with the rate 1.

    They move with their concentrations, so this has a derivative.
    """
    g = _generator("_standard_gamma", generator, input)
    _check_dtype("gamma_cpu", input, "fV")
    drawn = g.gamma(input._numbers_.astype(np.float64))
    return functions.standard_gamma_drawn(input, fresh(drawn.astype(input._memory_.dtype)))


@composite(method=False, draws=True)
def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Points of the simplex, drawn from the Dirichlet distributions of the concentrations along the last dimension."""
    g = _generator("_sample_dirichlet", generator, input)
    _check_dtype("dirichlet", input, "fV")
    concentration, dtype = input._numbers_.astype(np.float64), input._memory_.dtype
    # A gamma number of a small concentration is below the smallest double, but not its logarithm: it is that of the
    # concentration plus 1, times a uniform number to the power of 1 / concentration.
    waits = g.exponential(concentration.shape)
    logarithms = np.log(g.gamma(concentration + 1)) - waits / concentration
    parts = np.exp(logarithms - logarithms.max(-1, keepdims=True, initial=-np.inf))
    parts = np.asarray(parts / parts.sum(-1, keepdims=True), like=parts).astype(dtype)
    limits = float_limits(dtype)  # a part is never all or nothing, where its logarithm and slope would be infinite
    return functions.dirichlet_drawn(input, fresh(parts.clip(limits.tiny, 1 - limits.eps)))


def _check_probabilities(weights: np.ndarray, one_by_one: bool) -> None:
    negative, finite = (weights < 0).any(), np.isfinite(weights).all()
    if finite and not negative:
        return
    if not one_by_one:
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    entry = "< 0" if negative else "= infinity or NaN"
    raise RuntimeError(f"invalid multinomial distribution (encountering probability entry {entry})")


@composite(out=True, draws=True)
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """`num_samples` indices for each row of `input`, whose elements say how likely each index is.

    >>> import retrograd as torch
    >>> torch.multinomial(torch.tensor([0., 1., 0.]), 2, replacement=True)
    tensor([1, 1])
    """
    g = _generator("multinomial", generator, input)
    weights = input._numbers_
    if weights.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if weights.dtype.kind not in "fV":
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {kernels.scalar_name(weights.dtype)}"
        )
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > weights.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if weights.shape[-1] > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    _check_probabilities(weights, replacement and num_samples > 1)
    if (weights.sum(-1) <= 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if not replacement or num_samples == 1:
        # Waiting times with these rates: who comes first, and second, is a draw without replacement.
        waits = exponential_(wrap(np.empty_like(weights)), generator=generator)._numbers_
        speeds = np.divide(weights, waits)
        return fresh(np.argsort(-speeds, axis=-1, kind="stable")[..., :num_samples].copy())
    steps = weights.cumsum(-1)
    steps = steps / steps[..., -1:]
    draws = g.uniform((*weights.shape[:-1], num_samples), np.dtype(np.float64))
    if not weights.size:
        return fresh(np.empty(draws.shape, np.int64))
    if weights.ndim == 1:
        return fresh(np.searchsorted(steps, draws, side="left"))
    rows = [np.searchsorted(step, draw, side="left") for step, draw in zip(steps, draws, strict=True)]
    return fresh(np.stack(rows).astype(np.int64, copy=False).reshape(draws.shape))


def _bounds(operator: str, given: tuple, named: dict[str, Any], default: tuple) -> tuple[Any, Any]:
    """The two bounds, positional or as ``from=`` (a keyword of Python, so it comes in a dictionary) and ``to=``."""
    bounds = dict(zip(("from", "to"), default, strict=True))
    if len(given) > 2 or set(named) - set(bounds):
        raise TypeError(f"{operator}() received an invalid combination of arguments: {(*given, *named)}")
    bounds.update(zip(("from", "to"), given, strict=False))
    bounds.update(named)
    return bounds["from"], bounds["to"]


def _real(operator: str, name: str, value: Any) -> float:
    """A number for a parameter of a distribution, before anything is drawn."""
    if isinstance(value, Tensor) and value._memory_.ndim == 0 and value._memory_.dtype.kind in "biufV":
        value = value.item()
    if not isinstance(value, (int, float)):
        raise TypeError(f"{operator}(): argument '{name}' must be float, not {type(value).__name__}")
    return float(value)


def _open(g: Generator, input: Tensor) -> np.ndarray:
    """Uniform numbers in the shape of `input`, none of them 0."""
    drawn = g.uniform_like(input._memory_, np.dtype(np.float64))
    return np.maximum(drawn, np.finfo(np.float64).tiny)
