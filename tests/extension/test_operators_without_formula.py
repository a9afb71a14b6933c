"""Operators that programs give a kernel and no formula, in graphs, beside torch where it is installed."""

from __future__ import annotations

import contextlib
import warnings

import pytest

import retrograd


@pytest.fixture(params=["warn", "nothing"])
def mode(torch, request):
    before = torch._C._get_autograd_fallback_mode()
    torch._C._set_autograd_fallback_mode(request.param)
    yield request.param
    torch._C._set_autograd_fallback_mode(before)


@pytest.fixture
def space(torch):
    with torch.library._scoped_library(f"formulaless_{torch.__name__}", "FRAGMENT") as lib:
        yield lib


def made(torch, space, schema, kernel, name="f"):
    space.define(f"{name}{schema}")
    space.impl(name, kernel, "CPU")
    return getattr(getattr(torch.ops, space.ns), name)


def warned(mode, *, or_refused=False):
    if mode == "warn":
        return pytest.warns(UserWarning, match="an autograd kernel was not registered")
    return pytest.raises(RuntimeError, match="does not require grad") if or_refused else contextlib.nullcontext()


def test_what_the_kernel_records_is_its_derivative(torch, space, mode):
    f = made(torch, space, "(Tensor x) -> Tensor", lambda x: x.sin().sum())
    x = torch.ones(3, requires_grad=True)
    y = f(x)
    with warned(mode):
        y.backward()
    assert x.grad.tolist() == x.cos().tolist()


def test_what_it_does_not_record_has_none(torch, space, mode):
    f = made(torch, space, "(Tensor x, Tensor y) -> Tensor", lambda x, y: torch.tensor((x + y).detach().numpy()))
    x = torch.ones(3, requires_grad=True)
    y = f(x, torch.ones(3))
    assert y.requires_grad is (mode == "warn")
    with warned(mode, or_refused=True):
        y.sum().backward()
    assert x.grad is None


def test_where_nothing_requires_grad_nothing_is_said(torch, space, mode):
    f = made(torch, space, "(Tensor x) -> Tensor", lambda x: x + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not f(torch.ones(2)).requires_grad
        with torch.no_grad():
            assert not f(torch.ones(2, requires_grad=True)).requires_grad


def test_some_results_have_a_history(torch, space, mode):
    def kernel(a, b):
        with torch.no_grad():
            x = a.clone()
        return [x, a * b]

    f = made(torch, space, "(Tensor a, Tensor b) -> Tensor[]", kernel)
    a, b = (torch.ones(3, requires_grad=True) for _ in range(2))
    x, y = f(a, b)
    with warned(mode, or_refused=True):
        assert torch.autograd.grad(x, (a, b), torch.ones(3), allow_unused=True, retain_graph=True) == (None, None)
    with warned(mode):
        assert [g.tolist() for g in torch.autograd.grad(y, (a, b), torch.ones(3))] == [[1.0] * 3] * 2


def test_writes(torch, space, mode):
    def kernel(x):
        with torch.no_grad():
            return x.sin_()

    f = made(torch, space, "(Tensor(a!) x) -> Tensor(a!)", kernel)
    x = torch.ones(3, requires_grad=True)
    w = x.clone()
    y = w[0]
    z = f(y)
    assert z is y
    for tensor in (w, y):
        with warned(mode):
            tensor.sum().backward(retain_graph=True)

    def silent(x):
        kernel(x)

    g = made(torch, space, "(Tensor(a!) x) -> ()", silent, "g")
    y = x.detach().requires_grad_().clone()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g(y)
        y.sum().backward()


def test_with_a_formula_nothing_is_said(torch, space):
    f = made(torch, space, "(Tensor x) -> Tensor", lambda x: x.detach() * 2)
    torch.library.register_autograd(f"{space.ns}::f", lambda ctx, grad: grad * 2, lib=space)
    x = torch.ones(3, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_of_retrograd_the_node() -> None:
    with retrograd.library._scoped_library("formulaless", "FRAGMENT") as lib:
        f = made(retrograd, lib, "(Tensor x) -> (Tensor, Tensor)", lambda x: (x.detach() + 1, (x > 0)))
        y, other = f(retrograd.ones(2, requires_grad=True))
    assert y.grad_fn.name() == "WarnNotImplemented" and other.grad_fn is None
    with pytest.raises(RuntimeError, match="Unsupported AutogradFallbackMode"):
        retrograd._C._set_autograd_fallback_mode("always")
