"""In-place samplers: the distributions, the refusals, what autograd makes of them; as torch does it."""

from __future__ import annotations

import math
from typing import Any

import pytest

N = 20000


def moments(x: Any) -> tuple[float, float]:
    return x.double().mean().item(), x.double().std().item()


@pytest.mark.parametrize(
    "draw, mean, std",
    [
        (lambda x: x.uniform_(), 0.5, math.sqrt(1 / 12)),
        (lambda x: x.uniform_(-1, 3), 1, math.sqrt(16 / 12)),
        (lambda x: x.normal_(), 0, 1),
        (lambda x: x.normal_(2, 0.5), 2, 0.5),
        (lambda x: x.exponential_(), 1, 1),
        (lambda x: x.exponential_(4), 0.25, 0.25),
        (lambda x: x.log_normal_(0, 0.25), math.exp(1 / 32), math.sqrt(math.expm1(1 / 16) * math.exp(1 / 16))),
        (lambda x: x.geometric_(0.25), 4, math.sqrt(12)),
        (lambda x: x.bernoulli_(), 0.5, 0.5),
        (lambda x: x.bernoulli_(0.2), 0.2, 0.4),
        (lambda x: x.random_(10), 4.5, math.sqrt(99 / 12)),
        (lambda x: x.random_(-3, 4), 0, 2),
    ],
)
def test_moments(torch: Any, draw: Any, mean: float, std: float) -> None:
    torch.manual_seed(0)
    x = torch.empty(100, N // 100).t()
    assert draw(x) is x
    found = moments(x)
    assert found == pytest.approx((mean, std), abs=0.04 * std + 0.02)


def test_cauchy(torch: Any) -> None:
    torch.manual_seed(0)
    x = torch.empty(N).cauchy_(1, 2)
    assert abs(x.median().item() - 1) < 0.1
    assert ((x > -1) & (x < 3)).float().mean().item() == pytest.approx(0.5, abs=0.02)


def test_whole_ranges(torch: Any) -> None:
    assert torch.empty(1000, dtype=torch.uint8).random_().max() > 240
    assert torch.empty(100, dtype=torch.int64).random_().max() > 2**60
    assert {*torch.empty(100, dtype=torch.bool).random_().tolist()} == {True, False}
    x = torch.empty(1000).random_()
    assert 2**23 < x.max() <= 2**24 and (x == x.floor()).all()
    assert torch.empty(1000, dtype=torch.int8).random_(-128, None).min() < -110


def test_bernoulli_with_tensors(torch: Any) -> None:
    assert (
        torch.empty(2, 3, dtype=torch.bool).bernoulli_(torch.tensor([1.0, 0, 1])).tolist() == [[True, False, True]] * 2
    )
    x = torch.empty(2, dtype=torch.int64).bernoulli_(torch.tensor([1.0, 0.0]))
    assert x.tolist() == [1, 0]
    p = torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert torch.bernoulli(p).tolist() == [0, 1] and torch.bernoulli(p).dtype == torch.float64
    assert torch.bernoulli(torch.zeros(2), 1.0).tolist() == [1, 1] == p.bernoulli(1.0).tolist()


def test_complex(torch: Any) -> None:
    x = torch.empty(N, dtype=torch.complex64).normal_()
    assert (x.abs() ** 2).mean().item() == pytest.approx(1, abs=0.05)
    y = torch.empty(N, dtype=torch.complex64).uniform_()
    assert y.imag.mean().item() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda t: t.empty(2).uniform_(3, 1), RuntimeError, "expects to return a .* range, but found from=3 > to=1"),
        (lambda t: t.empty(2, dtype=t.int64).uniform_(), NotImplementedError, "not implemented for 'Long'"),
        (lambda t: t.empty(2).normal_(0, -1), RuntimeError, "expects std >= 0.0, but found std -1"),
        (lambda t: t.empty(2, dtype=t.int64).normal_(), NotImplementedError, "not implemented for 'Long'"),
        (lambda t: t.empty(2).exponential_(-1), RuntimeError, "expects lambda > 0.0, but found lambda=-1"),
        (lambda t: t.empty(2, dtype=t.int64).exponential_(), RuntimeError, "continuous probability distribution"),
        (lambda t: t.empty(2).geometric_(0), RuntimeError, r"expects p to be in \(0, 1\), but got p=0"),
        (lambda t: t.empty(2).cauchy_(0, -1), RuntimeError, "expects sigma > 0.0, but found sigma=-1"),
        (lambda t: t.empty(2).log_normal_(0, -1), RuntimeError, "expects std > 0.0, but found std=-1"),
        (lambda t: t.empty(2).bernoulli_(2), RuntimeError, r"expects p to be in \[0, 1\], but got p=2"),
        (lambda t: t.bernoulli(t.tensor([2.0])), RuntimeError, "Expected p_in >= 0 && p_in <= 1"),
        (lambda t: t.bernoulli(t.tensor([1])), NotImplementedError, "not implemented for 'Long'"),
        (lambda t: t.empty(2).random_(5, 5), RuntimeError, "'from' to be less than 'to', but got from=5 >= to=5"),
        (lambda t: t.empty(2, dtype=t.uint8).random_(0, 300), RuntimeError, "to - 1 is out of bounds"),
        (lambda t: t.empty(2).uniform_(generator=3), TypeError, "must be torch.Generator, not int"),
        (lambda t: t.poisson(t.tensor([-1.0])), RuntimeError, "expected rate to be non-negative"),
    ],
)
def test_refusals(torch: Any, call: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        call(torch)


def test_generator(torch: Any) -> None:
    for name in ("uniform_", "normal_", "exponential_", "bernoulli_", "random_", "cauchy_", "log_normal_"):
        a, b = (getattr(torch.empty(5), name)(generator=torch.Generator().manual_seed(1)) for _ in range(2))
        assert (a == b).all(), name
    torch.manual_seed(5)
    first = torch.empty(3).normal_()
    torch.manual_seed(5)
    assert (first == torch.empty(3).normal_()).all()


def test_autograd(torch: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.normal_()
    y = x * 2
    y.uniform_()
    assert y._version == 1 and y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
    with torch.no_grad():
        x.normal_()
    assert x._version == 1
    p = torch.full((2,), 0.5, requires_grad=True)
    torch.bernoulli(p).sum().backward()
    assert p.grad.tolist() == [0, 0]


def test_multinomial(torch: Any) -> None:
    torch.manual_seed(0)
    weights = torch.tensor([[1.0, 0, 3], [0, 2, 0]])
    draws = torch.multinomial(weights, N, replacement=True)
    assert draws.shape == (2, N) and draws.dtype == torch.int64
    assert (draws[0] == 2).float().mean().item() == pytest.approx(0.75, abs=0.02)
    assert (draws[0] != 1).all() and (draws[1] == 1).all()
    assert sorted(torch.multinomial(torch.tensor([1.0, 2, 3]), 3).tolist()) == [0, 1, 2]
    firsts = torch.stack([torch.multinomial(torch.tensor([1.0, 3]), 1) for _ in range(400)])
    assert firsts.float().mean().item() == pytest.approx(0.75, abs=0.1)


@pytest.mark.parametrize(
    "weights, n, text",
    [
        ([1.0, 0.2], 3, "cannot sample n_sample > prob_dist.size"),
        ([1.0, 0.2], 0, "cannot sample n_sample <= 0 samples"),
        ([1, 2], 1, "only supports floating-point dtypes for input, got: Long"),
        ([-1.0, 2], 1, "contains either `inf`, `nan` or element < 0"),
        ([0.0, 0], 1, "sum of probabilities <= 0"),
        ([[[1.0]]], 1, "prob_dist must be 1 or 2 dim"),
    ],
)
def test_multinomial_refusals(torch: Any, weights: Any, n: int, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        torch.multinomial(torch.tensor(weights), n)


def test_poisson(torch: Any) -> None:
    torch.manual_seed(0)
    assert moments(torch.poisson(torch.full((N,), 4.0))) == pytest.approx((4, 2), abs=0.1)


# ------------------------------------------------------------------------------------------- on views, duals, leaves

FILLS = {
    "normal_": lambda x: x.normal_(),
    "uniform_": lambda x: x.uniform_(-1, 1),
    "exponential_": lambda x: x.exponential_(),
    "cauchy_": lambda x: x.cauchy_(),
    "log_normal_": lambda x: x.log_normal_(),
    "geometric_": lambda x: x.geometric_(0.5),
    "bernoulli_": lambda x: x.bernoulli_(0.5),
    "random_": lambda x: x.random_(0, 10),
}


@pytest.mark.parametrize("fill", FILLS)
def test_what_was_there_has_no_influence_any_more(torch, fill):
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 1
    FILLS[fill](y[0])
    assert y._version == 1
    (y * torch.tensor([[1.0], [2.0]])).sum().backward()
    assert x.grad.tolist() == [[0.0] * 3, [2.0] * 3]


@pytest.mark.parametrize("fill", FILLS)
def test_the_tangent_of_random_numbers_is_zero(torch, fill):
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.ones(2, 3), torch.full((2, 3), 5.0))
        FILLS[fill](x[0])
        assert forward_ad.unpack_dual(x).tangent.tolist() == [[0.0] * 3, [5.0] * 3]
        FILLS[fill](x)
        assert forward_ad.unpack_dual(x).tangent.tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("fill", FILLS)
def test_a_refused_fill_draws_nothing(torch, fill):
    leaf = torch.ones(3, requires_grad=True)
    torch.manual_seed(7)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        FILLS[fill](leaf)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single"):
        FILLS[fill](torch.ones(1).expand(3))
    after = torch.rand(4).tolist()
    torch.manual_seed(7)
    assert torch.rand(4).tolist() == after
    assert leaf.tolist() == [1.0, 1.0, 1.0] and leaf._version == 0


@pytest.mark.parametrize("fill", FILLS)
def test_complex_tensors(torch, fill):
    x = torch.ones(3, dtype=torch.complex64)
    if fill in ("normal_", "uniform_"):
        FILLS[fill](x)
        assert x.imag.abs().sum() > 0
        return
    with pytest.raises((NotImplementedError, RuntimeError)):
        FILLS[fill](x)
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_dtypes_of_binomial(torch: Any) -> None:
    one, two = torch.ones(2), torch.ones(2, dtype=torch.float64)
    for given, name, kind in ((one.int(), "count", "Int"), (one.long(), "count", "Long")):
        with pytest.raises(ValueError, match=f"floating-point dtypes for {name}, got: {kind}"):
            torch.binomial(given, one)
    with pytest.raises(ValueError, match="floating-point dtypes for prob, got: Bool"):
        torch.binomial(one, one.bool())
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        torch.binomial(one, two)
