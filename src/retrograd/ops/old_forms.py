"""Calls with numbers before the tensors: ``torch.add(x, 2, y)`` for ``x + 2 * y``.

Torch once wrote factors as positional arguments in front of what they multiply, and still takes that, with a warning.
Which operators do is in the table (column `old_form`); their wrappers come here with more arguments than they take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.records import record_of
from ..core.said_once import say_once
from ..tensor import Tensor


def old_form(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call as it is written today, if this was one of the old ones.

    >>> import warnings
    >>> import retrograd as torch
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     torch.addmm(2, torch.ones(1, 1), 3, torch.ones(1, 1), torch.ones(1, 1))  # type: ignore
    tensor([[5.]])
    """
    record: Any = record_of(function)
    factors = [name for name in kwargs if name != "out"]
    count = len(record.arguments) - len(factors)
    is_tensor = [isinstance(value, Tensor) for value in args]
    if len(args) == 3 and "Scalar" in record.overloads:
        is_tensor[2] = True  # add(x, 2, 3): what is added may be a number, too
    tensors = tuple([value for value, is_one in zip(args, is_tensor) if is_one])
    numbers = [value for value, is_one in zip(args, is_tensor) if not is_one]
    kinds = "".join("T" if is_one else "n" for is_one in is_tensor)
    rest = "T" * (count - 1)
    # A factor of the first tensor stands before it, or is the first argument of the method.
    forms = (f"Tn{rest}",) if len(factors) == 1 else (f"nTn{rest}", f"nT{rest}", f"Tnn{rest}", f"Tn{rest}")
    if kinds not in forms or any(kwargs[name] != 1 for name in factors):
        raise TypeError(
            f"{record.name}() received an invalid combination of arguments: it takes {count} positional arguments, but "
            f"{len(args)} were given"
        )
    name, given = function.__name__, dict(zip(factors, numbers))
    call = ", ".join([*record.arguments[:count], *[f"{name}={value}" for name, value in given.items()]])
    say_once(
        f"This overload of {name} is deprecated: numbers before tensors. Write {name}({call}) instead."
    )
    return function(*tensors, **{**kwargs, **given})
