"""Our CUDA kernels beside the kernels of the CPU: shapes, layouts, dtypes, NaNs and infinities, nothing at all.

On a machine without a GPU they are not compiled, and there is nothing to compare.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import retrograd as torch
import retrograd.nn.functional as F
from gpu.beside import DIGITS, DTYPES, layouts, numbers, same

pytestmark = pytest.mark.skipif(os.environ.get("RETROGRAD_GPU") != "1", reason="kernels are compiled for a GPU")

SHAPES = [(), (1,), (7,), (33, 65), (64, 64), (3, 1, 5), (2, 3, 4, 5), (0, 4), (1000, 3), (1, 5000)]

UNARY = {
    "neg": lambda x: -x,
    "exp": torch.exp,
    "tanh": torch.tanh,
    "abs": torch.abs,
    "square": torch.square,
    "reciprocal": torch.reciprocal,
    "sin": torch.sin,
    "cos": torch.cos,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "expm1": torch.expm1,
    "times number": lambda x: x * 1.5,
    "number less": lambda x: 2.0 - x,
    "over": lambda x: 1.0 / (x * x + 1),
    "sum": torch.sum,
    "clone": torch.clone,
    "contiguous": lambda x: x.contiguous() * 1,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one(gpu, name, dtype):
    for number, shape in enumerate(SHAPES):
        for x in layouts(numbers(shape, dtype, number)):
            results = []
            for device in ("cpu", "cuda"):
                one = x.to(device).detach().requires_grad_()
                y = UNARY[name](one)
                (y * y.detach()).sum().backward()
                results.append((y, one.grad))
            same(results[1][0], results[0][0], dtype, f"{name} {shape}")
            same(results[1][1], results[0][1], dtype, f"gradient of {name} {shape}")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum"])
def test_functions_of_two(gpu, name, dtype):
    pairs = [
        ((4, 5), (4, 5)),
        ((4, 5), (5,)),
        ((4, 1), (1, 5)),
        ((), (3,)),
        ((2, 3, 4), (3, 1)),
        ((0, 3), (3,)),
        ((64, 64), (64, 64)),
        ((5, 1, 7), (6, 1)),
        ((2, 2, 2, 2, 2, 2), (2, 1, 2, 1, 2)),
    ]
    for number, (one, other) in enumerate(pairs):
        for a in layouts(numbers(one, dtype, number)):
            b = numbers(other, dtype, number + 50).abs() + 1
            results = []
            for device in ("cpu", "cuda"):
                x, y = (one.detach().to(device).detach().requires_grad_() for one in (a, b))
                z = getattr(torch, name)(x, y)
                (z * z.detach()).sum().backward()
                results.append((z, x.grad, y.grad))
            for what, mine, theirs in zip(("value", "first", "second"), *reversed(results), strict=True):
                digits = 10 if what != "value" else 1  # sums of products
                torch.testing.assert_close(
                    mine.cpu().double(),
                    theirs.double(),
                    rtol=digits * DIGITS[dtype],
                    atol=digits * DIGITS[dtype],
                    equal_nan=True,
                )


@pytest.mark.parametrize("dtype", DTYPES)
def test_not_numbers(gpu, dtype):
    x = numbers((5, 6), dtype, 0, special=True)
    for name, function in UNARY.items():
        same(function(x.to("cuda")), function(x), dtype, name)
    y = numbers((5, 6), dtype, 1)
    for name in ("add", "sub", "mul", "div", "maximum", "minimum", "lt", "le", "gt", "ge", "eq", "ne"):
        here = getattr(torch, name)(x, y), getattr(torch, name)(y, x), getattr(torch, name)(x, x)
        x_, y_ = x.to("cuda"), y.to("cuda")
        there = getattr(torch, name)(x_, y_), getattr(torch, name)(y_, x_), getattr(torch, name)(x_, x_)
        for a, b in zip(there, here, strict=True):
            same(a, b, dtype, name)


def test_in_place_and_overlapping(gpu):
    x = numbers((6, 6), torch.float32, 0)
    for function in (
        lambda t: t.add_(t),
        lambda t: t.mul_(2.0),
        lambda t: t[::2].add_(t[1::2]),
        lambda t: t.fill_(3.0),
        lambda t: t[:, :3].copy_(t[:, 3:]),
        lambda t: t.t().sub_(1.5),
        lambda t: t[1].div_(t[2]),
    ):
        here, there = x.clone(), x.to("cuda")
        function(here)
        function(there)
        same(there, here, torch.float32, "in place")
    for function in (lambda t: t.add_(t.t()), lambda t: t[1:].add_(t[:-1])):
        for one in (x.clone(), x.to("cuda")):
            with pytest.raises(RuntimeError, match="refer to a single memory location"):
                function(one)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", ["softmax", "log_softmax"])
def test_softmax(gpu, function, dtype):
    for number, shape in enumerate([(4, 7), (64, 10), (3, 5, 1000), (2, 5000), (1, 1), (8, 2, 33)]):
        for dim in (-1, 0):
            results = []
            for device in ("cpu", "cuda"):
                # The reference is in float64: in narrow dtypes the CPU's sums are not better than ours.
                x, weight = (
                    one.double() if device == "cpu" else one.to(device)
                    for one in (numbers(shape, dtype, number) * 3, numbers(shape, dtype, number + 9))
                )
                x.requires_grad_()
                y = getattr(F, function)(x, dim)
                (y * weight).sum().backward()
                results.append((y, x.grad))
            same(results[1][0], results[0][0], dtype, f"{function} {shape}")
            same(results[1][1], results[0][1], dtype, f"gradient of {function} {shape}")
    x = torch.tensor([[float("-inf"), 0.0, 1.0], [float("nan"), 1.0, 2.0], [float("-inf")] * 3]).to(dtype)
    same(getattr(F, function)(x.to("cuda"), -1), getattr(F, function)(x, -1), dtype, "not finite")


@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm(gpu, dtype):
    for number, (shape, over) in enumerate(
        [((4, 7), (7,)), ((2, 3, 512), (512,)), ((300, 65), (65,)), ((3, 4, 5), (4, 5)), ((2, 3000), (3000,))]
    ):
        for affine in (True, False):
            results = []
            for device in ("cpu", "cuda"):
                x = numbers(shape, dtype, number).to(device).requires_grad_()
                w = (numbers(over, dtype, number + 1) * 0.1 + 1).to(device).requires_grad_() if affine else None
                b = numbers(over, dtype, number + 2).to(device).requires_grad_() if affine else None
                y = F.layer_norm(x, over, w, b)
                (y * numbers(shape, dtype, number + 3).to(device)).sum().backward()
                results.append([y, x.grad] + ([w.grad, b.grad] if affine else []))
            for mine, theirs in zip(results[1], results[0], strict=True):
                scale = max(1.0, float(theirs.detach().abs().max()))
                same(mine / scale, theirs / scale, dtype, f"layer_norm {shape}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_entropy(gpu, dtype):
    rng = np.random.default_rng(0)
    for shape in [(5, 7), (64, 10), (4, 3, 6), (2, 3, 4, 5), (3000, 4)]:
        for options in (
            {},
            {"reduction": "sum"},
            {"reduction": "none"},
            {"ignore_index": 1},
            {"label_smoothing": 0.1},
            {"weight": True},
        ):
            target = torch.from_numpy(rng.integers(0, shape[1], (shape[0], *shape[2:])))
            results = []
            for device in ("cpu", "cuda"):
                given = dict(options)
                if given.get("weight"):
                    given["weight"] = (numbers((shape[1],), dtype, 5).abs() + 0.5).to(device)
                x = numbers(shape, dtype, 3).to(device).requires_grad_()
                loss = F.cross_entropy(x, target.to(device), **given)
                loss.sum().backward()
                results.append((loss, x.grad))
            scale = max(1.0, float(results[0][0].detach().abs().max()))
            same(results[1][0] / scale, results[0][0] / scale, dtype, f"loss {shape} {options}")
            same(results[1][1], results[0][1], dtype, f"gradient {shape} {options}")


def test_a_class_that_is_not_there_is_told_later(gpu):
    x = torch.zeros(3, 4, device="cuda")
    loss = F.nll_loss(x, torch.tensor([0, 9, 1]).to("cuda"))
    with pytest.raises(IndexError, match="Target 9 is out of bounds"):
        loss.item()
    assert F.nll_loss(x, torch.tensor([0, 3, 1]).to("cuda")).item() == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums(gpu, dtype):
    for number, shape in enumerate(
        [(5,), (100_000,), (64, 256), (2048, 33), (33, 2048), (3, 4, 5), (2, 3, 4, 5), (1, 9)]
    ):
        x = numbers(shape, dtype, number)
        dims = [None, *range(len(shape)), tuple(range(len(shape) - 1)), (0, -1) if len(shape) > 2 else (0,)]
        for dim in dims:
            for keepdim in (False, True):
                if dim is None and keepdim:
                    continue
                here = x.double().sum() if dim is None else x.double().sum(dim, keepdim)
                there = x.to("cuda").sum() if dim is None else x.to("cuda").sum(dim, keepdim)
                scale = max(1.0, float(here.abs().max()))
                same(there / scale, (here / scale).to(dtype), dtype, f"sum {shape} {dim}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_products(gpu, dtype):
    cases = [
        ((3, 4), (4, 5)),
        ((64, 784), (784, 256)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 3, 4, 5), (2, 3, 5, 6)),
        ((4,), (4, 3)),
        ((3, 4), (4,)),
        ((1, 4), (4, 1)),
        ((5, 1), (1, 6)),
        ((0, 4), (4, 2)),
        ((3, 2, 4), (4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
    ]
    for one, other in cases:
        for turned in (False, True):
            results = []
            for device in ("cpu", "cuda"):
                a, b = numbers(one, dtype, 0).to(device), numbers(other, dtype, 1).to(device)
                if turned and a.ndim > 1 and b.ndim > 1:
                    a, b = a.mT.contiguous().mT, b.mT.contiguous().mT
                a, b = a.requires_grad_(), b.requires_grad_()
                y = a @ b
                (y * numbers(tuple(y.shape), dtype, 2).to(device)).sum().backward()
                results.append((y, a.grad, b.grad))
            for mine, theirs in zip(*reversed(results), strict=True):
                scale = max(1.0, float(theirs.detach().abs().max())) if theirs.numel() else 1.0
                same(mine / scale, theirs / scale, dtype, f"{one} @ {other}")


@pytest.mark.parametrize("source", [*DTYPES, torch.bool])
@pytest.mark.parametrize("target", DTYPES)
def test_casts(gpu, source, target):
    x = numbers((5, 7), torch.float64, 0, special=True).to(source)
    for one, there in zip(layouts(x), layouts(x.to("cuda")), strict=True):
        same(there.to(target), one.to(target), torch.float64, f"{source} to {target}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_convolutions(gpu, dtype):
    cases = [
        ((2, 3, 9, 8), (4, 3, 3, 3), {"padding": 1}),
        ((2, 3, 9, 8), (4, 3, 3, 2), {"stride": 2}),
        ((2, 4, 9, 8), (4, 2, 3, 3), {"groups": 2}),
        ((1, 2, 11, 11), (3, 2, 3, 3), {"dilation": 2, "padding": (2, 1)}),
        ((3, 2, 20), (5, 2, 4), {"stride": 3, "padding": 2}),
        ((2, 3, 5, 5), (4, 3, 1, 1), {}),
        ((5, 1, 28, 28), (32, 1, 3, 3), {"padding": 1}),
    ]
    for shape, kernel, options in cases:
        for turned in (False, True):
            if turned and options.get("groups"):
                continue
            results = []
            for device in ("cpu", "cuda"):
                given = shape if not turned else (shape[0], kernel[0], *shape[2:])
                x, w, b = numbers(given, dtype, 0), numbers(kernel, dtype, 1), numbers((kernel[turned],), dtype, 2)
                x, w, b = (one.double() if device == "cpu" else one.to(device) for one in (x, w, b))
                x, w, b = (one.requires_grad_() for one in (x, w, b))
                name = f"conv{'_transpose' if turned else ''}{len(shape) - 2}d"
                y = getattr(F, name)(x, w, b, **options)
                weight = numbers(tuple(y.shape), dtype, 3)
                (y * (weight.double() if device == "cpu" else weight.to(device))).sum().backward()
                results.append((y, x.grad, w.grad, b.grad))
            for mine, theirs in zip(*reversed(results), strict=True):
                scale = max(1.0, float(theirs.detach().abs().max()))
                same(mine / scale, theirs / scale, dtype, f"{name} {shape} {kernel} {options}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_pools(gpu, dtype):
    for shape, kernel, options in [
        ((2, 3, 8, 8), 2, {}),
        ((2, 3, 9, 7), 3, {"stride": 2, "padding": 1}),
        ((2, 3, 11), 2, {}),
        ((1, 2, 10, 10), 3, {"stride": 1, "dilation": 2}),
        ((2, 7, 7), 3, {"ceil_mode": True}),
    ]:
        for special in (False, True):
            results = []
            for device in ("cpu", "cuda"):
                x = numbers(shape, dtype, 0, special).to(device).requires_grad_()
                name = "max_pool1d" if shape == (2, 3, 11) else "max_pool2d"
                y, at = getattr(F, name)(x, kernel, return_indices=True, **options)
                y.sum().backward()
                results.append((y, x.grad, at.double()))
            for mine, theirs in zip(*reversed(results), strict=True):
                same(mine, theirs, dtype, f"{name} {shape} {options}")


@pytest.mark.parametrize(
    "name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax", "ASGD", "Rprop"]
)
def test_optimizers_in_one_launch(gpu, name):
    options = {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "lr": 0.1} if name == "SGD" else {}
    found = []
    for device in ("cpu", "cuda"):
        parameters = [
            numbers(shape, torch.float32, i).to(device).requires_grad_()
            for i, shape in enumerate([(5, 7), (), (3000,), (1, 2, 3)] * 20)
        ]
        optimizer = getattr(torch.optim, name)(parameters, **options)
        for step in range(4):
            for i, parameter in enumerate(parameters):
                parameter.grad = numbers(tuple(parameter.shape), torch.float32, 100 * step + i).to(device)
            optimizer.step()
        found.append(parameters)
    for mine, theirs in zip(found[1], found[0], strict=True):
        same(mine, theirs, torch.float32, name)
