"""``torch._check`` and its like."""

from __future__ import annotations

from typing import Any

import pytest

CHECKS = {
    "_check": RuntimeError, "_check_index": IndexError, "_check_value": ValueError, "_check_type": TypeError,
    "_check_not_implemented": NotImplementedError,
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_conditions(torch: Any, name: str) -> None:
    check = getattr(torch, name)
    assert check(True) is None
    with pytest.raises(CHECKS[name], match="Expected cond to be True, but got False"):
        check(False)
    with pytest.raises(CHECKS[name], match=r"tensor\(\[0, 1\]\)"):
        check(False, lambda: torch.arange(2))
    for wrong in (1, "x", torch.tensor(True)):
        with pytest.raises(TypeError, match="cond must be a bool"):
            check(wrong)
    with pytest.raises(TypeError, match="message must be a callable"):
        check(False, "no function")


@pytest.mark.filterwarnings("ignore:_check_is_size")
def test_conditions_of_tensors(torch: Any) -> None:
    assert torch._check_tensor_all(torch.tensor([True, True])) is None
    with pytest.raises(RuntimeError, match="Expected cond to be True"):
        torch._check_tensor_all(torch.tensor([True, False]))
    with pytest.raises(ValueError, match="x"):
        torch._check_with(ValueError, False, lambda: "x")
    with pytest.raises(TypeError, match="cond must be a tensor"):
        torch._check_tensor_all(True)
    with pytest.raises(TypeError, match=r"must have dtype torch\.bool"):
        torch._check_tensor_all(torch.ones(1))
    assert torch._check_is_size(3, max=3) is None
    with pytest.raises(RuntimeError):
        torch._check_is_size(-1)
    with pytest.raises(AssertionError, match="hm"):
        torch._assert(torch.tensor(False), "hm")


def test_conditions_of_one_element(torch: Any) -> None:
    assert torch._assert_async(torch.tensor([0.5])) is None
    for wrong, message in (
        (torch.tensor([]), "with no values is ambiguous"),
        (torch.ones(2), "with more than one value is ambiguous"),
        (torch.tensor(0), "Expected Tensor with single nonzero value, but got zero"),
    ):
        with pytest.raises(RuntimeError, match=message):
            torch._assert_async(wrong)
    with pytest.raises(RuntimeError, match="hi"):
        torch._assert_async(torch.tensor(0), "hi")
