"""Sums of sparse tensors: which coordinates they have, and in which order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.mark.parametrize("first, second, indices, values", [
    ([0, 1], [1, 2], [0, 1, 2], [1, 12, 20]),  # sorted: what both have becomes one
    ([0, 1, 1, 4], [1, 1, 1], [0, 1, 1, 1, 4], [1, 12, 23, 30, 4]),  # and again in pairs
    ([2, 0, 2], [2, 0, 2], [2, 0, 2], [11, 22, 33]),  # the same in the same order
    ([], [3, 3], [3, 3], [10, 20]),
])  # fmt: skip
def test_sums_of_coordinates(torch: Any, first: Any, second: Any, indices: Any, values: Any) -> None:
    parts = [
        torch.sparse_coo_tensor(torch.tensor([places]).long(), torch.arange(1.0, 1 + len(places)) * factor, (5,))
        for places, factor in ((first, 1), (second, 10))
    ]
    result = parts[0] + parts[1]
    assert result._indices().tolist() == [indices] and result._values().tolist() == values
    assert not result.is_coalesced()
    np.testing.assert_array_equal(result.to_dense(), parts[0].to_dense() + parts[1].to_dense())


def test_values_that_do_not_lie_in_one_piece_are_put_one_after_the_other(torch: Any) -> None:
    parts = [torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.ones(1).expand(2), (5,)) for _ in range(2)]
    assert (parts[0] + parts[1])._indices().tolist() == [[0, 1, 0, 1]]
    few = [torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.ones(1).expand(2), (3,)) for _ in range(2)]
    assert (few[0] + few[1])._indices().tolist() == [[0, 1]]  # there are not more of them than elements


def test_plain_tensors_times_sparse_ones_in_place(torch: Any) -> None:
    sparse = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    alias = x.view(4)
    assert x.mul_(sparse) is x
    assert alias.tolist() == [0.0, 4.0, 9.0, 0.0]
    leaf = torch.ones(2, 2, requires_grad=True)
    (leaf * 1).mul_(sparse).sum().backward()
    assert leaf.grad.to_dense().tolist() == [[0.0, 2.0], [3.0, 0.0]]
    with pytest.raises(RuntimeError, match="same size"):
        torch.tensor(2.0).mul_(sparse)
    with pytest.raises(RuntimeError, match="Sparse division requires a scalar or zero-dim dense tensor divisor"):
        x.div_(sparse)
    assert sparse.mul_(2).div_(4).to_dense().tolist() == [[0.0, 1.0], [1.5, 0.0]]


def test_complex_values_as_real_ones(torch: Any) -> None:
    x = torch.tensor([[1 + 2j, 0], [0, 3]]).to_sparse().requires_grad_()
    real = torch.view_as_real(x)
    assert real.shape == (2, 2, 2) and real.dense_dim() == 1
    assert real.to_dense().tolist() == [[[1.0, 2.0], [0.0, 0.0]], [[0.0, 0.0], [3.0, 0.0]]]
    assert torch.equal(torch.view_as_complex(real).to_dense(), x.to_dense())
    if torch.__name__ == "retrograd":  # (torch has no gradient here: it wants another memory format)
        real.to_dense().square().sum().backward()
        assert torch.equal(x.grad.to_dense(), torch.tensor([[2 + 4j, 0], [0, 6]]))
    with pytest.raises(RuntimeError, match="last dim == 2 and dense_dim > 0"):
        torch.view_as_complex(torch.ones(2, 2).to_sparse())
