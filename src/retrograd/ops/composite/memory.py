"""Copies, in-place copies and filling, storages, and questions about tensors that have a plain answer."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import kernels
from ..._generated import functions as generated
from ...autograd.accumulate_grad import outdate_accumulator
from ...autograd.forward_grad import has_fw_grad
from ...autograd.forward_operators import forbid_duals
from ...autograd.inplace import begin_inplace, bump_version, has_internal_overlap
from ...core import dtypes, shared_memory
from ...core.constants import channels_last, channels_last_3d, contiguous_format
from ...core.devices import as_device, is_pinned_array, pinned
from ...core.late import extension
from ...core.layout import strided
from ...core.state import local, process
from ...storage import TypedStorage, UntypedStorage, storage_class, typed_storage, untyped_storage
from ...tensor import Tensor, new, wrap
from ...tensor.lazy_conjugation import keep_bits
from ...tensor.memory_moves import Beyond, move
from ...tensor.tensor import type_name
from ..overwrite import overwrite
from ..registry import composite
from ..support import int_tuple
from ..uninitialized import fill as fill_memory
from ..uninitialized import memory as new_memory
from . import shape
from .shape import as_strided, become


@composite(space="Tensor")
def storage(input: Tensor) -> TypedStorage:
    """The memory that the tensor lies in, in elements."""
    return typed_storage(input)


composite(space="Tensor", bare=True)(untyped_storage)


@composite(space="Tensor")
def _typed_storage(input: Tensor) -> TypedStorage:
    """`storage`, under the name by which torch's own code calls it."""
    return typed_storage(input)


@composite(space="Tensor")
def storage_type(input: Tensor) -> Any:
    """The older name of a storage of its dtype, such as ``torch.FloatStorage``."""
    return storage_class(input)


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
    if input._special_ is not None:
        input._hold_(data)  # type: ignore[attr-defined]  # a class of a user, with memory of its own
    else:
        input._memory_ = data
    outdate_accumulator(input)
    bump_version(input)
    return input


def _memory(input: Tensor, source: Any, offset: int, size: Any, stride: Any) -> np.ndarray:
    dtype = input._memory_.dtype
    if source is None:
        return np.empty((0,), dtype)
    if isinstance(source, Tensor):
        if source._memory_.dtype != dtype:
            raise RuntimeError(
                f"Could not set tensor of type {dtypes.C_NAMES[source.dtype.name]} to a tensor of type "
                f"{dtypes.C_NAMES[input.dtype.name]}"
            )
        if size is None:
            return source._memory_
        root = source._memory_
    elif isinstance(source, TypedStorage):
        if source.dtype.np != dtype:
            raise RuntimeError(
                f"Expected a Storage of type {dtypes.C_NAMES[input.dtype.name]} or an UntypedStorage, but got type "
                f"{dtypes.SCALAR_NAMES[source.dtype.name]} for argument 1 'storage'"
            )
        root = source._elements
    elif isinstance(source, UntypedStorage):
        root = source._root.ravel("K").view(dtype)
    else:
        raise TypeError(f"set_(): argument 'source' must be Tensor or Storage, not {type(source).__name__}")
    shape = (root.size - offset,) if size is None else (size,) if isinstance(size, int) else tuple(size)
    steps = kernels.contiguous_strides(shape) if stride is None else stride
    steps = (steps,) if isinstance(steps, int) else tuple(steps)
    memory = untyped_storage(source) if isinstance(source, Tensor) else source.untyped()
    needed = kernels.needed_elements(shape, steps, offset, dtype.itemsize)
    own = source.untyped()._root is kernels.storage_root(input._memory_) if not isinstance(source, Tensor) else False
    if own and shape == input._memory_.shape and needed > kernels.storage_numel(root):
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {offset}, and itemsize "
            f"{dtype.itemsize} requiring a storage size of {needed * dtype.itemsize} are out of bounds for storage of "
            f"size {memory.nbytes()}"
        )
    if needed > kernels.storage_numel(root) and memory.resizable():
        memory.resize_(needed * dtype.itemsize)  # a storage grows with who is set to it
        root = memory._root.view(dtype)
    return kernels.as_strided(root, shape, steps, offset)


@composite(method=False)
def _assert_tensor_metadata(
    a: Tensor, size: Any = None, stride: Any = None, dtype: Any = None, *, device: Any = None, layout: Any = None
) -> None:
    """Refuse a tensor that is not what is said of it.

    >>> import retrograd as torch
    >>> torch._assert_tensor_metadata(torch.ones(2), [3])
    Traceback (most recent call last):
    RuntimeError: Tensor sizes mismatch! Expected: [3], Got: [2]
    """
    facts = (
        ("sizes", None if size is None else list(size), list(a.shape)),
        ("strides", None if stride is None else list(stride), list(a.stride()) if stride is not None else None),
        ("dtype", dtype, a.dtype),
        ("device", None if device is None else as_device(device), a.device),
        ("layout", layout, a.layout),
    )
    for what, expected, found in facts:
        if expected is not None and expected != found:
            raise RuntimeError(f"Tensor {what} mismatch! Expected: {expected}, Got: {found}")


@composite(method=False)
def _debug_has_internal_overlap(input: Tensor) -> int:
    """Do several elements lie in one place? 0: no, 1: yes, by an expanded dimension, 2: that is hard to say."""
    data = input._memory_
    if kernels.is_dense(data):
        return 0
    return 1 if has_internal_overlap(data) else 2


@composite(space="Tensor")
def is_shared(input: Tensor) -> bool:
    """Does the tensor lie in memory that it shares with other processes: `share_memory_`, a DataLoader's worker?"""
    return shared_memory.is_shared(kernels.storage_root(input._memory_))


@composite(space="Tensor")
def share_memory_(input: Tensor) -> Tensor:
    """Move the tensor to memory that processes forked from now on see as this one does, and write to in common.

    All that show its memory move with it, as a storage's own `share_memory_` has it.

    >>> import retrograd as torch
    >>> torch.ones(2).share_memory_().is_shared()
    True
    """
    untyped_storage(input).share_memory_()
    return input


@composite(space="Tensor")
def is_pinned(input: Tensor, device: Any = None) -> bool:
    """Does an accelerator read the tensor's memory by itself? `device` may say which kind: there is one."""
    if device is not None:
        as_device(device)
    return input._memory_.__class__ is np.ndarray and is_pinned_array(input._memory_)


@composite(space="Tensor")
def pin_memory(input: Tensor, device: Any = None) -> Tensor:
    """The tensor in memory that an accelerator reads by itself; refused where there is none."""
    if device is not None:
        as_device(device)
    if input.is_pinned():  # type: ignore[attr-defined]
        return input
    if not input.is_cpu:
        raise RuntimeError(f"cannot pin '{input.type()}' only dense CPU tensors can be pinned")  # type: ignore[attr-defined]
    return wrap(pinned(input._numbers_))


@composite(space="Tensor")
def record_stream(input: Tensor, s: Any) -> None:
    """Say that a stream uses the tensor's memory: it is not given to others before the stream has done what it was told
    by the time that the tensor goes. Note [Memory and streams] in arrays/memory.py."""
    place = getattr(input._memory_, "place", None)
    if place is None:
        raise NotImplementedError(
            f"Could not run 'aten::record_stream' on a tensor of the {input.device}: it has no streams"
        )
    place.use_on(input._memory_, s._class)


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
    if process.dual_levels and has_fw_grad(input):
        raise RuntimeError("cannot resize variables that has a forward grad: use x.view() or x[...], which keep it")
    shape = int_tuple("resize_", "size", 1, sizes if size is None else (size,))
    if any(n < 0 for n in shape):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    data = input._memory_
    if memory_format is not None:
        _check_format(shape, memory_format)
    if data.shape == shape and (memory_format is None or kernels.is_contiguous(data, memory_format)):
        return input
    begin_inplace(state, input, False, may_overlap=True)
    input._memory_ = _resized(input, shape, memory_format)
    outdate_accumulator(input)
    if input._is_view():
        input._grad_meta_ = None  # it shows something else of its base now, if anything
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


def _resized(input: Tensor, shape: tuple[int, ...], memory_format: Any) -> np.ndarray:
    data = input._memory_
    root, offset = kernels.storage_root(data), kernels.storage_offset(data)
    needed = (offset + math.prod(shape)) * data.itemsize
    if isinstance(data, Beyond) and needed <= root.nbytes:
        data = root.view(data.dtype)
    if needed > root.nbytes:
        grown = np.empty(needed, np.uint8)
        grown[: root.nbytes] = root.ravel("K").view(np.uint8)
        if new_memory.fills:
            fill_memory(grown[root.nbytes :].view(data.dtype))
        if root is not data or input._vc_ is not None:  # others may lie in this memory
            move(root, grown, UntypedStorage, input)
        data = grown.view(data.dtype)
    return kernels.as_strided(data, shape, _strides(shape, memory_format), offset)


@composite()
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """`resize_` to the size of another tensor, and with ``torch.preserve_format`` to its order in memory."""
    if "preserve" in str(memory_format):
        formats = [f for f in (channels_last, channels_last_3d) if the_template.is_contiguous(memory_format=f)]
        memory_format = formats[0] if formats and not the_template.is_contiguous() else contiguous_format
    return resize_(input, tuple(the_template._memory_.shape), memory_format=memory_format)


@composite()
def as_strided_(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """In-place `as_strided`."""
    return become("as_strided_", input, as_strided, size, stride, storage_offset)


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
    if input.layout is not strided:
        raise AttributeError(
            f"Can't get dim order on sparse type: {type_name(input)} Use Tensor.to_dense() to convert to a dense "
            "tensor first."
        )
    formats = ambiguity_check if isinstance(ambiguity_check, (list, tuple)) else None
    if formats is None and not isinstance(ambiguity_check, bool):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    shape, strides = input._memory_.shape, kernels.strides(input._memory_)
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
    if input._special_ is not None:
        extension("subclasses").check_no_other_class(input, cls)
    if local.state.observers:
        view = extension("subclasses").unobserved(generated.alias, input)
    else:
        view = generated.alias(input)
    if cls._special_ is not None or input._special_ is not None:  # type: ignore[attr-defined]
        return extension("subclasses").as_special_subclass(view, cls)
    result = new(cls)
    result._memory_, result._vc_ = view._memory_, view._vc_
    result._grad_meta_, result._edge_ = view._grad_meta_, view._edge_
    keep_bits(view, result)
    return result


def _no_gradient(name: str, *tensors: Tensor) -> None:
    if any(tensor.requires_grad for tensor in tensors):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")


@composite(space="Tensor", bare=True)
def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace every element by what the function gives for it.

    >>> import retrograd as torch
    >>> torch.tensor([1., 2.]).apply_(lambda x: x + 1)
    tensor([2., 3.])
    """
    _no_gradient("apply_", input)
    values = [callable(value) for value in input._numbers_.reshape(-1).tolist()]
    for value in values:
        if isinstance(value, (str, bytes)):
            raise TypeError(f"apply_: the function has to give a number, but gave {type(value).__name__}")
    return overwrite(input, np.array(values, input._memory_.dtype).reshape(input._memory_.shape))


@composite(space="Tensor", bare=True)
def map_(input: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace every element by what the function gives for it and that of `tensor`."""
    return _mapped("map_", callable, input, tensor)


@composite(space="Tensor", bare=True)
def map2_(input: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace every element by what the function gives for it and those of `x` and `y`."""
    return _mapped("map2_", callable, input, x, y)


def _mapped(name: str, function: Callable[..., Any], input: Tensor, *others: Tensor) -> Tensor:
    _no_gradient(name, input, *others)
    arrays = [np.broadcast_to(other._numbers_, input._memory_.shape) for other in others]
    rows = zip(*(array.reshape(-1).tolist() for array in (input._numbers_, *arrays)), strict=True)
    values = [function(*row) for row in rows]
    return overwrite(input, np.array(values, input._memory_.dtype).reshape(input._memory_.shape))


def _slice_inverse_array(array: Any, src: Tensor, *_: Any) -> Any:
    data = src._numbers_
    return kernels.as_strided(array, data.shape, kernels.strides(data), kernels.storage_offset(data))


@composite(method=False)
def slice_inverse(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """The tensor that `input`, in memory like that of ``src[start:end:step]``, is this slice of."""
    data = src._numbers_
    result = as_strided(input, data.shape, kernels.strides(data), kernels.storage_offset(data))
    meta: Any = result._grad_meta_
    if meta is not None:
        meta.step = (_slice_inverse_array, slice_inverse, (src, dim, start, end, step), None)
    return result


@composite(method=False)
def is_tensor(obj: Any) -> bool:
    """Is it a Tensor?"""
    return isinstance(obj, Tensor)


@composite(method=False)
def is_inference(input: Tensor) -> bool:
    """Was it made in inference mode?"""
    return input.is_inference()


@composite(method=False)
def numel(input: Tensor) -> int:
    """How many elements?"""
    return input.numel()


@composite(space="Tensor")
def fill_diagonal_(input: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Set the main diagonal of a matrix to `fill_value`; with `wrap`, again below a square."""
    sizes = input._memory_.shape
    if len(sizes) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(sizes) > 2 and len(set(sizes)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    item = input._memory_.itemsize
    steps = [s // item for s in input._memory_.strides]
    count, step = min(sizes), sum(steps)
    fill_(shape.as_strided(input, (count,), (step,), input.storage_offset()), fill_value)
    if wrap and len(sizes) == 2 and sizes[0] > sizes[1] + 1:
        columns = sizes[1]
        start = (columns + 1) * steps[0]
        rest = sizes[0] - columns - 1
        full, left = divmod(rest, columns + 1)
        for block in range(full + bool(left)):
            length = columns if block < full else min(left, columns)
            offset = input.storage_offset() + start + block * (columns + 1) * steps[0]
            fill_(shape.as_strided(input, (length,), (step,), offset), fill_value)
    return input


@composite()
def fill_(input: Tensor, value: Any) -> Tensor:
    """Set every element to `value`, a number or a 0-d tensor."""
    if isinstance(value, Tensor):
        return generated.fill_Tensor_(input, value)
    return generated.fill_Scalar_(input, value)


@composite(method=False)
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor like `input` with every element `value`."""
    if isinstance(value, Tensor):
        return generated.fill_Tensor(input, value)
    return generated.fill_Scalar(input, value)


@composite(space="Tensor")
def copy_(input: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Copy the elements of `src`, expanded and converted, into this tensor; gradients then go to `src`."""
    if isinstance(src, (bool, int, float, complex)):
        src = wrap(np.asarray(src))
    if isinstance(src, Tensor) and src.requires_grad and input._memory_.dtype.kind not in "fcVW":
        src = src.detach()  # what an integer tensor holds has no gradient
    if isinstance(src, Tensor) and src._memory_.__class__ is not input._memory_.__class__ and src._special_ is None:
        src = src.to(input.device, non_blocking=non_blocking)  # type: ignore[attr-defined]
    return generated.copy_(input, src, non_blocking)


@composite()
def is_nonzero(input: Tensor) -> builtins.bool:
    """Whether the one element is not zero."""
    if input._memory_.size != 1:
        which = "no values" if not input._memory_.size else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {which} is ambiguous")
    return builtins.bool(input._numbers_.reshape(-1)[0])


@composite(method=False, bare=True)
def is_storage(obj: Any) -> builtins.bool:
    """Is it a storage?"""
    return isinstance(obj, (TypedStorage, UntypedStorage))


@composite(method=False)
def get_device(input: Tensor) -> int:
    """The index of the tensor's device; -1 for the CPU."""
    return input.get_device()


@composite(method=False)
def detach(input: Tensor) -> Tensor:
    """`input` without its history, on the same memory."""
    return input.detach()


@composite(method=False)
def detach_(input: Tensor) -> Tensor:
    """In-place `detach`."""
    return input.detach_()


@composite(space="Tensor")
def to_padded_tensor(input: Tensor, padding: float, output_size: Any = None) -> Tensor:
    """A nested tensor as a plain one, with `padding` behind the components that are smaller than others.

    >>> import retrograd as torch
    >>> torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]).to_padded_tensor(0.)
    tensor([[1., 0.],
            [1., 1.]])
    """
    raise NotImplementedError(
        "Could not run 'aten::to_padded_tensor' with arguments from the 'CPU' backend: it is for nested tensors, and "
        "this one is plain"
    )
