"""The autograd kernel of an operator of ``torch._custom_op``, of what it saves and its formula."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from ..autograd.function import Function
from ..core.state import local
from ..ops.dispatch import recording_off, tensors_in
from ..tensor import Tensor
from ..utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten


def autograd_kernel(op: Any) -> Callable[..., Any]:
    """``kernel(*args, **kwargs)``: records the operator, as far as there is a formula for it."""
    operator = op._operator

    def kernel(*args: Any, **kwargs: Any) -> Any:
        inputs, keywords = operator.bind(args, kwargs)
        has = {kind for kind in ("backward", "save_for_backward") if op._has_impl(kind)}
        if len(has) == 1:
            (found,) = has
            missing = "save_for_backward" if found == "backward" else "backward"
            raise RuntimeError(
                f"We found a '{found}' registration for {op} at {op._get_impl(found).location} but were unable to find "
                f"a '{missing}' registration: a formula takes both, impl_backward and impl_save_for_backward."
            )
        wanted = local.state.grad_enabled and any(
            isinstance(value, Tensor) and value.requires_grad for value in tensors_in((*inputs, *keywords.values()))
        )
        if has:
            return _recorded(op, inputs, keywords)
        if wanted:
            raise RuntimeError(
                f"Autograd has not been implemented for operator {op}: register impl_save_for_backward and "
                "impl_backward, or call it under torch.no_grad()"
            )
        with recording_off():
            return operator.below(inputs, keywords)

    return kernel


def _recorded(op: Any, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    operator = op._operator
    names = [a.name for a in op._schema.arguments]
    named: Any = namedtuple(f"{op._opname}_args", names)  # type: ignore[misc] # (names of a schema)
    leaves, structure = tree_flatten((inputs, keywords))
    shape: list[Any] = []

    def forward(ctx: Any, *flat: Any) -> Any:
        own, by_name = tree_unflatten(list(flat), structure)
        with recording_off():
            output = operator.below(own, by_name)
        arguments = named(*own, **by_name)
        saved, ctx.saved_structure = tree_flatten(op._get_impl("save_for_backward").func(arguments, output))
        ctx.places = [isinstance(one, Tensor) for one in saved]
        ctx.save_for_backward(*[one for one in saved if isinstance(one, Tensor)])
        ctx.others = [one for one in saved if not isinstance(one, Tensor)]
        ctx.kinds = tree_map(type, arguments._asdict())
        _mark(ctx, op, output)
        results, spec = tree_flatten(output)
        shape.append(spec)
        return tuple(results)

    def backward(ctx: Any, *grads: Any) -> Any:
        tensors, others = iter(ctx.saved_tensors), iter(ctx.others)
        saved = tree_unflatten([next(tensors if is_tensor else others) for is_tensor in ctx.places],
                               ctx.saved_structure)  # fmt: skip
        given = tree_unflatten(list(grads), shape[0])
        found = op._get_impl("backward").func(object(), saved, *(given if isinstance(given, tuple) else (given,)))
        _check(op, found, ctx.kinds)
        per_argument = [
            found[name] if name in found else tree_map(lambda _: None, ctx.kinds[name]) for name in names
        ]
        return tuple([grad for grads_of in per_argument for grad in _flat(grads_of)])

    made: Any = type(f"{op._opname}_customop", (Function,), {"forward": staticmethod(forward),
                                                        "backward": staticmethod(backward)})  # fmt: skip
    return tree_unflatten(list(made.apply(*leaves)), shape[0])


def _flat(grads: Any) -> list[Any]:
    return list(grads) if isinstance(grads, (list, tuple)) else [grads]


def _mark(ctx: Any, op: Any, output: Any) -> None:
    """Those results that have no gradients by what was said of them."""
    differentiable = op._output_differentiability
    if differentiable is None:
        return
    constant: list[Any] = []
    for index, (wanted, one) in enumerate(
        zip(differentiable, output if isinstance(output, tuple) else (output,), strict=True)
    ):
        if not isinstance(one, (Tensor, list)) and wanted:
            raise RuntimeError(
                f"With output_differentiability={differentiable}: at idx {index} there is an object of type "
                f"{type(one)} that is not a Tensor, which has no gradient"
            )
        if not wanted:
            constant += [tensor for tensor in tree_leaves(one) if isinstance(tensor, Tensor)]
    if constant:
        ctx.mark_non_differentiable(*constant)


def _check(op: Any, found: Any, kinds: dict[str, Any]) -> None:
    """Refuse what a formula may not return."""

    def refuse(what: str) -> None:
        raise RuntimeError(
            f"In the backward function defined for {op} at {op._get_impl('backward').location}, {what}"
        )

    if not isinstance(found, dict):
        refuse(f"expected the output of the backward function to be a dict but got {type(found)}")
    expected = {a.name for a in op._schema.arguments if a.type.startswith("Tensor")}
    if expected != found.keys():
        refuse(
            f"expected the returned grad_input dict to have keys {expected} but got {set(found)}: a gradient (or None) "
            "for each argument that may be a Tensor or several, and none for those of non-Tensor-like types"
        )
    for name, grad in found.items():
        kind = kinds[name]
        if isinstance(kind, list):
            if not isinstance(grad, (tuple, list)):
                refuse(f"for input '{name}' expected the grad_input dict to hold a list of gradients, not {type(grad)}")
            if len(grad) != len(kind):
                refuse(f"for input '{name}' expected the grad_input dict to hold a list of {len(kind)} gradients but "
                       f"got {len(grad)}")  # fmt: skip
            for index, (one, one_kind) in enumerate(zip(grad, kind, strict=True)):
                if one is not None and not isinstance(one, Tensor):
                    refuse(f"for input '{name}' expected a list of None or Tensor gradients but got object of "
                           f"{type(one)} at index {index}")  # fmt: skip
                if one is not None and not issubclass(one_kind, Tensor):
                    refuse(f"for input '{name}', got a Tensor as the gradient for the {index}-th value, which is not "
                           "a Tensor: expected None")  # fmt: skip
        elif grad is not None and not isinstance(grad, Tensor):
            refuse(f"got object of type {type(grad)} as the gradient for input '{name}', but expected the gradient to "
                   "be either None or a Tensor")  # fmt: skip
        elif grad is not None and not issubclass(kind, Tensor):
            refuse(f"got a Tensor as the gradient for input '{name}', which was not a Tensor: expected None")
