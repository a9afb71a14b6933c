"""The events of a recorded run: columns of numbers, one entry an event, which the page plays.

``type`` says what happened, ``about`` to which node (of `GRAD`: to which edge), ``lane`` on which thread, ``pass`` in
which pass, ``time`` when (microseconds), ``norm`` and ``flags`` what the gradient was; ``value`` is the rest.
"""

from __future__ import annotations

from typing import Any

from .values import shown

#: A pass begins at a node; value: how deep it is inside others.
BEGIN = 0
#: A node has all its gradients, and goes to the queue.
READY = 1
#: A node is taken from the queue and runs; norm and flags are of what came in.
RUN = 2
#: A gradient goes along an edge into a buffer; value: how many that node still waits for.
GRAD = 3
#: A hook runs; value: which of the texts.
HOOK = 4
#: A node lets go of what it saved; value: bytes that are free now.
RELEASE = 5
#: A node has run; of a leaf, norm and flags are of its ``.grad``.
DONE = 6
#: The gradient at a node is one that ``grad()`` gives back.
CAPTURE = 7
#: A pass is over.
END = 8
#: A node failed; value: which of the texts.
ERROR = 9
#: While a node runs, recorded operators compute something that stays: a checkpoint again, or a pass that is itself
#: recorded; value: bytes.
GROW = 10

COLUMNS = ("type", "about", "lane", "pass", "time", "norm", "flags", "value")


class Events:
    """The columns, while they are filled."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        self.texts: list[str] = []
        self.lanes: list[str] = []

    def add(
        self,
        kind: int,
        about: int,
        lane: int,
        number: int,
        time: int,
        norm: float | None = None,
        flags: int = 0,
        value: int = 0,
    ) -> None:
        for column, entry in zip(
            self.columns.values(), (kind, about, lane, number, time, shown(norm), flags, value), strict=True
        ):
            column.append(entry)

    def text(self, text: str) -> int:
        self.texts.append(text)
        return len(self.texts) - 1

    def lane(self, name: str) -> int:
        if name not in self.lanes:
            self.lanes.append(name)
        return self.lanes.index(name)

    def __len__(self) -> int:
        return len(self.columns["type"])

    def data(self) -> dict[str, Any]:
        return {**self.columns, "texts": self.texts, "lanes": self.lanes}
