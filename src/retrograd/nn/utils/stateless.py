"""A module called with other tensors than its own parameters and buffers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...core.state import local
from ...tensor import Tensor
from ..modules.module import Module
from ..parallel import DataParallel

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call `module` with its parameters and buffers of the given names replaced for this call.

    Tied parameters, one tensor under several names, are all replaced when one is, unless `tie_weights` is False.  With
    `strict` the names have to be all there are.

    >>> import retrograd as torch
    >>> import warnings; warnings.simplefilter("ignore", FutureWarning)
    >>> m = torch.nn.Linear(1, 1, bias=False)
    >>> torch.nn.utils.stateless.functional_call(m, {"weight": torch.tensor([[3.]])}, torch.ones(1))
    tensor([3.])
    """
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    if isinstance(module, DataParallel):
        raise RuntimeError("The stateless API can't be used with nn.DataParallel module")
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))


def _own_tensors(module: Module) -> dict[str, Tensor]:
    """All parameters and buffers by all their names."""
    found: dict[str, Tensor] = {}
    todo = [("", module)]
    while todo:
        path, owner = todo.pop()
        for kind in (owner._parameters, owner._buffers):
            for name, value in kind.items():
                if value is not None:
                    found[path + name] = value
        todo += [(f"{path}{name}.", child) for name, child in reversed(owner._modules.items()) if child is not None]
    return found


def _under_all_names(own: dict[str, Tensor], given: dict[str, Tensor]) -> dict[str, Tensor]:
    """The given tensors under every name of what they replace."""
    if len(own) == len({id(tensor) for tensor in own.values()}):
        return given  # none is tied to another
    groups: dict[int, list[str]] = {}
    for name, tensor in own.items():
        groups.setdefault(id(tensor), []).append(name)
    everywhere = dict(given)
    for names in groups.values():
        present = [name for name in names if name in given]
        if len(names) == 1 or not present:
            continue
        if len({id(given[name]) for name in present}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. Consider using "
                "tie_weights=False"
            )
        everywhere.update(dict.fromkeys(names, given[present[0]]))
    return everywhere


@contextmanager
def _reparametrize_module(
    module: Module, parameters_and_buffers: dict[str, Tensor], tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    """Within the block the module has the given tensors; what was assigned to their names is put into the dict."""
    own = _own_tensors(module) if tie_weights or strict else {}
    given = _under_all_names(own, parameters_and_buffers) if tie_weights else parameters_and_buffers
    if strict:
        problems = [
            f"{what} key(s): {', '.join(map(repr, sorted(names)))}."
            for what, names in (
                ("Unexpected", [name for name in given if name not in own]),
                ("Missing", [name for name in own if name not in given]),
            )
            if names
        ]
        if problems:
            listed = "\n\t".join(problems)
            raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{listed}")
    before: list[tuple[str, Any, str, Any]] = []  # name, the module that has it, its name there, what was there
    path: str | None = None
    owner: Any = None
    try:
        for name, tensor in given.items():
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(f"{tensor} is not an instance of torch.Tensor")
            where, _, last = name.rpartition(".")
            if where != path:
                path, owner = where, _owner(module, where)
            before.append((name, owner, last, _swap(owner, last, tensor)))
        guard = local.state.mutation_guard
        if guard is not None:
            guard.lend(given.values())  # which the module does not have by itself
        yield
    finally:
        after = {name: _swap(owner, last, tensor) for name, owner, last, tensor in reversed(before)}
        for name in parameters_and_buffers:
            if name in after:
                parameters_and_buffers[name] = after[name]


def _owner(module: Module, path: str) -> Any:
    """The module with a dotted name."""
    owner: Any = module
    try:
        for name in path.split(".") if path else ():
            owner = owner._modules[name]
    except (KeyError, AttributeError):  # an attribute of another kind
        return module.get_submodule(path)
    return module.get_submodule(path) if owner is None else owner


#: What a module has under a name that it does not have.
_NOTHING: Any = object()


def _swap(owner: Any, last: str, tensor: Any) -> Any:
    """Put a tensor in the place of a name, past all checks; give what was there. A new name is a new attribute."""
    for kind in (owner._parameters, owner._buffers):
        if last in kind:
            found = kind[last]
            if tensor is _NOTHING:  # a Parameter under a new name has become one of the module's
                del kind[last]
            else:
                kind[last] = tensor
            return found
    found = getattr(owner, last, _NOTHING)
    if found is not _NOTHING and found is not None and not isinstance(found, Tensor):
        raise TypeError(f"attribute `{last}`: {found} is not an instance of torch.Tensor")
    if tensor is not _NOTHING:
        setattr(owner, last, tensor)
    elif found is not _NOTHING:
        delattr(owner, last)
    return found
