"""The engine's loops do the same: on random graphs, with all that can hang on them.

They are three, and a fourth where the compiled core is installed.

Hypothesis draws a `Program`: a graph over leaves of several shapes and dtypes (so that gradients are summed and cast
on the way), with nodes of several outputs, custom functions, undefined gradients and writes to views; hooks of every
kind, which look, change the gradient, leave a mode behind, call ``backward()`` themselves or fail; and two calls of
``backward()`` or ``grad()``. Each loop runs it from the beginning. What hooks saw, in order, what came out, what
is left in ``.grad`` and in the graph, and what was raised must be equal. Where torch is installed, it is run as well.
"""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import retrograd
from retrograd.autograd import engine as engine_module
from retrograd.autograd.device_threads import run_on_devices
from retrograd.autograd.engine import run_pass
from retrograd.autograd.fast_loop import run_pass_fast
from retrograd.core import compiled
from retrograd.core.state import local

try:
    import torch
except ImportError:
    torch = None

pytestmark = pytest.mark.usefixtures("clean_state")

LOOPS = {"fast": run_pass_fast, "plain": run_pass, "devices": run_on_devices}
if compiled.library is not None:
    LOOPS["compiled"] = compiled.library.run_pass

quick = settings(
    max_examples=250,
    deadline=None,  # the first example pays for imports
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)

# ------------------------------------------------------------------------------------------------------------- programs

SHAPES = [(3, 2), (3, 2), (3, 2), (2,), (), (3, 1)]  # each broadcasts with each
UNARY = ["neg", "double", "sum", "sum0", "to float32", "to float64", "unbind", "detach", "write", "fill"]
BINARY = ["add", "add", "mul", "mul", "sub", "write tensor"]
PAIRS = ["pair", "pair", "no gradient", "no zeros", "late hook", "fails", "wrong x", "wrong y", "too many"]
HOOKS = ["tensor", "tensor", "retain", "pre", "post", "leaf", "leaf pre", "leaf post", "accumulated"]
ACTIONS = ["look", "look", "look", "change", "change", "leave a mode", "backward", "fail", "wrong"]


@dataclass
class Program:
    """What to build and what to do with it. Numbers stand for values, counted from the last (modulo how many)."""

    leaves: list[tuple[tuple[int, ...], str, bool]]
    steps: list[tuple[str, int, int]]
    hooks: list[tuple[str, int, str]]
    outputs: list[int]
    inputs: list[int]
    call: str
    keep: list[bool]
    create_graph: bool


def programs() -> st.SearchStrategy[Program]:
    number = st.integers(0, 7)
    failing = st.sampled_from([PAIRS[:5], PAIRS])  # not too many that fail
    step = st.one_of(
        st.tuples(st.sampled_from(UNARY), number, number),
        st.tuples(st.sampled_from(BINARY), number, number),
        st.tuples(st.sampled_from(BINARY), number, number),
        st.tuples(failing.flatmap(st.sampled_from), number, number),
    )
    harmless = st.sampled_from([ACTIONS[:7], ACTIONS[:7], ACTIONS])
    leaf = st.tuples(st.sampled_from(SHAPES), st.sampled_from(["float64", "float32"]), st.booleans())
    return st.builds(
        Program,
        leaves=st.lists(leaf, min_size=1, max_size=3),
        steps=st.lists(step, min_size=1, max_size=10),
        hooks=st.lists(st.tuples(st.sampled_from(HOOKS), number, harmless.flatmap(st.sampled_from)), max_size=5),
        outputs=st.lists(number, min_size=1, max_size=3),
        inputs=st.lists(number, min_size=1, max_size=3),
        call=st.sampled_from(["backward", "backward", "backward to inputs", "grad"]),
        keep=st.lists(st.booleans(), min_size=2, max_size=2),
        create_graph=st.booleans(),
    )


class NodeName(str):
    """The name of the node that a hook is called for."""


class Failure(Exception):
    """What hooks and custom functions raise."""


# -------------------------------------------------------------------------------------------------------------- running


@functools.cache
def pair_function(lib: Any) -> Any:
    """A custom function of two inputs and two outputs, whose backward does what its last argument says."""

    class Pair(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, kind, log):
            ctx.save_for_backward(x, y)
            ctx.kind, ctx.log = kind, log
            if kind == "no zeros":
                ctx.set_materialize_grads(False)
            return x * 2, x + y

        @staticmethod
        def backward(ctx, first, second):
            assert len(ctx.saved_tensors) == 2  # fails when they are let go
            ctx.log.append(("Pair", shown(first), shown(second)))
            if ctx.kind == "fails":
                raise Failure("of Pair")
            if ctx.kind == "late hook":
                ctx.register_hook(lambda outputs, inputs: ctx.log.append(("late", *map(shown, outputs))))
            of_x = of_y = None
            if first is not None:
                of_x = first * 2
            if second is not None:
                of_y = None if ctx.kind == "no gradient" else second * 1
                of_x = second if of_x is None else of_x + second
            if ctx.kind == "wrong x":
                of_x = lib.ones(5)
            if ctx.kind == "wrong y":
                of_y = lib.ones(5)
            return (of_x, of_y, None, None, None) if ctx.kind == "too many" else (of_x, of_y, None, None)

    return Pair.apply


def shown(tensor: Any) -> Any:
    """A tensor as plain data."""
    if tensor is None:
        return None
    return str(tensor.dtype), tuple(tensor.shape), tensor.detach().tolist(), tensor.requires_grad


class Run:
    """One program, run with one library (and loop)."""

    def __init__(self, lib: Any, program: Program) -> None:
        self.lib, self.program = lib, program
        self.log: list[Any] = []
        self.given: list[Any] = []  # gradients of the outputs
        self.alive: list[Any] = []  # accumulators would die with their last user, and their hooks with them
        rng = np.random.default_rng(0)
        self.values = []
        for position, (shape, dtype, requires_grad) in enumerate(program.leaves):
            array = rng.integers(-2, 4, shape)
            leaf = lib.tensor(array.tolist(), dtype=getattr(lib, dtype))
            self.values.append(leaf.requires_grad_(requires_grad or not position))
        self.leaves = list(self.values)
        for step in program.steps:
            self.step(*step)

    def value(self, number: int, fitting: Any = lambda value: True) -> Any:
        values = [value for value in reversed(self.values) if fitting(value)]
        return values[number % len(values)] if values else None

    def step(self, name: str, first: int, second: int) -> None:
        lib = self.lib
        x, y = self.value(first), self.value(second)
        if name in PAIRS:
            self.values += pair_function(lib)(x, y, name, self.log)
            return
        if name == "unbind":
            self.values += x.unbind(0) if x.ndim else [x]
            return
        if name in ("write", "fill", "write tensor"):
            # To a view of a copy: its history becomes CopySlices.
            if not x.ndim:
                return
            copy = x.clone()
            if name == "write":
                copy[0].mul_(3)
            elif name == "fill":
                copy[-1] = 2.0
            else:
                copy[-1] = y.sum().to(x.dtype)
            self.values.append(copy)
            return
        self.values.append({
            "neg": lambda: -x,
            "double": lambda: x * 2,
            "sum": lambda: x.sum(),
            "sum0": lambda: x.sum(0) if x.ndim else x + 1,
            "to float32": lambda: x.to(lib.float32),
            "to float64": lambda: x.to(lib.float64),
            "detach": lambda: x.detach(),
            "add": lambda: x + y,
            "sub": lambda: x - y,
            "mul": lambda: x.clamp(-100, 100) * y.clamp(-100, 100),
        }[name]())  # fmt: skip

    # ------------------------------------------------------------------------------------------------------------ hooks

    def hang(self, position: int, kind: str, number: int, action: str) -> None:
        lib = self.lib
        if kind in ("tensor", "retain", "pre", "post"):
            tensor = self.value(number, lambda value: value.requires_grad and value.grad_fn is not None)
        else:
            tensor = self.value(number, lambda value: value.requires_grad and value.grad_fn is None)
        if tensor is None:
            return
        name = f"{kind} {position}"
        if kind == "retain":
            tensor.retain_grad()
        elif kind in ("tensor", "leaf"):
            tensor.register_hook(lambda grad: self.act(name, action, grad))
        elif kind == "accumulated":
            tensor.register_post_accumulate_grad_hook(lambda leaf: self.act_after(name, action, leaf))
        else:
            node = tensor.grad_fn
            if node is None:
                node = lib.autograd.graph.get_gradient_edge(tensor).node
                self.alive.append(node)
            if kind.endswith("pre"):
                node.register_prehook(lambda grads: self.act_on_all(name, action, grads))
            else:
                node.register_hook(lambda outputs, inputs: self.act_on_all(name, action, outputs, inputs))

    def see(self, name: str, action: str, *grads: Any) -> None:
        node = NodeName(local.state.current_node.name() if self.lib is retrograd else "")
        self.log.append((name, self.lib.is_grad_enabled(), node, *map(shown, grads)))
        if action == "fail":
            raise Failure(name)
        if action == "leave a mode":
            self.lib.set_grad_enabled(not self.lib.is_grad_enabled())
        elif action == "backward":
            with self.lib.enable_grad():
                other = self.lib.ones(2, requires_grad=True)
                result = (other * 3).sum()
                result.register_hook(lambda grad: self.log.append((name, "inner")))
            result.backward()
            self.log.append((name, other.grad.tolist()))

    def act(self, name: str, action: str, grad: Any) -> Any:
        self.see(name, action, grad)
        if action == "change" and grad is not None:
            return grad * 2
        return self.lib.ones(7) if action == "wrong" else None

    def act_on_all(self, name: str, action: str, grads: tuple, inputs: tuple = ()) -> Any:
        self.see(name, action, *grads, *inputs)
        if action == "change":
            return tuple(None if grad is None else grad * 3 for grad in grads)
        return grads[:-1] if action == "wrong" and grads else None

    def act_after(self, name: str, action: str, leaf: Any) -> Any:
        self.see(name, action, leaf.grad)
        return leaf.grad if action == "wrong" else None

    # ------------------------------------------------------------------------------------------------------------ calls

    def pass_over(self, keep: bool) -> Any:
        """One call of ``backward()`` or ``grad()``: what it gives, or the error."""
        lib, program = self.lib, self.program
        differentiable = [value for value in reversed(self.values) if value.requires_grad]
        outputs = [differentiable[n % len(differentiable)] for n in program.outputs]
        inputs = [differentiable[n % len(differentiable)] for n in program.inputs]
        grads = [
            None if not output.ndim and position % 2 else lib.full_like(output, position + 1).detach()
            for position, output in enumerate(outputs)
        ]
        self.given += grads
        options = {"retain_graph": keep, "create_graph": program.create_graph}
        try:
            if program.call == "grad":
                return lib.autograd.grad(outputs, inputs, grads, allow_unused=True, **options)
            if program.call == "backward to inputs":
                options["inputs"] = inputs
            if len(outputs) == 1:
                return outputs[0].backward(grads[0], **options)
            return lib.autograd.backward(outputs, grads, **options)
        except Exception as error:
            return error

    def everything(self) -> dict[str, Any]:
        """Run it, and what can be seen of it afterwards."""
        for position, hook in enumerate(self.program.hooks):
            self.hang(position, *hook)
        seen: dict[str, Any] = {"log": self.log}
        for position, keep in enumerate(self.program.keep):
            result = self.pass_over(keep)
            if isinstance(result, tuple):
                seen[f"results {position}"] = [shown(tensor) for tensor in result]
                seen[f"graph {position}"] = [nodes_of(tensor) for tensor in result]
            elif result is not None:
                seen[f"error {position}"] = type(result).__name__, str(result)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of looking at the .grad of a non-leaf
                grads = [value.grad for value in self.values]
            seen[f"grads {position}"] = [shown(grad) for grad in grads]
            # (The quick loops hand numbers on as NumPy's scalars, and make a new array where others copy one.)
            seen[f"layout {position}"] = [
                None if grad is None else (grad.stride(), grad._version if grad.ndim else None) for grad in grads
            ]
            seen[f"graph of grads {position}"] = [nodes_of(grad) for grad in grads]
            seen[f"given {position}"] = [shown(grad) for grad in self.given]
            seen[f"enabled {position}"] = self.lib.is_grad_enabled()
        return seen


def nodes_of(tensor: Any) -> list[str]:
    """The names of the nodes behind a tensor, each node once."""
    if tensor is None or tensor.grad_fn is None:
        return []
    nodes = [tensor.grad_fn]
    for node in nodes:  # grows while it is walked
        nodes += [n for n, _ in node.next_functions if n is not None and all(n is not other for other in nodes)]
        if len(nodes) > 300:
            break
    return [node.name() for node in nodes]


def run(program: Program, loop: str) -> dict[str, Any]:
    before = engine_module.run_pass_fast
    engine_module.run_pass_fast = LOOPS[loop]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # create_graph=True of backward()
            return Run(retrograd, program).everything()
    finally:
        engine_module.run_pass_fast = before


# ---------------------------------------------------------------------------------------------------------------- tests


@quick
@given(programs())
def test_all_loops_do_the_same(program: Program) -> None:
    expected = run(program, "plain")
    for loop in LOOPS:
        assert run(program, loop) == expected, loop


def comparable(seen: dict[str, Any]) -> dict[str, Any]:
    """What torch can be asked for too: not its order among equals, its layouts and the words of its errors."""
    found = {}
    for key, value in seen.items():
        if key == "log":
            found[key] = Counter(repr([part for part in entry if not isinstance(part, NodeName)]) for entry in value)
        elif key.startswith("error"):
            found[key] = value[0]
        elif not key.startswith(("graph", "layout")):
            found[key] = value
    return found


@pytest.mark.parity
@quick
@given(programs())
def test_torch_does_the_same(program: Program) -> None:
    if torch is None:
        pytest.skip("torch is not installed")
    program.keep[0] = True  # which nodes have saved something, and fail when they run again, is a matter of formulas
    # Hooks after accumulation: a mode that one leaves ends with it here, and in torch after the post-hooks of its node;
    # one that returns something ends the pass here, and in torch those after it are called first.
    but = {("accumulated", "leave a mode"), ("accumulated", "wrong")}
    if not program.create_graph:  # those that switch recording on (docs/DIFFERENCES.md, "A pass that is not recorded")
        but |= {("tensor", "leave a mode"), ("pre", "leave a mode")}
    program.hooks = [hook for hook in program.hooks if (hook[0], hook[2]) not in but]
    ours = comparable(run(program, "fast"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = comparable(Run(torch, program).everything())
    # Torch adds to a gradient that the caller gave, where the gradient of a sum of one number is that same tensor.
    for key in [key for key in ours if key.startswith("given")]:
        del ours[key], theirs[key]
    assert ours == theirs


# ------------------------------------------------------------------------------------ what the random graphs have found


def pair_of(torch: Any, grads: Any) -> Any:
    """A custom function x + y, of shapes (3, 2) and (2,), which gives back what it is told."""

    class Pair(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x)
            return x + y

        @staticmethod
        def backward(ctx, grad):
            assert len(ctx.saved_tensors) == 1
            return grads(grad)

    x, y = torch.ones(3, 2, requires_grad=True), torch.ones(2, requires_grad=True)
    return x, y, Pair.apply(x, y).sum()


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_that_are_not_wanted_are_checked_too(torch: Any, create_graph: bool) -> None:
    x, _, loss = pair_of(torch, lambda grad: (grad, torch.ones(5)))
    with pytest.raises(RuntimeError, match=r"returned an invalid gradient at index 1 - got \[5\]"):
        torch.autograd.grad(loss, x, create_graph=create_graph)


def test_post_hooks_see_those_as_the_next_node_would(torch: Any) -> None:
    x, _, loss = pair_of(torch, lambda grad: (grad, grad))
    seen = []
    node = loss.grad_fn.next_functions[0][0]
    node.register_hook(lambda outputs, inputs: seen.append([tuple(grad.shape) for grad in outputs]))
    torch.autograd.grad(loss, x)
    assert seen == [[(3, 2), (2,)]]


def test_a_node_that_gave_what_does_not_fit_has_let_nothing_go(torch: Any) -> None:
    _, _, loss = pair_of(torch, lambda grad: (grad, torch.ones(5)))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="returned an invalid gradient at index 1"):
            loss.backward()


@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("key", [0, slice(1), ...])
def test_a_number_that_is_written_is_a_tensor_to_the_node(torch: Any, key: Any, retain: bool) -> None:
    """Hooks see its gradient, which is None; whichever way the write was recorded."""
    x = torch.ones(2, requires_grad=True) * 1
    if retain:
        x.retain_grad()
    x[key] = 2.0
    seen = []
    x.grad_fn.register_hook(lambda outputs, inputs: seen.append([None if g is None else g.tolist() for g in outputs]))
    x.sum().backward()
    assert seen == [[[0.0, 0.0 if key is ... else 1.0], None]]


@pytest.mark.parametrize("loop", LOOPS)
def test_leaves_take_over_what_nobody_else_holds(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No loop holds a gradient in a variable of its own while AccumulateGrad looks: Note [Ownership]."""
    monkeypatch.setattr(engine_module, "run_pass_fast", LOOPS[loop])
    x, w = retrograd.ones(2, requires_grad=True), retrograd.ones(2, requires_grad=True)
    y = x * 3.0
    given = []
    for node in (y.grad_fn, (z := w * 5.0).grad_fn):
        node.register_hook(lambda outputs, inputs: given.append(outputs[0].data_ptr()))  # type: ignore[union-attr]
    retrograd.autograd.backward([y, z], [retrograd.ones(2), retrograd.ones(2)])
    assert [w.grad.data_ptr(), x.grad.data_ptr()] == given  # type: ignore[union-attr]


@pytest.mark.parametrize("loop", LOOPS)
def test_equal_nodes_run_in_the_order_in_which_they_became_ready(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes that threads made have equal numbers; here, made so by hand."""
    monkeypatch.setattr(engine_module, "run_pass_fast", LOOPS[loop])
    x = retrograd.ones(1, requires_grad=True)
    early, late = x * 2, x * 3
    between = late * 5
    log: list[str] = []
    for name, value in (("early", early), ("late", late), ("between", between)):
        value.register_hook(lambda grad, name=name: log.append(name))
    total = early + between
    early.grad_fn._set_sequence_nr(7)  # type: ignore[union-attr]
    late.grad_fn._set_sequence_nr(7)  # type: ignore[union-attr]
    between.grad_fn._set_sequence_nr(8)  # type: ignore[union-attr]
    total.backward()
    assert log == ["between", "early", "late"]


# ------------------------------------------------------------------------------------------------------- numbers alone


def numbers(torch, dtype, hooked):
    """Programs on 0-d tensors, with all that may look at a gradient on its way."""
    x, y = (torch.tensor(v, dtype=dtype, requires_grad=True) for v in (0.7, -1.3))
    v = torch.tensor([0.5, 2.0, -1.0], dtype=dtype, requires_grad=True)
    shared = x * y - 3
    seen = []
    if hooked:
        shared.register_hook(lambda g: seen.append(g) or g * 2)
        shared.grad_fn.register_prehook(lambda grads: seen.append(grads[0]))
    total = 100 * (shared - v[1] ** 2) ** 2 + (1 - shared) ** 2 / y + v[0].exp() * -x
    total = total + v.dot(v) * (shared * shared).sqrt().conj()
    wide = total * v  # the gradient of `total` is summed from three
    return (total + wide.sum()) * 1.5, [x, y, v, shared], seen


@pytest.mark.parity
@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_numbers(dtype, hooked):
    """What NumPy makes of 0-d arrays are its scalars, which stay so between nodes: nobody else sees one."""
    torch = pytest.importorskip("torch")
    found = []
    for lib in (retrograd, torch):
        result, tensors, seen = numbers(lib, getattr(lib, dtype), hooked)
        gradients = lib.autograd.grad(result, tensors, retain_graph=True)
        result.backward()
        gradients = [*gradients, *(t.grad for t in tensors[:3]), *seen]
        assert all(type(g) is lib.Tensor for g in gradients)
        found.append([g.tolist() for g in gradients])
        if lib is retrograd:
            assert all(isinstance(g._numbers_, np.ndarray) for g in gradients)
    assert len(found[0]) == len(found[1]) == (11 if hooked else 7)
    for ours, theirs in zip(*found, strict=True):
        assert np.isfinite(ours).all()
        np.testing.assert_allclose(ours, theirs, rtol=1e-5 if dtype == "float32" else 1e-12)
