"""The engine's log: each node that a backward pass runs, at level DEBUG, in the logger ``retrograd.autograd``.

    logging.getLogger("retrograd.autograd").setLevel(logging.DEBUG)

Only that logger's own level counts, not one that it inherits: a pass that is not logged then pays for looking at one
attribute, and an application that sets the root logger to DEBUG is not flooded.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .node import Node
    from .node_call import Call

log = logging.getLogger("retrograd.autograd")


def is_logged() -> bool:
    """Does the logger's own level let through what the engine has to say?"""
    return logging.NOTSET < log.level <= logging.DEBUG


def logging_each(call: Call) -> Call:
    """`call`, which runs a node, with a line in the log before it."""

    def logged(node: Node, edges: tuple[Any, ...], grads: Sequence[Any], as_tensors: bool) -> Sequence[Any]:
        if node.input_metadata:  # not the GraphRoot
            arrays = (grad._memory_ if as_tensors and grad is not None else grad for grad in grads)
            shapes = ",".join(map(_abbreviated, arrays))
            log.debug("Executing: %r with grad_outputs: [%s]", node, shapes)
        return call(node, edges, grads, as_tensors)

    return logged


def _abbreviated(array: Any) -> str:
    if array is None:
        return "None"
    dtype = array.dtype
    return f"{dtype.kind}{dtype.itemsize * 8}[{', '.join(map(str, array.shape))}]"
