"""Random numbers within a vmap: what `randomness` says of them.

``"different"`` draws for all examples at once, ``"same"`` for one, ``"error"`` refuses.  Functions that draw come here
before they look at their arguments (``composite(draws=True)``), and are called again outside of the level.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._generated import functions as generated
from ...tensor import Tensor
from ..batched import Level, front, is_batched, not_inplace, outside, spread, wrap
from ..fallback import example
from .patterns import leading, padded, put

Function = Callable[..., Any]


def draw(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `function`, which draws random numbers, gives within a vmap."""
    if not level.open:
        raise RuntimeError("the vmap that these random numbers were to be drawn for has returned")
    if kwargs.get("out") is not None:
        raise RuntimeError(
            "vmap: calling out variants of random functions inside vmap is not possible: leave out= away"
        )
    if not level.by_user:
        raise RuntimeError(
            "vmap: We do not yet support calling random operations inside of vmap. Please perform random operations "
            f"outside of vmap as a workaround: {function.__name__}() is called in a pass over many gradients or "
            "tangents at once, which is one vmap"
        )
    if level.randomness == "error":
        raise RuntimeError(
            f"vmap: called random operation while in randomness error mode ({function.__name__}). Please either use "
            "the "
            "'same' or 'different' randomness flags on vmap or perform the randomness operation out of vmap"
        )
    rule = _RULES.get(function.__name__, _elementwise)
    with outside(level):
        return rule(level, function, args, kwargs)


def _sized(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Factories: ``f(..., size)``, ``f(2, 3)`` or ``size=``."""
    if level.randomness == "same":
        return function(*args, **kwargs)
    size = level.size
    if "size" in kwargs:
        given = kwargs["size"]
        kwargs = {**kwargs, "size": (size, *((given,) if isinstance(given, int) else given))}
    elif function.__name__ in ("rand", "randn"):
        shape = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
        args = ((size, *shape),)
    else:
        *rest, shape = args
        args = (*rest, (size, *shape))
    return wrap(function(*args, **kwargs), level)


def _normal(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if "size" in kwargs or len(args) > 2:
        return _sized(level, function, args, kwargs)
    return _elementwise(level, function, args, kwargs)


def _mask(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if level.randomness == "same":
        return function(*args)
    shape, *rest = args
    return wrap(function((level.size, *shape), *rest), level)


def _permutation(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if level.randomness == "same":
        return function(*args, **kwargs)
    return wrap(generated.stack([function(*args, **kwargs) for _ in range(level.size)]), level)


def _like(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, *rest = args if args else (kwargs.pop("input"),)
    if level.randomness == "same":
        one = first.value.select(first.bdim, 0) if is_batched(first, level) else first
        return function(one, *rest, **kwargs)
    return wrap(function(spread(first, level), *rest, **kwargs), level)


def _elementwise(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Draws that depend on the values of tensors."""
    tensors = [v for v in (*args, *kwargs.values()) if isinstance(v, Tensor)]
    if level.randomness == "same":
        if level.alike:  # what is batched has the same values in each example
            args = tuple([example(v, level, 0) for v in args])
            return function(*args, **{k: example(v, level, 0) for k, v in kwargs.items()})
        if any(is_batched(tensor, level) for tensor in tensors):
            raise RuntimeError(
                "Vmap does not currently support same randomness with a batched tensor input: the numbers of "
                f"{function.__name__} depend on it. Use randomness='different', or draw outside and pass the numbers in"
            )
        return function(*args, **kwargs)
    ndim = max([tensor._memory_.ndim for tensor in tensors], default=0)
    inner = [padded(spread(v, level), ndim) if isinstance(v, Tensor) else v for v in args]
    named = {k: padded(spread(v, level), ndim) if isinstance(v, Tensor) else v for k, v in kwargs.items()}
    return wrap(function(*inner, **named), level)


def _in_place(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, *rest = args
    others = [v for v in (*rest, *kwargs.values()) if isinstance(v, Tensor)]
    batched = any(is_batched(v, level) for v in others)
    if level.randomness == "same":
        if batched:
            return _elementwise(level, function, args, kwargs)  # which refuses
        if not is_batched(first, level):
            return function(*args, **kwargs)
        one = function(first.value.select(first.bdim, 0).clone(), *rest, **kwargs)
        front(first).copy_(one)
        return first
    if not is_batched(first, level):
        if batched:
            raise not_inplace(function.__name__, args[0])
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
            "randomness. If this is necessary for your usage, please write to a tensor of each example: "
            f"torch.empty_like(x).{function.__name__}() of one that is mapped over"
        )
    ndim = first._memory_.ndim
    inner = [padded(front(v), ndim) if is_batched(v, level) else v for v in rest]
    named = {k: padded(front(v), ndim) if is_batched(v, level) else v for k, v in kwargs.items()}
    function(front(first), *inner, **named)
    return first


def _multinomial(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, *rest = args
    if level.randomness == "same":
        return _elementwise(level, function, args, kwargs)
    value = spread(first, level)
    if first._memory_.ndim == 1:
        return wrap(function(value, *rest, **kwargs), level)
    size, rows = value._memory_.shape[:2]
    result = function(value.reshape(size * rows, value._memory_.shape[2]), *rest, **kwargs)
    return wrap(result.reshape(size, rows, result._memory_.shape[1]), level)


def _samples(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _mask(level, function, args, kwargs)


_RULES: dict[str, Function] = {
    "rand": _sized, "randn": _sized, "randint": _sized, "normal": _normal, "randperm": _permutation,
    "rand_like": _like, "randn_like": _like, "randint_like": _like, "_drawn_mask": _mask, "multinomial": _multinomial,
    "_uniform_samples": _samples,
    **dict.fromkeys(("uniform_", "normal_", "exponential_", "cauchy_", "log_normal_", "geometric_", "random_",
                     "bernoulli_"), _in_place),
}  # fmt: skip


def register() -> None:
    put(leading, "dirichlet_drawn", "dirichlet_grad")


