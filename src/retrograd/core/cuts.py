"""Where tensors were cut off their history: what `why_no_grad` knows without anomaly mode.

``detach()``, ``detach_()`` and ``.data`` of something that requires grad are remembered, the last few of each thread,
with the line of the user's code; so is the line at which the thread last switched recording off.  A tensor is
known again by its version counter, which ``detach()`` shares, so that nothing is kept alive.  Results of further
operations are not followed: that would cost every operation something (anomaly mode does it).
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import _getframe
from typing import TYPE_CHECKING, Any

from .where import Location, between, is_theirs, theirs

if TYPE_CHECKING:
    from .state import ThreadState
    from .version_counter import VersionCounter

#: What was called, the version counter of the tensor and its result (None for ``.data``), and where.
Cut = tuple[str, "VersionCounter | None", Location]


def remember_cut(state: ThreadState, how: str, vc: VersionCounter | None) -> None:
    """A tensor that may require grad is cut off its history by our caller's caller. This package does not count."""
    frame: Any = _getframe(2)
    while frame.f_code.co_filename in between:
        frame = frame.f_back
    code = frame.f_code
    if code.co_filename in theirs or is_theirs(code.co_filename):
        state.cuts.append((how, vc, code, frame.f_lasti))


def remember_no_grad(state: ThreadState, mode_file: str) -> None:
    """Recording is switched off, by a call of a mode (in `mode_file`, which also has its decorators)."""
    frame: Any = _getframe(2)
    code = frame.f_code
    if code.co_filename == mode_file:
        frame = frame.f_back
        code = frame.f_code
    if code.co_filename in theirs or is_theirs(code.co_filename):
        state.no_grad_at = (code, frame.f_lasti)


def cuts_of(state: ThreadState) -> Iterator[Cut]:
    """The cuts that this thread remembers, the last one first."""
    for how, vc, code, instruction in reversed(tuple(state.cuts)):
        yield how, vc, Location(code, instruction)


def last_no_grad(state: ThreadState) -> Location | None:
    """Where this thread last switched recording off."""
    return None if state.no_grad_at is None else Location(*state.no_grad_at)
