"""Operators on strided nested tensors: on the buffer where each element is by itself, else component by component."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...autograd.function import Function
from ...core.constants import contiguous_format
from ...core.late import operators as ops
from ...core.records import record_of
from ...kernels.dims import normalize_dim
from ...ops import pointwise
from ...tensor import Tensor, wrap
from ...tensor.special import declaring
from .base import NestedBase
from .strided import Places, StridedNestedTensor, to_padded_sizes

#: Declares what operators mean for strided nested tensors.
strided = declaring(StridedNestedTensor.operators)


def _contiguous(input: StridedNestedTensor, message: str) -> None:
    if not input.is_packed():
        raise RuntimeError(f"{message} Call nt.contiguous() first")


def _pack(components: Sequence[Tensor], like: StridedNestedTensor) -> StridedNestedTensor:
    return StridedNestedTensor.pack(components) if components else like


# --------------------------------------------------------------------------------------------------- element by element


@strided(*pointwise.UNARY)
def unary(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    _contiguous(input, "NestedTensor must be contiguous to get buffer.")
    return input.wrap_like(function(input._values, *args, **kwargs))


@strided(*pointwise.UNARY_IN_PLACE)
def unary_in_place(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    _contiguous(input, "NestedTensor must be contiguous to get buffer.")
    function(input._values, *args, **kwargs)
    return input


@strided("fill_Tensor_", "fill_")
def fill(function: Any, input: Any, value: Any) -> Any:
    if isinstance(value, Tensor) and value.dim() != 0:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value.dim()} dimensions."
        )
    function(input._values, value)
    return input


@strided(*pointwise.DROPOUTS)
def dropout(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    return input.wrap_like(function(input._values, *args, **kwargs))


@strided(*pointwise.FILLED_IN_PLACE)
def filled(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    function(input._values, *args, **kwargs)
    return input


@strided(*pointwise.LIKE)
def like(function: Any, input: Any, *args: Any, memory_format: Any = None, **kwargs: Any) -> Any:
    _check_format(function.__name__, memory_format)
    if memory_format is contiguous_format:
        input = input.packed()
    return input.wrap_like(function(input._values, *args, **kwargs))


def _check_format(name: str, memory_format: Any) -> None:
    if memory_format is not None and "channels" in str(memory_format):
        word = "ChannelsLast3d" if "3d" in str(memory_format) else "ChannelsLast"
        raise RuntimeError(
            f"Nested tensor {name} supports Preserve and Contiguous memory formats, called {name} with memory format: "
            f"{word}"
        )


def _both(function: Any, args: Sequence[Any]) -> tuple[StridedNestedTensor, list[Any]] | None:
    """The buffers of nested arguments of the same sizes, and what stands beside them; None: component by component."""
    name = function.__name__.removesuffix("_")
    nested = [a for a in args if isinstance(a, StridedNestedTensor)]
    first = nested[0]
    plain = [a for a in args if isinstance(a, Tensor) and not isinstance(a, StridedNestedTensor)]
    if any(t.dim() != 0 for t in plain):
        if any(t.is_nested for t in plain):
            raise RuntimeError(f"{name}(): cannot mix nested tensors of layouts torch.strided and torch.jagged")
        shape = next(t for t in plain if t.dim() != 0)._memory_.shape
        if len(shape) == first.dim() and shape[0] == len(first) and shape[1] == 1:
            return None
        mine, theirs = ("nested", "non-nested") if args[0] is first else ("non-nested", "nested")
        raise RuntimeError(f"Expected both self and other to be nested, but got a {mine} self and {theirs} other")
    for other in nested[1:]:
        if other.places.sizes != first.places.sizes:
            raise RuntimeError(
                f"{name} expects all nested tensors to have the same sizes, but got {first.places.sizes} and "
                f"{other.places.sizes}"
            )
    if len(nested) > 1 and name == "div":
        if any(other.places.strides != first.places.strides for other in nested[1:]):
            raise RuntimeError("div requires strides to match when given NestedTensors")
        if any(other.places.offsets != first.places.offsets for other in nested[1:]):
            raise RuntimeError("div requires offsets to match when given NestedTensors")
    if len(nested) > 1 and not all(
        o.places.same(first.places) and o._values.numel() == first._values.numel() for o in nested[1:]
    ):
        packed = {id(t): t.packed() for t in nested}
        return packed[id(first)], [packed[id(a)]._values if id(a) in packed else a for a in args]
    return first, [a._values if isinstance(a, StridedNestedTensor) else a for a in args]


@strided(*(pointwise.SEVERAL - {"eq"}))
def several(function: Any, *args: Any, **kwargs: Any) -> Any:
    found = _both(function, args)
    if found is None:
        return _by_component(function, args, kwargs)
    first, values = found
    return first.wrap_like(function(*values, **kwargs))


@strided("eq")
def eq(function: Any, input: Any, other: Any) -> Any:
    return several(function, input, other)


def _by_component(function: Any, args: Sequence[Any], kwargs: Any) -> Any:
    first = next(a for a in args if isinstance(a, StridedNestedTensor))
    parts = [
        a.components() if isinstance(a, StridedNestedTensor)
        else list(ops.unbind(a)) if isinstance(a, Tensor) and a.dim()
        else [a] * len(first)
        for a in args
    ]  # fmt: skip
    return _pack([function(*each, **kwargs) for each in zip(*parts)], first)


@strided(*pointwise.SEVERAL_IN_PLACE)
def several_in_place(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(input, StridedNestedTensor):
        if input.dim() == 0:
            raise RuntimeError(
                "output with shape [] doesn't match the broadcast shape [nested]: a plain tensor takes no nested one "
                "in place"
            )
        _both(function, (input, *args))
        raise RuntimeError("a plain tensor takes no nested one in place")
    found = _both(function, (input, *args))
    if found is not None and found[0] is input:
        function(*found[1], **kwargs)
        return input
    others = [
        a.components() if isinstance(a, StridedNestedTensor)
        else list(ops.unbind(a)) if isinstance(a, Tensor) and a.dim()
        else [a] * len(input)
        for a in args
    ]  # fmt: skip
    for each in zip(input.components(), *others):
        function(*each, **kwargs)
    return input


# --------------------------------------------------------------------------------------------------------------- copies


@strided("clone")
def clone(function: Any, input: Any, *, memory_format: Any = None) -> Any:
    _check_format("clone", memory_format)
    if not input.is_packed() and (
        memory_format is contiguous_format or input.places.numel != input._values.numel()
    ):
        return input.packed()
    return input.wrap_like(function(input._values))


@strided("contiguous")
def contiguous(function: Any, input: Any, memory_format: Any = None) -> Any:
    return input.packed()


@strided("_to_copy")
def to_copy(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    return input.wrap_like(function(input._values, *args, **kwargs))


@strided("alias")
def alias(function: Any, input: Any) -> Any:
    return _view(input, input.places, lambda other: function(other))


@strided("to", "cpu", "cuda", "type", "type_as", "bfloat16", "bool", "byte", "char", "double", "float", "half", "int",
         "long", "short", "cdouble", "cfloat")  # fmt: skip
def to(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    args = tuple(a._values if isinstance(a, StridedNestedTensor) else a for a in args)
    if not isinstance(input, StridedNestedTensor):
        return function(input, *args, **kwargs)
    values = function(input._values, *args, **kwargs)
    return input if values is input._values else values if isinstance(values, str) else input.wrap_like(values)


@strided("copy_")
def copy(function: Any, input: Any, src: Any, non_blocking: bool = False) -> Any:
    if record_of(function) is None:
        return NotImplemented
    nested = isinstance(input, StridedNestedTensor) and isinstance(src, StridedNestedTensor)
    if not nested or input.places.sizes != src.places.sizes:
        raise RuntimeError("copy_ only supports tensors that are the same size for Nested implementations")
    if input.places.same(src.places) and input._values.numel() == src._values.numel():
        function(input._values, src._values, non_blocking)
    else:
        for mine, other in zip(input.components(), src.components()):
            function(mine, other, non_blocking)
    return input


@strided("equal")
def equal(function: Any, input: Any, other: Any) -> bool:
    if not isinstance(input, StridedNestedTensor) or not isinstance(other, StridedNestedTensor):
        return False
    return input.places.sizes == other.places.sizes and function(input.packed()._values, other.packed()._values)


@strided("is_same_size")
def is_same_size(function: Any, input: Any, other: Any) -> bool:
    if not isinstance(input, StridedNestedTensor) or not isinstance(other, StridedNestedTensor):
        which = [f"{name} is {'' if isinstance(one, StridedNestedTensor) else 'not '}nested"
                 for name, one in (("Self", input), ("Other", other))]  # fmt: skip
        raise RuntimeError(f"Expected both self and other to be nested tensors. {which[0]}. While {which[1]}.")
    return input.places.sizes == other.places.sizes


# --------------------------------------------------------------------------------------------------------------- layers


@strided("embedding")
def embedding(function: Any, *args: Any, **kwargs: Any) -> Any:
    if record_of(function) is None:
        return NotImplemented
    weight, indices = args[:2]
    if not isinstance(indices, StridedNestedTensor) or isinstance(weight, NestedBase):
        return NotImplemented
    values = function(weight, indices.packed()._values, *args[2:], **kwargs)
    width = values._memory_.shape[1]
    return StridedNestedTensor.of(
        ops.view(values, (-1,)), Places.packed([(*size, width) for size in indices.places.sizes])
    )


def _trailing(input: StridedNestedTensor, name: str) -> int:
    width = input.places.regular(len(input.places.sizes[0]) - 1)
    if width is None:
        last = input.places.sizes
        raise RuntimeError(
            "Expected all tensors in nested tensor to have the same trailing dimension, instead last dimension equals: "
            f"{[size[-1] for size in last]}"
        )
    return width


@strided("linear")
def linear(function: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    if not isinstance(input, StridedNestedTensor) or isinstance(weight, NestedBase):
        raise RuntimeError("Linear does not support nested weight when input is a nested tensor.")
    if input.dim() < 3 or weight.dim() != 2:
        raise RuntimeError(
            "Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. Nested tensor dim: "
            f"{input.dim()}. Dense tensor dim: {weight.dim()}"
        )
    _contiguous(input, "for now linear only supports contiguous nested tensor.")
    width = _trailing(input, "linear")
    if width != weight._memory_.shape[1]:
        raise RuntimeError(
            "Shape mismatch for NestedTensor Linear: Expected input's (a nested tensor) 'last_dim' to equal "
            f"'weight.size(1), but got: last_dim = {width}, and weight.size(1) = {weight._memory_.shape[1]}"
        )
    return _row_by_row(input, weight._memory_.shape[0], lambda rows: function(rows, weight, bias))


def _row_by_row(input: StridedNestedTensor, width: int, run: Callable[[Tensor], Tensor]) -> StridedNestedTensor:
    """All vectors along the last dimension at once, as the rows of a matrix."""
    rows = ops.view(input._values, (-1, input.places.sizes[0][-1]))
    places = Places.packed([(*size[:-1], width) for size in input.places.sizes])
    return StridedNestedTensor.of(ops.reshape(run(rows), (-1,)), places)


@strided("native_layer_norm")
def layer_norm(function: Any, input: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    n = len(shape)
    sizes = input.places.sizes
    if n >= input.dim() or any(input.places.regular(d) is None for d in range(len(sizes[0]) - n, len(sizes[0]))) or (
        n == len(sizes[0])
    ):
        raise RuntimeError("normalized_shape extends into irregular dimensions for the nested tensor")
    own = sizes[0][len(sizes[0]) - n :]
    for d, (mine, asked) in enumerate(zip(own, shape)):
        if mine != asked:
            raise RuntimeError(
                f"The shape at dimension {d} of normalized_shape, {asked}, does not match the size of the nested "
                f"tensor there, {mine}"
            )
    input = input.packed()
    values = function(ops.view(input._values, (-1, *shape)), shape, weight, bias, eps)
    return input.wrap_like(ops.view(values, (-1,)))


@strided("_softmax", "_log_softmax")
def softmax(function: Any, input: Any, dim: int) -> Any:
    n = input.dim()
    if not len(input):
        return input
    dim = normalize_dim(dim, n)
    if dim == 0:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    return _pack([function(component, dim - 1) for component in input.components()], input)


class SumAutogradNestedTensor(Function):
    """The sums of runs of a vector; it saves the vector, as torch's operator does."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, owners: Tensor, count: int) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(values)
        ctx.owners = owners
        return ops.index_add(ops.zeros((count,), dtype=values.dtype, device=values.device), 0, owners, values)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        ctx.saved_tensors  # noqa: B018  # the vector may not have been written to
        return ops.index_select(grad, 0, ctx.owners), None, None


@strided("sum_dim_IntList")
def sum_dim(function: Any, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    dims = [dim] if isinstance(dim, int) else list(dim or ())
    if len(dims) != 1:
        raise RuntimeError("NestedTensor only allows reduction of a single dimension for now.")
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    if normalize_dim(dims[0], input.dim()) != input.dim() - 1 or input.dim() == 1:
        raise RuntimeError("NestedTensor can only be reduced across the last dimension for now.")
    input = input.packed()
    lengths = np.concatenate([np.full(math.prod(size[:-1]), size[-1]) for size in input.places.sizes])
    values = input._values if dtype is None else input._values.to(dtype=dtype)
    owners = wrap(np.repeat(np.arange(len(lengths)), lengths))
    total = SumAutogradNestedTensor.apply(values, owners, len(lengths))
    return StridedNestedTensor.of(total, Places.packed([(*size[:-1], 1) for size in input.places.sizes]))


@strided("sum", "mean", "any", "all", "max", "min", "amax", "amin", "prod")
def over_all(function: Any, input: Any, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
    if record_of(function) is None or (dim is not None and dim != ()) or keepdim:
        return NotImplemented
    return function(input.packed()._values, **kwargs)


# ------------------------------------------------------------------------------------------------------------- products


def _matrices(input: StridedNestedTensor | Tensor) -> list[Tensor]:
    return input.components() if isinstance(input, StridedNestedTensor) else list(ops.unbind(input))


@strided("bmm")
def bmm(function: Any, input: Any, mat2: Any) -> Any:
    for name, t in (("batch1", input), ("batch2", mat2)):
        if t.dim() != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    left, right = _matrices(input), _matrices(mat2)
    if len(left) != len(right):
        raise RuntimeError(
            f"Expected size for the 1st dimension of batch2 tensor to be: {len(left)} but got: {len(right)}."
        )
    for i, (a, b) in enumerate(zip(left, right)):
        if a.shape[1] != b.shape[0]:
            raise RuntimeError(
                f"{i}-th nested matrices in batch cannot be multiplied ({a.shape[0]}x{a.shape[1]} and "
                f"{b.shape[0]}x{b.shape[1]})"
            )
    return StridedNestedTensor.pack([ops.mm(a, b) for a, b in zip(left, right)])


@strided("matmul")
def matmul(function: Any, input: Any, other: Any) -> Any:
    a_nested, b_nested = isinstance(input, StridedNestedTensor), isinstance(other, StridedNestedTensor)
    if a_nested and not b_nested and not isinstance(other, NestedBase) and other.dim() == 2 and input.dim() >= 3:
        return _pack([ops.matmul(component, other) for component in input.components()], input)
    if not (a_nested and b_nested):
        mine, theirs = ("nested", "non-nested") if a_nested else ("non-nested", "nested")
        raise RuntimeError(f"Expected both to be nested, but got a {mine} self and {theirs} other")
    for number, t in (("1st", input), ("2nd", other)):
        if t.dim() < 3:
            raise RuntimeError(
                f"matmul: For nested tensors, only inputs with >= 3 dims are currently supported. {number} input has "
                f"rank: {t.dim()}"
            )
    if len(input) != len(other):
        raise RuntimeError(
            f"matmul: Expected size for the 1st dimension of 2nd input tensor to be: {len(input)} but got: "
            f"{len(other)}."
        )
    for a, b in zip(input.places.sizes, other.places.sizes):
        if a[:-2] != b[:-2]:
            raise RuntimeError(
                f"matmul: For nested tensors, batch dimensions must have the same sizes, but got {a[:-2]} and {b[:-2]}"
            )
        if a[-1] != b[-2]:
            raise RuntimeError(
                f"matmul: Nested tensors cannot be matrix multiplied, components have sizes {a} and {b}"
            )
    return _pack([ops.matmul(a, b) for a, b in zip(input.components(), other.components())], input)


@strided("scaled_dot_product_attention")
def attention(
    function: Any, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    if attn_mask is not None:
        raise RuntimeError(
            "scaled_dot_product_attention: Nested tensors for query / key are not supported when an explicit attn_mask "
            "is set"
        )
    if is_causal:
        raise RuntimeError(
            "scaled_dot_product_attention: Nested tensors for query / key are not supported when is_causal=True"
        )
    if not all(isinstance(t, StridedNestedTensor) for t in (query, key, value)):
        raise RuntimeError("scaled_dot_product_attention: query, key and value have to be nested tensors together")
    if not len(query) == len(key) == len(value):
        raise RuntimeError("scaled_dot_product_attention: query, key and value must have as many components")
    kwargs = {"dropout_p": dropout_p, "scale": scale, "enable_gqa": enable_gqa}
    return _pack(
        [
            ops.squeeze_dim(function(*[ops.unsqueeze(t, 0) for t in parts], **kwargs), 0)
            for parts in zip(query.components(), key.components(), value.components())
        ],
        query,
    )


@strided("to_padded_tensor")
def to_padded_tensor(function: Any, input: Any, padding: float, output_size: Any = None) -> Tensor:
    if not len(input):
        return ops.zeros((0,), dtype=input.dtype)
    if not input.is_packed():
        raise RuntimeError(
            "for now to_padded_tensor only supports contiguous nested tensor: call nt.contiguous() first"
        )
    if input.numel() == 0:
        raise RuntimeError("to_padded_tensor: at least one constituent tensor should have non-zero numel")
    size = (len(input), *map(max, zip(*input.places.sizes)))
    if output_size is not None:
        if len(output_size) != len(size) or any(n < m for n, m in zip(output_size, size)) or output_size[0] != size[0]:
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. Truncation is not supported: got "
                f"{list(output_size)} for {list(size)}"
            )
        size = tuple(output_size)
    return to_padded_sizes(input, padding, size)


def _view(
    source: StridedNestedTensor, places: Places, again: Callable[[Any], Any], buffer: Tensor | None = None
) -> StridedNestedTensor:
    """A view of a nested tensor: its buffer (or a part), read otherwise."""
    return StridedNestedTensor.of(ops.alias(source._values) if buffer is None else buffer, places, (source, again))
