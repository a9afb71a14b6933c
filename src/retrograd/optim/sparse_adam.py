"""SparseAdam: Adam for the elements that a sparse gradient has; all others stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.grad_mode import enable_grad, no_grad
from ..ops import factories
from ..tensor import Tensor
from ._functional import sparse_adam
from .checks import _get_value, check_betas, check_one_element, check_setting
from .optimizer import Optimizer, ParamsT

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam for sparse gradients of dense parameters, as embeddings have: means change where the gradient has values."""

    _NUMBERS = ()

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_one_element("lr", lr)
        check_setting("learning rate", lr, lr > 0.0)
        check_setting("epsilon value", eps, eps > 0.0)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        at = [
            ([g, i], param)
            for g, group in enumerate(self.param_groups)
            for i, param in enumerate(group["params"])
        ]  # fmt: skip
        sparse = [place for place, param in at if param.is_sparse]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        complex_ = [place for place, param in at if param.is_complex()]
        if complex_:
            raise ValueError(
                f"Complex params at indices {complex_}: SparseAdam does not support complex parameters"
            )

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change what has gradients; `closure`, if given, computes the loss anew and returns it."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [param for param in group["params"] if param.grad is not None]
            if not all(param.grad.is_sparse for param in params):
                raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
            for param in params:
                state = self.state[param]
                if not state:
                    state["step"] = 0
                    state["exp_avg"] = factories.zeros_like(param)
                    state["exp_avg_sq"] = factories.zeros_like(param)
                state["step"] += 1
            beta1, beta2 = group["betas"]
            sparse_adam(
                params,
                [param.grad for param in params],
                [self.state[param]["exp_avg"] for param in params],
                [self.state[param]["exp_avg_sq"] for param in params],
                [self.state[param]["step"] for param in params],
                eps=group["eps"],
                beta1=beta1,
                beta2=beta2,
                lr=_get_value(group["lr"]),
                maximize=group.get("maximize", False),
            )
        return loss
