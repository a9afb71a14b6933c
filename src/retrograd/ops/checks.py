"""``torch._check`` and its like: conditions that a program asks for, each with its exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from .composite.memory import is_nonzero

__all__: list[str] = []


def _fail(error: type[Exception], message: Any) -> None:
    if message is None:
        raise error(
            "Expected cond to be True, but got False. (Could this error message be improved? Give the check a second "
            "argument, a function that returns one.)"
        )
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error(str(message()))


def _check_with(error_type: type[Exception], cond: bool, message: Callable[[], Any]) -> None:
    """Raise an exception of that class, with what `message` returns, unless `cond` is true."""
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        _fail(error_type, message)


def _check(cond: bool, message: Any = None) -> None:
    """Raise a RuntimeError unless `cond` is true.

    >>> import retrograd as torch
    >>> torch._check(1 + 1 == 3, lambda: "sums are off")
    Traceback (most recent call last):
    RuntimeError: sums are off
    """
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: Any = None) -> None:
    """Raise an IndexError unless `cond` is true."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: Any = None) -> None:
    """Raise a ValueError unless `cond` is true."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: Any = None) -> None:
    """Raise a TypeError unless `cond` is true."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: Any = None) -> None:
    """Raise a NotImplementedError unless `cond` is true."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: Any, message: Any = None, *, max: Any = None) -> None:
    """Raise a RuntimeError unless `i` can be a size: not negative, and not above `max`."""
    _check(bool(i >= 0), message)
    if max is not None:
        _check(bool(i <= max), message)


def _check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Any = None) -> None:
    """Raise an exception of that class unless all elements of a tensor of bools are true."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype.name != "bool":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)  # type: ignore[attr-defined]


def _check_tensor_all(cond: Tensor, message: Any = None) -> None:
    """Raise a RuntimeError unless all elements of a tensor of bools are true."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert(condition: Any, message: Any) -> None:
    """Raise an AssertionError unless the condition, which may be a tensor, is true."""
    if not condition:
        raise AssertionError(message)


def _assert_async(input: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise a RuntimeError if a tensor's one element is zero: at once, there is no device to wait for."""
    if not is_nonzero(input):
        raise RuntimeError(assert_msg)
