"""Writes ``_generated/jvps.py``: the tangent of each operator's result, from the table's ``result`` column.

One function an entry: ``mul(result, self_p, self_t, other_p, other_t)``.  Primals and tangents are Tensors; a tangent
that is zero is None.  A formula that is a sum of terms, each linear in one tangent, is written term by term, so that
what does not vary costs nothing; any other gets zeros for the tangents that there are not.

An operator that makes one new tensor of tensors and numbers has a second function, ``mul_duals(state, level, input,
other)``: the whole operator on dual tensors, for when nothing of it is recorded.  It calls the kernel and has the same
formula once more, over bare arrays.  It gives UNVARIED if nothing is dual, and None if the case is not that common.

``FORWARD`` says, for each operator, how forward_operators.py gets from a call to the arguments of these functions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from .formula import Names, lower
from .nodes import Slots
from .schema import Argument
from .table import Entry

HEADER = '''"""Forward-mode formulas, generated from derivatives/*.yaml. Do not edit: change the table."""

from __future__ import annotations

from retrograd.core.late import operators as ops
from retrograd import kernels
from retrograd.autograd.forward_formula import ForwardFormula
from retrograd.autograd.forward_operators import NUMBERS, RECORDED, UNVARIED, dual_result, tangent_array
from retrograd.derivatives import formulas
from retrograd.ops.support import conj_tangent, zero_tangent, zero_tangents
from retrograd.tensor import Tensor
'''


#: Arguments that a kernel takes as the operator got them, apart from Tensors.
PLAIN = {"Tensor", "Tensor?", "Tensor|Scalar", "Scalar", "Scalar?", "int", "int?", "float", "float?", "bool",
         "bool?", "str", "str?"}  # fmt: skip


def write_jvps(entries: list[Entry], names: Names) -> str:
    """The source of the module."""
    parts = [HEADER]
    written = [entry for entry in entries if entry.differentiable and entry.forward != "not_implemented"]
    for entry in written:
        parts.append(_jvp(entry, names))
        if has_duals(entry):
            parts.append(_duals(entry, names))
    parts.append("\n\nFORWARD = {\n" + "".join(_forward(e) for e in entries if e.forward) + "}\n")
    return "".join(parts)


def parameters(entry: Entry) -> list[str]:
    """What a jvp function takes: results, then the arguments, differentiable ones as a pair."""
    differentiable = entry.differentiable_arguments
    result = list(entry.schema.results)
    for a in entry.schema.arguments:
        result += [f"{a.name}_p", f"{a.name}_t"] if a in differentiable else [a.name]
    return result


def has_duals(entry: Entry) -> bool:
    """Is there a second function, over arrays?"""
    return (
        not entry.view
        and not entry.saves
        and entry.schema.results == ["result"]
        and not entry.schema.returns_list
        and entry.forward != "not_implemented"
        and all(a.type in PLAIN for a in entry.schema.arguments)
    )


def refused(entry: Entry) -> list[str]:
    """The arguments that may not vary: there is no formula for the operator, or not for them."""
    if entry.forward == "not_implemented":
        return [a.name for a in entry.schema.arguments if a.is_tensor]
    if entry.forward == "auto_elementwise":
        return [f.arguments[0] for f in entry.formulas if _is_refusal(f.tree)]
    tree = entry.forward_trees.get("result")
    terms = None if tree is None else _terms(tree, entry.differentiable_arguments)
    return [tangent.removesuffix("_t") for tangent, _, term in terms or () if _is_refusal(term)]


def _is_refusal(tree: ast.expr) -> bool:
    """Is it ``not_implemented(...)``?"""
    return isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "not_implemented"


def _jvp(entry: Entry, names: Names) -> str:
    lines = [f"\n\ndef {entry.name}({', '.join(parameters(entry))}):", *_formula(entry, names, arrays=False)]
    return "\n".join(lines) + "\n    return tangent\n"


def _formula(entry: Entry, names: Names, arrays: bool) -> list[str]:
    """The lines that compute `tangent`."""
    differentiable = entry.differentiable_arguments
    if entry.forward == "auto_linear":
        return [*_zeros(differentiable), f"    tangent = {_linear(entry, arrays)}"]
    if entry.forward == "auto_elementwise":
        return _elementwise(entry, names, arrays)
    tree = entry.forward_trees["result"]
    numerator, divisor = _quotient(tree, differentiable)
    terms = _terms(numerator, differentiable)
    if terms is None:
        return [*_zeros(differentiable), f"    tangent = {lower(tree, arrays, names)}"]
    lines = _sum(
        (tangent, plus, [], lower(term, arrays, names)) for tangent, plus, term in terms if not _is_refusal(term)
    )
    return lines if divisor is None else [*lines, f"    tangent = tangent / ({lower(divisor, arrays, names)})"]


def _duals(entry: Entry, names: Names) -> str:
    """The operator on dual tensors, over arrays."""
    arguments, differentiable = entry.schema.arguments, entry.differentiable_arguments
    lines = [f"\n\ndef {entry.name}_duals(state, level, {', '.join(a.parameter for a in arguments)}):"]
    lines.append("    " + " = ".join(f"{a.name}_t" for a in differentiable) + " = None")
    given = []
    for a in arguments:
        name = f"{a.name}_p" if a in differentiable else a.name
        given.append(name)
        lines += _taken(a, name, a in differentiable)
    missing = " and ".join(f"{a.name}_t is None" for a in differentiable)
    recorded = " or ".join(
        f"{a.name}_t is {'not None' if a.name in refused(entry) else 'RECORDED'}" for a in differentiable
    )
    lines += [f"    if {missing}:", "        return UNVARIED", f"    if {recorded}:", "        return None"]
    call = ", ".join(given)
    lines += [f"    result = kernels.{entry.kernel}({call})", *_formula(entry, names, arrays=True)]
    is_given = " or ".join(f"tangent is {a.name}_t" for a in differentiable)
    lines.append(f"    return dual_result(state, level, result, tangent, {is_given})")
    return "\n".join(lines) + "\n"


def _taken(a: Argument, name: str, differentiable: bool) -> list[str]:
    """An argument of a call as the kernel takes it, and its tangent."""
    p = a.parameter
    if not a.is_tensor:
        lines = [f"    if {p}.__class__ not in NUMBERS:", "        return None"]
        return lines if name == p else [*lines, f"    {name} = {p}"]
    lines = [f"    if {p}.__class__ is Tensor or isinstance({p}, Tensor):", f"        {name} = {p}._numbers_"]
    if differentiable:
        lines += [f"        if {p}._grad_meta_ is not None or {p}._edge_ is not None:"]
        lines += [f"            {a.name}_t = tangent_array(state, {p}, level)"]
    if a.type != "Tensor":
        lines += [f"    elif {p}.__class__ in NUMBERS:", f"        {name} = {p}"]
    return [*lines, "    else:", "        return None"]


def _linear(entry: Entry, arrays: bool) -> str:
    """The operator, of the tangents."""
    given = [f"{a.name}_t" if a in entry.differentiable_arguments else a.name for a in entry.schema.arguments]
    if arrays:
        return f"kernels.{entry.kernel}({', '.join(given)})"
    call = ", ".join(
        (f"{a.name}=" if a.keyword_only else "*" if a.type == "int[]..." else "") + value
        for a, value in zip(entry.schema.arguments, given, strict=True)
    )
    return f"ops.{entry.name}({call})"


def _elementwise(entry: Entry, names: Names, arrays: bool) -> list[str]:
    """The reverse formula of each tangent: right for a diagonal Jacobian, up to conjugation."""
    rename = {a.name: f"{a.name}_p" for a in entry.differentiable_arguments}
    conjugate = "({}).conjugate()" if arrays else "conj_tangent({})"
    parts = []
    for f in entry.formulas:
        (name,) = f.arguments
        if name in refused(entry):
            continue
        text = lower(f.tree, arrays, names, {**rename, "grad": "direction"})
        direction = conjugate.format(f"{name}_t")
        parts.append((f"{name}_t", True, [f"direction = {direction}"], conjugate.format(text)))
    if len(parts) == 1:
        _, _, before, term = parts[0]
        return [f"    {line}" for line in [*before, f"tangent = {term}"]]
    return _sum(parts)


def _sum(parts: Iterable[tuple[str, bool, list[str], str]]) -> list[str]:
    """A sum, without the terms whose tangent there is not: (tangent, plus or minus, lines before, term)."""
    lines = ["    tangent = None"]
    for position, (tangent, plus, before, term) in enumerate(parts):
        lines.append(f"    if {tangent} is not None:")
        lines += [f"        {line}" for line in before]
        if position == 0:
            lines.append(f"        tangent = {term if plus else f'-({term})'}")
            continue
        lines.append(f"        term = {term}")
        first, more = ("term", "tangent + term") if plus else ("-term", "tangent - term")
        lines.append(f"        tangent = {first} if tangent is None else {more}")
    return lines


def _quotient(tree: ast.expr, differentiable: list[Argument]) -> tuple[ast.expr, ast.expr | None]:
    """A formula as what is divided and by what, where the divisor reads no tangent; else the whole and None."""
    tangents = {f"{a.name}_t" for a in differentiable}
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Div):
        if not any(isinstance(n, ast.Name) and n.id in tangents for n in ast.walk(tree.right)):
            return tree.left, tree.right
    return tree, None


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
    refuses = refused(entry)
    differentiable = [a for a in arguments if a in entry.differentiable_arguments or a.name in refuses]
    plan = "".join(f"{'list' if a.is_list else 'True'}, " if a in differentiable else "False, " for a in arguments)
    spread = next((str(i) for i, a in enumerate(arguments) if a.type == "int[]..."), "None")
    results = "".join(f'"{r}", ' for r in entry.schema.results)
    function = "None" if entry.forward == "not_implemented" else entry.name
    duals = f"{entry.name}_duals" if has_duals(entry) else "None"
    positions = "".join(f"{i}, " for i, a in enumerate(arguments) if a.name in refuses)
    return (
        f'    "{entry.name}": ForwardFormula("{entry.schema.base}", {function}, ({plan.strip()}), {spread}, '
        f"({results.strip()}), {entry.view}, {_needs_original(entry)}, {duals}, ({positions.strip()})),\n"
    )


def _needs_original(entry: Entry) -> bool:
    """Does an in-place call have to keep what it overwrites, for this formula or for the node that it records?"""
    if any(a.name == "self" for a in Slots(entry).tensors):
        return True
    if entry.forward == "auto_elementwise":
        return any(f.reads.value("self") for f in entry.formulas)
    tree = entry.forward_trees.get("result")
    return tree is not None and any(isinstance(n, ast.Name) and n.id == "self_p" for n in ast.walk(tree))
