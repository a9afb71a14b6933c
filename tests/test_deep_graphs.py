"""Deep and wide graphs: nothing recurses, neither building, nor differentiating, nor freeing."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

import retrograd as torch

pytestmark = pytest.mark.usefixtures("clean_state")


@pytest.fixture(autouse=True)
def few_frames():
    """A recursion over nodes would fail here long before it fails in the wild."""
    gc.collect()
    gc.disable()  # a collection in the middle of a million nodes only costs time
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(300)
    yield
    sys.setrecursionlimit(limit)
    gc.enable()


def chain(x, length):
    for _ in range(length):
        x = x + 1.0
    return x


def check_chain(length):
    x = torch.zeros(1, requires_grad=True)
    y = chain(x, length)
    assert y.item() == min(length, 2**24)
    bottom = weakref.ref(x)
    node = y.grad_fn
    middle = weakref.ref(node.next_functions[0][0])
    del node
    y.backward()
    assert x.grad.item() == 1.0
    del y
    assert middle() is None
    del x
    assert bottom() is None


def test_a_chain():
    check_chain(200_000)


@pytest.mark.slow
def test_a_chain_of_a_million():
    check_chain(1_000_000)


def test_a_chain_that_saves_tensors():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(50_000):
        y = y * y
    y.backward()
    del y
    y = x * 0
    for _ in range(50_000):
        y = y.exp() - 1
    node = weakref.ref(y.grad_fn)
    del y  # never differentiated: freed by reference counts alone
    assert node() is None


def test_a_retained_chain_is_freed_too():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(50_000):
        y = y * 1.0
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 2.0
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


def test_grad_of_a_deep_input():
    x = torch.zeros(1, requires_grad=True)
    middle = chain(x, 50_000)
    y = chain(middle, 50_000)
    (g,) = torch.autograd.grad(y, middle)
    assert g.item() == 1.0
    (g,) = torch.autograd.grad(y, x)
    assert g.item() == 1.0
    y.backward(inputs=[x])
    assert x.grad.item() == 1.0


def test_a_deep_chain_under_create_graph():
    x = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y * 1.0000001
    (g,) = torch.autograd.grad(y * y, x, create_graph=True)
    (h,) = torch.autograd.grad(g, x)
    assert h.item() == pytest.approx(2 * 1.0000001**40_000)
    del y, g, h


def test_a_chain_of_in_place_operations():
    x = torch.zeros(1, requires_grad=True)
    y = x * 1
    for _ in range(20_000):
        y.add_(1)
    y.backward()
    assert x.grad.item() == 1.0 and y.item() == 20_000


def test_many_uses_of_one_leaf():
    x = torch.ones(2, requires_grad=True)
    total = x * 0
    for _ in range(100_000):
        total = total + x
    total.sum().backward()
    assert x.grad.tolist() == [100_000.0] * 2


def test_many_uses_of_one_leaf_at_once():
    x = torch.ones(2, requires_grad=True)
    torch.stack([x * 1.0 for _ in range(50_000)]).sum().backward()
    assert x.grad.tolist() == [50_000.0] * 2


def test_one_node_with_many_inputs():
    leaves = [torch.ones(1, requires_grad=True) for _ in range(20_000)]
    torch.cat(leaves).sum().backward()
    assert all(x.grad.item() == 1.0 for x in leaves)


def test_one_node_with_many_outputs():
    x = torch.ones(20_000, 1, requires_grad=True)
    outputs = x.unbind(0)
    (outputs[3] * 2 + outputs[19_999] * 3).backward()
    assert x.grad.sum().item() == 5.0


def test_many_roots():
    x = torch.ones(1, requires_grad=True)
    torch.autograd.backward([x * float(n % 2) for n in range(50_000)])
    assert x.grad.item() == 25_000.0


def test_a_deep_ladder_of_diamonds():
    x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y * 0.5 + y * 0.5
    y.backward()
    assert x.grad.item() == 1.0


def test_a_deep_retained_graph_of_hooks():
    x = torch.ones(1, requires_grad=True)
    y, calls = x, []
    for _ in range(10_000):
        y = y + 1
        y.register_hook(lambda grad: calls.append(None))
    y.backward()
    assert len(calls) == 10_000
