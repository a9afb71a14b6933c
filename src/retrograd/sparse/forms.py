"""Which operators there are of sparse tensors: the tables that `operators.operate` looks into.

A form has the operator's own signature and is found by its name, for the layout ``torch.sparse_coo`` (`COO`), for the
compressed ones (`COMPRESSED`), or both.  An operator whose arguments include tensors of several layouts is looked up
for each of them, those of coordinates first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..kernels import SparseArray

F = TypeVar("F", bound=Callable[..., Any])

COO: dict[str, Callable[..., Any]] = {}
COMPRESSED: dict[str, Callable[..., Any]] = {}


def coo(*names: str) -> Callable[[F], F]:
    """Declare a form for tensors of coordinates, under its own name or these."""
    return _declare(names, COO)


def compressed(*names: str) -> Callable[[F], F]:
    """The same for compressed tensors."""
    return _declare(names, COMPRESSED)


def both(*names: str) -> Callable[[F], F]:
    """The same for all sparse tensors."""
    return _declare(names, COO, COMPRESSED)


def _declare(names: tuple[str, ...], *tables: dict[str, Callable[..., Any]]) -> Callable[[F], F]:
    def declare(form: F) -> F:
        for table in tables:
            for name in names or (form.__name__,):
                assert name not in table, name
                table[name] = form
        return form

    return declare


def forms_of(tensor: Any) -> dict[str, Callable[..., Any]]:
    """The table for a sparse tensor."""
    return COO if isinstance(tensor._memory_, SparseArray) else COMPRESSED
