"""Adam: steps by a running mean of gradients over the root of a running mean of their squares."""

from __future__ import annotations

from typing import Any

from ..ops import factories
from ..tensor import Tensor
from .checks import (
    _device_dtype_check_for_fused,
    _to_scalar,
    check_betas,
    check_capturable,
    check_fused_options,
    check_lr,
    check_no_scaling,
    check_one_element,
    check_setting,
    check_steps,
)
from .optimizer import GroupedOptimizer, ParamsT, dense_grads, new_number
from .update import Updates, compiled_as, decay_settings, decayed, lerp_weights, unscaled

__all__ = ["Adam", "adam"]

_NO_TENSOR = "as a Tensor is not supported for capturable=False and foreach=True"


class Adam(GroupedOptimizer):
    """Adam; `weight_decay` is added to the gradient, or (`decoupled_weight_decay`) shrinks the parameter itself.

    >>> import retrograd as torch
    >>> w = torch.tensor([1., 2.], requires_grad=True)
    >>> optimizer = torch.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    _OLDER = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
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
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError(f"lr {_NO_TENSOR}")
        check_lr(lr)
        check_setting("epsilon value", eps, eps >= 0.0)
        check_betas(betas)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        if not (all(isinstance(beta, float) for beta in betas) or all(isinstance(beta, Tensor) for beta in betas)):
            raise ValueError("betas must be either both floats or both Tensors")
        for index, beta in enumerate(betas):
            if isinstance(beta, Tensor) and foreach and not capturable:
                raise ValueError(f"betas[{index}] {_NO_TENSOR}")
            check_one_element(f"betas[{index}]", beta)
        check_fused_options(fused, foreach, differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": tuple(map(_to_scalar, betas)),
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
        if fused:
            self._step_supports_amp_scaling = True

    def _init_group(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        exp_avgs: list[Tensor],
        exp_avg_sqs: list[Tensor],
        max_exp_avg_sqs: list[Tensor],
        steps: list[Tensor],
    ) -> bool:
        has_complex = False
        amsgrad = group["amsgrad"]
        if group["foreach"] and isinstance(group["lr"], Tensor) and not group["capturable"]:
            raise RuntimeError(f"lr {_NO_TENSOR}")
        for param, grad in dense_grads("Adam", group, ", please consider SparseAdam instead"):
            has_complex |= param.is_complex()
            state = self.state[param]
            if not state:
                if group["fused"]:
                    _device_dtype_check_for_fused(param)
                state["step"] = new_number(0.0, param, group)
                state["exp_avg"] = factories.zeros_like(param)
                state["exp_avg_sq"] = factories.zeros_like(param)
                if amsgrad:
                    state["max_exp_avg_sq"] = factories.zeros_like(param)
            if group["differentiable"] and state["step"].requires_grad:
                raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
            params.append(param)
            grads.append(grad)
            exp_avgs.append(state["exp_avg"])
            exp_avg_sqs.append(state["exp_avg_sq"])
            if amsgrad:
                max_exp_avg_sqs.append(state["max_exp_avg_sq"])
            steps.append(state["step"])
        return has_complex

    def _update_group(self, group: dict[str, Any]) -> None:
        lists: tuple[list, list, list, list, list, list] = ([], [], [], [], [], [])
        has_complex = self._init_group(group, *lists)
        beta1, beta2 = group["betas"]
        adam(
            *lists,
            foreach=group["foreach"],
            capturable=group["capturable"],
            differentiable=group["differentiable"],
            fused=group["fused"],
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
            has_complex=has_complex,
            decoupled_weight_decay=group["decoupled_weight_decay"],
            amsgrad=group["amsgrad"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=group["maximize"],
        )


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of `Adam`."""
    check_steps(state_steps)
    if not fused:
        check_no_scaling(grad_scale, found_inf)
        check_capturable(capturable, params, state_steps)
    elif not unscaled(grads, grad_scale, found_inf):
        return
    update = Updates()
    number = update.number
    lr, beta1, beta2, eps = number(lr), number(beta1), number(beta2), number(eps)
    decay, shrink = decay_settings(update, weight_decay, lr, decoupled_weight_decay)

    def settings(count: float) -> tuple:
        root = (1 - beta2**count) ** 0.5
        scale = -lr * root / (1 - beta1**count)
        return maximize, decay, shrink, *lerp_weights(1 - beta1), beta2, 1 - beta2, eps * root, scale

    most = max_exp_avg_sqs if amsgrad else None
    update.by_key(_rule, update.advance(state_steps), settings, params, grads, exp_avgs, exp_avg_sqs, most)


@compiled_as("adam_step")
def _rule(
    ops: Any, param: Any, grad: Any, mean: Any, square: Any, most: Any, maximize: bool, weight_decay: Any, shrink: Any,
    new1: Any, old1: Any, beta2: Any, new2: Any, eps: Any, scale: Any,
) -> None:  # fmt: skip
    """With both sides of the quotient multiplied by the root of the second bias correction: one pass less."""
    if shrink is not None:
        ops.mul_(param, shrink)
    grad = decayed(ops, param, grad, maximize, weight_decay)
    ops.lerp_(mean, grad, new1, old1)
    ops.mul_(square, beta2)
    ops.addcmul_(square, grad, grad, new2)
    if most is not None:
        ops.maximum_(most, square)
        square = most
    root = ops.sqrt(square)
    root = ops.add(root, eps, out=root)
    ops.addcdiv_(param, mean, root, scale)
