"""The dispatch trace: each operator as it is called, and each kernel that it calls.

It is an observer of the thread's operators (intercept.py) while it is on, so that it costs nothing when it is off.
Operators that are written in terms of others (``matmul``) are not observed themselves; they are found on
the stack of the operators that they call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple, TextIO

from ..core.state import ThreadState, local
from ..tensor import Tensor
from .intercept import interceptor_of, set_observers


class Call(NamedTuple):
    """One line of the trace: the operator, what answered for it, and inside how many others."""

    op: str
    key: str
    depth: int

    def __str__(self) -> str:
        return f"{' ' * self.depth}[call] op=[{self.op}], key=[{self.key}]"


class dispatch_trace:
    """Print every operator that this thread calls, by torch's name for it, or collect them in ``calls``.

    A call comes first to autograd (key ``AutogradCPU``), which records it, and then to the kernel (key ``CPU``).  In
    inference mode nothing is recorded, and only the kernel answers.  Backward passes are traced as well.

    >>> import retrograd as torch
    >>> a, x = torch.ones(2, 2, requires_grad=True), torch.ones(2, 1)
    >>> with torch.autograd.dispatch_trace():
    ...     y = (a @ x).sum()
    [call] op=[matmul], key=[AutogradCPU]
     [call] op=[mm], key=[AutogradCPU]
      [call] op=[mm], key=[CPU]
    [call] op=[sum], key=[AutogradCPU]
     [call] op=[sum], key=[CPU]
    >>> with torch.autograd.dispatch_trace(show=False) as trace:
    ...     y = x * 2
    >>> trace.calls
    [Call(op='mul.Tensor', key='AutogradCPU', depth=0), Call(op='mul.Tensor', key='CPU', depth=1)]
    """

    def __init__(self, show: bool = True, file: TextIO | None = None) -> None:
        self.show = show
        self.file = file
        self.calls: list[Call] = []
        #: The composite operators that are running and have been announced, outermost first.
        self.composites: list[FrameType] = []
        self.codes: dict[Any, str] = _composite_codes()

    def __enter__(self) -> dispatch_trace:
        state = local.state
        observers = (*state.observers, self._observe)
        interceptor = interceptor_of(observers)
        state.observers, state.interceptor = observers, interceptor
        return self

    def __exit__(self, *exc_info: object) -> None:
        state = local.state
        self.composites = []
        try:
            self._stop(state)
        except BaseException:  # Note [Interrupts and modes] in state.py
            self._stop(state)
            raise

    def _stop(self, state: ThreadState) -> None:
        set_observers(state, tuple([observer for observer in state.observers if observer != self._observe]))

    def _observe(
        self, operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any], proceed: Callable[[], Any]
    ) -> Any:
        device = _device_of(args, kwargs)
        from ..ops.overload import overload_of  # operators are made of autograd

        overload = overload_of(operator)
        name = overload.name().removeprefix("aten::")
        depth = self._announce_composites(sys._getframe(1), overload.overloadpacket.__name__, device)
        if not local.state.inference:
            self._add(name, f"Autograd{device}", depth)
            depth += 1
        self._add(name, device, depth)
        return proceed()

    _observe.needs_tensors = True  # type: ignore[attr-defined]  # a pass on Tensors is made of operators

    def _announce_composites(self, frame: FrameType | None, operator: str, device: str) -> int:
        """Note the composite operators on the stack that are new; how many there are below `operator`."""
        codes = self.codes
        running: list[FrameType] = []
        last = operator
        while frame is not None:
            name = codes.get(frame.f_code)
            # One that only prepares the arguments of what has its own name is not worth a line.
            if name is not None and name != last:
                running.append(frame)
                last = name
            frame = frame.f_back
        running.reverse()
        for depth, composite in enumerate(running):
            if depth >= len(self.composites) or self.composites[depth] is not composite:
                self._add(codes[composite.f_code], f"Autograd{device}", depth)
        self.composites = running
        return len(running)

    def _add(self, op: str, key: str, depth: int) -> None:
        call = Call(op, key, depth)
        self.calls.append(call)
        if self.show:
            print(call, file=self.file)


def _composite_codes() -> dict[Any, str]:
    """code object -> name, for every composite operator that has its own."""
    from ..ops.registry import DECLARED  # operators are made of autograd

    names: dict[Any, set[str]] = {}
    for name, f in (*DECLARED["Tensor"].items(), *DECLARED["torch"].items(), *DECLARED["internal"].items()):
        if hasattr(f, "__code__"):
            names.setdefault(f.__code__, set()).add(name[2:-2] if name.startswith("__") else name)
    return {code: of_code.pop() for code, of_code in names.items() if len(of_code) == 1}


def _device_of(args: tuple[Any, ...], kwargs: dict[Any, Any]) -> str:
    for value in (*args, *kwargs.values()):
        if isinstance(value, (tuple, list)) and value:
            value = value[0]
        if isinstance(value, Tensor):
            return value.device.type.upper()
    return "CPU"
