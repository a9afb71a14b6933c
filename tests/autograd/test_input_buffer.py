"""InputBuffer: adds on every arrival, and in place only into a sum of its own."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd
from retrograd.autograd.input_buffer import InputBuffer
from retrograd.autograd.node import Node, init_node
from retrograd.tensor import wrap

pytestmark = pytest.mark.usefixtures("clean_state")


def test_empty_places_are_none():
    assert InputBuffer(3, 1).grads == [None, None, None]


def test_the_first_gradient_is_kept_as_it_is():
    buffer, first = InputBuffer(1, 2), np.ones(2)
    buffer.add(0, first, False)
    assert buffer.grads[0] is first
    assert buffer.owned == 0


def test_none_is_nothing():
    buffer, first = InputBuffer(1, 3), np.ones(2)
    buffer.add(0, None, False)
    assert buffer.grads == [None]
    buffer.add(0, first, False)
    buffer.add(0, None, False)
    assert buffer.grads[0] is first


def test_second_makes_a_sum_and_third_adds_in_place():
    given = [np.full(2, 1.0), np.full(2, 10.0), np.full(2, 100.0)]
    copies = [a.copy() for a in given]
    buffer = InputBuffer(1, 3)
    buffer.add(0, given[0], False)
    buffer.add(0, given[1], False)
    total = buffer.grads[0]
    assert not any(np.shares_memory(total, a) for a in given)
    buffer.add(0, given[2], False)
    assert buffer.grads[0] is total
    np.testing.assert_array_equal(total, [111.0, 111.0])
    for array, copy in zip(given, copies):
        np.testing.assert_array_equal(array, copy)


def test_places_are_owned_separately():
    buffer = InputBuffer(2, 5)
    left, right = np.ones(2), np.ones(2)
    buffer.add(0, left, False)
    buffer.add(0, np.ones(2), False)
    buffer.add(1, right, False)
    buffer.add(1, np.ones(2), False)
    buffer.add(1, np.ones(2), False)
    np.testing.assert_array_equal(buffer.grads[0], [2.0, 2.0])
    np.testing.assert_array_equal(buffer.grads[1], [3.0, 3.0])
    np.testing.assert_array_equal(left, [1.0, 1.0])
    np.testing.assert_array_equal(right, [1.0, 1.0])


def test_zero_dimensional_sums_stay_arrays():
    buffer = InputBuffer(1, 3)
    for value in (1.0, 2.0, 4.0):
        buffer.add(0, np.array(value), False)
    assert type(buffer.grads[0]) is np.ndarray
    assert buffer.grads[0].shape == () and buffer.grads[0] == 7.0


def test_a_recorded_sum_is_out_of_place():
    buffer = InputBuffer(1, 3)
    tensors = [retrograd.ones(2, requires_grad=True) * n for n in (1, 2, 3)]
    for tensor in tensors:
        buffer.add(0, tensor, True)
    assert buffer.grads[0].tolist() == [6.0, 6.0]
    assert buffer.grads[0].grad_fn.name() == "AddBackward0"
    assert [t._version for t in tensors] == [0, 0, 0]


# ------------------------------------------------------------------------------------------------ seen from outside


class Gives(Node):
    """A node that gives out an array that it keeps, as a formula that returns a saved tensor would."""

    __slots__ = ("kept",)

    def __init__(self, edge, kept):
        init_node(self, (edge,))
        self.kept = kept
        self.shape, self.dtype, self.array_class = kept.shape, kept.dtype, np.ndarray

    def apply(self, edges, grads):
        return (self.kept,)


@pytest.mark.parametrize("uses", [1, 2, 3, 5])
def test_what_a_node_keeps_is_never_written_to(uses):
    leaf = retrograd.zeros(2, requires_grad=True)
    x = leaf * 1  # gradients meet in the buffer of this node
    kept = [np.full(2, float(n), dtype=np.float32) for n in range(1, uses + 1)]
    results = []
    for array in kept:
        result = wrap(np.zeros(2, dtype=np.float32))
        result._edge_ = (Gives((x.grad_fn, 0), array), 0)
        results.append(result)
    retrograd.autograd.backward(results, [retrograd.ones(2)] * uses)
    total = sum(range(1, uses + 1))
    assert leaf.grad.tolist() == [total, total]
    leaf.grad.add_(1000)
    for n, array in enumerate(kept, 1):
        np.testing.assert_array_equal(array, [n, n])


FUNCTIONS = {
    "one use": lambda torch, x: x + 1,
    "x + x": lambda torch, x: x + x,
    "three uses": lambda torch, x: (x + x) + x,
    "four uses": lambda torch, x: x + x + x + x,
    "neg and pos": lambda torch, x: x - 0 * x,
    "view": lambda torch, x: x.view(2, 2) + x.reshape(2, 2),
    "transposed": lambda torch, x: x.t() + x,
    "transposed alone": lambda torch, x: x.t().t(),
    "clone": lambda torch, x: x.clone(),
    "cat": lambda torch, x: torch.cat([x[:1], x[1:]]),
    "unsqueezed": lambda torch, x: x.unsqueeze(0).squeeze(0),
}


#: torch makes a view of the given gradient the leaf's `.grad`; retrograd promises more.
TORCH_STEALS = {"transposed alone", "unsqueezed"}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("create_graph", [False, True])
def test_the_given_gradient_is_never_written_to(torch, name, create_graph):
    if torch is not retrograd and name in TORCH_STEALS and not create_graph:
        pytest.skip("torch writes to it")
    x = torch.arange(4.0).view(2, 2).requires_grad_()
    y = FUNCTIONS[name](torch, x)
    gradient = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    y.backward(gradient, retain_graph=True, create_graph=create_graph)
    y.backward(gradient, retain_graph=True, create_graph=create_graph)
    x.grad.detach().mul_(100)
    y.backward(gradient)
    assert gradient.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert gradient._version == 0
    assert x.grad.data_ptr() != gradient.data_ptr()


@pytest.mark.parametrize("leaves", [2, 3, 4])
def test_gradients_of_two_leaves_never_alias(torch, leaves):
    parts = [torch.ones(3, requires_grad=True) for _ in range(leaves)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    total.backward(torch.ones(3))
    assert len({p.grad.data_ptr() for p in parts}) == leaves
    parts[0].grad.zero_()
    assert all(p.grad.tolist() == [1.0, 1.0, 1.0] for p in parts[1:])


def test_a_leaf_used_twice_by_one_node(torch):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    (x * x).backward(torch.ones(2))
    assert x.grad.tolist() == [4.0, 6.0]


def test_a_diamond_sums_before_its_top_runs(torch):
    x = torch.tensor([1.0], requires_grad=True)
    top = x * 2
    seen = []
    top.register_hook(lambda grad: seen.append(grad.tolist()))
    (top * 3 + top * 4).sum().backward()
    assert seen == [[7.0]]
    assert x.grad.tolist() == [14.0]


def test_a_ladder_of_diamonds(torch):
    """Exponentially many paths; each node runs once."""
    x = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    y, runs = x, []
    for _ in range(40):
        y = y + y
        y.grad_fn.register_prehook(lambda grads: runs.append(1))
    y.backward()
    assert len(runs) == 40
    assert x.grad.tolist() == [2.0**40]
