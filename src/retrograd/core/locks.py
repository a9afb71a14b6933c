"""Locks for what threads make together.

Two threads that first use one leaf must get one accumulator, two that first hook one node must share its hooks, two
that first alias one tensor must share its version counter, and two that add to one ``.grad`` must not lose an update.
All this is short and rare enough for one lock, `graph_lock`.
"""

from __future__ import annotations

import os
import threading
from typing import Any


def fork_safe_lock() -> Any:
    """A lock that a thread may take twice, and that is free in a forked child, which has no other thread to free it."""
    lock: Any = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)
    return lock


graph_lock: Any = fork_safe_lock()
