"""Our CUDA kernels of attention, batch norm, embeddings and accumulation, as test_own_kernels.py has the others.

On a machine without a GPU they are not compiled, and there is nothing to compare.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import retrograd as torch
import retrograd.nn.functional as F
from gpu.beside import DIGITS, DTYPES, layouts, numbers, same
from retrograd.arrays.own import attention, elementwise, pending

pytestmark = pytest.mark.skipif(os.environ.get("RETROGRAD_GPU") != "1", reason="kernels are compiled for a GPU")


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
        if shape[-1] > 64 and dtype is torch.bfloat16:
            continue  # as those of float16, which take long enough to compile
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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_long_attention_of_narrow_dtypes(gpu, causal, dtype, monkeypatch):
    """In parts: of several heads, of one, and of some rows of it."""
    for part in (1 << 14, 1 << 17, 1 << 20):
        monkeypatch.setattr(attention, "_MANY", 0)
        monkeypatch.setattr(attention, "_PART", part)
        for shape, longer in [((2, 3, 130, 16), 130), ((1, 2, 70, 8), 200), ((2, 4, 33, 64), 40)]:
            kv = (*shape[:-2], longer, shape[-1])
            arrays = [numbers(s, dtype, i) for i, s in enumerate((shape, kv, kv))]
            weight = numbers(shape, dtype, 9)
            here = [one.double().requires_grad_() for one in arrays]
            expected = attention_by_hand(*here, None, causal)
            (expected * weight.double()).sum().backward()
            there = [one.to("cuda").transpose(1, 2).contiguous().transpose(1, 2) for one in arrays]
            there = [one.detach().requires_grad_() for one in there]
            y = F.scaled_dot_product_attention(*there, is_causal=causal)
            (y * weight.to("cuda")).sum().backward()
            same(y, expected, dtype, f"attention {shape}")
            for mine, theirs in zip(there, here, strict=True):
                scale = max(1.0, float(theirs.grad.abs().max()))
                same(mine.grad / scale, theirs.grad / scale, dtype, f"gradient {shape}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_never_holds_all_scores(gpu, dtype):
    q, k, v = (torch.zeros(1, 8, 8192, 64, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3))
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
    scores = 8 * 8192 * 8192 * q.element_size()
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
