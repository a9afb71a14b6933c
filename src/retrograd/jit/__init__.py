"""``torch.jit``: programs that use it run, as the Python that they are; the first call of each way to compile says so.

There is no other language here that a function could be turned into. What cannot be had without one (reading and
writing compiled programs) is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

from ..autograd.grad_mode import is_grad_enabled, set_grad_enabled
from ..core.said_once import say_once
from ..futures import Future
from ..nn.modules.module import Module
from ..nn.parameter import is_lazy
from ..profiler.recording import recorders, sharing

__all__ = [
    "Attribute", "Final", "ScriptFunction", "ScriptModule", "TracerWarning", "annotate", "export", "fork", "freeze",
    "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load", "optimize_for_inference",
    "optimized_execution", "save", "script", "script_if_tracing", "script_method", "set_fusion_strategy",
    "trace", "trace_module", "unused", "wait",
]  # fmt: skip

F = TypeVar("F")


class TracerWarning(Warning):
    """What torch says of code that a trace cannot follow. Nothing is traced here."""


_isinstance = isinstance
#: What torch gives back in the place of a function: here the function itself.
ScriptFunction = type(lambda: None)
#: A module written to be compiled: here a module.
ScriptModule = Module


def script(obj: F, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> F:
    """The function, class or module itself.

    >>> import warnings; warnings.simplefilter("ignore")
    >>> script(len) is len
    True
    """
    module: Any = obj
    if _isinstance(obj, Module) and any(map(is_lazy, [*module.parameters(), *module.buffers()])):
        raise RuntimeError(
            f"'{module._get_name()}' has uninitialized parameters. Did you forget to run a forward pass?"
        )
    say_once("torch.jit.script compiles nothing in retrograd: it gives back what it is given, which runs as Python")
    return obj


def trace(func: F, example_inputs: Any = None, **options: Any) -> F:
    """The function or module itself. `example_inputs` and the options would say how to record it."""
    say_once("torch.jit.trace records nothing in retrograd: it gives back what it is given, which runs as Python")
    return func


def trace_module(mod: F, inputs: Any = None, **options: Any) -> F:
    """The module itself."""
    return trace(mod, inputs, **options)


def script_if_tracing(fn: F) -> F:
    """The function itself: nothing is ever traced."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a function that is not to be compiled, which none is. With or without arguments."""
    return drop if callable(drop) else lambda function: function


def unused(fn: F) -> F:
    """Mark a function that compiled code never calls: the function."""
    return fn


export = script_method = interface = unused


def is_scripting() -> bool:
    """Is this code being compiled? Never."""
    return False


def is_tracing() -> bool:
    """Is this code being recorded? Never."""
    return False


def annotate(the_type: Any, the_value: F) -> F:
    """The value."""
    return the_value


def Attribute(value: F, type: Any) -> F:
    """The value."""
    return value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Python's `isinstance`, which also takes ``list[int]`` and the like by their class."""
    targets = target_type if _isinstance(target_type, tuple) else (target_type,)
    return _isinstance(obj, tuple(getattr(target, "__origin__", target) for target in targets))


def freeze(mod: Module, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Module:
    """The module, which must be in evaluation mode."""
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. Please call .eval() first")
    return mod


def optimize_for_inference(mod: F, other_methods: Any = None) -> F:
    """The module."""
    return mod


def set_fusion_strategy(strategy: Any) -> list:
    """Nothing is fused: the strategy is taken and means nothing; there was none before."""
    return []


class optimized_execution:
    """Nothing is optimized, within the block or without."""

    def __init__(self, should_optimize: bool) -> None:
        self.should_optimize = should_optimize

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        pass


def fork(func: Callable, *args: Any, **kwargs: Any) -> Future:
    """A call that runs at the same time, on a thread of its own, seen by the profiles that are on here: a future.

    >>> import retrograd as torch
    >>> later = torch.jit.fork(torch.add, torch.ones(2), 1)
    >>> torch.jit.wait(later)
    tensor([2., 2.])
    """
    future, seen_by, grad = Future(), recorders(), is_grad_enabled()

    def run() -> None:
        try:
            with sharing(seen_by), set_grad_enabled(grad):
                result = func(*args, **kwargs)
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name="retrograd: fork", daemon=True).start()
    return future


def wait(future: Future) -> Any:
    """The result of what `fork` was given."""
    return future.wait()


_fork, _wait = fork, wait


def save(m: Any, f: Any, _extra_files: Any = None) -> NoReturn:
    """Refused."""
    raise RuntimeError(
        "torch.jit.save writes compiled programs, and retrograd compiles none. Save the weights: "
        "torch.save(module.state_dict(), path)"
    )


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> NoReturn:
    """Refused."""
    raise RuntimeError(
        "torch.jit.load reads compiled programs, which retrograd cannot run. Save the state dict of the module in "
        "torch, and load it into a module of the same make: module.load_state_dict(torch.load(path))"
    )
