"""Tensor: its attributes, their setters and refusals, conversion to Python and NumPy, copying."""

from __future__ import annotations

import copy
from operator import add, ge, iadd, imul, lt, matmul, mul, sub, truediv

import numpy as np
import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")


# --------------------------------------------------------------------------------------------------------- what it is


def test_sizes(torch):
    x = torch.zeros(2, 3, 4)
    assert x.shape == (2, 3, 4) and isinstance(x.shape, torch.Size) and isinstance(x.shape, tuple)
    assert x.size() == (2, 3, 4) and x.size(1) == 3 and x.size(-1) == 4
    assert x.dim() == x.ndim == x.ndimension() == 3
    assert x.numel() == x.nelement() == 24
    assert x.stride() == (12, 4, 1) and x.stride(0) == 12 and x.stride(-1) == 1
    assert x.element_size() == x.itemsize == 4 and x.nbytes == 96
    assert x.is_contiguous() and not x.permute(2, 0, 1).is_contiguous()
    assert x.storage_offset() == 0 and x[1, 2].storage_offset() == 20
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.size(3)
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.stride(-4)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1), (5,)])
def test_strides_of_odd_shapes(torch, shape):
    x = torch.zeros(shape)
    assert x.shape == shape
    assert x.stride() == {(): (), (0,): (1,), (2, 0, 3): (3, 3, 1), (1, 1): (1, 1), (5,): (1,)}[shape]


def test_kinds(torch):
    x = torch.zeros(1)
    assert str(x.device) == "cpu" and x.is_cpu and not x.is_cuda and x.get_device() == -1
    assert x.layout is torch.strided and not x.is_sparse and not x.is_quantized
    assert x.is_floating_point() and not x.is_complex() and x.is_signed()
    assert torch.zeros(1, dtype=torch.complex64).is_complex()
    assert not torch.zeros(1, dtype=torch.uint8).is_signed()
    assert x.type() == "torch.FloatTensor" and torch.zeros(1, dtype=torch.int64).type() == "torch.LongTensor"
    assert x.is_same_size(torch.ones(1)) and not x.is_same_size(torch.ones(2))
    assert x.is_set_to(x) and not x.is_set_to(torch.zeros(1))


@pytest.mark.parametrize("name", ["shape", "dtype", "device", "grad_fn", "is_leaf", "_version", "output_nr", "name",
                                  "ndim", "retains_grad", "layout", "itemsize"])  # fmt: skip
def test_read_only(torch, name):
    x = torch.ones(2)
    before = getattr(x, name)
    with pytest.raises(AttributeError):
        setattr(x, name, 1)
    assert getattr(x, name) == before


def test_own_attributes(torch):
    x = torch.ones(1)
    x.mine = [1]
    assert x.mine == [1]
    assert not hasattr(x * 2, "mine")


# ----------------------------------------------------------------------------------------------------- requires_grad


def test_requires_grad(torch):
    x = torch.ones(1)
    assert not x.requires_grad and x.is_leaf and x.grad is None and x.grad_fn is None
    x.requires_grad = True
    assert x.requires_grad and x.is_leaf
    x.requires_grad = False
    assert not x.requires_grad
    assert x.requires_grad_() is x and x.requires_grad
    assert x.requires_grad_(False) is x and not x.requires_grad


@pytest.mark.parametrize("value", [1, "yes", None, 0])
def test_requires_grad_is_a_bool(torch, value):
    x = torch.ones(1)
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        x.requires_grad = value
    with pytest.raises(TypeError, match="must be bool"):
        x.requires_grad_(value)
    assert not x.requires_grad


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_integers_cannot_require_grad(torch, dtype):
    x = torch.ones(1, dtype=getattr(torch, dtype))
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can require gradients"):
        x.requires_grad_()
    with pytest.raises(RuntimeError, match="only Tensors of floating point and complex dtype can require gradients"):
        x.requires_grad = True
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        torch.ones(1, dtype=getattr(torch, dtype), requires_grad=True)
    x.requires_grad_(False)
    assert not x.requires_grad


def test_results_cannot_change_requires_grad(torch):
    y = torch.ones(1, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad = True
    with pytest.raises(RuntimeError, match=r"use var_no_grad = var.detach\(\)"):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad_(False)
    assert y.requires_grad_() is y and y.requires_grad_(True) is y
    assert y.requires_grad


# --------------------------------------------------------------------------------------------------------------- grad


def test_grad_can_be_set(torch):
    x = torch.ones(2, requires_grad=True)
    g = torch.tensor([3.0, 4.0])
    x.grad = g
    assert x.grad is g
    x.grad = None
    assert x.grad is None
    x.grad = g
    del x.grad
    assert x.grad is None
    plain = torch.ones(2)
    plain.grad = g  # also where no gradient is asked for
    assert plain.grad is g


@pytest.mark.parametrize(
    ("make", "error", "phrase"),
    [
        (lambda torch, x: torch.ones(3), RuntimeError, "assign a gradient of size '\\[3\\]' to a tensor of"),
        (lambda torch, x: torch.ones(1, 2), RuntimeError, "attempting to assign a gradient of size '\\[1, 2\\]'"),
        (lambda torch, x: torch.ones(2, dtype=torch.float64), RuntimeError, "assign a gradient with dtype"),
        (lambda torch, x: x, RuntimeError, "can't assign Variable as its own grad"),
        (lambda torch, x: 3, TypeError, "assigned grad expected to be a Tensor or None but got grad of type"),
        (lambda torch, x: [1.0, 2.0], TypeError, "assigned grad expected to be a Tensor or None but got grad of type"),
    ],
    ids=["size", "dims", "dtype", "itself", "number", "list"],
)
def test_wrong_grads(torch, make, error, phrase):
    x = torch.ones(2, requires_grad=True)
    x.grad = old = torch.zeros(2)
    with pytest.raises(error, match=phrase):
        x.grad = make(torch, x)
    assert x.grad is old


def test_grad_dies_with_its_tensor():
    import weakref

    x = retrograd.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    reference = weakref.ref(x.grad)
    del x
    assert reference() is None


# ------------------------------------------------------------------------------------------------------ detach and data


def test_detach(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    d = y.detach()
    assert not d.requires_grad and d.is_leaf and d.grad_fn is None and d is not y
    assert d.data_ptr() == y.data_ptr() and d.shape == y.shape
    d.add_(1)
    assert y._version == d._version == 1 and y.tolist() == [3.0, 3.0]
    assert y.requires_grad
    assert d.detach()._version == 1


def test_detach_in_place(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    assert y.detach_() is y
    assert not y.requires_grad and y.is_leaf and y.grad_fn is None
    x.grad = torch.ones(2)
    x.detach_()
    assert not x.requires_grad and x.grad is not None


def test_data(torch):
    x = torch.ones(2, requires_grad=True)
    d = x.data
    assert not d.requires_grad and d.data_ptr() == x.data_ptr() and d is not x
    d.add_(1)
    assert x._version == 0 and x.tolist() == [2.0, 2.0]


def test_data_can_be_set(torch):
    x = torch.ones(2, requires_grad=True)
    new = torch.zeros(3)
    x.data = new
    assert x.shape == (3,) and x.requires_grad and x.data_ptr() == new.data_ptr() and x._version == 0
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    x.grad = None
    x.data = torch.zeros(2, dtype=torch.float64)
    assert x.dtype is torch.float64
    with pytest.raises(TypeError, match="Variable data has to be a tensor"):
        x.data = 3
    with pytest.raises(RuntimeError, match="must be floating point or complex dtype"):
        x.data = torch.tensor([1, 2])
    assert x.dtype is torch.float64


def test_leaves(torch):
    x = torch.ones(1, requires_grad=True)
    assert x.is_leaf and torch.ones(1).is_leaf and (torch.ones(1) * 2).is_leaf
    assert not (x * 2).is_leaf and (x * 2).detach().is_leaf
    assert (x > 0).is_leaf and not (x > 0).requires_grad
    assert not x.clone().is_leaf


def test_output_nr(torch):
    x = torch.ones(3, 2, requires_grad=True)
    assert x.output_nr == 0 and (x * 2).output_nr == 0
    assert [t.output_nr for t in x.unbind(0)] == [0, 1, 2]


def test_versions(torch):
    x = torch.zeros(2)
    assert x._version == 0
    x.add_(1)
    x[0] = 3
    x.zero_()
    assert x._version == 3
    assert (x + 1)._version == 0
    assert x.clone()._version == 0


# ---------------------------------------------------------------------------------------------------------- to Python


def test_item(torch):
    for value, kind in ((3, int), (2.5, float), (True, bool), (1 + 2j, complex)):
        for data in (value, [value], [[value]]):
            item = torch.tensor(data).item()
            assert item == value and type(item) is kind
    for shape in ((2,), (0,)):
        with pytest.raises(RuntimeError, match=f"a Tensor with {shape[0]} elements cannot be converted to Scalar"):
            torch.zeros(shape).item()
    assert torch.tensor(1.5, requires_grad=True).item() == 1.5


@pytest.mark.parametrize("data", [3, 2.5, True, [1, 2], [[1.5], [2.5]], [], [[], []], [[[True]]], [1j]])
def test_tolist(torch, data):
    assert torch.tensor(data).tolist() == data
    assert type(torch.tensor(data).tolist()) is type(data)


def test_bool(torch):
    assert torch.tensor(1.0) and not torch.tensor([[0]]) and torch.tensor(True) and torch.tensor(float("nan"))
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        bool(torch.ones(2))
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with no values is ambiguous"):
        bool(torch.ones(0))


def test_numbers(torch):
    assert int(torch.tensor(-1.7)) == -1 and int(torch.tensor([True])) == 1
    assert float(torch.tensor(3)) == 3.0 and complex(torch.tensor(2)) == 2 + 0j
    assert float(torch.tensor(3 + 0j)) == 3.0 and int(torch.tensor(3 + 0j)) == 3
    for convert in (int, float):
        with pytest.raises(RuntimeError, match="without overflow"):
            convert(torch.tensor(1 + 2j))
    for convert in (int, float, complex):
        with pytest.raises(
            (RuntimeError, ValueError, TypeError), match=r"only one element tensors|cannot be converted"
        ):
            convert(torch.ones(2))
    with pytest.raises(ValueError):
        int(torch.tensor(float("nan")))
    with pytest.raises(OverflowError):
        int(torch.tensor(float("inf")))


def test_index(torch):
    assert ["a", "b", "c"][torch.tensor(1)] == "b"
    assert list(range(torch.tensor([3]))) == [0, 1, 2]
    assert torch.tensor(True).__index__() == 1
    for bad in (torch.tensor(1.0), torch.tensor([1, 2]), torch.tensor(1j)):
        with pytest.raises(TypeError, match="only integer tensors of a single element can be converted to an index"):
            [1, 2][bad]


def test_len_and_iteration(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    assert len(x) == 2 and len(torch.zeros(0, 3)) == 0
    rows = list(x)
    assert [r.tolist() for r in rows] == [[1.0, 2.0], [3.0, 4.0]]
    sum(r.sum() * n for n, r in enumerate(rows, 1)).backward()
    assert x.grad.tolist() == [[1.0, 1.0], [2.0, 2.0]]
    assert list(torch.zeros(0)) == []
    first, second = torch.tensor([5, 6])
    assert (first.item(), second.item()) == (5, 6)
    with pytest.raises(TypeError, match="len\\(\\) of a 0-d tensor"):
        len(torch.tensor(1))
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(torch.tensor(1))
    assert [r.tolist() for r in reversed(torch.tensor([1, 2]))] == [2, 1]


def test_contains(torch):
    x = torch.tensor([1.0, 2.0])
    assert 1 in x and 2.0 in x and torch.tensor(1.0) in x and 5 not in x and True in x
    assert torch.tensor([1.0, 5.0]) in x
    for bad in ("a", [1.0], None):
        with pytest.raises(RuntimeError, match="only supports Tensor or scalar, but you passed in a"):
            bad in x


def test_hash_is_identity(torch):
    x, y = torch.ones(2), torch.ones(2)
    table = {x: "x", y: "y"}
    assert table[x] == "x" and table[y] == "y" and len({x, y, x}) == 2
    before = hash(x)
    x.add_(1)
    assert hash(x) == before


@pytest.mark.parametrize(
    ("data", "spec", "text"),
    [
        (1.5, ".3f", "1.500"),
        (3, "d", "3"),
        (3, "05d", "00003"),
        (True, "", "True"),
        (2.0, "", "2.0"),
        (1.5, "e", "1.500000e+00"),
    ],
)
def test_format(torch, data, spec, text):
    assert format(torch.tensor(data), spec) == text


def test_format_of_several(torch):
    x = torch.tensor([1.0])
    assert f"{x}" == str(x) == "tensor([1.])"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{torch.ones(2):.2f}"


def test_repr_shows_autograd(torch):
    x = torch.tensor([1.0], requires_grad=True)
    assert repr(x) == "tensor([1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2.], grad_fn=<MulBackward0>)"
    assert repr((x * 2).detach()) == "tensor([2.])"


@pytest.mark.parametrize("other", [None, "a", [1.0, 1.0], object()])
def test_strangers(torch, other):
    x = torch.ones(2)
    assert (x == other) is False and (x != other) is True
    for operation in (add, sub, mul, truediv, lt, ge, iadd, imul):
        with pytest.raises(TypeError):
            operation(x, other)
    assert x.tolist() == [1.0, 1.0] and x._version == 0


def test_a_stranger_in_a_matrix_product(torch):
    with pytest.raises(TypeError):
        matmul(torch.ones(2), "a")


def test_a_stranger_may_answer(torch):
    class Stranger:
        def __radd__(self, other):
            return "radd"

        def __rmul__(self, other):
            return "rmul"

    assert torch.ones(2) + Stranger() == "radd"
    assert torch.ones(2) * Stranger() == "rmul"


# ----------------------------------------------------------------------------------------------------------- to NumPy


def test_numpy_shares_memory(torch):
    x = torch.zeros(2)
    array = x.numpy()
    array[0] = 5
    assert x.tolist() == [5.0, 0.0]
    x.add_(1)
    assert array.tolist() == [6.0, 1.0]
    assert x.t().numpy().shape == (2,)


def test_numpy_refuses_what_requires_grad(torch):
    x = torch.ones(2, requires_grad=True)
    for tensor in (x, x * 2):
        with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
            tensor.numpy()
        with pytest.raises(RuntimeError, match="requires grad"):
            np.asarray(tensor)
    assert x.detach().numpy().tolist() == [1.0, 1.0]
    assert x.numpy(force=True).tolist() == [1.0, 1.0]
    with torch.no_grad():
        assert (x * 2).numpy().tolist() == [2.0, 2.0]


def test_array_protocol(torch):
    x = torch.tensor([1.0, 2.0])
    assert np.asarray(x).dtype == np.float32
    assert np.shares_memory(np.asarray(x), x.numpy())
    copied = np.array(x)
    copied[0] = 9
    assert x.tolist() == [1.0, 2.0]
    assert np.asarray(x, dtype=np.float64).dtype == np.float64


def test_numpy_on_the_left(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = np.float64(3) * x
    assert isinstance(y, torch.Tensor) and y.requires_grad and y.tolist() == [3.0, 6.0]


# -------------------------------------------------------------------------------------------------------------- copying


def test_deepcopy_of_a_leaf(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.grad = torch.tensor([3.0, 4.0])
    x.mine = [1]
    y = copy.deepcopy(x)
    assert y is not x and y.requires_grad and y.is_leaf and y.tolist() == [1.0, 2.0]
    assert y.data_ptr() != x.data_ptr()
    assert y.grad.tolist() == [3.0, 4.0] and y.grad is not x.grad and y.grad.data_ptr() != x.grad.data_ptr()
    assert y.mine == [1] and y.mine is not x.mine
    (y * 2).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]


def test_deepcopy_keeps_identity_inside_one_call(torch):
    x = torch.ones(1, requires_grad=True)
    a, b = copy.deepcopy([x, x])
    assert a is b


def test_deepcopy_keeps_strides_and_dtype(torch):
    x = torch.zeros(3, 2, dtype=torch.float64).t()
    y = copy.deepcopy(x)
    assert y.stride() == (1, 2) and y.dtype is torch.float64 and not y.requires_grad


def test_deepcopy_refuses_results(torch):
    y = torch.ones(1, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match=r"Only Tensors created explicitly by the user \(graph leaves\)"):
        copy.deepcopy(y)
    assert copy.deepcopy(y.detach()).item() == 2.0


def test_shallow_copy_shares_memory(torch):
    x = torch.ones(2)
    y = copy.copy(x)
    assert y is not x and y.data_ptr() == x.data_ptr()


# ------------------------------------------------------------------------------------------------- promotion, in short


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ("torch.ones(2, dtype=torch.int64)", "2", "int64"),
        ("torch.ones(2, dtype=torch.int64)", "2.0", "float32"),
        ("torch.ones(2, dtype=torch.float64)", "2.0", "float64"),
        ("torch.ones(2, dtype=torch.float16)", "2.0", "float16"),
        ("torch.ones(2, dtype=torch.float16)", "torch.tensor(2.0, dtype=torch.float64)", "float16"),
        ("torch.ones(2, dtype=torch.int64)", "torch.tensor(2.0, dtype=torch.float16)", "float16"),
        ("torch.ones(2, dtype=torch.int32)", "torch.ones(2, dtype=torch.int64)", "int64"),
        ("torch.ones(2, dtype=torch.float32)", "torch.ones(2, dtype=torch.float64)", "float64"),
        ("torch.ones(2, dtype=torch.bool)", "1", "int64"),
        ("torch.ones(2, dtype=torch.uint8)", "torch.ones(2, dtype=torch.int8)", "int16"),
        ("torch.ones(2)", "1j", "complex64"),
    ],
)
def test_promotion(torch, left, right, result):
    a, b = eval(left, {"torch": torch}), eval(right, {"torch": torch})
    assert (a * b).dtype is getattr(torch, result)
    assert (b * a).dtype is getattr(torch, result)


def test_subclass_of_nothing_strange():
    """An AutogradMeta appears only when something needs it."""
    x = retrograd.ones(2)
    assert x._grad_meta_ is None and (x * 2)._grad_meta_ is None and x.detach()._grad_meta_ is None
    x.requires_grad
    x.grad
    assert x._grad_meta_ is None
    x.requires_grad_(False)
    assert x._grad_meta_ is None
    x.requires_grad_()
    assert x._grad_meta_ is not None


def test_deepcopy_keeps_views_on_one_memory(torch):
    base = torch.zeros(4)
    for first, second in ((base, base[1:3]), (base[1:3], base)):
        copies = copy.deepcopy((first, second))
        copied_base, copied_view = copies if first is base else copies[::-1]
        copied_view[0] = 5.0
        assert copied_base.tolist() == [0.0, 5.0, 0.0, 0.0]
        assert base.tolist() == [0.0] * 4
    assert copy.deepcopy(torch.ones(3)[::2]).stride() == (2,)


def test_a_number_may_come_first(torch):
    x = torch.tensor([2, 4])
    assert torch.add(1, x).tolist() == [3, 5] and torch.sub(1, x).tolist() == [-1, -3]
    assert torch.mul(2.5, x).tolist() == [5.0, 10.0] and torch.div(1, x).tolist() == [0.5, 0.25]
    assert (7 // x).tolist() == [3, 1] and (7 // x).dtype == torch.int64
    assert (7 // torch.tensor([2], dtype=torch.int32)).dtype == torch.int32
    with pytest.raises(TypeError, match="must be Tensor, not str"):
        torch.add("a", x)
