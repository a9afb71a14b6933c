"""RAdam: Adam that divides by the root of squares only once their mean can be relied on."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .checks import check_betas, check_capturable, check_lr, check_setting, check_steps
from .optimizer import GroupedOptimizer, ParamsT
from .update import Updates, compiled_as, decay_settings, decayed, lerp_weights

__all__ = ["RAdam", "radam"]


class RAdam(GroupedOptimizer):
    """Rectified Adam: its first steps go by the mean of gradients alone.

    >>> import retrograd as torch
    >>> w = torch.tensor([1., 2.], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> torch.optim.RAdam([w], lr=0.1).step()
    >>> w
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    _OLDER = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def _init_group(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        exp_avgs: list[Tensor],
        exp_avg_sqs: list[Tensor],
        steps: list[Tensor],
    ) -> bool:
        return self._collect("RAdam", group, ("exp_avg", "exp_avg_sq"), params, grads, exp_avgs, exp_avg_sqs, steps)

    def _update_group(self, group: dict[str, Any]) -> None:
        lists: tuple[list, list, list, list, list] = ([], [], [], [], [])
        has_complex = self._init_group(group, *lists)
        beta1, beta2 = group["betas"]
        radam(
            *lists,
            decoupled_weight_decay=group["decoupled_weight_decay"],
            foreach=group["foreach"],
            differentiable=group["differentiable"],
            capturable=group["capturable"],
            has_complex=has_complex,
            maximize=group["maximize"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
        )


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
) -> None:
    """One step of `RAdam`."""
    check_steps(state_steps)
    check_capturable(capturable, params, state_steps)
    update = Updates()
    number = update.number
    lr, beta1, beta2, eps = number(lr), number(beta1), number(beta2), number(eps)
    decay, shrink = decay_settings(update, weight_decay, lr, decoupled_weight_decay)
    longest = 2 / (1 - beta2) - 1  # how many squares the mean is made of, in the end

    def settings(count: float) -> tuple:
        correction2 = 1 - beta2**count
        length = longest - 2 * count * beta2**count / correction2
        scale = -lr / (1 - beta1**count)
        rectified = length > 5.0
        if rectified:
            variance = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            scale = scale * (variance * correction2) ** 0.5
        return maximize, decay, shrink, *lerp_weights(1 - beta1), beta2, 1 - beta2, eps, rectified, scale

    update.by_key(_rule, update.advance(state_steps), settings, params, grads, exp_avgs, exp_avg_sqs)


@compiled_as("radam_step")
def _rule(
    ops: Any, param: Any, grad: Any, mean: Any, square: Any, maximize: bool, weight_decay: Any, shrink: Any, new1: Any,
    old1: Any, beta2: Any, new2: Any, eps: Any, rectified: bool, scale: Any,
) -> None:  # fmt: skip
    if shrink is not None:
        ops.mul_(param, shrink)
    grad = decayed(ops, param, grad, maximize, weight_decay)
    ops.lerp_(mean, grad, new1, old1)
    ops.mul_(square, beta2)
    ops.addcmul_(square, grad, grad, new2)
    if rectified:
        root = ops.sqrt(square)
        root = ops.add(root, eps, out=root)
        ops.addcdiv_(param, mean, root, scale)
    else:
        ops.add_(param, mean, scale)
