"""The page as a file: valid, self-contained, and displayed by notebooks. What it does is in test_browser.py."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import retrograd as torch
from retrograd import explorer

ASSETS = Path(explorer.__file__).parent / "assets"
VOID = {"meta", "link", "input", "br", "hr", "img"}


class Checker(HTMLParser):
    """Every element that is opened is closed, in order; ids are unique; nothing is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href") and not value.startswith("data:"):
                self.loads.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag


@pytest.fixture
def page():
    x = torch.ones(2, requires_grad=True)
    evil = torch.ones(2, requires_grad=True)
    names = {"</script><script>alert(1)//": evil, 'quote"<b>&': x}
    return explorer.record((x * evil).sum(), names=names, title="a <title> & more", open=False).backward()


def test_the_page_is_valid_and_stands_alone(page):
    checker = Checker()
    checker.feed(page.html)
    checker.close()
    assert checker.open == [] and checker.loads == []
    assert len(checker.ids) == len(set(checker.ids))
    # Scripts and styles fetch nothing either. (The library names the namespaces of XML, which are no addresses.)
    ours = "".join(path.read_text(encoding="utf-8") for path in [*ASSETS.glob("*.js"), *ASSETS.glob("*.css")])
    assert set(re.findall(r"https?://[^\s\"']+", ours)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(fetch|XMLHttpRequest|importScripts|WebSocket|@import)\b", ours)


def test_the_data_comes_back_as_it_was(page):
    text = page.html.partition('id="data">')[2].partition("</script>")[0]
    assert json.loads(text) == json.loads(json.dumps({"version": 1, "runs": page.runs}))
    assert page.html.count("<script>alert") == 0
    assert "<title>a &lt;title&gt; &amp; more</title>" in page.html


def test_notebooks_display_it_in_a_frame(page):
    bundle = page._repr_mimebundle_()
    checker = Checker()
    checker.feed(bundle["text/html"])
    assert bundle["text/html"].startswith("<iframe srcdoc=") and checker.open == []
    assert bundle["text/plain"] == "<explorer page: a <title> & more, 4 nodes>"
    x = torch.ones(1, requires_grad=True)
    with explorer.record() as recording:
        (x * 2).backward()
    assert recording._repr_mimebundle_() == recording.page()._repr_mimebundle_()


def test_it_is_opened_by_the_browser_but_in_a_notebook(page, monkeypatch, tmp_path):
    import builtins
    import webbrowser

    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    target = tmp_path / "page.html"
    page.show(None, target)
    assert opened == [target.as_uri()] and target.read_text(encoding="utf-8") == page.html

    class Shell:
        kernel = object()

    monkeypatch.setattr(builtins, "get_ipython", Shell, raising=False)
    page.show(None, target)
    assert len(opened) == 1


def test_the_library_is_pinned_small_and_licensed():
    built = ASSETS / "vendor" / "explorer-libraries.min.js"
    assert built.stat().st_size < 2**20
    licences = (ASSETS / "vendor" / "LICENSES.txt").read_text(encoding="utf-8")
    pinned = json.loads((Path(__file__).parents[2] / "tools" / "explorer" / "package.json").read_text())["dependencies"]
    for name, version in pinned.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), "exactly one version"
        assert f"{name} {version} (" in licences


def test_the_library_is_imported_late():
    code = "import sys, retrograd; assert not [m for m in sys.modules if 'explorer' in m]; retrograd.explorer.show"
    subprocess.run([sys.executable, "-c", code], check=True)
