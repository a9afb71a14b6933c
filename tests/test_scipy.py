"""SciPy's solvers with exact derivatives, and the derivatives of what they find, beside finite differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize

import retrograd as torch
from retrograd import scipy
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.scipy.functions import Problem

pytestmark = pytest.mark.usefixtures("clean_state")

D = torch.float64


def tensor(*values: float, grad: bool = False) -> Any:
    return torch.tensor(values if len(values) > 1 else values[0], dtype=D, requires_grad=grad)


def bowl(x: Any, a: Any) -> Any:
    """Has one minimum, which is no simple function of `a`."""
    return torch.cosh(x - a).sum() + (x.prod() - a[0]) ** 2 + torch.exp(a[1] * x[0]) / 5


START = tensor(0.3, -0.2)
A = tensor(0.7, 0.4, grad=True)
TIGHT: dict[str, Any] = {"method": "trust-exact", "options": {"gtol": 1e-13}}

# ------------------------------------------------------------------------------------------------------- exactly asked


def test_what_solvers_are_given_is_exact() -> None:
    problem = Problem("test", bowl, START, (A,))
    x, p, h = np.array([0.4, -0.9]), np.array([0.3, 2.0]), 1e-6
    value, gradient = problem.value_and_gradient(x)
    assert value == problem.value(x) == pytest.approx(bowl(torch.tensor(x), A).item(), abs=1e-15)
    by_difference = [(problem.value(x + h * e) - problem.value(x - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(gradient, by_difference, rtol=1e-7)
    slopes = [problem.value_and_gradient(x + s * h * p)[1] for s in (1, -1)]
    np.testing.assert_allclose(problem.hessian_product(x, p), (slopes[0] - slopes[1]) / (2 * h), rtol=1e-7)
    np.testing.assert_allclose(problem.hessian(x) @ p, problem.hessian_product(x, p), rtol=1e-12)
    vector = Problem("test", lambda x: torch.stack([x[0] * x[1], x[0].sin(), x[1] ** 3]), START, ())
    by_difference = np.stack([(vector.values(x + h * e) - vector.values(x - h * e)) / (2 * h) for e in np.eye(2)], 1)
    np.testing.assert_allclose(vector.jacobian(x), by_difference, rtol=1e-7)


METHODS = [
    "Nelder-Mead", "Powell", "CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "COBYLA", "COBYQA", "SLSQP", "trust-constr",
    "trust-exact", "trust-krylov", "trust-ncg", None,
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")
def test_every_method_finds_the_minimum(method: str | None) -> None:
    """Where Newton's method, run by hand to rest, ends."""
    best = np.array([0.3, 0.2])
    problem = Problem("test", bowl, START, (A,))
    for _ in range(30):
        best = best - np.linalg.solve(problem.hessian(best), problem.value_and_gradient(best)[1])
    found = scipy.minimize(bowl, START, (A,), method=method, tol=1e-9)
    np.testing.assert_allclose(found.x.detach(), best, atol=1e-4)
    assert isinstance(found, optimize.OptimizeResult)
    assert found.x.grad_fn is not None and found.fun.grad_fn is not None
    assert found.fun.item() == pytest.approx(problem.value(best), abs=1e-6)


def test_no_differences_are_taken() -> None:
    found = scipy.minimize(bowl, START, (A,), method="BFGS")
    theirs = optimize.minimize(lambda x: Problem("", bowl, START, (A,)).value(x), START.numpy(), method="BFGS")
    assert found.nfev == found.njev and found.nfev * 2 < theirs.nfev


def test_dogleg_and_hessians() -> None:
    found = scipy.minimize(lambda x: (x**2).sum() + x[0] * x[1] + x[0], START, method="dogleg")
    np.testing.assert_allclose(found.x, [-2 / 3, 1 / 3], atol=1e-8)
    assert found.hess.tolist() == [[2, 1], [1, 2]] and found.x.grad_fn is None


# ------------------------------------------------------------------------------------------- derivatives of solutions


def test_minima_have_derivatives_of_every_order() -> None:
    def argmin(a: Any) -> Any:
        return scipy.minimize(bowl, START, (a,), **TIGHT).x

    def least(a: Any) -> Any:
        return scipy.minimize(bowl, START, (a,), **TIGHT).fun

    for function in (argmin, least):
        assert gradcheck(function, [A])
        assert gradgradcheck(function, [A])


def test_the_third_derivative() -> None:
    """x = e^a minimizes this; all its derivatives are e^a."""
    a = tensor(0.3, grad=True)
    x = scipy.minimize(lambda x, a: torch.cosh(x - a.exp()) + (x - a.exp()) ** 4, tensor(1.0), (a,), **TIGHT).x
    for _ in range(4):
        assert x.item() == pytest.approx(math.exp(0.3), abs=1e-7)
        (x,) = torch.autograd.grad(x, a, create_graph=True)


def test_derivatives_by_what_the_function_was_not_given() -> None:
    torch.manual_seed(0)  # a slope that the bowl has a bottom for, found to the last digits
    layer = torch.nn.Linear(2, 1).double()
    doubled = 2 * A  # a result, whose own graph stays usable

    def solve(weight: Any = None) -> Any:
        def fun(x: Any) -> Any:
            return bowl(x, doubled) + torch.nn.functional.linear(x, layer.weight if weight is None else weight).sum()

        return scipy.minimize(fun, START, **TIGHT)

    found = solve()
    by_weight, by_a = torch.autograd.grad(found.x[0], [layer.weight, A])
    assert gradcheck(lambda w: solve(w).x, [layer.weight.detach().clone().requires_grad_()])

    def moved(a: Any) -> Any:
        return scipy.minimize(lambda x, a: bowl(x, 2 * a) + layer(x).sum(), START, (a,), **TIGHT).x[0]

    np.testing.assert_allclose(by_a, torch.autograd.grad(moved(A), A)[0], rtol=1e-6)
    h = 1e-5
    with torch.no_grad():
        layer.weight[0, 1] += h
        more = solve().x[0].item()
        layer.weight[0, 1] -= 2 * h
        less = solve().x[0].item()
        layer.weight[0, 1] += h
    assert by_weight[0, 1].item() == pytest.approx((more - less) / (2 * h), rel=1e-5)
    with pytest.raises(RuntimeError, match="pass them in args= for higher ones"):
        torch.autograd.grad(solve().x[0], layer.weight, create_graph=True)


def test_unknowns_at_their_bounds_stay_there() -> None:
    def argmin(a: Any) -> Any:
        bounds = [(0.9, None), (None, 2.0)]
        return scipy.minimize(bowl, tensor(1.0, 0.2), (a,), method="L-BFGS-B", bounds=bounds, tol=1e-15).x

    x = argmin(A)
    assert x[0].item() == 0.9
    (by_a,) = torch.autograd.grad(x[0], A)
    assert by_a.tolist() == [0, 0]
    assert gradcheck(argmin, [A], atol=1e-4, eps=1e-4)
    fixed = scipy.minimize(lambda y, a: bowl(torch.cat([tensor(0.9).reshape(1), y]), a), [0.2], (A,), **TIGHT)
    np.testing.assert_allclose(
        torch.autograd.grad(argmin(A)[1], A)[0], torch.autograd.grad(fixed.x[0], A)[0], rtol=1e-4
    )
    as_tensors = scipy.minimize(bowl, START, (A,), bounds=optimize.Bounds(np.array([0.9, -9.0]), np.array([9.0, 9.0])))
    assert as_tensors.x[0].item() == pytest.approx(0.9)
    with pytest.raises(ValueError, match="bounds are constants"):
        scipy.minimize(bowl, START, (A,), bounds=[(A[0], None), (None, None)])


@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")
def test_constraints() -> None:
    for constraint, method in (
        ({"type": "eq", "fun": lambda x, s: x.sum() - s, "args": (tensor(1.0),)}, "SLSQP"),
        (optimize.NonlinearConstraint(lambda x: x.sum().reshape(1), 1.0, 1.0), "trust-constr"),
        (optimize.LinearConstraint(np.ones((1, 2)), 1.0, 1.0), "trust-constr"),
    ):
        found = scipy.minimize(lambda x, a: ((x - a) ** 2).sum(), START, (A,), method=method, constraints=constraint)
        np.testing.assert_allclose(found.x.detach(), (A + (1 - A.sum()) / 2).detach(), atol=1e-5)
        with pytest.raises(RuntimeError, match="found under constraints"):
            found.x.sum().backward()


def test_shapes_dtypes_and_callbacks() -> None:
    seen = []
    found = scipy.minimize(
        lambda x: ((x - 1) ** 2).sum(), torch.zeros(2, 3), callback=lambda xk: seen.append(tuple(xk.shape))
    )
    assert found.x.shape == found.jac.shape == (2, 3) and found.x.dtype is torch.float32 and found.fun.shape == ()
    assert set(seen) == {(2, 3)}
    assert found.x.grad_fn is None  # nothing that it depends on requires grad

    def stop(intermediate_result: Any) -> None:
        assert isinstance(intermediate_result.x, torch.Tensor)
        raise StopIteration

    assert scipy.minimize(bowl, START, (A,), method="trust-exact", callback=stop).nit == 1
    with torch.no_grad():
        assert not scipy.minimize(bowl, START, (A,)).x.requires_grad


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="must return one number"):
        scipy.minimize(lambda x: x, START)
    with pytest.raises(RuntimeError, match="does not depend on its argument"):
        scipy.minimize(lambda x: x.detach().sum(), START)
    with pytest.raises(TypeError, match="must return a Tensor"):
        scipy.minimize(lambda x: 3.0, START)
    with pytest.raises(TypeError, match="give real numbers, in float64"):
        scipy.minimize(bowl, torch.tensor([1, 2]), (A,))
    flat = scipy.minimize(lambda x, a: (x.sum() - a.sum()) ** 2, START, (A,))
    with pytest.raises(RuntimeError, match="not the only one near it"):
        flat.x.sum().backward()
    stopped = scipy.minimize(bowl, tensor(2.0, 2.0), (A,), method="BFGS", options={"maxiter": 1})
    with pytest.raises(RuntimeError, match="this is no solution"):
        stopped.x.sum().backward()


# --------------------------------------------------------------------------------------------------------------- roots


def circle_and_line(x: Any, a: Any) -> Any:
    return torch.stack([(x**2).sum() - a[0].exp(), x[0] - a[1] * x[1] ** 3])


@pytest.mark.parametrize("method", ["hybr", "lm", "broyden1", "krylov", "df-sane"])
def test_roots(method: str) -> None:
    found = scipy.root(circle_and_line, tensor(0.9, 0.8), (A,), method=method, tol=1e-12)
    assert circle_and_line(found.x.detach(), A.detach()).abs().max() < 1e-6
    assert gradcheck(lambda a: scipy.root(circle_and_line, tensor(0.9, 0.8), (a,), tol=1e-13).x, [A])


def test_roots_have_second_derivatives() -> None:
    assert gradgradcheck(lambda a: scipy.root(circle_and_line, tensor(0.9, 0.8), (a,), tol=1e-13).x, [A])
    a = tensor(2.0, grad=True)
    x = scipy.root(lambda x, a: x**2 - a, tensor(1.0), (a,), tol=1e-14).x
    (first,) = torch.autograd.grad(x, a, create_graph=True)
    (second,) = torch.autograd.grad(first, a)
    assert first.item() == pytest.approx(0.5 * 2**-0.5) and second.item() == pytest.approx(-0.25 * 2**-1.5)


# ------------------------------------------------------------------------------------------------------- least squares

TIMES = torch.linspace(0, 2, 6, dtype=D)
OBSERVED = 2 * torch.exp(-1.3 * TIMES) + torch.tensor(np.random.default_rng(0).normal(size=6) / 10)


def misfit(x: Any, data: Any) -> Any:
    return x[0] * torch.exp(-x[1] * TIMES) - data


@pytest.mark.parametrize("loss", ["linear", "soft_l1", "huber", "cauchy", "arctan"])
def test_least_squares(loss: str) -> None:
    tight = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-14, "loss": loss, "f_scale": 0.1}
    found = scipy.least_squares(misfit, [1.0, 1.0], (OBSERVED,), **tight)
    theirs = optimize.least_squares(
        lambda x: x[0] * np.exp(-x[1] * TIMES.numpy()) - OBSERVED.numpy(), [1.0, 1.0], **tight
    )
    np.testing.assert_allclose(found.x, theirs.x, rtol=1e-4)
    np.testing.assert_allclose([found.cost.item(), *found.fun], [theirs.cost, *theirs.fun], atol=1e-4)
    assert found.jac.shape == (6, 2)
    data = OBSERVED.clone().requires_grad_()

    def solved(data: Any) -> Any:
        return scipy.least_squares(misfit, [1.0, 1.0], (data,), **tight).x

    assert gradcheck(solved, [data], eps=1e-4, atol=1e-4)  # by differences of what was found to seven digits
    if loss == "linear":
        assert gradgradcheck(solved, [data])


@pytest.mark.parametrize("settings", [{"method": "lm"}, {"method": "dogbox"}, {"tr_solver": "lsmr"}])
def test_least_squares_by_other_ways(settings: dict[str, Any]) -> None:
    expected = scipy.least_squares(misfit, [1.0, 1.0], (OBSERVED,)).x
    np.testing.assert_allclose(scipy.least_squares(misfit, [1.0, 1.0], (OBSERVED,), **settings).x, expected, rtol=1e-5)


def test_least_squares_with_bounds() -> None:
    data = OBSERVED.clone().requires_grad_()
    x = scipy.least_squares(misfit, [1.0, 2.0], (data,), bounds=([0.0, 1.5], [5.0, 3.0]), gtol=1e-12).x
    assert x[1].item() == pytest.approx(1.5, abs=1e-6)
    (by_data,) = torch.autograd.grad(x[0], data)
    decay = torch.exp(-1.5 * TIMES)
    np.testing.assert_allclose(by_data, decay / (decay**2).sum(), rtol=1e-5)  # a straight line's fit
    with pytest.raises(ValueError, match="`loss` must be one of"):
        scipy.least_squares(misfit, [1.0, 1.0], (data,), loss="none")


# ---------------------------------------------------------------------------------------------- differential equations

EXACT = {"rtol": 1e-10, "atol": 1e-12}


def swing(t: Any, y: Any, a: Any) -> Any:
    """A pendulum that is pushed and rubbed."""
    return torch.stack([y[1], -a[0] * torch.sin(y[0]) - a[1] * y[1] + torch.cos(2 * t) / 3])


@pytest.mark.parametrize("method", ["RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA"])
def test_linear_equations_have_known_solutions(method: str) -> None:
    """y = exp(tM) y₀, and its derivatives, from the matrix exponential."""
    matrix = torch.tensor([[0.1, 1.0], [-1.5, -0.2]], dtype=D, requires_grad=True)
    y0 = tensor(1.0, 0.5, grad=True)
    times = tensor(0.5, 1.2, 2.0, grad=True)
    loose = method in ("RK23", "BDF", "Radau")
    settings = {"rtol": 1e-6, "atol": 1e-8} if loose else EXACT
    solved = scipy.solve_ivp(
        lambda t, y, m: m @ y, (0.0, 2.0), y0, method=method, t_eval=times, args=(matrix,), **settings
    )
    exact = torch.stack([torch.matrix_exp(t * matrix) @ y0 for t in times], 1)
    tolerance = 1e-3 if loose else 1e-7
    np.testing.assert_allclose(solved.y.detach(), exact.detach(), atol=tolerance)
    weights = torch.tensor([[1.0, -2.0, 0.5], [0.3, 1.0, 2.0]], dtype=D)
    found = torch.autograd.grad((solved.y * weights).sum(), [matrix, y0, times])
    expected = torch.autograd.grad((exact * weights).sum(), [matrix, y0, times])
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours, theirs, rtol=10 * tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "LSODA"])
def test_solutions_have_derivatives(method: str) -> None:
    def states(y0: Any, a: Any, times: Any) -> Any:
        return scipy.solve_ivp(swing, (0.0, 1.6), y0, method=method, t_eval=times, args=(a,), **EXACT).y

    inputs = [tensor(0.5, -0.3, grad=True), A, tensor(0.4, 1.5, grad=True)]
    assert gradcheck(states, inputs, eps=1e-5, atol=1e-5, fast_mode=True)


def test_solutions_have_second_derivatives() -> None:
    """Of y' = -a y², which is y₀ / (1 + a t y₀)."""
    y0, a, end = tensor(0.8, grad=True), tensor(0.5, grad=True), tensor(1.5, grad=True)
    times = torch.stack([tensor(0.5), end])
    solved = scipy.solve_ivp(lambda t, y, a: -a * y**2, (0, 1.5), y0, method="DOP853", t_eval=times, args=(a,), **EXACT)
    exact = y0 / (1 + a * times * y0)
    inputs = [y0, a, end]
    found, expected = (
        torch.cat([
            torch.stack(torch.autograd.grad(first, inputs, retain_graph=True))
            for first in torch.autograd.grad((y**2).sum(), inputs, create_graph=True)
        ])
        for y in (solved.y, exact)
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-7)


@pytest.mark.slow
def test_second_derivatives_of_a_pendulum() -> None:
    def last(y0: Any, a: Any) -> Any:
        return scipy.solve_ivp(swing, (0.0, 0.8), y0, method="DOP853", t_eval=[0.3, 0.8], args=(a,), **EXACT).y

    assert gradgradcheck(last, [tensor(0.5, -0.3, grad=True), A], eps=1e-5, atol=1e-5)


def test_derivatives_by_the_ends_of_time() -> None:
    def end(span: Any, y0: Any) -> Any:
        return scipy.solve_ivp(swing, span, y0, "DOP853", args=(A.detach(),), **EXACT).y[:, -1]

    inputs = [tensor(0.2, 1.1, grad=True), tensor(0.5, -0.3, grad=True)]
    assert gradcheck(end, inputs, eps=1e-5, atol=1e-5, fast_mode=True)


def test_derivatives_by_a_models_parameters() -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2)).double()

    def loss() -> Any:
        start = torch.ones(4, 2, dtype=D)
        return scipy.solve_ivp(lambda t, y: net(y), (0, 1), start, t_eval=[0.5, 1], **EXACT).y.pow(2).sum()

    value = loss()
    value.backward()
    weight, h = net[0].weight, 1e-5
    with torch.no_grad():
        weight[1, 0] += h
        more = loss().item()
        weight[1, 0] -= 2 * h
        less = loss().item()
    assert weight.grad[1, 0].item() == pytest.approx((more - less) / (2 * h), rel=1e-6)
    with pytest.raises(RuntimeError, match="pass them in args= for higher ones"):
        torch.autograd.grad(loss(), weight, create_graph=True)


def test_stiff_equations_get_the_exact_jacobian() -> None:
    """Robertson's reactions, whose rates differ by nine orders of magnitude."""
    rates = torch.tensor([0.04, 3e7, 1e4], dtype=D, requires_grad=True)

    def reactions(t: Any, y: Any, k: Any) -> Any:
        first, second, third = k[0] * y[0], k[1] * y[1] ** 2, k[2] * y[1] * y[2]
        return torch.stack([third - first, first - second - third, second])

    def at(rates: Any) -> Any:
        return scipy.solve_ivp(
            reactions, (0, 40.0), [1.0, 0.0, 0.0], method="BDF", t_eval=[40.0], args=(rates,), rtol=1e-7, atol=1e-10
        )

    solved = at(rates)
    np.testing.assert_allclose(solved.y[:, 0].detach(), [0.7158271, 9.185535e-6, 0.2841637], rtol=1e-4)
    assert solved.njev > 0 and solved.nfev < 2000
    (by_rates,) = torch.autograd.grad(solved.y[0, 0], rates)
    h = 4e-6
    step = torch.tensor([h, 0.0, 0.0], dtype=D)
    with torch.no_grad():
        slope = (at(rates + step).y[0, 0] - at(rates - step).y[0, 0]).item() / (2 * h)
    assert by_rates[0].item() == pytest.approx(slope, rel=2e-2)


def test_events_shapes_and_interpolation() -> None:
    def ground(t: Any, y: Any) -> Any:
        return y[0, 0]

    ground.terminal, ground.direction = True, -1  # type: ignore[attr-defined]
    solved = scipy.solve_ivp(
        lambda t, y: torch.stack([y[1], torch.full_like(y[1], -10.0)]), (0, 9), [[5.0], [0.0]], events=ground,
        dense_output=True, rtol=1e-8,
    )  # fmt: skip
    assert solved.status == 1 and solved.t_events[0].item() == pytest.approx(1.0)
    assert solved.y.shape == (2, 1, len(solved.t)) and solved.y_events[0].shape == (1, 2, 1)
    assert solved.sol(0.5)[0].item() == pytest.approx(3.75) and solved.sol(torch.tensor([0.1, 0.2])).shape == (2, 1, 2)
    with pytest.raises(ValueError, match="must return y'"):
        scipy.solve_ivp(lambda t, y: y[:1], (0, 1), [1.0, 2.0])
    with pytest.raises(TypeError, match="the Jacobian is exact"):
        scipy.solve_ivp(lambda t, y: y, (0, 1), [1.0], jac=None)
    with pytest.raises(TypeError, match="states are real numbers"):
        scipy.solve_ivp(lambda t, y: y, (0, 1), torch.tensor([1]))
