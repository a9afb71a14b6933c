"""Forward-mode differentiation: dual tensors, and how operators carry tangents along.

While a dual level is open, its observer (intercept.py) is around every operator of the thread: the operator runs, and
if an argument has a tangent, the operator's forward formula (``_generated/jvps.py``) gives the tangent of the result.
Without an open level nothing of this exists.  Backward passes run on Tensors meanwhile, so that forward over reverse
works; formulas are made of differentiable operators, so that reverse over forward does.

forward_grad.py has the rules for tangents, Note [Forward gradients of views] and Note [Nested levels].
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..tensor import Tensor
from .forward_grad import Level, attach, fw_grad, has_fw_grad, set_fw_grad
from .grad_mode import _Mode
from .intercept import new_node, set_observers
from .saved_variable import raw_saved_output
from .state import ThreadState, local
from .view_meta import FORWARD_BASE

if TYPE_CHECKING:
    from collections.abc import Callable

    from .forward_formula import ForwardFormula

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns."""

    primal: Tensor
    tangent: Tensor | None


# --------------------------------------------------------------------------------------------------------------- levels


def enter_dual_level(*, nested: bool = False) -> int:
    """Open a dual level and return its number; `dual_level` is the better way.

    As in torch, this refuses to open a level within another one, unless `nested` says that it is meant.
    """
    state = local.state
    index = len(state.dual_levels)
    if index and not nested:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment by enter_dual_level() alone, as in torch. Here "
            "levels do nest: write `with dual_level():`, or enter_dual_level(nested=True)"
        )
    level = Level(index)
    level.observer = _observer(level)
    level.needed_tensors = state.needs_tensors
    state.needs_tensors = True
    state.dual_levels = (*state.dual_levels, level)
    set_observers(state, (*state.observers, level.observer))
    return index


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the innermost dual level: what was dual at it no longer is."""
    state = local.state
    levels = state.dual_levels
    if level is None:
        level = len(levels) - 1
    if not levels or level < 0:
        raise RuntimeError("Dual level must be a positive number: there is no open dual level to exit.")
    if level != len(levels) - 1:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    closing = levels[-1]
    state.dual_levels = levels[:-1]
    state.needs_tensors = closing.needed_tensors
    set_observers(state, tuple(o for o in state.observers if o is not closing.observer))
    closing.clear()


class dual_level(_Mode):
    """A dual level for as long as the block runs; as a decorator, for as long as the function does. Levels nest.

    >>> import retrograd as torch
    >>> import retrograd.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.tensor(3.), torch.tensor(1.))
    ...     fwAD.unpack_dual(x * x).tangent
    tensor(6.)
    """

    def __enter__(self) -> int:
        self._level = enter_dual_level(nested=True)
        return self._level

    def __exit__(self, *exc_info: object) -> None:
        exit_dual_level(level=self._level)


def __getattr__(name: str) -> Any:
    if name == "_current_level":
        return len(local.state.dual_levels) - 1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _level(number: int | None) -> Level | None:
    """An open level by its number; the innermost for None; None if there is no such level."""
    levels = local.state.dual_levels
    number = len(levels) - 1 if number is None else number
    return levels[number] if 0 <= number < len(levels) else None


class _set_fwd_grad_enabled(_Mode):
    """Switch forward mode on or off in this thread, at once and until the block ends: off, no tensor has a tangent."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.before = local.state.fw_grad_enabled
        local.state.fw_grad_enabled = mode

    def __enter__(self) -> None:
        local.state.fw_grad_enabled = self.mode

    def __exit__(self, *exc_info: object) -> None:
        local.state.fw_grad_enabled = self.before

    def clone(self) -> _set_fwd_grad_enabled:
        return _set_fwd_grad_enabled(self.mode)


set_forward_grad_enabled = _set_fwd_grad_enabled


def _is_fwd_grad_enabled() -> bool:
    """Do tensors of this thread show their tangents?"""
    return local.state.fw_grad_enabled


# --------------------------------------------------------------------------------------------------------- dual tensors


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """An alias of `tensor` with a tangent: a dual tensor, whose tangent operators carry along.

    >>> import retrograd as torch
    >>> import retrograd.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.tensor([1., 2.]), torch.tensor([1., 0.]))
    ...     fwAD.unpack_dual((x ** 3).sum()).tangent
    tensor(3.)
    """
    if not isinstance(tensor, Tensor) or not isinstance(tangent, Tensor):
        name, value = ("tangent", tangent) if isinstance(tensor, Tensor) else ("tensor", tensor)
        raise TypeError(f"make_dual(): argument '{name}' must be Tensor, not {type(value).__name__}")
    at = _level(level)
    if at is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if tensor._data.dtype.kind not in "fcV":
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if tangent._data.dtype.kind not in "fcV":
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    if tensor._meta is not None and fw_grad(tensor, at) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level "
            f"{at.index} is not supported."
        )
    within = local.state.dual_levels[at.index + 1 :]
    if within and any(fw_grad(t, inner) is not None for inner in within for t in (tensor, tangent)):
        raise RuntimeError(
            f"Making a dual Tensor at level {at.index} of a Tensor that is dual at a level within it is not supported. "
            "Make it dual at the outer level first."
        )
    with seeing_levels_outside(at):
        return set_fw_grad(_alias(tensor), tangent, at, layout=tensor)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal (an alias of `tensor` that is not dual at this level) and the tangent, None if there is none.

    >>> import retrograd as torch
    >>> import retrograd.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.tensor(1.), torch.tensor(2.))
    ...     fwAD.unpack_dual(x)
    UnpackedDualTensor(primal=tensor(1.), tangent=tensor(2.))
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"unpack_dual(): argument 'tensor' must be Tensor, not {type(tensor).__name__}")
    at = _level(level)
    if at is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(_fw_primal(tensor, at), _fw_tangent(tensor, at))


def _alias(tensor: Tensor) -> Tensor:
    """The same memory, in a view that shares history with `tensor` but no tangents: neither gets the other's."""
    result = _alias_operator()(tensor)
    meta: Any = result._meta
    if meta is not None and meta.is_view:
        meta.forward = FORWARD_BASE
    return result


@cache
def _alias_operator() -> Callable[[Tensor], Tensor]:
    from ..ops import alias  # the operators import this package

    return alias


def _fw_primal(tensor: Tensor, level: Level) -> Tensor:
    """`tensor` without its tangent at `level`, but with all others."""
    with seeing_levels_outside(level):
        primal = _alias(tensor)
    for inner in local.state.dual_levels[level.index + 1 :]:
        tangent = fw_grad(tensor, inner)
        if tangent is not None:
            set_fw_grad(primal, _fw_primal(tangent, level), inner)
    return primal


def _fw_tangent(tensor: Tensor, level: Level) -> Tensor | None:
    """The tangent at `level`. At the levels within, it varies as the tangents there do at this one."""
    from ..ops import zeros_like

    tangent = fw_grad(tensor, level)
    for inner in local.state.dual_levels[level.index + 1 :]:
        within = fw_grad(tensor, inner)
        mixed = None if within is None else _fw_tangent(within, level)
        if mixed is not None:
            with seeing_levels_outside(level):
                tangent = zeros_like(tensor) if tangent is None else _alias(tangent)
            set_fw_grad(tangent, mixed, inner)
    return tangent


# ---------------------------------------------------------------------- for custom functions and others without formula


class seeing_levels_outside:
    """Operators see the dual levels outside of `level`, and whatever else was around when that was opened."""

    __slots__ = ("before", "level")

    def __init__(self, level: Level) -> None:
        self.level = level

    def __enter__(self) -> None:
        state = local.state
        observers = state.observers
        self.before = observers, state.interceptor
        if len(observers) == 1 and observers[0] is self.level.observer:
            state.observers, state.interceptor = (), None
        else:
            set_observers(state, _observers_outside(state, self.level))

    def __exit__(self, *exc_info: object) -> None:
        state = local.state
        state.observers, state.interceptor = self.before


def _observers_outside(state: ThreadState, level: Level) -> tuple[Callable, ...]:
    observers = state.observers
    return observers[: observers.index(level.observer)] if level.observer in observers else ()


def tangents_of(tensors: Sequence[Any], level: Level) -> list[Tensor | None] | None:
    """The tangents of those that have one; None if none has."""
    tangents = [fw_grad(t, level) if isinstance(t, Tensor) else None for t in tensors]
    return tangents if any(t is not None for t in tangents) else None


def set_tangent(result: Tensor, tangent: Tensor | None, level: Level, inplace: bool = False) -> None:
    """Give a result its tangent; `inplace`: `result` is an argument that was written to, and may have one already."""
    old = fw_grad(result, level) if inplace else None
    if result._data.dtype.kind not in "fcV":
        return
    if old is not None:
        if tangent is None:
            old.zero_()  # type: ignore[attr-defined]
        elif tangent is not old:
            old.copy_(tangent)  # type: ignore[attr-defined]
    elif tangent is not None:
        set_fw_grad(result, tangent, level, inplace)


def zero_tangents_(tensor: Tensor) -> None:
    """For a write that no operator makes, such as a random fill: what was written does not vary."""
    for level in local.state.dual_levels:
        tangent = fw_grad(tensor, level)
        if tangent is not None:
            with seeing_levels_outside(level):
                tangent.zero_()  # type: ignore[attr-defined]


def forbid_out(name: str, tensors: Sequence[Tensor]) -> None:
    """Refuse ``out=`` with dual tensors."""
    if local.state.dual_levels and any(has_fw_grad(t) for t in tensors):
        raise RuntimeError(
            f"Trying to use forward AD with {name} that does not support it because it is an out= function"
        )


# ------------------------------------------------------------------------------------------------------- every operator


@cache
def _formulas() -> dict[Any, tuple[ForwardFormula, bool]]:
    """For each operator of the table, and its in-place variant: the formula, and whether it is in place."""
    from .._generated import functions, jvps  # they import this package

    found = {}
    for name, formula in jvps.FORWARD.items():
        found[getattr(functions, name)] = (formula, False)
        inplace = getattr(functions, name + "_", None)
        if inplace is not None:
            found[inplace] = (formula, True)
    return found


def _observer(level: Level) -> Callable[..., Any]:
    """What is around every operator while `level` is open."""
    formulas = _formulas()

    def carry_tangents(operator: Callable, args: tuple, kwargs: dict, proceed: Callable[[], Any]) -> Any:
        state = local.state
        if not state.fw_grad_enabled:
            return proceed()
        found = formulas.get(operator)
        if found is None:
            return _without_formula(operator, args, proceed, level)
        formula, inplace = found
        if formula.spread is not None:
            args = (*args[: formula.spread], args[formula.spread :])
        if kwargs:
            args = (*args, *kwargs.values())
        tangents: dict[int, Any] = {}
        for position in formula.positions:
            arg = args[position]
            if arg.__class__ is Tensor or isinstance(arg, Tensor):
                if arg._meta is not None:
                    tangent: Any = fw_grad(arg, level)
                    if tangent is not None:
                        tangents[position] = tangent
            elif formula.plan[position] is list:
                tangent = tangents_of(arg, level)
                if tangent is not None:
                    tangents[position] = tangent
        if not tangents:
            return proceed()
        if formula.function is None:
            raise NotImplementedError(
                f"Trying to use forward AD with {formula.name} that does not support it because it has not been "
                "implemented yet."
            )
        if inplace or not formula.plain or len(state.observers) > 1:
            return _with_formula(state, level, formula, inplace, args, tangents, proceed)
        # The commonest case, in a straight line: a new tensor, one level, nobody else looking.
        since = state.sequence_nr
        result = proceed()
        recorded = state.sequence_nr != since
        parameters = [result]
        for position, varies in enumerate(formula.plan):
            parameters.append(args[position])
            if varies:
                parameters.append(tangents.get(position))  # type: ignore[arg-type]
        made = formula.function(*parameters)
        for tangent in tangents.values():
            if tangent is made:
                _set_results(formula, result, made, tangents, level)
                break
        else:
            if made.__class__ is not Tensor or not attach(result, made, level):
                _set_results(formula, result, made, tangents, level)
        if recorded:
            _tell_node(new_node(result, since), formula, result, None)
        return result

    return carry_tangents


def _without_formula(operator: Callable, args: tuple, proceed: Callable[[], Any], level: Level) -> Any:
    """An operator whose result does not vary. If it is in place, what it has written to no longer varies."""
    result = proceed()
    if operator.__name__.endswith("_") and args and isinstance(args[0], Tensor):
        tangent = fw_grad(args[0], level)
        if tangent is not None:
            with seeing_levels_outside(level):
                tangent.zero_()  # type: ignore[attr-defined]
    return result


def _with_formula(
    state: ThreadState,
    level: Level,
    formula: ForwardFormula,
    inplace: bool,
    args: tuple,
    tangents: dict[int, Any],
    proceed: Callable[[], Any],
) -> Any:
    """Run the operator, then its formula, and give the results their tangents."""
    outside = _observers_outside(state, level) if level.index or len(state.observers) > 1 else ()
    original = None
    observers, interceptor = state.observers, state.interceptor
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
        finally:
            state.observers, state.interceptor = observers, interceptor
    since = state.sequence_nr
    result = proceed()
    recorded = state.sequence_nr != since
    if outside:
        set_observers(state, outside)
    try:
        made = formula.function(*_parameters(formula, result, args, tangents, original))  # type: ignore[misc]
        if inplace:
            _set_inplace(args[0], made, tangents, level)
        else:
            _set_results(formula, result, made, tangents, level)
        if recorded:
            _tell_node(new_node(result, since), formula, result, original)
    finally:
        state.observers, state.interceptor = observers, interceptor
    return result


def _unless_overwritten(arg: Any, target: Tensor) -> Any:
    """An argument as the formula is to see it: ``x.mul_(x)`` multiplies by what was there before."""
    if isinstance(arg, Tensor) and (arg is target or np.may_share_memory(arg._data, target._data)):
        return arg.clone()  # type: ignore[attr-defined]
    return arg


def _parameters(
    formula: ForwardFormula, result: Any, args: tuple, tangents: dict[int, Any], original: Tensor | None
) -> list[Any]:
    """What the formula is called with: the results, and the arguments, those that can vary as primal and tangent."""
    parameters: list[Any] = [result] if len(formula.results) == 1 else list(result)
    for position, kind in enumerate(formula.plan):
        arg = args[position]
        if not kind:
            parameters.append(arg)
        elif position == 0 and original is not None:
            parameters += (original, tangents.get(0))
        else:
            parameters += (arg, tangents.get(position))
    return parameters


def _set_results(formula: ForwardFormula, result: Any, made: Any, tangents: dict[int, Any], level: Level) -> None:
    """Give each result the tangent that the formula made for it."""
    results = result if isinstance(result, tuple) else (result,)
    made = made if isinstance(made, (tuple, list)) else (made,)
    for one, tangent in zip(results, made, strict=False):
        if isinstance(tangent, Tensor) and one._data.dtype.kind in "fcV":
            if not formula.view:
                tangent = _as_result(tangent, one, tangents, level)
            set_fw_grad(one, tangent, level)


def _set_inplace(tensor: Tensor, made: Any, tangents: dict[int, Any], level: Level) -> None:
    if tensor._data.dtype.kind not in "fcV":
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
    mine, theirs = tangent._data, result._data
    if mine.shape != theirs.shape:
        tangent = tangent.expand(theirs.shape)  # type: ignore[attr-defined]
    if mine.dtype != theirs.dtype:
        wider = np.result_type(mine.dtype, theirs.dtype)
        if wider != mine.dtype:
            return tangent.to(wider)  # type: ignore[attr-defined]
    meta: Any = tangent._meta
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
            meta = results[output_nr]._meta
            saved.fw_grad = None if meta is None else meta.fw_grad
    if original is not None and isinstance(getattr(node, "self_", None), Tensor):
        node.self_ = original


def tangent_for_printing(tensor: Tensor) -> Tensor | None:
    """What ``repr(tensor)`` shows: the tangent at the innermost level."""
    at = _level(None)
    return None if at is None else fw_grad(tensor, at)
