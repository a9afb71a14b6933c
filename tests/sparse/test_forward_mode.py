"""Sparse tensors with tangents."""

from __future__ import annotations

import pytest

import retrograd as torch
from retrograd.autograd import forward_ad


def dual():
    return forward_ad.make_dual(torch.eye(2).to_sparse(), (2 * torch.eye(2)).to_sparse())


def test_operators_carry_tangents():
    with forward_ad.dual_level():
        result = dual() * 3
        assert forward_ad.unpack_dual(result).tangent.to_dense().tolist() == [[6.0, 0.0], [0.0, 6.0]]


@pytest.mark.parametrize("write", [
    lambda x: x.mul_(3), lambda x: x.neg_(), lambda x: x.zero_(), lambda x: torch.eye(2).to_sparse().add_(x)
])  # fmt: skip
def test_a_write_that_would_lose_a_tangent_is_refused_and_changes_nothing(write):
    with forward_ad.dual_level():
        x = dual()
        with pytest.raises(RuntimeError, match="do not support forward AD"):
            write(x)
        assert forward_ad.unpack_dual(x).primal.to_dense().tolist() == [[1.0, 0.0], [0.0, 1.0]]
