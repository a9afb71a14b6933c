"""The hooks of modules: how they are registered, and run around `forward`.

`Module.__call__` comes here when there is any hook; a module without hooks never does.  The dictionaries hold the
functions themselves; how one wants to be called (with keyword arguments, even after an error) is noted in further
dictionaries under the same key, which go with it when its handle is removed.
"""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ...autograd.hooks import RemovableHandle
from ...tensor import Tensor
from .backward_hooks import BackwardHooks

if TYPE_CHECKING:
    from .module import Module


def add(
    hooks: OrderedDict[Any, Any], hook: Any, prepend: bool = False, marks: Iterable[OrderedDict[Any, Any]] = ()
) -> RemovableHandle:
    """Put a hook among others, last or first, and its key into `marks`; return its handle."""
    marks = list(marks)
    handle = RemovableHandle(hooks, extra_dict=marks)
    hooks[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class _WrappedHook:
    """A hook that is given its module first, if it wants it; the module is not kept alive by it."""

    def __init__(self, hook: Callable[..., Any], module: Module | None = None) -> None:
        self.hook = hook
        self.with_module = module is not None
        self.module: Any = None if module is None else weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook, self.with_module = state["hook"], state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])
        else:
            self.module = None


class Hooked:
    """What a Module can be told to call: the part of it that registers hooks around `forward` and its gradients."""

    _forward_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks: OrderedDict[int, Callable[..., Any]]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _backward_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _backward_hooks: OrderedDict[int, Callable[..., Any]]
    #: Do `_backward_hooks` hold hooks of the full kind (True), of the older kind (False), or none (None)?
    _is_full_backward_hook: bool | None

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before `forward`; what it returns, if anything, becomes the arguments.

        With `with_kwargs` it is ``hook(module, args, kwargs)``, which may return ``(args, kwargs)``.
        """
        marks = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return add(self._forward_pre_hooks, hook, prepend, marks)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after `forward`; what it returns, if anything, becomes the output.

        With `always_call` it is called (with output None) even if `forward` raises.

        >>> import retrograd as torch
        >>> m = torch.nn.Identity()
        >>> handle = m.register_forward_hook(lambda module, args, output: output * 10)
        >>> m(torch.ones(1))
        tensor([10.])
        """
        marks = [self._forward_hooks_with_kwargs] if with_kwargs else []
        if always_call:
            marks.append(self._forward_hooks_always_called)
        return add(self._forward_hooks, hook, prepend, marks)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are known; it may replace them."""
        return add(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the inputs' gradients are known; it may replace them.

        >>> import retrograd as torch
        >>> m = torch.nn.Tanh()
        >>> handle = m.register_full_backward_hook(lambda module, grad_input, grad_output: print(grad_output))
        >>> m(torch.zeros(1, requires_grad=True)).backward()
        (tensor([1.]),)
        """
        return self._add_backward_hook(hook, True, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The older kind of backward hook, on the node of the output alone; prefer `register_full_backward_hook`."""
        return self._add_backward_hook(hook, False, False)

    def _add_backward_hook(self, hook: Callable[..., Any], full: bool, prepend: bool) -> RemovableHandle:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = full
        return add(self._backward_hooks, hook, prepend)


# -------------------------------------------------------------------------------------------- hooks of all modules


class _GlobalHooks(OrderedDict):
    """Hooks that run for every module; keeps `any_global` true while there are some."""

    def __setitem__(self, key: int, value: Any) -> None:
        super().__setitem__(key, value)
        _update()

    def __delitem__(self, key: int) -> None:
        super().__delitem__(key)
        _update()

    def pop(self, *args: Any) -> Any:
        result = super().pop(*args)
        _update()
        return result

    def clear(self) -> None:
        super().clear()
        _update()


_global_forward_pre_hooks: OrderedDict[int, Callable[..., Any]] = _GlobalHooks()
_global_forward_hooks: OrderedDict[int, Callable[..., Any]] = _GlobalHooks()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_backward_pre_hooks: OrderedDict[int, Callable[..., Any]] = _GlobalHooks()
_global_backward_hooks: OrderedDict[int, Callable[..., Any]] = _GlobalHooks()
#: All of them, for who asks whether they are as they were.
HOOKS_OF_ALL_MODULES: Any = (
    _global_forward_pre_hooks, _global_forward_hooks, _global_backward_pre_hooks, _global_backward_hooks,
)  # fmt: skip
_registration_hooks: dict[str, OrderedDict[Any, Any]] = {
    kind: OrderedDict() for kind in ("buffer", "module", "parameter")
}
_global_hooks_are_full: bool | None = None

#: Is there a hook that runs for every module?
any_global: bool = False


def _update() -> None:
    global any_global
    any_global = bool(
        _global_forward_pre_hooks or _global_forward_hooks or _global_backward_pre_hooks or _global_backward_hooks
    )


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`Module.register_forward_pre_hook`, for every module there is."""
    return add(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """`Module.register_forward_hook`, for every module there is.

    >>> import retrograd as torch
    >>> from retrograd.nn.modules.module import register_module_forward_hook
    >>> with register_module_forward_hook(lambda module, args, output: print(module, "ran")):
    ...     y = torch.nn.Identity()(torch.ones(1))
    Identity() ran
    """
    marks = [_global_forward_hooks_with_kwargs] if with_kwargs else []
    if always_call:
        marks.append(_global_forward_hooks_always_called)
    return add(_global_forward_hooks, hook, marks=marks)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`Module.register_full_backward_pre_hook`, for every module there is."""
    return add(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`Module.register_full_backward_hook`, for every module there is."""
    return _add_global_backward_hook(hook, True)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`Module.register_backward_hook`, for every module there is."""
    return _add_global_backward_hook(hook, False)


def _add_global_backward_hook(hook: Callable[..., Any], full: bool) -> RemovableHandle:
    global _global_hooks_are_full
    if _global_hooks_are_full is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    _global_hooks_are_full = full
    return add(_global_backward_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` whenever a module gets a parameter; it may return another one."""
    return add(_registration_hooks["parameter"], hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` whenever a module gets a buffer; it may return another one."""
    return add(_registration_hooks["buffer"], hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
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


class _Call:
    """One call of a module with its hooks: what the hooks see and change."""

    def __init__(self, module: Module, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> None:
        self.module = module
        self.args, self.kwargs = args, kwargs
        self.result: Any = None
        self.called: set[int] = set()  # the forward hooks that have run

    def run(self) -> Any:
        module = self.module
        for key, hook in [*_global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()]:
            self._run_pre_hook(hook, key in module._forward_pre_hooks_with_kwargs)
        backward = None
        full, older = _backward_hooks_of(module)
        pre = [*_global_backward_pre_hooks.values(), *module._backward_pre_hooks.values()]
        if full or pre:
            backward = BackwardHooks(module, full, pre)
            self.args = backward.around_inputs(self.args)
        self.result = module.forward(*self.args, **self.kwargs)
        for key, hook in [*_global_forward_hooks.items(), *module._forward_hooks.items()]:
            self.called.add(key)
            self._run_forward_hook(key, hook)
        if backward is not None:
            if not isinstance(self.result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                    f"received {type(self.result)}",
                    UserWarning,
                    stacklevel=4,
                )
            self.result = backward.around_outputs(self.result)
        if older:
            _hook_output_node(module, older, self.args, self.result)
        return self.result

    def run_after_error(self) -> None:
        """The forward hooks that are always called and were not."""
        for kind, hooks, always in (
            ("global module", _global_forward_hooks, _global_forward_hooks_always_called),
            ("module", self.module._forward_hooks, self.module._forward_hooks_always_called),
        ):
            for key, hook in list(hooks.items()):
                if key not in always or key in self.called:
                    continue
                try:
                    self._run_forward_hook(key, hook)
                except Exception as error:
                    warnings.warn(
                        f"{kind} forward hook with ``always_call=True`` raised an exception that was silenced as "
                        f"another error was raised in forward: {error}",
                        UserWarning,
                        stacklevel=4,
                    )

    def _run_pre_hook(self, hook: Callable[..., Any], with_kwargs: bool) -> None:
        if not with_kwargs:
            replacement = hook(self.module, self.args)
            if replacement is not None:
                self.args = replacement if isinstance(replacement, tuple) else (replacement,)
            return
        replacement = hook(self.module, self.args, self.kwargs)
        if replacement is not None:
            if not isinstance(replacement, tuple) or len(replacement) != 2:
                raise RuntimeError(
                    f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {replacement}."
                )
            self.args, self.kwargs = replacement

    def _run_forward_hook(self, key: int, hook: Callable[..., Any]) -> None:
        if key in self.module._forward_hooks_with_kwargs or key in _global_forward_hooks_with_kwargs:
            replacement = hook(self.module, self.args, self.kwargs, self.result)
        else:
            replacement = hook(self.module, self.args, self.result)
        if replacement is not None:
            self.result = replacement


def call(module: Module, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> Any:
    """``module(*args, **kwargs)`` with all its hooks."""
    one = _Call(module, args, kwargs)
    try:
        return one.run()
    except Exception:
        one.run_after_error()
        raise


def _backward_hooks_of(module: Module) -> tuple[list[Callable[..., Any]], list[Callable[..., Any]]]:
    """The backward hooks for `module`: the full ones and the older ones."""
    kinds: dict[bool, list[Callable[..., Any]]] = {True: [], False: []}
    for hooks, full in (
        (_global_backward_hooks, _global_hooks_are_full),
        (module._backward_hooks, module._is_full_backward_hook),
    ):
        kinds[full is not False].extend(hooks.values())
    return kinds[True], kinds[False]


def _hook_output_node(module: Module, hooks: Iterable[Callable[..., Any]], args: tuple[Any, ...], result: Any) -> None:
    """The older kind: a hook on the node that made the (first) output."""
    first = result
    while not isinstance(first, Tensor):
        if isinstance(first, dict):
            first = next(value for value in first.values() if isinstance(value, Tensor))
        else:
            first = first[0]
    node = first.grad_fn
    if node is not None:
        for hook in hooks:
            node.register_hook(_WrappedHook(hook, module))
        _warn_of_what_is_missed(args, result, node)


def _warn_of_what_is_missed(args: tuple[Any, ...], result: Any, node: Any) -> None:
    """The older kind sees one node: say so where the module is more than that."""

    def tensors(values: Any) -> bool:
        return isinstance(values, tuple) and all(isinstance(value, Tensor) for value in values)

    outputs = result if isinstance(result, tuple) else (result,)
    if not tensors(outputs):
        problem = "non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors"
    elif not tensors(args):
        problem = (
            "non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of Tensors"
        )
    elif len({output.grad_fn for output in outputs if output.grad_fn is not None}) > 1:
        problem = "a non-full backward hook when outputs are generated by different autograd Nodes"
    elif {tensor.grad_fn for tensor in args if tensor.grad_fn is not None} != {step[0] for step in node.next_functions}:
        problem = "a non-full backward hook when the forward contains multiple autograd Nodes"
    else:
        return
    warnings.warn(
        f"Using {problem} is deprecated and will be removed in future versions. This hook will be missing some "
        "gradients. Please use register_full_backward_hook to get the documented behavior.",
        FutureWarning,
        stacklevel=5,
    )
