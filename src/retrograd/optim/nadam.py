"""NAdam: Adam with Nesterov's momentum, which grows from step to step."""

from __future__ import annotations

from typing import Any

from ..ops import factories
from ..tensor import Tensor
from .checks import check_betas, check_capturable, check_lr, check_setting, check_steps
from .optimizer import GroupedOptimizer, ParamsT, dense_grads, new_number
from .update import Updates, compiled_as, decay_settings, decayed, lerp_weights

__all__ = ["NAdam", "nadam"]


class NAdam(GroupedOptimizer):
    """Adam that goes by the mean of gradients as it will be after the next step.

    >>> import retrograd as torch
    >>> w = torch.tensor([1., 2.], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> torch.optim.NAdam([w], lr=0.1).step()
    >>> w
    tensor([0.8944, 1.8944], requires_grad=True)
    """

    _OLDER = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }
    _NUMBERS = ("step", "mu_product")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check_setting("momentum_decay value", momentum_decay, momentum_decay >= 0.0)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
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
        mu_products: list[Tensor],
        steps: list[Tensor],
    ) -> bool:
        has_complex = False
        for param, grad in dense_grads("NAdam", group):
            has_complex |= param.is_complex()
            state = self.state[param]
            if not state:
                state["step"] = new_number(0.0, param, group)
                state["mu_product"] = new_number(1.0, param, group)
                state["exp_avg"] = factories.zeros_like(param)
                state["exp_avg_sq"] = factories.zeros_like(param)
            params.append(param)
            grads.append(grad)
            exp_avgs.append(state["exp_avg"])
            exp_avg_sqs.append(state["exp_avg_sq"])
            mu_products.append(state["mu_product"])
            steps.append(state["step"])
        return has_complex

    def _update_group(self, group: dict[str, Any]) -> None:
        lists: tuple[list, list, list, list, list, list] = ([], [], [], [], [], [])
        has_complex = self._init_group(group, *lists)
        beta1, beta2 = group["betas"]
        nadam(
            *lists,
            decoupled_weight_decay=group["decoupled_weight_decay"],
            foreach=group["foreach"],
            capturable=group["capturable"],
            differentiable=group["differentiable"],
            has_complex=has_complex,
            maximize=group["maximize"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            momentum_decay=group["momentum_decay"],
            eps=group["eps"],
        )


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """One step of `NAdam`."""
    check_steps(state_steps)
    check_steps(mu_products, "mu_products")
    check_capturable(capturable, params, mu_products, state_steps, names="params, mu_products")
    update = Updates()
    number = update.number
    lr, beta1, beta2, eps = number(lr), number(beta1), number(beta2), number(eps)
    decay, shrink = decay_settings(update, weight_decay, lr, decoupled_weight_decay)

    def momentum(count: float) -> float:
        return beta1 * (1.0 - 0.5 * 0.96 ** (count * momentum_decay))

    def settings(key: tuple[float, Any]) -> tuple:
        count, product = key
        root = (1 - beta2**count) ** 0.5
        after = momentum(count + 1)
        by_grad = -lr * root * (1.0 - momentum(count)) / (1.0 - product)
        by_mean = -lr * root * after / (1.0 - product * after)
        return maximize, decay, shrink, *lerp_weights(1 - beta1), beta2, 1 - beta2, eps * root, by_grad, by_mean

    counts = update.advance(state_steps)
    keys = [(count, update.multiply(mu, momentum(count))) for mu, count in zip(mu_products, counts, strict=True)]
    update.by_key(_rule, keys, settings, params, grads, exp_avgs, exp_avg_sqs)


@compiled_as("nadam_step")
def _rule(
    ops: Any, param: Any, grad: Any, mean: Any, square: Any, maximize: bool, weight_decay: Any, shrink: Any, new1: Any,
    old1: Any, beta2: Any, new2: Any, eps: Any, by_grad: Any, by_mean: Any,
) -> None:  # fmt: skip
    if shrink is not None:
        ops.mul_(param, shrink)
    grad = decayed(ops, param, grad, maximize, weight_decay)
    ops.lerp_(mean, grad, new1, old1)
    ops.mul_(square, beta2)
    ops.addcmul_(square, grad, grad, new2)
    root = ops.sqrt(square)
    root = ops.add(root, eps, out=root)
    ops.addcdiv_(param, grad, root, by_grad)
    ops.addcdiv_(param, mean, root, by_mean)
