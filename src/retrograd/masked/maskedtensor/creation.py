"""Masked tensors from a tensor and a mask."""

from __future__ import annotations

from ...core.late import operators as ops
from ...tensor import Tensor
from .core import MaskedTensor, _check


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A new masked tensor, a leaf, with copies of the two.

    >>> import retrograd as torch
    >>> mt = torch.masked.masked_tensor(torch.tensor([1., 2.]), torch.tensor([True, False]), requires_grad=True)
    >>> (mt * 3).sum().backward()
    >>> mt.grad
    MaskedTensor(
      [  3.0000,       --]
    )
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A masked tensor with the history of `data`, to which masked elements give no gradient.

    >>> import retrograd as torch
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> torch.masked.as_masked_tensor(x, torch.tensor([True, False])).exp().sum().backward()
    >>> x.grad
    tensor([2.7183, 0.0000])
    """
    _check(data, mask)
    mask = ops.clone(mask)
    # Whatever the gradient of a masked element is, NaN for that matter, it ends here.
    values = ops.where(mask, data, data.detach()) if data.requires_grad else ops.clone(data)
    return MaskedTensor.of(values, mask)
