"""``torch.amp.GradScaler``: losses scaled up, so that small gradients in float16 do not vanish.

The scale grows while all is well and shrinks when a gradient overflows; a step with such a gradient is left out.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core.devices import accelerators
from ..optim.optimizer import Optimizer
from ..tensor import Tensor, wrap

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """What has been done with an optimizer since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """Scales losses, and the gradients back.

    >>> import retrograd as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> optimizer, scaler = torch.optim.SGD([w], lr=0.5), torch.amp.GradScaler("cpu", init_scale=8.0)
    >>> scaler.scale((w * w).sum()).backward()
    >>> w.grad
    tensor([16., 16.])
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w
    tensor([0., 0.], requires_grad=True)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if device == "cuda" and enabled and not any(known.type == "cuda" for known in accelerators):
            message = "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling."
            warnings.warn(message, UserWarning, stacklevel=2)
            self._enabled = False
        if self._enabled:
            if not growth_factor > 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if not backoff_factor < 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        #: Was anything scaled yet?
        self._used = False
        #: By the identity of an optimizer: what was done with it, and whether a gradient of it was not finite.
        self._optimizers: dict[int, tuple[OptState, bool]] = {}

    # ------------------------------------------------------------------------------------------------------- a step

    def scale(self, outputs: Any) -> Any:
        """A tensor, or a list or other iterable of them, times the scale."""
        if not self._enabled:
            return outputs
        self._used = True
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, Iterable) and not isinstance(outputs, str):
            scaled = [self.scale(one) for one in outputs]
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else iter(scaled)  # type: ignore[call-arg]
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer by the scale; `step` does it where this was not called."""
        if not self._enabled:
            return
        state, _ = self._state_of(optimizer)
        if state is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        self._optimizers[id(optimizer)] = OptState.UNSCALED, self._unscale(optimizer, allow_half=False)

    def _unscale(self, optimizer: Optimizer, allow_half: bool) -> bool:
        """Divide; whether something was not finite."""
        overflow = False
        for group in optimizer.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                data = grad._numbers_
                if not allow_half and data.dtype == np.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                overflow = overflow or not bool(np.isfinite(data).all())
                grad.detach().mul_(1.0 / self._scale)
        return overflow

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step(...)`` with gradients that are scaled back, unless one of them is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        state, overflow = self._state_of(optimizer)
        if state is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state is OptState.READY:
            self.unscale_(optimizer)
            _, overflow = self._state_of(optimizer)
        if not any(p.grad is not None for group in optimizer.param_groups for p in group["params"]):
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if overflow else optimizer.step(*args, **kwargs)
        self._optimizers[id(optimizer)] = OptState.STEPPED, overflow
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale to what was found since the last call, or set it."""
        if not self._enabled:
            return
        if not self._optimizers and new_scale is None and not self._used:
            raise AssertionError(
                "Attempted update but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
                "outputs) earlier in the iteration."
            )
        if new_scale is not None:
            self._scale = float(new_scale)
        else:
            if not self._optimizers:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(overflow for _, overflow in self._optimizers.values()):
                self._scale *= self._backoff_factor
                self._growth_tracker = 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    self._scale *= self._growth_factor
                    self._growth_tracker = 0
        self._optimizers.clear()

    def _state_of(self, optimizer: Optimizer) -> tuple[OptState, bool]:
        return self._optimizers.get(id(optimizer), (OptState.READY, False))

    # ---------------------------------------------------------------------------------------------------- settings

    def get_scale(self) -> float:
        """The scale; 1 where scaling is off."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by after enough steps without one."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Change what the scale is multiplied by after enough steps without one."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after a step with an infinity or NaN."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Change what the scale is multiplied by after a step with an infinity or NaN."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps without an infinity or NaN the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Change after how many steps the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Does it scale at all?"""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs; nothing where scaling is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from where another scaler was."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = int(state_dict["_growth_tracker"])

    def _check_inf_per_device(self, optimizer: Optimizer) -> dict[Any, Tensor]:
        """Whether a gradient is not finite, as a tensor by device."""
        scale, self._scale = self._scale, 1.0
        try:
            overflow = self._unscale(optimizer, allow_half=True)
        finally:
            self._scale = scale
        self._optimizers[id(optimizer)] = self._state_of(optimizer)[0], overflow
        return {self._device: wrap(np.array(float(overflow), np.float32))}
