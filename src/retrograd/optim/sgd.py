"""SGD: gradient descent, with momentum if asked."""

from __future__ import annotations

from typing import Any

from ..ops import factories
from ..tensor import Tensor
from .checks import (
    _device_dtype_check_for_fused,
    check_fused_options,
    check_no_scaling,
    check_one_element,
    check_setting,
)
from .optimizer import GroupedOptimizer, ParamsT
from .update import Updates, compiled_as, decayed, unscaled

__all__ = ["SGD", "sgd"]


class SGD(GroupedOptimizer):
    """Each step subtracts `lr` times the gradient, or times a running sum of gradients (`momentum`).

    >>> import retrograd as torch
    >>> w = torch.tensor([1., 2.], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> torch.optim.SGD([w], lr=0.1).step()
    >>> w
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    _OLDER = {"nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": False}

    def __init__(
        self,
        params: ParamsT,
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
        check_one_element("lr", lr)
        check_setting("learning rate", lr, not lr < 0.0)
        check_setting("momentum value", momentum, not momentum < 0.0)
        check_setting("weight_decay value", weight_decay, not weight_decay < 0.0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_fused_options(fused, foreach, differentiable)
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
        if fused:
            self._step_supports_amp_scaling = True

    def _init_group(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], momentum_buffers: list[Tensor | None]
    ) -> bool:
        has_sparse_grad = False
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if group["fused"]:
                _device_dtype_check_for_fused(param)
            params.append(param)
            grads.append(grad)
            has_sparse_grad |= grad.is_sparse
            if group["momentum"] != 0:
                momentum_buffers.append(self.state[param].get("momentum_buffer"))
        return has_sparse_grad

    def _update_group(self, group: dict[str, Any]) -> None:
        params: list[Tensor] = []
        grads: list[Tensor] = []
        buffers: list[Tensor | None] = []
        has_sparse_grad = self._init_group(group, params, grads, buffers)
        sgd(
            params,
            grads,
            buffers,
            has_sparse_grad,
            group["foreach"],
            group["fused"],
            getattr(self, "grad_scale", None),
            getattr(self, "found_inf", None),
            weight_decay=group["weight_decay"],
            momentum=group["momentum"],
            lr=group["lr"],
            dampening=group["dampening"],
            nesterov=group["nesterov"],
            maximize=group["maximize"],
        )
        for param, buffer in zip(params, buffers):
            self.state[param]["momentum_buffer"] = buffer


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float | Tensor,
    momentum: float,
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """One step of `SGD`; buffers of momentum that are None are made."""
    if not fused:
        check_no_scaling(grad_scale, found_inf)
    elif not unscaled(d_p_list, grad_scale, found_inf):
        return
    update = Updates()
    if has_sparse_grad:
        update.bare = False
    number = update.number
    decay = update.factor(weight_decay)
    settings = maximize, decay, number(momentum), 1 - number(dampening), nesterov, -number(lr)
    if momentum == 0:
        if not maximize and decay is None:  # the most used of all
            update(_plain_rule, settings[-1:], params, d_p_list)
        else:
            update(_rule, settings, params, d_p_list, None)
        return
    if all(buffer is not None for buffer in momentum_buffer_list):
        update(_rule, settings, params, d_p_list, momentum_buffer_list)
        return
    for i, (param, grad) in enumerate(zip(params, d_p_list, strict=True)):
        rule = _rule
        if momentum_buffer_list[i] is None:
            momentum_buffer_list[i] = grad.clone() if grad.is_sparse else factories.zeros_like(grad)
            rule = _first_rule
        update(rule, settings, [param], [grad], [momentum_buffer_list[i]])


@compiled_as("sgd_plain")
def _plain_rule(ops: Any, param: Any, grad: Any, scale: Any) -> None:
    ops.add_(param, grad, scale)


@compiled_as("sgd_step")
def _rule(
    ops: Any, param: Any, grad: Any, buffer: Any, maximize: bool, weight_decay: Any, momentum: Any, new: Any,
    nesterov: bool, scale: Any,
) -> None:  # fmt: skip
    grad = decayed(ops, param, grad, maximize, weight_decay)
    if buffer is not None:
        ops.mul_(buffer, momentum)
        ops.add_(buffer, grad, new)
        grad = ops.plus(grad, buffer, momentum) if nesterov else buffer
    ops.add_(param, grad, scale)


def _first_rule(
    ops: Any, param: Any, grad: Any, buffer: Any, maximize: bool, weight_decay: Any, momentum: Any, new: Any,
    nesterov: bool, scale: Any,
) -> None:  # fmt: skip
    """The buffer begins with the gradient itself, whatever the dampening."""
    grad = decayed(ops, param, grad, maximize, weight_decay)
    ops.copy_(buffer, grad)
    ops.add_(param, ops.plus(grad, grad, momentum) if nesterov else grad, scale)
