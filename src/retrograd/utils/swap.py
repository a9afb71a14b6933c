"""Two tensors that change places: each keeps its identity and gets what the other was."""

from __future__ import annotations

import copyreg
import weakref
from typing import Any

from ..core.locks import graph_lock
from ..tensor import Tensor

_SLOTS = ("_memory_", "_vc_", "_grad_meta_", "_edge_")


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Swap the content of two tensors: values, class, attributes, what autograd knows of them.

    A graph that was recorded with one of them as a leaf is lost: its backward pass says so.

    >>> import retrograd as torch
    >>> a, b = torch.tensor([1.]), torch.tensor([2, 3])
    >>> torch.utils.swap_tensors(a, b); a, b
    (tensor([2, 3]), tensor([1.]))
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = [set(copyreg._slotnames(type(t))) for t in (t1, t2)]  # type: ignore[attr-defined]
    if slots[0] != slots[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for tensor in (t1, t2):
        _poison(tensor)
    own = sorted(slots[0] - {"_numbers_", *_SLOTS, "__dict__", "__weakref__"})
    with graph_lock:
        kept = [[getattr(t, slot) for slot in _SLOTS] for t in (t1, t2)]
        further = [{slot: getattr(t, slot) for slot in own if hasattr(t, slot)} for t in (t1, t2)]
        classes, attributes = (type(t1), type(t2)), (t1.__dict__, t2.__dict__)
        for i, tensor in enumerate((t1, t2)):
            other = 1 - i
            tensor.__class__ = classes[other]
            tensor.__dict__ = attributes[other]
            for slot, value in zip(_SLOTS, kept[other], strict=True):
                setattr(tensor, slot, value)
            for slot in own:
                if slot in further[other]:
                    setattr(tensor, slot, further[other][slot])
                elif slot in further[i]:
                    delattr(tensor, slot)


def _poison(tensor: Tensor) -> None:
    """A graph that would add a gradient to this leaf must not add it to the other one."""
    meta = tensor._grad_meta_
    node: Any = None if meta is None or meta.grad_accumulator is None else meta.grad_accumulator()
    if node is not None:
        node.register_prehook(_refuse)
        meta.grad_accumulator = None  # type: ignore[union-attr]


def _refuse(grads: Any) -> None:
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run "
        "backward on a tensor that was swapped. For a module m with "
        "`torch.__future__.set_swap_module_params_on_conversion(True)` you should not change the device or dtype of "
        "the module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To resolve this, please only "
        "change the device/dtype before running forward (or after both forward and backward)."
    )
