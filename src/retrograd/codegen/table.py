"""The table: the YAML files of ``derivatives/`` read, checked and turned into `Entry` objects.

A mistake is an error that names file, line, entry and column:

    arithmetic.yaml:12: mul: column 'other': unknown name 'slef'; the formula may use grad, other, self
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from . import formula
from .schema import SPACES, Argument, Schema, SchemaError, parse_schema, place

OPTIONS = {
    "name", "result", "output_differentiability", "view", "inplace", "operators", "method", "kernel", "saves", "doc",
    "differentiable", "aliases", "ufunc", "inline", "first", "node",
    "tensor_node", "flips", "refuses", "overloads", "apart",
    "may_overlap", "changes_elements", "masks", "space", "inplace_function", "inplace_node", "number_nodes",
    "given_nodes", "old_form", "saved", "inplace_not_negative",
}  # fmt: skip
SHORTHANDS = ("auto_elementwise", "auto_linear", "not_implemented")


class TableError(ValueError):
    """A mistake in the table."""


@dataclass
class Formula:
    """The reverse formula of one argument, or of several that are computed together."""

    arguments: list[str]
    text: str
    tree: ast.expr
    reads: formula.Reads


@dataclass
class Entry:
    """One operator of the table."""

    schema: Schema
    line: int
    file: str = ""
    formulas: list[Formula] = field(default_factory=list)
    forward: str | None = None
    forward_trees: dict[str, ast.expr] = field(default_factory=dict)
    output_differentiability: list[bool] = field(default_factory=list)
    view: bool = False
    inplace: bool = False
    #: Is the in-place variant a function too?
    inplace_function: bool = False
    #: The namespace that it stands in: one of `schema.SPACES`.
    space: str = "torch"
    operators: list[str] = field(default_factory=list)
    method: bool = True
    kernel: str = ""
    #: Further values that the kernel returns after its results, kept for the formulas.
    saves: list[str] = field(default_factory=list)
    #: What ``node._saved_NAME`` shows besides what the formulas read, and what it does not show of that (None).
    saved: dict[str, Formula | None] = field(default_factory=dict)
    doc: str = ""
    #: The ufunc that the kernel is for two arrays of one dtype: special methods call it without the kernel.
    ufunc: str = ""
    #: Of a view: what the kernel is in the plain case.
    inline: str = ""
    #: An array expression for a view, and the test that it is meant for: "self[index, ...] if dim == 0".
    first: str = ""
    aliases: list[str] = field(default_factory=list)
    #: The bit of its input that the result has flipped, of a view that differs from it in this: "conj" or "neg".
    flips: str = ""
    #: The bit that its input may not have, of a view.
    refuses: str = ""
    #: Are the elements of the result, a view, other numbers than those of the base?
    changes_elements: bool = False
    #: May the in-place form write to a tensor whose elements overlap? "warned": with a warning.
    may_overlap: bool | str = False
    #: Arguments that are read elsewhere than is written.
    apart: list[str] = field(default_factory=list)
    #: Does it throw elements away?
    masks: bool = False
    #: May its factors stand before the tensors?
    old_form: bool = False
    #: Torch's names for the forms that the function stands for, and for those of its in-place form.
    overloads: list[str] = field(default_factory=list)
    inplace_overloads: list[str] = field(default_factory=list)
    #: The name of the node class; unless given, numbered among the overloads of one operator as torch does it.
    node: str = ""
    tensor_node: str = ""
    inplace_node: str = ""
    inplace_not_negative: str = ""
    #: Of an operator that takes numbers for several of its tensors: the node where one is a number.
    number_nodes: dict[str, str] = field(default_factory=dict)
    #: The node where an argument that may be None is given.
    given_nodes: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.schema.name

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of all its node classes."""
        others = (*self.number_nodes.values(), *self.given_nodes.values())
        return tuple(n for n in (self.node, self.tensor_node, *others, self.inplace_node) if n)

    @property
    def differentiable(self) -> bool:
        return bool(self.formulas)

    def places(self) -> list[tuple[str, str, bool]]:
        """(namespace, name, whether it is the in-place variant), for every name that users find the operator under."""
        found = []
        for name in (self.schema.base, *self.aliases):
            space, own = place(name, self.space)
            everywhere = "." not in name
            method = space == "Tensor" or (self.method and everywhere)
            if space not in ("Tensor", "internal"):
                found.append((space, own, False))
            if method:
                found.append(("Tensor", own, False))
            if self.inplace and (method or (self.inplace_function and self.space == "internal")):
                found.append(("Tensor", f"{own}_", True))
            if everywhere and self.inplace_function:
                found.append(("torch", f"{own}_", True))
        return found

    def output_nr(self, position: int) -> int:
        """Which of the node's incoming gradients is that of a result: those without a gradient are not counted."""
        return sum(self.output_differentiability[:position])

    @property
    def differentiable_arguments(self) -> list[Argument]:
        """Arguments that get an edge, in the order of the signature."""
        named = {name for f in self.formulas for name in f.arguments}
        return [a for a in self.schema.arguments if a.name in named]

    def for_numbers(self) -> Entry:
        """The entry as it is where numbers are given: they have no edges if torch has a node of its own for that."""
        if not self.tensor_node:
            return self
        return self.without({a.name for a in self.schema.arguments if a.type == "Tensor|Scalar"})

    def without(self, numbers: set[str]) -> Entry:
        """The entry as it is where these arguments are numbers, which have no edges."""
        return replace(self, formulas=[f for f in self.formulas if not numbers.intersection(f.arguments)])

    @property
    def readers(self) -> list[Formula]:
        """Whatever reads what a node has saved: the formulas, and what it shows besides."""
        return [*self.formulas, *(f for f in self.saved.values() if f is not None)]

    def reads(self) -> formula.Reads:
        """What all of them together read."""
        total = formula.Reads()
        for f in self.readers:
            for name, what in f.reads.of.items():
                total.of.setdefault(name, set()).update(what)
        return total


def load_table(paths: list[Path], names: formula.Names) -> list[Entry]:
    """Read and check the table."""
    entries = [entry for path in paths for entry in _load_file(path, names)]
    _check_unique(entries)
    _name_nodes(entries)
    # Every operator of the table can be called in formulas; calls are checked once all names are known.
    known = formula.Names(names.kernels, names.ops | {e.name for e in entries}, names.helpers)
    for entry in entries:
        _check_formulas(entry, f"{entry.file}:{entry.line}: {entry.name}", known)
    return entries


def _load_file(path: Path, names: formula.Names) -> list[Entry]:
    try:
        document = yaml.compose(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise TableError(f"{path.name}:{mark.line + 1 if mark else 1}: not YAML: {error.problem}") from None
    if document is not None and not isinstance(document, yaml.SequenceNode):
        raise TableError(f"{path.name}:{document.start_mark.line + 1}: a table is a list of entries ('- name: ...')")
    entries = []
    for node in document.value if document is not None else ():
        line = node.start_mark.line + 1
        where = f"{path.name}:{line}"
        if not isinstance(node, yaml.MappingNode):
            raise TableError(f"{where}: an entry is made of columns ('name: ...')")
        columns: dict = {}
        for key, value in node.value:
            if key.value in columns:
                entry_name = str(columns.get("name", "?")).split("(")[0]
                raise TableError(f"{where}: {entry_name}: column {key.value!r}: appears twice")
            columns[key.value] = yaml.safe_load(yaml.serialize(value))
        if "name" not in columns:
            raise TableError(f"{where}: an entry needs a 'name' column")
        try:
            schema = parse_schema(columns["name"])
        except SchemaError as error:
            raise TableError(f"{where}: column 'name': {error}") from None
        entry = _entry(schema, columns, line, f"{where}: {columns['name'].split('(')[0]}", names)
        entry.file = path.name
        entries.append(entry)
    return entries


def _entry(schema: Schema, columns: dict, line: int, where: str, names: formula.Names) -> Entry:
    entry = Entry(schema, line)
    entry.view = bool(columns.get("view", False))
    entry.inplace = bool(columns.get("inplace", False))
    entry.inplace_function = bool(columns.get("inplace_function", False))
    own = schema.overload or schema.base.startswith("_")
    entry.space = columns.get("space", "internal" if own else "torch")
    if entry.space not in SPACES:
        raise TableError(f"{where}: column 'space': {entry.space!r} is none of {', '.join(SPACES)}")
    entry.operators = list(columns.get("operators", []))
    has_method = entry.space in ("torch", "Tensor") and schema.arguments[0].name == "self"
    entry.method = bool(columns.get("method", has_method))
    entry.kernel = columns.get("kernel", schema.base)
    saves = columns.get("saves", [])
    entry.saves = saves.replace(",", " ").split() if isinstance(saves, str) else list(saves)
    entry.doc = columns.get("doc", "")
    entry.ufunc = columns.get("ufunc", "")
    entry.inline = columns.get("inline", "")
    entry.first = columns.get("first", "")
    entry.aliases = list(columns.get("aliases", []))
    entry.node = columns.get("node", "")
    entry.tensor_node = columns.get("tensor_node", "")
    entry.inplace_node = columns.get("inplace_node", "")
    entry.inplace_not_negative = columns.get("inplace_not_negative", "")
    entry.number_nodes = dict(columns.get("number_nodes", {}))
    entry.given_nodes = dict(columns.get("given_nodes", {}))
    entry.saved = {name: _shown(name, text, where) for name, text in columns.get("saved", {}).items()}
    _read_facts(entry, columns, where)
    forward = columns.get("result")
    entry.forward = str(forward).strip() if forward is not None else None
    if entry.kernel not in names.kernels:
        raise TableError(f"{where}: column 'kernel': there is no kernel {entry.kernel!r} in kernels/")
    tensors = {a.name for a in schema.arguments if a.is_tensor}
    for column, text in columns.items():
        if column in OPTIONS:
            continue
        arguments = [part.strip() for part in column.split(",")]
        for argument in arguments:
            if argument not in tensors:
                raise TableError(f"{where}: column {column!r}: {argument!r} is not a tensor argument of the operator")
            if any(argument in f.arguments for f in entry.formulas):
                raise TableError(f"{where}: column {column!r}: {argument!r} has a formula already")
        if str(text).strip() == "non_differentiable":
            continue
        try:
            tree = formula.parse(str(text))
        except formula.FormulaError as error:
            raise TableError(f"{where}: column {column!r}: {error}") from None
        entry.formulas.append(Formula(arguments, str(text), tree, formula.Reads()))
    given = columns.get("output_differentiability")
    entry.output_differentiability = list(given) if given is not None else [entry.differentiable] * len(schema.results)
    if len(entry.output_differentiability) != len(schema.results):
        raise TableError(
            f"{where}: column 'output_differentiability': {len(entry.output_differentiability)} values for "
            f"{len(schema.results)} results"
        )
    if not entry.formulas and columns.get("differentiable", True) and tensors:
        raise TableError(
            f"{where}: missing formula: none of {', '.join(sorted(tensors))} has one. Write 'differentiable: false' "
            "if the operator has no derivative"
        )
    if entry.formulas and not columns.get("differentiable", True):
        raise TableError(f"{where}: column 'differentiable': false, but the entry has formulas")
    if entry.formulas and entry.forward is None:
        raise TableError(f"{where}: missing formula: column 'result' (the tangent), or one of {', '.join(SHORTHANDS)}")
    return entry


def _shown(name: str, text: object, where: str) -> Formula | None:
    """What a line of the column ``saved`` says: an expression, or nothing."""
    if text is None:
        return None
    try:
        return Formula([], str(text), formula.parse(str(text)), formula.Reads())
    except formula.FormulaError as error:
        raise TableError(f"{where}: column 'saved': {name}: {error}") from None


def _read_facts(entry: Entry, columns: dict, where: str) -> None:
    """The columns that only say something, for the records."""
    tensors = [a.name for a in entry.schema.arguments if a.is_tensor]
    for column in ("flips", "refuses"):
        bit = columns.get(column, "")
        if bit not in ("", "conj", "neg") or (bit and not entry.view):
            raise TableError(f"{where}: column {column!r}: must be conj or neg, of a view")
        setattr(entry, column, bit)
    for column, holds, of in (
        ("may_overlap", entry.inplace, "an operator with 'inplace'"),
        ("changes_elements", entry.view, "a view"),
        ("masks", columns.get("differentiable", True), "an operator with a derivative"),
        ("old_form", any(a.keyword_only for a in entry.schema.arguments), "an operator with factors"),
    ):
        value = columns.get(column, False)
        also = ("warned",) if column == "may_overlap" else ()
        if not (isinstance(value, bool) or value in also) or (value and not holds):
            words = " or ".join(["true", "false", *also])
            raise TableError(f"{where}: column {column!r}: must be {words}, of {of}")
        setattr(entry, column, value)
    entry.changes_elements = entry.changes_elements or bool(entry.flips)
    entry.apart = _words(columns.get("apart", []), f"{where}: column 'apart'")
    if entry.apart and (entry.view or not set(entry.apart) <= set(tensors)):
        raise TableError(f"{where}: column 'apart': must be of {', '.join(tensors)}, and not of a view")
    own = [entry.schema.overload or "default"]
    entry.overloads = _words(columns.get("overloads", own), f"{where}: column 'overloads'")
    given = columns.get("inplace", False)
    if not isinstance(given, bool):
        entry.inplace_overloads = _words(given, f"{where}: column 'inplace'")
    elif given:
        entry.inplace_overloads = entry.overloads


def _words(value: object, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(word, str) and word.isidentifier() for word in value):
        raise TableError(f"{where}: must be a list of names, not {value!r}")
    if len(set(value)) != len(value):
        raise TableError(f"{where}: names one twice")
    return value


def _check_formulas(entry: Entry, where: str, names: formula.Names) -> None:
    schema = entry.schema
    arguments = {a.name for a in schema.arguments}
    results = set(schema.results) | set(entry.saves)
    gradients = {"grad", "grads"}
    for f in entry.formulas:
        column = ", ".join(f.arguments)
        try:
            f.reads = formula.reads(f.tree, arguments | results | gradients | {"edges"}, names)
        except formula.FormulaError as error:
            raise TableError(f"{where}: column {column!r}: {error}") from None
        if not gradients & set(f.reads.of):
            constant = isinstance(f.tree, ast.Call) and any(n in f.text for n in ("zeros", "not_differentiable"))
            if not constant:
                raise TableError(f"{where}: column {column!r}: the formula reads neither 'grad' nor 'grads'")
        if "grad" in f.reads.of and sum(entry.output_differentiability) > 1 and not schema.returns_list:
            raise TableError(f"{where}: column {column!r}: 'grad' is ambiguous, the operator has several results")
    for name, shown in entry.saved.items():
        if shown is not None:
            try:
                shown.reads = formula.reads(shown.tree, arguments | results, names)
            except formula.FormulaError as error:
                raise TableError(f"{where}: column 'saved': {name}: {error}") from None
    total = entry.reads()
    for name in entry.saves:
        if name not in total.of:
            raise TableError(f"{where}: column 'saves': {name!r} is saved, but no formula reads it")
    _check_forward(entry, where, names)


def _check_forward(entry: Entry, where: str, names: formula.Names) -> None:
    text = entry.forward
    if text is None or text in SHORTHANDS:
        if text == "auto_elementwise" and any(len(f.arguments) > 1 for f in entry.formulas):
            raise TableError(f"{where}: column 'result': auto_elementwise needs one formula an argument")
        return
    # What the kernel saves has no history, so that a tangent that read it could not itself be differentiated.
    known = set(entry.schema.results)
    for argument in entry.schema.arguments:
        known.add(argument.name)
        if argument in entry.differentiable_arguments:
            known |= {argument.name + "_p", argument.name + "_t"}
    try:
        tree = formula.parse(text)
        formula.reads(tree, known, names)
    except formula.FormulaError as error:
        raise TableError(f"{where}: column 'result': {error}") from None
    entry.forward_trees["result"] = tree


def _check_unique(entries: list[Entry]) -> None:
    seen: dict[str, Entry] = {}
    for entry in entries:
        first = seen.setdefault(entry.name, entry)
        if first is not entry:
            raise TableError(f"{entry.file}:{entry.line}: {entry.name}: already defined in {first.file}:{first.line}")
    forms: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        names = [(entry.schema.base, form) for form in entry.overloads]
        for name in names + [(f"{entry.schema.base}_", form) for form in entry.inplace_overloads]:
            first = forms.setdefault(name, entry)
            if first is not entry:
                raise TableError(
                    f"{entry.file}:{entry.line}: {entry.name}: column 'overloads': {'.'.join(name)} is {first.name} "
                    f"already, in {first.file}:{first.line}"
                )


def _name_nodes(entries: list[Entry]) -> None:
    numbers: dict[str, int] = {}
    for entry in entries:
        if entry.differentiable and not entry.node:
            base = "".join(part[:1].upper() + part[1:] for part in entry.schema.base.split("_"))
            number = numbers.get(base, 0)
            numbers[base] = number + 1
            entry.node = f"{base}Backward{number}"
