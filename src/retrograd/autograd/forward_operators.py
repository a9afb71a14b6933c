"""How operators carry tangents along.

A dual level's observer (intercept.py) is around every operator of the thread: the operator runs, and if an argument
has a tangent, the operator's forward formula (``_generated/jvps.py``) gives the tangent of the result.

Formulas run over bare arrays where nothing of it is recorded, and else on Tensors, which are differentiable operators
themselves.  What they are given then are primals: a tangent does not vary at its own level, and so must not depend on
anything that does.  Note [Nested levels] in forward_grad.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.description import NoArray
from ..core.meta import AutogradMeta
from ..core.quiet import quietly
from ..core.records import record_of, records
from ..core.state import ThreadState, local, process
from ..core.version_counter import version_counter
from ..kernels import as_array, ndarray
from ..tensor import Tensor, new, wrap
from ..tensor.lazy_conjugation import keep_bits
from ..tensor.special import bare, boxed
from .edge import gradient_edge
from .forward_grad import Level, attach, attach_view, fw_grad, has_fw_grad, set_fw_grad
from .intercept import catch_up, intercept, interceptor_of, new_node, set_observers
from .saved_variable import raw_saved_output

if TYPE_CHECKING:
    from collections.abc import Callable

    from .forward_formula import ForwardFormula

# ---------------------------------------------------------------------- for custom functions and others without formula


class seeing_levels_outside:
    """Operators see the dual levels outside of `level`, and whatever else was around when that was opened."""

    __slots__ = ("before", "level")

    before: Any

    def __init__(self, level: Level) -> None:
        self.level: Level = level

    def __enter__(self) -> None:
        state = local.state
        observers = state.observers
        self.before = state.known_modes, observers, state.interceptor
        if len(observers) == 1 and observers[0] is self.level.observer:
            state.observers, state.interceptor = (), None
        else:
            outside = _observers_outside(state, self.level)
            interceptor = interceptor_of(outside)
            state.observers, state.interceptor = outside, interceptor

    def __exit__(self, *exc_info: object) -> None:
        state = local.state
        state.known_modes, state.observers, state.interceptor = self.before
        if not state.observers and state.known_modes is not process.modes:
            state.interceptor = catch_up


def _observers_outside(state: ThreadState, level: Level) -> tuple[Callable[..., Any], ...]:
    observers = state.observers
    return observers[: observers.index(level.observer)] if level.observer in observers else ()


def hide_levels(state: ThreadState, outputs: Any, grads: Sequence[Tensor]) -> None:
    """For a backward pass: hide the levels at which nothing that it starts from varies. Note [Nested levels]."""
    starts = (outputs, *grads) if isinstance(outputs, Tensor) else (*outputs, *grads)
    hidden = [
        level.observer
        for level in process.dual_levels
        if level.observer in state.observers
        and all(isinstance(start, Tensor) and not _varies(start, level) for start in starts)
    ]
    if hidden:
        set_observers(state, tuple(observer for observer in state.observers if observer not in hidden))


def _varies(tensor: Tensor, level: Level) -> bool:
    """Has a tensor a tangent at a level, or what it is made of?"""
    if tensor._special_ is not None and not tensor._needs_tensors_:  # type: ignore[attr-defined]
        return any(_varies(held, level) for held in tensor._held_)  # type: ignore[attr-defined]
    return fw_grad(tensor, level) is not None


def tangents_of(tensors: Sequence[Any], level: Level) -> list[Tensor | None] | None:
    """The tangents of those that have one; None if none has."""
    tangents = [fw_grad(t, level) if isinstance(t, Tensor) else None for t in tensors]
    return tangents if any(t is not None for t in tangents) else None


def tangents_by_level(tensor: Tensor) -> dict[Level, Tensor]:
    """All tangents of a tensor."""
    found = {level: fw_grad(tensor, level) for level in process.dual_levels}
    return {level: tangent for level, tangent in found.items() if tangent is not None}


def set_tangent(result: Tensor, tangent: Tensor | None, level: Level, inplace: bool = False) -> None:
    """Give a result its tangent; `inplace`: `result` is an argument that was written to, and may have one already."""
    old = fw_grad(result, level) if inplace else None
    if result._memory_.dtype.kind not in "fcVW":
        return
    if old is not None:
        if tangent is None:
            old.zero_()  # type: ignore[attr-defined]
        elif tangent is not old:
            old.copy_(tangent)  # type: ignore[attr-defined]
    elif tangent is not None:
        set_fw_grad(result, tangent, level, inplace)


def forbid_out(name: str, tensors: Iterable[Any]) -> None:
    """Refuse ``out=`` with dual tensors."""
    if process.dual_levels and any(isinstance(t, Tensor) and has_fw_grad(t) for t in tensors):
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function. "
            "Leave out= away."
        )


def forbid_duals(name: str, *tensors: Any) -> None:
    """Refuse dual tensors, for a composite that computes on bare arrays what a derivative would be expected of."""
    if process.dual_levels and any(isinstance(t, Tensor) and has_fw_grad(t) for t in tensors):
        raise NotImplementedError(not_implemented(name))


# ------------------------------------------------------------------------------------------------------- every operator


@cache
def _formulas() -> dict[Any, tuple[ForwardFormula, bool]]:
    """For each operator of the table, and its in-place variant: the formula, and whether it is in place."""
    from .._generated import jvps  # it imports this module

    found = {}
    for operator, record in records().items():
        formula = jvps.FORWARD.get(record.form_of or record.name)
        if formula is not None:
            found[operator] = (formula, record.writes)
    return found


class CarryTangents:
    """What is around every operator while a dual level is open: an observer (intercept.py)."""

    __slots__ = ("formulas", "level", "short_cuts")

    needs_tensors = True

    def __init__(self, level: Level) -> None:
        self.level: Level = level
        self.formulas: dict[Any, tuple[ForwardFormula, bool]] = _formulas()
        self.short_cuts = _short_cuts()

    def end(self) -> None:
        """The level is closed: a thread that has not heard of it yet goes the way on which it will."""
        self.short_cuts = {}

    def __call__(
        self, operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any], proceed: Callable[[], Any]
    ) -> Any:
        state, level = local.state, self.level
        if not state.fw_grad_enabled:
            return proceed()
        found = self.formulas.get(operator)
        if found is None:
            return _without_formula(operator, args, proceed, level)
        formula, inplace = found
        if formula.spread is not None:
            args = (*args[: formula.spread], args[formula.spread :])
        if kwargs:
            args = (*args, *kwargs.values())
        tangents = _tangents(formula, args, level)
        if not tangents:
            return proceed()
        if formula.refused and not tangents.keys().isdisjoint(formula.refused):
            raise NotImplementedError(not_implemented(formula.name))
        return _with_formula(state, level, formula, inplace, args, tangents, proceed)

    def alone(self, operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any]) -> Any:
        """The thread's interceptor while nobody else looks: kernel and formula in one, over bare arrays."""
        short_cut = self.short_cuts.get(operator)
        if short_cut is not None:
            state = local.state
            if state.fw_grad_enabled and state.known_modes is process.modes:
                level = self.level
                try:
                    result = short_cut(state, level, *args, **kwargs)
                except RuntimeWarning:  # see quiet.py
                    result = quietly(short_cut, state, level, *args, **kwargs)
                except NoArray:  # a special tensor
                    result = None
                if result is UNVARIED:
                    this, state.interceptor = state.interceptor, None
                    try:
                        return operator(*args, **kwargs)
                    finally:
                        state.interceptor = this
                if result is not None:
                    return result
        return intercept(operator, args, kwargs)


def not_implemented(name: str) -> str:
    """The text of the error for an operator that has no forward formula."""
    return (
        f"Trying to use forward AD with {name} that does not support it because it has not been implemented yet.\n"
        "It has no forward formula. Use reverse mode here, or wrap the call in a torch.autograd.Function with a jvp of "
        "your own; or add the formula, as the column 'result' of the operator's entry in derivatives/, and send it in."
    )


def _tangents(formula: ForwardFormula, args: tuple[Any, ...], level: Level) -> dict[int, Any]:
    """The tangents of the arguments that have one, by position."""
    tangents: dict[int, Any] = {}
    for position in formula.positions:
        arg = args[position]
        if arg.__class__ is Tensor or isinstance(arg, Tensor):
            tangent: Any = None if arg._grad_meta_ is None else fw_grad(arg, level)
        else:
            tangent = tangents_of(arg, level) if formula.plan[position] is list else None
        if tangent is not None:
            tangents[position] = tangent
    return tangents


def _without_formula(
    operator: Callable[..., Any], args: tuple[Any, ...], proceed: Callable[[], Any], level: Level
) -> Any:
    """An operator whose result does not vary. If it is in place, what it has written to no longer varies."""
    result = proceed()
    record = record_of(operator)
    if record is not None and record.writes:
        tangent = fw_grad(args[0], level)
        if tangent is not None:
            with seeing_levels_outside(level):
                tangent.zero_()  # type: ignore[attr-defined]
    return result


# ---------------------------------------------------------------------- short cuts, for one level that nobody else sees

#: What operators hand to their kernels as it is.
NUMBERS = frozenset((int, float, complex, bool, str, type(None)))

#: Instead of the tangent of a tensor that requires grad, or whose tangent does.
RECORDED: Any = object()

#: Instead of a result: no argument is dual.
UNVARIED: Any = object()


@cache
def _short_cuts() -> dict[Any, Callable[..., Any]]:
    """For each operator that has one: ``short_cut(state, level, *args, **kwargs)``.

    It gives the result, UNVARIED if no argument is dual, or None where it does not apply.
    """
    found: dict[Any, Callable[..., Any]] = {}
    for operator, (formula, inplace) in _formulas().items():
        if formula.view and not inplace:
            found[operator] = partial(_view, operator)
        elif formula.duals is not None and not inplace:
            found[operator] = formula.duals
    return found


def tangent_array(state: ThreadState, tensor: Tensor, level: Level) -> Any:
    """The tangent of a tensor, if it has one, as an array; RECORDED if operations on either are recorded."""
    meta: Any = tensor._grad_meta_
    recording = state.grad_enabled
    if meta is None:
        return RECORDED if recording else None  # it has an edge, or it would not be here
    forward_grad = meta.fw_grad
    tangent = None if forward_grad is None else forward_grad.values.get(level)
    if meta.is_view:
        if tangent is None:
            tangent = fw_grad(tensor, level)
        if recording and (meta.edge is not None or meta.requires_grad or meta.base.requires_grad):
            return RECORDED
    elif recording and (tensor._edge_ is not None or meta.requires_grad):
        return RECORDED
    if tangent is None:
        return None
    if recording and (tangent._edge_ is not None or (tangent._grad_meta_ is not None and tangent.requires_grad)):
        return RECORDED
    return tangent._numbers_


def dual_result(state: ThreadState, level: Level, array: Any, made: Any, is_given: bool) -> Tensor | None:
    """A new dual tensor, of arrays that a kernel and a formula have made; `is_given`: that is an argument's tangent."""
    if (
        is_given
        or made.__class__ is not ndarray
        or made.dtype is not array.dtype
        or made.strides != array.strides
        or made.shape != array.shape
        or made.base is not None
        or array.base is not None
    ):
        return _fitted(state, level, array, made)
    result = new(Tensor)
    result._numbers_ = array
    result._vc_ = state.new_vc
    result._edge_ = None
    tangent = new(Tensor)
    tangent._numbers_ = made
    tangent._vc_ = tangent._grad_meta_ = tangent._edge_ = None
    meta = result._grad_meta_ = AutogradMeta()
    meta.fw_grad = attach(tangent, level)
    return result


def _fitted(state: ThreadState, level: Level, array: Any, made: Any) -> Tensor | None:
    """The same where the tangent does not have the shape, dtype and layout of the result, in memory of its own."""
    if made is None or array.dtype.kind not in "fcVW":
        return None
    made = as_array(made)
    if made.dtype.kind in "cW" and array.dtype.kind not in "cW":
        return None
    fresh = np.empty_like(array)
    fresh[...] = made
    result = wrap(array, state.new_vc)
    set_fw_grad(result, wrap(fresh), level)
    return result


def _view(operator: Callable[..., Any], state: ThreadState, level: Level, *args: Any, **kwargs: Any) -> Any:
    """A view of a dual tensor: the same view of its tangent, whether it is recorded or not."""
    tensor = args[0]
    if not isinstance(tensor, Tensor):
        return None
    tangent = None if tensor._grad_meta_ is None else fw_grad(tensor, level)
    if tangent is None:
        return UNVARIED
    if tensor._special_ is not None:
        return None
    interceptor, state.interceptor = state.interceptor, None
    try:
        result = operator(*args, **kwargs)
        made = operator(tangent, *args[1:], **kwargs)
    finally:
        state.interceptor = interceptor
    for one, its in zip(result, made) if isinstance(result, tuple) else ((result, made),):
        if one._memory_.dtype.kind in "fcVW":
            attach_view(one, its, level)
    return result


# ----------------------------------------------------------------------------------------------------------- on Tensors


def _with_formula(
    state: ThreadState,
    level: Level,
    formula: ForwardFormula,
    inplace: bool,
    args: tuple[Any, ...],
    tangents: dict[int, Any],
    proceed: Callable[[], Any],
) -> Any:
    """Run the operator, then its formula, and give the results their tangents."""
    before = state.known_modes, state.observers, state.interceptor
    observers = state.observers
    outside = _observers_outside(state, level) if len(observers) > 1 else ()
    original = None
    if inplace:
        # The values that are about to be overwritten, with their history and the tangents of the levels outside.
        set_observers(state, outside)
        try:
            if formula.needs_original:
                original = args[0].clone()
                old = tangents.get(0)
                if old is not None and state.grad_enabled:
                    set_fw_grad(original, old.clone(), level)
            args = (args[0], *(_unless_overwritten(arg, args[0]) for arg in args[1:]))
            if 0 in tangents:
                old, apart = tangents[0], _tangent_apart(tangents[0], args[0], level)
                tangents = {position: apart if t is old else t for position, t in tangents.items()}
        finally:
            state.known_modes, state.observers, state.interceptor = before
    since = state.sequence_nr
    result = proceed()
    recorded = state.sequence_nr != since
    if outside or state.batch_levels:  # (a batched tangent has operators watched again: Note [Plain duals])
        set_observers(state, outside)
    try:
        primals = recorded or (state.grad_enabled and _any_requires_grad(tangents.values()))
        given = tangents
        if inplace and primals and 0 in tangents:
            given = {**tangents, 0: tangents[0].clone()}  # the formula may save it, and it is about to be overwritten
        made = formula.function(  # type: ignore[misc]
            *_parameters(formula, result, args, given, original, level if primals else None)
        )
        if inplace:
            _set_inplace(args[0], made, tangents, level)
        else:
            _set_results(formula, result, made, tangents, level)
        if recorded:
            _tell_node(new_node(result, since), formula, result, original)
    finally:
        state.known_modes, state.observers, state.interceptor = before
    return result


def _any_requires_grad(tangents: Any) -> bool:
    return any(
        _any_requires_grad(t) if t.__class__ is list else t is not None and t.requires_grad for t in tangents
    )


def _unless_overwritten(arg: Any, target: Tensor) -> Any:
    """An argument as the formula is to see it: ``x.mul_(x)`` multiplies by what was there before."""
    if isinstance(arg, Tensor) and (arg is target or _written_with(arg, target)):
        return arg.clone()  # type: ignore[attr-defined]
    return arg


def _written_with(tensor: Tensor, target: Tensor) -> bool:
    """Is a write to `target` one to `tensor`? Without elements they have no memory in common, but a version."""
    if tensor._special_ is not None:  # it has no memory of its own: a batched tangent of a plain tensor
        return False
    if np.may_share_memory(tensor._memory_, target._memory_):
        return True
    return not target._memory_.size and tensor._vc_ is not None and tensor._vc_ is target._vc_


def _tangent_apart(tangent: Any, target: Tensor, level: Level) -> Any:
    """The tangent of what is written to, in other memory than that: ``make_dual(x, x)`` gets its own for good."""
    if tangent is None or not _written_with(tangent, target):
        return tangent
    apart = tangent.clone()
    forward_grad = None if target._grad_meta_ is None else target._grad_meta_.fw_grad
    if forward_grad is not None and forward_grad.values.get(level) is tangent:
        forward_grad.values[level] = apart
    return apart


def _parameters(
    formula: ForwardFormula,
    result: Any,
    args: tuple[Any, ...],
    tangents: dict[int, Any],
    original: Tensor | None,
    level: Level | None,
) -> list[Any]:
    """What the formula is called with: the results, and the arguments, those that can vary as primal and tangent.

    `level`: what is given will be recorded, and therefore must not vary at that level.
    """
    parameters: list[Any] = [result] if len(formula.results) == 1 else list(result)
    if level is not None and len(process.dual_levels) == 1:
        # (With more levels, a result gets further tangents later, which its primal would miss.)
        parameters = [primal_of(r, level) if isinstance(r, Tensor) else r for r in parameters]
    for position, kind in enumerate(formula.plan):
        arg = args[position]
        if not kind:
            parameters.append(arg)
            continue
        if position == 0 and original is not None:
            arg = original
        if level is not None:
            if isinstance(arg, Tensor):
                arg = arg if position not in tangents else primal_of(arg, level)
            elif kind is list:
                arg = [primal_of(one, level) for one in arg]
        parameters += (arg, tangents.get(position))
    return parameters


def primal_of(tensor: Tensor, level: Level) -> Tensor:
    """The same values with the same history, and all tangents but that of `level`."""
    if tensor._special_ is None:
        primal = new(Tensor)
        primal._memory_ = tensor._memory_
    else:
        primal = boxed(bare(tensor))
    primal._vc_ = version_counter(tensor)
    primal._edge_ = gradient_edge(tensor)
    primal._grad_meta_ = None
    if tensor.__class__ is not Tensor:
        keep_bits(tensor, primal)
    if tensor._grad_meta_ is not None:
        for other in process.dual_levels:
            tangent = None if other is level else fw_grad(tensor, other)
            if tangent is not None:
                # The tangent of a level within varies at those outside of it.
                tangent = primal_of(tangent, level) if other.index > level.index else tangent
                set_fw_grad(primal, tangent, other)
    return primal


def _set_results(formula: ForwardFormula, result: Any, made: Any, tangents: dict[int, Any], level: Level) -> None:
    """Give each result the tangent that the formula made for it."""
    results = result if isinstance(result, tuple) else (result,)
    made = made if isinstance(made, (tuple, list)) else (made,)
    for one, tangent in zip(results, made, strict=False):
        if isinstance(tangent, Tensor) and one._memory_.dtype.kind in "fcVW":
            if formula.view:
                attach_view(one, tangent, level)
            else:
                set_fw_grad(one, _as_result(tangent, one, tangents, level), level)


def _set_inplace(tensor: Tensor, made: Any, tangents: dict[int, Any], level: Level) -> None:
    if tensor._memory_.dtype.kind not in "fcVW":
        return
    if not isinstance(made, Tensor):
        made = None
    old = tangents.get(0)
    if made is None or old is not None:
        set_tangent(tensor, made, level, inplace=True)
    else:
        set_fw_grad(tensor, _as_result(made, tensor, tangents, level), level, is_inplace=True)


def _as_result(tangent: Tensor, result: Tensor, tangents: dict[int, Any], level: Level) -> Tensor:
    """A formula's tangent in the shape and dtype of the result, and in memory of its own."""
    mine, theirs = tangent._memory_, result._memory_
    if mine.shape != theirs.shape:
        tangent = tangent.expand(theirs.shape)  # type: ignore[attr-defined]
    if mine.dtype != theirs.dtype and (mine.dtype.kind not in "cW" or theirs.dtype.kind in "cW"):
        return tangent.to(result.dtype)  # type: ignore[attr-defined]
    meta: Any = tangent._grad_meta_
    if meta is not None and meta.is_view:
        return tangent.clone()  # type: ignore[attr-defined]
    for given in tangents.values():
        if given is tangent or (given.__class__ is list and any(t is tangent for t in given)):
            return tangent.clone()  # type: ignore[attr-defined]
    # A formula may give back an argument, which is dual itself.
    return tangent if meta is None or fw_grad(tangent, level) is None else tangent.clone()  # type: ignore[attr-defined]


def _tell_node(node: Any, formula: ForwardFormula, result: Any, original: Tensor | None) -> None:
    """What the operator's node has saved by itself has no tangents: give it those, for forward over reverse."""
    if node is None:
        return
    results = result if isinstance(result, tuple) else (result,)
    for output_nr, name in enumerate(formula.results):
        if hasattr(node, name + "_vc"):
            saved = raw_saved_output(node, name, output_nr)
            meta = results[output_nr]._grad_meta_
            saved.fw_grad = None if meta is None else meta.fw_grad
    if original is not None and isinstance(getattr(node, "self_", None), Tensor):
        node.self_ = original
