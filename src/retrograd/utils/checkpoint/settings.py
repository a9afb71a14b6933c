"""What surrounds a checkpoint: the settings of a thread, groups of backward calls, and the random state."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from ...autograd.grad_mode import _Mode
from ...core.state import local
from ...random import Generator, fork_rng, generator_of, set_rng_states
from ...tensor import Tensor
from .._pytree import tree_leaves


class _Settings(threading.local):
    """None: what the call of ``checkpoint`` says holds."""

    early_stop: bool | None = None
    debug: bool | None = None


settings: _Settings = _Settings()


class set_checkpoint_early_stop(_Mode):
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

    def __init__(self, enable: bool) -> None:
        self.enable = enable
        self.before: Any = None

    def __enter__(self) -> None:
        self.before = settings.early_stop, self.before
        settings.early_stop = self.enable

    def __exit__(self, *exc_info: object) -> None:
        settings.early_stop, self.before = self.before

    def clone(self) -> set_checkpoint_early_stop:
        return set_checkpoint_early_stop(self.enable)


class set_checkpoint_debug_enabled(_Mode):
    """Say for all checkpoints made meanwhile whether their errors list all operators that ran.

    It overrules the ``debug`` argument of ``checkpoint``; None leaves the decision to that.

    >>> from retrograd.utils.checkpoint import set_checkpoint_debug_enabled
    >>> with set_checkpoint_debug_enabled(True):
    ...     pass
    """

    def __init__(self, enabled: bool | None) -> None:
        self.enabled = enabled
        self.before: Any = None

    def __enter__(self) -> None:
        self.before = settings.debug, self.before
        settings.debug = self.enabled

    def __exit__(self, *exc_info: object) -> None:
        settings.debug, self.before = self.before

    def clone(self) -> set_checkpoint_debug_enabled:
        return set_checkpoint_debug_enabled(self.enabled)


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


class forked_rng(fork_rng):
    """Draw from `states` on for a while, then go on as if nothing had been drawn. None: draw as usual."""

    def __init__(self, states: list[tuple[Generator, Any]] | None) -> None:
        super().__init__(enabled=states is not None)
        self.states = states

    def __enter__(self) -> None:
        super().__enter__()
        if self.states is not None:
            try:
                set_rng_states(self.states)
            except BaseException:
                set_rng_states(self.before)
                raise


class DefaultDeviceType:
    """The device type whose random state a checkpoint keeps when its arguments do not tell.

    >>> from retrograd.utils.checkpoint import DefaultDeviceType
    >>> DefaultDeviceType.get_device_type()
    'cpu'
    """

    _default_device_type: str = "cpu"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Change that kind of device."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The kind of device whose random numbers are restored if the arguments do not tell."""
        return DefaultDeviceType._default_device_type


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The accelerators that the arguments (or tensors inside them) are on, and the states of their generators.

    >>> from retrograd.utils.checkpoint import get_device_states
    >>> get_device_states(1, "no tensor on a device")
    ([], [])
    """
    tensors = [leaf for leaf in tree_leaves(args) if isinstance(leaf, Tensor)]
    devices = sorted({tensor.device.index or 0 for tensor in tensors if tensor.device.type == "cuda"})
    return devices, [generator_of(f"cuda:{number}").get_state() for number in devices]


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Set generator states of accelerators: what `get_device_states` gave."""
    if device_type not in (None, "cuda", "cpu"):
        raise ValueError(f"there are no generators of {device_type!r}: leave device_type away")
    for number, state in zip(devices, states, strict=True):
        generator_of(f"cuda:{number}").set_state(state)


def noop_context_fn() -> tuple[Any, Any]:
    """The `context_fn` of a checkpoint that has none."""
    return nullcontext(), nullcontext()


def check_backward_validity(inputs: Any) -> None:
    """Warn if nothing that a reentrant checkpoint is given requires grad."""
    if not any(isinstance(value, Tensor) and value.requires_grad for value in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)
