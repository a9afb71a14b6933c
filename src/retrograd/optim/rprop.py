"""Rprop: each element has a step size of its own, which goes by the signs of its gradients alone."""

from __future__ import annotations

from typing import Any

from ..ops import factories
from ..tensor import Tensor
from .checks import _get_value, check_capturable, check_lr, check_steps
from .optimizer import GroupedOptimizer, ParamsT, dense_grads, new_number
from .update import Updates, compiled_as, decayed

__all__ = ["Rprop", "rprop"]


class Rprop(GroupedOptimizer):
    """Step sizes grow while a gradient keeps its sign and shrink when it changes.

    >>> import retrograd as torch
    >>> w = torch.tensor([1., -2.], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> torch.optim.Rprop([w], lr=0.1).step()
    >>> w
    tensor([ 0.9000, -1.9000], requires_grad=True)
    """

    _OLDER = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
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
        prevs: list[Tensor],
        step_sizes: list[Tensor],
        steps: list[Tensor],
    ) -> bool:
        has_complex = False
        for param, grad in dense_grads("Rprop", group):
            has_complex |= param.is_complex()
            state = self.state[param]
            if not state:
                lr = _get_value(group["lr"])
                state["step"] = new_number(0.0, param, group)
                state["prev"] = factories.zeros_like(param)
                state["step_size"] = factories.full_like(grad, complex(lr, lr) if param.is_complex() else lr)
            params.append(param)
            grads.append(grad)
            prevs.append(state["prev"])
            step_sizes.append(state["step_size"])
            steps.append(state["step"])
        return has_complex

    def _update_group(self, group: dict[str, Any]) -> None:
        lists: tuple[list, list, list, list, list] = ([], [], [], [], [])
        has_complex = self._init_group(group, *lists)
        rprop(
            *lists,
            foreach=group["foreach"],
            capturable=group["capturable"],
            maximize=group["maximize"],
            differentiable=group["differentiable"],
            has_complex=has_complex,
            step_size_min=group["step_sizes"][0],
            step_size_max=group["step_sizes"][1],
            etaminus=group["etas"][0],
            etaplus=group["etas"][1],
        )


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """One step of `Rprop`."""
    check_steps(state_steps)
    check_capturable(capturable, params, state_steps)
    update = Updates()
    settings = maximize, *[update.number(value) for value in (etaminus, etaplus, step_size_min, step_size_max)]
    update.advance(state_steps)
    update(_rule, settings, params, grads, prevs, step_sizes)


@compiled_as("rprop_step")
def _rule(
    ops: Any, param: Any, grad: Any, before: Any, size: Any, maximize: bool, shrink: Any, grow: Any, low: Any, high: Any
) -> None:
    grad = decayed(ops, param, grad, maximize, None)
    product = ops.multiply(grad, before)
    turned = product < 0
    ops.mul_where_(size, product > 0, grow)
    ops.mul_where_(size, turned, shrink)
    ops.clamp_(size, low, high)
    ops.copy_(before, grad)
    ops.zero_where_(before, turned)  # an element that has gone too far waits for a step
    ops.sub_where_(param, before > 0, size)
    ops.add_where_(param, before < 0, size)
