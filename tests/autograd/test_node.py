"""Node: numbers, edges, names, metadata; nodes made by hand."""

from __future__ import annotations

import copy
import pickle
import weakref

import numpy as np
import pytest

import retrograd
from retrograd.autograd.edge import gradient_edge
from retrograd.autograd.node import MultiOutputNode, Node, TensorNode, init_node, set_history
from retrograd.tensor import wrap

pytestmark = pytest.mark.usefixtures("clean_state")


def test_sequence_numbers_rise(torch):
    x = torch.ones(1, requires_grad=True)
    y = x
    numbers = []
    for _ in range(10):
        y = y * 2
        numbers.append(y.grad_fn._sequence_nr())
    assert numbers == list(range(numbers[0], numbers[0] + 10))


def test_operations_that_record_nothing_take_no_number():
    x = retrograd.ones(1, requires_grad=True)
    first = (x * 2).grad_fn._sequence_nr()
    retrograd.ones(2) * 3
    with retrograd.no_grad():
        x * 2
    x.detach() * 2
    assert (x * 2).grad_fn._sequence_nr() == first + 1


def test_topological_numbers():
    x = retrograd.ones(1, requires_grad=True)
    a = x * 2
    b = a * 3
    c = b + x
    d = retrograd.cat([c, x, a])
    first, second = retrograd.stack([d, d]).unbind(0)
    numbers = [t.grad_fn.topological_nr for t in (a, b, c, d, first)]
    assert numbers == [1, 2, 3, 4, 6]
    assert second.grad_fn.topological_nr == 6


@pytest.mark.parametrize("seed", range(5))
def test_topological_numbers_are_above_all_that_can_be_reached(seed):
    rng = np.random.default_rng(seed)
    values = [retrograd.ones(1, requires_grad=True) for _ in range(3)]
    for _ in range(100):
        i, j = rng.integers(0, len(values), 2)
        operation = rng.choice(["add", "mul", "sin", "cat"])
        a, b = values[i], values[j]
        if operation == "cat":
            values.append(retrograd.cat([a, b])[:1])
        else:
            values.append(a.sin() if operation == "sin" else getattr(a, operation)(b))
    for value in values:
        if value.grad_fn is not None:
            for node, _ in value.grad_fn.next_functions:
                assert value.grad_fn.topological_nr > node.topological_nr


def test_next_functions(torch):
    x = torch.ones(1, requires_grad=True)
    a = x * 2
    b = a * torch.ones(1)
    assert b.grad_fn.next_functions == ((a.grad_fn, 0), (None, 0))
    first, second = torch.ones(2, 1, requires_grad=True).unbind(0)
    total = second + first
    assert total.grad_fn.next_functions == ((first.grad_fn, 1), (first.grad_fn, 0))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: x * 2, "MulBackward0"),
        (lambda x: x + 2, "AddBackward0"),
        (lambda x: x - 2, "SubBackward0"),
        (lambda x: x / 2, "DivBackward0"),
        (lambda x: -x, "NegBackward0"),
        (lambda x: x**2, "PowBackward0"),
        (lambda x: x.exp(), "ExpBackward0"),
        (lambda x: x.sum(), "SumBackward0"),
        (lambda x: x.sum(0), "SumBackward1"),
        (lambda x: x.mean(), "MeanBackward0"),
        (lambda x: x.view(-1), "ViewBackward0"),
        (lambda x: x.t(), "TBackward0"),
        (lambda x: x.unbind(0)[0], "UnbindBackward0"),
        (lambda x: x.max(0)[0], "MaxBackward0"),
        (lambda x: x.clone(), "CloneBackward0"),
        (lambda x: x @ x, "MmBackward0"),
        (lambda x: x.relu(), "ReluBackward0"),
        (lambda x: x.unsqueeze(0), "UnsqueezeBackward0"),
        (lambda x: x.double(), "ToCopyBackward0"),
    ],
)
def test_names(torch, function, name):
    node = function(torch.ones(2, 2, requires_grad=True)).grad_fn
    assert node.name() == name
    assert type(node).__name__ == name
    assert name in repr(node)


def test_metadata_is_the_users(torch):
    node = (torch.ones(1, requires_grad=True) * 2).grad_fn
    assert node.metadata == {}
    node.metadata["mine"] = 1
    assert node.metadata == {"mine": 1}


def test_input_metadata(torch):
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    (metadata,) = (x * 2).grad_fn._input_metadata
    assert tuple(metadata.shape) == (2, 3)
    assert metadata.dtype is torch.float64
    assert str(metadata.device) == "cpu"
    assert [tuple(m.shape) for m in x.unbind(0)[0].grad_fn._input_metadata] == [(3,), (3,)]


def test_a_node_can_be_called(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * torch.tensor([3.0, 4.0])
    left, right = y.grad_fn(torch.ones(2))
    assert left.tolist() == [3.0, 4.0] and right is None
    assert y.grad_fn(torch.ones(2))[0].tolist() == [3.0, 4.0]  # nothing was freed
    assert x.exp().grad_fn(torch.ones(2)).shape == (2,)


def test_the_same_grad_fn_object_every_time(torch):
    y = torch.ones(1, requires_grad=True) * 2
    assert y.grad_fn is y.grad_fn


def test_nodes_have_no_dict():
    """Millions of them: a stray attribute is a mistake."""
    node = (retrograd.ones(1, requires_grad=True) * 2).grad_fn
    with pytest.raises(AttributeError):
        node.stray = 1
    assert not hasattr(node, "__dict__")


def test_a_graph_dies_with_its_result(no_cycles):
    with no_cycles():
        x = retrograd.ones(2, requires_grad=True)
        y = (x * 2).exp().sum()
        references = [weakref.ref(y.grad_fn), weakref.ref(y.grad_fn.next_functions[0][0])]
        del y
        assert [r() for r in references] == [None, None]


# -------------------------------------------------------------------------------------------------------------- by hand


class Doubled(TensorNode):
    """A node with a formula for Tensors only."""

    __slots__ = ()

    def __init__(self, *tensors):
        init_node(self, tuple(gradient_edge(t) for t in tensors))

    def apply_tensors(self, edges, grads):
        return tuple(None if g is None else g * 2 for g in grads)


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_tensor_node_in_both_namespaces(create_graph):
    x = retrograd.tensor([1.0, 2.0], requires_grad=True)
    node = Doubled(x)
    y = x.detach()
    set_history(y, node)
    assert y.grad_fn is node and y.output_nr == 0 and y.requires_grad and not y.is_leaf
    (y * y).sum().backward(create_graph=create_graph)
    assert x.grad.tolist() == [4.0, 8.0]
    assert x.grad.requires_grad == create_graph
    x.grad = None


def test_set_history_counts_outputs():
    node = Doubled(retrograd.ones(1, requires_grad=True))
    assert node.num_inputs == 0
    tensors = [retrograd.zeros(2), retrograd.zeros(3, dtype=retrograd.float64)]
    for tensor in tensors:
        set_history(tensor, node)
    assert node.num_inputs == 2
    assert [(m[0], m[1].name) for m in node.input_metadata] == [((2,), "float32"), ((3,), "float64")]
    assert [t.output_nr for t in tensors] == [0, 1]


def test_init_node_without_edges():
    node = MultiOutputNode()
    init_node(node, (None, None))
    assert node.topological_nr == 1
    assert node.next_functions == ((None, 0), (None, 0))


def test_a_bare_node_says_what_is_missing():
    with pytest.raises(NotImplementedError):
        Node().apply((), ())
    with pytest.raises(NotImplementedError):
        Node().apply_tensors((), ())


def test_tensor_nodes_box_arrays():
    seen = []

    class Looks(Doubled):
        __slots__ = ()

        def apply_tensors(self, edges, grads):
            seen.extend(type(g) for g in grads)
            return tuple(grads)

    x = retrograd.zeros(1, requires_grad=True)
    y = wrap(np.zeros(1, dtype=np.float32))
    set_history(y, Looks(x))
    y.backward(retrograd.ones(1))
    assert seen == [retrograd.Tensor]


@pytest.mark.parametrize("kind", ["operator", "accumulator", "custom function"])
def test_nodes_refuse_to_be_copied_and_pickled(torch, kind):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = torch.ones(2, requires_grad=True)
    node = (Double.apply(x) if kind == "custom function" else x * 2).grad_fn
    if kind == "accumulator":
        node = node.next_functions[0][0]
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=f"cannot pickle '{type(node).__name__}' object"):
            way(node)


def test_input_metadata_of_what_is_not_nested(torch):
    (metadata,) = (torch.ones(2, 3, requires_grad=True) * 2).grad_fn._input_metadata
    assert tuple(metadata.shape) == (2, 3) and metadata.dtype == torch.float32 and metadata.device.type == "cpu"
    assert metadata.is_nested_tensor is False and metadata.is_cpp_nested_tensor is False
