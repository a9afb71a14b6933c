"""Parametrizations: a parameter or buffer of a module that is computed from other tensors whenever it is read.

`register_parametrization(module, "weight", p)` moves the tensor to ``module.parametrizations.weight.original`` and
makes ``module.weight`` a property that gives ``p(original)``.  A property belongs to a class, so the module gets a
class of its own, derived from its former one.  Assigning to ``module.weight`` asks `p.right_inverse` what the originals
have to be; several parametrizations of one tensor are applied one after the other.
"""

from __future__ import annotations

import copyreg
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from ...autograd.grad_mode import no_grad
from ...tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


# --------------------------------------------------------------------------------------------------------------- cache


class _Cache(threading.local):
    """What parametrizations gave, by module and name, while a thread is within `cached()`."""

    depth = 0

    def __init__(self) -> None:
        self.tensors: dict[tuple[int, str], Tensor] = {}


_cache = _Cache()


@contextmanager
def cached() -> Iterator[None]:
    """Within the block a parametrized tensor is computed when it is first read, and kept.

    >>> import retrograd as torch
    >>> from retrograd.nn.utils import parametrize
    >>> m = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(2, 2))
    >>> with parametrize.cached():
    ...     m.weight is m.weight
    True
    """
    _cache.depth += 1
    try:
        yield
    finally:
        _cache.depth -= 1
        if not _cache.depth:
            _cache.tensors.clear()


# ------------------------------------------------------------------------------------------------- the list of one name


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and the tensor or tensors it is computed from.

    The latter are ``original``, or ``original0``, ``original1`` and so on where `right_inverse` of the first
    parametrization gives several.
    """

    original: Tensor
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor | Parameter, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new = self._inverted(original)
        self.is_tensor: bool = isinstance(new, Tensor)
        self.ntensors: int = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            for what in ("dtype", "device"):
                if getattr(original, what) != getattr(new, what):
                    raise ValueError(
                        f"When `right_inverse` outputs one tensor, it may not change the {what}.\noriginal.{what}: "
                        f"{getattr(original, what)}\nright_inverse(original).{what}: {getattr(new, what)}"
                    )
            # The same tensor, so that an optimizer that holds it goes on training it.
            _set(original, new)
            _register(self, "original", original)
        else:
            for i, tensor in enumerate(new):
                if not isinstance(tensor, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                        f"{i} of the sequence with type {type(tensor).__name__}."
                    )
                if isinstance(original, Parameter):
                    tensor = Parameter(tensor, original.requires_grad)
                tensor.requires_grad_(original.requires_grad)
                _register(self, f"original{i}", tensor)
        if not unsafe:
            self._check_result(self(), shape, dtype)

    def _inverted(self, original: Tensor) -> Any:
        """What the originals have to be so that the parametrizations give `original`, as far as they can say it."""
        new: Any = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass  # it starts from what there is
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                f"{type(new).__name__}"
            )
        return new

    @staticmethod
    def _check_result(result: Any, shape: Any, dtype: Any) -> None:
        if not isinstance(result, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
        for what, before in (("dtype", dtype), ("shape", shape)):
            if getattr(result, what) != before:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                    f"enabled.\nunparametrized {what}: {before}\nparametrized {what}: {getattr(result, what)}"
                )

    def right_inverse(self, value: Any) -> None:
        """Give the originals the values that make the parametrizations give `value`."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                if value.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype "
                        f"{self.original.dtype}"
                    )
                _set(self.original, value)
                return
            if not isinstance(value, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
            if len(value) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of "
                    f"length {len(value)}."
                )
            originals = self._originals()
            for i, (tensor, original) in enumerate(zip(value, originals, strict=True)):
                if not isinstance(tensor, Tensor):
                    raise ValueError(
                        f"`right_inverse` must return a sequence of tensors. Got element {i} of type "
                        f"{type(tensor).__name__}"
                    )
                if original.dtype != tensor.dtype:
                    raise ValueError(
                        f"Tensor {i} returned by `right_inverse` has dtype {tensor.dtype} while `original{i}` has "
                        f"dtype {original.dtype}"
                    )
            for tensor, original in zip(value, originals, strict=True):
                _set(original, tensor)

    def _originals(self) -> list[Any]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def forward(self) -> Any:
        first, *rest = self
        result = first(*self._originals())
        for module in rest:
            result = module(result)
        return result


def _set(tensor: Any, value: Tensor) -> None:
    """Let `tensor` have the memory of `value`."""
    with no_grad():
        tensor.set_(value)


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


# --------------------------------------------------------------------------------------------- the class of the module


def _own_class(module: Module) -> None:
    """Give `module` a class of its own, for properties."""
    cls: Any = type(module)

    def getstate(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(): save module.state_dict(), "
            "and load it into a module that is parametrized in the same way"
        )

    def copied(self: Any, memo: dict[Any, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        replica = memo[id(self)] = self.__new__(type(self))
        replica.__dict__ = deepcopy(self.__dict__, memo)
        for slot in copyreg._slotnames(type(self)):  # type: ignore[attr-defined]
            if hasattr(self, slot):
                setattr(replica, slot, deepcopy(getattr(self, slot), memo))
        return replica

    members: dict[str, Any] = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = copied
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _property(name: str) -> property:
    """The parametrized tensor `name` of a module."""

    def get(self: Any) -> Any:
        parametrization = self.parametrizations[name]
        if not _cache.depth:
            return parametrization()
        key = (id(self), name)
        if key not in _cache.tensors:
            _cache.tensors[key] = parametrization()
        return _cache.tensors[key]

    def put(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


# ------------------------------------------------------------------------------------------------------- what is public


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let ``module.tensor_name`` be what `parametrization` makes of it, or of what earlier ones make of it.

    `unsafe` allows it to change dtype or shape, which nothing is then checked for.

    >>> import retrograd as torch
    >>> class Symmetric(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> m = torch.nn.utils.parametrize.register_parametrization(torch.nn.Linear(2, 2), "weight", Symmetric())
    >>> bool((m.weight == m.weight.mT).all()), [name for name, _ in m.named_parameters()]
    (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    owner: Any = module
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_further(getattr(module, tensor_name), parametrization, tensor_name)
        found = owner.parametrizations[tensor_name]
        found.append(parametrization)
        found.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _own_class(module)
            owner.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _property(tensor_name))
        owner.parametrizations[tensor_name] = made
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def _check_further(before: Tensor, parametrization: Any, name: str) -> None:
    """A parametrization of what is parametrized already may change neither dtype nor shape, nor may its inverse."""
    after = parametrization(before)
    if not isinstance(after, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for what in ("dtype", "shape"):
        if getattr(after, what) != getattr(before, what):
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is "
                f"enabled.\nmodule.{name}.{what}: {getattr(before, what)}\nparametrization(module.{name}).{what}: "
                f"{getattr(after, what)}"
            )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        inverse = parametrization.right_inverse(after)
    except NotImplementedError:
        return
    if not isinstance(inverse, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}")
    for what in ("dtype", "shape"):
        if getattr(inverse, what) != getattr(before, what):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, "
                f"unless the `unsafe` flag is enabled.\nmodule.{name}.{what}: {getattr(before, what)}\nreturned "
                f"{what}: {getattr(inverse, what)}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Has the module a parametrized tensor, or one of this name?"""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make ``module.tensor_name`` an ordinary parameter or buffer again: with the value it has, or with its original's.

    >>> import retrograd as torch
    >>> from retrograd.nn.utils import parametrizations, parametrize
    >>> m = parametrizations.weight_norm(torch.nn.Linear(2, 2))
    >>> parametrize.remove_parametrizations(m, "weight")
    Linear(in_features=2, out_features=2, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    owner: Any = module
    found = owner.parametrizations[tensor_name]
    if found.is_tensor:
        original = found.original
        if leave_parametrized:
            with no_grad():
                value = getattr(module, tensor_name)
            try:
                _set(original, value)
            except RuntimeError as error:
                if type(original) in (Tensor, Parameter):
                    raise
                raise RuntimeError(
                    "Calling remove_parametrizations() with leave_parametrized=True for a parameter that is an "
                    "instance of a tensor subclass requires set_() to be implemented correctly for the tensor "
                    "subclass. Either set leave_parametrized=False or provide a working implementation for set_() in "
                    "the tensor subclass."
                ) from error
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del owner.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type[Any]:
    """The class that the module was made of."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Parametrize `to_module` as `from_module` is, with the same originals; all names, or one."""
    if not is_parametrized(from_module):
        return to_module
    source: Any = from_module
    target: Any = to_module
    for name in list(source.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in source.parametrizations[name]:
            register_parametrization(to_module, name, parametrization)
        found, made = source.parametrizations[name], target.parametrizations[name]
        for part in ["original"] if found.is_tensor else [f"original{i}" for i in range(found.ntensors)]:
            setattr(made, part, getattr(found, part))
    return to_module


