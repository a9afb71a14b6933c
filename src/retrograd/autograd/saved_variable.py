"""Saved variables: what a node keeps of the forward pass, and what it checks before it uses it.

Most saved tensors have never been written to and have no alias: their version counter is still None.  The wrapper
then puts the tensor itself into the node's slot, and `apply` reads it back after one test
(``tensor._vc is None``: still never written to).  Everything else is a `SavedVariable`, which remembers the version
at which it was saved; its own ``_vc`` is never None, so that the same test sends the reader here.

An output saved by its own node would keep itself alive in a circle (tensor, meta, node, tensor).  So for an output
the slot holds the bare array, and a second slot ``NAME_vc`` the version counter that it shares with the tensor.

When a node has run and the graph is not retained, its slots get a `Freed`, which knows which call did it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..tensor import INFERENCE, Tensor, VersionCounter, wrap
from . import where

if TYPE_CHECKING:
    from .node import Node


class SavedVariable:
    """A tensor saved together with the version it had."""

    __slots__ = ("is_output", "output_nr", "tensor", "version")

    #: Never None: see the module's docstring.
    _vc = True

    def __init__(self, tensor: Tensor, is_output: bool = False) -> None:
        if tensor._vc is INFERENCE:
            raise RuntimeError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
                "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and "
                "use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
            )
        self.version = tensor._version
        self.is_output = is_output and not tensor.is_leaf
        if self.is_output:
            # The values and the version counter, without the history that leads back to the node.
            alias = tensor.detach()
            self.output_nr = tensor.output_nr
            self.tensor = alias
        else:
            self.output_nr = 0
            self.tensor = tensor


class Freed:
    """Stands in a slot whose tensor was released; `where` is the backward call that released it."""

    __slots__ = ("where",)

    _vc = True
    version = True

    def __init__(self, location: where.Location | None) -> None:
        self.where = location


def save(tensor: Tensor) -> Tensor | SavedVariable:
    """What goes into the slot of a saved input."""
    return tensor if tensor._vc is None else SavedVariable(tensor)


def save_output(node: Any, name: str, tensor: Tensor) -> None:
    """Fill the two slots of a saved output (wrappers do this inline for results that are new)."""
    vc = tensor._vc
    if vc is None:
        vc = tensor._vc = VersionCounter()
    if vc.version == 0:
        setattr(node, name + "_", tensor._data)
        setattr(node, name + "_vc", vc)
    else:
        saved = SavedVariable(tensor, is_output=True)
        setattr(node, name + "_", saved)
        setattr(node, name + "_vc", saved)


# ------------------------------------------------------------------------------------------------------------ unpacking
# Called by nodes for whatever is not the fast case.


def unpack_array(node: Node, name: str, value: Any) -> Any:
    """The values of a saved input as an array (or the number that was saved in a tensor's place)."""
    if value.__class__ is Tensor or isinstance(value, Tensor):
        if value._version != 0:
            raise modified_error(node, name, value, 0)
        return value._data
    if isinstance(value, SavedVariable):
        return check_version(node, name, value)._data
    if isinstance(value, Freed):
        raise freed_error(node, value)
    return value


def unpack_tensor(node: Node, name: str, value: Any) -> Any:
    """A saved input as a Tensor with its history."""
    if value.__class__ is Tensor or isinstance(value, Tensor):
        if value._version != 0:
            raise modified_error(node, name, value, 0)
        return value
    if isinstance(value, SavedVariable):
        return _with_history(node, check_version(node, name, value), value)
    if isinstance(value, Freed):
        raise freed_error(node, value)
    return value


def unpack_output_array(node: Node, name: str, value: Any) -> Any:
    """A saved output as an array, when its version counter is no longer 0."""
    if isinstance(value, (SavedVariable, Freed)):
        return unpack_array(node, name, value)
    vc = getattr(node, name + "_vc")
    if vc.version:
        raise modified_error(node, name, wrap(value, vc), 0)
    return value


def unpack_output_tensor(node: Node, name: str, value: Any, output_nr: int = 0) -> Any:
    """A saved output as a Tensor whose grad_fn is the node that saved it."""
    if isinstance(value, (SavedVariable, Freed)):
        return unpack_tensor(node, name, value)
    vc = getattr(node, name + "_vc")
    result = wrap(value, vc)
    if vc.version:
        raise modified_error(node, name, result, 0)
    result._edge = (node, output_nr)
    return result


def _with_history(node: Node, tensor: Tensor, saved: SavedVariable) -> Tensor:
    if not saved.is_output:
        return tensor
    result = tensor.detach()
    result._edge = (node, saved.output_nr)
    return result


def check_version(node: Node, name: str, saved: SavedVariable) -> Tensor:
    tensor = saved.tensor
    if tensor._version != saved.version:
        raise modified_error(node, name, tensor, saved.version)
    return tensor


def saved_attribute(node: Any, name: str) -> Any:
    """What ``node._saved_NAME`` shows of a saved input: the Tensor, the number, or None if it was not saved."""
    try:
        value = getattr(node, name + "_")
    except AttributeError:
        return None
    return unpack_tensor(node, name, value)


def saved_output_attribute(node: Any, name: str, output_nr: int) -> Any:
    """What ``node._saved_result`` shows of a saved output."""
    try:
        value = getattr(node, name + "_")
    except AttributeError:
        return None
    return unpack_output_tensor(node, name, value, output_nr)


# --------------------------------------------------------------------------------------------------------------- errors


def modified_error(node: Node, name: str, tensor: Tensor, expected: int) -> RuntimeError:
    shape = list(tensor.shape)
    kind = f"[torch.{'' if tensor.device.type == 'cpu' else 'cuda.'}{tensor.type_name()} {shape}]"
    what = f", which is output {tensor.output_nr} of {tensor.grad_fn.name()}," if tensor.grad_fn is not None else ""
    vc = tensor._vc
    modified = f" It was modified at {vc.where}." if vc is not None and vc.where is not None else ""
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"{kind}{what} is at version {tensor._version}; expected version {expected} instead. "
        f"{node.name()} saved it as '{name}' for its gradient.{modified} "
        "Hint: write the modifying line out of place (x = x + y instead of x += y), or modify a clone of the tensor. "
        "Hint: enable anomaly detection to find the operation that failed to compute its gradient, "
        "with torch.autograd.set_detect_anomaly(True)."
    )


def freed_error(node: Node, freed: Freed) -> RuntimeError:
    by = f" They were freed by the backward pass started at {freed.where}." if freed.where is not None else ""
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        f"saved tensors after calling backward. The node is {node.name()}.{by}"
    )


# ----------------------------------------------------------------------------------------------------- lists of tensors


def save_list(tensors: Any) -> tuple:
    """The slot of a saved list of tensors."""
    return tuple(save(tensor) for tensor in tensors)


def unpack_list_arrays(node: Node, name: str, values: Any) -> list:
    if isinstance(values, Freed):
        raise freed_error(node, values)
    return [unpack_array(node, name, value) for value in values]


def unpack_list_tensors(node: Node, name: str, values: Any) -> list:
    if isinstance(values, Freed):
        raise freed_error(node, values)
    return [unpack_tensor(node, name, value) for value in values]


def saved_list_attribute(node: Any, name: str) -> tuple:
    """What ``node._saved_NAME`` shows of a saved list."""
    return tuple(unpack_list_tensors(node, name, getattr(node, name + "_")))
