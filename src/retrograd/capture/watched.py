"""Entries of a container as they were, and what is read like a dictionary though it is none.

Which ones a captured program hangs on, guards.py finds out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from operator import itemgetter
from typing import Any

import numpy as np

from .arguments import is_equal

#: What stands for something that is not there.
GONE: Any = object()
#: Containers of whose content nobody asks where the package fills in something.
CONTAINERS = (dict, list, tuple, set)


class Watched:
    """Entries of a container, as they were: `read` gives what they are now, in the same order.

    It may be a sequence as a whole, or the attributes of an object of the package, which may fill in some at first.
    """

    def __init__(self, container: Any, label: str = "", entries: Any = None) -> None:
        self.container: Any = container
        self.label: str = label
        self.settles: bool = entries.__class__ is dict
        is_list = entries.__class__ is list
        #: Are these all entries that it has?
        self.whole: bool = is_list
        self.is_list: bool = is_list
        self.keys: list[Any] = list(entries) if self.settles else list(range(len(entries))) if is_list else []
        self.values: list[Any] = list(entries.values()) if self.settles else entries or []
        self.names: list[str] = []
        self.read: Callable[[Any], Any] = tuple
        #: What `read` has to give, and the keys of a dictionary that is watched as a whole, in their order.
        self.expected: list[Any] = self.values
        self.order: list[Any] | None = None

    def add(self, key: Any, value: Any, name: str) -> None:
        if self.label:
            self.names, self.label = [self.label.format(known) for known in self.keys], ""
        self.keys.append(key)
        self.values.append(value)
        self.names.append(name)

    def seal(self) -> None:
        self.expected = self.expected if self.order is not None else self.values
        if self.is_list or self.read is not tuple:
            return
        if self.whole and not self.settles and type(self.container) in (dict, OrderedDict):
            self.order = list(self.container)
            self.read, self.expected = _in_order, _in_order(self.container)
        elif self.settles or (isinstance(self.container, dict) and type(self.container) not in (dict, OrderedDict)):
            self.read = self._entries  # which makes none, as brackets may
        else:
            self.read = itemgetter(*self.keys, self.keys[0])  # at least two, so that it gives a tuple

    def _entries(self, container: Any) -> list[Any]:
        return [dict.get(container, key, GONE) for key in self.keys]

    def settle(self) -> None:
        found = {key: value for key, value in self.container.items() if not isinstance(value, CONTAINERS)}
        self.keys, self.values = list(found), list(found.values())

    def changed(self) -> str | None:
        for position, (key, value) in enumerate(zip(self.keys, self.values)):
            try:
                now = self.container[key]
            except (KeyError, IndexError, AttributeError):
                now = GONE
            if now is not value and not is_equal(now, value):
                if self.names:
                    return self.names[position]
                return f"{self.label}{key}" if self.settles else self.label.format(key)
        if self.order is not None and not _are_same_keys(list(self.container), self.order):
            name = self.names[0] if self.names else self.label.format(self.order[0])
            return f"the order or the class of keys such as that of {name}"
        return None

    def put_back(self, cls: type | None) -> None:
        """`cls` is the class whose attributes these are."""
        container = self.container
        if cls is not None:
            for key, value in zip(self.keys, self.values):
                if container.get(key, GONE) is not value:
                    setattr(cls, key, value)
        elif self.is_list:
            if list(map(id, container)) != list(map(id, self.values)):
                container.clear()
                container.extend(self.values)
        elif isinstance(container, dict) and not self.settles:
            for key, value in zip(self.keys, self.values):
                if dict.get(container, key, GONE) is not value:
                    dict.__setitem__(container, key, value)
            for key in set(container) - set(self.keys) if self.whole else ():
                dict.__delitem__(container, key)
        elif container.__class__ is Slots and not isinstance(container.one, type):
            for key, value in zip(self.keys, self.values):
                if value is not GONE:
                    setattr(container.one, key, value)
                elif hasattr(container.one, key):
                    delattr(container.one, key)


def _in_order(container: dict[Any, Any]) -> list[Any]:
    return [*container, *container.values()]


def _are_same_keys(now: list[Any], before: list[Any]) -> bool:
    return len(now) == len(before) and all([
        one is two or (one.__class__ is two.__class__ and one == two) for one, two in zip(now, before)
    ])  # fmt: skip


# --------------------------------------------------------------------------------------- what is read like a dictionary


class Slots:
    """The slots of an object, of which some may be empty."""

    def __init__(self, one: Any) -> None:
        self.one: Any = one

    def __iter__(self) -> Iterator[str]:
        for cls in type(self.one).__mro__:
            slots = vars(cls).get("__slots__", ())
            yield from (slots,) if isinstance(slots, str) else slots

    def __getitem__(self, key: str) -> Any:
        return getattr(self.one, key, GONE)

    def __contains__(self, key: object) -> bool:
        return False


class ThreadsOwn(Slots):
    """What a thread has of its own."""

    def __iter__(self) -> Iterator[str]:
        return iter(list(vars(self.one)))


class Context:
    """A context variable."""

    def __init__(self, one: ContextVar[Any]) -> None:
        self.one: ContextVar[Any] = one

    def __getitem__(self, key: str) -> Any:
        return self.one.get(GONE)


class NumPysRandom:
    """The generator behind the functions of np.random, by the name that says whether a function has to do with it."""

    def __iter__(self) -> Iterator[str]:
        return iter(("random",))

    def __getitem__(self, key: str) -> Any:
        return np.random.mtrand._rand  # type: ignore[attr-defined]

    def __contains__(self, key: object) -> bool:
        return False
