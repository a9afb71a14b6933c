"""Large arrays of float32 beside torch, with the values that blocks, folds and products by BLAS could get wrong.

The NumPy kernels take large arrays another way than small ones (`retrograd/kernels/blocks.py`); infinities, NaN, zeros
of either sign, ties, quotients without measure and lengths that no block divides are what they have to get right there.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd.kernels import blocks, compiled

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

SIZE = 2 * blocks.BLOCK + 77
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3.4e38, -3.4e38, 1e-45, -1e-45, 1e-38], np.float32)


def numbers(kind: str, seed: int, size: int = SIZE) -> np.ndarray:
    """Normal numbers; whole ones, so that quotients and ties are exact; or normal ones with special ones among them."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(size).astype(np.float32)
    if kind == "whole":
        return np.rint(x * 4)
    if kind == "wide":
        return (x * 10.0 ** rng.uniform(-30, 30, size)).astype(np.float32)
    if kind == "special":  # in the second block alone, with every other special number somewhere opposite
        x[blocks.BLOCK + 5 :][: 4 * len(SPECIAL)] = np.roll(np.tile(SPECIAL, 4), seed)
        x[-200:-56] = (np.repeat(SPECIAL, 12) if seed else np.tile(SPECIAL, 12))
    return x


def same(ours: Any, theirs: Any, **tolerance: Any) -> None:
    """The same numbers, zeros of one sign, NaN at the same places."""
    a, b = ours.detach().numpy(), theirs.detach().numpy()
    assert a.dtype == b.dtype
    np.testing.assert_allclose(a, b, **{"rtol": 0, "atol": 0, **tolerance})
    zero = (b == 0) & (a == 0) & (a.dtype.kind == "f")
    a, b = a.real, b.real
    np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]))


BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "remainder": lambda lib, x, y: lib.remainder(x, y),
    "fmod": lambda lib, x, y: lib.fmod(x, y),
    "floor_divide": lambda lib, x, y: lib.floor_divide(x, y),
    "nextafter": lambda lib, x, y: lib.nextafter(x, y),
}


def compare_quotients(name: str, x: np.ndarray, y: np.ndarray, ours: Any, theirs: Any) -> None:
    """With torch where the quotient has some 22 bits: beyond, the rounding of its steps shows in `floor_divide`, and
    `fmod` and `remainder` are NaN once it overflows.  There C's fmod of doubles, which is exact, has the answer."""
    with np.errstate(all="ignore"):
        far = np.isfinite(x) & np.isfinite(y) & (y != 0) & ~(np.abs(x.astype(np.float64) / y) < 2**22)
        exact = np.fmod(x, y, dtype=np.float64).astype(np.float32)
    same(ours[retrograd.from_numpy(~far)], theirs[torch.from_numpy(~far)])
    if name == "remainder":
        other_side = (exact != 0) & (np.signbit(exact) != np.signbit(y))
        exact = np.where(other_side, exact + y, exact)
    if name != "floor_divide":
        np.testing.assert_array_equal(ours.numpy()[far], exact[far])


@pytest.mark.parametrize("kind", ["normal", "whole", "special", "wide"])
@pytest.mark.parametrize("name", BINARY)
def test_pairs_of_numbers_give_the_same_bits(name: str, kind: str):
    x, y = numbers(kind, 0), numbers(kind, 1)
    ours = BINARY[name](retrograd, retrograd.from_numpy(x), retrograd.from_numpy(y))
    theirs = BINARY[name](torch, torch.from_numpy(x), torch.from_numpy(y))
    if name == "nextafter":
        same(ours, theirs)
    else:
        compare_quotients(name, x, y, ours, theirs)


@pytest.mark.parametrize("name", ["remainder", "fmod", "floor_divide"])
@pytest.mark.parametrize("shapes", [((250, 300), (300,)), ((300,), (250, 300)), ((250, 300), (250, 1))])
def test_quotients_of_shapes_that_meet(name: str, shapes: tuple[tuple[int, ...], ...]):
    x, y = (np.rint(numbers("normal", i, int(np.prod(s))) * 9).reshape(s) for i, s in enumerate(shapes))
    ours = getattr(retrograd, name)(retrograd.from_numpy(x), retrograd.from_numpy(y))
    same(ours, getattr(torch, name)(torch.from_numpy(x), torch.from_numpy(y)))


@pytest.mark.parametrize("kind", ["normal", "whole"])
def test_between_two_numbers(kind: str):
    x, y, w = (numbers(kind, seed) for seed in range(3))
    ours = retrograd.lerp(*map(retrograd.from_numpy, (x, y, w)))
    theirs = torch.lerp(*map(torch.from_numpy, (x, y, w)))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["normal", "whole", "special"])
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2", "hypot"])
def test_pairs_of_numbers_give_the_same_numbers(name: str, kind: str):
    x, y = numbers(kind, 0), numbers(kind, 1)
    ours = getattr(retrograd, name)(retrograd.from_numpy(x), retrograd.from_numpy(y))
    theirs = getattr(torch, name)(torch.from_numpy(x), torch.from_numpy(y))
    same(ours, theirs, rtol=3e-6, atol=1e-6)


@pytest.mark.parametrize("eps", [None, 1e-3])
def test_logits(eps: float | None):
    x = np.concatenate([np.linspace(-0.1, 1.1, SIZE, dtype=np.float32), SPECIAL])
    ours, theirs = retrograd.logit(retrograd.from_numpy(x), eps), torch.logit(torch.from_numpy(x), eps)
    same(ours, theirs, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("divisor", [0.7, -3.0, 0.0, float("inf"), float("nan"), 1e-30])
@pytest.mark.parametrize("name", ["remainder", "fmod", "floor_divide"])
def test_division_by_one_number(name: str, divisor: float):
    x = numbers("special", 0)
    ours = getattr(retrograd, name)(retrograd.from_numpy(x), divisor)
    theirs = getattr(torch, name)(torch.from_numpy(x), divisor)
    compare_quotients(name, x, np.full_like(x, divisor), ours, theirs)


@pytest.mark.parametrize("special", [(), (np.nan,), (np.inf,), (np.inf, -np.inf), (0.0, np.inf), (np.nan, np.inf)])
@pytest.mark.parametrize("shape", [(SIZE,), (130, 259), (7, 31, 64), (9, 3, 1031), (20011, 2), (2003, 17)])
@pytest.mark.parametrize("name", ["prod", "nansum", "cumsum", "cumprod", "sign"])
def test_along_dimensions(name: str, shape: tuple[int, ...], special: tuple[float, ...]):
    rng = np.random.default_rng(3)
    x = rng.standard_normal(shape).astype(np.float32)
    if "prod" in name:
        x = np.exp(0.01 * x).astype(np.float32) * np.sign(x)
    x.reshape(-1)[rng.integers(0, x.size, len(special))] = special
    assert x.size > compiled.LARGE
    dims = [()] if name == "sign" else [(d,) for d in range(len(shape))]
    if name in ("prod", "nansum"):
        dims.append(())
    for dim in dims:
        ours = getattr(retrograd, name)(retrograd.from_numpy(x), *dim)
        theirs = getattr(torch, name)(torch.from_numpy(x), *dim)
        if name == "nansum" and -np.inf in special:
            # torch leaves out a partial sum that has become NaN, so its result depends on where it splits the sum.
            with np.errstate(invalid="ignore"):
                exact = np.nansum(x.astype(np.float64), *dim)
            theirs = torch.from_numpy(np.asarray(exact, dtype=np.float32))
        same(ours, theirs, rtol=2e-5, atol=2e-4)


DTYPES = ("float64", "float16", "complex64", "int32")
OTHER_DTYPES = [(name, dtype) for name in ("cumsum", "cumprod", "prod") for dtype in DTYPES]
OTHER_DTYPES.remove(("prod", "float16"))  # which torch multiplies in half precision, and is far off


@pytest.mark.parametrize(("name", "dtype"), OTHER_DTYPES)
def test_along_dimensions_in_other_dtypes(name: str, dtype: str):
    x = np.random.default_rng(4).uniform(0.98, 1.02, (130, 263)).astype(dtype)
    for dim in (0, 1):
        ours = getattr(retrograd, name)(retrograd.from_numpy(x), dim)
        theirs = getattr(torch, name)(torch.from_numpy(x), dim)
        same(ours, theirs, rtol=2e-3 if dtype == "float16" else 2e-5)


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("kernel", [(3, 3), (1, 4), (2, 1)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 1), (2, 3)])
def test_convolutions_of_each_channel_by_itself(times: int, kernel: tuple[int, int], stride: tuple[int, int]):
    """Forward and both gradients, for every padding and dilation, of images that are more than one block."""
    for padding, dilation in itertools.product([(0, 0), (1, 2)], [(1, 1), (2, 1)]):
        found = []
        for lib in (retrograd, torch):
            rng = np.random.default_rng(7)
            arrays = [rng.standard_normal(s) for s in ((3, 5, 11, 13), (5 * times, 1, *kernel), (5 * times,))]
            leaves = [lib.from_numpy(a).requires_grad_() for a in arrays]
            y = lib.nn.functional.conv2d(*leaves, stride=stride, padding=padding, dilation=dilation, groups=5)
            weights = lib.from_numpy(rng.standard_normal(tuple(y.shape)))
            found.append((y, *lib.autograd.grad(y, leaves, weights)))
        for ours, theirs in zip(*found, strict=True):
            same(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("special", [(), (np.nan,), (np.inf,)])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("stride, padding", [(1, 0), (1, 1), (2, 1)])
def test_convolutions_of_several_images_at_once(
    stride: int, padding: int, groups: int, special: tuple[float, ...], monkeypatch: Any
):
    """Seven images in blocks of three: the last block has one, and its columns lie where those of others were."""
    each = 4 * 9 * 13 * 15 * 8
    monkeypatch.setattr(sys.modules["retrograd.kernels.conv"], "_BLOCK_BYTES", 3 * each)
    found = []
    for lib in (retrograd, torch):
        rng = np.random.default_rng(7)
        x, *rest = (rng.standard_normal(s) for s in ((7, 4, 11, 13), (6, 4 // groups, 3, 3), (6,)))
        x[1, 2, 5, 12:] = special or 1.0  # at the edge, beside columns that mean nothing
        leaves = [lib.from_numpy(a).requires_grad_() for a in (x, *rest)]
        y = lib.nn.functional.conv2d(*leaves, stride=stride, padding=padding, groups=groups)
        weights = lib.from_numpy(rng.standard_normal(tuple(y.shape)))
        found.append((y, *lib.autograd.grad(y, leaves, weights)))
    for ours, theirs in zip(*found, strict=True):
        same(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("special", [(), (np.nan,), (-np.inf,)])
@pytest.mark.parametrize("options", [(3, 2, 1), (2, 1, 0), (3, 1, 1, 2), (2, 2, 0)])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_maxima_of_windows(dims: int, options: tuple[int, ...], special: tuple[float, ...], monkeypatch: Any):
    """Of windows that overlap and that do not; the gradients are scattered in several parts, the last a smaller one."""
    monkeypatch.setattr(sys.modules["retrograd.kernels.pool"], "_SCATTERED", 5 * 23**dims if dims > 1 else 5 * 600)
    rng = np.random.default_rng(5)
    shape = (9, 8, 600) if dims == 1 else (9, 8, *(23,) * dims) if dims == 2 else (3, 4, *(23,) * dims)
    x = np.rint(rng.standard_normal(shape) * 3).astype(np.float32) + 0.0  # many ties, and one sign of zero
    x.reshape(-1)[rng.integers(0, x.size, 40 * len(special))] = special * 40
    found = []
    for lib in (retrograd, torch):
        leaf = lib.from_numpy(x).requires_grad_()
        values, at = getattr(lib.nn.functional, f"max_pool{dims}d")(leaf, *options, return_indices=True)
        weights = lib.from_numpy(np.random.default_rng(6).standard_normal(values.shape).astype(np.float32))
        weights[0, 0, 0] = float("inf")
        found.append((values, at, lib.autograd.grad(values, leaf, weights)[0]))
    (values, at, grad), (their_values, their_at, their_grad) = found
    same(values, their_values)
    np.testing.assert_array_equal(at.numpy(), their_at.numpy())
    same(grad, their_grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", [
    (2,), (3, 2, 1), (3, 1, 1), (5, 3, 2, True), (4, 2, 1, True, False), (3, 2, 0, False, True, 7), ((3, 2), (2, 4)),
])  # fmt: skip
@pytest.mark.parametrize("special", [(), (np.nan, np.inf)])
def test_means_of_windows(options: tuple[Any, ...], special: tuple[float, ...]):
    """Also of windows that go over the edge, and divided by what was asked for."""
    x = np.random.default_rng(5).standard_normal((9, 8, 23, 26)).astype(np.float32)
    x[3, 4, 5, 6 : 6 + len(special)] = special
    found = []
    for lib in (retrograd, torch):
        leaf = lib.from_numpy(x).requires_grad_()
        values = lib.nn.functional.avg_pool2d(leaf, *options)
        weights = lib.from_numpy(np.random.default_rng(6).standard_normal(values.shape).astype(np.float32))
        found.append((values, lib.autograd.grad(values, leaf, weights)[0]))
    for ours, theirs in zip(*found, strict=True):
        same(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("special", [(), (np.nan,), (np.inf,), (-np.inf,), (1e4, 1e4)])
@pytest.mark.parametrize("shape", [(70, 1031), (3, 129, 512), (300, 17)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm", "layer_norm without weight", "gelu"])
def test_rows_and_their_gradients(name: str, shape: tuple[int, ...], special: tuple[float, ...]):
    rng = np.random.default_rng(7)
    x, g = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
    x.reshape(-1)[rng.integers(0, x.size, len(special))] = special
    found = []
    for lib in (retrograd, torch):
        leaf = lib.from_numpy(x).requires_grad_()
        leaves = [leaf]
        if name.startswith("layer_norm"):
            if name == "layer_norm":
                leaves += [lib.linspace(*ends, shape[-1]).requires_grad_() for ends in ((-1, 2), (3, 0))]
            y = lib.nn.functional.layer_norm(leaf, shape[-1:], *leaves[1:])
        else:
            y = lib.nn.functional.gelu(leaf) if name == "gelu" else getattr(lib, name)(leaf, -1)
        found.append([y, *lib.autograd.grad(y, leaves, lib.from_numpy(g))])
    for ours, theirs in zip(*found, strict=True):
        if name == "gelu" and special == (np.inf,):  # torch has NaN for gelu of infinity, which is infinite
            assert np.isposinf(ours.detach().numpy()[np.isposinf(x)]).all() or ours is not found[0][0]
            ours, theirs = ours[retrograd.from_numpy(np.isfinite(x))], theirs[torch.from_numpy(np.isfinite(x))]
        a, b = ours.detach().numpy(), theirs.detach().numpy()
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4 if a.ndim == 1 else 2e-5)
