"""Values of the types that schemas have: what a caller gives, as the kernel of an operator sees it.

``int[]`` of a tuple is a list, ``float`` of an integer is a float, ``Device`` of a string is a device. Called by
ops/custom.py, for the arguments of operators that programs define and for what their kernels return.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..core.constants import memory_format
from ..core.devices import device
from ..core.dtypes import dtype
from ..core.layout import layout
from ..tensor import Tensor

Cast = Callable[[Any], Any]


class Unsuitable(Exception):
    """A value is not of a type."""


def _tensor(value: Any) -> Any:
    if value is None or isinstance(value, Tensor):  # (None: a tensor that is not there)
        return value
    raise Unsuitable


def _number_in(value: Any) -> Any:
    """The one element of a tensor or an array."""
    if (value.numel() if isinstance(value, Tensor) else value.size) != 1:
        raise Unsuitable
    return value.item()


def _int(value: Any) -> Any:
    if type(value) is int:
        return value
    if isinstance(value, (Tensor, np.ndarray)):
        return int(_number_in(value))
    if isinstance(value, np.bool_):
        return int(value)
    try:
        return operator.index(value)
    except TypeError:
        raise Unsuitable from None


def _float(value: Any) -> Any:
    if type(value) is float:
        return value
    if isinstance(value, (Tensor, np.ndarray)):
        value = _number_in(value)
    if isinstance(value, (str, bytes, complex)):
        raise Unsuitable
    try:
        return float(value)
    except TypeError:
        raise Unsuitable from None


def _bool(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, complex, np.generic)):
        return bool(value)
    if isinstance(value, (Tensor, np.ndarray)):
        return bool(_number_in(value))
    raise Unsuitable


def _complex(value: Any) -> Any:
    if isinstance(value, (int, float, complex, np.generic)):
        return complex(value)
    raise Unsuitable


def _scalar(value: Any) -> Any:
    if isinstance(value, (bool, int, float, complex)):
        return value
    raise Unsuitable


def _str(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode()
    raise Unsuitable


def _device(value: Any) -> Any:
    if isinstance(value, device):
        return value
    if isinstance(value, str):
        return device(value)
    raise Unsuitable


def _instance(cls: type) -> Cast:
    def cast(value: Any) -> Any:
        if isinstance(value, cls):
            return value
        raise Unsuitable

    return cast


_CASTS: dict[str, Cast] = {
    "Tensor": _tensor, "int": _int, "SymInt": _int, "float": _float, "SymFloat": _float, "bool": _bool,
    "SymBool": _bool, "complex": _complex, "Scalar": _scalar, "number": _scalar, "str": _str, "Device": _device,
    "ScalarType": _instance(dtype), "Layout": _instance(layout), "MemoryFormat": _instance(memory_format),
}  # fmt: skip
#: What errors call them.
_SHOWN = {"SymInt": "int", "SymFloat": "float", "SymBool": "bool", "Scalar": "number"}


@cache
def cast_of(kind: str) -> Cast | None:
    """What makes a value one of a schema's type, or raises `Unsuitable`; None for types that anything may be of."""
    if kind.endswith("?"):
        inner = cast_of(kind[:-1])
        return inner and (lambda value: None if value is None else inner(value))
    if kind.endswith("]"):
        element, _, count = kind[:-1].rpartition("[")
        return _list_of(element, int(count) if count else 0)
    if kind.startswith("("):
        return _tuple_of_one(kind[1:-1])
    return _CASTS.get(kind)


def _tuple_of_one(element: str) -> Cast:
    inner = cast_of(element)

    def cast(value: Any) -> Any:
        if not isinstance(value, (tuple, list)) or len(value) != 1:
            raise Unsuitable
        return (value[0] if inner is None else inner(value[0]),)

    return cast


def _list_of(element: str, count: int) -> Cast | None:
    inner = cast_of(element)
    if inner is None:
        return None
    alone = {"int": int, "float": float, "bool": bool}.get(element) if count else None
    strict = element == "Tensor"  # (of which none may be missing)

    def cast(value: Any) -> Any:
        if alone is not None and type(value) is alone:
            return [value] * count
        if isinstance(value, (str, bytes, Tensor, dict)) or not hasattr(type(value), "__len__"):
            raise Unsuitable
        found = [inner(one) for one in value]
        if strict and any(one is None for one in found):
            raise Unsuitable
        return found

    return cast


def shown(kind: str) -> str:
    """What an error calls a type of a schema: ``Optional[List[int]]``."""
    if kind.endswith("?"):
        return f"Optional[{shown(kind[:-1])}]"
    if kind.startswith("("):
        return f"Tuple[{shown(kind[1:-1])}]"
    if kind.endswith("]"):
        return f"List[{shown(kind.rpartition('[')[0])}]"
    return _SHOWN.get(kind, kind)
