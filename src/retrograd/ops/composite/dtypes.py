"""Conversions to other dtypes, and what dtypes become when they meet."""

from __future__ import annotations

import builtins
import warnings
from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...autograd.function import Function
from ...core import dtypes
from ...core.devices import CPU, META, as_device
from ...core.state import local, process
from ...core.where import users_level
from ...kernels import promotion
from ...kernels.storage import has_channels_last
from ...tensor import Tensor, type_name, wrap
from ...tensor.meta import MetaArray, meta_tensor, order_of
from ...tensor.special import like_array
from ...tensor.tensor import TYPE_NAMES
from .. import stored_dtypes as stored_dtypes  # it waits for the first tensor of such a dtype
from ..registry import composite


def _cast(input: Tensor, np_dtype: np.dtype, copy: bool = False) -> Tensor:
    """`input` with elements of `np_dtype`: itself, unless there is something to convert or a copy is asked for."""
    have = input._memory_.dtype
    if have == np_dtype and not copy:
        return input
    if np_dtype.kind not in "fcVW":
        input = input.detach()  # integers have no gradient
    if have.kind in "cW" and np_dtype.kind not in "cWb":
        warnings.warn(
            "Casting complex values to real discards the imaginary part; use x.real to say that this is meant",
            UserWarning,
            stacklevel=users_level(),
        )
    return generated._to_copy(input, dtypes.from_numpy_dtype(np_dtype))


class ToCopy(Function):
    """A copy on another device; the gradient, and a tangent, go the other way about, and the same way."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, device: Any, non_blocking: bool) -> Tensor:  # type: ignore[override]
        ctx.back, ctx.there = input.device, device
        return copied_to(input, device, non_blocking)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        return grad.to(ctx.back), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *unused: Any) -> Any:  # type: ignore[override]
        return tangent.to(ctx.there)

    @staticmethod
    def vmap(info: Any, in_dims: Any, input: Any, device: Any, non_blocking: bool) -> Any:  # type: ignore[override]
        return ToCopy.apply(input, device, non_blocking), in_dims[0]


def copied_to(input: Tensor, device: Any, non_blocking: bool = False) -> Tensor:
    """A copy on another device, without history."""
    array = input._numbers_
    place = device.place
    if place is not None:
        return wrap(place.take(array, non_blocking))
    if array.__class__ is np.ndarray:
        return wrap(array.copy())
    return wrap(array.place.to_host(array, non_blocking))


def _same_place(one: Any, other: Any) -> bool:
    """Are these one device, where one of them may leave out which it is?"""
    if one.type != other.type:
        return False
    return one.type in ("cpu", "meta") or one.place is other.place


class _ToMeta(Function):
    """``x.to("meta")``: there is no way back for a gradient."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, dtype: Any) -> Tensor:  # type: ignore[override]
        array = input._memory_
        return meta_tensor(MetaArray.fresh(array.shape, dtype, order_of(array.shape, array.strides)))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        grad._no_data()


def to_meta(input: Tensor, dtype: Any) -> Tensor:
    """A tensor with values without them: its shape, strides and dtype, or another dtype."""
    np_dtype = input._memory_.dtype if dtype is None else dtypes.as_numpy_dtype(dtype)
    return _ToMeta.apply(input, np_dtype)


def _is_dtype(value: Any) -> bool:
    return isinstance(value, (dtypes.dtype, np.dtype)) or value in (bool, int, float, complex)


@composite(space="Tensor")
def to(
    input: Tensor, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False, copy: bool = False,
    memory_format: Any = None, tensor: Any = None,
) -> Tensor:  # fmt: skip
    """The tensor in another dtype or on another device, or as another tensor is; itself if it is so already.

    >>> import retrograd as torch
    >>> torch.ones(2).to(torch.float64).dtype
    torch.float64
    """
    if args and isinstance(args[0], (bool, float, complex)):
        tensor, *args = args  # type: ignore[assignment]
    if tensor is not None:  # a number is a tensor of the dtype that Python's numbers of its kind have
        args = (tensor if isinstance(tensor, Tensor) else builtins.type(tensor), *args)
    flags = []
    for value in args:
        if isinstance(value, Tensor):
            dtype, device = value._memory_.dtype, value.device
        elif isinstance(value, bool):
            flags.append(value)
        elif value is None:
            continue
        elif _is_dtype(value):
            dtype = value
        else:
            device = value
    if len(flags) > 1:
        copy = flags[1]
    if device is not None and as_device(device) == META and not input.is_meta:
        return to_meta(input, dtype)
    if device is not None:
        where = as_device(device)
        if not input.is_meta and not _same_place(where, input.device):
            # The smaller dtype travels, and the copy is a copy already.
            want = input._memory_.dtype if dtype is None else dtypes.as_numpy_dtype(dtype)
            if want.itemsize < input._memory_.itemsize:  # type: ignore[union-attr]
                input = _cast(input, want)  # type: ignore[arg-type]
            if input._special_ is not None:
                result = input._to_device(where, non_blocking)  # type: ignore[attr-defined]
            elif input.requires_grad or process.dual_levels or local.state.interceptor is not None:
                result = ToCopy.apply(input, where, non_blocking)
            else:
                result = copied_to(input, where, non_blocking)
            result = _cast(result, want)  # type: ignore[arg-type]
            if memory_format is None or "preserve" in str(memory_format):
                return result
            return _in_format(result, memory_format)
    result = _cast(input, input._memory_.dtype if dtype is None else dtypes.as_numpy_dtype(dtype), copy)  # type: ignore[arg-type]
    if memory_format is None or "preserve" in str(memory_format):
        return result
    return _in_format(result, memory_format)


def _in_format(tensor: Any, memory_format: Any) -> Tensor:
    """`tensor`, or a copy whose strides say that it lies so, also where there is one channel, or one place."""
    result = tensor.contiguous(memory_format=memory_format)
    if result is tensor and "channels_last" in str(memory_format) and tensor._special_ is None:
        return tensor if has_channels_last(tensor._memory_) else tensor.clone(memory_format=memory_format)
    return result


@composite(space="Tensor")
def bfloat16(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as torch.bfloat16."""
    return to(input, dtypes.bfloat16, memory_format=memory_format)


@composite(name="bool", space="Tensor", bare=True)
def bool_(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as torch.bool."""
    return to(input, dtypes.bool_, memory_format=memory_format)


@composite(space="Tensor", bare=True)
def byte(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as torch.uint8."""
    return to(input, dtypes.uint8, memory_format=memory_format)


@composite(space="Tensor", bare=True)
def char(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as torch.int8."""
    return to(input, dtypes.int8, memory_format=memory_format)


@composite(space="Tensor", bare=True)
def short(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as torch.int16."""
    return to(input, dtypes.int16, memory_format=memory_format)


@composite(name="int", space="Tensor", bare=True)
def int_(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as torch.int32."""
    return to(input, dtypes.int32, memory_format=memory_format)


@composite(space="Tensor", bare=True)
def long(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as torch.int64."""
    return to(input, dtypes.int64, memory_format=memory_format)


@composite(space="Tensor", bare=True)
def half(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as torch.float16."""
    return to(input, dtypes.float16, memory_format=memory_format)


@composite(name="float", space="Tensor", bare=True)
def float_(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as torch.float32."""
    return to(input, dtypes.float32, memory_format=memory_format)


@composite(space="Tensor", bare=True)
def double(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as torch.float64."""
    return to(input, dtypes.float64, memory_format=memory_format)


@composite(space="Tensor", bare=True)
def chalf(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as torch.complex32."""
    return to(input, dtypes.chalf, memory_format=memory_format)


@composite(space="Tensor", bare=True)
def cfloat(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as torch.complex64."""
    return to(input, dtypes.complex64, memory_format=memory_format)


@composite(space="Tensor", bare=True)
def cdouble(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor as torch.complex128."""
    return to(input, dtypes.complex128, memory_format=memory_format)


@composite(space="Tensor")
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of another, and on its device."""
    if other.device != input.device:
        return to(input, other.device, other.dtype)
    return _cast(input, other._memory_.dtype)


@composite(space="Tensor")
def type(input: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type, such as ``'torch.FloatTensor'``; with a dtype or such a name, the conversion."""
    if dtype is None:
        return type_name(input)
    if isinstance(dtype, str):
        for name, word in TYPE_NAMES.items():
            if dtype == f"torch.{word}":
                return _cast(input, dtypes.by_name(name).np)
        raise ValueError(f"invalid type: '{dtype}'")
    if dtype is Tensor:
        dtype = dtypes.get_default_dtype()
    dtype = getattr(dtype, "dtype", dtype)  # torch.FloatTensor
    return _cast(input, dtypes.as_numpy_dtype(dtype))  # type: ignore[arg-type]


@composite(space="Tensor")
def cpu(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor in the host's memory."""
    if input._memory_.__class__ is np.ndarray and memory_format is None:
        return input
    return to(input, CPU, memory_format=memory_format) if not input.is_meta else to(input, memory_format=memory_format)


@composite(space="Tensor")
def cuda(input: Tensor, device: Any = None, non_blocking: bool = False, *, memory_format: Any = None) -> Tensor:
    """The tensor in the memory of a CUDA device, if there is one."""
    return input.to("cuda" if device is None else device, non_blocking=non_blocking, memory_format=memory_format)


@composite(method=False)
def is_floating_point(input: Tensor) -> bool:
    """Is the dtype a real floating one?"""
    return input.is_floating_point()


@composite(method=False)
def is_complex(input: Tensor) -> bool:
    """Is the dtype complex?"""
    return input.is_complex()


@composite(method=False)
def result_type(tensor: Any = None, other: Any = None, **numbers: Any) -> dtypes.dtype:
    """The dtype of an operation on two tensors or numbers.

    >>> import retrograd as torch
    >>> torch.result_type(torch.tensor([1, 2]), 1.0)
    torch.float32
    """
    given = [value for value in (numbers.pop("scalar", None), numbers.pop("scalar1", None), tensor, other) if
             value is not None]
    given += [numbers.pop("scalar2")] if "scalar2" in numbers else []
    if numbers or len(given) != 2:
        raise TypeError(f"result_type() takes two tensors or numbers, but got {len(given) + len(numbers)}")
    operands = [like_array(value) if isinstance(value, Tensor) else value for value in given]
    return dtypes.from_numpy_dtype(promotion.result_dtype(*operands))


@composite(method=False)
def promote_types(type1: dtypes.dtype, type2: dtypes.dtype) -> dtypes.dtype:
    """The smallest dtype that is no smaller, nor of a lower kind, than either.

    >>> import retrograd as torch
    >>> torch.promote_types(torch.int64, torch.float16)
    torch.float16
    """
    return dtypes.from_numpy_dtype(promotion.promote_dtypes(type1.np, type2.np))


@composite(method=False)
def can_cast(from_: dtypes.dtype, to: dtypes.dtype) -> builtins.bool:
    """Whether a result of the first dtype may be written to a tensor of the second."""
    return promotion.can_cast(from_.np, to.np)


@composite(method=False)
def is_signed(input: Tensor) -> builtins.bool:
    """Whether the dtype has negative numbers."""
    return input.dtype.is_signed
