"""The pages of the site: every block of code runs and prints what the page says; links lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from website import api, blocks, charts, errors, links

import retrograd

ROOT = blocks.ROOT
PAGES = blocks.pages()
#: Texts of the repository that are shown on the site, or lead to it.
TEXTS = [*PAGES, ROOT / "README.md", *(ROOT / name for name in links.REPOSITORY)]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def same_state(clean_state: None) -> Iterator[None]:
    from retrograd.core import devices

    before, classes = retrograd.get_rng_state(), set(devices._BY_ARRAY_CLASS)
    yield
    retrograd.set_rng_state(before)
    for added in set(devices._BY_ARRAY_CLASS) - classes:
        devices.forget_array_class(added)


@pytest.mark.parametrize("page", [*PAGES, *(ROOT / name for name in links.REPOSITORY)], ids=name)
def test_blocks_do_what_the_page_says(page: Path, same_state: None) -> None:
    drawn: list[str] = []
    blocks.run_page(page, lambda picture, what: drawn.append(picture))
    shown = re.findall(r"!\[[^\]]*\]\((?:\.\./)*_made/pictures/([\w-]+)\.svg\)", page.read_text(encoding="utf-8"))
    assert drawn == shown, "pictures that are made and pictures that are shown"


@pytest.mark.parametrize("page", TEXTS, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert links.broken(page, text) == []
    made = re.findall(r"\]\((?:\.\./)*_made/(\w+)/([\w.-]+)\.(?:md|svg)\)", text)
    known = {
        "charts": {"speed", *map(charts.file_name, charts.all_tables())},
        "api": {"torch", "torch.Tensor", *api.names()},
        "errors": set(errors.table()["pages"]),
    }
    assert [one for one in made if one[0] != "pictures" and one[1] not in known[one[0]]] == []


#: Blocks that nothing runs, with the page's own reason; a new one has to be written down here, too.
NOT_RUN = {
    "docs/CAPTURE.md": ["checked by tests/docs/test_pages.py"],
    "docs/ARCHITECTURE.md": ["drawing: what is made of what, in characters"],
    "docs/DISTRIBUTED.md": ["checked by tests/distributed/test_failures.py"],
    "docs/extending/operator.md": [
        "append src/retrograd/kernels/activation.py", "append src/retrograd/derivatives/activation.yaml",
        "checked by tests/docs/test_own_operator.py", "checked by tests/docs/test_own_operator.py",
    ],
    "CONTRIBUTING.md": ["checked by tests/docs/test_own_operator.py"],
    "benchmarks/README.md": ["checked by benchmarks/sweep_operators.py"],
}  # fmt: skip


def test_no_block_is_left_out_without_a_reason() -> None:
    found: dict[str, list[str]] = {}
    for page in [*PAGES, *(ROOT / name for name in links.REPOSITORY)]:
        for block in blocks.blocks(page):
            if block.said[0] in ("drawing", "checked by", "append"):
                found.setdefault(name(page), []).append(" ".join(block.said).replace("drawing :", "drawing:"))
    assert found == NOT_RUN


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_code_is_fenced(page: Path) -> None:
    """Code that is merely indented would be seen by nobody above."""
    text = re.sub(r"^( *)(`{3,}).*?^\1\2 *$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert re.findall(r"(?<=\n\n) {4,}(?![-*] |\d)\S.*", text) == []


def test_the_listing_of_a_captured_step_is_that_of_its_program() -> None:
    """docs/CAPTURE.md shows some lines of what `step.source` gives: calls and shapes are the same, in this order.

    They are those without the compiled extra, which has kernels of its own for them.
    """
    page = blocks.DOCS / "CAPTURE.md"
    step, *_, listing = (b.text for b in blocks.blocks(page) if b.kind == "python" or b.said[0] == "checked by")
    namespace: dict[str, Any] = {}
    exec(compile(step, "train.py", "exec"), namespace)
    inputs, targets = retrograd.rand(32, 784), retrograd.randint(0, 10, (32,))
    with retrograd.backends.fast.flags(enabled=False):
        for _ in range(4):
            namespace["step"](inputs, targets)

    def calls(text: str) -> list[tuple[str, str]]:
        found = re.findall(r"^ +#? *(\w+)\([^#]*\) *# (float32\[[\d,]*\])?", text, re.M)
        return [call for call in found if not call[0].startswith("native")]

    shown, made = calls(listing), iter(calls(namespace["step"].source))
    assert len(shown) > 5 and [call for call in shown if call not in made] == []


def test_links_to_other_sites_are_well_formed() -> None:
    """Nothing is fetched: a link leads by https to a name with a dot, and has no spaces or brackets left over."""
    for page in TEXTS:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
        for target in re.findall(r"\]\(([a-z]+:[^)]*)\)", text):
            assert re.fullmatch(r"https://[a-z0-9-]+(\.[a-z0-9-]+)+(/[\w./#?=&%~+@-]*)?", target), (name(page), target)


def test_every_concept_has_a_chapter_with_program_picture_and_files() -> None:
    chapters = [page for page in PAGES if page.parent.name == "autograd" and page.stem != "index"]
    assert {page.stem for page in chapters} == {
        "meta", "node_edge", "engine", "buffers", "accumulation", "saved", "views", "hooks", "custom", "anomaly",
        "forward", "codegen",
    }  # fmt: skip
    for page in chapters:
        kinds = [block.kind for block in blocks.blocks(page)]
        assert "python" in kinds and "picture" in kinds
        text = links.rewrite(page.read_text(encoding="utf-8"), page)
        assert "/_made/source/src/retrograd/" in text, "links to the files of the package"


@pytest.mark.parametrize("guide", ["EXPLORER", "PROFILER", "FUNC", "META", "CAPTURE", "CUDA", "DISTRIBUTED"])
def test_every_guide_has_a_program_and_is_in_the_navigation(guide: str) -> None:
    assert "python" in [block.kind for block in blocks.blocks(blocks.DOCS / f"{guide}.md")]
    index = (blocks.DOCS / "index.md").read_text(encoding="utf-8")
    assert f"\n{guide}\n" in index and f"]({guide}.md)" in index


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_commands_that_are_listed_exist(page: str) -> None:
    listed = re.findall(r"^ {4}make ([a-z-]+)", (ROOT / page).read_text(encoding="utf-8"), re.M)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert len(listed) > 2 and [one for one in listed if one not in targets] == []


# -------------------------------------------------------------------------------------------------- the tests can fail

WRONG = {
    "a program that prints something else": "```python\nprint(1)\n```\n\n```text\n2\n```\n",
    "a program that prints, and nobody says what": "```python\nprint(1)\n```\n",
    "a program that raises": "```python\n1 / 0\n```\n",
    "an example with another result": "```python\n>>> 1 + 1\n3\n```\n",
    "a block that nobody runs": "```javascript\nalert(1)\n```\n",
    "an excerpt that is none": "<!-- excerpt README.md -->\n```text\nno such line\n```\n",
    "an excerpt of no file": "<!-- excerpt NOTHING.md -->\n```text\n...\n```\n",
    "a target that make does not have": "```sh\nmake coffee\n```\n",
    "nothing to run, and no reason": "<!-- drawing -->\n```\n-->\n```\n",
    "a module that is not there": "```sh\npython -m retrograd.nothing\n```\n",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=list(WRONG))
def test_wrong_blocks_are_noticed(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    monkeypatch.setattr(blocks.Block, "where", property(lambda self: f"page:{self.line}"))
    with pytest.raises(blocks.Wrong):
        blocks.run_page(page)


def test_broken_links_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A heading\n\n[1](page.md#a-heading) [2](page.md#another) [3](no.md) [4](#a-heading)\n")
    found = links.broken(page, page.read_text())
    assert [one.split()[0] for one in found] == ["page.md#another", "no.md"]
