"""Adamax: Adam with the largest of decaying gradients in place of the root of their mean square."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .checks import check_betas, check_capturable, check_lr, check_setting, check_steps
from .optimizer import GroupedOptimizer, ParamsT
from .update import Updates, compiled_as, decayed, lerp_weights

__all__ = ["Adamax", "adamax"]


class Adamax(GroupedOptimizer):
    """Adam by the infinity norm: the step is at most `lr`.

    >>> import retrograd as torch
    >>> w = torch.tensor([1., 2.], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> torch.optim.Adamax([w], lr=0.1).step()
    >>> w
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    _OLDER = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_setting("epsilon value", eps, eps >= 0.0)
        check_betas(betas)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _init_group(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        exp_avgs: list[Tensor],
        exp_infs: list[Tensor],
        steps: list[Tensor],
    ) -> bool:
        return self._collect("Adamax", group, ("exp_avg", "exp_inf"), params, grads, exp_avgs, exp_infs, steps)

    def _update_group(self, group: dict[str, Any]) -> None:
        lists: tuple[list, list, list, list, list] = ([], [], [], [], [])
        has_complex = self._init_group(group, *lists)
        beta1, beta2 = group["betas"]
        adamax(
            *lists,
            foreach=group["foreach"],
            maximize=group["maximize"],
            differentiable=group["differentiable"],
            capturable=group["capturable"],
            has_complex=has_complex,
            eps=group["eps"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
        )


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
) -> None:
    """One step of `Adamax`."""
    check_steps(state_steps)
    check_capturable(capturable, params, state_steps)
    update = Updates()
    number = update.number
    lr, beta1, beta2, eps, decay = number(lr), number(beta1), number(beta2), number(eps), update.factor(weight_decay)

    def settings(count: float) -> tuple:
        return maximize, decay, *lerp_weights(1 - beta1), beta2, eps, -lr / (1 - beta1**count)

    update.by_key(_rule, update.advance(state_steps), settings, params, grads, exp_avgs, exp_infs)


@compiled_as("adamax_step")
def _rule(
    ops: Any, param: Any, grad: Any, mean: Any, most: Any, maximize: bool, weight_decay: Any, new1: Any, old1: Any,
    beta2: Any, eps: Any, scale: Any,
) -> None:  # fmt: skip
    grad = decayed(ops, param, grad, maximize, weight_decay)
    ops.lerp_(mean, grad, new1, old1)
    size = ops.absolute(grad)
    size = ops.add(size, eps, out=size)
    ops.mul_(most, beta2)
    ops.maximum_(most, size)
    ops.addcdiv_(param, mean, most, scale)
