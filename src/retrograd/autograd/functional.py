"""Derivatives of functions: products with the Jacobian and the Hessian, and these matrices themselves.

Every function here takes ``func`` and its ``inputs`` (a Tensor or a tuple of Tensors; `func` may return either) and
works on tensors of its own: what is given is not changed, and without `create_graph` nothing that comes back has a
history.

`strict` raises where a result is zero only because some output does not depend on some input at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from ..core.late import operators as ops
from ..core.late import transforms
from ..core.state import local
from ..core.version_counter import version_counter
from ..tensor import Tensor, wrap
from . import forward_ad
from .forward_grad import has_fw_grad
from .grad_mode import enable_grad
from .run_backward import grad as run_grad
from .run_backward import gradients as run_gradients

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

STRATEGIES = ("forward-mode", "reverse-mode")

# ------------------------------------------------------------------------------------------------- what goes in and out


def _as_tuple(given: Any, what: str, function: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Was it a tuple, and the tuple."""
    if given.__class__ is Tensor:
        return False, (given,)
    is_tuple = isinstance(given, tuple)
    values = given if is_tuple else (given,)
    for position, value in enumerate(values):
        if not isinstance(value, Tensor):
            which = f"the value at index {position}" if is_tuple else f"the given {what}"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but {which} has type "
                f"{type(value)}."
            )
    return is_tuple, values


def _outputs(func: Callable, inputs: tuple, function: str, strict: bool) -> tuple[bool, tuple[Tensor, ...]]:
    """The function's outputs."""
    outputs = func(*inputs)
    is_tuple = isinstance(outputs, tuple)
    for position, output in enumerate(outputs if is_tuple else (outputs,)):
        if not isinstance(output, Tensor):
            which = f"the value at index {position}" if is_tuple else "the given outputs of the user-provided function"
            raise TypeError(
                f"The outputs of the user-provided function given to {function} must be either a Tensor or a tuple of "
                f"Tensors but {which} has type {type(output)}."
            )
    outputs = outputs if is_tuple else (outputs,)
    if strict:
        _require(outputs, "outputs")
    return is_tuple, outputs


def _require(tensors: Sequence[Tensor | None], what: str) -> None:
    """strict: everything that is differentiated must depend on something."""
    for position, tensor in enumerate(tensors):
        if tensor is None:
            raise RuntimeError(_INDEPENDENT["double_back" if what == "hessian" else "back"].format(position))
        if tensor.requires_grad:
            continue
        if what == "hessian":
            raise RuntimeError(
                "The hessian of the user-provided function with respect to input "
                f"{position} is independent of the input. This is not allowed in strict mode. You should ensure that "
                "your function is thrice differentiable and that the hessian depends on the inputs."
            )
        if what == "jacobian":
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided function with respect to "
                f"input {position} is independent of the input. This is not allowed in strict mode. You should ensure "
                "that your function is twice differentiable and that the jacobian depends on the inputs (this would be "
                "violated by a linear function for example)."
            )
        raise RuntimeError(
            f"Output {position} of the user-provided function does not require gradients. The outputs must be computed "
            "in a differentiable manner from the input when running in strict mode."
        )


def _single_scalar(outputs: tuple[Tensor, ...], is_tuple: bool, function: str) -> None:
    if is_tuple or len(outputs) != 1:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")


def _own(tensors: Sequence[Tensor], create_graph: bool, requires_grad: bool = True) -> tuple[Tensor, ...]:
    """Tensors to compute with: connected to the given ones if a graph is asked for, cut off from them if not."""
    if local.state.func_depth:
        cut = [tensor for tensor in tensors if not (create_graph and tensor.requires_grad)]
        dual = any(has_fw_grad(tensor) for tensor in cut)  # which is without its tangent then, with a graph or not
        if dual or any(tensor.requires_grad for tensor in cut):
            constant = "" if dual else " without create_graph=True"
            way = "" if dual else "pass create_graph=True, "
            raise RuntimeError(
                "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* "
                f"APIs) inside of a function being transformed by a functorch transform. What comes back{constant} is "
                f"a constant, whose derivative is zero: {way}use the functorch transforms (e.g. grad, vjp, jacrev, "
                "jacfwd, hessian), or give it x.detach() if that is what is wanted"
            )
    made = []
    for tensor in tensors:
        if create_graph and tensor.requires_grad:
            made.append(tensor.view_as(tensor))
        elif tensor.__class__ is Tensor and not requires_grad and tensor._grad_meta_ is None and tensor._edge_ is None:
            made.append(tensor)  # which has nothing to be cut off from
        else:
            own = _cut_off(tensor)
            made.append(own.requires_grad_() if requires_grad else own)
    return tuple(made)


def _cut_off(tensor: Tensor) -> Tensor:
    """`detach()`, which need not remember that it was called here; nor be called, where nobody sees it."""
    state = local.state
    if tensor.__class__ is not Tensor or state.interceptor is not None or state.function_modes:
        return tensor.detach()
    return wrap(tensor._numbers_, tensor._vc_ or version_counter(tensor))


def _result(tensors: Any, create_graph: bool) -> Any:
    """What is given back: without history unless a graph was asked for."""
    if create_graph:
        return tensors
    if isinstance(tensors, Tensor):
        return _cut_off(tensors)
    return tuple([_result(tensor, create_graph) for tensor in tensors])


def _unpack(values: Any, *were_tuples: bool) -> Any:
    """Nested tuples in the shape that the user gave: ``(x,)`` stays one, ``x`` does not become one."""
    if not were_tuples:
        return values
    if were_tuples[-1] and isinstance(values, list):
        return values if were_tuples[0] else values[0]
    inner = tuple([_unpack(value, *were_tuples[1:]) for value in values]) if len(were_tuples) > 1 else values
    return inner if were_tuples[0] else inner[0]


def _vector(v: Any, others: tuple[Tensor, ...], are_tuple: bool, function: str, create_graph: bool, what: str) -> tuple:
    """The vector of a product, checked against what it is multiplied with."""
    if v is None:
        if len(others) != 1 or others[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if the {what} a single Tensor with a single element.")
        return (others[0].new_ones(others[0].shape),)
    _, v = _as_tuple(v, "v", function)
    if len(others) != len(v):
        if are_tuple:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(others)} but got {len(v)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for position, (mine, other) in enumerate(zip(v, others, strict=True)):
        if mine._memory_.shape != other._memory_.shape:
            entry = f"Entry {position} in " if are_tuple else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {other.size()} but got {mine.size()}.")
    return _own(v, create_graph, requires_grad=False)


# ------------------------------------------------------------------------------------------------------ differentiation


def _gradients(outputs: Sequence, inputs: Sequence, vectors: Sequence, create_graph: bool) -> tuple:
    """The gradients, None for what does not depend on anything."""
    for output in outputs:
        if output is None or not output.requires_grad:
            pairs = [
                pair for pair in zip(outputs, vectors, strict=True) if pair[0] is not None and pair[0].requires_grad
            ]
            if not pairs:
                return (None,) * len(inputs)
            outputs, vectors = zip(*pairs, strict=True)
            break
    for tensor in (*outputs, *inputs):
        if tensor.__class__ is not Tensor or local.state.function_modes:  # a class or a mode that is to hear of `grad`
            return run_grad(outputs, inputs, vectors, True, create_graph, allow_unused=True)
    return tuple(run_gradients(outputs, inputs, vectors, True, create_graph))


#: What is independent of what when a gradient is missing, at the four places where one can be.
_INDEPENDENT = {
    "back": "The output of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "back_trick": (
        "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double "
        "backward trick to compute forward mode gradients. This is not allowed in strict mode."
    ),
    "double_back": (
        "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode."
    ),
    "double_back_trick": (
        "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. This is not "
        "allowed in strict mode as it prevents from using the double backward trick to replace forward mode AD."
    ),
}


def _filled(gradients: Sequence, like: Sequence[Tensor], stage: str, strict: bool, create_graph: bool) -> tuple:
    """`gradients` with zeros for None; with `strict`, an error instead."""
    for gradient in gradients:
        if gradient is None or strict:
            break
    else:
        return tuple(gradients)
    filled = []
    for position, (gradient, tensor) in enumerate(zip(gradients, like, strict=True)):
        if gradient is None:
            if strict:
                raise RuntimeError(_INDEPENDENT[stage].format(position))
            gradient = tensor.new_zeros(tensor.shape)
        elif strict and create_graph and not gradient.requires_grad:
            of = "hessian" if "double" in stage else "jacobian"
            raise RuntimeError(
                f"The {of} of the user-provided function is independent of input {position}. This is not allowed in "
                "strict mode when create_graph=True."
            )
        filled.append(gradient)
    return tuple(filled)


# ---------------------------------------------------------------------------------------------- products with Jacobians


def vjp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """``func(*inputs)`` and the product of `v` with its Jacobian, from one backward pass.

    >>> import retrograd as torch
    >>> x = torch.tensor([[1., 2.], [3., 4.]])
    >>> torch.autograd.functional.vjp(lambda x: x.exp().log().sum(dim=1), x, torch.tensor([1., 10.]))
    (tensor([3., 7.]), tensor([[ 1.,  1.],
            [10., 10.]]))
    """
    with enable_grad():
        is_inputs_tuple, inputs = _as_tuple(inputs, "inputs", "vjp")
        inputs = _own(inputs, create_graph)
        is_outputs_tuple, outputs = _outputs(func, inputs, "vjp", strict)
        what = "user-provided function returns"
        vector = _vector(v, outputs, is_outputs_tuple, "vjp", create_graph, what)
    with _recording(create_graph):
        product = _filled(_gradients(outputs, inputs, vector, create_graph), inputs, "back", strict, create_graph)
    outputs, product = _result(outputs, create_graph), _result(product, create_graph)
    return _unpack(outputs, is_outputs_tuple), _unpack(product, is_inputs_tuple)


def jvp(
    func: Callable,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
    strategy: str = "reverse-mode",
) -> tuple[Any, Any]:
    """``func(*inputs)`` and the product of its Jacobian with `v`.

    By default, as in torch, from two backward passes: the gradient of the gradient for the vector it was taken with.
    Under ``strategy="forward-mode"``, from one forward pass.

    >>> import retrograd as torch
    >>> x = torch.tensor([1., 2., 3.])
    >>> torch.autograd.functional.jvp(lambda x: (x * x).sum(), x, torch.ones(3))
    (tensor(14.), tensor(12.))
    """
    _check_strategy(strategy)
    if strategy == "forward-mode":
        return _forward_jvp(func, inputs, v, create_graph, strict)
    with enable_grad():
        is_inputs_tuple, inputs = _as_tuple(inputs, "inputs", "jvp")
        inputs = _own(inputs, create_graph)
        vector = _vector(v, inputs, is_inputs_tuple, "jvp", create_graph, "input to the user-provided function is")
        is_outputs_tuple, outputs = _outputs(func, inputs, "jvp", strict)
        product: Any = None if create_graph or strict else _swept(outputs, inputs, vector)
        if product is None:
            # The gradient is linear in the vector that it is taken with; its derivative for that vector is the
            # Jacobian.
            taken_with = tuple(output.new_zeros(output.shape).requires_grad_() for output in outputs)
            gradients = _gradients(outputs, inputs, taken_with, create_graph=True)
            gradients = tuple(gradients if not strict else _filled(gradients, inputs, "back", strict, False))
            if strict:
                _check_depends(gradients, create_graph)
    if product is None:
        with _recording(create_graph):
            product = _gradients(gradients, taken_with, vector, create_graph)
            product = _filled(product, outputs, "back_trick", strict, create_graph)
    outputs, product = _result(outputs, create_graph), _result(product, create_graph)
    return _unpack(outputs, is_outputs_tuple), _unpack(product, is_outputs_tuple)


def _swept(outputs: Sequence, inputs: Sequence, vectors: Sequence) -> tuple[Tensor, ...] | None:
    """The product of the Jacobian of recorded `outputs` with `vectors`, from one sweep over their graph.

    None where it cannot be swept over, or somebody is to see the passes that would be run instead.
    """
    state = local.state
    if state.observers or state.batch_levels or any(x.__class__ is not Tensor for x in (*inputs, *vectors)):
        return None
    found = transforms("sweep").tangents(outputs, inputs, vectors)
    if found is None or any(output is None or output._special_ is not None for output in outputs):
        return None
    return tuple(
        output.new_zeros(output.shape) if array is None else wrap(array)
        for output, array in zip(outputs, found, strict=True)
    )


def _has_symmetric_hessian(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> bool:
    """Is the derivative of the gradient sure to be symmetric, so that a product with it is the same from either side?

    It is of real numbers, if all nodes are the package's own, whose formulas are derivatives of one function.
    Somebody's own node may have another gradient, and a hook may change one.
    """
    if any(x.__class__ is not Tensor or x._memory_.dtype.kind != "f" for x in (*outputs, *inputs)):
        return False
    return transforms("rows").own_nodes(outputs) is not None


def _check_depends(gradients: Sequence[Tensor], create_graph: bool) -> None:
    if create_graph:
        for position, gradient in enumerate(gradients):
            if not gradient.requires_grad:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {position}. This is not "
                    "allowed in strict mode when create_graph=True."
                )


#: The mode as it is.
_AS_IT_IS = nullcontext()


def _recording(create_graph: bool) -> Any:
    return enable_grad() if create_graph else _AS_IT_IS


def _check_strategy(strategy: str, where: str = "") -> None:
    if strategy not in STRATEGIES:
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )


def _forward_jvp(func: Callable, inputs: Any, v: Any, create_graph: bool, strict: bool) -> tuple[Any, Any]:
    if strict:
        raise RuntimeError(
            'torch.autograd.functional.jvp: `strict=True` and `strategy="forward-mode"` are not supported together '
            '(yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
        )
    is_inputs_tuple, inputs = _as_tuple(inputs, "inputs", "jvp")
    inputs = _own(inputs, create_graph, requires_grad=False)
    vector = _vector(v, inputs, is_inputs_tuple, "jvp", create_graph, "input to the user-provided function is")
    is_outputs_tuple, outputs, product = _push(func, inputs, vector, "jvp")
    outputs, product = _result(outputs, create_graph), _result(product, create_graph)
    return _unpack(outputs, is_outputs_tuple), _unpack(product, is_outputs_tuple)


def _push(func: Callable, inputs: tuple, vectors: Sequence, function: str) -> tuple[bool, tuple, tuple]:
    """Outputs and tangents of the function where the inputs vary along `vectors`, of which some may be None."""
    with forward_ad.dual_level():
        duals = tuple(x if v is None else forward_ad.make_dual(x, v) for x, v in zip(inputs, vectors, strict=True))
        is_tuple, outputs = _outputs(func, duals, function, strict=False)
        pairs = [forward_ad.unpack_dual(output) for output in outputs]
        primals = tuple(pair.primal for pair in pairs)
        tangents = tuple(
            p.new_zeros(p.shape) if pair.tangent is None else pair.tangent for p, pair in zip(primals, pairs)
        )
    return is_tuple, primals, tangents


# ------------------------------------------------------------------------------------------------------------ Jacobians


def jacobian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian: for each output and each input, a Tensor of the output's size followed by the input's.

    `strategy`: one backward pass for each element of the outputs, or one forward pass for each of the inputs.
    With `vectorize`, all passes are one, over a batch (see `torch.vmap`). As in torch, forward mode has to be asked for
    with ``vectorize=True``, and gives lists where reverse mode gives tuples of tuples.

    >>> import retrograd as torch
    >>> torch.autograd.functional.jacobian(lambda x: x ** 2, torch.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    >>> torch.autograd.functional.jacobian(lambda x, y: x * y, (torch.tensor(3.), torch.tensor(4.)))
    (tensor(4.), tensor(3.))
    """
    _check_strategy(strategy)
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not '
                'supported together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
            )
        if strict:
            raise RuntimeError(
                'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported '
                'together (yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
            )
        if not vectorize:
            _as_tuple(inputs, "inputs", "jacobian")
            raise NotImplementedError(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
                "`vectorize=True`."
            )
        return _forward_jacobian(func, inputs)
    with enable_grad():
        is_inputs_tuple, inputs = _as_tuple(inputs, "inputs", "jacobian")
        inputs = _own(inputs, create_graph)
        is_outputs_tuple, outputs = _outputs(func, inputs, "jacobian", strict)
        if vectorize:
            if strict:
                raise RuntimeError(
                    "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported "
                    "together. Please either set `strict=False` or `vectorize=False`."
                )
            found = _all_rows(outputs, inputs, create_graph)
        else:
            at_once = None if create_graph or strict else _many_rows(outputs, inputs)
            found = at_once or tuple(_rows(outputs, i, inputs, create_graph, strict) for i in range(len(outputs)))
    return _unpack(_result(found, create_graph), is_outputs_tuple, is_inputs_tuple)


def _rows(outputs: tuple, which: int, inputs: tuple, create_graph: bool, strict: bool) -> tuple[Tensor, ...]:
    """The Jacobians of one output, from one backward pass per element."""
    output = outputs[which]
    columns: list[list[Tensor]] = [[] for _ in inputs]
    flat = output.reshape(-1)
    for element in range(output.numel()):
        gradients = _gradients((flat[element],), inputs, (None,), create_graph)
        for position, (column, gradient, tensor) in enumerate(zip(columns, gradients, inputs, strict=True)):
            if gradient is None:
                if strict:
                    raise RuntimeError(
                        f"Output {which} of the user-provided function is independent of input {position}. This is "
                        "not allowed in strict mode."
                    )
                gradient = tensor.new_zeros(tensor.shape)
            elif strict and create_graph and not gradient.requires_grad:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {position}. This is not "
                    "allowed in strict mode when create_graph=True."
                )
            column.append(gradient)
    return tuple(
        ops.stack(column).view(*output.size(), *tensor.size())
        if column
        else output.new_zeros((*output.size(), *tensor.size()))
        for column, tensor in zip(columns, inputs, strict=True)
    )


def _many_rows(outputs: tuple, inputs: tuple) -> tuple[tuple[Tensor, ...], ...] | None:
    """The Jacobians of all outputs from one pass, where that is the same as one for each element; None where not."""
    if sum(output.numel() for output in outputs) < 2 or not transforms("rows").can_be_many(outputs):
        return None
    state = local.state
    before, state.batch_fallback = state.batch_fallback, "quiet"
    try:
        return _all_rows(outputs, inputs, False)
    except RuntimeError:  # a formula that asks for the values of a gradient: each row may give it another
        return None
    finally:
        state.batch_fallback = before


def _all_rows(outputs: tuple, inputs: tuple, create_graph: bool) -> tuple[tuple[Tensor, ...], ...]:
    """The Jacobians of all outputs, from one batch of gradients: the rows of an identity matrix."""
    numels = tuple(output.numel() for output in outputs)
    bases = _construct_standard_basis_for(outputs, numels)
    pairs = [
        (output.reshape(-1), basis)
        for output, basis in zip(outputs, bases, strict=True)
        if output.requires_grad and len(basis)
    ]
    columns: tuple = (None,) * len(inputs)
    if pairs:
        columns = run_grad(
            [output for output, _ in pairs],
            inputs,
            [basis for _, basis in pairs],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
            is_grads_batched=True,
        )
    found, start = [], 0
    for output, n in zip(outputs, numels, strict=True):
        row = []
        for column, tensor in zip(columns, inputs, strict=True):
            size = (*output.size(), *tensor.size())
            row.append(tensor.new_zeros(size) if column is None else column[start : start + n].reshape(size))
        found.append(tuple(row))
        start += n
    return tuple(found)


def _construct_standard_basis_for(tensors: Sequence[Tensor], tensor_numels: Sequence[int]) -> tuple[Tensor, ...]:
    """An identity matrix of all elements of `tensors`, cut into the columns of each, with its dtype and device.

    >>> import retrograd as torch
    >>> _construct_standard_basis_for((torch.zeros(2), torch.zeros(())), (2, 1))
    (tensor([[1., 0.],
            [0., 1.],
            [0., 0.]]), tensor([[0.],
            [0.],
            [1.]]))
    """
    total, start = sum(tensor_numels), 0
    pieces = []
    for tensor, n in zip(tensors, tensor_numels, strict=True):
        piece = tensor.new_zeros((total, n))
        piece.diagonal(-start).fill_(1)
        pieces.append(piece)
        start += n
    return tuple(pieces)


def _forward_jacobian(func: Callable, inputs: Any) -> Any:
    """The same from forward passes over all elements of the inputs at once."""
    is_inputs_tuple, inputs = _as_tuple(inputs, "inputs", "jacobian")
    inputs = _own(inputs, False, requires_grad=False)
    numels = [tensor.numel() for tensor in inputs]
    seen: list[Any] = []

    def columns(directions: tuple) -> tuple:
        is_tuple, outputs, tangents = _push(func, inputs, directions, "jacobian")
        seen.append((is_tuple, [output.shape for output in outputs]))
        return tangents

    bases = _construct_standard_basis_for(inputs, numels)
    directions = [basis.view(-1, *tensor.shape) for basis, tensor in zip(bases, inputs, strict=True)]
    if sum(numels):
        all_columns = transforms("batched").batched_pass(sum(numels), directions, columns)
        is_outputs_tuple, shapes = seen[0]
    else:
        is_outputs_tuple, outputs = _outputs(func, inputs, "jacobian", strict=False)
        shapes, all_columns = [output.shape for output in outputs], tuple(o.new_zeros((0, *o.shape)) for o in outputs)
    found = []
    for shape, rows in zip(shapes, all_columns, strict=True):
        parts = rows.detach().movedim(0, -1).split(numels, -1)
        found.append([part.reshape(*shape, *tensor.shape) for part, tensor in zip(parts, inputs, strict=True)])
    return _unpack(found, is_outputs_tuple, is_inputs_tuple)


# ------------------------------------------------------------------------------------------------------------- Hessians


def hessian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function with one number as its result: the Jacobian of its Jacobian.

    >>> import retrograd as torch
    >>> torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    is_inputs_tuple, inputs = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in STRATEGIES:
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*given: Tensor) -> Tensor:
        is_tuple, outputs = _outputs(func, given, "hessian", strict)
        _single_scalar(outputs, is_tuple, "hessian")
        return outputs[0].reshape(())

    def gradient(*given: Tensor) -> tuple[Tensor, ...]:
        if outer_jacobian_strategy == "forward-mode":
            given = tuple(transforms("levels").variable(tensor, True) for tensor in given)
        found = jacobian(scalar, given, create_graph=True)
        if strict:
            _require(found, "jacobian")
        return found

    found = jacobian(
        gradient,
        inputs,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return _unpack(found, is_inputs_tuple, is_inputs_tuple)


def vhp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """``func(*inputs)`` and the product of `v` with its Hessian.

    >>> import retrograd as torch
    >>> x = torch.tensor([1., 2.])
    >>> torch.autograd.functional.vhp(lambda x: (x ** 3).sum(), x, torch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """``func(*inputs)`` and the product of its Hessian with `v`: `vhp` is the same for less: Hessians are symmetric.

    >>> import retrograd as torch
    >>> x = torch.tensor([1., 2.])
    >>> torch.autograd.functional.hvp(lambda x: (x ** 3).sum(), x, torch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(
    function: str, func: Callable, inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    with enable_grad():
        is_inputs_tuple, inputs = _as_tuple(inputs, "inputs", function)
        inputs = _own(inputs, create_graph)
        vector = _vector(v, inputs, is_inputs_tuple, function, create_graph, "input to the user-provided function is")
        is_outputs_tuple, outputs = _outputs(func, inputs, function, strict)
        _single_scalar(outputs, is_outputs_tuple, function)
        gradients = _gradients(outputs, inputs, (None,), create_graph=True)
        if strict:
            _require(gradients, "jacobian")
        from_the_left = function == "vhp" or (
            not create_graph and not strict and _has_symmetric_hessian(outputs, inputs)
        )
        if not from_the_left:
            # As in `jvp`: linear in what the second gradient is taken with.
            taken_with = tuple(tensor.new_zeros(tensor.shape).requires_grad_() for tensor in inputs)
            seconds = _gradients(gradients, inputs, taken_with, create_graph=True)
            if strict:
                _require(seconds, "hessian")
    with _recording(create_graph):
        if from_the_left:
            product = _gradients(gradients, inputs, vector, create_graph)
            product = _filled(product, inputs, "double_back", strict, create_graph)
        else:
            product = _gradients(seconds, taken_with, vector, create_graph)
            product = _filled(product, inputs, "double_back_trick", strict, create_graph)
    outputs, product = _result(outputs, create_graph), _result(product, create_graph)
    return _unpack(outputs, is_outputs_tuple), _unpack(product, is_inputs_tuple)
