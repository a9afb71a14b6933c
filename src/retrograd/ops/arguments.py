"""The types that arguments have, and torch's words for what is not of them.

One place for the rules: the checks that the generator writes into operators, and those that `checked.py` puts before
all other public functions, both come here when an argument is not plainly what it should be. The rules are torch's: an
int may be NumPy's or a 0-d integer tensor but no bool, a number may be a 0-d tensor, a list is judged by its first
element and its others when they are taken out, and so on.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.devices import as_device
from ..core.devices import device as Device
from ..core.dtypes import dtype as Dtype
from ..kernels.promotion import real_number
from ..tensor import Tensor

#: The smallest and the largest number that an int argument can be.
LOWEST, HIGHEST = -(2**63), 2**63 - 1

# ----------------------------------------------------------------------------------------------------- what fits a type


def _zero_dim(value: Any, kinds: str) -> bool:
    """A tensor that may stand for a number: of these kinds of dtype, 0-d, and without a gradient."""
    if not isinstance(value, Tensor) or value.requires_grad:
        return False
    return not value._memory_.ndim and value._memory_.dtype.kind in kinds


def _is_int(value: Any) -> bool:
    if isinstance(value, (int, np.integer)):
        return not isinstance(value, bool)
    if value.__class__ is np.ndarray:
        return not value.ndim and value.dtype.kind in "iu"
    return _zero_dim(value, "iu")


def _is_float(value: Any) -> bool:
    return isinstance(value, (float, int, np.floating, np.integer)) or _zero_dim(value, "fViub")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex, np.number, np.bool_)) or _zero_dim(value, "fViubc")


def _is_int_list(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and (not value or _is_int(value[0]))


def _is_int_or_none_list(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(one is None or _is_int(one) for one in value)


def _is_float_list(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and (not value or _is_float(value[0]))


def _is_bool_list(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(one, bool) for one in value)


def _is_number_list(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(_is_number(one) for one in value)


def _is_tensor_list(value: Any) -> bool:
    return isinstance(value, (tuple, list))


def _is_dtype(value: Any) -> bool:
    return isinstance(value, (Dtype, np.dtype)) or any(value is python for python in (float, int, bool, complex))


def _is_device(value: Any) -> bool:
    return isinstance(value, (Device, str)) or (isinstance(value, int) and not isinstance(value, bool))


def _is_a(name: str) -> Callable[[Any], bool]:
    return lambda value: type(value).__name__.lstrip("_") == name


#: Type -> (torch's word for it, does a value fit).
TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "Tensor": ("Tensor", lambda value: isinstance(value, Tensor)),
    "Tensor|Scalar": ("Tensor", lambda value: isinstance(value, Tensor) or _is_number(value)),
    "Scalar": ("Number", _is_number),
    "int": ("int", _is_int),
    "float": ("float", _is_float),
    "bool": ("bool", lambda value: isinstance(value, bool)),
    "str": ("str", lambda value: isinstance(value, str)),
    "dtype": ("torch.dtype", _is_dtype),
    "Device": ("torch.device", _is_device),
    "Layout": ("torch.layout", _is_a("layout")),
    "MemoryFormat": ("torch.memory_format", _is_a("memory_format")),
    "Generator": ("torch.Generator", _is_a("Generator")),
    "int[]": ("tuple of ints", _is_int_list),
    #: Where torch's own function is written in Python, which does not take a tensor for an int.
    "pyint": ("int", lambda value: _is_int(value) and not isinstance(value, Tensor)),
    "pyint[]": ("tuple of ints", lambda value: _is_int_list(value) and not any(isinstance(n, Tensor) for n in value)),
    "int?[]": ("tuple of ints", _is_int_or_none_list),
    "float[]": ("tuple of floats", _is_float_list),
    "bool[]": ("tuple of bools", _is_bool_list),
    "Scalar[]": ("tuple of Scalars", _is_number_list),
    "Tensor[]": ("tuple of Tensors", _is_tensor_list),
    "Tensor?[]": ("tuple of Tensors", _is_tensor_list),
    "Tensor|int[]": ("Tensor", lambda value: isinstance(value, Tensor) or _is_int_list(value)),
    "callable": ("callable", callable),
    "dict": ("dict", lambda value: isinstance(value, dict)),
    #: A number that may not be complex, which is found when it is converted.
    "real": ("Number", _is_number),
    "Scalar|str": ("Number", lambda value: _is_number(value) or isinstance(value, str)),
    #: Whatever Python can take for true or false.
    "truth": ("bool", lambda value: True),
    "any": ("object", lambda value: True),
}


def overflow() -> ValueError:
    """The error for an int argument that is too large."""
    return ValueError("Overflow when unpacking long long: an int argument must be less than 2**63")


def _as_int(value: Any) -> int:
    number = int(value.item() if isinstance(value, Tensor) else value)
    if not LOWEST <= number <= HIGHEST:
        raise overflow()
    return number


def as_number(value: Any) -> Any:
    """A number that stands for an element, as a Python number."""
    if isinstance(value, (Tensor, np.generic)):
        value = value.item()
    if isinstance(value, int) and not LOWEST <= value <= HIGHEST + 2**63:
        raise OverflowError(f"int too big to convert: no element can hold {str(value)[:20]}...")
    return value


def _as_float(value: Any) -> float:
    try:
        return float(value.item() if isinstance(value, Tensor) else value)
    except OverflowError:
        raise OverflowError("int too large to convert to float") from None


def _as_ints(value: Any, where: str, name: str) -> tuple[int, ...]:
    """The ints of a list: the first has been looked at, and a bool may stand for a further one."""
    result = []
    for position, one in enumerate(value):
        if not _is_int(one) and not isinstance(one, bool):
            raise TypeError(
                f"{where}(): argument '{name}' failed to unpack the object at pos {position + 1} with error "
                f'"type must be tuple of ints,but got {type(one).__name__}"'
            )
        try:
            result.append(_as_int(one))
        except ValueError as error:
            raise TypeError(
                f"{where}(): argument '{name}' failed to unpack the object at pos {position + 1} with error \"{error}\""
            ) from None
    return tuple(result)


class Type:
    """A type of the language of signatures: ``int``, ``int[2]?``, ``Tensor|Scalar`` ..."""

    def __init__(self, text: str) -> None:
        #: May the elements of the list be arguments of their own, as in ``block_diag(a, b)``?
        self.spread: bool = text.endswith("...")
        text = text.removesuffix("...")
        self.text = text
        self.optional: bool = text.endswith("?")
        base = text.removesuffix("?")
        match = re.fullmatch(r"(\w+\??)\[(\d+)\]", base)
        #: A list of which one element may stand for all.
        self.expands: bool = match is not None
        self.base: str = f"{match[1]}[]" if match else base
        word, fits = TYPES[self.base]
        self.word: str = word
        self.fits: Callable[[Any], bool] = fits

    def takes(self, value: Any) -> bool:
        """Would torch take the value?"""
        if value is None:
            return self.optional or self.base in ("any", "truth")
        if self.fits(value):
            return True
        if not self.expands:
            return False
        return TYPES[self.base.removesuffix("[]").removesuffix("?")][1](value)

    def convert(self, value: Any, where: str, name: str, position: int) -> Any:
        """A value that fits, as functions here expect it: plain numbers, tuples of ints."""
        if value is None:
            return None
        match self.base:
            case "int" | "pyint":
                return _as_int(value)
            case "float":
                return _as_float(value)
            case "bool":
                return bool(value)
            case "Scalar":
                return as_number(value)
            case "Scalar|str":
                return value if isinstance(value, str) else as_number(value)
            case "real":
                value = as_number(value)
                return real_number(value) if isinstance(value, complex) else value
            case "truth":
                return bool(value)
            case "Tensor|Scalar":
                return value if isinstance(value, Tensor) else as_number(value)
            case "int[]" | "pyint[]":
                return _as_ints(value, where, name) if isinstance(value, (tuple, list)) else _as_int(value)
            case "Tensor[]" | "Tensor?[]":
                for index, one in enumerate(value):
                    if not isinstance(one, Tensor) and not (one is None and self.base == "Tensor?[]"):
                        raise TypeError(
                            f"expected Tensor as element {index} in argument {position - 1}, but got "
                            f"{type(one).__name__}"
                        )
            case "dtype":
                return value if isinstance(value, (Dtype, np.dtype)) else _PYTHON[value]()
            case "Device":
                as_device(value)
        return value


def _python_dtypes() -> dict[type[Any], Callable[[], Dtype]]:
    return {float: lambda: dtypes.float64, int: lambda: dtypes.int64, bool: lambda: dtypes.bool_,
            complex: lambda: dtypes.complex128}  # fmt: skip


_PYTHON = _python_dtypes()


@functools.cache
def type_of(text: str) -> Type:
    """The type of that name."""
    return Type(text)


def wrong_type(where: str, name: str, position: int, word: str, value: Any) -> TypeError:
    """``mul(): argument 'other' (position 2) must be Tensor, not str``."""
    at = f" (position {position})" if position else ""
    return TypeError(f"{where}(): argument '{name}'{at} must be {word}, not {type(value).__name__}")


def argument(type_: str, where: str, name: str, position: int, value: Any) -> Any:
    """The value of an argument of an operator, which is not plainly what it should be: converted, or refused."""
    expected = type_of(type_)
    if not expected.takes(value):
        raise wrong_type(where, name, position, expected.word, value)
    return expected.convert(value, where, name, position)
