"""Tensors with masks. (The operators of ``torch.masked`` are in the sample database, tests/samples/masked.py.)"""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd

DATA = [[0.5, -1.0, 2.0], [3.0, 0.25, -0.5]]
MASK = [[True, False, True], [False, True, True]]


def make(torch: Any, requires_grad: bool = True, **kwargs: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.masked.masked_tensor(
            torch.tensor(DATA, dtype=torch.float64), torch.tensor(MASK), requires_grad=requires_grad
        )


#: What torch has of masked tensors as well.
PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda t, x: x.exp(),
    "sin": lambda t, x: t.sin(x),
    "with a number": lambda t, x: x * 3 + 1,
    "with itself": lambda t, x: x * x,
    "with a plain tensor": lambda t, x: x / t.tensor([2.0, 3.0, 4.0], dtype=t.float64).expand(2, 3),
    "maximum": lambda t, x: t.maximum(x, x * 2),
    "sum": lambda t, x: x.sum(),
    "sum of rows": lambda t, x: x.sum(1),
    "mean of columns": lambda t, x: x.mean(0),
    "mean": lambda t, x: x.mean(),
    "prod": lambda t, x: x.prod(dim=1),
    "amax": lambda t, x: x.amax(1),
    "amin": lambda t, x: x.amin(),
    "var": lambda t, x: x.var(1),
    "softmax": lambda t, x: t.softmax(x, -1),
    "transpose": lambda t, x: x.transpose(0, 1),
    "view": lambda t, x: x.view(3, 2),
    "select": lambda t, x: x.select(0, 1),
    "slice": lambda t, x: x[:, 1:],
    "unfold": lambda t, x: x.unfold(1, 2, 1),
    "stack": lambda t, x: t.stack([x, x * 2]),
    "cat": lambda t, x: t.cat([x, x * 2]),
    "where": lambda t, x: t.where(t.tensor([True, False, True]).expand(2, 3), x, x * 5),
    "clone": lambda t, x: x.clone(),
    "contiguous": lambda t, x: x.transpose(0, 1).contiguous(),
}


def visible(masked: Any) -> np.ndarray:
    """The elements that are not masked; NaN for the others."""
    return np.where(masked.get_mask().numpy(), masked.get_data().detach().numpy(), np.nan)


#: What torch has no derivative of.
NO_GRADIENT_IN_TORCH = {"maximum", "where"}


@pytest.mark.parity
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_masks_and_gradients_are_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for t in (retrograd, torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            leaf = make(t)
            result = PROGRAMS[name](t, leaf)
            gradient = None
            try:
                result.sum().backward()
                gradient = visible(leaf.grad)
            except (TypeError, RuntimeError, ValueError):
                assert t is torch
            found.append((visible(result), result.get_mask().numpy(), gradient))
    ours, theirs = found
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12)
    np.testing.assert_array_equal(ours[1], theirs[1])
    assert (theirs[2] is None) == (name in NO_GRADIENT_IN_TORCH)
    if theirs[2] is not None:
        # Torch masks what a gradient did not reach as well; here it is 0, and the mask that of the leaf.
        reached = ~np.isnan(theirs[2])
        np.testing.assert_allclose(ours[2][reached], theirs[2][reached], rtol=1e-9, atol=1e-12)
        assert np.nan_to_num(ours[2][~reached]).tolist() == [0.0] * int((~reached).sum())


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_the_limit_of_differences(name: str) -> None:
    """Of what is not masked; what is masked counts nowhere."""
    x = retrograd.tensor(DATA, dtype=retrograd.float64, requires_grad=True)

    def program(data: Any) -> Any:
        return PROGRAMS[name](retrograd, retrograd.masked.as_masked_tensor(data, retrograd.tensor(MASK))).to_tensor(0.0)

    # Finite differences move masked elements too, whose results are masked.
    assert retrograd.autograd.gradcheck(program, x)
    assert retrograd.autograd.gradgradcheck(program, x)


def test_gradients_of_masked_elements_are_none_of_ours() -> None:
    """What NaN comes of an element that is masked stays behind the mask."""
    x = retrograd.tensor([4.0, -1.0, 0.0], requires_grad=True)
    retrograd.masked.as_masked_tensor(x, x.detach() > 0).sqrt().sum().backward()
    assert x.grad.tolist() == [0.25, 0.0, 0.0]


@pytest.mark.parity
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
def test_reductions_of_sparse_tensors_are_torchs(name: str, layout: str) -> None:
    torch = pytest.importorskip("torch")
    for dim in (0, 1, None, (0, 1)):
        for keepdim in (True, False):
            found = []
            for t in (retrograd, torch):
                data = t.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, -4.0]]).to_sparse(layout=getattr(t, layout))
                mask = t.tensor(MASK).to_sparse(layout=getattr(t, layout))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        result = getattr(t.masked, name)(data, dim, keepdim=keepdim, mask=mask)
                        found.append((str(result.layout), result._nnz(), result.to_dense().tolist()))
                    except (ValueError, AssertionError, RuntimeError) as error:
                        found.append(type(error))
            assert found[0] == found[1], (dim, keepdim)


def test_gradients_of_reductions_of_sparse_tensors() -> None:
    x = retrograd.tensor(DATA, dtype=retrograd.float64, requires_grad=True)
    mask = retrograd.tensor(MASK)
    for run in (retrograd.masked.sum, retrograd.masked.prod, retrograd.masked.amax):
        assert retrograd.autograd.gradcheck(
            lambda data, run=run: run(data.to_sparse(), 1, mask=mask).to_dense(), x, masked=True
        )


@pytest.mark.parity
def test_printing_is_torchs() -> None:
    torch = pytest.importorskip("torch")
    texts = []
    for t in (retrograd, torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = make(t, requires_grad=False)
            whole = t.masked.masked_tensor(t.tensor([1, 200]), t.tensor([False, True]))
            texts.append([str(x), str(x.sum()), str(whole), str(t.stack([x, x])), str(x.select(0, 0).select(0, 1))])
    assert texts[0] == texts[1]


def test_leaves_hooks_and_copies() -> None:
    x = make(retrograd)
    assert x.is_leaf and x.requires_grad and retrograd.masked.is_masked_tensor(x)
    seen = []
    x.register_hook(lambda grad: seen.append(grad))
    (x * 2).sum().backward()
    assert retrograd.masked.is_masked_tensor(seen[0]) and retrograd.masked.is_masked_tensor(x.grad)
    assert x.grad.to_tensor(7.0).tolist() == [[2.0, 7.0, 2.0], [7.0, 2.0, 2.0]]
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.requires_grad and other.tolist() == x.tolist() == [[0.5, None, 2.0], [None, 0.25, -0.5]]
    file = io.BytesIO()
    retrograd.save(x.detach(), file)
    file.seek(0)
    assert retrograd.load(file, weights_only=False).tolist() == x.tolist()


WRONG: dict[str, Callable[[Any], Any]] = {
    "data": lambda t: t.masked.masked_tensor(3.0, t.tensor([True])),
    "mask": lambda t: t.masked.masked_tensor(t.ones(2), 1),
    "mask of numbers": lambda t: t.masked.masked_tensor(t.ones(2), t.ones(2)),
    "shapes": lambda t: t.masked.masked_tensor(t.ones(2), t.tensor([True])),
    "dimensions": lambda t: t.masked.masked_tensor(t.ones(2), t.tensor([[True, True]])),
    "dtype": lambda t: t.masked.masked_tensor(t.ones(2, dtype=t.complex64), t.tensor([True, True])),
    "whole numbers that require grad": lambda t: t.masked.masked_tensor(t.tensor([1]), t.tensor([True]), True),
    "masks": lambda t: make(t) + t.masked.masked_tensor(t.ones(2, 3).double(), ~t.tensor(MASK)),
    "unknown operator": lambda t: make(t).max(),
    "item": lambda t: make(t).select(0, 0).select(0, 1).item(),
}


@pytest.mark.parity
@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_are_refused_as_torch_refuses_them(name: str) -> None:
    torch = pytest.importorskip("torch")
    kinds = []
    for t in (retrograd, torch):
        with warnings.catch_warnings(), pytest.raises(Exception) as caught:
            warnings.simplefilter("ignore")
            WRONG[name](t)
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]
