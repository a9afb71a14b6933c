"""`_foreach_*` functions: the operator on each tensor of a list; and questions about dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd.ops.composite.foreach import _BINARY, _UNARY


def tensors() -> list[Any]:
    return [torch.tensor([0.25, 0.5]), torch.tensor([[0.75]])]


@pytest.mark.parametrize("name", _UNARY)
def test_unary_is_the_operator_on_each(name: str) -> None:
    given = tensors()
    results = getattr(torch, f"_foreach_{name}")(given)
    changed = tensors()
    assert getattr(torch, f"_foreach_{name}_")(changed) is None
    for x, result, own in zip(given, results, changed, strict=True):
        expected = getattr(torch, name)(x)
        assert torch.equal(result, expected)
        assert torch.equal(own, expected)


@pytest.mark.parametrize("name", _BINARY)
def test_binary_takes_one_for_all_or_one_for_each(name: str) -> None:
    others = [torch.tensor([2.0, 3.0]), torch.tensor([[0.5]])]
    for second in (others, [2.0, 0.5], 0.5):
        changed = tensors()
        results = getattr(torch, f"_foreach_{name}")(tensors(), second)
        getattr(torch, f"_foreach_{name}_")(changed, second)
        for i, (x, result, own) in enumerate(zip(tensors(), results, changed, strict=True)):
            other = second[i] if isinstance(second, list) else second
            operator = name
            if not isinstance(other, torch.Tensor):
                operator = {"maximum": "clamp_min", "minimum": "clamp_max"}.get(name, name)
            expected = getattr(torch, operator)(x, other)
            assert torch.equal(result, expected)
            assert torch.allclose(own, expected)


def test_factors_of_three_operands() -> None:
    ones = [torch.ones(2), torch.ones(1)]
    assert [r.tolist() for r in torch._foreach_addcmul(ones, ones, ones, value=2)] == [[3, 3], [3]]
    assert [r.tolist() for r in torch._foreach_addcdiv(ones, ones, ones, [1, 2])] == [[2, 2], [3]]
    assert [r.tolist() for r in torch._foreach_add(ones, ones, alpha=3)] == [[4, 4], [4]]
    torch._foreach_lerp_(ones, [torch.zeros(2), torch.zeros(1)], 0.5)
    assert [r.tolist() for r in ones] == [[0.5, 0.5], [0.5]]


def test_each_has_its_gradient() -> None:
    leaves = [x.requires_grad_() for x in tensors()]
    sum(r.sum() for r in torch._foreach_exp(leaves)).backward()
    for leaf in leaves:
        np.testing.assert_allclose(leaf.grad.numpy(), leaf.detach().exp().numpy())


def test_copies_norms_and_zeros() -> None:
    given = tensors()
    copies = torch._foreach_clone(given)
    torch._foreach_zero_(given)
    assert not any(x.any() for x in given)
    torch._foreach_copy_(given, copies)
    assert all(torch.equal(x, c) for x, c in zip(given, copies, strict=True))
    assert [n.item() for n in torch._foreach_norm(given, 1)] == [0.75, 0.75]
    assert [m.item() for m in torch._foreach_max(given)] == [0.5, 0.75]


def test_lists_of_other_lengths_and_empty_ones_are_refused() -> None:
    with pytest.raises(RuntimeError, match="must have at least one tensor"):
        torch._foreach_exp([])
    with pytest.raises(RuntimeError, match="same number of tensors"):
        torch._foreach_add(tensors(), [torch.ones(2)])


# -------------------------------------------------------------------------------------------------------------- dtypes


def test_dtypes_that_meet() -> None:
    assert torch.result_type(torch.tensor([1], dtype=torch.int32), 1.0) is torch.float32
    assert torch.result_type(torch.tensor(1.0, dtype=torch.float64), torch.ones(1)) is torch.float32
    assert torch.promote_types(torch.uint8, torch.int8) is torch.int16
    assert torch.promote_types(torch.complex64, torch.float64) is torch.complex128
    assert torch.can_cast(torch.int64, torch.float16)
    assert not torch.can_cast(torch.float16, torch.int64)


def test_limits() -> None:
    assert torch.finfo(torch.complex128).dtype == "float64"
    assert torch.finfo(torch.float16).max == 65504.0
    assert torch.iinfo(torch.uint8).max == 255
    with pytest.raises(TypeError, match="requires a floating point input type"):
        torch.finfo(torch.int64)
    with pytest.raises(TypeError, match="requires an integer input type"):
        torch.iinfo(torch.float32)


def test_a_python_function_on_every_element() -> None:
    x = torch.tensor([[1.0, 2.0]])
    assert x.apply_(lambda v: 2 * v).tolist() == [[2.0, 4.0]]
    assert x.map_(torch.tensor([[1.0, 5.0]]), lambda a, b: max(a, b)).tolist() == [[2.0, 5.0]]
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(1, requires_grad=True).apply_(lambda v: v)


def test_a_buffer_is_shared() -> None:
    memory = bytearray(4)
    x = torch.frombuffer(memory, dtype=torch.int16)
    x[1] = 1
    assert memory[2] == 1
    with pytest.raises(ValueError, match="multiple of element size"):
        torch.frombuffer(bytearray(3), dtype=torch.int16)


def test_binomial_repeats_with_the_seed() -> None:
    count, prob = torch.full((50,), 8.0), torch.full((50,), 0.25)
    drawn = [torch.binomial(count, prob, torch.Generator().manual_seed(3)) for _ in range(2)]
    assert torch.equal(*drawn)
    assert 0.5 < drawn[0].mean().item() < 3.5
