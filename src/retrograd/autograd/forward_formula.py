"""ForwardFormula: what forward mode knows of one operator of the table; ``_generated/jvps.py`` makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class ForwardFormula:
    """How to get the tangents of an operator's results."""

    __slots__ = (
        "duals",
        "function",
        "name",
        "needs_original",
        "plan",
        "positions",
        "refused",
        "results",
        "spread",
        "view",
    )

    def __init__(
        self,
        name: str,
        function: Callable[..., Any] | None,
        plan: tuple[Any, ...],
        spread: int | None,
        results: tuple[str, ...],
        view: bool,
        needs_original: bool,
        duals: Callable[..., Any] | None,
        refused: tuple[int, ...],
    ) -> None:
        self.name: str = name
        #: ``function(*results, *arguments)`` with a primal and a tangent for each differentiable argument; None: there
        #: is no formula.
        self.function: Callable[..., Any] | None = function
        #: The whole operator on dual tensors, over bare arrays; it gives None where it does not apply.
        self.duals: Callable[..., Any] | None = duals
        #: For each argument: is it differentiable (True), a list of tensors that are (list), or not (False)?
        self.plan: tuple[Any, ...] = plan
        #: Arguments that may not vary, because there is no formula for them.
        self.refused: tuple[int, ...] = refused
        #: Where the differentiable ones are, and those that would be.
        self.positions: tuple[int, ...] = tuple(i for i, kind in enumerate(plan) if kind)
        #: Which argument takes all further positions: ``x.view(2, 3)``.
        self.spread: int | None = spread
        self.results: tuple[str, ...] = results
        self.view: bool = view
        #: Does an in-place call have to keep what it overwrites?
        self.needs_original: bool = needs_original
