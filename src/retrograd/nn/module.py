"""Module: a function with parameters, and the tree that modules make of each other.

A Module keeps three dictionaries: its parameters, its buffers (tensors that are state but not trained) and its child
modules.  Assigning to an attribute files the value under the right one.  Everything else here walks the tree that
results: iterators, conversion, train and eval, printing.  `module_hooks.py` runs the hooks of a call,
`state_dict.py` saves and restores.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ..autograd.hooks import RemovableHandle
from ..tensor import Tensor
from . import module_hooks, state_dict
from .module_hooks import Hook, add
from .parameter import Buffer, Parameter
from .state_dict import IncompatibleKeys

T = TypeVar("T", bound="Module")


class Module:
    """The base class of everything that has parameters.

    >>> import retrograd as torch
    >>> class Scale(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.tensor(2.))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> scale = Scale()
    >>> scale(torch.ones(2))
    tensor([2., 2.], grad_fn=<MulBackward0>)
    >>> [name for name, parameter in scale.named_parameters()]
    ['factor']
    """

    #: Is the module being trained? `train` and `eval` set it; dropout and batch norm look at it.
    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Module | None]
    _forward_pre_hooks: OrderedDict[int, Hook]
    _forward_hooks: OrderedDict[int, Hook]
    _backward_pre_hooks: OrderedDict[int, Hook]
    _backward_hooks: OrderedDict[int, Hook]
    #: Do `_backward_hooks` hold hooks of the full kind (True), of the older kind (False), or none (None)?
    _is_full_backward_hook: bool | None
    _state_dict_pre_hooks: OrderedDict[int, Callable]
    _state_dict_hooks: OrderedDict[int, Callable]
    _load_state_dict_pre_hooks: OrderedDict[int, Callable]
    _load_state_dict_post_hooks: OrderedDict[int, Callable]

    #: Written into state dicts, so that a later version of a module can convert what an older one saved.
    _version: int = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs:
            name = next(iter(kwargs))
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'")
        if args:
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
            )
        # Not through __setattr__, which needs the dictionaries.
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _modules={},
            _is_full_backward_hook=None,
            **{name: OrderedDict() for name in _HOOKS},
        )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes: to be defined by every subclass."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or module_hooks.any_global
        ):
            return module_hooks.call(self, args, kwargs)
        return self.forward(*args, **kwargs)

    # ------------------------------------------------------------------------------------------------- attributes

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        parameters = own.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise _wrong_kind(value, "parameter", name, "torch.nn.Parameter or None")
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            if "_modules" not in own:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_parameters", "_buffers")
            self._modules[name] = module_hooks.registered("module", self, name, value)
        elif "_modules" in own and name in own["_modules"]:
            if value is not None:
                raise _wrong_kind(value, "child module", name, "torch.nn.Module or None")
            self._modules[name] = module_hooks.registered("module", self, name, None)
        elif isinstance(value, Buffer):
            if "_buffers" not in own:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            self._forget(name, "_parameters", "_modules")
            buffer: Any = value
            self.register_buffer(name, buffer, buffer.persistent)
        elif "_buffers" in own and name in own["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise _wrong_kind(value, "buffer", name, "torch.nn.Buffer, torch.Tensor or None")
            self._buffers[name] = module_hooks.registered("buffer", self, name, value)
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        # Only called for what is not an ordinary attribute.
        own = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind in own and name in own[kind]:
                return own[kind][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(kind, ()):
                del self.__dict__[kind][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[0].isdigit())

    def _forget(self, name: str, *kinds: str) -> None:
        """Make way for a new value of an attribute that may have been of another kind."""
        self.__dict__.pop(name, None)
        for kind in kinds:
            self.__dict__[kind].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _check_name(self, kind: str, name: Any, known: dict) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in known:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or reserve its name with None."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{type(param).__name__}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    f"explicitly. To express '{name}' as a function of another Tensor, compute the value in the "
                    "forward() method."
                )
        self._parameters[name] = module_hooks.registered("parameter", self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but not trained; it is saved with the module if `persistent`.

        >>> import retrograd as torch
        >>> m = torch.nn.Module()
        >>> m.register_buffer("steps", torch.zeros(1))
        >>> m.state_dict()["steps"]
        tensor([0.])
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = module_hooks.registered("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child module under a name that need not be an identifier."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {type(name).__name__}")
        self._check_name("module", name, self._modules)
        self._modules[name] = module_hooks.registered("module", self, name, module)

    register_module = add_module

    # -------------------------------------------------------------------------------------------------- the tree

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, each with its dotted name."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                yield from child.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct children with their names, each once."""
        seen: set[Module] = set()
        for name, child in self._modules.items():
            if child is not None and child not in seen:
                seen.add(child)
                yield name, child

    def children(self) -> Iterator[Module]:
        """The direct children, each once."""
        return (child for _, child in self.named_children())

    def _named_members(
        self, members: Callable[[Module], Any], prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in members(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters of this module and (`recurse`) of all below it, with their dotted names.

        >>> import retrograd as torch
        >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        >>> [(name, tuple(p.shape)) for name, p in net.named_parameters()]
        [('0.weight', (3, 2)), ('0.bias', (3,))]
        """
        return self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once: what an optimizer is given."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers of this module and (`recurse`) of all below it, with their dotted names."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module with a dotted name below this one (``""`` is this one)."""
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def _get_member(self, target: str, kind: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in module.__dict__["_parameters" if kind == "nn.Parameter" else "_buffers"]:
            raise AttributeError(f"`{name}` is not {'an' if kind == 'nn.Parameter' else 'a'} {kind}")
        return getattr(module, name)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with a dotted name."""
        return self._get_member(target, "nn.Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with a dotted name."""
        return self._get_member(target, "buffer")

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put `module` in the place with a dotted name; `strict`: only if there is one already."""
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def apply(self: T, fn: Callable[[Module], None]) -> T:
        """Call `fn` on every module below this one, then on this one; often to initialise."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    # ----------------------------------------------------------------------------------------------- all tensors

    def _apply(self: T, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> T:
        """Replace the values of every parameter, gradient and buffer by what `fn` makes of them."""
        if recurse:
            for child in self.children():
                child._apply(fn)
        for parameter in self._parameters.values():
            if parameter is None:
                continue
            # The same Parameter with other data, so that optimizers that hold it see the change.
            grad = parameter.grad
            parameter.grad = None
            parameter.data = fn(parameter.data)
            if grad is not None:
                grad.data = fn(grad.data)
                parameter.grad = grad
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self: T, *args: Any, **kwargs: Any) -> T:
        """Convert floating-point parameters and buffers to a dtype, and move all to a device, in place.

        Called as ``to(device)``, ``to(dtype)``, ``to(device, dtype)`` or ``to(tensor)``.

        >>> import retrograd as torch
        >>> torch.nn.Linear(2, 2).to(torch.float64).weight.dtype
        torch.float64
        """
        dtype, device = _parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        return self._apply(lambda t: t.to(device, dtype if t.is_floating_point() or t.is_complex() else None))

    def type(self: T, dst_type: Any) -> T:
        """Convert all parameters and buffers to a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self: T) -> T:
        """Convert floating-point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self: T) -> T:
        """Convert floating-point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self: T) -> T:
        """Convert floating-point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self: T) -> T:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self: T) -> T:
        """Move all parameters and buffers to the host's memory."""
        return self._apply(lambda t: t.cpu())

    def requires_grad_(self: T, requires_grad: bool = True) -> T:
        """Train all parameters, or freeze them."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero.

        >>> import retrograd as torch
        >>> m = torch.nn.Linear(2, 1)
        >>> m(torch.ones(2)).backward()
        >>> m.zero_grad(); m.weight.grad is None
        True
        """
        from ..optim.optimizer import clear_grad

        for parameter in self.parameters():
            clear_grad(parameter, set_to_none)

    def train(self: T, mode: bool = True) -> T:
        """Put this module and all below it into training mode."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self: T) -> T:
        """Put this module and all below it into evaluation mode."""
        return self.train(False)

    # ------------------------------------------------------------------------------------------------------ hooks

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before `forward`; what it returns, if anything, becomes the arguments.

        With `with_kwargs` it is ``hook(module, args, kwargs)``, which may return ``(args, kwargs)``.
        """
        return add(self._forward_pre_hooks, Hook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after `forward`; what it returns, if anything, becomes the output.

        With `always_call` it is called (with output None) even if `forward` raises.

        >>> import retrograd as torch
        >>> m = torch.nn.Identity()
        >>> handle = m.register_forward_hook(lambda module, args, output: output * 10)
        >>> m(torch.ones(1))
        tensor([10.])
        """
        return add(self._forward_hooks, Hook(hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are known; it may replace them."""
        return add(self._backward_pre_hooks, Hook(hook), prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the inputs' gradients are known; it may replace them.

        >>> import retrograd as torch
        >>> m = torch.nn.Tanh()
        >>> handle = m.register_full_backward_hook(lambda module, grad_input, grad_output: print(grad_output))
        >>> m(torch.zeros(1, requires_grad=True)).backward()
        (tensor([1.]),)
        """
        return self._add_backward_hook(hook, True, prepend)

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """The older kind of backward hook, on the node of the output alone; prefer `register_full_backward_hook`."""
        return self._add_backward_hook(hook, False, False)

    def _add_backward_hook(self, hook: Callable, full: bool, prepend: bool) -> RemovableHandle:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = full
        return add(self._backward_hooks, Hook(hook), prepend)

    # ------------------------------------------------------------------------------------------- saving, restoring

    def state_dict(
        self, *, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """All parameters and persistent buffers by their dotted names, sharing memory with the module.

        >>> import retrograd as torch
        >>> list(torch.nn.Linear(1, 1).state_dict())
        ['weight', 'bias']
        """
        return state_dict.collect(self, destination, prefix, keep_vars)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Write the tensors of this module alone; subclasses may write more."""
        state_dict.save_own(self, destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy values from a `state_dict`, whose names must match if `strict`; `assign`: take its tensors themselves.

        >>> import retrograd as torch
        >>> a, b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        >>> b.load_state_dict(a.state_dict())
        <All keys matched successfully>
        """
        return _restore(self, state_dict, strict, assign)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Copy the tensors of this module alone; subclasses that have changed their names convert them here."""
        _load_own(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def get_extra_state(self) -> Any:
        """What a subclass wants saved besides tensors; defining it makes `state_dict` include it."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before `state_dict` collects."""
        return add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after `state_dict` has collected."""
        return add(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)`` before loading."""
        return add(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; the hook may change the lists."""
        return add(self._load_state_dict_post_hooks, hook)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # What an older version pickled may lack some of the dictionaries.
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)
        self.__dict__.update(state)

    # --------------------------------------------------------------------------------------------------- printing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the brackets when the module is printed; subclasses say their settings."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {indented(repr(child))}" for name, child in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


_HOOKS = (
    "_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks", "_state_dict_pre_hooks",
    "_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip

# Under other names, since the methods have an argument called state_dict.
_restore = state_dict.restore
_load_own = state_dict.load_own


def _wrong_kind(value: Any, kind: str, name: str, expected: str) -> TypeError:
    return TypeError(f"cannot assign '{type(value).__name__}' as {kind} '{name}' ({expected} expected)")


def _parse_to(args: tuple, kwargs: dict) -> tuple[Any, Any]:
    """The (dtype, device) of a call of `Module.to`."""
    from ..core import dtypes
    from ..core.devices import as_device

    dtype, device = kwargs.get("dtype"), kwargs.get("device")
    unknown = set(kwargs) - {"dtype", "device", "tensor", "non_blocking", "memory_format"}
    if unknown:
        raise TypeError(f"to() received an invalid combination of arguments: unknown '{sorted(unknown)[0]}'")
    for value in itertools.chain(args, (kwargs.get("tensor"),)):
        if isinstance(value, Tensor):
            dtype, device = value.dtype, value.device
        elif isinstance(value, dtypes.dtype):
            dtype = value
        elif value is not None and not isinstance(value, bool):
            device = value
    return dtype, None if device is None else as_device(device)


def indented(text: str) -> str:
    """`text` with its lines after the first moved in by two."""
    return text.replace("\n", "\n  ")
