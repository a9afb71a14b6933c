"""Every operator of the sample database through its forward formula.

The tangent of a result is compared with a central difference along the same direction and, marked `parity`, with
torch's forward mode.  Formulas are differentiable operators themselves: the second-order test compares forward over
reverse, reverse over forward and forward over forward with reverse over reverse, which test_operators.py has checked by
differences.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import retrograd
import retrograd.autograd.forward_ad as fwAD
from operator_runs import (
    DIFFERENTIABLE,
    SMALL,
    SMOOTH,
    WITH_INPLACE,
    close,
    flat,
    is_tensor,
    needs_torch,
    rounding,
    to_numpy,
)
from reference import FIRST_ORDER, STEP, random_cotangent
from retrograd.autograd.intercept import observing
from samples import OPS, Op, Sample
from samples.spec import laid_out

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning")]

#: Samples on which torch's tangent is not the one that its own gradient, or a difference, says.
NOT_TORCHS: dict[tuple[str, str], str] = {
    ("view_copy, options", "not contiguous"): "refused",
    ("maximum", "nan"): "at a NaN the tangent of `other`; the gradient goes to both",
    ("minimum", "nan"): "at a NaN the tangent of `other`; the gradient goes to both",
    ("clamp", "at tensor bounds"): "varies with a NaN; the gradient of a NaN is 0",
    ("pow", "complex128 and float64"): "wrong by the difference quotient: complex self, real exponent",
    ("pow", "float64 and complex128"): "wrong by the difference quotient: real self, complex exponent",
    ("pow", "float64 and complex number"): "wrong by the difference quotient: real self, complex exponent",
    ("logsumexp", "empty along the dim"): "NaN for a sum of nothing",
    ("std", "empty"): "NaN for a sum of nothing",
    ("max", "nan"): "NaN; the gradient goes to the NaNs in equal shares",
    ("min", "nan"): "NaN; the gradient goes to the NaNs in equal shares",
    ("logcumsumexp", "far apart"): "underflows: the slopes are divided by those of the largest element",
    **{
        (operator, f"{name}{twin}"): "wrong by the difference quotient"
        for operator, names in (
            ("linalg.cholesky_inverse", ("matrix", "upper", "batch")),
            ("linalg.triangular_solve", ("transposed", "unitriangular")),
        )
        for name in names
        for twin in ("", ", complex")
    },
}


def by_operator(chosen: Iterable[tuple[Op, Sample]]) -> list[Any]:
    """Pytest's parameters: an operator and all of its samples."""
    samples: dict[str, list[Sample]] = {}
    for op, sample in chosen:
        samples.setdefault(op.name, []).append(sample)
    return [
        pytest.param(op, samples[op.name], id=op.name)
        for op in OPS
        if op.name in samples and not op.missing_from(retrograd)
    ]


def directions(sample: Sample) -> list[np.ndarray | None]:
    """A direction for each tensor of the sample that may vary, laid out as the tensor is where that matters."""
    rng = np.random.default_rng(sample.seed + 3)
    found: list[np.ndarray | None] = []
    for spec, array in zip(sample.specs, sample.arrays(), strict=True):
        direction = random_cotangent(rng, array.shape, array.dtype) if spec.differentiable else None
        # A tensor that holds one number in many places has a tangent that does as well.
        expanded = direction is not None and spec.layout == "expanded"
        found.append(laid_out(direction, "expanded") if expanded and direction is not None else direction)
    return found


class Duals:
    """A module in which `from_numpy` makes the next tensor of a sample, dual if there is a direction for it."""

    def __init__(self, module: Any, along: list[Any], requires_grad: bool = False, levels: int = 1) -> None:
        self._module = module
        self._along = iter(along)
        self._requires_grad = requires_grad
        self._levels = levels
        self.leaves: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def from_numpy(self, array: np.ndarray) -> Any:
        tensor = self._module.from_numpy(array)
        direction = next(self._along)
        if direction is None:
            return tensor
        if self._requires_grad:
            tensor.requires_grad_()
        self.leaves.append(tensor)
        for level in range(self._levels):
            tangent = self._module.from_numpy(direction if 0 in direction.strides else direction.copy())
            tensor = self._module.autograd.forward_ad.make_dual(tensor, tangent, level=level)
        return tensor


def tangents(module: Any, op: Op, sample: Sample, along: list[np.ndarray | None]) -> list[np.ndarray | None]:
    """The tangents of the operator's outputs."""
    forward = module.autograd.forward_ad
    with forward.dual_level():
        built = sample.build(Duals(module, along), requires_grad=False)
        outputs = flat(op.call(module, built.args, built.kwargs))
        found = [forward.unpack_dual(out).tangent if is_tensor(out) else None for out in outputs]
        return [None if t is None else to_numpy(t) for t in found]


def has_no_tangent(op: Op, sample: Sample) -> bool:
    """Does the operator say that there is no tangent here (a full SVD, whose vectors are not unique)?"""
    try:
        tangents(retrograd, op, sample, directions(sample))
    except RuntimeError as error:
        return "is not defined" in str(error)
    return False


@pytest.mark.parametrize(("op", "samples"), by_operator(SMOOTH))
def test_tangent_is_the_limit_of_differences(op: Op, samples: list[Sample]) -> None:
    for sample in samples:
        if has_no_tangent(op, sample):
            continue
        along = directions(sample)
        recorded = [out for out in flat(_call(op, sample.build(retrograd))) if is_tensor(out)]
        found = tangents(retrograd, op, sample, along)
        values = []
        for sign in (1, -1):
            pairs = zip(sample.arrays(), along, strict=True)
            moved = [a if d is None else np.asarray(a + sign * STEP * d) for a, d in pairs]
            built = sample.build(retrograd, moved, requires_grad=False)
            values.append([to_numpy(out) for out in flat(_call(op, built)) if is_tensor(out)])
        assert any(t is not None for t in found), f"{sample.name}: no output is dual"
        for position, (tangent, ahead, behind) in enumerate(zip(found, *values, strict=True)):
            what = f"{sample.name}: tangent of output {position}"
            if not recorded[position].requires_grad:
                assert tangent is None or not np.any(tangent), what
                continue
            expected = (ahead - behind) / (2 * STEP)
            actual = np.zeros_like(expected) if tangent is None else tangent
            assert actual.shape == expected.shape, what
            assert actual.dtype == expected.dtype, what
            close(actual, expected, what, **FIRST_ORDER)


def _call(op: Op, built: Any) -> Any:
    return op.call(retrograd, built.args, built.kwargs)


@pytest.mark.parametrize(
    ("op", "samples"), by_operator((op, s) for op, s in SMOOTH if sum(spec.differentiable for spec in s.specs) > 1)
)
def test_tangents_of_arguments_add_up(op: Op, samples: list[Sample]) -> None:
    """A formula with some tangents missing gives that part of the sum."""
    for sample in samples:
        along = directions(sample)
        together = tangents(retrograd, op, sample, along)
        total: list[Any] = [0.0] * len(together)
        for position, direction in enumerate(along):
            if direction is not None:
                only = [direction if i == position else None for i in range(len(along))]
                for i, tangent in enumerate(tangents(retrograd, op, sample, only)):
                    assert tangent is None or tangent.shape == together[i].shape  # type: ignore[union-attr]
                    total[i] = total[i] + (0.0 if tangent is None else tangent)
        for i, tangent in enumerate(together):
            if tangent is not None:
                close(np.asarray(total[i]), tangent, f"{sample.name}: output {i}", rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("op", "samples"), by_operator(DIFFERENTIABLE))
def test_both_namespaces_agree(op: Op, samples: list[Sample]) -> None:
    """A formula over bare arrays, which a level takes where nobody else is looking, and the same over Tensors."""
    for sample in samples:
        along = directions(sample)
        if has_no_tangent(op, sample):
            continue
        arrays = tangents(retrograd, op, sample, along)
        with observing(lambda operator, args, kwargs, proceed: proceed()):
            tensors = tangents(retrograd, op, sample, along)
        single = any(spec.dtype in ("float16", "float32", "complex64") for spec in sample.specs)
        digits = 1e-2 if any(spec.dtype == "float16" for spec in sample.specs) else 1e-5 if single else 1e-11
        for position, (one, other) in enumerate(zip(arrays, tensors, strict=True)):
            what = f"{sample.name}: tangent of output {position}"
            assert (one is None) == (other is None), what
            if one is not None and other is not None:
                assert one.dtype == other.dtype, what
                assert one.shape == other.shape, what
                close(one, other, what, rtol=digits, atol=digits)


@pytest.mark.parametrize(
    ("op", "samples"),
    by_operator((op, s) for op, s in WITH_INPLACE if op.differentiable and any(t.differentiable for t in s.specs)),
)
def test_in_place_is_the_function(op: Op, samples: list[Sample]) -> None:
    """An in-place operator gives the tangent of the function, and writes it into the tangent that was there."""
    for sample in samples:
        along = directions(sample)
        if has_no_tangent(op, sample) or not hasattr(retrograd.Tensor, op.inplace or ""):
            continue
        (expected,) = tangents(retrograd, op, sample, along)[:1]
        for skip_self in (False, True):
            # The second time `self` is regular, and becomes dual by what is written.
            used = [None if skip_self and i == 0 else d for i, d in enumerate(along)]
            if skip_self and (along[0] is None or not any(d is not None for d in used)):
                continue
            if skip_self:
                (expected,) = tangents(retrograd, op, sample, used)[:1]
            with fwAD.dual_level():
                built = sample.build(Duals(retrograd, used), requires_grad=False)
                args = list(built.args)
                if not is_tensor(args[0]):
                    break
                args[0] = args[0].clone()
                before = fwAD.unpack_dual(args[0]).tangent
                shape, dtype = args[0].shape, args[0].dtype
                result = _call(op, sample.build(retrograd, requires_grad=False))
                if result.shape != shape or result.dtype != dtype:
                    break  # not what an in-place operator can do
                returned = getattr(args[0], op.inplace)(*args[1:], **built.kwargs)
                after = fwAD.unpack_dual(returned).tangent
                what = f"{sample.name}{', self regular' if skip_self else ''}"
                assert before is None or after is before, what
                if expected is None:
                    assert after is None or not np.any(to_numpy(after)), what
                else:
                    assert after is not None, what
                    assert after.dtype == dtype, what
                    close(to_numpy(after), expected, what, **rounding(sample))


@needs_torch
@pytest.mark.parity
@pytest.mark.parametrize(("op", "samples"), by_operator(DIFFERENTIABLE))
def test_tangent_is_torchs(op: Op, samples: list[Sample]) -> None:
    import torch

    for sample in samples:
        if not sample.torch_first or has_no_tangent(op, sample):
            continue
        along = directions(sample)
        ours = tangents(retrograd, op, sample, along)
        try:
            theirs = tangents(torch, op, sample, along)
        except NotImplementedError:
            continue  # more than torch has
        except RuntimeError:
            assert (op.name, sample.name) in NOT_TORCHS, f"{sample.name}: torch refuses it"
            continue
        if (op.name, sample.name) in NOT_TORCHS:
            with pytest.raises(AssertionError):  # or it is torch's after all, and the exemption is stale
                _compare(sample, ours, theirs)
        else:
            _compare(sample, ours, theirs)


def _compare(sample: Sample, ours: list[Any], theirs: list[Any]) -> None:
    kinds = {spec.dtype for spec in sample.specs}
    digits = 1e-2 if "float16" in kinds else 3e-5 if kinds & {"float32", "complex64"} else 1e-9
    for position, (mine, yours) in enumerate(zip(ours, theirs, strict=True)):
        what = f"{sample.name}: tangent of output {position}"
        if yours is None:
            assert mine is None or not np.any(mine), f"{what}: torch's does not vary"
            continue
        assert mine is not None, f"{what}: torch's varies"
        close(mine, yours, what, rtol=digits, atol=digits)


def test_every_exemption_names_a_sample() -> None:
    known = {(op.name, sample.name) for op, sample in DIFFERENTIABLE}
    assert sorted(set(NOT_TORCHS) - known) == []


# --------------------------------------------------------------------------------------------------------- second order


def paired(op: Op, sample: Sample, built: Any) -> Any:
    """A real function of the outputs, so that its second derivatives are those of all of them."""
    rng = np.random.default_rng(sample.seed + 1)
    total = None
    for out in flat(op.call(retrograd, built.args, built.kwargs)):
        if is_tensor(out) and (out.is_floating_point() or out.is_complex()):
            weight = retrograd.from_numpy(random_cotangent(rng, tuple(out.shape), to_numpy(out).dtype))
            product = real_dot(weight, out)
            total = product if total is None else total + product
    return total


def real_dot(a: Any, b: Any) -> Any:
    product = (a.conj() * b).sum()
    return product.real if product.is_complex() else product


def dense(gradients: Any, leaves: list[Any]) -> list[np.ndarray]:
    return [np.zeros_like(to_numpy(x)) if g is None else to_numpy(g) for g, x in zip(gradients, leaves, strict=True)]


@pytest.mark.parametrize(("op", "samples"), by_operator(SMALL))
def test_all_second_orders_agree(op: Op, samples: list[Sample]) -> None:
    """The Hessian along a direction, four ways."""
    for sample in samples:
        if has_no_tangent(op, sample):
            continue
        along = directions(sample)
        used = [d for d in along if d is not None]
        expected = _reverse_over_reverse(op, sample, used)
        for how in (_reverse_over_forward, _forward_over_reverse):
            for one, other in zip(how(op, sample, along), expected, strict=True):
                close(one, other, f"{sample.name}: {how.__name__}", rtol=1e-7, atol=1e-8)
        total = sum(np.sum(np.conj(d) * e).real for d, e in zip(used, expected, strict=True))
        close(_forward_over_forward(op, sample, along), total, f"{sample.name}: nested levels", rtol=1e-7, atol=1e-8)


def _reverse_over_reverse(op: Op, sample: Sample, used: list[np.ndarray]) -> list[np.ndarray]:
    built = sample.build(retrograd)
    value = paired(op, sample, built)
    if not value.requires_grad:
        return [np.zeros_like(d) for d in used]
    first = retrograd.autograd.grad(value, built.leaves, create_graph=True, allow_unused=True)
    slope = sum(real_dot(retrograd.from_numpy(d.copy()), g) for g, d in zip(first, used, strict=True) if g is not None)
    if not is_tensor(slope) or not slope.requires_grad:
        return [np.zeros_like(d) for d in used]
    return dense(retrograd.autograd.grad(slope, built.leaves, allow_unused=True), built.leaves)


def _reverse_over_forward(op: Op, sample: Sample, along: list[Any]) -> list[np.ndarray]:
    with fwAD.dual_level():
        module = Duals(retrograd, along, requires_grad=True)
        slope = fwAD.unpack_dual(paired(op, sample, sample.build(module, requires_grad=False))).tangent
        if slope is None or not slope.requires_grad:
            return dense([None] * len(module.leaves), module.leaves)
        return dense(retrograd.autograd.grad(slope, module.leaves, allow_unused=True), module.leaves)


def _forward_over_reverse(op: Op, sample: Sample, along: list[Any]) -> list[np.ndarray]:
    with fwAD.dual_level():
        module = Duals(retrograd, along, requires_grad=True)
        value = paired(op, sample, sample.build(module, requires_grad=False))
        if not value.requires_grad:
            return dense([None] * len(module.leaves), module.leaves)
        gradients = retrograd.autograd.grad(value, module.leaves, allow_unused=True)
        moved = [None if g is None else fwAD.unpack_dual(g).tangent for g in gradients]
        return dense(moved, module.leaves)


def _forward_over_forward(op: Op, sample: Sample, along: list[Any]) -> np.ndarray:
    with fwAD.dual_level(), fwAD.dual_level():
        module = Duals(retrograd, along, levels=2)
        slope = fwAD.unpack_dual(paired(op, sample, sample.build(module, requires_grad=False)), level=1).tangent
        curve = None if slope is None else fwAD.unpack_dual(slope, level=0).tangent
        return np.zeros(()) if curve is None else to_numpy(curve)
