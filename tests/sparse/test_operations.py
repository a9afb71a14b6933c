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
