"""What a device computes in a way of its own (arrays/own_*.py, arrays/philox.py), against the CPU or what is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd.arrays import places
from retrograd.arrays.device_array import on_host
from retrograd.arrays.philox import blocks


@pytest.fixture(autouse=True)
def _nothing_on_the_host(gpu: Any) -> Any:
    before = dict(on_host)
    yield
    assert dict(on_host) == before


def symmetric(rng: Any, n: int, kind: type, hermitian: bool) -> Any:
    a = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if kind is complex else 0)
    a = a + (a.conj().T if hermitian else a.T)
    return a - np.diag(np.diag(a)) if n % 2 else a  # with nothing on the diagonal, pivots are pairs


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("kind", [float, complex])
def test_ldl(gpu: Any, kind: type, hermitian: bool) -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 8, 21):
        a = torch.from_numpy(symmetric(rng, n, kind, hermitian) + (n == 1))
        b = torch.from_numpy(rng.standard_normal((n, 2)).astype(a.numpy().dtype))
        here, there = (torch.linalg.ldl_factor(x, hermitian=hermitian) for x in (a, a.cuda()))
        assert there.pivots.tolist() == here.pivots.tolist() and torch.allclose(there.LD.cpu(), here.LD)
        x = torch.linalg.ldl_solve(*there, b.cuda(), hermitian=hermitian)
        assert x.is_cuda and torch.allclose(a @ x.cpu(), b)
    assert torch.linalg.ldl_factor_ex(torch.zeros(3, 3, device="cuda")).info.item() == 1


@pytest.mark.parametrize("shape", [(5, 5), (3, 4, 6), (80, 80), (70, 90), (2, 66, 66)])
def test_lu(gpu: Any, shape: tuple[int, ...]) -> None:
    a = torch.from_numpy(np.random.default_rng(0).standard_normal(shape))
    here, there = torch.linalg.lu_factor_ex(a), torch.linalg.lu_factor_ex(a.cuda())
    assert there[1].tolist() == here[1].tolist() and torch.allclose(there[0].cpu(), here[0])
    assert there[2].tolist() == here[2].tolist()
    assert torch.linalg.lu_factor_ex(torch.zeros(70, 70, device="cuda"))[2].item() == 1


def test_a_matrix_without_a_cholesky_factor(gpu: Any) -> None:
    a = torch.tensor([[[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]], device="cuda")
    assert torch.linalg.cholesky_ex(a).info.tolist() == [0, 2]
    with pytest.raises(torch.linalg.LinAlgError, match="not positive-definite"):
        torch.linalg.cholesky(a)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.int64, torch.float16])
def test_sparse_products(gpu: Any, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    dense = torch.from_numpy((rng.integers(-3, 4, (40, 30)) * (rng.random((40, 30)) < 0.2)).astype("f8")).to(dtype)
    other = torch.from_numpy(rng.integers(-3, 4, (30, 7)).astype("f8")).to(dtype)
    expected = (dense.to(torch.complex128) @ other.to(torch.complex128)).tolist()
    for layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        a = dense.cuda().to_sparse(layout=layout)
        assert a.device.type == "cuda" and a.layout is layout
        assert (a @ other.cuda()).to(torch.complex128).tolist() == expected
    product = dense.cuda().to_sparse() @ other.cuda().to_sparse()
    assert product.layout is torch.sparse_coo and product.to_dense().to(torch.complex128).tolist() == expected


def test_scattered_extremes(gpu: Any) -> None:
    """CuPy's own drop NaNs."""
    numpy = places.places[0].numpy
    index = numpy.asarray([0, 2, 0, 1, 2, 2])
    values = numpy.asarray([1.0, np.nan, 5.0, -2.0, 7.0, 8.0])
    for name, expected in (("maximum", [5, 0, np.nan]), ("minimum", [0, -2, np.nan]), ("multiply", [5, -2, np.nan])):
        a = numpy.zeros(3) if name != "multiply" else numpy.ones(3)
        getattr(numpy, name).at(a, index, values)
        np.testing.assert_array_equal(a.get(), expected)
    truth = numpy.zeros((2, 2), bool)
    numpy.logical_or.at(truth, (numpy.asarray([1, 1]), numpy.asarray([0, 0])), numpy.asarray([True, False]))
    assert truth.tolist() == [[False, False], [True, False]]


def test_words_are_philox(gpu: Any) -> None:
    """Salmon et al., "Parallel random numbers: as easy as 1, 2, 3": known answers; and the kernel makes the same."""
    known = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert blocks(np, 0, 1, 0).tolist() == known
    place = places.places[0]
    words = place.words_class(0)
    assert words.words(3).tolist() == known[:3] and words.offset == 4
    seed, first = 0x123456789ABCDEF0, (1 << 34) - 2
    made = place.words_class(seed, 4 * first)
    assert made.words(4097).tolist() == blocks(np, first, 1025, seed)[:4097].tolist()


def test_draws_have_their_distributions(gpu: Any) -> None:
    torch.manual_seed(0)
    n = 20000
    x = torch.ones(n, device="cuda")
    draws = {
        "rand": (torch.rand(n, device="cuda"), 0.5, 1 / 12), "randn": (torch.randn(n, device="cuda"), 0, 1),
        "float64": (torch.randn(n, device="cuda", dtype=torch.float64), 0, 1),
        "strided": (torch.empty(2, n, device="cuda").t().normal_()[:, 0], 0, 1),
        "exponential": (x.clone().exponential_(2.0), 0.5, 0.25), "bernoulli": (torch.bernoulli(x * 0.3), 0.3, 0.21),
        "randint": (torch.randint(0, 10, (n,), device="cuda").double(), 4.5, 8.25),
        "dropout": (torch.nn.functional.dropout(x, 0.25), 1, 1 / 3),
        "dropout2d": (torch.nn.functional.dropout2d(torch.ones(n, 1, 1, 1, device="cuda"), 0.25).reshape(-1), 1, 1 / 3),
    }  # fmt: skip
    if gpu.real:  # by CuPy's generator; the simulated library has none
        draws["poisson"] = torch.poisson(x * 3), 3, 3
        draws["binomial"] = torch.binomial(x * 10, x * 0.3), 3, 2.1
        draws["gamma"] = torch._standard_gamma(x * 2), 2, 2
    for name, (drawn, mean, variance) in draws.items():
        assert drawn.is_cuda, name
        assert abs(drawn.double().mean().item() - mean) < 5 * (variance / n) ** 0.5, name
        assert abs(drawn.double().var().item() / variance - 1) < 0.15, name
    order = torch.randperm(n, device="cuda")
    assert order.sort()[0].tolist() == list(range(n)) and order.tolist() != list(range(n))


def test_a_state_of_a_generator_is_a_seed_and_an_offset(gpu: Any) -> None:
    torch.cuda.manual_seed(9)
    assert torch.cuda.get_rng_state().tolist() == [9] + [0] * 15
    torch.rand(5, device="cuda")
    state = torch.cuda.get_rng_state()
    assert state.tolist() == [9, *[0] * 7, 8, *[0] * 7]
    after = torch.randn(100, device="cuda").tolist()
    torch.cuda.set_rng_state(state)
    assert torch.randn(100, device="cuda").tolist() == after
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        torch.cuda.set_rng_state(torch.get_rng_state())


def test_few_targets_of_a_transposed_matrix(gpu):
    """Not by the CPU's short way, which reads the targets."""
    x = torch.rand(3, 4, device="cuda", dtype=torch.float64).t().requires_grad_()
    target = torch.tensor([0, 2, 1, 2])
    torch.nn.functional.nll_loss(x, target.cuda()).backward()
    expected = torch.zeros(4, 3)
    expected[torch.arange(4), target] = -0.25
    assert x.grad.cpu().tolist() == expected.tolist()
