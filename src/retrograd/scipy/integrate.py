"""``solve_ivp``, of scipy.integrate, with derivatives by the adjoint equation.

Note [The adjoint equation]
A loss that depends on the states y(tᵢ) of ``y' = f(t, y, a)`` has the derivative λ(t) by the state at time t.
Backwards in time, ``λ' = -λ·∂f/∂y``; at each tᵢ the loss's own derivative by y(tᵢ) is added. The derivative by `a` is
the integral of ``λ·∂f/∂a``, that by y₀ is λ(t₀), and those by the times are ``λ·f`` there. All of this is one more
initial value problem, which `_adjoint` hands to the same solver, segment by segment. In an ordinary backward pass the
states come from the first solution's own interpolation. In a recorded pass they are integrated back along with λ,
from the states that were given out, and the problem is solved by `solve_ivp` itself, so that its solution has
derivatives too, to any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import integrate

from ..autograd import Function, grad
from ..autograd.grad_mode import enable_grad, is_grad_enabled, no_grad
from ..ops import namespace as ops
from ..tensor import Tensor, wrap
from .functions import captured_leaves, jacobian_rows, numbers

__all__ = ["solve_ivp"]

#: Methods that ask for the Jacobian.
_IMPLICIT = {"Radau", "BDF", "LSODA"}


class System:
    """``y' = fun(t, y, *args)`` and how it is to be solved."""

    def __init__(
        self, fun: Callable[..., Any], shape: tuple[int, ...], dtype: Any, args: tuple[Any, ...],
        options: dict[str, Any],
    ) -> None:  # fmt: skip
        self.fun, self.shape, self.dtype, self.args, self.options = fun, shape, dtype, args, options
        self.places: list[int] = [i for i, arg in enumerate(args) if isinstance(arg, Tensor) and arg.requires_grad]
        self.constants = tuple([arg.detach() if isinstance(arg, Tensor) else arg for arg in args])

    def time(self, t: float) -> Tensor:
        return wrap(np.array(t, dtype=np.float64)).to(self.dtype)

    def state(self, y: Any) -> Tensor:
        return wrap(np.array(y, dtype=np.float64)).to(self.dtype).reshape(self.shape)

    def slope(self, t: Tensor, y: Tensor, args: Sequence[Any]) -> Tensor:
        slope = self.fun(t, y, *args)
        if not isinstance(slope, Tensor) or slope.shape != y.shape or slope.dtype.is_complex:
            what = f"{tuple(slope.shape)}, {slope.dtype}" if isinstance(slope, Tensor) else type(slope).__name__
            raise ValueError(
                f"solve_ivp(): the function must return y', a real Tensor of the shape {tuple(y.shape)} of the state, "
                f"but it returned {what}"
            )
        return slope

    def with_given(self, tensors: Sequence[Tensor]) -> list[Any]:
        args = list(self.args)
        for place, tensor in zip(self.places, tensors):
            args[place] = tensor
        return args

    def right_hand_side(self, t: float, y: np.ndarray) -> np.ndarray:
        with no_grad():
            return numbers(self.slope(self.time(t), self.state(y), self.constants).double()).reshape(-1)

    def jacobian(self, t: float, y: np.ndarray) -> np.ndarray:
        with enable_grad():
            at = self.state(y).requires_grad_()
            return numbers(jacobian_rows(self.slope(self.time(t), at, self.constants), at).double())

    def event(self, function: Callable[..., Any]) -> Callable[..., float]:
        def happens(t: float, y: np.ndarray) -> float:
            with no_grad():
                return float(function(self.time(t), self.state(y), *self.constants))

        for name in ("terminal", "direction"):
            if hasattr(function, name):
                setattr(happens, name, getattr(function, name))
        return happens

    def solve(self, span: tuple[float, float], y0: np.ndarray, times: Any, **options: Any) -> Any:
        exact = {"jac": self.jacobian} if self.options.get("method") in _IMPLICIT else {}
        return integrate.solve_ivp(
            self.right_hand_side, span, y0, t_eval=times, **{**self.options, **exact, **options}
        )


def solve_ivp(
    fun: Callable[..., Tensor], t_span: Any, y0: Any, method: str = "RK45", t_eval: Any = None,
    dense_output: bool = False, events: Any = None, args: Any = (), **options: Any,
) -> Any:  # fmt: skip
    """The solution of ``y' = fun(t, y, *args)``, ``y(t_span[0]) = y0``: `scipy.integrate.solve_ivp`.

    `y0` may have any shape; the result's ``t`` and ``y`` are Tensors, ``y`` with the times as its last dimension.
    Methods that need the Jacobian (``"Radau"``, ``"BDF"``, ``"LSODA"``) get the exact one. Further options (``rtol``,
    ``atol``, ``max_step`` ...) are SciPy's, and hold for the adjoint equation too. ``y`` has derivatives by `y0`, by
    the tensors in `args`, by leaves that `fun` uses besides, and by `t_span` and `t_eval` where those are Tensors.
    Times that the solver or an event has chosen are constants.

    >>> import retrograd as torch
    >>> from retrograd import scipy
    >>> rate = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    >>> times = torch.tensor([1.0, 2.0], dtype=torch.float64)
    >>> solved = scipy.solve_ivp(lambda t, y, rate: -rate * y, (0, 2), [4.0], t_eval=times, args=(rate,), rtol=1e-8)
    >>> solved.y
    tensor([[2.4261, 1.4715]], dtype=torch.float64, grad_fn=<TrajectoryBackward>)
    >>> torch.autograd.grad(solved.y[0, 1], rate)  # d/dr 4 e^(-2 r)
    (tensor(-2.9430, dtype=torch.float64),)
    """
    if not callable(fun):
        raise TypeError(f"solve_ivp(): argument 'fun' must be callable, not {type(fun).__name__}")
    start = y0 if isinstance(y0, Tensor) else wrap(np.asarray(y0, dtype=np.float64))
    if not start.dtype.is_floating_point:
        raise TypeError(f"solve_ivp(): y0 is {start.dtype}: states are real numbers, best in float64")
    if "jac" in options:
        raise TypeError("solve_ivp(): jac is not an argument: the Jacobian is exact")
    arguments = args if isinstance(args, tuple) else (args,)
    system = System(fun, tuple(start.shape), start.dtype, arguments, {"method": method, **options})
    times = None if t_eval is None else np.asarray(numbers(t_eval), dtype=np.float64)
    if isinstance(t_span, Tensor):
        t_span = t_span.unbind(0)
    span = (float(numbers(t_span[0])), float(numbers(t_span[1])))
    watched = None
    if events is not None:
        watched = [system.event(e) for e in events] if isinstance(events, (list, tuple)) else system.event(events)
    recorded = is_grad_enabled()
    solved = system.solve(
        span, start.detach().double().numpy().reshape(-1), times, events=watched, dense_output=dense_output or recorded
    )
    dense = solved.sol
    solved.sol = _interpolation(dense, system) if dense_output else None
    states = ops.stack([system.state(y) for y in solved.y.T], -1) if solved.y.size else solved.y
    chosen = t_eval if isinstance(t_eval, Tensor) and len(solved.t) == len(t_eval) else None
    solved.t = wrap(solved.t).to(system.dtype) if chosen is None else chosen
    if solved.t_events is not None:
        solved.t_events = [wrap(t) for t in solved.t_events]
        solved.y_events = [wrap(np.array(y)).reshape(len(y), *system.shape) for y in solved.y_events]
    solved.y = states
    if recorded and len(solved.t):
        first = t_span[0] if isinstance(t_span[0], Tensor) else system.time(span[0])
        # The last time was given if the solver went all the way and chose where it looked.
        last = t_span[1] if chosen is None and times is None and solved.status == 0 else None
        if isinstance(last, Tensor) and last.requires_grad:
            solved.t = ops.cat([solved.t[:-1], last.reshape(1).to(system.dtype)])
        solved.y = _with_history(system, dense, states, solved.t, first, start)
    return solved


def _interpolation(dense: Any, system: System) -> Callable[[Any], Tensor]:
    """The solution between the times, without a history."""

    def at(t: Any) -> Tensor:
        values = dense(numbers(t))
        return wrap(np.array(values)).to(system.dtype).reshape(*system.shape, *np.shape(numbers(t)))

    return at


# ---------------------------------------------------------------------------------------------------------- derivatives


def _with_history(system: System, dense: Any, states: Tensor, t: Tensor, first: Tensor, y0: Tensor) -> Tensor:
    given = [system.args[place] for place in system.places]
    with enable_grad():
        at = y0.detach().requires_grad_()
        copies = [tensor.detach().requires_grad_() for tensor in given]
        when = system.time(float(first.item()))
        leaves = captured_leaves(system.slope(when, at, system.with_given(copies)), [at, *copies])
    inputs = [t, first, y0, *given, *leaves]
    if not any(tensor.requires_grad for tensor in inputs):
        return states
    return Trajectory.apply(system, dense, states, *inputs)


class Trajectory(Function):
    """States that were computed elsewhere, as a function of what they depend on."""

    @staticmethod
    def forward(ctx: Any, system: System, dense: Any, states: Tensor, *inputs: Tensor) -> Tensor:
        ctx.system, ctx.dense = system, dense
        result = states.clone()
        ctx.save_for_backward(result, *inputs)
        return result

    @staticmethod
    def backward(ctx: Any, v: Tensor) -> Any:
        states, t, first, y0, *tensors = ctx.saved_tensors
        system = ctx.system
        count = len(system.places)
        given, leaves = tensors[:count], tensors[count:]
        if is_grad_enabled():
            if leaves:
                raise RuntimeError(
                    "solve_ivp: the function uses tensors that require grad and that it was not given, of shapes "
                    f"{[tuple(leaf.shape) for leaf in leaves]}. By those, solutions have first derivatives only; pass "
                    "them in args= for higher ones (create_graph=True)"
                )
            found = _recorded_adjoint(system, v, states, t, first, y0, given)
        else:
            found = _adjoint(system, ctx.dense, v, states, t, first, given, leaves)
        return None, None, None, *found


def _products(system: System, when: Tensor, y: Tensor, costate: Tensor, given: Any, leaves: Any, graph: bool) -> Any:
    """f, and λ·∂f by the state, the arguments given and the leaves."""
    slope = system.slope(when, y, system.with_given(given))
    wanted = [y, *given, *leaves]
    if not slope.requires_grad:
        return slope, [None] * len(wanted)
    keep = graph or bool(leaves)  # what leads to the leaves may be somebody else's graph
    return slope, list(grad(slope, wanted, costate, create_graph=graph, retain_graph=keep, allow_unused=True))


def _flat(parts: Sequence[Tensor | None], like: Sequence[Tensor]) -> Tensor:
    filled = [ops.zeros_like(b) if a is None else a for a, b in zip(parts, like)]
    return ops.cat([part.reshape(-1) for part in filled]) if filled else ops.zeros(0)


def _adjoint(
    system: System, dense: Any, v: Tensor, states: Tensor, t: Tensor, first: Tensor, given: Any, leaves: Any
) -> list[Tensor | None]:
    """Gradients by the times, the first time, y0, the arguments and the leaves."""
    size = states[..., 0].numel()
    parameters = [*given, *leaves]
    copies = [tensor.detach().requires_grad_() for tensor in given]

    def backwards(time: float, joint: np.ndarray) -> np.ndarray:
        with enable_grad():
            y = system.state(dense(time)).requires_grad_()
            costate = system.state(joint[:size])
            _, parts = _products(system, system.time(time), y, costate, copies, leaves, graph=False)
        return -numbers(_flat(parts, [y, *parameters]).detach().double())

    def jacobian(time: float, joint: np.ndarray) -> np.ndarray:
        """The equation is linear in λ, and has nothing else of `joint` in it."""
        with enable_grad():
            y = system.state(dense(time)).requires_grad_()
            slope = system.slope(system.time(time), y, system.with_given(copies))
            blocks = [numbers(jacobian_rows(slope, x).double()) for x in (y, *copies, *leaves)]
        by_costate = -np.concatenate(blocks, axis=1).T
        return np.concatenate([by_costate, np.zeros((len(joint), len(joint) - size))], axis=1)

    joint = np.zeros(size + sum(p.numel() for p in parameters))
    by_time = np.zeros(len(t))
    when = numbers(t.double())
    options = {key: value for key, value in system.options.items() if key not in ("lband", "uband", "first_step")}
    if options["method"] in _IMPLICIT:
        options["jac"] = jacobian
    for place in range(len(when) - 1, -1, -1):
        arrived = numbers(v[..., place].double()).reshape(-1)
        by_time[place] = arrived @ system.right_hand_side(when[place], numbers(states[..., place]).reshape(-1))
        joint[:size] += arrived
        earlier = when[place - 1] if place else float(first.item())
        if earlier != when[place]:
            solved = integrate.solve_ivp(backwards, (when[place], earlier), joint, t_eval=[earlier], **options)
            if solved.status < 0:
                raise RuntimeError(f"solve_ivp: the adjoint equation was not solved: {solved.message}")
            joint = solved.y[:, -1].copy()
    y0 = dense(float(first.item()))
    by_first = -joint[:size] @ system.right_hand_side(float(first.item()), y0)
    found: list[Tensor | None] = [
        wrap(by_time).to(t.dtype),
        wrap(np.array(by_first)).to(first.dtype).reshape(first.shape),
        system.state(joint[:size]),
    ]
    at = size
    for parameter in parameters:
        part = joint[at : at + parameter.numel()]
        found.append(wrap(part.copy()).to(parameter.dtype).reshape(parameter.shape))
        at += parameter.numel()
    return found


def _recorded_adjoint(
    system: System, v: Tensor, states: Tensor, t: Tensor, first: Tensor, y0: Tensor, given: list[Tensor]
) -> list[Tensor | None]:
    """The same by Tensors, with y integrated back beside λ, so that it can be differentiated again."""
    size = y0.numel()

    def backwards(time: Tensor, joint: Tensor, *args: Tensor) -> Tensor:
        with enable_grad():
            y = joint[:size].reshape(system.shape)
            aliases = [arg.view_as(arg).requires_grad_() for arg in args]
            y = y.view_as(y) if y.requires_grad else y.detach().requires_grad_()
            costate = joint[size : 2 * size].reshape(system.shape)
            slope, parts = _products(system, time, y, costate, aliases, (), graph=True)
            return ops.cat([slope.reshape(-1), -_flat(parts, [y, *args])])

    options = {key: value for key, value in system.options.items() if key != "first_step"}
    costate = ops.zeros_like(y0)
    by_arguments = ops.zeros(sum(tensor.numel() for tensor in given), dtype=y0.dtype)
    by_time: list[Tensor] = []
    for place in range(len(t) - 1, -1, -1):
        y, arrived = states[..., place], v[..., place]
        by_time.append((arrived * system.slope(t[place], y, system.with_given(given))).sum())
        costate = costate + arrived
        earlier = t[place - 1] if place else first
        if float(earlier.item()) != float(t[place].item()):
            joint = ops.cat([y.reshape(-1), costate.reshape(-1), by_arguments])
            ends = (t[place], earlier)
            solved = solve_ivp(backwards, ends, joint, t_eval=None, args=tuple(given), **options)
            joint = solved.y[..., -1]
            costate = joint[size : 2 * size].reshape(system.shape)
            by_arguments = joint[2 * size :]
    by_first = -(costate * system.slope(first, y0, system.with_given(given))).sum()
    found: list[Tensor | None] = [ops.stack(by_time[::-1]), by_first, costate]
    at = 0
    for tensor in given:
        found.append(by_arguments[at : at + tensor.numel()].reshape(tensor.shape))
        at += tensor.numel()
    return found
