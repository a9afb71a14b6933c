"""``torch.amp.GradScaler``: losses scaled up, so that small gradients in float16 do not vanish.

The scale grows while all is well and shrinks when a gradient overflows; a step with such a gradient is left out.
"""

from __future__ import annotations

import enum
import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core.devices import accelerators
from ..core.devices import device as Device
from ..ops import namespace
from ..optim.optimizer import Optimizer
from ..tensor import Tensor, wrap

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """What has been done with an optimizer since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """What is known of an optimizer with which nothing has been done yet."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


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
        self._init_scale = init_scale
        self._init_growth_tracker = 0
        #: The scale, and how many steps went well since it was changed: tensors, made when something is first scaled.
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        #: By the identity of an optimizer: what was done with it, and by device, whether a gradient is not finite.
        self._per_optimizer_states: defaultdict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    # ------------------------------------------------------------------------------------------------------- a step

    def scale(self, outputs: Any) -> Any:
        """A tensor, or a list or other iterable of them, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            return outputs * self._scale  # type: ignore[operator]
        if isinstance(outputs, Iterable) and not isinstance(outputs, str):
            scaled = [self.scale(one) for one in outputs]
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else iter(scaled)  # type: ignore[call-arg]
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _lazy_init_scale_growth_tracker(self, dev: Device) -> None:
        """Make the tensors that hold the scale and the count of good steps."""
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = wrap(np.array(self._init_scale, np.float32)).to(dev)  # type: ignore[attr-defined]
        self._growth_tracker = wrap(np.array(self._init_growth_tracker, np.int32)).to(dev)  # type: ignore[attr-defined]

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Tensor, Tensor]:
        """Both of them, which have to be there."""
        hint = (
            "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
        )
        if self._scale is None:
            raise AssertionError(f"Attempted {funcname} but _scale is None.  {hint}")
        if self._growth_tracker is None:
            raise AssertionError(f"Attempted {funcname} but _growth_tracker is None.  {hint}")
        return self._scale, self._growth_tracker

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer by the scale; `step` does it where this was not called."""
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        found = self._unscale_grads_(optimizer, scale.reciprocal(), _number(0.0, scale), False)  # type: ignore[attr-defined]
        state["found_inf_per_device"] = found
        state["stage"] = OptState.UNSCALED

    def _unscale_grads_(
        self, optimizer: Optimizer, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Device, Tensor]:
        """Multiply the gradients by `inv_scale`; by device, 1 where one is not finite, else what `found_inf` was."""
        grads: defaultdict[Device, list[Tensor]] = defaultdict(list)
        for group in optimizer.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                half = grad.dtype.name == "float16"
                if half and not allow_fp16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                if grad.is_sparse:
                    if half:  # values at one place may overflow only when they are added
                        param.grad = grad = grad.coalesce()
                    grad = grad._values()
                grads[grad.device].append(grad.detach())
        found = {device: found_inf.to(device) for device in grads}  # type: ignore[attr-defined]
        for device, some in grads.items():
            scale = inv_scale.to(device)  # type: ignore[attr-defined]
            namespace._amp_foreach_non_finite_check_and_unscale_(some, found[device], scale)
        return found

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step(...)`` with gradients that are scaled back, unless one of them is not finite.

        An optimizer with ``_step_supports_amp_scaling`` is given the scale and what was found, and does both itself.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_by_itself(optimizer, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if not state["found_inf_per_device"]:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(self, optimizer: Optimizer, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """The step, unless a gradient was not finite."""
        if any(float(found) for found in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _step_by_itself(self, optimizer: Any, state: dict[str, Any], args: Any, kwargs: Any) -> Any:
        """The step of an optimizer that scales gradients back, and looks for those that are not finite, by itself."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near "
                "future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and "
                "let the optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        scale, _ = self._check_scale_growth_tracker("step")
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        found = sum(one.to(scale.device) for one in state["found_inf_per_device"].values())
        before = getattr(optimizer, "grad_scale", None)
        if state["stage"] is OptState.READY:
            optimizer.grad_scale = scale if before is None else scale * before
        else:
            optimizer.grad_scale = before
        optimizer.found_inf = found
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale to what was found since the last call, or set it."""
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if isinstance(new_scale, Tensor):
            if new_scale.numel() != 1 or new_scale.requires_grad or new_scale.dtype.name != "float32":
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                    "requires_grad=False."
                )
            scale.copy_(new_scale.reshape(()))  # type: ignore[attr-defined]
        elif new_scale is not None:
            scale.fill_(new_scale)  # type: ignore[attr-defined]
        else:
            found = [
                one.to(scale.device)
                for state in self._per_optimizer_states.values()
                for one in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            namespace._amp_update_scale_(
                scale, tracker, sum(found[1:], found[0]), self._growth_factor, self._backoff_factor,
                self._growth_interval,
            )  # fmt: skip
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    # ---------------------------------------------------------------------------------------------------- settings

    def get_scale(self) -> float:
        """The scale; 1 where scaling is off."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale)

    def _get_scale_async(self) -> Tensor | None:
        """The tensor that holds the scale, if there is one."""
        return self._scale

    def _get_growth_tracker(self) -> int:
        """How many steps went well since the scale was changed."""
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker)

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
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from where another scaler was."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])  # type: ignore[attr-defined]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])  # type: ignore[attr-defined]

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            # Numbers in place of tensors: who loads it makes those when it first scales something.
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _check_inf_per_device(self, optimizer: Optimizer) -> dict[Device, Tensor]:
        """By device, whether a gradient is not finite, as a tensor."""
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        found = self._unscale_grads_(optimizer, _number(1.0, scale), _number(0.0, scale), True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: Optimizer) -> dict[Device, Tensor]:
        """What was found of an optimizer's gradients since the last `update`."""
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]


def _number(value: float, scale: Tensor) -> Tensor:
    """A number as a tensor beside the scale."""
    return wrap(np.array(value, np.float32)).to(scale.device)  # type: ignore[attr-defined]
