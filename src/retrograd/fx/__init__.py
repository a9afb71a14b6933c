"""``torch.fx``: programs as graphs of calls, which is not here: its names can be imported, and refuse.

A module runs as the Python that it is. What a program computes can be watched instead: `torch.utils._python_dispatch`
sees every operator, `torch.autograd.graph` the history of a result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "symbolic_trace", "wrap"]


class _Refused:
    """Refused: nothing is traced here."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"torch.fx.{type(self).__name__}: retrograd has no graphs of Python programs. Watch the operators with a "
            "TorchDispatchMode of torch.utils._python_dispatch, or read the history of a result from its grad_fn"
        )


class Graph(_Refused):
    pass


class GraphModule(_Refused):
    pass


class Interpreter(_Refused):
    pass


class Node(_Refused):
    pass


class Proxy(_Refused):
    pass


class Tracer(_Refused):
    pass


class Transformer(_Refused):
    pass


def wrap(fn_or_name: Any) -> Any:
    """A function that a trace is not to look into: itself."""
    return fn_or_name


def symbolic_trace(root: Callable[..., Any], concrete_args: dict | None = None) -> Any:
    """A graph of what a module does: refused."""
    return Tracer(root, concrete_args)
