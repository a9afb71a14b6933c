"""Muon: momentum whose matrix is made orthogonal before each step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..autograd.grad_mode import enable_grad, no_grad
from ..core import dtypes
from ..ops import factories
from ..tensor import Tensor
from .checks import _get_value, check_one_element
from .optimizer import Optimizer, ParamsT, dense_grads

__all__ = ["Muon"]

EPS = 1e-7
#: Of the polynomial a x + b x³ + c x⁵ that pulls singular values to about 1.
DEFAULT_A, DEFAULT_B, DEFAULT_C = 3.4445, -4.7750, 2.0315
DEFAULT_NS_STEPS = 5


class Muon(Optimizer):
    """Muon, for the matrices of a network's hidden layers; its other parameters want another optimizer.

    >>> import retrograd as torch
    >>> w = torch.eye(2, requires_grad=True)
    >>> (w * w).sum().backward()
    >>> torch.optim.Muon([w], lr=0.5, weight_decay=0.0).step()
    >>> bool((w.diagonal() < 0.7).all())
    True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (DEFAULT_A, DEFAULT_B, DEFAULT_C),
        eps: float = EPS,
        ns_steps: int = DEFAULT_NS_STEPS,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_one_element("lr", lr)
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 <= momentum:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "ns_coefficients": ns_coefficients,
                "eps": eps,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
                    )

    def _init_group(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], momentum_buffers: list[Tensor]
    ) -> bool:
        for param, grad in dense_grads("Muon", group):
            if param.is_complex():
                raise RuntimeError("Muon does not support complex parameters")
            state = self.state[param]
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = factories.zeros_like(grad)
            params.append(param)
            grads.append(grad)
            momentum_buffers.append(state["momentum_buffer"])
        return False

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change each parameter that has a gradient; `closure`, if given, computes the loss anew and returns it."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            lists: tuple[list, list, list] = ([], [], [])
            has_complex = self._init_group(group, *lists)
            muon(
                *lists,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                momentum=group["momentum"],
                nesterov=group["nesterov"],
                ns_coefficients=group["ns_coefficients"],
                ns_steps=group["ns_steps"],
                eps=group["eps"],
                adjust_lr_fn=group["adjust_lr_fn"],
                has_complex=has_complex,
            )
        return loss


def muon(
    params: list[Tensor],
    grads: list[Tensor],
    muon_momentum_bufs: list[Tensor],
    *,
    foreach: bool | None = None,
    lr: float | Tensor,
    weight_decay: float,
    momentum: float,
    nesterov: bool,
    ns_coefficients: tuple[float, float, float],
    ns_steps: int,
    eps: float,
    adjust_lr_fn: str | None,
    has_complex: bool,
) -> None:
    """One step of `Muon`."""
    if foreach:
        raise RuntimeError("Foreach is not supported for Muon yet")
    if has_complex:
        raise ValueError("Complex parameters are not supported")
    if any(grad.ndim != 2 for grad in grads):
        raise ValueError("Param gradient must be a 2D matrix")
    rate = float(_get_value(lr))
    for param, grad, buffer in zip(params, grads, muon_momentum_bufs, strict=True):
        buffer.lerp_(grad, 1 - momentum)
        update = grad.lerp(buffer, momentum) if nesterov else buffer
        update = _zeropower_via_newtonschulz(update, ns_coefficients, ns_steps, eps)
        param.mul_(1 - rate * weight_decay)
        param.add_(update, alpha=-_adjust_lr(rate, adjust_lr_fn, param.shape))


def _zeropower_via_newtonschulz(
    grad: Tensor, ns_coefficients: tuple[float, float, float], ns_steps: int, eps: float
) -> Tensor:
    """About the orthogonal matrix that is nearest to `grad`: a polynomial of its singular values, again and again.

    It is computed as matrices of bfloat16 are: in float32, with each result rounded once.
    """
    if ns_steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if grad.ndim != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(ns_coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = ns_coefficients
    tall = grad.size(0) > grad.size(1)
    low = dtypes.by_name("bfloat16")

    def rounded(x: Any) -> Any:
        return x.to(low).to(dtypes.float32)

    x: Any = rounded(grad)
    x = x.T if tall else x
    x = rounded(x / rounded(x.norm()).clamp(min=eps))
    for _ in range(ns_steps):
        gram = rounded(x @ x.T)
        x = rounded(a * x + rounded(b * gram + c * (gram @ gram)) @ x)
    return (x.T if tall else x).to(low)


def _adjust_lr(lr: float, adjust_lr_fn: str | None, param_shape: tuple[int, ...]) -> float:
    """The learning rate for a matrix of this shape."""
    rows, columns = param_shape[:2]
    if adjust_lr_fn == "match_rms_adamw":
        return lr * 0.2 * math.sqrt(max(rows, columns))
    return lr * math.sqrt(max(1, rows / columns))
