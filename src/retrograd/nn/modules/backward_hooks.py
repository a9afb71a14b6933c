"""Full backward hooks of one call of a module.

Note [Backward hooks of modules]
A module is not a node of the graph, so to see the gradients that enter and leave it, two identity nodes are put around
it: all inputs go through one before `forward`, all outputs through another after it.  The gradients of the outputs are
what the second identity gets in the backward pass (a pre-hook there); the gradients of the inputs are what the first
one gives (a post-hook there).  If no input requires grad there is no first identity, and the hooks run at the second.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ...autograd.function import Function
from ...autograd.grad_mode import is_grad_enabled
from ...ops import namespace as ops
from ...tensor import Tensor

if TYPE_CHECKING:
    from .module import Module


@cache
def _identity() -> Any:
    """The identity that is put around a module, as a differentiable function of any number of tensors."""
    class BackwardHookFunction(Function):
        @staticmethod
        def forward(ctx: Any, *tensors: Tensor) -> Any:
            ctx.mark_non_differentiable(*[tensor for tensor in tensors if not tensor.requires_grad])
            return tensors

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads

    return BackwardHookFunction


class BackwardHooks:
    """The full backward hooks of one call of a module; see Note [Backward hooks of modules]."""

    def __init__(
        self, module: Module, hooks: Sequence[Callable[..., Any]], pre_hooks: Sequence[Callable[..., Any]]
    ) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.inputs: list[int] | None = None  # which arguments are tensors; None: none of them requires grad
        self.outputs: list[int] | None = None
        self.n_inputs: int = 0
        self.n_outputs: int = 0
        self.kinds: list[tuple[Any, Any]] = []

    def around_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, with an identity before `forward`."""
        self.n_inputs = len(args)
        args, self.inputs, node = _through_identity(args)
        self.kinds = [(args[i].shape, args[i].dtype) for i in self.inputs or ()]
        if node is not None:
            node.register_hook(self._on_grad_inputs)
        return args

    def around_outputs(self, result: Any) -> Any:
        """The outputs, with an identity after `forward`."""
        outputs = result if isinstance(result, tuple) else (result,)
        self.n_outputs = len(outputs)
        outputs, self.outputs, node = _through_identity(outputs)
        if node is None:
            return result
        node.register_prehook(self._on_grad_outputs)
        return outputs if isinstance(result, tuple) else outputs[0]

    def _on_grad_outputs(self, grads: tuple[Any, ...]) -> tuple[Any, ...] | None:
        assert self.outputs is not None
        grad_outputs = _spread(grads, self.outputs, self.n_outputs)
        for hook in self.pre_hooks:
            replacement = hook(self.module, grad_outputs)
            if replacement is None:
                continue
            replacement = replacement if isinstance(replacement, tuple) else (replacement,)
            _check_count("grad_output", "Backward pre hook", replacement, grad_outputs)
            grad_outputs = replacement
        self.grad_outputs = grad_outputs
        if self.inputs is None:
            self._run_without_inputs()
        return tuple(grad_outputs[i] for i in self.outputs) if self.pre_hooks else None

    def _run_without_inputs(self) -> None:
        """No gradient of an input will ever be computed: the hooks run with None for each."""
        if self.hooks:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                "inputs require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch."
                "nn.Module.register_full_backward_hook for more details.",
                UserWarning,
                stacklevel=2,
            )
        for hook in self.hooks:
            replacement = hook(self.module, (None,) * self.n_inputs, self.grad_outputs)
            if replacement is not None and not (
                isinstance(replacement, tuple) and all(grad is None for grad in replacement)
            ):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )
        self.grad_outputs = None

    def _on_grad_inputs(self, grads: tuple[Any, ...], _: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if self.grad_outputs is None:
            return None  # the backward pass came around the outputs of the module
        assert self.inputs is not None
        # Every tensor has a gradient here; that of one that does not require grad, or was not used, is zero.
        defined = [
            ops.zeros(shape, dtype=dtype) if grad is None else grad
            for grad, (shape, dtype) in zip(grads, self.kinds, strict=True)
        ]
        grad_inputs = _spread(defined, self.inputs, self.n_inputs)
        for hook in self.hooks:
            replacement = hook(self.module, grad_inputs, self.grad_outputs)
            if replacement is None:
                continue
            replacement = replacement if isinstance(replacement, tuple) else (replacement,)
            _check_count("grad_input", "Backward hook", replacement, grad_inputs)
            grad_inputs = replacement
        self.grad_outputs = None
        return tuple(None if grad is None else grad_inputs[i] for grad, i in zip(grads, self.inputs, strict=True))


def _through_identity(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int] | None, Any]:
    """`values` with their tensors sent through an identity, which of them are tensors, and the node.

    Unchanged, with None and None, where no gradient will come.
    """
    where = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    if not is_grad_enabled() or not any(values[i].requires_grad for i in where):
        return values, None, None
    tensors = _identity().apply(*[values[i] for i in where])
    changed = list(values)
    for i, tensor in zip(where, tensors, strict=True):
        changed[i] = tensor
    node = next(tensor.grad_fn for tensor in tensors if tensor.requires_grad)
    if isinstance(values, tuple) and hasattr(values, "_fields"):
        return type(values)(*changed), where, node
    return type(values)(changed), where, node


def _spread(grads: Sequence[Any], where: Sequence[int], count: int) -> tuple[Any, ...]:
    """`grads` at the places `where` among `count`, and None elsewhere."""
    result: list[Any] = [None] * count
    for i, grad in zip(where, grads, strict=True):
        result[i] = grad
    return tuple(result)


def _check_count(what: str, kind: str, got: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    if len(got) != len(expected):
        raise RuntimeError(f"{kind} returned an invalid number of {what}, got {len(got)}, but expected {len(expected)}")
