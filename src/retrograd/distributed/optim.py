"""``torch.distributed.optim``: an optimizer whose state is shared out among processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.grad_mode import enable_grad, no_grad
from ..ops import namespace as ops
from ..optim.optimizer import Optimizer
from ..tensor import Tensor
from .algorithms.join import Join, Joinable, JoinHook
from .collectives import broadcast
from .objects import broadcast_object_list
from .process_group import ProcessGroup, resolve
from .refusals import names_of

_REFUSED = ["DistributedOptimizer", "PostLocalSGDOptimizer"]

__all__ = ["ZeroRedundancyOptimizer", *_REFUSED]

_refused = names_of(__name__, _REFUSED)


def __getattr__(name: str) -> Any:
    return _refused(name)


class _ZeROJoinHook(JoinHook):
    """A process without inputs still updates its share."""

    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self.zero = zero

    def main_hook(self) -> None:
        self.zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer each of whose processes updates a share of the parameters, and sends them to all others.

    So each keeps the state (momentum and so on) of its share alone. Gradients have to be the same everywhere before
    `step`: DistributedDataParallel sees to that.

    ``ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-3)``
    """

    rank: int
    world_size: int

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp=True is not supported: leave it out")
        group = resolve(process_group)
        if group is None:
            raise ValueError("ZeroRedundancyOptimizer: this process is not in the process_group")
        self.process_group: ProcessGroup = group
        self.rank, self.world_size = group.rank(), group.size()
        self._optim_class, self._optim_defaults = optimizer_class, defaults
        self._all_states: list[dict[str, Any]] = []
        self._shares: list[list[Tensor]] = []
        self._as_views = parameters_as_bucket_view
        Joinable.__init__(self)
        Optimizer.__init__(self, params, defaults)
        self._share_out()

    # ------------------------------------------------------------------------------------------------ who has what

    def _share_out(self) -> None:
        """Give each parameter, large ones first, to the process that has least; the same in all processes."""
        sizes = [0] * self.world_size
        owners: dict[int, int] = {}
        everything = [p for group in self.param_groups for p in group["params"]]
        for param in sorted(everything, key=lambda p: p.numel(), reverse=True):
            owner = sizes.index(min(sizes))
            owners[id(param)] = owner
            sizes[owner] += param.numel()
        self._owner = owners
        self._shares = [[p for p in everything if owners[id(p)] == rank] for rank in range(self.world_size)]
        if self._as_views:
            self._make_views()
        mine = []
        for group in self.param_groups:
            settings = {key: value for key, value in group.items() if key != "params"}
            mine.append({**settings, "params": [p for p in group["params"] if owners[id(p)] == self.rank]})
        self._mine_of = [number for number, group in enumerate(mine) if group["params"]]
        kept = [group for group in mine if group["params"]]
        self.optim: Optimizer | None = self._optim_class(kept, **self._optim_defaults) if kept else None
        if self.optim is not None:
            for number, group in zip(self._mine_of, self.optim.param_groups):
                for key, value in group.items():
                    self.param_groups[number].setdefault(key, value)

    @no_grad()
    def _make_views(self) -> None:
        """Put each share into one piece of memory, so that it is sent without a copy."""
        self._pieces: list[list[Tensor]] = []
        for share in self._shares:
            pieces = []
            for dtype in dict.fromkeys(p.dtype for p in share):
                alike = [p for p in share if p.dtype == dtype]
                piece = ops.cat([p.detach().reshape(-1) for p in alike])
                start = 0
                for p in alike:
                    p.data = piece[start : start + p.numel()].view(p.shape)
                    start += p.numel()
                pieces.append(piece)
            self._pieces.append(pieces)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Further parameters; shares are made anew, and state is lost: add groups before the first step."""
        super().add_param_group(param_group)
        if self._shares:
            self._share_out()

    # ------------------------------------------------------------------------------------------------------- a step

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update this process's share, and get the others'."""
        Join.notify_join_context(self)
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        if self.optim is not None:
            self._settings_to(self.optim)
            self.optim.step(**kwargs)
        self._sync()
        return loss

    def _settings_to(self, optim: Optimizer) -> None:
        """What a scheduler has changed goes to the optimizer that steps."""
        for number, group in zip(self._mine_of, optim.param_groups):
            group.update({key: value for key, value in self.param_groups[number].items() if key != "params"})

    @no_grad()
    def _sync(self) -> None:
        works = []
        for owner in range(self.world_size):
            tensors = self._pieces[owner] if self._as_views else [p.detach() for p in self._shares[owner]]
            works += [broadcast(t, group=self.process_group, async_op=True, group_src=owner) for t in tensors]
        for work in works:
            assert work is not None
            work.wait()

    # ------------------------------------------------------------------------------------------------- state dicts

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect everybody's state in process `to`, where `state_dict` gives it then. All processes call it."""
        self._all_states = []
        for owner in range(self.world_size):
            state: list[Any] = [self._own_state() if owner == self.rank else None]
            broadcast_object_list(state, group=self.process_group, group_src=owner)
            if self.rank == to:
                self._all_states.append(state[0])

    def _own_state(self) -> dict[int, Any]:
        """State by the number of the parameter among all."""
        if self.optim is None:
            return {}
        return {self._number()[id(p)]: self.optim.state[p] for p in self._shares[self.rank] if p in self.optim.state}

    def _number(self) -> dict[int, int]:
        everything = [p for group in self.param_groups for p in group["params"]]
        return {id(p): number for number, p in enumerate(everything)}

    def state_dict(self) -> dict[str, Any]:
        """The whole state, as an ordinary optimizer would have it."""
        if not self._all_states:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to="
                f"{self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        found = super().state_dict()
        found["state"] = {number: state for part in self._all_states for number, state in part.items()}
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a whole state; this process keeps its share of it."""
        super().load_state_dict({**state_dict, "state": {}})
        if self.optim is None:
            return
        numbers = self._number()
        whole = state_dict["state"]
        mine = [p for group in self.optim.param_groups for p in group["params"]]
        own = self.optim.state_dict()
        own["state"] = {place: whole[numbers[id(p)]] for place, p in enumerate(mine) if numbers[id(p)] in whole}
        self.optim.load_state_dict(own)
        self._settings_to(self.optim)

    # ---------------------------------------------------------------------------------------------------- uneven inputs

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process without inputs does."""
        return _ZeROJoinHook(self)

    @property
    def join_device(self) -> Any:
        return self._shares[0][0].device

    @property
    def join_process_group(self) -> ProcessGroup:
        return self.process_group
