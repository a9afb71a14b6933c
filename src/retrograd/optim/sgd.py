"""SGD: gradient descent, with momentum if asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..tensor import Tensor
from .optimizer import Optimizer, check_setting, grouped_step


class SGD(Optimizer):
    """Each step subtracts `lr` times the gradient, or times a running sum of gradients (`momentum`).

    >>> import retrograd as torch
    >>> w = torch.tensor([1., 2.], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> torch.optim.SGD([w], lr=0.1).step()
    >>> w
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_setting("learning rate", lr, lr >= 0.0)
        check_setting("momentum value", momentum, momentum >= 0.0)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    @grouped_step
    def step(self, group: dict[str, Any], param: Tensor) -> None:
        grad: Any = -param.grad if group["maximize"] else param.grad  # type: ignore[operator]
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=_number(group["weight_decay"]))
        momentum = group["momentum"]
        if momentum != 0:
            state = self.state[param]
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.detach().clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        lr = group["lr"]
        if isinstance(lr, Tensor) and group["differentiable"]:
            param.addcmul_(grad, lr, value=-1)
        else:
            param.add_(grad, alpha=-_number(lr))


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value
