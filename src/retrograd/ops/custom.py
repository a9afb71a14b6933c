"""Operators that programs define (``torch.library``): what is known of each, and what happens when one is called.

A call goes through the same layers as that of any operator: classes and modes with ``__torch_function__``, autograd (a
custom function with the formula that was registered), classes and modes with ``__torch_dispatch__``, the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.function import Function
from ..autograd.inplace import bump_version
from ..core.devices import device
from ..core.state import local, process
from ..core.version_counter import INFERENCE
from ..tensor import Tensor
from ..tensor.overriding import handle, overriding
from .dispatch import DispatchTensor, ModeObserver, ask_arguments, ask_mode, recording_off, tensors_in
from .operator_schema import FunctionSchema, Tag
from .overload import OpOverload, OpOverloadPacket

#: namespace -> name -> overload -> the operator.
DEFINED: dict[str, dict[str, dict[str, CustomOperator]]] = {}

#: Kernels by what they stand for, in the order in which they are looked for where tensors are on the CPU.
_KERNELS = ("CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
#: Kernels that see to their gradients themselves.
_WITH_AUTOGRAD = ("AutogradCPU", "Autograd", "CompositeImplicitAutograd")


class Namespace:
    """``torch.ops.NAMESPACE`` of operators that programs define."""

    def __init__(self, name: str) -> None:
        self.name = self.__name__ = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        forms = DEFINED.get(self.name, {}).get(name)
        if not forms:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        return next(iter(forms.values())).op.overloadpacket

    def __dir__(self) -> list[str]:
        return list(DEFINED.get(self.name, {}))


class CustomPacket(OpOverloadPacket):
    """All forms of an operator that a program has defined."""

    def __getattr__(self, overload: str) -> OpOverload:
        found = DEFINED.get(self.namespace, {}).get(self.__name__, {}).get(overload)
        if found is None:
            raise AttributeError(
                f"The underlying op of '{self.namespace}.{self.__name__}' has no overload name '{overload}'"
            )
        return found.op

    def overloads(self) -> list[str]:
        return list(DEFINED.get(self.namespace, {}).get(self.__name__, {}))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        forms = DEFINED[self.namespace][self.__name__]
        errors = []
        for form in forms.values():
            try:
                form.bind(args, kwargs)
            except TypeError as error:
                errors.append(error)
                continue
            return form(*args, **kwargs)
        raise errors[0]


class CustomOperator:
    """One form of an operator that a program has defined."""

    def __init__(self, schema: FunctionSchema, tags: tuple[Tag, ...] = ()) -> None:
        namespace, _, name = schema.name.partition("::")
        self.schema = schema
        self.tags = tags
        self.kernels: dict[str, Callable[..., Any]] = {}
        #: Those that are there and not asked, for a while.
        self.disabled: frozenset[str] = frozenset()
        self.fake: Callable[..., Any] | None = None
        self.vmap: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        #: ``within(call, args, kwargs)``: how it is called where autocast may be on.
        self.within: Callable[..., Any] | None = None
        #: What it means to classes and modes that do not know it themselves.
        self.rules: dict[type, Callable[..., Any]] = {}
        forms = DEFINED.setdefault(namespace, {}).setdefault(name, {})
        form = schema.overload_name or "default"
        if form in forms:
            raise RuntimeError(
                f"Tried to register an operator ({schema}) with the same name and overload name multiple times: it is "
                f"defined as {forms[form].schema}"
            )
        packet = next(iter(forms.values())).op.overloadpacket if forms else CustomPacket(name, namespace)
        forms[form] = self
        self.op: OpOverload = OpOverload(packet, form, self, schema)
        self._function: type[Function] | None = None

    @property
    def __name__(self) -> str:
        return self.op.__name__

    @property
    def qualname(self) -> str:
        return self.op.name()

    def forget(self) -> None:
        """The operator is no more."""
        namespace, name = self.op.namespace, self.op.overloadpacket.__name__
        forms = DEFINED[namespace][name]
        forms.pop(self.op._overloadname, None)
        if not forms:
            del DEFINED[namespace][name]

    def restorer(self) -> Callable[[], None]:
        """What gives it back what is registered of it now."""
        before = {name: value.copy() if isinstance(value, dict) else value for name, value in vars(self).items()}

        def restore() -> None:
            vars(self).update(before)
            self.changed()

        return restore

    @property
    def views_by_numbers(self) -> bool:
        """Is it a view that depends on symbolic numbers, which could not be taken anew?"""
        return any(one.alias_info is not None for one in self.schema.returns) and not self.schema.is_mutable and any(
            a.type.startswith("SymInt") for a in self.schema.arguments
        )

    # ---------------------------------------------------------------------------------------------------------- a call

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call, all of them: those in order, and those by keyword."""
        positional = [a for a in self.schema.arguments if not a.kwarg_only]
        if len(args) > len(positional):
            raise TypeError(
                f"{self.qualname}() expected at most {len(positional)} argument(s) but received {len(args)} "
                f"argument(s). Declaration: {self.schema}"
            )
        given = dict(zip([a.name for a in positional], args, strict=False))
        for name, value in kwargs.items():
            if name in given or all(a.name != name for a in self.schema.arguments):
                wrong = "got multiple values for" if name in given else "got an unexpected keyword"
                raise TypeError(f"{self.qualname}() {wrong} argument '{name}'. Declaration: {self.schema}")
            given[name] = value
        for a in self.schema.arguments:
            if a.name not in given:
                if not a.has_default_value():
                    raise TypeError(
                        f"{self.qualname}() is missing value for argument '{a.name}'. Declaration: {self.schema}"
                    )
                given[a.name] = a.default_value
        keywords = {a.name: given[a.name] for a in self.schema.arguments if a.kwarg_only}
        return tuple([given[a.name] for a in positional]), keywords

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs) if self.within is None else self.within(self.call, args, kwargs)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """A call, whose arguments are of the dtypes that they shall be of."""
        state = local.state
        inputs, keywords = self.bind(args, kwargs)
        if state.functions_off < 2:
            found = overriding((*inputs, *keywords.values())) if not state.functions_off else []
            if found or state.function_modes:
                return handle(self.op, found, args, kwargs)
        with_autograd = next((self.kernels[key] for key in _WITH_AUTOGRAD if key in self.kernels), None)
        if self.backward is not None and self.views_by_numbers:
            raise RuntimeError(
                f"Custom ops that are views do not support SymInt. The schema of {self.schema} has some: write int"
            )
        if with_autograd is not None and not (self._asked(inputs) and "CompositeImplicitAutograd" not in self.kernels):
            return with_autograd(*inputs, **keywords)
        if self.schema.is_mutable:
            return self.below(inputs, keywords)
        if not self._recorded(state, inputs):
            with recording_off():
                return self.below(inputs, keywords)
        leaves, spec = _flat((*inputs, *keywords.values()))
        return self.function().apply(spec, len(inputs), *leaves)

    @staticmethod
    def _recorded(state: Any, inputs: tuple[Any, ...]) -> bool:
        """Has autograd, a dual level or a transform to see a call?"""
        if state.batch_levels or state.func_depth or process.dual_levels:
            return True
        return bool(state.grad_enabled) and any(
            isinstance(value, Tensor) and value.requires_grad for value in tensors_in(inputs)
        )

    def _asked(self, inputs: tuple[Any, ...]) -> bool:
        return any(isinstance(value, DispatchTensor) for value in tensors_in(inputs))

    def below(self, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """What it computes, below autograd."""
        state = local.state
        if not state.dispatch_off:
            if state.observers and state.observers[0].__class__ is ModeObserver and state.interceptor is not None:
                return ask_mode(self.op, *self.trimmed(inputs, keywords))
            if self._asked((*inputs, *keywords.values())):
                return ask_arguments(self.op, *self.trimmed(inputs, keywords))
        kernel = self.kernel_for(inputs, keywords)
        result = kernel(*inputs, **keywords)
        if self.schema.is_mutable:
            self._written(inputs, keywords)
        return result

    def _written(self, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """What the schema says is written to has another version, even if NumPy wrote it."""
        places = iter(inputs)
        for a in self.schema.arguments:
            value = keywords[a.name] if a.kwarg_only else next(places)
            if a.is_write:
                for tensor in tensors_in((value,)):
                    if isinstance(tensor, Tensor) and tensor._vc_ is not INFERENCE:
                        bump_version(tensor)

    def kernel_for(self, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Callable[..., Any]:
        """What computes it for these arguments."""
        tensors = [value for value in tensors_in(inputs) if isinstance(value, Tensor)]
        if self.fake is not None and any(tensor.is_meta for tensor in tensors):
            return self.fake
        if not tensors and any(a.name == "device" for a in self.schema.arguments):
            names = [a.name for a in self.schema.arguments if not a.kwarg_only]
            place = device(keywords["device"] if "device" in keywords else inputs[names.index("device")]).type
            if place == "meta" and self.fake is not None:
                return self.fake
            if place.upper() not in self.kernels and "CompositeExplicitAutograd" not in self.kernels:
                raise RuntimeError(
                    f"{self.op.overloadpacket.__name__} does not have a kernel registered for {place}: it has some for "
                    f"{', '.join(self.kernels)}"
                )
        found = next((self.kernels[key] for key in _KERNELS if key in self.kernels and key not in self.disabled), None)
        if found is None:
            raise NotImplementedError(
                f"Could not run '{self.qualname}' with arguments from the 'CPU' backend: there is no kernel for it. "
                f"'{self.qualname}' is only available for these backends: [{', '.join(self.kernels)}]"
            )
        return found

    def trimmed(self, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as handlers see them: without those that are what they are by default."""
        positional = [a for a in self.schema.arguments if not a.kwarg_only]
        values = list(inputs)
        while values and positional[len(values) - 1].has_default_value():
            default = positional[len(values) - 1].default_value
            if isinstance(values[-1], Tensor) or type(values[-1]) is not type(default) or values[-1] != default:
                break
            values.pop()
        named = {a.name: a.default_value for a in self.schema.arguments if a.kwarg_only}
        return tuple(values), {k: v for k, v in keywords.items() if isinstance(v, Tensor) or v != named[k]}

    # ------------------------------------------------------------------------------------------------------- autograd

    def function(self) -> type[Function]:
        """The custom function that records it."""
        if self._function is None:
            name = f"GeneratedBackwardFor_{self.op.namespace}_{self.op.__name__.replace('.', '_')}"
            body: dict[str, Any] = {"forward": staticmethod(self._forward), "backward": staticmethod(self._backward)}
            if self.vmap is not None:
                body["vmap"] = staticmethod(self._batched)
                body["forward"] = staticmethod(lambda *flat: self._compute(*flat))
                body["setup_context"] = staticmethod(self._setup)
            self._function = type(name, (Function,), body)
        return self._function

    def changed(self) -> None:
        """Something about it has been registered."""
        self._function = None

    def _compute(self, spec: Any, count: int, *leaves: Any) -> Any:
        values = _nested(leaves, spec)
        names = [a.name for a in self.schema.arguments if a.kwarg_only]
        return self.below(tuple(values[:count]), dict(zip(names, values[count:], strict=True)))

    def _setup(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        spec, count, *leaves = inputs
        ctx.spec, ctx.count = spec, len(leaves)
        if self.setup_context is None:
            return
        values = _nested(leaves, spec)
        names = [a.name for a in self.schema.arguments if a.kwarg_only]
        if names:
            named = dict(zip(names, values[count:], strict=True))
            self.setup_context(ctx=ctx, inputs=tuple(values[:count]), keyword_only_inputs=named, output=output)
        else:
            self.setup_context(ctx=ctx, inputs=tuple(values), output=output)

    def _forward(self, ctx: Any, spec: Any, count: int, *leaves: Any) -> Any:
        output = self._compute(spec, count, *leaves)
        self._setup(ctx, (spec, count, *leaves), output)
        return output

    def _backward(self, ctx: Any, *grads: Any) -> Any:
        if self.backward is None:
            raise RuntimeError(
                f"Trying to backward through {self.op} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        found = self.backward(ctx, *grads)
        found = found if isinstance(found, tuple) else (found,)
        flat = []
        for position, kind in enumerate(ctx.spec):
            grad = found[position] if position < len(found) else None
            if kind is None:
                flat.append(grad)
            else:
                flat += [None] * kind[1] if grad is None else list(grad)
        return (None, None, *flat)

    def _batched(self, info: Any, in_dims: tuple[Any, ...], spec: Any, count: int, *leaves: Any) -> Any:
        values, dims = _nested(leaves, spec), _nested(in_dims[2:], spec)
        names = [a.name for a in self.schema.arguments if a.kwarg_only]
        args, kwargs = self.trimmed(tuple(values[:count]), dict(zip(names, values[count:], strict=True)))
        return self.vmap(info, tuple(dims[: len(args)]), *args, **kwargs)  # type: ignore[misc]


def _flat(values: tuple[Any, ...]) -> tuple[list[Any], tuple[Any, ...]]:
    """The values, lists of tensors among them one by one, and what stood where: None, or a list of so many."""
    leaves: list[Any] = []
    spec: list[Any] = []
    for value in values:
        if isinstance(value, (list, tuple)) and any(isinstance(one, Tensor) for one in value):
            leaves += value
            spec.append((type(value) if type(value) in (list, tuple) else list, len(value)))
        else:
            leaves.append(value)
            spec.append(None)
    return leaves, tuple(spec)


def _nested(leaves: Any, spec: tuple[Any, ...]) -> list[Any]:
    values: list[Any] = []
    at = 0
    for kind in spec:
        if kind is None:
            values.append(leaves[at])
            at += 1
        else:
            values.append(kind[0](leaves[at : at + kind[1]]))
            at += kind[1]
    return values
