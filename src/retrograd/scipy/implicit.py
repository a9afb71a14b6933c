"""Derivatives of solutions: the implicit function theorem.

Note [Derivatives of solutions]
A solution x of F(x, a) = 0 moves with `a` as ``dx/da = -(∂F/∂x)⁻¹ ∂F/∂a``. Its vector product, ``v·dx/da``, is one
linear system, ``(∂F/∂x)ᵀ λ = v``, and one backward pass, ``-λ·∂F/∂a``. All of it is made of operators, with the
*solution itself* for x, whose history is this very node: so a derivative of the derivative finds its way through x to
`a` again, and solutions have derivatives of any order. Within a recorded pass the arguments are aliased before F is
evaluated, so that ``∂F/∂a`` is the partial derivative, at a fixed x.

What the function uses without having been given it (a model's parameters) cannot be aliased: by those there are
first derivatives only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import linalg
from ..autograd import Function, grad
from ..autograd.grad_mode import enable_grad, is_grad_enabled
from ..tensor import Tensor
from .functions import captured_leaves, jacobian_rows

__all__ = ["solution"]

#: How far from a solution Newton's method may see us, relative to the unknowns, for derivatives to make sense.
_FAR = 1e-2


class Equation:
    """F(x, *args) = 0, where some of the unknowns may be fixed (at a bound)."""

    def __init__(
        self, name: str, residual: Callable[..., Tensor], args: Sequence[Any], free: Tensor | None, refusal: str
    ) -> None:
        self.name = name
        self.residual = residual
        self.args = args
        self.free = free
        #: Why there are no derivatives, if there are none.
        self.refusal = refusal
        self.places: list[int] = [i for i, arg in enumerate(args) if isinstance(arg, Tensor) and arg.requires_grad]

    def given(self) -> list[Tensor]:
        return [self.args[place] for place in self.places]

    def with_given(self, tensors: Sequence[Tensor]) -> list[Any]:
        args = list(self.args)
        for place, tensor in zip(self.places, tensors):
            args[place] = tensor
        return args

    def vector_product(self, v: Tensor, x: Tensor, tensors: Sequence[Tensor]) -> list[Tensor | None]:
        """``v·dx/da`` for each of the tensors: those given first, then captured leaves."""
        if self.refusal:
            raise RuntimeError(f"{self.name}: the solution has no derivative here, since {self.refusal}")
        recorded = is_grad_enabled()
        count = len(self.places)
        given, leaves = list(tensors[:count]), list(tensors[count:])
        if recorded and leaves:
            raise RuntimeError(
                f"{self.name}: the function uses tensors that require grad and that it was not given, of shapes "
                f"{[tuple(leaf.shape) for leaf in leaves]}. By those, solutions have first derivatives only; pass them "
                "in args= for higher ones (create_graph=True)"
            )
        with enable_grad():
            if recorded:
                x, given = x.view_as(x), [tensor.view_as(tensor) for tensor in given]
            else:
                x, given = x.detach().requires_grad_(), [tensor.detach().requires_grad_() for tensor in given]
            residual = self.residual(x, *self.with_given(given))
            matrix = jacobian_rows(residual, x, create_graph=recorded)
            multipliers = self._solve(matrix, v.reshape(-1), residual.detach(), x.detach())
            products = grad(
                residual, [*given, *leaves], -multipliers.reshape(residual.shape), create_graph=recorded,
                retain_graph=recorded or bool(leaves),  # what leads to the leaves may be somebody else's graph
                allow_unused=True,
            )  # fmt: skip
        return list(products)

    def _solve(self, matrix: Tensor, v: Tensor, residual: Tensor, x: Tensor) -> Tensor:
        free = self.free
        if free is not None:  # a fixed unknown does not move: its row says so
            keep = free.to(matrix.dtype)
            matrix = matrix * keep.unsqueeze(0) * keep.unsqueeze(1) + (1 - keep).diag()
            v, residual = v * keep, residual.reshape(-1) * keep
        try:
            step = linalg.solve(matrix.detach(), residual.reshape(-1))  # type: ignore[attr-defined]
            multipliers = linalg.solve(matrix.T, v)  # type: ignore[attr-defined]
        except linalg.LinAlgError as error:
            raise RuntimeError(
                f"{self.name}: the solution has no derivative, since it is not the only one near it: the matrix of its "
                "equations (for minimize, the Hessian) is singular there"
            ) from error
        if bool(step.norm() > _FAR * (1 + x.norm())):
            raise RuntimeError(
                f"{self.name}: this is no solution, so that its derivative would be wrong: Newton's method would still "
                f"move it by {step.norm().item():.3g}. Look at the result's `message`, and ask for a smaller tol"
            )
        return multipliers


class Solution(Function):
    """A solution that was found elsewhere, as a function of what its equation depends on."""

    @staticmethod
    def forward(ctx: Any, equation: Equation, x: Tensor, *tensors: Tensor) -> Tensor:
        ctx.equation = equation
        result = x.clone()
        ctx.save_for_backward(result, *tensors)
        return result

    @staticmethod
    def backward(ctx: Any, v: Tensor) -> Any:
        x, *tensors = ctx.saved_tensors
        return None, None, *ctx.equation.vector_product(v, x, tensors)


def solution(
    name: str, residual: Callable[..., Tensor], x: Tensor, args: Sequence[Any], free: Tensor | None = None,
    refusal: str = "",
) -> Tensor:  # fmt: skip
    """x, which solves ``residual(x, *args) = 0``, with a history if anything that the equation has in it has one."""
    equation = Equation(name, residual, args, free, refusal)
    if not is_grad_enabled():
        return x
    given = equation.given()
    with enable_grad():
        at = x.detach().requires_grad_()
        copies = [tensor.detach().requires_grad_() for tensor in given]
        leaves = captured_leaves(residual(at, *equation.with_given(copies)), [at, *copies])
    if not given and not leaves:
        return x
    return Solution.apply(equation, x, *given, *leaves)
