"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .._generated import functions as generated
from ..core.state import local
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from ..nn.utils.stateless import _functional_call
from ..tensor import Tensor
from .batched import BatchedTensor

AnyModule = TypeVar("AnyModule", bound=Module)


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call `module` with its parameters and buffers of the given names replaced for this call.

    >>> import retrograd as torch
    >>> m = torch.nn.Linear(1, 1, bias=False)
    >>> torch.func.functional_call(m, {"weight": torch.tensor([[3.]])}, torch.ones(1))
    tensor([3.])
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        merged = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, Sequence):
        if not all(isinstance(d, dict) for d in parameter_and_buffer_dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for d in parameter_and_buffer_dicts for name in d]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        merged = {name: value for d in parameter_and_buffer_dicts for name, value in d.items()}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    return _functional_call(module, merged, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of models of one architecture, each stacked along a new first dimension.

    >>> import retrograd as torch
    >>> models = [torch.nn.Linear(2, 1) for _ in range(3)]
    >>> params, buffers = torch.func.stack_module_state(models)
    >>> params["weight"].shape
    torch.Size([3, 1, 2])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    stacked = {}
    for name in parameters[0]:
        ones = [each[name] for each in parameters]
        if not (all(p.requires_grad for p in ones) or not any(p.requires_grad for p in ones)):
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        stacked[name] = generated.stack([p.detach() for p in ones]).requires_grad_(ones[0].requires_grad)
    return stacked, {name: generated.stack([each[name] for each in buffers]) for name in buffers[0]}


def replace_all_batch_norm_modules_(root: AnyModule) -> AnyModule:
    """Have the batch normalizations in a module keep no running statistics, which examples cannot share; in place.

    >>> import retrograd as torch
    >>> m = torch.func.replace_all_batch_norm_modules_(torch.nn.Sequential(torch.nn.BatchNorm1d(2)))
    >>> m[0].running_mean is None, m[0].track_running_stats
    (True, False)
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func`, with its writes in place (and, if `remove` says so, its views) taken out of what a tracer would see.

    There is no tracer here: each operator runs when it is called, and the result is that of `func`.  What `func` writes
    to its arguments is in them afterwards, as in torch.

    >>> import retrograd as torch
    >>> torch.func.functionalize(lambda x: x.clone().add_(1))(torch.zeros(2))
    tensor([1., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='{remove}'): the only valid values for `remove` are 'mutations' and "
            "'mutations_and_views'."
        )

    def functional(*args: Any, **kwargs: Any) -> Any:
        state = local.state
        depth, state.func_depth = state.func_depth, state.func_depth + 1
        try:
            return func(*args, **kwargs)
        finally:
            state.func_depth = depth

    functional.__name__ = getattr(func, "__name__", "functional")
    return functional


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """What a tensor inside of a transform holds: the values of all examples; with `recurse`, without any batching.

    >>> import retrograd as torch
    >>> shapes = []
    >>> def f(x):
    ...     shapes.append(torch.func.debug_unwrap(x).shape)
    ...     return x
    >>> _ = torch.vmap(f)(torch.ones(3, 2)); shapes
    [torch.Size([3, 2])]
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"debug_unwrap(): argument 'tensor' must be Tensor, not {type(tensor).__name__}")
    while tensor.__class__ is BatchedTensor:
        tensor = tensor.value  # type: ignore[attr-defined]
        if not recurse:
            break
    return tensor
