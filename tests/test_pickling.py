"""Pickling: tensors and the small objects around them."""

from __future__ import annotations

import io
import pickle

import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")


def there_and_back(thing, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(thing, protocol))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "complex64", "float16", "uint8"])
def test_values_and_dtype(torch, dtype, protocol):
    x = torch.tensor([[0, 1], [2, 3]], dtype=getattr(torch, dtype))
    y = there_and_back(x, protocol)
    assert y.dtype is x.dtype and y.tolist() == x.tolist() and y.shape == x.shape
    assert y.data_ptr() != x.data_ptr()


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1, 1, 1)])
def test_odd_shapes(torch, shape):
    assert there_and_back(torch.ones(shape)).shape == shape


def test_requires_grad_stays(torch):
    x = torch.ones(2, requires_grad=True)
    y = there_and_back(x)
    assert y.requires_grad and y.is_leaf
    (y * 2).sum().backward()
    assert y.grad.tolist() == [2.0, 2.0] and x.grad is None


def test_grad_is_left_behind(torch):
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.ones(2)
    assert there_and_back(x).grad is None


def test_history_is_left_behind(torch):
    y = torch.ones(2, requires_grad=True) * 2
    z = there_and_back(y)
    assert z.tolist() == [2.0, 2.0] and z.is_leaf and z.grad_fn is None and z.requires_grad


def test_strides_stay(torch):
    assert there_and_back(torch.ones(3, 2).t()).stride() == (1, 2)


def test_a_loaded_tensor_can_be_written_to(torch):
    y = there_and_back(torch.ones(2))
    y.add_(1)
    assert y.tolist() == [2.0, 2.0] and y._version > 0


def test_own_attributes(torch):
    x = torch.ones(1)
    x.mine = "yes"
    y = there_and_back(x)
    assert getattr(y, "mine", None) == "yes"


def test_identity_inside_one_pickle(torch):
    x = torch.ones(1)
    a, b = there_and_back([x, x])
    assert a is b


def test_a_dict_of_parameters(torch):
    state = {"w": torch.ones(2, 2), "b": torch.zeros(2), "step": 3}
    buffer = io.BytesIO()
    pickle.dump(state, buffer)
    buffer.seek(0)
    loaded = pickle.load(buffer)
    assert loaded["w"].tolist() == [[1.0, 1.0], [1.0, 1.0]] and loaded["step"] == 3


def test_dtypes_are_singletons(torch):
    for name in ("float32", "float64", "int64", "uint8", "complex128"):
        dtype = getattr(torch, name)
        assert there_and_back(dtype) is dtype


def test_the_dtype_bool(torch):
    assert there_and_back(torch.bool) is torch.bool


def test_sizes_and_devices(torch):
    size = there_and_back(torch.Size([2, 3]))
    assert size == (2, 3) and isinstance(size, torch.Size)
    assert there_and_back(torch.device("cpu")) == torch.device("cpu")
    assert there_and_back(torch.device("cuda:1")).index == 1


def test_parameters():
    import retrograd.nn

    p = retrograd.nn.Parameter(retrograd.ones(2))
    q = there_and_back(p)
    assert type(q) is type(p) and q.requires_grad and q.tolist() == [1.0, 1.0]


def test_nothing_of_the_graph_in_the_pickle():
    y = retrograd.ones(2, requires_grad=True)
    for _ in range(10):
        y = y * 2
    assert len(pickle.dumps(y)) < 2 * len(pickle.dumps(retrograd.ones(2)))
