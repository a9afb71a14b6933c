"""Operators that programs define (``torch.library``): what is known of each, and what happens when one is called.

A call goes through the same layers as that of any operator: classes and modes with ``__torch_function__``, autograd (a
custom function with the formula that was registered), classes and modes with ``__torch_dispatch__``, the kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..autograd.function import Function
from ..autograd.inplace import bump_version
from ..core.devices import device
from ..core.late import transforms
from ..core.state import local, process
from ..core.version_counter import INFERENCE
from ..core.where import user_location
from ..tensor import Tensor
from ..tensor.overriding import handle, overriding
from .autograd_fallback import fallback, mark
from .dispatch import DispatchTensor, ModeObserver, ask_arguments, ask_mode, recording_off, tensors_in
from .operator_schema import FunctionSchema, Tag
from .overload import OpOverload, OpOverloadPacket
from .schema_values import Unsuitable, cast_of, shown

#: namespace -> name -> overload -> the operator.
DEFINED: dict[str, dict[str, dict[str, CustomOperator]]] = {}

#: Kernels by what they stand for, in the order in which they are looked for after that of the tensors' device.
_KERNELS = ("CompositeExplicitAutograd", "CompositeImplicitAutograd")
#: Kernels that see to their gradients themselves.
_WITH_AUTOGRAD = ("AutogradCPU", "Autograd", "CompositeImplicitAutograd")


class _Thread(threading.local):
    """What calls of this thread are within."""

    #: ``_AutoDispatchBelowAutograd``: how many of them.
    below = 0
    #: The operator whose fake kernel runs.
    fake: CustomOperator | None = None


_thread = _Thread()


class below_autograd:
    """``torch._C._AutoDispatchBelowAutograd``: nothing is recorded, and an operator's autograd kernel not called.

    With it an autograd kernel calls the operator that it is of.
    """

    def __init__(self) -> None:
        self._recording = recording_off()

    def __enter__(self) -> None:
        _thread.below += 1
        self._recording.__enter__()

    def __exit__(self, *exc_info: object) -> None:
        self._recording.__exit__(*exc_info)
        _thread.below -= 1


def get_ctx() -> None:
    """The context of a fake kernel, which makes sizes that depend on values: there is none here, only meta tensors."""
    if _thread.fake is not None:
        raise RuntimeError(
            f"{_thread.fake.qualname} ({_thread.fake.fake_location}): You're trying to run this operator with meta "
            "Tensors, but this operator may return an output Tensor with data-dependent shape, since its fake kernel "
            "calls torch.library.get_ctx(). Call it with tensors that have values, or return a tensor of a known shape"
        )


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
        forms = DEFINED.get(self.namespace, {}).get(self.__name__)
        if not forms:
            raise RuntimeError(f"operator {self.namespace}::{self.__name__} is no more: its library has ended")
        errors = []
        for form in forms.values():
            try:
                form.bind(args, kwargs)
            except RuntimeError as error:
                errors.append(error)
                continue
            return form(*args, **kwargs)
        if len(errors) == 1:
            raise errors[0]
        each = "\n\n".join(map(str, errors))
        raise RuntimeError(f"Overloaded torch operator invoked from Python failed to match any schema:\n{each}")


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
        #: Where that was registered, and whether as a kernel ("Meta") or by `register_fake` ("fake").
        self.fake_location: Any = None
        self.fake_by: str | None = None
        self.vmap: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        #: ``within(call, args, kwargs)``: how it is called where autocast may be on.
        self.within: Callable[..., Any] | None = None
        #: What it means to classes and modes that do not know it themselves.
        self.rules: dict[type, Callable[..., Any]] = {}
        #: What `put` was given, oldest first, by the attribute and the key in it.
        self._put: dict[tuple[str, Any], list[list[Any]]] = {}
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
        self._casts = [cast_of(a.type) for a in schema.arguments]
        for a, cast in zip(schema.arguments, self._casts, strict=True):
            if a.has_default_value() and a.type.startswith("float") and cast is not None:  # (``float y=1``)
                a.default_value = cast(a.default_value)
        #: Is it of a function that was given to ``custom_op``, whose kernel is none for tensors without values?
        self.from_function = False
        #: ``missing(key)``: raises an error of its own where there is no kernel for "CPU", "Meta" or "Undefined".
        self.missing: Callable[[str], Any] | None = None
        self._returns = [r.type for r in schema.returns if r.type not in ("", "None")]

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

    def put(self, name: str, value: Any, key: Any = None) -> Callable[[], None]:
        """Register `value` as an attribute, or in one at a key; returns what takes it back.

        Of several values the newest counts of those that are not taken back, in whichever order that is.
        """
        values = self._put.setdefault((name, key), [])
        entry = [value]
        values.append(entry)
        self._take(name, key)

        def undo() -> None:
            values[:] = [other for other in values if other is not entry]
            self._take(name, key)

        return undo

    def _take(self, name: str, key: Any) -> None:
        values = self._put[name, key]
        newest = values[-1][0] if values else None
        if key is None:
            setattr(self, name, newest)
        elif newest is None:
            getattr(self, name).pop(key, None)
        else:
            getattr(self, name)[key] = newest
        self._function = None  # which was made of what there was before

    def put_fake(self, function: Callable[..., Any], by: str = "fake") -> Callable[[], None]:
        """Have tensors without values computed by a function."""
        undoing = [self.put("fake", function), self.put("fake_by", by), self.put("fake_location", user_location(2))]

        def undo() -> None:
            for one in undoing:
                one()

        return undo

    def put_kernel(self, key: str, function: Callable[..., Any]) -> Callable[[], None]:
        """Register a kernel for a dispatch key; that for "Meta" is for tensors without values."""
        if key == "Meta":
            self.check_fake(override=True)
            return self.put_fake(function, by="Meta")
        return self.put("kernels", function, key)

    def check_fake(self, *, override: bool) -> None:
        """Refuse a function for tensors without values where there is one, or none is needed."""
        if self.fake is not None and not override:
            already = (
                f"already has a fake impl registered at {self.fake_location}" if self.fake_by == "fake"
                else f"already has a DispatchKey::Meta implementation, registered at {self.fake_location}"
            )  # fmt: skip
            raise RuntimeError(
                f"register_fake(...): the operator {self.qualname} {already}: allow_override=True replaces it"
            )
        if "CompositeImplicitAutograd" in self.kernels:
            raise RuntimeError(
                f"We should not register a meta kernel directly to the operator '{self.qualname}', because it has a "
                "CompositeImplicitAutograd kernel. It is made of other operators, which know what they give "
                "for tensors without values"
            )

    def _without_values(self, *args: Any, **kwargs: Any) -> Any:
        before, _thread.fake = _thread.fake, self
        try:
            return self.fake(*args, **kwargs)  # type: ignore[misc]
        finally:
            _thread.fake = before

    @property
    def views_by_numbers(self) -> bool:
        """Is it a view that depends on symbolic numbers, which could not be taken anew?"""
        return any(one.alias_info is not None for one in self.schema.returns) and not self.schema.is_mutable and any(
            a.type.startswith("SymInt") for a in self.schema.arguments
        )

    # ---------------------------------------------------------------------------------------------------------- a call

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call, all of them, each of its type: those in order, and those by keyword."""
        arguments = self.schema.arguments
        names = [a.name for a in arguments if not a.kwarg_only]
        if len(args) > len(names):
            raise RuntimeError(
                f"{self.qualname}() takes {len(names)} positional argument(s) but {len(args)} was/were given.  "
                f"Declaration: {self.schema}"
            )
        given = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name in given:
                raise RuntimeError(
                    f"{self.qualname}() got multiple values for argument '{name}'. Declaration: {self.schema}"
                )
            given[name] = value
        found: dict[str, Any] = {}
        for position, (a, cast) in enumerate(zip(arguments, self._casts, strict=True)):
            if a.name not in given:
                if not a.has_default_value():
                    raise RuntimeError(
                        f"{self.qualname}() is missing value for argument '{a.name}'. Declaration: {self.schema}"
                    )
                found[a.name] = a.default_value
                continue
            value = given.pop(a.name)
            try:
                found[a.name] = value if cast is None else cast(value)
            except Unsuitable:
                raise RuntimeError(
                    f"{self.qualname}() Expected a value of type '{shown(a.type)}' for argument '{a.name}' but "
                    f"instead found type '{type(value).__name__}'.\nPosition: {position}\nValue: {value!r}\n"
                    f"Declaration: {self.schema}"
                ) from None
        if given:
            raise RuntimeError(
                f"Unknown keyword argument '{next(iter(given))}' for operator "
                f"'{self.op.namespace}::{self.op.overloadpacket.__name__}'. Schema: {self.schema}"
            )
        keywords = {a.name: found.pop(a.name) for a in arguments if a.kwarg_only}
        return tuple(found.values()), keywords

    def returned(self, result: Any) -> Any:
        """What a kernel has returned, as the schema has it: lists for ``Tensor[]``, a tuple of several results."""
        kinds = self._returns
        if not kinds:
            if result is not None:
                raise RuntimeError(
                    f"Expected the kernel of {self.qualname} to return None but it returned something else instead: "
                    f"a {type(result).__name__}. Its schema is {self.schema}"
                )
            return None
        if len(kinds) == 1:
            return self._one(kinds[0], result)
        if not isinstance(result, (tuple, list)):
            raise TypeError(
                f"Object of type '{type(result).__name__}' is not an instance of 'sequence': {self.qualname} has "
                f"{len(kinds)} results, and its kernel shall return a tuple of them"
            )
        if len(result) != len(kinds):
            raise RuntimeError(
                f"{self.qualname} has {len(kinds)} results, but its kernel returned {len(result)}: {self.schema}"
            )
        return tuple([self._one(kind, one) for kind, one in zip(kinds, result, strict=True)])

    def _one(self, kind: str, value: Any) -> Any:
        cast = cast_of(kind)
        try:
            return value if cast is None else cast(value)
        except Unsuitable:
            raise RuntimeError(
                f"Unable to cast {value!r} to {shown(kind)}: that is what the kernel of {self.qualname} returned, "
                f"whose schema is {self.schema}"
            ) from None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs) if self.within is None else self.within(self.call, args, kwargs)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """A call, whose arguments are of the dtypes that they shall be of."""
        state = local.state
        if state.functions_off < 2:
            found = overriding((*args, *kwargs.values())) if not state.functions_off else []
            if found or state.function_modes:
                return handle(self.op, found, args, kwargs)
        inputs, keywords = self.bind(args, kwargs)
        if _thread.below and "CompositeImplicitAutograd" not in self.kernels:
            return self.below(inputs, keywords)
        if state.batch_levels and self.vmap is None and "CompositeImplicitAutograd" not in self.kernels:
            batch = transforms("batched").innermost(tensors_in((*inputs, *keywords.values())))
            if batch is not None and batch.open and not self.schema.is_mutable:
                return transforms("fallback").loop(batch, _OneExample(self, batch), inputs, keywords)
        with_autograd = next((self.kernels[key] for key in _WITH_AUTOGRAD if key in self.kernels), None)
        if self.backward is not None and self.views_by_numbers:
            raise RuntimeError(
                f"Custom ops that are views do not support SymInt. The schema of {self.schema} has some: write int"
            )
        if with_autograd is not None and not (self._asked(inputs) and "CompositeImplicitAutograd" not in self.kernels):
            return self._run(with_autograd, inputs, keywords)
        transformed = bool(state.batch_levels or state.func_depth)
        if self.backward is None and not (self.from_function or transformed):
            return self._without_formula(state, inputs, keywords)
        if self.schema.is_mutable and transformed:
            return self.below(inputs, keywords)
        dual = bool(process.dual_levels) and not self.schema.is_mutable
        if not (transformed or dual or _recorded(state, inputs)):
            with recording_off():
                return self.below(inputs, keywords)
        leaves, spec = self._flat((*inputs, *keywords.values()))
        return self.function().apply(*leaves, spec)

    def _without_formula(self, state: Any, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """A call of an operator that nobody has given a formula: Note [Operators without a formula]."""
        values = (*inputs, *keywords.values())
        if self._seen(state, values):
            with recording_off():
                return self.below(inputs, keywords)
        result = self.below(inputs, keywords)
        if fallback.mode == "warn" and _recorded(state, values):
            mark(self.qualname, list(tensors_in(values)), list(tensors_in(_as_tuple(result))))
        return result

    def _seen(self, state: Any, values: tuple[Any, ...]) -> bool:
        """Does a class or a mode with ``__torch_dispatch__`` answer for it?"""
        if state.dispatch_off:
            return False
        mode = state.observers and state.observers[0].__class__ is ModeObserver and state.interceptor is not None
        return bool(mode) or self._asked(values)

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
        if not self.schema.is_mutable:
            return self._run(kernel, inputs, keywords)
        before = [(tensor, tensor._version) for tensor in self._written(inputs, keywords)]
        result = self._run(kernel, inputs, keywords)
        for tensor, version in before:
            if tensor._version == version:  # NumPy wrote it, of which nothing is known but what the schema says
                bump_version(tensor)
        return result

    def _run(self, kernel: Callable[..., Any], inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """A kernel's results; what is as by default it is not given, since it has defaults of its own."""
        args, kwargs = self.trimmed(inputs, keywords)
        return self.returned(kernel(*args, **kwargs))

    def _written(self, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> list[Tensor]:
        """What the schema says is written to, as far as versions are counted of it."""
        places = iter(inputs)
        values = [keywords[a.name] if a.kwarg_only else next(places) for a in self.schema.arguments]
        found = tensors_in([value for a, value in zip(self.schema.arguments, values, strict=True) if a.is_write])
        return [tensor for tensor in found if isinstance(tensor, Tensor) and tensor._vc_ is not INFERENCE]

    def kernel_for(self, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Callable[..., Any]:
        """What computes it for these arguments."""
        tensors = [value for value in tensors_in((*inputs, *keywords.values())) if isinstance(value, Tensor)]
        meta = any(tensor.is_meta for tensor in tensors)
        placed = not tensors and any(a.name == "device" for a in self.schema.arguments)
        if placed:
            names = [a.name for a in self.schema.arguments if not a.kwarg_only]
            place = device(keywords["device"] if "device" in keywords else inputs[names.index("device")]).type
            meta = place == "meta"
            if not meta and place.upper() not in self.kernels and "CompositeExplicitAutograd" not in self.kernels:
                raise RuntimeError(
                    f"{self.op.overloadpacket.__name__} does not have a kernel registered for {place}: it has some for "
                    f"{', '.join(self.kernels)}"
                )
        if meta and self.fake is not None:
            return self._without_values
        key = place if placed else next((t.device.type for t in tensors if t.device.type != "cpu"), "cpu")
        key = key.upper()
        usable = [k for k in (key, *_KERNELS) if k in self.kernels and k not in self.disabled]
        if meta or not (tensors or placed):  # no kernel for a kind of devices can be meant
            usable = [k for k in usable if k.startswith("Composite") and not (meta and self.from_function)]
        if not usable:
            self._refuse("Meta" if meta else key if tensors or placed else "Undefined")
        return self.kernels[usable[0]]

    def _refuse(self, key: str) -> None:
        """There is no kernel."""
        if self.missing is not None:
            self.missing(key)
        name = self.op.overloadpacket.__name__
        if key == "Meta" and self.from_function:
            raise RuntimeError(
                f"There was no fake impl registered for <CustomOpDef({self.qualname})>. It is called with tensors "
                f"without values: please use `{name}.register_fake` to add a fake impl, which returns tensors like its "
                "results"
            )
        if key == "Meta":
            raise NotImplementedError(
                f"{self.qualname}: attempted to run this operator with Meta tensors, but there was no fake impl or "
                f"Meta kernel registered: torch.library.register_fake({self.qualname!r}, function) adds one"
            )
        if key == "Undefined":
            raise NotImplementedError(
                "There were no tensor arguments to this function (e.g., you passed an empty list of Tensors), but no "
                f"fallback function is registered for schema {self.qualname}: register its kernel for "
                f"'CompositeExplicitAutograd'. Available functions are [{', '.join(self.kernels)}]"
            )
        raise NotImplementedError(
            f"Could not run '{self.qualname}' with arguments from the '{key}' backend: there is no kernel for it. "
            f"'{self.qualname}' is only available for these backends: [{', '.join(self.kernels)}]"
        )

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

    def _given(self, values: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What is there for each argument, as those in order and those by keyword."""
        names = [a.name for a in self.schema.arguments if a.kwarg_only]
        count = len(values) - len(names)
        return tuple(values[:count]), dict(zip(names, values[count:], strict=True))

    def _compute(self, *flat: Any) -> Any:
        return self.below(*self._given(_nested(flat[:-1], flat[-1])))

    def _setup(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        spec = inputs[-1]
        args, kwargs = self._given(_nested(inputs[:-1], spec))
        #: How its arguments lie among those of the custom function, and of how many there has to be a gradient.
        ctx._of_operator = spec, len(self.trimmed(args, kwargs)[0])
        if self.setup_context is None:
            return
        named = {"keyword_only_inputs": kwargs} if kwargs else {}
        with self._own_needs(ctx, spec):
            self.setup_context(ctx=ctx, inputs=args, output=output, **named)

    @contextmanager
    def _own_needs(self, ctx: Any, spec: Any) -> Iterator[None]:
        """``ctx.needs_input_grad`` is about the arguments of the operator: one for each, a list for a list."""
        whole = ctx.needs_input_grad
        ctx.needs_input_grad = self._given(_nested(whole[:-1], spec))[0]
        try:
            yield
        finally:
            ctx.needs_input_grad = whole

    def _forward(self, ctx: Any, *flat: Any) -> Any:
        output = self._compute(*flat)
        self._setup(ctx, flat, output)
        return output

    def _backward(self, ctx: Any, *grads: Any) -> Any:
        if self.backward is None:
            raise RuntimeError(
                f"Trying to backward through {self.op} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        spec, fewest = ctx._of_operator
        with self._own_needs(ctx, spec):
            found = self.backward(ctx, *grads)
        found = found if isinstance(found, tuple) else (found,)
        count = sum(not a.kwarg_only for a in self.schema.arguments)
        if len(found) < fewest or any(grad is not None for grad in found[count:]):
            raise RuntimeError(
                f"function {self.function().__name__}Backward returned an incorrect number of gradients (expected "
                f"{count}, got {len(found)}): the formula of {self.qualname} returns one for each argument, and None "
                "for those that are no tensors"
            )
        flat: list[Any] = []
        for position, kind in enumerate(spec):
            grad = found[position] if position < min(len(found), count) else None if kind is None else [None] * kind[1]
            if kind is None:
                flat.append(grad)
                continue
            if not isinstance(grad, (list, tuple)) or len(grad) != kind[1]:
                raise RuntimeError(
                    "Expected the return from backward to be of the same structure as the inputs: the formula of "
                    f"{self.qualname} returns a list of {kind[1]} gradients, each of which may be None, for argument "
                    f"{self.schema.arguments[position].name}, but this one gave {type(grad).__name__}"
                    f"{f' of {len(grad)}' if isinstance(grad, (list, tuple)) else ''}"
                )
            flat += grad
        return (*flat, None)

    def _batched(self, info: Any, in_dims: tuple[Any, ...], *flat: Any) -> Any:
        spec = flat[-1]
        args, kwargs = self.trimmed(*self._given(_nested(flat[:-1], spec)))
        dims = _nested(in_dims[:-1], spec)
        return self.vmap(info, tuple(dims[: len(args)]), *args, **kwargs)  # type: ignore[misc]

    def _flat(self, values: tuple[Any, ...]) -> tuple[list[Any], tuple[Any, ...]]:
        """The values, of lists of tensors one by one, and what stood where: None, or a list of so many."""
        leaves: list[Any] = []
        spec: list[Any] = []
        for a, value in zip(self.schema.arguments, values, strict=True):
            is_list = isinstance(value, (list, tuple))
            if is_list and (a.type.startswith("Tensor") or any(isinstance(one, Tensor) for one in value)):
                leaves += value
                spec.append((type(value) if type(value) in (list, tuple) else list, len(value)))
            else:
                leaves.append(value)
                spec.append(None)
        return leaves, tuple(spec)


class _OneExample:
    """An operator without a rule for batches, called for one example: outside of the vmap."""

    def __init__(self, operator: CustomOperator, level: Any) -> None:
        self.operator = operator
        self.level = level
        self.qualname = operator.qualname
        self.__name__ = operator.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with transforms("batched").outside(self.level):
            return self.operator.call(*args, **kwargs)


def _recorded(state: Any, values: tuple[Any, ...]) -> bool:
    """Has autograd to see a call?"""
    return bool(state.grad_enabled) and any(
        isinstance(value, Tensor) and value.requires_grad for value in tensors_in(values)
    )


def _as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


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
