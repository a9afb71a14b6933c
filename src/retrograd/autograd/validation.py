"""What the engine does to a gradient before the next node gets it: shape, dtype and device as that node expects.

Formulas do not undo broadcasting: the gradient of ``x`` in ``x + y`` is simply ``grad``, and is summed down to
the shape of ``x`` here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy import asarray, generic, ndarray

from .. import kernels
from ..core.description import Description
from ..core.devices import device_of_array_class
from ..tensor.special import bare, boxed
from .node import Node, name_of

if TYPE_CHECKING:
    from .edge import EdgeTuple


def is_expandable_to(shape: tuple[int, ...], larger: tuple[int, ...]) -> bool:
    """Does `shape` broadcast to `larger`?"""
    if not shape:
        return True
    more = len(larger) - len(shape)
    if more < 0:
        return False
    return larger[more:] == shape or all([a == b or a == 1 for a, b in zip(shape, larger[more:], strict=True)])


def validate_array(grad: Any, edge: EdgeTuple, node: Node, position: int) -> Any:
    """`grad`, which `node` gave in this position, as the node at the end of `edge` asks for it."""
    successor, input_nr = edge
    array_class: Any = successor.array_class  # None where there are several inputs
    if grad.__class__ is array_class:
        if grad.shape == successor.shape and grad.dtype is successor.dtype:
            return grad
    elif array_class is ndarray and isinstance(grad, generic):  # what NumPy's operators make of 0-d arrays
        grad = asarray(grad)
        if successor.shape == () and grad.dtype is successor.dtype:
            return grad
    shape: Any
    if array_class is None:
        shape, np_dtype, array_class = successor.input_metadata[input_nr]
    else:
        shape, np_dtype = successor.shape, successor.dtype
    if grad.__class__ is not array_class:
        if isinstance(grad, Description) or issubclass(array_class, Description):
            return bare(_validate_special(boxed(grad), shape, np_dtype, array_class, node, position))
        # An operator on 0-d arrays gives the library's scalar.
        grad = kernels.as_array(grad)
        if grad.__class__ is not array_class:
            grad = _on_device(grad, shape, array_class, node, position)
    if grad.shape != shape:
        if isinstance(grad, Description):
            return bare(_validate_special(boxed(grad), shape, np_dtype, array_class, node, position))
        _check_expandable(grad.shape, shape, node, position)
        grad = kernels.sum_to_size(grad, shape)
    if np_dtype is not None and grad.dtype is not np_dtype and grad.dtype != np_dtype:
        grad = kernels.to_dtype(grad, np_dtype)
    return grad


def validate_tensor(grad: Any, edge: EdgeTuple, node: Node, position: int) -> Any:
    """The same for a Tensor, by operations that are recorded."""
    data: Any = bare(grad)
    successor, input_nr = edge
    array_class: Any = successor.array_class
    if data.__class__ is array_class and data.shape == successor.shape and data.dtype is successor.dtype:
        return grad
    shape, np_dtype, array_class = successor.input_metadata[input_nr]
    if isinstance(data, Description) or issubclass(array_class, Description):
        return _validate_special(grad, shape, np_dtype, array_class, node, position)
    if data.__class__ is not array_class:
        grad = _tensor_on_device(grad, shape, array_class, node, position)
        data = bare(grad)
    if data.shape != shape:
        _check_expandable(data.shape, shape, node, position)
        grad = grad.sum_to_size(shape)
    if np_dtype is not None and data.dtype is not np_dtype and data.dtype != np_dtype:
        grad = grad.real if data.dtype.kind in "cW" and np_dtype.kind not in "cW" else grad
        grad = grad.to(np_dtype)
    return grad


def _validate_special(
    grad: Any, shape: tuple[int, ...], np_dtype: Any, array_class: type, node: Node, position: int
) -> Any:
    """The same where the gradient, or the tensor that it is the gradient of, is special."""
    expected = getattr(array_class, "layout_name", "Strided")
    got = getattr(grad._memory_, "layout_name", "Strided")
    if got not in ("Strided", "Sparse", expected):  # of these two, any tensor may have gradients
        raise RuntimeError(
            f"Function {name_of(node)} returned an invalid gradient at index {position} - expected layout {expected} "
            f"but got {got}"
        )
    if grad._memory_.shape != shape:
        _check_expandable(grad._memory_.shape, shape, node, position)
        grad = grad.sum_to_size(shape)
    if np_dtype is not None and grad._memory_.dtype != np_dtype:
        grad = grad.real if grad._memory_.dtype.kind == "c" and np_dtype.kind != "c" else grad
        grad = grad.to(np_dtype)
    return grad


def _on_device(grad: Any, shape: tuple[int, ...], array_class: type, node: Node, index: int) -> Any:
    """A gradient whose class is not the expected one: of another stream of the device, or that of a 0-d tensor, which
    may be on another device than the tensors that it met; else it is wrong."""
    place, expected = getattr(grad, "place", None), getattr(array_class, "place", None)
    if place is expected and (place is not None or _is_of(grad, array_class)):
        return grad
    if shape == () and (place is None or expected is None) and place is not expected:
        _check_expandable(grad.shape, shape, node, index)
        grad = kernels.sum_to_size(grad, shape)
        return grad.get() if expected is None else expected.from_host(grad)
    raise _wrong_device(grad, array_class, node, index)


def _tensor_on_device(grad: Any, shape: tuple[int, ...], array_class: type, node: Node, index: int) -> Any:
    """The same for a Tensor."""
    place, expected = getattr(bare(grad), "place", None), getattr(array_class, "place", None)
    if place is expected and (place is not None or _is_of(bare(grad), array_class)):
        return grad
    if shape == () and (place is None or expected is None) and place is not expected:
        return grad.sum_to_size(shape).to("cpu" if expected is None else expected.device)
    raise _wrong_device(bare(grad), array_class, node, index)


def _is_of(grad: Any, array_class: type) -> bool:
    """Are both of one device? Arrays of a leaf are recorded ones while another thread captures a step with it."""
    return device_of_array_class(grad.__class__) == device_of_array_class(array_class)


def _wrong_device(grad: Any, array_class: type, node: Node, index: int) -> RuntimeError:
    return RuntimeError(
        f"Function {name_of(node)} returned an invalid gradient at index {index} - "
        f"expected device {device_of_array_class(array_class)} but got {device_of_array_class(grad.__class__)}"
    )


def _check_expandable(got: tuple[int, ...], expected: tuple[int, ...], node: Node, index: int) -> None:
    if not is_expandable_to(expected, got):
        raise RuntimeError(
            f"Function {name_of(node)} returned an invalid gradient at index {index} - "
            f"got {list(got)} but expected shape compatible with {list(expected)}"
        )
