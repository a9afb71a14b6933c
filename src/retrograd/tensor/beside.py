"""Arrays that a function makes beside its tensors: on the device of these, or read on the host."""

from __future__ import annotations

from typing import Any

from numpy import ndarray

from .tensor import Tensor, wrap


def beside(like: Tensor, array: Any) -> Tensor:
    """A Tensor on `array`, which a function made of shapes and numbers, on the device of `like`.

    >>> import numpy, retrograd as torch
    >>> beside(torch.ones(2), numpy.arange(3)).device
    device(type='cpu')
    """
    data = like._memory_
    if data.__class__ is ndarray or array.__class__ is not ndarray:
        return wrap(array)
    if not hasattr(data, "place"):
        return like._of_array_(array) if like.is_meta else wrap(array)  # type: ignore[attr-defined]
    return wrap(data.place.from_host(array))


def on_host(array: Any) -> Any:
    """The values of an array in the host's memory, for a function that has to look at them one by one."""
    return array if array.__class__ is ndarray or not hasattr(array, "place") else array.get()
