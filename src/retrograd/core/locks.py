"""Locks for what threads make together.

Two threads that first use one leaf must get one accumulator, two that first hook one node must share its hooks, two
that first alias one tensor must share its version counter, and two that add to one ``.grad`` must not lose an update.
All this is short and rare enough for one lock, `graph_lock`.

Note [Steps under the GIL]
Taking a lock costs as much as two small objects.  With the GIL, threads take turns where a function begins, after a
call, and at a jump back; with a tracing function also between lines.  A look at a slot and a store to it in one line
that calls nothing are therefore one step, and need no lock: ``meta.grad = made if meta.grad is None else meta.grad``.
Whoever relies on that asks `STEPS_ARE_WHOLE` first, and takes the lock where there is no GIL.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import Any


def fork_safe_lock() -> Any:
    """A lock that a thread may take twice, and that is free in a forked child, which has no other thread to free it."""
    lock: Any = threading.RLock()
    _locks.add(lock)
    return lock


#: Those that are freed in a forked child.
_locks: Any = weakref.WeakSet()


def _free_all() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)


graph_lock: Any = fork_safe_lock()

#: Is there a GIL?  See Note [Steps under the GIL].
STEPS_ARE_WHOLE: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
