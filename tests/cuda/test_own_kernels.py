"""Our CUDA kernels beside the kernels of the CPU: shapes, layouts, dtypes, NaNs and infinities, nothing at all.

On a machine without a GPU they are not compiled, and there is nothing to compare.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import retrograd as torch
import retrograd.nn.functional as F
from retrograd.arrays.own import elementwise, pending

pytestmark = pytest.mark.skipif(os.environ.get("RETROGRAD_GPU") != "1", reason="kernels are compiled for a GPU")

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
#: What rounding may make of sums and of functions, in the CPU's order and in ours.
DIGITS = {torch.float32: 2e-5, torch.float64: 1e-11, torch.float16: 5e-3, torch.bfloat16: 4e-2}
SHAPES = [(), (1,), (7,), (33, 65), (64, 64), (3, 1, 5), (2, 3, 4, 5), (0, 4), (1000, 3), (1, 5000)]


def numbers(shape, dtype, seed, special=False):
    values = np.random.default_rng(seed).standard_normal(shape)
    if special and values.size > 6:
        values.reshape(-1)[:6] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0]
    return torch.from_numpy(values).to(dtype)


def layouts(x):
    """The same numbers in several layouts."""
    yield x
    if x.ndim > 1:
        yield x.transpose(0, -1).contiguous().transpose(0, -1)
        wide = torch.zeros(*x.shape[:-1], 2 * x.shape[-1], dtype=x.dtype, device=x.device)
        wide[..., ::2] = x
        yield wide[..., ::2]


def same(found, expected, dtype, what):
    a, b = found.detach().cpu().double().numpy(), expected.detach().double().numpy()
    assert a.shape == b.shape, f"{what}: {a.shape} for {b.shape}"
    digits = DIGITS[dtype]
    np.testing.assert_allclose(a, b, rtol=digits, atol=digits, equal_nan=True, err_msg=what)


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


def attention_by_hand(q, k, v, mask, causal):
    """Attention of float64 numbers, from its definition."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask.double()
    dead = (scores == float("-inf")).all(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(dead, 0), -1).masked_fill(dead, 0)
    return weights @ v


def masks(kind, shape, longer, dtype):
    """A mask for queries of `shape`, some of whose rows see nothing."""
    rng = np.random.default_rng(5)
    if kind in (None, "causal"):
        return None
    lead = {"bool": shape[:-2], "added": shape[:-2], "bool of keys": (shape[0], *[1] * (len(shape) - 3))}[kind]
    rows = 1 if kind == "bool of keys" else shape[-2]
    seen = rng.random((*lead, rows, longer)) < 0.7
    seen[..., :1, :] = kind == "bool of keys"  # else a row that sees nothing
    if kind == "added":
        return torch.from_numpy(np.where(seen, rng.standard_normal(seen.shape), -np.inf)).to(dtype)
    return torch.from_numpy(seen)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [None, "causal", "bool", "added", "bool of keys"])
def test_attention(gpu, kind, dtype):
    cases = [
        ((2, 3, 7, 4), 7),
        ((1, 2, 33, 16), 20),
        ((2, 2, 130, 64), 200),
        ((1, 2, 65, 30), 129),
        ((1, 1, 64, 128), 64),
        ((1, 2, 70, 100), 70),
        ((1, 1, 1, 1), 3),
    ]
    for shape, longer in cases:
        kv = (*shape[:-2], longer, shape[-1])
        arrays = [numbers(s, dtype, i) for i, s in enumerate((shape, kv, kv))]
        weight = numbers(shape, dtype, 9)
        mask = masks(kind, shape, longer, dtype)
        here = [one.double().requires_grad_() for one in arrays]
        expected = attention_by_hand(*here, mask, kind == "causal")
        (expected * weight.double()).sum().backward()
        for inside in (False, True):  # heads side by side, as attention of several heads has them
            there = [one.to("cuda") for one in arrays]
            if inside:
                there = [one.transpose(1, 2).contiguous().transpose(1, 2) for one in there]
            there = [one.detach().requires_grad_() for one in there]
            given = None if mask is None else mask.to("cuda")
            y = F.scaled_dot_product_attention(*there, given, is_causal=kind == "causal")
            (y * weight.to("cuda")).sum().backward()
            same(y, expected, dtype, f"attention {shape} {kind}")
            for name, mine, theirs in zip("qkv", there, here, strict=True):
                scale = max(1.0, float(theirs.grad.abs().max()))
                same(mine.grad / scale, theirs.grad / scale, dtype, f"gradient of {name} {shape} {kind}")


def test_attention_of_what_is_not_finite(gpu):
    q, k, v = (numbers((1, 1, 3, 4), torch.float32, i) for i in range(3))
    q[0, 0, 1, 0] = float("nan")
    for causal in (False, True):
        expected = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        found = F.scaled_dot_product_attention(*(one.to("cuda") for one in (q, k, v)), is_causal=causal)
        same(found, expected, torch.float32, "NaN")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_never_holds_all_scores(gpu, dtype):
    q, k, v = (torch.zeros(1, 4, 4096, 64, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3))
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
    scores = 4 * 4096 * 4096 * q.element_size()
    assert torch.cuda.max_memory_allocated() - before < scores / 4


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(gpu, training, dtype):
    # The reference is in float64, from the numbers as they are rounded.
    shapes = [(6, 5), (64, 70), (4, 3, 7), (8, 32, 28, 28), (2, 3, 4, 5, 6), (3, 40, 9, 9), (2000, 3), (2, 1, 3, 3)]
    for number, shape in enumerate(shapes):
        for layout in ("contiguous", "channels last", "apart"):
            for affine in (None, dtype, torch.float32):
                results = []
                for device in ("cpu", "cuda"):
                    x = numbers(shape, dtype, number) * 2 + 1
                    g = numbers(shape, dtype, number + 3)
                    statistics = [torch.zeros(shape[1]).to(dtype), torch.ones(shape[1]).to(dtype)]
                    parts = [(numbers((shape[1],), dtype, number + i) * 0.1 + 1).to(affine or dtype) for i in (1, 2)]
                    if affine is torch.float32:
                        statistics = [one.float() for one in statistics]
                    if dtype == torch.float64 and affine is torch.float32:
                        break
                    if device == "cpu":
                        x, g, *parts = (one.double() for one in (x, g, *parts))
                        statistics = [one.double() for one in statistics]
                    else:
                        x, g, *parts = (one.to(device) for one in (x, g, *parts))
                        statistics = [one.to(device) for one in statistics]
                        if layout == "channels last" and len(shape) > 2:
                            x = x.movedim(1, -1).contiguous().movedim(-1, 1)
                        elif layout == "apart":
                            x, g = list(layouts(x))[2], list(layouts(g))[1]
                    x = x.detach().requires_grad_()
                    w, b = (one.detach().requires_grad_() if affine else None for one in parts)
                    y = F.batch_norm(x, *statistics, w, b, training, 0.3, 1e-5)
                    (y * g).sum().backward()
                    results.append([y, x.grad, *([w.grad, b.grad] if affine else []), *statistics])
                if len(results) == 2:
                    for mine, theirs in zip(results[1], results[0], strict=True):
                        scale = max(1.0, float(theirs.detach().abs().max()))
                        same(mine / scale, theirs / scale, dtype, f"batch_norm {shape} {layout} {affine}")


def test_batch_norm_of_what_is_not_finite_and_of_a_large_mean(gpu):
    x = numbers((40, 3, 5), torch.float32, 0)
    x[:, 2] += 1e4
    x[3, 1, 2] = float("nan")
    expected = F.batch_norm(x, None, None, training=True)
    found = F.batch_norm(x.to("cuda"), None, None, training=True).cpu()
    # float32 has 3 digits left after such a mean is taken away
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=2e-3, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [0, 1, 7, 300, 9000])
def test_embedding(gpu, count, dtype):
    rng = np.random.default_rng(count)
    for rows, width in [(5, 3), (40, 300), (1000, 64), (1, 1)]:
        for options in ({}, {"padding_idx": 0}, {"scale_grad_by_freq": True}):
            for integer in (torch.int64, torch.int32):
                at = torch.from_numpy(rng.integers(0, rows, (count,))).to(integer)
                at = at.reshape(2, -1) if count and count % 2 == 0 else at
                results = []
                for device in ("cpu", "cuda"):
                    weight, g = numbers((rows, width), dtype, 1), numbers((*at.shape, width), dtype, 2)
                    weight, g = (one.double() if device == "cpu" else one.to(device) for one in (weight, g))
                    weight.requires_grad_()
                    y = F.embedding(at.to(device), weight, **options)
                    (y * g).sum().backward()
                    results.append((y, weight.grad))
                for mine, theirs in zip(*reversed(results), strict=True):
                    scale = max(1.0, float(theirs.detach().abs().max())) if theirs.numel() else 1.0
                    same(mine / scale, theirs / scale, dtype, f"embedding {rows} {width} {options}")


def test_embedding_of_a_row_that_is_not_there_is_told_later(gpu):
    weight = torch.ones(3, 4, device="cuda")
    y = F.embedding(torch.tensor([0, 7]).to("cuda"), weight)
    with pytest.raises(IndexError, match="index out of range in self: embedding was given 7"):
        y.cpu()
    assert F.embedding(torch.tensor([0, 2]).to("cuda"), weight).sum().item() == 8


def test_gradients_of_embeddings_are_the_same_each_time_when_that_is_asked_for(gpu):
    at = torch.from_numpy(np.random.default_rng(0).integers(0, 3, (20_000,))).to("cuda")
    g = numbers((20_000, 5), torch.float32, 1).to("cuda")
    torch.use_deterministic_algorithms(True)
    try:
        found = []
        for _ in range(3):
            weight = torch.zeros(3, 5, device="cuda", requires_grad=True)
            F.embedding(at, weight).backward(g)
            found.append(weight.grad.cpu())
        assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
    finally:
        torch.use_deterministic_algorithms(False)


def _accumulated(device, dtype):
    """What several uses and several passes add up to: leaves of products of matrices and of elements, and biases."""
    make = lambda shape, seed: numbers(shape, dtype, seed).to(device).requires_grad_()
    x, w, b, m, u = make((200, 6), 0), make((5, 6), 1), make((5,), 2), make((5, 4), 3), make((200, 4), 4)
    if device == "cpu":
        x, w, b, m, u = (one.detach().double().requires_grad_() for one in (x, w, b, m, u))
    for _ in range(3):
        y = F.linear(x, w, b) @ m  # w by way of t(), m itself
        z = y * u + u * u * y + u  # several gradients meet in u and in y
        (z * z.detach()).sum().backward()
    return [one.grad for one in (x, w, b, m, u)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_are_added_where_they_are_computed(gpu, dtype, monkeypatch):
    added, plus = [], []
    first, second = pending.add_to, pending.plus

    def add_to(out, array):
        kind, done = array._raw.kind, first(out, array)
        added.append(kind if done else None)
        return done

    monkeypatch.setattr(elementwise, "add_to", add_to)
    monkeypatch.setattr(pending, "plus", lambda old, array: plus.append(second(old, array)) or plus[-1])
    found, expected = _accumulated("cuda", dtype), _accumulated("cpu", dtype)
    for name, mine, theirs in zip(("x", "w", "b", "m", "u"), found, expected, strict=True):
        scale = max(1.0, float(theirs.abs().max()))
        digits = DIGITS[dtype] * (4 if dtype in (torch.float16, torch.bfloat16) else 1)  # several roundings
        np.testing.assert_allclose((mine / scale).double().cpu().numpy(), (theirs / scale).numpy(), rtol=digits,
                                   atol=digits, err_msg=name)  # fmt: skip
    assert {pending.PRODUCT, pending.ELEMENTS, pending.COLUMNS} <= set(added)
    assert any(one is not None for one in plus)


def test_gradients_that_are_handed_out_are_computed(gpu):
    x = numbers((70, 6), torch.float32, 0).to("cuda").requires_grad_()
    w = numbers((6, 6), torch.float32, 1).to("cuda").requires_grad_()
    w.grad = torch.ones(6, 6, device="cuda")
    (x @ w).sum().backward()  # that of x is kept as it is, beside that of w, which is added
    assert x.grad._memory_._raw.__class__ is not pending.Pending
    with torch.no_grad():
        w.zero_()
    expected = numbers((6, 6), torch.float32, 1).sum(1).expand(70, 6)
    same(x.grad, expected, torch.float32, "kept")
    same(w.grad, 1 + x.detach().cpu().sum(0)[:, None].expand(6, 6), torch.float32, "added")
    (found,) = torch.autograd.grad((x @ w).sum(), [w])
    assert found._memory_._raw.__class__ is not pending.Pending


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_and_norms_of_many_rows(gpu, dtype):
    for rows, width in [(65, 3), (700, 33), (4096, 9), (4097, 9), (5000, 70)]:
        x = numbers((rows, width), dtype, rows)
        here, there = x.double().sum(0), x.to("cuda").sum(0)
        scale = float(here.abs().max())
        same(there / scale, here / scale, dtype, f"sum {rows} {width}")
        results = []
        for device in ("cpu", "cuda"):
            w, g = numbers((width,), dtype, 1) + 1, numbers((rows, width), dtype, 2)
            one, w, g = (t.double() if device == "cpu" else t.to(device) for t in (x, w, g))
            w.requires_grad_()
            b = torch.zeros_like(w).detach().requires_grad_()
            (F.layer_norm(one, (width,), w, b) * g).sum().backward()
            results.append((w.grad, b.grad))
        for mine, theirs in zip(*reversed(results), strict=True):
            scale = float(theirs.abs().max())
            same(mine / scale, theirs / scale, dtype, f"layer_norm {rows} {width}")


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
