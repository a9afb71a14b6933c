"""gradcheck across processes: derivatives of a function that communicates, against finite differences.

Each process has inputs of its own, and outputs. Here they become those of one function that every process computes as
a whole: from everybody's inputs, which all know, to everybody's outputs, which all get. That function is the same
everywhere, so ordinary gradcheck can vary it, with all processes in step. In between are four linear functions:

    enter    what all know becomes what each has          backward: total
    total    what each has, summed, is known to all       backward: enter
    leave    what each has, one after the other           backward: own
    own      a process's part of what all know            backward: leave
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd import gradcheck as _gradcheck
from ...autograd import gradgradcheck as _gradgradcheck
from ...autograd.function import Function
from ...random import fork_rng, manual_seed
from ...tensor import Tensor
from .. import collectives as plain
from ..objects import all_gather_object
from ..process_group import ProcessGroup, resolve

__all__ = ["gradcheck", "gradgradcheck"]


class _Enter(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, *tensors: Tensor) -> Any:
        ctx.group = group
        return tuple(tensor.detach().clone() for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, *_Total.apply(ctx.group, *grads)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Tensor) -> Any:
        return _Enter.apply(ctx.group, *tangents)


class _Total(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, *tensors: Tensor) -> Any:
        ctx.group = group
        sums = tuple(tensor.detach().clone() for tensor in tensors)
        for each in sums:
            plain.all_reduce(each, group=group)
        return sums

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, *_Enter.apply(ctx.group, *grads)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Tensor) -> Any:
        return _Total.apply(ctx.group, *tangents)


class _Leave(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, *tensors: Tensor) -> Any:
        ctx.group, ctx.count = group, len(tensors)
        everybody: list[Any] = [None] * group.size()
        all_gather_object(everybody, [tensor.detach() for tensor in tensors], group)
        return tuple(tensor for part in everybody for tensor in part)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, *_Own.apply(ctx.group, ctx.count, *grads)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Tensor) -> Any:
        return _Leave.apply(ctx.group, *tangents)


class _Own(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, count: int, *tensors: Tensor) -> Any:
        ctx.group, ctx.count = group, count
        start = group.rank() * count
        return tuple(tensor.detach().clone() for tensor in tensors[start : start + count])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, *_Leave.apply(ctx.group, *grads)

    @staticmethod
    def jvp(ctx: Any, _g: Any, _c: Any, *tangents: Tensor) -> Any:
        return _Own.apply(ctx.group, ctx.count, *tangents)


def _whole(function: Callable[..., Any], inputs: Any, group: Any) -> tuple[Callable[..., Any], list[Tensor]]:
    """The function of all processes together, and its inputs."""
    found = resolve(group)
    if found is None:
        raise ValueError("this process is not in the group")
    own = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    everybody: list[Any] = [None] * found.size()
    all_gather_object(everybody, [tensor.detach() for tensor in own], found)
    known = [tensor.requires_grad_() for part in everybody for tensor in part]
    start = found.rank() * len(own)

    def whole(*tensors: Tensor) -> Any:
        entered = _Enter.apply(found, *tensors)
        result = function(*entered[start : start + len(own)])
        return _Leave.apply(found, *(result if isinstance(result, (list, tuple)) else (result,)))

    return whole, known


def gradcheck(function: Callable[..., Any], inputs: Any, group: Any = None, **settings: Any) -> bool:
    """``autograd.gradcheck`` of a function that communicates; every process gives inputs of its own.

    All have the same number of inputs and outputs.
    """
    whole, known = _whole(function, inputs, group)
    with fork_rng():
        manual_seed(0)  # what is drawn has to be the same everywhere
        return _gradcheck(whole, known, **settings)


def gradgradcheck(function: Callable[..., Any], inputs: Any, group: Any = None, **settings: Any) -> bool:
    """``autograd.gradgradcheck`` of a function that communicates."""
    whole, known = _whole(function, inputs, group)
    with fork_rng():
        manual_seed(0)
        return _gradgradcheck(whole, known, **settings)
