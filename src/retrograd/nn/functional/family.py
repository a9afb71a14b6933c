"""Functions of ``functional`` that differ in nothing but the number of spatial dimensions are written once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ...ops.registry import composite

F = TypeVar("F", bound=Callable[..., Any])

#: What has one, two and three spatial dimensions.
THINGS = ("signals (batch, channels, length)", "images (batch, channels, height, width)",
          "volumes (batch, channels, depth, height, width)")  # fmt: skip


def family(name: str, make: Callable[[int], F], doc: str, dims: tuple[int, ...] = (1, 2, 3)) -> tuple[F, ...]:
    """``make(1), make(2), make(3)``, with name and docstring: `name` and `doc` have {d}, `doc` may have {things}."""
    made = []
    for d in dims:
        function = make(d)
        function.__name__ = function.__qualname__ = name.format(d=d)
        function.__doc__ = doc.format(d=d, things=THINGS[d - 1])
        made.append(function)
    return tuple(made)


def declared_family(
    name: str, make: Callable[[int], F], doc: str, dims: tuple[int, ...] = (1, 2, 3), *, shared: tuple[int, ...] = (),
    out: bool = False,
) -> tuple[F, ...]:  # fmt: skip
    """`family`, declared as functions of ``nn.functional``; those of the dimensions `shared` are torch.NAME too."""
    made = family(name, make, doc, dims)
    for d, function in zip(dims, made, strict=True):
        also = (f"torch.{function.__name__}",) if d in shared else ()
        composite(*also, space="nn.functional", out=out)(function)
    return made
