"""Conjugates and parts of complex tensors, which are views. See Note [Lazy conjugation]."""

from __future__ import annotations

from typing import Any

from ..._generated import functions as generated
from ...tensor import Tensor
from ...tensor.lazy_conjugation import bits_of
from ..registry import composite

# `conjugate` is what formulas call, since arrays and Python numbers have it too.


@composite("Tensor.conjugate")
def conj(input: Tensor) -> Tensor:
    """The complex conjugate, a view of the same memory; a real tensor itself.

    >>> import retrograd as torch
    >>> x = torch.tensor([1+2j, 3-1j])
    >>> y = x.conj()
    >>> y.is_conj(), y._base is x
    (True, True)
    >>> y.mul_(1j); x
    tensor([ 2.+1.j, -1.+3.j])
    tensor([ 2.-1.j, -1.-3.j])
    """
    return generated._conj(input) if input._memory_.dtype.kind in "cW" else input


@composite(method=False)
def is_conj(input: Tensor) -> bool:
    """Is the memory to be read as its conjugate?"""
    return bits_of(input)[0]


@composite(method=False)
def is_neg(input: Tensor) -> bool:
    """Is the memory to be read with the other sign?"""
    return bits_of(input)[1]


@composite()
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself, or a copy without the conj bit."""
    return generated.clone(input) if bits_of(input)[0] else input


@composite()
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself, or a copy without the neg bit."""
    return generated.clone(input) if bits_of(input)[1] else input


@composite()
def conj_physical(input: Tensor, *, out: Any = None) -> Tensor:
    """The complex conjugate, computed; a real tensor itself."""
    if out is None and input._memory_.dtype.kind not in "cW":
        return input
    return generated._conj_physical(input, out=out)


@composite()
def conj_physical_(input: Tensor) -> Tensor:
    """In-place `conj_physical`."""
    return generated._conj_physical_(input)


def _write(part: Tensor, value: Any) -> None:
    if isinstance(value, Tensor):
        generated.copy_(part, value, False)
    else:
        generated.fill_Scalar_(part, value)


def _set_real(self: Tensor, value: Any) -> None:
    _write(real(self), value)


def _set_imag(self: Tensor, value: Any) -> None:
    _write(imag(self), value)


@composite(property=True, setter=_set_real)
def real(input: Tensor) -> Tensor:
    """The real parts of a complex tensor, a view; a real tensor itself."""
    if input._memory_.dtype.kind not in "cW":
        return input
    parts = generated.view_as_real(generated._conj(input) if bits_of(input)[0] else input)
    return generated.select(parts, input._memory_.ndim, 0)


@composite(property=True, setter=_set_imag)
def imag(input: Tensor) -> Tensor:
    """The imaginary parts of a complex tensor, a view."""
    if input._memory_.dtype.kind not in "cW":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if bits_of(input)[0]:
        parts = generated._neg_view(generated.view_as_real(generated._conj(input)))
        return generated.select(parts, input._memory_.ndim, 1)
    return generated.select(generated.view_as_real(input), input._memory_.ndim, 1)


