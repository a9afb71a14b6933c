"""Calls with things that are no numbers, or do not fit, on half-precision tensors: a program for a process of its own.

``python wrong_numbers.py`` makes them all and prints how many it made.  Every call may raise what it likes and none may
end the interpreter, as ml_dtypes does when it is asked for ``bfloat16("a")``.  The name of the call is written to
stderr before it is made, so that the last line there is the culprit's.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import retrograd

WRONG: list[Any] = ["a", b"x", None, object(), ["a"], 1j, np.str_("a"), 1e300]

#: What ends or changes the process itself, by design or for want of an argument.
LEFT_OUT = ("set_", "use_", "save", "load", "manual_seed", "seed", "initial_seed", "register_", "share_", "get_", "__")


def callables() -> Iterator[tuple[str, Any]]:
    """Functions, functions of neural networks, and methods of Tensor, the arithmetic ones too."""
    modules = {"": retrograd, "nn.functional.": retrograd.nn.functional, "special.": retrograd.special}
    for prefix, module in modules.items():
        for name in sorted(set(dir(module))):
            thing = getattr(module, name, None)
            if not name.startswith((*LEFT_OUT, "_")) and inspect.isfunction(thing):
                yield prefix + name, thing
    arithmetic = ("add", "radd", "iadd", "mul", "imul", "truediv", "rtruediv", "pow", "rpow", "mod", "floordiv", "sub")
    arithmetic += ("rsub", "eq", "lt", "ge", "and", "or", "xor", "lshift", "matmul", "setitem", "getitem", "contains")
    names = [n for n in dir(retrograd.Tensor) if not n.startswith((*LEFT_OUT, "_"))] + [f"__{n}__" for n in arithmetic]
    for name in sorted(names):
        thing = getattr(retrograd.Tensor, name)
        if callable(thing):
            yield f"Tensor.{name}", thing


def calls(thing: Any, dtype: Any, wrong: Any) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The wrong thing in every place of the first three, and as every keyword that takes a number."""

    def x() -> Any:
        return retrograd.ones(2, 2, dtype=dtype)

    index = retrograd.zeros(2, 2, dtype=retrograd.int64)
    yield (x(), wrong), {}
    yield (x(), wrong, wrong), {}
    yield (x(), x(), wrong), {}
    yield (x(), 0, wrong), {}
    yield (x(), x() > 0, wrong), {}
    yield (x(), 0, index, wrong), {}
    yield (x(), x(), x(), wrong), {}
    yield (wrong, x()), {}
    for name in ("value", "alpha", "beta", "eps", "fill_value", "p", "std"):
        try:
            if name in inspect.signature(thing).parameters:
                yield (x(), x()), {name: wrong}
                yield (x(), x(), x()), {name: wrong}
        except (TypeError, ValueError):
            return


def main() -> int:
    """Make the calls; returns how many."""
    warnings.simplefilter("ignore")
    made = 0
    with open(os.devnull, "w") as quiet:
        printed, sys.stdout = sys.stdout, quiet
        for name, thing in callables():
            for dtype, things in ((retrograd.bfloat16, WRONG), (retrograd.float16, WRONG[:2])):
                for wrong in things:
                    for args, kwargs in calls(thing, dtype, wrong):
                        sys.stderr.write(f"{name} {dtype} {wrong!r} {len(args)} {list(kwargs)}\n")
                        made += 1
                        try:
                            thing(*args, **kwargs)
                        except Exception:
                            continue
        sys.stdout = printed
    return made


if __name__ == "__main__":
    print(main())
