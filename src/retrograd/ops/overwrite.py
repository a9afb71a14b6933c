"""Values that replace a tensor's own in place and do not depend on them: what was there gets the gradient zero.

A tangent becomes zero: what is written does not vary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._generated import functions as generated
from ..autograd.inplace import begin_inplace, bump_version
from ..core.state import local
from ..kernels.dtypes import convert
from ..tensor import Tensor, wrap
from ..tensor.lazy_conjugation import write_back


def overwrite(input: Tensor, values: Any) -> Tensor:
    """`values`, an array that is expanded and converted, in place of the values of `input`."""
    return overwrite_by(input, lambda: values)


def overwrite_by(input: Tensor, make: Callable[[], Any]) -> Tensor:
    """The same for values that are made once it is known that they may be written: a refused call draws no numbers."""
    state = local.state
    record = bool(state.grad_enabled) and input.requires_grad
    begin_inplace(state, input, record)
    values = make()
    if record or state.interceptor is not None:
        return generated.copy_(input, wrap(values), False)
    array = input._numbers_
    array[...] = values if array.dtype.num < 256 else convert(values, array.dtype)
    write_back(input, array)
    bump_version(input)
    return input
