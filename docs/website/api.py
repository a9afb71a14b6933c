"""The API reference: every public name with its signature and its docstring, read from the package as it runs.

What is public: the names in the ``__all__`` of modules whose path has no underscore and that torch (or
docs/ADDITIONS.md) has, and the members of their classes.  A name is described once, where its path is shortest.
`undocumented` lists those that have no docstring; the build and tests/docs fail if there is one.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from functools import cache
from pathlib import Path
from types import MemberDescriptorType, ModuleType
from typing import Any

import retrograd

#: Parts of the package that users do not import from, though their names have no underscore.
INTERNAL = {
    "core", "kernels", "codegen", "derivatives", "ops", "tensor", "func.levels", "func.rows", "func.sweep",
    "func.rules", "scipy.functions", "scipy.implicit", "profiler.handles", "sparse.operators", "sparse.tensor_types",
}  # fmt: skip
#: Modules without ``__all__`` that are for users all the same.
WITHOUT_LIST = {"autograd.explain", "nn.grad", "nn.utils.rnn", "nn.utils.prune"}
#: A module with fewer names is described on its parent's page.
FEW = 8
#: A page of more names has a list of them at its top.
MANY = 16


def public_modules() -> list[str]:
    """The modules that are described, without the leading ``retrograd.``; the package itself is ``""``."""
    found = [""]
    walked = pkgutil.walk_packages(retrograd.__path__, "retrograd.", onerror=lambda name: None)
    for name in (info.name.partition(".")[2] for info in walked):
        parts = name.split(".")
        if any(part.startswith("_") for part in parts):
            continue
        if any(".".join(parts[:n]) in INTERNAL for n in range(1, len(parts) + 1)):
            continue
        found.append(name)
    return sorted(found, key=lambda name: (name.count(".") + bool(name), name))


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(f"retrograd.{name}" if name else "retrograd")
    except ImportError:  # it needs a package that is not installed here, and says so
        return None


def _names(name: str, module: ModuleType) -> list[str]:
    if name in WITHOUT_LIST:
        own = [n for n, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
        return [n for n in own if not n.startswith("_")]
    return [n for n in getattr(module, "__all__", ()) if not n.startswith("_")]


@cache
def names() -> dict[str, dict[str, Any]]:
    """Module -> name -> what it is."""
    seen: set[int] = set()
    found: dict[str, dict[str, Any]] = {}
    for name in public_modules():
        module = _module(name)
        if module is None:
            continue
        mine = {}
        for own in sorted(_names(name, module), key=str.lower):
            value = getattr(module, own)
            if inspect.ismodule(value) or (callable(value) and id(value) in seen):
                continue
            if callable(value):
                seen.add(id(value))
            mine[own] = value
        if mine:
            found[name] = mine
    return found


def members(cls: type) -> dict[str, Any]:
    """The public members of a class: of Tensor all, of others those that are not inherited."""
    own = dir(cls) if cls is retrograd.Tensor else vars(cls)
    found = {}
    for name in sorted(own, key=str.lower):
        if name.startswith("_"):
            continue
        value = inspect.getattr_static(cls, name)
        if isinstance(value, MemberDescriptorType):
            continue  # a slot: the class's docstring or the comment above it says what it holds
        is_method = callable(value) or isinstance(value, (property, staticmethod, classmethod))
        if is_method or inspect.isdatadescriptor(value):
            found[name] = value
    return found


def _is_documented(value: Any) -> bool:
    if _is_pythons(value):
        return True
    if inspect.isclass(value) or inspect.isroutine(value) or hasattr(value, "__wrapped__"):
        doc = (inspect.getdoc(value) or "").strip()
        return bool(doc) and doc != getattr(value, "__name__", None)  # a name says nothing of itself
    return True  # a constant: its value says it


def _is_pythons(value: Any) -> bool:
    """Is it a function or class of Python's own, or of another package, that a module of ours has, too?"""
    return not (getattr(value, "__module__", None) or "retrograd").startswith(("retrograd", "torch"))


def undocumented() -> list[str]:
    """Public names without a docstring."""
    found = []
    for module, those in names().items():
        for name, value in those.items():
            path = f"torch.{module}.{name}" if module else f"torch.{name}"
            if not _is_documented(value):
                found.append(path)
            if inspect.isclass(value) and not _is_pythons(value):
                inside = members(value).items()
                found += [f"{path}.{member}" for member, what in inside if not _doc_of(value, member, what)]
    return found


def _doc_of(cls: type, name: str, value: Any) -> str:
    """The docstring of a member, or of what it overrides."""
    for one in (value, *(vars(base)[name] for base in cls.__mro__[1:] if name in vars(base))):
        if doc := (inspect.getdoc(one) or "").strip():
            return doc
    found = getattr(cls, name, None)  # a descriptor that makes a function when it is asked
    return (inspect.getdoc(found) or "").strip() if inspect.isroutine(found) else ""


def _says_more(cls: type, name: str, value: Any) -> bool:
    """Is there something to say of a member here? One that overrides another without a word is described there."""
    overridden = any(name in vars(base) for base in cls.__mro__[1:-1])
    return not overridden or bool(getattr(value, "__doc__", None))


# ---------------------------------------------------------------------------------------------------------------- pages


def write(folder: Path) -> list[str]:
    """Write the pages; their names."""
    folder.mkdir(parents=True, exist_ok=True)
    pages: dict[str, list[str]] = {}
    for module in names():
        page = module
        while "." in page and len(names().get(page, ())) < FEW:
            page = page.rpartition(".")[0]
        pages.setdefault(page or "torch", []).append(module)
    for page, modules in pages.items():
        text = f"# {_title(page)}\n\n" if page != "torch" else "# torch\n\n"
        text += "".join(_section(module, page) for module in modules)
        (folder / f"{page}.md").write_text(text, encoding="utf-8")
    (folder / "torch.Tensor.md").write_text(_tensor(), encoding="utf-8")
    return sorted([*pages, "torch.Tensor"], key=lambda page: (page != "torch", page != "torch.Tensor", page))


def _title(module: str) -> str:
    return f"torch.{module}" if module else "torch"


def _section(module: str, page: str) -> str:
    found = _module(module)
    text = "" if module in (page, "") else f"## {_title(module)}\n\n"
    about = (inspect.getdoc(found) or "").strip()
    text += prose(about.partition("\n\n")[0]) + "\n\n" if about else ""
    text += f"```{{py:currentmodule}} {_title(module)}\n```\n\n"
    text += _jumps({name: f"{_title(module)}.{name}" for name in names()[module] if name != "Tensor"})
    return text + "".join(_entry(name, value) for name, value in names()[module].items())


def _jumps(targets: dict[str, str]) -> str:
    """The names of a long page, to jump to: name -> anchor."""
    if len(targets) < MANY:
        return ""
    links = " ".join(f'<a href="#{anchor}">{name}</a>' for name, anchor in targets.items())
    shown = f'<details class="names"><summary>{len(targets)} names</summary><p>{links}</p></details>'
    return f"```{{raw}} html\n{shown}\n```\n\n"


def _entry(name: str, value: Any) -> str:
    if value is retrograd.Tensor:
        return ""
    if _is_pythons(value) and (inspect.isclass(value) or callable(value)):
        kind = "py:class" if inspect.isclass(value) else "py:function"
        return _directive(kind, name + _signature(value), f"Python's own `{value.__module__}.{name}`.", 4)
    if inspect.isclass(value):
        body = prose(inspect.getdoc(value) or "")
        for member, what in members(value).items():
            if not _says_more(value, member, what):
                continue
            body += "\n\n" + _member(f"{name}.{member}", _doc_of(value, member, what), what)
        return _directive("py:class", name + _signature(value), body, 5)
    if callable(value):
        text = prose(inspect.getdoc(value) or "") + _formulas(value)
        return _directive("py:function", name + _signature(value), text, 4)
    shown = repr(value)
    is_short = len(shown) < 90 and " at 0x" not in shown and "`" not in shown
    return _directive("py:data", name, f"`{shown}`" if is_short else f"a `{type(value).__name__}`", 4)


def _formulas(function: Any) -> str:
    """The derivatives of an operator of the table."""
    text = _backward().get(getattr(function, "__name__", ""))
    return "" if text is None else f"\n\n```text\n{text}\n```\n"


@cache
def _backward() -> dict[str, str]:
    """Operator -> its formulas, which the docstring of its node has."""
    from retrograd._generated import nodes

    found: dict[str, str] = {}
    for cls in vars(nodes).values():
        head, _, rest = (inspect.getdoc(cls) or "").partition("\n\n") if inspect.isclass(cls) else ("", "", "")
        name = head.removeprefix("Backward of ").rstrip(":")
        if head.startswith("Backward of ") and rest:
            lines = [f"gradient of {line.strip()}" for line in rest.splitlines() if line.strip()]
            found.setdefault(name, "\n".join(lines))
    return found


def _member(name: str, doc: str, value: Any) -> str:
    text = prose(doc)
    if isinstance(value, property) or not (callable(value) or isinstance(value, (staticmethod, classmethod))):
        return _directive("py:property", name, text, 4)
    kinds = {staticmethod: "py:staticmethod", classmethod: "py:classmethod"}
    kind = kinds.get(type(value), "py:method")
    function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
    return _directive(kind, name + _signature(function, kind != "py:staticmethod"), text, 4)


def _tensor() -> str:
    cls = retrograd.Tensor
    body = "# torch.Tensor\n\n```{py:currentmodule} torch\n```\n\n" + prose(inspect.getdoc(cls) or "") + "\n\n"
    body += _jumps({name: f"torch.Tensor.{name}" for name in members(cls)})
    return body + "".join(_member(f"Tensor.{n}", _doc_of(cls, n, v), v) for n, v in members(cls).items())


def _directive(kind: str, title: str, body: str, ticks: int) -> str:
    fence = "`" * ticks
    return f"{fence}{{{kind}}} {title}\n{body}\n{fence}\n\n"


def _signature(value: Any, skip_first: bool = False) -> str:
    """A signature as Sphinx reads it: names and plain defaults."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (ValueError, TypeError):
        return "(*args, **kwargs)"
    if skip_first and parameters and parameters[0].kind in (0, 1):
        parameters = parameters[1:]
    shown = []
    for one in parameters:
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) and one.name in ("old", "aliases"):
            continue  # torch's older forms of a call
        plain = one.default is None or isinstance(one.default, (bool, int, float, str, complex, tuple))
        default = one.default if one.default is one.empty or plain else _Dots()
        shown.append(one.replace(annotation=one.empty, default=default))
    return str(inspect.Signature(shown))


class _Dots:
    def __repr__(self) -> str:
        return "..."


_CODE = re.compile(r"(``.+?``|`[^`]+`)", re.S)


def prose(doc: str) -> str:
    """A docstring as Markdown: examples become blocks, and what is not code is taken literally."""
    if doc == "Refused.":
        doc = "Not here: a call raises an error that says what to use instead."
    lines, out, text = doc.split("\n"), [], []

    def flush() -> None:
        if text:
            out.append(_literal("\n".join(text)))
            text.clear()

    place = 0
    while place < len(lines):
        if lines[place].lstrip().startswith(">>>"):
            flush()
            end = place
            while end < len(lines) and lines[end].strip():
                end += 1
            indent = len(lines[place]) - len(lines[place].lstrip())
            out.append("\n```python\n" + "\n".join(line[indent:] for line in lines[place:end]) + "\n```\n")
            place = end
        elif lines[place].startswith("    ") and not (text and text[-1].strip()):
            flush()
            end = place
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            block = [line[4:] for line in lines[place:end]]
            if any(line.startswith(">>>") for line in block):
                out.append(prose("\n".join(block)))
            else:
                out.append("\n```\n" + "\n".join(block).rstrip() + "\n```\n")
            place = end
        else:
            text.append(lines[place])
            place += 1
    flush()
    return "\n".join(out).strip()


def _literal(text: str) -> str:
    text = re.sub(r"::$", ":", text, flags=re.M)
    parts = _CODE.split(text)
    for number in range(0, len(parts), 2):
        parts[number] = re.sub(r"([*_\[\]<>#|$\\{}~])", r"\\\1", parts[number])
    return "".join(parts)
