"""Collective operations on tensors, and messages between two processes.

Contiguous tensors are sent from, and received into, the memory that they have; others go through a copy. Tensors that
are written to count as modified in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

from ..autograd.graph import increment_version
from ..core.layout import strided
from ..tensor import Tensor
from .process_group import ProcessGroup, get_group_rank, resolve
from .reduce_op import ReduceOp, check
from .work import Work

__all__ = [
    "P2POp", "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single", "barrier",
    "batch_isend_irecv", "broadcast", "gather", "irecv", "isend", "monitored_barrier", "recv", "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor", "scatter", "send",
]  # fmt: skip

Steps = list[Callable[[], None]]


def _check_tensor(tensor: Any, name: str) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor but got {type(tensor)} "
            "instead."
        )


def _check_list(tensors: Any, name: str, size: int) -> None:
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor] but got "
            f"{type(tensors)} with elements of type "
            f"{[type(t) for t in tensors] if isinstance(tensors, (list, tuple)) else '-'}."
        )
    if len(tensors) != size:
        raise ValueError(f"`{name}` has {len(tensors)} tensors; the group has {size} processes, each with one")


def _check_alike(first: Tensor, others: Sequence[Tensor], what: str) -> None:
    for other in others:
        if other.dtype != first.dtype:
            raise ValueError(
                f"Invalid usage of tensors with different dtypes: Found {first.dtype} and {other.dtype} in {what}"
            )


def _check_plain(tensor: Tensor) -> None:
    if tensor._special_ is not None or tensor.layout is not strided:
        raise RuntimeError(f"Tensors must be dense, but this one is of layout {tensor.layout}: to_dense() it")


def _read(tensor: Tensor) -> Any:
    """The memory of a tensor that is sent."""
    _check_plain(tensor)
    array = tensor._numbers_
    return array if array.flags.c_contiguous else array.copy()


def _written(tensor: Tensor, after: Steps) -> Any:
    """The memory to receive a tensor into; `after` is done when it is there."""
    if tensor.requires_grad and tensor.grad_fn is not None:
        raise RuntimeError("a tensor with a history cannot be received into: detach() it, or use torch.distributed.nn")
    _check_plain(tensor)
    array = tensor._numbers_
    if tensor._memory_ is not array:
        raise RuntimeError("a lazily conjugated or negated tensor cannot be received into: resolve_conj() it")
    if array.flags.c_contiguous:
        if not array.flags.writeable:
            raise RuntimeError("the memory of this tensor cannot be written to: clone() it")
        increment_version(tensor)
        return array
    aside = array.copy()

    def put() -> None:
        array[...] = aside

    increment_version(tensor)
    after.append(put)
    return aside


def _mean(array: Any, op: ReduceOp, size: int, after: Steps) -> None:
    """A mean is a sum that is divided."""
    if op is ReduceOp.AVG:

        def divide() -> None:
            array[...] = array / array.dtype.type(size)

        after.insert(0, divide)


def _root(group: ProcessGroup, rank: int | None, group_rank: int | None, name: str, default: int | None = None) -> int:
    """The number in the group of a process that a caller names one way or the other."""
    if rank is not None and group_rank is not None:
        raise ValueError(f"Can't specify both group_{name} and {name}")
    if group_rank is not None:
        if not 0 <= group_rank < group.size():
            raise ValueError(f"group_{name} is {group_rank}; the group has {group.size()} processes")
        return group_rank
    if rank is None:
        rank = default
    if rank is None:
        raise ValueError(f"Must specify {name} or group_{name}")
    return get_group_rank(group, rank)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """`tensor` becomes the sum (or what `op` says) of everybody's `tensor`, everywhere."""
    _check_tensor(tensor, "tensor")
    check(op, tensor._memory_.dtype, "all_reduce")
    found = resolve(group)
    if found is None:
        return None
    after: Steps = []
    array = _written(tensor, after)
    _mean(array, op, found.size(), after)
    return found.run("all_reduce", lambda b: b.all_reduce(array, op), [tensor], async_op, after)


def reduce(
    tensor: Tensor, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """`tensor` of process `dst` becomes the sum (or what `op` says) of everybody's."""
    _check_tensor(tensor, "tensor")
    check(op, tensor._memory_.dtype, "reduce")
    found = resolve(group)
    if found is None:
        return None
    root = _root(found, dst, group_dst, "dst")
    after: Steps = []
    array = _written(tensor, after) if found.rank() == root else _read(tensor)
    if found.rank() == root:
        _mean(array, op, found.size(), after)
    return found.run("reduce", lambda b: b.reduce(array, root, op), [tensor], async_op, after)


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """`tensor` becomes that of process `src`, everywhere."""
    _check_tensor(tensor, "tensor")
    found = resolve(group)
    if found is None:
        return None
    root = _root(found, src, group_src, "src")
    after: Steps = []
    array = _read(tensor) if found.rank() == root else _written(tensor, after)
    return found.run("broadcast", lambda b: b.broadcast(array, root), [tensor], async_op, after)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """`tensor_list` becomes everybody's `tensor`, in the order of ranks, everywhere."""
    _check_tensor(tensor, "tensor")
    found = resolve(group)
    if found is None:
        return None
    _check_list(tensor_list, "tensor_list", found.size())
    _check_alike(tensor, tensor_list, "tensor_list")
    _check_sizes(tensor_list[found.rank()], tensor, f"tensor_list[{found.rank()}]")
    after: Steps = []
    outs, array = [_written(t, after) for t in tensor_list], _read(tensor)
    return found.run("all_gather", lambda b: b.all_gather(outs, array), list(tensor_list), async_op, after)


def _check_sizes(one: Tensor, other: Tensor, what: str, times: int = 1) -> None:
    if one.numel() != other.numel() * times:
        raise ValueError(f"{what} has {one.numel()} elements (shape {tuple(one.shape)}), not {other.numel() * times}")


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """`output_tensor` becomes everybody's `input_tensor`, one after the other."""
    _check_tensor(input_tensor, "input_tensor")
    _check_tensor(output_tensor, "output_tensor")
    _check_alike(input_tensor, [output_tensor], "output_tensor")
    found = resolve(group)
    if found is None:
        return None
    rule = "output tensor size must be equal to world_size times input tensor size: it"
    _check_sizes(output_tensor, input_tensor, rule, found.size())
    after: Steps = []
    out, array = _written(output_tensor, after), _read(input_tensor)
    run = found.run
    return run("all_gather_into_tensor", lambda b: b.all_gather_flat(out, array), [output_tensor], async_op, after)


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`output` becomes the sum (or what `op` says) of everybody's ``input_list[rank]``."""
    _check_tensor(output, "output")
    check(op, output._memory_.dtype, "reduce_scatter")
    found = resolve(group)
    if found is None:
        return None
    _check_list(input_list, "input_list", found.size())
    _check_alike(output, input_list, "input_list")
    _check_sizes(input_list[found.rank()], output, f"input_list[{found.rank()}]")
    after: Steps = []
    out, arrays = _written(output, after), [_read(t) for t in input_list]
    _mean(out, op, found.size(), after)
    return found.run("reduce_scatter", lambda b: b.reduce_scatter(out, arrays, op), [output], async_op, after)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`output` becomes the sum (or what `op` says) of this rank's part of everybody's `input`."""
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    _check_alike(output, [input], "input")
    check(op, output._memory_.dtype, "reduce_scatter_tensor")
    found = resolve(group)
    if found is None:
        return None
    _check_sizes(input, output, "input tensor must be the same size as output size times world size: it", found.size())
    after: Steps = []
    out, array = _written(output, after), _read(input)
    _mean(out, op, found.size(), after)
    run = found.run
    return run("reduce_scatter_tensor", lambda b: b.reduce_scatter_flat(out, array, op), [output], async_op, after)


def gather(
    tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None, group: Any = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """`gather_list` of process `dst` becomes everybody's `tensor`."""
    _check_tensor(tensor, "tensor")
    found = resolve(group)
    if found is None:
        return None
    root = _root(found, dst, group_dst, "dst", 0)
    after: Steps = []
    outs: list[Any] = []
    if found.rank() == root:
        if gather_list is None:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        _check_list(gather_list, "gather_list", found.size())
        _check_alike(tensor, gather_list, "gather_list")
        outs = [_written(t, after) for t in gather_list]
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    array = _read(tensor)
    return found.run("gather", lambda b: b.gather(outs, array, root), list(gather_list or []), async_op, after)


def scatter(
    tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None, group: Any = None,
    async_op: bool = False, group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """`tensor` becomes ``scatter_list[rank]`` of process `src`."""
    _check_tensor(tensor, "tensor")
    found = resolve(group)
    if found is None:
        return None
    root = _root(found, src, group_src, "src", 0)
    arrays: list[Any] = []
    if found.rank() == root:
        if scatter_list is None:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        _check_list(scatter_list, "scatter_list", found.size())
        _check_alike(tensor, scatter_list, "scatter_list")
        arrays = [_read(t) for t in scatter_list]
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    after: Steps = []
    out = _written(tensor, after)
    return found.run("scatter", lambda b: b.scatter(out, arrays, root), [tensor], async_op, after)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """``output_tensor_list[r]`` becomes what process `r` has for this one in its `input_tensor_list`."""
    found = resolve(group)
    if found is None:
        return None
    _check_list(output_tensor_list, "output_tensor_list", found.size())
    _check_list(input_tensor_list, "input_tensor_list", found.size())
    _check_alike(output_tensor_list[0], [*output_tensor_list, *input_tensor_list], "the lists")
    _check_sizes(output_tensor_list[found.rank()], input_tensor_list[found.rank()], "what this process keeps")
    after: Steps = []
    outs, arrays = [_written(t, after) for t in output_tensor_list], [_read(t) for t in input_tensor_list]
    return found.run("all_to_all", lambda b: b.all_to_all(outs, arrays), list(output_tensor_list), async_op, after)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """`all_to_all` of the parts of a tensor along its first dimension: equal ones, or of the sizes given."""
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    _check_alike(output, [input], "input")
    found = resolve(group)
    if found is None:
        return None
    after: Steps = []
    out, array = _written(output, after), _read(input)
    outs = _split(out, output_split_sizes, found.size(), "output")
    arrays = _split(array, input_split_sizes, found.size(), "input")
    return found.run("all_to_all_single", lambda b: b.all_to_all(outs, arrays), [output], async_op, after)


def _split(array: Any, sizes: list[int] | None, parts: int, name: str) -> list[Any]:
    """Parts of an array along its first dimension."""
    length = array.shape[0] if array.ndim else 0
    if not sizes:
        if length % parts:
            raise RuntimeError(f"Tensor's dim 0 does not divide equally across group size: {name} has {length} rows")
        sizes = [length // parts] * parts
    if len(sizes) != parts or sum(sizes) != length:
        raise RuntimeError(
            f"Split sizes doesn't match total dim 0 size: {name} has {length} rows, its sizes are {sizes}"
        )
    starts = [sum(sizes[:number]) for number in range(parts)]
    return [array[start : start + size] for start, size in zip(starts, sizes)]


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all have come."""
    if device_ids is not None:
        raise TypeError("Invalid function argument: device_ids is for NCCL's barrier: leave it out")
    found = resolve(group)
    return None if found is None else found.run("barrier", lambda b: b.barrier(), [], async_op)


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """Wait until all have come; the error of one who waits too long names those who have not.

    (It names all of them, as every operation's does, and not the first, with `wait_all_ranks` or without.)
    """
    found = resolve(group)
    if found is None:
        return
    work = found.run("monitored_barrier", lambda b: b.barrier(), [], True)
    assert work is not None and wait_all_ranks in (False, True)
    work.wait(timeout)


# -------------------------------------------------------------------------------------------------------- between two


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Begin to send a tensor to process `dst`; it must not change before it has been waited for."""
    return _send(tensor, dst, group, tag, group_dst, True)


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor to process `dst`."""
    _send(tensor, dst, group, tag, group_dst, False)


def _send(tensor: Tensor, dst: int | None, group: Any, tag: int, group_dst: int | None, async_op: bool) -> Work | None:
    _check_tensor(tensor, "tensor")
    found = resolve(group)
    if found is None:
        return None
    to = _root(found, dst, group_dst, "dst")
    if to == found.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    array = _read(tensor)
    return found.run(f"send to rank {found.ranks[to]}", lambda b: b.send(array, to, tag), [tensor], async_op)


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Begin to receive a tensor from process `src`, or from any."""
    return _recv(tensor, src, group, tag, group_src)


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive a tensor from process `src`, or from any; from which it came."""
    work = _recv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source_rank() if src is None and group_src is None else _known(group, src, group_src)


def _known(group: Any, src: int | None, group_src: int | None) -> int:
    found = resolve(group)
    assert found is not None
    return found.ranks[_root(found, src, group_src, "src")]


def _recv(tensor: Tensor, src: int | None, group: Any, tag: int, group_src: int | None) -> Work | None:
    _check_tensor(tensor, "tensor")
    found = resolve(group)
    if found is None:
        return None
    source = None if src is None and group_src is None else _root(found, src, group_src, "src")
    if source == found.rank():
        raise ValueError("Invalid source rank: source rank should not be the same as the rank of the current process.")
    after: Steps = []
    array = _written(tensor, after)
    name = "recv" if source is None else f"recv from rank {found.ranks[source]}"
    return found.run(name, lambda b: b.recv(array, source, tag), [tensor], True, after)


class P2POp:
    """A message of `batch_isend_irecv`: `op` is `isend` or `irecv`."""

    op: Callable[..., Any]
    tensor: Tensor
    peer: int | None
    group: Any
    tag: int
    group_peer: int | None

    def __init__(
        self, op: Callable[..., Any], tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0,
        group_peer: int | None = None,
    ) -> None:  # fmt: skip
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                             "``torch.distributed.irecv``.")  # fmt: skip
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = (
            op,
            tensor,
            peer,
            group,
            tag,
            group_peer,
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin all these messages."""
    if not p2p_op_list or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to be of type ``torch.distributed.P2POp``.")
    started = []
    group = resolve(p2p_op_list[0].group)
    with getattr(None if group is None else group.backend, "together", nullcontext)():
        for each in p2p_op_list:
            peer = "group_dst" if each.op is isend else "group_src"
            started.append(each.op(each.tensor, each.peer, each.group, each.tag, **{peer: each.group_peer}))
    return [work for work in started if work is not None]
