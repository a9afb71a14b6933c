"""What generated wrappers call when a call is not the plain one: numbers, lists, ``out=``, wrong arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .autograd.inplace import begin_inplace
from .autograd.state import local
from .kernels.promotion import can_cast
from .tensor import Tensor, wrap

#: What may stand for a number.
NUMBERS = (int, float, complex, np.generic)


def not_a_tensor(operator: str, name: str, position: int, value: Any) -> TypeError:
    """The error for an argument that must be a Tensor."""
    return TypeError(
        f"{operator}(): argument '{name}' (position {position}) must be Tensor, not {type(value).__name__}"
    )


def number(operator: str, name: str, position: int, value: Any) -> Any:
    """A Python number, from something that stands where a Tensor or a number may."""
    if value.__class__ is float or value.__class__ is int:
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (int, float, complex)):
        return value
    raise not_a_tensor(operator, name, position, value)


def number_first(function: Callable, operator: str, name: str, position: int, args: tuple, kwargs: dict) -> Any:
    """``torch.mul(2, x)``: the number becomes the 0-d tensor that it stands for."""
    from .composite.operators import number_as_tensor

    value, other = args[0], args[1]
    if not isinstance(value, NUMBERS) or not isinstance(other, Tensor):
        raise not_a_tensor(operator, name, position, value)
    return function(number_as_tensor(number(operator, name, position, value), other), *args[1:], **kwargs)


def int_tuple(operator: str, name: str, position: int, values: tuple) -> tuple[int, ...]:
    """The ints of ``view(2, 3)`` or ``view((2, 3))``."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = values[0]  # type: ignore[assignment]
    for value in values:
        if value.__class__ is not int:
            break
    else:
        return tuple(values)
    result = []
    for value in values:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(
                f"{operator}(): argument '{name}' (position {position}) must be tuple of ints, but found element of "
                f"type {type(value).__name__}"
            )
        result.append(value.__index__())
    return tuple(result)


def tensor_list(operator: str, name: str, position: int, values: Any) -> Sequence[Tensor]:
    """A list of Tensors, checked."""
    if isinstance(values, Tensor) or not isinstance(values, (tuple, list)):
        raise TypeError(
            f"{operator}(): argument '{name}' (position {position}) must be tuple of Tensors, "
            f"not {type(values).__name__}"
        )
    for index, value in enumerate(values):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"expected Tensor as element {index} in argument {position - 1}, but got {type(value).__name__}"
            )
    return values


def tensor_list_arrays(tensors: Sequence[Tensor]) -> list:
    return [tensor._data for tensor in tensors]


def merge_aliases(function: Callable, args: tuple, kwargs: dict, aliases: dict) -> Any:
    """Call `function` with NumPy's ``axis`` and ``keepdims`` under torch's names, and ``size=(2, 3)`` as ``2, 3``."""
    import inspect

    names = {"axis": "dim", "keepdims": "keepdim"}
    parameters = inspect.signature(function).parameters
    positional = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    spread = next((p.name for p in parameters.values() if p.kind is p.VAR_POSITIONAL), None)
    if spread in aliases and len(args) <= len(positional):
        value = aliases.pop(spread)
        spread_args = (value,) if isinstance(value, int) else tuple(value)
        if aliases:
            return merge_aliases(function, (*args, *spread_args), kwargs, aliases)
        return function(*args, *spread_args, **kwargs)
    kwargs = {**dict(zip(positional, args, strict=False)), **kwargs}
    for alias, value in aliases.items():
        name = names.get(alias)
        if name is None or name not in parameters:
            given = ", ".join(f"{k}={type(v).__name__}" for k, v in aliases.items())
            raise TypeError(
                f"{function.__name__}() received an invalid combination of arguments - got ({given}), but expected "
                f"({', '.join(p for p in parameters if p != 'aliases')})"
            )
        kwargs[name] = value
    return function(**kwargs)


def _tensors_in(values: Sequence) -> list[Tensor]:
    found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [one for one in value if isinstance(one, Tensor)]
    return found


def write_out(function: Callable, out: Tensor, args: tuple, kwargs: dict) -> Tensor:
    """``function(..., out=out)``: not differentiable; `out` takes the shape of the result."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{function.__name__}(): argument 'out' must be Tensor, not {type(out).__name__}")
    state = local.state
    tensors = _tensors_in((*args, *kwargs.values()))
    if state.grad_enabled and any(t.requires_grad for t in (*tensors, out)):
        raise RuntimeError(
            f"{function.__name__}(): functions with out=... arguments don't support automatic differentiation, but one "
            "of the arguments requires grad."
        )
    if state.dual_levels:
        from .autograd.forward_operators import forbid_out

        forbid_out(function.__name__.strip("_<>"), (*tensors, out))
    begin_inplace(state, out, False)
    result = function(*args, **kwargs)._data
    if not can_cast(result.dtype, out._data.dtype):
        raise RuntimeError(
            f"result type {wrap(result).type_name()[:-6]} can't be cast to the desired output type "
            f"{out.type_name()[:-6]}"
        )
    if out._data.shape != result.shape and any(t is out for t in tensors):
        raise RuntimeError(
            f"output with shape {list(out.shape)} doesn't match the broadcast shape {list(result.shape)}: it is read, "
            "too, so that it cannot take another shape"
        )
    if out._data.shape == result.shape:
        out._data[...] = result
    else:
        out._data = result.astype(out._data.dtype)
    out._bump_version()
    return out


# -------------------------------------------------------------------------------------------- for forward-mode formulas


def zero_tangent(primal: Any) -> Any:
    """The tangent of something that does not vary: zeros for a Tensor or array, 0 for a number, None for None."""
    if isinstance(primal, Tensor):
        return wrap(np.zeros_like(primal._data))
    if hasattr(primal, "strides"):  # an array
        return np.zeros_like(primal)
    return None if primal is None else 0


def zero_tangents(primals: Sequence, tangents: Sequence | None) -> list:
    """The tangents of a list of tensors, with zeros for those that have none."""
    tangents = [None] * len(primals) if tangents is None else tangents
    return [zero_tangent(p) if t is None else t for p, t in zip(primals, tangents, strict=True)]


def conj_tangent(tangent: Tensor) -> Tensor:
    return tangent.conj() if tangent._data.dtype.kind == "c" else tangent
