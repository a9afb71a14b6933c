"""``opcheck``: does an operator of a program's own do what it says?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import grad as gradients
from ..core.late import operators as functions
from ..ops.custom import CustomOperator
from ..ops.overload import OpOverload, OpOverloadPacket
from ..tensor import Tensor
from ..testing import assert_close
from ..utils._pytree import tree_leaves, tree_map

_DEFAULT = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
_ALL = (*_DEFAULT, "test_aot_dispatch_static")


class OpCheckError(Exception):
    """An operator does not do what it says."""


def opcheck(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, test_utils: str | Sequence[str] = _DEFAULT,
    raise_exception: bool = True, atol: float | None = None, rtol: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Check an operator on some arguments; a dictionary from each test to ``"SUCCESS"`` or to what went wrong.

    * ``test_schema``: it writes to those of its arguments that its schema says, returns what it says, and no result
      shares memory with an argument;
    * ``test_autograd_registration``: there is a formula, if an argument requires grad;
    * ``test_faketensor``: what was registered with `register_fake` gives tensors like those that it gives;
    * ``test_aot_dispatch_dynamic``, ``test_aot_dispatch_static``: it gives the same, and gradients of the right kind,
      each time that it is called (there are no compilers here whose results could be compared).

    >>> import retrograd as torch
    >>> @torch.library.custom_op("looked_at::double", mutates_args=())
    ... def double(x: torch.Tensor) -> torch.Tensor:
    ...     return x * 2
    >>> torch.library.opcheck(double, (torch.ones(2),), test_utils="test_schema")
    {'test_schema': 'SUCCESS'}
    """
    if isinstance(op, OpOverloadPacket):
        op = op.default
    operator: Any = op.function if isinstance(op, OpOverload) else getattr(op, "_operator", None)
    if isinstance(op, OpOverload) and not isinstance(operator, CustomOperator):
        operator = _OfTorch(op)
    elif not isinstance(operator, CustomOperator):
        raise ValueError(
            "opcheck(op, ...): op must be an instance of torch._ops.OpOverload (torch.ops.mine.f.default) or what "
            f"torch.library.custom_op returns, got {op!r} of {type(op)}"
        )
    wanted = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    unknown = [name for name in wanted if name not in _ALL]
    if unknown:
        raise ValueError(f"opcheck(...): expected test_utils to be subset of {_ALL}, got {unknown[0]!r}")
    tolerances = {name: value for name, value in (("atol", atol), ("rtol", rtol)) if value is not None}
    found: dict[str, Any] = {}
    for name in wanted:
        try:
            _TESTS[name](operator, args, kwargs or {}, tolerances)
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error} (see above)") from error
            found[name] = error
    return found


class _OfTorch:
    """An operator that torch has, as the tests ask one."""

    def __init__(self, op: OpOverload) -> None:
        self.op = op
        self.schema = op._schema
        self.qualname = op.name()
        self.kernels = {"Autograd": op}
        self.backward = op
        self.from_function = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.op(*args, **kwargs)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        arguments = self.schema.arguments
        given = dict(zip([a.name for a in arguments], args, strict=False)) | kwargs
        found = {a.name: given.get(a.name, a.default_value) for a in arguments}
        keywords = {a.name: found.pop(a.name) for a in arguments if a.kwarg_only}
        return tuple(found.values()), keywords

    def fake(self, *args: Any, **kwargs: Any) -> Any:
        """What it gives for tensors without values, said to be where they would be."""

        def bare(value: Any) -> Any:
            return value.to("meta") if isinstance(value, Tensor) else value

        found = self.op(*tree_map(bare, args), **tree_map(bare, kwargs))
        place = next((tensor.device for tensor in _tensors((args, kwargs))), None)
        return tree_map(lambda one: functions.empty_like(one, device=place) if isinstance(one, Tensor) else one, found)


def _copies(values: Any) -> Any:
    def copy(value: Any) -> Any:
        return value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value

    return tree_map(copy, values)


def _tensors(values: Any) -> list[Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, Tensor)]


def _schema(operator: Any, args: Any, kwargs: dict[str, Any], tolerances: dict[str, Any]) -> None:
    args, kwargs = _copies((args, kwargs))
    inputs, keywords = operator.bind(args, kwargs)
    given = dict(zip([a.name for a in operator.schema.arguments if not a.kwarg_only], inputs, strict=True)) | keywords
    before = {name: _copies(value) for name, value in given.items()}
    result = operator(*args, **kwargs)
    for a in operator.schema.arguments:
        if a.is_write:
            continue
        for old, new in zip(_tensors(before[a.name]), _tensors(given[a.name]), strict=True):
            if not functions.equal(old.detach(), new.detach()):
                raise RuntimeError(f"Argument {a.name} is not defined as mutable but was mutated")
    returned = result if isinstance(result, (tuple, list)) else () if result is None else (result,)
    expected = operator.schema.returns
    if not any(r.type.endswith("[]") for r in expected) and len(returned) != len([r for r in expected if r.type]):
        raise RuntimeError(f"it returned {len(returned)} results, but its schema says {operator.schema}")
    places = {id(t.untyped_storage()._root): a for a, value in given.items() for t in _tensors(value)}  # type: ignore[attr-defined]
    for tensor in _tensors(result):
        shared = places.get(id(tensor.untyped_storage()._root))  # type: ignore[attr-defined]
        if shared is not None and not operator.schema.is_mutable and not operator.op.is_view:
            raise RuntimeError(
                f"Argument {shared} is not defined to alias output but was aliasing: {operator.qualname} must "
                f"return new "
                "tensors"
            )


def _autograd(operator: Any, args: Any, kwargs: dict[str, Any], tolerances: dict[str, Any]) -> None:
    if not any(tensor.requires_grad for tensor in _tensors((args, kwargs))):
        return
    with_autograd = {"Autograd", "AutogradCPU", "CompositeImplicitAutograd"} & operator.kernels.keys()
    if operator.backward is None and not with_autograd and not operator.from_function:
        raise AssertionError(
            f"{operator.qualname} does not have an autograd kernel registered, but an argument requires grad: give "
            f"it a formula, with register_autograd()"
        )


def _fake(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tolerances: dict[str, Any]) -> None:
    if "CompositeImplicitAutograd" in operator.kernels:
        return
    if operator.fake is None:
        raise RuntimeError(
            f"There was no fake impl registered for {operator.qualname}. Please use `register_fake` to add an fake "
            f"impl."
        )
    args, kwargs = _copies((args, kwargs))
    real = operator(*args, **kwargs)

    def without_values(value: Any) -> Any:
        return functions.empty_like(value) if isinstance(value, Tensor) else value

    fake = operator.fake(*tree_map(without_values, args), **tree_map(without_values, kwargs))
    for position, (one, other) in enumerate(zip(_tensors(real), _tensors(fake), strict=True)):
        for what in ("shape", "dtype", "device"):
            if getattr(one, what) != getattr(other, what):
                raise AssertionError(
                    f"result {position} of the fake impl has {what} {getattr(other, what)}, but the operator gives "
                    f"{getattr(one, what)}"
                )
        if one.stride() != other.stride():
            raise AssertionError(
                f"result {position} of the fake impl has strides {other.stride()}, but the operator gives "
                f"{one.stride()}"
            )


def _repeated(operator: Any, args: Any, kwargs: dict[str, Any], tolerances: dict[str, Any]) -> None:
    def run() -> tuple[list[Tensor], list[Any]]:
        own_args, own_kwargs = _copies((args, kwargs))
        results = _tensors(operator(*own_args, **own_kwargs))
        inputs = [t for t in _tensors((own_args, own_kwargs)) if t.requires_grad]
        roots = [r for r in results if r.requires_grad]
        if not inputs or not roots:
            return results, []
        grads = gradients(roots, inputs, [functions.ones_like(r) for r in roots], allow_unused=True)
        for gradient, tensor in zip(grads, inputs, strict=True):
            if gradient is not None and (gradient.shape != tensor.shape or gradient.dtype != tensor.dtype):
                raise AssertionError(
                    f"a gradient is {gradient.dtype} of {list(gradient.shape)}, but its argument is {tensor.dtype} of "
                    f"{list(tensor.shape)}"
                )
        return results, list(grads)

    runs = [run() for _ in range(2)]
    for one, other in zip(*[(*results, *grads) for results, grads in runs], strict=True):
        if one is not None or other is not None:
            assert_close(one, other, **tolerances)


_TESTS: dict[str, Callable[..., None]] = dict(zip(_ALL, (_schema, _autograd, _fake, _repeated, _repeated), strict=True))
