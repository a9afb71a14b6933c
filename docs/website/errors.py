"""The pages of error messages: each of them (`messages.py`) under its cause and its fix (`causes/*.toml`)."""

from __future__ import annotations

import html
import re
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from .messages import Message, messages

CAUSES = Path(__file__).with_name("causes")


@cache
def table() -> dict[str, Any]:
    """The pages, and the groups of all of them in the order in which they are asked; each group knows its page."""
    pages = _read("pages")["pages"]
    return {"pages": pages, "group": [{"page": page, **group} for page in pages for group in _read(page)["group"]]}


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((CAUSES / f"{name}.toml").read_text(encoding="utf-8"))


def group_of(message: Message) -> tuple[int, int] | None:
    """The number of the group that a message belongs to, and of the pattern that said so."""
    for number, (files, expressions) in enumerate(_groups()):
        if message.file.startswith(files):
            for pattern, expression in enumerate(expressions):
                if expression.search(message.text):
                    return number, pattern
    return None


@cache
def _groups() -> list[tuple[tuple[str, ...], list[re.Pattern[str]]]]:
    """The groups, ready to be compared with: beginnings of files, and patterns."""
    groups = table()["group"]
    return [(tuple(group.get("files", [""])), [re.compile(one) for one in group["match"]]) for group in groups]


def problems() -> list[str]:
    """What is wrong with the table: messages that it does not have, groups and patterns without a message."""
    used: set[tuple[int, int]] = set()
    found = []
    for message in messages():
        group = group_of(message)
        if group is None:
            where = f"{message.file}:{message.line}"
            found.append(f"{where} is in no group of docs/website/causes: {message.error}: {message.text}")
        else:
            used.add(group)
    for number, group in enumerate(table()["group"]):
        for pattern, expression in enumerate(group["match"]):
            if (number, pattern) not in used:
                found.append(f"no message is found by {expression!r} of the group {group['title']!r}")
    return found


def write(folder: Path) -> list[str]:
    """Write the pages; their names."""
    folder.mkdir(parents=True, exist_ok=True)
    members: dict[int, list[Message]] = defaultdict(list)
    for message in messages():
        group = group_of(message)
        if group is not None:
            members[group[0]].append(message)
    for page, title in table()["pages"].items():
        text = f"# {title}\n\nWhat is filled in when a message is raised stands in braces.\n\n"
        for number, group in enumerate(table()["group"]):
            if group["page"] == page:
                text += f"## {group['title']}\n\n**Cause.** {group['cause']}\n\n**Fix.** {group['fix']}\n\n"
                text += "```{raw} html\n" + _list(members[number]) + "\n```\n\n"
        (folder / f"{page}.md").write_text(text, encoding="utf-8")
    return list(table()["pages"])


def _list(those: list[Message]) -> str:
    """The messages of a group; many are folded away, but found by the browser's search."""
    rows = []
    for message in sorted(those, key=lambda one: (one.text.lower(), one.file)):
        text = html.escape(message.text)
        text = re.sub(r"(\{[^{}]*\})", r"<i>\1</i>", text)
        where = html.escape(f"{message.file}:{message.line}")
        kind = f'<code class="error-type">{html.escape(message.error)}</code>'
        rows.append(f"<li>{kind} {text} <small>{where}</small></li>")
    count = f"{len(rows)} message" + ("s" if len(rows) != 1 else "")
    opened = " open" if len(rows) <= 12 else ""
    return f'<details class="messages"{opened}><summary>{count}</summary><ul>{"".join(rows)}</ul></details>'
