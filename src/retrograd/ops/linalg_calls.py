"""How the functions of ``torch.linalg`` may be called: with ``out=``, and by the names that torch's signatures have."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .checked import checked
from .support import write_out

#: What the first argument is called, in torch's documentation or in its signatures.
_FIRST = ("A", "input", "x", "LD", "LU", "tensors")


#: Where a second argument without a name is a tolerance.
_TOLERANT = {"pinv": "rtol", "matrix_rank": "atol"}
#: What an argument is called in torch's signature, where that is not what it is called here.
_OTHER_NAMES = {"pinv": {"rcond": "rtol"}, "matrix_rank": {"tol": "atol"}, "tensorsolve": {"other": "B"}}


def public(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The operator under its short name, with ``out=``: a Tensor, or one for each result."""
    other_names = {"axis": "dim", "keepdims": "keepdim", **_OTHER_NAMES.get(name, {})}

    @functools.wraps(function)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if not args:
            args = tuple([kwargs.pop(first) for first in _FIRST if first in kwargs][:1])
        if name in _TOLERANT and len(args) > 1:  # an older form: the tolerance, and whether matrices are Hermitian
            kwargs.update(zip((_TOLERANT[name], "hermitian"), args[1:], strict=False))
            args = args[:1]
        for given, own in other_names.items():
            if given in kwargs:
                kwargs[own] = kwargs.pop(given)
        return function(*args, **kwargs) if out is None else write_out(function, out, args, kwargs)

    return checked(call, name, f"linalg.{name}")
