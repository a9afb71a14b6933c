"""LoadError: what `load` raises when something is wrong with a file; and a warning that torch has."""

from __future__ import annotations

import pickle


class SourceChangeWarning(Warning):
    """For filters of warnings: that a class is not what it was when a file was written is not warned about here."""


class LoadError(RuntimeError, pickle.UnpicklingError):
    """What `load` raises when something is wrong with the file: whatever it is, this and nothing else.

    torch raises RuntimeError for a broken archive and pickle.UnpicklingError for what it does not load; this is both.
    """
