"""Checkpoints that recompute through saved-tensor hooks: the forward record, the recomputation, and what they compare.

Note [How a checkpoint recomputes]
While the function runs for the first time, every tensor that a node would save is replaced by a `_Holder`, and the
`Frame` of the checkpoint remembers, for each, what the tensor looked like and which operation saved it where.  The
graph is otherwise the ordinary one.

The first unpacking in a backward pass runs the function again, from its inputs.  It saves the same tensors
in the same order, so the n-th of them belongs to the n-th holder.  Each is handed out once and let go.
`Recomputation` is that second run.  It belongs to one backward pass: the next one makes its own.

* *Nesting.* An inner checkpoint hides what it saves from the outer one; its inputs are saved like any tensor,
  that is through the outer checkpoint's hooks.  So unpacking in the inner one makes the outer one recompute first.
* *Early stop.* The run ends when nothing is missing any more.  If what is missing are arguments of the last
  operation that saved anything, it ends before that operation.
* *Backward inside the function.* The recomputed graph holds real tensors, so that it too can be differentiated;
  holders that such a pass has released are dead, and skipped.
* *Lifetimes.* A node owns its holder, the holder's death removes the recomputed tensor; the pass (its GraphTask) or
  the GraphExecGroup owns the Recomputation.  The frame knows all of them weakly.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any

from ...amp import current_autocast, restored_autocast
from ...autograd.grad_mode import enable_grad
from ...autograd.intercept import observing, set_observers
from ...autograd.saved_tensors_hooks import saved_tensors_hooks
from ...autograd.saved_variable import SavedVariable, save_variable
from ...core.devices import device_of_array_class
from ...core.dtypes import from_numpy_dtype
from ...core.records import record_of
from ...core.size import Size
from ...core.state import local
from ...core.where import Location, is_user_code, user_location
from ...ops.overload import original, overload_of
from ...tensor import Tensor
from .._python_dispatch import _get_current_dispatch_mode
from .settings import forked_rng


class CheckpointError(RuntimeError):
    """The recomputation of a checkpoint differs from its forward pass."""


class StopRecomputation(BaseException):
    """Ends a recomputation that has all it needs; not an Exception, so that the function's own handlers let it pass."""


_TIP = (
    "The function must do the same on the same inputs each time it is called: look for state outside of it that has "
    "changed since (a counter, a global, a module in another mode, random numbers that are not torch's).\n"
    "Tip: To see a more detailed error message, either pass `debug=True` to `torch.utils.checkpoint.checkpoint(...)` "
    "or wrap the code block with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):`"
)


# ---------------------------------------------------------------------------------------------------- what was saved


def _default_metadata(tensor: Tensor) -> tuple[Any, ...]:
    array = tensor._numbers_ if tensor._special_ is None else tensor._memory_
    return array.shape, array.dtype, array.__class__


def _describe(metadata: tuple[Any, ...] | None) -> str:
    """In words, what `DETERMINISM_CHECKS` took of a tensor."""
    if metadata is None:
        return "not looked at"
    shape, dtype, array_class = metadata
    return str({"shape": Size(shape), "dtype": from_numpy_dtype(dtype), "device": device_of_array_class(array_class)})


#: determinism_check -> what of a tensor has to be the same.
DETERMINISM_CHECKS: dict[str, Callable[[Tensor], Any]] = {"default": _default_metadata, "none": lambda tensor: None}


class _Operation:
    """What is remembered of one call of an operator that saved something."""

    __slots__ = ("name", "signature")

    def __init__(self, name: str) -> None:
        self.name: str = name
        #: Calls with equal signatures save the same arguments. None: not known, for all but the last (see `settle`).
        self.signature: tuple[Any, ...] | None = None


class _Call:
    """An operator that is running, and what it was called with."""

    __slots__ = ("_operation", "args", "frame", "kwargs", "operator")

    def __init__(
        self,
        operator: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[Any, Any],
        frame: FrameType | None = None,
    ) -> None:
        self.operator: Callable[..., Any] = original(operator)
        self.args: tuple[Any, ...] = args
        self.kwargs: dict[Any, Any] = kwargs
        #: Where the operator was called, while it runs.
        self.frame: FrameType | None = frame
        self._operation: _Operation | None = None

    def arguments(self) -> Iterator[tuple[int | str, Any]]:
        yield from enumerate(self.args)
        yield from self.kwargs.items()

    def signature(self) -> tuple[Any, ...]:
        return (self.operator, *((key, _kind(value)) for key, value in self.arguments()))

    @property
    def operation(self) -> _Operation:
        if self._operation is None:
            self._operation = _Operation(overload_of(self.operator).overloadpacket.__name__)
        return self._operation

    def find(self, tensor: Tensor) -> int | str | None:
        """Which argument a tensor is."""
        for key, value in self.arguments():
            if value is tensor:
                return key
        return None

    def __getitem__(self, key: int | str) -> Any:
        return self.kwargs[key] if isinstance(key, str) else self.args[key]


def _kind(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.requires_grad
    if isinstance(value, (tuple, list)):
        return tuple(_kind(item) for item in value)
    return type(value)


class _Record:
    """What is remembered of one saved tensor."""

    __slots__ = ("argument", "holder", "location", "metadata", "operation")

    def __init__(
        self, tensor: Tensor, metadata: Any, call: _Call | None, holder: weakref.ref[Any] | None = None
    ) -> None:
        self.holder = holder
        self.metadata = metadata
        self.location: Location | None = user_location() if call is None else _user_location(call.frame)
        #: None if it was not an operator that saved it: the arguments of an inner checkpoint, or a custom function.
        self.operation = None if call is None else call.operation
        #: Which argument of the operator the tensor is, if it is one.
        self.argument = None if call is None else call.find(tensor)

    @property
    def name(self) -> str | None:
        return None if self.operation is None else self.operation.name

    def alive(self) -> _Holder | None:
        return None if self.holder is None else self.holder()

    def __str__(self) -> str:
        by = "for a custom function or an inner checkpoint" if self.operation is None else f"by {self.operation.name}"
        return by if self.location is None else f"{by} at {self.location}"


def _user_location(frame: FrameType | None) -> Location | None:
    """The innermost line, from `frame` on, that is not of this package."""
    while frame is not None:
        if is_user_code(frame.f_code):
            return Location(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return None


class _Holder:
    """Stands for a saved tensor in the node that would have it."""

    __slots__ = ("__weakref__", "position")

    def __init__(self, position: int) -> None:
        self.position: int = position


class Hooks:
    """Saved-tensor hooks that know which operator saves."""

    def __init__(self) -> None:
        self.call: _Call | None = None

    def pack(self, tensor: Tensor) -> Any:
        raise NotImplementedError

    def unpack(self, packed: Any) -> Tensor:
        raise NotImplementedError

    def before(self, call: _Call) -> None:
        """Called before an operator runs."""

    def watch(
        self, operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any], proceed: Callable[[], Any]
    ) -> Any:
        """The observer."""
        call = _Call(operator, args, kwargs, sys._getframe(2))
        outer, self.call = self.call, call
        try:
            self.before(call)
            return proceed()
        finally:
            call.frame = None
            self.call = outer


# ------------------------------------------------------------------------------------------------------- the forward


class Frame(Hooks):
    """One call of a checkpointed function. See Note [How a checkpoint recomputes]."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        recompute_context: AbstractContextManager[Any],
        metadata_fn: Callable[[Tensor], Any],
        early_stop: bool,
        rng_state: list[Any] | None,
        on_error: Callable[[CheckpointError], Exception] | None,
    ) -> None:
        super().__init__()
        self.function = function
        # Saved as a node saves its inputs: modifications are noticed, and an outer checkpoint takes them over.
        self.args: list[Any] = [save_variable(value) if isinstance(value, Tensor) else value for value in args]
        self.kwargs = kwargs
        self.recompute_context = recompute_context
        self.metadata_fn = metadata_fn
        self.early_stop = early_stop
        self.rng_state = rng_state
        self.autocast: Any = current_autocast()
        self.on_error = on_error
        self.records: list[_Record] = []
        self.last_call: _Call | None = None
        self.forward_completed = False
        #: By GraphTask or GraphExecGroup.
        self.recomputations: weakref.WeakKeyDictionary[Any, Recomputation] = weakref.WeakKeyDictionary()
        self.lock: Any = threading.Lock()

    def pack(self, tensor: Tensor) -> _Holder:
        holder = _Holder(len(self.records))
        self.records.append(_Record(tensor, self.metadata_fn(tensor), self.call, weakref.ref(holder)))
        self.last_call = self.call
        return holder

    def settle(self) -> None:
        """Let go of the last call that saved something, and remember its signature."""
        call, self.last_call = self.last_call, None
        # What an in-place operator was called with is gone when it saves.
        record = None if call is None else record_of(call.operator)
        if call is not None and (record is None or not record.writes):
            call.operation.signature = call.signature()

    def unpack(self, holder: _Holder) -> Tensor:
        try:
            return self._recomputed(holder)
        except CheckpointError as error:
            if self.on_error is None:
                raise
            raise self.on_error(error) from error

    def _recomputed(self, holder: _Holder) -> Tensor:
        state = local.state
        group = state.graph_exec_group
        owner = group if group is not None else state.graph_task
        with self.lock:
            recomputation = None if owner is None else self.recomputations.get(owner)
        if recomputation is None:
            recomputation = Recomputation(self)
            recomputation.run()
            recomputation.check()
            if owner is not None:
                with self.lock:
                    self.recomputations[owner] = recomputation
        tensor = recomputation.tensors.pop(holder, None)
        if tensor is None:
            overlap = (
                "Performing two backward calls that overlap (i.e. require the same saved activation in order to "
                "compute gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup context. "
            )
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
                f"{'' if group is None else overlap}The tensor at position {holder.position} was saved "
                f"{self.records[holder.position]}. If you are calling ctx.saved_tensors in backward, make sure to do "
                "so only once: a, b = ctx.saved_tensors"
            )
        return tensor


# ------------------------------------------------------------------------------------------------- the recomputation


class Recomputation(Hooks):
    """The second run of a checkpointed function, for one backward pass."""

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        # Weakly: this object is handed to the graph that the run records, which may outlive it.
        self.frame: weakref.ref[Frame] = weakref.ref(frame)
        self.records: list[_Record] = []
        self.tensors: weakref.WeakKeyDictionary[_Holder, Tensor] = weakref.WeakKeyDictionary()
        #: Backward inside a function that has not returned yet: the forward has saved less than this run may.
        self.ahead_of_forward: bool = False
        frame.settle()
        self.last: Any = _arguments_at_the_end(frame.records) if frame.early_stop else None

    def run(self) -> None:
        frame = self._frame()
        args = [value.unpack() if isinstance(value, SavedVariable) else value for value in frame.args]
        try:
            with (
                restored_autocast(frame.autocast),
                saved_tensors_hooks(self.pack, self.unpack),
                observing(self.watch),
                enable_grad(),
                forked_rng(frame.rng_state),
                frame.recompute_context,
            ):
                frame.function(*args, **frame.kwargs)
        except StopRecomputation:
            pass

    def _frame(self) -> Frame:
        frame = self.frame()
        assert frame is not None
        return frame

    def pack(self, tensor: Tensor) -> Tensor:
        if self.frame() is None:
            return tensor
        record = _Record(tensor, None, self.call)
        # What neither requires grad nor is a result stays the very object that the function was given.
        if tensor.requires_grad or (record.operation is not None and record.argument is None):
            tensor = _detach(tensor)
        self._keep(tensor, record)
        return tensor

    def unpack(self, packed: Tensor) -> Tensor:
        return packed

    def _keep(self, tensor: Tensor, record: _Record) -> None:
        frame = self._frame()
        position = len(self.records)
        if position >= len(frame.records):
            if not frame.forward_completed:
                self.ahead_of_forward = True
                return
            raise CheckpointError(
                "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                f"forward pass, which saved {len(frame.records)}. The next one is saved {record}: "
                f"{_describe(_default_metadata(tensor))}\n{_TIP}"
            )
        record.metadata = frame.metadata_fn(tensor)
        self.records.append(record)
        holder = frame.records[position].alive()
        if holder is not None:
            self.tensors[holder] = tensor
        if frame.early_stop and position + 1 == len(frame.records):
            raise StopRecomputation

    def before(self, call: _Call) -> None:
        """Stop before the operator if all that is still missing are its arguments."""
        if self.last is None:
            return
        start, signature, arguments = self.last
        state = local.state
        if (
            len(self.records) == start
            and call.operator is signature[0]
            and state.grad_enabled
            and state.saved_tensors_hooks[-1][0] == self.pack  # type: ignore[index]
            and call.signature() == signature
        ):
            for argument in arguments:
                self.pack(call[argument])

    # ------------------------------------------------------------------------------------------------------ comparing

    def check(self) -> None:
        """Raise CheckpointError unless this run has saved what the forward pass has."""
        if self.ahead_of_forward:
            return
        forward = self._frame().records
        if len(forward) != len(self.records):
            missing = forward[len(self.records)]
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(forward)}\n"
                f"Number of tensors saved during recomputation: {len(self.records)}.\n"
                f"{self._first_other_operation(forward)}"
                f"Not recomputed: tensor at position {len(self.records)}, saved {missing}: "
                f"{_describe(missing.metadata)}\n{_TIP}"
            )
        different = [
            f"tensor at position {position}:\n"
            f"saved metadata: {_describe(before.metadata)}, saved {before}\n"
            f"recomputed metadata: {_describe(after.metadata)}, saved {after}\n"
            for position, (before, after) in enumerate(zip(forward, self.records, strict=True))
            if before.metadata != after.metadata and before.alive() is not None
        ]
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.\n{''.join(different)}{_TIP}"
            )

    def _first_other_operation(self, forward: Sequence[_Record]) -> str:
        for position, (before, after) in enumerate(zip(forward, self.records)):
            if before.name != after.name:
                return f"First difference: tensor at position {position}, saved {before}, recomputed {after}\n"
        return ""


def _detach(tensor: Tensor) -> Tensor:
    """``tensor.detach()``, which dispatch modes see as they see any operator of the recomputation."""
    if _get_current_dispatch_mode() is None:
        return tensor.detach()
    state = local.state
    before = state.interceptor
    set_observers(state, state.observers)
    try:
        return state.interceptor(Tensor.detach, (tensor,), {})  # type: ignore[misc]
    finally:
        state.interceptor = before


def _arguments_at_the_end(records: Sequence[_Record]) -> tuple[int, tuple[Any, ...], list[int | str]] | None:
    """The last call that saved something, if it saved only its arguments: (first position, signature, arguments)."""
    operation = records[-1].operation if records else None
    if operation is None or operation.signature is None:
        return None
    start = len(records)
    arguments: list[int | str] = []
    while start and records[start - 1].operation is operation:
        start -= 1
        argument = records[start].argument
        if argument is None:
            return None
        arguments.insert(0, argument)
    return start, operation.signature, arguments
