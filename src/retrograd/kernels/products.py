"""Products: of matrices, of vectors, of batches.

The ``mm`` family refuses operands of different dtypes, as torch does.  Half precision is multiplied in float32 and
rounded once, for NumPy has no BLAS for it.  `einsum` has a module of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import compiled
from .compiled_products import product as fast_product
from .dims import normalize_dim, normalize_dims
from .promotion import (
    broadcast_shape,
    c_name,
    cast_number,
    is_half,
    promote,
    result_dtype,
    scalar_name,
    store,
    unsupported,
)
from .shape import expand

SMALL = 256  # elements of a matrix: a product with fewer goes to BLAS in any case


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # Matrix times matrix or vector, already checked.
    if a.itemsize == 2 and is_half(a.dtype):
        return _product(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
    if a.ndim == 2 == b.ndim and a.size > SMALL and (fast := fast_product(a, b)) is not None:
        return fast
    if len(b) == 1 and a.ndim == 2:
        # ndarray.dot takes an operand of one element for a factor and leaves everything out where that is 0: NaN too.
        return np.multiply(a, b) if b.ndim == 2 else np.multiply(a[:, 0], b)
    return a.dot(b)


def _batched(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.itemsize == 2 and is_half(a.dtype):
        return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
    if a.ndim == 3 == b.ndim and a.shape[2] == b.shape[1]:
        count, rows, inside = a.shape
        if inside == 1:
            # Products of all pairs; with many rows, einsum has less to do for each than a ufunc.
            return np.einsum("bij,bjk->bik", a, b) if rows > 8 and a.dtype.char in "fd" else np.multiply(a, b)
        if b.strides[0] == 0 and count > 1 and a.dtype.char in "fdFD":
            # The same matrix for all, such as an expanded one: one product instead of many.
            return _product(a.reshape(count * rows, inside), b[0]).reshape(count, rows, b.shape[2])
    if a.ndim in (3, 4) and a.shape[:-2] == b.shape[:-2] and a.shape[-1] == b.shape[-2] and a.size > SMALL:
        fast = fast_product(a, b)
        if fast is not None:
            return fast
    return np.matmul(a, b)


def mm(mat1: np.ndarray, mat2: np.ndarray) -> np.ndarray:
    """The product of two matrices."""
    dtype = mat1.dtype
    if dtype is mat2.dtype and dtype.char in "fdFD" and mat1.ndim == 2 == mat2.ndim and len(mat2) != 1:
        if mat1.size > SMALL and mat1.shape[1] == len(mat2):
            fast = fast_product(mat1, mat2)
            if fast is not None:
                return fast
        try:
            return mat1.dot(mat2)
        except ValueError:
            pass  # of shapes that do not fit, which is told below
    _check_mm(mat1, mat2)
    return _product(mat1, mat2)


def _check_mm(mat1: np.ndarray, mat2: np.ndarray) -> None:
    if mat1.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            "mat1 and mat2 shapes cannot be multiplied "
            f"({mat1.shape[0]}x{mat1.shape[1]} and {mat2.shape[0]}x{mat2.shape[1]})"
        )
    if mat1.dtype != mat2.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{c_name(mat1.dtype)} != {c_name(mat2.dtype)}"
        )
    if mat1.dtype.kind == "b":
        unsupported("addmm_impl_cpu_", mat1.dtype)


def bmm(batch1: np.ndarray, batch2: np.ndarray) -> np.ndarray:
    """The products of two batches of matrices."""
    _check_bmm(batch1, batch2)
    return _batched(batch1, batch2)


def _check_bmm(batch1: np.ndarray, batch2: np.ndarray) -> None:
    if batch1.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor")
    if batch2.ndim != 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    n, _, k = batch1.shape
    if batch2.shape[0] != n or batch2.shape[1] != k:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{n}, {k}] but got: "
            f"[{batch2.shape[0]}, {batch2.shape[1]}]."
        )
    if batch1.dtype != batch2.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(batch1.dtype)} but found {scalar_name(batch2.dtype)}"
        )
    if batch1.dtype.kind == "b":
        unsupported("bmm", batch1.dtype)


def mv(input: np.ndarray, vec: np.ndarray) -> np.ndarray:
    """The product of a matrix and a vector."""
    shape, dtype = input.shape, input.dtype
    if len(shape) == 2 and vec.shape == shape[1:] and dtype is vec.dtype and dtype.char in "fd" and shape[1] != 1:
        return input.dot(vec)  # `_product`, without its questions
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {input.ndim}, {vec.ndim}")
    n, k = input.shape
    if vec.shape[0] != k:
        raise RuntimeError(f"size mismatch, got input ({n}), mat ({n}x{k}), vec ({vec.shape[0]})")
    if input.dtype != vec.dtype:
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {scalar_name(vec.dtype)}, "
            f"{scalar_name(input.dtype)}, and {scalar_name(vec.dtype)}"
        )
    if input.dtype.kind == "b":
        unsupported("addmv_impl_cpu", input.dtype)
    return _product(input, vec)


_LONG = 1 << 18  # elements from which on a dot product is worth several threads, where BLAS has one


def dot(input: np.ndarray, tensor: np.ndarray) -> np.ndarray:
    """The sum of the products of two vectors' elements."""
    _check_dot("dot", input, tensor)
    if input.size >= _LONG and compiled.worth(input.size) > 1:
        fast = compiled.sum_rows(input, 1, tensor)
        if fast is not None:
            return fast.reshape(())
    return np.asarray(_product(input, tensor))


def vdot(input: np.ndarray, other: np.ndarray) -> np.ndarray:
    """As `dot`, with the first vector conjugated."""
    _check_dot("vdot", input, other)
    return np.asarray(_product(input.conj() if input.dtype.kind == "c" else input, other))


def _check_dot(name: str, a: np.ndarray, b: np.ndarray) -> None:
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {scalar_name(a.dtype)} and "
            f"{scalar_name(b.dtype)}"
        )
    if a.shape != b.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{a.size}] and src [{b.size}] to have the same number of "
            f"elements, but got {a.size} and {b.size} elements respectively"
        )
    if a.dtype.kind == "b":
        unsupported(name, a.dtype)


def outer(input: np.ndarray, vec2: np.ndarray) -> np.ndarray:
    """Every element of one vector times every element of the other."""
    for name, v in (("self", input), ("vec2", vec2)):
        if v.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {v.ndim}-D")
    if input.dtype != vec2.dtype:
        input, vec2 = promote(input, vec2)
    return np.multiply(input[:, None], vec2)


def matmul(input: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The product by torch's rules: of vectors, matrices or batches that are broadcast."""
    n, m = input.ndim, other.ndim
    if n == 2 and m == 2:
        return mm(input, other)
    if n == 0 or m == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {n}D and {m}D")
    if n == 1 and m == 1:
        return dot(input, other)
    if n == 2 and m == 1:
        return mv(input, other)
    if n == 1 and m == 2:
        return mm(input[None], other)[0]
    shape = input.shape
    if m <= 2:  # one product with all the rows at once
        rows = input.reshape(math.prod(shape[:-1]), shape[-1])
        result = mv(rows, other) if m == 1 else mm(rows, other)
        return result.reshape(shape[:-1] + other.shape[1:])
    if input.dtype != other.dtype:
        _batch_shape(input, other)
        raise RuntimeError(f"expected scalar type {scalar_name(input.dtype)} but found {scalar_name(other.dtype)}")
    if input.dtype.kind == "b":
        unsupported("bmm", input.dtype)
    try:
        return _batched(input, other)
    except ValueError:
        batch = math.prod(_batch_shape(input, other))
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {shape[-1]}] but got: "
            f"[{batch}, {other.shape[-2]}]."
        ) from None


def _batch_shape(a: np.ndarray, b: np.ndarray) -> tuple[int, ...]:
    # The batch dimensions that two operands broadcast to.
    return broadcast_shape(np.empty((*a.shape[:-2], 0)), np.empty((*b.shape[:-2], 0)))[:-1]


def linear(input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    """``input @ weight.T + bias``."""
    n = input.ndim
    if n == 0 or weight.ndim == 0:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {n}D and {weight.ndim}D"
        )
    if weight.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D")
    if n == 2 == weight.ndim:
        result = mm(input, weight.T)
    elif weight.ndim == 1:
        result = matmul(input, weight)
    else:
        rows = input.reshape(math.prod(input.shape[:-1]), input.shape[-1])
        result = mm(rows, weight.T).reshape((*input.shape[:-1], weight.shape[0]))
    return result if bias is None else _add_scaled(result, bias, 1, 1, "self", "mat2")


def _add_scaled(
    product: np.ndarray, input: np.ndarray, beta: Any, alpha: Any, first: str = "self", second: str = "mat2"
) -> np.ndarray:
    # beta * input + alpha * product, computed in the memory of the product.
    if input.dtype != product.dtype:
        raise RuntimeError(
            f"{first} and {second} must have the same dtype, but got {scalar_name(input.dtype)} and "
            f"{scalar_name(product.dtype)}"
        )
    if alpha.__class__ is not int or beta.__class__ is not int or not alpha == 1 == beta:
        alpha, beta = cast_number(alpha, product.dtype), cast_number(beta, product.dtype)
    if not product.ndim:
        return np.asarray(product * alpha + (input * beta if beta != 0 else 0), dtype=product.dtype)
    if alpha != 1:
        product *= alpha
    try:
        if beta == 1:
            product += input
        elif beta != 0:  # with a beta of 0 a NaN in the input does not count
            product += input * beta
        else:
            expand(input, product.shape)
    except ValueError:
        expand(input, product.shape)
        raise
    return product


def _other_dtype(input: np.ndarray, mat1: np.ndarray, mat2: np.ndarray) -> RuntimeError:
    # One of three that are to be multiplied and added has not the dtype of the second factor.
    name, other = ("mat1", mat1) if input.dtype == mat2.dtype else ("self", input)
    return RuntimeError(
        f"{name} and mat2 must have the same dtype, but got {scalar_name(other.dtype)} and {scalar_name(mat2.dtype)}"
    )


def addmm(
    input: np.ndarray,
    mat1: np.ndarray,
    mat2: np.ndarray,
    beta: Any = 1,
    alpha: Any = 1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """``beta * input + alpha * (mat1 @ mat2)``."""
    if out is None and beta == 1 == alpha and input.dtype is mat1.dtype and mat1.ndim == 2 == mat2.ndim:
        if mat1.size > SMALL and mat1.shape[1] == len(mat2) and input.shape == mat2.shape[1:]:
            fast = fast_product(mat1, mat2, input)
            if fast is not None:
                return fast
        try:
            product = mm(mat1, mat2)
            if product.dtype is input.dtype:
                return np.add(product, input, out=product)
        except (RuntimeError, ValueError):
            pass  # of dtypes or shapes that do not fit, which is told below
    for name, m in (("mat1", mat1), ("mat2", mat2)):
        if m.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {m.ndim}-D tensor")
    if mat1.dtype != mat2.dtype and mat1.shape[1] == mat2.shape[0]:
        raise _other_dtype(input, mat1, mat2)
    return store(_add_scaled(mm(mat1, mat2), input, beta, alpha), out)


def addmv(
    input: np.ndarray,
    mat: np.ndarray,
    vec: np.ndarray,
    beta: Any = 1,
    alpha: Any = 1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """``beta * input + alpha * (mat @ vec)``."""
    if mat.ndim != 2 or vec.ndim != 1 or input.ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}")
    n, k = mat.shape
    if vec.shape[0] != k or input.size not in (1, n):
        raise RuntimeError(f"size mismatch, got input ({input.size}), mat ({n}x{k}), vec ({vec.shape[0]})")
    if not input.dtype == mat.dtype == vec.dtype:
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {scalar_name(input.dtype)}, "
            f"{scalar_name(mat.dtype)}, and {scalar_name(vec.dtype)}"
        )
    return store(_add_scaled(mv(mat, vec), input, beta, alpha), out)


def addbmm(
    input: np.ndarray,
    batch1: np.ndarray,
    batch2: np.ndarray,
    beta: Any = 1,
    alpha: Any = 1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """``beta * input + alpha * (the sum of batch1 @ batch2 over the batch)``."""
    if batch1.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor")
    if batch2.ndim != 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    if batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError(
            f"batch1 and batch2 must have same number of batches, got {batch1.shape[0]} and {batch2.shape[0]}"
        )
    b, n, k = batch1.shape
    if k != batch2.shape[1]:
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({n}x{k} and {batch2.shape[1]}x{batch2.shape[2]})")
    if batch1.dtype != batch2.dtype:
        raise _other_dtype(input, batch1, batch2)
    # A sum over the batch is one longer inner product.
    product = mm(batch1.transpose(1, 0, 2).reshape(n, b * k), batch2.reshape(b * k, batch2.shape[2]))
    return store(_add_scaled(product, input, beta, alpha), out)


def baddbmm(
    input: np.ndarray,
    batch1: np.ndarray,
    batch2: np.ndarray,
    beta: Any = 1,
    alpha: Any = 1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """``beta * input + alpha * (batch1 @ batch2)``."""
    if batch1.ndim == 3 == batch2.ndim and not input.dtype == batch1.dtype == batch2.dtype:
        names = [c_name(x.dtype) for x in (input, batch1, batch2)]
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {names[0]}, batch1: {names[1]}, batch2: {names[2]}"
        )
    return store(_add_scaled(bmm(batch1, batch2), input, beta, alpha), out)


def addr(
    input: np.ndarray,
    vec1: np.ndarray,
    vec2: np.ndarray,
    beta: Any = 1,
    alpha: Any = 1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """``beta * input + alpha * outer(vec1, vec2)``."""
    for name, v in (("vec1", vec1), ("vec2", vec2)):
        if v.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {v.ndim}-D")
    dtype = result_dtype(input, vec1, vec2)
    for name, x in (("alpha", alpha), ("beta", beta)):
        if isinstance(x, bool) and dtype.kind != "b":
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
        if dtype.kind in "iub" and isinstance(x, (float, complex)):
            raise RuntimeError(
                f"For integral input tensors, argument {name} must not be a floating point number."
            )
    product = vec1.astype(dtype, copy=False)[:, None] * vec2.astype(dtype, copy=False)
    return store(_add_scaled(product, input.astype(dtype, copy=False), beta, alpha), out)


def tensordot(a: np.ndarray, b: np.ndarray, dims: int | Sequence[Sequence[int]] = 2) -> np.ndarray:
    """The sum of products over the last `dims` dimensions of `a` and the first of `b`, or over two lists of them."""
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims_a: Sequence[int] = range(-dims, 0)
        dims_b: Sequence[int] = range(dims)
    else:
        dims_a, dims_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    if len(dims_a) != len(dims_b):
        raise RuntimeError("both dimension lists should have same length")
    if a.dtype != b.dtype:
        raise RuntimeError("both inputs should have same dtype")
    for d, e in zip(dims_a, dims_b):
        n, m = a.shape[normalize_dim(d, a.ndim)], b.shape[normalize_dim(e, b.ndim)]
        if n == 1 != m:
            b = b.sum(e, keepdims=True, dtype=b.dtype)
        elif m == 1 != n:
            a = a.sum(d, keepdims=True, dtype=a.dtype)
        elif n != m:
            raise RuntimeError(
                "contracted dimensions need to match, but first has size "
                f"{n} in dim {d} and second has size {m} in dim {e}"
            )
    over_a = normalize_dims(dims_a, a.ndim) if dims_a else ()
    over_b = normalize_dims(dims_b, b.ndim) if dims_b else ()
    keep_a = [d for d in range(a.ndim) if d not in over_a]
    keep_b = [d for d in range(b.ndim) if d not in over_b]
    shape_a, shape_b = [a.shape[d] for d in keep_a], [b.shape[d] for d in keep_b]
    inner = math.prod([a.shape[d] for d in over_a])
    left = a.transpose([*keep_a, *over_a]).reshape(math.prod(shape_a), inner)
    right = b.transpose([*over_b, *keep_b]).reshape(inner, math.prod(shape_b))
    return mm(left, right).reshape(shape_a + shape_b)


def kron(input: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The Kronecker product: `other`, scaled by every element of `input`, side by side."""
    if input.dtype != other.dtype:
        dtype = result_dtype(input, other)
        input, other = input.astype(dtype, copy=False), other.astype(dtype, copy=False)
    n = max(input.ndim, other.ndim)
    a = (1,) * (n - input.ndim) + input.shape
    b = (1,) * (n - other.ndim) + other.shape
    left = input.reshape([s for size in a for s in (size, 1)])
    right = other.reshape([s for size in b for s in (1, size)])
    return np.asarray(np.multiply(left, right)).reshape([x * y for x, y in zip(a, b)])


def trace(input: np.ndarray) -> np.ndarray:
    """The sum of the diagonal of a matrix."""
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    if input.dtype.kind == "b":
        unsupported("trace", input.dtype)
    dtype = np.int64 if input.dtype.kind in "iu" else None
    return np.asarray(np.add.reduce(input.diagonal(), dtype=dtype))


def linalg_cross(input: np.ndarray, other: np.ndarray, dim: int = -1) -> np.ndarray:
    """The cross products of the vectors of length 3 along `dim`."""
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if not input.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = normalize_dim(dim, input.ndim)
    if input.shape[d] != 3 or other.shape[d] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[d]} and {other.shape[d]}"
        )
    if input.dtype.kind == "b":
        unsupported("cross", input.dtype)
    if input.dtype != other.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(input.dtype)} but found {scalar_name(other.dtype)}")
    shape = broadcast_shape(input, other)
    result = np.empty_like(input, shape=shape, order="C")
    a, b, c = np.moveaxis(input, d, 0), np.moveaxis(other, d, 0), np.moveaxis(result, d, 0)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        np.multiply(a[j], b[k], out=c[i, ...])
        c[i] -= a[k] * b[j]
    return result


def cross(input: np.ndarray, other: np.ndarray, dim: int | None = None) -> np.ndarray:
    """As `linalg_cross`; without a `dim`, along the first dimension of size 3."""
    if dim is None:
        if input.ndim != other.ndim:
            raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
        dim = next((d for d, n in enumerate(input.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross(input, other, dim)
