"""Lazy modules: layers that learn the shapes of their parameters from their first input."""

from __future__ import annotations

import itertools
from typing import Any

from ...autograd.grad_mode import no_grad
from ..parameter import is_lazy


class LazyModuleMixin:
    """The part of a lazy module that waits: two hooks, before the first `forward` and before loading.

    A subclass defines `initialize_parameters`, which is given the arguments of the first call and materializes what is
    uninitialized.  After that the module becomes one of the class `cls_to_become`, and nothing reminds of it.

    >>> import retrograd as torch
    >>> layer = torch.nn.LazyLinear(3)
    >>> layer.weight
    <UninitializedParameter>
    >>> y = layer(torch.ones(2, 5)); layer
    Linear(in_features=5, out_features=3, bias=True)
    """

    cls_to_become: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        me: Any = self
        self._load_hook = me._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = me.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _members(self) -> Any:
        me: Any = self
        return itertools.chain(me._parameters.items(), me._buffers.items())

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters their shapes, from what the module is called with."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Does the module still wait for its first input?"""
        return any(is_lazy(tensor) for _, tensor in self._members())

    def _lazy_load_hook(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """What is loaded says its shape, too."""
        for name, tensor in self._members():
            loaded = state_dict.get(prefix + name)
            if is_lazy(tensor) and loaded is not None and not is_lazy(loaded):
                with no_grad():
                    tensor.materialize(loaded.shape)

    def _infer_parameters(self, module: Any, args: tuple, kwargs: dict[str, Any] | None = None) -> None:
        """The hook before the first call."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
        for hook in ("_initialize_hook", "_load_hook"):
            getattr(module, hook).remove()
            delattr(module, hook)
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
            "correctly initialize the modules"
        )
