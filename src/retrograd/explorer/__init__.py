"""The graph and its run, to be looked at: ``show(loss)`` and ``record(loss).backward()`` open a page in the browser.

The page is one HTML file that needs no server and no network.  From the shell, ``python -m retrograd.explorer
script.py`` runs a script and explores its last backward pass.  docs/EXPLORER.md is the tour.
"""

from .page import Page
from .record import Recording, compare, record, show
from .watch import watch

__all__ = ["Page", "Recording", "compare", "record", "show", "watch"]
