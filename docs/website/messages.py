"""Every error message of the package, found by reading its source.

A message is the text that an exception is made with: in a ``raise``, or where a function makes the exception that
another one raises.  What is filled in when it is raised stands in braces.  Messages that are put together elsewhere are
followed a few steps: to the variable, the constant, the argument or the function of the same file.  One that is nothing
but parts that are filled in (``f"{of}{why}"``) is shown once for each text that a part can be.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "retrograd"
#: Not for users of the package: what builds it.
OUTSIDE = ("_generated", "codegen")
_ERRORS = {n for n, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)}
_ERROR_NAME = re.compile(r"_?[A-Z]\w*(Error|Exception|Refused)")
_METHODS = ("format", "rstrip", "strip")


class Message(NamedTuple):
    """A message: what is raised, its words, and where."""

    error: str
    text: str
    file: str
    line: int


@cache
def messages() -> list[Message]:
    """All of them, in the order of files and lines."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.split("/")[0] not in OUTSIDE:
            found += _File(name, path.read_text(encoding="utf-8")).messages()
    return found


class _File:
    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.tree = ast.parse(text)
        self.functions = {n.name: n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef)}
        self.constants = {
            target.id: node.value
            for node in self.tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def messages(self) -> list[Message]:
        found: dict[tuple[str, str], Message] = {}
        for function, call in self._calls():
            if not call.args:
                continue
            error = _name(call.func)
            for text in self._texts(call.args[0], function):
                text = " ".join(text.split())
                if _has_words(text):
                    found.setdefault((error, text), Message(error, text, self.name, call.lineno))
        return sorted(found.values(), key=lambda one: one.line)

    def _calls(self) -> Iterator[tuple[ast.FunctionDef | None, ast.Call]]:
        """Calls that make exceptions, with the function that they are in."""
        pending: list[tuple[ast.AST, ast.FunctionDef | None]] = [(self.tree, None)]
        while pending:
            node, function = pending.pop()
            if isinstance(node, ast.FunctionDef):
                function = node
            raised = isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
            if isinstance(node, ast.Call) and _makes_error(node.func):
                yield function, node
            elif raised and not _makes_error(node.exc.func) and node.exc.args:  # type: ignore[attr-defined]
                first = node.exc.args[0]  # type: ignore[attr-defined]
                if " " in (template(first) or ""):  # a helper that is given the words, not merely an operator's name
                    yield function, node.exc  # type: ignore[attr-defined]
            pending += [(child, function) for child in ast.iter_child_nodes(node)]

    def _texts(self, node: ast.AST, function: ast.FunctionDef | None, steps: int = 3) -> list[str]:
        """What an expression can be, as templates; nothing if that cannot be read off."""
        whole = template(node)
        if whole is not None and (_has_words(whole) or not steps):
            return [whole]
        if isinstance(node, ast.IfExp):
            return self._texts(node.body, function, steps) + self._texts(node.orelse, function, steps)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            return self._texts(node.func.value, function, steps)
        if not steps:
            return []
        if isinstance(node, ast.JoinedStr | ast.BinOp):
            return self._filled(node, function, steps - 1)
        if isinstance(node, ast.Name):
            values = [one.value for one in ast.walk(function or self.tree) if isinstance(one, ast.Assign)
                      and any(isinstance(t, ast.Name) and t.id == node.id for t in one.targets)]  # fmt: skip
            values += [self.constants[node.id]] if not values and node.id in self.constants else []
            values += self._given(node.id, function) if not values and function is not None else []
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            table = self.constants.get(node.value.id)
            values = list(table.values) if isinstance(table, ast.Dict) else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            called = self.functions.get(_name(node.func))
            returned = [one.value for one in ast.walk(called) if isinstance(one, ast.Return)] if called else []
            return [text for value in returned if value is not None for text in self._texts(value, called, steps - 1)]
        else:
            values = []
        return [text for value in values for text in self._texts(value, function, steps - 1)]

    def _given(self, name: str, function: ast.FunctionDef) -> list[ast.expr]:
        """What a function of this file is given for an argument, where it is called by its name, or by default."""
        names = [one.arg for one in (*function.args.args, *function.args.kwonlyargs)]
        if name not in names:
            return []
        defaults = dict(zip(reversed([one.arg for one in function.args.args]), reversed(function.args.defaults)))
        found = [defaults[name]] if name in defaults else []
        for call in ast.walk(self.tree):
            if isinstance(call, ast.Call) and _name(call.func) == function.name:
                place = names.index(name) - (isinstance(call.func, ast.Attribute) and names[0] in ("self", "cls"))
                found += [one.value for one in call.keywords if one.arg == name]
                found += call.args[place : place + 1]
        return found

    def _filled(self, node: ast.AST, function: ast.FunctionDef | None, steps: int) -> list[str]:
        """A text without words of its own, once for each text that one of its parts can be."""
        parts, found = _parts(node), []
        for place, part in enumerate(parts):
            for text in self._texts(part, function, steps) if not isinstance(part, ast.Constant) else ():
                shown = [template(one) or "{" + _shown(one) + "}" for one in parts]
                found.append("".join([*shown[:place], text, *shown[place + 1 :]]))
        return found


def _parts(node: ast.AST) -> list[ast.AST]:
    """What an f-string or a sum of texts is put together from."""
    if isinstance(node, ast.JoinedStr):
        return [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
    return [*_parts(node.left), *_parts(node.right)] if isinstance(node, ast.BinOp) else [node]


def _has_words(text: str) -> bool:
    return re.search(r"[A-Za-z]{2}", re.sub(r"\{[^{}]*\}", "", text)) is not None


def _makes_error(function: ast.AST) -> bool:
    name = _name(function)
    return name in _ERRORS or bool(_ERROR_NAME.fullmatch(name))


def _name(function: ast.AST) -> str:
    """The last word of what is called."""
    return getattr(function, "id", "") or getattr(function, "attr", "")


def template(node: ast.AST) -> str | None:
    """A text with braces around what is filled in; None if it is none."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{" + _shown(part.value) + "}"  # type: ignore[attr-defined]
            for part in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = (node.left, node.right)
        texts = [template(side) for side in sides]
        if texts == [None, None]:
            return None
        return "".join("{" + _shown(side) + "}" if text is None else text for side, text in zip(sides, texts))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return template(node.left)
    return None


def _shown(node: ast.AST) -> str:
    """What is filled in, in few words."""
    text = ast.unparse(node)
    return text if len(text) <= 40 else "…"
