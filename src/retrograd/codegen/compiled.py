"""Writes ``compiled_operators.py`` and ``compiled_formulas.py`` of ``_generated``: what the compiled core is told.

The core (``fast/src/core``) runs operators and formulas without the interpreter, from descriptions: which kernel, which
node, what is saved in which slot, and each formula as a tree.  They come from the same table, and each formula from the
same lowered text, as the Python that they stand for; what does not fit into a description is left to Python.
"""

from __future__ import annotations

import ast
from typing import Any

from .calls import signature
from .formula import Names
from .nodes import Slots, lowered, needed_by, released_slots
from .table import Entry, Formula

HEADER = '''"""What the compiled core does, generated from derivatives/*.yaml. Do not edit: change the table."""

from __future__ import annotations

from typing import Any

'''
_SIGNS = {ast.Mult: "*", ast.Add: "+", ast.Sub: "-", ast.Div: "/", ast.Pow: "**"}
#: Arguments of more parts than these are left to Python (MOST_ARGUMENTS, MOST_EDGES and MOST_SAVES of the core).
_MOST_PARTS, _MOST_EDGES, _MOST_SAVES, _MOST_OPERANDS = 8, 4, 8, 8
#: The families whose operators the core runs: what programs call in loops. Those of others compute for longer than a
#: wrapper takes.
_FAMILIES = frozenset(
    """activation arithmetic comparison embedding gather losses mask memory normalization powers products reduce scan
    softmax trigonometry""".split()
)
#: What formulas call functions of.
_SPACES = ("kernels", "ops", "formulas")
#: What stands for an argument of a type in a description (`kinds` in fast/src/core/operators.c).
_KINDS = {"Tensor": "T", "Tensor|Scalar": "N", "Scalar": "S", "int": "I", "bool": "B", "float": "F", "int[]": "L",
          "Tensor?": "O"}  # fmt: skip
#: Attributes of arrays that nodes keep.
_ATTRIBUTES = {"shape": "s", "dtype": "d", "strides": "p"}


class _NoDescription(Exception):
    """This is left to Python."""


def write_operators(entries: list[Entry]) -> str:
    """The source of the module about operators."""
    found: dict[str, Any] = {}
    fronts = []
    for entry in entries:
        description = _operator(entry)
        if description is not None:
            found |= dict.fromkeys([entry.name, *entry.operators], description)
            fronts.append(_front(entry))
    text = HEADER + "#: Operator -> (kinds, constants, kernel, node, edges, saves): see `define_operators`.\n"
    return text + _dict("OPERATORS", found) + _FRONTS + "".join(fronts)


_FRONTS = '''

# What wrappers become (ops/compiled_core.py): the core is asked first, and Python where it declines.
# ruff: noqa
# mypy: ignore-errors
'''


def _front(entry: Entry) -> str:
    head = signature(entry)
    parameters: Any = ast.parse(f"def call({head}): pass").body[0]
    plain = [*parameters.args.args, *parameters.args.kwonlyargs]
    others = [a.arg for a in (parameters.args.vararg, parameters.args.kwarg) if a is not None]
    unless = [*[f"not {name}" for name in others], *["out is None" for a in plain if a.arg == "out"]]
    given = ", ".join(a.parameter for a in entry.schema.arguments)
    call = [a.arg for a in parameters.args.args]
    call += [f"*{parameters.args.vararg.arg}"] if parameters.args.vararg else []
    call += [f"{a.arg}={a.arg}" for a in parameters.args.kwonlyargs]
    call += [f"**{parameters.args.kwarg.arg}"] if parameters.args.kwarg else []
    return (
        f"\n\ndef {entry.name}({head}):\n"
        f"    if {' and '.join(unless) or 'True'}:\n"
        f"        result = core_{entry.name}({given})\n"
        "        if result is not None:\n"
        "            return result\n"
        f"    return in_python.{entry.name}({', '.join(call)})\n"
    )


def write_formulas(entries: list[Entry], names: Names) -> str:
    """The source of the module about nodes."""
    found: dict[str, Any] = {}
    for entry in entries:
        found |= _nodes(entry, names)
    text = HEADER + "#: Node -> (a formula for each edge, over arrays; over Tensors, or None; slots that are let go).\n"
    return text + _dict("FORMULAS", found)


def _dict(name: str, items: dict[str, Any]) -> str:
    return f"{name}: dict[str, Any] = {{\n" + "".join(f"    {k!r}: {v!r},\n" for k, v in items.items()) + "}\n"


# ---------------------------------------------------------------------------------------------------------- formulas


def _nodes(entry: Entry, names: Names) -> dict[str, Any]:
    """The descriptions of an entry's node classes."""
    if not entry.differentiable or entry.schema.returns_list or len(entry.schema.results) > 1:
        return {}
    forms = {entry.node: (entry.for_numbers(), _numbers(entry))}
    if entry.tensor_node:
        forms[entry.tensor_node] = (entry, set())
    forms |= {node: (entry.without({name}), {name}) for name, node in entry.number_nodes.items()}
    further = list(entry.given_nodes.values())
    if entry.inplace_node and not entry.inplace_not_negative:
        further.append(entry.inplace_node)
    forms |= {node: forms[entry.node] for node in further}
    found = {}
    for node, (form, numbers) in forms.items():
        try:
            over_arrays = _formulas(form, entry, names, arrays=True)
        except _NoDescription:
            continue
        try:
            over_tensors = _formulas(form, entry, names, arrays=False)
        except _NoDescription:
            over_tensors = None
        found[node] = (over_arrays, over_tensors, tuple(released_slots(Slots(entry), numbers)))
    return found


def _numbers(entry: Entry) -> set[str]:
    """What is not let go of a node for numbers."""
    return {a.name for a in entry.schema.arguments if a.type == "Tensor|Scalar"} if entry.tensor_node else set()


def _formulas(form: Entry, entry: Entry, names: Names, arrays: bool) -> tuple[Any, ...]:
    arguments, slots = form.differentiable_arguments, Slots(entry)
    by_argument = {f.arguments[0]: f for f in form.formulas if len(f.arguments) == 1}
    if len(by_argument) != len(arguments) or len(arguments) > _MOST_EDGES:
        raise _NoDescription
    if any(a.is_list for a in (*arguments, *slots.tensors)) or any(a.type == "indices" for a in slots.plain):
        raise _NoDescription
    return tuple(_formula(by_argument[a.name], entry, slots, names, arrays) for a in arguments)


def _formula(f: Formula, entry: Entry, slots: Slots, names: Names, arrays: bool) -> Any:
    places: dict[str, Any] = {"grad": ("grad",)}
    places |= {a.name: ("tensor", f"{a.name}_", a.name) for a in slots.tensors}
    places |= {s: ("tensor", f"{s}_", s) for s in slots.saves}
    places |= {r: ("output", f"{r}_", r, f"{r}_vc") for r, _ in slots.results}
    places |= {a.name: ("slot", f"{a.name}_") for a in slots.plain}
    places |= {f"{a.name}_{what}": ("slot", f"{a.name}_{what}") for a, what in slots.attributes}
    places |= {f"{r}_{what}": ("slot", f"{r}_{what}") for r, what in slots.result_attributes}
    return _tree(ast.parse(lowered(slots, f, names, arrays), mode="eval").body, places)


def _tree(node: ast.expr, places: dict[str, Any]) -> Any:
    """An expression as the core reads it."""
    match node:
        case ast.Name(id=name) if name in places:
            return places[name]
        case ast.Constant(value=value) if value is None or isinstance(value, (int, float)):
            return ("constant", value)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
            return (_SIGNS[type(op)], _tree(left, places), _tree(right, places))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return ("neg", _tree(operand, places))
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return ("==", _tree(left, places), _tree(right, places))
        case ast.IfExp(test=test, body=yes, orelse=no):
            return ("if", _tree(test, places), _tree(yes, places), _tree(no, places))
        case ast.Call(func=ast.Attribute(value=value, attr="conjugate"), args=[], keywords=[]):
            return ("conj", _tree(value, places))
        case ast.Call(ast.Attribute(ast.Name(id=space), name), args=args, keywords=[]) if space in _SPACES:
            return _call(space, name, args, places)
        case ast.Name(id=space) if space in _SPACES:
            return (space,)
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=args, keywords=[]) if len(args) < _MOST_PARTS:
            return ("method", name, _tree(value, places), *[_tree(a, places) for a in args])
        case ast.Attribute(value=value, attr=name):
            return ("attribute", name, _tree(value, places))
    raise _NoDescription


def _call(space: str, name: str, args: list[ast.expr], places: dict[str, Any]) -> Any:
    parts = [_tree(a, places) for a in args]
    if len(parts) > _MOST_PARTS:
        raise _NoDescription
    return ("call", space, name, *parts)


# --------------------------------------------------------------------------------------------------------- operators


def _operator(entry: Entry) -> Any:
    """The description of an operator; None if it is left to Python."""
    schema = entry.schema
    if entry.file.removesuffix(".yaml") not in _FAMILIES:
        return None
    if entry.view or schema.returns_list or len(schema.results) > 1:
        return None
    if entry.tensor_node or entry.number_nodes or entry.given_nodes or len(schema.arguments) > _MOST_OPERANDS:
        return None
    recorded = entry.differentiable_arguments
    kinds, constants = "", []
    for a in schema.arguments:
        kind = _KINDS.get(a.type)
        default = a.default is not None
        if (kind is None or a.name == "alpha") and default:
            kind = "C"  # as it is unless it is given
        elif kind in ("T", "O") and a not in recorded and entry.differentiable:
            kind = "A" if kind == "T" else "C"  # of indices and masks; None
        if kind is None or (kind == "N" and default) or a.is_list:
            return None
        kinds += kind
        constants.append(ast.literal_eval(a.default) if default else None)  # type: ignore[arg-type]
    if kinds[0] != "T" or len(recorded) > _MOST_EDGES:
        return None
    saves = _saves(entry) if entry.differentiable else ()
    if saves is None or len(saves) > _MOST_SAVES or (entry.saves and not entry.differentiable):
        return None
    edges = tuple(schema.arguments.index(a) for a in recorded)
    return (kinds, tuple(constants), entry.kernel, entry.node if entry.differentiable else None, edges, saves)


def _saves(entry: Entry) -> Any:
    """(kind, argument, edges that ask for it, slot, slot of the result's counter)."""
    slots, recorded = Slots(entry), [a.name for a in entry.differentiable_arguments]
    place = {a.name: i for i, a in enumerate(entry.schema.arguments)}
    found: list[Any] = []
    for a in slots.tensors:
        readers = needed_by(entry, a.name) if len(recorded) > 1 else recorded
        found.append(("t", place[a.name], sum(1 << recorded.index(r) for r in set(readers)), f"{a.name}_", None))
    for a, what in slots.attributes:
        if a.type != "Tensor" or what not in _ATTRIBUTES:
            return None
        found.append((_ATTRIBUTES[what], place[a.name], 0, f"{a.name}_{what}", None))
    if slots.result_attributes:
        return None
    found += [("a", place[a.name], 0, f"{a.name}_", None) for a in slots.plain]
    found += [("r", 0, 0, f"{r}_", f"{r}_vc") for r, _ in slots.results]
    found += [("k", i, 0, f"{s}_", None) for i, s in enumerate(slots.saves, 1)]  # what the kernel gave besides
    return tuple(found)
