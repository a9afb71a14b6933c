"""Dictionaries with weak keys: what they share with dict."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import retrograd as torch
from retrograd.utils.weak import WeakIdKeyDictionary


def test_copies_and_unions() -> None:
    a, b, c = torch.ones(1), torch.ones(1), torch.ones(1)
    one, two = WeakIdKeyDictionary({a: [1], b: [2]}), WeakIdKeyDictionary({c: [3], a: [4]})
    shallow, deep = one.copy(), copy.deepcopy(one)
    assert shallow == one and shallow[a] is one[a]
    assert deep == one and deep[a] is not one[a]
    assert copy.copy(one) == one
    both = one | two
    assert type(both) is WeakIdKeyDictionary
    assert [both[key] for key in (a, b, c)] == [[4], [2], [3]]
    assert ({c: 5} | one)[c] == 5 and type({c: 5} | one) is WeakIdKeyDictionary
    one |= [(c, 6)]
    assert one[c] == 6 and len(one) == 3
    assert one != two and one != {a: [1]}
    del a
    assert len(one) == 2 and len(both) == 2 and len(shallow) == 1
    assert len([reference for reference in both.keyrefs() if reference() is not None]) == 2
    assert repr(one).startswith("<WeakIdKeyDictionary at 0x")
    with pytest.raises(TypeError):
        one | 3
    with pytest.raises(TypeError):
        hash(one)


def test_an_update_that_fails_changes_nothing() -> None:
    key = torch.ones(1)

    def pairs() -> Any:
        yield key, 1
        raise KeyError("gone")

    names = WeakIdKeyDictionary()
    with pytest.raises(KeyError, match="gone"):
        names.update(pairs())
    assert len(names) == 0
