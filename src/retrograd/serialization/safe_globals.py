"""What users allow `load` to make besides tensors and plain values: `add_safe_globals` and its kin."""

from __future__ import annotations

from typing import Any

_added: tuple[Any, ...] = ()


def user_safe() -> dict[str, Any]:
    """By the name that files have for them: what the user has added."""
    found = {}
    for thing in _added:
        if not isinstance(thing, tuple):
            found[f"{thing.__module__}.{thing.__qualname__}"] = thing
            continue
        if len(thing) != 2:
            raise ValueError(
                f"Expected tuple of length 2 (global, str of callable full path), but got tuple of length: {len(thing)}"
            )
        if type(thing[1]) is not str:
            raise TypeError(
                f"Expected second item in tuple to be str of callable full path, but got: {type(thing[1])}"
            )
        found[thing[1]] = thing[0]
    return found


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let `load` make instances of these classes, and call these functions, whatever file asks for it.

    An item is a class or function, or a pair of one and the name that files have for it.
    """
    global _added
    _added = (*_added, *(thing for thing in safe_globals if thing not in _added))


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` has added."""
    return list(_added)


def clear_safe_globals() -> None:
    """Take back everything that `add_safe_globals` has added."""
    global _added
    _added = ()


class safe_globals:
    """``with safe_globals([MyClass]):``: `add_safe_globals` for a while.

    >>> import retrograd as torch
    >>> with torch.serialization.safe_globals([range]):
    ...     torch.serialization.get_safe_globals()
    [<class 'range'>]
    >>> torch.serialization.get_safe_globals()
    []
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self.given = safe_globals

    def __enter__(self) -> None:
        global _added
        added = tuple([thing for thing in self.given if thing not in _added])
        self.before = _added
        _added += added  # last: Note [Interrupts and modes] in core/state.py

    def __exit__(self, *exc_info: object) -> None:
        global _added
        _added = self.before
