"""The older way to call a module with other parameters: a function and its parameters, taken apart.

`func.functional_call` is the one to use.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .._generated import functions as generated
from ..func.modules import functional_call
from ..nn.modules.module import Module
from ..tensor import Tensor

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functional_init",
    "functional_init_with_buffers", "make_functional", "make_functional_with_buffers",
]  # fmt: skip


def _deprecated(name: str, instead: str) -> None:
    warnings.warn(
        f"We've integrated functorch into PyTorch. As the final step of the integration, `functorch.{name}` is "
        "deprecated "
        f"as of PyTorch 2.0 and will be deleted in a future version of PyTorch. Please use `torch.func.{instead}` "
        "instead",
        FutureWarning,
        stacklevel=3,
    )


class _Stateless:
    """A module whose parameters and buffers are given with each call."""

    def __init__(self, model: Module, disable_autograd_tracking: bool = False) -> None:
        self.stateless_model: Module = copy.deepcopy(model)
        self.param_names: tuple[str, ...] = tuple(dict(model.named_parameters()))
        self.buffer_names: tuple[str, ...] = tuple(dict(model.named_buffers()))
        self._tracking: bool = not disable_autograd_tracking

    def _state(self) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        parameters = tuple(self.stateless_model.parameters())
        if not self._tracking:
            parameters = tuple([p.detach() for p in parameters])  # type: ignore[misc]
        return parameters, tuple(self.stateless_model.buffers())

    def _call(self, params: Sequence[Tensor], buffers: Sequence[Tensor], args: Any, kwargs: Any) -> Any:
        state = dict(zip(self.param_names, params, strict=True)) | dict(zip(self.buffer_names, buffers, strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(_Stateless):
    """``fmodel(params, *args)``."""

    def __call__(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        return self._call(params, tuple(self.stateless_model.buffers()), args, kwargs)


class FunctionalModuleWithBuffers(_Stateless):
    """``fmodel(params, buffers, *args)``."""

    def __call__(self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        return self._call(params, buffers, args, kwargs)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[Any, tuple[Tensor, ...]]:
    """A function ``f(params, *args)`` that calls a copy of `model`, and its parameters.

    >>> import retrograd as torch
    >>> import warnings; warnings.simplefilter("ignore", FutureWarning)
    >>> f, params = make_functional(torch.nn.Linear(1, 1))
    >>> f([torch.ones(1, 1), torch.zeros(1)], torch.tensor([3.]))
    tensor([3.])
    """
    _deprecated("make_functional", "functional_call")
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    made = FunctionalModule(model, disable_autograd_tracking)
    return made, made._state()[0]


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[Any, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """A function ``f(params, buffers, *args)`` that calls a copy of `model`, its parameters and its buffers."""
    _deprecated("make_functional_with_buffers", "functional_call")
    return _with_buffers(model, disable_autograd_tracking)


def _with_buffers(model: Module, disable_autograd_tracking: bool = False) -> tuple[Any, Any, Any]:
    made = FunctionalModuleWithBuffers(model, disable_autograd_tracking)
    return (made, *made._state())


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[Any, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """A function of the parameters and buffers of models of one architecture, and both, stacked."""
    _deprecated("combine_state_for_ensemble", "stack_module_state")
    return _combined(list(models))


def _combined(models: list[Module]) -> tuple[Any, tuple[Tensor, ...], tuple[Tensor, ...]]:
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or not any(m.training for m in models)):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    made = [_with_buffers(model) for model in models]
    params = tuple([generated.stack(list(each)) for each in zip(*[m[1] for m in made], strict=True)])
    buffers = tuple([generated.stack(list(each)) for each in zip(*[m[2] for m in made], strict=True)])
    return made[0][0], params, buffers


def functional_init(
    model_class: type[Module], ensemble_shape: tuple[int, ...] | tuple[()] = (), device: Any = "cpu"
) -> Callable[..., Any]:
    """A function that makes models of a class: their parameters (of several models, stacked), ``f(params, args)``, and
    the names of the parameters."""

    def init(*args: Any, **kwargs: Any) -> Any:
        if not ensemble_shape:
            made, params = make_functional(model_class(*args, **kwargs))
            return params, lambda params, data: made(params, *_as_tuple(data)), made.param_names
        _one_dimension(ensemble_shape)
        models = [model_class(*args, **kwargs) for _ in range(ensemble_shape[0])]
        made = [make_functional(model) for model in models]
        params = tuple([generated.stack(list(each)) for each in zip(*[m[1] for m in made], strict=True)])
        function = made[0][0]
        return params, lambda params, data: function(params, *_as_tuple(data)), function.param_names

    return init


def functional_init_with_buffers(
    model_class: type[Module], ensemble_shape: tuple[int, ...] | tuple[()] = (), device: Any = "cpu"
) -> Callable[..., Any]:
    """The same for models with buffers: ``f(params, buffers, args)``."""

    def init(*args: Any, **kwargs: Any) -> Any:
        if ensemble_shape:
            _one_dimension(ensemble_shape)
            made, params, buffers = _combined([model_class(*args, **kwargs) for _ in range(ensemble_shape[0])])
        else:
            made, params, buffers = _with_buffers(model_class(*args, **kwargs))

        def function(params: Any, buffers: Any, data: Any) -> Any:
            return made(params, buffers, *_as_tuple(data))

        return params, buffers, function, made.param_names, made.buffer_names

    return init


def _as_tuple(data: Any) -> tuple[Any, ...]:
    return data if isinstance(data, tuple) else (data,)


def _one_dimension(shape: tuple[int, ...]) -> None:
    if len(shape) != 1 or shape[0] <= 0:
        raise ValueError(f"expected an ensemble_shape of one positive number, got {shape}")
