"""Adafactor: what is remembered of squares of gradients of a matrix is one number per row and one per column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.grad_mode import enable_grad, no_grad
from ..core import dtypes
from ..core.type_info import finfo
from ..ops import factories
from ..tensor import Tensor
from .checks import _get_value, check_one_element
from .optimizer import Optimizer, ParamsT, dense_grads, new_number
from .update import Updates, lerp_weights

__all__ = ["Adafactor", "adafactor"]


class Adafactor(Optimizer):
    """Adafactor: steps relative to the size of the parameter, clipped at `d`.

    >>> import retrograd as torch
    >>> w = torch.ones(2, 3, requires_grad=True)
    >>> (w * w).sum().backward()
    >>> torch.optim.Adafactor([w], lr=0.1).step()
    >>> w[0]
    tensor([0.9000, 0.9000, 0.9000], grad_fn=<SelectBackward0>)
    """

    _OLDER = {"foreach": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_one_element("lr", lr)
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(
            params,
            {
                "lr": lr,
                "beta2_decay": beta2_decay,
                "eps": eps,
                "d": d,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
            },
        )

    def _init_group(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        row_vars: list[Tensor | None],
        col_vars: list[Tensor | None],
        variances: list[Tensor | None],
        steps: list[Tensor],
    ) -> bool:
        for param, grad in dense_grads("Adafactor", group):
            if param.is_complex():
                raise RuntimeError("Adafactor does not support complex parameters")
            state = self.state[param]
            if not state:
                state["step"] = new_number(0.0, param, group)
                if grad.dim() > 1:
                    *others, rows, columns = grad.shape
                    state["row_var"] = grad.new_zeros((*others, rows, 1))
                    state["col_var"] = grad.new_zeros((*others, 1, columns))
                else:
                    state["variance"] = factories.zeros_like(grad)
            params.append(param)
            grads.append(grad)
            row_vars.append(state.get("row_var"))
            col_vars.append(state.get("col_var"))
            variances.append(state.get("variance"))
            steps.append(state["step"])
        return False

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change each parameter that has a gradient; `closure`, if given, computes the loss anew and returns it."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            lists: tuple[list, list, list, list, list, list] = ([], [], [], [], [], [])
            has_complex = self._init_group(group, *lists)
            adafactor(
                *lists,
                foreach=group["foreach"],
                grad_scale=getattr(self, "grad_scale", None),
                found_inf=getattr(self, "found_inf", None),
                has_complex=has_complex,
                d=group["d"],
                lr=group["lr"],
                beta2_decay=group["beta2_decay"],
                weight_decay=group["weight_decay"],
                eps1=group["eps"][0],
                eps2=group["eps"][1],
                maximize=group["maximize"],
            )
        return loss


def adafactor(
    params: list[Tensor],
    grads: list[Tensor],
    row_vars: list[Tensor | None],
    col_vars: list[Tensor | None],
    variances: list[Tensor | None],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: float | Tensor,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    """One step of `Adafactor`."""
    if not all(isinstance(step, Tensor) for step in state_steps):
        raise RuntimeError("`state_steps` argument must contain a list of singleton tensors")
    if grad_scale is not None or found_inf is not None:
        raise AssertionError("Grad scaling should occur outside of optimizer.step()")
    update = Updates()
    rate = float(_get_value(lr))
    shrink = 1 - rate * weight_decay if weight_decay != 0 else None

    def settings(key: tuple[float, dtypes.dtype]) -> tuple:
        count, dtype = key
        smallest = finfo(dtype).eps if eps1 is None else eps1
        bounds = min(rate, 1 / count**0.5), eps2, d
        return maximize, shrink, *lerp_weights(count**beta2_decay), smallest, smallest * smallest, bounds

    keys = [(count, param.dtype) for count, param in zip(update.advance(state_steps), params, strict=True)]
    update.by_key(_rule, keys, settings, params, grads, row_vars, col_vars, variances, whole=True)


def _rule(
    ops: Any, param: Any, grad: Any, rows: Any, columns: Any, variance: Any, maximize: bool, shrink: Any, new: Any,
    old: Any, smallest: Any, smallest_square: Any, bounds: tuple[float, float, float],
) -> None:  # fmt: skip
    """`bounds`: the relative size of a step, the least size of a parameter, and how large a change may be."""
    rate, least, d = bounds
    size = rate * max(least, ops.rms(param))
    if shrink is not None:
        ops.mul_(param, shrink)
    if maximize:
        grad = ops.negative(grad)
    squares = ops.multiply(grad, grad)
    if variance is None:
        ops.lerp_(rows, ops.mean(squares, -1), new, old)
        ops.lerp_(columns, ops.mean(squares, -2), new, old)
        estimate = ops.multiply(rows, columns, out=squares)
        mean = ops.mean(rows, -2)
        estimate = ops.divide(estimate, ops.maximum(mean, smallest, out=mean), out=estimate)
        estimate = ops.maximum(estimate, smallest_square, out=estimate)
    else:
        ops.lerp_(variance, squares, new, old)
        estimate = ops.maximum(variance, smallest_square, out=squares)
    change = ops.divide(grad, ops.sqrt(estimate, out=estimate), out=estimate)
    ops.add_(param, change, -size / max(1.0, ops.rms(change) / d))
