"""One recording of one call: the step runs, and what it did becomes a program with its effects on the world."""

from __future__ import annotations

import functools
import gc
import weakref
from typing import Any

import numpy as np

from ..autograd.intercept import observing
from ..core import compiled, dtypes
from ..core.state import local
from ..core.version_counter import INFERENCE, VersionCounter, version_counter
from ..kernels.promotion import is_stored
from ..nn import Module
from ..nn.utils.parametrize import _cache as cached_parametrizations
from ..tensor import Tensor
from ..tensor.lazy_conjugation import LazyTensor
from ..utils._pytree import TreeSpec, tree_flatten
from .arguments import Given, Same, history, modes
from .arrays import RecordedArray
from .errors import CaptureError, refuse
from .guards import World
from .patching import one_at_a_time, patched
from .program import Program
from .recording import Recorder
from .values import Call, Value, address, bounds

#: Stands for a ``.grad`` that has to be there, whatever it is.
SOME: Any = object()
#: By these names a tensor says where it lies in memory that is more than its own.
_PLACES = frozenset(("storage_offset", "storage", "untyped_storage", "typed_storage", "_base"))
#: By these names values are looked at.
_READERS = frozenset(("item", "tolist", "float", "int", "bool", "complex", "str", "repr", "deepcopy"))


class Output:
    """A tensor among the results: `tensor` of the world, or the `value` of a new one.

    It may be the ``.grad`` of a tensor or argument (`grad`), or memory of the world, whose `counter` it shares.
    """

    __slots__ = (
        "argument", "counter", "grad", "is_bare", "is_leaf", "is_plain", "place", "requires_grad", "tensor", "value",
        "version",
    )  # fmt: skip

    def __init__(self, tensor: Any, argument: int | None, value: Value | None, requires_grad: bool) -> None:
        self.tensor: Any = tensor
        self.argument: int | None = argument
        self.value: Value | None = value
        self.requires_grad: bool = requires_grad
        self.is_leaf: bool = False
        #: Is it a copy of its value, and nothing more? And the array where that lies, of the program that runs.
        self.is_plain: bool = False
        self.place: Any = None
        self.is_bare: bool = False  # and has no history
        self.grad: bool = False
        self.counter: Any = None
        #: How often the memory of a new one has been written to.
        self.version: int = 0

    def new_counter(self) -> VersionCounter:
        """The counter of a new result."""
        counter = VersionCounter()
        counter.version = self.version
        return counter


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
                 native: bool, earlier: list[Call] | None = None) -> None:  # fmt: skip
        self.recorder: Recorder = Recorder(earlier)
        self.recorder.split = split
        self.native: bool = native
        self.recorder.native = native
        self._given: Given = Given(function, args, kwargs)
        self.world: World = World(function, self._given.things)
        if self.world.refused is not None:
            raise CaptureError(
                f"cannot capture a step that reads {self.world.refused}: read it outside of the captured function, and "
                "pass what comes of it (the next() of an iterator, for example)"
            )
        self.tensors: list[Any] = tensors
        self.result: Any = None
        self._grads_before: dict[int, tuple[Any, Any]] = {}
        self._required_before: list[bool] = [tensor.requires_grad for tensor in tensors]
        self._required_of_the_world: list[bool] = [tensor.requires_grad for tensor in self.world.tensors]
        #: Where arguments lie in memory that is more than theirs, if the function may ask.
        self.places: list[Any] | None = None
        if not self.world.names.isdisjoint(_PLACES):
            self.places = _places(tensors, "_base" in self.world.names)
        for tensor in (*self.world.tensors, *tensors):
            self._note_grad(tensor)
        self._run(function, args, kwargs)

    def _note_grad(self, tensor: Any) -> None:
        meta = tensor._grad_meta_
        if id(tensor) not in self._grads_before:
            grad = None if meta is None else meta.grad
            self._grads_before[id(tensor)] = tensor, grad
            if grad is not None:
                self.recorder.note_version(grad)

    # ------------------------------------------------------------------------------------------------------ the run

    def _run(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        recorder = self.recorder
        self.arguments: list[Value] = []
        #: Arguments that share memory with others: they are read, each for itself, and not written to.
        self._twins: list[tuple[Any, np.ndarray, np.ndarray]] = []
        before = modes(local.state)
        with one_at_a_time:  # until tensors that other threads use too have their arrays back
            wrappers = patched(recorder, self.world.optimizers)
            try:
                with wrappers:
                    self._take_arguments()
                    with np.errstate(all="ignore"), observing(recorder):
                        result = function(*args, **kwargs)
                self._leave_twins()
                self._compare_modes(before)
                self._finish(result)
            except BaseException as error:
                refused = isinstance(error, CaptureError)
                try:
                    self._leave(wrappers, refused)
                except BaseException:  # an interrupt meanwhile: all of it can be done again
                    self._leave(wrappers, refused)
                    raise
                raise

    def _leave(self, wrappers: Any, refused: bool) -> None:
        """The call has failed: everything is as it was before; what is no tensor, if it was refused."""
        wrappers.take_back()  # (an interrupt may have come before)
        if refused:
            self._given.put_back()
            self.world.put_back()
        self._unbox_strays()
        self.undo()

    def _shared(self) -> list[int | None]:
        """For each argument: where it lies, if that is memory of a tensor of the world; else None."""
        owned: dict[int, list[np.ndarray]] = {}
        for tensor in self.world.tensors:
            if tensor._memory_.__class__ is np.ndarray:
                owned.setdefault(id(owner_of(tensor._memory_)), []).append(tensor._memory_)
        found: list[int | None] = []
        for array in [tensor._memory_ for tensor in self.tensors]:
            others = owned.get(id(owner_of(array)), ()) if array.__class__ is np.ndarray else ()
            found.append(address(array) if any([np.may_share_memory(array, one) for one in others]) else None)
        return found

    def _take_arguments(self) -> None:
        recorder = self.recorder
        self.shared: list[int | None] = self._shared()
        #: Positions of the tensors that are arguments of the program; the others are memory of the world.
        self.taken: list[int] = [position for position, shared in enumerate(self.shared) if shared is None]
        given: list[np.ndarray] = []
        for tensor, shared in zip(self.tensors, self.shared):
            array = tensor._memory_
            if array.__class__ is not np.ndarray:
                raise refuse(f"an argument of {type(array).__name__}", "only dense tensors on the CPU are captured")
            if history(tensor) is not None:
                raise refuse("an argument with a history", "use capture on a module, or detach() the argument")
            if shared is not None:
                recorder.take(tensor)
                continue
            if any([np.may_share_memory(array, one) for one in given]):
                twin = twin_of(array)
                self._twins.append((tensor, array, twin))
                tensor._memory_ = twin
            given.append(array)
            recorder.add_storage(tensor._memory_, "argument", whole=False)
            self.arguments.append(recorder.value(tensor._memory_))
            recorder.take(tensor)
            recorder.swapped[id(tensor)] = tensor, array
        self._take_world()

    def _take_world(self) -> None:
        """Take the tensors of the world that are known already: a value may be looked at before any operator sees it.

        (One with a history is refused by the first operator that does.)
        """
        found = self.world.tensors
        if "grad" in self.world.names and not self.world.names.isdisjoint(_READERS):
            found = [*found, *[grad for _, grad in self._grads_before.values() if grad is not None]]
        for tensor in found:
            array = tensor._memory_
            if array.__class__ is np.ndarray and tensor._special_ is None and not is_stored(array.dtype):
                if history(tensor) is None:
                    self.recorder.take(tensor, is_used=False)

    def _leave_twins(self) -> None:
        """Have arguments that share memory hold it again."""
        for tensor, array, twin in self._twins:
            if getattr(tensor._memory_, "array", None) is twin:
                tensor._memory_ = array
        if not self._twins:
            return
        written = {value.storage.number for call in self.recorder.calls for value in call.writes}
        for position, value in zip(self.taken, self.arguments):
            one = self.recorder.swapped[id(self.tensors[position])][1]
            shares = any([np.may_share_memory(one, array) for _, array, _ in self._twins])
            if shares and value.storage.number in written:
                raise CaptureError(
                    "cannot capture a step that writes to an argument which shares memory with another one: give the "
                    "function tensors of their own (clone())"
                )

    def _compare_modes(self, before: list[Any]) -> None:
        state = local.state
        if modes(state) != before:
            state.grad_enabled, state.inference, default = before
            dtypes.set_default_dtype(dtypes.from_numpy_dtype(default))
            raise CaptureError(
                "cannot capture a step that leaves another mode behind (set_grad_enabled, set_default_dtype): use it "
                "in a with statement, or outside of the captured function"
            )
        if self.recorder.failed is not None:
            name, where = self.recorder.failed
            raise CaptureError(
                f"cannot capture {name} at {where}, whose error was caught: which way a step goes then hangs on values."
                " Let the error leave the captured function, or keep the attempt outside of it"
            )

    def undo(self) -> None:
        """Leave the world as it was before the call."""
        recorder = self.recorder
        self.world.drawn_from()
        for tensor, array, _ in self._twins:
            tensor._memory_ = array
        for tensor, array in recorder.swapped.values():
            tensor._memory_ = array
        recorder.give_back()
        self.result = None
        for tensor, grad in self._grads_before.values():
            if tensor._grad_meta_ is not None and tensor._grad_meta_.grad is not grad:
                tensor._grad_meta_.grad = grad
        flags = [*self._required_before, *self._required_of_the_world]
        for tensor, requires_grad in zip((*self.tensors, *self.world.tensors), flags):
            if tensor.requires_grad != requires_grad:
                tensor._edge_ = None  # it had no history, which would have been refused
                if tensor.requires_grad != requires_grad:
                    tensor.requires_grad_(requires_grad)
        recorder.undo()
        for part, state in reversed(recorder.steps):
            part.put_back(state)

    # ------------------------------------------------------------------------------------------------- what came of it

    def _finish(self, result: Any) -> None:
        recorder = self.recorder
        positions = {id(tensor): position for position, tensor in enumerate(self.tensors)}
        for tensor, grad in recorder.grads_found.values():
            self._grads_before.setdefault(id(tensor), (tensor, grad))
        self._grads_now: dict[int, Any] = {
            id(tensor._grad_meta_.grad): tensor
            for tensor, _ in self._grads_before.values()
            if tensor._grad_meta_ is not None and tensor._grad_meta_.grad is not None
        }
        self.structure: TreeSpec
        leaves, self.structure = tree_flatten(result)
        outputs: dict[int, Any] = {}
        #: Of a tensor that is there twice, there is one Output.
        self.leaves: list[Any] = []
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                self.leaves.append(_number(leaf))
                continue
            if id(leaf) not in outputs:
                outputs[id(leaf)] = self._output(leaf, positions)
            self.leaves.append(outputs[id(leaf)])
        recorder.forget_freed()
        del leaves
        self.result = result
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
        self._look_for_overlaps(positions)
        # Arrays of the user that tensors share are read anew each time.
        self.world.arrays = [
            one for one in self.world.arrays if not isinstance(one[0], np.ndarray) or recorder.find(one[0]) is None
        ]
        self.world.settle()
        drawn = self.world.drawn_from()
        if drawn is not None:
            raise CaptureError(
                f"cannot capture a step that draws random numbers from {drawn}: a replay would not draw them. Draw "
                "them outside of the captured function, or with torch.rand() and a torch.Generator"
            )
        changed = self._given.changed() or self.world.changed() or self.world.changed_inside() or self._other_flags()
        if changed is not None:
            raise CaptureError(
                f"cannot capture a step that changes {changed}, which is no memory of a tensor: a replay would not "
                "repeat it. Change it outside of the captured function, or make it a tensor that is written to in place"
            )
        self._look_for_strays()

    def _other_flags(self) -> str | None:
        """A tensor of the world that requires grad as it did not before, or an argument that has a history now."""
        for tensor, before in zip(self.world.tensors, self._required_of_the_world):
            if tensor.requires_grad != before:
                return f"requires_grad of a tensor of shape {list(tensor.shape)}"
        given = [self.tensors[position] for position, _ in self.required if history(self.tensors[position]) is not None]
        return f"the history of an argument of shape {list(given[0].shape)}" if given else None

    @functools.cached_property
    def program(self) -> Program:
        """What the recording comes to; what it needed for a step that fails is forgotten."""
        escaping = [one.value for one in self.leaves if one.__class__ is Output and one.value is not None]
        grads = [effect.value for effect in self.grads if effect.value is not None]
        program = Program(self.recorder, self.arguments, escaping, grads, self.native)
        self.recorder.let_go()
        self._grads_before.clear()
        return program

    def _output(self, leaf: Any, positions: dict[int, int]) -> Output:
        """A tensor among the results."""
        recorder = self.recorder
        position = positions.get(id(leaf))
        if position is not None or id(leaf) in recorder.swapped:
            return Output(leaf, position, None, False)
        owner = self._grads_now.get(id(leaf))
        if owner is not None:
            output = Output(owner, positions.get(id(owner)), None, False)
            output.grad = True
            return output
        array: Any = leaf._memory_
        if leaf._special_ is not None or not isinstance(array, (np.ndarray, RecordedArray)):
            raise refuse(f"a result of {type(array).__name__}", "return dense tensors")
        if leaf.__class__ is not Tensor:
            raise refuse(
                f"a result of class {type(leaf).__name__} that was made inside",
                "return its resolve_conj().resolve_neg()" if isinstance(leaf, LazyTensor) else "return a plain tensor",
            )
        value = recorder.known(array)
        node = history(leaf)
        if node is not None and not recorder.is_freed(node):
            raise NeedsGraph
        if value.storage.kind == "argument":
            raise refuse("a result that is a view of an argument", "return its clone()")
        if array.__class__ is RecordedArray:
            leaf._memory_ = array.array
        output = Output(None, None, value, leaf.requires_grad)
        output.is_leaf = leaf.requires_grad and node is None
        if output.is_leaf and leaf.grad is not None:
            raise refuse("a result that is a leaf with a .grad, both made inside", "return it detached, and its .grad")
        if value.storage.kind == "outside" and value.storage.number in self._tensors_of_the_world():
            output.counter = version_counter(leaf)
        elif leaf._vc_ is not None and leaf._vc_ is not INFERENCE:
            output.version = leaf._vc_.version
        return output

    def _tensors_of_the_world(self) -> set[int]:
        """The storages of the tensors that were found in the world, as far as they are used."""
        arrays = [array for _, array in self.recorder.swapped.values()]
        arrays += [one._memory_ for one in self.world.tensors if one._memory_.__class__ is np.ndarray]
        found = [self.recorder.find(array) for array in arrays]
        return {value.storage.number for value in found if value is not None}

    def _look_for_overlaps(self, positions: dict[int, int]) -> None:
        """No tensor that was found on the way may be memory of an argument: the next one may be another."""
        given = [self.tensors[position]._memory_ for position in self.taken]
        owners = {id(owner_of(array)) for array in given}
        for tensor, array in self.recorder.swapped.values():
            if id(tensor) not in positions and id(owner_of(array)) in owners:
                if any([np.may_share_memory(array, one) for one in given]):
                    raise CaptureError(
                        f"cannot capture an argument that shares memory with a tensor of shape {list(array.shape)} "
                        "which the function finds elsewhere: pass a clone() of it, or do not pass it"
                    )

    def _grads(self, positions: dict[int, int]) -> None:
        recorder = self.recorder
        self.grads: list[GradEffect] = []
        #: (tensor, position of the argument or None, the array that its ``.grad`` has to have; None: no ``.grad``)
        self.grads_expected: list[tuple[Any, int | None, Any]] = []
        had_some = any([grad is not None for _, grad in self._grads_before.values()])
        used = recorder.used_of_the_world() if had_some else set()
        is_read = "grad" in self.world.names  # a function may ask whether there is one
        lent: set[int] = set()
        if recorder.steps:  # of optimizers
            python = [call for call in recorder.calls if call.kind == "python"]
            lent = {id(p) for call in python for p, _ in call.kwargs.get("grads", ())}
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
                    is_returned = any([
                        one.__class__ is Output and one.grad and one.tensor is tensor for one in self.leaves
                    ])  # fmt: skip
                    if is_returned or (value is not None and value.storage.number in used):
                        self.grads_expected.append((tensor, position, now._memory_))
                    elif is_read:
                        self.grads_expected.append((tensor, position, SOME))
                elif is_read or (id(tensor) in recorder.swapped and tensor.requires_grad) or id(tensor) in lent:
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
                    elif is_read:
                        self.grads_expected.append((tensor, position, SOME))
            value = None if now is None else made or recorder.value(now._memory_)
            if value is not None and value.storage.kind == "argument":
                raise refuse("a .grad that is memory of an argument", "assign its clone()")
            if now is not None and history(now) is not None:
                raise refuse(
                    "a .grad with a history (create_graph=True)", "use torch.autograd.grad() and return its result"
                )
            version = 0 if now is None or now._vc_ is None else now._vc_.version
            self.grads.append(GradEffect(tensor if position is None else None, position, value, version))

    def _versions(self, positions: dict[int, int]) -> None:
        """How often each piece of the world's memory was written to."""
        recorder = self.recorder
        self.versions: list[tuple[Any, int | None, int]] = []
        #: And the gradients that stay, by whose they are.
        self.grad_versions: list[tuple[Any, int | None, int]] = []
        seen: set[int] = set()
        grads = [
            (one, grad) for one, grad in self._grads_before.values()
            if grad is not None and one._grad_meta_.grad is grad
        ]  # fmt: skip
        for owner, tensor in [*grads, *[(None, tensor) for tensor, _ in recorder.swapped.values()]]:
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
                written = tensor if owner is None else owner
                position = positions.get(id(written))
                found = self.versions if owner is None else self.grad_versions
                found.append((None if position is not None else written, position, more))

    def _look_for_strays(self) -> None:
        """Nobody but the results may hold a tensor that was made inside."""
        found = self._alive()
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

    def _alive(self) -> list[Any]:
        """Whoever holds an array of the recording."""
        if not _alive(self.recorder):
            return []
        gc.collect()
        alive = _alive(self.recorder)
        return gc.get_referrers(*alive) if alive else []

    def _unbox_strays(self) -> None:
        """The call has failed: tensors that it made and somebody keeps are tensors as others."""
        for referrer in self._alive():
            if isinstance(referrer, Tensor) and referrer._memory_.__class__ is RecordedArray:
                referrer._memory_ = referrer._memory_.array


def _number(leaf: Any) -> Any:
    if leaf is None or isinstance(leaf, (int, float, complex, str)):
        return leaf
    raise refuse(
        f"a result of class {type(leaf).__name__}", "return tensors, numbers, lists, tuples and dictionaries"
    )


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array whose memory it is."""
    base = array.base
    while base.__class__ is np.ndarray:
        array, base = base, base.base  # type: ignore[assignment, union-attr]
    return array


def _places(tensors: list[Any], with_bases: bool) -> list[Any]:
    """Where tensors lie in the memory of the arrays that own it, and how much that is; and whose views they are."""
    arrays = [tensor._memory_ for tensor in tensors]
    found: list[Any] = [(address(array) - bounds(owner_of(array))[0], owner_of(array).nbytes)
                        if array.__class__ is np.ndarray else None for array in arrays]  # fmt: skip
    return found + [Same(tensor._base) for tensor in tensors] if with_bases else found


def owned_by(recording: Recording) -> dict[int, list[np.ndarray]]:
    """Arrays of the world by whose memory they are, if the program writes to it or to its arguments; else none."""
    found: dict[int, list[np.ndarray]] = {}
    if any([value.storage.kind != "new" for _, call in recording.program.others for value in call.writes]):
        for _, array in recording.recorder.swapped.values():
            found.setdefault(id(owner_of(array)), []).append(array)
    return found


def other_memory(
    recording: Recording, tensors: list[Any], owned: dict[int, list[np.ndarray]], writes: bool
) -> str | None:
    """Do arguments share memory in another way than when it was recorded? `writes`: the program writes to some."""
    if recording.places is not None and _places(tensors, "_base" in recording.world.names) != recording.places:
        return "where an argument lies in its memory"
    for tensor, shared in zip(tensors, recording.shared):
        if shared is not None:
            if address(tensor._memory_) != shared:
                return "which tensor of the world an argument is"
        elif owned:
            others = owned.get(id(owner_of(tensor._memory_)))
            if others is not None and any([np.may_share_memory(tensor._memory_, one) for one in others]):
                return "an argument that shares memory with a tensor of the world"
    if writes and len(tensors) > 1:
        arrays = [tensor._memory_ for tensor in tensors]
        if any([np.may_share_memory(one, arrays[i]) for k, one in enumerate(arrays) for i in range(k)]):
            return "an argument that shares memory with another one"
    return None


def other_grads(recording: Recording, tensors: list[Any]) -> str | None:
    """Is the ``.grad`` of a tensor there, or not there, or another, than what the program was recorded for?"""
    for tensor, position, array in recording.grads_expected:
        owner = tensor if position is None else tensors[position]
        grad = None if owner._grad_meta_ is None else owner._grad_meta_.grad
        if (grad is None) != (array is None) or (
            grad is not None and position is None and array is not SOME and grad._memory_ is not array
        ):
            return f"the .grad of a tensor of shape {list(owner._memory_.shape)}"
        if grad is not None and position is not None and array is not SOME:
            return "the .grad of an argument"
    return None


def twin_of(array: np.ndarray) -> np.ndarray:
    """A copy that is laid out as the array is."""
    low, high = bounds(array)
    twin: np.ndarray = np.ndarray(
        array.shape, array.dtype, np.empty(high - low, np.uint8), address(array) - low, array.strides
    )
    np.copyto(twin, array)
    return twin


def _alive(recorder: Recorder) -> list[RecordedArray]:
    """The recorded arrays that are still there."""
    found = [one for reference in recorder.boxes if (one := reference()) is not None]
    if compiled.library is not None and compiled.library.holders(recorder):
        found += [one for one in gc.get_referrers(recorder.token) if one.__class__ is RecordedArray]
    return found


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
        and not cached_parametrizations.depth
    )  # fmt: skip
