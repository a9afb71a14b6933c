"""L-BFGS: a quasi-Newton method that knows curvature by its last steps, with a line search if asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..autograd.grad_mode import enable_grad, no_grad
from ..core.quiet import once
from ..kernels.updates import two_loops
from ..ops import factories
from ..ops import namespace as ops
from ..tensor import Tensor, wrap
from .checks import _get_value, check_lr
from .optimizer import Optimizer, ParamsT
from .update import as_real

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """L-BFGS over all parameters as one vector; each step calls `closure` several times.

    `line_search_fn` is None, for steps of length `lr`, or ``"strong_wolfe"``.

    >>> import retrograd as torch
    >>> w = torch.tensor([3., -2.], requires_grad=True)
    >>> optimizer = torch.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((w - torch.tensor([1., 2.])) ** 4).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    272.0
    >>> closure().item() < 1e-3
    True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    # ------------------------------------------------------------------------------------- all parameters as one vector

    def _gather_flat_grad(self) -> Tensor:
        parts = []
        for param in self._params:
            grad: Any = param.grad
            if grad is None:
                grad = factories.zeros_like(param)
            elif grad.is_sparse:
                grad = grad.to_dense()
            parts.append(as_real(grad).reshape(-1))
        return ops.cat(parts, 0)

    def _add_grad(self, step_size: float, update: Tensor) -> None:
        """Go `step_size` times the direction `update`."""
        offset = 0
        for param in self._params:
            real = as_real(param)
            count = real.numel()
            real.add_(update[offset : offset + count].view_as(real), alpha=step_size)
            offset += count

    def _evaluate(self, closure: Callable, start: list[Tensor], t: float, d: Tensor) -> _Point:
        """Loss and gradient at `t` times `d` from `start`, where the parameters are put back to."""
        self._add_grad(t, d)
        loss = float(_get_value(closure()))
        grad = self._gather_flat_grad()
        for param, value in zip(self._params, start, strict=True):
            param.copy_(value)
        return _Point(t, loss, grad, grad.dot(d).item())

    # ------------------------------------------------------------------------------------------------------------ steps

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Up to `max_iter` iterations; `closure` clears the gradients, computes the loss, differentiates it and
        returns it."""
        if len(self.param_groups) != 1:
            raise AssertionError(f"Expected exactly one param_group, but got {len(self.param_groups)}")
        closure = enable_grad()(closure)
        group = self.param_groups[0]
        lr = float(_get_value(group["lr"]))
        search = group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first_loss = closure()
        loss = float(_get_value(first_loss))
        evaluations = 1
        state["func_evals"] += 1
        grad = self._gather_flat_grad()
        if _largest(grad) <= group["tolerance_grad"]:
            return first_loss

        d, t, before = state.get("d"), state.get("t"), state.get("prev_flat_grad")
        loss_before = state.get("prev_loss")
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            first = state["n_iter"] == 1
            if first:
                d = grad.neg()
                state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            else:
                _remember_curvature(state, grad.sub(before), d.mul(_get_value(t)), group["history_size"])
                d = _direction(state, grad, group["history_size"])
            before = grad.clone() if before is None else before.copy_(grad)
            loss_before = loss
            t = lr
            if first:
                total = grad.abs().sum().item()
                t = lr * min(1.0, 1.0 / total if total else math.inf)
            slope = grad.dot(d).item()
            if slope > -group["tolerance_change"]:
                break

            used = 0
            if search is not None:
                start = [param.clone() for param in self._params]
                origin = _Point(0.0, loss, grad, slope)

                def evaluate(at: float, start: list[Tensor] = start, d: Tensor = d) -> _Point:
                    return self._evaluate(closure, start, at, d)

                found, used = _strong_wolfe(evaluate, origin, t, _largest(d), group["max_eval"] - evaluations)
                t, loss, grad, _ = found
                self._add_grad(t, d)
            else:
                self._add_grad(t, d)
                if iteration != group["max_iter"]:  # what is evaluated after the last one would not be used
                    loss = float(_get_value(closure()))
                    grad = self._gather_flat_grad()
                    used = 1
            evaluations += used
            state["func_evals"] += used
            if (
                evaluations >= group["max_eval"]
                or _largest(grad) <= group["tolerance_grad"]
                or _largest(d) * abs(t) <= group["tolerance_change"]
                or abs(loss - loss_before) < group["tolerance_change"]
            ):
                break
        state.update(d=d, t=t, prev_flat_grad=before, prev_loss=loss_before)
        return first_loss


def _largest(x: Tensor) -> float:
    return x.abs().max().item()


def _remember_curvature(state: dict[str, Any], y: Tensor, s: Tensor, history_size: int) -> None:
    """A step `s` changed the gradient by `y`; steps along which the loss does not curve upwards tell nothing."""
    ys = y.dot(s)
    if ys.item() > 1e-10:
        if len(state["old_dirs"]) == history_size:
            for name in ("old_dirs", "old_stps", "ro"):
                state[name].pop(0)
        state["old_dirs"].append(y)
        state["old_stps"].append(s)
        state["ro"].append(1.0 / ys)
        state["H_diag"] = ys / y.dot(y)


def _direction(state: dict[str, Any], grad: Tensor, history_size: int) -> Tensor:
    """Minus the gradient times the inverse Hessian, as far as the remembered steps tell it."""
    changes, steps = ([tensor._numbers_ for tensor in state[name]] for name in ("old_dirs", "old_stps"))
    ro = [_get_value(value) for value in state["ro"]]
    direction, coefficients = once(
        two_loops, grad._numbers_, changes, steps, ro, _get_value(state["H_diag"])
    )
    al = state.setdefault("al", [None] * history_size)
    al[: len(coefficients)] = [wrap(coefficient) for coefficient in coefficients]
    return wrap(direction)


# --------------------------------------------------------------------------------------------------------- line search


class _Point(NamedTuple):
    """A point on the line: how far, the loss, the gradient and the slope along the line."""

    t: float
    loss: float
    grad: Tensor
    slope: float


def _cubic_interpolate(a: _Point, b: _Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points, with their slopes, is smallest; within bounds."""
    low, high = bounds or (min(a.t, b.t), max(a.t, b.t))
    d1 = a.slope + b.slope - 3 * _quotient(a.loss - b.loss, a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    if a.t > b.t:
        a, b = b, a
    best = b.t - (b.t - a.t) * _quotient(b.slope + d2 - d1, b.slope - a.slope + 2 * d2)
    return min(max(best, low), high)


def _quotient(a: float, b: float) -> float:
    """By the rules of IEEE: no error for a zero."""
    if b:
        return a / b
    return math.copysign(math.inf, a) if a else math.nan


def _strong_wolfe(
    evaluate: Callable[[float], _Point], start: _Point, t: float, longest: float, max_steps: int,
    c1: float = 1e-4, c2: float = 0.9, tolerance_change: float = 1e-9,
) -> tuple[_Point, int]:  # fmt: skip
    """A point where the loss has fallen enough (by `c1`) and the slope has flattened enough (by `c2`), or the best
    that was met; and how many were looked at."""

    def too_high(point: _Point) -> bool:
        return point.loss > start.loss + c1 * point.t * start.slope

    def flat(point: _Point) -> bool:
        return abs(point.slope) <= -c2 * start.slope

    start = start._replace(grad=start.grad.clone())
    before, now = start, evaluate(t)
    steps, looked = 0, 1
    # Go further until a good point lies in between.
    while steps < max_steps:
        if too_high(now) or (steps > 1 and now.loss >= before.loss):
            bracket = [before, now]
            break
        if flat(now):
            return now, looked
        if now.slope >= 0:
            bracket = [before, now]
            break
        t = _cubic_interpolate(before, now, (now.t + 0.01 * (now.t - before.t), now.t * 10))
        before, now = now, evaluate(t)
        steps, looked = steps + 1, looked + 1
    else:
        bracket = [start, now]

    # Close in on it.
    low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
    stalled = False
    while steps < max_steps:
        left, right = sorted((bracket[0].t, bracket[1].t))
        if (right - left) * longest < tolerance_change:
            break
        t = _cubic_interpolate(bracket[0], bracket[1])
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:  # too near to an end: allowed once, then moved away from it
            if stalled or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        now = evaluate(t)
        steps, looked = steps + 1, looked + 1
        if too_high(now) or now.loss >= bracket[low].loss:
            bracket[high] = now
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
        else:
            if flat(now):
                return now, looked
            if now.slope * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = now
    return bracket[low], looked
