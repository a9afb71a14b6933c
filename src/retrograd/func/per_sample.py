"""Per-sample gradients of an ordinary graph: ``autograd.grad(losses, params, is_outputs_batched=True)``.

Note [Per-sample gradients]
A model is called with a batch of samples, as always, and gives a loss for each.  Its graph holds the batch: every node
between the samples and the losses has saved tensors with a dimension that counts them.  A pass over a batch of *one*
sample would meet the same nodes with that dimension of size 1.  So each node is read anew (`_Reader`): what it has
saved with the batch becomes a batched tensor (Note [Batched tensors]) of samples of size 1, sizes are corrected, and
its formula runs as it is.  The gradient of a parameter, which has no such dimension, comes out with one for each
sample.

Where samples lie is known of the losses, and followed down the graph (sample_places.py).  That can be wrong, for a
function that mixes samples (batch normalization) or a constant one of whose sizes happens to be theirs.  So the sum of
what is found is held against the gradient of the sum, which one ordinary pass gives; where it is another, or a node
cannot be read so, each loss is differentiated by itself, all in one batched pass, which costs as many times more as
there are samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from .. import _generated
from ..autograd.edge import gradient_edge
from ..autograd.grad_mode import no_grad
from ..autograd.run_backward import grad as autograd_grad
from ..autograd.saved_variable import SavedVariable, freed_by, unpack_tensor
from ..core.records import OperatorRecord, records
from ..core.where import user_call
from ..tensor import Tensor
from ..tensor import wrap as plain
from .batched import Level, batching, move, spread, wrap
from .sample_places import Place, of_one, place_of


class _Unreadable(Exception):
    """A node that there is no reading of for one sample."""


@cache
def _records_by_node() -> dict[str, OperatorRecord]:
    return {node: record for record in records().values() if not record.writes for node in record.nodes}


class _Held(SavedVariable):
    """Stands in a node's slot for a saved output."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def unpack(self, node: Any, name: str) -> Any:  # type: ignore[override]
        return self.tensor


def per_sample_gradients(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], given: Sequence[Tensor | None], keep_graph: bool
) -> list[Tensor | None]:
    """For each of `inputs`, the gradient of each sample's outputs, along a new first dimension."""
    sizes = {output._memory_.shape[:1] for output in outputs}
    if len(sizes) != 1 or () in sizes:
        raise RuntimeError(
            "is_outputs_batched=True needs outputs that all have a first dimension of the same size, one element (or "
            "row) "
            f"for each sample, but they have the shapes {[list(o.shape) for o in outputs]}"
        )
    ((size,),) = sizes
    weights = [_weight(output, weight, i) for i, (output, weight) in enumerate(zip(outputs, given, strict=True))]
    try:
        with no_grad(), batching(size) as level:
            found = _Reading(size, level, inputs).run(outputs, weights)
    except Exception:  # whatever the reason: the other way is always right
        found = None
    together = autograd_grad(outputs, inputs, weights, True, allow_unused=True)
    scale = max([float(np.abs(whole._numbers_).max(initial=0)) for whole in together if whole is not None], default=0.0)
    if found is None or not all(_adds_up(mine, whole, scale) for mine, whole in zip(found, together, strict=True)):
        found = _one_by_one(outputs, inputs, weights, size)
    if not keep_graph:
        _release(outputs)
    return found


def _release(outputs: Sequence[Tensor]) -> None:
    """Let go of what the nodes have saved, as after any backward pass."""
    freed = freed_by(user_call())
    seen: set[Any] = set()
    nodes = [edge[0] for edge in map(_edge, outputs) if edge is not None]
    while nodes:
        node = nodes.pop()
        if node not in seen:
            seen.add(node)
            node.release_variables(freed)
            nodes += [edge[0] for edge in node.next_edges if edge is not None]


def _weight(output: Tensor, weight: Tensor | None, position: int) -> Tensor:
    if weight is None:
        if output._memory_.ndim != 1:
            raise RuntimeError(
                f"grad can be implicitly created only for one number per sample; output {position} has the shape "
                f"{list(output.shape)}: reduce it over all dimensions but the first, or pass grad_outputs"
            )
        return output.detach().new_ones(output.shape)
    if weight._memory_.shape != output._memory_.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{position}] has a shape of {weight.shape} and output[{position}] has a "
            "shape "
            f"of {output.shape}."
        )
    return weight


def _adds_up(found: Tensor | None, whole: Tensor | None, scale: float) -> bool:
    """Is the sum of per-sample gradients the gradient of the sum?

    `scale`: how large gradients are at all. One that is nothing but rounding, such as that of the bias of attention's
    keys, is measured by it.
    """
    if found is None or whole is None:
        return found is None and whole is None
    each, total = found._numbers_, whole._numbers_
    if each.shape[1:] != total.shape:
        return False
    precision = 1e-9 if total.dtype in (np.float64, np.complex128) else 1e-4 if total.dtype.itemsize >= 4 else 2e-2
    bound = np.abs(each).sum(0).max(initial=0) * precision + scale * precision / 100
    return bool((np.abs(each.sum(0) - total) <= bound + 1e-30).all())


def _one_by_one(outputs: Sequence[Tensor], inputs: Any, weights: list[Tensor], size: int) -> list[Tensor | None]:
    """Each sample's outputs alone, in one pass over a batch of them."""
    rows = []
    for output, weight in zip(outputs, weights, strict=True):
        chosen = weight.new_zeros((size, *output.shape))
        chosen[np.arange(size), np.arange(size)] = weight
        rows.append(chosen)
    return list(autograd_grad(outputs, inputs, rows, True, allow_unused=True, is_grads_batched=True))


class _Reading:
    """One backward pass in which every tensor that holds the batch is read as many of one sample."""

    def __init__(self, size: int, level: Level, inputs: Sequence[Tensor]) -> None:
        self.size = size
        self.level = level
        self.wanted: list[Any] = [_edge(tensor) for tensor in inputs]
        #: (Node, which of its outputs) -> where samples lie in it; None: it is the same for all.
        self.places: dict[Any, Place | None] = {}
        #: Nodes from which one leads to what is wanted.
        self.needed: set[Any] = set()

    def run(self, outputs: Sequence[Tensor], weights: list[Tensor]) -> list[Tensor | None]:
        roots = [_edge(output) for output in outputs]
        self._look([root[0] for root in roots if root is not None])
        grads: dict[Any, list[Any]] = {}
        for root, weight in zip(roots, weights, strict=True):
            if root is not None:
                self._add(grads, root, self._samples(weight, Place(0)), Place(0))
        found: dict[Any, Any] = {}
        while grads:
            node = max(grads, key=lambda one: one.topological_nr)
            arrived = grads.pop(node)
            for edge in self.wanted:
                if edge is not None and edge[0] is node:
                    found[edge] = arrived[edge[1]]
            if node not in self.needed or not node.next_edges:
                continue
            edges = tuple([e if e is not None and self._leads(e[0]) else None for e in node.next_edges])
            if not any(edges):
                continue
            reader = self._reader(node)
            for i, (edge, grad) in enumerate(
                zip(edges, reader.one_sample().apply_tensors(edges, arrived), strict=True)
            ):
                if edge is not None and grad is not None:
                    place = reader.place(reader.name_of(i), edge[0].input_metadata[edge[1]][0])
                    self._add(grads, edge, self._fitted(grad, edge, place), place)
        result: list[Tensor | None] = []
        for edge in self.wanted:
            grad = found.get(edge)
            result.append(None if grad is None else spread(grad, self.level))
        return result

    def _leads(self, node: Any) -> bool:
        return node in self.needed or any(edge is not None and edge[0] is node for edge in self.wanted)

    def _add(self, grads: dict[Any, list[Any]], edge: Any, grad: Tensor, place: Place | None) -> None:
        node, position = edge
        if self.places.setdefault(edge, place) != place:
            raise _Unreadable(f"samples lie in two ways in a result of {type(node).__name__}")
        slots = grads.setdefault(node, [None] * len(node.input_metadata))
        slots[position] = grad if slots[position] is None else slots[position] + grad

    def _fitted(self, grad: Tensor, edge: Any, place: Place | None) -> Tensor:
        """A gradient as the next node expects it, of one sample."""
        node, position = edge
        shape, dtype, _ = node.input_metadata[position]
        if place is not None:
            shape = of_one(shape, place, self.size)
        if grad._memory_.shape != shape:
            grad = grad.sum_to_size(shape)
        if dtype is not None and grad._memory_.dtype != dtype:
            grad = grad.real if grad._memory_.dtype.kind == "c" and dtype.kind != "c" else grad
            grad = grad.to(dtype)
        return grad

    def _samples(self, tensor: Tensor, place: Place) -> Tensor:
        """A tensor that holds the batch, as samples."""
        shape, (dim, outer) = tensor._memory_.shape, place
        one = of_one(shape, place, self.size)
        apart = tensor.detach().reshape(*shape[:dim], outer, self.size, one[dim] // outer, *shape[dim + 1 :])
        return wrap(move(apart, dim + 1, 0).reshape(self.size, *one), self.level)

    def _look(self, roots: list[Any]) -> None:
        """Find out which nodes are needed."""
        targets = {edge[0] for edge in self.wanted if edge is not None}
        stack, seen = [(root, False) for root in roots], set()
        while stack:
            node, done = stack.pop()
            below = [edge[0] for edge in node.next_edges if edge is not None]
            if done:
                if any(one in self.needed or one in targets for one in below):
                    self.needed.add(node)
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                stack += [(one, False) for one in below if one not in seen]

    def _reader(self, node: Any) -> _Reader:
        """How to read a node whose results have been given places."""
        for position, metadata in enumerate(node.input_metadata):
            place = self.places.get((node, position))
            if place is not None:
                return _Reader(self, node, metadata[0], place)
        return _Reader(self, node, (), None)


class _Reader:
    """One node, as a pass over one sample would have made it."""

    def __init__(self, reading: _Reading, node: Any, result: tuple[int, ...], at: Place | None) -> None:
        self.reading = reading
        self.node = node
        #: The shape of a result that holds the batch, and where; None if none does.
        self.result = result
        self.at = at
        self.record: OperatorRecord | None = _records_by_node().get(type(node).__name__)

    def place(self, name: str, shape: tuple[int, ...]) -> Place | None:
        """Where samples lie in an argument of this shape."""
        if self.at is None:
            return None
        return place_of(self.node, name, tuple(shape), self.result, self.at, self.reading.size)

    def name_of(self, position: int) -> str:
        """The name of the argument that an edge is of."""
        names = () if self.record is None else self.record.differentiable
        return names[position] if len(names) == len(self.node.next_edges) else ""

    def one_sample(self) -> Any:
        """The node as a pass over one sample would have made it."""
        node, cls = self.node, type(self.node)
        if self.at is None:
            return node
        if self.record is None or cls.__module__ != _generated.__name__ + ".nodes":
            raise _Unreadable(cls.__name__)
        made = object.__new__(cls)
        slots = [slot for base in cls.__mro__ for slot in getattr(base, "__slots__", ()) if slot != "__weakref__"]
        for slot in slots:
            if not hasattr(node, slot):
                continue
            try:
                setattr(made, slot, self._slot(slot, getattr(node, slot)))
            except AttributeError:
                pass  # a slot of the base class that this one has the same value in for all its nodes
        return made

    def _slot(self, slot: str, value: Any) -> Any:
        name, size = slot.rsplit("_", 1)[0], self.reading.size
        if slot.endswith("_shape"):
            return self._shape(name, tuple(value))
        if slot.endswith("_shapes"):
            return tuple([self._shape(name, tuple(shape)) for shape in value])
        if slot == "N_" and isinstance(value, int):  # how many images there are
            return value // size if value % size == 0 else value
        if slot == "repeats_" and self.at is not None and self.place("self", self.node.self_shape) is None:
            dim = self.at.dim
            if value[dim] % size:
                raise _Unreadable("samples are not what is repeated")
            return (*value[:dim], value[dim] // size, *value[dim + 1 :])
        return self._saved(name, value) if slot.endswith("_") and slot != "_" else value

    def _shape(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        place = self.place(name, shape)
        return shape if place is None else of_one(shape, place, self.reading.size)

    def _saved(self, name: str, value: Any) -> Any:
        node = self.node
        if isinstance(value, (tuple, list)) and any(isinstance(v, (Tensor, SavedVariable)) for v in value):
            raise _Unreadable(f"a list of tensors in {type(node).__name__}")
        if isinstance(value, (Tensor, SavedVariable)):
            tensor = unpack_tensor(node, name, value)
        elif isinstance(value, np.ndarray):
            tensor = plain(value)
        else:
            return value
        place = None if tensor is None else self.place(name, tensor._memory_.shape)
        if place is None:
            return value
        assert self.record is not None
        if name in self.record.arguments or name in _tensor_arguments(self.record):
            return self.reading._samples(tensor, place)
        # A result; or what a kernel kept besides, which formulas on Tensors compute anew.
        return _Held(self.reading._samples(tensor, place)) if hasattr(node, f"{name}_vc") else value


def _tensor_arguments(record: OperatorRecord) -> tuple[str, ...]:
    """The names, as formulas have them, of the arguments that may be tensors."""
    inside = record.schema[record.schema.index("(") + 1 : record.schema.index(")")]
    found = []
    for part in inside.split(","):
        kind, _, name = part.strip().partition(" ")
        if kind.startswith("Tensor"):
            found.append(name.partition("=")[0].strip())
    return tuple(found)


def _edge(tensor: Tensor) -> Any:
    return tensor._edge_ or gradient_edge(tensor)
