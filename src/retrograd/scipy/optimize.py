"""``minimize``, ``root`` and ``least_squares``, of scipy.optimize."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize
from scipy.sparse.linalg import LinearOperator

from ..autograd import grad
from ..autograd.grad_mode import enable_grad
from ..ops import namespace as ops
from ..tensor import Tensor, wrap
from .functions import Problem, numbers
from .implicit import solution

__all__ = ["least_squares", "minimize", "root"]

#: Methods of `minimize` that ask for no gradient, for products with the Hessian, and for all of it.
_WITHOUT_GRADIENT = {"nelder-mead", "powell", "cobyla", "cobyqa"}
_WITH_PRODUCTS = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
_WITH_HESSIAN = {"dogleg", "trust-exact"}


def minimize(
    fun: Callable[..., Tensor], x0: Any, args: Any = (), method: Any = None, *, bounds: Any = None,
    constraints: Any = (), tol: float | None = None, callback: Any = None, options: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Where ``fun(x, *args)``, one number, is least: `scipy.optimize.minimize` with exact derivatives.

    The methods, options and the result are SciPy's; ``x``, ``fun`` and ``jac`` of the result are Tensors, ``x`` in the
    shape of `x0`. Gradients come from one backward pass, products with the Hessian (for ``"Newton-CG"``,
    ``"trust-ncg"``, ``"trust-krylov"``, ``"trust-constr"``) from two, whole Hessians for ``"trust-exact"`` and
    ``"dogleg"``. An unknown that ends at one of its `bounds` stays there when the arguments move; solutions under
    `constraints` have no derivatives.

    >>> import retrograd as torch
    >>> from retrograd import scipy
    >>> def rosenbrock(x, a):
    ...     return (a - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> a = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    >>> found = scipy.minimize(rosenbrock, torch.zeros(2, dtype=torch.float64), (a,), method="trust-ncg", tol=1e-10)
    >>> found.x
    tensor([1.5000, 2.2500], dtype=torch.float64, grad_fn=<SolutionBackward>)
    >>> torch.autograd.grad(found.x[1], a)  # x[1] = a²
    (tensor(3.0000, dtype=torch.float64),)
    """
    problem = Problem("minimize", fun, x0, args)
    named = method.lower() if isinstance(method, str) else ""
    derivatives: dict[str, Any] = {}
    if named in _WITH_PRODUCTS:
        derivatives["hessp"] = problem.hessian_product
    elif named in _WITH_HESSIAN:
        derivatives["hess"] = problem.hessian
    gradient = named not in _WITHOUT_GRADIENT
    limits = _limits(bounds)
    found = optimize.minimize(
        problem.value_and_gradient if gradient else problem.value, problem.start, method=method,
        jac=True if gradient else None, bounds=limits, constraints=_constraints(constraints, problem), tol=tol,
        callback=_callback(callback, problem), options=options, **derivatives,
    )  # fmt: skip

    def stationary(x: Tensor, *args: Any) -> Tensor:
        (gradient,) = grad(problem.recorded(problem.scalar(x, args)), x, create_graph=True, allow_unused=True)
        return ops.zeros_like(x) if gradient is None else gradient

    x = problem.tensor(found.x)
    refusal = "it was found under constraints" if _given(constraints) else ""
    free = None
    if limits is not None:
        free = wrap(_free(found.x, problem.value_and_gradient(found.x)[1], limits))
    found.x = solution("minimize", stationary, x, problem.args, free, refusal)
    found.fun = problem.scalar(found.x, problem.args)
    for name in ("jac", "grad"):
        if isinstance(found.get(name), np.ndarray) and found[name].size == x.numel():
            found[name] = problem.tensor(found[name])
    if isinstance(found.get("hess"), np.ndarray):
        found.hess = wrap(np.array(found.hess)).to(problem.dtype)
    return found


def root(
    fun: Callable[..., Tensor], x0: Any, args: Any = (), method: str = "hybr", *, tol: float | None = None,
    callback: Any = None, options: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Where ``fun(x, *args)``, as many numbers as `x` has, is zero: `scipy.optimize.root` with the exact Jacobian.

    The methods ``"hybr"`` and ``"lm"`` use it; the others ask for none. ``x`` and ``fun`` of the result are Tensors.

    >>> import retrograd as torch
    >>> from retrograd import scipy
    >>> a = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    >>> found = scipy.root(lambda x, a: x ** 2 - a, torch.ones(1, dtype=torch.float64), (a,))
    >>> found.x
    tensor([1.4142], dtype=torch.float64, grad_fn=<SolutionBackward>)
    >>> torch.autograd.grad(found.x, a)  # 1 / (2 √a)
    (tensor(0.3536, dtype=torch.float64),)
    """
    problem = Problem("root", fun, x0, args)
    jacobian = problem.jacobian if method.lower() in ("hybr", "lm") else None
    found = optimize.root(
        problem.values, problem.start, method=method, jac=jacobian, tol=tol,
        callback=_callback(callback, problem), options=options,
    )  # fmt: skip
    x = problem.tensor(found.x)

    def residual(x: Tensor, *args: Any) -> Tensor:
        value = problem.recorded(problem.call(x, args))
        if value.numel() != x.numel():
            raise RuntimeError(
                f"root: the solution has no derivative, since there are {value.numel()} equations for {x.numel()} "
                "unknowns"
            )
        return value

    found.x = solution("root", residual, x, problem.args)
    found.fun = problem.call(found.x, problem.args)
    return found


#: The robust losses of `least_squares`: what becomes of squared residuals.
_LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * ((1 + z).sqrt() - 1),
    "huber": lambda z: ops.where(z <= 1, z, 2 * z.clamp(min=1).sqrt() - 1),
    "cauchy": lambda z: z.log1p(),
    "arctan": lambda z: z.atan(),
}


def least_squares(
    fun: Callable[..., Tensor], x0: Any, args: Any = (), *, bounds: Any = (-np.inf, np.inf), method: str = "trf",
    loss: str = "linear", f_scale: float = 1.0, tr_solver: str | None = None, **options: Any,
) -> Any:  # fmt: skip
    """Where half the sum of squares of ``fun(x, *args)`` is least: `scipy.optimize.least_squares`, exact Jacobian.

    Further options (``ftol``, ``xtol``, ``max_nfev``, ``x_scale`` ...) are SciPy's. With ``tr_solver="lsmr"`` SciPy
    asks for products with the Jacobian and its transpose, and no matrix is made. ``x``, ``cost``, ``fun``, ``jac`` and
    ``grad`` of the result are Tensors.

    >>> import retrograd as torch
    >>> from retrograd import scipy
    >>> t = torch.linspace(0, 1, 20, dtype=torch.float64)
    >>> data = (3 * torch.exp(-2 * t)).requires_grad_()
    >>> found = scipy.least_squares(lambda x, data: x[0] * torch.exp(-x[1] * t) - data, [1.0, 1.0], (data,))
    >>> found.x
    tensor([3.0000, 2.0000], dtype=torch.float64, grad_fn=<SolutionBackward>)
    >>> torch.autograd.grad(found.x[0], data)[0].shape  # what each observation does to the height
    torch.Size([20])
    """
    if loss not in _LOSSES:
        raise ValueError(f"least_squares(): `loss` must be one of {sorted(_LOSSES)}, not {loss!r}")
    if "jac" in options:
        raise TypeError("least_squares(): jac is not an argument: the Jacobian is exact")
    problem = Problem("least_squares", fun, x0, args)
    limits = _limits(bounds)
    products = tr_solver == "lsmr" and method != "lm"
    found = optimize.least_squares(
        problem.values, problem.start, jac=_Products(problem) if products else problem.jacobian, bounds=limits,
        method=method, loss=loss, f_scale=f_scale, tr_solver=tr_solver, **options,
    )  # fmt: skip

    def cost(x: Tensor, *args: Any) -> Tensor:
        residuals = problem.recorded(problem.call(x, args))
        return 0.5 * f_scale**2 * _LOSSES[loss]((residuals / f_scale) ** 2).sum()

    def stationary(x: Tensor, *args: Any) -> Tensor:
        return grad(cost(x, *args), x, create_graph=True)[0]

    x = problem.tensor(found.x)
    active = np.asarray(found.active_mask)
    found.x = solution(
        "least_squares", stationary, x, problem.args, wrap(active == 0) if active.any() else None
    )
    found.fun = problem.call(found.x, problem.args)
    found.cost = 0.5 * f_scale**2 * _LOSSES[loss]((found.fun / f_scale) ** 2).sum()
    found.grad = problem.tensor(found.grad)
    found.jac = wrap(problem.jacobian(numbers(x))).to(problem.dtype)
    return found


class _Products:
    """The Jacobian as SciPy takes it without a matrix."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def __call__(self, x: Any) -> Any:
        problem = self.problem
        with enable_grad():
            at = problem.point(x)
            value = problem.recorded(problem.call(at, problem.constants))
            # The product with the transpose, as a function of what it is multiplied with: its derivative by that is
            # the product with the Jacobian itself.
            weights = ops.zeros_like(value).requires_grad_()
            (transposed,) = grad(value, at, weights, create_graph=True)

        def product(v: np.ndarray) -> np.ndarray:
            (result,) = grad(transposed, weights, problem.tensor(v), retain_graph=True)
            return numbers(result.double()).reshape(-1)

        def transposed_product(w: np.ndarray) -> np.ndarray:
            given = wrap(np.array(w)).to(value.dtype).reshape(value.shape)
            return problem.flat(grad(value, at, given, retain_graph=True)[0])

        return LinearOperator((value.numel(), at.numel()), product, transposed_product, dtype=np.float64)


# ------------------------------------------------------------------------------------------ what else users may give


def _given(constraints: Any) -> bool:
    return not (isinstance(constraints, (list, tuple)) and len(constraints) == 0)


def _limits(bounds: Any) -> Any:
    """Bounds as SciPy takes them; they are constants."""
    if bounds is None:
        return None
    waiting, found = [bounds], []
    while waiting:
        value = waiting.pop()
        if isinstance(value, (list, tuple)):
            waiting.extend(value)
        elif isinstance(value, optimize.Bounds):
            waiting.extend([value.lb, value.ub])
        elif isinstance(value, Tensor):
            found.append(value)
    if any(tensor.requires_grad for tensor in found):
        raise ValueError("bounds are constants here, but one requires grad: give bound.detach()")
    if found and isinstance(bounds, (list, tuple)):
        return type(bounds)([_limits(part) if isinstance(part, (list, tuple)) else numbers(part) for part in bounds])
    return bounds


def _free(x: np.ndarray, gradient: np.ndarray, bounds: Any) -> np.ndarray:
    """Which unknowns are not held by a bound: at it, and pulled beyond it."""
    if not isinstance(bounds, optimize.Bounds):
        pairs = [(-np.inf if low is None else low, np.inf if high is None else high) for low, high in bounds]
        bounds = optimize.Bounds(*np.array(pairs, dtype=np.float64).T)
    low, high = np.broadcast_to(bounds.lb, x.shape), np.broadcast_to(bounds.ub, x.shape)
    near = [np.isclose(x, bound, rtol=1e-6, atol=1e-6) for bound in (low, high)]
    return ~((near[0] & (gradient > 0)) | (near[1] & (gradient < 0)))


def _constraints(constraints: Any, problem: Problem) -> Any:
    """Constraints whose functions take Tensors, with their exact Jacobians."""
    if isinstance(constraints, (list, tuple)):
        return [_constraints(one, problem) for one in constraints]
    if isinstance(constraints, dict):
        given = {key: value for key, value in constraints.items() if key not in ("fun", "jac", "args")}
        about = Problem("minimize", constraints["fun"], problem.tensor(problem.start), constraints.get("args", ()))
        return {**given, "fun": about.values, "jac": about.jacobian}
    if isinstance(constraints, optimize.NonlinearConstraint):
        about = Problem("minimize", constraints.fun, problem.tensor(problem.start), ())
        return optimize.NonlinearConstraint(
            about.values, numbers(constraints.lb), numbers(constraints.ub), jac=about.jacobian,
            keep_feasible=constraints.keep_feasible,
        )  # fmt: skip
    return constraints


def _callback(callback: Any, problem: Problem) -> Any:
    """The user's function, which is told of x as a Tensor. SciPy looks at the name of its argument."""
    if callback is None:
        return None
    try:
        wants_result = list(inspect.signature(callback).parameters) == ["intermediate_result"]
    except (TypeError, ValueError):
        wants_result = False
    if wants_result:

        def told(intermediate_result: Any) -> Any:
            return callback(
                intermediate_result=type(intermediate_result)(
                    intermediate_result, x=problem.tensor(intermediate_result.x)
                )
            )

        return told
    return lambda xk, *more: callback(problem.tensor(xk), *more)
