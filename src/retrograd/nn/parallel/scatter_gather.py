"""``torch.nn.parallel.scatter_gather``: a batch shared out among devices, and collected. There is one device."""

from __future__ import annotations

from typing import Any

from ...core.devices import CPU, as_device
from ...ops import namespace as ops
from ...tensor import Tensor

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _one(target_gpus: Any) -> None:
    for where in target_gpus if isinstance(target_gpus, (list, tuple)) else [target_gpus]:
        as_device(where)


def is_namedtuple(obj: Any) -> bool:
    """Is it a named tuple?"""
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> list:
    """`inputs` in as many parts as there are devices to compute on: one, with everything.

    >>> from retrograd.nn.parallel.scatter_gather import scatter
    >>> scatter([1, 2], ["cpu"])
    [[1, 2]]
    """
    _one(target_gpus)
    if isinstance(target_gpus, (list, tuple)) and len(target_gpus) > 1:
        raise RuntimeError(f"scatter(): there is one device to compute on, not {len(target_gpus)}: {target_gpus}")
    return [inputs]


def scatter_kwargs(inputs: tuple, kwargs: dict | None, target_gpus: Any, dim: int = 0) -> tuple:
    """The same for the arguments of a call."""
    return tuple(scatter(inputs, target_gpus, dim)), tuple(scatter(kwargs or {}, target_gpus, dim))


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The results of all devices as one: of one device, its result; of several tensors, all of them joined.

    >>> import retrograd as torch
    >>> from retrograd.nn.parallel.scatter_gather import gather
    >>> gather([torch.ones(1), torch.zeros(1)], "cpu")
    tensor([1., 0.])
    """
    if as_device(target_device) != CPU:
        raise RuntimeError(f"gather(): tensors are collected on the CPU, not on {target_device}")
    first = outputs[0]
    if len(outputs) == 1:
        return first
    if isinstance(first, Tensor):
        return ops.cat([out if out.ndim else out.view(1) for out in outputs], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        return type(first)((key, gather([out[key] for out in outputs], target_device, dim)) for key in first)
    collected = [gather(parts, target_device, dim) for parts in zip(*outputs)]
    return type(first)(*collected) if is_namedtuple(first) else type(first)(collected)
