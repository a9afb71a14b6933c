"""``backward()`` and ``grad()``: what users call; arguments are checked here and handed to the engine.

Everything is checked before the engine starts, so a refused call has changed nothing.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, Literal, overload

from ..core.description import NoArray
from ..core.late import operators as ops
from ..core.late import transforms
from ..core.meta import AutogradMeta
from ..core.state import local
from ..kernels import ndarray, one_like, ones, zeros_like
from ..tensor import Tensor, autograd_attributes, wrap
from ..tensor.special import bare
from . import engine as engine_module
from .basic_nodes import Identity
from .edge import EdgeTuple, gradient_edge
from .engine import engine
from .explain import why_no_grad
from .graph import GradientEdge

TensorOrEdge = Tensor | GradientEdge


def backward(
    tensors: TensorOrEdge | Sequence[TensorOrEdge],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Tensor | Sequence[Tensor | None] | None = None,
    inputs: TensorOrEdge | Sequence[TensorOrEdge] | None = None,
) -> None:
    """Sum the gradients of `tensors` into the ``.grad`` of the leaves (or of `inputs` only).

    >>> import retrograd as torch
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> torch.autograd.backward([x.sum(), (x * x).sum()])
    >>> x.grad
    tensor([3., 5.])
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.", category=FutureWarning, stacklevel=2
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                "Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    keep_graph = create_graph if retain_graph is None else retain_graph
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
            "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
            "after use to break the cycle and avoid the leak.",
            UserWarning,
            stacklevel=2,
        )
    if inputs is None and isinstance(tensors, Tensor) and (grad_tensors is None or isinstance(grad_tensors, Tensor)):
        # loss.backward()
        root = tensors._edge_ or _root_edge(tensors, 0)
        first: Any = None
        if tensors.__class__ is Tensor:  # `make_grad` without its calls, and the Tensor around a 1
            array = tensors._numbers_
            if grad_tensors is None:
                if array.__class__ is ndarray and not array.shape and array.dtype.kind == "f":
                    first = one_like(array) if local.state.interceptor is None else None
            elif grad_tensors.__class__ is Tensor:
                given = grad_tensors._numbers_
                if given.shape == array.shape and given.dtype is array.dtype:
                    first = grad_tensors
        if first is None:
            first = make_grad(tensors, grad_tensors, 0)
        engine.execute((root,), (first,), keep_graph, create_graph, True, (), tensors)
        return
    outputs = _outputs(tensors)
    wanted: list[EdgeTuple] = []
    if inputs is not None:
        if not isinstance(inputs, (Tensor, GradientEdge)) and not hasattr(inputs, "__iter__"):
            raise TypeError(
                f"backward(): argument 'inputs' must be Tensors or GradientEdges, not {type(inputs).__name__}"
            )
        inputs = (inputs,) if isinstance(inputs, (Tensor, GradientEdge)) else tuple(inputs)
        if len(inputs) == 0:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    grads = make_grads(outputs, _as_tuple(grad_tensors, len(outputs)))
    roots = [_root_edge(output, i) for i, output in enumerate(outputs)]
    if inputs is not None:
        wanted = [_wanted_edge(t, retain=True) for t in inputs]
        for tensor in inputs:
            if isinstance(tensor, Tensor) and not tensor.is_leaf:
                tensor.retain_grad()
    engine.execute(roots, grads, keep_graph, create_graph, True, wanted, outputs)


# With `allow_unused`, and only then, a gradient may be None.
@overload
def grad(
    outputs: TensorOrEdge | Sequence[TensorOrEdge],
    inputs: TensorOrEdge | Sequence[TensorOrEdge],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = ...,
    retain_graph: bool | None = ...,
    create_graph: bool = ...,
    only_inputs: bool = ...,
    allow_unused: Literal[False] | None = ...,
    is_grads_batched: bool = ...,
    materialize_grads: bool = ...,
    *,
    is_outputs_batched: bool = ...,
) -> tuple[Tensor, ...]: ...
@overload
def grad(
    outputs: TensorOrEdge | Sequence[TensorOrEdge],
    inputs: TensorOrEdge | Sequence[TensorOrEdge],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = ...,
    retain_graph: bool | None = ...,
    create_graph: bool = ...,
    only_inputs: bool = ...,
    *,
    allow_unused: bool | None,
    is_grads_batched: bool = ...,
    materialize_grads: bool = ...,
    is_outputs_batched: bool = ...,
) -> tuple[Tensor | None, ...]: ...
def grad(
    outputs: TensorOrEdge | Sequence[TensorOrEdge],
    inputs: TensorOrEdge | Sequence[TensorOrEdge],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
    *,
    is_outputs_batched: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` with respect to `inputs`; ``.grad`` is left alone.

    With `is_grads_batched`, the first dimension of `grad_outputs` counts many of them, and that of the gradients as
    well. With `is_outputs_batched`, beyond torch, the first dimension of `outputs` counts samples, and each has a
    gradient of its own: per-sample gradients of a model as it is. See Note [Per-sample gradients] in
    func/per_sample.py.

    >>> import retrograd as torch
    >>> x = torch.tensor(2., requires_grad=True)
    >>> first, = torch.autograd.grad(x ** 3, x, create_graph=True)
    >>> torch.autograd.grad(first, x)
    (tensor(12.),)
    >>> w = torch.ones(2, requires_grad=True)
    >>> losses = (torch.tensor([[1., 2.], [3., 4.]]) @ w) ** 2  # one for each of two samples
    >>> torch.autograd.grad(losses, w, is_outputs_batched=True)
    (tensor([[ 6., 12.],
            [42., 56.]]),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    outputs = _outputs(outputs)
    inputs = (inputs,) if isinstance(inputs, (Tensor, GradientEdge)) else tuple(inputs)
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if len(inputs) == 0:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    given = _as_tuple(grad_outputs, len(outputs))
    keep_graph = create_graph if retain_graph is None else retain_graph
    if (is_outputs_batched or is_grads_batched) and not _are_batched(outputs, inputs):
        if is_outputs_batched:
            results = _grad_per_sample(outputs, inputs, given, keep_graph, create_graph or is_grads_batched)
            return _check_used(outputs, inputs, results, allow_unused, False, False)
        return _grad_batched(outputs, inputs, given, keep_graph, create_graph, allow_unused, materialize_grads)
    results = gradients(outputs, inputs, given, keep_graph, create_graph, is_grads_batched)
    if allow_unused and not materialize_grads:
        return tuple(results)
    return _check_used(outputs, inputs, results, allow_unused, materialize_grads, create_graph)


def gradients(
    outputs: Sequence,
    inputs: Sequence,
    given: Sequence,
    keep_graph: bool,
    create_graph: bool,
    is_grads_batched: bool = False,
) -> list[Any]:
    """`grad()` of tuples of what is asked for, as functional.py has them: a list, with None for what is not used."""
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if local.state.batch_levels and _are_batched(outputs, inputs):
        of_batched = transforms("levels").grad_of_batched
        return of_batched(outputs, inputs, given, keep_graph, create_graph, is_grads_batched)
    first = _plain_start(outputs[0], given[0]) if len(outputs) == len(given) == 1 else None
    grads = make_grads(outputs, given) if first is None else (first,)
    roots = [_root_edge(output, i) for i, output in enumerate(outputs)]
    wanted = [_wanted_edge(t) for t in inputs]
    results = engine.execute(roots, grads, keep_graph, create_graph, False, wanted, outputs)
    for position, tensor in enumerate(inputs):
        if tensor.__class__ is not Tensor and isinstance(tensor, Tensor) and tensor._special_ is not None:
            if results[position] is not None:
                results[position] = tensor._as_gradient_(results[position])  # type: ignore[attr-defined]
    return results


def _are_batched(outputs: Sequence, inputs: Sequence) -> bool:
    """Is one of them many examples at once, inside a vmap?"""
    return bool(local.state.batch_levels) and any(
        isinstance(t, Tensor) and t._special_ is not None and not t._needs_tensors_ for t in (*outputs, *inputs)  # type: ignore[attr-defined]
    )


def _plain_start(output: Any, grad: Any) -> Tensor | None:
    """`make_grad` of the usual case: a plain tensor with one that fits it, or a number; None for any other."""
    if output.__class__ is not Tensor:
        return None
    array = output._numbers_
    if grad is None:
        if array.shape == () and array.dtype.kind == "f" and local.state.interceptor is None:
            return wrap(one_like(array))
    elif grad.__class__ is Tensor:
        data = grad._numbers_
        if data.shape == array.shape and data.dtype is array.dtype:
            return grad
    return None


def _check_used(
    outputs: Sequence,
    inputs: Sequence,
    results: Sequence,
    allow_unused: bool,
    materialize_grads: bool,
    create_graph: bool,
) -> tuple:
    if not allow_unused:
        for position, result in enumerate(results):
            if result is None:
                given = inputs[position]
                why = f" {why_no_grad(given, outputs)}" if isinstance(given, Tensor) else ""
                raise RuntimeError(
                    f"The differentiated Tensor at index {position} appears to not have been used in the graph. Set "
                    f"allow_unused=True if this is the desired behavior.{why}"
                )
    if materialize_grads:
        for position, (given, result) in enumerate(zip(inputs, results, strict=True)):
            if result is None and isinstance(given, GradientEdge):
                raise RuntimeError(
                    "materialize_grads cannot be used when the given input is a GradientEdge, and the input at index "
                    f"{position} is one whose gradient is None"
                )
        results = [
            _zeros_like(given, create_graph) if result is None else result
            for given, result in zip(inputs, results, strict=True)
        ]
    return tuple(results)


def run_as_engine(
    tensors: Sequence[Any],
    grad_tensors: Sequence[Any],
    keep_graph: bool,
    create_graph: bool,
    inputs: Sequence[Any],
    allow_unreachable: bool,
    accumulate_grad: bool,
) -> tuple[Tensor | None, ...] | None:
    """`Engine.run_backward`: its arguments are given, and none of them is guessed."""
    for name, given in (("tensors", tensors), ("grad_tensors", grad_tensors), ("inputs", inputs)):
        if not isinstance(given, tuple):
            raise RuntimeError(f"{name} argument is expected to be a tuple, but got {type(given).__name__}")
    if not accumulate_grad and not inputs:
        raise RuntimeError("grad() called without inputs: name them, or have gradients accumulated in .grad")
    outputs = _outputs(tensors)
    grads = make_grads(outputs, _as_tuple(grad_tensors, len(outputs)))
    roots = [_root_edge(output, i) for i, output in enumerate(outputs)]
    wanted = [_wanted_edge(t, retain=accumulate_grad) for t in inputs]
    results = engine.execute(roots, grads, keep_graph, create_graph, accumulate_grad, wanted, outputs)
    if accumulate_grad:
        return None
    return _check_used(outputs, inputs, results, allow_unreachable, False, create_graph)


def _zeros_like(tensor: Tensor, requires_grad: bool) -> Tensor:
    if tensor._special_ is not None:
        return ops.zeros_like(tensor).requires_grad_(requires_grad)
    return wrap(zeros_like(tensor._numbers_)).requires_grad_(requires_grad)


def _grad_per_sample(outputs: Sequence, inputs: Sequence, given: tuple, keep: bool, refused: bool) -> Any:
    if refused:
        raise RuntimeError(
            "is_outputs_batched=True goes with neither create_graph=True nor is_grads_batched=True: use "
            "torch.vmap(torch.func.grad(...)), which composes"
        )
    for tensor in (*outputs, *inputs):
        if not isinstance(tensor, Tensor):
            raise RuntimeError("is_outputs_batched=True needs Tensors, not GradientEdges")
    for position, output in enumerate(outputs):
        _root_edge(output, position)
    for tensor in inputs:
        _wanted_edge(tensor)
    return transforms("per_sample").per_sample_gradients(outputs, inputs, given, keep)


def _grad_batched(
    outputs: Sequence, inputs: Sequence, given: tuple, keep: bool, create: bool, allow_unused: bool, materialize: bool
) -> tuple:
    """One pass for all rows of `grad_outputs`, as a batch: see Note [Batched tensors] in func/batched.py."""
    sizes = {g.shape[0] for g in given if g is not None}
    if len(sizes) != 1:
        raise RuntimeError("is_grads_batched=True needs grad_outputs that all have the same first dimension")
    for position, (output, g) in enumerate(zip(outputs, given, strict=True)):
        if g is not None and isinstance(output, Tensor) and g._memory_.shape[1:] != output._memory_.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. "
                "The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a "
                f"mismatch was detected: grad_output[{position}] has a shape of {g.shape} and output[{position}] has a "
                f"shape of {output.shape}. If you only want some tensors in `grad_output` to be considered batched, "
                "consider using vmap."
            )
    (size,) = sizes
    return transforms("batched").batched_pass(
        size,
        given,
        lambda rows: grad(
            outputs, inputs, rows, keep, create, allow_unused=allow_unused, materialize_grads=materialize
        ),
    )


# ------------------------------------------------------------------------------------------------------------- checks


def _outputs(tensors: Any) -> tuple:
    """What is to be differentiated, as a tuple."""
    outputs = (tensors,) if isinstance(tensors, (Tensor, GradientEdge)) else tuple(tensors)
    for position, output in enumerate(outputs):
        if not isinstance(output, (Tensor, GradientEdge)):
            raise AssertionError(
                f"Expected output to be a torch.Tensor or a GradientEdge, but output {position} is of type "
                f"{type(output).__name__}"
            )
    return outputs


def _as_tuple(grads: Any, number: int) -> tuple:
    if grads is None:
        return (None,) * number
    if not isinstance(grads, Tensor) and not hasattr(grads, "__iter__"):
        raise TypeError("gradients can be either Tensors or None, but got " + type(grads).__name__)
    given = (grads,) if isinstance(grads, Tensor) else tuple(grads)
    for grad in given:
        if grad is not None and not isinstance(grad, Tensor):
            raise TypeError("gradients can be either Tensors or None, but got " + type(grad).__name__)
    return given


def make_grads(outputs: Sequence[TensorOrEdge], grads: Sequence[Tensor | None]) -> list[Tensor]:
    """The gradients that the pass starts from."""
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    return [make_grad(output, grad, i) for i, (output, grad) in enumerate(zip(outputs, grads, strict=True))]


def make_grad(output: TensorOrEdge, grad: Tensor | None, position: int) -> Tensor:
    """The gradient of one output: as given, or 1 for a scalar."""
    if isinstance(output, Tensor):
        try:
            array = output._numbers_
            shape, np_dtype = array.shape, array.dtype
        except NoArray:
            own = output._root_gradient_(grad, position)  # type: ignore[attr-defined]
            if own is not NotImplemented:
                return own
            array = None
            shape, np_dtype = output._memory_.shape, output._memory_.dtype
    else:
        array = None
        shape, np_dtype, _ = output.node.input_metadata[output.output_nr]
    if grad is None:
        if shape and math.prod(shape) != 1:
            raise RuntimeError(
                f"grad can be implicitly created only for scalar outputs; output {position} has shape {list(shape)}: "
                "reduce it first, as in y.sum().backward(), or pass a gradient of its shape: y.backward(gradient)"
            )
        if np_dtype.kind not in "fV":
            raise RuntimeError(
                f"grad can be implicitly created only for real scalar outputs but got {_dtype_name(np_dtype)}"
            )
        if local.state.interceptor is not None and array is not None:
            return ops.ones_like(output)  # which modes are asked about
        return wrap(ones(shape, np_dtype) if array is None else one_like(array))
    data = bare(grad)
    if data.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{position}] has a shape of {grad.shape} and output[{position}] has a "
            f"shape of torch.Size({list(shape)})."
        )
    if (data.dtype.kind in "cW") != (np_dtype.kind in "cW"):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{position}] has a dtype of {grad.dtype} and output[{position}] has a dtype of "
            f"{_dtype_name(np_dtype)}."
        )
    return grad


def _calculate_shape(output: TensorOrEdge, grad: Tensor, is_grads_batched: bool) -> tuple[Any, Any]:
    """The shapes of an output and of a gradient for it, as messages show them; of strided nested tensors, tables."""
    if isinstance(output, GradientEdge):
        if is_grads_batched:
            raise RuntimeError("Batched grads are not supported with GradientEdge")
        return output.node._input_metadata[output.output_nr].shape, grad.shape
    tables = [getattr(tensor, "_nested_tensor_size", None) for tensor in (output, grad)]
    if tables[0] is not None and tables[1] is not None:
        if is_grads_batched:
            raise RuntimeError("Batched grads are not supported with Nested Tensor.")
        return tables[0](), tables[1]()
    return output.shape, grad.shape[1:] if is_grads_batched else grad.shape


def _dtype_name(np_dtype: Any) -> str:
    return f"torch.{np_dtype.name}"


def _root_edge(output: TensorOrEdge, position: int) -> EdgeTuple:
    """Where differentiating an output starts."""
    if not isinstance(output, Tensor):
        return (output.node, output.output_nr)
    edge = output._edge_ or gradient_edge(output)
    if edge is None or edge[0].is_sink:
        raise RuntimeError(
            f"element {position} of tensors does not require grad and does not have a grad_fn. {why_no_grad(output)}"
        )
    return edge


def _wanted_edge(tensor: TensorOrEdge, retain: bool = False) -> EdgeTuple:
    """Where the gradient of an input comes in."""
    if tensor.__class__ is Tensor:  # a leaf that a graph uses: the rest without its calls
        meta: Any = tensor._grad_meta_
        if tensor._edge_ is None and meta.__class__ is AutogradMeta and meta.requires_grad:
            reference = meta.grad_accumulator
            accumulator = None if reference is None else reference()
            if accumulator is not None:
                return (accumulator, 0)
    if isinstance(tensor, GradientEdge):
        return (tensor.node, tensor.output_nr)
    if not isinstance(tensor, Tensor):
        raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(tensor).__name__}")
    if not tensor.requires_grad:
        such = " (can't retain_grad on Tensor that has requires_grad=False)" if retain else ""
        raise RuntimeError(
            f"One of the differentiated Tensors does not require grad{such}. {why_no_grad(tensor)}"
        )
    meta = tensor._grad_meta_
    node = tensor.grad_fn
    if node is not None:
        return (node, tensor.output_nr)
    # A leaf that no living graph uses has no accumulator: its gradient is found nowhere.
    reference = meta.grad_accumulator
    node = None if reference is None else reference()
    return (Identity(), 0) if node is None else (node, 0)


autograd_attributes.run_backward = backward  # for Tensor.backward
engine_module.run_as_engine = run_as_engine  # for Engine.run_backward
