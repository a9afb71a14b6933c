"""gradcheck: are the derivatives of a function what finite differences say they are?

`gradcheck` compares the Jacobian that backward passes (and, if asked, forward mode) compute with central differences,
element by element, or in fast mode along one random direction; and it checks what else an operator has to get right:
gradients of the right dtype, the same ones when asked twice, zeros for zeros, and undefined gradients.  `gradgradcheck`
does the same for the gradient as a function of inputs and incoming gradients.

gradcheck_jacobians.py computes, gradcheck_properties.py checks what is not about Jacobians; this file compares and
reports.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.dtypes import float64
from ..core.late import extension
from ..core.late import operators as ops
from ..tensor import Tensor, wrap
from .gradcheck_jacobians import (
    REAL,
    Analytical,
    Numerical,
    as_gradient,
    as_tuple,
    by_class,
    directions,
    forward_jacobians,
    moved_array,
    moved_elements,
    same_values,
    tangents,
    to_array,
    varies,
    vector_products,
)
from .gradcheck_properties import (
    Check,
    GradcheckError,
    check_batched,
    check_batched_forward,
    check_undefined_backward,
    check_undefined_forward,
    check_zero_gradient,
    differentiable,
    shown,
)
from .run_backward import grad

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
]


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of `func` for those of `inputs` that require grad with finite differences.

    `eps` is the step, `atol` and `rtol` how far both may be apart (the defaults are for float64), `nondet_tol` how far
    two backward passes may be.  `check_forward_ad`, `check_backward_ad`: which modes are checked;
    `check_undefined_grad`: undefined gradients and tangents count as zeros; `check_grad_dtypes`: gradients have the
    dtype of their input; `check_batched_grad`, `check_batched_forward_grad`: a batch of vectors gives what its rows
    give one by one; `fast_mode`: along one random direction only.  Of a sparse input, all elements vary, as many as it
    has room for, unless it is `masked`: then those vary that it has values for.

    Returns True, or raises GradcheckError (returns False, without `raise_exception`).

    >>> import retrograd as torch
    >>> x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(lambda x: x.exp() * x, x, check_forward_ad=True)
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    inputs = as_tuple(inputs)
    if not masked:
        inputs = tuple(_with_all_elements(x) for x in inputs)
    check = Check(func, inputs, eps, atol, rtol, nondet_tol, check_grad_dtypes, fast_mode)
    _check_inputs(check)
    try:
        _run(check, check_backward_ad, check_forward_ad, check_undefined_grad)
        if check_batched_forward_grad:
            check_batched_forward(check)
        if check_backward_ad:
            outputs = differentiable(as_tuple(func(*inputs)))
            if check_batched_grad:
                check_batched(check, outputs)
            check_zero_gradient(check, outputs)
            if check_undefined_grad:
                check_undefined_backward(check)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """`gradcheck` of the gradient of `func`, as a function of `inputs` and `grad_outputs` (random ones, if not given).

    `check_rev_over_rev` and `check_fwd_over_rev`: which mode differentiates it; `gen_non_contig_grad_outputs`: let the
    random `grad_outputs` be spread out in memory.

    >>> import retrograd as torch
    >>> x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradgradcheck(lambda x: x.exp() * x, x, check_fwd_over_rev=True)
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_batched_grad=True requires check_rev_over_rev to be True")
    inputs = as_tuple(inputs)
    wanted = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if grad_outputs is None:
        outputs = differentiable(as_tuple(func(*inputs)))
        grad_outputs = tuple(_random_like(output, gen_non_contig_grad_outputs) for output in outputs)
    else:
        grad_outputs = as_tuple(grad_outputs)
    number = len(grad_outputs)

    def gradient(*args: Any) -> tuple[Tensor, ...]:
        given, vectors = list(args[: len(args) - number]), args[len(args) - number :]
        for i in wanted:
            if not given[i].requires_grad:  # forward mode hands in tensors that do not
                given[i] = given[i].requires_grad_()
        outputs = differentiable(as_tuple(func(*given)))
        found = grad(outputs, [given[i] for i in wanted], vectors, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradient,
        (*inputs, *grad_outputs),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _random_like(output: Tensor, spread: bool) -> Tensor:
    result = ops.randn_like(output)
    if spread:
        # Every other element of twice the memory.
        wide = np.zeros((*output.shape, 2), output._memory_.dtype)
        wide[..., 0] = to_array(result)
        result = wrap(wide).select(-1, 0).to(output.device)  # type: ignore[attr-defined]
    return result.detach().requires_grad_()


def _with_all_elements(x: Any) -> Any:
    """A sparse tensor with a value for every element."""
    if not isinstance(x, Tensor) or x._special_ is None or not x.requires_grad or by_class(x):
        return x
    array: Any = x._memory_
    ones = wrap(np.ones(array.shape, bool))
    mask: Any = (
        ones.to_sparse(array.sparse_dim)  # type: ignore[attr-defined]
        if x.is_sparse
        else ones.to_sparse(  # type: ignore[attr-defined]
            layout=x.layout, blocksize=array.blocksize if array.blocks else None, dense_dim=array.dense_dim
        )
    )
    return x.detach().to_dense().sparse_mask(mask).requires_grad_()  # type: ignore[attr-defined]


# --------------------------------------------------------------------------------------------------- what is looked at


def _check_inputs(check: Check) -> None:
    tensors = [x for x in check.inputs if isinstance(x, Tensor)]
    if not any(x.requires_grad for x in tensors):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for position, x in enumerate(check.inputs):
        if not isinstance(x, Tensor) or not x.requires_grad:
            continue
        if x.dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"Input #{position} requires gradient and is not a double precision floating point or complex. This "
                "check will likely fail if all the inputs are not of double precision floating point or complex.",
                stacklevel=3,
            )
        if x._special_ is None and any(step == 0 and n > 1 for step, n in zip(x.stride(), x.shape, strict=True)):
            raise RuntimeError(
                f"The {position}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                "on the input before passing it to gradcheck."
            )


def _parts(output: Tensor) -> list[tuple[str, Callable]]:
    """The real functions that an output consists of, and how a message names them."""
    if not output.is_complex():
        return [("", np.real)]
    name = "While considering the {} part of complex outputs only, "
    return [(name.format("imaginary"), np.imag), (name.format("real"), np.real)]


def _run(check: Check, backward: bool, forward: bool, undefined: bool) -> None:
    outputs = as_tuple(check.func(*check.inputs))
    differentiable(outputs)
    varying = [i for i, output in enumerate(outputs) if varies(output)]
    which = [i for i in varying if outputs[i].requires_grad]
    if not which:
        numerical = Numerical(check.func, check.inputs, varying, check.eps)
        for position in check.wanted:
            for along in numerical.jacobians(position).values():
                if not all(check.close(jacobian, 0.0, atol=0.0) for jacobian in along):
                    raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    compare = _Fast if check.fast_mode else _Slow
    comparison = compare(check, outputs, which)
    if backward:
        comparison.backward()
    if forward:
        comparison.forward()
        if undefined:
            check_undefined_forward(check)


# ------------------------------------------------------------------------------------------------------------ slow mode


class _Slow:
    """Every element of every Jacobian."""

    def __init__(self, check: Check, outputs: tuple, which: list[int]) -> None:
        self.check = check
        self.outputs = outputs
        self.which = which
        numerical = Numerical(check.func, check.inputs, which, check.eps)
        #: For each wanted input, for each direction, a Jacobian an output.
        self.numerical = [numerical.jacobians(position) for position in check.wanted]

    def backward(self) -> None:
        for place, number in enumerate(self.which):
            for prefix, part in _parts(self.outputs[number]):
                jacobians = _analytical(self.check, self.outputs[number], part)
                for k, position in enumerate(self.check.wanted):
                    expected = as_gradient({d: js[place] for d, js in self.numerical[k].items()}, part)
                    if not self.check.close(jacobians[k], expected):
                        text = _mismatch(jacobians[k], expected, number, position)
                        raise GradcheckError(prefix + text)

    def forward(self) -> None:
        check = self.check
        for k, position in enumerate(check.wanted):
            found = forward_jacobians(check.func, check.inputs, check.wanted, position, self.which)
            for direction, jacobians in reversed(found.items()):  # imaginary first, as torch
                for place, number in enumerate(self.which):
                    expected = self.numerical[k][direction][place]
                    if not check.close(jacobians[place], expected):
                        prefix = _input_prefix(check.inputs[position], direction)
                        raise GradcheckError(prefix + _mismatch(jacobians[place], expected, number, position, True))


def _analytical(check: Check, output: Tensor, part: Callable) -> list[np.ndarray]:
    """The Jacobians of one real part of an output, with all that can be wrong about them."""
    if output.is_complex():
        output = output.real if part is np.real else output.imag  # type: ignore[attr-defined]
    analytical = Analytical(output, check.tensors, check.nondet_tol)
    if check.check_grad_dtypes and not analytical.dtypes_match:
        raise GradcheckError("Gradient has dtype mismatch")
    if not analytical.sizes_match:
        raise GradcheckError("Analytical gradient has incorrect size")
    if not analytical.reentrant:
        raise GradcheckError(_not_reentrant(check))
    return analytical.jacobians


def _not_reentrant(check: Check) -> str:
    return (
        "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
        "different values, although analytical gradient matches numerical gradient. The tolerance for nondeterminism "
        f"was {check.nondet_tol}.\n"
        "If the function is meant to be random or to add up in no fixed order, call gradcheck or gradgradcheck with "
        "nondet_tol=<how far two passes may be apart>."
    )


# ------------------------------------------------------------------------------------------------------------ fast mode


class _Fast:
    """The Jacobians between one random vector `u` an input and one `v` an output: v J u, a number each."""

    def __init__(self, check: Check, outputs: tuple, which: list[int]) -> None:
        self.check = check
        self.outputs = outputs
        self.which = which
        # Not the user's: a function that draws from that one would draw something else from here on.
        rng = extension("random_factories").Generator()
        self.u = [{d: _unit(rng, x.numel()) for d in directions(x)} for x in check.tensors]
        self.v = [_unit(rng, outputs[number].numel()) for number in which]
        numerical = Numerical(check.func, check.inputs, which, check.eps)
        #: For each wanted input, for each direction, J u of each output.
        self.numerical = [
            {d: numerical.along(position, self._step(k, d)) for d in self.u[k]}
            for k, position in enumerate(check.wanted)
        ]

    def _step(self, k: int, direction: complex) -> np.ndarray:
        x = self.check.tensors[k]
        step = self.u[k][direction] * (direction if x.is_complex() else 1)
        moved = np.asarray(step)[moved_elements(x)]
        return moved.reshape(moved_array(x).shape).astype(x._memory_.dtype)

    def _atol(self, k: int, v: np.ndarray) -> float:
        # Each element of a Jacobian may be off by atol.
        spread = sum(float(np.sum(u)) for u in self.u[k].values())
        return self.check.atol * float(np.sum(v)) * spread

    def backward(self) -> None:
        check = self.check
        for place, number in enumerate(self.which):
            for prefix, part in _parts(self.outputs[number]):
                output = self.outputs[number]
                if output.is_complex():
                    output = output.real if part is np.real else output.imag
                products = vector_products(output, check.tensors, self.v[place])
                again = vector_products(output, check.tensors, self.v[place])
                for k, position in enumerate(check.wanted):
                    x = check.tensors[k]
                    if not same_values(products[k], again[k], check.nondet_tol):
                        raise GradcheckError(_not_reentrant(check))
                    if check.check_grad_dtypes and products[k].dtype != x._memory_.dtype:
                        raise GradcheckError("Gradient has dtype mismatch")
                    along = {d: np.sum(self.v[place] * part(js[place])) for d, js in self.numerical[k].items()}
                    expected = as_gradient(along, np.real)
                    found = as_gradient(
                        {d: np.sum(u * _component(products[k], d)) for d, u in self.u[k].items()}, np.real
                    )
                    if not check.close(found, expected, self._atol(k, self.v[place])):
                        raise GradcheckError(prefix + self._report(found, expected, number, position, part))

    def forward(self) -> None:
        check = self.check
        for k, position in enumerate(check.wanted):
            for direction in reversed(self.u[k]):
                step = self._step(k, direction)
                found = tangents(check.func, check.inputs, check.wanted, position, step, self.which)
                for place, number in enumerate(self.which):
                    # Forward mode gives the whole of J u, so it is compared element by element.
                    one, other = found[place], self.numerical[k][direction][place]
                    if not check.close(one, other, self._atol(k, np.ones(1))):
                        prefix = _input_prefix(check.inputs[position], direction)
                        raise GradcheckError(prefix + self._report(one, other, number, position, None, direction))

    def _report(
        self, found: Any, expected: Any, number: int, position: int, part: Callable | None, direction: complex = REAL
    ) -> str:
        """The mismatch, and what slow mode says about it."""
        check, place, k = self.check, self.which.index(number), self.check.wanted.index(position)
        numerical = Numerical(check.func, check.inputs, self.which, check.eps).jacobians(position)
        if part is None:
            jacobian = forward_jacobians(check.func, check.inputs, check.wanted, position, self.which)[direction][place]
            reference = numerical[direction][place]
        else:
            output = self.outputs[number]
            if output.is_complex():
                output = output.real if part is np.real else output.imag
            jacobian = Analytical(output, check.tensors, np.inf).jacobians[k]
            reference = as_gradient({d: js[place] for d, js in numerical.items()}, part)
        text = _mismatch(found, expected, number, position, part is None)
        text += (
            "\nThe above quantities relating the numerical and analytical jacobians are computed in fast mode, between "
            "one random vector each. Below, we recompute numerical and analytical jacobians in slow mode:\n\n"
            f"Numerical:\n {shown(reference)}\nAnalytical:\n{shown(jacobian)}\n\n"
            f"The max per-element difference (slow mode) is: {_largest(jacobian, reference)}.\n"
        )
        if check.close(jacobian, reference):
            text += (
                "Fast gradcheck failed but element-wise differences are small. This means that the test might've "
                "passed in slow mode: use gradcheck(..., fast_mode=False), or a larger atol.\n"
            )
        return text


def _unit(rng: Any, size: int) -> np.ndarray:
    """A random vector of length one, all of it positive; what is one number is not multiplied by anything."""
    if size <= 1:
        return np.ones(size)
    drawn = ops.rand(size, dtype=float64, generator=rng)._numbers_
    return drawn / np.sqrt(np.sum(drawn * drawn))


def _component(gradient: np.ndarray, direction: complex) -> np.ndarray:
    return np.real(gradient) if direction == REAL else np.imag(gradient)


# -------------------------------------------------------------------------------------------------------------- reports


def _input_prefix(x: Tensor, direction: complex) -> str:
    if not x.is_complex():
        return ""
    return f"While considering the {'real' if direction == REAL else 'imaginary'} part of complex inputs only, "


def _largest(analytical: Any, numerical: Any) -> float:
    difference = np.abs(np.asarray(analytical) - np.asarray(numerical))
    return float(np.max(difference)) if difference.size else 0.0


def _mismatch(analytical: Any, numerical: Any, output: int, position: int, forward: bool = False) -> str:
    """The two Jacobians, and where they are farthest apart."""
    mode = "computed with forward mode " if forward else ""
    text = (
        f"Jacobian {mode}mismatch for output {output} with respect to input {position},\n"
        f"numerical:{shown(numerical)}\nanalytical:{shown(analytical)}\n"
    )
    analytical, numerical = np.asarray(analytical), np.asarray(numerical)
    if analytical.ndim == 2 and analytical.size and analytical.shape == numerical.shape:
        difference = np.abs(analytical - numerical)
        row, column = np.unravel_index(int(np.argmax(np.nan_to_num(difference, nan=np.inf))), difference.shape)
        text += (
            f"The largest difference is {difference[row, column]:.3g}, between element {row} of the input and element "
            f"{column} of the output: numerical {numerical[row, column]:.6g}, analytical "
            f"{analytical[row, column]:.6g}.\n"
        )
    return text


# ------------------------------------------------------------------------------------------- older names, which warn


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be "
        "removed in a future version of PyTorch. Use torch.autograd.functional.jacobian.",
        FutureWarning,
        stacklevel=3,
    )


def get_numerical_jacobian(
    fn: Callable, inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[Tensor, ...]:
    """The Jacobians of the first output of ``fn(inputs)`` for those of `inputs` (or `target`) that require grad."""
    _deprecated("get_numerical_jacobian")
    if grad_out != 1.0:
        raise ValueError(
            "Expected grad_out to be 1.0, get_numerical_jacobian no longer supports values of grad_out != 1.0."
        )
    inputs = as_tuple(inputs)
    targets = inputs if target is None else as_tuple(target)
    found = []
    for position, x in enumerate(inputs):
        if any(x is t for t in targets) and isinstance(x, Tensor) and x.requires_grad:
            found.append(_first_jacobian(lambda *given: fn(given), position, inputs, eps))
    return tuple(found)


def _first_jacobian(func: Callable, position: int, inputs: tuple, eps: float) -> Tensor:
    along = Numerical(func, inputs, (0,), eps).jacobians(position)
    return wrap(as_gradient({d: js[0] for d, js in along.items()}, lambda j: j))


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable,
    input_idx: int,
    inputs: Any,
    outputs: Any,
    eps: float,
    input: Any = None,
    is_forward_ad: bool = False,
) -> tuple[Tensor, ...]:
    """The Jacobian of each output of ``fn(*inputs)`` for one input.

    >>> import retrograd as torch
    >>> from retrograd.autograd.gradcheck import get_numerical_jacobian_wrt_specific_input
    >>> x = torch.tensor([1., 2.], dtype=torch.float64)
    >>> jacobian, = get_numerical_jacobian_wrt_specific_input(lambda x: 3 * x, 0, (x,), (x,), 1e-6)
    >>> jacobian
    tensor([[3.0000, 0.0000],
            [0.0000, 3.0000]], dtype=torch.float64)
    """
    inputs, outputs = as_tuple(inputs), as_tuple(outputs)
    along = Numerical(fn, inputs, range(len(outputs)), eps).jacobians(input_idx)
    if is_forward_ad:
        return tuple(wrap(jacobian) for jacobian in along[REAL])
    return tuple(wrap(as_gradient({d: js[i] for d, js in along.items()}, lambda j: j)) for i in range(len(outputs)))


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """The Jacobians of `output`; does backward give the same twice, and gradients of the right sizes and dtypes?"""
    if grad_out != 1.0:
        raise ValueError(
            "Expected grad_out to be 1.0, get_analytical_jacobian no longer supports values of grad_out != 1.0."
        )
    if output.is_complex():
        raise ValueError(
            "Expected output to be non-complex. get_analytical_jacobian no longer supports functions that return "
            "complex outputs."
        )
    _deprecated("get_analytical_jacobian")
    tensors = [x for x in as_tuple(inputs) if isinstance(x, Tensor) and x.requires_grad]
    found = Analytical(output, tensors, nondet_tol)
    jacobians = tuple(wrap(jacobian) for jacobian in found.jacobians)
    return jacobians, found.reentrant, found.sizes_match, found.dtypes_match
