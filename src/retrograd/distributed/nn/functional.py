"""``torch.distributed.nn.functional``: collective operations that have gradients.

Note [Gradients across processes]
The functions of several processes make one function, from everybody's inputs to everybody's outputs; what is
differentiated is the sum of all losses. Each operation here is linear, so it is its own forward formula, and its
backward formula is another one:

    all_reduce (sum)     all_reduce            every input is in every output
    all_gather           reduce_scatter
    broadcast            reduce                to the process that it came from
    gather               scatter
    all_to_all           all_to_all            the other way round
    send                 recv

The backward formulas are these functions again, so that there are derivatives of any order. All processes have to run
the same passes: a backward pass in one process waits for the same in the others, and a tangent of one goes to all. An
input whose values are not used (of `broadcast` in all processes but one) has a gradient of zeros, and takes part for
that reason.

Where torch's `all_reduce` has the gradient of a sum for every operation, here that of products, minima and maxima is
right.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from ...autograd import forward_ad
from ...autograd.function import Function
from ...core.constants import contiguous_format
from ...ops import namespace as ops
from ...tensor import Tensor
from .. import collectives as plain
from ..process_group import ProcessGroup, resolve
from ..reduce_op import ReduceOp, check

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "recv", "reduce",
    "reduce_scatter", "scatter", "send",
]  # fmt: skip


def _group(group: Any) -> ProcessGroup:
    found = resolve(group)
    if found is None:
        raise ValueError("this process is not in the group")
    return found


def _apply(function: type[Function], group: ProcessGroup, *arguments: Any) -> Any:
    """Call a Function of all processes. Where one has a tangent, all get one: its formula needs everybody."""
    if forward_ad._current_level >= 0:
        tensors = [each for each in arguments if isinstance(each, Tensor)]
        flag = ops.tensor([any(_has_tangent(each) for each in tensors)], device=group.device)
        plain.all_reduce(flag, ReduceOp.MAX, group)
        if flag.item():
            arguments = tuple(_with_tangent(each) if isinstance(each, Tensor) else each for each in arguments)
    return function.apply(group, *arguments)


def _has_tangent(tensor: Tensor) -> bool:
    return forward_ad.unpack_dual(tensor).tangent is not None


def _with_tangent(tensor: Tensor) -> Tensor:
    return tensor if _has_tangent(tensor) else forward_ad.make_dual(tensor, ops.zeros_like(tensor))


def _sent(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous()


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, tensor: Tensor) -> Tensor:
        ctx.group = group
        result = tensor.detach().clone(memory_format=contiguous_format)
        plain.all_reduce(result, group=group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, _apply(_AllReduce, ctx.group, grad)

    @staticmethod
    def jvp(ctx: Any, _: Any, tangent: Tensor) -> Tensor:
        return _apply(_AllReduce, ctx.group, tangent)


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum (or what `op` says) of everybody's `tensor`."""
    found = _group(group)
    check(op, tensor._memory_.dtype, "all_reduce")
    if op is ReduceOp.SUM:
        return _apply(_AllReduce, found, tensor)
    if op is ReduceOp.AVG:
        return _apply(_AllReduce, found, tensor / found.size())
    together = ops.stack(all_gather(tensor, found))
    if op is ReduceOp.PRODUCT:
        return together.prod(0)
    if op is ReduceOp.MIN:
        return together.amin(0)
    if op is ReduceOp.MAX:
        return together.amax(0)
    raise RuntimeError(f"all_reduce(): ReduceOp.{op.name} is of integers, which have no gradients")


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, tensor: Tensor) -> Any:
        ctx.group = group
        outs = [ops.empty_like(tensor, memory_format=contiguous_format) for _ in range(group.size())]
        plain.all_gather(outs, _sent(tensor), group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, _apply(_ReduceScatter, ctx.group, *grads)

    @staticmethod
    def jvp(ctx: Any, _: Any, tangent: Tensor) -> Any:
        return _apply(_AllGather, ctx.group, tangent)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Everybody's `tensor`, in the order of ranks."""
    return _apply(_AllGather, _group(group), tensor)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, *tensors: Tensor) -> Tensor:
        ctx.group = group
        result = ops.empty_like(tensors[group.rank()], memory_format=contiguous_format)
        plain.reduce_scatter(result, [_sent(tensor) for tensor in tensors], group=group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, *_apply(_AllGather, ctx.group, grad)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Tensor) -> Any:
        return _apply(_ReduceScatter, ctx.group, *tangents)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """The sum (or what `op` says) of everybody's ``input_list[rank]``, which has the shape of `output`."""
    found = _group(group)
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise NotImplementedError(f"reduce_scatter(): with gradients, of sums and means only, not ReduceOp.{op.name}")
    if tuple(input_list[found.rank()].shape) != tuple(output.shape):
        raise ValueError(f"reduce_scatter(): output has shape {tuple(output.shape)}, this rank's input another")
    result = _apply(_ReduceScatter, found, *input_list)
    return result if op is ReduceOp.SUM else result / found.size()


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, src: int, tensor: Tensor) -> Tensor:
        ctx.group, ctx.src = group, src
        result = tensor.detach().clone(memory_format=contiguous_format)
        plain.broadcast(result, group=group, group_src=src)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, _apply(_Reduce, ctx.group, ctx.src, grad)

    @staticmethod
    def jvp(ctx: Any, _g: Any, _s: Any, tangent: Tensor) -> Tensor:
        return _apply(_Broadcast, ctx.group, ctx.src, tangent)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of process `src`, everywhere."""
    found = _group(group)
    return _apply(_Broadcast, found, found.ranks.index(src), tensor)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, dst: int, tensor: Tensor) -> Tensor:
        ctx.group, ctx.dst = group, dst
        result = tensor.detach().clone(memory_format=contiguous_format)
        plain.reduce(result, group=group, group_dst=dst)
        return result if group.rank() == dst else ops.zeros_like(result)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, _apply(_Broadcast, ctx.group, ctx.dst, grad)

    @staticmethod
    def jvp(ctx: Any, _g: Any, _d: Any, tangent: Tensor) -> Tensor:
        return _apply(_Reduce, ctx.group, ctx.dst, tangent)


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum (or what `op` says) of everybody's `tensor` in process `dst`, zeros in the others."""
    found = _group(group)
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise NotImplementedError(f"reduce(): with gradients, of sums and means only, not ReduceOp.{op.name}")
    result = _apply(_Reduce, found, found.ranks.index(dst), tensor)
    return result if op is ReduceOp.SUM else result / found.size()


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, dst: int, tensor: Tensor) -> Any:
        ctx.group, ctx.dst = group, dst
        outs = [ops.zeros_like(tensor, memory_format=contiguous_format) for _ in range(group.size())]
        plain.gather(_sent(tensor), outs if group.rank() == dst else None, group=group, group_dst=dst)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, _apply(_Scatter, ctx.group, ctx.dst, *grads)

    @staticmethod
    def jvp(ctx: Any, _g: Any, _d: Any, tangent: Tensor) -> Any:
        return _apply(_Gather, ctx.group, ctx.dst, tangent)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """Everybody's `tensor` in process `dst`, zeros in the others."""
    found = _group(group)
    return _apply(_Gather, found, found.ranks.index(dst), tensor)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, src: int, *tensors: Tensor) -> Tensor:
        ctx.group, ctx.src = group, src
        result = ops.empty_like(tensors[group.rank()], memory_format=contiguous_format)
        sent = [_sent(tensor) for tensor in tensors] if group.rank() == src else None
        plain.scatter(result, sent, group=group, group_src=src)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, *_apply(_Gather, ctx.group, ctx.src, grad)

    @staticmethod
    def jvp(ctx: Any, _g: Any, _s: Any, *tangents: Tensor) -> Tensor:
        return _apply(_Scatter, ctx.group, ctx.src, *tangents)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """``tensors[rank]`` of process `src`. The others give tensors of the same shapes, whose values are not used."""
    found = _group(group)
    return _apply(_Scatter, found, found.ranks.index(src), *tensors)


class _AllToAll(Function):
    """Parts go to others; `shapes` are those of the parts that come."""

    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, shapes: Sequence[tuple[int, ...]], *tensors: Tensor) -> Any:
        ctx.group, ctx.shapes = group, shapes
        ctx.given = [tuple(tensor.shape) for tensor in tensors]
        outs = [tensors[0].new_empty(list(shape)) for shape in shapes]
        plain.all_to_all(outs, [_sent(tensor) for tensor in tensors], group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, *_apply(_AllToAll, ctx.group, ctx.given, *grads)

    @staticmethod
    def jvp(ctx: Any, _g: Any, _s: Any, *tangents: Tensor) -> Any:
        return _apply(_AllToAll, ctx.group, ctx.shapes, *tangents)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """What each process has for this one in its `input_tensor_list`; `output_tensor_list` says of which shapes."""
    return _apply(_AllToAll, _group(group), [tuple(t.shape) for t in output_tensor_list], *input_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
) -> Tensor:
    """`all_to_all` of the parts of a tensor along its first dimension; `output` says of which shape the result is."""
    found = _group(group)
    size = found.size()
    incoming = output_split_sizes or [output.shape[0] // size] * size
    outgoing = input_split_sizes or [input.shape[0] // size] * size
    if sum(incoming) != output.shape[0] or sum(outgoing) != input.shape[0]:
        raise RuntimeError(
            f"Split sizes doesn't match total dim 0 size: {incoming} of {output.shape[0]}, {outgoing} of "
            f"{input.shape[0]}"
        )
    rest = tuple(output.shape[1:])
    return ops.cat(_apply(_AllToAll, found, [(count, *rest) for count in incoming], *input.split(outgoing)))


# ------------------------------------------------------------------------------------------------ between two processes

#: Of one message, how it came about: the program's tag, which of those messages it is, and then for each derivative
#: whether it is a gradient or a tangent, and which one.
Path = tuple[Any, ...]


def _tag(group: ProcessGroup, path: Path) -> int:
    """What tells a message from all others between two processes.

    Passes run in an order of their own in each process. So messages cannot be told by their order, but they can by what
    they are for, which both ends know. The tags of programs are below.
    """
    return 2**26 + zlib.crc32(repr(path).encode()) % 2**26 if group.backend.has_tags else 0


def _first(group: ProcessGroup, direction: str, peer: int, tag: int) -> Path:
    """The path of the next message of a program."""
    counts = group.messages
    counts[direction, peer, tag] = counts.get((direction, peer, tag), 0) + 1
    return tag, counts[direction, peer, tag]


def _derived(ctx: Any, kind: str) -> Path:
    """The path of the next gradient or tangent of a message."""
    count = getattr(ctx, kind, 0) + 1
    setattr(ctx, kind, count)
    return (*ctx.path, kind, count)


def _send(group: ProcessGroup, to: int, path: Path, tensor: Tensor) -> Tensor:
    if forward_ad._current_level >= 0:  # the other one has to know whether a tangent follows
        flag = ops.tensor([_has_tangent(tensor)], device=group.device)
        plain.isend(flag, None, group, _tag(group, (*path, "has tangent")), to)
    return _Send.apply(group, to, path, tensor)


def _recv(group: ProcessGroup, source: int, path: Path, tensor: Tensor) -> Tensor:
    if forward_ad._current_level >= 0:
        flag = ops.tensor([False], device=group.device)
        plain.recv(flag, None, group, _tag(group, (*path, "has tangent")), source)
        tensor = _with_tangent(tensor) if flag.item() else forward_ad.unpack_dual(tensor).primal
    return _Recv.apply(group, source, path, tensor)


class _Tied(Function):
    """`tensor`, whose gradient reaches `others` as well, as zeros.

    A message has a gradient message, and that one too. Which of them are sent depends on where gradients go; with ties
    they go to both ends of a message, whether what is computed there varies with it or not.
    """

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, *others: Tensor) -> Tensor:
        ctx.like = [(tuple(other.shape), other.dtype) for other in others]
        return tensor.detach().clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad, *(_Tied.apply(grad.new_zeros(list(shape), dtype=dtype), grad) for shape, dtype in ctx.like)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *others: Any) -> Tensor:
        return _Tied.apply(tangent)


class _Send(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, to: int, path: Path, tensor: Tensor) -> Tensor:
        ctx.group, ctx.to, ctx.path = group, to, path
        ctx.like = tuple(tensor.shape), tensor.dtype
        # Not waited for: two processes that send to each other would wait for ever. So it needs memory of its own,
        # which nobody writes to meanwhile.
        memory = tensor.detach().clone(memory_format=contiguous_format)
        ctx.work = plain.isend(memory, None, group, _tag(group, path), to)
        token = tensor.new_zeros([])
        ctx.save_for_backward(token)
        return token

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        ctx.work.wait()
        shape, dtype = ctx.like
        template = _Tied.apply(grad.new_zeros(list(shape), dtype=dtype), grad, *ctx.saved_tensors)
        return None, None, None, _recv(ctx.group, ctx.to, _derived(ctx, "gradient"), template)

    @staticmethod
    def jvp(ctx: Any, _g: Any, _t: Any, _p: Any, tangent: Tensor) -> Tensor:
        return _send(ctx.group, ctx.to, _derived(ctx, "tangent"), tangent)


def send(tensor: Tensor, dst: int, group: Any = None, tag: int = 0) -> Tensor:
    """Send a tensor to process `dst`, which calls `recv` (this one, not ``torch.distributed.recv``).

    The result is a number, zero, which stands for what becomes of the tensor elsewhere: ``send(x, 1).backward()``
    waits for the gradient that process 1 computes. Add it to the loss of this process, if it has one.
    """
    found = _group(group)
    to = found.ranks.index(dst)
    return _send(found, to, _first(found, "send", to, tag), tensor)


class _Recv(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, source: int, path: Path, tensor: Tensor) -> Tensor:
        ctx.group, ctx.source, ctx.path = group, source, path
        ctx.like = tuple(tensor.shape), tensor.dtype
        result = ops.empty_like(tensor, memory_format=contiguous_format)
        plain.recv(result, None, group, _tag(group, path), source)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        shape, dtype = ctx.like
        token = _send(ctx.group, ctx.source, _derived(ctx, "gradient"), _Tied.apply(grad, *ctx.saved_tensors))
        return None, None, None, grad.new_zeros(list(shape), dtype=dtype) + token

    @staticmethod
    def jvp(ctx: Any, _g: Any, _s: Any, _p: Any, tangent: Tensor) -> Tensor:
        return _recv(ctx.group, ctx.source, _derived(ctx, "tangent"), tangent)


def recv(tensor: Tensor, src: int, group: Any = None, tag: int = 0) -> Tensor:
    """Receive a tensor of the shape and dtype of `tensor` from process `src`, which calls `send` (this one).

    If `tensor` requires grad, the gradient of the result goes back to process `src`; that of `tensor` is zero, since
    its values are not used.
    """
    found = _group(group)
    source = found.ranks.index(src)
    return _recv(found, source, _first(found, "recv", source, tag), tensor)
