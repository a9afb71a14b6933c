"""Pruning: some elements of a parameter held at zero by a mask.

A pruned parameter ``name`` is kept as ``name_orig``, beside the buffer ``name_mask``; before each `forward` a hook (the
pruning method) sets ``name`` to their product.  Pruned again, a parameter gets a `PruningContainer` for its hook, which
prunes what is left.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from ...ops import namespace as ops
from ...tensor import Tensor
from ..modules.module import Module
from .convert_parameters import parameters_to_vector


class BasePruningMethod(ABC):
    """A way to choose what is pruned: `compute_mask` says it; the rest here applies it to modules."""

    #: The name of the parameter that is pruned.
    _tensor_name: str
    #: "unstructured" (single elements), "structured" (slices along `dim`) or "global" (the mask is for all).
    PRUNING_TYPE: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask (zeros for what goes) by the scores `t`, on top of `default_mask`."""

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter with its mask applied."""
        name = self._name(module, "has to be pruned")
        original = getattr(module, name + "_orig")
        return getattr(module, name + "_mask").to(dtype=original.dtype) * original

    def _name(self, module: Module, problem: str) -> str:
        name = getattr(self, "_tensor_name", None)
        if name is None:
            raise AssertionError(f"Module {module} {problem}")
        return name

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a parameter of a module by this method, made with the further arguments."""
        made = cls(*args, **kwargs)
        made._tensor_name = name
        before = _hooks(module, name)
        if len(before) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a "
                "PruningContainer."
            )
        current: Any = getattr(module, name)
        if importance_scores is None:
            importance_scores = current
        elif importance_scores.shape != current.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got "
                f"{importance_scores.shape} vs {current.shape}"
            )
        method: BasePruningMethod = made
        if before:
            ((_, old),) = before
            container = old if isinstance(old, PruningContainer) else PruningContainer(old)
            method = container._with(made)
            mask = getattr(module, name + "_mask").detach().clone()
        else:
            mask = ops.ones_like(current)
        mask = method.compute_mask(importance_scores, default_mask=mask)
        # Nothing has been changed until here: what is wrong with the arguments has been said.
        for key, _ in before:
            del module._forward_pre_hooks[key]
        if not before:
            module.register_parameter(name + "_orig", current)
            del module._parameters[name]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """A tensor pruned by this method, without a module."""
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        mask = ops.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(t if importance_scores is None else importance_scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Make the pruned values the parameter's own; the hook stays, see `prune.remove`."""
        name = self._name(module, "has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original: Any = module._parameters[name + "_orig"]
        original.data = weight.detach()
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


def _hooks(module: Module, name: str) -> list[tuple[int, BasePruningMethod]]:
    """The pruning methods of one parameter, with their keys."""
    return [
        (key, hook)
        for key, hook in module._forward_pre_hooks.items()
        if isinstance(hook, BasePruningMethod) and getattr(hook, "_tensor_name", None) == name
    ]


class PruningContainer(BasePruningMethod):
    """Several methods for one parameter, each of which has pruned what the ones before had left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def _with(self, method: BasePruningMethod) -> PruningContainer:
        """This one and one more."""
        more = PruningContainer()
        more._tensor_name = self._tensor_name
        more._pruning_methods = (*self._pruning_methods, method)
        return more

    def add_pruning_method(self, method: Any) -> None:
        """Add a method for the same parameter."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        mine = getattr(self, "_tensor_name", None)
        if method is not None and mine != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{mine}' to PruningContainer {self}. "
                f"Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with what the last method takes from what is left."""
        method: Any = self._pruning_methods[-1]
        where = self._left(method, t, default_mask)
        mask = default_mask.to(dtype=t.dtype).clone()
        mask[where] = method.compute_mask(t[where], default_mask=default_mask[where]).to(dtype=mask.dtype)
        return mask

    @staticmethod
    def _left(method: Any, t: Tensor, mask: Tensor) -> Any:
        """Which elements, or slices, a method may still choose from."""
        if method.PRUNING_TYPE == "unstructured":
            return mask == 1
        everything: list[Any] = [slice(None)] * t.dim()
        if method.PRUNING_TYPE == "global":
            return tuple(everything)
        if method.PRUNING_TYPE != "structured":
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        if not hasattr(method, "dim"):
            raise AttributeError(
                'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.'
            )
        dim = method.dim + t.dim() if method.dim < 0 else method.dim
        if dim < 0:
            raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
        everything[dim] = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
        return tuple(everything)


# ---------------------------------------------------------------------------------------------------------- the methods


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the parameter a pruned one."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask there is."""
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> BasePruningMethod:  # type: ignore[override]
        """Add the mask, of ones."""
        return super().apply(module, name)


class _Amount(BasePruningMethod):
    """A method that prunes a number of things, or a fraction of them."""

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _number(self, size: int) -> int:
        number = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(number, size)
        return number


class RandomUnstructured(_Amount):
    """Prunes elements at random."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with `amount` more zeros."""
        return _without(default_mask, ops.rand_like(t), self._number(t.nelement()))

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any) -> BasePruningMethod:  # type: ignore[override]
        """Prune `amount` elements."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Amount):
    """Prunes the elements nearest to zero."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with `amount` more zeros."""
        return _without(default_mask, t.detach().abs(), self._number(t.nelement()))

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: Any, importance_scores: Tensor | None = None
    ) -> BasePruningMethod:
        """Prune `amount` elements."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


def _without(mask: Tensor, scores: Tensor, number: int) -> Tensor:
    """`mask` with zeros at the `number` lowest scores."""
    mask = mask.clone()
    if number:
        mask.view(-1)[ops.topk(scores.reshape(-1), number, largest=False).indices] = 0
    return mask


class _Structured(_Amount):
    """A method that prunes whole slices along `dim`: those of the lowest scores."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with `amount` more slices of zeros."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        number = self._number(t.shape[self.dim])
        if not number:
            return default_mask
        mask = default_mask.to(dtype=t.dtype).clone()
        lowest = ops.topk(self._scores(t), number, largest=False).indices
        return mask.index_fill_(self.dim, lowest, 0)

    @abstractmethod
    def _scores(self, t: Tensor) -> Tensor:
        """A number for each slice."""


class RandomStructured(_Structured):
    """Prunes slices at random."""

    def _scores(self, t: Tensor) -> Tensor:
        return ops.rand(t.shape[self.dim])

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any, dim: int = -1) -> BasePruningMethod:  # type: ignore[override]
        """Prune `amount` slices along `dim`."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the slices with the least `n`-norm."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor) -> Tensor:
        return _compute_norm(t.detach(), self.n, self.dim)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Tensor | None = None
    ) -> BasePruningMethod:
        """Prune `amount` slices along `dim`."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes what a given mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Both masks together."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> BasePruningMethod:  # type: ignore[override]
        """Prune by `mask`."""
        return super().apply(module, name, mask=mask)


# -------------------------------------------------------------------------------------------------------- the functions


def identity(module: Module, name: str) -> Module:
    """Make a parameter a pruned one, without pruning any of it."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Module:
    """Prune elements at random: a number of them, or a fraction between 0 and 1."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: Any, importance_scores: Tensor | None = None) -> Module:
    """Prune the elements nearest to zero, or those with the lowest scores.

    >>> import retrograd as torch
    >>> m = torch.nn.utils.prune.l1_unstructured(torch.nn.Linear(2, 3), "weight", amount=2)
    >>> sorted(m.state_dict()), int((m.weight == 0).sum())
    (['bias', 'weight_mask', 'weight_orig'], 2)
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Prune slices along `dim` at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the slices along `dim` with the least `n`-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune what is zero in `mask`."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: dict[Any, Any] | None = None, **kwargs: Any
) -> None:
    """Prune several parameters, given as (module, name) pairs, as if they were one vector.

    >>> import retrograd as torch
    >>> from retrograd.nn.utils import prune
    >>> net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 2))
    >>> prune.global_unstructured([(layer, "weight") for layer in net], prune.L1Unstructured, amount=5)
    >>> sum(int((layer.weight == 0).sum()) for layer in net)
    5
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    listed = list(parameters)
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of '
            f"type {method.PRUNING_TYPE}"
        )
    tensors = [getattr(module, name) for module, name in listed]
    relevant = parameters_to_vector(
        [scores.get((module, name), t) for (module, name), t in zip(listed, tensors, strict=True)]
    )
    before = parameters_to_vector(
        [getattr(module, name + "_mask", ops.ones_like(t)) for (module, name), t in zip(listed, tensors, strict=True)]
    )
    mask = PruningContainer(method).compute_mask(relevant.detach(), before)
    parts = mask.split([tensor.numel() for tensor in tensors])
    for (module, name), tensor, part in zip(listed, tensors, parts, strict=True):
        custom_from_mask(module, name, mask=part.view_as(tensor))


def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter an ordinary one, with zeros for what was pruned."""
    for key, hook in _hooks(module, name):
        hook.remove(module)
        del module._forward_pre_hooks[key]
        return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Has the module, or one below it, a pruned parameter?"""
    return any(
        isinstance(hook, BasePruningMethod)
        for below in module.modules()
        for hook in below._forward_pre_hooks.values()
    )


# ----------------------------------------------------------------------------------------------------------- the checks


def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if amount < 0 or (not whole and float(amount) > 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer"
        )


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and amount > tensor_size:  # type: ignore[operator]
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}"
        )


def _validate_structured_pruning(t: Tensor) -> None:
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
            f"{t.shape} with {t.dim()} dims"
        )


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)  # type: ignore[return-value]


def _compute_norm(t: Tensor, n: Any, dim: int) -> Tensor:
    """The `n`-norm of each slice along `dim`."""
    return ops.norm(t, p=n, dim=[d for d in range(t.dim()) if d != dim % t.dim()])
