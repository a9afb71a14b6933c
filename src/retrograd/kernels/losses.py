"""Losses of predictions and targets."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy import ndarray

from . import blocks, compiled
from .arithmetic import mul, neg
from .powers import exp, log1p
from .promotion import broadcast_shape, is_half, promote, scalar_name, unsupported, work_dtype
from .storage import shape_text

_NONE, _MEAN, _SUM = 0, 1, 2  # torch's numbers for the reduction of a loss
_FEW = 64  # targets
_array, _zeros = np.array, np.zeros


def nll_loss(
    a: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray | None = None,
    reduction: int = _MEAN,
    ignore_index: int = -100,
) -> tuple[np.ndarray, np.ndarray]:
    """Minus the elements of `a` (log-probabilities) at the classes `target`, reduced; and the weight they had in all.

    `a` is (C), (N, C) or (N, C, d1, ...), and `target` has its shape without the classes.
    """
    dtype = a.dtype
    few = _few_places(a, target, ignore_index) if weight is None and reduction and dtype.char in "fd" else None
    if few is not None:
        number = few.size
        total = -a.take(few).dot(blocks.ones_along(number, dtype))  # by BLAS, as in `row_sums`
        return _array(total / number if reduction == _MEAN else total), blocks.as_0d(number, dtype)
    _check_nll(a, target, weight)
    if dtype.kind not in "fV":
        unsupported("nll_loss_out_frame", dtype)
    key, used = _nll_key(a, target, ignore_index)
    losses = np.negative(a[key])  # of the targets that are not ignored
    weights = None if weight is None else weight[key[1] if a.ndim > 1 else key[0]]
    if weights is not None:
        losses *= weights
    if reduction == _NONE:
        shape = target.shape if a.ndim > 1 else ()
        if used is not None:
            result = np.zeros_like(a, shape=used.shape, order="C")
            result[used] = losses
        else:
            result = losses
        return result.reshape(shape), np.zeros_like(a, shape=())
    wide = work_dtype(a.dtype)
    total = np.add.reduce(losses, None, None if wide is a.dtype else wide)
    weight_sum = wide.type(losses.size) if weights is None else np.add.reduce(weights, None, dtype=wide)
    if reduction == _MEAN:
        total = total / weight_sum
    return np.asarray(total, a.dtype), np.asarray(weight_sum, a.dtype)


def nll_loss_backward(
    grad: np.ndarray,
    input: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray | None,
    reduction: int,
    ignore_index: int,
    total_weight: np.ndarray,
) -> np.ndarray:
    """The gradient of `nll_loss`: minus `grad`, weighted, at the classes `target`, and zero elsewhere."""
    if weight is None and reduction and (few := _few_places(input, target, ignore_index)) is not None:
        result = _zeros(input.shape, input.dtype)
        if reduction == _MEAN:
            # (Of numbers of single precision, a quotient of double precision is rounded to the same.)
            is_exact = input.dtype.char in "fd"
            grad = grad.item() / total_weight.item() if is_exact else grad / total_weight
        result.put(few, -grad)
        return result
    if type(input) is np.ndarray:
        shared = compiled.zeros(input.shape, input.dtype)
        result = np.zeros(input.shape, input.dtype) if shared is None else shared  # a sixth of zeros_like's time
    else:
        result = np.zeros_like(input, shape=input.shape, order="C")
    key, used = _nll_key(input, target, ignore_index)
    if reduction == _NONE:
        part = grad if input.ndim == 1 else (grad if used is None else grad[used])
        part = np.negative(part)
    else:
        part = -(grad if reduction == _SUM else grad / total_weight)  # (a sign costs a scalar less than a ufunc does)
    if weight is not None:
        part = part * weight[key[1] if input.ndim > 1 else key[0]]
    result[key] = part
    return result


def _nll_key(a: np.ndarray, target: np.ndarray, ignore_index: int) -> tuple[tuple[Any, ...], np.ndarray | None]:
    # The key of the targets' elements in `a`, and the mask of the targets that count (None: all of them).
    classes = a.shape[1] if a.ndim > 1 else a.shape[0]
    if target.dtype != np.int64:
        target = target.astype(np.int64)
    if a.ndim == 1:
        target = target.reshape(1)
    used = None
    # As numbers without a sign, negative ones are the largest.
    if 0 <= ignore_index < classes or (target.size and np.maximum.reduce(target.view(np.uint64), None) >= classes):
        used = target != ignore_index
        wrong = target[used & ((target < 0) | (target >= classes))]
        if wrong.size:
            raise IndexError(f"Target {int(wrong[0])} is out of bounds.")
        if used.all():
            used = None
    if a.ndim == 1:
        return (target if used is None else target[used],), used
    if used is None:
        if target.ndim == 1:
            return (np.arange(target.shape[0]), target), None
        places = np.ogrid[tuple([slice(n) for n in target.shape])]
    else:
        places = used.nonzero()
        target = target[used]
    return (places[0], target, *places[1:]), used


@lru_cache(maxsize=64)
def _rows_and_classes(rows: int, classes: int) -> tuple[np.ndarray, frozenset[int]]:
    return np.arange(0, rows * classes, classes), frozenset(range(classes))


def _few_places(a: np.ndarray, target: np.ndarray, ignore_index: int) -> np.ndarray | None:
    """Where in a matrix the targets' elements are, counted through its rows; None unless they are few and all count."""
    if type(a) is not ndarray or a.ndim != 2 or target.dtype.char != "l":
        return None
    rows, classes = a.shape
    if not 0 < rows <= _FEW or classes > 1024 or target.shape != (rows,) or 0 <= ignore_index < classes:
        return None
    if hasattr(a, "place"):  # to read the targets is to wait for the device
        return None
    starts, known = _rows_and_classes(rows, classes)
    # (A reduction of an array costs as much as that of a hundred numbers.)
    return starts + target if known.issuperset(target.tolist()) else None


def _check_nll(a: np.ndarray, target: np.ndarray, weight: np.ndarray | None) -> None:
    if weight is None and a.shape[:1] == target.shape and target.dtype.char == "l" and a.ndim == 2:
        return
    if a.ndim == 0:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if target.dtype != np.int64 and target.dtype != np.uint8:
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {scalar_name(target.dtype)}")
    classes = a.shape[1] if a.ndim > 1 else a.shape[0]
    if a.ndim < 3 and target.ndim > 1 and (a.ndim == 1 or target.shape[0] == a.shape[0]):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if a.ndim == 1:
        if target.size != 1 or target.ndim > 1:
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.size}")
    elif target.ndim == 0 or target.shape[0] != a.shape[0]:
        got = target.shape[0] if target.ndim else 0
        raise ValueError(f"Expected input batch_size ({a.shape[0]}) to match target batch_size ({got}).")
    elif target.ndim != a.ndim - 1:
        raise RuntimeError(
            f"only batches of spatial targets supported ({a.ndim - 1}D tensors) but got targets of dimension: "
            f"{target.ndim}"
        )
    elif target.shape[1:] != a.shape[2:] and a.ndim != 4:  # (of images, torch has another kernel and says the other)
        wanted = shape_text((a.shape[0], *a.shape[2:]))
        raise RuntimeError(f"Expected target size {wanted}, got {shape_text(target.shape)}")
    elif target.shape[1:] != a.shape[2:]:
        raise RuntimeError(f"size mismatch (got input: {shape_text(a.shape)} , target: {shape_text(target.shape)}")
    if weight is not None:
        if weight.shape != (classes,):
            raise RuntimeError(
                f"weight tensor should be defined either for all {classes} classes or no classes but got weight "
                f"tensor of shape: {shape_text(weight.shape)}"
            )
        if weight.dtype != a.dtype:
            raise RuntimeError(f"expected scalar type {scalar_name(a.dtype)} but found {scalar_name(weight.dtype)}")


def mse_loss(a: np.ndarray, b: np.ndarray, reduction: int = _MEAN) -> np.ndarray:
    """The squared difference of `a` and `b`, reduced."""
    if a.dtype != b.dtype:
        a, b = promote(a, b)
    if a.shape != b.shape:
        broadcast_shape(a, b)
    if a.dtype.kind not in "fV":
        unsupported("mse_cpu", a.dtype)
    if is_half(a.dtype) and reduction != _NONE:
        return mse_loss(a.astype(np.float32), b.astype(np.float32), reduction).astype(a.dtype)
    x = np.asarray(np.subtract(a, b))
    np.multiply(x, x, out=x)
    if reduction == _NONE:
        return x
    total = np.add.reduce(x, None)
    return np.asarray(total if reduction == _SUM else total / x.dtype.type(x.size))


def _reduced(x: np.ndarray, reduction: int) -> np.ndarray:
    # The elements of a loss, their mean or their sum.
    if reduction == _NONE:
        return np.asarray(x)  # a product of 0-d arrays is a scalar of NumPy's
    total = np.add.reduce(x, None, work_dtype(x.dtype))
    return np.asarray(total if reduction == _SUM else total / total.dtype.type(x.size)).astype(x.dtype, copy=False)


def smooth_l1_loss(a: np.ndarray, b: np.ndarray, reduction: int = _MEAN, beta: float = 1.0) -> np.ndarray:
    """Half the squared difference over `beta` where it is below `beta`, else the difference minus half of it."""
    if not beta >= 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    x = _difference("smooth_l1_cpu", a, b)
    if beta:
        x = np.where(x < beta, x * x * x.dtype.type(0.5 / beta), x - x.dtype.type(0.5 * beta))
    return _reduced(x, reduction)


def soft_margin_loss(a: np.ndarray, target: np.ndarray, reduction: int = _MEAN) -> np.ndarray:
    """The logarithm of 1 + exp(-target * a)."""
    return _reduced(log1p(exp(mul(neg(target), a))), reduction)


def huber_loss(a: np.ndarray, b: np.ndarray, reduction: int = _MEAN, delta: float = 1.0) -> np.ndarray:
    """Half the squared difference where it is below `delta`, else `delta` times the difference minus half of it."""
    if not delta > 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if a.dtype.kind not in "fV":
        raise RuntimeError(f"result type can't be cast to the desired output type {scalar_name(a.dtype)}")
    x = _difference("huber_cpu", a, b)
    half, width = x.dtype.type(0.5), x.dtype.type(delta)
    return _reduced(np.where(x < delta, x * x * half, (x - half * width) * width), reduction)


def _difference(name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # The distance of two arrays that are broadcast.
    if a.dtype != b.dtype:
        a, b = promote(a, b)
    if a.shape != b.shape:
        broadcast_shape(a, b)
    if a.dtype.kind not in "fV":
        unsupported(name, a.dtype)
    return np.asarray(np.abs(np.subtract(a, b)))


def binary_cross_entropy(
    a: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None, reduction: int = _MEAN
) -> np.ndarray:
    """Minus the logarithm of the probability `a` of a target between 0 and 1; a logarithm is at least -100."""
    if a.dtype != target.dtype:
        raise RuntimeError(f"Found dtype {scalar_name(target.dtype)} but expected {scalar_name(a.dtype)}")
    if a.dtype.kind not in "fV":
        unsupported("binary_cross_entropy", a.dtype)
    if a.size and not (a.min() >= 0 and a.max() <= 1):
        raise RuntimeError("all elements of input should be between 0 and 1")
    if target.size and not (target.min() >= 0 and target.max() <= 1):
        raise RuntimeError("all elements of target should be between 0 and 1")
    yes, no = np.maximum(np.log(a), -100), np.maximum(np.log1p(-a), -100)
    x = np.asarray((target - 1) * no - target * yes)
    return _reduced(x if weight is None else x * weight, reduction)


def binary_cross_entropy_with_logits(
    a: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray | None = None,
    pos_weight: np.ndarray | None = None,
    reduction: int = _MEAN,
) -> np.ndarray:
    """`binary_cross_entropy` of the sigmoid of `a`, without its loss of precision."""
    if a.dtype.kind not in "fV":
        unsupported("log_sigmoid_cpu", a.dtype)
    for given in (target, weight, pos_weight):
        if given is not None and given.dtype.kind in ("iubc" if given is target else "bc"):
            one, other = scalar_name(given.dtype), scalar_name(a.dtype)
            if given is target and given.dtype.kind in "iu":
                one, other = other, one
            raise RuntimeError(
                f"result type {one} can't be cast to the desired output type {other}: the targets and weights of "
                f"{scalar_name(a.dtype)} logits are {scalar_name(a.dtype)}, target.to(input.dtype)"
            )
    # -log(sigmoid(a)) = log(1 + exp(-a)), without overflow
    no = np.log1p(np.exp(-np.abs(a))) + np.maximum(-a, 0)
    if pos_weight is not None:
        no = no * ((pos_weight - 1) * target + 1)
    x = np.asarray((1 - target) * a + no)
    return _reduced(x if weight is None else x * weight, reduction)


def multi_margin_loss(
    a: np.ndarray, target: np.ndarray, p: int, margin: float, weight: np.ndarray | None, reduction: int
) -> np.ndarray:
    """How much the target class is not above every other by `margin`, to the power `p`, averaged over the classes."""
    if a.dtype.kind not in "fV":
        unsupported("multi_margin_loss_cpu_kernel", a.dtype)
    rows, index = a.reshape(-1, a.shape[-1] if a.ndim else 1), target.reshape(-1, 1)
    gaps = _above_zero(margin - np.take_along_axis(rows, index, 1) + rows)
    if p == 2:
        gaps *= gaps
    if weight is not None:
        gaps *= weight[index]
    np.put_along_axis(gaps, index, 0, 1)
    losses = gaps.sum(1) / gaps.dtype.type(rows.shape[1])
    if reduction == _NONE:
        return losses.reshape(target.shape).astype(a.dtype, copy=False)
    return _reduced_rows(losses, a, reduction)


def multilabel_margin_loss(a: np.ndarray, target: np.ndarray, reduction: int) -> tuple[np.ndarray, np.ndarray]:
    """How much each target class is not above every other by 1; and which classes are targets."""
    if a.dtype.kind not in "fV":
        unsupported("multilabel_margin_loss_forward_out_frame", a.dtype)
    rows = a.reshape(-1, a.shape[-1] if a.ndim else 1)
    labels = target.reshape(rows.shape)
    used = np.cumsum(labels < 0, 1) == 0
    is_target = np.zeros(rows.shape, bool)
    is_target[np.nonzero(used)[0], labels[used]] = True
    chosen = np.take_along_axis(rows, np.where(used, labels, 0), 1)
    gaps = _above_zero(1 - chosen[:, :, None] + rows[:, None, :])
    gaps[~(used[:, :, None] & ~is_target[:, None, :])] = 0
    losses = gaps.sum((1, 2)) / gaps.dtype.type(rows.shape[1])
    return _reduced_rows(losses, a, reduction), is_target.astype(a.dtype).reshape(target.shape)


def _above_zero(gaps: np.ndarray) -> np.ndarray:
    return np.maximum(gaps, gaps.dtype.type(0))  # NaN stays


def _reduced_rows(losses: np.ndarray, a: np.ndarray, reduction: int) -> np.ndarray:
    """The losses of the rows of `a`, reduced; one number where it is a vector."""
    if reduction == _NONE:
        result: Any = losses if a.ndim == 2 else losses.reshape(())
    else:
        result = losses.sum() if reduction == _SUM else losses.mean() if losses.size else losses.sum() / 0.0
    return np.asarray(result, a.dtype)
