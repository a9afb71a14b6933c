"""Checkpointing: keep the inputs of a part of a model instead of all that its backward needs, and compute that again.

* recomputation.py: the way that ``use_reentrant=False`` goes, through saved-tensor hooks;
* reentrant.py: the older way, ``use_reentrant=True``, a backward pass inside a backward pass;
* selective.py: policies that keep the results of some operators;
* debug.py and ops/settings.py: errors that tell all, settings of a thread, random state.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from ...autograd.grad_mode import is_grad_enabled
from ...autograd.intercept import observing
from ...autograd.saved_tensors_hooks import saved_tensors_hooks
from ...random import rng_states
from .debug import debugging
from .recomputation import DETERMINISM_CHECKS, CheckpointError, Frame
from .reentrant import CheckpointFunction, detach_variable
from .selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    _CachedTorchDispatchMode,
    _CachingTorchDispatchMode,
    create_selective_checkpoint_contexts,
)
from .settings import (
    DefaultDeviceType,
    GraphExecGroup,
    check_backward_validity,
    get_device_states,
    noop_context_fn,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
    set_device_states,
    settings,
)

__all__ = [
    "checkpoint",
    "checkpoint_sequential",
    "CheckpointError",
    "CheckpointFunction",
    "check_backward_validity",
    "detach_variable",
    "get_device_states",
    "set_device_states",
    "noop_context_fn",
    "set_checkpoint_early_stop",
    "DefaultDeviceType",
    "set_checkpoint_debug_enabled",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
    "SAC_IGNORED_OPS",
    "GraphExecGroup",
]


def checkpoint(
    function: Callable,
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """``function(*args, **kwargs)``, without keeping what its backward needs: that calls the function again.

    With ``use_reentrant=False`` (recommended) everything that works on ``function(...)`` works on the result; with
    ``True`` only ``backward()`` without ``inputs=``, and only tensors among `args` themselves take part.

    `context_fn` gives two context managers, for the first call and for later ones.  `determinism_check` is
    ``"default"`` (what is recomputed must have the shape, dtype and device that it had) or ``"none"``.
    `debug` makes the errors of that check list all operators.  `early_stop` ends a later call as soon as it has
    computed what is needed.  `preserve_rng_state` has later calls draw the same random numbers.

    >>> import retrograd as torch
    >>> from retrograd.utils.checkpoint import checkpoint
    >>> x = torch.tensor([0., 1.], requires_grad=True)
    >>> y = checkpoint(lambda x: x.exp().exp().sum(), x, use_reentrant=False)
    >>> y.backward(); x.grad
    tensor([ 2.7183, 41.1936])
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, "
            "calling checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but "
            "if you need to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for "
            "more details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    if not use_reentrant:
        return _checkpoint_recomputing(
            function, args, kwargs, context_fn, determinism_check, debug, early_stop, preserve_rng_state
        )
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve_rng_state, *args)


def _checkpoint_recomputing(
    function: Callable,
    args: tuple,
    kwargs: dict[str, Any],
    context_fn: Callable,
    determinism_check: str,
    debug: bool,
    early_stop: bool,
    preserve_rng_state: bool,
) -> Any:
    on_error = None
    if debug if settings.debug is None else settings.debug:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        context_fn, on_error = debugging()
    if determinism_check not in DETERMINISM_CHECKS:
        raise ValueError(f"determinism_check should be one of {list(DETERMINISM_CHECKS)}, but got {determinism_check}")
    forward_context, recompute_context = context_fn()
    if not is_grad_enabled():
        return function(*args, **kwargs)
    frame = Frame(
        function,
        args,
        kwargs,
        recompute_context,
        DETERMINISM_CHECKS[determinism_check],
        early_stop if settings.early_stop is None else settings.early_stop,
        rng_states() if preserve_rng_state else None,
        on_error,
    )
    with saved_tensors_hooks(frame.pack, frame.unpack), observing(frame.watch), forward_context:
        result = function(*args, **kwargs)
        frame.forward_completed = True
        frame.settle()
    if not frame.forward_completed:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised during "
            "the checkpointed forward. This is not supported because checkpoint cannot return a value for a failed "
            "forward."
        )
    return result


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    *,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Run functions (or an ``nn.Sequential``) one after the other, in `segments` checkpoints; the last is not one.

    >>> import retrograd as torch
    >>> from retrograd.utils.checkpoint import checkpoint_sequential
    >>> x = torch.tensor(1., requires_grad=True)
    >>> y = checkpoint_sequential([torch.sin, torch.exp, torch.cos], 3, x, use_reentrant=False)
    >>> y.backward(); x.grad
    tensor(-0.9180)
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In "
            "version 2.9 we will raise an exception if use_reentrant is not passed. use_reentrant=False is "
            "recommended, but if you need to preserve the current default behavior, you can pass use_reentrant=True. "
            "Refer to docs for more details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(steps) // segments
    done = 0
    for _ in range(segments - 1):
        segment = _one_after_the_other(steps[done : done + size])
        input = checkpoint(segment, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
        done += size
    return _one_after_the_other(steps[done:])(input)


def _one_after_the_other(steps: Sequence[Callable]) -> Callable:
    def run(input: Any) -> Any:
        for step in steps:
            input = step(input)
        return input

    return run
