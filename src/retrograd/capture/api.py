"""`capture`: a function whose later calls are replays of a recorded one."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from threading import get_ident
from types import MethodType
from typing import Any
from weakref import ref

import numpy as np

from ..autograd.ownership import count
from ..core.devices import accelerators
from ..core.locks import fork_safe_lock
from ..core.quiet import is_quiet, once, quietly
from ..core.state import local
from ..core.version_counter import VersionCounter, version_counter
from ..core.where import users_level
from ..nn import Module
from ..tensor import Tensor, wrap
from ..utils._pytree import tree_leaves, tree_unflatten
from . import device
from .arguments import TooDeep, first_other, history, hooks_of, in_outline, signature
from .checking import checked
from .comparing import difference, is_parted_by_a_value, other_results
from .compiling import has_compiler
from .ended import ended
from .errors import CaptureError, OtherPath, refuse
from .explaining import explained
from .graphed import GraphEntry, GraphRecording
from .memory import Memory
from .moving import moving_parts
from .native import write
from .patching import active, how_many_modules, one_at_a_time, without_collections
from .session import NeedsGraph, Output, Recording, is_free, other_grads, other_memory, owned_by, owner_of
from .values import Value

#: So many programs are made for calls that look alike before they are left to run eagerly.
LIMIT = 8
#: And so many for all calls.
MANY = 64


class Entry:
    """A program that is ready to run, with what it expects of the world."""

    def __init__(self, recording: Recording, backend: str) -> None:
        self.recording: Recording = recording
        self.backend: str = backend
        self.confirmed: bool = False
        #: One memory is for one thread at a time.
        self._lock: Any = fork_safe_lock()
        #: Weakly, the arrays of the gradients that the last run has made anew, by their position.
        self._given: dict[int, Any] = {}
        self._owned: dict[int, list[np.ndarray]] = {}
        self.written: list[tuple[int, np.ndarray]] = []
        #: May it matter whose memory the arguments are? It does to the recording that has to be the same.
        self._asks_for_memory: bool = True
        arguments = {id(tensor) for tensor in recording.tensors}
        known = dict(recording.recorder.swapped)
        for tensor in recording.world.tensors:  # whose shape, or what else they are, may have been looked at
            known.setdefault(id(tensor), (tensor, tensor._memory_))
        self._expected: list[tuple[Any, Any, bool, Any]] = [
            (tensor, array, tensor.requires_grad, hooks_of(tensor._grad_meta_))
            for tensor, array in known.values()
            if id(tensor) not in arguments
        ]
        for _, array, _, _ in self._expected:
            self._owned.setdefault(id(owner_of(array)), []).append(array)
        # (which lets go of the memory of the recording; if it fails, the recording is undone, by its tensors)
        recording.program  # noqa: B018
        for argument in recording.tensors:
            recording.recorder.swapped.pop(id(argument), None)
        recording.tensors = []

    def build(self) -> None:
        """Make the program: its recording was the same twice."""
        self.recording.recorder.calls = []
        self.recording.program.lay_out()
        self._bind_memory()
        self.confirmed = True  # from now on threads may run it

    # ------------------------------------------------------------------------------------------------------ memory

    def _bind_memory(self) -> None:
        recording = self.recording
        program = recording.program
        self.memory: Memory = Memory(program)
        self.inputs: list[np.ndarray] = [self.memory.view(value) for value in recording.arguments]
        written = {v.storage.number for _, call in program.others for v in call.writes}
        self.written = [
            (position, place)
            for position, value, place in zip(recording.taken, recording.arguments, self.inputs)
            if value.storage.number in written
        ]
        self._owned = owned_by(recording)
        elsewhere = len(recording.taken) < len(recording.shared) or recording.places is not None
        self._asks_for_memory = bool(elsewhere or self._owned or self.written)
        outputs: list[Any] = list({id(one): one for one in recording.leaves if one.__class__ is Output}.values())
        outputs = [one for one in outputs if one.value is not None]
        #: Storages of results that are memory of the world, or of a gradient.
        self._aliased: set[int] = {one.value.storage.number for one in outputs if one.counter is not None}
        self._aliased |= {effect.value.storage.number for effect in recording.grads if effect.value is not None}
        #: The part of a storage that results lie in which share it, or are not laid out row by row.
        self._spans: dict[int, Value] = _spans([one.value for one in outputs])
        for one in outputs:
            number = one.value.storage.number
            one.is_plain = not (one.is_leaf or number in self._aliased or number in self._spans)
            one.is_plain = one.is_plain and not one.version and sum([one is other for other in recording.leaves]) == 1
            one.place = self.memory.view(one.value) if one.is_plain else None
            one.is_bare = one.is_plain and not one.requires_grad
        structure = recording.structure
        self._is_tuple = structure.type is tuple and structure.num_nodes == structure.num_leaves + 1
        self.c_code: Any
        writer, self.c_code = write(program, self.memory, self.backend)
        self.run: Callable[[], None] = self.memory.around(writer.finish(self._bind, self._release))
        self._saved: list[np.ndarray] = self._to_save()
        self._moving: list[Any] = moving_parts(program)
        self._kept: list[tuple[Any, np.ndarray]] = []
        for effect in recording.grads:
            if effect.value is not None and effect.value.storage.number not in program.fresh:
                self._kept.append((effect, self.memory.view(effect.value)))
        self._baseline: list[int] | None = None
        self._last: list[Any] = []
        effects = {id(effect.tensor) for effect in recording.grads}
        #: Those that have a gradient while an optimizer looks at it, and afterwards what they had before.
        self._lent: list[Any] = list(
            {
                id(param): param
                for _, call in program.others if call.kind == "python"
                for param, _ in call.kwargs.get("grads", ()) if id(param) not in effects
            }.values()
        )  # fmt: skip

    @property
    def source(self) -> str:
        """The program, with remarks."""
        return write(self.recording.program, self.memory, self.backend, True)[0].text()

    def _to_save(self) -> list[np.ndarray]:
        """Memory of the world that is written before something that may fail: it is put back then."""
        program = self.recording.program
        if not any([storage.kind == "outside" for storage in program.storages]):
            return []
        last = max([i for i, call in program.others if call.may_raise], default=-1)
        found: dict[int, np.ndarray] = {}
        for position, call in program.others:
            for value in call.writes if position < last else ():
                if value.storage.kind == "outside":
                    found[value.storage.number] = value.storage.array
        return list(found.values())

    def _bind(self, param: Any, array: Any) -> None:
        """Give a parameter its gradient, for an optimizer that looks there."""
        meta = param._grad_meta_
        if array is None:
            meta.grad = None
        elif meta.grad is None or meta.grad._memory_ is not array:
            meta.grad = wrap(array)

    def _release(self) -> None:
        """Let go of the gradients of the last run that this one makes anew, as zero_grad() does."""
        for position, given in self._given.items():
            meta = self.recording.grads[position].tensor._grad_meta_
            if meta.grad is not None and meta.grad._memory_ is given():
                meta.grad = None
        self._given.clear()

    # ------------------------------------------------------------------------------------------------------- guards

    def fits(self, tensors: list[Any]) -> str | None:
        """Why this program is not for this call; None if it is."""
        if self._asks_for_memory:
            reason = other_memory(self.recording, tensors, self._owned, bool(self.written))
            if reason is not None:
                return reason
        for tensor, array, requires_grad, hooks in self._expected:
            if tensor._memory_ is not array:
                return f"the memory of a tensor of shape {list(array.shape)}"
            meta = tensor._grad_meta_
            if hooks is not None or (meta is not None and (meta.hooks or meta.post_accumulate_grad_hooks)):
                if hooks_of(meta) != hooks:
                    return f"the hooks of a tensor of shape {list(array.shape)}"
            if (meta is not None and meta.requires_grad) != requires_grad and tensor._edge_ is None:
                return f"requires_grad of a tensor of shape {list(array.shape)}"
        if self.recording.grads_expected:
            reason = other_grads(self.recording, tensors)
            if reason is not None:
                return reason
        return self.recording.world.changed()

    # ------------------------------------------------------------------------------------------------------- replay

    def replay(self, tensors: list[Any]) -> Any:
        with self._lock:
            return self._replay(tensors)

    def _replay(self, tensors: list[Any]) -> Any:
        if self._kept and self._is_held():
            self._bind_memory()  # somebody keeps the gradients of the last run
        recording = self.recording
        for place, position in zip(self.inputs, recording.taken):
            place[...] = tensors[position]._memory_  # (half the time of a copyto)
        if self._lent:
            owned = [(param._grad_meta_, param._grad_meta_.grad) for param in self._lent]
            try:
                self._run_safely()
            finally:
                for meta, grad in owned:
                    meta.grad = grad
        else:
            self._run_safely()
        for position, place in self.written:
            tensors[position]._memory_[...] = place
        for tensor, argument, more in recording.versions:
            owner = tensor if argument is None else tensors[argument]
            counter = owner._vc_ or version_counter(owner)
            counter.version += more
        for tensor, argument, more in recording.grad_versions:
            grad = (tensor if argument is None else tensors[argument])._grad_meta_.grad
            if grad is not None:
                (grad._vc_ or version_counter(grad)).version += more
        for position, requires_grad in recording.required:
            tensors[position].requires_grad_(requires_grad)
        if recording.grads:
            self._set_grads(tensors)
        made: dict[Any, Any] = {}
        new_vc = local.state.new_vc
        leaves: list[Any] = []
        for one in recording.leaves:
            is_bare = one.__class__ is Output and one.is_bare
            leaves.append(wrap(one.place.copy(), new_vc) if is_bare else self._leaf(one, tensors, made))
        if recording.program.fresh:
            for number in recording.program.fresh:
                self.memory.own.pop(number, None)
        return tuple(leaves) if self._is_tuple else tree_unflatten(leaves, recording.structure)

    def _run_safely(self) -> None:
        """Run the program; if it fails, what it has written to of the world is put back."""
        if self._saved or self._moving:
            before = [array.copy() for array in self._saved]
            states = [part.state() for part in self._moving]
            try:
                once(self.run)
            except BaseException:
                for array, content in zip(self._saved, before):
                    np.copyto(array, content)
                for part, state in zip(self._moving, states):
                    part.put_back(state)
                raise
        elif is_quiet():  # IEEE arithmetic, as eagerly: see core/quiet.py
            self.run()
        else:
            quietly(self.run)

    def _set_grads(self, tensors: list[Any]) -> None:
        last = []
        fresh = self.recording.program.fresh
        for position, effect in enumerate(self.recording.grads):
            owner = effect.tensor if effect.argument is None else tensors[effect.argument]
            if effect.value is None:
                owner._grad_meta_.grad = None
                continue
            array = self.memory.view(effect.value)
            if effect.argument is not None:
                array = array.copy()
            grad = wrap(array)
            if effect.version:
                grad._vc_ = VersionCounter()
                grad._vc_.version = effect.version
            owner._grad_meta_.grad = grad
            if effect.value.storage.number not in fresh:
                last.append((owner, grad))
            elif effect.argument is None:
                self._given[position] = ref(array)
        if self._kept:
            self._last = last
            del owner, array, grad
            if self._baseline is None:
                self._baseline = self._counts()

    def _counts(self) -> list[int]:
        """How often the gradients of the last run are held, by the tensors and by others."""
        found = []
        for owner, grad in self._last:
            held = count(grad) - (owner._grad_meta_.grad is grad)
            found += [held, count(grad._memory_)]
        for number in self.recording.program.kept - self.recording.program.fresh:
            found.append(count(self.memory.own[number]))
        return found

    def _is_held(self) -> bool:
        return self._baseline is not None and self._counts() != self._baseline

    def _leaf(self, output: Any, tensors: list[Any], made: dict[Any, Any]) -> Any:
        """A leaf of the results; `made` has those that were made already, and memory that several of them share."""
        if output.__class__ is not Output:
            return output
        result: Any
        if output.is_plain:
            result = wrap(output.place.copy(), local.state.new_vc)
            if output.requires_grad:
                ended(result)
            return result
        value: Any = output.value
        if value is None:
            tensor = output.tensor if output.argument is None else tensors[output.argument]
            return tensor._grad_meta_.grad if output.grad else tensor
        result = made.get(id(output))
        if result is not None:
            return result
        result = wrap(self._array(value, made), local.state.new_vc or self._counter(output, made))
        if output.is_leaf:
            result.requires_grad_()
        elif output.requires_grad:
            ended(result)
        made[id(output)] = result
        return result

    def _counter(self, output: Any, made: dict[Any, Any]) -> Any:
        """The counter of the writes to a result, which is that of what shares its memory; None: it needs none yet."""
        span = self._spans.get(output.value.storage.number)
        if output.counter is not None or (span is None and not output.version):
            return output.counter
        key = "counter", id(output if span is None else span)
        counter = made.get(key)
        if counter is None:
            counter = made[key] = output.new_counter()
        return counter

    def _array(self, value: Value, made: dict[Any, Any]) -> np.ndarray:
        """The array of a result: as it lies, and in memory that is shared with whatever shares it eagerly."""
        number = value.storage.number
        if number in self._aliased:
            return self.memory.view(value)
        span = self._spans.get(number)
        if span is None:
            return self.memory.view(value).copy()
        memory = made.get(id(span))
        if memory is None:
            memory = made[id(span)] = self.memory.view(span).copy()
        return value.within(memory, -span.offset)


def _spans(values: list[Value]) -> dict[int, Value]:
    together: dict[int, list[Value]] = {}
    for value in values:
        if value.storage.kind == "new" and value.size:
            together.setdefault(value.storage.number, []).append(value)
    found: dict[int, Value] = {}
    for number, group in together.items():
        if len(group) > 1 or not group[0].is_contiguous:
            start = min([value.offset for value in group])
            stop = max([value.offset + _extent(value) for value in group])
            found[number] = Value(group[0].storage, start, np.empty(stop - start, np.uint8))
    return found


def _extent(value: Value) -> int:
    """The bytes from the first element of an array to its last."""
    steps = [(size - 1) * stride for size, stride in zip(value.shape, value.strides)]
    return sum(steps) + value.dtype.itemsize


class Captured:
    """A captured function: call it as the function.

    (Its ``__dict__`` has what belongs to the function alone, and attributes that somebody gives it.)
    """

    __slots__ = (
        "__dict__", "__weakref__", "_devices", "_eager", "_entries", "_last", "_outlines", "_recent", "backend",
        "check", "function", "split",
    )  # fmt: skip

    def __init__(self, function: Callable[..., Any], backend: str, check: bool, split: bool) -> None:
        functools.update_wrapper(self, function)
        self.function: Callable[..., Any] = function
        self.backend: str = backend
        self.check: bool = check
        self.split: bool = split
        self._entries: dict[Any, list[Entry]] = {}
        self._eager: set[Any] = set()
        #: How many signatures there are that differ in values alone, and the last of them.
        self._outlines: dict[Any, tuple[int, Any]] = {}
        self._last: Any = None
        #: The key of the last call, and its programs.
        self._recent: tuple[Any, Any] = None, None
        #: Do calls that look like this one work on a CUDA device?
        self._devices: dict[Any, bool] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        state = local.state
        if not is_free(state):
            return self.function(*args, **kwargs)
        try:
            tensors, key = signature(args, kwargs, state)
        except TooDeep as error:
            self._give_up_for(error)
            return self.function(*args, **kwargs)
        if self._eager and key in self._eager:
            return self.function(*args, **kwargs)
        if accelerators and self._is_on_device(tensors, key):
            return self._on_device(args, kwargs, tensors, key)
        recent = self._recent  # whose key is sooner compared than found by its hash
        entries = recent[1] if key == recent[0] else self._entries.get(key)
        reason = None
        tried: tuple[Any, ...] = ()
        if entries is not None:
            if entries is not recent[1]:
                self._recent = key, entries
            for entry in entries:
                reason = entry.fits(tensors)
                if reason is None:
                    if not entry.confirmed:
                        break
                    self._last = entry
                    try:
                        if self.check:
                            return checked(self.function, entry, args, kwargs, tensors)
                        return entry.replay(tensors)
                    except OtherPath:
                        reason = "a value that the program was split at"
                    except CaptureError:
                        raise
                    except Exception as error:
                        # The function itself says what it makes of this, and leaves the world as it was if it fails.
                        reason = f"what raised a {type(error).__name__}"
                    tried = (*tried, entry)
        elif self._is_one_too_many(key):
            return self.function(*args, **kwargs)
        return self._record(args, kwargs, tensors, key, tried, reason)

    def __get__(self, owner: Any, cls: Any = None) -> Any:
        """As a method: the object is the first argument."""
        return self if owner is None else MethodType(self, owner)

    def __reduce__(self) -> Any:
        """A copy makes programs of its own."""
        return Captured, (self.function, self.backend, self.check, self.split), self.__dict__

    def _is_one_too_many(self, key: Any) -> bool:
        """May there be no program for these arguments, since there are so many for others?"""
        outline = in_outline(key)
        if outline in self._eager:
            return True
        count, last = self._outlines.get(outline, (0, None))
        if key == last:  # which has failed
            return False
        if count >= LIMIT:
            self._give_up(outline, first_other(self.function, key, last))
            return True
        if len(self._outlines) >= MANY and not count:
            if MANY not in self._eager:
                self._give_up(MANY, "the shape, the dtype or the class of an argument", MANY)
            return True
        self._outlines[outline] = count + 1, key
        return False

    def _give_up(self, key: Any, reason: str | None, limit: int = LIMIT) -> None:
        self._eager.add(key)
        self._entries.pop(key, None)  # which nobody runs any more
        self._recent = None, None
        alike = " for calls that look alike" if limit == LIMIT else ""
        warnings.warn(
            f"{getattr(self.function, '__name__', 'a function')} was captured {limit} times{alike}, since {reason} was "
            "another each time; such calls run eagerly from now on",
            stacklevel=users_level(),
        )

    def _give_up_for(self, error: TooDeep) -> None:
        if TooDeep not in self._eager:
            self._eager.add(TooDeep)
            warnings.warn(f"{error}; such calls run eagerly", stacklevel=users_level())

    def _is_on_device(self, tensors: list[Any], key: Any) -> bool:
        found = self._devices.get(key)
        if found is None:
            if len(self._devices) >= LIMIT * MANY:
                self._devices.clear()
            found = self._devices[key] = device.is_step_on_device(self.function, tensors)
        return found

    def _on_device(self, args: Any, kwargs: Any, tensors: list[Any], key: Any) -> Any:
        """A call of a step on a CUDA device: Note at the top of device.py."""
        if self.check or self.split:
            name = "check" if self.check else "split"
            raise refuse(f"a step on a CUDA device with {name}=True", "leave it out: that is for steps on the CPU")
        entries: Any = self._entries.get(key)
        if entries is None:
            if self._is_one_too_many(key):
                return self.function(*args, **kwargs)
            self._entries[key] = []
            return device._graphs().warm_up(lambda: self.function(*args, **kwargs))
        reason = None
        for entry in entries:
            reason = entry.fits(tensors)
            if reason is None:
                break
        else:
            if len(entries) >= LIMIT:
                self._give_up(key, reason)
                return self.function(*args, **kwargs)
            entry = device.DeviceEntry(self.function, args, kwargs, tensors)
            entries.append(entry)
        self._last = entry
        return entry.replay(tensors)

    def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Make a program for calls that look like this one and can be differentiated, without a trace in the world."""
        tensors, key = signature(args, kwargs, local.state)
        with one_at_a_time:
            if self._fitting(tensors, key, ()) is None:
                self._add_graph(args, kwargs, tensors, key)

    def _fitting(self, tensors: list[Any], key: Any, tried: Sequence[Any]) -> Any:
        """The first program for this call that is none of those which were tried already."""
        found = [one for one in self._entries.get(key, ()) if one not in tried]
        return next((one for one in found if one.fits(tensors) is None), None)

    def _record(
        self, args: Any, kwargs: Any, tensors: list[Any], key: Any, tried: Sequence[Any], reason: str | None
    ) -> Any:
        """Record a call that no program was found for (`reason`), unless there are too many.

        While another thread records, tensors that it uses hold something else, and it may make a program for this call.
        If this one does, the handler of a signal calls that came in the middle of an operator: its call runs as it is.
        """
        if get_ident() in active:
            return self.function(*args, **kwargs)
        with one_at_a_time, without_collections():
            first = self._fitting(tensors, key, tried)
            if first is None and len(self._entries.get(key, ())) >= LIMIT:
                self._give_up(key, reason)
            elif first is None or not first.confirmed:
                return self._record_now(args, kwargs, tensors, key, first)
        return self(*args, **kwargs)

    def _record_now(self, args: Any, kwargs: Any, tensors: list[Any], key: Any, first: Entry | None) -> Any:
        """Run a call eagerly and record it; the second run of a program has to be the same as the first."""
        if local.state.grad_enabled and any(history(tensor) is not None for tensor in tensors):
            return self._record_graph(args, kwargs, tensors, key)
        earlier = [] if first is None or self.split else first.recording.recorder.calls
        if any([call.kind == "check" for call in earlier]):
            earlier = []  # a program may be made of this recording as well
        try:
            recording = _recorded(
                Recording, self.function, args, kwargs, tensors, self.split, self.backend == "native", earlier
            )
        except NeedsGraph:
            return self._record_graph(args, kwargs, tensors, key)
        result, recording.result = recording.result, None
        try:
            self._keep(recording, key, first)
        except BaseException:
            recording.undo()
            raise
        return result

    def _keep(self, recording: Recording, key: Any, first: Entry | None) -> None:
        """Make a program of the second recording of a call; the first waits for a second one."""
        if first is not None:
            entries = self._entries[key]
            found: str | None = None
            for other in [first, *[one for one in entries if not one.confirmed and one is not first]]:
                found = difference(other.recording.recorder, recording.recorder)
                if found is None:
                    entries.remove(other)  # until it is ready to run
                    found = other_results(other.recording, recording)
                    if found is not None:
                        raise _differs(found)
                    other.build()
                    entries.append(other)
                    self._last = other
                    return
            if not self.split and not is_parted_by_a_value(first.recording.recorder, recording.recorder):
                entries.remove(first)
                raise _differs(found)
        self._entries.setdefault(key, []).append(Entry(recording, self.backend))

    def _record_graph(self, args: Any, kwargs: Any, tensors: list[Any], key: Any) -> Any:
        """The results can be differentiated: run what comes of a rehearsal."""
        return self._add_graph(args, kwargs, tensors, key).replay(tensors)

    def _add_graph(self, args: Any, kwargs: Any, tensors: list[Any], key: Any) -> GraphEntry:
        """Rehearse forward and backward pass, twice, and make a program of them."""
        first, second = (
            _recorded(GraphRecording, self.function, args, kwargs, tensors, self.split, self.backend == "native")
            for _ in range(2)
        )
        found = difference(first.recorder, second.recorder)
        if found is not None:
            raise _differs(found)
        entry: Any = GraphEntry(first, self.backend)
        self._entries.setdefault(key, []).append(entry)
        self._last = entry
        return entry

    # ------------------------------------------------------------------------------------------------------ reading

    @property
    def source(self) -> str:
        """The program of the last call, as Python."""
        if self._last is None:
            raise RuntimeError("there is no program yet: the second call that looks alike makes it")
        if isinstance(self._last, device.DeviceEntry):
            raise RuntimeError("a step on a CUDA device is a graph of the device, and no program in Python")
        return self._last.source

    def explain(self) -> str:
        """What became of the last call: its calls, its memory, what was fused and what was not."""
        if self._last is None:
            return "There is no program yet: the second call that looks alike makes it."
        if isinstance(self._last, device.DeviceEntry):
            return device.explained(self._last)
        return explained(self._last)


def _recorded(kind: Any, *args: Any) -> Any:
    """A recording. It is made again if modules of the package came in meanwhile, whose kernels it has not seen."""
    while True:
        known = how_many_modules()
        try:
            recording = kind(*args)
        except CaptureError:
            if how_many_modules() == known:
                raise
        else:
            is_whole = False
            try:
                is_whole = how_many_modules() == known
            finally:
                if not is_whole:
                    recording.undo()
            if is_whole:
                return recording


def _differs(difference: str | None) -> CaptureError:
    return CaptureError(
        f"two calls that look alike did different things: {difference}. Something that changes from call to call is "
        "neither an argument nor a tensor: make it one of these"
    )


def make_graphed_callables(callables: Any, sample_args: Any, **options: Any) -> Any:
    """Captured functions and modules for use inside of larger graphs, made ready with samples of their arguments.

    A module gets a captured ``forward`` and is returned itself; a function comes back captured.  `options` are those of
    `capture`.

    >>> import retrograd as torch
    >>> layer = torch.capture.make_graphed_callables(torch.nn.Linear(3, 2), (torch.zeros(4, 3),))
    >>> layer(torch.ones(4, 3)).sum().backward()
    >>> layer.bias.grad
    tensor([4., 4.])
    """
    if isinstance(callables, tuple):
        return tuple([make_graphed_callables(c, a, **options) for c, a in zip(callables, sample_args, strict=True)])
    if not isinstance(sample_args, tuple):
        raise TypeError(
            "make_graphed_callables(): argument 'sample_args' must be a tuple of the arguments of the callable, or for "
            f"a tuple of callables a tuple of such tuples, not {type(sample_args).__name__}"
        )
    if not options and device.on_device([one for one in tree_leaves(sample_args) if isinstance(one, Tensor)]):
        return device._graphs().make_graphed_callables(callables, sample_args)
    if isinstance(callables, Module):
        module = callables
        captured = capture(module.forward, **options)
        captured.prepare(*sample_args)
        module.forward = captured  # type: ignore[method-assign]
        return module
    captured = capture(callables, **options)
    captured.prepare(*sample_args)
    return captured


def capture(function: Any = None, *, backend: str = "auto", check: bool = False, split: bool = False) -> Any:
    """A function that does what `function` does, from the third call on by replaying what was recorded.

    >>> import retrograd as torch
    >>> w = torch.zeros(3, requires_grad=True)
    >>> opt = torch.optim.SGD([w], lr=0.1)
    >>> @torch.capture
    ... def step(x):
    ...     opt.zero_grad()
    ...     loss = ((w - x) ** 2).sum()
    ...     loss.backward()
    ...     opt.step()
    ...     return loss
    >>> for _ in range(5):
    ...     loss = step(torch.ones(3))
    >>> loss
    tensor(0.5033, grad_fn=<CapturedBackward>)
    """
    if function is None:
        return functools.partial(capture, backend=backend, check=check, split=split)
    if backend not in ("auto", "plain", "native"):
        raise ValueError(f"capture(): backend must be 'auto', 'plain' or 'native', not {backend!r}")
    if not callable(function):
        raise TypeError(f"capture(): argument 'function' must be callable, not {type(function).__name__}")
    if backend != "plain":
        backend = "native" if has_compiler(backend == "native") else "plain"
    return Captured(function, backend, check, split)
