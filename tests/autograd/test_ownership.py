"""Ownership of gradients: what becomes ``.grad`` is memory that nobody else can see, on every interpreter."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

import retrograd
from retrograd.autograd import ownership

pytestmark = pytest.mark.usefixtures("clean_state")


@pytest.fixture(params=["as the interpreter counts", "nothing is counted"])
def counting(request, monkeypatch):
    """Both ways to decide; results may not depend on which."""
    if request.param == "nothing is counted":
        monkeypatch.setattr(ownership, "count", ownership._unknown)


def test_one_gradient_for_two_leaves(counting):
    x, b = (retrograd.ones(3, requires_grad=True) for _ in range(2))
    for _ in range(2):
        ((x + b) * 2).sum().backward()
    assert x.grad.tolist() == b.grad.tolist() == [4.0, 4.0, 4.0]
    assert not np.shares_memory(x.grad.numpy(), b.grad.numpy())


class Giving(retrograd.autograd.Function):
    """Hands `make(grad)`, a gradient for each of two inputs, to both of them."""

    @staticmethod
    def forward(ctx, a, b, make):
        ctx.make = make
        return a + b

    @staticmethod
    def backward(ctx, grad):
        return *ctx.make(grad), None


def _buffer(grad, kept):
    kept.append(retrograd.zeros(2, 3))
    return kept[-1][0], kept[-1][1]


#: name -> (gradient, what the user keeps) -> the gradients of two leaves
GIVING = {
    "the same twice": lambda grad, kept: (grad, grad),
    "a fresh one twice": lambda grad, kept: (grad * 2,) * 2,
    "two views of one buffer": lambda grad, kept: tuple(retrograd.ones(2, 3).unbind(0)),
    "rows of a buffer that is kept": _buffer,
    "one that is kept, and a part of it": lambda grad, kept: (kept.append(grad * 3) or kept[-1], kept[-1][:]),
    "one of an array that is kept": lambda grad, kept: (
        kept.append(np.ones(3, np.float32)) or retrograd.from_numpy(kept[-1]), grad,
    ),
    "one that is expanded": lambda grad, kept: (retrograd.ones(1).expand(3), grad * 1),
    "one that is turned": lambda grad, kept: (grad.flip(0), grad[[2, 1, 0]]),
}  # fmt: skip


@pytest.mark.parametrize("name", GIVING)
def test_what_a_custom_function_gives_away(counting, name):
    kept: list = []
    a, b = (retrograd.ones(3, requires_grad=True) for _ in range(2))
    root = retrograd.ones(3)
    for _ in range(3):
        Giving.apply(a, b, lambda grad: GIVING[name](grad, kept)).backward(root)
    assert root.tolist() == [1.0, 1.0, 1.0]
    seen = [root.numpy(), *(k if isinstance(k, np.ndarray) else k.detach().numpy() for k in kept)]
    for leaf in (a, b):
        assert not any(np.shares_memory(leaf.grad.numpy(), other) for other in seen)
    assert not np.shares_memory(a.grad.numpy(), b.grad.numpy())


def _run(how: str, kept: list) -> list:
    """A pass over x, b in which the user gets to see gradients in one way; the leaves."""
    x, b = (retrograd.full((3,), 2.0, requires_grad=True) for _ in range(2))
    y = x * b
    z = (y + x).exp()
    if how == "tensor hook":
        y.register_hook(kept.append)
    elif how == "hook of the leaf":
        x.register_hook(kept.append)
    elif how == "hook of the leaf that answers":
        x.register_hook(lambda grad: kept.append(grad * 2) or kept[-1])
    elif how == "pre-hook of the node":
        y.grad_fn.register_prehook(lambda grads: kept.extend(grads))
    elif how == "post-hook of the node":
        y.grad_fn.register_hook(lambda inputs, outputs: kept.extend((*inputs, *outputs)))
    elif how == "post-hook that answers":
        y.grad_fn.register_hook(lambda inputs, outputs: kept.extend(inputs) or tuple(kept[-2:]))
    elif how == "retained":
        y.retain_grad()
    elif how == "post-accumulate hook":
        x.register_post_accumulate_grad_hook(lambda leaf: kept.append(leaf.grad.clone()))
    root = retrograd.ones(3)
    if how == "root gradient":
        kept.append(root)
        (x + b).backward(root)
    elif how == "several roots":
        kept.append(root)
        retrograd.autograd.backward([x + b, x * 1, b], [root, root, root])
    elif how == "given inputs":
        z.backward(root, inputs=[x, b, y])
    else:
        z.backward(root)
    if y.grad is not None:
        kept.append(y.grad)
    return [x, b]


WAYS = (
    "plain", "tensor hook", "hook of the leaf", "hook of the leaf that answers", "pre-hook of the node",
    "post-hook of the node", "post-hook that answers", "retained", "post-accumulate hook", "root gradient",
    "several roots", "given inputs",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("how", WAYS)
def test_what_the_user_has_seen_is_not_added_to(counting, how):
    kept: list = []
    leaves = _run(how, kept)
    before = [k.tolist() for k in kept]
    for leaf in leaves:
        for other in kept:
            assert other is leaf.grad or not np.shares_memory(leaf.grad.numpy(), other.detach().numpy())
        leaf.grad.add_(100)
    assert [k.tolist() for k in kept] == before
    assert not np.shares_memory(*(leaf.grad.numpy() for leaf in leaves))


def test_a_gradient_that_nobody_else_sees_is_kept():
    """Without a copy, that is: the proof holds on this interpreter (or every gradient would be copied)."""
    assert sys.implementation.name != "cpython" or ownership.count is sys.getrefcount
    for holder in ((np.ones(3),), [np.ones(3)], (np.ones((2, 3)).T,), [np.ones(6)[::2]]):
        assert ownership.held_alone(holder) == (ownership.count is not ownership._unknown)


#: Ways to hold an array; each gives something that lives on.
HOLD = {
    "a variable": lambda a: a,
    "a list": lambda a: [a],
    "a tuple": lambda a: (a,),
    "a dict": lambda a: {0: a},
    "a closure": lambda a: lambda: a,
    "a default": lambda a: lambda b=a: b,
    "a view": lambda a: a[1:],
    "a transpose": lambda a: a.T,
    "a memoryview": lambda a: memoryview(a),
    "a tensor": lambda a: retrograd.from_numpy(a),
    "a view of a tensor": lambda a: retrograd.from_numpy(a)[1:],
    "an iterator": lambda a: iter(a),
    "a generator": lambda a: (b for b in a),
}


@pytest.mark.parametrize("way", HOLD)
@pytest.mark.parametrize("kind", [tuple, list])
@pytest.mark.parametrize("shape", ["own memory", "view"])
def test_held_by_somebody_else(way, kind, shape):
    holder = kind([np.ones(4)] if shape == "own memory" else [np.ones(6)[1:5]])
    other = HOLD[way](holder[0])
    assert not ownership.held_alone(holder)
    del other
    assert ownership.held_alone(holder) == (ownership.count is not ownership._unknown)
    if shape == "view":
        other = HOLD[way](holder[0].base)
        assert not ownership.held_alone(holder)
        del other


def test_held_through_a_frame_above():
    def inner(borrowed, holder):
        return ownership.held_alone(holder)

    def outer():
        array = np.ones(3)
        return inner(array, (array,))

    assert not outer()


def test_memory_of_somebody_else():
    """Memory that is no array's own: a buffer, or a subclass's, may have other readers."""
    assert not ownership.held_alone((np.frombuffer(bytearray(8), np.float32),))

    class Array(np.ndarray):
        pass

    assert not ownership.held_alone((np.asarray(Array(3)),))


_numbers = itertools.count()
WRONG_COUNTS = {
    "always 1": lambda *values: 1,
    "always 2": lambda *values: 2,
    "always -1": lambda *values: -1,
    "one too many": lambda *values: sys.getrefcount(*values) + 1,
    "too few": lambda *values: sys.getrefcount(*values) - 2,
    "growing": lambda *values: next(_numbers),
    "at most 2": lambda *values: min(sys.getrefcount(*values), 2),
    "large": lambda *values: 2**32 - 1,
}


@pytest.mark.parametrize("name", WRONG_COUNTS)
def test_interpreters_that_count_otherwise_are_found_out(name):
    assert not ownership.counts_references(WRONG_COUNTS[name])
