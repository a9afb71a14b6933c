"""What operators mean for masked tensors: on the data, and on the mask where elements move."""

from __future__ import annotations

from typing import Any

from ...core.dtypes import int64
from ...core.late import operators as ops
from ...core.records import record_of
from ...ops import pointwise
from ...tensor import Tensor
from ...tensor.special import declaring
from .. import _ops as masked
from .core import MaskedTensor, _masks_match

_ONE = pointwise.UNARY | {"pow_Tensor_Scalar", "clamp", "clamp_min", "clamp_max", "square", "positive"}


_declare = declaring(MaskedTensor.operators)


def _data(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)([_data(one) for one in value])
    return value._values if isinstance(value, MaskedTensor) else value


def _mask(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)([_mask(one) for one in value])
    return value._masked_mask if isinstance(value, MaskedTensor) else value


# --------------------------------------------------------------------------------------------------- element by element


@_declare(*(_ONE - {"positive", "square"}))
def unary(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    for a in (*args, *kwargs.values()):
        if isinstance(a, Tensor):
            raise TypeError("MaskedTensor unary ops do not support additional Tensor arguments")
    result = function(input._values, *args, **kwargs)
    if isinstance(result, tuple):
        return type(result)(*[input.wrap_like(one) for one in result])
    return input.wrap_like(result)


@_declare(*{f"{name}_" for name in _ONE}, "zero_", "fill_Scalar_")
def unary_in_place(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    function(input._values, *args, **kwargs)
    return input


@_declare(*(pointwise.SEVERAL - _ONE - {"where_self"}))
def binary(function: Any, *args: Any, **kwargs: Any) -> Any:
    first, values = _matching(args)
    result = function(*values, **kwargs)
    return MaskedTensor.of(result, ops.expand(first._masked_mask, result.shape))


@_declare(*(pointwise.SEVERAL_IN_PLACE - {f"{name}_" for name in _ONE}))
def binary_in_place(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(input, MaskedTensor):
        raise TypeError("a plain tensor takes no masked one in place: its elements cannot be masked")
    _, values = _matching((input, *args))
    function(*values, **kwargs)
    return input


def _matching(args: tuple[Any, ...]) -> tuple[MaskedTensor, list[Any]]:
    """The first masked tensor among arguments, and the data of all; their masks have to be the same."""
    found = [a for a in args if isinstance(a, MaskedTensor)]
    for other in found[1:]:
        if other.shape != found[0].shape or not _masks_match(found[0], other):
            raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
    return found[0], [_data(a) for a in args]


@_declare("where_self")
def where(function: Any, condition: Any, input: Any, other: Any) -> Any:
    def mask(value: Any) -> Tensor:
        if isinstance(value, MaskedTensor):
            return value._masked_mask
        return ops.ones(value.shape, dtype=condition.dtype, device=value.device)

    condition = _data(condition)
    return MaskedTensor.of(
        function(condition, _data(input), _data(other)), ops.where(condition, mask(input), mask(other))
    )


# ------------------------------------------------------------------------------------------------------ moving elements


@_declare(
    "select", "transpose", "permute", "split_Tensor", "split_with_sizes", "t", "slice", "index", "expand", "view",
    "_unsafe_view", "_reshape_alias", "cat", "unsqueeze", "squeeze_dim", "squeeze_dims", "unfold", "im2col", "col2im",
    "stack", "alias", "flip", "roll", "repeat", "diagonal", "unbind", "narrow", "unflatten", "movedim", "contiguous",
    "clone", "chunk", "index_select",
)  # fmt: skip
def moving(function: Any, *args: Any, **kwargs: Any) -> Any:
    if function.__name__ == "squeeze" and record_of(function) is None:
        return NotImplemented
    data = function(*_data(args), **kwargs)
    mask = function(*_mask(args), **kwargs)
    if isinstance(data, (tuple, list)):
        return tuple(MaskedTensor.of(d, m) for d, m in zip(data, mask))
    first = next((a for a in args if isinstance(a, MaskedTensor)), None)
    if first is not None and data is first._values:
        return first
    return MaskedTensor.of(data, mask)


@_declare("to", "_to_copy", "cpu", "cuda", "type", "double", "float", "half", "bool", "int", "long", "short", "char")
def to(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(input, MaskedTensor):
        return NotImplemented
    data = function(input._values, *_data(args), **kwargs)
    if data is input._values or isinstance(data, str):
        return input if data is input._values else data
    mask = input._masked_mask
    return MaskedTensor.of(data, mask if mask.device == data.device else mask.to(data.device))  # type: ignore[attr-defined]


@_declare(*pointwise.LIKE)
def like(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    return input.wrap_like(function(input._values, *args, **kwargs))


@_declare("copy_")
def copy(function: Any, input: Any, src: Any, non_blocking: bool = False) -> Any:
    if record_of(function) is None:
        return NotImplemented
    if not isinstance(input, MaskedTensor) or not isinstance(src, MaskedTensor) or not _masks_match(input, src):
        raise ValueError("args[0] mask and args[1] mask must match but do not")
    function(input._values, src._values, non_blocking)
    return input


# ----------------------------------------------------------------------------------------------------------- reductions


def _reduced(input: MaskedTensor, result: Tensor, dim: Any, keepdim: bool) -> MaskedTensor:
    """A result that counts where any of the elements that went into it did."""
    if dim is None or dim == ():
        mask = ops.any(input._masked_mask)
        return MaskedTensor.of(result, ops.expand(mask, result.shape))
    mask = input._masked_mask
    for d in reversed(masked._canonical_dim(dim, input.dim())):
        mask = ops.any(mask, d, keepdim)
    return MaskedTensor.of(result, mask)


@_declare("sum", "mean", "prod")
def over_all(function: Any, input: Any, *args: Any, dtype: Any = None) -> Any:
    if record_of(function) is None or args:
        return NotImplemented
    return _reduced(input, getattr(masked, function.__name__)(input, dtype=dtype), None, False)


@_declare("sum_dim_IntList", "mean_dim", "prod_dim_int", "amax", "amin", "argmax", "argmin")
def over_dims(function: Any, input: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    name = function.__name__.partition("_")[0]
    if name.startswith("arg"):
        dtype = int64
    result = getattr(masked, name)(input, dim, keepdim=keepdim, dtype=dtype)
    return _reduced(input, result, dim, keepdim)


@_declare("var_correction", "std_correction")
def variance(function: Any, input: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    run = masked.var if function.__name__ == "var_correction" else masked.std
    return _reduced(input, run(input, dim, correction=correction, keepdim=keepdim), dim, keepdim)


@_declare("linalg_vector_norm")
def norm(
    function: Any, input: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    return _reduced(input, masked.norm(input, ord, dim, keepdim=keepdim, dtype=dtype), dim, keepdim)


@_declare("all", "any")
def truth(function: Any, input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    neutral = function.__name__ == "all"
    return _reduced(input, function(input.to_tensor(neutral), dim, keepdim), dim, keepdim)


@_declare("_softmax", "_log_softmax")
def softmax(function: Any, input: Any, dim: int) -> Any:
    run = masked.softmax if function.__name__ == "_softmax" else masked.log_softmax
    return input.wrap_like(run(input, dim))
