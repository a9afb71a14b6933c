"""The recorder: what a step does to bare arrays, call by call.

Note [Recording]
A step runs as it always does, but for three things:

* Tensors hold a `RecordedArray` (arrays.py) in place of their array.  Those that the step finds in the world
  (arguments, parameters, buffers) get one when they first reach an operator (`Recorder.alone`, an observer as in
  autograd/intercept.py), and their own array back at the end.
* Every kernel that other modules than the kernels themselves call stands behind a wrapper (patching.py): it is given
  the real arrays, and what it was given and returned becomes a `Call`.
* What formulas do with operators and methods of arrays comes from the `RecordedArray`s themselves.

Memory is known by its address (known_memory.py).

A kernel is taken for a function of its arguments that writes to its ``out`` and to nothing else; arrays are handed to
it read-only, so that one which does otherwise is found out, and is recorded as writing to all of them.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Sequence
from threading import get_ident
from typing import Any

import numpy as np

from ..core.state import local
from ..core.version_counter import INFERENCE
from ..core.where import Location, user_location
from ..kernels.promotion import is_stored
from ..tensor import Tensor
from .arrays import RecordedArray, unboxed
from .errors import refuse
from .kernel_kinds import is_sized_by_values, refuses_values
from .known_memory import KnownMemory
from .values import Call, Value

_NODES = "retrograd._generated.nodes"
_PAIRS: tuple[Any, ...] = (np.add, np.subtract, np.multiply, np.true_divide, np.maximum, np.minimum)
_NAMES: dict[Any, str] = {ufunc: f"np.{ufunc.__name__}" for ufunc in _PAIRS}


class Recorder(KnownMemory):
    """Records one run of a step, in the thread that made it."""

    def __init__(self) -> None:
        super().__init__()
        self.thread: int = get_ident()
        self.calls: list[Call] = []
        #: Tensors of the world whose array was replaced: id -> (tensor, its array).
        self.swapped: dict[int, tuple[Tensor, np.ndarray]] = {}
        #: Version counters of those, and what they were: id -> (counter, version).
        self.versions: dict[int, tuple[Any, int]] = {}
        #: Storages of the world as they were before they were first written to.
        self.before: dict[int, np.ndarray] = {}
        self.first_node: int = local.state.sequence_nr
        self._signatures: dict[Any, int | None] = {}
        #: Are real arrays being computed with, or is a kernel seen through?
        self.busy: int = 0
        self.inside: int = 0
        #: Optimizers that made a step and generators that drew (moving.py), and their state before.
        self.steps: list[tuple[Any, Any]] = []
        self.generators: set[int] = set()
        #: Writes to counters that replays make themselves, by the id of the counter.
        self.live_writes: dict[int, int] = {}
        #: Nodes whose graph is gone.
        self.freed: weakref.WeakSet[Any] = weakref.WeakSet()
        #: Recorded arrays, weakly: none may be left when the step is done.
        self.boxes: list[Any] = []
        #: Where all calls come from while a node of the package runs.
        self.place: Location | None = None
        #: May values be looked at, as places where the program is split?
        self.split: bool = False
        #: Is the program to be run in C, where it can be?
        self.native: bool = False

    # ------------------------------------------------------------------------------------------------------- arrays

    def of(self, boxed: RecordedArray) -> Value:
        """The value of a recorded array."""
        if boxed.value is None:
            boxed.value = self.value(boxed.array)
        return boxed.value

    def box(self, array: Any, value: Value | None = None) -> RecordedArray:
        if array.dtype.char not in "fdl?" and is_stored(array.dtype):
            raise refuse(f"a tensor of {array.dtype}", "convert it to a dtype to compute with outside of the step")
        boxed = RecordedArray(array, self)
        boxed.value = value
        self.boxes.append(weakref.ref(boxed))
        return boxed

    # -------------------------------------------------------------------------------------------- tensors of the world

    def take(self, tensor: Any) -> None:
        """Have a tensor of the world hold a recorded array."""
        array = tensor._memory_
        if array.__class__ is not np.ndarray:
            if array.__class__ is not RecordedArray:
                raise refuse(f"a tensor of {type(array).__name__}", "only dense tensors on the CPU are captured")
            if array.recorder is not self:
                raise refuse("a tensor of another recording", "do not keep tensors of an inner captured function")
            return
        if id(tensor) not in self.swapped:
            self.swapped[id(tensor)] = tensor, array
            counter = tensor._vc_
            if counter is not None and id(counter) not in self.versions:
                try:
                    self.versions[id(counter)] = counter, counter.version
                except RuntimeError:  # an inference tensor has none
                    pass
        self.value(array)
        tensor._memory_ = self.box(array)
        _expect(tensor, RecordedArray)

    def give_back(self) -> None:
        """Let every tensor that was taken have its own array again."""
        for tensor, array in self.swapped.values():
            now = tensor._memory_
            if now.__class__ is RecordedArray:
                tensor._memory_ = array if now.array is array else now.array
            _expect(tensor, np.ndarray)

    def _take_all(self, values: Any) -> None:
        for value in values:
            if isinstance(value, Tensor):
                self.take(value)
            elif value.__class__ in (list, tuple):
                self._take_all(value)

    def __call__(self, operator: Any, args: tuple[Any, ...], kwargs: dict[Any, Any], proceed: Any) -> Any:
        """As an observer among others."""
        if local.state.grad_enabled and getattr(operator, "__name__", "") != "detach":
            for tensor in args:
                if isinstance(tensor, Tensor) and tensor._edge_ is not None and tensor._memory_.__class__ is np.ndarray:
                    self._refuse_history(tensor)
        self._take_all(args)
        self._take_all(kwargs.values())
        return proceed()

    def _refuse_history(self, tensor: Any) -> None:
        node = tensor._edge_[0]
        if node.sequence_nr < self.first_node and node.next_edges:
            raise refuse(
                f"the result of {type(node).__name__}, which was recorded before the captured call",
                "make the whole graph inside of the captured function, or detach() what comes from outside",
            )

    def around_nodes(self, call: Any) -> Any:
        """Look at each node of a backward pass: none may be of a graph that was made before."""

        place = user_location()

        def look(node: Any, edges: Any, grads: Any, as_tensors: bool) -> Any:
            if node.sequence_nr < self.first_node:
                raise refuse(
                    f"a backward pass through {type(node).__name__}, which was recorded before the captured call",
                    "make the whole graph inside of the captured function, or detach() what comes from outside",
                )
            if not local.state.graph_task.keep_graph:  # type: ignore[union-attr]
                self.freed.add(node)
            if node.__class__.__module__ != _NODES:  # which may run code of the user
                return call(node, edges, grads, as_tensors)
            self.place = place
            try:
                return call(node, edges, grads, as_tensors)
            finally:
                self.place = None

        return look

    # -------------------------------------------------------------------------------------------------------- calls

    def ufunc(self, ufunc: Any, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if get_ident() != self.thread:
            return getattr(ufunc, method)(*unboxed(tuple(inputs)), **unboxed(kwargs))
        if method == "__call__" and kwargs.get("where", True) is True:
            out = kwargs.get("out")
            extra = {name: value for name, value in kwargs.items() if name not in ("out", "where")}
            if ufunc.nout == 1:
                return self.pointwise(ufunc, inputs, None if out is None else out[0], extra)
        if method == "reduce" and ufunc is np.add and not set(kwargs) - {"axis", "keepdims", "out", "dtype"}:
            if kwargs.get("out") is None and kwargs.get("dtype") is None and len(inputs) == 1:
                return self.reduce(inputs[0], kwargs.get("axis", 0), bool(kwargs.get("keepdims")))
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        out = kwargs.get("out")
        written = [one for one in (out if isinstance(out, tuple) else (out,)) if one is not None]
        if method == "at":
            written = [inputs[0]]
        return self.call(function, tuple(inputs), kwargs, name=f"np.{ufunc.__name__}.{method}", writes=written)

    def pointwise(self, ufunc: Any, inputs: Sequence[Any], out: Any = None, extra: dict[str, Any] | None = None) -> Any:
        """A ufunc on whole arrays: all of NumPy's ufuncs of numbers are functions of their operands' elements."""
        if ufunc.signature is not None:
            return self.call(ufunc, tuple(inputs), {} if out is None else {"out": out}, name=f"np.{ufunc.__name__}",
                             writes=[] if out is None else [out])  # fmt: skip
        dtype: Any = None
        mixed = False
        for one in inputs:
            if one.__class__ is RecordedArray or isinstance(one, (np.ndarray, np.generic)):
                mixed = mixed or (dtype is not None and one.dtype is not dtype)
                dtype = one.dtype
        arrays: list[Any] = []
        values: list[Any] = []
        for one in inputs:
            if one.__class__ is RecordedArray:
                arrays.append(one.array)
                values.append(self.of(one))
            elif one.__class__ is np.ndarray:
                arrays.append(one)
                values.append(self.value(one))
            elif isinstance(one, np.generic) or (not mixed and dtype.char in "fd" and one.__class__ in (int, float)):
                # A number beside arrays is taken in their dtype; as an array, it costs less.
                array = np.asarray(one) if isinstance(one, np.generic) else np.array(one, dtype)
                arrays.append(array)
                values.append(self.made(array, "number"))
            else:
                arrays.append(one)
                values.append(one)
        call = Call("ufunc", f"np.{ufunc.__name__}", ufunc, tuple(values), extra or {})
        call.where = self.place or user_location()
        call.reads = [one for one in values if one.__class__ is Value]
        if out is None:
            result = ufunc(*arrays, **extra) if extra else ufunc(*arrays)
            result = result if isinstance(result, np.ndarray) else np.asarray(result)
            found = self.made(result)
            call.results = [found]
            boxed: Any = self.box(result, found)
        else:
            target = out.array if out.__class__ is RecordedArray else out
            written = self.of(out) if out.__class__ is RecordedArray else self.value(target)
            self.keep(written)
            ufunc(*arrays, out=target, **(extra or {}))
            call.writes = [written]
            boxed = out
        self.calls.append(call)
        return boxed

    def pair(self, ufunc: Any, a: RecordedArray, b: RecordedArray) -> Any:
        """`pointwise` of two arrays of one floating dtype; None if they are not."""
        x, y = a.array, b.array
        if x.dtype is not y.dtype or x.dtype.char not in "fd":
            return None
        if x.shape != y.shape and x.shape and y.shape:
            return None
        result = np.asarray(ufunc(x, y))
        value = self.made(result)
        reads = (self.of(a), self.of(b))
        call = Call("ufunc", _NAMES[ufunc], ufunc, reads, {})
        call.where = self.place or user_location(2)
        call.reads, call.results = list(reads), [value]
        self.calls.append(call)
        return self.box(result, value)

    def view_of(self, boxed: RecordedArray, array: np.ndarray) -> Any:
        """A view of a recorded array, which is no call."""
        whole = self.of(boxed)
        offset = array.__array_interface__["data"][0] - whole.storage.start if array.size else 0
        return self.box(array, Value(whole.storage, offset, array) if array.size else None)

    def zeros(self, shape: Any, dtype: np.dtype, one: bool = False) -> Any:
        """Zeros, or ones, of new memory."""
        function: Any = np.ones if one else np.zeros
        call = Call("opaque", "np.ones" if one else "np.zeros", function, (shape, dtype), {})
        call.where = self.place or user_location(2)
        result = function(shape, dtype)
        value = self.made(result)
        call.results = [value]
        self.calls.append(call)
        return self.box(result, value)

    def reduce(self, array: Any, axis: Any, keepdims: bool) -> Any:
        """A sum."""
        real = array.array if array.__class__ is RecordedArray else array
        call = Call("reduce", "np.add.reduce", np.add.reduce, (), {"axis": axis, "keepdims": keepdims})
        call.where = self.place or user_location()
        call.args = (self.value(real),)
        call.reads = [call.args[0]]
        result = np.asarray(np.add.reduce(real, axis=axis, keepdims=keepdims))  # type: ignore[call-overload]
        call.results = [self.value(result, "new")]
        self.calls.append(call)
        return self.box(result)

    def write(self, target: Any, key: Any, value: Any) -> None:
        """``target[key] = value``."""
        if get_ident() != self.thread:
            target.array[unboxed(key)] = unboxed(value)
            return
        parts = key if isinstance(key, tuple) else (key,)
        if any(isinstance(part, (RecordedArray, np.ndarray, list)) for part in parts):
            self.call(_setitem, (target, key, value), {}, name="setitem", writes=[target])
            return
        place = target.array[key] if target.__class__ is RecordedArray else target[key]
        simple = isinstance(place, np.ndarray) and self.find(place) is not None
        if not isinstance(place, np.ndarray):  # a number: NumPy gives no view of one element
            full = key if isinstance(key, tuple) else (key,)
            place = target.array[(*full, ...)] if Ellipsis not in full else None
            simple = isinstance(place, np.ndarray) and self.find(place) is not None
        if not simple or place is None:
            self.call(_setitem, (target, key, value), {}, name="setitem", writes=[target])
            return
        self.copy(place, value)

    def copy(self, place: np.ndarray, value: Any, name: str = "np.copyto") -> None:
        """Write a value, spread over the elements, to a place."""
        source = value.array if value.__class__ is RecordedArray else value
        if not isinstance(source, np.ndarray):
            source = np.asarray(source).astype(place.dtype)
            self.value(source, "number")
        call = Call("copy", name, np.copyto, (), {})
        call.where = self.place or user_location()
        call.args = (self.value(source),)
        call.reads = [call.args[0]]
        written = self.value(place)
        self.keep(written)
        np.copyto(place, source, casting="unsafe")
        call.writes = [written]
        self.calls.append(call)

    def call(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, name: str, writes: Sequence[Any] = (),
        impure: bool = False, kind: str = "opaque", metadata: bool = False,
    ) -> Any:  # fmt: skip
        """Call a function on the real arrays, and record it."""
        if get_ident() != self.thread:
            return function(*unboxed(args), **unboxed(kwargs))
        views = (getattr(function, "__module__", None) or "").endswith("kernels.shape")  # which write nothing
        written = [id(one.array if one.__class__ is RecordedArray else one) for one in writes if one is not None]
        found: list[tuple[np.ndarray, Any, Any]] = []  # (array, what is handed over, the recorded array)

        def real(tree: Any) -> Any:
            if tree.__class__ is RecordedArray or isinstance(tree, np.ndarray):
                array: Any = tree.array if tree.__class__ is RecordedArray else tree
                given = array
                if id(array) not in written and array.flags.writeable and not views:
                    given = array.view()
                    given.flags.writeable = False
                found.append((array, given, tree))
                return given
            if tree.__class__ in (tuple, list):
                return tree.__class__([real(one) for one in tree])
            if tree.__class__ is dict:
                return {key: real(one) for key, one in tree.items()}
            return tree

        def again(tree: Any) -> Any:
            """The same with Values."""
            if tree.__class__ is RecordedArray or isinstance(tree, np.ndarray):
                array: Any = tree.array if tree.__class__ is RecordedArray else tree
                return self.value(array)
            if tree.__class__ in (tuple, list):
                return tree.__class__([again(one) for one in tree])
            return {key: again(one) for key, one in tree.items()} if tree.__class__ is dict else tree

        real_args, real_kwargs = real(args), real(kwargs)
        for array, _, _ in found:
            if id(array) in written:
                self.keep(self.value(array))
        self.busy += 1
        try:
            result = function(*real_args, **real_kwargs)
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            written = [id(array) for array, _, _ in found if array.flags.writeable]
            found.clear()
            real_args, real_kwargs = real(args), real(kwargs)
            for array, _, _ in found:
                self.keep(self.value(array))
            result = function(*real_args, **real_kwargs)
        finally:
            self.busy -= 1
        call = Call(kind, name, function, again(args), again(kwargs))
        call.where = self.place or user_location()
        call.impure = impure
        call.looks = refuses_values(getattr(function, "__module__", None))
        call.reads = [self.value(array) for array, _, _ in found]
        call.writes = [self.value(array) for array, _, _ in found if id(array) in written]
        same = {id(given): tree for _, given, tree in found}
        same.update({id(array): tree for array, _, tree in found})
        fresh: list[Value | None] = []

        def boxed(tree: Any) -> Any:
            if isinstance(tree, np.generic):
                tree = np.asarray(tree)
            if isinstance(tree, np.ndarray):
                known = same.get(id(tree))
                if known is not None:
                    fresh.append(None)
                    return known if known.__class__ is RecordedArray else self.box(known)
                value = self.find(tree)
                if value is None:
                    fresh.append(self.value(tree, "new"))
                else:
                    if not tree.flags.writeable and value.storage.array.flags.writeable:
                        tree.flags.writeable = True
                    fresh.append(None if value.storage not in [v.storage for v in fresh if v is not None] else value)
                return self.box(tree)
            if tree.__class__ in (tuple, list):
                return tree.__class__([boxed(one) for one in tree])
            if isinstance(tree, tuple):
                raise refuse(f"{name}, which returns {type(tree).__name__}", "it is not known to the recorder")
            fresh.append(None)
            if tree is not None and found and not metadata:
                raise refuse(f"{name}, whose result is no tensor and may hang on values", "compute it outside")
            return tree

        if result is None and found and not call.writes and not metadata:
            call.looks = True  # a check of values
        if metadata and not impure and not call.writes and not _has_arrays(result):
            found.clear()
            same.clear()
            return result
        recorded = boxed(result)
        call.results = fresh
        found.clear()  # the functions above hold each other, and these
        same.clear()
        if any(one is not None for one in fresh) or call.writes or impure or call.looks:
            if is_sized_by_values(name.rpartition(".")[2], call):
                raise refuse(f"{name}, the size of whose result hangs on values", "use masks and where() instead")
            self.calls.append(call)
        return recorded

    def keep(self, value: Value) -> None:
        """Keep what is in a storage of the world before it is written to, for a step that fails."""
        storage = value.storage
        if storage.kind != "new" and storage.number not in self.before and storage.array.size:
            self.before[storage.number] = storage.array.copy()

    def let_go(self) -> None:
        """Forget what is for a step that fails."""
        self.before.clear()
        self.steps.clear()
        self.boxes.clear()

    def undo(self) -> None:
        """Put back what was written over: the step has failed."""
        for number, content in self.before.items():
            np.copyto(self.storages[number].array, content)
        for counter, version in self.versions.values():
            counter.version = version
        for tensor, _ in self.swapped.values():
            counter = tensor._vc_
            if counter is not None and id(counter) not in self.versions and counter is not INFERENCE:
                counter.version = 0  # it was made meanwhile

    def python(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str, reads: Sequence[Any],
               writes: Sequence[Any]) -> Any:  # fmt: skip
        """Record a call of a Python function that lives on real tensors, such as an optimizer's step."""
        call = Call("python", name, function, args, kwargs)
        call.where = self.place or user_location()
        call.impure = True
        call.reads = [self.value(array) for array in reads]
        call.writes = [self.value(array) for array in writes]
        self.calls.append(call)
        return call

    def decide(self, boxed: RecordedArray, value: Any) -> Any:
        """Go on for this value of an array alone: a replay that finds another one takes another path."""
        call = Call("check", "check", None, (self.value(boxed.array), value), {})
        call.where = self.place or user_location()
        call.impure = call.may_raise = True
        call.reads = [call.args[0]]
        self.calls.append(call)
        return value

    # ------------------------------------------------------------------------------------------------------ kernels

    def out_of(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a kernel is told to write to."""
        if "out" in kwargs:
            return kwargs["out"]
        try:
            position = self._signatures[kernel]
        except KeyError:
            try:
                names = list(inspect.signature(kernel).parameters)
            except (TypeError, ValueError):
                names = []
            position = self._signatures[kernel] = names.index("out") if "out" in names else None
        return args[position] if position is not None and position < len(args) else None


def _expect(tensor: Any, array_class: type) -> None:
    """Have the accumulator of a leaf, if there is one, expect gradients of this class."""
    meta = tensor._grad_meta_
    node = None if meta is None or meta.grad_accumulator is None else meta.grad_accumulator()
    if node is not None and node.array_class in (np.ndarray, RecordedArray):
        node.array_class = array_class


def _has_arrays(tree: Any) -> bool:
    if isinstance(tree, (tuple, list)):
        return any(_has_arrays(one) for one in tree)
    return isinstance(tree, (np.ndarray, np.generic))


def _setitem(array: np.ndarray, key: Any, value: Any) -> None:
    array[key] = value
