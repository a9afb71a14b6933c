"""Forward-mode differentiation: dual levels and dual tensors, as users make and take them apart.

While a dual level is open, its observer (forward_operators.py) is around every operator of the thread and carries
tangents along.  Without an open level nothing of this exists.  Backward passes run on Tensors meanwhile, so that
forward over reverse works; formulas are made of differentiable operators, so that reverse over forward does.

forward_grad.py has the rules for tangents, Note [Forward gradients of views] and Note [Nested levels].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.late import operators as ops
from ..core.late import transforms
from ..core.state import local, process
from ..tensor import Tensor
from .forward_grad import Level, attach, fw_grad, set_fw_grad, zeros_of_layout
from .forward_operators import CarryTangents, seeing_levels_outside
from .grad_mode import F, _Mode, _not_yet_on
from .intercept import change_modes
from .view_meta import FORWARD_BASE

if TYPE_CHECKING:
    pass

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns."""

    primal: Tensor
    tangent: Tensor | None


# --------------------------------------------------------------------------------------------------------------- levels


def enter_dual_level(*, nested: bool = False) -> int:
    """Open a dual level and return its number; `dual_level` is the better way.

    As in torch, levels are the process's: all threads see the tangents, and this refuses to open a level where one is
    open, unless `nested` says that it is meant.  Within another thread's level there is none.
    """
    level = Level()
    try:
        _open(level, nested)
    except BaseException:  # Note [Interrupts and modes] in state.py
        _close(level)
        raise
    return level.index


def _open(level: Level, nested: bool) -> None:
    level.observer = CarryTangents(level)

    def change() -> None:
        identity, levels = local.state.identity, process.dual_levels
        if levels and process.levels_opened_by is not identity:
            raise RuntimeError(
                "Nested forward mode AD is not supported at the moment: another thread has opened a dual level, which "
                "all threads see. Make dual tensors at that one, or open one when it is closed"
            )
        if levels and not nested:
            raise RuntimeError(
                "Nested forward mode AD is not supported at the moment by enter_dual_level() alone, as in torch. Here "
                "levels do nest: write `with dual_level():`, or enter_dual_level(nested=True)"
            )
        level.index = len(levels)
        modes = (*process.modes, level.observer)
        process.dual_levels, process.levels_opened_by, process.modes = (*levels, level), identity, modes

    change_modes(change)


def _close(level: Level) -> None:
    """Close a level, if it is open."""

    def change() -> None:
        levels = tuple([other for other in process.dual_levels if other is not level])
        process.modes = tuple([mode for mode in process.modes if mode is not level.observer])
        process.dual_levels = levels

    change_modes(change)
    level.clear()
    if level.observer is not None:
        level.observer.end()
        level.observer = None  # which knows the level: no ring of the two is left behind


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the innermost dual level: what was dual at it no longer is."""
    levels = process.dual_levels
    if level is None:
        level = len(levels) - 1
    if not levels or level < 0:
        raise RuntimeError("Dual level must be a positive number: there is no open dual level to exit.")
    if level != len(levels) - 1:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    _close(levels[-1])


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
        level = self._level = Level()
        try:
            _open(level, nested=True)
        except BaseException:  # Note [Interrupts and modes] in state.py
            _close(level)
            raise
        return level.index

    def __exit__(self, *exc_info: object) -> None:
        try:
            exit_dual_level(level=self._level.index)
        except RuntimeError:
            raise
        except BaseException:
            _close(self._level)
            raise


def __getattr__(name: str) -> Any:
    if name == "_current_level":
        return len(process.dual_levels) - 1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _level(number: int | None) -> Level | None:
    """An open level by its number; the innermost for None; None if there is no such level."""
    levels = process.dual_levels
    number = len(levels) - 1 if number is None else number
    return levels[number] if 0 <= number < len(levels) else None


class _set_fwd_grad_enabled(_Mode):
    """Switch forward mode on or off in this thread, at once and until the block ends: off, no tensor has a tangent."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.before: bool = local.state.fw_grad_enabled
        local.state.fw_grad_enabled = mode

    def __call__(self, function: F) -> F:
        # As a decorator it is about the function alone.
        local.state.fw_grad_enabled = self.before
        return super().__call__(function)

    def __enter__(self) -> None:
        local.state.fw_grad_enabled = self.mode

    def __exit__(self, *exc_info: object) -> None:
        local.state.fw_grad_enabled = self.before

    def clone(self) -> _set_fwd_grad_enabled:
        return _not_yet_on(self, local.state.fw_grad_enabled)


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
    if tensor._special_ is not None:
        own = tensor._make_dual_(tangent, level)  # type: ignore[attr-defined]
        if own is not NotImplemented:
            return own
    at = _level(level)
    if at is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if tensor._memory_.dtype.kind not in "fcVW":
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if tangent._memory_.dtype.kind not in "fcVW":
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    if local.state.batch_levels and tangent._special_ is not None and tangent._transparent_:  # type: ignore[attr-defined]
        if not transforms("levels").stays_plain(tensor, tangent):
            return transforms("levels").dual(tensor, tangent, level)
    if tensor._grad_meta_ is not None or tangent._grad_meta_ is not None:
        _check_dual(tensor, tangent, at)
    dual = _alias(tensor, at)
    if (
        dual._grad_meta_ is None
        or dual.__class__ is not Tensor
        or tangent._grad_meta_ is not None
        or tensor._special_ is not None
        or tangent._special_ is not None
        or not _laid_out_alike(tensor._memory_, tangent._memory_)
    ):
        return set_fw_grad(dual, tangent, at, layout=tensor)
    dual._grad_meta_.fw_grad = attach(tangent, at)
    return dual


def _check_dual(tensor: Tensor, tangent: Tensor, at: Level) -> None:
    if fw_grad(tensor, at) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level "
            f"{at.index} is not supported."
        )
    within = process.dual_levels[at.index + 1 :]
    if any(fw_grad(t, inner) is not None for inner in within for t in (tensor, tangent)):
        raise RuntimeError(
            f"Making a dual Tensor at level {at.index} of a Tensor that is dual at a level within it is not supported. "
            "Make it dual at the outer level first."
        )


def _laid_out_alike(one: Any, other: Any) -> bool:
    """`has_same_meta`, for the commonest case."""
    return one.base is None and other.base is None and one.shape == other.shape and one.strides == other.strides


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
    if tensor._special_ is not None:
        own = tensor._unpack_dual_(level)  # type: ignore[attr-defined]
        if own is not NotImplemented:
            return own
    at = _level(level)
    tangent = None if at is None else _fw_tangent(tensor, at)
    if tangent is None and tensor._grad_meta_ is not None and tensor._grad_meta_.fw_grad is not None:
        ended = getattr(tensor._grad_meta_.fw_grad, "ended", None)
        if ended is not None:
            raise ended.error(tensor)
    return UnpackedDualTensor(tensor if at is None else _fw_primal(tensor, at), tangent)


def _alias(tensor: Tensor, level: Level) -> Tensor:
    """The same memory, in a view that shares history with `tensor` and its tangents at the levels outside, no other."""
    state = local.state
    if len(state.observers) == 1 and state.observers[0] is level.observer:
        interceptor, state.interceptor = state.interceptor, None
        try:
            result = ops.alias(tensor)
        finally:
            state.interceptor = interceptor
    else:
        with seeing_levels_outside(level):
            result = ops.alias(tensor)
    meta: Any = result._grad_meta_
    if meta is not None and meta.is_view:
        meta.forward = FORWARD_BASE
    return result


def _fw_primal(tensor: Tensor, level: Level) -> Tensor:
    """`tensor` without its tangent at `level`, but with all others."""
    primal = _alias(tensor, level)
    for inner in process.dual_levels[level.index + 1 :]:
        tangent = fw_grad(tensor, inner)
        if tangent is not None:
            set_fw_grad(primal, _fw_primal(tangent, level), inner)
    return primal


def _fw_tangent(tensor: Tensor, level: Level) -> Tensor | None:
    """The tangent at `level`. At the levels within, it varies as the tangents there do at this one."""
    tangent = fw_grad(tensor, level)
    for inner in process.dual_levels[level.index + 1 :]:
        within = fw_grad(tensor, inner)
        mixed = None if within is None else _fw_tangent(within, level)
        if mixed is not None:
            tangent = _alias(zeros_of_layout(tensor) if tangent is None else tangent, level)
            set_fw_grad(tangent, mixed, inner)
    return tangent


def tangent_for_printing(tensor: Tensor) -> Tensor | None:
    """What ``repr(tensor)`` shows: the tangent at the innermost level."""
    at = _level(None)
    return None if at is None else fw_grad(tensor, at)
