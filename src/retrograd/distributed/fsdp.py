"""``torch.distributed.fsdp``: parameters shared out among processes, each of which keeps a part of every layer.

Note [Sharded parameters]
A *unit* (a module that is wrapped) has its parameters one after the other in a flat tensor, of which each process
keeps an equal part, its *shard*: that is the one parameter that optimizers see. When the unit runs, the shards are
gathered, and the parameters are views of the whole. Gathering is an operation of the graph, with a backward formula:
the gradient of the whole is summed over all processes, and each gets that of its shard.

After the forward pass the whole would stay alive, since the graph saves parameters for backward. So hooks on saved
tensors put a note in their place, which says where in the whole it was, and gather it again when the backward pass of
the unit asks for the first of them. It is let go when the gradient of the whole is complete, which is when the unit
is through. At any time a process holds its shards and the whole of one unit, or few that are nested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from ..autograd.function import Function
from ..autograd.grad_mode import no_grad
from ..autograd.saved_tensors_hooks import saved_tensors_hooks
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..ops import namespace as ops
from ..tensor import Tensor
from .collectives import all_gather_into_tensor, all_reduce, broadcast, reduce_scatter_tensor
from .process_group import ProcessGroup, resolve
from .reduce_op import ReduceOp
from .refusals import names_of

_REFUSED = [
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FullOptimStateDictConfig",
    "FullStateDictConfig", "LocalStateDictConfig", "MixedPrecision", "MixedPrecisionPolicy", "ShardedStateDictConfig",
    "ShardingStrategy", "StateDictType", "fully_shard", "register_fsdp_forward_method",
]  # fmt: skip

__all__ = ["FullyShardedDataParallel", *_REFUSED]

_refused = names_of(__name__, _REFUSED)
_WRAPPED = "_fsdp_wrapped_module"


def __getattr__(name: str) -> Any:
    return _refused(name)


class _Place(NamedTuple):
    """Where a parameter is in the whole."""

    module: Module
    name: str
    start: int
    shape: tuple[int, ...]


class _Note(NamedTuple):
    """In place of a saved tensor: where in the whole it was."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


class _Gathered(Function):
    """The whole, from this process's shard."""

    @staticmethod
    def forward(ctx: Any, unit: FullyShardedDataParallel, shard: Tensor) -> Tensor:
        ctx.unit = unit
        return unit._gather(shard)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        unit = ctx.unit
        unit._again = None  # the last formula that needs it has run
        result = ops.empty_like(unit.flat_param)
        reduce_scatter_tensor(result, grad.detach().contiguous(), ReduceOp.SUM, unit.process_group)
        return None, result.div_(unit.process_group.size())


class FullyShardedDataParallel(Module):
    """`module`, whose parameters are shared out among the processes of a group: see Note [Sharded parameters].

    Wrap the layers of a model one by one, then the model: each is gathered by itself. `auto_wrap_policy`, called with
    each submodule, says which to wrap. Gradients are the mean of everybody's, as in DistributedDataParallel, and
    parameters are those of process 0 with `sync_module_states`.
    """

    def __init__(
        self,
        module: Module,
        process_group: Any = None,
        *,
        auto_wrap_policy: Callable[[Module], bool] | None = None,
        sync_module_states: bool = False,
        device_id: Any = None,
    ) -> None:
        super().__init__()
        if device_id is not None:
            raise ValueError("FullyShardedDataParallel: modules are on the CPU: leave device_id out")
        group = resolve(process_group)
        if group is None:
            raise ValueError("FullyShardedDataParallel: this process is not in the process_group")
        self.process_group: ProcessGroup = group
        if auto_wrap_policy is not None:
            _wrap_inside(module, auto_wrap_policy, group, sync_module_states)
        self._modules[_WRAPPED] = module
        self._again: Tensor | None = None  # the whole, gathered for a backward pass
        self._shard(sync_module_states)

    @property
    def module(self) -> Module:
        """What is wrapped."""
        found = self._modules[_WRAPPED]
        assert found is not None
        return found

    # --------------------------------------------------------------------------------------------------- sharing out

    @no_grad()
    def _shard(self, sync: bool) -> None:
        """Make one flat tensor of the unit's parameters, and keep a part of it."""
        found: dict[int, tuple[Parameter, list[tuple[Module, str]]]] = {}
        for owner in _own_modules(self.module):
            for name, param in owner._parameters.items():
                if param is not None:
                    found.setdefault(id(param), (param, []))[1].append((owner, name))
        params = [param for param, _ in found.values()]
        self._places: list[_Place] = []
        if not params:  # everything inside is wrapped by itself
            return
        if len({(p.dtype, p.requires_grad) for p in params}) > 1:
            raise ValueError("FullyShardedDataParallel: the parameters of a unit must agree in dtype and requires_grad")
        size = self.process_group.size()
        start = 0
        for param, owners in found.values():
            for owner, name in owners:  # tied parameters lie in one place
                self._places.append(_Place(owner, name, start, tuple(param.shape)))
                del owner._parameters[name]
            start += param.numel()
        whole = ops.cat([param.detach().reshape(-1) for param in params])
        if sync:
            broadcast(whole, group=self.process_group, group_src=0)
        each = -(-start // size)
        self._padding = each * size - start
        padded = ops.cat([whole, whole.new_zeros([self._padding])])
        rank = self.process_group.rank()
        self.flat_param: Parameter = Parameter(padded[rank * each : (rank + 1) * each].clone(), params[0].requires_grad)

    @no_grad()
    def _gather(self, shard: Tensor) -> Tensor:
        whole = shard.detach().new_empty([shard.numel() * self.process_group.size()])
        all_gather_into_tensor(whole, shard.detach(), self.process_group)
        return whole

    # ------------------------------------------------------------------------------------------------------ running

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Gather the parameters, run the module, let them go."""
        if not self._places:
            return self.module(*args, **kwargs)
        whole = _Gathered.apply(self, self.flat_param)
        memory = whole.detach()
        self._put(whole)
        try:
            with saved_tensors_hooks(lambda tensor: _pack(tensor, memory), self._unpack):
                return self.module(*args, **kwargs)
        finally:
            self._take_away()

    def _put(self, whole: Tensor) -> None:
        views: dict[int, Tensor] = {}
        for place in self._places:
            if place.start not in views:
                count = 1
                for length in place.shape:
                    count *= length
                views[place.start] = whole[place.start : place.start + count].view(place.shape)
            place.module.__dict__[place.name] = views[place.start]

    def _take_away(self) -> None:
        for place in self._places:
            place.module.__dict__.pop(place.name, None)

    def _unpack(self, kept: Any) -> Tensor:
        if not isinstance(kept, _Note):
            return kept
        if self._again is None:
            self._again = self._gather(self.flat_param)
        return self._again.as_strided(kept.shape, kept.strides, kept.offset)

    # ---------------------------------------------------------------------------------------------- looking at the
    # whole

    @staticmethod
    @contextmanager
    def summon_full_params(module: Module, writeback: bool = True) -> Iterator[None]:
        """All parameters of `module` under their own names, whole; changes are kept, with `writeback`. All processes
        enter it together."""
        units = [unit for unit in module.modules() if isinstance(unit, FullyShardedDataParallel)]
        with ExitStack() as stack:
            for unit in units:
                stack.enter_context(unit._whole(writeback))
            yield

    @contextmanager
    def _whole(self, writeback: bool) -> Iterator[None]:
        if "flat_param" not in self._parameters:  # it is whole already, or has nothing of its own
            yield
            return
        whole = self._gather(self.flat_param)
        made: dict[int, Parameter] = {}
        for place in self._places:
            if place.start not in made:
                count = 1
                for length in place.shape:
                    count *= length
                view = whole[place.start : place.start + count].view(place.shape)
                made[place.start] = Parameter(view, self.flat_param.requires_grad)
            place.module._parameters[place.name] = made[place.start]
        hidden = self._parameters.pop("flat_param")
        try:
            yield
        finally:
            self._parameters["flat_param"] = hidden
            for place in self._places:
                del place.module._parameters[place.name]
        if writeback:
            each = self.flat_param.numel()
            rank = self.process_group.rank()
            with no_grad():
                self.flat_param.copy_(whole[rank * each : (rank + 1) * each])

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """The whole parameters, as the module without shards would have them. All processes call it."""
        if self._places and "flat_param" not in self._parameters:  # somebody who wraps this asks
            return super().state_dict(*args, **kwargs)
        with FullyShardedDataParallel.summon_full_params(self, writeback=False):
            found = super().state_dict(*args, **kwargs)
            for key in list(found):
                value = found.pop(key)
                found[key.replace(_WRAPPED + ".", "")] = value.clone() if isinstance(value, Tensor) else value
        return found

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Take whole parameters; this process keeps its shards of them."""
        if assign:
            raise ValueError("FullyShardedDataParallel: values are copied into shards: leave assign=True out")
        with FullyShardedDataParallel.summon_full_params(self):
            longer = {key.replace(_WRAPPED + ".", ""): key for key in super().state_dict()}
            return super().load_state_dict({longer.get(key, key): value for key, value in state_dict.items()}, strict)

    @no_grad()
    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale all gradients so that their norm, over all shards, is at most `max_norm`; the norm that they had."""
        grads = [p.grad for p in self.parameters() if p.grad is not None]
        if norm_type == float("inf"):
            total = ops.stack([grad.abs().max() for grad in grads]).max()
            all_reduce(total, ReduceOp.MAX, self.process_group)
        else:
            total = ops.stack([grad.abs().pow(norm_type).sum() for grad in grads]).sum()
            all_reduce(total, group=self.process_group)
            total = total.pow(1 / norm_type)
        factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for grad in grads:
            grad.mul_(factor)
        return total


def _pack(tensor: Tensor, whole: Tensor) -> Any:
    """A note, if the tensor is a part of the whole; else the tensor."""
    if tensor.untyped_storage().data_ptr() != whole.untyped_storage().data_ptr():
        return tensor
    return _Note(tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset())


def _own_modules(module: Module) -> Iterator[Module]:
    """`module` and what is in it, but for what is wrapped by itself."""
    waiting, seen = [module], set()
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen or isinstance(one, FullyShardedDataParallel):
            continue
        seen.add(id(one))
        yield one
        waiting[:0] = [child for child in one._modules.values() if child is not None]


def _wrap_inside(module: Module, wanted: Callable[[Module], bool], group: ProcessGroup, sync: bool) -> None:
    """Wrap submodules, the innermost first."""
    for owner in reversed(list(_own_modules(module))):
        for name, child in list(owner._modules.items()):
            if child is not None and not isinstance(child, FullyShardedDataParallel) and wanted(child):
                owner._modules[name] = FullyShardedDataParallel(child, group, sync_module_states=sync)
