"""What torch's sources call the parts of autograd, callable: edges, nodes, tasks, buffers, tangents, the engine.

What can be said of torch from Python is said of both; the rest follows from what torch's classes promise.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

import retrograd
import retrograd.autograd.forward_ad as fwAD
from retrograd.autograd.anomaly_mode import AnomalyMode
from retrograd.autograd.edge import Edge
from retrograd.autograd.engine import Engine, engine
from retrograd.autograd.graph_task import (
    GraphTaskGuard,
    add_node_to_current_graph_task_exec_info,
    get_current_graph_task,
    get_current_graph_task_exec_info,
    new_task,
)
from retrograd.autograd.input_buffer import InputBuffer
from retrograd.autograd.meta_interface import AutogradMetaInterface, autograd_meta
from retrograd.autograd.node import NodeGuard, TensorNode, init_node
from retrograd.core.state import local

pytestmark = pytest.mark.usefixtures("clean_state")


# -------------------------------------------------------------------------------------------------- beside torch itself


def test_the_engine_runs_backward(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    unused = torch.ones(1, requires_grad=True)
    y = x * x
    run = torch.autograd.Variable._execution_engine.run_backward
    ones = torch.ones(2)
    (grad,) = run((y,), (ones,), True, False, (x,))
    assert grad.tolist() == [2, 4] and x.grad is None
    assert run((y,), (ones,), True, False, (x, unused), allow_unreachable=True)[1] is None
    with pytest.raises(RuntimeError, match="not have been used in the graph"):
        run((y,), (ones,), True, False, (x, unused))
    (grad,) = run((y,), (ones,), True, True, (x,))
    assert grad.requires_grad
    assert run((y,), (ones,), False, False, accumulate_grad=True) is None
    assert x.grad.tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="second time"):
        run((y,), (ones,), False, False, accumulate_grad=True)
    with pytest.raises(RuntimeError, match="tensors argument is expected to be a tuple, but got Tensor"):
        run(y, (ones,), False, False)


def test_names_of_the_extension_module(torch):
    assert isinstance(torch.autograd.Variable._execution_engine, torch._C._ImperativeEngine)
    assert issubclass(torch.Tensor, torch._C.TensorBase) and torch._C._TensorBase is torch._C.TensorBase
    assert isinstance(torch.nn.Parameter(torch.ones(1)), torch._C.TensorBase)
    assert importlib.import_module(f"{torch.__name__}._tensor").Tensor is torch.Tensor


def test_attributes_of_tensors(torch):
    x = torch.ones(2, requires_grad=True)
    assert x._grad is None and x._post_accumulate_grad_hooks is None
    x._grad = torch.ones(2)
    assert x.grad.tolist() == [1, 1] and x._grad is x.grad
    calls = []
    handle = x.register_post_accumulate_grad_hook(lambda t: calls.append(t.grad.tolist()))
    assert len(x._post_accumulate_grad_hooks) == 1
    (x * 2).sum().backward()
    assert calls == [[3, 3]]
    handle.remove()
    assert len(x._post_accumulate_grad_hooks) == 0


# ------------------------------------------------------------------------------------------------------ edges and nodes


def test_edges():
    node = (retrograd.ones(1, requires_grad=True) * 2).grad_fn
    assert Edge() == Edge(None, 0) == (None, 0) and not Edge().is_valid()
    assert Edge(node, 1).is_valid() and Edge(node, 1) == (node, 1) != Edge(node, 0)
    assert Edge(node).input_nr == 0


class Passing(TensorNode):
    """Gives each of its edges what it got first."""

    __slots__ = ()

    def __init__(self, *edges: Any) -> None:
        init_node(self, edges)

    def apply_tensors(self, edges: Any, grads: Any) -> Any:
        return tuple(None if edge is None else grads[0] for edge in edges)


def made_by(node: Any, like: Any) -> Any:
    tensor = like.detach()
    tensor._edge_ = (node, node.add_input_metadata(like))
    return tensor


def test_a_graph_that_is_connected_by_hand():
    x, y = retrograd.ones(2, requires_grad=True), retrograd.ones(2, requires_grad=True)
    node = Passing()
    node.add_next_edge(Edge())
    node.add_next_edge(retrograd.autograd.graph.get_gradient_edge(x))
    result = made_by(node, x)
    assert node.next_functions[0] == (None, 0) and result.output_nr == 0
    assert node.add_input_metadata(y) == 1 and len(node._input_metadata) == 2
    above = (result * 2).exp()  # made before the next line: its number was right then
    long = y
    for _ in range(10):
        long = long * 1
    node.add_next_edge(Edge(long.grad_fn, 0))
    assert node.topological_nr > long.grad_fn.topological_nr
    grads = retrograd.autograd.grad(above.sum(), (x, y), retain_graph=True)
    assert [grad.tolist() for grad in grads] == [pytest.approx([2 * 2.718281828**2] * 2)] * 2
    assert above.grad_fn.topological_nr > node.topological_nr
    node.set_next_edge(2, None)
    assert retrograd.autograd.grad(above.sum(), (x, y), allow_unused=True)[1] is None


def test_what_one_gradient_must_look_like_is_said_once():
    node = (retrograd.ones(1, requires_grad=True) * 2).grad_fn
    with pytest.raises(RuntimeError, match="MulBackward0 takes one gradient"):
        node.add_input_metadata(retrograd.ones(1))


def test_guards():
    node = (retrograd.ones(1, requires_grad=True) * 2).grad_fn
    with NodeGuard(node):
        assert retrograd._C._current_autograd_node() is node
        with NodeGuard(None):
            assert local.state.current_node is None
        assert local.state.current_node is node
    assert local.state.current_node is None
    task = new_task(False, False, 0, None)
    with pytest.raises(ZeroDivisionError), GraphTaskGuard(task):
        assert get_current_graph_task() is task
        1 / 0
    assert get_current_graph_task() is None


# ------------------------------------------------------------------------------------------------------------ the pass


def test_what_a_pass_knows():
    x = retrograd.ones(2, requires_grad=True)
    y, z = x * 2, x * 3
    seen = []
    y.register_hook(lambda grad: seen.append(get_current_graph_task()))
    retrograd.autograd.backward([y.sum(), z.sum()])
    (task,) = seen
    names = sorted(node.name() for node in task.nodes_in_graph)
    assert names == ["MulBackward0"] * 2 + ["SumBackward0"] * 2 + ["torch::autograd::AccumulateGrad"]
    assert [node.name() for node in task.graph_roots] == ["SumBackward0"] * 2
    assert task.leaf_streams == frozenset() and task.captured_vars is None


def test_nodes_that_are_needed():
    x = retrograd.ones(2, requires_grad=True)
    y = x * 2
    z = y.exp()
    seen = []

    def look(grad: Any) -> None:
        exec_info = get_current_graph_task_exec_info()
        seen.append(exec_info[z.grad_fn].should_execute)
        accumulator = y.grad_fn.next_functions[0][0]
        seen.append(accumulator in exec_info)
        add_node_to_current_graph_task_exec_info(accumulator)
        seen.append(exec_info[accumulator].should_execute)

    z.register_hook(look)
    retrograd.autograd.grad(z.sum(), y)
    assert seen == [True, False, True]
    assert get_current_graph_task_exec_info() is None
    with pytest.raises(RuntimeError, match="no pass is running"):
        add_node_to_current_graph_task_exec_info(z.grad_fn)


@pytest.mark.parametrize("as_tensors", [False, True])
def test_buffers(as_tensors: bool):
    def number(value: float) -> Any:
        tensor = retrograd.tensor(value)
        return tensor if as_tensors else tensor._numbers_

    buffer = InputBuffer(2, 3)
    assert buffer.num_inputs == len(buffer) == 2 and buffer.get(0) is None
    first = number(1.0)
    buffer.add(0, first, as_tensors)
    assert buffer[0] is first
    buffer.add(0, number(2.0), as_tensors)
    buffer.add(1, None, as_tensors)
    assert float(buffer[0]) == 3 and float(first) == 1 and buffer.buffer[1] is None
    assert [None if grad is None else float(grad) for grad in buffer.variables()] == [3, None]
    assert buffer.buffer == [None, None]


# ------------------------------------------------------------------------------------------------------------- tensors


def test_tangents_by_number():
    x = retrograd.ones(2)
    with fwAD.dual_level(), fwAD.dual_level():
        dual = fwAD.make_dual(x, retrograd.zeros(2), level=0)
        tangents = dual._grad_meta_.fw_grad
        assert tangents.contains(0) and not tangents.contains(1) and not tangents.contains(2)
        assert tangents.value(0).tolist() == [0, 0] and tangents.value(1) is None
        tangents.set_value(retrograd.ones(2), 1)
        assert fwAD.unpack_dual(dual, level=1).tangent.tolist() == [1, 1]
        tangents.reset(1)
        tangents.reset(7)
        assert fwAD.unpack_dual(dual, level=1).tangent is None and not tangents.empty()
        with pytest.raises(RuntimeError, match="no such dual level"):
            tangents.set_value(retrograd.ones(2), 2)
        tangents.clear()
        assert tangents.empty() and fwAD.unpack_dual(dual, level=0).tangent is None
    tangents.reset(0)


def test_the_interface_of_autograd_s_metadata():
    x = retrograd.ones(2)
    meta = autograd_meta(x)
    assert isinstance(meta, AutogradMetaInterface) and not meta.requires_grad() and meta.grad() is None
    meta.set_requires_grad(True, x)
    (x * 3).sum().backward()
    assert meta.requires_grad() and meta.grad() is meta.mutable_grad() is x.grad
    meta.mutable_grad().mul_(2)
    assert x.grad.tolist() == [6, 6]
    y = retrograd.ones(2)
    of_y = autograd_meta(y)
    assert of_y.fw_grad(0, y) is None
    with pytest.raises(RuntimeError, match="no such dual level"):
        of_y.set_fw_grad(retrograd.ones(2), y, 0, False)
    with fwAD.dual_level():
        of_y.set_fw_grad(retrograd.ones(2), y, 0, False)
        assert of_y.fw_grad(0, y).tolist() == [1, 1]
        assert fwAD.unpack_dual(y * 2).tangent.tolist() == [2, 2]
    with pytest.raises(TypeError):
        AutogradMetaInterface()


def test_the_engine_s_signature_is_torch_s():
    names = list(inspect.signature(Engine.run_backward).parameters)
    assert names == [
        "self", "tensors", "grad_tensors", "keep_graph", "create_graph", "inputs", "allow_unreachable",
        "accumulate_grad",
    ]  # fmt: skip
    assert retrograd.autograd.Variable._execution_engine is engine is Engine.get_default_engine()


def test_the_switch_of_anomaly_mode():
    AnomalyMode.set_enabled(True, False)
    try:
        assert retrograd.is_anomaly_enabled() and AnomalyMode.is_enabled() and not AnomalyMode.should_check_nan()
    finally:
        AnomalyMode.set_enabled(False)
    assert not AnomalyMode.is_enabled() and AnomalyMode.should_check_nan()
