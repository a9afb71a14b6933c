"""State dicts: the tensors of a tree of modules by name, out of it and into it."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ...autograd.grad_mode import no_grad
from ...autograd.hooks import RemovableHandle
from ...core.where import users_level
from ...tensor import Tensor
from ...utils.swap import swap_tensors
from ..conversion_settings import get_swap_module_params_on_conversion
from ..parameter import Parameter, is_lazy
from .module_hooks import _WrappedHook, add

if TYPE_CHECKING:
    from .module import Module

EXTRA = "_extra_state"


class _IncompatibleKeys(NamedTuple):
    """What `load_state_dict` found no value for, and no use for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class Saved:
    """The part of a Module that saves and restores it."""

    #: Written into state dicts, so that a later version of a module can convert what an older one saved.
    _version: int = 1

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Module | None]
    _state_dict_pre_hooks: OrderedDict[int, Callable]
    _state_dict_hooks: OrderedDict[int, Callable]
    _load_state_dict_pre_hooks: OrderedDict[int, Callable]
    _load_state_dict_post_hooks: OrderedDict[int, Callable]

    # ------------------------------------------------------------------------------------------------------- saving

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """All parameters and persistent buffers by their dotted names, sharing memory with the module.

        >>> import retrograd as torch
        >>> list(torch.nn.Linear(1, 1).state_dict())
        ['weight', 'bias']
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead: state_dict(destination=..., prefix=..., "
                "keep_vars=...)",
                FutureWarning,
                stacklevel=2,
            )
            given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
            destination = given["destination"] if destination is None else destination
            prefix, keep_vars = prefix or given.get("prefix", ""), keep_vars or given.get("keep_vars", False)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            replaced = hook(self, destination, prefix, metadata)
            if replaced is not None:
                if getattr(hook, "_from_public_api", False):
                    raise RuntimeError("state_dict post-hook must return None")
                destination = replaced
        return destination

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Write the tensors of this module alone; subclasses may write more."""
        for name, tensor in self._own_tensors().items():
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if self._overrides("get_extra_state"):
            destination[prefix + EXTRA] = self.get_extra_state()

    def _own_tensors(self) -> dict[str, Tensor | None]:
        """Parameters and those buffers that are to be saved."""
        passing = self._non_persistent_buffers_set
        return {
            **self._parameters,
            **{name: tensor for name, tensor in self._buffers.items() if name not in passing},
        }

    def _overrides(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(Saved, method)

    # ------------------------------------------------------------------------------------------------------ loading

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy values from a `state_dict`, whose names must match if `strict`; `assign`: take its tensors themselves.

        >>> import retrograd as torch
        >>> a, b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        >>> b.load_state_dict(a.state_dict())
        <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        values = OrderedDict(state_dict)  # hooks may rename what is in it
        if metadata is not None:
            values._metadata = metadata  # type: ignore[attr-defined]
        keys = _IncompatibleKeys([], [])
        errors: list[str] = []

        _load(self, values, "", metadata, assign, keys, errors)
        if strict:
            for what, names in (("Unexpected", keys.unexpected_keys), ("Missing", keys.missing_keys)):
                if names:
                    quoted = ", ".join(f'"{name}"' for name in names)
                    errors.insert(0, f"{what} key(s) in state_dict: {quoted}. ")
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}")
        return keys

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
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        tensors = self._own_tensors()
        for name, tensor in tensors.items():
            if tensor is None:
                continue
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            problem = _load_tensor(self, name, tensor, key, state_dict[key], assign)
            if problem is not None:
                error_msgs.append(problem)
        if self._overrides("set_extra_state"):
            if prefix + EXTRA in state_dict:
                self.set_extra_state(state_dict[prefix + EXTRA])
            elif strict:
                missing_keys.append(prefix + EXTRA)
        elif strict and prefix + EXTRA in state_dict:
            unexpected_keys.append(prefix + EXTRA)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != prefix + EXTRA:
                    name, dot, _ = key[len(prefix) :].partition(".")
                    if (name not in self._modules) if dot else (tensors.get(name) is None):
                        unexpected_keys.append(key)

    # --------------------------------------------------------------------------------------------- what is not tensors

    def get_extra_state(self) -> Any:
        """What a subclass wants saved besides tensors; defining it makes `state_dict` include it."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    # ----------------------------------------------------------------------------------------------------------- hooks

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before `state_dict` collects."""
        return add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after `state_dict` has collected."""
        hook._from_public_api = True  # it may not return another dictionary
        return add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable) -> RemovableHandle:
        """The same for a hook that may return another dictionary; of children's hooks that is not asked for."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return add(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)`` before loading."""
        return self._register_load_state_dict_pre_hook(hook, True)

    def _register_load_state_dict_pre_hook(self, hook: Callable, with_module: bool = False) -> RemovableHandle:
        """The same for a hook that does not want the module."""
        owner: Any = self if with_module else None
        return add(self._load_state_dict_pre_hooks, _WrappedHook(hook, owner))

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; the hook may change the lists."""
        return add(self._load_state_dict_post_hooks, hook)


def _load(
    module: Any, state: dict[str, Any], prefix: str, metadata: Any, assign: bool, keys: _IncompatibleKeys,
    errors: list[str],
) -> None:  # fmt: skip
    """Load a module and those below it."""
    local = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
    if assign:
        local["assign_to_params_buffers"] = True
    module._load_from_state_dict(state, prefix, local, True, keys.missing_keys, keys.unexpected_keys, errors)
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            _load(child, {k: v for k, v in state.items() if k.startswith(below)}, below, metadata, assign, keys, errors)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, "
                "if incompatible_keys need to be modified, it should be done inplace."
            )


def _load_tensor(module: Any, name: str, tensor: Tensor, key: str, value: Any, assign: bool) -> str | None:
    """Put `value` into one parameter or buffer; what is wrong with it, if something is."""
    if not isinstance(value, Tensor):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
            f"but received {type(value)}"
        )
    if is_lazy(tensor):
        if is_lazy(value):
            return None  # neither has a value yet
    else:
        if not tensor.ndim and tuple(value.shape) == (1,):
            value = value[0]  # a number, as it was saved before there were 0-d tensors
        if tensor.shape != value.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in "
                f"current model is {tensor.shape}."
            )
    if not assign and not is_lazy(value) and tensor.is_meta and not value.is_meta:
        warnings.warn(
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, "
            "which is a no-op: it stays without numbers. Pass `assign=True` to have the module take the checkpoint's "
            "tensors, or call `module.to_empty(device=...)` first",
            stacklevel=users_level(),
        )
    try:
        with no_grad():
            if get_swap_module_params_on_conversion():
                _swap_in(tensor, value, assign)
            elif not assign:
                tensor.copy_(value)
            else:
                if isinstance(tensor, Parameter):
                    if isinstance(value, Parameter):
                        value.requires_grad_(tensor.requires_grad)
                    else:
                        value = Parameter(value, requires_grad=tensor.requires_grad)
                setattr(module, name, value)
    except Exception as error:
        action = "swapping" if get_swap_module_params_on_conversion() else "copying"
        return (
            f'While {action} the parameter named "{key}", whose dimensions in the model are {tensor.size()} and whose '
            f"dimensions in the checkpoint are {value.size()}, an exception occurred : {error.args}."
        )
    return None


def _swap_in(tensor: Any, value: Tensor, assign: bool) -> None:
    """Let `tensor` become what it makes of `value`: see ``nn/conversion_settings.py``."""
    made = tensor.module_load(value, assign=assign)
    if made is value or made is tensor:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
            "module_load"
        )
    if isinstance(tensor, Parameter):
        if isinstance(made, Parameter):
            made.requires_grad_(tensor.requires_grad)
        else:
            made = Parameter(made, requires_grad=tensor.requires_grad)
    swap_tensors(tensor, made)
