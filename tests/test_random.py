"""Random numbers: generators, seeds, states."""

from __future__ import annotations

import threading

import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")

DRAWS = {
    "rand": lambda torch, g: torch.rand(4, generator=g),
    "randn": lambda torch, g: torch.randn(4, generator=g),
    "randint": lambda torch, g: torch.randint(0, 1000, (4,), generator=g),
    "randperm": lambda torch, g: torch.randperm(50, generator=g),
    "normal": lambda torch, g: torch.normal(0.0, 1.0, (4,), generator=g),
}


@pytest.fixture(autouse=True)
def default_generator_stays():
    state = retrograd.get_rng_state()
    yield
    retrograd.set_rng_state(state)


@pytest.mark.parametrize("draw", DRAWS)
def test_a_seed_decides(torch, draw):
    first = DRAWS[draw](torch, torch.Generator().manual_seed(3)).tolist()
    again = DRAWS[draw](torch, torch.Generator().manual_seed(3)).tolist()
    other = DRAWS[draw](torch, torch.Generator().manual_seed(4)).tolist()
    assert first == again != other


@pytest.mark.parametrize("draw", DRAWS)
def test_the_default_generator(torch, draw):
    torch.manual_seed(5)
    first, second = DRAWS[draw](torch, None).tolist(), DRAWS[draw](torch, None).tolist()
    torch.manual_seed(5)
    assert DRAWS[draw](torch, None).tolist() == first != second


@pytest.mark.parametrize("draw", DRAWS)
def test_states(torch, draw):
    g = torch.Generator().manual_seed(1)
    torch.rand(3, generator=g)
    state = g.get_state()
    assert state.dtype is torch.uint8
    first = DRAWS[draw](torch, g).tolist()
    g.set_state(state)
    assert DRAWS[draw](torch, g).tolist() == first
    other = torch.Generator()
    other.set_state(state)
    assert DRAWS[draw](torch, other).tolist() == first
    assert other.initial_seed() == 1


def test_state_of_the_default_generator(torch):
    state = torch.get_rng_state()
    first = torch.rand(3).tolist()
    torch.set_rng_state(state)
    assert torch.rand(3).tolist() == first


def test_a_generator_of_ones_own_leaves_the_default_alone(torch):
    torch.manual_seed(0)
    expected = torch.rand(2).tolist()
    torch.manual_seed(0)
    torch.rand(5, generator=torch.Generator().manual_seed(9))
    assert torch.rand(2).tolist() == expected


def test_seeds(torch):
    g = torch.Generator()
    assert g.manual_seed(7) is g and g.initial_seed() == 7
    assert torch.manual_seed(8).initial_seed() == 8 and torch.initial_seed() == 8
    assert torch.manual_seed(-1).initial_seed() == 2**64 - 1
    assert torch.manual_seed(2**64 - 1).initial_seed() == 2**64 - 1
    seed = g.seed()
    assert g.initial_seed() == seed != 7
    for bad in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            g.manual_seed(bad)
    assert g.initial_seed() == seed
    assert torch.Generator().initial_seed() == 67280421310721


def test_distributions():
    g = retrograd.Generator().manual_seed(0)
    uniform = retrograd.rand(20_000, generator=g)
    assert 0 <= uniform.min().item() and uniform.max().item() < 1
    assert uniform.mean().item() == pytest.approx(0.5, abs=0.01)
    normal = retrograd.randn(20_000, generator=g)
    assert normal.mean().item() == pytest.approx(0.0, abs=0.03)
    assert normal.std().item() == pytest.approx(1.0, abs=0.03)
    integers = retrograd.randint(-2, 3, (20_000,), generator=g)
    assert sorted(set(integers.tolist())) == [-2, -1, 0, 1, 2]
    assert sorted(retrograd.randperm(100, generator=g).tolist()) == list(range(100))
    shifted = retrograd.normal(5.0, 2.0, (20_000,), generator=g)
    assert shifted.mean().item() == pytest.approx(5.0, abs=0.06)
    assert shifted.std().item() == pytest.approx(2.0, abs=0.06)
    complex_normal = retrograd.randn(20_000, dtype=retrograd.complex64, generator=g)
    assert (complex_normal.abs() ** 2).mean().item() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("call", "error", "phrase"),
    [
        (lambda torch: torch.rand(2, dtype=torch.int64), NotImplementedError, "not implemented for 'Long'"),
        (lambda torch: torch.randn(2, dtype=torch.bool), NotImplementedError, "not implemented for 'Bool'"),
        (lambda torch: torch.randint(5, 5, (2,)), RuntimeError, "expects 'from' to be less than 'to'"),
        (lambda torch: torch.randint(0, 300, (2,), dtype=torch.uint8), RuntimeError, "to - 1 is out of bounds for"),
        (lambda torch: torch.randperm(-1), RuntimeError, "negative dimension"),
        (lambda torch: torch.normal(0.0, -1.0, (2,)), RuntimeError, "normal expects std >= 0.0"),
        (
            lambda torch: torch.normal(torch.zeros(2), -torch.ones(2)),
            RuntimeError,
            "normal expects all elements of std",
        ),
        (lambda torch: torch.rand(-1), RuntimeError, "negative dimension"),
        (lambda torch: torch.rand(2, generator=3), TypeError, "enerator"),
        (lambda torch: torch.set_rng_state(3), TypeError, "torch.ByteTensor"),
        (lambda torch: torch.set_rng_state(torch.ones(3)), TypeError, "must be a torch.ByteTensor"),
        (
            lambda torch: torch.set_rng_state(torch.zeros(3, dtype=torch.uint8)),
            RuntimeError,
            "input RNG state size to be 3",
        ),
    ],
)
def test_refusals(torch, call, error, phrase):
    with pytest.raises(error, match=phrase):
        call(torch)


def test_a_state_is_data_and_nothing_else():
    """A state may come from a checkpoint of somebody else: reading it must not run code."""
    import pickle

    import numpy as np

    class Evil:
        def __reduce__(self):
            return (exec, ("import builtins; builtins.retrograd_was_here = True",))

    raw = np.frombuffer(pickle.dumps(Evil()), dtype=np.uint8).copy()
    with pytest.raises((RuntimeError, ValueError)):
        retrograd.Generator().set_state(retrograd.from_numpy(raw))
    import builtins

    assert not hasattr(builtins, "retrograd_was_here")


def test_threads_share_the_default_generator(torch):
    torch.manual_seed(0)
    drawn = []

    def draw():
        for _ in range(20):
            drawn.extend(torch.rand(5, dtype=torch.float64).tolist())

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(drawn)) == 400


def test_random_tensors_are_leaves(torch):
    x = torch.rand(2, requires_grad=True)
    assert x.is_leaf and x.requires_grad
    assert torch.rand_like(x).requires_grad is False
    assert torch.randn_like(x, requires_grad=True).requires_grad
    assert torch.rand_like(x, dtype=torch.float64).dtype is torch.float64
    assert torch.randint_like(x, 5).shape == x.shape
