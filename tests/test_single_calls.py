"""What single calls give and refuse: facts of torch that belong to no family of operators."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest


@pytest.mark.parametrize(
    ("name", "numbers", "dtype", "value"),
    [
        ("add", (1, 2), "int64", 3), ("add", (1, 2.5), "float32", 3.5), ("add", (True, True), "bool", True),
        ("add", (True, 2), "int64", 3), ("sub", (3, 2j), "complex64", 3 - 2j), ("mul", (2**40, 3), "int64", 3 * 2**40),
        ("div", (3, 2), "float32", 1.5), ("true_divide", (1, 0), "float32", float("inf")),
        ("floor_divide", (7, 2), "int64", 3), ("multiply", (3.5, 2), "float32", 7.0),
    ],
)  # fmt: skip
def test_two_numbers(torch: Any, name: str, numbers: tuple[Any, Any], dtype: str, value: Any) -> None:
    result = getattr(torch, name)(*numbers)
    assert result.dtype == getattr(torch, dtype)
    assert result.shape == ()
    assert result.item() == value


def test_two_numbers_and_more(torch: Any) -> None:
    assert torch.add(1, 2, alpha=4).item() == 9
    assert torch.div(7, 2, rounding_mode="floor").dtype == torch.int64
    out = torch.zeros((), dtype=torch.int32)
    assert torch.add(1, 2, out=out) is out
    assert out.item() == 3
    with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with a bool tensor"):
        torch.sub(True, 2)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.floor_divide(1, 0)
    with pytest.raises(TypeError, match=r"mul\(\): argument 'other' \(position 2\) must be Tensor, not str"):
        torch.mul(1, "a")
    for name in ("remainder", "bitwise_and"):
        with pytest.raises(TypeError):
            getattr(torch, name)(3, 2)


@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
def test_memory_read_as_a_dtype_has_no_gradient(torch: Any, dtype: str) -> None:
    x = torch.ones(2, 4, requires_grad=True) * 2
    seen = x.view(getattr(torch, dtype))
    assert not seen.requires_grad
    assert seen.data_ptr() == x.data_ptr()


def test_histc_of_equal_values(torch: Any) -> None:
    for value, place in ((2.0, 2), (1e30, 2), (-1e30, 2), (3.4028234663852886e38, 3), (-3.4028234663852886e38, 0)):
        counts = torch.histc(torch.tensor([value] * 3), bins=4)
        assert counts.tolist() == [3.0 if i == place else 0.0 for i in range(4)]


def test_refused_ranges_of_histograms(torch: Any) -> None:
    with pytest.raises(RuntimeError, match="max must be larger than min"):
        torch.histc(torch.tensor([1, 2]), bins=4, min=5, max=1)
    with pytest.raises(RuntimeError, match=r"range of \[1, inf\] is not finite"):
        torch.histc(torch.tensor([1.0, float("inf")]), bins=4)
    with pytest.raises(RuntimeError, match="bins must be > 0, but got 0"):
        torch.histc(torch.tensor([1.0]), bins=0)
    with pytest.raises(RuntimeError, match="min should not exceed max, but got min 3 max 1"):
        torch.histogram(torch.ones(2), bins=3, range=(3, 1))
    with pytest.raises(RuntimeError, match=r"range .-inf, 1. is not finite"):
        torch.histogram(torch.tensor([1.0, -float("inf")]), bins=3)


def test_histogram_of_points_without_coordinates(torch: Any) -> None:
    hist, edges = torch.histogramdd(torch.zeros(5, 0), 4)
    assert hist.tolist() == 0
    assert len(edges) == 0
    assert torch.histogramdd(torch.zeros(5, 0), 4, density=True, weight=torch.ones(5)).hist.isnan()


def test_refused_calls(torch: Any) -> None:
    with pytest.raises(RuntimeError, match=r"quantile\(\) q must be in the range \[0, 1\] but got -1"):
        torch.quantile(torch.ones(3), -1.0)
    with pytest.raises(RuntimeError, match="nonzero does not support the out kwarg when as_tuple is True"):
        torch.nonzero(torch.ones(2, 2), as_tuple=True, out=torch.ones(2, 2).long())
    with pytest.raises(ValueError, match="step is 0 but must be > 0"):
        torch.ops.aten.unfold_backward(torch.ones(2, 3), [6], 0, 3, 0)
    with pytest.raises(RuntimeError, match="size is -1 but must be >= 0"):
        torch.ops.aten.unfold_backward(torch.ones(2, 3), [6], 0, -1, 1)
    with pytest.raises(RuntimeError, match="Stride calculation overflowed"):
        torch.empty(0, 4, 2**61)
    with pytest.raises(RuntimeError, match="Stride calculation overflowed"):
        torch.ones(3).resize_(0, 4, 2**61)
    out = torch.zeros(0, dtype=torch.int64)
    assert torch.nonzero(torch.tensor([0, 1]), out=out) is out
    assert out.tolist() == [[1]]


@pytest.mark.parametrize("dense", ["float32", "int64", "uint8"])
def test_a_sparse_tensor_of_bytes_is_subtracted(torch: Any, dense: str) -> None:
    """``-1 * other`` of bytes is 255 * other: it has to become the dtype of the result first."""
    bytes_ = torch.tensor([[1, 0], [0, 3]], dtype=torch.uint8).to_sparse()
    whole = torch.full((2, 2), 4, dtype=getattr(torch, dense))
    assert torch.sub(whole, bytes_).tolist() == [[3, 4], [4, 1]]
    assert whole.clone().sub_(bytes_, alpha=1).tolist() == [[3, 4], [4, 1]]
    assert torch.sub(whole.to_sparse(), bytes_).to_dense().tolist() == [[3, 4], [4, 1]]


@pytest.mark.parametrize("name", ["cat", "stack", "hstack", "vstack", "dstack", "column_stack", "concat"])
def test_joined_numbers_do_not_become_integers(torch: Any, name: str) -> None:
    with pytest.raises(TypeError, match=r"torch.cat\(\): input types can't be cast to the desired output type Byte"):
        getattr(torch, name)([torch.zeros(2), torch.ones(2)], out=torch.zeros(0, dtype=torch.uint8))


@pytest.mark.parametrize("diagonal", [-(2**63), -9, 9, 2**63 - 1])
def test_triangles_beyond_the_matrix(torch: Any, diagonal: int) -> None:
    ones = torch.ones(2, 3)
    assert ones.triu(diagonal).sum() == (6 if diagonal < 0 else 0)
    assert ones.tril(diagonal).sum() == (0 if diagonal < 0 else 6)


def test_products_of_bytes(torch: Any) -> None:
    a = torch.full((2, 3), 100, dtype=torch.int8)
    product = torch._int_mm(a, a.t())
    assert product.dtype == torch.int32
    assert product.tolist() == [[30000, 30000], [30000, 30000]]
    with pytest.raises(RuntimeError, match=r"self.size\(1\) needs to match mat2.size\(0\) but got 3 and 2"):
        torch._int_mm(a, a)
    with pytest.raises(RuntimeError, match="Expected self dtype to be int8 or uint8"):
        torch._int_mm(a.int(), a.t())
    with pytest.raises(RuntimeError, match="Expected self to be of dimension 2 but got 1"):
        torch._int_mm(a[0], a.t())


def test_bags_as_torch_calls_them(torch: Any) -> None:
    weight, indices, offsets = torch.arange(12.0).view(4, 3), torch.tensor([0, 1, 2]), torch.tensor([0, 2])
    for name in ("_embedding_bag", "_embedding_bag_forward_only"):
        rows, bags, sizes, chosen = getattr(torch, name)(weight, indices, offsets, mode=2, padding_idx=2)
        assert rows.tolist() == [[3, 4, 5], [0, 0, 0]]
        assert (bags.tolist(), sizes.tolist()) == ([0, 0, 1], [2, 0])
        assert chosen[0].tolist() == [1, 1, 1]
        assert getattr(torch, name)(weight, indices, offsets)[0].tolist() == [[3, 5, 7], [6, 7, 8]]  # -1: no padding
    assert torch._segment_reduce(torch.ones(4), "sum", lengths=torch.tensor([1, 3])).tolist() == [1, 3]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"size": [3]}, r"Tensor sizes mismatch! Expected: \[3\], Got: \[2\]"),
        ({"size": [2], "stride": [2]}, r"Tensor strides mismatch! Expected: \[2\], Got: \[1\]"),
        ({"dtype": "int32"}, "Tensor dtype mismatch!"),
        ({"device": "meta"}, "Tensor device mismatch! Expected: meta, Got: cpu"),
    ],
)
def test_what_is_said_of_a_tensor(torch: Any, said: dict[str, Any], error: str) -> None:
    torch._assert_tensor_metadata(torch.ones(2), [2], [1], torch.float32, device="cpu", layout=torch.strided)
    if "dtype" in said:
        said = {"dtype": getattr(torch, said["dtype"])}
    with pytest.raises(RuntimeError, match=error):
        torch._assert_tensor_metadata(torch.ones(2), **said)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_older_questions_about_autocast(torch: Any) -> None:
    assert torch.clear_autocast_cache() is None
    assert torch.get_autocast_gpu_dtype() == torch.float16
    assert torch.is_autocast_cache_enabled() is True
    with torch.autocast("cpu", dtype=torch.float16, cache_enabled=False):
        assert torch.is_autocast_cpu_enabled() is True
        assert torch.get_autocast_cpu_dtype() == torch.float16
        assert torch.is_autocast_cache_enabled() is False
        with torch.autocast("cpu"):
            assert torch.is_autocast_cache_enabled() is False
    assert torch.is_autocast_cpu_enabled() is False


def test_tensors_in_one_storage(torch: Any) -> None:
    x = torch.ones(3)
    assert torch._C._is_alias_of(x, x[1:])
    assert not torch._C._is_alias_of(x, x.clone())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("number", [0.1, 1e-6, 65536.0, 7])
def test_half_precision_by_numbers_that_it_does_not_have(torch: Any, dtype: str, number: float) -> None:
    """The number is one of float32, and the result is rounded once."""
    x = torch.tensor([0.001, 0.3, -2.5, 3.1, 1e-4], dtype=getattr(torch, dtype))
    wide = x.float()
    for found, exact in (
        (x * number, wide * number), (number * x, wide * number), (x / number, wide / number),
        (x.clone().mul_(number), wide * number), (x.clone().div_(number), wide / number),
        (torch.mul(x, number, out=torch.zeros_like(x)), wide * number),
    ):  # fmt: skip
        assert found.dtype == x.dtype
        assert torch.equal(found, exact.to(x.dtype))


def test_powers_of_two_out_of_range(torch: Any) -> None:
    assert torch.ldexp(torch.tensor([2.0**-120]), torch.tensor([130])).item() == 1024
    assert torch.ldexp(torch.tensor([2.0**-20], dtype=torch.float16), torch.tensor([30])).item() == 1024
    assert torch.ldexp(torch.tensor([3, -5]), torch.tensor([2, 1])).tolist() == [12, -10]


def test_more_refusals(torch: Any) -> None:
    with pytest.raises(RuntimeError, match="diff expects prepend or append to be the same dimension as input"):
        torch.diff(torch.ones(2, 3), prepend=torch.ones(3))
    with pytest.raises(RuntimeError, match=r"input.size\(1\) = 3, but got tensor.size\(1\) = 2"):
        torch.diff(torch.ones(2, 3), dim=0, append=torch.ones(2, 2))
    with pytest.raises(RuntimeError, match="self indexing axis dim should be positive"):
        torch.index_select(torch.zeros(0, 3), 0, torch.tensor([0]))
    with pytest.raises(RuntimeError, match="nonzero_static: 'size' must be an non-negative integer"):
        torch.nonzero_static(torch.tensor([8]), size=-2)
    with pytest.raises(TypeError):
        torch.arange(3).apply_(lambda k: "1")


def test_numbers_in_arrays_are_sizes(torch: Any) -> None:
    assert torch.ones((np.array(3), np.int64(4))).shape == (3, 4)
    assert torch.ones(np.array(3), 4).shape == (3, 4)


def test_small_things(torch: Any) -> None:
    assert torch.multinomial(torch.ones(0, 3), 2, True).shape == (0, 2)
    assert torch.ones(2).int().type(torch.Tensor).dtype == torch.float32
    assert torch.ones(2).new(size=(3, 4)).shape == (3, 4)
    assert not torch.tensor([]).is_set_to(torch.tensor([]))
    generator = torch.Generator().manual_seed(3)
    torch.rand(5, generator=generator)
    same = pickle.loads(pickle.dumps(generator))
    assert torch.equal(torch.randn(5, generator=same), torch.randn(5, generator=generator))
    try:
        torch.use_deterministic_algorithms(False, warn_only=True)
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        assert not torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages_count_their_memory(torch: Any) -> None:
    assert torch.ones(10).storage().__sizeof__() - torch.ones(0).storage().__sizeof__() == 40


def test_others_may_add_themselves_to_sizes(torch: Any) -> None:
    class Other:
        def __radd__(self, size: Any) -> int:
            return 42

    assert torch.Size([1, 2]) + Other() == 42
    with pytest.raises(TypeError, match="can only concatenate tuple"):
        torch.Size([1]) + 3


def test_a_layer_and_an_input_of_another_dtype(torch: Any) -> None:
    """The message names the two that differ."""
    nn = torch.nn
    x = torch.ones(3, 2)
    for given, name, c_name in ((x.long(), "Long", "long int"), (x.double(), "Double", "double")):
        for input in (given, given[0], given[None]):
            with pytest.raises(RuntimeError, match=f"mat1 and mat2 must have the same dtype, but got {name} and Float"):
                nn.Linear(2, 3)(input)
            with pytest.raises(RuntimeError, match=f"m1 and m2 to have the same dtype, but got: {c_name} != float"):
                nn.Linear(2, 3, bias=False)(input)
        with pytest.raises(RuntimeError, match=f"self and mat2 must have the same dtype, but got {name} and Float"):
            torch.addmm(given[:2], x[:2], x[:2])
        with pytest.raises(RuntimeError, match=f"mat1 and mat2 must have the same dtype, but got {name} and Float"):
            torch.addbmm(x[:2], given[None, :2], x[None, :2])
        with pytest.raises(RuntimeError, match=rf"Input type \({c_name}\) and bias type \(float\) should be the same"):
            nn.Conv1d(3, 1, 1)(given)
        with pytest.raises(RuntimeError, match=f"expected scalar type {name} but found Float"):
            nn.Conv1d(3, 1, 1, bias=False)(given)
        with pytest.raises(RuntimeError, match=f"same dtype, got input1: {c_name}, input2: float, weight: float"):
            nn.Bilinear(2, 2, 1)(given, x)
    for layer in (nn.LayerNorm(2), nn.GroupNorm(1, 2)):
        with pytest.raises(RuntimeError, match=r"mixed dtype .CPU.: all inputs must share same datatype"):
            layer(x.long())
    with pytest.raises(NotImplementedError, match="\"rms_norm\" not implemented for 'Long'"):
        nn.RMSNorm(2)(x.long())
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        nn.functional.binary_cross_entropy_with_logits(x, x.long())


def test_index_add_beyond_the_end(torch: Any) -> None:
    index = torch.tensor([0, 5])
    with pytest.raises(IndexError, match="index out of range in self"):
        torch.zeros(3).index_add(0, index, torch.ones(2))
    with pytest.raises(RuntimeError, match="index 5 is out of bounds for dimension 0 with size 3"):
        torch.zeros(3, 2).index_add(0, index, torch.ones(2, 2))


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_a_mask_for_causal_attention(torch: Any, kind: str) -> None:
    """Batches of heads take both, and a key takes part where both let it."""
    attention = torch.nn.functional.scaled_dot_product_attention
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 3, 4).unbind(0)
    q = q.requires_grad_()
    mask = torch.tensor([[True, True, False], [False, True, True], [True, True, True]])
    both = mask & torch.ones(3, 3).tril().bool()
    if kind == "float":
        mask, both = (torch.zeros(3, 3).masked_fill(~m, float("-inf")) for m in (mask, both))
    result, expected = attention(q, k, v, mask, is_causal=True), attention(q, k, v, both)
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(*(torch.autograd.grad(y.square().sum(), q)[0] for y in (result, expected)))
    for given in ((q[0], k[0], v[0]), (q, k, v)):
        with pytest.raises(RuntimeError, match="Explicit attn_mask should not be set when is_causal=True"):
            attention(*given, mask, 0.0 if given[0].ndim == 3 else 0.5, True)


def test_pairs_without_names(torch: Any) -> None:
    x = torch.tensor([1.0, 3.0])
    for pair in (torch.var_mean(x), torch.std_mean(x, 0), torch.var_mean(x, dim=0, correction=0)):
        assert type(pair) is tuple
    assert repr(torch.var_mean(x)) == "(tensor(2.), tensor(2.))"


def test_the_size_of_what_has_no_shape_yet(torch: Any) -> None:
    layer = torch.nn.LazyLinear(2)
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        sum(p.numel() for p in layer.parameters())
    layer(torch.ones(1, 3))
    assert sum(p.numel() for p in layer.parameters()) == 8


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda f, x: f.grad(lambda a: a * 2)(x), RuntimeError, "to return a scalar Tensor, got tensor with 2 dims"),
        (lambda f, x: f.grad(lambda a: 3.0)(x), RuntimeError, "to return a Tensor, got <class 'float'>"),
        (lambda f, x: f.grad(lambda a: a)(3.0), ValueError, "passed to transform API must be Tensor, got <class 'flo"),
        (lambda f, x: f.grad(lambda a: a.sum())(x.long()), RuntimeError, "only Tensors of floating point dtype can"),
        (lambda f, x: f.grad(lambda a: a.sum())(x + 0j), RuntimeError, "only for real scalar outputs but got"),
        (lambda f, x: f.grad(lambda a: a, argnums="a")(x), RuntimeError, "argnums must be int or Tuple.int, ...., got"),
        (lambda f, x: f.jvp(lambda a: a, (x,), (x[0],)), RuntimeError, "that has a different size than that of the"),
        (lambda f, x: f.vmap(lambda a: a.data_ptr())(x), RuntimeError, "Cannot access data pointer of Tensor"),
    ],
)
def test_wrong_calls_of_transforms(torch: Any, call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call(torch.func, torch.ones(2, 3))
