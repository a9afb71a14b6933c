"""What optimizers refuse, with torch's messages, and which of its implementations torch would take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..core import dtypes
from ..tensor import Tensor
from ..utils._foreach_utils import _get_foreach_kernels_supported_devices, _get_fused_kernels_supported_devices


def check_setting(name: str, value: Any, valid: Any) -> None:
    """Refuse a setting that makes no sense."""
    if not valid:
        raise ValueError(f"Invalid {name}: {value}")


def check_one_element(name: str, value: Any) -> None:
    """A setting that is a tensor has one element."""
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ValueError(f"Tensor {name} must be 1-element")


def check_lr(lr: Any) -> None:
    """A learning rate is a number, or a tensor of one element, and not negative."""
    check_one_element("lr", lr)
    check_setting("learning rate", lr, lr >= 0.0)


def check_betas(betas: Sequence[Any]) -> None:
    """Weights of running means lie in [0, 1)."""
    for index in range(2):
        check_setting(f"beta parameter at index {index}", betas[index], 0.0 <= betas[index] < 1.0)


def check_fused_options(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """`fused` goes with neither of the others."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_steps(state_steps: Iterable[Any], name: str = "state_steps") -> None:
    """The functional forms take counts of steps as tensors."""
    if not all(isinstance(step, Tensor) for step in state_steps):
        raise RuntimeError(f"API has changed, `{name}` argument must contain a list of singleton tensors")


def check_no_scaling(grad_scale: Any, found_inf: Any) -> None:
    """Only fused implementations unscale gradients themselves."""
    if grad_scale is not None or found_inf is not None:
        raise AssertionError("Expected grad_scale and found_inf to be None")


def check_capturable(
    capturable: bool, params: Sequence[Tensor], *others: Sequence[Tensor], names: str = "params", xla: bool = True
) -> None:
    """With `capturable` all tensors are on one accelerator."""
    if not capturable:
        return
    supported = _get_capturable_supported_devices(xla)
    for param, *rest in zip(params, *others, strict=True):
        kind = param.device.type
        if kind not in supported or any(tensor.device.type != kind for tensor in rest):
            raise AssertionError(
                f"If capturable=True, {names} and state_steps must be on supported devices: {supported}."
            )


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Kinds of devices whose work can be captured in graphs."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """May `p` be updated by a fused implementation?"""
    supported = _get_fused_kernels_supported_devices()
    if cuda_unsupported:
        supported.remove("cuda")
    if p.device.type not in supported or not p.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of "
            f"supported devices: {supported} but {p.dtype} and {p.device.type}"
        )


def _default_to_fused_or_foreach(
    params: Sequence[Tensor | None], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Which implementation torch would take when nobody says: (fused, foreach)."""
    from ..nn.parameter import Parameter  # modules are loaded by who uses them

    if differentiable:
        return False, False
    given = [param for param in params if param is not None]
    plain = all(type(param) in (Tensor, Parameter) for param in given)
    fusable = _get_fused_kernels_supported_devices()
    fused = (
        use_fused and plain and all(param.device.type in fusable and param.is_floating_point() for param in given)
    )
    each = _get_foreach_kernels_supported_devices()
    return fused, not fused and plain and all(param.device.type in each for param in given)


def _get_scalar_dtype(is_fused: bool | None = None) -> dtypes.dtype:
    """The dtype of counts of steps and other numbers of the state."""
    return dtypes.float64 if not is_fused and dtypes.get_default_dtype() is dtypes.float64 else dtypes.float32


def _to_scalar(x: Any) -> Any:
    """A tensor of one element as a 0-d tensor; a number as it is."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


def _get_value(x: Any) -> Any:
    """The number in a tensor."""
    return x.item() if isinstance(x, Tensor) else x
