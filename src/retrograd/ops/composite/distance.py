"""Norms and distances."""

from __future__ import annotations

import math
from typing import Any

from ..._generated import functions as generated
from ...kernels.dims import normalize_dim
from ...kernels.linalg_checks import check_matrices
from ...kernels.promotion import scalar_name
from ...tensor import Tensor
from ..registry import composite
from ..support import not_a_tensor, write_out
from .decompositions import linalg_svdvals
from .reduce import Dims, _aliased


@composite()
def norm(
    input: Tensor, p: Any = "fro", dim: Dims = None, keepdim: bool = False, out: Any = None, dtype: Any = None,
    **aliases: Any,
) -> Tensor:  # fmt: skip
    """The p-norm of all elements, or over the dimensions `dim`.

    >>> import retrograd as torch
    >>> torch.tensor([3., 4.]).norm()
    tensor(5.)
    """
    dim, keepdim = _aliased("norm", dim, keepdim, aliases)
    if isinstance(p, Tensor):
        p = p.item()
    if p is None or p == "fro":
        if p == "fro" and isinstance(dim, (tuple, list)) and len(dim) > 2:
            raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(str(d) for d in dim)}")
        p = 2
    elif p == "nuc":
        if out is not None:
            return write_out(norm, out, (input, p, dim, keepdim), {} if dtype is None else {"dtype": dtype})
        return linalg_matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    elif isinstance(p, str):
        raise RuntimeError(f"norm(): expected p to be a number, 'fro' or 'nuc', but got {p!r}")
    return generated.linalg_vector_norm(input, p, dim, keepdim, dtype=dtype, out=out)


@composite()
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of ``input - other``."""
    for position, (name, value) in enumerate((("input", input), ("other", other)), 1):
        if not isinstance(value, Tensor):
            raise not_a_tensor("dist", name, position, value)
    return generated._dist(input, other, p)


@composite(method=False)
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norms over every dimension but `dim`, which are kept with size 1; over all for ``dim=-1``."""
    if dim == -1:
        return norm(v, pow)
    dim = normalize_dim(dim, v._memory_.ndim)
    ndim, n = v._memory_.ndim, v._memory_.shape[dim]
    if dim == 0:
        rows = v.contiguous().reshape((n, -1))
        return generated._norm(rows, pow, (1,)).reshape((n, *[1] * (ndim - 1)))
    if dim == ndim - 1:
        columns = v.contiguous().reshape((-1, n))
        return generated._norm(columns, pow, (0,)).reshape((*[1] * (ndim - 1), n))
    return norm_except_dim(v.transpose(0, dim), pow, 0).transpose(0, dim)


_COMPUTE_MODES = (
    None, "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist",
)  # fmt: skip


@composite(method=False)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: Any = None) -> Tensor:
    """The p-norms of the differences between every row of `x1` and every row of `x2`.

    >>> import retrograd as torch
    >>> torch.cdist(torch.tensor([[0., 0.]]), torch.tensor([[3., 4.], [0., 1.]]))
    tensor([[5., 1.]])
    """
    for name, x in (("X1", x1), ("X2", x2)):
        if x._memory_.dtype.kind not in "fV":
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype}")
        if x._memory_.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x._memory_.ndim}D")
    if x1._memory_.shape[-1] != x2._memory_.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1._memory_.shape[-1]} X2: {x2._memory_.shape[-1]}"
        )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if compute_mode not in _COMPUTE_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    if x1._memory_.dtype != x2._memory_.dtype:
        names = scalar_name(x1._memory_.dtype), scalar_name(x2._memory_.dtype)
        raise RuntimeError("expected scalar type {} but found {}".format(*names))
    many = max(x1._memory_.shape[-2], x2._memory_.shape[-2]) > 25
    if p == 2 and (compute_mode == _COMPUTE_MODES[2] or (many and compute_mode in _COMPUTE_MODES[:2])):
        return generated._euclidean_dist(x1, x2)
    return generated._cdist(x1, x2, float(p))


@composite("nn.functional.pdist", method=False)
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The p-norms of the differences between the rows of a matrix, each pair once."""
    if input._memory_.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input._memory_.ndim}D")
    if input._memory_.dtype.kind == "c":
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return generated._pdist(input, float(p))


@composite()
def renorm(input: Tensor, p: float, dim: int, maxnorm: float, *, out: Any = None) -> Tensor:
    """`input` with each slice along `dim` scaled down to the p-norm `maxnorm` if it has a greater one."""
    p, maxnorm = _check_renorm(input, p, maxnorm)
    return generated._renorm(input, p, dim, maxnorm, out=out)


def _check_renorm(input: Tensor, p: float, maxnorm: float) -> tuple[float, float]:
    ndim = input._memory_.ndim
    for name, number in (("p", p), ("maxnorm", maxnorm)):
        if isinstance(number, complex):
            raise RuntimeError(f"renorm: {name} must be real-valued, but got {number}")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {ndim} dimensions")
    return float(p), float(maxnorm)


@composite(space="Tensor")
def renorm_(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """In-place `renorm`."""
    p, maxnorm = _check_renorm(input, p, maxnorm)
    return generated._renorm_(input, p, dim, maxnorm)


@composite(method=False)
def linalg_matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norms of matrices: "fro", "nuc", or of order inf, 1, 2 and their negatives."""
    check_matrices(A._memory_, "linalg.matrix_norm")
    if A._memory_.dtype.kind not in "fcVW":
        raise RuntimeError(
            "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(A._memory_.dtype)}"
        )
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(str(d) for d in dims)}")
    rows, columns = (normalize_dim(d, A.ndim) for d in dims)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({rows}, {columns})")
    if ord == "fro":
        return generated.linalg_vector_norm(A, 2, (rows, columns), keepdim, dtype=dtype)
    if ord != "nuc" if isinstance(ord, str) else abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    A = A if dtype is None else A.to(dtype)
    if ord == "nuc" or abs(ord) == 2:
        values = linalg_svdvals(A.movedim((rows, columns), (-2, -1)))
        result = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord > 0 else values.amin(-1)
        if keepdim:
            for d in sorted((rows, columns)):
                result = result.unsqueeze(d)
        return result
    inner, outer = (columns, rows) if abs(ord) == math.inf else (rows, columns)
    sums = generated.linalg_vector_norm(A, 1, (inner,), keepdim)
    outer -= int(not keepdim and inner < outer)
    return sums.amax(outer, keepdim) if ord > 0 else sums.amin(outer, keepdim)


@composite(method=False, out=True)
def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of the singular values."""
    if isinstance(dim, bool):  # without dimensions, keepdim may be the second argument
        dim, keepdim = (-2, -1), dim
    return linalg_matrix_norm(input, "nuc", dim, keepdim)


@composite(method=False, out=True)
def frobenius_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The square root of the sum of the squares."""
    return generated._norm(input, 2, dim, keepdim)


@composite(method=False)
def linalg_norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of vectors or of matrices, by the number of dimensions in `dim`."""
    if dim is not None:
        dim = (int(dim),) if isinstance(dim, (int, Tensor)) else tuple(dim)
        if len(dim) not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got [{', '.join(str(d) for d in dim)}]"
            )
    elif ord is not None and A.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    if ord is not None and (isinstance(ord, str) or (len(dim) == 2 if dim is not None else A.ndim == 2)):
        return linalg_matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return generated.linalg_vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
