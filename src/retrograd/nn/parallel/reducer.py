"""Reducer: gradients of several processes, summed in buckets while the backward pass is still running.

Note [Buckets]
Gradients are copied into *buckets*, flat tensors of some megabytes. As soon as the gradients of a bucket are all
there, its sum over all processes is started, and travels while the pass computes those of the next. Buckets are
always started in their order, which is the same in all processes: that of collective operations must be. At first it
is the reverse order of the parameters; after the first step, the order in which gradients arrived in process 0.

A pass tells by post-accumulate hooks which gradients have arrived. When the last bucket has been started, a callback
is queued for the end of the pass, which waits for all of them and puts the means in place of the gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...autograd.engine import engine
from ...autograd.grad_mode import no_grad
from ...distributed.collectives import all_reduce
from ...distributed.grad_bucket import GradBucket
from ...distributed.objects import broadcast_object_list
from ...distributed.process_group import ProcessGroup
from ...futures import Future
from ...ops import namespace as ops
from ...tensor import Tensor

CommHook = Callable[[Any, GradBucket], Future]


def assign(params: Sequence[Tensor], order: Sequence[int], first: int, cap: int) -> list[list[int]]:
    """Which parameters share a bucket: in `order`, each dtype by itself, up to `cap` bytes; the first one up to
    `first`.
    """
    buckets: list[list[int]] = []
    open_ones: dict[Any, tuple[list[int], int]] = {}
    limits: dict[Any, int] = {}
    for index in order:
        key = params[index].dtype, params[index].device
        limit = limits.setdefault(key, first)
        members, size = open_ones.pop(key, ([], 0))
        members.append(index)
        size += params[index].nbytes
        if size >= limit:
            buckets.append(members)
            limits[key] = cap
        else:
            open_ones[key] = members, size
    buckets += [members for members, _ in open_ones.values()]
    return sorted(buckets, key=lambda members: min(order.index(index) for index in members))


class _Bucket:
    """Gradients that travel together."""

    def __init__(self, members: list[int], params: Sequence[Tensor]) -> None:
        self.members = members
        self.buffer = params[members[0]].detach().new_zeros([sum(params[i].numel() for i in members)])
        self.views: list[Tensor] = []
        start = 0
        for index in members:
            count = params[index].numel()
            self.views.append(self.buffer[start : start + count].view(params[index].shape))
            start += count
        self.pending = len(members)
        self.future: Future | None = None


class Reducer:
    """Sums the gradients of `params` over the processes of `group`."""

    params: list[Tensor]
    names: list[str]
    group: ProcessGroup

    def __init__(
        self,
        params: Sequence[Tensor],
        names: Sequence[str],
        group: ProcessGroup,
        *,
        first_cap: int,
        cap: int,
        find_unused: bool,
        as_views: bool,
        static_graph: bool,
    ) -> None:
        self.params, self.names, self.group = list(params), list(names), group
        self._first_cap, self._cap = first_cap, cap
        self._find_unused = find_unused and not static_graph
        self._as_views, self._static_graph = as_views, static_graph
        self.divisor: int = group.size()
        self.hook: tuple[Any, CommHook] | None = None
        self._build(range(len(self.params) - 1, -1, -1))
        self.rebuilt: bool = False
        self._passes = 0  # that have summed
        self._arrivals: list[int] = []
        self._fires: list[int] | None = None  # how often each gradient arrives: known after a first pass, if static
        self._counts = [0] * len(self.params)
        self._used: set[int] = set()  # locally, since the last sum
        self.expecting: bool = False  # does the next pass sum?
        self._start()
        self._handles = [
            param.register_post_accumulate_grad_hook(self._arrival(index)) for index, param in enumerate(self.params)
        ]

    def _build(self, order: Sequence[int]) -> None:
        self.assignment: list[list[int]] = assign(self.params, order, self._first_cap, self._cap)
        self.buckets: list[_Bucket] = [_Bucket(members, self.params) for members in self.assignment]
        self._where = {i: (b, n) for b, members in enumerate(self.assignment) for n, i in enumerate(members)}

    def _start(self) -> None:
        """Nothing has arrived."""
        for bucket in self.buckets:
            bucket.pending, bucket.future = len(bucket.members), None
        self._ready: set[int] = set()
        self._next = 0
        self._unused: Sequence[int] = ()
        self._queued = False
        self._usage: Future | None = None
        self._used_map: Tensor | None = None

    # ------------------------------------------------------------------------------------------------- before a pass

    def rebuild(self) -> None:
        """Put the buckets into the order in which gradients arrived in process 0, once."""
        if self.rebuilt or self._find_unused or not self._passes:
            return
        order: list[Any] = [[*self._arrivals, *(i for i in range(len(self.params)) if i not in set(self._arrivals))]]
        broadcast_object_list(order, group=self.group, group_src=0)
        self._build(order[0])
        self._start()
        self.rebuilt = True

    def prepare(self, outputs: Sequence[Tensor] | None) -> None:
        """A forward pass has run whose backward pass sums. `outputs`: where it starts, if unused parameters are
        looked for.
        """
        self.check_finished()
        self._start()
        self.expecting = True
        if outputs is not None and self._find_unused:
            reached = reachable(outputs)
            self._unused = [index for index, param in enumerate(self.params) if id(param) not in reached]
        if self._static_graph and self._fires is not None:
            self._counts = list(self._fires)
            self._unused = [index for index, count in enumerate(self._fires) if count == 0]

    def check_finished(self) -> None:
        """Raise if the pass before has not reached all parameters."""
        if self._ready and self._next < len(self.buckets):
            missing = [self.names[i] for i in range(len(self.params)) if i not in self._ready]
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new one. On rank "
                f"{self.group.rank()} backward() did not reach: {', '.join(missing)}. Other ranks wait for their "
                "gradients. "
                "Either these parameters have no part in the loss: then pass find_unused_parameters=True to "
                "torch.nn.parallel.DistributedDataParallel; or not everything that forward() returns has a part in it"
            )

    # ------------------------------------------------------------------------------------------------- during a pass

    def _arrival(self, index: int) -> Callable[[Tensor], None]:
        def arrived(param: Tensor) -> None:
            self._used.add(index)
            if self.expecting:
                self._arrived(index)

        return arrived

    def _arrived(self, index: int) -> None:
        if not self._queued:
            self._queued = True
            if not self._static_graph:
                engine.queue_callback(self._pass_ended)
            for unused in self._unused:
                self._mark(unused)
        if not self.rebuilt and index not in self._arrivals:
            self._arrivals.append(index)
        if not self._static_graph:
            self._mark(index)
        elif self._fires is None:  # the first pass: how often it arrives is known at the end
            self._counts[index] += 1
        else:
            self._counts[index] -= 1
            if self._counts[index] < 0:
                raise RuntimeError(
                    f"Your training graph has changed in this iteration: the gradient of {self.names[index]} arrives "
                    f"more often than in the first one, on rank {self.group.rank()}; this is not compatible with "
                    "static_graph set to True."
                )
            if self._counts[index] == 0:
                self._mark(index)

    def _mark(self, index: int) -> None:
        """A gradient is complete."""
        if index in self._ready:
            raise RuntimeError(
                f"Expected to mark a variable ready only once: the gradient of {self.names[index]} arrived again on "
                "rank "
                f"{self.group.rank()}. Either it is used in several backward passes that run inside another one "
                "(reentrant "
                "checkpoints), or by several calls of forward(); static_graph=True allows it if every step does the "
                "same"
            )
        self._ready.add(index)
        number, place = self._where[index]
        bucket = self.buckets[number]
        self._fill(self.params[index], bucket.views[place])
        bucket.pending -= 1
        while self._next < len(self.buckets) and self.buckets[self._next].pending == 0:
            self._launch(self._next)
            self._next += 1
        if self._next == len(self.buckets):
            self._launched()

    @no_grad()
    def _fill(self, param: Tensor, view: Tensor) -> None:
        """Put a gradient into its place in the bucket, divided by the number of processes unless a hook does that."""
        grad = param.grad
        factor = 1.0 if self.hook is not None else 1.0 / self.divisor
        if grad is None:
            view.zero_()
        elif grad is view:
            if factor != 1.0:
                view.mul_(factor)
        else:
            if grad.layout != view.layout:
                grad = grad.to_dense()
            if factor != 1.0:
                ops.mul(grad.detach(), factor, out=view)
            else:
                view.copy_(grad)
            if self._as_views:
                param.grad = view

    def _launch(self, number: int) -> None:
        bucket = self.buckets[number]
        if self.hook is None:
            work = all_reduce(bucket.buffer, group=self.group, async_op=True)
            assert work is not None
            bucket.future = work.get_future()
        else:
            state, hook = self.hook
            given = GradBucket(
                number, bucket.buffer, bucket.views, [self.params[i] for i in bucket.members],
                number == len(self.buckets) - 1,
            )  # fmt: skip
            with no_grad():
                bucket.future = hook(state, given)
            if not isinstance(bucket.future, Future):
                raise TypeError(
                    f"a communication hook returns a torch.futures.Future, not {type(bucket.future).__name__}"
                )

    def _launched(self) -> None:
        """All buckets are on their way."""
        if self._find_unused:
            self.start_usage()
        if not self._static_graph:
            engine.queue_callback(self.finish)

    def start_usage(self) -> None:
        """Ask who has used which parameters."""
        used = [index in self._used for index in range(len(self.params))]
        self._used_map = ops.tensor(used, device=self.group.device).int()
        work = all_reduce(self._used_map, group=self.group, async_op=True)
        assert work is not None
        self._usage = work.get_future()

    def _pass_ended(self) -> None:
        """For errors elsewhere: say what this process waits for, if its pass did not reach everything."""
        activity = self.group.monitor.activity
        activity.note = ""
        if self.expecting and self._next < len(self.buckets):
            missing = [self.names[i] for i in range(len(self.params)) if i not in self._ready]
            activity.note = f"its backward() has not reached {', '.join(missing)} of DistributedDataParallel"

    # ---------------------------------------------------------------------------------------------------- after a pass

    def static_pass_ended(self) -> None:
        """The end of a pass over a graph that is always the same."""
        if not self.expecting:
            return
        if self._fires is None:
            self._fires = list(self._counts)
            for index in range(len(self.params)):
                self._mark(index)
        elif self._next < len(self.buckets):
            missing = [self.names[i] for i in range(len(self.params)) if i not in self._ready]
            raise RuntimeError(
                f"Your training graph has changed in this iteration: on rank {self.group.rank()} backward() did not "
                "reach "
                f"{', '.join(missing)} as often as in the first one; this is not compatible with static_graph set "
                "to True."
            )
        self.finish()

    @no_grad()
    def finish(self) -> None:
        """Wait for all buckets; the means become the gradients."""
        self.expecting = False
        unused = self._unused_by_all()
        for bucket in self.buckets:
            assert bucket.future is not None
            result = bucket.future.wait()
            result = result[0] if isinstance(result, (list, tuple)) else result
            if result is not bucket.buffer:
                bucket.buffer.copy_(result.view(-1))
            for index, view in zip(bucket.members, bucket.views):
                if index in unused:
                    if self.params[index].grad is view:
                        self.params[index].grad = None
                    continue
                self._give(self.params[index], view)
        self._used.clear()
        self._passes += 1
        self.group.monitor.activity.note = ""
        self._next = len(self.buckets)

    def _give(self, param: Tensor, view: Tensor) -> None:
        if self._as_views:
            param.grad = view
        elif param.grad is None:
            param.grad = view.clone()
        elif param.grad.layout != view.layout:
            param.grad = view.clone()
        else:
            param.grad.copy_(view)

    def _unused_by_all(self) -> set[int]:
        """Parameters that nobody has used: their gradients stay as they are."""
        if self._static_graph and self._fires is not None:
            return {index for index, count in enumerate(self._fires) if count == 0 and self.params[index].grad is None}
        if self._usage is None:
            return set()
        self._usage.wait()
        assert self._used_map is not None
        return {index for index, count in enumerate(self._used_map.tolist()) if count == 0}

    # --------------------------------------------------------------------------------------- for those who have no
    # data left

    @no_grad()
    def shadow(self) -> None:
        """Take part in the sums of a pass with nothing, as long as others have data."""
        self._start()
        for number, bucket in enumerate(self.buckets):
            bucket.buffer.zero_()
            self._launch(number)
        self._used.clear()
        if self._find_unused:
            self.start_usage()
        self.finish()

    def close(self) -> None:
        """Take the hooks away."""
        for handle in self._handles:
            handle.remove()


def reachable(outputs: Sequence[Tensor]) -> set[int]:
    """The leaves that backward() from `outputs` reaches, by their identity."""
    found: set[int] = set()
    seen: set[Any] = set()
    waiting = []
    for output in outputs:
        if output.grad_fn is not None:
            waiting.append(output.grad_fn)
        elif output.requires_grad:
            found.add(id(output))
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None:
            found.add(id(variable))
        waiting += [following for following, _ in node.next_functions if following is not None]
    return found
