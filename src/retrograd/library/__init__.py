"""``torch.library``: operators that programs define.

>>> import retrograd as torch
>>> @torch.library.custom_op("mine::double", mutates_args=())
... def double(x: torch.Tensor) -> torch.Tensor:
...     return x * 2
>>> double.register_autograd(lambda ctx, grad: grad * 2)
>>> x = torch.ones(2, requires_grad=True)
>>> torch.ops.mine.double(x).sum().backward()
>>> x.grad
tensor([2., 2.])
>>> torch.ops.mine.double.default._schema
mine::double(Tensor x) -> Tensor

ops/custom.py says what happens when one is called.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import ops
from ..amp.autocast_mode import _cast as cast
from ..amp.autocast_mode import autocast, is_autocast_enabled
from ..core.devices import device
from ..core.dtypes import dtype
from ..core.where import user_location
from ..ops.custom import DEFINED, CustomOperator, Namespace, get_ctx
from ..ops.operator_schema import FunctionSchema, Tag, parse
from ..ops.overload import OpOverload, OpOverloadPacket
from .checks import check_factory, check_keywords, check_mutated, check_types, without_aliases
from .opcheck import OpCheckError, opcheck
from .schemas import infer_schema

__all__ = [
    "CustomOpDef", "Library", "OpCheckError", "custom_op", "define", "fallthrough_kernel", "get_ctx", "get_kernel",
    "impl", "impl_abstract", "infer_schema", "opcheck", "register_autocast", "register_autograd", "register_fake",
    "register_kernel", "register_torch_dispatch", "register_vmap", "triton_op",
]  # fmt: skip


#: Says what `set_kernel_enabled` could not do; of torch's name, which programs listen to.
_log = logging.getLogger("torch._library.custom_ops")


def _new(schema: FunctionSchema, tags: Any = ()) -> CustomOperator:
    check_types(schema)
    namespace = schema.name.partition("::")[0]
    if not isinstance(getattr(ops, namespace, Namespace(namespace)), Namespace):
        raise ValueError(f"torch.ops.{namespace} is taken, call the namespace of {schema.name!r} otherwise")
    given = tuple(tags) if isinstance(tags, (tuple, list, set, frozenset)) else (tags,)
    for tag in given:
        if not isinstance(tag, Tag):
            raise TypeError(f"tags must be of torch.Tag, not {type(tag).__name__}")
    made = CustomOperator(schema, given)
    setattr(ops, namespace, Namespace(namespace))
    return made


def _find(op: Any) -> CustomOperator:
    """The operator that a name, an object or a definition stands for."""
    if isinstance(op, CustomOpDef):
        return op._operator
    if isinstance(op, (OpOverload, OpOverloadPacket)):
        op = op.name() if isinstance(op, OpOverload) else f"{op.namespace}::{op.__name__}"
    if not isinstance(op, str):
        raise ValueError(f"torch.library: got unexpected type for op: {type(op)}. Give its name, or what defined it")
    full, _, form = op.partition(".")
    namespace, _, name = full.partition("::")
    found = DEFINED.get(namespace, {}).get(name, {}).get(form or "default")
    if found is None:
        raise RuntimeError(f"operator {op} does not exist: torch.library.custom_op() or define() defines one")
    return found


# ------------------------------------------------------------------------------------------------------- from functions


class CustomOpDef:
    """An operator that a program has defined; it is called like the function that it was made of."""

    def __init__(self, operator: CustomOperator, fn: Callable[..., Any], lib: Library | None = None) -> None:
        self._operator = operator
        #: With which what is registered ends, if there is one.
        self._lib = lib
        self._namespace, self._name = operator.op.namespace, operator.op.overloadpacket.__name__
        self._init_fn = fn
        self.__name__ = self.__qualname__ = self._name
        self.__doc__ = fn.__doc__
        self.__module__ = fn.__module__
        self.__wrapped__ = fn

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    @property
    def _opoverload(self) -> OpOverload:
        return self._operator.op

    @property
    def default(self) -> OpOverload:
        """Its one form."""
        return self._operator.op

    def _keep(self, undo: Callable[[], None]) -> None:
        """Something has been registered, and this takes it back."""
        if self._lib is not None:
            self._lib._undo.append(undo)

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """What computes it on some kinds of devices: a function for the CPU takes the place of the first one."""
        kinds = [device_types] if isinstance(device_types, str) or device_types is None else list(device_types)

        schema = self._operator.schema
        if kinds != [None]:
            check_factory(schema)
        for kind in kinds:
            if kind is not None:
                device(kind)  # which refuses kinds that there are not

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            kernel = without_aliases(str(self._operator.op), schema, function)
            for kind in kinds:
                self._keep(self._operator.put_kernel(_key_of(kind or "default"), kernel))
            return function

        return register if fn is None else register(fn)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Have the kernel of a kind of devices, or have it not, for a while."""
        key, off = device_type.upper(), self._operator.disabled
        if key not in self._operator.kernels:
            _log.warning("Attempted to set kernel enabled for %s but no kernel was registered for this device type.",
                         device_type)  # fmt: skip
        elif (key not in off) is enabled:
            _log.warning("Attempted to set the kernel of %s for %s, which is already %s.", self._qualname, device_type,
                         "enabled" if enabled else "disabled")  # fmt: skip
        self._operator.disabled = off - {key} if enabled else off | {key}
        try:
            yield
        finally:
            self._operator.disabled = off

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """What gives tensors like the results for tensors without values."""
        self._keep(self._operator.put_fake(fn))
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """The formula: ``backward(ctx, *grads)`` returns a gradient for each argument;
        ``setup_context(ctx, inputs, output)`` keeps what it needs."""
        schema = self._operator.schema
        check_keywords(schema)
        if schema.is_mutable:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema {schema}: it "
                f"writes to its arguments"
            )
        self._keep(self._operator.put("backward", backward))
        self._keep(self._operator.put("setup_context", setup_context))

    def register_vmap(self, func: Callable[..., Any] | None = None, /) -> Any:
        """How it is batched: ``func(info, in_dims, *args)`` returns the results and where their examples are."""

        check_keywords(self._operator.schema)

        def register(rule: Callable[..., Any]) -> Callable[..., Any]:
            self._keep(self._operator.put("vmap", rule))
            return rule

        return register if func is None else register(func)

    def register_torch_dispatch(self, torch_dispatch_class: type, fn: Callable[..., Any] | None = None, /) -> Any:
        """What it means to a class or a mode: ``fn(mode_or_class, func, types, args, kwargs)``."""

        def register(rule: Callable[..., Any]) -> Callable[..., Any]:
            self._keep(self._operator.put("rules", rule, torch_dispatch_class))
            return rule

        return register if fn is None else register(fn)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Have its arguments cast to a dtype within autocast, which is off in what it computes."""
        device(device_type)  # which refuses kinds that there are not
        if not isinstance(cast_inputs, dtype):
            raise TypeError(f"register_autocast(): cast_inputs must be a torch.dtype, not {type(cast_inputs).__name__}")

        def within(call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
            if not is_autocast_enabled(device_type):
                return call(*args, **kwargs)
            with autocast(device_type, enabled=False):
                return call(*cast(args, cast_inputs), **cast(kwargs, cast_inputs))

        self._keep(self._operator.put("within", within))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._operator(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = (),
) -> Any:
    """Make a function an operator ``namespace::name``, which is then ``torch.ops.namespace.name`` as well.

    `mutates_args` names the arguments that it writes to. With `device_types`, it is the kernel of these alone. `schema`
    says what types its arguments have, if they have no annotations.
    """
    namespace, colons, own = name.partition("::")
    own, dot, form = own.partition(".")
    if not colons or not namespace.isidentifier() or not own.isidentifier() or (dot and not form.isidentifier()):
        raise ValueError(f"custom_op(name): expected a name such as 'mine::double', but got {name!r}")

    def define_it(function: Callable[..., Any]) -> CustomOpDef:
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        parsed = parse(f"{name}{text}")
        check_types(parsed)
        check_keywords(parsed)
        if schema is not None:
            check_mutated(parsed, mutates_args)
        if device_types is not None:
            check_factory(parsed)
        forms = DEFINED.get(namespace, {}).get(own, {})
        if (form or "default") in forms:
            forms[form or "default"].forget()  # a cell that is run again
        own_tags = () if tags is None else tags if isinstance(tags, (tuple, list, set, frozenset)) else (tags,)
        operator = _new(parsed, (Tag.pt2_compliant_tag, *own_tags))
        operator.from_function = True
        made = CustomOpDef(operator, function)
        made.register_kernel(device_types, function)
        return made

    return define_it if fn is None else define_it(fn)


triton_op = custom_op


# ------------------------------------------------------------------------------------------------------------ by schema


def fallthrough_kernel() -> None:
    """Registered in a kernel's place: nothing is done there, and the next kernel is looked for."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


#: Who has defined a namespace, and where.
_OWNERS: dict[str, Any] = {}
#: Kinds of devices that kernels may be for, and dispatch keys that are heeded.
_DEVICES = ("cpu", "cuda", "xpu", "mps", "meta", "hpu", "mtia", "default")
_KEYS = ("CPU", "Meta", "Autograd", "AutogradCPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
#: Of devices that there are not, or whose tensors do not ask for kernels.
_ELSEWHERE = frozenset(
    f"{functionality}{kind}"
    for functionality in ("", "Autograd", "Autocast", "Sparse", "SparseCsr", "Quantized", "NestedTensor")
    for kind in ("CUDA", "HIP", "XLA", "MTIA", "MPS", "IPU", "XPU", "HPU", "VE", "Lazy", "PrivateUse1")
)


def _key_of(kind: str) -> str:
    """The dispatch key of kernels for a kind of devices."""
    kind = kind.lower()
    return {"default": "CompositeExplicitAutograd", "meta": "Meta"}.get(kind, kind.upper())


class Library:
    """Operators of a namespace by their schemas, and kernels for them.

    >>> import retrograd as torch
    >>> lib = torch.library.Library("of_the_example", "DEF")
    >>> lib.define("twice(Tensor x) -> Tensor")
    'twice'
    >>> lib.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
    >>> torch.ops.of_the_example.twice(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim" or (ns == "aten" and kind != "IMPL"):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        here = user_location(1)
        if kind == "DEF":
            if ns in _OWNERS:
                raise RuntimeError(
                    f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all of your "
                    f"definitions in a single TORCH_LIBRARY block. Previous registration: {_OWNERS[ns]}; latest "
                    f"registration: {here}"
                )
            _OWNERS[ns] = here
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        #: What forgets what it has registered, in the order in which that was.
        self._undo: list[Callable[[], Any]] = []
        if kind == "DEF":
            self._undo.append(lambda: _OWNERS.pop(ns, None))
        self._end = weakref.finalize(self, _take_back, self._undo)
        self._end.atexit = False

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator: its name, arguments and results. Returns the name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise RuntimeError(f"a Library of kind IMPL has kernels only: define {schema!r} in one of kind DEF")
        parsed = parse(schema)
        own_space, _, own = parsed.name.rpartition("::")
        if own_space not in ("", self.ns):
            raise RuntimeError(
                f"Explicitly provided namespace ({own_space}) in schema string does not match namespace of this "
                f"library ({self.ns}): leave it out of {schema!r}"
            )
        parsed.name = f"{self.ns}::{own}"
        self._undo.append(_new(parsed, tags).forget)
        return own if not parsed.overload_name else f"{own}.{parsed.overload_name}"

    def impl(
        self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:  # fmt: skip
        """Register a kernel of an operator for a dispatch key: "CPU", "Autograd", "CompositeImplicitAutograd" ..."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        name = op_name.name() if isinstance(op_name, OpOverload) else str(op_name)
        name = name if "::" in name else f"{self.ns}::{name}"
        if name.startswith("aten::"):
            raise RuntimeError(
                f"torch.library.Library.impl: the kernel of {name} is not replaced here: a TorchDispatchMode "
                f"answers for operators of torch, and custom_op() defines others"
            )
        if with_keyset:
            raise RuntimeError("torch.library.Library.impl: there are no sets of dispatch keys to give to a kernel")
        if key not in _KEYS and key not in _ELSEWHERE:
            raise RuntimeError(f"could not parse dispatch key: {key}. Those that are heeded are {', '.join(_KEYS)}")
        operator = _find(name)
        if fn is fallthrough_kernel:
            self._undo.append(operator.put("kernels", None, key))
            return
        if (key in operator.kernels or (key == "Meta" and operator.fake is not None)) and not allow_override:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python overriding {name}'s "
                f"behavior for {key} dispatch key and {self.ns} namespace."
            )
        self._undo.append(operator.put_kernel(key, fn))

    def _register_torch_dispatch_rule(self, op_name: str, torch_dispatch_class: type, fn: Callable[..., Any]) -> None:
        """`register_torch_dispatch`, for an operator of its namespace, as long as it is there."""
        register_torch_dispatch(f"{self.ns}::{op_name}", torch_dispatch_class, fn, lib=self)

    def _destroy(self) -> None:
        """Forget what it has registered, as when nobody refers to it any more."""
        _take_back(self._undo)


def _take_back(undoing: list[Callable[[], Any]]) -> None:
    while undoing:
        undoing.pop()()


@contextmanager
def _scoped_library(ns: str, kind: str, dispatch_key: str = "") -> Iterator[Library]:
    """A `Library` for a while; what else is defined in its namespace meanwhile goes with it."""
    made = Library(ns, kind, dispatch_key)
    before = {id(form) for forms in DEFINED.get(ns, {}).values() for form in forms.values()}
    try:
        yield made
    finally:
        made._destroy()
        for form in [form for forms in DEFINED.get(ns, {}).values() for form in forms.values()]:
            if id(form) not in before:
                form.forget()


def define(qualname: Any, schema: str, *args: Any, lib: Library | None = None, tags: Any = ()) -> Any:
    """Define an operator ``namespace::name`` by the rest of its schema: ``(Tensor x) -> Tensor``.

    Given a `Library` first and a whole schema, what it decorates is the kernel.
    """
    if isinstance(qualname, Library):
        library = qualname
        name = library.define(schema, *args, tags=tags)

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, function)
            return function

        return register
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be of type str, got {type(qualname)}")
    if "::" not in qualname:
        raise ValueError(
            f"define(qualname): expected a namespace and a name, such as 'mine::double', but got {qualname!r}"
        )
    if not schema.lstrip().startswith("("):
        raise ValueError(
            f'define(qualname, schema): expected schema to look like e.g. "(Tensor x) -> Tensor" but got {schema!r}'
        )
    if lib is not None:  # whose namespace is taken
        lib.define(f"{qualname.partition('::')[2]}{schema}", tags=tags)
        return
    _new(parse(f"{qualname}{schema}"), tags)


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Register a kernel of an operator for kinds of devices (``"cpu"``, ``"default"``).

    Given a `Library` first, for a dispatch key.
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, "" if func is None else func

        def register_by_key(function: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, function, key)
            return function

        return register_by_key
    kinds = (types,) if isinstance(types, str) else tuple(types)
    for kind in kinds:
        if kind.lower() not in _DEVICES and kind not in _KEYS:
            raise RuntimeError(f"Expected one of {', '.join(_DEVICES)} at the start of a device, not {kind!r}")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        definition = _of(lib, qualname)
        for kind in kinds:
            key = kind if kind in _KEYS else _key_of(kind)
            definition._keep(definition._operator.put_kernel(key, function))
        return function

    return register if func is None else register(func)


def _of(lib: Library | None, op: Any) -> CustomOpDef:
    """An operator; what is registered of it next goes when the library does, if one is given."""
    if lib is not None and not isinstance(lib, Library):
        raise TypeError(f"lib must be a torch.library.Library, not {type(lib).__name__}")
    return CustomOpDef(_find(op), lambda: None, lib)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:  # fmt: skip
    """The formula of an operator: see `CustomOpDef.register_autograd`."""
    _of(lib, op).register_autograd(backward, setup_context=setup_context)


def register_fake(
    op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None, _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:  # fmt: skip
    """What gives tensors like the results of an operator for tensors without values.

    (`_stacklevel` is for torch's own callers: how far up the stack the registration is said to be.)
    """
    _find(op).check_fake(override=allow_override or isinstance(op, CustomOpDef))
    definition = _of(lib, op)
    return definition.register_fake if func is None else definition.register_fake(func)


impl_abstract = register_fake


def register_kernel(
    op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """What computes an operator on some kinds of devices."""
    return _of(lib, op).register_kernel(device_types, func)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None) -> Any:
    """How an operator is batched: see `CustomOpDef.register_vmap`."""
    return _of(lib, op).register_vmap(func)


def register_torch_dispatch(
    op: Any, torch_dispatch_class: type, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """What an operator means to a class of tensors or a mode that does not know it itself."""
    return _of(lib, op).register_torch_dispatch(torch_dispatch_class, func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """Have the arguments of an operator cast to a dtype within autocast."""
    _of(lib, op).register_autocast(device_type, cast_inputs)


def get_kernel(op: Any, dispatch_key: str) -> Callable[..., Any]:
    """The kernel that was registered for a dispatch key."""
    operator = _find(op)
    if dispatch_key not in operator.kernels:
        raise RuntimeError(
            f"There is no kernel for {dispatch_key} for {operator.qualname}; there are some for "
            f"{', '.join(operator.kernels) or 'nothing'}"
        )
    return operator.kernels[dispatch_key]
