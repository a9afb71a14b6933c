"""Recording a forward pass with dual numbers: each operator that carries a tangent is a node, and its run an event.

The nodes are those of the page, not of autograd: nothing has to require grad.  Edges have the direction that gradients
would have, from a result to what it was computed from, and tangents go against it.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable
from typing import Any

from ..autograd.forward_ad import dual_level, make_dual, unpack_dual
from ..autograd.forward_grad import fw_grad
from ..autograd.intercept import results_of
from ..core.state import process
from ..core.where import user_location
from ..tensor import Tensor
from . import events as ev
from .answers import answers
from .events import Events
from .graph import INPUT, OPERATION, GraphBuilder, Names
from .values import norm_and_flags
from .watch import Watcher, _tensors_in


def _arguments(function: Callable[..., Any], count: int) -> list[str | None]:
    """What a function calls its first arguments."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a builtin
        names = []
    return [names[position] if position < len(names) else None for position in range(count)]


class ForwardRun(Watcher):
    """One run of a function with dual numbers."""

    def __init__(self, names: Names) -> None:
        super().__init__()
        self.names: dict[int, tuple[Any, str]] = dict(names)
        self.builder: GraphBuilder = GraphBuilder(self.names)
        self.events: Events = Events()
        self.level: Any = None
        #: tensor -> the node that made it; it is held, so that no other gets its id
        self.known: dict[int, tuple[Tensor, int]] = {}
        self.began: int = 0

    def run(self, function: Callable[..., Any], primals: Any, tangents: Any) -> tuple[Any, Any]:
        """Call the function; its value and the tangent of that."""
        primals = primals if isinstance(primals, (tuple, list)) else (primals,)
        tangents = tangents if isinstance(tangents, (tuple, list)) else (tangents,)
        if len(primals) != len(tangents):
            raise RuntimeError(
                f"jvp(): expected one tangent for each primal, but there are {len(primals)} primals and "
                f"{len(tangents)} tangents"
            )
        with dual_level():
            self.level = process.dual_levels[-1]
            duals = [make_dual(primal, tangent) for primal, tangent in zip(primals, tangents, strict=True)]
            self.began = time.perf_counter_ns()
            for name, primal, dual in zip(_arguments(function, len(duals)), primals, duals, strict=True):
                known = self.builder.names.get(id(primal), (None, name))[1]
                if known is not None:
                    self.builder.names[id(dual)] = (dual, known)
                self._input(dual)
            with self:
                result = function(*duals)
            for tensor in results_of(result):
                found = self.known.get(id(tensor))
                if found is not None:
                    self.builder.roots.append(found[1])
            values = [unpack_dual(tensor) for tensor in results_of(result)]
        if isinstance(result, Tensor):
            return values[0].primal, values[0].tangent
        return tuple(value.primal for value in values), tuple(value.tangent for value in values)

    def __call__(
        self, operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any], proceed: Callable[..., Any]
    ) -> Any:
        inputs = [tensor for tensor in _tensors_in((args, kwargs)) if fw_grad(tensor, self.level) is not None]
        inputs.reverse()  # in the order in which they were written
        numbers = [self._number(tensor) for tensor in inputs]
        measured = [norm_and_flags(fw_grad(tensor, self.level)) for tensor in inputs]
        begin = time.perf_counter_ns()
        result = proceed()
        outputs = results_of(result) or [t for t in args[:1] if isinstance(t, Tensor)]
        outputs = [tensor for tensor in outputs if fw_grad(tensor, self.level) is not None]
        if not inputs or not outputs:
            return result
        builder = self.builder
        name = getattr(operator, "__name__", "operator")
        number = builder.add_plain(name, OPERATION, outputs[0], user_location(1), self._calls.current)
        builder.columns["flags"][number] = self._flags(outputs)
        builder.columns["flags_in"][number] = self._flags(inputs)
        total, flags = 0.0, 0
        for position, (source, (norm, some)) in enumerate(zip(numbers, measured, strict=True)):
            edge = builder.edge(number, source, 0, position)
            self._add(ev.GRAD, edge, begin, norm, some, len(numbers) - position - 1)
            total, flags = (total * total + (norm or 0.0) ** 2) ** 0.5, flags | some
        self._add(ev.RUN, number, begin, total, flags)
        norm, some = norm_and_flags(fw_grad(outputs[0], self.level))
        self._add(ev.DONE, number, time.perf_counter_ns(), norm, some)
        for tensor in outputs:
            self.known[id(tensor)] = (tensor, number)
        return result

    def _number(self, tensor: Tensor) -> int:
        found = self.known.get(id(tensor))
        return self._input(tensor) if found is None else found[1]

    def _input(self, tensor: Tensor) -> int:
        """A dual tensor that no operator of the run has made."""
        number = self.builder.add_plain("input", INPUT, tensor, None, None)
        self.known[id(tensor)] = (tensor, number)
        norm, flags = norm_and_flags(fw_grad(tensor, self.level))
        now = time.perf_counter_ns()
        self._add(ev.RUN, number, now, norm, flags)
        self._add(ev.DONE, number, now, norm, flags)
        return number

    def _add(self, kind: int, about: int, when: int, norm: float | None, flags: int, value: int = 0) -> None:
        lane = self.events.lane(threading.current_thread().name)
        self.events.add(kind, about, lane, 0, (when - self.began) // 1000, norm, flags, value)

    def data(self, title: str) -> dict[str, Any]:
        run: dict[str, Any] = {"name": title, "kind": "forward", "error": None, **self.builder.data()}
        run["events"] = self.events.data()
        run["memory"] = []
        run["answers"] = [answer for answer in answers(run, {}) if answer["id"] == "nan"]
        return run
