"""NumPy's functions called with Tensors.

NumPy asks a Tensor first (``__array_ufunc__``, ``__array_function__``). What torch's Tensors answer is answered: a
universal function gives a Tensor, of bytes where NumPy has bools, most others an array. Where torch refuses, an
operator of ours answers, with gradients:

* a tensor requires grad, or somebody watches the thread's operators (forward mode, a trace);
* NumPy's arguments are none of the method's that NumPy would call: ``np.std(x)``.

An array or a NumPy number in front of a Tensor (``array * x``) is Python's operator, and computes as ``x * array``
does, by torch's rules. What has no operator here is refused if a gradient would be lost.

>>> import numpy, retrograd as torch
>>> x = torch.tensor([1., 2.], requires_grad=True)
>>> numpy.sum(numpy.array([3., 4.]) * numpy.square(x)).backward()
>>> x.grad
tensor([ 6., 16.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.state import local
from ...tensor import Tensor
from .functions import ALWAYS, BY_ARRAYS, FUNCTIONS
from .ufuncs import call_ufunc

__all__ = ["array_function", "array_ufunc"]


def array_ufunc(tensor: Tensor, ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``Tensor.__array_ufunc__``."""
    for part in inputs + (kwargs.get("out") or ()):
        theirs = getattr(type(part), "__array_ufunc__", np.ndarray.__array_ufunc__)
        if theirs is not np.ndarray.__array_ufunc__ and not isinstance(part, Tensor):
            return NotImplemented  # an array of a third kind, which may know what to do
    tensors = [part for part in inputs if isinstance(part, Tensor)]
    as_operator = not isinstance(inputs[0], Tensor) and method == "__call__"
    if as_operator or watched(tensors):
        result = call_ufunc(ufunc, method, inputs, kwargs, as_operator)
        if result is not NotImplemented:
            return result
        if watched(tensors):
            raise refusal(_name(ufunc) + ("" if method == "__call__" else f".{method}"), kwargs)
    out = kwargs.get("out")
    if out is not None and any(isinstance(part, Tensor) for part in out):
        raise TypeError(
            f"{_name(ufunc)}: return arrays must be of ArrayType, but out= is a Tensor: write out=x.numpy(), which "
            "shares its memory"
        )
    result = getattr(ufunc, method)(*[x.__array__() if isinstance(x, Tensor) else x for x in inputs], **kwargs)
    if out is not None or result is None:
        return result
    if method == "outer":  # the only one that torch does not wrap
        return result
    if isinstance(result, tuple):
        return tuple([tensor.__array_wrap__(np.asarray(part)) for part in result])
    return tensor.__array_wrap__(np.asarray(result))


def array_function(
    tensor: Tensor, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``Tensor.__array_function__``."""
    if not all(issubclass(kind, (Tensor, np.ndarray)) for kind in types):
        return NotImplemented
    if func in ALWAYS:
        return FUNCTIONS[func](*args, **kwargs)
    if watched(_tensors(args, kwargs)):
        ours = FUNCTIONS.get(func)
        if ours is not None:
            return ours(*args, **kwargs)
        if local.state.grad_enabled is not False:
            raise refusal(_name(func), {})
    if func in BY_ARRAYS:
        result = func(*[x.__array__() if isinstance(x, Tensor) else x for x in args], **kwargs)
        return tensor.__array_wrap__(np.asarray(result)) if kwargs.get("out") is None else result
    return func._implementation(*args, **kwargs)  # type: ignore[attr-defined]


def watched(tensors: list[Tensor]) -> bool:
    """Would something be lost if NumPy computed?"""
    state = local.state
    if state.interceptor is not None:
        return True
    return state.grad_enabled is not False and any(tensor.requires_grad for tensor in tensors)


def refusal(name: str, options: dict[str, Any]) -> RuntimeError:
    """The error where a gradient would be lost."""
    given = [option for option, value in options.items() if value is not None]
    why = f" with {', '.join(given)}" if given else ""
    return RuntimeError(
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead. "
        f"(No operator of torch stands for {name}{why}: NumPy would compute it, and the gradient would be lost.)"
    )


def _name(func: Any) -> str:
    module = getattr(func, "__module__", None) or "numpy"
    return f"{module}.{func.__name__}"


def _tensors(args: Any, kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors in what a function is given, a list of them being one argument."""
    found = []
    for value in (*args, *kwargs.values()):
        for part in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(part, Tensor):
                found.append(part)
    return found
