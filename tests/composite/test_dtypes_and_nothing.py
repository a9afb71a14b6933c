"""Dtypes that do not go together or that an operator does not know, and operands of no elements."""

from __future__ import annotations

import importlib
import math

import pytest


@pytest.mark.parametrize("name", ["remainder", "fmod", "floor_divide"])
def test_nothing_may_be_divided_by_zero(torch, name):
    nothing = torch.ones(0, dtype=torch.int64)
    operator = getattr(torch, name)
    assert operator(nothing, 0).shape == operator(nothing, torch.tensor(0)).shape == (0,)
    assert getattr(nothing, name + "_")(0) is nothing
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        operator(torch.ones(1, dtype=torch.int64), 0)


def test_cross_entropy_of_nothing(torch):
    functional = importlib.import_module(f"{torch.__name__}.nn.functional")
    labels = torch.zeros(0, dtype=torch.int64)
    assert math.isnan(functional.cross_entropy(torch.ones(0, 3), labels))
    assert functional.cross_entropy(torch.ones(0, 3), labels, reduction="sum") == 0
    assert functional.cross_entropy(torch.ones(0, 3), labels, reduction="none").shape == (0,)
    for shape in ((0, 3), (3, 0), (3, 0, 2)):
        for smoothing in (0.0, 0.1):
            loss = functional.cross_entropy(torch.ones(shape), torch.ones(shape), label_smoothing=smoothing)
            assert math.isnan(loss), (shape, smoothing)
    assert functional.cross_entropy(torch.ones(3, 0), torch.ones(3, 0), reduction="none").tolist() == [0.0] * 3


def test_isin_knows_numbers_of_one_order(torch):
    values = torch.tensor([1, 2])
    assert torch.isin(values, torch.tensor([1.0, 5.0])).tolist() == [True, False]
    assert torch.isin(torch.tensor([1.5, 2.0]), torch.tensor([1, 2])).tolist() == [False, True]
    assert torch.isin(values.to(torch.int8), 2.0).tolist() == [False, True]
    for other in (True, 1j, torch.tensor([True]), torch.tensor([1j])):
        with pytest.raises(RuntimeError, match=r"Unsupported input type encountered for isin\(\)"):
            torch.isin(values, other)
        with pytest.raises(RuntimeError, match=r"Unsupported input type encountered for isin\(\)"):
            torch.isin(other, values)


def test_cross_takes_one_dtype(torch):
    x, y = torch.tensor([1, 2, 3]), torch.tensor([1.0, 0.0, 2.0])
    for cross in (torch.linalg.cross, lambda a, b: torch.cross(a, b, dim=0)):
        assert cross(x, x * 2).tolist() == [0, 0, 0]
        with pytest.raises(RuntimeError, match="expected scalar type Long but found Float"):
            cross(x, y)
        with pytest.raises(NotImplementedError, match="\"cross\" not implemented for 'Bool'"):
            cross(x > 0, x > 0)


def test_vander_of_integers(torch):
    """In int64, whatever they were: the powers are products."""
    x = torch.tensor([3, 4], dtype=torch.int8)
    result = torch.vander(x, 6)
    assert result.dtype == torch.int64 and result.tolist() == [[243, 81, 27, 9, 3, 1], [1024, 256, 64, 16, 4, 1]]
    assert torch.linalg.vander(x, N=6).tolist() == result.flip(1).tolist()
    assert torch.vander(x > 0, 0).dtype == torch.int64
    for dtype in (torch.bool, torch.float16):
        with pytest.raises(RuntimeError, match=r"linalg\.vander supports floating point, complex, and integer tensors"):
            torch.linalg.vander(x.to(dtype))


def test_reductions_into_places_that_have_no_meaning(torch):
    flags, places = torch.tensor([True, False, True]), torch.tensor([0, 1, 1])
    with pytest.raises(NotImplementedError, match="_reduce_mean\" not implemented for 'Bool'"):
        flags.scatter_reduce(0, places, flags, "mean")
    assert flags.scatter_reduce(0, places, flags, "amax").tolist() == [True, True, True]
    numbers = torch.tensor([1j, 2.0, 3.0])
    for reduce in ("amax", "amin"):
        with pytest.raises(NotImplementedError, match=f"_{reduce}\" not implemented for 'ComplexFloat'"):
            numbers.scatter_reduce(0, places, numbers, reduce)
    for values in (flags, numbers):
        with pytest.raises(NotImplementedError, match="index_"):
            values.index_reduce(0, places, values, "prod")
