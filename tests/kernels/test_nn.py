"""Kernels of neural networks (`kernels/nn.py`)."""

import numpy as np
import pytest

from retrograd import backends
from retrograd import kernels as K
from retrograd.kernels import conv

parity = pytest.mark.parity
REDUCTIONS = ["none", "mean", "sum"]


@pytest.fixture(autouse=True)
def _silent():
    with np.errstate(all="ignore"):
        yield


def agree(ours, theirs):
    assert type(ours) is np.ndarray
    expected = theirs.detach().numpy()
    assert ours.dtype == expected.dtype and ours.shape == expected.shape
    tolerance = {"float16": 5e-3, "float32": 2e-5}.get(ours.dtype.name, 1e-10)
    np.testing.assert_allclose(ours, expected, rtol=tolerance, atol=tolerance)


def refused_alike(ours, theirs, prefix=30):
    with pytest.raises(Exception) as expected:
        theirs()
    with pytest.raises(type(expected.value)) as caught:
        ours()
    assert str(caught.value)[:prefix] == str(expected.value)[:prefix]


@parity
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_like_torch(name, dtype):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    kernel, backward, theirs = getattr(K, name), getattr(K, name + "_backward"), getattr(torch, name)
    inputs = [
        rng.standard_normal((4, 5)), rng.standard_normal((5, 4)).T * 50, rng.standard_normal((2, 3, 4)), np.array(2.0),
        np.zeros((0, 3)), np.zeros((3, 0)), np.array([[-np.inf, 1.0], [-np.inf, -np.inf]]),
    ]  # fmt: skip
    for a in inputs:
        a = a.astype(dtype)
        for dim in {0, -1}:
            t = torch.from_numpy(a).requires_grad_()
            expected = theirs(t, dim)
            result = kernel(a, dim)
            agree(result, expected)
            g = rng.standard_normal(a.shape).astype(dtype)
            g = np.asarray(g)
            (grad,) = torch.autograd.grad(expected, t, torch.from_numpy(g))
            if dtype != "f2":
                agree(backward(g, result, dim), grad)
    a = np.arange(6).reshape(2, 3)
    agree(kernel(a, 1, np.dtype("f4")), theirs(torch.from_numpy(a), 1, dtype=torch.float32))
    refused_alike(lambda: kernel(a, 0), lambda: theirs(torch.from_numpy(a), 0))
    refused_alike(lambda: kernel(a * 1.0, 2), lambda: theirs(torch.from_numpy(a * 1.0), 2))


@parity
@pytest.mark.parametrize("reduction", range(3))
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_nll_loss_like_torch(reduction, dtype):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for shape in ((5,), (7, 5), (2, 5, 3), (2, 5, 3, 4), (0, 5)):
        a = rng.standard_normal(shape).astype(dtype)
        target_shape = shape[:1] + shape[2:] if len(shape) > 1 else ()
        for ignore in (-100, 2, -1):
            for weighted in (False, True):
                target = np.asarray(rng.integers(0, 5, target_shape))
                if ignore == -1 and target.size > 1:
                    target.flat[0] = -1
                weight = rng.random(5).astype(dtype) if weighted else None
                t = torch.from_numpy(a).requires_grad_()
                w = None if weight is None else torch.from_numpy(weight)
                expected = torch.nn.functional.nll_loss(
                    t, torch.from_numpy(target), w, ignore_index=ignore, reduction=REDUCTIONS[reduction]
                )
                result, total = K.nll_loss(a, target, weight, reduction, ignore)
                agree(result, expected)
                assert total.shape == () and total.dtype == a.dtype
                g = np.asarray(rng.standard_normal(expected.shape).astype(dtype))
                (grad,) = torch.autograd.grad(expected, t, torch.from_numpy(g))
                agree(K.nll_loss_backward(g, a, target, weight, reduction, ignore, total), grad)


@parity
def test_nll_loss_errors_like_torch():
    torch = pytest.importorskip("torch")
    ones = lambda *shape: np.ones(shape)
    for a, target, weight in [
        (ones(2, 3), np.array([0, 3]), None), (ones(2, 3), np.array([0, -1]), None), (ones(2, 3), np.array([0]), None),
        (ones(2, 3), np.array([0.0, 1.0]), None), (ones(3), np.array([1, 1]), None), (ones(2, 3), np.array(1), None),
        (ones(2, 3), np.array([0, 1]), ones(4)), (ones(2, 3), np.array([0, 1]), ones(3).astype("f4")),
        (ones(2, 3, 4), np.array([[0, 1]]), None), (ones(2, 3, 4, 5), np.zeros((2, 4, 6), int), None),
        (ones(2, 3, 4, 5), np.zeros((2, 4), int), None), (np.ones((2, 3), int), np.array([0, 1]), None),
        (np.array(1.0), np.array(0), None),
    ]:  # fmt: skip
        w = None if weight is None else torch.from_numpy(weight)
        refused_alike(
            lambda a=a, t=target, w=weight: K.nll_loss(a, t, w),
            lambda a=a, t=target, w=w: torch.nn.functional.nll_loss(torch.from_numpy(a), torch.from_numpy(t), w),
        )


@parity
def test_mse_loss_like_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    mse = torch._C._nn.mse_loss
    for a, b in (
        (rng.standard_normal((3, 4)), rng.standard_normal((3, 4))),
        (rng.standard_normal((3, 4)), rng.standard_normal(4)),
        (rng.standard_normal((3, 4)).astype("f4"), rng.standard_normal((3, 4))),
        (rng.standard_normal((3, 4)).astype("f2"), rng.standard_normal((3, 4)).astype("f2")),
        (np.array(1.0), np.array(3.0)),
        (np.zeros((0, 3)), np.zeros((0, 3))),
    ):
        for reduction in range(3):
            agree(K.mse_loss(a, b, reduction), mse(torch.from_numpy(a), torch.from_numpy(b), reduction))
    refused_alike(lambda: K.mse_loss(np.ones((2, 3)), np.ones(4), 1), lambda: mse(torch.ones(2, 3), torch.ones(4), 1))


@parity
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_layer_norm_like_torch(dtype):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for shape, normalized in (((4, 5), (5,)), ((2, 3, 4), (3, 4)), ((2, 3, 4), (4,)), ((6,), (6,)), ((0, 3), (3,))):
        a = rng.standard_normal(shape).astype(dtype)
        for weight, bias in (
            (None, None),
            (rng.random(normalized).astype(dtype), None),
            (rng.random(normalized).astype(dtype), rng.random(normalized).astype(dtype)),
        ):
            tensors = [None if x is None else torch.from_numpy(x).requires_grad_() for x in (a, weight, bias)]
            expected = torch.native_layer_norm(tensors[0], normalized, tensors[1], tensors[2], 1e-5)
            result = K.layer_norm(a, normalized, weight, bias)
            for r, e in zip(result, expected):
                agree(r, e)
            if dtype == "f2" or not a.size:
                continue
            g = rng.standard_normal(shape).astype(dtype)
            wanted = [t for t in tensors if t is not None]
            grads = torch.autograd.grad(expected[0], wanted, torch.from_numpy(g))
            mask = [t is not None for t in tensors]
            found = K.layer_norm_backward(g, a, normalized, result[1], result[2], weight, bias, mask)
            assert [f is not None for f in found] == mask
            for f, e in zip([f for f in found if f is not None], grads):
                agree(f, e)
    one = torch.ones
    for a, normalized, weight, bias in (
        ((2, 3), (2,), None, None), ((2, 3), (), None, None), ((2, 3), (3,), (2,), None), ((2, 3), (3,), (3,), (2,)),
    ):  # fmt: skip
        refused_alike(
            lambda a=a, n=normalized, w=weight, b=bias: K.layer_norm(np.ones(a), n, w and np.ones(w), b and np.ones(b)),
            lambda a=a, n=normalized, w=weight, b=bias: torch.native_layer_norm(
                one(a), n, w and one(w), b and one(b), 1e-5
            ),
        )


@parity
def test_embedding_like_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for dtype in ("f4", "f8"):
        weight = rng.standard_normal((11, 6)).astype(dtype)
        for indices in (rng.integers(0, 11, (4, 5)), np.array(3), np.zeros((0,), int), rng.integers(0, 11, 9000)):
            for padding in (-1, 3):
                for scale in (False, True):
                    t = torch.from_numpy(weight).requires_grad_()
                    expected = torch.ops.aten.embedding(t, torch.from_numpy(indices), padding, scale)
                    agree(K.embedding(weight, indices, padding), expected)
                    g = rng.standard_normal(expected.shape).astype(dtype)
                    (grad,) = torch.autograd.grad(expected, t, torch.from_numpy(g))
                    found = K.embedding_backward(g, indices, 11, padding, scale)
                    assert found.dtype == dtype
                    np.testing.assert_allclose(found, grad.numpy(), rtol=1e-3, atol=1e-4)
    embedding = torch.ops.aten.embedding
    for w, i in (
        (np.ones((3, 2)), np.array([5])), (np.ones((3, 2)), np.array([-1])), (np.ones((3, 2)), np.array([1.0])),
        (np.ones(3), np.array([1])),
    ):  # fmt: skip
        refused_alike(
            lambda w=w, i=i: K.embedding(w, i),
            lambda w=w, i=i: embedding(torch.from_numpy(w), torch.from_numpy(i)),
        )


# ------------------------------------------------------------------------------------------------- without torch


def test_by_hand():
    np.testing.assert_allclose(K.softmax(np.array([0.0, np.log(3.0)]), 0), [0.25, 0.75])
    np.testing.assert_allclose(K.log_softmax(np.zeros((1, 4)), 1), np.full((1, 4), -np.log(4)))
    a = np.array([[-1.0, -2.0], [-3.0, -4.0]])
    output, total = K.nll_loss(a, np.array([1, -100]))
    assert output == 2 and total == 1
    assert np.isnan(K.nll_loss(a, np.array([-100, -100]))[0])
    assert K.nll_loss(a, np.array([1, -100]), None, 0)[0].tolist() == [2, 0]
    assert K.embedding_backward(np.ones((3, 2)), np.array([0, 0, 1]), 3).tolist() == [[2, 2], [1, 1], [0, 0]]
    out, mean, rstd = K.layer_norm(np.array([[1.0, 3.0]]), (2,), eps=0.0)
    assert out.tolist() == [[-1, 1]] and mean.tolist() == [[2]] and rstd.tolist() == [[1]]


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("size", [(5, 6), (9, 17), (20, 21)])
def test_images_of_bytes_are_resized_without_aliasing(torch, mode, size):
    """As close to the exact result as bytes that are rounded after each dimension can be."""
    image = np.random.default_rng(0).integers(30, 220, (2, 3, 12, 13), dtype=np.uint8)
    found = torch.nn.functional.interpolate(torch.from_numpy(image), size=size, mode=mode, antialias=True)
    exact = torch.nn.functional.interpolate(torch.from_numpy(image).double(), size=size, mode=mode, antialias=True)
    assert found.dtype == torch.uint8
    assert (found.double() - exact.clip(0, 255)).abs().max() <= 1.5


def test_lanczos_is_for_antialiasing(torch):
    image = torch.zeros(1, 1, 4, 4)
    with pytest.raises(ValueError, match="Lanczos mode requires antialias=True"):
        torch.nn.functional.interpolate(image, size=(2, 2), mode="lanczos", align_corners=False)
    with pytest.raises(ValueError, match="Lanczos mode does not support align_corners=True"):
        torch.nn.functional.interpolate(image, size=(2, 2), mode="lanczos", antialias=True, align_corners=True)


@pytest.mark.parametrize(
    "batch, channels, outputs, size, kernel, padding, dilation",
    [
        (70, 3, 8, (14, 13), (3, 3), (1, 1), (1, 1)),  # several blocks of images, the last one smaller
        (3, 5, 40, (40, 37), (3, 5), (2, 0), (1, 2)),
        (5, 7, 14, (300,), (4,), (3,), (2,)),
        (2, 2, 4, (9, 20, 23), (2, 3, 2), (1, 1, 0), (1, 1, 1)),
    ],
)
@pytest.mark.parametrize("special", [False, True])
def test_gradients_of_convolutions_with_more_outputs_than_inputs(
    batch, channels, outputs, size, kernel, padding, dilation, special, monkeypatch
):
    monkeypatch.setattr(conv, "_BLOCK_BYTES", 1 << 20)
    rng = np.random.default_rng(0)
    sides = list(zip(size, kernel, padding, dilation, strict=True))
    out = [s + 2 * p - d * (k - 1) for s, k, p, d in sides]
    grad, weight = rng.standard_normal((batch, outputs, *out)), rng.standard_normal((outputs, channels, *kernel))
    if special:
        grad[1, 2].flat[5], grad[-1, 0].flat[-1] = np.nan, np.inf
    bias = rng.standard_normal(channels)
    padded = np.zeros((batch, channels, *[s + 2 * p for s, _, p, _ in sides]))
    for tap in np.ndindex(*kernel):
        part = (..., *[slice(t * d, t * d + o) for t, d, o in zip(tap, dilation, out, strict=True)])
        padded[part] += np.einsum("no...,oc->nc...", grad, weight[(..., *tap)])
    expected = padded[(..., *[slice(p, p + s) for s, _, p, _ in sides])]
    ones = [1] * len(size)
    taken = []
    scatter = conv._scatter_columns
    monkeypatch.setattr(conv, "_scatter_columns", lambda *args: taken.append(1) or scatter(*args))
    with backends.fast.flags(enabled=False), np.errstate(invalid="ignore"):
        found = K.convolution_backward_input(grad, weight, (batch, channels, *size), ones, padding, dilation, 1)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        found = K.convolution(grad, weight, bias, ones, padding, dilation, True, [0] * len(size), 1)
    np.testing.assert_allclose(found, expected + bias.reshape(-1, *ones), rtol=1e-9, atol=1e-9)
    assert len(taken) == 2
