"""Functions that torch has under ``torch.ops.aten`` alone; ops/overload.py looks them up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import kernels
from ..core import dtypes
from ..derivatives import formulas
from ..tensor import Tensor, wrap
from . import aten_pools  # noqa: F401 (declares more of them)
from . import namespace as ops
from .registry import SPACES, composite


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
    if groups <= 0:
        raise RuntimeError(f"expected groups to be greater than 0, but got groups={groups}")
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
    data = other._numbers_
    batch = self._memory_.shape[:self_num_batch_dims]
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
def _batch_norm_with_update(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor,
    momentum: float, eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """`native_batch_norm` in training, and memory for what other libraries save: none."""
    results = SPACES["torch"]["native_batch_norm"](input, weight, bias, running_mean, running_var, True, momentum, eps)
    return *results, input.new_zeros(0, dtype=dtypes.uint8)  # type: ignore[attr-defined,return-value]


@composite(space="aten")
def _batch_norm_no_update(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    momentum: float, eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """`native_batch_norm` by the running statistics, and memory for what other libraries save: none."""
    results = SPACES["torch"]["native_batch_norm"](input, weight, bias, running_mean, running_var, False, momentum, eps)
    return *results, input.new_zeros(0, dtype=dtypes.uint8)  # type: ignore[attr-defined,return-value]


@composite(space="aten")
def _local_scalar_dense(self: Tensor) -> Any:
    """The one element of a tensor as a Python number: what ``item()`` and ``bool(x)`` come to.

    >>> import retrograd as torch
    >>> _local_scalar_dense(torch.tensor([2.]))
    2.0
    """
    if not self.numel():
        raise RuntimeError("_local_scalar_dense: Empty tensor not supported: it has no element to read")
    return self.reshape(-1)[0].item()  # type: ignore[attr-defined]


@composite(space="aten")
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """The gradient of dropout: what was kept, scaled as it was.

    >>> import retrograd as torch
    >>> native_dropout_backward(torch.ones(2), torch.tensor([True, False]), 2.0)
    tensor([2., 0.])
    """
    return grad_output * mask * scale  # type: ignore[operator]


def _antialiased(
    name: str, input: Tensor, output_size: Sequence[int] | None, align_corners: bool, scales: tuple[Any, ...],
    scale_factors: Sequence[float] | None,
) -> Tensor:  # fmt: skip
    if output_size is None:
        if scale_factors is None:
            raise RuntimeError(f"{name}: Must specify exactly one of output_size and scale_factors")
        scales = tuple(scale_factors)
        output_size = [int(n * factor) for n, factor in zip(input.shape[2:], scale_factors, strict=True)]
    kind = f"antialias-{name.removeprefix('_upsample_').removeprefix('bi').removesuffix('2d_aa')}"
    return getattr(ops, name)(input, output_size, kind, align_corners, scales)


@composite(space="aten")
def _upsample_bilinear2d_aa(
    input: Tensor, output_size: Sequence[int] | None, align_corners: bool, scales_h: float | None = None,
    scales_w: float | None = None, scale_factors: Sequence[float] | None = None,
) -> Tensor:  # fmt: skip
    """Images in another size, linearly interpolated over what a pixel of the result covers."""
    scales = (scales_h, scales_w)
    return _antialiased("_upsample_bilinear2d_aa", input, output_size, align_corners, scales, scale_factors)


@composite(space="aten")
def _upsample_bicubic2d_aa(
    input: Tensor, output_size: Sequence[int] | None, align_corners: bool, scales_h: float | None = None,
    scales_w: float | None = None, scale_factors: Sequence[float] | None = None,
) -> Tensor:  # fmt: skip
    """Images in another size, cubically interpolated over what a pixel of the result covers."""
    scales = (scales_h, scales_w)
    return _antialiased("_upsample_bicubic2d_aa", input, output_size, align_corners, scales, scale_factors)


@composite(space="aten")
def _upsample_lanczos2d_aa(
    input: Tensor, output_size: Sequence[int] | None, align_corners: bool, scales_h: float | None = None,
    scales_w: float | None = None, scale_factors: Sequence[float] | None = None,
) -> Tensor:  # fmt: skip
    """Images in another size, weighed by a windowed sinc over what a pixel of the result covers."""
    scales = (scales_h, scales_w)
    return _antialiased("_upsample_lanczos2d_aa", input, output_size, align_corners, scales, scale_factors)


@composite(space="aten")
def slow_conv3d(
    self: Tensor, weight: Tensor, kernel_size: int | Sequence[int], bias: Tensor | None = None,
    stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
) -> Tensor:  # fmt: skip
    """`conv3d`, told the size of its kernel."""
    sizes = [kernel_size] * 3 if isinstance(kernel_size, int) else list(kernel_size)
    if sizes != list(weight._memory_.shape[2:]):
        raise RuntimeError(f"slow_conv3d: kernel_size {sizes} is not that of the weight, {list(weight._memory_.shape)}")
    return SPACES["nn.functional"]["conv3d"](self, weight, bias, stride, padding)


def _padding(kind: str, mode: str, dims: int) -> None:
    def pad(self: Tensor, padding: Sequence[int]) -> Tensor:
        if self._memory_.ndim not in (dims + 1, dims + 2) or len(padding) != 2 * dims:
            raise RuntimeError(
                f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size and other "
                f"non-zero dimensions for input, but got: {list(self._memory_.shape)} ({pad.__name__} with padding "
                f"{list(padding)})"
            )
        return SPACES["nn.functional"]["pad"](self, padding, mode)

    pad.__name__ = pad.__qualname__ = f"{kind}_pad{dims}d"
    pad.__doc__ = f"``pad(self, padding, mode={mode!r})`` of {dims} dimensions."
    composite(space="aten")(pad)


for _dims in (1, 2, 3):
    _padding("reflection", "reflect", _dims)
    _padding("replication", "replicate", _dims)
