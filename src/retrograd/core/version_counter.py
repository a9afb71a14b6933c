"""Version counters: how often a piece of memory was written to.

Note [Version counters]
A counter belongs to one piece of memory and is shared by every tensor that aliases it (views, ``detach()``; not
``.data``).  Each in-place write adds one.  ``_vc_`` is None while a tensor has never been written to and has no alias,
which is the case of nearly every tensor: `version_counter` makes the counter when somebody has to share or raise it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .locks import STEPS_ARE_WHOLE, graph_lock
from .where import Location

if TYPE_CHECKING:
    from types import CodeType

    from ..tensor import Tensor
    from .where import Location


class VersionCounter:
    """How often a piece of memory was written to, and where in the user's code the last time."""

    __slots__ = ("code", "instruction", "operation", "version")

    version: int
    #: Where the last write was: as `Location` has it, without the cost of making one. None: it is not known.
    code: CodeType | None
    instruction: int
    #: The operation that wrote last.
    operation: str

    @property
    def where(self) -> Location | None:
        """The line of the user's code that wrote last, if it is known."""
        code = getattr(self, "code", None)
        return None if code is None else Location(code, self.instruction)

    @property
    def last_write(self) -> str:
        """Which operation wrote last, and where, in words: ``' by add_ at train.py:5 in step'``; may be empty."""
        operation, where = getattr(self, "operation", None), self.where
        by = "" if operation is None else f" by {operation}"
        return by if where is None else f"{by} at {where}"


class _InferenceCounter(VersionCounter):
    """Marks tensors made in inference mode, which have no version."""

    __slots__ = ()

    @property
    def version(self) -> int:  # type: ignore[override]
        raise RuntimeError("Inference tensors do not track version counter.")


#: The version counter of every inference tensor.
INFERENCE = _InferenceCounter()


def inference_error() -> RuntimeError:
    """The error for a write to an inference tensor where versions count."""
    return RuntimeError(
        "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a "
        "normal tensor before doing inplace update."
    )


def new_version_counter() -> VersionCounter:
    vc = VersionCounter()
    vc.version = 0
    return vc


def version_counter(tensor: Tensor) -> VersionCounter:
    """The tensor's version counter, to be shared or raised; made now if there was none."""
    vc = tensor._vc_
    if vc is None:  # two threads that alias one tensor must share one counter
        made = new_version_counter()
        # Note [Steps under the GIL]; what looks like the slot of a special tensor may be a call.
        if STEPS_ARE_WHOLE and tensor._special_ is None:
            tensor._vc_ = made if tensor._vc_ is None else tensor._vc_
        else:
            with graph_lock:
                if tensor._vc_ is None:
                    tensor._vc_ = made
        vc = tensor._vc_
    return vc
