"""``segment_reduce``: the sum, mean, product, maximum or minimum of consecutive stretches along a dimension."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...kernels.promotion import scalar_name
from ...tensor import Tensor, wrap
from ..registry import composite
from ..support import write_out

_NAMES = {"max": "amax", "amax": "amax", "min": "amin", "amin": "amin", "sum": "sum", "mean": "sum", "prod": "prod"}
#: What a stretch of no elements gives.
_NEUTRAL = {"amax": -math.inf, "amin": math.inf, "sum": 0, "prod": 1}


@composite(method=False)
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """`data` reduced over stretches along `axis`, of the given `lengths` or between the given `offsets`.

    >>> import retrograd as torch
    >>> torch.segment_reduce(torch.tensor([1., 2., 3., 4.]), "sum", lengths=torch.tensor([1, 3]))
    tensor([1., 9.])
    """
    if out is not None:
        keywords = {"lengths": lengths, "offsets": offsets, "axis": axis, "unsafe": unsafe, "initial": initial}
        return write_out(segment_reduce, out, (data, reduce), keywords)
    if reduce not in _NAMES:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if data._data.dtype.kind not in "fV":
        raise NotImplementedError(f"\"_segment_reduce_cpu\" not implemented for '{scalar_name(data._data.dtype)}'")
    counts = _counts(data, lengths, offsets, axis % max(data.ndim, 1), unsafe)
    axis = counts.ndim - 1
    name, count = _NAMES[reduce], counts.shape[-1]
    start = _NEUTRAL[name] if initial is None else initial
    # What lies in no stretch goes to one more, which is dropped.
    index = np.full(data._data.shape[: axis + 1], count, np.int64)
    for row in np.ndindex(*counts.shape[:-1]):
        first = 0 if offsets is None or lengths is not None else int(offsets._data[row][0])
        stretches = np.repeat(np.arange(count), counts[row])
        index[row][first : first + stretches.size] = stretches
    more = bool((index == count).any())
    base = data.new_full((*data.shape[:axis], count + more, *data.shape[axis + 1 :]), start)
    where = np.broadcast_to(index.reshape(*index.shape, *[1] * (data.ndim - axis - 1)), data._data.shape)
    result = generated.scatter_reduce(base, axis, wrap(where), generated.straight(data), name, include_self=True)
    result = result.narrow(axis, 0, count) if more else result
    if reduce == "mean":
        divisors = counts.reshape(*counts.shape, *[1] * (data.ndim - axis - 1)).astype(data._data.dtype)
        # Of no elements, torch gives the initial value, or NaN where there is none.
        divisors = divisors if initial is None else np.maximum(divisors, divisors.dtype.type(1))
        result = result / wrap(divisors)
    return result


def _counts(data: Tensor, lengths: Tensor | None, offsets: Tensor | None, axis: int, unsafe: bool) -> np.ndarray:
    """How many elements each stretch has, as an array whose last dimension is the one that is reduced."""
    given = lengths if lengths is not None else offsets
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    name = "lengths" if lengths is not None else "offsets"
    if given._data.dtype.kind not in "iu":
        raise NotImplementedError(
            f"\"_segment_reduce_{name}_cpu_kernel1\" not implemented for '{scalar_name(given._data.dtype)}'"
        )
    if axis != given.ndim - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}.")
    if lengths is None:
        if given._data.shape[-1] < 1:
            raise RuntimeError("segment_reduce(): Expected offsets to have at least one element")
        return np.diff(given._data, axis=-1)
    if not unsafe:
        if (given._data < 0).any():
            raise RuntimeError("lengths contains negative value!")
        if (given._data.sum(-1) != data.shape[axis]).any():
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
                "!unsafe."
            )
    return given._data
