"""View functions: the same view of another base, and the other way."""

from __future__ import annotations

import pytest

VIEWS = {
    "alias": lambda t, x: x[...],
    "select": lambda t, x: x[1],
    "slice": lambda t, x: x[:, 1:3],
    "narrow": lambda t, x: x.narrow(0, 1, 1),
    "transpose": lambda t, x: x.t(),
    "permute": lambda t, x: x.permute(1, 0),
    "diagonal": lambda t, x: x.diagonal(),
    "view": lambda t, x: x.view(2, -1),
    "unsqueeze": lambda t, x: x.unsqueeze(1),
    "expand": lambda t, x: x.expand(2, 4, 4),
    "unfold": lambda t, x: x.unfold(0, 2, 2),
    "split": lambda t, x: x.split(2)[1],
    "unbind": lambda t, x: x.unbind(1)[2],
    "as_strided": lambda t, x: x.as_strided((2, 2), (4, 1), 1),
    "view_as_complex": lambda t, x: t.view_as_complex(x.view(4, 2, 2)),
    "a chain": lambda t, x: x[1:].t().chunk(2)[0].unsqueeze(-1),
}


def geometry(t):
    return tuple(t.shape), tuple(t.stride()), t.storage_offset(), t.dtype


@pytest.mark.parametrize("view", VIEWS)
def test_there_and_back(torch, view):
    with torch.autograd._force_original_view_tracking(True):
        base = torch.arange(16.0).reshape(4, 4).clone()
        v = VIEWS[view](torch, base)
        other = base + 100
        again = v._view_func(other)
        assert again._base is other and geometry(again) == geometry(v)
        assert again.tolist() == VIEWS[view](torch, base + 100).tolist()
        assert v._view_func_unsafe(other).tolist() == again.tolist()
        alone = v.detach()
        back = v._rev_view_func_unsafe(alone)
        assert back._base is alone and geometry(back) == geometry(base) and back.data_ptr() == base.data_ptr()


def test_the_base_must_be_laid_out_alike(torch):
    base = torch.zeros(2, 3)
    v = base.view(6)
    assert v._view_func(torch.zeros(3, 2)) is None and v._view_func(torch.zeros(3, 2).t()) is None
    assert v._view_func_unsafe(torch.ones(3, 2)).tolist() == [1.0] * 6
    assert base._view_func(base) is None
    with pytest.raises(TypeError, match=r"'new_base' .position 1. must be Tensor, not int"):
        v._view_func(1)


def test_visitors_replace_what_the_steps_were_given(torch):
    with torch.autograd._force_original_view_tracking(True):
        base = torch.arange(24.0).reshape(2, 3, 4).clone()
        v = base.select(1, 0)
        assert v._view_func(base, symint_visitor_fn=lambda n: n + 1).tolist() == base.select(1, 1).tolist()
        assert v._view_func(base).tolist() == base.select(1, 0).tolist()


def test_a_view_function_with_a_tensor(torch):
    with torch.autograd._force_original_view_tracking(True):
        base = torch.arange(24.0).reshape(2, 3, 4).clone()
        part = base[:, 1:2].detach()
        whole = torch.ops.aten.slice_inverse(part, base, 1, 1, 2, 1)
        assert whole.tolist() == base.tolist() and whole._base is part
        smaller = whole._view_func(part, tensor_visitor_fn=lambda t: torch.zeros(2, 2))
        assert smaller.tolist() == [[0.0, 1.0], [2.0, 3.0]]
