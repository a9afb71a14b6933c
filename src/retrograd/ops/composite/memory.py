"""Tensors and the memory under them: other memory in place, another size in place, views that autograd forgets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import kernels
from ..._generated import functions as table
from ...autograd.accumulate_grad import outdate_accumulator
from ...autograd.forward_grad import has_fw_grad
from ...autograd.forward_operators import forbid_duals
from ...autograd.inplace import begin_inplace, bump_version
from ...core import shared_memory
from ...core.constants import channels_last, channels_last_3d, contiguous_format
from ...core.state import local
from ...storage import TypedStorage, UntypedStorage, typed_storage, untyped_storage
from ...tensor import Tensor, new, type_name
from ...tensor.lazy_conjugation import keep_bits
from ..registry import composite
from ..support import int_tuple
from .inplace import become
from .shape import as_strided


@composite(space="Tensor")
def storage(input: Tensor) -> TypedStorage:
    """The memory that the tensor lies in, in elements."""
    return typed_storage(input)


composite(space="Tensor", bare=True)(untyped_storage)


@composite(space="Tensor", bare=True)
def set_(input: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Make the tensor show the memory of another one, or of a storage, or none; its own is left as it is.

    >>> import retrograd as torch
    >>> x, y = torch.zeros(2), torch.ones(3)
    >>> x.set_(y)
    tensor([1., 1., 1.])
    """
    state = local.state
    if state.grad_enabled and input.requires_grad:
        begin_inplace(state, input, True)
        raise RuntimeError("the derivative for 'set_' is not implemented: use it within torch.no_grad()")
    forbid_duals("set_", input, source)
    data = _memory(input, source, storage_offset, size, stride)
    begin_inplace(state, input, False)
    input._memory = data
    outdate_accumulator(input)
    bump_version(input)
    return input


def _memory(input: Tensor, source: Any, offset: int, size: Any, stride: Any) -> np.ndarray:
    dtype = input._memory.dtype
    if source is None:
        return np.empty((0,), dtype)
    if isinstance(source, Tensor):
        if source._memory.dtype != dtype:
            raise RuntimeError(
                f"Could not set tensor of type {type_name(source)} to a tensor of type {type_name(input)}"
            )
        if size is None:
            return source._memory
        root = source._memory
    elif isinstance(source, TypedStorage):
        if source.dtype.np != dtype:
            raise RuntimeError(f"Expected a Storage of type {input.dtype} or an UntypedStorage, but got {source.dtype}")
        root = source._elements
    elif isinstance(source, UntypedStorage):
        root = source._root.ravel("K").view(dtype)
    else:
        raise TypeError(f"set_(): argument 'source' must be Tensor or Storage, not {type(source).__name__}")
    shape = (root.size - offset,) if size is None else (size,) if isinstance(size, int) else tuple(size)
    steps = kernels.contiguous_strides(shape) if stride is None else stride
    return kernels.as_strided(root, shape, (steps,) if isinstance(steps, int) else tuple(steps), offset)


@composite(space="Tensor")
def is_shared(input: Tensor) -> bool:
    """Does the tensor lie in memory that it shares with other processes: `share_memory_`, a DataLoader's worker?"""
    return shared_memory.is_shared(kernels.storage_root(input._memory))


@composite(space="Tensor")
def share_memory_(input: Tensor) -> Tensor:
    """Move the tensor to memory that processes forked from now on see as this one does, and write to in common.

    Tensors that showed its memory before show the old one still; so a view is refused.

    >>> import retrograd as torch
    >>> torch.ones(2).share_memory_().is_shared()
    True
    """
    data = input._memory
    root = kernels.storage_root(data)
    if shared_memory.is_shared(root):
        return input
    if input._is_view() or not (data.flags.c_contiguous or data.flags.f_contiguous):
        raise RuntimeError("share_memory_(): this tensor is a view of another one: share that one, or a clone()")
    moved = shared_memory.shared_array(data.nbytes).view(data.dtype)
    shared = moved.reshape(data.shape, order="C" if data.flags.c_contiguous else "F")
    shared[...] = data
    input._memory = shared
    return input


@composite(space="Tensor")
def is_pinned(input: Tensor, device: Any = None) -> bool:
    """Does an accelerator read the tensor's memory directly? There is none."""
    return False


@composite(space="Tensor")
def pin_memory(input: Tensor, device: Any = None) -> Tensor:
    """Refused: there is no accelerator to pin memory for."""
    raise RuntimeError("Cannot access accelerator device when none is available: memory is pinned for one")


@composite(space="Tensor")
def resize_(input: Tensor, *sizes: Any, size: Any = None, memory_format: Any = None) -> Tensor:
    """Give the tensor another size in place, with new memory if it needs more; what is added has no values yet.

    >>> import retrograd as torch
    >>> torch.tensor([1., 2., 3., 4.]).resize_(2, 2)
    tensor([[1., 2.],
            [3., 4.]])
    """
    state = local.state
    if input.requires_grad and not state.inference:
        raise RuntimeError("cannot resize variables that require grad: use x.view() or x[...], which are recorded")
    if state.dual_levels and has_fw_grad(input):
        raise RuntimeError("cannot resize variables that has a forward grad: use x.view() or x[...], which keep it")
    shape = int_tuple("resize_", "size", 1, sizes if size is None else (size,))
    if any(n < 0 for n in shape):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    data = input._memory
    if memory_format is not None:
        _check_format(shape, memory_format)
    if data.shape == shape and (memory_format is None or kernels.is_contiguous(data, memory_format)):
        return input
    begin_inplace(state, input, False)
    input._memory = _resized(data, shape, memory_format)
    outdate_accumulator(input)
    if input._is_view():
        input._meta = None  # it shows something else of its base now, if anything
    bump_version(input)
    return input


def _check_format(shape: tuple[int, ...], memory_format: Any) -> None:
    name = str(memory_format).removeprefix("torch.")
    if name == "preserve_format":
        raise RuntimeError("Unsupported memory formatPreserve: there is nothing to preserve, name one or none")
    if "channels_last" in name and len(shape) != (5 if "3d" in name else 4):
        raise RuntimeError(f"required rank {5 if '3d' in name else 4} tensor to use {name} format")


def _strides(shape: tuple[int, ...], memory_format: Any) -> tuple[int, ...]:
    """The strides of a tensor that is contiguous in the format, row-major by default."""
    if "channels_last" not in str(memory_format):
        return kernels.contiguous_strides(shape)
    batch, *rest, channels = kernels.contiguous_strides((shape[0], *shape[2:], shape[1]))
    return (batch, channels, *rest)


def _resized(data: np.ndarray, shape: tuple[int, ...], memory_format: Any) -> np.ndarray:
    root, offset = kernels.storage_root(data), kernels.storage_offset(data)
    needed = offset + math.prod(shape)
    if needed * data.itemsize > root.nbytes:
        memory = np.empty(needed, data.dtype)
        flat = root.ravel("K").view(data.dtype)
        memory[: flat.size] = flat
        data = memory
    return kernels.as_strided(data, shape, _strides(shape, memory_format), offset)


@composite()
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """`resize_` to the size of another tensor, and with ``torch.preserve_format`` to its order in memory."""
    if "preserve" in str(memory_format):
        formats = [f for f in (channels_last, channels_last_3d) if the_template.is_contiguous(memory_format=f)]
        memory_format = formats[0] if formats and not the_template.is_contiguous() else contiguous_format
    return resize_(input, tuple(the_template._data.shape), memory_format=memory_format)


@composite()
def as_strided_(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """In-place `as_strided`."""
    return become("as_strided_", input, as_strided, size, stride, storage_offset)


# ----------------------------------------------------------------------------------------------------- unsafe splits


@composite()
def unsafe_split(tensor: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """`split` whose outputs may be written to in place, if the input is not used after that."""
    return table.unsafe_split_Tensor(tensor, split_size, dim)


@composite()
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`chunk` whose outputs may be written to in place, if the input is not used after that."""
    sizes = tuple(part.shape[dim] for part in kernels.chunk(input._data, chunks, dim))
    return table.unsafe_split_with_sizes(input, sizes, dim)


# ------------------------------------------------------------------------------------------------- layout and class


@composite(space="Tensor")
def dim_order(input: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the outermost in memory to the innermost.

    `ambiguity_check` refuses a tensor that could be read in more than one order; as a list of memory formats, one that
    has more than one of them.

    >>> import retrograd as torch
    >>> torch.ones(2, 3).t().dim_order()
    (1, 0)
    """
    formats = ambiguity_check if isinstance(ambiguity_check, (list, tuple)) else None
    if formats is None and not isinstance(ambiguity_check, bool):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    shape, strides = input._memory.shape, kernels.strides(input._memory)
    unclear = ambiguity_check is True and any(n == 1 or s == 0 for n, s in zip(shape, strides, strict=True))
    if unclear or (formats and sum(input.is_contiguous(memory_format=f) for f in formats) > 1):
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
        )
    order: list[int] = []
    for d in range(len(shape)):
        at = len(order)
        for place in range(len(order) - 1, -1, -1):
            other = order[place]
            if strides[d] == 0 or strides[other] == 0:
                continue  # which comes first cannot be told
            if strides[other] > strides[d] or (strides[other] == strides[d] and shape[other] >= shape[d]):
                break
            at = place
        order.insert(at, d)
    return tuple(order)


@composite(space="Tensor", bare=True)
def as_subclass(input: Tensor, cls: type) -> Tensor:
    """The tensor, its memory and its history, as an object of a class that inherits from Tensor."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your "
            f"class inherits from Tensor: {cls!r} does not."
        )
    view = table.alias(input)
    result = new(cls)
    result._memory, result._vc, result._meta, result._edge = view._memory, view._vc, view._meta, view._edge
    keep_bits(view, result)
    return result
