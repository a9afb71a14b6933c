"""RMSprop: steps by the gradient over the root of a running mean of squares."""

from __future__ import annotations

from typing import Any

from ..ops import factories
from ..tensor import Tensor
from .checks import check_capturable, check_lr, check_setting, check_steps
from .optimizer import GroupedOptimizer, ParamsT, dense_grads, new_number
from .update import Updates, compiled_as, decayed, lerp_weights

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(GroupedOptimizer):
    """RMSprop; `centered` divides by the standard deviation of gradients, `momentum` keeps a running sum of steps.

    >>> import retrograd as torch
    >>> w = torch.tensor([1., 2.], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> torch.optim.RMSprop([w], lr=0.1, alpha=0.75).step()
    >>> w
    tensor([0.8000, 1.8000], requires_grad=True)
    """

    _OLDER = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_setting("epsilon value", eps, eps >= 0.0)
        check_setting("momentum value", momentum, momentum >= 0.0)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        check_setting("alpha value", alpha, alpha >= 0.0)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _init_group(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        square_avgs: list[Tensor],
        momentum_buffers: list[Tensor],
        grad_avgs: list[Tensor],
        steps: list[Tensor],
    ) -> bool:
        has_complex = False
        for param, grad in dense_grads("RMSprop", group):
            has_complex |= param.is_complex()
            state = self.state[param]
            if not state:
                state["step"] = new_number(0.0, param, group)
                state["square_avg"] = factories.zeros_like(param)
                if group["momentum"] > 0:
                    state["momentum_buffer"] = factories.zeros_like(param)
                if group["centered"]:
                    state["grad_avg"] = factories.zeros_like(param)
            params.append(param)
            grads.append(grad)
            square_avgs.append(state["square_avg"])
            if group["momentum"] > 0:
                momentum_buffers.append(state["momentum_buffer"])
            if group["centered"]:
                grad_avgs.append(state["grad_avg"])
            steps.append(state["step"])
        return has_complex

    def _update_group(self, group: dict[str, Any]) -> None:
        lists: tuple[list, list, list, list, list, list] = ([], [], [], [], [], [])
        has_complex = self._init_group(group, *lists)
        params, grads, square_avgs, momentum_buffers, grad_avgs, steps = lists
        rmsprop(
            params,
            grads,
            square_avgs,
            grad_avgs,
            momentum_buffers,
            steps,
            foreach=group["foreach"],
            maximize=group["maximize"],
            differentiable=group["differentiable"],
            capturable=group["capturable"],
            has_complex=has_complex,
            lr=group["lr"],
            alpha=group["alpha"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            momentum=group["momentum"],
            centered=group["centered"],
        )


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """One step of `RMSprop`."""
    check_steps(state_steps)
    check_capturable(capturable, params, state_steps)
    update = Updates()
    number = update.number
    alpha = number(alpha)
    settings = (
        maximize, update.factor(weight_decay), alpha, *lerp_weights(1 - alpha), number(eps), number(momentum),
        -number(lr),
    )  # fmt: skip
    update.advance(state_steps)
    means = grad_avgs if centered else None
    buffers = momentum_buffer_list if momentum > 0 else None
    update(_rule, settings, params, grads, square_avgs, means, buffers)


@compiled_as("rmsprop_step")
def _rule(
    ops: Any, param: Any, grad: Any, square: Any, mean: Any, buffer: Any, maximize: bool, weight_decay: Any, alpha: Any,
    new: Any, old: Any, eps: Any, momentum: Any, scale: Any,
) -> None:  # fmt: skip
    grad = decayed(ops, param, grad, maximize, weight_decay)
    ops.mul_(square, alpha)
    ops.addcmul_(square, grad, grad, new)
    if mean is None:
        root = ops.sqrt(square)
    else:
        ops.lerp_(mean, grad, new, old)
        root = ops.multiply(mean, mean)
        root = ops.subtract(square, root, out=root)
        root = ops.sqrt(root, out=root)
    root = ops.add(root, eps, out=root)
    if buffer is None:
        ops.addcdiv_(param, grad, root, scale)
    else:
        ops.mul_(buffer, momentum)
        ops.addcdiv_(buffer, grad, root, None)
        ops.add_(param, buffer, scale)
