"""The hooks of modules: run around `forward`, and on the gradients that come back through a module.

`Module.__call__` comes here when there is any hook; a module without hooks never does.

Note [Backward hooks of modules]
A module is not a node of the graph, so to see the gradients that enter and leave it, two identity nodes are put around
it: all inputs go through one before `forward`, all outputs through another after it.  The gradients of the outputs are
what the second identity gets in the backward pass (a pre-hook there); the gradients of the inputs are what the first
one gives (a post-hook there).  If no input requires grad there is no first identity, and the hooks run at the second.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ..autograd.grad_mode import is_grad_enabled
from ..autograd.hooks import RemovableHandle
from ..ops import factories
from ..tensor import Tensor

if TYPE_CHECKING:
    from .module import Module


class Hook(NamedTuple):
    """A hook and how it wants to be called."""

    function: Callable
    with_kwargs: bool = False
    always_call: bool = False


def add(hooks: OrderedDict, hook: Any, prepend: bool = False) -> RemovableHandle:
    """Put a hook among others, last or first, and return its handle."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


# -------------------------------------------------------------------------------------------- hooks of all modules


class _GlobalHooks(OrderedDict):
    """Hooks that run for every module; keeps `any_global` true while there are some."""

    def __setitem__(self, key: int, value: Any) -> None:
        super().__setitem__(key, value)
        _update()

    def pop(self, *args: Any) -> Any:
        result = super().pop(*args)
        _update()
        return result


_forward_pre_hooks = _GlobalHooks()
_forward_hooks = _GlobalHooks()
_backward_pre_hooks = _GlobalHooks()
_backward_hooks = _GlobalHooks()
_registration_hooks: dict[str, OrderedDict] = {kind: OrderedDict() for kind in ("buffer", "module", "parameter")}
_global_hooks_are_full: bool | None = None

#: Is there a hook that runs for every module?
any_global = False


def _update() -> None:
    global any_global
    any_global = bool(_forward_pre_hooks or _forward_hooks or _backward_pre_hooks or _backward_hooks)


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """`Module.register_forward_pre_hook`, for every module there is."""
    return add(_forward_pre_hooks, Hook(hook))


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """`Module.register_forward_hook`, for every module there is.

    >>> import retrograd as torch
    >>> from retrograd.nn.modules.module import register_module_forward_hook
    >>> with register_module_forward_hook(lambda module, args, output: print(module, "ran")):
    ...     y = torch.nn.Identity()(torch.ones(1))
    Identity() ran
    """
    return add(_forward_hooks, Hook(hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """`Module.register_full_backward_pre_hook`, for every module there is."""
    return add(_backward_pre_hooks, Hook(hook))


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """`Module.register_full_backward_hook`, for every module there is."""
    return _add_global_backward_hook(hook, True)


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """`Module.register_backward_hook`, for every module there is."""
    return _add_global_backward_hook(hook, False)


def _add_global_backward_hook(hook: Callable, full: bool) -> RemovableHandle:
    global _global_hooks_are_full
    if _global_hooks_are_full is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    _global_hooks_are_full = full
    return add(_backward_hooks, Hook(hook))


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` whenever a module gets a parameter; it may return another one."""
    return add(_registration_hooks["parameter"], hook)


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` whenever a module gets a buffer; it may return another one."""
    return add(_registration_hooks["buffer"], hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` whenever a module gets a child; it may return another one."""
    return add(_registration_hooks["module"], hook)


def registered(kind: str, module: Module, name: str, value: Any) -> Any:
    """`value`, or what a registration hook puts in its place."""
    for hook in _registration_hooks[kind].values():
        replacement = hook(module, name, value)
        if replacement is not None:
            value = replacement
    return value


# ------------------------------------------------------------------------------------------------------- one call


def call(module: Module, args: tuple, kwargs: dict) -> Any:
    """``module(*args, **kwargs)`` with all its hooks."""
    called: set[int] = set()
    arguments = [args, kwargs]  # what the hooks see; pre-hooks change it
    try:
        return _call(module, arguments, called)
    except Exception:
        for key, hook in [*_forward_hooks.items(), *module._forward_hooks.items()]:
            if hook.always_call and key not in called:
                try:
                    _run_forward_hook(hook, module, arguments, None)
                except Exception as error:
                    warnings.warn(
                        "module forward hook with ``always_call=True`` raised an exception that was silenced as "
                        f"another error was raised in forward: {error}",
                        UserWarning,
                        stacklevel=3,
                    )
        raise


def _call(module: Module, arguments: list, called: set[int]) -> Any:
    for hook in [*_forward_pre_hooks.values(), *module._forward_pre_hooks.values()]:
        _run_pre_hook(hook, module, arguments)
    backward = None
    full, older = _backward_hooks_of(module)
    pre = [hook.function for hook in (*_backward_pre_hooks.values(), *module._backward_pre_hooks.values())]
    if full or pre:
        backward = BackwardHooks(module, full, pre)
        arguments[0] = backward.around_inputs(arguments[0])
    result = module.forward(*arguments[0], **arguments[1])
    for key, hook in [*_forward_hooks.items(), *module._forward_hooks.items()]:
        called.add(key)
        replacement = _run_forward_hook(hook, module, arguments, result)
        if replacement is not None:
            result = replacement
    if backward is not None:
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}",
                UserWarning,
                stacklevel=4,
            )
        result = backward.around_outputs(result)
    if older:
        _hook_output_node(module, older, result)
    return result


def _run_pre_hook(hook: Hook, module: Module, arguments: list) -> None:
    args, kwargs = arguments
    if not hook.with_kwargs:
        replacement = hook.function(module, args)
        if replacement is not None:
            arguments[0] = replacement if isinstance(replacement, tuple) else (replacement,)
        return
    replacement = hook.function(module, args, kwargs)
    if replacement is not None:
        if not isinstance(replacement, tuple) or len(replacement) != 2:
            raise RuntimeError(
                f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {replacement}."
            )
        arguments[:] = replacement


def _run_forward_hook(hook: Hook, module: Module, arguments: list, result: Any) -> Any:
    args, kwargs = arguments
    return hook.function(module, args, kwargs, result) if hook.with_kwargs else hook.function(module, args, result)


def _backward_hooks_of(module: Module) -> tuple[list[Callable], list[Callable]]:
    """The backward hooks for `module`: the full ones and the older ones."""
    kinds: dict[bool, list[Callable]] = {True: [], False: []}
    for hooks, full in (
        (_backward_hooks, _global_hooks_are_full),
        (module._backward_hooks, module._is_full_backward_hook),
    ):
        kinds[full is not False].extend(hook.function for hook in hooks.values())
    return kinds[True], kinds[False]


def _hook_output_node(module: Module, hooks: Iterable[Callable], result: Any) -> None:
    """The older kind: a hook on the node that made the (first) output."""
    while not isinstance(result, Tensor):
        if isinstance(result, dict):
            result = next(value for value in result.values() if isinstance(value, Tensor))
        else:
            result = result[0]
    node = result.grad_fn
    if node is not None:
        for hook in hooks:
            node.register_hook(lambda grad_inputs, grad_outputs, hook=hook: hook(module, grad_inputs, grad_outputs))


# ------------------------------------------------------------------------------------------------------ backward


@cache
def _identity() -> Any:
    """The identity that is put around a module, as a differentiable function of any number of tensors."""
    from ..autograd.function import Function

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

    def __init__(self, module: Module, hooks: Sequence[Callable], pre_hooks: Sequence[Callable]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: tuple | None = None
        self.inputs: list[int] | None = None  # which arguments are tensors; None: none of them requires grad
        self.outputs: list[int] | None = None
        self.n_inputs = self.n_outputs = 0
        self.kinds: list[tuple[Any, Any]] = []

    def around_inputs(self, args: tuple) -> tuple:
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

    def _on_grad_outputs(self, grads: tuple) -> tuple | None:
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

    def _on_grad_inputs(self, grads: tuple, _: tuple) -> tuple | None:
        if self.grad_outputs is None:
            return None  # the backward pass came around the outputs of the module
        assert self.inputs is not None
        # Every tensor has a gradient here; that of one that does not require grad, or was not used, is zero.
        defined = [
            factories.zeros(shape, dtype=dtype) if grad is None else grad
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


def _through_identity(values: tuple) -> tuple[tuple, list[int] | None, Any]:
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


def _spread(grads: Sequence, where: Sequence[int], count: int) -> tuple:
    """`grads` at the places `where` among `count`, and None elsewhere."""
    result: list = [None] * count
    for i, grad in zip(where, grads, strict=True):
        result[i] = grad
    return tuple(result)


def _check_count(what: str, kind: str, got: tuple, expected: tuple) -> None:
    if len(got) != len(expected):
        raise RuntimeError(f"{kind} returned an invalid number of {what}, got {len(got)}, but expected {len(expected)}")
