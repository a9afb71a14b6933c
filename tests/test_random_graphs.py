"""Random expression graphs, differentiated by retrograd and by references that share no code with it.

Hypothesis draws a `Program`: a few leaves and up to fifteen nodes over arithmetic, tanh, exp, reductions, matrix
products and changes of shape, with nodes used several times, leaves that do not require grad, and nodes that are
detached or computed under no_grad.  The first reference is `Dual`, forward-mode differentiation in NumPy: each value
carries its derivatives with respect to all entries of all leaves.  The second is finite differences.  Where torch
is installed, it is the third.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import retrograd

try:
    import torch
except ImportError:
    torch = None

quick = settings(
    max_examples=60,
    deadline=None,  # the first example pays for imports
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

# ---------------------------------------------------------------------------------------------- programs

LEAF_SHAPES = [(), (3,), (2, 1), (1, 3), (2, 3), (3, 2), (3, 3), (2, 1, 3)]
BINARY = ("add", "sub", "mul", "div")
UNARY = ("neg", "tanh", "exp", "scale", "shift_from")
SHAPING = ("sum", "sum_all", "transpose", "reshape", "expand")
LARGEST = 24  # entries of a node


@dataclass
class Step:
    """One node: an operation on earlier values, by position."""

    name: str
    inputs: tuple[int, ...]
    argument: Any = None
    cut: str | None = None  # None, "detach" or "no_grad"

    def __str__(self) -> str:
        argument = "" if self.argument is None else f", {self.argument}"
        cut = "" if self.cut is None else f"  # {self.cut}"
        return f"{self.name}({', '.join(f'v{i}' for i in self.inputs)}{argument}){cut}"


@dataclass
class Program:
    """Leaves, then steps; all values that nothing uses are its results."""

    leaves: list[np.ndarray]
    needs: list[bool]
    steps: list[Step] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"v{i} = leaf of shape {leaf.shape}{'' if need else ' without grad'}"
            for i, (leaf, need) in enumerate(zip(self.leaves, self.needs, strict=True))
        ]
        lines += [f"v{len(self.leaves) + i} = {step}" for i, step in enumerate(self.steps)]
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def results(self) -> list[int]:
        """Positions of the values that no step uses."""
        used = {position for step in self.steps for position in step.inputs}
        return [p for p in range(len(self.leaves), len(self.leaves) + len(self.steps)) if p not in used]

    def weights(self, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
        """The gradient that is sent into each result."""
        rng = np.random.default_rng(7)
        return [rng.uniform(0.5, 1.5, shape) for shape in shapes]


@st.composite
def programs(draw: st.DrawFn, cuts: bool = True) -> Program:
    """A random `Program`, whose values stay within reach: what grows is squashed by tanh."""
    shapes = draw(st.lists(st.sampled_from(LEAF_SHAPES), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    needs = [draw(st.booleans()) if i else True for i in range(len(shapes))]
    program = Program([rng.uniform(-1.5, 1.5, shape) for shape in shapes], needs)
    values = [Dual(leaf, np.zeros((0, *leaf.shape))) for leaf in program.leaves]

    def append(step: Step) -> None:
        program.steps.append(step)
        values.append(evaluate_step(step, [values[i] for i in step.inputs], NumPy))

    wanted = draw(st.integers(3, 15))
    while len(program.steps) < wanted:
        # The newest values are the likeliest, so that graphs grow deep as well as wide.
        newest = len(values) - 1
        first = newest - draw(st.integers(0, min(newest, draw(st.integers(0, newest)))))
        if np.max(np.abs(values[first].value), initial=0.0) > 6:
            append(Step("tanh", (first,)))
            continue
        step = draw_step(draw, first, [value.value.shape for value in values])
        if cuts:
            step.cut = draw(st.sampled_from([None] * 6 + ["detach", "no_grad"]))
        append(step)
    return program


def draw_step(draw: st.DrawFn, first: int, shapes: list[tuple[int, ...]]) -> Step:
    """A step that the value `first` can take part in."""
    shape = shapes[first]
    kinds = ["unary", "binary", "binary", "shaping"]
    partners = [p for p, other in enumerate(shapes) if matmul_fits(shape, other)]
    kind = draw(st.sampled_from(kinds + (["matmul"] if partners else [])))
    if kind == "matmul":
        return Step("matmul", (first, draw(st.sampled_from(partners))))
    if kind == "binary":
        # (A product of matrices may itself be larger than what is small enough: then with itself.)
        fitting = [p for p, other in enumerate(shapes) if broadcast_fits(shape, other)] or [first]
        pair = [first, draw(st.sampled_from(fitting))]
        return Step(draw(st.sampled_from(BINARY)), tuple(draw(st.permutations(pair))))
    if kind == "unary" or not shape:
        return Step(draw(st.sampled_from(UNARY)), (first,))
    name = draw(st.sampled_from(SHAPING))
    dim = draw(st.integers(-len(shape), len(shape) - 1))
    if name == "sum":
        return Step(name, (first,), (dim, draw(st.booleans())))
    if name == "transpose":
        return Step(name, (first,), (dim, draw(st.integers(0, len(shape) - 1))))
    if name == "reshape":
        size = int(np.prod(shape))
        forms = [(size,), (1, size), (size, 1), (-1,), shape[::-1]]
        return Step(name, (first,), draw(st.sampled_from(forms)))
    if name == "expand" and int(np.prod(shape)) * 2 <= LARGEST and len(shape) < 4:
        return Step(name, (first,), (2, *shape))
    return Step("sum_all", (first,))


def broadcast_fits(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    """Whether two shapes broadcast to one that is small enough."""
    try:
        return int(np.prod(np.broadcast_shapes(left, right))) <= LARGEST
    except ValueError:
        return False


def matmul_fits(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    """Whether two shapes can be multiplied as matrices or vectors."""
    if not left or not right or len(left) > 2 or len(right) > 2:
        return False
    return left[-1] == right[-2 if len(right) > 1 else -1]


# ---------------------------------------------------------------------------------------------- evaluation


class Dual:
    """A value, and its derivatives along the first axis: derivatives[k] is the change for input entry k."""

    def __init__(self, value: np.ndarray, derivatives: np.ndarray) -> None:
        self.value = value
        self.derivatives = derivatives


def raised(derivatives: np.ndarray, ndim: int) -> np.ndarray:
    """Derivatives of a value that broadcasts to `ndim` dimensions: ones go between entries' axis and the value's."""
    missing = ndim - (derivatives.ndim - 1)
    return derivatives.reshape(derivatives.shape[0], *(1,) * missing, *derivatives.shape[1:])


class NumPy:
    """The operations on `Dual`, each with its rule for the derivative."""

    @staticmethod
    def _elementwise(x: Dual, y: Dual, value: np.ndarray, by_x: Any, by_y: Any) -> Dual:
        changes = raised(x.derivatives, value.ndim) * by_x + raised(y.derivatives, value.ndim) * by_y
        return Dual(value, np.broadcast_to(changes, (len(x.derivatives), *value.shape)))

    @classmethod
    def add(cls, x: Dual, y: Dual) -> Dual:
        return cls._elementwise(x, y, x.value + y.value, 1, 1)

    @classmethod
    def sub(cls, x: Dual, y: Dual) -> Dual:
        return cls._elementwise(x, y, x.value - y.value, 1, -1)

    @classmethod
    def mul(cls, x: Dual, y: Dual) -> Dual:
        return cls._elementwise(x, y, x.value * y.value, y.value, x.value)

    @classmethod
    def div(cls, x: Dual, y: Dual) -> Dual:
        below = y.value**2 + 1
        return cls._elementwise(x, y, x.value / below, 1 / below, -2 * x.value * y.value / below**2)

    @staticmethod
    def neg(x: Dual) -> Dual:
        return Dual(-x.value, -x.derivatives)

    @staticmethod
    def tanh(x: Dual) -> Dual:
        value = np.tanh(x.value)
        return Dual(value, x.derivatives * (1 - value**2))

    @staticmethod
    def exp(x: Dual) -> Dual:
        value = np.exp(x.value / 4)
        return Dual(value, x.derivatives * value / 4)

    @staticmethod
    def scale(x: Dual) -> Dual:
        return Dual(0.5 * x.value, 0.5 * x.derivatives)

    @staticmethod
    def shift_from(x: Dual) -> Dual:
        return Dual(1 - x.value, -x.derivatives)

    @staticmethod
    def sum(x: Dual, argument: tuple[int, bool]) -> Dual:
        dim, keep = argument
        axis = dim % x.value.ndim
        return Dual(x.value.sum(axis, keepdims=keep), x.derivatives.sum(axis + 1, keepdims=keep))

    @staticmethod
    def sum_all(x: Dual) -> Dual:
        return Dual(np.asarray(x.value.sum()), x.derivatives.sum(tuple(range(1, x.derivatives.ndim))))

    @staticmethod
    def transpose(x: Dual, argument: tuple[int, int]) -> Dual:
        one, other = (dim % x.value.ndim for dim in argument)
        return Dual(x.value.swapaxes(one, other), x.derivatives.swapaxes(one + 1, other + 1))

    @staticmethod
    def reshape(x: Dual, shape: tuple[int, ...]) -> Dual:
        value = x.value.reshape(shape)
        return Dual(value, x.derivatives.reshape(len(x.derivatives), *value.shape))

    @staticmethod
    def expand(x: Dual, shape: tuple[int, ...]) -> Dual:
        changes = raised(x.derivatives, len(shape))
        return Dual(np.broadcast_to(x.value, shape), np.broadcast_to(changes, (len(changes), *shape)))

    @staticmethod
    def matmul(x: Dual, y: Dual) -> Dual:
        changes = [dx @ y.value + x.value @ dy for dx, dy in zip(x.derivatives, y.derivatives, strict=True)]
        value = np.asarray(x.value @ y.value)
        return Dual(value, np.array(changes).reshape(len(changes), *value.shape))

    @staticmethod
    def detached(x: Dual) -> Dual:
        return Dual(x.value, np.zeros_like(x.derivatives))

    @staticmethod
    def no_grad() -> Any:
        return contextlib.nullcontext()


class Module:
    """The same operations in a module that speaks torch's names."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def add(self, x: Any, y: Any) -> Any:
        return x + y

    def sub(self, x: Any, y: Any) -> Any:
        return x - y

    def mul(self, x: Any, y: Any) -> Any:
        return x * y

    def div(self, x: Any, y: Any) -> Any:
        return x / (y * y + 1)

    def neg(self, x: Any) -> Any:
        return -x

    def tanh(self, x: Any) -> Any:
        return self.module.tanh(x)

    def exp(self, x: Any) -> Any:
        return self.module.exp(x / 4)

    def scale(self, x: Any) -> Any:
        return 0.5 * x

    def shift_from(self, x: Any) -> Any:
        return 1 - x

    def sum(self, x: Any, argument: tuple[int, bool]) -> Any:
        return x.sum(argument[0], keepdim=argument[1])

    def sum_all(self, x: Any) -> Any:
        return x.sum()

    def transpose(self, x: Any, argument: tuple[int, int]) -> Any:
        return x.transpose(*argument)

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        return x.reshape(shape)

    def expand(self, x: Any, shape: tuple[int, ...]) -> Any:
        return x.expand(shape)

    def matmul(self, x: Any, y: Any) -> Any:
        return x @ y

    def detached(self, x: Any) -> Any:
        return x.detach()

    def no_grad(self) -> Any:
        return self.module.no_grad()


def evaluate_step(step: Step, inputs: list[Any], backend: Any) -> Any:
    """One step, in NumPy or in a module; NumPy knows no grad mode, so both cuts drop its derivatives."""
    arguments = inputs if step.argument is None else [*inputs, step.argument]
    with backend.no_grad() if step.cut == "no_grad" else contextlib.nullcontext():
        value = getattr(backend, step.name)(*arguments)
    if step.cut == "detach" or (step.cut == "no_grad" and backend is NumPy):
        return backend.detached(value)
    return value


def evaluate(program: Program, leaves: list[Any], backend: Any) -> list[Any]:
    """All results of the program."""
    values = list(leaves)
    for step in program.steps:
        values.append(evaluate_step(step, [values[i] for i in step.inputs], backend))
    return [values[position] for position in program.results]


def reference(program: Program, leaves: list[np.ndarray] | None = None) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The results and, for each leaf, the gradient of their weighted sum: by forward mode."""
    leaves = program.leaves if leaves is None else leaves
    entries = sum(leaf.size for leaf in leaves)
    duals, start = [], 0
    for leaf, need in zip(leaves, program.needs, strict=True):
        derivatives = np.zeros((entries, leaf.size))
        if need:
            derivatives[start : start + leaf.size] = np.eye(leaf.size)
        duals.append(Dual(leaf, derivatives.reshape(entries, *leaf.shape)))
        start += leaf.size
    results = evaluate(program, duals, NumPy)
    weights = program.weights([r.value.shape for r in results])
    gradient = np.zeros(entries)
    for result, weight in zip(results, weights, strict=True):
        gradient += (result.derivatives * weight).sum(tuple(range(1, result.derivatives.ndim)))
    parts = np.split(gradient, np.cumsum([leaf.size for leaf in leaves])[:-1])
    return [r.value for r in results], [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]


class Differentiated:
    """A program computed in a module, ready for backward."""

    def __init__(self, program: Program, module: Any) -> None:
        self.module = module
        self.leaves = [module.from_numpy(leaf.copy()) for leaf in program.leaves]
        for leaf, need in zip(self.leaves, program.needs, strict=True):
            leaf.requires_grad_(need)
        self.results = evaluate(program, self.leaves, Module(module))
        weights = program.weights([tuple(r.shape) for r in self.results])
        # Not `requires_grad`: a view made under no_grad has that of its base, but no history to go back through.
        chosen = [(r, w) for r, w in zip(self.results, weights, strict=True) if r.grad_fn is not None]
        self.roots, self._weights = [r for r, _ in chosen], [w for _, w in chosen]
        self.wanted = [leaf for leaf in self.leaves if leaf.requires_grad]

    @property
    def weights(self) -> list[Any]:
        """What is sent into the roots: new tensors each time, as a leaf's .grad may end up holding one of them."""
        return [self.module.from_numpy(weight.copy()) for weight in self._weights]

    def gradients(self, **options: Any) -> list[Any]:
        """One gradient, or None, for each leaf that requires grad."""
        if not self.roots:
            return [None] * len(self.wanted)
        return list(self.module.autograd.grad(self.roots, self.wanted, self.weights, allow_unused=True, **options))


def wanted(program: Program, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """What belongs to leaves that require grad."""
    return [array for array, need in zip(arrays, program.needs, strict=True) if need]


def dense(gradient: Any, like: np.ndarray) -> np.ndarray:
    """A gradient as an array, zeros where it is undefined."""
    return np.zeros_like(like) if gradient is None else gradient.detach().numpy()


def close(actual: np.ndarray, expected: np.ndarray, digits: float = 1e-9) -> None:
    """Equal to `digits`, relative to the largest entry: sums cancel."""
    assert actual.shape == expected.shape
    scale = 1 + np.max(np.abs(expected), initial=0.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=digits * scale)


# ---------------------------------------------------------------------------------------------- tests


@quick
@given(programs())
def test_values_and_gradients_are_those_of_forward_mode(program: Program) -> None:
    run = Differentiated(program, retrograd)
    results, gradients = reference(program)
    for mine, expected in zip(run.results, results, strict=True):
        close(mine.detach().numpy(), expected)
    for mine, expected in zip(run.gradients(), wanted(program, gradients), strict=True):
        close(dense(mine, expected), expected)


@quick
@given(programs(cuts=False))
def test_gradients_are_the_limit_of_differences(program: Program) -> None:
    """The same by differences of retrograd's own forward, along one random direction through all leaves."""
    rng = np.random.default_rng(3)
    directions = [
        rng.standard_normal(leaf.shape) * need for leaf, need in zip(program.leaves, program.needs, strict=True)
    ]
    step = 1e-5  # see reference.py: truncation and rounding balance here

    def total(sign: int) -> float:
        moved = [leaf + sign * step * d for leaf, d in zip(program.leaves, directions, strict=True)]
        with retrograd.no_grad():
            results = evaluate(program, [retrograd.from_numpy(np.asarray(m)) for m in moved], Module(retrograd))
        weights = program.weights([tuple(r.shape) for r in results])
        return float(sum(np.sum(w * r.numpy()) for w, r in zip(weights, results, strict=True)))

    run = Differentiated(program, retrograd)
    along = sum(np.sum(dense(g, d) * d) for g, d in zip(run.gradients(), wanted(program, directions), strict=True))
    close(np.asarray((total(1) - total(-1)) / (2 * step)), np.asarray(along), 1e-6)


@quick
@given(programs(cuts=False))
def test_second_gradients_are_differences_of_forward_mode(program: Program) -> None:
    """A Hessian-vector product by double backward, against differences of the reference's gradients."""
    rng = np.random.default_rng(5)
    directions = [
        rng.standard_normal(leaf.shape) * need for leaf, need in zip(program.leaves, program.needs, strict=True)
    ]
    step = 1e-5
    plus = reference(program, [leaf + step * d for leaf, d in zip(program.leaves, directions, strict=True)])[1]
    minus = reference(program, [leaf - step * d for leaf, d in zip(program.leaves, directions, strict=True)])[1]
    expected = [(p - m) / (2 * step) for p, m in zip(plus, minus, strict=True)]

    run = Differentiated(program, retrograd)
    first = run.gradients(create_graph=True)
    pairs = [
        (g, retrograd.from_numpy(np.asarray(d)))
        for g, d in zip(first, wanted(program, directions), strict=True)
        if g is not None and g.requires_grad
    ]
    second: list[Any] = [None] * len(run.wanted)
    if pairs:
        second = retrograd.autograd.grad([g for g, _ in pairs], run.wanted, [d for _, d in pairs], allow_unused=True)
    for mine, numerical in zip(second, wanted(program, expected), strict=True):
        close(dense(mine, numerical), numerical, 1e-5)


@quick
@given(programs())
def test_backward_accumulates_what_grad_returns(program: Program) -> None:
    """backward() fills .grad with grad()'s answer; a second time it adds; with inputs= it leaves the others alone."""
    run = Differentiated(program, retrograd)
    gradients = run.gradients(retain_graph=True)
    if not run.roots:
        return
    retrograd.autograd.backward(run.roots, run.weights, retain_graph=True)
    retrograd.autograd.backward(run.roots, run.weights, retain_graph=True)
    for leaf, gradient in zip(run.wanted, gradients, strict=True):
        assert (leaf.grad is None) == (gradient is None)
        if gradient is not None:
            close(leaf.grad.numpy(), 2 * gradient.detach().numpy())
            leaf.grad = None
    retrograd.autograd.backward(run.roots, run.weights, inputs=run.wanted[:1])
    assert all(leaf.grad is None for leaf in run.wanted[1:])
    if gradients[0] is not None:
        close(run.wanted[0].grad.numpy(), gradients[0].detach().numpy())
    for leaf in run.leaves:
        assert leaf.requires_grad or leaf.grad is None


@pytest.mark.parity
@pytest.mark.skipif(torch is None, reason="torch is not installed")
@quick
@given(programs())
def test_graph_is_torchs(program: Program) -> None:
    """Values, which results require grad, the names of their nodes, gradients and which of them are undefined."""
    ours, theirs = Differentiated(program, retrograd), Differentiated(program, torch)
    for mine, yours in zip(ours.results, theirs.results, strict=True):
        assert mine.requires_grad == yours.requires_grad
        assert (mine.grad_fn is None) == (yours.grad_fn is None)
        if yours.grad_fn is not None:
            assert mine.grad_fn.name() == yours.grad_fn.name()
        close(mine.detach().numpy(), yours.detach().numpy())
    for mine, yours in zip(ours.gradients(create_graph=True), theirs.gradients(create_graph=True), strict=True):
        assert (mine is None) == (yours is None)
        if yours is not None:
            assert mine.requires_grad == yours.requires_grad
            close(mine.detach().numpy(), yours.detach().numpy())
