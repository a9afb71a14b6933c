"""``torch.optim.swa_utils``: averages of a model's weights along its training, and a scheduler for them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..nn import Module
from ..ops import factories
from ..ops.registry import SPACES
from ..tensor import Tensor
from ..utils._foreach_utils import _group_tensors_by_device_and_dtype
from .lr_scheduler import LRScheduler, _format_param
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

PARAM_LIST = Sequence[Tensor]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _has_fractions(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[PARAM_LIST, PARAM_LIST, Any], None]:
    """For `AveragedModel`: an exponential moving average, of lists of tensors.

    >>> import retrograd as torch
    >>> mean = [torch.tensor([1.])]
    >>> get_ema_multi_avg_fn(0.75)(mean, [torch.tensor([5.])], 1)
    >>> mean
    [tensor([2.])]
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param_list: PARAM_LIST, current_param_list: PARAM_LIST, _: Any) -> None:
        if _has_fractions(ema_param_list[0]):
            SPACES["torch"]["_foreach_lerp_"](ema_param_list, current_param_list, 1 - decay)
        else:
            for mean, current in zip(ema_param_list, current_param_list, strict=True):
                mean.copy_(mean * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[[PARAM_LIST, PARAM_LIST, Any], None]:
    """For `AveragedModel`: the plain mean, of lists of tensors."""

    @no_grad()
    def swa_update(averaged_param_list: PARAM_LIST, current_param_list: PARAM_LIST, num_averaged: Any) -> None:
        count = (num_averaged.item() if isinstance(num_averaged, Tensor) else num_averaged) + 1
        if _has_fractions(averaged_param_list[0]):
            SPACES["torch"]["_foreach_lerp_"](averaged_param_list, current_param_list, 1 / count)
        else:
            for mean, current in zip(averaged_param_list, current_param_list, strict=True):
                mean.copy_(mean + (current - mean) / count)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """For `AveragedModel`: an exponential moving average, of one tensor."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """For `AveragedModel`: the plain mean, of one tensor."""

    @no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model with averaged parameters: the mean of all that `update_parameters` saw, or what `avg_fn` or
    `multi_avg_fn` makes of them. With `use_buffers` buffers are averaged too, else they are those of the last one.

    >>> import retrograd as torch
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> averaged = torch.optim.swa_utils.AveragedModel(model)
    >>> for value in (1., 2., 6.):
    ...     model.weight = torch.nn.Parameter(torch.tensor([[value]]))
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item()
    3.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[PARAM_LIST, PARAM_LIST, Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module: Any = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", factories.tensor(0, dtype=dtypes.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model computes."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the model's parameters, as they are now, into the average."""
        means = [tensor.detach() for tensor in self._averaged(self.module)]
        news = [new.detach().to(mean.device) for mean, new in zip(means, self._averaged(model))]
        if self.n_averaged == 0:
            for mean, new in zip(means, news):
                mean.copy_(new)
        elif self.avg_fn is not None:
            for mean, new in zip(means, news):
                mean.copy_(self.avg_fn(mean, new, self.n_averaged.to(mean.device)))
        else:
            average = self.multi_avg_fn or get_swa_multi_avg_fn()
            for (device, _), ((some, current), _) in _group_tensors_by_device_and_dtype([means, news]).items():
                average(some, current, self.n_averaged.to(device))  # type: ignore[arg-type]
        if not self.use_buffers:
            for mine, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.detach().copy_(theirs.detach().to(mine.device))
        self.n_averaged += 1

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        return itertools.chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of all batch norms anew, from what is in `loader`: averaged weights have others.

    >>> import retrograd as torch
    >>> model = torch.nn.Sequential(torch.nn.BatchNorm1d(1))
    >>> torch.optim.swa_utils.update_bn([torch.tensor([[1.], [3.]]), torch.tensor([[2.], [8.]])], model)
    >>> model[0].running_mean
    tensor([3.5000])
    """
    from ..nn.modules.batchnorm import _BatchNorm  # modules are loaded by who uses them

    momenta = {module: module.momentum for module in model.modules() if isinstance(module, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    try:
        for module in momenta:
            module.reset_running_stats()
            module.momentum = None  # the mean of all batches
        for batch in loader:
            if isinstance(batch, (list, tuple)):
                batch = batch[0]
            model(batch if device is None else batch.to(device))
    finally:
        for module, momentum in momenta.items():
            module.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """From whatever the rate is to `swa_lr`, in `anneal_epochs` steps, and then constant.

    >>> import retrograd as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = SWALR(optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [1.0, 0.75, 0.5, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = _format_param("swa_lr", optimizer, swa_lr)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """How far it has come, for the share `t` of the steps."""
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        epochs = max(1, self.anneal_epochs)
        before = self.anneal_func(max(0, min(1, (step - 1) / epochs)))
        now = self.anneal_func(max(0, min(1, step / epochs)))
        rates = []
        for group in self.optimizer.param_groups:
            last, end = group["lr"], group["swa_lr"]
            start = end if before == 1 else (last - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates
