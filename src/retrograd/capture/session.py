"""One recording of one call: the step runs, and what it did becomes a program with its effects on the world."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..autograd.intercept import observing
from ..core.state import local
from ..nn import Module
from ..tensor import Tensor
from ..utils._pytree import TreeSpec, tree_flatten
from .arrays import RecordedArray
from .errors import CaptureError, refuse
from .guards import World
from .patching import one_at_a_time, patched
from .program import Program
from .recording import Recorder
from .values import Call, Value


class Output:
    """A tensor among the results: `tensor` of the world, or the `value` of a new one."""

    __slots__ = ("argument", "requires_grad", "tensor", "value")

    def __init__(self, tensor: Any, argument: int | None, value: Value | None, requires_grad: bool) -> None:
        self.tensor: Any = tensor
        self.argument: int | None = argument
        self.value: Value | None = value
        self.requires_grad: bool = requires_grad


class GradEffect:
    """What becomes of the ``.grad`` of a leaf: None, or new memory; `version` is that of the new tensor."""

    __slots__ = ("argument", "tensor", "value", "version")

    def __init__(self, tensor: Any, argument: int | None, value: Value | None, version: int) -> None:
        self.tensor: Any = tensor
        self.argument: int | None = argument
        self.value: Value | None = value
        self.version: int = version


class Recording:
    """A call that was recorded: its result, and what a replay needs to know."""

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Any], split: bool,
                 native: bool, earlier: Sequence[Call] = ()) -> None:  # fmt: skip
        self.recorder: Recorder = Recorder(earlier)
        self.recorder.split = split
        self.native: bool = native
        self.recorder.native = native
        self.world: World = World(function)
        self.tensors: list[Any] = tensors
        self.result: Any = None
        self._grads_before: dict[int, tuple[Any, Any]] = {}
        self._required_before: list[bool] = [tensor.requires_grad for tensor in tensors]
        for tensor in (*self.world.tensors, *tensors):
            self._note_grad(tensor)
        self._run(function, args, kwargs)

    def _note_grad(self, tensor: Any) -> None:
        meta = tensor._grad_meta_
        if id(tensor) not in self._grads_before:
            self._grads_before[id(tensor)] = tensor, None if meta is None else meta.grad

    # ------------------------------------------------------------------------------------------------------ the run

    def _run(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        recorder = self.recorder
        self.arguments: list[Value] = []
        with one_at_a_time:  # until tensors that other threads use too have their arrays back
            try:
                with patched(recorder, self.world.optimizers):
                    self._take_arguments()
                    with np.errstate(all="ignore"), observing(recorder):
                        result = function(*args, **kwargs)
                self._finish(result)
            except BaseException:
                self._undo()
                raise

    def _take_arguments(self) -> None:
        recorder = self.recorder
        for tensor in self.tensors:
            array = tensor._memory_
            if array.__class__ is not np.ndarray:
                raise refuse(f"an argument of {type(array).__name__}", "only dense tensors on the CPU are captured")
            if tensor._edge_ is not None:
                raise refuse("an argument with a history", "use capture on a module, or detach() the argument")
            if array.size and recorder.find(array) is not None:
                raise refuse("arguments that share memory", "give the function tensors of their own")
            recorder.add_storage(array, "argument", whole=False)
            self.arguments.append(recorder.value(array))
            recorder.take(tensor)

    def _undo(self) -> None:
        """Leave the world as it was before the call."""
        recorder = self.recorder
        for tensor, array in recorder.swapped.values():
            tensor._memory_ = array
        recorder.give_back()
        self.result = None
        for tensor, grad in self._grads_before.values():
            if tensor._grad_meta_ is not None and tensor._grad_meta_.grad is not grad:
                tensor._grad_meta_.grad = grad
        for tensor, requires_grad in zip(self.tensors, self._required_before):
            if tensor.requires_grad != requires_grad and tensor._edge_ is None:
                tensor.requires_grad_(requires_grad)
        recorder.undo()
        for part, state in reversed(recorder.steps):
            part.put_back(state)

    # ------------------------------------------------------------------------------------------------- what came of it

    def _finish(self, result: Any) -> None:
        recorder = self.recorder
        positions = {id(tensor): position for position, tensor in enumerate(self.tensors)}
        self.structure: TreeSpec
        leaves, self.structure = tree_flatten(result)
        self.leaves: list[Any] = [self._output(leaf, positions) for leaf in leaves]
        recorder.freed.clear()
        del leaves
        self.result = result
        for tensor, _ in recorder.swapped.values():
            self._note_grad(tensor)
        self._grads(positions)
        self._versions(positions)
        #: (the position of an argument, whether it requires grad since the call, as it did not before)
        self.required: list[tuple[int, bool]] = [
            (position, tensor.requires_grad)
            for position, (tensor, before) in enumerate(zip(self.tensors, self._required_before, strict=True))
            if tensor.requires_grad != before
        ]
        for tensor, array in recorder.swapped.values():
            if tensor._memory_.__class__ is RecordedArray and tensor._memory_.array is not array:
                raise CaptureError(
                    f"cannot capture a step that gives a tensor of shape {list(array.shape)} other memory (.data = …, "
                    "set_, resize_): write to it in place instead, as with copy_()"
                )
        recorder.give_back()
        # Arrays of the user that tensors share are read anew each time.
        self.world.arrays = [one for one in self.world.arrays if recorder.find(one[0]) is None]
        changed = self.world.changed()
        if changed is not None:
            raise CaptureError(
                f"cannot capture a step that changes {changed}, which is neither an argument nor memory of a tensor: a "
                "replay would not repeat it. Keep it outside of the captured function, or make it a tensor that is "
                "written to in place"
            )
        self._look_for_strays()

    @functools.cached_property
    def program(self) -> Program:
        """What the recording comes to; what it needed for a step that fails is forgotten."""
        escaping = [one.value for one in self.leaves if one.__class__ is Output and one.value is not None]
        grads = [effect.value for effect in self.grads if effect.value is not None]
        program = Program(self.recorder, self.arguments, escaping, grads, self.native)
        self.recorder.let_go()
        self._grads_before.clear()
        return program

    def _output(self, leaf: Any, positions: dict[int, int]) -> Any:
        """A leaf of the results: an Output where it is a tensor, else itself."""
        recorder = self.recorder
        if not isinstance(leaf, Tensor):
            if leaf is None or isinstance(leaf, (int, float, complex, str)):
                return leaf
            raise refuse(
                f"a result of class {type(leaf).__name__}", "return tensors, numbers, lists, tuples and dictionaries"
            )
        position = positions.get(id(leaf))
        if position is not None or id(leaf) in recorder.swapped:
            return Output(leaf, position, None, False)
        array: Any = leaf._memory_
        if leaf._special_ is not None or not isinstance(array, (np.ndarray, RecordedArray)):
            raise refuse(f"a result of {type(array).__name__}", "return dense tensors")
        value = recorder.known(array)
        if leaf._edge_ is not None and leaf._edge_[0] not in recorder.freed:
            raise NeedsGraph
        if value.storage.kind == "argument":
            raise refuse("a result that is a view of an argument", "return its clone()")
        if array.__class__ is RecordedArray:
            leaf._memory_ = array.array
        return Output(None, None, value, leaf.requires_grad)

    def _grads(self, positions: dict[int, int]) -> None:
        recorder = self.recorder
        self.grads: list[GradEffect] = []
        #: (tensor, position of the argument or None, the array that its ``.grad`` has to have; None: no ``.grad``)
        self.grads_expected: list[tuple[Any, int | None, Any]] = []
        had_some = any([grad is not None for _, grad in self._grads_before.values()])
        used = recorder.used_of_the_world() if had_some else set()
        lent = {id(p) for call in recorder.calls if call.kind == "python" for p, _ in call.kwargs.get("grads", ())}
        for tensor, before in self._grads_before.values():
            now = None if tensor._grad_meta_ is None else tensor._grad_meta_.grad
            position = positions.get(id(tensor))
            made = None
            if now is not None and now._memory_.__class__ is RecordedArray:
                made = recorder.of(now._memory_)
                if now is before:
                    before_array = recorder.swapped[id(now)][1] if id(now) in recorder.swapped else now._memory_.array
                    now._memory_ = before_array
                else:
                    now._memory_ = now._memory_.array
            if now is before:
                if now is not None:
                    value = recorder.find(now._memory_) if isinstance(now._memory_, np.ndarray) else None
                    if value is not None and value.storage.number in used:
                        self.grads_expected.append((tensor, position, now._memory_))
                elif (id(tensor) in recorder.swapped and tensor.requires_grad) or id(tensor) in lent:
                    # It may have had one meanwhile, which would have been added to another.
                    self.grads_expected.append((tensor, position, None))
                continue
            if before is None:
                self.grads_expected.append((tensor, position, None))
            else:
                array = before._memory_
                if id(before) in recorder.swapped:
                    array = recorder.swapped[id(before)][1]
                if isinstance(array, np.ndarray):
                    value = recorder.find(array)
                    if value is not None and value.storage.number in used:
                        self.grads_expected.append((tensor, position, array))
            value = None if now is None else made or recorder.value(now._memory_)
            if now is not None and now._edge_ is not None:
                raise refuse(
                    "a .grad with a history (create_graph=True)", "use torch.autograd.grad() and return its result"
                )
            version = 0 if now is None or now._vc_ is None else now._vc_.version
            self.grads.append(GradEffect(tensor if position is None else None, position, value, version))

    def _versions(self, positions: dict[int, int]) -> None:
        """How often each piece of the world's memory was written to."""
        recorder = self.recorder
        self.versions: list[tuple[Any, int | None, int]] = []
        seen: set[int] = set()
        for tensor, _ in recorder.swapped.values():
            counter = tensor._vc_
            if counter is None or id(counter) in seen:
                continue
            seen.add(id(counter))
            before = recorder.versions.get(id(counter), (None, 0))[1]
            try:
                more = counter.version - before - recorder.live_writes.get(id(counter), 0)
            except RuntimeError:  # an inference tensor
                continue
            if more > 0:
                position = positions.get(id(tensor))
                self.versions.append((None if position is not None else tensor, position, more))

    def _look_for_strays(self) -> None:
        """Nobody but the results may hold a tensor that was made inside."""
        alive = [one for one in (ref() for ref in self.recorder.boxes) if one is not None]
        if alive:
            del alive
            gc.collect()
            alive = [one for one in (ref() for ref in self.recorder.boxes) if one is not None]
        if not alive:
            return
        found = gc.get_referrers(*alive)
        for referrer in found:
            if isinstance(referrer, Tensor):
                array = referrer._memory_
                if array.__class__ is RecordedArray:
                    holders = gc.get_referrers(referrer)
                    others = [one for one in holders if not _is_ours(one) and one is not found]
                    if not others:
                        referrer._memory_ = array.array
                        continue
                    raise CaptureError(
                        f"cannot capture a step that keeps a tensor of shape {list(array.shape)} which it made "
                        f"({_held_by(others[0])} holds it): return it instead"
                    )


def _is_ours(referrer: Any) -> bool:
    if (type(referrer).__module__ or "").startswith("retrograd.") and not isinstance(referrer, Module):
        return True  # a part of the graph of a result
    return referrer.__class__.__name__ in ("frame", "list_iterator") or referrer.__class__ is weakref.ref


def _held_by(holder: Any) -> str:
    return f"a {type(holder).__name__}"


class NeedsGraph(Exception):
    """The results are part of a graph that somebody may differentiate."""


def is_free(state: Any = None) -> bool:
    """Does nobody watch the operators of this thread?"""
    state = local.state if state is None else state
    return (
        state.interceptor is None and not state.batch_levels and not state.saved_tensors_hooks
        and not state.function_modes and state.mutation_guard is None and state.graph_task is None
    )  # fmt: skip
