"""``_foreach_*``: an operator on each tensor of a list.

Torch runs these as one kernel, for its optimisers; here they are the operator in a loop, with the same arguments: a
number or a 0-d tensor for all, or a list with one for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._generated import functions as generated
from ...autograd.grad_mode import no_grad
from ...core.dtypes import SCALAR_NAMES
from ...tensor import Tensor
from ..registry import SPACES, composite

_UNARY = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma",
    "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
    "tan", "tanh", "trunc",
)  # fmt: skip
_BINARY = ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_min", "clamp_max")
_TERNARY = ("addcdiv", "addcmul", "lerp")

def _operator(name: str) -> Callable[..., Any]:
    return SPACES["Tensor"].get(name) or getattr(generated, name)


def _each(value: Any, count: int) -> list[Any]:
    """One value for each tensor: those of a list, or the same one."""
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(value)}")
    return list(value)


def _check(self: Any) -> None:
    if not isinstance(self, (list, tuple)) or not self:
        raise RuntimeError("Tensor list must have at least one tensor.")


def _pointwise(name: str, inplace: bool) -> Callable[..., Any]:
    """`name` on each tensor, with the further arguments taken one each."""
    bounds = {"maximum": "clamp_min", "minimum": "clamp_max"}

    def each(self: Any, *args: Any, **kwargs: Any) -> Any:
        _check(self)
        many = [_each(arg, len(self)) for arg in args]
        if name in ("addcdiv", "addcmul") and len(many) == 3:
            kwargs["value"] = many.pop()
        if isinstance(kwargs.get("value"), Tensor):
            kwargs["value"] = kwargs["value"].tolist()
        options = {key: _each(value, len(self)) for key, value in kwargs.items() if value is not None}
        results = []
        for i, tensor in enumerate(self if isinstance(self, (list, tuple)) else [self]):
            used = name
            mine = [arg[i] for arg in many]
            if name in bounds and not isinstance(mine[0], Tensor):
                used = bounds[name]
            if inplace and used in ("maximum", "minimum"):
                result = generated.copy_(tensor, _operator(used)(generated.clone(tensor), *mine), False)
            else:
                named = {key: value[i] for key, value in options.items()}
                result = _operator(used + "_" if inplace else used)(tensor, *mine, **named)
            results.append(result)
        return None if inplace else tuple(results)

    each.__name__ = each.__qualname__ = f"_foreach_{name}{'_' if inplace else ''}"
    each.__doc__ = f"`{name}` on each tensor of a list{', in place' if inplace else ''}."
    return each


@composite(method=False, bare=True)
def _foreach_zero_(self: Sequence[Tensor]) -> None:
    """Set every tensor to zero."""
    _check(self)
    for tensor in self:
        generated.zero_(tensor)


@composite(method=False, bare=True)
def _foreach_copy_(self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False) -> None:
    """Copy each of `src` into the tensor in its place."""
    _check(self)
    for tensor, source in zip(self, _each(src, len(self)), strict=True):
        generated.copy_(tensor, source, non_blocking)


@composite(method=False, bare=True)
def _foreach_clone(self: Sequence[Tensor], *, memory_format: Any = None) -> tuple[Tensor, ...]:
    """A copy of each tensor."""
    _check(self)
    return tuple(generated.clone(tensor, memory_format=memory_format) for tensor in self)


@composite(method=False, bare=True)
def _foreach_norm(self: Sequence[Tensor], ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The norm of each tensor."""
    _check(self)
    return tuple(generated.linalg_vector_norm(tensor, ord, dtype=dtype) for tensor in self)


@composite(method=False, bare=True)
def _foreach_max(self: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The largest element of each tensor."""
    _check(self)
    return tuple(generated.max(tensor) for tensor in self)


@composite(method=False, bare=True)
def _foreach_mm(self: Sequence[Tensor], mat2: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The product of each matrix with the one in its place."""
    _check(self)
    return tuple(generated.mm(a, b) for a, b in zip(self, _each(mat2, len(self)), strict=True))


# ------------------------------------------------------------------------------------------ what a GradScaler calls


def _check_ones(tensors: dict[str, Tensor]) -> None:
    """Are these tensors of one number each, the tracker's an int32 and the others float32?"""
    for name, tensor in tensors.items():
        if tensor.numel() != 1:
            raise RuntimeError(f"{name} must be a 1-element tensor.")
    for name, tensor in tensors.items():
        if tensor.dtype.name != ("int32" if name == "growth_tracker" else "float32"):
            raise RuntimeError(f"{name} must be {'an int' if name == 'growth_tracker' else 'a float'} tensor.")


@composite(method=False)
def _amp_foreach_non_finite_check_and_unscale_(self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiply each tensor by `inv_scale`, and set `found_inf` to one where an element was not finite."""
    _check_ones({"inv_scale": inv_scale, "found_inf": found_inf})
    for tensor in self:
        if not tensor.is_floating_point():
            name = SCALAR_NAMES[tensor.dtype.name]
            raise NotImplementedError(
                f'"_amp_foreach_non_finite_check_and_unscale_cpu" not implemented for \'{name}\''
            )
    factor = inv_scale.item()  # type: ignore[attr-defined]
    with no_grad():
        for tensor in self:
            if not _operator("isfinite")(tensor).all():
                found_inf.fill_(1.0)  # type: ignore[attr-defined]
            _operator("mul_")(tensor, factor)


@composite(method=False)
def _amp_update_scale_(
    input: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """Lower a scale where an infinity was found; raise it after every `growth_interval` times that none was."""
    _check_ones({"growth_tracker": growth_tracker, "current_scale": input, "found_inf": found_inf})
    with no_grad():
        if found_inf.item():  # type: ignore[attr-defined]
            input.mul_(scale_backoff_factor)  # type: ignore[attr-defined]
            growth_tracker.fill_(0)  # type: ignore[attr-defined]
        elif growth_tracker.item() + 1 < growth_interval:  # type: ignore[attr-defined]
            growth_tracker.add_(1)  # type: ignore[attr-defined]
        else:
            grown = input * scale_growth_factor
            if _operator("isfinite")(grown):
                input.copy_(grown)  # type: ignore[attr-defined]
            growth_tracker.fill_(0)  # type: ignore[attr-defined]
    return input


for _name in (*_UNARY, *_BINARY, *_TERNARY):
    composite(method=False, bare=True)(_pointwise(_name, inplace=False))
    composite(method=False, bare=True)(_pointwise(_name, inplace=True))
