"""Printing: known prints without torch, then the same arrays printed by torch and by us, compared as strings."""

from __future__ import annotations

import math

import numpy as np
import pytest

from retrograd.core import dtypes
from retrograd.tensor import printing
from retrograd.tensor.printing import format_number, get_printoptions, printoptions, set_printoptions, tensor_str


class GradFn:
    """A backward node, as far as printing looks at one."""

    def __init__(self, name):
        self._name = name

    def name(self):
        return self._name


class Tensor:
    """What printing reads of a tensor, and nothing else; printing goes by the name of the class."""

    device = "cpu"

    def __init__(self, data, requires_grad=False, grad_fn=None):
        self._numbers_ = self._memory_ = np.asarray(data)  # two names of one slot
        self.dtype = dtypes.from_numpy_dtype(self._numbers_.dtype)
        self.requires_grad = requires_grad or grad_fn is not None
        self.grad_fn = None if grad_fn is None else GradFn(grad_fn)
        self.is_leaf = grad_fn is None

    def __repr__(self):
        return tensor_str(self)

    def __format__(self, spec):
        return format_number(self, spec)


class Parameter(Tensor):
    pass


class Labelled(Tensor):
    pass


def f32(values, **kw):
    return Tensor(np.array(values, dtype=np.float32), **kw)


@pytest.fixture(autouse=True)
def options_stay():
    before = get_printoptions()
    yield
    assert get_printoptions() == before


inf, nan = math.inf, math.nan

KNOWN = [
    # integers and bools
    (Tensor(np.array([1, -20, 3])), "tensor([  1, -20,   3])"),
    (Tensor(np.array(7)), "tensor(7)"),
    (Tensor(np.array([1, 2], dtype=np.int32)), "tensor([1, 2], dtype=torch.int32)"),
    (Tensor(np.array([True, False])), "tensor([ True, False])"),
    # whole, fixed, scientific
    (f32([1, 2]), "tensor([1., 2.])"),
    (f32([1, -2.5]), "tensor([ 1.0000, -2.5000])"),
    (f32([1, 1001]), "tensor([1.0000e+00, 1.0010e+03])"),
    (f32([1e-5, 1]), "tensor([1.0000e-05, 1.0000e+00])"),
    (f32([1e8]), "tensor([100000000.])"),
    (f32([2e8]), "tensor([2.0000e+08])"),
    (f32(1.5), "tensor(1.5000)"),
    (f32(-0.0), "tensor(-0.)"),
    # what has no say in notation and width
    (f32([-0.0, 1.5]), "tensor([-0.0000, 1.5000])"),
    (f32([nan, 1.5, -inf]), "tensor([   nan, 1.5000,   -inf])"),
    (f32([0, nan, -inf]), "tensor([0., nan, -inf])"),
    # complex
    (Tensor(np.array([1.5 + 2j, 1 - 0.5j], np.complex64)), "tensor([1.5000+2.0000j, 1.0000-0.5000j])"),
    (Tensor(np.array([1 + 2j])), "tensor([1.+2.j], dtype=torch.complex128)"),
    (Tensor(np.complex64(complex(-0.0, 0.0))), "tensor(-0.+0.j)"),
    # empty
    (f32([]), "tensor([])"),
    (f32(np.empty((0, 3))), "tensor([], size=(0, 3))"),
    (Tensor(np.empty((0, 3), np.int64)), "tensor([], size=(0, 3), dtype=torch.int64)"),
    (f32(np.empty((2, 0)), requires_grad=True), "tensor([], size=(2, 0), requires_grad=True)"),
    # nesting
    (f32([[1, 2], [3, 4]]), "tensor([[1., 2.],\n        [3., 4.]])"),
    (
        f32(np.zeros((2, 2, 1, 1))),
        "tensor([[[[0.]],\n\n         [[0.]]],\n\n\n        [[[0.]],\n\n         [[0.]]]])",
    ),
    # too large
    (Tensor(np.arange(2000)), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
    (
        Tensor(np.arange(2000).reshape(1000, 2)),
        "tensor([[   0,    1],\n        [   2,    3],\n        [   4,    5],\n        ...,\n"
        "        [1994, 1995],\n        [1996, 1997],\n        [1998, 1999]])",
    ),
    # lines and suffixes
    (
        Tensor(np.arange(30)),
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])",
    ),
    (f32([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
    (f32([1.0], grad_fn="MulBackward0"), "tensor([1.], grad_fn=<MulBackward0>)"),
    (
        Tensor(np.array([1.5]), grad_fn="MulBackward0"),
        "tensor([1.5000], dtype=torch.float64, grad_fn=<MulBackward0>)",
    ),
    (
        Tensor(np.full(7, 1.5), requires_grad=True),
        "tensor([1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000, 1.5000],\n"
        "       dtype=torch.float64, requires_grad=True)",
    ),
    # classes
    (Parameter(np.float32([1])), "tensor([1.])"),
    (Labelled(np.float32([[1], [2]])), "Labelled([[1.],\n          [2.]])"),
]


@pytest.mark.parametrize("tensor, expected", KNOWN, ids=[expected[:50] for _, expected in KNOWN])
def test_known(tensor, expected):
    assert tensor_str(tensor) == expected


def test_contents_given():
    assert tensor_str(f32([1.0], requires_grad=True), tensor_contents="?") == "tensor(?, requires_grad=True)"


def test_other_device():
    tensor = f32([1.0])
    tensor.device = "cuda:0"
    assert tensor_str(tensor) == "tensor([1.], device='cuda:0')"


def test_undefined_history_is_printed():
    class View(Tensor):
        grad_fn = property(lambda self: (_ for _ in ()).throw(RuntimeError("view of a split")), lambda self, v: None)

    View.__name__ = "Tensor"
    assert tensor_str(View(np.float32([1]), requires_grad=True)) == "tensor([1.], grad_fn=<Invalid>)"


def test_tangent():
    import retrograd
    from retrograd.autograd import forward_ad

    with forward_ad.dual_level():
        vector = forward_ad.make_dual(retrograd.tensor([1.0]), retrograd.tensor([2.0]))
        assert repr(vector) == "tensor([1.], tangent=tensor([2.]))"
        scalar = forward_ad.make_dual(retrograd.tensor(1.0), retrograd.tensor(2.0))
        assert repr(scalar) == "tensor(1., tangent=2.0)"
    assert repr(retrograd.tensor(1.0)) == "tensor(1.)"


def test_default_dtype_goes_unsaid():
    dtypes.set_default_dtype(dtypes.float64)
    try:
        assert tensor_str(Tensor(np.array([1.5]))) == "tensor([1.5000])"
        assert tensor_str(Tensor(np.array([1j]))) == "tensor([0.+1.j])"
        assert tensor_str(f32([1.5])) == "tensor([1.5000], dtype=torch.float32)"
        assert tensor_str(Tensor(np.empty(0))) == "tensor([])"
        assert tensor_str(Tensor(np.empty(0, np.complex128))) == "tensor([], dtype=torch.complex128)"
    finally:
        dtypes.set_default_dtype(dtypes.float32)


def test_options():
    with printoptions(precision=2):
        assert tensor_str(f32([1.5])) == "tensor([1.50])"
        with printoptions(sci_mode=True):
            assert tensor_str(f32([1.5])) == "tensor([1.50e+00])"
        assert get_printoptions()["sci_mode"] is None
    with printoptions(threshold=3, edgeitems=1):
        assert tensor_str(Tensor(np.arange(4))) == "tensor([0,  ..., 3])"
    with printoptions(threshold=3, edgeitems=0):
        assert tensor_str(Tensor(np.arange(4))) == "tensor([...], size=(4,))"
    with printoptions(linewidth=10):
        assert tensor_str(f32([0, 0], requires_grad=True)) == "tensor([0.,\n        0.],\n       requires_grad=True)"


def test_options_come_back_after_an_error():
    before = get_printoptions()
    with pytest.raises(ZeroDivisionError), printoptions(profile="full", sci_mode=True):
        assert get_printoptions()["threshold"] == math.inf
        raise ZeroDivisionError
    with pytest.raises(TypeError), printoptions(colour=True):
        pass
    assert get_printoptions() == before


def test_sci_mode_falls_back():
    """As in torch, a call that does not name sci_mode resets it."""
    with printoptions():
        set_printoptions(sci_mode=True)
        set_printoptions(precision=3)
        assert get_printoptions()["sci_mode"] is None


def test_profiles():
    with printoptions():
        set_printoptions(profile="short", precision=7)
        assert get_printoptions() == {
            "precision": 7, "threshold": 1000, "edgeitems": 2, "linewidth": 80, "sci_mode": None,
        }  # fmt: skip
        set_printoptions(profile="default")
        assert get_printoptions()["precision"] == 4


def test_format():
    assert f"{f32(1.5)}" == "1.5"
    assert f"{f32(1.5):.3f}" == "1.500"
    assert f"{Tensor(np.array(3)):d}" == "3"
    assert f"{f32([1.5])}" == "tensor([1.5000])"
    assert f"{Labelled(np.float32(1.5))}" == "Labelled(1.5000)"
    with pytest.raises(TypeError, match=r"unsupported format string passed to Tensor\.__format__"):
        f"{f32([1.5]):.3f}"


def test_large_tensor_is_not_walked():
    """Of an abbreviated tensor only the edges are read: this would take minutes and terabytes otherwise."""
    huge = np.broadcast_to(np.float32(1.5), (10**4, 10**4, 10**4))
    assert tensor_str(Tensor(huge)).count("1.5000") == 6**3


# ---------------------------------------------------------------------------------------------------- against torch

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64",
          "float16", "float32", "float64", "complex64", "complex128"]  # fmt: skip
STRANGE = [0.0, -0.0, inf, -inf, nan, 1e-4, 9.9999e-5, 1e8, 1.00001e8, 1.0, 1000.0, 1001.0, 0.5, 1e-30, 99999.99999]


def random_reals(rng, shape, dtype):
    n = int(np.prod(shape))
    style = rng.integers(7)
    if style == 0:
        values = rng.standard_normal(n)
    elif style == 1:
        values = np.round(rng.standard_normal(n) * 10.0 ** rng.integers(0, 10))
    elif style == 2:
        values = rng.standard_normal(n) * 10.0 ** rng.uniform(-8, 12)
    elif style == 3:
        values = 10.0 ** rng.uniform(-6, 10, n) * rng.choice([-1, 1], n)
    elif style == 4:
        values = rng.choice(STRANGE, n)
    elif style == 5:
        values = np.where(rng.random(n) < 0.2, rng.choice(STRANGE, n), np.round(rng.standard_normal(n) * 5, 2))
    else:
        values = np.full(n, rng.choice([0.0, -0.0, nan, inf, 1.0, 0.25]))
    with np.errstate(all="ignore"):
        return values.reshape(shape).astype(dtype)


def random_array(rng, dtype):
    dtype = np.dtype(dtype)
    choice = rng.random()
    if choice < 0.1:
        shape = (int(rng.integers(900, 1200)),)
    elif choice < 0.2:
        shape = tuple(int(n) for n in rng.integers(5, 14, 3))
    elif choice < 0.3:
        shape = tuple(int(n) for n in rng.integers(0, 3, int(rng.integers(0, 4))))
    else:
        ndim = int(rng.integers(1, 5))
        shape = tuple(int(n) for n in rng.integers(1, [60, 12, 6, 4][ndim - 1], ndim))
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < rng.random())
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        span = min(info.max, 10 ** int(rng.integers(1, 19)))
        return np.asarray(rng.integers(max(info.min, -span), span, shape, dtype=dtype, endpoint=True))
    if dtype.kind == "c":
        part = np.float32 if dtype.itemsize == 8 else np.float64
        array = np.empty(shape, dtype)
        array.real, array.imag = random_reals(rng, shape, part), random_reals(rng, shape, part)
        return array
    return random_reals(rng, shape, dtype)


def random_options(rng):
    options = {}
    if rng.random() < 0.5:
        return options
    for name, values in {
        "precision": [0, 1, 2, 6, 10],
        "threshold": [0, 5, 20, 100, inf],
        "edgeitems": [0, 1, 2, 4],
        "linewidth": [1, 20, 40, 100, 200],
        "sci_mode": [True, False],
        "profile": ["short", "full", "default"],
    }.items():
        if rng.random() < 0.4:
            options[name] = values[int(rng.integers(len(values)))]
    return options


@pytest.mark.parity
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", DTYPES)
def test_as_torch(dtype, seed):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng([seed, DTYPES.index(dtype)])
    for _ in range(12):
        array, options = random_array(rng, dtype), random_options(rng)
        theirs, ours = torch.from_numpy(array.copy()), Tensor(array)
        if array.dtype.kind in "fc":
            kind = rng.integers(3)
            if kind:
                theirs.requires_grad_()
                ours.requires_grad = True
            if kind == 2:
                theirs = theirs.clone()
                ours.grad_fn = GradFn("CloneBackward0")
        with printoptions(**options), torch._tensor_str.printoptions(**options):
            assert tensor_str(ours) == repr(theirs), (options, array.shape)


@pytest.mark.parity
@pytest.mark.parametrize("length", range(1, 40))
def test_suffix_wraps_as_torch(length):
    """Every position of the last column, for one suffix and for two."""
    torch = pytest.importorskip("torch")
    for value, dtype in [(1, "float32"), (12, "float64"), (123, "int32"), (1.5, "float64"), (1j, "complex128")]:
        array = np.full(length, value, dtype)
        theirs = torch.from_numpy(array.copy())
        assert tensor_str(Tensor(array)) == repr(theirs)
        if array.dtype.kind != "i":
            theirs.requires_grad_()
            assert tensor_str(Tensor(array, requires_grad=True)) == repr(theirs)
            assert tensor_str(Tensor(array, grad_fn="MulBackward0")) == repr(theirs * 1)


@pytest.mark.parity
@pytest.mark.parametrize("seed", range(6))
def test_thresholds_as_torch(seed):
    """One or two numbers right at the edges between the notations."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    edges = [1e-4, 1e8, 1e-1, 1e5, 1000.0, 1.0]
    for dtype in (np.float32, np.float64):
        for _ in range(60):
            first = dtype(edges[int(rng.integers(len(edges)))])
            array = np.array([first, first * dtype(rng.choice([1, 1000, 0.001]))], dtype)
            for _ in range(int(rng.integers(3))):
                array[1] = np.nextafter(array[1], dtype(rng.choice([0, inf])))
            for shown in (array, array[:1], array[1:]):
                assert tensor_str(Tensor(shown)) == repr(torch.from_numpy(shown.copy()))


@pytest.mark.parity
@pytest.mark.parametrize("default", ["float16", "float32", "float64"])
def test_default_dtype_as_torch(default):
    torch = pytest.importorskip("torch")
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, default))
    dtypes.set_default_dtype(getattr(dtypes, default))
    try:
        for dtype in DTYPES:
            for shape in ((), (1,), (0,), (0, 2)):
                array = np.ones(shape, dtype)
                assert tensor_str(Tensor(array)) == repr(torch.from_numpy(array))
    finally:
        torch.set_default_dtype(before)
        dtypes.set_default_dtype(dtypes.float32)


@pytest.mark.parity
def test_transposed_as_torch():
    torch = pytest.importorskip("torch")
    array = np.arange(2000.0).reshape(40, 50).T
    assert tensor_str(Tensor(array)) == repr(torch.from_numpy(array))


@pytest.mark.parity
def test_set_printoptions_as_torch():
    torch = pytest.importorskip("torch")
    calls = [{"profile": "short"}, {"sci_mode": False}, {"precision": 6}, {"profile": "full", "edgeitems": 9},
             {}, {"profile": "unknown"}, {"linewidth": 50, "sci_mode": True}, {"threshold": 5},
             {"profile": "default"}]  # fmt: skip
    with printoptions(), torch._tensor_str.printoptions():
        for call in calls:
            set_printoptions(**call)
            torch.set_printoptions(**call)
            assert printing.get_printoptions() == torch._tensor_str.get_printoptions(), call
