"""Module: a function with parameters, and the tree that modules make of each other.

A Module keeps three dictionaries: its parameters, its buffers (tensors that are state but not trained) and its child
modules.  Assigning to an attribute files the value under the right one.  The rest of this file walks the tree that
results: iterators, train and eval, printing.  The other parts of a Module are in files of their own: its hooks
(`module_hooks.py`), saving and restoring (`state_dict.py`), conversion (`conversion.py`).
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ...tensor import Tensor, type_name
from ..parameter import Buffer, Parameter
from . import module_hooks
from .conversion import Converted
from .module_hooks import (  # noqa: F401  # tools look the dictionaries of global hooks up here
    Hooked,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _global_forward_pre_hooks,
    _WrappedHook,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from .state_dict import Saved, _IncompatibleKeys  # noqa: F401

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

T = TypeVar("T", bound="Module")


class Module(Hooked, Saved, Converted):
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
    #: With this, `__init__` hands on to further bases of a subclass what it is given.
    call_super_init: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                name = next(iter(kwargs))
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'")
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        # Not through __setattr__, which needs the dictionaries.
        self.__dict__.update(training=True, **_fresh_state())
        if self.call_super_init:
            super().__init__(*args, **kwargs)

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
            self._register_assigned_buffer(name, value)
        elif "_buffers" in own and name in own["_buffers"]:
            if value is not None and not _is_tensor_like(value):
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
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
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
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
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
        if tensor is not None and not _is_tensor_like(tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = module_hooks.registered("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def _register_assigned_buffer(self, name: str, buffer: Any) -> None:
        """`register_buffer`, which subclasses may have defined without its last argument."""
        takes = type(self).register_buffer is Module.register_buffer
        if takes or "persistent" in inspect.signature(self.register_buffer).parameters:
            self.register_buffer(name, buffer, buffer.persistent)
        elif not buffer.persistent:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without "
                "the persistent argument is not allowed."
            )
        else:
            self.register_buffer(name, buffer)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child module under a name that need not be an identifier."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = module_hooks.registered("module", self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Another name for `add_module`."""
        self.add_module(name, module)

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

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it, each once."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

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
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
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

    # ---------------------------------------------------------------------------------------------- train or not

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

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # What an older version pickled may lack some of the dictionaries.
        for name, value in _fresh_state().items():
            self.__dict__.setdefault(name, value)

    def _replicate_for_data_parallel(self) -> Any:
        """A module with the same attributes whose dictionaries of members are its own."""
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica.__dict__.update(_parameters={}, _buffers=self._buffers.copy(), _modules=self._modules.copy())
        replica.__dict__["_is_replica"] = True
        return replica

    # --------------------------------------------------------------------------------------------------- printing

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Accepted for programs that ask for it: the module runs as it is."""

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


def _fresh_state() -> dict[str, Any]:
    """What every module has besides its mode, in torch's order, which is that of its pickles."""
    state: dict[str, Any] = {"_parameters": {}, "_buffers": {}, "_non_persistent_buffers_set": set()}
    state["_backward_pre_hooks"], state["_backward_hooks"] = OrderedDict(), OrderedDict()
    state["_is_full_backward_hook"] = None
    for name in (
        "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks",
        "_forward_pre_hooks_with_kwargs", "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
        "_load_state_dict_post_hooks",
    ):  # fmt: skip
        state[name] = OrderedDict()
    state["_modules"] = {}
    return state


def typename(value: Any) -> str:
    """The name of a value's class as error messages say it."""
    if isinstance(value, Tensor):
        return type_name(value)
    kind = type(value)
    return kind.__name__ if kind.__module__ in ("builtins", "__builtin__") else f"{kind.__module__}.{kind.__name__}"


def _is_tensor_like(value: Any) -> bool:
    """Is it a tensor, or something that takes part in operators as one?"""
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def _wrong_kind(value: Any, kind: str, name: str, expected: str) -> TypeError:
    return TypeError(f"cannot assign '{typename(value)}' as {kind} '{name}' ({expected} expected)")


def indented(text: str) -> str:
    """`text` with its lines after the first moved in by two."""
    return text.replace("\n", "\n  ")
