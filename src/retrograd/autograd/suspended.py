"""Backward passes that ran out of a device's memory: they go on where they stopped when they are called again.

Note [Out of memory]
Nodes let go of what they saved as they run, which is what makes room for the next ones.  So a pass that finds no memory
half way through could not begin again, unless everything were kept until its end.  It need not: what is left of it is
kept instead, the nodes that were ready with their gradients, and those that wait with what they have got
(`Suspended`).  Once something was freed, the same call (the same roots and gradients) goes on from there:

* A node that found no memory runs again, hooks and all; it had not let go of anything.
* Gradients that had reached leaves are taken back (``x.grad`` is None again) and are delivered when the pass goes on.
  Where there was a gradient before, to which they were added in place, they stay; nobody may change that
  ``.grad`` in between, and the pass looks whether somebody did.
* Another call than the same is refused, in words that say so: what it would need is gone.

It is kept by the first root, weakly: with the graph goes what is left of the pass.  Passes of the CPU never come here.
"""

from __future__ import annotations

import weakref
from typing import Any

from .accumulate_grad import AccumulateGrad
from .graph_task import GraphTask


class Suspended:
    """What is left of a pass."""

    def __init__(self, task: GraphTask, left: list[Any], handing: list[Any], as_tensors: bool) -> None:
        # Not the task, which holds the roots, with which this is to go.
        self.call, self.given = _call(task, as_tensors), task.given
        self.state: dict[str, Any] = {name: getattr(task, name) for name in _STATE if hasattr(task, name)}
        #: Nodes that are ready, with their gradients; and gradients on their way from a node that has run.
        self.left, self.handing = left, handing
        #: Leaves whose gradients were added to, with the ``.grad`` that they have and its version.
        self.written: list[tuple[Any, Any, int]] = []

    def is_same(self, task: GraphTask, as_tensors: bool) -> bool:
        """Is `task` the call that was suspended, once more?"""
        return self.call == _call(task, as_tensors) and all(
            a is b or (a.shape == b.shape and a.dtype == b.dtype and bool((a == b).all()))
            for a, b in zip(self.given, task.given, strict=True)
        )


#: What a pass knows beside its graph.
_STATE = ("not_ready", "captured", "freed", "hook_data", "final_callbacks", "boxes")


def _call(task: GraphTask, as_tensors: bool) -> Any:
    """What was asked for. Nodes by number: those of one graph live as long as its root."""
    wanted = None
    if task.exec_info is not None:
        wanted = {id(node): info.captures for node, info in task.exec_info.items() if info.should_execute}
    roots = [id(node) for node in task.graph_roots]
    return roots, wanted, as_tensors, task.keep_graph, task.create_graph, len(task.given)


#: By their first root.
passes: weakref.WeakKeyDictionary[Any, Suspended] = weakref.WeakKeyDictionary()


def suspend(task: GraphTask, left: list[Any], handing: list[Any], leaves: list[Any], as_tensors: bool) -> None:
    """Keep what is left of a pass. `leaves`: those that were to get a gradient, with the ``.grad`` before."""
    made = Suspended(task, left, handing, as_tensors)
    for node, before in leaves:
        meta = node.variable._grad_meta_
        if meta.post_accumulate_grad_hooks is not None or meta.grad is None:
            continue
        if before is not None:
            made.written.append((node.variable, before, before._version))
        else:
            grad, meta.grad = meta.grad, None
            made.left.append((node, [grad if as_tensors else grad._memory_]))
    passes[task.graph_roots[0]] = made


def take(task: GraphTask, as_tensors: bool) -> Suspended | None:
    """What is left of the same pass, if there is something; `task` goes on with what the other knew."""
    found = passes.get(task.graph_roots[0])
    if found is None:
        return None
    if not found.is_same(task, as_tensors):
        raise RuntimeError(
            "A backward pass through this graph ran out of memory, and what it had used was freed. It can go on, by "
            "the same call with the same gradients, but this is another one: make that call, or run the forward pass "
            "again"
        )
    for variable, grad, version in found.written:
        if variable.grad is not grad or grad._version != version:
            raise RuntimeError(
                "A backward pass ran out of memory after it had added to the gradient of a leaf of shape "
                f"{list(variable.shape)}, and that was changed since: the pass cannot go on. Leave .grad alone until "
                "the pass is done, or run the forward pass again"
            )
    del passes[task.graph_roots[0]]
    for name, value in found.state.items():
        setattr(task, name, value)
    return found


def before_leaf(node: Any) -> tuple[Any, Any] | None:
    """A leaf that is about to get its gradient, and the one that it has."""
    if not isinstance(node, AccumulateGrad):
        return None
    meta: Any = node.variable._grad_meta_
    return node, None if meta is None else meta.grad
