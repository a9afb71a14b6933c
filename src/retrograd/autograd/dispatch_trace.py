"""The dispatch trace: each operator as it is called, and what answers for it, one after the other.

It prints what torch prints when it is built with its trace (``TORCH_SHOW_DISPATCH_TRACE``), as far as the same happens
here: a call comes first to autograd (key ``AutogradCPU``), which records it, goes on to what keeps account of views and
versions (``ADInplaceOrView``, for views and in-place operators), and then to the kernel (``CPU``).  What torch's
kernels call in their turn (``as_strided``, ``resolve_conj``, ``fill_``) is not there: ours are made of NumPy.

The trace is an observer of operators (intercept.py) while it is on, so that it costs nothing when it is off.
Functions that are composed of operators (``matmul``), and those that make tensors of nothing (``ones``), are not
observed; Python's profiling hook says when they begin and end.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from types import CodeType, FrameType, SimpleNamespace
from typing import Any, NamedTuple, TextIO

from ..core.records import record_of
from ..core.state import ThreadState, local, process
from ..tensor import Tensor
from .intercept import change_modes, interceptor_of, set_observers

#: Functions of ours that torch has in Python, and no operator of that name.
NOT_OPERATORS: frozenset[str] = frozenset(
    """_segment_reduce _typed_storage adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices
    adaptive_max_pool3d_with_indices
    affine_grid apply_ as_subclass as_tensor asarray bfloat16 bool broadcast_shapes byte cdouble cfloat char
    conjugate cpu cross_entropy cuda dim_order double dropout1d dropout2d dropout3d dsmm embedding_sparse_gradient
    float fold fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices from_numpy frombuffer
    gather_sparse_gradient gaussian_nll_loss getitem grid_sample gumbel_softmax half hsmm int interpolate invert
    ipow is_shared is_storage is_tensor linear_cross_entropy lobpcg local_response_norm logsigmoid long lp_pool1d
    lp_pool2d lp_pool3d lu map2_ map_ max_unpool1d multi_head_attention_forward multilabel_soft_margin_loss new
    new_tensor normalize numpy pca_lowrank pos rdiv rfloordiv rlshift rmatmul rmod rpow rrshift rtruediv saddmm
    setitem share_memory_ short softmin spmm storage storage_type svd_lowrank tanhshrink tensor to_sparse_coo
    triplet_margin_with_distance_loss type unique unravel_index untyped_storage upsample upsample_bilinear
    upsample_nearest""".split()
)
#: Operators that torch calls as ``add.Tensor`` also beside a number, which it makes a tensor of.
_TAKE_NUMBERS_AS_TENSORS = frozenset(("add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_"))


class Call(NamedTuple):
    """One line of the trace: the operator, what answers for it, inside how many others, and the kind of call."""

    op: str
    key: str
    depth: int
    kind: str = "call"

    def __str__(self) -> str:
        return f"{' ' * (self.depth + 1)}[{self.kind}] op=[{self.op}], key=[{self.key}]"


class _Running:
    """A function of `_composites` that is running."""

    __slots__ = ("depth", "frame", "name")

    def __init__(self, frame: FrameType, name: str) -> None:
        self.frame = frame
        self.name = name
        #: Where what it calls stands; None as long as it has not been announced.
        self.depth: int | None = None


class dispatch_trace:
    """Print every operator that this thread calls, by torch's name for it, or collect them in ``calls``.

    In inference mode nothing is recorded, and only the kernel answers.  Backward passes are traced as well.

    >>> import retrograd as torch
    >>> a, x = torch.ones(2, 2, requires_grad=True), torch.ones(2, 1)
    >>> with torch.autograd.dispatch_trace():
    ...     y = (a @ x)[0].sum()
     [call] op=[aten::matmul], key=[AutogradCPU]
      [call] op=[aten::mm], key=[AutogradCPU]
       [redispatch] op=[aten::mm], key=[CPU]
     [call] op=[aten::select.int], key=[AutogradCPU]
      [redispatch] op=[aten::select.int], key=[ADInplaceOrView]
       [redispatch] op=[aten::select.int], key=[CPU]
     [call] op=[aten::sum], key=[AutogradCPU]
      [redispatch] op=[aten::sum], key=[CPU]
    >>> with torch.autograd.dispatch_trace(show=False) as trace:
    ...     y = x * 2
    >>> [(call.kind, call.op, call.key) for call in trace.calls]
    [('call', 'aten::mul.Tensor', 'AutogradCPU'), ('redispatch', 'aten::mul.Tensor', 'CPU')]

    The environment variable ``TORCH_SHOW_DISPATCH_TRACE`` switches it on for a whole program, on its standard error.
    """

    needs_tensors = True  # a backward pass on Tensors is made of operators

    def __init__(self, show: bool = True, file: TextIO | None = None) -> None:
        self.show = show
        self.file = file
        self.calls: list[Call] = []
        self.composites: dict[CodeType, list[tuple[str, Any]]] = _composites()
        self.threads = threading.local()
        self.profiling: Any = None

    def __enter__(self) -> dispatch_trace:
        state = local.state
        observers: tuple[Any, ...] = (*state.observers, self)
        interceptor = interceptor_of(observers)
        self.profiling = sys.getprofile()
        try:
            sys.setprofile(self.profile)
            state.observers, state.interceptor = observers, interceptor
        except BaseException:  # Note [Interrupts and modes] in state.py
            sys.setprofile(self.profiling)
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        state = local.state
        try:
            self._stop(state)
        except BaseException:
            self._stop(state)
            raise

    def _stop(self, state: ThreadState) -> None:
        sys.setprofile(self.profiling)
        set_observers(state, tuple([observer for observer in state.observers if observer is not self]))
        self.threads.running = []

    # ------------------------------------------------------------------------------------------------------- operators

    def __call__(
        self, operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any], proceed: Callable[[], Any]
    ) -> Any:
        overload = _operators().overload.overload_of(operator)
        packet, form = overload.overloadpacket.__name__, overload._overloadname
        device = _device_of(args, kwargs)
        record = record_of(operator)
        keys = [device]
        if record is not None:
            if len(args) > 1 and packet not in _TAKE_NUMBERS_AS_TENSORS:
                wanted = "Tensor" if isinstance(args[1], Tensor) else "Scalar"
                form = wanted if wanted in record.overloads else form
            if record.view or record.writes:
                keys.insert(0, "ADInplaceOrView")
        elif operator is Tensor.detach:
            keys.insert(0, "ADInplaceOrView")
        if not local.state.inference:
            keys.insert(0, f"Autograd{device}")
        self._add(f"aten::{packet}" + (f".{form}" if form != "default" else ""), keys, self._announce(packet))
        self.threads.within = True
        try:
            return proceed()
        finally:
            self.threads.within = False

    def _add(self, op: str, keys: list[str], depth: int) -> None:
        for further, key in enumerate(keys):
            call = Call(op, key, depth + further, "redispatch" if further else "call")
            self.calls.append(call)
            if self.show:
                print(call, file=self.file)

    # ------------------------------------------------------------------------------------- what operators are called by

    def profile(self, frame: FrameType, event: str, arg: Any) -> None:
        """Called by Python when a function begins or ends, while the trace is on."""
        if event == "call":
            candidates = self.composites.get(frame.f_code)
            if candidates is not None and not getattr(self.threads, "within", False):
                self._running().append(_Running(frame, _name_of(candidates, frame)))
        elif event == "return" and frame.f_code in self.composites:
            running = self._running()
            if running and running[-1].frame is frame:
                ended = running[-1]
                if ended.depth is None:
                    self._without_operators(ended.name, frame)
                running.pop()
        if callable(self.profiling):
            self.profiling(frame, event, arg)

    def _running(self) -> list[_Running]:
        running: list[_Running] | None = getattr(self.threads, "running", None)
        if running is None:
            running = self.threads.running = []
        return running

    def _announce(self, inner: str) -> int:
        """Print what is running and has not been announced; the depth of what it calls, which is `inner`."""
        running = self._running()
        depth = 0
        for position, one in enumerate(running):
            if one.depth is None:
                # What only prepares the arguments of an operator of its own name is not worth a line.
                called = running[position + 1].name if position + 1 < len(running) else inner
                if one.name == called:
                    one.depth = depth
                else:
                    self._add(_aten_name(one.name), [f"Autograd{_device_of((), one.frame.f_locals)}"], depth)
                    one.depth = depth + 1
            depth = one.depth
        return depth

    def _without_operators(self, name: str, frame: FrameType) -> None:
        """A function that has ended, and called no operator: it computes itself."""
        depth = self._announce(name)
        has_tensor = any(isinstance(value, Tensor) for value in _arguments(frame))
        device = "CPU" if not has_tensor else _device_of((), frame.f_locals)
        first = f"Autograd{device}" if has_tensor else "BackendSelect"
        self._add(_aten_name(name), [first, device] if not (has_tensor and local.state.inference) else [device], depth)


def _arguments(frame: FrameType) -> list[Any]:
    code = frame.f_code
    return [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]


@cache
def _composites() -> dict[CodeType, list[tuple[str, Any]]]:
    """The functions that are no operators of the table, by their code, each with the name of torch's operator."""
    found: dict[CodeType, list[tuple[str, Any]]] = {}
    for space, functions in _operators().registry.DECLARED.items():
        for title, f in functions.items():
            name = aten_name_of(space, title, f)
            of_the_class = f.__module__.startswith("retrograd.tensor.")  # stride(), requires_grad_(): no operators run
            if name not in NOT_OPERATORS and hasattr(f, "__code__") and not of_the_class:
                same_code = found.setdefault(getattr(f, "body", f).__code__, [])  # (ops/override_switch.py)
                if all(other is not f for _, other in same_code):
                    same_code.append((name, f))
    return found


def aten_name_of(space: str, title: str, function: Any) -> str:
    """What torch's operator would be called that a function of ours in this namespace does the work of."""
    name = function.__name__ if function.__name__ in (title, f"{space}_{title}") else title
    name = name.strip("_") if name.startswith("__") else name
    return f"{space}_{name}" if space in ("linalg", "fft", "special") and not name.startswith(f"{space}_") else name


def _name_of(candidates: list[tuple[str, Any]], frame: FrameType) -> str:
    """The name of the function that runs in a frame, of those that have its code and differ in what they close over."""
    names = frame.f_code.co_freevars
    for name, function in candidates[1:]:
        cells = function.__closure__ or ()
        if all(frame.f_locals.get(var) is cell.cell_contents for var, cell in zip(names, cells, strict=True)):
            return name
    return candidates[0][0]


def _aten_name(name: str) -> str:
    overload = _operators().signatures.overloads_of_composites(name)[0]
    return f"aten::{name}" if overload == "default" else f"aten::{name}.{overload}"


def _operators() -> Any:
    """What operators are called (`overload`, `signatures`), and which are declared (`registry`)."""
    from ..ops import overload, registry, signatures  # operators are made of autograd

    return SimpleNamespace(overload=overload, registry=registry, signatures=signatures)


def _device_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    for value in (*args, *kwargs.values()):
        if isinstance(value, (tuple, list)) and value:
            value = value[0]
        if isinstance(value, Tensor):
            return value.device.type.upper()
    return "CPU"


# ---------------------------------------------------------------------------------------------------- a whole program


def show_if_asked() -> None:
    """Trace all threads from now on, if the environment asks for it. Called when the package is imported."""
    if "TORCH_SHOW_DISPATCH_TRACE" not in os.environ:
        return
    trace = dispatch_trace(file=sys.stderr)

    def change() -> None:
        process.modes = (*process.modes, trace)

    change_modes(change)
    sys.setprofile(trace.profile)
    threading.setprofile(trace.profile)
