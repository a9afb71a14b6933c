"""Memory: set_, resize_, storages, unsafe splits, older tensor types, memory formats; as torch does it."""

from __future__ import annotations

from typing import Any

import pytest


def test_set(torch: Any) -> None:
    x, y = torch.zeros(2), torch.arange(6.0)
    assert x.set_(y) is x and x.tolist() == y.tolist()
    x[0] = 9
    assert y[0] == 9
    assert x.set_(y, 1, (2, 2), (2, 1)).tolist() == [[1, 2], [3, 4]]
    assert x.set_(y.storage(), 4, (2,)).tolist() == [4, 5]
    assert x.set_(y.untyped_storage()).tolist() == y.tolist()
    assert x.set_().shape == (0,)
    with pytest.raises(RuntimeError):
        x.set_(torch.zeros(1, dtype=torch.float64))


def test_set_moves_a_leaf_to_another_accumulator(torch: Any) -> None:
    p = torch.nn.Parameter(torch.ones(4))
    for n in (3, 2):
        with torch.no_grad():
            p.set_(p[1:])
            p.grad = None
        torch.cat((p, p)).sum().backward()
        assert p.grad.tolist() == [2] * n


def test_resize(torch: Any) -> None:
    x = torch.arange(4.0)
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]] and x._version == 1
    assert x.resize_(2, 2)._version == 1
    assert x.resize_((3,)).tolist() == [0, 1, 2] and x._version == 2
    x.resize_as_(torch.empty(2, 4))
    assert x.shape == (2, 4) and x.reshape(-1)[:4].tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        torch.ones(2, requires_grad=True).resize_(3)
    with pytest.raises(RuntimeError, match=r"negative dimension|overflow"):
        x.resize_(-1)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages(torch: Any) -> None:
    x = torch.arange(6.0)
    view = x[2:4]
    assert len(view.storage()) == 6 and view.storage()[1] == 1 and view.storage().tolist() == x.tolist()
    assert view.storage().data_ptr() == x.data_ptr() == x.untyped_storage().data_ptr()
    assert view.untyped_storage().nbytes() == 24
    view.storage()[3] = 30
    assert x[3] == 30
    assert x.storage().dtype == torch.float32


def test_as_strided_in_place(torch: Any) -> None:
    x = torch.arange(6.0)
    assert x.as_strided_((2, 2), (3, 1)).tolist() == [[0, 1], [3, 4]]
    y = torch.ones(6, requires_grad=True)
    z = y.clone()
    z.as_strided_((2, 2), (3, 1))
    z.sum().backward()
    assert y.grad.tolist() == [1, 1, 0, 1, 1, 0]


@pytest.mark.parametrize(
    "split", [lambda t: t.unsafe_split(1), lambda t: t.unsafe_split_with_sizes((1, 1, 1)), lambda t: t.unsafe_chunk(3)]
)
def test_unsafe_splits_may_be_written_to(torch: Any, split: Any) -> None:
    a = torch.ones(3, 2, requires_grad=True)
    first, second, _ = split(a + a)
    assert first._base is None
    first.mul_(second)
    first.sum().backward()
    assert a.grad.tolist() == [[4, 4], [4, 4], [0, 0]]


def test_comparisons_in_place(torch: Any) -> None:
    for name, expected in (
        ("eq_", [0, 1, 0]), ("ne_", [1, 0, 1]), ("lt_", [1, 0, 0]), ("le_", [1, 1, 0]), ("gt_", [0, 0, 1]),
        ("ge_", [0, 1, 1]), ("less_", [1, 0, 0]), ("greater_equal_", [0, 1, 1]), ("not_equal_", [1, 0, 1]),
    ):  # fmt: skip
        x = torch.tensor([1.0, 2.0, 3.0])
        assert getattr(x, name)(2).tolist() == expected and x.dtype == torch.float32 and x._version == 1
    y = torch.ones(2, requires_grad=True)
    z = y * 1
    z.eq_(1)
    z.sum().backward()
    assert y.grad.tolist() == [0, 0]


def test_isin(torch: Any) -> None:
    x = torch.tensor([[1, 2], [3, 4]])
    assert torch.isin(x, torch.tensor([2, 3])).tolist() == [[False, True], [True, False]]
    assert torch.isin(x, 4).tolist() == [[False, False], [False, True]]
    assert torch.isin(x, torch.tensor([2, 3]), invert=True).tolist() == [[True, False], [False, True]]


def test_older_types(torch: Any) -> None:
    x = torch.ones(2, 2)
    assert isinstance(x, torch.FloatTensor) and not isinstance(x, torch.DoubleTensor)
    for name in ("Bool", "Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double"):
        cls = getattr(torch, name + "Tensor")
        assert isinstance(x.type(cls), cls) and cls(2, 3).shape == (2, 3) and cls(2, 3).dtype == cls.dtype
    assert torch.LongTensor([1, 2]).tolist() == [1, 2] and torch.FloatTensor(torch.Size([2])).shape == (2,)
    assert torch.FloatTensor().shape == (0,)
    i = torch.tensor([1])
    assert i.new([2, 3]).tolist() == [2, 3] and i.new(3, 2).shape == (3, 2) and i.new(3).dtype == torch.int64


def test_memory_formats(torch: Any) -> None:
    x = torch.arange(120.0).reshape(2, 3, 4, 5)
    y = x.to(memory_format=torch.channels_last)
    assert y.stride() == (60, 1, 15, 3) and (x == y).all()
    assert y.is_contiguous(memory_format=torch.channels_last) and not y.is_contiguous()
    assert x.is_contiguous(memory_format=torch.contiguous_format)
    assert y.contiguous(memory_format=torch.channels_last).data_ptr() == y.data_ptr()
    assert y.contiguous().stride() == x.stride()
    assert y.clone().stride() == y.stride() and y.clone(memory_format=torch.contiguous_format).is_contiguous()
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        x[0].contiguous(memory_format=torch.channels_last)
    assert repr(torch.channels_last) == "torch.channels_last"


def test_constants(torch: Any) -> None:
    assert torch.inf > 1e300 and torch.nan != torch.nan and 3.14 < torch.pi < 3.15 and 2.71 < torch.e < 2.72
    assert torch.newaxis is None


# ------------------------------------------------------------------------------------------------- layout and class


def test_dim_order(torch: Any) -> None:
    assert torch.ones(2, 3, 4).dim_order() == (0, 1, 2)
    assert torch.ones(2, 3).t().dim_order() == (1, 0)
    assert torch.ones(2, 3, 4, 5).permute(2, 0, 3, 1).dim_order() == (1, 3, 0, 2)
    assert torch.ones(3, 4).expand(2, 3, 4).dim_order() == (0, 1, 2)
    image = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert image.dim_order(ambiguity_check=[torch.contiguous_format, torch.channels_last]) == (0, 2, 3, 1)
    with pytest.raises(RuntimeError, match="does not have unique dim order"):
        torch.ones(1, 3).dim_order(ambiguity_check=True)


def test_as_subclass(torch: Any) -> None:
    class Own(torch.Tensor):
        pass

    x = torch.ones(3, requires_grad=True)
    own = x.as_subclass(Own)
    assert type(own) is Own
    assert own._base is x
    (own * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="does not inherit from Tensor"):
        x.as_subclass(int)
