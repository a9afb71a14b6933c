"""What is drawn from the bits of a twister."""

from __future__ import annotations

import numpy as np
import pytest

from retrograd import kernels
from retrograd.kernels import random as draws


@pytest.fixture
def twister():
    return seeded()


def seeded():
    made = np.random.MT19937(0)
    made._legacy_seeding(5489)
    return np.random.Generator(made)


def test_the_words_are_those_of_the_twister(twister):
    # The first and the ten thousandth word of the C++ standard's mt19937, whose seed is 5489.
    words = draws.words(twister, 10000)
    assert words[0] == 3499211612 and words[-1] == 4123659995


def test_dropout(twister):
    mask = kernels.dropout_mask(np.empty(1000, np.float32), 0.25, twister)
    assert mask.dtype == np.float32 and set(np.unique(mask)) == {np.float32(0), np.float32(4 / 3)}
    assert 0.2 < (mask == 0).mean() < 0.3
    assert kernels.dropout_mask(np.empty(3), 0.0, twister).tolist() == [1, 1, 1]
    assert kernels.dropout_mask(np.empty(3), 1.0, twister).tolist() == [0, 0, 0]
    assert kernels.dropout_mask(np.empty(()), 0.5, twister).shape == ()
    with pytest.raises(RuntimeError, match="dropout probability has to be between 0 and 1"):
        kernels.dropout_mask(np.empty(3), 1.5, twister)


def test_moments(twister):
    for drawn, mean, deviation in (
        (draws.uniform_float32(twister, 50000), 0.5, 12**-0.5),
        (draws.uniform_float64(twister, 50000), 0.5, 12**-0.5),
        (draws.normal_blocks(twister, 50000, 3.0, 2.0, np.dtype("f4")), 3.0, 2.0),
        (draws.normal_pairs(twister, 50000, None)[0], 0.0, 1.0),
    ):
        assert abs(drawn.mean() - mean) < 0.03 and abs(drawn.std() - deviation) < 0.03


def test_the_last_normal_of_a_pair_is_kept(twister):
    together = draws.normal_pairs(twister, 6, None)[0]
    twister = seeded()
    kept, one_by_one = None, []
    for count in (1, 0, 3, 2):
        drawn, kept = draws.normal_pairs(twister, count, kept)
        one_by_one += drawn.tolist()
    assert one_by_one == together.tolist() and kept is None


def test_a_permutation_has_all(twister):
    assert sorted(draws.permutation(twister, 100).tolist()) == list(range(100))
    assert draws.permutation(twister, 0).tolist() == [] and draws.permutation(twister, 1).tolist() == [0]


def test_memory_order():
    base = np.empty((2, 3))
    assert draws.in_memory_order(base.T, np.arange).tolist() == [[0, 3], [1, 4], [2, 5]]
