"""What is told about a saved tensor that cannot be used: modified since, detached since, or freed already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .node import name_of
from .view_meta import forward_name

if TYPE_CHECKING:
    from ..tensor import Tensor
    from .saved_variable import Freed


def modified_error(node: Any, name: str, tensor: Tensor, expected: int) -> RuntimeError:
    """`node` saved `tensor` as `name` at version `expected`: names both sides, the saving one and the modifying one."""
    shape = list(tensor.shape)
    kind = f"[torch.{'' if tensor.device.type == 'cpu' else 'cuda.'}{tensor._type_name_()} {shape}]"
    try:
        grad_fn = tensor.grad_fn
    except RuntimeError:  # a view whose history the modification has made undefined
        grad_fn = None
    what = "" if grad_fn is None else f", which is output {tensor.output_nr} of {forward_name(grad_fn)},"
    write = "" if tensor._vc_ is None else tensor._vc_.last_write
    modified = f" It was last modified{write}." if write else ""
    saver = "" if node is None else f" {name_of(node)} saved it as '{name}' for its gradient{_forward_line(node)}."
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"{kind}{what} is at version {tensor._version}; expected version {expected} instead.{saver}{modified} "
        f"{_instead(getattr(tensor._vc_, 'operation', ''))} {_hint(node)}"
    )


def _hint(node: Any) -> str:
    if node is not None and _forward_line(node):
        return (
            "Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable "
            "in question was changed in there or anywhere later."
        )
    return (
        "Hint: enable anomaly detection to find the operation that failed to compute its gradient (and the line that "
        "saved the tensor), with torch.autograd.set_detect_anomaly(True)."
    )


def _forward_line(node: Any) -> str:
    """Where the node's operation ran, if anomaly mode has remembered it."""
    extras = node.extras
    traceback = None if extras is None else extras.metadata.get("traceback_")
    if not traceback:
        return ""
    line, _, source = traceback[-1].strip().partition("\n")
    return f" at {line.replace('File ', '', 1)}" + (f": {source.strip()}" if source else "")


def _instead(operation: str) -> str:
    """What to write in place of the operation that modified a saved tensor."""
    if operation == "__setitem__":
        return "Write to a copy of it (x = x.clone(), then x[...] = value)."
    if operation.endswith("_") and operation[:1].isalpha():
        instead = f"x = x.{operation[:-1]}(...) instead of x.{operation}(...)"
        return f"Write it out of place ({instead}), or modify a clone of it."
    return "Write the modifying line out of place (x = x + y instead of x += y), or modify a clone of the tensor."


def detached_error() -> RuntimeError:
    return RuntimeError(
        "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is not supported, "
        "please use out-of-place `.detach()` instead: x = x.detach()"
    )


def freed_error(node: Any, freed: Freed) -> RuntimeError:
    escaped = None if node is None else _escaped(node)
    if escaped is not None:
        return escaped
    by = f" They were freed by the backward pass started at {freed.where}." if freed.where is not None else ""
    which = "" if node is None else f" The node is {name_of(node)}."
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        f"saved tensors after calling backward.{which}{by}"
    )


def _escaped(node: Any) -> RuntimeError | None:
    """What is to say of a node that leads to the variable of a transform (func/captured.py) that has returned."""
    seen, todo = {node}, [node]
    while todo:
        one = todo.pop()
        if hasattr(one, "escaped"):
            return one.escaped()
        for edge in one.next_edges:
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                todo.append(edge[0])
    return None
