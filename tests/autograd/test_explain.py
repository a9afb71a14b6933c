"""Graphs in words: why there is no gradient, what is held in memory, trees and DOT."""

from __future__ import annotations

import re
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

import retrograd as torch

pytestmark = pytest.mark.usefixtures("clean_state")

why_no_grad = torch.autograd.graph.why_no_grad
saved_memory = torch.autograd.graph.saved_memory


# ---------------------------------------------------------------------------------------------------------- why_no_grad


def test_integers():
    assert "its dtype is torch.int64" in why_no_grad(torch.tensor([1]))


def test_inference_tensors():
    with torch.inference_mode():
        x = torch.ones(2)
    assert "inference_mode()" in why_no_grad(x)


def test_views_taken_under_no_grad():
    x = torch.ones(2)
    with torch.no_grad():
        view = x[:1]
    assert "a view that was taken under no_grad()" in why_no_grad(view)


def test_plain_tensors():
    text = why_no_grad(torch.ones(2) * 2)
    assert "nothing that it was computed from has requires_grad=True" in text and "requires_grad_()" in text


def test_the_line_of_detach():
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        d = (x * 2).detach()  # DETACHED
        loss = (d * 3).sum()
    # What was seen is remembered when the mode is off again.
    text = why_no_grad(loss)
    with pytest.raises(RuntimeError, match=r"does not require grad .* a grad_fn.*detached at .*\.py"):
        loss.backward()
    line = int(re.search(r"test_explain\.py:(\d+)", text).group(1))
    with open(__file__, encoding="utf-8") as file:
        assert "DETACHED" in file.read().split("\n")[line - 1]


def test_the_line_of_no_grad():
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True), torch.no_grad():
        y = x * 2
        assert re.search(r"'mul', called under no_grad\(\) at .*test_explain\.py:\d+", why_no_grad(y))


def test_a_result_that_does_not_retain_its_grad():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    assert "not a leaf but the result of MulBackward0" in why_no_grad(y)
    assert "retain_grad()" in why_no_grad(y)


def test_leaves():
    x = torch.ones(2, requires_grad=True)
    assert "no graph that is alive uses it" in why_no_grad(x)
    y = x * 2
    assert "no backward() has come to it yet" in why_no_grad(x)
    y.sum().backward()
    assert "has a gradient" in why_no_grad(x)


def test_not_reached():
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    loss = (x * 2).sum()
    other = w * 3
    text = why_no_grad(w, loss)
    assert "not reached from what is differentiated" in text and "3 nodes and 1 leaf" in text
    assert other is not None


def test_modified_after_use():
    x = torch.ones(2, requires_grad=True)
    y = x + 1
    loss = (y * 2).sum()
    y += 1
    assert re.search(r"modified in place by add_ at .*test_explain\.py:\d+", why_no_grad(y, loss))


def test_errors_carry_the_explanation():
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"element 0 of tensors does not require grad.*its dtype is torch\.int64"):
        torch.autograd.backward(torch.tensor([1]), torch.tensor([1]))
    with pytest.raises(RuntimeError, match=r"not have been used in the graph.*no graph that is alive uses it"):
        torch.autograd.grad((x * 2).sum(), w)


# --------------------------------------------------------------------------------------------------------- saved_memory


def test_each_storage_is_counted_once():
    x = torch.ones(100, requires_grad=True)
    y = x.exp()  # saves its result
    z = y * y  # saves it twice more
    report = saved_memory(z.sum())
    assert report.total == 400 and report.of_leaves == 0
    assert report.by_operation == {"MulBackward0": 400}


def test_leaves_and_views():
    w = torch.ones(10, 10, requires_grad=True)
    x = torch.ones(10, 10)
    report = saved_memory((w.t() @ x).sum())
    assert report.of_leaves == 0 and report.total == 400  # of w nothing is saved: x does not require grad
    x.requires_grad_()
    report = saved_memory((w.t() @ x).sum())
    assert report.of_leaves == 800 and report.total == 800
    assert "800 B" in str(report)


def test_a_graph_whose_copy_slices_has_run_holds_nothing() -> None:
    """What CopySlices wraps is freed with the pass; asking for the memory of such a graph is no error."""
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    base = x * 1
    base[:2].mul_(torch.tensor([2.0, 3.0]))
    assert saved_memory(base).total == 8
    base.sum().backward()
    assert saved_memory(base).total == 0


def test_freed_graphs_hold_nothing():
    x = torch.ones(100, requires_grad=True)
    y = x.exp().sum()
    assert saved_memory(y).total == 400
    y.backward()
    assert saved_memory(y).total == 0


def test_lines_in_anomaly_mode():
    x = torch.ones(100, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        y = x.exp().sum()
    (line,) = saved_memory(y).by_line
    assert "test_explain.py" in line


def test_saved_by_custom_functions_and_in_place():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = torch.ones(100, requires_grad=True)
    assert saved_memory(Double.apply(x.clone()).sum()).total == 400
    y = x.clone()
    y[:50].mul_(torch.full((50,), 2.0))
    assert saved_memory(y.sum()).total == 200


# --------------------------------------------------------------------------------------------------------- tree and DOT


def test_a_shared_node_is_drawn_once():
    x = torch.ones(2, requires_grad=True)
    h = x * 2
    text = torch.autograd.graph.tree((h + h.exp()).sum(), {"x": x, "h": h})
    assert text.count("MulBackward0 h (2,) [1]") == 1 and text.count("see [1]") == 1 and "leaf x" in text


def test_deep_graphs_are_drawn():
    y = x = torch.ones(1, requires_grad=True)
    for _ in range(20_000):
        y = y + 1
    assert len(torch.autograd.graph.tree(y, max_nodes=10).split("\n")) == 11
    assert torch.autograd.graph.dot(y).count("->") == 20_000
    assert saved_memory(y).total == 0
    assert "reached from" in why_no_grad(x, y)


def test_dot_of_several_outputs():
    x = torch.ones(4, requires_grad=True)
    a, b = x.split(2)
    text = torch.autograd.graph.dot([a.sum(), b.sum()])
    assert text.startswith("digraph {") and text.endswith("}")
    assert '[label="1"]' in text  # which output of the split


def test_edges_and_nodes_may_be_drawn():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    edge = torch.autograd.graph.get_gradient_edge(y)
    assert torch.autograd.graph.tree(edge) == torch.autograd.graph.tree(y) == torch.autograd.graph.tree(y.grad_fn)


# --------------------------------------------------------------------------------------------- without anomaly mode


def line_of(text, mark):
    """Does `text` name the line of this file that ends in the comment `mark`?"""
    line = int(re.search(r"test_explain\.py:(\d+) in ", text).group(1))
    with open(__file__, encoding="utf-8") as file:
        return file.read().split("\n")[line - 1].endswith(f"# {mark}")


def test_a_detached_tensor_knows_its_line():
    x = torch.ones(2, requires_grad=True)
    d = (x * 2).detach()  # FIRST CUT
    other = x.detach()
    for tensor in (d, d[:1]):
        text = why_no_grad(tensor)
        assert "was detached at" in text and line_of(text, "FIRST CUT")
    assert other is not None
    with pytest.raises(RuntimeError, match=r"does not have a grad_fn.*was detached at") as caught:
        d.backward(torch.ones(2))
    assert line_of(str(caught.value), "FIRST CUT")


def test_a_leaf_that_was_only_used_detached():
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    loss = (w.detach() * x).sum()  # LEAF CUT
    text = why_no_grad(w, loss)
    assert "not reached" in text and line_of(text, "LEAF CUT")
    with pytest.raises(RuntimeError, match=r"not have been used in the graph.*was detached at") as caught:
        torch.autograd.grad(loss, w)
    assert line_of(str(caught.value), "LEAF CUT")


def test_detach_in_place_knows_its_line():
    y = torch.ones(2, requires_grad=True) * 2
    y.detach_()  # IN PLACE
    assert line_of(why_no_grad(y), "IN PLACE")


def test_what_comes_after_a_cut_is_told_of_it():
    x = torch.ones(2, requires_grad=True)
    loss = ((x * 2).detach() * 3).sum()  # CUT BEFORE
    with pytest.raises(RuntimeError, match=r"does not have a grad_fn.*last called detach\(\) at") as caught:
        loss.backward()
    assert line_of(str(caught.value), "CUT BEFORE")
    loss = (x.data * 3).sum()  # DATA
    text = why_no_grad(loss)
    assert "last called .data at" in text and line_of(text, "DATA")


@pytest.mark.parametrize("how", ["block", "decorator", "switch"])
def test_the_last_no_grad_is_told(how):
    x = torch.ones(2, requires_grad=True)

    def in_new_thread():
        if how == "block":
            with torch.no_grad():  # OFF
                return (x * 2).sum()
        if how == "decorator":
            return torch.no_grad()(lambda: (x * 2).sum())()  # OFF
        with torch.set_grad_enabled(False):  # OFF
            return (x * 2).sum()

    with ThreadPoolExecutor(1) as pool:  # a thread that has done nothing else
        text = pool.submit(lambda: why_no_grad(in_new_thread())).result()
        assert re.search(r"last called no_grad\(\) at .*test_explain\.py:\d+ in in_new_thread", text)
        assert line_of(text, "OFF")
        assert "detach() at" not in text


def test_cuts_by_this_package_do_not_count():
    def work():
        parameter = torch.nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([parameter], lr=0.1, momentum=0.9)
        (parameter * 2).sum().backward()
        optimizer.step()
        return why_no_grad(torch.ones(2) * 2)

    with ThreadPoolExecutor(1) as pool:
        assert "last called" not in pool.submit(work).result()


def test_a_tensor_that_never_required_grad_was_not_cut():
    x = torch.ones(2)
    x.grad = torch.ones(2)  # it has an AutogradMeta
    x.detach()
    assert "was detached" not in why_no_grad(x)


def test_remembered_cuts_keep_nothing_alive():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    array, node = weakref.ref(y._numbers_), weakref.ref(y.grad_fn)
    d = y.detach()
    del y, d
    assert array() is None and node() is None


def test_differentiated_tensors_that_do_not_require_grad():
    x = torch.ones(2, requires_grad=True)
    d = x.detach()  # NOT WANTED
    for call in (lambda: torch.autograd.grad(x.sum(), d), lambda: x.sum().backward(inputs=[d])):
        with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad") as caught:
            call()
        assert line_of(str(caught.value), "NOT WANTED")
    with pytest.raises(RuntimeError, match=r"does not require grad.*its dtype is torch\.int64"):
        torch.autograd.grad(x.sum(), torch.tensor([1]))


def test_only_tensors_have_gradients():
    with pytest.raises(TypeError, match=r"why_no_grad\(\): argument 'tensor' \(position 1\) must be Tensor, not int"):
        why_no_grad(3)
