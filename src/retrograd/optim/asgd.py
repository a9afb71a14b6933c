"""ASGD: gradient descent that also keeps the mean of the parameters along its way."""

from __future__ import annotations

from typing import Any

from ..ops import factories
from ..tensor import Tensor
from .checks import _get_scalar_dtype, _get_value, check_capturable, check_lr, check_setting
from .optimizer import GroupedOptimizer, ParamsT, dense_grads
from .update import Updates, compiled_as, decayed, lerp_weights

__all__ = ["ASGD", "asgd"]


class ASGD(GroupedOptimizer):
    """Averaged SGD: the mean, ``state["ax"]``, is taken over the steps after the first `t0`.

    >>> import retrograd as torch
    >>> w = torch.tensor([1., 2.], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> torch.optim.ASGD([w], lr=0.1, lambd=0).step()
    >>> w
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    _OLDER = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _NUMBERS = ("step", "eta", "mu")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
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
        mus: list[Tensor],
        axs: list[Tensor],
        etas: list[Tensor],
        steps: list[Tensor],
    ) -> bool:
        has_complex = False
        for param, grad in dense_grads("ASGD", group):
            has_complex |= param.is_complex()
            state = self.state[param]
            if not state:
                for name, value in (("step", 0.0), ("eta", float(_get_value(group["lr"]))), ("mu", 1.0)):
                    state[name] = factories.tensor(value, dtype=_get_scalar_dtype(), device=param.device)
                state["ax"] = factories.zeros_like(param)
            params.append(param)
            grads.append(grad)
            mus.append(state["mu"])
            axs.append(state["ax"])
            etas.append(state["eta"])
            steps.append(state["step"])
        return has_complex

    def _update_group(self, group: dict[str, Any]) -> None:
        lists: tuple[list, list, list, list, list, list] = ([], [], [], [], [], [])
        has_complex = self._init_group(group, *lists)
        params, grads, mus, axs, etas, steps = lists
        asgd(
            params,
            grads,
            axs,
            mus,
            etas,
            steps,
            foreach=group["foreach"],
            maximize=group["maximize"],
            differentiable=group["differentiable"],
            capturable=group["capturable"],
            has_complex=has_complex,
            lambd=group["lambd"],
            lr=group["lr"],
            t0=group["t0"],
            alpha=group["alpha"],
            weight_decay=group["weight_decay"],
        )


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float | Tensor,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """One step of `ASGD`."""
    check_capturable(capturable, params, mus, etas, state_steps, names="params, mus, etas,")
    update = Updates()
    rate = float(_get_value(lr))
    decay = update.factor(weight_decay)

    def settings(key: tuple[float, float]) -> tuple:
        eta, mu = key
        return maximize, decay, 1 - lambd * eta, -eta, *((None, None) if mu == 1 else lerp_weights(mu))

    keys = [(eta.item(), mu.item()) for eta, mu in zip(etas, mus, strict=True)]
    update.by_key(_rule, keys, settings, params, grads, axs)
    for eta, mu, count in zip(etas, mus, update.advance(state_steps), strict=True):
        update.write(eta, rate / (1 + lambd * rate * count) ** alpha)
        update.write(mu, 1 / max(1, count - t0))


@compiled_as("asgd_step")
def _rule(
    ops: Any, param: Any, grad: Any, mean: Any, maximize: bool, weight_decay: Any, shrink: Any, scale: Any, mu: Any,
    rest: Any,
) -> None:  # fmt: skip
    grad = decayed(ops, param, grad, maximize, weight_decay)
    ops.mul_(param, shrink)
    ops.add_(param, grad, scale)
    if mu is None:
        ops.copy_(mean, param)
    else:
        ops.lerp_(mean, param, mu, rest)
