"""Reductions that are composed of operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as torch

NAN = float("nan")


@pytest.mark.parametrize(
    ("reduce", "data", "lengths", "initial", "expected"),
    [
        # What a stretch starts with takes no part of the gradient, also if it is as large (values of torch).
        ("max", [2.0, 2.0, 3.0, 3.0, NAN, NAN, 7.0], [2, 2, 3], 2.0, [0.5, 0.5, 1.0, 1.0, 1.5, 1.5, 0.0]),
        ("max", [0.0, 2.0, 3.0, 0.0, 0.0, 5.0], [2, 3, 1], 3.0, [0.0, 0.0, 2.0, 0.0, 0.0, 3.0]),
        ("max", [1.0, NAN, 3.0, 4.0, 5.0, 5.0], [1, 2, 3, 0], NAN, [0.0, 2.0, 0.0, 0.0, 0.0, 0.0]),
        ("min", [0.0, 2.0, 3.0, 0.0, 0.0, 5.0], [2, 3, 1], 0.0, [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]),
        # The gradient of a NaN is the product of the others.
        ("prod", [1.0, NAN, 3.0, 4.0, 5.0, 5.0], [1, 2, 3, 0], 2.0, [2.0, 12.0, NAN, 150.0, 120.0, 120.0]),
        ("prod", [1.0, NAN, 3.0, 4.0, 5.0, 5.0], [1, 2, 3, 0], 0.0, [0.0, 0.0, NAN, 0.0, 0.0, 0.0]),
        ("prod", [2.0, 2.0, 3.0, 3.0, NAN, NAN, 7.0], [2, 2, 3], None, [2.0, 2.0, 6.0, 6.0, NAN, NAN, NAN]),
    ],
)
def test_gradients_of_stretches(reduce: str, data: Any, lengths: Any, initial: Any, expected: Any) -> None:
    x = torch.tensor(data, dtype=torch.float64, requires_grad=True)
    result = torch.segment_reduce(x, reduce, lengths=torch.tensor(lengths), initial=initial)
    (result * torch.arange(1.0, 1 + len(lengths))).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_all_and_any_of_bools() -> None:
    x = torch.tensor([[True, False], [True, True]])
    assert torch._is_all_true(x[1]).item() and not x._is_all_true().item()
    assert torch._is_any_true(x).item() and not torch._is_any_true(~x[1]).item()
    # In a vmap the answer is one for all examples.
    assert torch.vmap(torch._is_all_true)(x).tolist() == [False, False]
    assert torch.vmap(lambda row: row if torch._is_any_true(row) else ~row)(x).tolist() == x.tolist()
    # As an operator of torch.ops, too.
    assert torch.vmap(lambda row: row & torch.ops.aten._is_any_true(row).item())(x).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="expected a tensor of bools"):
        torch._is_any_true(torch.ones(2))
