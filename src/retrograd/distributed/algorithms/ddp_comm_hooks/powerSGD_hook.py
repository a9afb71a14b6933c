"""``torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook``: gradients as products of thin matrices.

PowerSGD (Vogels, Karimireddy and Jaggi, 2019): the gradient M of a matrix, n by m, is approximated by P Qᵀ with few
columns. One step of subspace iteration finds them, and is shared by all processes, since it is linear in M:

    P = mean of M Q        summed over all processes, n by rank
    P = orthonormal P
    Q = mean of Mᵀ P       summed over all processes, m by rank
    M ≈ P Qᵀ

Q is that of the step before (a *warm start*), and what the approximation leaves out is added to the gradients of the
next step (*error feedback*), so that nothing is lost for good.
"""

from __future__ import annotations

import math
from typing import Any

from ....autograd.grad_mode import no_grad
from ....futures import Future
from ....linalg import qr
from ....ops import namespace as ops
from ....random import Generator
from ....tensor import Tensor
from ...collectives import all_reduce
from ...grad_bucket import GradBucket
from ...process_group import resolve
from ...work import WorkFuture
from .default_hooks import allreduce_hook

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """What PowerSGD keeps from step to step, and its settings."""

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because "
                "buckets are put "
                "into another order after the first step"
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.generator: Generator = Generator().manual_seed(random_seed)  # the same in all processes
        self.iter: int = 0
        #: By the number of the bucket: what approximations have left out, and the last Q of each matrix.
        self.error_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, list[Tensor]] = {}
        self.total_numel_before_compression = 0
        self.total_numel_after_compression = 0

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times less is sent; how much would be without compression, and is with it."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0.0), before, after

    def _count(self, bucket: GradBucket) -> None:
        if bucket.is_last():
            self.iter += 1


def _orthonormal(matrix: Tensor, epsilon: float) -> Tensor:
    """Orthonormal columns that span what the columns span. With `epsilon`, by Gram and Schmidt's process, which is
    faster for few columns, and not exact where they depend on each other."""
    if epsilon == 0:
        return qr(matrix).Q
    columns: list[Tensor] = []
    for number in range(matrix.shape[1]):
        column = matrix[:, number]
        for other in columns:
            column = column - (other * column).sum() * other
        columns.append(column / (column.norm() + epsilon))
    return ops.stack(columns, 1)


def _sum(state: PowerSGDState, tensor: Tensor) -> Future:
    work = all_reduce(tensor, group=state.process_group, async_op=True)
    assert work is not None
    return work.get_future()


def _approximate(
    state: PowerSGDState, bucket: GradBucket, matrices: list[Tensor], rest: list[Tensor], buffer: Tensor
) -> Future:
    """A future for the bucket in which `matrices`, views of `buffer`, are approximations of means, and `rest` the
    means.
    """
    found = resolve(state.process_group)
    assert found is not None
    number, size, rank = bucket.index(), found.size(), state.matrix_approximation_rank
    before = None
    if state.use_error_feedback:
        if number in state.error_dict:
            buffer.add_(state.error_dict[number])
        before = buffer.clone()
    ranks = [min(rank, *matrix.shape) for matrix in matrices]
    if not (state.warm_start and number in state.q_memory_dict):
        drawn = [ops.randn([m.shape[1], r], generator=state.generator) for m, r in zip(matrices, ranks)]
        state.q_memory_dict[number] = [
            _orthonormal(q.to(m.dtype), state.orthogonalization_epsilon) for q, m in zip(drawn, matrices)
        ]
    qs = state.q_memory_dict[number]
    whole = ops.cat([each.reshape(-1) for each in rest]) if rest else None
    ps = [matrix @ q for matrix, q in zip(matrices, qs)]
    thin = ops.cat([p.reshape(-1) for p in ps]) if ps else None
    first = [_sum(state, each) for each in (whole, thin) if each is not None]
    thin_count = sum(p.numel() for p in ps) + sum(q.numel() for q in qs)
    state.total_numel_before_compression += buffer.numel()
    state.total_numel_after_compression += thin_count + (whole.numel() if whole is not None else 0)

    @no_grad()
    def finish() -> Tensor:
        for future in first:
            future.wait()
        if whole is not None:
            _split_into(whole.div_(size), rest)
        if thin is not None:
            parts = [p.clone() for p in ps]
            _split_into(thin, parts)
            parts = [_orthonormal(p, state.orthogonalization_epsilon) for p in parts]
            new = [matrix.t() @ p for matrix, p in zip(matrices, parts)]
            flat = ops.cat([q.reshape(-1) for q in new])
            _sum(state, flat).wait()
            _split_into(flat.div_(size), new)
            for matrix, p, q in zip(matrices, parts, new):
                matrix.copy_(p @ q.t())
            state.q_memory_dict[number] = new
        if before is not None:
            error = before - buffer
            for part in _same_places(rest, buffer, error):  # nothing was left out of these
                part.zero_()
            state.error_dict[number] = error
        return buffer

    return WorkFuture(finish)


def _split_into(flat: Tensor, tensors: list[Tensor]) -> None:
    start = 0
    for tensor in tensors:
        tensor.copy_(flat[start : start + tensor.numel()].view(tensor.shape))
        start += tensor.numel()


def _same_places(views: list[Tensor], buffer: Tensor, other: Tensor) -> list[Tensor]:
    """The parts of `other` that lie where `views` lie in `buffer`."""
    base = buffer.storage_offset()
    return [other[v.storage_offset() - base : v.storage_offset() - base + v.numel()] for v in views]


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:
    """Approximate each gradient that is a matrix, where that saves enough; the others are sent as they are."""
    if state.iter < state.start_powerSGD_iter:
        state._count(bucket)
        return allreduce_hook(state.process_group, bucket)
    matrices, rest = [], []
    for gradient in bucket.gradients():
        matrix = gradient.view(gradient.shape[0], -1) if gradient.ndim > 1 else None
        if matrix is not None and _worth_it(matrix, state):
            matrices.append(matrix)
        else:
            rest.append(gradient)
    future = _approximate(state, bucket, matrices, rest, bucket.buffer())
    state._count(bucket)
    return future


def _worth_it(matrix: Tensor, state: PowerSGDState) -> bool:
    n, m = matrix.shape
    return (n + m) * state.matrix_approximation_rank * state.min_compression_rate < n * m


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:
    """Approximate the bucket as one square matrix: faster, and less exact, than `powerSGD_hook`."""
    if state.iter < state.start_powerSGD_iter:
        state._count(bucket)
        return allreduce_hook(state.process_group, bucket)
    buffer = bucket.buffer()
    side = math.ceil(math.sqrt(buffer.numel()))
    square = buffer.new_zeros([side * side])
    square[: buffer.numel()] = buffer
    future = _approximate(state, bucket, [square.view(side, side)], [], square)
    state._count(bucket)
    return future.then(lambda done: buffer.copy_(done.value()[: buffer.numel()]))
