"""``torch.utils._foreach_utils``: which devices torch has list kernels for, and lists sorted by device and dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tensor import Tensor

TensorListList = list[list[Tensor | None]]
Indices = list[int]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Where torch takes ``foreach`` implementations without being asked."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Where torch has ``fused`` implementations."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _device_has_foreach_support(device: Any) -> bool:
    """Can ``_foreach_*`` functions be used on a device?"""
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: Sequence[Tensor | None], device: Any) -> bool:
    """Can ``_foreach_*`` functions be used on these tensors?"""
    return _device_has_foreach_support(device) and all(t is None or type(t) is Tensor for t in tensors)


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[TensorListList, Indices]]:
    """Lists of equal length, cut into lists of one device and dtype each, by the tensors of the first list.

    >>> import retrograd as torch
    >>> a, b = torch.ones(1), torch.ones(1, dtype=torch.float64)
    >>> groups = _group_tensors_by_device_and_dtype([[a, b, a]], with_indices=True)
    >>> [indices for _, indices in groups.values()]
    [[0, 2], [1]]
    """
    groups: dict[tuple[Any, Any], tuple[TensorListList, Indices]] = {}
    for index, first in enumerate(tensorlistlist[0]):
        if first is None:
            raise RuntimeError("Tensors of the first list of nested Tensor lists are supposed to be defined")
        lists, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for of_group, tensors in zip(lists, tensorlistlist):
            if tensors:
                of_group.append(tensors[index])
        if with_indices:
            indices.append(index)
    return groups
