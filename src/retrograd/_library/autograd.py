"""``torch._library.autograd``: custom functions that take lists of tensors."""

from __future__ import annotations

import threading
from typing import Any

from ..autograd.function import Function
from ..utils._pytree import tree_flatten, tree_unflatten

__all__ = ["supports_tensorlist"]


class _Structures:
    """How the arguments and the results of one call are nested: the last argument of the function that sees leaves."""

    __slots__ = ("given", "made")

    def __init__(self, given: Any) -> None:
        self.given: Any = given
        self.made: Any = None


class _Within(threading.local):
    """Does a call of this thread come from ``apply``?"""

    calls = 0


def supports_tensorlist(cls: type[Function]) -> type[Function]:
    """A custom function that takes lists of tensors, and gives such lists, with gradients.

    >>> import retrograd as torch
    >>> from retrograd._library.autograd import supports_tensorlist
    >>> @supports_tensorlist
    ... class Sum(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, xs):
    ...         ctx.count = len(xs)
    ...         return sum(xs)
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return [grad] * ctx.count
    >>> xs = [torch.tensor(1.0, requires_grad=True) for _ in range(2)]
    >>> torch.autograd.grad(Sum.apply(xs), xs)
    (tensor(1.), tensor(1.))
    """
    forward, backward, apply = cls.forward, cls.backward, cls.apply
    within = _Within()

    def refuse(name: str) -> None:
        if not within.calls:
            raise NotImplementedError(
                f"calling {cls.__name__}.{name} directly is not supported: Function.{name} directly would see tensors "
                f"one by one. Call {cls.__name__}.apply"
            )

    def flat_forward(ctx: Any, *flat: Any) -> Any:
        refuse("forward")
        *leaves, structures = flat
        ctx._structures = structures
        # a call of `apply` within is one of its own
        calls, within.calls = within.calls, 0
        try:
            result = forward(ctx, *tree_unflatten(leaves, structures.given))
        finally:
            within.calls = calls
        results, structures.made = tree_flatten(list(result) if isinstance(result, list) else result)
        return tuple(results)

    def flat_backward(ctx: Any, *grads: Any) -> Any:
        if not hasattr(ctx, "_structures"):
            raise NotImplementedError(f"Function.backward directly is not supported: call {cls.__name__}.apply")
        structure = ctx._structures.given
        given = tree_unflatten(list(grads), ctx._structures.made)
        wanted = ctx.needs_input_grad
        ctx.needs_input_grad = tuple(tree_unflatten(list(wanted[:-1]), structure))
        try:
            found = backward(ctx, *(given if isinstance(given, tuple) else (given,)))
        finally:
            ctx.needs_input_grad = wanted
        found = found if isinstance(found, tuple) else (found,)
        leaves, nested = tree_flatten(list(found), is_leaf=lambda one: one is None)
        if nested != structure:
            raise RuntimeError(
                f"{cls.__name__}.backward returned gradients of the structure {nested}, but its arguments are of "
                f"{structure}. Expected the return from backward to be of the same structure as the inputs: a list of "
                "gradients for each list of tensors"
            )
        return (*leaves, None)

    def flat_apply(*args: Any) -> Any:
        leaves, given = tree_flatten(list(args))
        structures = _Structures(given)
        within.calls += 1
        try:
            results = apply(*leaves, structures)
        finally:
            within.calls -= 1
        return tree_unflatten(list(results) if isinstance(results, tuple) else [results], structures.made)

    cls.forward = staticmethod(flat_forward)  # type: ignore[method-assign]
    cls.backward = staticmethod(flat_backward)  # type: ignore[method-assign]
    cls.apply = staticmethod(flat_apply)  # type: ignore[method-assign,assignment]
    return cls
