"""Errors that nobody raised: what Python and NumPy say when they are given what they cannot take.

A check of ours ends in a ``raise``. An exception that comes from anywhere else in a public function (an attribute that
None does not have, a shape that NumPy cannot broadcast, memory that is not there) is an accident: its message is about
our insides. The function that was called says in its own words that its arguments do not go together; the accident is
the error's cause, for who looks for a mistake of ours.
"""

from __future__ import annotations

import dis
import math
import os
from types import TracebackType
from typing import Any

from ..tensor import Tensor
from ..tensor.special import NoArray, special_tensors

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_RAISE = {dis.opmap[name] for name in ("RAISE_VARARGS", "RERAISE") if name in dis.opmap}
_LIBRARIES = tuple(f"{os.sep}{name}{os.sep}" for name in ("numpy", "scipy", "ml_dtypes"))


def is_accident(error: BaseException) -> bool:
    """Did the error come from our code, or from an array library that it called, without a ``raise`` of ours?"""
    last = error.__traceback__
    if last is None or (isinstance(error, Warning) and not isinstance(error, RuntimeWarning)):
        return False  # a warning of ours that the user has made an error of; RuntimeWarnings are NumPy's
    last = _innermost(last)
    code = last.tb_frame.f_code
    if not code.co_filename.startswith(_HERE):
        return _is_of_library(code.co_filename)
    return _OPCODES_TELL and code.co_code[last.tb_lasti] not in _RAISE


def is_from_inside(trace: TracebackType) -> bool:
    """Was this error made by our code or by an array library?  The compiled core asks: what else is raised while it
    calls a kernel comes from the handler of a signal, and is the program's."""
    file = _innermost(trace).tb_frame.f_code.co_filename
    return file.startswith(_HERE) or _is_of_library(file)


def _innermost(trace: TracebackType) -> TracebackType:
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _is_of_library(file: str) -> bool:
    return file.endswith(".pyx") or any(part in file for part in _LIBRARIES)


def _opcodes_tell() -> bool:
    """Does this interpreter's bytecode tell a ``raise`` from an accident? Where it does not, all count as raised."""

    def caught(what: str) -> Exception:
        try:
            if what == "raised":
                raise ValueError
            what.nothing  # type: ignore[attr-defined]  # noqa: B018
        except Exception as error:
            return error
        raise AssertionError

    def opcode(error: Exception) -> int:
        trace = error.__traceback__
        return -1 if trace is None else trace.tb_frame.f_code.co_code[trace.tb_lasti]

    return opcode(caught("raised")) in _RAISE and opcode(caught("an accident")) not in _RAISE


_OPCODES_TELL = _opcodes_tell()


def describe(value: Any) -> str:
    """An argument in a few words."""
    if isinstance(value, Tensor):
        return f"{value.dtype} Tensor of shape {list(value._memory_.shape)}"
    if isinstance(value, (tuple, list)) and len(value) < 9:
        inside = ", ".join(describe(one) for one in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        text = repr(value)
        return text if len(text) < 40 else f"{text[:30]}..."
    return type(value).__name__


def unfit(name: str, error: BaseException, args: Any, kwargs: Any = ()) -> BaseException:
    """What is to be raised instead of an accident; any other error itself."""
    if not is_accident(error):
        special = special_tensors(args, dict(kwargs)) if isinstance(error, NoArray) else ()
        return special[0]._no_form_(name) if special else error
    instead = _instead(name, error, args, kwargs)
    instead.__cause__ = error
    return instead


def _instead(name: str, error: BaseException, args: Any, kwargs: Any) -> BaseException:
    given = [describe(a) for a in args] + [f"{k}={describe(v)}" for k, v in dict(kwargs).items() if v is not None]
    if isinstance(error, MemoryError):
        return RuntimeError(f"{name}(): can't allocate memory: {_bytes(error)}got ({', '.join(given)})")
    values = (*args, *dict(kwargs).values())
    if isinstance(error, ValueError) and ("array is too big" in str(error) or "dimension exceeded" in str(error)):
        return _too_large(name, values, given)
    if any(isinstance(a, int) and not -(2**63) <= a < 2**64 for a in values):
        return ValueError(
            f"Overflow when unpacking long long: {name}() takes no int of more than 64 bits, but got "
            f"({', '.join(given)})"
        )
    tensors = [a for a in values if isinstance(a, Tensor)]
    if any(a.__class__ is complex for a in values) and not any(t.is_complex() for t in tensors):
        return RuntimeError(
            f"value cannot be converted to type double without overflow: {name}() takes no complex number here, but "
            f"got ({', '.join(given)})"
        )
    kind = type(error) if type(error) in (TypeError, IndexError, NotImplementedError) else RuntimeError
    if isinstance(error, AttributeError):  # something is not of the class that has it
        kind = TypeError
    if isinstance(error, OverflowError):
        kind = ValueError if "C long" in str(error) else RuntimeError
    return kind(f"{name}() received arguments that do not go together - got ({', '.join(given)})")


def _too_large(name: str, values: Any, given: list[str]) -> RuntimeError:
    """NumPy refuses sizes whose bytes no 64-bit number counts."""
    sizes = next((v for v in values if isinstance(v, (tuple, list))), [v for v in values if isinstance(v, int)])
    if name in ("expand", "resize_") and math.prod(sizes) >= 2**63:
        what = "numel: integer multiplication overflow"
    elif 0 in sizes:  # it would be none, but its strides are counted too
        what = "Stride calculation overflowed"
    else:
        what = f"Storage size calculation overflowed with sizes={list(sizes)}"
    return RuntimeError(f"{what}: {name}() got ({', '.join(given)})")


def _bytes(error: MemoryError) -> str:
    """NumPy's error knows the shape and the dtype."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is None or dtype is None:
        return ""
    count = 1
    for n in shape:
        count *= int(n)
    return f"you tried to allocate {count * dtype.itemsize} bytes; "
