"""The state of one thread: grad mode, sequence numbers, and whether anything rare is going on.

Every mode of the package lives here, in one object per thread, so that an operator pays for one thread-local
read and one test:

    state = local.state
    if state.interceptor is not None: ...   # anomaly mode, function modes, dual levels, tracing, ...

The fields are plain; whoever sets one restores it (see `grad_mode.py`, `engine.py`).

Note [Interrupts and modes]
Ctrl-C may come in the middle of entering or leaving a mode, and must leave none behind.  Python raises
KeyboardInterrupt (and what `PyThreadState_SetAsyncExc` asks for) where a function begins or resumes, after a call, and
at a jump back; nowhere else.  Loads and stores in a row are therefore all or nothing.  So an ``__enter__`` computes
what it needs first and ends in such stores, with nothing called after them; until then nothing has changed, and when
they are done the ``with`` statement has begun.  An ``__exit__`` begins with them, or, where it has to call something,
does it again when it was interrupted.  No mode is a generator of contextlib's, whose own ``__enter__`` and ``__exit__``
can be interrupted after and before the generator has run.

What Python leaves: the very beginning of an ``__exit__``, since a function can do nothing about what is raised before
its first instruction; and, for modes that act at once (``set_grad_enabled(False)``), from the end of the constructor to
the end of ``__enter__``, where they are what they are without a ``with``: set.  `tests/autograd/test_interrupts.py`
interrupts at every other place.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..autograd.forward_grad import Level
    from ..autograd.graph_task import GraphTask
    from ..autograd.node import Node
    from .version_counter import VersionCounter


class ThreadState:
    """What one thread is doing."""

    __slots__ = (
        "current_node",
        "cuts",
        "dual_levels",
        "enforce_grad_layout",
        "fw_grad_enabled",
        "grad_enabled",
        "graph_exec_group",
        "graph_task",
        "inference",
        "interceptor",
        "late_hooks",
        "lost_history",
        "multithreading",
        "mutation_guard",
        "needs_tensors",
        "new_vc",
        "no_grad_at",
        "observers",
        "on_device_thread",
        "saved_tensors_hooks",
        "sequence_nr",
        "view_replay",
    )

    grad_enabled: bool | None
    interceptor: Callable[..., Any] | None
    sequence_nr: int
    graph_task: GraphTask | None
    current_node: Node | None

    def __init__(self) -> None:
        #: Do operations record history? None: not either, although it is switched on, in inference mode.
        self.grad_enabled = True
        #: Called as ``interceptor(operator, args, kwargs)`` instead of the operator; None in ordinary life.
        self.interceptor = None
        #: What the interceptor runs, see intercept.py.
        self.observers: tuple[Callable[..., Any], ...] = ()
        #: (pack, unpack) pairs for what nodes save, innermost last (saved_tensors_hooks.py); or why there may be none.
        self.saved_tensors_hooks: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...] | str = ()
        #: Must a backward pass run on Tensors even if it is not recorded (a dual level is open)?
        self.needs_tensors: bool = False
        #: The dual levels that are open, outermost first, and whether tangents are seen at all; see forward_ad.py.
        self.dual_levels: tuple[Level, ...] = ()
        self.fw_grad_enabled: bool = True
        #: Asked before every write in place, see allow_mutation_on_saved_tensors.
        self.mutation_guard: Any = None
        #: Where tensors were cut off their history, and where recording was last switched off, see cuts.py.
        self.cuts: deque[Any] = deque(maxlen=64)
        self.no_grad_at: tuple[Any, int] | None = None
        #: What anomaly mode has seen: id -> (tensor, weakly; how it lost its history), for why_no_grad.
        self.lost_history: dict[int, tuple[Any, str]] = {}
        #: The number that the next node made by this thread gets.
        self.sequence_nr = 0
        #: The backward pass that this thread is running, and the node that it is running in it.
        self.graph_task = None
        self.current_node = None
        #: Has that node got its first hooks while it was running?
        self.late_hooks: bool = False
        #: The passes that share what checkpoints recompute, see utils/checkpoint.
        self.graph_exec_group: Any = None
        #: May a pass use the devices' own threads, and which device's thread is this one (see device_threads.py)?
        self.multithreading: bool = True
        self.on_device_thread: str | None = None
        #: Inference mode: results are inference tensors, marked by the version counter they get (None otherwise).
        self.inference: bool = False
        self.new_vc: VersionCounter | None = None
        #: Must a gradient that becomes ``.grad`` be laid out as its leaf is?
        self.enforce_grad_layout: bool = True
        #: Regenerate the history of views by their own operators instead of as_strided.
        self.view_replay: bool = False

    def copy(self) -> ThreadState:
        """The same modes, for another thread."""
        other = object.__new__(ThreadState)
        for name in ThreadState.__slots__:
            setattr(other, name, getattr(self, name))
        return other


class _Local(threading.local):
    state: ThreadState

    def __init__(self) -> None:
        self.state = ThreadState()


local: _Local = _Local()
