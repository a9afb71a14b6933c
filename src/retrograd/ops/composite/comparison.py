"""Comparisons in place (``x.eq_(y)``), whose results become 0 and 1 of the tensor's own dtype, and membership."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...kernels.promotion import refuse_stored, scalar_name
from ...tensor import Tensor, fresh
from ..overwrite import overwrite
from ..registry import composite
from ..support import needs_a_tensor


def _overwritten(input: Tensor, result: Tensor) -> Tensor:
    if result._memory_.shape != input._memory_.shape:
        raise RuntimeError(
            f"output with shape {list(input._memory_.shape)} doesn't match the broadcast shape "
            f"{list(result._memory_.shape)}"
        )
    if result._special_ is not None:
        return generated.copy_(input, result, False)
    return overwrite(input, result._numbers_)


@composite(space="Tensor")
def eq_(input: Tensor, other: Any) -> Tensor:
    """In-place `eq`: 1 where it is true, else 0."""
    return _overwritten(input, generated.eq(input, other))


@composite("not_equal_", space="Tensor")
def ne_(input: Tensor, other: Any) -> Tensor:
    """In-place `ne`: 1 where it is true, else 0."""
    return _overwritten(input, generated.ne(input, other))


@composite("less_", space="Tensor")
def lt_(input: Tensor, other: Any) -> Tensor:
    """In-place `lt`: 1 where it is true, else 0."""
    return _overwritten(input, generated.lt(input, other))


@composite("less_equal_", space="Tensor")
def le_(input: Tensor, other: Any) -> Tensor:
    """In-place `le`: 1 where it is true, else 0."""
    return _overwritten(input, generated.le(input, other))


@composite("greater_", space="Tensor")
def gt_(input: Tensor, other: Any) -> Tensor:
    """In-place `gt`: 1 where it is true, else 0."""
    return _overwritten(input, generated.gt(input, other))


@composite("greater_equal_", space="Tensor")
def ge_(input: Tensor, other: Any) -> Tensor:
    """In-place `ge`: 1 where it is true, else 0."""
    return _overwritten(input, generated.ge(input, other))


@composite(method=False, out=True)
def isin(
    elements: Any = None, test_elements: Any = None, *, assume_unique: bool = False, invert: bool = False,
    element: Any = None, test_element: Any = None,
) -> Tensor:  # fmt: skip
    """Which of `elements` are among `test_elements` (or, with `invert`, are not); either may be a number.

    >>> import retrograd as torch
    >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 5]))
    tensor([False,  True, False])
    """
    # A number may also be given by a name of its own.
    elements = element if elements is None else elements
    test_elements = test_element if test_elements is None else test_elements
    for value in (elements, test_elements):
        if value is None:
            raise needs_a_tensor("isin", elements, test_elements)
        dtype = value._memory_.dtype if isinstance(value, Tensor) else np.asarray(value).dtype
        if dtype.kind in "bcW":
            raise RuntimeError(f"Unsupported input type encountered for isin(): {scalar_name(dtype)}")
        refuse_stored("isin_default_cpu", dtype)
    first, second = (value._numbers_ if isinstance(value, Tensor) else value for value in (elements, test_elements))
    return fresh(np.isin(first, second, assume_unique=assume_unique and np.ndim(second) > 0, invert=invert))


@composite()
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Are all elements close?"""
    return bool(generated.isclose(input, other, rtol, atol, equal_nan)._numbers_.all())


@composite()
def equal(input: Tensor, other: Tensor) -> bool:
    """Same shape and same values?"""
    refuse_stored("equal_notnan_cpu", input._memory_.dtype, but="u")
    return input._memory_.shape == other._memory_.shape and bool((input._numbers_ == other._numbers_).all())
