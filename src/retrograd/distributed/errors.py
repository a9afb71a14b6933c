"""What goes wrong between processes: torch's classes."""

from __future__ import annotations

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError"]


class DistError(RuntimeError):
    """Something went wrong between processes."""


class DistBackendError(DistError):
    """A collective operation failed: a process ended, raised, or did not come in time."""


class DistNetworkError(DistError):
    """A process could not be reached."""


class DistStoreError(DistError):
    """The store did not answer, or not in time."""
