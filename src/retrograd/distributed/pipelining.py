"""``torch.distributed.pipelining``: a model too large for one process, whose layers are shared out among several.

Each process has a *stage*, some consecutive layers, and the batch goes through them in small parts, *micro-batches*,
so that all stages have something to do. Between stages are the `send` and `recv` that have gradients
(nn/functional.py): the result of a stage is sent on, and what `send` gives stands for it; ``backward()`` of that
waits for the gradient that comes back. So a schedule is nothing but an order of forward and backward passes:

    GPipe   all forward passes, then all backward passes: a stage holds what every micro-batch has saved for backward
    1F1B    as soon as a stage has a gradient, one backward pass, then one forward pass: a stage holds what as many have
            saved as there are stages behind it, however many micro-batches there are

    1F1B, 3 stages, 5 micro-batches        (1 is the forward pass of micro-batch 1, a its backward pass)

    stage 0    1 2 3 . . a 4 b 5 c . d . e
    stage 1    . 1 2 . a 3 b 4 c 5 d . e
    stage 2    . . 1 a 2 b 3 c 4 d 5 e
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..autograd.grad_mode import no_grad
from ..autograd.run_backward import backward as run_backward
from ..core.dtypes import by_numpy, from_numpy_dtype
from ..nn.modules.module import Module
from ..ops import namespace as ops
from ..tensor import Tensor
from . import collectives
from .nn.functional import recv, send
from .process_group import resolve
from .refusals import names_of

_REFUSED = ["SplitPoint", "pipe_split", "pipeline"]

__all__ = ["PipelineStage", "Schedule1F1B", "ScheduleGPipe", *_REFUSED]

_refused = names_of(__name__, _REFUSED)


def __getattr__(name: str) -> Any:
    return _refused(name)


#: Numbers that tell what a tensor is like: how many come, its dtype, its number of dimensions, its sizes.
_HEADER = 12
_DTYPES = sorted(str(kind) for kind in by_numpy)
_TAG = 7


class PipelineStage:
    """Some consecutive layers of a model, `submodule`, which this process has.

    `stage_index` counts from 0 to ``num_stages - 1``; stage number i belongs to process number i of the group. A
    stage takes and gives a tensor, or a tuple of them.
    """

    stage_index: int
    num_stages: int
    is_first: bool
    is_last: bool

    def __init__(
        self, submodule: Module, stage_index: int, num_stages: int, device: Any = None, *, group: Any = None
    ) -> None:
        found = resolve(group)
        if found is None:
            raise ValueError("PipelineStage: this process is not in the group")
        if found.size() != num_stages or found.rank() != stage_index:
            raise ValueError(
                f"PipelineStage: stage {stage_index} of {num_stages} belongs to process {stage_index} of a group of "
                f"{num_stages}; this is process {found.rank()} of {found.size()}"
            )
        self.submod: Module = submodule if device is None else submodule.to(device)
        self.stage_index, self.num_stages, self.group = stage_index, num_stages, found
        self.is_first, self.is_last = stage_index == 0, stage_index == num_stages - 1

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.submod(*inputs, **kwargs)

    def take(self) -> tuple[Tensor, ...]:
        """What the stage before sends, such that gradients go back there."""
        before = self.group.ranks[self.stage_index - 1]
        taken: list[Tensor] = []
        count = 1
        while len(taken) < count:
            header = ops.zeros([_HEADER], dtype=ops.tensor(0).dtype, device=self.group.device)
            collectives.recv(header, before, self.group, _TAG)
            count, kind, dims, *sizes = header.tolist()
            dtype = from_numpy_dtype(next(k for k in by_numpy if str(k) == _DTYPES[kind]))
            varies = dtype.is_floating_point or dtype.is_complex
            template = ops.zeros(sizes[:dims], dtype=dtype, device=self.group.device, requires_grad=varies)
            taken.append(recv(template, before, self.group, _TAG))
        return tuple(taken)

    def give(self, output: Any) -> list[Tensor]:
        """Send a result to the next stage; what stands for it here, to begin the backward pass from."""
        after = self.group.ranks[self.stage_index + 1]
        outputs = output if isinstance(output, (tuple, list)) else (output,)
        tokens = []
        for tensor in outputs:
            sizes = list(tensor.shape)
            if len(sizes) > _HEADER - 3:
                raise ValueError(f"stages send tensors of up to {_HEADER - 3} dimensions, not {len(sizes)}")
            kind = _DTYPES.index(str(tensor._memory_.dtype))
            header = [len(outputs), kind, len(sizes), *sizes, *[0] * (_HEADER - 3 - len(sizes))]
            collectives.isend(ops.tensor(header, device=self.group.device), after, self.group, _TAG)
            tokens.append(send(tensor, after, self.group, _TAG))
        return tokens


class _Schedule:
    """The passes of a step, in some order."""

    stage: PipelineStage

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        *,
        scale_grads: bool = True,
    ) -> None:
        if n_microbatches < 1:
            raise ValueError(f"n_microbatches has to be positive, not {n_microbatches}")
        self.stage, self.loss_fn, self._scale = stage, loss_fn, scale_grads
        self._n_microbatches = n_microbatches
        #: What is to be differentiated, of micro-batches whose backward pass has not run.
        self._waiting: dict[int, list[Tensor]] = {}
        #: The most that there were at a time.
        self.most_waiting: int = 0

    def order(self) -> Iterator[tuple[str, int]]:
        """The passes of this stage: ("forward" or "backward", micro-batch)."""
        raise NotImplementedError

    def step(self, *args: Any, target: Any = None, losses: list | None = None, **kwargs: Any) -> Any:
        """One step: the first stage gives the inputs of the batch, the last one the targets.

        Gradients are left in the parameters of each stage: those of the mean loss of the micro-batches. `losses` gets
        theirs, and the result is that of the whole batch, in the last stage.
        """
        return self._run(args, kwargs, target, losses, self.loss_fn is not None)

    def eval(self, *args: Any, target: Any = None, losses: list | None = None, **kwargs: Any) -> Any:
        """The forward passes alone."""
        with no_grad():
            return self._run(args, kwargs, target, losses, False)

    def _run(self, args: Any, kwargs: dict[str, Any], target: Any, losses: list | None, backward: bool) -> Any:
        stage, count = self.stage, self._n_microbatches
        if stage.is_last and target is None and self.loss_fn is not None:
            raise ValueError("step(): the last stage needs target=..., for the loss")
        inputs = _chunks((args, kwargs), count) if stage.is_first else [((), {})] * count
        targets = _chunks(target, count) if stage.is_last and target is not None else [None] * count
        outputs: list[Any] = [None] * count
        found: list[Tensor] = []
        passes = self.order() if backward else (("forward", number) for number in range(count))
        for kind, number in passes:
            if kind == "forward":
                outputs[number] = self._forward(number, inputs[number], targets[number], found, backward)
            else:
                self._backward(number)
        if losses is not None:
            losses[:] = found
        return _joined(outputs) if stage.is_last else None

    def _forward(self, number: int, given: Any, target: Any, losses: list[Tensor], backward: bool) -> Any:
        stage = self.stage
        args, kwargs = given if stage.is_first else (stage.take(), {})
        output = stage(*args, **kwargs)
        if stage.is_last:
            roots = []
            if self.loss_fn is not None and target is not None:
                loss = self.loss_fn(output, target)
                losses.append(loss.detach())
                roots = [loss / self._n_microbatches if self._scale else loss]
        else:
            roots = stage.give(output)
        if backward:
            self._waiting[number] = [root for root in roots if root.requires_grad]
            self.most_waiting = max(self.most_waiting, len(self._waiting))
        return _detached(output) if stage.is_last else None

    def _backward(self, number: int) -> None:
        roots = self._waiting.pop(number)
        if roots:
            run_backward(roots)


class ScheduleGPipe(_Schedule):
    """All forward passes, then all backward passes."""

    def order(self) -> Iterator[tuple[str, int]]:
        for number in range(self._n_microbatches):
            yield "forward", number
        for number in range(self._n_microbatches):
            yield "backward", number


class Schedule1F1B(_Schedule):
    """One forward, one backward: as many forward passes as there are stages from here on, then each in turn."""

    def order(self) -> Iterator[tuple[str, int]]:
        count = self._n_microbatches
        ahead = min(count, self.stage.num_stages - self.stage.stage_index)
        for number in range(ahead):
            yield "forward", number
        for number in range(count):
            yield "backward", number
            if number + ahead < count:
                yield "forward", number + ahead


# ------------------------------------------------------------------------------------------------------------ batches


def _chunks(thing: Any, count: int) -> list[Any]:
    """A batch in parts along the first dimension of its tensors, in whatever they are nested."""
    if isinstance(thing, Tensor):
        parts = list(thing.tensor_split(count))
        if any(part.shape[0] == 0 for part in parts):
            raise ValueError(f"a batch of {thing.shape[0]} cannot be {count} micro-batches")
        return parts
    if isinstance(thing, dict):
        by_key = {key: _chunks(value, count) for key, value in thing.items()}
        return [{key: parts[number] for key, parts in by_key.items()} for number in range(count)]
    if isinstance(thing, (list, tuple)):
        members = [_chunks(value, count) for value in thing]
        return [type(thing)(parts[number] for parts in members) for number in range(count)]
    return [thing] * count


def _joined(outputs: Sequence[Any]) -> Any:
    """The results of micro-batches as one."""
    first = outputs[0]
    if isinstance(first, Tensor):
        return ops.cat(list(outputs)) if first.ndim else ops.stack(list(outputs))
    if isinstance(first, (list, tuple)):
        return type(first)(_joined([output[place] for output in outputs]) for place in range(len(first)))
    if isinstance(first, dict):
        return {key: _joined([output[key] for output in outputs]) for key in first}
    return list(outputs)


def _detached(thing: Any) -> Any:
    if isinstance(thing, Tensor):
        return thing.detach()
    if isinstance(thing, (list, tuple)):
        return type(thing)(_detached(value) for value in thing)
    if isinstance(thing, dict):
        return {key: _detached(value) for key, value in thing.items()}
    return thing
