"""The compiled core does what the Python behind it does, to the last bit, and leaves to it what is not plain.

All other tests run on it as well where it is installed (`make test-core`); these are about what it has of its own.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import itertools
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import tracemalloc
import types
import weakref
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd._generated import functions, nodes
from retrograd.autograd import engine as engine_module
from retrograd.autograd.fast_loop import run_pass_fast
from retrograd.autograd.saved_variable import SavedVariable
from retrograd.core import compiled
from retrograd.core.state import local
from retrograd.core.version_counter import VersionCounter
from retrograd.ops.registry import SPACES
from samples import OPS, Op

core = compiled.library
pytestmark = pytest.mark.skipif(core is None, reason=f"no compiled core: {compiled.reason}")

SPECIAL = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, 1e308]
SIGNS = ["mul", "add", "sub", "truediv"]


def bits(array: Any) -> tuple[Any, ...]:
    """An array, with its layout; a NaN is a NaN."""
    array = np.asarray(array)
    known = np.where(np.isnan(array), np.nan, array) if array.dtype.kind in "fc" else array
    return array.shape, array.strides, array.dtype, known.astype(array.dtype).tobytes()


def leaf(values: Any, dtype: Any) -> Any:
    with np.errstate(over="ignore"):
        return retrograd.tensor(np.array(values).astype(dtype), requires_grad=True)


# ------------------------------------------------------------------------------------------------------- Python's signs


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sign", SIGNS)
def test_signs_are_those_of_python_to_the_last_bit(sign: str, dtype: Any) -> None:
    straight, reflected = getattr(functions, f"__{sign}__"), SPACES["Tensor"][f"__r{sign}__"]
    operate = {"mul": lambda a, b: a * b, "add": lambda a, b: a + b, "sub": lambda a, b: a - b}.get(
        sign, lambda a, b: a / b
    )
    pairs = np.array(list(itertools.product(SPECIAL, SPECIAL)))
    long = np.random.default_rng(0).standard_normal((2, 5000))
    operands = [
        (leaf(pairs[:, 0], dtype), leaf(pairs[:, 1], dtype)),
        (leaf(pairs[:, 0].reshape(10, 10), dtype), leaf(1.5, dtype)),
        (leaf(3.0, dtype), leaf(pairs[:, 1].reshape(4, 25), dtype)),
        (leaf(3.0, dtype), leaf(-0.0, dtype)),
        (leaf(np.ones((2, 1)), dtype), leaf(np.ones((1, 3)), dtype)),
        (leaf(long[0], dtype), leaf(long[1], dtype)),
        (leaf(np.ones((3, 4)), dtype).t(), leaf(np.ones((4, 3)), dtype)),
        (leaf(np.ones((0, 3)), dtype), leaf(np.ones((0, 3)), dtype)),
        (leaf([1.0, 2.0], dtype), leaf([1.0, 2.0], np.float64 if dtype is np.float32 else np.float32)),
    ]
    for a, b in operands:
        found, expected = operate(a, b), straight(a, b)
        assert bits(found._numbers_) == bits(expected._numbers_)
        assert found.grad_fn.name() == expected.grad_fn.name()
        assert found.grad_fn.topological_nr == expected.grad_fn.topological_nr
        assert found.grad_fn.input_metadata == expected.grad_fn.input_metadata
    x = leaf(pairs[:, 0], dtype)
    numbers = [*SPECIAL, 3, -7, 2**24 + 1, 2**53 + 1, -(2**63), np.float64(0.1), np.int64(3)]
    for number in [*numbers, True] if sign != "sub" else numbers:  # (a bool is not subtracted)
        with np.errstate(all="ignore"):
            assert bits(operate(x, number)._numbers_) == bits(straight(x, number)._numbers_), number
            if not isinstance(number, np.generic):  # NumPy's numbers ask for an array first
                assert bits(operate(number, x)._numbers_) == bits(reflected(x, number)._numbers_), number


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_those_of_python_to_the_last_bit(dtype: Any) -> None:
    """Those are NumPy's, whose order of additions is followed."""
    rng = np.random.default_rng(1)
    shapes = [(n,) for n in (*range(1, 300), 1000, 2049, 4095, 4096, 4097)]
    arrays = [rng.standard_normal(shape) for shape in (*shapes, (8, 8), (3, 5, 7), (2, 0), (64, 64), ())]
    for array in (*arrays, np.array([-0.0]), np.array([-0.0] * 9), np.array([np.inf, 1]), np.array([np.nan, 1])):
        x = leaf(array, dtype)
        assert bits(x.sum()._numbers_) == bits(functions.sum(x)._numbers_), array.shape
        assert x.sum().grad_fn.name() == "SumBackward0"


@pytest.mark.parametrize("exponent", [2, 3, 0, -1, 0.5, 2.0])
def test_powers(exponent: Any) -> None:
    x = leaf([0.0, 1.5, -2.0, np.inf], np.float64)
    with np.errstate(all="ignore"):
        found, expected = x**exponent, functions.pow_Tensor_Scalar(x, exponent)
        assert bits(found._numbers_) == bits(expected._numbers_)
        (a,), (b,) = (retrograd.autograd.grad(y.sum(), x) for y in (found, expected))
    assert bits(a._numbers_) == bits(b._numbers_)


@pytest.mark.parametrize("of", ["a leaf", "a result", "a view", "no grad", "written to", "not contiguous"])
def test_subscripts_are_views_as_python_takes_them(of: str) -> None:
    def made() -> Any:
        x = leaf(np.arange(24.0).reshape(2, 3, 4), np.float64)
        match of:
            case "a result":
                return x * 2
            case "a view":
                return x[1]
            case "no grad":
                return x.detach()
            case "written to":
                y = x * 2
                y[0].mul_(3)
                return y
            case "not contiguous":
                return (x * 1).transpose(0, 2)
        return x

    ways: list[tuple[Any, Any]] = [
        *[(lambda x, i=i: x[i], lambda x, i=i: functions.select(x, 0, i)) for i in (0, 1, -1)],
        *[
            (lambda x, a=a, b=b: x[a:b], lambda x, a=a, b=b: functions.slice(x, 0, a, b))
            for a, b in ((0, 1), (None, 1), (1, None), (-1, 99), (None, None), (1, 1), (-1, 0), (2**62, None))
        ],
        *[
            (lambda x, size=size: x.view(*size), lambda x, size=size: functions.view(x, size))
            for size in ((2, 3, 4), (3, 4, 2), (24,), (1, 24), (-1, 2), (12,))
            if made().numel() == abs(math.prod(size)) and of != "not contiguous"
        ],
    ]
    for take, right in ways:
        sources = made(), made()
        views = take(sources[0]), right(sources[1])
        for view in views:
            assert view._vc_ is not None
        assert bits(views[0]._numbers_) == bits(views[1]._numbers_)
        assert views[0]._numbers_.base is not None
        assert not views[0].numel() or np.shares_memory(views[0]._numbers_, sources[0]._numbers_)
        places = [v._numbers_.ctypes.data - s._numbers_.ctypes.data for v, s in zip(views, sources, strict=True)]
        assert places[0] == places[1]
        for name in ("requires_grad", "_version", "is_leaf"):
            assert getattr(views[0], name) == getattr(views[1], name)
        assert [step[1:] for step in views[0]._grad_meta_.replay] == [step[1:] for step in views[1]._grad_meta_.replay]
        assert (views[0]._base is sources[0]) == (views[1]._base is sources[1])
        if views[0].requires_grad:
            assert views[0].grad_fn.name() == views[1].grad_fn.name()
            assert state_of(views[0].grad_fn) == state_of(views[1].grad_fn)
    with pytest.raises(IndexError, match=r"out of range|out of bounds"):
        made()[5]
    with pytest.raises(RuntimeError, match=r"invalid for input of size|not compatible"):
        made().view(5, 5)
    for wrong in ((2.0,), ("2",), (2, None)):
        with pytest.raises(TypeError, match="view"):
            made().view(*wrong)


def test_parameters_are_as_plain_as_tensors() -> None:
    w = retrograd.nn.Parameter(retrograd.ones(2, 2))
    y = (w * 2 + w[0]).sum()
    assert type(y) is type(w * 2) is retrograd.Tensor
    y.backward()
    assert w.grad is not None and w.grad.tolist() == [[4.0, 4.0], [2.0, 2.0]]


def test_what_is_not_plain_is_left_to_python() -> None:
    x = retrograd.ones(2, requires_grad=True)
    for strange in ("text", None, [1, 2], object()):
        for attempt in (lambda s: x * s, lambda s: s - x, lambda s: x / s, lambda s: x**s):
            with pytest.raises(TypeError):
                attempt(strange)
        assert x.__add__(strange) is NotImplemented
    with pytest.raises(RuntimeError, match="must match the size"):
        x * retrograd.ones(3)
    with pytest.raises(TypeError):
        pow(x, 2, 3)
    with pytest.raises(TypeError, match=r"'Tensor'|__rpow__"):  # (not that __pow__ of a Tensor takes no 2)
        pow(2, x, 3)

    class Own:
        def __rmul__(self, other: Any) -> str:
            return "mine"

    assert x * Own() == "mine"
    assert (np.float32(2) * x).tolist() == [2.0, 2.0]
    assert type(x * 1j) is retrograd.Tensor
    assert (x.double() * retrograd.ones(2, dtype=retrograd.int64)).dtype is retrograd.float64


def test_a_class_of_tensors_may_define_its_own_signs() -> None:
    class Marked(retrograd.Tensor):
        def __mul__(self, other: Any) -> Any:
            return "mul"

        def __radd__(self, other: Any) -> Any:
            return "radd"

        def __getitem__(self, key: Any) -> Any:
            return "item"

    plain, own = retrograd.ones(2), retrograd.ones(2).as_subclass(Marked)
    assert own * plain == "mul" and own[0] == "item"
    assert plain + own == "radd" and 1 + own == "radd"  # a subclass on the right is asked first
    assert (plain * own).tolist() == [1.0, 1.0]
    assert (own - plain).tolist() == [0.0, 0.0]


def comparable(value: Any) -> Any:
    if isinstance(value, retrograd.Tensor):
        return type(value), value._special_ if value._special_ is not None else bits(value._numbers_)
    if isinstance(value, (tuple, list)):
        return [comparable(one) for one in value]
    if isinstance(value, (VersionCounter, SavedVariable)):
        return type(value), value.version
    if isinstance(value, np.ndarray):
        return bits(value)
    if isinstance(value, float):
        return repr(value)  # a NaN is a NaN
    return value if isinstance(value, (str, int, complex, np.dtype, type, type(None))) else type(value)


def state_of(node: Any) -> dict[str, Any]:
    """What a node knows, in comparable form; of one that is not of the table, its name and edges."""
    known: dict[str, Any] = {"name": node.name(), "edges": [e and e[0].name() for e in node.next_edges]}
    for cls in type(node).__mro__ if getattr(nodes, type(node).__name__, None) is type(node) else ():
        for slot in getattr(cls, "__slots__", ()):
            value = getattr(node, slot, "not set")
            if slot in ("__weakref__", "next_edges", "sequence_nr"):
                continue
            known[slot] = comparable(value)
    return known


def run_sample(op: Op, sample: Any) -> Any:
    retrograd.manual_seed(0)
    built = sample.build(retrograd, None)
    result = op.call(retrograd, built.args, built.kwargs)
    outputs = result if isinstance(result, (tuple, list)) else [result]
    tensors = [out for out in outputs if isinstance(out, retrograd.Tensor) and out._special_ is None]
    return [
        (bits(out._numbers_), out.requires_grad, out._version, None if out.grad_fn is None else state_of(out.grad_fn))
        for out in tensors
    ]


@pytest.mark.filterwarnings("ignore")
def test_functions_are_those_of_python_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results, history and what is saved of every sample, with the core asked and with the wrappers alone."""
    scope, asked, answered = vars(functions), set(), set()
    operators = {name: f for name, f in scope.items() if name.startswith("core_")}

    def counting(name: str, operator: Any) -> Any:
        def ask(*args: Any) -> Any:
            result = operator(*args)
            asked.add(name)
            if result is not None:
                answered.add(name)
            return result

        return ask

    ops = [op for op in OPS if not op.name.startswith(("linalg", "fft", "special"))]
    samples = [(op, sample) for op in ops for sample in op.samples]
    for name, operator in operators.items():
        monkeypatch.setitem(scope, name, counting(name, operator))
    ours = [run_sample(*pair) for pair in samples]
    for name in operators:
        monkeypatch.setitem(scope, name, lambda *args: None)
    for (op, sample), found in zip(samples, ours, strict=True):
        assert found == run_sample(op, sample), (op.name, sample.name)
    # So that a change to the generator does not leave the core without work.
    assert len(operators) > 150 and len(answered) > 0.9 * len(asked), sorted(asked - answered)
    assert len(asked) > 0.9 * len(operators), sorted(operators.keys() - asked)


def test_functions_stay_the_objects_that_they_are() -> None:
    for function in (retrograd.exp, retrograd.Tensor.exp, retrograd.add, retrograd.nn.functional.relu):
        assert isinstance(function, types.FunctionType)
    assert str(inspect.signature(retrograd.exp)) == "(input, *, out=None)"
    assert pickle.loads(pickle.dumps(retrograd.exp)) is retrograd.exp
    out = retrograd.empty(2)
    assert retrograd.exp(retrograd.zeros(2), out=out) is out and out.tolist() == [1.0, 1.0]
    assert retrograd.add(retrograd.ones(2), retrograd.ones(2), alpha=3).tolist() == [4.0, 4.0]
    assert retrograd.cumsum(retrograd.ones(2), axis=0).tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match=r"missing 1 required positional argument"):
        retrograd.exp()
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        retrograd.mm(retrograd.ones(2, 3), retrograd.ones(2, 3))


OVERRIDING = """
import retrograd
seen = []
tensor = retrograd.Tensor
getitem = tensor.__getitem__  # before anybody overrides anything

class Log(retrograd.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen.append(func)
        return func(*args, **(kwargs or {}))

x = retrograd.ones(2)
with Log():
    retrograd.exp(x).tanh()
assert seen == [retrograd.exp, tensor.tanh], seen
seen.clear()
with Log():
    (x * 2 + x[0] - x**2).sum()
assert seen == [tensor.mul, getitem, tensor.add, tensor.__pow__, tensor.sub, tensor.sum], seen
assert {*seen} <= set(retrograd.overrides.get_overridable_functions()[tensor])
assert retrograd.overrides.resolve_name(getitem) == "torch.Tensor.__getitem__"

class Own(tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        seen.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})

own = x.as_subclass(Own)
seen.clear()
assert type(x * own) is type(own[0]) is type(own.sum()) is Own
assert seen == [tensor.mul, getitem, tensor.sum], seen
assert type(retrograd.exp(own)) is type(own.tanh()) is Own
assert seen[3:] == [retrograd.exp, tensor.tanh], seen
seen.clear()
assert type(x * x) is type(retrograd.exp(x)) is tensor
assert retrograd.exp(retrograd.ones(2, device="meta")).is_meta
assert type(x * x) is tensor and not seen
"""


def test_modes_and_classes_that_override_are_asked() -> None:
    """In a process of its own, since the first of them changes all functions of a process."""
    subprocess.run([sys.executable, "-c", OVERRIDING], env={**os.environ, "RETROGRAD_CORE": "compiled"}, check=True)


# ----------------------------------------------------------------------------------------------- formulas, and the loop


def both_passes(roots: list[Any], leaves: list[Any], cotangents: list[Any], recorded: bool = False) -> list[Any]:
    """The gradients by the Python loop, whose nodes run their Python, and by the compiled one."""
    found = []
    for loop in (run_pass_fast, core.run_pass):
        before, engine_module.run_pass_fast = engine_module.run_pass_fast, loop
        try:
            retrograd.manual_seed(0)
            found.append(retrograd.autograd.grad(roots, leaves, cotangents, True, recorded, allow_unused=True))
        except Exception as error:
            found.append(repr(error))
        finally:
            engine_module.run_pass_fast = before
    return found


def described() -> set[str]:
    from retrograd._generated.compiled_formulas import FORMULAS

    return set(FORMULAS)


DIFFERENTIABLE = [op for op in OPS if op.differentiable and any(t.differentiable for s in op.samples for t in s.specs)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_formulas_are_those_of_python_to_the_last_bit(op: Op) -> None:
    for sample in op.samples:
        built = sample.build(retrograd, None)
        result = op.call(retrograd, built.args, built.kwargs)
        outputs = result if isinstance(result, (tuple, list)) else [result]
        tensors = [out for out in outputs if isinstance(out, retrograd.Tensor) and out._special_ is None]
        roots = [out for out in tensors if out.requires_grad]
        if not roots:
            continue
        rng = np.random.default_rng(0)
        cotangents = [retrograd.tensor(rng.standard_normal(tuple(r.shape))).to(r.dtype) for r in roots]
        python, ours = both_passes(roots, built.leaves, cotangents)
        if isinstance(python, str):  # an operator that says when it is differentiated that it cannot be
            assert ours == python
            continue
        assert [g is None for g in ours] == [g is None for g in python]
        for a, b in zip(python, ours, strict=True):
            if a is not None and a._special_ is None:
                assert bits(a._numbers_) == bits(b._numbers_), sample.name
        python, ours = both_passes(roots, built.leaves, cotangents, recorded=True)
        if isinstance(python, str):
            assert ours == python
            continue
        for a, b in zip(python, ours, strict=True):
            if a is not None and a._special_ is None:
                assert bits(a._numbers_) == bits(b._numbers_), sample.name
                assert graph_below(a) == graph_below(b), sample.name


def graph_below(tensor: Any) -> list[str]:
    """The names of the nodes of a tensor's graph, in the order in which they are found."""
    found = [] if tensor.grad_fn is None else [tensor.grad_fn]
    known = set(found)
    for node in found:  # grows while it is walked
        new = [edge[0] for edge in node.next_edges if edge is not None and edge[0] not in known]
        known.update(new)
        found += dict.fromkeys(new)
    return [node.name() for node in found]


def test_most_nodes_of_the_table_are_described() -> None:
    """So that a change to the generator does not leave the core without work."""
    every = {name for name, cls in vars(nodes).items() if isinstance(cls, type) and issubclass(cls, nodes.Node)}
    assert len(described()) > 250 and described() <= every
    from retrograd._generated.compiled_formulas import FORMULAS

    assert sum(over_tensors is not None for _, over_tensors, _ in FORMULAS.values()) > 250


def test_first_gradients_that_nobody_else_sees_are_kept_and_others_copied() -> None:
    x = retrograd.ones(3, requires_grad=True)
    given = retrograd.ones(3)
    (x * 2).backward(given)
    assert not np.shares_memory(x.grad._numbers_, given._numbers_)
    x.grad = None
    x.backward(given)  # the root is the leaf: the gradient is the caller's
    assert not np.shares_memory(x.grad._numbers_, given._numbers_)
    y, z = retrograd.ones(3, requires_grad=True), retrograd.ones(3, requires_grad=True)
    (y + z).sum().backward()  # one array arrives at both
    assert not np.shares_memory(y.grad._numbers_, z.grad._numbers_)
    seen = []
    x.grad = None
    product = x * 2
    product.register_hook(seen.append)
    product.sum().backward()
    assert not np.shares_memory(x.grad._numbers_, seen[0]._numbers_)


def test_saved_tensors_are_let_go_and_errors_say_where(capsys: pytest.CaptureFixture[str]) -> None:
    x = retrograd.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match=r"(?s)second time.*test_compiled_core\.py"):
        y.backward()
    a = x * 2
    b = a * a
    a.add_(1)
    with pytest.raises(RuntimeError, match=r"(?s)inplace operation.*MulBackward0.*test_compiled_core\.py"):
        b.sum().backward()


def test_a_long_pass_can_be_interrupted() -> None:
    y = x = retrograd.ones(1, requires_grad=True)
    for _ in range(400_000):
        y = y * x

    def stop(*args: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(KeyboardInterrupt):
            y.backward()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert local.state.graph_task is None and local.state.current_node is None and local.state.grad_enabled
    del y


@contextlib.contextmanager
def raised_inside(error: BaseException) -> Any:
    """Python runs handlers of signals where a function begins: `error` is raised in the first that the core calls."""
    places = tuple(os.path.join(os.path.dirname(retrograd.__file__), name) for name in ("kernels", "core", "autograd"))
    before = sys.gettrace()

    def handler(frame: Any, event: str, arg: Any) -> None:
        if frame.f_code.co_filename.startswith(places):
            sys.settrace(before)
            raise error

    sys.settrace(handler)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(), TimeoutError("late"), RuntimeError("late")], ids=repr
)
@pytest.mark.parametrize(
    "operation",
    [
        retrograd.nn.functional.softplus,
        lambda x: x.exp(),
        lambda x: x**3,
        lambda x: x[0],
        lambda x: x[0:1],
        lambda x: x.view(4),
    ],
)
def test_what_handlers_of_signals_raise_is_not_lost(operation: Any, error: BaseException) -> None:
    x = retrograd.ones(2, 2, requires_grad=True)
    with raised_inside(error), pytest.raises(type(error)) as raised:
        operation(x)
    assert raised.value is error
    assert isinstance(operation(x), retrograd.Tensor)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="all objects are counted")
def test_objects_that_are_always_there_are_not_counted() -> None:
    """Python 3.14 takes them for dead when an extension has counted them a billion times."""
    often = [None, True, 0, 1, 2, (), np.ndarray, np.dtype(np.float32)]
    always = [one for one in often if sys.getrefcount(one) > 2**30]  # (which of NumPy's are depends on the versions)
    before = [sys.getrefcount(one) for one in always]
    x = retrograd.ones(3, requires_grad=True)
    for _ in range(100):
        y = (x * x + x[0] - x[0:1]).exp()
        (g,) = retrograd.autograd.grad(y.sum(), x, create_graph=True)
        (g * g).sum().backward()
        with contextlib.suppress(TypeError):
            x * "text"
    assert [sys.getrefcount(one) for one in always] == before


def test_classes_of_functions_are_not_held() -> None:
    known = []
    for _ in range(3):

        class Twice(retrograd.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return grad * 2

        x = retrograd.ones(2, requires_grad=True)
        Twice.apply(x).sum().backward()
        assert x.grad is not None and x.grad.tolist() == [2.0, 2.0]
        known.append(weakref.ref(Twice))
    del Twice
    gc.collect()
    assert [reference() for reference in known] == [None] * 3


_SET_EDGES = """
import sys
import retrograd

def set_edges(frame, event, arg):  # as another thread may
    if frame.f_code.co_name == "topological_nr":
        node.next_edges = tuple([(next_node, number) for next_node, number in node.next_edges])
        list(map(list, ((None, None),) * 1000))

x = retrograd.ones(3, requires_grad=True)
y = x * 2
total = (y * 3 + y * 5).sum()
node = total.grad_fn.next_edges[0][0]
sys.settrace(set_edges)  # (which Python is asked for)
(grad,) = retrograd.autograd.grad(total, y)
sys.settrace(None)
assert grad.tolist() == [8.0] * 3
"""


def test_edges_that_are_set_while_they_are_counted() -> None:
    """(This was a crash.)"""
    subprocess.run([sys.executable, "-c", _SET_EDGES], check=True)


def test_threads_add_to_one_leaf() -> None:
    x = retrograd.zeros(4, requires_grad=True)

    def work() -> None:
        for _ in range(200):
            (x * 2 + x[0] * 0).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad is not None and x.grad.tolist() == [1600.0] * 4


def _declined(x: Any) -> None:
    for attempt in (lambda: x * "text", lambda: x[99], lambda: x + retrograd.ones(7)):
        with contextlib.suppress(TypeError, IndexError, RuntimeError):
            attempt()


def _failing_pass(x: Any) -> None:
    y = (x * x).sum()
    y.backward()
    with contextlib.suppress(RuntimeError):
        y.backward()


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x * x + 2 - x / 3,
        lambda x: -x**2 * 1.5,
        lambda x: (x[0] * x[1]).backward(),
        lambda x: (x * x[0] + x).sum().backward(),
        lambda x: retrograd.autograd.grad((x * x.exp()).sum(), x),
        lambda x: (x.expand(3, 5) * x + x).sum().backward(),
        _declined,
        _failing_pass,
    ],
)
def test_nothing_is_leaked(program: Any) -> None:
    x = retrograd.ones(5, requires_grad=True)

    def many(times: int) -> int:
        for _ in range(times):
            program(x)
            x.grad = None
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        many(50)
        before = many(50)
        assert many(400) - before < 4000  # ten bytes an iteration: no object is as small
    finally:
        tracemalloc.stop()


# --------------------------------------------------------------------------------------------------------- the switches


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ({}, "compiled"),
        ({"RETROGRAD_CORE": "compiled"}, "compiled"),
        ({"RETROGRAD_CORE": "python"}, "Python (RETROGRAD_CORE=python"),
        ({"RETROGRAD_FAST": "0"}, "Python (RETROGRAD_FAST=0"),
        # (it is a part of what is turned off)
        ({"RETROGRAD_FAST": "0", "RETROGRAD_CORE": "compiled"}, "Python (RETROGRAD_FAST=0"),
        ({"RETROGRAD_CORE": "other"}, "ImportError"),
    ],
)
def test_one_variable_of_the_environment_turns_it_off(setting: dict[str, str], expected: str) -> None:
    code = "import retrograd; print(retrograd.__config__.show()); x = retrograd.ones(2) * 2"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RETROGRAD_")} | setting
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in (ran.stdout + ran.stderr).splitlines() if "core" in line.lower() or "ImportError" in line]
    assert any(expected in line for line in lines), ran.stderr


def test_a_core_of_another_version_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "VERSION", compiled.VERSION + 1)
    monkeypatch.delenv("RETROGRAD_CORE", raising=False)
    library, reason = compiled._load()
    assert library is None and "version" in reason
    monkeypatch.setenv("RETROGRAD_CORE", "compiled")
    with pytest.raises(ImportError, match="version"):
        compiled._load()
