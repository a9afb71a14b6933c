"""Build the site: `make docs`.

First everything that is made is made, under docs/_made: the reference from the docstrings, the pages of error messages
from the source, charts from the benchmarks' tables, pictures (and the explorer's own pages) from the programs of the
pages, which are run for it, and a page for each file that is linked to.  Then Sphinx writes build/site, with warnings
as errors.  Nothing is fetched from anywhere.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))

from website import api, blocks, charts, errors, links, pictures

DOCS = ROOT / "docs"
MADE = DOCS / "_made"
SITE = ROOT / "build" / "site"
LANGUAGES = {".py": "python", ".yaml": "yaml", ".js": "javascript", ".c": "c", ".h": "c", ".toml": "toml"}


def main() -> int:
    began = time.perf_counter()
    if not make():
        return 1
    made = time.perf_counter()
    for old in (SITE, ROOT / "build" / "doctrees"):
        shutil.rmtree(old, ignore_errors=True)
    options = ["-W", "--keep-going", "-q", "-j", "auto", "-b", "html", "-d", str(ROOT / "build" / "doctrees")]
    code = subprocess.run([sys.executable, "-m", "sphinx", *options, str(DOCS), str(SITE)], check=False).returncode
    end = time.perf_counter()
    print(f"{made - began:.0f} s for what is made, {end - made:.0f} s for the pages")
    if code == 0:
        print(f"the site is in {SITE.relative_to(ROOT)}: open {(SITE / 'index.html').relative_to(ROOT)}")
    return code


def make() -> bool:
    """Make everything under docs/_made; False, with words, if the package or the pages do not let it."""
    shutil.rmtree(MADE, ignore_errors=True)
    wrong = [f"{name} has no docstring" for name in api.undocumented()] + errors.problems()
    names = {"api": api.write(MADE / "api"), "errors": errors.write(MADE / "errors")}
    charts.write(MADE / "charts")
    (MADE / "pictures").mkdir()
    (MADE / "extra" / "explorer").mkdir(parents=True)
    for page in blocks.pages():
        try:
            blocks.run_page(page, draw)
        except blocks.Wrong as error:
            wrong.append(str(error))
    take_screenshots()
    for folder, pages in names.items():
        write_index(folder, pages)
    write_sources()
    (MADE / "static").mkdir()
    (MADE / "static" / "made.css").write_text(pictures.style() + "\n" + charts.site_style(), encoding="utf-8")
    for one in wrong:
        print(one, file=sys.stderr)
    return not wrong


def draw(name: str, what: Any) -> None:
    """A picture for a page, and what it is a picture of, to be played with."""
    (MADE / "pictures" / f"{name}.svg").write_text(pictures.draw(name, what), encoding="utf-8")
    page = what[0] if isinstance(what, tuple) else what
    page.save(MADE / "extra" / "explorer" / f"{name}.html")


def take_screenshots() -> None:
    """The explorer's pages in a browser, for docs/EXPLORER.md; without one, the page shows those that are kept."""
    import explorer_screenshots

    absent = explorer_screenshots.missing()
    if absent is None:
        with contextlib.redirect_stdout(io.StringIO()):
            explorer_screenshots.main(MADE / "screenshots")
    else:
        print(f"the explorer's screenshots are those that are kept: {absent}")


def write_index(folder: str, pages: list[str]) -> None:
    listed = "\n".join(pages)
    (MADE / folder / "toc.txt").write_text(listed, encoding="utf-8")


def write_sources() -> None:
    """Pages for texts and files from outside of docs/."""
    texts = [(page, page.read_text(encoding="utf-8")) for page in blocks.pages()]
    for name in links.REPOSITORY:
        text = (ROOT / name).read_text(encoding="utf-8")
        texts.append((ROOT / name, text))
        page = MADE / "repository" / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(links.rewrite(text, ROOT / name), encoding="utf-8")
    for name in links.linked_sources(texts):
        page = MADE / "source" / f"{name}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / name).read_text(encoding="utf-8")
        language = LANGUAGES.get(Path(name).suffix, "text")
        head = f"---\norphan: true\nnosearch: true\n---\n\n# {Path(name).name}\n\n`{name}`\n\n"
        body = f"``````````{{code-block}} {language}\n:linenos:\n:force:\n\n{text}\n``````````\n"
        page.write_text(head + body, encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
