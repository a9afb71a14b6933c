"""Operators as ``torch._custom_op`` and ``torch._custom_ops`` define them: first the schema, then what they do.

An operator of theirs is one of `torch.library` (ops/custom.py) with an autograd kernel of its own, which is made of two
functions: what to save, and a backward formula that returns a dictionary.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .. import ops
from ..core.where import user_location, users_level
from ..library import Library, _find, get_ctx, infer_schema, register_fake
from ..library.checks import is_functional
from ..ops.custom import CustomOperator
from ..ops.operator_schema import FunctionSchema, Tag, parse
from ..ops.overload import OpOverload
from .autograd import autograd_kernel

__all__ = ["CustomOp", "custom_op", "get_ctx", "infer_schema"]

SUPPORTED_DEVICE_TYPE_TO_KEY: dict[str, str] = {"cpu": "CPU", "cuda": "CUDA"}
RESERVED_NS: set[str] = {"prim", "prims", "aten", "at", "torch", "pytorch"}

#: All of them by their names: an operator lives until `_destroy`.
global_registry: dict[str, CustomOp] = {}


class FuncAndLocation(NamedTuple):
    """A function that was registered, and where."""

    func: Callable[..., Any]
    location: str


def _deprecated() -> None:
    warnings.warn(
        "torch._custom_op is deprecated: use torch.library.custom_op, and what it returns",
        DeprecationWarning, stacklevel=users_level(),
    )  # fmt: skip


class CustomOp:
    """An operator, and what was registered for it; `custom_op` makes them."""

    def __init__(
        self, lib: Any, cpp_ns: Any, schema: Any, operator_name: Any, ophandle: Any, *, _private_access: bool = False
    ) -> None:
        _deprecated()
        if not _private_access:
            raise RuntimeError("The CustomOp constructor is private: custom_op(...) creates a CustomOp object")
        self._lib: Library = lib
        self._cpp_ns: str = cpp_ns
        self._schema: FunctionSchema = schema
        self._opname: str = operator_name
        self._qualname = f"{cpp_ns}::{operator_name}"
        self._operator: CustomOperator = ophandle
        self._impls: dict[str, FuncAndLocation] = {}
        self._output_differentiability: list[bool] | None = None
        self._with_autograd = False
        self.__name__: str = operator_name
        global_registry[self._qualname] = self

    def __repr__(self) -> str:
        return f'<CustomOp(op="{self._qualname}")>'

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._operator(*args, **kwargs)

    def _has_impl(self, kind: str) -> bool:
        return kind in self._impls

    def _get_impl(self, kind: str) -> FuncAndLocation:
        return self._impls[kind]

    def _register(self, kind: str, func: Callable[..., Any]) -> None:
        if kind in self._impls:
            raise RuntimeError(
                f"Attempting to register a {kind} impl for operator {self._qualname} that already has a {kind} impl "
                f"registered from Python at {self._impls[kind].location}. This is not supported."
            )
        self._impls[kind] = FuncAndLocation(func, str(user_location(2)))

    def _destroy(self) -> None:
        """The operator is no more."""
        self._lib._destroy()
        global_registry.pop(self._qualname, None)

    # ---------------------------------------------------------------------------------------------------------- kernels

    def impl(self, device_types: str | Iterable[str]) -> Callable[..., Any]:
        """What computes it on some kinds of devices."""
        kinds = [device_types] if isinstance(device_types, str) else list(device_types)
        for kind in kinds:
            if kind not in SUPPORTED_DEVICE_TYPE_TO_KEY:
                raise ValueError(
                    f"CustomOp.impl(device_types=[{kind}, ...]): we only support device_type in "
                    f"{list(SUPPORTED_DEVICE_TYPE_TO_KEY)}."
                )

        def register(func: Callable[..., Any]) -> Callable[..., Any]:
            kernels = self._operator.kernels
            for kind in dict.fromkeys(kinds):
                key = SUPPORTED_DEVICE_TYPE_TO_KEY[kind]
                taken = next((k for k in (key, *_FOR_ALL_DEVICES) if k in kernels), None)
                if not self._has_impl(kind) and taken is not None:
                    raise RuntimeError(
                        f"impl(..., device_types={kind}): the operator {self._qualname} already has an implementation "
                        f"for this device type via a pre-existing torch.library registration, for {taken}."
                    )
            for kind in dict.fromkeys(kinds):
                self._register(kind, func)
                self._lib.impl(self._opname, func, SUPPORTED_DEVICE_TYPE_TO_KEY[kind])
            return func

        return register

    def impl_factory(self) -> Callable[..., Any]:
        """What computes it on whichever device, if it takes no tensors."""

        def register(func: Callable[..., Any]) -> Callable[..., Any]:
            self._register("factory", func)
            self._lib.impl(self._opname, func, "CompositeExplicitAutograd")
            return func

        return register

    def impl_abstract(self) -> Callable[..., Any]:
        """What gives tensors like the results for tensors without values."""

        def register(func: Callable[..., Any]) -> Callable[..., Any]:
            register_fake(self._qualname, func, lib=self._lib)
            self._register("abstract", func)
            return func

        return register

    def _missing(self, key: str) -> None:
        """There is no kernel for the tensors that it is called with."""
        if key == "Undefined":
            raise NotImplementedError(
                f"{self}: There were no Tensor inputs to this operator (e.g. you passed an empty list of Tensors). If "
                "it makes tensors by itself, register its kernel with impl_factory()."
            )
        if key == "Meta":
            raise NotImplementedError(
                f"{self}: when running with device='Meta' tensors: there is no fake impl or Meta kernel registered for "
                "this operator: add one via torch.library.register_fake"
            )
        kind = key.lower()
        raise NotImplementedError(
            f"{self}: there was no {kind} impl registered for this CustomOp: add one with "
            f"impl(device_types='{kind}')"
        )

    # --------------------------------------------------------------------------------------------------------- autograd

    def impl_save_for_backward(self) -> Callable[..., Any]:
        """What its formula needs: ``func(inputs, output)``, where `inputs` is a named tuple."""

        def register(func: Callable[..., Any]) -> Callable[..., Any]:
            self._may_have_formula()
            self._register("save_for_backward", func)
            self._own_autograd()
            return func

        return register

    def impl_backward(self, output_differentiability: list[bool] | None = None) -> Callable[..., Any]:
        """Its formula: ``func(ctx, saved, *grads)`` returns a dictionary from names of arguments to gradients."""
        if output_differentiability is not None:
            fits = isinstance(output_differentiability, list) and len(output_differentiability) == len(
                self._schema.returns
            )
            if not fits or any(not isinstance(one, bool) for one in output_differentiability):
                raise RuntimeError(
                    "impl_backward(output_differentiability): expected output_differentiability to be a list of bools, "
                    f"one for each of the {len(self._schema.returns)} results of {self}, got: "
                    f"{output_differentiability}"
                )

        def register(func: Callable[..., Any]) -> Callable[..., Any]:
            self._may_have_formula()
            self._register("backward", func)
            self._output_differentiability = output_differentiability
            self._own_autograd()
            return func

        return register

    def _may_have_formula(self) -> None:
        schema = self._schema
        wrong = (
            "non-functional operator" if schema.is_mutable
            else "operator with no returns" if not schema.returns
            else "operator that returns views" if any(r.alias_info is not None for r in schema.returns)
            else next((f"operator with return of type {r.type}" for r in schema.returns if r.type not in _RETURNS), "")
        )  # fmt: skip
        if wrong:
            raise RuntimeError(
                f"Cannot use torch._custom_ops APIs to register backward formula for {wrong}. Got operator "
                f"{self._qualname} with schema: {schema}"
            )
        if self._with_autograd:
            return
        taken = next((key for key in _WITH_AUTOGRAD if key in self._operator.kernels), None)
        if taken is not None:
            raise RuntimeError(
                f"impl_backward/impl_save_for_backward: the operator {self._qualname} already has an implementation "
                f"registered to DispatchKey::{taken} via torch.library, which sees to its gradients itself: it needs "
                "no formula"
            )

    def _own_autograd(self) -> None:
        if not self._with_autograd:
            self._with_autograd = True
            self._lib.impl(self._opname, autograd_kernel(self), "Autograd")


_FOR_ALL_DEVICES = ("CompositeExplicitAutograd", "CompositeImplicitAutograd")
_WITH_AUTOGRAD = ("CompositeImplicitAutograd", "Autograd", "AutogradCPU", "AutogradCUDA")
_RETURNS = ("int", "SymInt", "bool", "float", "Tensor", "Tensor[]")


# ---------------------------------------------------------------------------------------------------------- definitions


def parse_qualname(qualname: str) -> tuple[str, str]:
    """``"mine::f"`` as namespace and name."""
    namespace, colons, name = qualname.partition("::")
    if not colons:
        raise ValueError(f"Expected there to be a namespace in {qualname}, such as mine::{qualname}")
    if "." in name:
        raise ValueError(
            f"The torch._custom_ops APIs do not handle overloads, i.e. operator names with '.' in them. Got: {qualname}"
        )
    return namespace, name


def validate_namespace(namespace: str) -> None:
    """Refuse the namespaces that are torch's own."""
    if "." in namespace:
        raise ValueError(f'custom_op(..., ns="{namespace}"): expected ns to not contain any ., but to be a name')
    if namespace in RESERVED_NS:
        raise ValueError(
            f"custom_op(..., ns='{namespace}'): '{namespace}' is a reserved namespace, please choose another one."
        )


def check_function(func: Any, qualname: str) -> None:
    """Refuse what is not a function of the operator's name."""
    if not inspect.isfunction(func):
        raise ValueError(f"custom_op(...)(func): Expected `func` to be a Python function, got: {type(func)}")
    name = parse_qualname(qualname)[1]
    if func.__name__ != name:
        raise ValueError(
            f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' but got "
            f"'{func.__name__}'. Call one of them as the other"
        )


def _parsed(namespace: str, name: str, text: str) -> FunctionSchema:
    try:
        schema = parse(f"{name}{text}")
    except RuntimeError as error:
        raise AssertionError(f"Invalid function schema: {name}{text}") from error
    if any(a.name == "self" for a in schema.arguments):
        raise ValueError(f"custom_op does not support arguments named 'self'. Please rename yours. Got: {schema}")
    if not is_functional(schema):
        raise ValueError(
            "custom_op only supports functional operators: those that write to no argument, return no views of them, "
            f"and return something. Got the following non-functional schema: {schema}"
        )
    return schema


def define(qualname: str, text: str, tags: tuple[Tag, ...] = ()) -> CustomOp:
    """A new operator with a schema."""
    namespace, name = parse_qualname(qualname)
    validate_namespace(namespace)
    schema = _parsed(namespace, name, text)
    lib = Library(namespace, "FRAGMENT")
    lib.define(f"{name}{text}", tags=tags)
    made = CustomOp(lib, namespace, schema, name, _find(qualname), _private_access=True)
    made._operator.missing = made._missing
    made._own_autograd()
    return made


def custom_op(qualname: str, manual_schema: str | None = None) -> Callable[..., Any]:
    """Define an operator that is called as the function whose types, or `manual_schema`, say what it takes.

    >>> import warnings
    >>> import retrograd as torch
    >>> from retrograd._custom_op.impl import custom_op
    >>> warnings.simplefilter("ignore", DeprecationWarning)
    >>> @custom_op("of_old::twice")
    ... def twice(x: torch.Tensor) -> torch.Tensor: ...
    >>> _ = twice.impl("cpu")(lambda x: x * 2)
    >>> twice(torch.ones(2))
    tensor([2., 2.])
    >>> twice._destroy()
    """
    _deprecated()

    def define_it(func: Callable[..., Any]) -> CustomOp:
        check_function(func, qualname)
        if manual_schema is not None:
            namespace, name = parse_qualname(qualname)
            _check_signature(_parsed(namespace, name, manual_schema), func)
        made = define(qualname, infer_schema(func, mutates_args=()) if manual_schema is None else manual_schema)
        made.__name__, made.__module__, made.__doc__ = func.__name__, func.__module__, func.__doc__
        return made

    return define_it


def _check_signature(schema: FunctionSchema, func: Callable[..., Any]) -> None:
    """Is a function called as a schema says?"""
    signature = inspect.signature(func)
    given = list(signature.parameters.values())
    where = "custom_op(..., manual_schema)(func)"
    if any(p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in given):
        raise ValueError(
            f"{where}: positional-only args, varargs, and kwargs are not supported. Got `func` with signature: "
            f"{signature}"
        )
    if signature.return_annotation is not signature.empty or any(p.annotation is not p.empty for p in given):
        raise ValueError(
            f"{where}: When passing in a manual schema, we expect `func` to have no type annotations. Got `func` with "
            f"signature: {signature}"
        )
    own = [(p.name, p.kind is p.KEYWORD_ONLY) for p in given]
    if own != [(a.name, a.kwarg_only) for a in schema.arguments]:
        raise ValueError(
            f"{where}: When passing in a manual schema, we expect `func`'s signature to match `manual_schema` (aside "
            f"from type annotations). func's signature: {signature}, manual_schema: {schema}"
        )
    if any(p.default is not p.empty for p in given) or any(a.has_default_value() for a in schema.arguments):
        raise ValueError(
            f"{where}: neither func nor manual_schema should have default arguments. Got func's signature: "
            f"{signature}, manual_schema: {schema}"
        )


# ------------------------------------------------------------------------------------------------------------- found


def get_op(qualname: str) -> OpOverload:
    """``torch.ops.mine.f.default`` of ``"mine::f"``."""
    namespace, name = parse_qualname(qualname)
    packet = getattr(getattr(ops, namespace, None), name, None)
    found = getattr(packet, "default", None)
    if found is None:
        raise ValueError(
            f"Could not find the operator {qualname}. Please make sure you have already registered the operator"
        )
    return found


def find(qualname: str, *, or_of_library: bool = False) -> CustomOp:
    """The operator of a name: one that these functions defined, or one that `torch.library` did."""
    if qualname in global_registry:
        return global_registry[qualname]
    if not or_of_library:
        raise RuntimeError(f'Could not find custom op "{qualname}": the torch._custom_ops API did not register it')
    get_op(qualname)
    operator = _find(qualname)
    namespace, name = parse_qualname(qualname)
    return CustomOp(Library(namespace, "FRAGMENT"), namespace, operator.schema, name, operator, _private_access=True)
