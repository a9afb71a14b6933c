"""``autograd.graph``: the Node interface, gradient edges, hooks on several tensors, what is running."""

from __future__ import annotations

import gc
import importlib
import threading
import weakref

import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")


# ------------------------------------------------------------------------------------------------------ nodes and edges


def test_node_is_an_interface(torch):
    Node = torch.autograd.graph.Node
    x = torch.ones(1, requires_grad=True)
    y = x.exp()
    assert isinstance(y.grad_fn, Node) and issubclass(type(y.grad_fn), Node)
    assert Node not in type(y.grad_fn).mro() and callable(Node._sequence_nr)
    assert isinstance(y.grad_fn.next_functions[0][0], Node)
    assert not isinstance(y, Node) and not isinstance(None, Node)
    with pytest.raises(TypeError, match="abstract"):
        Node()


def test_what_a_node_offers(torch):
    x = torch.ones(2, 3, requires_grad=True)
    y = x.exp()
    node = y.grad_fn
    assert node.name() == "ExpBackward0"
    assert node.metadata == {}
    node.metadata["mine"] = 1
    assert node.metadata == {"mine": 1}
    (metadata,) = node._input_metadata
    assert tuple(metadata.shape) == (2, 3) and metadata.dtype == torch.float32
    assert node.requires_grad is True
    number = node._sequence_nr()
    node._set_sequence_nr(number + 5)
    assert node._sequence_nr() == number + 5


def test_gradient_edges_stand_for_tensors(torch):
    edge_of = torch.autograd.graph.get_gradient_edge
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = (y * 3).sum()
    assert torch.autograd.grad(z, edge_of(y), retain_graph=True)[0].tolist() == [3.0, 3.0]
    assert torch.autograd.grad(z, edge_of(x), retain_graph=True)[0].tolist() == [6.0, 6.0]
    assert torch.autograd.grad(edge_of(z), x, retain_graph=True)[0].tolist() == [6.0, 6.0]
    torch.autograd.backward(edge_of(z), inputs=[edge_of(x)], retain_graph=True)
    assert x.grad.tolist() == [6.0, 6.0]
    torch.autograd.backward(z, inputs=[edge_of(y)])  # accumulates nowhere
    assert x.grad.tolist() == [6.0, 6.0]
    with pytest.raises(RuntimeError, match="gradient edge for a Tensor that does not require gradients"):
        edge_of(torch.ones(1))


def test_an_edge_owns_its_graph(torch):
    x = torch.ones(1, requires_grad=True)
    y = x.clone()
    edge = torch.autograd.graph.get_gradient_edge(y)
    del y
    torch.autograd.backward(edge)
    assert x.grad.item() == 1.0


def test_increment_version(torch):
    x, y = torch.ones(2), torch.ones(2)
    torch.autograd.graph.increment_version(x)
    torch.autograd.graph.increment_version([x, y])
    assert (x._version, y._version) == (2, 1)
    with torch.inference_mode():
        torch.autograd.graph.increment_version(torch.ones(1))


@pytest.mark.parametrize("given, phrase", [(3, "expect a Iterable"), ([3], "each element of the iterable")])
def test_increment_version_is_for_tensors(torch, given, phrase):
    with pytest.raises(RuntimeError, match=phrase):
        torch.autograd.graph.increment_version(given)


def test_increment_version_of_something_wrong_changes_nothing():
    x = retrograd.ones(2)
    with pytest.raises(RuntimeError):
        retrograd.autograd.graph.increment_version([x, 3])
    assert x._version == 0


def test_volatile_is_gone(torch):
    with pytest.warns(UserWarning, match="volatile was removed"):
        assert not torch.autograd.Variable(torch.ones(2), volatile=True).requires_grad


def test_increment_version_is_noticed_by_saved_tensors(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = y * y
    torch.autograd.graph.increment_version(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_stream_warning_can_be_switched(torch):
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(True)


def test_variable_is_every_tensor(torch):
    Variable = torch.autograd.Variable
    t = torch.ones(2)
    v = Variable(t, requires_grad=True)
    assert type(v) is torch.Tensor and isinstance(t, Variable)
    assert v.requires_grad and not t.requires_grad and v.data_ptr() == t.data_ptr()
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got int"):
        Variable(3)


# ------------------------------------------------------------------------------------------------------ what is running


def test_current_task_and_node():
    graph = retrograd.autograd.graph
    x = retrograd.ones(1, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append((graph.current_graph_task_id(), graph.current_node())))
    y.backward(retain_graph=True)
    y.backward()
    assert graph.current_graph_task_id() == -1 and graph.current_node() is None
    assert [node for _, node in seen] == [y.grad_fn] * 2
    assert seen[1][0] == seen[0][0] + 1


def test_execution_order():
    x = retrograd.ones(1, requires_grad=True)
    y = x.exp() * x.sin()
    orders = []
    y.register_hook(lambda g: orders.append(retrograd.autograd.graph.current_graph_task_execution_order()))
    with retrograd.autograd.set_multithreading_enabled(False):
        y.backward(retain_graph=True)
    names = [node.name().rsplit("::", 1)[-1] for node in orders[0]]
    assert names == ["MulBackward0", "SinBackward0", "ExpBackward0", "AccumulateGrad"]
    with pytest.raises(RuntimeError, match="multithreading disabled"):
        y.backward()
    with pytest.raises(RuntimeError, match="only be called during the backward pass"):
        retrograd.autograd.graph.current_graph_task_execution_order()


def test_final_callbacks(torch):
    queue = torch.autograd.Variable._execution_engine.queue_callback
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    log = []

    def last():
        log.append("last")

    def callback():
        log.append(("callback", x.grad.item()))
        queue(last)

    y.register_hook(lambda g: queue(callback))
    y.backward()
    assert log == [("callback", 2.0), "last"]
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        queue(last)


def test_final_callbacks_of_a_failing_pass_do_not_run(torch):
    queue = torch.autograd.Variable._execution_engine.queue_callback
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    z = y * 3
    log = []
    z.register_hook(lambda g: queue(lambda: log.append("callback")))

    def hook(grad):
        raise ValueError("no")

    handle = y.register_hook(hook)
    with pytest.raises(ValueError, match="no"):
        z.backward(retain_graph=True)
    assert log == []
    handle.remove()
    z.backward()
    assert log == ["callback"]


def test_an_error_in_a_final_callback_is_raised(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2

    def callback():
        raise ValueError("in the callback")

    y.register_hook(lambda g: torch.autograd.Variable._execution_engine.queue_callback(callback))
    with pytest.raises(ValueError, match="in the callback"):
        y.backward()


# ------------------------------------------------------------------------------------------- hooks on several tensors


def test_all(torch):
    t1, t2, t3 = (torch.ones(2, requires_grad=True) for _ in range(3))
    seen = []
    handle = torch.autograd.graph.register_multi_grad_hook(
        (t1, t2, t3), lambda grads: seen.append([None if g is None else g.tolist() for g in grads])
    )
    out = (t1 * t2 * 3).sum()
    out.backward(retain_graph=True)
    assert seen == [[[3.0, 3.0], [3.0, 3.0], None]]
    out.backward(inputs=[t2], retain_graph=True)
    assert seen[1] == [None, [3.0, 3.0], None]
    out.backward(inputs=[t3], retain_graph=True)
    assert len(seen) == 2
    handle.remove()
    out.backward()
    assert len(seen) == 2


def test_any(torch):
    x = torch.ones(2, requires_grad=True)
    a, b = x * 2, x * 3
    seen = []
    with torch.autograd.graph.register_multi_grad_hook((a, b), lambda g: seen.append(g.tolist()), mode="any"):
        (a + b * 5).sum().backward(retain_graph=True)
    assert seen in ([[1.0, 1.0]], [[5.0, 5.0]])
    (a + b).sum().backward()
    assert len(seen) == 1


def test_the_root_counts_too():
    # Not so in torch 2.13, which calls the hook before the gradient of x is there.
    x = retrograd.ones(1, requires_grad=True)
    y = x * 2
    seen = []
    retrograd.autograd.graph.register_multi_grad_hook((x, y), lambda grads: seen.append([g.item() for g in grads]))
    y.backward()
    assert seen == [[2.0, 1.0]]


def test_multi_grad_hooks_are_checked(torch):
    x = torch.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match=r"Expects mode to be one of \('all', 'any'\) but got some"):
        torch.autograd.graph.register_multi_grad_hook([x], print, mode="some")
    with pytest.raises((RuntimeError, AssertionError)):
        torch.autograd.graph.register_multi_grad_hook([torch.ones(1)], print)


def test_a_failed_pass_leaves_nothing_behind(torch):
    x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    seen = []
    torch.autograd.graph.register_multi_grad_hook((x, y), seen.append)

    def hook(grad):
        raise ValueError("no")

    z = y.clone()
    handle = z.register_hook(hook)
    out = x.clone() * z
    with pytest.raises(ValueError, match="no"):
        out.backward(retain_graph=True)
    handle.remove()
    assert seen == []
    out.backward()
    assert len(seen) == 1


def test_each_thread_has_its_own_count():
    x, y = retrograd.ones(1, requires_grad=True), retrograd.ones(1, requires_grad=True)
    seen = []
    retrograd.autograd.graph.register_multi_grad_hook((x, y), lambda grads: seen.append(len(grads)))
    out = x * y
    threads = [threading.Thread(target=lambda: out.backward(retain_graph=True)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [2] * 8
    assert x.grad.item() == 8.0


def test_multi_grad_hooks_keep_nothing_alive(no_cycles):
    with no_cycles():
        x = retrograd.ones(1, requires_grad=True)
        y = x * 2
        retrograd.autograd.graph.register_multi_grad_hook((x, y), lambda grads: None)
        y.backward()
        reference = weakref.ref(y)
        del x, y
    gc.collect()
    assert reference() is None


# ---------------------------------------------------------------------------------------------------- names that exist


@pytest.mark.parity
@pytest.mark.parametrize("module", ["autograd", "autograd.graph", "autograd.function", "autograd.variable"])
def test_torch_s_public_names_are_there(module):
    theirs = pytest.importorskip(f"torch.{module}")
    ours = importlib.import_module(f"retrograd.{module}")
    assert [name for name in theirs.__all__ if not hasattr(ours, name)] == []


def test_a_memory_budget_needs_a_compiler(torch):
    budget = torch.autograd.graph.region_activation_memory_budget
    with pytest.raises(TypeError, match="expects a float, got str"):
        budget("x")
    with pytest.raises(ValueError, match=r"must be in \[0, 1\], got 2"):
        budget(2)
    with pytest.raises(RuntimeError, match="it has no effect in eager mode"):
        budget(0.5)


def test_stale_capture_streams_can_be_overridden(torch):
    torch.autograd.graph.set_override_stale_capture_stream(True)
    torch.autograd.graph.set_override_stale_capture_stream(False)
