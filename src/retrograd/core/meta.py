"""AutogradMeta: what autograd knows of a tensor beyond its history.

A tensor's ``_grad_meta_`` is None until something needs it: ``requires_grad_()``, a hook, ``retain_grad()``, a name.

The one thing that every result of a recorded operation has, the gradient edge ``(grad_fn, output_nr)``, is not in
here but in a slot of the tensor itself (``_edge_``): results are made by the million, and an AutogradMeta for each
would be one more object to allocate, to follow and for the garbage collector to walk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .locks import STEPS_ARE_WHOLE, graph_lock

if TYPE_CHECKING:
    from weakref import ref

    from ..autograd.accumulate_grad import AccumulateGrad
    from ..autograd.forward_grad import ForwardGrad
    from ..tensor import Tensor
    from ..tensor.autograd_attributes import TensorAutograd


class AutogradMeta:
    """The autograd side of one tensor."""

    __slots__ = (
        "detached",
        "fw_grad",
        "grad",
        "grad_accumulator",
        "grad_dtype",
        "hooks",
        "name",
        "post_accumulate_grad_hooks",
        "requires_grad",
        "restrided",
        "retains_grad",
    )

    #: Is this a DifferentiableViewMeta?
    is_view = False
    #: Of the plain tensor that a special tensor keeps its values in: that tensor (weakly). See `OwnedMeta`.
    owner: ref[Any] | None = None

    def __init__(self) -> None:
        #: Set on leaves only; a tensor with a grad_fn requires grad by that.
        self.requires_grad: bool = False
        self.grad: Tensor | None = None
        #: A leaf knows its AccumulateGrad weakly: the graph keeps it alive, and it keeps the leaf alive.
        self.grad_accumulator: ref[AccumulateGrad] | None = None
        #: The NumPy dtype that gradients of a leaf are cast to: None for any, "same" for its own.
        self.grad_dtype: Any = "same"
        #: Was its history cut off by detach_()?
        self.detached: bool = False
        #: Store the gradient of a non-leaf too.
        self.retains_grad: bool = False
        #: Tensor hooks (an OrderedDict shared with the handles), see hooks.py.
        self.hooks: Any = None
        self.post_accumulate_grad_hooks: Any = None
        #: The tangents, one per dual level, see forward_grad.py.
        self.fw_grad: ForwardGrad | None = None
        #: Was its shape changed in place (transpose_()), so that the steps to older views of it do not apply?
        self.restrided: bool = False
        self.name: str | None = None


class OwnedMeta(AutogradMeta):
    """The meta of a plain tensor inside a special one, whose history it has: users who ask for the base of a view of it
    are shown its owner."""

    __slots__ = ("owner",)

    def __init__(self, owner: ref[Any]) -> None:
        super().__init__()
        self.owner = owner


def materialize_autograd_meta(tensor: TensorAutograd) -> AutogradMeta:
    """The tensor's AutogradMeta, made now if there was none."""
    meta = tensor._grad_meta_
    if meta is None:
        made = AutogradMeta()
        # Note [Steps under the GIL]; what looks like the slot of a special tensor may be a call.
        if STEPS_ARE_WHOLE and tensor._special_ is None:
            tensor._grad_meta_ = made if tensor._grad_meta_ is None else tensor._grad_meta_
        else:
            with graph_lock:
                if tensor._grad_meta_ is None:
                    tensor._grad_meta_ = made
        meta = tensor._grad_meta_
    return meta
