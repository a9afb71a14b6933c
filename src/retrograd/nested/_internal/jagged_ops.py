"""Operators on jagged tensors: element by element, copies, new tensors, and those of `nn` that work row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.constants import contiguous_format
from ...core.late import operators as ops
from ...core.records import record_of
from ...core.sym_int import SymInt
from ...kernels.dims import normalize_dim
from ...ops import pointwise
from ...tensor import Tensor, wrap
from ...tensor.special import declaring
from .base import NestedBase
from .nested_tensor import NestedTensor, Ragged, from_padded, same_raggedness, to_padded

#: Declares what operators mean for jagged tensors.
jagged = declaring(NestedTensor.operators)


def operator_name(function: Any) -> str:
    """What errors call an operator: ``mul.Tensor``."""
    record = record_of(function)
    if record is None:
        return function.__name__
    return record.base if record.overloads[0] == "default" else f"{record.base}.{record.overloads[0]}"


def first_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> NestedTensor:
    """The first jagged tensor among arguments."""
    return next(a for a in (*args, *kwargs.values()) if isinstance(a, NestedTensor))


def inner_dim(nested: NestedTensor, dim: int, name: str, ragged: bool = False) -> int:
    """The dimension of the values that a dimension of the nested tensor is; not the first, nor (else) the ragged."""
    dim = normalize_dim(dim, nested.dim())
    if dim == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if dim == nested.ragged.idx and not ragged:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    return dim - 1


# --------------------------------------------------------------------------------------------------- element by element


@jagged(*pointwise.UNARY, *pointwise.DROPOUTS)
def unary(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(input, NestedTensor):
        return NotImplemented
    result = function(input._values, *args, **kwargs)
    if isinstance(result, tuple):
        return type(result)(*[input.wrap_like(r) for r in result]) if hasattr(result, "_fields") else result
    return input.wrap_like(result)


@jagged(*pointwise.UNARY_IN_PLACE, *pointwise.FILLED_IN_PLACE)
def unary_in_place(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    function(input._values, *args, **kwargs)
    return input


@jagged(*pointwise.LIKE)
def like(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    kwargs.pop("layout", None)  # it stays jagged
    return input.wrap_like(function(input._values, *args, **kwargs))


@jagged(*pointwise.SEVERAL)
def several(function: Any, *args: Any, **kwargs: Any) -> Any:
    first = first_of(args, kwargs)
    values = [_spread(function, first, a) for a in args]
    result = function(*values, **{name: _spread(function, first, a) for name, a in kwargs.items()})
    if result._memory_.ndim != first._values._memory_.ndim:
        raise _mismatch(function, args)
    return first.wrap_like(result)


@jagged(*pointwise.SEVERAL_IN_PLACE)
def several_in_place(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(input, NestedTensor):
        raise RuntimeError(
            f"{operator_name(function)}(): output with shape {list(input.shape)} doesn't match the broadcast shape "
            f"{list(first_of(args, kwargs).shape)}: a plain tensor takes no nested one in place"
        )
    function(input._values, *[_spread(function, input, a) for a in args], **kwargs)
    return input


@jagged("mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "binary_cross_entropy_with_logits",
        "binary_cross_entropy")  # fmt: skip
def loss(function: Any, *args: Any, **kwargs: Any) -> Any:
    if record_of(function) is None:
        return NotImplemented  # composed of the others
    first = first_of(args, kwargs)
    if first.ragged.lengths is not None:
        first = first.packed()
        args = tuple(a.packed() if isinstance(a, NestedTensor) else a for a in args)
        args = tuple(first.wrap_like(a._values) if isinstance(a, NestedTensor) else a for a in args)
    result = function(*[_spread(function, first, a) for a in args], **kwargs)
    return result if result._memory_.ndim == 0 else first.wrap_like(result)


def _mismatch(function: Any, args: Any) -> RuntimeError:
    shapes = [str(tuple(a.shape)) for a in args if isinstance(a, Tensor)]
    return RuntimeError(
        f"cannot call binary pointwise function {operator_name(function)} with inputs of shapes "
        f"{' and '.join(shapes)}"
    )


def _spread(function: Any, nested: NestedTensor, other: Any) -> Any:
    """What stands beside the values of `nested` for another argument."""
    if isinstance(other, SymInt):
        raise RuntimeError(f"{operator_name(function)}(): invalid argument {other}: a ragged size is no number")
    if not isinstance(other, Tensor) or other._memory_.ndim == 0:
        return other
    if isinstance(other, NestedTensor):
        if not same_raggedness(nested, other):
            raise _mismatch(function, (nested, other))
        return other._values
    if isinstance(other, NestedBase):
        raise RuntimeError(
            f"{operator_name(function)}(): cannot mix nested tensors of layouts {nested.layout} and {other.layout}"
        )
    spread = spread_over(nested, other)
    if spread is None:
        raise _mismatch(function, (nested, other))
    return spread


def spread_over(nested: NestedTensor, plain: Tensor) -> Tensor | None:
    """A plain tensor, broadcast over components, to stand beside the values of `nested`; None if it cannot be."""
    structure, n = nested.ragged, nested._values._memory_.ndim + 1
    shape = plain._memory_.shape
    if len(shape) > n:
        return None
    if len(shape) < n - structure.idx:
        return plain  # it is of the dimensions behind the ragged one alone
    plain = ops.reshape(plain, ((1,) * (n - len(shape)) + tuple(shape)))
    batch, rows = plain._memory_.shape[0], plain._memory_.shape[structure.idx]
    if batch not in (1, structure.batch):
        return None
    if rows == 1:
        plain = ops.squeeze(plain, structure.idx)
        if batch == 1:
            return ops.unsqueeze(ops.squeeze(plain, 0), structure.idx - 1)
        each = ops.index_select(plain, 0, _owners_of_all_rows(nested))
        return ops.movedim(each, 0, structure.idx - 1)
    if rows != structure.longest or structure.lengths is not None:
        return None
    plain = ops.expand(plain, (structure.batch, *plain._memory_.shape[1:]))
    return from_padded(ops.movedim(plain, structure.idx, 1), structure)._values


def _owners_of_all_rows(nested: NestedTensor) -> Tensor:
    """For each row of the values: the component that it belongs to, or lies behind."""
    structure = nested.ragged
    if structure.lengths is None:
        return structure.owners()
    rows = np.arange(nested._values._memory_.shape[structure.idx - 1])
    return wrap(np.clip(np.searchsorted(structure.places[0], rows, "right") - 1, 0, None))


# --------------------------------------------------------------------------------------------------------------- copies


@jagged("clone")
def clone(function: Any, input: Any, *, memory_format: Any = None) -> Any:
    if memory_format is contiguous_format and not input.is_contiguous():
        packed = input.packed()
        return packed.wrap_like(function(packed._values, memory_format=memory_format))
    if memory_format is not None and memory_format is not contiguous_format and "channels" in str(memory_format):
        raise RuntimeError(
            "Nested tensor clone supports Preserve and Contiguous memory formats, called clone with memory format: "
            f"{'ChannelsLast3d' if '3d' in str(memory_format) else 'ChannelsLast'}"
        )
    return input.wrap_like(function(input._values, memory_format=memory_format))


@jagged("contiguous")
def contiguous(function: Any, input: Any, memory_format: Any = None) -> Any:
    return input if input.is_contiguous() else ops.clone(input, memory_format=contiguous_format)


@jagged("_to_copy")
def to_copy(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    return input.wrap_like(function(input._values, *args, **kwargs))


@jagged("alias")
def alias(function: Any, input: Any) -> Any:
    return view(input, function(input._values), input.ragged, lambda other: function(other))


@jagged("to", "cpu", "cuda", "type", "type_as", "bfloat16", "bool", "byte", "char", "double", "float", "half", "int",
        "long", "short", "cdouble", "cfloat")  # fmt: skip
def to(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(input, NestedTensor):
        args = tuple(a._values if isinstance(a, NestedTensor) else a for a in args)
        return function(input, *args, **kwargs)
    args = tuple(a._values if isinstance(a, NestedTensor) else a for a in args)
    values = function(input._values, *args, **kwargs)
    return input if values is input._values else values if isinstance(values, str) else input.wrap_like(values)


@jagged("copy_", "copy")
def copy(function: Any, input: Any, src: Any, non_blocking: bool = False) -> Any:
    if not isinstance(input, NestedTensor) or not isinstance(src, NestedTensor):
        raise RuntimeError("copy_(): expected both to be nested tensors of the jagged layout, or both plain tensors")
    record = record_of(function)
    if record is None:
        return NotImplemented
    a, b = input.packed() if input.ragged.lengths is not None else input, src.packed()
    same = a.ragged.idx == b.ragged.idx and a.ragged.places[1].tolist() == b.ragged.places[1].tolist()
    if not same or a._values._memory_.shape != b._values._memory_.shape:
        raise RuntimeError(
            f"copy_(): expected compatible input and src shapes, but got: {tuple(input.shape)} and {tuple(src.shape)}"
        )
    if a is not input:
        for mine, other in zip(input.components(), src.components()):
            function(mine, other, non_blocking)
        return input
    result = function(input._values, b._values, non_blocking)
    return input if record.writes else input.wrap_like(result)


@jagged("equal")
def equal(function: Any, input: Any, other: Any) -> bool:
    if not isinstance(input, NestedTensor) or not isinstance(other, NestedTensor) or not same_raggedness(input, other):
        return False
    return function(input.packed()._values, other.packed()._values)


# --------------------------------------------------------------------------------------------------- layers, row by row


@jagged("embedding")
def embedding(function: Any, *args: Any, **kwargs: Any) -> Any:
    if record_of(function) is None:
        return NotImplemented  # nn.functional's, which calls that of the table
    weight, indices = args[:2]
    if not isinstance(indices, NestedTensor) or isinstance(weight, NestedBase):
        return NotImplemented
    return indices.wrap_like(function(weight, indices._values, *args[2:], **kwargs))


@jagged("linear")
def linear(function: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    if not isinstance(input, NestedTensor) or isinstance(weight, NestedBase):
        raise RuntimeError("linear(): the input may be a nested tensor, weight and bias are plain ones")
    if input.ragged.idx == input.dim() - 1:
        raise RuntimeError("linear(): not supported for NestedTensor whose last dimension is the ragged one")
    return input.wrap_like(function(input._values, weight, bias))


@jagged("layer_norm", "native_layer_norm")
def layer_norm(
    function: Any, input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:  # fmt: skip
    if not isinstance(input, NestedTensor):
        return NotImplemented
    shape = tuple(normalized_shape)
    if input.dim() <= 2:
        raise RuntimeError(
            "layer_norm(): not supported for NestedTensor objects with 2 or fewer dimensions when using ragged_idx="
            f"{input.ragged.idx}"
        )
    if len(shape) >= input.dim():
        raise RuntimeError("layer_norm(): not supported when normalizing over the batch dimension for NestedTensor")
    if len(shape) < input.dim() - input.ragged.idx:
        return input.wrap_like(ops.native_layer_norm(input._values, shape, weight, bias, eps))
    if input.ragged.lengths is not None:
        raise RuntimeError(
            "layer_norm(): not supported where lengths is not None if operating on the ragged dimension for "
            "NestedTensor"
        )
    if input.ragged.idx > 1:
        raise RuntimeError("layer_norm(): over a ragged dimension, that has to be the first behind the batch")
    return _layer_norm_of_components(input, weight, bias, eps)


def _layer_norm_of_components(input: NestedTensor, weight: Any, bias: Any, eps: float) -> NestedTensor:
    rest = list(range(2, input.dim()))
    per_row = 1
    for n in input._values._memory_.shape[1:]:
        per_row *= n

    def mean(nested: Any) -> Tensor:
        """Of each component, in shape (B, 1, ..., 1)."""
        padded = to_padded(nested, 0)
        counts = wrap((input.ragged.places[1] * per_row).astype(input._values._memory_.dtype))
        total = ops.sum_dim_IntList(padded, (1, *rest), True)
        return total / counts.reshape((-1,) + (1,) * (input.dim() - 1))  # type: ignore[attr-defined]

    centered: Any = input - mean(input)
    result = centered * (mean(centered * centered) + eps).rsqrt()  # type: ignore[attr-defined]
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


@jagged("_softmax", "_log_softmax")
def softmax(function: Any, input: Any, dim: int) -> Any:
    dim = normalize_dim(dim, input.dim())
    name = function.__name__.removeprefix("_")
    if dim == 0:
        raise RuntimeError(f"{name}(): not supported when reducing across the batch dimension for NestedTensor")
    if dim != input.ragged.idx:
        return input.wrap_like(function(input._values, dim - 1))
    if input.ragged.lengths is not None:
        raise RuntimeError(
            f"{name}(): not supported where lengths is not None if reducing across the ragged dimension for "
            "NestedTensor"
        )
    return from_padded(function(to_padded(input, float("-inf")), 1), input.packed().ragged)


@jagged("cumsum", "cumprod", "logcumsumexp")
def running(function: Any, input: Any, dim: int, **kwargs: Any) -> Any:
    dim = normalize_dim(dim, input.dim())
    if dim == 0:
        raise RuntimeError(f"{function.__name__}(): not supported for NestedTensor on dim=0")
    if dim != input.ragged.idx:
        return input.wrap_like(function(input._values, dim - 1, **kwargs))
    return from_padded(function(to_padded(input, 0), 1, **kwargs), input.packed().ragged)


@jagged("to_padded_tensor")
def to_padded_tensor(function: Any, input: Any, padding: float, output_size: Any = None) -> Tensor:
    structure = input.ragged
    length = None
    if output_size is not None:
        length = _length_of(input, tuple(output_size))
    padded = to_padded(input, padding, length)
    return padded if structure.idx == 1 else ops.movedim(padded, 1, structure.idx)


def _length_of(input: NestedTensor, size: tuple[int, ...]) -> int:
    structure, inner = input.ragged, input._values._memory_.shape
    expected = (structure.batch, *inner[: structure.idx - 1], structure.longest, *inner[structure.idx :])
    fits = len(size) == len(expected) and size[structure.idx] >= structure.longest
    if not fits or any(n != m for d, (n, m) in enumerate(zip(size, expected)) if d != structure.idx):
        raise RuntimeError(f"to_padded_tensor(): output_size {list(size)} does not hold a tensor of {list(expected)}")
    return size[structure.idx]


def view(source: NestedTensor, values: Tensor, structure: Ragged, again: Callable[[Tensor], Tensor]) -> NestedTensor:
    """A nested tensor that is a view of another one."""
    return NestedTensor.of(values, structure, (source, again))
