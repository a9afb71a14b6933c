"""Sphinx's settings for the site; docs/website/build.py makes what is made and starts Sphinx."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from docutils import nodes
from website import links

project = "retrograd"
author = "the retrograd authors"
copyright = "the retrograd authors, BSD 3-Clause"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["website", "_made/extra"]
root_doc = "index"
nitpicky = False
myst_heading_anchors = 4
myst_links_external_new_tab = False
html_theme = "furo"
html_title = "retrograd"
html_static_path = ["static", "_made/static"]
html_css_files = ["site.css", "made.css"]
html_extra_path = ["_made/extra"]
html_copy_source = False
html_show_sphinx = False
highlight_language = "none"  # of a block that says nothing: listings, drawings
pygments_style = "tango"
pygments_dark_style = "monokai"
toc_object_entries = False
python_maximum_signature_line_length = 100


def for_the_site(app: Any, docname: str, source: list[str]) -> None:
    """Links to files become links to pages that show them."""
    if not docname.startswith("_made/"):
        source[0] = links.rewrite(source[0], HERE / f"{docname}.md")
    source[0] = re.sub(r"^%%toc (\w+)%%$", lambda found: _toc(found.group(1)), source[0], flags=re.M)


    source[0] = source[0].replace("%%guides%%", "\n".join(_guides(source[0])))


def _guides(index: str) -> list[str]:
    """The guides, which have names in capitals, that the index does not name: a new one is found by itself."""
    names = sorted(path.stem for path in HERE.glob("[A-Z]*.md"))
    return [name for name in names if not re.search(rf"^{name}$", index, re.M)]


def _toc(folder: str) -> str:
    names = (HERE / "_made" / folder / "toc.txt").read_text(encoding="utf-8").split()
    return "\n".join(f"/_made/{folder}/{name}" for name in names)


def drawings_into_pages(app: Any, doctree: nodes.document) -> None:
    """SVGs that the build has made go into the page itself, so that they follow its light or dark look."""
    docname = app.env.docname
    for image in list(doctree.findall(nodes.image)):
        uri = image["uri"]
        shot = HERE / "_made" / "screenshots" / Path(uri).name
        if "explorer/" in uri and shot.exists():  # the kept one is for those who read the page elsewhere
            image["uri"] = f"/_made/screenshots/{shot.name}"
        if "_made/" not in uri or not uri.endswith(".svg"):
            continue
        file = HERE / uri.lstrip("/") if uri.startswith("/") else (HERE / docname).parent / uri
        name, up = file.stem, "../" * docname.count("/")
        text = file.read_text(encoding="utf-8")
        caption = image.get("alt", "")
        note = ""
        if "pictures" in file.parts:
            note = f' <a class="explore" href="{up}explorer/{name}.html">Open it in the explorer</a>'
        narrow = file.with_name(f"{name}-narrow.svg")
        if narrow.exists():
            text = f'<div class="wide">{text}</div><div class="narrow">{narrow.read_text(encoding="utf-8")}</div>'
        figure = f'<figure class="drawing"><div>{text}</div><figcaption>{caption}{note}</figcaption></figure>'
        image.replace_self(nodes.raw("", figure, format="html"))


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", for_the_site)
    app.connect("doctree-read", drawings_into_pages, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
