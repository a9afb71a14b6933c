"""Subscripts, ``x[key]`` and ``x[key] = value``, and indexing operators that choose an overload or are made of others.

A key is taken apart as torch does it: ints, slices and None become a chain of views (select, slice, unsqueeze), and
what is left, arrays of indices and masks, one `index` of the last view.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from operator import index as index_of
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import kernels
from ..._generated import functions as generated
from ..._generated.nodes import CopyBackwards
from ...autograd.edge import gradient_edge
from ...autograd.inplace import (
    begin_inplace,
    can_rebase_part,
    check_no_internal_overlap,
    check_overlap,
    end_inplace,
    rebase_part,
)
from ...autograd.node import init_node
from ...core.quiet import once
from ...core.state import local
from ...kernels.indexing_key import masks_of_bytes, parse_index
from ...tensor import Tensor, type_name, wrap
from ...tensor.special import NoArray
from ..arguments import overflow
from ..registry import composite
from ..support import no_array

if TYPE_CHECKING:
    from ...core.state import ThreadState

_slice, _select, _take_slice = builtins.slice, generated.select, generated.slice
_ALL = builtins.slice(None)
_LONG = np.dtype(np.int64)


# --------------------------------------------------------------------------------------------------------------- x[key]


@composite(space="Tensor", bare=True)
def __getitem__(self: Tensor, key: Any) -> Tensor:
    """``self[key]``: a view where the key holds no arrays, else a copy.

    >>> import retrograd as torch
    >>> x = torch.arange(6).reshape(2, 3)
    >>> x[1], x[:, [0, 2]]
    (tensor([3, 4, 5]), tensor([[0, 2],
            [3, 5]]))
    """
    cls = key.__class__
    if cls is int:
        try:
            return _select(self, 0, key)
        except IndexError:
            pass  # told better below
    elif cls is _slice:
        if self._memory_.ndim and key.step is None:
            start, stop = key.start, key.stop
            if start.__class__ is not int:
                start = _bound(start)
            if stop.__class__ is not int:
                stop = _bound(stop)
            return _take_slice(self, 0, start, stop)
    elif cls is Tensor:
        array = key._numbers_
        if array.dtype is _LONG and array.ndim and self._memory_.ndim:
            return generated.index(self, [array])
    try:
        basic, advanced = parse_index(_arrays(key), self._memory_.shape)
    except NoArray:
        return no_array(Tensor.__getitem__, "__getitem__", "key", 1, self, (self, key), {})
    return _read(self, basic, advanced)


def _bound(bound: Any) -> Any:
    # A slice may be bounded by anything that stands for an int, such as a tensor.
    if bound is None or bound.__class__ is int:
        return bound
    try:
        return index_of(bound)
    except TypeError:
        raise TypeError(
            f"slice indices must be integers or None or have an __index__ method, but got {type(bound).__name__}"
        ) from None


def _is_all(k: builtins.slice, n: int) -> bool:
    """Is this slice so plainly all of a dimension of size `n` that there is no need to take it?"""
    start, stop, step = _bound(k.start), _bound(k.stop), _bound(k.step)
    return (start is None or start == 0) and (stop is None or stop >= n) and (step is None or step == 1)


def _arrays(key: Any) -> Any:
    """A key with arrays for the Tensors in it."""
    if key.__class__ is tuple:
        for k in key:
            if k.__class__ is not int and k.__class__ is not _slice and k is not None and k is not Ellipsis:
                break
        else:
            return key
    if isinstance(key, Tensor):
        return key._numbers_
    if isinstance(key, (tuple, list)):
        return key.__class__([_arrays(k) for k in key]) if key.__class__ in (tuple, list) else [_arrays(k) for k in key]
    return key


def _read(self: Tensor, basic: tuple[Any, ...], advanced: list[Any] | None) -> Tensor:
    result = self
    dim = 0
    for k in basic:
        if k.__class__ is int:
            result = generated.select(result, dim, k)
        elif k is None:
            result = generated.unsqueeze(result, dim)
            dim += 1
        elif k is Ellipsis:
            break
        elif k.__class__ is _slice:
            if not _is_all(k, result._memory_.shape[dim]):
                step = 1 if k.step is None else _bound(k.step)
                result = generated.slice(result, dim, _bound(k.start), _bound(k.stop), step)
            dim += 1
        else:
            result = generated.select(result, dim, k)
    if advanced is not None:
        return generated.index(result, advanced)
    return generated.alias(result) if result is self else result


# ------------------------------------------------------------------------------------------------------- x[key] = value


@composite(space="Tensor", bare=True)
def __setitem__(self: Tensor, key: Any, value: Any) -> None:
    """``self[key] = value``, in place.

    >>> import retrograd as torch
    >>> x = torch.zeros(3)
    >>> x[1:] = torch.tensor([1., 2.])
    >>> x
    tensor([0., 1., 2.])
    """
    try:
        data = self._numbers_
        values = value._numbers_ if isinstance(value, Tensor) else None
        arrays = key if key.__class__ is int else _arrays(key)
    except NoArray:
        return no_array(Tensor.__setitem__, "__setitem__", "key", 1, self, (self, key, value), {})
    if values is not None:
        if data.dtype.kind not in "fcVW" and value.requires_grad:
            value = value.detach()  # what an integer tensor holds has no gradient
    else:
        values = value = _number_to_write(self, value)
    if key.__class__ is bool:
        if not key:
            return  # none of it
        arrays = None
    basic, advanced = parse_index(arrays, data.shape)
    state = local.state
    if (
        state.interceptor is not None
        or (state.grad_enabled and (self._edge_ or self.requires_grad or (value is not values and value.requires_grad)))
    ):
        if advanced is None and state.interceptor is None and _write_part(state, self, basic, value, values):
            end_inplace(self, data, None, "__setitem__")
            return
        place = _place(self, basic)
        if place is not self and place._grad_meta_ is not None:
            place._grad_meta_.fleeting = True  # type: ignore[attr-defined]
        _write(place, advanced, value)
        return
    # Nothing to record: straight to memory.
    part = self._memory_[basic] if 0 in self._memory_.strides else None
    begin_inplace(state, self, False, advanced is not None and "index_put_", part)
    if value is not values and value._vc_ is self._vc_ and value._vc_ is not None:
        if advanced is not None:
            check_overlap(data[basic], values, True)
        elif values.size > 1:
            check_overlap(data[basic], kernels.expand(_stripped(values, data[basic]), data[basic].shape))
    kernels.setitem(data, basic, advanced, values, out=data)
    end_inplace(self, data, None, "__setitem__")


def _number_to_write(self: Tensor, value: Any) -> Any:
    """The number `value`, if it can be an element of the tensor."""
    if not isinstance(value, (bool, int, float, complex)):
        kind = type(value)
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        raise TypeError(f"can't assign a {name} to a {type_name(self)}: make it a tensor first, with torch.tensor(...)")
    dtype = self._memory_.dtype
    # Does it fit? This is asked before the key is looked at, and at once of what fits everywhere.
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63 and not (dtype.char == "L" and 0 <= value < 2**64):
            raise overflow()
    elif isinstance(value, complex) or dtype.kind in "iu" or not -65504 <= value <= 65504:
        kernels.element(value, dtype)
        if isinstance(value, complex) and dtype.kind not in "bcW":
            value = value.real
    return value


def _stripped(values: Any, place: Any) -> Any:
    """Values without leading dimensions of size 1 that the place does not have."""
    while values.ndim > place.ndim and values.shape[0] == 1:
        values = values[0]
    return values


def _write_part(state: ThreadState, self: Tensor, basic: tuple[Any, ...], value: Any, values: Any) -> bool:
    """Write to the part `basic` of a tensor and record it, without making the view; False where a view is needed."""
    if not can_rebase_part(state, self):
        return False
    data = self._numbers_
    part = data[basic]
    if part.shape == data.shape:
        return False  # all of it: no part
    edge = None
    if value is values:
        once(kernels.fill, part, values, out=part)
    else:
        if values.dtype is not data.dtype or values.ndim > part.ndim or value._vc_ is self._vc_ is not None:
            return False
        edge = value._edge_ or (value._grad_meta_ and gradient_edge(value))
        try:
            part[...] = values
        except ValueError:
            return False  # it does not fit: told better elsewhere
    node: Any = CopyBackwards()
    init_node(node, (None, edge))
    rebase_part(self, basic, part, node)
    return True


def write_at(self: Tensor, key: Any, value: Any) -> None:
    """``self[key] = value`` by operators alone, of a tensor that has no array."""
    basic, advanced = parse_index(_arrays(key), self._memory_.shape)
    _write(_place(self, basic), advanced, value)


def _place(self: Tensor, basic: tuple[Any, ...]) -> Tensor:
    """The view of `self` that ``self[key] = value`` writes to; `self` where it is all of it."""
    if all(
        k is Ellipsis or (isinstance(k, builtins.slice) and _is_all(k, n))
        for k, n in zip(basic, (*self._memory_.shape, 0))
    ):
        return self
    return _read(self, basic, None)


def _write(place: Tensor, advanced: list[Any] | None, value: Any) -> None:
    """Write to all of `place`, or to the places in it that arrays give. The history is that of the writing operator."""
    number = False
    if isinstance(value, Tensor):
        shape = value._memory_.shape
        number = not shape
        if (advanced is not None or shape != place._memory_.shape) and shape[:1] == (1,):
            first = next((i for i, n in enumerate(shape) if n != 1), len(shape))
            value = generated.view(value, shape[first:])
    if advanced is not None:
        generated.index_put_(place, advanced, value)
        return
    if not isinstance(value, Tensor):
        number = True
        value = wrap(kernels.element(value, place._memory_.dtype))
        if 0 in place._memory_.strides:
            check_no_internal_overlap(place._memory_)
    if number and place._memory_.ndim:
        generated.fill_Tensor_(place, value)
    else:
        if value._memory_.shape != place._memory_.shape:
            value = generated.expand(value, place._memory_.shape)
        generated.copy_(place, value)


# ------------------------------------------------------------------------------------------------------------ index_put


def index_arrays(indices: Sequence[Any]) -> list[Any]:
    """The indices of index_put as arrays."""
    if isinstance(indices, Tensor) or not isinstance(indices, (tuple, list)):
        raise TypeError(
            "index_put(): argument 'indices' (position 1) must be tuple of Tensors, not " + type(indices).__name__
        )
    return [masks_of_bytes(i._numbers_ if isinstance(i, Tensor) else i) for i in indices]


@composite()
def index_put(input: Tensor, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Tensor:
    """`input` with `values` written to (or, with `accumulate`, added at) the places that a tuple of tensors gives.

    >>> import retrograd as torch
    >>> torch.zeros(3).index_put((torch.tensor([0, 0]),), torch.ones(2), accumulate=True)
    tensor([2., 0., 0.])
    """
    try:
        arrays = index_arrays(indices)
    except NoArray:
        return no_array(index_put, "index_put", "indices", 2, indices, (input, indices, values, accumulate), {})
    return generated.index_put(input, arrays, values, accumulate)


@composite()
def index_put_(input: Tensor, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Tensor:
    """`index_put` in place."""
    try:
        arrays = index_arrays(indices)
    except NoArray:
        return no_array(index_put_, "index_put_", "indices", 2, indices, (input, indices, values, accumulate), {})
    for index in indices:
        if isinstance(index, Tensor) and (index is input or (index._vc_ is not None and index._vc_ is input._vc_)):
            check_overlap(input._memory_, index._memory_, True)
    return generated.index_put_(input, arrays, values, accumulate)


@composite(method=False, bare=True)
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates, in a tensor of that shape, of elements counted in row-major order."""
    if not isinstance(indices, Tensor):
        kind = type(indices).__name__
        raise TypeError(f"unravel_index(): argument 'indices' (position 1) must be Tensor, not {kind}")
    if indices._memory_.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, Sequence)) or isinstance(shape, str):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not all(isinstance(n, int) for n in sizes):
        kinds = [type(n).__name__ for n in sizes if not isinstance(n, int)]
        raise TypeError(f"expected 'shape' sequence to only contain ints, but got {', '.join(kinds)} in {sizes}")
    if any(n >= 2**63 for n in sizes):
        raise overflow()
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    results = []
    rest = indices.long()
    for n in reversed(sizes):
        results.append(generated.remainder(rest, n))
        rest = generated.floor_divide(rest, n)
    return tuple(reversed(results))
