"""The parts of data loading, under the names that torch has for them."""

from __future__ import annotations

from . import collate, fetch, pin_memory, worker

#: Seconds between looks at whether a worker, or the process that it works for, is still there.
MP_STATUS_CHECK_INTERVAL = 5.0

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "fetch", "pin_memory", "worker"]
