"""Putting samples together to a batch, and turning arrays into tensors where nothing is batched."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from ....core.dtypes import float64
from ....ops import factories
from ....ops import namespace as ops
from ....tensor import Tensor

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def default_convert(data: Any) -> Any:
    """Arrays as tensors, within dicts and sequences too; everything else as it is.

    >>> import numpy
    >>> from retrograd.utils.data import default_convert
    >>> default_convert({"x": numpy.array([1, 2]), "name": "a"})
    {'x': tensor([1, 2]), 'name': 'a'}
    """
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in "SUOVMm" and data.dtype.name != "bfloat16" else factories.as_tensor(data)
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*[default_convert(part) for part in data])
    if isinstance(data, tuple):
        return [default_convert(part) for part in data]  # a list, as torch has it
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(part) for part in data])
    return data


def _like_mapping(example: Any, items: dict) -> Any:
    """These items in a mapping of the example's class, if it can be had."""
    try:
        if isinstance(example, MutableMapping):  # it may have attributes of its own
            result = copy.copy(example)
            result.update(items)
            return result
        return type(example)(items)  # type: ignore[call-arg]
    except TypeError:
        return items


def _like_sequence(example: Any, parts: list) -> Any:
    """These parts in a sequence of the example's class, if it can be had."""
    try:
        if isinstance(example, MutableSequence):
            result = copy.copy(example)
            for i, part in enumerate(parts):
                result[i] = part
            return result
        return type(example)(parts)  # type: ignore[call-arg]
    except TypeError:
        return parts


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable] | None = None) -> Any:
    """A batch of samples, by the class of the first: `collate_fn_map` says how, for classes or tuples of them."""
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for classes, function in collate_fn_map.items():
            if isinstance(first, classes):
                return function(batch, collate_fn_map=collate_fn_map)

    def together(samples: Any) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return _like_mapping(first, {key: together([sample[key] for sample in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*[together(samples) for samples in zip(*batch)])
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [together(samples) for samples in zip(*batch)]
        return parts if isinstance(first, tuple) else _like_sequence(first, parts)
    raise TypeError(default_collate_err_msg_format.format(kind))


def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Tensors of one shape, stacked."""
    return ops.stack(list(batch), 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Arrays, as tensors."""
    if batch[0].dtype.kind in "SUO":
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([factories.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """NumPy's numbers."""
    return factories.as_tensor(np.asarray(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Floats, in double precision."""
    return factories.tensor(list(batch), dtype=float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Ints and bools."""
    return factories.tensor(list(batch))


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Text and bytes stay a list of them."""
    return batch


default_collate_fn_map: dict[Any, Callable] = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """Samples as a batch: tensors, arrays and numbers stacked, dicts and sequences part by part, text as it is.

    >>> from retrograd.utils.data import default_collate
    >>> default_collate([{"x": 1.5, "name": "a"}, {"x": 2.5, "name": "b"}])
    {'x': tensor([1.5000, 2.5000], dtype=torch.float64), 'name': ['a', 'b']}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
