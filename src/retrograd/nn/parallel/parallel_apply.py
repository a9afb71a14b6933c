"""``torch.nn.parallel.parallel_apply``: modules, each with an input of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.devices import as_device
from ..modules.module import Module

__all__ = ["parallel_apply"]


def parallel_apply(
    modules: Sequence[Module], inputs: Sequence[Any], kwargs_tup: Sequence[dict] | None = None, devices: Any = None
) -> list[Any]:
    """The results of all modules, one after the other: there is one device to compute on.

    >>> import retrograd as torch
    >>> torch.nn.parallel.parallel_apply([torch.nn.ReLU(), torch.nn.Tanh()], [torch.zeros(1), torch.zeros(1)])
    [tensor([0.]), tensor([0.])]
    """
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    for where in devices or ():
        as_device(where)
    return [
        module(*(given if isinstance(given, (list, tuple)) else (given,)), **kwargs)
        for module, given, kwargs in zip(modules, inputs, kwargs_tup or [{}] * len(modules), strict=True)
    ]
