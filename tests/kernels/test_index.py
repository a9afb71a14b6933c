"""Indexing (`index.py`, `gather.py`, `mask.py` and `indexing_key.py` of the kernels) and order (`sort.py`)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrograd import kernels as K
from retrograd.kernels.indexing_key import parse_index

parity = pytest.mark.parity


@pytest.fixture(autouse=True)
def _silent():
    with np.errstate(all="ignore"):
        yield


def subscript(x, key):
    """``x[key]``, as the core puts the two halves together."""
    basic, advanced = parse_index(key, x.shape)
    view = x[basic]
    assert type(view) is np.ndarray and (not view.size or np.shares_memory(view, x))
    return view if advanced is None else K.index(view, advanced)


def to_torch(x, torch):
    if isinstance(x, np.ndarray):
        return torch.from_numpy(x.copy())
    if isinstance(x, tuple):
        return tuple(to_torch(y, torch) for y in x)
    if isinstance(x, list):
        return [to_torch(y, torch) for y in x]
    return x


def agree(ours, theirs):
    if isinstance(theirs, (tuple, list)):
        for o, t in zip(ours, theirs, strict=True):
            agree(o, t)
        return
    assert type(ours) is np.ndarray
    assert ours.dtype == theirs.numpy().dtype
    assert ours.shape == tuple(theirs.shape)
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-6)


def same(torch, ours, theirs, *arguments, prefix=12):
    """Both give the same result, or refuse with the same type of error and the same first words."""
    try:
        expected = theirs(*[to_torch(a, torch) for a in arguments])
    except Exception as refusal:
        with pytest.raises(type(refusal)) as caught:
            ours(*arguments)
        assert str(caught.value)[:prefix] == str(refusal)[:prefix]
        return
    agree(ours(*arguments), expected)


# ------------------------------------------------------------------------------------------------- keys


def key_items():
    integer = st.integers(-4, 3)
    bound = st.none() | st.integers(-5, 5)
    array = st.lists(st.integers(-2, 1), max_size=3).map(lambda x: np.array(x, dtype=np.int64))
    return st.one_of(
        integer,
        st.builds(slice, bound, bound, st.none() | st.integers(1, 3)),
        st.none(),
        st.just(Ellipsis),
        st.booleans(),
        array,
        st.integers(-2, 1).map(np.array),
        st.booleans().map(np.array),
        st.lists(st.booleans(), min_size=3, max_size=3).map(np.array),
        st.lists(st.booleans(), min_size=6, max_size=6).map(lambda x: np.array(x).reshape(2, 3)),
        st.lists(st.integers(-2, 1), min_size=1, max_size=3),
        st.lists(st.booleans(), min_size=3, max_size=3),
    )


@parity
@settings(max_examples=400, deadline=None)
@given(
    key=key_items() | st.lists(key_items(), max_size=4).map(tuple),
    shape=st.sampled_from([(2, 3, 4), (3, 3), (3,), (), (2, 3, 3, 2)]),
)
def test_keys_like_torch(key, shape):
    torch = pytest.importorskip("torch")
    if isinstance(key, tuple) and sum(k is Ellipsis for k in key) > 1:
        return  # torch skips the same dimensions twice
    x = np.arange(float(np.prod(shape))).reshape(shape)
    try:
        expected = torch.from_numpy(x)[to_torch(key, torch)]
    except Exception as refusal:
        with pytest.raises(type(refusal)):
            subscript(x, key)
        return
    agree(subscript(x, key), expected)


@parity
def test_odd_keys_like_torch():
    torch = pytest.importorskip("torch")
    x = np.arange(12.0).reshape(3, 4)
    mask = x > 5
    keys = [
        [0, 1], [[0, 1], [0, 1]], ([[0, 1], [1, 0]],), [True, False, True], [0, slice(0, 1)], [0, None], range(2), [],
        [1.0], (), np.array([0, 1], np.int32), np.array([0, 1, 1], np.uint8), np.array([0, 1], np.int8),
        np.array(1, np.uint8), np.array(1.0), np.array([1.0]), 1.0, (1.0, 0), slice(None, None, -1),
        slice(None, None, 0), slice(1.5, 2), slice(np.array(1), np.array(2)), mask,
        (mask, True), (None, mask), mask[:2], mask[:, :2],
        (slice(None), mask[0]), (slice(None), mask[0, :2]), (Ellipsis, mask[0]), 5, -4, (0, 0, 0), (0, 5),
        np.array([5]), (slice(None), np.array([5])), np.array([-5]), (np.array([0, 1]), np.array([0, 1, 2])),
        (True, slice(None), np.array([0, 1])), (np.array([0, 1]), None, np.array([1, 2])),
        (np.array([0, 1]), True, np.array([1, 2])), (np.array([[0], [1]]), np.array([1, 2])), (Ellipsis, 0),
        [np.array([0, 1]), np.array([1, 2])], (slice(None), slice(None), np.array([0])),
    ]  # fmt: skip
    for key in keys:
        same(torch, subscript, lambda x, k: x[k], x, key)
    for key in [0, (0, 0), slice(None), True, None, Ellipsis, (), np.array([0]), np.array(True)]:
        same(torch, subscript, lambda x, k: x[k], np.array(1.0), key)


def test_parse_index_by_hand():
    assert parse_index(1, (3, 4)) == ((1, ...), None)
    assert parse_index((0, slice(1, 2)), (3, 4)) == ((0, slice(1, 2), ...), None)
    assert parse_index((..., None, np.int64(2)), (3, 4)) == ((slice(None), None, 2, ...), None)
    basic, advanced = parse_index((0, np.array([1, 2])), (3, 4))
    assert basic == (0, slice(None), ...) and [a.tolist() for a in advanced] == [[1, 2]]
    basic, advanced = parse_index((slice(0, 2), [1, 2]), (3, 4))
    assert basic == (slice(0, 2), slice(None), ...) and advanced[0] is None and advanced[1].tolist() == [1, 2]
    x = np.arange(12).reshape(3, 4)
    assert subscript(x, (slice(None), [True, False, False, True])).tolist() == [[0, 3], [4, 7], [8, 11]]
    assert subscript(x, False).shape == (0, 3, 4)
    assert subscript(x[0], 2).shape == ()
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 0 with size 3"):
        parse_index(5, (3,))
    with pytest.raises(IndexError, match=r"The shape of the mask \[2\] at index 0 does not match the"):
        parse_index(np.array([True, False]), (3,))
    with pytest.raises(IndexError, match="too many indices for tensor of dimension 2"):
        parse_index((0, 0, 0), (3, 4))
    with pytest.raises(IndexError, match=r"are valid indices \(got float\)"):
        parse_index(1.0, (3,))
    with pytest.raises(ValueError, match="step must be greater than zero"):
        parse_index(slice(None, None, -1), (3,))


# ------------------------------------------------------------------------------------------------- index_put


@parity
def test_index_put_like_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    put = lambda a, indices, values, accumulate: a.index_put(tuple(indices), values, accumulate)
    for a in (rng.standard_normal((5, 6, 7)), rng.standard_normal((7, 6, 5)).T, np.arange(60).reshape(3, 4, 5)):
        n, m, k = a.shape
        i, j, l = (rng.integers(-s, s, (3, 4)) for s in (n, m, k))
        mask = rng.random((n, m)) < 0.5
        for indices in ([i], [i, j], [i, j, l], [mask], [i[0], j[0]], [rng.integers(0, n, 200)]):
            shape = a[tuple(indices)].shape
            full = rng.standard_normal(shape).astype(a.dtype)
            for values in (np.ones((), a.dtype), full, np.ones(shape[-1:], a.dtype)):
                same(torch, K.index_put, put, a, indices, values, True)
                if indices[0] is mask:  # repeated places would be written in no particular order
                    same(torch, K.index_put, put, a, indices, values, False)
        for indices in ([None, j], [None, None, l], [i, None, l]):
            shape = a[tuple(slice(None) if x is None else x for x in indices)].shape
            values = rng.standard_normal(shape).astype(a.dtype)
            result = K.index_put(a, indices, values, True)
            expected = a.copy()
            np.add.at(expected, tuple(slice(None) if x is None else x for x in indices), values)
            np.testing.assert_allclose(result, expected)
    x = np.arange(12.0).reshape(3, 4)
    for indices, values in (
        ([np.array([0, 5])], np.array(1.0)),
        ([np.array([0, 1])], np.ones(3)),
        ([np.array([0, 1])], np.ones(4, "f4")),
    ):
        for acc in (False, True):
            same(torch, K.index_put, put, x, indices, values, acc)


def test_index_put_in_place():
    x = np.zeros((3, 4))
    assert K.index_put_(x, [np.array([0, 0, 2])], np.array(1.0), True) is x
    assert x[:, 0].tolist() == [2, 0, 1]
    K.index_put_(x.T, [np.array([1, 1]), np.array([0, 0])], np.array([3.0, 4.0]), True)
    assert x[0, 1] == 9
    K.index_put_(x, [x > 1], 0)
    assert x.max() == 1


def test_add_rows_large():
    rng = np.random.default_rng(0)
    for dtype in ("f4", "f8", "c8", "i8"):
        a = np.zeros((50, 16), dtype)
        rows = rng.integers(0, 50, 4000)
        values = rng.standard_normal((4000, 16)).astype(dtype)
        expected = a.copy()
        np.add.at(expected, rows, values)
        K.add_rows(a, rows, values)
        np.testing.assert_allclose(a, expected, rtol=1e-3, atol=1e-4)


# ------------------------------------------------------------------------------------------------- along a dim


@parity
def test_gather_scatter_like_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for a in (
        rng.standard_normal((5, 6, 7)),
        rng.standard_normal((7, 6, 5)).T.astype("f4"),
        np.arange(24).reshape(2, 3, 4),
    ):
        for dim in range(-3, 3):
            shape = [max(1, n - int(rng.integers(0, 2))) for n in a.shape]
            shape[dim] = 3
            index = rng.integers(0, a.shape[dim], shape)
            src = rng.standard_normal(shape).astype(a.dtype)
            same(torch, K.gather, torch.gather, a, dim, index)
            same(torch, K.scatter_add, torch.scatter_add, a, dim, index, src)
            once = np.argsort(rng.standard_normal(a.shape), axis=dim)
            full = rng.standard_normal(a.shape).astype(a.dtype)
            same(torch, K.scatter, torch.scatter, a, dim, once, full)
            same(torch, K.scatter, torch.scatter, a, dim, index, 2)
            for reduce in ("add", "multiply"):
                same(
                    torch,
                    lambda *x, r=reduce: K.scatter(*x, reduce=r),
                    lambda *x, r=reduce: torch.scatter(*x, reduce=r),
                    a, dim, index, src,
                )  # fmt: skip
    x, one = np.arange(12.0).reshape(3, 4), np.array(1.0)
    for index in (
        np.array([[5]]),
        np.array([1]),
        np.array([[1.0]]),
        np.zeros((4, 1), int),
        np.array([[-1]]),
        np.zeros(0, int),
    ):
        for dim in (0, 1):
            same(torch, K.gather, torch.gather, x, dim, index)
            same(torch, K.scatter_add, torch.scatter_add, x, dim, index, np.ones((1, 1)))
    same(torch, K.gather, torch.gather, one, 0, np.array([0, 0]))
    same(torch, K.gather, torch.gather, one, 0, np.array(0))
    same(torch, K.scatter_add, torch.scatter_add, one, 0, np.array(0), one)
    same(torch, K.scatter_add, torch.scatter_add, x, 0, np.array([[0]]), np.ones((1, 1), "f4"))


@parity
def test_index_family_like_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for a in (rng.standard_normal((5, 6, 7)), rng.standard_normal((7, 6, 5)).T, np.arange(24).reshape(2, 3, 4)):
        for dim in range(-3, 3):
            n = a.shape[dim]
            index = rng.integers(0, n, 9)
            shape = list(a.shape)
            shape[dim] = 9
            source = rng.standard_normal(shape).astype(a.dtype)
            same(torch, K.index_select, torch.index_select, a, dim, index)
            same(torch, K.index_select, torch.index_select, a, dim, np.array(1))
            same(torch, K.index_add, torch.index_add, a, dim, index, source)
            same(
                torch,
                lambda *x: K.index_add(*x, alpha=2),
                lambda *x: torch.index_add(*x, alpha=2),
                a,
                dim,
                index,
                source,
            )
            order = rng.permutation(n)
            same(torch, K.index_copy, torch.index_copy, a, dim, order, a * 2)
            same(torch, K.index_fill, torch.index_fill, a, dim, index[:2] - n, 3)
            along = np.argsort(a, axis=dim)
            same(torch, K.take_along_dim, torch.take_along_dim, a, along, dim)
            slim = [1, 1, 1]
            slim[dim] = 2
            same(torch, K.take_along_dim, torch.take_along_dim, a, np.zeros(slim, int), dim)
        flat = rng.integers(-a.size, a.size, (3, 4))
        same(torch, K.take, torch.take, a, flat)
        same(torch, K.take_along_dim, torch.take_along_dim, a, np.abs(flat))
        values = rng.standard_normal((3, 4)).astype(a.dtype)
        same(torch, lambda *x: K.put(*x, True), lambda *x: torch.Tensor.put(*x, accumulate=True), a, flat, values)
        once = rng.permutation(a.size)[:6].reshape(2, 3)
        same(torch, K.put, torch.Tensor.put, a, once, np.ones((2, 3), a.dtype))
    large = rng.standard_normal((10, 20, 15))
    for dim in range(3):
        source = rng.standard_normal([30 if d == dim else n for d, n in enumerate(large.shape)])
        same(torch, K.index_add, torch.index_add, large, dim, rng.integers(0, 10, 30), source)
    x, one = np.arange(12.0).reshape(3, 4), np.array(1.0)
    bad = np.array([0, 5])
    for fun, name in ((K.index_add, "index_add"), (K.index_copy, "index_copy")):
        theirs = getattr(torch, name)
        for index, source in (
            (bad, np.ones((2, 4))),
            (np.array([0, 1]), np.ones((3, 4))),
            (np.array([0, 1]), np.ones((2, 3))),
            (np.array([0, 1]), np.ones((2, 4), "f4")),
            (np.array([[0, 1]]), np.ones((2, 4))),
            (np.array(0), np.ones((1, 4))),
        ):
            same(torch, fun, theirs, x, 0, index, source)
    for index in (bad, np.array([[1]]), np.array([1.0]), np.array([-1])):
        same(torch, K.index_select, torch.index_select, x, 0, index)
        same(torch, lambda a, d, i: K.index_fill(a, d, i, 1), lambda a, d, i: a.index_fill(d, i, 1), x, 0, index)
        same(torch, K.take, torch.take, x[0], index)
    for index in (np.array([0]), np.array(0), np.array([0, 0])):
        same(torch, K.index_select, torch.index_select, one, 0, index)
    same(torch, K.take, torch.take, np.ones(0), np.array([0]))


@parity
def test_masks_like_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 4))
    for mask in (
        x > 0,
        x[0] > 0,
        np.array(True),
        np.zeros((3, 4), bool),
        np.array([True, False]),
        np.array([1, 0, 1, 0]),
    ):
        same(torch, K.masked_select, torch.masked_select, x, mask)
        same(torch, K.masked_scatter, torch.masked_scatter, x, mask, np.arange(12.0))
    same(torch, K.masked_scatter, torch.masked_scatter, x, x > 0, np.arange(1.0))
    same(torch, K.masked_scatter, torch.masked_scatter, x, np.ones((2, 3, 4), bool), np.arange(30.0))
    for a in (x > 0, x[0], np.array(1.0), np.array(0.0), np.zeros((2, 0))):
        same(torch, K.nonzero, torch.nonzero, a)
        # One coordinate after the other, which is how torch's result lies: each of them is read as a whole.
        found, theirs = K.nonzero(a), torch.nonzero(torch.from_numpy(a))
        if found.size:  # an array of nothing has the strides that NumPy gives it
            assert found.strides == tuple(8 * step for step in theirs.stride())


@parity
def test_value_selecting_reduction_backward_like_torch():
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    for dim in range(-3, 3):
        for keepdim in (False, True):
            t = torch.from_numpy(x).requires_grad_()
            values, indices = t.max(dim, keepdim)
            g = torch.randn_like(values)
            (expected,) = torch.autograd.grad(values, t, g)
            agree(
                K.value_selecting_reduction_backward(g.numpy(), dim, indices.numpy(), x.shape, keepdim),
                expected,
            )
    assert K.value_selecting_reduction_backward(np.array(2.0), 0, np.array(0), (), False).tolist() == 2


# ------------------------------------------------------------------------------------------------- order


@parity
def test_sort_like_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    nan = rng.standard_normal((5, 40))
    nan[nan > 1] = np.nan
    for a in (
        nan,
        rng.integers(0, 9, (40, 6)),
        rng.integers(0, 9, (6, 40)).T.astype("f4"),
        np.array(3.0),
        np.zeros((0, 3)),
    ):
        for dim in {0, -1}:
            for descending in (False, True):
                same(
                    torch,
                    lambda a, d, r: K.sort(a, d, r, True),
                    lambda a, d, r: tuple(torch.sort(a, stable=True, dim=d, descending=r)),
                    a, dim, descending,
                )  # fmt: skip
                for k in (0, 1, 3, 40):
                    try:
                        expected = torch.topk(torch.from_numpy(a), k, dim, descending)
                    except RuntimeError:
                        with pytest.raises(RuntimeError, match="selected index k out of range"):
                            K.topk(a, k, dim, descending)
                        continue
                    values, indices = K.topk(a, k, dim, descending)
                    agree(values, expected.values)
                    if a.ndim:
                        np.testing.assert_array_equal(np.take_along_axis(a, indices, dim), values)
            if a.size:
                for k in (1, 2):
                    for keepdim in (False, True):
                        same(
                            torch,
                            lambda a, k, d, r: K.kthvalue(a, k, d, r)[0],
                            lambda a, k, d, r: torch.kthvalue(a, k, d, r)[0],
                            a, k, dim, keepdim,
                        )  # fmt: skip


@parity
def test_searching_like_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    s = np.sort(rng.integers(0, 9, (3, 5)).astype("f8"), -1)
    v = rng.integers(0, 9, (3, 4)).astype("f8")
    for right in (False, True):
        for sequence, values in ((s, v), (s[0], v), (s[0], np.array(3.0)), (s[0], 3.5), (s, 3.5), (s, v[:2])):
            same(
                torch,
                lambda a, b, r=right: K.searchsorted(a, b, right=r),
                lambda a, b, r=right: torch.searchsorted(a, b, right=r),
                sequence, values,
            )  # fmt: skip
        same(torch, lambda a, b, r=right: K.bucketize(a, b, True, r),
             lambda a, b, r=right: torch.bucketize(a, b, out_int32=True, right=r), v, s[0])  # fmt: skip
    same(torch, K.bucketize, torch.bucketize, v, s)
    shuffled = rng.permutation(5.0 * np.arange(6))
    same(torch, lambda a, b, c: K.searchsorted(a, b, sorter=c),
         lambda a, b, c: torch.searchsorted(a, b, sorter=c), shuffled, v, np.argsort(shuffled))  # fmt: skip


@parity
def test_unique_one_hot_triangles_like_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, (4, 3, 2))
    for dim in (None, 0, -1):
        for inverse in (False, True):
            for counts in (False, True):
                same(
                    torch,
                    lambda x, i=inverse, c=counts, d=dim: K.unique(x, True, i, c, d),
                    lambda x, i=inverse, c=counts, d=dim: torch.unique(x, True, i, c, d),
                    a,
                )  # fmt: skip
    one_hot = torch.nn.functional.one_hot
    for x, n in ((a, -1), (a, 5), (a, 2), (a - 1, -1), (a[:0], 3), (a[:0], -1), (a * 1.0, -1), (np.array(2), -1)):
        same(torch, K.one_hot, one_hot, x, n)
    for row, col, offset in ((3, 4, 0), (4, 3, 1), (3, 3, -1), (0, 3, 0), (2, 2, 5)):
        agree(K.tril_indices(row, col, offset), torch.tril_indices(row, col, offset))
        agree(K.triu_indices(row, col, offset), torch.triu_indices(row, col, offset))


def test_by_hand():
    x = np.array([[3.0, 1.0], [2.0, 4.0]])
    assert K.gather(x, 1, np.array([[1], [0]])).tolist() == [[1.0], [2.0]]
    assert K.scatter_add(x, 0, np.array([[0, 0], [0, 0]]), np.ones((2, 2))).tolist() == [[5.0, 3.0], [2.0, 4.0]]
    assert x[0, 0] == 3.0
    assert K.index_select(x, 1, np.array([1, 1])).tolist() == [[1, 1], [4, 4]]
    assert K.masked_select(x, x > 1).tolist() == [3, 2, 4]
    values, indices = K.topk(x, 1)
    assert values.tolist() == [[3], [4]] and indices.tolist() == [[0], [1]]
    y = x.copy()
    assert K.index_fill(y, 0, np.array([0]), 9, out=y) is y and y.tolist() == [[9, 9], [2, 4]]
    assert K.index(x, [None, np.array([1, 0])]).tolist() == [[1, 3], [4, 2]]
    assert not np.shares_memory(K.index(x, [np.array(0)]), x)


def test_scatter_without_dimensions():
    """An index without dimensions is one place, a source without dimensions is one element."""
    one, place, two = np.ones(()), np.zeros((), np.int64), np.array([2.0, 3.0])
    for kernel in (K.scatter, K.scatter_add):
        assert kernel(np.zeros(2), 0, place, two).tolist() == [2.0, 0.0]
        assert kernel(np.zeros(()), 0, place, two).tolist() == 2.0
        with pytest.raises(RuntimeError, match=r"Expected index \[2\] to be no larger than self \[2\]"):
            kernel(np.zeros(2), 0, np.zeros(2, np.int64), one)
