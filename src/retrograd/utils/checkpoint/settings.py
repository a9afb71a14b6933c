"""What surrounds a checkpoint: the settings of a thread, groups of backward calls, and the random state."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from ...autograd.state import local
from ...random import default_generator
from ...tensor import Tensor


class _Settings(threading.local):
    """None: what the call of ``checkpoint`` says holds."""

    early_stop: bool | None = None
    debug: bool | None = None


settings = _Settings()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Say for all checkpoints made meanwhile whether recomputation stops as soon as it has what is needed.

    It counts for the forward pass; the backward pass may run later.

    >>> import retrograd as torch
    >>> from retrograd.utils.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> def f(x):
    ...     y = x.sin()
    ...     print("the end")
    ...     return y
    >>> x = torch.tensor(1., requires_grad=True)
    >>> with set_checkpoint_early_stop(False):
    ...     y = checkpoint(f, x, use_reentrant=False)
    the end
    >>> y.backward()
    the end
    """
    before, settings.early_stop = settings.early_stop, enable
    try:
        yield
    finally:
        settings.early_stop = before


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Say for all checkpoints made meanwhile whether their errors list all operators that ran.

    It overrules the ``debug`` argument of ``checkpoint``; None leaves the decision to that.

    >>> from retrograd.utils.checkpoint import set_checkpoint_debug_enabled
    >>> with set_checkpoint_debug_enabled(True):
    ...     pass
    """
    before, settings.debug = settings.debug, enabled
    try:
        yield
    finally:
        settings.debug = before


class GraphExecGroup:
    """Backward calls under one group recompute a checkpoint once for all of them.

    No two of the calls may need the same saved tensor: it is let go when it has been used.

    >>> import retrograd as torch
    >>> from retrograd.utils.checkpoint import GraphExecGroup, checkpoint
    >>> def f(x):
    ...     print("running")
    ...     y = x.sin()
    ...     return y, y.cos()
    >>> x = torch.ones(2, requires_grad=True)
    >>> y, z = checkpoint(f, x, use_reentrant=False)
    running
    >>> with GraphExecGroup():
    ...     grad, = torch.autograd.grad(z.sum(), y)
    ...     grad, = torch.autograd.grad(y, x, grad)
    running
    """

    def __enter__(self) -> GraphExecGroup:
        state = local.state
        if state.graph_exec_group is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested. Already inside group {state.graph_exec_group}"
            )
        state.graph_exec_group = self
        return self

    def __exit__(self, *exc_info: object) -> None:
        local.state.graph_exec_group = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return local.state.graph_exec_group


# ------------------------------------------------------------------------------------------------------- random numbers


@contextmanager
def forked_rng(state: Tensor | None) -> Iterator[None]:
    """Draw from `state` on for a while, then go on as if nothing had been drawn. None: draw as usual."""
    if state is None:
        yield
        return
    before = default_generator.get_state()
    default_generator.set_state(state)
    try:
        yield
    finally:
        default_generator.set_state(before)


class DefaultDeviceType:
    """The device type whose random state a checkpoint keeps when its arguments do not tell.

    >>> from retrograd.utils.checkpoint import DefaultDeviceType
    >>> DefaultDeviceType.get_device_type()
    'cpu'
    """

    _default_device_type: str = "cpu"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        return DefaultDeviceType._default_device_type


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The accelerators that the arguments are on and the states of their generators.

    Random numbers come from one generator, of the host, whatever the device: so there are none to list.
    """
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Set generator states of accelerators: what `get_device_states` gave."""
    if len(devices) or len(states):
        raise ValueError("retrograd draws all random numbers from default_generator: there are no device states to set")


def noop_context_fn() -> tuple[Any, Any]:
    """The `context_fn` of a checkpoint that has none."""
    return nullcontext(), nullcontext()


def check_backward_validity(inputs: Any) -> None:
    """Warn if nothing that a reentrant checkpoint is given requires grad."""
    if not any(isinstance(value, Tensor) and value.requires_grad for value in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)
