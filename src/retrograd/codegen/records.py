"""Writes ``_generated/records.py``: what the table says of each operator, for those who ask at run time."""

from __future__ import annotations

from typing import Any

from .nodes import Slots
from .table import Entry

HEADER = '''"""What each operator is, generated from derivatives/*.yaml. Do not edit: change the table."""

from __future__ import annotations

from retrograd.core.records import OperatorRecord

from . import functions

RECORDS = {
'''


def write_records(entries: list[Entry]) -> str:
    """The source of the module."""
    parts = [HEADER]
    for entry in entries:
        parts.append(_record(entry))
        if entry.inplace:
            parts.append(_record(entry, inplace=True))
    return "".join(parts) + "}\n"


def _record(entry: Entry, inplace: bool = False) -> str:
    slots, mark = Slots(entry), "_" if inplace else ""
    base, text = entry.schema.base, entry.schema.text
    overload = f".{entry.schema.overload}" if entry.schema.overload else ""
    fields: dict[str, Any] = {
        "name": entry.name + mark,
        "base": base + mark,
        "overloads": tuple(entry.inplace_overloads if inplace else entry.overloads),
        "schema": f"{base}{mark}{overload}" + text[len(base) + len(overload) :],
        "arguments": tuple(a.parameter for a in entry.schema.arguments),
        "kernel": entry.kernel,
        "family": entry.file.removesuffix(".yaml"),
        "aliases": tuple(alias + mark for alias in entry.aliases),
        "inplace": f"{entry.name}_" if entry.inplace and not inplace else None,
        "form_of": entry.name if inplace else None,
        "view": entry.view,
        "flips": entry.flips,
        "refuses": entry.refuses,
        "changes_elements": entry.changes_elements,
        "may_overlap": entry.may_overlap,
        "apart": tuple(a.parameter for a in entry.schema.arguments if a.name in entry.apart),
        "nodes": entry.nodes,
        "saves": (*(a.name for a in slots.tensors), *(r for r, _ in slots.results), *slots.saves),
        "differentiable": tuple(a.name for a in entry.differentiable_arguments),
        "output_differentiability": tuple(entry.output_differentiability),
        "masks": entry.masks,
    }
    given = ", ".join(f"{field}={value!r}" for field, value in fields.items() if value)
    return f"    functions.{entry.name}{mark}: OperatorRecord({given}),\n"
