"""Losses over pairs, triples and several labels, and of sequences; part of ``functional``.  Made of other operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...autograd.grad_mode import no_grad
from ...core.dtypes import float_limits
from ...kernels.promotion import scalar_name, unsupported
from ...ops import namespace as ops
from ...ops.composite.arithmetic import number_as_tensor
from ...ops.registry import composite
from ...tensor import Tensor
from ...tensor.beside import beside, on_host
from ...tensor.special import all_values
from .activation import logsigmoid
from .distance import pairwise_distance
from .reduction import reduced, reduction_number


@composite(space="nn.functional")
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How much `input1` is not ranked above `input2` by `margin`, where `target` is 1; the reverse where it is -1."""
    number = reduction_number(reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return reduced(generated._add_number(-target * (input1 - input2), margin).clamp_min(0), number)


@composite(space="nn.functional")
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The input where `target` is 1, and what it lacks to `margin` where it is -1."""
    number = reduction_number(reduction, size_average, reduce)
    zero = ops.zeros_like(input.detach())
    far = ops.where(target != 1, (number_as_tensor(margin, input) - input).clamp_min(0), zero)
    return reduced(far + ops.where(target != -1, input, zero), number)


@composite(space="nn.functional")
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``log(1 + exp(-target * input))``."""
    if input._memory_.dtype.kind not in "fV" or target._memory_.dtype.kind in "cW":
        unsupported("soft_margin_loss", (input if input._memory_.dtype.kind not in "fV" else target)._memory_.dtype)
    return ops.soft_margin_loss(input, target, reduction_number(reduction, size_average, reduce))


@composite(space="nn.functional")
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """One minus the cosine where `target` is 1, and what the cosine is above `margin` where it is -1."""
    number = reduction_number(reduction, size_average, reduce)
    if target.ndim not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        kind = "1D target tensor expects 2D" if target.ndim else "0D target tensor expects 1D"
        sizes = f"but found inputs with sizes {list(input1.shape)} and {list(input2.shape)}."
        raise RuntimeError(f"{kind} input tensors, {sizes}")
    eps = 1e-12
    product = (input1 * input2).sum(-1)
    lengths = [generated._add_number((x * x).sum(-1), eps) for x in (input1, input2)]
    squares = lengths[0] * lengths[1]
    cosine = product / squares.sqrt()
    zero = ops.zeros_like(cosine.detach())
    near = ops.where(target == 1, ops.ones_like(zero) - cosine, zero)
    losses = near + ops.where(target == -1, generated._sub_number(cosine, margin).clamp_min(0), zero)
    return reduced(losses, number)


@composite(space="nn.functional")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How much the anchor is not nearer to `positive` than to `negative` by `margin`."""
    number = reduction_number(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = ops.minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced((generated._add_number(near, margin) - far).clamp_min(0), number)


@composite(space="nn.functional")
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with any distance."""
    number = reduction_number(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    sizes = anchor.ndim, positive.ndim, negative.ndim
    if len(set(sizes)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            "anchor {}D, positive {}D, and negative {}D inputs".format(*sizes)
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), number)


@composite(space="nn.functional")
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-likelihood of Poisson-distributed targets; `full` adds Stirling's term."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    number = reduction_number(reduction, size_average, reduce)
    losses = input.exp() - target * input if log_input else input - target * generated._add_number(input, eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        losses = losses + stirling.masked_fill(target <= 1, 0)
    return reduced(losses, number)


@composite(space="nn.functional")
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-likelihood of normally distributed targets with variance `var`."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * ops.ones_like(input.detach())
    elif (all_values(var) < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif not (var.ndim == input.ndim and all(m in (1, n) for m, n in zip(var.shape, input.shape, strict=True))):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    clamped = var.clone()
    with no_grad():
        clamped.clamp_(min=eps)
    losses = 0.5 * (clamped.log() + (input - target) ** 2 / clamped)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduced(losses, reduction_number(reduction))


@composite(space="nn.functional")
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The binary cross entropy of each class, averaged over the classes."""
    number = reduction_number(reduction, size_average, reduce)
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    return reduced(losses.sum(input._memory_.ndim - 1) / input._memory_.shape[-1], number)


def _check_rows(input: Tensor) -> None:
    shape = input._memory_.shape
    if len(shape) > 2 or 0 in shape[-1:]:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(shape)}"
        )


def _check_labels(target: Tensor) -> None:
    if target._memory_.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {scalar_name(target._memory_.dtype)}")


def _check_bounds(target: Tensor, classes: int) -> None:
    labels = all_values(target)
    if labels.size and (labels.min() < 0 or labels.max() >= classes):
        raise RuntimeError(f"target out of range: it must be between 0 and {classes - 1}, the last class")


@composite(space="nn.functional")
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How much the target class is not above every other by `margin`, to the power `p`, averaged over the classes."""
    number = reduction_number(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    _check_rows(input)
    rows = input.detach() if input.ndim == 2 else input.detach().reshape((1, -1))
    if target.ndim > 1 or target._memory_.size != rows._memory_.shape[0]:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{rows._memory_.shape[0]}], but got {list(target.shape)}. Input has shape "
            f"{list(input.shape)}."
        )
    if weight is not None and weight._memory_.size != rows._memory_.shape[1]:
        raise RuntimeError(
            f"inconsistent weight size, expected {rows._memory_.shape[1]} but got {list(weight.shape)}"
        )
    _check_labels(target)
    _check_bounds(target, rows._memory_.shape[1])
    return generated.multi_margin_loss(input, target, int(p), float(margin), weight, number)


@composite(space="nn.functional")
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How much each target class is not above every other by 1; the targets of a row end at the first -1."""
    number = reduction_number(reduction, size_average, reduce)
    _check_rows(input)
    if target._memory_.size != input._memory_.size or (input.ndim == 2 and target.ndim != 2):
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    _check_labels(target)
    return generated.multilabel_margin_loss(input, target, number)


# --------------------------------------------------------------------------------------------------------------- ctc


@composite(space="nn.functional")
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log-probability of the target sequences over all their alignments with the inputs.

    `log_probs` is (time, batch, classes) or (time, classes); the targets are a row each, or one after the other.

    The recursion over time is written in operators, so that it can be differentiated to any order.
    """
    number = reduction_number(reduction)
    if log_probs._memory_.dtype.kind not in "fV":
        unsupported("ctc_loss_cpu", log_probs._memory_.dtype)
    batched = log_probs.ndim == 3
    if not batched:
        log_probs = log_probs.unsqueeze(1)
    steps, batch, classes = log_probs._memory_.shape
    if not log_probs._memory_.size:
        raise RuntimeError("log_probs tensor must not be empty")
    lengths = _lengths(input_lengths, batch, "input_lengths")
    wanted = _lengths(target_lengths, batch, "target_lengths")
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    _check_lengths(lengths, wanted, targets, steps)
    labels = _extended(on_host(targets._numbers_), wanted, batch, blank)
    width = labels.shape[1]
    emitted = log_probs.gather(2, beside(log_probs, np.broadcast_to(labels, (steps, batch, width)).copy()))
    # A label may be skipped to from the one before last, unless that is the same, or a blank.
    skips = np.zeros(labels.shape, bool)
    skips[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    floor = float(float_limits(log_probs._memory_.dtype).min) / 4  # stands for minus infinity, with a gradient of 0
    start = np.full((batch, width), True)
    start[:, :2] = False
    start = start[:, :width]
    state = emitted[0].masked_fill(beside(log_probs, start), floor)
    states = [state]
    for step in range(1, steps):
        if width == 1:  # nothing but the blank
            state = state + emitted[step]
            states.append(state)
            continue
        moved = ops.constant_pad_nd(state, (1, -1), floor)
        skipped = ops.constant_pad_nd(state, (2, -2), floor).masked_fill(beside(log_probs, ~skips), floor)
        state = ops.logsumexp(ops.stack([state, moved, skipped]), 0) + emitted[step]
        states.append(state)
    rows = np.arange(batch)
    last = ops.stack(states)[beside(log_probs, np.maximum(lengths - 1, 0)), beside(log_probs, rows)]
    ends = np.stack([2 * wanted, np.maximum(2 * wanted - 1, 0)], 1)
    found = last.gather(1, beside(log_probs, ends))
    single = np.zeros(ends.shape, bool)
    single[:, 1] = wanted == 0
    losses = -ops.logsumexp(found.masked_fill(beside(log_probs, single), floor), 1)
    impossible = losses._numbers_ > -floor / 2
    if not lengths.all():  # of no input nothing can be read, and of nothing that is certain
        losses = losses.masked_fill(beside(log_probs, lengths == 0), 0.0)
        impossible = np.where(lengths == 0, wanted > 0, impossible)
    if impossible.any():
        losses = losses.masked_fill(beside(log_probs, impossible), 0.0 if zero_infinity else math.inf)
    if number == 1:
        divisors = np.maximum(wanted, 1).astype(losses._memory_.dtype)
        return (losses / beside(log_probs, divisors)).mean()
    losses = losses if batched else losses.squeeze(0)
    return losses.sum() if number == 2 else losses


def _check_lengths(lengths: np.ndarray, wanted: np.ndarray, targets: Tensor, steps: int) -> None:
    """What `ctc_loss` is given for its inputs and targets is there."""
    where = "(while checking arguments for ctc_loss_allocate_outputs)"
    for name, values in (("input_lengths", lengths), ("target_lengths", wanted)):
        if values.min() < 0:
            raise RuntimeError(f"Expected {name} to have value at least 0, but got value {values.min()} {where}")
    if lengths.max() > steps:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value {lengths.max()} {where}"
        )
    shape = targets._memory_.shape
    if len(shape) == 2 and shape[0] == len(wanted) and shape[1] < wanted.max():
        raise RuntimeError(
            f"Expected tensor to have size at least {wanted.max()} at dimension 1, but got size {shape[1]} for "
            f"argument #2 'targets' {where}"
        )
    needed = wanted.sum() if len(shape) == 1 else len(wanted)
    if len(shape) in (1, 2) and shape[0] != needed:
        raise RuntimeError(
            f"Expected tensor to have size {needed} at dimension 0, but got size {shape[0]} for argument #2 'targets' "
            f"{where}"
        )


def _lengths(lengths: Any, batch: int, name: str) -> np.ndarray:
    values = on_host(lengths._numbers_) if isinstance(lengths, Tensor) else np.asarray(lengths)
    if values.dtype.kind not in "iu":
        raise RuntimeError(f"{name} must be integral")
    values = values.astype(np.int64).reshape(-1)
    if values.size != batch:
        raise RuntimeError(f"{name} must be of size batch_size")
    return values


def _extended(targets: np.ndarray, wanted: np.ndarray, batch: int, blank: int) -> np.ndarray:
    """The targets with blanks between and around them, in rows of one width."""
    rows = np.full((batch, 2 * int(wanted.max(initial=0)) + 1), blank, np.int64)
    first = 0
    for row, length in enumerate(wanted):
        if targets.ndim == 2:
            labels = targets[row, :length]
        else:
            labels = targets[first : first + length]
            first += length
        rows[row, 1 : 2 * length : 2] = labels
    return rows
