"""Products (`kernels/linalg.py`) and Einstein summation (`kernels/einsum.py`)."""

import importlib

import numpy as np
import pytest

from retrograd import kernels as K

einsum = importlib.import_module("retrograd.kernels.einsum").einsum
parity = pytest.mark.parity
DTYPES = ["f4", "f8", "c8", "c16", "i4", "i8", "f2"]


@pytest.fixture(autouse=True)
def _silent():
    with np.errstate(all="ignore"):
        yield


def make(shape, dtype="f8", seed=0):
    rng = np.random.default_rng(seed + len(shape))
    x = 3 * rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return np.asarray(x).astype(dtype)


def layouts(x):
    """`x` with several strides."""
    yield x
    yield np.asfortranarray(x) if x.ndim > 1 else np.repeat(x, 2)[::2]


def to_torch(x, torch):
    if isinstance(x, np.ndarray):
        return torch.from_numpy(x.copy())
    return [to_torch(y, torch) for y in x] if isinstance(x, list) else x


def same(torch, ours, theirs, *arguments, prefix=20):
    try:
        expected = theirs(*[to_torch(a, torch) for a in arguments])
    except Exception as refusal:
        with pytest.raises(type(refusal)) as caught:
            ours(*arguments)
        assert str(caught.value)[:prefix] == str(refusal)[:prefix]
        return
    before = [a.copy() for a in arguments if isinstance(a, np.ndarray)]
    result = ours(*arguments)
    assert type(result) is np.ndarray
    assert result.dtype == expected.numpy().dtype and result.shape == tuple(expected.shape)
    tolerance = {"float16": 5e-3, "float32": 1e-4, "complex64": 1e-4}.get(result.dtype.name, 1e-10)
    np.testing.assert_allclose(result, expected.resolve_conj().numpy(), rtol=tolerance, atol=tolerance * 10)
    for a, b in zip([a for a in arguments if isinstance(a, np.ndarray)], before):
        np.testing.assert_array_equal(a, b)
        assert not np.shares_memory(a, result)


@parity
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_like_torch(dtype):
    torch = pytest.importorskip("torch")
    a, b, v, w = make((3, 4), dtype), make((4, 5), dtype), make((4,), dtype), make((4,), dtype, 7)
    p, q = make((2, 3, 4), dtype), make((2, 4, 5), dtype)
    for x in layouts(a):
        for y in layouts(b):
            same(torch, K.mm, torch.mm, x, y)
            same(torch, K.addmm, torch.addmm, make((5,), dtype), x, y)
            for beta, alpha in ((2, 3), (0, 1), (1, 2)):
                for c in (make((3, 5), dtype), make((3, 1), dtype), make((), dtype)):
                    same(
                        torch,
                        lambda *z, s=beta, t=alpha: K.addmm(*z, beta=s, alpha=t),
                        lambda *z, s=beta, t=alpha: torch.addmm(*z, beta=s, alpha=t),
                        c, x, y,
                    )  # fmt: skip
        same(torch, K.mv, torch.mv, x, v)
        same(torch, lambda *z: K.addmv(*z, beta=2, alpha=3), lambda *z: torch.addmv(*z, beta=2, alpha=3),
             make((3,), dtype), x, v)  # fmt: skip
        same(torch, K.trace, torch.trace, x)
        same(torch, K.kron, torch.kron, x, v)
        same(torch, K.linear, torch.nn.functional.linear, x, make((5, 4), dtype), make((5,), dtype))
    for x in layouts(p):
        for y in layouts(q):
            same(torch, K.bmm, torch.bmm, x, y)
            same(torch, lambda *z: K.baddbmm(*z, beta=2, alpha=3), lambda *z: torch.baddbmm(*z, beta=2, alpha=3),
                 make((3, 5), dtype), x, y)  # fmt: skip
            if dtype != "f2":
                same(torch, lambda *z: K.addbmm(*z, beta=2, alpha=3), lambda *z: torch.addbmm(*z, beta=2, alpha=3),
                     make((3, 5), dtype), x, y)  # fmt: skip
    same(torch, K.dot, torch.dot, v, w)
    same(torch, K.vdot, torch.vdot, v, w)
    same(torch, K.outer, torch.outer, v, make((3,), dtype))
    same(torch, K.addr, torch.addr, make((4, 4), dtype), v, w)
    same(torch, lambda *z: K.addr(*z, beta=2, alpha=3), lambda *z: torch.addr(*z, beta=2, alpha=3),
         make((4, 4), dtype), v, w)  # fmt: skip
    c, d = make((4, 3), dtype), make((4, 3), dtype, 3)
    if dtype != "f2":
        same(torch, K.cross, lambda a, b: torch.cross(a, b, dim=1), c, d)
        same(torch, lambda a, b: K.cross(a, b, 0), lambda a, b: torch.cross(a, b, 0), c.T, d.T)
        same(torch, K.linalg_cross, torch.linalg.cross, c, d[:1])


@parity
def test_matmul_like_torch():
    torch = pytest.importorskip("torch")
    shapes = [(), (4,), (3, 4), (4, 5), (2, 3, 4), (2, 4, 5), (1, 4, 5), (6, 1, 4, 3), (3, 4, 5), (0, 4), (4, 0), (5,)]
    for s in shapes:
        for t in shapes:
            same(torch, K.matmul, torch.matmul, make(s), make(t, seed=3), prefix=12)
    for s in shapes[1:5]:
        same(torch, K.matmul, torch.matmul, make(s), make(s[::-1], "f4"), prefix=12)


@parity
def test_linear_like_torch():
    torch = pytest.importorskip("torch")
    linear = torch.nn.functional.linear
    for s in ((3,), (2, 3), (2, 2, 3), (0, 3), (), (2, 2, 5)):
        for w in ((4, 3), (3,), (4, 2)):
            same(torch, K.linear, linear, make(s), make(w))
            if w == (4, 3):
                same(torch, K.linear, linear, make(s), make(w), make((4,)))
    same(torch, K.linear, linear, make((2, 3)), make((4, 3)), make((5,)))
    same(torch, K.linear, linear, make((2, 3)), make((4, 3), "f4"))


@parity
def test_tensordot_and_promotion_like_torch():
    torch = pytest.importorskip("torch")
    a, b = make((2, 3, 4)), make((3, 4, 5))
    for dims in (2, 0, 1, -1, 4, ([1, 2], [0, 1]), ([2], [1]), ([-1, 0], [1]), ([0, 0], [0, 0]), ([1], [0])):
        same(torch, lambda x, y, d=dims: K.tensordot(x, y, d), lambda x, y, d=dims: torch.tensordot(x, y, d), a, b)
    same(torch, lambda x, y: K.tensordot(x, y, 1), lambda x, y: torch.tensordot(x, y, 1), make((2, 1)), make((3, 4)))
    same(torch, K.outer, torch.outer, make((3,), "i4"), make((4,), "f4"))
    same(torch, K.kron, torch.kron, make((3, 2), "i4"), make((), "f8"))
    same(torch, K.addr, torch.addr, make((3, 4), "f4"), make((3,), "f4"), make((4,), "f8"))
    same(torch, K.kron, torch.kron, make(()), make(()))


@parity
def test_errors_like_torch():
    torch = pytest.importorskip("torch")
    m = make
    cases = [
        ("mm", m((2, 3)), m((2, 3))), ("mm", m((2, 3)), m((3,))), ("mm", m((3,)), m((3, 2))),
        ("mm", m((2, 3), "f4"), m((3, 2))), ("bmm", m((2, 3)), m((2, 3))), ("bmm", m((2, 3, 4)), m((2, 3))),
        ("bmm", m((2, 3, 4)), m((3, 4, 5))), ("bmm", m((2, 3, 4)), m((2, 4, 5), "f4")), ("mv", m((2, 3)), m((2,))),
        ("mv", m((2, 3)), m((3, 1))), ("mv", m((2, 3)), m((3,), "f4")), ("dot", m((3,)), m((4,))),
        ("dot", m((3, 1)), m((3,))), ("dot", m((3,)), m((3,), "f4")), ("vdot", m((3,)), m((4,))),
        ("outer", m((3,)), m((3, 1))), ("addmm", m((2, 2)), m((2, 3)), m((2, 3))),
        ("addmm", m((5,)), m((2, 3)), m((3, 2))), ("addmm", m((2, 2), "f4"), m((2, 3)), m((3, 2))),
        ("addmm", m((2, 2)), m((2,)), m((3, 2))), ("addmm", m((2, 2)), m((2, 3)), m((3, 2), "f4")),
        ("addmv", m((2,)), m((2, 3)), m((2,))), ("addmv", m((5,)), m((2, 3)), m((3,))),
        ("addbmm", m((3, 5)), m((2, 3, 4)), m((2, 3, 5))), ("addbmm", m((3, 5)), m((2, 3)), m((2, 4, 5))),
        ("addbmm", m((3, 6)), m((2, 3, 4)), m((2, 4, 5))), ("addbmm", m((3, 5)), m((2, 3, 4)), m((3, 4, 5))),
        ("baddbmm", m((3, 5)), m((2, 3, 4)), m((2, 3, 5))), ("baddbmm", m((3, 6)), m((2, 3, 4)), m((2, 4, 5))),
        ("baddbmm", m((3, 5), "f4"), m((2, 3, 4)), m((2, 4, 5))), ("addr", m((2, 3)), m((2,)), m((3, 1))),
        ("addr", m((2, 4)), m((2,)), m((3,))), ("trace", m((3,))), ("cross", m((4, 5)), m((4, 5)), 1),
    ]  # fmt: skip
    for name, *arguments in cases:
        same(torch, getattr(K, name), getattr(torch, name), *arguments, prefix=30)


EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij,kj->ik", (2, 3), (4, 3)), ("ij->ji", (2, 3)),
    ("ij->", (2, 3)), ("ij->j", (2, 3)), ("ii", (3, 3)), ("ii->i", (3, 3)), ("iij->ij", (3, 3, 2)),
    ("i,j", (2,), (3,)),
    ("i,i->i", (3,), (3,)), ("i,i", (3,), (3,)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), (",", (), ()), ("->", ()),
    ("...ij,...jk->...ik", (7, 2, 3), (3, 5)), ("...ij,jk", (7, 2, 3), (3, 5)), ("...j->j", (3, 3)),
    ("...j", (2, 3, 4)),
    ("i...->...", (2, 3, 4)), ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("i,j,k,l->lkji", (2,), (3,), (2,), (3,)),
    ("ijk,ilm,njm,nlk,abc->", (2, 3, 4), (2, 5, 6), (7, 3, 6), (7, 5, 4), (2, 2, 2)),
    ("ij,jk", (2, 3), (1, 4)), ("ij,ij->ij", (2, 3), (1, 3)), ("bA,bB", (3, 2), (3, 4)),
    ("i j, j k -> i k", (2, 3), (3, 4)),
    ("ij,k->k", (2, 3), (4,)), ("ij,jk->", (2, 3), (3, 4)), ("iji->j", (3, 2, 3)),
    ("ab...,b...->a...", (2, 3, 4), (3, 1)),
    ("ij,jk", (2, 3), (4, 5)), ("ij,jk->ik", (2, 3)), ("ij->ik", (2, 3)), ("ijk->ik", (2, 3)), ("i1", (3, 3)),
    ("ij->ii", (3, 3)), ("ii", (3, 4)), ("", (3, 3)), ("i->i", (2, 3)), ("i", (2,), (2,)), ("ijk...->i", (2, 3)),
    ("ij,jk->ki", (0, 3), (3, 4)), ("ij,jk->ki", (2, 0), (0, 4)), ("..->", (2, 3)),
]  # fmt: skip


@parity
@pytest.mark.parametrize("case", EQUATIONS, ids=[c[0] for c in EQUATIONS])
def test_einsum_like_torch(case):
    torch = pytest.importorskip("torch")
    equation, *shapes = case
    operands = [make(s, seed=i) for i, s in enumerate(shapes)]
    same(torch, lambda *x: einsum(equation, x), lambda *x: torch.einsum(equation, *x), *operands)


# ------------------------------------------------------------------------------------------------- without torch


def test_einsum_agrees_with_numpy():
    for equation, *shapes in EQUATIONS[:14]:
        operands = [make(s, seed=i) for i, s in enumerate(shapes)]
        np.testing.assert_allclose(einsum(equation, operands), np.einsum(equation, *operands), atol=1e-12)


def test_by_hand():
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert K.mm(a, a).tolist() == [[7, 10], [15, 22]]
    assert K.dot(a[0], a[1]).shape == () and K.dot(a[0], a[1]) == 11
    assert K.addmm(np.full((2, 2), np.nan), a, a, beta=0).tolist() == [[7, 10], [15, 22]]
    assert K.linear(a, a, np.array([1.0, 0.0])).tolist() == [[6, 11], [12, 25]]
    out = np.zeros((2, 2))
    assert K.addmm(out, a, a, out=out) is out and out[0, 0] == 7
    assert K.trace(np.array([[1, 2], [3, 4]], "i4")).dtype == np.int64
    assert K.vdot(np.array([1j]), np.array([1j])) == 1
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)"):
        K.mm(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(RuntimeError, match="expected m1 and m2 to have the same dtype, but got: float != double"):
        K.mm(np.ones((2, 3), "f4"), np.ones((3, 2)))
    with pytest.raises(NotImplementedError, match="\"addmm_impl_cpu_\" not implemented for 'Bool'"):
        K.mm(np.ones((2, 3), bool), np.ones((3, 2), bool))
