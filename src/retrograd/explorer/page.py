"""The page: one HTML file with everything in it: data, style, scripts and the library that lays graphs out."""

from __future__ import annotations

import html
import json
import tempfile
import webbrowser
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

#: What the page is made of, in order; the library is a build of pinned packages, see assets/vendor/README.md.
_SCRIPTS = (
    "model.js", "player.js", "scene.js", "picture.js", "export.js", "panels.js", "timeline.js", "view.js", "main.js",
)  # fmt: skip


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def _in_script(text: str) -> str:
    """A text that may stand in a script element: it does not end it."""
    return text.replace("</", "<\\/").replace("<!--", "<\\!--")


class Page:
    """One self-contained HTML page about one run or more; `runs` is the data that it shows.

    In a notebook it is displayed below the cell; else ``save(path)`` and ``open()``.
    """

    def __init__(self, runs: list[dict[str, Any]]) -> None:
        self.runs = runs
        #: Where the page was last saved.
        self.path: Path | None = None

    @property
    def title(self) -> str:
        """The names of its runs."""
        return " | ".join(run["name"] for run in self.runs)

    @property
    def html(self) -> str:
        """The whole page."""
        data = json.dumps({"version": 1, "runs": self.runs}, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
        library = _asset("vendor/explorer-libraries.min.js")
        layout = _asset("layout.js")
        parts = {
            "TITLE": html.escape(self.title),
            "STYLE": _asset("style.css"),
            "PICTURE": _asset("picture.css"),
            "DATA": data.replace("<", "\\u003c"),
            "LIBRARY": _in_script(library),
            "LAYOUT": _in_script(layout),
            "SCRIPTS": _in_script("\n".join(_asset(name) for name in _SCRIPTS)),
        }
        pieces = _asset("page.html").split("%%")
        return "".join(parts[piece] if position % 2 else piece for position, piece in enumerate(pieces))

    def save(self, path: str | PathLike[str] | None = None) -> Path:
        """Write the page to a file, one in the folder for temporary files if no `path` is given; where it is."""
        if path is not None:
            self.path = Path(path).resolve()
        elif self.path is None:
            with tempfile.NamedTemporaryFile(prefix="retrograd-explorer-", suffix=".html", delete=False) as file:
                self.path = Path(file.name)
        self.path.write_text(self.html, encoding="utf-8")
        return self.path

    def open(self) -> None:
        """Show the page in the browser."""
        webbrowser.open(self.save().as_uri())

    def show(self, open: bool | None, path: str | PathLike[str] | None) -> None:
        """Save to `path` if there is one, and open the page: if `open` is None, unless a notebook displays it."""
        if path is not None:
            self.save(path)
        if open or (open is None and not _in_notebook()):
            self.open()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What a notebook displays: the page in a frame of its own."""
        frame = (
            f'<iframe srcdoc="{html.escape(self.html)}" style="width:100%;height:680px;border:1px solid #8884;'
            f'border-radius:8px" title="{html.escape(self.title)}" allow="clipboard-write"></iframe>'
        )
        return {"text/html": frame, "text/plain": repr(self)}

    def __repr__(self) -> str:
        nodes = sum(len(run["nodes"]["op"]) for run in self.runs)
        return f"<explorer page: {self.title}, {nodes} nodes>"


def _in_notebook() -> bool:
    """Is this a notebook, which shows what a cell gives?"""
    try:
        shell = get_ipython()  # type: ignore[name-defined]
    except NameError:
        return False
    return hasattr(shell, "kernel")
