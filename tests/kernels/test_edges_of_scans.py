"""Scans, medians, histograms and searches at the edges of what they take, beside torch."""

from __future__ import annotations

import math
from typing import Any

import pytest

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([complex(-INF, 1), complex(-INF, 2), 3 + 0j], [complex(-INF, 0), complex(-INF, 0), 3 + 0j]),
        ([complex(NAN, 1), 1 + 2j], [complex(NAN, NAN)] * 2),
        ([complex(1, NAN), complex(-INF, 0)], [complex(NAN, NAN)] * 2),
        ([complex(INF, 1), complex(INF, 2), 3 + 0j], [complex(INF, 1), complex(INF, NAN), complex(NAN, NAN)]),
    ],
)
def test_logcumsumexp_of_what_is_not_finite(torch: Any, numbers: list[complex], expected: list[complex]) -> None:
    found = torch.logcumsumexp(torch.tensor(numbers, dtype=torch.complex128), 0).tolist()
    assert list(map(repr, found)) == list(map(repr, expected))


def test_logcumsumexp_of_complex_numbers(torch: Any) -> None:
    x = torch.randn(3, 7, dtype=torch.complex128)
    direct = x.exp().cumsum(1).log()
    assert torch.allclose(torch.logcumsumexp(x, 1).exp(), direct.exp())


def test_medians_of_integers_are_at_one_place(torch: Any) -> None:
    x = torch.tensor([[0, 0, 1, 0, -1, 0, 0, 1, 0], [2, 1, 2, 1, 2, 1, 2, 1, 2]])
    assert torch.equal(x.median(1).indices, x.nanmedian(1).indices)
    assert torch.equal(x.median(1).values, x.nanmedian(1).values)


def test_a_dimension_of_a_number(torch: Any) -> None:
    for name in ("cummax", "cummin"):
        with pytest.raises(IndexError, match=rf"{name}\(\): Expected reduction dim -1 or 0 for scalar but got 100"):
            getattr(torch, name)(torch.rand([]), 100)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.mode(t.ones(3), out=(t.ones(1).double(), t.ones(1).long())), "but got 'Double' for values"),
        (lambda t: t.cummax(t.ones(3), 0, out=(t.ones(3).int(), t.ones(3).long())), "scalar_type Float but found Int"),
        (lambda t: t.histogram(t.ones(3), 1, out=(t.ones(1).double(), t.ones(2))), "and hist tensor should have"),
        (lambda t: t.histogram(t.tensor(1.0), t.tensor(1.0)), "bins tensor should have one dimension, but got 0"),
        (lambda t: t.histogram(t.ones(2), 2, weight=t.ones(3)), "should have the same shape as the input tensor"),
        (lambda t: t.complex(t.ones(1), t.ones(1), out=t.ones(1)), "but got scalar type Float for argument"),
        (lambda t: t.index_select(t.ones(0, 3), 1, t.tensor([0, 5])), "out of DATA bounds, id=5 axis_dim=3"),
        (lambda t: t.index_select(t.tensor(1.0), 0, t.tensor([0, 1])), "Index to scalar can have only 1 value, got 2"),
        (lambda t: t.grid_sampler_2d(t.ones(5, 5, 5, 5), t.ones(1, 1, 4, 2), 0, 0, True), "same batch size"),
    ],
)
def test_refused(torch: Any, call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call(torch)


def test_searches_in_strided_memory_are_warned_of(torch: Any) -> None:
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="boundary tensor is non-contiguous"):
            torch.searchsorted(torch.arange(6.0)[::2], torch.arange(3.0))
    finally:
        torch.set_warn_always(False)


@pytest.mark.parity
@pytest.mark.parametrize("edge_order", [1, 2])
def test_slopes_are_torchs_to_the_last_bit(edge_order: int) -> None:
    theirs = pytest.importorskip("torch")
    import retrograd as ours

    values = theirs.randn(6, 5, generator=theirs.Generator().manual_seed(0)) * 1000
    places = theirs.tensor([0.1, 0.4, 0.7, 1.5, 1.6, 2.0])
    numbers, spots = ours.tensor(values.numpy()), ours.tensor(places.numpy())
    found = ours.gradient(numbers, spacing=(spots,), dim=0, edge_order=edge_order)
    expected = theirs.gradient(values, spacing=(places,), dim=0, edge_order=edge_order)
    assert found[0].tolist() == expected[0].tolist()


def test_hardshrink_compares_in_the_dtype(torch: Any) -> None:
    for dtype in (torch.float, torch.double, torch.bfloat16, torch.half):
        assert torch.tensor([1.0, 0.5, 0.3], dtype=dtype).hardshrink(0.3)[2] == 0


def test_frexp_writes_to_its_own_dtype(torch: Any) -> None:
    with pytest.raises(RuntimeError, match=r"torch\.frexp\(\) expects mantissa to have dtype float but got double"):
        torch.frexp(torch.ones(2), out=(torch.ones(2).double(), torch.ones(2).int()))
