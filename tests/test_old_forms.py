"""Factors before the tensors, as torch once had them: ``add(x, 2, y)``. Values are those of the calls of today."""

from __future__ import annotations

import warnings

import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")

#: By name, the shapes of the tensors.
TWO_FACTORS = {
    "addmm": [(3, 2), (3, 4), (4, 2)],
    "addmv": [(3,), (3, 4), (4,)],
    "addr": [(3, 4), (3,), (4,)],
    "addbmm": [(3, 2), (5, 3, 4), (5, 4, 2)],
    "baddbmm": [(5, 3, 2), (5, 3, 4), (5, 4, 2)],
}
ONE_FACTOR = {"add": (2, "alpha"), "sub": (2, "alpha"), "addcmul": (3, "value"), "addcdiv": (3, "value")}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def tensors(torch, shapes):
    count, made = 1, []
    for shape in shapes:
        n = 1
        for size in shape:
            n *= size
        made.append((torch.arange(n, dtype=torch.float64) + count).reshape(shape))
        count += n
    return made


@pytest.mark.parametrize("name", TWO_FACTORS)
def test_two_factors(torch, name):
    one, *rest = tensors(torch, TWO_FACTORS[name])
    function, method = getattr(torch, name), getattr(one, name)
    both = function(one, *rest, beta=2, alpha=3)
    first = function(one, *rest, beta=2)
    assert torch.equal(function(2, one, 3, *rest), both) and torch.equal(function(2, one, *rest), first)
    assert torch.equal(method(2, 3, *rest), both) and torch.equal(method(2, *rest), first)
    assert torch.equal(getattr(one.clone(), name + "_")(2, 3, *rest), both)
    assert torch.equal(getattr(one.clone(), name + "_")(2, *rest), first)
    out = torch.empty(0, dtype=torch.float64)
    assert function(2, one, 3, *rest, out=out) is out and torch.equal(out, both)


@pytest.mark.parametrize("name", ONE_FACTOR)
def test_one_factor(torch, name):
    count, factor = ONE_FACTOR[name]
    one, *rest = tensors(torch, [(2, 3)] * count)
    expected = getattr(torch, name)(one, *rest, **{factor: 2})
    assert torch.equal(getattr(torch, name)(one, 2, *rest), expected)
    assert torch.equal(getattr(one, name)(2, *rest), expected)
    assert torch.equal(getattr(one.clone(), name + "_")(2, *rest), expected)
    out = torch.empty(0, dtype=torch.float64)
    assert getattr(torch, name)(one, 2, *rest, out=out) is out and torch.equal(out, expected)


def test_a_number_is_added(torch):
    x = torch.ones(2)
    assert torch.add(x, 2, 3).tolist() == x.sub(-2, 3).tolist() == x.clone().add_(2, 3).tolist() == [7, 7]


def test_gradients(torch):
    x, y = tensors(torch, [(2,), (2,)])
    x.requires_grad_()
    y.requires_grad_()
    torch.add(x, 3, y).sum().backward()
    assert x.grad.tolist() == [1, 1] and y.grad.tolist() == [3, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda torch, x: torch.add(x, x, 2),
        lambda torch, x: torch.add(x, x, x),
        lambda torch, x: torch.add(x, 2, x, alpha=3),
        lambda torch, x: torch.addmm(x, x, x, 2),
        lambda torch, x: torch.addmm(2, 3, x, x),
        lambda torch, x: torch.addmm(2, x, 3, x, x, x),
        lambda torch, x: torch.addcmul(2, x, x, x),
    ],
)
def test_what_it_is_not(torch, call):
    x = torch.ones(2, 2)
    with pytest.raises(TypeError):
        call(torch, x)
    assert x.tolist() == [[1, 1], [1, 1]]


def test_it_warns_once():
    from retrograd.core import said_once

    x = retrograd.ones(1)
    said_once._said.clear()
    with pytest.warns(UserWarning, match=r"This overload of add is deprecated.*add\(input, other, alpha=2\)"):
        retrograd.add(x, 2, x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        retrograd.add(x, 2, x)


def test_it_warns_each_time_where_that_is_asked_for():
    x, b = retrograd.ones(1, 1), retrograd.ones(1, 1, 1)
    retrograd.set_warn_always(True)
    try:
        for _ in range(2):
            with pytest.warns(UserWarning, match=r"This overload of addbmm_ is deprecated"):
                x.addbmm_(1, b, b)
    finally:
        retrograd.set_warn_always(False)
