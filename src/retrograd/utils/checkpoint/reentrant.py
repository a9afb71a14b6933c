"""Checkpoints that run backward inside backward: ``use_reentrant=True``.

The function runs without recording; one node stands for all of it.  When the engine comes to that node, the function
runs again, recorded, on detached inputs, and a second backward pass through what it recorded gives the gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...amp import current_autocast, restored_autocast
from ...autograd.function import Function
from ...autograd.grad_mode import enable_grad, no_grad
from ...autograd.run_backward import backward
from ...core.state import local
from ...random import rng_states
from ...tensor import Tensor
from .settings import check_backward_validity, forked_rng


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Leaves with the values of `inputs`, that require grad as these do.

    >>> import retrograd as torch
    >>> from retrograd.utils.checkpoint import detach_variable
    >>> x, n = detach_variable((torch.ones(2, requires_grad=True) * 2, 3))
    >>> x.is_leaf, x.requires_grad, n
    (True, True, 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(
        value.detach().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value for value in inputs
    )


def is_checkpoint_valid() -> bool:
    """Does the running backward pass accumulate into all leaves? Only then may a node run a pass of its own."""
    task = local.state.graph_task
    return task is None or task.exec_info is None


class CheckpointFunction(Function):
    """The node of a reentrant checkpoint."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable, preserve_rng_state: bool, *args: Any) -> Any:  # type: ignore[override]
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.rng_state = rng_states() if preserve_rng_state else None
        ctx.autocast = current_autocast()
        ctx.tensor_positions = [i for i, value in enumerate(args) if isinstance(value, Tensor)]
        ctx.inputs = [None if isinstance(value, Tensor) else value for value in args]
        ctx.save_for_backward(*(args[i] for i in ctx.tensor_positions))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if not is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for position, tensor in zip(ctx.tensor_positions, ctx.saved_tensors, strict=True):
            inputs[position] = tensor
        detached = detach_variable(tuple(inputs))
        with restored_autocast(ctx.autocast), forked_rng(ctx.rng_state), enable_grad():
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        roots = [
            (output, grad)
            for output, grad in zip(outputs, grads, strict=True)
            if isinstance(output, Tensor) and output.requires_grad
        ]
        if not roots:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([output for output, _ in roots], [grad for _, grad in roots])
        return (None, None, *(value.grad if isinstance(value, Tensor) else None for value in detached))
