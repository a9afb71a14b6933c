"""``torch.nested``: batches of tensors whose sizes differ.

Note [Nested tensors] in ``_internal/base.py`` says how they work.  There are two layouts: *strided*, whose components
may differ in every size, and *jagged*, whose components differ in one and which has most operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.late import operators as ops
from ..core.layout import jagged, strided
from ..tensor import Tensor, wrap
from ._internal import (  # they declare the operators
    jagged_ops,
    jagged_products,
    jagged_reduce,
    jagged_shape,
    nested_int,
    strided_ops,
    strided_shape,
)
from ._internal.base import NestedBase
from ._internal.nested_tensor import (
    NestedTensor,
    Ragged,
    jagged_from_list,
    jagged_from_tensor_and_lengths,
    nested_view_from_values_offsets_lengths,
    view_of_values,
)
from ._internal.strided import strided_from_list, strided_view_of

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]


def _layout(layout: Any) -> Any:
    layout = strided if layout is None else layout
    if layout is not strided and layout is not jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return layout


def nested_tensor(
    tensor_list: Sequence[Any],
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new nested tensor, a leaf, with copies of tensors (or of what `torch.tensor` takes) as its components.

    >>> import retrograd as torch
    >>> nt = torch.nested.nested_tensor([torch.arange(2.), torch.arange(3.)], requires_grad=True)
    >>> (nt * nt).to_padded_tensor(0).sum().backward()
    >>> nt.grad
    nested_tensor([
      tensor([0., 2.]),
      tensor([0., 2., 4.])
    ])
    """
    if isinstance(tensor_list, Tensor) or not isinstance(tensor_list, (tuple, list)):
        raise TypeError(
            "nested_tensor(): argument 'tensor_list' (position 1) must be a list of tensors, not "
            f"{type(tensor_list).__name__}"
        )
    if pin_memory:
        raise RuntimeError("Need to provide pin_memory allocator to use pin memory: there is no accelerator")
    tensors = [t.detach() if isinstance(t, Tensor) else ops.tensor(t, dtype=dtype) for t in tensor_list]
    if _layout(layout) is jagged:
        result: Tensor = jagged_from_list(tensors, None, dtype, device)[0]
    else:
        result = strided_from_list(tensors, dtype, device)
    return result.requires_grad_() if requires_grad else result


def as_nested_tensor(
    ts: Tensor | Sequence[Tensor], dtype: Any = None, device: Any = None, layout: Any = None
) -> Tensor:
    """Tensors as a nested tensor, with their history: gradients flow back into them.

    A plain tensor is taken as a batch, without a copy if it is contiguous; a nested tensor is returned as it is, or
    with another dtype.

    >>> import retrograd as torch
    >>> a, b = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    >>> nt = torch.nested.as_nested_tensor([a, b], layout=torch.jagged)
    >>> (nt * 3).sum().backward()
    >>> b.grad
    tensor([3., 3., 3.])
    """
    if isinstance(ts, NestedBase):
        if layout is not None and ts.layout is not layout:
            raise RuntimeError("Converting between nested tensor layouts is not supported")
        return ts.to(device=device, dtype=dtype)  # type: ignore[attr-defined]
    layout = _layout(layout)
    if isinstance(ts, Tensor):
        if ts.dim() < 2:
            raise RuntimeError(f"as_nested_tensor(): Expected tensor argument to have dim() > 1, but it has {ts.dim()}")
        whole: Any = ts.to(device=device, dtype=dtype).contiguous()  # type: ignore[attr-defined]
        return _from_batch(whole) if layout is jagged else strided_view_of(whole)
    if not isinstance(ts, (tuple, list)) or not all(isinstance(t, Tensor) for t in ts):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors, but got "
            f"{type(ts).__name__}"
        )
    if layout is jagged:
        return jagged_from_list(ts, None, dtype, device)[0]
    return strided_from_list(ts, dtype, device)


def _from_batch(whole: Tensor) -> NestedTensor:
    """A contiguous plain tensor as a jagged one: a view."""
    batch, length = whole._memory_.shape[:2]
    structure = Ragged(wrap(np.arange(batch + 1) * length), None, 1, {"min_seqlen": length, "max_seqlen": length})
    values = ops.view(whole, (batch * length, *whole._memory_.shape[2:]))
    return view_of_values(values, structure)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """A view of `values` as a nested tensor: component `i` is rows ``offsets[i]`` to ``offsets[i + 1]``.

    With `lengths` alone, the components lie one behind the other; with both, component `i` has ``lengths[i]`` rows from
    ``offsets[i]`` on.  `jagged_dim` is the dimension of the result that is ragged.

    >>> import retrograd as torch
    >>> nt = torch.nested.nested_tensor_from_jagged(torch.arange(5.), torch.tensor([0, 2, 5]))
    >>> nt.unbind()
    (tensor([0., 1.]), tensor([2., 3., 4.]))
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets = wrap(np.concatenate([[0], np.cumsum(np.asarray(lengths._numbers_, np.int64))]))
        lengths = None
    if jagged_dim is None:
        jagged_dim = 1
    if jagged_dim < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {jagged_dim}.")
    if jagged_dim > values.dim():
        raise ValueError(f"Expected jagged_dim <= values.dim(), which is {values.dim()}, but got {jagged_dim}.")
    return nested_view_from_values_offsets_lengths(values, offsets, lengths, jagged_dim, min_seqlen, max_seqlen)


def narrow(tensor: Tensor, dim: int, start: int | Tensor, length: int | Tensor, layout: Any = strided) -> Tensor:
    """Of each of ``tensor[i]``, ``length[i]`` rows from ``start[i]`` on, as a nested tensor: a view.

    >>> import retrograd as torch
    >>> x = torch.arange(6).reshape(2, 3)
    >>> nt = torch.nested.narrow(x, 1, torch.tensor([0, 1]), torch.tensor([3, 2]), layout=torch.jagged)
    >>> nt.unbind()
    (tensor([0, 1, 2]), tensor([4, 5]))
    """
    for name, value in (("start", start), ("length", length)):
        if not isinstance(value, (int, Tensor)):
            raise RuntimeError(f"{name} must be an integer or a tensor")
    if _layout(layout) is strided:
        if isinstance(start, Tensor) or isinstance(length, Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return ops.narrow(as_nested_tensor(list(ops.unbind(tensor)), layout=strided), dim, start, length)
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    starts = start if isinstance(start, Tensor) else wrap(np.asarray([start]))
    lengths = length if isinstance(length, Tensor) else wrap(np.asarray([length]))
    return jagged_from_tensor_and_lengths(tensor, starts, lengths)[0]


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """The elements of `tensor` where `mask` is true, as a nested tensor of one component a row.

    >>> import retrograd as torch
    >>> mask = torch.tensor([[True, False], [True, True]])
    >>> torch.nested.masked_select(torch.tensor([[1., 2.], [3., 4.]]), mask).unbind()
    (tensor([1.]), tensor([3., 4.]))
    """
    if tensor.layout is not strided or mask.layout is not strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor and mask, given {tensor.layout}")
    shape = np.broadcast_shapes(tensor._memory_.shape, mask._memory_.shape)
    values = ops.masked_select(tensor, mask)
    rows = np.broadcast_to(mask._numbers_, shape)
    counts = np.count_nonzero(rows, axis=-1).reshape(-1)
    return view_of_values(values, Ragged(wrap(np.concatenate([[0], np.cumsum(counts)])), None, 1, None))


def to_padded_tensor(
    input: Tensor, padding: float, output_size: Sequence[int] | None = None, out: Tensor | None = None
) -> Tensor:
    """A nested tensor as a plain one, with `padding` behind the components that are smaller than others.

    >>> import retrograd as torch
    >>> nt = torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])
    >>> torch.nested.to_padded_tensor(nt, 0.)
    tensor([[1., 0.],
            [1., 1.]])
    """
    if not isinstance(input, NestedBase):
        raise NotImplementedError(
            "Could not run 'aten::to_padded_tensor': it is for nested tensors, and this one is plain"
        )
    result = input.to_padded_tensor(padding, output_size)  # type: ignore[attr-defined]
    return result if out is None else ops.copy_(out, result)
