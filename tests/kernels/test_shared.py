"""NumPy's reductions, copies and rows at indices, shared among threads: beside NumPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd import backends, kernels
from retrograd.kernels import compiled

pytestmark = pytest.mark.skipif(
    not backends.fast.is_available(), reason="retrograd[fast] is not installed (make fast)"
)


@pytest.fixture(autouse=True)
def three_threads() -> Any:
    before = retrograd.get_num_threads()
    retrograd.set_num_threads(3)
    yield
    retrograd.set_num_threads(before)


SHAPES = [((40001,), None), ((7, 9001), 1), ((9001, 7), 0), ((1030, 65), 0), ((3, 401, 129), 1), ((4, 5, 6007), (0, 1)),
          ((2, 33, 9, 101), (1, 2)), ((300, 301), None), ((5, 1, 20011), 1),
          ((9, 11, 40, 31), (0, 2, 3)), ((9, 11, 40, 31), (1, 3)), ((9, 31, 11, 40), (0, 1, 3))]  # fmt: skip


@pytest.mark.parametrize("shape, axis", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.bool_, np.complex64])
@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.minimum, np.multiply, np.logical_or], ids=repr)
def test_reductions(ufunc: Any, dtype: Any, shape: Any, axis: Any) -> None:
    rng = np.random.default_rng(0)
    a = (rng.standard_normal(shape) * 3).astype(dtype)
    if ufunc is np.multiply and a.dtype.kind in "fc":
        a = (1 + a / 1000).astype(dtype)
    for keepdim in (False, True):
        found = compiled.reduced(ufunc, a, axis, keepdim)
        if found is None:  # there is no loop for this dtype alone, or it gives another
            assert dtype is np.float16 or (ufunc is np.logical_or) == (a.dtype.kind in "fc") or a.dtype.kind in "ib"
            return
        expected = ufunc.reduce(a, axis=axis, keepdims=keepdim)
        assert found.shape == np.shape(expected) and found.dtype == expected.dtype
        exact = dtype in (np.int32, np.bool_) or ufunc in (np.maximum, np.minimum)
        rough = {np.float16: 0.1, np.float64: 1e-9}.get(dtype, 1e-3)
        np.testing.assert_allclose(found, expected, rtol=0 if exact else rough, atol=0 if exact else 100 * rough)


def test_a_nan_is_the_largest() -> None:
    a = np.zeros((4, 20000), np.float32)
    a[1, 777] = a[3, 19999] = np.nan
    found = kernels.amax(a, 1)
    assert np.isnan(found).tolist() == [False, True, False, True]
    for places in (kernels.argmax(a, 1), kernels.max_dim(a, 1)[1]):
        assert places.tolist() == [0, 777, 0, 19999]


def test_places() -> None:
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64, np.int64, np.float16):
        a = (rng.standard_normal((5, 3, 4001)) * 50).astype(dtype)
        for keepdim in (False, True):
            np.testing.assert_array_equal(kernels.argmax(a, 2, keepdim), a.argmax(2, keepdims=keepdim))
            np.testing.assert_array_equal(kernels.argmin(a, -1, keepdim), a.argmin(2, keepdims=keepdim))


VIEWS: dict[str, Any] = {
    "line": lambda a: a.reshape(-1),
    "transposed": lambda a: a.reshape(200, -1).T,
    "heads": lambda a: a.reshape(8, 25, 6, -1).transpose(0, 2, 1, 3),
    "innermost first": lambda a: a.reshape(8, 25, 6, -1).transpose(3, 0, 1, 2),
    "backwards": lambda a: a.reshape(200, -1)[::-1, ::-1],
    "every third": lambda a: a.reshape(200, -1)[:, ::3],
    "expanded": lambda a: np.broadcast_to(a[:331], (150, 331)),
    "column": lambda a: np.broadcast_to(a[:331, None], (331, 120)),
    "one in between": lambda a: a.reshape(200, 1, -1).transpose(2, 1, 0),
    "five": lambda a: a.reshape(4, 50, 2, 3, -1).transpose(4, 2, 0, 3, 1),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.uint8, np.complex64, np.complex128, np.bool_])
@pytest.mark.parametrize("view", VIEWS)
def test_copies(view: str, dtype: Any) -> None:
    a = VIEWS[view](np.random.default_rng(0).integers(0, 2, 50400).astype(dtype))
    found = compiled.copied(a)
    if found is None:
        assert a.itemsize > 8 or a.size < compiled.SHARED  # NumPy is as fast
        return
    assert found.flags.c_contiguous and not np.may_share_memory(found, a)
    np.testing.assert_array_equal(found, a)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.complex128, np.bool_])
@pytest.mark.parametrize("view", VIEWS)
def test_copies_into_an_array(view: str, dtype: Any) -> None:
    a = VIEWS[view](np.random.default_rng(0).integers(0, 2, 50400).astype(dtype))
    to = np.full(a.shape, 7).astype(dtype)
    assert compiled.copied_into(to, a) == (a.itemsize <= 8 and a.size > compiled.SHARED)
    found = kernels.copy(to, a, out=to)
    assert found is to
    np.testing.assert_array_equal(found, a)


def test_what_overlaps_is_copied_as_it_was() -> None:
    memory = np.arange(80000, dtype=np.float32)
    expected = memory[:79000].copy()
    kernels.copy(memory[1000:], memory[:79000], out=memory[1000:])
    np.testing.assert_array_equal(memory[1000:], expected)


@pytest.mark.parametrize("wrong", [-1, 300])
def test_indices_out_of_bounds(wrong: int) -> None:
    a, index = np.zeros((301, 300), np.float32), np.zeros((301, 300), np.int64)
    assert compiled.is_within(index, 0, 300) and kernels.gather(a, 1, index).shape == a.shape
    index[200, 299] = wrong
    assert not compiled.is_within(index, 0, 300)
    with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds for dimension 1 with size 300"):
        kernels.gather(a, 1, index)
    with pytest.raises(IndexError, match="index out of range in self"):
        kernels.embedding(a[:300], index)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_vectors(dtype: Any) -> None:
    a, b = np.random.default_rng(0).standard_normal((2, 300001)).astype(dtype)
    found = kernels.dot(a, b)
    np.testing.assert_array_equal(found, compiled.sum_rows(a, 1, b)[0])
    assert found.shape == () and found.dtype == dtype
    np.testing.assert_allclose(found, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-6)
    np.testing.assert_allclose(kernels.dot(a[::-1], b), a[::-1].astype(np.float64) @ b.astype(np.float64), rtol=1e-5)
    b[70000] = np.nan
    assert np.isnan(kernels.dot(a, b))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_lbfgs_on_several_threads(dtype: Any) -> None:
    found = []
    for enabled in (True, False):
        retrograd.set_num_threads(3 if enabled else 1)
        x = retrograd.from_numpy(np.random.default_rng(0).standard_normal(40001).astype(dtype)).requires_grad_()
        slopes = retrograd.from_numpy(np.linspace(1, 3, 40001).astype(dtype))
        optimizer = retrograd.optim.LBFGS([x], lr=0.3, max_iter=6, history_size=4)

        def closure(x: Any = x, slopes: Any = slopes) -> Any:
            x.grad = (x * slopes).detach()
            return (x * x * slopes).sum().detach() / 2

        with backends.fast.flags(enabled=enabled):
            optimizer.step(closure)
        assert len(optimizer.state[x]["old_dirs"]) == 4
        found.append(x.detach().numpy().astype(np.float64))
    exact = {np.float32: 1e-5, np.float64: 1e-12, np.float16: 3e-3}[dtype]
    np.testing.assert_allclose(*found, rtol=exact, atol=exact)


def test_rows() -> None:
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.int64, np.complex128):
        a, index = rng.standard_normal((50, 7, 11)).astype(dtype), rng.integers(0, 50, (30, 20))
        np.testing.assert_array_equal(compiled.rows_at(a, index), a[index])
    assert compiled.rows_at(a, index.astype(np.int32)) is None and compiled.rows_at(a[:, ::2], index) is None


@pytest.mark.parametrize("name", ["exp", "tanh", "sqrt", "abs", "neg", "log1p", "square", "sin", "reciprocal"])
def test_functions_of_one_element(name: str) -> None:
    for dtype in (np.float32, np.float64, np.complex64):
        a = (np.random.default_rng(0).uniform(0.1, 2, 50003)).astype(dtype)
        expected = {"abs": np.absolute, "neg": np.negative}.get(name) or getattr(np, name)
        np.testing.assert_array_equal(getattr(kernels, name)(a), expected(a))


@pytest.mark.parametrize("shape, dim", [((5, 40, 900), 0), ((7, 4, 9000), 1), ((300, 60, 3), 2), ((2, 70001), 0)])
def test_a_slice_among_zeros(shape: tuple[int, ...], dim: int) -> None:
    rest = shape[:dim] + shape[dim + 1 :]
    grad = np.random.default_rng(0).standard_normal(rest)
    for index in (0, shape[dim] - 1, -1):
        expected = np.zeros(shape)
        expected[(slice(None),) * dim + (index,)] = grad
        for g in (grad, np.asfortranarray(grad)):  # which the kernel takes, and which it does not
            np.testing.assert_array_equal(kernels.select_backward(g, shape, dim, index), expected)
    assert compiled.placed(grad, shape, dim, 1) is not None and compiled.placed(grad[1:], shape, dim, 1) is None


def test_zeros() -> None:
    for shape in ((40001,), (300, 301), (compiled.SHARED + 1,)):
        found = compiled.zeros(shape, np.dtype(np.float32))
        assert found is not None and found.shape == shape and not found.any()
    assert compiled.zeros((5,), np.dtype(np.float32)) is None
    assert compiled.zeros((40001,), np.dtype(np.int64)) is None


@pytest.mark.parametrize("shape, size", [((9001, 7), (7,)), ((40, 50, 60), (50, 1)), ((3, 4, 9001), (1, 1, 9001)),
                                         ((40001,), ()), ((70, 80, 90), (80, 90))], ids=str)  # fmt: skip
def test_sums_of_what_was_broadcast(shape: tuple[int, ...], size: tuple[int, ...]) -> None:
    a = np.random.default_rng(0).standard_normal(shape)
    spread = (1,) * (len(shape) - len(size)) + size
    over = tuple(d for d, n in enumerate(spread) if n == 1 and shape[d] != 1)
    found = kernels.sum_to_size(a, size)
    assert found.shape == size
    np.testing.assert_allclose(found, a.sum(over).reshape(size), rtol=1e-12, atol=1e-12)


RULES: list[tuple[str, dict[str, Any]]] = [
    ("RMSprop", {"momentum": 0.9}), ("NAdam", {}), ("AdamW", {}), ("Rprop", {}), ("Rprop", {"maximize": True}),
    ("Rprop", {"etas": (0.3, 1.7), "step_sizes": (0.009, 0.012)}), ("ASGD", {"weight_decay": 0.1}), ("ASGD", {}),
    ("ASGD", {"t0": 0, "maximize": True}), ("ASGD", {"t0": -5, "lambd": 0.5}),
    ("SGD", {"momentum": 0.9, "dampening": 0.1}), ("Adafactor", {}),
]


@pytest.mark.parametrize("name, options", RULES, ids=str)
def test_steps_on_several_threads(name: str, options: dict[str, Any]) -> None:
    """Of every optimizer, on parameters of several blocks of several threads, beside NumPy alone on one."""
    found = []
    for enabled in (True, False):
        retrograd.set_num_threads(3 if enabled else 1)
        rng = np.random.default_rng(0)
        leaves = [retrograd.from_numpy(rng.standard_normal(s)).requires_grad_() for s in ((401, 701), (100,), (40000,))]
        optimizer = getattr(retrograd.optim, name)(leaves, lr=0.01, **options)
        with backends.fast.flags(enabled=enabled):
            for _ in range(3):
                for leaf in leaves:
                    leaf.grad = retrograd.from_numpy(rng.standard_normal(tuple(leaf.shape)))
                optimizer.step()
        found.append([leaf.detach().numpy() for leaf in leaves])
    for shared, alone in zip(*found, strict=True):
        np.testing.assert_allclose(shared, alone, rtol=1e-12, atol=1e-12)


def test_gradients_by_signs() -> None:
    """What formulas multiply and add with signs is the same to the last bit, with numbers too."""
    found = []
    for threads in (1, 3):
        retrograd.set_num_threads(threads)
        numbers = np.random.default_rng(0).standard_normal((2, 300, 301))
        x, y = (retrograd.from_numpy(a).requires_grad_() for a in numbers)
        (-(x * y / 3.0 - y) * (2.0 / (x * x + 1.0))).sum().backward()
        found.append((x.grad.numpy(), y.grad.numpy()))
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one, three)


# ------------------------------------------------------------------------------------------ operands that are spread


def numbers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    """Random numbers, some of them special or the same."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(shape)
    special = rng.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, 1.0], shape)
    return np.where(rng.random(shape) < 0.1, special, a).astype(dtype)


SPREAD: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((300, 301), (301,)), ((300, 301), (300, 1)), ((9001, 7), (7,)), ((9001, 7), (9001, 1)), ((20, 30, 70), (30, 1)),
    ((20, 30, 70), (20, 1, 70)), ((20, 30, 70), (20, 1, 1)), ((2, 3, 4, 5, 700), (3, 1, 5, 1)),
    ((1, 300, 1, 301), (1, 301)),
    ((300, 1), (301,)), ((20, 30, 1), (1, 70)), ((20, 1, 70), (30, 1)),
    ((3, 40001), (40001,)), ((40001,), ()), ((300, 301), (1, 1)), ((50, 60), (60,)), ((0, 40000), (40000,)),
]  # fmt: skip


@pytest.mark.parametrize("whole, other", SPREAD, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.float16, np.int64])
@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.true_divide, np.less, np.equal, np.maximum], ids=repr)
def test_spread_operands(ufunc: Any, dtype: Any, whole: tuple[int, ...], other: tuple[int, ...]) -> None:
    """To the last bit NumPy's, whichever operand is spread, with a place for the result or without."""
    shared = compiled.on_threads(ufunc)
    assert shared is not ufunc
    with np.errstate(all="ignore"):
        a, b = (numbers(shape, dtype, seed) for seed, shape in enumerate((whole, other)))
        backwards = b[..., ::-1] if b.ndim else b
        full = np.broadcast_shapes(whole, other)
        others = [(a, np.broadcast_to(b, full)), (np.asfortranarray(a), b), (np.asfortranarray(a), a)]
        for x, y in ((a, b), (b, a), (a, backwards), (a[::-1], b), (a, np.asfortranarray(a)), *others):
            expected = ufunc(x, y)
            found = shared(x, y)
            assert found.strides == expected.strides
            assert found.dtype == expected.dtype and found.shape == expected.shape
            np.testing.assert_array_equal(found, expected, strict=True)
            place = np.empty_like(expected)
            assert shared(x, y, place) is place
            np.testing.assert_array_equal(place, expected)
            place = np.empty(expected.shape, expected.dtype).T.copy().T  # in another order
            np.testing.assert_array_equal(shared(x, y, out=place), expected)


def test_spread_operands_in_their_place() -> None:
    for dtype in (np.float32, np.float64):
        a, row = np.random.default_rng(0).standard_normal((300, 301)).astype(dtype), np.arange(301).astype(dtype)
        expected = a * row
        b = a.copy()
        assert compiled.on_threads(np.multiply)(b, row, b) is b
        np.testing.assert_array_equal(b, expected)
        b = a.copy()  # a row of itself, which the first rows must not change for those after them
        compiled.on_threads(np.multiply)(b, b[5], out=b)
        np.testing.assert_array_equal(b, a * a[5])
        larger = np.zeros((301, 301), dtype)
        larger[:300] = a
        compiled.on_threads(np.add)(larger[:300], row, larger[1:])  # which overlap, and not in their place
        np.testing.assert_array_equal(larger[1:], a + row)


def test_what_spread_operands_raise() -> None:
    a, row = np.ones((300, 301), np.float32), np.zeros(301, np.float32)
    shared = compiled.on_threads(np.true_divide)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        shared(a, row)
    with np.errstate(divide="ignore"):
        assert np.isinf(shared(a, row)).all()
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        compiled.on_threads(np.multiply)(a * np.float32(1e38), row + np.float32(1e38))
    with pytest.raises(ValueError, match="could not be broadcast"):
        shared(a, np.ones(300, np.float32))
    with pytest.raises(ValueError, match="read-only"):
        fixed = a.copy()
        fixed.flags.writeable = False
        shared(a, row, fixed)


# ---------------------------------------------------------------------------------------------------------- joining


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_, np.complex128, np.float16])
def test_joined(dim: int, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    for sizes in ((7, 30, 200), (1, 1, 1, 40), (0, 50), (90,)):
        parts = []
        for n in sizes:
            shape = [20, 30, 40]
            shape[dim] = n
            parts.append(rng.integers(0, 2, shape).astype(dtype))
        found = compiled.joined(parts, dim % 3)
        assert found is not None
        np.testing.assert_array_equal(found, np.concatenate(parts, dim), strict=True)
        np.testing.assert_array_equal(kernels.cat(parts, dim), found, strict=True)
    assert compiled.joined([np.zeros((9, 9))[:, ::2]], 0) is None
    with pytest.raises(RuntimeError, match="Sizes of tensors must match"):
        kernels.cat([np.zeros((300, 200)), np.zeros((300, 201))], 0)
    with pytest.raises(IndexError):
        kernels.cat([np.zeros((300, 200)), np.zeros((300, 200))], 2)


# ----------------------------------------------------------------------------------------------------- random numbers


@pytest.mark.parametrize("before", [0, 1, 5, 623, 624, 625, 1000])
@pytest.mark.parametrize("count", [32769, 39936, 40001, 79872, 200003])
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_words_of_a_twister(before: int, count: int, dtype: Any) -> None:
    ours, theirs = (np.random.Generator(np.random.MT19937(7)) for _ in range(2))
    for twister in (ours, theirs):
        twister.bit_generator.random_raw(before)
    for _ in range(2):
        found = np.empty(count, dtype)
        assert compiled.drawn(ours, found)
        np.testing.assert_array_equal(found, theirs.integers(0, 1 << 8 * found.itemsize, count, dtype))
    for part in ("key", "pos"):
        np.testing.assert_array_equal(*[t.bit_generator.state["state"][part] for t in (ours, theirs)])


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_masks_of_dropout(p: float, dtype: Any) -> None:
    """Where uniform float64 of the same twister are below what is kept, on any number of threads."""
    expected = np.random.Generator(np.random.MT19937(7)).integers(0, 1 << 64, (211, 301), np.uint64)
    expected = (expected & np.uint64((1 << 53) - 1)) * 2.0**-53 < 1 - p
    for threads in (1, 3):
        retrograd.set_num_threads(threads)
        twister = np.random.Generator(np.random.MT19937(7))
        found = kernels.dropout_mask(np.empty((211, 301), dtype), p, twister)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found != 0, expected)
        assert p == 1 or np.unique(found[found != 0]).tolist() == [dtype(1 / (1 - p))]


# --------------------------------------------------------------------------------------------- of the largest, by signs


@pytest.mark.parametrize("shape, dim", [((300, 301), 1), ((300, 301), None), ((3, 20, 900), (1, 2)), ((2, 40001), -1),
                                        ((300, 301), 0), ((9001, 7), (1,))], ids=str)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_of_the_largest(shape: tuple[int, ...], dim: Any, dtype: Any) -> None:
    a = np.random.default_rng(0).integers(-3, 3, shape).astype(dtype)
    a.reshape(-1)[5] = np.nan
    result = np.maximum.reduce(a, axis=dim)
    grad = np.random.default_rng(1).standard_normal(np.shape(result)).astype(dtype)
    result = np.asarray(result)
    with np.errstate(all="ignore"):
        over = range(a.ndim) if dim is None else np.atleast_1d(dim) % a.ndim
        kept = [1 if d in over else n for d, n in enumerate(shape)]
        wide_grad, wide_result = np.asarray(grad).reshape(kept), result.reshape(kept)
        for nans in (False, True):
            chosen = (a == wide_result) | (nans & np.isnan(a) & np.isnan(wide_result))
            expected = chosen * (wide_grad / chosen.sum(dim, keepdims=True)).astype(dtype)
            found = kernels.extreme_shares(np.asarray(grad), a, result, dim, nans)
            if found is None:
                assert dim == 0 and nans
                continue
            np.testing.assert_allclose(found, expected, rtol=1e-6, strict=True)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_signs(dtype: Any) -> None:
    a = numbers((211, 301), dtype)
    expected = np.where(np.isnan(a), 0, np.sign(a)).astype(dtype)
    for x in (a, a[::2], a.T, a[:0]):
        np.testing.assert_array_equal(kernels.sign(x), expected if x is a else kernels.sign(x.copy()), strict=True)
    np.testing.assert_array_equal(compiled.pointwise("sign", a), expected, strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms(dtype: Any) -> None:
    for shape in ((300, 301), (40001,), (3, 9001)):
        a = np.random.default_rng(0).standard_normal(shape).astype(dtype)
        np.testing.assert_allclose(kernels.norm(a), np.sqrt((a.astype(np.float64) ** 2).sum()), rtol=1e-6)
        np.testing.assert_allclose(
            compiled.sum_rows(a, shape[0] if a.ndim > 1 else 1, a), (a.astype(np.float64) ** 2).sum(-1), rtol=1e-5
        )
        a.reshape(-1)[3] = np.nan
        assert np.isnan(kernels.norm(a))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_added(dtype: Any) -> None:
    """In the order of the index, as ``np.add.at`` does it; many at one place, and none at others."""
    rng = np.random.default_rng(0)
    for rows, shape, inner in ((50, (700,), (70,)), (3, (400, 2), (5, 11)), (90001, (1000,), (40,)), (1, (40001,), ())):
        index, source = rng.integers(0, max(1, rows // 2), shape), numbers((*shape, *inner), dtype)
        expected = np.zeros((rows, *inner), dtype)
        with np.errstate(invalid="ignore"):
            np.add.at(expected, index, source)
            found = compiled.rows_added(source, index, rows)
        assert found is not None
        np.testing.assert_array_equal(found, expected, strict=True)
        if index.ndim == 1 and inner:
            np.testing.assert_array_equal(kernels.index_select_backward(source, (rows, *inner), 0, index), expected)
    for wrong in (np.full(40001, 5), -index - 1):
        assert compiled.rows_added(source, wrong, 5) is None
    with pytest.raises((IndexError, RuntimeError)):
        kernels.index_select_backward(source, (5,), 0, np.full(40001, 5))


@pytest.mark.parametrize("shape, axis", [((300, 301), 0), ((3, 401, 129), 1), ((33, 5000), 0), ((50, 40, 64), 1),
                                         ((1000, 64), 0)], ids=str)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_columns(shape: tuple[int, ...], axis: int, dtype: Any) -> None:
    a = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    exact = a.astype(np.float64).sum(axis)
    np.testing.assert_allclose(compiled.reduced(np.add, a, axis, False), exact, rtol=1e-5, atol=1e-5)
    a[..., 3] = np.nan
    a[..., 5, 4] = np.inf
    np.testing.assert_array_equal(
        np.isfinite(compiled.reduced(np.add, a, axis, True)), np.isfinite(a.sum(axis, keepdims=True)), strict=True
    )


@pytest.mark.parametrize("shape, size", [((3, 5, 32, 48), (8, 6)), ((6, 60, 40), (1, 1)), ((2, 3, 30, 70), (7, 70))])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adaptive_means(shape: tuple[int, ...], size: tuple[int, int], dtype: Any) -> None:
    """Where windows are all alike, by the kernels of other windows."""
    a = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    grad = np.random.default_rng(1).standard_normal((*shape[:-2], *size)).astype(dtype)
    found = kernels.adaptive_avg_pool(a, size), kernels.adaptive_avg_pool_backward(grad, shape, 2)
    with backends.fast.flags(enabled=False):
        expected = kernels.adaptive_avg_pool(a, size), kernels.adaptive_avg_pool_backward(grad, shape, 2)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
