"""Graphs in words: why there is no gradient, what a graph holds in memory, and what it looks like.

All of it is read off the graph when somebody asks, so that nothing is paid before.  Nodes do not know the line of the
user's code that made them, unless the forward pass ran in anomaly mode: then the lines are shown.  Where histories were
cut, a thread remembers for a while (cuts.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.cuts import cuts_of, last_no_grad
from ..core.state import ThreadState, local
from ..core.version_counter import INFERENCE
from ..core.where import Location
from ..tensor import Tensor
from .accumulate_grad import AccumulateGrad
from .anomaly_mode import how_it_was_made
from .copy_slices import CopySlices
from .edge import gradient_edge
from .function_ctx import BackwardCFunction
from .node import name_of
from .saved_variable import Freed, SavedVariable
from .view_meta import CreationMeta

if TYPE_CHECKING:
    from .graph import GradientEdge
    from .node import Node


# ------------------------------------------------------------------------------------------------------ walking a graph


def _roots(outputs: Any) -> list[Node]:
    """The nodes that `outputs` (a tensor, edge or node, or several) start from."""
    if isinstance(outputs, Tensor) or not isinstance(outputs, (tuple, list)) or hasattr(outputs, "output_nr"):
        outputs = (outputs,)
    nodes = []
    for output in outputs:
        if isinstance(output, Tensor):
            edge = gradient_edge(output)
            if edge is not None:
                nodes.append(edge[0])
        else:
            nodes.append(getattr(output, "node", output))
    return nodes


def walk(outputs: Any) -> Iterator[Node]:
    """Every node of a graph once, those near the outputs first."""
    queue = list(dict.fromkeys(_roots(outputs)))
    seen = set(queue)
    for node in queue:  # grows while it is walked
        yield node
        for edge in node.next_edges:
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                queue.append(edge[0])


def user_line(node: Node) -> str | None:
    """The line of the user's code that made a node, if anomaly mode has remembered it."""
    stack = None if node.extras is None else node.extras.metadata.get("traceback_")
    locations = getattr(stack, "locations", None)
    return str(locations[-1]) if locations else None


# ---------------------------------------------------------------------------------------------------- why there is none


def why_no_grad(tensor: Tensor, outputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge] | None = None) -> str:
    """Say in words why ``tensor.grad`` is None, or why ``tensor.requires_grad`` is False.

    With `outputs`, what was (or would be) differentiated, it also says whether the tensor is reached from there.

    >>> import retrograd as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> loss = (torch.ones(2) * 3).sum()
    >>> print(torch.autograd.graph.why_no_grad(w, loss))
    The tensor is a leaf that requires grad, but it is not reached from what is differentiated, which has no graph.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"why_no_grad(): argument 'tensor' (position 1) must be Tensor, not {type(tensor).__name__}")
    return f"The tensor {_reason(tensor, outputs)}"


def _reason(tensor: Tensor, outputs: Any) -> str:
    if not tensor.requires_grad:
        return _why_not_required(tensor)
    meta: Any = tensor._grad_meta_
    if meta is not None and meta.grad is not None:
        return "has a gradient."
    node = tensor.grad_fn
    if node is None and tensor._is_view() and not meta.requires_grad:
        return (
            "is a view of a tensor that requires grad, but was made under no_grad() or inference_mode(), so that there "
            "is no way from it to its base. Take the view outside."
        )
    if node is None:
        what = "is a leaf that requires grad"
    elif tensor.retains_grad:
        what = f"is the result of {_describe(node)} and retains its grad"
    else:
        what = f"is not a leaf but the result of {_describe(node)}"
        if outputs is None:
            return (
                f"{what}: only leaves get a .grad. Call retain_grad() on it before backward(), or ask for its gradient "
                "by autograd.grad(loss, tensor)."
            )
    if outputs is not None:
        return f"{what}, but {_why_not_reached(tensor, outputs)}"
    if node is None and _accumulator(tensor) is None:
        return (
            f"{what}, but no graph that is alive uses it: nothing has been computed from it with grad mode on, or the "
            "results are gone."
        )
    return (
        f"{what}, and a graph uses it, but no backward() has come to it yet: it was not called on a result of this "
        "tensor, or called with inputs= that leave it out, or its gradient was set to None since."
    )


def _why_not_required(tensor: Tensor) -> str:
    if tensor._memory_.dtype.kind not in "fcVW":
        return (
            f"does not require grad: its dtype is {tensor.dtype}, and only floating point and complex tensors have "
            "gradients."
        )
    if tensor._vc_ is INFERENCE:
        return "does not require grad: it was made in inference_mode(), where nothing is recorded."
    meta: Any = tensor._grad_meta_
    if meta is not None and meta.is_view and meta.creation_meta is CreationMeta.NO_GRAD_MODE:
        return "does not require grad: it is a view that was taken under no_grad()."
    state = local.state
    made = how_it_was_made(state, tensor)
    if made is not None:
        return f"does not require grad: {made}"
    cut = _cut_of(state, tensor)
    if cut is not None:
        return f"does not require grad: it (or what it is a view of) was detached at {cut}."
    return (
        "does not require grad: nothing that it was computed from has requires_grad=True, or it was computed under "
        "no_grad(), or it comes from detach(), .data or NumPy. Write x.requires_grad_() before computing with x."
        f"{_last_cuts(state)}"
    )


def _cut_of(state: ThreadState, tensor: Tensor) -> Location | None:
    """Where the tensor, or one that shares its memory, was detached."""
    vc = tensor._vc_
    if vc is None or vc is INFERENCE:
        return None
    return next((where for _, cut, where in cuts_of(state) if cut is vc), None)


def _last_cuts(state: ThreadState) -> str:
    """Where this thread has last cut a history: not known to be what happened to a given tensor, but likely."""
    places = [f"{how} at {where}" for how, _, where in itertools.islice(cuts_of(state), 1)]
    no_grad = last_no_grad(state)
    if no_grad is not None:
        places.append(f"no_grad() at {no_grad}")
    if not places:
        return ""
    return (
        f" This thread last called {' and '.join(places)}; whether that is the reason, a forward pass under "
        "autograd.detect_anomaly() tells."
    )


def _accumulator(tensor: Tensor) -> Any:
    meta: Any = tensor._grad_meta_
    reference = None if meta is None else meta.grad_accumulator
    return None if reference is None else reference()


def _why_not_reached(tensor: Tensor, outputs: Any) -> str:
    nodes = set(walk(outputs))
    if not nodes:
        return "it is not reached from what is differentiated, which has no graph."
    node = tensor.grad_fn or _accumulator(tensor)
    if node in nodes:
        return (
            "it is reached from what is differentiated: its gradient is undefined (None), as below a function that "
            "returns None for it."
        )
    cut = _cut_of(local.state, tensor)
    if cut is not None:
        return f"it is not reached from what is differentiated: it was detached at {cut}."
    if node is None:
        return (
            "it is not reached from what is differentiated: no graph that is alive uses it."
            f"{_last_cuts(local.state)}"
        )
    if tensor._version and any(edge is not None and edge[0] in nodes for edge in node.next_edges):
        by = "" if tensor._vc_ is None else tensor._vc_.last_write
        return (
            f"it was modified in place{by}: what is differentiated was computed from its former value, not from "
            "this one."
        )
    leaves = sum(isinstance(n, AccumulateGrad) for n in nodes)
    return (
        "it is not reached from what is differentiated: that graph has "
        f"{_count(len(nodes), 'node')} and {_count(leaves, 'leaf', 'leaves')}, and this tensor is not among them. It "
        "was not used, or only through detach(), .data, NumPy or under no_grad()."
        f"{_last_cuts(local.state)}"
    )


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _describe(node: Node) -> str:
    line = user_line(node)
    return name_of(node) + (f" ({line})" if line else "")


# ----------------------------------------------------------------------------------------------------------- its memory


class SavedMemory:
    """What a graph holds in memory: `total` bytes, `by_operation`, `by_line`, each storage counted once.

    `of_leaves` of these bytes are the leaves' own values, which are there in any case.
    """

    def __init__(self, total: int, of_leaves: int, by_operation: dict[str, int], by_line: dict[str, int]) -> None:
        self.total = total
        self.of_leaves = of_leaves
        self.by_operation = by_operation
        self.by_line = by_line

    def __str__(self) -> str:
        lines = [f"{_bytes(self.total)} saved for backward, {_bytes(self.of_leaves)} of it the values of leaves"]
        for title, table in (("by operation", self.by_operation), ("by line", self.by_line)):
            if table:
                lines.append(f"{title}:")
                lines.extend(f"  {_bytes(size):>10}  {name}" for name, size in table.items())
        return "\n".join(lines)

    __repr__ = __str__


def saved_memory(outputs: Any) -> SavedMemory:
    """The bytes that the graph of `outputs` keeps alive, by operation and (in anomaly mode) by line.

    A storage that several nodes have saved is counted once, for the one that comes first on the way from the outputs.

    >>> import retrograd as torch
    >>> x = torch.ones(100, requires_grad=True)
    >>> print(torch.autograd.graph.saved_memory((x.exp() * x).sum()))
    800 B saved for backward, 400 B of it the values of leaves
    by operation:
           800 B  MulBackward0
    """
    seen: set[int] = set()
    by_operation: dict[str, int] = {}
    by_line: dict[str, int] = {}
    nodes = list(walk(outputs))
    leaves = {id(_storage(node.variable._memory_)) for node in nodes if isinstance(node, AccumulateGrad)}
    of_leaves = 0
    for node in nodes:
        for array in _saved_arrays(node):
            storage = _storage(array)
            if id(storage) in seen:
                continue
            seen.add(id(storage))
            size = storage.nbytes
            of_leaves += size if id(storage) in leaves else 0
            by_operation[name_of(node)] = by_operation.get(name_of(node), 0) + size
            line = user_line(node)
            if line is not None:
                by_line[line] = by_line.get(line, 0) + size
    return SavedMemory(sum(by_operation.values()), of_leaves, _largest_first(by_operation), _largest_first(by_line))


def _saved_arrays(node: Any) -> Iterator[Any]:
    """The arrays that a node has saved, without unpacking anything."""
    if isinstance(node, CopySlices) and not isinstance(node.fn, Freed):
        yield from _saved_arrays(node.fn)
    values = [getattr(node, name + "_", None) for name in type(node).saved_tensors_names]
    if isinstance(node, BackwardCFunction) and isinstance(node._saved_variables, tuple):
        values.extend(node._saved_variables)
    yield from _arrays_in(values)


def _arrays_in(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, SavedVariable):
            value = value.data
        if isinstance(value, Tensor):
            yield value._memory_
        elif isinstance(value, (tuple, list)):
            yield from _arrays_in(value)
        elif value is not None and not isinstance(value, Freed) and hasattr(value, "nbytes") and hasattr(value, "base"):
            yield value


def _storage(array: Any) -> Any:
    """The array that owns the memory of `array`."""
    while getattr(array.base, "nbytes", None) is not None and hasattr(array.base, "base"):
        array = array.base
    return array


def _largest_first(sizes: dict[str, int]) -> dict[str, int]:
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def _bytes(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


# --------------------------------------------------------------------------------------------------- what it looks like


def tree(outputs: Any, names: Mapping[str, Tensor] | None = None, max_nodes: int = 1000) -> str:
    """The graph as a text tree, from the outputs to the leaves; `names` are for tensors that you want to recognise.

    A node that several others lead to is drawn once, with a number, and referred to after that.

    >>> import retrograd as torch
    >>> x = torch.ones(2, 3, requires_grad=True)
    >>> h = x * 2
    >>> print(torch.autograd.graph.tree((h + h.exp()).sum(), {"x": x}))
    SumBackward0 ()
    └─ AddBackward0 (2, 3)
       ├─ MulBackward0 (2, 3) [1]
       │  └─ leaf x (2, 3)
       └─ ExpBackward0 (2, 3)
          └─ see [1]
    """
    labels = _labels(names)
    parents: dict[Node, int] = {}
    for node in walk(outputs):
        for edge in node.next_edges:
            if edge is not None:
                parents[edge[0]] = parents.get(edge[0], 0) + 1
    numbers: dict[Node, int] = {}
    drawn: set[Node] = set()
    lines: list[str] = []
    # (node, what stands before its line, what stands before the lines below it): a stack, since graphs are deep.
    stack = [(node, "", "") for node in reversed(_roots(outputs))]
    while stack:
        if len(lines) == max_nodes:
            lines.append(f"... and more: {max_nodes} lines are drawn, see max_nodes")
            break
        node, before, below = stack.pop()
        if node in drawn and node in numbers:
            lines.append(f"{before}see [{numbers[node]}]")
            continue
        label = before + _label(node, labels)
        if parents.get(node, 0) > 1 and not isinstance(node, AccumulateGrad):
            numbers[node] = len(numbers) + 1
            label += f" [{numbers[node]}]"
        drawn.add(node)
        lines.append(label)
        children = [edge[0] for edge in node.next_edges if edge is not None]
        for position in range(len(children) - 1, -1, -1):
            last = position == len(children) - 1
            stack.append((children[position], below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")))
    return "\n".join(lines)


def dot(outputs: Any, names: Mapping[str, Tensor] | None = None) -> str:
    """The graph in the DOT language, for Graphviz: ``dot -Tsvg``.

    >>> import retrograd as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> print(torch.autograd.graph.dot(x.exp(), {"x": x}))
    digraph {
      node [shape=box];
      0 [label="ExpBackward0 (2,)"];
      1 [label="leaf x (2,)", style=filled, fillcolor=lightblue];
      0 -> 1;
    }
    """
    labels = _labels(names)
    nodes = {node: number for number, node in enumerate(walk(outputs))}
    lines = ["digraph {", "  node [shape=box];"]
    for node, number in nodes.items():
        style = ", style=filled, fillcolor=lightblue" if isinstance(node, AccumulateGrad) else ""
        label = _label(node, labels).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  {number} [label="{label}"{style}];')
    for node, number in nodes.items():
        for edge in node.next_edges:
            if edge is not None:
                output = f' [label="{edge[1]}"]' if len(edge[0].input_metadata) > 1 else ""
                lines.append(f"  {number} -> {nodes[edge[0]]}{output};")
    return "\n".join([*lines, "}"])


def _labels(names: Mapping[str, Tensor] | None) -> dict[Any, str]:
    """node -> the name of the tensor whose gradient it takes."""
    labels: dict[Any, str] = {}
    for name, tensor in (names or {}).items():
        node = tensor.grad_fn or _accumulator(tensor)
        if node is not None:
            labels[node] = name
    return labels


def _label(node: Node, labels: dict[Any, str]) -> str:
    if isinstance(node, AccumulateGrad):
        label = f"leaf {labels[node]}" if node in labels else "leaf"
    else:
        label = name_of(node) + (f" {labels[node]}" if node in labels else "")
    try:
        shapes = " ".join(str(tuple(metadata[0])) for metadata in node.input_metadata)
    except (AttributeError, AssertionError):  # made by hand, without outputs
        shapes = ""
    return f"{label} {shapes}".rstrip()
