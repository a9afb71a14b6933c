"""Writes the stubs of the public namespaces: what type checkers see of ``torch``, ``Tensor``, ``torch.linalg`` ...

How a function may be called is taken from `ops/signatures/` if it has lines there, else from the table, else from its
source; what it returns from its lines, else from its source or the table. A stub lies beside the module that it is of,
which is thin: type checkers do not look at that module at all.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from .calls import ALIASES, has_out, takes_numbers
from .overloads import (
    HEADER,
    TYPES,
    Overload,
    Parameter,
    alternatives,
    by_flags,
    fields_of,
    from_arguments,
    simplify,
    write,
)
from .reexports import read_reexports, write_reexports
from .schema import Argument, split
from .signatures import Signature
from .table import Entry

GENERATED = "# Generated from derivatives/*.yaml, ops/signatures/*.txt and the operators' sources. Do not edit.\n"
#: Of a subscript with brackets: x[key].
_SPECIAL = {
    "__getitem__": "key: Index",
    "__setitem__": "key: Index, value: Tensor | Number | ndarray",
}


@dataclass
class Operator:
    """A function or method that users find under a name."""

    overloads: list[Overload]
    doc: str = ""


@dataclass
class Sources:
    """Everything that the stubs are made from."""

    entries: list[Entry]
    #: What `ops/signatures/` says, by name and namespace.
    signatures: dict[str, list[Signature]]
    #: Operators as their modules define them, by name.
    defined: dict[str, ast.FunctionDef]
    #: Functions of nn, which may be called as operators are that they are not.
    nn: dict[str, ast.FunctionDef]
    #: namespace -> name -> the name of what it is in `defined` or in the table.
    places: dict[str, dict[str, str]]
    #: Names that take ``out=`` besides the parameters that their source shows.
    out: set[str]
    #: Attributes of Tensor that hand-written classes define.
    own: set[str]
    results: dict[str, list[str]] = field(default_factory=dict)

    def entry(self, name: str) -> Entry | None:
        return next((e for e in self.entries if e.name == name), None)

    def _source(self, space: str, target: str) -> ast.FunctionDef | None:
        if space == "nn.functional":
            return self.nn.get(target) or self.defined.get(target)
        return self.defined.get(target) or (None if self.entry(target) else self.nn.get(target))

    # ------------------------------------------------------------------------------------------------------ operators

    def operator(self, space: str, name: str) -> Operator:
        """What `name` is in a namespace."""
        target = self.places[space][name]
        source = self._source(space, target)
        entry = self.entry(target)
        doc = _doc(ast.get_docstring(source) if source else entry.doc if entry else "")
        key = name if space == "torch" else f"{space}.{name}"
        lines = self.signatures.get(key) or (self.signatures.get(name) if space == "Tensor" else None)
        if space != "torch" and not lines and target in self.signatures:
            lines = self.signatures[target]
        if lines:
            return Operator(self._from_lines(space, name, target, lines), doc)
        if source is not None:
            return Operator([self._from_source(space, source)], doc)
        inplace = entry is None and target.endswith("_")
        entry = entry or self.entry(target.removesuffix("_"))
        if entry is None:
            raise ValueError(f"{space}.{name}: there is neither a signature nor an entry nor a function {target!r}")
        return Operator(self._from_entry(space, entry, inplace), _doc(entry.doc))

    def _from_lines(self, space: str, name: str, target: str, lines: list[Signature]) -> list[Overload]:
        method = space == "Tensor"
        takes_out = not method and self._takes_out(space, target)
        made: list[Overload] = []
        for line in lines:
            text = line.returns or self._returns_of(space, target)
            results = [(self.result(part, space, name), flags) for part, flags in alternatives(text)]
            first = results[0][0]
            if first == "Tensor" and method and name.endswith("_") and not name.endswith("__"):
                results = [("Self", [])]
            out = "" if not takes_out else "Tensor" if first in ("Tensor", "Self") else "Sequence[Tensor]"
            if any(a.name == "out" for a in line.arguments):
                out = ""
            for overload in from_arguments(
                line.arguments, results[0][0], method=method, out=out, spread=True,
                numpy_names=space not in ("nn.functional",),
            ):  # fmt: skip
                made += by_flags(overload, results) if len(results) > 1 else [overload]
        return simplify(made)

    def _takes_out(self, space: str, target: str) -> bool:
        if space in ("linalg", "fft") or target in self.out:
            return True
        source = self._source(space, target)
        if source is not None:
            return any(a.arg == "out" for a in source.args.kwonlyargs)
        entry = self.entry(target)
        return entry is not None and has_out(entry)

    def _returns_of(self, space: str, target: str) -> str:
        """What a function returns by its source or the table, in the language of signatures."""
        source = self._source(space, target)
        if source is not None:
            found = _in_signatures_words(source.returns)
            if found:
                return found
        entry = self.entry(target)
        if entry is not None and not source:
            if entry.schema.returns_list:
                return "Tensor[]"
            if len(entry.schema.results) > 1:
                return f"({', '.join(f'Tensor {r}' for r in entry.schema.results)})@{entry.schema.base.lstrip('_')}"
        return "Tensor"

    def result(self, text: str, space: str, name: str) -> str:
        """A result of the language of signatures as a type."""
        text, _, known_as = text.partition("@")
        fields = fields_of(text)
        if fields:
            class_name = known_as or (name if space in ("torch", "Tensor") else f"{space}_{name}")
            known = self.results.setdefault(class_name, fields)
            if known != fields:
                raise ValueError(f"{space}.{name}: return_types.{class_name} has the fields {known}, not {fields}")
            return f"return_types.{class_name}"
        if text.startswith("("):
            return f"tuple[{', '.join(self.result(part, space, name) for part in split(text[1:-1]))}]"
        if text.endswith("[]"):
            return f"tuple[{TYPES[text.removesuffix('[]')]}, ...]"
        return TYPES.get(text, text)

    def _from_entry(self, space: str, entry: Entry, inplace: bool) -> list[Overload]:
        method = space == "Tensor"
        returns = self.result(self._returns_of(space, entry.name), space, entry.name)
        if inplace:
            returns = "Self" if method else "Tensor"
        takes_out = has_out(entry) and not method and not inplace
        out = "" if not takes_out else "Tensor" if len(entry.schema.results) == 1 else "Sequence[Tensor]"
        arguments = [_as_table_takes_it(a) for a in entry.schema.arguments]
        names = any(a.name in ALIASES for a in arguments)
        made = from_arguments(arguments, returns, method=method, out=out, numpy_names=names)
        if takes_numbers(entry) and not method and not inplace:
            first, second, *rest = arguments
            number = [replace(first, type="Scalar"), replace(second, type="Tensor"), *rest]
            made += from_arguments(number, returns, out=out)
        return simplify(made)

    def _from_source(self, space: str, node: ast.FunctionDef) -> Overload:
        arguments = node.args
        found: list[Parameter] = []
        given = [*arguments.posonlyargs, *arguments.args]
        defaults = [None] * (len(given) - len(arguments.defaults)) + list(arguments.defaults)
        for a, d in zip(given, defaults, strict=True):
            found.append(Parameter(a.arg, _annotation(a.annotation), None if d is None else _literal(d)))
        if arguments.vararg:
            found.append(Parameter(arguments.vararg.arg, _annotation(arguments.vararg.annotation), None, "star"))
        for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            found.append(Parameter(a.arg, _annotation(a.annotation), None if d is None else _literal(d), "keyword"))
        if space != "Tensor" and node.name in self.out and not any(p.name == "out" for p in found):
            found.append(Parameter("out", "Tensor | None", "None", "keyword"))
        returns = self.result(_in_signatures_words(node.returns) or _annotation(node.returns), space, node.name)
        return Overload(tuple(found[space == "Tensor" :]), returns)


def _doc(text: str | None) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((text or "").split("\n\n")[0].split()).replace("\\", "\\\\").replace('"', "'")


def _as_table_takes_it(a: Argument) -> Argument:
    """In the table a list of ints may be one int."""
    types = {"int[]": "int[1]", "int[]?": "int[1]?"}
    return replace(a, type=types.get(a.type, a.type))


# ----------------------------------------------------------------------------------------------- annotations in sources

#: Names in the annotations of sources that a stub can use.
_KNOWN = {
    "Any": "Any", "Tensor": "Tensor", "int": "_int", "float": "_float", "bool": "_bool", "str": "str", "None": "None",
    "complex": "_complex", "tuple": "tuple", "list": "list", "dict": "dict", "Sequence": "Sequence", "Size": "Size",
    "Callable": "Callable", "dtype": "dtype", "Generator": "Generator", "ndarray": "ndarray", "TypedStorage":
    "TypedStorage",
}  # fmt: skip


class _Rename(ast.NodeTransformer):
    def __init__(self) -> None:
        self.unknown = False

    def visit_Name(self, node: ast.Name) -> ast.AST:
        self.unknown |= node.id not in _KNOWN
        return ast.Name(_KNOWN.get(node.id, "Any"))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.unknown |= node.attr not in _KNOWN
        return ast.Name(_KNOWN.get(node.attr, "Any"))  # dtypes.dtype, builtins.bool


def _annotation(node: ast.expr | None) -> str:
    """An annotation of a source as the stub writes it; Any, if it has a name that the stub does not know."""
    if node is None:
        return "Any"
    rename = _Rename()
    made = ast.unparse(rename.visit(ast.parse(ast.unparse(node), mode="eval").body))
    return "Any" if rename.unknown else made


def _in_signatures_words(node: ast.expr | None) -> str:
    text = _annotation(node)
    if text == "tuple[Tensor, ...]":
        return "Tensor[]"
    return {"Tensor": "Tensor", "Any": ""}.get(text, text)


def _literal(node: ast.expr) -> str:
    try:
        return repr(ast.literal_eval(node))
    except ValueError:
        return "..."


# -------------------------------------------------------------------------------------------------------------- modules


def _functions(sources: Sources, space: str) -> str:
    """The functions of a namespace."""
    parts = []
    for name in sorted(sources.places[space]):
        operator = sources.operator(space, name)
        parts.append(write(name, operator.overloads, operator.doc))
    return "".join(parts)


#: What is in ``retrograd`` besides what its file imports.
_OTHERS = """from . import ops as ops

bfloat16: dtype
__version__: str
"""


def _made_public(head: str) -> str:
    """The imports that annotations need, with those that are names of ``retrograd`` too written as public names are."""

    def alias(line: re.Match[str]) -> str:
        return line[1] + ", ".join(name if " as " in name else f"{name} as {name}" for name in line[2].split(", "))

    return re.sub(r"(from retrograd(?!\.types|\.core import)\S* import )(.*)", alias, head)


def write_stubs(package: Path, sources: Sources) -> dict[str, str]:
    """The stubs of the public namespaces, by path."""
    head = f"{GENERATED}{HEADER}\nfrom retrograd import return_types\n\n"
    files = {
        f"{space}.pyi": head + _functions(sources, space) for space in ("linalg", "special", "fft")
    }
    files["linalg.pyi"] += "from retrograd.kernels.linalg_checks import LinAlgError as LinAlgError\n"
    for path, space in (("__init__.pyi", "torch"), ("nn/functional/__init__.pyi", "nn.functional")):
        name = ".".join(["retrograd", *path.split("/")[:-1]])
        imports = read_reexports((package / path).with_suffix(".py"), name)
        for taken in [n for n in imports if n in sources.places[space] or n == "* retrograd.ops.namespace"]:
            del imports[taken]
        own = head
        if space == "torch":
            own = _made_public(head).replace("from retrograd import", "from . import")
        others = _OTHERS if space == "torch" else ""
        files[path] = own + write_reexports(imports) + others + _functions(sources, space)
    for path in ("nn/__init__.pyi", "nn/modules/__init__.pyi", "optim/__init__.pyi"):
        name = ".".join(["retrograd", *path.split("/")[:-1]])
        imports = read_reexports((package / path).with_suffix(".py"), name)
        files[path] = GENERATED + write_reexports(imports, listed=path == "nn/modules/__init__.pyi")
    files["return_types.pyi"] = write_result_classes(sources)  # once all others have named theirs
    return files


def write_methods(sources: Sources) -> str:
    """``tensor_operators.pyi``: a base class of Tensor that exists for type checkers only."""
    parts = [GENERATED, HEADER, "\nfrom retrograd import return_types\n\nclass TensorOperators:\n"]
    for name in sorted(sources.places["Tensor"]):
        if name not in sources.own and not name.startswith("__"):
            operator = sources.operator("Tensor", name)
            parts.append(write(name, operator.overloads, operator.doc, method=True))
    for name, arguments in sorted(_special_methods(sources.entries).items()):
        if name not in sources.own:
            inplace = name.startswith("__i") and name != "__invert__"
            result = "None" if name == "__setitem__" else "Self" if inplace else "Tensor"
            ignore = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
            parts.append(f"    def {name}({', '.join(['self', *arguments])}) -> {result}: ...{ignore}\n")
    # What Tensor itself defines, and the classes between it and this one ask for.
    parts.append("    @property\n    def shape(self) -> Size: ...\n")
    parts.append("    @property\n    def dtype(self) -> dtypes.dtype: ...\n")
    parts.append("    @property\n    def device(self) -> devices.device: ...\n")
    parts.append("    def detach_(self) -> Tensor: ...\n")
    for name in ("T", "mT", "H", "mH"):
        parts.append(f"    @property\n    def {name}(self) -> Tensor: ...\n")
    for name in ("real", "imag"):
        parts.append(f"    @property\n    def {name}(self) -> Tensor: ...\n")
        parts.append(f"    @{name}.setter\n    def {name}(self, value: Tensor | Number) -> None: ...\n")
    return "".join(parts)


def _special_methods(entries: list[Entry]) -> dict[str, list[str]]:
    """Python's operators: their parameters after self."""
    other = ["other: Tensor | Number"]
    found = dict.fromkeys(
        ("__rtruediv__", "__pow__", "__rpow__", "__ipow__", "__rfloordiv__", "__rmod__", "__rlshift__", "__rrshift__"),
        other,
    )
    found |= {name: ["other: Tensor"] for name in ("__matmul__", "__rmatmul__")}
    found |= {"__invert__": [], "__pos__": []}
    for entry in entries:
        for operator in entry.operators:
            found[operator] = other if len(entry.schema.arguments) > 1 else []
    found |= {name: ["other: object"] for name in ("__eq__", "__ne__")}
    found |= {name: [text] for name, text in _SPECIAL.items()}
    return found


def write_result_classes(sources: Sources) -> str:
    """``return_types.pyi``, once all others are written: the classes of several results."""
    parts = [GENERATED, "from typing import Any, NamedTuple\n\nfrom retrograd.tensor.tensor import Tensor\n"]
    for name, fields in sorted(sources.results.items()):
        parts.append(f"\nclass {name}(NamedTuple):\n" + "".join(f"    {f}: Tensor\n" for f in fields))
    parts.append("\ndef return_type(name: str, *fields: str) -> Any: ...\n")
    return "".join(parts)


# ------------------------------------------------------------------------------------------------------ reading sources


def body(path: Path) -> list[ast.stmt]:
    """What a module consists of; nothing, if there is none (a table of one's own need not have all that ours has)."""
    return ast.parse(path.read_text(encoding="utf-8")).body if path.exists() else []


def read_functions(paths: list[Path]) -> dict[str, ast.FunctionDef]:
    """The functions of some modules, by name."""
    return {
        node.name: node
        for path in paths
        for node in body(path)
        if isinstance(node, ast.FunctionDef)
    }


def read_members(paths: list[Path]) -> set[str]:
    """What the classes of some modules define."""
    found: set[str] = set()
    for path in paths:
        for node in body(path):
            for member in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(member, ast.FunctionDef):
                    found.add(member.name)
                elif isinstance(member, ast.Assign):
                    found |= {target.id for target in member.targets if isinstance(target, ast.Name)}
                elif isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
                    found.add(member.target.id)
    return found
