"""Node: one operation of the backward graph.

A node is made when an operator runs on something that requires grad.  It knows where the gradients of its inputs go
(`next_edges`), what its own incoming gradients must look like (`input_metadata`, one entry per output of the forward
operation), and holds what its formula needs.  The engine calls it in one of two namespaces:

* `apply(edges, grads)` on bare arrays: the ordinary backward pass;
* `apply_tensors(edges, grads)` on Tensors: when the backward pass is itself recorded (``create_graph=True``).

`edges` are the node's next edges, with None where no gradient is wanted; `grads` may hold None for
an undefined gradient.  Both return one gradient (or None) an edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.devices import device_of_array_class
from ..core.dtypes import from_numpy_dtype
from ..core.locks import graph_lock
from ..core.size import Size
from ..core.state import local, process
from ..tensor.special import bare, boxed
from .hooks import NodeHooks, RemovableHandle
from .input_metadata import _InputMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.state import ThreadState
    from ..tensor import Tensor
    from .edge import EdgeTuple
    from .saved_variable import Freed

#: (shape, NumPy dtype, array class): what a gradient must have to be accepted by a node.
InputMetadata = tuple[tuple[int, ...], Any, type[Any]]


class Node:
    """Base of all backward operations.

    >>> import retrograd
    >>> x = retrograd.ones(2, requires_grad=True)
    >>> y = x * 3
    >>> y.grad_fn.name(), y.grad_fn.next_functions[0][0].name()
    ('MulBackward0', 'torch::autograd::AccumulateGrad')
    """

    __slots__ = (
        "__weakref__", "_topological_nr", "array_class", "dtype", "extras", "next_edges", "sequence_nr", "shape",
    )  # fmt: skip

    next_edges: tuple[EdgeTuple | None, ...]
    #: Nodes made later by a thread have higher numbers; the engine runs them first.
    sequence_nr: int
    #: See `topological_nr`; not there until somebody asks.
    _topological_nr: int
    #: What the incoming gradient must look like: that of the one output of the forward operation
    #: (array_class is None if there are several: see `MultiOutputNode`).
    shape: tuple[int, ...] | None
    dtype: Any
    array_class: type[Any] | None
    #: How many gradients come in: one per output of the forward operation (more than one: see `MultiOutputNode`).
    num_inputs: int = 1
    #: Hooks, user metadata and anomaly information: None for nearly every node.
    extras: NodeHooks | None

    if TYPE_CHECKING:
        # What a node has saved depends on its class: ``y.grad_fn._saved_exponent``.
        def __getattr__(self, name: str) -> Any: ...

    #: Names of the tensors that the class saves, in order; set by the generator.
    saved_tensors_names: tuple[str, ...] = ()
    #: Those of them that are results of the operation, and the gradient of which they get.
    saved_outputs: dict[str, int] = {}
    #: May a gradient of no dimensions be one of NumPy's scalars? Set by the generator; see fast_loop.py.
    takes_scalars: bool = False

    # ---------------------------------------------------------------------------------------------------- running

    def apply(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients of the inputs, from bare arrays to bare arrays."""
        raise NotImplementedError("a node defines apply")

    def apply_tensors(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients of the inputs, from Tensors to Tensors."""
        raise NotImplementedError("a node defines apply_tensors")

    def release_variables(self, freed: Freed) -> None:
        """Let go of saved tensors; `freed` remembers which backward call did it."""

    def __call__(self, *grads: Tensor | None) -> Any:
        """Run this node alone on Tensors, as ``y.grad_fn(g)`` does in torch."""
        expected = len(self.input_metadata)
        if len(grads) != expected:
            raise TypeError(f"expected {expected} arguments, got {len(grads)} instead (by {name_of(self)})")
        for position, grad in enumerate(grads):
            if grad is not None and not hasattr(grad, "_memory_"):
                raise TypeError(f"argument {position} is not a Variable")
        outputs = self.apply_tensors(self.next_edges, grads)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    # ----------------------------------------------------------------------------------------------------- looking

    def name(self) -> str:
        """The name of the operation, such as ``'MulBackward0'``."""
        return type(self).__name__

    @property
    def input_metadata(self) -> tuple[InputMetadata, ...]:
        """(shape, dtype, array class) of each incoming gradient."""
        assert self.shape is not None and self.array_class is not None
        return ((self.shape, self.dtype, self.array_class),)

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The next edges as torch shows them: ``((node, input_nr), ...)``, ``(None, 0)`` for a missing one."""
        return tuple((None, 0) if edge is None or edge[0].is_sink else edge for edge in self.next_edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for the user's own remarks on this node; anomaly mode has its ``traceback_`` and ``parent_`` there."""
        metadata = self.materialize_extras().metadata
        traceback: Any = metadata.get("traceback_")
        if hasattr(traceback, "lines"):  # made into text now that somebody looks
            metadata["traceback_"] = traceback.lines
        return metadata

    #: Is this a dead end (see edge.py)?
    is_sink = False

    #: As torch has it: a node is part of a graph because something requires grad.
    requires_grad = True

    @property
    def topological_nr(self) -> int:
        """Higher than that of every node that can be reached from here; 0 if it leads nowhere.

        Counted when it is first asked for: few passes do, and every operator would pay for it.
        """
        if not hasattr(self, "_topological_nr"):
            number(self)
        return self._topological_nr

    def _sequence_nr(self) -> int:
        return self.sequence_nr

    def _set_sequence_nr(self, sequence_nr: int) -> None:
        """Have the engine run this node earlier (a higher number) or later than others that are ready."""
        self.sequence_nr = sequence_nr

    @property
    def _input_metadata(self) -> list[Any]:
        shown = {} if self.extras is None else self.extras.shown
        return [
            shown.get(i) or _InputMetadata(Size(shape), from_numpy_dtype(np_dtype), device_of_array_class(cls))
            for i, (shape, np_dtype, cls) in enumerate(self.input_metadata)
        ]

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Of `copy` and `pickle`: a node is one place in one graph, which a copy would not be part of."""
        raise TypeError(
            f"cannot pickle '{type(self).__name__}' object: a node of the graph cannot be copied or pickled. Copy the "
            "tensors that you need (x.detach().clone()), and compute the rest again"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"

    # ------------------------------------------------------------------------------------------- connecting, by hand

    def add_next_edge(self, edge: EdgeTuple | None) -> None:
        """One more place for the gradients that this node gives; ``None`` or ``Edge()`` is one that leads nowhere.

        >>> import retrograd as torch
        >>> x = torch.ones(1, requires_grad=True)
        >>> first, second = (x * 2).grad_fn, (x * 3).exp().grad_fn
        >>> assert first is not None and second is not None
        >>> first.add_next_edge((second, 0))
        >>> first.topological_nr > second.topological_nr
        True
        """
        self.next_edges = (*self.next_edges, None)
        self.set_next_edge(len(self.next_edges) - 1, edge)

    def set_next_edge(self, index: int, edge: EdgeTuple | None) -> None:
        """Lead the gradient number `index` elsewhere."""
        edges = list(self.next_edges)
        edges[index] = None
        if edge is not None and edge[0] is not None:
            edges[index] = (edge[0], edge[1])
            self.update_topological_nr(edge)
        self.next_edges = tuple(edges)

    def update_topological_nr(self, edge: EdgeTuple) -> None:
        """Have a number above that of the node at `edge`.

        What leads to this node may then have too low a number: who relies on the numbers of a graph that was changed
        has them counted anew (`number`).
        """
        if hasattr(self, "_topological_nr") and self._topological_nr <= edge[0].topological_nr:
            self._topological_nr = edge[0].topological_nr + 1
            connected_by_hand.append(True)

    def add_input_metadata(self, tensor: Tensor) -> int:
        """One more incoming gradient, which must look like `tensor`; its number."""
        data = tensor._memory_
        if isinstance(self, MultiOutputNode):
            self.metadata_of_inputs += ((data.shape, data.dtype, data.__class__),)
            self.num_inputs += 1
            return self.num_inputs - 1
        if getattr(self, "array_class", None) is not None:
            raise RuntimeError(f"{name_of(self)} takes one gradient, and knows already what it must look like")
        self.shape, self.dtype, self.array_class = data.shape, data.dtype, data.__class__
        return 0

    # ------------------------------------------------------------------------------------------------------- hooks

    def materialize_extras(self) -> NodeHooks:
        """Its hooks and metadata, made now if there were none."""
        extras = self.extras
        if extras is None:
            with graph_lock:
                extras = self.extras
                if extras is None:
                    extras = self.extras = NodeHooks()
        return extras

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` after this node has run; what it returns replaces grad_inputs."""
        state = local.state
        if self.extras is None and state.current_node is self and state.graph_task is not None:
            state.late_hooks = True
        return self.materialize_extras().add("post_hooks", hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` before this node runs; what it returns replaces grad_outputs."""
        return self.materialize_extras().add("pre_hooks", hook)

    def _register_hook_dict(self, tensor: Tensor) -> None:
        """Call the hooks in ``tensor._backward_hooks`` on the gradient of `tensor`, a result of this node."""
        hooks = getattr(tensor, "_backward_hooks", None)
        if not hasattr(tensor, "_memory_"):
            raise TypeError("_register_hook_dict expected a Tensor")
        if not isinstance(hooks, dict):
            raise RuntimeError("_register_hook_dict(): the tensor has no dict of hooks: set its _backward_hooks first")
        self.materialize_extras().tensor_hooks.append((tensor.output_nr, hooks))  # type: ignore[arg-type]


class MultiOutputNode(Node):
    """A node whose forward operation has several outputs, so that several gradients come in."""

    __slots__ = ("metadata_of_inputs", "num_inputs")

    #: One shape, dtype and class would not do: the engine looks at `metadata_of_inputs`. (It asks for this attribute
    #: rather than for `shape`, which custom functions may use for their own: ``ctx.shape = x.shape``.)
    array_class: type[Any] | None = None  # type: ignore[misc]
    metadata_of_inputs: tuple[InputMetadata, ...]
    num_inputs: int

    @property
    def input_metadata(self) -> tuple[InputMetadata, ...]:
        return self.metadata_of_inputs


class NodeGuard:
    """A node is running on this thread, for as long as the block runs: what it makes is made by that node."""

    __slots__ = ("before", "node")

    def __init__(self, node: Node | None) -> None:
        self.node: Node | None = node
        self.before: Node | None = None

    def __enter__(self) -> None:
        state = local.state
        self.before, state.current_node = state.current_node, self.node

    def __exit__(self, *exc_info: object) -> None:
        local.state.current_node = self.before


class TensorNode(MultiOutputNode):
    """A node whose formula exists for Tensors only (custom functions, delayed errors): arrays are boxed for it."""

    __slots__ = ()

    def apply(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        outputs = self.apply_tensors(edges, [None if g is None else boxed(g) for g in grads])
        return tuple(None if g is None else bare(g) for g in outputs)


#: Not empty once `Node.update_topological_nr` has changed a number.
connected_by_hand: list[bool] = []


def number(root: Node, anew: bool = False) -> None:
    """Give every node below `root` that has none (`anew`: every one) a number above those of all that it leads to."""
    stack = [root]
    done: set[Node] = set()
    while stack:
        node = stack[-1]
        below = [edge[0] for edge in node.next_edges if edge is not None]
        waiting = [one for one in below if one not in done and (anew or not hasattr(one, "_topological_nr"))]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        done.add(node)
        node._topological_nr = 1 + max([one._topological_nr for one in below], default=0) if node.next_edges else 0


def name_of(node: Node) -> str:
    """A node's name, even if it is a custom function's ctx that the user has put a ``name`` on."""
    return type(node).name(node)


def tell_modes(state: ThreadState, node: Node) -> None:
    """A node was made outside of the operators that modes observe: anomaly mode wants to know."""
    for mode in process.modes:
        remember = getattr(mode, "remember_forward", None)
        if remember is not None:
            remember(state, node)


def init_node(node: Node, next_edges: tuple[EdgeTuple | None, ...]) -> None:
    """Number a node and connect it: what generated wrappers do inline, for nodes made elsewhere."""
    state = local.state
    node.next_edges = next_edges
    node.sequence_nr = state.sequence_nr
    state.sequence_nr += 1
    node.extras = None
    if process.modes:
        tell_modes(state, node)
    if isinstance(node, MultiOutputNode):
        node.shape = None
        node.metadata_of_inputs = ()
        node.num_inputs = 0


def set_history(tensor: Tensor, node: MultiOutputNode) -> None:
    """Make `tensor` the next output of `node`: record its metadata and set its gradient edge."""
    data = tensor._memory_
    output_nr = node.num_inputs
    node.metadata_of_inputs += ((data.shape, data.dtype, data.__class__),)
    node.num_inputs = output_nr + 1
    tensor._edge_ = (node, output_nr)
