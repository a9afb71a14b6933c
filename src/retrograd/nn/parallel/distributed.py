"""DistributedDataParallel: one module trained by several processes, each on its part of the batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...autograd.engine import engine
from ...autograd.function import Function
from ...autograd.grad_mode import is_grad_enabled, no_grad
from ...distributed.algorithms.join import Join, Joinable, JoinHook
from ...distributed.collectives import all_reduce, broadcast
from ...distributed.objects import all_gather_object
from ...distributed.process_group import ProcessGroup, resolve
from ...distributed.reduce_op import ReduceOp
from ...ops import namespace as ops
from ...tensor import Tensor
from ..modules.module import Module
from .reducer import CommHook, Reducer

__all__ = ["DistributedDataParallel"]

_MB = 1024 * 1024


def tensors_of(thing: Any) -> Iterator[Tensor]:
    """The tensors in what a module returns: in lists, tuples, dicts and objects with attributes, however nested."""
    waiting = [thing]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Tensor):
            yield one
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, (list, tuple, set)):
            waiting += one
        elif hasattr(one, "__dataclass_fields__"):
            waiting += vars(one).values()


@no_grad()
def broadcast_together(tensors: Sequence[Tensor], src: int, group: ProcessGroup, most: int = 250 * _MB) -> None:
    """`tensors` become those of the member `src`, in few large messages."""
    by_dtype: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        by_dtype.setdefault(tensor.dtype, []).append(tensor.detach())
    for alike in by_dtype.values():
        while alike:
            part: list[Tensor] = []
            size = 0
            while alike and (not part or size + alike[0].nbytes <= most):
                size += alike[0].nbytes
                part.append(alike.pop(0))
            flat = ops.cat([tensor.reshape(-1) for tensor in part])
            broadcast(flat, group=group, group_src=src)
            start = 0
            for tensor in part:
                tensor.copy_(flat[start : start + tensor.numel()].view(tensor.shape))
                start += tensor.numel()


def verify_same(named: Sequence[tuple[str, Tensor]], group: ProcessGroup) -> None:
    """Raise, in all processes, unless all have the same parameters: which one differs, and where."""
    mine = [(name, tuple(tensor.shape), str(tensor.dtype)) for name, tensor in named]
    everybody: list[Any] = [None] * group.size()
    all_gather_object(everybody, mine, group)
    for rank, other in enumerate(everybody):
        if len(other) != len(everybody[0]):
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank 0 has {len(everybody[0])} params, while rank "
                f"{rank} has "
                f"inconsistent {len(other)} params."
            )
    for position, first in enumerate(everybody[0]):
        wrong = [rank for rank, other in enumerate(everybody) if other[position][1:] != first[1:]]
        if wrong:
            seen = everybody[wrong[0]][position]
            raise RuntimeError(
                f"DDP expects same model across all ranks: params[{position}], {seen[0]}, on ranks {wrong} with sizes "
                f"{list(seen[1])} and {seen[2]} appears not to match sizes of the same param in process 0, "
                f"{first[0]} with "
                f"{list(first[1])} and {first[2]}."
            )


class _Sink(Function):
    """What a forward pass returns, unchanged; its backward pass begins here, and has to end with `ended`."""

    @staticmethod
    def forward(ctx: Any, ended: Callable[[], None], *tensors: Tensor) -> Any:
        ctx.ended = ended
        ctx.set_materialize_grads(False)
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        engine.queue_callback(ctx.ended)
        return (None, *grads)


class DistributedDataParallel(Module, Joinable):
    """`module`, trained by all processes of a group: each computes on its own part of the batch, and gradients are
    the mean of everybody's, so that all take the same steps.

    Gradients are summed in buckets during the backward pass: Note [Buckets] in reducer.py. Parameters and buffers are
    those of process 0 to begin with; buffers are again before every forward pass, with `broadcast_buffers`.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
    ) -> None:
        super().__init__()
        Joinable.__init__(self)
        for name, value in (
            ("delay_all_reduce_named_params", delay_all_reduce_named_params), ("device_mesh", device_mesh),
            ("param_to_hook_all_reduce", param_to_hook_all_reduce), ("mixed_precision", mixed_precision),
            ("skip_all_reduce_unused_params", skip_all_reduce_unused_params or None),
        ):  # fmt: skip
            if value is not None:
                raise NotImplementedError(f"DistributedDataParallel: '{name}' is not supported: leave it out")
        if device_ids or output_device is not None:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-"
                f"device GPU modules; here modules are on the CPU, but got device_ids {device_ids}, output_device "
                f"{output_device}: leave them out"
            )
        if check_reduction:
            said = "The `check_reduction` argument in `DistributedDataParallel` module is deprecated"
            warnings.warn(f"{said}: reductions are always checked", FutureWarning, stacklevel=2)
        group = resolve(process_group)
        if group is None:
            raise ValueError("DistributedDataParallel: this process is not in the process_group")
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(n, p) for n, p in module.named_parameters() if p.requires_grad and n not in ignored]
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a "
                "gradient."
            )
        self.module = module
        self.process_group = group
        self.device_ids: None = None
        self.output_device: None = None
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph: bool = static_graph
        self.require_backward_grad_sync: bool = True
        self.require_forward_param_sync: bool = True
        self.parameters_to_ignore = ignored
        self._divide_by_initial_world_size = True
        cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * _MB)
        self.bucket_bytes_cap = cap
        self._buffers_shared = [b for n, b in module.named_buffers() if n not in ignored]
        verify_same(named, group)
        if init_sync:
            everything = [p for n, p in module.named_parameters() if n not in ignored]
            broadcast_together([*everything, *self._buffers_shared], 0, group)
        first_cap = min(_MB, cap) if bucket_cap_mb is None else cap
        self.reducer: Reducer = Reducer(
            [p for _, p in named], [n for n, _ in named], group, first_cap=first_cap, cap=cap,
            find_unused=find_unused_parameters, as_views=gradient_as_bucket_view, static_graph=static_graph,
        )  # fmt: skip

    # -------------------------------------------------------------------------------------------------------- a step

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Run the module; the backward pass of what it gives sums gradients, unless in `no_sync`."""
        reducer, joining = self.reducer, self._join_config.enable
        sync = is_grad_enabled() and self.require_backward_grad_sync
        if joining and is_grad_enabled():  # the others have to know that, and how, a step begins
            work = Join.notify_join_context(self)
            reducer.divisor = self.process_group.size()
            if work is not None and not self._divide_by_initial_world_size:
                work.wait()
                reducer.divisor = int(work.result()[0].item())
            self._tell_whether_to_sync(sync)
        if self.broadcast_buffers and self.require_forward_param_sync and (is_grad_enabled() or not joining):
            self._share_buffers()
        if sync:
            reducer.check_finished()
            reducer.rebuild()
        output = self.module(*inputs, **kwargs)
        if not sync:
            self.require_forward_param_sync = False
            reducer.expecting = False
            return output
        self.require_forward_param_sync = True
        reducer.prepare(list(tensors_of(output)) if self.find_unused_parameters else None)
        return self._sunk(output) if self.static_graph else output

    def _share_buffers(self) -> None:
        if self._buffers_shared:
            broadcast_together(self._buffers_shared, self._buffer_source(), self.process_group)

    def _sunk(self, output: Any) -> Any:
        """`output` with a node in front, which hears of the pass before all others."""
        tensors = [t for t in tensors_of(output) if t.requires_grad]
        if not tensors:
            return output
        replaced = dict(zip(map(id, tensors), _Sink.apply(self.reducer.static_pass_ended, *tensors)))
        return _replace(output, replaced)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Passes in it add gradients up in each process; the first one after it sums all of them."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: CommHook) -> None:
        """Have `hook(state, bucket)` communicate in place of the sum; it gives a future for the mean of the bucket."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook = state, hook

    def _set_static_graph(self) -> None:
        """The older way to say ``static_graph=True``."""
        self.static_graph = self.reducer._static_graph = True
        self.reducer._find_unused = False

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        """Leave these parameters and buffers to each process."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    # ------------------------------------------------------------------------------------------------- uneven inputs

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """A context in which processes may have numbers of batches that differ: see ``distributed.algorithms.Join``."""
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process without data does while others have some."""
        return _DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        return self.reducer.params[0].device

    @property
    def join_process_group(self) -> ProcessGroup:
        return self.process_group

    def _tell_whether_to_sync(self, sync: bool) -> bool:
        """In a join, those without data have to know what the others do."""
        flag = ops.tensor([1 if sync else 0], device=self.process_group.device)
        all_reduce(flag, group=self.process_group)
        return bool(flag.item())

    def _buffer_source(self) -> int:
        """The process whose buffers all take: 0, or in a join the last one that has data."""
        if not self._join_config.enable:
            return 0
        rank = self.process_group.rank() if not self._join_config.shadowing else -1
        found = ops.tensor([rank], device=self.process_group.device)
        from_all = _max(found, self.process_group)
        return max(0, from_all)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        del state["process_group"], state["reducer"]
        return state


def _max(value: Tensor, group: ProcessGroup) -> int:
    all_reduce(value, ReduceOp.MAX, group)
    return int(value.item())


class _DDPJoinHook(JoinHook):
    """Takes part in what others do, with nothing."""

    def __init__(self, ddp: DistributedDataParallel, divide_by_initial: bool) -> None:
        self.ddp = ddp
        ddp._divide_by_initial_world_size = divide_by_initial

    def main_hook(self) -> None:
        ddp = self.ddp
        ddp._join_config.shadowing = True
        sync = ddp._tell_whether_to_sync(False)
        if ddp.broadcast_buffers and ddp.require_forward_param_sync:
            ddp._share_buffers()
        ddp.require_forward_param_sync = sync
        if sync:
            ddp.reducer.rebuild()
            ddp.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """All have ended: everybody takes the model of one who ended last."""
        ddp = self.ddp
        ddp._join_config.shadowing = False
        own = ddp.process_group.rank() if is_last_joiner else -1
        source = ops.tensor([own], device=ddp.process_group.device)
        everything = [*ddp.reducer.params, *ddp._buffers_shared]
        broadcast_together(everything, _max(source, ddp.process_group), ddp.process_group)


def _replace(thing: Any, replaced: dict[int, Tensor]) -> Any:
    """`thing` with other tensors in it."""
    if isinstance(thing, Tensor):
        return replaced.get(id(thing), thing)
    if isinstance(thing, dict):
        return type(thing)((key, _replace(value, replaced)) for key, value in thing.items())
    if isinstance(thing, tuple) and hasattr(thing, "_fields"):
        return type(thing)(*(_replace(value, replaced) for value in thing))
    if isinstance(thing, (list, tuple)):
        return type(thing)(_replace(value, replaced) for value in thing)
    return thing
