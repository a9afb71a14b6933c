"""ForwardFormula: what forward mode knows of one operator of the table; ``_generated/jvps.py`` makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class ForwardFormula:
    """How to get the tangents of an operator's results."""

    __slots__ = ("function", "name", "needs_original", "plain", "plan", "positions", "results", "spread", "view")

    def __init__(
        self,
        name: str,
        function: Callable[..., Any] | None,
        plan: tuple[Any, ...],
        spread: int | None,
        results: tuple[str, ...],
        returns_list: bool,
        view: bool,
        needs_original: bool,
    ) -> None:
        self.name = name
        #: ``function(*results, *arguments)`` with a primal and a tangent for each differentiable argument; None: there
        #: is no formula.
        self.function = function
        #: For each argument: is it differentiable (True), a list of tensors that are (list), or not (False)?
        self.plan = plan
        #: Where the differentiable ones are.
        self.positions = tuple(i for i, kind in enumerate(plan) if kind)
        #: Which argument takes all further positions: ``x.view(2, 3)``.
        self.spread = spread
        self.results = results
        self.view = view
        #: One new tensor, of arguments that are no lists: what nearly all operators are.
        self.plain = not view and len(results) == 1 and not returns_list and list not in plan
        #: Does an in-place call have to keep what it overwrites?
        self.needs_original = needs_original
