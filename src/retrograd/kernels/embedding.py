"""Rows of a table by number, and numbers as rows."""

from __future__ import annotations

import math

import numpy as np

from . import compiled
from .compiled import SHARED, is_within
from .index import add_rows
from .promotion import scalar_name


def one_hot(a: np.ndarray, num_classes: int = -1) -> np.ndarray:
    """A new last dimension that is 1 at the class in `a`, and 0 elsewhere."""
    if a.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if a.size == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return np.zeros_like(a, shape=(*a.shape, num_classes), order="C")
    if int(a.min()) < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(a.max()) + 1
    elif num_classes < 1 or int(a.max()) >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    result = np.zeros_like(a, shape=(*a.shape, num_classes), order="C")
    flat = result.reshape(math.prod(a.shape), num_classes)
    flat[np.arange(a.size), a.reshape(-1)] = 1
    return result


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
    if indices.size and not is_within(indices, 0, weight.shape[0]):
        raise IndexError("index out of range in self")
    if indices.size * weight.shape[1] > SHARED and (fast := compiled.rows_at(weight, indices)) is not None:
        return fast
    return weight.take(indices, 0)


def embedding_backward(
    grad: np.ndarray, indices: np.ndarray, num_weights: int, padding_idx: int = -1, scale_grad_by_freq: bool = False
) -> np.ndarray:
    """The gradient of `embedding` for the weight: the rows of `grad` added up by index, without those of padding."""
    width = grad.shape[-1]
    rows = indices.reshape(-1)
    values = grad.reshape(rows.size, width)
    if padding_idx >= 0:
        used = rows != padding_idx
        if not used.all():
            rows, values = rows[used], values[used]
    result = compiled.rows_added(values, rows, num_weights) if type(grad) is np.ndarray else None
    if result is None:
        result = np.zeros_like(grad, shape=(num_weights, width), order="C")
        if not rows.size or not width:
            return result
        add_rows(result, rows, values)
    if scale_grad_by_freq:
        counts = np.bincount(rows, minlength=num_weights)
        result /= np.maximum(counts, 1).astype(grad.dtype)[:, None]
    return result


embedding_dense_backward = embedding_backward
