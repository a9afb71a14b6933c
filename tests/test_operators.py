"""Every operator on every sample of the database: values, gradients of both orders, variants, dtypes, errors.

Tests marked `parity` compare with torch and are skipped where it is not installed; all others need NumPy alone.
A test's id reads like `mul[broadcast]`.  Derivatives are judged by finite differences (`reference.py`).
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd
from operator_runs import (
    CASES,
    DIFFERENTIABLE,
    ERRORS,
    SINGLE,
    SMALL,
    SMOOTH,
    TORCH_DIFFERENTIATES,
    TORCH_DIFFERENTIATES_TWICE,
    WITH_INPLACE,
    WITH_METHOD,
    WITH_REFERENCE,
    Run,
    close,
    dense,
    flat,
    is_tensor,
    memory,
    needs_torch,
    params,
    rounding,
    same_gradients,
    same_result,
    to_numpy,
    torch,
)
from reference import FIRST_ORDER, SECOND_ORDER, numerical_gradient, pairing
from samples import OPS, ErrorSample, Op, Sample

pytestmark = [
    # Advice about losses that broadcast, transposes of vectors, casts of complex numbers … is not what is tested here.
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def test_every_operator_of_the_database_is_here() -> None:
    # Other tests pass over operators that are missing: none is.
    assert [op.name for op in OPS if op.missing_from(retrograd)] == []
    assert [op.inplace for op in OPS if op.inplace and not hasattr(retrograd.Tensor, op.inplace)] == []


# ---------------------------------------------------------------------------------------------- against torch


@needs_torch
@pytest.mark.parity
@pytest.mark.parametrize(("op", "sample"), params(CASES + SINGLE))
def test_result_is_torchs(op: Op, sample: Sample) -> None:
    ours, theirs = Run(retrograd, op, sample), Run(torch, op, sample)
    assert len(ours.outputs) == len(theirs.outputs)
    for position, (mine, yours) in enumerate(zip(ours.outputs, theirs.outputs, strict=True)):
        same_result(mine, yours, f"output {position}")


@needs_torch
@pytest.mark.parity
@pytest.mark.parametrize(("op", "sample"), params(TORCH_DIFFERENTIATES))
def test_gradient_is_torchs(op: Op, sample: Sample) -> None:
    ours, theirs = Run(retrograd, op, sample).gradients(), Run(torch, op, sample).gradients()
    same_gradients(ours, theirs, "gradient", **rounding(sample))


@needs_torch
@pytest.mark.parity
@pytest.mark.parametrize(("op", "sample"), params(TORCH_DIFFERENTIATES_TWICE))
def test_second_gradient_is_torchs(op: Op, sample: Sample) -> None:
    _, _, ours = Run(retrograd, op, sample).second_gradients()
    _, _, theirs = Run(torch, op, sample).second_gradients()
    ours = [None if g is None or not np.any(to_numpy(g)) else g for g in ours]
    wanted = Run(torch, op, sample)
    likes = [*wanted.leaves, *wanted.cotangents()]
    for position, (mine, yours, like) in enumerate(zip(ours, theirs, likes, strict=True)):
        close(dense(mine, like), dense(yours, like), f"second gradient {position}")


@needs_torch
@pytest.mark.parity
@pytest.mark.parametrize(("op", "error"), params(ERRORS))
def test_torch_raises_it_too(op: Op, error: ErrorSample) -> None:
    raises(torch, op, error)


# ---------------------------------------------------------------------------------------------- against NumPy


@pytest.mark.parametrize(("op", "sample"), params(WITH_REFERENCE))
def test_result_is_numpys(op: Op, sample: Sample) -> None:
    args, kwargs = sample.numpy()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's about means of nothing
        expected = np.asarray(op.reference(*args, **kwargs))
    result = Run(retrograd, op, sample).result
    actual = to_numpy(result)
    assert actual.shape == expected.shape
    # NumPy's own promotion differs from torch's (int64 and float32 make float64), so the numbers alone count.
    close(actual, expected, "result")


@pytest.mark.parametrize(("op", "sample"), params(SMOOTH))
def test_gradient_is_the_limit_of_differences(op: Op, sample: Sample) -> None:
    run = Run(retrograd, op, sample)
    cotangents = [to_numpy(c) for c in run.cotangents()]
    which = [i for i, out in enumerate(run.outputs) if is_tensor(out) and out.requires_grad]
    assert which, "no output requires grad"

    def value(arrays: list[np.ndarray]) -> float:
        built = sample.build(retrograd, arrays, requires_grad=False)
        outputs = flat(op.call(retrograd, built.args, built.kwargs))
        return pairing(cotangents, [to_numpy(outputs[i]) for i in which])

    arrays = sample.arrays()
    wanted = [i for i, spec in enumerate(sample.specs) if spec.differentiable]
    expected = numerical_gradient(value, arrays, wanted)
    for leaf, gradient, numerical in zip(run.leaves, run.gradients(), expected, strict=True):
        close(dense(gradient, leaf), numerical, f"gradient of {tuple(leaf.shape)}", **FIRST_ORDER)


@pytest.mark.parametrize(("op", "sample"), params(SMALL))
def test_second_gradient_is_the_limit_of_differences(op: Op, sample: Sample) -> None:
    run = Run(retrograd, op, sample)
    seeds, wanted_tensors, seconds = run.second_gradients()
    arrays, cotangents = sample.arrays(), [to_numpy(c) for c in run.cotangents()]

    def value(moved: list[np.ndarray]) -> float:
        inner = Run(retrograd, op, sample, moved[: len(arrays)])
        sent = [retrograd.from_numpy(c) for c in moved[len(arrays) :]]
        grads = [dense(g, leaf) for g, leaf in zip(inner.gradients(cotangents=sent), inner.leaves, strict=True)]
        return pairing(
            [s if s.shape == g.shape else np.zeros_like(g) for s, g in zip(seeds, grads, strict=True)], grads
        )

    wanted = [i for i, spec in enumerate(sample.specs) if spec.differentiable]
    wanted += range(len(arrays), len(arrays) + len(cotangents))
    expected = numerical_gradient(value, [*arrays, *cotangents], wanted)
    for tensor, second, numerical in zip(wanted_tensors, seconds, expected, strict=True):
        close(dense(second, tensor), numerical, f"second gradient of {tuple(tensor.shape)}", **SECOND_ORDER)


# ---------------------------------------------------------------------------------------------- both namespaces


@pytest.mark.parametrize(("op", "sample"), params(DIFFERENTIABLE))
def test_both_namespaces_agree(op: Op, sample: Sample) -> None:
    """A formula over bare arrays and the same formula over Tensors; and backward() twice over adds up."""
    plain, graphed = Run(retrograd, op, sample), Run(retrograd, op, sample)
    if not plain.roots:
        pytest.skip("torch gives no gradient here: the result is of an integral dtype")
    retrograd.autograd.backward(plain.roots, plain.cotangents())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # backward(create_graph=True) warns of the cycle that .grad then closes
        retrograd.autograd.backward(graphed.roots, graphed.cotangents(), create_graph=True)
    for position, (one, other) in enumerate(zip(plain.leaves, graphed.leaves, strict=True)):
        assert (one.grad is None) == (other.grad is None), f"gradient {position} is undefined in one of the two"
        if one.grad is None:
            continue
        assert one.grad.dtype == other.grad.dtype == one.dtype
        assert tuple(one.grad.shape) == tuple(other.grad.shape) == tuple(one.shape)
        assert not one.grad.requires_grad
        close(to_numpy(one.grad), to_numpy(other.grad), f"gradient {position}", **rounding(sample))
        other.grad = None  # close no cycle behind the test


@pytest.mark.parametrize(("op", "sample"), params(SINGLE))
def test_gradient_of_float32_is_float32(op: Op, sample: Sample) -> None:
    run = Run(retrograd, op, sample)
    for leaf, gradient in zip(run.leaves, run.gradients(), strict=True):
        if gradient is not None:
            assert gradient.dtype == leaf.dtype
            assert tuple(gradient.shape) == tuple(leaf.shape)
            assert gradient.device == leaf.device


# ---------------------------------------------------------------------------------------------- good manners


@pytest.mark.parametrize(("op", "sample"), params(CASES))
def test_inputs_keep_their_values(op: Op, sample: Sample) -> None:
    """Neither the operator nor its backward writes to the inputs, the result or the incoming gradient."""
    run = Run(retrograd, op, sample)
    results = [to_numpy(out) for out in run.outputs]
    cotangents = run.cotangents()
    sent = [to_numpy(c) for c in cotangents]
    if op.differentiable:
        run.gradients(cotangents=cotangents)
    for tensor, array in zip(run.built.tensors, sample.arrays(), strict=True):
        np.testing.assert_array_equal(to_numpy(tensor), array)
        assert tensor._version == 0
    for out, array in zip(run.outputs, results, strict=True):
        np.testing.assert_array_equal(to_numpy(out), array)
    for cotangent, array in zip(cotangents, sent, strict=True):
        np.testing.assert_array_equal(to_numpy(cotangent), array)


@pytest.mark.parametrize(("op", "sample"), params([(op, s) for op, s in CASES if op.view is not None]))
def test_only_views_share_memory(op: Op, sample: Sample) -> None:
    run = Run(retrograd, op, sample)
    for out in run.outputs:
        if not is_tensor(out) or not out.numel():
            continue
        shared = any(np.may_share_memory(memory(out), memory(tensor)) for tensor in run.built.tensors)
        assert shared == op.view, "a view copies" if op.view else "a result shares an input's memory"


@pytest.mark.parametrize(("op", "sample"), params(WITH_METHOD))
def test_method_is_the_function(op: Op, sample: Sample) -> None:
    run = Run(retrograd, op, sample)
    first, *rest = run.built.args
    for one, other in zip(run.outputs, flat(getattr(first, op.method)(*rest, **run.built.kwargs)), strict=True):
        if is_tensor(one):
            assert one.dtype == other.dtype
            assert one.requires_grad == other.requires_grad
        np.testing.assert_array_equal(to_numpy(one), to_numpy(other))


@pytest.mark.parametrize(("op", "sample"), params(WITH_INPLACE))
def test_inplace_is_the_function(op: Op, sample: Sample) -> None:
    """`x.op_(...)` is x, holds op's result, counts a version, and has op's gradient."""
    expected, run = Run(retrograd, op, sample), sample.build(retrograd)
    first, *rest = run.args
    result = expected.result
    if first.dtype != result.dtype or first.shape != result.shape or any(other is first for other in rest):
        pytest.skip("an in-place operator keeps its tensor's dtype and shape")
    if any(spec.layout == "expanded" for spec in sample.specs):
        pytest.skip("one cell cannot hold several results")
    target = first.clone()
    before = target._version
    returned = getattr(target, op.inplace)(*rest, **run.kwargs)
    assert returned is target
    assert target._version == before + 1
    assert target.requires_grad == result.requires_grad
    np.testing.assert_array_equal(to_numpy(target), to_numpy(result))
    if not expected.roots or not op.differentiable:
        return
    grads = retrograd.autograd.grad([target], run.leaves, expected.cotangents(), allow_unused=True)
    for leaf, mine, other in zip(run.leaves, grads, expected.gradients(), strict=True):
        close(dense(mine, leaf), dense(other, leaf), "gradient through the in-place operator")


@pytest.mark.parametrize(("op", "sample"), params(DIFFERENTIABLE))
def test_no_history_without_grad(op: Op, sample: Sample) -> None:
    """Under no_grad, and where no input requires grad, nothing is recorded."""
    built = sample.build(retrograd)
    with retrograd.no_grad():
        outputs = flat(op.call(retrograd, built.args, built.kwargs))
    built = sample.build(retrograd, requires_grad=False)
    outputs += flat(op.call(retrograd, built.args, built.kwargs))
    for out in outputs:
        # An operator may return its input itself (`positive`, `to` of the same dtype), which stays a leaf.
        assert out.grad_fn is None
        assert out.is_leaf


# ---------------------------------------------------------------------------------------------- wrong calls


def raises(module: Any, op: Op, error: ErrorSample) -> None:
    """The call raises the exception, with the key phrase, and leaves its tensors as they were."""
    built = error.sample().build(module)
    fn = op if error.fn is None else Op(op.name, error.fn, [])
    with pytest.raises(error.exception, match=error.match):
        fn.call(module, built.args, built.kwargs)
    for tensor, array in zip(built.tensors, error.sample().arrays(), strict=True):
        np.testing.assert_array_equal(to_numpy(tensor), array)
        assert tensor._version == 0


@pytest.mark.parametrize(("op", "error"), params(ERRORS))
def test_wrong_call_raises_torchs_error(op: Op, error: ErrorSample) -> None:
    raises(retrograd, op, error)


# ---------------------------------------------------------------------------------------------- randomness


@functools.cache
def _dropped(p: float) -> tuple[np.ndarray, np.ndarray]:
    retrograd.manual_seed(0)
    x = retrograd.ones(1000, dtype=retrograd.float64).requires_grad_()
    y = retrograd.nn.functional.dropout(x, p, True)
    (gradient,) = retrograd.autograd.grad(y, x, retrograd.ones(1000, dtype=retrograd.float64))
    return to_numpy(y), to_numpy(gradient)


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
def test_dropout_drops_and_scales(p: float) -> None:
    """What the samples cannot say of a random operator: how many entries go, how the others grow."""
    y, _ = _dropped(p)
    np.testing.assert_allclose(y[y != 0], 1 / (1 - p))
    assert abs(np.mean(y == 0) - p) < 0.06


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
def test_gradient_of_dropout_has_the_forwards_mask(p: float) -> None:
    y, gradient = _dropped(p)
    np.testing.assert_array_equal(gradient, y)


def test_dropout_repeats_with_the_seed() -> None:
    x = retrograd.ones(50)
    drawn = []
    for seed in (1, 1, 2):
        retrograd.manual_seed(seed)
        drawn.append(to_numpy(retrograd.nn.functional.dropout(x)))
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
