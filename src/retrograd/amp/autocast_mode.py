"""Automatic mixed precision, ``torch.amp``: within ``with autocast("cpu"):`` each operator has its own precision.

Products run in bfloat16 (or float16), what loses too much in it runs in float32, and some operators take the widest
dtype of their arguments; all others compute in what they are given.  Only float32, float16 and bfloat16 are cast.

It is an observer of the thread's operators (autograd/intercept.py).  Torch's lists name functions; some of them are
composed here of other operators.  So the rule is that of the outermost listed function on the way from the user's
code to the operator, which is found on the stack.  (Functions that refuse low precision before they come to an
operator, as decompositions and transforms do, refuse it here too, where torch would compute in float32.)

Why the stack: the plain way, functions that say their name when they are called, costs each of them a fifth of a
microsecond in every call, mixed precision or not; that is 5 % of a small `linear` and 20 % of a small `matmul`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from sys import _getframe
from types import CodeType, FrameType
from typing import Any

from ..autograd.grad_mode import _Mode
from ..autograd.intercept import catch_up, interceptor_of, set_observers
from ..core import dtypes
from ..core.devices import accelerators, device
from ..core.state import ThreadState, local, process
from ..core.where import is_user_code
from ..ops.overload import overload_of
from ..ops.registry import DECLARED
from ..tensor import Tensor

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

LOW = frozenset(
    """
    addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
    convolution einsum linalg_vecdot linear matmul __matmul__ __rmatmul__ mm prelu scaled_dot_product_attention
    _lstm_layer
""".split()
)
FLOAT32 = frozenset(
    """
    _adaptive_avg_pool3d _avg_pool3d _max_pool3d binary_cross_entropy binary_cross_entropy_with_logits cdist
    cosine_embedding_loss cross_entropy ctc_loss grid_sample grid_sampler hinge_embedding_loss householder_product
    huber_loss kl_div l1_loss lstsq margin_ranking_loss matrix_norm matrix_rank max_unpool2d max_unpool3d mse_loss
    multi_margin_loss multilabel_margin_loss nll_loss poisson_nll_loss polar prod qr slogdet smooth_l1_loss
    soft_margin_loss trace triplet_margin_loss view_as_complex
    adaptive_avg_pool3d reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d
    replication_pad2d replication_pad3d _reflection_pad1d_map _reflection_pad2d_map _reflection_pad3d_map
    _replication_pad1d_map _replication_pad2d_map _replication_pad3d_map
    cholesky cholesky_inverse cholesky_solve geqrf inverse lu_solve orgqr ormqr pinverse svd triangular_solve
    linalg_cholesky linalg_cholesky_ex linalg_cond linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh
    linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq linalg_matrix_rank linalg_qr linalg_solve
    linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve _linalg_eigh _linalg_eigvals _linalg_svd
    _linalg_solve_ex
""".split()
)
#: On CUDA devices also these are computed in float32.
CUDA_FLOAT32 = frozenset(
    """
    acos asin cosh cosine_similarity cumprod cumsum dist erfinv exp expm1 group_norm layer_norm native_group_norm
    native_layer_norm log log10 log1p log2 logsumexp _log_softmax log_softmax norm pdist pow reciprocal renorm rsqrt
    sinh _softmax softmax softmin softplus sum tan
""".split()
)
WIDEST = frozenset(["cat", "concat", "concatenate", "index_copy", "stack"])
#: Composed of operators of the first list here, but not there.
AS_GIVEN = frozenset(["addmv", "addr", "bilinear", "dot", "ger", "inner", "mv", "outer", "tensordot", "vdot"])

_CASTABLE = ("float32", "float16", "bfloat16")


class _Autocast:
    """The mode as an observer."""

    casts = True  # for functions that are made of other operators then

    def __init__(self, dtype: dtypes.dtype, kind: str = "cpu", keeps: bool = True) -> None:
        self.dtype = dtype
        #: Were casts to be kept? Nothing is kept here, but a program may ask what was said.
        self.keeps = keeps
        #: The kind of device whose tensors it is about.
        self.kind = kind

    def __call__(
        self, operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any], proceed: Callable[..., Any]
    ) -> Any:
        if accelerators and not _is_about(self.kind, (args, kwargs)):
            return proceed()
        rule = _rule_for(operator)
        if self.kind == "cuda" and rule is not LOW and overload_of(operator).overloadpacket.__name__ in CUDA_FLOAT32:
            rule = FLOAT32
        if rule is None:
            return proceed()
        target = self.dtype
        if rule is WIDEST:
            target = _widest((args, kwargs))
        elif rule is FLOAT32:
            target = dtypes.float32

        @functools.wraps(operator)
        def cast(*args: Any, **kwargs: Any) -> Any:
            return operator(*_cast(args, target), **_cast(kwargs, target))

        return proceed(cast)


def _rule_for(operator: Callable[..., Any]) -> frozenset[Any] | None:
    """Which list an operator falls under: by the outermost function of ours that is in one."""
    rules = _rules()
    found = _list_of(overload_of(operator).overloadpacket.__name__)
    frame: FrameType | None = _getframe(1)
    while frame is not None and not is_user_code(frame.f_code):
        found = rules.get(frame.f_code, found)
        frame = frame.f_back
    return None if found is AS_GIVEN else found


def _list_of(name: str) -> frozenset[Any] | None:
    for names in (LOW, FLOAT32, WIDEST, AS_GIVEN):
        if name in names:
            return names
    return None


@functools.cache
def _rules() -> dict[CodeType, frozenset[Any]]:
    """code object -> list, for the listed functions that are composed of others."""
    lists: dict[CodeType, set[Any]] = {}
    for space in ("Tensor", "torch", "internal", "nn.functional", "fft"):
        for name, function in DECLARED[space].items():
            names = _list_of(name)
            if names is not None and hasattr(function, "__code__"):
                code = getattr(function, "body", function).__code__  # (ops/override_switch.py)
                lists.setdefault(code, set()).add(names)
    # Code that functions of several lists share says nothing: their operators have to.
    return {code: of_code.pop() for code, of_code in lists.items() if len(of_code) == 1}


def _cast(value: Any, target: dtypes.dtype) -> Any:
    if isinstance(value, Tensor):
        return value.to(target) if value.dtype is not target and value.dtype.name in _CASTABLE else value
    if isinstance(value, (tuple, list)):
        return type(value)([_cast(part, target) for part in value])
    if isinstance(value, dict):
        return {name: _cast(part, target) for name, part in value.items()}
    return value


def _is_about(kind: str, value: Any) -> bool:
    """Is a tensor of this kind of device among the arguments?"""
    if isinstance(value, Tensor):
        return value.device.type == kind
    if isinstance(value, (tuple, list, dict)):
        return any(_is_about(kind, part) for part in (value.values() if isinstance(value, dict) else value))
    return False


def _widest(value: Any) -> dtypes.dtype:
    """The dtype that the tensors among the arguments have in common."""
    names = set(_dtype_names(value))
    if len(names) > 1:
        return dtypes.float32
    return dtypes.by_name(names.pop()) if names else dtypes.float32


def _dtype_names(value: Any) -> Iterator[str]:
    if isinstance(value, Tensor):
        if value.dtype.name in _CASTABLE:
            yield value.dtype.name
    elif isinstance(value, (tuple, list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _dtype_names(part)


# ------------------------------------------------------------------------------------------------------------- the mode


def current_autocast(kind: str | None = None) -> _Autocast | None:
    """The mode that is on in this thread, for a kind of device or for any."""
    for observer in local.state.observers:
        if isinstance(observer, _Autocast) and kind in (None, observer.kind):
            return observer
    return None


def _with(state: ThreadState, mode: _Autocast | None, kind: str | None = None) -> tuple[Any, ...]:
    """The thread's observers, with this mode in place of those for its kind of device, or for all."""
    others = tuple([o for o in state.observers if not (isinstance(o, _Autocast) and kind in (None, o.kind))])
    return others if mode is None else (*others, mode)


class restored_autocast:
    """The mode that was on at another time: a checkpoint's recomputation runs in that of its forward pass."""

    #: The kind of device that it is about; None: all.
    kind: str | None = None

    def __init__(self, mode: _Autocast | None) -> None:
        self.mode = mode
        self.before: Any = None

    def __enter__(self) -> Any:
        state = local.state
        observers = _with(state, self._wanted(), self.kind)
        interceptor = interceptor_of(observers)
        as_they_were = state.observers, interceptor_of(state.observers)
        self.before = current_autocast(self.kind), observers, as_they_were, self.before
        state.observers, state.interceptor = observers, interceptor
        return self

    def __exit__(self, *exc_info: object) -> None:
        state = local.state
        mode, observers, as_they_were, self.before = self.before
        if state.observers is observers:
            state.observers, state.interceptor = as_they_were
            if not state.observers and state.known_modes is not process.modes:
                state.interceptor = catch_up
            return
        try:  # others have come or gone meanwhile
            set_observers(state, _with(state, mode, self.kind))
        except BaseException:  # Note [Interrupts and modes] in core/state.py
            set_observers(state, _with(state, mode, self.kind))
            raise

    def _wanted(self) -> _Autocast | None:
        """The mode to switch to."""
        return self.mode


class autocast(restored_autocast, _Mode):
    """Choose the precision of each operator, within a ``with`` block or a decorated function.

    >>> import retrograd as torch
    >>> x = torch.ones(2, 2)
    >>> with torch.autocast("cpu"):
    ...     y = x @ x
    ...     z = y + x
    >>> y.dtype, z.dtype
    (torch.bfloat16, torch.float32)
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device: str = device(device_type).type
        self.fast_dtype: dtypes.dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else bool(cache_enabled)
        self._enabled = enabled
        self.before: Any = None
        self.kind = self.device
        if enabled and not is_autocast_available(self.device):
            warnings.warn(f"{self.device.upper()} is not available. Disabling autocast.", UserWarning, stacklevel=2)
            self._enabled = False
        elif enabled and getattr(self.fast_dtype, "name", None) not in ("bfloat16", "float16"):
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                "CPU Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
                UserWarning,
                stacklevel=2,
            )
            self._enabled = False

    def _wanted(self) -> _Autocast | None:
        if not is_autocast_available(self.device):
            return current_autocast(self.device)
        return _Autocast(self.fast_dtype, self.device, self._cache_enabled) if self._enabled else None

    def clone(self) -> autocast:
        result = object.__new__(type(self))
        result.__dict__.update(self.__dict__, before=None)
        return result


def is_autocast_available(device_type: str) -> bool:
    """Is there autocast for this kind of device?"""
    kind = device(device_type).type
    return kind == "cpu" or any(known.type == kind for known in accelerators)


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Is autocast on in this thread?"""
    return current_autocast(device(device_type).type) is not None


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """What autocast casts to on this kind of device."""
    kind = device(device_type).type
    mode = current_autocast(kind)
    return mode.dtype if mode is not None else dtypes.by_name("bfloat16") if kind == "cpu" else dtypes.float16


def get_autocast_cpu_dtype() -> dtypes.dtype:
    """``get_autocast_dtype("cpu")``, as it was called."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> dtypes.dtype:
    """``get_autocast_dtype("cuda")``, as it was called."""
    return get_autocast_dtype("cuda")


def is_autocast_cpu_enabled() -> bool:
    """``is_autocast_enabled("cpu")``, as it was called."""
    return is_autocast_enabled("cpu")


def is_autocast_cache_enabled() -> bool:
    """What was said of the cache of casts: ``autocast(..., cache_enabled=False)``. There is none here."""
    mode = current_autocast()
    return mode is None or mode.keeps


def clear_autocast_cache() -> None:
    """Forget casts that were kept: none are."""


# ----------------------------------------------------------------------------------------------------- custom functions


def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """Decorator for the forward of a custom Function: its backward runs in the same mode, see `custom_bwd`.

    With `cast_inputs`, forward gets its tensors in that dtype if autocast is on, and runs without it.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    function = fwd

    @functools.wraps(function)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        ctx._autocast = current_autocast()
        if cast_inputs is None or ctx._autocast is None:
            return function(*args, **kwargs)
        ctx._autocast = None
        with restored_autocast(None):
            return function(*_cast(args, cast_inputs), **_cast(kwargs, cast_inputs))

    return decorated


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorator for the backward of a custom Function whose forward has `custom_fwd`."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    function = bwd

    @functools.wraps(function)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with restored_autocast(args[0]._autocast):
            return function(*args, **kwargs)

    return decorated
