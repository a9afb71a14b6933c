"""Recording runs: what the engine does in a backward pass, event by event, for the page to play.

A `Recording` is a `Watcher` that the engine asks to watch each pass that begins while it is on (`watch_pass`, called in
`_how_to_run` of engine.py, which runs only where something is on).  The pass then runs in the plain loop, or in that of
the devices' threads, with two things in its way: a `call` that sees each node before and after it runs, and a `deliver`
that sees each gradient arrive, by the class of its GraphTask.  Passes inside of passes, of several threads and with
``create_graph`` go the same way.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

from ..autograd import backward, grad
from ..autograd.explain import _roots, _storage, why_no_grad
from ..autograd.graph_task import GraphTask
from ..autograd.intercept import results_of
from ..autograd.node import Node, name_of
from ..core.state import ThreadState, local
from ..tensor import Tensor
from . import events as ev
from .answers import answers
from .events import Events
from .forward import ForwardRun
from .graph import GraphBuilder, Names, hooks_after, hooks_before
from .page import Page
from .values import norm_and_flags
from .watch import Watcher, names_around

#: Of how many leaves without a gradient the reason is looked for.
_MOST_REASONS = 20


class Recording(Watcher):
    """What `record` gives: records passes, and makes a page of them."""

    def __init__(
        self, what: Any = None, names: Names | None = None, title: str | None = None, open: bool | None = None,
        path: str | PathLike[str] | None = None, last: bool = False, values: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(values)
        self.what = what
        self.title = title
        self.open = open
        self.path = path
        #: Keep only the last pass that is not inside another.
        self.last = last
        #: What ``grad()`` or ``jvp()`` has returned.
        self.result: Any = None
        self.error: str | None = None
        self._names: Names = dict(names or {})
        self._lock = threading.RLock()
        self._task_class: type[GraphTask] | None = None
        self._reset()

    def _reset(self) -> None:
        self._builder = GraphBuilder(self._names)
        self._events = Events()
        self._began = time.perf_counter_ns()
        self._passes: dict[int, int] = {}
        self._running: list[weakref.ref[GraphTask]] = []
        #: thread -> [node that has run, position of its next edge]
        self._giving: dict[int, list[int]] = {}
        self._memory_: list[int] = []
        #: What operators have made in passes, weakly: storage -> (reference, node that was running, pass, bytes)
        self._alive: dict[int, tuple[Any, int, int, int]] = {}
        #: Those of them that have died since the last event.
        self._dead: deque[int] = deque()
        self._run: dict[str, Any] | None = None
        self._roots: list[Node] = []

    # ---------------------------------------------------------------------------------------------------- what users do

    def backward(self, gradient: Any = None, **options: Any) -> Page:
        """``backward()`` of what is to be recorded, with its arguments; the page of the run."""
        self._name(2)
        return self._do(lambda: backward(self.what, gradient, **options))

    def grad(self, inputs: Any, grad_outputs: Any = None, **options: Any) -> Page:
        """``autograd.grad`` of what is to be recorded; the page of the run. The gradients are in `result`."""
        self._name(2)
        return self._do(lambda: grad(self.what, inputs, grad_outputs, **options))

    def jvp(self, primals: Any, tangents: Any) -> Page:
        """Run the function that is to be recorded with dual numbers; the page of the run.

        The value and its tangent are in `result`.
        """
        run = ForwardRun({**names_around(2), **self._names})
        try:
            self.result = run.run(self.what, primals, tangents)
        finally:
            self._run = run.data(self.title or str(getattr(self.what, "__name__", "forward")))
        return self._shown()

    def _name(self, depth: int) -> list[tuple[Any, str]]:
        """Learn the names of leaves that the caller's variables hold; give back those of other nodes."""
        others = []
        for key, (tensor, name) in names_around(depth + 1).items():
            if tensor.is_leaf and tensor.requires_grad:
                self._names.setdefault(key, (tensor, name))
            elif tensor._edge_ is not None and not name.startswith("_"):
                others.append((tensor._edge_[0], name))
        self._builder.names.update(self._names)
        return others

    def _do(self, call: Callable[[], Any]) -> Page:
        try:
            with self:
                self.result = call()
        except Exception as error:
            page = self._shown()
            error.add_note(f"The explorer shows the run up to here: {page.save()}")
            raise
        return self._shown()

    def _shown(self) -> Page:
        page = self.page()
        page.show(self.open, self.path)
        return page

    def page(self) -> Page:
        """The page of what was recorded so far."""
        return Page([self.data()])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """In a notebook, a recording is displayed as its page."""
        return self.page()._repr_mimebundle_(include, exclude)

    def __enter__(self) -> Recording:
        self._name(2)
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        super().__exit__(*exc_info)
        if exc_info[1] is not None:
            self.error = f"{type(exc_info[1]).__name__}: {exc_info[1]}"

    # --------------------------------------------------------------------------------------------- what the engine says

    def watch_pass(self, state: ThreadState, task: GraphTask, call: Callable[..., Any]) -> Callable[..., Any]:
        """A pass begins: `call`, which runs a node, with a record of it."""
        with self._lock:
            # They end with their task. (A pass that waits for this one is not over.)
            self._running = [reference for reference in self._running if reference() is not None]
            if self.last and not self._running and task.reentrant_depth == 0:
                self._names = {}  # of tensors that may be gone
                self._reset()
            self._running.append(weakref.ref(task))
            if self._task_class is None:
                self._task_class = _recorded_class(self)
            task.__class__ = self._task_class
            builder = self._builder
            builder.name_models(self.models())
            held = builder.bytes_held
            results = self._name(2)
            builder.add([task.root])
            for node, name in results:
                builder.name_node(node, name)
            grown = builder.bytes_held - held
            number = self._passes[task.id] = len(self._passes)
            for node in task.graph_roots:
                builder.roots.append(builder.nodes[node])
            if task.reentrant_depth == 0:
                self._roots += task.graph_roots
            self._add(ev.BEGIN, builder.nodes[task.root], number, value=task.reentrant_depth)
            self._memory_.append(grown)
            self._add(ev.READY, builder.nodes[task.root], number)

        def watched(node: Node, edges: tuple[Any, ...], grads: Sequence[Any], as_tensors: bool) -> Sequence[Any]:
            about = self._before(task, node, grads)
            try:
                outputs = call(node, edges, grads, as_tensors)
            except BaseException as error:
                with self._lock:
                    text = self._events.text(f"{type(error).__name__}: {error}")
                    self._add(ev.ERROR, about, number, value=text)
                raise
            self._after(task, node, about)
            return outputs

        return watched

    def __call__(
        self, operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any], proceed: Callable[..., Any]
    ) -> Any:
        result = super().__call__(operator, args, kwargs, proceed)
        state = local.state
        task, node = state.graph_task, state.current_node
        if task is not None and node is not None and task.id in self._passes:
            for tensor in results_of(result):
                if tensor.requires_grad and tensor._special_ is None:
                    self._note_new(self._passes[task.id], node, tensor._memory_)
        return result

    def _note_new(self, number: int, node: Node, array: Any) -> None:
        """Something was computed in a pass with its history: a checkpoint again, or a pass that is itself recorded."""
        with self._lock:
            builder = self._builder
            about, storage = builder.nodes.get(node), _storage(array)
            self._flush()
            key = id(storage)
            if about is None or key in self._alive or key in builder.held or key in builder.own_storages:
                return
            dead = self._dead
            reference = weakref.ref(storage, lambda _: dead.append(key))
            self._alive[key] = (reference, about, number, storage.nbytes)
            self._add(ev.GROW, about, number, value=storage.nbytes)

    def _flush(self) -> None:
        """Events for what has died. (A weak reference may tell of it in the midst of anything, so it only notes it.)"""
        while self._dead:
            _, about, number, size = self._alive.pop(self._dead.popleft())
            micros = (time.perf_counter_ns() - self._began) // 1000
            self._events.add(ev.RELEASE, about, self._lane(), number, micros, value=size)

    def _lane(self) -> int:
        return self._events.lane(local.state.on_device_thread or threading.current_thread().name)

    def _add(
        self, kind: int, about: int, number: int, norm: float | None = None, flags: int = 0, value: int = 0
    ) -> None:
        self._flush()
        micros = (time.perf_counter_ns() - self._began) // 1000
        self._events.add(kind, about, self._lane(), number, micros, norm, flags, value)

    def _before(self, task: GraphTask, node: Node, grads: Sequence[Any]) -> int:
        norm, flags = _of_all(grads)
        with self._lock:
            number, about = self._passes[task.id], self._builder.nodes[node]
            self._add(ev.RUN, about, number, norm, flags)
            for _, text in hooks_before(node):
                self._add(ev.HOOK, about, number, value=self._events.text(text))
        return about

    def _after(self, task: GraphTask, node: Any, about: int) -> None:
        variable = getattr(node, "variable", None)
        grad = variable.grad if isinstance(variable, Tensor) else None
        norm, flags = norm_and_flags(grad)
        with self._lock:
            number = self._passes[task.id]
            for _, text in hooks_after(node):
                self._add(ev.HOOK, about, number, value=self._events.text(text))
            self._add(ev.DONE, about, number, norm, flags)
            if not task.keep_graph and about in self._builder.storages:
                freed = self._builder.release(about)
                if freed:
                    self._add(ev.RELEASE, about, number, value=freed)
            self._giving[threading.get_ident()] = [about, 0]

    def _delivered(self, task: GraphTask, edge: Any, grad: Any, waiting: int) -> None:
        """A gradient has come to the buffer of a node, which still waits for so many."""
        norm, flags = norm_and_flags(grad)
        with self._lock:
            builder = self._builder
            about = builder.nodes.get(edge[0])
            if about is None:
                return
            number = self._passes[task.id]
            giving = self._giving.get(threading.get_ident())
            if giving is not None:
                numbers = builder.edges_of.get(giving[0], {})
                for position in range(giving[1], max(numbers, default=-1) + 1):
                    found = numbers.get(position)
                    if (
                        found is not None
                        and builder.edges["to"][found] == about
                        and builder.edges["input"][found] == edge[1]
                    ):
                        giving[1] = position + 1
                        self._add(ev.GRAD, found, number, norm, flags, waiting)
                        break
            if waiting:
                return
            self._add(ev.READY, about, number)
            info = None if task.exec_info is None else task.exec_info.get(edge[0])
            if info is not None and info.captures is not None:
                self._add(ev.CAPTURE, about, number, norm, flags)

    # ------------------------------------------------------------------------------------------------------------- data

    def data(self) -> dict[str, Any]:
        """What was recorded, as the page takes it."""
        if self._run is not None:
            return self._run
        with self._lock:
            self._flush()
            builder = self._builder
            reasons = unreached(builder, self._roots, self.cuts())
            title = self.title or "backward of " + " and ".join(dict.fromkeys(map(name_of, self._roots)))
            run = {"name": title, "kind": "backward", "error": self.error, **builder.data()}
            run["events"] = _with_ends(self._events.data())
            run["memory"] = self._memory_
            run["answers"] = answers(run, reasons)
            return run


def _recorded_class(recording: Recording) -> type[GraphTask]:
    """The class that the tasks of recorded passes have: a GraphTask that says what is delivered.

    It knows the recording weakly: a class is a ring of references, and would keep it all until the next collection.
    """
    told = weakref.ref(recording)

    class RecordedTask(GraphTask):
        __slots__ = ()

        def deliver(self, edge: Any, grad: Any, as_tensors: bool) -> Sequence[Any] | None:
            ready = super().deliver(edge, grad, as_tensors)
            listener = told()
            if listener is not None:
                listener._delivered(self, edge, grad, 0 if ready is not None else self.not_ready[edge[0]].waiting)
            return ready

    return RecordedTask


def _of_all(grads: Sequence[Any]) -> tuple[float | None, int]:
    """Norm and flags of several gradients together."""
    total, flags = None, 0
    for one in grads:
        norm, some = norm_and_flags(one)
        flags |= some
        if norm is not None:
            total = norm if total is None else (total * total + norm * norm) ** 0.5
    return total, flags


def _with_ends(data: dict[str, Any]) -> dict[str, Any]:
    """Events with an `END` after the last one of each pass."""
    last = {number: index for index, number in enumerate(data["pass"])}
    at_end = {index: number for number, index in last.items()}
    result: dict[str, Any] = {name: [] for name in ev.COLUMNS}
    for index in range(len(data["type"])):
        for name in ev.COLUMNS:
            result[name].append(data[name][index])
        if index in at_end:
            row = (ev.END, data["about"][index], data["lane"][index], at_end[index], data["time"][index], None, 0, 0)
            for name, value in zip(ev.COLUMNS, row, strict=True):
                result[name].append(value)
    return {**result, "texts": data["texts"], "lanes": data["lanes"]}


def unreached(builder: GraphBuilder, roots: list[Any], cuts: Sequence[Any] = ()) -> dict[int, str]:
    """Leaves that have a name and that the graph does not lead to: their nodes, with words for the reason."""
    reasons: dict[int, str] = {}
    for tensor, _ in list(builder.names.values()):
        if not tensor.requires_grad or not tensor.is_leaf or builder.number_of_leaf(tensor) is not None:
            continue
        number = builder.add_unreached(tensor)
        if len(reasons) < _MOST_REASONS and roots:
            reasons[number] = why_no_grad(tensor, tuple(roots))
        else:
            reasons[number] = "it is not reached from what is differentiated."
    for cut in cuts:
        if any(builder.number_of_leaf(leaf) in reasons for leaf in (ref() for ref in cut.leaves) if leaf is not None):
            builder.cut(cut)
    return reasons


def record(
    what: Any = None,
    *,
    names: dict[str, Tensor] | None = None,
    title: str | None = None,
    open: bool | None = None,
    path: str | PathLike[str] | None = None,
) -> Recording:
    """Record a run: ``record(loss).backward()``, ``record(loss).grad(x)``, ``record(function).jvp((x,), (t,))``.

    Each does what it says and gives the page of the run, which opens in the browser (in a notebook: below the cell);
    ``open=False`` opens none, `path` says where the file goes. As a block it records all passes that begin in it, of
    all threads, and watches the forward pass as well, so that lines and modules are known:

    >>> import retrograd as torch
    >>> from retrograd import explorer
    >>> x = torch.tensor([3., 4.], requires_grad=True)
    >>> with explorer.record() as recording:
    ...     (x * x).sum().backward()
    >>> run = recording.page().runs[0]
    >>> [run["ops"][op] for op in run["nodes"]["op"]]
    ['SumBackward0', 'MulBackward0', 'AccumulateGrad']
    >>> run["nodes"]["label"]
    [None, None, 'x']

    `names` are for tensors that no variable of the calling function holds.
    """
    given = {id(tensor): (tensor, name) for name, tensor in (names or {}).items()}
    return Recording(what, given, title, open, path)


def show(
    outputs: Any,
    *,
    names: dict[str, Tensor] | None = None,
    title: str | None = None,
    open: bool | None = None,
    path: str | PathLike[str] | None = None,
) -> Page:
    """The graph of `outputs` (a tensor, or several) as a page, which opens in the browser.

    ``open=False`` opens none; in a notebook the page appears below the cell. Lines of source and modules are known if
    the forward pass was made under `watch` (or anomaly mode).

    >>> import retrograd as torch
    >>> from retrograd import explorer
    >>> x = torch.ones(2, requires_grad=True)
    >>> unused = torch.ones(1, requires_grad=True)
    >>> page = explorer.show(x.exp().sum(), open=False)
    >>> page.runs[0]["answers"][0]["answer"]
    '1 leaf gets no gradient.'
    >>> page.html.startswith("<!doctype html>")
    True
    """
    given: Names = {**names_around(2), **{id(tensor): (tensor, name) for name, tensor in (names or {}).items()}}
    roots = _roots(outputs)
    if not roots:
        raise RuntimeError(
            "show(): there is no graph to show: the tensor does not require grad and does not have a grad_fn. "
            f"{why_no_grad(outputs) if isinstance(outputs, Tensor) else ''}".rstrip()
        )
    builder = GraphBuilder(given)
    for watcher in _watchers():
        builder.name_models(watcher.models())
    builder.roots = builder.add(roots)
    for tensor, name in given.values():
        if tensor._edge_ is not None and not name.startswith("_"):
            builder.name_node(tensor._edge_[0], name)
    reasons = unreached(builder, roots, [cut for watcher in _watchers() for cut in watcher.cuts()])
    run: dict[str, Any] = {
        "name": title or "graph of " + " and ".join(dict.fromkeys(map(name_of, roots))), "kind": "graph", "error": None,
        **builder.data(), "events": None, "memory": [],
    }  # fmt: skip
    run["answers"] = answers(run, reasons)
    page = Page([run])
    page.show(open, path)
    return page


def _watchers() -> list[Watcher]:
    return [mode for mode in local.state.known_modes if isinstance(mode, Watcher)]


def compare(*pages: Page, open: bool | None = None, path: str | PathLike[str] | None = None) -> Page:
    """Two runs (or more) side by side on one page: before and after a change, with and without checkpointing.

    >>> import retrograd as torch
    >>> from retrograd import explorer
    >>> x = torch.ones(2, requires_grad=True)
    >>> one = explorer.record((x * x).sum(), title="x * x", open=False).backward()
    >>> other = explorer.record((x ** 2).sum(), title="x ** 2", open=False).backward()
    >>> [run["name"] for run in explorer.compare(one, other, open=False).runs]
    ['x * x', 'x ** 2']
    """
    page = Page([run for one in pages for run in one.runs])
    page.show(open, path)
    return page
