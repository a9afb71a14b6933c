"""Custom functions under forward mode: calls ``jvp`` and checks what it returns.

For each open dual level (forward_ad.py) at which an input has a tangent, ``jvp`` gets the tangents of the inputs and
gives those of the outputs.  What ``forward`` has returned as a view must have a tangent that is the same view, and what
it has modified in place a tangent that was modified in place: Note [Forward gradients of views] in forward_grad.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.state import local, process
from ..tensor import Tensor
from .forward_grad import Level, forward_view
from .forward_operators import seeing_levels_outside, set_tangent, tangents_of
from .function_ctx import zeros_of
from .function_structure import put_together
from .intercept import learn_modes
from .view_meta import FORWARD_BASE


def run_jvp(cls: Any, ctx: Any, tensors: Sequence[Tensor], raw: Sequence[Any], results: Sequence[Any]) -> None:
    """Give each output its tangents. `raw` are forward()'s outputs, `results` what apply() will return."""
    state = local.state
    learn_modes(state)
    observers = state.observers
    for level in process.dual_levels:
        # (Within a formula or another jvp, there are levels that are not to be seen.)
        tangents = tangents_of(tensors, level) if level.observer in observers else None
        if tangents is not None:
            with seeing_levels_outside(level):
                _run_at(level, cls, ctx, tensors, tangents, raw, results)


def _run_at(
    level: Level,
    cls: Any,
    ctx: Any,
    tensors: Sequence[Tensor],
    tangents: Sequence[Tensor | None],
    raw: Sequence[Any],
    results: Sequence[Any],
) -> None:
    versions = [None if tangent is None else tangent._version for tangent in tangents]
    answer = cls.jvp(ctx, *_arguments(ctx, tensors, tangents))
    leaves = _answers(cls, ctx, answer)
    undifferentiable = ctx.non_differentiable or ()
    for position, (value, result, tangent) in enumerate(zip(raw, results, leaves)):
        if not isinstance(value, Tensor) or value._memory_.dtype.kind not in "fcVW" or _among(value, undifferentiable):
            if tangent is not None:
                raise RuntimeError(
                    f"{cls.__name__}.jvp returned a gradient at position {position}, but the corresponding forward "
                    "output is not differentiable or not a Tensor. You should return None at that position instead"
                )
            continue
        if tangent is None:
            continue
        if not isinstance(tangent, Tensor):
            raise RuntimeError(
                f"expected Variable or None (got {type(tangent).__name__}): {cls.__name__}.jvp must return a Tensor or "
                f"None at position {position}"
            )
        dirty = _among(value, ctx.dirty_tensors or ())
        if dirty:
            written = next(i for i, tensor in enumerate(tensors) if tensor is value)
            if tangents[written] is not None:
                if tangent is not tangents[written] or tangent._version == versions[written]:
                    raise RuntimeError(
                        "An inplace custom Function is not modifying the forward mode gradients inplace. If the "
                        "forward is modifying an input inplace, then the jvp function must modify the corresponding "
                        f"gradient inplace and return it. (In {cls.__name__}, output {position}.)"
                    )
                continue
        elif _forward_base(result) is not None:
            _check_view(cls, position, result, tangent, tensors, tangents)
        set_tangent(result, tangent, level, inplace=dirty)


def _arguments(ctx: Any, tensors: Sequence[Tensor], tangents: Sequence[Tensor | None]) -> list[Any]:
    """One per argument of apply(), nested as that: the tangent of a tensor, None of everything else."""
    given = iter(zip(tensors, tangents))
    leaves: list[Any] = []
    for is_tensor in ctx._is_tensor_input:
        if not is_tensor:
            leaves.append(None)
            continue
        tensor, tangent = next(given)
        data = tensor._memory_
        if tangent is None and ctx.materialize_grads and data.dtype.kind in "fcVW":
            tangent = zeros_of((data.shape, data.dtype, data.__class__))
        leaves.append(tangent)
    return put_together(ctx._input_structures, leaves)


def _answers(cls: Any, ctx: Any, answer: Any) -> list[Any]:
    """What jvp returned, taken apart as the outputs were."""
    if not isinstance(answer, tuple):
        answer = (answer,)
    elif len(ctx._output_structures) == 1 and ctx._output_structures[0].kind is tuple and len(answer) != 1:
        answer = (answer,)
    if len(answer) != len(ctx._output_structures):
        raise RuntimeError(
            "Function's jvp returned an invalid number of forward gradients (expected "
            f"{len(ctx._output_structures)} but got {len(answer)}): {cls.__name__}.jvp must return one for each output "
            "of forward"
        )

    def complain(what: str) -> Exception:
        return RuntimeError(f"{cls.__name__}.jvp returned tangents that are not nested as the outputs were: {what}")

    leaves: list[Any] = []
    for structure, part in zip(ctx._output_structures, answer):
        leaves += structure.match(part, complain)
    return leaves


def _check_view(
    cls: Any, position: int, output: Tensor, tangent: Tensor, tensors: Sequence[Tensor], tangents: Sequence[Any]
) -> None:
    """An output that is a view of an input must have a tangent that is the same view of that input's tangent."""
    base = _forward_base(output)
    for tensor, given in zip(tensors, tangents):
        if given is None or not (tensor is base or _forward_base(tensor) is base):
            continue
        start = (
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view"
        )
        end = f" (In {cls.__name__}, output {position}: take the same view of the tangent, e.g. x_t.view_as(x_t).)"
        if not tangent._is_view():
            raise RuntimeError(start + "." + end)
        if tangent._base is not (given._base if given._is_view() else given):
            whose = "of the given tangent" if tensor is base else "of the same base"
            raise RuntimeError(f"{start} {whose}: it is a view of something else.{end}")
        return


def _forward_base(tensor: Tensor) -> Tensor | None:
    """Whose tangent the tangent of `tensor` is a view of."""
    meta: Any = tensor._grad_meta_
    if meta is None or not meta.is_view or meta.forward is FORWARD_BASE:
        return None
    return forward_view(meta)[0]


def _among(tensor: Any, tensors: Sequence[Any]) -> bool:
    return any(tensor is other for other in tensors)
