"""Writes ``_generated/nodes.py``: one node class per entry with formulas, each formula in both namespaces."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

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
    saved_ints,
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
from retrograd.kernels import ndarray
from retrograd.tensor import Tensor
from retrograd.tensor.special import boxed

PYTHONS_REALS = frozenset({int, float})
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
    return any(what in f.reads.of.get(name, ()) and not f.reads.value(name) for f in entry.readers)


def needed_by(entry: Entry, name: str, what: str = "value") -> list[str]:
    """The arguments whose formula reads `name`; all of them, if the node shows it besides."""
    if any(f is not None and what in f.reads.of.get(name, ()) for f in entry.saved.values()):
        return [a.name for a in entry.differentiable_arguments]
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
    numbers = {a.name for a in slots.tensors if a.type == "Tensor|Scalar"} if entry.tensor_node else set()
    saved = _saved_names(slots)
    lines += _names_line(_saved_names(Slots(entry.for_numbers())), numbers)
    if slots.results:
        places = ", ".join(f"{r!r}: {entry.output_nr(position)}" for r, position in slots.results)
        lines.append(f"    saved_outputs = {{{places}}}")
    if not several and all(_takes_scalars(entry, slots, f, names) for f in entry.formulas):
        lines.append("    takes_scalars = True")
    if not entry.node[-1].isdigit():  # torch has written it by hand, in its own namespace
        lines += ["", "    def name(self):", f'        return "torch::autograd::{entry.node}"']
    for arrays in (True, False):
        lines += ["", *_apply(entry.for_numbers(), slots, names, arrays)]
    # A number is not let go where torch has a node of its own for numbers.
    lines += _release(slots, numbers)
    lines += _saved_properties(entry.for_numbers(), Slots(entry.for_numbers()), names)
    if entry.tensor_node:
        lines += ["", "", f"class {entry.tensor_node}({entry.node}):"]
        lines += [f'    """The same, where {entry.schema.base} has tensors for numbers."""', "", "    __slots__ = ()"]
        lines += _names_line(saved)
        for arrays in (True, False):
            lines += ["", *_apply(entry, slots, names, arrays)]
        lines += _release(slots) if numbers else []
        lines += _saved_properties(entry, slots, names, of_numbers=Slots(entry.for_numbers()))
    for name, node in entry.number_nodes.items():
        lines += ["", "", f"class {node}({entry.node}):"]
        lines += [f'    """The same, where {name} is a number."""', "", "    __slots__ = ()"]
        lines += _names_line(saved, {name})
        for arrays in (True, False):
            lines += ["", *_apply(entry.without({name}), slots, names, arrays)]
        lines += _release(slots, {name})
        if any(a.name == name for a in slots.tensors):
            lines += ["", "    @property", f"    def _saved_{name}(node):", f"        return node.{name}_"]
    further = {node: f"where {name} is given" for name, node in entry.given_nodes.items()}
    if entry.inplace_node:
        further[entry.inplace_node] = f"of {entry.schema.base}_"
    for node, what in further.items():
        lines += ["", "", f"class {node}({entry.node}):", f'    """The same, {what}."""', "", "    __slots__ = ()"]
        if node == entry.inplace_node and entry.inplace_not_negative:
            for apply in ("apply", "apply_tensors"):
                given = f"{entry.schema.base!r}, '{entry.inplace_not_negative}_', {entry.node}.{apply}"
                lines.append(f"    {apply} = formulas.refusing_negative({given})")
    return "\n".join(lines) + "\n"


def _saved_names(slots: Slots) -> list[str]:
    """What is saved as a tensor, in the order in which torch packs it: inputs before results, each by name."""
    return sorted(a.name for a in slots.tensors) + sorted([*(r for r, _ in slots.results), *slots.saves])


def _names_line(saved: list[str], numbers: Collection[str] = ()) -> list[str]:
    """`saved_tensors_names`, without those that are numbers."""
    names = [name for name in saved if name not in numbers]
    return [f"    saved_tensors_names = ({''.join(repr(n) + ', ' for n in names)})"] if saved else []


def released_slots(slots: Slots, kept: Collection[str] = ()) -> list[str]:
    """The slots of a node that `release_variables` empties: of all that is saved as tensors, but for what is `kept`."""
    names = [a.name for a in (*slots.tensors, *(a for a in slots.plain if a.type == "indices")) if a.name not in kept]
    found = [f"{name}_" for name in names]
    for r, _ in slots.results:
        found += [f"{r}_", f"{r}_vc"]
    return [*found, *(f"{s}_" for s in slots.saves)]


def _release(slots: Slots, kept: Collection[str] = ()) -> list[str]:
    outputs = {f"{r}_" for r, _ in slots.results}
    lines = ["", "    def release_variables(node, freed):"]
    for slot in released_slots(slots, kept):
        if slot.removesuffix("vc") not in outputs or slot in outputs:
            also = f" = node.{slot}vc" if slot in outputs else ""
            lines.append(f"        node.{slot}{also} = freed")
    return lines if len(lines) > 2 else []


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
        body.append(f"return tuple({lowered(slots, entry.formulas[0], names, arrays)})")
    elif len(arguments) == 1:
        body.append("if edges[0] is None:")
        body.append("    return (None,)")
        body += _unpack(entry, slots, entry.formulas[0], names, arrays)
        body.append(f"return ({lowered(slots, entry.formulas[0], names, arrays)},)")
    else:
        body.append(", ".join(f"edge_{a.name}" for a in arguments) + " = edges")
        body.append(" = ".join(_gradient(entry, a.name) for a in arguments) + " = None")
        for position, f in enumerate(entry.formulas):
            body.append(f"if {' or '.join(f'edge_{a} is not None' for a in f.arguments)}:")
            inner = _unpack(entry, slots, f, names, arrays, entry.formulas[:position])
            targets = ", ".join(_gradient(entry, a) for a in f.arguments)
            inner.append(f"{targets} = {lowered(slots, f, names, arrays)}")
            body += ["    " + line for line in inner]
        body.append(f"return ({', '.join(_gradient(entry, a.name) for a in arguments)})")
    return lines + ["        " + line for line in body]


#: Functions over arrays that take a scalar of NumPy's for a 0-d gradient.
_TAKE_SCALARS = ("select_backward", "pow_backward")


def _takes_scalars(entry: Entry, slots: Slots, f: Formula, names: Names) -> bool:
    """Is a formula made of signs, which compute with NumPy's scalars as with 0-d arrays?"""
    if any(a.is_list for a in entry.differentiable_arguments):
        return False
    todo: list[ast.AST] = [ast.parse(lowered(slots, f, names, arrays=True), mode="eval").body]
    while todo:
        match todo.pop():
            case ast.BinOp(left=a, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=b):
                todo += [a, b]
            case ast.IfExp(test=ast.Compare(), body=a, orelse=b):
                todo += [a, b]
            case ast.UnaryOp(op=ast.USub(), operand=a) | ast.Call(func=ast.Attribute(value=a, attr="conjugate")):
                todo.append(a)
            case ast.Call(func=ast.Attribute(attr=name)) if name in _TAKE_SCALARS:
                pass
            case ast.Name() | ast.Constant():
                pass
            case _:
                return False
    return True


def _gradient(entry: Entry, name: str) -> str:
    """The local name of an argument's gradient: ``grad_self``, unless an argument is called so itself."""
    local = f"grad_{name}"
    return f"grad_of_{name}" if entry.schema.argument(local) is not None else local


def lowered(slots: Slots, f: Formula, names: Names, arrays: bool) -> str:
    """A formula as source: over arrays, or over Tensors."""
    rename = {f"{a.name}.{what}": f"{a.name}_{what}" for a, what in slots.attributes}
    rename |= {f"{r}.{what}": f"{r}_{what}" for r, what in slots.result_attributes}
    return lower(f.tree, arrays, names, rename)


def _unpack(
    entry: Entry, slots: Slots, f: Formula, names: Names, arrays: bool, earlier: Sequence[Formula] = ()
) -> list[str]:
    """Bring what one formula reads into local names, unless one of the `earlier` formulas has run and done so."""
    lines = []

    def once(name: str, what: str, unpacking: list[str]) -> None:
        done = [a for before in earlier if what in before.reads.of.get(name, ()) for a in before.arguments]
        if done:
            lines.append(f"if {' and '.join(f'edge_{a} is None' for a in done)}:")
        lines.extend("    " * bool(done) + line for line in unpacking)

    for a in slots.tensors:
        if f.reads.value(a.name):
            once(a.name, "value", _unpack_tensor(a, arrays))
    for r, position in slots.results:
        if f.reads.value(r):
            once(r, "value", _unpack_result(entry, r, position, arrays))
    for a in slots.plain:
        if a.name in f.reads.of:
            unpacked = f'unpack_indices(node, "{a.name}", node.{a.name}_)' if a.type == "indices" else f"node.{a.name}_"
            once(a.name, "value", [f"{a.name} = {unpacked}"])
    for a, what in slots.attributes:
        if what in f.reads.of.get(a.name, ()):
            once(a.name, what, [f"{a.name}_{what} = node.{a.name}_{what}"])
    for r, what in slots.result_attributes:
        if what in f.reads.of.get(r, ()):
            once(r, what, [f"{r}_{what} = node.{r}_{what}"])
    for s in slots.saves:
        if s in f.reads.of:
            unpacked = f'unpack_array(node, "{s}", {s})'
            lines_of_it = [f"{s} = node.{s}_", f"if {s}.__class__ is not ndarray:", f"    {s} = {unpacked}"]
            once(s, "value", lines_of_it if arrays else [*lines_of_it, f"{s} = boxed({s})"])
    return lines


def _unpack_tensor(a: Argument, arrays: bool) -> list[str]:
    name = a.name
    if a.is_list:
        return [f'{name} = unpack_list_{"arrays" if arrays else "tensors"}(node, "{name}", node.{name}_)']
    if a.type == "Tensor":
        test = f"{name}._vc_ is None"
    else:  # a number, or None, may stand here
        test = f"{name}.__class__ is Tensor and {name}._vc_ is None"
    lines = [f"{name} = node.{name}_"]
    if arrays:
        unpacked = f'unpack_array(node, "{name}", {name})'
        if a.type == "Tensor|Scalar":
            unpacked = f"{name} if {name}.__class__ in PYTHONS_REALS else {unpacked}"
        return [*lines, f"{name} = {name}._numbers_ if {test} else {unpacked}"]
    return [*lines, f"if not ({test}):", f'    {name} = unpack_tensor(node, "{name}", {name})']


def _unpack_result(entry: Entry, r: str, position: int, arrays: bool) -> list[str]:
    lines = [f"{r} = node.{r}_"]
    if arrays:
        return [*lines, f"if node.{r}_vc.version:", f'    {r} = unpack_output_array(node, "{r}", {r})']
    lines.append(f'{r} = unpack_output_tensor(node, "{r}", {r}, {entry.output_nr(position)})')
    return lines if entry.output_differentiability[position] else [*lines, f"{r}._edge_ = None"]


def _saved_properties(entry: Entry, slots: Slots, names: Names, of_numbers: Slots | None = None) -> list[str]:
    """``_saved_NAME`` and ``_raw_saved_NAME``; where `of_numbers` is given, those that are not there for numbers."""
    found = _shown_tensors(entry, slots, of_numbers)
    if of_numbers is None:
        for a in slots.plain:
            value = f"node.{a.name}_"
            found[a.name] = (f"saved_ints({value})" if a.type.startswith("int[]") else value), None
            if a.type == "indices":
                found[a.name] = f'saved_indices_attribute(node, "{a.name}")', f'raw_saved_indices(node, "{a.name}")'
        for a, what in slots.attributes:
            if any(what in f.reads.of.get(a.name, ()) for f in entry.formulas):
                found[f"{a.name}_{TORCHS_NAMES.get(what, what)}"] = _shown_attribute(entry, a, what), None
    default = dict(found)
    for name, f in entry.saved.items():
        if f is None:
            found.pop(name, None)
        elif isinstance(f.tree, ast.Name) and f.tree.id in default:
            found[name] = default[f.tree.id]
        elif of_numbers is None:
            found[name] = lower(f.tree, False, names, _renamed(slots)), None
    lines: list[str] = []
    for name, (shown, raw) in found.items():
        lines += ["", "    @property", f"    def _saved_{name}(node):", f"        return {shown}"]
        if raw is not None:
            lines += ["", "    @property", f"    def _raw_saved_{name}(node):", f"        return {raw}"]
    return lines


def _shown_tensors(entry: Entry, slots: Slots, of_numbers: Slots | None) -> dict[str, tuple[str, str | None]]:
    found: dict[str, tuple[str, str | None]] = {}
    there = set() if of_numbers is None else {a.name for a in of_numbers.tensors if a.type != "Tensor|Scalar"}
    for a in slots.tensors:
        kind, arguments = "_list" if a.is_list else "", f'(node, "{a.name}")'
        if a.type == "Tensor|Scalar" and entry.tensor_node and of_numbers is None:
            found[a.name] = f"node.{a.name}_", None  # a number, and for torch too
        elif a.name not in there:
            found[a.name] = f"saved{kind}_attribute{arguments}", f"raw_saved{kind}{arguments}"
    if of_numbers is None:
        for r, position in slots.results:
            arguments = f'(node, "{r}", {entry.output_nr(position)})'
            found[r] = f"saved_output_attribute{arguments}", f"raw_saved_output{arguments}"
        for s in slots.saves:
            found[s] = f'saved_attribute(node, "{s}")', f'raw_saved(node, "{s}")'
    return found


def _shown_attribute(entry: Entry, a: Argument, what: str) -> str:
    """A shape, a dtype or strides; an empty shape where no formula needs it: torch has not kept it then."""
    value = f"node.{a.name}_{what}"
    if what == "strides":  # the array's, in bytes; a formula that reads them has one dtype throughout
        value = f"tuple(stride // node.dtype.itemsize for stride in {value})"
    arguments = [argument.name for argument in entry.differentiable_arguments]
    readers = [arguments.index(name) for name in needed_by(entry, a.name, what)]
    if what == "dtype" or len(readers) == len(arguments):
        return value
    return f"{value} if {' or '.join(f'node.next_edges[{i}] is not None' for i in readers)} else ()"


def _renamed(slots: Slots) -> dict[str, str]:
    """What an expression of the column ``saved`` reads, as the node has it."""
    names = {f"{a.name}.{what}": f"node.{a.name}_{what}" for a, what in slots.attributes}
    names |= {f"{r}.{what}": f"node.{r}_{what}" for r, what in slots.result_attributes}
    names |= {a.name: f'saved_attribute(node, "{a.name}")' for a in slots.tensors if not a.is_list}
    return names | {a.name: f"node.{a.name}_" for a in slots.plain}
