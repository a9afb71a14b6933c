"""Copies of views, beside torch."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "copy",
    [
        lambda torch, t: torch.alias_copy(t),
        lambda torch, t: torch.detach_copy(t),
        lambda torch, t: torch.permute_copy(t, (1, 0)),
        lambda torch, t: torch.t_copy(t),
        lambda torch, t: torch.narrow_copy(t, 0, 1, 2),
        lambda torch, t: torch.expand_copy(t, (2, 3, 4)),
        lambda torch, t: torch.unbind_copy(t.unsqueeze(0))[0],
        lambda torch, t: torch._neg_view_copy(t),
        lambda torch, t: torch._conj_copy(t + 0j),
    ],
)
@pytest.mark.parametrize("transposed", [False, True])
def test_copies_are_dense_and_have_memory_of_their_own(torch, copy, transposed):
    memory = torch.arange(12.0).reshape(3, 4)
    t = torch.arange(12.0).reshape(4, 3).t() if transposed else memory
    result = copy(torch, t)
    assert result.is_contiguous() and result._base is None and not result.is_conj() and not result.is_neg()
    before = t.clone()
    result.zero_()
    assert torch.equal(t, before)
