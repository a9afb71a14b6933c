"""`torch.testing` and `torch.random.fork_rng`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def test_close(torch: Any) -> None:
    close = torch.testing.assert_close
    close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.000001]))
    close(1.0, 1.0 + 1e-9)
    close([torch.ones(2), {"a": 1}], [torch.ones(2), {"a": 1}])
    close(np.ones(2), np.ones(2))
    close(torch.tensor([float("nan")]), torch.tensor([float("nan")]), equal_nan=True)
    close(torch.ones(2), torch.ones(2, dtype=torch.float64), check_dtype=False)
    close(torch.tensor([1.0]), torch.tensor([1.4]), rtol=0, atol=0.5)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda t: (t.tensor([1.0, 2.0]), t.tensor([1.0, 2.5])), r"(?s)Tensor-likes are not close!.*1 / 2 \(50.0%\)"),
        (lambda t: (t.tensor([1.0, 2.0]), t.tensor([1.0, 2.5])), r"absolute difference: 0.5 at index \(1,\) \(up to "),
        (lambda t: (t.tensor([1, 2]), t.tensor([1, 3])), "Tensor-likes are not equal!"),
        (lambda t: (t.ones(2), t.ones(3)), "'shape' do not match"),
        (lambda t: (t.ones(2), t.ones(2, dtype=t.float64)), "'dtype' do not match"),
        (lambda t: (t.tensor([float("nan")]), t.tensor([float("nan")])), "not close"),
        (lambda t: (1.0, 2.0), "Expected 2.0 but got 1.0"),
        (lambda t: ([t.ones(1)], [t.zeros(1)]), "item "),
        (lambda t: ([1], [1, 2]), "1 != 2"),
    ],
)
def test_not_close(torch: Any, make: Any, match: str) -> None:
    with pytest.raises(AssertionError, match=match):
        torch.testing.assert_close(*make(torch))


def test_wrong_use(torch: Any) -> None:
    with pytest.raises(ValueError, match=r"rtol.*atol"):
        torch.testing.assert_close(torch.ones(1), torch.ones(1), rtol=1.0)
    with pytest.raises(TypeError, match="No comparison pair"):
        torch.testing.assert_close(torch.ones(1), "a")
    with pytest.raises(AssertionError, match="own words"):
        torch.testing.assert_close(1, 2, msg="own words")


def test_make_tensor(torch: Any) -> None:
    make = torch.testing.make_tensor
    x = make((3, 4), dtype=torch.float32, device="cpu", low=2, high=3, requires_grad=True)
    assert x.requires_grad
    assert tuple(x.shape) == (3, 4)
    assert bool(((x >= 2) & (x <= 3)).all())
    assert not make((3, 4), dtype=torch.float64, device="cpu", noncontiguous=True).is_contiguous()
    assert bool((make(50, dtype=torch.int64, device="cpu", low=0, high=2, exclude_zero=True) == 1).all())
    for dtype in (torch.bool, torch.uint8, torch.complex64, torch.bfloat16):
        assert make((2,), dtype=dtype, device="cpu").dtype is dtype


def test_fork_rng(torch: Any) -> None:
    torch.manual_seed(3)
    with torch.random.fork_rng():
        inside = torch.rand(2)
    assert torch.rand(2).tolist() == inside.tolist()
