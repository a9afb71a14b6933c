"""Adam and AdamW: steps by a running mean of gradients over the root of a running mean of their squares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core import dtypes
from ..ops import factories
from ..ops import namespace as ops
from ..tensor import Tensor
from .optimizer import Optimizer, check_setting, grouped_step


class Adam(Optimizer):
    """Adam; `weight_decay` is added to the gradient, or (`decoupled_weight_decay`) shrinks the parameter itself.

    >>> import retrograd as torch
    >>> w = torch.tensor([1., 2.], requires_grad=True)
    >>> optimizer = torch.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_setting("learning rate", lr, lr >= 0.0)
        check_setting("epsilon value", eps, eps >= 0.0)
        for index in range(2):
            check_setting(f"beta parameter at index {index}", betas[index], 0.0 <= betas[index] < 1.0)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def _first_state(self, param: Tensor, amsgrad: bool) -> dict[str, Tensor]:
        state = self.state[param]
        if not state:
            state["step"] = factories.tensor(0.0, dtype=dtypes.get_default_dtype())
            state["exp_avg"] = factories.zeros_like(param)
            state["exp_avg_sq"] = factories.zeros_like(param)
            if amsgrad:
                state["max_exp_avg_sq"] = factories.zeros_like(param)
        return state

    @grouped_step
    def step(self, group: dict[str, Any], param: Tensor) -> None:
        grad: Any = -param.grad if group["maximize"] else param.grad  # type: ignore[operator]
        state = self._first_state(param, group["amsgrad"])
        beta1, beta2 = group["betas"]
        lr = _number(group["lr"])
        state["step"] += 1
        if group["weight_decay"] != 0:
            if group["decoupled_weight_decay"]:
                param.mul_(1 - lr * group["weight_decay"])
            else:
                grad = grad.add(param, alpha=group["weight_decay"])
        if param.is_complex():  # two real numbers for each
            grad = _as_real(grad)
            param = _as_real(param)
        mean, square = _as_real(state["exp_avg"]), _as_real(state["exp_avg_sq"])
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if group["differentiable"]:
            mean, square = mean.clone(), square.clone()  # which later steps will write to
        count = state["step"].item()
        if group["amsgrad"]:
            most = _as_real(state["max_exp_avg_sq"])
            most.copy_(ops.maximum(most.clone() if group["differentiable"] else most, square))
            square = most
        root = (square.sqrt() / (1 - beta2**count) ** 0.5).add_(group["eps"])
        param.addcdiv_(mean, root, value=-lr / (1 - beta1**count))


class AdamW(Adam):
    """`Adam` whose weight decay shrinks the parameter itself, apart from the gradient.

    >>> import retrograd as torch
    >>> w = torch.tensor([1.], requires_grad=True)
    >>> w.grad = torch.zeros(1)
    >>> torch.optim.AdamW([w], lr=0.1, weight_decay=0.5).step()
    >>> w
    tensor([0.9500], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


def _as_real(tensor: Any) -> Any:
    return ops.view_as_real(tensor) if tensor.is_complex() else tensor
