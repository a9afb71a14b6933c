"""Anomaly mode: find the forward operation whose gradient failed or came out as NaN.

While it is on, it is an observer of all threads' operators (intercept.py): each node that is made remembers the line
of its forward call (``metadata["traceback_"]``) and, if it was made by a backward pass, the node that was running
then (``metadata["parent_"]``).  A backward pass that runs meanwhile has its nodes called through `Anomaly.watch`,
which looks at what they give; when it fails, the engine calls `explain_error`, which warns as torch does and puts the
same text on the exception, where it is seen even if warnings are not.
"""

from __future__ import annotations

import sys
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from .. import kernels
from ..core.description import Description
from ..core.records import masking_nodes
from ..core.state import ThreadState, local, process
from ..core.where import Location, is_user_code, user_location
from ..tensor import Tensor
from ..tensor.special import bare
from .intercept import change_modes, new_node, results_of
from .node import name_of

if TYPE_CHECKING:
    from .node import Node


def is_anomaly_enabled() -> bool:
    """Is anomaly mode on? It is so in all threads or in none."""
    return current_anomaly() is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Does anomaly mode look for NaN in backward? True where it is off: that is its default."""
    anomaly = current_anomaly()
    return anomaly is None or anomaly.check_nan


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off, in all threads; `set_detect_anomaly` does it for a while, too."""
    _set(Anomaly(check_nan, False, False) if enabled else None)


class set_detect_anomaly:
    """Switches anomaly mode on or off, in all threads: at once, and until the ``with`` block ends if used as one.

    >>> import retrograd as torch
    >>> with torch.autograd.set_detect_anomaly(True):
    ...     torch.is_anomaly_enabled()
    True
    """

    def __init__(self, mode: bool, check_nan: bool = True, *, check_inf: bool = False, forward: bool = False) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_anomaly_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self.before: Anomaly | None = current_anomaly()
        try:
            _set(Anomaly(check_nan, check_inf, forward) if mode else None)
        except BaseException:  # Note [Interrupts and modes] in state.py
            _set(self.before)
            raise

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        try:
            _set(self.before)
        except BaseException:  # Note [Interrupts and modes] in state.py
            _set(self.before)
            raise


class detect_anomaly(set_detect_anomaly):
    """Find what makes a backward pass fail or give NaN; slow, for debugging.

    With `check_nan`, a NaN in a gradient is an error; with `check_inf`, an infinity too.  With `forward`, the first
    operation whose *forward* result has a NaN or an infinity that none of its inputs had is an error at once.

    >>> import retrograd as torch
    >>> x = torch.tensor([0., 1.], requires_grad=True)
    >>> with torch.autograd.detect_anomaly():
    ...     (x.sqrt() * torch.tensor([0., 1.])).sum().backward()
    Traceback (most recent call last):
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    ...
    """

    def __init__(self, check_nan: bool = True, *, check_inf: bool = False, forward: bool = False) -> None:
        self.arguments: tuple[bool, bool, bool] = (check_nan, check_inf, forward)
        self.before = None
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.before = current_anomaly()
        try:
            _set(Anomaly(*self.arguments))
        except BaseException:
            _set(self.before)
            raise


class AnomalyMode:
    """Torch's name for the switch.

    >>> from retrograd.autograd.anomaly_mode import AnomalyMode
    >>> AnomalyMode.is_enabled(), AnomalyMode.should_check_nan()
    (False, True)
    """

    is_enabled = staticmethod(is_anomaly_enabled)
    should_check_nan = staticmethod(is_anomaly_check_nan_enabled)
    set_enabled = staticmethod(set_anomaly_enabled)


def current_anomaly() -> Anomaly | None:
    """Anomaly mode, if it is on."""
    for mode in process.modes:
        if isinstance(mode, Anomaly):
            return mode
    return None


def _set(anomaly: Anomaly | None) -> None:
    def change() -> None:
        others = [mode for mode in process.modes if not isinstance(mode, Anomaly)]
        # Outermost: it sees what the other observers have made of a call.
        process.modes = tuple(others if anomaly is None else (*others, anomaly))

    change_modes(change)


def how_it_was_made(state: ThreadState, tensor: Tensor) -> str | None:
    """How a tensor lost its history, if anomaly mode has seen it."""
    reference, why = state.lost_history.get(id(tensor), (None, None))
    return why if reference is not None and reference() is tensor else None


class Anomaly:
    """Anomaly mode, as an observer of operators."""

    def __init__(self, check_nan: bool, check_inf: bool, forward: bool) -> None:
        self.check_nan = check_nan
        self.check_inf = check_inf
        self.forward = forward

    def __call__(
        self, operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any], proceed: Callable[[], Any]
    ) -> Any:
        state = local.state
        since = state.sequence_nr
        # Before the call: an in-place operator replaces what was there.
        already = _kinds_in((args, kwargs)) if self.forward else frozenset()
        result = proceed()
        node = new_node(result, since)
        if node is not None:
            self.remember_forward(state, node)
        else:
            self._note_lost_history(state, operator, args, kwargs, result)
        if self.forward:
            self._check_forward(operator, already, result)
        return result

    def remember_forward(self, state: ThreadState, node: Node) -> None:
        """Note on a new node where it was made, and by which node if a backward pass made it."""
        metadata = node.metadata
        metadata["traceback_"] = ForwardTraceback.here()
        if state.current_node is not None:
            metadata["parent_"] = state.current_node

    def _check_forward(self, operator: Callable[..., Any], already: frozenset[str], result: Any) -> None:
        for position, tensor in enumerate(results_of(result)):
            for kind in sorted(_kinds_of(bare(tensor)) - already):
                if kind == "nan" and not self.check_nan:
                    continue
                raise RuntimeError(
                    f"Operator '{operator.__name__}' returned {kind} values in its {position}th output, in the forward "
                    f"pass, and none of its inputs had any. It was called here:\n{''.join(ForwardTraceback.here())}"
                )

    def _note_lost_history(
        self,
        state: ThreadState,
        operator: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[Any, Any],
        result: Any,
    ) -> None:
        """Remember why results of something that requires grad do not, and pass that on to what is made of them."""
        why = None
        for tensor in _tensors_in((args, kwargs)):
            why = how_it_was_made(state, tensor)
            if why is None and tensor.requires_grad:
                here = user_location()
                if operator is Tensor.detach:
                    why = f"it comes from a tensor that was detached at {here}."
                elif not state.grad_enabled:
                    why = f"it comes from '{operator.__name__}', called under no_grad() at {here}."
            if why is not None:
                break
        if why is None:
            return
        for tensor in results_of(result):
            if not tensor.requires_grad:
                key, lost = id(tensor), state.lost_history
                reference = weakref.ref(tensor, lambda _, key=key, lost=lost: lost.pop(key, None))  # type: ignore[misc]
                lost[key] = (reference, why)

    # --------------------------------------------------------------------------------------------------- in backward

    def watch(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call` with a look at what each node gives, for one backward pass."""
        fed_by: dict[Node, list[Node]] = {}

        def watched(node: Node, edges: tuple[Any, ...], grads: Sequence[Any], as_tensors: bool) -> Sequence[Any]:
            grads = tuple(grads)
            outputs = call(node, edges, grads, as_tensors)
            for position, output in enumerate(outputs):
                if output is None:
                    continue
                kinds = _kinds_of(bare(output) if as_tensors else output)
                for kind, wanted in (("nan", self.check_nan), ("inf", self.check_inf)):
                    if wanted and kind in kinds:
                        raise self._error(node, grads, output, position, kind, fed_by)
            for edge in edges:
                if edge is not None:
                    fed_by.setdefault(edge[0], []).append(node)
            return outputs

        return watched

    def _error(
        self, node: Node, grads: Sequence[Any], output: Any, position: int, kind: str, fed_by: dict[Node, list[Node]]
    ) -> RuntimeError:
        error = RuntimeError(f"Function '{name_of(node)}' returned {kind} values in its {position}th output.")
        note = _zero_times_infinity(node, grads, output, fed_by) if kind == "nan" else None
        if note is not None:
            error.add_note(note)
        return error


# --------------------------------------------------------------------------------------------------- what is looked for


def _kinds_of(array: Any) -> frozenset[str]:
    """Which of 'nan' and 'inf' are in an array, or in the values of a special tensor."""
    if isinstance(array, Description):
        return frozenset().union(*[_kinds_of(getattr(array, name)) for name in array.parts])
    if array.dtype.kind not in "fcVW" or kernels.isfinite(array).all():
        return frozenset()
    return frozenset(kind for kind, test in (("nan", kernels.isnan), ("inf", kernels.isinf)) if test(array).any())


def _kinds_in(values: Any) -> frozenset[str]:
    """The same for everything in the arguments of a call."""
    if isinstance(values, Tensor):
        return _kinds_of(bare(values))
    if isinstance(values, dict):
        values = tuple(values.values())
    if isinstance(values, (tuple, list)):
        return frozenset().union(*(_kinds_in(value) for value in values))
    if isinstance(values, (float, complex)) and not abs(values) < float("inf"):
        return frozenset(["nan" if values != values else "inf"])
    return frozenset()


def _tensors_in(values: Any) -> Iterator[Tensor]:
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, (tuple, list, dict)):
        for value in values.values() if isinstance(values, dict) else values:
            yield from _tensors_in(value)


def _zero_times_infinity(node: Node, grads: Sequence[Any], output: Any, fed_by: dict[Node, list[Node]]) -> str | None:
    """Words for a NaN that is an incoming 0 times an infinite derivative, as below a mask; None if it is not that."""
    array = bare(output) if isinstance(output, Tensor) else output
    if isinstance(array, Description):
        return None
    gave = kernels.isnan(array)
    for grad in grads:
        if grad is None:
            continue
        got = bare(grad) if isinstance(grad, Tensor) else grad
        if isinstance(got, Description) or got.shape != array.shape:
            continue
        if kernels.isnan(got).any() or (got[gave] != 0).any():
            continue
        mask = _mask_above(node, fed_by)
        name = name_of(node)
        text = (
            f"The NaN of {name} is 0 · inf: the gradient that came in is 0 for the elements in question, and the "
            "derivative of the operation there is infinite."
        )
        if mask is not None:
            text += (
                f" The zeros come from {name_of(mask)}: those elements are masked out, but the operation was computed "
                "for them as well."
            )
        return (
            text
            + " Mask the input of the operation too, so that its derivative is finite everywhere: "
            + "torch.where(mask, f(torch.where(mask, x, 1.0)), 0.0)."
        )
    return None


def _mask_above(node: Node, fed_by: dict[Node, list[Node]]) -> Node | None:
    seen = {node}
    queue = [node]
    for current in queue:  # grows while it is walked
        for above in fed_by.get(current, ()):
            if name_of(above) in masking_nodes():
                return above
            if above not in seen:
                seen.add(above)
                queue.append(above)
    return None


# --------------------------------------------------------------------------------------------------- what is remembered


class ForwardTraceback(Sequence):
    """The stack of a forward call: strings as `traceback.format_stack` gives them, made when they are looked at."""

    def __init__(self, locations: list[Location]) -> None:
        self.locations = locations

    @classmethod
    def here(cls) -> ForwardTraceback:
        """The user's part of the stack, outermost first."""
        frame: Any = sys._getframe(1)
        while frame is not None and not is_user_code(frame.f_code):
            frame = frame.f_back
        locations = []
        while frame is not None:
            locations.append(Location(frame.f_code, frame.f_lasti))
            frame = frame.f_back
        locations.reverse()
        return cls(locations)

    @property
    def lines(self) -> list[str]:
        return traceback.format_list(
            [traceback.FrameSummary(place.code.co_filename, place.line, place.code.co_name) for place in self.locations]
        )

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: Any) -> Any:
        return self.lines[index]

    def __len__(self) -> int:
        return len(self.locations)

    def __iter__(self) -> Iterator[str]:
        return iter(self.lines)

    def __repr__(self) -> str:
        return repr(self.lines)


# ----------------------------------------------------------------------------------------------------- what is reported


def explain_error(state: ThreadState, error: Exception) -> None:
    """A backward pass has failed: say where in the forward pass the node was made. Called by the engine."""
    node = state.current_node
    if node is None or current_anomaly() is None:
        return
    texts = []
    stack = _traceback_of(node)
    if stack is None:
        texts.append(
            f"Error detected in {name_of(node)}. No forward pass information available. Enable detect anomaly during "
            "forward pass for more information."
        )
    else:
        texts.append(
            f"Error detected in {name_of(node)}. Traceback of forward call that caused the error:\n{''.join(stack)}"
        )
    node = _parent_of(node)
    while node is not None:
        stack = _traceback_of(node)
        if stack is None:
            texts.append(
                f"\n\nPrevious calculation was induced by {name_of(node)}. No forward pass information available. "
                "Enable detect anomaly during forward pass for more information."
            )
        else:
            texts.append(
                f"\n\nPrevious calculation was induced by {name_of(node)}. Traceback of forward call that induced the "
                f"previous calculation:\n{''.join(stack)}"
            )
        node = _parent_of(node)
    for text in texts:
        error.add_note(text.strip())
        _warn(text)


def _warn(text: str) -> None:
    try:
        warnings.warn(text, stacklevel=_depth_of_user())
    except Warning:
        # Turned into an error, which must not hide the real one.
        print(text, file=sys.stderr)


def _depth_of_user() -> int:
    depth, frame = 1, sys._getframe(1)
    while frame is not None and not is_user_code(frame.f_code):
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    return depth


def _traceback_of(node: Node) -> Sequence[str] | None:
    return None if node.extras is None else node.extras.metadata.get("traceback_")


def _parent_of(node: Node) -> Node | None:
    return None if node.extras is None else node.extras.metadata.get("parent_")
