"""A user's function of Tensors as SciPy calls it, on arrays, and its derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autograd import grad
from ..autograd.grad_mode import enable_grad, no_grad
from ..ops import namespace as ops
from ..tensor import Tensor, wrap

__all__ = ["Problem", "captured_leaves", "jacobian_rows", "numbers"]


def numbers(value: Any) -> Any:
    """What SciPy computes with: an array for a Tensor."""
    return value.detach().numpy() if isinstance(value, Tensor) else value


class Problem:
    """A function ``fun(x, *args)``, with `x` of a given shape and dtype: what solvers ask of it."""

    def __init__(self, name: str, fun: Callable[..., Any], x0: Any, args: Any) -> None:
        if not callable(fun):
            raise TypeError(f"{name}(): argument 'fun' must be callable, not {type(fun).__name__}")
        self.name = name
        self.fun = fun
        self.args: tuple[Any, ...] = args if isinstance(args, tuple) else (args,)
        start = x0 if isinstance(x0, Tensor) else wrap(np.asarray(x0, dtype=np.float64))
        if not start.dtype.is_floating_point:
            raise TypeError(
                f"{name}(): the start is {start.dtype}, but unknowns vary continuously: give real numbers, in float64"
            )
        self.shape, self.dtype = tuple(start.shape), start.dtype
        #: The start, as SciPy takes it.
        self.start = start.detach().double().numpy().reshape(-1).copy()
        #: While a solver runs, nothing is differentiated by the arguments.
        self.constants = tuple([arg.detach() if isinstance(arg, Tensor) else arg for arg in self.args])

    def tensor(self, x: Any) -> Tensor:
        """A Tensor of what SciPy calls x."""
        return wrap(np.array(x, dtype=np.float64)).to(self.dtype).reshape(self.shape)

    def call(self, x: Tensor, args: Sequence[Any]) -> Tensor:
        result = self.fun(x, *args)
        if not isinstance(result, Tensor):
            raise TypeError(
                f"{self.name}(): the function must return a Tensor, computed from its argument, but it returned a "
                f"{type(result).__name__}"
            )
        if result.dtype.is_complex:
            raise TypeError(f"{self.name}(): the function must return real numbers, not {result.dtype}")
        return result

    def scalar(self, x: Tensor, args: Sequence[Any]) -> Tensor:
        """A function with one number as its value."""
        result = self.call(x, args)
        if result.numel() != 1:
            raise ValueError(
                f"{self.name}(): the function to minimize must return one number, but the shape of what it returned "
                f"is {tuple(result.shape)}: sum it, or use least_squares"
            )
        return result.reshape(())

    def point(self, x: Any) -> Tensor:
        """A Tensor of what SciPy calls x, to differentiate by."""
        return self.tensor(x).requires_grad_()

    def value(self, x: Any) -> float:
        with no_grad():
            return float(self.scalar(self.tensor(x), self.constants).item())

    def value_and_gradient(self, x: Any) -> tuple[float, np.ndarray]:
        """One evaluation, one backward pass."""
        with enable_grad():
            at = self.point(x)
            value = self.scalar(at, self.constants)
            (gradient,) = grad(self.recorded(value), at, allow_unused=True)
        return float(value.item()), self.flat(gradient)

    def hessian_product(self, x: Any, direction: Any) -> np.ndarray:
        """H·p, by differentiating the gradient's product with p."""
        with enable_grad():
            at = self.point(x)
            (gradient,) = grad(self.recorded(self.scalar(at, self.constants)), at, create_graph=True, allow_unused=True)
            if gradient is None or not gradient.requires_grad:
                return np.zeros(at.numel())
            (product,) = grad(gradient, at, self.tensor(direction), allow_unused=True)
        return self.flat(product)

    def hessian(self, x: Any) -> np.ndarray:
        with enable_grad():
            at = self.point(x)
            (gradient,) = grad(self.recorded(self.scalar(at, self.constants)), at, create_graph=True, allow_unused=True)
            if gradient is None:
                return np.zeros((at.numel(), at.numel()))
            return numbers(jacobian_rows(gradient, at).double())

    def values(self, x: Any) -> np.ndarray:
        """A function with several values."""
        with no_grad():
            return self.call(self.tensor(x), self.constants).double().numpy().reshape(-1)

    def jacobian(self, x: Any) -> np.ndarray:
        """Row by row, by backward passes."""
        with enable_grad():
            at = self.point(x)
            return numbers(jacobian_rows(self.recorded(self.call(at, self.constants)), at).double())

    def recorded(self, value: Tensor) -> Tensor:
        if not value.requires_grad:
            raise RuntimeError(
                f"{self.name}(): what the function returned does not depend on its argument by operations that were "
                "recorded: compute with torch's functions, without detach(), item() or no_grad()"
            )
        return value

    def flat(self, gradient: Tensor | None) -> np.ndarray:
        if gradient is None:
            return np.zeros(int(np.prod(self.shape, dtype=np.int64)))
        return gradient.detach().double().numpy().reshape(-1)


def jacobian_rows(value: Tensor, at: Tensor, create_graph: bool = False) -> Tensor:
    """∂value/∂at as a matrix, one backward pass for each row."""
    rows = []
    flat = value.reshape(-1)
    size = at.numel()
    for row in range(flat.numel()):
        gradient = None
        if flat.requires_grad:
            (gradient,) = grad(flat[row], at, retain_graph=True, create_graph=create_graph, allow_unused=True)
        rows.append(ops.zeros(size, dtype=at.dtype) if gradient is None else gradient.reshape(-1))
    return ops.stack(rows) if rows else ops.zeros(0, size, dtype=at.dtype)


def captured_leaves(result: Tensor, known: Sequence[Tensor]) -> list[Tensor]:
    """The leaves that a function's result depends on, but for those that it was given."""
    found: list[Tensor] = []
    seen: set[Any] = set()
    given = {id(tensor) for tensor in known}
    waiting = [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if isinstance(variable, Tensor) and id(variable) not in given:
            found.append(variable)
        waiting.extend([edge[0] for edge in node.next_functions])
    return found
