"""Adadelta: steps by the gradient times the root of mean squares of steps over that of mean squares of gradients."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .checks import check_capturable, check_lr, check_setting, check_steps
from .optimizer import GroupedOptimizer, ParamsT
from .update import Updates, compiled_as, decayed

__all__ = ["Adadelta", "adadelta"]


class Adadelta(GroupedOptimizer):
    """Adadelta, whose steps have the units of the parameter: `lr` is a factor without any.

    >>> import retrograd as torch
    >>> w = torch.tensor([1., 2.], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> torch.optim.Adadelta([w], lr=100.0).step()
    >>> w
    tensor([0.6838, 1.6838], requires_grad=True)
    """

    _OLDER = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_setting("rho value", rho, 0.0 <= rho <= 1.0)
        check_setting("epsilon value", eps, eps >= 0.0)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def _init_group(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        square_avgs: list[Tensor],
        acc_deltas: list[Tensor],
        steps: list[Tensor],
    ) -> bool:
        names = ("square_avg", "acc_delta")
        return self._collect("Adadelta", group, names, params, grads, square_avgs, acc_deltas, steps)

    def _update_group(self, group: dict[str, Any]) -> None:
        lists: tuple[list, list, list, list, list] = ([], [], [], [], [])
        has_complex = self._init_group(group, *lists)
        adadelta(
            *lists,
            capturable=group["capturable"],
            foreach=group["foreach"],
            differentiable=group["differentiable"],
            has_complex=has_complex,
            lr=group["lr"],
            rho=group["rho"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """One step of `Adadelta`."""
    check_steps(state_steps)
    check_capturable(capturable, params, state_steps, xla=False)
    update = Updates()
    number = update.number
    rho = number(rho)
    settings = maximize, update.factor(weight_decay), rho, 1 - rho, number(eps), -number(lr)
    update.advance(state_steps)
    update(_rule, settings, params, grads, square_avgs, acc_deltas)


@compiled_as("adadelta_step")
def _rule(
    ops: Any, param: Any, grad: Any, square: Any, steps: Any, maximize: bool, weight_decay: Any, rho: Any, new: Any,
    eps: Any, scale: Any,
) -> None:  # fmt: skip
    grad = decayed(ops, param, grad, maximize, weight_decay)
    ops.mul_(square, rho)
    ops.addcmul_(square, grad, grad, new)
    root = ops.add(square, eps)
    root = ops.sqrt(root, out=root)
    delta = ops.add(steps, eps)
    delta = ops.sqrt(delta, out=delta)
    delta = ops.divide(delta, root, out=delta)
    delta = ops.multiply(delta, grad, out=delta)
    ops.mul_(steps, rho)
    ops.addcmul_(steps, delta, delta, new)
    ops.add_(param, delta, scale)
