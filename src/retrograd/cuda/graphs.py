"""``torch.cuda.graphs``: work for a CUDA device that is written down once and launched as a whole, again and again.

Note [Captured graphs] in arrays/capturing.py says how. ``retrograd.capture(step)`` does all of it for a step.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..autograd.function import Function, once_differentiable
from ..autograd.grad_mode import no_grad
from ..core.devices import accelerators
from ..nn import Module
from ..tensor import Tensor, wrap
from ..utils._pytree import tree_flatten, tree_unflatten
from ._places import need, place
from .streams import Stream, current_stream, stream

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

#: Pools by handle: they live as long as a graph that has its memory there.
_pools: weakref.WeakValueDictionary[tuple[int, int], Any] = weakref.WeakValueDictionary()
_number = 0
_MODES = ("global", "thread_local", "relaxed")


class _Pool:
    """A pool of the library, held by the graphs that have their memory there."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw


def _capturing() -> Any:
    return import_module("...arrays.capturing", __name__)


def is_current_stream_capturing() -> bool:
    """Is the current stream being captured?"""
    return any(known.type == "cuda" for known in accelerators) and _capturing().capture_of(place(None)) is not None


def graph_pool_handle() -> tuple[int, int]:
    """A name for a pool of memory that graphs can share which are launched in the order of their capture."""
    global _number
    _number += 1
    return (0, _number)


class CUDAGraph:
    """Work that was captured on a stream.

    ``with torch.cuda.graph(g):`` captures what the block tells the device; ``g.replay()`` has it done, in the same
    memory: what the graph reads is what is in its inputs then, and its results are where they were. `keep_graph` says
    in torch when the graph is made ready to be launched; it always is when the capture ends.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        need("Tried to instantiate dummy base class CUDAGraph")
        self._where: Any = place(None)
        self._capture: Any = None
        self._graph: Any = None
        self._handle: tuple[int, int] | None = None
        self._pool: _Pool | None = None
        self._held: Any = None
        self._keep: bool = bool(keep_graph)

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Write down what the current stream is told from now on. `pool`: that of another graph, or a handle, to share
        memory with."""
        if capture_error_mode not in _MODES:
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
            )
        where = self._where = place(None)
        if self._graph is not None or self._capture is not None:
            raise RuntimeError("This CUDAGraph instance already owns a captured graph. To capture a new graph, create "
                               "a new instance, or call reset() first.")  # fmt: skip
        now = where.class_now()
        if now.stream is None:
            raise RuntimeError("CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok "
                               "to replay them on the default stream.)")  # fmt: skip
        handle: Any = graph_pool_handle() if pool is None else tuple(pool)
        self._handle = handle
        where.activate()
        shared = _pools.get(handle)
        if shared is None:
            shared = _pools[handle] = _Pool(where.module.cuda.MemoryPool())
        self._pool = shared
        self._capture = _capturing().Capture(where, now, shared.raw)
        try:
            # What is not to be done while capturing is refused by us (arrays/capturing.py), not by the driver: that
            # would refuse to allocate, too.
            now.stream.begin_capture()
        except BaseException:
            self._capture.end()
            self._capture = None
            raise

    def capture_end(self) -> None:
        """The graph is complete."""
        capture, self._capture = self._capture, None
        if capture is None:
            raise RuntimeError("capture_end() without capture_begin()")
        capture.end()
        self._where.activate()
        self._graph = capture.classes[0].stream.end_capture()
        self._held = capture

    def _give_up(self) -> None:
        """The capture has failed."""
        capture, self._capture = self._capture, None
        if capture is not None:
            capture.end()
            try:
                capture.classes[0].stream.end_capture()
            except Exception:  # of a graph that is not whole: it is thrown away
                pass

    def instantiate(self) -> None:
        """Make the graph ready to be launched, which it is since `capture_end`."""
        self._launchable()

    def _launchable(self) -> Any:
        if self._graph is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        return self._graph

    def replay(self) -> None:
        """Have the work done, on the current stream."""
        graph = self._launchable()
        where = self._where
        where.activate()
        for before in self._held.before:
            before()
        graph.launch(where.stream_now())

    def reset(self) -> None:
        """Forget the graph; its memory goes when the tensors in it do."""
        self._graph = self._held = self._handle = self._pool = None

    def pool(self) -> tuple[int, int]:
        """The name of the pool that its memory is of."""
        if self._handle is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._handle

    def enable_debug_mode(self) -> None:
        """Keep what `debug_dump` writes: it is kept."""

    def debug_dump(self, debug_path: str) -> None:
        """Write what is known of the graph to a file."""
        held = self._held
        text = "no graph" if held is None else f"{len(held.classes)} streams, {len(held.constants)} constants"
        with open(debug_path, "w") as file:
            file.write(text + "\n")


class graph:
    """Within the block, what the device is told is captured into a CUDAGraph, on a stream for captures."""

    _stream: Any = None

    def __init__(self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None,
                 capture_error_mode: str = "global") -> None:  # fmt: skip
        if not isinstance(cuda_graph, CUDAGraph):
            raise TypeError(f"graph(): argument 'cuda_graph' must be CUDAGraph, not {type(cuda_graph).__name__}")
        self.cuda_graph = cuda_graph
        self.pool: Any = pool
        self.capture_stream: Stream = capture_stream() if stream is None else stream
        self.mode: str = capture_error_mode
        self._on: Any = None

    def __enter__(self) -> None:
        where = self.capture_stream._place
        where.activate()
        where.module.cuda.Device(where.physical).synchronize()
        gc.collect()  # what is waiting to be collected would give its memory back within the capture
        self._on = stream(self.capture_stream)
        self._on.__enter__()
        try:
            self.cuda_graph.capture_begin(pool=self.pool, capture_error_mode=self.mode)
        except BaseException:
            self._on.__exit__(None, None, None)
            raise

    def __exit__(self, kind: Any, *exc_info: object) -> None:
        try:
            if kind is None:
                self.cuda_graph.capture_end()
            else:
                self.cuda_graph._give_up()
        finally:
            self._on.__exit__(kind, *exc_info)


def capture_stream() -> Stream:
    """A stream to capture on, one for each device."""
    where = place(None)
    if where.capture_stream is None:
        where.activate()
        where.capture_stream = where.module.cuda.Stream(non_blocking=True)
    return Stream(place=where, raw=where.capture_stream)


def warm_up(function: Callable[[], Any]) -> Any:
    """Run something on the stream for captures, between what the current stream was told before and is told after."""
    side, now = capture_stream(), current_stream()
    side.wait_stream(now)
    with stream(side):
        result = function()
    now.wait_stream(side)
    return result


def copy_in(static: Tensor, value: Tensor) -> None:
    """Put the values of an argument where the graph reads them."""
    if static._memory_ is not value._memory_:
        with no_grad():
            static.copy_(value, non_blocking=True)


def make_graphed_callables(
    callables: Any, sample_args: Any, num_warmup_iters: int = 3, allow_unused_input: bool = False, pool: Any = None
) -> Any:
    """Functions and modules whose forward and backward pass are graphs, for use inside of larger ones.

    A module gets another ``forward`` and is returned itself; a function comes back as another. Arguments must look like
    the samples in each call.
    """
    if isinstance(callables, tuple):
        shared = graph_pool_handle() if pool is None else pool
        return tuple([
            make_graphed_callables(c, a, num_warmup_iters, allow_unused_input, shared)
            for c, a in zip(callables, sample_args, strict=True)
        ])  # fmt: skip
    if not isinstance(sample_args, tuple):
        raise TypeError("make_graphed_callables(): argument 'sample_args' must be a tuple of the arguments of the "
                        f"callable, not {type(sample_args).__name__}")  # fmt: skip
    module = callables if isinstance(callables, Module) else None
    if module is not None and any(True for _ in module.buffers() if _.requires_grad):
        raise RuntimeError("In any :class:`~torch.nn.Module` passed to make_graphed_callables, only parameters may be "
                           "trainable. All buffers must have ``requires_grad=False``.")  # fmt: skip
    flat, structure = tree_flatten(sample_args)
    if not all(isinstance(one, Tensor) for one in flat):
        raise RuntimeError("In the beta API, sample_args for each callable must contain only Tensors. Other types are "
                           "not allowed.")  # fmt: skip
    both = _BothPasses(callables, flat, structure, module, num_warmup_iters, allow_unused_input, pool)
    if module is None:
        return both
    eager, training = module.forward, module.training

    def forward(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs) if module.training == training else eager(*args, **kwargs)

    module.forward = forward  # type: ignore[method-assign]
    return module


class _BothPasses:
    """A callable's forward and backward pass as two graphs."""

    def __init__(self, function: Any, samples: list[Tensor], structure: Any, module: Any, warmups: int, unused: bool,
                 pool: Any) -> None:  # fmt: skip
        self.inputs = [one.detach().clone().requires_grad_(one.requires_grad) for one in samples]
        self.structure = structure
        self.parameters = [p for p in module.parameters() if p.requires_grad] if module is not None else []
        wanted = [one for one in (*self.inputs, *self.parameters) if one.requires_grad]
        args = tree_unflatten(self.inputs, structure)
        from ..autograd import grad as gradients  # not before: cuda is imported by what autograd imports

        def both() -> None:
            outs = [one for one in tree_flatten(function(*args))[0] if isinstance(one, Tensor) and one.requires_grad]
            if outs and wanted:
                gradients(outs, wanted, [one.detach().clone() for one in outs], allow_unused=unused)

        for _ in range(warmups):
            warm_up(both)
        self.forward_graph, self.backward_graph = CUDAGraph(), CUDAGraph()
        with graph(self.forward_graph, pool=pool):
            result = function(*args)
        outs, self.results = tree_flatten(result)
        self.outputs: list[Any] = outs
        self.differentiable = [i for i, one in enumerate(outs) if isinstance(one, Tensor) and one.requires_grad]
        roots = [outs[i] for i in self.differentiable]
        self.given = [one.detach().clone() for one in roots]
        self.wanted = wanted
        self.grads: list[Any] = [None] * len(wanted)
        if roots and wanted:
            with graph(self.backward_graph, pool=self.forward_graph.pool()):
                self.grads = list(gradients(roots, wanted, self.given, allow_unused=unused))
        self.outputs = [one.detach() if isinstance(one, Tensor) else one for one in outs]

    def __call__(self, *args: Any) -> Any:
        flat, structure = tree_flatten(args)
        if structure != self.structure or any(
            a.shape != b.shape or a.dtype != b.dtype for a, b in zip(flat, self.inputs, strict=True)
        ):
            raise RuntimeError("a graphed callable was called with arguments that do not look like its samples")
        outs = _Graphed.apply(self, *flat, *self.parameters)
        return tree_unflatten(list(outs), self.results)


class _Graphed(Function):
    """The node of a graphed callable."""

    @staticmethod
    def forward(ctx: Any, both: _BothPasses, *tensors: Any) -> Any:  # type: ignore[override]
        ctx.both, ctx.count = both, len(tensors)
        for static, value in zip(both.inputs, tensors):
            copy_in(static, value)
        both.forward_graph.replay()
        outs = [wrap(one._memory_) if isinstance(one, Tensor) else one for one in both.outputs]
        fixed = [one for i, one in enumerate(outs) if isinstance(one, Tensor) and i not in both.differentiable]
        ctx.mark_non_differentiable(*fixed)
        ctx.set_materialize_grads(True)
        return tuple(outs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:  # type: ignore[override]
        both = ctx.both
        for static, position in zip(both.given, both.differentiable):
            copy_in(static, grads[position])
        both.backward_graph.replay()
        found = iter(both.grads)
        results = []
        for one in (*both.inputs, *both.parameters):
            value = next(found) if one.requires_grad else None
            results.append(None if value is None else wrap(value._memory_))
        return (None, *results)
