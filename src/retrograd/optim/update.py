"""How a step changes a parameter: each optimizer's rule is written once, and runs on bare arrays or on Tensors.

Note [Update rules]
A rule is a function ``rule(ops, param, grad, *state, *settings)``.  It computes with the names of `ops`, of which there
are two sets, as there are two namespaces for derivative formulas:

* `ARRAYS` (kernels/updates.py): NumPy's own ufuncs on bare arrays, with ``out=``.  No Tensor is made, no node, and no
  array of the size of the parameter: a large one is gone through in blocks, so that what a rule keeps in between stays
  in the cache.
* `TENSORS`: the operators, for whatever has to see or record them (``differentiable=True``, anomaly mode, dispatch
  traces), and for what is no plain block of float32 or float64 (bfloat16, other devices, lazy or expanded tensors).

Names that end with an underscore write to a parameter or to its state (``ops.lerp_(mean, grad, weight)``).  The others
return something new; their ``out=`` is a temporary of the rule whose memory may be used again, and only arrays do: what
is recorded may have been saved.  Complex parameters are seen as twice as many real numbers.

Settings that are numbers come to `ARRAYS` as 0-d arrays of the parameter's dtype, made once for all parameters: NumPy
takes twice as long with a Python number.  Rules therefore do not compare them or compute with them.  A setting that is
not to be used is None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count, repeat
from types import CodeType
from typing import Any, TypeVar

import numpy as np
from numpy import ndarray

from ..autograd.grad_mode import no_grad
from ..core.devices import accelerators, current_capture
from ..core.quiet import is_quiet, quietly
from ..core.state import local
from ..core.threads import threads
from ..core.version_counter import INFERENCE, version_counter
from ..core.where import user_location
from ..kernels.compiled import is_used, update
from ..kernels.updates import ARRAYS
from ..nn.parameter import Parameter
from ..ops import namespace as ops
from ..tensor import Tensor, wrap

#: Elements in a block of a large parameter: a few blocks (value, gradient, state, temporaries) fit into the cache.
#: Where blocks are shared, each thread has twice as many.
BLOCK = 1 << 15

Rule = TypeVar("Rule", bound=Callable[..., None])

_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_REAL = {np.dtype(np.complex64): _FLOAT32, np.dtype(np.complex128): _FLOAT64}


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
        return _seen(x).maximum(_seen(y)) if isinstance(y, Tensor) else _seen(x).clamp(min=y)

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
        if y.is_sparse and not isinstance(scale, Tensor):
            x.add_(y, alpha=1 if scale is None else scale)
        else:
            x.copy_(TENSORS.plus(x, y, scale))

    @staticmethod
    def mul_(x: Any, y: Any) -> None:
        x.copy_(_seen(x).mul(_seen(y)))

    @staticmethod
    def lerp_(x: Any, y: Any, weight: Any, rest: Any) -> None:
        before, y = _seen(x), _seen(y)
        x.copy_(before + (y - before) * weight if isinstance(weight, Tensor) else before.lerp(y, weight))

    @staticmethod
    def addcmul_(x: Any, a: Any, b: Any, scale: Any) -> None:
        x, a, b, to = _seen(x), _seen(a), _seen(b), x
        to.copy_(x + a * b * scale if isinstance(scale, Tensor) else x.addcmul(a, b, value=_or_one(scale)))

    @staticmethod
    def addcdiv_(x: Any, a: Any, b: Any, scale: Any) -> None:
        x, a, b, to = _seen(x), _seen(a), _seen(b), x
        to.copy_(x + a / b * scale if isinstance(scale, Tensor) else x.addcdiv(a, b, value=_or_one(scale)))

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

    @staticmethod
    def mean(x: Any, axis: int) -> Any:
        return _seen(x).mean(axis, keepdim=True)

    @staticmethod
    def rms(x: Any) -> float:
        return x.norm(2).item() / x.numel() ** 0.5 if x.numel() else math.nan


def _or_one(scale: Any) -> Any:
    return 1 if scale is None else scale


#: Rules that are compiled, for all parameters in one call: by which name.
COMPILED: dict[Callable[..., None], str] = {}


def compiled_as(name: str) -> Callable[[Rule], Rule]:
    """Declare that a rule is compiled, with the same columns and settings, in `retrograd[fast]`."""

    def declare(rule: Rule) -> Rule:
        COMPILED[rule] = name
        return rule

    return declare


class Updates:
    """Runs rules, within one call of a step: what holds for the whole call is looked at once."""

    __slots__ = ("again", "bare", "code", "instruction", "quiet", "recorded")

    def __init__(self) -> None:
        state = local.state
        self.recorded: bool = bool(state.grad_enabled)
        self.bare: bool = not state.grad_enabled and state.interceptor is None and state.mutation_guard is None
        self.quiet: bool = is_quiet()
        #: The settings of later launches of a graph that is captured, by the number of the launch.
        self.again: Callable[[int], tuple[Any, ...]] | None = None
        where = user_location(2)
        self.code: CodeType | None = None if where is None else where.code
        self.instruction: int = 0 if where is None else where.instruction

    # --------------------------------------------------------------------------------------------------------- numbers

    def number(self, value: Any) -> Any:
        """A setting to compute with: a number, or a 0-d tensor if it is to get a gradient."""
        if value.__class__ is float or value.__class__ is int:
            return value
        if isinstance(value, Tensor):
            return value.squeeze() if self.recorded and value.requires_grad else value.item()
        return float(value)

    def factor(self, value: Any) -> Any:
        """The same for one that does nothing if it is zero: None then."""
        value = self.number(value)
        return None if value == 0 else value

    def advance(self, steps: Sequence[Tensor]) -> list[float]:
        """Count a step of each parameter."""
        counts = []
        capture = current_capture() if accelerators else None
        for step in steps:
            if self._is_bare(step):
                array = step._numbers_
                if capture is not None:  # counted when the graph is launched
                    counts.append(array.item() + 1.0)
                    capture.before.append(lambda array=array: array.fill(array.item() + 1.0))
                    continue
                self._count_write(step)
                array.fill(array.item() + 1.0)
                counts.append(array.item())
                continue
            if capture is not None:  # where it cannot be read: the graph counts, and so does the host
                counts.append(float(step._memory_.place.outside(step._memory_)) + 1.0)
            with no_grad():
                step.add_(1)
            if capture is None:
                counts.append(step.item())
        return counts

    def multiply(self, number: Tensor, factor: float) -> Any:
        """Multiply a number of the state, in its own precision, and return it as `number` does."""
        if self._is_bare(number):
            self._count_write(number)
            return np.multiply(number._numbers_, factor, number._numbers_).item()
        if self.recorded and number.requires_grad:
            return number.mul_(factor).clone()
        with no_grad():
            number.mul_(factor)
        return number.item()

    def write(self, number: Tensor, value: float) -> None:
        """Set a number of the state."""
        if self._is_bare(number):
            self._count_write(number)
            number._numbers_.fill(value)
        else:
            with no_grad():
                number.fill_(value)

    def _is_bare(self, number: Tensor) -> bool:
        array = number._numbers_
        return (
            self.bare
            and array.__class__ is ndarray
            and (array.dtype is _FLOAT32 or array.dtype is _FLOAT64)
            and number._vc_ is not INFERENCE
        )

    def _count_write(self, tensor: Tensor) -> None:
        vc = tensor._vc_ or version_counter(tensor)
        vc.version += 1
        vc.operation = "step"
        vc.code, vc.instruction = self.code, self.instruction

    # ----------------------------------------------------------------------------------------------------------- rules

    def __call__(
        self, rule: Callable[..., None], settings: tuple[Any, ...], *columns: Sequence[Any] | None, whole: bool = False
    ) -> None:
        """Run `rule` on each row of (parameters, gradients, state ...): all but gradients are written to.

        A column that is None has nothing but None. `whole`: not in blocks, and the state may have shapes of its own.
        """
        bare, quiet = self.bare, self.quiet
        code, instruction = self.code, self.instruction
        dtype: Any = None
        compiled = COMPILED.get(rule) if bare and is_used() else None
        together: dict[Any, list[list[Any]]] = {}
        devices: dict[Any, list[tuple[tuple[Any, ...], list[Any]]]] = {}
        for row in zip(*[repeat(None) if column is None else column for column in columns]):
            arrays = _arrays(row, whole) if bare else None
            if arrays is None and bare and not whole and (on_device := _device_arrays(row)) is not None:
                devices.setdefault((on_device[0].place, on_device[0].dtype), []).append((row, on_device))
                continue
            if arrays is None:
                rule(TENSORS, *[as_real(tensor) for tensor in row], *self._settings(settings))
                continue
            grad = row[1]
            for tensor in row:
                if tensor is not None and tensor is not grad:
                    vc = tensor._vc_ or version_counter(tensor)
                    vc.version += 1
                    vc.operation = "step"
                    vc.code, vc.instruction = code, instruction
            first = arrays[0]
            if compiled is not None and _own_memory(arrays):
                together.setdefault(first.dtype, []).append(arrays)
                continue
            if first.dtype is not dtype:
                dtype = first.dtype
                converted = _converted(settings, dtype)
            if quiet and first.size <= BLOCK:
                rule(ARRAYS, *arrays, *converted)
            else:
                quietly(_run, rule, arrays, converted, whole)
        for dtype, rows in together.items():
            if compiled is None or not update(compiled, rows, settings):
                converted = _converted(settings, dtype)
                for arrays in rows:
                    quietly(_run, rule, arrays, converted, whole)

        for (place, _), found in devices.items():
            if place.updates(rule, [arrays for _, arrays in found], settings, self.again):
                for row, _ in found:
                    for tensor in row:
                        if tensor is not None and tensor is not row[1]:
                            self._count_write(tensor)
            else:
                for row, _ in found:
                    rule(TENSORS, *[as_real(tensor) for tensor in row], *self._settings(settings))

    def _settings(self, settings: tuple[Any, ...]) -> Sequence[Any]:
        """Settings for `TENSORS`: in a graph that is captured those that change from launch to launch are tensors."""
        capture = current_capture() if accelerators and self.again is not None else None
        if capture is None:
            return settings
        again: Any = self.again

        def told(position: int) -> Tensor:
            launches = count()
            draw = lambda: np.array(float(again(next(launches))[position]))
            return wrap(capture.place.drawn(draw, settings[position]))

        return [told(i) if value.__class__ in (int, float) else value for i, value in enumerate(settings)]

    def by_key(
        self, rule: Callable[..., None], keys: list[Any], settings_of: Callable[..., tuple[Any, ...]], *columns: Any,
        whole: bool = False,
    ) -> None:  # fmt: skip
        """Run `rule` with settings that a row's key decides: its count of steps, as a rule, mostly the same for all."""
        if keys.count(keys[0] if keys else None) == len(keys):
            if keys:
                self.again = lambda launch: settings_of(keys[0] + launch)
                self(rule, settings_of(keys[0]), *columns, whole=whole)
            return
        for i, key in enumerate(keys):
            self.again = lambda launch, key=key: settings_of(key + launch)
            self(rule, settings_of(key), *[column and [column[i]] for column in columns], whole=whole)


def _converted(settings: tuple[Any, ...], dtype: Any) -> list[Any]:
    """Settings for arrays of a dtype."""
    with np.errstate(over="ignore"):
        return [np.array(value, dtype) if value.__class__ in (float, int) else value for value in settings]


def _arrays(row: tuple[Any, ...], any_shape: bool) -> list[Any] | None:
    """The arrays of a row, for `ARRAYS`; None if it has to be `TENSORS`."""
    arrays: list[Any] = []
    first = row[0]._memory_
    dtype, shape = first.dtype, first.shape
    for tensor in row:
        if tensor is None:
            arrays.append(None)
            continue
        array = tensor._memory_
        if (
            array.__class__ is not ndarray
            or array.dtype is not dtype
            or (array.shape != shape and not any_shape)
            or (tensor.__class__ is not Parameter and tensor.__class__ is not Tensor)
            or tensor._vc_ is INFERENCE
            or (array.base is not None and not array.flags.c_contiguous and 0 in array.strides)
        ):
            return None
        arrays.append(array)
    if dtype is not _FLOAT32 and dtype is not _FLOAT64:
        if dtype not in _REAL or not shape or not _are_contiguous(arrays):
            return None
        return [array if array is None else array.view(_REAL[dtype]) for array in arrays]
    if not shape:  # whose results would be scalars of NumPy
        return [array if array is None else array.reshape(1) for array in arrays]
    return arrays


def _device_arrays(row: tuple[Any, ...]) -> list[Any] | None:
    """The arrays of a row that lie on a device, for a kernel of its own; None if it has to be `TENSORS`."""
    if getattr(row[0]._memory_, "updates", None) is None:
        return None
    arrays: list[Any] = []
    for tensor in row:
        if tensor is not None and (
            (tensor.__class__ is not Parameter and tensor.__class__ is not Tensor) or tensor._vc_ is INFERENCE
        ):
            return None
        arrays.append(None if tensor is None else tensor._memory_)
    return arrays if arrays[0].updates(arrays) else None


def _own_memory(arrays: list[Any]) -> bool:
    """Are all but the gradient memory of their own, which no other row can have, and all contiguous?"""
    for i, array in enumerate(arrays):
        if array is not None and (not array.flags.c_contiguous or (array.base is not None and i != 1)):
            return False
    return True


def _run(rule: Callable[..., None], arrays: list[Any], settings: list[Any], whole: bool) -> None:
    block_size = 2 * BLOCK * threads[0] if threads[0] > 1 and is_used() else BLOCK
    for block in [arrays] if whole or arrays[0].size <= block_size else _blocks(arrays, block_size):
        rule(ARRAYS, *block, *settings)


def lerp_weights(weight: Any) -> tuple[Any, Any]:
    """The two settings of ``lerp_``: from 1/2 on it goes back from the other end, so that 1 gives that end itself."""
    return weight, None if isinstance(weight, Tensor) or weight < 0.5 else 1 - weight


def decayed(ops: Any, param: Any, grad: Any, maximize: bool, weight_decay: Any) -> Any:
    """The direction to go against: the gradient, or its negative, and what pulls the parameter to zero."""
    if maximize:
        grad = ops.negative(grad)
    return grad if weight_decay is None else ops.plus(grad, param, weight_decay)


def decay_settings(update: Updates, weight_decay: Any, lr: Any, decoupled: bool) -> tuple[Any, Any]:
    """What is added to the gradient of each parameter's value, and what the parameter is multiplied by instead."""
    weight_decay = update.factor(weight_decay)
    if weight_decay is None or not decoupled:
        return weight_decay, None
    return None, 1 - lr * weight_decay


def unscaled(grads: list[Tensor], grad_scale: Tensor | None, found_inf: Tensor | None) -> bool:
    """What a fused step does for a gradient scaler: divide the gradients; False if the step is to be left out."""
    if found_inf is not None and found_inf.item():
        return False
    if grad_scale is not None:
        for grad in grads:
            grad.div_(grad_scale)
    return True


def _blocks(arrays: list[Any], size: int) -> list[list[Any]]:
    """The same pieces of all arrays, in order, none of much more than `size` elements."""
    if _are_contiguous(arrays):
        arrays = [array if array is None else array.reshape(-1) for array in arrays]
    first = arrays[0]
    axis = first.shape.index(max(first.shape))
    arrays = [array if array is None else array.swapaxes(0, axis) for array in arrays]
    length = arrays[0].shape[0]
    rows = max(1, size * length // first.size)
    return [
        [array if array is None else array[start : start + rows] for array in arrays]
        for start in range(0, length, rows)
    ]


def _are_contiguous(arrays: list[Any]) -> bool:
    return all(array is None or array.flags.c_contiguous for array in arrays)


def as_real(tensor: Any) -> Any:
    """A complex tensor as real numbers, two for each."""
    return ops.view_as_real(tensor) if tensor is not None and tensor.is_complex() else tensor
