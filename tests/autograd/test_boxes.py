"""One gradient is one object for all that see it: tensor hooks, hooks of nodes, and who called ``grad()``."""

from __future__ import annotations

import gc
import weakref

import pytest

import retrograd
from retrograd.autograd.boxes import Boxes

pytestmark = [
    pytest.mark.usefixtures("clean_state"),
    pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True"),
]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("leaf", [False, True])
def test_tensor_hooks_see_one_object(torch, leaf, create_graph):
    x = torch.ones(2, requires_grad=True)
    y = x if leaf else x * 2
    seen, made = [], []
    y.register_hook(seen.append)
    y.register_hook(seen.append)
    y.register_hook(lambda grad: made.append(grad * 3) or made[0])
    y.register_hook(seen.append)
    y.exp().sum().backward(create_graph=create_graph)
    assert seen[0] is seen[1]
    assert seen[2] is made[0]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("leaf", [False, True])
def test_hooks_of_nodes_see_what_tensor_hooks_saw(torch, leaf, create_graph):
    x = torch.ones(2, requires_grad=True)
    y = x if leaf else x * 2
    z = y.exp()
    node = z.grad_fn.next_functions[0][0]
    made, before, after = [], [], []
    y.register_hook(lambda grad: made.append(grad * 3) or made[0])
    node.register_prehook(before.append)
    node.register_prehook(lambda grads: made.append((grads[0] + 1,)) or made[1])
    node.register_prehook(before.append)
    node.register_hook(lambda inputs, outputs: after.append((inputs, outputs)))
    node.register_hook(lambda inputs, outputs: after.append((inputs, outputs)))
    z.sum().backward(create_graph=create_graph)
    assert before[0][0] is made[0]
    assert before[1] is made[1]
    (inputs, outputs), (inputs_again, outputs_again) = after
    assert outputs[0] is made[1][0] and outputs_again is outputs and inputs_again is inputs


def test_a_replaced_result_reaches_the_next_hook_of_a_node(torch):
    y = torch.ones(2, requires_grad=True) * 2
    made, seen = [], []
    y.grad_fn.register_hook(lambda inputs, outputs: made.append((inputs[0] * 5, *inputs[1:])) or made[0])
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs))
    y.sum().backward()
    assert seen[0] is made[0]


def test_a_mark_on_a_gradient_is_there_for_later_hooks(torch):
    """No hook holds the gradient: the mark alone keeps the object."""
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = y.clone()  # its gradient goes on as it is
    marks = []

    def mark(grad):
        grad.mark = "seen"

    z.register_hook(mark)
    z.register_hook(lambda grad: marks.append(grad.mark))
    z.grad_fn.register_prehook(lambda grads: marks.append(grads[0].mark))
    z.grad_fn.register_hook(lambda inputs, outputs: marks.extend([inputs[0].mark, outputs[0].mark]))
    y.register_hook(lambda grad: marks.append(grad.mark))
    x.register_hook(lambda grad: marks.append(hasattr(grad, "mark")))
    z.exp().sum().backward()
    assert marks == ["seen"] * 5 + [False]


def test_a_gradient_that_goes_on_as_it_is_stays_one_object(torch):
    y = torch.ones(2, requires_grad=True) * 2
    z = y.clone()
    seen = []
    z.register_hook(seen.append)
    z.grad_fn.register_hook(lambda inputs, outputs: seen.extend([inputs[0], outputs[0]]))
    y.register_hook(seen.append)
    z.exp().sum().backward()
    assert all(grad is seen[0] for grad in seen) and len(seen) == 4


def test_grad_returns_what_hooks_saw(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = y.exp().sum()
    seen, made = [], []
    y.register_hook(seen.append)
    (first,) = torch.autograd.grad(z, y, retain_graph=True)
    assert first is seen[-1]
    first, second, _ = torch.autograd.grad(z, [y, y, x], retain_graph=True)
    assert first is seen[-1] and second is first
    y.register_hook(lambda grad: made.append(grad * 2) or made[-1])
    (first,) = torch.autograd.grad(z, y)
    assert first is made[0]


def test_the_callers_gradient_is_what_hooks_see(torch):
    y = torch.ones(2, requires_grad=True) * 1
    z = y.clone()
    seen = []
    y.register_hook(seen.append)
    z.register_hook(seen.append)
    gradient = torch.ones(2)
    z.backward(gradient)
    assert seen[0] is gradient and seen[1] is gradient


def test_a_history_that_a_hook_made_is_handed_out(torch):
    x = torch.ones(2, requires_grad=True)
    weight = torch.ones(2, requires_grad=True)
    y = x * 2

    def scale(grad):
        with torch.enable_grad():
            return grad * weight

    y.register_hook(scale)
    (grad,) = torch.autograd.grad(y.sum(), y)
    assert grad.grad_fn.name() == "MulBackward0"


def test_gradients_of_leaves_and_retained_ones_are_objects_of_their_own(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    seen, stored = [], []
    y.register_hook(seen.append)
    x.register_hook(seen.append)
    x.register_post_accumulate_grad_hook(lambda leaf: stored.append((leaf, leaf.grad)))
    x.register_post_accumulate_grad_hook(lambda leaf: stored.append((leaf, leaf.grad)))
    y.sum().backward()
    assert y.grad is not seen[0] and x.grad is not seen[1]
    assert all(leaf is x and grad is x.grad for leaf, grad in stored)


def test_a_gradient_changed_in_place_by_a_hook_is_changed_for_all(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda grad: seen.append(grad.mul_(3)))
    y.register_hook(lambda grad: seen.append(grad))
    y.exp().backward(torch.ones(2))
    assert seen[0] is seen[1] and seen[1]._version == 1
    assert torch.equal(x.grad, 2 * 3 * torch.full((2,), 2.0).exp())


def test_boxes_that_nobody_holds_do_not_keep_gradients():
    """A pass through many hooks needs no more memory than one through none."""
    x = retrograd.ones(2, requires_grad=True)
    alive = []
    references = []
    y = x
    for _ in range(5):
        y = y.exp()

        def hook(grad):
            gc.collect()
            alive.append(sum(reference() is not None for reference in references))
            references.append(weakref.ref(grad._numbers_))

        y.register_hook(hook)
    y.sum().backward()
    assert max(alive) <= 1


def test_an_array_of_another_box_is_not_mistaken():
    boxes = Boxes()
    first = retrograd.ones(2)
    array = first._numbers_
    box = boxes.box(array)
    assert boxes.box(array) is box and boxes.box(None) is None
    box._numbers_ = first._numbers_ + 1  # as `grad.data = ...` does
    assert boxes.box(array) is not box
    assert boxes.unbox([box, None]) == [box._numbers_, None]
