"""Many threads, one graph, random actions: backward passes while hooks come, go, replace, raise and call backward.

Every number is a small integer, so that gradients have one right value whatever the order of the additions. A program
is repeated by its seed (the timing of the threads is not). ``pytest -m slow`` runs many more of them.
"""

from __future__ import annotations

import random
import threading

import pytest

import retrograd as torch
from retrograd.autograd.worker_threads import MAX_DEPTH
from retrograd.core.state import local
from retrograd.utils.checkpoint import checkpoint
from running_threads import run_threads

pytestmark = pytest.mark.usefixtures("clean_state")

THREADS = 6
ACTIONS = 80


class Deliberate(Exception):
    """Raised by a hook, for the thread that asked for it."""


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, *, other):
        ctx.save_for_backward(x, other["y"])
        return {"result": x * 2 + other["y"]}

    @staticmethod
    def backward(ctx, grads):
        grad = grads["result"]
        x, y = ctx.saved_tensors
        assert x.shape == y.shape == grad.shape
        return grad * 2, {"other": {"y": grad}}


class World:
    """A random graph over shared leaves, the gradients of its outputs, and how often each has been accumulated."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.leaves = [torch.ones(3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
        self.values = [leaf * 1 for leaf in self.leaves]
        for _ in range(12):
            self.values.append(self._grow(rng, rng.choice(self.values), rng.choice(self.values)))
        self.outputs = [(value * 1).sum() for value in rng.sample(self.values, 4)]
        self.expected = [
            torch.autograd.grad(output, self.leaves, retain_graph=True, materialize_grads=True)
            for output in self.outputs
        ]
        self.lock = threading.Lock()
        self.passes = [0] * len(self.outputs)
        #: Passes through graphs of its own that end in the first leaf, each adding 1.
        self.inner = 0
        self.handles: list = []
        self.personal = threading.local()

    @staticmethod
    def _grow(rng, a, b):
        kind = rng.randrange(5)
        if kind == 0:
            return a + b
        if kind == 1:
            return torch.where(a > b, a, b) * 1
        if kind == 2:
            return Twice.apply(a, other={"y": b})["result"] * 1
        if kind == 3:

            def inner(y):
                return (y * y.detach().sign()).clamp(min=0)

            return checkpoint(lambda x, y: x + checkpoint(inner, y, use_reentrant=False) * 1, a, b, use_reentrant=False)
        return a.clone().add_(b)

    def count(self, name, position=None):
        with self.lock:
            if position is None:
                setattr(self, name, getattr(self, name) + 1)
            else:
                getattr(self, name)[position] += 1

    # ------------------------------------------------------------------------------------------------------ actions

    def differentiate(self, rng):
        position = rng.randrange(len(self.outputs))
        self.outputs[position].backward(retain_graph=True)
        self.count("passes", position)

    def differentiate_several(self, rng):
        positions = rng.sample(range(len(self.outputs)), 2)
        torch.autograd.backward([self.outputs[p] for p in positions], retain_graph=True)
        for position in positions:
            self.count("passes", position)

    def ask(self, rng):
        position = rng.randrange(len(self.outputs))
        grads = torch.autograd.grad(
            self.outputs[position],
            self.leaves,
            retain_graph=True,
            create_graph=rng.random() < 0.3,
            materialize_grads=True,
        )
        assert [g.tolist() for g in grads] == [g.tolist() for g in self.expected[position]]

    def fail(self, rng):
        """A pass that ends in an error: it asks for gradients, so that nothing is accumulated half."""
        with rng.choice(self.values).register_hook(self._raise):
            self.personal.fails = True
            try:
                torch.autograd.grad(rng.choice(self.outputs), self.leaves, retain_graph=True, allow_unused=True)
            except Deliberate:
                pass
            finally:
                self.personal.fails = False
        assert local.state.graph_task is None and local.state.current_node is None

    def _raise(self, *_):
        if getattr(self.personal, "fails", False):
            raise Deliberate

    def hook(self, rng):
        tensor = rng.choice(self.values)
        kind = rng.randrange(7)
        if kind == 0:
            handle = tensor.register_hook(lambda grad: grad.clone())
        elif kind == 1:
            handle = tensor.grad_fn.register_prehook(lambda grads: tuple(None if g is None else g * 1 for g in grads))
        elif kind == 2:
            handle = tensor.grad_fn.register_hook(lambda grads, _: tuple(grads))
        elif kind == 3:
            handle = rng.choice(self.leaves).register_post_accumulate_grad_hook(lambda leaf: None)
        elif kind == 4:
            handle = torch.autograd.graph.register_multi_grad_hook(rng.sample(self.values, 3), lambda grads: None)
        elif kind == 5:
            own: list = []  # empty if another thread comes to the hook before we have its handle
            handle = tensor.register_hook(lambda grad: self._remove(own))  # removes itself
            own.append(handle)
        else:
            handle = tensor.register_hook(self._meddle)
        self.handles.append(handle)

    @staticmethod
    def _remove(handles):
        for handle in handles:
            handle.remove()

    def _meddle(self, grad):
        """While a pass runs: another hook comes, and one goes."""
        if len(self.handles) < 200:
            self.handles.append(self.values[len(self.handles) % len(self.values)].register_hook(lambda g: None))
        try:
            self.handles.pop(0).remove()
        except IndexError:
            pass

    def unhook(self, rng):
        try:
            self.handles.pop(rng.randrange(max(1, len(self.handles)))).remove()
        except IndexError:
            pass

    def reenter(self, rng):
        """A pass whose hook runs a pass whose hook runs a pass ..., into the same leaf."""
        self._nest(rng.choice([1, 3, MAX_DEPTH + 1])).backward()

    def _nest(self, depth):
        y = (self.leaves[0] * 1).sum()

        def hook(grad):
            self.count("inner")
            if depth:
                with torch.enable_grad():
                    self._nest(depth - 1).backward()

        y.register_hook(hook)
        return y

    def check(self):
        for number, leaf in enumerate(self.leaves):
            expected = [0.0] * 3
            for times, grads in zip(self.passes, self.expected):
                expected = [e + times * g for e, g in zip(expected, grads[number].tolist())]
            if number == 0:
                expected = [e + self.inner for e in expected]
            assert (leaf.grad.tolist() if leaf.grad is not None else [0.0] * 3) == expected


def run(seed: int) -> None:
    world = World(seed)

    def work(number):
        rng = random.Random(seed * 1000 + number)
        actions = [world.differentiate] * 4 + [world.hook] * 3 + [world.unhook] * 2
        actions += [world.differentiate_several, world.ask, world.fail, world.reenter]
        for _ in range(ACTIONS):
            rng.choice(actions)(rng)

    run_threads(work, THREADS, patience=120)
    for handle in world.handles:
        handle.remove()
    world.check()


@pytest.mark.parametrize("seed", range(8))
def test_random_actions(seed, restless):
    run(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 1100, 100))
def test_many_random_actions(first, restless):
    for seed in range(first, first + 100):
        run(seed)


def test_checkpoints_nested_under_threads(restless):
    """Each thread recomputes for itself, through the same nested checkpoints."""
    x = torch.full((3,), 2.0, dtype=torch.float64, requires_grad=True)
    recomputed = []

    def innermost(y):
        recomputed.append(threading.get_ident())
        return y * y

    def inner(y):
        return checkpoint(innermost, y, use_reentrant=False) * y

    y = checkpoint(lambda y: checkpoint(inner, y, use_reentrant=False) * y, x, use_reentrant=False).sum()
    idents = []

    def work():
        idents.append(threading.get_ident())
        y.backward(retain_graph=True)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert x.grad.tolist() == [8 * 4 * 2.0**3] * 3  # x^4, eight times
    assert set(idents) <= set(recomputed)


@pytest.mark.parametrize("depth", [1001, 3000])
def test_reentrant_to_a_great_depth_in_two_threads(depth):
    world = World(0)
    threads = [threading.Thread(target=lambda: world._nest(depth).backward()) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert world.inner == 2 * (depth + 1)
    world.check()
