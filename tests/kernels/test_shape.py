"""Views (`kernels/shape.py`), layouts (`storage.py`) and copies (`memory.py`, `rearrange.py`)."""

import numpy as np
import pytest

import retrograd
from retrograd import kernels as K

parity = pytest.mark.parity


@pytest.fixture(autouse=True)
def _silent():
    with np.errstate(all="ignore"):
        yield


def strided_inputs(rng, count=60):
    """Arrays of all kinds of strides, each as a recipe that torch can follow: base shape and steps."""
    for _ in range(count):
        ndim = int(rng.integers(0, 4))
        shape = tuple(int(n) for n in rng.integers(1, 5, ndim))
        steps = []
        for _ in range(int(rng.integers(0, 3))):
            if not shape:
                break
            kind = rng.choice(["transpose", "slice", "select", "expand"])
            dim = int(rng.integers(0, len(shape)))
            steps.append((str(kind), dim, int(rng.integers(0, 3)), int(rng.integers(1, 3))))
        yield shape, steps


def build(shape, steps, library):
    n = int(np.prod(shape))
    x = library.arange(n).reshape(shape)
    for kind, dim, start, step in steps:
        if x.ndim == 0 or dim >= x.ndim:
            continue
        if kind == "transpose":
            x = x.swapaxes(dim, x.ndim - 1)
        elif kind == "slice":
            x = x[(slice(None),) * dim + (slice(start, None, step),)]
        elif kind == "select" and x.shape[dim]:
            x = x[(slice(None),) * dim + (0, ...)]
        elif kind == "expand":
            x = x[None]
            size = (3, *x.shape[1:])
            x = np.broadcast_to(x, size) if library is np else x.expand(size)
    return x


def compare(ours, theirs, layout=True):
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for o, t in zip(ours, theirs):
            compare(o, t, layout)
        return
    assert type(ours) is np.ndarray
    assert ours.shape == tuple(theirs.shape)
    assert ours.dtype == theirs.numpy().dtype
    np.testing.assert_array_equal(ours, theirs.numpy())
    if layout and ours.size:
        for n, s, t in zip(ours.shape, K.strides(ours), theirs.stride()):
            assert n == 1 or s == t, (K.strides(ours), theirs.stride())


VIEWS = {
    "transpose": (lambda x: K.transpose(x, 0, -1), lambda t: t.transpose(0, -1)),
    "permute": (lambda x: K.permute(x, tuple(range(x.ndim)[::-1])), lambda t: t.permute(tuple(range(t.dim())[::-1]))),
    "unsqueeze": (lambda x: K.unsqueeze(x, -1), lambda t: t.unsqueeze(-1)),
    "unsqueeze0": (lambda x: K.unsqueeze(x, 0), lambda t: t.unsqueeze(0)),
    "squeeze": (K.squeeze, lambda t: t.squeeze()),
    "squeeze0": (lambda x: K.squeeze(x, 0), lambda t: t.squeeze(0)),
    "squeeze_many": (lambda x: K.squeeze(x, (0, -1)), lambda t: t.squeeze((0, -1))),
    "expand": (lambda x: K.expand(x, (2, 1, *[-1] * x.ndim)), lambda t: t.expand(2, 1, *[-1] * t.dim())),
    "select": (lambda x: K.select(x, -1, 0), lambda t: t.select(-1, 0)),
    "slice": (lambda x: K.slice(x, -1, -3, 100, 2), lambda t: __import__("torch").ops.aten.slice(t, -1, -3, 100, 2)),
    "narrow": (lambda x: K.narrow(x, 0, -1, 1), lambda t: t.narrow(0, -1, 1)),
    "diagonal": (lambda x: K.diagonal(x, 1, -2, -1), lambda t: t.diagonal(1, -2, -1)),
    "unbind": (lambda x: K.unbind(x, -1), lambda t: t.unbind(-1)),
    "split": (lambda x: K.split(x, 2, -1), lambda t: t.split(2, -1)),
    "chunk": (lambda x: K.chunk(x, 3, 0), lambda t: t.chunk(3, 0)),
    "tensor_split": (lambda x: K.tensor_split(x, 3, 0), lambda t: t.tensor_split(3, 0)),
    "tensor_split_at": (lambda x: K.tensor_split(x, [1, 3], -1), lambda t: t.tensor_split([1, 3], -1)),
    "unfold": (lambda x: K.unfold(x, -1, 2, 1), lambda t: t.unfold(-1, 2, 1)),
    "unfold0": (lambda x: K.unfold(x, 0, 1, 2), lambda t: t.unfold(0, 1, 2)),
    "movedim": (lambda x: K.movedim(x, 0, -1), lambda t: t.movedim(0, -1)),
    "movedims": (lambda x: K.movedim(x, (0, 1), (-1, 0)), lambda t: t.movedim((0, 1), (-1, 0))),
    "view": (lambda x: K.view(x, (-1,)), lambda t: t.view(-1)),
    "view2": (lambda x: K.view(x, (*x.shape[:-1], 1, -1)), lambda t: t.view(*t.shape[:-1], 1, -1)),
    "unflatten": (lambda x: K.unflatten(x, -1, (1, -1)), lambda t: t.unflatten(-1, (1, -1))),
    "alias": (K.alias, lambda t: t.view_as(t)),
}
MAYBE_COPIES = {
    "reshape": (lambda x: K.reshape(x, (-1,)), lambda t: t.reshape(-1)),
    "flatten": (lambda x: K.flatten(x, 0, -1), lambda t: t.flatten(0, -1)),
    "flatten01": (lambda x: K.flatten(x, 0, 1), lambda t: t.flatten(0, 1)),
    "contiguous": (K.contiguous, lambda t: t.contiguous()),
}
COPIES = {
    "clone": (K.clone, lambda t: t.clone()),
    "to_dtype": (lambda x: K.to_dtype(x, np.dtype("f4")), lambda t: t.float()),
    "cat": (lambda x: K.cat([x, x], -1), lambda t: __import__("torch").cat([t, t], -1)),
    "stack": (lambda x: K.stack([x, x], -1), lambda t: __import__("torch").stack([t, t], -1)),
    "tril": (lambda x: K.tril(x, 1), lambda t: t.tril(1)),
    "triu": (lambda x: K.triu(x, -1), lambda t: t.triu(-1)),
    "diag_embed": (lambda x: K.diag_embed(x, -1, 0, -1), lambda t: t.diag_embed(-1, 0, -1)),
    "flip": (lambda x: K.flip(x, (0, -1)), lambda t: t.flip(0, -1)),
    "flip0": (lambda x: K.flip(x, (0,)), lambda t: t.flip(0)),
    "roll": (lambda x: K.roll(x, (1, -2), (0, -1)), lambda t: t.roll((1, -2), (0, -1))),
    "roll_flat": (lambda x: K.roll(x, 2), lambda t: t.roll(2)),
    "rot90": (lambda x: K.rot90(x, 3, (0, 1)), lambda t: t.rot90(3, (0, 1))),
    "repeat": (lambda x: K.repeat(x, (2, *[1] * (x.ndim - 1), 3)), lambda t: t.repeat(2, *[1] * (t.dim() - 1), 3)),
    "tile": (lambda x: K.tile(x, (2,)), lambda t: t.tile((2,))),
    "repeat_interleave": (lambda x: K.repeat_interleave(x, 2, -1), lambda t: t.repeat_interleave(2, -1)),
    "repeat_interleave_flat": (lambda x: K.repeat_interleave(x, 2), lambda t: t.repeat_interleave(2)),
    "pad": (
        lambda x: K.constant_pad_nd(x, (1, 2, -1, 1), 7),
        lambda t: __import__("torch").constant_pad_nd(t, (1, 2, -1, 1), 7),
    ),
}


def both(ours, theirs, x, t):
    """Our result and torch's; or None where both refuse, with the same type of error."""
    try:
        expected = theirs(t)
    except Exception as refusal:
        with pytest.raises(type(refusal)) as caught:
            ours(x)
        first = str(refusal).split("\n")[0]
        assert str(caught.value)[:25] == first[:25]
        return None
    return ours(x), expected


@parity
@pytest.mark.parametrize("name", [*VIEWS, *MAYBE_COPIES, *COPIES])
def test_like_torch(name):
    torch = pytest.importorskip("torch")
    ours, theirs = (VIEWS | MAYBE_COPIES | COPIES)[name]
    for shape, steps in strided_inputs(np.random.default_rng(len(name))):
        x, t = build(shape, steps, np), build(shape, steps, torch)
        if name == "repeat_interleave" and not x.ndim:
            continue  # torch 2.13 looks for a second dimension here
        found = both(ours, theirs, x, t)
        if found is None:
            continue
        result, expected = found
        compare(result, expected, layout=name in VIEWS or name in ("clone", "reshape", "flatten", "to_dtype"))
        parts = result if isinstance(result, tuple) else (result,)
        expected_parts = expected if isinstance(expected, (tuple, list)) else (expected,)
        for p, q in zip(parts, expected_parts):
            shares = np.shares_memory(p, x)
            if name in VIEWS and p.size:
                assert shares and p is not x
                assert K.storage_offset(p) == q.storage_offset()
            elif name in MAYBE_COPIES and p.size:
                assert shares == (q.untyped_storage().data_ptr() == t.untyped_storage().data_ptr())
            elif name in COPIES:
                assert not shares


@parity
def test_random_views_like_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    made = refused = 0
    for shape, steps in strided_inputs(rng, 150):
        x, t = build(shape, steps, np), build(shape, steps, torch)
        factors = []
        n = x.size
        while n > 1:
            f = int(rng.choice([d for d in range(2, n + 1) if n % d == 0]))
            factors.append(f)
            n //= f
        size = tuple([*factors, 1])
        found = both(lambda x, size=size: K.view(x, size), lambda t, size=size: t.view(size), x, t)
        if found is None:
            refused += 1
        else:
            made += 1
            compare(*found)
            assert np.shares_memory(found[0], x) or not x.size
    assert made > 20 and refused > 5


@parity
def test_as_strided_like_torch():
    torch = pytest.importorskip("torch")
    x, t = np.arange(24.0), torch.arange(24.0, dtype=torch.float64)
    for a, b in ((x, t), (x.reshape(4, 6).T[1:, 1:], t.reshape(4, 6).T[1:, 1:]), (x[3:], t[3:])):
        for arguments in (((2, 3), (6, 1)), ((2, 3), (1, 0), 4), ((), ()), ((2, 2, 2), (1, 1, 1), 0), ((0, 3), (1, 1))):
            result, expected = K.as_strided(a, *arguments), b.as_strided(*arguments)
            compare(result, expected)
            assert not result.size or np.shares_memory(result, x)
            if result.size:
                assert K.storage_offset(result) == expected.storage_offset()
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 192"):
        K.as_strided(x, (30,), (1,))
    with pytest.raises(RuntimeError, match="mismatch in length of strides and shape"):
        K.as_strided(x, (3, 3), (1,))
    with pytest.raises(RuntimeError, match="Negative strides are not supported"):
        K.as_strided(x, (3,), (-1,))


@parity
def test_backward_of_views_like_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)

    def check(shape, view, backward):
        x = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
        y = view(x)
        g = rng.standard_normal(tuple(y.shape))
        (expected,) = torch.autograd.grad(y, x, torch.from_numpy(g))
        result = backward(g)
        assert type(result) is np.ndarray and result.shape == tuple(shape)
        np.testing.assert_allclose(result, expected.numpy(), rtol=1e-12)

    s = (4, 5, 6)
    check(s, lambda x: x.select(-1, 2), lambda g: K.select_backward(g, s, -1, 2))
    check((4,), lambda x: x.select(0, -1), lambda g: K.select_backward(g, (4,), 0, -1))
    check(s, lambda x: x[:, 1:4:2], lambda g: K.slice_backward(g, s, 1, 1, 4, 2))
    check(s, lambda x: x.diagonal(1, 0, -1), lambda g: K.diagonal_backward(g, s, 1, 0, -1))
    for size, step in ((2, 1), (2, 3), (5, 1), (4, 2), (1, 1)):
        check(
            s,
            lambda x, size=size, step=step: x.unfold(1, size, step),
            lambda g, size=size, step=step: K.unfold_backward(g, s, 1, size, step),
        )
    check(
        s,
        lambda x: x.as_strided((3, 3), (2, 1), 5),
        lambda g: K.as_strided_backward(g, s, (30, 6, 1), 0, (3, 3), (2, 1), 5),
    )
    base = torch.zeros(4, 6, dtype=torch.float64)
    for view, strides in ((base.t(), (1, 6)), (base[0].expand(3, 6), (0, 1))):
        x = view.detach().requires_grad_()
        y = x.as_strided((2, 2), (2, 1), 1)
        g = rng.standard_normal((2, 2))
        (expected,) = torch.autograd.grad(y, x, torch.from_numpy(g))
        result = K.as_strided_backward(g, tuple(x.shape), strides, 0, (2, 2), (2, 1), 1)
        np.testing.assert_allclose(result, expected.numpy())


@parity
def test_sum_to_size_like_torch():
    torch = pytest.importorskip("torch")
    x = np.arange(24.0).reshape(2, 3, 4)
    for size in ((2, 3, 4), (3, 4), (1, 4), (4,), (), (1, 1, 1), (2, 1, 4), (1,)):
        compare(K.sum_to_size(x, size), torch.from_numpy(x).sum_to_size(size), layout=False)
    for size in ((2, 4), (1, 2, 3, 4), (3,)):
        with pytest.raises(RuntimeError, match="is not expandable to size"):
            K.sum_to_size(x, size)


@parity
def test_cat_like_torch():
    torch = pytest.importorskip("torch")
    make = {
        "f2": lambda d: np.ones(2, d),
        "empty": lambda d: np.ones(0, d),
        "m": lambda d: np.ones((2, 3), d),
        "c": lambda d: np.ones((3, 2), d).T,
        "zero": lambda d: np.ones((), d),
        "flat": lambda d: np.ones((0, 3), d),
    }
    rng = np.random.default_rng(1)
    for _ in range(120):
        arrays = [
            make[str(rng.choice(list(make)))](str(rng.choice(["f4", "f8", "i4", "?", "c8"])))
            for _ in range(int(rng.integers(1, 4)))
        ]
        dim = int(rng.integers(-2, 2))
        found = both(
            lambda arrays, dim=dim: K.cat(arrays, dim),
            lambda arrays, dim=dim: torch.cat(arrays, dim),
            arrays,
            [torch.from_numpy(a) for a in arrays],
        )
        if found:
            compare(*found)
            assert found[0].flags.c_contiguous


@parity
def test_meshgrid_and_complex_views_like_torch():
    torch = pytest.importorskip("torch")
    a, b, c = np.arange(2), np.arange(3), np.array(5)
    for indexing in ("ij", "xy"):
        expected = torch.meshgrid(*map(torch.from_numpy, (a, b, c)), indexing=indexing)
        compare(K.meshgrid([a, b, c], indexing), expected)
    z = (np.arange(12) + 1j).reshape(3, 4)
    for x in (z, z.T, z[:, ::2], z[0, 0, ...], z[:0]):
        compare(K.view_as_real(x), torch.view_as_real(torch.from_numpy(x)))
        assert not x.size or np.shares_memory(K.view_as_real(x), z)
    r = np.arange(24.0).reshape(3, 4, 2)
    for x in (r, r[::2], r.transpose(1, 0, 2), r[0, 0]):
        compare(K.view_as_complex(x), torch.view_as_complex(torch.from_numpy(x)))
        assert np.shares_memory(K.view_as_complex(x), r)


# ------------------------------------------------------------------------------------------------- without torch


def test_strides_and_offsets():
    x = np.zeros((3, 4))
    assert K.strides(x) == (4, 1)
    assert K.strides(x.T[:, None]) == (1, 12, 4)
    assert K.strides(np.zeros((3, 0))) == (1, 1)
    assert K.strides(np.zeros(())) == ()
    assert K.strides(K.unsqueeze(x, 0)) == (12, 4, 1)
    assert K.storage_offset(x) == 0
    assert K.storage_offset(x[1:, 2:]) == 6
    assert K.storage_offset(K.diagonal(x[1:], 1)) == 5


def test_expand():
    x = np.array(2.0)
    y = K.expand(x, (3, 4))
    assert y.strides == (0, 0) and np.shares_memory(x, y)
    assert K.expand(np.ones((3, 1)), (2, -1, 5)).shape == (2, 3, 5)
    assert K.expand(np.ones(1), (0,)).shape == (0,)
    assert K.expand(np.ones((4, 2)).T[::2], (3, 1, 4)).shape == (3, 1, 4)
    for size, message in (
        ((4,), r"expanded size of the tensor \(4\) must match the existing size \(3\) at non-singleton dimension 0"),
        ((-1, 3), r"The expanded size of the tensor \(-1\) isn't allowed in a leading, non-existing dimension 0"),
        ((-2,), r"The expanded size of the tensor \(-2\) must match"),
        ((), r"the number of sizes provided \(0\) must be greater or equal"),
    ):
        with pytest.raises(RuntimeError, match=message):
            K.expand(np.ones(3), size)
    with pytest.raises(RuntimeError, match="isn't allowed in a leading"):
        K.expand(x, (-1,))


def test_writes_reach_the_original():
    x = np.zeros((3, 3))
    K.diagonal(x)[...] = 1
    K.select(x, 1, 2)[...] = 2
    K.view(x, (9,))[3] = 3
    K.unfold(x, 1, 1, 2)[2, 0] = 4
    assert x.tolist() == [[1, 0, 2], [3, 1, 2], [4, 0, 2]]


def test_clone_of_expanded_is_contiguous():
    x = K.expand(np.arange(4.0), (3, 4))
    assert K.clone(x).flags.c_contiguous
    assert K.to_dtype(x, np.dtype("f4")).flags.c_contiguous
    assert K.to_dtype(np.array([1 + 2j]), np.dtype("f8")).tolist() == [1.0]
    assert K.to_dtype(np.array([2j, 0]), np.dtype("?")).tolist() == [True, False]
    a = np.ones(3)
    assert K.to_dtype(a, a.dtype) is a


ERRORS = [
    (RuntimeError, "shape '[3, 3]' is invalid for input of size 4", lambda: K.view(np.ones(4), (3, 3))),
    (RuntimeError, "only one dimension can be inferred", lambda: K.reshape(np.ones(4), (-1, -1))),
    (RuntimeError, "invalid shape dimension -2 at index 0 of shape [-2, 2]", lambda: K.view(np.ones(4), (-2, 2))),
    (RuntimeError, "cannot reshape tensor of 0 elements into shape [-1, 0]", lambda: K.view(np.ones(0), (-1, 0))),
    (RuntimeError, "Use .reshape(...) instead", lambda: K.view(np.ones((2, 3)).T, (6,))),
    (RuntimeError, "permute(): duplicate dims are not allowed", lambda: K.permute(np.ones((2, 3)), (0, 0))),
    (IndexError, "Dimension out of range", lambda: K.transpose(np.ones((2, 3)), 0, 2)),
    (RuntimeError, "t() expects a tensor with <= 2 dimensions, but self is 3D", lambda: K.t(np.ones((2, 3, 4)))),
    (IndexError, "select(): index 5 out of range for tensor of size [2, 3]", lambda: K.select(np.ones((2, 3)), 0, 5)),
    (RuntimeError, "start (1) + length (5) exceeds dimension size (2)", lambda: K.narrow(np.ones((2, 3)), 0, 1, 5)),
    (RuntimeError, "slice step must be positive", lambda: K.slice(np.ones(3), 0, 0, 2, 0)),
    (RuntimeError, "diagonal dimensions cannot be identical 0, 0", lambda: K.diagonal(np.ones((2, 3)), 0, 0, 0)),
    (RuntimeError, "split_sizes to sum exactly to 5", lambda: K.split(np.ones(5), [2, 2])),
    (RuntimeError, "split_size can only be 0 if dimension size is 0", lambda: K.split(np.ones(5), 0)),
    (RuntimeError, "maximum size for tensor at dimension 0 is 5 but size is 6", lambda: K.unfold(np.ones(5), 0, 6, 1)),
    (RuntimeError, "don't multiply up to the size of dim 0 (6)", lambda: K.unflatten(np.ones(6), 0, (2, 2))),
    (RuntimeError, "Sizes of tensors must match except in", lambda: K.cat([np.ones((2, 3)), np.ones((3, 2))])),
    (RuntimeError, "stack expects each tensor to be equal size", lambda: K.stack([np.ones(2), np.ones(3)])),
    (RuntimeError, "tril: input tensor must have at least 2", lambda: K.tril(np.ones(3))),
    (RuntimeError, "shifts and dimensions must align", lambda: K.roll(np.ones((2, 3)), (1, 2), (0,))),
    (RuntimeError, "Number of dimensions of repeat dims can not be smaller", lambda: K.repeat(np.ones((2, 3)), (2,))),
    (RuntimeError, "Length of pad must be even", lambda: K.constant_pad_nd(np.ones((2, 3)), (1,))),
    (RuntimeError, "view_as_real is only supported for complex", lambda: K.view_as_real(np.ones(2))),
    (RuntimeError, "Tensor must have a last dimension of size 2", lambda: K.view_as_complex(np.ones((2, 3)))),
]


@pytest.mark.parametrize(("error", "message", "call"), ERRORS, ids=[m for _, m, _ in ERRORS])
def test_errors(error, message, call):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def test_tril_in_place():
    x = np.ones((3, 3))
    assert K.tril(x, out=x) is x
    assert x.tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    y = np.full((2, 2), np.nan)
    assert K.triu(y).tolist()[1][0] == 0


# --------------------------------------------------------------------------------------- memory read as another dtype

REINTERPRETED = {
    "odd offset, pairs": lambda t, x: t.view_as_complex(x[1:9].view(4, 2)),
    "odd stride, pairs": lambda t, x: t.view_as_complex(x[:21].view(7, 3)[:, :2]),
    "odd stride of a dimension of size 1": lambda t, x: t.view_as_complex(x.as_strided((1, 2), (3, 1))),
    "odd offset": lambda t, x: x[1:9].view(t.complex128),
    "even offset": lambda t, x: x[2:10].view(t.complex128),
    "odd stride": lambda t, x: x[:21].view(7, 3)[:, :2].view(t.complex128),
    "windows": lambda t, x: x.unfold(0, 2, 1).view(t.complex128),
    "windows of one": lambda t, x: x.unfold(0, 1, 3).view(t.float32),
    "odd stride of a row": lambda t, x: x[:3].view(1, 3)[:, :2].view(t.complex128),
    "odd size": lambda t, x: x.view(8, 3).view(t.complex128),
    "gaps": lambda t, x: x.view(4, 6)[:, ::3].view(t.complex128),
    "columns": lambda t, x: x.view(4, 6).t().view(t.float32),
    "smaller elements": lambda t, x: x.view(4, 6)[1:].view(t.float32),
    "part of the rows": lambda t, x: x.view(4, 6)[:, :4].view(t.complex128),
}


@pytest.mark.parity
@pytest.mark.parametrize("case", REINTERPRETED)
def test_memory_read_as_another_dtype(case):
    torch = pytest.importorskip("torch")
    results = []
    for t in (retrograd, torch):
        try:
            view = REINTERPRETED[case](t, t.arange(24.0, dtype=t.float64))
            results.append((tuple(view.shape), view.stride(), view.storage_offset(), view.tolist()))
        except RuntimeError as error:
            results.append(str(error))
    assert results[0] == results[1]
