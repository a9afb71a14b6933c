"""Captured functions inside of a larger graph: forward and backward pass of one call are two halves of one program.

A call whose results can be differentiated is rehearsed: the function runs on tensors without history, and a backward
pass from its results goes down to them and to the parameters, all of it recorded; then the world is put back as it was.
The program runs as a generator, which stops between the halves.  In the user's graph it is one node.  As long as that
may still run backward, its memory is its own: another call meanwhile gets another memory.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import random
from ..autograd import grad as gradients
from ..autograd.edge import gradient_edge
from ..autograd.function import Function, refuse_second_derivative
from ..core.locks import fork_safe_lock
from ..core.state import local
from ..core.version_counter import version_counter
from ..tensor import Tensor, wrap
from ..utils._pytree import TreeSpec, tree_flatten, tree_unflatten
from .arguments import WithOthers, history
from .errors import CaptureError, refuse
from .memory import Memory
from .moving import moving_parts
from .native import write
from .recording import Recorder
from .session import Output, Recording, other_grads, other_memory, owned_by, twin_of
from .values import Call, Value


class GraphRecording(Recording):
    """A rehearsal of both passes."""

    def __init__(self, function: Any, args: Any, kwargs: Any, tensors: list[Any], split: bool, native: bool) -> None:
        stand_ins = [_stand_in(tensor) for tensor in tensors]
        by_id = {id(tensor): one for tensor, one in zip(tensors, stand_ins, strict=True)}
        self.inputs: list[Any] = []
        self.parameters: list[Any] = []
        self.grad_outputs: list[Value] = []
        self.differentiable: list[int] = []
        #: For each of the results that can be differentiated: which inputs and parameters it hangs on.
        self.reached: list[list[bool]] = []
        self.result_structure: TreeSpec
        self.result_leaves: list[Any]

        def both(*args: Any, **kwargs: Any) -> Any:
            return self._both(function, args, kwargs, stand_ins)

        both.__wrapped__ = function  # type: ignore[attr-defined]
        generator = random.default_generator
        state = generator.get_state()
        try:
            with_stand_ins = WithOthers(by_id)
            args = tuple([with_stand_ins(one) for one in args])
            kwargs = {name: with_stand_ins(one) for name, one in kwargs.items()}
            super().__init__(both, args, kwargs, stand_ins, split, native)
        finally:
            generator.set_state(state)
        self.result_leaves = self.leaves[: self.result_structure.num_leaves]
        self.undo()  # it was a rehearsal
        self._refuse_effects()

    def _refuse_effects(self) -> None:
        """What a node in somebody's graph does not repeat."""
        steps = [call for call in self.recorder.calls if call.kind == "python"]
        if self.grads or steps:
            what = f"an optimizer's step at {steps[0].where}" if steps else "a backward() that sets .grad"
            raise CaptureError(
                f"cannot capture {what} in a function whose result can be differentiated outside: return it detached "
                "(loss.detach()), or capture the two parts each for itself"
            )
        values = [one.value.storage for one in self.result_leaves if one.__class__ is Output and one.value is not None]
        if len({id(storage) for storage in values}) < len(values):
            raise CaptureError(
                "cannot capture results that share memory with one another and can be differentiated: return a clone() "
                "of one of them"
            )

    def _both(self, function: Any, args: Any, kwargs: Any, stand_ins: list[Any]) -> Any:
        recorder: Recorder = self.recorder
        try:
            result = function(*args, **kwargs)
        except RuntimeError as error:
            if "a leaf Variable that requires grad" not in str(error) or not any([t.requires_grad for t in stand_ins]):
                raise
            raise refuse(
                "a function that writes in place to an argument that requires grad", "let it write to a clone()"
            ) from error
        leaves, self.result_structure = tree_flatten(result)
        flat = [one for one in leaves if isinstance(one, Tensor)]
        if any(one is stand_in for one in flat for stand_in in stand_ins):
            raise refuse("a function that returns its argument", "return a clone() of it")
        self.differentiable = [position for position, one in enumerate(flat) if one.requires_grad]
        leaves = [
            tensor for tensor, _ in recorder.swapped.values()
            if tensor.requires_grad and history(tensor) is None and not any(tensor is one for one in stand_ins)
        ]  # fmt: skip
        reached = [_reached(flat[position], leaves) for position in self.differentiable]
        self.parameters = [one for i, one in enumerate(leaves) if any([found[i] for found in reached])]
        self.inputs = [one for one in stand_ins if one.requires_grad]
        middle = Call("middle", "middle", None, (), {})
        middle.impure = True
        recorder.calls.append(middle)
        given = []
        for position in self.differentiable:
            array = np.ones(flat[position].shape, flat[position]._memory_.dtype)
            recorder.add_storage(array, "argument", whole=False)
            self.grad_outputs.append(recorder.value(array))
            given.append(wrap(recorder.box(array)))
        wanted = [*self.inputs, *self.parameters]
        if not wanted:
            raise refuse(
                "a result that requires grad by nothing but tensors that were made inside",
                "detach() it, or make the leaves outside",
            )
        self.reached = [_reached(flat[position], wanted) for position in self.differentiable]
        with _without_hooks(self.parameters):  # those of the graph around it see what comes of it
            found = gradients([flat[position] for position in self.differentiable], wanted, given, allow_unused=True)
        for one in flat:
            recorder.freed.add(history(one))
        return result, tuple(found)


def _reached(result: Any, wanted: list[Any]) -> list[bool]:
    """Which of the leaves `wanted` the graph of a result leads to."""
    edges: list[Any] = [gradient_edge(one) for one in (result, *wanted)]
    nodes = {edges[0][0]}
    to_do = list(nodes)
    while to_do:
        new = {edge[0] for edge in to_do.pop().next_edges if edge is not None} - nodes
        nodes |= new
        to_do += new
    return [edge[0] in nodes for edge in edges[1:]]


@contextlib.contextmanager
def _without_hooks(parameters: list[Any]) -> Iterator[None]:
    """The hooks of leaves do not run."""
    found = [(meta.hooks, list(meta.hooks.items())) for one in parameters if (meta := one._grad_meta_).hooks]
    for hooks, _ in found:
        hooks.clear()
    try:
        yield
    finally:
        for hooks, content in found:
            hooks.update(content)


def _stand_in(tensor: Any) -> Any:
    one: Any = wrap(tensor._memory_)
    if tensor.requires_grad:
        one.requires_grad_()
        one._grad_meta_.grad = tensor._grad_meta_.grad if tensor._grad_meta_ is not None else None
    return one


class Instance:
    """The program with a memory of its own."""

    def __init__(self, recording: GraphRecording, backend: str) -> None:
        program = recording.program
        self.memory: Memory = Memory(program)
        self.c_code: Any
        for value in recording.grad_outputs:
            self.memory._allocate(value)
        writer, self.c_code = write(program, self.memory, backend)
        self.start: Any = writer.finish(None, None)  # type: ignore[arg-type]
        self.go_on: Any = self.memory.around(_go_on)
        self.places: list[np.ndarray] = [self.memory.view(value) for value in recording.arguments]
        self.grad_places: list[np.ndarray] = [self.memory.view(value) for value in recording.grad_outputs]
        self.holder: Any = None  # weakly, the node that may still run backward

    @property
    def is_free(self) -> bool:
        return self.holder is None or self.holder() is None


class GraphEntry:
    """A program of both passes that is ready to run."""

    confirmed = True

    def __init__(self, recording: GraphRecording, backend: str) -> None:
        self.recording: GraphRecording = recording
        self.backend: str = backend
        recording.program.lay_out()
        self._written: list[np.ndarray] = _written(recording)
        self._moving: list[Any] = moving_parts(recording.program)
        arguments = {id(tensor) for tensor in recording.tensors}
        known = dict(recording.recorder.swapped)
        for tensor in recording.world.tensors:
            known.setdefault(id(tensor), (tensor, tensor._memory_))
        self._expected: list[tuple[Any, Any, bool]] = [
            (tensor, array, tensor.requires_grad) for tensor, array in known.values() if id(tensor) not in arguments
        ]
        self._owned: dict[int, list[np.ndarray]] = owned_by(recording)
        written = {value.storage.number for call in recording.program.calls for value in call.writes}
        #: Arguments that are written to: their positions, and which of the program's arguments they are.
        self._copied_back: list[tuple[int, int]] = [
            (position, number)
            for number, (position, value) in enumerate(zip(recording.taken, recording.arguments, strict=True))
            if value.storage.number in written
        ]
        #: May the function ask whether a tensor has a gradient?
        self._reads_grads: bool = "grad" in recording.world.names
        self.instances: list[Instance] = [Instance(recording, backend)]
        #: Tensors of the world that the backward pass reads.
        self.read_later: list[Any] = _read_later(recording)
        self._lock: Any = fork_safe_lock()

    @property
    def memory(self) -> Memory:
        return self.instances[0].memory

    @property
    def c_code(self) -> Any:
        return self.instances[0].c_code

    @property
    def source(self) -> str:
        return write(self.recording.program, self.memory, self.backend, True)[0].text()

    def fits(self, tensors: list[Any]) -> str | None:
        reason = other_memory(self.recording, tensors, self._owned, bool(self._copied_back))
        if reason is not None:
            return reason
        for tensor, array, requires_grad in self._expected:
            if tensor._memory_ is not array or tensor.requires_grad != requires_grad:
                return f"a tensor of shape {list(array.shape)}"
        reason = other_grads(self.recording, tensors) if self._reads_grads else None
        return reason or self.recording.world.changed()

    def replay(self, tensors: list[Any]) -> Any:
        recording = self.recording
        token = _Token()
        with self._lock:
            instance = next((one for one in self.instances if one.is_free), None)
            if instance is None:
                instance = Instance(recording, self.backend)
                self.instances.append(instance)
            instance.holder = weakref.ref(token)
        wanted = [one for one, stand_in in zip(tensors, recording.tensors, strict=True) if stand_in.requires_grad]
        results = list(_Captured.apply(self, instance, token, tensors, *wanted, *recording.parameters))
        found = iter(results)
        leaves = [next(found) if one.__class__ is Output else one for one in recording.result_leaves]
        return tree_unflatten(leaves, recording.result_structure)

    def forward(self, instance: Instance, tensors: list[Any]) -> tuple[list[Any], Any]:
        recording = self.recording
        for place, at in zip(instance.places, recording.taken):
            np.copyto(place, tensors[at]._memory_)
        program = instance.start()
        saved = [array.copy() for array in self._written]
        states = [part.state() for part in self._moving]
        try:
            with np.errstate(all="ignore"):
                instance.go_on(program)
        except BaseException:
            for array, content in zip(self._written, saved):
                np.copyto(array, content)
            for part, state in zip(self._moving, states):
                part.put_back(state)
            raise
        for at, number in self._copied_back:
            np.copyto(tensors[at]._memory_, instance.places[number])
        for tensor, position, more in recording.versions:
            owner = tensor if position is None else tensors[position]
            (owner._vc_ or version_counter(owner)).version += more
        results = []
        for output in recording.result_leaves:
            if output.__class__ is not Output:
                continue
            if output.value is None:
                raise CaptureError("a captured module returned a tensor of the world")
            array = instance.memory.view(output.value)
            if output.counter is not None:  # memory of the world
                results.append(wrap(array, output.counter))
            else:
                counter = local.state.new_vc or (output.new_counter() if output.version else None)
                results.append(wrap(twin_of(array) if array.size else array.copy(), counter))
        return results, program

    def backward(self, instance: Instance, program: Any, grads: Any) -> list[Any]:
        recording = self.recording
        for place, position in zip(instance.grad_places, recording.differentiable):
            grad = grads[position]
            place.fill(0) if grad is None else np.copyto(place, grad._numbers_)
        with np.errstate(all="ignore"):
            instance.go_on(program)
        found = recording.leaves[len(recording.result_leaves) :]
        if any([grads[position] is None for position in recording.differentiable]):
            there = [r for r, at in zip(recording.reached, recording.differentiable) if grads[at] is not None]
            found = [one if any([reached[i] for reached in there]) else None for i, one in enumerate(found)]
        return [None if one is None else wrap(instance.memory.view(one.value).copy()) for one in found]


def _go_on(program: Any) -> None:
    next(program, None)


def _read_later(recording: GraphRecording) -> list[Any]:
    """Tensors of the world whose memory the second half of the program reads."""
    calls = recording.program.calls
    middle = next(i for i, call in enumerate(calls) if call.kind == "middle")
    read = {
        value.storage.number for call in calls[middle:] for value in call.reads if value.storage.kind == "outside"
    }
    recorder = recording.recorder
    found = []
    for tensor, array in recorder.swapped.values():
        value = recorder.find(array)
        if value is not None and value.storage.number in read:
            found.append(tensor)
    return found


def _written(recording: GraphRecording) -> list[np.ndarray]:
    """Memory of the world that a call writes to."""
    found = {
        value.storage.number: value.storage.array
        for call in recording.program.calls for value in call.writes if value.storage.kind == "outside"
    }  # fmt: skip
    return list(found.values())


class _Token:
    """Lives as long as the node of a call."""

    __slots__ = ("__weakref__",)


class _Captured(Function):
    """The node of a captured call."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, entry: GraphEntry, instance: Instance, token: _Token, tensors: list[Any], *wanted: Any
    ) -> Any:
        results, program = entry.forward(instance, tensors)
        ctx.entry, ctx.instance, ctx.program, ctx.token = entry, instance, program, token
        shared = [one for one, place in zip(tensors, entry.recording.shared, strict=True) if place is not None]
        ctx.save_for_backward(*entry.read_later, *shared)
        fixed = [one for position, one in enumerate(results) if position not in entry.recording.differentiable]
        ctx.mark_non_differentiable(*fixed)
        ctx.set_materialize_grads(False)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:  # type: ignore[override]
        if ctx.program is None:
            raise RuntimeError(
                "Trying to backward through the graph a second time: a captured module keeps what it needs for one "
                "backward pass"
            )
        ctx.saved_tensors  # noqa: B018 (which have to be as they were)
        program, ctx.program = ctx.program, None
        found = ctx.entry.backward(ctx.instance, program, grads)
        ctx.token = None
        if local.state.grad_enabled:
            found = refuse_second_derivative(
                ctx,
                found,
                "a captured module or function: its backward pass is a program, which has no history. To get second "
                "derivatives, call the function itself, or capture the whole step",
            )
        return (None, None, None, None, *found)
