"""Saved variables: what a node keeps of the forward pass, and what it checks before it uses it.

Most saved tensors have never been written to and have no alias: their version counter is still None.  The wrapper
then puts the tensor itself into the node's slot, and `apply` reads it back after one test
(``tensor._vc_ is None``: still never written to).  So does one that has an alias and was not written to either; whoever
reads that sees a version counter, and looks whether it still is at 0.  Everything else is a `SavedVariable`, which
remembers the version at which it was saved; its own ``_vc_`` is never None, so that the same test sends readers here.

An output saved by its own node would keep itself alive in a circle (tensor, node, tensor).  So for an output the slot
holds the bare array, and a second slot ``NAME_vc`` the version counter that it shares with the tensor.

When a node has run and the graph is not retained, its slots get a `Freed`, which knows which call did it.

Hooks (`SavedVariable.register_hooks`, saved_tensors_hooks.py) replace the tensor by whatever the pack hook made of it;
the unpack hook gives it back, and it then gets the history that the original had.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import kernels
from ..core.meta import materialize_autograd_meta
from ..core.state import local
from ..core.version_counter import INFERENCE, VersionCounter, new_version_counter, version_counter
from ..core.where import Location
from ..kernels import ndarray
from ..tensor import Tensor, wrap
from ..tensor.special import bare, boxed
from .edge import gradient_edge
from .saved_variable_errors import detached_error, freed_error, modified_error
from .view_meta import view_edge

if TYPE_CHECKING:
    from types import CodeType

    from .forward_grad import ForwardGrad
    from .node import Node


class SavedVariable:
    """A tensor saved together with the version it had; users see it as ``node._raw_saved_NAME``.

    >>> import retrograd as torch
    >>> x = torch.tensor([2., 3.], requires_grad=True)
    >>> y = x * x
    >>> y.grad_fn._raw_saved_self.register_hooks(lambda t: t.numpy(), torch.from_numpy)
    >>> y.sum().backward(); x.grad
    tensor([4., 6.])
    """

    __slots__ = (
        "edge",
        "fw_grad",
        "is_leaf",
        "is_output",
        "node",
        "output_nr",
        "owner",
        "packed",
        "tensor",
        "unpack_hook",
        "version",
    )

    #: Never None: see the module's docstring.
    _vc_ = True

    tensor: Tensor | None
    version: int
    #: What the hooks need to give an unpacked tensor its history back.
    edge: Any
    unpack_hook: Callable[[Any], Tensor] | None

    def __init__(self, tensor: Tensor | type[Any] | None = object, is_output: bool = False) -> None:
        if tensor is object:
            raise RuntimeError(
                "Trying to create a SavedTensor object from Python is forbidden. They are made by operators that save "
                "tensors for their gradient: look at y.grad_fn._raw_saved_self"
            )
        self.unpack_hook = None
        self.packed: Any = None
        self.edge = None
        #: The tangents of an output, or of what the hooks packed (forward_grad.py); any other tensor has its own.
        self.fw_grad: ForwardGrad | None = None
        self.node: Any = None
        #: The node (weakly) and the slot of it that this is in, if users have seen it.
        self.owner: tuple[weakref.ref[Any], str] | None = None
        self.output_nr: int = 0
        self.is_output: bool = False
        self.is_leaf: bool = True
        self.version: int = 0
        self.tensor: Tensor | None = None
        if tensor is None:
            return
        assert isinstance(tensor, Tensor)
        vc = tensor._vc_
        if vc is INFERENCE:
            raise RuntimeError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode "
                "in computation tracked by autograd. To work around this, you can make a clone to get a normal tensor "
                "and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
            )
        if vc is not None:
            self.version = vc.version
        history = _history(tensor)
        self.is_leaf = history is None
        self.is_output = is_output and history is not None
        if self.is_output:
            # The values and the version counter, without the history that leads back to the node.
            self.output_nr = tensor.output_nr
            self.tensor = tensor.detach()
            meta: Any = tensor._grad_meta_
            self.fw_grad = None if meta is None else meta.fw_grad
        else:
            self.tensor = tensor

    # ------------------------------------------------------------------------------------------------------- hooks

    def register_hooks(self, pack_hook: Any = None, unpack_hook: Any = None) -> None:
        """Keep ``pack_hook(tensor)`` instead of the tensor; ``unpack_hook`` of that gives it back."""
        if not callable(pack_hook) or not callable(unpack_hook):
            raise TypeError(
                "register_hooks(): incompatible function arguments: it takes a pack hook and an unpack hook, both "
                "functions of one argument"
            )
        if self._is_freed():
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the "
                "graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need "
                "to backward through the graph a second time or if you need to access saved variables after calling "
                "backward."
            )
        if self.unpack_hook is not None:
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set.")
        if self.tensor is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        self.pack(pack_hook, unpack_hook, self.tensor if self.is_output else self.tensor.detach())

    def _is_freed(self) -> bool:
        node = None if self.owner is None else self.owner[0]()
        return isinstance(self.node, Freed) or (node is not None and getattr(node, self.owner[1]) is not self)  # type: ignore[index]

    def pack(self, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any], tensor: Tensor) -> None:
        """Hand `tensor` to the pack hook and keep what it makes of it, and the history of the original."""
        original: Any = self.tensor
        vc = tensor._vc_ or version_counter(tensor)
        version = vc.version
        state = local.state
        before, state.grad_enabled = state.grad_enabled, False
        try:
            packed = pack_hook(tensor)
        finally:
            state.grad_enabled = before
        if packed is tensor and self.is_output:
            packed = tensor.detach()  # without the history that leads back to the node
        if vc.version != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can "
                "not be modified by in-place operations as this can lead to unexpected side-effects. Please open an "
                "issue if you need to perform in-place operations on the input to a pack hook."
            )
        if not self.is_output:
            self.edge = gradient_edge(original)
            self.fw_grad = None if original._grad_meta_ is None else original._grad_meta_.fw_grad
        self.packed, self.unpack_hook, self.tensor = packed, unpack_hook, None

    @property
    def data(self) -> Any:
        """What is kept: the tensor, or what the pack hook made of it."""
        return self.packed if self.unpack_hook is not None else self.tensor

    # ---------------------------------------------------------------------------------------------------- unpacking

    def unpack(self, saved_for: Any = None, name: str = "tensor") -> Tensor | None:
        """The tensor, with the history it had when it was saved. `saved_for`: the node that saved it."""
        saved_for = self.node if saved_for is None else saved_for
        if isinstance(saved_for, Freed):
            raise freed_error(None, saved_for)
        if self.unpack_hook is not None:
            return self._unpack_packed(saved_for)
        tensor = self.tensor
        if tensor is None:
            return None
        if tensor._version != self.version:
            raise modified_error(saved_for, name, tensor, self.version)
        if not self.is_output:
            if not self.is_leaf and _history(tensor) is None:
                raise detached_error()
            return tensor
        result = tensor.detach()
        result._edge_ = (saved_for, self.output_nr)
        if self.fw_grad is not None:
            materialize_autograd_meta(result).fw_grad = self.fw_grad.copy()
        return result

    def from_hook(self) -> Tensor:
        """What the unpack hook makes of what is packed, without the history of the original."""
        data = self.unpack_hook(self.packed)  # type: ignore[misc]
        if not isinstance(data, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(data)}"
            )
        return data

    def _unpack_packed(self, saved_for: Any) -> Tensor:
        data = self.from_hook()
        edge = (saved_for, self.output_nr) if self.is_output else self.edge
        if edge is None and self.fw_grad is None:
            return data
        result = data.detach()
        if self.fw_grad is not None:
            materialize_autograd_meta(result).fw_grad = self.fw_grad.copy()
        if edge is None:
            return result
        if self.is_leaf:
            # Gradients of the unpacked leaf go where those of the original go.
            result.requires_grad_()
            result._grad_meta_.grad_accumulator = weakref.ref(edge[0])  # type: ignore[union-attr]
        else:
            result._edge_ = edge
        return result


def _history(tensor: Tensor) -> Any:
    """The gradient edge of a non-leaf: `Tensor._history_`, which has to look for the function first."""
    edge = tensor._edge_
    if edge is None:
        meta: Any = tensor._grad_meta_
        if meta is not None and meta.is_view:
            return view_edge(tensor)
    return edge


# Users know it by this name: a saved *tensor*, whatever keeps it.
SavedVariable.__name__ = SavedVariable.__qualname__ = "SavedTensor"


class SavedNumber(SavedVariable):
    """A number in the place of a tensor, as hooks and users see it: a tensor without dimensions.

    The node computes with numbers, which adapt to the dtype of what they meet.
    """

    __slots__ = ()

    def unpack(self, saved_for: Any = None, name: str = "tensor") -> Any:
        return self.shown(saved_for, name).item()

    def shown(self, saved_for: Any, name: str) -> Any:
        """The tensor."""
        return super().unpack(saved_for, name)


SavedNumber.__name__ = SavedNumber.__qualname__ = "SavedTensor"


class Freed:
    """Stands in a slot whose tensor was released; `call` is the user's call of backward() that released it."""

    __slots__ = ("call",)

    _vc_ = True
    version = True

    call: tuple[CodeType, int] | None

    @property
    def where(self) -> Location | None:
        """The line of that call."""
        return None if self.call is None else Location(*self.call)


def freed_by(call: tuple[CodeType, int] | None) -> Freed:
    """What a pass leaves in the slots that it empties (by a function, which takes half the time of a constructor)."""
    freed = Freed()
    freed.call = call
    return freed


class _Slow:
    """In the slot ``NAME_vc`` of a saved output: the other slot holds a SavedVariable."""

    version = True


SLOW = _Slow()


def save_variable(tensor: Tensor | None, is_output: bool = False) -> SavedVariable:
    """Save a tensor, through the thread's default hooks if it has any: for custom functions."""
    saved = SavedVariable(tensor, is_output)
    hooks = local.state.saved_tensors_hooks
    if hooks and not isinstance(hooks, str) and tensor is not None:
        saved.pack(*hooks[-1], tensor)
    return saved


def save(tensor: Tensor) -> Tensor | SavedVariable:
    """What goes into the slot of a saved input: the tensor itself while it is at version 0.

    (One that was detached in place is told by its mark from those that are so after they were saved; it is without
    history from the start, and a SavedVariable knows that. A view cannot be.)
    """
    vc = tensor._vc_
    if vc is not None:
        meta = tensor._grad_meta_
        if vc is INFERENCE or vc.version or (meta is not None and not meta.is_view and meta.detached):
            return SavedVariable(tensor)
    return tensor


def save_output(node: Any, name: str, tensor: Tensor) -> None:
    """Fill the two slots of a saved output (wrappers do this inline for results that are new)."""
    vc = tensor._vc_
    if vc is None:
        vc = tensor._vc_ = new_version_counter()
    if vc.version == 0:
        setattr(node, name + "_", bare(tensor))
        setattr(node, name + "_vc", vc)
    else:
        setattr(node, name + "_", SavedVariable(tensor, is_output=True))
        setattr(node, name + "_vc", SLOW)
    state = local.state
    if state.saved_tensors_hooks:
        pack_before_write(state, node)


# ------------------------------------------------------------------------------------------------------------ unpacking
# Called by nodes for whatever is not the fast case.


def unpack_array(node: Node, name: str, value: Any) -> Any:
    """The values of a saved input as an array (or the number that was saved in a tensor's place)."""
    if value.__class__ is Tensor:
        vc, meta = value._vc_, value._grad_meta_
        if (vc is None or vc.version == 0) and (meta is None or meta.is_view or not meta.detached):
            return value._numbers_  # `unpack_tensor` without the call
    elif value is None:
        return None
    if value.__class__ is SavedVariable:  # (an array has no history, which is half of what a hook's tensor costs)
        value = value.unpack(node, name) if value.unpack_hook is None else value.from_hook()
    else:
        value = unpack_tensor(node, name, value)
    return value._numbers_ if isinstance(value, Tensor) else value


def unpack_tensor(node: Node, name: str, value: Any) -> Any:
    """A saved input as a Tensor with its history."""
    if value.__class__ is Tensor:
        vc, meta = value._vc_, value._grad_meta_
        if (vc is None or vc.version == 0) and (meta is None or meta.is_view or not meta.detached):
            return value
    if isinstance(value, Tensor):
        if value._version != 0:
            raise modified_error(node, name, value, 0)
        if value._grad_meta_ is not None and value._grad_meta_.detached:
            raise detached_error()
        return value
    if isinstance(value, SavedVariable):
        return value.unpack(node, name)
    if isinstance(value, Freed):
        raise freed_error(node, value)
    return value


def unpack_output_array(node: Node, name: str, value: Any) -> Any:
    """A saved output as an array, when its version counter is no longer 0."""
    if isinstance(value, (SavedVariable, Freed)):
        return unpack_array(node, name, value)
    vc = getattr(node, name + "_vc")
    if vc.version:
        raise modified_error(node, name, _output(node, value, vc, 0), 0)
    return value


def unpack_output_tensor(node: Node, name: str, value: Any, output_nr: int = 0) -> Any:
    """A saved output as a Tensor whose grad_fn is the node that saved it."""
    if value.__class__ is not ndarray and isinstance(value, (SavedVariable, Freed)):
        return unpack_tensor(node, name, value)
    vc = getattr(node, name + "_vc")
    result = _output(node, value, vc, output_nr)
    if vc.version:
        raise modified_error(node, name, result, 0)
    return result


def _output(node: Node, array: Any, vc: VersionCounter, output_nr: int) -> Tensor:
    result = wrap(array) if array.__class__ is ndarray else boxed(array)
    result._vc_ = vc
    result._edge_ = (node, output_nr)
    return result


# ----------------------------------------------------------------------------------------------------- lists of tensors


def save_list(tensors: Any) -> tuple[Any, ...]:
    """The slot of a saved list of tensors."""
    return tuple(save(tensor) for tensor in tensors)


def unpack_list_arrays(node: Node, name: str, values: Any) -> list[Any]:
    if isinstance(values, Freed):
        raise freed_error(node, values)
    return [unpack_array(node, name, value) for value in values]


def unpack_list_tensors(node: Node, name: str, values: Any) -> list[Any]:
    if isinstance(values, Freed):
        raise freed_error(node, values)
    return [unpack_tensor(node, name, value) for value in values]


def unpack_indices(node: Node, name: str, values: Any) -> list[Any]:
    """A saved list of index arrays and None."""
    if isinstance(values, Freed):
        raise freed_error(node, values)
    return [unpack_array(node, name, value) for value in values]


# ----------------------------------------------------------------------- ``node._saved_NAME``, ``node._raw_saved_NAME``


def saved_attribute(node: Any, name: str) -> Any:
    """What ``node._saved_NAME`` shows of a saved input: the Tensor, or None if it was not saved."""
    value = getattr(node, name + "_", None)
    if isinstance(value, SavedNumber):
        return value.shown(node, name)
    value = unpack_tensor(node, name, value)
    return value if value is None or isinstance(value, Tensor) else as_tensor(value)


def as_tensor(value: Any) -> Tensor:
    """A number that was saved in a tensor's place, or an array that a kernel has made for its formulas."""
    return boxed(value if hasattr(value, "dtype") else kernels.as_array(value))


def saved_output_attribute(node: Any, name: str, output_nr: int) -> Any:
    """What ``node._saved_result`` shows of a saved output."""
    value = getattr(node, name + "_", None)
    return None if value is None else unpack_output_tensor(node, name, value, output_nr)


def saved_ints(value: Any) -> Any:
    """What ``node._saved_NAME`` shows of a list of integers, where one may stand for a list."""
    return (value,) if isinstance(value, int) else value


def saved_list_attribute(node: Any, name: str) -> tuple[Any, ...]:
    """What ``node._saved_NAME`` shows of a saved list."""
    return tuple(unpack_list_tensors(node, name, getattr(node, name + "_")))


def saved_indices_attribute(node: Any, name: str) -> tuple[Any, ...]:
    """What ``node._saved_indices`` shows: tensors, and None for a dimension that is not indexed."""
    return tuple(None if v is None else wrap(v) for v in unpack_indices(node, name, getattr(node, name + "_")))


def raw_saved_indices(node: Any, name: str) -> tuple[SavedVariable, ...]:
    """``node._raw_saved_indices``."""
    values = getattr(node, name + "_")
    if isinstance(values, Freed):
        raise freed_error(node, values)
    saved = tuple(
        v if isinstance(v, SavedVariable) else SavedVariable(None if v is None else wrap(v)) for v in values
    )
    setattr(node, name + "_", saved)
    return saved


def raw_saved(node: Any, name: str) -> SavedVariable:
    """``node._raw_saved_NAME`` of an input: the SavedVariable that the node uses from now on."""
    value = getattr(node, name + "_", None)
    if isinstance(value, SavedVariable):
        return value
    if value is None or isinstance(value, Freed):
        return _raw_of(value)
    if isinstance(value, Tensor):
        saved = SavedVariable(value)
    else:
        saved = (SavedVariable if hasattr(value, "dtype") else SavedNumber)(as_tensor(value))
    saved.version = 0  # what it was when the tensor itself went into the slot
    saved.owner = weakref.ref(node), name + "_"
    setattr(node, name + "_", saved)
    return saved


def raw_saved_output(node: Any, name: str, output_nr: int) -> SavedVariable:
    """``node._raw_saved_NAME`` of an output."""
    value = getattr(node, name + "_", None)
    if isinstance(value, SavedVariable):
        return value
    if value is None or isinstance(value, Freed):
        return _raw_of(value)
    saved = SavedVariable(None)
    saved.tensor, saved.is_output, saved.is_leaf = boxed(value), True, False
    saved.tensor._vc_ = getattr(node, name + "_vc")
    saved.output_nr = output_nr
    saved.owner = weakref.ref(node), name + "_"
    setattr(node, name + "_", saved)
    setattr(node, name + "_vc", SLOW)
    return saved


def _raw_of(value: Any) -> SavedVariable:
    """The SavedVariable of nothing: never saved, or freed."""
    saved = SavedVariable(None)
    saved.node = value if isinstance(value, Freed) else None
    return saved


def raw_saved_list(node: Any, name: str) -> tuple[SavedVariable, ...]:
    """``node._raw_saved_NAME`` of a list."""
    values = getattr(node, name + "_")
    if isinstance(values, Freed):
        raise freed_error(node, values)
    saved = tuple(v if isinstance(v, SavedVariable) else SavedVariable(v) for v in values)
    setattr(node, name + "_", saved)
    return saved


_NUMBERS = (float, int, bool, complex)


def pack_saved(node: Any, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]) -> None:
    """Send everything that a node has just saved through hooks."""
    for name in node.saved_tensors_names:
        slot = name + "_"
        value = getattr(node, slot, None)
        if value.__class__ is Tensor:  # the usual case of `raw_saved`, which nobody has asked for
            saved = SavedVariable(value)
            setattr(node, slot, saved)
            saved.pack(pack_hook, unpack_hook, value)
            continue
        if value is None or value.__class__ in _NUMBERS:  # which are not packed
            continue
        if isinstance(value, tuple):
            _pack_each(raw_saved_list(node, name), pack_hook, unpack_hook)
            continue
        if name in node.saved_outputs:
            saved = raw_saved_output(node, name, node.saved_outputs[name])
        else:
            saved = raw_saved(node, name)
        tensor = saved.tensor
        if tensor is None:
            continue
        if saved is not value and saved.is_output and value.dtype.kind in "fcVW":
            tensor = _output(node, value, tensor._vc_, saved.output_nr)  # type: ignore[arg-type]
        saved.pack(pack_hook, unpack_hook, tensor)
    if isinstance(getattr(node, "indices_", None), (list, tuple)):
        _pack_each(raw_saved_indices(node, "indices"), pack_hook, unpack_hook)


def _pack_each(
    saved: tuple[SavedVariable, ...], pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]
) -> None:
    for one in saved:
        if one.tensor is not None:
            one.pack(pack_hook, unpack_hook, one.tensor)


def pack_before_write(state: Any, node: Any) -> None:
    """The same for an in-place operator: at the last moment at which what it has saved is as it was."""
    hooks = state.saved_tensors_hooks
    if not isinstance(hooks, str):
        pack_saved(node, *hooks[-1])
