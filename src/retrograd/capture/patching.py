"""Kernels behind wrappers while somebody records: which names stand for kernels, and what they are recorded as.

A name that a module imported is that module's own, so the wrappers go into the modules; those of the kernels keep
the kernels themselves.  The wrappers ask whether their thread is recording: others only pay for the question, and only
while a recording is under way.  One thread records at a time.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import gc
import io
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from threading import get_ident
from types import FunctionType
from typing import Any

import numpy as np

from .. import kernels, random
from .._generated import functions as generated
from ..core import compiled, devices
from ..core.locks import fork_safe_lock
from ..core.state import local
from ..core.version_counter import INFERENCE
from ..core.where import is_user_code
from ..kernels.libraries import InFront
from ..ops import factories, support
from ..ops.uninitialized import Memory
from ..optim import Optimizer, lr_scheduler
from ..optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks
from ..tensor import Tensor, wrap
from .arrays import RecordedArray, unboxed
from .errors import is_the_users, refuse
from .kernel_kinds import is_metadata
from .lowering import LOWERED, seen_through
from .moving import MovingGenerator, MovingOptimizer, moving_with
from .recording import Recorder

#: Who is recording, by thread.
active: dict[int, Recorder] = {}
one_at_a_time: Any = fork_safe_lock()


_PACKAGE = __name__.partition(".")[0] if __name__ else "retrograd"
_wrappers: dict[Any, Any] = {}


class Places:
    """The names of a module that stand for kernels: the kernels, and their wrappers."""

    __slots__ = ("kernels", "names", "wrappers")

    def __init__(self, names: dict[str, Any]) -> None:
        self.names: dict[str, Any] = names
        self.kernels: dict[str, Any] = {}
        self.wrappers: dict[str, Any] = {}

    def put_back(self) -> None:
        """Let the names stand for the kernels again, but for those that something else came before meanwhile."""
        for key, wrapper in self.wrappers.items():
            if self.names[key] is wrapper or _bare(self.names[key]) is self.names[key]:
                self.names[key] = self.kernels[key]


#: What `_all_places` found, and what was imported then.
_places: tuple[Any, list[Places]] = (None, [])


def _bare(function: Any) -> Any:
    """The kernel itself, behind what looks at dtypes (ops/stored_dtypes.py) or devices (kernels/libraries.py)."""
    # (Not by `__dict__`, which every function would have from then on.)
    while function.__class__ in (FunctionType, _Kernel) and hasattr(function, "__wrapped__"):
        if (function.__module__ or "").startswith(f"{_PACKAGE}.kernels."):
            break  # a kernel in two parts
        function = function.__wrapped__  # type: ignore[attr-defined]
    return function


#: Kernels that are ufuncs of two arrays, with what may follow them: an `alpha` of one.
_AS_UFUNC: dict[Any, Any] = {kernels.mul: np.multiply, kernels.add: np.add, kernels.sub: np.subtract}
_ONCE = (1,)


@functools.cache
def _by_kernels() -> tuple[dict[Any, Any], dict[Any, Any]]:
    """`LOWERED` and `_AS_UFUNC` by the kernels themselves: once a device is in use, their names stand for what chooses
    among devices."""
    lowered, ufuncs = ({_bare(kernel): value for kernel, value in table.items()} for table in (LOWERED, _AS_UFUNC))
    return lowered, ufuncs


class _Family:
    """What is to be known of all kernels of a module: one for many wrappers."""

    def __init__(self, module: str) -> None:
        self.is_random: bool = module.endswith("kernels.random")
        self.metadata: bool = is_metadata(module)
        self.of_numbers: bool = module.endswith("kernels.promotion")
        self.views: bool = module.endswith("kernels.shape")

    @staticmethod
    @functools.cache
    def of(module: str) -> _Family:
        return _Family(module)


class _Kernel(InFront):
    """What a name stands for while somebody records, in place of a kernel: ``__wrapped__``, with `bare` behind it.

    (There are hundreds of them as long as the process lives: a function with a closure would be eight times as large.)
    """

    __slots__ = ("__wrapped__", "bare", "family", "lowered", "ufunc")

    def __init__(self, kernel: Any, bare: Any) -> None:
        self.__wrapped__: Any = kernel
        self.bare: Any = bare
        self.family: _Family = _Family.of(getattr(bare, "__module__", None) or "")
        self.lowered, self.ufunc = (table.get(bare) for table in _by_kernels())

    @property
    def __name__(self) -> str:
        return getattr(self.bare, "__name__", "kernel")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = active.get(get_ident())
        if recorder is None:
            return self.__wrapped__(*unboxed(args), **unboxed(kwargs))
        if recorder.busy:
            return self.__wrapped__(*args, **kwargs)
        if self.ufunc is not None and not kwargs and (len(args) == 2 or args[2:] == _ONCE):
            result = recorder.pair(self.ufunc, args[0], args[1])  # the shortest way, for the most frequent ones
            if result is not None:
                return result
        if self.lowered is not None:
            result = self.lowered(recorder, *args, **kwargs)
            if result is not NotImplemented:
                return result
        kernel, family = self.__wrapped__, self.family
        if family.views and len(args) > 1 and args[0].__class__ is RecordedArray and not kwargs:
            # Most of them are views, with numbers that say of what.
            if not any([isinstance(arg, (RecordedArray, np.ndarray, list)) for arg in args[1:]]):
                array = args[0].array
                result = kernel(array, *args[1:])
                if result.__class__ is np.ndarray and result.base is not None and np.may_share_memory(result, array):
                    return recorder.view_of(args[0], result)
        if family.of_numbers and not any([isinstance(arg, (RecordedArray, np.ndarray)) for arg in args]):
            return kernel(*args, **kwargs)
        result = seen_through(recorder, self.bare, args, kwargs) if not recorder.inside else NotImplemented
        if result is not NotImplemented:
            return result
        out = recorder.out_of(kernel, args, kwargs)
        return recorder.call(
            kernel, args, kwargs, name=f"kernels.{self.bare.__name__}", writes=[] if out is None else [out],
            impure=family.is_random, metadata=family.metadata,
        )  # fmt: skip


def _wrapper(kernel: Any) -> Any:
    bare = _bare(kernel)
    return _dropout_wrapper() if bare is kernels_dropout_mask else _Kernel(kernel, bare)


#: Functions of NumPy that make arrays: where other modules than the kernels call them, new memory is made.
_MAKERS: tuple[Any, ...] = (
    np.zeros, np.ones, np.empty, np.full, np.arange, np.linspace, np.logspace, np.eye, np.identity, np.array,
    np.asarray, np.ascontiguousarray, np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.tri, np.frombuffer,
    np.tile,
)  # fmt: skip


class _Numpy:
    """Stands for NumPy in modules that make arrays."""

    def __init__(self) -> None:
        for maker in _MAKERS:
            setattr(self, maker.__name__, _maker(maker))

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


_stand_in: list[_Numpy] = []


def _numpy() -> _Numpy:
    if not _stand_in:
        _stand_in.append(_Numpy())
    return _stand_in[0]


@functools.cache
def _maker(function: Any) -> Any:
    def maker(*args: Any, **kwargs: Any) -> Any:
        recorder = active.get(get_ident())
        if recorder is None or recorder.busy or recorder.inside:
            return function(*args, **kwargs)
        first = args[0] if args else None
        if function in (np.asarray, np.array) and first.__class__ in (int, float, bool, complex):
            return function(*args, **kwargs)  # a number
        if (
            function in (np.ones_like, np.zeros_like)
            and first.__class__ is RecordedArray
            and not set(kwargs) - {"dtype"}
        ):
            if len(args) <= 2 and first.flags.c_contiguous:
                shape_and_dtype = (
                    first.shape,
                    kwargs.get("dtype") or (args[1] if len(args) == 2 else None) or first.dtype,
                )
                plain: Any = np.ones if function is np.ones_like else np.zeros
                return recorder.call(plain, shape_and_dtype, {}, name=f"np.{plain.__name__}")
        return recorder.call(function, args, kwargs, name=f"np.{function.__name__}")

    return maker


def _all_places() -> list[Places]:
    """Where names stand for kernels, module by module."""
    global _places
    # What is imported, and whether something stands before the kernels already: in all places, or in none.
    known = len(sys.modules), id(vars(generated)["kernel_select"])
    if _places[0] == known:
        return _places[1]
    inside = f"{_PACKAGE}.kernels."
    found: dict[int, Any] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith(inside) or name == inside[:-1]:
            for key, value in vars(module).items():
                bare = _bare(value)
                if (
                    isinstance(bare, FunctionType)
                    and (bare.__module__ or "").startswith(inside)
                    and key != "__getattr__"
                ):
                    found[id(bare)] = bare
    found[id(kernels.accumulate)] = kernels.accumulate
    places: list[Places] = []
    skipped = (inside, f"{_PACKAGE}.capture", f"{_PACKAGE}.codegen", f"{_PACKAGE}.random")
    for name, module in list(sys.modules.items()):
        if name.startswith(_PACKAGE + ".") and not name.startswith(skipped) and isinstance(vars(module), dict):
            names = vars(module)
            place = Places(names)
            for key, value in list(names.items()):
                wrapper = None
                if value is np:
                    wrapper = _numpy()
                elif value in _MAKERS if callable(value) and getattr(value, "__module__", None) == "numpy" else False:
                    wrapper = _maker(value)
                elif (
                    id(bare := _bare(value)) in found
                    and found[id(bare)] is bare
                    and not (value is np.add and "kernels" not in name and key != "accumulate")
                ):
                    if value not in _wrappers:
                        _wrappers[value] = _wrapper(value)
                    wrapper = _wrappers[value]
                if wrapper is not None:
                    place.kernels[key], place.wrappers[key] = value, wrapper
            if place.wrappers:
                places.append(place)
    _places = known, places
    return places


def how_many_modules() -> int:
    """In so many modules names stand for kernels; the package imports some when they are first needed."""
    return len(_all_places())


# ----------------------------------------------------------------------------------------------------------- generators

_DRAWS = (
    "uniform", "uniform_like", "normal", "normal_like", "normal_double_like", "integers_like", "any_integers_like",
    "integers", "permutation", "uniform_where", "binomial", "poisson", "gamma", "exponential",
)  # fmt: skip


def _note_generator(recorder: Recorder, generator: random.Generator) -> None:
    """Remember where a generator stands before the step draws from it."""
    if id(generator) not in recorder.generators:
        recorder.generators.add(id(generator))
        part = MovingGenerator(generator)
        recorder.steps.append((part, part.state()))


@functools.cache
def _draw(name: str, method: Any) -> Any:
    def draw(*args: Any, **kwargs: Any) -> Any:
        recorder = active.get(get_ident())
        if recorder is None or recorder.busy:
            return method(*args, **kwargs)
        _note_generator(recorder, args[0])
        return recorder.call(method, args, kwargs, name=f"Generator.{name}", impure=True)

    return draw


@functools.cache
def _get_state(method: Any) -> Any:
    def array(generator: Any) -> Any:
        return method(generator)._memory_

    def get_state(generator: Any) -> Any:
        recorder = active.get(get_ident())
        if recorder is None or recorder.busy:
            return method(generator)
        return wrap(recorder.call(array, (generator,), {}, name="Generator.get_state", impure=True))

    return get_state


@functools.cache
def _set_state(method: Any) -> Any:
    def from_array(generator: Any, state: Any) -> None:
        method(generator, wrap(state))

    def set_state(generator: Any, state: Any) -> Any:
        recorder = active.get(get_ident())
        if recorder is None or recorder.busy:
            return method(generator, state)
        recorder.take(state)
        recorder.call(
            from_array, (generator, state._memory_), {}, name="Generator.set_state", impure=True, metadata=True
        )
        return generator

    return set_state


@functools.cache
def _refused(name: str, method: Any) -> Any:
    def refused(*args: Any, **kwargs: Any) -> Any:
        recorder = active.get(get_ident())
        if recorder is None or recorder.busy:
            return method(*args, **kwargs)
        raise refuse(name, "do it outside of the captured function")

    return refused


def _dropout_mask(like: Any, p: float, twister: Any) -> Any:
    """The mask of the generator that draws now: its twister is another after it has been seeded."""
    return kernels_dropout_mask(like, p, random.default_generator.twister)


kernels_dropout_mask: Any = _bare(kernels.dropout_mask)


def _dropout_wrapper() -> Any:
    def dropout_mask(like: Any, p: float, twister: Any) -> Any:
        recorder = active.get(get_ident())
        if recorder is None or recorder.busy:
            return kernels_dropout_mask(like, p, twister)
        if twister is not random.default_generator.twister:
            raise refuse("dropout with a generator of its own", "draw the mask with torch.rand and a generator")
        _note_generator(recorder, random.default_generator)
        return recorder.call(_dropout_mask, (like, p, None), {}, name="kernels.dropout_mask", impure=True)

    return dropout_mask


# ----------------------------------------------------------------------------------------------------------- optimizers


def _step(method: Any) -> Any:
    def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = active.get(get_ident())
        if recorder is None or recorder.busy:
            return method(optimizer, *args, **kwargs)
        if args or any(value is not None for value in kwargs.values()):
            raise refuse("step(closure)", "call backward() and step() without a closure")
        return record_step(recorder, optimizer, method)

    return step


def _own_step(optimizer: Any, method: Any) -> Any:
    def without_self(optimizer: Any) -> Any:
        return method()

    recorded = _step(without_self)

    def step(*args: Any, **kwargs: Any) -> Any:
        recorder = active.get(get_ident())
        if recorder is None or recorder.busy:
            return method(*args, **kwargs)
        return recorded(optimizer, *args, **kwargs)

    functools.update_wrapper(step, method)
    step.__dict__.update(getattr(method, "__dict__", {}))
    return step


def record_step(recorder: Recorder, optimizer: Any, method: Any) -> Any:
    """An optimizer's step is repeated as it is, with its own numbers: learning rates and counts of steps may change."""
    reads, writes, grads = [], [], []
    boxed = _boxed_ones(recorder, optimizer)
    for group in optimizer.param_groups:
        for param in group["params"]:
            _unbox(recorder, param)
            grad = param.grad
            if grad is not None:
                _unbox(recorder, grad)
                reads += [param._memory_, grad._memory_]
                writes.append(param._memory_)
            grads.append((param, grad))
    for state in optimizer.state.values():
        for value in state.values() if isinstance(state, dict) else ():
            if isinstance(value, Tensor):
                _unbox(recorder, value)
    seen = [param for param, _ in grads]
    if any([optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks, *_HOOKS_OF_ALL_OPTIMIZERS]):
        # Hooks run as they are in each replay, and may write to whatever they find.
        known = {id(param) for param in seen}
        for tensor, array in recorder.swapped.values():
            if id(tensor) not in known and recorder.value(array).storage.kind == "outside":
                _unbox(recorder, tensor)
                seen.append(tensor)
                reads.append(array)
                writes.append(array)
    for array in writes:
        recorder.keep(recorder.value(array))
    part = MovingOptimizer(optimizer)
    recorder.steps.append((part, part.state()))
    versions = [(one._vc_, 0 if one._vc_ is None or one._vc_ is INFERENCE else one._vc_.version) for one in seen]
    with _as_it_is(recorder, optimizer):
        result = method(optimizer)
    for (before, version), one in zip(versions, seen, strict=True):
        counter = one._vc_
        if counter is not None and counter is not INFERENCE:
            more = counter.version - (version if before is counter else 0)
            recorder.live_writes[id(counter)] = recorder.live_writes.get(id(counter), 0) + more
    call = recorder.python(method, (optimizer,), {}, f"{type(optimizer).__name__}.step", reads, writes)
    call.kwargs = {"grads": [(param, None if grad is None else recorder.value(grad._memory_)) for param, grad in grads]}
    for one in boxed:  # whose values may be looked at again
        if one._memory_.__class__ is np.ndarray:
            one._memory_ = recorder.box(one._memory_)
    return result


def _boxed_ones(recorder: Recorder, optimizer: Any) -> list[Any]:
    """What an optimizer and its hooks meet while it makes a step, of that which holds a recorded array."""
    params = [param for group in optimizer.param_groups for param in group["params"]]
    state = [one for entries in optimizer.state.values() if isinstance(entries, dict) for one in entries.values()]
    found = [*params, *[param.grad for param in params], *state, *[tensor for tensor, _ in recorder.swapped.values()]]
    found = [one for one in found if isinstance(one, Tensor) and one._memory_.__class__ is RecordedArray]
    return list({id(one): one for one in found}.values())


def _unbox(recorder: Recorder, tensor: Any) -> None:
    if tensor._memory_.__class__ is RecordedArray:
        tensor._memory_ = tensor._memory_.array


@contextlib.contextmanager
def _as_it_is(recorder: Recorder, optimizer: Any) -> Iterator[None]:
    """A step of an optimizer or scheduler is not recorded: its numbers that are tensors have their own arrays then."""
    state = local.state
    observers, interceptor = state.observers, state.interceptor
    numbers = [one for group in optimizer.param_groups for one in group.values() if isinstance(one, Tensor)]
    taken = [one for one in numbers if one._memory_.__class__ is RecordedArray]
    for one in taken:
        _unbox(recorder, one)
    recorder.busy += 1
    state.observers, state.interceptor = (), None
    try:
        yield
    finally:
        state.observers, state.interceptor = observers, interceptor
        recorder.busy -= 1
        for one in taken:
            recorder.take(one, is_used=False)


@functools.cache
def _scheduler_step(method: Any) -> Any:
    def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = active.get(get_ident())
        if recorder is None or recorder.busy:
            return method(scheduler, *args, **kwargs)
        for part in moving_with(scheduler):
            recorder.steps.append((part, part.state()))
        with _as_it_is(recorder, scheduler.optimizer):
            result = method(scheduler, *args, **kwargs)
        recorder.python(method, (scheduler, *args), kwargs, "scheduler.step", (), ())
        return result

    return step


def _store(out: Any, result: Any, warn: bool = False) -> Any:
    """What `out=` comes to, which no operator has seen yet."""
    recorder = active.get(get_ident())
    if recorder is not None and not recorder.busy:
        recorder.take(out)
    return _stored(out, result, warn)


_stored: Any = support.store
_HOOKS_OF_ALL_OPTIMIZERS = (_global_optimizer_pre_hooks, _global_optimizer_post_hooks)


def _subclasses(cls: type) -> list[type]:
    found: list[Any] = [cls]
    for one in found:
        found += [sub for sub in one.__subclasses__() if sub not in found]
    return found


def _print(*args: Any, **kwargs: Any) -> None:
    recorder = active.get(get_ident())
    if recorder is not None and not recorder.busy:
        raise refuse("print(), which a replay would not repeat", "print outside of the captured function")
    _printed(*args, **kwargs)


_printed: Any = builtins.print


def _open(file: Any, mode: Any = "r", *args: Any, **kwargs: Any) -> Any:
    recorder = active.get(get_ident())
    if recorder is not None and not recorder.busy:
        if set(str(mode)) & set("wax+"):
            raise refuse("open() of a file that is written to", "write files outside of the captured function")
        if not _is_of_the_process(file):
            raise refuse(
                "open() of a file, which a replay would not read again",
                "read it outside of the captured function, and pass what is in it",
            )
    return _opened(file, mode, *args, **kwargs)


_opened: Any = builtins.open


def _is_of_the_process(file: Any) -> bool:
    """Is a file read that stays as it is: by an import, or by the package to know itself?"""
    frame: Any = sys._getframe(2)
    if not is_user_code(frame.f_code) and str(file).startswith((_FOLDER, "/proc/")):
        return True
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _of_text(name: str, function: Any) -> Any:
    """`eval` or `exec`: what a text names cannot be known before."""

    def evaluate(source: Any, /, globals: Any = None, locals: Any = None, **kwargs: Any) -> Any:
        recorder = active.get(get_ident())
        frame = sys._getframe(1)
        if recorder is not None and not recorder.busy and is_user_code(frame.f_code):
            if is_the_users(frame.f_code.co_filename):
                raise refuse(f"{name}(), whose text may name anything", "evaluate it outside of the captured function")
        if globals is None:
            globals, locals = frame.f_globals, frame.f_locals if locals is None else locals
        return function(source, globals, locals, **kwargs)

    return evaluate


_OF_TEXT = {name: _of_text(name, getattr(builtins, name)) for name in ("eval", "exec")}


def _log(logger: Any, record: Any) -> None:
    recorder = active.get(get_ident())
    if recorder is not None and not recorder.busy:
        raise refuse("a message that is logged", "log it outside of the captured function")
    _logged(logger, record)


_logged: Any = logging.Logger.handle


def _clock(name: str, function: Any) -> Any:
    def clock() -> Any:
        recorder = active.get(get_ident())
        if recorder is not None and not recorder.busy:
            code = sys._getframe(1).f_code
            if is_user_code(code) and is_the_users(code.co_filename):
                raise refuse(f"time.{name}(), which a replay would not ask", "ask it outside of the captured function")
        return function()

    return clock


_CLOCKS = {
    name: _clock(name, getattr(time, name))
    for clock in ("time", "perf_counter", "monotonic", "process_time")
    for name in (clock, clock + "_ns")
}


def _start(thread: threading.Thread) -> None:
    recorder = active.get(get_ident())
    if recorder is not None and not recorder.busy and is_user_code(sys._getframe(1).f_code):
        raise refuse("a thread that is started, whose work a replay would not repeat", "do the work in the step itself")
    _started(thread)


_started: Any = threading.Thread.start


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """No garbage is collected meanwhile: a recording makes many objects, and all of them stay."""
    if not gc.isenabled():
        yield
        return
    try:
        gc.disable()
        yield
    finally:
        gc.enable()
        if not gc.get_freeze_count():
            # What is there now is old at once: to look through it as if it were garbage would take a whole step.
            gc.freeze()
            gc.unfreeze()


class patched:
    """The wrappers in their places, for one recording of this thread, which has `one_at_a_time`."""

    def __init__(self, recorder: Recorder, optimizers: Sequence[Any]) -> None:
        self.recorder: Recorder = recorder
        self.optimizers: Sequence[Any] = optimizers
        self.attributes: list[tuple[Any, str, Any]] = []
        self.places: list[Places] = []
        self.first: Any = None

    def __enter__(self) -> Recorder:
        devices.register_array_class(RecordedArray, devices.CPU)
        active[get_ident()] = self.recorder
        if compiled.library is not None:
            # What its first pass reads: a module that comes later would have all of them looked through again.
            import_module(f"{_PACKAGE}._generated.compiled_formulas")
            compiled.library.record_with(self.recorder)
        self.places = _all_places()
        for place in self.places:
            place.names.update(place.wrappers)
        self.first = vars(generated)["kernel_select"]
        for name in ("empty", "empty_like"):
            self._patch(Memory, name, staticmethod(_maker(getattr(np, name))))
        for name in _DRAWS:
            self._patch(random.Generator, name, _draw(name, random.Generator.__dict__[name]))
        self._patch(random.Generator, "get_state", _get_state(random.Generator.get_state))
        self._patch(random.Generator, "set_state", _set_state(random.Generator.set_state))
        for name in ("manual_seed", "seed"):
            self._patch(random.Generator, name, _refused(f"Generator.{name}()", getattr(random.Generator, name)))
        for cls in _subclasses(Optimizer):
            ours = (cls.__module__ or "").startswith(_PACKAGE + ".optim")
            if ours and "step" in cls.__dict__:
                self._patch(cls, "step", _step(cls.__dict__["step"]))
        for optimizer in self.optimizers:
            if "step" in optimizer.__dict__:  # a scheduler counts its calls
                self._patch(optimizer, "step", _own_step(optimizer, optimizer.__dict__["step"]))
        for cls in (lr_scheduler.LRScheduler, lr_scheduler.ReduceLROnPlateau):
            self._patch(cls, "step", _scheduler_step(cls.step))
        for module in (support, factories):
            self._patch(module, "store", _store)
        self._patch(builtins, "print", _print)
        for name, evaluate in _OF_TEXT.items():
            self._patch(builtins, name, evaluate)
        for module in (builtins, io):
            self._patch(module, "open", _open)
        self._patch(logging.Logger, "handle", _log)
        self._patch(threading.Thread, "start", _start)
        for name, clock in _CLOCKS.items():
            self._patch(time, name, clock)
        owner = next(cls for cls in Tensor.__mro__ if "numpy" in cls.__dict__)
        self._patch(owner, "numpy", _refused("a foreign NumPy call (numpy())", owner.__dict__["numpy"]))
        return self.recorder

    def _patch(self, owner: Any, name: str, value: Any) -> None:
        self.attributes.append((owner, name, owner.__dict__[name]))
        setattr(owner, name, value)

    def __exit__(self, *exc_info: object) -> None:
        self.take_back()

    def take_back(self) -> None:
        """Have all names stand for what they stood for: if this was interrupted, it can be done again."""
        for owner, name, value in reversed(self.attributes):
            setattr(owner, name, value)
        # Something stands before the wrappers now in all places, or in none.
        is_first = vars(generated)["kernel_select"] is self.first
        for place in self.places:
            if is_first:
                place.names.update(place.kernels)
            else:
                place.put_back()
        active.pop(get_ident(), None)
        if compiled.library is not None:
            compiled.library.record_with(None)
