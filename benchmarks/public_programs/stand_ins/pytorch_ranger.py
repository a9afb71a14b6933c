"""Stands in for optimizers of another package, which torch_optimizer offers under its own name."""

from torch.optim import Optimizer


class Ranger(Optimizer):
    pass


class RangerQH(Optimizer):
    pass


class RangerVA(Optimizer):
    pass
