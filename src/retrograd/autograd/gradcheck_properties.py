"""What gradcheck.py checks besides Jacobians: batches, zeros, undefined gradients and tangents.

Each function raises GradcheckError, which says what to change or how to leave the check out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..core.late import operators as ops
from ..core.late import transforms
from ..core.layout import strided
from ..tensor import Tensor, wrap
from .basic_nodes import UndefinedGrad
from .gradcheck_jacobians import as_tuple, by_class, push, steps_of, to_array, varies
from .run_backward import grad


class GradcheckError(RuntimeError):
    """A derivative is not what it should be."""

    __module__ = "retrograd.autograd.gradcheck"


@dataclass
class Check:
    """One call of gradcheck: the function, and how it is to be judged."""

    func: Callable[..., Any]
    inputs: tuple[Any, ...]
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_grad_dtypes: bool
    fast_mode: bool

    def __post_init__(self) -> None:
        #: Where the inputs are that derivatives are checked for.
        self.wanted: list[int] = [
            i for i, x in enumerate(self.inputs) if isinstance(x, Tensor) and x.requires_grad and varies(x)
        ]

    @property
    def tensors(self) -> list[Tensor]:
        return [self.inputs[i] for i in self.wanted]

    def close(self, analytical: Any, numerical: Any, atol: float | None = None) -> bool:
        atol = self.atol if atol is None else atol
        return bool(np.allclose(analytical, numerical, rtol=self.rtol, atol=atol))


def differentiable(outputs: tuple[Any, ...]) -> list[Tensor]:
    for output in outputs:
        if not isinstance(output, Tensor):
            raise TypeError(f"gradcheck: the function must return Tensors, but returned a {type(output).__name__}")
        if output._special_ is not None and output.layout is not strided:
            raise ValueError(
                "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output "
                "of fn for gradcheck."
            )
    return [output for output in outputs if output.requires_grad]


def random_seed() -> int:
    """From the package's generator, so that `manual_seed` makes a check repeatable."""
    return int(ops.randint(0, 2**31 - 1, (1,)).item())


def shown(jacobian: Any) -> str:
    array = np.asarray(jacobian)
    return str(array[()]) if array.ndim == 0 else repr(wrap(array))


# ------------------------------------------------------------------------------------------------------------- batches


def check_batched(check: Check, outputs: list[Tensor]) -> None:
    """A batch of two gradients gives what each of them gives."""
    if any(x._special_ is not None and not by_class(x) for x in check.tensors):
        raise GradcheckError(
            "gradcheck or gradgradcheck failed while testing batched gradient computation: there are no batches of "
            "sparse gradients. To adjust the test, use check_batched_grad=False."
        )
    for number, output in enumerate(outputs):
        vectors = [ops.randn_like(output) for _ in range(2)]
        try:
            stacked = [ops.stack(vectors)]
            batched = grad(
                [output], check.tensors, stacked, retain_graph=True, allow_unused=True, is_grads_batched=True
            )
        except RuntimeError as error:
            raise GradcheckError(
                "While computing batched gradients, got: "
                f"{error}\n\ngradcheck or gradgradcheck failed while testing batched gradient computation. To "
                "adjust the test, use check_batched_grad=False."
            ) from error
        single = [grad([output], check.tensors, [v], retain_graph=True, allow_unused=True) for v in vectors]
        for position, (together, *apart) in enumerate(zip(batched, *single, strict=True)):
            if together is None:
                continue
            rows = np.stack([to_array(one) for one in apart])
            if not np.allclose(to_array(together), rows, rtol=check.rtol, atol=check.atol):
                raise GradcheckError(
                    "gradcheck or gradgradcheck failed while testing batched gradient computation: for output "
                    f"{number} and input {position}, got\n{shown(to_array(together))}\nfor the batch "
                    f"and\n{shown(rows)}\nfor its rows one by one. To adjust the test, use check_batched_grad=False."
                )


def check_batched_forward(check: Check) -> None:
    """A batch of two directions gives what each of them gives."""
    rng = np.random.default_rng(random_seed())
    failed = "gradcheck failed while testing batched forward-mode gradient computation"
    for position in check.wanted:
        steps = [_random_step(rng, check.inputs[position]) for _ in range(2)]
        try:
            run = partial(_pushed_at_once, check, position)
            columns = transforms("batched").batched_pass(2, [wrap(np.stack(steps))], run, keeps_primals=True)
            batched = [[to_array(column[i]) for column in columns] for i in range(2)]
        except RuntimeError as error:
            raise GradcheckError(
                f"While computing batched gradients, got: {error}\n\n{failed}. To adjust the test, use "
                "check_batched_forward_grad=False."
            ) from error
        single = [_pushed(check, position, step) for step in steps]
        for together, apart in zip(batched, single, strict=True):
            pairs = zip(together, apart, strict=True)
            if not all(np.allclose(a, b, rtol=check.rtol, atol=check.atol, equal_nan=True) for a, b in pairs):
                raise GradcheckError(
                    f"{failed} for input {position}. To adjust the test, use check_batched_forward_grad=False."
                )


def _pushed_at_once(check: Check, position: int, rows: tuple[Tensor, ...]) -> list[Tensor]:
    """The same for a batch of directions."""
    pairs = push(check.func, check.inputs, {position: rows[0]})
    return [wrap(np.zeros(())) if tangent is None else tangent for _, tangent in pairs]


def _pushed(check: Check, position: int, step: np.ndarray) -> list[np.ndarray]:
    """The tangents of the outputs as one input moves; 0 for those that have none."""
    pairs = push(check.func, check.inputs, {position: step})
    return [np.zeros(()) if tangent is None else to_array(tangent) for _, tangent in pairs]


def _random_step(rng: np.random.Generator, x: Tensor) -> np.ndarray:
    step = rng.standard_normal(tuple(x.shape))
    if x.is_complex():
        step = step + 1j * rng.standard_normal(tuple(x.shape))
    return np.asarray(step).astype(x._memory_.dtype)


def check_zero_gradient(check: Check, outputs: list[Tensor]) -> None:
    """A gradient of zeros gives gradients of zeros, of the kind of their inputs."""
    if not outputs:
        return
    vectors = [ops.zeros_like(output) for output in outputs]
    found = grad(outputs, check.tensors, vectors, retain_graph=True, allow_unused=True)
    for gradient, x in zip(found, check.tensors, strict=True):
        if gradient is None:
            continue
        for what in ("layout", "dtype", "device"):
            if what == "layout" and gradient.layout is strided:
                continue  # as any tensor's gradient may be
            if getattr(gradient, what) != getattr(x, what):
                name = "type" if what == "dtype" else what
                raise GradcheckError(
                    f"grad is incorrect {name}: {getattr(gradient, what)}, expected {getattr(x, what)}"
                )
        if gradient.size() != x.size():
            raise GradcheckError("grad is incorrect size")
        if gradient.layout is not strided:
            for what in ("sparse_dim", "dense_dim"):
                got, expected = (getattr(one, what)() for one in (gradient, x))
                if got != expected:
                    kind = gradient.layout.name.replace("_coo", "")
                    raise GradcheckError(f"grad is {kind} tensor, but has incorrect {what} {got}, expected {expected}")
        if np.any(to_array(gradient) != 0):
            raise GradcheckError("backward not multiplied by grad_output")


_UNDEFINED = (
    "A formula has to take undefined gradients for zeros (for a custom Function: "
    "ctx.set_materialize_grads(True), or test for None). To adjust the test, use check_undefined_grad=False."
)


def check_undefined_backward(check: Check) -> None:
    """Undefined gradients, of all outputs or of some, give undefined gradients or zeros."""
    outputs = differentiable(as_tuple(check.func(*check.inputs)))
    if not outputs:
        return
    choices = [list(range(len(outputs)))]
    if len(outputs) > 1:
        choices += [[i] for i in range(len(outputs))]
    for undefined in choices:
        outputs = differentiable(as_tuple(check.func(*check.inputs)))
        zeros = [UndefinedGrad()(o) if i in undefined else o for i, o in enumerate(outputs)]
        vectors = [o.new_zeros(o.shape) for o in outputs]
        try:
            found = grad(zeros, check.tensors, vectors, allow_unused=True)
        except RuntimeError as error:
            _warn_of_undefined()
            raise GradcheckError(
                f"Expected backward function to handle undefined output grads, but it raised: {error}. {_UNDEFINED}"
            ) from error
        for gradient in found:
            if gradient is not None and np.any(to_array(gradient) != 0):
                _warn_of_undefined()
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero. "
                    + _UNDEFINED
                )


def _warn_of_undefined() -> None:
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it "
        "may break existing callers of this function. If this is true for you, you can call this function with "
        '"check_undefined_grad=False" to disable the feature',
        stacklevel=4,
    )


def check_undefined_forward(check: Check) -> None:
    """An input without a tangent counts as one with a tangent of zeros."""
    rng = np.random.default_rng(random_seed())
    for position in check.wanted:
        if len(check.wanted) == 1:
            # There is no other input: no variation, then.
            step = np.zeros(tuple(check.inputs[position].shape), check.inputs[position]._memory_.dtype)
            for _, tangent in push(check.func, check.inputs, {position: step}):
                if tangent is not None and np.any(to_array(tangent) != 0):
                    raise GradcheckError(
                        "Expected all tangents to be undefined or zero where those of all inputs are zero"
                    )
            continue
        step = _random_step(rng, check.inputs[position])
        defined = push(check.func, check.inputs, steps_of(check.inputs, check.wanted, position, step))
        undefined = push(check.func, check.inputs, {position: step})
        for number, ((primal, one), (_, other)) in enumerate(zip(defined, undefined, strict=True)):
            if not isinstance(primal, Tensor):
                continue
            zeros = np.zeros(tuple(primal.shape))
            values = [zeros if t is None else to_array(t) for t in (one, other)]
            if not np.allclose(values[0], values[1], rtol=check.rtol, atol=check.atol, equal_nan=True):
                raise GradcheckError(
                    "Expected tangents of zeros and undefined tangents to be treated alike: the tangent of output "
                    f"{number} is\n{shown(values[0])}\nas input {position} varies and the others have tangents of "
                    f"zeros, and\n{shown(values[1])}\nas they have none"
                )
