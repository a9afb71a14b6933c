"""Operators as objects: ``torch.ops.aten.mm.default``.

Whoever watches operators (dispatch modes, checkpoint policies) calls them by torch's names.  An operator of the table
that exists in several forms has a function for each (``max`` and ``max_dim``); where torch has several overloads for
what is one function here (``mul.Tensor``, ``mul.Scalar``), they are equal.  Which overloads a function of the table
stands for is in its record (core/records.py); ``signatures/overloads.txt`` says it of the functions that are composed
of others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from inspect import signature
from types import FunctionType
from typing import Any

from .. import kernels
from ..core.description import NoArray
from ..core.devices import device
from ..core.late import operators as ops
from ..core.records import original, record_of, records
from ..kernels.indexing_key import masks_of_bytes
from ..tensor import Tensor, wrap
from .operator_schema import FunctionSchema, Tag, schema_of, tags_of
from .registry import SPACES
from .signatures import overloads_of_composites


class OpOverload:
    """One operator; calling it runs it.

    >>> import retrograd as torch
    >>> torch.ops.aten.exp.default(torch.zeros(2))
    tensor([1., 1.])
    >>> torch.ops.aten.exp.default.__name__
    'exp.default'
    >>> torch.ops.aten.mul.Tensor._schema
    aten::mul.Tensor(Tensor self, Tensor other) -> Tensor
    """

    def __init__(
        self,
        packet: OpOverloadPacket,
        overload: str,
        function: Callable[..., Any],
        schema: FunctionSchema | None = None,
    ) -> None:
        self.overloadpacket: OpOverloadPacket = packet
        self._overloadpacket: OpOverloadPacket = packet
        self._overloadname = overload
        self.function: Callable[..., Any] = function
        self.namespace: str = packet.namespace
        self.__module__ = f"{__name__.partition('.')[0]}._ops.{packet.namespace}"
        self.__name__: str = f"{packet.__name__}.{overload}"
        self.__qualname__ = self.name()
        self.__doc__ = function.__doc__
        self._given = schema
        record = record_of(function)
        #: Where the operator has arrays of indices, for which handlers and callers have tensors.
        self._indices: int | None = None
        if record is not None and " indices indices" in record.schema:
            self._indices = record.arguments.index("indices")
        #: Is it one that a program has defined?
        self._defined_in_python: bool = schema is not None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs and "out" in kwargs and not (self._defined_in_python or self._overloadname.endswith("out")):
            raise RuntimeError(
                f"Unknown keyword argument 'out' for operator '{self.namespace}::{self.overloadpacket.__name__}'. "
                f"Schema: {self._schema}. The forms that write to out= are overloads of their own: "
                f"torch.ops.{self.namespace}.{self.overloadpacket.__name__}.out"
            )
        if self._indices is not None:
            return self._call_with_arrays(args, kwargs)
        return getattr(self.function, "plain", self.function)(*args, **kwargs)  # (ops/override_switch.py)

    def _call_with_arrays(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The same with tensors of indices, which the operator has as arrays."""
        at: Any = self._indices
        indices = args[at] if len(args) > at else kwargs["indices"]
        try:
            arrays = [masks_of_bytes(i._numbers_) if isinstance(i, Tensor) else i for i in indices]
        except NoArray:  # the public function knows what to do
            if self.overloadpacket.__name__ == "index":
                return args[0][tuple([slice(None) if i is None else i for i in indices])]
            return SPACES["torch"][self.overloadpacket.__name__](*args, **kwargs)
        if len(args) > at:
            return self.function(*args[:at], arrays, *args[at + 1 :], **kwargs)
        return self.function(*args, **{**kwargs, "indices": arrays})

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """What it gives, if it is composed of other operators, by these; NotImplemented if it is not."""
        return self(*args, **kwargs) if record_of(self.function) is None else NotImplemented

    @property
    def op(self) -> Callable[..., Any]:
        """What runs when it is called."""
        return self.function

    def name(self) -> str:
        """``'aten::exp'``."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self.overloadpacket.__name__}{suffix}"

    @property
    def _schema(self) -> FunctionSchema:
        if self._given is None:
            self._given = schema_of(self)
        return self._given

    @property
    def is_view(self) -> bool:
        """Does its result share memory with an argument?"""
        return any(a.alias_info is not None and not a.alias_info.is_write for a in self._schema.arguments)

    @property
    def tags(self) -> list[Tag]:
        """What else is known of it."""
        return list(own) if (own := getattr(self.function, "tags", None)) is not None else tags_of(self)

    def has_kernel_for_dispatch_key(self, key: Any) -> bool:
        """Is there a kernel of its own for a key such as "CPU"?"""
        return str(key).rpartition(".")[2] in ("CPU", "AutogradCPU")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpOverload):
            return False
        if self.name() == other.name():
            return True
        writes_out = "out" in (self._overloadname[-3:], other._overloadname[-3:])
        return not writes_out and original(other.function) is original(self.function)

    def __hash__(self) -> int:
        record = record_of(self.function)
        return hash(self.overloadpacket.__name__ if record is None else record.base)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self.overloadpacket.__name__}', overload='{self._overloadname}')>"

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return _found, (self.namespace, self.overloadpacket.__name__, self._overloadname)


def _found(namespace: str, packet: str, overload: str) -> OpOverload:
    """An operator, by its names in a pickle."""
    return getattr(_found_packet(namespace, packet), overload)


def _found_packet(namespace: str, packet: str) -> OpOverloadPacket:
    spaces = sys.modules[__name__.rpartition(".")[0]]
    return getattr(getattr(spaces, namespace), packet)


class OpOverloadPacket:
    """All forms of an operator: ``torch.ops.aten.max`` has ``.default`` and ``.dim``."""

    def __init__(self, name: str, namespace: str = "aten") -> None:
        self.__name__ = name
        self.namespace = namespace
        self._qualified_op_name = f"{namespace}::{name}"
        self.__module__ = f"{__name__.partition('.')[0]}._ops.{namespace}"

    def __getattr__(self, overload: str) -> OpOverload:
        function = None if overload.startswith("__") else _function_of(self.__name__, overload)
        if function is None or self.namespace != "aten":
            raise AttributeError(
                f"The underlying op of '{self.namespace}.{self.__name__}' has no overload name '{overload}'"
            )
        result = OpOverload(self, overload, function)
        setattr(self, overload, result)
        return result

    def overloads(self) -> list[str]:
        """The names of its forms."""
        found = list(_operators().get(self.__name__, {})) or list(overloads_of_composites(self.__name__))
        return [name for name in found if _function_of(self.__name__, name) is not None]

    def __iter__(self) -> Iterator[str]:
        return iter(self.overloads())

    @property
    def op(self) -> Any:
        """What runs when it is called."""
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function: Any = function_named(self.__name__)
        return getattr(function, "plain", function)(*args, **kwargs)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.namespace}.{self.__name__}')>"

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self

    def __reduce__(self) -> Any:
        return _found_packet, (self.namespace, self.__name__)


class _Namespace:
    """``torch.ops.aten``: the operators by name, looked up when they are asked for."""

    name = "aten"

    def __getattr__(self, name: str) -> OpOverloadPacket:
        known = not name.startswith("__") and (function_named(name) is not None or name in _operators())
        if not known:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        packet = OpOverloadPacket(name)
        setattr(self, name, packet)
        return packet


class _Attributes:
    """``torch.ops.prim``: what a class with ``__torch_dispatch__`` is asked about its tensors, besides operators."""

    name = "prim"

    def __init__(self, *names: str) -> None:
        for name in names:
            packet = OpOverloadPacket(name, self.name)
            packet.default = OpOverload(packet, "default", getattr(Tensor, name).fget)  # type: ignore[attr-defined]
            setattr(self, name, packet)


aten: _Namespace = _Namespace()
prim: _Attributes = _Attributes("device", "layout")


def _sym(name: str, method: str, *overloads: str) -> None:
    """An operator that gives a size, under torch's name."""
    packet = OpOverloadPacket(name)
    for overload in ("default", *overloads):
        setattr(packet, overload, OpOverload(packet, overload, getattr(Tensor, method)))
    setattr(aten, name, packet)


for _name, _method, *_more in (
    ("sym_size", "size", "int"), ("sym_stride", "stride", "int"), ("sym_numel", "numel"),
    ("sym_storage_offset", "storage_offset"), ("storage_offset", "storage_offset"), ("dim", "dim"),
    ("sym_is_contiguous", "is_contiguous"), ("is_non_overlapping_and_dense", "is_contiguous"),
    ("is_strides_like_format", "is_contiguous"), ("numel", "numel"), ("size", "size", "int"),
    ("stride", "stride", "int"), ("is_contiguous", "is_contiguous", "memory_format"), ("detach", "detach"),
):  # fmt: skip
    _sym(_name, _method, *_more)


def function_named(name: str) -> Callable[..., Any] | None:
    """The function that does the work of torch's operator of this name."""
    found = _aten_only(name) or getattr(ops, name, None)
    if found is None and name in _operators():
        return next(iter(_operators()[name].values()))
    for space in ("fft", "linalg", "special"):
        if found is None and name.startswith(f"{space}_"):
            found = SPACES[space].get(name.removeprefix(f"{space}_"))
    return found or SPACES["nn.functional"].get(name) or getattr(Tensor, name, None)


@cache
def _operators() -> dict[str, dict[str, Callable[..., Any]]]:
    """The functions of the table by torch's name and overload."""
    found: dict[str, dict[str, Callable[..., Any]]] = {}
    for function, record in records().items():
        for name in (record.base, *record.aliases):
            found.setdefault(name, {}).update(dict.fromkeys(record.overloads, function))
    return found


def _aten_only(name: str) -> Callable[..., Any] | None:
    """A function that torch has nowhere else."""
    from . import aten_only, registry  # noqa: F401 (declares them; made of operators)

    return registry.SPACES["aten"].get(name)


def _function_of(base: str, overload: str) -> Callable[..., Any] | None:
    forms = _operators().get(base, {})
    function = forms.get(overload)
    if function is None and overload in overloads_of_composites(base, () if forms else ("default",)):
        function = function_named(base)
    if function is None and overload.endswith("out"):
        # ``add.out``, ``max.dim_max``: a form of the function that is given where to write.
        form = overload.removesuffix("out").removesuffix("_")
        function = forms.get(form) if form else next(iter(forms.values()), None) or function_named(base)
    return function


def overload_of(operator: Callable[..., Any]) -> OpOverload:
    """The object that stands for an operator's function (or for what `with_kernel` made of it).

    >>> import retrograd as torch
    >>> overload_of(torch.exp) is torch.ops.aten.exp.default
    True
    """
    return operator if isinstance(operator, OpOverload) else _overload_of(original(operator))


@cache
def _overload_of(function: Callable[..., Any]) -> OpOverload:
    record = record_of(function)
    name = function.__name__ if record is None else record.base
    overload = overloads_of_composites(name)[0] if record is None else record.overloads[0]
    if _function_of(name, overload) is function:
        return getattr(getattr(aten, name), overload)
    known = function_named(name) is not None
    return OpOverload(getattr(aten, name) if known else OpOverloadPacket(name), overload, function)


# --------------------------------------------------------------------------------------------------------------- calls

#: Operators that torch calls as ``add.Tensor`` also beside a number, which it makes a tensor of.
TAKE_NUMBERS_AS_TENSORS: frozenset[str] = frozenset(
    ("add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_", "rsub", "true_divide", "floor_divide")
)


def form_for(operator: Callable[..., Any], args: tuple[Any, ...]) -> OpOverload:
    """The form of an operator that torch would call for these arguments."""
    found = overload_of(operator)
    record = record_of(operator)
    packet = found.overloadpacket
    if record is None or len(record.overloads) < 2 or len(args) < 2 or packet.__name__ in TAKE_NUMBERS_AS_TENSORS:
        return found
    wanted = "Tensor" if isinstance(args[1], Tensor) else "Scalar"
    if wanted in record.overloads:
        return getattr(packet, wanted)
    wanted = f"{'Tensor' if isinstance(args[0], Tensor) else 'Scalar'}_{wanted}"
    return getattr(packet, wanted) if wanted in record.overloads else found


def call_of(
    operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[OpOverload, tuple[Any, ...], dict[str, Any]]:
    """A call of an operator as handlers see it: the form, and the arguments that are not what they are by default."""
    if isinstance(operator, OpOverload):  # of a program's own
        return operator, args, kwargs
    func = form_for(operator, args)
    if func.function is not operator and original(operator) is not operator:  # another kernel in its place
        func = OpOverload(func.overloadpacket, func._overloadname, operator)
    factory = FACTORIES.get(func.overloadpacket.__name__)
    if factory is not None:
        return (func, *factory(args, kwargs))
    defaults = _defaults(original(operator))
    positional = list(args)
    names = list(defaults)
    for name in _BY_NAME.intersection(names[: len(positional)]):
        at = names.index(name)
        kwargs = {name: args[at], **kwargs}
        positional[at] = defaults[name] if at < len(positional) - 1 else _NO_DEFAULT
    positional = [value for value in positional if value is not _NO_DEFAULT]
    while positional and len(positional) <= len(names) and _same(positional[-1], defaults[names[len(positional) - 1]]):
        positional.pop()
    named = {key: value for key, value in kwargs.items() if not _same(value, defaults.get(key, _NO_DEFAULT))}
    if func._indices is not None and len(positional) > func._indices:
        _with_tensors(positional, func._indices)
    return func, tuple(positional), named


def _with_tensors(args: list[Any], at: int) -> None:
    """Arguments of `index` and its kin as torch has them: tensors for arrays of indices, and for a number to write."""
    args[at] = [i if i is None or isinstance(i, Tensor) else wrap(i) for i in args[at]]
    if len(args) > at + 1 and isinstance(args[at + 1], (bool, int, float, complex)):
        args[at + 1] = wrap(kernels.element(args[at + 1], args[0]._memory_.dtype))


_NO_DEFAULT: Any = object()
#: Arguments that torch's operators take by keyword, wherever they stand in ours.
_BY_NAME: frozenset[str] = frozenset(("dtype", "layout", "device", "memory_format", "generator", "non_blocking"))


def _same(value: Any, default: Any) -> bool:
    if default is _NO_DEFAULT or isinstance(value, Tensor):
        return False
    return value is default or (type(value) is type(default) and value == default)


@cache
def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of a function, in order, with what they are if they are not given."""
    found: dict[str, Any] = {}
    function = getattr(function, "body", function)
    for name, parameter in signature(function, follow_wrapped=False).parameters.items():
        found[name] = _NO_DEFAULT if parameter.default is parameter.empty else parameter.default
    return found


def _sized(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """``zeros(2, 3)`` as torch's operator is called: the size in a list, and where the result is to be."""
    size = kwargs.get("size", args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args)
    return (list(size),), _options(kwargs)


def _ranged(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same of functions that are given no size."""
    return args, _options(kwargs)


def _full(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    size = kwargs.get("size", args[0] if args else ())
    value = kwargs.get("fill_value", args[1] if len(args) > 1 else None)
    return (list(size) if isinstance(size, (tuple, list)) else size, value), _options(kwargs)


def _options(kwargs: dict[str, Any]) -> dict[str, Any]:
    left = {k: v for k, v in kwargs.items() if k not in ("size", "fill_value", "requires_grad", "device", "pin_memory")}
    left = {k: v for k, v in left.items() if v is not None}
    where = device("cpu" if kwargs.get("device") is None else kwargs["device"])
    return {**left, "device": where, "pin_memory": bool(kwargs.get("pin_memory"))}


FACTORIES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("empty", "zeros", "ones", "rand", "randn"), _sized), "full": _full,
    **dict.fromkeys(("eye", "arange", "linspace", "logspace", "randint", "randperm"), _ranged),
}  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- kernels


def with_kernel(
    operator: Callable[..., Any], substitute: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[..., Any] | None:
    """The operator with ``substitute(kernel)`` in place of its kernel, recording history as the operator does.

    It is the same code in other surroundings: nothing is written to, so other threads see nothing of it.
    None if the operator has no kernel of its own.

    >>> import retrograd as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> loud = with_kernel(torch.exp, lambda kernel: lambda array: kernel(array) * 0 + 7)
    >>> loud(x)
    tensor([7., 7.], grad_fn=<ExpBackward0>)
    """
    record = record_of(operator)
    if record is None or not isinstance(operator, FunctionType):
        return None
    made_of = original(operator)
    operator = getattr(operator, "body", operator)
    name = f"kernel_{record.kernel}"  # what its wrapper calls it
    surroundings = dict(operator.__globals__)
    surroundings[name] = substitute(surroundings[name])
    result = FunctionType(
        operator.__code__, surroundings, operator.__name__, operator.__defaults__, operator.__closure__
    )
    result.__kwdefaults__ = operator.__kwdefaults__
    result.__wrapped__ = made_of  # type: ignore[attr-defined]
    return result
