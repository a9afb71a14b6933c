"""``torch.distributed.algorithms.ddp_comm_hooks.default_hooks``: sums as they are, or in 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core.dtypes import by_name, dtype, float16
from ....futures import Future
from ....tensor import Tensor
from ...collectives import all_reduce
from ...grad_bucket import GradBucket
from ...process_group import resolve

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper",
    "noop_hook",
]  # fmt: skip

Hook = Callable[[Any, GradBucket], Future]


def _mean(process_group: Any, tensor: Tensor) -> Future:
    """A future for the mean of everybody's `tensor`, in its place."""
    found = resolve(process_group)
    assert found is not None
    work = all_reduce(tensor.div_(found.size()), group=found, async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future:
    """What happens without a hook: the mean of everybody's gradients."""
    return _mean(process_group, bucket.buffer())


def _compressed(process_group: Any, bucket: GradBucket, kind: dtype) -> Future:
    buffer = bucket.buffer()
    sent = _mean(process_group, buffer.to(kind))
    return sent.then(lambda done: buffer.copy_(done.value()))


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """The mean, added up in float16: half of the bytes."""
    return _compressed(process_group, bucket, float16)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """The mean, added up in bfloat16: half of the bytes, and the range of float32."""
    return _compressed(process_group, bucket, by_name("bfloat16"))


def _wrapped(hook: Hook, kind: dtype) -> Hook:
    def wrapper(state: Any, bucket: GradBucket) -> Future:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(kind))
        return hook(state, bucket).then(lambda done: buffer.copy_(_tensor(done.value())))

    return wrapper


def _tensor(value: Any) -> Tensor:
    return value[0] if isinstance(value, (list, tuple)) else value


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """`hook` on gradients in float16."""
    return _wrapped(hook, float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """`hook` on gradients in bfloat16."""
    return _wrapped(hook, by_name("bfloat16"))


def noop_hook(_: Any, bucket: GradBucket) -> Future:
    """Nothing: every process keeps its own gradients. To measure what communication costs."""
    future: Future = Future()
    future.set_result(bucket.buffer())
    return future
