"""What the parts of a sparse tensor must look like, and the switch for checking it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import kernels
from ..kernels import CompressedArray


class check_sparse_tensor_invariants:
    """Whether everything about the parts of sparse tensors is checked when they are made.

    Unless it is switched off, what would have an operator read or write elsewhere is checked; switched on, so is the
    order within rows. It is a context manager, a decorator, and the functions `enable`, `disable` and `is_enabled`, as
    torch has it.

    >>> import retrograd as torch
    >>> with torch.sparse.check_sparse_tensor_invariants():
    ...     torch.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    >>> torch.sparse.check_sparse_tensor_invariants.is_enabled()
    False
    """

    # Process-wide, as in torch. None: nobody has said.
    _enabled: bool | None = None

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: list[bool | None] = []

    @staticmethod
    def is_enabled() -> bool:
        """Was it switched on?"""
        return check_sparse_tensor_invariants._enabled is True

    @staticmethod
    def enable() -> None:
        """Switch it on."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Switch it off."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self) -> None:
        if self.saved_state:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for "
                "context nesting"
            )
        self.saved_state.append(check_sparse_tensor_invariants._enabled)
        check_sparse_tensor_invariants._enabled = self.state

    def __exit__(self, *exc_info: object) -> None:
        check_sparse_tensor_invariants._enabled = self.saved_state.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked


def wanted(check_invariants: bool | None) -> bool | None:
    """What a constructor is asked to check: everything (True), what it needs (None) or nothing (False)."""
    return check_sparse_tensor_invariants._enabled if check_invariants is None else check_invariants


def check_coo(indices: np.ndarray, values: Sequence[int], shape: Sequence[int], coalesced: bool, bounds: bool) -> None:
    """Do coordinates and values (of which the shape is given) make a tensor of this shape? `bounds`: look at each."""
    sparse_dim, nnz = indices.shape
    dense_dim = len(values) - 1
    if sparse_dim + dense_dim != len(shape):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(shape)}, sparse_dim = "
            f"{sparse_dim}, dense_dim = {dense_dim}"
        )
    if values[0] != nnz:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {nnz}, nnz from values: {values[0]}"
        )
    if math.prod(shape[:sparse_dim]) >= 2**63:
        raise RuntimeError(f"numel: integer multiplication overflow: a tensor of shape {list(shape)} is too large")
    if min(shape, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    if tuple(values[1:]) != tuple(shape[sparse_dim:]):
        raise RuntimeError(f"values has incorrect size, expected {[nnz, *shape[sparse_dim:]]}, got {list(values)}")
    if not nnz or not bounds:
        return
    for dim in range(sparse_dim):
        least, most = int(indices[dim].min()), int(indices[dim].max())
        if least < 0:
            raise RuntimeError(f"found negative index {least} for dim {dim}")
        if most >= shape[dim]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {shape[dim]} but found index {most}"
            )
    if coalesced and sparse_dim:
        numbers = kernels.coordinates_to_numbers(indices, shape)
        if not (numbers[1:] > numbers[:-1]).all():
            raise RuntimeError(
                "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor: they must be in "
                "order, and none twice"
            )


def check_compressed(
    kind: type[CompressedArray],
    starts: np.ndarray,
    places: np.ndarray,
    values: Sequence[int],
    shape: Sequence[int],
    check: bool | None,
) -> None:
    """The same for the compressed layouts; `check` is what `wanted` says of the places."""
    lines, columns = ("crow_indices", "col_indices") if kind.by_rows else ("ccol_indices", "row_indices")
    if starts.ndim < 1:
        raise RuntimeError(f"{lines} must have dimensionality >= 1 but got {starts.ndim}")
    if places.ndim != starts.ndim:
        raise RuntimeError(
            f"{lines} and {columns} dimensionalities must be equal but got {starts.ndim} and {places.ndim}, "
            "respectively"
        )
    batch = starts.shape[:-1]
    block_dim = 2 if kind.blocks else 0
    dense_dim = len(values) - len(batch) - block_dim - 1
    if dense_dim < 0:
        raise RuntimeError(
            f"values must have dimensionality > sum of batch and block dimensionalities (={len(batch)} + {block_dim}) "
            f"but got {len(values)}"
        )
    if len(shape) != len(batch) + 2 + dense_dim:
        raise RuntimeError(
            "tensor dimensionality must be sum of batch, base, and dense dimensionalities "
            f"(={len(batch)} + 2 + {dense_dim}) but got {len(shape)}"
        )
    if places.shape[:-1] != batch or tuple(values[: len(batch)]) != batch or tuple(shape[: len(batch)]) != batch:
        raise RuntimeError(
            f"all batch dimensions of {lines} (={list(batch)}), {columns} (={list(places.shape[:-1])}), values "
            f"(={list(values[: len(batch)])}) and size (={list(shape[: len(batch)])}) must be equal to each other"
        )
    nnz = places.shape[-1]
    if values[len(batch)] != nnz:
        raise RuntimeError(
            f"{columns} and values must have the same number of elements: {nnz} and {values[len(batch)]}"
        )
    block = tuple(values[len(batch) + 1 : len(batch) + 3]) if kind.blocks else (1, 1)
    rows, cols = shape[len(batch) : len(batch) + 2]
    if rows % block[0] or cols % block[1]:
        raise RuntimeError(
            f"tensor shape[{len(batch)}:] (={[rows, cols]}) must be divisible with blocksize[0:2] (={list(block)}) as "
            "defined by values shape"
        )
    number, most = (rows // block[0], cols // block[1]) if kind.by_rows else (cols // block[1], rows // block[0])
    if starts.shape[-1] != number + 1:
        raise RuntimeError(
            f"{lines}.shape[-1] must be equal to the number of compressed lines + 1 (={number + 1}), but got "
            f"{starts.shape[-1]}"
        )
    if tuple(values[len(batch) + 1 + block_dim :]) != tuple(shape[len(batch) + 2 :]):
        raise RuntimeError(
            f"values.shape[{len(batch) + 1 + block_dim}:] (={list(values[len(batch) + 1 + block_dim :])}) must be "
            f"equal "
            f"to the dense dimensions of the tensor (={list(shape[len(batch) + 2 :])})"
        )
    if starts.dtype != places.dtype:
        raise RuntimeError(
            f"{lines} and {columns} must have the same dtype, but got {starts.dtype} and {places.dtype}, respectively"
        )
    if check is False:
        return
    if starts.size and (starts[..., 0] != 0).any():
        raise RuntimeError(f"`{lines}[..., 0] == 0` is not satisfied.")
    if starts.size and (starts[..., -1] != nnz).any():
        raise RuntimeError(f"`{lines}[..., -1] == nnz` is not satisfied.")
    counts = np.diff(starts, axis=-1)
    if (counts < 0).any() or (counts > most).any():
        raise RuntimeError(
            f"`0 <= {lines}[..., 1:] - {lines}[..., :-1] <= {'ncols' if kind.by_rows else 'nrows'}` is not satisfied."
        )
    if places.size and (int(places.min()) < 0 or int(places.max()) >= most):
        raise RuntimeError(f"`0 <= {columns} < {'ncols' if kind.by_rows else 'nrows'}` is not satisfied.")
    if nnz > 1 and check:
        inside = np.ones((*batch, nnz), bool, like=starts)
        flat, bounds = inside.reshape(-1, nnz), starts.reshape(-1, starts.shape[-1])
        for group, first in zip(flat, bounds, strict=True):
            group[first[first < nnz]] = False
        if (np.diff(places.astype(np.int64), axis=-1, prepend=-1)[inside] <= 0).any():
            raise RuntimeError(
                f"`{columns}[..., {lines}[..., i - 1]:{lines}[..., i]] for all i = 1, ..., "
                f"{'nrows' if kind.by_rows else 'ncols'} are sorted and distinct along the last dimension values` is "
                "not satisfied."
            )
