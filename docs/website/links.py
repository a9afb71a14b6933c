"""Links of the pages: as they stand they lead to files of the repository, which is right where one reads that.

On the site, a link to another page leads to it, a link to a file leads to a page that shows the file, and a file that
is named in passing (`autograd/engine.py`) becomes such a link.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "src" / "retrograd"
#: Texts from outside of docs/ that are pages of the site.
REPOSITORY = [
    "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md", "src/retrograd/derivatives/README.md",
    "src/retrograd/kernels/README.md",
]  # fmt: skip

_FENCE = re.compile(r"(^ *(`{3,})[^\n]*\n.*?^ *\2 *$)", re.M | re.S)
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_NAMED = re.compile(r"(?<![\[`\w])`((?:[\w.-]+/)+[\w.-]+\.(?:py|yaml|txt|js|md|c|h)|Makefile)`(?![\]`])")


def site_target(target: str, page: Path) -> str:
    """Where a link of a page (a path in the repository) leads on the site."""
    path, mark, anchor = target.partition("#")
    if not path or re.match(r"[a-z]+:", target) or path.startswith("/"):
        return target
    file = Path(os.path.normpath(page.parent / path))
    return (page_of(file) or path) + mark + anchor


def page_of(file: Path) -> str | None:
    """The document, from the root of the site, that shows a file of the repository."""
    if not file.is_relative_to(ROOT) or not file.exists() or "_generated" in file.parts:
        return None  # what is generated is long, and each installation has its own
    if file.is_relative_to(DOCS):
        return None if file.is_dir() else "/" + file.relative_to(DOCS).as_posix()
    name = file.relative_to(ROOT).as_posix()
    if name in REPOSITORY:
        return f"/_made/repository/{name}"
    return f"/_made/source/{name}.md" if file.is_file() else None


def rewrite(text: str, page: Path) -> str:
    """The text of a page with links for the site; code blocks stay as they are."""

    def outside(part: str) -> str:
        part = _LINK.sub(lambda m: m.group(1) + site_target(m.group(2), page) + m.group(3), part)
        return _NAMED.sub(_named, part)

    return _by_parts(text, outside)


def _named(found: re.Match[str]) -> str:
    for folder in (PACKAGE, ROOT):
        target = page_of(folder / found.group(1))
        if target is not None and target.startswith(("/_made", "/")):
            return f"[`{found.group(1)}`]({target})"
    return found.group(0)


def _by_parts(text: str, outside: Callable[[str], str]) -> str:
    parts, place = [], 0
    for fence in _FENCE.finditer(text):
        parts += [outside(text[place : fence.start()]), fence.group(0)]
        place = fence.end()
    return "".join([*parts, outside(text[place:])])


def linked_sources(texts: list[tuple[Path, str]]) -> list[str]:
    """The files of the repository that need a page, since pages link to them."""
    found = set()
    for page, text in texts:
        found |= set(re.findall(r"\(/_made/source/([^)#]+)\.md[)#]", rewrite(text, page)))
    return sorted(found)


def broken(page: Path, text: str) -> list[str]:
    """Links of a page that lead nowhere in the repository; what the build makes is the build's to check."""
    found = []

    def look(part: str) -> str:
        for _, target, _ in _LINK.findall(part):
            path, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            file = Path(os.path.normpath(page.parent / path)) if path else page
            if "_made" in file.parts:
                continue
            if not file.exists():
                found.append(f"{target} (there is no such file)")
            elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
                found.append(f"{target} (the page has no such heading)")
        return part

    _by_parts(text, look)
    return found


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    heads: list[str] = []
    _by_parts(text, lambda part: (heads.extend(re.findall(r"^#+ (.+)$", part, re.M)), part)[1])
    return {re.sub(r"[^\w\- ]", "", head.lower().replace("`", "")).strip().replace(" ", "-") for head in heads}
