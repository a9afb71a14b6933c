"""State dicts: the tensors of a tree of modules by name, out of it and into it.

`Module.state_dict` and `Module.load_state_dict` are these functions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..autograd.grad_mode import no_grad
from ..tensor import Tensor
from .parameter import Parameter

if TYPE_CHECKING:
    from .module import Module

EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` found no value for, and no use for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


# ----------------------------------------------------------------------------------------------------------- saving


def collect(module: Module, destination: dict[str, Any] | None, prefix: str, keep_vars: bool) -> dict[str, Any]:
    """The tensors of `module` and of all below it, by dotted name after `prefix`."""
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()  # type: ignore[attr-defined]
    metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    for hook in module._state_dict_pre_hooks.values():
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in module._state_dict_hooks.values():
        replaced = hook(module, destination, prefix, metadata)
        if replaced is not None:
            raise RuntimeError("state_dict post-hook must return None")
    return destination


def save_own(module: Module, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """The tensors of `module` alone."""
    for name, tensor in _own_tensors(module).items():
        if tensor is not None:
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
    if _overrides(module, "get_extra_state"):
        destination[prefix + EXTRA] = module.get_extra_state()


def _own_tensors(module: Module) -> dict[str, Tensor | None]:
    """Parameters and those buffers that are to be saved."""
    passing = module._non_persistent_buffers_set
    buffers = {name: tensor for name, tensor in module._buffers.items() if name not in passing}
    return {**module._parameters, **buffers}


def _overrides(module: Module, method: str) -> bool:
    from .module import Module

    return getattr(type(module), method) is not getattr(Module, method)


# ------------------------------------------------------------------------------------------------------------ loading


def restore(module: Module, state_dict: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """Copy the values of `state_dict` into `module` and all below it."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    metadata = getattr(state_dict, "_metadata", None)
    values = OrderedDict(state_dict)  # hooks may rename what is in it
    if metadata is not None:
        values._metadata = metadata  # type: ignore[attr-defined]
    keys = IncompatibleKeys([], [])
    errors: list[str] = []

    def load(target: Module, state: dict[str, Any], prefix: str) -> None:
        local = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
        if assign:
            local["assign_to_params_buffers"] = True
        target._load_from_state_dict(state, prefix, local, True, keys.missing_keys, keys.unexpected_keys, errors)
        for name, child in target._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                load(child, {k: v for k, v in state.items() if k.startswith(below)}, below)
        for hook in target._load_state_dict_post_hooks.values():
            if hook(target, keys) is not None:
                raise RuntimeError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )

    load(module, values, "")
    if strict:
        for what, names in (("Unexpected", keys.unexpected_keys), ("Missing", keys.missing_keys)):
            if names:
                quoted = ", ".join(f'"{name}"' for name in names)
                errors.insert(0, f"{what} key(s) in state_dict: {quoted}. ")
    if errors:
        listed = "\n\t".join(errors)
        raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{listed}")
    return keys


def load_own(
    module: Module,
    state_dict: dict[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Copy what `state_dict` has for `module` itself, and note what is missing, unexpected or of another size."""
    for hook in module._load_state_dict_pre_hooks.values():
        hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    assign = local_metadata.get("assign_to_params_buffers", False)
    tensors = _own_tensors(module)
    for name, tensor in tensors.items():
        if tensor is None:
            continue
        key = prefix + name
        if key not in state_dict:
            if strict:
                missing_keys.append(key)
            continue
        problem = _load_tensor(module, name, tensor, key, state_dict[key], assign)
        if problem is not None:
            error_msgs.append(problem)
    if _overrides(module, "set_extra_state"):
        if prefix + EXTRA in state_dict:
            module.set_extra_state(state_dict[prefix + EXTRA])
        elif strict:
            missing_keys.append(prefix + EXTRA)
    elif strict and prefix + EXTRA in state_dict:
        unexpected_keys.append(prefix + EXTRA)
    if strict:
        for key in state_dict:
            if key.startswith(prefix) and key != prefix + EXTRA:
                name, dot, _ = key[len(prefix) :].partition(".")
                if (name not in module._modules) if dot else (tensors.get(name) is None):
                    unexpected_keys.append(key)


def _load_tensor(module: Module, name: str, tensor: Tensor, key: str, value: Any, assign: bool) -> str | None:
    """Put `value` into one parameter or buffer; what is wrong with it, if something is."""
    if not isinstance(value, Tensor):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
            f"but received {type(value)}"
        )
    if tensor.shape != value.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in current "
            f"model is {tensor.shape}."
        )
    try:
        with no_grad():
            if not assign:
                tensor.copy_(value)
            elif isinstance(tensor, Parameter):
                if not isinstance(value, Parameter):
                    value = Parameter(value, requires_grad=tensor.requires_grad)
                module._parameters[name] = value
            else:
                module._buffers[name] = value
    except Exception as error:
        return (
            f'While copying the parameter named "{key}", whose dimensions in the model are {tensor.size()} and whose '
            f"dimensions in the checkpoint are {value.size()}, an exception occurred : {error.args}."
        )
    return None
