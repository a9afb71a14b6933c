"""Copies: joining, repeating, flipping, padding; and what the derivative formulas of views call.

Nothing here returns memory of its input, with the one exception of `sum_to_size`, which has nothing to do
where the shape is already right.  The views are in `shape.py`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import compiled
from .compiled import LARGE, SHARED
from .dims import check_long, normalize_dim, normalize_dims
from .promotion import as_array, broadcast_shape, cast_number, promote_dtypes, result_dtype, store, unsupported
from .shape import diagonal, expand, select, slice
from .storage import has_channels_last, keeps_channels_last, shape_text

_slice = builtins.slice
_ALL = _slice(None)
_zeros = np.zeros


# ------------------------------------------------------------------------------------------------------ joining


def cat(arrays: Sequence[np.ndarray], dim: int = 0) -> np.ndarray:
    """The arrays one after the other along `dim`."""
    if len(arrays) == 0:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    dtype = arrays[0].dtype
    plain = True
    for a in arrays:
        if a.dtype != dtype or not a.flags.c_contiguous:
            plain = False
            break
    if plain:
        try:
            if sum([a.size for a in arrays]) > SHARED and (r := _joined(arrays, dim)) is not None:
                return r
            return np.concatenate(arrays, dim)
        except (ValueError, IndexError, TypeError):
            pass
    return _cat(arrays, dim)


def _joined(arrays: Sequence[np.ndarray], dim: int) -> np.ndarray | None:
    """The same on several threads, of arrays that fit; None where they do not, or there are none."""
    shape = arrays[0].shape
    if not -len(shape) <= dim < len(shape):
        return None
    dim %= len(shape)
    for a in arrays:
        if a.ndim != len(shape) or a.shape[:dim] != shape[:dim] or a.shape[dim + 1 :] != shape[dim + 1 :]:
            return None
    return compiled.joined(arrays, dim)


def _cat(arrays: Sequence[np.ndarray], dim: int) -> np.ndarray:
    dtype = arrays[0].dtype
    for i, a in enumerate(arrays):
        if not a.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
        dtype = promote_dtypes(dtype, a.dtype)
    # Torch's rule from before tensors could be empty in one dimension only: [] joins with anything.
    kept = [(i, a) for i, a in enumerate(arrays) if a.shape != (0,)]
    if not kept:
        return np.concatenate(arrays).astype(dtype, copy=False)
    first = kept[0][1]
    dim = normalize_dim(dim, first.ndim)
    shape = list(first.shape)
    shape[dim] = 0
    for i, a in kept:
        if a.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {a.ndim}")
        for d, (n, m) in enumerate(zip(shape, a.shape)):
            if d != dim and n != m:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {n} but got size {m} for "
                    f"tensor number {i} in the list."
                )
        shape[dim] += a.shape[dim]
    # `out` keeps NumPy from choosing a column-major result; channels that are innermost in all stay there, as in torch.
    if all(has_channels_last(a) for _, a in kept) and not first.flags.c_contiguous:
        moved = [shape[0], *shape[2:], shape[1]]
        out = np.moveaxis(np.empty_like(first, dtype=dtype, order="C", shape=tuple(moved)), -1, 1)
    else:
        out = np.empty_like(first, dtype=dtype, order="C", shape=tuple(shape))
    return np.concatenate([a for _, a in kept], dim, out=out, casting="unsafe")


def stack(arrays: Sequence[np.ndarray], dim: int = 0) -> np.ndarray:
    """The arrays one after the other along a new dimension `dim`."""
    if len(arrays) == 0:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = arrays[0].shape
    dim = normalize_dim(dim, len(first) + 1)
    for i, a in enumerate(arrays):
        if a.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {shape_text(first)} at entry 0 and "
                f"{shape_text(a.shape)} at entry {i}"
            )
    key = (_ALL,) * dim + (None,)
    return cat([a[key] for a in arrays], dim)


def meshgrid(arrays: Sequence[np.ndarray], indexing: str = "ij") -> tuple[np.ndarray, ...]:
    """Each array along its own dimension of a common grid, expanded along the others (views)."""
    if not arrays:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for a in arrays:
        if a.ndim > 1:
            raise RuntimeError(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: a tensor of shape "
                + shape_text(a.shape)
            )
        if a.dtype != arrays[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(arrays) >= 2
    if swap:
        arrays = [arrays[1], arrays[0], *arrays[2:]]
    n = len(arrays)
    shape = tuple([a.size for a in arrays])
    grids = [expand(a.reshape((1,) * i + (-1,) + (1,) * (n - i - 1)), shape) for i, a in enumerate(arrays)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


# ------------------------------------------------------------------------------------------------------ triangles


def tril(a: np.ndarray, diagonal: int = 0, out: np.ndarray | None = None) -> np.ndarray:
    """The lower triangles of the matrices in `a`, zero above `diagonal`."""
    return _triangle("tril", a, diagonal, True, out)


def triu(a: np.ndarray, diagonal: int = 0, out: np.ndarray | None = None) -> np.ndarray:
    """The upper triangles of the matrices in `a`, zero below `diagonal`."""
    return _triangle("triu", a, diagonal, False, out)


def _triangle(name: str, a: np.ndarray, diagonal: int, lower: bool, out: np.ndarray | None) -> np.ndarray:
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    rows, columns = a.shape[-2:]
    last = int(np.int64(diagonal)) - (not lower)  # (which refuses what is larger than any tensor)
    mask = np.tri(rows, columns, max(-rows, min(last, columns)), dtype=bool)
    if out is a:
        np.copyto(a, a.dtype.type(0), where=~mask if lower else mask)
        return a
    zero = a.dtype.type(0)
    return store(np.where(mask, a, zero) if lower else np.where(mask, zero, a), out)


def diag_embed(a: np.ndarray, offset: int = 0, dim1: int = -2, dim2: int = -1) -> np.ndarray:
    """Matrices in dimensions `dim1` and `dim2` with the last dimension of `a` on their diagonal."""
    n = a.ndim + 1
    d1, d2 = normalize_dim(dim1, n), normalize_dim(dim2, n)
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    length = a.shape[-1]
    size = length + abs(offset)
    rest = iter(a.shape[:-1])
    shape = tuple([size if d in (d1, d2) else next(rest) for d in range(n)])
    result = np.zeros_like(a, shape=shape, order="C")
    diagonal(result, offset, d1, d2)[...] = a
    return result


# ------------------------------------------------------------------------------------------------------ moving


def flip(a: np.ndarray, dims: int | Sequence[int]) -> np.ndarray:
    """`a` in reverse order along `dims`."""
    if not isinstance(dims, int) and not len(dims):
        return a.copy()
    back = normalize_dims(dims, a.ndim)
    if not a.ndim:
        return a.copy()
    reverse = _slice(None, None, -1)
    flipped = a[tuple([reverse if d in back else _ALL for d in range(a.ndim)])]
    if a.flags.c_contiguous:
        return flipped.copy()
    result = np.empty_like(a)  # in the order of `a` in memory
    result[...] = flipped
    return result


def roll(a: np.ndarray, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> np.ndarray:
    """`a` shifted along `dims` (flattened, without dims); what leaves at one end enters at the other."""
    many = [shifts] if isinstance(shifts, int) else list(shifts)
    along = [] if dims is None else [dims] if isinstance(dims, int) else list(dims)
    if not many:
        raise RuntimeError("`shifts` required")
    check_long(*many)
    if not along and len(many) == 1:
        return np.roll(a, many[0])
    if len(many) != len(along):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(many)}, dims:{len(along)}")
    if not a.ndim:
        raise IndexError(f"Dimension specified as {normalize_dim(along[0], 0)} but tensor has no dimensions")
    return np.roll(a, many, [normalize_dim(d, a.ndim) for d in along])


def rot90(a: np.ndarray, k: int = 1, dims: Sequence[int] = (0, 1)) -> np.ndarray:
    """`a` turned by `k` right angles in the plane of `dims`."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if a.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {a.ndim}")
    d0, d1 = normalize_dim(dims[0], a.ndim), normalize_dim(dims[1], a.ndim)
    if d0 == d1:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    check_long(k)
    return np.rot90(a, k, (d0, d1)).copy("K")


# ------------------------------------------------------------------------------------------------------ repeating


def repeat(a: np.ndarray, repeats: Sequence[int]) -> np.ndarray:
    """`a` as a tile, laid `repeats` times along each dimension."""
    if len(repeats) < a.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        )
    shape = (1,) * (len(repeats) - a.ndim) + a.shape
    target = [r * n for r, n in zip(repeats, shape)]
    for r, n in zip(repeats, target):
        if r < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {shape_text(target)}")
    # One copy: every dimension n becomes (r, n), of which r is expanded.
    pairs = [s for r, n in zip(repeats, shape) for s in (r, n)]
    result = np.empty_like(a, shape=tuple(target), order="C")
    result.reshape(pairs)[...] = a.reshape([s for n in shape for s in (1, n)])
    return result


def tile(a: np.ndarray, dims: Sequence[int]) -> np.ndarray:
    """As `repeat`, with missing leading `dims` taken as 1."""
    dims = tuple(dims)
    return repeat(a, (1,) * (a.ndim - len(dims)) + dims)


def repeat_interleave(
    a: np.ndarray, repeats: int | np.ndarray, dim: int | None = None, output_size: int | None = None
) -> np.ndarray:
    """Every element of `a` along `dim` (of the flattened array without one) repeated, next to itself."""
    if dim is None:
        a, dim = a.reshape(-1), 0
    elif not a.ndim:
        normalize_dim(dim, 0)
        a, dim = a.reshape(1), 0
    else:
        dim = normalize_dim(dim, a.ndim)
    if isinstance(repeats, np.ndarray):
        if repeats.ndim > 1:
            raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
        if repeats.dtype.kind != "i" or repeats.itemsize < 4:
            unsupported("repeat_interleave_cpu", repeats.dtype)
        if repeats.size != 1 and repeats.size != a.shape[dim]:
            raise RuntimeError(
                f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.size} and "
                f"input.size({dim}) = {a.shape[dim]}"
            )
        if repeats.size and repeats.min() < 0:
            raise RuntimeError("repeats can not be negative")
    elif repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    result = np.repeat(a, repeats, dim)
    if output_size is not None and result.shape[dim] != output_size:
        raise RuntimeError("repeat_interleave: Invalid output_size, it must equal the sum of repeats")
    return result


# ------------------------------------------------------------------------------------------------------ padding


@keeps_channels_last
def constant_pad_nd(a: np.ndarray, pad: Sequence[int], value: Any = 0) -> np.ndarray:
    """`a` with `value` around it: `pad` has two numbers per dimension, the last dimension first; negative ones crop."""
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * a.ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)} while the input has {a.ndim} dimensions."
        )
    fill = cast_number(value, a.dtype)
    shape, source, target = list(a.shape), [_ALL] * a.ndim, [_ALL] * a.ndim
    for i in range(len(pad) // 2):
        d = a.ndim - 1 - i
        before, after = pad[2 * i], pad[2 * i + 1]
        n = a.shape[d]
        shape[d] = n + before + after
        if shape[d] < 0 or n + min(before, 0) < 0 or n + min(after, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        source[d] = _slice(max(-before, 0), n - max(-after, 0))
        target[d] = _slice(max(before, 0), shape[d] - max(after, 0))
    result = np.empty_like(a, shape=tuple(shape), order="C")
    if 0 < result.size:
        result.fill(fill)
        result[tuple(target)] = a[tuple(source)]
    return result


# ------------------------------------------------------------------------------------------------------ backward


def sum_to_size(a: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """`a` summed over the dimensions along which an array of `size` was broadcast to it; `a` itself if over none."""
    shape = a.shape
    size = tuple(size)
    if shape == size:
        return a
    if not size and a.size <= SHARED and type(a) is np.ndarray and a.dtype.kind in "fc":
        return np.add.reduce(a, None, out=np.empty((), a.dtype))
    lead = len(shape) - len(size)
    if lead >= 0:
        over = list(range(lead))
        for d, n in enumerate(size, lead):
            if n != shape[d]:
                if n != 1:
                    break
                over.append(d)
        else:
            if a.size > SHARED and type(a) is np.ndarray and over:
                fast = compiled.reduced(np.add, a, tuple(over), False)
                if fast is not None:
                    return fast.reshape(size)
            if len(over) == lead:
                return as_array(np.add.reduce(a, tuple(over)))
            return np.add.reduce(a, tuple(over), keepdims=True).reshape(size)
    raise RuntimeError(f"size {{{shape_text(size)}}} is not expandable to size {{{shape_text(shape)}}}.")


def select_backward(grad: np.ndarray, input_sizes: Sequence[int], dim: int, index: int) -> np.ndarray:
    """Zeros of `input_sizes` with `grad`, which may be a scalar of NumPy's, at `index` along `dim`."""
    if grad.__class__ is np.ndarray and grad.size > LARGE:
        fast = compiled.placed(grad, tuple(input_sizes), normalize_dim(dim, len(input_sizes)), index)
        if fast is not None:
            return fast
    if grad.__class__ is np.ndarray or isinstance(grad, np.generic):
        result = _zeros(input_sizes, grad.dtype)  # which takes a sixth of the time of zeros_like
    else:
        result = np.zeros_like(grad, shape=tuple(input_sizes), order="C")
    if dim:
        result[(_ALL,) * normalize_dim(dim, result.ndim) + (index,)] = grad
    else:
        result[index] = grad
    return result


def slice_backward(
    grad: np.ndarray, input_sizes: Sequence[int], dim: int, start: int | None, end: int | None, step: int
) -> np.ndarray:
    """Zeros of `input_sizes` with `grad` at the slice along `dim`."""
    if grad.__class__ is np.ndarray:
        result = np.zeros(input_sizes, grad.dtype)
    else:
        result = np.zeros_like(grad, shape=tuple(input_sizes), order="C")
    result[(_ALL,) * normalize_dim(dim, result.ndim) + (_slice(start, end, step),)] = grad
    return result


def diagonal_backward(
    grad: np.ndarray, input_sizes: Sequence[int], offset: int = 0, dim1: int = 0, dim2: int = 1
) -> np.ndarray:
    """Zeros of `input_sizes` with `grad` on the diagonal."""
    result = np.zeros_like(grad, shape=tuple(input_sizes), order="C")
    diagonal(result, offset, dim1, dim2)[...] = grad
    return result


def unfold_backward(grad: np.ndarray, input_sizes: Sequence[int], dim: int, size: int, step: int) -> np.ndarray:
    """The windows of `grad` added up where they were taken from."""
    if step <= 0:
        raise ValueError(f"step is {step} but must be > 0")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    shape = tuple(input_sizes)
    result = np.zeros_like(grad, shape=shape, order="C")
    if not shape:
        return as_array(result + grad.sum()) if size else result
    dim = normalize_dim(dim, len(shape))
    before = (_ALL,) * dim
    windows = grad.shape[dim]
    if step >= size:  # no overlap: every place is written once
        for i in range(size):
            result[(*before, _slice(i, i + (windows - 1) * step + 1, step))] = grad[..., i]
    elif size <= windows:
        for i in range(size):
            result[(*before, _slice(i, i + (windows - 1) * step + 1, step))] += grad[..., i]
    else:
        for w in range(windows):
            window = np.moveaxis(grad[before + (w,)], -1, dim)
            result[(*before, _slice(w * step, w * step + size))] += window
    return result


def broadcast_tensors(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The arrays expanded to the shape they have in common (views)."""
    shape = broadcast_shape(*arrays)
    return tuple([expand(a, shape) for a in arrays])


def _replaced(a: np.ndarray, src: np.ndarray, view: Callable[..., np.ndarray], *place: Any) -> np.ndarray:
    """A copy of `a` whose part that `view` shows is `src`."""
    result = np.array(a, copy=True, order="K")
    part = view(result, *place)
    if part.shape != src.shape:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. "
            f"src size = {list(src.shape)}, slice size = {list(part.shape)}"
        )
    if part.ndim:
        part[...] = src
    else:
        np.copyto(part, src, casting="unsafe")
    return result


def select_scatter(a: np.ndarray, src: np.ndarray, dim: int, index: int) -> np.ndarray:
    """`a` with `src` in place of its part at `index` along `dim`."""
    return _replaced(a, src, select, dim, index)


def slice_scatter(
    a: np.ndarray, src: np.ndarray, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> np.ndarray:
    """`a` with `src` in place of a slice of it."""
    return _replaced(a, src, slice, dim, start, end, step)


def diagonal_scatter(a: np.ndarray, src: np.ndarray, offset: int = 0, dim1: int = 0, dim2: int = 1) -> np.ndarray:
    """`a` with `src` in place of its diagonal."""
    return _replaced(a, src, diagonal, offset, dim1, dim2)


def block_diag(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """A matrix with the given ones along its diagonal and zeros elsewhere; vectors are rows."""
    blocks = [np.atleast_2d(a) for a in arrays]
    result = np.zeros_like(
        blocks[0], shape=tuple(np.sum([b.shape for b in blocks], 0)), dtype=result_dtype(*arrays), order="C"
    )
    row = column = 0
    for block in blocks:
        rows, columns = block.shape
        result[row : row + rows, column : column + columns] = block
        row, column = row + rows, column + columns
    return result


def narrow_copy(a: np.ndarray, dim: int, start: int, length: int) -> np.ndarray:
    """A copy of the part of `length` from `start` on along `dim`."""
    return np.array(slice(a, dim, start, start + length), copy=True, order="C")
