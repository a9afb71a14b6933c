"""Operators on nested tensors: values and gradients beside torch, both derivatives against finite differences."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import retrograd
from nested.cases import HEADS, JAGGED, STRIDED, Case, components, plain

ALL = [
    *[("jagged", (3,), name, case) for name, case in JAGGED.items()],
    *[("jagged", (4, 6), name, case) for name, case in HEADS.items()],
    *[("strided", (3,), name, case) for name, case in STRIDED.items()],
]
IDS = [f"{layout}{len(inner)}-{name}" for layout, inner, name, _ in ALL]

#: What torch cannot compute at all on the CPU.
NO_VALUES_IN_TORCH = {
    "jagged1-unsqueeze, squeeze": "it squeezes contiguous tensors only",
    "jagged2-attention, causal": "no backend of it is for this",
    "strided1-cat": "of tensors that require grad",
}
#: What it has no derivative of. The finite differences below are the test of it.
NO_GRADIENTS_IN_TORCH = {
    "jagged1-maximum", "jagged1-layer_norm of components", "jagged1-log_softmax", "jagged1-sum of rows",
    "jagged1-sum of rows, kept", "jagged1-sum over the ragged dimension", "jagged1-sum over the ragged dimension, kept",
    "jagged1-sum over batch and ragged", "jagged1-mean over the ragged dimension",
    "jagged1-max over the ragged dimension", "jagged1-prod over the ragged dimension", "jagged1-transposed, sum",
    "jagged1-transposed, softmax", "jagged1-narrow", "jagged1-select", "jagged2-sum of two dimensions",
    "jagged2-sum over batch, ragged and another", "strided1-tanh", "strided1-select",
}  # fmt: skip
#: Its derivative takes no part of a component's other elements; the finite differences say so.
WRONG_IN_TORCH = {"jagged1-softmax over the ragged dimension"}
#: Its backward pass ends the process.
CRASHES = {"jagged1-split"}


def parts(result: Any) -> list[Any]:
    """The plain tensors of a result."""
    if not result.is_nested:
        return [result]
    return list(result.unbind())


def run(
    torch: Any, layout: str, inner: tuple[int, ...], case: Case
) -> tuple[list[np.ndarray], list[np.ndarray] | None]:
    """The values of a result, and the gradients of the components for some of it; None if torch has none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        leaf = torch.nested.nested_tensor(
            [torch.from_numpy(c) for c in components(*inner)], layout=getattr(torch, layout), requires_grad=True
        )
        result = case(torch, leaf)
        values = [p.detach().numpy() for p in parts(result)]
        try:
            loss = sum((p * plain(torch, *p.shape, seed=i + 5)).sum() for i, p in enumerate(parts(result)))
            loss.backward()
        except (RuntimeError, NotImplementedError, AttributeError, ValueError):
            if torch is retrograd:
                raise
            return values, None
        return values, [p.detach().numpy() for p in parts(leaf.grad)]


@pytest.mark.parity
@pytest.mark.parametrize(("layout", "inner", "name", "case"), ALL, ids=IDS)
def test_values_and_gradients_are_torchs(layout: str, inner: tuple[int, ...], name: str, case: Case) -> None:
    torch = pytest.importorskip("torch")
    key = f"{layout}{len(inner)}-{name}"
    ours, ours_gradients = run(retrograd, layout, inner, case)
    if key in CRASHES:
        pytest.skip("torch ends the process")
    if key in NO_VALUES_IN_TORCH:
        with pytest.raises((RuntimeError, ValueError)):
            run(torch, layout, inner, case)
        return
    theirs, gradients = run(torch, layout, inner, case)
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert (gradients is None) == (key in NO_GRADIENTS_IN_TORCH)
    if gradients is not None:
        same = all(np.allclose(a, b, rtol=1e-9, atol=1e-11) for a, b in zip(ours_gradients, gradients, strict=True))
        assert same == (key not in WRONG_IN_TORCH)


#: Rounded to float32, values make steps; gradients are not rounded.
ROUGH = {"jagged1-to another dtype and back"}


@pytest.mark.parametrize(("layout", "inner", "name", "case"), ALL, ids=IDS)
def test_derivatives_are_the_limit_of_differences(layout: str, inner: tuple[int, ...], name: str, case: Case) -> None:
    if f"{layout}{len(inner)}-{name}" in ROUGH:
        pytest.skip("its values are rounded; torch's gradients are compared")
    lengths = (2, 1, 3, 2)
    leaves = [retrograd.from_numpy(c).requires_grad_() for c in components(*inner, lengths=lengths)]
    if len(inner) == 2:
        leaves = [leaf.detach()[:, :2, :3].clone().requires_grad_() for leaf in leaves]

    def program(*given: Any) -> Any:
        nested = retrograd.nested.as_nested_tensor(list(given), layout=getattr(retrograd, layout))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tuple(parts(case(retrograd, nested)))

    if name == "padded":
        pytest.skip("made for other lengths")
    if len(inner) == 2 and name in ("linear", "batch of matrices"):
        pytest.skip("made for other sizes")
    if name in ("of a component", "to_padded_tensor of a size"):
        lengths = (2, 4, 1, 3)
        leaves = [retrograd.from_numpy(c).requires_grad_() for c in components(*inner, lengths=lengths)]
    assert retrograd.autograd.gradcheck(program, leaves, check_forward_ad=layout == "jagged", fast_mode=True)
    assert retrograd.autograd.gradgradcheck(program, leaves, fast_mode=True)
