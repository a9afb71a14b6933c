"""In-place operators that choose between overloads, and those that change a tensor's shape in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._generated import functions as table
from ...autograd.accumulate_grad import outdate_accumulator
from ...autograd.forward_operators import seeing_levels_outside, tangents_by_level
from ...autograd.hooks import rebase_hooks
from ...autograd.inplace import bump_version, check_record, end_inplace, inference_error
from ...core.meta import materialize_autograd_meta
from ...core.state import local
from ...core.version_counter import INFERENCE
from ...tensor import Tensor, wrap
from ..registry import composite
from .shape import squeeze


@composite()
def fill_(input: Tensor, value: Any) -> Tensor:
    """Set every element to `value`, a number or a 0-d tensor."""
    if isinstance(value, Tensor):
        return table.fill_Tensor_(input, value)
    return table.fill_Scalar_(input, value)


@composite(method=False)
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor like `input` with every element `value`."""
    if isinstance(value, Tensor):
        return table.fill_Tensor(input, value)
    return table.fill_Scalar(input, value)


@composite(space="Tensor")
def copy_(input: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Copy the elements of `src`, expanded and converted, into this tensor; gradients then go to `src`."""
    if isinstance(src, (bool, int, float, complex)):
        src = wrap(np.asarray(src))
    if isinstance(src, Tensor) and src.requires_grad and input._data.dtype.kind not in "fcV":
        src = src.detach()  # what an integer tensor holds has no gradient
    return table.copy_(input, src, non_blocking)


def become(name: str, input: Tensor, operator: Any, *args: Any) -> Tensor:
    """`input` itself becomes the view that `operator` gives of it: the in-place method `name`."""
    state = local.state
    if input._vc is INFERENCE and not state.inference:
        raise inference_error()
    if state.grad_enabled and input.requires_grad:
        check_record(input)
    old = input._history() if state.grad_enabled else None
    tangents = tangents_by_level(input) if state.dual_levels else {}
    view = operator(input, *args)
    edge = view._history()
    input._memory = view._memory
    for level, tangent in tangents.items():
        with seeing_levels_outside(level):
            become(name, tangent, operator, *args)
    meta: Any = materialize_autograd_meta(input)
    if not meta.is_view:
        meta.restrided = True
        outdate_accumulator(input)
        end_inplace(input, input._memory, None if edge is None else edge[0], name)
        return input
    meta.before, meta.step = view._meta.before, view._meta.step  # the same base, and one more step from it
    bump_version(input)
    if edge is not None:
        meta.edge, meta.attr_version = edge, input._version
        if meta.hooks is not None or meta.retains_grad:
            rebase_hooks(input, old, edge)
    return input


@composite(space="Tensor")
def squeeze_(input: Tensor, dim: Any = None) -> Tensor:
    """In-place `squeeze`."""
    return become("squeeze_", input, squeeze, dim)


@composite(space="Tensor")
def unsqueeze_(input: Tensor, dim: int) -> Tensor:
    """In-place `unsqueeze`."""
    return become("unsqueeze_", input, table.unsqueeze, dim)


@composite(space="Tensor")
def t_(input: Tensor) -> Tensor:
    """In-place `t`."""
    return become("t_", input, table.t)


@composite(space="Tensor")
def transpose_(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """In-place `transpose`."""
    return become("transpose_", input, table.transpose, dim0, dim1)


@composite(space="Tensor")
def swapdims_(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """In-place `swapdims`."""
    return become("swapdims_", input, table.transpose, dim0, dim1)


@composite(space="Tensor")
def swapaxes_(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """In-place `swapaxes`."""
    return become("swapaxes_", input, table.transpose, axis0, axis1)
