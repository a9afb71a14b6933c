"""Custom functions (`autograd.Function`) inside of transforms.

A function differentiates itself as it always does.  Inside a vmap its author says what a batch of it is, in a static
method `vmap`; or sets ``generate_vmap_rule``, and forward, setup_context, backward and jvp are each mapped, in a
function made for it (`_mapped`) that works on the values.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from .._generated import functions as generated
from ..autograd.function import Function
from ..core.state import local, process
from ..kernels.dims import normalize_dim
from ..tensor import Tensor
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from .batched import BatchedTensor, Level, batching, escaped, innermost, is_batched, move, outside, wrap

#: Functions of this package need no setup_context: they are not mapped.
_PACKAGE = __name__.split(".")[0]


class VmapInfo(NamedTuple):
    """What the static method `vmap` of a custom function is told of the vmap it is in."""

    batch_size: int
    randomness: str


def apply_transformed(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any], with_setup_context: bool) -> Any:
    """``cls.apply(*args)`` inside of a transform; NotImplemented where it is as elsewhere.

    So it is in a pass over many gradients or tangents at a time, which is no vmap that the function's author has to
    know of: Note [Plain duals] in levels.py.  (The tangents of a batched argument are another matter: they are its
    value's, and for a batch of those the function has to be told how.)
    """
    state = local.state
    if not (state.func_depth or any([level.by_user for level in state.batch_levels])):
        if not process.dual_levels or not any([leaf.__class__ is BatchedTensor for leaf in tree_flatten(args)[0]]):
            return NotImplemented
    if not with_setup_context and not issubclass(cls, _Generated) and cls.__module__.split(".")[0] != _PACKAGE:
        raise RuntimeError(
            f"In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
            f"override the setup_context staticmethod: split {cls.__name__}.forward(ctx, ...) into forward(...) and "
            "setup_context(ctx, inputs, output). For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html"
        )
    leaves, spec = tree_flatten(args)
    level = innermost(leaves)
    if level is None:
        return NotImplemented
    if not level.open:
        raise escaped(next(leaf for leaf in leaves if is_batched(leaf, level)), f"{cls.__name__}.apply")
    if kwargs:
        raise NotImplementedError(
            f"Run torch.vmap over autograd.Function with kwarg-only Tensor args: {cls.__name__}.apply takes its "
            f"arguments by position inside of vmap, not {sorted(kwargs)} by name"
        )
    has_rule = cls.vmap is not Function.vmap
    if has_rule and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            "ambiguity."
        )
    if not has_rule and not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement "
            "the "
            "vmap staticmethod or set generate_vmap_rule=True."
        )
    values = [leaf.value if is_batched(leaf, level) else leaf for leaf in leaves]
    dims = [leaf.bdim if is_batched(leaf, level) else None for leaf in leaves]
    with outside(level):
        if has_rule:
            return _by_rule(cls, level, values, dims, spec)
        return _by_mapping(cls, level, values, dims, spec)


def _by_rule(cls: Any, level: Level, values: list[Any], dims: list[Any], spec: Any) -> Any:
    info = VmapInfo(level.size, level.randomness)
    result = cls.vmap(info, tree_unflatten(dims, spec), *tree_unflatten(values, spec))
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"Expected the vmap staticmethod of {cls.__name__} to have two returns, an output and out_dims with pytree "
            f"structure compatible with the output, but it gave {type(result).__name__}"
        )
    output, out_dims = result
    parts, output_spec = tree_flatten(output)
    where = _broadcast_to_and_flatten(out_dims, output_spec, is_leaf=lambda x: x is None)
    if where is None:
        raise RuntimeError(
            f"The vmap staticmethod of {cls.__name__} returned an incompatible (output, out_dims) tuple: the structure "
            f"of the output is {output_spec}, that of out_dims {tree_flatten(out_dims)[1]}"
        )
    made = [
        part if dim is None or not isinstance(part, Tensor)
        else wrap(part, level, normalize_dim(dim, part._memory_.ndim))
        for part, dim in zip(parts, where, strict=True)
    ]  # fmt: skip
    return tree_unflatten(made, output_spec)


# ---------------------------------------------------------------------------------------------------------- generated


class _Call:
    """What a mapped function knows of the call that it is made for."""

    __slots__ = ("dims", "level", "out_dims", "out_spec", "shapes", "spec")

    def __init__(self, level: Level, dims: list[Any], spec: Any, shapes: list[Any]) -> None:
        self.level: Level = level
        self.dims: list[Any] = dims
        self.spec: Any = spec
        #: The shapes of the inputs, as an example has them.
        self.shapes: list[Any] = shapes
        self.out_dims: list[Any] = []
        self.out_spec: Any = None

    def again(self) -> batching:
        """The vmap once more, for another of the function's methods."""
        return batching(self.level.size, self.level.randomness, self.level.function)


def _batched(values: Any, dims: Any, level: Level) -> list[Any]:
    return [
        wrap(value, level, dim) if dim is not None and isinstance(value, Tensor) else value
        for value, dim in zip(values, dims, strict=True)
    ]


#: How the names of what a mapped function keeps on its `ctx` end.
_KEPT = ("vmap_call", "vmap_in_jvp", "vmap_saved_dims", "vmap_forward_dims")


class _MappedContext:
    """The `ctx` of a custom function, whose tensors are batched, over that of the function that works on values."""

    def __init__(self, ctx: Any, level: Level) -> None:
        object.__setattr__(self, "_ctx", ctx)
        object.__setattr__(self, "_level", level)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, self._inner(name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, self._inner(name), value)

    @staticmethod
    def _inner(name: str) -> str:
        """What a mapped function keeps on `ctx` goes by another name for one that is itself mapped."""
        return f"inner_{name}" if name.endswith(_KEPT) else name

    def _values(self, tensors: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
        level = self._level
        return (
            [t.value if is_batched(t, level) else t for t in tensors],
            [t.bdim if is_batched(t, level) else None for t in tensors],
        )

    def save_for_backward(self, *tensors: Any) -> None:
        values, self._ctx.vmap_saved_dims = self._values(tensors)
        self._ctx.save_for_backward(*values)

    def save_for_forward(self, *tensors: Any) -> None:
        values, self._ctx.vmap_forward_dims = self._values(tensors)
        self._ctx.save_for_forward(*values)

    def mark_dirty(self, *tensors: Any) -> None:
        self._ctx.mark_dirty(*self._values(tensors)[0])

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self._ctx.mark_non_differentiable(*self._values(tensors)[0])

    @property
    def needs_input_grad(self) -> Any:
        return self._ctx.needs_input_grad[1:]

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        ctx = self._ctx
        dims = getattr(ctx, "vmap_forward_dims", ()) if ctx.vmap_in_jvp else ctx.vmap_saved_dims
        return tuple(_batched(self._ctx.saved_tensors, dims, self._level))


class _Generated(Function):
    """The base of what `_mapped` makes."""


_made: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _mapped(cls: Any) -> Any:
    """The Function on values whose methods are those of `cls`, mapped; its first argument is the `_Call`."""
    if cls in _made:
        return _made[cls]

    def forward(call: _Call, *values: Any) -> Any:
        with call.again() as level:
            result = cls.forward(*tree_unflatten(_batched(values, call.dims, level), call.spec))
            parts, call.out_spec = tree_flatten(result)
            call.out_dims = [part.bdim if is_batched(part, level) else None for part in parts]
            found = [part.value if is_batched(part, level) else part for part in parts]
        return tuple(found)

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        call, *values = inputs
        ctx.vmap_call, ctx.vmap_in_jvp, ctx.vmap_saved_dims = call, False, ()
        with call.again() as level:
            given = tree_unflatten(_batched(values, call.dims, level), call.spec)
            made = tree_unflatten(_batched(output, call.out_dims, level), call.out_spec)
            cls.setup_context(_MappedContext(ctx, level), given, made)

    def backward(ctx: Any, *grads: Any) -> Any:
        call = ctx.vmap_call
        ctx.vmap_in_jvp = False
        with call.again() as level:
            method = cls.backward if cls.backward is not Function.backward else cls.vjp
            result = method(_MappedContext(ctx, level), *_batched(grads, call.out_dims, level))
            given = result if isinstance(result, tuple) else (result,)
            found = [_as_input(g, dim, shape, level) for g, dim, shape in _matched(given, call, cls.__name__)]
        return (None, *found)

    def jvp(ctx: Any, _none: Any, *tangents: Any) -> Any:
        call = ctx.vmap_call
        ctx.vmap_in_jvp = True
        with call.again() as level:
            result = cls.jvp(_MappedContext(ctx, level), *_batched(tangents, call.dims, level))
            parts = tree_flatten(result)[0] if isinstance(result, tuple) else [result]
            found = [_at(part, dim, level) for part, dim in zip(parts, call.out_dims, strict=True)]
        return tuple(found)

    made: Any = type(
        cls.__name__,
        (_Generated,),
        {name: staticmethod(method) for name, method in
         (("forward", forward), ("setup_context", setup_context), ("backward", backward), ("jvp", jvp))},
    )  # fmt: skip
    made.generate_vmap_rule = True
    _made[cls] = made
    return made


def _matched(given: tuple[Any, ...], call: _Call, name: str) -> list[tuple[Any, Any, Any]]:
    """The gradients of the inputs, one per leaf, with where each belongs."""
    flat = _broadcast_to_and_flatten(given, call.spec, is_leaf=lambda x: x is None)
    if flat is None:
        raise RuntimeError(f"function {name}Backward returned an incorrect number of gradients: {len(given)}")
    return list(zip(flat, call.dims, call.shapes, strict=True))


def _as_input(grad: Any, dim: int | None, shape: Any, level: Level) -> Any:
    """A gradient as the input has it: the examples along `dim`, or summed if they share it."""
    if not isinstance(grad, Tensor) or shape is None:
        return None
    if grad._memory_.shape != tuple(shape):
        grad = grad.sum_to_size(shape)
    if dim is not None:
        return _at(grad, dim, level)
    return grad.value.sum(grad.bdim) if isinstance(grad, BatchedTensor) and grad.level is level else grad


def _at(value: Any, dim: int | None, level: Level) -> Any:
    """A tensor with the examples along `dim`."""
    if not isinstance(value, Tensor):
        return value
    if isinstance(value, BatchedTensor) and value.level is level:
        if dim is None:
            raise RuntimeError("a tangent has a value for each example, and the output that it belongs to has not")
        return move(value.value, value.bdim, dim)
    if dim is None:
        return value
    return move(generated.expand(value, level.size, *value._memory_.shape), 0, dim)


def _by_mapping(cls: Any, level: Level, values: list[Any], dims: list[Any], spec: Any) -> Any:
    shapes = []
    for value, dim in zip(values, dims, strict=True):
        shape = value._memory_.shape if isinstance(value, Tensor) else None
        shapes.append(shape if shape is None or dim is None else shape[:dim] + shape[dim + 1 :])
    call = _Call(level, dims, spec, shapes)
    output = _mapped(cls).apply(call, *values)
    return tree_unflatten(_batched(output, call.out_dims, level), call.out_spec)


