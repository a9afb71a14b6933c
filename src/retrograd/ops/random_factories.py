"""Factories of random tensors: uniform and normal numbers, integers, permutations.

All take ``dtype=``, ``device=``, ``requires_grad=`` and ``generator=`` as torch's do; `factories.py` has the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.devices import default
from ..kernels import view_as_real
from ..kernels.promotion import refuse_stored, scalar_name
from ..random import Generator, default_generator, generator_of
from ..tensor import Tensor
from ..tensor.special import all_values
from .factories import HERE, _float_dtype, _laid_out, _like, _out, _shape, _size, _target_dtype, on_meta, without_values
from .overwrite import overwrite
from .registry import composite


def _drawn(draw: Callable[[np.ndarray], np.ndarray], array: np.ndarray) -> np.ndarray:
    """``draw(array)``, the draws in the layout of `array`; of a complex one, in both of its parts."""
    if array.dtype.kind not in "cW":
        return draw(array)
    parts = draw(view_as_real(array))
    return (parts if parts.flags.c_contiguous else parts.copy()).view(array.dtype)[..., 0]


def _normal(g: Generator, array: np.ndarray, mean: float = 0.0, std: float = 1.0) -> np.ndarray:
    """Normal numbers; complex ones have variance ``std ** 2`` in all, around `mean` in both parts."""
    if not array.size:
        return array
    std = std * math.sqrt(0.5) if array.dtype.kind in "cW" else std
    return _drawn(lambda parts: g.normal_like(parts, mean, std), array)


def _generator(given: Generator | None, device: Any = None) -> Generator:
    if given is None:
        return default_generator if device is None and default.device is None else generator_of(device)
    if not isinstance(given, Generator):
        raise TypeError(f"argument 'generator' must be torch.Generator, not {type(given).__name__}")
    return given


def _where(input: Tensor, device: Any) -> Any:
    return input.device if device is None and input._memory_.__class__ is not np.ndarray else device


def _check_drawable(kernel: str, np_dtype: np.dtype) -> None:
    if np_dtype.kind not in "fcVW":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(np_dtype)}'")
    refuse_stored(kernel, np_dtype, but="W")


@composite(method=False, draws=True)
def rand(
    *size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    **kw: Any,
) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1)."""
    g, shape, np_dtype = _generator(generator, device), _size("rand", size, kw), _float_dtype(_target_dtype(dtype, kw))
    _check_drawable("check_uniform_bounds", np_dtype)
    if on_meta(device):
        return without_values(shape, np_dtype, requires_grad, kw)
    return _out(_drawn(g.uniform_like, np.empty(shape, np_dtype)), requires_grad, device, kw, dtype)


@composite(method=False, draws=True)
def randn(
    *size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    **kw: Any,
) -> Tensor:  # fmt: skip
    """Standard normal numbers (complex ones have variance 1 in all)."""
    g, shape, np_dtype = _generator(generator, device), _size("randn", size, kw), _float_dtype(_target_dtype(dtype, kw))
    if 0 not in shape:
        _check_drawable("normal_kernel_cpu", np_dtype)
    if on_meta(device):
        return without_values(shape, np_dtype, requires_grad, kw)
    return _out(_normal(g, np.empty(shape, np_dtype)), requires_grad, device, kw, dtype)


@composite(method=False, draws=True)
def randint(
    low: Any = None, high: Any = None, size: Any = None, *, generator: Generator | None = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False, **kw: Any,
) -> Tensor:  # fmt: skip
    """Integers from `low` (0 if left out) up to but not including `high`."""
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    elif low is None:
        low = 0
    np_dtype: Any = np.dtype(np.int64) if dtype is None else dtypes.as_numpy_dtype(dtype)
    _check_integers(low, high, np_dtype)
    if on_meta(device):
        return without_values(_shape("randint", (size,)), np_dtype, requires_grad, kw)
    values = _generator(generator, device).integers(low, high, _shape("randint", (size,)), np_dtype)
    return _out(values, requires_grad, device, kw, dtype)


def _check_integers(low: int, high: int, np_dtype: Any) -> None:
    if np_dtype.kind in "cW":
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    refuse_stored("random_update_from_to", np_dtype, but="u")
    if np_dtype.kind in "iub":
        least, most = (0, 1) if np_dtype.kind == "b" else (np.iinfo(np_dtype).min, np.iinfo(np_dtype).max)
        for name, value in (("from", low), ("to - 1", high - 1)):
            if not least <= value <= most:
                raise RuntimeError(f"{name} is out of bounds for {np_dtype}: {value}")


@composite(method=False, draws=True)
def rand_like(
    input: Tensor, *, generator: Generator | None = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, **kw: Any,
) -> Tensor:  # fmt: skip
    """Uniform numbers in the shape of another tensor."""
    g, np_dtype = _generator(generator, _where(input, device)), _like(input, dtype)
    _check_drawable("check_uniform_bounds", np_dtype)
    drawn = _drawn(g.uniform_like, np.empty_like(_laid_out(input, np_dtype), np_dtype))
    return _out(drawn, requires_grad, _where(input, device) or HERE, kw)


@composite(method=False, draws=True)
def randn_like(
    input: Tensor, *, generator: Generator | None = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, **kw: Any,
) -> Tensor:  # fmt: skip
    """Standard normal numbers in the shape of another tensor."""
    g, np_dtype = _generator(generator, _where(input, device)), _like(input, dtype)
    if input._memory_.size:
        _check_drawable("normal_kernel_cpu", np_dtype)
    return _out(
        _normal(g, np.empty_like(_laid_out(input, np_dtype), np_dtype)),
        requires_grad,
        _where(input, device) or HERE,
        kw,
    )


@composite(method=False, draws=True)
def randint_like(
    input: Tensor, low: Any = None, high: Any = None, *, generator: Generator | None = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False, **kw: Any,
) -> Tensor:  # fmt: skip
    """Integers from `low` (0 if left out) up to but not including `high`, in the shape of another tensor."""
    if high is None:
        low, high = 0, low
    elif low is None:
        low = 0
    np_dtype = _like(input, dtype)
    _check_integers(low, high, np_dtype)
    array = np.empty_like(_laid_out(input, np_dtype), np_dtype)
    drawn = _generator(generator, _where(input, device)).integers_like(array, low, high).astype(np_dtype)
    return _out(drawn, requires_grad, _where(input, device) or HERE, kw)


@composite(method=False, draws=True)
def randperm(
    n: int, *, generator: Generator | None = None, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    **kw: Any,
) -> Tensor:  # fmt: skip
    """The integers below `n` in random order."""
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    asked = _target_dtype(dtype, kw)
    np_dtype: Any = np.dtype(np.int64) if asked is None else dtypes.as_numpy_dtype(asked)
    refuse_stored("randperm", np_dtype)
    if np_dtype.kind in "bcW":
        raise NotImplementedError(f'"randperm" not implemented for \'{scalar_name(np_dtype)}\'')
    _check_countable(n, np_dtype)
    return _out(_generator(generator, device).permutation(n).astype(np_dtype), requires_grad, device, kw, dtype)


def _check_countable(n: int, np_dtype: np.dtype) -> None:
    """Does the dtype have all integers below `n`?"""
    if np_dtype.kind in "iu" and n - 1 > np.iinfo(np_dtype).max:
        raise RuntimeError(f"value cannot be converted to type {np_dtype}_t without overflow: {n} in randperm()")
    if np_dtype.kind == "f":
        most = 2 ** (np.finfo(np_dtype).nmant + 1) + 1
        if n > most:
            raise RuntimeError(f"n cannot be greater than {most} for {scalar_name(np_dtype)} type.")


@composite(method=False, draws=True)
def normal(
    mean: Any, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, dtype: Any = None,
    device: Any = None, requires_grad: bool = False, **kw: Any,
) -> Tensor:  # fmt: skip
    """Normal numbers with a mean and a standard deviation, each a number or a tensor."""
    if isinstance(std, Tensor):
        if (all_values(std) < 0).any():
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    if size is not None:
        np_dtype = _float_dtype(_target_dtype(dtype, kw))
        _check_drawable("normal_kernel_cpu", np_dtype)
        if on_meta(device):
            return without_values(_shape("normal", (size,)), np_dtype, requires_grad, kw)
        array = np.empty(_shape("normal", (size,)), np_dtype)
        return _out(_normal(_generator(generator, device), array, float(mean), float(std)), requires_grad, device, kw)
    like = mean if isinstance(mean, Tensor) else std
    # Of the right shape; what it holds has the gradient zero, as every draw has.
    result = (mean + std).to(like.dtype)
    drawn = (
        randn(result.shape, generator=generator, dtype=like.dtype, device=like.device) * _values(std) + _values(mean)
    ).to(like.dtype)
    if kw.get("out") is None:
        return overwrite(result, drawn._numbers_)
    return _out(drawn._numbers_, False, device, kw, warn=True)


def _values(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value
