"""Tensors that are no strided array: sparse, nested, batched, wrapped.

Note [Special tensors]
A plain operator takes the arrays of its arguments, computes, and makes a Tensor of the result.  A *special* tensor has
no array that it could take.  Its class says instead what an operator means for it, in `_operate_`:

* ``_numbers_`` and ``_viewed_`` (the values, and the memory that views are taken of) raise `NoArray`.  Operators of the
  table read them in a ``try`` that they have anyway, for arguments that are no Tensors at all; so plain tensors pay
  nothing.
* The wrappers of all other functions (ops/checked.py) let plain arguments through by their classes, and ask here about
  the others.
* ``_memory_`` is, as for any tensor, how it lies: a `Description` with shape, dtype and strides.  Functions composed of
  operators read no more than that, and so work for special tensors as soon as their parts do.

Both come to `operate_on_special`.  It asks the special tensors among the arguments, those of the highest rank
(`_special_`) first, as ``_operate_(function, args, kwargs)``; the first answer that is not NotImplemented is the
result.  If there is none, a function composed of operators runs as it is, on its parts; an operator of the table is
refused, in the words of the class (`_no_form_`).  If it turns out on the way that such a function needs an array all
the same, the special tensor is asked once more, as ``_stuck_(function, args, kwargs)``, and refuses unless its class
knows a way.

Gradients travel through a backward pass as bare arrays (Note [Arrays and Tensors]).  That of a special tensor, or a
special gradient of a plain one, travels as its ``_memory_``, from which ``as_tensor()`` makes the Tensor again (`bare`
and `boxed` below, for what may be either).  Formulas on arrays that meet one raise `NoArray`, since nothing can be
computed with it; the engine then runs the node in its other namespace, on Tensors, where `_operate_` is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

import numpy as np

from ..core.description import Description, NoArray
from ..core.state import local
from ..core.version_counter import version_counter
from . import Tensor, wrap
from .overriding import disabled_torch_function

F = TypeVar("F", bound=Callable[..., Any])


class SpecialTensor(Tensor):
    """A Tensor without an array; see Note [Special tensors]."""

    __slots__ = ()

    #: Which class is asked first where several meet: the one with the highest rank.
    _special_: int = 1
    #: Is an operator on such tensors nothing but operators on plain tensors?  Then whoever watches operators (modes,
    #: saved-tensor hooks, dual levels) sees those.
    _transparent_ = False
    #: Must a backward pass that begins with such a gradient run on Tensors, whose identity the class looks at?
    _needs_tensors_: bool = False
    #: Its class says what *operators* mean, in `_operate_`; functions mean what they mean for any tensor.
    __torch_function__ = disabled_torch_function  # type: ignore[assignment]

    if not TYPE_CHECKING:

        @property
        def _numbers_(self) -> NoReturn:
            """No operator finds an array here."""
            raise NoArray(f"a {self._kind_} tensor has no strided array")

        _viewed_ = _numbers_

        #: How it lies: a `Description`, in the slot where other tensors have their array.
        _memory_ = Tensor.__dict__["_numbers_"]

    @property
    def _kind_(self) -> str:
        """The word for it in messages."""
        return type(self).__name__

    @classmethod
    def _make_(cls) -> Self:
        """A new one, without history; its class fills in what it holds."""
        result = object.__new__(cls)
        result._vc_ = result._grad_meta_ = result._edge_ = None
        return result

    def detach(self) -> Self:
        """The same values (and version counter) without history."""
        state = local.state
        if state.interceptor is not None:
            return state.interceptor(type(self).detach, (self,), {})
        result = self._make_()
        result._memory_ = self._memory_
        result._vc_ = self._vc_ or version_counter(self)
        return result

    def _operate_(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What `function` gives for these arguments, of which this tensor is one; NotImplemented: not known here."""
        return NotImplemented

    def _root_gradient_(self, grad: Tensor | None, position: int) -> Any:
        """What a backward pass from this tensor starts with: of what the user gave (None: nothing), the plain part.

        NotImplemented: what it would start with from any tensor.
        """
        return NotImplemented

    def _make_dual_(self, tangent: Tensor, level: int | None) -> Any:
        """This tensor with a tangent; NotImplemented: as any tensor has one."""
        return NotImplemented

    def _unpack_dual_(self, level: int | None) -> Any:
        """The primal and the tangent of this tensor; NotImplemented: as any tensor has them."""
        return NotImplemented

    def _as_gradient_(self, grad: Tensor) -> Tensor:
        """What users see of the gradient of this tensor, which the engine has computed."""
        return grad

    def _gradient_maker_(self) -> Callable[[Tensor], Tensor] | None:
        """What `_as_gradient_` does, without holding this tensor; None if gradients are what the engine computes."""
        return None

    def _plain_gradient_(self) -> Tensor:
        """This tensor as a gradient that the engine takes."""
        return self

    def _stuck_(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a function composed of operators gives that has asked for an array; refused unless overridden."""
        raise self._no_form_(function.__name__) from None

    def _write_out_(self, function: Callable[..., Any]) -> Any:
        """``function(..., out=...)`` with this tensor among the arguments or results: None where it may be written."""
        return None

    def _become_(self, operator: Callable[..., Tensor], args: tuple[Any, ...]) -> Any:
        """Be what a view operator makes of this tensor: ``unsqueeze_()`` and its like; NotImplemented: as any."""
        return NotImplemented

    def _travelling_(self) -> Any:
        """What stands for this tensor where gradients travel as bare arrays; its ``as_tensor()`` gives one like it."""
        return self._memory_

    @property
    def _held_(self) -> tuple[Tensor, ...]:
        """The tensors that have the history and the tangents of this one, if others have."""
        return ()

    def _no_form_(self, name: str) -> Exception:
        """The error for an operator that there is none of for such tensors."""
        what = f"Could not run 'aten::{name}' with a {self._kind_} tensor"
        return NotImplementedError(f"{what}: there is no such operator")


def like_array(tensor: Tensor) -> Any:
    """An array of the shape and dtype of a tensor, for who reads no more than that: its own, unless it has none."""
    if tensor._special_ is None:
        return tensor._memory_ if tensor.__class__ is Tensor else tensor._numbers_  # (a lazy parameter has none)
    return np.broadcast_to(np.empty((), tensor._memory_.dtype), tensor._memory_.shape)


def all_values(tensor: Tensor) -> Any:
    """All values that a tensor stands for, in whatever order and shape: for checks that go for all of them alike."""
    if tensor.is_meta:  # which stands for none
        return np.empty(0, tensor._memory_.dtype)
    while tensor._special_ is not None:
        (tensor,) = tensor._held_  # type: ignore[attr-defined]
    return tensor._numbers_


#: What most other arguments are.
_NEVER = frozenset((int, float, bool, str, type(None)))


def declaring(operators: dict[str, Any]) -> Callable[..., Callable[[F], F]]:
    """A decorator that puts what operators mean for a class of special tensors, by their names, into its table."""

    def under(*names: str) -> Callable[[F], F]:
        def declare(handler: F) -> F:
            for name in names:
                if name in operators:
                    raise ValueError(f"{name} is declared twice")
                operators[name] = handler
            return handler

        return declare

    return under


def special_tensors(args: Any, kwargs: Any) -> list[SpecialTensor]:
    """The special tensors among arguments (and in lists of them), highest rank first, each class as they stand."""
    found: list[Any] = []
    for value in (*args, *kwargs.values()) if kwargs else args:
        cls = value.__class__
        if cls is Tensor or cls in _NEVER:
            continue
        if isinstance(value, Tensor):
            if value._special_ is not None:
                found.append(value)
        elif isinstance(value, (tuple, list)):
            found += [one for one in value if isinstance(one, Tensor) and one._special_ is not None]
    if len(found) > 1:
        found.sort(key=lambda one: -one._special_)
    return found


def operate_on_special(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the special tensors among the arguments make of a call; NotImplemented if there is none, or none knows."""
    found = special_tensors(args, kwargs)
    asked: Any = None
    for tensor in found:
        kind = type(tensor), tensor._special_
        if kind == asked:
            continue  # one of each kind speaks for all
        asked = kind
        result = tensor._operate_(function, args, kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


def bare(tensor: Tensor) -> Any:
    """A gradient in the form in which it travels: its array, or what stands for one."""
    return tensor._numbers_ if tensor._special_ is None else tensor._travelling_()  # type: ignore[attr-defined]


def boxed(array: Any) -> Any:
    """A Tensor on a gradient that travels; `wrap`, where it may be a special one."""
    return array.as_tensor() if isinstance(array, Description) else wrap(array)
