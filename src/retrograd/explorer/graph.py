"""A graph as data: what the page shows of nodes, edges, lines of source and modules, as lists that become JSON.

`GraphBuilder.add` takes in every node that can be reached and reads off what it is and holds.  A page may show nodes of
several passes (a pass inside a pass, the passes of several threads), so a builder is added to as long as it lives.

Columns are lists over nodes: a page with 20,000 nodes is read in a fraction of a second that way.
"""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from ..autograd.accumulate_grad import AccumulateGrad
from ..autograd.explain import _saved_arrays, _storage
from ..autograd.function_ctx import BackwardCFunction
from ..autograd.node import Node, name_of
from ..autograd.saved_variable import Freed, SavedVariable
from ..core.devices import device_of_array_class
from ..core.dtypes import from_numpy_dtype
from ..core.where import Location
from ..tensor import Tensor
from ..utils.checkpoint.recomputation import Frame
from .values import arrays_of, flags_of
from .watch import Cut, ModuleCall, add_parameters, made_of

#: Kinds of nodes.
OPERATION, LEAF, CUSTOM, INPUT = 0, 1, 2, 3
#: A file with more lines is shown around the lines that are needed.
_MOST_LINES = 3000

Names = dict[int, tuple[Any, str]]


class Table:
    """Things that are referred to by number."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.items: list[Any] = []

    def number(self, key: Any, item: Any = None) -> int:
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.items)
            self.items.append(key if item is None else item)
        return found


class GraphBuilder:
    """Collects what is to be shown of graphs."""

    ops: Table
    metas: Table
    lines: Table
    modules: Table

    def __init__(self, names: Names | None = None) -> None:
        self.names: Names = dict(names or {})
        self.nodes: dict[Node, int] = {}
        #: The accumulators of leaves by the leaf: for leaves that no graph reaches.
        self.leaves: dict[int, int] = {}
        self.ops, self.metas, self.lines, self.modules = Table(), Table(), Table(), Table()
        self.formulas: dict[int, str] = {}
        self.columns: dict[str, list[Any]] = {
            name: []
            for name in ("op", "kind", "label", "meta", "line", "module", "seq", "saved", "bytes", "hooks", "flags",
                         "flags_in", "parent", "grad")
        }  # fmt: skip
        self.edges: dict[str, list[int]] = {"from": [], "to": [], "input": [], "output": []}
        #: Of each node, the number of its first edge: the edge of output p is the first with that position.
        self.edges_of: dict[int, dict[int, int]] = {}
        self.roots: list[int] = []
        self.cuts: dict[Cut, dict[str, Any]] = {}
        #: storage -> [bytes, how many nodes hold it]
        self.held: dict[int, list[int]] = {}
        self.storages: dict[int, list[int]] = {}
        self.own_storages: set[int] = set()
        #: A weak reference to each leaf that was met, and its number.
        self.variables: dict[int, tuple[weakref.ref[Tensor], int]] = {}

    # ----------------------------------------------------------------------------------------------------------- nodes

    def add(self, roots: Iterable[Node]) -> list[int]:
        """Take in all nodes below the `roots`; their numbers."""
        queue = [node for node in dict.fromkeys(roots) if node not in self.nodes]
        seen = set(queue)
        for node in queue:  # grows while it is walked
            for edge in node.next_edges:
                if edge is not None and edge[0] not in seen and edge[0] not in self.nodes and not edge[0].is_sink:
                    seen.add(edge[0])
                    queue.append(edge[0])
        for node in queue:
            if isinstance(node, AccumulateGrad):
                self.own_storages.update(id(storage) for storage in _storages(node.variable._memory_))
        for node in queue:
            self._add_node(node)
        for node in queue:
            self._add_edges(node)
        return [self.nodes[node] for node in dict.fromkeys(roots)]

    def _row(self, **values: Any) -> int:
        defaults = {"kind": OPERATION, "label": None, "meta": -1, "line": -1, "module": -1, "seq": 0, "saved": None,
                    "bytes": 0, "hooks": None, "flags": 0, "flags_in": 0, "parent": -1, "grad": None}  # fmt: skip
        for name, column in self.columns.items():
            column.append(values[name] if name in values else defaults[name])
        return len(self.columns["op"]) - 1

    def _add_node(self, node: Any) -> None:
        made = made_of(node)
        saved, size, storages = self._saved(node)
        name = name_of(node).rpartition("::")[2]
        leaf = isinstance(node, AccumulateGrad)
        op = self.ops.number("AccumulateGrad" if leaf else name)
        formula = type(node).__doc__ if type(node).__module__.endswith("_generated.nodes") else None
        if formula and op not in self.formulas:
            self.formulas[op] = "\n".join(line.strip() for line in formula.splitlines()[1:] if line.strip())
        location = None if made is None else made.location
        if location is None and node.extras is not None:  # anomaly mode has seen it
            seen = getattr(node.extras.metadata.get("traceback_"), "locations", None)
            location = seen[-1] if seen else None
        parent = None if made is None or made.parent is None else made.parent()
        number = self._row(
            op=op,
            kind=LEAF if leaf else CUSTOM if isinstance(node, BackwardCFunction) else OPERATION,
            label=self._name_of_leaf(node.variable) if leaf else None,
            meta=self._meta(node),
            line=self.line(location),
            module=-1 if made is None else self.module(made.module),
            seq=-1 if leaf else node.sequence_nr,
            saved=saved or None,
            bytes=size,
            hooks=_hooks_of(node) or None,
            flags=0 if made is None else made.flags_out,
            flags_in=0 if made is None else made.flags_in,
            parent=self.nodes.get(parent, -1) if parent is not None else -1,
        )
        self.nodes[node] = number
        self.storages[number] = storages
        if leaf:
            variable = node.variable
            self.variables[id(variable)] = (weakref.ref(variable), number)
        if made is not None:
            for cut in made.cuts:
                self.cut(cut)["users"].append(number)

    def _add_edges(self, node: Any) -> None:
        number = self.nodes[node]
        for position, edge in enumerate(node.next_edges):
            if edge is not None and edge[0] in self.nodes:
                self.edges_of.setdefault(number, {})[position] = self.edge(
                    number, self.nodes[edge[0]], edge[1], position
                )

    def edge(self, source: int, target: int, input_nr: int = 0, position: int = 0) -> int:
        """An edge, in the direction of gradients; its number."""
        for name, value in zip(self.edges, (source, target, input_nr, position)):
            self.edges[name].append(value)
        return len(self.edges["from"]) - 1

    def add_plain(self, op: str, kind: int, tensor: Any, location: Location | None, module: ModuleCall | None) -> int:
        """A node that is none of autograd's: an operator of a forward pass, or one of its inputs."""
        return self._row(
            op=self.ops.number(op), kind=kind, label=self.names.get(id(tensor), (None, None))[1],
            meta=self.metas.number(_meta_of(tensor)) if tensor is not None else -1,
            line=self.line(location), module=self.module(module), seq=len(self.columns["op"]),
        )  # fmt: skip

    def add_unreached(self, variable: Tensor) -> int:
        """A leaf that no graph leads to."""
        number = self._row(
            op=self.ops.number("AccumulateGrad"), kind=LEAF, label=self._name_of_leaf(variable), seq=-1,
            meta=self.metas.number(_meta_of(variable)),
        )  # fmt: skip
        self.variables[id(variable)] = (weakref.ref(variable), number)
        return number

    def number_of_leaf(self, variable: Tensor) -> int | None:
        """The node that stands for a leaf."""
        reference, number = self.variables.get(id(variable), (None, -1))
        return number if reference is not None and reference() is variable else None

    # --------------------------------------------------------------------------------------------------- what they have

    def _name_of_leaf(self, variable: Tensor) -> str | None:
        value, name = self.names.get(id(variable), (None, None))
        return name if value is variable else variable.name

    def name_node(self, node: Any, name: str) -> None:
        """A variable holds the result of a node."""
        number = self.nodes.get(node)
        if number is not None and self.columns["label"][number] is None:
            self.columns["label"][number] = name

    def name_models(self, models: Iterable[Any]) -> None:
        """Have names for the parameters of these models."""
        for model in models:
            add_parameters(self.names, model, "")

    def _meta(self, node: Any) -> int:
        try:
            metadata = node._input_metadata
        except (AttributeError, AssertionError):  # made by hand, without outputs
            return -1
        return self.metas.number("; ".join(f"{tuple(m.shape)} {_short(m.dtype)} {m.device}" for m in metadata))

    def _saved(self, node: Any) -> tuple[list[list[Any]], int, list[int]]:
        """What a node holds: rows for the panel, the bytes that are there for it alone, and the storages."""
        rows: list[list[Any]] = []
        for name in type(node).saved_tensors_names:
            rows += _describe(name, getattr(node, name + "_", None))
        if isinstance(node, BackwardCFunction) and isinstance(node._saved_variables, tuple):
            for position, value in enumerate(node._saved_variables):
                rows += _describe(f"saved_tensors[{position}]", value)
        if type(node).__module__.endswith("_generated.nodes"):
            tensors = {name + "_" for name in type(node).saved_tensors_names}
            for slot in type(node).__slots__:
                value = getattr(node, slot, None)
                if slot.endswith("_") and slot not in tensors and isinstance(value, (int, float, str, tuple, complex)):
                    rows.append([slot[:-1], repr(value)[:80], "", 0, 0])
        size, storages = 0, []
        for array in (*_saved_arrays(node), *_arguments_of_checkpoints(node)):
            for storage in _storages(array):
                key = id(storage)
                if key in self.own_storages or key in storages:
                    continue
                storages.append(key)
                entry = self.held.setdefault(key, [storage.nbytes, 0])
                if not entry[1]:
                    size += storage.nbytes  # counted for the node that comes first
                entry[1] += 1
        return rows, size, storages

    def release(self, number: int) -> int:
        """A node has let go of what it saved: the bytes that nobody holds now."""
        freed = 0
        for key in self.storages.pop(number, ()):
            entry = self.held.get(key)
            if entry is not None:
                entry[1] -= 1
                if not entry[1]:
                    freed += entry[0]
                    del self.held[key]
        return freed

    @property
    def bytes_held(self) -> int:
        return sum(size for size, holders in self.held.values() if holders)

    def line(self, location: Location | None) -> int:
        if location is None:
            return -1
        file, number = location.code.co_filename, location.line
        return self.lines.number((file, number), [file, number, location.code.co_name])

    def module(self, call: ModuleCall | None) -> int:
        if call is None:
            return -1
        chain: list[ModuleCall] = []
        while call is not None and call not in self.modules.numbers:
            chain.append(call)
            call = call.parent
        parent = -1 if call is None else self.modules.numbers[call]
        for one in reversed(chain):
            parent = self.modules.number(one, [one.path, one.cls, one.number, parent])
        return parent

    def cut(self, cut: Cut) -> dict[str, Any]:
        """A place where a history ends, with the nodes that use what came of it."""
        found = self.cuts.get(cut)
        if found is None:
            found = self.cuts[cut] = {"why": cut.why, "line": self.line(cut.location), "users": [], "leaves": []}
        return found

    # ------------------------------------------------------------------------------------------------------------- data

    def data(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        for cut, row in self.cuts.items():
            leaves = [reference() for reference in cut.leaves]
            numbers = [self.number_of_leaf(leaf) for leaf in leaves if leaf is not None]
            row["leaves"] = sorted({number for number in numbers if number is not None})
        files = Table()
        lines = [[files.number(file), number, function] for file, number, function in self.lines.items]
        return {
            "ops": self.ops.items,
            "formulas": self.formulas,
            "metas": self.metas.items,
            "lines": lines,
            "files": [_source(file, [n for f, n, _ in self.lines.items if f == file]) for file in files.items],
            "modules": self.modules.items,
            "nodes": dict(self.columns),
            "edges": dict(self.edges),
            "roots": list(dict.fromkeys(self.roots)),
            "cuts": list(self.cuts.values()),
        }


# ------------------------------------------------------------------------------------------------------------- helpers


def _short(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def _meta_of(tensor: Tensor) -> str:
    array = tensor._memory_
    device = device_of_array_class(array.__class__) if tensor._special_ is None else tensor.device
    dtype = from_numpy_dtype(array.dtype) if tensor._special_ is None else tensor.dtype
    return f"{tuple(array.shape)} {_short(dtype)} {device}"


def _storages(array: Any) -> list[Any]:
    """What owns the memory of an array, or of the arrays that a special tensor is made of."""
    if hasattr(array, "base") and hasattr(array, "nbytes"):
        return [_storage(array)]
    return [_storage(part) for part in arrays_of(array)]


def _describe(name: str, value: Any) -> list[list[Any]]:
    """Rows ``[name, shape, dtype, bytes, NaN and Inf]`` for what a node saved under a name."""
    if isinstance(value, (tuple, list)):
        return [row for position, item in enumerate(value) for row in _describe(f"{name}[{position}]", item)]
    if isinstance(value, SavedVariable):
        value = value.data
    if isinstance(value, Freed) or value is None:
        return []
    if isinstance(value, Tensor):
        value = value._memory_
    if hasattr(value, "nbytes") and hasattr(value, "shape"):
        size = getattr(value, "nbytes", 0)
        return [[name, str(tuple(value.shape)), _short(value.dtype), size, flags_of(value)]]
    return [[name, type(value).__name__, "", 0, 0]]  # packed by a hook


def _arguments_of_checkpoints(node: Any) -> Iterator[Any]:
    """What a checkpoint keeps to compute again what this node would have saved."""
    values = [getattr(node, name + "_", None) for name in type(node).saved_tensors_names]
    if isinstance(node, BackwardCFunction) and isinstance(node._saved_variables, tuple):
        values.extend(node._saved_variables)
    for value in values:
        frame = getattr(getattr(value, "unpack_hook", None), "__self__", None)
        if isinstance(frame, Frame):
            for argument in frame.args:
                tensor = argument.data if isinstance(argument, SavedVariable) else None
                if isinstance(tensor, Tensor):
                    yield tensor._memory_


def _hooks_of(node: Any) -> list[str]:
    """The hooks of a node, in words, in the order in which they run."""
    return [text for _, text in hooks_before(node)] + [text for _, text in hooks_after(node)]


def hooks_before(node: Any) -> list[tuple[str, str]]:
    extras = node.extras
    if extras is None:
        return []
    found = [("tensor hook", hook) for _, hooks in list(extras.tensor_hooks) for hook in list(hooks.values())]
    found += [("retain_grad", None) for _ in list(extras.retains_grad)]
    found += [("pre-hook", hook) for hook in list(extras.pre_hooks.values())]
    return [(kind, kind if hook is None else f"{kind} {_called(hook)}") for kind, hook in found]


def hooks_after(node: Any) -> list[tuple[str, str]]:
    found = []
    if isinstance(node, AccumulateGrad):
        meta: Any = node.variable._grad_meta_
        hooks = getattr(meta, "post_accumulate_grad_hooks", None) or {}
        found += [("post-accumulate hook", hook) for hook in list(hooks.values())]
    if node.extras is not None:
        found += [("post-hook", hook) for hook in list(node.extras.post_hooks.values())]
    return [(kind, f"{kind} {_called(hook)}") for kind, hook in found]


def _called(hook: Any) -> str:
    return getattr(hook, "__qualname__", type(hook).__name__)


def _source(file: str, needed: list[int]) -> dict[str, Any]:
    """A file's lines; of a long one, those around what is needed."""
    text = [line.rstrip("\n") for line in linecache.getlines(file)]
    first = 1
    if len(text) > _MOST_LINES:
        first = max(1, min(needed) - 200)
        text = text[first - 1 : min(len(text), max(needed) + 200, first + _MOST_LINES)]
    return {"name": file, "first": first, "text": text}
