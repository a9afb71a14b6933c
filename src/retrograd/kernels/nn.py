"""Kernels of neural networks that are more than compositions: softmax, losses, layer norm, embedding, dropout.

Each works in one buffer where it can, for the arrays are large and every pass over them counts; what works on rows
takes some at a time, or leaves large arrays to a compiled kernel where there is one.  Float16 is computed in float32
and rounded once at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from . import blocks, compiled
from .blocks import dots, row_blocks
from .compiled import LARGE
from .dims import normalize_dim
from .index import add_rows
from .pointwise import exp, log1p, mul, neg
from .promotion import broadcast_shape, cast_number, is_half, promote, scalar_name, unsupported, work_dtype
from .storage import shape_text

_NONE, _MEAN, _SUM = 0, 1, 2  # torch's numbers for the reduction of a loss


# ------------------------------------------------------------------------------------------------------ softmax


def softmax(a: np.ndarray, dim: int, dtype: np.dtype | None = None) -> np.ndarray:
    """``exp(a)`` divided by its sum along `dim`."""
    a, dim, target = _softmax_input("softmax", a, dim, dtype)
    if not a.ndim:  # as a row, so that there are buffers to write to
        return softmax(a.reshape(1), 0).astype(target).reshape(())
    if not a.size:
        return np.empty_like(a, dtype=target)
    if a.size > LARGE and (fast := blocks.rows("softmax", softmax, (a,), dim)) is not None:
        return fast.astype(target, copy=False)
    x = np.subtract(a, np.maximum.reduce(a, dim, keepdims=True))
    np.exp(x, out=x)
    x /= np.add.reduce(x, dim, keepdims=True)
    return x if x.dtype == target else x.astype(target)


def log_softmax(a: np.ndarray, dim: int, dtype: np.dtype | None = None) -> np.ndarray:
    """The logarithm of `softmax`, without its loss of precision."""
    a, dim, target = _softmax_input("log_softmax", a, dim, dtype)
    if not a.ndim:  # as a row, so that there are buffers to write to
        return log_softmax(a.reshape(1), 0).astype(target).reshape(())
    if not a.size:
        return np.empty_like(a, dtype=target)
    if a.size > LARGE and (fast := blocks.rows("log_softmax", log_softmax, (a,), dim)) is not None:
        return fast.astype(target, copy=False)
    x = np.subtract(a, np.maximum.reduce(a, dim, keepdims=True))
    total = np.add.reduce(np.exp(x), dim, keepdims=True)
    np.log(total, out=total)
    x -= total
    return x if x.dtype == target else x.astype(target)


def _softmax_input(name: str, a: np.ndarray, dim: int, dtype: np.dtype | None) -> tuple[np.ndarray, int, np.dtype]:
    # The input in the dtype to compute in, the dimension from the front and the dtype of the result.
    dim = normalize_dim(dim, a.ndim)
    if dtype is not None and a.dtype != dtype:
        a = a.astype(dtype)
    if a.dtype.kind not in "fV":
        last = "_lastdim" if dim == a.ndim - 1 else ""
        unsupported(f"{name}{last}_kernel_impl", a.dtype)
    target = a.dtype
    return a.astype(work_dtype(target), copy=False), dim, target


def softmax_backward(grad: np.ndarray, result: np.ndarray, dim: int) -> np.ndarray:
    """The gradient of `softmax` from its `result`: ``result * (grad - sum(grad * result))``."""
    axis = normalize_dim(dim, grad.ndim) if grad.ndim else ()
    if grad.size > LARGE:
        fast = blocks.rows("softmax_backward", softmax_backward, (grad, result), normalize_dim(dim, grad.ndim))
        if fast is not None:
            return fast
    x = np.multiply(grad, result)
    total = np.add.reduce(x, axis, keepdims=True)
    if not grad.ndim:
        return np.asarray((grad - total) * result)
    np.subtract(grad, total, out=x)
    x *= result
    return x


def log_softmax_backward(grad: np.ndarray, result: np.ndarray, dim: int) -> np.ndarray:
    """The gradient of `log_softmax` from its `result`: ``grad - exp(result) * sum(grad)``."""
    axis = normalize_dim(dim, grad.ndim) if grad.ndim else ()
    if grad.size > LARGE:
        fast = blocks.rows("log_softmax_backward", log_softmax_backward, (grad, result), normalize_dim(dim, grad.ndim))
        if fast is not None:
            return fast
    total = np.add.reduce(grad, axis, keepdims=True)
    if not grad.ndim:
        return np.asarray(grad - np.exp(result) * total)
    x = np.exp(result)
    x *= total
    return np.subtract(grad, x, out=x)


# ------------------------------------------------------------------------------------------------------ losses


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
    _check_nll(a, target, weight)
    if a.dtype.kind not in "fV":
        unsupported("nll_loss_out_frame", a.dtype)
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
    total = np.add.reduce(losses, None, dtype=wide)
    weight_sum = losses.size if weights is None else np.add.reduce(weights, None, dtype=wide)
    if reduction == _MEAN:
        total = total / wide.type(weight_sum)
    return np.asarray(total, dtype=a.dtype), np.asarray(weight_sum, dtype=a.dtype)


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
    result = np.zeros_like(input, shape=input.shape, order="C")
    key, used = _nll_key(input, target, ignore_index)
    if reduction == _NONE:
        part = grad if input.ndim == 1 else (grad if used is None else grad[used])
        part = np.negative(part)
    else:
        part = np.negative(grad if reduction == _SUM else grad / total_weight)
    if weight is not None:
        part = part * weight[key[1] if input.ndim > 1 else key[0]]
    result[key] = part
    return result


def _nll_key(a: np.ndarray, target: np.ndarray, ignore_index: int) -> tuple[tuple, np.ndarray | None]:
    # The key of the targets' elements in `a`, and the mask of the targets that count (None: all of them).
    classes = a.shape[1] if a.ndim > 1 else a.shape[0]
    if target.dtype != np.int64:
        target = target.astype(np.int64)
    if a.ndim == 1:
        target = target.reshape(1)
    used = None
    if target.size and (int(target.min()) < 0 or int(target.max()) >= classes or 0 <= ignore_index < classes):
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


def _check_nll(a: np.ndarray, target: np.ndarray, weight: np.ndarray | None) -> None:
    if a.ndim == 0:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if target.dtype != np.int64 and target.dtype != np.uint8:
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {scalar_name(target.dtype)}")
    classes = a.shape[1] if a.ndim > 1 else a.shape[0]
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
        return x
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
            raise RuntimeError(
                f"result type {scalar_name(given.dtype)} can't be cast to the desired output type "
                f"{scalar_name(a.dtype)}: convert the targets and weights to it"
            )
    # -log(sigmoid(a)) = log(1 + exp(-a)), without overflow
    no = np.log1p(np.exp(-np.abs(a))) + np.maximum(-a, 0)
    if pos_weight is not None:
        no = no * ((pos_weight - 1) * target + 1)
    x = np.asarray((1 - target) * a + no)
    return _reduced(x if weight is None else x * weight, reduction)


# ------------------------------------------------------------------------------------------------------ layer norm


def layer_norm(
    a: np.ndarray,
    normalized_shape: Sequence[int],
    weight: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    eps: float = 1e-5,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`a` with mean 0 and variance 1 over its last dimensions, scaled and shifted; with the mean and 1/deviation."""
    shape = tuple(normalized_shape)
    _check_layer_norm(a, shape, weight, bias)
    width = math.prod(shape)
    rows = math.prod(a.shape[: a.ndim - len(shape)])
    kept = a.shape[: a.ndim - len(shape)] + (1,) * len(shape)
    dtype = a.dtype
    x = a.reshape(rows, width)
    if is_half(dtype):
        x = x.astype(np.float32)
    scale = None if weight is None else weight.astype(x.dtype, copy=False).reshape(width)
    shift = None if bias is None else bias.astype(x.dtype, copy=False).reshape(width)
    parts = None
    if x.size > LARGE:
        parts = compiled.layer_norm(x, scale, shift, eps)
    if parts is None:
        parts = np.empty_like(x, order="C"), np.empty_like(x, shape=(rows, 1)), np.empty_like(x, shape=(rows, 1))
        for block in row_blocks(x):
            _normalize_rows(x[block], scale, shift, eps, *[p[block] for p in parts])
    result, mean, rstd = parts[0].reshape(a.shape), parts[1].reshape(kept), parts[2].reshape(kept)
    if is_half(dtype):
        return result.astype(dtype), mean.astype(dtype), rstd.astype(dtype)
    return result, mean, rstd


def _normalize_rows(
    x: np.ndarray,
    scale: np.ndarray | None,
    shift: np.ndarray | None,
    eps: float,
    out: np.ndarray,
    mean: np.ndarray,
    rstd: np.ndarray,
) -> None:
    n = x.dtype.type(x.shape[1])
    np.add.reduce(x, 1, keepdims=True, out=mean)
    mean /= n
    np.subtract(x, mean, out=out)
    rstd[:, 0] = dots(out, out)  # the variance, without an array of squares
    rstd /= n
    rstd += cast_number(eps, x.dtype)
    np.sqrt(rstd, out=rstd)
    np.reciprocal(rstd, out=rstd)
    out *= rstd
    if scale is not None:
        out *= scale
    if shift is not None:
        out += shift


native_layer_norm = layer_norm


def _check_layer_norm(
    a: np.ndarray, shape: tuple[int, ...], weight: np.ndarray | None, bias: np.ndarray | None
) -> None:
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, p in (("weight", weight), ("bias", bias)):
        if p is not None and p.shape != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{shape_text(p.shape)} and normalized_shape = {shape_text(shape)}"
            )
    if a.shape[max(a.ndim - len(shape), 0) :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={shape_text(shape)}, expected input with shape "
            f"[*, {shape_text(shape)[1:]}, but got input of size{shape_text(a.shape)}"
        )
    if a.dtype.kind not in "fV":
        unsupported("LayerNormKernelImpl", a.dtype)
    for p in (weight, bias):
        if p is not None and p.dtype != a.dtype:
            raise RuntimeError(f"mixed dtype (CPU): expect parameter to have scalar type of {scalar_name(a.dtype)}")


def layer_norm_backward(
    grad: np.ndarray,
    input: np.ndarray,
    normalized_shape: Sequence[int],
    mean: np.ndarray,
    rstd: np.ndarray,
    weight: np.ndarray | None,
    bias: np.ndarray | None,
    output_mask: Sequence[bool],
) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """The gradients of `layer_norm` for its input, weight and bias, those that `output_mask` asks for."""
    shape = tuple(normalized_shape)
    dtype = input.dtype
    if is_half(dtype):
        wide = [None if p is None else p.astype(np.float32) for p in (grad, input, mean, rstd, weight, bias)]
        narrow = layer_norm_backward(wide[0], wide[1], shape, *wide[2:], output_mask)  # type: ignore[arg-type,call-arg]
        return tuple([None if p is None else p.astype(dtype) for p in narrow])  # type: ignore[return-value]
    width = math.prod(shape)
    rows = math.prod(input.shape[: input.ndim - len(shape)])
    matrices = grad.reshape(rows, width), input.reshape(rows, width), mean.reshape(rows, 1), rstd.reshape(rows, 1)
    factor = None if weight is None else weight.reshape(width)
    parts = None
    if input.size > LARGE:
        parts = compiled.layer_norm_backward(*matrices, factor, output_mask)
    if parts is None:
        like = [np.empty_like(input, shape=(rows, width)), *[np.zeros_like(input, shape=(width,)) for _ in range(2)]]
        parts = [part if want else None for part, want in zip(like, output_mask)]
        for block in row_blocks(matrices[1]):
            g, x, center, scale = [m[block] for m in matrices]
            _layer_norm_rows_backward(g, x, center, scale, factor, parts, block)
    shapes = input.shape, shape, shape
    return tuple([None if p is None else p.reshape(s) for p, s in zip(parts, shapes)])  # type: ignore[return-value]


def _layer_norm_rows_backward(
    g: np.ndarray,
    x: np.ndarray,
    center: np.ndarray,
    scale: np.ndarray,
    factor: np.ndarray | None,
    parts: list[np.ndarray | None],
    block: slice,
) -> None:
    # Adds to the gradients of weight and bias, and fills the block of the input's.
    grad_input, grad_weight, grad_bias = parts
    if grad_bias is not None:
        grad_bias += np.add.reduce(g, 0)
    if grad_input is None and grad_weight is None:
        return
    normal = np.subtract(x, center)
    normal *= scale
    if grad_weight is not None:
        grad_weight += np.einsum("ij,ij->j", g, normal)
    if grad_input is None:
        return
    if factor is not None:
        g = np.multiply(g, factor)
    n = x.dtype.type(x.shape[1])
    along = dots(g, normal)[:, None]
    along /= n
    middle = np.add.reduce(g, 1, keepdims=True)
    middle /= n
    # rstd * (g - mean(g) - normal * mean(g * normal)), in the memory of normal
    normal *= along
    normal += middle
    np.subtract(g, normal, out=normal)
    np.multiply(normal, scale, out=grad_input[block])


def native_layer_norm_backward(
    grad: np.ndarray,
    input: np.ndarray,
    normalized_shape: Sequence[int],
    mean: np.ndarray,
    rstd: np.ndarray,
    weight: np.ndarray | None,
    eps: float,
    edges: Sequence,
) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """`layer_norm_backward` for the inputs whose edge is not None, as the operator's formula calls it."""
    mask = [edge is not None for edge in edges]
    return layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight, None, mask)


# ------------------------------------------------------------------------------------------------------ embedding


def embedding(
    weight: np.ndarray,
    indices: np.ndarray,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> np.ndarray:
    """The rows of `weight` at `indices`; the other arguments are for the gradient."""
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.dtype.kind != "i" or indices.dtype.itemsize < 4:
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{scalar_name(indices.dtype)}Tensor instead (while checking arguments for embedding)"
        )
    if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= weight.shape[0]):
        raise IndexError("index out of range in self")
    return weight.take(indices, 0)


def embedding_backward(
    grad: np.ndarray, indices: np.ndarray, num_weights: int, padding_idx: int = -1, scale_grad_by_freq: bool = False
) -> np.ndarray:
    """The gradient of `embedding` for the weight: the rows of `grad` added up by index, without those of padding."""
    width = grad.shape[-1]
    result = np.zeros_like(grad, shape=(num_weights, width), order="C")
    rows = indices.reshape(-1)
    values = grad.reshape(rows.size, width)
    if padding_idx >= 0:
        used = rows != padding_idx
        if not used.all():
            rows, values = rows[used], values[used]
    if not rows.size or not width:
        return result
    add_rows(result, rows, values)
    if scale_grad_by_freq:
        counts = np.bincount(rows, minlength=num_weights)
        result /= np.maximum(counts, 1).astype(grad.dtype)[:, None]
    return result


embedding_dense_backward = embedding_backward


# ------------------------------------------------------------------------------------------------------ chance
