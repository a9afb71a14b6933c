"""`grad`, `vjp`, `jvp`, `linearize`: functions that differentiate functions.

Each call makes variables of its own (levels.py), so that transforms nest: what an inner one differentiates is a
function of the outer one's variables, and its result has their history.  A result of the outermost has none, unless
what went into it has (a parameter that the function reads, an argument that requires grad), as with any operator.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..autograd.edge import gradient_edge
from ..autograd.forward_ad import dual_level, make_dual, unpack_dual
from ..autograd.forward_grad import has_fw_grad
from ..core.state import local, process
from ..ops import namespace as ops
from ..tensor import Tensor
from ..utils._pytree import tree_flatten, tree_unflatten
from .batched import BatchedTensor
from .captured import EscapedTangent, Guard, close, guarded
from .levels import gradients, plain_of, variable

Argnums = int | tuple[int, ...]


class transforming:
    """Inside of a transform: what `function` does is recorded, whatever is around it."""

    __slots__ = ("before", "first", "function", "guard", "outside")

    before: Any

    def __init__(self, function: Any = None) -> None:
        self.function: Any = function

    def __enter__(self) -> transforming:
        state = local.state
        self.guard: Guard | None = None if self.function is None else guarded(self.function)
        self.before = state.grad_enabled, state.func_depth, state.inference, state.new_vc, state.mutation_guard
        #: Is what happens here part of something that is recorded?
        self.outside: bool = state.grad_enabled is True
        #: The number of the first node that is made inside.
        self.first: int = state.sequence_nr
        state.grad_enabled, state.func_depth = True, state.func_depth + 1
        state.inference, state.new_vc = False, None
        if self.guard is not None:
            state.mutation_guard = self.guard
        return self

    def __exit__(self, *exc_info: object) -> None:
        state = local.state
        state.grad_enabled, state.func_depth, state.inference, state.new_vc, state.mutation_guard = self.before

    def reaches_outside(self, tensors: list[Tensor], variables: list[Tensor]) -> bool:
        """Does the history of `tensors` lead to anything but `variables` that have none themselves?"""
        own = {_accumulator(leaf) for leaf in map(plain_of, variables) if leaf._edge_ is None and leaf.is_leaf}
        own.add(None)
        nodes = [_accumulator(plain_of(tensor)) for tensor in tensors]
        first = self.first
        for node in nodes:  # grows while it is walked
            if node not in own:
                own.add(node)
                edges = node.next_edges
                if not edges or node.sequence_nr < first:
                    return True
                for edge in edges:
                    if edge is not None:
                        nodes.append(edge[0])
        return False


def _accumulator(tensor: Tensor) -> Any:
    """The node that the gradient of a tensor goes to."""
    edge = tensor._edge_ or gradient_edge(tensor)
    return None if edge is None else edge[0]


def _flat_tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, Tensor)]


def _released(tree: Any, inside: transforming, variables: list[Tensor]) -> Any:
    """What a function returned, without the history that ends with the transform."""
    leaves, spec = tree_flatten(tree)
    made = [
        leaf.detach()
        if isinstance(leaf, Tensor)
        and leaf.requires_grad
        and not (inside.outside and inside.reaches_outside([leaf], variables))
        else leaf
        for leaf in leaves
    ]
    return tree_unflatten(made, spec)


def _detached(tree: Any) -> Any:
    leaves, spec = tree_flatten(tree)
    return tree_unflatten([leaf.detach() if leaf.requires_grad else leaf for leaf in leaves], spec)


def _aux_tensors(aux: Any) -> None:
    for leaf in tree_flatten(aux)[0]:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}: aux has to be a tree of tensors")


def _checked_outputs(outputs: list[Any], call: str) -> None:
    """What a transformed function returned, taken apart: tensors, and one at least."""
    if not outputs or (len(outputs) == 1 and outputs[0] is None):
        raise RuntimeError(
            f"{call}: Expected f to be a function that has non-empty output (got output = "
            f"{None if outputs else 'a tree without leaves'})"
        )
    for one in outputs:
        if not isinstance(one, Tensor):
            raise RuntimeError(f"{call}: expected f(*primals) to return only tensors, got unsupported type {type(one)}")


def _tensors_alone(leaves: list[Any], what: str) -> None:
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(f"{what}, got {type(leaf).__name__}")


# ------------------------------------------------------------------------------------------------------------------ vjp


def _variables(leaves: list[Any], linked: bool) -> list[Tensor]:
    return [variable(leaf, linked) for leaf in leaves]


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``func(*primals)``, and a function from cotangents of the result to gradients of `primals`.

    With `has_aux`, `func` returns ``(output, aux)``, and `aux` is returned after both.

    >>> import retrograd as torch
    >>> y, back = torch.func.vjp(torch.sin, torch.zeros(2))
    >>> back(torch.tensor([1., 2.]))
    (tensor([1., 2.]),)
    """
    return vjp_of(func, primals, None, has_aux)


def vjp_of(
    func: Callable[..., Any], primals: tuple[Any, ...], argnums: Argnums | None, has_aux: bool, kwargs: Any = None,
    name: str = "vjp",
) -> Any:
    """`vjp` for the arguments `argnums` alone, all of them if None; `name` is what the user has called."""
    chosen: Any = primals if argnums is None else _chosen(primals, argnums)
    leaves, spec = tree_flatten(chosen)
    _tensors_alone(leaves, "vjp(f, *primals): expected the primals to be (trees of) Tensors")
    for leaf in leaves:
        _check_differentiable(leaf, "vjp")
    levels = local.state.batch_levels
    with transforming(func) as inside:
        variables = _variables(leaves, True)
        inputs = tree_unflatten(variables, spec)
        given_args = inputs if argnums is None else _replaced(primals, argnums, inputs)
        inside.guard.arguments = given_args, kwargs  # type: ignore[union-attr]
        output = func(*given_args, **(kwargs or {}))
        aux: Any = None
        if has_aux:
            output, aux = _with_aux(output, "vjp(f, *primals)")
            _aux_tensors(aux)
        outputs, output_spec = tree_flatten(output)
        _checked_outputs(outputs, "vjp(f, *primals)")
        linked = inside.reaches_outside(outputs, variables)
        result = _released(output, inside, variables) if linked and inside.outside else _detached(output)
        aux = _released(aux, inside, variables) if has_aux else None
    if not linked and not any(leaf.requires_grad for leaf in _flat_tensors(aux)):
        close([plain_of(one) for one in variables], name, func)

    def back(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, given_spec = tree_flatten(cotangents)
        if given_spec != output_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                "function. "
                f"cotangents: {given_spec}, primal output: {output_spec}"
            )
        _tensors_alone(given, "vjp_fn(cotangents): expected the cotangents to be Tensors")
        for one, its in zip(outputs, given, strict=True):
            if one._memory_.shape != its._memory_.shape:
                raise RuntimeError(
                    f"Mismatch in shape: a cotangent has a shape of {its.shape} and the output has a shape of "
                    f"{one.shape}."
                )
        recording = local.state.grad_enabled is True
        if create_graph is None:
            create_graph = recording and (linked or any(one.requires_grad for one in given))
        with transforming():
            found = gradients(outputs, variables, given, levels, retain_graph, create_graph)
        if not create_graph:
            found = [g.detach() if g.requires_grad else g for g in found]
        return tree_unflatten(found, spec)

    return (result, back, aux) if has_aux else (result, back)


def _check_differentiable(leaf: Tensor, name: str) -> None:
    if leaf._memory_.dtype.kind not in "fcV":
        raise RuntimeError(
            f"only Tensors of floating point dtype can require gradients: an input of {name} has the dtype "
            f"{leaf.dtype}. Convert it first, or leave it out of argnums"
        )


def _with_aux(output: Any, name: str) -> tuple[Any, Any]:
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True, but it is a "
            f"{type(output).__name__}" + (f" of {len(output)}" if isinstance(output, tuple) else "")
        )
    return output


# ----------------------------------------------------------------------------------------------------------------- grad


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of `func`, and what `func` gives: ``(grad, value)``, with `has_aux` ``(grad,
    (value, aux))``.

    >>> import retrograd as torch
    >>> torch.func.grad_and_value(lambda x: (x * x).sum())(torch.tensor([1., 2.]))
    (tensor([2., 4.]), tensor(5.))
    """

    @functools.wraps(func)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        found, value, aux = _grad_and_value(func, argnums, has_aux, args, kwargs)
        return (found, (value, aux)) if has_aux else (found, value)

    return differentiated


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of `func`, a function with one number as its result, for the arguments
    `argnums`.

    With `has_aux`, `func` returns ``(output, aux)``, and the gradient comes with `aux`.

    >>> import retrograd as torch
    >>> torch.func.grad(torch.sin)(torch.tensor(0.))
    tensor(1.)
    >>> torch.func.grad(torch.func.grad(lambda x: x ** 3))(torch.tensor(2.))
    tensor(12.)
    """

    @functools.wraps(func)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        found, _, aux = _grad_and_value(func, argnums, has_aux, args, kwargs)
        return (found, aux) if has_aux else found

    return differentiated


def _grad_and_value(
    func: Callable[..., Any], argnums: Argnums, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any, Any]:
    chosen = _chosen(args, argnums)
    leaves, spec = tree_flatten(chosen)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"Thing passed to transform API must be Tensor, got {type(leaf)}: make it one, or leave it out of "
                f"argnums ({argnums})"
            )
        _check_differentiable(leaf, "grad")
    levels = local.state.batch_levels
    with transforming(func) as inside:
        variables = _variables(leaves, inside.outside)
        given_args = _replaced(args, argnums, tree_unflatten(variables, spec))
        inside.guard.arguments = given_args, kwargs  # type: ignore[union-attr]
        output = func(*given_args, **kwargs)
        aux: Any = None
        if has_aux:
            output, aux = _with_aux(output, "grad_and_value(f)(*args)")
            _aux_tensors(aux)
        if not isinstance(output, Tensor):
            raise RuntimeError(
                f"grad_and_value(f)(*args): Expected f(*args){'[0]' * has_aux} to return a Tensor, got {type(output)}"
            )
        if output._memory_.ndim:
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                f"{output._memory_.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        if output._memory_.dtype.kind not in "fV":
            raise RuntimeError(
                f"grad can be implicitly created only for real scalar outputs but got {output.dtype}: the function has "
                "to return a real number"
            )
        linked = inside.outside and inside.reaches_outside([output], variables)
        found = gradients([output], variables, [None], levels, linked or has_aux, linked)
        if not linked:
            found = [g.detach() if g.requires_grad else g for g in found]
        value = output if linked else output.detach()
        if has_aux:
            aux = _released(aux, inside, variables)
    del output
    if not linked and not any(leaf.requires_grad for leaf in _flat_tensors(aux)):
        close([plain_of(one) for one in variables], "grad", func)
    return tree_unflatten(found, spec), value, aux


# -------------------------------------------------------------------------------------------------------------- argnums


def _valid_argnums(argnums: Any, count: int) -> Argnums:
    if isinstance(argnums, int) and not isinstance(argnums, bool):
        if not -count <= argnums < count:
            raise RuntimeError(f"Got argnum={argnums}, but only {count} positional inputs")
        return argnums % count
    if isinstance(argnums, tuple):
        if not argnums:
            raise RuntimeError("argnums must be non-empty")
        if not all(isinstance(n, int) for n in argnums):
            raise RuntimeError(f"argnums elements must be int, got: {argnums}")
        wrapped = tuple([_valid_argnums(n, count) for n in argnums])
        if len(set(wrapped)) != len(wrapped):
            raise RuntimeError(f"argnums elements must be unique, got {argnums}")
        return wrapped  # type: ignore[return-value]
    raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")


def _chosen(args: tuple[Any, ...], argnums: Argnums) -> Any:
    valid = _valid_argnums(argnums, len(args))
    return args[valid] if isinstance(valid, int) else tuple([args[n] for n in valid])


def _replaced(args: tuple[Any, ...], argnums: Argnums, values: Any) -> tuple[Any, ...]:
    """`args` with `values` in the places of `argnums`, and aliases in the others: what is written to those stays in
    the arguments, the history that it has inside does not."""
    valid = _valid_argnums(argnums, len(args))
    chosen = (valid,) if isinstance(valid, int) else valid
    result = [one if n in chosen else _alias(one) for n, one in enumerate(args)]
    if isinstance(valid, int):
        result[valid] = values
    else:
        for n, value in zip(valid, values, strict=True):
            result[n] = value
    return tuple(result)


def _alias(tree: Any) -> Any:
    """A tree with aliases of the tensors that have no history."""
    if isinstance(tree, Tensor):
        if tree.requires_grad or not (tree.__class__ is Tensor or tree.__class__ is BatchedTensor):
            return tree
        return tree if process.dual_levels and has_fw_grad(plain_of(tree)) else tree.detach()
    if isinstance(tree, (list, tuple, dict)):
        leaves, spec = tree_flatten(tree)
        return tree_unflatten([_alias(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves], spec)
    return tree


# ------------------------------------------------------------------------------------------------------------------ jvp


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """``func(*primals)``, and the derivative of it in the direction of `tangents`: forward mode.

    >>> import retrograd as torch
    >>> torch.func.jvp(lambda x: x ** 2, (torch.tensor(3.),), (torch.tensor(1.),))
    (tensor(9.), tensor(6.))
    """
    return jvp_of(func, primals, tangents, None, strict, has_aux)


def jvp_of(
    func: Callable[..., Any], primals: Any, tangents: Any, argnums: Argnums | None, strict: bool, has_aux: bool,
    kwargs: Any = None, name: str = "jvp",
) -> Any:
    """`jvp` for the arguments `argnums` alone; all of them if None."""
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals), "
            f"got {type(primals)}"
        )
    chosen: Any = primals if argnums is None else _chosen(primals, argnums)
    leaves, spec = tree_flatten(chosen)
    directions, direction_spec = tree_flatten(tangents)
    if spec != direction_spec:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, "
            "if "
            f"primals is a tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents "
            "with "
            f"structure {direction_spec}"
        )
    if not leaves:
        raise RuntimeError("jvp(f, primals, tangents): Expected at least one Tensor in primals, got none")
    for one, its in zip(leaves, directions, strict=True):
        for what, value in (("primals", one), ("tangents", its)):
            if not isinstance(value, Tensor):
                raise RuntimeError(
                    f"jvp(f, primals, tangents): Expected {what} to only contain Tensors, got unsupported type "
                    f"{type(value)}"
                )
        if one._memory_.shape != its._memory_.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
                f"not supported. In jvp(f, primals, tangents), a tangent has the shape {list(its.shape)}, and its "
                f"primal {list(one.shape)}"
            )
    state = local.state
    before = state.func_depth, state.inference, state.new_vc, state.fw_grad_enabled, state.mutation_guard
    state.func_depth, state.inference, state.new_vc, state.fw_grad_enabled = before[0] + 1, False, None, True
    state.mutation_guard = guard = guarded(func)
    try:
        with dual_level():
            process.dual_levels[-1].ending = EscapedTangent(name, func)
            duals = tree_unflatten([make_dual(one, its) for one, its in zip(leaves, directions, strict=True)], spec)
            guard.arguments = duals if argnums is None else _replaced(primals, argnums, duals), kwargs
            output = func(*guard.arguments[0], **(kwargs or {}))
            aux: Any = None
            if has_aux:
                output, aux = _with_aux(output, "jvp(f, primals, tangents)")
                _aux_tensors(aux)
                parts, aux_spec = tree_flatten(aux)
                aux = tree_unflatten([unpack_dual(v)[0] for v in parts], aux_spec)
            outputs, output_spec = tree_flatten(output)
            _checked_outputs(outputs, "jvp(f, primals, tangents)")
            pairs = [unpack_dual(one) for one in outputs]
            if strict and any(tangent is None for _, tangent in pairs):
                raise RuntimeError(
                    "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                    "allowed with strict=True."
                )
    finally:
        state.func_depth, state.inference, state.new_vc, state.fw_grad_enabled, state.mutation_guard = before
    found = [ops.zeros_like(primal) if tangent is None else tangent for primal, tangent in pairs]
    result = tree_unflatten([primal for primal, _ in pairs], output_spec), tree_unflatten(found, output_spec)
    return (*result, aux) if has_aux else result


# ------------------------------------------------------------------------------------------------------------ linearize


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """``func(*primals)``, and its derivative there: a function of tangents that does not run `func` again.

    >>> import retrograd as torch
    >>> y, forward = torch.func.linearize(lambda x: x ** 2, torch.tensor(3.))
    >>> forward(torch.tensor(1.)), forward(torch.tensor(2.))
    (tensor(6.), tensor(12.))
    """
    output, back = vjp_of(func, primals, None, False, None, "linearize")
    leaves, spec = tree_flatten(primals)
    outputs, output_spec = tree_flatten(output)
    linked = any(one.requires_grad for one in outputs)
    # What `back` gives is linear in its cotangents; the derivative of that, the other way round, is the derivative
    # here.
    dummies = tree_unflatten([ops.zeros_like(one) for one in outputs], output_spec)
    _, transposed = vjp(lambda cotangents: back(cotangents, create_graph=True), dummies)

    def forward(*tangents: Any) -> Any:
        given, given_spec = tree_flatten(tangents)
        if given_spec != spec:
            raise RuntimeError(
                "Expected the tangents to have the same structure as the primals: "
                f"{given_spec} is not compatible with {spec}"
            )
        for one, its in zip(leaves, given, strict=True):
            if not isinstance(its, Tensor) or one._memory_.shape != its._memory_.shape:
                raise RuntimeError(f"Expected a tangent of shape {list(one.shape)}, got {getattr(its, 'shape', its)}")
            if one._memory_.dtype != its._memory_.dtype:
                raise RuntimeError(f"Expected a tangent of dtype {one.dtype}, got {its.dtype}")
        # The graph that it runs over is its own; a result has a history where `func` or the tangents have one.
        recorded = linked or (local.state.grad_enabled is True and any(one.requires_grad for one in given))
        return transposed(tree_unflatten(given, spec), create_graph=recorded)[0]

    return output, forward


__all__ = ["grad", "grad_and_value", "jvp", "linearize", "vjp"]
