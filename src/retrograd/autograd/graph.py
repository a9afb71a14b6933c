"""Looking at graphs and acting on them: what users find in ``torch.autograd.graph``.

Gradient edges as users hold them, hooks on several tensors at once, what is running just now; and, re-exported from
their own files, the hooks on saved tensors (saved_tensors_hooks.py) and explanations of a graph (explain.py).
"""

from __future__ import annotations

import abc
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ..core.state import local
from ..tensor import Tensor
from . import node as _node
from .edge import gradient_edge
from .engine import engine
from .hooks import RemovableHandle
from .inplace import bump_version

if TYPE_CHECKING:
    from ..tensor import Tensor
    from .graph_task import GraphTask

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "current_graph_task_id",
    "current_node",
    "disable_saved_tensors_hooks",
    "dot",
    "get_gradient_edge",
    "increment_version",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_memory",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
    "tree",
    "why_no_grad",
]


class Node(abc.ABC):
    """The interface of every node of a graph, for ``isinstance(y.grad_fn, torch.autograd.graph.Node)``.

    >>> import retrograd as torch
    >>> y = torch.ones(2, requires_grad=True) * 2
    >>> isinstance(y.grad_fn, torch.autograd.graph.Node)
    True
    """

    @abc.abstractmethod
    def name(self) -> str:
        """The name of the operation, such as ``'MulBackward0'``."""

    @property
    @abc.abstractmethod
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """Where the gradients that this node computes go: ``((node, input_nr), ...)``."""

    @property
    @abc.abstractmethod
    def metadata(self) -> dict:
        """A dict for remarks on this node; anomaly mode keeps the forward traceback here."""

    def _sequence_nr(self) -> int:
        """The engine runs nodes with higher numbers first."""
        raise NotImplementedError("a node has a sequence number")

    @property
    @abc.abstractmethod
    def _input_metadata(self) -> list[Any]:
        """Shape, dtype and device of each incoming gradient."""

    @abc.abstractmethod
    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after the node has run; the tuple it returns replaces grad_inputs."""

    @abc.abstractmethod
    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_outputs)`` before the node runs; the tuple it returns replaces grad_outputs."""


Node.register(_node.Node)


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor goes; may stand for the tensor in ``backward()`` and ``grad()``."""

    node: Any
    output_nr: int
    #: Keeps alive what the node alone does not.
    ownership_token: object | None = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The gradient edge of a tensor that requires grad.

    >>> import retrograd as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.autograd.graph.get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    edge = gradient_edge(tensor)
    assert edge is not None
    return GradientEdge(*edge)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a write to `tensor` (or to each of several) that autograd could not see, such as one by another library.

    >>> import retrograd as torch
    >>> x = torch.ones(2)
    >>> torch.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    if isinstance(tensor, Tensor):
        tensor = (tensor,)
    elif not isinstance(tensor, Iterable):
        raise RuntimeError(f"increment_version expect a Iterable[Tensor] as input, but got {type(tensor).__name__}")
    tensors = tuple(tensor)
    for t in tensors:
        if not isinstance(t, Tensor):
            raise RuntimeError(
                f"increment_version expects each element of the iterable to be a tensor, but got {type(t).__name__}"
            )
    for t in tensors:
        bump_version(t)


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Whether to warn when a gradient is accumulated on another stream than the leaf's. The CPU has no streams."""
    engine.warn_on_accumulate_grad_stream_mismatch = enabled


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Whether a pass that is captured replaces streams that are not part of the capture. The CPU has no streams."""
    engine.override_stale_capture_stream = enabled


def region_activation_memory_budget(budget: float) -> NoReturn:
    """What a compiler may save of a region's activations. Nothing is compiled here: use `utils.checkpoint` instead."""
    name = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{name}: expects a float, got {type(budget).__name__}")
    if not 0.0 <= budget <= 1.0:
        raise ValueError(f"{name}: must be in [0, 1], got {budget}")
    raise RuntimeError(
        f"{name} can only be used inside a torch.compile region; it has no effect in eager mode. Use "
        "torch.utils.checkpoint.checkpoint() to recompute a part of the forward pass"
    )


# ------------------------------------------------------------------------------------------------------ what is running


def current_node() -> _node.Node | None:
    """The node that this thread's backward pass is running; None outside of one.

    >>> import retrograd as torch
    >>> y = torch.ones(1, requires_grad=True) * 2
    >>> handle = y.register_hook(lambda grad: print(torch.autograd.graph.current_node().name()))
    >>> y.backward()
    MulBackward0
    """
    return local.state.current_node


def current_graph_task_id() -> int:
    """A number for the backward pass that this thread is running; -1 outside of one."""
    task = local.state.graph_task
    return -1 if task is None else task.id


def will_execute(node: Any) -> bool:
    """Does the backward pass that this thread is running come to `node`?"""
    task = local.state.graph_task
    if not isinstance(node, _node.Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    if task is None:
        raise RuntimeError("get_current_graph_task_exec_info should only be called during the backward pass")
    info = None if task.exec_info is None else task.exec_info.get(node)
    if info is not None and info.captures is not None and not info.needed and not node.next_edges:
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is "
            "currently not supported."
        )
    return task.will_execute(node)


def current_graph_task_execution_order() -> list[Any]:
    """The nodes of the backward pass that this thread is running, in the order in which they run.

    Only a pass that uses no device threads has one order (``set_multithreading_enabled(False)``).
    """
    state = local.state
    if state.graph_task is None:
        raise RuntimeError("_current_graph_task_execution_order should only be called during the backward pass")
    if state.multithreading:
        raise RuntimeError(
            "_current_graph_task_execution_order expects the current backward to be executed with multithreading "
            "disabled, e.g. by running:\n\n>>> with torch.autograd.set_multithreading_enabled(False):\n...     "
            "torch.autograd.grad(...)\n"
        )
    return state.graph_task.execution_order()


# ------------------------------------------------------------------------------------------- hooks on several tensors


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: str = "all"
) -> MultiGradHandle:
    """Call ``fn`` once a backward pass, about several tensors.

    With ``mode="all"`` when the gradients of all those that the pass reaches are there: `fn` gets a list with
    None for the others.  With ``mode="any"`` as soon as the first gradient is there: `fn` gets that one.

    >>> import retrograd as torch
    >>> x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    >>> handle = torch.autograd.graph.register_multi_grad_hook([x, y], lambda grads: print(grads))
    >>> (x * 2 + y * 3).backward()
    [tensor([2.]), tensor([3.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    for position, tensor in enumerate(tensors):
        if not tensor.requires_grad:
            raise RuntimeError(f"cannot register a hook on a tensor that doesn't require gradient (tensor {position})")
    return MultiGradHandle(_All(tensors, fn).hooks() if mode == "all" else _Any(tensors, fn).hooks())


class MultiGradHandle:
    """Removes the hooks of `register_multi_grad_hook`."""

    def __init__(self, handles: list[RemovableHandle]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Take the hook away."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> MultiGradHandle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


class _Any:
    """``mode="any"``. What a pass has seen so far is kept in the pass, so that it dies with it."""

    def __init__(self, tensors: tuple[Tensor, ...], fn: Callable) -> None:
        self.tensors: Any = tensors
        self.fn = fn
        self.lock = threading.Lock()

    def hooks(self) -> list[RemovableHandle]:
        tensors, self.tensors = self.tensors, None  # hooks must not keep alive what they hang on
        return [tensor.register_hook(self._hook(position)) for position, tensor in enumerate(tensors)]

    def _hook(self, position: int) -> Callable[[Any], None]:
        def hook(grad: Any) -> None:
            self.arrived(local.state.graph_task, position, grad)  # type: ignore[arg-type]

        return hook

    def arrived(self, task: GraphTask, position: int, grad: Any) -> None:
        with self.lock:
            first = task.of_hook(self, dict)
            if first:
                return
            first["called"] = True
        self.fn(grad)


class _All(_Any):
    """``mode="all"``."""

    def __init__(self, tensors: tuple[Tensor, ...], fn: Callable) -> None:
        super().__init__(tensors, fn)
        #: What gives the node that a tensor's gradient comes into, if it is still there.
        self.nodes = [_node_of(tensor) for tensor in tensors]

    def arrived(self, task: GraphTask, position: int, grad: Any) -> None:
        with self.lock:
            grads = task.of_hook(self, lambda: _Arrivals(task, [node() for node in self.nodes]))
            grads.grads[position] = grad
            grads.waiting -= 1
            if grads.waiting:
                return
        self.fn(grads.grads)


class _Arrivals:
    """The gradients of one pass, and how many are still to come."""

    def __init__(self, task: GraphTask, nodes: list[Any]) -> None:
        self.grads: list[Any] = [None] * len(nodes)
        self.waiting = sum(node is not None and task.will_execute(node) for node in nodes)


def _node_of(tensor: Tensor) -> Callable[[], Any]:
    node = tensor.grad_fn
    if node is not None:
        return weakref.ref(node)
    reference = weakref.ref(tensor)

    def accumulator() -> Any:
        leaf = reference()
        accumulator = None if leaf is None or leaf._grad_meta_ is None else leaf._grad_meta_.grad_accumulator
        return None if accumulator is None else accumulator()

    return accumulator


from .explain import dot, saved_memory, tree, why_no_grad  # noqa: E402
from .saved_tensors_hooks import (  # noqa: E402 (it needs tensors, which need this module's Node)
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
