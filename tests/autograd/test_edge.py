"""Edges: where the gradient of a tensor goes."""

from __future__ import annotations

import pytest

import retrograd
from retrograd.autograd.accumulate_grad import AccumulateGrad
from retrograd.autograd.edge import Edge, collect_next_edges, gradient_edge

pytestmark = pytest.mark.usefixtures("clean_state")


def test_no_edge_without_requires_grad():
    assert gradient_edge(retrograd.ones(1)) is None
    x = retrograd.ones(1)
    x.grad = retrograd.ones(1)  # an AutogradMeta alone is no reason
    assert gradient_edge(x) is None


def test_the_edge_of_a_result():
    x = retrograd.ones(2, 1, requires_grad=True)
    first, second = x.unbind(0)
    assert gradient_edge(second) == (first.grad_fn, 1)


def test_the_edge_of_a_leaf():
    x = retrograd.ones(1, requires_grad=True)
    node, input_nr = gradient_edge(x)
    assert isinstance(node, AccumulateGrad) and node.variable is x and input_nr == 0
    assert gradient_edge(x)[0] is node


def test_views_of_constants():
    base = retrograd.ones(2, 2)
    view = base.t()
    assert gradient_edge(view) is None
    assert (view @ retrograd.ones(2, requires_grad=True)).grad_fn.next_functions[0] == (None, 0)
    view.requires_grad_()
    assert isinstance(gradient_edge(view)[0], AccumulateGrad)
    other = base.t()
    base.mul_(retrograd.ones(2, 2, requires_grad=True))  # a constant no more
    assert gradient_edge(other)[0] is other.grad_fn


def test_collect_next_edges():
    x = retrograd.ones(1, requires_grad=True)
    y = x * 2
    edges = collect_next_edges(y, retrograd.ones(1), x)
    assert edges[0] == (y.grad_fn, 0)
    assert edges[1] is None
    assert edges[2][0].variable is x


def test_edges_with_names_equal_plain_ones():
    y = retrograd.ones(1, requires_grad=True) * 2
    edge = Edge(y.grad_fn, 0)
    assert edge == (y.grad_fn, 0)
    assert edge.function is y.grad_fn and edge.input_nr == 0


def test_get_gradient_edge(torch):
    get_gradient_edge = torch.autograd.graph.get_gradient_edge
    x = torch.ones(2, 1, requires_grad=True)
    second = x.unbind(0)[1]
    edge = get_gradient_edge(second)
    assert edge.node is second.grad_fn and edge.output_nr == 1
    leaf = get_gradient_edge(x)
    assert leaf.node.variable is x and leaf.output_nr == 0
    with pytest.raises(RuntimeError, match="not possible to get the gradient edge"):
        get_gradient_edge(torch.ones(1))


def test_edges_in_place_of_tensors(torch):
    get_gradient_edge = torch.autograd.graph.get_gradient_edge
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    z = (y * y).sum()
    (g,) = torch.autograd.grad(z, get_gradient_edge(y), retain_graph=True)
    assert g.tolist() == [6.0, 12.0]
    (g,) = torch.autograd.grad(get_gradient_edge(z), x, grad_outputs=torch.tensor(1.0), retain_graph=True)
    assert g.tolist() == [18.0, 36.0]
    torch.autograd.backward(get_gradient_edge(z), torch.tensor(2.0), inputs=[get_gradient_edge(x)])
    assert x.grad.tolist() == [36.0, 72.0]


def test_an_edge_outlives_its_tensor(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    edge = torch.autograd.graph.get_gradient_edge(y)
    z = y * 3
    del y
    (g,) = torch.autograd.grad(z, edge)
    assert g.item() == 3.0


# ------------------------------------------------------------------------------------------------- views from no_grad


def test_a_view_from_no_grad_is_a_dead_end(torch):
    """It requires grad because its base does, but nothing leads back to the base."""
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 1
    with torch.no_grad():
        v = y[0]
    z = v * 2
    assert v.requires_grad and v.grad_fn is None and z.requires_grad
    assert z.grad_fn.next_functions == ((None, 0), (None, 0))
    z.sum().backward()
    assert x.grad is None
    (v * y[1]).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [1.0, 2.0]]
    assert torch.autograd.grad((v * 2).sum(), y, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        v.backward(torch.ones(2))


def test_no_formula_runs_for_a_dead_end(torch):
    """What only the gradient of the dead end would need may be modified."""
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y, w = x * 1, torch.ones(2)
    with torch.no_grad():
        v = y[0]
    z = v * w + y[1] * 2
    w.add_(1)
    z.sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [2.0, 2.0]]


def test_the_error_says_where_the_dead_end_comes_from():
    y = retrograd.ones(2, 2, requires_grad=True) * 1
    with retrograd.no_grad():
        v = y[0]
    with pytest.raises(RuntimeError, match=r"made under no_grad.* Take the view outside"):
        v.backward(retrograd.ones(2))
