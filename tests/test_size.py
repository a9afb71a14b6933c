"""Size: torch.Size's behaviour, spelled out and then compared with torch itself."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from retrograd.core.size import Size

PAIR = Size([2, 3])


def is_size(value, expected):
    return type(value) is Size and tuple(value) == expected


def test_is_a_tuple():
    assert PAIR == (2, 3)
    assert (2, 3) == PAIR
    assert PAIR != [2, 3]
    assert hash(PAIR) == hash((2, 3))
    assert {(2, 3): "found"}[PAIR] == "found"
    rows, columns = PAIR
    assert (rows, columns) == (2, 3)


def test_repr():
    assert repr(PAIR) == str(PAIR) == f"{PAIR}" == "torch.Size([2, 3])"
    assert repr(Size()) == "torch.Size([])"


def test_numel():
    assert PAIR.numel() == 6
    assert Size().numel() == 1
    assert Size([0, 3]).numel() == 0


def test_what_is_made_from_it_is_a_size():
    assert is_size(PAIR[:1], (2,))
    assert is_size(PAIR[::-1], (3, 2))
    assert is_size(PAIR + PAIR, (2, 3, 2, 3))
    assert is_size(PAIR + (1,), (2, 3, 1))
    assert is_size((1,) + PAIR, (1, 2, 3))
    assert is_size(PAIR * 2, (2, 3, 2, 3))
    assert is_size(2 * PAIR, (2, 3, 2, 3))
    assert type(PAIR[0]) is int
    assert PAIR[-1] == 3


@pytest.mark.parametrize("again", [lambda s: pickle.loads(pickle.dumps(s)), copy.copy, copy.deepcopy])
def test_copies(again):
    assert is_size(again(PAIR), (2, 3))


def test_made_from():
    assert is_size(Size(range(3)), (0, 1, 2))
    assert is_size(Size(n for n in [4]), (4,))
    assert is_size(Size([True, np.int64(3)]), (1, 3))
    assert all(type(n) is int for n in Size([True, np.int64(3)]))


def test_errors():
    with pytest.raises(TypeError, match=r"torch.Size\(\) takes an iterable of 'int' \(item 1 is 'float'\)"):
        Size([1, 2.0])
    with pytest.raises(TypeError, match=r"\(item 0 is 'str'\)"):
        Size("12")
    with pytest.raises(TypeError, match="'int' object is not iterable"):
        Size(3)
    with pytest.raises(TypeError, match=r"can only concatenate tuple \(not list\) to torch.Size"):
        PAIR + [1]
    with pytest.raises(TypeError, match="can only concatenate list"):
        [1] + PAIR
    with pytest.raises(TypeError, match="can't multiply sequence by non-int of type 'float'"):
        PAIR * 1.5


EXPRESSIONS = [
    "a", "S()", "a.numel()", "a[0]", "a[-1]", "a[5]", "a[:1]", "a[1:]", "a[::-1]", "a[3:]", "a + a", "a + (1,)",
    "(1,) + a", "() + a", "a + [1]", "a + None", "a + 'ab'", "a * 2", "0 * a", "a * 1.5", "a * 'x'", "a == (2, 3, 4)",
    "a < (3,)", "a.__reduce__()[1]", "tuple(a)", "list(a)", "S(['a'])", "S([None])", "S([1.0])", "S([-1])", "S(b'ab')",
    "S(3)", "a.index(3)", "a.count(7)", "3 in a", "len(a)", "hash(a)", "bool(S())", "max(a)", "(*a, 5)", "a['x']",
]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_as_torch(expression):
    torch = pytest.importorskip("torch")

    def outcome(cls):
        try:
            value = eval(expression, {"S": cls, "a": cls([2, 3, 4])})
        except Exception as error:
            return type(error), str(error)
        return type(value).__name__, repr(value)

    assert outcome(Size) == outcome(torch.Size)
