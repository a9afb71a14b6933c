"""The API reference and the pages of error messages are whole."""

from __future__ import annotations

import inspect
import types
from collections import Counter
from pathlib import Path

import pytest
from website import api, errors, messages

import retrograd


def test_every_public_name_has_a_docstring() -> None:
    assert api.undocumented() == []


def test_a_name_without_a_docstring_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def bare() -> None: ...

    class Bare:
        """Has one, but its method has none."""

        def method(self) -> None: ...

    bare.__module__ = Bare.__module__ = "retrograd.nn"
    monkeypatch.setattr(api, "names", lambda: {"nn": {"bare": bare, "Bare": Bare}})
    assert api.undocumented() == ["torch.nn.bare", "torch.nn.Bare.method"]


def test_the_reference_has_every_declared_name(tmp_path: Path) -> None:
    """Whatever ``__all__`` of a namespace lists is described on some page, under this name or its first one."""
    pages = api.write(tmp_path)
    assert {path.stem for path in tmp_path.glob("*.md")} == set(pages)
    described = {id(value) for those in api.names().values() for value in those.values()}
    nn = retrograd.nn
    for space in (retrograd, nn, nn.functional, retrograd.autograd, retrograd.optim, retrograd.linalg):
        for name in space.__all__:
            value = getattr(space, name)
            assert isinstance(value, types.ModuleType) or name.startswith("_") or id(value) in described, name
    text = (tmp_path / "torch.Tensor.md").read_text()
    public = [name for name in dir(retrograd.Tensor) if not name.startswith("_")]
    slots = [n for n in public if isinstance(inspect.getattr_static(retrograd.Tensor, n), types.MemberDescriptorType)]
    constants = [n for n in public if isinstance(inspect.getattr_static(retrograd.Tensor, n), (bool, type(None)))]
    missing = [n for n in public if f" Tensor.{n}" not in text and n not in slots and n not in constants]
    assert missing == []


def test_docstrings_become_markdown() -> None:
    assert api.prose("Gives *x* for `a*b`.\n\n>>> 1 < 2\nTrue") == (
        "Gives \\*x\\* for `a*b`.\n\n\n```python\n>>> 1 < 2\nTrue\n```"
    )


# -------------------------------------------------------------------------------------------------------------- errors


def test_every_message_is_on_a_page_and_no_entry_is_stale() -> None:
    """If this fails: put the message under a group in docs/website/causes, or take out what nothing matches."""
    assert errors.problems() == []


#: Messages that nobody has written yet: words that any message may have, and nothing that says what went wrong.
NEW = [
    "something quite new", "this is not supported here", "{name}(): this cannot be done", "got {value}, which is wrong",
    "the call was refused: {why}", "expected another thing, but got {what}", "{what} is not what {name} needs",
]  # fmt: skip


def test_a_new_message_has_no_group_until_somebody_writes_one() -> None:
    """No group takes a whole folder, whatever its messages say: in every file, these are found by no pattern."""
    files = sorted({message.file for message in messages.messages()})
    assert len(files) > 200
    for file in files:
        for text in NEW:
            assert errors.group_of(messages.Message("RuntimeError", text, file, 1)) is None, (file, text)


def test_no_group_is_about_everything() -> None:
    count = Counter(group[0] for message in messages.messages() if (group := errors.group_of(message)))
    assert {errors.table()["group"][number]["title"]: n for number, n in count.items() if n > 45} == {}


def test_every_file_of_causes_is_a_page() -> None:
    assert {path.stem for path in errors.CAUSES.glob("*.toml")} == {"pages", *errors.table()["pages"]}
    titles = [(group["page"], group["title"]) for group in errors.table()["group"]]
    assert len(titles) == len(set(titles))


def test_the_scan_finds_messages() -> None:
    found = messages.messages()
    assert len(found) > 2500
    texts = {message.text for message in found}
    assert any(text.startswith("one of the variables needed for gradient comp") for text in texts)  # made elsewhere
    assert any(text.startswith("Trying to backward through the graph a second time") for text in texts)
    assert any(text == "step must be nonzero" for text in texts)


def test_a_message_without_a_group_and_a_stale_pattern_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    new = messages.Message("RuntimeError", "something quite new", "brand_new/file.py", 1)
    monkeypatch.setattr(errors, "messages", lambda: [new])
    found = errors.problems()
    assert found[0].startswith("brand_new/file.py:1 is in no group")
    assert "no message is found by 'backward through the graph a second time'" in found[1]


def test_what_the_scan_reads(tmp_path: Path) -> None:
    source = '''
MESSAGES = {"a": "from a {} table"}
def words(x):
    return f"made of {x}"
def f(x, y):
    text = "in a variable"
    if x: raise ValueError(text)
    if y: raise TypeError("one " + str(x) + " two")
    if x > y: raise RuntimeError(MESSAGES["a"].format(x))
    if x < y: raise KeyError(words(x))
    error = IndexError("not raised" if x else "at once")
    raise error
def g(of, why="by default"):
    raise OSError(f"{of}{why}.")
def h(x):
    how = "at last"
    raise AssertionError(f"{x}: {how}")
g("given")
'''
    found = [(one.error, one.text) for one in messages._File("file.py", source).messages()]
    assert found == [
        ("ValueError", "in a variable"), ("TypeError", "one {str(x)} two"), ("RuntimeError", "from a {} table"),
        ("KeyError", "made of {x}"), ("IndexError", "not raised"), ("IndexError", "at once"),
        ("OSError", "given{why}."), ("OSError", "{of}by default."), ("AssertionError", "{x}: at last"),
    ]  # fmt: skip


def test_every_group_has_a_cause_and_a_fix() -> None:
    for group in errors.table()["group"]:
        assert len(group["cause"]) > 30 and len(group["fix"]) > 15, group["title"]
    for part in ("cause", "fix"):
        said = Counter(group[part] for group in errors.table()["group"])
        assert [text for text, times in said.items() if times > 1] == []
