"""Writes ``_generated/jvps.py``: the tangent of each operator's result, from the table's ``result`` column.

One function an entry: ``mul(result, self_p, self_t, other_p, other_t)``.  Primals and tangents are Tensors; a tangent
that is zero is None.  A formula that is a sum of terms, each linear in one tangent, is written term by term, so that
what does not vary costs nothing; any other gets zeros for the tangents that there are not.

``FORWARD`` says, for each operator, how forward_ad.py gets from a call to the arguments of that function.
"""

from __future__ import annotations

import ast

from .formula import Names, lower
from .nodes import Slots
from .schema import Argument
from .table import Entry

HEADER = '''"""Forward-mode formulas, generated from derivatives/*.yaml. Do not edit: change the table."""

from __future__ import annotations

import retrograd.ops as ops
from retrograd.autograd.forward_formula import ForwardFormula
from retrograd.derivatives import formulas
from retrograd.op_support import conj_tangent, zero_tangent, zero_tangents
'''


def write_jvps(entries: list[Entry], names: Names) -> str:
    """The source of the module."""
    parts = [HEADER]
    differentiable = [entry for entry in entries if entry.differentiable]
    written = [entry for entry in differentiable if entry.forward != "not_implemented"]
    parts += [_jvp(entry, names) for entry in written]
    parts.append("\n\nJVPS = {\n" + "".join(f'    "{e.name}": {e.name},\n' for e in written) + "}\n")
    parts.append("\nFORWARD = {\n" + "".join(_forward(e) for e in differentiable) + "}\n")
    return "".join(parts)


def parameters(entry: Entry) -> list[str]:
    """What a jvp function takes: results, then the arguments, differentiable ones as a pair."""
    differentiable = entry.differentiable_arguments
    result = list(entry.schema.results)
    for a in entry.schema.arguments:
        result += [f"{a.name}_p", f"{a.name}_t"] if a in differentiable else [a.name]
    return result


def _jvp(entry: Entry, names: Names) -> str:
    differentiable = entry.differentiable_arguments
    lines = [f"\n\ndef {entry.name}({', '.join(parameters(entry))}):"]
    if entry.forward == "auto_linear":
        lines.append(f"    # linear in {', '.join(a.name for a in differentiable)}")
        lines += _zeros(differentiable)
        call = ", ".join(
            (f"{a.name}=" if a.keyword_only else "*" if a.type == "int[]..." else "")
            + (f"{a.name}_t" if a in differentiable else a.name)
            for a in entry.schema.arguments
        )
        lines.append(f"    return ops.{entry.name}({call})")
    elif entry.forward == "auto_elementwise":
        rename = {a.name: f"{a.name}_p" for a in differentiable}
        if len(entry.formulas) == 1:
            (name,) = entry.formulas[0].arguments
            text = lower(entry.formulas[0].tree, False, names, {**rename, "grad": "direction"})
            lines += [f"    direction = conj_tangent({name}_t)", f"    return conj_tangent({text})"]
            return "\n".join(lines) + "\n"
        lines.append("    tangent = None")
        for f in entry.formulas:
            (name,) = f.arguments
            text = lower(f.tree, False, names, {**rename, "grad": "direction"})
            lines += [f"    if {name}_t is not None:", f"        direction = conj_tangent({name}_t)"]
            lines += [f"        term = conj_tangent({text})"]
            lines += ["        tangent = term if tangent is None else tangent + term"]
        lines.append("    return tangent")
    else:
        tree = entry.forward_trees["result"]
        terms = _terms(tree, differentiable)
        if terms is None:
            lines += _zeros(differentiable)
            lines.append(f"    return {lower(tree, False, names)}")
        else:
            lines.append("    tangent = None")
            for tangent, plus, term in terms:
                lines += [f"    if {tangent} is not None:", f"        term = {lower(term, False, names)}"]
                more = (
                    "term if tangent is None else tangent + term"
                    if plus
                    else "-term if tangent is None else tangent - term"
                )
                lines += [f"        tangent = {more}"]
            lines.append("    return tangent")
    return "\n".join(lines) + "\n"


def _terms(tree: ast.expr, differentiable: list[Argument]) -> list[tuple[str, bool, ast.expr]] | None:
    """The formula as a sum: (tangent, plus or minus, term), if each term reads exactly one tangent."""
    if len(differentiable) < 2 or any(a.is_list for a in differentiable):
        return None
    tangents = {f"{a.name}_t" for a in differentiable}
    terms = []
    for plus, term in _summands(tree, True):
        read = {n.id for n in ast.walk(term) if isinstance(n, ast.Name) and n.id in tangents}
        if len(read) != 1:
            return None
        terms.append((read.pop(), plus, term))
    return terms


def _summands(tree: ast.expr, plus: bool) -> list[tuple[bool, ast.expr]]:
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Add, ast.Sub)):
        return _summands(tree.left, plus) + _summands(tree.right, plus == isinstance(tree.op, ast.Add))
    return [(plus, tree)]


def _zeros(arguments: list[Argument]) -> list[str]:
    lines = []
    for a in arguments:
        function = "zero_tangents" if a.is_list else "zero_tangent"
        lines += (
            [f"    if {a.name}_t is None:", f"        {a.name}_t = {function}({a.name}_p)"]
            if not a.is_list
            else [f"    {a.name}_t = {function}({a.name}_p, {a.name}_t)"]
        )
    return lines


def _forward(entry: Entry) -> str:
    """The entry of FORWARD."""
    arguments = entry.schema.arguments
    differentiable = entry.differentiable_arguments
    plan = "".join(f"{'list' if a.is_list else 'True'}, " if a in differentiable else "False, " for a in arguments)
    spread = next((str(i) for i, a in enumerate(arguments) if a.type == "int[]..."), "None")
    results = "".join(f'"{r}", ' for r in entry.schema.results)
    function = "None" if entry.forward == "not_implemented" else entry.name
    return (
        f'    "{entry.name}": ForwardFormula("{entry.schema.base}", {function}, ({plan.strip()}), {spread}, '
        f"({results.strip()}), {entry.schema.returns_list}, {entry.view}, {_needs_original(entry)}),\n"
    )


def _needs_original(entry: Entry) -> bool:
    """Does an in-place call have to keep what it overwrites, for this formula or for the node that it records?"""
    if any(a.name == "self" for a in Slots(entry).tensors):
        return True
    if entry.forward == "auto_elementwise":
        return any(f.reads.value("self") for f in entry.formulas)
    tree = entry.forward_trees.get("result")
    return tree is not None and any(isinstance(n, ast.Name) and n.id == "self_p" for n in ast.walk(tree))
