"""What generated wrappers call when a call is not the plain one: numbers, lists, ``out=``, wrong arguments."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from ..autograd.forward_operators import forbid_out
from ..autograd.inplace import begin_inplace, check_overlap
from ..autograd.intercept import interceptor_of
from ..core.description import NoArray
from ..core.dtypes import C_NAMES, dtype
from ..core.late import extension
from ..core.records import record_of
from ..core.state import local, process
from ..core.where import users_level
from ..kernels.dtypes import convert
from ..kernels.promotion import can_cast
from ..tensor import Tensor, wrap
from ..tensor.lazy_conjugation import write_back
from ..tensor.special import operate_on_special, special_tensors
from .arguments import argument, as_number

#: What may stand for a number.
NUMBERS = (int, float, complex, np.generic)
#: The class of plain ints.
INT = frozenset((int,))


def not_a_tensor(operator: str, name: str, position: int, value: Any) -> TypeError:
    """The error for an argument that must be a Tensor."""
    return TypeError(
        f"{operator}(): argument '{name}' (position {position}) must be Tensor, not {type(value).__name__}"
    )


def no_array(
    function: Callable[..., Any],
    operator: str,
    name: str,
    position: int,
    value: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """An argument has no array: it is a special tensor (Note [Special tensors]), or no tensor at all."""
    if not isinstance(value, Tensor) and not special_tensors(args, kwargs):
        raise not_a_tensor(operator, name, position, value) from None
    try:
        operate = _operate if local.state.observers else operate_on_special
        result = operate(function, args, kwargs)
    except Exception as error:
        if isinstance(error.__context__, NoArray):  # that is how it came here, and no part of what went wrong
            error.__suppress_context__ = True
        raise
    if result is NotImplemented:
        raise special_tensors(args, kwargs)[0]._no_form_(function.__name__) from None
    return result


def _operate(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same while somebody watches: of transparent tensors, what happens inside."""
    state = local.state
    before = state.interceptor
    if special_tensors(args, kwargs)[0]._transparent_:
        state.interceptor = interceptor_of(state.observers)
    try:
        return operate_on_special(function, args, kwargs)
    finally:
        state.interceptor = before


def renamed(function: Any, name: str) -> Any:
    """A function under another name, by which Python's errors about its arguments call it."""
    if function.__name__ == name:
        return function
    found = FunctionType(function.__code__, function.__globals__, name, function.__defaults__, function.__closure__)
    found.__kwdefaults__, found.__qualname__ = function.__kwdefaults__, name
    found.__doc__, found.__annotations__ = function.__doc__, function.__annotations__
    return found


def not_differentiable(operator: str, name: str) -> RuntimeError:
    """The error for an argument that requires grad and that the operator has no derivative for."""
    return RuntimeError(
        f"The function '{operator}' is not differentiable with respect to argument '{name}'. This input cannot have "
        f"requires_grad True. Pass {name}.detach(), if its gradient is not needed."
    )


def number(operator: str, name: str, position: int, value: Any) -> Any:
    """A Python number, from something that stands where a Tensor or a number may."""
    if value.__class__ is float or (value.__class__ is int and -0x8000000000000000 <= value <= 0xFFFFFFFFFFFFFFFF):
        return value
    if isinstance(value, (int, np.generic)):
        return as_number(value)
    if isinstance(value, (float, complex)):
        return value
    raise not_a_tensor(operator, name, position, value)


def needs_a_tensor(operator: str, *values: Any) -> TypeError:
    """The error for numbers alone where one of the arguments must be a Tensor."""
    given = ", ".join(type(value).__name__ for value in values)
    return TypeError(
        f"{operator}() received an invalid combination of arguments - got ({given}): one of them must be a Tensor"
    )


#: The operators that take two numbers and no tensor, as torch's do: ``torch.add(1, 2)``.
OF_TWO_NUMBERS = frozenset({"add", "sub", "mul", "div", "floor_divide"})


def number_first(
    function: Callable[..., Any], operator: str, name: str, position: int, args: tuple[Any, ...], kwargs: dict[Any, Any]
) -> Any:
    """``torch.mul(2, x)``: the number becomes the 0-d tensor that it stands for; so it does in ``torch.mul(2, 3)``."""
    from .composite.arithmetic import number_as_tensor  # it is made of operators

    value, other = args[0], args[1]
    if isinstance(value, Tensor):
        return no_array(function, operator, name, position, value, args, kwargs)
    if not isinstance(value, NUMBERS):
        raise not_a_tensor(operator, name, position, value)
    if not isinstance(other, Tensor) and operator not in OF_TWO_NUMBERS:
        raise not_a_tensor(operator, name, position, value)
    like = None if value.__class__ is bool and operator == "sub" else other  # a bool tensor, which is refused
    return function(number_as_tensor(number(operator, name, position, value), like), *args[1:], **kwargs)


def reflected(name: str, input: Tensor, other: Any) -> Any:
    """``input.__rsub__(other)`` of what is no number: Python never asks it of two Tensors, but a caller may."""
    if not isinstance(other, Tensor):
        return NotImplemented
    return getattr(other, "__" + name.removeprefix("__r"))(input)


def array_second(function: Callable[..., Any], input: Tensor, other: Any) -> Any:
    """``tensor == array``: NumPy leaves the answer to the Tensor."""
    if isinstance(other, np.ndarray):
        return function(input, wrap(other))
    return NotImplemented


def missing(operator: str, name: str) -> TypeError:
    """The error for an argument that is not there."""
    return TypeError(f'{operator}() missing 1 required positional arguments: "{name}"')


def int_tuple(operator: str, name: str, position: int, values: tuple[Any, ...]) -> tuple[int, ...]:
    """The ints of ``view(2, 3)`` or ``view((2, 3))``."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = values[0]  # type: ignore[assignment]
    for value in values:
        if value.__class__ is not int:
            break
    else:
        return tuple(values)
    return argument("int[]", operator, name, position, values)


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


def tensor_list_arrays(tensors: Sequence[Tensor]) -> list[Any]:
    return [tensor._numbers_ for tensor in tensors]


def merge_aliases(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any], aliases: dict[Any, Any], *required: str
) -> Any:
    """Call `function` with NumPy's ``axis`` and ``keepdims`` under torch's names, and ``size=(2, 3)`` as ``2, 3``.

    `required` are arguments that may be missing only if an alias stands for them.
    """
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
        if name is None or name not in parameters or kwargs[name] != parameters[name].default:
            given = ", ".join(f"{k}={type(v).__name__}" for k, v in aliases.items())
            raise TypeError(
                f"{function.__name__}() received an invalid combination of arguments - got ({given}), but expected "
                f"({', '.join(p for p in parameters if p != 'aliases')})"
            )
        kwargs[name] = value
    missing = [name for name in required if kwargs[name] is None]
    if missing:
        listed = ", ".join(f'"{name}"' for name in missing)
        raise TypeError(f"{function.__name__}() missing {len(missing)} required positional arguments: {listed}")
    return function(**kwargs)


def _tensors_in(values: Sequence[Any]) -> list[Tensor]:
    found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [one for one in value if isinstance(one, Tensor)]
    return found


def write_out(
    function: Callable[..., Any], out: Any, args: tuple[Any, ...], kwargs: dict[Any, Any], differentiable: bool = True
) -> Any:
    """``function(..., out=out)``: not differentiable; `out`, a tensor or one per result, takes the result's shape."""
    name = function.__name__
    outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    for target in outs:
        if not isinstance(target, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(target).__name__}")
    wanted = next((value for value in (*args, *kwargs.values()) if isinstance(value, dtype)), None)
    if wanted is not None and name.endswith("norm"):
        wanted = wanted.to_real()  # lengths are real
    if wanted is not None and len(outs) == 1 and outs[0].dtype is not wanted:
        raise RuntimeError(_other_dtype(wanted, outs[0].dtype))
    state = local.state
    tensors, apart = _tensors_in((*args, *kwargs.values())), _apart(function, args, kwargs)
    for tensor in (*tensors, *outs):
        if tensor._special_ is not None:
            if tensor.is_meta:
                return extension("meta").write_out(function, outs, out, args, kwargs)
            if tensor._needs_tensors_ and not state.dispatch_off:
                return extension("dispatch").write_out(function, out, args, kwargs)
            tensor._write_out_(function)
    if differentiable and state.grad_enabled and any(t.requires_grad for t in (*tensors, *outs)):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if process.dual_levels:
        forbid_out(name.strip("_<>"), (*tensors, *outs))
    for target in outs:
        begin_inplace(state, target, False)
    result = function(*args, **kwargs)
    if isinstance(out, Tensor) and isinstance(result, Tensor):
        _check_dtype(name, "result", out, result)
        if name in ("cat", "stack") and not can_cast(result._memory_.dtype, out._memory_.dtype):
            desired = out._type_name_()[:-6]
            raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {desired}")
        _check_target(out, result, tensors, apart)
        return store(out, result._numbers_, True)
    if not isinstance(result, tuple) or len(result) != len(outs):
        count = len(result) if isinstance(result, tuple) else 1
        raise TypeError(f"{name}(): argument 'out' must be tuple of {count} Tensors, one for each result")
    cast = name in _refusals()[0]
    for field, target, value in zip(getattr(result, "_fields", outs), outs, result, strict=True):
        _check_dtype(name, field, target, value)
        if not cast and target._memory_.dtype != value._memory_.dtype:
            raise RuntimeError(_other_dtype(value.dtype, target.dtype))
        _check_target(target, value, tensors, apart)
    for target, value in zip(outs, result, strict=True):
        store(target, value._numbers_, True)
    return result._make(outs) if hasattr(result, "_make") else outs


def _other_dtype(wanted: dtype, given: dtype) -> str:
    return f"Expected out tensor to have dtype {C_NAMES[wanted.name]}, but got {C_NAMES[given.name]} instead"


def _apart(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any]) -> list[Tensor]:
    """The tensors that must lie apart from what is written to: the table's column `apart`."""
    record = record_of(function)
    if record is None or not record.apart:
        return []
    given = {**dict(zip(record.arguments, args, strict=False)), **kwargs}
    return _tensors_in([given[name] for name in record.apart if name in given])


@cache
def _refusals() -> tuple[dict[str, str], dict[str, str]]:
    """By name, a function's words for an ``out=`` that its result cannot be cast to; for one of any other dtype."""
    castable: dict[str, str] = {}
    exact: dict[str, str] = {}
    with open(os.path.join(os.path.dirname(__file__), "out_dtypes.txt")) as lines:
        for line in lines:
            if not line.startswith("#"):
                words, _, names = line.rpartition(" | ")
                found, words = (castable, words[2:]) if words.startswith("~ ") else (exact, words)
                found.update(dict.fromkeys(names.split(), words))
    return castable, exact


def _check_dtype(name: str, field: str, out: Tensor, result: Tensor) -> None:
    if out._memory_.dtype == result._memory_.dtype:
        return
    castable, exact = _refusals()
    words = None if can_cast(result._memory_.dtype, out._memory_.dtype) else castable.get(name)
    words = words or exact.get(name)
    if words is not None:
        raise RuntimeError(
            words.format(
                result=C_NAMES[result.dtype.name], out=C_NAMES[out.dtype.name], Result=result._type_name_()[:-6],
                Out=out._type_name_()[:-6], field=field,
            )
        )  # fmt: skip


def _check_target(out: Tensor, result: Tensor, read: list[Tensor], apart: list[Tensor]) -> None:
    """May `result` be written to `out`?"""
    if not can_cast(result._memory_.dtype, out._memory_.dtype):
        raise RuntimeError(
            f"result type {result._type_name_()[:-6]} can't be cast to the desired output type {out._type_name_()[:-6]}"
        )
    resized = out._memory_.shape != result._memory_.shape
    for tensor in read:
        check_overlap(out._memory_, tensor._memory_, resized or any(tensor is one for one in apart))


def store(out: Tensor, result: Any, warn: bool = False) -> Tensor:
    """Make the array `result` the values of `out`, which takes its shape."""
    if out._memory_.shape != result.shape:
        if warn and out._memory_.size:
            warnings.warn(
                "An output with one or more elements was resized since it had shape "
                f"{list(out._memory_.shape)}, which does not match the required output shape {list(result.shape)}. "
                "This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they "
                "have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero "
                "elements with t.resize_(0).",
                UserWarning,
                stacklevel=users_level(),
            )
        out._memory_ = np.empty_like(result, out._memory_.dtype)
    array = out._numbers_
    if array.dtype != result.dtype:
        with np.errstate(over="ignore", invalid="ignore"):  # what does not fit is infinite
            result = convert(result, array.dtype) if array.dtype.num >= 256 else result.astype(array.dtype)
    array[...] = result
    write_back(out, array)
    out._bump_version_()
    return out


# -------------------------------------------------------------------------------------------- for forward-mode formulas


def zero_tangent(primal: Any) -> Any:
    """The tangent of something that does not vary: zeros for a Tensor or array, 0 for a number, None for None."""
    if isinstance(primal, Tensor):
        return wrap(np.zeros_like(primal._numbers_))
    if hasattr(primal, "strides"):  # an array
        return np.zeros_like(primal)
    return None if primal is None else 0


def zero_tangents(primals: Sequence[Any], tangents: Sequence[Any] | None) -> list[Any]:
    """The tangents of a list of tensors, with zeros for those that have none."""
    tangents = [None] * len(primals) if tangents is None else tangents
    return [zero_tangent(p) if t is None else t for p, t in zip(primals, tangents, strict=True)]


def conj_tangent(tangent: Tensor) -> Tensor:
    return tangent.conj() if tangent._memory_.dtype.kind in "cW" else tangent
