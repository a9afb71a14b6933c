"""Functions that torch has under ``torch.ops.aten`` alone; ops/overload.py looks them up."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import kernels
from ..derivatives import formulas
from ..tensor import Tensor, wrap
from . import namespace as ops
from .registry import composite


@composite(space="aten")
def convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The gradients of a convolution for its input, its weight and its bias, None where `output_mask` asks for none.

    >>> import retrograd as torch
    >>> x, w = torch.ones(1, 1, 3), torch.ones(1, 1, 2)
    >>> grads = convolution_backward(torch.ones(1, 1, 2), x, w, [1], [1], [0], [1], False, [0], 1, (True, False, True))
    >>> grads
    (tensor([[[1., 2., 1.]]]), None, tensor([2.]))
    """
    how = (stride, padding, dilation, transposed, groups)
    for_input, for_weight, for_bias = output_mask
    return (
        formulas.convolution_grad_input(ops, grad_output, weight, input.shape, *how) if for_input else None,
        formulas.convolution_grad_weight(ops, grad_output, input, weight.shape, *how) if for_weight else None,
        formulas.sum_but_channels(ops, grad_output) if for_bias else None,
    )


@composite(space="aten")
def _new_zeros_with_same_feature_meta(self: Tensor, other: Tensor, *, self_num_batch_dims: int = 0) -> Tensor:
    """Zeros laid out as `other`, once for each element of the first dimensions of `self`.

    >>> import retrograd as torch
    >>> _new_zeros_with_same_feature_meta(torch.ones(2, 5), torch.ones(3), self_num_batch_dims=1)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    data = other._data
    batch = self._memory.shape[:self_num_batch_dims]
    if not batch:
        return wrap(kernels.zeros_of_layout(data))
    each = kernels.storage_numel(data)
    memory = kernels.zeros((math.prod(batch) * each,), data.dtype)
    steps = tuple(step * each for step in kernels.contiguous_strides(batch))
    return wrap(
        kernels.as_strided(
            memory, (*batch, *data.shape), (*steps, *kernels.strides(data)), kernels.storage_offset(data)
        )
    )


@composite(space="aten")
def _nested_get_values(self: Tensor) -> Tensor:
    """The values of a nested tensor of the jagged layout: a view of it."""
    return self.values()  # type: ignore[attr-defined]


@composite(space="aten")
def _nested_get_offsets(self: Tensor) -> Tensor:
    """Where the components of a nested tensor of the jagged layout begin."""
    return self.offsets()  # type: ignore[attr-defined]


@composite(space="aten")
def _nested_get_lengths(self: Tensor) -> Tensor | None:
    """How long they are, if there are holes between them."""
    return self.lengths()  # type: ignore[attr-defined]


@composite(space="aten")
def _is_all_true(self: Tensor) -> Tensor:
    """Are all elements of a tensor of bools true?

    >>> import retrograd as torch
    >>> _is_all_true(torch.tensor([True, False]))
    tensor(False)
    """
    return _bools(self, "_is_all_true").all()  # type: ignore[attr-defined]


@composite(space="aten")
def _is_any_true(self: Tensor) -> Tensor:
    """Is any element of a tensor of bools true?

    >>> import retrograd as torch
    >>> _is_any_true(torch.tensor([True, False]))
    tensor(True)
    """
    return _bools(self, "_is_any_true").any()  # type: ignore[attr-defined]


def _bools(tensor: Tensor, name: str) -> Tensor:
    if tensor._memory.dtype.kind != "b":
        raise RuntimeError(f"{name}(): expected a tensor of bools, but got one of {tensor.dtype}")
    return tensor
