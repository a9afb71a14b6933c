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
from collections.abc import Sequence
from threading import get_ident
from types import FunctionType
from typing import Any, TypeAlias
from weakref import ref

import numpy as np

from ..autograd.accumulate_grad import AccumulateGrad
from ..autograd.basic_nodes import GraphRoot
from ..autograd.intercept import intercept
from ..core import compiled
from ..core.state import local, process
from ..core.version_counter import INFERENCE
from ..core.where import Location, is_user_code, user_location
from ..kernels.promotion import is_stored
from ..tensor import Tensor
from .arguments import history
from .arrays import PAIRS, RecordedArray, unboxed
from .errors import refuse
from .kernel_kinds import is_sized_by_values, refuses_values
from .known_memory import KnownMemory
from .values import Call, Storage, Value, address, bounds, bytes_of

_NODES = "retrograd._generated.nodes"
_NAMES: dict[Any, str] = {ufunc: f"np.{ufunc.__name__}" for ufunc in PAIRS}
_FUNCTIONS = "retrograd._generated.functions"
_NUMBERS = (int, float)
#: Smaller numbers are numbers in both dtypes.
_MUCH = 1e30
_NOTHING: dict[str, Any] = {}
#: Classes of keys that give views.
_OF_VIEWS = frozenset((int, slice, type(Ellipsis), type(None)))
#: Classes of arguments that hold no tensor.
_SIMPLE = frozenset((int, float, bool, complex, str, type(None), np.dtype, type(Ellipsis), slice))


class Recorder(KnownMemory):
    """Records one run of a step, in the thread that made it.

    `earlier` are the calls of an earlier recording of it: those that come again are not made anew, so that two
    recordings of the same hold the same objects.
    """

    def __init__(self, earlier: list[Call] | None = None) -> None:
        super().__init__()
        self.earlier: list[Call] = [] if earlier is None else earlier
        self.thread: int = get_ident()
        self.calls: list[Call] = []
        #: Tensors of the world whose array was replaced: id -> (tensor, its array).
        self.swapped: dict[int, tuple[Tensor, np.ndarray]] = {}
        #: And what ``.grad`` they had.
        self.grads_found: dict[int, tuple[Tensor, Any]] = {}
        #: A kernel that has refused its values, and where.
        self.failed: tuple[str, Any] | None = None
        #: Version counters of those, and what they were: id -> (counter, version).
        self.versions: dict[int, tuple[Any, int]] = {}
        #: Storages of the world before they were first written to, by their numbers: (the array, what was in it).
        self.before: dict[int, tuple[np.ndarray, np.ndarray]] = {}
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
        #: Nodes whose graph is gone, and lists of such.
        self.freed: set[Any] = set()
        self._freed_nodes: list[list[Any]] = []
        #: Recorded arrays, weakly: none may be left when the step is done. Those that the compiled core has made hold
        #: the token, so that it is enough to ask how often that is held.
        self.boxes: list[Any] = []
        self.token: object = object()
        #: Where all calls come from while an operator or a node of the package runs, or a backward pass of such nodes.
        self.place: Location | None = None
        self._pass: tuple[int, Location | None] = 0, None  # (the id of its task)
        #: Numbers beside arrays, as constants.
        self.numbers: dict[Any, Value] = {}
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

    def known(self, array: Any) -> Value:
        """The value of an array, recorded or not."""
        return self.of(array) if array.__class__ is RecordedArray else self.value(array)

    def box(self, array: Any, value: Value | None = None) -> RecordedArray:
        dtype = array.dtype
        if dtype.char not in "fdl?" and is_stored(dtype):
            raise refuse(f"a tensor of {dtype}", "convert it to a dtype to compute with outside of the step")
        boxed = RecordedArray(array, self, value)
        self.boxes.append(ref(boxed))
        return boxed

    def here(self) -> Location | None:
        """The user's line that runs."""
        place = self.place
        if place is not None:
            return place
        task, place = self._pass
        return place if task and id(local.state.graph_task) == task else user_location(2)

    # -------------------------------------------------------------------------------------------- tensors of the world

    def take(self, tensor: Any, is_used: bool = True) -> None:
        """Have a tensor of the world hold a recorded array; storages have numbers in the order of their first uses."""
        array = tensor._memory_
        if array.__class__ is not np.ndarray:
            if array.__class__ is not RecordedArray:
                raise refuse(f"a tensor of {type(array).__name__}", "only dense tensors on the CPU are captured")
            if array.recorder is not self:
                raise refuse("a tensor of another recording", "do not keep tensors of an inner captured function")
            return
        if id(tensor) not in self.swapped:
            self.swapped[id(tensor)] = tensor, array
            meta = tensor._grad_meta_
            grad = None if meta is None else meta.grad
            self.grads_found[id(tensor)] = tensor, grad
            self.note_version(tensor)
            if grad is not None:
                self.note_version(grad)
        if is_used:
            self.value(array)
        tensor._memory_ = self.box(array)
        _expect(tensor, RecordedArray)

    def note_version(self, tensor: Any) -> None:
        """Remember how often a tensor had been written to before the step does."""
        counter = tensor._vc_
        if counter is not None and id(counter) not in self.versions:
            try:
                self.versions[id(counter)] = counter, counter.version
            except RuntimeError:  # an inference tensor has none
                pass

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
                if isinstance(tensor, Tensor) and tensor._memory_.__class__ is np.ndarray:
                    self._refuse_history(tensor)
        self._take_all(args)
        self._take_all(kwargs.values())
        return proceed()

    def alone(self, operator: Any, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> Any:
        """The thread's interceptor while nobody else looks, for operators of the package on tensors it knows."""
        state = local.state
        if state.known_modes is not process.modes or operator.__module__ != _FUNCTIONS:
            return intercept(operator, args, kwargs)
        for one in args:
            if one.__class__ is Tensor:
                if one._memory_.__class__ is not RecordedArray:
                    return intercept(operator, args, kwargs)
            elif one.__class__ not in _SIMPLE:
                return intercept(operator, args, kwargs)
        for one in kwargs.values():
            if one.__class__ not in _SIMPLE:
                return intercept(operator, args, kwargs)
        this, state.interceptor = state.interceptor, None
        # Calls that come again have their place; others find theirs (`here`).
        before, self.place = self.place, None if self.earlier else user_location(2)
        try:
            return operator(*args, **kwargs) if kwargs else operator(*args)
        finally:
            self.place = before
            state.interceptor = this

    def _refuse_history(self, tensor: Any) -> None:
        node = history(tensor)
        if node is not None and node.sequence_nr < self.first_node and node.next_edges:
            raise refuse(
                f"the result of {type(node).__name__}, which was recorded before the captured call",
                "make the whole graph inside of the captured function, or detach() what comes from outside",
            )

    def around_nodes(self, call: Any) -> Any:
        """Look at the nodes of a backward pass: none may be of a graph that was made before."""
        place = user_location()
        task: Any = local.state.graph_task
        nodes = [task.root, *task.dependencies]
        if self._are_simple(nodes):
            self._set_pass(task, place)
            if not task.keep_graph:
                info = task.exec_info
                wanted = nodes if info is None else [n for n in nodes if n in info and info[n].needed]
                self._freed_nodes.append(wanted)
            return call
        self._set_pass(None, None)

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

    def is_freed(self, node: Any) -> bool:
        """Is what this node has saved gone?"""
        self.freed.update(*self._freed_nodes)
        self._freed_nodes.clear()
        return node in self.freed

    def forget_freed(self) -> None:
        self.freed.clear()
        self._freed_nodes.clear()

    def _set_pass(self, task: Any, place: Location | None) -> None:
        """All calls of this pass come from one line; None: of no pass."""
        self._pass = 0 if task is None else id(task), place
        if compiled.library is not None:
            compiled.library.pass_at(task, place)

    def _are_simple(self, nodes: list[Any]) -> bool:
        """Were they made by this recording, and do they run no code of the user?"""
        first = self.first_node
        if compiled.library is not None:
            found = compiled.library.are_plain_nodes(nodes, first)
            if found is not None:
                return found
        if any([node.extras is not None or node.sequence_nr < first for node in nodes]):
            return False
        for cls in {node.__class__ for node in nodes}:
            if cls.__module__ != _NODES and cls is not GraphRoot and cls is not AccumulateGrad:
                return False
        leaves: list[Any] = [node.variable._grad_meta_ for node in nodes if node.__class__ is AccumulateGrad]
        return all([meta.post_accumulate_grad_hooks is None for meta in leaves])

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

    def pointwise(
        self, ufunc: Any, inputs: Sequence[Any], out: Any = None, extra: dict[str, Any] | None = None
    ) -> Any:
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
                values.append(one.value or self.of(one))
            elif one.__class__ is np.ndarray:
                arrays.append(one)
                values.append(self.value(one))
            elif isinstance(one, np.generic) or (not mixed and dtype.char in "fd" and one.__class__ in (int, float)):
                # A number beside arrays is taken in their dtype; as an array, it costs less.
                value = self.number(one, dtype)
                arrays.append(value.array)
                values.append(value)
            else:
                arrays.append(one)
                values.append(one)
        if out is None:
            result = ufunc(*arrays, **extra) if extra else ufunc(*arrays)
            if result.__class__ is not np.ndarray:
                result = np.asarray(result)
            if not extra and self.earlier:
                again = self.again(ufunc, values, result)
                if again is not None:
                    return self.box(result, again)
            found = self.made(result)
            self.let_die(found.storage, [one for one in values if one.__class__ is Value])
            results, writes = (found,), ()
            boxed: Any = self.box(result, found)
        else:
            target = out.array if out.__class__ is RecordedArray else out
            written = self.of(out) if out.__class__ is RecordedArray else self.value(target)
            self.keep(written)
            ufunc(*arrays, out=target, **(extra or {}))
            if len(self.calls) < len(self.earlier) and not extra:
                call = self.earlier[len(self.calls)]
                if call.function is ufunc and call.kwargs is _NOTHING and len(call.args) == len(values):
                    if [v.key for v in call.writes] == [written.key] and all(map(_is_equal, call.args, values)):
                        self.calls.append(call)
                        return out
            results, writes = (), (written,)  # type: ignore[assignment]
            boxed = out
        args: Any = tuple(values)
        reads: Any = args
        if any([one.__class__ is not Value for one in args]):
            reads = tuple([one for one in args if one.__class__ is Value])
        name = _NAMES.get(ufunc) or f"np.{ufunc.__name__}"
        self.calls.append(Call("ufunc", name, ufunc, args, extra or _NOTHING, self.here(), reads, results, writes))
        return boxed

    def number(self, number: Any, dtype: np.dtype) -> Value:
        """A number as an array: a constant, the same each time."""
        key = number.__class__, number or repr(number), dtype
        value = self.numbers.get(key)
        if value is None:
            array = np.asarray(number) if isinstance(number, np.generic) else np.array(number, dtype)
            value = self.numbers[key] = self.made(array, "number")
        return value

    def pair(self, ufunc: Any, a: Any, b: Any) -> Any:
        """`pointwise` of two arrays of one floating dtype, or of one and a number; None if they are not."""
        if a.__class__ is RecordedArray:
            dtype = a.dtype
            x, first = a.array, a.value or self.of(a)
            if b.__class__ is RecordedArray:
                if dtype is not b.dtype or (a.shape != b.shape and a.shape and b.shape):
                    return None
                y, second = b.array, b.value or self.of(b)
            elif dtype.char in "fd" and b.__class__ in _NUMBERS and -_MUCH < b < _MUCH:
                second = self.number(b, dtype)
                y = second.array
            else:
                return None
        elif b.__class__ is RecordedArray and b.dtype.char in "fd" and a.__class__ in _NUMBERS and -_MUCH < a < _MUCH:
            dtype = b.dtype
            first = self.number(a, dtype)
            x, y, second = first.array, b.array, b.value or self.of(b)
        else:
            return None
        if dtype.char not in "fd":
            return None
        result = ufunc(x, y)
        if result.__class__ is not np.ndarray:
            result = np.asarray(result)
        if not result.size:
            return None
        reads = (first, second)
        value = self.again(ufunc, reads, result) if self.earlier else None
        if value is None:
            is_constant = first.storage.is_constant and second.storage.is_constant
            storage = Storage(len(self.storages), result if is_constant else ref(result), result.nbytes, "new")
            self.storages.append(storage)
            self.unplaced.append(storage)
            value = Value(storage, 0, result)
            where = self.place or self.here()
            self.calls.append(Call("ufunc", _NAMES[ufunc], ufunc, reads, _NOTHING, where, reads, (value,)))
        boxed = RecordedArray(result, self, value)
        self.boxes.append(ref(boxed))
        return boxed

    def again(self, function: Any, args: Sequence[Any], result: np.ndarray) -> Value | None:
        """The value of a new array, if the earlier recording has this call here, which is then recorded; else None."""
        calls, storages = self.calls, self.storages
        if len(calls) >= len(self.earlier):
            return None
        call = self.earlier[len(calls)]
        if call.function is not function or call.kwargs is not _NOTHING or len(call.results) != 1:
            return None
        value = call.results[0]
        if value is None or value.storage.number != len(storages) or value.array is not None:  # an empty one
            return None
        if len(args) != len(call.args):
            return None
        for one, two in zip(call.args, args):  # which say what the result looks like
            if one is two:
                continue
            if one.__class__ is Value and two.__class__ is Value:
                if one.key != two.key:
                    return None
            elif not _is_equal(one, two):
                return None
        storage = Storage(len(storages), ref(result), value.storage.size, "new")  # as `made` does
        storages.append(storage)
        self.unplaced.append(storage)
        calls.append(call)
        return value

    def getitem(self, boxed: RecordedArray, key: Any) -> Any:
        """``boxed[key]`` where that is a view; None where it may not be."""
        parts = key if key.__class__ is tuple else (key,)
        for part in parts:
            if part.__class__ not in _OF_VIEWS:
                return None
        array = boxed.array[key]
        if array.__class__ is not np.ndarray or not array.size:
            return None
        if len(parts) == 2 and parts[0].__class__ is int and parts[1] is Ellipsis:
            whole = self.of(boxed)
            offset = whole.offset + parts[0] % whole.shape[0] * whole.strides[0]
            return self.box(array, Value(whole.storage, offset, array))
        return self.view_of(boxed, array)

    def view_of(self, boxed: RecordedArray, array: np.ndarray) -> Any:
        """A view of a recorded array, which is no call."""
        return self.box(array, self.part(self.of(boxed), array) if array.size else None)

    def zeros(self, shape: Any, dtype: np.dtype, one: bool = False) -> Any:
        """Zeros, or ones, of new memory."""
        function: Any = np.ones if one else np.zeros
        result = function(shape, dtype)
        again = self.again(function, (shape, dtype), result) if self.earlier else None
        if again is not None:
            return self.box(result, again)
        value = self.made(result)
        name = "np.ones" if one else "np.zeros"
        self.calls.append(Call("opaque", name, function, (shape, dtype), _NOTHING, self.here(), (), (value,)))
        return self.box(result, value)

    def reduce(self, array: Any, axis: Any, keepdims: bool) -> Any:
        """A sum."""
        boxed = array.__class__ is RecordedArray
        real = array.array if boxed else array
        args = (self.of(array) if boxed else self.value(real),)
        result = np.asarray(np.add.reduce(real, axis=axis, keepdims=keepdims))  # type: ignore[call-overload]
        value = self.made(result)
        self.let_die(value.storage, args)
        options = {"axis": axis, "keepdims": keepdims}
        self.calls.append(Call("reduce", "np.add.reduce", np.add.reduce, args, options, self.here(), args, (value,)))
        return self.box(result, value)

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

    def copy(self, place: np.ndarray, value: Any, name: str = "np.copyto", written: Value | None = None) -> None:
        """Write a value, spread over the elements, to a place, which is `written` if that is known."""
        read: Value
        if value.__class__ is RecordedArray:
            source, read = value.array, self.of(value)
        elif isinstance(value, np.ndarray):
            source, read = value, self.value(value)
        else:
            source = np.asarray(value).astype(place.dtype)
            read = self.made(source, "number")
        if written is None:
            written = self.value(place)
        self.keep(written)
        np.copyto(place, source, casting="unsafe")
        if len(self.calls) < len(self.earlier):
            call = self.earlier[len(self.calls)]
            if call.kind == "copy" and call.name == name:
                if call.args[0].key == read.key and call.writes[0].key == written.key:
                    self.calls.append(call)
                    return
        self.calls.append(Call("copy", name, np.copyto, (read,), _NOTHING, self.here(), (read,), (), (written,)))

    def call(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, name: str, writes: Sequence[Any] = (),
        impure: bool = False, kind: str = "opaque", metadata: bool = False,
    ) -> Any:  # fmt: skip
        """Call a function on the real arrays, and record it."""
        if get_ident() != self.thread:
            return function(*unboxed(args), **unboxed(kwargs))
        views = (getattr(function, "__module__", None) or "").endswith("kernels.shape")  # which write nothing
        written = [id(one.array if one.__class__ is RecordedArray else one) for one in writes if one is not None]
        found: list[Handed] = []
        real_args, real_kwargs = (_handed(tree, written, views, found) for tree in (args, kwargs))
        for array, _, tree in found:
            if id(array) in written:
                self.keep(self.known(tree))
        self.busy += 1
        try:
            result = function(*real_args, **real_kwargs)
        except Exception as error:
            if not isinstance(error, ValueError) or "read-only" not in str(error):
                self.failed = name, self.here()
                raise
            written = [id(array) for array, _, _ in found if array.flags.writeable]
            found.clear()
            real_args, real_kwargs = (_handed(tree, written, views, found) for tree in (args, kwargs))
            for _, _, tree in found:
                self.keep(self.known(tree))
            result = function(*real_args, **real_kwargs)
        finally:
            self.busy -= 1
        call = Call(kind, name, function, self._as_values(args), self._as_values(kwargs))
        call.where = self.here()
        call.impure = impure
        call.looks = refuses_values(getattr(function, "__module__", None))
        call.reads = [self.known(tree) for _, _, tree in found]
        call.writes = [self.known(tree) for array, _, tree in found if id(array) in written]
        same = {id(given): tree for _, given, tree in found}
        same.update({id(array): tree for array, _, tree in found})
        fresh: list[Value | None] = []
        if result is None and found and not call.writes and not metadata:
            call.looks = True  # a check of values
        if metadata and not impure and not call.writes and not _has_arrays(result):
            return result
        recorded = self._boxed(result, name, same, fresh, bool(found) and not metadata)
        call.results = fresh
        for value in fresh:
            if value is not None:
                self.let_die(value.storage, call.reads)
        if any(one is not None for one in fresh) or call.writes or impure or call.looks:
            if is_sized_by_values(name.rpartition(".")[2], call):
                raise refuse(f"{name}, the size of whose result hangs on values", "use masks and where() instead")
            self.calls.append(call)
        return recorded

    def _as_values(self, tree: Any) -> Any:
        """Arguments with Values where arrays are."""
        if tree.__class__ is RecordedArray or isinstance(tree, np.ndarray):
            return self.known(tree)
        if tree.__class__ in (tuple, list):
            return tree.__class__([self._as_values(one) for one in tree])
        return {key: self._as_values(one) for key, one in tree.items()} if tree.__class__ is dict else tree

    def _boxed(self, tree: Any, name: str, same: dict[int, Any], fresh: list[Value | None], arrays_only: bool) -> Any:
        """What a call returned, with recorded arrays; `fresh` gets what is new, `same` is what it was given, by id."""
        if isinstance(tree, np.generic):
            tree = np.asarray(tree)
        if isinstance(tree, np.ndarray):
            known = same.get(id(tree))
            if known is not None:
                fresh.append(None)
                return known if known.__class__ is RecordedArray else self.box(known)
            makes_new = name.startswith("np.")  # or views; kernels may keep what they return
            value = None if makes_new and tree.base is None else self.find(tree)
            if value is None:
                if not tree.size and not tree.flags.writeable:  # a view of what was handed over read-only
                    tree = np.ndarray(tree.shape, tree.dtype, np.empty(tree.itemsize, np.uint8), 0, tree.strides)
                value = self.made(tree) if makes_new else self.value(tree, "new")
                fresh.append(value)
            else:
                if not tree.flags.writeable and value.storage.array.flags.writeable:
                    tree = _writable(tree, value.storage.array)
                fresh.append(None if value.storage not in [v.storage for v in fresh if v is not None] else value)
            return self.box(tree, value)
        if tree.__class__ in (tuple, list):
            return tree.__class__([self._boxed(one, name, same, fresh, arrays_only) for one in tree])
        if isinstance(tree, tuple):
            raise refuse(f"{name}, which returns {type(tree).__name__}", "it is not known to the recorder")
        fresh.append(None)
        if tree is not None and arrays_only:
            raise refuse(f"{name}, whose result is no tensor and may hang on values", "compute it outside")
        return tree

    def let_die(self, storage: Storage, reads: Sequence[Value]) -> None:
        """Do not hold what was computed from what is no constant."""
        for value in reads:
            if not value.storage.is_constant:
                storage.let_die()
                return

    def keep(self, value: Value) -> None:
        """Keep what is in a storage of the world before it is written to, for a step that fails."""
        storage = value.storage
        if storage.kind != "new" and storage.number not in self.before and storage.array.size:
            self.before[storage.number] = storage.array, storage.array.copy()

    def used_of_the_world(self) -> set[int]:
        """The storages of the world that calls read or write."""
        return {v.storage.number for c in self.calls for v in (*c.reads, *c.writes) if v.storage.kind == "outside"}

    def let_go(self) -> None:
        """Forget what is for a step that fails."""
        self.before.clear()
        self.grads_found.clear()
        self.steps.clear()
        self.boxes.clear()

    def undo(self) -> None:
        """Put back what was written over: the step has failed."""
        for array, content in self.before.values():
            np.copyto(array, content)
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
        call.where = self.here()
        call.impure = True
        call.reads = [self.value(array) for array in reads]
        call.writes = [self.value(array) for array in writes]
        self.calls.append(call)
        return call

    def decide(self, boxed: RecordedArray, value: Any) -> Any:
        """Go on for this value of an array alone: a replay that finds another one takes another path."""
        call = Call("check", "check", None, (self.of(boxed), value), {})
        call.where = self.here()
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
            names = _names_of_arguments(kernel)
            position = self._signatures[kernel] = names.index("out") if "out" in names else None
        return args[position] if position is not None and position < len(args) else None


def _names_of_arguments(kernel: Any) -> tuple[str, ...]:
    """What a kernel calls its arguments, as far as it tells."""
    if kernel.__class__ is FunctionType and not hasattr(kernel, "__wrapped__"):  # (`signature` takes 20 µs)
        return kernel.__code__.co_varnames[: kernel.__code__.co_argcount]
    try:
        return tuple(inspect.signature(kernel).parameters)
    except (TypeError, ValueError):
        return ()


def _expect(tensor: Any, array_class: type) -> None:
    """Have the accumulator of a leaf, if there is one, expect gradients of this class."""
    meta = tensor._grad_meta_
    node = None if meta is None or meta.grad_accumulator is None else meta.grad_accumulator()
    if node is not None and node.array_class in (np.ndarray, RecordedArray):
        node.array_class = array_class


#: An array of a call's arguments, what the call is given for it, and how it came: recorded or not.
Handed: TypeAlias = tuple[np.ndarray, np.ndarray, Any]


def _handed(tree: Any, written: list[int], views: bool, found: list[Handed]) -> Any:
    """Arguments with real arrays, which are noted in `found`: read-only ones, if their ids are not in `written`."""
    if tree.__class__ is RecordedArray or isinstance(tree, np.ndarray):
        array: Any = tree.array if tree.__class__ is RecordedArray else tree
        given = array
        if id(array) not in written and array.flags.writeable and not views:
            given = array.view()
            given.flags.writeable = False
        found.append((array, given, tree))
        return given
    if tree.__class__ in (tuple, list):
        return tree.__class__([_handed(one, written, views, found) for one in tree])
    if tree.__class__ is dict:
        return {key: _handed(one, written, views, found) for key, one in tree.items()}
    return tree


def _is_equal(one: Any, two: Any) -> bool:
    """Are two arguments the same Value, shape or dtype? Numbers are left to comparing.py."""
    kind = one.__class__
    if kind is Value:
        return two.__class__ is Value and one.key == two.key
    return kind is two.__class__ and (kind is tuple or isinstance(one, np.dtype)) and one == two


def _writable(view: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """A view of what was handed over read-only, as one that may be written to, in memory of `owner`."""
    try:
        view.flags.writeable = True
    except ValueError:  # its own base is read-only for good
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        start = address(view) - bounds(owner)[0]
        view = np.ndarray(view.shape, view.dtype, bytes_of(owner), start, view.strides)  # type: ignore[arg-type]
    return view


def _has_arrays(tree: Any) -> bool:
    if isinstance(tree, (tuple, list)):
        return any(_has_arrays(one) for one in tree)
    return isinstance(tree, (np.ndarray, np.generic))


def _setitem(array: np.ndarray, key: Any, value: Any) -> None:
    array[key] = value


if compiled.library is not None:
    compiled.library.know_recordings(
        {
            "RecordedArray": RecordedArray, "Storage": Storage, "Value": Value, "Call": Call, "NOTHING": _NOTHING,
            "multiply": np.multiply, "add": np.add, "subtract": np.subtract, "true_divide": np.true_divide,
            "negative": np.negative, "square": np.square, "copyto": np.copyto, "zeros": np.zeros,
            "is_user_code": is_user_code,
        }
    )  # fmt: skip
