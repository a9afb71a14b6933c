"""Views: other shapes and orders of the same elements.

Every kernel here returns an array that shares memory with its input, or raises as torch does; only `reshape` and
`flatten` may copy, and do so where no view can have the shape asked for.  The kernels that copy are in `rearrange.py`.
"""

from __future__ import annotations

import builtins
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .dims import check_long, normalize_dim, normalize_dims
from .promotion import complex_dtype, real_dtype, scalar_name
from .storage import restride, shape_text, storage_offset, storage_root, strides

_slice = builtins.slice
_ALL = _slice(None)
# The key that skips the first n dimensions, by n: indexing with a ready tuple is what makes select and slice quick.
_SKIP = tuple([(_ALL,) * n for n in range(65)])


# ------------------------------------------------------------------------------------------------------ new shapes


def view(a: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """The elements of `a` in the shape `size`, without a copy."""
    try:
        result = a.reshape(size)
    except ValueError:
        raise _wrong_size(a, size) from None
    return checked_view(a, size, result)


def checked_view(a: np.ndarray, size: Sequence[int], result: np.ndarray) -> np.ndarray:
    """`result`, which is ``a.reshape(size)``, if it is no copy."""
    base = result.base
    if base is a and result.shape == size:
        return result
    for s in size:
        if s < -1:  # NumPy takes any negative size for -1
            raise _wrong_size(a, size)
    if base is a or (base is not None and base is a.base) or a.flags.c_contiguous:
        return result
    raise RuntimeError(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead."
    )


def is_viewable(a: np.ndarray, size: Sequence[int]) -> bool:
    """Can `view` give `a` the shape `size`, if that has as many elements? Decided from the strides, without a copy.

    Dimensions of `a` that lie in memory as one are taken together; each such block must be cut into whole
    dimensions of `size`.
    """
    if a.flags.c_contiguous or not a.size:
        return True
    sizes = list(size)
    if -1 in sizes:
        sizes[sizes.index(-1)] = a.size // (-math.prod(sizes) or 1)
    sizes = [n for n in sizes if n != 1]
    old = [(n, step) for n, step in zip(a.shape, a.strides, strict=True) if n != 1]
    block = 1
    for d in range(len(old) - 1, -1, -1):
        n, step = old[d]
        block *= n
        if d and old[d - 1][1] == n * step:  # the next dimension goes on where this one ends
            continue
        taken = 1
        while sizes and taken < block:
            taken *= sizes.pop()
        if taken != block:
            return False
        block = 1
    return not sizes


def reshape(a: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The elements of `a` in `shape`: a view where that is possible, else a copy."""
    try:
        result = a.reshape(shape)
    except (ValueError, TypeError):
        raise _wrong_size(a, shape) from None
    if result.shape != shape:
        for s in shape:
            if s < -1:  # NumPy takes any negative size for -1
                raise _wrong_size(a, shape)
    return result


def _wrong_size(a: np.ndarray, size: Sequence[int]) -> Exception:
    try:
        size = [operator.index(s) for s in size]
    except TypeError:
        return TypeError(f"view(): argument 'size' must be tuple of ints, not {size!r}")
    text = shape_text(size)
    if size.count(-1) > 1:
        return RuntimeError("only one dimension can be inferred")
    for i, s in enumerate(size):
        if not -(2**63) <= s < 2**63:
            return TypeError(
                f"argument 'shape' failed to unpack the object at pos {i + 1} with error "
                '"Overflow when unpacking long long: an int argument must be less than 2**63"'
            )
        if s < -1:
            return RuntimeError(f"invalid shape dimension {s} at index {i} of shape {text}")
    if a.size == 0 and -1 in size and 0 in size:
        return RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {text} because the unspecified dimension size -1 can be "
            "any value and is ambiguous"
        )
    return RuntimeError(f"shape '{text}' is invalid for input of size {a.size}")


def flatten(a: np.ndarray, start_dim: int = 0, end_dim: int = -1) -> np.ndarray:
    """Dimensions `start_dim` to `end_dim` made one; a view where that is possible."""
    n = a.ndim
    start, end = normalize_dim(start_dim, n), normalize_dim(end_dim, n)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    shape = a.shape
    # The size is given rather than inferred: an array without elements has no size to infer.
    return a.reshape((*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


def unflatten(a: np.ndarray, dim: int, sizes: Sequence[int]) -> np.ndarray:
    """Dimension `dim` made several."""
    dim = normalize_dim(dim, a.ndim)
    sizes = tuple(sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not a.ndim:
        raise RuntimeError("unflatten got an unexpected error:\nDimension specified as 0 but tensor has no dimensions")
    n = a.shape[dim]
    if sizes.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    given = math.prod([s for s in sizes if s != -1])
    fits = given == n if -1 not in sizes else given > 0 and n % given == 0
    if not fits:
        raise RuntimeError(
            f"unflatten: Provided sizes {shape_text(sizes)} don't multiply up to the size of dim {dim} ({n}) "
            "in the input tensor"
        )
    sizes = tuple([n // given if s == -1 else s for s in sizes])
    return view(a, (*a.shape[:dim], *sizes, *a.shape[dim + 1 :]))


def expand(a: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """`a` repeated along new leading dimensions and those of size 1; the repeats are one element with stride 0."""
    shape = a.shape
    if not shape and a.__class__ is np.ndarray and -1 not in size:
        return np.ndarray(size, a.dtype, a, 0, (0,) * len(size))  # the gradient of a full reduction
    lead = len(size) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"expand(torch.Tensor{{{shape_text(shape)}}}, size={shape_text(size)}): the number of sizes provided "
            f"({len(size)}) must be greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    new_shape, new_strides = list(size), [0] * len(size)
    old_strides = a.strides
    for i in range(lead):
        if size[i] < 0:
            raise RuntimeError(
                f"The expanded size of the tensor ({size[i]}) isn't allowed in a leading, non-existing dimension {i}"
            )
    for i, have in enumerate(shape, lead):
        want = new_shape[i]
        if want == have or want == -1:
            new_shape[i] = have
            new_strides[i] = old_strides[i - lead]
        elif have != 1 or want < 0:
            raise RuntimeError(
                f"The expanded size of the tensor ({want}) must match the existing size ({have}) at non-singleton "
                f"dimension {i}.  Target sizes: {shape_text(size)}.  Tensor sizes: {shape_text(shape)}"
            )
    return restride(a, tuple(new_shape), tuple(new_strides))


broadcast_to = expand


def squeeze(a: np.ndarray, dim: int | Sequence[int] | None = None) -> np.ndarray:
    """`a` without its dimensions of size 1, or without those of `dim` that have size 1."""
    if dim is None:
        return a.reshape([n for n in a.shape if n != 1]) if a.flags.c_contiguous else a.squeeze()[...]
    if dim.__class__ is int:
        dim = normalize_dim(dim, a.ndim)
        return a.squeeze(dim) if a.ndim and a.shape[dim] == 1 else a[...]
    if not isinstance(dim, int) and not len(dim):  # type: ignore[arg-type]
        return a[...]
    drop = tuple([d for d in normalize_dims(dim, a.ndim) if a.ndim and a.shape[d] == 1])
    return a.squeeze(drop) if drop else a[...]


def unsqueeze(a: np.ndarray, dim: int) -> np.ndarray:
    """`a` with a new dimension of size 1 at `dim`."""
    return a[_SKIP[normalize_dim(dim, a.ndim + 1)] + (None,)]


def view_dtype(a: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The memory of `a` read as elements of another dtype; the last dimension grows or shrinks with their size."""
    item, new_item = a.itemsize, dtype.itemsize
    if item == new_item:
        return a.view(dtype)
    how = f"to view {scalar_name(a.dtype)} as {scalar_name(dtype)} (different element sizes)"
    if not a.ndim:
        raise RuntimeError(f"self.dim() cannot be 0 {how}")
    ratio = new_item // item
    if ratio and a.shape[-1] % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {how}, but got {a.shape[-1]}")
    steps = strides(a)
    if a.size and steps[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {how}, but got {steps[-1]}")
    if ratio:
        if storage_offset(a) % ratio:
            raise RuntimeError(f"self.storage_offset() must be divisible by {ratio} {how}, but got {storage_offset(a)}")
        for dim, step in enumerate(steps[:-1]):
            if step % ratio and a.size:
                raise RuntimeError(f"self.stride({dim}) must be divisible by {ratio} {how}, but got {step}")
    view = a.view(dtype)
    if not a.size:  # of nothing, NumPy's view has no strides either
        view = restride(view, view.shape, (*(step * item for step in steps[:-1]), new_item))
    return view


def view_as_real(a: np.ndarray) -> np.ndarray:
    """A complex array as a real one with a last dimension of size 2."""
    if a.dtype.kind not in "cW":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return a[..., None].view(real_dtype(a.dtype))


def view_as_complex(a: np.ndarray) -> np.ndarray:
    """A real array with a last dimension of size 2 as a complex one."""
    if a.dtype.kind != "f" or a.itemsize == 1:
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            + scalar_name(a.dtype)
        )
    if not a.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if a.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    item = a.itemsize
    if a.size:
        if a.strides[-1] != item:
            raise RuntimeError("Tensor must have a last dimension with stride 1")
        if any(s % (2 * item) for s, n in zip(a.strides[:-1], a.shape) if n != 1):
            raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
        if a.base is not None and storage_offset(a) % 2:
            raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return a.view(complex_dtype(a.dtype))[..., 0]


# ------------------------------------------------------------------------------------------------------ new orders


def transpose(a: np.ndarray, dim0: int, dim1: int) -> np.ndarray:
    """`a` with two dimensions exchanged."""
    try:
        return a.swapaxes(dim0, dim1)
    except (IndexError, ValueError, TypeError, OverflowError):  # NumPy's AxisError is both of the first two
        normalize_dim(dim0, a.ndim)
        normalize_dim(dim1, a.ndim)
        return a[...]


swapaxes = swapdims = transpose


def permute(a: np.ndarray, dims: Sequence[int]) -> np.ndarray:
    """`a` with its dimensions in the order `dims`."""
    try:
        return a.transpose(dims)
    except (IndexError, ValueError, TypeError):
        if len(dims) != a.ndim:
            raise RuntimeError(
                "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
                f"desired ordering of dimensions i.e. input.dim() = {a.ndim} is not equal to len(dims) = {len(dims)}"
            ) from None
        for d in dims:
            normalize_dim(d, a.ndim)
        raise RuntimeError("permute(): duplicate dims are not allowed.") from None


def t(a: np.ndarray) -> np.ndarray:
    """The transpose of a matrix; a vector as it is."""
    if a.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {a.ndim}D")
    return a.T


def movedim(a: np.ndarray, source: int | Sequence[int], destination: int | Sequence[int]) -> np.ndarray:
    """`a` with the dimensions `source` moved to the places `destination`."""
    n = a.ndim
    if isinstance(source, int) is not isinstance(destination, int):
        raise TypeError(
            f"movedim() received an invalid combination of arguments - got (Tensor, {type(source).__name__}, "
            f"{type(destination).__name__}), but expected two ints, or two tuples of ints"
        )
    given_from = [source] if isinstance(source, int) else list(source)
    given_to = [destination] if isinstance(destination, int) else list(destination)
    if len(given_from) != len(given_to):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({given_from} dims) should contain the same number "
            f"of dims as destination ({given_to} dims)"
        )
    moved = [normalize_dim(d, n) for d in given_from]
    places = [normalize_dim(d, n) for d in given_to]
    if len(set(moved)) != len(moved):
        raise RuntimeError(f"movedim: repeated dim in `source` ({given_from})")
    if len(set(places)) != len(places):
        raise RuntimeError(f"movedim: repeated dim in `destination` ({given_to})")
    if not n:
        return a[...]
    order = [-1] * n
    for s, d in zip(moved, places):
        order[d] = s
    rest = iter([d for d in range(n) if d not in moved])
    return a.transpose([next(rest) if d < 0 else d for d in order])


moveaxis = movedim


# ------------------------------------------------------------------------------------------------------ parts


def select(a: np.ndarray, dim: int, index: int) -> np.ndarray:
    """The part of `a` at `index` along `dim`, without that dimension."""
    if dim == 0 and index.__class__ is int:
        try:
            return a[index, ...]  # the Ellipsis makes NumPy give a 0-d view rather than a scalar
        except IndexError:
            pass
    shape = a.shape
    if dim < 0 or dim >= len(shape):
        if not shape:
            raise IndexError("select() cannot be applied to a 0-dim tensor.")
        dim = normalize_dim(dim, len(shape))
    n = shape[dim]
    if -n <= index < n:
        return a[index, ...] if dim == 0 else a[_SKIP[dim] + (index, ...)]
    raise IndexError(f"select(): index {index} out of range for tensor of size {shape_text(shape)} at dimension {dim}")


def slice(
    a: np.ndarray, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> np.ndarray:
    """Every `step`-th element of `a` from `start` to `end` along `dim`."""
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    if not a.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    key = _slice(start, end, step)
    found = a[key] if dim == 0 else a[_SKIP[normalize_dim(dim, a.ndim)] + (key,)]
    return found if found.size or not a.size else _nothing(a, normalize_dim(dim, a.ndim), start)


def _nothing(a: np.ndarray, dim: int, start: int | None) -> np.ndarray:
    """A slice without elements, where it begins: NumPy has all of them at the beginning of the array."""
    n = a.shape[dim]
    first = 0 if start is None else max(start + n, 0) if start < 0 else min(start, n)
    shape = (*a.shape[:dim], 0, *a.shape[dim + 1 :])
    root = storage_root(a)
    if type(a) is not np.ndarray or not root.flags.c_contiguous:
        return a[_SKIP[dim] + (_slice(0, 0),)]
    offset = a.__array_interface__["data"][0] - root.__array_interface__["data"][0] + first * a.strides[dim]
    return np.ndarray(shape, a.dtype, root, min(offset, root.nbytes), a.strides)


def narrow(a: np.ndarray, dim: int, start: int, length: int) -> np.ndarray:
    """`length` elements of `a` from `start` along `dim`."""
    start, end = narrow_range(a, dim, start, length)
    return a[_SKIP[normalize_dim(dim, a.ndim)] + (_slice(start, end),)]


def narrow_range(a: np.ndarray, dim: int, start: int, length: int) -> tuple[int, int]:
    """The slice that `narrow` takes, as start and end."""
    if not a.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    dim = normalize_dim(dim, a.ndim)
    start, n = operator.index(start), a.shape[dim]
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    if start < 0:
        start += n
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return start, start + length


def diagonal(a: np.ndarray, offset: int = 0, dim1: int = 0, dim2: int = 1) -> np.ndarray:
    """The diagonal of the matrices in dimensions `dim1` and `dim2`, as the last dimension."""
    d1, d2 = normalize_dim(dim1, a.ndim), normalize_dim(dim2, a.ndim)
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if not -a.shape[d1] <= offset <= a.shape[d2]:  # beyond the matrix all are alike, and NumPy takes 32 bits
        check_long(offset)
        offset = a.shape[d2] if offset > 0 else -a.shape[d1]
    result = a.diagonal(offset, d1, d2)
    if a.flags.writeable:  # NumPy protects diagonals; torch writes to them
        result.flags.writeable = True
    return result


def unbind(a: np.ndarray, dim: int = 0) -> tuple[np.ndarray, ...]:
    """The parts of `a` along `dim`, each without that dimension."""
    if not a.ndim:
        raise IndexError(f"Dimension specified as {normalize_dim(dim, 0)} but tensor has no dimensions")
    dim = normalize_dim(dim, a.ndim)
    skip = _SKIP[dim]
    return tuple([a[skip + (i, ...)] for i in range(a.shape[dim])])


def split(a: np.ndarray, split_size: int | Sequence[int], dim: int = 0) -> tuple[np.ndarray, ...]:
    """`a` in parts of `split_size` along `dim`; the last may be smaller."""
    if not isinstance(split_size, int) and hasattr(split_size, "__len__"):
        return split_with_sizes(a, split_size, dim)
    split_size = operator.index(split_size)  # type: ignore[arg-type]
    if not a.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    dim = normalize_dim(dim, a.ndim)
    n = a.shape[dim]
    if split_size == 0 and n != 0:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
    skip = _SKIP[dim]
    return tuple([a[(*skip, _slice(i, i + split_size))] for i in range(0, n, split_size or 1)]) or (a[...],)


def split_with_sizes(a: np.ndarray, split_sizes: Sequence[int], dim: int = 0) -> tuple[np.ndarray, ...]:
    """`a` in parts of these sizes along `dim`."""
    if not a.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = normalize_dim(dim, a.ndim)
    n = a.shape[dim]
    if any(s < 0 for s in split_sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={shape_text(split_sizes)}"
        )
    if sum(split_sizes) != n:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {dim}), "
            f"but got split_sizes={shape_text(split_sizes)}"
        )
    skip, start, parts = _SKIP[dim], 0, []
    for s in split_sizes:
        parts.append(a[(*skip, _slice(start, start + s))])
        start += s
    return tuple(parts)


def chunk(a: np.ndarray, chunks: int, dim: int = 0) -> tuple[np.ndarray, ...]:
    """`a` in at most `chunks` parts of one size along `dim`; the last may be smaller."""
    if not a.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = normalize_dim(dim, a.ndim)
    n = a.shape[dim]
    if n == 0:
        return split_with_sizes(a, [0] * chunks, dim)
    return split(a, -(-n // chunks), dim)


def tensor_split(a: np.ndarray, indices_or_sections: Any, dim: int = 0) -> tuple[np.ndarray, ...]:
    """`a` in parts along `dim`: so many nearly equal ones, or cut at the given indices."""
    cuts = tensor_split_cuts(a, indices_or_sections, dim)
    skip = _SKIP[normalize_dim(dim, a.ndim)]
    return tuple([a[(*skip, _slice(start, end))] for start, end in itertools.pairwise(cuts)])


def tensor_split_cuts(a: np.ndarray, indices_or_sections: Any, dim: int = 0) -> list[int | None]:
    """Where `tensor_split` cuts: 0, the cuts, and None for the end."""
    if not a.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    dim = normalize_dim(dim, a.ndim)
    if hasattr(indices_or_sections, "__len__") and getattr(indices_or_sections, "ndim", True):
        return [0, *[int(i) for i in indices_or_sections], None]
    sections = operator.index(indices_or_sections)
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    small, larger = divmod(a.shape[dim], sections)
    return [i * small + min(i, larger) for i in range(sections + 1)]


def unfold(a: np.ndarray, dimension: int, size: int, step: int) -> np.ndarray:
    """All windows of `size` elements along `dimension`, `step` apart, as a new last dimension."""
    dim = normalize_dim(dimension, a.ndim)
    n = a.shape[dim] if a.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {n} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not a.ndim:
        return a.reshape(1)[:size]
    shape, byte_strides = [*a.shape, size], [*a.strides, a.strides[dim]]
    shape[dim] = (n - size) // step + 1
    byte_strides[dim] *= step
    return restride(a, tuple(shape), tuple(byte_strides))
