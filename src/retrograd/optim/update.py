"""How a step changes a parameter: each optimizer's rule is written once, and runs on bare arrays or on Tensors.

Note [Update rules]
A rule is a function ``rule(ops, param, grad, *state, *settings)``.  It computes with the names of `ops`, of which there
are two sets, as there are two namespaces for derivative formulas:

* `ARRAYS`: NumPy's own ufuncs on bare arrays, with ``out=``.  No Tensor is made, no node, and no array of the size of
  the parameter: a large one is gone through in blocks, so that what a rule keeps in between stays in the cache.
* `TENSORS`: the operators, for whatever has to see or record them (``differentiable=True``, anomaly mode, dispatch
  traces), and for what is no plain block of float32 or float64 (bfloat16, other devices, lazy or expanded tensors).

Names that end with an underscore write to a parameter or to its state (``ops.lerp_(mean, grad, weight)``).  The others
return something new; their ``out=`` is a temporary of the rule whose memory may be used again, and only arrays do: what
is recorded may have been saved.  Complex parameters are seen as twice as many real numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from ..autograd.grad_mode import no_grad
from ..core.quiet import is_quiet, quietly
from ..core.state import local
from ..core.version_counter import INFERENCE, version_counter
from ..core.where import user_location
from ..nn.parameter import Parameter
from ..tensor import Tensor

#: Elements in a block of a large parameter: a few blocks (value, gradient, state, temporaries) fit into the cache.
BLOCK = 1 << 14

_REAL = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64)}
_FLOATS = frozenset(_REAL.values())


class ARRAYS:
    """Rules on bare arrays."""

    absolute = np.absolute
    add = np.add
    divide = np.divide
    maximum = np.maximum
    multiply = np.multiply
    negative = np.negative
    sqrt = np.sqrt
    subtract = np.subtract

    @staticmethod
    def plus(x: Any, y: Any, scale: float) -> Any:
        scaled = np.multiply(y, scale)
        return np.add(x, scaled, scaled)

    @staticmethod
    def add_(x: Any, y: Any, scale: float) -> None:
        np.add(x, np.multiply(y, scale), x)

    @staticmethod
    def mul_(x: Any, y: Any) -> None:
        np.multiply(x, y, x)

    @staticmethod
    def lerp_(x: Any, y: Any, weight: float) -> None:
        step = np.subtract(y, x)
        if weight < 0.5:
            np.add(x, np.multiply(step, weight, step), x)
        else:  # so that a weight of 1 gives y itself
            np.subtract(y, np.multiply(step, 1 - weight, step), x)

    @staticmethod
    def addcmul_(x: Any, a: Any, b: Any, scale: float) -> None:
        product = np.multiply(a, b)
        np.add(x, product if scale == 1 else np.multiply(product, scale, product), x)

    @staticmethod
    def addcdiv_(x: Any, a: Any, b: Any, scale: float) -> None:
        quotient = np.divide(a, b)
        np.add(x, np.multiply(quotient, scale, quotient), x)

    @staticmethod
    def maximum_(x: Any, y: Any) -> None:
        np.maximum(x, y, out=x)

    @staticmethod
    def clamp_(x: Any, low: float, high: float) -> None:
        np.minimum(np.maximum(x, low, out=x), high, out=x)

    @staticmethod
    def copy_(x: Any, y: Any) -> None:
        np.copyto(x, y)

    @staticmethod
    def mul_where_(x: Any, mask: Any, factor: float) -> None:
        np.multiply(x, factor, x, where=mask)

    @staticmethod
    def add_where_(x: Any, mask: Any, y: Any) -> None:
        np.add(x, y, x, where=mask)

    @staticmethod
    def sub_where_(x: Any, mask: Any, y: Any) -> None:
        np.subtract(x, y, x, where=mask)

    @staticmethod
    def zero_where_(x: Any, mask: Any) -> None:
        np.copyto(x, 0, where=mask)


def _seen(x: Any) -> Any:
    """An operand as it is now: what is recorded must not see what later steps write to it."""
    return x.clone() if local.state.grad_enabled and isinstance(x, Tensor) else x


class TENSORS:
    """Rules on Tensors."""

    @staticmethod
    def absolute(x: Any, out: Any = None) -> Any:
        return _seen(x).abs()

    @staticmethod
    def add(x: Any, y: Any, out: Any = None) -> Any:
        return _seen(x).add(_seen(y))

    @staticmethod
    def divide(x: Any, y: Any, out: Any = None) -> Any:
        return _seen(x).div(_seen(y))

    @staticmethod
    def maximum(x: Any, y: Any, out: Any = None) -> Any:
        return _seen(x).maximum(_seen(y))

    @staticmethod
    def multiply(x: Any, y: Any, out: Any = None) -> Any:
        return _seen(x).mul(_seen(y))

    @staticmethod
    def negative(x: Any, out: Any = None) -> Any:
        return _seen(x).neg()

    @staticmethod
    def sqrt(x: Any, out: Any = None) -> Any:
        return _seen(x).sqrt()

    @staticmethod
    def subtract(x: Any, y: Any, out: Any = None) -> Any:
        return _seen(x).sub(_seen(y))

    @staticmethod
    def plus(x: Any, y: Any, scale: Any) -> Any:
        return _seen(x) + _seen(y) * scale if isinstance(scale, Tensor) else _seen(x).add(_seen(y), alpha=scale)

    @staticmethod
    def add_(x: Any, y: Any, scale: Any) -> None:
        x.copy_(TENSORS.plus(x, y, scale))

    @staticmethod
    def mul_(x: Any, y: Any) -> None:
        x.copy_(_seen(x).mul(_seen(y)))

    @staticmethod
    def lerp_(x: Any, y: Any, weight: Any) -> None:
        before = _seen(x)
        x.copy_(before + (y - before) * weight if isinstance(weight, Tensor) else before.lerp(_seen(y), weight))

    @staticmethod
    def addcmul_(x: Any, a: Any, b: Any, scale: Any) -> None:
        a, b = _seen(a), _seen(b)
        x.copy_(_seen(x) + a * b * scale if isinstance(scale, Tensor) else _seen(x).addcmul(a, b, value=scale))

    @staticmethod
    def addcdiv_(x: Any, a: Any, b: Any, scale: Any) -> None:
        a, b = _seen(a), _seen(b)
        x.copy_(_seen(x) + a / b * scale if isinstance(scale, Tensor) else _seen(x).addcdiv(a, b, value=scale))

    @staticmethod
    def maximum_(x: Any, y: Any) -> None:
        x.copy_(_seen(x).maximum(_seen(y)))

    @staticmethod
    def clamp_(x: Any, low: float, high: float) -> None:
        x.copy_(_seen(x).clamp(low, high))

    @staticmethod
    def copy_(x: Any, y: Any) -> None:
        x.copy_(_seen(y))

    @staticmethod
    def mul_where_(x: Any, mask: Any, factor: float) -> None:
        before = _seen(x)
        x.copy_((before * factor).where(mask, before))

    @staticmethod
    def add_where_(x: Any, mask: Any, y: Any) -> None:
        before = _seen(x)
        x.copy_((before + _seen(y)).where(mask, before))

    @staticmethod
    def sub_where_(x: Any, mask: Any, y: Any) -> None:
        before = _seen(x)
        x.copy_((before - _seen(y)).where(mask, before))

    @staticmethod
    def zero_where_(x: Any, mask: Any) -> None:
        x.copy_(_seen(x).masked_fill(mask, 0))


class Updates:
    """Runs rules, within one call of a step: what holds for the whole call is looked at once."""

    __slots__ = ("bare", "code", "instruction", "quiet", "recorded")

    def __init__(self) -> None:
        state = local.state
        self.recorded = bool(state.grad_enabled)
        self.bare = not state.grad_enabled and state.interceptor is None and state.mutation_guard is None
        self.quiet = is_quiet()
        where = user_location(2)
        self.code: CodeType | None = None if where is None else where.code
        self.instruction = 0 if where is None else where.instruction

    def number(self, value: Any) -> Any:
        """A setting to compute with: a number, or a 0-d tensor if it is to get a gradient."""
        if isinstance(value, Tensor):
            return value.squeeze() if self.recorded and value.requires_grad else value.item()
        return value if value.__class__ is float or value.__class__ is int else float(value)

    def advance(self, step: Tensor) -> float:
        """Count a step of a parameter."""
        if self._is_bare(step):
            self._count_write(step)
            array = step._data
            array.fill(array.item() + 1.0)
            return array.item()
        with no_grad():
            step.add_(1)
        return step.item()

    def _is_bare(self, number: Tensor) -> bool:
        array = number._data
        return self.bare and array.__class__ is np.ndarray and array.dtype in _FLOATS and number._vc is not INFERENCE

    def multiply(self, number: Tensor, factor: float) -> float:
        """Multiply a number of the state, in its own precision."""
        with no_grad():
            number.mul_(factor)
        return number.item()

    def write(self, number: Tensor, value: float) -> None:
        """Set a number of the state."""
        if self._is_bare(number):
            self._count_write(number)
            number._data.fill(value)
        else:
            with no_grad():
                number.fill_(value)

    def __call__(self, rule: Callable[..., None], tensors: tuple[Tensor | None, ...], *settings: Any) -> None:
        """Run `rule` on (parameter, gradient, state ...): all but the gradient is written to. None: no such state."""
        arrays = self._arrays(tensors) if self.bare else None
        if arrays is None:
            rule(TENSORS, *[as_real(tensor) for tensor in tensors], *settings)
            return
        for tensor in (tensors[0], *tensors[2:]):
            if tensor is not None:
                self._count_write(tensor)
        if arrays[0].size > BLOCK:
            for block in _blocks(arrays):
                self._run(rule, block, settings)
        else:
            self._run(rule, arrays, settings)

    def _run(self, rule: Callable[..., None], arrays: list[Any], settings: tuple[Any, ...]) -> None:
        if self.quiet:
            rule(ARRAYS, *arrays, *settings)
        else:
            quietly(rule, ARRAYS, *arrays, *settings)

    def _count_write(self, tensor: Tensor) -> None:
        vc = tensor._vc or version_counter(tensor)
        vc.version += 1
        vc.operation = "step"
        vc.code, vc.instruction = self.code, self.instruction

    def _arrays(self, tensors: tuple[Tensor | None, ...]) -> list[Any] | None:
        """The tensors' arrays, for `ARRAYS`; None if it has to be `TENSORS`."""
        param: Any = tensors[0]
        first = param._data
        if first.__class__ is not np.ndarray:
            return None
        dtype, shape = first.dtype, first.shape
        if dtype not in _FLOATS and dtype not in _REAL:
            return None
        arrays: list[Any] = []
        for tensor in tensors:
            if tensor is None:
                arrays.append(None)
                continue
            array = tensor._data
            if array.__class__ is not np.ndarray or array.dtype is not dtype or array.shape != shape:
                return None
            if tensor is not tensors[1] and (
                tensor.__class__ not in (Tensor, Parameter)
                or tensor._vc is INFERENCE
                or (not array.flags.c_contiguous and 0 in array.strides)
            ):
                return None
            arrays.append(array)
        if dtype in _REAL:
            if not shape or not all(array is None or array.flags.c_contiguous for array in arrays):
                return None
            return [array if array is None else array.view(_REAL[dtype]) for array in arrays]
        if not shape:  # whose results would be scalars of NumPy
            return [array if array is None else array.reshape(1) for array in arrays]
        return arrays


def decayed(ops: Any, param: Any, grad: Any, maximize: bool, weight_decay: Any) -> Any:
    """The direction to go against: the gradient, or its negative, and what pulls the parameter to zero."""
    if maximize:
        grad = ops.negative(grad)
    return grad if weight_decay == 0 else ops.plus(grad, param, weight_decay)


def unscaled(grads: list[Tensor], grad_scale: Tensor | None, found_inf: Tensor | None) -> bool:
    """What a fused step does for a gradient scaler: divide the gradients; False if the step is to be left out."""
    if found_inf is not None and found_inf.item():
        return False
    if grad_scale is not None:
        for grad in grads:
            grad.div_(grad_scale)
    return True


def _blocks(arrays: list[Any]) -> list[list[Any]]:
    """The same pieces of all arrays, in order, none of much more than BLOCK elements."""
    if all(array is None or array.flags.c_contiguous for array in arrays):
        arrays = [array if array is None else array.reshape(-1) for array in arrays]
    first = arrays[0]
    axis = first.shape.index(max(first.shape))
    arrays = [array if array is None else array.swapaxes(0, axis) for array in arrays]
    length = arrays[0].shape[0]
    rows = max(1, BLOCK * length // first.size)
    return [
        [array if array is None else array[start : start + rows] for array in arrays]
        for start in range(0, length, rows)
    ]


def as_real(tensor: Any) -> Any:
    """A complex tensor as real numbers, two for each."""
    from ..ops import namespace as ops

    return ops.view_as_real(tensor) if tensor is not None and tensor.is_complex() else tensor
