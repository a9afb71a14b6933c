"""Factories: values, dtypes, strides, sharing, refusals. Each call is made with retrograd and with torch."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")


@pytest.fixture
def double_default(torch):
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def described(tensor):
    return tensor.tolist(), str(tensor.dtype).rpartition(".")[2], tuple(tensor.shape)


CALLS = [
    # (expression, values, dtype)
    ("torch.zeros(2)", [0.0, 0.0], "float32"),
    ("torch.zeros((1, 2))", [[0.0, 0.0]], "float32"),
    ("torch.zeros([2], dtype=torch.int64)", [0, 0], "int64"),
    ("torch.zeros(size=(2,))", [0.0, 0.0], "float32"),
    ("torch.zeros(torch.Size([1]))", [0.0], "float32"),
    ("torch.zeros(())", 0.0, "float32"),
    ("torch.zeros(0)", [], "float32"),
    ("torch.zeros(2, dtype=torch.bool)", [False, False], "bool"),
    ("torch.zeros(1, dtype=int)", [0], "int64"),
    ("torch.zeros(1, dtype=float)", [0.0], "float64"),
    ("torch.ones(2, 1)", [[1.0], [1.0]], "float32"),
    ("torch.ones(1, dtype=torch.complex64)", [1 + 0j], "complex64"),
    ("torch.full((2,), 7)", [7, 7], "int64"),
    ("torch.full((2,), 7.5)", [7.5, 7.5], "float32"),
    ("torch.full((1,), True)", [True], "bool"),
    ("torch.full((1,), 1j)", [1j], "complex64"),
    ("torch.full((), 3)", 3, "int64"),
    ("torch.full((1,), 3, dtype=torch.float64)", [3.0], "float64"),
    ("torch.full((1,), torch.tensor(2.0))", [2.0], "float32"),
    ("torch.eye(2)", [[1.0, 0.0], [0.0, 1.0]], "float32"),
    ("torch.eye(1, 2, dtype=torch.int64)", [[1, 0]], "int64"),
    ("torch.eye(0)", [], "float32"),
    ("torch.arange(3)", [0, 1, 2], "int64"),
    ("torch.arange(3.0)", [0.0, 1.0, 2.0], "float32"),
    ("torch.arange(1, 6, 2)", [1, 3, 5], "int64"),
    ("torch.arange(5, 0, -2)", [5, 3, 1], "int64"),
    ("torch.arange(0, 1, 0.25)", [0.0, 0.25, 0.5, 0.75], "float32"),
    ("torch.arange(0)", [], "int64"),
    ("torch.arange(2, dtype=torch.float64)", [0.0, 1.0], "float64"),
    ("torch.arange(0.5, 3)", [0.5, 1.5, 2.5], "float32"),
    ("torch.arange(torch.tensor(2))", [0, 1], "int64"),
    ("torch.arange(start=1, end=3)", [1, 2], "int64"),
    ("torch.arange(1.0, 5.000001, 2.0, dtype=torch.int64)", [1, 3], "int64"),
    ("torch.arange(1.0, 5.000001, 2.0, dtype=torch.uint8)", [1, 3, 5], "uint8"),
    ("torch.arange(3, out=torch.zeros(0, dtype=torch.int32))", [0, 1, 2], "int32"),
    ("torch.logspace(2, 1.2, 2, dtype=torch.int64)", [100, 10], "int64"),
    ("torch.linspace(1j, 2, 3)", [1j, 1 + 0.5j, 2 + 0j], "complex64"),
    ("torch.linspace(0, 1, 3, out=torch.zeros(3, dtype=torch.float64))", [0.0, 0.5, 1.0], "float64"),
    ("torch.eye(1, out=torch.zeros(2))", [[1.0]], "float32"),
    ("torch.full((1,), -9, dtype=torch.uint8)", [247], "uint8"),
    ("torch.full_like(torch.zeros(1, dtype=torch.uint8), -9)", [247], "uint8"),
    ("torch.scalar_tensor(-5, dtype=torch.uint8)", 251, "uint8"),
    ("torch.empty_permuted((2, 0), (1, 0), device='cpu')", [[], []], "float32"),
    ("torch.randint_like(torch.zeros(1), 0, 1, device='cpu')", [0.0], "float32"),
    ("torch.normal(2.0, 0.0, (1,), device='cpu')", [2.0], "float32"),
    ("torch.linspace(0, 1, 5)", [0.0, 0.25, 0.5, 0.75, 1.0], "float32"),
    ("torch.linspace(0, 8, 5, dtype=torch.int64)", [0, 2, 4, 6, 8], "int64"),
    ("torch.linspace(3, 1, 3)", [3.0, 2.0, 1.0], "float32"),
    ("torch.linspace(3, 5, 1)", [3.0], "float32"),
    ("torch.linspace(3, 5, 0)", [], "float32"),
    ("torch.logspace(0, 2, 3)", [1.0, 10.0, 100.0], "float32"),
    ("torch.logspace(0, 3, 4, base=2)", [1.0, 2.0, 4.0, 8.0], "float32"),
    ("torch.scalar_tensor(3)", 3.0, "float32"),
    ("torch.scalar_tensor(3, dtype=torch.int64)", 3, "int64"),
    ("torch.zeros_like(torch.ones(2, dtype=torch.int64))", [0, 0], "int64"),
    ("torch.ones_like(torch.zeros(2), dtype=torch.float64)", [1.0, 1.0], "float64"),
    ("torch.full_like(torch.zeros(2), 3)", [3.0, 3.0], "float32"),
    ("torch.full_like(torch.zeros(2, dtype=torch.int64), 2.7)", [2, 2], "int64"),
    ("torch.tensor(3)", 3, "int64"),
    ("torch.tensor(3.0)", 3.0, "float32"),
    ("torch.tensor(True)", True, "bool"),
    ("torch.tensor(1j)", 1j, "complex64"),
    ("torch.tensor([])", [], "float32"),
    ("torch.tensor([[], []])", [[], []], "float32"),
    ("torch.tensor([1, 2.5])", [1.0, 2.5], "float32"),
    ("torch.tensor([True, 2])", [1, 2], "int64"),
    ("torch.tensor((1, 2))", [1, 2], "int64"),
    ("torch.tensor([1, 2], dtype=torch.float64)", [1.0, 2.0], "float64"),
    ("torch.tensor([1.7, -1.7], dtype=torch.int64)", [1, -1], "int64"),
    ("torch.tensor([0, 2], dtype=torch.bool)", [False, True], "bool"),
    ("torch.tensor(numpy.float64(3))", 3.0, "float64"),
    ("torch.tensor([numpy.float32(3)])", [3.0], "float32"),
    ("torch.tensor(numpy.array([1, 2], dtype='int32'))", [1, 2], "int32"),
    ("torch.tensor([torch.tensor(1), torch.tensor(2)])", [1, 2], "int64"),
    ("torch.tensor(range(3))", [0, 1, 2], "int64"),
    ("torch.as_tensor([1, 2])", [1, 2], "int64"),
    ("torch.as_tensor(3.5)", 3.5, "float32"),
    ("torch.as_tensor(numpy.ones(2), dtype=torch.float32)", [1.0, 1.0], "float32"),
    ("torch.asarray([1.0])", [1.0], "float32"),
    ("torch.from_numpy(numpy.arange(3))", [0, 1, 2], "int64"),
    ("torch.from_numpy(numpy.array(2.5))", 2.5, "float64"),
    ("torch.Tensor([1, 2])", [1.0, 2.0], "float32"),
    ("torch.Tensor((3,))", [3.0], "float32"),
    ("torch.ones(2).new_zeros(1, 2)", [[0.0, 0.0]], "float32"),
    ("torch.ones(2, dtype=torch.float64).new_ones(2)", [1.0, 1.0], "float64"),
    ("torch.ones(2, dtype=torch.int64).new_full((1,), 5)", [5], "int64"),
    ("torch.ones(2, dtype=torch.float64).new_tensor([1, 2])", [1.0, 2.0], "float64"),
]


@pytest.mark.parametrize(("expression", "values", "dtype"), CALLS, ids=[c[0] for c in CALLS])
def test_values_and_dtypes(torch, expression, values, dtype):
    result = eval(expression, {"torch": torch, "numpy": np})
    got_values, got_dtype, _ = described(result)
    assert got_dtype == dtype
    assert got_values == values
    assert result.is_leaf and not result.requires_grad and result._version in (0, 1)


@pytest.mark.parametrize(
    "expression",
    [
        "torch.tensor(1.0)", "torch.zeros(1)", "torch.ones(1)", "torch.empty(1)", "torch.eye(1)", "torch.arange(1.0)",
        "torch.linspace(0, 1, 2)", "torch.rand(1)", "torch.randn(1)", "torch.full((1,), 1.0)", "torch.scalar_tensor(1)",
        "torch.tensor([])", "torch.Tensor([1])", "torch.ones(1, dtype=torch.int64) * 1.5",
        "torch.ones(1, dtype=torch.int64).exp()", "torch.ones(1, dtype=torch.int64) / 2",
    ],
)  # fmt: skip
def test_the_default_dtype(torch, double_default, expression):
    assert eval(expression, {"torch": torch}).dtype is torch.float64


def test_the_default_complex_dtype(torch, double_default):
    assert torch.tensor(1j).dtype is torch.complex128
    assert (torch.ones(1) * 1j).dtype is torch.complex128


def test_set_default_dtype_refuses(torch):
    with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
        torch.set_default_dtype(torch.int64)
    with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
        torch.set_default_dtype("float64")
    assert torch.get_default_dtype() is torch.float32


@pytest.mark.parametrize(
    ("expression", "error", "phrase"),
    [
        ("torch.zeros(-1)", RuntimeError, "Dimension size must be non-negative"),
        ("torch.ones(2, -1)", RuntimeError, "Trying to create tensor with negative dimension -1"),
        ("torch.empty(-1)", RuntimeError, "Trying to create tensor with negative dimension -1"),
        ("torch.full((-1,), 1)", RuntimeError, "Trying to create tensor with negative dimension -1"),
        ("torch.eye(-1)", RuntimeError, "must be greater or equal to 0, got -1"),
        ("torch.eye(2, -1)", RuntimeError, "must be greater or equal to 0, got -1"),
        ("torch.zeros(2.5)", TypeError, "must be tuple of ints"),
        ("torch.zeros('a')", TypeError, "must be tuple of ints"),
        ("torch.zeros()", TypeError, "missing 1 required positional argument"),
        ("torch.zeros(2, foo=1)", TypeError, "unexpected keyword argument 'foo'"),
        ("torch.zeros(2, dtype='float32')", TypeError, "argument 'dtype' must be torch.dtype, not str"),
        ("torch.zeros(2, requires_grad=1)", TypeError, "argument 'requires_grad' must be bool, not int"),
        ("torch.zeros(2, device='nowhere')", RuntimeError, "device type at start of device string: nowhere"),
        ("torch.arange(0, 5, 0)", RuntimeError, "step must be nonzero"),
        ("torch.arange(5, 0)", RuntimeError, "upper bound and (lower bound|larger bound) inconsistent with step sign"),
        ("torch.arange(float('nan'))", RuntimeError, "unsupported range"),
        ("torch.arange(0, float('inf'))", RuntimeError, "unsupported range"),
        ("torch.arange(3, requires_grad=True)", RuntimeError, "Only Tensors of floating point and complex dtype can"),
        ("torch.linspace(0, 1, -1)", RuntimeError, "number of steps must be non-negative"),
        ("torch.logspace(0, 1, -1)", RuntimeError, "number of steps must be non-negative"),
        ("torch.tensor([1, 2], requires_grad=True)", RuntimeError, "Only Tensors of floating point and complex dtype"),
        ("torch.tensor([[1], [2, 3]])", ValueError, "expected sequence of length 1 at dim 1"),
        ("torch.tensor('a')", TypeError, "new\\(\\): invalid data type 'str'"),
        ("torch.tensor(None)", RuntimeError, "Could not infer dtype of NoneType"),
        ("torch.from_numpy([1])", TypeError, "expected np.ndarray \\(got list\\)"),
        ("torch.from_numpy(numpy.array(['a']))", TypeError, "can't convert np.ndarray of type"),
        (
            "torch.from_numpy(numpy.arange(3)[::-1])",
            ValueError,
            "At least one stride in the given numpy array is negative",
        ),
        (
            "torch.as_tensor(numpy.arange(3)[::-1])",
            ValueError,
            "At least one stride in the given numpy array is negative",
        ),
        ("torch.empty_strided((2, 3), (1,))", RuntimeError, "dimensionality of sizes"),
        ("torch.arange(0, 5, 0.5, dtype=torch.int64)", ValueError, "step must be nonzero"),
        ("torch.arange(1, dtype=torch.complex64)", NotImplementedError, "not implemented for 'ComplexFloat'"),
        ("torch.linspace(torch.ones(2), 1, 3)", RuntimeError, "only supports 0-dimensional start and end tensors"),
        ("torch.linspace(0, 1, 2.0)", TypeError, "invalid combination of arguments"),
        ("torch.full((1,), 300, dtype=torch.uint8)", RuntimeError, "without overflow"),
        ("torch.full((1,), 1j, dtype=torch.float32)", RuntimeError, "without overflow"),
        ("torch.zeros(1, dtype=torch.uint8).fill_(300)", RuntimeError, "without overflow"),
        ("torch.empty_permuted((2,), (0, 1))", RuntimeError, "does not match the length of the physical_layout"),
        ("torch.empty_permuted((2, 3), (0, 0))", RuntimeError, "Duplicate dim not allowed"),
        ("torch.multinomial(torch.tensor([-1.0, 1.0]), 2, True)", RuntimeError, "encountering probability entry < 0"),
        ("torch.ones_like(3)", TypeError, "argument 'input' \\(position 1\\) must be Tensor, not int"),
    ],
)
def test_refusals(torch, expression, error, phrase):
    with pytest.raises(error, match=phrase):
        eval(expression, {"torch": torch, "numpy": np})


# ---------------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"])
@pytest.mark.parametrize(
    "make",
    [
        lambda torch: torch.zeros(3, 2),
        lambda torch: torch.zeros(3, 2).t(),
        lambda torch: torch.zeros(2, 3, 4).permute(2, 0, 1),
        lambda torch: torch.zeros(4, 4)[::2, ::2],
    ],
    ids=["plain", "transposed", "permuted", "gaps"],
)
def test_like_keeps_the_order_of_dimensions(torch, name, make):
    x = make(torch)
    result = getattr(torch, name)(x)
    expected = (2, 1) if x.shape == (2, 2) else x.stride()
    assert result.shape == x.shape and result.stride() == expected


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "rand_like", "randn_like"])
def test_like_of_a_scalar(torch, name):
    assert getattr(torch, name)(torch.tensor(1.0)).shape == ()
    assert torch.normal(torch.tensor(1.0), 1.0).shape == ()


def test_empty_strided(torch):
    x = torch.empty_strided((2, 3), (1, 2))
    assert x.shape == (2, 3) and x.stride() == (1, 2)
    x.fill_(1)
    assert x.sum().item() == 6


def test_tensor_copies(torch):
    array = np.zeros(2)
    x = torch.tensor(array)
    array[0] = 5
    assert x.tolist() == [0.0, 0.0]


def test_tensor_of_a_tensor_warns_and_detaches(torch):
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        y = torch.tensor(x)
    assert not y.requires_grad and y.data_ptr() != x.data_ptr()


def test_from_numpy_shares_both_ways(torch):
    array = np.zeros((2, 3))
    x = torch.from_numpy(array)
    assert x.dtype is torch.float64 and x.stride() == (3, 1)
    array[0, 0] = 5
    assert x[0, 0].item() == 5.0
    x[1, 2] = 7
    assert array[1, 2] == 7.0
    assert torch.from_numpy(array.T).stride() == (1, 3)
    assert torch.from_numpy(array[:, ::2]).stride() == (3, 2)


def test_from_numpy_keeps_the_memory_alive(torch):
    x = torch.from_numpy(np.full(1000, 3.0))
    assert x.sum().item() == 3000.0


def test_from_numpy_of_what_cannot_be_written_to(torch):
    array = np.zeros(2)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        torch.from_numpy(array)


def test_gradients_through_a_shared_leaf(torch):
    array = np.array([1.0, 2.0])
    x = torch.from_numpy(array).requires_grad_()
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    assert array.tolist() == [1.0, 2.0]


def test_as_tensor(torch):
    x = torch.ones(2, requires_grad=True)
    assert torch.as_tensor(x) is x
    assert torch.as_tensor(x, dtype=torch.float64).requires_grad
    array = np.zeros(2)
    shared, copied = torch.as_tensor(array), torch.as_tensor(array, dtype=torch.float32)
    array[0] = 5
    assert shared.tolist() == [5.0, 0.0] and copied.tolist() == [0.0, 0.0]


def test_asarray(torch):
    x = torch.ones(2, requires_grad=True)
    assert torch.asarray(x) is x
    assert torch.asarray(x, copy=True).grad_fn is not None
    array = np.zeros(2)
    shared, copied = torch.asarray(array), torch.asarray(array, copy=True)
    array[0] = 5
    assert shared.tolist() == [5.0, 0.0] and copied.tolist() == [0.0, 0.0]
    assert torch.asarray([1.0], requires_grad=True).requires_grad


@pytest.mark.parametrize(
    "expression",
    ["torch.zeros(2, requires_grad=True)", "torch.tensor([1.0], requires_grad=True)",
     "torch.rand(2, requires_grad=True)", "torch.eye(2, requires_grad=True)",
     "torch.linspace(0, 1, 3, requires_grad=True)",
     "torch.full((2,), 1.0, requires_grad=True)", "torch.zeros_like(torch.ones(2), requires_grad=True)",
     "torch.arange(3.0, requires_grad=True)", "torch.ones(1, dtype=torch.complex64, requires_grad=True)"],
)  # fmt: skip
def test_requires_grad(torch, expression):
    x = eval(expression, {"torch": torch})
    assert x.requires_grad and x.is_leaf and x.grad_fn is None
    with torch.no_grad():
        assert eval(expression, {"torch": torch}).requires_grad


def test_factories_of_what_requires_grad_do_not(torch):
    x = torch.ones(2, requires_grad=True)
    for result in (torch.zeros_like(x), torch.ones_like(x), torch.full_like(x, 2), x.new_zeros(2), torch.rand_like(x)):
        assert not result.requires_grad


def test_out(torch):
    out = torch.empty(3)
    address = out.data_ptr()
    assert torch.zeros(3, out=out) is out
    assert out.tolist() == [0.0] * 3 and out.data_ptr() == address


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like", "rand_like", "full_like"])
def test_an_expanded_dimension_stays_where_it_stands(torch, name):
    like = getattr(torch, name)
    options = (3.0,) if name == "full_like" else ()
    assert like(torch.ones(2, 3).expand(2, 2, 3), *options).stride() == (6, 3, 1)
    assert like(torch.ones(3, 2).t().expand(2, 2, 3), *options).stride() == (6, 1, 2)


@pytest.mark.parametrize("name", ["linspace", "logspace", "arange", "range"])
@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_ranges_are_written_to_where_out_lies(torch, name):
    whole = torch.zeros(2, 4)
    args = {"linspace": (1, 4, 4), "logspace": (0, 3, 4, 2), "arange": (1, 5), "range": (1, 4)}[name]
    given = getattr(torch, name)(*args, out=whole[:, 1:3])
    values = [1, 2, 4, 8] if name == "logspace" else [1, 2, 3, 4]
    assert given.tolist() == [values[:2], values[2:]]
    assert whole.tolist() == [[0, *values[:2], 0], [0, *values[2:], 0]]


FACTORIES = {
    "zeros": (2,), "ones": (2,), "empty": (2,), "full": ((2,), 1.0), "eye": (2,), "arange": (2,), "linspace": (0, 1, 2),
    "rand": (2,), "randn": (2,), "randperm": (2,),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTORIES)
def test_what_is_said_beside_out_is_true_of_it(torch, name):
    make, args = getattr(torch, name), FACTORIES[name]
    with pytest.raises(RuntimeError, match=r"dtype Double does not match dtype of out parameter \(Float\)"):
        make(*args, dtype=torch.float64, out=torch.zeros(2))
    with pytest.raises(RuntimeError, match=r"device type meta does not match device type of out parameter .cpu."):
        make(*args, device="meta", out=torch.zeros(2))
    make(*args, dtype=torch.float32, device="cpu", out=torch.zeros(2))


def test_draws_are_of_the_dtype_of_out(torch):
    for name in ("rand", "randn"):
        torch.manual_seed(0)
        one = getattr(torch, name)(3, dtype=torch.complex64)
        torch.manual_seed(0)
        assert torch.equal(getattr(torch, name)(3, out=torch.zeros(3, dtype=torch.complex64)), one)
        with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
            getattr(torch, name)(3, out=torch.zeros(3, dtype=torch.int64))


def test_numbers_that_do_not_fit(torch):
    with pytest.raises(RuntimeError, match="value cannot be converted to type"):
        torch.full((2,), 1j, out=torch.zeros(2))
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        torch.randperm(300, dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="n cannot be greater than 2049 for Half type"):
        torch.randperm(2050, dtype=torch.float16)
    assert sorted(torch.randperm(256, dtype=torch.uint8).tolist()) == list(range(256))
    with pytest.raises(RuntimeError, match="uniform_ expects to-from <= std::numeric_limits"):
        torch.zeros(2).uniform_(-3e38, 3e38)
    with pytest.warns(UserWarning, match=r"to - 1 is out of bounds \[-\(2\^24\), 2\^24\]"):
        torch.zeros(2).random_(0, 2**25)
    assert torch.zeros(9, dtype=torch.uint16).random_(5, 7).int().add(1).div(2, rounding_mode="floor").eq(3).all()
    with pytest.raises(RuntimeError, match="kaiser_window is not implemented for sparse types"):
        torch.kaiser_window(5, layout=torch.sparse_coo)


def test_buffers(torch):
    memory = bytearray(8)
    for made in (torch.frombuffer(memory, dtype=torch.int32), torch.asarray(memory, dtype=torch.int32)):
        made[1] += 1
    assert memory[4] == 2
    with pytest.raises(ValueError, match="object does not implement Python buffer protocol"):
        torch.frombuffer([1, 2], dtype=torch.uint8)
    with pytest.warns(UserWarning, match="The given buffer is not writable"):
        assert torch.frombuffer(b"12", dtype=torch.uint8).tolist() == [49, 50]


def test_asarray_shares_or_refuses(torch):
    x = torch.ones(2)
    assert torch.asarray(x, copy=False).data_ptr() == x.data_ptr()
    assert torch.asarray(x, copy=True).data_ptr() != x.data_ptr()
    with pytest.raises(ValueError, match="with dtype 'Float' into dtype 'Double'"):
        torch.asarray(x, dtype=torch.float64, copy=False)
    with pytest.raises(ValueError, match="can't alias arbitrary sequence"):
        torch.asarray([1, 2], copy=False)
    with pytest.raises(RuntimeError, match="can't alias NumPy scalars"):
        torch.asarray(np.float64(0.5), copy=False)


@pytest.mark.filterwarnings("ignore:torch.asarray")
def test_asarray_keeps_the_history_unless_told(torch):
    x = torch.ones(2, requires_grad=True).clone()
    for copied in (None, True):
        assert torch.asarray(x, copy=copied).grad_fn is not None
        assert torch.asarray(x, copy=copied, requires_grad=True).grad_fn is not None
        assert not torch.asarray(x, copy=copied, requires_grad=False).requires_grad


@pytest.fixture
def deterministic(torch):
    torch.use_deterministic_algorithms(True)
    yield torch
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = True


def test_new_memory_is_filled_where_results_are_deterministic(deterministic):
    torch = deterministic
    like = torch.zeros(2)
    for made in (
        torch.empty(2), torch.empty(2, dtype=torch.complex64), torch.empty(2, dtype=torch.bfloat16),
        torch.empty_like(like), like.new_empty(2), torch.empty_strided((2, 2), (1, 2)),
        torch.empty_permuted((2, 2), (1, 0)),
        torch.empty(3, out=torch.zeros(1)), torch.zeros(2).resize_(4)[2:], torch.empty(2, device="cpu"),
    ):  # fmt: skip
        assert made.isnan().all()
    assert torch.empty(2, dtype=torch.int8).tolist() == [127, 127]
    assert torch.empty(2, dtype=torch.bool).tolist() == [True, True]
    assert torch.zeros(2).resize_(4)[:2].tolist() == [0, 0]
    torch.utils.deterministic.fill_uninitialized_memory = False
    assert torch.utils.deterministic.fill_uninitialized_memory is False


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_linspace_is_torchs_to_the_last_bit(torch, dtype):
    """Counted from both ends, with one rounding a point."""
    x = torch.linspace(-1, 1, 2000, dtype=getattr(torch, dtype))
    assert torch.equal(x, -x.flip(0))
    if torch is not retrograd:
        for start, end, steps in ((-1, 1, 2000), (0, 10, 101), (0.1, 0.9, 37), (0, 2 * math.pi, 50), (3, 3, 4)):
            ours = retrograd.linspace(start, end, steps, dtype=getattr(retrograd, dtype))
            assert ours.tolist() == torch.linspace(start, end, steps, dtype=getattr(torch, dtype)).tolist()
    if dtype == "float32":
        with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
            torch.linspace(0, 1e300, 3)


def test_lists_that_hold_themselves(torch):
    held = [0]
    held.append(held)
    for data in (held, [[1, 2], held]):
        with pytest.raises(TypeError, match="self-referential lists are incompatible"):
            torch.tensor(data)


def test_sequences_that_cannot_be_read(torch):
    class Closed:
        def __len__(self):
            return 3

        def __getitem__(self, index):
            raise TypeError

    with pytest.raises(ValueError, match="could not determine the shape of object type 'Closed'"):
        torch.tensor(Closed())


def test_arrays_of_other_libraries(torch):
    x = torch.arange(3.0)

    class Lent:
        def __dlpack__(self, **options):
            return x.__dlpack__(**options)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    capsule = torch.utils.dlpack.to_dlpack
    assert torch.asarray(capsule(x)).data_ptr() == torch.asarray(capsule(x), copy=False).data_ptr() == x.data_ptr()
    assert torch.as_tensor(Lent()).data_ptr() == torch.asarray(Lent()).data_ptr() == x.data_ptr()
    assert torch.asarray(capsule(x), copy=True).data_ptr() != x.data_ptr()
    assert torch.asarray(capsule(x), dtype=torch.double).dtype is torch.double
    assert torch.tensor(Lent()).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="can't alias tensor with dtype 'Float' into dtype 'Double'"):
        torch.asarray(capsule(x), dtype=torch.double, copy=False)


def test_older_constructors_take_no_device_with_a_tensor(torch):
    x = torch.ones(1)
    for make in (torch.Tensor, torch.FloatTensor):
        with pytest.raises(RuntimeError, match=r"torch\.Tensor\(tensor, device=device\) is not supported"):
            make(x, device="cpu")
    with pytest.raises(RuntimeError, match=r"tensor\.new\(tensor, device=device\) is not supported"):
        x.new(x, device="cpu")
    with pytest.raises(TypeError, match=r"type 'torch\.FloatTensor' is not an acceptable base type"):
        type("Own", (torch.FloatTensor,), {})


def test_what_factories_refuse(torch):
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        torch.ones(1).long().new_zeros(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="possible overflow"):
        torch.arange(1.2e-38, 3.4e38)
    with pytest.raises(RuntimeError, match="expects all tensors to have the same device"):
        torch.meshgrid(torch.ones(1), torch.ones(1, device="meta"), indexing="ij")
    for dtype, word in ((torch.bool, "Bool"), (torch.cfloat, "ComplexFloat")):
        with pytest.raises(NotImplementedError, match=f'"randperm" not implemented for \'{word}\''):
            torch.randperm(3, dtype=dtype)
    with pytest.raises(RuntimeError, match="n cannot be greater than 2049 for Half type"):
        torch.randperm(2050, out=torch.empty(0, dtype=torch.half))
    assert torch.randperm(300, dtype=torch.bfloat16).shape == (300,)
    with pytest.raises(RuntimeError, match="memory format option is only supported by strided tensors"):
        torch.zeros_like(torch.eye(2).to_sparse(), memory_format=torch.preserve_format)
    with pytest.raises(AttributeError, match="Can't get dim order on sparse type"):
        torch.eye(2).to_sparse().dim_order()


def test_ranges_warn_of_another_length(torch):
    out = torch.empty(5)
    with pytest.warns(UserWarning, match=r"The out tensor will be resized to a tensor of shape \(3,\)"):
        torch.arange(0, 3, out=out)
    assert out.tolist() == [0.0, 1.0, 2.0]


def test_strided_memory_of_any_dtype(torch):
    made = torch.ones(2).new_empty_strided((2, 3), (1, 2), dtype=torch.float64, device="cpu")
    assert made.stride() == (1, 2) and made.dtype is torch.float64
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's word on complex32
        assert torch.empty_strided((4, 3), (1, 5), dtype=torch.complex32).stride() == (1, 5)


def test_complex_numbers_beside_half(torch, clean_state):
    torch.set_default_dtype(torch.half)
    try:
        assert torch.full((2,), 1j).dtype is torch.complex64
    finally:
        torch.set_default_dtype(torch.float)


def test_nothing_is_drawn_of_any_dtype(torch):
    for dtype in (torch.int16, torch.bool):
        empty = torch.empty(0, dtype=dtype)
        assert torch.randn(0, dtype=dtype).dtype is torch.randn_like(empty).dtype is empty.normal_().dtype is dtype


def test_older_constructors_refuse_in_their_words(torch):
    with pytest.raises(TypeError, match=r"new\(\) received an invalid combination of arguments - got \(tuple, int\)"):
        torch.LongTensor((6, 0), 1)
