"""Functions that a profile hears of because Python tells it which are called: see Note [What a profile sees].

Python calls `CalledFunctions` at every call and return of a thread while a profile is on, and never else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from ..ops import factories, random_factories
from ..ops.registry import DECLARED

if TYPE_CHECKING:
    from .events import FunctionEvent
    from .recording import Recorder

_FACTORIES = (factories.__file__, random_factories.__file__)
_HERE = os.path.dirname(os.path.dirname(__file__))
#: Where functions composed of operators are defined: what else is called ``Tensor.x`` computes nothing.
_COMPOSED = tuple(os.path.join(_HERE, *parts) for parts in (("ops", "composite"), ("nn", "functional")))


def _code(function: Any) -> CodeType | None:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return getattr(function, "__code__", None)


@cache
def _operators() -> dict[CodeType, str]:
    """The functions composed of operators, with torch's names for them."""
    found: dict[CodeType, str] = {}
    for space, functions in DECLARED.items():
        prefix = f"{space}_" if space in ("linalg", "special", "fft") else ""
        for name, function in functions.items():
            code = None if name.startswith("__") else _code(function)
            if code is not None and code.co_filename.startswith((*_COMPOSED, *_FACTORIES)):
                found.setdefault(code, f"aten::{prefix}{name}")
    return found


def _with_class(text: str) -> Callable[[FrameType], str]:
    return lambda frame: text.format(type(next(iter(frame.f_locals.values()))).__name__)


def _annotations() -> dict[CodeType, Callable[[FrameType], str]]:
    """What a training loop calls, by the names that torch gives it; of classes that are imported by now."""
    found: dict[CodeType, Callable[[FrameType], str]] = {}
    package = __name__.partition(".")[0]
    optimizers = sys.modules.get(f"{package}.optim.optimizer")
    classes = [] if optimizers is None else [optimizers.Optimizer]
    for cls in classes:  # grows
        classes += cls.__subclasses__()
        for name in ("step", "zero_grad"):
            code = getattr(cls.__dict__.get(name), "__code__", None)  # the outermost function, of a wrapped one
            if code is not None and name == "step" and code.co_name == "step":
                found[code] = _with_class("Optimizer.step#{}.step")
            elif code is not None:
                found[code] = _with_class("Optimizer.zero_grad#{}.zero_grad")
    loaders = sys.modules.get(f"{package}.utils.data.dataloader")
    if loaders is not None:
        found[loaders._BaseDataLoaderIter.__next__.__code__] = _with_class("enumerate(DataLoader)#{}.__next__")
    return found


class CalledFunctions:
    """What Python calls while a profile is on: opens and closes events of the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.operators: dict[CodeType, str] = _operators()
        self.annotations = _annotations()
        self.module_call: Any = None
        modules = sys.modules.get(f"{__name__.partition('.')[0]}.nn.modules.module")
        if recorder.modules and modules is not None:
            self.module_call = modules.Module.__call__.__code__
        #: Numbers of modules, of each class from 0 on, by which they are told apart.
        self.numbers: dict[int, str] = {}
        self.kept: list[Any] = []
        self.open: list[tuple[FrameType, FunctionEvent]] = []

    def start(self) -> None:
        self.before: Any = sys.getprofile()
        if self.before is None or isinstance(self.before, CalledFunctions):  # another profiler is left to its work
            sys.setprofile(self)

    def stop(self) -> None:
        if sys.getprofile() is self:
            sys.setprofile(self.before)
        self.open.clear()

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            code = frame.f_code
            name: Any = self.operators.get(code)
            if name is not None:
                self._begin(frame, name)
            elif code in self.annotations:
                self._begin(frame, self.annotations[code](frame)).is_user_annotation = True
            elif code is self.module_call:
                self._begin(frame, self._module_name(frame.f_locals["self"])).is_python_function = True
        elif event == "return" and self.open and self.open[-1][0] is frame:
            _, last = self.open.pop()
            if self.recorder.profile_memory and frame.f_code.co_filename in _FACTORIES and arg is not None:
                self.recorder.note_memory(last.cpu_children[0], arg)
            self.recorder.end(last)
        if self.before is not None:
            self.before(frame, event, arg)

    def _begin(self, frame: FrameType, name: str) -> FunctionEvent:
        event = self.recorder.begin(name)
        self.open.append((frame, event))
        if name.startswith("aten::"):
            if self.recorder.record_shapes:
                code = frame.f_code
                given = frame.f_locals
                self.recorder.describe(event, [given.get(n) for n in code.co_varnames[: code.co_argcount]], {})
            if frame.f_code.co_filename in _FACTORIES and name != "aten::empty":
                # The memory of a new tensor: NumPy takes and fills it in one, so that it has no time of its own.
                self.recorder.end(self.recorder.begin("aten::empty"))
        return event

    def _module_name(self, module: Any) -> str:
        if id(module) not in self.numbers:
            cls = type(module).__name__
            before = sum(name.rpartition("_")[0] == cls for name in self.numbers.values())
            self.numbers[id(module)] = f"{cls}_{before}"
            self.kept.append(module)  # so that no other gets its id
        return f"nn.Module: {self.numbers[id(module)]}"
