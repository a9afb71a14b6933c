"""``torch._custom_ops``: operators in two steps, an older way than `torch.library.custom_op`.

>>> import retrograd as torch
>>> from retrograd import _custom_ops
>>> @_custom_ops.custom_op("two_steps::square")
... def square(x: torch.Tensor) -> torch.Tensor: ...
>>> @_custom_ops.impl("two_steps::square")
... def square_impl(x):
...     return x * x
>>> _ = _custom_ops.impl_save_for_backward("two_steps::square", func=lambda inputs, output: inputs.x)
>>> _ = _custom_ops.impl_backward("two_steps::square", func=lambda ctx, x, grad: {"x": 2 * x * grad})
>>> x = torch.tensor(3.0, requires_grad=True)
>>> torch.ops.two_steps.square(x).backward()
>>> x.grad
tensor(6.)
>>> _custom_ops._destroy("two_steps::square")

The types of a function, or a schema, say what an operator takes; then its kernels are registered, and what autograd
shall do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from ._custom_op.impl import check_function, define, find, parse_qualname, validate_namespace
from .library import get_ctx, infer_schema, register_fake
from .ops.operator_schema import Tag

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]


def _quietly(action: Callable[[], Any]) -> Any:
    """What these functions share with ``torch._custom_op`` does not warn as that does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return action()


def _decorating(register: Callable[[Callable[..., Any]], Any], func: Callable[..., Any] | None) -> Any:
    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        register(function)
        return function

    return decorator if func is None else decorator(func)


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Define an operator by a function's types, or by a schema."""
    validate_namespace(parse_qualname(qualname)[0])

    def define_by(text: str) -> None:
        _quietly(lambda: define(qualname, text, (Tag.needs_fixed_stride_order,)))

    def define_it(func: Callable[..., Any]) -> Callable[..., Any]:
        check_function(func, qualname)
        define_by(infer_schema(func, mutates_args=()))
        return func

    if isinstance(func_or_schema, str):
        return define_by(func_or_schema)
    return define_it if func_or_schema is None else define_it(func_or_schema)


def impl(qualname: str, *, device_types: str | Iterable[str] = ("cpu", "cuda"), func: Any = None) -> Any:
    """What computes it on some kinds of devices."""
    return _decorating(lambda f: _find(qualname).impl(device_types)(f), func)


def impl_abstract(qualname: str, *, func: Any = None) -> Any:
    """What gives tensors like the results for tensors without values."""
    return register_fake(qualname, func)


def impl_save_for_backward(qualname: str, *, func: Any = None) -> Any:
    """What its formula needs: ``func(inputs, output)``, where `inputs` is a named tuple."""
    return _decorating(lambda f: _find(qualname).impl_save_for_backward()(f), func)


def impl_backward(qualname: str, output_differentiability: list[bool] | None = None, *, func: Any = None) -> Any:
    """Its formula: ``func(ctx, saved, *grads)`` returns a dictionary from names of arguments to gradients."""

    def register(function: Callable[..., Any]) -> Any:
        return _find(qualname).impl_backward(output_differentiability)(function)

    return _decorating(register, func)


def _find(qualname: str) -> Any:
    return _quietly(lambda: find(qualname, or_of_library=True))


def _destroy(qualname: str) -> None:
    """The operator is no more."""
    find(qualname)._destroy()
