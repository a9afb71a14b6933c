"""New tensors: like another one, of indices, of windows, of memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import kernels
from ..._generated import functions as generated
from ...core import dtypes
from ...core.layout import strided
from ...storage import UntypedStorage
from ...tensor import Tensor, fresh
from ...tensor.special import like_array
from .. import factories
from ..factories import _finish, _out, empty, empty_strided, view_of_buffer, zeros
from ..registry import composite
from ..support import int_tuple
from ..tensor_types import legacy_new


@composite(space="Tensor")
def new_empty_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], *, dtype: Any = None, **options: Any
) -> Tensor:
    """A tensor of that size and stride, like this one otherwise."""
    return empty_strided(size, stride, **_like(input, {"dtype": dtype, **options}))


@composite(method=False)
def empty_permuted(
    size: Sequence[int], physical_layout: Sequence[int], *, dtype: Any = None, requires_grad: bool = False,
    **options: Any,
) -> Tensor:  # fmt: skip
    """A tensor of that size whose dimensions lie in memory in the given order, outermost first."""
    if len(physical_layout) != len(size):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(size)} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    for i, d in enumerate(physical_layout):
        if not 0 <= d < len(size):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {d} at index {i}). NB: "
                "negative dims not currently supported"
            )
        if d in physical_layout[:i]:
            raise RuntimeError(f"Duplicate dim not allowed: {d} comes twice in physical_layout")
    dense: Any = empty([size[d] for d in physical_layout], dtype=dtype, **options)
    return generated.permute(dense, *np.argsort(physical_layout).tolist()).requires_grad_(requires_grad)


@composite(method=False, bare=True)
def frombuffer(
    buffer: Any, *, dtype: dtypes.dtype, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A vector that shares the memory of a bytes-like object.

    >>> import retrograd as torch
    >>> torch.frombuffer(bytearray([1, 2]), dtype=torch.uint8)
    tensor([1, 2], dtype=torch.uint8)
    """
    return _finish(view_of_buffer(buffer, dtype, count, offset), requires_grad)


def _like(input: Tensor, keywords: dict) -> dict:
    """Keywords for a factory, with the dtype and device of `input` unless others are given."""
    given = {name: value for name, value in keywords.items() if value is not None}
    return {"dtype": input.dtype, "device": input.device, **given}


@composite(space="Tensor")
def new_ones(input: Tensor, *size: Any, **keywords: Any) -> Tensor:
    """Ones of another size, with the dtype of this tensor."""
    return factories.ones(*size, **_like(input, keywords))


@composite(space="Tensor")
def new_empty(input: Tensor, *size: Any, **keywords: Any) -> Tensor:
    """Uninitialised memory of another size, with the dtype of this tensor."""
    return factories.empty(*size, **_like(input, keywords))


@composite(space="Tensor")
def new_full(input: Tensor, size: Any, fill_value: Any, **keywords: Any) -> Tensor:
    """A tensor of another size with every element `fill_value`, with the dtype of this tensor."""
    return factories.full(size, fill_value, **_like(input, keywords))


@composite(space="Tensor")
def new_tensor(input: Tensor, data: Any, **keywords: Any) -> Tensor:
    """A tensor with a copy of `data`, with the dtype of this tensor."""
    return factories.tensor(data, **_like(input, keywords))


@composite(space="Tensor", bare=True)
def new(input: Tensor, *args: Any, size: Any = None, device: Any = None) -> Tensor:
    """A tensor of the same dtype, of a size or of data, as the older constructors make it."""
    factories.legacy_device(device)
    if device is not None and len(args) == 1 and isinstance(args[0], Tensor):
        raise RuntimeError(
            "Legacy tensor new of the form tensor.new(tensor, device=device) is not supported.  Use "
            "torch.as_tensor(...) instead."
        )
    if size is not None:
        return legacy_new(input.dtype, *args, *size)
    return legacy_new(input.dtype, *args)


@composite(method=False)
def from_file(
    filename: str, shared: bool | None = None, size: int | None = 0, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, **kw: Any,
) -> Tensor:  # fmt: skip
    """The first `size` numbers of a file, mapped into memory: what is written to them is in the file where `shared`.

    >>> import retrograd as torch, tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = torch.from_file(file.name, shared=True, size=3, dtype=torch.int32).fill_(7)
    ...     torch.from_file(file.name, size=2, dtype=torch.int32)
    tensor([7, 7], dtype=torch.int32)
    """
    np_dtype = dtypes.as_numpy_dtype(dtype) or dtypes.default[0]
    mapped = UntypedStorage.from_file(filename, bool(shared), (size or 0) * np_dtype.itemsize)
    return _out(mapped._root.view(np_dtype), requires_grad, device, kw)


def _window(
    name: str, shape: Callable[[np.ndarray], np.ndarray], length: int, periodic: bool, options: dict[str, Any]
) -> Tensor:
    """The values of `shape`, a function on [0, 1], at `length` places; a periodic window leaves out the last."""
    dtype = dtypes.as_numpy_dtype(options.get("dtype")) or dtypes.default[0]
    if options.get("layout") not in (None, strided):
        raise RuntimeError(f"{name} is not implemented for sparse types, got: layout={options['layout']}")
    if dtype.kind not in "fV":
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtypes.from_numpy_dtype(dtype)}")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    places = np.arange(length) / max(length if periodic else length - 1, 1)
    values = np.ones(length) if length == 1 else shape(places)
    keywords = {key: value for key, value in options.items() if key not in ("dtype", "requires_grad", "device")}
    return _out(values.astype(dtype), options.get("requires_grad", False), options.get("device"), keywords)


def _cosines(*coefficients: float) -> Callable[[np.ndarray], np.ndarray]:
    """The sum of cosines with these coefficients, of alternating sign."""

    def shape(x: np.ndarray) -> np.ndarray:
        return sum(((-1) ** k * c * np.cos(2 * np.pi * k * x) for k, c in enumerate(coefficients)), np.zeros_like(x))

    return shape


@composite(method=False)
def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A raised cosine.

    >>> import retrograd as torch
    >>> torch.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann_window", _cosines(0.5, 0.5), window_length, periodic, options)


@composite(method=False)
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """``alpha - beta * cos``: a raised cosine that does not reach 0."""
    return _window("hamming_window", _cosines(alpha, beta), window_length, periodic, options)


@composite(method=False)
def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A sum of three cosines."""
    return _window("blackman_window", _cosines(0.42, 0.5, 0.08), window_length, periodic, options)


@composite(method=False)
def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A triangle."""
    return _window("bartlett_window", lambda x: 1 - np.abs(2 * x - 1), window_length, periodic, options)


@composite(method=False)
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """``i0(beta * sqrt(1 - x ** 2)) / i0(beta)``."""

    def shape(x: np.ndarray) -> np.ndarray:
        return np.i0(beta * np.sqrt(np.maximum(1 - (2 * x - 1) ** 2, 0))) / np.i0(beta)

    return _window("kaiser_window", shape, window_length, periodic, options)


@composite("Tensor.new_zeros", space="internal")
def new_zeros(
    input: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **keywords: Any
) -> Tensor:
    """Zeros of a given size, with the dtype and device of `input`."""
    if keywords:
        device = input.device if device is None else device
        return zeros(*size, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad, **keywords)
    if device is not None:
        return zeros(*size, dtype=dtype or input.dtype, device=device, requires_grad=requires_grad)
    shape = int_tuple("new_zeros", "size", 1, size)
    array = kernels.new_zeros(like_array(input), shape)
    array = array if dtype is None else array.astype(dtypes.as_numpy_dtype(dtype))
    return _finish(array, requires_grad, factories.HERE) if requires_grad else fresh(array)


@composite(method=False)
def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, **keywords: Any
) -> Tensor:
    """The indices of the lower triangle of a matrix, as two rows."""
    array = kernels.tril_indices(row, col, offset, dtypes.as_numpy_dtype(dtype))
    return _out(array, False, device, keywords)


@composite(method=False)
def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, **keywords: Any
) -> Tensor:
    """The indices of the upper triangle of a matrix, as two rows."""
    array = kernels.triu_indices(row, col, offset, dtypes.as_numpy_dtype(dtype))
    return _out(array, False, device, keywords)
