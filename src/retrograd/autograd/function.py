"""Custom functions: operations with a forward and a backward that the user writes.

A `Function` is never instantiated: its methods are static, and ``MyFn.apply(...)`` runs them (function_apply.py).
The `ctx` that they share is the node of the graph (function_ctx.py).
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from ..core.state import local
from ..tensor import Tensor
from .basic_nodes import Error
from .edge import collect_next_edges
from .function_apply import apply as _apply
from .function_ctx import BackwardCFunction, FunctionCtx
from .function_structure import take_apart
from .node import init_node, set_history

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]

F = TypeVar("F", bound=Callable[..., Any])

_ids = itertools.count()


class FunctionMeta(type):
    """Gives each Function its node class, ``MyFn._backward_cls``."""

    _backward_cls: type[BackwardCFunction]

    def __init__(cls, name: str, bases: tuple[Any, ...], attributes: dict[Any, Any]) -> None:
        super().__init__(name, bases, attributes)
        cls._backward_cls = type(
            name + "Backward",
            (BackwardCFunction,),
            {"_forward_cls": cls, "_autograd_function_id": next(_ids), "__module__": cls.__module__},
        )


def _legacy(name: str) -> Any:
    """An attribute of nodes that instances of Function had in the days of non-static forward methods."""

    def refuse(self: Any) -> NoReturn:
        """Raises: it is an attribute of the node, ``y.grad_fn``."""
        raise RuntimeError(
            f"Attribute '{name}' is invalid for this instance of {type(self).__name__}. Accessing this attribute "
            "directly on an instance of autograd.Function is a legacy access pattern that is no longer supported. "
            f"Functions are not instantiated: y = {type(self).__name__}.apply(x), and the attribute is on y.grad_fn"
        )

    return property(refuse)


class _SingleLevelFunction(FunctionCtx, metaclass=FunctionMeta):
    """The methods that a user writes."""

    #: Free saved tensors when ``ctx.saved_tensors`` is first read: ``backward`` then holds the only references to them.
    clear_saved_tensors_on_access = False
    #: Give ``backward`` its gradients as one list, ``backward(ctx, grads)``, from which it can drop them as it goes.
    boxed_grads_call = False

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The operation: ``forward(ctx, ...)``, or ``forward(...)`` beside a `setup_context`."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function: a @staticmethod forward(ctx, ...)"
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Where a ``forward`` without `ctx` has its tensors saved: after it has run, with all it got and gave."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any, **unused: Any) -> Any:  # (type checkers let subclasses name them)
        """The gradient of each argument of ``apply``, from the gradient of each output; None where there is none."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            f"backward mode AD ({ctx._forward_cls.__name__} has neither)."
        )

    #: Another name for backward; a Function has one of the two.
    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any, **unused: Any) -> Any:
        """The tangent of each output, from the tangent of each argument: forward mode."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD "
            f"({ctx._forward_cls.__name__} has none)."
        )


_no_setup_context = _SingleLevelFunction.setup_context


class Function(_SingleLevelFunction):
    """An operation of your own: subclass it, write ``forward`` and ``backward``, call ``apply``.

    >>> import retrograd as torch
    >>> class Exp(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         result = x.exp()
    ...         ctx.save_for_backward(result)
    ...         return result
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         result, = ctx.saved_tensors
    ...         return grad * result
    >>> x = torch.zeros(2, requires_grad=True)
    >>> y = Exp.apply(x)
    >>> y
    tensor([1., 1.], grad_fn=<ExpBackward>)
    >>> y.sum().backward(); x.grad
    tensor([1., 1.])

    Beyond torch, tensors may be nested in lists, tuples and dicts, and given by name.  Gradients come and go in the
    same nesting (None stands for a whole part without gradients).  Those of arguments given by name stand where the
    parameter stands and may be left out at the end; those of keyword-only parameters form a dict after all others.

    >>> class Mix(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, tensors, *, weight):
    ...         ctx.weight = weight
    ...         return {"sum": tensors["a"] + weight * tensors["b"]}
    ...     @staticmethod
    ...     def backward(ctx, grads):
    ...         return {"a": grads["sum"], "b": grads["sum"] * ctx.weight}, None
    >>> a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    >>> Mix.apply({"a": a, "b": b}, weight=torch.tensor(3.))["sum"].sum().backward()
    >>> a.grad, b.grad
    (tensor([1., 1.]), tensor([3., 3.]))
    """

    #: May `torch.vmap` of the function be derived from forward, setup_context, backward and jvp? Else see `vmap`.
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            f"function with static forward method: {type(self).__name__}.apply(...) instead of "
            f"{type(self).__name__}()(...)"
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """How the function runs within `torch.vmap`: to be overridden, unless `generate_vmap_rule` is set.

        `info` has the `batch_size` and the `randomness`, `in_dims` says which dimension of each of `args` counts the
        examples (None: it is the same for all). Returns the outputs and the dimension of each that does.

        >>> import retrograd as torch
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(x):
        ...         return x * 2
        ...     @staticmethod
        ...     def setup_context(ctx, inputs, output):
        ...         pass
        ...     @staticmethod
        ...     def vmap(info, in_dims, *args):
        ...         return Double.apply(*args), in_dims[0]
        >>> torch.vmap(Double.apply)(torch.ones(2))
        tensor([2., 2.])
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the function on `args`, and record it if one of them requires grad."""
        return _apply(cls, args, kwargs, cls.setup_context is not _no_setup_context)

    @staticmethod
    def _compiled_autograd_key(ctx: Any) -> tuple[Any, ...]:
        return (ctx._autograd_function_id,)

    _register_hook_dict = _legacy("_register_hook_dict")
    register_hook: Any = _legacy("register_hook")
    register_prehook: Any = _legacy("register_prehook")
    next_functions: Any = _legacy("next_functions")
    name: Any = _legacy("name")
    metadata: Any = _legacy("metadata")
    _sequence_nr = _legacy("_sequence_nr")
    _set_sequence_nr = _legacy("_set_sequence_nr")
    _input_metadata = _legacy("_input_metadata")


BackwardCFunction._unwritten = staticmethod(Function.backward)


def once_differentiable(fn: F) -> F:
    """For a ``backward`` that cannot be differentiated itself: it runs unrecorded, and differentiating it raises.

    >>> import retrograd as torch
    >>> from retrograd.autograd.function import once_differentiable
    >>> class Square(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     @once_differentiable
    ...     def backward(ctx, grad):
    ...         return torch.tensor(2 * grad.numpy() * ctx.saved_tensors[0].detach().numpy())
    >>> x = torch.tensor(3., requires_grad=True)
    >>> gradient, = torch.autograd.grad(Square.apply(x) * x, x, create_graph=True)
    >>> gradient.backward()
    Traceback (most recent call last):
    RuntimeError: trying to differentiate twice a function that was marked with @once_differentiable: ...
    """

    @functools.wraps(fn)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        state = local.state
        recording, state.grad_enabled = state.grad_enabled, False
        try:
            outputs = fn(ctx, *args, **kwargs)
        finally:
            state.grad_enabled = recording
        if not recording:
            return outputs
        given: list[Any] = []
        take_apart(args, given)
        if not any(isinstance(arg, Tensor) and arg.requires_grad for arg in given):
            return outputs
        return refuse_second_derivative(
            ctx,
            outputs,
            "a function that was marked with @once_differentiable: {}.backward is not itself differentiable. To get "
            "second derivatives, write it with operations on tensors alone and take the decorator away",
        )

    return backward  # type: ignore[return-value]


def refuse_second_derivative(ctx: Any, outputs: Any, what: str) -> Any:
    """The same values with a history that raises: `what` cannot be differentiated twice ({} is the function's name)."""
    leaves: list[Any] = []
    structure = take_apart(outputs, leaves)
    aliases = [_leaf_alias(leaf) for leaf in leaves]
    who = getattr(getattr(ctx, "_forward_cls", None), "__name__", "the function")
    node = Error("trying to differentiate twice " + what.format(who))
    init_node(node, tuple(collect_next_edges(alias)[0] if isinstance(alias, Tensor) else None for alias in aliases))
    for position, alias in enumerate(aliases):
        if isinstance(alias, Tensor):
            alias = aliases[position] = alias.detach()
            set_history(alias, node)
    return structure.build(aliases)


def _leaf_alias(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    alias = value.detach()
    return alias.requires_grad_() if alias._memory_.dtype.kind in "fcVW" else alias


class InplaceFunction(Function):
    """Only kept for old code: a `Function` that may work in place. Use `Function` and ``ctx.mark_dirty``."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Only kept for old code: a `Function` with nested arguments, which every `Function` may have."""

    @staticmethod
    def forward_extended(ctx: Any, *args: Any) -> Any:
        """What old code overrides instead of ``forward``."""
        raise NotImplementedError("write forward and backward: every Function takes nested lists, tuples and dicts")

    @staticmethod
    def backward_extended(ctx: Any, *grad_output: Any) -> Any:
        """What old code overrides instead of ``backward``."""
        raise NotImplementedError("write forward and backward: every Function takes nested lists, tuples and dicts")

    @classmethod
    def forward(cls, ctx: Any, *args: Any) -> Any:  # type: ignore[override]
        return cls.forward_extended(ctx, *args)

    @classmethod
    def backward(cls, ctx: Any, *grads: Any) -> Any:  # type: ignore[override]
        return cls.backward_extended(ctx, *grads)
