"""What operators mean for meta tensors: see Note [Meta tensors] in tensor/meta.py.

An operator of the table runs as it is, its wrapper with checks, node and versions, in other surroundings: what it reads
of a tensor is the description of its array, what it makes is a meta tensor, and where its kernel was stands what infers
the result (inference.py, rules.py).  Functions composed of operators run as they are, on their parts; the few that read
values are listed here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from types import FunctionType
from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...autograd.function import Function
from ...autograd.inplace import begin_inplace, bump_version
from ...core import dtypes
from ...core.late import operators as ops
from ...core.records import original, record_of
from ...core.state import local
from ...kernels.memory import geometry
from ...tensor import Tensor, wrap
from ...tensor.meta import MetaArray, MetaTensor, meta_tensor, order_of
from ...tensor.special import declaring
from ..composite.dtypes import to_meta
from ..composite.index import index_arrays, write_at
from ..support import not_a_tensor
from .inference import infer, infer_view
from .rules import refuse

#: What functions that are not of the table mean, by their names.
_FUNCTIONS: dict[str, Callable[..., Any]] = {}
_declare = declaring(_FUNCTIONS)


def operate(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `function` gives for arguments with a meta tensor among them; NotImplemented: what its parts give."""
    function = original(function)
    record = record_of(function)
    if record is None:
        known = _FUNCTIONS.get(function.__name__)
        return NotImplemented if known is None else known(*args, **kwargs)
    if record.writes and isinstance(args[0], Tensor) and not args[0].is_meta:
        raise RuntimeError(
            f"Tensor on device meta is not on the expected device {args[0].device}! {record.name} would write to a "
            "tensor with values what has none: make the arguments with values, as with module.to_empty(device='cpu')"
        )
    if local.state.current_node is None:  # (formulas make what they need as it comes)
        _check_devices(record.name, args, kwargs)
    return _form(function)(*args, **kwargs)


#: Operators that take further arguments with values where the first has none, as torch's do, who do not look.  (Where
#: the first has some and another has none, they give memory that nothing was written to; here that is refused.)
_ACROSS = frozenset((
    "_cdist", "_diagonal_scatter", "_fractional_max_pool2d", "_fractional_max_pool3d", "_index_reduce",
    "_index_reduce_", "_linalg_solve_ex", "_select_scatter", "_slice_scatter", "_trilinear", "addbmm", "baddbmm",
    "bmm", "bucketize", "conv_tbc", "convolution", "copy_", "einsum", "embedding", "gather", "index", "index_put",
    "index_put_", "index_select", "linalg_cross", "linalg_lu_solve", "linalg_solve_triangular", "masked_scatter",
    "mm", "put", "scatter_add", "scatter_reduce", "scatter_reduce_", "scatter_src", "scatter_src_", "scatter_value",
    "scatter_value_", "searchsorted", "take",
))  # fmt: skip


def _check_devices(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse tensors with values beside those without; a number (a tensor on the CPU without dimensions) has none."""
    first: Any = None
    for value in (*args, *kwargs.values()):
        for tensor in value if isinstance(value, (tuple, list)) else (value,):
            if not isinstance(tensor, Tensor) or (not tensor._memory_.ndim and not tensor.is_meta):
                continue
            if first is None:
                first = tensor
                if first.is_meta and name in _ACROSS:
                    return
            elif first.is_meta is not tensor.is_meta:
                raise RuntimeError(
                    f"Tensor on device {tensor.device} is not on the expected device {first.device}! {name}: it has "
                    f"the shape {list(tensor.shape)}; take both to one device, with x.to('meta')"
                )


class _Never:
    """No array is of this class: operators take no short cut."""


def _nothing(*arrays: Any) -> None:
    """Memory that is not there does not overlap."""


def _refused(function: Any, operator: str, name: str, position: int, value: Any, *call: Any) -> Any:
    """What is no tensor: of those that are, each has a description."""
    raise not_a_tensor(operator, name, position, value) from None


def _descriptions(tensors: Any) -> list[Any]:
    return [tensor._memory_ for tensor in tensors]


def _new(cls: type) -> Any:
    return object.__new__(MetaTensor if cls is Tensor else cls)


#: What wrappers call their tensors' arrays, and what they get here.
_NAMES = {"_numbers_": "_memory_", "_viewed_": "_memory_"}


@cache
def _form(function: FunctionType) -> Callable[..., Any]:
    """The wrapper of an operator in surroundings without arithmetic."""
    record: Any = record_of(function)
    refuse(record)
    if record.flips:  # the conjugate of nothing: a view of the same
        return lambda self: ops.alias(self)
    function = getattr(function, "body", function)  # behind the question of ops/override_switch.py
    code = function.__code__
    code = code.replace(co_names=tuple(_NAMES.get(name, name) for name in code.co_names))
    surroundings = dict(function.__globals__)
    how = infer_view if record.view else infer
    for name in code.co_names:
        if name.startswith("kernel_") and name in surroundings:
            surroundings[name] = partial(how, record, surroundings[name])
    surroundings |= {"new": _new, "ndarray": _Never, "check_overlap": _nothing, "tensor_list_arrays": _descriptions}
    surroundings["no_array"] = _refused
    result = FunctionType(code, surroundings, function.__name__, function.__defaults__, function.__closure__)
    result.__kwdefaults__ = function.__kwdefaults__
    return result


# ------------------------------------------------------------------------------------------------- from and to meta


@_declare("to")
def _to(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    places = [a.device if isinstance(a, Tensor) else a for a in (*args, *kwargs.values())]
    if any(str(place) == "cpu" for place in places) and input.is_meta:
        input._no_data()  # type: ignore[attr-defined]
    return NotImplemented


@_declare("copy_")
def _copy_(input: Tensor, src: Tensor, non_blocking: bool = False) -> Any:
    if not input.is_meta:
        src._no_data()  # type: ignore[attr-defined]
    return NotImplemented


@_declare("item", "__bool__", "__int__", "__float__", "__index__", "is_nonzero")
def _item(input: Any) -> Any:
    return input.item()


def write_out(
    function: Callable[..., Any], outs: tuple[Any, ...], out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``function(..., out=out)``: nothing is written, and `out` takes the result's shape."""
    result = function(*args, **kwargs)
    results = result if isinstance(result, (tuple, list)) else (result,)
    for target, value in zip(outs, results, strict=True):
        if not target.is_meta:
            value._no_data()
        begin_inplace(local.state, target, False)
        if target._memory_.shape != value._memory_.shape:
            order = order_of(value._memory_.shape, value._memory_.strides)
            target._memory_ = MetaArray.fresh(value._memory_.shape, target._memory_.dtype, order)
        bump_version(target)
    return out


# --------------------------------------------------------------------------------------------------- views, subscripts


@_declare("as_strided")
def _as_strided(input: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    where = geometry(input._memory_.ghost)
    return ops.as_strided_geometry(input, tuple(size), tuple(stride), storage_offset, where)


def _key(key: Any) -> Any:
    """A subscript with indices that hold zeros, in no memory, in place of those without values."""
    if isinstance(key, (tuple, list)):
        return type(key)([_key(one) for one in key]) if type(key) in (tuple, list) else [_key(one) for one in key]
    if not isinstance(key, MetaTensor):
        return key
    if key._memory_.dtype.kind == "b":
        raise NotImplementedError(
            "aten::nonzero: attempted to index with a mask on meta: how many elements it has depends on values"
        )
    return wrap(np.broadcast_to(np.zeros((), key._memory_.dtype), key._memory_.shape))


@_declare("__getitem__")
def _getitem(self: Tensor, key: Any) -> Any:
    if not self.is_meta:
        raise RuntimeError(
            f"Tensor on device meta is not on the expected device {self.device}! An index without values is no place "
            "in a tensor with values: take both to one device"
        )
    return self[_key(key)]


@_declare(
    "_unsafe_masked_index", "chain_matmul", "inner", "multi_dot", "scaled_dot_product_attention", "take_along_dim"
)
def _on_one_device(*args: Any, **kwargs: Any) -> Any:
    """Made of operators that would not look."""
    _check_devices("this function", args, kwargs)
    return NotImplemented


@_declare("type_as")
def _type_as(input: Tensor, other: Tensor) -> Any:
    if input.is_meta and not other.is_meta:
        input._no_data()  # type: ignore[attr-defined]
    return input.to(other.device, other.dtype)


@_declare("__setitem__")
def _setitem(self: Tensor, key: Any, value: Any) -> None:
    if not self.is_meta:
        value._no_data()
    write_at(self, _key(key), value)


@_declare("index_put")
def _index_put(self: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Any:
    return generated.index_put(self, index_arrays(_key(tuple(indices))), values, accumulate)


@_declare("index_put_")
def _index_put_(self: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Any:
    return generated.index_put_(self, index_arrays(_key(tuple(indices))), values, accumulate)


# ------------------------------------------------------------------------------------------------------- factories


def _like(name: str) -> Callable[..., Any]:
    def make(
        input: Tensor, *args: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
        memory_format: Any = None, generator: Any = None, layout: Any = None, pin_memory: Any = None,
    ) -> Any:  # fmt: skip
        np_dtype: Any = input._memory_.dtype if dtype is None else dtypes.as_numpy_dtype(dtype)
        if device is None or str(device) == "meta":
            array = input._memory_
            result = meta_tensor(MetaArray.fresh(array.shape, np_dtype, order_of(array.shape, array.strides)))
            result.requires_grad_(requires_grad)
        else:
            plain = name.removesuffix("_like")
            size = tuple(input._memory_.shape)
            arguments = (*args, size) if plain == "randint" else (size, *args)
            result = getattr(ops, plain)(*arguments, dtype=np_dtype, device=device, requires_grad=requires_grad)
        if memory_format is None or "preserve" in str(memory_format):
            return result
        return result.contiguous(memory_format=memory_format)

    return make


for _name in ("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like"):
    _declare(_name)(_like(_name))


def _new_factory(name: str) -> Callable[..., Any]:
    def make(input: Tensor, *args: Any, dtype: Any = None, device: Any = None, **kwargs: Any) -> Any:
        np_dtype = input._memory_.dtype if dtype is None else dtypes.as_numpy_dtype(dtype)
        return getattr(ops, name)(*args, dtype=np_dtype, device="meta" if device is None else device, **kwargs)

    return make


for _name in ("zeros", "ones", "empty", "full", "tensor", "empty_strided"):
    _declare(f"new_{_name}")(_new_factory(_name))


# ---------------------------------------------------------------------------------------------------- random numbers


@_declare("uniform_", "normal_", "bernoulli_", "exponential_", "random_", "geometric_", "cauchy_", "log_normal_")
def _fill(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Nothing is drawn, and nothing written; the version is another all the same."""
    state = local.state
    record = bool(state.grad_enabled) and input.requires_grad
    begin_inplace(state, input, record)
    if record:
        return ops.copy_(input, meta_tensor(MetaArray.like(input._memory_)))
    bump_version(input)
    return input


@_declare("bernoulli", "poisson")
def _drawn(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    return ops.empty_like(input.detach())


@_declare("multinomial")
def _multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Any:
    shape = (*input._memory_.shape[:-1], num_samples)
    return meta_tensor(MetaArray.fresh(shape, np.dtype(np.int64)))


# --------------------------------------------------------------------------------- functions that read values, by shape


class _Shaped(Function):
    """A tensor of a given shape that depends on others, whose gradients have their shapes."""

    @staticmethod
    def forward(ctx: Any, shape: tuple[int, ...], *inputs: Any) -> Any:  # type: ignore[override]
        ctx.save_for_backward(*inputs)
        return meta_tensor(MetaArray.fresh(shape, inputs[0]._memory_.dtype))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        return None, *[ops.empty_like(saved) if saved.is_floating_point() else None for saved in ctx.saved_tensors]


@_declare("grid_sample")
def _grid_sample(input: Tensor, grid: Tensor, *args: Any, **kwargs: Any) -> Any:
    _check_devices("grid_sample", (input, grid), {})
    if input._memory_.ndim != grid._memory_.ndim or grid._memory_.shape[-1] != input._memory_.ndim - 2:
        raise RuntimeError(f"grid_sampler(): the grid {list(grid.shape)} does not fit the input {list(input.shape)}")
    return _Shaped.apply((*input._memory_.shape[:2], *grid._memory_.shape[1:-1]), input, grid)


@_declare("isin")
def _isin(elements: Any = None, test_elements: Any = None, element: Any = None, **kwargs: Any) -> Any:
    elements = elements if element is None else element
    shape = elements._memory_.shape if isinstance(elements, Tensor) else ()
    return meta_tensor(MetaArray.fresh(shape, np.dtype(bool)))


@_declare("equal", "allclose")
def _compare(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError(
        "aten::equal: attempted to run this operator with Meta tensors, which have no values to compare"
    )
