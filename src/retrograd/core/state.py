"""The state of one thread: grad mode, sequence numbers, and whether anything rare is going on; and of the process.

Every mode of the package lives here, in one object per thread, so that an operator pays for one thread-local
read and one test:

    state = local.state
    if state.interceptor is not None: ...   # anomaly mode, function modes, dual levels, tracing, ...

The fields are plain; whoever sets one restores it (see `grad_mode.py`, `engine.py`).

Note [Process-wide modes]
Dual levels and anomaly mode are on in all threads or in none: ``process.modes`` has their observers.  An operator looks
at its thread's state alone, so a thread has to hear of them there, and what it is doing must not be disturbed:

* ``known_modes`` of a state are the process-wide modes that its ``observers`` take account of.  The two and
  ``interceptor`` are set, kept and put back together.
* A thread that has observers looks whether it knows the modes whenever one of its operators is intercepted.
* To a thread that has none, whoever changes the modes says so: he sets its interceptor to `catch_up` (intercept.py),
  which the thread's next operator finds and calls.  `live_states` are the threads to be told; a thread that begins
  later is told by its first look at its state.
* A thread whose last observer goes looks *after* it has said so whether it knows the modes: the other one changes the
  modes *before* he looks who has no observers, so that one of the two sees what the other has done.
* For the same reason, who hides the interceptor for a while (sets it to None) does so only where there is one: putting
  a None back could undo what somebody else has said meanwhile.

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
the end of ``__enter__``, where they are what they are without a ``with``: set; and the end of any ``__enter__`` while
there is a profiling hook (a dispatch trace has one), which Python calls there.  `tests/autograd/test_interrupts.py`
interrupts at every other place.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..autograd.forward_grad import Level
    from ..autograd.graph_task import GraphTask
    from ..autograd.node import Node
    from ..func.batched import Level as BatchLevel
    from .version_counter import VersionCounter


class ThreadState:
    """What one thread is doing."""

    __slots__ = (
        "__weakref__",
        "batch_fallback",
        "batch_levels",
        "current_node",
        "cuts",
        "dispatch_off",
        "enforce_grad_layout",
        "func_depth",
        "function_modes",
        "functions_off",
        "fw_grad_enabled",
        "grad_enabled",
        "graph_exec_group",
        "graph_task",
        "identity",
        "inference",
        "interceptor",
        "known_modes",
        "late_hooks",
        "lost_history",
        "multithreading",
        "mutation_guard",
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
        #: Of the process-wide modes, those that they take account of.
        self.known_modes: tuple[Callable[..., Any], ...] = ()
        #: Whose modes these are: the same of a copy.
        self.identity: object = object()
        #: (pack, unpack) pairs for what nodes save, innermost last (saved_tensors_hooks.py); or why there may be none.
        self.saved_tensors_hooks: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...] | str = ()
        #: Are tangents seen at all? See forward_ad.py.
        self.fw_grad_enabled: bool = True
        #: The vmaps that are running, outermost first; see Note [Batched tensors] in func/batched.py.
        self.batch_levels: tuple[BatchLevel, ...] = ()
        #: What becomes of operators that have no batching rule: "warn", "quiet" or "error"; see func/fallback.py.
        self.batch_fallback: str = "warn"
        #: The function modes that are on, outermost first, and what of ``__torch_function__`` is off: 0 nothing, 1
        #: that of arguments, 2 that of modes as well.  See Note [Overriding functions] in tensor/overriding.py.
        self.function_modes: tuple[Any, ...] = ()
        self.functions_off: int = 0
        #: Are tensors with ``__torch_dispatch__`` taken for their memory?  See Note [Python dispatch] in
        #: ops/dispatch.py.
        self.dispatch_off: bool = False
        #: How many transforms of `func` are running, one inside the other.
        self.func_depth: int = 0
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
        for name in ThreadState.__slots__[1:]:  # but __weakref__
            setattr(other, name, getattr(self, name))
        return other


class Process:
    """What all threads have in common: Note [Process-wide modes]."""

    __slots__ = ("dual_levels", "levels_opened_by", "modes", "to_new_threads")

    def __init__(self) -> None:
        #: The observers of the modes that are on, in the order in which they were entered.
        self.modes: tuple[Callable[..., Any], ...] = ()
        #: The interceptor that a thread begins with: `catch_up` while there are any.
        self.to_new_threads: Callable[..., Any] | None = None
        #: The dual levels that are open, outermost first, and the `identity` of the thread that opened them.
        self.dual_levels: tuple[Level, ...] = ()
        self.levels_opened_by: object = None


process: Process = Process()

#: By its id, each thread's state, weakly: it ends with the thread.
live_states: dict[int, weakref.ref[ThreadState]] = {}


class _Local(threading.local):
    state: ThreadState

    def __init__(self) -> None:
        state = ThreadState()
        key = id(state)
        live_states[key] = weakref.ref(state, lambda _, forget=live_states.pop: forget(key, None))  # type: ignore[misc]
        state.interceptor = process.to_new_threads
        self.state = state


local: _Local = _Local()
