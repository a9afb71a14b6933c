"""The engine's log: each node that a backward pass runs, at level DEBUG, in the logger ``retrograd.autograd``.

    logging.getLogger("retrograd.autograd").setLevel(logging.DEBUG)

Only that logger's own level counts, not one that it inherits: a pass then finds out by looking at a list whether it has
to log, which costs nothing, and an application that sets the root logger to DEBUG is not flooded.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .node import Node
    from .node_call import Call

#: Not empty while passes are to be logged.
logged_at: list[int] = []


class _Logger(logging.Logger):
    """Says in `logged_at` whether its level lets through what the engine has to say."""

    def setLevel(self, level: int | str) -> None:
        super().setLevel(level)
        logged_at[:] = [self.level] if 0 < self.level <= logging.DEBUG else []


log: Any = logging.getLogger("retrograd.autograd")
log.__class__ = _Logger
log.setLevel(log.level)


def logging_each(call: Call) -> Call:
    """`call`, which runs a node, with a line in the log before it."""

    def logged(node: Node, edges: tuple, grads: Sequence, as_tensors: bool) -> Sequence:
        if node.input_metadata:  # not the GraphRoot
            shapes = ",".join(_abbreviated(grad._data if as_tensors and grad is not None else grad) for grad in grads)
            log.debug("Executing: %r with grad_outputs: [%s]", node, shapes)
        return call(node, edges, grads, as_tensors)

    return logged


def _abbreviated(array: Any) -> str:
    if array is None:
        return "None"
    dtype = array.dtype
    return f"{dtype.kind}{dtype.itemsize * 8}[{', '.join(map(str, array.shape))}]"
