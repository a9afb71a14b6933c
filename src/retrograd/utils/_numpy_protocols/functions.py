"""NumPy's functions of arrays as operators of ours: arguments under NumPy's names, as the operators want them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import fft, linalg
from ...ops import namespace as ops
from ...tensor import Tensor, wrap
from .ufuncs import tensor_of

__all__ = ["ALWAYS", "BY_ARRAYS", "FUNCTIONS"]

_No = np._NoValue  # type: ignore[attr-defined]
FUNCTIONS: dict[Any, Callable[..., Any]] = {}


def _stands_for(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def declare(ours: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            FUNCTIONS[function] = ours
        return ours

    return declare


def _only(function: str, **options: Any) -> None:
    """Refuse an option of NumPy's that the operator does not have."""
    for name, value in options.items():
        if value is not None and value is not _No and value is not True:
            raise TypeError(
                f"numpy.{function} of a Tensor: the argument {name} is not supported; use torch's function, or "
                "x.detach().numpy()"
            )


def _t(value: Any) -> Tensor:
    """A Tensor of a Tensor, an array, a number or a list."""
    value = tensor_of(value)
    return value if isinstance(value, Tensor) else wrap(np.asarray(value))


def _tensors(values: Any) -> list[Tensor]:
    return [_t(value) for value in values]


def _dtype(dtype: Any) -> Any:
    return None if dtype is None or dtype is _No else wrap(np.empty(0, dtype)).dtype


def _dims(x: Tensor, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.dim()))
    return tuple(axis) if isinstance(axis, (tuple, list)) else (int(axis),)


def _is(flag: Any) -> bool:
    return flag is not _No and bool(flag)


# ---------------------------------------------------------------------------------------------------------- reductions


def _real(x: Tensor) -> Tensor:
    """Integers as NumPy's means have them: in double precision."""
    return x if x.dtype.is_floating_point or x.dtype.is_complex else x.double()


@_stands_for(np.sum)
def _sum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _No, initial: Any = _No,
    where: Any = _No,
) -> Tensor:  # fmt: skip
    _only("sum", out=out, initial=initial, where=where)
    return ops.sum(_t(a), _dims(_t(a), axis), keepdim=_is(keepdims), dtype=_dtype(dtype))


@_stands_for(np.prod)
def _prod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _No, initial: Any = _No,
    where: Any = _No,
) -> Tensor:  # fmt: skip
    _only("prod", out=out, initial=initial, where=where)
    a = _t(a)
    for dim in sorted([d % max(a.dim(), 1) for d in _dims(a, axis)], reverse=True):
        a = ops.prod(a, dim, keepdim=_is(keepdims), dtype=_dtype(dtype))
    return a


@_stands_for(np.mean)
def _mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _No, *, where: Any = _No
) -> Tensor:
    _only("mean", out=out, where=where)
    a = _real(_t(a))
    return ops.mean(a, _dims(a, axis), keepdim=_is(keepdims), dtype=_dtype(dtype))


def _spread(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    def ours(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = _No, *,
        where: Any = _No, mean: Any = _No, correction: Any = _No,
    ) -> Tensor:  # fmt: skip
        _only(name, out=out, where=where, mean=mean)
        a = _real(_t(a)).to(_dtype(dtype) or _real(_t(a)).dtype)
        return function(
            a, _dims(a, axis), correction=ddof if correction is _No else correction, keepdim=_is(keepdims)
        )

    return ours


_stands_for(np.std)(_spread(ops.std, "std"))
_stands_for(np.var)(_spread(ops.var, "var"))


def _extreme(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    def ours(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = _No, initial: Any = _No, where: Any = _No
    ) -> Tensor:
        _only(name, out=out, initial=initial, where=where)
        return function(_t(a), _dims(_t(a), axis), keepdim=_is(keepdims))

    return ours


_stands_for(np.max, np.amax)(_extreme(ops.amax, "max"))
_stands_for(np.min, np.amin)(_extreme(ops.amin, "min"))
_stands_for(np.ptp)(_extreme(lambda a, dim, keepdim: ops.amax(a, dim, keepdim) - ops.amin(a, dim, keepdim), "ptp"))


def _truth(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    def ours(a: Any, axis: Any = None, out: Any = None, keepdims: Any = _No, *, where: Any = _No) -> Tensor:
        _only(name, out=out, where=where)
        return function(_t(a), _dims(_t(a), axis), keepdim=_is(keepdims))

    return ours


_stands_for(np.any)(_truth(ops.any, "any"))
_stands_for(np.all)(_truth(ops.all, "all"))


@_stands_for(np.size)
def _size(a: Any, axis: Any = None) -> int:
    shape = a.shape
    return int(np.prod([shape[d] for d in _dims(a, axis)], dtype=np.int64))


def _place(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    def ours(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = _No) -> Tensor:
        _only(name, out=out)
        return function(_t(a), axis, keepdim=_is(keepdims))

    return ours


_stands_for(np.argmax)(_place(ops.argmax, "argmax"))
_stands_for(np.argmin)(_place(ops.argmin, "argmin"))


def _running(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    def ours(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
        _only(name, out=out)
        a = _t(a)
        return function(a.flatten() if axis is None else a, 0 if axis is None else axis, dtype=_dtype(dtype))

    return ours


_stands_for(np.cumsum)(_running(ops.cumsum, "cumsum"))
_stands_for(np.cumprod)(_running(ops.cumprod, "cumprod"))


@_stands_for(np.quantile)
def _quantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, method: str = "linear",
              keepdims: Any = False, *, weights: Any = None) -> Tensor:  # fmt: skip
    _only("quantile", out=out, overwrite_input=overwrite_input or None, weights=weights)
    a = _t(a)
    q = _t(q).to(a.dtype)
    if isinstance(axis, (tuple, list)) and len(axis) == 1:
        (axis,) = axis
    return ops.quantile(a, q, axis, keepdim=_is(keepdims), interpolation=method)


@_stands_for(np.percentile)
def _percentile(a: Any, q: Any, *args: Any, **kwargs: Any) -> Tensor:
    return _quantile(a, _t(q).double() / 100, *args, **kwargs)


@_stands_for(np.median)
def _median(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Tensor:
    return _quantile(a, 0.5, axis, out, overwrite_input, keepdims=keepdims)


@_stands_for(np.average)
def _average(a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = _No) -> Tensor:
    _only("average", returned=returned or None)
    a = _real(_t(a))
    if weights is None:
        return ops.mean(a, _dims(a, axis), keepdim=_is(keepdims))
    weights = _t(weights)
    if weights.shape != a.shape:  # one for each place along the axis
        weights = weights.reshape([-1 if d == int(axis) % a.dim() else 1 for d in range(a.dim())]).expand_as(a)
    dims, keep = _dims(a, axis), _is(keepdims)
    return ops.sum(a * weights, dims, keepdim=keep) / ops.sum(weights, dims, keepdim=keep)


@_stands_for(np.trapezoid)
def _trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    return ops.trapezoid(_t(y), dx=dx, dim=axis) if x is None else ops.trapezoid(_t(y), _t(x), dim=axis)


@_stands_for(np.diff)
def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = _No, append: Any = _No) -> Tensor:
    ends = [None if end is _No else _t(end) for end in (prepend, append)]
    return ops.diff(_t(a), n, axis, *ends)


# -------------------------------------------------------------------------------------------------------------- shapes


@_stands_for(np.reshape)
def _reshape(a: Any, /, shape: Any, order: str = "C", *, copy: Any = None) -> Tensor:
    _only("reshape", order=None if order == "C" else order)
    a = ops.reshape(_t(a), shape if isinstance(shape, (tuple, list)) else (shape,))
    return a.clone() if copy else a


@_stands_for(np.ravel)
def _ravel(a: Any, order: str = "C") -> Tensor:
    _only("ravel", order=None if order == "C" else order)
    return _t(a).reshape(-1)


@_stands_for(np.transpose, np.permute_dims)
def _transpose(a: Any, axes: Any = None) -> Tensor:
    a = _t(a)
    return a.permute(tuple(range(a.dim()))[::-1] if axes is None else tuple(axes))


@_stands_for(np.squeeze)
def _squeeze(a: Any, axis: Any = None) -> Tensor:
    return _t(a).squeeze() if axis is None else _t(a).squeeze(_dims(_t(a), axis))


@_stands_for(np.expand_dims)
def _expand_dims(a: Any, axis: Any) -> Tensor:
    a = _t(a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    for d in sorted([d % (a.dim() + len(axes)) for d in axes]):
        a = a.unsqueeze(d)
    return a


@_stands_for(np.broadcast_to)
def _broadcast_to(array: Any, shape: Any, subok: Any = False) -> Tensor:
    _only("broadcast_to", subok=subok or None)
    return _t(array).expand(shape)


@_stands_for(np.concatenate)
def _concatenate(arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = None) -> Tensor:
    _only("concatenate", out=out, casting=casting)
    arrays = _tensors(arrays)
    if axis is None:
        arrays, axis = [a.flatten() for a in arrays], 0
    joined = ops.cat(arrays, axis)
    return joined if dtype is None else joined.to(_dtype(dtype))


@_stands_for(np.stack)
def _stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    _only("stack", out=out, dtype=dtype, casting=None if casting == "same_kind" else casting)
    return ops.stack(_tensors(arrays), axis)


def _beside(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    def ours(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
        _only(name, dtype=dtype, casting=None if casting == "same_kind" else casting)
        return function(_tensors(tup))

    return ours


_stands_for(np.vstack)(_beside(ops.vstack, "vstack"))
_stands_for(np.hstack)(_beside(ops.hstack, "hstack"))
_stands_for(np.dstack)(_beside(ops.dstack, "dstack"))
_stands_for(np.column_stack)(_beside(ops.column_stack, "column_stack"))


@_stands_for(np.split, np.array_split)
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    cuts = indices_or_sections
    return list(ops.tensor_split(_t(ary), cuts if isinstance(cuts, int) else tuple(cuts), axis))


@_stands_for(np.repeat)
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Tensor:
    repeats = repeats if isinstance(repeats, int) else _t(repeats)
    return ops.repeat_interleave(_t(a), repeats) if axis is None else ops.repeat_interleave(_t(a), repeats, axis)


@_stands_for(np.tile)
def _tile(A: Any, reps: Any) -> Tensor:
    return ops.tile(_t(A), (reps,) if isinstance(reps, int) else tuple(reps))


@_stands_for(np.flip)
def _flip(m: Any, axis: Any = None) -> Tensor:
    return ops.flip(_t(m), _dims(_t(m), axis))


@_stands_for(np.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    return ops.roll(_t(a), shift, () if axis is None else axis)


@_stands_for(np.take)
def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Tensor:
    _only("take", out=out, mode=None if mode == "raise" else mode)
    a, at = _t(a), _t(indices).long()
    if axis is None:
        return ops.take(a, at)
    axis = axis % a.dim()
    return a[(slice(None),) * axis + (at,)]


@_stands_for(np.where)
def _where(condition: Any, x: Any = _No, y: Any = _No, /) -> Any:
    if x is _No:
        return ops.nonzero(_t(condition), as_tuple=True)
    return ops.where(_t(condition).bool(), tensor_of(x), tensor_of(y))


@_stands_for(np.clip)
def _clip(
    a: Any, a_min: Any = _No, a_max: Any = _No, out: Any = None, *, min: Any = _No, max: Any = _No, **ufunc: Any
) -> Tensor:
    _only("clip", out=out, **ufunc)
    least: Any
    most: Any
    least, most = (
        None if limit is _No else tensor_of(limit)
        for limit in (a_min if min is _No else min, a_max if max is _No else max)
    )
    if isinstance(least, Tensor) != isinstance(most, Tensor):  # both are tensors, or none
        least, most = (None if limit is None else _t(limit) for limit in (least, most))
    return ops.clamp(_t(a), least, most)


@_stands_for(np.sort)
def _sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Tensor:
    _only("sort", order=order)
    a = _t(a)
    stably = bool(stable) or kind in ("stable", "mergesort")
    return ops.sort(a.flatten() if axis is None else a, stable=stably, dim=-1 if axis is None else axis)[0]


@_stands_for(np.round, np.around)
def _round(a: Any, decimals: int = 0, out: Any = None) -> Tensor:
    _only("round", out=out)
    return ops.round(_t(a), decimals=decimals)


@_stands_for(np.nan_to_num)
def _nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    _only("nan_to_num", copy=None if copy else copy)
    return ops.nan_to_num(_t(x), nan, posinf, neginf)


# ------------------------------------------------------------------------------------------------------------ products


@_stands_for(np.dot)
def _dot(a: Any, b: Any, out: Any = None) -> Tensor:
    _only("dot", out=out)
    a, b = _t(a), _t(b)
    if a.dim() == 0 or b.dim() == 0:
        return a * b
    if b.dim() <= 2:
        return ops.matmul(a, b)
    return ops.tensordot(a, b, ([a.dim() - 1], [b.dim() - 2]))


@_stands_for(np.inner)
def _inner(a: Any, b: Any, /) -> Tensor:
    return ops.inner(_t(a), _t(b))


@_stands_for(np.outer)
def _outer(a: Any, b: Any, out: Any = None) -> Tensor:
    _only("outer", out=out)
    return ops.outer(_t(a).flatten(), _t(b).flatten())


@_stands_for(np.cross)
def _cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Tensor:
    if axis is not None:
        axisa = axisb = axisc = axis
    product = linalg.cross(_t(a).movedim(axisa, -1), _t(b).movedim(axisb, -1))  # type: ignore[attr-defined]
    return product.movedim(-1, axisc)


@_stands_for(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    if not isinstance(axes, int):
        axes = tuple([[d] if isinstance(d, int) else list(d) for d in axes])
    return ops.tensordot(_t(a), _t(b), axes)


@_stands_for(np.einsum)
def _einsum(*operands: Any, out: Any = None, optimize: Any = False, **options: Any) -> Tensor:
    # How it is computed is ours to choose: `optimize` changes no value.
    _only("einsum", out=out, optimize=None if isinstance(optimize, (bool, str)) else optimize, **options)
    if not isinstance(operands[0], str):
        raise TypeError("numpy.einsum of a Tensor takes the equation as text: np.einsum('ij,j->i', a, x)")
    return ops.einsum(operands[0], *_tensors(operands[1:]))


@_stands_for(np.trace)
def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Tensor:
    _only("trace", dtype=dtype, out=out)
    return ops.diagonal(_t(a), offset, axis1, axis2).sum(-1)


@_stands_for(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    return linalg.norm(_real(_t(x)), ord, axis, keepdim=keepdims)  # type: ignore[attr-defined]


@_stands_for(np.linalg.cholesky)
def _cholesky(a: Any, /, *, upper: bool = False) -> Tensor:
    return linalg.cholesky(_t(a), upper=upper)  # type: ignore[attr-defined]


@_stands_for(np.linalg.solve)
def _solve(a: Any, b: Any) -> Tensor:
    return linalg.solve(_t(a), _t(b))  # type: ignore[attr-defined]


def _fourier(name: str) -> Callable[..., Tensor]:
    def ours(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tensor:
        _only("fft." + name, out=out)
        return getattr(fft, name)(_t(a), n, axis, norm or "backward")

    return ours


for _name in ("fft", "ifft", "rfft", "irfft"):
    _stands_for(getattr(np.fft, _name))(_fourier(_name))


def _plainly(space: Any, theirs: Any, *names: str) -> None:
    """Functions whose arguments are the same in both libraries, but for the name of NumPy's axis."""
    for name in names:
        operator = getattr(space, name)

        def ours(*args: Any, operator: Any = operator, **kwargs: Any) -> Any:
            return operator(*map(tensor_of, args), **{key: tensor_of(value) for key, value in kwargs.items()})

        _stands_for(getattr(theirs, name))(ours)


_plainly(
    ops, np, "swapaxes", "moveaxis", "diagonal", "diag", "tril", "triu", "fliplr", "flipud", "rot90", "kron",
    "atleast_1d", "atleast_2d", "atleast_3d", "zeros_like", "ones_like", "full_like", "empty_like", "real",
    "imag", "angle", "isclose", "allclose", "hsplit", "vsplit", "dsplit", "nansum", "nanmean",
    "argsort", "sinc",
)  # fmt: skip
_plainly(
    linalg, np.linalg, "inv", "pinv", "det", "slogdet", "qr", "svd", "eigh", "eigvalsh", "eig", "eigvals",
    "matrix_power",
)  # fmt: skip
_plainly(fft, np.fft, "fftshift", "ifftshift")
FUNCTIONS[np.copy] = lambda a, order="K", subok=False: _t(a).clone()
FUNCTIONS[np.array_equal] = lambda a1, a2: bool(ops.equal(_t(a1), _t(a2)))
FUNCTIONS[np.vdot] = lambda a, b: ops.vdot(_t(a).flatten(), _t(b).flatten())
FUNCTIONS[np.linalg.multi_dot] = lambda arrays: linalg.multi_dot(_tensors(arrays))  # type: ignore[attr-defined]
FUNCTIONS[np.shape] = lambda a: a.shape
FUNCTIONS[np.ndim] = lambda a: a.ndim

#: What NumPy asks of a Tensor's own methods, which have more arguments here than in torch, where NumPy then computes.
BY_ARRAYS = frozenset({np.clip, np.round, np.around})
#: What NumPy asks of a Tensor's own methods with arguments that they do not have.
ALWAYS = frozenset(
    {np.sum, np.mean, np.prod, np.std, np.var, np.max, np.amax, np.min, np.amin, np.any, np.all, np.size}
)
