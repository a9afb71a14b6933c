"""All tensors of a tree of modules at once: to another dtype or device, frozen, their gradients cleared."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from ...autograd.grad_mode import no_grad
from ...core import dtypes
from ...core.devices import as_device
from ...ops import namespace as ops
from ...tensor import Tensor
from ...utils.swap import swap_tensors
from ..conversion_settings import get_overwrite_module_params_on_conversion, get_swap_module_params_on_conversion
from ..parameter import Parameter, is_lazy

C = TypeVar("C", bound="Converted")


class Converted:
    """The part of a Module that converts its parameters and buffers."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]

    if TYPE_CHECKING:

        def children(self) -> Iterator[Any]: ...

        def parameters(self, recurse: bool = True) -> Iterator[Parameter]: ...

    def _apply(self: C, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> C:
        """Replace the values of every parameter, gradient and buffer by what `fn` makes of them."""
        if recurse:
            for child in self.children():
                child._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                self._parameters[name] = self._converted(name, parameter, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _converted(self, name: str, parameter: Parameter, fn: Callable[[Tensor], Tensor]) -> Parameter:
        """One parameter and its gradient: by default the same Parameter with other data, as optimizers hold it."""
        with no_grad():
            converted = fn(parameter)
            grad = parameter.grad
            converted_grad = None if grad is None else fn(grad)
        if get_swap_module_params_on_conversion():
            parameter.grad = None
            try:
                swap_tensors(parameter, Parameter(converted, parameter.requires_grad))
            except Exception as error:
                parameter.grad = grad
                raise RuntimeError(f"_apply(): Couldn't swap {type(self).__name__}.{name}") from error
        elif get_overwrite_module_params_on_conversion() or converted._special_ != parameter._special_:  # from, to meta
            parameter = Parameter(converted, parameter.requires_grad)
            if converted_grad is not None:
                parameter.grad = converted_grad.requires_grad_(grad.requires_grad)  # type: ignore[union-attr]
            return parameter
        else:
            parameter.grad = None
            if converted is not parameter:
                parameter.data = converted
        if grad is not None and converted_grad is not None:
            if converted_grad is not grad:
                grad.data = converted_grad
            parameter.grad = grad
        return parameter

    def to(self: C, *args: Any, **kwargs: Any) -> C:
        """Convert floating-point parameters and buffers to a dtype, and move all to a device, in place.

        Called as ``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(tensor)`` or ``to(memory_format=...)``.

        >>> import retrograd as torch
        >>> torch.nn.Linear(2, 2).to(torch.float64).weight.dtype
        torch.float64
        """
        dtype, device, memory_format = parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may change, and some modules "
                "might not work as expected when using complex tensors as parameters or buffers.",
                UserWarning,
                stacklevel=2,
            )

        def convert(tensor: Tensor) -> Tensor:
            wanted = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            if memory_format is not None and tensor.dim() in (4, 5):
                return tensor.to(device, wanted, memory_format=memory_format)
            return tensor.to(device, wanted)

        return self._apply(convert)

    def to_empty(self: C, *, device: Any, recurse: bool = True) -> C:
        """Move all parameters and buffers to a device without their values, whatever they were."""
        return self._apply(lambda t: ops.empty_like(t, device=device), recurse)

    def type(self: C, dst_type: Any) -> C:
        """Convert all parameters and buffers to a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self: C) -> C:
        """Convert floating-point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self: C) -> C:
        """Convert floating-point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self: C) -> C:
        """Convert floating-point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self: C) -> C:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self: C) -> C:
        """Move all parameters and buffers to the host's memory."""
        return self._apply(lambda t: t.cpu())

    def cuda(self: C, device: Any = None) -> C:
        """Move all parameters and buffers to a CUDA device, if there is one."""
        return self._to_kind("cuda", device)

    def xpu(self: C, device: Any = None) -> C:
        """Move all parameters and buffers to an XPU device, if there is one."""
        return self._to_kind("xpu", device)

    def _to_kind(self: C, kind: str, device: Any) -> C:
        return self.to(kind if device is None else f"{kind}:{device}" if isinstance(device, int) else device)

    def share_memory(self: C) -> C:
        """Move all parameters and buffers to memory that other processes can map."""
        return self._apply(lambda t: t.share_memory_())

    def requires_grad_(self: C, requires_grad: bool = True) -> C:
        """Train all parameters, or freeze them."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero.

        >>> import retrograd as torch
        >>> m = torch.nn.Linear(2, 1)
        >>> m(torch.ones(2)).backward()
        >>> m.zero_grad(); m.weight.grad is None
        True
        """
        from ...optim.optimizer import clear_grad  # optimizers are loaded by who trains

        for parameter in self.parameters():
            if not is_lazy(parameter):
                clear_grad(parameter, set_to_none)


def parse_to(args: tuple, kwargs: dict) -> tuple[Any, Any, Any]:
    """The (dtype, device, memory_format) of a call of `Module.to`."""
    first = args[0] if args else None
    if isinstance(first, Tensor) or "tensor" in kwargs:
        names: tuple[str, ...] = ("tensor", "non_blocking", "copy")
    elif isinstance(first, dtypes.dtype):
        names = ("dtype", "non_blocking", "copy")
    else:
        names = ("device", "dtype", "non_blocking", "copy")
    given = dict(zip(names, args, strict=False))
    unknown = kwargs.keys() - {*names, "memory_format"}
    if len(args) > len(names) or unknown or given.keys() & kwargs.keys():
        raise _wrong_to(args, kwargs)
    given.update(kwargs)
    dtype, device, tensor = given.get("dtype"), given.get("device"), given.get("tensor")
    if not (
        (dtype is None or isinstance(dtype, dtypes.dtype))
        and isinstance(given.get("non_blocking", False), bool)
        and not isinstance(device, (bool, float))
    ):
        raise _wrong_to(args, kwargs)
    if given.get("copy"):
        raise RuntimeError(".to() does not accept copy argument: a module is converted in place, copy.deepcopy() it")
    if tensor is not None:
        dtype, device = tensor.dtype, tensor.device
    return dtype, None if device is None else as_device(device), given.get("memory_format")


def _wrong_to(args: tuple, kwargs: dict) -> TypeError:
    kinds = [type(value).__name__ for value in args] + [f"{key}={type(v).__name__}" for key, v in kwargs.items()]
    return TypeError(
        f"to() received an invalid combination of arguments - got ({', '.join(kinds)}): write to(device), to(dtype), "
        "to(device, dtype), to(tensor), each with non_blocking=, or to(memory_format=...)"
    )
