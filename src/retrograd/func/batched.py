"""Batched tensors: what `vmap` hands to the function that it maps.

Note [Batched tensors]
Inside ``vmap(f)(x)`` the function sees one example; in truth its argument is a `BatchedTensor`, a special tensor (Note
[Special tensors] in tensor/special.py) that holds all of them: `value`, with one dimension more, and which one that is
(`bdim`).  Each vmap is a `Level`; `value` may itself be batched at a level outside.

* **Operators of the table** have *rules* (rules/): functions that say what an operator on batches is in terms of
  operators on the values.  Those of the highest level among the arguments are asked first; what they call sees the
  levels outside.  An operator without a rule runs once per example (fallback.py), with a warning that names it.
* **Functions composed of operators** need no rule: they read shapes and dtypes, which are those of one example.
* **History and tangents** are those of the values.  A batched tensor has no node, no version and no tangent of its own,
  so that backward passes run over plain arrays, and gradients of gradients need nothing new.  What has to be an
  example's own is therefore given a batch dimension before it is differentiated (transforms.py).
* **A level ends** when its vmap returns.  Whoever still has a tensor of it, and uses it, is told so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from .._generated import functions as generated
from ..core.constants import contiguous_format
from ..core.description import Description, NoArray
from ..core.late import transforms
from ..core.records import original, record_of
from ..core.state import local
from ..core.where import Location, user_location
from ..tensor import Tensor
from ..tensor import wrap as plain
from ..tensor.special import SpecialTensor

_new = object.__new__

Rule = Callable[["Level", Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]

#: Operator -> its rule. Filled by the modules of rules/ when the first vmap runs, read-only after that.
RULES: dict[Any, Rule] = {}


class Level:
    """One vmap that is running: how many examples there are, and how they draw random numbers."""

    __slots__ = (
        "alike", "by_user", "function", "keeps_primals", "name", "number", "open", "plain_duals", "randomness", "size",
        "where",
    )

    def __init__(self, number: int, size: int, randomness: str = "error", function: Any = None) -> None:
        #: 1 for the outermost.
        self.number: int = number
        self.size: int = size
        self.randomness: str = randomness
        self.function: Any = function
        #: The transform that it is of.
        self.name: str = "vmap"
        self.open: bool = True
        #: Do examples differ in their tangents alone (`jacfwd`)?
        self.alike: bool = False
        #: Is it a `vmap` that a program called, or the engine's own, of gradients that come many at a time?
        self.by_user: bool = True
        #: Does a tensor that is the same for all examples stay so when it is given a tangent of this level, and has one
        #: been given one? Note [Plain duals].
        self.keeps_primals: bool = False
        self.plain_duals: bool = False
        #: The line that called it.
        self.where: Location | None = user_location(3)

    def draw(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a random function gives within this vmap."""
        return transforms("rules.random").draw(self, function, args, kwargs)

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", "a function")
        return f"{self.name} of {name} at level {self.number}, called at {self.where}"


class batching:
    """A vmap level for as long as the block runs."""

    __slots__ = ("before", "level")

    before: Any

    def __init__(self, size: int, randomness: str = "error", function: Any = None) -> None:
        self.level: Level = Level(len(local.state.batch_levels) + 1, size, randomness, function)

    def __enter__(self) -> Level:
        state = local.state
        levels = (*state.batch_levels, self.level)
        self.before = state.batch_levels
        state.batch_levels = levels
        return self.level

    def __exit__(self, *exc_info: object) -> None:
        local.state.batch_levels = self.before
        self.level.open = False


class outside:
    """Without this level and those within it, for as long as the block runs."""

    __slots__ = ("before", "levels")

    before: Any

    def __init__(self, level: Level) -> None:
        self.levels: tuple[Level, ...] = local.state.batch_levels[: level.number - 1]

    def __enter__(self) -> None:
        state = local.state
        self.before = state.batch_levels
        state.batch_levels = self.levels

    def __exit__(self, *exc_info: object) -> None:
        local.state.batch_levels = self.before


class _Memory(Description):
    """How an example lies."""

    __slots__ = ("tensor",)

    tensor: Any

    layout_name = "Strided"

    def as_tensor(self) -> Any:
        return self.tensor


class BatchedTensor(SpecialTensor):
    """Many tensors that are handled as one: `value`, whose dimension `bdim` counts them."""

    __slots__ = ("_special_", "bdim", "level", "value")

    _transparent_ = True

    value: Tensor
    bdim: int
    level: Level

    if not TYPE_CHECKING:

        @property
        def _numbers_(self) -> NoReturn:
            """No operator finds an array here. (Without words of its own: nobody sees this error, and it is
            frequent.)"""
            raise NoArray

        _viewed_ = _numbers_

    @property
    def _memory_(self) -> Description:  # type: ignore[override]
        memory, bdim = self.value._memory_, self.bdim
        shape, strides = memory.shape, memory.strides
        result = _new(_Memory)
        result.tensor = self
        result.dtype = memory.dtype
        if bdim:
            result.shape = shape[:bdim] + shape[bdim + 1 :]
            result.strides = strides[:bdim] + strides[bdim + 1 :]
        else:
            result.shape = shape[1:]
            result.strides = strides[1:]
        return result

    @property
    def _kind_(self) -> str:
        return "batched"

    @property
    def _held_(self) -> tuple[Tensor, ...]:
        """The tensors that have the history and the tangents of this one."""
        return (self.value,)

    # --------------------------------------------------------------------------------------------------- operators

    def _operate_(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        level = self.level
        if not level.open:
            raise escaped(self, function.__name__)
        if level.plain_duals:
            args, kwargs = transforms("levels").with_batched_duals(level, args, kwargs)
        rule = RULES.get(function) or find_rule(function)
        return NotImplemented if rule is _none else rule(level, function, args, kwargs)

    def _stuck_(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A function composed of operators that wants an array all the same."""
        return transforms("fallback").loop(self.level, function, args, kwargs)

    def _write_out_(self, function: Callable[..., Any]) -> Any:
        """``out=`` is refused, as in torch."""
        raise RuntimeError(
            f"Batching rule not implemented for aten::{function.__name__}.out; the fallback path doesn't work on out= "
            "or "
            "view ops. Leave out= away, or copy_() the result"
        )

    def _become_(self, operator: Callable[..., Tensor], args: tuple[Any, ...]) -> Any:
        view: Any = operator(self, *args)
        self.value, self.bdim = view.value, view.bdim
        return self

    def is_conj(self) -> bool:
        return self.value.is_conj()

    def is_neg(self) -> bool:
        return self.value.is_neg()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        if memory_format is not None and memory_format is not contiguous_format:
            raise RuntimeError(
                "NYI: querying is_contiguous inside of vmap for memory_format other than torch.contiguous_format"
            )
        return self._memory_.flags.c_contiguous

    def storage_offset(self) -> int:
        """Elements between the start of the memory and the first element of the first example."""
        return self.value.storage_offset()

    # ------------------------------------------------------------------------------------------ what has no meaning

    def _one_value(self, what: str) -> NoReturn:
        raise RuntimeError(
            f"vmap: It looks like you're {what} on a Tensor. We don't support that inside vmap, where a tensor stands "
            f"for all examples at once ({user_location()}). If errors are expected, try to rewrite it with operators: "
            "torch.where, torch.clamp, masks"
        )

    def item(self) -> Any:
        """Refused: there is one value per example."""
        self._one_value("calling .item()")

    def tolist(self) -> Any:
        """Refused: there is one value per example."""
        self._one_value("calling .tolist()")

    def data_ptr(self) -> int:
        """Refused: an example has no memory of its own."""
        raise RuntimeError(
            "Cannot access data pointer of Tensor that doesn't have storage: inside vmap a tensor stands for all "
            f"examples at once ({user_location()})"
        )

    def numpy(self, *, force: bool = False) -> Any:
        """Refused: there is one array per example."""
        self._one_value("calling .numpy()")

    def __bool__(self) -> bool:
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't "
            f"support that yet: each example may take another way ({user_location()}). Write torch.where(condition, a, "
            "b) instead of if"
        )

    def _scalar_(self) -> Any:
        self._one_value("converting to a number, as float(x) or int(x) do,")

    def __index__(self) -> int:
        self._one_value("using as an index of a list, or in range(),")

    @property
    def data(self) -> Any:
        """Refused, as in torch: `detach()` is what is meant."""
        raise RuntimeError("accessing `data` under vmap transform is not allowed: use detach()")

    @data.setter
    def data(self, value: Any) -> None:
        raise RuntimeError("mutating directly with `.data` under vmap transform is not allowed: use copy_()")

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        result = self.clone()  # type: ignore[attr-defined]
        memo[id(self)] = result
        return result

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError("a batched tensor cannot be saved: return it from the function that vmap maps")

    def backward(self, *args: Any, **kwargs: Any) -> None:
        """Refused, as in torch."""
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use torch.func.grad or "
            "torch.func.vjp instead or call backward() outside of the transform: y = vmap(f)(x); y.sum().backward()"
        )

    # ------------------------------------------------------------------------------------------------------ history

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]
        return self.value.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Refused, as in torch, where it would change something."""
        if requires_grad != self.requires_grad:
            raise RuntimeError(
                "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* "
                "APIs) inside of a function being transformed by a functorch transform. This is unsupported, please "
                "attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call "
                "requires_grad_() outside of a function being transformed instead."
            )
        return self

    @property
    def grad_fn(self) -> Any:  # type: ignore[override]
        return self.value.grad_fn

    @property
    def is_leaf(self) -> bool:
        return self.value.is_leaf

    def _has_edge_(self) -> bool:
        return self.value._has_edge_()

    def _is_view(self) -> bool:
        return self.value._is_view()

    @property
    def _version(self) -> int:
        return self.value._version

    def detach(self) -> Any:
        """The same values without history."""
        return wrap(self.value.detach(), self.level, self.bdim)

    def detach_(self) -> Tensor:
        """Cut the values off their history, in place."""
        self.value.detach_()
        return self

    def _make_dual_(self, tangent: Tensor, level: int | None) -> Any:
        """`forward_ad.make_dual` of this tensor."""
        return transforms("levels").dual(self, tangent, level)

    def _unpack_dual_(self, level: int | None) -> Any:
        """`forward_ad.unpack_dual` of this tensor."""
        return transforms("levels").undual(self, level)

    @property
    def device(self) -> Any:
        return self.value.device

    def __repr__(self, **contents: Any) -> str:  # type: ignore[override]
        inner = repr(self.value).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={self.level.number}, bdim={self.bdim}, value=\n    {inner}\n)"

    def __format__(self, spec: str) -> str:
        return repr(self)


# Users know one class of tensors.
BatchedTensor.__name__ = BatchedTensor.__qualname__ = "BatchedTensor"


def wrap(value: Tensor, level: Level, bdim: int = 0) -> BatchedTensor:
    """`value`, whose dimension `bdim` counts the examples of `level`."""
    result = _new(BatchedTensor)
    result._vc_ = result._grad_meta_ = result._edge_ = None
    result.value = value
    result.bdim = bdim
    result.level = level
    result._special_ = 100 + level.number
    return result


def wrap_all(values: Any, level: Level, bdim: int = 0) -> Any:
    """Results of an operator: a tensor, or a tuple or list (of whatever class) of them; what is no tensor stays."""
    if isinstance(values, Tensor):
        return wrap(values, level, bdim)
    if isinstance(values, (tuple, list)):
        wrapped = [wrap_all(value, level, bdim) for value in values]
        if hasattr(values, "_make"):
            return values._make(wrapped)  # type: ignore[union-attr]
        return type(values)(wrapped)
    return values


def is_batched(tensor: Any, level: Level) -> bool:
    return tensor.__class__ is BatchedTensor and tensor.level is level


def innermost(values: Iterable[Any]) -> Level | None:
    """The innermost level at which one of the values is batched."""
    return max(
        (value.level for value in values if value.__class__ is BatchedTensor), key=lambda one: one.number, default=None
    )


def front(tensor: BatchedTensor) -> Tensor:
    """The value with the examples along its first dimension: a view."""
    return to_front(tensor.value, tensor.bdim)


def to_front(value: Tensor, bdim: int) -> Tensor:
    """A value with its dimension `bdim` moved to the front."""
    if bdim == 0:
        return value
    ndim = value._memory_.ndim
    return generated.permute(value, bdim, *range(bdim), *range(bdim + 1, ndim))


def move(value: Tensor, source: int, to: int) -> Tensor:
    """A value with one dimension moved: a view, or itself if there is nothing to move."""
    if source == to:
        return value
    order = [i for i in range(value._memory_.ndim) if i != source]
    order.insert(to, source)
    return generated.permute(value, *order)


def spread(tensor: Any, level: Level) -> Tensor:
    """The value of a tensor with the examples in front, repeated (without a copy) if it is the same for all."""
    if level.plain_duals and not is_batched(tensor, level):
        ((tensor,), _) = transforms("levels").with_batched_duals(level, (tensor,), {})
    if is_batched(tensor, level):
        return front(tensor)
    return generated.expand(tensor, level.size, *tensor._memory_.shape)


def reshaped(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A value in another shape, for a rule's own use: where nothing is recorded, without the trappings of a view."""
    if value.__class__ is Tensor:
        state = local.state
        array = value._numbers_
        if array.flags.c_contiguous:
            recorded = state.grad_enabled and not (value._edge_ is None and value._grad_meta_ is None)
            if state.interceptor is None and not recorded:
                return plain(array.reshape(shape))
            return generated.view(value, shape)
    return value.reshape(shape)


def escaped(tensor: BatchedTensor, name: str) -> RuntimeError:
    """The error for a tensor that has outlived its vmap."""
    return RuntimeError(
        f"{name}(): your tensor may have escaped from inside a function being vmapped (what torch says of its "
        f"gen_vmap_plumbing): one of shape {list(tensor._memory_.shape)} is of the {tensor.level!r}, which has "
        f"returned, and is used outside of it ({user_location()}). Return it from the function that is mapped "
        "instead of keeping it elsewhere"
    )


def _none(level: Level, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The rule of functions composed of operators, whose parts have rules."""
    return NotImplemented


def find_rule(function: Callable[..., Any]) -> Rule:
    """The rule of a function that is not in `RULES` as it is."""
    if not RULES:
        transforms("rules").load()
    found = RULES.get(function) or RULES.get(original(function))
    if found is None:
        found = _none if record_of(function) is None else transforms("fallback").loop
    return found


def batched_pass(
    size: int, rows: Sequence[Any], run: Callable[[tuple[Any, ...]], Sequence[Any]], keeps_primals: bool = False
) -> tuple[Any, ...]:
    """What ``run`` gives for each row (along the first dimension) of `rows`, at once; None stays None.

    `keeps_primals`: Note [Plain duals] in levels.py.

    >>> import retrograd as torch
    >>> batched_pass(2, [torch.tensor([[1.], [2.]]), None], lambda row: (row[0] * 2, row[1]))
    (tensor([[2.],
            [4.]]), None)
    """
    with batching(size) as level:
        level.by_user, level.keeps_primals = False, keeps_primals
        found = run(tuple([None if one is None else wrap(one, level) for one in rows]))
        return tuple([None if one is None else spread(one, level) for one in found])


# ------------------------------------------------------------------------------------------------------ what is refused


def dynamic_shape(name: str, why: str) -> RuntimeError:
    """The error for results whose shape depends on the values of an example."""
    name = name if "::" in name else f"aten::{name}"
    return RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
        f"{name}, which has a data-dependent output shape: {why}, and the examples' have to be stacked. Use "
        "masks, or call it outside"
    )


def check_inplace(
    level: Level, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> None:
    """May this be written to? Not by examples to what they share."""
    if is_batched(args[0], level):
        return
    raise not_inplace(function.__name__, args[0])


class SharedWrite(RuntimeError):
    """A write of many examples to one tensor, `target`."""

    target: Any = None


def not_inplace(name: str, target: Any = None) -> SharedWrite:
    """The error for a write of many examples to one tensor."""
    error = SharedWrite(
        f"vmap: aten::{name}(self, *extra_args) is not possible inplace because there exists a Tensor `other` in "
        "extra_args that has more elements than `self`. This happened due to `other` being vmapped over but `self` not "
        "being "
        f"vmapped over in a vmap. Please try to use out-of-place operators instead of {name}, or give the "
        "function a tensor of its own for each example: x.new_zeros(...), or self as an argument that is mapped over"
    )
    error.target = target
    return error
