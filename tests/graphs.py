"""Graphs as users see them, of any module that speaks torch's names, to be compared between two.

What is seen: the names of the nodes and how they are connected, what each shows as ``_saved_NAME``, and which tensors
went through `saved_tensors_hooks`, in which order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from operator_runs import flat, is_tensor, to_numpy
from samples.spec import Op, Sample

#: The kinds of differences.
NODES, SAVED, PACKED = "nodes", "saved", "packed"


@dataclass
class Graph:
    """What a call has recorded."""

    #: (name, [(number of the next node or None, input_nr)]) from the results on, breadth first.
    nodes: list[tuple[str, list[tuple[int | None, int]]]] = field(default_factory=list)
    #: One dict a node.
    saved: list[dict[str, Any]] = field(default_factory=list)
    metadata: list[list[tuple[tuple[int, ...], str]]] = field(default_factory=list)
    packed: list[np.ndarray] = field(default_factory=list)


def recorded(module: Any, op: Op, sample: Sample, inplace: str | None = None) -> Graph:
    """The graph that a sample leaves, called as a function or (on a copy) as the in-place method of that name."""
    graph = Graph()

    def pack(tensor: Any) -> Any:
        graph.packed.append(to_numpy(tensor).copy())
        return tensor

    built = sample.build(module)
    args = list(built.args)
    if inplace is not None:
        args[0] = args[0].clone()
    module.manual_seed(0)
    with module.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
        if inplace is None:
            result = op.call(module, tuple(args), built.kwargs)
        else:
            result = getattr(args[0], inplace)(*args[1:], **built.kwargs)
    _walk(graph, [out.grad_fn for out in flat(result) if is_tensor(out) and out.grad_fn is not None])
    return graph


def _walk(graph: Graph, roots: list[Any]) -> None:
    numbers: dict[Any, int] = {}
    order: list[Any] = []
    for node in roots:
        if node not in numbers:
            numbers[node] = len(order)
            order.append(node)
    for node in order:  # which grows
        edges: list[tuple[int | None, int]] = []
        for following, input_nr in node.next_functions:
            if following is not None and following not in numbers:
                numbers[following] = len(order)
                order.append(following)
            edges.append((None if following is None else numbers[following], input_nr))
        graph.nodes.append((node.name(), edges))
        names = [name for name in dir(node) if name.startswith("_saved_")]
        graph.saved.append({name: described(getattr(node, name)) for name in names})
        graph.metadata.append([(tuple(m.shape), str(m.dtype).split(".")[-1]) for m in node._input_metadata])


def described(value: Any) -> Any:
    """A saved value, so that it can be compared: of a tensor its shape and dtype."""
    if is_tensor(value):
        return "tensor", tuple(value.shape), str(value.dtype).split(".")[-1]
    if isinstance(value, (tuple, list)):
        return tuple(described(item) for item in value)
    if isinstance(value, int) and not isinstance(value, bool):
        # Torch shows negative integers as if they had no sign: -1 is 18446744073709551615.
        return value - 2**64 if value >= 2**63 else value
    return value if value is None or isinstance(value, (bool, float, complex, str)) else str(value).split(".")[-1]


def differences(mine: Graph, theirs: Graph, excused: dict[str, int]) -> dict[str, str]:
    """How two graphs of one call differ: the kind, and an example.

    A saved attribute may be in `excused` (``"MmBackward0._saved_self_sym_sizes"``), which counts.
    """
    if mine.nodes != theirs.nodes:
        return {NODES: f"{' '.join(n for n, _ in mine.nodes)} for {' '.join(n for n, _ in theirs.nodes)}"}
    found = {}
    if mine.metadata != theirs.metadata:
        found[SAVED] = f"input metadata {mine.metadata} for {theirs.metadata}"
    for (name, _), one, other in zip(mine.nodes, mine.saved, theirs.saved, strict=True):
        for key in one.keys() | other.keys():
            if key in one and key in other and one[key] == other[key]:
                continue
            if f"{name}.{key}" in excused:
                excused[f"{name}.{key}"] += 1
            else:
                found[SAVED] = f"{name}.{key}: {one.get(key, 'nothing')} for {other.get(key, 'nothing')}"
    if not _same_arrays(mine.packed, theirs.packed):
        shapes = [[(a.shape, a.dtype.name) for a in packed] for packed in (mine.packed, theirs.packed)]
        found[PACKED] = f"{shapes[0]} for {shapes[1]}"
    return found


def _same_arrays(mine: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    return len(mine) == len(theirs) and all(
        a.shape == b.shape and a.dtype == b.dtype and np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True)
        for a, b in zip(mine, theirs, strict=True)
    )
