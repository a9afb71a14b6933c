"""Writes ``_generated/nodes.py``: one node class per entry with formulas, each formula in both namespaces."""

from __future__ import annotations

from .formula import Names, lower
from .schema import Argument
from .table import Entry, Formula

HEADER = '''"""Node classes, generated from derivatives/*.yaml. Do not edit: change the table."""

from __future__ import annotations

from retrograd.core.late import operators as ops
from retrograd import kernels
from retrograd.autograd.node import MultiOutputNode, Node
from retrograd.autograd.saved_variable import (
    raw_saved,
    raw_saved_indices,
    raw_saved_list,
    raw_saved_output,
    saved_attribute,
    saved_indices_attribute,
    saved_list_attribute,
    saved_output_attribute,
    unpack_array,
    unpack_indices,
    unpack_list_arrays,
    unpack_list_tensors,
    unpack_output_array,
    unpack_output_tensor,
    unpack_tensor,
)
from retrograd.derivatives import formulas
from retrograd.tensor import Tensor, wrap
'''


#: What torch calls a saved attribute: ``_saved_self_sym_sizes``.
TORCHS_NAMES = {"shape": "sym_sizes", "dtype": "scalar_type", "strides": "sym_strides"}


def write_nodes(entries: list[Entry], names: Names) -> str:
    """The source of the module."""
    return HEADER + "".join(_node(entry, names) for entry in entries if entry.differentiable)


# ------------------------------------------------------------------------------------------------- what a node stores


class Slots:
    """The slots of a node: what its formulas read of the forward pass."""

    def __init__(self, entry: Entry) -> None:
        schema = entry.schema
        reads = entry.reads()
        #: Arguments whose values are saved as tensors.
        self.tensors: list[Argument] = [a for a in schema.arguments if a.is_tensor and reads.value(a.name)]
        #: (argument, attribute) of tensors of which only that is read.
        self.attributes: list[tuple[Argument, str]] = [
            (a, what)
            for a in schema.arguments
            if a.is_tensor
            for what in sorted(reads.of.get(a.name, ()))
            if what != "value" and (a.is_list or _read_alone(entry, a.name, what))
        ]
        #: Plain arguments.
        self.plain: list[Argument] = [a for a in schema.arguments if not a.is_tensor and a.name in reads.of]
        #: Results that are saved, with their positions, and results of which only the shape or dtype is.
        self.results: list[tuple[str, int]] = [(r, i) for i, r in enumerate(schema.results) if reads.value(r)]
        self.result_attributes: list[tuple[str, str]] = [
            (r, what)
            for r in schema.results
            for what in sorted(reads.of.get(r, ()))
            if what != "value" and _read_alone(entry, r, what)
        ]
        self.saves: list[str] = entry.saves

    def names(self) -> list[str]:
        return [
            *(f"{a.name}_" for a in self.tensors),
            *(f"{a.name}_{what}" for a, what in self.attributes),
            *(f"{a.name}_" for a in self.plain),
            *(f"{r}_" for r, _ in self.results),
            *(f"{r}_vc" for r, _ in self.results),
            *(f"{r}_{what}" for r, what in self.result_attributes),
            *(f"{s}_" for s in self.saves),
        ]


def _read_alone(entry: Entry, name: str, what: str) -> bool:
    """Is there a formula that reads an attribute of a tensor and not its values? Then it has a slot of its own."""
    return any(what in f.reads.of.get(name, ()) and not f.reads.value(name) for f in entry.formulas)


def needed_by(entry: Entry, name: str, what: str = "value") -> list[str]:
    """The arguments whose formula reads `name`."""
    return [a for f in entry.formulas if what in f.reads.of.get(name, ()) for a in f.arguments]


# ------------------------------------------------------------------------------------------------------- the class


def _node(entry: Entry, names: Names) -> str:
    slots = Slots(entry)
    several = entry.schema.returns_list or len(entry.schema.results) > 1
    lines = ["", "", f"class {entry.node}({'MultiOutputNode' if several else 'Node'}):"]
    lines += [f'    """Backward of {entry.schema.base}:', ""]
    lines += [f"        {', '.join(f.arguments)}: {f.text}" for f in entry.formulas]
    lines += ['    """', ""]
    lines.append(f"    __slots__ = ({''.join(repr(n) + ', ' for n in sorted(slots.names()))})")
    saved = [a.name for a in slots.tensors] + [r for r, _ in slots.results]
    if saved:
        lines.append(f"    saved_tensors_names = ({''.join(repr(n) + ', ' for n in saved)})")
    if not entry.node[-1].isdigit():  # torch has written it by hand, in its own namespace
        lines += ["", "    def name(self):", f'        return "torch::autograd::{entry.node}"']
    for arrays in (True, False):
        lines += ["", *_apply(entry.for_numbers(), slots, names, arrays)]
    indices = [a for a in slots.plain if a.type == "indices"]
    if saved or slots.saves or indices:
        released = [f"node.{a.name}_ = freed" for a in (*slots.tensors, *indices)]
        released += [f"node.{r}_ = node.{r}_vc = freed" for r, _ in slots.results]
        released += [f"node.{s}_ = freed" for s in slots.saves]
    else:
        released = []
    # A number is not let go where torch has a node of its own for numbers.
    numbers = {f"node.{a.name}_ = freed" for a in slots.tensors if entry.tensor_node and a.type == "Tensor|Scalar"}
    lines += _release([line for line in released if line not in numbers])
    lines += _saved_properties(entry, slots)
    if entry.tensor_node:
        lines += ["", "", f"class {entry.tensor_node}({entry.node}):"]
        lines += [f'    """The same, where {entry.schema.base} has tensors for numbers."""', "", "    __slots__ = ()"]
        for arrays in (True, False):
            lines += ["", *_apply(entry, slots, names, arrays)]
        lines += _release(released) if numbers else []
    return "\n".join(lines) + "\n"


def _release(released: list[str]) -> list[str]:
    if not released:
        return []
    return ["", "    def release_variables(node, freed):", *("        " + line for line in released)]


def _apply(entry: Entry, slots: Slots, names: Names, arrays: bool) -> list[str]:
    arguments = entry.differentiable_arguments
    lines = [f"    def {'apply' if arrays else 'apply_tensors'}(node, edges, grads):"]
    body: list[str] = []
    total = entry.reads()
    nothing = "(" + "None, " * len(arguments) + ")"
    is_list = arguments[0].is_list
    if is_list:
        assert len(arguments) == 1, "an operator over a list of tensors differentiates only that"
        nothing = "(None,) * len(edges)"
    if entry.schema.returns_list or sum(entry.output_differentiability) > 1:
        body += ["if all(g is None for g in grads):", f"    return {nothing}"]
        if "grad" in total.of:
            body.insert(0, "grad = grads[0]")
    else:
        body += ["grad = grads[0]", "if grad is None:", f"    return {nothing}"]
    if is_list:
        body += _unpack(entry, slots, entry.formulas[0], names, arrays)
        body.append(f"return tuple({_lowered(entry, slots, entry.formulas[0], names, arrays)})")
    elif len(arguments) == 1:
        body.append("if edges[0] is None:")
        body.append("    return (None,)")
        body += _unpack(entry, slots, entry.formulas[0], names, arrays)
        body.append(f"return ({_lowered(entry, slots, entry.formulas[0], names, arrays)},)")
    else:
        body.append(", ".join(f"edge_{a.name}" for a in arguments) + " = edges")
        body.append(" = ".join(_gradient(entry, a.name) for a in arguments) + " = None")
        for f in entry.formulas:
            body.append(f"if {' or '.join(f'edge_{a} is not None' for a in f.arguments)}:")
            inner = _unpack(entry, slots, f, names, arrays)
            targets = ", ".join(_gradient(entry, a) for a in f.arguments)
            inner.append(f"{targets} = {_lowered(entry, slots, f, names, arrays)}")
            body += ["    " + line for line in inner]
        body.append(f"return ({', '.join(_gradient(entry, a.name) for a in arguments)})")
    return lines + ["        " + line for line in body]


def _gradient(entry: Entry, name: str) -> str:
    """The local name of an argument's gradient: ``grad_self``, unless an argument is called so itself."""
    local = f"grad_{name}"
    return f"grad_of_{name}" if entry.schema.argument(local) is not None else local


def _lowered(entry: Entry, slots: Slots, f: Formula, names: Names, arrays: bool) -> str:
    rename = {f"{a.name}.{what}": f"{a.name}_{what}" for a, what in slots.attributes}
    rename |= {f"{r}.{what}": f"{r}_{what}" for r, what in slots.result_attributes}
    return lower(f.tree, arrays, names, rename)


def _unpack(entry: Entry, slots: Slots, f: Formula, names: Names, arrays: bool) -> list[str]:
    """Bring what one formula reads into local names."""
    lines = []
    for a in slots.tensors:
        if not f.reads.value(a.name):
            continue
        name = a.name
        if a.is_list:
            lines.append(f'{name} = unpack_list_{"arrays" if arrays else "tensors"}(node, "{name}", node.{name}_)')
            continue
        lines.append(f"{name} = node.{name}_")
        value, slow = (f"{name}._data", "unpack_array") if arrays else (name, "unpack_tensor")
        if a.type == "Tensor":
            test = f"{name}._vc is None"
        else:  # a number, or None, may stand here
            test = f"{name}.__class__ is Tensor and {name}._vc is None"
        if arrays:
            lines.append(f'{name} = {value} if {test} else {slow}(node, "{name}", {name})')
        else:
            lines += [f"if not ({test}):", f'    {name} = {slow}(node, "{name}", {name})']
    for r, position in slots.results:
        if f.reads.value(r):
            lines.append(f"{r} = node.{r}_")
            if arrays:
                lines += [f"if node.{r}_vc.version:", f'    {r} = unpack_output_array(node, "{r}", {r})']
            else:
                lines.append(f'{r} = unpack_output_tensor(node, "{r}", {r}, {entry.output_nr(position)})')
                if not entry.output_differentiability[position]:
                    lines.append(f"{r}._edge = None")
    for a in slots.plain:
        if a.name in f.reads.of:
            if a.type == "indices":
                lines.append(f'{a.name} = unpack_indices(node, "{a.name}", node.{a.name}_)')
            else:
                lines.append(f"{a.name} = node.{a.name}_")
    for a, what in slots.attributes:
        if what in f.reads.of.get(a.name, ()):
            lines.append(f"{a.name}_{what} = node.{a.name}_{what}")
    for r, what in slots.result_attributes:
        if what in f.reads.of.get(r, ()):
            lines.append(f"{r}_{what} = node.{r}_{what}")
    for s in slots.saves:
        if s in f.reads.of:
            unpacked = f'unpack_array(node, "{s}", node.{s}_)'
            lines.append(f"{s} = {unpacked}" if arrays else f"{s} = wrap({unpacked})")
    return lines


def _saved_properties(entry: Entry, slots: Slots) -> list[str]:
    lines: list[str] = []

    def property_(name: str, expression: str) -> None:
        lines.extend(["", "    @property", f"    def _saved_{name}(node):", f"        return {expression}"])

    def raw_(name: str, expression: str) -> None:
        lines.extend(["", "    @property", f"    def _raw_saved_{name}(node):", f"        return {expression}"])

    for a in slots.tensors:
        property_(a.name, f'saved_{"list_" if a.is_list else ""}attribute(node, "{a.name}")')
        raw_(a.name, f'raw_saved{"_list" if a.is_list else ""}(node, "{a.name}")')
    for r, position in slots.results:
        property_(r, f'saved_output_attribute(node, "{r}", {entry.output_nr(position)})')
        raw_(r, f'raw_saved_output(node, "{r}", {entry.output_nr(position)})')
    for a in slots.plain:
        if a.type == "indices":
            property_(a.name, f'saved_indices_attribute(node, "{a.name}")')
            raw_(a.name, f'raw_saved_indices(node, "{a.name}")')
        else:
            property_(a.name, f"node.{a.name}_")
    for a, what in slots.attributes:
        value = f"node.{a.name}_{what}"
        if what == "strides":  # the array's, in bytes; a formula that reads them has one dtype throughout
            value = f"tuple(stride // node.dtype.itemsize for stride in {value})"
        property_(f"{a.name}_{TORCHS_NAMES.get(what, what)}", value)
    return lines
