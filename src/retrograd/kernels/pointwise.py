"""How pointwise kernels are made: functions that make a kernel of a ufunc; the families of pointwise kernels call them.

Every kernel begins with its common case, arrays that the ufunc takes as they are, and hands the rest to `apply_unary`
and `apply_binary` of `promotion.py`.  A failing ufunc is simply tried again there, where the checks are.  Numbers
alone give numbers, so that a derivative formula may apply a kernel to what the user passed as a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from .compiled import on_threads
from .promotion import (
    Operand,
    apply_binary,
    apply_unary,
    as_array,
    broadcast_shape,
    float_dtype,
    named,
    result_dtype,
    unsupported,
)

_BOOL = np.dtype(bool)


def _binary(name: str, ufunc: Callable[..., Any], refused: str, message: str, doc: str) -> Callable[..., Any]:
    """A kernel whose result has the common dtype, which must not be of the kinds in `refused`."""
    shared = on_threads(ufunc)

    def kernel(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
        if b.__class__ is ndarray and out is None:
            try:
                d = a.dtype
                if d is b.dtype and d.kind not in refused:
                    r = shared(a, b)
                    return r if r.__class__ is ndarray else as_array(r)
            except (AttributeError, ValueError):
                pass
        d = result_dtype(a, b)
        if d.kind in refused:
            broadcast_shape(a, b)  # what is wrong with the shapes is said first
            if " " in message:
                raise RuntimeError(message)
            unsupported(message, d, out)
        return apply_binary(ufunc, a, b, out, d)

    return named(kernel, name, doc)


_NO_COMPLEX = "{} not implemented for complex tensors."


def _scalar_result(r: Any, a: Operand) -> Any:
    """What NumPy gave as a scalar: an array if `a` is one, else a number."""
    return as_array(r) if hasattr(a, "dtype") else r.item()


# --------------------------------------------------------------------------- one operand, floating result


def _float_unary(name: str, ufunc: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """A kernel of one operand; integers are computed in the default dtype."""
    shared = on_threads(ufunc)

    def kernel(a: Operand, out: ndarray | None = None) -> ndarray:
        if out is None:
            try:
                r = shared(a)
                if r.dtype is a.dtype:
                    return r if r.__class__ is ndarray else as_array(r)
            except AttributeError:
                pass
        return apply_unary(ufunc, a, out, float_dtype(a))

    return named(kernel, name, doc)
