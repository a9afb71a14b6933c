"""Names that torch keeps in its extension module, for code that reaches for them there.

Everything lives elsewhere in the package; nothing in the package imports this.
"""

from __future__ import annotations

from typing import Any

from ..autograd import forward_ad
from ..autograd.engine import Engine as _ImperativeEngine
from ..autograd.grad_mode import is_grad_enabled
from ..autograd.graph import current_graph_task_execution_order as _current_graph_task_execution_order
from ..autograd.graph import current_graph_task_id as _current_graph_task_id
from ..autograd.graph import current_node as _current_autograd_node
from ..autograd.graph import will_execute as _will_engine_execute_node
from ..core.size import Size
from ..core.state import local
from ..kernels.linalg_checks import LinAlgError as _LinAlgError
from ..ops.autograd_fallback import get_mode as _get_autograd_fallback_mode
from ..ops.autograd_fallback import set_mode as _set_autograd_fallback_mode
from ..ops.composite.shape import broadcast_shapes
from ..ops.custom import below_autograd as _AutoDispatchBelowAutograd
from ..ops.operator_schema import Tag
from ..ops.operator_schema import parse as parse_schema
from ..ops.uninitialized import memory
from ..tensor import Tensor
from ..tensor.autograd_attributes import TensorAutograd as TensorBase
from ..tensor.overriding import disabled_torch_function as _disabled_torch_function_impl
from . import _autograd, _functions

__all__ = ["Tag", "TensorBase", "_autograd", "_functions", "is_grad_enabled", "parse_schema"]

has_lapack = True

_TensorBase = TensorBase


def _set_fwd_grad_enabled(enabled: bool) -> None:
    """Switch forward mode on or off in this thread."""
    forward_ad._set_fwd_grad_enabled(enabled).__enter__()


def _is_alias_of(one: Any, other: Any) -> bool:
    """Do two tensors lie in the same storage?"""
    return one.untyped_storage()._cdata == other.untyped_storage()._cdata


def _tensors_among(values: Any) -> Any:
    """The tensors among values, and in lists of lists of them."""
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _tensors_among(value)
        elif isinstance(value, Tensor):
            yield value


def _any_requires_grad(*args: Any, **kwargs: Any) -> bool:
    """Does one of these require grad, or one in a list among them?"""
    values = (*args, *kwargs.values())
    flat = [one for value in values for one in (value if isinstance(value, (tuple, list)) else (value,))]
    return any(isinstance(one, Tensor) and one.requires_grad for one in flat)


def _any_output_is_alias_to_input_or_output(args: Any, kwargs: Any, outputs: Any) -> bool:
    """Does a result lie in the storage of an argument, or of another result?"""

    def storages(values: Any) -> list[Any]:
        return [one.untyped_storage()._cdata for one in _tensors_among(values) if one.numel()]

    given = set(storages((*args, *(kwargs or {}).values())))
    results = storages(outputs if isinstance(outputs, (tuple, list)) else (outputs,))
    return len(set(results)) < len(results) or not given.isdisjoint(results)


class _WeakTensorRef:
    """A weak reference to a tensor that can be asked whether it has expired."""

    def __init__(self, tensor: Any) -> None:
        import weakref

        self.reference = weakref.ref(tensor)

    def expired(self) -> bool:
        return self.reference() is None


def _debug_only_display_vmap_fallback_warnings(enabled: bool) -> None:
    """Do operators without a batching rule warn in this thread?"""
    local.state.batch_fallback = "warn" if enabled else "quiet"


def _debug_only_are_vmap_fallback_warnings_enabled() -> bool:
    return local.state.batch_fallback == "warn"


def _get_deterministic_fill_uninitialized_memory() -> bool:
    """Is new memory filled while deterministic algorithms are asked for?"""
    return memory.wanted


def _set_deterministic_fill_uninitialized_memory(wanted: bool) -> None:
    """``torch.utils.deterministic.fill_uninitialized_memory = wanted``."""
    if not isinstance(wanted, bool):
        raise RuntimeError(f"expected a bool, but got {type(wanted).__name__}")
    memory.switch(wanted=wanted)


def _infer_size(one: Any, other: Any) -> Size:
    """The size that tensors of these two are broadcast to."""
    for position, given in enumerate((one, other), 1):
        if not isinstance(given, Size):
            raise RuntimeError(f"expected a torch.Size as argument {position}")
    return broadcast_shapes(one, other)


def _get_cpu_allow_fp16_reduced_precision_reduction() -> bool:
    """May products in float16 be summed in float16? They never are."""
    return False


def _set_cpu_allow_fp16_reduced_precision_reduction(allowed: bool) -> None:
    """Allow it: refused, as torch refuses it on a processor without such sums."""
    if not isinstance(allowed, bool):
        raise RuntimeError(f"set_allow_fp16_reduction_cpu expects a bool, but got {type(allowed).__name__}")
    if allowed:
        raise RuntimeError("Float16 arithmetic is not supported by the CPU! Sums are computed in float32")


#: Of functions and operators that programs override, and of files: who has the name.
_OVERRIDING = {
    **dict.fromkeys(
        ("DisableTorchFunction", "DisableTorchFunctionSubclass", "_EnableTorchFunction", "_get_function_stack_at",
         "_len_torch_function_stack"), "overrides",
    ),
    **dict.fromkeys(("_disabled_torch_dispatch_impl", "_dispatch_isTensorSubclassLike"), "ops.dispatch"),
    "_DisableTorchDispatch": "ops.dispatch", "_nn": "_C._nn",
    **dict.fromkeys(("PyTorchFileReader", "PyTorchFileWriter"), "serialization.records"),
}  # fmt: skip


def _is_torch_function_enabled() -> bool:
    """Are the arguments of functions asked what these mean?"""
    return not local.state.functions_off


def _is_torch_function_all_disabled() -> bool:
    """Is nobody asked, not even a mode?"""
    return local.state.functions_off == 2


def _is_torch_function_mode_enabled() -> bool:
    """Are modes asked, and is there one?"""
    return local.state.functions_off < 2 and bool(local.state.function_modes)


def __getattr__(name: str) -> Any:
    if name in _OVERRIDING:
        from importlib import import_module

        module = import_module(f"..{_OVERRIDING[name]}", __name__)
        return module if name == "_nn" else getattr(module, name)
    if name in ("_functorch", "_profiler"):  # imported by who asks for them, as `func` is
        from importlib import import_module

        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
