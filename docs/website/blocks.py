"""The code blocks of a page, and what each must do.  The build and the tests both go by this file.

A fenced block is one of these; anything else is an error, so that no block stands on the site that nobody has run:

* ``python`` with prompts: examples, run as doctest runs them.
* ``python``: a program, run as it stands.  If a ``text`` block follows it, that is what the program prints; ``...``
  stands for anything there.
* any block under ``<!-- excerpt PATH -->``: lines that stand in that file, in this order; ``...`` leaves some out.
* any block under ``<!-- append PATH -->``: what the reader adds to a file of the package; a test adds it, too.
* ``sh``: commands for the reader's shell, whose make targets, scripts and modules have to exist.
* any block under ``<!-- checked by PATH -->``: a test of that name looks after it.
* any block under ``<!-- drawing: WHAT -->``: nothing to run, for the reason that is given.
* any block between ``<!-- NAME on N threads -->`` and ``<!-- end of ...``: benchmarks/NAME.py has written it.
* ``pycon``: the examples of DIFFERENCES.md, which tests/test_differences.py runs on both libraries.

All blocks of a page run in order, in one namespace.  ``<!-- setup: STATEMENTS -->`` runs, too, and is not shown: what a
reader has already (a model), or should not suffer (a browser that opens).  ``<!-- picture NAME: EXPRESSION -->``
is evaluated in it, and gives the explorer's page (or the moment of a run, ``at(page, 0.4)``) that the build draws as
NAME.svg.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: What is not part of the site: the build's own folders.
OUTSIDE = ("_made", "website")

_FENCE = re.compile(r"^( *)(`{3,})([^\n`]*)\n(.*?)^\1\2 *$", re.M | re.S)
_COMMENT = re.compile(r"^ *<!-- (picture|setup|excerpt|append|checked by|drawing)([^\n]*?) *-->$", re.M)
_WRITTEN = re.compile(r"^<!-- (\w+) on \d+ threads? -->$.*?^<!-- end of \1 ", re.M | re.S)
_OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@dataclass
class Block:
    """A fenced block, or something between blocks: a "picture" that is made, or "setup"."""

    page: Path
    line: int
    kind: str
    text: str
    #: what the comment above it says: (word, rest)
    said: tuple[str, str] = ("", "")

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


class Wrong(AssertionError):
    """A block does not do what the page says."""


def pages() -> list[Path]:
    """The written pages of the site; the README is not one of them, but its blocks are run as well."""
    found = [path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] not in OUTSIDE]
    return sorted(found)


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in order."""
    text = page.read_text(encoding="utf-8")
    found, said, end = [], None, 0
    marks = [*_FENCE.finditer(text), *_COMMENT.finditer(text)]
    written = [(one.start(), one.end(), one.group(1)) for one in _WRITTEN.finditer(text)]
    for mark in sorted(marks, key=lambda one: one.start()):
        if mark.start() < end:
            continue  # a comment inside of a block
        line = text.count("\n", 0, mark.start()) + 1
        if mark.re is _COMMENT:
            word, rest = mark.group(1), mark.group(2).strip()
            if word in ("picture", "setup"):
                found.append(Block(page, line, word, rest.removeprefix(":").strip()))
            else:
                said = (word, rest, mark.end())
            continue
        end = mark.end()
        above = said if said is not None and not text[said[2] : mark.start()].strip() else None
        for start, stop, benchmark in written:
            if start < mark.start() < stop:
                above = ("checked by", f"benchmarks/{benchmark}.py", 0)
        found.append(Block(page, line, mark.group(3).strip(), mark.group(4), above[:2] if above else ("", "")))
        said = None
    return found


def run_page(page: Path, draw: Callable[[str, Any], None] | None = None) -> int:
    """Run the blocks of a page, and compare; how many there were.  `draw` gets each picture's name and what to draw."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    waiting = iter([*blocks(page), None])
    block, count = next(waiting), 0
    while block is not None:
        following = next(waiting)
        count += 1
        word, rest = block.said
        if block.kind == "picture":
            name, _, expression = block.text.partition(":")
            value = eval(expression.strip(), {**namespace, "at": at, "explorer": _explorer()})
            if draw is not None:
                draw(name.strip(), value)
        elif block.kind == "setup":
            exec(block.text, namespace)
        elif word == "excerpt":
            check_excerpt(block)
        elif word == "checked by":
            if not (ROOT / rest).exists():
                raise Wrong(f"{block.where}: there is no {rest}")
        elif block.kind == "pycon" and page.name == "DIFFERENCES.md":
            pass
        elif word == "drawing":
            if len(rest) < 10:
                raise Wrong(f"{block.where}: say why there is nothing to run: <!-- drawing: WHAT -->")
        elif word == "" and block.kind.startswith("{"):
            pass  # a directive of the site, such as a table of contents
        elif word == "append":
            if not (ROOT / rest).exists():
                raise Wrong(f"{block.where}: there is no {rest}")
        elif block.kind == "python" and re.search(r"^ *>>> ", block.text, re.M):
            run_examples(block, namespace)
        elif block.kind == "python":
            output = run_program(block, namespace)
            if following is not None and following.kind == "text" and following.said[0] == "":
                compare(following, output)
                count, following = count + 1, next(waiting)
            elif output:
                raise Wrong(f"{block.where} prints something, and no text block says what:\n{output}")
        elif block.kind == "sh":
            check_commands(block)
        else:
            raise Wrong(f"{block.where}: nobody runs a block of kind {block.kind!r} here; see docs/website/blocks.py")
        block = following
    return count


def run_examples(block: Block, namespace: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, namespace, block.where, str(block.page), block.line)
    test.globs = namespace
    said = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=_OPTIONS, verbose=False)
    if runner.run(test, out=said.write, clear_globs=False).failed:
        raise Wrong(f"{block.where}:\n{said.getvalue()}")


def run_program(block: Block, namespace: dict[str, Any]) -> str:
    """What a program prints.  Tracebacks and the explorer find its lines by the name of the page."""
    import linecache

    name = f"<{block.where}>"
    linecache.cache[name] = (len(block.text), None, block.text.splitlines(True), name)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they go elsewhere than what a program prints
        try:
            exec(compile(block.text, name, "exec"), namespace)
        except Exception as error:
            raise Wrong(f"{block.where}: {type(error).__name__}: {error}") from error
    return printed.getvalue()


def compare(expected: Block, output: str) -> None:
    if not doctest.OutputChecker().check_output(expected.text, output, _OPTIONS):
        raise Wrong(f"{expected.where} says\n{expected.text}\nbut the program prints\n{output}")


def check_excerpt(block: Block) -> None:
    path = ROOT / block.said[1]
    if not path.exists():
        raise Wrong(f"{block.where}: there is no {block.said[1]}")
    lines = iter([" ".join(line.split()) for line in path.read_text(encoding="utf-8").splitlines()])
    for line in filter(None, (" ".join(line.split()) for line in block.text.splitlines())):
        if line not in ("...", "# ...") and line not in lines:
            raise Wrong(f"{block.where}: {line!r} is not in {block.said[1]}, or not after the lines above it")


def check_commands(block: Block) -> None:
    """Do the make targets, files and modules that commands name exist?"""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for line in filter(None, (one.split("#")[0].strip() for one in block.text.splitlines())):
        words = shlex.split(line)
        if words[0] == "make":
            missing = [word for word in words[1:] if "=" not in word and word not in targets]
        elif words[0].endswith(("python", "python3")) and words[1:3] == ["-m", "pytest"]:
            missing = [word for word in words[3:] if "/" in word and not (ROOT / word).exists()]
        elif words[0].endswith(("python", "python3")) and words[1] == "-m":
            module = words[2].replace(".", "/")
            at_root = (ROOT / "src" / f"{module}.py", ROOT / "src" / module / "__main__.py")
            missing = [] if module in ("venv", "pip") or any(p.exists() for p in at_root) else [words[2]]
        elif words[0].endswith(("python", "python3")):
            missing = [word for word in words[1:2] if "/" in word and not (ROOT / word).exists()]
        else:
            missing = [] if words[0] in ("pip", "git", "mpiexec", "source") else [words[0]]
        if missing:
            raise Wrong(f"{block.where}: {line!r} names {missing}, which is not here")


def at(page: Any, share: float) -> Any:
    """A moment of a recorded run, for a picture: after so much of its events."""
    return (page, share)


def _explorer() -> Any:
    from retrograd import explorer

    return explorer
