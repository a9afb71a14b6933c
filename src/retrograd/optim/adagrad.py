"""Adagrad: steps by the gradient over the root of the sum of all squares so far."""

from __future__ import annotations

from typing import Any

from ..ops import factories
from ..tensor import Tensor
from .checks import (
    _device_dtype_check_for_fused,
    check_fused_options,
    check_lr,
    check_no_scaling,
    check_setting,
    check_steps,
)
from .optimizer import GroupedOptimizer, ParamsT, new_number
from .update import Updates, compiled_as, decayed, unscaled

__all__ = ["Adagrad", "adagrad"]


class Adagrad(GroupedOptimizer):
    """Adagrad; `lr_decay` lets the learning rate fall with the number of steps.

    >>> import retrograd as torch
    >>> w = torch.tensor([1., 2.], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> torch.optim.Adagrad([w], lr=0.1).step()
    >>> w
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    _OLDER = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_setting("lr_decay value", lr_decay, lr_decay >= 0.0)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        check_setting("initial_accumulator_value value", initial_accumulator_value, initial_accumulator_value >= 0.0)
        check_setting("epsilon value", eps, eps >= 0.0)
        check_fused_options(fused, foreach, differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        if fused:
            self._step_supports_amp_scaling = True
        for group in self.param_groups:
            for param in group["params"]:
                self._make_state(group, param)

    def _make_state(self, group: dict[str, Any], param: Tensor) -> dict[str, Tensor]:
        """The state of a parameter: there from the start, or made when a parameter was added later."""
        state = self.state[param]
        if not state:
            start = self.defaults["initial_accumulator_value"]
            state["step"] = new_number(0.0, param, group)
            state["sum"] = factories.full_like(
                param, complex(start, start) if param.is_complex() else start, requires_grad=False
            )
        return state

    def share_memory(self) -> None:
        """Put the sums where other processes see them."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _init_group(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        sums: list[Tensor],
        steps: list[Tensor],
    ) -> tuple[bool, bool]:
        has_sparse_grad = has_complex = False
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if group["fused"]:
                _device_dtype_check_for_fused(param)
            state = self._make_state(group, param)
            has_sparse_grad |= grad.is_sparse
            has_complex |= param.is_complex()
            params.append(param)
            grads.append(grad)
            sums.append(state["sum"])
            steps.append(state["step"])
        return has_sparse_grad, has_complex

    def _update_group(self, group: dict[str, Any]) -> None:
        lists: tuple[list, list, list, list] = ([], [], [], [])
        has_sparse_grad, has_complex = self._init_group(group, *lists)
        adagrad(
            *lists,
            fused=group["fused"],
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
            has_sparse_grad=has_sparse_grad,
            foreach=group["foreach"],
            differentiable=group["differentiable"],
            has_complex=has_complex,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            lr_decay=group["lr_decay"],
            eps=group["eps"],
            maximize=group["maximize"],
        )


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of `Adagrad`."""
    check_steps(state_steps)
    if not fused:
        check_no_scaling(grad_scale, found_inf)
    elif not unscaled(grads, grad_scale, found_inf):
        return
    has_sparse_grad = has_sparse_grad or any(grad.is_sparse for grad in grads)
    if weight_decay != 0 and has_sparse_grad:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    update = Updates()
    number = update.number
    lr, decay, lr_decay, eps = number(lr), update.factor(weight_decay), number(lr_decay), number(eps)

    def settings(count: float) -> tuple:
        return maximize, decay, eps, -lr / (1 + (count - 1) * lr_decay)

    counts = update.advance(state_steps)
    if not has_sparse_grad:
        update.by_key(_rule, counts, settings, params, grads, state_sums)
        return
    for param, grad, total, count in zip(params, grads, state_sums, counts, strict=True):
        if grad.is_sparse:
            _sparse_update(param, grad, total, *settings(count))
        else:
            update(_rule, settings(count), [param], [grad], [total])


@compiled_as("adagrad_step")
def _rule(
    ops: Any, param: Any, grad: Any, total: Any, maximize: bool, weight_decay: Any, eps: Any, scale: Any
) -> None:
    grad = decayed(ops, param, grad, maximize, weight_decay)
    ops.addcmul_(total, grad, grad, None)
    root = ops.sqrt(total)
    root = ops.add(root, eps, out=root)
    ops.addcdiv_(param, grad, root, scale)


def _sparse_update(param: Tensor, grad: Any, total: Any, maximize: bool, decay: None, eps: float, scale: Any) -> None:
    """The same for the elements that a sparse gradient has."""
    grad = grad.coalesce()
    at, values = tuple(grad._indices()), grad._values()
    if maximize:
        values = -values
    total[at] += values * values
    param[at] += values / (total[at].sqrt() + eps) * scale
