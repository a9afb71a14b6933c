"""Leaks: no ordinary path leaves a reference cycle, and training does not grow."""

from __future__ import annotations

import gc
import sys
import tracemalloc
import weakref

import pytest

import retrograd as torch

pytestmark = pytest.mark.usefixtures("clean_state")


def leaf(*values):
    return torch.tensor(values or [1.0, 2.0], requires_grad=True)


def forward():
    x = leaf()
    ((x * 2).exp() + x.tanh()).sum()


def backward():
    x = leaf()
    ((x * 2).exp() + x.tanh() * x).sum().backward()


def backward_twice():
    x = leaf()
    y = (x.sigmoid() * x).sum()
    y.backward(retain_graph=True)
    y.backward()


def unused_outputs():
    x = torch.ones(2, 3, requires_grad=True)
    first, _ = x.unbind(0)
    values, _ = x.max(1)
    (first.sum() + values.sum()).backward()


def grad():
    x = leaf()
    torch.autograd.grad((x**3).sum(), x)


def grad_unused():
    x, w = leaf(), leaf()
    torch.autograd.grad((x**3).sum(), [x, w], allow_unused=True)


def double_backward():
    x = leaf()
    (g,) = torch.autograd.grad((x.exp() * x.tanh()).sum(), x, create_graph=True)
    torch.autograd.grad(g.sum(), x)


def triple():
    x = leaf()
    y = (x.exp() * x).sum()
    for _ in range(3):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)


def backward_with_create_graph():
    x = leaf()
    y = (x.exp() * x).sum()
    y.backward(create_graph=True)
    x.grad.sum().backward()
    x.grad = None  # the leaf holds its gradient, and that its graph: torch asks for this line too


def tensor_hooks():
    x = leaf()
    y = x * 2
    seen = []
    y.register_hook(lambda grad: seen.append(grad) or grad * 2)
    x.register_hook(seen.append)
    y.sum().backward()


def node_hooks():
    x = leaf()
    y = x * 2
    seen = []
    y.grad_fn.register_hook(lambda a, b: seen.append((a, b)))
    y.grad_fn.register_prehook(seen.append)
    y.grad_fn.metadata["x"] = 1
    y.sum().backward()


def removed_hooks():
    x = leaf()
    handle = x.register_hook(lambda grad: None)
    handle.remove()
    (x * 2).sum().backward()


def retained():
    x = leaf()
    y = x * 2
    y.retain_grad()
    y.exp().sum().backward()


def retained_under_create_graph():
    x = leaf()
    y = x * 2
    y.retain_grad()
    y.sin().sum().backward(create_graph=True)
    y.grad = x.grad = None


def saved_attributes():
    x = leaf()
    y = x.exp()
    y.grad_fn._saved_result
    (x * y).grad_fn._saved_self


def in_place():
    x = leaf()
    y = x * 2
    y.add_(1).mul_(2).exp_()
    y.sum().backward()


def in_place_updates():
    x = leaf()
    (x * x).sum().backward()
    with torch.no_grad():
        x -= 0.1 * x.grad
        x.grad.zero_()


def views():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x.view(2, 2)
    z = y[0] + y.t()[1] + y.unsqueeze(0)[0, 1]
    z.sum().backward()


def in_place_on_a_view():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    y[0] = 5.0
    y[1:3].mul_(2)
    y.sum().backward()


def detached():
    x = leaf()
    y = x * 2
    y.detach().add_(1)
    y.detach_()


def inputs():
    x, w = leaf(), leaf()
    y = x * w
    y.sum().backward(inputs=[x, y])


def gradient_edges():
    x = leaf()
    y = x * 2
    edge = torch.autograd.graph.get_gradient_edge(y)
    torch.autograd.grad((y * 3).sum(), edge)


def batched():
    x = leaf()
    torch.autograd.grad(x * x, x, torch.eye(2), is_grads_batched=True)


def second_backward_refused():
    x = leaf()
    y = x.exp().sum()
    y.backward()
    try:
        y.backward()
    except RuntimeError:
        pass


def modified():
    x = leaf()
    y = x * 1
    z = (y * y).sum()
    y.add_(1)
    try:
        z.backward()
    except RuntimeError:
        pass


def error_in_a_hook():
    x = leaf()
    y = x * 2
    y.register_hook(lambda grad: 1 / 0)
    for create_graph in (False, True):
        try:
            y.exp().sum().backward(create_graph=create_graph)
        except ZeroDivisionError:
            pass


def error_in_a_call():
    x = leaf()
    for call in (lambda: (x * 2).backward(), lambda: x.add_(1), lambda: x + torch.ones(3), lambda: x.numpy()):
        try:
            call()
        except (RuntimeError, TypeError):
            pass


def reentrant():
    x = leaf()
    y = x * 2

    def inner(grad):
        with torch.enable_grad():
            z = leaf()
            (z * z).sum().backward()

    y.register_hook(inner)
    y.sum().backward()


def modes():
    @torch.no_grad()
    def generator():
        yield leaf() * 2

    list(generator())
    with torch.no_grad(), torch.enable_grad(), torch.set_grad_enabled(False):
        leaf() * 2


def copies():
    import copy
    import pickle

    x = leaf()
    x.grad = torch.ones(2)
    copy.deepcopy(x)
    pickle.loads(pickle.dumps(x))


def printing():
    x = leaf()
    repr(x), repr(x * 2), str(x.exp()), f"{x}"


def dual_levels():
    from retrograd.autograd import forward_ad as fwAD

    for _ in range(2):
        with fwAD.dual_level():
            x = fwAD.make_dual(torch.ones(2), torch.ones(2))
            fwAD.unpack_dual(x * 2 + torch.ones(2) * 3)
            with fwAD.dual_level():
                fwAD.unpack_dual(fwAD.make_dual(x, torch.ones(2)).exp())


PATHS = [
    forward, backward, backward_twice, unused_outputs, grad, grad_unused, double_backward, triple,
    backward_with_create_graph, tensor_hooks, node_hooks, removed_hooks, retained, retained_under_create_graph,
    saved_attributes, in_place, in_place_updates, views, in_place_on_a_view, detached, inputs, gradient_edges, batched,
    second_backward_refused, modified, error_in_a_hook, error_in_a_call, reentrant, modes, copies, printing,
    dual_levels,
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS, ids=[path.__name__ for path in PATHS])
def test_no_reference_cycles(path, no_cycles):
    path()  # lazy imports happen here
    with no_cycles():
        path()


def test_tensors_die_at_once():
    gc.disable()
    try:
        x = leaf()
        y = x.exp()
        z = (y * 2).tanh()
        total = z.sum()
        references = [weakref.ref(t) for t in (y, z, total)] + [weakref.ref(t._numbers_) for t in (y, z)]
        references += [weakref.ref(t.grad_fn) for t in (y, z, total)]
        total.backward()
        del y, z, total
        assert [r() for r in references] == [None] * len(references)
        reference = weakref.ref(x)
        del x
        assert reference() is None
    finally:
        gc.enable()


def test_a_finished_pass_holds_nothing():
    """The thread's state, the queue and the task let go of gradients and nodes."""
    gc.disable()
    try:
        x = leaf()
        seen = []
        y = x * 2
        y.register_hook(lambda grad: seen.append(weakref.ref(grad)))
        y.exp().sum().backward()
        assert seen[0]() is None
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


# ------------------------------------------------------------------------------------------------------------ training


def train(steps, after_step):
    g = torch.Generator().manual_seed(0)
    inputs, targets = torch.randn(8, 4, generator=g), torch.randn(8, 1, generator=g)
    parameters = [torch.randn(4, 16, generator=g), torch.zeros(16), torch.randn(16, 1, generator=g), torch.zeros(1)]
    for p in parameters:
        p.requires_grad_()
    w1, b1, w2, b2 = parameters
    for step in range(steps):
        error = (inputs @ w1 + b1).tanh() @ w2 + b2 - targets
        loss = (error * error).mean()
        loss.backward()
        with torch.no_grad():
            for p in parameters:
                p -= 0.01 * p.grad
                if step % 2:
                    p.grad = None
                else:
                    p.grad.zero_()
        after_step(step)
    return loss.item()


def growth(steps):
    """(objects, bytes) that training left behind between its first tenth and its end, with the collector off."""
    marks = {}
    first, last = steps // 10, steps - 1
    if first % 2 != last % 2:
        first += 1

    def look(step):
        if step in (first, last):
            marks[step] = (len(gc.get_objects()), tracemalloc.get_traced_memory()[0], sys.getallocatedblocks())

    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        loss = train(steps, look)
    finally:
        tracemalloc.stop()
        gc.enable()
    assert loss < 1.0
    return tuple(b - a for a, b in zip(marks[first], marks[last]))


def check_growth(steps):
    objects, memory, blocks = growth(steps)
    assert abs(objects) <= 20
    assert abs(memory) <= 20_000
    assert abs(blocks) <= 200


def test_training_does_not_grow():
    check_growth(1_000)


@pytest.mark.slow
def test_long_training_does_not_grow():
    check_growth(10_000)
