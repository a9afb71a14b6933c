"""Derivatives inside a vmap: what is differentiated gets a batch dimension for each level that is open.

A graph is made of plain tensors.  Inside a vmap, "the gradient of `w`" means one for each example, also if `w` is the
same for all of them.  So a variable is spread over the levels that are open when it is made (`variable`), a result
likewise (`physical`), the pass runs over plain values, and gradients are made batched again (`logical`).  A cotangent
may be batched at further levels, of a vmap that runs over the pass alone (`jacrev`): those stay.
"""

from __future__ import annotations

from typing import Any

from .. import kernels
from .._generated import functions as generated
from ..autograd.forward_ad import UnpackedDualTensor, make_dual, unpack_dual
from ..autograd.forward_grad import fw_grad
from ..autograd.forward_operators import seeing_levels_outside
from ..autograd.run_backward import grad as autograd_grad
from ..core.meta import AutogradMeta
from ..core.state import local, process
from ..core.version_counter import INFERENCE, version_counter
from ..nn.parameter import Parameter
from ..tensor import Tensor
from ..tensor import wrap as plain
from .batched import BatchedTensor, Level, is_batched, move, spread, wrap


def physical(tensor: Tensor, levels: tuple[Level, ...]) -> Tensor:
    """`tensor` without the batching of `levels` (which are all from the outermost on), their dimensions in front."""
    if not levels:
        return tensor
    if tensor.__class__ is BatchedTensor and tensor.level is levels[0] and not tensor.bdim and len(levels) == 1:  # type: ignore[attr-defined]
        return tensor.value  # type: ignore[attr-defined]
    if tensor.__class__ is BatchedTensor and tensor.level.number > len(levels):  # type: ignore[attr-defined]
        inner = physical(tensor.value, levels)  # type: ignore[attr-defined]
        return wrap(inner, tensor.level, tensor.bdim + len(levels))  # type: ignore[attr-defined]
    return physical(spread(tensor, levels[-1]), levels[:-1])


def logical(value: Tensor, levels: tuple[Level, ...]) -> Tensor:
    """The reverse: a value whose first dimensions count the examples of `levels`, batched."""
    if not levels:
        return value
    if value.__class__ is BatchedTensor and value.level.number > len(levels):  # type: ignore[attr-defined]
        moved = move(value.value, value.bdim, len(levels))  # type: ignore[attr-defined]
        return wrap(logical(moved, levels), value.level)  # type: ignore[attr-defined]
    for level in levels:
        value = wrap(value, level)
    return value


def plain_of(tensor: Tensor) -> Tensor:
    """The tensor that has the history and the tangents of one that may be batched."""
    while tensor.__class__ is BatchedTensor:
        tensor = tensor.value  # type: ignore[attr-defined]
    return tensor


# --------------------------------------------------------------------------------------------------------- reverse mode


def variable(tensor: Tensor, linked: bool) -> Tensor:
    """What stands for `tensor` while it is differentiated; `linked`: it has the history of `tensor` all the same."""
    state = local.state
    levels = state.batch_levels
    if (
        (tensor.__class__ is Tensor or tensor.__class__ is Parameter)
        and tensor._edge_ is None
        and len(levels) < 2
        and not process.dual_levels
        and not (linked and tensor.requires_grad)
        and tensor._vc_ is not INFERENCE
        and not state.observers
    ):
        # The commonest case, without views of what has no history: a leaf on the same memory.
        array = tensor._numbers_
        leaf = plain(kernels.expand(array, (levels[0].size, *array.shape)) if levels else array)
        leaf._vc_ = tensor._vc_ or version_counter(tensor)
        leaf._grad_meta_ = meta = AutogradMeta()
        meta.requires_grad = True
        return wrap(leaf, levels[0]) if levels else leaf
    value = physical(tensor, levels)
    if linked and value.requires_grad:
        result = generated.alias(value)
    elif process.dual_levels:
        recording, state.grad_enabled = state.grad_enabled, False
        try:
            result = generated.alias(value)  # which keeps the tangents
        finally:
            state.grad_enabled = recording
        result.requires_grad_()
    else:
        result = (value.detach() if value._vc_ is not INFERENCE else value.clone()).requires_grad_()
    return logical(result, levels)


def gradients(
    outputs: list[Tensor],
    variables: list[Tensor],
    cotangents: list[Tensor | None],
    levels: tuple[Level, ...],
    keep_graph: bool,
    create_graph: bool,
) -> list[Tensor]:
    """The gradients of `outputs`, weighted by `cotangents`, for each of `variables`: zeros where there is none.

    `levels` are those that were open when the variables were made.
    """
    roots, grads = [], []
    for output, cotangent in zip(outputs, cotangents, strict=True):
        value = physical(output, levels)
        if value.requires_grad:
            roots.append(value)
            grads.append(_one(value) if cotangent is None else physical(cotangent, levels))
    values = [physical(one, levels) for one in variables]
    found: Any = [None] * len(values)
    if roots:
        found = autograd_grad(roots, values, grads, keep_graph, create_graph, allow_unused=True)
    made = [value.new_zeros(value.shape) if g is None else g for g, value in zip(found, values, strict=True)]
    return [logical(g, levels) for g in made]


def grad_of_batched(
    outputs: Any, inputs: Any, given: Any, keep_graph: bool, create_graph: bool, is_grads_batched: bool
) -> list[Any]:
    """`autograd.grad` inside a vmap, where outputs and inputs are batched: an example's gradients are its own."""
    levels = local.state.batch_levels
    values = []
    for position, tensor in enumerate(inputs):
        if not isinstance(tensor, Tensor) or _depth(tensor) < max(_depth(o) for o in outputs if isinstance(o, Tensor)):
            raise RuntimeError(
                f"autograd.grad() called inside torch.vmap for input {position}, which is the same for all examples: "
                "its "
                "gradient would be the sum over them. Use torch.func.grad, which has one for each example"
            )
        values.append(physical(tensor, levels))
    if is_grads_batched:
        raise RuntimeError("is_grads_batched=True inside a vmap: use torch.vmap over torch.func.vjp instead")
    roots, grads = [], []
    for output, cotangent in zip(outputs, given, strict=True):
        value = physical(output, levels)
        if cotangent is None and output._memory_.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        roots.append(value)
        grads.append(_one(value) if cotangent is None else physical(cotangent, levels))
    found = autograd_grad(roots, values, grads, keep_graph, create_graph, allow_unused=True)
    return [None if g is None else logical(g, levels) for g in found]


def _depth(tensor: Tensor) -> int:
    """At how many levels a tensor is batched."""
    count = 0
    while tensor.__class__ is BatchedTensor:
        count, tensor = count + 1, tensor.value  # type: ignore[attr-defined]
    return count


def _one(value: Tensor) -> Tensor:
    if value._special_ is not None:
        return value.detach().new_ones(value.shape)
    return plain(kernels.ones_like(value._numbers_))


# --------------------------------------------------------------------------------------------------------- forward mode


def dual(primal: Tensor, tangent: Tensor, level: int | None = None) -> Tensor:
    """`make_dual` of tensors of which one is batched."""
    levels = local.state.batch_levels
    values = [physical(tensor, levels) for tensor in (primal, tangent)]
    if 0 in values[0]._memory_.strides:
        values[0] = values[0].clone()  # a tangent lies as its primal does, and examples have tangents of their own
    return logical(make_dual(values[0], values[1], level=level), levels)


def stays_plain(primal: Tensor, tangent: Any) -> bool:
    """Does a tensor that is the same for all examples stay so, with a tangent for each of them?

    Note [Plain duals]
    In a pass over many directions at once that is the engine's own (`gradcheck`, `_vmap`), a dual of a plain primal is
    a plain tensor whose tangent is batched.  Operators compute the primal once, custom functions see it as it is, and
    only formulas, and `jvp`, see the batch.  Where such a tensor meets a batched one, whose tangents are those of its
    value, it becomes like that one (`with_batched_duals`).  In the transforms of `torch.func` it is batched from the
    start, so that formulas run over bare arrays.
    """
    if primal._special_ is not None or not tangent.level.keeps_primals:
        return False
    tangent.level.plain_duals = True
    return True


def with_batched_duals(
    level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of an operator among which there is a batched one: plain duals as batched duals. Note [Plain duals]."""
    observers = local.state.observers
    seen = [at for at in process.dual_levels if at.observer in observers]
    if not seen:
        return args, kwargs

    def one(value: Any) -> Any:
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], Tensor):
            return type(value)(one(part) for part in value)
        if not isinstance(value, Tensor) or value._special_ is not None:
            return value
        for at in seen:
            tangent = fw_grad(value, at)
            if tangent is not None and is_batched(tangent, level):
                with seeing_levels_outside(at):
                    primal = wrap(spread(value, level).clone(), level)
                value = dual(primal, tangent, at.index)
        return value

    return tuple([one(value) for value in args]), {name: one(value) for name, value in kwargs.items()}


def zeros_for(tensor: Tensor, tangent: Any) -> Tensor:
    """Zeros that lie as `tensor` does, one for each example of a batched `tangent`."""
    return tangent.new_empty_strided(tensor.shape, tensor.stride()).zero_()


def undual(tensor: Tensor, level: int | None = None) -> UnpackedDualTensor:
    """`unpack_dual` of a batched tensor."""
    primal, tangent = unpack_dual(tensor.value, level=level)  # type: ignore[attr-defined]
    at, bdim = tensor.level, tensor.bdim  # type: ignore[attr-defined]
    return UnpackedDualTensor(wrap(primal, at, bdim), None if tangent is None else wrap(tangent, at, bdim))


__all__ = [
    "dual", "gradients", "logical", "physical", "plain_of", "stays_plain", "undual", "variable", "with_batched_duals",
    "zeros_for",
]
