"""The engine: order of execution, selective execution, release of saved tensors, errors, reentrant passes, threads."""

from __future__ import annotations

import threading
import weakref

import numpy as np
import pytest

import retrograd
from retrograd.autograd.node import MultiOutputNode, Node, init_node, set_history
from retrograd.core.state import local
from retrograd.tensor import wrap

pytestmark = pytest.mark.usefixtures("clean_state")


def watch(log, **tensors):
    """Log the names of tensors (leaves too) in the order in which their gradients are complete."""
    for name, tensor in tensors.items():
        tensor.register_hook(lambda grad, name=name: log.append(name))


# ----------------------------------------------------------------------------------------------------------- the order


def test_nodes_made_later_run_first(torch):
    x = torch.ones(1, requires_grad=True)
    a = x * 2
    b = x * 3
    c = x * 4
    total = b + c + a
    log = []
    watch(log, a=a, b=b, c=c)
    total.backward()
    assert log == ["c", "b", "a"]  # a is ready before b + c has run, but that was made later


def test_order_of_a_fan(torch):
    x = torch.ones(1, requires_grad=True)
    branches = [x * n for n in range(6)]
    log = []
    for n, branch in enumerate(branches):
        branch.grad_fn.register_prehook(lambda grads, n=n: log.append(n))
    torch.cat(branches).sum().backward()
    assert log == [5, 4, 3, 2, 1, 0]


def test_leaves_run_as_soon_as_they_are_ready(torch):
    u = torch.ones(1, requires_grad=True)
    v = torch.ones(1, requires_grad=True)
    a = u * 2
    b = v * 3
    log = []
    watch(log, u=u, v=v, a=a, b=b)
    (a + b).backward()
    assert log == ["b", "v", "a", "u"]


def test_a_node_waits_for_all_its_gradients(torch):
    x = torch.ones(1, requires_grad=True)
    early = x * 2
    late = early * 3
    log = []
    watch(log, early=early, late=late)
    (late * 5 + early).backward()
    assert log == ["late", "early"]
    assert x.grad.tolist() == [32.0]


def test_a_late_node_below_an_early_one(torch):
    """Sequence numbers choose among ready nodes only; dependencies come first."""
    x = torch.ones(1, requires_grad=True)
    y = torch.ones(1, requires_grad=True)
    first = x * 2
    second = y * 3
    joined = first + second
    log = []
    watch(log, joined=joined, first=first, second=second)
    joined.sum().backward()
    assert log == ["joined", "second", "first"]


@pytest.mark.parametrize("seed", range(8))
def test_random_graphs_run_every_node_once_and_after_its_users(torch, seed):
    rng = np.random.default_rng(seed)
    leaves = [torch.tensor(float(n + 1), dtype=torch.float64, requires_grad=True) for n in range(3)]
    values, users, log = list(leaves), {}, []
    for _ in range(60):
        i, j = rng.integers(0, len(values), 2)
        result = values[i] + values[j] * 0.5
        index = len(values)
        users.setdefault(i, []).append(index)
        users.setdefault(j, []).append(index)
        result.register_hook(lambda grad, index=index: log.append(index))
        values.append(result)
    torch.autograd.backward(values)
    assert sorted(log) == list(range(3, 63))
    when = {index: position for position, index in enumerate(log)}
    for index, later in users.items():
        if index >= 3:
            assert all(when[user] < when[index] for user in later)


# ------------------------------------------------------------------------------------------------------------- roots


def test_several_outputs(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.autograd.backward([x * 2, (x * 3).sum()], [torch.tensor([1.0, 10.0]), None])
    assert x.grad.tolist() == [5.0, 23.0]


def test_the_same_output_twice(torch):
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    torch.autograd.backward([y, y])
    assert x.grad.item() == 12.0
    (g,) = torch.autograd.grad([z := x**3, z], x, [torch.tensor(1.0), torch.tensor(10.0)])
    assert g.item() == 11 * 27.0


def test_one_output_above_another(torch):
    x = torch.tensor(2.0, requires_grad=True)
    low = x * 3
    high = low * 5
    runs = []
    low.grad_fn.register_prehook(lambda grads: runs.append(grads[0].item()))
    torch.autograd.backward([low, high])
    assert runs == [6.0]
    assert x.grad.item() == 18.0


def test_a_leaf_as_output(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.backward(torch.tensor([3.0, 4.0]))
    assert x.grad.tolist() == [3.0, 4.0]
    y = torch.tensor(1.0, requires_grad=True)
    torch.autograd.backward([y, y, y * 2])
    assert y.grad.item() == 4.0


def test_no_outputs_at_all(torch):
    torch.autograd.backward([], [])
    x = torch.ones(1, requires_grad=True)
    assert torch.autograd.grad([], [x], allow_unused=True) == (None,)


def test_other_outputs_of_a_node_as_roots(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    first, second = x.unbind(0)
    torch.autograd.backward([second, first], [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])])
    assert x.grad.tolist() == [[3.0, 4.0], [1.0, 2.0]]


# -------------------------------------------------------------------------------------------------- undefined gradients


@pytest.mark.parametrize("used", [[0], [2], [0, 2], [1], []])
def test_partly_used_outputs_of_unbind(torch, used):
    x = torch.arange(6.0).view(3, 2).requires_grad_()
    rows = x.unbind(0)
    total = torch.zeros(2, requires_grad=True) * 1
    for row in used:
        total = total + rows[row]
    total.sum().backward()
    if used:
        assert x.grad.tolist() == [[1.0, 1.0] if n in used else [0.0, 0.0] for n in range(3)]
    else:
        assert x.grad is None


def test_max_with_indices(torch):
    x = torch.tensor([[1.0, 5.0], [7.0, 2.0]], requires_grad=True)
    values, indices = x.max(1)
    assert not indices.requires_grad and indices.grad_fn is None
    assert values.grad_fn is not None and values.output_nr == 0
    (values * torch.tensor([10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [[0.0, 10.0], [100.0, 0.0]]


def test_a_hook_on_an_unused_output_gets_none(torch):
    x = torch.ones(2, 2, requires_grad=True)
    used, unused = x.unbind(0)
    seen = []
    unused.register_hook(seen.append)
    used.sum().backward()
    assert seen == [None]


class GivesNothing(Node):
    """A node whose input has no gradient."""

    __slots__ = ("runs",)

    def __init__(self, tensor):
        init_node(self, (retrograd.autograd.edge.gradient_edge(tensor),))
        self.shape, self.dtype, self.array_class = tensor._numbers_.shape, tensor._numbers_.dtype, np.ndarray
        self.runs = []

    def apply(self, edges, grads):
        self.runs.append(grads[0])
        return (None,)

    apply_tensors = apply


def through(node, array):
    result = wrap(array)
    result._edge_ = (node, 0)
    return result


@pytest.mark.parametrize("create_graph", [False, True])
def test_none_travels_to_the_leaves(create_graph):
    x = retrograd.ones(2, requires_grad=True)
    middle = x * 2
    y = through(GivesNothing(middle), np.ones(2, dtype=np.float32))
    runs = []
    middle.grad_fn.register_prehook(lambda grads: runs.append(grads))
    y.backward(retrograd.ones(2), create_graph=create_graph, retain_graph=True)
    assert runs == [(None,)]  # the node runs, on nothing
    assert x.grad is None
    assert retrograd.autograd.grad(y, x, retrograd.ones(2), allow_unused=True, retain_graph=True) == (None,)
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        retrograd.autograd.grad(y, x, retrograd.ones(2))


def test_none_and_something_make_something():
    x = retrograd.ones(2, requires_grad=True)
    middle = x * 2
    y = through(GivesNothing(middle), np.ones(2, dtype=np.float32))
    retrograd.autograd.backward([y, middle * 3, y], [retrograd.ones(2)] * 3)
    assert x.grad.tolist() == [6.0, 6.0]


# ------------------------------------------------------------------------------------------------- selective execution


def network(torch):
    """x -> a -> b; w -> c; d = b + c."""
    x = torch.tensor([2.0], requires_grad=True)
    w = torch.tensor([5.0], requires_grad=True)
    a = x * 3
    b = a.exp()
    c = w * 7
    d = b * c
    log = []
    for name, tensor in {"a": a, "b": b, "c": c, "d": d}.items():
        tensor.grad_fn.register_prehook(lambda grads, name=name: log.append(name))
    return x, w, a, b, c, d, log


@pytest.mark.parametrize(
    ("wanted", "ran"), [("x", "dba"), ("w", "dc"), ("a", "db"), ("b", "d"), ("c", "d"), ("d", ""), ("xw", "dcba")]
)
def test_grad_runs_only_what_leads_to_its_inputs(torch, wanted, ran):
    x, w, a, b, c, d, log = network(torch)
    tensors = {"x": x, "w": w, "a": a, "b": b, "c": c, "d": d}
    torch.autograd.grad(d, [tensors[name] for name in wanted])
    assert "".join(log) == ran
    assert x.grad is None and w.grad is None


@pytest.mark.parametrize(("wanted", "ran"), [("x", "dba"), ("w", "dc"), ("xw", "dcba")])
def test_backward_with_inputs_accumulates_only_there(torch, wanted, ran):
    x, w, *_, d, log = network(torch)
    d.backward(inputs=[{"x": x, "w": w}[name] for name in wanted])
    assert "".join(log) == ran
    assert (x.grad is not None) == ("x" in wanted)
    assert (w.grad is not None) == ("w" in wanted)


def test_backward_with_a_non_leaf_input(torch):
    x, w, _, b, c, d, log = network(torch)
    d.backward(inputs=[c])
    assert "".join(log) == "dc"  # torch runs the node of the input itself too
    assert c.retains_grad
    assert c.grad.item() == b.item()
    assert x.grad is None and w.grad is None


def test_leaf_and_non_leaf_inputs_together(torch):
    x, _, a, b, c, d, log = network(torch)
    ga, gx = torch.autograd.grad(d, [a, x])
    assert ga.item() == (b * c).item()
    assert gx.item() == (b * c * 3).item()
    assert "".join(log) == "dba"


def test_the_same_input_twice(torch):
    x = torch.tensor(3.0, requires_grad=True)
    first, second = torch.autograd.grad(x * x, [x, x])
    assert first.item() == second.item() == 6.0


def test_the_output_as_its_own_input(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    (g,) = torch.autograd.grad(y, y, torch.tensor([3.0, 4.0]))
    assert g.tolist() == [3.0, 4.0]
    y.backward(torch.ones(2))  # nothing was run, so nothing was freed
    (g,) = torch.autograd.grad(x, x, torch.tensor([3.0, 4.0]))
    assert g.tolist() == [3.0, 4.0]


def test_an_input_that_is_not_there(torch):
    x = torch.ones(2, requires_grad=True)
    other = torch.ones(2, requires_grad=True)
    unrelated = other * 2
    y = (x * 3).exp()
    assert torch.autograd.grad(y.sum(), other, allow_unused=True) == (None,)
    assert torch.autograd.grad(y.sum(), unrelated, allow_unused=True) == (None,)
    got, missing = torch.autograd.grad(y.sum(), [x, unrelated], allow_unused=True)
    assert got is not None and missing is None
    with pytest.raises(RuntimeError, match="at index 1 appears to not have been used in the graph"):
        torch.autograd.grad((x * 3).sum(), [x, other])
    (x * 3).sum().backward(inputs=[other])
    assert other.grad is None and x.grad is None


def test_what_was_pruned_keeps_its_saved_tensors(torch):
    x, w, _, b, _, d, _ = network(torch)
    torch.autograd.grad(d, w)
    b.backward()  # exp was not run, and so not freed
    assert x.grad is not None


def test_a_captured_tensor_that_is_also_passed_through(torch):
    """What is captured comes before the tensor's own hooks if the node runs too, as in torch."""
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: grad * 10)
    gx, gy = torch.autograd.grad(y * 3, [x, y])
    assert gx.item() == 60.0
    assert gy.item() == 3.0
    (gy,) = torch.autograd.grad((y * 3).sum(), [y])
    assert gy.item() == 30.0


def test_gradients_of_both_outputs_of_one_node(torch):
    x = torch.ones(2, 3, requires_grad=True)
    first, second = x.unbind(0)
    g2, g1 = torch.autograd.grad((first * 2 + second * 3).sum(), [second, first])
    assert g1.tolist() == [2.0] * 3 and g2.tolist() == [3.0] * 3


# ---------------------------------------------------------------------------------------------------------- validation


class Wrong(Node):
    """A node that gives whatever it is told to."""

    __slots__ = ("gives",)

    def __init__(self, tensor, gives):
        init_node(self, (retrograd.autograd.edge.gradient_edge(tensor),))
        self.gives = gives
        self.shape, self.dtype, self.array_class = (), np.dtype(np.float32), np.ndarray

    def apply(self, edges, grads):
        return (self.gives,)

    def apply_tensors(self, edges, grads):
        return (wrap(self.gives),)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize(
    ("shape", "given", "expected"),
    [
        ((2,), np.ones((3, 2)), [3.0, 3.0]),
        ((2,), np.ones((1, 2)), [1.0, 1.0]),
        ((), np.ones((2, 3)), 6.0),
        ((1,), np.ones((4,)), [4.0]),
        ((2, 1), np.ones((5, 2, 3)), [[15.0], [15.0]]),
    ],
)
def test_broadcast_gradients_are_summed(shape, given, expected, leaf, create_graph):
    x = retrograd.zeros(shape, dtype=retrograd.float64, requires_grad=True)
    target = x if leaf else x * 1
    y = through(Wrong(target, given), np.array(0.0, dtype=np.float32))
    y.backward(create_graph=create_graph)
    assert x.grad.tolist() == expected
    assert x.grad.dtype is retrograd.float64


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    ("dtype", "given"),
    [("float64", np.float32), ("float32", np.float64), ("float16", np.float64), ("complex64", np.float64)],
)
def test_gradients_are_cast(dtype, given, create_graph):
    x = retrograd.zeros(2, dtype=getattr(retrograd, dtype), requires_grad=True)
    y = through(Wrong(x, np.array([1, 2], dtype=given)), np.array(0.0, dtype=np.float32))
    y.backward(create_graph=create_graph)
    assert x.grad.dtype is getattr(retrograd, dtype)
    assert x.grad.tolist() == [1, 2]


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_complex_gradient_of_a_real_input_loses_its_imaginary_part(create_graph):
    x = retrograd.zeros(2, requires_grad=True)
    y = through(Wrong(x, np.array([1 + 5j, 2 - 5j])), np.array(0.0, dtype=np.float32))
    y.backward(create_graph=create_graph)
    assert x.grad.tolist() == [1.0, 2.0]
    assert x.grad.dtype is retrograd.float32


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (1,), ()])
def test_an_invalid_gradient_names_node_index_and_shapes(shape, create_graph):
    x = retrograd.zeros(2, requires_grad=True)
    y = through(Wrong(x, np.ones(shape, dtype=np.float32)), np.array(0.0, dtype=np.float32))
    with pytest.raises(RuntimeError) as error:
        y.backward(create_graph=create_graph)
    assert (
        f"Function Wrong returned an invalid gradient at index 0 - got {list(shape)} but expected shape compatible "
        "with [2]"
    ) in str(error.value)
    assert x.grad is None


@pytest.mark.parity
def test_an_invalid_gradient_as_torch_says_it():
    torch = pytest.importorskip("torch")

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, grad):
            return torch.ones(3)

    with pytest.raises(RuntimeError) as error:
        Wrong.apply(torch.zeros(2, requires_grad=True)).backward()
    assert str(error.value) == (
        "Function WrongBackward returned an invalid gradient at index 0 - got [3] but expected shape compatible "
        "with [2]"
    )


def test_mixed_dtypes_in_one_graph(torch):
    x = torch.ones(2, dtype=torch.float32, requires_grad=True)
    w = torch.ones(2, dtype=torch.float64, requires_grad=True)
    (x * w).sum().backward()
    assert x.grad.dtype is torch.float32 and w.grad.dtype is torch.float64


# --------------------------------------------------------------------------------------------- saved tensors, released


def test_saved_tensors_die_while_the_pass_runs():
    x = retrograd.ones(2, requires_grad=True)
    first = x * 2
    second = first.sin()  # saves `first`
    third = second.exp()  # saves `third`
    alive = {"first": weakref.ref(first._numbers_), "third": weakref.ref(third._numbers_)}
    seen = []
    second.register_hook(lambda grad: seen.append(("second", {k: r() is not None for k, r in alive.items()})))
    x.register_hook(lambda grad: seen.append(("x", {k: r() is not None for k, r in alive.items()})))
    total = third.sum()
    del first, second, third
    total.backward()
    assert seen == [("second", {"first": True, "third": False}), ("x", {"first": False, "third": False})]


def test_retained_tensors_stay():
    x = retrograd.ones(2, requires_grad=True)
    first = x * 2
    reference = weakref.ref(first._numbers_)
    total = first.sin().sum()
    del first
    total.backward(retain_graph=True)
    assert reference() is not None
    total.backward()
    assert reference() is None


def test_a_second_backward_is_refused(torch):
    x = torch.ones(2, requires_grad=True)
    y = x.exp().sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    assert x.grad.tolist() == pytest.approx([2.7182817, 2.7182817])


def test_the_second_backward_names_node_and_first_call():
    x = retrograd.ones(2, requires_grad=True)
    y = x.exp().sum()
    y.backward()  # the line that the error names
    line = test_the_second_backward_names_node_and_first_call.__code__.co_firstlineno + 3
    with pytest.raises(RuntimeError) as error:
        y.backward()
    text = str(error.value)
    assert "ExpBackward0" in text
    assert f"{__file__}:{line}" in text
    assert "retain_graph=True" in text


def test_nodes_that_save_nothing_can_run_again(torch):
    x = torch.ones(2, requires_grad=True)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_retain_graph_as_often_as_one_likes(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x**3
    for _ in range(3):
        y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 48.0
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_create_graph_retains_unless_told_otherwise(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x**3
    torch.autograd.grad(y, x, create_graph=True)
    torch.autograd.grad(y, x, create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(y, x)


# -------------------------------------------------------------------------------------------------------------- errors


class Oops(Exception):
    pass


@pytest.mark.parametrize("error", [Oops, KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("where", ["tensor hook", "prehook", "posthook", "leaf hook"])
def test_an_error_leaves_everything_clean(torch, where, create_graph, error):
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2, requires_grad=True)
    w.grad = torch.tensor([7.0, 7.0])
    a = w * 2  # made first: would run last
    b = x * 3
    total = (a + b).sum()

    def raises(*args):
        raise error("no")

    if where == "tensor hook":
        handle = b.register_hook(raises)
    elif where == "prehook":
        handle = b.grad_fn.register_prehook(raises)
    elif where == "posthook":
        handle = b.grad_fn.register_hook(raises)
    else:
        handle = x.register_hook(raises)
    with pytest.raises(error, match="no"):
        total.backward(retain_graph=True, create_graph=create_graph)
    assert torch.is_grad_enabled()
    assert x.grad is None
    assert w.grad.tolist() == [7.0, 7.0] and w.grad._version == 0
    if torch is retrograd:
        assert local.state.graph_task is None and local.state.current_node is None
    handle.remove()
    total.backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert w.grad.tolist() == [9.0, 9.0]


def test_an_error_under_no_grad_leaves_no_grad(torch):
    x = torch.ones(2, requires_grad=True)
    y = (x * 2).sum()
    y.register_hook(lambda grad: 1 / 0)
    with torch.no_grad():
        with pytest.raises(ZeroDivisionError):
            y.backward()
        assert not torch.is_grad_enabled()


def test_the_mode_inside_a_pass(torch):
    x = torch.ones((), requires_grad=True)
    y = x * 2
    modes = []
    y.register_hook(lambda grad: modes.append(torch.is_grad_enabled()))
    y.backward(retain_graph=True)
    with torch.no_grad():
        y.backward(create_graph=True)
        assert not torch.is_grad_enabled()
    assert modes == [False, True]
    assert torch.is_grad_enabled()


def test_an_error_of_a_node_does_not_free_what_it_did_not_run(torch):
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    z = y * 2
    handle = y.register_hook(lambda grad: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        z.sum().backward()
    handle.remove()
    y.sum().backward()  # exp was not run
    assert x.grad is not None


# ---------------------------------------------------------------------------------------------------- reentrant passes


def test_backward_inside_a_hook(torch):
    x = torch.tensor(2.0, requires_grad=True)
    w = torch.tensor(3.0, requires_grad=True)
    y = x * 5

    def inner(grad):
        with torch.enable_grad():
            (w * w).backward()
        return grad * w.grad

    y.register_hook(inner)
    y.backward()
    assert w.grad.item() == 6.0
    assert x.grad.item() == 30.0


def test_the_inner_pass_may_reach_the_same_leaf(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 5

    def inner(grad):
        with torch.enable_grad():
            (x * 100).backward()

    y.register_hook(inner)
    y.backward()
    assert x.grad.item() == 105.0


def test_grad_inside_a_hook(torch):
    x = torch.tensor(2.0, requires_grad=True)
    seen = []

    def inner(grad):
        with torch.enable_grad():
            z = torch.tensor(3.0, requires_grad=True)
            seen.append(torch.autograd.grad(z * z, z)[0].item())
        assert not torch.is_grad_enabled()

    y = x * 5
    y.register_hook(inner)
    y.backward()
    assert seen == [6.0] and x.grad.item() == 5.0


def test_passes_inside_passes_inside_passes(torch):
    depths = []

    def nest(depth):
        x = torch.tensor(1.0, requires_grad=True)
        y = x * 2

        def hook(grad):
            if torch is retrograd:
                depths.append(local.state.graph_task.reentrant_depth)
            if depth:
                with torch.enable_grad():
                    nest(depth - 1)

        y.register_hook(hook)
        y.backward()
        assert x.grad.item() == 2.0

    nest(20)
    if torch is retrograd:
        assert depths == list(range(21))


def test_an_error_in_the_inner_pass(torch):
    x = torch.tensor(1.0, requires_grad=True)
    y = x * 2

    def hook(grad):
        with torch.enable_grad():
            z = torch.tensor(1.0, requires_grad=True)
            product = z * 3
            product.register_hook(lambda grad: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                product.backward()
            assert torch.is_grad_enabled()
        return grad * 10

    y.register_hook(hook)
    y.backward()
    assert x.grad.item() == 20.0


def test_current_node_is_back_after_an_inner_pass():
    x = retrograd.tensor(1.0, requires_grad=True)
    y = x * 2
    inner = retrograd.tensor(1.0, requires_grad=True) * 3
    nodes = []

    def hook(grads):
        inner.backward()
        nodes.append(local.state.current_node)

    y.grad_fn.register_prehook(hook)
    y.backward()
    assert nodes == [y.grad_fn]


# -------------------------------------------------------------------------------------------------------------- threads


def run_in_threads(function, number=8):
    errors = []

    def run(n):
        try:
            function(n)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_independent_graphs_in_many_threads(torch):
    results = {}

    def work(n):
        x = torch.tensor(float(n), dtype=torch.float64, requires_grad=True)
        for _ in range(20):
            y = x
            for _ in range(30):
                y = y * 1.01 + x
            y.backward()
        results[n] = x.grad.item()

    run_in_threads(work)
    assert len(set(results.values())) == 1 and len(results) == 8


def test_one_leaf_in_many_threads(torch):
    x = torch.zeros(3, dtype=torch.float64, requires_grad=True)

    def work(n):
        for _ in range(50):
            (x * 2).sum().backward()

    run_in_threads(work)
    assert x.grad.tolist() == [800.0] * 3


def test_one_graph_in_many_threads(torch):
    x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    y = x
    for _ in range(50):
        y = (y + 1).sin() + y
    y = y.sum()
    y.backward(retain_graph=True)
    expected = x.grad.clone() * 9
    run_in_threads(lambda n: y.backward(retain_graph=True))
    assert x.grad.tolist() == pytest.approx(expected.tolist())


def test_sequence_numbers_belong_to_a_thread():
    x = retrograd.ones(1, requires_grad=True)
    before = (x * 2).grad_fn._sequence_nr()
    numbers = {}

    def work(n):
        numbers[n] = [(x * 2).grad_fn._sequence_nr() for _ in range(5)]

    run_in_threads(work, 3)
    assert all(n == [0, 1, 2, 3, 4] for n in numbers.values())
    assert (x * 2).grad_fn._sequence_nr() == before + 1


def test_modes_of_another_thread_do_not_matter(torch):
    x = torch.ones(1, requires_grad=True)
    seen = []
    with torch.no_grad():
        run_in_threads(lambda n: seen.append((x * 2).requires_grad), 2)
    assert seen == [True, True]


# ------------------------------------------------------------------------------------------------------- multi-output


class Split(MultiOutputNode):
    """Two outputs, by hand."""

    __slots__ = ("got",)

    def __init__(self, tensor):
        init_node(self, (retrograd.autograd.edge.gradient_edge(tensor),))
        self.got = []

    def apply(self, edges, grads):
        self.got.append(list(grads))
        return (sum(g for g in grads if g is not None),)


def test_a_node_with_several_outputs_gets_none_for_those_not_used():
    x = retrograd.zeros(2, requires_grad=True)
    node = Split(x)
    outputs = [wrap(np.zeros(2, dtype=np.float32)) for _ in range(3)]
    for output in outputs:
        set_history(output, node)
    assert [o.output_nr for o in outputs] == [0, 1, 2]
    (outputs[0] * 2 + outputs[2] * 3).sum().backward()
    (got,) = node.got
    assert [None if g is None else g.tolist() for g in got] == [[2.0, 2.0], None, [3.0, 3.0]]
    assert x.grad.tolist() == [5.0, 5.0]
    outputs[1].backward(retrograd.ones(2))
    assert [None if g is None else g.tolist() for g in node.got[1]] == [None, [1.0, 1.0], None]
