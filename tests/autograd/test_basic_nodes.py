"""Nodes that belong to no operator."""

from __future__ import annotations

from collections import OrderedDict

import pytest

import retrograd
from retrograd.autograd.basic_nodes import DelayedError, Error, GraphRoot, Identity
from retrograd.autograd.edge import gradient_edge
from retrograd.autograd.node import set_history

pytestmark = pytest.mark.usefixtures("clean_state")


def test_graph_root_hands_out_what_it_was_given():
    x = retrograd.ones(1, requires_grad=True)
    y, z = x * 2, x * 3
    grads = (object(), object())
    root = GraphRoot((gradient_edge(y), gradient_edge(z)), grads)
    assert root.apply(root.next_edges, ()) == grads
    assert root.topological_nr == 2
    assert root.next_functions == ((y.grad_fn, 0), (z.grad_fn, 0))


def test_identity_passes_on():
    node = Identity()
    assert node.apply((), [1, None]) == (1, None)


@pytest.mark.parametrize("create_graph", [False, True])
def test_error_raises_when_reached(create_graph):
    x = retrograd.ones(1, requires_grad=True)
    y = x.detach()
    set_history(y, Error("nothing to see here", (gradient_edge(x),)))
    z = y * 2
    with pytest.raises(RuntimeError, match="nothing to see here"):
        z.backward(create_graph=create_graph)
    assert x.grad is None
    assert retrograd.is_grad_enabled()


def test_error_is_harmless_until_reached():
    x = retrograd.ones(1, requires_grad=True)
    y = x.detach()
    set_history(y, Error("no", (gradient_edge(x),)))
    other = retrograd.ones(1, requires_grad=True)
    (g,) = retrograd.autograd.grad(y * other, other)
    assert g.item() == 1.0


def test_delayed_error_lets_results_be_used():
    x = retrograd.tensor([1.0, 2.0], requires_grad=True)
    result = DelayedError("not differentiable twice")(x * 3)
    assert result.tolist() == [3.0, 6.0] and result.requires_grad
    with pytest.raises(RuntimeError, match="not differentiable twice"):
        result.sum().backward()
    assert x.grad is None


def test_delayed_error_over_several_tensors():
    x = retrograd.ones(1, requires_grad=True)
    first, second = DelayedError("no")(x * 2, x * 3)
    assert first.grad_fn is second.grad_fn and (first.output_nr, second.output_nr) == (0, 1)
    for tensor in (first, second):
        with pytest.raises(RuntimeError, match="no"):
            tensor.backward()


def test_delayed_error_shares_memory_and_version():
    x = retrograd.ones(1, requires_grad=True)
    y = x * 2
    alias = DelayedError("no")(y)
    with retrograd.no_grad():
        y.add_(1)
    assert alias.item() == 3.0 and alias._version == 1


def test_names_of_nodes_that_belong_to_no_operator(torch):
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            return grad * 2

    x = torch.ones(2, requires_grad=True)
    copied = torch.zeros(2).copy_(x)
    assert copied.grad_fn.name() == "torch::autograd::CopyBackwards"
    assert type(copied.grad_fn).__name__ == "CopyBackwards"
    (grad,) = torch.autograd.grad((Once.apply(x) ** 2).sum(), x, create_graph=True)
    assert grad.grad_fn.name() == "torch::autograd::Error"
    functions = torch._C._functions
    assert functions.DelayedError("no", 1)(x * 1).grad_fn.name() == "torch::autograd::Error"
    assert functions.UndefinedGrad()(x * 1).grad_fn.name() == "torch::autograd::UndefinedGradBackward"


def test_a_dict_of_hooks_is_registered_with_a_node(torch):
    """How torch's own Python code registers a tensor's hooks."""
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    hooks = OrderedDict()
    seen = []
    y._backward_hooks = hooks
    y.grad_fn._register_hook_dict(y)
    hooks[0] = lambda grad: seen.append(grad.tolist())
    y.sum().backward()
    assert [1.0, 1.0] in seen
    with pytest.raises(TypeError, match="_register_hook_dict expected a"):
        y.grad_fn._register_hook_dict(3)
