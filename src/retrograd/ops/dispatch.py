"""``__torch_dispatch__``: classes and modes that say themselves what operators do, below autograd.

Note [Python dispatch]
A class of tensors that defines ``__torch_dispatch__(cls, func, types, args, kwargs)`` is asked what an operator gives
for them, instead of a kernel.  Its objects are special tensors (Note [Special tensors]): they have no array that an
operator could take.  They may have memory all the same (`_make_subclass`), which operators read while
`without_dispatch` is in force; or none (`_make_wrapper_subclass`), as those that hold other tensors and compute with
them.  In either case what is known of it is in its `Wrapped`.

*Below autograd* means: an operator records its history as it does for any tensor, and saves what it always saves.  Only
its kernel is another: ``_generated/dispatched.py`` has each wrapper of the table with ``call()`` in the kernel's place.
What the class computes in there records nothing, unless it says so (`reentrant`).  Functions that are composed of
operators are asked about by their parts; those that make tensors or look into them (`whole`) by themselves.

A mode (utils/_python_dispatch.py) is asked in the same place, before the arguments are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..autograd.inplace import bump_version
from ..autograd.intercept import set_observers
from ..core import dtypes
from ..core.description import Description, NoArray
from ..core.late import operators as ops
from ..core.records import record_of
from ..core.state import local
from ..core.version_counter import version_counter
from ..tensor import Tensor, new
from ..tensor.special import SpecialTensor
from . import overload
from .overload import OpOverload, call_of

if TYPE_CHECKING:
    from types import ModuleType


class Wrapped(Description):
    """What stands for the array of a tensor whose class has ``__torch_dispatch__``."""

    __slots__ = ("array", "asks", "attributes", "cls", "device", "layout", "offset", "own", "storage", "storage_size")

    #: A view of it is taken anew by its steps (autograd/view_meta.py): only its class knows how it lies.
    replayed = True

    def __init__(
        self, cls: Any, attributes: dict[str, Any], shape: tuple[int, ...], dtype: Any,
        strides: tuple[int, ...] | None = None, *, device: Any, layout: Any, offset: int = 0, array: Any = None,
        asks: frozenset[str] = frozenset(), size: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(shape, dtype, strides)
        self.cls: Any = cls
        #: The attributes of the tensor: it is not held itself, so that it can be let go.
        self.attributes: dict[str, Any] = attributes
        self.device, self.layout, self.offset, self.storage_size = device, layout, offset, size
        #: Its memory, if it has any.
        self.array: Any = array
        #: What it asks its class about although it is known: "sizes", "strides", "device", "layout".
        self.asks: frozenset[str] = asks
        #: What it has in slots that its class has declared, once it travels.
        self.own: dict[str, Any] = {}
        #: What `untyped_storage` has given for it.
        self.storage: Any = None

    def like(self, attributes: dict[str, Any]) -> Wrapped:
        """The same for another object."""
        made = Wrapped(
            self.cls, attributes, self.shape, self.dtype, self.strides, device=self.device, layout=self.layout,
            offset=self.offset, array=self.array, asks=self.asks, size=self.storage_size,
        )  # fmt: skip
        made.storage = self.storage
        return made

    def as_tensor(self) -> Any:
        result = new(self.cls)
        result._vc_ = result._grad_meta_ = result._edge_ = None
        result.__dict__.update(self.attributes)
        for name, value in self.own.items():
            setattr(result, name, value)
        result._memory_ = self.like(result.__dict__)
        return result


def _own_slots(cls: type) -> tuple[str, ...]:
    """The slots that a class of the user's has declared."""
    found: list[str] = []
    for one in cls.__mro__[: cls.__mro__.index(DispatchTensor)]:
        slots = one.__dict__.get("__slots__", ())
        found += [slots] if isinstance(slots, str) else [s for s in slots if s not in ("__dict__", "__weakref__")]
    return tuple(found)


class DispatchTensor(SpecialTensor):
    """The base of all classes that define ``__torch_dispatch__``; put there when they are defined."""

    __slots__ = ()

    _special_: int = 50
    _needs_tensors_ = True

    if not TYPE_CHECKING:

        @property
        def _numbers_(self) -> Any:
            """Its memory, while nobody is asked."""
            if local.state.dispatch_off and self._memory_.array is not None:
                return self._memory_.array
            raise NoArray(f"{type(self).__name__}: what operators do is up to its __torch_dispatch__")

        _viewed_ = _numbers_

    def _hold_(self, array: Any) -> None:
        """Have other memory of its own."""
        memory = self._memory_
        memory.array, memory.shape, memory.strides, memory.dtype = array, array.shape, array.strides, array.dtype

    def _travelling_(self) -> Any:
        memory = self._memory_
        names = _own_slots(type(self))
        if names:
            memory.own = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return memory

    def _operate_(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if local.state.dispatch_off:
            return NotImplemented
        record = record_of(function)
        if record is None and not is_whole(function):
            return NotImplemented
        if record is not None and record.name in IN_PARTS:
            return IN_PARTS[record.name](*args, **kwargs)
        return below_autograd(function, args, kwargs, lambda func, a, k: ask_arguments(func, a, k))

    def _stuck_(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if local.state.dispatch_off:
            raise self._no_form_(function.__name__) from None
        return ask_arguments(*call_of(function, args, kwargs))

    def _root_gradient_(self, grad: Tensor | None, position: int) -> Any:
        if grad is not None:
            return NotImplemented
        if self._memory_.size != 1:
            raise RuntimeError(
                f"grad can be implicitly created only for scalar outputs; output {position} has shape "
                f"{list(self._memory_.shape)}: pass a gradient of its shape: y.backward(gradient)"
            )
        return ops.ones_like(self)

    def _told_(self, packet: str, form: str = "default", space: str = "aten") -> Any:
        """What its class says of one of its attributes; None: what is known."""
        return ask_arguments(getattr(getattr(getattr(overload, space), packet), form), (self,), {})

    def _asks_(self, what: str) -> bool:
        return what in self._memory_.asks and not local.state.dispatch_off

    def _alias_(self) -> Any:
        """Another object like this one, on the same memory, without history."""
        result = self._travelling_().as_tensor()
        result._vc_ = self._vc_ or version_counter(self)
        return result

    def _described_(self) -> tuple[Any, ...]:
        """What `_make_wrapper_subclass` made it of, in the order in which torch's files have it."""
        memory = self._memory_
        steps = tuple(step // memory.itemsize for step in memory.strides)
        return (
            type(self), dtypes.from_numpy_dtype(memory.dtype), memory.shape, steps, memory.offset, memory.layout,
            memory.device, self.requires_grad,
        )  # fmt: skip

    #: (Special tensors have another one; what it does here is below.)
    detach = Tensor.detach  # type: ignore[assignment]


def wrap_memory(tensor: DispatchTensor) -> Tensor:
    """The memory of a tensor as a plain one."""
    result = new(Tensor)
    result._numbers_ = tensor._memory_.array
    result._vc_ = tensor._vc_ or version_counter(tensor)
    result._grad_meta_ = result._edge_ = None
    return result


# --------------------------------------------------------------------------------------------------------- who is asked


def tensors_in(values: Iterable[Any]) -> Iterable[Any]:
    """The values, and those in lists among them."""
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from value
        else:
            yield value


def _dispatching(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments whose classes are asked, one of each class, subclasses before their bases."""
    found: list[Any] = []
    for value in tensors_in((*args, *kwargs.values())):
        cls = type(value)
        if isinstance(value, DispatchTensor) and not any(type(other) is cls for other in found):
            at = next((i for i, other in enumerate(found) if issubclass(cls, type(other))), len(found))
            found.insert(at, value)
    return found


def types_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[type, ...]:
    """What a handler is told of the classes of the arguments."""
    return tuple([type(value) for value in _dispatching(args, kwargs)])


def ask_arguments(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the classes of the arguments say that an operator gives; what it computes itself, if there are none."""
    found = _dispatching(args, kwargs)
    if not found or local.state.dispatch_off:
        return func(*args, **kwargs)
    types = tuple([type(value) for value in found])
    with recording_off():
        for value in found:
            rule = rule_of(func, type(value))
            handler = value.__torch_dispatch__ if rule is None else partial(rule, type(value))
            result = handler(func, types, args, kwargs)
            if result is not NotImplemented:
                return result
    raise TypeError(
        f"Multiple dispatch failed for 'torch.ops.{str(func).removesuffix('.default')}'; all __torch_dispatch__ "
        f"handlers returned NotImplemented:\n\n"
        + "".join(f"  - tensor subclass {cls}\n" for cls in types)
        + "\nDefine what the operator does in one of them"
    )


def rule_of(func: OpOverload, cls: type) -> Callable[..., Any] | None:
    """What a program has said (`library.register_torch_dispatch`) that its operator means to a class or a mode."""
    return getattr(func.function, "rules", {}).get(cls)


class recording_off:
    """Below autograd nothing is recorded, although grad mode is what it was."""

    __slots__ = ("before",)

    before: bool | None

    def __enter__(self) -> None:
        state = local.state
        self.before = state.grad_enabled
        if self.before:
            state.grad_enabled = None

    def __exit__(self, *exc_info: object) -> None:
        local.state.grad_enabled = self.before


class reentrant:
    """Record and dispatch anew within a ``__torch_dispatch__``: ``overrides.enable_reentrant_dispatch``."""

    __slots__ = ("before",)

    before: bool | None

    def __enter__(self) -> None:
        state = local.state
        self.before = state.grad_enabled
        if self.before is None and not state.inference:
            state.grad_enabled = True

    def __exit__(self, *exc_info: object) -> None:
        local.state.grad_enabled = self.before


class _off:
    """Nobody is asked: tensors are taken for their memory."""

    __slots__ = ("before",)

    before: tuple[bool, Any, Any]

    def __enter__(self) -> None:
        state = local.state
        self.before = state.dispatch_off, state.observers, state.interceptor
        state.dispatch_off = True
        if state.observers:
            set_observers(state, ())

    def __exit__(self, *exc_info: object) -> None:
        state = local.state
        off, observers, interceptor = self.before
        state.dispatch_off = off
        if observers:
            state.observers, state.interceptor = observers, interceptor


no_dispatch = _DisableTorchDispatch = _off


def _disabled_torch_dispatch_impl(
    func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """The ``__torch_dispatch__`` of classes that have none of their own."""
    return without_dispatch(func, args, kwargs)


def _dispatch_isTensorSubclassLike(tensor: Tensor) -> bool:
    """Does its class, or a mode, say what operators do to it?"""
    modes = any(isinstance(observer, ModeObserver) for observer in local.state.observers)
    return modes or (tensor._special_ is not None and tensor._special_ >= DispatchTensor._special_)


def without_dispatch(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """What an operator does to the memory of its arguments, whatever their classes say."""
    with _off():
        return func(*args, **(kwargs or {}))


# ------------------------------------------------------------------------------------------------------- below autograd


def write_out(function: Callable[..., Any], out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``function(..., out=out)``, where one of the tensors has a class that says what operators do."""
    func, told, named = call_of(function, args, kwargs)
    form = "out" if func._overloadname in ("default", "Tensor", "self") else f"{func._overloadname}_out"
    to_out = getattr(func.overloadpacket, form, func)
    result = checked_result(to_out, ask_arguments(to_out, told, {**named, "out": out}))
    for target in (out,) if isinstance(out, Tensor) else out:
        if isinstance(target, DispatchTensor):
            bump_version(target)
    return out if isinstance(out, Tensor) else result


def below_autograd(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    ask: Callable[[OpOverload, tuple[Any, ...], dict[str, Any]], Any],
) -> Any:  # fmt: skip
    """Run an operator with ``ask(func, args, kwargs)`` for its kernel, and record it as ever."""
    record = record_of(function)
    func, told, named = call_of(function, args, kwargs)
    if record is None:
        if function is Tensor.detach:
            return detached(args[0], ask)
        result = checked_result(func, ask(func, told, named))
        if kwargs.get("requires_grad") and isinstance(result, Tensor):
            result.requires_grad_()
        if func._schema.is_mutable and isinstance(args[0], Tensor):
            if isinstance(args[0], DispatchTensor):
                bump_version(args[0])
            return args[0]
        return result
    module = _dispatched()
    run = getattr(module, f"run_{record.name}")
    if record.name in module.SAVES:
        return run(_with_saves(function, func, told, named, ask, module.SAVES[record.name]), *args, **kwargs)
    return run(lambda: checked_result(func, ask(func, told, named)), *args, **kwargs)


def _with_saves(
    function: Callable[..., Any], func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any],
    ask: Callable[..., Any], count: int,
) -> Callable[[], Any]:  # fmt: skip
    """``call()`` of an operator whose kernel returns more than the result: the handler gets one that remembers it."""
    remembered: list[Any] = []

    def remembering(kernel: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arrays: Any, **options: Any) -> Any:
            returned = kernel(*arrays, **options)
            remembered[:] = returned[-count:]
            return returned

        return run

    variant: Any = overload.with_kernel(function, remembering)

    def call() -> Any:
        result = checked_result(func, ask(OpOverload(func.overloadpacket, func._overloadname, variant), args, kwargs))
        if not remembered:  # the handler has not run it
            with recording_off():
                variant(*args, **kwargs)
        return result, tuple(remembered)

    return call


@cache
def _dispatched() -> ModuleType:
    return import_module(f"{__name__.partition('.')[0]}._generated.dispatched")  # thousands of lines that few need


def checked_result(func: OpOverload, result: Any) -> Any:
    """What a handler returned, if it can be what an operator returns."""
    if isinstance(result, str) or result is NotImplemented:
        raise RuntimeError(
            f"Unable to cast Python instance of type {type(result)} to C++ type: torch.ops.{func} returns tensors, and "
            f"__torch_dispatch__ returned {result!r}"
        )
    return result


def detached(tensor: Tensor, ask: Callable[..., Any]) -> Any:
    """``tensor.detach()``: what the class or the mode says, with the version counter of the tensor."""
    func = overload.aten.detach.default
    with recording_off():
        result = checked_result(func, ask(func, (tensor,), {}))
    if isinstance(result, Tensor) and result is not tensor:
        result._vc_ = tensor._vc_ or version_counter(tensor)
        result._grad_meta_ = result._edge_ = None
    return result


# ----------------------------------------------------------------------------------------- operators that come in parts


def _layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    dims = tuple(range(-len(normalized_shape), 0))
    centred = input - input.mean(dims, keepdim=True)
    result = centred * ((centred * centred).mean(dims, keepdim=True) + eps).rsqrt()
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


def _batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float
) -> Any:
    dims = (0, *range(2, input.dim()))
    shape = (1, -1, *[1] * (input.dim() - 2))
    mean, variance = running_mean, running_var
    if training:
        mean = input.mean(dims)
        variance = ((input - mean.reshape(shape)) ** 2).mean(dims)
        count = input.numel() / input.shape[1]
        with recording_off():
            if running_mean is not None:
                running_mean.copy_(running_mean * (1 - momentum) + mean.detach() * momentum)
            if running_var is not None:
                unbiased = variance.detach() * (count / (count - 1))
                running_var.copy_(running_var * (1 - momentum) + unbiased * momentum)
    result = (input - mean.reshape(shape)) * (variance.reshape(shape) + eps).rsqrt()
    result = result if weight is None else result * weight.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


def _nll_loss(input: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100) -> Any:
    at = 1 if input.dim() > 1 else 0
    counts = target != ignore_index
    classes = target.masked_fill(target == ignore_index, 0)
    weights = counts.to(input.dtype) if weight is None else ops.index_select(
        weight, 0, classes.reshape(-1)
    ).reshape(classes.shape) * counts.to(input.dtype)
    losses = -input.gather(at, classes.unsqueeze(at)).squeeze(at) * weights
    return losses if reduction == 0 else losses.sum() / weights.sum() if reduction == 1 else losses.sum()


def _attention_in_parts(
    query: Any, key: Any, value: Any, dropout_p: float, is_causal: bool, *, attn_mask: Any = None, scale: Any = None
) -> Any:
    scores = (query @ key.transpose(-2, -1)) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        allowed = ops.ones(scores.shape[-2:], dtype=dtypes.bool_).tril()
        scores = scores.masked_fill(~allowed, float("-inf"))
    if attn_mask is not None:
        is_bool = attn_mask.dtype is dtypes.bool_
        scores = scores.masked_fill(~attn_mask, float("-inf")) if is_bool else scores + attn_mask
    weights = scores.softmax(-1)
    return (ops.dropout(weights, dropout_p, True) if dropout_p else weights) @ value


#: Operators whose kernels return more for the backward pass than torch's: a class is asked about what they consist of.
IN_PARTS: dict[str, Callable[..., Any]] = {
    "native_layer_norm": _layer_norm, "native_batch_norm": _batch_norm, "nll_loss": _nll_loss, "nll_loss2d": _nll_loss,
    "_attention": _attention_in_parts,
}  # fmt: skip

# ------------------------------------------------------------------------------------------------------ whole functions

#: Functions outside the table that torch has an operator for, with a kernel: they are asked about as they are called.
_WHOLE: frozenset[str] = frozenset(
    """empty empty_like empty_strided zeros zeros_like ones ones_like full full_like eye arange linspace logspace rand
    rand_like randn randn_like randint randint_like randperm normal normal_ uniform_ random_ exponential_ geometric_
    log_normal_ cauchy_ bernoulli bernoulli_ multinomial poisson new_empty new_empty_strided new_zeros new_ones new_full
    tril_indices triu_indices copy_ fill_ zero_ equal is_same_size nonzero masked_select unique_dim _to_copy
    _local_scalar_dense set_ resize_ index_put_ native_dropout scalar_tensor""".split()
)


def is_whole(function: Callable[..., Any]) -> bool:
    """Is a function outside the table an operator of torch's with a kernel?"""
    return getattr(function, "__name__", "") in _WHOLE and record_of(function) is None


# ---------------------------------------------------------------------------------------------------------------- modes


class ModeObserver:
    """The observer of one mode."""

    __slots__ = ("mode",)

    needs_tensors = True  # a backward pass on Tensors is made of operators, which modes see

    def __init__(self, mode: Any) -> None:
        self.mode: Any = mode

    def __call__(
        self, operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], proceed: Callable[..., Any]
    ) -> Any:
        return self.mode._observe(self, operator, args, kwargs, proceed)


def mode_handler(observer: ModeObserver) -> Callable[..., Any]:
    """``ask(func, args, kwargs)`` of a mode: what it says, or what the arguments say if it says nothing."""
    state = local.state
    known, before = state.known_modes, state.observers
    at = before.index(observer)
    mode = observer.mode
    method = mode.__torch_dispatch__
    if getattr(method, "__self__", mode) is not mode:
        raise RuntimeError(
            f"Defining {type(mode).__name__}'s `__torch_dispatch__` as a classmethod is not supported, please make "
            f"it a plain method"
        )

    def ask(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        hidden = state.interceptor
        with recording_off():
            set_observers(state, before[:at])
            try:
                rule = rule_of(func, type(mode))
                handler = method if rule is None else partial(rule, mode)
                result = handler(func, types_of(args, kwargs), args, kwargs)
                if result is NotImplemented:
                    set_observers(state, before[: at + 1])
                    result = ask_arguments(func, args, kwargs)
            finally:
                state.known_modes, state.observers, state.interceptor = known, before, hidden
        return result

    return ask


def ask_mode(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a function outside the table that the innermost mode of the thread is asked about."""
    state = local.state
    before, hidden = state.observers, state.interceptor
    at = max([position for position, observer in enumerate(before) if isinstance(observer, ModeObserver)])

    def proceed(other: Callable[..., Any] = function) -> Any:
        set_observers(state, before[:at])  # the modes outside are asked next
        try:
            return other(*args, **kwargs)
        finally:
            state.observers, state.interceptor = before, None

    state.interceptor = None
    try:
        return before[at](function, args, kwargs, proceed)
    finally:
        state.interceptor = hidden
