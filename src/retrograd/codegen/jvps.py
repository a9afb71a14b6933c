"""Writes ``_generated/jvps.py``: the tangent of each operator's result, from the table's ``result`` column.

One function an entry: ``mul(result, self_p, self_t, other_p, other_t)``.  Primals and tangents are Tensors; a tangent
that is zero is None, except that a formula written out in the table gets zeros for it.
"""

from __future__ import annotations

from .formula import Names, lower
from .schema import Argument
from .table import Entry

HEADER = '''"""Forward-mode formulas, generated from derivatives/*.yaml. Do not edit: change the table."""

from __future__ import annotations

import retrograd.ops as ops
from retrograd.derivatives import formulas
from retrograd.op_support import add_tangents, conj_tangent, zero_tangent, zero_tangents
'''


def write_jvps(entries: list[Entry], names: Names) -> str:
    """The source of the module."""
    parts = [HEADER]
    written = []
    for entry in entries:
        if entry.differentiable and entry.forward != "not_implemented":
            parts.append(_jvp(entry, names))
            written.append(entry.name)
    parts.append("\n\nJVPS = {\n" + "".join(f'    "{name}": {name},\n' for name in written) + "}\n")
    return "".join(parts)


def parameters(entry: Entry) -> list[str]:
    """What a jvp function takes: results, saved values, then the arguments, differentiable ones as a pair."""
    differentiable = entry.differentiable_arguments
    result = [*entry.schema.results, *entry.saves]
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
        lines.append("    tangent = None")
        rename = {a.name: f"{a.name}_p" for a in differentiable}
        for f in entry.formulas:
            (name,) = f.arguments
            text = lower(f.tree, False, names, {**rename, "grad": "direction"})
            lines += [f"    if {name}_t is not None:", f"        direction = conj_tangent({name}_t)"]
            lines += [f"        tangent = add_tangents(tangent, conj_tangent({text}))"]
        lines.append("    return tangent")
    else:
        lines += _zeros(differentiable)
        lines.append(f"    return {lower(entry.forward_trees['result'], False, names)}")
    return "\n".join(lines) + "\n"


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
